// The traffic of a task with memory that lanes share: parts that run one after another.
//
// A part takes its cycles, or longer where its bytes do: at a share of s bytes a cycle it takes
// max(cycles, bytes / s). kernel/demand.c cuts a tile kernel into parts.
//
// A task may read a tile several times, in passes: the bytes of all passes but the first are `again`.

#ifndef PWSP_DEMAND_H
#define PWSP_DEMAND_H

#include "../base/base.h"

#define PWSP_DEMAND_PART_MAX 6

typedef struct pwsp_demand_part {
    uint64_t cycles, bytes;
} pwsp_demand_part;

typedef struct pwsp_demand {
    uint64_t bytes;  // of all parts
    uint64_t again;  // of these, read again from one tile
    uint32_t again_tile, passes;
    uint32_t part_count;
    pwsp_demand_part parts[PWSP_DEMAND_PART_MAX];  // their cycles sum to the cycles of the task
} pwsp_demand;

#endif
