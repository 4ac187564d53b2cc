// Batches that are bound in place of a plan: planned as an execution begins, in memory of the run.
//
// Expected plans come from paper: costs are 1 per KV token, so that lanes get equal shares of the
// tokens. The first is the one that section 9 of the header draws.

#include "device_fixture.h"

enum { LANES = 4, LENGTH_MAX = 64, CALL_MAX = 4096, COLUMNS = 6 };

typedef struct call {
    int64_t values[COLUMNS];
} call;

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_axis units, merges, lanes, plain;
    ptowsp_program *program;
    ptowsp_run *run;
    call calls[CALL_MAX];
    uint32_t call_count;
    ptowsp_status said;  // by what a kernel called
    int32_t lengths[LENGTH_MAX], queries[LENGTH_MAX];
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
} fixture;

static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    uint32_t at = __atomic_fetch_add(&f->call_count, 1, __ATOMIC_RELAXED);
    assert_true(at < CALL_MAX);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        f->calls[at].values[i] = (int64_t)ptowsp_task_scalar(task, i);
    }
    return 1;
}

static void task_of(const fixture *f, ptowsp_kernel kernel, const ptowsp_expr *scalars) {
    ptowsp_task_desc task = {.kernel = kernel};
    memcpy(task.scalars, scalars, COLUMNS * sizeof scalars[0]);
    ptowsp_task_make(f->m, &task);
}

static void lengths_are(fixture *f, uint32_t count, const int32_t *lengths) {
    memcpy(f->lengths, lengths, count * sizeof lengths[0]);
    f->batch.kv_lengths = f->lengths;
    f->batch.sequence_count = count;
}

// A unit is noted as request, start, length, slot, lane, 0; a merge as request, first slot, slots,
// 0, lane, 1.
static bool fixture_try(fixture *f, test_memory *memory) {
    memset(f, 0, sizeof *f);
    ptowsp_context_desc context = {.resize = memory ? test_resize : NULL, .resize_user = memory};
    ptowsp_module_desc desc = {"decode", 0};
    f->config.kv_head_count = 1;
    f->config.lane_count = LANES;
    f->config.cost.per_token = 1.0;
    lengths_are(f, 3, (const int32_t[]){250, 100, 50});
    if (ptowsp_context_create(&context, &f->context) != PTOWSP_OK ||
        ptowsp_module_create(f->context, &desc, &f->m) != PTOWSP_OK) {
        return false;
    }
    ptowsp_module *m = f->m;
    f->plain = ptowsp_axis_dense(f->m, "plain", 3);
    f->units = ptowsp_axis_plan(m, "kv");
    f->merges = ptowsp_axis_plan_merges(m, "kv");
    f->lanes = ptowsp_axis_plan_lanes(m, "kv");
    ptowsp_kernel_desc kernel = {.name = "note", .fn = note, .cycles = 1, .user = f};
    static const char *const names[COLUMNS] = {"a", "b", "c", "d", "e", "f"};
    for (uint32_t i = 0; i < COLUMNS; i++) {
        kernel.scalars[i] = (ptowsp_scalar_param){names[i], PTOWSP_TYPE_I64};
    }
    ptowsp_kernel noting = ptowsp_kernel_make(m, &kernel);
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_FOR_EACH(m, lane, f->lanes) {
            PTOWSP_FOR_EACH(m, u, ptowsp_axis_row(m, f->units, lane)) {
                ptowsp_expr scalars[COLUMNS] = {ptowsp_loop_field(u, PTOWSP_PLAN_REQUEST),
                                                ptowsp_loop_field(u, PTOWSP_PLAN_KV_START),
                                                ptowsp_loop_field(u, PTOWSP_PLAN_KV_LEN),
                                                ptowsp_loop_field(u, PTOWSP_PLAN_SLOT),
                                                lane,
                                                ptowsp_i64(m, 0)};
                task_of(f, noting, scalars);
            }
        }
        PTOWSP_FOR_EACH(m, x, f->merges) {
            ptowsp_expr scalars[COLUMNS] = {ptowsp_loop_field(x, PTOWSP_PLAN_REQUEST),
                                            ptowsp_loop_field(x, PTOWSP_PLAN_SLOT_FIRST),
                                            ptowsp_loop_field(x, PTOWSP_PLAN_SLOT_COUNT),
                                            ptowsp_i64(m, 0),
                                            ptowsp_loop_field(x, PTOWSP_PLAN_LANE),
                                            ptowsp_i64(m, 1)};
            task_of(f, noting, scalars);
        }
    }
    return ptowsp_program_create(f->context, m, NULL, &f->program) == PTOWSP_OK &&
           ptowsp_run_create(f->context, f->program, &f->run) == PTOWSP_OK;
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
}

static void good(const fixture *f, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

static void fixture_make(fixture *f) {
    bool is_made = fixture_try(f, NULL);
    assert_true(is_made);
}

static void bind(const fixture *f) {
    good(f, ptowsp_run_bind_batch(f->run, "kv", &f->batch, &f->config, NULL));
}

static void execute(fixture *f) {
    f->call_count = 0;
    good(f, ptowsp_run_execute(f->run, NULL));
}

static void calls_are(const fixture *f, const call *expected, uint32_t count) {
    assert_int_equal(f->call_count, count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < COLUMNS; j++) {
            assert_int_equal(f->calls[i].values[j], expected[i].values[j]);
        }
    }
}

// -- plans on paper -------------------------------------------------------------------------------

#define WHOLE PTOWSP_NO_SLOT

// Lengths 250, 100, 50; the merge of each tile is on the lane of its first part.
static const call drawn[8] = {{{0, 0, 100, 0, 0, 0}},  {{0, 100, 100, 1, 1, 0}},
                              {{0, 200, 50, 2, 2, 0}}, {{1, 0, 50, 3, 2, 0}},
                              {{1, 50, 50, 4, 3, 0}},  {{2, 0, 50, WHOLE, 3, 0}},
                              {{0, 0, 3, 0, 0, 1}},    {{1, 3, 2, 0, 2, 1}}};
// Lengths 100, 100, 100, 100.
static const call even[4] = {{{0, 0, 100, WHOLE, 0, 0}},
                             {{1, 0, 100, WHOLE, 1, 0}},
                             {{2, 0, 100, WHOLE, 2, 0}},
                             {{3, 0, 100, WHOLE, 3, 0}}};
// Length 400.
static const call alone[5] = {{{0, 0, 100, 0, 0, 0}},
                              {{0, 100, 100, 1, 1, 0}},
                              {{0, 200, 100, 2, 2, 0}},
                              {{0, 300, 100, 3, 3, 0}},
                              {{0, 0, 4, 0, 0, 1}}};

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

FIXTURE_TEST(plan_batch__each_execution_plans_the_lengths_of_the_moment) {
    bind(f);
    execute(f);
    calls_are(f, drawn, 8);
    execute(f);
    calls_are(f, drawn, 8);
    lengths_are(f, 3, (const int32_t[]){400, 0, 0});  // of the same three sequences
    execute(f);
    calls_are(f, alone, 5);
    lengths_are(f, 3, (const int32_t[]){0, 0, 0});
    execute(f);
    assert_int_equal(f->call_count, 0);
    lengths_are(f, 4, (const int32_t[]){200, 0, 200, 100});  // a fourth one has to be bound
    execute(f);
    assert_int_equal(f->call_count, 6);  // halves of 200, and their merges
    lengths_are(f, 4, (const int32_t[]){100, 100, 100, 100});
    bind(f);
    execute(f);
    calls_are(f, even, 4);
    f->batch.sequence_count = 0;
    f->batch.kv_lengths = NULL;
    bind(f);
    execute(f);
    assert_int_equal(f->call_count, 0);
}

FIXTURE_TEST(plan_batch__any_way_of_running_plans) {
    bind(f);
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    good(f, ptowsp_run_execute(f->run, &options));
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 8);
    assert_int_equal(f->call_count, 0);
    lengths_are(f, 3, (const int32_t[]){400, 0, 0});
    good(f, ptowsp_run_execute(f->run, &options));
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 5);
}

DEVICE_TEST(plan_batch__lanes_and_devices_plan_as_well) {
    static fixture f;
    fixture_make(&f);
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = 2};
    ptowsp_run *run, *serial = f.run;
    ptowsp_context *context = test_context(&desc);
    assert_ok(ptowsp_run_create(context, f.program, &run));
    f.run = run;
    bind(&f);
    ptowsp_run_options options = {.lane_count = 2};
    assert_ok(ptowsp_run_execute(run, &options));
    assert_int_equal(f.call_count, 8);
    f.run = serial;
    bind(&f);
    ptowsp_device *device = device_of(f.context, 1, 2, 0);
    lengths_are(&f, 3, (const int32_t[]){0, 400, 0});
    f.call_count = 0;
    good(&f, ptowsp_device_run(device, f.run, NULL));
    assert_int_equal(f.call_count, 5);
    assert_ok(ptowsp_device_close(device));
    ptowsp_run_destroy(run);
    ptowsp_context_destroy(context);
    fixture_free(&f);
}

FIXTURE_TEST(plan_batch__plans_and_batches_take_each_others_place) {
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan plan, other;
    uint64_t block[64];
    assert_false(ptowsp_run_bound_batch(f->run, f->units.id, &batch, &config, &sizes));
    bind(f);
    assert_false(ptowsp_run_bound_batch(f->run, f->plain.id, &batch, &config, &sizes));
    assert_false(ptowsp_run_bound_plan(f->run, f->plain.id, &plan));
    const uint32_t ids[3] = {f->units.id, f->merges.id, f->lanes.id};
    for (int i = 0; i < 3; i++) {
        assert_true(ptowsp_run_bound_batch(f->run, ids[i], &batch, &config, &sizes));
        assert_ptr_equal(batch.kv_lengths, f->lengths);
        assert_int_equal(batch.sequence_count, 3);
        assert_int_equal(config.lane_count, LANES);
        assert_int_equal(sizes.lane_count, 0);
        assert_false(ptowsp_run_bound_plan(f->run, ids[i], &plan));
    }
    execute(f);
    assert_true(ptowsp_run_bound_plan(f->run, f->merges.id, &plan));
    assert_true(plan.unit_count == 6 && plan.merge_count == 2 && plan.slot_count == 5);
    assert_true(plan.cost_max == 100.0 && plan.cost_mean == 100.0);
    // A plan of another batch, then the batch again.
    lengths_are(f, 1, (const int32_t[]){400});
    assert_ok(ptowsp_attention_size(&f->batch, &f->config, &sizes, NULL));
    assert_ok(ptowsp_attention_place(&sizes, block, sizeof block, &other));
    assert_ok(ptowsp_attention_generate(&f->batch, &f->config, &other, NULL));
    good(f, ptowsp_run_bind_plan(f->run, "kv", &other));
    assert_false(ptowsp_run_bound_batch(f->run, f->units.id, &batch, &config, &sizes));
    lengths_are(f, 1, (const int32_t[]){-1});  // not looked at any more
    execute(f);
    calls_are(f, alone, 5);
    lengths_are(f, 3, (const int32_t[]){250, 100, 50});
    bind(f);
    execute(f);
    calls_are(f, drawn, 8);
}

// -- errors ---------------------------------------------------------------------------------------

static void bind_refused(fixture *f, const ptowsp_attention_sizes *capacity, const char *text) {
    test_invalid(f->context, ptowsp_run_bind_batch(f->run, "kv", &f->batch, &f->config, capacity),
                 text);
}

FIXTURE_TEST(plan_batch__binding_refuses_what_no_batch_can_be_planned_with) {
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_UNBOUND);
    bind(f);
    const ptowsp_attention_config config = f->config;
    const ptowsp_attention_batch batch = f->batch;
    f->config.lane_count = 0;
    bind_refused(f, NULL, "bind: plan kv: lane_count 0 is not in 1 to 65536");
    f->config = config;
    f->config.kv_head_count = 0;
    bind_refused(f, NULL, "bind: plan kv: kv_head_count is 0");
    f->config = config;
    f->config.cost.per_unit = -1.0;
    test_refused(f->context, ptowsp_run_bind_batch(f->run, "kv", &f->batch, &f->config, NULL),
                 PTOWSP_INVALID_PARAMS, 0,
                 "bind: plan kv: cost.per_unit is negative, NaN or out of range");
    f->config = config;
    f->config.shares_merges = true;
    bind_refused(f, NULL,
                 "bind: the configuration of plan kv has shares_merges, which programs do not do");
    f->config = config;
    const int32_t sinks[3] = {4, 0, 0};
    ptowsp_attention_positions positions = {3, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    f->config.positions = &positions;
    assert_ok(ptowsp_run_bind_batch(f->run, "kv", &f->batch, &f->config, NULL));
    positions.sinks = sinks;
    bind_refused(
        f, NULL,
        "bind: the configuration of plan kv has positions.sinks, which programs do not do");
    // Nor is a plan that was made with them bound, if a unit has sinks apart.
    ptowsp_attention_sizes planned;
    ptowsp_attention_plan plan;
    uint64_t block[128];
    f->config.window = 9;
    assert_ok(ptowsp_attention_size(&f->batch, &f->config, &planned, NULL));
    assert_ok(ptowsp_attention_place(&planned, block, sizeof block, &plan));
    assert_ok(ptowsp_attention_generate(&f->batch, &f->config, &plan, NULL));
    test_refused(f->context, ptowsp_run_bind_plan(f->run, "kv", &plan), PTOWSP_INVALID_PARAMS, 0,
                 "bind: unit 0 of plan kv has sinks apart, which programs do not do (positions)");
    f->config = config;
    f->batch.kv_lengths = NULL;
    bind_refused(f, NULL, "bind: plan kv: lengths is NULL with sequence_count 3");
    f->batch = batch;
    ptowsp_attention_sizes sizes = {6, 2, 5, 1, LANES + 1, 1000};
    bind_refused(f, &sizes, "bind: the capacity of plan kv is not of its configuration");
    sizes.lane_count = LANES;
    const ptowsp_attention_sizes fits = sizes;
    for (int i = 0; i < 3; i++) {
        sizes = fits;
        *(i == 0   ? &sizes.unit_count
          : i == 1 ? &sizes.merge_count
                   : &sizes.slot_count) = UINT64_C(1) << 32;
        bind_refused(f, &sizes, "bind: the capacity of plan kv is not of its configuration");
    }
    test_invalid(f->context, ptowsp_run_bind_batch(f->run, "kv", NULL, &f->config, NULL),
                 "bind: plan kv: batch is NULL");
    test_invalid(f->context, ptowsp_run_bind_batch(f->run, "kv", &f->batch, NULL, NULL),
                 "bind: plan kv: config is NULL");
    test_invalid(f->context, ptowsp_run_bind_batch(f->run, "v", &f->batch, &f->config, NULL),
                 "bind: module decode has no plan v; it has kv");
    execute(f);  // the old binding stays
    calls_are(f, drawn, 8);
}

FIXTURE_TEST(plan_batch__errors_of_planning_are_errors_of_the_run) {
    static const ptowsp_tier tiers[1] = {{0, 1, 300}};
    f->config.is_causal = true;
    f->config.tiers = tiers;
    f->config.tier_count = 1;
    for (uint32_t i = 0; i < LENGTH_MAX; i++) {
        f->queries[i] = 1;
    }
    f->batch.query_lengths = f->queries;
    bind(f);
    static const struct {
        int32_t lengths[3], queries;
        ptowsp_status status;
        uint64_t index;
        const char *text;
    } wrong[] = {
        {{250, -5, 50},
         1,
         PTOWSP_INVALID_PARAMS,
         1,
         "run: plan kv: sequence 1 has the negative length -5"},
        {{250, 100, 301},
         1,
         PTOWSP_UNSUPPORTED_SIZE,
         2,
         "run: plan kv: sequence 2 has length 301, which no tier covers"},
        {{3, 100, 50},
         4,
         PTOWSP_INVALID_PARAMS,
         0,
         "run: plan kv: sequence 0 has 4 queries for 3 KV tokens, under is_causal"},
    };
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        ptowsp_attention_plan plan;
        lengths_are(f, 3, wrong[i].lengths);
        f->queries[0] = wrong[i].queries;
        f->call_count = 0;
        test_refused(f->context, ptowsp_run_execute(f->run, NULL), wrong[i].status, wrong[i].index,
                     wrong[i].text);
        assert_int_equal(f->call_count, 0);
        assert_false(ptowsp_run_bound_plan(f->run, f->units.id, &plan));
        lengths_are(f, 3, (const int32_t[]){250, 100, 50});
        f->queries[0] = 1;
        execute(f);
        calls_are(f, drawn, 8);
    }
}

static ptowsp_cycles bind_again(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    (void)task;
    f->said = ptowsp_run_bind_batch(f->run, "kv", &f->batch, &f->config, NULL);
    return 1;
}

TEST(plan_batch__a_run_that_runs_is_busy) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ptowsp_module_desc desc = {"decode", 0};
    assert_ok(ptowsp_context_create(NULL, &f.context));
    assert_ok(ptowsp_module_create(f.context, &desc, &f.m));
    f.units = ptowsp_axis_plan(f.m, "kv");
    ptowsp_kernel_desc kernel = {.name = "bind", .fn = bind_again, .user = &f};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(f.m, &kernel)};
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_FOR_EACH(f.m, u, f.units) {
            (void)u;
            ptowsp_task_make(f.m, &task);
        }
    }
    good(&f, ptowsp_program_create(f.context, f.m, NULL, &f.program));
    good(&f, ptowsp_run_create(f.context, f.program, &f.run));
    f.config = (ptowsp_attention_config){.kv_head_count = 1, .lane_count = 1};
    lengths_are(&f, 1, (const int32_t[]){10});
    bind(&f);
    execute(&f);
    assert_int_equal(f.said, PTOWSP_BUSY);
    fixture_free(&f);
}

// -- capacity and memory --------------------------------------------------------------------------

// Balanced, 4 lanes, 4 sequences: 4 tiles and 3 splits, so 7 units, 3 merges, 6 slots.
TEST(plan_batch__a_capacity_is_memory_for_good) {
    static fixture f;
    test_memory memory = {0, 0, 0, 0};
    bool is_made = fixture_try(&f, &memory);
    assert_true(is_made);
    const ptowsp_attention_limits limits = {.sequence_count_max = 4, .kv_length_max = 1000};
    ptowsp_attention_sizes sizes;
    assert_ok(ptowsp_attention_bound(&f.config, &limits, &sizes, NULL));
    assert_true(sizes.unit_count == 7 && sizes.merge_count == 3 && sizes.slot_count == 6);
    good(&f, ptowsp_run_bind_batch(f.run, "kv", &f.batch, &f.config, &sizes));
    execute(&f);  // what else an execution needs
    const size_t before = memory.allocations;
    static const int32_t steps[4][4] = {
        {250, 100, 50, 0}, {100, 100, 100, 100}, {400, 0, 0, 0}, {1000, 1000, 1000, 1000}};
    for (int i = 0; i < 4; i++) {
        lengths_are(&f, 4, steps[i]);
        good(&f, ptowsp_run_bind_batch(f.run, "kv", &f.batch, &f.config, &sizes));
        execute(&f);
        assert_int_equal(f.call_count, i == 0 ? 8 : i == 2 ? 5 : 4);
    }
    assert_int_equal(memory.allocations, before);
    static const struct {
        uint64_t units, merges, slots;
        const char *text;
    } small[] = {{5, 2, 5, "run: plan kv: 6 units do not fit the plan, which holds 5"},
                 {6, 1, 5, "run: plan kv: 2 merges do not fit the plan, which holds 1"},
                 {6, 2, 4, "run: plan kv: 5 slots do not fit the scratch, which holds 4"}};
    lengths_are(&f, 3, (const int32_t[]){250, 100, 50});
    for (int i = 0; i < 3; i++) {
        ptowsp_attention_sizes less = sizes;
        less.unit_count = small[i].units;
        less.merge_count = small[i].merges;
        less.slot_count = small[i].slots;
        good(&f, ptowsp_run_bind_batch(f.run, "kv", &f.batch, &f.config, &less));
        test_refused(f.context, ptowsp_run_execute(f.run, NULL), PTOWSP_BUFFER_OVERFLOW,
                     PTOWSP_NO_INDEX, small[i].text);
    }
    good(&f, ptowsp_run_bind_batch(f.run, "kv", &f.batch, &f.config, &sizes));
    execute(&f);
    calls_are(&f, drawn, 8);
    assert_int_equal(memory.allocations, before);
    fixture_free(&f);
    assert_int_equal(memory.live_blocks, 0);
}

TEST(plan_batch__memory_grows_only_where_a_plan_does_not_fit) {
    static fixture f;
    test_memory memory = {0, 0, 0, 0};
    bool is_made = fixture_try(&f, &memory);
    assert_true(is_made);
    int32_t many[40];
    for (int i = 0; i < 40; i++) {
        many[i] = 10;
    }
    bind(&f);
    execute(&f);
    size_t before = memory.allocations, bytes = ptowsp_run_result(f.run)->memory_bytes;
    execute(&f);
    lengths_are(&f, 3, (const int32_t[]){400, 0, 0});
    execute(&f);
    assert_int_equal(memory.allocations, before);
    lengths_are(&f, 40, many);
    bind(&f);
    execute(&f);
    assert_int_equal(f.call_count, 40);
    assert_int_equal(memory.allocations, before + 1);
    assert_true(ptowsp_run_result(f.run)->memory_bytes >= bytes + 34 * sizeof(ptowsp_work));
    for (int32_t count = 40; count > 0; count--) {
        lengths_are(&f, (uint32_t)count, many);
        bind(&f);
        execute(&f);
    }
    f.config.lane_count = LANES / 2;  // fewer lanes fit as well
    lengths_are(&f, 40, many);
    bind(&f);
    execute(&f);
    assert_int_equal(f.call_count, 40);
    assert_int_equal(memory.allocations, before + 1);
    f.config.lane_count = 2 * LANES;
    bind(&f);
    execute(&f);
    assert_int_equal(f.call_count, 40);
    assert_int_equal(memory.allocations, before + 2);
    fixture_free(&f);
    assert_int_equal(memory.live_blocks, 0);
}

// 40 units without merges, then 12 units with 6 merges: there is room for both from then on.
TEST(plan_batch__memory_that_grows_holds_what_it_held) {
    static fixture f;
    test_memory memory = {0, 0, 0, 0};
    bool is_made = fixture_try(&f, &memory);
    assert_true(is_made);
    int32_t lengths[2][40] = {{0}, {20, 20, 20, 20, 20, 20}};
    for (int i = 0; i < 40; i++) {
        lengths[0][i] = 10;
    }
    f.config.mode = PTOWSP_ATTENTION_INVARIANT;
    f.config.chunk = 10;
    size_t before = 0;
    for (int i = 0; i < 4; i++) {
        lengths_are(&f, 40, lengths[i % 2]);
        bind(&f);
        execute(&f);
        assert_int_equal(f.call_count, i % 2 ? 18 : 40);
        before = i == 0 ? memory.allocations : before;
        assert_int_equal(memory.allocations, before + (i > 0));
    }
    fixture_free(&f);
}

// Binds with and without a capacity, each planned. What fails may be tried again.
static bool all_of_it(test_memory *memory, uint32_t *out_failed) {
    static fixture f;
    bool is_good = fixture_try(&f, memory);
    if (is_good) {
        const ptowsp_attention_limits limits = {.sequence_count_max = 8, .kv_length_max = 1000};
        ptowsp_attention_sizes sizes;
        ptowsp_attention_bound(&f.config, &limits, &sizes, NULL);
        for (int i = 0; i < 4; i++) {
            if (i == 2) {
                f.config.lane_count *= 2;  // of another capacity
                ptowsp_attention_bound(&f.config, &limits, &sizes, NULL);
            }
            for (int attempt = 0;; attempt++) {
                ptowsp_status status =
                    ptowsp_run_bind_batch(f.run, "kv", &f.batch, &f.config, i % 2 ? &sizes : NULL);
                f.call_count = 0;
                status = status ? status : ptowsp_run_execute(f.run, NULL);
                if (status == PTOWSP_OK) {
                    break;
                }
                assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
                assert_int_equal(f.call_count, 0);
                assert_int_equal(attempt, 0);
                ++*out_failed;
            }
            assert_true(f.call_count >= 8);
        }
    }
    fixture_free(&f);
    return is_good;
}

TEST(plan_batch__any_allocation_may_fail) {
    uint32_t failed = 0;
    for (size_t refuse_at = 1;; refuse_at++) {
        test_memory memory = {0, 0, 0, refuse_at};
        bool is_good = all_of_it(&memory, &failed);
        assert_int_equal(memory.live_blocks, 0);
        if (is_good && memory.allocations < refuse_at) {
            assert_true(refuse_at > 20 && failed >= 3);
            return;
        }
    }
}

// A capacity that could not be had does not leave the batch of before without memory.
TEST(plan_batch__a_batch_is_planned_after_a_failed_binding) {
    static fixture f;
    test_memory memory = {0, 0, 0, 0};
    bool is_made = fixture_try(&f, &memory);
    assert_true(is_made);
    ptowsp_attention_limits limits = {.sequence_count_max = 4, .kv_length_max = 1000};
    ptowsp_attention_sizes sizes, more;
    assert_ok(ptowsp_attention_bound(&f.config, &limits, &sizes, NULL));
    limits.sequence_count_max = 1000;
    assert_ok(ptowsp_attention_bound(&f.config, &limits, &more, NULL));
    good(&f, ptowsp_run_bind_batch(f.run, "kv", &f.batch, &f.config, &sizes));
    execute(&f);
    memory.refuse_at = memory.allocations + 1;
    test_refused(f.context, ptowsp_run_bind_batch(f.run, "kv", &f.batch, &f.config, &more),
                 PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "plan kv: no memory for its units");
    ptowsp_attention_plan plan;
    assert_false(ptowsp_run_bound_plan(f.run, f.units.id, &plan));
    memory.refuse_at = memory.allocations + 1;  // its room, once more
    test_refused(f.context, ptowsp_run_execute(f.run, NULL), PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                 "plan kv: no memory for its units");
    execute(&f);
    calls_are(&f, drawn, 8);
    fixture_free(&f);
    assert_int_equal(memory.live_blocks, 0);
}
