// See wsp_clock.h. All calls are passed on to the library's simulated time.
//
// One thing differs from the library's own walk of a program. Tasks may begin to start only when
// many have been issued. If issue takes time, time in order must know that moment beforehand. The
// library walks the program once more to count. A tree runs only once, so all calls are held back
// until enough tasks have come, or the end.
//
//      task, scope_begin, ...  ->  [held back, until the gate is known]  ->  time

#include "wsp_clock.h"

#if WSP_HAS_CLOCK

#include <cinttypes>

namespace wsp {

// -- holding back ---------------------------------------------------------------------------------

// Copies the data behind an arrival's pointers.
bool Clock::hold(Held::Kind kind, const pwsp_arrival &arrival) {
    Held held = Held();
    held.kind = kind;
    held.at.whole = arrival;
    held.tiles.assign(arrival.tiles, arrival.tiles + arrival.tile_count);
    held.after.assign(arrival.after, arrival.after + arrival.after_count);
    held.before.assign(arrival.before, arrival.before + arrival.before_count);
    held_.push_back(std::move(held));
    return true;
}

bool Clock::give(Held &held) {
    pwsp_arrival *whole = &held.at.whole;
    whole->tiles = held.tiles.data();
    whole->after = held.after.data();
    whole->before = held.before.data();
    switch (held.kind) {
    case Held::SCOPE_BEGIN: return pwsp_timeline_scope_begin(&time_, held.is_parallel);
    case Held::SCOPE_END: return pwsp_timeline_scope_end(&time_);
    case Held::RESET: return pwsp_timeline_reset(&time_, whole->after, whole->after_count);
    case Held::TASK: return pwsp_timeline_task(&time_, whole);
    case Held::SLOT_LOAD: return pwsp_timeline_slot_load(&time_, whole->tiles);
    case Held::PIPELINE: break;
    }
    return give_pipeline(held.at);
}

// The gate is known: passes on all calls that were held back.
bool Clock::release() {
    is_held_ = false;
    bool is_fine = pwsp_sim_set_gate(&time_.sim, held_task_count_);
    for (size_t i = 0; is_fine && i < held_.size(); i++) {
        is_fine = give(held_[i]);
    }
    return is_fine;
}

// -- telling --------------------------------------------------------------------------------------

Clock::~Clock() {
    pwsp_timeline_free(&time_);
}

bool Clock::begin(const pwsp_timed &timed, const pwsp_bound_tensor *tensors) {
    const pwsp_memory memory = pwsp_memory_make(nullptr, nullptr);
    pwsp_timeline_free(&time_);
    timed_ = timed;
    held_.clear();
    held_task_count_ = 0;
    run_counts_.assign(timed.pipeline_count, 0);
    sums_ = PipelineSums();
    depth_ = 1;
    if (!pwsp_timeline_init(&time_, &memory, &timed_)) {
        pwsp_sim_no_memory(&time_.sim);
        return false;
    }
    pwsp_timeline_bind(&time_, tensors);
    is_held_ = pwsp_timeline_needs_count(&time_);
    is_begun_ = true;
    return pwsp_timeline_begin(&time_, false, 0);
}

bool Clock::scope_begin(bool is_parallel) {
    if (!good()) {
        return false;
    }
    if (depth_ == timed_.scope_depth) {
        return pwsp_sim_fail(&time_.sim, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             "clock: more than %" PRIu32 " scopes in one another", depth_);
    }
    depth_++;
    if (!is_held_) {
        return pwsp_timeline_scope_begin(&time_, is_parallel);
    }
    hold(Held::SCOPE_BEGIN, pwsp_arrival());
    held_.back().is_parallel = is_parallel;
    return true;
}

bool Clock::scope_end() {
    if (!good()) {
        return false;
    }
    if (depth_ == 1) {
        return pwsp_sim_fail(&time_.sim, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                             "clock: no scope is open");
    }
    depth_--;
    return is_held_ ? hold(Held::SCOPE_END, pwsp_arrival()) : pwsp_timeline_scope_end(&time_);
}

bool Clock::reset(const uint32_t *edges, uint32_t count) {
    if (!good() || !is_held_) {
        return good() && pwsp_timeline_reset(&time_, edges, count);
    }
    pwsp_arrival arrival = pwsp_arrival();
    arrival.after = edges;
    arrival.after_count = count;
    return hold(Held::RESET, arrival);
}

bool Clock::task(const pwsp_arrival &task) {
    if (!good() || !is_held_) {
        return good() && pwsp_timeline_task(&time_, &task);
    }
    hold(Held::TASK, task);
    return ++held_task_count_ < timed_.schedule.start_threshold || release();
}

bool Clock::slot_load(const pwsp_tile_at &element) {
    if (!good() || !is_held_) {
        return good() && pwsp_timeline_slot_load(&time_, &element);
    }
    pwsp_arrival arrival = pwsp_arrival();
    arrival.tiles = &element;
    arrival.tile_count = 1;
    return hold(Held::SLOT_LOAD, arrival);
}

bool Clock::give_pipeline(pwsp_pipeline_arrival arrival) {
    arrival.first_task = time_.sim.task_count;
    arrival.end_task = PTOWSP_NO_INDEX;
    arrival.run = ++run_counts_[arrival.pipeline];
    time_.sim.task_count += arrival.task_count;
    return pwsp_timeline_pipeline(&time_, &arrival);
}

bool Clock::pipeline(const pwsp_pipeline_arrival &pipeline, const PipelineSums &sums) {
    if (!good()) {
        return false;
    }
    PTOWSP_ASSERT(pipeline.pipeline < timed_.pipeline_count);
    sums_.busy_cycles = pwsp_sum_u64(sums_.busy_cycles, sums.busy_cycles);
    sums_.channel_cycles = pwsp_sum_u64(sums_.channel_cycles, sums.channel_cycles);
    sums_.slot_load_count += sums.slot_load_count;
    if (!is_held_) {
        return give_pipeline(pipeline);
    }
    hold(Held::PIPELINE, pipeline.whole);
    held_.back().at.pipeline = pipeline.pipeline;
    held_.back().at.task_count = pipeline.task_count;
    return true;
}

bool Clock::end() {
    if (!is_begun_) {
        return false;
    }
    if (good() && is_held_) {
        release();
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
