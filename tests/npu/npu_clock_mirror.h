// Executes a program and tells the clock of emitted trees all that happens, as a tree would: the
// library's walk of the program, with each of its events told twice, to the library's own time and
// to the clock. Both have to say the same, and so has an execution without any of this.

#ifndef NPU_CLOCK_MIRROR_H
#define NPU_CLOCK_MIRROR_H

#include "src/exec/run_walk.c"

#include "npu_clock.h"

typedef struct mirror {
    npu_clock *clock;
    const ptowsp_run_options *options;
    ptowsp_run *run;
    bool is_walked;     // the walk has begun
    bool is_sim_fault;  // what has failed is time
} mirror;

// -- walking --------------------------------------------------------------------------------------

// The run's own walk, which batches nothing here, hears of each event, too.
static inline bool mirror_on_task(void *user) {
    mirror *m = (mirror *)user;
    pwsp_walk *walk = &m->run->walk;
    pwsp_arrival arrival;
    arrival.cycles = 0;
    arrival.demand = NULL;
    m->is_sim_fault = false;
    if (!pwsp_walk_keys(&walk->expander, &arrival) ||
        !pwsp_walk_kernel(walk, walk->is_time_only, &arrival.cycles)) {
        return false;
    }
    pwsp_walk_arrival(&walk->expander, &arrival);
    npu_clock_do_task(m->clock, &arrival);
    m->is_sim_fault = true;
    return pwsp_timeline_task(&m->run->time, &arrival);
}

static inline bool mirror_on_mark(void *user, const pwsp_mark *mark) {
    mirror *m = (mirror *)user;
    m->is_sim_fault = true;
    if (mark->kind != PWSP_MARK_RELEASE) {
        npu_clock_mark(m->clock, mark);
    }
    return pwsp_run_mark(m->run, mark);
}

static inline bool mirror_on_load(void *user) {
    mirror *m = (mirror *)user;
    m->is_sim_fault = true;
    npu_clock_slot_load(m->clock, &m->run->walk.expander.load_at);
    return pwsp_run_load(m->run);
}

// Cycles of all processes so far: busy, and at channels.
static inline void mirror_count(const ptowsp_run *run, uint64_t *busy, uint64_t *waited) {
    *busy = *waited = 0;
    for (uint32_t i = 0; i < run->pipes.pipelines.process_count; i++) {
        const ptowsp_process_stats *process = &run->pipes.pipelines.process_stats[i];
        *busy = pwsp_sum_u64(*busy, process->busy_cycles);
        *waited = pwsp_sum_u64(*waited, process->full_cycles);
        *waited = pwsp_sum_u64(*waited, process->empty_cycles);
    }
}

static inline bool mirror_on_pipeline(void *user) {
    mirror *m = (mirror *)user;
    ptowsp_run *run = m->run;
    const uint64_t first_task = run->time.sim.task_count;
    const uint64_t loads = run->pipes.pipelines.slot_load_count;
    uint64_t busy, waited, busy_after, waited_after, cycles;
    pwsp_pipeline_arrival arrival;
    mirror_count(run, &busy, &waited);
    const bool is_good = pwsp_pipelines_run(&run->pipes.pipelines, &cycles);
    mirror_count(run, &busy_after, &waited_after);
    pwsp_pipes_arrival(&run->pipes, run->walk.expander.pipeline, first_task, cycles, &arrival);
    npu_clock_do_pipeline(m->clock, &arrival, busy_after - busy, waited_after - waited,
                          run->pipes.pipelines.slot_load_count - loads);
    const bool is_issued = pwsp_timeline_pipeline(&run->time, &arrival);
    if (!is_good && is_issued) {
        pwsp_timeline_end(&run->time);
    }
    m->is_sim_fault = is_good;
    return is_good && is_issued;
}

static inline bool mirror_on_end(void *user) {
    mirror *m = (mirror *)user;
    m->is_sim_fault = true;
    return pwsp_run_end(m->run);
}

static inline ptowsp_status mirror_walk(void *user, ptowsp_run *run) {
    static const pwsp_sink sink = {mirror_on_task, mirror_on_mark, mirror_on_load,
                                   mirror_on_pipeline, mirror_on_end};
    mirror *m = (mirror *)user;
    pwsp_event event = PWSP_EVENT_NONE;
    m->run = run;
    m->is_walked = true;
    if (!pwsp_pipes_begin(&run->pipes, m->options, NULL)) {  // processes are run as without lanes
        return pwsp_run_fail_walk(run);
    }
    pwsp_timed timed = run->timed;
    timed.tensor_scopes = NULL;  // trees have no rings of bytes
    assert_true(npu_clock_begin(m->clock, &timed, run->bindings.effective));
    pwsp_walk_begin(&run->walk, false);
    pwsp_run_set_mode(run, run->walk.is_time_only, false);
    if (pwsp_stream_run(&run->walk, &sink, m, &event)) {
        return PTOWSP_OK;
    }
    m->is_sim_fault = m->is_sim_fault && event != PWSP_EVENT_ERROR;
    return m->is_sim_fault ? pwsp_run_fail_time(run) : pwsp_run_fail_walk(run);
}

// -- comparing ------------------------------------------------------------------------------------

// Names what differs, NULL if nothing does.
static inline const char *mirror_difference(const ptowsp_run_stats *a, const ptowsp_run_stats *b) {
    for (int i = 0; i < PTOWSP_STALL_COUNT; i++) {
        if (a->stall_cycles[i] != b->stall_cycles[i]) {
            return ptowsp_stall_name((ptowsp_stall)i);
        }
    }
    return a->makespan_cycles != b->makespan_cycles               ? "makespan_cycles"
           : a->task_count != b->task_count                       ? "task_count"
           : a->lane_count != b->lane_count                       ? "lane_count"
           : a->busy_cycles != b->busy_cycles                     ? "busy_cycles"
           : a->in_flight_max != b->in_flight_max                 ? "in_flight_max"
           : a->window_overflow_count != b->window_overflow_count ? "window_overflow_count"
           : a->slot_load_count != b->slot_load_count             ? "slot_load_count"
           : a->region_max != b->region_max                       ? "region_max"
                                                                  : NULL;
}

static inline const char *mirror_compare(const npu_clock *clock, const ptowsp_run *run) {
    ptowsp_run_stats stats = npu_clock_stats(clock);
    const char *what = mirror_difference(&stats, &run->time.sim.stats);
    for (uint32_t i = 0; !what && i < run->program->lane_count; i++) {
        const ptowsp_lane_stats *a = &npu_clock_lanes(clock)[i], *b = &run->time.sim.lane_stats[i];
        what = a->busy_cycles != b->busy_cycles   ? "busy_cycles of a lane"
               : a->idle_cycles != b->idle_cycles ? "idle_cycles of a lane"
               : a->task_count != b->task_count   ? "task_count of a lane"
               : a->end_cycles != b->end_cycles   ? "end_cycles of a lane"
                                                  : NULL;
    }
    for (uint32_t i = 0; !what && i < run->program->pipelines.count; i++) {
        bool is_same =
            npu_clock_pipeline_start(clock, i) == run->pipes.pipelines.stats[i].start_cycles;
        what = is_same ? NULL : "start of a pipeline";
    }
    return what;
}

// Executes the run, whose data is fresh, and returns NULL if the clock agrees with it and with what
// an execution has left that was not mirrored; else what they differ in.
static inline const char *mirror_check(ptowsp_run *run, const ptowsp_run_options *options,
                                       ptowsp_status expected_status,
                                       const ptowsp_run_stats *expected) {
    mirror m = {npu_clock_create(), options, NULL, false, false};
    const char *what = NULL;
    if (!pwsp_run_claim(run, options)) {
        return "a run that is free";
    }
    ptowsp_status status = pwsp_run_execute_by(run, options, 1, mirror_walk, &m);
    pwsp_run_leave(run);
    if (status != expected_status) {
        what = "status of an execution that was not mirrored";
    } else if (m.is_walked) {
        bool is_fine = npu_clock_end(m.clock);
        bool has_failed = status != PTOWSP_OK && m.is_sim_fault;
        what = mirror_difference(&run->time.sim.stats, expected);
        what = what ? what : mirror_compare(m.clock, run);
        if (!what &&
            (is_fine == has_failed ||
             npu_clock_status(m.clock) != (has_failed ? run->time.sim.status : PTOWSP_OK))) {
            what = "status";
        }
        if (!what && has_failed && strcmp(npu_clock_error(m.clock), run->time.sim.text) != 0) {
            what = npu_clock_error(m.clock);
        }
    }
    npu_clock_destroy(m.clock);
    return what;
}

#endif
