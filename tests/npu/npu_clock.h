// The clock of emitted trees (wsp_clock.h) as tests in C see it: the same structs, member by member.
// npu_clock.cpp is what is behind it.

#ifndef NPU_CLOCK_H
#define NPU_CLOCK_H

#include "ptowsp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clock_tensor {
    uint64_t base;
    uint32_t element_size;
    int64_t lead_shape[PTOWSP_TENSOR_RANK_MAX - 2];
    int64_t lead_strides[PTOWSP_TENSOR_RANK_MAX - 2];
    int64_t rows, cols, row_stride, col_stride;
    bool is_written, is_loaded;
} clock_tensor;

typedef struct clock_program {
    const ptowsp_schedule *schedule;
    uint32_t lane_count;
    bool is_priority_signed, has_streams;
    uint32_t edge_count, scope_depth, pipeline_count;
} clock_program;

typedef struct clock_tile {
    uint32_t tensor, rows, cols;
    int64_t lead, row, col;
    bool is_read, is_written, is_loaded;
} clock_tile;

typedef struct clock_task {
    uint64_t cycles, dispatch_key, priority_key, stream_key;
    ptowsp_unit unit;
    uint32_t node;
    const clock_tile *tiles;
    uint32_t tile_count;
    const uint32_t *after;
    uint32_t after_count;
    const uint32_t *before;
    uint32_t before_count;
} clock_task;

typedef struct clock_pipeline {
    clock_task whole;
    uint32_t pipeline;
    uint64_t task_count, busy_cycles, channel_cycles, slot_load_count;
} clock_pipeline;

typedef struct npu_clock npu_clock;

npu_clock *npu_clock_create(void);
void npu_clock_destroy(npu_clock *clock);
bool npu_clock_begin(npu_clock *clock, const clock_program *program, const clock_tensor *tensors,
                     uint32_t tensor_count);
bool npu_clock_scope_begin(npu_clock *clock, bool is_parallel);
bool npu_clock_scope_end(npu_clock *clock);
bool npu_clock_reset(npu_clock *clock, const uint32_t *edges, uint32_t count);
bool npu_clock_do_task(npu_clock *clock, const clock_task *task);
bool npu_clock_slot_load(npu_clock *clock, const clock_tile *element);
bool npu_clock_do_pipeline(npu_clock *clock, const clock_pipeline *pipeline);
bool npu_clock_end(npu_clock *clock);
ptowsp_run_stats npu_clock_stats(const npu_clock *clock);
const ptowsp_lane_stats *npu_clock_lanes(const npu_clock *clock);
uint64_t npu_clock_pipeline_start(const npu_clock *clock, uint32_t pipeline);
ptowsp_status npu_clock_status(const npu_clock *clock);
const char *npu_clock_error(const npu_clock *clock);

#ifdef __cplusplus
}
#endif

#endif
