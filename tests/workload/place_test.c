// Relayouts that the library places in workloads: where, once for each value, and what is refused.
// What must come out is written down by hand; modules are given as texts. See also
// layout_random_test.c, which runs random ones.

#include "test.h"

#include "src/data/layout_rule.h"

// -- texts ----------------------------------------------------------------------------------------

enum { TEXT = 1 << 14 };

static ptowsp_context *context_of(test_memory *memory) {
    ptowsp_context_desc desc = {0};
    if (memory) {
        desc.resize = test_resize;
        desc.resize_user = memory;
    }
    ptowsp_context *context = test_context(&desc);
    return context;
}

static ptowsp_module *module_of(ptowsp_context *context, const char *text) {
    const ptowsp_parse_desc desc = {NULL, 0, 1};
    ptowsp_module *m = NULL;
    if (ptowsp_module_parse(context, text, strlen(text), &desc, &m, NULL) != PTOWSP_OK) {
        m = NULL;
    }
    return m;
}

static void print_of(const ptowsp_module *m, char *out) {
    ptowsp_output_buffer buffer = {out, TEXT, 0};
    ptowsp_module_print(m, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length < TEXT);
}

// Kernels of all tests.
#define KERNELS                                                                                    \
    "kernel matmul(axes 0, in a f32 ? x ?, in b f32 ? x ?, out c f32 ? x ?) cube, 1 cycles, time " \
    "only\nrule matmul \"*mk *kn mn\"\n"                                                           \
    "kernel add(axes 0, in a f32 ? x ?, in b f32 ? x ?, out c f32 ? x ?) vector, 1 cycles, time "  \
    "only\nrule add \"+mn +mn mn\"\n"                                                              \
    "kernel larger(axes 0, in a f32 ? x ?, in b f32 ? x ?, out c f32 ? x ?) vector, 1 cycles, "    \
    "time only\nrule larger \"^mn ^mn mn\"\n"                                                      \
    "kernel norm(axes 0, in x f32 ? x ?, out y f32 ? x ?) vector, 1 cycles, time only\n"           \
    "rule norm \"m. m.\"\n"                                                                        \
    "kernel all(axes 0, in x f32 ? x ?, out y f32 ? x ?) vector, 1 cycles, time only\n"            \
    "kernel twice(axes 0, inout x f32 ? x ?) vector, 1 cycles, time only\n"                        \
    "rule twice \"mn\"\n"                                                                          \
    "kernel more(axes 0, inout x f32 ? x ?) vector, 1 cycles, time only\n"                         \
    "rule more \"+mn\"\n"                                                                          \
    "kernel small(axes 0, in x f32 4 x 4, out y f32 4 x 4) vector, 1 cycles, time only\n"          \
    "rule small \"mn mn\"\n"                                                                       \
    "kernel over(axes 0, in a f32 ? x ?, in b f32 ? x ?, inout c f32 ? x ?) cube, 1 cycles, time " \
    "only\nrule over \"mk kn mn\"\n"                                                               \
    "kernel onto(axes 0, in a f32 ? x ?, in b f32 ? x ?, inout c f32 ? x ?) cube, 1 cycles, time " \
    "only\nrule onto \"*mk *kn +mn\"\n"                                                            \
    "kernel fuse(axes 0, in a f32 ? x ?, in b f32 ? x ?, inout c f32 ? x ?) cube, 1 cycles, time " \
    "only\nrule fuse \"*mn *mn +mn\"\n"                                                            \
    "kernel two(axes 0, in x f32 ? x ?, out y f32 ? x ?, out z f32 ? x ?) vector, 1 cycles, time " \
    "only\nrule two \"mn mn m.\"\n"

// Tensors on a mesh of dp 2, tp 4; r replicated, m and n by rows and columns over tp, s and x
// partial, d by rows over dp, b by both axes.
#define TENSORS                                                                                    \
    "module m\nmesh dp 2, tp 4 by direct\naxis i 2\naxis j dynamic\nsymbol k\n"                    \
    "tensor r f32 [16, 16] global\n"                                                               \
    "tensor r2 f32 [16, 16] global\n"                                                              \
    "tensor m f32 [16, 16] global spread tp dim 0\n"                                               \
    "tensor n f32 [16, 16] global spread tp dim 1\n"                                               \
    "tensor n2 f32 [16, 16] global spread tp dim 1\n"                                              \
    "tensor s f32 [16, 16] global spread tp sum\n"                                                 \
    "tensor s2 f32 [16, 16] global spread tp sum\n"                                                \
    "tensor x f32 [16, 16] global spread tp max\n"                                                 \
    "tensor d f32 [16, 16] global spread dp dim 0\n"                                               \
    "tensor b f32 [16, 16] global spread dp dim 0, tp dim 1\n"                                     \
    "tensor bs f32 [16, 16] global spread dp sum, tp sum\n"                                        \
    "tensor six f32 [6, 16] global\n"                                                              \
    "tensor six_m f32 [6, 16] global spread dp dim 0\n"                                            \
    "tensor eight f32 [16, 8] global spread tp dim 1\n"                                            \
    "tensor open f32 [?, 16] global spread tp sum\n"                                               \
    "tensor grown f32 [size(j) * 4, 16] global transient spread tp dim 0\n"                        \
    "tensor e f32 [4, 16, 16] global spread dp dim 0\n"                                            \
    "tensor e2 f32 [4, 16, 16] global\n"                                                           \
    "tensor flags i32 [4] global spread dp sum\n"

#define ON(tensor)             " = " tensor " of edge x edge"
#define UNARY(kernel, in, out) "task " kernel "() x" ON(in) " y" ON(out) "\n"
#define BINARY(kernel, left, right, out)                                                           \
    "task " kernel "() a" ON(left) " b" ON(right) " c" ON(out) "\n"
#define STEP(kernel, from, to) "task " kernel "() in" ON(from) " out" ON(to) "\n"

// The statements of `given` become those of `wanted`, and such a text stays what it is.
static void becomes(const char *given, const char *wanted) {
    static char text[TEXT], out[TEXT], again[TEXT], due[TEXT];
    ptowsp_context *context = context_of(NULL);
    snprintf(text, TEXT, TENSORS KERNELS "workload w\n%s", given);
    ptowsp_module *m = module_of(context, text), *read;
    if (!m) {
        print_error("%s\n", ptowsp_context_error(context).text);
    }
    assert_non_null(m);
    print_of(m, out);
    snprintf(due, TEXT, "workload w\n%s", wanted);
    assert_string_equal(strstr(out, "workload w\n"), due);
    read = module_of(context, out);
    assert_non_null(read);
    print_of(read, again);
    assert_string_equal(again, out);
    ptowsp_program *program = NULL;
    if (!strstr(given, "grown")) {
        assert_int_equal(ptowsp_program_create(context, m, NULL, &program), PTOWSP_OK);
    }
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(read);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

TEST(place__each_change_is_its_collective) {
    static const char *const unary[][3] = {
        // Operand and result of `all`, and the steps.
        {"s", "r", STEP("all_reduce.tp.f32", "s", "s.1") "s.1"},
        {"x", "r", STEP("all_reduce.tp.f32.max", "x", "x.1") "x.1"},
        {"m", "r", STEP("all_gather.tp.f32", "m", "m.1") "m.1"},
        {"n", "r", STEP("all_gather.tp.f32.columns", "n", "n.1") "n.1"},
        {"d", "r", STEP("all_gather.dp.f32", "d", "d.1") "d.1"},
        {"bs", "r",
         STEP("all_reduce.tp.f32", "bs", "bs.1") "  " STEP("all_reduce.dp.f32", "bs.1",
                                                           "bs.2") "bs.2"},
        {"b", "r",
         STEP("all_gather.tp.f32.columns", "b", "b.1") "  " STEP("all_gather.dp.f32", "b.1",
                                                                 "b.2") "b.2"},
    };
    for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++) {
        char given[512], wanted[1024];
        const char *last = strrchr(unary[i][2], '\n') + 1;
        snprintf(given, sizeof given, "  task all() x = %s of edge x edge y = %s of edge x edge\n",
                 unary[i][0], unary[i][1]);
        snprintf(wanted, sizeof wanted,
                 "  %.*s  task all() x = %s of edge x edge y = %s of edge x edge\n",
                 (int)(last - unary[i][2]), unary[i][2], last, unary[i][1]);
        becomes(given, wanted);
    }
    // By rows from columns; from partial sums; from what is there.
    becomes("  " BINARY("add", "n", "r", "m"),
            "  " STEP("all_to_all.tp.f32.to_rows", "n", "n.1") "  " STEP(
                "slice.tp.f32", "r", "r.1") "  " BINARY("add", "n.1", "r.1", "m"));
    becomes("  " BINARY("add", "m", "s", "n"),
            "  " STEP("all_to_all.tp.f32.to_columns", "m", "m.1") "  " STEP(
                "reduce_scatter.tp.f32.columns", "s", "s.1") "  " BINARY("add", "m.1", "s.1", "n"));
}

// On paper, from the table of the header.
TEST(place__results_say_what_operands_need) {
    static const char *const same[] = {
        BINARY("matmul", "r", "r", "r2"), BINARY("matmul", "r", "n", "n2"),
        BINARY("matmul", "n", "m", "s"),  BINARY("matmul", "s", "r", "s2"),
        BINARY("matmul", "r", "s", "s2"), BINARY("matmul", "d", "n", "b"),
        BINARY("add", "s", "s", "s2"),    BINARY("add", "n", "n", "n2"),
        BINARY("larger", "x", "r", "x"),  BINARY("larger", "x", "x", "x"),
        UNARY("norm", "m", "m"),          "task more() x" ON("s") "\n",
        "task twice() x" ON("n") "\n",    BINARY("onto", "n", "m", "s"),
        BINARY("over", "m", "r", "m"),    BINARY("fuse", "s", "r", "s2"),
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "  %s", same[i]);
        becomes(text, text);
    }
    // Rows by dp of the left alone; both by what is summed over.
    becomes(
        "  " BINARY("matmul", "r", "r2", "n"),
        "  " STEP("slice.tp.f32.columns", "r2", "r2.1") "  " BINARY("matmul", "r", "r2.1", "n"));
    becomes("  " BINARY("matmul", "n", "n2", "s"),
            "  " STEP("all_to_all.tp.f32.to_rows", "n2", "n2.1") "  " BINARY("matmul", "n", "n2.1",
                                                                             "s"));
    becomes("  " BINARY("matmul", "r", "m", "s"),
            "  " STEP("slice.tp.f32.columns", "r", "r.1") "  " BINARY("matmul", "r.1", "m", "s"));
    becomes("  " UNARY("norm", "n", "m"),
            "  " STEP("all_to_all.tp.f32.to_rows", "n", "n.1") "  " UNARY("norm", "n.1", "m"));
    // A dimension in front is one of both tensors, or of none.
    becomes("  task norm() x = e[0] of edge x edge y = e[1] of edge x edge\n",
            "  task norm() x = e[0] of edge x edge y = e[1] of edge x edge\n");
}

// -- once for each value --------------------------------------------------------------------------

#define LOOP "  parallel p in i\n"

TEST(place__values_are_brought_over_once) {
    // Two tasks; again after a write; a view of its own.
    becomes("  " UNARY("all", "s", "r") "  " UNARY("all", "s", "r2"),
            "  " STEP("all_reduce.tp.f32", "s",
                      "s.1") "  " UNARY("all", "s.1", "r") "  " UNARY("all", "s.1", "r2"));
    becomes("  " UNARY("all", "s", "r") "  task more() x" ON("s") "\n  " UNARY("all", "s", "r2"),
            "  " STEP("all_reduce.tp.f32", "s", "s.1") "  " UNARY(
                "all", "s.1",
                "r") "  task more() x" ON("s") "\n  " STEP("all_reduce.tp.f32", "s",
                                                           "s.1") "  " UNARY("all", "s.1", "r2"));
    becomes("  " UNARY("all", "s", "r") "  task all() x = s at (8, 0) of 8 x edge y" ON("r2") "\n",
            "  " STEP("all_reduce.tp.f32", "s", "s.1") "  " UNARY(
                "all", "s.1", "r") "  task all_reduce.tp.f32() in = s at (8, 0) of 8 x edge out = "
                                   "s.1 at (8, 0) of 8 x edge"
                                   "\n  task all() x = s.1 at (8, 0) of 8 x edge y" ON("r2") "\n");
    // Out of a loop; not with its variable; not if it writes.
    becomes(LOOP "    " UNARY("all", "n", "r"), "  " STEP("all_gather.tp.f32.columns", "n", "n.1")
                                                    LOOP "    " UNARY("all", "n.1", "r"));
    becomes(
        "  for_each p in i\n    sequence\n      for_each q in i\n        " UNARY("all", "n", "r"),
        "  " STEP(
            "all_gather.tp.f32.columns", "n",
            "n.1") "  for_each p in i\n    sequence\n      for_each q in i\n        " UNARY("all",
                                                                                            "n.1",
                                                                                            "r"));
    becomes(LOOP "    task all() x = s at (p * 8, 0) of 8 x edge y = r at (p * 8, 0) of 8 x edge\n",
            LOOP
            "    task all_reduce.tp.f32() in = s at (p * 8, 0) of 8 x edge out = s.1 at (p * 8, "
            "0) of 8 x edge\n    task all() x = s.1 at (p * 8, 0) of 8 x edge y = r at (p * 8, "
            "0) of 8 x edge\n");
    becomes("  for_each p in i\n    " UNARY("all", "s", "r") "    task more() x" ON("s") "\n",
            "  for_each p in i\n    " STEP("all_reduce.tp.f32", "s", "s.1") "    " UNARY(
                "all", "s.1", "r") "    task more() x" ON("s") "\n");
    becomes("  for_each p in i\n    task more() x" ON("s") "\n    " UNARY("all", "s", "r"),
            "  for_each p in i\n    task more() x" ON("s") "\n    " STEP(
                "all_reduce.tp.f32", "s", "s.1") "    " UNARY("all", "s.1", "r"));
    // Before a loop that writes it, it is not what the loop reads.
    becomes("  " UNARY("all", "s", "r") "  for_each p in i\n    " UNARY(
                "all", "s", "r2") "    task more() x" ON("s") "\n",
            "  " STEP("all_reduce.tp.f32", "s", "s.1") "  " UNARY(
                "all", "s.1",
                "r") "  for_each p in i\n    " STEP("all_reduce.tp.f32", "s",
                                                    "s.1") "    " UNARY("all", "s.1",
                                                                        "r2") "    task more() "
                                                                              "x" ON("s") "\n");
    // Under a condition: for this alone; for both, if before.
    becomes("  when k == 1u\n    " UNARY("all", "s", "r") "  " UNARY("all", "s", "r2"),
            "  when k == 1u\n    " STEP("all_reduce.tp.f32", "s", "s.1") "    " UNARY(
                "all", "s.1", "r") "  " STEP("all_reduce.tp.f32", "s",
                                             "s.1") "  " UNARY("all", "s.1", "r2"));
    becomes(
        "  " UNARY("all", "s", "r") "  when k == 1u\n    " UNARY(
            "all", "s", "r2") "  otherwise\n    " UNARY("all", "s", "r2"),
        "  " STEP("all_reduce.tp.f32", "s", "s.1") "  " UNARY(
            "all", "s.1",
            "r") "  when k == 1u\n    " UNARY("all", "s.1",
                                              "r2") "  otherwise\n    " UNARY("all", "s.1", "r2"));
    // Slots may change between.
    becomes(
        "  slot_set 0 = 0\n  task all() x = s at (slot_i64[0], 0) of 8 x edge y" ON(
            "r") "\n  "
                 "slot_set "
                 "0 = 8\n  "
                 "task "
                 "all() x "
                 "= s at "
                 "(slot_"
                 "i64[0], "
                 "0) of 8 "
                 "x edge "
                 "y" ON("r") "\n",
        "  slot_set 0 = 0\n  task all_reduce.tp.f32() in = s at (slot_i64[0], 0) of 8 x edge out "
        "= s.1 at (slot_i64[0], 0) of 8 x edge\n  task all() x = s.1 at (slot_i64[0], 0) of 8 x "
        "edge y" ON("r") "\n  slot_set 0 = 8\n  task all_reduce.tp.f32() in = s at (slot_i64[0], "
                         "0) of 8 x edge "
                         "out = s.1 at (slot_i64[0], 0) of 8 x edge\n  task all() x = s.1 at "
                         "(slot_i64[0], 0) of "
                         "8 x edge y" ON("r") "\n");
}

// Calls may write; other workloads have tensors of their own.
TEST(place__calls_end_what_is_known) {
    static char text[TEXT], out[TEXT];
    ptowsp_context *context = context_of(NULL);
    snprintf(text, TEXT,
             TENSORS KERNELS "workload one\n  task more() x" ON("s") "\nworkload w\n  " UNARY(
                 "all", "s", "r") "  call one()\n  " UNARY("all", "s", "r2"));
    ptowsp_module *m = module_of(context, text);
    assert_non_null(m);
    print_of(m, out);
    assert_string_equal(
        strstr(out, "workload w\n"),
        "workload w\n  " STEP("all_reduce.tp.f32", "s", "s.1") "  " UNARY(
            "all", "s.1", "r") "  call one()\n  " STEP("all_reduce.tp.f32", "s",
                                                       "s.1") "  " UNARY("all", "s.1", "r2"));
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// Nodes behind new ones move: pipelines with channels, variables, edges.
TEST(place__what_names_nodes_follows_them) {
#define AROUND(first, second, third)                                                               \
    first "  pipeline pipe after node %u as node %u\n    channel c depth 1 latency 0\n"            \
          "    process from produces c\n      for_each v in i\n        send c(u64(v))\n"           \
          "      close c\n    process to consumes c\n      consume t from c\n        " UNARY(      \
              "norm", "r", "r2") second third
    char given[2048], wanted[2048];
    snprintf(given, sizeof given,
             AROUND("  task all() x" ON("s") " y" ON("r") " as node %u\n", "  ",
                    "task all() x" ON("x") " y" ON("r") " after node %u, node %u\n"),
             2, 2, 3, 2, 3);
    snprintf(wanted, sizeof wanted,
             AROUND("  " STEP("all_reduce.tp.f32", "s",
                              "s.1") "  task all() x" ON("s.1") " y" ON("r") " as node %u\n",
                    "  " STEP("all_reduce.tp.f32.max", "x", "x.1") "  ",
                    "task all() x" ON("x.1") " y" ON("r") " after node %u, node %u\n"),
             3, 3, 4, 3, 4);
    becomes(given, wanted);
#undef AROUND
}

// Transient tensors with sizes of the run, and names that are taken.
TEST(place__targets_have_sizes_and_names_of_their_own) {
    static char text[TEXT], out[TEXT];
    ptowsp_context *context = context_of(NULL);
    snprintf(
        text, TEXT,
        TENSORS
        "tensor s.1 f32 [2] global\ntensor dn f32 [16, 16] global spread dp dim 1\n" KERNELS
        "kernel all_reduce.tp.f32(axes 0, in x f32 ? x ?) vector, 1 cycles, time only\n"
        "workload w\n  " UNARY("norm", "m", "grown") "  " UNARY("all", "grown", "r") "  " UNARY(
            "all", "s", "r") "  " UNARY("norm", "n", "m") "  " BINARY("add", "bs", "bs", "dn"));
    ptowsp_module *m = module_of(context, text);
    assert_non_null(m);
    print_of(m, out);
    assert_non_null(strstr(out, "tensor grown.1 f32 [size(j) * 4 * 4, 16] global transient\n"));
    assert_non_null(strstr(out, "tensor s.2 f32 [16, 16] global transient\n"));
    assert_non_null(strstr(out,
                           "kernel all_gather.tp.f32(axes 0, in in f32 ? x ?, out out f32 ? x ?)"
                           " link, all_gather, members 4, stride 1\n"));
    assert_non_null(strstr(out,
                           "kernel all_to_all.tp.f32.to_rows(axes 0, in in f32 ? x ?, out out f32"
                           " ? x ?) link, all_to_all, members 4, stride 1, out columns\n"));
    assert_non_null(strstr(out,
                           "kernel reduce_scatter.dp.f32.columns(axes 0, in in f32 ? x ?, out out"
                           " f32 ? x ?) link, reduce_scatter, by direct, members 2, stride 4, in"
                           " columns\n"));
    assert_non_null(strstr(out, STEP("all_reduce.tp.f32.2", "s", "s.2")));
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// Tile kernels have rules as others; of a choice, each variant has its own, and its own relayout.
TEST(place__tile_kernels_and_variants_have_rules) {
    static char out[TEXT], again[TEXT];
    ptowsp_context *context = context_of(NULL);
    const ptowsp_mesh mesh = {1, {"tp", NULL, NULL, NULL}, {2, 0, 0, 0}};
    const ptowsp_spread columns = {PTOWSP_SHARDED, 1, NULL};
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_module_mesh(m, &mesh, PTOWSP_ALGORITHM_AUTO);
    ptowsp_tensor tensors[2];
    for (int i = 0; i < 2; i++) {
        const ptowsp_tensor_desc desc = {
            i ? "y" : "x", PTOWSP_F32, 2, {8, 16}, PTOWSP_LOCATION_GLOBAL};
        tensors[i] = ptowsp_tensor_make(m, &desc);
    }
    ptowsp_tensor_spread(m, tensors[0], &columns);
    ptowsp_body_desc body = {.name = "exp"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &body);
    const ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 16);
    ptowsp_tile_store(ptowsp_tile_out(k, "y", PTOWSP_F32, 8, 16), ptowsp_tile_exp(x));
    ptowsp_choice_desc choice = {.name = "either", .variants[0].kernel = ptowsp_kernel_end(k)};
    ptowsp_kernel_rule(m, choice.variants[0].kernel, ".. ..");
    ptowsp_kernel_desc desc = {
        .name = "other", .cycles = 1, .tiles[0].name = "x", .tiles[1].name = "y"};
    for (int i = 0; i < 2; i++) {
        desc.tiles[i].direction = i ? PTOWSP_OUT : PTOWSP_IN;
        desc.tiles[i].dtype = PTOWSP_F32;
        desc.tiles[i].rows = desc.tiles[i].cols = PTOWSP_DYNAMIC;
    }
    choice.variants[1].kernel = ptowsp_kernel_make(m, &desc);
    choice.variants[0].priority = 1;
    choice.variants[0].condition = ptowsp_eq(ptowsp_symbol(m, "k"), ptowsp_u64(m, 1));
    const ptowsp_kernel either = ptowsp_kernel_choice(m, &choice);
    ptowsp_workload_begin(m, "w");
    ptowsp_task_desc task = {
        .kernel = either, .views[0].tensor = tensors[0], .views[1].tensor = tensors[1]};
    task.views[0].rows = task.views[1].rows = 8;
    task.views[0].cols = task.views[1].cols = 16;
    ptowsp_task_make(m, &task);
    ptowsp_scope_end(m);
    assert_string_equal(ptowsp_module_error(m).text, "");
    print_of(m, out);
    assert_non_null(strstr(out, "rule exp \".. ..\"\n"));
    const char *gather =
        "    task all_gather.tp.f32.columns() in = x of 8 x edge out = x.1 of 8 x edge\n";
    const char *first = strstr(out, gather);
    assert_non_null(first);
    assert_non_null(strstr(first + 1, gather));
    assert_non_null(strstr(out, "    task exp() x = x.1 y = y\n"));
    assert_non_null(strstr(out, "    task other() x = x.1 of 8 x edge y = y of 8 x 16\n"));
    const ptowsp_parse_desc attach = {NULL, 0, 1};
    ptowsp_module *read = NULL;
    assert_int_equal(ptowsp_module_parse(context, out, strlen(out), &attach, &read, NULL),
                     PTOWSP_OK);
    print_of(read, again);
    assert_string_equal(again, out);
    ptowsp_module_destroy(read);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

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

// The layout of a tensor has its whole shape: that of a module's is the part of a rank. It is spread once,
// and before it is used.
TEST(place__tensors_have_layouts) {
    static char text[TEXT];
    ptowsp_context *context = context_of(NULL);
    snprintf(text, TEXT, TENSORS KERNELS "workload w\n  " UNARY("norm", "m", "m"));
    ptowsp_module *m = module_of(context, text);
    assert_non_null(m);
    const ptowsp_tensor r = {1};
    ptowsp_mesh_layout layout;
    memset(&layout, 0xff, sizeof layout);
    assert_int_equal(ptowsp_tensor_layout(m, r, &layout), PTOWSP_OK);
    assert_string_equal(layout.name, "r");
    assert_int_equal(layout.rank, 2);
    assert_int_equal(layout.element_bytes, 4);
    assert_int_equal(layout.shape[0], 16);
    assert_int_equal(layout.shape[1], 16);
    assert_int_equal(layout.spreads[0].kind, PTOWSP_REPLICATED);
    assert_int_equal(layout.spreads[1].kind, PTOWSP_REPLICATED);
    uint32_t found = 0;
    for (uint32_t id = 2; ptowsp_tensor_layout(m, (ptowsp_tensor){id}, &layout) == PTOWSP_OK;
         id++) {
        if (strcmp(layout.name, "m") == 0) {
            found++;
            assert_int_equal(layout.shape[0], 16);
            assert_int_equal(layout.shape[1], 16);
            assert_int_equal(layout.spreads[1].kind, PTOWSP_SHARDED);
            assert_int_equal(layout.spreads[1].dim, 0);
        }
    }
    assert_int_equal(found, 1);
    ptowsp_module_destroy(m);

    static const char *const uses[] = {"  task twice() x" ON("t") "\n", "  slot_load 0 = t\n"};
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(text, TEXT,
                 "module m\nmesh tp 4\ntensor t %s [16, 16] global\n" KERNELS "workload w\n%s",
                 i ? "i32" : "f32", uses[i]);
        m = module_of(context, text);
        assert_string_equal(ptowsp_module_error(m).text, "");
        const ptowsp_spread rows[] = {{PTOWSP_SHARDED, 0, NULL}};
        ptowsp_tensor_spread(m, (ptowsp_tensor){1}, rows);
        assert_string_equal(ptowsp_module_error(m).text,
                            "m: tensor t: a tensor is spread once, and before it is used");
        ptowsp_module_destroy(m);
    }
    ptowsp_context_destroy(context);
}

// A maximum that goes on from itself may stay partial; of the others, one that is no operand of the
// maximum has to be whole. Letters may be capitals.
TEST(place__maxima_go_on_from_themselves) {
    static char text[TEXT], out[TEXT];
    ptowsp_context *context = context_of(NULL);
    snprintf(text, TEXT,
             TENSORS KERNELS
             "kernel keep(axes 0, in a f32 ? x ?, inout x f32 ? x ?) vector, 1 cycles, time only\n"
             "rule keep \"MN ^MN\"\n"
             "workload w\n"
             "  task keep() a" ON("r") " x" ON("x") "\n"
                                                    "  task keep() a" ON("s") " x" ON("x") "\n");
    ptowsp_module *m = module_of(context, text);
    assert_string_equal(ptowsp_context_error(context).text, "");
    assert_non_null(m);
    print_of(m, out);
    assert_string_equal(
        strstr(out, "workload w\n"),
        "workload w\n  task keep() a" ON("r") " x" ON("x") "\n  " STEP(
            "all_reduce.tp.f32", "s", "s.1") "  task keep() a" ON("s.1") " x" ON("x") "\n");
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// -- what is refused ------------------------------------------------------------------------------

static void is_refused(const char *statements, const char *why) {
    static char text[TEXT];
    ptowsp_context *context = context_of(NULL);
    snprintf(text, TEXT, TENSORS KERNELS "workload w\n%s", statements);
    assert_null(module_of(context, text));
    const char *said = strstr(ptowsp_context_error(context).text, "w/");
    assert_string_equal(said ? said : ptowsp_context_error(context).text, why);
    ptowsp_context_destroy(context);
}

TEST(place__joins_that_cannot_be_are_refused) {
    // Partial tensors that are read, and not summed up.
    is_refused("  task twice() x" ON("s") "\n",
               "w/task twice: parameter x, tensor s, axis 'tp': a partial tensor is read: s[16 x "
               "16] {dp: replicated, tp: partial sum}, and s[16 x "
               "16] {dp: replicated, tp: replicated} is needed");
    is_refused(
        "  " BINARY("over", "n", "m", "s"),
        "w/task over: parameter c, tensor s, axis 'tp': a partial tensor is read: s[16 x 16] {dp: "
        "replicated, tp: partial sum}, and s[16 x 16] {dp: replicated, tp: replicated} is needed");
    // Each rank would add all of the product, which is not a summand.
    is_refused(
        "  " BINARY("fuse", "r", "r2", "s"),
        "w/task fuse: parameter c, tensor s, axis 'tp': a partial tensor is read: s[16 x 16] "
        "{dp: replicated, tp: partial sum}, and s[16 x 16] {dp: replicated, tp: replicated} is "
        "needed");
    is_refused(
        "  task twice() x" ON("x") "\n",
        "w/task twice: parameter x, tensor x, axis 'tp': a partial tensor is read: x[16 x 16] {dp: "
        "replicated, tp: partial max}, and x[16 x 16] {dp: replicated, tp: replicated} is needed");
    is_refused("  " BINARY("add", "r", "s", "s2"),
               "w/task add: parameter a: layout: axis 'tp': relayout makes nothing partial: r[16 x "
               "16] {dp: replicated, tp: replicated} and r[16 x 16] {dp: replicated, tp: partial "
               "sum}");
    is_refused(
        "  slot_load 0 = flags\n",
        "w/slot_load 0: a slot is loaded from tensor flags, which is not replicated: flags[4] "
        "{dp: partial sum, tp: replicated}");
    is_refused(
        "  " BINARY("larger", "s", "r", "x"),
        "w/task larger: parameter c, tensor x, axis 'tp': no operand is spread so that the "
        "result is a partial maximum: x[16 x 16] {dp: replicated, tp: partial max}, and x[16 "
        "x 16] {dp: replicated, tp: replicated} is needed");
    // Results.
    is_refused("  " BINARY("matmul", "r", "r", "s"),
               "w/task matmul: parameter c, tensor s, axis 'tp': no operand is spread so that the "
               "result is a partial sum: s[16 x 16] {dp: replicated, tp: partial sum}, and s[16 x "
               "16] {dp: replicated, tp: replicated} is needed");
    is_refused(
        "  " UNARY("norm", "r", "n"),
        "w/task norm: parameter y, tensor n, dimension 1, axis 'tp': the kernel makes all of "
        "this dimension at once: n[16 x 16] {dp: replicated, tp: dim 1}, and n[16 x 16] {dp: "
        "replicated, tp: replicated} is needed");
    is_refused("  task two() x" ON("r") " y" ON("n") " z" ON("r2") "\n",
               "w/task two: parameter z, tensor r2, axis 'tp': it has no dimension by which the "
               "other result is sharded: r2[16 x 16] {dp: replicated, tp: replicated}, and r2[16 x "
               "16] {dp: replicated, tp: replicated} is needed");
    is_refused("  task two() x" ON("r") " y" ON("m") " z" ON("r2") "\n",
               "w/task two: parameter z, tensor r2, axis 'tp': the results of the task are spread "
               "differently: r2[16 x 16] {dp: replicated, tp: replicated}, and r2[16 x 16] {dp: "
               "replicated, tp: dim 0} is needed");
    is_refused("  task two() x" ON("r") " y" ON("m") " z" ON("n") "\n",
               "w/task two: parameter z, tensor n, dimension 1, axis 'tp': the results of the task "
               "are spread differently: n[16 x 16] {dp: replicated, tp: dim 1}, and n[16 x 16] "
               "{dp: replicated, tp: dim 0} is needed");
    // A kernel without a rule makes all of each tile at once.
    is_refused("  " UNARY("all", "r", "m"),
               "w/task all: parameter y, tensor m, dimension 0, axis 'tp': the kernel makes all of "
               "this dimension at once: m[16 x 16] {dp: replicated, tp: dim 0}, and m[16 x 16] "
               "{dp: replicated, tp: replicated} is needed");
    // Sizes.
    is_refused("  " BINARY("add", "n", "eight", "n2"),
               "w/task add: parameter b, tensor eight, dimension 1, axis 'tp': another tile has "
               "another size of this dimension: eight[16 x 8] {dp: replicated, tp: dim 1}, and "
               "eight[16 x 8] {dp: replicated, tp: dim 1} is needed");
}

TEST(place__relayouts_that_cannot_be_are_refused) {
    // A slice of 6 rows for 4 ranks.
    static char text[TEXT];
    ptowsp_context *context = context_of(NULL);
    snprintf(text, TEXT,
             TENSORS
             "tensor t f32 [6, 16] global spread dp dim 0\ntensor u f32 [?, 16] global spread "
             "tp dim 0\n" KERNELS "workload w\n  " UNARY("norm", "six", "u"));
    assert_null(module_of(context, text));
    assert_non_null(
        strstr(ptowsp_context_error(context).text,
               "w/task norm: parameter x: layout: dimension 0 of tensor 'six', of 6, is "
               "not divided by 4 pieces with axis 'tp'"));
    ptowsp_context_destroy(context);
    is_refused("  task all() x = n at (0, 1) of edge x edge y" ON("r") "\n",
               "w/task all: parameter x, tensor n, dimension 1, axis 'tp': the view is a part of "
               "this dimension: n[16 x 16] {dp: replicated, tp: dim 1}, and n[16 x 16] {dp: "
               "replicated, tp: replicated} is needed");
    is_refused("  task all() x = m of 2 x edge y" ON("r") "\n",
               "w/task all: parameter x, tensor m, dimension 0, axis 'tp': the view is a part of "
               "this dimension: m[16 x 16] {dp: replicated, tp: dim 0}, and m[16 x 16] {dp: "
               "replicated, tp: replicated} is needed");
    is_refused("  task all() x = m up to 4 rows of edge x edge y" ON("r") "\n",
               "w/task all: parameter x, tensor m, dimension 0, axis 'tp': the view is a part of "
               "this dimension: m[16 x 16] {dp: replicated, tp: dim 0}, and m[16 x 16] {dp: "
               "replicated, tp: replicated} is needed");
    is_refused("  task small() x = m y = r\n",
               "w/task small: parameter x, tensor m, dimension 0, axis 'tp': the kernel's tile is "
               "too small for it: m[16 x 16] {dp: replicated, tp: dim 0}, and m[16 x 16] {dp: "
               "replicated, tp: replicated} is needed");
    is_refused(
        "  task all() x = e[0] of edge x edge y" ON("r") "\n",
        "w/task all: parameter x, tensor e, dimension 0, axis 'dp': views have an index of "
        "this dimension: e[4 x 16 x 16] {dp: dim 0, tp: replicated}, and e[4 x 16 x 16] {dp: "
        "replicated, tp: replicated} is needed");
    is_refused(
        "  " UNARY("all", "open", "r"),
        "w/task all: parameter x, tensor open, axis 'tp': a relayout needs sizes that are "
        "declared, or a transient tensor: open[? x 16] {dp: replicated, tp: partial sum}, and "
        "open[? x 16] {dp: replicated, tp: replicated} is needed");
    is_refused("  pipeline p\n    process q\n      " UNARY("all", "s", "r"),
               "w/pipeline p/process q/task all: parameter x, tensor s, axis 'tp': there are no "
               "collectives in processes: s[16 x 16] {dp: replicated, tp: partial sum}, and s[16 x "
               "16] {dp: replicated, tp: replicated} is needed");
}

// As many nodes as a module may have; one relayout is one too many.
TEST(place__relayouts_count_as_nodes) {
    static char text[TEXT];
    ptowsp_context *context = context_of(NULL);
    snprintf(text, TEXT, TENSORS KERNELS);
    ptowsp_module *m = module_of(context, text);
    assert_non_null(m);
    ptowsp_task_desc all = {0};
    ptowsp_task_desc norm = {.kernel.id = 4};
    norm.views[0].tensor.id = norm.views[1].tensor.id = 2;  // r2
    all.kernel.id = 5;
    all.views[0].tensor.id = 6;  // s
    all.views[1].tensor.id = 1;  // r
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
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// A text that cannot be read.
static void is_wrong(const char *text, const char *why) {
    ptowsp_context *context = context_of(NULL);
    assert_null(module_of(context, text));
    assert_string_equal(ptowsp_context_error(context).text, why);
    ptowsp_context_destroy(context);
}

TEST(place__wrong_declarations_are_refused) {
#define MESH             "module m\nmesh tp 4\n"
#define AFTER(line, why) is_wrong(MESH line "\n", why)
    is_wrong("module m\nmesh tp 0\n", "2:1: m: mesh: axis 'tp' has size 0");
    is_wrong("module m\nmesh tp 4294967295\n",
             "2:1: m: mesh: more than 65536 ranks with axis 'tp' of 4294967295");
    is_wrong("module m\nmesh tp 4294967296\n", "2:9: this number is too large here");
    is_wrong("module m\nmesh tp 32768\n",
             "2:1: m: mesh: 32768 ranks; programs run on at most 16384");
    is_wrong("module m\nmesh tp 2, tp 2\n", "2:1: m: mesh: axis 'tp' is there twice");
    is_wrong("module m\nmesh a 1, b 1, c 1, d 1, e 1\n", "2:26: a mesh of more than 4 axes");
    is_wrong("module m\nmesh tp 2 by magic\n",
             "2:14: an algorithm is missing here: direct, doubling, hierarchical or ring");
    AFTER("mesh dp 2", "3:1: m: mesh: there is one already");
    is_wrong("module m\nworkload w\nmesh dp 2\n",
             "3:1: m: mesh: it comes before the first workload");
    AFTER("tensor t f32 [6] global spread tp dim 0",
          "3:1: m: layout: dimension 0 of tensor 't', of 6, is not divided by 4 pieces with "
          "axis 'tp'");
    AFTER("tensor t f32 [8] global spread tp dim 1",
          "3:1: m: layout: tensor 't' of 1 dimensions along axis 'tp': kind 1, dimension 1");
    AFTER("tensor t f32 [8] global spread dp sum", "3:35: the mesh has no axis dp");
    AFTER("tensor t f32 [8] global spread tp sum, tp sum", "3:43: axis tp is there twice");
    AFTER("tensor t f32 [8] global spread 5 sum",
          "3:32: the name of an axis of the mesh is missing here");
    is_wrong("module m\nmesh 5 2\n", "2:6: the name of an axis of a mesh is missing here");
    AFTER("rule 5 \"mn\"", "3:6: the name of a kernel is missing here");
    AFTER("rule all 5", "3:10: the name of a rule is missing here");
    AFTER("tensor t f32 [8] global spread tp all",
          "3:35: a spread is missing here: dim, sum or max");
    is_wrong("module m\ntensor t f32 [8] global spread tp sum\n", "2:35: the mesh has no axis tp");
    AFTER("rule none \"mn\"", "3:15: there is no kernel none");
#define RULE(rule) MESH KERNELS "rule all \"" rule "\"\n"
    is_wrong(RULE("mn"), "26:1: m: rule of kernel all: it has 1 words, and the kernel 2 tiles");
    is_wrong(RULE("mn mn mn"),
             "26:1: m: rule of kernel all: it has 3 words, and the kernel 2 tiles");
    is_wrong(RULE("mn mn mn mn mn mn mn mn mn mn mn mn mn mn mn mn mn"),
             "26:1: m: rule of kernel all: it has more words than a task has tiles");
    is_wrong(RULE("[n mn"),
             "26:1: m: rule of kernel all: a word is a mark +, * or ^, if it has one, "
             "and two letters or dots");
    is_wrong(RULE("mn  mn"),
             "26:1: m: rule of kernel all: a word is a mark +, * or ^, if it has one, "
             "and two letters or dots");
    is_wrong(RULE("mm mn"), "26:1: m: rule of kernel all: a word has two different letters");
    is_wrong(RULE("mn mnk"), "26:1: m: rule of kernel all: words have one space between them");
    is_wrong(RULE("-n mn"),
             "26:1: m: rule of kernel all: a word is a mark +, * or ^, if it has one, "
             "and two letters or dots");
    is_wrong(RULE("mn mn") "rule all \"mn mn\"\n",
             "27:1: m: rule of kernel all: there is one already");
    AFTER("kernel k(axes 0, inout data f32 ? x ?) link, all_reduce\nrule k \"mn\"",
          "4:1: m: rule of kernel k: a collective has none");
}

// What texts cannot say.
TEST(place__wrong_calls_are_refused) {
    ptowsp_context *context = context_of(NULL);
    const ptowsp_mesh mesh = {1, {"tp", NULL, NULL, NULL}, {2, 0, 0, 0}};
    const int64_t cuts[] = {0, 3, 8};
    const ptowsp_spread by_cuts = {PTOWSP_SHARDED, 0, cuts}, sum = {PTOWSP_PARTIAL_SUM, 0, NULL};
    const ptowsp_tensor none = {0};
    const ptowsp_kernel no_kernel = {0};
    static const char *const wanted[] = {
        "m: mesh: 9 is no algorithm",
        "m: spread: there is no tensor 0, or no spreads",
        "m: spread: there is no tensor 1, or no spreads",
        "m: tensor t: it is spread, and the module has no mesh",
        "m: tensor t: dimension 0 is cut at given places by axis 'tp'; tensors of modules have "
        "equal "
        "pieces",
        "m: tensor t: a tensor is spread once, and before it is used",
        "m: tensor t: a tensor is spread once, and before it is used",
        "m: rule: there is no kernel 0, or no rule",
    };
    for (int i = 0; i < 8; i++) {
        const ptowsp_module_desc desc = {"m", 0};
        ptowsp_tensor_desc t = {.name = "t", .dtype = PTOWSP_I32, .rank = 1, .shape[0] = 8};
        ptowsp_module *m = test_module(context, &desc);
        if (i != 3) {
            ptowsp_module_mesh(m, &mesh, (ptowsp_algorithm)(i == 0 ? 9 : 0));
        }
        const ptowsp_tensor tensor = ptowsp_tensor_make(m, &t);
        const ptowsp_view view = {tensor, {{NULL, 0}}, {NULL, 0}, {NULL, 0},
                                  0,      0,           {NULL, 0}, {NULL, 0}};
        const ptowsp_expr zero = {NULL, 0};
        switch (i) {
        case 1: ptowsp_tensor_spread(m, none, &sum); break;
        case 2: ptowsp_tensor_spread(m, tensor, NULL); break;
        case 3: ptowsp_tensor_spread(m, tensor, &sum); break;
        case 4: ptowsp_tensor_spread(m, tensor, &by_cuts); break;
        case 5:
            ptowsp_tensor_spread(m, tensor, &sum);
            ptowsp_tensor_spread(m, tensor, &sum);
            break;
        case 6:
            ptowsp_workload_begin(m, "w");
            ptowsp_slot_load_make(m, 0, &view, zero, zero);
            ptowsp_scope_end(m);
            ptowsp_tensor_spread(m, tensor, &sum);
            break;
        case 7: ptowsp_kernel_rule(m, no_kernel, "mn"); break;
        default: break;
        }
        assert_string_equal(ptowsp_module_error(m).text, wanted[i]);
        ptowsp_mesh_layout layout;
        assert_int_equal(ptowsp_tensor_layout(m, none, &layout), PTOWSP_INVALID_PARAMS);
        ptowsp_module_destroy(m);
    }
    ptowsp_context_destroy(context);
}

// -- programs -------------------------------------------------------------------------------------

#define STEPS                                                                                      \
    "module m\nmesh tp 4 by direct\ntensor s f32 [16, 16] global spread tp sum\n"                  \
    "tensor r f32 [16, 16] global\n" KERNELS "workload w\n  " UNARY("all", "s", "r")

// On four ranks, of 16 x 16 f32: a rank gets three quarters of what it gathers (768 bytes) and sends as
// much of what it reduces and scatters; of rows that become columns it sends three quarters of its
// fourth (192); a part of what it has moves nothing.
TEST(place__programs_say_what_a_rank_moves) {
    static const char *const wanted[][2] = {{"task all_gather.tp.f32() m", ", moves 768 bytes"},
                                            {"task slice.tp.f32() r", ", moves 0 bytes"},
                                            {"task reduce_scatter.tp.f32", ", moves 768 bytes"},
                                            {"task all_to_all.tp.f32", ", moves 192 bytes"}};
    static char text[TEXT];
    ptowsp_context *context = context_of(NULL);
    ptowsp_module *m = module_of(
        context,
        "module m\nmesh tp 4 by direct\ntensor m f32 [16, 16] global spread tp dim 0\n"
        "tensor n f32 [16, 16] global spread tp dim 1\ntensor r f32 [16, 16] global\n"
        "tensor s f32 [16, 16] global spread tp sum\n" KERNELS "workload w\n  " UNARY(
            "all", "m", "r") "  " BINARY("add", "n", "r", "m") "  " BINARY("add", "m", "s", "n"));
    assert_non_null(m);
    ptowsp_output_buffer buffer = {text, TEXT, 0};
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_program_print(program, ptowsp_output_to_buffer(&buffer));
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const char *line = strstr(text, wanted[i][0]);
        if (!line) {
            fail_msg("no %s in\n%s", wanted[i][0], text);
        }
        const char *end = strchr(line, '\n'), *moves = strstr(line, wanted[i][1]);
        if (!moves || moves + strlen(wanted[i][1]) != end) {
            fail_msg("%.*s, not%s", (int)(end - line), line, wanted[i][1]);
        }
    }
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

TEST(place__programs_are_saved_timed_and_not_emitted) {
    static char text[TEXT];
    ptowsp_context *context = context_of(NULL);
    ptowsp_module *m = module_of(context, STEPS);
    ptowsp_program *loaded = NULL;
    ptowsp_run *run = NULL;
    assert_non_null(m);
    ptowsp_output_buffer buffer = {text, TEXT, 0};
    // As a ring of 4: 2 * (256 - 64) elements.
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_program_print(program, ptowsp_output_to_buffer(&buffer));
    assert_non_null(strstr(text, "task all_reduce.tp.f32() s[0, 0] s.1[0, 0], moves 1536 bytes\n"));
    ptowsp_program_destroy(program);
    buffer.length = 0;
    assert_int_equal(ptowsp_program_save(context, m, NULL, ptowsp_output_to_buffer(&buffer)),
                     PTOWSP_OK);
    const ptowsp_parse_desc attach = {NULL, 0, 1};
    assert_int_equal(ptowsp_program_load(context, text, buffer.length, &attach, &loaded, NULL),
                     PTOWSP_OK);
    assert_int_equal(ptowsp_program_create(context, m, NULL, &program), PTOWSP_OK);

    // An all-reduce of 1 KiB, directly: each sends parts of 256 bytes to three others at 1 byte a ns
    // through one port, and twice: 2 * (3 * 256 ns + 1000 ns) = 3536 ns; then the task of 1 cycle.
    ptowsp_run_ranks ranks = {.rank_count = 4,
                              .links.inside.latency_ps = 1000000,
                              .links.inside.bytes_per_us = 1000,
                              .cycles_per_us = 1000};
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ptowsp_run_create(context, i ? loaded : program, &run), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_ranks(run, &ranks), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(run, &options), PTOWSP_OK);
        assert_int_equal(ptowsp_run_result(run)->makespan_cycles, 3537);
        assert_int_equal(ptowsp_run_result(run)->task_count, 2);
        ranks.rank_count = 8;
        assert_int_equal(ptowsp_run_bind_ranks(run, &ranks), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(run, &options), PTOWSP_INVALID_PARAMS);
        assert_string_equal(ptowsp_context_error(context).text,
                            "run: 8 ranks are bound, and the module's mesh has 4");
        ranks.rank_count = 4;
        ptowsp_run_destroy(run);
    }
    assert_int_equal(ptowsp_program_check(context, program, PTOWSP_TARGET_ASCEND_NPU),
                     PTOWSP_UNSUPPORTED);
    assert_string_equal(
        ptowsp_context_error(context).text,
        "kernel all_reduce.tp.f32: target ascend_npu does not do tasks of a collective");
    ptowsp_program_destroy(loaded);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// Sizes of the run that a collective cannot cut.
TEST(place__columns_that_do_not_divide_are_refused_by_the_run) {
    static const struct {
        int64_t in, out;
        const char *why;
    } cases[] = {
        {10, 2, "w/task k: task 0: slice: in has 10 columns, which 4 members do not divide"},
        {12, 2, "w/task k: task 0: slice: out has 8 elements, and the collective takes 12"},
        {12, 3, ""}};
    ptowsp_context *context = context_of(NULL);
    ptowsp_module *m = module_of(
        context, "module m\ntensor a f32 [4, ?] global\ntensor b f32 [4, ?] global\nkernel k(axes "
                 "0, in in f32 ? x ?, out out f32 ? x ?) link, slice, members 4, in columns\n"
                 "workload w\n  task k() in" ON("a") " out" ON("b") "\n");
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_run *run = test_run_of(context, program);
    ptowsp_run_options options = {0};
    ptowsp_run_ranks ranks = {.rank_count = 4};
    options.mode = PTOWSP_RUN_TIME_ONLY;
    assert_int_equal(ptowsp_run_bind_ranks(run, &ranks), PTOWSP_OK);
    for (int i = 0; i < 3; i++) {
        ptowsp_buffer buffer = {.rank = 2, .shape[0] = 4, .shape[1] = cases[i].in};
        assert_int_equal(ptowsp_run_bind_tensor(run, "a", &buffer), PTOWSP_OK);
        buffer.shape[1] = cases[i].out;
        assert_int_equal(ptowsp_run_bind_tensor(run, "b", &buffer), PTOWSP_OK);
        const ptowsp_status status = ptowsp_run_execute(run, &options);
        assert_int_equal(status, cases[i].why[0] ? PTOWSP_UNSUPPORTED_SIZE : PTOWSP_OK);
        if (cases[i].why[0]) {
            assert_string_equal(ptowsp_context_error(context).text, cases[i].why);
        }
    }
    test_destroy(run, program, m, context);
}

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
    length += (size_t)snprintf(text + length, TEXT - length,
                               "  " BINARY("add", "m", "bs", "b") LOOP
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
            ptowsp_context *context = context_of(&memory);
            memory.refuse_at = memory.allocations + n;
            ptowsp_module *m = module_of(context, text);
            is_done = m != NULL;
            // No refusal is passed over.
            assert_true(m == NULL || memory.allocations < memory.refuse_at);
            if (!m) {
                assert_int_equal(ptowsp_context_error(context).status, PTOWSP_OUT_OF_MEMORY);
            }
            ptowsp_module_destroy(m);
            ptowsp_context_destroy(context);
            assert_int_equal(memory.live_blocks, 0);
        }
    }
}
