// Orders that get stuck (ptowsp_run_explore): thousands of small pipelines at random against all
// their interleavings, one by one (pipeline_orders.h); families of sizes; what the report says; limits and
// errors. Single programs are cases (tests/cases/orders.case).

#include "pipeline_fixture.h"
#include "pipeline_orders.h"

enum { PIPELINES = 20000 };

// -- against all interleavings --------------------------------------------------------------------

// The steps that the run reports are possible one after another, and the last leaves it stuck.
static void check_order(const orders_machine *machine, const ptowsp_run *run) {
    orders_state s;
    uint64_t count = 0;
    const ptowsp_step_record *steps = ptowsp_run_steps(run, &count);
    orders_start(machine, &s);
    for (uint64_t i = 0; i < count; i++) {
        const ptowsp_step_record *step = &steps[i];
        int process = (int)step->process, partner = -1;
        const orders_op *op = orders_at(machine, &s, process);
        assert_non_null(op);
        bool is_end = step->channel == UINT32_MAX;
        assert_true(is_end || op->channel == (int)step->channel);
        switch (step->kind) {
        case PTOWSP_STEP_SEND:
            assert_int_equal(op->kind, ORDERS_OP_SEND);
            assert_true(machine->p->channels[op->channel].is_event ||
                        orders_token(machine, &s, process) == (int)step->token);
            if (machine->p->channels[op->channel].depth == 0) {  // its receiver is the next step
                assert_true(i + 1 < count && steps[i + 1].kind == PTOWSP_STEP_RECEIVE &&
                            steps[i + 1].channel == step->channel);
                partner = (int)steps[++i].process;
            }
            break;
        case PTOWSP_STEP_RECEIVE:
        case PTOWSP_STEP_END:
            assert_int_equal(op->kind, ORDERS_OP_RECEIVE);
            assert_int_equal(s.pending[op->channel] > 0, step->kind == PTOWSP_STEP_RECEIVE);
            break;
        default: assert_int_equal(op->kind, is_end ? ORDERS_OP_END : ORDERS_OP_CLOSE); break;
        }
        assert_true(orders_step(machine, &s, process, partner));
    }
    assert_false(orders_have_ended(machine, &s));
    for (int i = 0; i < machine->count; i++) {
        for (int partner = -1; partner < machine->count; partner++) {
            assert_false(orders_step(machine, &s, i, partner));
        }
    }
}

typedef struct orders_counts {
    uint64_t compiled, unknown, stuck, hidden, states, all_states;
} orders_counts;

static void compare(sim_sample *s, orders_counts *counts) {
    // Tokens may circulate for ever.
    const ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY, .token_limit = 1000};
    const ptowsp_explore_options limits = {.step_limit = 20000};
    ptowsp_explore_stats stats;
    orders_machine machine;
    int states = 0;
    ptowsp_run *run = test_run_of(s->context, s->built.program);
    sim_bind(&s->built, &s->b, run);
    orders_compile(&machine, &s->p);
    orders_result expected = orders_enumerate(&machine, &states);
    ptowsp_status by_time = ptowsp_run_execute(run, &time_only);
    ptowsp_status status = ptowsp_run_explore(run, &limits, &stats);
    counts->unknown += status == PTOWSP_LIMIT_EXCEEDED;
    if (expected != ORDERS_TOO_MANY && status != PTOWSP_LIMIT_EXCEEDED) {
        if (status != (expected == ORDERS_GET_STUCK ? PTOWSP_STUCK : PTOWSP_OK)) {
            (void)sim_sample_expect(s);  // for the text
            sim_complain(s, run, ptowsp_status_name(status));
        }
        assert_true(by_time != PTOWSP_STUCK || status == PTOWSP_STUCK);
        counts->compiled++;
        counts->stuck += status == PTOWSP_STUCK;
        counts->hidden += status == PTOWSP_STUCK && by_time == PTOWSP_OK;
        counts->states += status == PTOWSP_OK ? stats.state_count : 0;
        counts->all_states += status == PTOWSP_OK ? (uint64_t)states : 0;
    }
    if (status == PTOWSP_STUCK) {
        check_order(&machine, run);
    }
    ptowsp_run_destroy(run);
}

TEST(pipeline_explore__agrees_with_all_interleavings) {
    uint64_t seed = test_seed();
    orders_counts counts = {0};
    for (uint64_t i = 0; TEST_ROUNDS(i, PIPELINES); i++) {
        sim_sample *s = sim_sample_make("orders", i);
        orders_make(&s->p, seed + i * UINT64_C(1000003));
        sim_sample_build(s);
        if (s->built.status == PTOWSP_OK) {
            compare(s, &counts);
        }
        sim_sample_free(s);
    }
    print_message(
        "%llu compared, %llu at a limit; %llu get stuck, %llu of them only with other times; "
        "%llu states instead of %llu where none does\n",
        (unsigned long long)counts.compiled, (unsigned long long)counts.unknown,
        (unsigned long long)counts.stuck, (unsigned long long)counts.hidden,
        (unsigned long long)counts.states, (unsigned long long)counts.all_states);
    assert_met(counts.compiled > PIPELINES / 3 && counts.stuck > PIPELINES / 20);
    assert_met(counts.hidden > PIPELINES / 500 && counts.stuck < counts.compiled);
}

// -- families -------------------------------------------------------------------------------------

static ptowsp_status explore(const fixture *f) {
    return ptowsp_run_explore(f->run, NULL, NULL);
}

// So many processes: a task of 0, 100, ... cycles, then `need` tokens of a pool, a task after each, and the
// tokens go back.
static void pool_parse(fixture *f, int tokens, int takers, int need, bool has_lock) {
    char text[4000], *at = text;
    const char *more = has_lock ? ", lock" : "";
    for (int t = 0; t < takers; t++) {
        at += sprintf(
            at, "    process t%d consumes pool%s produces pool%s\n      task work(%d, %d)\n%s", t,
            more, more, 100 * t, 100 * t, has_lock ? "      receive t from lock\n" : "");
        for (int i = 0; i < need; i++) {
            at += sprintf(at, "      receive token from pool\n      task work(1, 1)\n");
        }
        at += sprintf(at, "%s", has_lock ? "      send lock(0)\n" : "");
        for (int i = 0; i < need; i++) {
            at += sprintf(at, "      send pool(%d)\n", i);
        }
    }
    fixture_parse(f,
                  "axis tokens %d\naxis one 1\n" MAIN "    channel pool depth 16 latency 0\n"
                  "%s%s%s%s",
                  tokens, has_lock ? "    channel lock depth 1 latency 0\n" : "",
                  FILL("fill", "pool", "tokens"), has_lock ? FILL("unlock", "lock", "one") : "",
                  text);
}

// k processes that each take m of n tokens get stuck if all but one can have m - 1 and the last one
// too: n <= k (m - 1). By their times here they never meet.
TEST_F(pipeline_explore__a_pool_gets_stuck_where_all_can_wait_for_their_last_token) {
    for (int takers = 2; takers <= 4; takers++) {
        for (int need = 1; need <= 3; need++) {
            for (int tokens = need; tokens <= takers * (need - 1) + 1; tokens++) {
                for (int has_lock = 0; has_lock < 2; has_lock++) {
                    pool_parse(f, tokens, takers, need, has_lock);
                    assert_ok(execute(f, PTOWSP_RUN_EXECUTE, false));
                    assert_false(ptowsp_run_pipelines(f->run, NULL)->is_timing_independent);
                    bool is_stuck = !has_lock && tokens <= takers * (need - 1);
                    assert_int_equal(explore(f), is_stuck ? PTOWSP_STUCK : PTOWSP_OK);
                    assert_ok(execute(f, PTOWSP_RUN_EXECUTE, false));
                }
            }
        }
    }
}

// Replicas that divide `count` tokens among them, and send results through a channel of depth 1 to
// one that receives them.
static void workers_parse(fixture *f, int count, int workers) {
    fixture_parse(
        f,
        "axis fill %d\naxis workers %d\n" MAIN "    channel work depth 2 latency 0\n"
        "    channel done depth 1 latency 0\n" FILL(
            "fill", "work",
            "fill") "    process worker replicas w in workers consumes work produces done\n"
                    "      consume t from work\n        task work(t, 5)\n        send done(t)\n"
                    "    process collect consumes done\n      for_each i in fill\n"
                    "        receive t from done\n",
        count, workers);
}

// Tokens that decide nothing make no states: they grow with count and workers, not with their power.
TEST_F(pipeline_explore__a_queue_of_work_has_few_states) {
    for (int workers = 2; workers <= 4; workers++) {
        ptowsp_explore_stats stats;
        workers_parse(f, 32, workers);
        assert_ok(ptowsp_run_explore(f->run, NULL, &stats));
        print_message("%d workers: %llu states, %llu steps\n", workers,
                      (unsigned long long)stats.state_count, (unsigned long long)stats.step_count);
        assert_in_range(stats.state_count, 32, 32 * 40);
    }
}

// -- limits and errors ----------------------------------------------------------------------------

TEST_F(pipeline_explore__limits_are_kept_and_named) {
    ptowsp_explore_stats stats;
    ptowsp_explore_options options = {0};
    workers_parse(f, 8, 2);
    assert_ok(ptowsp_run_explore(f->run, &options, &stats));
    const ptowsp_explore_stats all = stats;
    options.state_limit = all.state_count;
    options.step_limit = all.step_count;
    assert_ok(ptowsp_run_explore(f->run, &options, &stats));
    options.state_limit--;
    assert_int_equal(ptowsp_run_explore(f->run, &options, &stats), PTOWSP_LIMIT_EXCEEDED);
    assert_int_equal(stats.state_count, options.state_limit);
    error_has(f, "run: not all orders of pipeline p have been explored, of ");
    error_has(f, " at most; none of those explored gets stuck");
    options.state_limit = 0;
    options.step_limit--;
    assert_int_equal(ptowsp_run_explore(f->run, &options, &stats), PTOWSP_LIMIT_EXCEEDED);
    assert_in_range(stats.step_count, options.step_limit, options.step_limit + 1);
    for (options.step_limit = 1; options.step_limit < all.step_count; options.step_limit++) {
        assert_int_equal(ptowsp_run_explore(f->run, &options, &stats), PTOWSP_LIMIT_EXCEEDED);
        assert_in_range(stats.step_count, options.step_limit, options.step_limit + 1);
    }
    options.step_limit = 0;
    options.time_limit_ns = 1;
    assert_int_equal(ptowsp_run_explore(f->run, &options, NULL), PTOWSP_TIMED_OUT);
    options.time_limit_ns = UINT64_MAX;
    assert_ok(ptowsp_run_explore(f->run, &options, NULL));
    assert_ok(execute(f, PTOWSP_RUN_EXECUTE, false));
}

// b sends to c as well, but only after a token of d, which a sends after two of its own: so a's tokens come
// first, though it is not alone. Four sends, each received, and an end.
TEST_F(pipeline_explore__limits_count_moves_without_a_choice) {
    ptowsp_explore_stats stats;
    ptowsp_explore_options options = {0};
    fixture_parse(f, MAIN "    channel c depth 3 latency 0\n    channel d depth 1 latency 0\n"
                          "    process a produces c, d\n      send c(1)\n      send c(2)\n"
                          "      send d(3)\n"
                          "    process b consumes d produces c\n      receive t from d\n"
                          "      send c(4)\n" CONSUMER("get", "c", "1"));
    assert_ok(ptowsp_run_explore(f->run, NULL, &stats));
    assert_int_equal(stats.step_count, 9);
    assert_int_equal(stats.state_count, 0);
    for (options.step_limit = 1; options.step_limit < 9; options.step_limit++) {
        assert_int_equal(ptowsp_run_explore(f->run, &options, &stats), PTOWSP_LIMIT_EXCEEDED);
        assert_int_equal(stats.step_count, options.step_limit);
    }
}

// A token that is one more each time it comes round, and decides: no two states are the same.
#define COUNTER(name)                                                                              \
    "    process " name " consumes a produces a\n      send a(1)\n      consume t from a\n"        \
    "        when t != 0\n          send a(t + 1)\n"

typedef struct canceller {
    ptowsp_run *run;
    int is_over;  // atomic
} canceller;

static void *cancel(void *user) {
    canceller *c = (canceller *)user;
    while (!__atomic_load_n(&c->is_over, __ATOMIC_ACQUIRE)) {
        ptowsp_run_cancel(c->run);
    }
    return NULL;
}

TEST_F(pipeline_explore__is_cancelled_by_another_thread) {
    pthread_t thread;
    ptowsp_explore_options options = {0};
    options.step_limit = options.state_limit = UINT64_MAX;
    fixture_parse(f, MAIN "    channel a depth 2 latency 0\n" COUNTER("zero") COUNTER("one"));
    canceller c = {f->run, 0};
    assert_int_equal(pthread_create(&thread, NULL, cancel, &c), 0);
    ptowsp_status status = ptowsp_run_explore(f->run, &options, NULL);
    __atomic_store_n(&c.is_over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_int_equal(status, PTOWSP_CANCELLED);
}

// One of two tokens is received, and only after a race on another channel it is looked at: so it is kept
// in a state meanwhile, with all its bits.
TEST_F(pipeline_explore__tokens_that_decide_are_kept_whole) {
    static const char *const values[] = {
        "1", "127", "128", "129", "16384", "9223372036854775807", "-1", "-9223372036854775808"};
    TEST_GRID(size_t, sent, COUNT_OF(values), looked_for, COUNT_OF(values)) {
        ptowsp_explore_stats stats;
        fixture_parse(f,
                      MAIN "    channel a depth 1 latency 0\n    channel race depth 2 latency 0\n"
                           "    channel more depth 1 latency 0\n"
                           "    process tell produces a\n      send a(%s)\n"
                           "    process zero produces race\n      send race(0)\n"
                           "    process one produces race\n      send race(1)\n"
                           "    process use consumes a, race, more produces more\n"
                           "      receive t from a\n        receive u from race\n"
                           "        receive v from race\n        when t == %s\n"
                           "          receive w from more\n      send more(0)\n",
                      values[sent], values[looked_for]);
        assert_int_equal(ptowsp_run_explore(f->run, NULL, &stats),
                         sent == looked_for ? PTOWSP_STUCK : PTOWSP_OK);
        assert_true(stats.state_count > 0);
    }
}

static void explore_inside(const fixture *f) {
    ptowsp_explore_stats stats = {7, 7};
    assert_int_equal(ptowsp_run_explore(f->run, NULL, &stats), PTOWSP_BUSY);
    assert_int_equal(stats.state_count + stats.step_count, 0);
}

TEST_F(pipeline_explore__is_busy_while_the_run_executes) {
    pool_parse(f, 3, 2, 2, false);
    kernels.inside = explore_inside;
    assert_ok(execute(f, PTOWSP_RUN_EXECUTE, false));
    kernels.inside = NULL;
    assert_ok(explore(f));
}

// Three replicas that are alike, and take three tokens.
static void alike_parse(fixture *f) {
    fixture_parse(
        f, "axis fill 3\naxis workers 3\n" MAIN "    channel work depth 3 latency 0\n" FILL(
               "fill", "work", "fill") "    process worker replicas w in workers consumes work\n"
                                       "      consume t from work\n        task work(t, 1)\n");
}

// Each allocation refused once: an error, nothing lost, and it works the next time.
TEST(pipeline_explore__every_allocation_may_be_refused) {
    uint64_t refused = 0;
    for (int tokens = 2; tokens <= 8;
         tokens++) {  // two that take 2, 2, 3, 3, 4 and 4 of them; 8: replicas
        const int need = tokens / 2 + 1 - (tokens == 8);
        const ptowsp_status expected = tokens <= 2 * (need - 1) ? PTOWSP_STUCK : PTOWSP_OK;
        EACH_REFUSED(n, 0) {
            test_memory memory;
            fixture f = {.context = test_counted(&memory)};
            if (tokens == 8) {
                alike_parse(&f);
            } else {
                pool_parse(&f, tokens, 2, need, false);
            }
            test_refuse(&memory, n);
            const ptowsp_status status = explore(&f);
            has_more = memory.allocations >= memory.refuse_at;
            assert_int_equal(status, has_more ? PTOWSP_OUT_OF_MEMORY : expected);
            memory.refuse_at = 0;
            assert_int_equal(explore(&f), expected);
            fixture_free(&f);
            assert_int_equal(memory.live_blocks, 0);
            refused += has_more;
        }
    }
    assert_true(refused > 20);
}
