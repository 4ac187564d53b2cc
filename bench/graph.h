// The shapes of graphs that the benchmark builds and runs, for ptowsp and for what stands beside it.

#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Task i comes after the tasks before[first[i]] .. before[first[i + 1] - 1], all lower than i. A
// task spends `spin` rounds of work.
typedef struct graph_shape {
    const char *name;
    uint32_t task_count, edge_count;
    uint32_t *first, *before;
    uint32_t spin;
} graph_shape;

// The work of a task.
static inline void graph_spin(uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("");
    }
}

// Shapes of 65,536 tasks: memory of calloc. Random: layers of 1,024, four inputs a task. Wavefront: side x
// side tasks, each after those above it and to its left.
graph_shape graph_shape_chain(void);
graph_shape graph_shape_independent(void);
graph_shape graph_shape_random(void);
graph_shape graph_shape_wavefront(uint32_t side);
void graph_shape_free(graph_shape *shape);

// Bare limits: graph_limit.c. Counting edges, on one thread or two; scheduling on two; building.
typedef struct graph_limit graph_limit;
graph_limit *graph_limit_begin(const graph_shape *shape);
void graph_limit_count(graph_limit *limit);
void graph_limit_count_on_two(graph_limit *limit);
void graph_limit_schedule(graph_limit *limit);
void graph_limit_end(graph_limit *limit);
void graph_limit_build(const graph_shape *shape);

// A shape as OpenMP's tasks with dependencies, built and run, with a byte of marks for each task.
void graph_openmp_run(const graph_shape *shape, char *marks, unsigned lane_count);

// oneTBB's flow graph, if the benchmark has been built with it. NULL otherwise.
typedef struct graph_tbb graph_tbb;
graph_tbb *graph_tbb_build(const graph_shape *shape, unsigned lane_count);
void graph_tbb_run(graph_tbb *graph);
void graph_tbb_destroy(graph_tbb *graph);

// fib(n) by oneTBB's task_group, a group for each call above 1.
uint64_t graph_tbb_fib(uint32_t n, unsigned lane_count);

#ifdef __cplusplus
}
#endif

#endif
