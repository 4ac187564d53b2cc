// Misuse of programs on lanes: more lanes than there are, calls from kernels and from two threads at
// once, executors that break their contract; and memory that is refused.

#include "lane_program.h"

// -- misuse ---------------------------------------------------------------------------------------

static void build_steps(lp *p, lane_kind kind, uint32_t lane_count) {
    lp_begin(p, kind, lane_count);
    lp_parse(p, "workload main\n  parallel i in batch\n    task touch(1) tile = x of 2 x 2\n"
                "    task step(0)\n");
    lp_compile(p, NULL);
    assert_ok(ptowsp_run_bind_size(p->run, "batch", 20));
}

TEST(run_lanes_misuse__more_lanes_than_there_are) {
    lp p;
    build_steps(&p, LANE_IN_ORDER, 3);
    ptowsp_run_options options = {.lane_count = 4};
    test_invalid(p.context, ptowsp_run_execute(p.run, &options),
                 "run: lane_count is 4, but the context has 3 lanes");
    options.lane_count = UINT32_MAX;
    assert_invalid(ptowsp_run_execute(p.run, &options));
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
    ptowsp_buffer buffer = {.data = other};
    bool is_refused = ptowsp_run_execute(p->run, NULL) == PTOWSP_BUSY &&
                      test_execute(p->run, 2) == PTOWSP_BUSY &&
                      ptowsp_run_bind_size(p->run, "batch", 3) == PTOWSP_BUSY &&
                      ptowsp_run_bind_slot(p->run, 0, 3) == PTOWSP_BUSY &&
                      ptowsp_run_bind_tensor(p->run, "x", &buffer) == PTOWSP_BUSY &&
                      ptowsp_parallel_for(p->context, 100, 0, nothing_at_all, NULL) == PTOWSP_BUSY;
    __atomic_fetch_add(&p->count, is_refused, __ATOMIC_RELAXED);
}

TEST(run_lanes_misuse__calls_from_a_kernel_are_refused) {
    for (int kind = 0; kind < LANE_KIND_COUNT; kind++) {
        lp p;
        build_steps(&p, (lane_kind)kind, 3);
        p.inside = misuse;
        lp_works(&p, 40);
        assert_int_equal(p.count, 40);
        assert_int_equal(p.data[0], 20);
        test_was_busy(p.context);
        lp_end(&p);
    }
}

// Waits until the other thread has been refused.
static void wait_for_refusal(lp *p, const ptowsp_task *task) {
    if (task->index == 0) {
        lane_await(&p->count, 1, LANE_CERTAIN_NS);
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
    r->status = test_execute(r->run, r->lane_count);
    __atomic_fetch_add(&r->p->count, r->status == PTOWSP_BUSY, __ATOMIC_RELAXED);
    return NULL;
}

// The same run, or two runs of one context: one gets it and the other one is told.
TEST(run_lanes_misuse__of_two_threads_one_is_busy) {
    for (int round = 0; round < 40; round++) {
        lp p;
        build_steps(&p, LANE_OWN, 2);
        ptowsp_run *other = test_run_of(p.context, p.program);
        test_bind(other, "x", p.data);
        assert_ok(ptowsp_run_bind_size(other, "batch", 20));
        p.inside = wait_for_refusal;
        p.watch.lane_count = 2;
        rival rivals[2] = {{&p, p.run, PTOWSP_OK, 2},
                           {&p, round % 2 ? other : p.run, PTOWSP_OK, 2}};
        test_threads(rival_main, rivals, sizeof rivals[0], 2);
        assert_int_equal(rivals[0].status + rivals[1].status, (int)PTOWSP_OK + (int)PTOWSP_BUSY);
        assert_int_equal(p.data[0], 20);
        assert_int_equal(p.watch.wrong_count, 0);
        ptowsp_run_destroy(other);
        lp_end(&p);
    }
}

// -- executors ------------------------------------------------------------------------------------

static void run_none(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    (void)user, (void)lane_count, (void)lane, (void)job;
}

static void run_last_only(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    (void)user;
    lane(job, lane_count - 1);
}

static void run_twice(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    (void)user;
    for (uint32_t i = 0; i < lane_count; i++) {
        lane(job, i);
        lane(job, i);
    }
}

// The work is done all the same; and a failure of a kernel comes first.
TEST(run_lanes_misuse__executors_that_break_their_contract) {
    static const ptowsp_run_lanes_fn executors[] = {run_none, run_last_only, run_twice};
    for (int i = 0; i < 3; i++) {
        lp p;
        build_steps(&p, LANE_IN_ORDER, 3);
        const ptowsp_context_desc desc = {
            .threads = PTOWSP_THREADS_USER, .lane_count = 3, .run_lanes = executors[i]};
        ptowsp_context *context = test_context(&desc), *own = p.context;
        ptowsp_run *run = p.run;
        p.run = test_run_of(context, p.program);
        p.context = context;
        test_bind(p.run, "x", p.data);
        assert_ok(ptowsp_run_bind_size(p.run, "batch", 20));
        for (int round = 0; round < 3; round++) {
            bool fails = round == 1;
            p.result[5] = fails ? ptowsp_task_fail(PTOWSP_UNBOUND) : 0;
            assert_int_equal(lp_execute(&p, 2), fails ? PTOWSP_UNBOUND : PTOWSP_SYSTEM_FAILED);
            assert_true(fails || p.data[0] == 20);
            assert_true(fails || ptowsp_run_result(p.run)->task_count == 40);
        }
        ptowsp_run_destroy(p.run);
        ptowsp_context_destroy(context);
        p.run = run;
        p.context = own;
        lp_end(&p);
    }
}

typedef struct sharer {
    const ptowsp_program *program;
    bool is_good;
} sharer;

static ptowsp_cycles no_watch(const ptowsp_task *task, void *user) {
    (void)user;
    int32_t *data = (int32_t *)task->tiles[0].data;
    data[0]++;
    return 1;
}

static void *sharer_main(void *arg) {
    sharer *s = (sharer *)arg;
    ptowsp_context *context = lane_context(LANE_OWN, 2, NULL);
    ptowsp_run *run = NULL;
    int32_t data[LP_SIDE * LP_SIDE] = {0};
    ptowsp_buffer buffer = {.data = data};
    s->is_good = ptowsp_run_create(context, s->program, &run) == PTOWSP_OK &&
                 ptowsp_run_bind_tensor(run, "x", &buffer) == PTOWSP_OK &&
                 ptowsp_run_bind_size(run, "batch", 100) == PTOWSP_OK;
    for (int i = 0; i < 10 && s->is_good; i++) {
        s->is_good = test_execute(run, 2) == PTOWSP_OK && data[0] == (i + 1) * 100;
    }
    ptowsp_run_destroy(run);
    ptowsp_context_destroy(context);
    return NULL;
}

#define LP_TEST(name, kind, lane_count)                                                            \
    TEST_MADE(name, lp, p, lp_begin(p, kind, lane_count), lp_end(p))

// A program is immutable: runs of it are on lanes of several contexts at the same time.
LP_TEST(run_lanes_misuse__one_program_runs_on_lanes_of_several_contexts, LANE_IN_ORDER, 2) {
    sharer sharers[3];
    p->count_fn = no_watch;
    lp_parse(p, "kernel count(axes 1, inout tile i32 1 x 1) vector\nworkload main\n"
                "  parallel i in batch\n    task count(1) tile = x\n");
    lp_compile(p, NULL);
    for (int i = 0; i < 3; i++) {
        sharers[i].program = p->program;
    }
    test_threads(sharer_main, sharers, sizeof sharers[0], 3);
    for (int i = 0; i < 3; i++) {
        assert_true(sharers[i].is_good);
    }
}

// -- memory ---------------------------------------------------------------------------------------

// Everything: tiles that are read by many, scopes, edges, streams, loads, tile kernels, a pipeline.
#define ALL                                                                                        \
    "tensor y f32 [8, 8] global\n"                                                                 \
    "kernel double(axes 0, inout v f32 8 x 8) vector, 10 instructions\n"                           \
    "  %1 = parameter v\n  %2 = load %1 : f32 8 x 8\n  %3 = load %1 : f32 8 x 8\n"                 \
    "  %4 = add %2, %3 : f32 8 x 8\n  store %1, %4\nworkload main\n  parallel i in batch\n"        \
    "    task double() v = y\n    task get(1) tile = x of 4 x 4\n"                                 \
    "    task get(1) tile = x of 4 x 4\n    task get(1) tile = x of 8 x 8 as node 1\n"             \
    "    task touch(1) tile = x of 4 x 4\n    task step(3) after node 1\n"                         \
    "  slot_load 0 = x of 1 x 1\n"

static void build_all(lp *p, bool has_pipeline) {
    lp_begin(p, LANE_OWN, 2);
    lp_parse(p, has_pipeline ? ALL "  pipeline line\n    channel c depth 2 latency 0\n"
                                   "    process a produces c\n      for_each i in batch\n"
                                   "        task double() v = y\n        send c(i)\n"
                                   "    process b consumes c\n      consume t from c\n"
                                   "        task touch(1) tile = x of 4 x 4\n"
                             : ALL);
}

static ptowsp_status compile_all(lp *p, float *y) {
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_HYBRID);
    schedule.dependencies |= PTOWSP_DEPENDENCIES_EXPLICIT;
    schedule.stream_count = 3;
    schedule.stream_key = ptowsp_task_arg(p->m, 0);
    ptowsp_status status = lp_try_compile(p, &schedule);
    if (status == PTOWSP_OK) {
        ptowsp_buffer buffer = {.data = y};
        status = ptowsp_run_bind_tensor(p->run, "y", &buffer);
    }
    status = status ? status : ptowsp_run_bind_size(p->run, "batch", 30);
    return status ? status : lp_execute(p, 2);
}

static void all_is_right(lp *p, float *y) {
    y[0] = 1;
    assert_ok(lp_execute(p, 2));
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

TEST(run_lanes_misuse__any_allocation_may_fail) {
    refuse_each(false);
    refuse_each(true);
}

// Executes with one more allocation each time, as what has been allocated before stays, until all is there; after
// each failure all works. The number of failures.
static size_t lacks(lp *p, int32_t first) {
    for (size_t refused = 0;; refused++) {
        p->memory.refuse_at = p->memory.allocations + 1;
        const ptowsp_status status = lp_execute(p, 2);
        p->memory.refuse_at = 0;
        if (status == PTOWSP_OK) {
            return refused;
        }
        assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
        assert_non_null(strstr(ptowsp_context_error(p->context).text, "out of memory"));
        assert_ok(lp_execute(p, 2));
        assert_int_equal(p->data[0], first);
    }
}

// What is taken while tasks wait for each other: 2000 readers of one tile, then a writer, and again.
LP_TEST(run_lanes_misuse__memory_may_end_while_tasks_wait, LANE_IN_ORDER, 2) {
    lp_parse(p, "axis four 4\nworkload main\n  parallel i in batch\n"
                "    task touch(1) tile = x of 4 x 4\n    parallel k in batch\n"
                "      parallel t in four\n        task get(1) tile = x at (t, t) of 1 x 1\n"
                "        task get(1) tile = x of 4 x 4\n");
    const ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_HYBRID);
    lp_compile(p, &schedule);
    size_t refused = 0;
    for (int32_t batch = 4; batch <= 24; batch += 4) {
        assert_ok(ptowsp_run_bind_size(p->run, "batch", batch));
        refused += lacks(p, batch);
        assert_int_equal(p->data[0], batch);
    }
    assert_true(refused > 3);
}

// The same in a process, whose tasks have cycles that are known: it goes on while they wait. They read all
// elements of x, one by one, then write them, and again.
LP_TEST(run_lanes_misuse__memory_may_end_in_a_process, LANE_IN_ORDER, 2) {
    lp_parse(p,
             "kernel get_known(axes 1, in tile i32 ? x ?) vector, 10 cycles\n"
             "kernel touch_known(axes 1, inout tile i32 ? x ?) vector, 10 cycles\n"
             "workload main\n  pipeline pipe\n    process one\n      task touch_known(1) tile = x\n"
             "      for_each i in batch\n        for_each k in batch\n"
             "          task get_known(1) tile = x at (i, k) of 1 x 1\n"
             "          task get_known(1) tile = x at (i, k) of 1 x 1\n"
             "          task touch_known(1) tile = x at (i, k) of 1 x 1\n");
    const ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_HYBRID);
    lp_compile(p, &schedule);
    size_t refused = 0;
    for (int64_t batch = 4; batch <= LP_SIDE; batch += 4) {
        assert_ok(ptowsp_run_bind_size(p->run, "batch", batch));
        refused += lacks(p, 2);
        assert_int_equal(p->data[(batch - 1) * (LP_SIDE + 1)], 2);
        assert_true(batch == LP_SIDE || p->data[batch * (LP_SIDE + 1)] == 1);
    }
    assert_true(refused > 0);
}
