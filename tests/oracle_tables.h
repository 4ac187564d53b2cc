// The types of the tables that oracle_cases.py writes, and what reads and writes tiles in kernels
// that are C functions. The tables are included after this, and oracle_run.h after them.

#ifndef ORACLE_TABLES_H
#define ORACLE_TABLES_H

#include "test.h"

#include <math.h>

// -- the tables -----------------------------------------------------------------------------------

enum {
    TENSOR_MAX = 9,
    AXIS_MAX = 8,
    RANK_MAX = 5,
    LANE_MAX = 24,
    CHANNEL_MAX = 3,
    PROCESS_MAX = 4,
    TILE_MAX = 4,
    SCALAR_MAX = 1,
    VARIANT_MAX = 2,
    ARG_MAX = 4
};

// Trees and expressions are flat arrays of words, each operation before its operands:
//
//      TASK  kernel  its axis arguments  for each tile: tensor, leading indices  its scalars
//      PARALLEL | FOR_EACH | SELECT  variable  axis  statements  END
//      WHEN  condition  statements  END,  and then perhaps  OTHERWISE  statements  END
//      COMBINE | SEQUENCE  statements  END
//      SLOT_SET  slot  value,  SLOT_LOAD  slot  row  col  tensor  leading indices
//      PIPELINE  processes  END,  each  PROCESS  CONSUMES and PRODUCES  statements  END
//      CONSUMES | PRODUCES  channel
//      SEND  channel, and then as behind TASK
//      CONSUME  variable  channel  statements  END
//      STOP  after the last statement
//
// Variables are characters; in arguments and indices, where numbers are meant, V('b').
enum {
    STOP,
    END,
    TASK,
    PARALLEL,
    FOR_EACH,
    SELECT,
    WHEN,
    OTHERWISE,
    COMBINE,
    SEQUENCE,
    SLOT_SET,
    SLOT_LOAD,
    PIPELINE,
    PROCESS,
    CONSUMES,
    PRODUCES,
    SEND,
    CONSUME
};
#define V(c)             (-(c))
#define CODE(...)        ((const int32_t[]){__VA_ARGS__})
#define TASKS(...)       ((const oracle_task[]){__VA_ARGS__})
#define OPS(...)         ((const oracle_op[]){__VA_ARGS__}), COUNT(oracle_op, __VA_ARGS__)
#define INSNS(...)       ((const oracle_insn[]){__VA_ARGS__}), COUNT(oracle_insn, __VA_ARGS__)
#define COUNT(type, ...) (sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

// The words again and again.
#define TIMES_2(...)  __VA_ARGS__, __VA_ARGS__
#define TIMES_4(...)  TIMES_2(TIMES_2(__VA_ARGS__))
#define TIMES_5(...)  TIMES_4(__VA_ARGS__), __VA_ARGS__
#define TIMES_6(...)  TIMES_4(__VA_ARGS__), TIMES_2(__VA_ARGS__)
#define TIMES_16(...) TIMES_4(TIMES_4(__VA_ARGS__))
#define TIMES_50(...) TIMES_2(TIMES_5(TIMES_5(__VA_ARGS__)))

// In expressions i64 and u64 may be mixed, as in C: the result is u64.
enum {
    I64,       // and its value
    VARIABLE,  // and its name
    ARG,       // and its index
    SLOT,      // as u64, and its index
    SYMBOL,    // the workload's only one
    TO_I64,
    TO_U64,
    WHERE,  // condition ? a : b
    ADD,
    SUB,
    MUL,
    XOR,
    LT,
    LE,
    EQ,
    NE
};

typedef enum oracle_axis_kind { AXIS_NONE, DENSE, DYNAMIC, RAGGED, SPARSE } oracle_axis_kind;

// What tile kernels are made of.
typedef enum oracle_op_kind {
    OP_STORE,
    OP_LOAD,
    OP_CONST,  // the number
    OP_MATMUL,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MAX,
    OP_EXP,
    OP_RSQRT,
    OP_ROWMAX,
    OP_ROWSUM,
    OP_ROWMEAN,
    OP_IOTA_U32,  // as many as the number says
    OP_TSORT32,
    OP_TOPK_IDX  // as many as the number says
} oracle_op_kind;

typedef struct oracle_op {
    const char *dst;  // a new value; for a store, a parameter
    oracle_op_kind kind;
    const char *src[2];  // parameters or values before
    double number;
} oracle_op;

typedef struct oracle_insn {
    const char *name;
    ptowsp_cycles cycles;
} oracle_insn;

// A C function, or a tile kernel: its operations, and the instructions of more than 0 cycles that
// v9 makes of them. Both lists end with a store.
typedef struct oracle_kernel {
    const char *name;
    ptowsp_kernel_fn fn;
    ptowsp_cycles cycles;  // 0: what fn returns
    ptowsp_tile_param tiles[TILE_MAX];
    ptowsp_scalar_param scalars[SCALAR_MAX];
    const oracle_op *ops;
    uint32_t op_count;
    const oracle_insn *insns;
    uint32_t insn_count;
} oracle_kernel;

typedef struct oracle_axis {
    const char *name;
    oracle_axis_kind kind;
    int64_t size;
} oracle_axis;

// Element i of its memory is data[i], or (((i * mul + add) % mod) - sub) * scale, before a run.
typedef struct oracle_tensor {
    const char *name;
    ptowsp_dtype dtype;  // f16, f32, i32 or u64
    uint32_t rank;
    int64_t shape[RANK_MAX];
    int64_t mul, add, mod, sub;
    double scale;
    bool transposed;  // in memory the last two dimensions are swapped
    const int32_t *data;
} oracle_tensor;

typedef struct oracle_workload {
    uint32_t axis_arg_count;  // of each task
    const char *symbol;
    oracle_axis axes[AXIS_MAX];
    oracle_tensor tensors[TENSOR_MAX];
    uint32_t channel_count, process_count;  // without a pipeline, none
    const int32_t *tree;
} oracle_workload;

typedef struct oracle_task {
    uint32_t kernel;
    int64_t axes[ARG_MAX];
    uint32_t lane;
    ptowsp_cycles ready, start, end;
} oracle_task;

typedef struct oracle_time {
    ptowsp_cycles makespan;
    uint64_t tasks_hash;
} oracle_time;

// Over all elements: x, and the i-th x times i % 97 + 1.
typedef struct oracle_sum {
    double sum, weighted_sum;
} oracle_sum;

// At the end of a run.
typedef struct oracle_process {
    uint64_t task_count;
    ptowsp_cycles end, busy, full, empty;
} oracle_process;

typedef struct oracle_channel {
    uint64_t token_count, pending_max;
    ptowsp_cycles full, empty;
} oracle_channel;

enum { IN_ORDER, STRUCTURE, EXACT_RAW, EXACT_ALL, HYBRID, MODE_COUNT };

typedef struct oracle_variant {
    int64_t axis_size;                // of the dynamic axis
    uint64_t symbol;                  // with a pipeline, the latency of its channels
    uint64_t row_count, entry_count;  // of the ragged or the sparse axis
    int64_t lengths[4];
    int32_t indptr[5], indices[9];
    uint64_t task_count;
    ptowsp_cycles busy;
    uint64_t lane_tasks[LANE_MAX];
    oracle_time times[HYBRID];  // by mode
    oracle_process processes[PROCESS_MAX];
    oracle_channel channels[CHANNEL_MAX];
    oracle_sum sums[TENSOR_MAX];
    const oracle_task *tasks;  // in order; NULL for the largest, which have only the hash
} oracle_variant;

typedef struct oracle_case {
    const char *name;
    const oracle_workload *workload;
    ptowsp_dispatch dispatch;
    uint32_t lane_count;
    const int32_t *key;
    uint32_t window;
    uint32_t depths[CHANNEL_MAX];
    uint32_t variant_count;
    oracle_variant variants[VARIANT_MAX];
} oracle_case;

// -- kernels that are C functions in v9, too ------------------------------------------------------

#define FOR_TILE(task, tile)                                                                       \
    for (int64_t r = 0; r < ptowsp_task_rows(task, tile); r++)                                     \
        for (int64_t c = 0; c < ptowsp_task_cols(task, tile); c++)

// Also the text of them, for emitted trees. oracle_burn (d, cnt) counts itself, and takes d cycles.
// oracle_topk8 (scores, indices) gives those of the 8 largest scores, the lower index first among
// equals; 4 cycles more for each of the scores that it claims to be padded to.
PTOWSP_SOURCE(
    oracle_source,

    static inline void *element_at(const ptowsp_task *task, uint32_t tile, int64_t row,
                                   int64_t col) {
        const ptowsp_tile *t = &task->tiles[tile];
        return (char *)t->data + 4 * (row * t->row_stride + col * t->col_stride);
    }

    static inline float *f32_at(const ptowsp_task *task, uint32_t tile, int64_t row, int64_t col) {
        return (float *)element_at(task, tile, row, col);
    }

    static inline int32_t *i32_of(const ptowsp_task *task, uint32_t tile) {
        return (int32_t *)element_at(task, tile, 0, 0);
    }

    static inline ptowsp_cycles oracle_write_flag(const ptowsp_task *task, void *user) {
        (void)user;
        *i32_of(task, 1) = *f32_at(task, 0, 0, 0) > 0;
        return 1;
    }

    static inline ptowsp_cycles oracle_fill_true(const ptowsp_task *task, void *user) {
        (void)user;
        *i32_of(task, 0) = 7;
        return 1;
    }

    static inline ptowsp_cycles oracle_fill_false(const ptowsp_task *task, void *user) {
        (void)user;
        *i32_of(task, 0) = 3;
        return 1;
    }

    static inline ptowsp_cycles oracle_burn(const ptowsp_task *task, void *user) {
        (void)user;
        *i32_of(task, 1) += 1;
        return (ptowsp_cycles)*i32_of(task, 0);
    }

    static inline ptowsp_cycles oracle_topk8(const ptowsp_task *task, void *user) {
        (void)user;
        bool is_taken[32] = {false};
        for (int64_t k = 0; k < ptowsp_task_cols(task, 1); k++) {
            int32_t best = -1;
            for (int32_t i = 0; i < 32; i++) {
                if (!is_taken[i] &&
                    (best < 0 || *f32_at(task, 0, 0, i) > *f32_at(task, 0, 0, best))) {
                    best = i;
                }
            }
            is_taken[best] = true;
            *(int32_t *)element_at(task, 1, 0, k) = best;
        }
        uint64_t pad_to = ptowsp_task_scalar(task, 0);
        return 32 + 5 * 32 + (pad_to > 32 ? pad_to / 32 * 128 : 0);
    })

// The name of a function of that source; NULL: it is none.
static inline const char *oracle_function_name(ptowsp_kernel_fn fn) {
    return fn == oracle_write_flag   ? "oracle_write_flag"
           : fn == oracle_fill_true  ? "oracle_fill_true"
           : fn == oracle_fill_false ? "oracle_fill_false"
           : fn == oracle_burn       ? "oracle_burn"
           : fn == oracle_topk8      ? "oracle_topk8"
                                     : NULL;
}

#endif
