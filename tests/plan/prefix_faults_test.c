// Prefix trees and plans: what is refused, with its text; and what the check finds.

#include "test.h"

enum { COUNT = 4 };

typedef struct faults_case {
    int32_t kv[COUNT], queries[COUNT];
    uint64_t ids[8], begin[COUNT + 1];
    ptowsp_prefix_batch batch;
    ptowsp_attention_config config;
    uint32_t parents[3], tokens[3], nodes[COUNT];
    ptowsp_prefix_given given;
    _Alignas(8) uint64_t block[2000];  // 32-bit machines align by 4
    _Alignas(8) uint64_t plan_block[1024];
    ptowsp_prefix_tree tree;
    ptowsp_prefix_plan plan;
    ptowsp_plan_info info;
} faults_case;

// Four requests of two blocks, of which the first is the same in three.
static void case_make(faults_case *f) {
    const faults_case made = {.kv = {200, 200, 200, 200},
                              .queries = {1, 1, 1, 1},
                              .ids = {1, 2, 1, 3, 1, 4, 5, 6},
                              .begin = {0, 2, 4, 6, 8},
                              .batch = {{f->kv, NULL, COUNT}, f->ids, f->begin, 100},
                              .config = {.kv_head_count = 2, .lane_count = 2, .cost.per_token = 1},
                              .parents = {PTOWSP_NO_NODE, 0, 1},
                              .tokens = {100, 50, 50},
                              .nodes = {0, 1, 2, 2},
                              .given = {{f->kv, NULL, COUNT}, f->parents, f->tokens, 3, f->nodes}};
    *f = made;
    const ptowsp_prefix_limits limits = {COUNT, 3};
    assert_ok(ptowsp_prefix_tree_place(&limits, f->block, sizeof f->block, &f->tree));
    assert_ok(ptowsp_prefix_build(&f->batch, &f->tree, NULL));
    ptowsp_prefix_sizes sizes;
    assert_ok(ptowsp_prefix_size(&f->batch.attention, &f->config, &f->tree, &sizes, NULL));
    sizes.join_count++, sizes.attention.unit_count++;  // one each that is INVALID
    sizes.block_bytes += 2 * sizeof(ptowsp_work);
    assert_ok(ptowsp_prefix_place(&sizes, f->plan_block, sizeof f->plan_block, &f->plan));
    assert_ok(ptowsp_prefix_generate(&f->batch.attention, &f->config, &f->tree, &f->plan, NULL));
    assert_int_equal(f->plan.shared_count, 1);
    assert_int_equal(f->plan.join_count, 6);
    const ptowsp_work none = ptowsp_work_of(PTOWSP_NO_SLOT, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    assert_memory_equal(&f->plan.joins[6], &none, sizeof none);
}

static void refused_at(int line, const faults_case *f, ptowsp_status status, const char *text) {
    char got[200];
    ptowsp_plan_explain(&f->info, TEST_TEXT(got));
    if (status >= 0 || strcmp(got, text) != 0) {
        fail_msg("line %d: \"%s\", not \"%s\"", line, got, text);
    }
}

#define REFUSED(f, call, text) refused_at(__LINE__, &(f), call, "plan: " text)
// Changes one thing of the case, which is then refused.
#define WRONG(f, change, call, text) (case_make(&(f)), change, REFUSED(f, call, text))
#define BUILD(f)                     ptowsp_prefix_build(&(f).batch, &(f).tree, &(f).info)
#define GIVEN(f)                     ptowsp_prefix_build_given(&(f).given, &(f).tree, &(f).info)
#define ADD(f, request)              ptowsp_prefix_add(&(f).batch, request, &(f).tree, &(f).info)
#define REMOVE(f, request)           ptowsp_prefix_remove(request, &(f).tree, &(f).info)
#define PLAN(f)                                                                                    \
    ptowsp_prefix_generate(&(f).batch.attention, &(f).config, &(f).tree, &(f).plan, &(f).info)
#define CHECK(f)                                                                                   \
    ptowsp_prefix_check(&(f).batch.attention, &(f).config, &(f).tree, &(f).plan, &(f).info)

TEST(prefix_faults__of_blocks) {
    faults_case f;
    case_make(&f);
    REFUSED(f, ptowsp_prefix_build(NULL, &f.tree, &f.info), "batch is NULL");
    REFUSED(f, ptowsp_prefix_build(&f.batch, NULL, &f.info), "tree is NULL: was the tree placed?");
    WRONG(f, f.tree.nodes = NULL, BUILD(f), "tree.nodes is NULL: was the tree placed?");
    WRONG(f, f.batch.attention.kv_lengths = NULL, BUILD(f),
          "lengths is NULL with sequence_count 4");
    WRONG(f, f.batch.block_ids = NULL, BUILD(f), "block_ids is NULL");
    WRONG(f, f.batch.block_begin = NULL, BUILD(f), "block_begin is NULL");
    WRONG(f, f.batch.block_tokens = 0, BUILD(f), "block_tokens is 0");
    assert_int_equal(f.tree.request_count, 0);
    WRONG(f, f.tree.request_capacity = 3, BUILD(f),
          "4 requests do not fit the tree, which holds 3");
    WRONG(f, f.kv[2] = -7, BUILD(f), "sequence 2 has the negative length -7");
    WRONG(f, (f.batch.attention.query_lengths = f.queries, f.queries[1] = -1), BUILD(f),
          "sequence 1 has the negative query length -1");
    WRONG(f, f.begin[2] = 1, BUILD(f), "the blocks of request 1 end at 1, before they begin");
    WRONG(f, f.kv[3] = 100, BUILD(f), "request 3 has 2 blocks, where its KV fills 1");
    f.kv[3] = 101;
    assert_ok(BUILD(f));
    WRONG(f, f.tree.block_capacity = 1, BUILD(f),
          "request 0 has 2 blocks, the tree has room for 1");
    WRONG(f, f.ids[3] = 1, BUILD(f), "request 1 has the same id at blocks 0 and 1");
    assert_int_equal(f.tree.request_count, 0);
}

TEST(prefix_faults__wrong_given_trees_are_refused) {
    faults_case f;
    case_make(&f);
    assert_ok(GIVEN(f));
    REFUSED(f, ptowsp_prefix_build_given(NULL, &f.tree, &f.info), "batch is NULL");
    WRONG(f, f.given.attention.kv_lengths = NULL, GIVEN(f),
          "lengths is NULL with sequence_count 4");
    assert_int_equal(f.tree.request_count, 0);  // nothing is left of the tree before
    assert_int_equal(f.tree.node_count, 0);
    WRONG(f, f.given.parents = NULL, GIVEN(f), "parents is NULL");
    WRONG(f, f.given.node_tokens = NULL, GIVEN(f), "node_tokens is NULL");
    WRONG(f, f.given.request_nodes = NULL, GIVEN(f), "request_nodes is NULL");
    WRONG(f, f.tree.request_capacity = 3, GIVEN(f),
          "4 requests do not fit the tree, which holds 3");
    WRONG(f, f.tree.block_capacity = 2, GIVEN(f),
          "3 nodes are more than the 2 that the tree has room for");
    WRONG(f, f.parents[2] = 3, GIVEN(f), "node 2 has the parent 3, of 3 nodes");
    WRONG(f, f.parents[1] = 1, GIVEN(f), "node 1 is above itself");
    WRONG(f, f.parents[1] = 2, GIVEN(f), "node 2 is above itself");  // as 2 is above 1
    WRONG(f, f.parents[0] = 2, GIVEN(f), "node 0 is above itself");  // no root at all
    WRONG(f, f.nodes[3] = 3, GIVEN(f), "request 3 is at node 3, of 3 nodes");
    WRONG(f, f.tokens[2] = 51, GIVEN(f),
          "request 2 has 201 tokens in nodes, of 200 that can be shared");
    WRONG(f, (f.given.attention.query_lengths = f.queries, f.queries[3] = 2), GIVEN(f),
          "request 3 has 200 tokens in nodes, of 198 that can be shared");
    f.queries[3] = -2;
    REFUSED(f, GIVEN(f), "sequence 3 has the negative query length -2");
    f.kv[0] = -2;
    REFUSED(f, GIVEN(f), "sequence 0 has the negative length -2");
}

TEST(prefix_faults__wrong_requests_to_add_and_remove_are_refused) {
    faults_case f;
    case_make(&f);
    REFUSED(f, ADD(f, 3), "request 3 is in the tree already");
    REFUSED(f, ADD(f, 4), "request 4 is not one of the 4 of the batch");
    REFUSED(f, REMOVE(f, 4), "request 4 is not in the tree");
    REFUSED(f, ptowsp_prefix_remove(4, NULL, &f.info), "tree is NULL: was the tree placed?");
    assert_int_equal(f.tree.request_count, 4);
    assert_ok(REMOVE(f, 1));
    REFUSED(f, REMOVE(f, 1), "request 1 is not in the tree");
    f.ids[3] = 1;
    REFUSED(f, ADD(f, 1), "request 1 has the same id at blocks 0 and 1");
    assert_int_equal(f.tree.request_count, 3);
    f.ids[3] = 3;
    assert_ok(ADD(f, 1));
    assert_ok(REMOVE(f, 0));
    f.tree.request_capacity = 3;
    REFUSED(f, ADD(f, 0), "4 requests do not fit the tree, which holds 3");
    f.batch.attention.sequence_count = 3;  // 3 is in the tree
    REFUSED(f, ADD(f, 0), "request 3 is not one of the 3 of the batch");
}

TEST(prefix_faults__wrong_arguments_of_plans_are_refused) {
    faults_case f;
    case_make(&f);
    REFUSED(f, ptowsp_prefix_generate(NULL, &f.config, &f.tree, &f.plan, &f.info), "batch is NULL");
    REFUSED(f, ptowsp_prefix_generate(&f.batch.attention, &f.config, NULL, &f.plan, &f.info),
            "tree is NULL: was the tree placed?");
    REFUSED(f, ptowsp_prefix_generate(&f.batch.attention, NULL, &f.tree, &f.plan, &f.info),
            "config is NULL");
    REFUSED(f, ptowsp_prefix_generate(&f.batch.attention, &f.config, &f.tree, NULL, &f.info),
            "plan is NULL");
    REFUSED(f, ptowsp_prefix_size(&f.batch.attention, &f.config, &f.tree, NULL, &f.info),
            "out_sizes is NULL");
    WRONG(f, f.batch.attention.kv_lengths = NULL, PLAN(f), "lengths is NULL with sequence_count 4");
    WRONG(f, f.config.window = 5, PLAN(f), "prefix plans have no window, and config.window is 5");
    const ptowsp_attention_positions positions = {COUNT, f.queries, NULL, NULL,
                                                  NULL,  NULL,      NULL, NULL};
    WRONG(f, f.config.positions = &positions, PLAN(f), "prefix plans have no positions");
    const ptowsp_attention_positions none = {0, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    const ptowsp_attention_limits limits = {4, 200, 1, 0, 0};
    ptowsp_prefix_sizes sizes;
    f.config.positions = &none;  // no arrays: as without
    assert_ok(PLAN(f));
    assert_ok(ptowsp_prefix_bound(&f.config, &limits, &sizes, &f.info));
    WRONG(f, f.config.shares_merges = true, PLAN(f), "prefix plans have no shared merges");
    WRONG(f, f.batch.attention.sequence_count = 3, PLAN(f),
          "request 3 is not one of the 3 of the batch");
    f.batch.attention.sequence_count = 5;
    REFUSED(f, PLAN(f), "5 requests do not fit the tree, which holds 4");
    WRONG(f, f.kv[1] = 99, PLAN(f), "position 1 shares 100 tokens, of 99 that can be shared");
    f.kv[3] = -1;
    REFUSED(f, PLAN(f), "sequence 3 has the negative length -1");
    WRONG(f, f.plan.requests = NULL, PLAN(f), "plan.requests is NULL: was the plan placed?");
    WRONG(f, f.plan.attention.units = NULL, PLAN(f), "plan.units is NULL: was the plan placed?");
    WRONG(f, f.plan.segment_capacity = 4, PLAN(f), "5 segments do not fit the plan, which holds 4");
    WRONG(f, f.plan.request_capacity = 3, PLAN(f), "4 requests do not fit the plan, which holds 3");
    WRONG(f, f.plan.token_capacity = 3, PLAN(f),
          "4 query tokens do not fit the plan, which holds 3");
    WRONG(f, f.plan.join_capacity = 5, PLAN(f), "6 joins do not fit the plan, which holds 5");
    f.plan.join_capacity = 6, f.plan.attention.merge_capacity = 0;
    const ptowsp_status status = PLAN(f);
    assert_int_equal(status, PTOWSP_BUFFER_OVERFLOW);
    assert_int_equal(f.info.fault, PTOWSP_FAULT_MERGES_SMALL);
    case_make(&f);
    static int32_t long_queries[2] = {INT32_MAX, INT32_MAX}, long_kv[2] = {1, 1};
    const ptowsp_attention_batch many = {long_kv, long_queries, 2};
    f.tree.request_count = 2;
    f.tree.common[1] = 0;
    f.config.tile_rows = UINT32_MAX;
    f.tree.order[0] = 0, f.tree.order[1] = 1;
    f.config.cost.per_unit = 1;
    assert_int_equal(ptowsp_prefix_generate(&many, &f.config, &f.tree, &f.plan, &f.info),
                     PTOWSP_BUFFER_OVERFLOW);  // 2^32 - 2 fit the limits
    assert_int_equal(f.info.fault, PTOWSP_FAULT_TOKENS_SMALL);
}

// The order of positions is not that of requests: request 0 is the last one.
TEST(prefix_faults__name_requests_not_positions) {
    faults_case f;
    const ptowsp_tier tiers[1] = {{0, 0, 200}};
    for (int i = 0; i < 4; i++) {
        case_make(&f);
        f.ids[0] = 9;
        f.batch.attention.query_lengths = f.queries;
        assert_ok(BUILD(f));
        assert_int_equal(f.tree.order[3], 0);
        switch (i) {
        case 0:
            f.queries[0] = -3;
            REFUSED(f, PLAN(f), "sequence 0 has the negative query length -3");
            break;
        case 1:
            f.queries[0] = 300;
            f.config.is_causal = true;
            REFUSED(f, PLAN(f), "sequence 0 has 300 queries for 200 KV tokens, under is_causal");
            break;
        case 2:
            f.kv[0] = 201;
            f.config.tiers = tiers;
            f.config.tier_count = 1;
            REFUSED(f, PLAN(f), "sequence 0 has length 201, which no tier covers");
            break;
        default:
            f.queries[0] = 65537;
            f.config.tile_rows = 1;
            REFUSED(f, PLAN(f), "sequence 0 has 65537 query tiles, more than 65536");
        }
        assert_int_equal(f.info.index, 0);
    }
}

TEST(prefix_faults__too_many_query_tokens_are_refused) {
    faults_case f;
    case_make(&f);
    static const int32_t queries[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, kv[3] = {1, 1, 1};
    const ptowsp_attention_batch many = {kv, queries, 3};
    f.tree.request_count = 3;
    for (uint32_t p = 0; p < 3; p++) {
        f.tree.order[p] = p;
        f.tree.common[p] = 0;
    }
    f.config.tile_rows = UINT32_MAX;
    f.config.cost.per_unit = 1;
    REFUSED(f, ptowsp_prefix_generate(&many, &f.config, &f.tree, &f.plan, &f.info),
            "6442450941 query tokens do not fit the plan, which holds 4294967295");
}

TEST(prefix_faults__of_more_lanes_than_were_placed) {
    enum { GUARD = 4096 };
    faults_case f;
    case_make(&f);
    ptowsp_prefix_sizes sizes;
    assert_ok(ptowsp_prefix_size(&f.batch.attention, &f.config, &f.tree, &sizes, NULL));
    const size_t extra = 3 * 300 * sizeof(ptowsp_work);  // units, merges and joins for all lanes
    const size_t bytes = (size_t)sizes.block_bytes + extra;
    sizes.attention.unit_count += 300, sizes.attention.merge_count += 300;
    sizes.attention.slot_count += 900, sizes.join_count += 300;
    unsigned char *block = (unsigned char *)malloc(bytes + GUARD);
    unsigned char *before = (unsigned char *)malloc(bytes + GUARD);
    memset(block, 0xa5, bytes + GUARD);
    memcpy(before, block, bytes + GUARD);
    assert_ok(ptowsp_prefix_place(&sizes, block, bytes, &f.plan));
    assert_int_equal(f.plan.attention.lane_capacity, 2);
    f.config.lane_count = 3;
    REFUSED(f, PLAN(f), "3 lanes do not fit the plan, which has room for 2");
    f.config.lane_count = 100;
    const ptowsp_status status = PLAN(f);
    REFUSED(f, status, "100 lanes do not fit the plan, which has room for 2");
    assert_int_equal(status, PTOWSP_BUFFER_OVERFLOW);
    assert_int_equal(f.info.fault, PTOWSP_FAULT_LANES_SMALL);
    assert_memory_equal(before, block, bytes + GUARD);
    f.config.lane_count = 2;
    assert_ok(PLAN(f));
    assert_memory_equal(before + bytes, block + bytes, GUARD);
    free(block);
    free(before);
}

TEST(prefix_faults__of_arrays_that_are_not_there) {
    faults_case f;
    WRONG(f, f.plan.segments = NULL, PLAN(f), "plan.segments is NULL: was the plan placed?");
    f.plan.segment_capacity = 0;
    REFUSED(f, PLAN(f), "5 segments do not fit the plan, which holds 0");
    WRONG(f, f.plan.tokens = NULL, PLAN(f), "plan.tokens is NULL: was the plan placed?");
    f.plan.token_capacity = 0;
    REFUSED(f, PLAN(f), "4 query tokens do not fit the plan, which holds 0");
    WRONG(f, f.plan.joins = NULL, PLAN(f), "plan.joins is NULL: was the plan placed?");
    f.plan.join_capacity = 0;
    REFUSED(f, PLAN(f), "6 joins do not fit the plan, which holds 0");
    case_make(&f);
    REFUSED(f, ptowsp_prefix_add(NULL, 0, &f.tree, &f.info), "batch is NULL");
    REFUSED(f, ptowsp_prefix_add(&f.batch, 0, NULL, &f.info), "tree is NULL: was the tree placed?");
    REFUSED(f, ptowsp_prefix_build_given(&f.given, NULL, &f.info),
            "tree is NULL: was the tree placed?");
    assert_ok(REMOVE(f, 2));
    f.kv[2] = -5;
    REFUSED(f, ADD(f, 2), "sequence 2 has the negative length -5");
    assert_int_equal(f.tree.request_count, 3);
    // Nothing needs no arrays.
    const ptowsp_prefix_given nothing = {{NULL, NULL, 0}, NULL, NULL, 0, NULL};
    assert_ok(ptowsp_prefix_build_given(&nothing, &f.tree, &f.info));
    assert_int_equal(f.tree.request_count + f.tree.node_count, 0);
    // Nor do requests without blocks need ids.
    memset(f.begin, 0, sizeof f.begin);
    f.batch.block_ids = NULL;
    f.kv[2] = 200;
    for (uint32_t r = 0; r < COUNT; r++) {
        assert_ok(ADD(f, r));
    }
    assert_int_equal(f.tree.request_count, COUNT);
    assert_int_equal(f.tree.node_count, 0);
}

// One request of 2^32 - 1 heads, whose units number that much until two lanes divide one.
TEST(prefix_faults__units_that_lanes_divide_beyond_32_bits_are_refused) {
    faults_case f;
    case_make(&f);
    const int32_t kv[1] = {2};
    const ptowsp_attention_batch one = {kv, NULL, 1};
    ptowsp_prefix_sizes sizes;
    f.tree.request_count = 1, f.tree.node_count = 0;
    f.tree.order[0] = f.tree.common[0] = 0;
    f.tree.owners[0] = PTOWSP_NO_NODE;
    f.config.kv_head_count = UINT32_MAX;
    REFUSED(f, ptowsp_prefix_size(&one, &f.config, &f.tree, &sizes, &f.info),
            "4294967296 units are more than the 4294967295 of a plan");
    assert_int_equal(sizes.block_bytes, 0);
}

// With costs whose sums might be 2^62 and more nothing is shared.
TEST(prefix_faults__of_sums_that_are_too_large_to_choose) {
    faults_case f;
    case_make(&f);
    ptowsp_prefix_sizes sizes;
    f.batch.block_tokens = UINT32_C(1) << 30;
    for (int r = 0; r < COUNT; r++) {
        f.kv[r] = INT32_MAX;
    }
    assert_ok(BUILD(f));
    assert_ok(ptowsp_prefix_size(&f.batch.attention, &f.config, &f.tree, &sizes, &f.info));
    assert_int_equal(sizes.segment_count, COUNT + 1);
    f.config.cost.per_unit = 1e9;
    assert_ok(ptowsp_prefix_size(&f.batch.attention, &f.config, &f.tree, &sizes, &f.info));
    assert_int_equal(sizes.segment_count, COUNT);
}

TEST(prefix_faults__are_none_where_nothing_is_read) {
    faults_case f;
    case_make(&f);
    memset(f.kv, 0, sizeof f.kv);
    memset(f.begin, 0, sizeof f.begin);
    assert_ok(BUILD(f));
    assert_ok(PLAN(f));
    assert_ok(CHECK(f));
    char text[600];
    ptowsp_prefix_print(&f.plan, TEST_TEXT(text));
    const char *begins = "prefix plan: 4 requests, 0 shared segments, 0 joins\n"
                         "kv tokens read: 0, flat 0\npredicted: cost 0, flat 0; time 0, flat 0\n";
    assert_memory_equal(text, begins, strlen(begins));
}

TEST(prefix_faults__wrong_arguments_of_bounds_are_refused) {
    faults_case f;
    case_make(&f);
    ptowsp_prefix_sizes sizes;
    ptowsp_attention_limits limits = {4, 100, 0, 0, 0};
    REFUSED(f, ptowsp_prefix_bound(&f.config, &limits, NULL, &f.info), "out_sizes is NULL");
    REFUSED(f, ptowsp_prefix_bound(NULL, &limits, &sizes, &f.info), "config is NULL");
    REFUSED(f, ptowsp_prefix_bound(&f.config, NULL, &sizes, &f.info), "limits is NULL");
    limits.kv_length_max = -1;
    REFUSED(f, ptowsp_prefix_bound(&f.config, &limits, &sizes, &f.info),
            "a largest length in limits is -1");
    limits.kv_length_max = 100;
    f.config.window = 5;
    REFUSED(f, ptowsp_prefix_bound(&f.config, &limits, &sizes, &f.info),
            "prefix plans have no window, and config.window is 5");
    f.config.window = 0;
    limits.sequence_count_max = (UINT32_C(1) << 31) + 1;
    f.config.kv_head_count = 1;
    REFUSED(f, ptowsp_prefix_bound(&f.config, &limits, &sizes, &f.info),
            "4294967297 segments do not fit the plan, which holds 4294967295");
    assert_int_equal(sizes.attention.unit_count + sizes.segment_count + sizes.block_bytes, 0);
    limits.sequence_count_max = UINT32_MAX;
    assert_int_equal(ptowsp_prefix_bound(&f.config, &limits, &sizes, &f.info),
                     PTOWSP_LIMIT_EXCEEDED);
    assert_int_equal(sizes.attention.unit_count + sizes.segment_count + sizes.block_bytes, 0);
}

#define FOUND(f, change, text) WRONG(f, change, CHECK(f), text)

TEST(prefix_faults__that_the_check_finds) {
    faults_case f;
    case_make(&f);
    assert_ok(CHECK(f));
    FOUND(f, f.plan.request_count = 3, "the plan says 3 where 4 belongs");
    FOUND(f, f.plan.token_count = 3, "the plan says 3 where 4 belongs");
    FOUND(f, f.plan.shared_count = 2, "the plan says 5 where 6 belongs");
    FOUND(f, f.plan.segment_capacity = 4, "the plan says 5 where 4 belongs");
    FOUND(f, f.plan.attention.group = 2,
          "the plan is of another configuration: it has 2 where 1 belongs");
    FOUND(f, f.plan.segments[1].parent = 1, "segment 1 has the value 1 where 1 belongs");
    FOUND(f, f.plan.segments[1].parent = 7, "segment 1 has the value 7 where 1 belongs");
    FOUND(f, f.plan.segments[0].count = 5, "segment 0 has the value 5 where 4 belongs");
    FOUND(f, f.plan.segments[0].count = 0, "segment 0 has the value 0 where 1 belongs");
    FOUND(f, f.plan.segments[0].request = 1, "segment 0 has the value 1 where 0 belongs");
    FOUND(f, f.plan.segments[0].kv_end = 101, "segment 0 has the value 101 where 100 belongs");
    FOUND(f, f.plan.segments[0].kv_end = 99, "segment 1 has the value 100 where 99 belongs");
    FOUND(f, f.plan.segments[2].kv_end = 150, "segment 2 has the value 150 where 200 belongs");
    FOUND(f, f.plan.segments[2].token_begin = 0, "segment 2 has the value 0 where 1 belongs");
    FOUND(f, f.plan.segments[2].depth = 2, "segment 2 has the value 2 where 1 belongs");
    FOUND(f, f.plan.segments[2].is_whole = true, "segment 2 has the value 1 where 0 belongs");
    FOUND(f, f.plan.segments[0].is_whole = true, "segment 0 has the value 1 where 0 belongs");
    FOUND(f, f.plan.segments[2].merge_begin = 9, "segment 2 has the value 11 where 8 belongs");
    FOUND(f, f.plan.segments[2].merge_begin = 1, "segment 2 has the value 1 where 8 belongs");
    FOUND(f, f.plan.requests[1].request = 2, "position 1 has the value 2 where 1 belongs");
    FOUND(f, f.plan.requests[1].segment = 9, "position 1 has the value 9 where 5 belongs");
    FOUND(f, f.plan.requests[1].segment = 0, "position 1 has the value 0 where 5 belongs");
    FOUND(f, f.plan.requests[1].segment = 3, "segment 3 has the value 2 where 1 belongs");
    FOUND(f, f.plan.requests[2].segment = 2, "segment 2 has the value 1 where 2 belongs");
    FOUND(f, f.plan.segments[0].merge_begin = 1, "segment 0 has the value 1 where 8 belongs");
    FOUND(f, f.plan.requests = NULL, "plan.requests is NULL: was the plan placed?");
    FOUND(f, f.batch.attention.kv_lengths = NULL, "lengths is NULL with sequence_count 4");
    FOUND(f, f.plan.requests[1].join = 0, "position 1 has the value 0 where 2 belongs");
    FOUND(f, f.plan.tokens[2] = 1, "position 2 has the value 1 where 2 belongs");
    FOUND(f, f.plan.joins[3].params[3] = 3, "join 3 has the value 3 where 2 belongs");
    FOUND(f, f.plan.joins[6].flags = 0, "join 6 has the value 0 where 128 belongs");
    FOUND(f, f.plan.join_count = 5, "join 5 has the value 0 where 1 belongs");
    FOUND(f, f.plan.join_count = 7, "the plan says 7 where 6 belongs");
    FOUND(f, f.plan.attention.units[2].params[2] = 1, "unit 2 has the value 1 where 100 belongs");
    FOUND(f, f.plan.attention.merges[2].params[3] = 2, "merge 2 has the value 2 where 1 belongs");
}

// A segment less: its requests would not meet the KV.
TEST(prefix_faults__of_ways_that_leave_a_segment_out) {
    faults_case f;
    case_make(&f);
    f.plan.segments[1].parent = PTOWSP_NO_NODE;
    f.plan.segments[1].kv_begin = 0;
    f.plan.segments[1].depth = 0;
    REFUSED(f, CHECK(f), "the plan says 7 where 6 belongs");
}
