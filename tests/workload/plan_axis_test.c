// Axes over plans: loops over units, merges and lanes of a plan that is bound each step, with fields
// of its descriptors in expressions, on every engine of the library.
//
// The plan of most tests is the one that section 9 of the header draws, filled in by hand.

#include "device_fixture.h"

enum { UNITS = 6, MERGES = 2, LANES = 4, SLOTS = 5, CALL_MAX = 4096 };

// -- the plan of the header -----------------------------------------------------------------------

#define FIRST PTOWSP_WORK_FIRST
#define LAST  PTOWSP_WORK_LAST
#define WHOLE (PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST)

// Lengths 250, 100, 50 on 4 lanes; tiers by the sequence: 2, 1, 0. Tiles 3, 0, 0.
static const ptowsp_work drawn_units[UNITS] = {
    {0, 2, FIRST, 3, {0, 1, 0, 100}}, {1, 2, 0, 3, {0, 1, 100, 100}},
    {2, 2, LAST, 3, {0, 1, 200, 50}}, {3, 1, FIRST, 0, {1, 0, 0, 50}},
    {4, 1, LAST, 0, {1, 0, 50, 50}},  {PTOWSP_NO_SLOT, 0, WHOLE, 0, {2, 0, 0, 50}},
};
static const ptowsp_work drawn_merges[MERGES] = {{0, 0, 0, 3, {0, 1, 0, 3}},
                                                 {1, 0, 0, 0, {1, 0, 3, 2}}};
static const uint32_t drawn_unit_begin[LANES + 1] = {0, 1, 2, 4, 6};
static const uint32_t drawn_merge_begin[LANES + 1] = {0, 1, 1, 2, 2};

// -- a module that notes its calls ----------------------------------------------------------------

typedef struct call {
    uint64_t scalars[PTOWSP_TASK_SCALAR_MAX];
    uint32_t count, lane, kernel;
} call;

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_axis units, merges, lanes;
    ptowsp_kernel note, other;
    ptowsp_program *program;
    ptowsp_run *run;
    call calls[CALL_MAX];
    uint32_t call_count;
    // The plan, its arrays to be changed.
    ptowsp_attention_plan plan;
    ptowsp_work unit_items[UNITS], merge_items[MERGES];
    uint32_t unit_begin[LANES + 1], merge_begin[LANES + 1];
    // Of the decode workload.
    int64_t kv[400], states[SLOTS], out[3];
} fixture;

static ptowsp_cycles note_call(const ptowsp_task *task, fixture *f, uint32_t kernel) {
    uint32_t at = __atomic_fetch_add(&f->call_count, 1, __ATOMIC_RELAXED);
    assert_true(at < CALL_MAX);
    call *c = &f->calls[at];
    c->count = task->arg_count - task->axis_arg_count;
    c->lane = task->lane;
    c->kernel = kernel;
    for (uint32_t i = 0; i < c->count; i++) {
        c->scalars[i] = ptowsp_task_scalar(task, i);
    }
    return 1;
}

static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    return note_call(task, (fixture *)user, 0);
}

static ptowsp_cycles other(const ptowsp_task *task, void *user) {
    return note_call(task, (fixture *)user, 1);
}

static void plan_draw(fixture *f) {
    memcpy(f->unit_items, drawn_units, sizeof drawn_units);
    memcpy(f->merge_items, drawn_merges, sizeof drawn_merges);
    memcpy(f->unit_begin, drawn_unit_begin, sizeof drawn_unit_begin);
    memcpy(f->merge_begin, drawn_merge_begin, sizeof drawn_merge_begin);
    f->plan = (ptowsp_attention_plan){.units = f->unit_items,
                                      .merges = f->merge_items,
                                      .unit_begin = f->unit_begin,
                                      .merge_begin = f->merge_begin,
                                      .unit_capacity = UNITS,
                                      .merge_capacity = MERGES,
                                      .slot_capacity = SLOTS,
                                      .unit_count = UNITS,
                                      .merge_count = MERGES,
                                      .slot_count = SLOTS,
                                      .lane_count = LANES};
}

// A module with the axes of plan kv, and a kernel that notes `scalar_count` numbers.
static void fixture_make(fixture *f, uint32_t scalar_count) {
    memset(f, 0, sizeof *f);
    plan_draw(f);
    ptowsp_module_desc desc = {"decode", 4};
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, &desc, &f->m), PTOWSP_OK);
    f->units = ptowsp_axis_plan(f->m, "kv");
    f->merges = ptowsp_axis_plan_merges(f->m, "kv");
    f->lanes = ptowsp_axis_plan_lanes(f->m, "kv");
    ptowsp_kernel_desc kernel = {.name = "note", .fn = note, .user = f};
    static const char *const names[PTOWSP_TASK_SCALAR_MAX] = {"a", "b", "c", "d",
                                                              "e", "f", "g", "h"};
    for (uint32_t i = 0; i < scalar_count; i++) {
        kernel.scalars[i] = (ptowsp_scalar_param){names[i], PTOWSP_TYPE_I64};
    }
    f->note = ptowsp_kernel_make(f->m, &kernel);
    kernel.name = "other";
    kernel.fn = other;
    f->other = ptowsp_kernel_make(f->m, &kernel);
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
}

static void compile(fixture *f, const ptowsp_schedule *schedule) {
    ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    f->program = NULL;
    f->run = NULL;
    if (ptowsp_program_create(f->context, f->m, &desc, &f->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
}

static void good(const fixture *f, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

static void execute(fixture *f, const ptowsp_run_options *options) {
    f->call_count = 0;
    good(f, ptowsp_run_execute(f->run, options));
}

static void task_of(const fixture *f, ptowsp_kernel kernel, uint32_t count,
                    const ptowsp_expr *scalars) {
    ptowsp_task_desc task = {.kernel = kernel};
    memcpy(task.scalars, scalars, count * sizeof scalars[0]);
    ptowsp_task_make(f->m, &task);
}

static ptowsp_expr as_i64(ptowsp_expr value) {
    return ptowsp_cast(value, PTOWSP_TYPE_I64);
}

static ptowsp_expr field(ptowsp_expr variable, ptowsp_plan_field which) {
    return ptowsp_loop_field(variable, which);
}

// -- fields ---------------------------------------------------------------------------------------

TEST(plan_axis__fields_of_units_are_those_of_the_drawn_plan) {
    enum { COLUMNS = 12 };
    static const int64_t expected[UNITS][COLUMNS] = {
        // unit, request, head, tile, start, len, tier, first, last, whole, slot, lane
        {0, 0, 1, 3, 0, 100, 2, 1, 0, 0, 0, 0},  {1, 0, 1, 3, 100, 100, 2, 0, 0, 0, 1, 1},
        {2, 0, 1, 3, 200, 50, 2, 0, 1, 0, 2, 2}, {3, 1, 0, 0, 0, 50, 1, 1, 0, 0, 3, 2},
        {4, 1, 0, 0, 50, 50, 1, 0, 1, 0, 4, 3},  {5, 2, 0, 0, 0, 50, 0, 1, 1, 1, 4294967295, 3},
    };
    static fixture f;
    fixture_make(&f, COLUMNS / 2);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PARALLEL(f.m, u, f.units) {
            ptowsp_expr scalars[COLUMNS] = {u,
                                            field(u, PTOWSP_PLAN_REQUEST),
                                            field(u, PTOWSP_PLAN_HEAD),
                                            field(u, PTOWSP_PLAN_TILE),
                                            field(u, PTOWSP_PLAN_KV_START),
                                            field(u, PTOWSP_PLAN_KV_LEN),
                                            field(u, PTOWSP_PLAN_TIER),
                                            as_i64(field(u, PTOWSP_PLAN_IS_FIRST)),
                                            as_i64(field(u, PTOWSP_PLAN_IS_LAST)),
                                            as_i64(field(u, PTOWSP_PLAN_IS_WHOLE)),
                                            field(u, PTOWSP_PLAN_SLOT),
                                            field(u, PTOWSP_PLAN_LANE)};
            assert_int_equal(ptowsp_expr_type(scalars[4]), PTOWSP_TYPE_I64);
            assert_int_equal(ptowsp_expr_type(field(u, PTOWSP_PLAN_IS_WHOLE)), PTOWSP_TYPE_BOOL);
            task_of(&f, f.note, COLUMNS / 2, scalars);
            task_of(&f, f.note, COLUMNS / 2, scalars + COLUMNS / 2);
        }
    }
    compile(&f, NULL);
    good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
    execute(&f, NULL);
    assert_int_equal(f.call_count, 2 * UNITS);
    for (uint32_t i = 0; i < UNITS; i++) {
        for (uint32_t j = 0; j < COLUMNS; j++) {
            const call *half = &f.calls[2 * i + (j >= COLUMNS / 2)];
            assert_int_equal(half->scalars[j % (COLUMNS / 2)], expected[i][j]);
        }
    }
    fixture_free(&f);
}

TEST(plan_axis__fields_of_merges_are_those_of_the_drawn_plan) {
    enum { COLUMNS = 8 };
    static const int64_t expected[MERGES][COLUMNS] = {
        // merge, request, head, tile, first, count, lane, all merges
        {0, 0, 1, 3, 0, 3, 0, 2},
        {1, 1, 0, 0, 3, 2, 2, 2},
    };
    static fixture f;
    fixture_make(&f, COLUMNS);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_FOR_EACH(f.m, x, f.merges) {
            ptowsp_expr scalars[COLUMNS] = {x,
                                            field(x, PTOWSP_PLAN_REQUEST),
                                            field(x, PTOWSP_PLAN_HEAD),
                                            field(x, PTOWSP_PLAN_TILE),
                                            field(x, PTOWSP_PLAN_SLOT_FIRST),
                                            field(x, PTOWSP_PLAN_SLOT_COUNT),
                                            field(x, PTOWSP_PLAN_LANE),
                                            ptowsp_axis_size(f.m, f.merges)};
            task_of(&f, f.note, COLUMNS, scalars);
        }
    }
    compile(&f, NULL);
    good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
    execute(&f, NULL);
    assert_int_equal(f.call_count, MERGES);
    for (uint32_t i = 0; i < MERGES; i++) {
        for (uint32_t j = 0; j < COLUMNS; j++) {
            assert_int_equal(f.calls[i].scalars[j], expected[i][j]);
        }
    }
    fixture_free(&f);
}

// -- lanes ----------------------------------------------------------------------------------------

#define FIXTURE_TEST(name, scalar_count)                                                           \
    TEST_MADE(name, fixture, f, fixture_make(f, scalar_count), fixture_free(f))

FIXTURE_TEST(plan_axis__a_lane_has_its_units_and_merges, 2) {
    static const int64_t expected[][2] = {{0, 0}, {0, 100}, {1, 1}, {2, 2},
                                          {2, 3}, {2, 101}, {3, 4}, {3, 5}};
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, lane, f->lanes) {
            PTOWSP_FOR_EACH(f->m, u, ptowsp_axis_row(f->m, f->units, lane)) {
                ptowsp_expr scalars[2] = {lane, u};
                task_of(f, f->note, 2, scalars);
            }
            PTOWSP_FOR_EACH(f->m, x, ptowsp_axis_row(f->m, f->merges, lane)) {
                ptowsp_expr scalars[2] = {field(x, PTOWSP_PLAN_LANE),
                                          ptowsp_add(x, ptowsp_i64(f->m, 100))};
                task_of(f, f->note, 2, scalars);
            }
        }
    }
    compile(f, NULL);
    good(f, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    execute(f, NULL);
    assert_int_equal(f->call_count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(f->calls[i].scalars[0], expected[i][0]);
        assert_int_equal(f->calls[i].scalars[1], expected[i][1]);
    }
}

// -- descriptors that are not valid ---------------------------------------------------------------

// A loop of one task goes a shorter way than one of two; each is tried with every set of units that
// are INVALID, in both loops over units.
TEST(plan_axis__invalid_units_have_no_iteration) {
    for (int form = 0; form < 4; form++) {
        static fixture f;
        fixture_make(&f, 1);
        uint32_t tasks = form % 2 ? 2 : 1;
        ptowsp_axis all = f.units;
        PTOWSP_WORKLOAD(f.m, "main") {
            if (form < 2) {
                PTOWSP_PARALLEL(f.m, u, all) {
                    for (uint32_t i = 0; i < tasks; i++) {
                        task_of(&f, f.note, 1, &u);
                    }
                }
            } else {
                PTOWSP_FOR_EACH(f.m, lane, f.lanes) {
                    PTOWSP_FOR_EACH(f.m, u, ptowsp_axis_row(f.m, all, lane)) {
                        for (uint32_t i = 0; i < tasks; i++) {
                            task_of(&f, f.note, 1, &u);
                        }
                    }
                }
            }
        }
        compile(&f, NULL);
        for (uint32_t set = 0; set < 1u << UNITS; set++) {
            plan_draw(&f);
            uint32_t valid[UNITS], valid_count = 0;
            for (uint32_t i = 0; i < UNITS; i++) {
                if (set >> i & 1) {
                    f.unit_items[i].flags |= PTOWSP_WORK_INVALID;
                } else {
                    valid[valid_count++] = i;
                }
            }
            good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
            execute(&f, NULL);
            assert_int_equal(f.call_count, valid_count * tasks);
            for (uint32_t i = 0; i < f.call_count; i++) {
                assert_int_equal(f.calls[i].scalars[0], valid[i / tasks]);
            }
        }
        fixture_free(&f);
    }
}

// Two batches of three experts on two lanes: units of at most 4 tokens, as the planner makes them.
FIXTURE_TEST(plan_axis__runs_over_the_units_of_a_moe_plan, 8) {
    enum { EXPERTS = 3, MOE_LANES = 2 };
    const uint32_t counts[2 * EXPERTS] = {5, 0, 2, 1, 0, 3};
    const uint32_t offsets[2 * (EXPERTS + 1)] = {10, 15, 15, 17, 0, 1, 1, 4};
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, lane, f->lanes) {
            PTOWSP_PARALLEL(f->m, u, ptowsp_axis_row(f->m, f->units, lane)) {
                ptowsp_expr fields[8] = {lane,
                                         field(u, PTOWSP_PLAN_LANE),
                                         field(u, PTOWSP_PLAN_BATCH),
                                         field(u, PTOWSP_PLAN_EXPERT),
                                         field(u, PTOWSP_PLAN_TOKEN_START),
                                         field(u, PTOWSP_PLAN_TOKEN_COUNT),
                                         field(u, PTOWSP_PLAN_HEAD),
                                         u};
                task_of(f, f->note, 8, fields);
            }
        }
        PTOWSP_PARALLEL(f->m, x, f->merges) {
            task_of(f, f->other, 8, (ptowsp_expr[8]){x, x, x, x, x, x, x, x});
        }
        PTOWSP_PARALLEL(f->m, lane, f->lanes) {
            PTOWSP_PARALLEL(f->m, x, ptowsp_axis_row(f->m, f->merges, lane)) {
                task_of(f, f->other, 8, (ptowsp_expr[8]){x, x, x, x, x, x, x, x});
            }
        }
    }
    compile(f, NULL);
    ptowsp_moe_config config = {2, EXPERTS, MOE_LANES, 4, 0, {0, 1, 0}, 0};
    ptowsp_work items[8];
    uint32_t begin[MOE_LANES + 1];
    ptowsp_moe_plan plan = {items, begin, NULL, 8, 0, 0, 0, 0, 0, 0};
    assert_int_equal(ptowsp_moe_generate(&(ptowsp_moe_batch){.counts = counts, .offsets = offsets},
                                         &config, &plan, NULL),
                     PTOWSP_OK);
    const ptowsp_attention_plan units = ptowsp_moe_plan_units(&plan);
    good(f, ptowsp_run_bind_plan(f->run, "kv", &units));
    execute(f, NULL);
    // Costs are tokens alone, 11 of them: lane 0 has 6, of expert 0, lane 1 has 5, of expert 2.
    const uint64_t expected[5][6] = {{0, 0, 0, 0, 10, 4},
                                     {0, 0, 0, 0, 14, 1},
                                     {0, 0, 1, 0, 0, 1},
                                     {1, 1, 0, 2, 15, 2},
                                     {1, 1, 1, 2, 1, 3}};
    assert_int_equal(f->call_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(f->calls[i].kernel, 0);
        for (uint32_t k = 0; k < 6; k++) {
            assert_int_equal(f->calls[i].scalars[k], expected[i][k]);
        }
        assert_int_equal(f->calls[i].scalars[6], expected[i][3]);
        assert_int_equal(f->calls[i].scalars[7], i);
    }
}

FIXTURE_TEST(plan_axis__an_empty_plan_has_no_task, 1) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, u, f->units) {
            ptowsp_expr lane = field(u, PTOWSP_PLAN_LANE);
            task_of(f, f->note, 1, &lane);
        }
        PTOWSP_PARALLEL(f->m, x, f->merges) {
            task_of(f, f->note, 1, &x);
        }
        PTOWSP_PARALLEL(f->m, lane, f->lanes) {
            PTOWSP_PARALLEL(f->m, v, ptowsp_axis_row(f->m, f->units, lane)) {
                task_of(f, f->note, 1, &v);
            }
        }
    }
    compile(f, NULL);
    memset(f->unit_begin, 0, sizeof f->unit_begin);
    memset(f->merge_begin, 0, sizeof f->merge_begin);
    f->plan.unit_count = f->plan.merge_count = 0;
    f->plan.merges = NULL;
    f->plan.merge_capacity = 0;
    good(f, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    execute(f, NULL);
    assert_int_equal(f->call_count, 0);
}

// -- a decode workload, on every engine -----------------------------------------------------------

// A unit is the fold of its KV, so that order matters; a merge is the fold of its parts.
static int64_t fold(int64_t sum, int64_t value) {
    return (int64_t)((uint64_t)sum * 31 + (uint64_t)value + 7);
}

static ptowsp_cycles decode_unit(const ptowsp_task *task, fixture *f, uint32_t kernel) {
    const int64_t *kv = (const int64_t *)task->tiles[0].data;
    int64_t *out = (int64_t *)task->tiles[1].data, length = (int64_t)ptowsp_task_scalar(task, 0);
    int64_t sum = 0;
    assert_int_equal(ptowsp_task_rows(task, 0), length);
    note_call(task, f, kernel);
    for (int64_t i = 0; i < length; i++) {
        sum = fold(sum, kv[i]);
    }
    *out = sum;
    return (ptowsp_cycles)length;
}

static ptowsp_cycles decode_long(const ptowsp_task *task, void *user) {
    return decode_unit(task, (fixture *)user, 2);
}

static ptowsp_cycles decode_short(const ptowsp_task *task, void *user) {
    return decode_unit(task, (fixture *)user, 1);
}

static ptowsp_cycles decode_merge(const ptowsp_task *task, void *user) {
    const int64_t *states = (const int64_t *)task->tiles[0].data;
    int64_t *out = (int64_t *)task->tiles[1].data, count = (int64_t)ptowsp_task_scalar(task, 0);
    int64_t sum = 1;
    assert_int_equal(ptowsp_task_rows(task, 0), count);
    note_call(task, (fixture *)user, 3);
    for (int64_t i = 0; i < count; i++) {
        sum = fold(sum, states[i]);
    }
    *out = sum;
    return 10 * (ptowsp_cycles)count;
}

static ptowsp_cycles cost_scalar(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_scalar(task, 0);
}

static ptowsp_cycles cost_merge(const ptowsp_task *task, void *user) {
    (void)user;
    return 10 * (ptowsp_cycles)ptowsp_task_scalar(task, 0);
}

static ptowsp_kernel decode_kernel(fixture *f, const char *name, ptowsp_kernel_fn fn,
                                   ptowsp_kernel_fn cost) {
    ptowsp_kernel_desc desc = {
        .name = name,
        .fn = fn,
        .cost = cost,
        .user = f,
        .tiles[0] = (ptowsp_tile_param){"in", PTOWSP_IN, PTOWSP_I64, PTOWSP_DYNAMIC, 1},
        .tiles[1] = (ptowsp_tile_param){"out", PTOWSP_OUT, PTOWSP_I64, 1, 1},
        .scalars[0] = (ptowsp_scalar_param){"length", PTOWSP_TYPE_I64}};
    return ptowsp_kernel_make(f->m, &desc);
}

static ptowsp_tensor decode_tensor(fixture *f, const char *name) {
    ptowsp_tensor_desc desc = {name, PTOWSP_I64, 2, {PTOWSP_DYNAMIC, 1}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(f->m, &desc);
}

// Units by tier: 2 and above the long kernel, else the short one. Merges behind them.
static void decode_make(fixture *f) {
    fixture_make(f, 1);
    ptowsp_tensor kv = decode_tensor(f, "cache"), states = decode_tensor(f, "states");
    ptowsp_tensor out = decode_tensor(f, "out");
    ptowsp_kernel kernels[2] = {decode_kernel(f, "short", decode_short, cost_scalar),
                                decode_kernel(f, "long", decode_long, cost_scalar)};
    ptowsp_kernel merge = decode_kernel(f, "merge", decode_merge, cost_merge);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            PTOWSP_PARALLEL(f->m, u, f->units) {
                ptowsp_expr request = field(u, PTOWSP_PLAN_REQUEST);
                ptowsp_expr length = field(u, PTOWSP_PLAN_KV_LEN);
                ptowsp_expr begin = ptowsp_array_at(f->m, "kv_begin", PTOWSP_I64, request);
                ptowsp_expr row = ptowsp_add(begin, field(u, PTOWSP_PLAN_KV_START));
                ptowsp_task_desc whole = {
                    .views = {{kv, .row = row, .row_count = length}, {out, .row = request}},
                    .scalars = {length}};
                ptowsp_task_desc part = whole;
                part.views[1] = (ptowsp_view){states, .row = field(u, PTOWSP_PLAN_SLOT)};
                for (int tier = 0; tier < 2; tier++) {
                    ptowsp_expr is_long =
                        ptowsp_ge(field(u, PTOWSP_PLAN_TIER), ptowsp_i64(f->m, 2));
                    PTOWSP_WHEN(f->m, tier ? is_long : ptowsp_not(is_long)) {
                        whole.kernel = part.kernel = kernels[tier];
                        PTOWSP_WHEN(f->m, field(u, PTOWSP_PLAN_IS_WHOLE)) {
                            ptowsp_task_make(f->m, &whole);
                        }
                        PTOWSP_OTHERWISE(f->m) {
                            ptowsp_task_make(f->m, &part);
                        }
                    }
                }
            }
            PTOWSP_PARALLEL(f->m, x, f->merges) {
                ptowsp_expr slots = field(x, PTOWSP_PLAN_SLOT_COUNT);
                ptowsp_task_desc task = {
                    .kernel = merge,
                    .views = {{states, .row = field(x, PTOWSP_PLAN_SLOT_FIRST), .row_count = slots},
                              {out, .row = field(x, PTOWSP_PLAN_REQUEST)}},
                    .scalars = {slots}};
                ptowsp_task_make(f->m, &task);
            }
        }
    }
}

static void decode_bind(fixture *f, int64_t *memory) {
    static const int64_t begin[3] = {0, 250, 350};
    int64_t *kv = memory ? memory : f->kv;
    int64_t *states = memory ? memory + 400 : f->states, *out = memory ? memory + 405 : f->out;
    ptowsp_buffer buffer = {.data = kv, .rank = 2, .shape = {400, 1}};
    good(f, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    good(f, ptowsp_run_bind_array(f->run, "kv_begin", PTOWSP_I64, begin, 3));
    good(f, ptowsp_run_bind_tensor(f->run, "cache", &buffer));
    buffer.data = states;
    buffer.shape[0] = SLOTS;
    good(f, ptowsp_run_bind_tensor(f->run, "states", &buffer));
    buffer.data = out;
    buffer.shape[0] = 3;
    good(f, ptowsp_run_bind_tensor(f->run, "out", &buffer));
}

// What a plain loop over the drawn plan leaves in `out`.
static void decode_expected(const int64_t *kv, int64_t out[3]) {
    static const int64_t begin[3] = {0, 250, 350};
    int64_t states[SLOTS] = {0};
    for (uint32_t i = 0; i < UNITS; i++) {
        const ptowsp_work *unit = &drawn_units[i];
        int64_t sum = 0;
        for (uint32_t k = 0; k < unit->params[3]; k++) {
            sum = fold(sum, kv[begin[unit->params[0]] + unit->params[2] + k]);
        }
        if (unit->work_id == PTOWSP_NO_SLOT) {
            out[unit->params[0]] = sum;
        } else {
            states[unit->work_id] = sum;
        }
    }
    for (uint32_t i = 0; i < MERGES; i++) {
        int64_t sum = 1;
        for (uint32_t k = 0; k < drawn_merges[i].params[3]; k++) {
            sum = fold(sum, states[drawn_merges[i].params[2] + k]);
        }
        out[drawn_merges[i].params[0]] = sum;
    }
}

static void decode_data(int64_t *kv) {
    uint64_t random = 5;
    for (int i = 0; i < 400; i++) {
        kv[i] = test_random_in(&random, -100, 100);
    }
}

static void decode_check(fixture *f) {
    int64_t expected[3];
    decode_expected(f->kv, expected);
    assert_memory_equal(f->out, expected, sizeof expected);
    uint32_t kernels[4] = {0, 0, 0, 0};
    for (uint32_t i = 0; i < f->call_count; i++) {
        kernels[f->calls[i].kernel]++;
    }
    assert_int_equal(f->call_count, UNITS + MERGES);
    assert_int_equal(kernels[1], 3);  // tiers 0 and 1
    assert_int_equal(kernels[2], 3);
    assert_int_equal(kernels[3], MERGES);
    memset(f->out, 0x55, sizeof f->out);
    memset(f->states, 0x55, sizeof f->states);
}

#define DECODE_TEST(name) TEST_MADE(name, fixture, f, decode_make(f), fixture_free(f))

DECODE_TEST(plan_axis__a_decode_step_runs_on_every_engine) {
    const ptowsp_schedule schedules[] = {
        {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = LANES},
        {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = 3, .window = 2},
        {.issue = PTOWSP_ISSUE_IN_ORDER,
         .dispatch = PTOWSP_DISPATCH_PLAN,
         .lane_count = LANES,
         .dependencies = PTOWSP_DEPENDENCIES_HYBRID},
        {.dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = 2},
        {.dispatch = PTOWSP_DISPATCH_PLAN,
         .lane_count = LANES,
         .ready = PTOWSP_READY_WORK_STEALING},
    };
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        compile(f, &schedules[i]);
        decode_data(f->kv);
        decode_bind(f, NULL);
        ptowsp_run_options options = {.record_tasks = true};
        execute(f, &options);
        decode_check(f);
        ptowsp_cycles makespan = ptowsp_run_result(f->run)->makespan_cycles;
        ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY};
        execute(f, &time_only);
        assert_int_equal(f->call_count, 0);
        assert_true(ptowsp_run_result(f->run)->makespan_cycles == makespan);
        assert_int_equal(ptowsp_run_result(f->run)->task_count, UNITS + MERGES);
    }
}

DEVICE_TEST(plan_axis__a_decode_step_runs_on_threads_and_devices) {
    static fixture f;
    decode_make(&f);
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = LANES};
    compile(&f, &schedule);
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = 3};
    ptowsp_run *serial = f.run;
    ptowsp_context *context = test_context(&desc);
    assert_int_equal(ptowsp_run_create(context, f.program, &f.run), PTOWSP_OK);
    decode_data(f.kv);
    for (uint32_t lanes = 1; lanes <= 3; lanes++) {
        ptowsp_run_options options = {.lane_count = lanes};
        decode_bind(&f, NULL);
        execute(&f, &options);
        decode_check(&f);
        assert_true(ptowsp_run_result(f.run)->makespan_cycles == 130);
    }
    ptowsp_run_destroy(f.run);
    f.run = serial;
    ptowsp_context_destroy(context);
    ptowsp_device *device = device_of(f.context, 2, LANES, 0);
    int64_t *memory = (int64_t *)piece_of(device, "all", 408 * sizeof(int64_t));
    assert_int_equal(ptowsp_device_copy_in(device, memory, f.kv, sizeof f.kv), PTOWSP_OK);
    decode_bind(&f, memory);
    f.call_count = 0;
    good(&f, ptowsp_device_run(device, f.run, NULL));
    assert_true(ptowsp_run_result(f.run)->makespan_cycles == 130);
    assert_int_equal(ptowsp_device_copy_out(device, f.out, memory + 405, sizeof f.out), PTOWSP_OK);
    decode_check(&f);
    assert_int_equal(ptowsp_device_free(device, memory), PTOWSP_OK);
    assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
    fixture_free(&f);
}

// -- dispatch by the plan -------------------------------------------------------------------------

// Units take their KV tokens, merges ten cycles a slot. Lanes 0 to 3 have 100 tokens each; then
// lane 0 merges three slots in 30 cycles, and lane 2 two in 20.
DECODE_TEST(plan_axis__dispatch_follows_the_lanes_of_the_plan) {
    static const uint32_t lanes[UNITS + MERGES] = {0, 1, 2, 2, 3, 3, 0, 2};
    static const ptowsp_cycles starts[UNITS + MERGES] = {0, 0, 0, 50, 0, 50, 100, 100};
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = LANES};
    compile(f, &schedule);
    decode_data(f->kv);
    decode_bind(f, NULL);
    ptowsp_run_options options = {.record_tasks = true};
    execute(f, &options);
    const ptowsp_task_record *records = ptowsp_run_records(f->run);
    for (uint32_t i = 0; i < UNITS + MERGES; i++) {
        assert_int_equal(records[i].lane, lanes[i]);
        assert_true(records[i].start == starts[i]);
    }
    assert_true(ptowsp_run_result(f->run)->makespan_cycles == 130);
    schedule.lane_count = 3;  // lane 3 of the plan is lane 0
    compile(f, &schedule);
    decode_bind(f, NULL);
    execute(f, &options);
    records = ptowsp_run_records(f->run);
    for (uint32_t i = 0; i < UNITS + MERGES; i++) {
        assert_int_equal(records[i].lane, lanes[i] % 3);
    }
}

TEST(plan_axis__tasks_outside_of_plans_go_by_the_key_or_to_lane_0) {
    for (int has_key = 0; has_key < 2; has_key++) {
        static fixture f;
        fixture_make(&f, 1);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                PTOWSP_PARALLEL(f.m, i, ptowsp_axis_dense(f.m, "three", 3)) {
                    task_of(&f, f.note, 1, &i);
                }
                PTOWSP_PARALLEL(f.m, lane, f.lanes) {
                    PTOWSP_PARALLEL(f.m, j, ptowsp_axis_dense(f.m, "two", 2)) {
                        task_of(&f, f.note, 1, &j);
                    }
                }
                PTOWSP_PARALLEL(f.m, u, f.units) {
                    PTOWSP_PARALLEL(f.m, inner,
                                    ptowsp_axis_row(f.m, f.merges, ptowsp_i64(f.m, 2))) {
                        task_of(&f, f.note, 1, &inner);
                    }
                }
            }
        }
        ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = LANES};
        if (has_key) {
            schedule.dispatch_key = ptowsp_add(ptowsp_task_arg(f.m, 0), ptowsp_i64(f.m, 1));
        }
        compile(&f, &schedule);
        good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
        ptowsp_run_options options = {.record_tasks = true};
        execute(&f, &options);
        const ptowsp_task_record *records = ptowsp_run_records(f.run);
        assert_int_equal(f.call_count, 3 + 2 * LANES + UNITS);
        for (uint32_t i = 0; i < f.call_count; i++) {
            uint32_t lane = i < 3 ? has_key ? i + 1 : 0 : i < 3 + 2 * LANES ? (i - 3) / 2 : 2;
            assert_int_equal(records[i].lane, lane);
        }
        fixture_free(&f);
    }
}

// -- work of a chunk plan -------------------------------------------------------------------------

FIXTURE_TEST(plan_axis__units_of_a_chunk_plan_are_bound_as_work, 6) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, u, f->units) {
            ptowsp_expr scalars[6] = {
                field(u, PTOWSP_PLAN_REQUEST),  field(u, PTOWSP_PLAN_HEAD),
                field(u, PTOWSP_PLAN_KV_START), field(u, PTOWSP_PLAN_KV_LEN),
                field(u, PTOWSP_PLAN_TIER),     as_i64(field(u, PTOWSP_PLAN_IS_LAST))};
            task_of(f, f->note, 6, scalars);
        }
    }
    compile(f, NULL);
    ptowsp_work work[40];
    uint32_t count = 0;
    for (uint32_t request = 0; request < 5; request++) {
        for (uint32_t chunk = 0; chunk <= request; chunk++) {
            work[count] = ptowsp_work_of(count, (uint8_t)(request + 200),
                                         chunk == request ? PTOWSP_WORK_LAST : 0, request, chunk,
                                         chunk * 256, 256 - chunk);
            count++;
        }
    }
    good(f, ptowsp_run_bind_work(f->run, "kv", work, count));
    execute(f, NULL);
    assert_int_equal(f->call_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t *got = f->calls[i].scalars;
        assert_true(got[0] == work[i].params[0] && got[1] == work[i].params[1] &&
                    got[2] == work[i].params[2] && got[3] == work[i].params[3] &&
                    got[4] == work[i].tier && got[5] == (work[i].flags >> 1 & 1u));
    }
    good(f, ptowsp_run_bind_plan(f->run, "kv", &f->plan));  // takes its place
    execute(f, NULL);
    assert_int_equal(f->call_count, UNITS);
    good(f, ptowsp_run_bind_work(f->run, "kv", NULL, 0));
    execute(f, NULL);
    assert_int_equal(f->call_count, 0);
}

// -- pipelines ------------------------------------------------------------------------------------

// A process for each lane of the plan, which loops over the units of its lane.
FIXTURE_TEST(plan_axis__a_process_for_each_lane_gets_its_units, 1) {
    ptowsp_channel_desc parts = {.name = "parts", .depth = 2, .latency = 1};
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "pipe") {
            ptowsp_channel channel = ptowsp_channel_make(f->m, &parts);
            PTOWSP_REPLICATE(f->m, lane, f->lanes, "attend") {
                ptowsp_produces(f->m, channel);
                PTOWSP_FOR_EACH(f->m, u, ptowsp_axis_row(f->m, f->units, lane)) {
                    ptowsp_send_make(f->m, channel, ptowsp_cast(u, PTOWSP_TYPE_U64));
                }
            }
            PTOWSP_PROCESS(f->m, "merge") {
                ptowsp_consumes(f->m, channel);
                PTOWSP_CONSUME(f->m, token, channel) {
                    ptowsp_expr unit = as_i64(token);
                    task_of(f, f->note, 1, &unit);
                }
            }
        }
    }
    compile(f, NULL);
    for (uint32_t skipped = 0; skipped <= UNITS; skipped++) {
        plan_draw(f);
        if (skipped < UNITS) {
            f->unit_items[skipped].flags |= PTOWSP_WORK_INVALID;
        }
        good(f, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
        execute(f, NULL);
        uint32_t seen = 0;
        for (uint32_t i = 0; i < f->call_count; i++) {
            seen |= 1u << f->calls[i].scalars[0];
        }
        assert_int_equal(seen, ((1u << UNITS) - 1) & ~(1u << skipped));
        assert_int_equal(f->call_count, skipped < UNITS ? UNITS - 1 : UNITS);
    }
}

// One producer and one consumer, and no kernel that runs: that is walked in another way, without
// turns. The cost function of the consumer's tasks notes the units that it gets.
TEST(plan_axis__a_process_can_only_send_units) {
    for (int is_lane = 0; is_lane < 2; is_lane++) {
        static fixture f;
        fixture_make(&f, 1);
        ptowsp_kernel_desc desc = {.name = "timed", .cost = note, .user = &f};
        desc.scalars[0] = (ptowsp_scalar_param){"unit", PTOWSP_TYPE_I64};
        ptowsp_kernel timed = ptowsp_kernel_make(f.m, &desc);
        ptowsp_channel_desc parts = {.name = "parts", .depth = 2, .latency = 1};
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "pipe") {
                ptowsp_channel channel = ptowsp_channel_make(f.m, &parts);
                PTOWSP_PROCESS(f.m, "attend") {
                    ptowsp_produces(f.m, channel);
                    ptowsp_axis axis = f.units;
                    if (is_lane) {
                        axis = ptowsp_axis_row(f.m, f.units, ptowsp_i64(f.m, 2));
                    }
                    PTOWSP_FOR_EACH(f.m, u, axis) {
                        ptowsp_send_make(f.m, channel, u);
                    }
                }
                PTOWSP_PROCESS(f.m, "merge") {
                    ptowsp_consumes(f.m, channel);
                    PTOWSP_CONSUME(f.m, token, channel) {
                        task_of(&f, timed, 1, &token);
                    }
                }
            }
        }
        compile(&f, NULL);
        f.unit_items[1].flags |= PTOWSP_WORK_INVALID;
        f.unit_items[4].flags |= PTOWSP_WORK_INVALID;
        good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
        ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        execute(&f, &options);
        static const uint64_t all[] = {0, 2, 3, 5}, lane[] = {2, 3};
        assert_int_equal(f.call_count, is_lane ? 2 : 4);
        for (uint32_t i = 0; i < f.call_count; i++) {
            assert_true(f.calls[i].scalars[0] == (is_lane ? lane[i] : all[i]));
        }
        fixture_free(&f);
    }
}

// -- random plans ---------------------------------------------------------------------------------

enum { RANDOM_UNITS = 60, RANDOM_LANES = 9 };

typedef struct random_plan {
    ptowsp_work units[RANDOM_UNITS];
    uint32_t begin[RANDOM_LANES + 1];
    ptowsp_attention_plan plan;
} random_plan;

static void random_plan_make(random_plan *r, uint64_t *random) {
    uint32_t count = (uint32_t)test_random_in(random, 0, RANDOM_UNITS);
    uint32_t lanes = (uint32_t)test_random_in(random, 1, RANDOM_LANES);
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits[3] = {test_random(random), test_random(random), test_random(random)};
        memcpy(&r->units[i], bits, sizeof bits);
        if (test_random_in(random, 0, 3)) {
            r->units[i].flags &= 0x7f;
        }
        r->units[i].flags &= (uint8_t)~PTOWSP_WORK_POSITIONS;  // such units are refused
    }
    for (uint32_t i = 1; i <= lanes; i++) {
        r->begin[i] = i == lanes ? count : (uint32_t)test_random_in(random, 0, count);
    }
    for (uint32_t i = 1; i < lanes; i++) {  // in order
        for (uint32_t j = i; j > 1 && r->begin[j] < r->begin[j - 1]; j--) {
            uint32_t swap = r->begin[j];
            r->begin[j] = r->begin[j - 1];
            r->begin[j - 1] = swap;
        }
    }
    static ptowsp_work none[1];
    r->plan = (ptowsp_attention_plan){.units = count ? r->units : none,
                                      .unit_begin = r->begin,
                                      .merge_begin = r->begin,
                                      .unit_capacity = RANDOM_UNITS,
                                      .unit_count = count,
                                      .lane_count = lanes};
}

static int by_first_scalars(const void *a, const void *b) {
    const call *x = (const call *)a, *y = (const call *)b;
    return memcmp(x->scalars, y->scalars, 8 * sizeof x->scalars[0]);
}

static void expect_unit(call *c, const random_plan *r, uint32_t unit, uint32_t lane) {
    const ptowsp_work *w = &r->units[unit];
    uint64_t scalars[8] = {unit,
                           lane,
                           w->params[0],
                           w->params[2] + (uint64_t)w->params[3],
                           (uint64_t)w->params[1] * 256 + w->tier,
                           w->reserved,
                           w->work_id,
                           (uint64_t)(w->flags & 1) + (w->flags & 2) +
                               (ptowsp_work_is_whole(w) ? 4u : 0u)};
    memcpy(c->scalars, scalars, sizeof scalars);
}

static ptowsp_expr times(const fixture *f, ptowsp_expr a, int64_t b) {
    return ptowsp_mul(a, ptowsp_i64(f->m, b));
}

static void random_task(fixture *f, ptowsp_expr u) {
    ptowsp_expr first = as_i64(field(u, PTOWSP_PLAN_IS_FIRST));
    ptowsp_expr last = as_i64(field(u, PTOWSP_PLAN_IS_LAST));
    ptowsp_expr whole = as_i64(field(u, PTOWSP_PLAN_IS_WHOLE));
    ptowsp_expr scalars[8] = {
        u,
        field(u, PTOWSP_PLAN_LANE),
        field(u, PTOWSP_PLAN_REQUEST),
        ptowsp_add(field(u, PTOWSP_PLAN_KV_START), field(u, PTOWSP_PLAN_KV_LEN)),
        ptowsp_add(times(f, field(u, PTOWSP_PLAN_HEAD), 256), field(u, PTOWSP_PLAN_TIER)),
        field(u, PTOWSP_PLAN_TILE),
        field(u, PTOWSP_PLAN_SLOT),
        ptowsp_add(first, ptowsp_add(times(f, last, 2), times(f, whole, 4)))};
    task_of(f, f->note, 8, scalars);
}

// A program over a plan against a plain loop over its units: serially in order, and on lanes in any.
DEVICE_TEST(plan_axis__random_plans_are_walked_like_plain_loops) {
    uint64_t random = test_seed(), invalid_count = 0;
    static fixture flat, nested;
    fixture_make(&flat, 8);
    PTOWSP_WORKLOAD(flat.m, "main") {
        PTOWSP_PARALLEL(flat.m, u, flat.units) {
            random_task(&flat, u);
        }
    }
    fixture_make(&nested, 8);
    PTOWSP_WORKLOAD(nested.m, "main") {
        PTOWSP_PARALLEL(nested.m, lane, nested.lanes) {
            PTOWSP_FOR_EACH(nested.m, u, ptowsp_axis_row(nested.m, nested.units, lane)) {
                random_task(&nested, u);
            }
        }
    }
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = 5};
    compile(&flat, &schedule);
    compile(&nested, &schedule);
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = 3};
    ptowsp_context *context = test_context(&desc);
    ptowsp_run *threaded = test_run_of(context, flat.program);
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        static random_plan r;
        static call expected[RANDOM_UNITS];
        uint32_t count = 0;
        random_plan_make(&r, &random);
        for (uint32_t lane = 0; lane < r.plan.lane_count; lane++) {
            for (uint32_t i = r.begin[lane]; i < r.begin[lane + 1]; i++) {
                if (r.units[i].flags & PTOWSP_WORK_INVALID) {
                    invalid_count++;
                } else {
                    expect_unit(&expected[count++], &r, i, lane);
                }
            }
        }
        fixture *both[2] = {&flat, &nested};
        for (int which = 0; which < 2; which++) {
            fixture *f = both[which];
            good(f, ptowsp_run_bind_plan(f->run, "kv", &r.plan));
            execute(f, NULL);
            assert_int_equal(f->call_count, count);
            for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(by_first_scalars(&f->calls[i], &expected[i]), 0);
            }
        }
        ptowsp_run_options options = {.lane_count = 3};
        flat.call_count = 0;
        assert_int_equal(ptowsp_run_bind_plan(threaded, "kv", &r.plan), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(threaded, &options), PTOWSP_OK);
        assert_int_equal(flat.call_count, count);
        qsort(flat.calls, count, sizeof flat.calls[0], by_first_scalars);
        qsort(expected, count, sizeof expected[0], by_first_scalars);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(by_first_scalars(&flat.calls[i], &expected[i]), 0);
        }
    }
    assert_true(invalid_count > 0);
    ptowsp_run_destroy(threaded);
    ptowsp_context_destroy(context);
    fixture_free(&flat);
    fixture_free(&nested);
}

// -- plans of the planner -------------------------------------------------------------------------

enum { PLANNED_SEQUENCES = 40, PLANNED_HEADS = 3, PLANNED_LANES = 16 };

static ptowsp_cycles planned_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return 64 + (ptowsp_cycles)ptowsp_task_scalar(task, 0);
}

static ptowsp_cycles planned_merge_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_scalar(task, 0) * 4;
}

// Tasks with the costs that the planner was told keep each lane busy for as long as the plan says,
// and all is done as soon as the longest lane and the merges that wait for it are.
TEST(plan_axis__lanes_are_busy_for_what_the_plan_predicts) {
    uint64_t random = test_seed(), merge_count = 0;
    static fixture f;
    fixture_make(&f, 1);
    ptowsp_kernel_desc desc = {.name = "attend", .cost = planned_cost};
    desc.scalars[0] = (ptowsp_scalar_param){"tokens", PTOWSP_TYPE_I64};
    ptowsp_kernel attend = ptowsp_kernel_make(f.m, &desc);
    desc.name = "join";
    desc.cost = planned_merge_cost;
    ptowsp_kernel join = ptowsp_kernel_make(f.m, &desc);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PARALLEL(f.m, u, f.units) {
            ptowsp_expr tokens = field(u, PTOWSP_PLAN_KV_LEN);
            task_of(&f, attend, 1, &tokens);
        }
        PTOWSP_PARALLEL(f.m, x, f.merges) {
            ptowsp_expr slots = field(x, PTOWSP_PLAN_SLOT_COUNT);
            task_of(&f, join, 1, &slots);
        }
    }
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = PLANNED_LANES};
    compile(&f, &schedule);
    for (int round = 0; TEST_ROUNDS(round, 40); round++) {
        int32_t lengths[PLANNED_SEQUENCES];
        static uint64_t block[4096];
        uint64_t waits = 0;
        for (int i = 0; i < PLANNED_SEQUENCES; i++) {
            lengths[i] = (int32_t)test_random_in(&random, 0, i % 7 ? 300 : 9000);
        }
        ptowsp_attention_batch batch = {.kv_lengths = lengths, .sequence_count = PLANNED_SEQUENCES};
        ptowsp_attention_config config = {.kv_head_count = PLANNED_HEADS,
                                          .group = 4,
                                          .lane_count = PLANNED_LANES,
                                          .mode = round % 3 == 2 ? PTOWSP_ATTENTION_INVARIANT
                                                                 : PTOWSP_ATTENTION_BALANCED,
                                          .cost = {64, 1, 0, 1}};
        ptowsp_attention_sizes sizes;
        ptowsp_attention_plan plan;
        assert_int_equal(ptowsp_attention_size(&batch, &config, &sizes, NULL), PTOWSP_OK);
        assert_true(sizes.block_bytes <= sizeof block);
        assert_int_equal(ptowsp_attention_place(&sizes, block, sizeof block, &plan), PTOWSP_OK);
        assert_int_equal(ptowsp_attention_generate(&batch, &config, &plan, NULL), PTOWSP_OK);
        for (uint32_t i = 0; i < plan.merge_count; i++) {
            waits += 4 * plan.merges[i].params[3];
        }
        good(&f, ptowsp_run_bind_plan(f.run, "kv", &plan));
        ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        execute(&f, &options);
        const ptowsp_lane_stats *lanes = ptowsp_run_lanes(f.run);
        for (uint32_t i = 0; i < PLANNED_LANES; i++) {
            double busy = (double)lanes[i].busy_cycles, off = busy - plan.lane_costs[i];
            assert_true(off <= 1 + busy / 500 && -off <= 1 + busy / 500);
        }
        double makespan = (double)ptowsp_run_result(f.run)->makespan_cycles;
        assert_true(makespan >= plan.cost_max * 0.998 - 1);
        assert_true(makespan <= plan.cost_max * 1.002 + 1 + (double)waits);
        merge_count += plan.merge_count;
    }
    assert_true(merge_count > 0);
    fixture_free(&f);
}

// -- memory ---------------------------------------------------------------------------------------

// Builds, compiles, binds and runs; false when memory was refused.
static bool all_of_it(test_memory *memory) {
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = memory};
    static fixture f;
    bool is_good = true;
    memset(&f, 0, sizeof f);
    plan_draw(&f);
    if (ptowsp_context_create(&desc, &f.context) != PTOWSP_OK) {
        return false;
    }
    is_good = ptowsp_module_create(f.context, NULL, &f.m) == PTOWSP_OK;
    if (is_good) {
        ptowsp_kernel_desc kernel = {.name = "note", .fn = note, .user = &f};
        for (uint32_t i = 0; i < 8; i++) {
            static const char *const names[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
            kernel.scalars[i] = (ptowsp_scalar_param){names[i], PTOWSP_TYPE_I64};
        }
        f.units = ptowsp_axis_plan(f.m, "kv");
        f.merges = ptowsp_axis_plan_merges(f.m, "kv");
        f.lanes = ptowsp_axis_plan_lanes(f.m, "kv");
        f.note = ptowsp_kernel_make(f.m, &kernel);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PARALLEL(f.m, lane, f.lanes) {
                PTOWSP_FOR_EACH(f.m, u, ptowsp_axis_row(f.m, f.units, lane)) {
                    random_task(&f, u);
                }
            }
        }
        ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = LANES};
        ptowsp_program_desc program = {NULL, &schedule};
        is_good = ptowsp_program_create(f.context, f.m, &program, &f.program) == PTOWSP_OK &&
                  ptowsp_run_create(f.context, f.program, &f.run) == PTOWSP_OK &&
                  ptowsp_run_bind_plan(f.run, "kv", &f.plan) == PTOWSP_OK &&
                  ptowsp_run_execute(f.run, NULL) == PTOWSP_OK;
    }
    if (is_good) {
        assert_int_equal(f.call_count, UNITS);
        size_t allocations = memory->allocations;
        for (uint32_t i = 0; i < 3; i++) {  // again, and with another plan
            f.plan.unit_count = UNITS - i;
            f.unit_begin[LANES] = UNITS - i;
            assert_int_equal(ptowsp_run_bind_plan(f.run, "kv", &f.plan), PTOWSP_OK);
            assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_OK);
        }
        assert_int_equal(memory->allocations, allocations);
    } else {
        assert_int_equal(ptowsp_context_error(f.context).status, PTOWSP_OUT_OF_MEMORY);
    }
    fixture_free(&f);
    return is_good;
}

TEST(plan_axis__any_allocation_may_fail_and_running_again_needs_none) {
    for (size_t refuse_at = 0;; refuse_at++) {
        test_memory memory = {0, 0, 0, refuse_at + 1};
        bool is_good = all_of_it(&memory);
        assert_int_equal(memory.live_blocks, 0);
        if (is_good) {
            assert_true(refuse_at > 20 && memory.allocations <= refuse_at);
            return;
        }
    }
}

// -- errors ---------------------------------------------------------------------------------------

static void refused(fixture *f, const char *text) {
    ptowsp_error error = ptowsp_module_error(f->m);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, PTOWSP_INVALID_PARAMS);
    fixture_free(f);
}

TEST(plan_axis__modules_refuse_what_makes_no_sense) {
    static fixture f;
    fixture_make(&f, 1);
    ptowsp_axis_plan(f.m, "kv");
    refused(&f, "decode: plan kv: there is an axis of its units already");
    fixture_make(&f, 1);
    ptowsp_axis_plan_merges(f.m, "kv");
    refused(&f, "decode: plan kv: there is an axis of its merges already");
    fixture_make(&f, 1);
    ptowsp_axis_plan_lanes(f.m, "kv");
    refused(&f, "decode: plan kv: there is an axis of its lanes already");
    fixture_make(&f, 1);
    ptowsp_axis_dynamic(f.m, "n");
    ptowsp_axis_plan(f.m, "n");
    refused(&f, "decode: plan n: the name is already that of an axis");
    fixture_make(&f, 1);
    ptowsp_symbol(f.m, "kv");
    refused(&f, "decode: symbol kv: the name is already that of an axis");
    fixture_make(&f, 1);
    ptowsp_axis_plan(f.m, "\"");
    refused(
        &f,
        "decode: the name of this plan is not 1 to 63 printable ASCII characters without quotes "
        "and backslash");
    fixture_make(&f, 1);
    ptowsp_axis_plan(f.m, "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd");  // 40
    assert_int_equal(ptowsp_module_error(f.m).status, PTOWSP_OK);
    ptowsp_axis_plan_merges(f.m, "Aaaaaaaaaabbbbbbbbbbccccccccccddddddddddd");
    refused(&f, "decode: plan Aaaaaaaaaabbbbbbbbbbccccccccccddddddddddd: its name has more than 40 "
                "characters");
    fixture_make(&f, 1);
    ptowsp_axis_row(f.m, f.lanes, ptowsp_i64(f.m, 0));
    refused(&f,
            "decode: axis kv: only ragged and sparse axes, units and merges of plans have rows");
}

typedef struct wrong_field {
    int axis;  // 0 units, 1 merges, 2 lanes, 3 a dense one
    ptowsp_plan_field field;
    const char *text;
} wrong_field;

TEST(plan_axis__fields_need_a_loop_that_has_them) {
    static const wrong_field wrong[] = {
        {0, PTOWSP_PLAN_SLOT_FIRST, "the units of plan kv have no slot_first"},
        {0, PTOWSP_PLAN_SLOT_COUNT, "the units of plan kv have no slot_count"},
        {1, PTOWSP_PLAN_KV_START, "the merges of plan kv have no kv_start"},
        {1, PTOWSP_PLAN_KV_LEN, "the merges of plan kv have no kv_len"},
        {1, PTOWSP_PLAN_TIER, "the merges of plan kv have no tier"},
        {1, PTOWSP_PLAN_IS_FIRST, "the merges of plan kv have no is_first"},
        {1, PTOWSP_PLAN_IS_WHOLE, "the merges of plan kv have no is_whole"},
        {1, PTOWSP_PLAN_SLOT, "the merges of plan kv have no slot"},
        {1, PTOWSP_PLAN_BATCH, "the merges of plan kv have no batch"},
        {1, PTOWSP_PLAN_EXPERT, "the merges of plan kv have no expert"},
        {1, PTOWSP_PLAN_TOKEN_START, "the merges of plan kv have no token_start"},
        {1, PTOWSP_PLAN_TOKEN_COUNT, "the merges of plan kv have no token_count"},
        {2, PTOWSP_PLAN_LANE, "axis kv is not of a plan's units or merges"},
        {3, PTOWSP_PLAN_REQUEST, "axis two is not of a plan's units or merges"},
        {0, PTOWSP_PLAN_FIELD_COUNT, "18 is no field"},
        {0, (ptowsp_plan_field)-1, "-1 is no field"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        static fixture f;
        char text[256];
        fixture_make(&f, 1);
        ptowsp_axis axes[4] = {f.units, f.merges, f.lanes, ptowsp_axis_dense(f.m, "two", 2)};
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PARALLEL(f.m, x, axes[wrong[i].axis]) {
                assert_int_equal(field(x, wrong[i].field).id, 0);
            }
        }
        snprintf(text, sizeof text, "main/parallel x: loop_field: %s", wrong[i].text);
        refused(&f, text);
    }
    static fixture f;
    fixture_make(&f, 1);
    field(ptowsp_i64(f.m, 0), PTOWSP_PLAN_LANE);
    refused(&f, "decode: loop_field: it is not the variable of a loop");
    fixture_make(&f, 1);
    field((ptowsp_expr){f.m, 0}, PTOWSP_PLAN_LANE);
    refused(&f, "decode: loop_field: it is not the variable of a loop");
    assert_int_equal(field((ptowsp_expr){NULL, 0}, PTOWSP_PLAN_LANE).id, 0);
}

// A program that uses units, merges and lanes, and one that reads only numbers of units.
static void program_of_all(fixture *f) {
    fixture_make(f, 1);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, u, f->units) {
            ptowsp_expr lane = field(u, PTOWSP_PLAN_LANE);
            task_of(f, f->note, 1, &lane);
        }
        PTOWSP_PARALLEL(f->m, lane, f->lanes) {
            PTOWSP_PARALLEL(f->m, x, ptowsp_axis_row(f->m, f->merges, lane)) {
                task_of(f, f->note, 1, &x);
            }
        }
    }
    compile(f, NULL);
}

static void bind_refused(const fixture *f, ptowsp_status returned, const char *text) {
    assert_int_equal(returned, PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
}

TEST(plan_axis__binding_refuses_plans_that_cannot_be) {
    static fixture f;
    program_of_all(&f);
    assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_UNBOUND);
    test_error_is(f.context, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: plan kv is not bound");
    good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kw", &f.plan),
                 "bind: module decode has no plan kw; it has kv");
    bind_refused(&f, ptowsp_run_bind_plan(f.run, NULL, &f.plan),
                 "bind: module decode has no plan NULL; it has kv");
    bind_refused(&f, ptowsp_run_bind_size(f.run, "kv", 1),
                 "bind: module decode has no dynamic axis kv");
    bind_refused(&f, ptowsp_run_bind_array(f.run, "kv.request", PTOWSP_U32, f.kv, 1),
                 "bind: module decode has no array kv.request");
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kv", NULL), "bind: plan kv is NULL");
    const ptowsp_attention_plan right = f.plan;
    f.plan.units = NULL;
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan),
                 "bind: plan kv has 6 units at NULL");
    f.plan = right;
    f.plan.merges = NULL;
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan),
                 "bind: plan kv has 2 merges at NULL");
    f.plan = right;
    f.plan.unit_begin = NULL;
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan),
                 "bind: unit_begin of plan kv is NULL");
    f.plan = right;
    f.plan.merge_begin = NULL;
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan),
                 "bind: merge_begin of plan kv is NULL");
    f.plan = right;
    f.plan.unit_capacity = UNITS - 1;
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan),
                 "bind: plan kv has 6 units, with a capacity of 5");
    f.plan = right;
    f.plan.merge_capacity = 0;
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan),
                 "bind: plan kv has 2 merges, with a capacity of 0");
    f.plan = right;
    char *shifted = (char *)f.unit_items + 4;
    memcpy(&f.plan.units, &shifted, sizeof shifted);
    bind_refused(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan),
                 "bind: the units of plan kv, or the bounds of their lanes, are not aligned");
    f.plan = right;
    for (uint32_t lanes = 0; lanes <= PTOWSP_ATTENTION_LANE_MAX + 1;
         lanes += PTOWSP_ATTENTION_LANE_MAX + 1) {
        char text[128];
        f.plan.lane_count = lanes;
        snprintf(text, sizeof text, "bind: plan kv has %u lanes, not 1 to 65536", lanes);
        assert_int_equal(ptowsp_run_bind_plan(f.run, "kv", &f.plan), PTOWSP_INVALID_PARAMS);
        test_error_is(f.context, PTOWSP_INVALID_PARAMS, lanes, text);
    }
    f.plan = right;
    f.merge_items[1].flags |= PTOWSP_WORK_ROWS;  // rows of tile 0, shared by lanes
    assert_int_equal(ptowsp_run_bind_plan(f.run, "kv", &f.plan), PTOWSP_INVALID_PARAMS);
    test_error_is(f.context, PTOWSP_INVALID_PARAMS, 1,
                  "bind: merge 1 of plan kv has a part of its tile's rows, which programs do not "
                  "(shares_merges)");
    f.merge_items[1].flags = drawn_merges[1].flags;
    f.unit_items[4].flags |= PTOWSP_WORK_POSITIONS;
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(ptowsp_run_bind_plan(f.run, "kv", &f.plan), PTOWSP_INVALID_PARAMS);
        test_error_is(f.context, PTOWSP_INVALID_PARAMS, 4,
                      pass == 0 ? "bind: unit 4 of plan kv has sinks apart, which programs do not "
                                  "do (positions)"
                                : "bind: unit 4 of plan kv has no KV, which programs do not do "
                                  "(positions)");
        f.unit_items[4].params[3] = 0;
    }
    f.unit_items[4] = drawn_units[4];
    execute(&f, NULL);  // the old binding has stayed
    assert_int_equal(f.call_count, UNITS + MERGES);
    fixture_free(&f);
}

TEST(plan_axis__work_lacks_what_programs_may_use) {
    static fixture f;
    for (int use = 0; use < 5; use++) {
        static const char *const lacks[5] = {"merges", "lanes", "lanes", "lanes", "slots"};
        char text[160];
        fixture_make(&f, 1);
        PTOWSP_WORKLOAD(f.m, "main") {
            if (use == 0) {
                PTOWSP_PARALLEL(f.m, x, f.merges) {
                    task_of(&f, f.note, 1, &x);
                }
            } else if (use == 1) {
                PTOWSP_PARALLEL(f.m, lane, f.lanes) {
                    task_of(&f, f.note, 1, &lane);
                }
            } else if (use == 2) {
                PTOWSP_PARALLEL(f.m, u, ptowsp_axis_row(f.m, f.units, ptowsp_i64(f.m, 0))) {
                    task_of(&f, f.note, 1, &u);
                }
            } else {
                PTOWSP_PARALLEL(f.m, u, f.units) {
                    ptowsp_expr value = field(u, use == 3 ? PTOWSP_PLAN_LANE : PTOWSP_PLAN_SLOT);
                    task_of(&f, f.note, 1, &value);
                }
            }
        }
        compile(&f, NULL);
        snprintf(text, sizeof text,
                 "bind: plan kv is bound as work, which has no %s; the program uses them",
                 lacks[use]);
        bind_refused(&f, ptowsp_run_bind_work(f.run, "kv", f.unit_items, UNITS), text);
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_UNBOUND);
        good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
        execute(&f, NULL);
        fixture_free(&f);
    }
    fixture_make(&f, 1);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PARALLEL(f.m, u, f.units) {
            task_of(&f, f.note, 1, &u);
        }
    }
    compile(&f, NULL);
    f.unit_items[4].flags |= PTOWSP_WORK_POSITIONS;
    assert_int_equal(ptowsp_run_bind_work(f.run, "kv", f.unit_items, UNITS), PTOWSP_INVALID_PARAMS);
    test_error_is(f.context, PTOWSP_INVALID_PARAMS, 4,
                  "bind: unit 4 of plan kv has sinks apart, which programs do not do (positions)");
    f.unit_items[4] = drawn_units[4];
    bind_refused(&f, ptowsp_run_bind_work(f.run, "kv", NULL, 1),
                 "bind: work bound to plan kv is NULL");
    const void *shifted = (const char *)f.unit_items + 4;
    bind_refused(&f, ptowsp_run_bind_work(f.run, "kv", (const ptowsp_work *)shifted, 1),
                 "bind: work bound to plan kv is not aligned to 8 bytes");
    bind_refused(&f, ptowsp_run_bind_work(f.run, "k", f.unit_items, 1),
                 "bind: module decode has no plan k; it has kv");
    uint64_t many = UINT64_C(1) << 32;
    assert_int_equal(ptowsp_run_bind_work(f.run, "kv", f.unit_items, many), PTOWSP_LIMIT_EXCEEDED);
    test_error_is(f.context, PTOWSP_LIMIT_EXCEEDED, many,
                  "bind: work bound to plan kv has 4294967296 units, which are more than 2^32 - 1");
    good(&f, ptowsp_run_bind_work(f.run, "kv", f.unit_items, UNITS));
    execute(&f, NULL);
    assert_int_equal(f.call_count, UNITS);
    fixture_free(&f);
}

TEST(plan_axis__lists_of_lanes_are_checked_before_a_run) {
    static const uint32_t wrong[4][LANES + 1] = {
        {1, 1, 2, 4, 6}, {0, 3, 2, 4, 6}, {0, 1, 2, 4, 5}, {0, 1, 2, 4, 7}};
    static const char *const units[4] = {
        "run: unit_begin 0 of plan kv is 1; it goes from 0 to 6, in order",
        "run: unit_begin 2 of plan kv is 2; it goes from 0 to 6, in order",
        "run: unit_begin 4 of plan kv is 5; it goes from 0 to 6, in order",
        "run: unit_begin 4 of plan kv is 7; it goes from 0 to 6, in order"};
    static const uint64_t index[4] = {0, 2, 4, 4};
    static fixture f;
    program_of_all(&f);
    for (int i = 0; i < 4; i++) {
        memcpy(f.unit_begin, wrong[i], sizeof f.unit_begin);
        good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
        f.call_count = 0;
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_INVALID_PARAMS);
        test_error_is(f.context, PTOWSP_INVALID_PARAMS, index[i], units[i]);
        assert_int_equal(f.call_count, 0);
    }
    plan_draw(&f);
    f.merge_begin[1] = 3;
    good(&f, ptowsp_run_bind_plan(f.run, "kv", &f.plan));
    assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(f.context, PTOWSP_INVALID_PARAMS, 2,
                  "run: merge_begin 2 of plan kv is 1; it goes from 0 to 2, in order");
    fixture_free(&f);
}

FIXTURE_TEST(plan_axis__a_lane_outside_of_the_plan_is_an_error, 1) {
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_expr lane = ptowsp_array_at(f->m, "lane", PTOWSP_I64, ptowsp_i64(f->m, 0));
        PTOWSP_PARALLEL(f->m, u, ptowsp_axis_row(f->m, f->units, lane)) {
            task_of(f, f->note, 1, &u);
        }
    }
    compile(f, NULL);
    good(f, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    static const int64_t lanes[3] = {3, 4, -1};
    for (int i = 0; i < 3; i++) {
        char text[128];
        good(f, ptowsp_run_bind_array(f->run, "lane", PTOWSP_I64, &lanes[i], 1));
        f->call_count = 0;
        if (i == 0) {
            execute(f, NULL);
            assert_int_equal(f->call_count, 2);
            continue;
        }
        snprintf(text, sizeof text, "main/parallel u: lane %d of plan kv, which has 4",
                 (int)lanes[i]);
        assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_INVALID_PARAMS);
        test_error_is(f->context, PTOWSP_INVALID_PARAMS, i == 1 ? 4 : PTOWSP_NEGATIVE_INDEX, text);
    }
}

// A kernel that writes into the lists while the program runs: nothing outside is read.
static ptowsp_cycles spoil(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    (void)task;
    f->unit_begin[3] = UNITS + 1;
    return 1;
}

FIXTURE_TEST(plan_axis__lists_that_change_during_a_run_are_found, 1) {
    ptowsp_kernel_desc desc = {.name = "spoil", .fn = spoil, .user = f};
    ptowsp_kernel kernel = ptowsp_kernel_make(f->m, &desc);
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_desc task = {.kernel = kernel};
        ptowsp_task_make(f->m, &task);
        PTOWSP_PARALLEL(f->m, lane, f->lanes) {
            PTOWSP_PARALLEL(f->m, u, ptowsp_axis_row(f->m, f->units, lane)) {
                task_of(f, f->note, 1, &u);
            }
        }
    }
    compile(f, NULL);
    good(f, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, 2,
                  "main/parallel lane/parallel u (lane = 2): lane 2 of plan kv was changed during "
                  "the run, and is malformed now");
}

// -- text and reading -----------------------------------------------------------------------------

DECODE_TEST(plan_axis__modules_and_bindings_can_be_read) {
    char text[2048];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_module_print(f->m, ptowsp_output_to_buffer(&buffer));
    assert_non_null(
        strstr(text, "axis kv plan\naxis kv plan, its merges\naxis kv plan, its lanes\n"));
    assert_non_null(strstr(text, "when kv.tier[u] >= 2"));
    assert_non_null(strstr(text, "kv.merges.slot_first[x]"));
    assert_null(strstr(text, "array kv.flags"));
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = LANES};
    compile(f, &schedule);
    ptowsp_axis_info units = ptowsp_program_read(f->program)->axes[f->units.id];
    assert_int_equal(units.kind, PTOWSP_AXIS_PLAN);
    assert_true(units.is_used);
    assert_false(ptowsp_program_read(f->program)->axes[f->lanes.id].is_used);
    ptowsp_array_info flags = ptowsp_program_read(f->program)->arrays[units.array];
    ptowsp_array_info lanes = ptowsp_program_read(f->program)->arrays[units.array + 1];
    assert_string_equal(flags.name, "kv.flags");
    assert_int_equal(flags.field, PTOWSP_PLAN_FLAGS);
    assert_int_equal(lanes.field, PTOWSP_PLAN_LANE);
    assert_int_equal(lanes.plan_axis, f->units.id);
    assert_true(flags.is_used && lanes.is_used);  // lanes: by the dispatch
    ptowsp_attention_plan bound;
    assert_false(ptowsp_run_bound_plan(f->run, f->units.id, &bound));
    good(f, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    uint32_t ids[3] = {f->units.id, f->merges.id, f->lanes.id};
    static const int64_t sizes[3] = {UNITS, MERGES, LANES};
    for (int i = 0; i < 3; i++) {
        int64_t size = 0;
        assert_true(ptowsp_run_bound_plan(f->run, ids[i], &bound));
        assert_memory_equal(&bound, &f->plan, offsetof(ptowsp_attention_plan, slot_rows));
        assert_int_equal(bound.slot_rows, f->plan.slot_rows);
        assert_true(bound.cost_max == f->plan.cost_max && bound.cost_mean == f->plan.cost_mean);
        assert_true(ptowsp_run_bound_size(f->run, ids[i], &size));
        assert_int_equal(size, sizes[i]);
    }
    ptowsp_dtype dtype;
    const void *data;
    uint64_t count;
    assert_false(ptowsp_run_bound_array(f->run, units.array, &dtype, &data, &count));
}
