// Control in schedules: against a slow simulator (control_reference.h), and by properties. What it is as text, and what
// machines cost, is in schedules.facts; tests/cases/control.case has its times on paper.

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
    assert_ok(ptowsp_context_create(&desc, &w->context));
    assert_ok(ptowsp_module_create(w->context, NULL, &w->m));
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
} outcome;

static bool take_none(void *user, const void *data, size_t size) {
    (void)user, (void)data;
    return size > 0;
}

static void run_it(world *w, const ptowsp_schedule *schedule, outcome *o) {
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    const ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    memset(o, 0, sizeof *o);
    o->status = ptowsp_program_create(w->context, w->m, &desc, &program);
    if (o->status == PTOWSP_OK) {
        assert_ok(ptowsp_run_create(w->context, program, &run));
        assert_ok(ptowsp_run_record(run, &record));
        o->status = test_time(run);
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
        assert_ok(ptowsp_run_find_bounds(run, &o->bounds));
        memset(o->bounds.pool_names, 0, sizeof o->bounds.pool_names);
        const ptowsp_output output = {take_none, NULL};
        assert_ok(ptowsp_run_report(run, PTOWSP_REPORT_TEXT, NULL, NULL, 0, output));
        // Time-only runs without records give the same numbers.
        ptowsp_run_stats with = o->stats;
        record.level = PTOWSP_RECORD_NONE;
        assert_ok(ptowsp_run_record(run, &record));
        assert_ok(test_time(run));
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

// Records, lanes, idle cycles and results are the same.
static void check_same(const outcome *a, const outcome *b) {
    assert_memory_equal(a->records, b->records, sizeof a->records);
    assert_memory_equal(a->lanes, b->lanes, sizeof a->lanes);
    assert_memory_equal(a->idle, b->idle, sizeof a->idle);
    assert_memory_equal(&a->stats, &b->stats, sizeof a->stats);
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

// -- search ---------------------------------------------------------------------------------------

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
    assert_ok(ptowsp_schedule_search(w.context, w.m, &desc, results, 8, &summary));
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
    char text[2000];
    ptowsp_search_print(results, &summary, TEST_TEXT(text));
    assert_non_null(strstr(text, "10 lanes, 5 AICPU threads"));
    assert_non_null(strstr(text, "10 lanes, 1 AICPU thread; idle"));
    desc.base.control = control_of(PTOWSP_CONTROL_KERNELS, 0);
    test_fails(w.context, ptowsp_schedule_search(w.context, w.m, &desc, results, 8, &summary),
               PTOWSP_INVALID_PARAMS,
               "search: thread_counts are of AICPUs, but control is kernels");
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

// Random tasks, a world of them and a schedule, with control or without.
static void random_scene(uint64_t *seed, bool has_control, world *w, ref_model *r,
                         ptowsp_schedule *s) {
    random_tasks(seed, r, true);
    random_schedule(seed, r, s);
    if (has_control) {
        random_control(seed, &s->control);
    }
    // Kernels that walk their blocks go the way of closed forms by fifo, where a lane is taken at issue.
    if (s->control.by == PTOWSP_CONTROL_KERNELS && has_late_blocks(s)) {
        s->dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    }
    world_make(w, r);
    set_keys(w, s);
}

TEST(control__random_tasks_take_what_the_slow_simulator_says) {
    uint64_t seed = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 600); round++) {
        world w;
        outcome o;
        ref_model r;
        ptowsp_schedule s;
        random_scene(&seed, true, &w, &r, &s);
        r.schedule = &s;
        ref_run(&r);
        run_it(&w, &s, &o);
        assert_ok(o.status);
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
        random_scene(&seed, false, &w, &r, &s);
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
            check_same(&free_of_cost, &plain);
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
        random_scene(&seed, false, &w, &r, &s);
        s.shared.hbm_rate = (uint32_t)test_random_in(&seed, 100, 20000);
        s.shared.l2_rate = s.shared.hbm_rate;
        run_it(&w, &s, &plain);
        assert_ok(plain.status);
        slowed += plain.stats.slowed_cycles;
        for (int by = PTOWSP_CONTROL_HOST; by <= PTOWSP_CONTROL_KERNELS; by++) {
            s.control = control_of((ptowsp_control_by)by, by == PTOWSP_CONTROL_AICPU ? 1 : 0);
            run_it(&w, &s, &free_of_cost);
            check_same(&free_of_cost, &plain);
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
        random_scene(&seed, true, &w, &r, &s);
        run_it(&w, &s, &plain);
        s.shared.hbm_rate = s.shared.l2_rate = UINT32_MAX;
        run_it(&w, &s, &sharing);
        assert_ok(sharing.status);
        for (int i = 0; i < r.task_count && s.control.by == PTOWSP_CONTROL_KERNELS; i++) {
            plain.records[i].cause = sharing.records[i].cause = 0;  // as closed forms name another
        }
        sharing.stats.hbm_bytes = 0;
        check_same(&sharing, &plain);
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
        EACH_REFUSED(n, 10) {
            test_refuse(&w.memory, n);
            ptowsp_program *program = NULL;
            ptowsp_run *run = NULL;
            const ptowsp_program_desc desc = {NULL, &s};
            ptowsp_status status = ptowsp_program_create(w.context, w.m, &desc, &program);
            status = status ? status : ptowsp_run_create(w.context, program, &run);
            status = status ? status : test_time(run);
            test_destroy(run, program, NULL, NULL);
            has_more = test_was_refused(&w.memory, status);
        }
        run_it(&w, &s, &o);
        assert_ok(o.status);
        world_free(&w);
    }
}
