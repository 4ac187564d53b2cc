// Arguments of the parts that need no module: linear layouts, layouts over meshes, collectives, links
// and hubs. Each wrong one is refused by itself, in its words, and nothing is written.

#include "src/ranks/ranks.h"

#include "test.h"

// -- linear layouts -------------------------------------------------------------------------------

TEST(linear__without_a_result_is_refused) {
    ptowsp_linear one;
    assert_ok(ptowsp_linear_identity(3, &one));
    assert_invalid(ptowsp_linear_identity(3, NULL));
    assert_invalid(ptowsp_linear_strided(3, 1, NULL));
    assert_invalid(ptowsp_linear_blocked(3, 1, 1, NULL));
    assert_invalid(ptowsp_linear_swizzle(3, 3, 0, 1, NULL));
    assert_invalid(ptowsp_linear_compose(&one, &one, NULL));
    assert_invalid(ptowsp_linear_transpose(&one, NULL));
    assert_invalid(ptowsp_linear_inverse(&one, NULL));
    assert_invalid(ptowsp_linear_conflicts(&one, 0, 1, NULL));
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
    for (uint32_t i = 0; i < COUNT_OF(swizzles); i++) {
        assert_int_equal(
            ptowsp_linear_swizzle(swizzles[i].a, swizzles[i].b, swizzles[i].c, swizzles[i].d, &one),
            swizzles[i].status);
    }
    assert_ok(ptowsp_linear_strided(64, 0, &one));
    assert_int_equal(ptowsp_linear_strided(65, 0, &one), PTOWSP_UNSUPPORTED_SIZE);
    assert_int_equal(ptowsp_linear_strided(60, 5, &one), PTOWSP_UNSUPPORTED_SIZE);
    assert_int_equal(ptowsp_linear_blocked(65, 1, 1, &one), PTOWSP_UNSUPPORTED_SIZE);
    assert_invalid(ptowsp_linear_blocked(4, 5, 0, &one));
    assert_invalid(ptowsp_linear_blocked(4, 2, 3, &one));
    assert_ok(ptowsp_linear_identity(4, &one));
    assert_invalid(ptowsp_linear_conflicts(&one, 65, 0, &accesses));
    assert_invalid(ptowsp_linear_conflicts(&one, 60, 5, &accesses));
    // 16 words, 4 banks by their low bits: each is met 4 times.
    assert_ok(ptowsp_linear_conflicts(&one, 0, 2, &accesses));
    assert_int_equal(accesses, 4);
}

TEST(linear__matrices_that_are_none_are_refused) {
    ptowsp_linear good, wide, made;
    uint64_t accesses;
    assert_ok(ptowsp_linear_identity(3, &good));
    assert_ok(ptowsp_linear_strided(3, 2, &wide));  // 3 bits to 5
    ptowsp_linear bad[4] = {good, good, good, good};
    bad[0].in_bits = 65;
    bad[1].out_bits = 65;
    bad[2].columns[1] = 8;  // a bit that is not there
    bad[3].columns[7] = 1;  // a column that is not there
    const ptowsp_linear *all[5] = {NULL, &bad[0], &bad[1], &bad[2], &bad[3]};
    for (uint32_t i = 0; i < 5; i++) {
        assert_invalid(ptowsp_linear_compose(all[i], &good, &made));
        assert_invalid(ptowsp_linear_compose(&good, all[i], &made));
        assert_invalid(ptowsp_linear_transpose(all[i], &made));
        assert_invalid(ptowsp_linear_inverse(all[i], &made));
        assert_invalid(ptowsp_linear_conflicts(all[i], 0, 1, &accesses));
    }
    assert_invalid(ptowsp_linear_inverse(&wide, &made));
    assert_invalid(ptowsp_linear_compose(&good, &wide, &made));
    assert_ok(ptowsp_linear_compose(&wide, &good, &made));
    assert_int_equal(ptowsp_linear_apply(&made, 5), 20);  // 101 two further
}

// -- layouts --------------------------------------------------------------------------------------

static const ptowsp_mesh mesh = {.axis_count = 1, .names = {"tp"}, .sizes = {2}};

static ptowsp_mesh_layout layout_of(uint32_t rank, int64_t rows, int64_t cols) {
    ptowsp_mesh_layout layout = {
        .name = "t", .element_bytes = 4, .rank = rank, .shape[0] = rows, .shape[1] = cols};
    return layout;
}

// A good layout, but for a change.
#define LAYOUT_REFUSED(change, status, index, text)                                                \
    layout = layout_of(2, 4, 4);                                                                   \
    change;                                                                                        \
    test_refused(context, ptowsp_mesh_layout_check(context, &mesh, &layout), status, index,        \
                 "layout: " text)

CONTEXT_TEST(layout__descriptions_are_refused_by_what_is_wrong) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    ptowsp_mesh_layout layout = layout_of(2, 4, 4);
    assert_ok(ptowsp_mesh_layout_check(context, &mesh, &layout));
    test_invalid(context, ptowsp_mesh_layout_check(context, NULL, &layout),
                 "mesh: 0 axes; it has 1 to 4");
    test_invalid(context, ptowsp_mesh_layout_check(context, &mesh, NULL),
                 "layout: it is NULL or has no name");
    LAYOUT_REFUSED(layout.name = NULL, bad, PTOWSP_NO_INDEX, "it is NULL or has no name");
    LAYOUT_REFUSED(layout.rank = 9, bad, PTOWSP_NO_INDEX,
                   "tensor 't' has 9 dimensions (at most 8) and elements of 4 bytes");
    LAYOUT_REFUSED(layout.element_bytes = 0, bad, PTOWSP_NO_INDEX,
                   "tensor 't' has 2 dimensions (at most 8) and elements of 0 bytes");
    LAYOUT_REFUSED(layout.spreads[0].kind = (ptowsp_spread_kind)9, bad, 0,
                   "tensor 't' of 2 dimensions along axis 'tp': kind 9, dimension 0");
    // 2^61 elements of 4 bytes are 2^63; products that do not fit 64 bits, and empty ones that do.
    LAYOUT_REFUSED(layout = layout_of(2, INT64_C(1) << 61, 1), PTOWSP_LIMIT_EXCEEDED,
                   PTOWSP_NO_INDEX, "the bytes of tensor 't' do not fit 63 bits");
    LAYOUT_REFUSED(layout = layout_of(2, INT64_C(1) << 61, 1 << 20), PTOWSP_LIMIT_EXCEEDED,
                   PTOWSP_NO_INDEX, "the bytes of tensor 't' do not fit 63 bits");
    layout = layout_of(2, INT64_C(1) << 61, 0);
    assert_ok(ptowsp_mesh_layout_check(context, &mesh, &layout));
    static const int64_t cuts[3][3] = {{1, 2, 4}, {0, 2, 3}, {0, 5, 4}};
    for (uint32_t i = 0; i < 3; i++) {
        const ptowsp_spread spread = {PTOWSP_SHARDED, 0, cuts[i]};
        LAYOUT_REFUSED(layout.spreads[0] = spread, bad, 0,
                       "cuts of dimension 0 of tensor 't' along axis 'tp' do not rise from 0 to 4");
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
    for (uint32_t i = 0; i < COUNT_OF(joins); i++) {
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
    assert_ok(ptowsp_mesh_layout_join(context, &mesh, PTOWSP_JOIN_MATMUL, &a, &b, "c", &made));
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

CONTEXT_TEST(collective__is_refused_by_what_is_wrong) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS, large = PTOWSP_LIMIT_EXCEEDED;
    const uint64_t none = PTOWSP_NO_INDEX, counts[16] = {UINT64_MAX}, no_counts[16] = {0};
    ptowsp_collective c;
    ptowsp_collective_size size;
    ptowsp_collective_step step;
    test_invalid(context, ptowsp_collective_plan(context, NULL, 0, NULL, 0, &size),
                 "ranks: no collective");
// A good one but for a change.
#define REFUSED(change, status, index, text)                                                       \
    c = good_collective();                                                                         \
    change;                                                                                        \
    test_refused(context, ptowsp_collective_plan(context, &c, 0, NULL, 0, &size), status, index,   \
                 "ranks: " text)
    REFUSED(c.kind = (ptowsp_collective_kind)(PTOWSP_SLICE + 1), bad, none,
            "kind 7, algorithm 4, reduction 0: there is no such value");
    REFUSED(c.algorithm = (ptowsp_algorithm)(PTOWSP_ALGORITHM_RING + 1), bad, none,
            "kind 0, algorithm 5, reduction 0: there is no such value");
    REFUSED(c.reduction = (ptowsp_reduction)(PTOWSP_REDUCTION_MIN + 1), bad, none,
            "kind 0, algorithm 4, reduction 3: there is no such value");
    REFUSED(c.dtype = PTOWSP_DTYPE_NONE, bad, none, "all_reduce: elements of type none");
    REFUSED(c.dtype = PTOWSP_BOOL, bad, none, "all_reduce: elements of type bool");
    REFUSED(c.members = 0, bad, none, "all_reduce: no members");
    REFUSED(c.members = 16385, large, 16385,
            "all_reduce: 16385 members from rank 0, each 1 on: at most 16384 ranks");
    REFUSED(c.first = 16381, large, 4,
            "all_reduce: 4 members from rank 16381, each 1 on: at most 16384 ranks");
    REFUSED(c.counts = counts, bad, none, "all_reduce: counts are of all_to_all, without count");
    REFUSED((c.kind = PTOWSP_ALL_TO_ALL, c.algorithm = PTOWSP_ALGORITHM_DIRECT, c.counts = counts),
            bad, none, "all_to_all: counts are of all_to_all, without count");
    REFUSED((c.kind = PTOWSP_ALL_TO_ALL, c.count = 0, c.counts = counts), large, none,
            "all_to_all: its bytes do not fit 63 bits");
    REFUSED(c.count = UINT64_MAX / 8, large, none, "all_reduce: its bytes do not fit 63 bits");
    REFUSED((c.kind = PTOWSP_BROADCAST, c.root = 4), bad, 4, "broadcast: no member 4 of 4");
    REFUSED((c.kind = PTOWSP_SEND, c.root = 4), bad, 4, "send: no member 4 of 4");
    REFUSED((c.kind = PTOWSP_SEND, c.target = 5), bad, 5, "send: no member 5 of 4");
    REFUSED(c.kind = PTOWSP_SEND, PTOWSP_UNSUPPORTED, none, "send has no ring");
    REFUSED((c.algorithm = PTOWSP_ALGORITHM_HIERARCHICAL, c.node_size = 3), PTOWSP_UNSUPPORTED_SIZE,
            3, "all_reduce: nodes of 3 do not divide 4 members");
    REFUSED(c.algorithm = PTOWSP_ALGORITHM_AUTO, bad, none,
            "all_reduce: a plan needs an algorithm");
#undef REFUSED
    c = good_collective();
    c.kind = PTOWSP_ALL_TO_ALL;
    c.algorithm = PTOWSP_ALGORITHM_DIRECT;
    c.count = 0;
    c.counts = no_counts;
    assert_ok(ptowsp_collective_plan(context, &c, 0, NULL, 0, &size));
    c = good_collective();
    test_refused(context, ptowsp_collective_plan(context, &c, 4, NULL, 0, &size), bad, 4,
                 "ranks: all_reduce: no member 4 of 4");
    test_invalid(context, ptowsp_collective_plan(context, &c, 0, NULL, 1, &size),
                 "ranks: all_reduce: a plan needs room to write");
    test_invalid(context, ptowsp_collective_plan(context, &c, 0, &step, 1, NULL),
                 "ranks: all_reduce: a plan needs room to write");
    c.algorithm = PTOWSP_ALGORITHM_AUTO;
    test_invalid(context, ptowsp_collective_plan(context, &c, 0, &step, 1, &size),
                 "ranks: all_reduce: a plan needs an algorithm");
}

CONTEXT_TEST(links__are_refused_by_what_is_wrong) {
    const ptowsp_link_sharing unknown = (ptowsp_link_sharing)(PTOWSP_LINK_NODE + 1);
    const ptowsp_collective c = good_collective();
    ptowsp_collective no_algorithm = c;
    no_algorithm.algorithm = PTOWSP_ALGORITHM_AUTO;
    ptowsp_collective_cost cost;
    ptowsp_links good = ptowsp_links_make((ptowsp_links_of)0), links;
    assert_ok(ptowsp_collective_time(context, &c, &good, &cost));
    test_invalid(context, ptowsp_collective_time(context, &c, NULL, &cost), "ranks: no links");
    test_invalid(context, ptowsp_collective_time(context, NULL, &good, &cost),
                 "ranks: no collective");
    test_invalid(context, ptowsp_collective_time(context, &c, &good, NULL),
                 "ranks: all_reduce: its time needs room to write");
    test_invalid(context, ptowsp_collective_time(context, &no_algorithm, &good, &cost),
                 "ranks: all_reduce: its time needs an algorithm");
#define REFUSED(change, index, text)                                                               \
    links = good;                                                                                  \
    change;                                                                                        \
    test_refused(context, ptowsp_collective_time(context, &c, &links, &cost),                      \
                 PTOWSP_INVALID_PARAMS, index, "ranks: links " text)
    REFUSED(links.inside.sharing = unknown, PTOWSP_NO_INDEX, "are shared in an unknown way");
    REFUSED(links.between.sharing = unknown, PTOWSP_NO_INDEX, "are shared in an unknown way");
    REFUSED((links.axis_count = 1, links.axis_sizes[0] = 4, links.axes[0].sharing = unknown),
            PTOWSP_NO_INDEX, "are shared in an unknown way");
    REFUSED(links.axis_count = PTOWSP_MESH_AXIS_MAX + 1, 5, "of 5 axes: there are at most 4");
    REFUSED((links.axis_count = 2, links.axis_sizes[0] = 4), 1,
            "along axis 1 of 0 ranks: a mesh has 1 to 65536 ranks");
#undef REFUSED
    // Machines that are none have links that cost nothing.
    links = ptowsp_links_make((ptowsp_links_of)(PTOWSP_LINKS_ASCEND_910B_CORES + 1));
    assert_null(links.name);
    assert_ok(ptowsp_collective_time(context, &c, &links, &cost));
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
    assert_ok(ptowsp_collective_choose(context, &c, &none, ptowsp_output_to_buffer(&buffer)));
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
    assert_ok(ptowsp_collective_choose(context, &c, &none, ptowsp_output_to_buffer(&buffer)));
    assert_non_null(strstr(text, "all_reduce of 1 rank, 32 bytes, on wires:"));
    assert_invalid(ptowsp_collective_choose(context, &c, NULL, ptowsp_output_to_buffer(&buffer)));
    c.members = 0;
    assert_invalid(ptowsp_collective_choose(context, &c, &none, ptowsp_output_to_buffer(&buffer)));
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
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        const double *const expected[3] = {cases[i].sum, cases[i].most, cases[i].least};
        const ptowsp_reduction reductions[3] = {PTOWSP_REDUCTION_SUM, PTOWSP_REDUCTION_MAX,
                                                PTOWSP_REDUCTION_MIN};
        const ptowsp_dtype dtype = cases[i].dtype;
        for (uint32_t k = 0; k < 3; k++) {
            uint64_t a[2], b[2], to[2];
            double got[2];
            assert_ok(ptowsp_convert(a, dtype, cases[i].a, PTOWSP_F64, 2));
            assert_ok(ptowsp_convert(b, dtype, cases[i].b, PTOWSP_F64, 2));
            pwsp_reduce_elements(reductions[k], dtype, to, a, b, 2);
            assert_ok(ptowsp_convert(got, PTOWSP_F64, to, dtype, 2));
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
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        const ptowsp_hub_desc desc = {cases[i].ranks, cases[i].bytes, false};
        assert_invalid(ptowsp_hub_create(context, &desc, &hub));
        assert_null(hub);
        snprintf(text, sizeof text,
                 "ranks: hub of %u ranks, rings of %u bytes: it has 1 to 256 ranks, and rings of a "
                 "power of two from 64 bytes to 2^30",
                 (unsigned)cases[i].ranks, (unsigned)cases[i].shown);
        test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
    }
    const ptowsp_hub_desc good = {2, 64, false};
    assert_invalid(ptowsp_hub_create(context, &good, NULL));
    assert_invalid(ptowsp_hub_create(context, NULL, &hub));
    assert_non_null(strstr(ptowsp_context_error(context).text, "hub of 0 ranks, rings of 65536"));
    assert_ok(ptowsp_hub_create(context, &good, &hub));
    ptowsp_hub_destroy(hub);
}
