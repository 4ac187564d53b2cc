// Sorting of MoE plans: beside a stable sort that looks for each expert's pairs in turn; on one lane
// and on several; with padding. Orders on paper, and most of what is refused, are in moe_facts_test.c.

#include "moe_sample.h"

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
