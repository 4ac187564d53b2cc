// Prefix trees and plans: as text, chains of a million, and blocks that are too small. Small ones on paper, and
// what is refused, are in prefix_facts_test.c.

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

TEST(prefix__plans_are_printed_with_what_they_save) {
    static const ptowsp_prefix_batch none = {{NULL, NULL, 0}, NULL, NULL, 16};
    static const struct {
        const ptowsp_prefix_batch *batch;
        const char *text;
    } cases[] = {{&drawn, "prefix plan: 5 requests, 1 shared segments, 3 joins\n"
                          "kv tokens read: 1100, flat 1500, ratio 0.7333\n"
                          "predicted: cost 1700, flat 1950; time 1700, flat 1950\n"
                          "attention plan: 6 tiles of up to 3 rows in 6 units, on 1 lanes\n"},
                 {&none, "prefix plan: 0 requests, 0 shared segments, 0 joins\n"
                         "kv tokens read: 0, flat 0\n"
                         "predicted: cost 0, flat 0; time 0, flat 0\n"}};
    const ptowsp_attention_config config = {.kv_head_count = 1,
                                            .lane_count = 1,
                                            .cost.per_unit = 90,
                                            .cost.per_token = 1,
                                            .cost.per_merged_row = 10};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        small s = small_of(cases[i].batch, 4);
        char text[2000];
        small_plan(&s, &cases[i].batch->attention, &config);
        ptowsp_prefix_print(&s.plan, TEST_TEXT(text));
        assert_memory_equal(text, cases[i].text, strlen(cases[i].text));
        small_free(&s);
    }
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
