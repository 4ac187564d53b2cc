// A pipeline with its bindings, what the reference makes of it, and what the library has built; how
// it is executed; and saying what is wrong with it.

#ifndef PTOWSP_PIPELINE_SAMPLE_H
#define PTOWSP_PIPELINE_SAMPLE_H

#include "pipeline_build.h"

enum { SIM_ROUND_MAX = 3 };

// A pipeline with its bindings, what the reference makes of it, and what the library has built.
typedef struct sim_sample {
    const char *name;
    uint64_t number;
    sim_pipeline p;
    sim_bindings b;
    sim_around around;
    int round_count;  // that the reference ran: fewer than bound if it got stuck
    ptowsp_status status;
    sim_result rounds[SIM_ROUND_MAX];
    test_memory memory;
    ptowsp_context *context;
    ptowsp_context *run_context;  // of the run, whose errors are told
    uint32_t lane_count;          // of its executions
    sim_built built;
} sim_sample;

// -- samples --------------------------------------------------------------------------------------

static inline sim_sample *sim_sample_make(const char *name, uint64_t number) {
    sim_sample *s = (sim_sample *)calloc(1, sizeof *s);
    assert_non_null(s);
    s->name = name;
    s->number = number;
    s->b.rounds = 1;
    return s;
}

// Runs the reference. Returns false if it takes too long.
static inline bool sim_sample_expect(sim_sample *s) {
    s->status = PTOWSP_OK;
    for (s->round_count = 0; s->round_count < s->b.rounds && s->status == PTOWSP_OK;) {
        sim_result *result = &s->rounds[s->round_count];
        sim_run(&s->p, &s->b, s->round_count++, result);
        s->status = result->status;
        if (result->is_too_long) {
            return false;
        }
    }
    return true;
}

static inline void sim_sample_build(sim_sample *s) {
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.resize = test_resize;
    desc.resize_user = &s->memory;
    assert_ok(ptowsp_context_create(&desc, &s->context));
    s->run_context = s->context;
    sim_build(&s->built, s->context, &s->p, &s->around);
}

static inline void sim_sample_free(sim_sample *s) {
    if (s->context) {
        sim_built_free(&s->built);
        ptowsp_context_destroy(s->context);
        assert_int_equal(s->memory.live_bytes, 0);
    }
    free(s);
}

static inline ptowsp_status sim_sample_execute(sim_sample *s, ptowsp_run *run, ptowsp_run_mode mode,
                                               bool record) {
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.mode = mode;
    options.record_tasks = record;
    options.lane_count = s->lane_count;
    s->built.call_count = 0;
    memset(s->built.data, 0, sizeof s->built.data);
    return ptowsp_run_execute(run, &options);
}

static inline const sim_result *sim_last(const sim_sample *s) {
    return &s->rounds[s->round_count - 1];
}

// -- saying what is wrong -------------------------------------------------------------------------

static inline bool sim_write(void *user, const void *text, size_t length) {
    (void)user;
    print_message("%.*s", (int)length, (const char *)text);
    return true;
}

static inline const char *sim_step_name(ptowsp_step_kind kind) {
    static const char *const names[] = {"task", "send", "receive", "end", "close"};
    return kind <= PTOWSP_STEP_CLOSE ? names[kind] : "none";
}

// Prints the sample, with what the reference and the library did, and fails.
static inline void sim_complain(const sim_sample *s, const ptowsp_run *run, const char *what) {
    const ptowsp_output text = {sim_write, NULL};
    ptowsp_module_print(s->built.module, text);
    const sim_result *last = sim_last(s);
    for (int i = 0; i < last->step_count; i++) {
        const sim_step *step = &last->steps[i];
        print_message("%4d: process %d, %s, channel %d, token %lld, from %llu to %llu\n", i,
                      step->actor, sim_step_name(step->kind), (int)step->channel,
                      (long long)step->token, (unsigned long long)step->arrive,
                      (unsigned long long)step->end);
    }
    uint64_t count = 0;
    const ptowsp_step_record *steps = run ? ptowsp_run_steps(run, &count) : NULL;
    for (uint64_t i = 0; steps && i < count; i++) {
        print_message("%4d: got process %u, %s, channel %d, token %lld, from %llu to %llu, "
                      "previous %lld, cause %lld\n",
                      (int)i, steps[i].process, sim_step_name(steps[i].kind), (int)steps[i].channel,
                      (long long)steps[i].token, (unsigned long long)steps[i].arrive,
                      (unsigned long long)steps[i].end, (long long)steps[i].previous,
                      (long long)steps[i].cause);
    }
    if (run) {
        ptowsp_run_print(run, text);
        ptowsp_run_print_stuck(run, text);
    }
    print_message("\nlast error: %s\n", ptowsp_context_error(s->run_context).text);
    fail_msg("%s %llu: %s", s->name, (unsigned long long)s->number, what);
}

static inline void sim_check(const sim_sample *s, const ptowsp_run *run, uint64_t expected,
                             uint64_t got, const char *what, int which) {
    if (expected != got) {
        char text[160];
        snprintf(text, sizeof text, "%s %d is %llu and should be %llu", what, which,
                 (unsigned long long)got, (unsigned long long)expected);
        sim_complain(s, run, text);
    }
}

#endif
