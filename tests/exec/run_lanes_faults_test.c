// What fails on lanes: kernels, in any order, and what depends on them; errors of the walk, of time
// and of pipelines behind them. The error is that of the same execution without lanes, to the
// letter.

#include "facts.h"
#include "lane_program.h"

// -- failures -------------------------------------------------------------------------------------

// An execution on lanes ends as the one without.
static void ends_as(lp *p, const lane_error *expected) {
    const lane_error got = lane_error_of(p->context, lp_execute(p, p->lane_count));
    assert_true(lane_error_is(&got, expected));
}

// Executes without lanes and then some times on them: it always ends with this error.
static void fails_alike(lp *p, ptowsp_status status, uint64_t index) {
    assert_int_equal(lp_execute(p, 0), status);
    lane_error expected = lane_error_of(p->context, status);
    ptowsp_run_stats stats = *ptowsp_run_result(p->run);
    assert_true(expected.index == index);
    for (int i = 0; i < 6; i++) {
        ends_as(p, &expected);
        assert_int_equal(ptowsp_run_result(p->run)->task_count, stats.task_count);
        assert_int_equal(ptowsp_run_result(p->run)->makespan_cycles, stats.makespan_cycles);
    }
}

#define LP_TEST(name, kind, lane_count)                                                            \
    TEST_MADE(name, lp, p, lp_begin(p, kind, lane_count), lp_end(p))

// The batch is of independent tasks; 7, 9 and 23 fail, the earlier the later.
LP_TEST(run_lanes_faults__the_first_in_program_order_is_told, LANE_OWN, 3) {
    lp_parse(p, "workload main\n  parallel i in batch\n    parallel k in batch\n"
                "      task step(0)\n");
    lp_compile(p, NULL);
    assert_ok(ptowsp_run_bind_size(p->run, "batch", 5));
    p->result[7] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    p->result[9] = ptowsp_task_fail(PTOWSP_INVALID_PARAMS);
    p->result[23] = ptowsp_task_fail(PTOWSP_UNBOUND);
    p->is_slow[7] = p->is_slow[3] = true;
    fails_alike(p, PTOWSP_KERNEL_FAILED, 7);
    test_error_is(p->context, PTOWSP_KERNEL_FAILED, 7,
                  "main/parallel i/parallel k/task step (i = 1, k = 2): task 7 failed: "
                  "KERNEL_FAILED");
    for (int i = 0; i < 8; i++) {
        assert_int_equal(p->watch.calls[i], 1);  // all before it, and it
    }
    p->result[7] = 0;
    fails_alike(p, PTOWSP_INVALID_PARAMS, 9);
    p->result[9] = 0;
    p->is_slow[23] = true;
    fails_alike(p, PTOWSP_UNBOUND, 23);
    p->result[23] = 0;
    lp_works(p, 25);
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

// More tasks than the ring has places: what waits for the failure is behind many that are retired.
LP_TEST(run_lanes_faults__nothing_begins_behind_a_failure_in_a_long_chain, LANE_OWN, 2) {
    lp_parse(p, "workload main\n  for_each i in batch\n    task step(0)\n");
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_STRUCTURE);
    schedule.window = 8;
    lp_compile(p, &schedule);
    assert_ok(ptowsp_run_bind_size(p->run, "batch", 200));
    for (uint64_t failing = 3; failing < 200; failing += 49) {
        p->result[failing] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
        fails_alike(p, PTOWSP_KERNEL_FAILED, failing);
        for (uint64_t i = 0; i < 200; i++) {
            assert_int_equal(p->watch.calls[i], i <= failing);
        }
        p->result[failing] = 0;
    }
    lp_works(p, 200);
}

// Waits for the task that is issued behind all that must not run.
static void wait_for_last(lp *p, const ptowsp_task *task) {
    if (task->index == 6) {
        __atomic_store_n(&p->count, 1u, __ATOMIC_RELAXED);
    }
    if (task->index == 0) {
        lane_await(&p->count, 1, LANE_PATIENCE_NS);
    }
}

// 0, on lane 1, keeps all others from being retired. The walking lane runs 1, 2, which fails, and 3,
// for which a slot load waits: so 4 and 5 are issued when 2 has already failed, and is still there.
// They depend on it by data, as one of two readers of a tile, by the tree, or by an edge.
TEST(run_lanes_faults__what_is_issued_after_a_failure_does_not_run) {
    static const struct {
        const char *beside, *failing, *after;
    } rows[] = {{"touch(1) tile = x at (4, 4) of 2 x 2", "touch(1) tile = x of 2 x 2",
                 "get(1) tile = x of 2 x 2"},
                {"get(1) tile = x at (4, 4) of 2 x 2", "get(1) tile = x at (4, 4) of 2 x 2",
                 "put(1) tile = x at (4, 4) of 2 x 2"},
                {"touch(1) tile = x at (4, 4) of 2 x 2", "step(0)", "step(0)"},
                {"touch(1) tile = x at (4, 4) of 2 x 2", "step(0)", "step(0) after node 1"}};
    char text[1024];
    for (int what = 0; what < 4; what++) {
        lp p;
        lp_begin(&p, LANE_OWN, 2);
        snprintf(text, sizeof text,
                 "workload main\n  combine\n    task step(2)\n    task %s\n    sequence\n"
                 "      combine\n        task %s as node 1\n"
                 "        task touch(1) tile = x at (8, 8) of 1 x 1\n"
                 "      slot_load 0 = x at (8, 8) of 1 x 1\n      task %s\n      task %s\n"
                 "    task step(0)\n",
                 rows[what].beside, rows[what].failing, rows[what].after, rows[what].after);
        lp_parse(&p, text);
        ptowsp_schedule schedule =
            lp_schedule(what == 2 ? PTOWSP_DEPENDENCIES_STRUCTURE : PTOWSP_DEPENDENCIES_EXPLICIT);
        schedule.dispatch = PTOWSP_DISPATCH_CUSTOM;
        schedule.dispatch_key = ptowsp_div(ptowsp_task_arg(p.m, 0), ptowsp_i64(p.m, 2));
        schedule.lane_count = 2;
        lp_compile(&p, &schedule);
        p.inside = wait_for_last;
        p.result[2] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
        for (int i = 0; i < 5; i++) {
            p.count = 0;
            assert_int_equal(lp_execute(&p, 2), PTOWSP_KERNEL_FAILED);
            assert_true(ptowsp_context_error(p.context).index == 2);
            assert_int_equal(p.watch.calls[4] + p.watch.calls[5], 0);
            assert_int_equal(p.watch.calls[3] + p.watch.calls[6], 2);
        }
        p.result[2] = 0;
        lp_works(&p, 7);
        lp_end(&p);
    }
}

// Nothing is run before all are issued, as there is one thread and few of them are ready: all are, and run.
LP_TEST(run_lanes_faults__what_does_not_depend_on_it_still_runs, LANE_IN_ORDER, 2) {
    lp_parse(p, "workload main\n  parallel i in batch\n    task step(0)\n");
    lp_compile(p, NULL);
    assert_ok(ptowsp_run_bind_size(p->run, "batch", 7));
    p->result[3] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    fails_alike(p, PTOWSP_KERNEL_FAILED, 3);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(p->watch.calls[i], 1);
    }
}

// -- the walk and time ----------------------------------------------------------------------------

// What is loaded from what task 0 writes says where task 2 is: at row 1, or where `row` is added.
LP_TEST(run_lanes_faults__an_error_of_the_walk_comes_after_all_before_it, LANE_OWN, 2) {
    lp_parse(p, "workload main\n  combine\n    task touch(1) tile = x of 1 x 1\n"
                "    task touch(1) tile = x at (8, 8) of 1 x 1\n"
                "    slot_load 0 = x of 1 x 1 element ((0), (0))\n"
                "    task touch(1) tile = x at (slot_i64[0] + slot_i64[1], 0) of 1 x 1\n");
    lp_compile(p, NULL);
    p->is_slow[1] = true;
    lp_works(p, 3);
    assert_ok(ptowsp_run_bind_slot(p->run, 1, 99));
    fails_alike(p, PTOWSP_INVALID_PARAMS, 100);
    assert_int_equal(p->watch.calls[1], 1);
    p->result[1] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    fails_alike(p, PTOWSP_KERNEL_FAILED, 1);
    p->result[0] = ptowsp_task_fail(PTOWSP_UNBOUND);
    p->is_slow[0] = true;
    fails_alike(p, PTOWSP_UNBOUND, 0);
}

TEST(run_lanes_faults__time_ends_where_it_does_without_lanes) {
    for (int what = 0; what < 4; what++) {
        lp p;
        lp_begin(&p, LANE_OWN, 2);
        lp_parse(&p, what == 3 ? "workload main\n  task touch(1) tile = x of 1 x 1\n"
                                 "  slot_load 0 = x of 1 x 1\n  parallel i in batch\n"
                                 "    task step(0)\n"
                               : "workload main\n  parallel i in batch\n    task step(0)\n");
        ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_STRUCTURE);
        schedule.window = what == 1 ? 3 : 64;
        schedule.window_policy = what == 1 ? PTOWSP_WINDOW_ABORT : PTOWSP_WINDOW_DEFAULT;
        schedule.start = what == 2   ? PTOWSP_START_ALL_ISSUED
                         : what == 3 ? PTOWSP_START_THRESHOLD
                                     : PTOWSP_START_AT_ONCE;
        schedule.start_threshold = what == 3 ? 20 : 0;
        schedule.window = what == 2 ? 5 : schedule.window;
        lp_compile(&p, &schedule);
        assert_ok(ptowsp_run_bind_size(p.run, "batch", 40));
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

#define LINE(kernel)                                                                               \
    "workload main\n  task step(0)\n  pipeline line\n    channel c depth 2 latency 0\n"            \
    "    process a produces c\n      for_each i in batch\n        task " kernel                    \
    "(i)\n        send c(i)\n    process b consumes c\n      receive t from c\n        "           \
    "task " kernel "(t)\n      receive t from c\n        task " kernel                             \
    "(t)\n      receive t from c\n"                                                                \
    "        task " kernel "(t)\n  task step(1)\n"

// Process a sends `batch` tokens to a channel of depth 2, each with a task; b receives 3, each with
// a task, and ends. Before it, task 0. With cycles that are known, or not.
static void line_begin(lp *p, bool is_known) {
    lp_begin(p, LANE_OWN, 3);
    lp_parse(p, is_known ? LINE("known") : LINE("step"));
    lp_compile(p, NULL);
}

static bool is_stuck_text(const ptowsp_run *run) {
    char text[2000] = "";
    ptowsp_run_print_stuck(run, TEST_TEXT(text));
    return text[0] != 0;
}

// A kernel that failed is what is told, and nothing is stuck: process a, which would have been, was stopped, if it
// had begun.
static void is_stopped(const ptowsp_run *run, bool has_begun) {
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, NULL);
    assert_false(is_stuck_text(run));
    assert_int_equal(processes[0].state, has_begun ? PTOWSP_PROCESS_STOPPED : PTOWSP_PROCESS_ENDED);
    assert_true(processes[1].state <= PTOWSP_PROCESS_STOPPED);
    assert_true(processes[0].channel == UINT32_MAX && processes[1].channel == UINT32_MAX);
}

// With 5 tokens all is well, with 6 process a is stuck: 1 + 6 + 3 tasks have run by then.
TEST(run_lanes_faults__pipelines_that_are_stuck_after_tasks) {
    for (int is_known = 0; is_known < 2; is_known++) {
        lp p;
        line_begin(&p, is_known);
        p.is_slow[0] = p.is_slow[4] = true;
        assert_ok(ptowsp_run_bind_size(p.run, "batch", 5));
        lp_works(&p, 10);
        assert_false(is_stuck_text(p.run));
        assert_ok(ptowsp_run_bind_size(p.run, "batch", 6));
        fails_alike(&p, PTOWSP_STUCK,
                    lp_execute(&p, 0) ? ptowsp_context_error(p.context).index : 0);
        assert_true(is_stuck_text(p.run));
        for (int i = 0; i < 10; i++) {
            assert_int_equal(p.watch.calls[i], 1);
        }
        assert_int_equal(p.watch.calls[10], 0);
        for (uint64_t failing = 0; failing < 10; failing++) {
            p.result[failing] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
            assert_int_equal(lp_execute(&p, 0), PTOWSP_KERNEL_FAILED);
            lane_error expected = lane_error_of(p.context, PTOWSP_KERNEL_FAILED);
            is_stopped(p.run, failing > 0);
            for (int i = 0; i < 3; i++) {
                ends_as(&p, &expected);
                is_stopped(p.run, failing > 0);
            }
            p.result[failing] = 0;
        }
        lp_end(&p);
    }
}

// Behind a failing task, in its process and behind the pipeline, nothing runs.
TEST(run_lanes_faults__a_kernel_that_fails_in_a_pipeline) {
    for (int is_known = 0; is_known < 2; is_known++) {
        lp p;
        line_begin(&p, is_known);
        assert_ok(ptowsp_run_bind_size(p.run, "batch", 5));
        lp_works(&p, 10);
        for (uint64_t failing = 0; failing < 10; failing++) {
            p.is_slow[failing] = failing % 2;
            p.result[failing] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
            assert_int_equal(lp_execute(&p, 0), PTOWSP_KERNEL_FAILED);
            lane_error expected = lane_error_of(p.context, PTOWSP_KERNEL_FAILED);
            assert_true(expected.index == failing);
            for (int i = 0; i < 4; i++) {
                ends_as(&p, &expected);
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

// The third token is one too many; a kernel that fails before that is what is told.
TEST(run_lanes_faults__tokens_beyond_a_limit_come_after_kernels) {
    for (int is_known = 0; is_known < 2; is_known++) {
        lp p;
        line_begin(&p, is_known);
        assert_ok(ptowsp_run_bind_size(p.run, "batch", 5));
        p.token_limit = 2;
        p.is_slow[0] = p.is_slow[2] = true;
        assert_int_equal(lp_execute(&p, 0), PTOWSP_LIMIT_EXCEEDED);
        fails_alike(&p, PTOWSP_LIMIT_EXCEEDED, ptowsp_context_error(p.context).index);
        p.result[2] = ptowsp_task_fail(PTOWSP_UNBOUND);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(lp_execute(&p, i % 2 ? 3 : 0), PTOWSP_UNBOUND);
            assert_true(ptowsp_context_error(p.context).index == 2);
        }
        lp_end(&p);
    }
}

// The key of task 2 reads an array where the value that was loaded says, or `further`.
LP_TEST(run_lanes_faults__a_key_that_reads_beyond_an_array, LANE_OWN, 2) {
    static const uint64_t keys[3] = {0, 1, 0};
    lp_parse(p, "array keys u64\nworkload main\n  combine\n    task touch(1) tile = x of 1 x 1\n"
                "    task touch(1) tile = x at (8, 8) of 1 x 1\n    slot_load 0 = x of 1 x 1\n"
                "    task step(1) tag core = keys[slot_i64[0] + slot_i64[1]]\n");
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_HYBRID);
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    schedule.dispatch_key = ptowsp_task_tag(p->m, "core");
    schedule.lane_count = 2;
    lp_compile(p, &schedule);
    assert_ok(ptowsp_run_bind_array(p->run, "keys", PTOWSP_U64, keys, 3));
    lp_works(p, 3);
    assert_ok(ptowsp_run_bind_slot(p->run, 1, 2));
    fails_alike(p, PTOWSP_INVALID_PARAMS, 3);
    assert_non_null(strstr(ptowsp_context_error(p->context).text, "array keys"));
    assert_int_equal(p->watch.calls[1], 1);
    assert_int_equal(p->watch.calls[2], 0);
}

static ptowsp_cycles too_many_cycles(const ptowsp_insn *insn, void *user) {
    (void)insn, (void)user;
    return PTOWSP_CYCLES_MAX + 1;
}

#define DOUBLE                                                                                     \
    "tensor y f32 [8, 8] global\n"                                                                 \
    "kernel double(axes 0, inout v f32 8 x 8) vector, 10 instructions\n"                           \
    "  %1 = parameter v\n  %2 = load %1 : f32 8 x 8\n  %3 = load %1 : f32 8 x 8\n"                 \
    "  %4 = add %2, %3 : f32 8 x 8\n  store %1, %4\nworkload main\n  task known(1)\n"

// A tile kernel that no cost function can count fails on lanes, in loops and processes as without lanes.
TEST(run_lanes_faults__a_tile_kernel_that_cannot_be_counted) {
    for (int is_in_process = 0; is_in_process < 2; is_in_process++) {
        lp p;
        static float y[64];
        lp_begin(&p, LANE_OWN, 2);
        lp_parse(&p, is_in_process ? DOUBLE "  pipeline pipe\n    process one\n"
                                            "      task double() v = y\n"
                                   : DOUBLE "  task double() v = y\n");
        lp_compile(&p, NULL);
        test_bind(p.run, "y", y);
        ptowsp_run_options options = {0};
        for (int mode = 0; mode < 4; mode++) {
            options.mode = mode == 3 ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE;
            options.lane_count = mode < 3 ? (uint32_t)mode : 0;
            options.cost.model = PTOWSP_MODEL_USER;
            options.cost.fn = too_many_cycles;
            test_refused(p.context, ptowsp_run_execute(p.run, &options), PTOWSP_INVALID_PARAMS, 1,
                         is_in_process
                             ? "main/pipeline pipe/process one/task double: task 1: its cost "
                               "function says 9223372036854775808 cycles"
                             : "main/task double: task 1: its cost function says "
                               "9223372036854775808 cycles");
            memset(&options.cost, 0, sizeof options.cost);
            assert_ok(ptowsp_run_execute(p.run, &options));
        }
        lp_end(&p);
    }
}

// -- facts: who waits for whom, and what does not run after a failure -----------------------------

static lp here;
static const char *workload = "";
static uint32_t dependencies, stream_count;
static uint64_t task_count, pair[2], failing, skipped, slots[2];
static int64_t batch;

static void begin(void) {
    dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;
    stream_count = 0;
    batch = 0;
}

static void clear(void) {
    if (here.context) {
        lp_end(&here);
    }
}

static ptowsp_status make(void) {
    clear();
    lp_begin(&here, LANE_OWN, 3);
    lp_parse(&here, workload);
    ptowsp_schedule schedule = lp_schedule(dependencies);
    if (stream_count > 0) {
        schedule.stream_count = stream_count;
        schedule.stream_key = ptowsp_task_arg(here.m, 0);
    }
    lp_compile(&here, &schedule);
    return ptowsp_run_bind_size(here.run, "batch", batch);
}

static ptowsp_status wait(void) {
    lp_waits(&here, task_count, pair[0], pair[1]);
    return PTOWSP_OK;
}

static ptowsp_status skip_them(void) {
    skips(&here, task_count, failing, skipped);
    return PTOWSP_OK;
}

static const char *error(uint64_t *out_index) {
    *out_index = ptowsp_context_error(here.context).index;
    return ptowsp_context_error(here.context).text;
}

static const facts_field *fields(void) {
    for (uint32_t i = 0; here.run && i < 2; i++) {
        slots[i] = ptowsp_run_slot(here.run, i);
    }
    FACTS_RETURN(FIELD(workload), FIELD(dependencies), FIELD(stream_count), FIELD(task_count),
                 FIELDS(pair, 2), FIELD(failing), FIELD(skipped), FIELD(batch), FIELDS(slots, 2));
}

TEST(run_lanes_faults__facts_hold) {
    static const facts_call calls[] = {
        {"make", make}, {"waits", wait}, {"skips", skip_them}, {NULL, NULL}};
    facts all = {.path = "tests/exec/lanes.facts",
                 .begin = begin,
                 .fields = fields,
                 .calls = calls,
                 .error = error};
    memset(&here, 0, sizeof here);
    facts_run(&all);
    clear();
}
