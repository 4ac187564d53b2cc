// Batches that are bound in place of a plan: planned as an execution begins, in memory of the run. What is refused
// and most plans are facts (support/facts.h); that a run which runs is busy is in tests/exec/run_refused_test.c.
//
// Expected plans come from paper: costs are 1 per KV token, so that lanes get equal shares of the
// tokens. The first is the one that section 9 of the header draws.

#include "device_fixture.h"
#include "facts.h"
#include "tests/plan/attention_fixture.h"

enum { LANES = 4, LENGTH_MAX = 64, CALL_MAX = 4096, COLUMNS = 6 };
enum { PLAIN = 1, UNITS, MERGES, LISTS };  // ids of the axes

typedef struct call {
    int64_t values[COLUMNS];
} call;

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    call calls[CALL_MAX];
    uint32_t call_count;
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

static void lengths_are(fixture *f, uint32_t count, const int32_t *lengths) {
    memcpy(f->lengths, lengths, count * sizeof lengths[0]);
    f->batch.kv_lengths = f->lengths;
    f->batch.sequence_count = count;
}

// A unit is noted as request, start, length, slot, lane, 0; a merge as request, first slot, slots,
// 0, lane, 1.
static const char decode[] =
    "module decode\naxis plain 3\naxis kv plan\naxis kv plan, its merges\naxis kv plan, its lanes\n"
    "kernel note(axes 0, a i64, b i64, c i64, d i64, e i64, f i64) vector, 1 cycles\n"
    "workload main\n  for_each l in lanes of kv\n    for_each u in kv[l]\n"
    "      task note() a = kv.request[u] b = kv.kv_start[u] c = kv.kv_len[u] d = kv.slot[u] e = l "
    "f = 0\n"
    "  for_each x in merges of kv\n"
    "    task note() a = kv.merges.request[x] b = kv.merges.slot_first[x] "
    "c = kv.merges.slot_count[x] d = 0 e = kv.merges.lane[x] f = 1\n";

// With memory that is counted, or NULL.
static bool fixture_try(fixture *f, test_memory *memory) {
    const ptowsp_context_desc context = {.resize = memory ? test_resize : NULL,
                                         .resize_user = memory};
    const ptowsp_parse_kernel kernel = {.name = "note", .fn = note, .user = f};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    memset(f, 0, sizeof *f);
    f->config.kv_head_count = 1;
    f->config.lane_count = LANES;
    f->config.cost.per_token = 1.0;
    lengths_are(f, 3, (const int32_t[]){250, 100, 50});
    return ptowsp_context_create(&context, &f->context) == PTOWSP_OK &&
           ptowsp_module_parse(f->context, decode, sizeof decode - 1, &attached, &f->m, NULL) ==
               PTOWSP_OK &&
           ptowsp_program_create(f->context, f->m, NULL, &f->program) == PTOWSP_OK &&
           ptowsp_run_create(f->context, f->program, &f->run) == PTOWSP_OK;
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
}

static void fixture_make(fixture *f, test_memory *memory) {
    if (!fixture_try(f, memory)) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

static void bind(const fixture *f) {
    test_ok(f->context, ptowsp_run_bind_batch(f->run, "kv", &f->batch, &f->config, NULL));
}

static void execute(fixture *f) {
    f->call_count = 0;
    test_ok(f->context, ptowsp_run_execute(f->run, NULL));
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
// Length 400.
static const call alone[5] = {{{0, 0, 100, 0, 0, 0}},
                              {{0, 100, 100, 1, 1, 0}},
                              {{0, 200, 100, 2, 2, 0}},
                              {{0, 300, 100, 3, 3, 0}},
                              {{0, 0, 4, 0, 0, 1}}};

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f, NULL), fixture_free(f))

// With memory that is counted.
static test_memory memory;

static void fixture_make_counted(fixture *f) {
    memset(&memory, 0, sizeof memory);
    fixture_make(f, &memory);
}

static void fixture_end_counted(fixture *f) {
    fixture_free(f);
    assert_int_equal(memory.live_blocks, 0);
}

#define COUNTED_FIXTURE_TEST(name)                                                                 \
    TEST_MADE(name, fixture, f, fixture_make_counted(f), fixture_end_counted(f))

DEVICE_TEST(plan_batch__lanes_and_devices_plan_as_well) {
    static fixture made, *const f = &made;
    fixture_make(f, NULL);
    ptowsp_run *run, *serial = f->run;
    ptowsp_context *context = test_lanes(2);
    assert_ok(ptowsp_run_create(context, f->program, &run));
    f->run = run;
    bind(f);
    assert_ok(test_execute(run, 2));
    assert_int_equal(f->call_count, 8);
    f->run = serial;
    bind(f);
    ptowsp_device *device = device_of(f->context, 1, 2, 0);
    lengths_are(f, 3, (const int32_t[]){0, 400, 0});
    f->call_count = 0;
    test_ok(f->context, ptowsp_device_run(device, f->run, NULL));
    assert_int_equal(f->call_count, 5);
    assert_ok(ptowsp_device_close(device));
    ptowsp_run_destroy(run);
    ptowsp_context_destroy(context);
    fixture_free(f);
}

FIXTURE_TEST(plan_batch__plans_and_batches_take_each_others_place) {
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan plan, other;
    assert_false(ptowsp_run_bound_batch(f->run, UNITS, &batch, &config, &sizes));
    bind(f);
    assert_false(ptowsp_run_bound_batch(f->run, PLAIN, &batch, &config, &sizes));
    assert_false(ptowsp_run_bound_plan(f->run, PLAIN, &plan));
    const uint32_t ids[3] = {UNITS, MERGES, LISTS};
    for (int i = 0; i < 3; i++) {
        assert_true(ptowsp_run_bound_batch(f->run, ids[i], &batch, &config, &sizes));
        assert_ptr_equal(batch.kv_lengths, f->lengths);
        assert_int_equal(batch.sequence_count, 3);
        assert_int_equal(config.lane_count, LANES);
        assert_int_equal(sizes.lane_count, 0);
        assert_false(ptowsp_run_bound_plan(f->run, ids[i], &plan));
    }
    execute(f);
    assert_true(ptowsp_run_bound_plan(f->run, MERGES, &plan));
    assert_true(plan.unit_count == 6 && plan.merge_count == 2 && plan.slot_count == 5);
    assert_true(plan.cost_max == 100.0 && plan.cost_mean == 100.0);
    // A plan of another batch, then the batch again.
    lengths_are(f, 1, (const int32_t[]){400});
    other = plan_make(&f->batch, &f->config);
    test_ok(f->context, ptowsp_run_bind_plan(f->run, "kv", &other));
    assert_false(ptowsp_run_bound_batch(f->run, UNITS, &batch, &config, &sizes));
    lengths_are(f, 1, (const int32_t[]){-1});  // not looked at any more
    execute(f);
    calls_are(f, alone, 5);
    lengths_are(f, 3, (const int32_t[]){250, 100, 50});
    bind(f);
    execute(f);
    calls_are(f, drawn, 8);
    plan_free(&other);
}

// -- capacity and memory --------------------------------------------------------------------------

COUNTED_FIXTURE_TEST(plan_batch__memory_grows_only_where_a_plan_does_not_fit) {
    int32_t many[40];
    for (int i = 0; i < 40; i++) {
        many[i] = 10;
    }
    bind(f);
    execute(f);
    size_t before = memory.allocations, bytes = ptowsp_run_result(f->run)->memory_bytes;
    execute(f);
    lengths_are(f, 3, (const int32_t[]){400, 0, 0});
    execute(f);
    assert_int_equal(memory.allocations, before);
    lengths_are(f, 40, many);
    bind(f);
    execute(f);
    assert_int_equal(f->call_count, 40);
    assert_int_equal(memory.allocations, before + 1);
    assert_true(ptowsp_run_result(f->run)->memory_bytes >= bytes + 34 * sizeof(ptowsp_work));
    for (int32_t count = 40; count > 0; count--) {
        lengths_are(f, (uint32_t)count, many);
        bind(f);
        execute(f);
    }
    f->config.lane_count = LANES / 2;  // fewer lanes fit as well
    lengths_are(f, 40, many);
    bind(f);
    execute(f);
    assert_int_equal(f->call_count, 40);
    assert_int_equal(memory.allocations, before + 1);
    f->config.lane_count = 2 * LANES;
    bind(f);
    execute(f);
    assert_int_equal(f->call_count, 40);
    assert_int_equal(memory.allocations, before + 2);
}

// Binds with and without a capacity, each planned. What fails may be tried again.
static bool all_of_it(test_memory *counted, uint32_t *out_failed) {
    static fixture f;
    bool is_good = fixture_try(&f, counted);
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
    EACH_REFUSED(n, 20) {
        memset(&memory, 0, sizeof memory);
        test_refuse(&memory, n);
        has_more = !all_of_it(&memory, &failed) || memory.allocations >= n;
        assert_int_equal(memory.live_blocks, 0);
    }
    assert_true(failed >= 3);
}

// A capacity that could not be had does not leave the batch of before without memory.
COUNTED_FIXTURE_TEST(plan_batch__a_batch_is_planned_after_a_failed_binding) {
    ptowsp_attention_limits limits = {.sequence_count_max = 4, .kv_length_max = 1000};
    ptowsp_attention_sizes sizes, more;
    assert_ok(ptowsp_attention_bound(&f->config, &limits, &sizes, NULL));
    limits.sequence_count_max = 1000;
    assert_ok(ptowsp_attention_bound(&f->config, &limits, &more, NULL));
    test_ok(f->context, ptowsp_run_bind_batch(f->run, "kv", &f->batch, &f->config, &sizes));
    execute(f);
    memory.refuse_at = memory.allocations + 1;
    test_refused(f->context, ptowsp_run_bind_batch(f->run, "kv", &f->batch, &f->config, &more),
                 PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "plan kv: no memory for its units");
    ptowsp_attention_plan plan;
    assert_false(ptowsp_run_bound_plan(f->run, UNITS, &plan));
    memory.refuse_at = memory.allocations + 1;  // its room, once more
    test_refused(f->context, ptowsp_run_execute(f->run, NULL), PTOWSP_OUT_OF_MEMORY,
                 PTOWSP_NO_INDEX, "plan kv: no memory for its units");
    execute(f);
    calls_are(f, drawn, 8);
}

// -- facts ----------------------------------------------------------------------------------------

// What is bound: pointers that a case may take away, arrays that it may give.
static fixture g;
static struct { bool batch, config, queries, tiers, positions; } with;
static ptowsp_attention_limits limits;
static ptowsp_attention_sizes sizes;
static const int32_t drawn_lengths[3] = {250, 100, 50}, ones[3] = {1, 1, 1};
static const uint32_t windows[3] = {9, 9, 9};
static ptowsp_attention_positions positions;
static bool is_bound;
static size_t allocations;  // since the last call of `count`

static void begin(void) {
    if (g.context) {
        fixture_end_counted(&g);
    }
    fixture_make_counted(&g);
    with = (__typeof__(with)){.batch = true, .config = true};
    positions = (ptowsp_attention_positions){3, ones, ones, ones, ones, windows, windows, ones};
    for (int i = 0; i < LENGTH_MAX; i++) {
        g.queries[i] = 1;
    }
    is_bound = false;
}

static void give(void) {
    static const ptowsp_tier tiers[1] = {{0, 1, 300}};
    g.batch.query_lengths = with.queries ? g.queries : NULL;
    g.config.tiers = with.tiers ? tiers : NULL;
    g.config.tier_count = with.tiers;
    g.config.positions = with.positions ? &positions : NULL;
}

static ptowsp_status bind_with(const ptowsp_attention_sizes *given) {
    give();
    const ptowsp_status status = ptowsp_run_bind_batch(
        g.run, facts_words, with.batch ? &g.batch : NULL, with.config ? &g.config : NULL, given);
    is_bound = is_bound || status == PTOWSP_OK;
    return status;
}

static ptowsp_status call_bind(void) {
    return bind_with(NULL);
}

static ptowsp_status call_bind_sized(void) {
    return bind_with(&sizes);
}

// A plan that has been made of the batch.
static ptowsp_status call_bind_planned(void) {
    give();
    aplan plan = plan_make(&g.batch, &g.config);
    const ptowsp_status status = ptowsp_run_bind_plan(g.run, "kv", &plan);
    plan_free(&plan);
    return status;
}

static ptowsp_status call_bound(void) {
    return ptowsp_attention_bound(&g.config, &limits, &sizes, NULL);
}

static ptowsp_status call_execute(void) {
    g.call_count = 0;
    return ptowsp_run_execute(g.run, NULL);
}

static ptowsp_status call_time(void) {
    g.call_count = 0;
    return test_time(g.run);
}

static ptowsp_status call_count(void) {
    allocations = memory.allocations;
    return PTOWSP_OK;
}

static const facts_call calls[] = {{"bind ", call_bind},
                                   {"bind_sized ", call_bind_sized},
                                   {"bind_planned", call_bind_planned},
                                   {"bound", call_bound},
                                   {"execute", call_execute},
                                   {"time", call_time},
                                   {"count", call_count},
                                   {NULL, NULL}};

static const char *error(uint64_t *out_index) {
    const ptowsp_error last = ptowsp_context_error(g.context);
    static char text[200];
    snprintf(text, sizeof text, "%s", last.text);
    *out_index = last.index;
    return text;
}

// No kernel has run. What was bound before stays so, and is planned with the lengths of the drawing.
static void binding_stays(void) {
    ptowsp_attention_plan plan;
    assert_int_equal(g.call_count, 0);
    assert_false(ptowsp_run_bound_plan(g.run, UNITS, &plan));
    if (is_bound && sizes.unit_count > 0) {  // without this capacity there is room
        assert_ok(ptowsp_run_bind_batch(g.run, "kv", &g.batch, &g.config, NULL));
    }
    if (is_bound) {
        memcpy(g.lengths, drawn_lengths, sizeof drawn_lengths);
        g.queries[0] = 1;
        execute(&g);
        calls_are(&g, drawn, 8);
    }
}

static const facts_field *fields(void) {
    static size_t made;
    made = memory.allocations - allocations;
#define OF(name, x, count) FACTS_OF(name, x, sizeof(x), count)
    FACTS_RETURN(
        FIELD(with.batch), FIELD(with.config), FIELD(with.queries), FIELD(with.tiers),
        FIELD(with.positions), OF("lengths", g.lengths[0], LENGTH_MAX),
        OF("queries", g.queries[0], LENGTH_MAX), OF("batch.kv_lengths", g.batch.kv_lengths, 1),
        OF("batch.sequence_count", g.batch.sequence_count, 1), FIELD(positions.query_first),
        FIELD(positions.query_stride), FIELD(positions.kv_first), FIELD(positions.kv_stride),
        FIELD(positions.before), FIELD(positions.after), FIELD(positions.sinks),
        OF("config.lane_count", g.config.lane_count, 1),
        OF("config.kv_head_count", g.config.kv_head_count, 1),
        OF("config.cost.per_unit", g.config.cost.per_unit, 1),
        OF("config.shares_merges", g.config.shares_merges, 1),
        OF("config.is_causal", g.config.is_causal, 1), OF("config.window", g.config.window, 1),
        OF("config.mode", g.config.mode, 1), OF("config.chunk", g.config.chunk, 1),
        FIELD(limits.sequence_count_max), FIELD(limits.kv_length_max), FIELD(sizes.unit_count),
        FIELD(sizes.merge_count), FIELD(sizes.slot_count), FIELD(sizes.slot_rows),
        FIELD(sizes.lane_count), OF("task_count", ptowsp_run_result(g.run)->task_count, 1),
        OF("tasks", g.calls[0].values[0], COLUMNS * g.call_count),
        OF("call_count", g.call_count, 1), FIELD(made));
}

TEST(plan_batch__facts_hold) {
    facts all = {"tests/runtime/plan_batch.facts", begin, fields, calls, error, binding_stays, 0};
    facts_run(&all);
    fixture_end_counted(&g);
}
