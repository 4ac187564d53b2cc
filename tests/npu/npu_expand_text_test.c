// aicpu/expand.cpp as text, which people read: four programs, as files in tests/golden that were
// read before they were kept (PTOWSP_GOLDEN=write writes them anew). Then programs that are as deep
// and as wide as they come; and where errors of expressions are told.

#define _GNU_SOURCE  // mkdtemp

#include "npu_expand_run.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
} fixture;

static void fixture_make(fixture *f, const char *name) {
    const ptowsp_module_desc desc = {name, 8};
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, &desc, &f->m), PTOWSP_OK);
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
}

static void compile(fixture *f, const char *workload, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {workload, schedule};
    if (ptowsp_program_create(f->context, f->m, &desc, &f->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
}

static ptowsp_expr number(const fixture *f, int64_t value) {
    return ptowsp_i64(f->m, value);
}

static ptowsp_cycles kernel_fn(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

static ptowsp_kernel kernel(const fixture *f, ptowsp_kernel_desc desc) {
    desc.fn = kernel_fn;
    return ptowsp_kernel_make(f->m, &desc);
}

// The module as a text, whose kernels have a function.
static void parse(fixture *f, const char *text) {
    static const char *const names[] = {"append",  "attend_short", "attend_chunk", "merge",
                                        "count",   "expert ffn",   "sum",          "load",
                                        "compute", "step",         "add"};
    ptowsp_parse_kernel kernels[11] = {0};
    for (int i = 0; i < 11; i++) {
        kernels[i].name = names[i];
        kernels[i].fn = kernel_fn;
    }
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 11};
    ptowsp_module_destroy(f->m);
    if (ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->m, NULL) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
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

static void text_is_golden(const fixture *f, const char *name) {
    char path[512], root[400];
    snprintf(root, sizeof root, "%s", __FILE__);
    *strstr(root, "npu/npu_expand_text_test.c") = '\0';
    snprintf(path, sizeof path, "%sgolden/expand_%s.cpp", root, name);
    npu_text text = words_emit(f->context, f->program, false);
    npu_text again = words_emit(f->context, f->program, false);
    assert_string_equal(text.data, again.data);
    const char *mode = getenv("PTOWSP_GOLDEN");
    if (mode && strcmp(mode, "write") == 0) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fwrite(text.data, 1, text.size, file) == text.size);
        assert_int_equal(fclose(file), 0);
    }
    char *golden = file_read(path);
    assert_non_null(golden);
    assert_string_equal(text.data, golden);
    free(golden);
    npu_text_free(&text);
    npu_text_free(&again);
}

// Compiles the text; it is not walked.
static void text_compiles(const fixture *f) {
    words_unit unit;
    if (words_compiler()) {
        memset(&unit, 0, sizeof unit);
        words_unit_add(&unit, f->context, f->program);
        words_unit_build(&unit);
        words_unit_free(&unit);
    }
}

// The decode step of examples/tiered_decode.c, with a lane for each request and long tasks first.
static void tiered_decode_make(fixture *f) {
    parse(f,
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
          "edge x 32 out = outputs[request] parts = chunks[request]\n");
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                      .lane_count = 4,
                                      .dispatch_key = ptowsp_task_arg(f->m, 0),
                                      .ready = PTOWSP_READY_PRIORITY,
                                      .priority_key = ptowsp_task_arg(f->m, 1)};
    compile(f, NULL, &schedule);
}

#define FIXTURE_TEST(name, module)                                                                 \
    TEST_MADE(name, fixture, f, fixture_make(f, module), fixture_free(f))

FIXTURE_TEST(text__of_a_tiered_decode_is_golden, "tiered_decode") {
    tiered_decode_make(f);
    text_is_golden(f, "tiered_decode");
    text_compiles(f);
}

// Experts of each token from a sparse axis, capacity from a slot that a kernel's result is loaded
// into, and a workload that is called; explicit dependencies.
static void routing_make(fixture *f) {
    parse(f,
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
          "node 13\n    task sum(token + layer) out = y[token] at (7, 0) after node 13\n");
    const ptowsp_schedule schedule = {.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT,
                                      .stream_count = 2,
                                      .stream_key = ptowsp_task_arg(f->m, 0)};
    compile(f, "moe", &schedule);
}

FIXTURE_TEST(text__of_sparse_loops_slots_and_calls_is_golden, "moe") {
    routing_make(f);
    text_is_golden(f, "routing");
    text_compiles(f);
}

// Three processes, one of them replicated, with a channel of tokens, one of free places, an event.
static void pipeline_make(fixture *f) {
    parse(f,
          "module pipeline slots 8\naxis tiles dynamic\naxis workers dynamic\nsymbol depth\n"
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
    compile(f, NULL, NULL);
}

FIXTURE_TEST(text__of_a_pipeline_is_golden, "pipeline") {
    pipeline_make(f);
    text_is_golden(f, "pipeline");
    text_compiles(f);
}

// -- names ----------------------------------------------------------------------------------------

// Nested loops, called as C++ calls something, over axes that are called so, too; then a process.
TEST(text__compiles_whatever_things_are_called) {
    static const char *const names[] = {"run",
                                        "task",
                                        "scope",
                                        "pipeline",
                                        "i64",
                                        "min",
                                        "to_u64",
                                        "class",
                                        "and",
                                        "part",
                                        "Scope",
                                        "Task",
                                        "x_end",
                                        "x_entry",
                                        "x",
                                        "wsp",
                                        "std",
                                        "0 ?"
                                        "?/",
                                        "a b",
                                        "a_b",
                                        "scope_2",
                                        "NULL",
                                        "INT64_MAX",
                                        "assert",
                                        "good",
                                        "READ",
                                        "e",
                                        "PARALLEL",
                                        "produces",
                                        "loaded",
                                        "int",
                                        "__x__"};
    enum { NAME_COUNT = sizeof names / sizeof names[0] };
    fixture f;
    fixture_make(&f, "names */ ?"
                     "?/");
    ptowsp_module *m = f.m;
    ptowsp_kernel step = kernel(&f, (ptowsp_kernel_desc){.name = "Task", .axis_count = 1});
    ptowsp_axis axes[NAME_COUNT];
    for (int i = 0; i < NAME_COUNT; i++) {
        axes[i] = i % 3 == 0   ? ptowsp_axis_dynamic(m, names[i])
                  : i % 3 == 1 ? ptowsp_axis_ragged(m, names[i])
                               : ptowsp_axis_sparse(m, names[i]);
    }
    for (int i = 0; i < NAME_COUNT; i++) {
        const char *next = i + 1 < NAME_COUNT ? names[i + 1] : NULL;
        PTOWSP_WORKLOAD(m, names[i]) {
            ptowsp_expr p = ptowsp_workload_param(m, names[(i + 3) % NAME_COUNT], PTOWSP_TYPE_I64);
            ptowsp_expr q = ptowsp_workload_param(m, "q", PTOWSP_TYPE_BOOL);
            ptowsp_expr v = ptowsp_parallel_begin(m, names[(i + 7) % NAME_COUNT], axes[i]);
            ptowsp_expr w = ptowsp_for_each_begin(m, "x!", axes[(i + 5) % NAME_COUNT]);
            char symbol[32];
            snprintf(symbol, sizeof symbol, "%s!", names[(i + 9) % NAME_COUNT]);
            ptowsp_expr u = ptowsp_cast(ptowsp_symbol(m, symbol), PTOWSP_TYPE_I64);
            ptowsp_expr a =
                ptowsp_array_at(m, "values", PTOWSP_I32, ptowsp_add(v, ptowsp_add(w, u)));
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = step, .axes = {ptowsp_add(p, a)}});
            ptowsp_expr args[2] = {v, ptowsp_eq(q, q)};
            if (next) {
                ptowsp_call_make(m, next, args, 2);
            }
            ptowsp_scope_end(m);
            ptowsp_scope_end(m);
        }
    }
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_expr args[2] = {number(&f, 0), ptowsp_bool(m, true)};
        ptowsp_call_make(m, names[0], args, 2);
        PTOWSP_PIPELINE(m, "run") {
            ptowsp_channel_desc desc = {.name = "x", .depth = 2};
            ptowsp_channel channel = ptowsp_channel_make(m, &desc);
            PTOWSP_PROCESS(m, "x") {
                ptowsp_produces(m, channel);
                ptowsp_expr value = ptowsp_array_at(m, "values", PTOWSP_I32, number(&f, 1));
                ptowsp_send_make(m, channel, value);
            }
            PTOWSP_PROCESS(m, "task") {
                ptowsp_consumes(m, channel);
                PTOWSP_CONSUME(m, x, channel) {
                    ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = step, .axes = {x}});
                }
            }
        }
        ptowsp_slot_set_make(m, 0, ptowsp_array_at(m, "values", PTOWSP_I32, number(&f, 2)));
    }
    compile(&f, "main", NULL);
    text_compiles(&f);
    fixture_free(&f);
}

// Entries, ends of loops and runs of processes: no name of a user is theirs, so that none gets a number.
FIXTURE_TEST(text__names_that_nobody_gave_are_nobodys, "numbers") {
    parse(f, "module numbers slots 8\naxis rows dynamic\naxis adj sparse\n"
             "kernel step(axes 2) vector\nworkload main\n  for_each r in rows\n"
             "    select x in adj[r]\n      for_each x_entry in rows\n"
             "        task step(entry(x), x_entry)\n    select y in adj[r]\n"
             "      task step(entry(y), y)\n      pipeline p\n"
             "        channel y_entry depth 2 latency 0\n        process send produces y_entry\n"
             "          send y_entry(y)\n        process take consumes y_entry\n"
             "          consume t from y_entry\n            task step(t, t)\n");
    compile(f, "main", NULL);
    npu_text text = words_emit(f->context, f->program, false);
    static const char *const parts[] = {
        "for (const Entry &v_x : run.entries(AXIS_adj, v_r, ",
        "for (i64 v_x_entry = 0; v_x_entry < run.size(AXIS_rows) && run.good();",
        "task.axis(v_x.entry);",
        "task.axis(v_x_entry);",
        "for (const Entry &v_y : run.entries(AXIS_adj, v_r, ",
        "Channel v_y_entry = pipeline.channel(\"y_entry\", CHANNEL_y_entry, ",
        "{produces(v_y_entry)}, [=](Run &r_send) {",
        "v_y_entry.send(r_send, v_y.index, "};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!strstr(text.data, parts[i])) {
            fail_msg("there is no %s in\n%s", parts[i], text.data);
        }
    }
    npu_text_free(&text);
    text_compiles(f);
}

// -- sizes ----------------------------------------------------------------------------------------

static void begin_scopes(const fixture *f, ptowsp_axis axis, int depth, ptowsp_kernel step) {
    char name[16];
    snprintf(name, sizeof name, "v%d", depth);
    if (depth == 0) {
        ptowsp_task_make(f->m, &(ptowsp_task_desc){.kernel = step, .axes = {number(f, depth)}});
        return;
    }
    ptowsp_expr v = depth % 2 ? ptowsp_parallel_begin(f->m, name, axis)
                              : ptowsp_for_each_begin(f->m, name, axis);
    ptowsp_task_make(f->m, &(ptowsp_task_desc){.kernel = step, .axes = {v}});
    begin_scopes(f, axis, depth - 1, step);
    ptowsp_scope_end(f->m);
}

FIXTURE_TEST(text__as_deep_as_can_be_compiles, "deep") {
    ptowsp_kernel step = kernel(f, (ptowsp_kernel_desc){.name = "step", .axis_count = 1});
    ptowsp_axis one = ptowsp_axis_dynamic(f->m, "one");
    PTOWSP_WORKLOAD(f->m, "main") {
        begin_scopes(f, one, PTOWSP_MODULE_NEST_MAX - 2, step);
    }
    compile(f, NULL, NULL);
    text_compiles(f);
}

// A deep expression has parts of a statement each; one that is used twice has its parts once.
FIXTURE_TEST(text__deep_expressions_that_are_used_twice_have_parts_once, "twice") {
    ptowsp_kernel step = kernel(f, (ptowsp_kernel_desc){.name = "step", .axis_count = 1});
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_expr deep = ptowsp_cast(ptowsp_symbol(f->m, "s"), PTOWSP_TYPE_I64);
        for (int i = 0; i < 120; i++) {
            deep = ptowsp_sub(number(f, 3), deep);
        }
        ptowsp_task_make(f->m,
                         &(ptowsp_task_desc){.kernel = step, .axes = {ptowsp_add(deep, deep)}});
    }
    compile(f, NULL, NULL);
    npu_text text = words_emit(f->context, f->program, false);
    const char *first = strstr(text.data, "const auto part_1 = [&] { return ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "const auto part"));
    const char *use = strstr(first, "part_1()");
    assert_non_null(use);
    assert_non_null(strstr(use + 1, "part_1()"));
    npu_text_free(&text);
    text_compiles(f);
}

static void count_task(void *user, const words_task *task, const ptowsp_task *as_task) {
    (void)task;
    *(uint64_t *)user = *(uint64_t *)user * 31 + (uint64_t)ptowsp_task_axis(as_task, 0);
}

static ptowsp_cycles hash_fn(const ptowsp_task *task, void *user) {
    count_task(user, NULL, task);
    return 1;
}

static void many_tasks(const fixture *f, ptowsp_kernel step, ptowsp_expr v, int count) {
    for (int i = 0; i < count; i++) {
        const ptowsp_expr axis = ptowsp_add(v, number(f, i * 7));
        ptowsp_task_make(f->m, &(ptowsp_task_desc){.kernel = step, .axes = {axis}});
    }
}

// What is too much for one function goes into several.
TEST(text__of_thousands_of_statements_compiles_and_does_the_same) {
    if (!words_compiler()) {
        print_message("no C++ compiler\n");
        skip();
    }
    fixture f;
    words_unit unit;
    words_host host;
    uint64_t hash = 0, walked = 0;
    fixture_make(&f, "wide");
    const ptowsp_kernel_desc desc = {.name = "step", .axis_count = 1, .fn = hash_fn, .user = &hash};
    ptowsp_kernel step = ptowsp_kernel_make(f.m, &desc);
    ptowsp_axis two = ptowsp_axis_dynamic(f.m, "two");
    PTOWSP_WORKLOAD(f.m, "main") {
        for (int i = 0; i < 500; i++) {
            PTOWSP_PARALLEL(f.m, v, two) {
                ptowsp_expr axis = ptowsp_add(v, number(&f, i));
                ptowsp_task_make(f.m, &(ptowsp_task_desc){.kernel = step, .axes = {axis}});
            }
        }
        PTOWSP_FOR_EACH(f.m, v, two) {
            many_tasks(&f, step, v, 250);
            PTOWSP_WHEN(f.m, ptowsp_eq(v, number(&f, 1))) {
                many_tasks(&f, step, v, 500);
            }
            PTOWSP_OTHERWISE(f.m) {
                many_tasks(&f, step, v, 300);
            }
        }
    }
    compile(&f, NULL, NULL);
    memset(&unit, 0, sizeof unit);
    words_unit_add(&unit, f.context, f.program);
    assert_non_null(strstr(unit.text.data, "noinline"));
    words_unit_build(&unit);
    assert_int_equal(ptowsp_run_bind_size(f.run, "two", 2), PTOWSP_OK);
    words_over over = {f.run, count_task, &walked, 0, 0, 0};
    words_walk(&unit, 0, &over, &host);
    assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_OK);
    assert_int_equal(over.task_count, 2 * 500 + 2 * 250 + 500 + 300);
    assert_true(walked == hash);
    words_unit_free(&unit);
    fixture_free(&f);
}

// -- memory ---------------------------------------------------------------------------------------

static void refuse_each_allocation(const fixture *f) {
    words_allocations = 0;
    npu_text text = words_emit(f->context, f->program, false);
    npu_text_free(&text);
    uint64_t count = words_allocations;
    assert_true(count > 5);
    for (words_refused = 0; words_refused < count; words_refused++) {
        words_allocations = 0;
        text = words_emit(f->context, f->program, false);  // which looks whether it is told
        npu_text_free(&text);
    }
    words_refused = UINT64_MAX;
}

TEST(text__tells_when_memory_is_out) {
    void (*const makers[])(fixture *) = {tiered_decode_make, routing_make, pipeline_make};
    for (int i = 0; i < 3; i++) {
        fixture f;
        fixture_make(&f, "refused");
        makers[i](&f);
        refuse_each_allocation(&f);
        fixture_free(&f);
    }
}

// -- errors ---------------------------------------------------------------------------------------

enum { FAULT_COUNT = 9 };

// A program in which statement `which` reads outside of an array of 4 elements.
static void faulty_make(fixture *f, int which) {
    char text[1024];
    int at[FAULT_COUNT];
    for (int i = 0; i < FAULT_COUNT; i++) {
        at[i] = i == which ? 4 : 1;
    }
    snprintf(text, sizeof text,
             "module faulty slots 8\naxis rows ragged\narray y i64\ntensor x i32 [8, 8] global\n"
             "kernel step(axes 1, inout t i32 1 x 1, s i64) vector\nworkload main\n"
             "  slot_set 0 = 0\n  slot_set 1 = y[slot_i64[0] + %d]\n"
             "  when y[slot_i64[0] + %d] <= 100\n    slot_set 1 = 2\n"
             "  parallel v in rows[y[slot_i64[0] + %d]]\n    slot_set 2 = v\n"
             "  call other(y[slot_i64[0] + %d])\n  slot_load 3 = x at (y[slot_i64[0] + %d], 0)\n"
             "  task step(y[slot_i64[0] + %d]) t = x at (y[slot_i64[0] + %d], 1) s = "
             "y[slot_i64[0] + %d]\n  slot_set 5 = 5\nworkload other(p i64)\n  slot_set 4 = p\n",
             at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]);
    parse(f, text);
    const ptowsp_expr slot = ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64);
    const ptowsp_schedule schedule = {
        .dispatch = PTOWSP_DISPATCH_AFFINITY,
        .lane_count = 2,
        .dispatch_key = ptowsp_array_at(f->m, "y", PTOWSP_I64, ptowsp_add(slot, number(f, at[8])))};
    compile(f, "main", &schedule);
}

static void one_task(void *user, const words_task *task, const ptowsp_task *as_task) {
    (void)task;
    (void)as_task;
    ++*(int *)user;
}

TEST(text__errors_of_expressions_are_told_where_a_run_tells_them) {
    if (!words_compiler()) {
        print_message("no C++ compiler\n");
        skip();
    }
    static fixture fixtures[FAULT_COUNT + 1];
    static const int64_t y[4] = {1, 1, 1, 1};
    static const int32_t lengths[2] = {2, 2};
    static int32_t data[64];
    uint32_t nodes[FAULT_COUNT + 1][WORDS_PLACE_MAX];
    words_unit unit = {0};
    for (int which = 0; which <= FAULT_COUNT; which++) {
        fixture_make(&fixtures[which], "faulty");
        faulty_make(&fixtures[which], which);
        words_unit_add(&unit, fixtures[which].context, fixtures[which].program);
        memcpy(nodes[which], words_nodes, sizeof words_nodes);
    }
    words_unit_build(&unit);
    for (int which = 0; which <= FAULT_COUNT; which++) {
        fixture *f = &fixtures[which];
        int tasks = 0;
        words_host host;
        words_over over = {f->run, one_task, &tasks, 0, 0, 0};
        const ptowsp_buffer buffer = {.data = data, .size = sizeof data};
        assert_int_equal(ptowsp_run_bind_array(f->run, "y", PTOWSP_I64, y, 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_lengths(f->run, "rows", PTOWSP_I32, lengths, 2),
                         PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
        words_walk(&unit, (uint32_t)which, &over, &host);
        ptowsp_status status = ptowsp_run_execute(f->run, NULL);
        if (which == FAULT_COUNT) {
            assert_int_equal(status, PTOWSP_OK);
            assert_int_equal(over.failed_place, 0);
            assert_int_equal(tasks, 1);
            assert_int_equal(host.slots[5], 5);
            continue;
        }
        assert_int_equal(status, PTOWSP_INVALID_PARAMS);
        assert_true(over.failed_place > 0);
        char place[128];
        ptowsp_output_buffer text = {place, sizeof place, 0};
        ptowsp_program_print_place(f->program, nodes[which][over.failed_place - 1],
                                   ptowsp_output_to_buffer(&text));
        const char *error = ptowsp_context_error(f->context).text;
        if (strncmp(error, place, strlen(place)) != 0 || !strpbrk(error + strlen(place), " :")) {
            fail_msg("%d: told at %s, by a run as %s", which, place, error);
        }
        assert_int_equal(tasks, 0);
        assert_int_equal(host.slots[5], 0);
    }
    words_unit_free(&unit);
    for (int which = 0; which <= FAULT_COUNT; which++) {
        fixture_free(&fixtures[which]);
    }
}

// Conditions on slots around tasks alone are words; others are evaluated.
#define TWO_TASKS "    task add() x = x\n    task add() x = x\n"

FIXTURE_TEST(text__of_conditions_on_slots_is_golden, "conditions") {
    parse(f, "module conditions slots 8\n"
             "symbol limit\n"
             "tensor x i32 [16, 16] global\n"
             "kernel add(axes 0, inout x i32 16 x 16) vector\n"
             "workload conditions\n"
             "  slot_load 0 = x element (3, 5)\n"
             "  when slot_i64[0] > -1\n" TWO_TASKS                                              //
             "  when i64(limit) > slot_i64[0]\n" TWO_TASKS                                      //
             "  when 7 >= slot_i64[0]\n" TWO_TASKS                                              //
             "  when slot_i64[0] == slot_i64[2]\n" TWO_TASKS "  when slot_bool[1]\n" TWO_TASKS  //
             "  when !slot_bool[1]\n" TWO_TASKS  // more than a comparison:
             "  when slot_bool[1] && slot_i64[0] < i64(limit)\n" TWO_TASKS
             "  when slot_i64[0] + i64(limit) < 3\n" TWO_TASKS
             "  when slot_i64[0] != i64(limit)\n" TWO_TASKS  //
             "  otherwise\n"
             "    slot_set 1 = slot_i64[0]\n"
             "  when slot_i64[0] <= i64(limit)\n"  // not around tasks alone
             "    slot_set 0 = i64(limit)\n");
    compile(f, "conditions", NULL);
    text_is_golden(f, "conditions");
    text_compiles(f);
}
