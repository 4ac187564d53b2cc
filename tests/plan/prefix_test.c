// Prefix trees and plans: small ones, worked out on paper.

#include "test.h"

typedef struct small {
    ptowsp_prefix_limits limits;
    void *block, *plan_block;
    ptowsp_prefix_tree tree;
    ptowsp_prefix_plan plan;
} small;

static void small_make(small *s, uint32_t requests, uint64_t blocks) {
    const small made = {.limits = {requests, blocks}};
    *s = made;
    const uint64_t bytes = ptowsp_prefix_tree_bytes(&s->limits);
    s->block = malloc((size_t)bytes);
    assert_ok(ptowsp_prefix_tree_place(&s->limits, s->block, bytes, &s->tree));
}

static void small_plan(small *s, const ptowsp_attention_batch *batch,
                       const ptowsp_attention_config *config) {
    ptowsp_prefix_sizes sizes;
    ptowsp_plan_info info;
    assert_ok(ptowsp_prefix_size(batch, config, &s->tree, &sizes, &info));
    free(s->plan_block);
    s->plan_block = malloc((size_t)sizes.block_bytes);
    assert_ok(ptowsp_prefix_place(&sizes, s->plan_block, sizes.block_bytes, &s->plan));
    assert_ok(ptowsp_prefix_generate(batch, config, &s->tree, &s->plan, &info));
    assert_ok(ptowsp_prefix_check(batch, config, &s->tree, &s->plan, &info));
}

static void small_free(small *s) {
    free(s->block);
    free(s->plan_block);
}

// With the tree of a batch.
static small small_of(const ptowsp_prefix_batch *batch, uint64_t blocks) {
    small s;
    small_make(&s, batch->attention.sequence_count, blocks);
    assert_ok(ptowsp_prefix_build(batch, &s.tree, NULL));
    return s;
}

// The example of the header.
static const uint64_t drawn_ids[] = {7, 3, 1, 9, 5, 7, 3, 8, 2, 4, 3, 7, 3, 8, 6};
static const uint64_t drawn_begin[6] = {0, 3, 5, 9, 11, 15};
static const int32_t drawn_kv[5] = {300, 200, 400, 200, 400};
static const ptowsp_prefix_batch drawn = {{drawn_kv, NULL, 5}, drawn_ids, drawn_begin, 100};

TEST(prefix__tree_is_the_one_of_the_header) {
    small s = small_of(&drawn, 4);
    const uint32_t order[5] = {3, 0, 2, 4, 1}, common[5] = {0, 0, 200, 300, 0};
    const uint32_t owners[5] = {PTOWSP_NO_NODE, 1, 0, 0, PTOWSP_NO_NODE};
    assert_memory_equal(s.tree.order, order, sizeof order);
    assert_memory_equal(s.tree.common, common, sizeof common);
    assert_memory_equal(s.tree.owners, owners, sizeof owners);
    assert_int_equal(s.tree.node_count, 2);
    const ptowsp_prefix_node nodes[2] = {{1, 2, 2, 200, 300, 0}, {PTOWSP_NO_NODE, 1, 3, 0, 200, 0}};
    assert_memory_equal(s.tree.nodes, nodes, sizeof nodes);
    small_free(&s);
}

// With u per unit, m per merged row and 1 per KV token, of 1500, it saves to share
//
//      [7 3]             400 - 6 m - u     u 90, m 10: 250    u 0, m 80: -80    u 0, m 10: 340
//      [8], so [7 3 8]   300 - 4 m - u                 170               -20               260
//      both              500 - 8 m - 2 u               240              -140               420
TEST(prefix__plan_is_the_one_of_the_header) {
    small s = small_of(&drawn, 4);
    ptowsp_attention_config config = {.kv_head_count = 1,
                                      .lane_count = 1,
                                      .cost.per_unit = 90,
                                      .cost.per_token = 1,
                                      .cost.per_merged_row = 10};
    small_plan(&s, &drawn.attention, &config);
    assert_int_equal(s.tree.nodes[0].is_shared, 0);
    assert_int_equal(s.tree.nodes[1].is_shared, 1);
    assert_int_equal(s.plan.shared_count, 1);
    assert_int_equal(s.plan.segment_count, 6);
    assert_int_equal(s.plan.join_count, 3);
    assert_int_equal(s.plan.flat_kv_token_reads, 1500);
    assert_int_equal(s.plan.kv_token_reads, 1100);
    assert_true(s.plan.flat_cost >= 1950 && s.plan.flat_cost <= 1950);
    assert_true(s.plan.cost >= 1700 && s.plan.cost <= 1700);
    // Request 3 is alone; then [7 3] for 0, 2 and 4, and their own.
    const uint32_t parents[6] = {PTOWSP_NO_NODE, PTOWSP_NO_NODE, 1, 1, 1, PTOWSP_NO_NODE};
    const uint32_t begins[6] = {0, 0, 200, 200, 200, 0}, ends[6] = {200, 200, 300, 400, 400, 200};
    const uint32_t requests[6] = {3, 0, 0, 2, 4, 1};
    const bool whole[6] = {true, false, false, false, false, true};
    for (uint32_t i = 0; i < 6; i++) {
        const ptowsp_prefix_segment *segment = &s.plan.segments[i];
        assert_int_equal(segment->parent, parents[i]);
        assert_int_equal(segment->kv_begin, begins[i]);
        assert_int_equal(segment->kv_end, ends[i]);
        assert_int_equal(segment->request, requests[i]);
        assert_int_equal(segment->is_whole, whole[i]);
    }
    uint32_t count;
    const uint32_t *tokens = ptowsp_prefix_unit_tokens(&s.plan, &s.plan.attention.units[1], &count);
    assert_int_equal(count, 3);
    const uint32_t shared[3] = {0, 2, 4};
    assert_memory_equal(tokens, shared, sizeof shared);
    assert_int_equal(s.plan.joins[1].params[0], 2);
    assert_int_equal(s.plan.joins[1].params[3], 2);

    char text[2000];
    ptowsp_prefix_print(&s.plan, TEST_TEXT(text));
    const char *head = "prefix plan: 5 requests, 1 shared segments, 3 joins\n"
                       "kv tokens read: 1100, flat 1500, ratio 0.7333\n"
                       "predicted: cost 1700, flat 1950; time 1700, flat 1950\n"
                       "attention plan: 6 tiles of up to 3 rows in 6 units, on 1 lanes\n";
    assert_memory_equal(text, head, strlen(head));

    config.cost.per_unit = 0;
    config.cost.per_merged_row = 80;
    small_plan(&s, &drawn.attention, &config);
    assert_int_equal(s.plan.shared_count, 0);
    assert_int_equal(s.plan.join_count, 0);
    assert_true(s.plan.cost >= 1500 && s.plan.cost <= 1500);
    config.cost.per_merged_row = 10;
    small_plan(&s, &drawn.attention, &config);
    assert_int_equal(s.plan.shared_count, 2);
    assert_true(s.plan.cost >= 1080 && s.plan.cost <= 1080);
    small_free(&s);
}

// Four requests of the same two blocks.
static const uint64_t equal_ids[] = {5, 6, 5, 6, 5, 6, 5, 6}, equal_begin[5] = {0, 2, 4, 6, 8};

TEST(prefix__equal_requests_need_no_slots) {
    static const int32_t kv[4] = {150, 150, 150, 150};
    const ptowsp_prefix_batch batch = {{kv, NULL, 4}, equal_ids, equal_begin, 100};
    small s = small_of(&batch, 2);
    for (uint32_t p = 0; p < 4; p++) {
        assert_int_equal(s.tree.order[p], p);  // ties by number
    }
    ptowsp_attention_config config = {.kv_head_count = 2, .lane_count = 1};
    small_plan(&s, &batch.attention, &config);
    assert_int_equal(s.plan.shared_count, 1);
    assert_int_equal(s.plan.join_count, 0);
    assert_int_equal(s.plan.attention.slot_count, 0);
    assert_int_equal(s.plan.attention.unit_count, 2);
    assert_int_equal(s.plan.kv_token_reads, 300);
    assert_int_equal(s.plan.flat_kv_token_reads, 1200);
    small_free(&s);
}

TEST(prefix__a_longer_time_than_the_flat_plan_s_shares_nothing) {
    // Reading [5 6] once saves half; but pieces of one unit are at least all of it, and the four
    // lanes have nothing else to do.
    static const int32_t kv[4] = {200, 200, 200, 200};
    const ptowsp_prefix_batch batch = {{kv, NULL, 4}, equal_ids, equal_begin, 100};
    small s = small_of(&batch, 2);
    ptowsp_attention_config config = {.kv_head_count = 1,
                                      .lane_count = 4,
                                      .piece_min = 200,
                                      .cost.per_token = 1,
                                      .cost.per_row_token = 0.125};
    small_plan(&s, &batch.attention, &config);
    assert_int_equal(s.plan.shared_count, 0);
    assert_true(s.plan.time >= 225 && s.plan.time <= 226);
    assert_int_equal(s.tree.nodes[0].is_shared, 0);
    config.lane_count = 1;
    small_plan(&s, &batch.attention, &config);
    assert_int_equal(s.plan.shared_count, 1);
    small_free(&s);
}

TEST(prefix__what_is_equal_in_the_middle_alone_is_not_shared) {
    static const uint64_t ids[] = {1, 3, 4, 2, 3, 4}, begin[3] = {0, 3, 6};
    static const int32_t kv[2] = {3000, 3000};
    const ptowsp_prefix_batch batch = {{kv, NULL, 2}, ids, begin, 1000};
    small s = small_of(&batch, 3);
    assert_int_equal(s.tree.node_count, 0);
    small_free(&s);
}

TEST(prefix__requests_without_blocks_share_nothing) {
    static const uint64_t begin[4] = {0, 0, 0, 0};
    static const int32_t kv[3] = {100, 0, 100};
    const ptowsp_prefix_batch batch = {{kv, NULL, 3}, NULL, begin, 16};
    small s = small_of(&batch, 1);
    assert_int_equal(s.tree.node_count, 0);
    ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = 1};
    small_plan(&s, &batch.attention, &config);
    assert_int_equal(s.plan.attention.unit_count, 2);
    small_free(&s);
    // And no requests at all.
    const ptowsp_prefix_batch none = {{NULL, NULL, 0}, NULL, NULL, 16};
    small_make(&s, 0, 0);
    assert_ok(ptowsp_prefix_build(&none, &s.tree, NULL));
    small_plan(&s, &none.attention, &config);
    assert_int_equal(s.plan.attention.unit_count, 0);
    small_free(&s);
}

// Requests 0 to n - 1 of a chain: request i shares i + 1 nodes with those after it.
TEST(prefix__chains_of_a_million_need_no_stack) {
    const uint32_t count = 1000000;
    uint64_t *ids = (uint64_t *)malloc(2 * (size_t)count * sizeof *ids);
    for (uint32_t i = 0; i < count; i++) {  // falling, so that repetitions are looked for
        ids[i] = ids[count + i] = count - i;
    }
    const uint64_t begin[3] = {0, count, 2 * (uint64_t)count};
    const int32_t kv[2] = {1000000, 1000000};
    const ptowsp_prefix_batch batch = {{kv, NULL, 2}, ids, begin, 1};
    small s = small_of(&batch, count);
    assert_int_equal(s.tree.node_count, 1);
    assert_int_equal(s.tree.nodes[0].kv_end, count);
    small_free(&s);
    free(ids);

    // A chain of a million nodes, with a request at each thousandth.
    uint32_t *parents = (uint32_t *)malloc(count * sizeof *parents);
    uint32_t *tokens = (uint32_t *)malloc(count * sizeof *tokens), nodes[1000];
    int32_t lengths[1000];
    for (uint32_t i = 0; i < count; i++) {
        parents[i] = i > 0 ? i - 1 : PTOWSP_NO_NODE;
        tokens[i] = 1;
    }
    for (uint32_t r = 0; r < 1000; r++) {
        nodes[r] = r * 1000 + 999;
        lengths[r] = (int32_t)r * 1000 + 1000;
    }
    ptowsp_prefix_given given = {{lengths, NULL, 1000}, parents, tokens, count, nodes};
    small_make(&s, 1000, count);
    assert_ok(ptowsp_prefix_build_given(&given, &s.tree, NULL));
    assert_int_equal(s.tree.node_count, 999);
    for (uint32_t p = 1; p < 1000; p++) {
        assert_int_equal(s.tree.common[p], p * 1000);
    }
    ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = 1};
    small_plan(&s, &given.attention, &config);
    assert_true(s.plan.kv_token_reads < s.plan.flat_kv_token_reads / 20);
    small_free(&s);
    free(parents);
    free(tokens);
}

// Nodes 0 (100 tokens) - 2 (50), 0 - 1 (0 tokens), and 3 (10) alone.
TEST(prefix__given_trees_are_walked_depth_first) {
    const uint32_t parents[4] = {PTOWSP_NO_NODE, 0, 0, PTOWSP_NO_NODE};
    const uint32_t tokens[4] = {100, 0, 50, 10}, nodes[7] = {2, 3, PTOWSP_NO_NODE, 1, 2, 0, 3};
    const int32_t kv[7] = {200, 20, 30, 110, 150, 100, 10};
    const ptowsp_prefix_given given = {{kv, NULL, 7}, parents, tokens, 4, nodes};
    small s;
    small_make(&s, 7, 4);
    assert_ok(ptowsp_prefix_build_given(&given, &s.tree, NULL));
    const uint32_t order[7] = {5, 3, 0, 4, 1, 6, 2}, common[7] = {0, 100, 100, 150, 0, 10, 0};
    assert_memory_equal(s.tree.order, order, sizeof order);
    assert_memory_equal(s.tree.common, common, sizeof common);
    assert_int_equal(s.tree.node_count, 3);
    s.tree.is_ordered = true;
    assert_ok(ptowsp_prefix_build_given(&given, &s.tree, NULL));
    const uint32_t kept[7] = {0, 1, 2, 3, 4, 5, 6}, shared[7] = {0, 0, 0, 0, 100, 100, 0};
    assert_memory_equal(s.tree.order, kept, sizeof kept);
    assert_memory_equal(s.tree.common, shared, sizeof shared);
    small_free(&s);
}

// A tile is a token here. On paper: the nodes of a chain of 4 requests have 4, 3 and 2 tokens, and
// each request has one of its own. Of 4 pages at most, INVARIANT plans have 16 in any tree.
TEST(prefix__bounds_are_those_of_a_chain) {
    ptowsp_attention_config config = {
        .kv_head_count = 2, .group = 3, .lane_count = 5, .tile_rows = 3, .page_size = 16};
    ptowsp_attention_limits limits = {4, 64, 0, 0, 0};
    ptowsp_prefix_sizes sizes;
    assert_ok(ptowsp_prefix_bound(&config, &limits, &sizes, NULL));
    assert_int_equal(sizes.attention.unit_count, 2 * (9 + 4) + 4);
    assert_int_equal(sizes.attention.slot_rows, 3);
    assert_int_equal(sizes.segment_count, 7);
    assert_int_equal(sizes.request_count, 4);
    assert_int_equal(sizes.token_count, 4);
    assert_int_equal(sizes.join_count, 8);
    config.mode = PTOWSP_ATTENTION_INVARIANT, config.chunk = 16;
    assert_ok(ptowsp_prefix_bound(&config, &limits, &sizes, NULL));
    assert_int_equal(sizes.attention.unit_count, 2 * 16);
    limits.sequence_count_max = 1;  // nobody to share with
    assert_ok(ptowsp_prefix_bound(&config, &limits, &sizes, NULL));
    assert_int_equal(sizes.join_count, 0);
    limits.sequence_count_max = 0;
    assert_ok(ptowsp_prefix_bound(&config, &limits, &sizes, NULL));
    assert_int_equal(sizes.segment_count, 0);
}

TEST(prefix__places_refuse_what_does_not_fit) {
    ptowsp_prefix_limits limits = {3, 4};
    ptowsp_prefix_tree tree;
    uint64_t block[2000];
    const uint64_t bytes = ptowsp_prefix_tree_bytes(&limits);
    assert_true(bytes <= sizeof block);
    assert_int_equal(ptowsp_prefix_tree_bytes(NULL), 0);
    assert_ok(ptowsp_prefix_tree_place(&limits, block, bytes, &tree));
    assert_int_equal(ptowsp_prefix_tree_place(&limits, block, bytes - 1, &tree),
                     PTOWSP_BUFFER_OVERFLOW);
    assert_invalid(ptowsp_prefix_tree_place(&limits, (char *)block + 4, bytes, &tree));
    assert_invalid(ptowsp_prefix_tree_place(NULL, block, bytes, &tree));
    assert_invalid(ptowsp_prefix_tree_place(&limits, NULL, bytes, &tree));
    assert_invalid(ptowsp_prefix_tree_place(&limits, block, bytes, NULL));
    const ptowsp_prefix_limits endless = {UINT32_MAX, UINT64_MAX};
    assert_true(ptowsp_prefix_tree_bytes(&endless) == UINT64_MAX);
    ptowsp_prefix_sizes sizes = {.attention.lane_count = 1};
    sizes.segment_count = sizes.request_count = sizes.token_count = 1;
    ptowsp_prefix_plan plan;
    assert_ok(ptowsp_prefix_place(&sizes, block, sizeof block, &plan));
    assert_int_equal(ptowsp_prefix_place(&sizes, block, 30, &plan), PTOWSP_BUFFER_OVERFLOW);
    assert_invalid(ptowsp_prefix_place(&sizes, NULL, 30, &plan));
    assert_invalid(ptowsp_prefix_place(NULL, block, 30, &plan));
    assert_invalid(ptowsp_prefix_place(&sizes, block, 30, NULL));
    sizes.join_count = UINT32_MAX;
    assert_int_equal(ptowsp_prefix_place(&sizes, block, sizeof block, &plan),
                     PTOWSP_BUFFER_OVERFLOW);
    sizes.join_count = UINT32_MAX + UINT64_C(1);
    assert_int_equal(ptowsp_prefix_place(&sizes, block, sizeof block, &plan),
                     PTOWSP_LIMIT_EXCEEDED);
}
