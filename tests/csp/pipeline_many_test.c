// Pipelines of many tokens, and of many replicas that share channels, so that many are ready at one time
// and wait in line. Random ones with loops of some hundred iterations, or in up to 48 replicas, are
// compared with the slow reference of pipeline_reference.h: timed with prepared operations, executed,
// and with records, step by step; and some of many thousands with themselves when steps are recorded.
// Pipelines of many tokens that come to what is worked out on paper are cases (tests/cases/pipelines.case).

#include "pipeline_check.h"
#include "pipeline_random.h"
#include "run_results.h"
#include "support/fixture.h"

// Fewer where every access is checked.
enum {
    PIPELINES = LANE_IS_CHECKED ? 300 : 1500,
    LONG_PIPELINES = LANE_IS_CHECKED ? 100 : 400,
    TOKENS = 20000,
    TASKS = 100000  // 1 in 50 has more, which together take four times as long as all others
};

// By turns of long loops and of many replicas, with tasks of fixed cycles.
static sim_sample *sample_random(uint64_t *random, unsigned number, int64_t scale) {
    sim_sample *s = sim_sample_make("pipeline", number);
    const bool is_wide = number % 3 == 0;
    do {
        sim_pipeline_random_of(&s->p, test_random(random), is_wide ? 1 : scale,
                               is_wide ? SIM_WIDE_MAX : SIM_REPLICA_MAX);
        sim_bindings_random(&s->p, random, &s->b);
    } while (s->p.is_full || sim_has_loose_channel(&s->p));
    s->around.has_fixed = true;
    s->around.has_calls = number % 4 == 0;
    return s;
}

TEST(pipeline__of_many_steps_agrees_with_the_slow_reference) {
    uint64_t random = test_seed(), steps = 0;
    unsigned ended = 0, stuck = 0;
    for (unsigned number = 0; TEST_ROUNDS(number, PIPELINES); number++) {
        sim_sample *s = sample_random(&random, number, 20);
        while (!sim_sample_expect(s) || (s->status == PTOWSP_STUCK && test_random(&random) % 2)) {
            sim_sample_free(s);
            s = sample_random(&random, number, 20);
        }
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
        steps += (uint64_t)s->rounds[0].step_count;
        ptowsp_run_destroy(run);
        sim_sample_free(s);
    }
    print_message("%u pipelines ended, %u were stuck, with %llu steps\n", ended, stuck,
                  (unsigned long long)steps);
    assert_met(ended > PIPELINES / 2 && stuck > PIPELINES / 100 && steps > 200 * PIPELINES);
}

// -- with every step recorded ---------------------------------------------------------------------

TEST(pipeline__of_many_steps_agrees_with_all_of_its_steps) {
    static results plain, recorded;
    uint64_t random = test_seed();
    unsigned whole = 0;
    for (unsigned number = 0; TEST_ROUNDS(number, LONG_PIPELINES); number++) {
        sim_sample *s = sample_random(&random, number, 300);
        ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .token_limit = TOKENS};
        sim_sample_build(s);
        ptowsp_run *run = test_run_of(s->context, s->built.program);
        sim_bind(&s->built, &s->b, run);
        const ptowsp_status status = ptowsp_run_execute(run, &options);
        results_of(run, &plain);
        options.record_tasks = ptowsp_run_result(run)->task_count <= TASKS;
        const ptowsp_status again = ptowsp_run_execute(run, &options);
        results_of(run, &recorded);
        const bool is_whole = status != PTOWSP_LIMIT_EXCEEDED;  // else it ends anywhere
        whole += is_whole && options.record_tasks;
        if (status != again || (is_whole && memcmp(&plain, &recorded, sizeof plain) != 0)) {
            fail_msg("pipeline %u says something else with its steps recorded", number);
        }
        ptowsp_run_destroy(run);
        sim_sample_free(s);
    }
    assert_met(whole > LONG_PIPELINES / 2);
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
