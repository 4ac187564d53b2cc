// The interface of host, AICPU and AICore: all data that crosses between them, with fixed widths
// and a layout that is checked at compile time, and the tables that describe the program.
//
//      host     fills wsp_bindings: sizes, symbols, arrays, tensors, slots
//      AICPU    plans the batches among them, into sizes and arrays
//               walks the program over all of it, and fills a wsp_task for each task
//      AICore   runs the task that its pwsp_line points to, and writes cycles and status into it
//
// Addresses are 64-bit numbers here, as the processors may have different pointers.

#ifndef WSP_ABI_H
#define WSP_ABI_H

#include <stdint.h>

#include "ptowsp.h"

#define WSP_ABI_VERSION 6u

// -- bindings -------------------------------------------------------------------------------------

// All of it, by the program's indices: [1 .. count - 1] of each kind, [slot_count] slots.
typedef struct wsp_bindings {
    uint32_t abi_version;
    uint32_t model;            // a ptowsp_model: how the stand-in counts tile kernels
    uint64_t sizes;            // int64_t[], by axis
    uint64_t symbols;          // uint64_t[]
    uint64_t is_symbol_bound;  // uint8_t[]
    uint64_t arrays;           // pwsp_array[], of wsp_core.h, as are the following
    uint64_t csrs;             // pwsp_bound_csr[], by axis
    uint64_t tensors;          // pwsp_bound_tensor[]
    uint64_t slots;            // uint64_t[]: initial values, then final values
    uint64_t batches;          // pwsp_plan_batch[], by the first axis of a plan; 0: without batches
} wsp_bindings;

// -- tasks ----------------------------------------------------------------------------------------

#define WSP_TASK_ARG_MAX (PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX)

typedef struct wsp_tile {
    uint64_t data;
    int64_t row_stride, col_stride;
} wsp_tile;

// A task as a core gets it. The core writes the last three fields, between ASSIGNED and DONE.
typedef struct wsp_task {
    uint64_t index;  // in program order
    uint32_t kernel;
    uint32_t axis_count, tile_count, scalar_count;
    uint32_t model;                   // of the bindings
    uint32_t core;                    // that runs it
    uint64_t args[WSP_TASK_ARG_MAX];  // axes, then rows and cols of each tile, then scalars
    wsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    uint64_t cycles;
    int32_t status;  // a ptowsp_status
    uint32_t fault;  // more about a failure: which size check of its kernel, + 1, or 0
} wsp_task;

// How far apart the tasks of a launch are: a core writes whole lines of its cache back.
#define WSP_TASK_STRIDE ((sizeof(wsp_task) + 63u) / 64u * 64u)

// Starts one kernel for an array of tasks, when the host is the driver, and returns before they have
// ended; 0, or an error. Of kernels of MIX a device has three elements for each task, for the cube core
// and the two vector cores of its block, and task_count is the number of blocks. On threads the call
// executes them. Addresses are as cores see them; `stream` is CANN's.
typedef int32_t (*wsp_launcher)(uint32_t task_count, void *stream, uint64_t tasks, uint64_t fifos,
                                uint64_t ffts);

// The memory between a block's cores on a device: two FIFOs, to the vector cores and to the cube
// core, of slots that hold any tile of L0C or UB.
#ifndef WSP_FIFO_SLOT_BYTES  // or where FIFOs are of one kernel alone
#define WSP_FIFO_SLOT_BYTES (192u * 1024u)
#endif
#if __has_include("wsp_fifos.h")  // of a program whose kernels begin iterations ahead
#include "wsp_fifos.h"
#endif
#ifndef WSP_FIFO_SLOT_COUNT
#define WSP_FIFO_SLOT_COUNT 2u
#endif
#define WSP_FIFO_BYTES (WSP_FIFO_SLOT_BYTES * WSP_FIFO_SLOT_COUNT)

// -- the program ----------------------------------------------------------------------------------

typedef struct wsp_axis_decl {
    const char *name;  // NULL: no such axis
    uint32_t kind;     // a ptowsp_axis_kind
    uint32_t array;  // ragged: its lengths; units or merges of a plan: their flags, followed by the
                     // lanes
    int64_t size;    // dense
    uint32_t is_used;
} wsp_axis_decl;

typedef struct wsp_array_decl {
    const char *name;
    uint32_t dtype;  // 0: lengths of i32, i64, u32 or u64
    uint32_t is_lengths, is_used;
} wsp_array_decl;

// An array that is a field of the units or merges of a plan, and is bound with it.
typedef struct wsp_field_decl {
    uint32_t array, axis;
    uint32_t field;  // a ptowsp_plan_field
} wsp_field_decl;

typedef struct wsp_symbol_decl {
    const char *name;
    uint32_t is_used;
} wsp_symbol_decl;

typedef struct wsp_tensor_decl {
    const char *name;
    uint32_t dtype, rank;
    int64_t shape[PTOWSP_TENSOR_RANK_MAX];  // PTOWSP_DYNAMIC: known when bound
    uint32_t is_used, is_written, is_loaded;
    uint32_t is_transient;  // a run gives it memory
} wsp_tensor_decl;

typedef struct wsp_kernel {
    const char *name;
    uint32_t unit;  // a ptowsp_unit
    uint32_t axis_count, tile_count, scalar_count;
    const char *tile_names[PTOWSP_TASK_TILE_MAX];
} wsp_kernel;

#ifdef __cplusplus
namespace wsp {
class Run;
class Sizes;
}  // namespace wsp
typedef void (*wsp_expand_fn)(wsp::Run &run);
typedef void (*wsp_sizes_fn)(wsp::Run &run, wsp::Sizes &sizes);
#else
typedef void (*wsp_expand_fn)(void *run);
typedef void (*wsp_sizes_fn)(void *run, void *sizes);
#endif

typedef struct wsp_transient_decl {
    uint32_t tensor;
    uint32_t lifetime_count;  // its lifetimes follow the previous transient tensor's
} wsp_transient_decl;

// Transient tensors may share memory if their lifetimes have no point in common.
typedef struct wsp_transients {
    uint32_t count;
    const wsp_transient_decl *tensors;
    const uint32_t (*lifetimes)[2];  // the first and the last point
    uint32_t point_count;
    const char *const *points;  // where in the workload, for errors
    wsp_sizes_fn sizes;         // expand.cpp: evaluates their sizes
} wsp_transients;

// Tables have entries [1 .. count - 1]; [0] is unused.
typedef struct wsp_program {
    uint32_t abi_version;
    const char *name;
    const char *hash;  // of the tree's sources
    uint32_t axis_count, array_count, symbol_count, tensor_count, kernel_count, slot_count;
    const wsp_axis_decl *axes;
    const wsp_array_decl *arrays;
    const wsp_symbol_decl *symbols;
    const wsp_tensor_decl *tensors;
    const wsp_kernel *kernels;
    uint32_t place_count;
    const char *const *places;  // of statements, for errors: "decode/parallel b/task attend"
    ptowsp_schedule schedule;   // with defaults filled in, keys not set
    uint32_t lane_count, is_priority_signed, has_streams;
    uint32_t edge_count, scope_depth, pipeline_count;
    uint32_t latency_symbol;  // overrides the latency of channels, if it is bound; or 0
    wsp_expand_fn expand;
    uint32_t field_count;  // from 0
    const wsp_field_decl *fields;
    const wsp_transients *transients;  // null: without transient tensors
} wsp_program;

#ifdef __cplusplus
namespace wsp {
// Is an array a field of a plan, with which it is bound?
inline bool is_field(const wsp_program &program, uint32_t array) {
    for (uint32_t i = 0; i < program.field_count; i++) {
        if (program.fields[i].array == array) {
            return true;
        }
    }
    return false;
}
}  // namespace wsp

extern "C" {
#endif

extern const wsp_program wsp_the_program;  // aicpu/program.cpp, generated

// aicore/dispatch.cpp, generated: runs a task on this core and fills in cycles and status. For
// blocks of a device it is in wsp_kernel.h, with the block's FIFOs.
#ifndef WSP_UNIT_block
PTOWSP_AICORE void wsp_core_run(PTOWSP_GM wsp_task *task);
#endif

// The launcher of a kernel; null if this library does not contain it. Exported by the libraries of a
// device's cores.
wsp_launcher wsp_launcher_of(uint32_t kernel);

// Details of `fault` of a kernel's task: "mul: rows of x and y differ"; "" without details.
const char *wsp_core_fault_text(uint32_t kernel, uint32_t fault);

#ifdef __cplusplus
}
#endif

PTOWSP_STATIC_ASSERT(sizeof(wsp_tile) == 24, "wsp_tile");
PTOWSP_STATIC_ASSERT(sizeof(wsp_bindings) == 72, "wsp_bindings");
PTOWSP_STATIC_ASSERT(sizeof(wsp_task) == 32 + 8 + 8 * WSP_TASK_ARG_MAX + 24 * 12 + 8, "wsp_task");

#endif
