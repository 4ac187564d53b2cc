// What the files of the benchmark share: measuring and reporting.

#ifndef BENCH_H
#define BENCH_H

#include "ptowsp.h"

#define ROUNDS 41  // odd: the median is one of them

typedef void (*bench_fn)(void *user);

typedef struct bench_row {
    const char *name;
    const char *unit;
    double value;        // of ptowsp, in `unit`
    const char *other;   // what it is compared with
    double other_value;  // in `unit`
    double ratio;        // median of value / other_value of each round
    const char *budget;  // in words
    bool has_budget, is_met;
} bench_row;

// What a row cannot be faster than: a loop that does only the unavoidable work, in the same run.
typedef struct bench_limit {
    const char *name;  // NULL: the row has none
    double value;      // in the row's unit
    double share;      // of the limit that is reached: the median of its time / ours
} bench_limit;

#define BENCH_LIMIT_SHOWN 0.95  // of it: then little is left to a row that misses its budget

typedef struct bench_times {
    double own_ns, other_ns;
    double ratio;  // own / other
} bench_times;

void report(bench_row row);
void report_beside_limit(bench_row row, bench_limit limit);

// -- rows as tables -------------------------------------------------------------------------------

typedef enum bench_budget {
    BUDGET_NONE,
    BUDGET_VALUE,   // at most `most` in its unit; of rates, at least
    BUDGET_BESIDE,  // at most `most` times what it is compared with takes
    BUDGET_LIMIT    // at most `most` times its limit
} bench_budget;

// A row to be: three functions of one argument, and how they are measured and judged. `limit` may be
// `other`, or NULL.
typedef struct bench_case {
    const char *name, *unit;  // ns, us, ms with any suffix: a time; else work per ns
    double work;              // of a call
    uint32_t repeat, rounds;
    bench_fn own;
    const char *other_name;
    bench_fn other;
    const char *limit_name;
    bench_fn limit;
    bench_budget budget;
    double most;
} bench_case;

// Measures and reports a row.
void bench_measure(const bench_case *of, void *user);

// Nanoseconds of a unit of time; 0 of a rate.
double bench_unit_ns(const char *unit);

// -- instructions: count.c ------------------------------------------------------------------------

// Rows are counted, not timed: a part of the work does.
extern bool is_counting;

// Opens perf's counter of instructions. False if there is none; then counts are 0.
bool count_open(void);

// The instructions of one call.
double count_instructions(bench_fn fn, void *user);

// Calls a function; callgrind counts in it.
void bench_counted(bench_fn fn, void *user);

// What makes instructions of one call, which took own_ns, instructions per unit of a row.
double count_scale(const bench_row *row, double own_ns);

// -- measuring ------------------------------------------------------------------------------------

// Medians of two functions that take turns, and of their ratio in each round.
bench_times measure(bench_fn own, bench_fn other, void *user, uint32_t repeat, uint32_t rounds);

// Ends a benchmark whose subject fails: a failure would look very fast.
void require(bool condition, const char *what);

// Memory, zeroed, aligned to 64 bytes; ends the benchmark when there is none. Freed by free().
void *bench_allocate(size_t size);

// Keeps a result, and the memory it is computed from, alive for the compiler.
void bench_keep(const void *memory);

// Plans, dispatch and merging, beside memcpy and plain loops.
void bench_plan(ptowsp_context *context);
void bench_dispatch(ptowsp_context *context);
void bench_merge(void);

// Attention plans beside other ways to balance a step: times and quality.
void bench_attention_plan(void);

// MoE plans: sorting, units and placement beside plain C.
void bench_moe(ptowsp_context *context);
void bench_moe_kernel(void);

// Prefix trees and plans; a decode step by a tree and flat.
void bench_prefix(ptowsp_context *context);

// Running attention plans with empty kernels, beside dispatch: ns per unit.
void bench_attention_run(void);

// Decode attention beside one read of the cache, and prefill beside bare multiply-adds.
void bench_decode(ptowsp_context *context, uint64_t kv_mib);
void bench_prefill(void);

// Programs in simulated time: ns per task, and per operation of an expression.
void bench_time(void);

// Records of tasks, and exports: ns and bytes per task.
void bench_see(void);

// Tuning records: loading, looking up, adding.
void bench_tune(ptowsp_context *context);

// Pipelines in simulated time: ns per operation of a channel.
void bench_pipeline(void);

// Tile kernels: instructions beside plain loops and bare limits, kernels as tasks, and making one.
void bench_insns(void);
void bench_kernel(void);

// Matrix products beside OpenBLAS, if it is there.
void bench_blas(void);

// Graphs run and simulated beside oneTBB, OpenMP, StarPU and SimGrid, as far as they are there, and
// the rows of bench_blas.
void bench_peers(void);

// Programs on threads, beside the same without.
void bench_lanes(void);

// Task graphs on threads: building, running empty tasks, and efficiency.
void bench_graph(void);

// The same over powers of ten, as a table and, unless svg is NULL, as a picture.
void bench_scale(const char *svg);

// Runs of all kinds for some minutes: memory at the start and at the end. Fails if it grows.
void bench_growth(double minutes);

// Emitting a program as a source tree.
void bench_emit(void);

#endif
