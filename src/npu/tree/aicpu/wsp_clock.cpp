// See wsp_clock.h. All calls are passed on to the library's simulated time.

#include "wsp_clock.h"

#if WSP_HAS_CLOCK

#include <cinttypes>

namespace wsp {

Clock::~Clock() {
    pwsp_timeline_free(&time_);
}

bool Clock::begin(const pwsp_timed &timed, const pwsp_bound_tensor *tensors) {
    const pwsp_memory memory = pwsp_memory_make(nullptr, nullptr);
    pwsp_timeline_free(&time_);
    timed_ = timed;
    run_counts_.assign(timed.pipeline_count, 0);
    sums_ = PipelineSums();
    depth_ = 1;
    if (!pwsp_timeline_init(&time_, &memory, &timed_)) {
        pwsp_sim_no_memory(&time_.sim);
        return false;
    }
    pwsp_sim_begin(&time_.sim);
    pwsp_timeline_bind(&time_, tensors);
    PTOWSP_ASSERT(!pwsp_timeline_needs_count(&time_));
    is_begun_ = true;
    return pwsp_timeline_begin(&time_, false, 0);
}

bool Clock::mark(const pwsp_mark &mark) {
    const bool begins = mark.kind == PWSP_MARK_PARALLEL || mark.kind == PWSP_MARK_SEQUENTIAL;
    if (!good()) {
        return false;
    }
    if (begins && depth_ == timed_.scope_depth) {
        return pwsp_sim_fail(&time_.sim, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             "clock: more than %" PRIu32 " scopes in one another", depth_);
    }
    if (mark.kind == PWSP_MARK_END && depth_ == 1) {
        return pwsp_sim_fail(&time_.sim, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                             "clock: no scope is open");
    }
    depth_ += begins;
    depth_ -= mark.kind == PWSP_MARK_END;
    return pwsp_timeline_mark(&time_, &mark);
}

bool Clock::task(const pwsp_arrival &task) {
    return good() && pwsp_timeline_task(&time_, &task);
}

bool Clock::slot_load(const pwsp_tile_at &element) {
    return good() && pwsp_timeline_slot_load(&time_, &element);
}

bool Clock::pipeline(const pwsp_pipeline_arrival &pipeline, const PipelineSums &sums) {
    if (!good()) {
        return false;
    }
    PTOWSP_ASSERT(pipeline.pipeline < timed_.pipeline_count);
    sums_.busy_cycles = pwsp_sum_u64(sums_.busy_cycles, sums.busy_cycles);
    sums_.channel_cycles = pwsp_sum_u64(sums_.channel_cycles, sums.channel_cycles);
    sums_.slot_load_count += sums.slot_load_count;
    pwsp_pipeline_arrival arrival = pipeline;
    arrival.first_task = time_.sim.task_count;
    arrival.end_task = PTOWSP_NO_INDEX;
    arrival.run = ++run_counts_[pipeline.pipeline];
    time_.sim.task_count += pipeline.task_count;
    return pwsp_timeline_pipeline(&time_, &arrival);
}

bool Clock::end() {
    if (!is_begun_) {
        return false;
    }
    if (good()) {
        pwsp_timeline_end(&time_);
    }
    is_begun_ = false;
    pwsp_sim_end(&time_.sim);
    ptowsp_run_stats *stats = &time_.sim.stats;
    stats->busy_cycles = pwsp_sum_u64(stats->busy_cycles, sums_.busy_cycles);
    stats->stall_cycles[PTOWSP_STALL_CHANNEL] = sums_.channel_cycles;
    stats->slot_load_count += sums_.slot_load_count;
    stats->memory_bytes = sizeof *this + pwsp_timeline_bytes(&time_);
    return time_.sim.status == PTOWSP_OK;
}

}  // namespace wsp

#endif
