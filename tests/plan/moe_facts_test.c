// MoE plans as facts (support/facts.h): sorting, units, placement, sharing, looking, histories and generated routes, by
// numbers from paper, and what is refused, with its text. What is refused writes nothing.

#include "facts.h"

enum { IDS = 16, EXPERTS = 20, UNITS = 160, LANES = 41, REPLICAS = 32, GUARD = 4096 };

// What the calls are given: pointers that a case may take away.
static struct {
    const ptowsp_moe_routes *routes;
    ptowsp_moe_order *order;
    const ptowsp_moe_batch *batch;
    const ptowsp_moe_config *config;
    const ptowsp_moe_limits *limits;
    ptowsp_moe_sizes *sizes;
    ptowsp_moe_plan *plan;
    const ptowsp_moe_cluster *cluster;
    const ptowsp_moe_placement *placement;
    const float *loads;
    int32_t *experts;  // of a move
    void *scratch;
    uint32_t *next;
    int32_t *out_ids;
    const uint32_t *counts;
    ptowsp_moe_balance *balance;
    const ptowsp_moe_traffic *traffic;
    float *history;
    double *frontier;
    ptowsp_moe_moved *moved;
} given;

static int32_t ids[IDS], out_ids[IDS];
static ptowsp_moe_routes routes;
static uint32_t order_counts[EXPERTS], order_offsets[EXPERTS + 1], pairs[IDS + 16], rows[IDS];
static int32_t block_experts[IDS + 16];
static ptowsp_moe_order order;
static uint32_t counts[EXPERTS], offsets[EXPERTS + 1], huge[2] = {UINT32_MAX, UINT32_MAX};
static uint32_t ones[PTOWSP_MOE_EXPERT_MAX];
static bool with_offsets, with_huge_counts, with_ones;
static ptowsp_moe_batch batch;
static ptowsp_moe_config config;
static ptowsp_moe_limits limits;
static ptowsp_moe_sizes sizes;
static ptowsp_work units[UNITS];
static uint32_t unit_begin[LANES];
static double lane_costs[LANES];
static ptowsp_moe_plan plan;
static unsigned char *block;
static size_t block_bytes;
static ptowsp_moe_cluster cluster;
static float loads[2 * EXPERTS], history[2];
static uint32_t layers, most, history_count;
static int32_t experts[REPLICAS], expert_counts[2 * EXPERTS], lists[2 * REPLICAS];
static ptowsp_moe_placement placement;
static ptowsp_moe_moved moved;
static double frontier[8], decay;
static uint64_t scratch[8192], scratch_bytes;
static uint32_t next[EXPERTS], expert_count, rank_count, block_rows;
static ptowsp_moe_balance balance;
static ptowsp_moe_traffic traffic;
static ptowsp_plan_info info;

static void begin(void) {
    free(block);
    block = NULL;
    routes = (ptowsp_moe_routes){ids, 4, 2, 4, 0};
    order =
        (ptowsp_moe_order){order_counts, order_offsets, pairs, rows, block_experts, 32, 0, 0, 0, 0};
    config = (ptowsp_moe_config){.expert_count = 2, .lane_count = 2};
    limits = (ptowsp_moe_limits){0};
    plan = (ptowsp_moe_plan){
        .units = units, .unit_begin = unit_begin, .lane_costs = lane_costs, .unit_capacity = UNITS};
    cluster = (ptowsp_moe_cluster){4, 8, 1, 1, 2, PTOWSP_MOE_EPLB, false};
    placement = (ptowsp_moe_placement){experts, expert_counts, lists, 4};
    traffic = (ptowsp_moe_traffic){.pattern = PTOWSP_MOE_SKEWED,
                                   .token_count = 8192,
                                   .top_k = 4,
                                   .expert_count = 64,
                                   .rank_count = 8,
                                   .seed = 1};
    memset(ids, 0, sizeof ids);
    memset(counts, 0, sizeof counts);
    with_offsets = with_huge_counts = with_ones = false;
    layers = 1, most = 1, history_count = 2, scratch_bytes = sizeof scratch;
    for (int i = 0; i < 2 * EXPERTS; i++) {
        loads[i] = 1;
    }
    for (int i = 0; i < IDS; i++) {
        out_ids[i] = 7;
    }
    given = (__typeof__(given)){&routes,  &order,     &batch,   &config, &limits,  &sizes, &plan,
                                &cluster, &placement, loads,    experts, scratch,  next,   out_ids,
                                counts,   &balance,   &traffic, history, frontier, &moved};
}

// -- calls ----------------------------------------------------------------------------------------

// On lanes and serially, which say the same.
static ptowsp_status call_sort(void) {
    ptowsp_context *context = test_lanes(2);
    char text[2][200];
    uint32_t some[64], before[EXPERTS];
    memset(order_counts, 0x5a, sizeof order_counts);
    memset(&info, 0x55, sizeof info);
    memcpy(before, order_counts, sizeof before);
    const ptowsp_status status = ptowsp_moe_sort_parallel(context, given.routes, given.order,
                                                          given.scratch ? some : NULL, 64, &info);
    const uint64_t index = info.index;
    ptowsp_plan_explain(&info, TEST_TEXT(text[0]));
    if (given.scratch) {
        assert_true(status == PTOWSP_OK || memcmp(order_counts, before, sizeof before) == 0);
        memset(&info, 0x55, sizeof info);
        assert_int_equal(ptowsp_moe_sort(given.routes, given.order, &info), status);
    }
    if (status != PTOWSP_OK) {
        ptowsp_plan_explain(&info, TEST_TEXT(text[1]));
        assert_int_equal(info.index, index);
        assert_string_equal(text[1], text[0]);
        test_error_is(context, status, index, text[0]);
        assert_memory_equal(order_counts, before, sizeof before);
    }
    ptowsp_context_destroy(context);
    return status;
}

static const ptowsp_moe_batch *the_batch(void) {
    batch = (ptowsp_moe_batch){with_ones          ? ones
                               : with_huge_counts ? huge
                                                  : given.counts,
                               with_offsets ? offsets : NULL};
    return given.batch;
}

static ptowsp_status call_bound(void) {
    memset(&sizes, 1, sizeof sizes);
    const ptowsp_status status = ptowsp_moe_bound(given.config, given.limits, given.sizes, &info);
    assert_true(status == PTOWSP_OK || !given.sizes ||
                sizes.unit_count + sizes.lane_count + sizes.block_bytes == 0);
    return status;
}

static ptowsp_status call_size(void) {
    return ptowsp_moe_size(the_batch(), given.config, given.sizes, &info);
}

// Places a plan with more units than are needed.
static ptowsp_status call_place(void) {
    const ptowsp_moe_sizes roomy = {120, config.lane_count, 0};
    block_bytes =
        120 * sizeof(ptowsp_work) + config.lane_count * 8 + 2 * (config.lane_count + 1) * 4;
    block = (unsigned char *)malloc(block_bytes + GUARD);
    memset(block, 0xa5, block_bytes + GUARD);
    const ptowsp_status status = ptowsp_moe_place(&roomy, block, block_bytes, &plan);
    assert_true(plan.lane_capacity == config.lane_count && plan.lane_count == config.lane_count);
    assert_int_equal(ptowsp_moe_plan_units(&plan).lane_capacity, config.lane_count);
    return status;
}

static ptowsp_status call_units(void) {
    unsigned char was[8192 + GUARD];
    const ptowsp_moe_plan plan_was = plan;
    const void *written = block ? (const void *)block : units;
    const size_t size = block ? block_bytes + GUARD : sizeof units,
                 inside = block ? block_bytes : size;
    memcpy(was, written, size);
    const ptowsp_status status = ptowsp_moe_generate(the_batch(), given.config, given.plan, &info);
    if (status != PTOWSP_OK) {
        assert_memory_equal(was, written, size);
        assert_memory_equal(&plan, &plan_was, sizeof plan);
    } else {
        const ptowsp_attention_plan as_units = ptowsp_moe_plan_units(&plan);
        assert_true(as_units.units == plan.units && as_units.unit_begin == plan.unit_begin);
        assert_true(as_units.unit_count == plan.unit_count && !as_units.merges);
        assert_int_equal(as_units.lane_count, plan.lane_count);
    }
    assert_memory_equal(was + inside, (const unsigned char *)written + inside, size - inside);
    return status;
}

static ptowsp_status call_check(void) {
    return ptowsp_moe_check(the_batch(), given.config, given.plan, &info);
}

static ptowsp_status call_rebalance(void) {
    int32_t before[REPLICAS];
    memcpy(before, experts, sizeof before);
    const ptowsp_status status = ptowsp_moe_rebalance(
        given.cluster, given.loads, layers, given.scratch, scratch_bytes, given.placement, &info);
    assert_true(status == PTOWSP_OK || status == PTOWSP_BUFFER_OVERFLOW ||
                memcmp(before, experts, sizeof before) == 0);
    return status;
}

static ptowsp_status call_move(void) {
    int32_t before[REPLICAS];
    memcpy(before, experts, sizeof before);
    const ptowsp_status status =
        ptowsp_moe_move(given.cluster, given.loads, most, given.scratch, scratch_bytes,
                        given.experts, given.frontier, given.moved, &info);
    assert_true(status == PTOWSP_OK || memcmp(before, experts, sizeof before) == 0);
    return status;
}

static ptowsp_status call_index(void) {
    return ptowsp_moe_index(given.cluster, given.placement, &info);
}

static ptowsp_status call_share(void) {
    const ptowsp_status status =
        ptowsp_moe_share(given.routes, given.placement, given.next, given.out_ids, &info);
    for (int i = 0; i < IDS && status != PTOWSP_OK; i++) {
        assert_int_equal(out_ids[i], 7);
    }
    return status;
}

static ptowsp_status call_look(void) {
    return ptowsp_moe_look(given.counts, expert_count, rank_count, block_rows, given.balance,
                           &info);
}

static ptowsp_status call_history(void) {
    return ptowsp_moe_history_add(given.history, history_count, given.counts, decay, &info);
}

static ptowsp_status call_routes(void) {
    static int32_t many[8192 * 4];
    many[0] = 77;
    const ptowsp_status status = ptowsp_moe_routes_generate(
        given.traffic, (uint64_t *)given.scratch, given.out_ids ? many : NULL, &info);
    assert_true(status == PTOWSP_OK || many[0] == 77);
    memcpy(out_ids, many, sizeof out_ids);
    return status;
}

static ptowsp_status call_print(void) {
    ptowsp_moe_print(&plan, facts_output());
    return PTOWSP_OK;
}

// The plan of the header.
static ptowsp_status call_small(void) {
    const ptowsp_moe_config of = {.expert_count = 3, .lane_count = 2, .cost.per_token = 1};
    config = of;
    memcpy(counts, (const uint32_t[]){2, 1, 4}, 12);
    memcpy(offsets, (const uint32_t[]){0, 2, 3, 7}, 16);
    with_offsets = true;
    plan.unit_capacity = 6;
    return call_units();
}

// Replica 0 of expert 0, and 1 and 2 of expert 1.
static ptowsp_status call_two_experts(void) {
    routes = (ptowsp_moe_routes){ids, 2, 2, 2, 0};
    memcpy(ids, (const int32_t[]){0, 1, 1, 0}, 16);
    memcpy(expert_counts, (const int32_t[]){1, 2}, 8);
    memcpy(lists, (const int32_t[]){0, -1, 1, 2}, 16);
    placement.stride = 2;
    return PTOWSP_OK;
}

static const facts_call calls[] = {{"small", call_small},
                                   {"two_experts", call_two_experts},
                                   {"sort", call_sort},
                                   {"bound", call_bound},
                                   {"size", call_size},
                                   {"place", call_place},
                                   {"generate", call_units},
                                   {"check", call_check},
                                   {"rebalance", call_rebalance},
                                   {"move", call_move},
                                   {"index", call_index},
                                   {"share", call_share},
                                   {"look", call_look},
                                   {"add_history", call_history},
                                   {"routes", call_routes},
                                   {"print", call_print},
                                   {NULL, NULL}};

static const char *error(uint64_t *out_index) {
    return facts_plan_error(&info, out_index);
}

static const facts_field *fields(void) {
    static uint32_t row_bound, pair_sum;
    static uint64_t needed;
    const uint32_t all = routes.expert_count <= EXPERTS ? routes.expert_count : 0,
                   taken = routes.token_count <= 8 ? routes.token_count * routes.top_k : 0;
    row_bound = (uint32_t)ptowsp_moe_row_bound(&routes);
    pair_sum = (uint32_t)(out_ids[0] + out_ids[1]);
    needed = ptowsp_moe_scratch_bytes(given.cluster);
#define UNIT(name, member)                                                                         \
    FACTS_OF(name, (plan.units ? plan.units : units)->member, sizeof *units, plan.unit_count)
    FACTS_RETURN(
        NAMED("printed", facts_printed), FIELD(given.routes), FIELD(given.order),
        FIELD(given.batch), FIELD(given.config), FIELD(given.limits), FIELD(given.sizes),
        FIELD(given.plan), FIELD(given.cluster), FIELD(given.placement), FIELD(given.loads),
        FIELD(given.experts), FIELD(given.scratch), FIELD(given.next), FIELD(given.out_ids),
        FIELD(given.counts), FIELD(given.balance), FIELD(given.traffic), FIELD(given.history),
        FIELD(given.frontier), FIELD(given.moved), FIELDS(ids, IDS), FIELDS(out_ids, IDS),
        FIELD(routes.ids), FIELD(routes.token_count), FIELD(routes.top_k),
        FIELD(routes.expert_count), FIELD(routes.block_rows), FIELD(row_bound), FIELD(pair_sum),
        FIELD(order.counts), FIELD(order.offsets), FIELD(order.pairs), FIELD(order.row_capacity),
        FIELD(order.pair_count), FIELD(order.row_count), FIELD(order.block_count),
        FIELD(order.padding_share), FIELDS(order_counts, all), FIELDS(order_offsets, all + 1),
        FIELDS(pairs, order.row_count), FIELDS(rows, taken), FIELDS(block_experts, IDS),
        FIELDS(counts, EXPERTS), FIELDS(offsets, EXPERTS + 1), FIELD(with_offsets),
        FIELD(with_huge_counts), FIELD(with_ones), FIELD(config.batch_count),
        FIELD(config.expert_count), FIELD(config.lane_count), FIELD(config.block_rows),
        FIELD(config.unit_tokens), FIELD(config.column_parts), FIELD(config.cost.per_unit),
        FIELD(config.cost.per_token), FIELD(config.cost.per_expert), FIELD(limits.pair_count_max),
        FIELD(sizes.unit_count), FIELD(plan.units), FIELD(plan.unit_begin), FIELD(plan.lane_costs),
        FIELD(plan.unit_capacity), FIELD(plan.lane_capacity), FIELD(plan.unit_count),
        FIELD(plan.lane_count), FIELD(plan.column_parts), FIELD(plan.cost_max),
        FIELD(plan.cost_mean), FIELDS(unit_begin, plan.lane_count + 1),
        FIELDS(lane_costs, plan.lane_count), UNIT("id", work_id), UNIT("flags", flags),
        UNIT("request", params[0]), UNIT("expert", params[1]), UNIT("start", params[2]),
        UNIT("tokens", params[3]), UNIT("part", reserved), MEMBER(units, params[3], UNITS),
        MEMBER(units, flags, UNITS), FIELD(cluster.expert_count), FIELD(cluster.replica_count),
        FIELD(cluster.group_count), FIELD(cluster.node_count), FIELD(cluster.rank_count),
        FIELD(cluster.policy), FIELD(cluster.is_spread), FIELDS(loads, 2 * EXPERTS), FIELD(layers),
        FIELD(most), FIELDS(experts, REPLICAS), FIELDS(expert_counts, 2 * EXPERTS),
        FIELDS(lists, 2 * REPLICAS), FIELD(placement.replica_experts),
        FIELD(placement.expert_counts), FIELD(placement.expert_replicas), FIELD(placement.stride),
        FIELD(moved.move_count), FIELD(moved.load_before), FIELD(moved.load_after),
        FIELD(moved.load_mean), FIELDS(frontier, 8), FIELD(scratch_bytes), FIELD(needed),
        FIELD(expert_count), FIELD(rank_count), FIELD(block_rows), FIELD(balance.total),
        FIELD(balance.expert_max), FIELD(balance.expert_busiest), FIELD(balance.expert_idle),
        FIELD(balance.rank_max), FIELD(balance.rank_busiest), FIELD(balance.rank_idle),
        FIELD(balance.rank_perfect), FIELD(balance.expert_ratio), FIELD(balance.rank_ratio),
        FIELD(balance.padding_share), FIELDS(history, 2), FIELD(history_count), FIELD(decay),
        FIELD(traffic.pattern), FIELD(traffic.token_count), FIELD(traffic.top_k),
        FIELD(traffic.expert_count), FIELD(traffic.rank_count), FIELD(traffic.skew),
        FIELD(info.work_count));
}

TEST(moe_facts__hold) {
    facts all = {"tests/plan/moe.facts", begin, fields, calls, error, NULL, 0};
    for (uint32_t e = 0; e < PTOWSP_MOE_EXPERT_MAX; e++) {
        ones[e] = 1;
    }
    facts_run(&all);
    free(block);
}
