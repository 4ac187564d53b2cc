// The ways in which a random program runs here: on several lanes, and only timed. Each is as the slow
// reference of workload_reference.h says, and as the first run on one lane.

#ifndef FUZZ_PROGRAM_WAYS_H
#define FUZZ_PROGRAM_WAYS_H

#include "choices.h"
#include "workload_sample.h"

static inline void run_on_lanes(sample *s, const ptowsp_program *program, uint32_t lane_count,
                                const outcome *first) {
    static ptowsp_context *contexts[5];
    static lane_watch watch;
    ptowsp_run *run = NULL;
    if (!contexts[lane_count]) {
        const ptowsp_context_desc desc = test_lanes_desc(lane_count);
        REQUIRE(ptowsp_context_create(&desc, &contexts[lane_count]) == PTOWSP_OK);
    }
    if (watch.task_max == 0) {
        lane_watch_begin(&watch, REF_TASK_MAX);
    }
    lane_watch_restart(&watch, lane_count, 0);
    s->module.watch.lanes = &watch;
    s->run_context = contexts[lane_count];
    s->lane_count = lane_count;
    sample_refresh(s);
    REQUIRE(ptowsp_run_create(s->run_context, program, &run) == PTOWSP_OK);
    ptowsp_status status = check_as_expected(s, run, true);
    check_same(s, first, run, status, "lanes change something");
    ptowsp_run_destroy(run);
    s->module.watch.lanes = NULL;
    s->run_context = s->context;
    s->lane_count = 0;
}

static inline void run_timed(sample *s, ptowsp_run *run, const outcome *first) {
    if (!s->program.can_measure || s->program.loads_written) {
        return;  // control depends on data
    }
    sample_expect(s);
    ref_bind(run, &s->program, &s->bindings, &s->memory, s->program.has_aliases);
    ptowsp_status status = sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, true);
    check_run(s, run, status);
    check_same(s, first, run, status, "measuring differs from executing");
    REQUIRE(s->module.watch.calls == 0);
}

// A program of these bytes in all of these ways, and in one more.
static inline void run_input(const uint8_t *data, size_t size,
                             void (*run_more)(sample *s, const ptowsp_program *program,
                                              ptowsp_run *run, const outcome *first)) {
    ptowsp_program *program = NULL;
    sample *s = sample_make(choices_begin(data, size), 0);
    sample_schedule(s, 0);
    sample_expect(s);
    ptowsp_status status = sample_compile(s, &s->module, &program);
    if (status == PTOWSP_OK) {
        ptowsp_run *run = test_run_of(s->context, program);
        status = check_execution(s, run);
        outcome *first = outcome_of(run, status);
        run_on_lanes(s, program, 2, first);
        run_on_lanes(s, program, 4, first);
        run_timed(s, run, first);
        run_more(s, program, run, first);
        free(first);
        test_destroy(run, program, NULL, NULL);
    } else if (status != PTOWSP_STUCK || s->expected.status != PTOWSP_STUCK) {
        complain(s, NULL, -1, "the program is refused");
    }
    sample_free(s);
}

#endif
