// A kernel on all cores of a measured machine: one task for each core, memory that cores share, and a
// launch.
//
// The time is that of a program whose lanes are the cores (ptowsp_shared_memory_of,
// ptowsp_control_make), so a core is slowed down by the others as far as L2 and HBM do not suffice. The
// pipes of a core are counted once more at the rate that cores had on average.

#ifndef PREDICT_MACHINE_H
#define PREDICT_MACHINE_H

#include "predict.h"

#include "ptowsp.h"

enum { PREDICT_CORES_MAX = 64, PREDICT_TENSORS_MAX = 4 };

// A tensor of two dimensions, and where the tile of each core begins. Tiles are cut at its edges.
typedef struct predict_tensor {
    ptowsp_dtype dtype;
    int64_t rows, cols;
    int32_t row[PREDICT_CORES_MAX], col[PREDICT_CORES_MAX];
} predict_tensor;

typedef struct predict_machine {
    ptowsp_model model;
    uint32_t core_count, task_count;  // tasks are at most as many
    double launch_us;
    ptowsp_context *context;
    ptowsp_module *module;
    predict_tensor tensors[PREDICT_TENSORS_MAX];  // of the kernel's tiles, in order
    uint32_t tensor_count;
} predict_machine;

// Makes a machine with a module. False with a reason.
bool predict_machine_create(predict_machine *machine, bool is_a5, double launch_us,
                            char reason[PREDICT_REASON_MAX]);
void predict_machine_destroy(predict_machine *machine);

// Runs a kernel of the module on all cores: microseconds from the launch on, and bytes in 100 cycles that a
// core had while all moved any: without limit if they did less than half of the time. False with a reason.
bool predict_machine_run(const predict_machine *machine, ptowsp_kernel kernel, double *out_us,
                         double *out_rate, char reason[PREDICT_REASON_MAX]);

// Shares of pipes in a time, in per cent, from their busy cycles.
void predict_shares(const predict_machine *machine, const uint64_t busy[PTOWSP_PIPE_COUNT],
                    double us, predict_times *out);

#endif
