// Arguments of the parts that need no module: linear layouts, layouts over meshes, collectives, links
// and hubs. Each wrong one is refused by itself, in its words, and nothing is written.

#include "src/ranks/ranks.h"

#include "test.h"

// -- linear layouts -------------------------------------------------------------------------------

TEST(linear__without_a_result_is_refused) {
    ptowsp_linear one;
    assert_int_equal(ptowsp_linear_identity(3, &one), PTOWSP_OK);
    assert_int_equal(ptowsp_linear_identity(3, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_strided(3, 1, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_blocked(3, 1, 1, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_swizzle(3, 3, 0, 1, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_compose(&one, &one, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_transpose(&one, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_inverse(&one, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_conflicts(&one, 0, 1, NULL), PTOWSP_INVALID_PARAMS);
}

TEST(linear__sizes_have_limits) {
    ptowsp_linear one;
    uint64_t accesses;
    static const struct {
        uint32_t a, b, c, d;
        ptowsp_status status;
    } swizzles[] = {{32, 32, 0, 32, PTOWSP_OK},
                    {65, 0, 0, 0, PTOWSP_UNSUPPORTED_SIZE},
                    {60, 5, 0, 1, PTOWSP_UNSUPPORTED_SIZE},
                    {2, 8, 0, 3, PTOWSP_INVALID_PARAMS},
                    {8, 2, 3, 1, PTOWSP_INVALID_PARAMS},
                    {8, 4, 2, 3, PTOWSP_INVALID_PARAMS},
                    {8, 4, 2, 2, PTOWSP_OK}};
    for (uint32_t i = 0; i < sizeof swizzles / sizeof swizzles[0]; i++) {
        assert_int_equal(
            ptowsp_linear_swizzle(swizzles[i].a, swizzles[i].b, swizzles[i].c, swizzles[i].d, &one),
            swizzles[i].status);
    }
    assert_int_equal(ptowsp_linear_strided(64, 0, &one), PTOWSP_OK);
    assert_int_equal(ptowsp_linear_strided(65, 0, &one), PTOWSP_UNSUPPORTED_SIZE);
    assert_int_equal(ptowsp_linear_strided(60, 5, &one), PTOWSP_UNSUPPORTED_SIZE);
    assert_int_equal(ptowsp_linear_blocked(65, 1, 1, &one), PTOWSP_UNSUPPORTED_SIZE);
    assert_int_equal(ptowsp_linear_blocked(4, 5, 0, &one), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_blocked(4, 2, 3, &one), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_identity(4, &one), PTOWSP_OK);
    assert_int_equal(ptowsp_linear_conflicts(&one, 65, 0, &accesses), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_conflicts(&one, 60, 5, &accesses), PTOWSP_INVALID_PARAMS);
    // 16 words, 4 banks by their low bits: each is met 4 times.
    assert_int_equal(ptowsp_linear_conflicts(&one, 0, 2, &accesses), PTOWSP_OK);
    assert_int_equal(accesses, 4);
}

TEST(linear__matrices_that_are_none_are_refused) {
    ptowsp_linear good, wide, made;
    uint64_t accesses;
    assert_int_equal(ptowsp_linear_identity(3, &good), PTOWSP_OK);
    assert_int_equal(ptowsp_linear_strided(3, 2, &wide), PTOWSP_OK);  // 3 bits to 5
    ptowsp_linear bad[4] = {good, good, good, good};
    bad[0].in_bits = 65;
    bad[1].out_bits = 65;
    bad[2].columns[1] = 8;  // a bit that is not there
    bad[3].columns[7] = 1;  // a column that is not there
    const ptowsp_linear *all[5] = {NULL, &bad[0], &bad[1], &bad[2], &bad[3]};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(ptowsp_linear_compose(all[i], &good, &made), PTOWSP_INVALID_PARAMS);
        assert_int_equal(ptowsp_linear_compose(&good, all[i], &made), PTOWSP_INVALID_PARAMS);
        assert_int_equal(ptowsp_linear_transpose(all[i], &made), PTOWSP_INVALID_PARAMS);
        assert_int_equal(ptowsp_linear_inverse(all[i], &made), PTOWSP_INVALID_PARAMS);
        assert_int_equal(ptowsp_linear_conflicts(all[i], 0, 1, &accesses), PTOWSP_INVALID_PARAMS);
    }
    assert_int_equal(ptowsp_linear_inverse(&wide, &made), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_compose(&good, &wide, &made), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_linear_compose(&wide, &good, &made), PTOWSP_OK);
    assert_int_equal(ptowsp_linear_apply(&made, 5), 20);  // 101 two further
}

// -- layouts --------------------------------------------------------------------------------------

static const ptowsp_mesh mesh = {.axis_count = 1, .names = {"tp"}, .sizes = {2}};

static ptowsp_mesh_layout layout_of(uint32_t rank, int64_t rows, int64_t cols) {
    ptowsp_mesh_layout layout = {
        .name = "t", .element_bytes = 4, .rank = rank, .shape[0] = rows, .shape[1] = cols};
    return layout;
}

CONTEXT_TEST(layout__descriptions_are_refused_by_what_is_wrong) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    ptowsp_mesh_layout layout = layout_of(2, 4, 4);
    assert_int_equal(ptowsp_mesh_layout_check(context, &mesh, &layout), PTOWSP_OK);
    test_refused(context, ptowsp_mesh_layout_check(context, NULL, &layout), bad, PTOWSP_NO_INDEX,
                 "mesh: 0 axes; it has 1 to 4");
    test_refused(context, ptowsp_mesh_layout_check(context, &mesh, NULL), bad, PTOWSP_NO_INDEX,
                 "layout: it is NULL or has no name");
    layout.name = NULL;
    test_refused(context, ptowsp_mesh_layout_check(context, &mesh, &layout), bad, PTOWSP_NO_INDEX,
                 "layout: it is NULL or has no name");
    layout = layout_of(9, 4, 4);
    test_refused(context, ptowsp_mesh_layout_check(context, &mesh, &layout), bad, PTOWSP_NO_INDEX,
                 "layout: tensor 't' has 9 dimensions (at most 8) and elements of 4 bytes");
    layout = layout_of(2, 4, 4);
    layout.element_bytes = 0;
    test_refused(context, ptowsp_mesh_layout_check(context, &mesh, &layout), bad, PTOWSP_NO_INDEX,
                 "layout: tensor 't' has 2 dimensions (at most 8) and elements of 0 bytes");
    // 2^61 elements of 4 bytes are 2^63; products that do not fit 64 bits, and empty ones that do.
    static const int64_t sizes[3][2] = {
        {INT64_C(1) << 61, 1}, {INT64_C(1) << 61, 1 << 20}, {INT64_C(1) << 61, 0}};
    for (uint32_t i = 0; i < 3; i++) {
        layout = layout_of(2, sizes[i][0], sizes[i][1]);
        bool is_good = i == 2;
        assert_int_equal(ptowsp_mesh_layout_check(context, &mesh, &layout),
                         is_good ? PTOWSP_OK : PTOWSP_LIMIT_EXCEEDED);
        if (!is_good) {
            test_error_is(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                          "layout: the bytes of tensor 't' do not fit 63 bits");
        }
    }
    layout = layout_of(2, 4, 4);
    layout.spreads[0].kind = (ptowsp_spread_kind)9;
    test_refused(context, ptowsp_mesh_layout_check(context, &mesh, &layout), bad, 0,
                 "layout: tensor 't' of 2 dimensions along axis 'tp': kind 9, dimension 0");

    static const int64_t cuts[3][3] = {{1, 2, 4}, {0, 2, 3}, {0, 5, 4}};
    for (uint32_t i = 0; i < 3; i++) {
        layout = layout_of(2, 4, 4);
        layout.spreads[0].kind = PTOWSP_SHARDED;
        layout.spreads[0].cuts = cuts[i];
        test_refused(context, ptowsp_mesh_layout_check(context, &mesh, &layout), bad, 0,
                     "layout: cuts of dimension 0 of tensor 't' along axis 'tp' do not rise from "
                     "0 to 4");
    }
}

CONTEXT_TEST(layout__parts_joins_and_relayouts) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    ptowsp_mesh_layout a = layout_of(2, 4, 4), b = layout_of(2, 4, 6), line = layout_of(1, 4, 0);
    ptowsp_mesh_layout made, broken = a;
    ptowsp_mesh_layout_part part;
    ptowsp_relayout relayout;
    broken.element_bytes = 0;
    test_refused(context, ptowsp_mesh_layout_part_of(context, &mesh, &a, 2, &part), bad, 2,
                 "layout: rank 2 of 2 for tensor 't', or no part to write");
    test_refused(context, ptowsp_mesh_layout_part_of(context, &mesh, &a, 1, NULL), bad, 1,
                 "layout: rank 1 of 2 for tensor 't', or no part to write");
    test_refused(context, ptowsp_mesh_layout_part_of(context, NULL, &a, 1, &part), bad,
                 PTOWSP_NO_INDEX, "mesh: 0 axes; it has 1 to 4");
    assert_int_equal(ptowsp_mesh_layout_part_of(context, &mesh, &broken, 1, &part), bad);

    static const struct {
        int join, is_named, is_made, which;  // which: 0 a and a; 1 a and b; 2 a and a line; 3 lines
        const char *part;
    } joins[] = {{9, 1, 1, 0, "layout: no such operation, no name or no result: "},
                 {PTOWSP_JOIN_ADD, 0, 1, 0, "layout: no such operation, no name or no result: "},
                 {PTOWSP_JOIN_ADD, 1, 0, 0, "layout: no such operation, no name or no result: "},
                 {PTOWSP_JOIN_ADD, 1, 1, 1, "layout: shapes differ: "},
                 {PTOWSP_JOIN_ADD, 1, 1, 2, "layout: numbers of dimensions do not fit: "},
                 {PTOWSP_JOIN_MATMUL, 1, 1, 3, "layout: numbers of dimensions do not fit: "},
                 {PTOWSP_JOIN_MATMUL, 1, 1, 4, "layout: the inner sizes of the product differ: "}};
    for (uint32_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        const int which = joins[i].which;
        const ptowsp_mesh_layout *left = which == 3 ? &line : which == 4 ? &b : &a;
        const ptowsp_mesh_layout *right = which == 0   ? &a
                                          : which == 1 ? &b
                                          : which == 4 ? &a
                                                       : &line;
        assert_int_equal(ptowsp_mesh_layout_join(context, &mesh, (ptowsp_join)joins[i].join, left,
                                                 right, joins[i].is_named ? "c" : NULL,
                                                 joins[i].is_made ? &made : NULL),
                         bad);
        const char *text = ptowsp_context_error(context).text;
        if (strncmp(text, joins[i].part, strlen(joins[i].part)) != 0) {
            fail_msg("\"%s\" does not begin with \"%s\"", text, joins[i].part);
        }
    }
    assert_int_equal(
        ptowsp_mesh_layout_join(context, &mesh, PTOWSP_JOIN_ADD, &a, &broken, "c", &made), bad);
    assert_int_equal(
        ptowsp_mesh_layout_join(context, &mesh, PTOWSP_JOIN_MATMUL, &a, &b, "c", &made), PTOWSP_OK);
    assert_int_equal(made.shape[1], 6);

    ptowsp_mesh_layout small = a;
    small.element_bytes = 2;
    const ptowsp_mesh_layout *others[3] = {&b, &line, &small};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(ptowsp_mesh_layout_relayout(context, &mesh, &a, others[i], &relayout),
                         bad);
        assert_non_null(strstr(ptowsp_context_error(context).text,
                               "layout: relayout of other shapes or elements: "));
    }
    assert_int_equal(ptowsp_mesh_layout_relayout(context, &mesh, &a, &a, NULL), bad);
    assert_non_null(strstr(ptowsp_context_error(context).text, "layout: no relayout to write: "));
    assert_int_equal(ptowsp_mesh_layout_relayout(context, &mesh, &a, &broken, &relayout), bad);
}

// -- collectives, links, hubs ---------------------------------------------------------------------

static ptowsp_collective good_collective(void) {
    ptowsp_collective c = {.kind = PTOWSP_ALL_REDUCE,
                           .algorithm = PTOWSP_ALGORITHM_RING,
                           .dtype = PTOWSP_F32,
                           .count = 8,
                           .members = 4};
    return c;
}

static void refuses(ptowsp_context *context, const ptowsp_collective *c, ptowsp_status status,
                    const char *text) {
    ptowsp_collective_size size;
    assert_int_equal(ptowsp_collective_plan(context, c, 0, NULL, 0, &size), status);
    assert_string_equal(ptowsp_context_error(context).text, text);
}

CONTEXT_TEST(collective__is_refused_by_what_is_wrong) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    const uint64_t counts[16] = {0};
    ptowsp_collective c;
    ptowsp_collective_size size;
    ptowsp_collective_step step;
    refuses(context, NULL, bad, "ranks: no collective");
    c = good_collective();
    c.kind = (ptowsp_collective_kind)(PTOWSP_SLICE + 1);
    refuses(context, &c, bad, "ranks: kind 7, algorithm 4, reduction 0: there is no such value");
    c = good_collective();
    c.algorithm = (ptowsp_algorithm)(PTOWSP_ALGORITHM_RING + 1);
    refuses(context, &c, bad, "ranks: kind 0, algorithm 5, reduction 0: there is no such value");
    c = good_collective();
    c.reduction = (ptowsp_reduction)(PTOWSP_REDUCTION_MIN + 1);
    refuses(context, &c, bad, "ranks: kind 0, algorithm 4, reduction 3: there is no such value");
    c = good_collective();
    c.dtype = PTOWSP_DTYPE_NONE;
    refuses(context, &c, bad, "ranks: all_reduce: elements of type none");
    c.dtype = PTOWSP_BOOL;
    refuses(context, &c, bad, "ranks: all_reduce: elements of type bool");
    c = good_collective();
    c.members = 0;
    refuses(context, &c, bad, "ranks: all_reduce: no members");
    c = good_collective();
    c.first = PTOWSP_RANK_COUNT_MAX - 3;
    char text[128];
    snprintf(text, sizeof text,
             "ranks: all_reduce: 4 members from rank %d, each 1 on: at most %d ranks",
             PTOWSP_RANK_COUNT_MAX - 3, PTOWSP_RANK_COUNT_MAX);
    refuses(context, &c, PTOWSP_LIMIT_EXCEEDED, text);
    c = good_collective();
    c.counts = counts;
    refuses(context, &c, bad, "ranks: all_reduce: counts are of all_to_all, without count");
    c.kind = PTOWSP_ALL_TO_ALL;
    c.algorithm = PTOWSP_ALGORITHM_DIRECT;
    refuses(context, &c, bad, "ranks: all_to_all: counts are of all_to_all, without count");
    c.count = 0;
    assert_int_equal(ptowsp_collective_plan(context, &c, 0, NULL, 0, &size), PTOWSP_OK);
    c = good_collective();
    c.kind = PTOWSP_SEND;
    c.algorithm = PTOWSP_ALGORITHM_DIRECT;
    c.root = 4;
    refuses(context, &c, bad, "ranks: send: no member 4 of 4");
    c.root = 0;
    c.target = 5;
    refuses(context, &c, bad, "ranks: send: no member 5 of 4");

    c = good_collective();
    test_refused(context, ptowsp_collective_plan(context, &c, 4, NULL, 0, &size), bad, 4,
                 "ranks: all_reduce: no member 4 of 4");
    test_refused(context, ptowsp_collective_plan(context, &c, 0, NULL, 1, &size), bad,
                 PTOWSP_NO_INDEX, "ranks: all_reduce: a plan needs room to write");
    test_refused(context, ptowsp_collective_plan(context, &c, 0, &step, 1, NULL), bad,
                 PTOWSP_NO_INDEX, "ranks: all_reduce: a plan needs room to write");
    c.algorithm = PTOWSP_ALGORITHM_AUTO;
    test_refused(context, ptowsp_collective_plan(context, &c, 0, &step, 1, &size), bad,
                 PTOWSP_NO_INDEX, "ranks: all_reduce: a plan needs an algorithm");
}

CONTEXT_TEST(links__are_refused_by_what_is_wrong) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    const ptowsp_collective c = good_collective();
    ptowsp_collective_cost cost;
    ptowsp_links good = ptowsp_links_make((ptowsp_links_of)0), links;
    assert_int_equal(ptowsp_collective_time(context, &c, &good, &cost), PTOWSP_OK);
    test_refused(context, ptowsp_collective_time(context, &c, NULL, &cost), bad, PTOWSP_NO_INDEX,
                 "ranks: no links");
    for (uint32_t i = 0; i < 3; i++) {
        links = good;
        links.axis_count = i == 2 ? 1 : 0;
        links.axis_sizes[0] = 4;
        (i == 0   ? &links.inside
         : i == 1 ? &links.between
                  : &links.axes[0])
            ->sharing = (ptowsp_link_sharing)(PTOWSP_LINK_NODE + 1);
        test_refused(context, ptowsp_collective_time(context, &c, &links, &cost), bad,
                     PTOWSP_NO_INDEX, "ranks: links are shared in an unknown way");
    }
    links = good;
    links.axis_count = PTOWSP_MESH_AXIS_MAX + 1;
    test_refused(context, ptowsp_collective_time(context, &c, &links, &cost), bad, 5,
                 "ranks: links of 5 axes: there are at most 4");
    links.axis_count = 2;
    links.axis_sizes[0] = 4;
    links.axis_sizes[1] = 0;
    test_refused(context, ptowsp_collective_time(context, &c, &links, &cost), bad, 1,
                 "ranks: links along axis 1 of 0 ranks: a mesh has 1 to 65536 ranks");
    // Machines that are none have links that cost nothing.
    links = ptowsp_links_make((ptowsp_links_of)(PTOWSP_LINKS_ASCEND_910B_CORES + 1));
    assert_null(links.name);
    assert_int_equal(ptowsp_collective_time(context, &c, &links, &cost), PTOWSP_OK);
    assert_int_equal(cost.time_ps, 0);
}

// A choice on links without a name, of counts: 3 elements of 4 bytes. Nothing costs anything there.
CONTEXT_TEST(choice__is_said_for_counts_and_nameless_links) {
    const uint64_t counts[4] = {0, 1, 2, 0};
    ptowsp_collective c = good_collective();
    ptowsp_links none = ptowsp_links_make((ptowsp_links_of)1000);
    char text[256];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    c.kind = PTOWSP_ALL_TO_ALL;
    c.algorithm = PTOWSP_ALGORITHM_AUTO;
    c.members = 2;
    c.count = 0;
    c.counts = counts;
    assert_int_equal(ptowsp_collective_choose(context, &c, &none, ptowsp_output_to_buffer(&buffer)),
                     PTOWSP_OK);
    assert_true(c.algorithm != PTOWSP_ALGORITHM_AUTO);
    static const char begin[] = "all_to_all of 2 ranks, 12 bytes, on links: ";
    if (strncmp(text, begin, sizeof begin - 1) != 0 || !strstr(text, " 0.00 us")) {
        fail_msg("%s", text);
    }
    c = good_collective();
    c.algorithm = PTOWSP_ALGORITHM_AUTO;
    c.members = 1;
    none.name = "wires";
    buffer.length = 0;
    assert_int_equal(ptowsp_collective_choose(context, &c, &none, ptowsp_output_to_buffer(&buffer)),
                     PTOWSP_OK);
    assert_non_null(strstr(text, "all_reduce of 1 rank, 32 bytes, on wires:"));
    assert_int_equal(ptowsp_collective_choose(context, &c, NULL, ptowsp_output_to_buffer(&buffer)),
                     PTOWSP_INVALID_PARAMS);
    c.members = 0;
    assert_int_equal(ptowsp_collective_choose(context, &c, &none, ptowsp_output_to_buffer(&buffer)),
                     PTOWSP_INVALID_PARAMS);
}

// Sums of integers wrap; those of halves are rounded once. Both operands are of two elements.
TEST(reduction__of_every_type_wraps_or_rounds_once) {
    static const struct {
        ptowsp_dtype dtype;
        double a[2], b[2], sum[2], most[2], least[2];
    } cases[] = {{PTOWSP_I8, {100, -7}, {100, 3}, {-56, -4}, {100, 3}, {100, -7}},
                 {PTOWSP_U8, {200, 7}, {100, 3}, {44, 10}, {200, 7}, {100, 3}},
                 {PTOWSP_I16, {30000, -7}, {30000, 3}, {-5536, -4}, {30000, 3}, {30000, -7}},
                 {PTOWSP_U16, {60000, 7}, {10000, 3}, {4464, 10}, {60000, 7}, {10000, 3}},
                 {PTOWSP_I32, {2e9, -7}, {2e9, 3}, {-294967296, -4}, {2e9, 3}, {2e9, -7}},
                 {PTOWSP_U32, {4e9, 7}, {1e9, 3}, {705032704, 10}, {4e9, 7}, {1e9, 3}},
                 {PTOWSP_I64, {4e15, -7}, {-1, 3}, {3999999999999999, -4}, {4e15, 3}, {-1, -7}},
                 {PTOWSP_U64, {4e15, 7}, {1, 3}, {4000000000000001, 10}, {4e15, 7}, {1, 3}},
                 {PTOWSP_F32, {0.5, -7}, {1024, 3}, {1024.5, -4}, {1024, 3}, {0.5, -7}},
                 {PTOWSP_F64, {0.5, -7}, {1024, 3}, {1024.5, -4}, {1024, 3}, {0.5, -7}},
                 {PTOWSP_F16, {2048, -7}, {1, 3}, {2048, -4}, {2048, 3}, {1, -7}},
                 {PTOWSP_BF16, {256, -7}, {1, 3}, {256, -4}, {256, 3}, {1, -7}}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double *const expected[3] = {cases[i].sum, cases[i].most, cases[i].least};
        const ptowsp_reduction reductions[3] = {PTOWSP_REDUCTION_SUM, PTOWSP_REDUCTION_MAX,
                                                PTOWSP_REDUCTION_MIN};
        const ptowsp_dtype dtype = cases[i].dtype;
        for (uint32_t k = 0; k < 3; k++) {
            uint64_t a[2], b[2], to[2];
            double got[2];
            assert_int_equal(ptowsp_convert(a, dtype, cases[i].a, PTOWSP_F64, 2), PTOWSP_OK);
            assert_int_equal(ptowsp_convert(b, dtype, cases[i].b, PTOWSP_F64, 2), PTOWSP_OK);
            pwsp_reduce_elements(reductions[k], dtype, to, a, b, 2);
            assert_int_equal(ptowsp_convert(got, PTOWSP_F64, to, dtype, 2), PTOWSP_OK);
            for (uint32_t j = 0; j < 2; j++) {
                if (got[j] < expected[k][j] || got[j] > expected[k][j]) {
                    fail_msg("%s, reduction %u: %g, expected %g", ptowsp_dtype_name(dtype), k,
                             got[j], expected[k][j]);
                }
            }
        }
    }
}

CONTEXT_TEST(hub__is_refused_by_what_is_wrong) {
    ptowsp_hub *hub = NULL;
    static const struct {
        uint32_t ranks, bytes, shown;
    } cases[] = {{0, 64, 64},
                 {PTOWSP_HUB_RANK_MAX + 1, 0, 65536},
                 {2, 32, 32},
                 {2, UINT32_C(1) << 31, UINT32_C(1) << 31},
                 {2, 96, 96}};
    char text[200];
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ptowsp_hub_desc desc = {cases[i].ranks, cases[i].bytes, false};
        assert_int_equal(ptowsp_hub_create(context, &desc, &hub), PTOWSP_INVALID_PARAMS);
        assert_null(hub);
        snprintf(text, sizeof text,
                 "ranks: hub of %u ranks, rings of %u bytes: it has 1 to 256 ranks, and rings of a "
                 "power of two from 64 bytes to 2^30",
                 (unsigned)cases[i].ranks, (unsigned)cases[i].shown);
        test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
    }
    const ptowsp_hub_desc good = {2, 64, false};
    assert_int_equal(ptowsp_hub_create(context, &good, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_hub_create(context, NULL, &hub), PTOWSP_INVALID_PARAMS);
    assert_non_null(strstr(ptowsp_context_error(context).text, "hub of 0 ranks, rings of 65536"));
    assert_int_equal(ptowsp_hub_create(context, &good, &hub), PTOWSP_OK);
    ptowsp_hub_destroy(hub);
}
