// PTO-ISA on a CPU: tiles, windows of global memory, cores, and the table of instructions. The
// instructions themselves are in the files beside this one.
//
// Everything under src/isa/ is written for two readers. ptoisa_shim.h is made of these files and is
// complete in itself: C functions for hand-written kernels and, under C++17, PTO-ISA's own names on
// top of them. ptowsp.c carries the same files and runs its tile kernels through them. Include
// guards stay in both, so a file that includes both gets everything once. All functions are static,
// and have no global state: an instruction changes a tile, memory, or the core that it is
// given.
//
//      ptoisa_core core;
//      ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
//      ptoisa_tload(&core, &a, &global_a);           // tiles are plain structs over your memory
//      ptoisa_tadd(&core, &sum, &a, &b);
//      ptoisa_tstore(&core, &global_sum, &sum);
//      return ptoisa_cycles(&core);
//
// An instruction does three things: it checks its operands as the device demands (in debug builds),
// charges its time to the core, and computes, over the valid region of its destination. A core that
// is dry does not compute: then tiles need no memory, and only time passes.

#ifndef PTOISA_ISA_H
#define PTOISA_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) ||           \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "instructions are exact: compile the shim without -ffast-math or parts of it"
#endif

#define PTOISA_UNUSED      __attribute__((unused))
#define PTOISA_ALWAYS      static inline __attribute__((always_inline, unused))
#define PTOISA_LIKELY(x)   __builtin_expect(!!(x), 1)
#define PTOISA_UNLIKELY(x) __builtin_expect(!!(x), 0)

// Small functions, and others. A program of many files that include all instructions may define both
// before it includes this file: to a declaration (extern inline with gnu_inline) in all files but one,
// and to nothing there. At -O0 gcc compiles static functions that nobody calls, unless they are inline:
// 2 s for each file.
#ifndef PTOISA_INLINE
#define PTOISA_INLINE static inline PTOISA_UNUSED
#endif
#ifdef PTOISA_FN
#define PTOISA_ONCE
#elif defined(__GNUC__) && !defined(__OPTIMIZE__)
#define PTOISA_FN PTOISA_INLINE
#define PTOISA_ONCE
#else
#define PTOISA_FN   static PTOISA_UNUSED
#define PTOISA_ONCE __attribute__((noinline))
#endif

// Operands are checked where the core says so: from the start in debug builds.
#ifdef NDEBUG
#define PTOISA_CHECKED_DEFAULT false
#else
#define PTOISA_CHECKED_DEFAULT true
#endif
#define PTOISA_CHECKED (core->is_checked)

// What PTO-ISA's CPU simulator permits and its device does not is a fault too, unless the core says
// otherwise (is_as_simulator; from the start with this macro as 1). Permitted are then, on A2/A3:
//
//     TCMP, TCMPS, TSEL, TSELS    elements of 8 bits, and TCMP, TCMPS of all types, i32 in all modes
//     TLOG, TLRELU, TPRELU        i16 and i32: wrapping; logarithms cut off, of 0 and less the least
//     TRSQRT, TRECIP, TANDS, TORS in place
//     TMOV, TINSERT, TINTERLEAVE  the ways of A5
//     TLOAD                       into the bias table
//     TSTORE                      masks with all allocated columns, by a window as large
//     TROWSUM and its kind        a row-major dst with more than a valid column: column 0 is written
//     TASSIGN                     UB of 512 KiB
//
// Values and cycles of all else are the same: in what order the simulator adds, or rounds half
// precision twice, is not imitated.
#ifndef PTOISA_AS_SIMULATOR
#define PTOISA_AS_SIMULATOR 0
#endif
#define PTOISA_SIMULATOR_UB (512u << 10)

// -- element types --------------------------------------------------------------------------------

// Values as ptowsp_dtype, so that one is a cast of the other. f16 and bf16 are uint16_t bits.
typedef enum ptoisa_dtype {
    PTOISA_DTYPE_NONE = 0,
    PTOISA_F16 = 1,
    PTOISA_BF16,
    PTOISA_F32,
    PTOISA_F64,  // no instruction takes it
    PTOISA_I8,
    PTOISA_I16,
    PTOISA_I32,
    PTOISA_I64,
    PTOISA_U8,
    PTOISA_U16,
    PTOISA_U32,
    PTOISA_U64,
    PTOISA_BOOL,
    PTOISA_DTYPE_COUNT
} ptoisa_dtype;

// Sets of element types, as bits, for checks: PTOISA_SET(PTOISA_F32) | ...
#define PTOISA_SET(dtype) (1u << (dtype))
#define PTOISA_SET_FLOAT  (PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_F32))
#define PTOISA_SET_BIN    (PTOISA_SET_FLOAT | PTOISA_SET(PTOISA_I16) | PTOISA_SET(PTOISA_I32))

// -- tiles ----------------------------------------------------------------------------------------

// Memories of a core; each has its own address space from 0.
typedef enum ptoisa_memory {
    PTOISA_VEC = 0,  // unified buffer, UB
    PTOISA_MAT,      // L1
    PTOISA_LEFT,     // L0A
    PTOISA_RIGHT,    // L0B
    PTOISA_ACC,      // L0C
    PTOISA_BIAS,     // bias table
    PTOISA_SCALING,  // fixpipe buffer
    PTOISA_MEMORY_COUNT
} ptoisa_memory;

// Layouts of a tile. The boxed ones hold boxes of inner_rows x inner_cols (16 rows x 32 bytes, or
// 32 bytes x 16 columns; 16 x 16 elements in Acc). First letter: order of the boxes, N column by
// column, Z row by row; second: order inside a box, n column by column, z row by row.
typedef enum ptoisa_layout {
    PTOISA_ROW_MAJOR = 0,
    PTOISA_COL_MAJOR,
    PTOISA_NZ,  // boxes column by column, rows inside: Mat (A), Acc, Left on A5
    PTOISA_ZN,  // boxes row by row, columns inside: Right, Mat (B stored transposed)
    PTOISA_ZZ,  // Left on A2/A3
    PTOISA_NN,
    PTOISA_LAYOUT_COUNT
} ptoisa_layout;

// What TLOAD and TFILLPAD put outside the valid region. Null: nothing is promised there.
typedef enum ptoisa_pad {
    PTOISA_PAD_NULL = 0,
    PTOISA_PAD_ZERO,
    PTOISA_PAD_MAX,
    PTOISA_PAD_MIN,
    PTOISA_PAD_CUSTOM  // the tile's pad_value
} ptoisa_pad;

typedef struct ptoisa_tile {
    void *data;           // the first byte, on chip or anywhere; NULL on a dry core
    uint8_t dtype;        // ptoisa_dtype
    uint8_t memory;       // ptoisa_memory
    uint8_t layout;       // ptoisa_layout
    uint8_t pad;          // ptoisa_pad
    bool is_dynamic;      // the valid columns are not known when the kernel is compiled
    uint32_t rows, cols;  // allocated
    uint32_t valid_rows, valid_cols;
    float pad_value;  // of PTOISA_PAD_CUSTOM
} ptoisa_tile;

// A window of global memory: five dimensions, outermost first, strides in elements. Rows of a tile
// are dimensions 0 to 3 flattened and its columns dimension 4; a transposed view (DN) has shape
// {1, 1, 1, rows, cols} with strides {.., 1, pitch}: only strides tell the two apart.
typedef struct ptoisa_global {
    void *data;
    uint8_t dtype;
    int64_t shape[5];
    int64_t stride[5];
} ptoisa_global;

// -- instructions ---------------------------------------------------------------------------------

// Pipes of a core: each runs its instructions in order; nothing but flags orders them with each
// other. S is the scalar unit.
typedef enum ptoisa_pipe {
    PTOISA_PIPE_S = 0,
    PTOISA_PIPE_V,
    PTOISA_PIPE_M,
    PTOISA_PIPE_MTE1,  // L1 -> L0, bias table
    PTOISA_PIPE_MTE2,  // global -> L1, UB
    PTOISA_PIPE_MTE3,  // UB -> global, L1
    PTOISA_PIPE_FIX,   // L0C -> anything, L1 -> fixpipe buffer
    PTOISA_PIPE_COUNT,
    PTOISA_PIPE_ALL = PTOISA_PIPE_COUNT
} ptoisa_pipe;

#define PTOISA_EVENT_COUNT 8  // flags for each (source, destination) pair of pipes

// How an instruction is counted in the unit model: DST the valid elements of its destination, SRC
// the valid elements of its source, SORT 5 for each element of its source, MATMUL m * k * n, ZERO nothing. MOVE:
// DST, but nothing from L1 to L0, bias table or fixpipe buffer: there TLOAD has paid.
// Its cost on A2/A3 is in cost_a2a3.h, by name.
// clang-format off
#define PTOISA_OPS(OP) /* name, unit cycles */                                                     \
    OP(TLOAD, DST) OP(TSTORE, SRC) OP(TMOV, MOVE) OP(TEXTRACT, MOVE) OP(TINSERT, SRC)              \
    OP(TCVT, DST) OP(TTRANS, DST) OP(TEXPANDS, DST) OP(TFILLPAD, DST) OP(TCONCAT, DST)             \
    OP(TINTERLEAVE, DST) OP(TDEINTERLEAVE, SRC) OP(TCI, ZERO) OP(TTRI, DST)                        \
    OP(TADD, DST) OP(TSUB, DST) OP(TMUL, DST) OP(TDIV, DST) OP(TMAX, DST) OP(TMIN, DST)            \
    OP(TAND, DST) OP(TOR, DST) OP(TXOR, DST) OP(TSHL, DST) OP(TSHR, DST)                           \
    OP(TREM, DST) OP(TFMOD, DST) OP(TPOW, DST)                                                     \
    OP(TPARTADD, DST) OP(TPARTMUL, DST) OP(TPARTMAX, DST) OP(TPARTMIN, DST)                        \
    OP(TADDS, DST) OP(TSUBS, DST) OP(TMULS, DST) OP(TDIVS, DST) OP(TSDIV, DST)                     \
    OP(TMAXS, DST) OP(TMINS, DST) OP(TANDS, DST) OP(TORS, DST) OP(TXORS, DST)                      \
    OP(TSHLS, DST) OP(TSHRS, DST) OP(TREMS, DST) OP(TFMODS, DST) OP(TPOWS, DST)                    \
    OP(TEXP, DST) OP(TLOG, DST) OP(TSQRT, DST) OP(TRSQRT, DST) OP(TRECIP, DST)                     \
    OP(TABS, DST) OP(TNEG, DST) OP(TRELU, DST) OP(TNOT, DST)                                       \
    OP(TLRELU, DST) OP(TPRELU, DST) OP(TAXPY, DST)                                                 \
    OP(TADDC, DST) OP(TSUBC, DST) OP(TADDSC, DST) OP(TSUBSC, DST)                                  \
    OP(TFUSEDMULADD, DST) OP(TMULADDDST, DST) OP(TFUSEDMULADDRELU, DST) OP(TSUBRELU, DST)          \
    OP(TROWSUM, DST) OP(TROWMAX, DST) OP(TROWMIN, DST) OP(TROWPROD, DST)                           \
    OP(TROWARGMAX, DST) OP(TROWARGMIN, DST) OP(TCOLARGMAX, DST) OP(TCOLARGMIN, DST)                \
    OP(TPAIRREDUCESUM, DST)                                                                        \
    OP(TCOLSUM, DST) OP(TCOLMAX, DST) OP(TCOLMIN, DST) OP(TCOLPROD, DST)                           \
    OP(TROWEXPAND, DST) OP(TROWEXPANDADD, DST) OP(TROWEXPANDSUB, DST) OP(TROWEXPANDMUL, DST)       \
    OP(TROWEXPANDDIV, DST) OP(TROWEXPANDMAX, DST) OP(TROWEXPANDMIN, DST)                           \
    OP(TROWEXPANDEXPDIF, DST)                                                                      \
    OP(TCOLEXPAND, DST) OP(TCOLEXPANDADD, DST) OP(TCOLEXPANDSUB, DST) OP(TCOLEXPANDMUL, DST)       \
    OP(TCOLEXPANDDIV, DST) OP(TCOLEXPANDMAX, DST) OP(TCOLEXPANDMIN, DST)                           \
    OP(TCOLEXPANDEXPDIF, DST)                                                                      \
    OP(TCMP, SRC) OP(TCMPS, SRC) OP(TSEL, DST) OP(TSELS, DST)                                      \
    OP(TSORT32, SORT) OP(TMRGSORT, SRC) OP(TGATHER, DST) OP(TGATHERMASK, ZERO) OP(TGATHERB, DST)   \
    OP(TSCATTER, SRC) OP(MGATHER, DST) OP(MSCATTER, SRC)                                           \
    OP(TMATMUL, MATMUL) OP(TMATMUL_ACC, MATMUL) OP(TMATMUL_BIAS, MATMUL)                           \
    OP(TGEMV, MATMUL) OP(TGEMV_ACC, MATMUL) OP(TGEMV_BIAS, MATMUL)                                 \
    OP(TQUANT, DST) OP(TDEQUANT, DST)                                                              \
    OP(SET_FLAG, ZERO) OP(WAIT_FLAG, ZERO) OP(PIPE_BARRIER, ZERO)

typedef enum ptoisa_op {
    PTOISA_NOP = 0,
#define PTOISA_OP_ENUM(name, unit) PTOISA_##name,
    PTOISA_OPS(PTOISA_OP_ENUM)
#undef PTOISA_OP_ENUM
    PTOISA_OP_COUNT
} ptoisa_op;
// clang-format on

typedef enum ptoisa_round {
    PTOISA_CAST_NONE = 0,  // widening; as RINT where it is not
    PTOISA_CAST_RINT,      // to nearest, ties to even
    PTOISA_CAST_ROUND,     // to nearest, ties away from zero
    PTOISA_CAST_FLOOR,
    PTOISA_CAST_CEIL,
    PTOISA_CAST_TRUNC,
    PTOISA_CAST_ODD
} ptoisa_round;

typedef enum ptoisa_compare {
    PTOISA_EQ = 0,
    PTOISA_NE,
    PTOISA_LT,
    PTOISA_LE,
    PTOISA_GT,
    PTOISA_GE
} ptoisa_compare;

// Which elements TGATHER by mask takes: every first or second of two, first to fourth of four, all.
typedef enum ptoisa_pattern {
    PTOISA_P0101 = 0,
    PTOISA_P1010,
    PTOISA_P0001,
    PTOISA_P0010,
    PTOISA_P0100,
    PTOISA_P1000,
    PTOISA_P1111
} ptoisa_pattern;

// Indices of MGATHER that are outside of the table: a fault, the nearest one inside, modulo the
// number of places, or 0 for the gathered element.
typedef enum ptoisa_outside {
    PTOISA_OUTSIDE_FAULT = 0,
    PTOISA_OUTSIDE_CLAMP,
    PTOISA_OUTSIDE_WRAP,
    PTOISA_OUTSIDE_ZERO
} ptoisa_outside;

// How MSCATTER combines with the elements there.
typedef enum ptoisa_scatter {
    PTOISA_SCATTER_REPLACE = 0,
    PTOISA_SCATTER_ADD,
    PTOISA_SCATTER_MAX,
    PTOISA_SCATTER_MIN
} ptoisa_scatter;

// -- cores ----------------------------------------------------------------------------------------

typedef enum ptoisa_family { PTOISA_A2A3 = 0, PTOISA_A5 } ptoisa_family;

// The ways that data takes between memories; each has its rate.
typedef enum ptoisa_path {
    PTOISA_GM_TO_UB = 0,
    PTOISA_GM_TO_L1,
    PTOISA_UB_TO_GM,
    PTOISA_UB_TO_L1,
    PTOISA_UB_TO_UB,
    PTOISA_L1_TO_GM,
    PTOISA_L1_TO_L0A,
    PTOISA_L1_TO_L0B,
    PTOISA_L1_TO_OTHER,  // to bias table and fixpipe buffer; filling L1
    PTOISA_L0C_TO_GM,
    PTOISA_L0C_TO_L1,
    PTOISA_L0C_TO_UB,
    PTOISA_PATH_COUNT
} ptoisa_path;

// Sizes and rates of a machine that instructions know. Source of the numbers: machine.h.
typedef struct ptoisa_machine {
    char name[16];
    ptoisa_family family;
    uint32_t clock_mhz;
    uint32_t memory_size[PTOISA_MEMORY_COUNT];  // bytes; UB without instructions' own scratch
    uint32_t rate[PTOISA_PATH_COUNT];  // 1/100 GiB/s, one core; 0: as slow as the slowest listed
} ptoisa_machine;

// The mechanisms of a measured machine. Each can be switched off; the instructions that it describes
// then take the cycles of the ideal model.
// clang-format off
#define PTOISA_MECHANISMS(MECHANISM)                                                               \
    MECHANISM(LATENCY)    /* data arrives late; a pipe with more to do hides it */                 \
    MECHANISM(BURSTS)     /* a transfer has a setup, and each of its rows a cost */                \
    MECHANISM(FIX)        /* L0C is drained by bytes of the destination */                         \
    MECHANISM(TRANSPOSE)  /* L1 to L0 has a setup, and transposing is slower */                    \
    MECHANISM(BLOCKS)     /* UB to UB moves a block of 32 bytes a cycle */                         \
    MECHANISM(ROWS)       /* dynamic valid sizes: row by row, even without gaps */                 \
    MECHANISM(ENDS)       /* start and end of vector instructions, by kind of element */           \
    MECHANISM(COLUMNS)    /* columns are reduced row by row, each waiting for the last */          \
    MECHANISM(RUNS)       /* merges are slower where runs are longer than 32 pairs */              \
    MECHANISM(REGISTERS)  /* A5: measured loops over registers */                                  \
    MECHANISM(CLOCK)      /* global memory does not follow the core's clock */                     \
    MECHANISM(GROUPS)     /* rows of 8,192 f32 in all are reduced in groups of 8 */
// clang-format on

typedef enum ptoisa_mechanism {
#define PTOISA_MECHANISM_ENUM(name) PTOISA_MECHANISM_##name,
    PTOISA_MECHANISMS(PTOISA_MECHANISM_ENUM)
#undef PTOISA_MECHANISM_ENUM
        PTOISA_MECHANISM_COUNT
} ptoisa_mechanism;

// A path of a measured machine: the pipe takes setup + burst * rows + bytes / rate cycles, and the
// data is there `latency` cycles after.
typedef struct ptoisa_path_timing {
    uint32_t latency, setup, burst;  // cycles
    uint32_t rate;                   // bytes in 100 cycles
} ptoisa_path_timing;

// The times of a measured machine, in cycles of the clock that they were fitted at. Built-in ones
// are in timing.h.
typedef struct ptoisa_timing {
    char name[16];
    ptoisa_family family;
    uint32_t clock_mhz;        // of the cores
    uint32_t memory_mhz;       // the clock that paths of global memory were fitted at: see CLOCK
    uint32_t without;          // bit m: mechanism m is switched off
    uint32_t transposed_rate;  // L1 to L0B where fractals are transposed, bytes in 100 cycles
    ptoisa_path_timing path[PTOISA_PATH_COUNT];
} ptoisa_timing;

// The table of cost models. A kernel takes the SUM of its instructions, or until its PIPES are done,
// which overlap as far as flags allow; the machine is for cores that are given none; and
// ptoisa_cost_of_<cost> (cost.h) gives the cycles of an instruction.
// clang-format off
#define PTOISA_MODELS(MODEL) /* name, time, machine, cost */                                       \
    MODEL(UNIT, SUM, 910b, elements)  /* an element is a cycle */                                  \
    MODEL(A2A3, PIPES, 910b, a2a3)    /* public constants of A2/A3 */                              \
    MODEL(A5, PIPES, 950pr, a5)       /* the same with A5's vector instructions */                 \
    MODEL(USER, PIPES, 910b, user)    /* a function; without one, the unit model's cycles */       \
    MODEL(910B, PIPES, 910b, timed)   /* measured: timing.h */                                     \
    MODEL(950PR, PIPES, 950pr, timed)
// clang-format on

typedef enum ptoisa_model {
#define PTOISA_MODEL_ENUM(name, time, machine, cost) PTOISA_MODEL_##name,
    PTOISA_MODELS(PTOISA_MODEL_ENUM)
#undef PTOISA_MODEL_ENUM
        PTOISA_MODEL_COUNT
} ptoisa_model;

typedef enum ptoisa_time { PTOISA_TIME_SUM, PTOISA_TIME_PIPES } ptoisa_time;

PTOISA_INLINE ptoisa_time ptoisa_time_of(ptoisa_model model) {
    switch (model) {
#define PTOISA_MODEL_TIME(name, time, machine, cost)                                               \
    case PTOISA_MODEL_##name: return PTOISA_TIME_##time;
        PTOISA_MODELS(PTOISA_MODEL_TIME)
#undef PTOISA_MODEL_TIME
    case PTOISA_MODEL_COUNT: break;
    }
    return PTOISA_TIME_PIPES;
}

// The facts that a cost function gets about one instruction. It is asked for SET_FLAG, WAIT_FLAG and
// PIPE_BARRIER too, which have no operands; a barrier of PTOISA_PIPE_ALL is asked for once.
typedef struct ptoisa_issue_info {
    ptoisa_op op;
    ptoisa_pipe pipe;
    const ptoisa_tile *dst, *src0, *src1;  // as far as it has them; NULL: none, or global memory
    bool is_pipe_idle;                     // the pipe had run empty: see core.h
    uint32_t detail;                       // TMRGSORT: pairs of a run. TCOLSUM: 1 is binary.
                                           // TSTORE of L0C: bytes of an element in memory.
                                           // TRECIP: 1 is high precision. Others, or unknown: 0
    const ptoisa_machine *machine;
    const ptoisa_timing *timing;  // NULL: the model is not measured
} ptoisa_issue_info;

typedef uint64_t (*ptoisa_cost_fn)(const ptoisa_issue_info *info, void *user);

typedef struct ptoisa_core ptoisa_core;

// Called with the text of the fault: one line, "TADD: ...". The instruction is then left undone.
typedef void (*ptoisa_fault_fn)(ptoisa_core *core, const char *text);

// Traffic with global memory, counted as instructions are charged. A transfer of so many bytes then takes
// as long as its path does, or longer at the share that the core has of memory. Setup, rows and latency
// stay as they are.
#define PTOISA_TRAFFIC_STEPS 256u  // of a byte in a cycle

typedef struct ptoisa_traffic {
    uint64_t bytes;
    uint64_t peak;   // out: the fastest path that was used, in steps
    uint64_t share;  // in steps; 0: no limit
} ptoisa_traffic;

// A core: its clocks, and how it answers. Fields below the line are the core's own.
struct ptoisa_core {
    ptoisa_model model;
    const ptoisa_machine *machine;
    ptoisa_cost_fn cost;  // PTOISA_MODEL_USER
    void *cost_user;
    const ptoisa_timing *timing;  // measured models: times to use instead of the built-in ones
    ptoisa_traffic *traffic;      // counted there, in models whose pipes overlap; NULL: not counted
    bool is_dry;                  // charge, do not compute
    bool is_checked;              // operands are checked, and errors are faults
    bool is_only_checked;      // dry, nothing is charged, and each tile is known to be a whole one
    bool is_as_simulator;      // forms that PTO-ISA's CPU simulator permits are not faults
    ptoisa_fault_fn on_fault;  // NULL: print the text to stderr and abort
    void *fault_user;
    uint8_t *memory[PTOISA_MEMORY_COUNT];  // for ptoisa_tassign; not owned
    // ------------------------------------------------
    uint64_t sum;                       // of all instructions' cycles
    uint64_t clock[PTOISA_PIPE_COUNT];  // when each pipe is done
    uint64_t lag[PTOISA_PIPE_COUNT];    // how much earlier it can take another instruction
    uint64_t busy[PTOISA_PIPE_COUNT];   // cycles that each pipe worked
    uint64_t flag_at[PTOISA_PIPE_COUNT][PTOISA_PIPE_COUNT][PTOISA_EVENT_COUNT];
    uint8_t flags[PTOISA_PIPE_COUNT][PTOISA_PIPE_COUNT];  // bit n: event n is set
    uint8_t is_filled;  // bit p: pipe p has not run empty since its last instruction
};

// -- names ----------------------------------------------------------------------------------------

PTOISA_FN const char *ptoisa_op_name(ptoisa_op op) {
    switch (op) {
#define PTOISA_OP_NAME(name, unit)                                                                 \
    case PTOISA_##name: return #name;
        PTOISA_OPS(PTOISA_OP_NAME)
#undef PTOISA_OP_NAME
    case PTOISA_NOP:
    case PTOISA_OP_COUNT: break;
    }
    return "no instruction";
}

PTOISA_FN const char *ptoisa_dtype_name(ptoisa_dtype dtype) {
    switch (dtype) {
    case PTOISA_F16: return "f16";
    case PTOISA_BF16: return "bf16";
    case PTOISA_F32: return "f32";
    case PTOISA_F64: return "f64";
    case PTOISA_I8: return "i8";
    case PTOISA_I16: return "i16";
    case PTOISA_I32: return "i32";
    case PTOISA_I64: return "i64";
    case PTOISA_U8: return "u8";
    case PTOISA_U16: return "u16";
    case PTOISA_U32: return "u32";
    case PTOISA_U64: return "u64";
    case PTOISA_BOOL: return "bool";
    case PTOISA_DTYPE_NONE:
    case PTOISA_DTYPE_COUNT: break;
    }
    return "none";
}

PTOISA_FN const char *ptoisa_memory_name(ptoisa_memory memory) {
    switch (memory) {
    case PTOISA_VEC: return "UB";
    case PTOISA_MAT: return "L1";
    case PTOISA_LEFT: return "L0A";
    case PTOISA_RIGHT: return "L0B";
    case PTOISA_ACC: return "L0C";
    case PTOISA_BIAS: return "bias table";
    case PTOISA_SCALING: return "fixpipe buffer";
    case PTOISA_MEMORY_COUNT: break;
    }
    return "no memory";
}

PTOISA_FN const char *ptoisa_pipe_name(ptoisa_pipe pipe) {
    switch (pipe) {
    case PTOISA_PIPE_S: return "S";
    case PTOISA_PIPE_V: return "V";
    case PTOISA_PIPE_M: return "M";
    case PTOISA_PIPE_MTE1: return "MTE1";
    case PTOISA_PIPE_MTE2: return "MTE2";
    case PTOISA_PIPE_MTE3: return "MTE3";
    case PTOISA_PIPE_FIX: return "FIX";
    case PTOISA_PIPE_ALL: return "ALL";
    }
    return "no pipe";
}

#endif
