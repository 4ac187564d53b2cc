// What goes wrong on lanes: kernels that fail, in any order, and what depends on them; errors of the
// walk and of time behind them; misuse; refused memory. The error is that of the same execution
// without lanes, to the letter.

#include "lane_program.h"

// -- failures -------------------------------------------------------------------------------------

// Executes without lanes and then some times on them: it always ends with this error.
static void fails_alike(lp *p, ptowsp_status status, uint64_t index) {
    assert_int_equal(lp_execute(p, 0), status);
    lane_error expected = lane_error_of(p->context, status);
    ptowsp_run_stats stats = *ptowsp_run_result(p->run);
    assert_true(expected.index == index);
    for (int i = 0; i < 6; i++) {
        status = lp_execute(p, p->lane_count);
        lane_error got = lane_error_of(p->context, status);
        assert_true(lane_error_is(&got, &expected));
        assert_int_equal(ptowsp_run_result(p->run)->task_count, stats.task_count);
        assert_int_equal(ptowsp_run_result(p->run)->makespan_cycles, stats.makespan_cycles);
    }
}

// The batch is of independent tasks; 7, 9 and 23 fail, the earlier the later.
static void run_lanes_faults__the_first_in_program_order_is_told(void **state) {
    lp p;
    (void)state;
    lp_begin(&p, LANE_OWN, 3);
    PTOWSP_WORKLOAD(p.m, "main") {
        PTOWSP_PARALLEL(p.m, i, p.batch) {
            PTOWSP_PARALLEL(p.m, k, p.batch) {
                lp_step(&p, 0);
            }
        }
    }
    lp_compile(&p, NULL);
    assert_int_equal(ptowsp_run_bind_size(p.run, "batch", 5), PTOWSP_OK);
    p.result[7] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    p.result[9] = ptowsp_task_fail(PTOWSP_INVALID_PARAMS);
    p.result[23] = ptowsp_task_fail(PTOWSP_UNBOUND);
    p.is_slow[7] = p.is_slow[3] = true;
    fails_alike(&p, PTOWSP_KERNEL_FAILED, 7);
    test_error_is(p.context, PTOWSP_KERNEL_FAILED, 7,
                  "main/parallel i/parallel k/task step (i = 1, k = 2): task 7 failed: "
                  "KERNEL_FAILED");
    for (int i = 0; i < 8; i++) {
        assert_int_equal(p.watch.calls[i], 1);  // all before it, and it
    }
    p.result[7] = 0;
    fails_alike(&p, PTOWSP_INVALID_PARAMS, 9);
    p.result[9] = 0;
    p.is_slow[23] = true;
    fails_alike(&p, PTOWSP_UNBOUND, 23);
    p.result[23] = 0;
    lp_works(&p, 25);
    lp_end(&p);
}

// Task `failing` fails; of the others those in `skipped` (bits) must not run, those before it do.
static void skips(lp *p, uint64_t task_count, uint64_t failing, uint64_t skipped) {
    for (int slow = 0; slow < 2; slow++) {
        p->is_slow[failing] = slow == 1;
        p->result[failing] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
        fails_alike(p, PTOWSP_KERNEL_FAILED, failing);
        assert_int_equal(lp_execute(p, p->lane_count), PTOWSP_KERNEL_FAILED);
        for (uint64_t i = 0; i < task_count; i++) {
            if (skipped >> i & 1) {
                assert_int_equal(p->watch.calls[i], 0);
            } else if (i <= failing) {
                assert_int_equal(p->watch.calls[i], 1);
            }
        }
        p->result[failing] = 0;
        lp_works(p, task_count);  // and nothing is left of it
    }
    p->is_slow[failing] = false;
}

// 0 writes, 1 to 4 read, 5 writes what they have read, 6 reads that, 7 has to do with none of it.
static void run_lanes_faults__what_shares_data_with_it_does_not_run(void **state) {
    lp p;
    (void)state;
    lp_begin(&p, LANE_OWN, 3);
    PTOWSP_WORKLOAD(p.m, "main") {
        PTOWSP_COMBINE(p.m) {
            lp_task(&p, p.touch, 0, 0, 4, 4);
            for (int i = 0; i < 4; i++) {
                lp_task(&p, p.get, 0, 0, 4, 4);
            }
            lp_task(&p, p.put, 0, 0, 4, 4);
            lp_task(&p, p.get, 3, 3, 2, 2);
            lp_task(&p, p.touch, 8, 8, 2, 2);
        }
    }
    const ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_EXPLICIT);
    lp_compile(&p, &schedule);
    skips(&p, 8, 0, 0x7e);
    for (uint64_t reader = 1; reader <= 4; reader++) {
        skips(&p, 8, reader, 0x60);
    }
    skips(&p, 8, 5, 0x40);
    skips(&p, 8, 6, 0);
    lp_end(&p);
}

// 0, then 1, 2 and (3, then 4) side by side, then 5, then 6 and 7 side by side.
static void run_lanes_faults__what_comes_after_it_does_not_run(void **state) {
    lp p;
    (void)state;
    lp_begin(&p, LANE_OWN, 3);
    PTOWSP_WORKLOAD(p.m, "main") {
        lp_step(&p, 0);
        PTOWSP_COMBINE(p.m) {
            lp_step(&p, 1);
            lp_step(&p, 2);
            PTOWSP_SEQUENCE(p.m) {
                lp_step(&p, 3);
                lp_step(&p, 4);
            }
        }
        lp_step(&p, 5);
        PTOWSP_COMBINE(p.m) {
            lp_step(&p, 6);
            lp_step(&p, 7);
        }
    }
    lp_compile(&p, NULL);
    skips(&p, 8, 0, 0xfe);
    skips(&p, 8, 1, 0xe0);
    skips(&p, 8, 2, 0xe0);
    skips(&p, 8, 3, 0xf0);
    skips(&p, 8, 4, 0xe0);
    skips(&p, 8, 5, 0xc0);
    skips(&p, 8, 6, 0);
    lp_end(&p);
}

// 2 after 0 and 1, 3 after 2; 4 to 9 in two streams.
static void run_lanes_faults__what_edges_and_streams_lead_to_does_not_run(void **state) {
    lp p;
    (void)state;
    lp_begin(&p, LANE_OWN, 3);
    PTOWSP_WORKLOAD(p.m, "main") {
        PTOWSP_COMBINE(p.m) {
            ptowsp_task_desc desc;
            memset(&desc, 0, sizeof desc);
            desc.kernel = p.step;
            desc.axes[0] = lp_number(&p, 12);
            desc.after[0] = lp_step(&p, 10);
            desc.after[1] = lp_step(&p, 11);
            desc.after[0] = ptowsp_task_make(p.m, &desc);
            desc.after[1].id = 0;
            desc.axes[0] = lp_number(&p, 13);
            ptowsp_task_make(p.m, &desc);
            for (int i = 0; i < 6; i++) {
                lp_step(&p, i % 2);
            }
        }
    }
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_EXPLICIT);
    schedule.stream_count = 16;
    schedule.stream_key = ptowsp_task_arg(p.m, 0);
    lp_compile(&p, &schedule);
    skips(&p, 10, 0, 0x0c);
    skips(&p, 10, 1, 0x0c);
    skips(&p, 10, 2, 0x08);
    skips(&p, 10, 4, 0x140);
    skips(&p, 10, 7, 0x200);
    lp_end(&p);
}

// More tasks than the ring has places: what waits for the failure is behind many that are retired.
static void run_lanes_faults__nothing_begins_behind_a_failure_in_a_long_chain(void **state) {
    lp p;
    (void)state;
    lp_begin(&p, LANE_OWN, 2);
    PTOWSP_WORKLOAD(p.m, "main") {
        PTOWSP_FOR_EACH(p.m, i, p.batch) {
            lp_step(&p, 0);
        }
    }
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_STRUCTURE);
    schedule.window = 8;
    lp_compile(&p, &schedule);
    assert_int_equal(ptowsp_run_bind_size(p.run, "batch", 200), PTOWSP_OK);
    for (uint64_t failing = 3; failing < 200; failing += 49) {
        p.result[failing] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
        fails_alike(&p, PTOWSP_KERNEL_FAILED, failing);
        for (uint64_t i = 0; i < 200; i++) {
            assert_int_equal(p.watch.calls[i], i <= failing);
        }
        p.result[failing] = 0;
    }
    lp_works(&p, 200);
    lp_end(&p);
}

// -- the walk and time ----------------------------------------------------------------------------

// What is loaded from what task 0 writes says where task 2 is: at row 1, or where `row` is added.
static void run_lanes_faults__an_error_of_the_walk_comes_after_all_before_it(void **state) {
    lp p;
    (void)state;
    lp_begin(&p, LANE_OWN, 2);
    PTOWSP_WORKLOAD(p.m, "main") {
        PTOWSP_COMBINE(p.m) {
            ptowsp_task_desc desc;
            memset(&desc, 0, sizeof desc);
            desc.kernel = p.touch;
            desc.axes[0] = lp_number(&p, 1);
            lp_task(&p, p.touch, 0, 0, 1, 1);  // 0
            lp_task(&p, p.touch, 8, 8, 1, 1);  // 1
            lp_load(&p, 0, 0, 0);
            desc.views[0] = lp_view(&p, 0, 0, 1, 1);
            desc.views[0].row = ptowsp_add(ptowsp_slot_i64(p.m, 0), ptowsp_slot_i64(p.m, 1));
            ptowsp_task_make(p.m, &desc);  // 2
        }
    }
    lp_compile(&p, NULL);
    p.is_slow[1] = true;
    lp_works(&p, 3);
    assert_int_equal(ptowsp_run_bind_slot(p.run, 1, 99), PTOWSP_OK);
    fails_alike(&p, PTOWSP_INVALID_PARAMS, 100);
    assert_int_equal(p.watch.calls[1], 1);
    p.result[1] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    fails_alike(&p, PTOWSP_KERNEL_FAILED, 1);
    p.result[0] = ptowsp_task_fail(PTOWSP_UNBOUND);
    p.is_slow[0] = true;
    fails_alike(&p, PTOWSP_UNBOUND, 0);
    lp_end(&p);
}

static void run_lanes_faults__time_ends_where_it_does_without_lanes(void **state) {
    (void)state;
    for (int what = 0; what < 4; what++) {
        lp p;
        lp_begin(&p, LANE_OWN, 2);
        PTOWSP_WORKLOAD(p.m, "main") {
            if (what == 3) {
                lp_task(&p, p.touch, 0, 0, 1, 1);
                lp_load(&p, 0, 0, 0);
            }
            PTOWSP_PARALLEL(p.m, i, p.batch) {
                lp_step(&p, 0);
            }
        }
        ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_STRUCTURE);
        schedule.window = what == 1 ? 3 : 64;
        schedule.window_policy = what == 1 ? PTOWSP_WINDOW_ABORT : PTOWSP_WINDOW_DEFAULT;
        schedule.start = what == 2   ? PTOWSP_START_ALL_ISSUED
                         : what == 3 ? PTOWSP_START_THRESHOLD
                                     : PTOWSP_START_AT_ONCE;
        schedule.start_threshold = what == 3 ? 20 : 0;
        schedule.window = what == 2 ? 5 : schedule.window;
        lp_compile(&p, &schedule);
        assert_int_equal(ptowsp_run_bind_size(p.run, "batch", 40), PTOWSP_OK);
        p.is_slow[1] = true;
        if (what == 0) {  // two of these are too much on one lane
            p.result[30] = p.result[33] = PTOWSP_CYCLES_MAX - 100;
        }
        static const ptowsp_status statuses[] = {PTOWSP_LIMIT_EXCEEDED, PTOWSP_LIMIT_EXCEEDED,
                                                 PTOWSP_STUCK, PTOWSP_STUCK};
        assert_int_equal(lp_execute(&p, 0), statuses[what]);
        fails_alike(&p, statuses[what], ptowsp_context_error(p.context).index);
        p.result[0] = ptowsp_task_fail(PTOWSP_UNBOUND);  // which comes first
        fails_alike(&p, PTOWSP_UNBOUND, 0);
        lp_end(&p);
    }
}

// -- pipelines ------------------------------------------------------------------------------------

// Process a sends `batch` tokens to a channel of depth 2, each with a task; b receives 3, each with
// a task, and ends. Before it, task 0. With cycles that are known, or not.
static void line_begin(lp *p, bool is_known) {
    lp_begin(p, LANE_OWN, 3);
    PTOWSP_WORKLOAD(p->m, "main") {
        lp_step(p, 0);
        PTOWSP_PIPELINE(p->m, "line") {
            ptowsp_task_desc desc;
            memset(&desc, 0, sizeof desc);
            desc.kernel = is_known ? p->known : p->step;
            const ptowsp_channel_desc channel = {.name = "c", .depth = 2};
            ptowsp_channel c = ptowsp_channel_make(p->m, &channel);
            PTOWSP_PROCESS(p->m, "a") {
                ptowsp_produces(p->m, c);
                PTOWSP_FOR_EACH(p->m, i, p->batch) {
                    desc.axes[0] = i;
                    ptowsp_send_task(p->m, c, &desc);
                }
            }
            PTOWSP_PROCESS(p->m, "b") {
                ptowsp_consumes(p->m, c);
                for (int i = 0; i < 3; i++) {
                    PTOWSP_RECEIVE(p->m, t, c) {
                        desc.axes[0] = t;
                        ptowsp_task_make(p->m, &desc);
                    }
                }
            }
        }
        lp_step(p, 1);
    }
    lp_compile(p, NULL);
}

static bool is_stuck_text(const ptowsp_run *run) {
    char text[2000] = "";
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    ptowsp_run_print_stuck(run, ptowsp_text_to_buffer(&buffer));
    return text[0] != 0;
}

// With 5 tokens all is well, with 6 process a is stuck: 1 + 6 + 3 tasks have run by then.
static void run_lanes_faults__pipelines_that_are_stuck_after_tasks(void **state) {
    (void)state;
    for (int is_known = 0; is_known < 2; is_known++) {
        lp p;
        line_begin(&p, is_known);
        p.is_slow[0] = p.is_slow[4] = true;
        assert_int_equal(ptowsp_run_bind_size(p.run, "batch", 5), PTOWSP_OK);
        lp_works(&p, 10);
        assert_false(is_stuck_text(p.run));
        assert_int_equal(ptowsp_run_bind_size(p.run, "batch", 6), PTOWSP_OK);
        fails_alike(&p, PTOWSP_STUCK,
                    lp_execute(&p, 0) ? ptowsp_context_error(p.context).index : 0);
        assert_true(is_stuck_text(p.run));
        for (int i = 0; i < 10; i++) {
            assert_int_equal(p.watch.calls[i], 1);
        }
        assert_int_equal(p.watch.calls[10], 0);
        // A kernel that fails before is what is told, and nothing is stuck.
        for (uint64_t failing = 0; failing < 10; failing++) {
            p.result[failing] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
            assert_int_equal(lp_execute(&p, 0), PTOWSP_KERNEL_FAILED);
            lane_error expected = lane_error_of(p.context, PTOWSP_KERNEL_FAILED);
            assert_false(is_stuck_text(p.run));
            for (int i = 0; i < 3; i++) {
                ptowsp_status status = lp_execute(&p, 3);
                lane_error got = lane_error_of(p.context, status);
                assert_true(lane_error_is(&got, &expected));
                assert_false(is_stuck_text(p.run));
                assert_true(ptowsp_run_processes(p.run, NULL)[0].state <= PTOWSP_PROCESS_STOPPED);
            }
            p.result[failing] = 0;
        }
        lp_end(&p);
    }
}

// Behind a failing task, in its process and behind the pipeline, nothing runs.
static void run_lanes_faults__a_kernel_that_fails_in_a_pipeline(void **state) {
    (void)state;
    for (int is_known = 0; is_known < 2; is_known++) {
        lp p;
        line_begin(&p, is_known);
        assert_int_equal(ptowsp_run_bind_size(p.run, "batch", 5), PTOWSP_OK);
        lp_works(&p, 10);
        for (uint64_t failing = 0; failing < 10; failing++) {
            p.is_slow[failing] = failing % 2;
            p.result[failing] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
            assert_int_equal(lp_execute(&p, 0), PTOWSP_KERNEL_FAILED);
            lane_error expected = lane_error_of(p.context, PTOWSP_KERNEL_FAILED);
            assert_true(expected.index == failing);
            for (int i = 0; i < 4; i++) {
                ptowsp_status status = lp_execute(&p, 3);
                lane_error got = lane_error_of(p.context, status);
                assert_true(lane_error_is(&got, &expected));
                assert_int_equal(p.watch.calls[9], failing == 9);
            }
            p.result[failing] = 0;
        }
        lp_works(&p, 10);
        // The first of two, though the second fails sooner.
        p.result[1] = ptowsp_task_fail(PTOWSP_UNBOUND);
        p.is_slow[1] = true;
        p.result[3] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(lp_execute(&p, 3), PTOWSP_UNBOUND);
            assert_true(ptowsp_context_error(p.context).index == 1);
        }
        lp_end(&p);
    }
}

// -- misuse ---------------------------------------------------------------------------------------

static void build_steps(lp *p, lane_kind kind, uint32_t lane_count) {
    lp_begin(p, kind, lane_count);
    PTOWSP_WORKLOAD(p->m, "main") {
        PTOWSP_PARALLEL(p->m, i, p->batch) {
            lp_task(p, p->touch, 0, 0, 2, 2);
            lp_step(p, 0);
        }
    }
    lp_compile(p, NULL);
    assert_int_equal(ptowsp_run_bind_size(p->run, "batch", 20), PTOWSP_OK);
}

static void run_lanes_faults__more_lanes_than_there_are(void **state) {
    lp p;
    (void)state;
    build_steps(&p, LANE_IN_ORDER, 3);
    ptowsp_run_options options = {.lane_count = 4};
    assert_int_equal(ptowsp_run_execute(p.run, &options), PTOWSP_INVALID_PARAMS);
    test_error_is(p.context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "run: lane_count is 4, but the context has 3 lanes");
    options.lane_count = UINT32_MAX;
    assert_int_equal(p.watch.clock, 0);
    lp_works(&p, 40);
    lp_end(&p);
}

static void nothing_at_all(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)begin, (void)end, (void)lane;
    abort();
}

// On any lane, all that would need the context or the run is refused; nothing comes of it.
static void misuse(lp *p, const ptowsp_task *task) {
    static int32_t other[LP_SIDE * LP_SIDE];
    (void)task;
    const ptowsp_run_options options = {.lane_count = 2};
    ptowsp_buffer buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.data = other;
    bool is_refused = ptowsp_run_execute(p->run, NULL) == PTOWSP_BUSY &&
                      ptowsp_run_execute(p->run, &options) == PTOWSP_BUSY &&
                      ptowsp_run_bind_size(p->run, "batch", 3) == PTOWSP_BUSY &&
                      ptowsp_run_bind_slot(p->run, 0, 3) == PTOWSP_BUSY &&
                      ptowsp_run_bind_tensor(p->run, "x", &buffer) == PTOWSP_BUSY &&
                      ptowsp_parallel_for(p->context, 100, 0, nothing_at_all, NULL) == PTOWSP_BUSY;
    __atomic_fetch_add(&p->count, is_refused, __ATOMIC_RELAXED);
}

static void run_lanes_faults__calls_from_a_kernel_are_refused(void **state) {
    (void)state;
    for (int kind = 0; kind < LANE_KIND_COUNT; kind++) {
        lp p;
        build_steps(&p, (lane_kind)kind, 3);
        p.inside = misuse;
        lp_works(&p, 40);
        assert_int_equal(p.count, 40);
        assert_int_equal(p.data[0], 20);
        assert_int_equal(ptowsp_context_error(p.context).status, PTOWSP_OK);
        lp_end(&p);
    }
}

// Waits until the other thread has been refused, or for a while.
static void wait_for_refusal(lp *p, const ptowsp_task *task) {
    for (int i = 0; task->index == 0 && i < 20000; i++) {
        if (__atomic_load_n(&p->count, __ATOMIC_RELAXED) > 0) {
            return;
        }
        sched_yield();
    }
}

typedef struct rival {
    lp *p;
    ptowsp_run *run;
    ptowsp_status status;
    uint32_t lane_count;
} rival;

static void *rival_main(void *arg) {
    rival *r = (rival *)arg;
    const ptowsp_run_options options = {.lane_count = r->lane_count};
    r->status = ptowsp_run_execute(r->run, &options);
    __atomic_fetch_add(&r->p->count, r->status == PTOWSP_BUSY, __ATOMIC_RELAXED);
    return NULL;
}

// The same run, or two runs of one context: one gets it and the other one is told.
static void run_lanes_faults__of_two_threads_one_is_busy(void **state) {
    (void)state;
    for (int round = 0; round < 40; round++) {
        lp p;
        build_steps(&p, LANE_OWN, 2);
        ptowsp_run *other = NULL;
        assert_int_equal(ptowsp_run_create(p.context, p.program, &other), PTOWSP_OK);
        ptowsp_buffer buffer;
        memset(&buffer, 0, sizeof buffer);
        buffer.data = p.data;
        assert_int_equal(ptowsp_run_bind_tensor(other, "x", &buffer), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_size(other, "batch", 20), PTOWSP_OK);
        p.inside = wait_for_refusal;
        p.watch.lane_count = 2;
        rival rivals[2] = {{&p, p.run, PTOWSP_OK, 2},
                           {&p, round % 2 ? other : p.run, PTOWSP_OK, 2}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, rival_main, &rivals[i]), 0);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_int_equal(rivals[0].status + rivals[1].status, (int)PTOWSP_OK + (int)PTOWSP_BUSY);
        assert_int_equal(p.data[0], 20);
        assert_int_equal(p.watch.wrong_count, 0);
        ptowsp_run_destroy(other);
        lp_end(&p);
    }
}

// -- memory ---------------------------------------------------------------------------------------

// Everything: tiles that are read by many, scopes, edges, streams, loads, tile kernels, a pipeline.
static void build_all(lp *p, bool has_pipeline) {
    lp_begin(p, LANE_OWN, 2);
    ptowsp_task_desc soften, edge;
    memset(&soften, 0, sizeof soften);
    memset(&edge, 0, sizeof edge);
    const ptowsp_body_desc body = {.name = "double"};
    const ptowsp_tensor_desc y = {
        "y", PTOWSP_F32, 2, {8, 8, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_body *k = ptowsp_kernel_begin(p->m, &body);
    ptowsp_value v = ptowsp_tile_inout(k, "v", PTOWSP_F32, 8, 8);
    ptowsp_tile_store(v, ptowsp_tile_add(ptowsp_tile_load(v), ptowsp_tile_load(v)));
    soften.kernel = ptowsp_kernel_end(k);
    soften.views[0].tensor = ptowsp_tensor_make(p->m, &y);
    edge.kernel = p->step;
    edge.axes[0] = lp_number(p, 3);
    PTOWSP_WORKLOAD(p->m, "main") {
        PTOWSP_PARALLEL(p->m, i, p->batch) {
            ptowsp_task_make(p->m, &soften);
            lp_task(p, p->get, 0, 0, 4, 4);
            lp_task(p, p->get, 0, 0, 4, 4);
            edge.after[0] = lp_task(p, p->get, 0, 0, 8, 8);
            lp_task(p, p->touch, 0, 0, 4, 4);
            ptowsp_task_make(p->m, &edge);
        }
        lp_load(p, 0, 0, 0);
        if (has_pipeline) {
            PTOWSP_PIPELINE(p->m, "line") {
                const ptowsp_channel_desc desc = {.name = "c", .depth = 2};
                ptowsp_channel c = ptowsp_channel_make(p->m, &desc);
                PTOWSP_PROCESS(p->m, "a") {
                    ptowsp_produces(p->m, c);
                    PTOWSP_FOR_EACH(p->m, i, p->batch) {
                        ptowsp_task_make(p->m, &soften);
                        ptowsp_send(p->m, c, i);
                    }
                }
                PTOWSP_PROCESS(p->m, "b") {
                    ptowsp_consumes(p->m, c);
                    PTOWSP_CONSUME(p->m, t, c) {
                        lp_task(p, p->touch, 0, 0, 4, 4);
                    }
                }
            }
        }
    }
}

static ptowsp_status compile_all(lp *p, float *y) {
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_HYBRID);
    schedule.dependencies |= PTOWSP_DEPENDENCIES_EXPLICIT;
    schedule.stream_count = 3;
    schedule.stream_key = ptowsp_task_arg(p->m, 0);
    ptowsp_status status = lp_try_compile(p, &schedule);
    if (status == PTOWSP_OK) {
        ptowsp_buffer buffer;
        memset(&buffer, 0, sizeof buffer);
        buffer.data = y;
        status = ptowsp_run_bind_tensor(p->run, "y", &buffer);
    }
    status = status ? status : ptowsp_run_bind_size(p->run, "batch", 30);
    return status ? status : lp_execute(p, 2);
}

static void all_is_right(lp *p, float *y) {
    y[0] = 1;
    assert_int_equal(lp_execute(p, 2), PTOWSP_OK);
    bool has_pipeline = ptowsp_run_pipelines(p->run, NULL) != NULL;
    assert_true(y[0] == (has_pipeline ? 0x1p60f : 0x1p30f));
    assert_int_equal(p->data[0], has_pipeline ? 60 : 30);
    assert_int_equal(ptowsp_run_slot(p->run, 0), 30);
}

// Each allocation from compiling on is refused once: it is told, and all works afterwards.
static void refuse_each(bool has_pipeline) {
    ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
    size_t executing = 0;
    for (size_t n = 1; status != PTOWSP_OK; n++) {
        static float y[64];
        lp p;
        build_all(&p, has_pipeline);
        p.memory.refuse_at = p.memory.allocations + n;
        status = compile_all(&p, y);
        p.memory.refuse_at = 0;
        if (status != PTOWSP_OK) {
            assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
            assert_non_null(strstr(ptowsp_context_error(p.context).text, "out of memory"));
            executing += p.run != NULL;
        }
        if (p.run) {
            all_is_right(&p, y);
        }
        lp_end(&p);
    }
    assert_true(executing > 10);
}

static void run_lanes_faults__any_allocation_may_fail(void **state) {
    (void)state;
    refuse_each(false);
    refuse_each(true);
}

// What is taken while tasks wait for each other: 2000 readers of one tile, then a writer, and again.
static void run_lanes_faults__memory_may_end_while_tasks_wait(void **state) {
    lp p;
    (void)state;
    lp_begin(&p, LANE_IN_ORDER, 2);
    PTOWSP_WORKLOAD(p.m, "main") {
        PTOWSP_PARALLEL(p.m, i, p.batch) {
            lp_task(&p, p.touch, 0, 0, 4, 4);
            PTOWSP_PARALLEL(p.m, k, p.batch) {
                for (int t = 0; t < 4; t++) {
                    lp_task(&p, p.get, t, t, 1, 1);
                    lp_task(&p, p.get, 0, 0, 4, 4);
                }
            }
        }
    }
    const ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_HYBRID);
    lp_compile(&p, &schedule);
    size_t refused = 0;
    ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
    for (int64_t batch = 4; batch <= 24; batch += 4) {
        assert_int_equal(ptowsp_run_bind_size(p.run, "batch", batch), PTOWSP_OK);
        do {
            // One more each time: what has been allocated before stays.
            p.memory.refuse_at = p.memory.allocations + 1;
            status = lp_execute(&p, 2);
            p.memory.refuse_at = 0;
            if (status != PTOWSP_OK) {
                assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
                refused++;
                assert_int_equal(lp_execute(&p, 2), PTOWSP_OK);
                assert_int_equal(p.data[0], batch);
            }
        } while (status != PTOWSP_OK);
        assert_int_equal(p.data[0], batch);
    }
    assert_true(refused > 3);
    lp_end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_lanes_faults__the_first_in_program_order_is_told),
        cmocka_unit_test(run_lanes_faults__what_shares_data_with_it_does_not_run),
        cmocka_unit_test(run_lanes_faults__what_comes_after_it_does_not_run),
        cmocka_unit_test(run_lanes_faults__what_edges_and_streams_lead_to_does_not_run),
        cmocka_unit_test(run_lanes_faults__nothing_begins_behind_a_failure_in_a_long_chain),
        cmocka_unit_test(run_lanes_faults__an_error_of_the_walk_comes_after_all_before_it),
        cmocka_unit_test(run_lanes_faults__time_ends_where_it_does_without_lanes),
        cmocka_unit_test(run_lanes_faults__pipelines_that_are_stuck_after_tasks),
        cmocka_unit_test(run_lanes_faults__a_kernel_that_fails_in_a_pipeline),
        cmocka_unit_test(run_lanes_faults__more_lanes_than_there_are),
        cmocka_unit_test(run_lanes_faults__calls_from_a_kernel_are_refused),
        cmocka_unit_test(run_lanes_faults__of_two_threads_one_is_busy),
        cmocka_unit_test(run_lanes_faults__any_allocation_may_fail),
        cmocka_unit_test(run_lanes_faults__memory_may_end_while_tasks_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
