// One front over both kinds of simulated time: see timeline.h.

#include "timeline.h"

PWSP_INTERNAL bool pwsp_timeline_init(pwsp_timeline *time, const pwsp_memory *memory,
                                      const pwsp_timed *timed) {
    memset(time, 0, sizeof *time);
    const pwsp_memory own = pwsp_blocks_begin(&time->blocks, memory);
    time->is_events =
        pwsp_schedule_is_events(&timed->schedule) || pwsp_schedule_has_events(&timed->schedule);
    return pwsp_sim_init(&time->sim, &own, timed) &&
           (time->is_events ? pwsp_events_init(&time->events, &time->sim)
                            : pwsp_lanes_init(&time->lanes, &time->sim));
}

PWSP_INTERNAL void pwsp_timeline_free(pwsp_timeline *time) {
    pwsp_blocks_free(&time->blocks);
}

PWSP_INTERNAL size_t pwsp_timeline_bytes(const pwsp_timeline *time) {
    return time->blocks.bytes;
}

PWSP_INTERNAL bool pwsp_timeline_needs_count(const pwsp_timeline *time) {
    return !time->is_events && pwsp_sim_gate_needs_count(&time->sim);
}

PWSP_INTERNAL void pwsp_timeline_bind(pwsp_timeline *time, const pwsp_bound_tensor *bound) {
    pwsp_deps_begin(&time->sim.deps, time->sim.timed, bound);
}

PWSP_INTERNAL bool pwsp_timeline_begin(pwsp_timeline *time, bool has_records, uint64_t task_count) {
    time->sim.has_records = has_records;
    time->sim.deps.has_tasks = has_records || time->sim.deps.is_counted;  // causes in records
    if (pwsp_timeline_needs_count(time) && !pwsp_sim_set_gate(&time->sim, task_count)) {
        return false;
    }
    if (time->is_events) {
        pwsp_events_begin(&time->events);
    } else {
        pwsp_lanes_begin(&time->lanes);
    }
    return true;
}

PWSP_INTERNAL bool pwsp_timeline_mark(pwsp_timeline *time, const pwsp_mark *mark) {
    if (mark->kind == PWSP_MARK_RELEASE) {
        pwsp_rings_release(&time->sim.rings, mark->id);
        return true;
    }
    pwsp_sim_tell(&time->sim, mark);
    pwsp_precedence_mark(&time->sim.order, mark);
    // Errors that joins of the event simulation have run into.
    return !time->is_events || pwsp_events_check(&time->events);
}

PWSP_INTERNAL bool pwsp_timeline_slot_load(pwsp_timeline *time, const pwsp_tile_at *tile) {
    time->sim.stats.slot_load_count++;
    return time->is_events ? pwsp_events_slot_load(&time->events, tile)
                           : pwsp_lanes_slot_load(&time->lanes, tile);
}

PWSP_INTERNAL bool pwsp_timeline_pipeline(pwsp_timeline *time,
                                          const pwsp_pipeline_arrival *arrival) {
    return time->is_events ? pwsp_events_pipeline(&time->events, arrival)
                           : pwsp_lanes_pipeline(&time->lanes, arrival);
}

PWSP_INTERNAL bool pwsp_timeline_end(pwsp_timeline *time) {
    return !time->is_events || pwsp_events_end(&time->events);
}
