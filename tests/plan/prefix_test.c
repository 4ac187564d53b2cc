// Prefix trees and plans: chains of a million, and blocks that are too small. Small ones on paper, as text as well, and
// what is refused, are in prefix_facts_test.c.

#include "test.h"

// Places a tree.
static void tree_make(uint32_t requests, uint64_t blocks, ptowsp_prefix_tree *tree) {
    const ptowsp_prefix_limits limits = {requests, blocks};
    const uint64_t bytes = ptowsp_prefix_tree_bytes(&limits);
    assert_ok(ptowsp_prefix_tree_place(&limits, test_alloc(bytes, 1), bytes, tree));
}

// Requests 0 to n - 1 of a chain: request i shares i + 1 nodes with those after it.
TEST(prefix__chains_of_a_million_need_no_stack) {
    const uint32_t count = 1000000;
    uint64_t *ids = (uint64_t *)test_alloc(2 * (size_t)count, sizeof *ids);
    for (uint32_t i = 0; i < count; i++) {  // falling, so that repetitions are looked for
        ids[i] = ids[count + i] = count - i;
    }
    const uint64_t begin[3] = {0, count, 2 * (uint64_t)count};
    const int32_t kv[2] = {1000000, 1000000};
    const ptowsp_prefix_batch batch = {{kv, NULL, 2}, ids, begin, 1};
    ptowsp_prefix_tree tree;
    tree_make(2, count, &tree);
    assert_ok(ptowsp_prefix_build(&batch, &tree, NULL));
    assert_int_equal(tree.node_count, 1);
    assert_int_equal(tree.nodes[0].kv_end, count);
    test_release();

    // A chain of a million nodes, with a request at each thousandth.
    uint32_t *parents = (uint32_t *)test_alloc(count, sizeof *parents);
    uint32_t *tokens = (uint32_t *)test_alloc(count, sizeof *tokens), nodes[1000];
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
    tree_make(1000, count, &tree);
    assert_ok(ptowsp_prefix_build_given(&given, &tree, NULL));
    assert_int_equal(tree.node_count, 999);
    for (uint32_t p = 1; p < 1000; p++) {
        assert_int_equal(tree.common[p], p * 1000);
    }
    const ptowsp_attention_batch *all = &given.attention;
    const ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = 1};
    ptowsp_prefix_sizes sizes;
    ptowsp_prefix_plan plan;
    assert_ok(ptowsp_prefix_size(all, &config, &tree, &sizes, NULL));
    void *block = test_alloc(sizes.block_bytes, 1);
    assert_ok(ptowsp_prefix_place(&sizes, block, sizes.block_bytes, &plan));
    assert_ok(ptowsp_prefix_generate(all, &config, &tree, &plan, NULL));
    assert_ok(ptowsp_prefix_check(all, &config, &tree, &plan, NULL));
    assert_true(plan.kv_token_reads < plan.flat_kv_token_reads / 20);
    test_release();
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
