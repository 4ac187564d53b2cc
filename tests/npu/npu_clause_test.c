// Clauses of what is emitted for a program: a small one for each, and the lines that it is, in
// aicpu/expand.cpp and in its tables. What these do is tested where they run (npu_expand_test.c and
// others).

#include "npu_files.h"
#include "npu_fixture.h"

static const ptowsp_parse_kernel scale = NPU_SCALE_KERNEL("scale");

// A module, and what is looked for in its tree.
typedef struct clause {
    const char *module;
    bool is_in_streams;
    const char *lines[12], *manifest[4];  // what aicpu/expand.cpp and the manifest have
} clause;

static void clause_make(npu_fixture *f, const char *module, const ptowsp_parse_kernel *kernel,
                        bool is_in_streams) {
    npu_fixture_begin(f);
    npu_parse(f, module, kernel, 1);
    const ptowsp_schedule streams = {.stream_count = 2, .stream_key = ptowsp_u64(f->m, 1)};
    npu_fixture_compile(f, is_in_streams ? &streams : NULL);
    npu_files_of(f->context, f->program, "aicpu/expand.cpp");
}

static void clause_check(const clause *c) {
    npu_fixture f;
    clause_make(&f, c->module, &scale, c->is_in_streams);
    npu_has_all(npu_files_text("aicpu/expand.cpp"), c->lines);
    npu_has_all(npu_files_text("manifest.json"), c->manifest);
    npu_fixture_free(&f);
}

#define CLAUSE(test, ...)                                                                          \
    TEST(test) {                                                                                   \
        static const clause of_this = {__VA_ARGS__};                                               \
        clause_check(&of_this);                                                                    \
    }

// -- expressions ----------------------------------------------------------------------------------

// Parentheses stand where C++ needs them: an operator of one rank on the right, a minus before another.
CLAUSE(clause__expressions_have_the_parentheses_of_cpp,
       .module = "module clauses slots 8\n"
                 "array flags bool\n"
                 "array sizes i32\n"
                 "workload main\n"
                 "  slot_set 0 = -(~slot_i64[1])\n"
                 "  slot_set 0 = ~(-slot_i64[1])\n"
                 "  slot_set 0 = slot_i64[1] - (slot_i64[2] - slot_i64[1])\n"
                 "  slot_set 0 = slot_bool[3] && (slot_bool[4] && slot_bool[5])\n"
                 "  slot_set 0 = slot_bool[3] && slot_bool[4] && slot_bool[5]\n"
                 "  slot_set 0 = slot_bool[3] || (slot_bool[4] || slot_bool[5])\n"
                 "  slot_set 0 = slot_bool[3] ? slot_i64[2] :"
                 " slot_bool[4] ? slot_i64[1] : slot_i64[2]\n"
                 "  slot_set 0 = slot_bool[3] ? slot_i64[1] : sizes[slot_i64[2]]\n"
                 "  slot_set 0 = flags[slot_i64[1]]\n",
       .lines = {"run.set_slot(0, -~run.slot_i64(1));", "run.set_slot(0, ~(-run.slot_i64(1)));",
                 "run.set_slot(0, run.slot_i64(1) - (run.slot_i64(2) - run.slot_i64(1)));",
                 "run.set_slot(0, run.slot_bool(3) && (run.slot_bool(4) && run.slot_bool(5)));",
                 "run.set_slot(0, run.slot_bool(3) && run.slot_bool(4) && run.slot_bool(5));",
                 "run.set_slot(0, run.slot_bool(3) || (run.slot_bool(4) || run.slot_bool(5)));",
                 "run.slot_bool(3) ? run.slot_i64(2) : run.slot_bool(4) ? run.slot_i64(1) :\n",
                 "run.slot_bool(3) ? run.slot_i64(1) :\n            run.array_i64(ARRAY_sizes, "
                 "run.slot_i64(2)));",
                 "run.set_slot(0, run.array_bool(ARRAY_flags, run.slot_i64(1)));"})

// Compilers warn of p == p.
CLAUSE(clause__what_is_always_true_is_said_so,
       .module = "module clauses slots 8\n"
                 "workload other(p bool, q bool)\n"
                 "  slot_set 0 = p == p\n"
                 "  slot_set 3 = p != p\n"
                 "  slot_set 4 = p != q\n"
                 "workload main\n"
                 "  call other(slot_bool[1], slot_bool[2])\n",
       .lines = {"run.set_slot(0, true);", "run.set_slot(3, false);",
                 "run.set_slot(4, v_p != v_q);"})

// -- statements -----------------------------------------------------------------------------------

// Parameters that nothing uses have their names, too: compilers are told not to warn of them.
CLAUSE(clause__empty_workloads_have_all_names,
       .module = "module clauses slots 8\n"
                 "workload idle(p bool)\n"
                 "workload conditions(q bool)\n"
                 "  when q\n"
                 "  otherwise\n"
                 "workload reading(q bool)\n"
                 "  when q && slot_bool[2]\n"
                 "workload main\n"
                 "  call idle(slot_bool[1])\n"
                 "  call conditions(slot_bool[1])\n"
                 "  call reading(slot_bool[1])\n",
       .lines = {"#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n",
                 "void v_idle(Run &run, bool v_p) {\n}\n",
                 "void v_conditions(Run &run, bool v_q) {\n",
                 "void v_reading(Run &run, bool v_q) {\n", "void v_idle(Run &run, bool v_p);\n"})

CLAUSE(clause__loads_have_the_indices_of_their_matrix,
       .module = "module clauses slots 8\n"
                 "axis rows 8\n"
                 "tensor x i32 [8, 8, 8] global\n"
                 "workload main\n"
                 "  for_each i in rows\n"
                 "    slot_load 0 = x[i] at (3, 0) element (1, i)\n",
       .lines = {", 0, TENSOR_x, {v_i}, 3, 1, 0, 1, 1, v_i);"})

// Loops in loops over one axis.
CLAUSE(clause__entries_have_the_names_of_their_loops,
       .module = "module clauses slots 8\n"
                 "axis routes sparse\n"
                 "workload main\n"
                 "  for_each i in routes\n"
                 "    for_each j in routes\n"
                 "      slot_set 0 = entry(i) + entry(j)\n",
       .lines = {"for (const Entry &v_i : run.entries(AXIS_routes)) {",
                 "for (const Entry &v_j : run.entries(AXIS_routes)) {",
                 "run.set_slot(0, v_i.entry + v_j.entry);"})

// -- pipelines ------------------------------------------------------------------------------------

// A process that does nothing; loads of workloads that processes call; a pipeline of many processes, which
// is not split; events, and depths that the start of a pipeline decides.
TEST(clause__pipelines_name_what_their_processes_load) {
    char module[10000] = "module clauses slots 8\n"
                         "symbol depth\n"
                         "tensor x i32 [8, 8] global\n"
                         "tensor y i32 [8, 8] global\n"
                         "workload reading\n"
                         "  slot_load 0 = x element (0, 0)\n"
                         "workload main\n"
                         "  pipeline first\n"
                         "    channel tokens depth depth latency 0\n"
                         "    event done\n"
                         "    process idle\n"
                         "    process send produces tokens, done\n"
                         "      record done\n"
                         "      call reading()\n"
                         "      call reading()\n"
                         "      send tokens(1)\n"
                         "    process take consumes tokens, done\n"
                         "      wait done\n"
                         "      consume t from tokens\n"
                         "        slot_load 1 = y element (0, 0)\n";
    for (int i = 0; i < 120; i++) {
        sprintf(module + strlen(module), "    process more%d\n      slot_set 2 = %d\n", i, i);
    }
    static const char *const lines[] = {
        "pipeline.loads(TENSOR_x);\n",  "pipeline.loads(TENSOR_y);\n", "[=](Run &r_idle) {\n",
        "pipeline.process(\"more119\"", "v_done.wait(r_take, ",        NULL};
    static const char *const manifest[] = {"\"event\": true", "\"depth\": null", "\"event\": false",
                                           NULL};
    npu_fixture f;
    clause_make(&f, module, &scale, false);
    const char *text = npu_files_text("aicpu/expand.cpp");
    npu_has_all(text, lines);
    npu_has_all(npu_files_text("manifest.json"), manifest);
    const char *part = strstr(text, "const auto part");  // of the workload, whose block is large
    assert_non_null(part);
    assert_null(strstr(part + 1, "const auto part"));
    npu_fixture_free(&f);
}

// -- tables ---------------------------------------------------------------------------------------

CLAUSE(clause__streams_are_in_the_tables,
       .module = "module clauses slots 8\n"
                 "tensor x f32 [8, 8] global\n"
                 "kernel scale(axes 0, inout data f32 8 x 8) vector\n"
                 "workload other\n"
                 "  sequence\n"
                 "    task scale() data = x\n"
                 "workload main\n"
                 "  call other()\n",
       .is_in_streams = true, .lines = {"task.stream("},
       .manifest = {"{\"directive\": \"streams\", \"value\": \"by key\", "})

// A constant number of cycles, and a cost function, which is in its place.
TEST(clause__costs_are_functions_or_numbers) {
    static const char *const costs[] = {"", ", 5 cycles", ", cycles by a cost function"};
    for (int i = 0; i < 3; i++) {
        npu_fixture f;
        char module[300];
        ptowsp_parse_kernel kernel = scale;
        kernel.cost = i == 2 ? npu_scale : NULL;
        kernel.source.cost = i == 2 ? "scale" : NULL;
        snprintf(module, sizeof module,
                 "module clauses slots 8\n"
                 "tensor x f32 [8, 8] global\n"
                 "kernel scale(axes 0, inout data f32 8 x 8) vector%s\n"
                 "workload main\n"
                 "  task scale() data = x\n",
                 costs[i]);
        clause_make(&f, module, &kernel, false);
        assert_int_equal(strstr(npu_files_text("manifest.json"), "\"cycles\": 5") != NULL, i == 1);
        npu_fixture_free(&f);
    }
}

#define MACHINE_KERNEL                                                                             \
    "kernel %s(axes 0, inout y f32 8 x 8) vector, 9 instructions\n"                                \
    "  machine \"%s\" of a2a3, %d MHz, memories %d 524288 65536 65536 131072 1024 2048, "          \
    "rates %d 13500 18846 18846 102400 3200 44100 22050 3200 7000 12800 44107\n"                   \
    "  %%1 = parameter y\n"                                                                        \
    "  %%2 = const 2\n"                                                                            \
    "  %%3 = mul %%1, %%2 : f32 8 x 8\n"                                                           \
    "  store %%1, %%3\n"

// Machines of one name that differ in anything are two; one of a kernel that is not used is none.
TEST(clause__machines_are_equal_if_all_of_them_is) {
    static const struct {
        const char *name, *second_task;
        int mhz, memory, rate;  // 1234 MHz: none that the shim has
        uint32_t count;
    } cases[] = {{"910B", "  task second() y = x\n", 1234, 188416, 10090, 1},
                 {"910B", "  task second() y = x\n", 1235, 188416, 10090, 2},
                 {"910B", "  task second() y = x\n", 1234, 189440, 10090, 2},
                 {"910B", "  task second() y = x\n", 1234, 188416, 10091, 2},
                 {"X10B", "  task second() y = x\n", 1234, 188416, 10090, 2},
                 {"X10B", "", 1234, 188416, 10090, 1}};
    for (int i = 0; i < 6; i++) {
        npu_fixture f;
        char module[2000];
        snprintf(module, sizeof module,
                 "module clauses slots 8\n"
                 "tensor x f32 [8, 8] global\n" MACHINE_KERNEL MACHINE_KERNEL "workload main\n"
                 "  task first() y = x\n%s",
                 "first", "910B", 1234, 188416, 10090, "second", cases[i].name, cases[i].mhz,
                 cases[i].memory, cases[i].rate, cases[i].second_task);
        clause_make(&f, module, &scale, false);
        uint32_t count = 0;
        for (const char *at = npu_files_text("aicore/dispatch.cpp");
             (at = strstr(at, "const ptoisa_machine machine_")); at++) {
            count++;
        }
        assert_int_equal(count, cases[i].count);
        npu_fixture_free(&f);
    }
}
