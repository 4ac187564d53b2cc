// Pipelines of many tokens, and of many replicas that share channels, so that many are ready at one time
// and wait in line. Random ones with loops of some hundred iterations, or of few in up to 48 replicas, are
// compared with the slow reference of pipeline_reference.h: timed with prepared operations, executed,
// and with records, step by step; and some of many thousands with themselves when steps are recorded.
// Tasks behind the loops take cycles that depend on tokens, so that tokens must be right as well.
// Pipelines of many tokens that come to what is worked out on paper are cases (tests/cases/pipelines.case).

#include "pipeline_check.h"
#include "run_results.h"
#include "support/fixture.h"

// Fewer where every access is checked.
enum {
    PIPELINES = LANE_IS_CHECKED ? 300 : 1500,
    LONG_PIPELINES = LANE_IS_CHECKED ? 100 : 400,
    STAGE_MAX = 4,
    WIDE_MAX = 48
};

typedef struct random_pipeline {
    sim_writer w;
    uint64_t random;
    bool has_values;  // now and then a task of a loop takes what its token says
    bool is_wide;     // many replicas, of short loops
    int64_t scale;    // of loops
} random_pipeline;

static int64_t in(random_pipeline *r, int64_t low, int64_t high) {
    return test_random_in(&r->random, low, high);
}

static bool one_in(random_pipeline *r, int64_t count) {
    return in(r, 1, count) == 1;
}

static int channel_add(random_pipeline *r) {
    static const uint64_t latencies[] = {0, 0, 1, 3, 7, 50};
    return sim_channel_add(&r->w, (uint32_t)in(r, 0, 9), latencies[in(r, 0, 5)]);
}

static int64_t loop_count(random_pipeline *r) {
    return r->is_wide ? in(r, 1, 12) : r->scale * in(r, one_in(r, 2) ? 100 : 1, 300);
}

// Some tasks, and sends of the value to each of the channels, of which -1 is none.
static void body(random_pipeline *r, int value, const int *out) {
    for (int i = 0; i < 2; i++) {
        int64_t spread = r->has_values && one_in(r, 8) ? 9 : 0;
        if (out[i] >= 0 && one_in(r, 3)) {
            sim_send_task_add(&r->w, out[i], value, in(r, 0, 7), spread);
        } else if (out[i] >= 0) {
            sim_port(&r->w, SIM_SEND, out[i], value);
        }
        if (one_in(r, 3)) {
            sim_task_add(&r->w, value, in(r, 0, 9), spread);
        }
    }
}

static void tail(random_pipeline *r, int value) {
    sim_task_add(&r->w, value, 1, 30);
}

static void end(random_pipeline *r, int depth) {
    while (r->w.depth > depth) {
        sim_end(&r->w);
    }
}

// Some begin late, when others have been steady for long.
static void begin_late(random_pipeline *r) {
    if (one_in(r, 5)) {
        sim_task_add(&r->w, sim_literal(r->w.p, 0), in(r, 100, 2000), 0);
    }
}

static void source(random_pipeline *r, const int *out) {
    int depth = r->w.depth;
    begin_late(r);
    for (int64_t i = in(r, 1, 2); i > 0; i--) {
        int value = sim_variable(r->w.p, sim_for(&r->w, loop_count(r)));
        body(r, value, out);
        end(r, depth);
    }
}

// A loop, and then all that is left; or only one of both.
static void stage(random_pipeline *r, int from, const int *out) {
    int depth = r->w.depth;
    int64_t style = in(r, 0, 3);
    begin_late(r);
    if (style != 0) {
        int number = sim_for(&r->w, loop_count(r));
        int token = sim_take(&r->w, SIM_RECEIVE, from);
        body(r, sim_variable(r->w.p, one_in(r, 4) ? number : token), out);
        end(r, depth);
    }
    if (style != 1) {
        int value = sim_variable(r->w.p, sim_take(&r->w, SIM_CONSUME, from));
        if (style > 1) {
            tail(r, value);
        }
        body(r, value, out);
        end(r, depth);
    }
}

static void chain_make(random_pipeline *r, bool has_replicas) {
    int64_t count = in(r, 2, STAGE_MAX);
    int before = -1;
    for (int64_t i = 0; i < count; i++) {
        int out[2] = {i + 1 < count ? channel_add(r) : -1, -1};
        sim_process *process = sim_process_between(&r->w, before, out[0]);
        if (has_replicas && one_in(r, 2)) {
            const int64_t most = r->is_wide && one_in(r, 2) ? WIDE_MAX : SIM_REPLICA_MAX;
            process->replicas = SIM_REPLICAS_DENSE;
            process->replica_count = (int)in(r, 2, most);
        }
        if (before < 0) {
            source(r, out);
        } else {
            stage(r, before, out);
        }
        sim_end(&r->w);
        if (has_replicas && before < 0 && one_in(r, 2)) {  // one more, later than the others
            sim_process_between(&r->w, -1, out[0]);
            sim_task_add(&r->w, sim_literal(r->w.p, 0), in(r, 100, 1500), 0);
            source(r, out);
            sim_end(&r->w);
        }
        before = out[0];
    }
}

// Tokens go round; those that are left at the end are looked at.
static void ring_make(random_pipeline *r) {
    int64_t count = in(r, 2, STAGE_MAX), rounds = loop_count(r);
    int channels[STAGE_MAX];
    for (int64_t i = 0; i < count; i++) {
        channels[i] = channel_add(r);
    }
    for (int64_t i = 0; i < count; i++) {
        int from = channels[(i + count - 1) % count], out[2] = {channels[i], -1};
        sim_process_between(&r->w, from, out[0]);
        int depth = r->w.depth;
        if (i == 0 || one_in(r, 3)) {
            int value = sim_variable(r->w.p, sim_for(&r->w, in(r, 1, 4)));
            sim_port(&r->w, SIM_SEND, out[0],
                     sim_binary(r->w.p, SIM_ADD, value, sim_literal(r->w.p, 100 * i)));
            end(r, depth);
        }
        sim_for(&r->w, rounds);
        body(r, sim_variable(r->w.p, sim_take(&r->w, SIM_RECEIVE, from)), out);
        end(r, depth);
        if (one_in(r, 2)) {
            tail(r, sim_variable(r->w.p, sim_take(&r->w, SIM_RECEIVE, from)));
        }
        sim_process_end(&r->w);
    }
}

// A source of two ways, which meet again.
static void diamond_make(random_pipeline *r) {
    int left = channel_add(r), right = channel_add(r), late = channel_add(r);
    const int none[2] = {-1, -1}, both[2] = {left, right}, behind[2] = {late, -1};
    sim_produces(sim_process_between(&r->w, -1, left), right);
    source(r, both);
    sim_process_end(&r->w);
    sim_process_between(&r->w, left, late);
    stage(r, left, behind);
    sim_process_end(&r->w);
    sim_consumes(sim_process_between(&r->w, late, -1), right);
    int depth = r->w.depth;
    int token = sim_take(&r->w, SIM_CONSUME, right);
    body(r, sim_variable(r->w.p, sim_take(&r->w, SIM_RECEIVE, late)), none);
    end(r, depth + 1);
    if (one_in(r, 4)) {
        tail(r, sim_variable(r->w.p, token));
    }
    sim_process_end(&r->w);
}

static void pipeline_make(sim_pipeline *p, uint64_t seed, int64_t scale) {
    random_pipeline r = {.random = seed, .scale = scale};
    sim_begin(&r.w, p);
    r.has_values = one_in(&r, 6);
    switch (in(&r, 0, 5)) {
    case 0:
    case 1: chain_make(&r, false); break;
    case 2:
    case 3:
        r.is_wide = one_in(&r, 2);
        chain_make(&r, true);
        break;
    case 4: ring_make(&r); break;
    default: diamond_make(&r); break;
    }
}

static sim_sample *sample_random(uint64_t *random, unsigned number) {
    sim_sample *s = sim_sample_make("pipeline", number);
    do {
        memset(&s->p, 0, sizeof s->p);
        pipeline_make(&s->p, test_random(random), 1);
    } while (s->p.is_full || !sim_sample_expect(s));
    s->around.has_fixed = true;
    s->around.has_calls = number % 4 == 0;
    return s;
}

TEST(pipeline__of_long_loops_agrees_with_the_slow_reference) {
    uint64_t random = test_seed();
    unsigned ended = 0, stuck = 0;
    for (unsigned number = 0; TEST_ROUNDS(number, PIPELINES); number++) {
        sim_sample *s = sample_random(&random, number);
        sim_sample_build(s);
        if (s->built.status != PTOWSP_OK) {
            sim_complain(s, NULL, "it does not compile");
        }
        ptowsp_run *run = test_run_of(s->context, s->built.program);
        sim_bind(&s->built, &s->b, run);
        sim_check_executions(s, run);
        size_t allocations = s->memory.allocations;
        sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, false));
        assert_int_equal(s->memory.allocations, allocations);
        char text[512];
        snprintf(text, sizeof text, "%s", ptowsp_context_error(s->context).text);
        sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, true));
        assert_string_equal(ptowsp_context_error(s->context).text, text);
        ended += s->status == PTOWSP_OK;
        stuck += s->status == PTOWSP_STUCK;
        ptowsp_run_destroy(run);
        sim_sample_free(s);
    }
    print_message("%u pipelines ended, %u were stuck\n", ended, stuck);
    assert_met(ended > PIPELINES / 2 && stuck > PIPELINES / 100);
}

// -- with every step recorded ---------------------------------------------------------------------

TEST(pipeline__of_long_loops_agrees_with_all_of_its_steps) {
    static results plain, recorded;
    uint64_t random = test_seed();
    for (unsigned number = 0; TEST_ROUNDS(number, LONG_PIPELINES); number++) {
        sim_sample *s = sim_sample_make("long pipeline", number);
        do {
            pipeline_make(&s->p, test_random(&random), 12);
        } while (s->p.is_full);
        s->around.has_fixed = true;
        sim_sample_build(s);
        ptowsp_run *run = test_run_of(s->context, s->built.program);
        sim_bind(&s->built, &s->b, run);
        const ptowsp_status status = sim_sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, false);
        results_of(run, &plain);
        const ptowsp_status again = sim_sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, true);
        results_of(run, &recorded);
        if (status != again || memcmp(&plain, &recorded, sizeof plain) != 0) {
            sim_complain(s, NULL, "it says something else than with its steps recorded");
        }
        ptowsp_run_destroy(run);
        sim_sample_free(s);
    }
}

// -- in a steady state ----------------------------------------------------------------------------

static ptowsp_status many_execute(const fixture *f, uint64_t token_limit) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .token_limit = token_limit};
    return ptowsp_run_execute(f->run, &options);
}

// Two tokens are under way at once, for 50 cycles. The limit is met at the token behind it, in the state in which
// a smaller limit is met, 25 cycles later for each token more.
TEST_F(pipeline__limit_of_tokens_is_met_at_its_token) {
    uint32_t count;
    program_make(f,
                 "module m\naxis sent 65536\nworkload main\n  pipeline pipeline\n"
                 "    channel channel depth 2 latency 50\n"
                 "    process producer produces channel\n      for_each i in sent\n"
                 "        send channel(i)\n"
                 "    process consumer consumes channel\n      consume t from channel\n",
                 NULL, NULL);
    for (uint64_t more = 0; more < 4; more++) {
        uint64_t limit = (UINT64_C(1) << 15) + more;
        char text[160];
        snprintf(text, sizeof text,
                 "channel channel gets more than %llu tokens, the limit of this execution",
                 (unsigned long long)limit);
        assert_int_equal(many_execute(f, limit), PTOWSP_LIMIT_EXCEEDED);
        assert_non_null(strstr(ptowsp_context_error(f->context).text, text));
        const ptowsp_channel_stats *channels = ptowsp_run_channels(f->run, &count);
        const ptowsp_process_stats *processes = ptowsp_run_processes(f->run, &count);
        assert_int_equal(channels[0].token_count, limit);
        uint64_t pending = channels[0].pending_count;
        uint64_t ends[2] = {processes[0].end_cycles, processes[1].end_cycles};
        assert_int_equal(many_execute(f, 8 + more), PTOWSP_LIMIT_EXCEEDED);
        assert_int_equal(channels[0].pending_count, pending);
        assert_int_equal(ends[0] - processes[0].end_cycles, 25 * (limit - 8 - more));
        assert_int_equal(ends[1] - processes[1].end_cycles, 25 * (limit - 8 - more));
    }
}

// -- tasks that are their cycles alone ------------------------------------------------------------

// Ten tasks of 20 cycles, each sent on; a receiver that takes nothing for them. Tasks that nobody
// looks at are counted all the same, and looked at when somebody asks.
TEST_F(pipeline__tasks_of_known_cycles_are_still_tasks) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    program_make(f,
                 "module m\naxis ten 10\nkernel constant(axes 1) vector, 20 cycles, time only\n"
                 "workload main\n  pipeline pipeline\n    channel tokens depth 2 latency 0\n"
                 "    process sender produces tokens\n      for_each i in ten\n"
                 "        task constant(i)\n        send tokens(i)\n"
                 "    process receiver consumes tokens\n      consume t from tokens\n",
                 NULL, NULL);
    for (int level = PTOWSP_RECORD_NONE; level <= PTOWSP_RECORD_EDGES; level++) {
        const ptowsp_record_options record = {.level = (ptowsp_record_level)level};
        assert_ok(ptowsp_run_record(f->run, &record));
        assert_ok(ptowsp_run_execute(f->run, &options));
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 200);
        assert_int_equal(ptowsp_run_result(f->run)->task_count, 10);
        assert_int_equal(ptowsp_run_result(f->run)->busy_cycles, 200);
    }
    // Asked what if they took half, after an execution without records, which it repeats.
    ptowsp_what_if what_if = {.kernel = 1, .percent = 50};
    assert_ok(ptowsp_run_record(f->run, NULL));
    assert_ok(ptowsp_run_what_if(f->run, &options, &what_if));
    assert_int_equal(what_if.makespan_cycles, 100);
}
