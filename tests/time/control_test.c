// Control in schedules: on paper, against a slow simulator (control_reference.h), by properties, as text,
// and what is refused.

#include "control_reference.h"

#include <inttypes.h>

enum { VECTOR, CUBE, MIX, UNITS };

enum { VECTOR_BYTES = 400 };  // that a task moves, of a cube too, where lanes share memory

typedef struct world {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_kernel kernels[UNITS];
    ptowsp_kernel list_kernels[REF_TASKS];
    ptowsp_cycles cycles[REF_TASKS];
    int64_t axes[REF_TASKS];
    uint64_t begins[REF_TASKS + 1];
    uint32_t edges[REF_TASKS * REF_EDGES];
    ptowsp_expr key;
} world;

static void world_make(world *w, const ref_model *r) {
    memset(w, 0, sizeof *w);
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &w->memory};
    assert_int_equal(ptowsp_context_create(&desc, &w->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(w->context, NULL, &w->m), PTOWSP_OK);
    static const char *const names[] = {"vector", "cube", "both"};
    static const ptowsp_unit units[] = {PTOWSP_UNIT_VECTOR, PTOWSP_UNIT_CUBE, PTOWSP_UNIT_MIX};
    for (int i = 0; i < UNITS; i++) {
        ptowsp_kernel_desc kernel = {.name = names[i],
                                     .axis_count = 1,
                                     .unit = units[i],
                                     .cycles = 1,
                                     .bytes = i == MIX ? 0 : VECTOR_BYTES};
        w->kernels[i] = ptowsp_kernel_make(w->m, &kernel);
    }
    w->key = ptowsp_task_arg(w->m, 0);
    uint64_t edge_count = 0;
    for (int i = 0; i < r->task_count; i++) {
        w->list_kernels[i] = w->kernels[r->tasks[i].unit];
        w->cycles[i] = r->tasks[i].cycles;
        w->axes[i] = (int64_t)r->tasks[i].key;
        w->begins[i] = edge_count;
        for (int k = 0; k < r->tasks[i].edge_count; k++) {
            w->edges[edge_count++] = (uint32_t)r->tasks[i].edges[k];
        }
    }
    w->begins[r->task_count] = edge_count;
    ptowsp_task_list list = {.task_count = (uint32_t)r->task_count,
                             .kernels = w->list_kernels,
                             .cycles = w->cycles,
                             .axes = w->axes,
                             .axis_count = (uint64_t)r->task_count,
                             .edge_begins = w->begins,
                             .edges = w->edges,
                             .edge_count = edge_count};
    PTOWSP_WORKLOAD(w->m, "all") {
        ptowsp_task_list_make(w->m, &list);
    }
}

static void world_free(world *w) {
    ptowsp_module_destroy(w->m);
    ptowsp_context_destroy(w->context);
    assert_int_equal(w->memory.live_bytes, 0);
}

typedef struct outcome {
    ptowsp_status status;
    ptowsp_run_stats stats;
    ptowsp_task_record records[REF_TASKS];
    ptowsp_lane_stats lanes[REF_LANES + 8];
    ptowsp_cycles idle[PTOWSP_STALL_COUNT];
    ptowsp_run_bounds bounds;
    char text[300];
    char report[4000];
} outcome;

static bool keep_text(void *user, const void *data, size_t size) {
    char *at = (char *)user;
    const size_t length = strlen(at);
    assert_true(length + size < 4000);
    memcpy(at + length, data, size);
    at[length + size] = 0;
    return true;
}

static void run_it(world *w, const ptowsp_schedule *schedule, outcome *o) {
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    ptowsp_program_desc desc = {0};
    ptowsp_run_options options = {0};
    ptowsp_record_options record = {0};
    memset(o, 0, sizeof *o);
    desc.schedule = schedule;
    options.mode = PTOWSP_RUN_TIME_ONLY;
    record.level = PTOWSP_RECORD_EDGES;
    o->status = ptowsp_program_create(w->context, w->m, &desc, &program);
    if (o->status == PTOWSP_OK) {
        assert_int_equal(ptowsp_run_create(w->context, program, &run), PTOWSP_OK);
        assert_int_equal(ptowsp_run_record(run, &record), PTOWSP_OK);
        o->status = ptowsp_run_execute(run, &options);
        o->stats = *ptowsp_run_result(run);
        o->stats.memory_bytes = 0;
    }
    snprintf(o->text, sizeof o->text, "%s", ptowsp_context_error(w->context).text);
    if (o->status == PTOWSP_OK) {
        assert_true(o->stats.task_count <= REF_TASKS);
        memcpy(o->records, ptowsp_run_records(run),
               (size_t)o->stats.task_count * sizeof o->records[0]);
        memcpy(o->lanes, ptowsp_run_lanes(run), o->stats.lane_count * sizeof o->lanes[0]);
        memcpy(o->idle, ptowsp_run_idle(run), sizeof o->idle);
        assert_int_equal(ptowsp_run_find_bounds(run, &o->bounds), PTOWSP_OK);
        memset(o->bounds.pool_names, 0, sizeof o->bounds.pool_names);
        const ptowsp_output output = {keep_text, o->report};
        assert_int_equal(ptowsp_run_report(run, PTOWSP_REPORT_TEXT, NULL, NULL, 0, output),
                         PTOWSP_OK);
        // Time-only runs without records give the same numbers.
        ptowsp_run_stats with = o->stats;
        record.level = PTOWSP_RECORD_NONE;
        assert_int_equal(ptowsp_run_record(run, &record), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(run, &options), PTOWSP_OK);
        ptowsp_run_stats without = *ptowsp_run_result(run);
        without.memory_bytes = 0;
        assert_memory_equal(&with.stall_cycles, &without.stall_cycles, sizeof with.stall_cycles);
        assert_int_equal(with.makespan_cycles, without.makespan_cycles);
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}

// A clock at which a nanosecond is a cycle, and no costs.
static ptowsp_control control_of(ptowsp_control_by by, uint32_t threads) {
    ptowsp_control control = {.by = by, .threads = threads, .clock_mhz = 1000};
    return control;
}

static ptowsp_schedule schedule_of(uint32_t lanes, ptowsp_control control) {
    ptowsp_schedule schedule = {.lane_count = lanes,
                                .dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                .dependencies = PTOWSP_DEPENDENCIES_EXPLICIT,
                                .control = control};
    return schedule;
}

// Independent tasks, or a chain.
static ref_model tasks_of(int count, uint64_t cycles, bool is_chain) {
    ref_model r = {.task_count = count};
    for (int i = 0; i < count; i++) {
        r.tasks[i].cycles = cycles;
        r.tasks[i].edge_count = is_chain && i > 0;
        r.tasks[i].edges[0] = i - 1;
    }
    return r;
}

// Idle cycles of all lanes are all that is not busy, whatever the reasons.
static void check_sums(const outcome *o) {
    uint64_t idle = 0;
    for (int i = 0; i < PTOWSP_STALL_COUNT; i++) {
        idle += o->idle[i];
    }
    assert_int_equal(idle + o->stats.busy_cycles, o->stats.makespan_cycles * o->stats.lane_count);
    assert_true(o->bounds.largest_cycles <= o->stats.makespan_cycles);
}

// -- on paper -------------------------------------------------------------------------------------

// Each task of a chain pays for everything once: launch 1000, submitted at 1030, ..., a task then takes
// 100 (dispatch) + 7 + 8 + 50 + 20 (notice) + 3 + 40 = 228, and the next one is submitted meanwhile.
TEST(control__a_chain_pays_each_cost_for_each_task) {
    ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 1);
    control.cost_ns[PTOWSP_CONTROL_LAUNCH] = 1000;
    control.cost_ns[PTOWSP_CONTROL_SUBMIT] = 30;
    control.cost_ns[PTOWSP_CONTROL_DISPATCH] = 100;
    control.cost_ns[PTOWSP_CONTROL_DELIVER] = 7;
    control.cost_ns[PTOWSP_CONTROL_SWITCH] = 8;
    control.cost_ns[PTOWSP_CONTROL_NOTICE] = 20;
    control.cost_ns[PTOWSP_CONTROL_POLL] = 3;
    control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 40;
    const ref_model r = tasks_of(4, 50, true);
    for (int i = 0; i < 4; i++) {  // stealing; fifo in turn; in order; in order and stealing
        world w;
        outcome o;
        ptowsp_schedule schedule = schedule_of(2, control);
        schedule.dispatch = i % 3 ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
        schedule.issue = i >= 2 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        const uint64_t step = i >= 2 ? 228 + 30 : 228;  // in order it is submitted when it can run
        world_make(&w, &r);
        run_it(&w, &schedule, &o);
        assert_int_equal(o.status, PTOWSP_OK);
        for (uint64_t k = 0; k < 4; k++) {
            assert_int_equal(o.records[k].start, 1030 + k * step + 115);
            assert_int_equal(o.records[k].end, o.records[k].start + 50);
            assert_int_equal(o.records[k].stall, PTOWSP_STALL_CONTROL);
            assert_int_equal(o.records[k].cause, k ? k - 1 : PTOWSP_NO_INDEX);
        }
        assert_int_equal(o.stats.makespan_cycles, 1030 + 3 * step + 228);
        assert_int_equal(o.stats.control_cycles, 4 * 143);
        assert_int_equal(o.stats.submit_cycles, 4 * 30);
        world_free(&w);
    }
}

// 4 tasks of 100 on 4 lanes; 10 to dispatch, 5 to complete. One thread: they start at 10, 20, 30, 40 and
// end at 110 .. 140, and completing does not delay. Two threads: at 10, 10, 20, 20.
TEST(control__a_fan_out_leaves_one_thread_after_the_other) {
    const ref_model r = tasks_of(4, 100, false);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        world w;
        outcome o;
        ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, threads);
        control.cost_ns[PTOWSP_CONTROL_DISPATCH] = 10;
        control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 5;
        const ptowsp_schedule schedule = schedule_of(4, control);
        world_make(&w, &r);
        run_it(&w, &schedule, &o);
        for (uint64_t k = 0; k < 4; k++) {
            assert_int_equal(o.records[k].start, 10 + 10 * (k / threads));
            assert_int_equal(o.records[k].lane, k);
        }
        assert_int_equal(o.stats.makespan_cycles, threads == 1 ? 145 : 125);
        assert_int_equal(o.stats.stall_cycles[PTOWSP_STALL_CONTROL], threads == 1 ? 100 : 60);
        world_free(&w);
    }
}

// 6 tasks of 1 cycle, 6 lanes, 2 threads: both dispatch until 10, and until 20. Then the first two have
// ended (at 11), and go before the ready ones: 24; so do the next two (they ended at 21): 28. The
// last two are dispatched until 38, end at 39, and are complete at 43.
TEST(control__two_threads_complete_before_they_dispatch) {
    static const uint64_t starts[] = {10, 10, 20, 20, 38, 38};
    const ref_model r = tasks_of(6, 1, false);
    world w;
    outcome o;
    ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 2);
    control.cost_ns[PTOWSP_CONTROL_DISPATCH] = 10;
    control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 4;
    const ptowsp_schedule schedule = schedule_of(6, control);
    world_make(&w, &r);
    run_it(&w, &schedule, &o);
    for (int k = 0; k < 6; k++) {
        assert_int_equal(o.records[k].start, starts[k]);
    }
    assert_int_equal(o.stats.makespan_cycles, 43);
    assert_int_equal(o.stats.control_cycles, 84);
    assert_int_equal(o.bounds.control_cycles, 42);  // of each thread
    assert_int_equal(o.bounds.largest_cycles, 42);
    world_free(&w);
}

// A host launches every 8 us at 1 cycle a ns: 3 independent tasks of 5 start at 8, 16, 24 (and 2 later,
// until the device has them), however many lanes there are.
TEST(control__a_host_launches_one_task_after_another) {
    const ref_model r = tasks_of(3, 5, false);
    world w;
    outcome o;
    ptowsp_control control = control_of(PTOWSP_CONTROL_HOST, 0);
    control.cost_ns[PTOWSP_CONTROL_LAUNCH] = 100;
    control.cost_ns[PTOWSP_CONTROL_SUBMIT] = 8;
    control.cost_ns[PTOWSP_CONTROL_DELIVER] = 2;
    const ptowsp_schedule schedule = schedule_of(3, control);
    world_make(&w, &r);
    run_it(&w, &schedule, &o);
    for (uint64_t k = 0; k < 3; k++) {
        assert_int_equal(o.records[k].start, 100 + 8 * (k + 1) + 2);
    }
    assert_int_equal(o.stats.makespan_cycles, 131);
    assert_int_equal(o.stats.stall_cycles[PTOWSP_STALL_CONTROL], 100 + 24 + 3 * 2);
    assert_int_equal(o.bounds.submit_cycles, 124);
    assert_non_null(strstr(o.report, "Launching from the host takes 124 of 131 cycles"));
    world_free(&w);
}

// Five lanes start at 50 + 1, 3, 10, 30, 100; a task of 7 on each. Nothing else: the second task of a
// lane follows at once. In order, by fifo and where lanes choose.
TEST(control__kernels_that_walk_their_blocks_pay_once) {
    static const uint64_t starts[] = {1, 3, 10, 30, 100};
    const ref_model r = tasks_of(10, 7, false);
    for (int i = 0; i < 3; i++) {
        world w;
        outcome o;
        ptowsp_control control = control_of(PTOWSP_CONTROL_KERNELS, 0);
        control.cost_ns[PTOWSP_CONTROL_LAUNCH] = 50;
        for (int k = 0; k < 5; k++) {
            control.cost_ns[PTOWSP_CONTROL_START_FIRST + k] = starts[k];
        }
        ptowsp_schedule schedule = schedule_of(5, control);
        schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
        schedule.issue = i == 0 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        schedule.ready = i == 2 ? PTOWSP_READY_PRIORITY : PTOWSP_READY_FIFO;
        world_make(&w, &r);
        schedule.priority_key = i == 2 ? w.key : schedule.priority_key;
        run_it(&w, &schedule, &o);
        assert_int_equal(o.status, PTOWSP_OK);
        for (uint64_t k = 0; k < 10; k++) {
            assert_int_equal(o.records[k].start, 50 + starts[k % 5] + 7 * (k / 5));
            assert_int_equal(o.records[k].stall, k < 5 ? PTOWSP_STALL_CONTROL : PTOWSP_STALL_LANE);
        }
        assert_int_equal(o.stats.makespan_cycles, 164);
        assert_int_equal(o.idle[PTOWSP_STALL_CONTROL], 5 * 50 + 144);
        assert_int_equal(o.stats.stall_cycles[PTOWSP_STALL_CONTROL], 50 + 144);
        assert_non_null(strstr(o.report, "waiting for control. More work in one launch helps.\n"));
        world_free(&w);
    }
}

// Two chains of 1000: while 1000 cycles pass, the other lane waits for a dependence, and 115 more for
// control. Idle time is divided so.
TEST(control__idle_time_is_divided_into_dependences_and_control) {
    ref_model r = tasks_of(2, 1000, true);
    world w;
    outcome o;
    ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 1);
    control.cost_ns[PTOWSP_CONTROL_DISPATCH] = 60;
    control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 55;
    ptowsp_schedule schedule = schedule_of(2, control);
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    world_make(&w, &r);
    run_it(&w, &schedule, &o);
    assert_int_equal(o.records[1].start, 60 + 1000 + 55 + 60);
    assert_int_equal(o.records[1].ready, 1060);
    assert_int_equal(o.stats.makespan_cycles, 2175 + 55);
    assert_int_equal(o.idle[PTOWSP_STALL_DEPENDENCY], 1060);
    assert_int_equal(o.idle[PTOWSP_STALL_CONTROL], 60 + 115);
    assert_int_equal(o.idle[PTOWSP_STALL_NONE], (2230 - 1060) + 55);
    world_free(&w);
}

// -- reports --------------------------------------------------------------------------------------

// 40 tasks of 20 cycles on 10 lanes; a thread spends 10 on each. Two threads need 200 cycles, the lanes
// 80: three threads would take 134, four 100, five as long as the lanes. All of it after the launch.
TEST(control__the_verdict_says_how_many_threads_would_do) {
    const ref_model r = tasks_of(40, 20, false);
    for (uint64_t launch = 0; launch <= 1000; launch += 1000) {
        world w;
        outcome o;
        ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 2);
        control.cost_ns[PTOWSP_CONTROL_LAUNCH] = launch;
        control.cost_ns[PTOWSP_CONTROL_DISPATCH] = 6;
        control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 4;
        const ptowsp_schedule schedule = schedule_of(10, control);
        world_make(&w, &r);
        run_it(&w, &schedule, &o);
        assert_int_equal(o.bounds.control_cycles, launch + 200);
        assert_int_equal(o.bounds.work_cycles[0], 80);
        assert_true(o.stats.makespan_cycles >= launch + 200);
        assert_non_null(strstr(o.report, "The AICPU threads are the limit: "));
        assert_non_null(strstr(o.report, " of 2 busy"));
        assert_non_null(strstr(o.report, "; 5 would do."));
        world_free(&w);
    }
}

// A launch of 1000, then 40 tasks of 5 cycles on 16 lanes, submitted within 40 cycles; one thread. It
// hands over 5 of them before the first ends, at 1006, and completes these until 1506; then 16 at a time,
// which end 5 later and take it 1600: 1506, 3111, 4716, and with the last 3 of them 5021. 100 threads
// would complete them within 40. The tasks themselves take 13 on these lanes: only control keeps
// schedules from that.
TEST(control__is_not_a_bound_of_other_schedules) {
    const ref_model r = tasks_of(40, 5, false);
    world w;
    outcome o;
    ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 1);
    control.cost_ns[PTOWSP_CONTROL_LAUNCH] = 1000;
    control.cost_ns[PTOWSP_CONTROL_SUBMIT] = 1;
    control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 100;
    const ptowsp_schedule schedule = schedule_of(16, control);
    world_make(&w, &r);
    run_it(&w, &schedule, &o);
    assert_int_equal(o.stats.makespan_cycles, 5021);
    assert_int_equal(o.bounds.submit_cycles, 1040);
    assert_int_equal(o.bounds.control_cycles, 5000);
    assert_int_equal(o.bounds.largest_cycles, 5000);
    assert_non_null(strstr(o.report, "The AICPU threads are the limit: 0.8 of 1 busy; 100 would "
                                     "do.\n"));
    assert_non_null(strstr(o.report, "A better schedule of the same tasks gains 99.7 % at most "
                                     "(5,008 cycles).\n"));
    world_free(&w);
}

// A chain of 3 tasks of 5, each noticed after 500: lanes wait for that, and no bound is near.
TEST(control__the_verdict_has_advice_for_each_that_is_in_control) {
    static const char *const advice[] = {"Fewer launches help.\n",
                                         "Fewer, longer tasks or more AICPU threads help.\n"};
    const ref_model r = tasks_of(3, 5, true);
    for (int i = 0; i < 2; i++) {
        world w;
        outcome o;
        ptowsp_control control =
            i ? control_of(PTOWSP_CONTROL_AICPU, 1) : control_of(PTOWSP_CONTROL_HOST, 0);
        control.cost_ns[PTOWSP_CONTROL_NOTICE] = 500;
        const ptowsp_schedule schedule = schedule_of(1, control);
        world_make(&w, &r);
        run_it(&w, &schedule, &o);
        const char *waits = strstr(o.report, "waiting for control. ");
        assert_non_null(waits);
        waits += strlen("waiting for control. ");
        assert_memory_equal(waits, advice[i], strlen(advice[i]));
        world_free(&w);
    }
}

// The same tasks under 1, 2, 5 and 8 threads: each as it runs alone, the best first, and of equal ones
// the one with fewer threads.
TEST(control__a_search_finds_the_number_of_threads) {
    static const uint32_t threads[] = {1, 2, 5, 8, 16}, lanes[] = {10};
    static const ptowsp_dispatch dispatches[] = {PTOWSP_DISPATCH_WORK_STEALING};
    static const ptowsp_ready orders[] = {PTOWSP_READY_FIFO};
    const ref_model r = tasks_of(40, 20, false);
    world w;
    outcome o;
    ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 1);
    control.cost_ns[PTOWSP_CONTROL_DISPATCH] = 6;
    control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 4;
    ptowsp_search_result results[8];
    ptowsp_search_summary summary;
    ptowsp_search_desc desc = {.base = schedule_of(10, control)};
    desc.dispatches = dispatches, desc.dispatch_count = 1;
    desc.orders = orders, desc.order_count = 1;
    desc.lane_counts = lanes, desc.lane_count_count = 1;
    desc.thread_counts = threads, desc.thread_count_count = 5;
    world_make(&w, &r);
    assert_int_equal(ptowsp_schedule_search(w.context, w.m, &desc, results, 8, &summary),
                     PTOWSP_OK);
    assert_int_equal(summary.space_count, 5);
    assert_int_equal(summary.result_count, 5);
    uint64_t before = 0, fewest = 0;
    for (uint32_t i = 0; i < 5; i++) {
        ptowsp_schedule schedule = desc.base;
        schedule.control.threads = results[i].schedule.control.threads;
        run_it(&w, &schedule, &o);
        assert_int_equal(results[i].makespan_cycles, o.stats.makespan_cycles);
        assert_true(results[i].makespan_cycles >= before);
        assert_true(results[i].makespan_cycles > before ||
                    results[i].schedule.control.threads > fewest);
        before = results[i].makespan_cycles;
        fewest = results[i].schedule.control.threads;
    }
    assert_int_equal(results[4].schedule.control.threads, 1);
    char text[2000] = "";
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_search_print(results, &summary, ptowsp_output_to_buffer(&buffer));
    assert_non_null(strstr(text, "10 lanes, 5 AICPU threads"));
    assert_non_null(strstr(text, "10 lanes, 1 AICPU thread; idle"));
    desc.base.control = control_of(PTOWSP_CONTROL_KERNELS, 0);
    assert_int_equal(ptowsp_schedule_search(w.context, w.m, &desc, results, 8, &summary),
                     PTOWSP_INVALID_PARAMS);
    assert_string_equal(ptowsp_context_error(w.context).text,
                        "search: thread_counts are of AICPUs, but control is kernels");
    world_free(&w);
}

// Of 100 cycles alone, with a rate for one of them: the second one starts at 50, 20 cycles after the first.
// So the first has moved 80 of 400 bytes alone, has 160 cycles for the rest, and ends at 210, which is
// noticed at 215 and complete at 222; the second one ends at 230, and the thread completes it after that of
// its follower's dispatch, from 222 until 242. This one starts at 252, alone.
TEST(control__tasks_that_share_memory_are_noticed_when_they_end) {
    static const uint64_t starts[] = {30, 50, 252}, ends[] = {210, 230, 352};
    ref_model r = tasks_of(3, 100, false);
    r.tasks[2].edge_count = 1;
    r.tasks[2].edges[0] = 0;
    world w;
    outcome o;
    ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 1);
    control.cost_ns[PTOWSP_CONTROL_DISPATCH] = 20;
    control.cost_ns[PTOWSP_CONTROL_DELIVER] = 10;
    control.cost_ns[PTOWSP_CONTROL_NOTICE] = 5;
    control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 7;
    ptowsp_schedule schedule = schedule_of(2, control);
    schedule.shared.hbm_rate = schedule.shared.l2_rate = VECTOR_BYTES;
    world_make(&w, &r);
    for (int i = 0; i < 2; i++) {
        schedule.dispatch = i ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
        run_it(&w, &schedule, &o);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(o.records[k].start, starts[k]);
            assert_int_equal(o.records[k].end, ends[k]);
        }
        assert_int_equal(o.records[2].ready, 210);
        assert_int_equal(o.records[2].stall, PTOWSP_STALL_CONTROL);
        assert_int_equal(o.stats.makespan_cycles, 364);
        assert_int_equal(o.stats.slowed_cycles, 160);
        assert_int_equal(o.stats.hbm_bytes, 3 * VECTOR_BYTES);
        assert_int_equal(o.stats.hbm_limited_cycles, 160);
        check_sums(&o);
    }
    world_free(&w);
}

// Vector tasks share from 10 until 210. Their block is taken at 0 and begins then, though their ends are
// noticed at 250 only; it ends at 240, noticed at 280. The last one is delivered at 290, alone.
TEST(control__a_block_begins_when_its_lanes_have_ended_unnoticed) {
    static const uint64_t starts[] = {10, 10, 210, 290}, ends[] = {210, 210, 240, 390};
    ref_model r = tasks_of(4, 100, false);
    r.tasks[2].unit = MIX;
    r.tasks[2].cycles = 30;
    world w;
    outcome o;
    ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 4);
    control.cost_ns[PTOWSP_CONTROL_DELIVER] = 10;
    control.cost_ns[PTOWSP_CONTROL_NOTICE] = 40;
    ptowsp_schedule schedule = schedule_of(0, control);
    schedule.pools = PTOWSP_POOLS_BY_UNIT;
    schedule.vector_lane_count = 2;
    schedule.cube_lane_count = 1;
    schedule.shared.hbm_rate = schedule.shared.l2_rate = VECTOR_BYTES;
    world_make(&w, &r);
    for (int i = 0; i < 2; i++) {
        schedule.dispatch = i ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
        run_it(&w, &schedule, &o);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(o.records[k].start, starts[k]);
            assert_int_equal(o.records[k].end, ends[k]);
        }
        assert_int_equal(o.stats.makespan_cycles, 430);
        assert_int_equal(o.stats.slowed_cycles, 200);
        check_sums(&o);
    }
    world_free(&w);
}

// -- against the slow simulator -------------------------------------------------------------------

static void random_control(uint64_t *seed, ptowsp_control *control) {
    const int by = (int)test_random_in(seed, 1, 3);
    *control = control_of((ptowsp_control_by)by,
                          by == PTOWSP_CONTROL_AICPU ? (uint32_t)test_random_in(seed, 1, 4) : 0);
    control->clock_mhz = (uint32_t)(test_random_in(seed, 0, 1) ? 1000 : 1800);
    const int last =
        by == PTOWSP_CONTROL_KERNELS ? PTOWSP_CONTROL_START_LAST : PTOWSP_CONTROL_COST_COUNT - 1;
    for (int i = 0; i <= last; i++) {
        const bool is_start = i >= PTOWSP_CONTROL_START_FIRST && i <= PTOWSP_CONTROL_START_LAST;
        const bool is_work = i == PTOWSP_CONTROL_DISPATCH || i == PTOWSP_CONTROL_POLL ||
                             i == PTOWSP_CONTROL_COMPLETE;
        if (by == PTOWSP_CONTROL_HOST && is_work) {
            continue;
        }
        control->cost_ns[i] =
            (uint64_t)(test_random_in(seed, 0, 2) ? test_random_in(seed, 0, 20) : 0);
        if (is_start && i > PTOWSP_CONTROL_START_FIRST) {
            control->cost_ns[i] += control->cost_ns[i - 1];
        }
    }
}

static void random_tasks(uint64_t *seed, ref_model *r, bool has_units) {
    memset(r, 0, sizeof *r);
    r->task_count = (int)test_random_in(seed, 1, REF_TASKS);
    const int64_t span = test_random_in(seed, 0, 1) ? 3 : 60;
    for (int i = 0; i < r->task_count; i++) {
        ref_task *t = &r->tasks[i];
        t->cycles = (uint64_t)test_random_in(seed, 1, span);
        t->key = (uint64_t)test_random_in(seed, 0, 7);
        t->unit = has_units ? (int)test_random_in(seed, 0, 2) : 0;
        t->edge_count = i ? (int)test_random_in(seed, 0, REF_EDGES) : 0;
        for (int k = 0; k < t->edge_count; k++) {
            t->edges[k] = (int)test_random_in(seed, i > 8 ? i - 8 : 0, i - 1);
        }
    }
}

// Without the keys, which need a module.
static void random_schedule(uint64_t *seed, ref_model *r, ptowsp_schedule *s) {
    memset(s, 0, sizeof *s);
    static const ptowsp_dispatch dispatches[] = {
        PTOWSP_DISPATCH_ROUND_ROBIN, PTOWSP_DISPATCH_AFFINITY, PTOWSP_DISPATCH_WORK_STEALING};
    s->dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;
    s->issue = test_random_in(seed, 0, 3) ? PTOWSP_ISSUE_DATAFLOW : PTOWSP_ISSUE_IN_ORDER;
    s->dispatch = dispatches[test_random_in(seed, 0, 2)];
    if (s->issue == PTOWSP_ISSUE_DATAFLOW) {
        s->ready = (ptowsp_ready)test_random_in(seed, 0, 2);
    }
    if (test_random_in(seed, 0, 1)) {
        s->pools = PTOWSP_POOLS_BY_UNIT;
        s->cube_lane_count = (uint32_t)test_random_in(seed, 1, 4);
        s->vector_lane_count = 2 * s->cube_lane_count + (uint32_t)test_random_in(seed, 0, 2);
        r->vector_count = (int)s->vector_lane_count;
        r->lane_count = (int)(s->vector_lane_count + s->cube_lane_count);
    } else {
        s->lane_count = (uint32_t)test_random_in(seed, 1, 9);
        r->lane_count = (int)s->lane_count;
    }
    s->window = (uint32_t)(test_random_in(seed, 0, 1) * test_random_in(seed, 1, 9));
}

static void set_keys(const world *w, ptowsp_schedule *s) {
    if (s->dispatch == PTOWSP_DISPATCH_AFFINITY) {
        s->dispatch_key = w->key;
    }
    if (s->ready == PTOWSP_READY_PRIORITY) {
        s->priority_key = w->key;
    }
}

// In order and stealing, cubes of blocks are chosen when they are free, not when tasks are issued.
static bool has_late_blocks(const ptowsp_schedule *s) {
    return s->issue == PTOWSP_ISSUE_IN_ORDER && s->pools == PTOWSP_POOLS_BY_UNIT &&
           s->dispatch == PTOWSP_DISPATCH_WORK_STEALING;
}

TEST(control__random_tasks_take_what_the_slow_simulator_says) {
    uint64_t seed = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 600); round++) {
        world w;
        outcome o;
        ref_model r;
        ptowsp_schedule s;
        random_tasks(&seed, &r, true);
        random_schedule(&seed, &r, &s);
        random_control(&seed, &s.control);
        // Kernels that walk their blocks go the way of closed forms by fifo, where a lane is taken at
        // issue.
        if (s.control.by == PTOWSP_CONTROL_KERNELS && has_late_blocks(&s)) {
            s.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
        }
        world_make(&w, &r);
        set_keys(&w, &s);
        r.schedule = &s;
        ref_run(&r);
        run_it(&w, &s, &o);
        assert_int_equal(o.status, PTOWSP_OK);
        for (int i = 0; i < r.task_count; i++) {
            assert_true(r.tasks[i].is_done);
            if (o.records[i].start != r.tasks[i].start ||
                o.records[i].lane != (uint32_t)r.tasks[i].lane ||
                o.records[i].issue != r.tasks[i].issue) {
                fail_msg("round %d, task %d: start %" PRIu64 " on lane %u, issue %" PRIu64
                         "; the slow one: %" PRIu64 ", %d, %" PRIu64,
                         round, i, o.records[i].start, o.records[i].lane, o.records[i].issue,
                         r.tasks[i].start, r.tasks[i].lane, r.tasks[i].issue);
            }
            assert_int_equal(o.records[i].end, r.tasks[i].end);
        }
        assert_int_equal(o.stats.makespan_cycles, r.makespan);
        assert_int_equal(o.stats.control_cycles, r.work);
        check_sums(&o);
        world_free(&w);
    }
}

// -- properties -----------------------------------------------------------------------------------

// Costs below half a cycle round to 0: control takes no time, and yet the path of control is taken.
TEST(control__without_cost_changes_nothing) {
    uint64_t seed = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        world w;
        outcome plain, free_of_cost;
        ref_model r;
        ptowsp_schedule s;
        random_tasks(&seed, &r, true);
        random_schedule(&seed, &r, &s);
        world_make(&w, &r);
        set_keys(&w, &s);
        run_it(&w, &s, &plain);
        for (int by = PTOWSP_CONTROL_HOST; by <= PTOWSP_CONTROL_KERNELS; by++) {
            s.control = control_of((ptowsp_control_by)by, by == PTOWSP_CONTROL_AICPU ? 1 : 0);
            s.control.clock_mhz = 1;
            for (int i = 0; i < PTOWSP_CONTROL_COST_COUNT && by == PTOWSP_CONTROL_AICPU; i++) {
                s.control.cost_ns[i] = 499;
            }
            run_it(&w, &s, &free_of_cost);
            if (by != PTOWSP_CONTROL_KERNELS && has_late_blocks(&s)) {
                continue;
            }
            // Closed forms name the last of several tasks that end together as a cause, events the first.
            const bool is_closed =
                s.issue == PTOWSP_ISSUE_IN_ORDER ||
                (s.ready == PTOWSP_READY_FIFO && s.dispatch != PTOWSP_DISPATCH_WORK_STEALING);
            for (int i = 0; i < r.task_count && is_closed; i++) {
                plain.records[i].cause = free_of_cost.records[i].cause = 0;
            }
            assert_memory_equal(&free_of_cost.records, &plain.records, sizeof plain.records);
            assert_memory_equal(&free_of_cost.lanes, &plain.lanes, sizeof plain.lanes);
            assert_memory_equal(&free_of_cost.idle, &plain.idle, sizeof plain.idle);
            assert_memory_equal(&free_of_cost.stats, &plain.stats, sizeof plain.stats);
        }
        world_free(&w);
    }
}

// Free of cost, tasks that share memory take the same time as without control; the task that is named as
// a cause too.
TEST(control__without_cost_shares_memory_as_without) {
    uint64_t seed = test_seed(), slowed = 0;
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        world w;
        outcome plain, free_of_cost;
        ref_model r;
        ptowsp_schedule s;
        random_tasks(&seed, &r, true);
        random_schedule(&seed, &r, &s);
        s.shared.hbm_rate = (uint32_t)test_random_in(&seed, 100, 20000);
        s.shared.l2_rate = s.shared.hbm_rate;
        world_make(&w, &r);
        set_keys(&w, &s);
        run_it(&w, &s, &plain);
        assert_int_equal(plain.status, PTOWSP_OK);
        slowed += plain.stats.slowed_cycles;
        for (int by = PTOWSP_CONTROL_HOST; by <= PTOWSP_CONTROL_KERNELS; by++) {
            s.control = control_of((ptowsp_control_by)by, by == PTOWSP_CONTROL_AICPU ? 1 : 0);
            run_it(&w, &s, &free_of_cost);
            assert_memory_equal(&free_of_cost.records, &plain.records, sizeof plain.records);
            assert_memory_equal(&free_of_cost.lanes, &plain.lanes, sizeof plain.lanes);
            assert_memory_equal(&free_of_cost.idle, &plain.idle, sizeof plain.idle);
            assert_memory_equal(&free_of_cost.stats, &plain.stats, sizeof plain.stats);
        }
        world_free(&w);
    }
    assert_true(slowed > 0);
}

// Memory for all that lanes can ask for: control decides alone.
TEST(control__with_memory_for_all_is_as_without_sharing) {
    uint64_t seed = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 600); round++) {
        world w;
        outcome plain, sharing;
        ref_model r;
        ptowsp_schedule s;
        random_tasks(&seed, &r, true);
        random_schedule(&seed, &r, &s);
        random_control(&seed, &s.control);
        if (s.control.by == PTOWSP_CONTROL_KERNELS && has_late_blocks(&s)) {
            s.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
        }
        world_make(&w, &r);
        set_keys(&w, &s);
        run_it(&w, &s, &plain);
        s.shared.hbm_rate = s.shared.l2_rate = UINT32_MAX;
        run_it(&w, &s, &sharing);
        assert_int_equal(sharing.status, PTOWSP_OK);
        for (int i = 0; i < r.task_count && s.control.by == PTOWSP_CONTROL_KERNELS; i++) {
            plain.records[i].cause = sharing.records[i].cause = 0;  // as closed forms name another
        }
        sharing.stats.hbm_bytes = 0;
        assert_memory_equal(&sharing.records, &plain.records, sizeof plain.records);
        assert_memory_equal(&sharing.lanes, &plain.lanes, sizeof plain.lanes);
        assert_memory_equal(&sharing.idle, &plain.idle, sizeof plain.idle);
        assert_memory_equal(&sharing.stats, &plain.stats, sizeof plain.stats);
        world_free(&w);
    }
}

// Of independent tasks of equal cost; in general list scheduling has anomalies.
TEST(control__more_threads_are_never_slower_for_equal_tasks) {
    uint64_t seed = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 60); round++) {
        world w;
        outcome o;
        const ref_model r = tasks_of((int)test_random_in(&seed, 1, REF_TASKS),
                                     (uint64_t)test_random_in(&seed, 1, 99), false);
        ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 1);
        for (int i = PTOWSP_CONTROL_SUBMIT; i < PTOWSP_CONTROL_COST_COUNT; i++) {
            control.cost_ns[i] = (uint64_t)test_random_in(&seed, 0, 30);
        }
        ptowsp_schedule s = schedule_of((uint32_t)test_random_in(&seed, 1, 16), control);
        uint64_t before = UINT64_MAX;
        world_make(&w, &r);
        for (uint32_t threads = 1; threads <= PTOWSP_CONTROL_THREAD_MAX; threads *= 2) {
            s.control.threads = threads;
            run_it(&w, &s, &o);
            assert_true(o.stats.makespan_cycles <= before);
            before = o.stats.makespan_cycles;
        }
        world_free(&w);
    }
}

static ptowsp_cycles axis_of(const ptowsp_task *task, void *user) {
    (void)user;
    return 1 + (ptowsp_cycles)ptowsp_task_axis(task, 0) * 37 % 101;
}

// Kernels run on 1, 2 and 3 lanes of the host, or on the calling thread: simulated time is the same.
TEST(control__takes_the_same_time_on_any_number_of_host_threads) {
    const ptowsp_context_desc context_desc = test_lanes_desc(3);
    ptowsp_context *context = test_context(&context_desc);
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_kernel_desc kernel = {.name = "work", .axis_count = 1, .fn = axis_of};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    PTOWSP_WORKLOAD(m, "all") {
        PTOWSP_FOR_EACH(m, step, ptowsp_axis_dense(m, "steps", 5)) {
            (void)step;
            PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "items", 40)) {
                task.axes[0] = i;
                ptowsp_task_make(m, &task);
            }
        }
    }
    for (int by = PTOWSP_CONTROL_NONE; by <= PTOWSP_CONTROL_KERNELS; by++) {
        ptowsp_schedule schedule =
            schedule_of(6, ptowsp_control_make((ptowsp_control_by)by, PTOWSP_MODEL_910B));
        schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
        const ptowsp_program_desc desc = {NULL, &schedule};
        ptowsp_run_stats first = {0};
        ptowsp_program *program = test_program(context, m, &desc);
        for (uint32_t lanes = 0; lanes <= 3; lanes++) {
            ptowsp_run_options options = {.lane_count = lanes};
            ptowsp_run *run = test_run_of(context, program);
            assert_int_equal(ptowsp_run_execute(run, &options), PTOWSP_OK);
            ptowsp_run_stats stats = *ptowsp_run_result(run);
            stats.memory_bytes = 0;
            first = lanes ? first : stats;
            assert_memory_equal(&stats, &first, sizeof stats);
            assert_int_equal(stats.task_count, 200);
            ptowsp_run_destroy(run);
        }
        ptowsp_program_destroy(program);
    }
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// -- text, targets --------------------------------------------------------------------------------

TEST(control__is_text_of_a_schedule_and_back) {
    uint64_t seed = test_seed();
    for (int round = 0; round < 40; round++) {
        world w;
        const ref_model r = tasks_of(1, 1, false);
        ptowsp_schedule s = schedule_of(2, control_of(PTOWSP_CONTROL_HOST, 0));
        ptowsp_program *program;
        char text[2000] = "", body[3000], all[4000];
        world_make(&w, &r);
        random_control(&seed, &s.control);
        if (round % 2) {
            s.shared = (ptowsp_shared_memory){.hbm_rate = 90, .l2_rate = 300, .l2_bytes = 1 << 20};
        }
        ptowsp_output_buffer buffer = {text, sizeof text, 0};
        ptowsp_schedule_print(&s, ptowsp_output_to_buffer(&buffer));
        snprintf(body, sizeof body,
                 "module n\nkernel k(axes 0) vector, 3 cycles, time only\nprogram w\n%s"
                 "workload w\n  task k()\n",
                 text);
        snprintf(all, sizeof all, "ptowsp program 1, %zu bytes, %016" PRIx64 "\n%s", strlen(body),
                 ptowsp_hash(PTOWSP_HASH_START, body, strlen(body)), body);
        const ptowsp_status status =
            ptowsp_program_load(w.context, all, strlen(all), NULL, &program, NULL);
        if (status != PTOWSP_OK) {
            fail_msg("%s\n%s", ptowsp_context_error(w.context).text, body);
        }
        const ptowsp_schedule *back = &ptowsp_program_read(program)->schedule;
        assert_int_equal(back->control.by, s.control.by);
        assert_int_equal(back->control.threads, s.control.threads);
        assert_int_equal(back->control.clock_mhz, s.control.clock_mhz);
        assert_memory_equal(back->control.cost_ns, s.control.cost_ns, sizeof s.control.cost_ns);
        assert_int_equal(back->shared.hbm_rate, s.shared.hbm_rate);
        assert_int_equal(back->shared.l2_rate, s.shared.l2_rate);
        assert_int_equal(back->shared.lane_rate, s.shared.lane_rate);
        assert_int_equal(back->shared.l2_bytes, s.shared.l2_bytes);
        ptowsp_program_destroy(program);
        world_free(&w);
    }
}

TEST(control__built_in_costs_print_as_they_are_measured) {
    ptowsp_schedule s =
        schedule_of(24, ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_910B));
    char text[2000] = "";
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_schedule_print(&s, ptowsp_output_to_buffer(&buffer));
    assert_non_null(strstr(text, "\n  control aicpu by 3 threads at 1800 MHz launch 8080 "
                                 "start_first 300 start_quarter 1035 start_half 1770 "
                                 "start_most 3390 start_last 5310 submit 874 dispatch 4500 "
                                 "deliver 140 switch 349 notice 600 poll 100 complete 3000 ns\n"));
    s.control = ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_950PR);
    assert_int_equal(s.control.clock_mhz, 1650);
    assert_int_equal(s.control.threads, 6);
    s.control = ptowsp_control_make(PTOWSP_CONTROL_KERNELS, PTOWSP_MODEL_910B);
    assert_int_equal(s.control.cost_ns[PTOWSP_CONTROL_LAUNCH], 8080);
    assert_int_equal(s.control.cost_ns[PTOWSP_CONTROL_SUBMIT], 0);
    s.control = ptowsp_control_make(PTOWSP_CONTROL_HOST, PTOWSP_MODEL_UNIT);
    assert_int_equal(s.control.clock_mhz, 0);
    // The line through 1 and 256 runs of the host: 51.4 and 2113 us, within 0.1 %.
    const uint64_t *ns = s.control.cost_ns;
    assert_int_equal(ns[PTOWSP_CONTROL_LAUNCH] + ns[PTOWSP_CONTROL_SUBMIT], 51380);
    assert_in_range(ns[PTOWSP_CONTROL_LAUNCH] + 256 * ns[PTOWSP_CONTROL_SUBMIT], 2111000, 2115000);
}

#define REFUSED(change, wanted, error)                                                             \
    do {                                                                                           \
        ptowsp_schedule s = good;                                                                  \
        change;                                                                                    \
        assert_int_equal(ptowsp_schedule_check(w.m, &s, PTOWSP_TARGET_CPU_SIM), wanted);           \
        assert_string_equal(ptowsp_context_error(w.context).text, error);                          \
    } while (0)

TEST(control__that_cannot_be_is_refused_by_name) {
    const ref_model r = tasks_of(2, 5, false);
    const ptowsp_schedule good =
        schedule_of(2, ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_910B));
    world w;
    world_make(&w, &r);
    assert_int_equal(ptowsp_schedule_check(w.m, &good, PTOWSP_TARGET_CPU_SIM), PTOWSP_OK);
    assert_int_equal(ptowsp_schedule_check(w.m, &good, PTOWSP_TARGET_THREADS), PTOWSP_OK);
    assert_int_equal(ptowsp_schedule_check(w.m, &good, PTOWSP_TARGET_ASCEND_NPU),
                     PTOWSP_UNSUPPORTED);
    assert_string_equal(ptowsp_context_error(w.context).text,
                        "schedule: target ascend_npu does not do control aicpu");
    REFUSED(s.control.threads = 0, PTOWSP_INVALID_PARAMS,
            "schedule: control aicpu: control.threads is 0; see ptowsp_control_make");
    REFUSED(s.control.threads = 65, PTOWSP_LIMIT_EXCEEDED,
            "schedule: control aicpu by 65 threads: at most 64");
    REFUSED(s.control.clock_mhz = 0, PTOWSP_INVALID_PARAMS,
            "schedule: control aicpu at a clock of 0 MHz");
    REFUSED(s.control.clock_mhz = (1 << 17) + 1, PTOWSP_INVALID_PARAMS,
            "schedule: control aicpu at a clock of 131073 MHz");
    REFUSED(s.control.by = (ptowsp_control_by)9, PTOWSP_INVALID_PARAMS,
            "schedule: control 9 does not exist");
    REFUSED(s.control.by = PTOWSP_CONTROL_NONE; s.control.threads = 0, PTOWSP_INVALID_PARAMS,
                                                "schedule: control none at a clock of 1800 MHz");
    REFUSED(s.control.by = PTOWSP_CONTROL_HOST;
            s.control.threads = 0, PTOWSP_INVALID_PARAMS,
            "schedule: control host has no cost dispatch: 4500 ns");
    REFUSED(s.control.by = PTOWSP_CONTROL_HOST, PTOWSP_INVALID_PARAMS,
            "schedule: control host by 3 threads");
    REFUSED(s.control.by = PTOWSP_CONTROL_KERNELS;
            s.control.threads = 0, PTOWSP_INVALID_PARAMS,
            "schedule: control kernels has no cost submit: 874 ns");
    REFUSED(s.control.cost_ns[PTOWSP_CONTROL_START_HALF] = 1000, PTOWSP_INVALID_PARAMS,
            "schedule: control aicpu: start_half of 1000 ns is before start_quarter of 1035 ns");
    REFUSED(s.control.cost_ns[PTOWSP_CONTROL_SWITCH] = UINT64_MAX, PTOWSP_LIMIT_EXCEEDED,
            "schedule: control aicpu: costs up to switch are more than 2^62 cycles");
    // Each is at most 2^62, and their sum is not.
    REFUSED(s.control.clock_mhz = 1000;
            s.control.cost_ns[PTOWSP_CONTROL_DISPATCH] = UINT64_C(1) << 61;
            s.control.cost_ns[PTOWSP_CONTROL_COMPLETE] = UINT64_C(1) << 61, PTOWSP_LIMIT_EXCEEDED,
            "schedule: control aicpu: costs up to complete are more than 2^62 cycles");
    world_free(&w);
}

// The largest costs there may be: 2^62 in all. One task ends in time, two do not: the second is named,
// although all three have been submitted by then, unless that is what takes so long.
TEST(control__times_that_do_not_fit_are_an_error) {
    for (int cost = PTOWSP_CONTROL_SUBMIT; cost < PTOWSP_CONTROL_COST_COUNT; cost++) {
        world w;
        outcome o;
        ptowsp_control control = control_of(PTOWSP_CONTROL_AICPU, 1);
        control.cost_ns[cost] = UINT64_C(1) << 62;
        ptowsp_schedule schedule = schedule_of(1, control);
        const ref_model one = tasks_of(1, 5, true), three = tasks_of(3, 5, true);
        world_make(&w, &one);
        run_it(&w, &schedule, &o);
        assert_int_equal(o.status, PTOWSP_OK);
        assert_int_equal(o.stats.makespan_cycles, (UINT64_C(1) << 62) + 5);
        world_free(&w);
        world_make(&w, &three);
        run_it(&w, &schedule, &o);
        assert_int_equal(o.status, PTOWSP_LIMIT_EXCEEDED);
        assert_string_equal(o.text, "run: task 1 ends after 2^63 - 1 cycles");
        world_free(&w);
    }
}

// Each allocation of making and running is refused once.
TEST(control__runs_out_of_memory_cleanly) {
    uint64_t seed = test_seed();
    for (int i = 0; i < 6; i++) {
        ref_model r;
        random_tasks(&seed, &r, false);
        ptowsp_schedule s =
            schedule_of(3, ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_910B));
        s.dispatch = i % 3 ? PTOWSP_DISPATCH_ROUND_ROBIN : s.dispatch;
        s.issue = i % 3 == 2 ? PTOWSP_ISSUE_IN_ORDER : s.issue;
        s.shared.hbm_rate = s.shared.l2_rate = i < 3 ? 0 : 900;
        world w;
        outcome o;
        world_make(&w, &r);
        for (size_t n = 1;; n++) {
            w.memory.refuse_at = w.memory.allocations + n;
            ptowsp_program *program = NULL;
            ptowsp_run *run = NULL;
            ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
            const ptowsp_program_desc desc = {NULL, &s};
            ptowsp_status status = ptowsp_program_create(w.context, w.m, &desc, &program);
            status = status ? status : ptowsp_run_create(w.context, program, &run);
            status = status ? status : ptowsp_run_execute(run, &options);
            ptowsp_run_destroy(run);
            ptowsp_program_destroy(program);
            if (status == PTOWSP_OK) {
                assert_true(n > 10);
                break;
            }
            assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
        }
        w.memory.refuse_at = 0;
        run_it(&w, &s, &o);
        assert_int_equal(o.status, PTOWSP_OK);
        world_free(&w);
    }
}
