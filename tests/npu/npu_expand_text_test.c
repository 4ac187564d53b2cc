// aicpu/expand.cpp as text, which people read: four programs, as files in tests/golden that were
// read before they were kept (PTOWSP_GOLDEN=write writes them anew). Then programs that are as deep
// and as wide as they come. All of them compile without a warning, as trees.

#define _POSIX_C_SOURCE 200809L

#include "npu_files.h"
#include "npu_fixture.h"
#include "npu_kernel_fixture.h"
#include "npu_texts.h"

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

static void text_is_golden(const npu_fixture *f, const char *name) {
    const char *path = textf("tests/golden/expand_%s.cpp", name);
    const char *first = textf("%s", expand_of(f));
    const char *text = expand_of(f), *mode = getenv("PTOWSP_GOLDEN");
    assert_string_equal(text, first);
    if (mode && strcmp(mode, "write") == 0) {
        file_write(path, text, strlen(text));
    }
    assert_string_equal(text, text_of(path));
    text_compiles(f);
}

TEXT_TEST(text__of_a_tiered_decode_is_golden) {
    steps_parse(f, npu_module("tiered_decode"));
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                      .lane_count = 4,
                                      .dispatch_key = ptowsp_task_arg(f->m, 0),
                                      .ready = PTOWSP_READY_PRIORITY,
                                      .priority_key = ptowsp_task_arg(f->m, 1)};
    text_compile(f, NULL, &schedule);
    text_is_golden(f, "tiered_decode");
}

TEXT_TEST(text__of_sparse_loops_slots_and_calls_is_golden) {
    steps_parse(f, npu_module("moe"));
    const ptowsp_schedule schedule = {.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT,
                                      .stream_count = 2,
                                      .stream_key = ptowsp_task_arg(f->m, 0)};
    text_compile(f, "moe", &schedule);
    text_is_golden(f, "routing");
}

// Three processes, one of them replicated, with a channel of tokens, one of free places, an event.
TEXT_TEST(text__of_a_pipeline_is_golden) {
    steps_parse(f, npu_module("pipeline"));
    text_compile(f, NULL, NULL);
    text_is_golden(f, "pipeline");
}

// Conditions on slots around tasks alone are words; others are evaluated.
TEXT_TEST(text__of_conditions_on_slots_is_golden) {
    steps_parse(f, npu_module("conditions"));
    text_compile(f, NULL, NULL);
    text_is_golden(f, "conditions");
}

// -- names ----------------------------------------------------------------------------------------

// Entries, ends of loops and runs of processes: no name of a user is theirs, so that none gets a number.
TEXT_TEST(text__names_that_nobody_gave_are_nobodys) {
    steps_parse(f, npu_module("numbers"));
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
