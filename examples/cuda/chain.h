// A chain of matrix operations that runs through cuBLAS where it can, and on the library's CPU kernels where it
// cannot, with a reason from a table.
//
//      input, matmul, [add], [relu], output
//
// runs on a device: the operand of add is a matrix of the product's shape, a row or a single number. Any other
// order or number of operations is computed on the CPU. Matrices are f32, row-major, in host memory.
//
// The first run of a chain uploads, computes and captures a graph of the device. Later ones with the same
// signature (kinds, shapes and pointers) replay it.

#ifndef CHAIN_H
#define CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum chain_kind {
    CHAIN_INPUT = 0,
    CHAIN_MATMUL,
    CHAIN_ADD,
    CHAIN_RELU,
    CHAIN_OUTPUT
} chain_kind;

// data: the input, the right operand of a product, the added operand, the output; NULL for relu.
typedef struct chain_op {
    chain_kind kind;
    float *data;
    uint32_t rows, cols;
} chain_op;

#define CHAIN_OP_MAX 16

// Why a chain ran on the CPU.
#define CHAIN_REASONS(REASON)                                                                      \
    REASON(NONE, "ran on the device")                                                              \
    REASON(DISABLED, "disabled by PTOWSP_CUDA_DISABLE")                                            \
    REASON(FORCED_FALLBACK, "PTOWSP_CUDA_FORCE_FALLBACK is set")                                   \
    REASON(FORCED_ERROR, "PTOWSP_CUDA_FORCE_ERROR is set")                                         \
    REASON(NO_DRIVER, "there is no CUDA driver")                                                   \
    REASON(NO_LIBRARY, "there is no cuBLAS")                                                       \
    REASON(NO_DEVICE, "the driver has no device")                                                  \
    REASON(UNSUPPORTED_CHAIN, "not input, matmul, [add], [relu], output")                          \
    REASON(SHAPE, "the matrices exceed the device's memory")                                       \
    REASON(CAPTURE_FAILED, "the device did not capture the chain")                                 \
    REASON(LAUNCH_FAILED, "the device did not run the chain")

typedef enum chain_reason {
#define CHAIN_REASON_ENUM(name, text) CHAIN_##name,
    CHAIN_REASONS(CHAIN_REASON_ENUM)
#undef CHAIN_REASON_ENUM
        CHAIN_REASON_COUNT
} chain_reason;

extern const char *const chain_reason_texts[CHAIN_REASON_COUNT];

// Settings of the environment; a variable is set unless it is absent, empty or "0".
typedef struct chain_settings {
    bool is_disabled;      // PTOWSP_CUDA_DISABLE: the driver is not even looked for
    bool forces_fallback;  // PTOWSP_CUDA_FORCE_FALLBACK: the device is looked for and not used
    const char
        *error_at;      // PTOWSP_CUDA_FORCE_ERROR: "capture" and "launch" fail there, others before
    bool is_simulated;  // PTOWSP_CUDA_SIMULATE: a device in host memory stands for one
    bool has_no_replay;  // PTOWSP_CUDA_REPLAY=0: chains are not captured
    bool
        has_static_right;  // PTOWSP_CUDA_STATIC_RIGHT: right operands never change, so one upload of each
    uint64_t memory_bytes;  // of a simulated device; 0: 64 MiB
} chain_settings;

chain_settings chain_settings_read(void);

typedef struct chain_counters {
    uint64_t runs, on_device, captures, replays;
    uint64_t uploads;  // of right operands
    uint64_t reasons[CHAIN_REASON_COUNT];
} chain_counters;

typedef struct chain_dispatcher chain_dispatcher;

// NULL without memory.
chain_dispatcher *chain_create(const chain_settings *settings);
void chain_destroy(chain_dispatcher *dispatcher);

// Computes a chain. False: no way computes it, as shapes do not fit each other or memory is short; *out_error
// says why, and outputs are not written. *out_reason is CHAIN_NONE if a device did it.
bool chain_run(chain_dispatcher *dispatcher, const chain_op *ops, uint32_t op_count,
               chain_reason *out_reason, const char **out_error);

const chain_counters *chain_count(const chain_dispatcher *dispatcher);

// "NVIDIA H100", "simulated", or "none".
const char *chain_device_name(const chain_dispatcher *dispatcher);

#endif
