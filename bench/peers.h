// What stands beside ptowsp in the group peers, if the benchmark has been built with it.

#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// StarPU on so many workers: a task for each of a shape, built and run. False: it does not start.
bool peer_starpu_begin(unsigned lane_count);
void peer_starpu_run(const graph_shape *shape);
void peer_starpu_end(void);

// The graph that is simulated: task i of PEER_LAYERS layers of PEER_WIDTH tasks.
enum { PEER_LANES = 24, PEER_LAYERS = 4, PEER_WIDTH = 1024, PEER_INPUTS = 4 };
#define PEER_STEP(k)   (2 * (k) + 3)
#define PEER_OFFSET(k) (257 * (k))

static inline uint64_t peer_dag_cycles(uint32_t i) {
    return 100 + (i * 2654435761u >> 20) % 1024;
}

// Input k of a task, of the layer before.
static inline uint32_t peer_dag_before(uint32_t i, uint32_t k) {
    const uint32_t layer = i / PEER_WIDTH, at = i % PEER_WIDTH;
    return (layer - 1) * PEER_WIDTH + (at * PEER_STEP(k) + layer + PEER_OFFSET(k)) % PEER_WIDTH;
}

// SimGrid on a platform of PEER_LANES hosts. Returns the makespan, in cycles.
uint64_t peer_simgrid_run(void);

#ifdef __cplusplus
}
#endif

#endif
