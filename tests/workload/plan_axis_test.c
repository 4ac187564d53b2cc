// Axes over plans: loops over units, merges and lanes of a plan that is bound each step, on every engine of
// the library. Programs whose times or arguments are all that matters are in tests/cases/plans.case, and plans that
// cannot be bound in tests/exec/runs.facts.
//
// The plan of most tests is the one that section 9 of the header draws, filled in by hand.

#include "device_fixture.h"

enum { UNITS = 6, MERGES = 2, LANES = 4, SLOTS = 5, CALL_MAX = 4096, ARG_MAX = 8 };

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
    int64_t args[ARG_MAX];
} call;

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    call calls[CALL_MAX];
    uint32_t call_count;
    // The plan, its arrays to be changed.
    ptowsp_attention_plan plan;
    ptowsp_work unit_items[UNITS], merge_items[MERGES];
    uint32_t unit_begin[LANES + 1], merge_begin[LANES + 1];
} fixture;

// In the order of HEAD.
enum { ALL_UNITS = 1, ALL_MERGES, ALL_LANES };

static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    uint32_t at = __atomic_fetch_add(&f->call_count, 1, __ATOMIC_RELAXED);
    assert_true(at < CALL_MAX);
    call *c = &f->calls[at];
    memset(c, 0, sizeof *c);
    for (uint32_t i = 0; i < task->user_axis_count; i++) {
        c->args[i] = ptowsp_task_axis(task, i);
    }
    return 1;
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

// A kernel that writes into the lists while the program runs.
static ptowsp_cycles spoil(const ptowsp_task *task, void *user) {
    (void)task;
    ((fixture *)user)->unit_begin[3] = UNITS + 1;
    return 1;
}

#define HEAD                                                                                       \
    "module decode slots 4\naxis kv plan\naxis kv plan, its merges\naxis kv plan, its lanes\n"
#define NOTE(axes) HEAD "kernel note(axes " axes ") vector\n"

// The module of a text; without one, of the head alone.
static void fixture_make(fixture *f, const char *text) {
    const ptowsp_parse_kernel kernels[] = {{.name = "note", .fn = note, .user = f},
                                           {.name = "attend", .fn = note, .cost = test_first_arg},
                                           {.name = "join", .fn = note, .cost = test_first_arg},
                                           {.name = "spoil", .fn = spoil, .user = f}};
    const ptowsp_parse_desc desc = {kernels, sizeof kernels / sizeof kernels[0], 0};
    memset(f, 0, sizeof *f);
    plan_draw(f);
    f->context = test_context(NULL);
    text = text ? text : HEAD;
    test_ok(f->context, ptowsp_module_parse(f->context, text, strlen(text), &desc, &f->m, NULL));
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
}

static void compile(fixture *f, const ptowsp_schedule *schedule) {
    ptowsp_program_desc desc = {NULL, schedule};
    test_destroy(f->run, f->program, NULL, NULL);
    f->program = NULL;
    f->run = NULL;
    test_ok(f->context, ptowsp_program_create(f->context, f->m, &desc, &f->program));
    assert_ok(ptowsp_run_create(f->context, f->program, &f->run));
}

static void execute(fixture *f, const ptowsp_run_options *options) {
    f->call_count = 0;
    test_ok(f->context, ptowsp_run_execute(f->run, options));
}

// Binds the drawn plan, as it is now, and executes.
static void execute_drawn(fixture *f) {
    test_ok(f->context, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    execute(f, NULL);
}

static void compiled(fixture *f, const char *text) {
    fixture_make(f, text);
    compile(f, NULL);
}

#define PLAN_TEST(name, text) TEST_MADE(name, fixture, f, compiled(f, text), fixture_free(f))

// -- descriptors that are not valid ---------------------------------------------------------------

// A loop of one task goes a shorter way than one of two; each is tried with every set of units that
// are INVALID, in both loops over units.
TEST(plan_axis__invalid_units_have_no_iteration) {
    static const char *const texts[4] = {
        NOTE("1") "workload main\n  parallel u in kv\n    task note(u)\n",
        NOTE("1") "workload main\n  parallel u in kv\n    task note(u)\n    task note(u)\n",
        NOTE("1") "workload main\n  for_each lane in lanes of kv\n    for_each u in kv[lane]\n"
                  "      task note(u)\n",
        NOTE("1") "workload main\n  for_each lane in lanes of kv\n    for_each u in kv[lane]\n"
                  "      task note(u)\n      task note(u)\n"};
    for (int form = 0; form < 4; form++) {
        static fixture f;
        uint32_t tasks = form % 2 ? 2 : 1;
        compiled(&f, texts[form]);
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
            execute_drawn(&f);
            assert_int_equal(f.call_count, valid_count * tasks);
            for (uint32_t i = 0; i < f.call_count; i++) {
                assert_int_equal(f.calls[i].args[0], valid[i / tasks]);
            }
        }
        fixture_free(&f);
    }
}

// -- work of a chunk plan -------------------------------------------------------------------------

PLAN_TEST(plan_axis__units_of_a_chunk_plan_are_bound_as_work,
          NOTE("6") "workload main\n"
                    "  parallel u in kv\n"
                    "    task note(kv.request[u], kv.head[u], kv.kv_start[u], kv.kv_len[u], "
                    "kv.tier[u], (kv.flags[u] & 2) / 2)\n") {
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
    test_ok(f->context, ptowsp_run_bind_work(f->run, "kv", work, count));
    execute(f, NULL);
    assert_int_equal(f->call_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t *got = f->calls[i].args;
        assert_true(got[0] == work[i].params[0] && got[1] == work[i].params[1] &&
                    got[2] == work[i].params[2] && got[3] == work[i].params[3] &&
                    got[4] == work[i].tier && got[5] == (work[i].flags >> 1 & 1u));
    }
    execute_drawn(f);  // takes its place
    assert_int_equal(f->call_count, UNITS);
    test_ok(f->context, ptowsp_run_bind_work(f->run, "kv", NULL, 0));
    execute(f, NULL);
    assert_int_equal(f->call_count, 0);
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

static int by_args(const void *a, const void *b) {
    return memcmp(((const call *)a)->args, ((const call *)b)->args, sizeof(call){0}.args);
}

static void expect_unit(call *c, const random_plan *r, uint32_t unit, uint32_t lane) {
    const ptowsp_work *w = &r->units[unit];
    const call expected = {{unit, lane, w->params[0], w->params[2] + (int64_t)w->params[3],
                            (int64_t)w->params[1] * 256 + w->tier, w->reserved, w->work_id,
                            (w->flags & 1) + (w->flags & 2) + (ptowsp_work_is_whole(w) ? 4 : 0)}};
    *c = expected;
}

static ptowsp_expr as_i64(ptowsp_expr value) {
    return ptowsp_cast(value, PTOWSP_TYPE_I64);
}

static ptowsp_expr field(ptowsp_expr variable, ptowsp_plan_field which) {
    return ptowsp_loop_field(variable, which);
}

static ptowsp_expr times(ptowsp_module *m, ptowsp_expr a, int64_t b) {
    return ptowsp_mul(a, ptowsp_i64(m, b));
}

static void random_task(ptowsp_module *m, ptowsp_expr u) {
    ptowsp_expr first = as_i64(field(u, PTOWSP_PLAN_IS_FIRST));
    ptowsp_expr last = as_i64(field(u, PTOWSP_PLAN_IS_LAST));
    ptowsp_expr whole = as_i64(field(u, PTOWSP_PLAN_IS_WHOLE));
    const ptowsp_task_desc task = {
        .kernel = {1},
        .axes = {u, field(u, PTOWSP_PLAN_LANE), field(u, PTOWSP_PLAN_REQUEST),
                 ptowsp_add(field(u, PTOWSP_PLAN_KV_START), field(u, PTOWSP_PLAN_KV_LEN)),
                 ptowsp_add(times(m, field(u, PTOWSP_PLAN_HEAD), 256), field(u, PTOWSP_PLAN_TIER)),
                 field(u, PTOWSP_PLAN_TILE), field(u, PTOWSP_PLAN_SLOT),
                 ptowsp_add(first, ptowsp_add(times(m, last, 2), times(m, whole, 4)))}};
    ptowsp_task_make(m, &task);
}

// A program over a plan against a plain loop over its units: serially in order, and on lanes in any.
DEVICE_TEST(plan_axis__random_plans_are_walked_like_plain_loops) {
    uint64_t random = test_seed(), invalid_count = 0;
    static fixture flat, nested;
    fixture_make(&flat, NOTE("8"));
    PTOWSP_WORKLOAD(flat.m, "main") {
        PTOWSP_PARALLEL(flat.m, u, (ptowsp_axis){ALL_UNITS}) {
            random_task(flat.m, u);
        }
    }
    fixture_make(&nested, NOTE("8"));
    PTOWSP_WORKLOAD(nested.m, "main") {
        PTOWSP_PARALLEL(nested.m, lane, (ptowsp_axis){ALL_LANES}) {
            PTOWSP_FOR_EACH(nested.m, u,
                            ptowsp_axis_row(nested.m, (ptowsp_axis){ALL_UNITS}, lane)) {
                random_task(nested.m, u);
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
            test_ok(f->context, ptowsp_run_bind_plan(f->run, "kv", &r.plan));
            execute(f, NULL);
            assert_int_equal(f->call_count, count);
            for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(by_args(&f->calls[i], &expected[i]), 0);
            }
        }
        ptowsp_run_options options = {.lane_count = 3};
        flat.call_count = 0;
        assert_ok(ptowsp_run_bind_plan(threaded, "kv", &r.plan));
        assert_ok(ptowsp_run_execute(threaded, &options));
        assert_int_equal(flat.call_count, count);
        qsort(flat.calls, count, sizeof flat.calls[0], by_args);
        qsort(expected, count, sizeof expected[0], by_args);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(by_args(&flat.calls[i], &expected[i]), 0);
        }
    }
    assert_true(invalid_count > 0);
    test_destroy(threaded, NULL, NULL, context);
    fixture_free(&flat);
    fixture_free(&nested);
}

// -- plans of the planner -------------------------------------------------------------------------

enum { PLANNED_SEQUENCES = 40, PLANNED_HEADS = 3, PLANNED_LANES = 16 };

// Tasks with the costs that the planner was told keep each lane busy for as long as the plan says,
// and all is done as soon as the longest lane and the merges that wait for it are.
TEST(plan_axis__lanes_are_busy_for_what_the_plan_predicts) {
    uint64_t random = test_seed(), merge_count = 0;
    static fixture f;
    fixture_make(&f, HEAD "kernel attend(axes 1) vector, cycles by a cost function\n"
                          "kernel join(axes 1) vector, cycles by a cost function\n"
                          "workload main\n"
                          "  parallel u in kv\n"
                          "    task attend(64 + kv.kv_len[u])\n"
                          "  parallel x in merges of kv\n"
                          "    task join(4 * kv.merges.slot_count[x])\n");
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
        assert_ok(ptowsp_attention_size(&batch, &config, &sizes, NULL));
        assert_true(sizes.block_bytes <= sizeof block);
        assert_ok(ptowsp_attention_place(&sizes, block, sizeof block, &plan));
        assert_ok(ptowsp_attention_generate(&batch, &config, &plan, NULL));
        for (uint32_t i = 0; i < plan.merge_count; i++) {
            waits += 4 * plan.merges[i].params[3];
        }
        test_ok(f.context, ptowsp_run_bind_plan(f.run, "kv", &plan));
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
    const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = memory};
    static fixture f;
    memset(&f, 0, sizeof f);
    plan_draw(&f);
    if (ptowsp_context_create(&desc, &f.context) != PTOWSP_OK) {
        return false;
    }
    bool is_good = ptowsp_module_create(f.context, NULL, &f.m) == PTOWSP_OK;
    if (is_good) {
        const ptowsp_kernel_desc kernel = {.name = "note", .axis_count = 8, .fn = note, .user = &f};
        ptowsp_axis units = ptowsp_axis_plan(f.m, "kv");
        ptowsp_axis_plan_merges(f.m, "kv");
        ptowsp_axis lanes = ptowsp_axis_plan_lanes(f.m, "kv");
        ptowsp_kernel_make(f.m, &kernel);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PARALLEL(f.m, lane, lanes) {
                PTOWSP_FOR_EACH(f.m, u, ptowsp_axis_row(f.m, units, lane)) {
                    random_task(f.m, u);
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
            assert_ok(ptowsp_run_bind_plan(f.run, "kv", &f.plan));
            assert_ok(ptowsp_run_execute(f.run, NULL));
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

TEST_MADE(plan_axis__no_expression_has_a_field, fixture, f, fixture_make(f, NULL),
          fixture_free(f)) {
    assert_int_equal(field((ptowsp_expr){NULL, 0}, PTOWSP_PLAN_LANE).id, 0);
    field((ptowsp_expr){f->m, 0}, PTOWSP_PLAN_LANE);
    assert_string_equal(ptowsp_module_error(f->m).text,
                        "decode: loop_field: it is not the variable of a loop");
}

// Nothing outside is read.
PLAN_TEST(plan_axis__lists_that_change_during_a_run_are_found,
          NOTE("1") "kernel spoil(axes 0) vector\n"
                    "workload main\n"
                    "  task spoil()\n"
                    "  parallel lane in lanes of kv\n"
                    "    parallel u in kv[lane]\n"
                    "      task note(u)\n") {
    test_ok(f->context, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    test_refused(f->context, ptowsp_run_execute(f->run, NULL), PTOWSP_INVALID_PARAMS, 2,
                 "main/parallel lane/parallel u (lane = 2): lane 2 of plan kv was changed during "
                 "the run, and is malformed now");
}

// -- text and reading -----------------------------------------------------------------------------

static const char flags_text[] =
    NOTE("1") "workload main\n  parallel u in kv\n    task note(i64(kv.flags[u]))\n";

TEST_MADE(plan_axis__modules_and_bindings_can_be_read, fixture, f, fixture_make(f, flags_text),
          fixture_free(f)) {
    char text[4096];
    ptowsp_module_print(f->m, TEST_TEXT(text));
    assert_string_equal(text, flags_text);
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN, .lane_count = LANES};
    compile(f, &schedule);
    ptowsp_axis_info units = ptowsp_program_read(f->program)->axes[ALL_UNITS];
    assert_int_equal(units.kind, PTOWSP_AXIS_PLAN);
    assert_true(units.is_used);
    assert_false(ptowsp_program_read(f->program)->axes[ALL_LANES].is_used);
    ptowsp_array_info flags = ptowsp_program_read(f->program)->arrays[units.array];
    ptowsp_array_info lanes = ptowsp_program_read(f->program)->arrays[units.array + 1];
    assert_string_equal(flags.name, "kv.flags");
    assert_int_equal(flags.field, PTOWSP_PLAN_FLAGS);
    assert_int_equal(lanes.field, PTOWSP_PLAN_LANE);
    assert_int_equal(lanes.plan_axis, ALL_UNITS);
    assert_true(flags.is_used && lanes.is_used);  // lanes: by the dispatch
    ptowsp_attention_plan bound;
    assert_false(ptowsp_run_bound_plan(f->run, ALL_UNITS, &bound));
    test_ok(f->context, ptowsp_run_bind_plan(f->run, "kv", &f->plan));
    uint32_t ids[3] = {ALL_UNITS, ALL_MERGES, ALL_LANES};
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
