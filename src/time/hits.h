// Which bytes of tasks hit L2, where lanes share memory.
//
// A task is issued, which keeps its tiles; begins, together with all others that begin at the same time;
// and ends.

#ifndef PWSP_HITS_H
#define PWSP_HITS_H

#include "../runtime/arrival.h"

// A region of a tensor.
typedef struct pwsp_hits_cell {
    uint64_t size;           // bytes
    uint64_t moved;          // bytes, of the present pass
    uint64_t begun, before;  // bytes that had been missed when this pass began, and the one before
    uint64_t flying;         // bytes of tiles of running tasks
    uint64_t asked, missed;  // by the tasks that begin now
    uint64_t round;          // in which that is
    bool is_later;           // not the first pass
    bool is_decided;         // missed is known
} pwsp_hits_cell;

typedef struct pwsp_hits_tensor {
    pwsp_hits_cell *cells;  // kept from run to run, and cut again in each
    uint64_t cell_capacity;
    uint64_t size;       // bytes
    uint64_t unique;     // bytes that running tasks have tiles of
    int64_t rows, cols;  // of all leading indices, one matrix below the other
    int64_t cell_rows, cell_cols;
    uint32_t cells_down, cells_across, element_size;  // no cells down: it has not been cut
} pwsp_hits_tensor;

// Part of a tensor, in rows of all leading indices. Most are within a cell, which is found once.
typedef struct pwsp_hits_tile {
    uint32_t tensor, rows, cols;
    bool is_read;
    int64_t row, col;
    pwsp_hits_cell *cell;  // NULL: it is in several, or beyond the tensor
} pwsp_hits_tile;

typedef struct pwsp_hits {
    pwsp_memory memory;
    uint64_t l2_bytes;
    pwsp_hits_tensor *tensors;
    uint32_t tensor_count;
    pwsp_hits_tile *tiles;  // by node, stride each
    uint32_t *tile_counts;  // by node
    uint64_t tile_capacity, node_capacity;
    uint32_t stride;
    uint64_t missed_bytes;  // of all tasks that have begun
    uint64_t round;         // of tasks that begin together
} pwsp_hits;

// False when memory is out.
PWSP_INTERNAL bool pwsp_hits_init(pwsp_hits *hits, const pwsp_memory *memory,
                                  const pwsp_timed *timed);
PWSP_INTERNAL void pwsp_hits_begin(pwsp_hits *hits);

// Keeps the tiles of a task until it ends. False when memory is out.
PWSP_INTERNAL bool pwsp_hits_issue(pwsp_hits *hits, uint32_t task, const pwsp_arrival *arrival,
                                   const pwsp_bound_tensor *bound);

// Tasks begin together: first all of them ask, then each takes the bytes that it misses.
PWSP_INTERNAL void pwsp_hits_next_round(pwsp_hits *hits);
PWSP_INTERNAL void pwsp_hits_ask(pwsp_hits *hits, uint32_t task);
PWSP_INTERNAL uint64_t pwsp_hits_take(pwsp_hits *hits, uint32_t task, const pwsp_demand *demand);

PWSP_INTERNAL void pwsp_hits_end(pwsp_hits *hits, uint32_t task);

#endif
