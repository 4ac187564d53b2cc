// Relayouts that the library places in workloads, where texts alone do not say it (tests/cases/relayouts.case):
// calls of the builder, joins, the limit of nodes, memory. collectives.case has their time, and builder.case which
// calls are refused; layout_random_test.c runs random ones.

#include "test.h"

#include "src/data/layout_rule.h"

// -- texts ----------------------------------------------------------------------------------------

enum { TEXT = 1 << 14 };

static ptowsp_module *module_of(ptowsp_context *context, const char *text) {
    const ptowsp_parse_desc desc = {NULL, 0, 1};
    ptowsp_module *m = NULL;
    (void)ptowsp_module_parse(context, text, strlen(text), &desc, &m, NULL);
    return m;
}

// Kernels of all tests: 1 is norm, 2 all.
#define KERNELS                                                                                    \
    "kernel norm(axes 0, in x f32 ? x ?, out y f32 ? x ?) vector, 1 cycles, time only\n"           \
    "rule norm \"m. m.\"\n"                                                                        \
    "kernel all(axes 0, in x f32 ? x ?, out y f32 ? x ?) vector, 1 cycles, time only\n"            \
    "kernel add(axes 0, in a f32 ? x ?, in b f32 ? x ?, out c f32 ? x ?) vector, 1 cycles, time "  \
    "only\nrule add \"+mn +mn mn\"\n"                                                              \
    "kernel twice(axes 0, inout x f32 ? x ?) vector, 1 cycles, time only\n"                        \
    "rule twice \"mn\"\n"

// Tensors on a mesh of dp 2, tp 4, from r, which is 1: replicated, r2 too, m by rows over tp, s and x
// partial, b by both axes.
#define TENSORS                                                                                    \
    "module m\nmesh dp 2, tp 4 by direct\naxis i 2\nsymbol k\n"                                    \
    "tensor r f32 [16, 16] global\n"                                                               \
    "tensor r2 f32 [16, 16] global\n"                                                              \
    "tensor m f32 [16, 16] global spread tp dim 0\n"                                               \
    "tensor s f32 [16, 16] global spread tp sum\n"                                                 \
    "tensor x f32 [16, 16] global spread tp max\n"                                                 \
    "tensor b f32 [16, 16] global spread dp dim 0, tp dim 1\n"                                     \
    "tensor bs f32 [16, 16] global spread dp sum, tp sum\n"

#define ON(tensor)             " = " tensor " of edge x edge"
#define UNARY(kernel, in, out) "task " kernel "() x" ON(in) " y" ON(out) "\n"
#define BINARY(kernel, left, right, out)                                                           \
    "task " kernel "() a" ON(left) " b" ON(right) " c" ON(out) "\n"

// -- rules ----------------------------------------------------------------------------------------

// The table of joins and the rules agree: what a join gives, the rule needs as it is; and where the
// rule needs nothing else, there is a join.
TEST(place__rules_are_those_of_joins) {
    static const struct {
        ptowsp_join join;
        const char *rule;
    } rows[] = {{PTOWSP_JOIN_ADD, "+mn +mn mn"},
                {PTOWSP_JOIN_MULTIPLY, "*mn *mn mn"},
                {PTOWSP_JOIN_MAX, "^mn ^mn mn"},
                {PTOWSP_JOIN_MATMUL, "*mk *kn mn"}};
    const ptowsp_mesh mesh = {1, {"tp", NULL, NULL, NULL}, {2, 0, 0, 0}};
    const ptowsp_spread spreads[] = {{PTOWSP_REPLICATED, 0, NULL},  {PTOWSP_SHARDED, 0, NULL},
                                     {PTOWSP_SHARDED, 1, NULL},     {PTOWSP_SHARDED, 2, NULL},
                                     {PTOWSP_PARTIAL_SUM, 0, NULL}, {PTOWSP_PARTIAL_MAX, 0, NULL}};
    unsigned met = 0;
    for (unsigned i = 0; i < 4 * 6 * 6 * 6; i++) {
        pwsp_rule rule;
        assert_null(pwsp_rule_read(rows[i / 216].rule, &rule));
        pwsp_rule_tile tiles[3] = {0};
        for (uint32_t t = 0; t < 3; t++) {
            tiles[t].is_read = t < 2;
            tiles[t].is_written = t == 2;
            tiles[t].have.name = "t";
            tiles[t].have.element_bytes = 4;
            tiles[t].have.rank = 3;
            tiles[t].have.shape[0] = tiles[t].have.shape[1] = tiles[t].have.shape[2] = 8;
            tiles[t].have.spreads[0] = spreads[i / (t == 0 ? 36 : t == 1 ? 6 : 1) % 6];
        }
        ptowsp_mesh_layout joined;
        const bool is_join =
            ptowsp_mesh_layout_join(NULL, &mesh, rows[i / 216].join, &tiles[0].have, &tiles[1].have,
                                    "t", &joined) == PTOWSP_OK &&
            pwsp_spread_is_same(&joined.spreads[0], &tiles[2].have.spreads[0], 8, 2);
        pwsp_rule_fault fault;
        bool is_rule = pwsp_rule_needs(&rule, &mesh, tiles, 3, &fault);
        for (uint32_t t = 0; t < 2; t++) {
            is_rule = is_rule && pwsp_spread_is_same(&tiles[t].have.spreads[0],
                                                     &tiles[t].need.spreads[0], 8, 2);
        }
        if (is_join != is_rule) {
            print_error("case %u\n", i);
        }
        assert_int_equal(is_join, is_rule);
        met += is_join;
    }
    assert_int_equal(met, 5 + 6 + 7 + 7);  // lines of the table, for each dimension that they mean
}

// The layout of a tensor has its whole shape: that of a module's is the part of a rank. What is no tensor has none.
CONTEXT_TEST(place__tensors_have_layouts) {
    static char text[TEXT];
    snprintf(text, TEXT, TENSORS KERNELS "workload w\n  " UNARY("norm", "m", "m"));
    ptowsp_module *m = module_of(context, text);
    assert_non_null(m);
    static const struct {
        ptowsp_tensor tensor;
        const char *name;
        ptowsp_spread_kind along_tp;
    } rows[] = {{{1}, "r", PTOWSP_REPLICATED}, {{3}, "m", PTOWSP_SHARDED}};
    ptowsp_mesh_layout layout;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        memset(&layout, 0xff, sizeof layout);
        assert_ok(ptowsp_tensor_layout(m, rows[i].tensor, &layout));
        assert_string_equal(layout.name, rows[i].name);
        assert_int_equal(layout.rank, 2);
        assert_int_equal(layout.element_bytes, 4);
        assert_int_equal(layout.shape[0], 16);
        assert_int_equal(layout.shape[1], 16);
        assert_int_equal(layout.spreads[0].kind, PTOWSP_REPLICATED);
        assert_int_equal(layout.spreads[1].kind, rows[i].along_tp);
        assert_int_equal(layout.spreads[1].dim, 0);
    }
    const ptowsp_tensor none = {0};
    for (int is_good = 1; is_good >= 0; is_good--) {
        assert_invalid(ptowsp_tensor_layout(m, none, &layout));
        ptowsp_tensor_spread(m, none, NULL);
    }
    test_destroy(NULL, NULL, m, NULL);
}

// As many nodes as a module may have; one relayout is one too many.
CONTEXT_TEST(place__relayouts_count_as_nodes) {
    ptowsp_module *m = module_of(context, TENSORS KERNELS);
    assert_non_null(m);
    const ptowsp_task_desc norm = {.kernel = {1}, .views = {{.tensor = {2}}, {.tensor = {2}}}};
    const ptowsp_task_desc all = {.kernel = {2}, .views = {{.tensor = {4}}, {.tensor = {1}}}};
    ptowsp_workload_begin(m, "w");
    for (uint32_t i = 0; i < PTOWSP_MODULE_NODE_MAX - 2; i++) {
        ptowsp_task_make(m, &norm);
    }
    ptowsp_task_make(m, &all);
    assert_string_equal(ptowsp_module_error(m).text, "");
    ptowsp_scope_end(m);
    assert_int_equal(ptowsp_module_error(m).status, PTOWSP_LIMIT_EXCEEDED);
    assert_string_equal(ptowsp_module_error(m).text,
                        "m: more than 1000000 nodes, with 1 relayouts");
    test_destroy(NULL, NULL, m, NULL);
}

// -- memory ---------------------------------------------------------------------------------------

// A module with relayouts behind so many declarations and tasks, which decide where its tables are
// full.
static void filled_text(char *text, uint32_t symbols, uint32_t tasks) {
    size_t length = (size_t)snprintf(text, TEXT, TENSORS KERNELS);
    for (uint32_t i = 0; i < symbols; i++) {
        length += (size_t)snprintf(
            text + length, TEXT - length,
            "symbol more_s%u\ntensor more_t%u f32 [16, 16] global\n"
            "kernel more_k%u(axes 0, in x f32 ? x ?) vector, 1 cycles, time only\n",
            i, i, i);
    }
    length += (size_t)snprintf(text + length, TEXT - length, "workload w\n");
    for (uint32_t i = 0; i < tasks; i++) {
        length += (size_t)snprintf(text + length, TEXT - length, "  " UNARY("norm", "r", "r2"));
    }
    length += (size_t)snprintf(
        text + length, TEXT - length,
        "  " BINARY("add", "m", "bs",
                    "b") "  parallel p in i\n"
                         "    " UNARY("all", "b", "r") "  task all() x" ON("s") " y" ON(
                             "r") " as node 1\n"
                                  "  task all() x" ON("x") " y" ON("r") " after node 1\n");
    assert_true(length < TEXT);
}

// Without the n-th allocation, for every n, there is an error and nothing leaks.
TEST(place__no_memory_is_an_error) {
    static char text[TEXT];
    for (uint32_t fill = 0; TEST_ROUNDS(fill, 40); fill++) {
        bool is_done = false;
        filled_text(text, fill, fill % 2 ? fill * 5 % 37 : 0);
        for (size_t n = 1; !is_done; n++) {
            test_memory memory = {0};
            const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
            ptowsp_context *context = test_context(&desc);
            memory.refuse_at = memory.allocations + n;
            ptowsp_module *m = module_of(context, text);
            is_done = m != NULL;
            // No refusal is passed over.
            assert_true(m == NULL || memory.allocations < memory.refuse_at);
            if (!m) {
                assert_int_equal(ptowsp_context_error(context).status, PTOWSP_OUT_OF_MEMORY);
            }
            test_destroy(NULL, NULL, m, context);
            assert_int_equal(memory.live_blocks, 0);
        }
    }
}
