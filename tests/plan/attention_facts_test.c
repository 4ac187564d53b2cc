// Attention plans as facts (support/facts.h): numbers from paper, positions, bounds, and what is refused, with its
// text. A plan that is made is held against all that section 9 promises; one that is refused changes nothing.

#include "attention_fixture.h"
#include "facts.h"

enum { SEQUENCES = 4, LANES = 300, GUARD = 4096 };

// What there is of a batch, a configuration and a plan. `with` says which pointers are not NULL.
static struct {
    bool batch, config, limits, sizes, plan;
    bool kv, queries, speeds, tiers;
    bool positions, query_first, query_stride, kv_first, kv_stride, before, after, sinks;
} with;
static int32_t kv[SEQUENCES], queries[SEQUENCES];
static uint32_t speeds[6];
static ptowsp_tier tiers[1];
static int32_t query_first[SEQUENCES], query_stride[SEQUENCES], kv_first[SEQUENCES];
static int32_t kv_stride[SEQUENCES], sinks[SEQUENCES];
static uint32_t before[SEQUENCES], after[SEQUENCES];
static ptowsp_attention_positions positions;
static abatch batch;
static aconfig config;
static ptowsp_attention_limits limits;
static ptowsp_attention_sizes sizes;
static ptowsp_prefix_sizes prefix;
static ptowsp_plan_info info;
static aplan plan;
static unsigned char *block;
static size_t block_bytes, guard;  // of a block, and behind it

static void begin(void) {
    free(block);
    block = NULL;
    block_bytes = guard = 0;
    static ptowsp_work none;
    static uint32_t no_lane;
    static double no_cost;
    plan = (aplan){&none, &none, &no_lane, &no_lane, .lane_costs = &no_cost};
    memset(&with, 0, sizeof with);
    with.batch = with.config = with.limits = with.sizes = with.plan = with.kv = with.queries = true;
    const int32_t lengths[SEQUENCES] = {300, 0, 20, 50}, counts[SEQUENCES] = {1, 5, 2, 1};
    memcpy(kv, lengths, sizeof kv);
    memcpy(queries, counts, sizeof queries);
    memset(speeds, 0, sizeof speeds);
    tiers[0] = (ptowsp_tier){0, 1, 0};
    positions = (ptowsp_attention_positions){.sequence_count = SEQUENCES};
    batch = (abatch){.sequence_count = SEQUENCES};
    config = (aconfig){.kv_head_count = 2, .lane_count = 3};
    limits = (ptowsp_attention_limits){0};
    for (int i = 0; i < SEQUENCES; i++) {
        query_stride[i] = kv_stride[i] = 1;
        query_first[i] = kv_first[i] = sinks[i] = 0;
        before[i] = after[i] = UINT32_MAX;
    }
}

static const abatch *the_batch(void) {
    batch.kv_lengths = with.kv ? kv : NULL;
    batch.query_lengths = with.queries ? queries : NULL;
    return with.batch ? &batch : NULL;
}

static const aconfig *the_config(void) {
    config.lane_speeds = with.speeds ? speeds : NULL;
    config.tiers = with.tiers ? tiers : NULL;
    positions.query_first = with.query_first ? query_first : NULL;
    positions.query_stride = with.query_stride ? query_stride : NULL;
    positions.kv_first = with.kv_first ? kv_first : NULL;
    positions.kv_stride = with.kv_stride ? kv_stride : NULL;
    positions.before = with.before ? before : NULL;
    positions.after = with.after ? after : NULL;
    positions.sinks = with.sinks ? sinks : NULL;
    config.positions = with.positions ? &positions : NULL;
    return with.config ? &config : NULL;
}

// -- calls ----------------------------------------------------------------------------------------

// Each call fills in all of the info. One that is refused counts units only where they do not fit.
static ptowsp_plan_info *new_info(void) {
    memset(&info, 0x55, sizeof info);
    return &info;
}

static ptowsp_status counted(ptowsp_status status) {
    ptowsp_attention_sizes needed = {0};
    if (status == PTOWSP_BUFFER_OVERFLOW) {
        assert_ok(ptowsp_attention_size(the_batch(), the_config(), &needed, NULL));
    }
    assert_true(status == PTOWSP_OK || info.work_count == needed.unit_count);
    return status;
}

static ptowsp_status call_size(void) {
    memset(&sizes, 1, sizeof sizes);
    const ptowsp_status status =
        ptowsp_attention_size(the_batch(), the_config(), with.sizes ? &sizes : NULL, new_info());
    assert_true(!with.sizes || sizes.unit_count == info.work_count);
    return counted(status);
}

static ptowsp_status call_bound(void) {
    memset(&sizes, 1, sizeof sizes);
    const ptowsp_status status = ptowsp_attention_bound(the_config(), with.limits ? &limits : NULL,
                                                        with.sizes ? &sizes : NULL, new_info());
    assert_true(status == PTOWSP_OK || !with.sizes || sizes.unit_count == 0);
    return status;
}

static ptowsp_status call_prefix_bound(void) {
    return ptowsp_prefix_bound(the_config(), &limits, &prefix, new_info());
}

// Places a plan for the sizes and `more` of everything but lanes.
static void place(uint64_t more) {
    sizes.unit_count += more, sizes.merge_count += more, sizes.slot_count += more;
    block_bytes = (size_t)sizes.block_bytes + 2 * (size_t)more * sizeof(ptowsp_work);
    guard = GUARD;
    block = (unsigned char *)malloc(block_bytes + guard);
    memset(block, 0xa5, block_bytes + guard);
    assert_ok(ptowsp_attention_place(&sizes, block, block_bytes, &plan));
    assert_int_equal(plan.lane_capacity, sizes.lane_count);
    assert_int_equal(plan.lane_count, sizes.lane_count);
}

static ptowsp_status call_place(void) {
    const ptowsp_status status = call_size();
    place(status == PTOWSP_OK ? LANES : 0);
    return status;
}

// Into the plan that is there, or one of another batch.
static ptowsp_status call_generate(void) {
    if (!block) {
        sizes = (ptowsp_attention_sizes){8, 4, 8, 64, 3, 0};
        sizes.block_bytes = 12 * sizeof(ptowsp_work) + 2 * 4 * 4 + 3 * 8;
        place(0);
    }
    unsigned char *was = (unsigned char *)malloc(block_bytes + guard);
    memcpy(was, block, block_bytes + guard);
    const aplan plan_was = plan;
    const ptowsp_status status =
        ptowsp_attention_generate(the_batch(), the_config(), with.plan ? &plan : NULL, new_info());
    if (status != PTOWSP_OK) {
        assert_memory_equal(block, was, block_bytes);
        assert_memory_equal(&plan, &plan_was, sizeof plan);
    }
    assert_memory_equal(block + block_bytes, was + block_bytes, guard);
    free(was);
    return counted(status);
}

static ptowsp_status call_check(void) {
    return counted(ptowsp_attention_check(the_batch(), the_config(), &plan, new_info()));
}

// Makes a plan whose arrays fit exactly, and has it checked.
static ptowsp_status call_make(void) {
    free(block);
    block = NULL;
    plan = plan_make(the_batch(), the_config());
    block = (unsigned char *)plan.units;
    block_bytes = guard = 0;
    return call_check();
}

// And judges it by the slow reference, which knows nothing of positions.
static ptowsp_status call_plan(void) {
    const ptowsp_status status = call_make();
    plan_check(&batch, &config, &plan);
    return status;
}

static ptowsp_status call_print(void) {
    ptowsp_attention_print(&plan, facts_output());
    return PTOWSP_OK;
}

// Two sequences with all arrays, whose windows beyond INT32_MAX are all, and whose KV may all be sinks.
static ptowsp_status call_positions(void) {
    memset(&with.positions, true, sizeof with - offsetof(__typeof__(with), positions));
    batch.sequence_count = positions.sequence_count = 2;
    kv[0] = sinks[0] = 5, kv[1] = sinks[1] = 9;
    queries[0] = 2, queries[1] = 3;
    query_first[0] = 3, query_first[1] = 6;
    before[0] = 3, after[0] = 0, after[1] = (uint32_t)INT32_MAX + 1;
    config.kv_head_count = config.lane_count = 1;
    return PTOWSP_OK;
}

static const facts_call calls[] = {{"positions", call_positions},
                                   {"size", call_size},
                                   {"bound", call_bound},
                                   {"prefix_bound", call_prefix_bound},
                                   {"place", call_place},
                                   {"generate", call_generate},
                                   {"check", call_check},
                                   {"make", call_make},
                                   {"plan", call_plan},
                                   {"print", call_print},
                                   {NULL, NULL}};

static const char *error(uint64_t *out_index) {
    return facts_plan_error(&info, out_index);
}

// -- what can be said of them ---------------------------------------------------------------------

// Of units and lanes, by the functions that tell it.
static uint32_t rows[64], merge_rows[8], merge_first[8], lane_units[16], lane_merges[16];
static uint32_t attend_rows, pairs;
static bool is_invariant;
static double ratio;

static void look(void) {
    const ptowsp_attend_step step = {.config = &config};
    const ptowsp_attend_unit two = {.query_count = 2};
    attend_rows = ptowsp_attend_unit_rows(&step, &two);
    is_invariant = ptowsp_attention_is_invariant(the_config());
    ratio = plan.cost_mean > 0 ? plan.cost_max / plan.cost_mean : 0;
    pairs = 0;
    for (uint32_t i = 0; i < plan.unit_count && i < COUNT_OF(rows); i++) {
        pairs += ptowsp_work_kv_len(&plan.units[i]);
        rows[i] = ptowsp_attention_unit_rows(the_batch(), &plan, &plan.units[i]);
    }
    for (uint32_t i = 0; i < plan.merge_count && i < COUNT_OF(merge_rows); i++) {
        merge_rows[i] = ptowsp_work_merge_rows(&plan.merges[i], plan.group, &merge_first[i]);
    }
    for (uint32_t i = 0; i < plan.lane_count && i < 8; i++) {
        const ptowsp_work *units = ptowsp_attention_lane_units(&plan, i, &lane_units[2 * i + 1]);
        const ptowsp_work *merges = ptowsp_attention_lane_merges(&plan, i, &lane_merges[2 * i + 1]);
        lane_units[2 * i] = (uint32_t)(units - plan.units);
        lane_merges[2 * i] = (uint32_t)(merges - plan.merges);
    }
}

static const facts_field *fields(void) {
    const uint32_t units = plan.unit_count, merges = plan.merge_count, lanes = plan.lane_count;
#define UNITS(name, member)  FACTS_OF(name, plan.units->member, sizeof *plan.units, units)
#define MERGES(name, member) FACTS_OF(name, plan.merges->member, sizeof *plan.merges, merges)
    look();
    FACTS_RETURN(
        NAMED("printed", facts_printed), FIELD(with.batch), FIELD(with.config), FIELD(with.limits),
        FIELD(with.sizes), FIELD(with.plan), FIELD(with.kv), FIELD(with.queries),
        FIELD(with.speeds), FIELD(with.tiers), FIELD(with.positions), FIELD(with.query_first),
        FIELD(with.query_stride), FIELD(with.kv_first), FIELD(with.kv_stride), FIELD(with.before),
        FIELD(with.after), FIELD(with.sinks), FIELDS(kv, SEQUENCES), FIELDS(queries, SEQUENCES),
        FIELDS(speeds, 6), FIELD(tiers[0].id), FIELD(tiers[0].length_min),
        FIELD(tiers[0].length_max), FIELDS(query_first, SEQUENCES), FIELDS(query_stride, SEQUENCES),
        FIELDS(kv_first, SEQUENCES), FIELDS(kv_stride, SEQUENCES), FIELDS(sinks, SEQUENCES),
        FIELDS(before, SEQUENCES), FIELDS(after, SEQUENCES), FIELD(positions.sequence_count),
        FIELD(batch.sequence_count), FIELD(config.kv_head_count), FIELD(config.group),
        FIELD(config.query_head_count), FIELD(config.lane_count), FIELD(config.mode),
        FIELD(config.is_causal), FIELD(config.window), FIELD(config.page_size),
        FIELD(config.tile_rows), FIELD(config.piece_min), FIELD(config.chunk), FIELD(config.grain),
        FIELD(config.tier_count), FIELD(config.shares_merges), FIELD(config.cost.per_unit),
        FIELD(config.cost.per_token), FIELD(config.cost.per_row_token),
        FIELD(config.cost.per_merged_row), FIELD(limits.sequence_count_max),
        FIELD(limits.kv_length_max), FIELD(limits.query_length_max),
        FIELD(limits.kv_token_count_max), FIELD(limits.query_token_count_max),
        FIELD(sizes.unit_count), FIELD(sizes.merge_count), FIELD(sizes.slot_count),
        FIELD(sizes.slot_rows), FIELD(sizes.lane_count), FIELD(sizes.block_bytes),
        FIELD(prefix.attention.slot_rows), FIELD(info.work_count), FIELD(info.value),
        FIELD(info.limit), FIELD(plan.units), FIELD(plan.merges), FIELD(plan.unit_begin),
        FIELD(plan.merge_begin), FIELD(plan.lane_costs), FIELD(plan.unit_capacity),
        FIELD(plan.merge_capacity), FIELD(plan.slot_capacity), FIELD(plan.lane_capacity),
        FIELD(plan.unit_count), FIELD(plan.merge_count), FIELD(plan.slot_count),
        FIELD(plan.tile_count), FIELD(plan.tile_tokens), FIELD(plan.group), FIELD(plan.slot_rows),
        FIELD(plan.cost_max), FIELD(plan.cost_mean),
        FACTS_OF("lane_costs", (plan.lane_costs ? plan.lane_costs : &ratio)[0], sizeof(double),
                 lanes),
        FACTS_OF("unit_begin", plan.unit_begin[0], 4, lanes + 1),
        FACTS_OF("merge_begin", plan.merge_begin[0], 4, lanes + 1), UNITS("request", params[0]),
        UNITS("head", params[1]), UNITS("tile", reserved), UNITS("start", params[2]),
        UNITS("length", params[3]), UNITS("slot", work_id), UNITS("flags", flags),
        UNITS("tier", tier), MERGES("merge.first", params[2]), MERGES("merge.slots", params[3]),
        MERGES("merge.work_id", work_id), MERGES("merge.flags", flags), FIELDS(rows, units),
        FIELDS(merge_rows, merges), FIELDS(merge_first, merges), FIELDS(lane_units, 2 * lanes),
        FIELDS(lane_merges, 2 * lanes), FIELD(attend_rows), FIELD(pairs), FIELD(is_invariant),
        FIELD(ratio));
}

TEST(attention_facts__hold) {
    facts all = {"tests/plan/attention.facts", begin, fields, calls, error, NULL, 0};
    facts_run(&all);
    free(block);
}
