// Orders that get stuck (ptowsp_run_explore): thousands of small pipelines at random against all
// their interleavings, one by one (pipeline_orders.h); families of deadlocks that depend on time,
// each with a neighbour that has none; what the report says; limits and errors.

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
            assert_true(machine->p->is_event[op->channel] ||
                        orders_token(machine, &s, process) == (int)step->token);
            if (machine->p->depths[op->channel] == 0) {  // its receiver is the next step
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

static void compare(const orders_pipeline *p, uint64_t seed, orders_counts *counts) {
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_explore_stats stats;
    orders_machine machine;
    // Tokens may circulate for ever.
    const ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY, .token_limit = 1000};
    const ptowsp_explore_options limits = {.step_limit = 20000};
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    orders_build(m, p);
    if (ptowsp_program_create(context, m, NULL, &program) == PTOWSP_OK) {
        int states = 0;
        assert_int_equal(ptowsp_run_create(context, program, &run), PTOWSP_OK);
        orders_compile(&machine, p);
        orders_result expected = orders_enumerate(&machine, &states);
        ptowsp_status by_time = ptowsp_run_execute(run, &time_only);
        ptowsp_status status = ptowsp_run_explore(run, &limits, &stats);
        counts->unknown += status == PTOWSP_LIMIT_EXCEEDED;
        if (expected != ORDERS_TOO_MANY && status != PTOWSP_LIMIT_EXCEEDED) {
            if (status != (expected == ORDERS_GET_STUCK ? PTOWSP_STUCK : PTOWSP_OK)) {
                fail_msg("seed %llu: %s, but %d: %s", (unsigned long long)seed,
                         ptowsp_status_name(status), (int)expected,
                         ptowsp_context_error(context).text);
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
        ptowsp_program_destroy(program);
    }
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

TEST(pipeline_explore__agrees_with_all_interleavings) {
    uint64_t seed = test_seed();
    orders_counts counts = {0};
    for (uint64_t i = 0; TEST_ROUNDS(i, PIPELINES); i++) {
        orders_pipeline p;
        orders_random(&p, seed + i * UINT64_C(1000003));
        compare(&p, seed + i * UINT64_C(1000003), &counts);
    }
    print_message(
        "%llu compared, %llu at a limit; %llu get stuck, %llu of them only with other times; "
        "%llu states instead of %llu where none does\n",
        (unsigned long long)counts.compiled, (unsigned long long)counts.unknown,
        (unsigned long long)counts.stuck, (unsigned long long)counts.hidden,
        (unsigned long long)counts.states, (unsigned long long)counts.all_states);
    assert_met(counts.compiled > PIPELINES / 5 && counts.stuck > PIPELINES / 20);
    assert_met(counts.hidden > PIPELINES / 500 && counts.stuck < counts.compiled);
}

// -- families -------------------------------------------------------------------------------------

static ptowsp_status explore(const fixture *f) {
    return ptowsp_run_explore(f->run, NULL, NULL);
}

// A process that puts `count` tokens into a channel.
static void fill(const fixture *f, const char *name, ptowsp_channel to, int64_t count) {
    PTOWSP_PROCESS(f->m, name) {
        ptowsp_produces(f->m, to);
        PTOWSP_FOR_EACH(f->m, i, axis(f, name, count)) {
            ptowsp_send_make(f->m, to, i);
        }
    }
}

static void take(const fixture *f, ptowsp_channel from) {
    PTOWSP_RECEIVE(f->m, token, from) {
    }
}

// A task of `late` cycles, then `need` tokens of a pool, a task, and the tokens go back.
static void taker(const fixture *f, const char *name, ptowsp_channel pool, int64_t late,
                  int64_t need, ptowsp_channel lock) {
    PTOWSP_PROCESS(f->m, name) {
        ptowsp_consumes(f->m, pool);
        ptowsp_produces(f->m, pool);
        if (lock.id) {
            ptowsp_consumes(f->m, lock);
            ptowsp_produces(f->m, lock);
        }
        busy(f, late);
        if (lock.id) {
            take(f, lock);
        }
        for (int64_t i = 0; i < need; i++) {
            take(f, pool);
            busy(f, 1);
        }
        if (lock.id) {
            send(f, lock, 0);
        }
        for (int64_t i = 0; i < need; i++) {
            send(f, pool, i);
        }
    }
}

static void pool_build(fixture *f, int64_t tokens, int takers, int64_t need, bool has_lock) {
    static const char *const names[] = {"t0", "t1", "t2", "t3"};
    ptowsp_channel none = {0};
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel pool = channel(f, "pool", 16, 0);
            ptowsp_channel lock = has_lock ? channel(f, "lock", 1, 0) : none;
            fill(f, "fill", pool, tokens);
            if (has_lock) {
                fill(f, "unlock", lock, 1);
            }
            for (int i = 0; i < takers; i++) {
                taker(f, names[i], pool, 100 * i, need, lock);
            }
        }
    }
    compile(f, NULL);
}

static void pool_make(fixture *f, int64_t tokens, int takers, int64_t need, bool has_lock) {
    fixture_make(f);
    pool_build(f, tokens, takers, need, has_lock);
}

// k processes that each take m of n tokens get stuck if all but one can have m - 1 and the last one
// too: n <= k (m - 1). By their times here they never meet.
TEST(pipeline_explore__a_pool_gets_stuck_where_all_can_wait_for_their_last_token) {
    for (int takers = 2; takers <= 4; takers++) {
        for (int64_t need = 1; need <= 3; need++) {
            for (int64_t tokens = need; tokens <= takers * (need - 1) + 1; tokens++) {
                for (int has_lock = 0; has_lock < 2; has_lock++) {
                    fixture f;
                    pool_make(&f, tokens, takers, need, has_lock);
                    assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
                    assert_false(pipeline(&f, 0)->is_timing_independent);
                    bool is_stuck = !has_lock && tokens <= takers * (need - 1);
                    assert_int_equal(explore(&f), is_stuck ? PTOWSP_STUCK : PTOWSP_OK);
                    assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
                    fixture_free(&f);
                }
            }
        }
    }
}

TEST(pipeline_explore__says_which_order_and_what_would_help) {
    char text[4000];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    fixture f;
    pool_make(&f, 2, 2, 2, false);
    assert_int_equal(explore(&f), PTOWSP_STUCK);
    // Each needs one of the two before either has both.
    test_error_is(f.context, PTOWSP_STUCK, PTOWSP_NO_INDEX,
                  "main/pipeline p: stuck in an order of steps, after step 5: t0 finds pool empty, "
                  "t1 finds pool empty; more tokens in channel pool would let t0 go on; or let "
                  "each process take all its tokens at once, behind a token of which there is one");
    ptowsp_run_print_stuck(f.run, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(
        text, "pipeline p gets stuck in an order of steps: 2 of 3 processes wait\n"
              "  t0 waits for a token in channel pool, which is empty, since step 2\n"
              "    at main/pipeline p/process t0/receive token\n"
              "  t1 waits for a token in channel pool, which is empty, since step 5\n"
              "    at main/pipeline p/process t1/receive token\n"
              "  cycle: t0 -> empty pool -> t1 -> empty pool -> t0\n"
              "  help: more tokens in channel pool would let t0 go on; or let each process take "
              "all its tokens at once, behind a token of which there is one\n"
              "  order:\n"
              "    1  fill sends 0 to pool, at main/pipeline p/process fill/for_each i/send pool\n"
              "    2  t0 receives 0 from pool, at main/pipeline p/process t0/receive token\n"
              "    3  fill sends 1 to pool, at main/pipeline p/process fill/for_each i/send pool\n"
              "    4  fill ends, at main/pipeline p/process fill\n"
              "    5  t1 receives 1 from pool, at main/pipeline p/process t1/receive token\n");
    assert_int_equal(process(&f, "t0", 0)->state, PTOWSP_PROCESS_EMPTY);
    assert_int_equal(process(&f, "fill", 0)->state, PTOWSP_PROCESS_ENDED);
    assert_int_equal(channel_of(&f, "pool")->token_count, 2);
    ptowsp_run_print(f.run, ptowsp_output_to_buffer(&buffer));
    fixture_free(&f);
}

// left takes from a, then b; right from b, then a, or in the same order.
static void locks_make(fixture *f, bool is_crossed) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel locks[2] = {channel(f, "a", 1, 0), channel(f, "b", 1, 0)};
            fill(f, "fill a", locks[0], 1);
            fill(f, "fill b", locks[1], 1);
            for (int i = 0; i < 2; i++) {
                int first = i && is_crossed;
                PTOWSP_PROCESS(f->m, i ? "right" : "left") {
                    for (int k = 0; k < 2; k++) {
                        ptowsp_consumes(f->m, locks[k]);
                        ptowsp_produces(f->m, locks[k]);
                    }
                    busy(f, 10 * i);
                    take(f, locks[first]);
                    take(f, locks[!first]);
                    send(f, locks[0], 0);
                    send(f, locks[1], 0);
                }
            }
        }
    }
    compile(f, NULL);
}

TEST(pipeline_explore__two_locks_get_stuck_in_opposite_orders) {
    for (int is_crossed = 0; is_crossed < 2; is_crossed++) {
        fixture f;
        locks_make(&f, is_crossed);
        assert_int_equal(execute(&f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_OK);
        assert_int_equal(explore(&f), is_crossed ? PTOWSP_STUCK : PTOWSP_OK);
        if (is_crossed) {
            EXPECT_PARTS(ptowsp_context_error(f.context).text,
                         "more tokens in channel b would let left go on", "behind a token of which",
                         "or from a and b in the same order");
        }
        fixture_free(&f);
    }
}

// Two ask for an answer over one channel; the server answers the first by its number, and needs to
// hear of the first one first.
static void asks_make(fixture *f, uint32_t depth, bool is_by_number) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel asked = channel(f, "asked", depth, 0);
            ptowsp_channel told[2] = {channel(f, "told 0", 0, 0), channel(f, "told 1", 0, 0)};
            for (int i = 0; i < 2; i++) {
                PTOWSP_PROCESS(f->m, i ? "second" : "first") {
                    ptowsp_produces(f->m, asked);
                    ptowsp_consumes(f->m, told[i]);
                    busy(f, 10 * i);
                    send(f, asked, i);
                    take(f, told[i]);
                }
            }
            PTOWSP_PROCESS(f->m, "server") {
                ptowsp_consumes(f->m, asked);
                ptowsp_produces(f->m, told[0]);
                ptowsp_produces(f->m, told[1]);
                PTOWSP_CONSUME(f->m, who, asked) {
                    PTOWSP_WHEN(f->m, is_by_number ? ptowsp_eq(who, number(f, 0))
                                                   : ptowsp_bool(f->m, true)) {
                        send(f, told[0], 7);
                        if (!is_by_number) {
                            take(f, asked);
                            send(f, told[1], 8);
                        }
                    }
                    PTOWSP_OTHERWISE(f->m) {
                        send(f, told[1], 8);
                    }
                }
            }
        }
    }
    compile(f, NULL);
}

TEST(pipeline_explore__tokens_that_decide_are_looked_at) {
    for (uint32_t depth = 0; depth < 3; depth++) {
        for (int is_by_number = 0; is_by_number < 2; is_by_number++) {
            fixture f;
            asks_make(&f, depth, is_by_number);
            assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
            // At depth 0 the second waits at asked, and would get the answer of the first; with
            // room both can ask, and then told 0 is full for ever.
            bool is_stuck = !is_by_number && depth == 0;
            assert_int_equal(explore(&f), is_stuck ? PTOWSP_STUCK : PTOWSP_OK);
            fixture_free(&f);
        }
    }
}

// Replicas that divide `count` tokens among them, and send results through a channel of depth 1 to
// one that receives `taken` of them.
static void workers_make(fixture *f, int64_t count, int64_t workers, int64_t taken) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel work_at = channel(f, "work", 2, 0), done = channel(f, "done", 1, 0);
            fill(f, "fill", work_at, count);
            PTOWSP_REPLICATE(f->m, w, axis(f, "workers", workers), "worker") {
                ptowsp_consumes(f->m, work_at);
                ptowsp_produces(f->m, done);
                PTOWSP_CONSUME(f->m, t, work_at) {
                    send_work(f, done, t, 5);
                }
            }
            PTOWSP_PROCESS(f->m, "collect") {
                ptowsp_consumes(f->m, done);
                PTOWSP_FOR_EACH(f->m, i, axis(f, "taken", taken)) {
                    take(f, done);
                }
            }
        }
    }
    compile(f, NULL);
}

// Tokens that decide nothing make no states: they grow with count and workers, not with their power.
TEST(pipeline_explore__a_queue_of_work_has_few_states) {
    for (int64_t workers = 2; workers <= 4; workers++) {
        fixture f;
        ptowsp_explore_stats stats;
        workers_make(&f, 32, workers, 32);
        assert_int_equal(ptowsp_run_explore(f.run, NULL, &stats), PTOWSP_OK);
        print_message("%lld workers: %llu states, %llu steps\n", (long long)workers,
                      (unsigned long long)stats.state_count, (unsigned long long)stats.step_count);
        assert_in_range(stats.state_count, 32, 32 * 40);
        fixture_free(&f);
        // One result fits the channel, so one too few may be taken, and not two.
        workers_make(&f, 32, workers, 31);
        assert_int_equal(explore(&f), PTOWSP_OK);
        fixture_free(&f);
        workers_make(&f, 32, workers, 30);
        assert_int_equal(explore(&f), PTOWSP_STUCK);
        EXPECT_PARTS(ptowsp_context_error(f.context).text,
                     "all consumers of channel done have ended", "a depth of more than 1");
        fixture_free(&f);
    }
}

// Three tokens are sent, then n replicas may receive. If they are alike, one of them does, three times, and
// each sees the end: 3 + 3 + n steps. If its index is in what decides, each is another: n receive the first
// token, n the second, and n the third, after each of which all n see the end: 3 + n + n + n (1 + n).
TEST(pipeline_explore__one_of_replicas_that_are_alike_is_tried) {
    for (int64_t n = 2; n <= 10; n++) {
        const uint64_t count = (uint64_t)(n / 2);
        fixture f;
        ptowsp_explore_stats stats;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel work_at = channel(&f, "work", 3, 0);
                fill(&f, "fill", work_at, 3);
                PTOWSP_REPLICATE(f.m, w, axis(&f, "workers", (int64_t)count), "worker") {
                    ptowsp_consumes(f.m, work_at);
                    PTOWSP_CONSUME(f.m, t, work_at) {
                        (void)t;
                        PTOWSP_WHEN(f.m, ptowsp_eq(n % 2 ? w : ptowsp_i64(f.m, 0),
                                                   ptowsp_i64(f.m, 7))) {  // none is
                            take(&f, work_at);
                        }
                    }
                }
            }
        }
        compile(&f, NULL);
        assert_int_equal(ptowsp_run_explore(f.run, NULL, &stats), PTOWSP_OK);
        assert_int_equal(stats.state_count, count > 1 ? 3 : 0);
        assert_int_equal(stats.step_count, n % 2 && count > 1
                                               ? 3 + count + count + count * (1 + count)
                                               : 3 + 3 + count);
        fixture_free(&f);
    }
}

// A slot that is set from a token decides whether `use` waits for what only itself sends, in round 2
// or in none. Where the round does not matter, all rounds have the same states.
TEST(pipeline_explore__slots_and_runs_of_a_pipeline) {
    for (int64_t at = 2; at <= 3; at++) {
        fixture f;
        ptowsp_explore_stats stats;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_FOR_EACH(f.m, round, axis(&f, "rounds", 3)) {
                ptowsp_slot_set_make(
                    f.m, 4, at == 2 ? ptowsp_eq(round, number(&f, at)) : ptowsp_bool(f.m, false));
                PTOWSP_PIPELINE(f.m, "p") {
                    ptowsp_channel a = channel(&f, "a", 2, 0), more = channel(&f, "more", 1, 0);
                    for (int i = 0; i < 2; i++) {
                        PTOWSP_PROCESS(f.m, i ? "one" : "zero") {
                            ptowsp_produces(f.m, a);
                            busy(&f, i);
                            send(&f, a, i);
                        }
                    }
                    PTOWSP_PROCESS(f.m, "use") {
                        ptowsp_consumes(f.m, a);
                        ptowsp_consumes(f.m, more);
                        ptowsp_produces(f.m, more);
                        PTOWSP_RECEIVE(f.m, t, a) {
                            ptowsp_slot_set_make(f.m, 3, t);
                        }
                        ptowsp_expr is_one =
                            ptowsp_eq(ptowsp_slot(f.m, 3, PTOWSP_TYPE_I64), number(&f, 1));
                        PTOWSP_WHEN(f.m,
                                    ptowsp_and(is_one, ptowsp_slot(f.m, 4, PTOWSP_TYPE_BOOL))) {
                            take(&f, more);
                        }
                        send(&f, more, 0);
                    }
                }
            }
        }
        compile(&f, NULL);
        assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
        assert_int_equal(ptowsp_run_explore(f.run, NULL, &stats),
                         at == 2 ? PTOWSP_STUCK : PTOWSP_OK);
        assert_int_equal(stats.state_count, at == 2 ? 3 : 1);
        if (at == 2) {
            assert_int_equal(process(&f, "use", 0)->state, PTOWSP_PROCESS_EMPTY);
            EXPECT_PARTS(
                ptowsp_context_error(f.context).text,
                "no token was ever sent to channel more: use has to send 1 before it first "
                "receives");
        }
        fixture_free(&f);
    }
}

// `keep` gets the one token of the pool for ever if it comes before `lend`, for which x has to have
// room again, which `open` makes after a race that it has with another one.
TEST(pipeline_explore__one_that_waits_for_another_may_come_first) {
    for (int gives_back = 0; gives_back < 2; gives_back++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel pool = channel(&f, "pool", 1, 0), x = channel(&f, "x", 1, 0);
                ptowsp_channel y = channel(&f, "y", 2, 0);
                fill(&f, "fill pool", pool, 1);
                PTOWSP_PROCESS(f.m, "lend") {
                    ptowsp_consumes(f.m, pool);
                    ptowsp_produces(f.m, pool);
                    take(&f, pool);
                    send(&f, pool, 0);
                }
                PTOWSP_PROCESS(f.m, "keep") {
                    ptowsp_produces(f.m, x);
                    ptowsp_consumes(f.m, pool);
                    ptowsp_produces(f.m, pool);
                    send(&f, x, 0);
                    send(&f, x, 0);
                    take(&f, pool);
                    PTOWSP_WHEN(f.m, ptowsp_bool(f.m, gives_back)) {
                        send(&f, pool, 0);
                    }
                }
                PTOWSP_PROCESS(f.m, "open") {
                    ptowsp_consumes(f.m, y);
                    ptowsp_consumes(f.m, x);
                    busy(&f, 50);
                    take(&f, y);
                    take(&f, x);
                    take(&f, x);
                }
                PTOWSP_PROCESS(f.m, "other") {
                    ptowsp_consumes(f.m, y);
                    take(&f, y);
                }
                fill(&f, "fill y", y, 2);
            }
        }
        compile(&f, NULL);
        assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
        assert_int_equal(explore(&f), gives_back ? PTOWSP_OK : PTOWSP_STUCK);
        fixture_free(&f);
    }
}

// Two states that differ only in the order of two tokens in a channel, of which the second gets
// stuck: who reads it has a race before.
TEST(pipeline_explore__the_order_of_tokens_that_decide_is_kept) {
    for (int64_t bad = 2; bad <= 3; bad++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 2, 0), y = channel(&f, "y", 2, 0);
                for (int i = 1; i <= 2; i++) {
                    PTOWSP_PROCESS(f.m, i == 1 ? "one" : "two") {
                        ptowsp_produces(f.m, a);
                        busy(&f, i);
                        send(&f, a, i);
                    }
                }
                fill(&f, "fill", y, 2);
                PTOWSP_PROCESS(f.m, "use") {
                    ptowsp_consumes(f.m, y);
                    ptowsp_consumes(f.m, a);
                    ptowsp_produces(f.m, y);
                    take(&f, y);
                    PTOWSP_RECEIVE(f.m, first, a) {
                        PTOWSP_WHEN(f.m, ptowsp_eq(first, number(&f, bad))) {
                            take(&f, y);
                            take(&f, y);
                        }
                    }
                }
                PTOWSP_PROCESS(f.m, "other") {
                    ptowsp_consumes(f.m, y);
                    take(&f, y);
                }
            }
        }
        compile(&f, NULL);
        assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
        assert_int_equal(explore(&f), bad == 2 ? PTOWSP_STUCK : PTOWSP_OK);
        fixture_free(&f);
    }
}

// -- limits and errors ----------------------------------------------------------------------------

// b sends to c as well, but only after a token of d, which a sends after two of its own: so a's tokens come
// first, though it is not alone. After the last one a reads an array beyond its end, or not.
static void only_move_make(fixture *f, bool fails) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel c = channel(f, "c", 3, 0), d = channel(f, "d", 1, 0);
            PTOWSP_PROCESS(f->m, "a") {
                ptowsp_produces(f->m, c);
                ptowsp_produces(f->m, d);
                send(f, c, 1);
                send(f, c, 2);
                PTOWSP_WHEN(f->m, ptowsp_eq(ptowsp_array_at(f->m, "limits", PTOWSP_I32,
                                                            number(f, fails ? 3 : 2)),
                                            number(f, 0))) {
                    send(f, d, 3);
                }
            }
            PTOWSP_PROCESS(f->m, "b") {
                ptowsp_produces(f->m, c);
                ptowsp_consumes(f->m, d);
                take(f, d);
                send(f, c, 4);
            }
            consumer(f, "get", c, 0, 1);
        }
    }
    compile(f, NULL);
}

TEST(pipeline_explore__limits_are_kept_and_named) {
    fixture f;
    ptowsp_explore_stats stats;
    ptowsp_explore_options options = {0};
    workers_make(&f, 8, 2, 8);
    assert_int_equal(ptowsp_run_explore(f.run, &options, &stats), PTOWSP_OK);
    const ptowsp_explore_stats all = stats;
    options.state_limit = all.state_count;
    options.step_limit = all.step_count;
    assert_int_equal(ptowsp_run_explore(f.run, &options, &stats), PTOWSP_OK);
    options.state_limit--;
    assert_int_equal(ptowsp_run_explore(f.run, &options, &stats), PTOWSP_LIMIT_EXCEEDED);
    assert_int_equal(stats.state_count, options.state_limit);
    EXPECT_PARTS(ptowsp_context_error(f.context).text,
                 "run: not all orders of pipeline p have been explored, of ",
                 " at most; none of those explored gets stuck");
    options.state_limit = 0;
    options.step_limit--;
    assert_int_equal(ptowsp_run_explore(f.run, &options, &stats), PTOWSP_LIMIT_EXCEEDED);
    assert_in_range(stats.step_count, options.step_limit, options.step_limit + 1);
    for (options.step_limit = 1; options.step_limit < all.step_count; options.step_limit++) {
        assert_int_equal(ptowsp_run_explore(f.run, &options, &stats), PTOWSP_LIMIT_EXCEEDED);
        assert_in_range(stats.step_count, options.step_limit, options.step_limit + 1);
    }
    options.step_limit = 0;
    static const int32_t limits[] = {0, 0, 0};
    fixture only;
    only_move_make(&only, false);
    assert_int_equal(ptowsp_run_bind_array(only.run, "limits", PTOWSP_I32, limits, 3), PTOWSP_OK);
    assert_int_equal(ptowsp_run_explore(only.run, NULL, &stats), PTOWSP_OK);
    assert_int_equal(stats.step_count, 9);  // four sends, each received, and an end
    assert_int_equal(stats.state_count, 0);
    for (options.step_limit = 1; options.step_limit < 9; options.step_limit++) {
        assert_int_equal(ptowsp_run_explore(only.run, &options, &stats), PTOWSP_LIMIT_EXCEEDED);
        assert_int_equal(stats.step_count, options.step_limit);
    }
    fixture_free(&only);
    options.step_limit = 0;
    options.time_limit_ns = 1;
    assert_int_equal(ptowsp_run_explore(f.run, &options, NULL), PTOWSP_TIMED_OUT);
    options.time_limit_ns = UINT64_MAX;
    assert_int_equal(ptowsp_run_explore(f.run, &options, NULL), PTOWSP_OK);
    assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
    fixture_free(&f);
}

// A token that is one more each time it comes round, and decides: no two states are the same.
static void counter_make(fixture *f) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel a = channel(f, "a", 2, 0);
            for (int i = 0; i < 2; i++) {
                PTOWSP_PROCESS(f->m, i ? "one" : "zero") {
                    ptowsp_produces(f->m, a);
                    ptowsp_consumes(f->m, a);
                    send(f, a, 1);
                    PTOWSP_CONSUME(f->m, t, a) {
                        PTOWSP_WHEN(f->m, ptowsp_ne(t, number(f, 0))) {
                            ptowsp_send_make(f->m, a, linear(f, t, 1, 1));
                        }
                    }
                }
            }
        }
    }
    compile(f, NULL);
}

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

TEST(pipeline_explore__is_cancelled_by_another_thread) {
    fixture f;
    pthread_t thread;
    ptowsp_explore_options options = {0};
    options.step_limit = options.state_limit = UINT64_MAX;
    counter_make(&f);
    canceller c = {f.run, 0};
    assert_int_equal(pthread_create(&thread, NULL, cancel, &c), 0);
    ptowsp_status status = ptowsp_run_explore(f.run, &options, NULL);
    __atomic_store_n(&c.is_over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_int_equal(status, PTOWSP_CANCELLED);
    fixture_free(&f);
}

// A slot from what a task writes: it decides, or it is only given to a task.
static void load_make(fixture *f, bool decides) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel a = channel(f, "a", 1, 0);
            const ptowsp_view view = {.tensor = f->x, .rows = 1, .cols = 1};
            PTOWSP_PROCESS(f->m, "ask") {
                ptowsp_produces(f->m, a);
                touch(f, f->put, f->x, number(f, 0), 0, number(f, 1), 5);
                ptowsp_slot_load_make(f->m, 3, &view, number(f, 0), number(f, 0));
                ptowsp_expr loaded = ptowsp_slot(f->m, 3, PTOWSP_TYPE_I64);
                work(f, loaded, 3);
                PTOWSP_WHEN(f->m,
                            decides ? ptowsp_eq(loaded, number(f, 1)) : ptowsp_bool(f->m, true)) {
                    send(f, a, 1);
                }
            }
            consumer(f, "use", a, 0, 1);
        }
    }
    compile(f, NULL);
    test_bind(f->run, "x", f->x_data);
}

TEST(pipeline_explore__data_of_kernels_must_not_decide) {
    fixture f;
    load_make(&f, false);
    assert_int_equal(explore(&f), PTOWSP_OK);
    fixture_free(&f);
    load_make(&f, true);
    assert_int_equal(explore(&f), PTOWSP_UNSUPPORTED);
    test_error_is(f.context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                  "main/pipeline p/process ask/slot_load 3: it loads from tensor x, which tasks "
                  "write, and sends or receives depend on it: orders of them are known only by "
                  "executing");
    fixture_free(&f);
}

// `ask` loads a slot from x, which no task writes. If that is 1 it waits for what only itself sends.
TEST(pipeline_explore__a_slot_loaded_from_bound_data_decides) {
    for (int32_t loaded = 0; loaded < 2; loaded++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 1, 0);
                const ptowsp_view view = {.tensor = f.x, .rows = 2, .cols = 2};
                PTOWSP_PROCESS(f.m, "ask") {
                    ptowsp_produces(f.m, a);
                    ptowsp_consumes(f.m, a);
                    ptowsp_slot_load_make(f.m, 3, &view, number(&f, 1), number(&f, 0));
                    PTOWSP_WHEN(f.m,
                                ptowsp_eq(ptowsp_slot(f.m, 3, PTOWSP_TYPE_I64), number(&f, 1))) {
                        take(&f, a);
                    }
                    send(&f, a, 1);
                }
            }
        }
        compile(&f, NULL);
        ptowsp_buffer buffer = {.data = f.x_data};
        f.x_data[SIDE] = loaded;  // row 1
        assert_int_equal(ptowsp_run_bind_tensor(f.run, "x", &buffer), PTOWSP_OK);
        assert_int_equal(explore(&f), loaded ? PTOWSP_STUCK : PTOWSP_OK);
        if (loaded) {
            expect_steps(&f, "ask", 0, "");
        }
        fixture_free(&f);
    }
}

// One of two tokens is received, and only after a race on another channel it is looked at: so it is kept
// in a state meanwhile, with all its bits.
TEST(pipeline_explore__tokens_that_decide_are_kept_whole) {
    static const int64_t values[] = {1, 127, 128, 129, 16384, INT64_MAX, -1, INT64_MIN};
    const size_t count = sizeof values / sizeof values[0];
    for (size_t i = 0; i < count * count; i++) {
        const int64_t sent = values[i / count], looked_for = values[i % count];
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 1, 0), race = channel(&f, "race", 2, 0);
                ptowsp_channel more = channel(&f, "more", 1, 0);
                PTOWSP_PROCESS(f.m, "tell") {
                    ptowsp_produces(f.m, a);
                    send(&f, a, sent);
                }
                for (int k = 0; k < 2; k++) {
                    PTOWSP_PROCESS(f.m, k ? "one" : "zero") {
                        ptowsp_produces(f.m, race);
                        send(&f, race, k);
                    }
                }
                PTOWSP_PROCESS(f.m, "use") {
                    ptowsp_consumes(f.m, a);
                    ptowsp_consumes(f.m, race);
                    ptowsp_consumes(f.m, more);
                    ptowsp_produces(f.m, more);
                    PTOWSP_RECEIVE(f.m, t, a) {
                        take(&f, race);
                        take(&f, race);
                        PTOWSP_WHEN(f.m, ptowsp_eq(t, number(&f, looked_for))) {
                            take(&f, more);
                        }
                    }
                    send(&f, more, 0);
                }
            }
        }
        compile(&f, NULL);
        ptowsp_explore_stats stats;
        assert_int_equal(ptowsp_run_explore(f.run, NULL, &stats),
                         sent == looked_for ? PTOWSP_STUCK : PTOWSP_OK);
        assert_true(stats.state_count > 0);
        fixture_free(&f);
    }
}

// A process calls a workload with scopes, an edge and transient data, which change no order.
TEST(pipeline_explore__scopes_of_called_workloads_are_passed) {
    fixture f;
    fixture_make(&f);
    const ptowsp_tensor_desc scratch = {
        "scratch", PTOWSP_I32, 2, {SIDE, SIDE, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_tensor t = ptowsp_tensor_transient(f.m, &scratch, NULL);
    PTOWSP_WORKLOAD(f.m, "called") {
        PTOWSP_PARALLEL(f.m, i, axis(&f, "four", 4)) {
            PTOWSP_FOR_EACH(f.m, k, axis(&f, "two", 2)) {
                (void)k;
                const ptowsp_node first = touch(&f, f.put, t, i, 0, i, 1);
                ptowsp_task_desc second = task_desc(&f, f.sees, i, 2);
                second.views[0].tensor = t;
                second.views[0].row = i;
                second.views[0].col = number(&f, 0);
                second.after[0] = first;
                ptowsp_task_make(f.m, &second);
            }
        }
    }
    PTOWSP_WORKLOAD(f.m, "main") {
        ptowsp_call_make(f.m, "called", NULL, 0);  // before the pipeline, too
        PTOWSP_COMBINE(f.m) {                      // a scope around a pipeline
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 1, 0);
                PTOWSP_PROCESS(f.m, "put") {
                    ptowsp_produces(f.m, a);
                    ptowsp_call_make(f.m, "called", NULL, 0);
                    send(&f, a, 1);
                }
                PTOWSP_PROCESS(f.m, "get") {
                    ptowsp_consumes(f.m, a);
                    take(&f, a);
                }
            }
        }
    }
    compile(&f, NULL);
    ptowsp_explore_stats stats;
    assert_int_equal(ptowsp_run_explore(f.run, NULL, &stats), PTOWSP_OK);
    assert_int_equal(stats.step_count, 2);  // a send and a receive
    assert_int_equal(stats.state_count, 0);
    assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
    // On one lane, and then in a process, it is one task after another.
    assert_int_equal(makespan(&f), 2 * 4 * 2 * (1 + 2));
    fixture_free(&f);
}

static void closed_make(fixture *f) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel a = channel(f, "a", 1, 0);
            PTOWSP_PROCESS(f->m, "talk") {
                ptowsp_produces(f->m, a);
                send(f, a, 1);
                ptowsp_close_make(f->m, a);
                send(f, a, 2);
            }
            consumer(f, "use", a, 0, 1);
        }
    }
    compile(f, NULL);
}

// A read of array `limits` by a token decides; its depth is a symbol.
static void limits_make(fixture *f) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            const ptowsp_channel_desc desc = {"a", 0, 0, ptowsp_symbol(f->m, "depth"), {NULL, 0}};
            ptowsp_channel a = ptowsp_channel_make(f->m, &desc);
            fill(f, "fill", a, 4);
            PTOWSP_PROCESS(f->m, "use") {
                ptowsp_consumes(f->m, a);
                PTOWSP_CONSUME(f->m, t, a) {
                    PTOWSP_WHEN(f->m, ptowsp_eq(ptowsp_array_at(f->m, "limits", PTOWSP_I32, t),
                                                number(f, 1))) {
                        take(f, a);
                    }
                }
            }
        }
    }
    compile(f, NULL);
}

TEST(pipeline_explore__errors_are_those_of_executing) {
    static const int32_t limits[] = {1, 0, 0};
    fixture f;
    closed_make(&f);
    assert_int_equal(explore(&f), PTOWSP_INVALID_PARAMS);
    test_error_is(f.context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "main/pipeline p/process talk/send a: it sends to channel a after closing it");
    fixture_free(&f);
    limits_make(&f);
    assert_int_equal(explore(&f), PTOWSP_UNBOUND);
    EXPECT_PARTS(ptowsp_context_error(f.context).text, "depth");
    assert_int_equal(ptowsp_run_bind_array(f.run, "limits", PTOWSP_I32, limits, 3), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_symbol(f.run, "depth", PTOWSP_CHANNEL_DEPTH_MAX + 1),
                     PTOWSP_OK);
    ptowsp_status status = explore(&f);
    assert_true(status == PTOWSP_LIMIT_EXCEEDED || status == PTOWSP_INVALID_PARAMS);
    EXPECT_PARTS(ptowsp_context_error(f.context).text, "channel a");
    assert_int_equal(ptowsp_run_bind_symbol(f.run, "depth", 2), PTOWSP_OK);
    assert_int_equal(explore(&f), PTOWSP_INVALID_PARAMS);
    EXPECT_PARTS(ptowsp_context_error(f.context).text, "main/pipeline p/process use", "limits",
                 "3");
    fixture_free(&f);
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            PTOWSP_PROCESS(f.m, "first") {  // before any send
                ptowsp_produces(f.m, a);
                PTOWSP_WHEN(f.m,
                            ptowsp_eq(ptowsp_array_at(f.m, "limits", PTOWSP_I32, number(&f, 2)),
                                      number(&f, 1))) {
                    send(&f, a, 0);
                }
            }
            consumer(&f, "use", a, 0, 1);
        }
    }
    compile(&f, NULL);
    assert_int_equal(ptowsp_run_bind_array(f.run, "limits", PTOWSP_I32, limits, 2), PTOWSP_OK);
    assert_int_equal(explore(&f), PTOWSP_INVALID_PARAMS);
    EXPECT_PARTS(ptowsp_context_error(f.context).text, "main/pipeline p/process first", "limits");
    assert_int_equal(ptowsp_run_bind_array(f.run, "limits", PTOWSP_I32, limits, 3), PTOWSP_OK);
    assert_int_equal(explore(&f), PTOWSP_OK);
    fixture_free(&f);
}

static void explore_inside(void *user) {
    fixture *f = (fixture *)user;
    ptowsp_explore_stats stats = {7, 7};
    assert_int_equal(ptowsp_run_explore(f->run, NULL, &stats), PTOWSP_BUSY);
    assert_int_equal(stats.state_count + stats.step_count, 0);
}

TEST(pipeline_explore__an_only_move_may_end_in_an_error) {
    static const int32_t limits[] = {0, 0, 0};
    fixture f;
    only_move_make(&f, true);
    assert_int_equal(ptowsp_run_bind_array(f.run, "limits", PTOWSP_I32, limits, 3), PTOWSP_OK);
    assert_int_equal(explore(&f), PTOWSP_INVALID_PARAMS);
    EXPECT_PARTS(ptowsp_context_error(f.context).text, "main/pipeline p/process a", "limits", "3");
    fixture_free(&f);
}

TEST(pipeline_explore__is_busy_while_the_run_executes) {
    fixture f;
    pool_make(&f, 3, 2, 2, false);
    f.inside = explore_inside;
    f.inside_user = &f;
    assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
    f.inside = NULL;
    assert_int_equal(explore(&f), PTOWSP_OK);
    fixture_free(&f);
}

// Three replicas that are alike, and take three tokens.
static void alike_build(fixture *f) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel work_at = channel(f, "work", 3, 0);
            fill(f, "fill", work_at, 3);
            PTOWSP_REPLICATE(f->m, w, axis(f, "workers", 3), "worker") {
                (void)w;
                ptowsp_consumes(f->m, work_at);
                PTOWSP_CONSUME(f->m, t, work_at) {
                    work(f, t, 1);
                }
            }
        }
    }
    compile(f, NULL);
}

// Each allocation refused once: an error, nothing lost, and it works the next time.
TEST(pipeline_explore__every_allocation_may_be_refused) {
    uint64_t refused = 0;
    for (int tokens = 2; tokens <= 8;
         tokens++) {  // two that take 2, 2, 3, 3, 4 and 4 of them; 8: replicas
        const int need = tokens / 2 + 1 - (tokens == 8);
        const ptowsp_status expected = tokens <= 2 * (need - 1) ? PTOWSP_STUCK : PTOWSP_OK;
        for (size_t i = 1;; i++) {
            test_memory memory = {0};
            ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
            fixture f;
            fixture_make_with(&f, &desc);
            if (tokens == 8) {
                alike_build(&f);
            } else {
                pool_build(&f, tokens, 2, need, false);
            }
            memory.refuse_at = memory.allocations + i;
            ptowsp_status status = explore(&f);
            bool is_over = memory.allocations < memory.refuse_at;
            assert_int_equal(status, is_over ? expected : PTOWSP_OUT_OF_MEMORY);
            memory.refuse_at = 0;
            assert_int_equal(explore(&f), expected);
            fixture_free(&f);
            assert_int_equal(memory.live_blocks, 0);
            refused += !is_over;
            if (is_over) {
                break;
            }
        }
    }
    assert_true(refused > 20);
}
