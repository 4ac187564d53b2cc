// aicpu/expand.cpp as text, which people read: four programs, as files in tests/golden that were
// read before they were kept (PTOWSP_GOLDEN=write writes them anew). Then programs that are as deep
// and as wide as they come. All of them compile without a warning, as trees.

#define _POSIX_C_SOURCE 200809L

#include "npu_files.h"
#include "npu_fixture.h"
#include "npu_kernel_fixture.h"

// A fold, so that order matters.
PTOWSP_SOURCE(
    step_source,

    static ptowsp_cycles step(const ptowsp_task *task, void *user) {
        (void)user;
        for (uint32_t i = 0; i < task->tile_count && i < 1; i++) {
            int64_t *x = (int64_t *)task->tiles[0].data;
            *x = (int64_t)((uint64_t)*x * 31 + (uint64_t)ptowsp_task_axis(task, 0));
        }
        return 1;
    })

// The module of a text, all of whose kernels do this step.
static void steps_parse(npu_fixture *f, const char *text) {
    static const char *const names[] = {"append",  "attend_short", "attend_chunk", "merge",
                                        "count",   "expert ffn",   "sum",          "load",
                                        "compute", "step",         "add"};
    ptowsp_parse_kernel kernels[COUNT_OF(names)] = {0};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        kernels[i].name = names[i];
        kernels[i].fn = step;
        kernels[i].source.text = step_source;
        kernels[i].source.fn = "step";
    }
    npu_parse(f, text, kernels, COUNT_OF(names));
}

static void text_compile(npu_fixture *f, const char *workload, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {workload, schedule};
    test_ok(f->context, ptowsp_program_create(f->context, f->m, &desc, &f->program));
}

#define TEXT_TEST(name) TEST_MADE(name, npu_fixture, f, npu_fixture_begin(f), npu_fixture_free(f))

static const char *expand_of(const npu_fixture *f) {
    return npu_files_of(f->context, f->program, "aicpu/expand.cpp");
}

// The tree, compiled with all warnings.
static ptowsp_npu *tree_of(const npu_fixture *f, npu_object *o) {
    *o = npu_object_begin();
    o->has_trees = true;
    npu_object_add(o, f->context, f->program, false);
    npu_object_build(o, "");
    return npu_object_tree(o, 0, f->context, f->program);
}

static void text_compiles(const npu_fixture *f) {
    npu_object o;
    tree_of(f, &o);
    npu_object_end(&o);
}

// -- golden texts ---------------------------------------------------------------------------------

static char *file_read(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) {
        return NULL;
    }
    char *text = (char *)calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void text_is_golden(const npu_fixture *f, const char *name) {
    char path[512], root[400];
    snprintf(root, sizeof root, "%s", __FILE__);
    *strstr(root, "npu/npu_expand_text_test.c") = '\0';
    snprintf(path, sizeof path, "%sgolden/expand_%s.cpp", root, name);
    char *first = strdup(expand_of(f));
    const char *text = expand_of(f), *mode = getenv("PTOWSP_GOLDEN");
    assert_string_equal(text, first);
    if (mode && strcmp(mode, "write") == 0) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    char *golden = file_read(path);
    assert_non_null(golden);
    assert_string_equal(text, golden);
    free(golden);
    free(first);
    text_compiles(f);
}

// The decode step of examples/tiered_decode.c, with a lane for each request and long tasks first.
static const char tiered_decode[] =
    "module tiered_decode slots 8\naxis requests dynamic\naxis chunks ragged i32\n"
    "array kv_length i32\narray kv_start i64\ntensor kv f32 [?, 64] global\n"
    "tensor fresh f32 [?, 64] global\ntensor queries f32 [?, 4, 32] global\n"
    "tensor states f32 [?, ?, 2] global\ntensor accs f32 [?, ?, 32] global\n"
    "tensor outputs f32 [?, 4, 32] global\n"
    "kernel append(axes 1, in fresh f32 1 x 64, out kv f32 1 x 64) vector\n"
    "kernel attend_short(axes 1, in query f32 4 x 32, in kv f32 1024 x 64, out out f32 4 x "
    "32, tokens i64) vector\n"
    "kernel attend_chunk(axes 1, in query f32 4 x 32, in kv f32 1024 x 64, out state f32 4 "
    "x 2, out acc f32 4 x 32, tokens i64) vector\n"
    "kernel merge(axes 1, in states f32 ? x 2, in accs f32 ? x 32, out out f32 4 x 32, "
    "parts i64) vector\nworkload decode\n  parallel request in requests\n"
    "    task append(request) fresh = fresh at (request, 0) kv = kv at (kv_start[request] + "
    "(kv_length[request] - 1), 0)\n    when kv_length[request] <= 1024\n"
    "      task attend_short(request) query = queries[request] kv = kv at "
    "(kv_start[request], 0) out = outputs[request] tokens = kv_length[request]\n"
    "    otherwise\n      parallel chunk in chunks[request]\n"
    "        task attend_chunk(request) query = queries[request] kv = kv at "
    "(kv_start[request] + chunk * 1024, 0) state = states[request] at (chunk * 4, 0) acc = "
    "accs[request] at (chunk * 4, 0) tokens = min(1024, kv_length[request] - chunk * 1024)\n"
    "      task merge(request) states = states[request] of edge x 2 accs = accs[request] of "
    "edge x 32 out = outputs[request] parts = chunks[request]\n";

TEXT_TEST(text__of_a_tiered_decode_is_golden) {
    steps_parse(f, tiered_decode);
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                      .lane_count = 4,
                                      .dispatch_key = ptowsp_task_arg(f->m, 0),
                                      .ready = PTOWSP_READY_PRIORITY,
                                      .priority_key = ptowsp_task_arg(f->m, 1)};
    text_compile(f, NULL, &schedule);
    text_is_golden(f, "tiered_decode");
}

// Experts of each token from a sparse axis, capacity from a slot that a kernel's result is loaded
// into, and a workload that is called; explicit dependencies.
static const char routes[] =
    "module moe slots 8\naxis layers 2\naxis tokens dynamic\naxis routes sparse\n"
    "axis lengths ragged\nsymbol seed\narray gates u16\ntensor x f16 [?, 64] global\n"
    "tensor y f16 [?, 8, 64] global\ntensor counts u32 [1, 8] global\n"
    "kernel count(axes 1, out counts u32 1 x 8) vector\n"
    "kernel \"expert ffn\"(axes 2, in in f16 1 x 64, inout out f16 1 x 64, gate u64, \"is "
    "last\" bool) vector\nkernel sum(axes 1, inout out f16 1 x 64) vector\nworkload moe\n"
    "  task count(0) counts = counts\n  for_each layer in layers\n"
    "    slot_load 3 = counts element (0, layer)\n    slot_set 4 = 7u\n"
    "    call layer(layer, slot_u64[3], layer == 1)\n  parallel i in lengths\n"
    "    task sum(i) out = y[0]\nworkload layer(layer i64, capacity u64, \"is last\" bool)\n"
    "  parallel token in tokens\n    select chosen in routes[token]\n"
    "      when gates[entry(chosen)] < capacity && !\"is last\" || (seed & 3u) == 0u\n"
    "        task \"expert ffn\"(token, chosen) in = x at (token, 0) out = y[token] at "
    "(chosen, 0) gate = gates[entry(chosen)] + slot_u64[4] \"is last\" = \"is last\" as "
    "node 13\n    task sum(token + layer) out = y[token] at (7, 0) after node 13\n";

TEXT_TEST(text__of_sparse_loops_slots_and_calls_is_golden) {
    steps_parse(f, routes);
    const ptowsp_schedule schedule = {.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT,
                                      .stream_count = 2,
                                      .stream_key = ptowsp_task_arg(f->m, 0)};
    text_compile(f, "moe", &schedule);
    text_is_golden(f, "routing");
}

// Three processes, one of them replicated, with a channel of tokens, one of free places, an event.
TEXT_TEST(text__of_a_pipeline_is_golden) {
    steps_parse(
        f, "module pipeline slots 8\naxis tiles dynamic\naxis workers dynamic\nsymbol depth\n"
           "array order i32\ntensor x f32 [?, 32] global\ntensor ring f32 [?, 8, 32] global\n"
           "tensor limits i32 [4] global\n"
           "kernel load(axes 1, in in f32 8 x 32, out out f32 8 x 32) vector\n"
           "kernel compute(axes 2, in in f32 8 x 32) vector\nworkload main\n"
           "  pipeline \"double buffer\"\n    channel loaded depth 2 latency 50\n"
           "    channel free depth depth latency 5000000000\n    event started\n"
           "    process load consumes free produces loaded, started\n      record started\n"
           "      for_each i in tiles\n        receive place from free\n"
           "          task load(place) in = x at (order[i] * 8, 0) out = ring[place]\n"
           "          send loaded(place)\n      close loaded\n    process watch consumes started\n"
           "      wait started\n      slot_load 1 = limits element (0, 2)\n"
           "    process compute replicas worker in workers consumes loaded produces free\n"
           "      consume place from loaded\n        task compute(place, worker) in = ring[place]\n"
           "        send free(order[place])\n");
    text_compile(f, NULL, NULL);
    text_is_golden(f, "pipeline");
}

// Conditions on slots around tasks alone are words; others are evaluated.
#define TWO_TASKS "    task add() x = x\n    task add() x = x\n"

TEXT_TEST(text__of_conditions_on_slots_is_golden) {
    steps_parse(f,
                "module conditions slots 8\n"
                "symbol limit\n"
                "tensor x i32 [16, 16] global\n"
                "kernel add(axes 0, inout x i32 16 x 16) vector\n"
                "workload conditions\n"
                "  slot_load 0 = x element (3, 5)\n"
                "  when slot_i64[0] > -1\n" TWO_TASKS          //
                "  when i64(limit) > slot_i64[0]\n" TWO_TASKS  //
                "  when 7 >= slot_i64[0]\n" TWO_TASKS          //
                "  when slot_i64[0] == slot_i64[2]\n" TWO_TASKS
                "  when slot_bool[1]\n" TWO_TASKS   //
                "  when !slot_bool[1]\n" TWO_TASKS  // more than a comparison:
                "  when slot_bool[1] && slot_i64[0] < i64(limit)\n" TWO_TASKS
                "  when slot_i64[0] + i64(limit) < 3\n" TWO_TASKS
                "  when slot_i64[0] != i64(limit)\n" TWO_TASKS  //
                "  otherwise\n"
                "    slot_set 1 = slot_i64[0]\n"
                "  when slot_i64[0] <= i64(limit)\n"  // not around tasks alone
                "    slot_set 0 = i64(limit)\n");
    text_compile(f, NULL, NULL);
    text_is_golden(f, "conditions");
}

// -- names ----------------------------------------------------------------------------------------

// Entries, ends of loops and runs of processes: no name of a user is theirs, so that none gets a number.
TEXT_TEST(text__names_that_nobody_gave_are_nobodys) {
    steps_parse(f,
                "module numbers slots 8\naxis rows dynamic\naxis adj sparse\n"
                "kernel step(axes 2) vector\nworkload main\n  for_each r in rows\n"
                "    select x in adj[r]\n      for_each x_entry in rows\n"
                "        task step(entry(x), x_entry)\n    select y in adj[r]\n"
                "      task step(entry(y), y)\n      pipeline p\n"
                "        channel y_entry depth 2 latency 0\n        process send produces y_entry\n"
                "          send y_entry(y)\n        process take consumes y_entry\n"
                "          consume t from y_entry\n            task step(t, t)\n");
    text_compile(f, NULL, NULL);
    static const char *const parts[] = {
        "for (const Entry &v_x : run.entries(AXIS_adj, v_r, ",
        "for (i64 v_x_entry = 0; v_x_entry < run.size(AXIS_rows) && run.good();",
        "task.axis(v_x.entry);",
        "task.axis(v_x_entry);",
        "for (const Entry &v_y : run.entries(AXIS_adj, v_r, ",
        "Channel v_y_entry = pipeline.channel(\"y_entry\", CHANNEL_y_entry, ",
        "{produces(v_y_entry)}, [=](Run &r_send) {",
        "v_y_entry.send(r_send, v_y.index, ",
        NULL};
    npu_has_all(expand_of(f), parts);
    text_compiles(f);
}

// -- sizes ----------------------------------------------------------------------------------------

// Loops in loops of both kinds, a task in each.
TEXT_TEST(text__as_deep_as_can_be_compiles) {
    static char text[PTOWSP_MODULE_NEST_MAX * 200];
    size_t at = (size_t)sprintf(text, "module deep slots 8\naxis one dynamic\n"
                                      "kernel step(axes 1) vector\nworkload main\n");
    for (int depth = 1; depth < PTOWSP_MODULE_NEST_MAX - 1; depth++) {
        at += (size_t)sprintf(text + at, "%*s%s v%d in one\n%*stask step(v%d)\n", 2 * depth, "",
                              depth % 2 ? "parallel" : "for_each", depth, 2 * depth + 2, "", depth);
    }
    steps_parse(f, text);
    text_compile(f, NULL, NULL);
    text_compiles(f);
}

// A deep expression has parts of a statement each; one that is used twice has its parts once.
TEXT_TEST(text__deep_expressions_that_are_used_twice_have_parts_once) {
    npu_module_make(f, "twice");
    ptowsp_expr deep = ptowsp_cast(ptowsp_symbol(f->m, "s"), PTOWSP_TYPE_I64);
    PTOWSP_WORKLOAD(f->m, "main") {
        for (int i = 0; i < 120; i++) {
            deep = ptowsp_sub(ptowsp_i64(f->m, 3), deep);
        }
        ptowsp_slot_set_make(f->m, 0, ptowsp_add(deep, deep));
    }
    text_compile(f, NULL, NULL);
    const char *text = expand_of(f);
    const char *first = strstr(text, "const auto part_1 = [&] { return ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "const auto part"));
    const char *use = strstr(first, "part_1()");
    assert_non_null(use);
    assert_non_null(strstr(use + 1, "part_1()"));
    text_compiles(f);
}

static size_t many_tasks(char *text, const char *head, int indent, int count) {
    size_t at = (size_t)sprintf(text, "%s", head);
    for (int i = 0; i < count; i++) {
        at += (size_t)sprintf(text + at, "%*stask step(v + %d) x = x\n", indent, "", i * 7);
    }
    return at;
}

// What is too much for one function goes into several.
TEXT_TEST(text__of_thousands_of_statements_compiles_and_does_the_same) {
    static char text[1 << 17];
    int64_t x[2] = {0, 0};
    npu_object o;
    ptowsp_npu_result result;
    size_t at = (size_t)sprintf(text, "module wide slots 8\naxis two dynamic\n"
                                      "tensor x i64 [1, 1] global\n"
                                      "kernel step(axes 1, inout x i64 1 x 1) vector\n"
                                      "workload main\n");
    for (int i = 0; i < 500; i++) {
        at += (size_t)sprintf(text + at, "  parallel v in two\n    task step(v + %d) x = x\n", i);
    }
    at += many_tasks(text + at, "  for_each v in two\n", 4, 250);
    at += many_tasks(text + at, "    when v == 1\n", 6, 500);
    many_tasks(text + at, "    otherwise\n", 6, 300);
    steps_parse(f, text);
    text_compile(f, NULL, NULL);
    assert_non_null(strstr(expand_of(f), "noinline"));
    ptowsp_npu *npu = tree_of(f, &o);
    ptowsp_run *run = test_run_of(f->context, f->program);
    assert_ok(ptowsp_run_bind_size(run, "two", 2));
    for (int i = 0; i < 2; i++) {
        test_bind(run, "x", &x[i]);
        test_ok(f->context, i ? ptowsp_npu_execute(npu, run, NULL, NULL, 0, &result)
                              : ptowsp_run_execute(run, NULL));
    }
    assert_int_equal(result.task_count, 2 * 500 + 2 * 250 + 500 + 300);
    assert_true(x[0] == x[1] && x[0] != 0);
    ptowsp_run_destroy(run);
    npu_object_end(&o);
}
