// Plain tasks with a window, batch by batch and in bulk, against the rules done the slow way
// (batch_reference.h). Also against the same run with records, which issues tasks one by one.

#include "src/time/lanes.h"

#include "batch_reference.h"

typedef struct batch_sample {
    uint32_t task_count, lane_count, window, scopes;
    bool has_keys, is_in_order;
    uint32_t kind;  // of durations
    uint64_t salt;
} batch_sample;

static uint64_t cycles_of(const batch_sample *s, uint64_t i) {
    uint64_t x = (i + s->salt) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    return s->kind == 0   ? 10  // all end together
           : s->kind == 1 ? x % 4
           : s->kind == 2 ? 100 + x % 4096
           : s->kind == 3 ? (x % 64 ? 5 : 20000)
           : s->kind == 4 ? UINT64_C(1) << x % 40
           : s->kind == 5 ? (UINT64_C(1) << 50) + x % 1024
                          : (i % 96 == 95 ? 1000000 : 1);
}

static ptowsp_cycles task_cycles(const ptowsp_task *task, void *user) {
    return cycles_of((const batch_sample *)user, task->index);
}

static void run_slowly(const batch_sample *s, slow_lanes *r) {
    const uint32_t in_scope = s->task_count / s->scopes;
    uint64_t scope_ready = 0;
    memset(r, 0, sizeof *r);
    r->lane_count = s->lane_count;
    r->window = s->window;
    r->is_in_order = s->is_in_order;
    for (uint32_t i = 0; i < s->task_count; i++) {
        scope_ready = i % in_scope == 0 ? r->makespan : scope_ready;
        slow_place(r, scope_ready, (s->has_keys ? i % in_scope / 7 : i) % s->lane_count,
                   cycles_of(s, i));
    }
}

static void check_sample(batch_sample *s) {
    fixture f = {.context = test_context(NULL)};
    static slow_lanes expected;
    char text[256];
    const ptowsp_parse_kernel kernel = {.name = "work", .cost = task_cycles, .user = s};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    snprintf(text, sizeof text,
             "module m\naxis scopes %u\naxis n %u\n"
             "kernel work(axes 1) vector, cycles by a cost function, time only\nworkload main\n"
             "  for_each scope in scopes\n    parallel i in n\n      task work(i)\n",
             s->scopes, s->task_count / s->scopes);
    module_make(&f, text, &attached);
    ptowsp_schedule schedule = {.issue =
                                    s->is_in_order ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW,
                                .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
                                .lane_count = s->lane_count,
                                .window = s->window,
                                .dependencies = PTOWSP_DEPENDENCIES_STRUCTURE};
    if (s->has_keys) {
        schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
        schedule.dispatch_key = ptowsp_div(ptowsp_task_arg(f.module, 0), ptowsp_i64(f.module, 7));
    }
    const ptowsp_program_desc desc = {NULL, &schedule};
    program_make(&f, NULL, NULL, &desc);
    run_slowly(s, &expected);
    for (int has_records = 0; has_records < 2; has_records++) {
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                            .record_tasks = has_records == 1};
        assert_ok(ptowsp_run_execute(f.run, &options));
        slow_check(&expected, f.run);
    }
    fixture_free(&f);
}

TEST(batch__times_are_those_of_the_rules_done_slowly) {
    const uint64_t seed = test_seed();
    for (uint32_t sample = 0; TEST_ROUNDS(sample, 150); sample++) {
        uint64_t random = seed + sample;
        batch_sample s = {
            .lane_count = (uint32_t)test_random_in(&random, 1, sample % 8 ? 12 : SLOW_LANES_MAX)};
        s.scopes = (uint32_t)test_random_in(&random, 1, 3);
        s.task_count = (uint32_t)test_random_in(&random, 1, SLOW_TASKS_MAX / 3) * s.scopes;
        s.window = (uint32_t)test_random_in(&random, 1, sample % 2 ? 1000 : 100);
        s.has_keys = test_random(&random) % 3 == 0;
        s.kind = (uint32_t)(test_random(&random) % 5);
        s.salt = test_random(&random);
        s.is_in_order = test_random(&random) % 3 == 0;
        check_sample(&s);
    }
}

// Lanes that are busy for 2^50 cycles, and tasks in flight of which all but one end early.
TEST(batch__ends_far_away_and_ends_that_crowd_are_found) {
    for (uint32_t i = 0; i < 64; i++) {
        batch_sample s = {.lane_count = 1 + i / 2 % 4,
                          .scopes = 1,
                          .task_count = 1500,
                          .window = i / 8 % 2 ? 64 : 100,
                          .kind = 5 + i % 2,
                          .is_in_order = i / 16 % 2,
                          .has_keys = i / 32};
        check_sample(&s);
    }
}

// -- ends that the clock has passed ----------------------------------------------------------------

static ptowsp_cycles own_cycles(const ptowsp_task *task, void *user) {
    (void)user;
    return task->args[0];
}

// On lane 1 tasks end at 10, 20, 30. The clock moves to 50: to the end of the task on lane 0 that
// writes x, by a slot load, or to that of a pipeline in its place, by another pipeline, which is in
// order. Both lanes are busy up to 1000. Tasks that take no time are then issued at 50, and those that
// find the window full wait for 1000.
static void check_passed(bool is_pipeline, uint32_t window, uint32_t count) {
    char text[2048];
    sprintf(text,
            "module m slots 1\n"
            "axis n %u\n"
            "tensor x i32 [1, 1] global\n"
            "kernel put(axes 1, out x i32 1 x 1) vector, cycles by a cost function\n"
            "kernel get(axes 1, in x i32 1 x 1) vector, cycles by a cost function\n"
            "kernel work(axes 1) vector, cycles by a cost function\n"
            "workload main\n"
            "%s"
            "  task work(10) tag \"lane\" = 1u\n"
            "  task work(10) tag \"lane\" = 1u\n"
            "  task work(10) tag \"lane\" = 1u\n"
            "  task work(%u) tag \"lane\" = 0u\n"
            "  task work(970) tag \"lane\" = 1u\n"
            "%s"
            "  parallel i in n\n"
            "    task work(0) tag \"lane\" = 0u\n",
            count,
            is_pipeline ? "  pipeline first\n    process only\n      task put(50) x = x\n"
                        : "  task put(50) x = x tag \"lane\" = 0u\n",
            is_pipeline ? 1000 : 950,
            is_pipeline ? "  pipeline second\n    process only\n      task get(0) x = x\n"
                        : "  slot_load 0 = x element ((0), (0))\n");
    const ptowsp_parse_kernel kernels[3] = {{.name = "put", .fn = own_cycles, .cost = own_cycles},
                                            {.name = "get", .fn = own_cycles, .cost = own_cycles},
                                            {.name = "work", .fn = own_cycles, .cost = own_cycles}};
    const ptowsp_parse_desc attached = {kernels, 3, 0};
    int32_t x = 0;
    fixture f = {.context = test_context(NULL)};
    module_make(&f, text, &attached);
    const ptowsp_schedule schedule = {.issue = is_pipeline ? PTOWSP_ISSUE_IN_ORDER
                                                           : PTOWSP_ISSUE_DATAFLOW,
                                      .dispatch = PTOWSP_DISPATCH_AFFINITY,
                                      .dispatch_key = ptowsp_task_tag(f.module, "lane"),
                                      .lane_count = 2,
                                      .window = window,
                                      .dependencies = PTOWSP_DEPENDENCIES_OVERLAP};
    const ptowsp_program_desc desc = {NULL, &schedule};
    program_make(&f, NULL, NULL, &desc);
    ptowsp_run *run = f.run;
    test_bind(run, "x", &x);
    const uint64_t found = window - 2 < count ? window - 2 : count, full = count - found;
    const uint64_t before = is_pipeline ? 5 : 6;  // on lanes
    const uint64_t most = found + 2 < before ? before : found + 2;
    for (int has_records = 0; has_records < 2; has_records++) {
        const ptowsp_run_options options = {.record_tasks = has_records == 1};
        assert_ok(ptowsp_run_execute(run, &options));
        const ptowsp_run_stats *stats = ptowsp_run_result(run);
        assert_int_equal(stats->makespan_cycles, 1000);
        assert_int_equal(stats->in_flight_max, most);
        assert_int_equal(stats->stall_cycles[PTOWSP_STALL_SLOT], is_pipeline ? 0 : 50);
        assert_int_equal(stats->stall_cycles[PTOWSP_STALL_DEPENDENCY], is_pipeline ? 50 : 0);
        assert_int_equal(stats->stall_cycles[PTOWSP_STALL_WINDOW], full ? 950 : 0);
        // Of those before: on lane 1 for 10 + 20 + 30; on lane 0 for the task that writes x.
        assert_int_equal(stats->stall_cycles[PTOWSP_STALL_LANE],
                         60u + (is_pipeline ? 0u : 50u) + found * 950);
    }
    fixture_free(&f);
}

TEST(batch__ends_that_a_load_or_a_pipeline_has_passed_have_left) {
    for (uint32_t is_pipeline = 0; is_pipeline < 2; is_pipeline++) {
        for (uint32_t window = 6; window <= 40; window++) {
            for (uint32_t count = 1; count <= 40; count += 3) {
                check_passed(is_pipeline != 0, window, count);
            }
        }
    }
}

// -- memory ---------------------------------------------------------------------------------------

enum { REFUSED_TASKS = 600, REFUSED_LANES = 2 };

static ptowsp_cycles ten_cycles(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 10;
}

// Each allocation of a first execution is refused in turn: that of a larger ring in the middle of a bulk,
// too. What then is reported is consistent, and all is well afterwards.
static bool check_refused(test_memory *memory, const ptowsp_program *program,
                          ptowsp_context *context, size_t refused) {
    ptowsp_run *run = test_run_of(context, program);
    test_refuse(memory, refused);
    const bool was_refused = test_was_refused(memory, ptowsp_run_execute(run, NULL));
    for (uint32_t again = 0; again < 2; again++) {
        const ptowsp_run_stats *stats = ptowsp_run_result(run);
        uint64_t done = 0;
        for (uint32_t i = 0; i < REFUSED_LANES; i++) {
            const ptowsp_lane_stats *lane = &ptowsp_run_lanes(run)[i];
            done += lane->task_count;
            assert_int_equal(lane->busy_cycles, 10 * lane->task_count);
            assert_true(lane->busy_cycles <= stats->makespan_cycles);
        }
        assert_int_equal(stats->task_count, done);
        assert_true(again == 0 || done == REFUSED_TASKS);
        assert_ok(ptowsp_run_execute(run, NULL));
    }
    ptowsp_run_destroy(run);
    return was_refused;
}

TEST(batch__memory_that_is_refused_leaves_what_was_done) {
    test_memory memory;
    const ptowsp_parse_kernel kernel = {.name = "work", .fn = ten_cycles};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
                                      .lane_count = REFUSED_LANES,
                                      .window = 1000,
                                      .dependencies = PTOWSP_DEPENDENCIES_STRUCTURE};
    const ptowsp_program_desc desc = {NULL, &schedule};
    fixture f = {.context = test_counted(&memory)};
    program_make(&f,
                 "module m\naxis n 600\nkernel work(axes 0) vector\nworkload main\n"
                 "  parallel i in n\n    task work()\n",
                 &attached, &desc);
    EACH_REFUSED(n, 10) {  // rings of both lanes have grown to 512
        has_more = check_refused(&memory, f.program, f.context, n);
    }
    fixture_free(&f);
    assert_int_equal(memory.live_blocks, 0);
}

// The ring of a lane has up to 2^30 places: twice as many could not be counted on.
TEST(batch__a_ring_of_the_window_stays_below_32_bits) {
    test_memory memory = {0};
    const pwsp_memory from = pwsp_memory_make(test_resize, &memory);
    pwsp_flight_queue queue = {.capacity = 1u << 30, .count = 1u << 30};
    pwsp_window window = {.queues = &queue, .tournament.lane_count = 1};
    assert_false(pwsp_window_grow(&window, &from, 0));
    assert_int_equal(memory.allocations, 0);
    assert_int_equal(queue.capacity, 1u << 30);
}
