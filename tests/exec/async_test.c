// Started, cancelled and limited executions: at random times, repeated with the same results; and what is refused.
// Every kind of execution meets every limit in limits_test.c.

#include "mixer.h"

#include "src/base/os.h"

// A hook: threads of started executions may be refused.
static bool threads_are_refused;

static bool start_thread(pwsp_thread *out_thread, pwsp_thread_fn fn, void *arg);
#define pwsp_thread_start start_thread
#include "src/base/start.c"
#undef pwsp_thread_start

static bool start_thread(pwsp_thread *out_thread, pwsp_thread_fn fn, void *arg) {
    return !threads_are_refused && pwsp_thread_start(out_thread, fn, arg);
}

enum { LANES = 3 };

static ptowsp_context *three_lanes(void) {
    return test_lanes(LANES);
}

static void assert_ended(ptowsp_context *context, ptowsp_status status, ptowsp_status expected) {
    if (status != expected) {
        fail_msg("%s, not %s: %s", ptowsp_status_name(status), ptowsp_status_name(expected),
                 ptowsp_context_error(context).text);
    }
}

// -- who cancels ----------------------------------------------------------------------------------

typedef struct canceller {
    ptowsp_run *run;
    ptowsp_graph *graph;
    uint32_t delay;
    pthread_t thread;
} canceller;

static void *cancel_main(void *arg) {
    const canceller *c = (const canceller *)arg;
    device_spend(c->delay);
    if (c->run) {
        ptowsp_run_cancel(c->run);
    } else {
        ptowsp_graph_cancel(c->graph);
    }
    return NULL;
}

static void cancel_begin(canceller *c) {
    assert_int_equal(pthread_create(&c->thread, NULL, cancel_main, c), 0);
}

static void cancel_end(canceller *c) {
    assert_int_equal(pthread_join(c->thread, NULL), 0);
}

// -- programs -------------------------------------------------------------------------------------

enum { ON_ONE, ON_LANES, ON_DEVICE, PLACES };

static ptowsp_status start_at(int place, ptowsp_run *run, ptowsp_device *device,
                              ptowsp_run_options *options) {
    options->lane_count = place == ON_LANES ? LANES : 1;
    return place == ON_DEVICE ? ptowsp_device_start(device, run, options)
                              : ptowsp_run_start(run, options);
}

static ptowsp_status execute_at(int place, ptowsp_run *run, ptowsp_device *device,
                                ptowsp_run_options *options) {
    options->lane_count = place == ON_LANES ? LANES : 1;
    return place == ON_DEVICE ? ptowsp_device_run(device, run, options)
                              : ptowsp_run_execute(run, options);
}

DEVICE_TEST(async__cancelled_at_any_time_a_run_can_be_repeated) {
    uint64_t random = test_seed();
    uint32_t cancelled[PLACES] = {0, 0, 0}, done = 0;
    for (int round = 0; TEST_ROUNDS(round, 60); round++) {
        ptowsp_context *context = three_lanes();
        ptowsp_device *device = device_of(context, 2, 3, 1);
        ptowsp_schedule schedule = random_schedule(&random);
        mixer m = {0};
        mixer_build(&m, context, true, &schedule);
        mixer_random(&m, &random);
        memset(m.fails, 0, sizeof m.fails);
        uint64_t begin[ROWS * COLS], expected[ROWS * COLS];
        uint64_t *data = (uint64_t *)piece_of(device, "x", sizeof begin);
        for (int i = 0; i < ROWS * COLS; i++) {
            begin[i] = test_random(&random);
        }
        memcpy(expected, begin, sizeof begin);
        ptowsp_run *reference = mixer_run(&m, expected), *run = mixer_run(&m, data);
        ptowsp_run_options options = {.record_tasks = test_random_in(&random, 0, 1) == 1};
        assert_ok(ptowsp_run_execute(reference, &options));
        for (int i = 0; i < 9; i++) {
            int place = i % PLACES;
            canceller c = {.run = run, .delay = (uint32_t)test_random_in(&random, 0, 120000)};
            memcpy(data, begin, sizeof begin);
            assert_ok(start_at(place, run, device, &options));
            cancel_begin(&c);
            ptowsp_status status = ptowsp_run_wait(run);
            cancel_end(&c);
            if (status != PTOWSP_OK) {
                assert_ended(context, status, PTOWSP_CANCELLED);
                assert_int_equal(ptowsp_context_error(context).status, PTOWSP_CANCELLED);
                memcpy(data, begin, sizeof begin);
                cancelled[place]++;
                assert_ended(context, execute_at(place, run, device, &options), PTOWSP_OK);
            } else {
                done++;
            }
            assert_memory_equal(data, expected, sizeof begin);
            same_results(reference, run);
        }
        ptowsp_run_destroy(reference);
        ptowsp_run_destroy(run);
        mixer_free(&m);
        assert_ok(ptowsp_device_free(device, data));
        assert_ok(ptowsp_device_close(device));
        ptowsp_context_destroy(context);
    }
    print_message("cancelled %u, %u, %u; done %u\n", cancelled[0], cancelled[1], cancelled[2],
                  done);
    assert_met(cancelled[ON_ONE] && cancelled[ON_LANES] && cancelled[ON_DEVICE] && done);
}

// A program of one loop: tasks, a pipeline whose tokens circulate, or nothing, without end.
typedef enum endless { TASKS_OF_C, TASKS_PLAIN, TOKENS, TOKENS_IN_ONE, NOTHING, ENDLESS } endless;

typedef struct endless_program {
    fixture made;
    ptowsp_run *run;
    uint64_t called;     // atomic
    uint64_t cancel_at;  // the call that cancels the run; 0: none
} endless_program;

static ptowsp_cycles note_call(const ptowsp_task *task, void *user) {
    (void)task;
    __atomic_fetch_add((uint64_t *)user, UINT64_C(1), __ATOMIC_RELAXED);
    device_spend(200);
    return 1;
}

static ptowsp_cycles count_call(const ptowsp_task *task, void *user) {
    endless_program *p = (endless_program *)user;
    (void)task;
    uint64_t called = __atomic_add_fetch(&p->called, UINT64_C(1), __ATOMIC_RELAXED);
    if (called == p->cancel_at) {
        ptowsp_run_cancel(p->run);
    }
    device_spend(2000);
    return 1;
}

#define NOTES  "kernel note(axes 1) vector, 1 cycles\nworkload main\n"
#define MANY   "module m slots 2\naxis many 1099511627776\n" NOTES "  for_each i in many\n"
#define STAGES "module m\n" NOTES "  pipeline pipe\n    channel ring depth 3 latency 1\n"

static void endless_build(endless_program *p, ptowsp_context *context, endless what,
                          const ptowsp_schedule *schedule) {
    static const char *const texts[ENDLESS] = {
        [TASKS_OF_C] = MANY "    task note(i + 1)\n",
        [TASKS_PLAIN] = MANY "    task note(i)\n",
        [NOTHING] = MANY "    slot_set 1 = i\n",
        [TOKENS] = STAGES "    channel back depth 3 latency 1\n"
                          "    process one consumes back produces ring\n      send ring(1)\n"
                          "      consume token from back\n        send ring(token)\n"
                          "    process two consumes ring produces back\n"
                          "      consume token from ring\n        send back(token)\n",
        [TOKENS_IN_ONE] = STAGES "    process one consumes ring produces ring\n"
                                 "      send ring(1)\n      consume token from ring\n"
                                 "        send ring(token)\n"};
    memset(p, 0, sizeof *p);
    const ptowsp_parse_kernel note = {.name = "note", .fn = count_call, .user = p};
    p->made = program_of(context, texts[what], &note, 1, schedule);
    p->run = p->made.run;
}

static void endless_free(endless_program *p) {
    fixture_clear(&p->made);
}

DEVICE_TEST(async__what_has_no_end_is_ended) {
    uint64_t random = test_seed();
    for (int round = 0; round < ENDLESS * 2 * 4; round++) {
        endless what = (endless)(round % ENDLESS);
        bool is_limited = round / ENDLESS % 2 == 1;
        int place = round / ENDLESS / 2 % 4;  // and 3: time only
        ptowsp_context *context = three_lanes();
        ptowsp_device *device = device_of(context, 1, 2, 1);
        ptowsp_schedule schedule = {.lane_count = 2, .window = 64};
        endless_program p;
        endless_build(&p, context, what, test_random_in(&random, 0, 1) ? &schedule : NULL);
        ptowsp_run_options options = {.mode = place == 3 ? PTOWSP_RUN_TIME_ONLY : 0,
                                      .time_limit_ns = is_limited ? 4000000 : 0};
        canceller c = {.run = p.run, .delay = (uint32_t)test_random_in(&random, 0, 400000)};
        assert_ok(start_at(place, p.run, device, &options));
        if (is_limited) {
            assert_ended(context, ptowsp_run_wait(p.run), PTOWSP_TIMED_OUT);
        } else {
            cancel_begin(&c);
            assert_ended(context, ptowsp_run_wait(p.run), PTOWSP_CANCELLED);
            cancel_end(&c);
        }
        uint64_t called = p.called;
        device_spend(100000);
        assert_true(p.called == called);  // nothing goes on
        assert_true(place != 3 || called == 0);
        // A limit beyond the end of all clocks is none: cancelled before it.
        options.time_limit_ns = UINT64_MAX;
        assert_ok(start_at(place, p.run, device, &options));
        ptowsp_run_cancel(p.run);
        assert_ended(context, ptowsp_run_wait(p.run), PTOWSP_CANCELLED);
        endless_free(&p);
        assert_ok(ptowsp_device_close(device));
        ptowsp_context_destroy(context);
    }
}

// A kernel that returns after the time limit of its run; one task after the other.
#define LATE "module m\n" NOTES "  sequence\n    task note(0)\n"

typedef struct late_kernel {
    uint64_t called, until_ns;
} late_kernel;

static ptowsp_cycles late_call(const ptowsp_task *task, void *user) {
    late_kernel *late = (late_kernel *)user;
    (void)task;
    late->called++;
    while (ptowsp_clock_ns() < late->until_ns) {
    }
    return 1;
}

DEVICE_TEST_IN(three_lanes(), 1, 1, 0, async__a_limit_that_passes_in_the_last_kernel_ends_nothing) {
    late_kernel late = {0};
    const ptowsp_parse_kernel kernel = {.name = "note", .fn = late_call, .user = &late};
    for (int tasks = 1; tasks <= 2; tasks++) {
        const fixture f =
            program_of(context, tasks == 1 ? LATE : LATE "    task note(1)\n", &kernel, 1, NULL);
        for (int place = 0; place < PLACES; place++) {
            ptowsp_run_options options = {.time_limit_ns = 20000000};
            const ptowsp_status expected = tasks == 1 ? PTOWSP_OK : PTOWSP_TIMED_OUT;
            ptowsp_status status = PTOWSP_BUSY;
            // On a slow machine the limit may pass before the kernel begins: again then.
            for (int i = 0; i < 50 && status != expected; i++) {
                late.called = 0;
                late.until_ns = ptowsp_clock_ns() + 60000000;
                status = execute_at(place, f.run, device, &options);
            }
            assert_ended(context, status, expected);
            assert_true(late.called <= 1);  // the second one would begin after it
        }
        test_destroy(f.run, f.program, f.module, NULL);
    }
}

// In time alone a cost function cancels, and what comes next in its process is a task of constant cycles,
// which is not counted any more.
CONTEXT_TEST(async__a_cost_function_cancels_a_pipeline) {
    endless_program p = {.cancel_at = 3};
    const ptowsp_parse_kernel kernels[2] = {
        {.name = "cancels", .fn = count_call, .cost = count_call, .user = &p},
        {.name = "constant", .fn = note_call, .user = &p}};
    p.made = program_of(
        context,
        "module m\naxis n 10\nkernel cancels(axes 0) vector, cycles by a cost function\n"
        "kernel constant(axes 0) vector, 5 cycles\nworkload main\n  pipeline pipe\n"
        "    process one\n      for_each i in n\n        task cancels()\n        task constant()\n",
        kernels, 2, NULL);
    p.run = p.made.run;
    assert_ended(context, test_time(p.run), PTOWSP_CANCELLED);
    assert_int_equal(p.called, 3);
    assert_int_equal(ptowsp_run_result(p.run)->task_count, 5);  // 1 + 5, 1 + 5, 1 cycles
    assert_int_equal(ptowsp_run_result(p.run)->makespan_cycles, 13);
    p.cancel_at = 0;
    assert_ok(test_time(p.run));
    assert_int_equal(ptowsp_run_result(p.run)->makespan_cycles, 60);
    endless_free(&p);
}

static void bind_left(ptowsp_run *run, const mixer *m) {
    assert_ok(ptowsp_run_bind_array(run, "left", PTOWSP_I64, m->left, STEPS * TASKS));
}

DEVICE_TEST(async__the_next_step_is_bound_while_this_one_runs) {
    uint64_t random = test_seed();
    ptowsp_context *context = three_lanes();
    mixer other;
    mixer m = {0};
    mixer_build(&m, context, true, NULL);
    mixer_random(&m, &random);
    memset(m.fails, 0, sizeof m.fails);
    other = m;
    mixer_random(&other, &random);
    const mixer *steps[2] = {&m, &other};
    for (uint32_t lanes = 1; lanes <= LANES; lanes += 2) {
        uint64_t data[2][ROWS * COLS], expected[2][ROWS * COLS];
        memset(data, 1, sizeof data);
        memset(expected, 1, sizeof expected);
        ptowsp_run *runs[2] = {mixer_run(&m, data[0]), mixer_run(&m, data[1])};
        ptowsp_run *alone[2] = {mixer_run(&m, expected[0]), mixer_run(&m, expected[1])};
        ptowsp_run_options options = {.lane_count = lanes};
        for (int step = 0; step < 20; step++) {
            const mixer *now = steps[test_random_in(&random, 0, 1)];
            ptowsp_run *run = runs[step % 2], *other_run = runs[1 - step % 2];
            // The step before is at work, while this one is bound.
            bind_left(run, now);
            bind_left(alone[step % 2], now);
            assert_invalid(ptowsp_run_bind_size(run, "nothing", 1));
            if (step > 0 && lanes > 1) {
                assert_int_equal(ptowsp_run_execute(alone[step % 2], NULL), PTOWSP_BUSY);
                assert_int_equal(ptowsp_run_start(run, &options), PTOWSP_BUSY);
                assert_ended(context, ptowsp_run_wait(other_run), PTOWSP_OK);
            }
            assert_ok(ptowsp_run_execute(alone[step % 2], NULL));
            if (step > 0 && lanes == 1) {  // it has been executed beside the started one
                assert_ended(context, ptowsp_run_wait(other_run), PTOWSP_OK);
            }
            assert_ok(ptowsp_run_start(run, &options));
        }
        assert_ended(context, ptowsp_run_wait(runs[1]), PTOWSP_OK);
        assert_memory_equal(data, expected, sizeof data);
        for (int i = 0; i < 2; i++) {
            ptowsp_run_destroy(runs[i]);
            ptowsp_run_destroy(alone[i]);
        }
    }
    mixer_free(&m);
    ptowsp_context_destroy(context);
}

// -- graphs ---------------------------------------------------------------------------------------

enum { GRAPH_TASKS = 3000 };

typedef struct counted {
    uint64_t sums[GRAPH_TASKS];
    uint64_t items;  // atomic
    uint32_t delay;
} counted;

static ptowsp_status sum_before(void *user, uint64_t task, uint32_t lane) {
    counted *c = (counted *)user;
    (void)lane;
    device_spend(c->delay);
    c->sums[task] = task + (task >= 7 ? c->sums[task - 7] : 0);
    return PTOWSP_OK;
}

static ptowsp_status count_items(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)lane;
    device_spend(((counted *)user)->delay);
    __atomic_fetch_add(&((counted *)user)->items, end - begin, __ATOMIC_RELAXED);
    return PTOWSP_OK;
}

static ptowsp_graph *counted_graph(ptowsp_context *context, counted *c, bool is_classed) {
    ptowsp_graph *graph = graph_of(context);
    for (uint32_t i = 0; i < GRAPH_TASKS; i++) {
        graph_alike(graph,
                    (ptowsp_graph_task_desc){
                        .fn = sum_before, .user = c, .priority = is_classed ? i % 3 : 0},
                    1);
        assert_ok(i < 7 ? PTOWSP_OK : ptowsp_graph_edge_make(graph, i - 7, i));
    }
    graph_alike(
        graph,
        (ptowsp_graph_task_desc){.range = count_items, .user = c, .item_count = 500, .grain = 5},
        1);
    return graph;
}

static ptowsp_status late_task(void *user, uint64_t task, uint32_t lane) {
    const ptowsp_task as_task = {.index = task, .lane = lane};
    return late_call(&as_task, user) == 1 ? PTOWSP_OK : PTOWSP_KERNEL_FAILED;
}

DEVICE_TEST_IN(three_lanes(), 1, 1, 0,
               async__a_limit_that_passes_in_the_last_task_of_a_graph_ends_nothing) {
    ptowsp_graph *graph = graph_of(context);
    late_kernel late = {0};
    assert_ok(ptowsp_graph_limit(graph, 20000000));
    for (int tasks = 1; tasks <= 2; tasks++) {
        graph_alike(graph, (ptowsp_graph_task_desc){.fn = late_task, .user = &late}, 1);
        graph_chain(graph, (uint64_t)tasks);
        for (int is_device = 0; is_device < 2; is_device++) {
            const ptowsp_status expected = tasks == 1 ? PTOWSP_OK : PTOWSP_TIMED_OUT;
            ptowsp_status status = PTOWSP_BUSY;
            for (int i = 0; i < 50 && status != expected; i++) {  // as above
                late.called = 0;
                late.until_ns = ptowsp_clock_ns() + 60000000;
                status =
                    is_device ? ptowsp_device_run_graph(device, graph) : ptowsp_graph_run(graph);
            }
            assert_ended(context, status, expected);
            assert_true(late.called <= 1);
        }
    }
    ptowsp_graph_destroy(graph);
}

static void assert_counted(const counted *c) {
    for (uint64_t i = 0; i < GRAPH_TASKS; i++) {  // i, i - 7, i - 14, ...: n + 1 numbers
        uint64_t n = i / 7;
        assert_true(c->sums[i] == (n + 1) * i - 7 * (n * (n + 1) / 2));
    }
    assert_true(c->items == 500);
}

DEVICE_TEST(async__graphs_are_started_cancelled_and_limited) {
    uint64_t random = test_seed();
    uint32_t cancelled = 0, timed_out = 0, done = 0;
    static counted c;
    for (int round = 0; TEST_ROUNDS(round, 120); round++) {
        ptowsp_context *context = three_lanes();
        ptowsp_device *device = device_of(context, 1, 2, 0);
        bool is_on_device = round % 3 == 2;
        ptowsp_graph *graph = counted_graph(context, &c, round % 2 == 1);
        memset(&c, 0, sizeof c);
        c.delay = (uint32_t)test_random_in(&random, 0, 300);
        uint64_t limit = round % 4 < 2 ? (uint64_t)test_random_in(&random, 1, 2000000) : 0;
        limit = round % 16 == 0 ? 1 : limit;  // too short for all, however fast
        assert_ok(ptowsp_graph_limit(graph, limit));
        canceller who = {.graph = graph, .delay = (uint32_t)test_random_in(&random, 0, 900000)};
        const bool is_late = round % 8 == 2;  // cancelled when it has ended
        ptowsp_status status;
        if (is_on_device) {
            is_late ? (void)0 : cancel_begin(&who);
            status = ptowsp_device_run_graph(device, graph);
        } else {
            assert_ok(ptowsp_graph_start(graph));
            assert_int_equal(ptowsp_graph_start(graph), PTOWSP_BUSY);
            assert_int_equal(ptowsp_graph_limit(graph, 1), PTOWSP_BUSY);
            is_late ? (void)0 : cancel_begin(&who);
            while (round % 2 && (status = ptowsp_graph_poll(graph)) == PTOWSP_BUSY) {
            }
            status = round % 2 ? status : ptowsp_graph_wait(graph);
            assert_invalid(ptowsp_graph_wait(graph));
        }
        is_late ? cancel_begin(&who) : (void)0;
        cancel_end(&who);
        cancelled += status == PTOWSP_CANCELLED;
        timed_out += status == PTOWSP_TIMED_OUT;
        done += status == PTOWSP_OK;
        assert_true(status == PTOWSP_OK || status == PTOWSP_CANCELLED ||
                    (limit && status == PTOWSP_TIMED_OUT));
        const ptowsp_graph_stats stats = ptowsp_graph_result(graph);
        graph_counts(graph, stats.done_count, 0, GRAPH_TASKS + 1 - stats.done_count);
        memset(c.sums, 0, sizeof c.sums);
        c.items = 0;
        assert_ok(ptowsp_graph_limit(graph, UINT64_MAX));
        status = is_on_device ? ptowsp_device_run_graph(device, graph) : ptowsp_graph_run(graph);
        assert_ended(context, status, PTOWSP_OK);
        assert_counted(&c);
        if (!is_on_device) {
            assert_ok(ptowsp_graph_start(graph));  // and left to its end
        }
        ptowsp_graph_destroy(graph);
        assert_ok(ptowsp_device_close(device));
        ptowsp_context_destroy(context);
    }
    print_message("cancelled %u, timed out %u, done %u\n", cancelled, timed_out, done);
    assert_met(cancelled && timed_out && done);
}

// -- at the wrong time ----------------------------------------------------------------------------

DEVICE_TEST_IN(three_lanes(), 1, 1, 0, async__calls_at_the_wrong_time_have_a_status) {
    endless_program p;
    endless_build(&p, context, TASKS_OF_C, NULL);
    ptowsp_run *run = p.run;
    test_invalid(context, ptowsp_run_wait(run),
                 "run: it has not been started, or has been waited for");
    assert_invalid(ptowsp_run_poll(run));
    ptowsp_run_cancel(run);  // before the start: for nothing
    ptowsp_run_options wrong = {.lane_count = LANES + 1};
    assert_invalid(ptowsp_run_start(run, &wrong));
    assert_invalid(ptowsp_device_start(device, NULL, NULL));
    wrong.lane_count = 0;
    wrong.mode = PTOWSP_RUN_TIME_ONLY;
    assert_invalid(ptowsp_device_start(device, run, &wrong));
    assert_invalid(ptowsp_run_wait(run));
    for (int place = 0; place < PLACES; place++) {
        ptowsp_run_options options = {.mode = PTOWSP_RUN_EXECUTE};
        assert_ok(start_at(place, run, device, &options));
        assert_int_equal(start_at(place, run, device, &options), PTOWSP_BUSY);
        assert_int_equal(execute_at(place, run, device, &options), PTOWSP_BUSY);
        assert_int_equal(ptowsp_run_bind_size(run, "many", 1), PTOWSP_BUSY);
        assert_int_equal(ptowsp_run_bind_slot(run, 1, 1), PTOWSP_BUSY);
        assert_int_equal(ptowsp_run_record(run, NULL), PTOWSP_BUSY);
        assert_int_equal(ptowsp_run_poll(run), PTOWSP_BUSY);
        if (place == ON_DEVICE) {
            void *memory;
            assert_int_equal(ptowsp_device_alloc(device, NULL, 8, &memory), PTOWSP_BUSY);
            assert_int_equal(ptowsp_device_close(device), PTOWSP_BUSY);
        }
        ptowsp_run_cancel(run);
        ptowsp_run_cancel(run);
        ptowsp_status status;
        while ((status = ptowsp_run_poll(run)) == PTOWSP_BUSY) {
        }
        assert_ended(context, status, PTOWSP_CANCELLED);
        ptowsp_run_cancel(run);  // after the end
        assert_invalid(ptowsp_run_poll(run));
    }
    // A run that waits to be destroyed is cancelled, on a device too.
    ptowsp_run *others[2];
    for (int i = 0; i < 2; i++) {
        assert_ok(ptowsp_run_create(context, p.made.program, &others[i]));
        ptowsp_run_options options = {.mode = PTOWSP_RUN_EXECUTE};
        assert_ok(start_at(i ? ON_DEVICE : ON_LANES, others[i], device, &options));
        ptowsp_run_destroy(others[i]);
    }
    endless_free(&p);
}

DEVICE_TEST(async__threads_and_memory_may_be_refused) {
    for (size_t refuse_at = 0;; refuse_at++) {
        test_memory memory = {0, 0, 0, 0};
        ptowsp_context_desc desc = {.resize = test_resize,
                                    .resize_user = &memory,
                                    .threads = PTOWSP_THREADS_OWN,
                                    .lane_count = LANES};
        ptowsp_context *context = test_context(&desc);
        static counted c;
        memset(&c, 0, sizeof c);
        ptowsp_graph *graph = counted_graph(context, &c, false);
        mixer m = {0};
        uint64_t data[ROWS * COLS] = {0};
        mixer_build(&m, context, true, NULL);
        ptowsp_run *run = mixer_run(&m, data);
        ptowsp_run_options options = {.lane_count = LANES};
        assert_ok(ptowsp_graph_seal(graph));
        memory.refuse_at = refuse_at ? memory.allocations + refuse_at : 0;
        size_t least = memory.allocations;
        threads_are_refused = refuse_at == 0;
        ptowsp_status expected = refuse_at ? PTOWSP_OUT_OF_MEMORY : PTOWSP_SYSTEM_FAILED;
        ptowsp_status status = ptowsp_run_start(run, &options);
        status = status == PTOWSP_OK ? ptowsp_run_wait(run) : status;
        ptowsp_status graph_status = ptowsp_graph_start(graph);
        graph_status = graph_status == PTOWSP_OK ? ptowsp_graph_wait(graph) : graph_status;
        threads_are_refused = false;
        bool was_refused = refuse_at == 0 || memory.allocations >= memory.refuse_at;
        if (was_refused) {
            if (status != expected && graph_status != expected) {
                fail_msg("%zu: %s, %s", refuse_at, ptowsp_status_name(status),
                         ptowsp_status_name(graph_status));
            }
            assert_true(status == expected || status == PTOWSP_OK);
            memset(data, 0, sizeof data);
            memset(c.sums, 0, sizeof c.sums);
            c.items = 0;
            assert_ok(ptowsp_run_start(run, &options));
            assert_ended(context, ptowsp_run_wait(run), PTOWSP_OK);
            assert_ok(ptowsp_graph_start(graph));
            status = ptowsp_graph_wait(graph);
        }
        assert_ended(context, status, PTOWSP_OK);
        assert_counted(&c);
        ptowsp_run_destroy(run);
        mixer_free(&m);
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
        assert_true(memory.live_blocks == 0 && memory.live_bytes == 0);
        if (!was_refused) {
            assert_true(refuse_at > 5 && memory.allocations > least);
            break;
        }
    }
}
