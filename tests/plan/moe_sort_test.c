// Sorting of MoE plans: beside a stable sort that looks for each expert's pairs in turn; on one lane
// and on several; with padding; and what is refused.

#include "moe_sample.h"
#include "plan_text.h"

TEST(moe_sort__puts_the_pairs_of_the_header_in_order) {
    sort_case c = case_of(4, 2, 3, 0);
    const int32_t ids[8] = {2, 0, 2, 1, 0, 2, 2, -1};
    const uint32_t counts[3] = {2, 1, 4}, offsets[4] = {0, 2, 3, 7};
    const uint32_t pairs[7] = {1, 4, 3, 0, 2, 5, 6};
    const uint32_t rows[8] = {3, 0, 4, 2, 1, 5, 6, PTOWSP_MOE_NO_ROW};
    memcpy(c.ids, ids, sizeof ids);
    assert_ok(ptowsp_moe_sort(&c.routes, &c.order, NULL));
    assert_memory_equal(c.order.counts, counts, sizeof counts);
    assert_memory_equal(c.order.offsets, offsets, sizeof offsets);
    assert_memory_equal(c.order.pairs, pairs, sizeof pairs);
    assert_memory_equal(c.order.rows, rows, sizeof rows);
    assert_int_equal(c.order.pair_count, 7);
    case_free(&c);
}

TEST(moe_sort__pads_rows_to_blocks) {
    sort_case c = case_of(5, 1, 4, 4);  // 5 of expert 2: two blocks
    for (int i = 0; i < 5; i++) {
        c.ids[i] = 2;
    }
    assert_int_equal(ptowsp_moe_row_bound(&c.routes), 5 + 4 * 3);
    assert_ok(ptowsp_moe_sort(&c.routes, &c.order, NULL));
    assert_int_equal(c.order.row_count, 8);
    assert_int_equal(c.order.block_count, 2);
    assert_int_equal(c.order.row_capacity / 4, 4);  // blocks of nobody up to there
    assert_true(c.order.block_experts[2] == -1 && c.order.block_experts[3] == -1);
    assert_true(c.order.padding_share >= 0.375 && c.order.padding_share <= 0.375);
    require_sorted(&c);
    case_free(&c);
}

TEST(moe_sort__equals_a_stable_sort) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 3000); round++) {
        const uint32_t experts = round % 16 == 0  ? test_random_u32(&random, 500, 600)
                                 : round % 16 < 4 ? test_random_u32(&random, 190, 260)
                                                  : test_random_u32(&random, 1, 40);
        const int64_t tokens = round % 32 == 1 ? 1500 : 60;
        sort_case c =
            case_of(test_random_u32(&random, 0, tokens), test_random_u32(&random, 1, 9), experts,
                    test_random_u32(&random, 0, 1) * test_random_u32(&random, 1, 20));
        case_fill(&c, (int)(test_random(&random) % KIND_COUNT), &random);
        ptowsp_plan_info info;
        assert_ok(ptowsp_moe_sort(&c.routes, &c.order, &info));
        assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
        require_sorted(&c);
        // The inverse is not needed; and exactly as many rows fit as there are.
        ptowsp_moe_order order = c.order;
        uint32_t *pairs = fresh(order.row_count);
        order.pairs = pairs;
        order.rows = NULL;
        order.block_experts = NULL;
        order.row_capacity = order.row_count;
        assert_ok(ptowsp_moe_sort(&c.routes, &order, NULL));
        assert_memory_equal(pairs, c.order.pairs, order.row_count * sizeof *pairs);
        require_sorted(&c);
        free(pairs);
        case_free(&c);
    }
}

// Serially, or on the lanes of a context.
static ptowsp_status sort(bool is_parallel, ptowsp_context *context,
                          const ptowsp_moe_routes *routes, ptowsp_moe_order *order,
                          uint32_t *scratch, uint64_t scratch_count, ptowsp_plan_info *info) {
    return is_parallel
               ? ptowsp_moe_sort_parallel(context, routes, order, scratch, scratch_count, info)
               : ptowsp_moe_sort(routes, order, info);
}

static void require_same(const sort_case *a, const sort_case *b) {
    const uint32_t experts = a->routes.expert_count;
    assert_memory_equal(a->order.counts, b->order.counts, experts * sizeof(uint32_t));
    assert_memory_equal(a->order.offsets, b->order.offsets, (experts + 1) * sizeof(uint32_t));
    assert_int_equal(a->order.row_count, b->order.row_count);
    assert_int_equal(a->order.pair_count, b->order.pair_count);
    assert_int_equal(a->order.block_count, b->order.block_count);
    assert_memory_equal(a->order.pairs, b->order.pairs, a->order.row_count * sizeof(uint32_t));
    assert_memory_equal(a->order.rows, b->order.rows, a->pair_count * sizeof(uint32_t));
}

TEST(moe_sort__has_the_same_bits_on_any_lanes) {
    uint64_t random = test_seed();
    const uint32_t lane_counts[3] = {1, 2, 4};
    for (int l = 0; l < 3; l++) {
        ptowsp_context *context = test_lanes(lane_counts[l]);
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            for (uint32_t experts = 7; experts < 2000; experts *= 16) {
                sort_case a =
                    case_of(PTOWSP_MOE_SORT_PARALLEL_MIN / 8 + 3, 8, experts, kind % 2 ? 16 : 0);
                case_fill(&a, kind, &random);
                sort_case b = a;
                case_arrays(&b);
                const uint64_t room = 4 * (uint64_t)(experts + 1);
                uint32_t *scratch = fresh(room);
                assert_ok(ptowsp_moe_sort(&a.routes, &a.order, NULL));
                // With room for all lanes, for two of them, for one, and without.
                for (uint64_t count = room; count > 0; count /= 2) {
                    memset(b.order.pairs, 1, a.order.row_count * sizeof(uint32_t));
                    assert_ok(ptowsp_moe_sort_parallel(context, &b.routes, &b.order, scratch, count,
                                                       NULL));
                    require_same(&a, &b);
                    count = count < experts ? 1 : count;
                }
                assert_true(scratch[room] == 0x5a5a5a5a);
                free(scratch);
                b.ids = NULL;
                case_free(&b);
                case_free(&a);
            }
        }
        ptowsp_context_destroy(context);
    }
}

// Both refuse it with this text, and write nothing.
static void refused(const ptowsp_moe_routes *routes, ptowsp_moe_order *order, ptowsp_status status,
                    uint64_t index, const char *text) {
    ptowsp_context *context = test_lanes(2);
    uint32_t scratch[64], before[4] = {0, 0, 0, 0};
    if (order && order->counts) {
        memcpy(before, order->counts, sizeof before);
    }
    for (int call = 0; call < 2; call++) {
        ptowsp_plan_info info;
        memset(&info, 0x55, sizeof info);
        assert_int_equal(sort(call, context, routes, order, scratch, 64, &info), status);
        assert_int_equal(info.index, index);
        fault_text_is(&info, text);
        if (order && order->counts) {
            assert_memory_equal(before, order->counts, sizeof before);
        }
    }
    assert_string_equal(ptowsp_context_error(context).text, text);
    ptowsp_context_destroy(context);
}

// Changes good routes, which are then refused.
#define WRONG(change, status, index, text)                                                         \
    (r = c.routes, change, refused(&r, &c.order, status, index, text))

TEST(moe_sort__refuses_what_is_wrong) {
    const uint64_t none = PTOWSP_NO_INDEX;
    const ptowsp_status invalid = PTOWSP_INVALID_PARAMS;
    sort_case c = case_of(4, 2, 4, 4);
    refused(NULL, &c.order, invalid, 0, "plan: routes is NULL");
    refused(&c.routes, NULL, invalid, none, "plan: order is NULL");
    ptowsp_moe_routes r;
    WRONG(r.top_k = 0, invalid, none, "plan: top_k 0 is not in 1 to 4294967295");
    WRONG(r.expert_count = 0, invalid, none, "plan: 0 experts or replicas are not in 1 to 65536");
    r.expert_count = PTOWSP_MOE_EXPERT_MAX + 1;
    refused(&r, &c.order, invalid, none, "plan: 65537 experts or replicas are not in 1 to 65536");
    WRONG(r.ids = NULL, invalid, 1, "plan: routes.ids is NULL");
    WRONG((r.token_count = UINT32_MAX, r.top_k = 1), PTOWSP_LIMIT_EXCEEDED, none,
          "plan: 4294967295 pairs or rows are more than 4294967294");
    r = c.routes;
    r.block_rows = UINT32_MAX;
    c.ids[0] = 1;
    refused(&r, &c.order, PTOWSP_LIMIT_EXCEEDED, none,
            "plan: 8589934590 pairs or rows are more than 4294967294");
    c.ids[0] = 0;
    c.ids[5] = 4;
    c.ids[6] = INT32_MAX;
    refused(&c.routes, &c.order, invalid, 5, "plan: pair 5 has expert 4, which is not below 4");
    c.ids[5] = c.ids[6] = 1;
    ptowsp_moe_order o = c.order;
    o.row_capacity = 11;  // 6 and 2 pairs: 12 rows
    refused(&c.routes, &o, PTOWSP_BUFFER_OVERFLOW, none,
            "plan: 12 rows do not fit the order, which holds 11");
    const char *names[3] = {"counts", "offsets", "pairs"};
    for (int i = 0; i < 3; i++) {
        o = c.order;
        *(i == 0 ? &o.counts : i == 1 ? &o.offsets : &o.pairs) = NULL;
        char text[64];
        snprintf(text, sizeof text, "plan: order.%s is NULL", names[i]);
        refused(&c.routes, &o, invalid, (uint64_t)i + 8, text);
    }
    ptowsp_context *context = test_lanes(2);
    assert_int_equal(ptowsp_moe_sort_parallel(context, &c.routes, &c.order, NULL, 9, NULL),
                     invalid);
    assert_string_equal(ptowsp_context_error(context).text, "plan: scratch is NULL");
    ptowsp_context_destroy(context);
    case_free(&c);
}

TEST(moe_sort__refuses_ids_and_rows_beyond_few_experts_and_on_lanes) {
    ptowsp_context *context = test_lanes(2);
    for (uint32_t experts = 16; experts < 2000; experts *= 64) {
        sort_case c = case_of(PTOWSP_MOE_SORT_PARALLEL_MIN, 1, experts, 8);
        uint32_t *scratch = fresh(4 * experts);
        ptowsp_plan_info info;
        c.ids[70] = (int32_t)experts;
        for (int call = 0; call < 2; call++) {
            assert_invalid(sort(call, context, &c.routes, &c.order, scratch, 4 * experts, &info));
            assert_int_equal(info.index, 70);
        }
        assert_int_equal(ptowsp_context_error(context).index, 70);
        c.ids[70] = 1;
        c.order.row_capacity = PTOWSP_MOE_SORT_PARALLEL_MIN + 7;  // one too few
        for (int call = 0; call < 2; call++) {
            assert_int_equal(sort(call, context, &c.routes, &c.order, scratch, 4 * experts, &info),
                             PTOWSP_BUFFER_OVERFLOW);
            assert_int_equal(info.value, PTOWSP_MOE_SORT_PARALLEL_MIN + 8);
        }
        assert_true(c.order.pairs[0] == 0x5a5a5a5a && c.order.counts[0] == 0x5a5a5a5a);
        c.order.row_capacity++;
        assert_ok(ptowsp_moe_sort(&c.routes, &c.order, &info));
        free(scratch);
        case_free(&c);
    }
    ptowsp_context_destroy(context);
}

TEST(moe_sort__takes_an_empty_step_without_arrays) {
    uint32_t counts[3] = {9, 9, 9}, offsets[4] = {9, 9, 9, 9};
    const ptowsp_moe_routes routes = {NULL, 0, 2, 3, 4};
    ptowsp_moe_order order = {counts, offsets, NULL, NULL, NULL, 0, 9, 9, 9, 9};
    ptowsp_context *context = test_lanes(2);
    for (int call = 0; call < 2; call++) {
        assert_ok(sort(call, context, &routes, &order, NULL, 0, NULL));
        for (int e = 0; e < 3; e++) {
            assert_int_equal(counts[e] + offsets[e + 1], 0);
        }
        assert_int_equal(order.pair_count + order.row_count + order.block_count, 0);
        assert_true(order.padding_share >= 0 && order.padding_share <= 0);
        memset(counts, 9, sizeof counts);
    }
    ptowsp_context_destroy(context);
}

typedef struct nested_sort {
    ptowsp_context *context;
    sort_case *c;
    uint32_t *scratch;
    uint64_t scratch_count;
} nested_sort;

static void sort_inside(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    const nested_sort *n = (const nested_sort *)user;
    (void)begin, (void)end, (void)lane;
    assert_int_equal(ptowsp_moe_sort_parallel(n->context, &n->c->routes, &n->c->order, n->scratch,
                                              n->scratch_count, NULL),
                     PTOWSP_BUSY);
}

TEST(moe_sort__writes_nothing_on_lanes_that_are_busy) {
    sort_case c = case_of(PTOWSP_MOE_SORT_PARALLEL_MIN, 1, 7, 0);
    ptowsp_context *context = test_lanes(2);
    nested_sort n = {context, &c, fresh(16), 16};
    assert_ok(ptowsp_parallel_for(context, 1, 1, sort_inside, &n));
    assert_true(c.order.rows[0] == 0x5a5a5a5a && c.order.counts[0] == 0x5a5a5a5a);
    ptowsp_context_destroy(context);
    free(n.scratch);
    case_free(&c);
}
