// Prefix trees and plans as facts (support/facts.h): small ones on paper, bounds, what is refused, with its text, and what
// the check finds. What is refused leaves the plan and its block as they are.

#include "facts.h"

enum { REQUESTS = 7, NODES = 4, BLOCK = 24000, GUARD = 4096 };

// What the calls are given: pointers that a case may take away.
static struct {
    const ptowsp_prefix_batch *batch;
    const ptowsp_attention_batch *attention;
    const ptowsp_prefix_given *nodes;
    const ptowsp_attention_config *config;
    ptowsp_prefix_tree *tree;
    ptowsp_prefix_plan *plan;
    ptowsp_prefix_sizes *sizes;
    const ptowsp_attention_limits *limits;
} given;

static int32_t kv[REQUESTS], queries[REQUESTS];
static uint64_t ids[16], ends[REQUESTS + 1];
static bool with_queries, with_positions, with_query_first, with_tiers;
static ptowsp_prefix_batch batch;
static uint32_t parents[NODES], node_tokens[NODES], request_nodes[REQUESTS], request;
static ptowsp_prefix_given nodes;
static ptowsp_prefix_limits tree_limits;
static ptowsp_prefix_tree tree;
static ptowsp_tier tiers[1];
static ptowsp_attention_positions positions;
static ptowsp_attention_config config;
static ptowsp_attention_limits limits;
static ptowsp_prefix_sizes sizes;
static ptowsp_prefix_plan plan;
static _Alignas(8) unsigned char tree_block[BLOCK], block[BLOCK + GUARD];
static size_t block_bytes;
static ptowsp_plan_info info;

static const ptowsp_attention_batch *the_batch(void) {
    batch.attention.query_lengths = nodes.attention.query_lengths = with_queries ? queries : NULL;
    return given.attention;
}

static const ptowsp_attention_config *the_config(void) {
    positions.query_first = with_query_first ? queries : NULL;
    config.positions = with_positions ? &positions : NULL;
    config.tiers = with_tiers ? tiers : NULL;
    config.tier_count = with_tiers;
    return given.config;
}

// -- calls ----------------------------------------------------------------------------------------

static ptowsp_status call_tree(void) {
    assert_true(ptowsp_prefix_tree_bytes(&tree_limits) <= sizeof tree_block);
    return ptowsp_prefix_tree_place(&tree_limits, tree_block, sizeof tree_block, &tree);
}

// A tree that is not built is empty; one that is not changed stays as it is.
static ptowsp_status built(ptowsp_status status) {
    const bool has_failed = status != PTOWSP_OK && given.tree && tree.nodes;
    assert_true(!has_failed || tree.request_count + tree.node_count == 0);
    return status;
}

static ptowsp_status call_build(void) {
    the_batch();
    return built(ptowsp_prefix_build(given.batch, given.tree, &info));
}

static ptowsp_status call_build_given(void) {
    the_batch();
    return built(ptowsp_prefix_build_given(given.nodes, given.tree, &info));
}

static ptowsp_status call_add(void) {
    const uint32_t count = tree.request_count;
    the_batch();
    const ptowsp_status status = ptowsp_prefix_add(given.batch, request, given.tree, &info);
    assert_int_equal(tree.request_count, count + (status == PTOWSP_OK));
    return status;
}

static ptowsp_status call_remove(void) {
    const uint32_t count = tree.request_count;
    const ptowsp_status status = ptowsp_prefix_remove(request, given.tree, &info);
    assert_int_equal(tree.request_count, count - (status == PTOWSP_OK));
    return status;
}

static ptowsp_status call_size(void) {
    const ptowsp_status status =
        ptowsp_prefix_size(the_batch(), the_config(), given.tree, given.sizes, &info);
    assert_true(status == PTOWSP_OK || !given.sizes || sizes.block_bytes == 0);
    return status;
}

static ptowsp_status call_bound(void) {
    memset(&sizes, 1, sizeof sizes);
    const ptowsp_status status =
        ptowsp_prefix_bound(the_config(), given.limits, given.sizes, &info);
    assert_true(status == PTOWSP_OK || !given.sizes ||
                sizes.attention.unit_count + sizes.segment_count + sizes.block_bytes == 0);
    return status;
}

// Places a plan that has room for `more` of everything but lanes.
static void place(uint32_t more) {
    assert_ok(call_size());
    sizes.join_count += more, sizes.attention.unit_count += more;
    sizes.attention.merge_count += more, sizes.attention.slot_count += more;
    block_bytes = (size_t)sizes.block_bytes + 3 * more * sizeof(ptowsp_work);
    assert_true(block_bytes <= BLOCK);
    memset(block, 0xa5, sizeof block);
    assert_ok(ptowsp_prefix_place(&sizes, block, block_bytes, &plan));
    assert_int_equal(plan.attention.lane_capacity, config.lane_count);
}

static ptowsp_status call_roomy(void) {
    place(200);
    return PTOWSP_OK;
}

static ptowsp_status call_generate(void) {
    static unsigned char was[sizeof block];
    const ptowsp_prefix_plan plan_was = plan;
    memcpy(was, block, sizeof was);
    const ptowsp_status status =
        ptowsp_prefix_generate(the_batch(), the_config(), given.tree, given.plan, &info);
    if (status != PTOWSP_OK) {
        assert_memory_equal(block, was, sizeof was);
        assert_memory_equal(&plan, &plan_was, sizeof plan);
    }
    assert_memory_equal(block + block_bytes, was + block_bytes, GUARD);
    return status;
}

static ptowsp_status call_check(void) {
    return ptowsp_prefix_check(the_batch(), the_config(), given.tree, given.plan, &info);
}

// Into arrays that fit exactly.
static ptowsp_status call_plan(void) {
    place(0);
    const ptowsp_status status = call_generate();
    return status != PTOWSP_OK ? status : call_check();
}

static ptowsp_status call_print(void) {
    ptowsp_prefix_print(&plan, facts_output());
    return PTOWSP_OK;
}

static const facts_call calls[] = {
    {"tree", call_tree},   {"build", call_build},   {"build_given", call_build_given},
    {"add", call_add},     {"remove", call_remove}, {"size", call_size},
    {"bound", call_bound}, {"roomy", call_roomy},   {"generate", call_generate},
    {"check", call_check}, {"plan", call_plan},     {"print", call_print},
    {NULL, NULL}};

// Four requests of two blocks, of which the first is the same in three, in a plan with room for an INVALID join.
static void begin(void) {
    const int32_t lengths[] = {200, 200, 200, 200};
    const uint64_t first_ids[] = {1, 2, 1, 3, 1, 4, 5, 6}, first_ends[] = {0, 2, 4, 6, 8};
    memset(kv, 0, sizeof kv);
    memcpy(kv, lengths, sizeof lengths);
    memcpy(ids, first_ids, sizeof first_ids);
    memcpy(ends, first_ends, sizeof first_ends);
    for (int i = 0; i < REQUESTS; i++) {
        queries[i] = 1;
    }
    with_queries = with_positions = with_query_first = with_tiers = false;
    batch = (ptowsp_prefix_batch){{kv, NULL, 4}, ids, ends, 100};
    memcpy(parents, (const uint32_t[]){PTOWSP_NO_NODE, 0, 1}, 12);
    memcpy(node_tokens, (const uint32_t[]){100, 50, 50}, 12);
    memcpy(request_nodes, (const uint32_t[]){0, 1, 2, 2}, 16);
    nodes = (ptowsp_prefix_given){{kv, NULL, 4}, parents, node_tokens, 3, request_nodes};
    tree_limits = (ptowsp_prefix_limits){4, 3};
    tiers[0] = (ptowsp_tier){0, 0, 200};
    positions = (ptowsp_attention_positions){.sequence_count = 4};
    config = (ptowsp_attention_config){.kv_head_count = 2, .lane_count = 2, .cost.per_token = 1};
    limits = (ptowsp_attention_limits){4, 100, 0, 0, 0};
    given = (__typeof__(given)){&batch, &batch.attention, &nodes, &config, &tree,
                                &plan,  &sizes,           &limits};
    assert_ok(call_tree());
    assert_ok(call_build());
    place(1);
    assert_ok(call_generate());
}

static const char *error(uint64_t *out_index) {
    const char *text = facts_plan_error(&info, out_index);
    *out_index = PTOWSP_NO_INDEX;  // the texts have them
    return text;
}

static const facts_field *fields(void) {
    static uint32_t unit_1[8], unit_1_count;
    const uint32_t units = plan.attention.unit_count, room = plan.attention.unit_capacity;
    if (units > 1 && room > 1) {
        const uint32_t *list =
            ptowsp_prefix_unit_tokens(&plan, &plan.attention.units[1], &unit_1_count);
        memcpy(unit_1, list, (unit_1_count < 8 ? unit_1_count : 8) * sizeof *unit_1);
    }
#define SEGMENT(member) MEMBER(plan.segments, member, plan.segment_count)
#define REQUEST(member) MEMBER(plan.requests, member, plan.request_count)
#define JOIN(member)    MEMBER(plan.joins, member, plan.join_capacity)
#define NODE(member)    MEMBER(tree.nodes, member, tree.node_count)
    FACTS_RETURN(
        NAMED("printed", facts_printed), FIELD(given.batch), FIELD(given.attention),
        FIELD(given.nodes), FIELD(given.config), FIELD(given.tree), FIELD(given.plan),
        FIELD(given.sizes), FIELD(given.limits), FIELDS(kv, REQUESTS), FIELDS(queries, REQUESTS),
        FIELDS(ids, 16), FIELDS(ends, REQUESTS + 1), FIELD(with_queries), FIELD(with_positions),
        FIELD(with_query_first), FIELD(with_tiers), FIELD(batch.attention.kv_lengths),
        FIELD(batch.attention.sequence_count), FIELD(batch.block_ids), FIELD(batch.block_begin),
        FIELD(batch.block_tokens), FIELDS(parents, NODES), FIELDS(node_tokens, NODES),
        FIELDS(request_nodes, REQUESTS), FIELD(request), FIELD(nodes.attention.kv_lengths),
        FIELD(nodes.attention.sequence_count), FIELD(nodes.parents), FIELD(nodes.node_tokens),
        FIELD(nodes.node_count), FIELD(nodes.request_nodes), FIELD(tree_limits.request_count_max),
        FIELD(tree_limits.block_count_max), FIELD(tree.nodes), FIELD(tree.request_count),
        FIELD(tree.node_count), FIELD(tree.is_ordered), FIELD(tree.request_capacity),
        FIELD(tree.block_capacity), FACTS_OF("order", tree.order[0], 4, tree.request_count),
        FACTS_OF("common", tree.common[0], 4, tree.request_count),
        FACTS_OF("owners", tree.owners[0], 4, tree.request_count), NODE(parent), NODE(first),
        NODE(count), NODE(kv_begin), NODE(kv_end), NODE(is_shared), FIELD(config.kv_head_count),
        FIELD(config.group), FIELD(config.lane_count), FIELD(config.mode), FIELD(config.is_causal),
        FIELD(config.window), FIELD(config.page_size), FIELD(config.tile_rows),
        FIELD(config.piece_min), FIELD(config.chunk), FIELD(config.shares_merges),
        FIELD(config.cost.per_unit), FIELD(config.cost.per_token), FIELD(config.cost.per_row_token),
        FIELD(config.cost.per_merged_row), FIELD(limits.sequence_count_max),
        FIELD(limits.kv_length_max), FIELD(sizes.attention.unit_count),
        FIELD(sizes.attention.slot_rows), FIELD(sizes.segment_count), FIELD(sizes.request_count),
        FIELD(sizes.token_count), FIELD(sizes.join_count), FIELD(sizes.block_bytes),
        FIELD(plan.segments), FIELD(plan.requests), FIELD(plan.tokens), FIELD(plan.joins),
        FIELD(plan.attention.units), FIELD(plan.segment_capacity), FIELD(plan.request_capacity),
        FIELD(plan.token_capacity), FIELD(plan.join_capacity), FIELD(plan.attention.merge_capacity),
        FIELD(plan.attention.group), FIELD(plan.attention.slot_count),
        FIELD(plan.attention.unit_count), FIELD(plan.segment_count), FIELD(plan.request_count),
        FIELD(plan.token_count), FIELD(plan.join_count), FIELD(plan.shared_count),
        FIELD(plan.kv_token_reads), FIELD(plan.flat_kv_token_reads), FIELD(plan.cost),
        FIELD(plan.flat_cost), FIELD(plan.time), SEGMENT(parent), SEGMENT(request), SEGMENT(count),
        SEGMENT(token_begin), SEGMENT(kv_begin), SEGMENT(kv_end), SEGMENT(merge_begin),
        SEGMENT(depth), SEGMENT(is_whole), REQUEST(request), REQUEST(segment), REQUEST(join),
        FACTS_OF("tokens", plan.tokens[0], 4, plan.token_count), JOIN(work_id), JOIN(tier),
        JOIN(flags), JOIN(reserved), JOIN(params[0]), JOIN(params[1]), JOIN(params[2]),
        JOIN(params[3]), MEMBER(plan.attention.units, params[2], room),
        MEMBER(plan.attention.merges, params[3], plan.attention.merge_capacity),
        FIELDS(unit_1, unit_1_count));
}

TEST(prefix_facts__hold) {
    facts all = {"tests/plan/prefix.facts", begin, fields, calls, error, NULL, 0};
    facts_run(&all);
}
