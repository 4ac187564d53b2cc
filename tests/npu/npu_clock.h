// The clock of emitted trees (wsp_clock.h) for tests in C, which have included the library's headers:
// it takes the library's own structs. npu_clock.cpp is behind it.

#ifndef NPU_CLOCK_H
#define NPU_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct npu_clock npu_clock;

npu_clock *npu_clock_create(void);
void npu_clock_destroy(npu_clock *clock);
// What these two point to lives as long as the run.
bool npu_clock_begin(npu_clock *clock, const pwsp_timed *timed, const pwsp_bound_tensor *tensors);
bool npu_clock_mark(npu_clock *clock, const pwsp_mark *mark);
bool npu_clock_do_task(npu_clock *clock, const pwsp_arrival *task);
bool npu_clock_slot_load(npu_clock *clock, const pwsp_tile_at *element);
// Of its arrival, the task as a whole, the pipeline and the number of its tasks.
bool npu_clock_do_pipeline(npu_clock *clock, const pwsp_pipeline_arrival *pipeline,
                           uint64_t busy_cycles, uint64_t channel_cycles, uint64_t slot_load_count);
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
