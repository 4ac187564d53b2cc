// Why a task started when it did, of a dump that is worked out on paper; and rings of tasks that
// deps.json leaves out.

#include "dump_write.h"

// Tasks 0 and 1 are waited for by 2, 2 by 3 and 4; 4 ends last. Task 3 also waits for 0.
static const char deps[] =
    "{\"tasks\":[{\"task_id\":0,\"kernel_ids\":[-1,7,-1]},{\"task_id\":1,\"kernel_ids\":[-1,1,-1]},"
    "{\"task_id\":2,\"kernel_ids\":[-1,-1,-1]},{\"task_id\":3,\"kernel_ids\":[1,-1,-1],\"args\":[{"
    "\"type\":\"INPUT\",\"tensor_id\":55,\"shape\":[1],\"strides\":[1]}]},{\"task_id\":4,\"kernel_"
    "ids\":"
    "[-1,1,1]}],\"tensors\":[{\"tensor_id\":55,\"buffer_addr\":0,\"dtype\":\"INT8\",\"buffer_"
    "numel\":4}],"
    "\"edges\":[{\"pred\":0,\"succ\":2,\"source\":\"explicit\"},{\"pred\":1,\"succ\":2,\"source\":"
    "\"explicit\"},{\"pred\":2,\"succ\":3,\"source\":\"explicit\"},{\"pred\":0,\"succ\":3,\"arg\":"
    "0,"
    "\"source\":\"creator\"},{\"pred\":2,\"succ\":4,\"source\":\"explicit\"}]}";
// Task 2 has no kernel and no times; 4 runs on two cores.
static const char swimlane[] = "{\"aicore_tasks\":[[8,0,1,1000,1100,1],[9,1,1,1010,1250,1],"
                               "[8,3,2,1260,1300,1],[9,4,3,1251,1270,1],[10,4,3,1255,1400,1]]}";
static const char names[] = "{\"callable_id_to_name\":{\"1\":\"mm\"}}";

static ptowsp_dump *open_dump(ptowsp_context *context, bool has_times) {
    ptowsp_dump *dump = NULL;
    ptowsp_dump_desc desc = {.deps = dw_exact(deps, sizeof deps - 1)};
    desc.names = dw_exact(names, sizeof names - 1);
    if (has_times) {
        desc.swimlane = dw_exact(swimlane, sizeof swimlane - 1);
    }
    assert_ok(ptowsp_dump_open(context, &desc, &dump));
    free((void *)(uintptr_t)desc.deps.text);
    free((void *)(uintptr_t)desc.names.text);
    free((void *)(uintptr_t)desc.swimlane.text);
    return dump;
}

static const char *explained(ptowsp_dump *dump, uint64_t task) {
    static char text[4096];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    assert_ok(ptowsp_dump_explain(dump, task, ptowsp_output_to_buffer(&buffer)));
    return text;
}

CONTEXT_TEST(dump_explain__says_what_held_a_task_up) {
    ptowsp_dump *dump = open_dump(context, true);
    assert_string_equal(explained(dump, 3), "task 3 (mm), core 8, cycles 260 to 300\n"
                                            "  waited for 2 edges\n"
                                            "  * task 2 (no kernel) by explicit\n"
                                            "    task 0 (kernel 7), core 8, cycles 0 to 100 by "
                                            "creator, argument 0, tensor 55: 160 cycles "
                                            "before\n"
                                            "  held up 0 edges (*: these waited for it last)\n"
                                            "  chain to the end\n"
                                            "    task 3 (mm), core 8, cycles 260 to 300\n");
    assert_string_equal(explained(dump, 1), "task 1 (mm), core 9, cycles 10 to 250\n"
                                            "  waited for 0 edges\n"
                                            "  held up 1 edges (*: these waited for it last)\n"
                                            "  * task 2 (no kernel) by explicit\n"
                                            "  chain to the end\n"
                                            "    task 1 (mm), core 9, cycles 10 to 250\n"
                                            "    task 2 (no kernel)\n"
                                            "    task 4 (mm), core 9, cycles 251 to 400\n");
    const ptowsp_output none = {NULL, NULL};
    test_refused(context, ptowsp_dump_explain(dump, 9, none), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "dump: there is no task 9");
    ptowsp_dump_close(dump);
}

CONTEXT_TEST(dump_explain__counts_edges_without_times) {
    ptowsp_dump *dump = open_dump(context, false);
    assert_string_equal(explained(dump, 0), "task 0 (kernel 7)\n"
                                            "  waited for 0 edges\n"
                                            "  held up 2 edges (*: these waited for it last)\n"
                                            "  * task 2 (no kernel) by explicit\n"
                                            "    task 3 (mm) by creator, argument 0, tensor 55\n"
                                            "  chain to the end\n"
                                            "    task 0 (kernel 7)\n"
                                            "    task 2 (no kernel)\n"
                                            "    task 3 (mm)\n");  // as 4, and before it
    ptowsp_dump_close(dump);
}

// Ring 1 has two allocations of 3072 bytes together, which only edges and counters name; ring 2 has
// scopes of two tasks and of one, with edges to the allocations, which end at once, and one more.
CONTEXT_TEST(dump_rings__count_what_is_left_out) {
    static const char tasks[] =
        "{\"tasks\":[{\"task_id\":8589934592},{\"task_id\":8589934593},{\"task_id\":8589934594}],"
        "\"edges\":[{\"pred\":4294967296,\"succ\":8589934592},{\"pred\":4294967297,\"succ\":"
        "8589934592},{\"pred\":4294967296,\"succ\":8589934593},{\"pred\":4294967297,\"succ\":"
        "8589934593},"
        "{\"pred\":8589934592,\"succ\":8589934593}]}";
    static const char scopes[] =
        "{\"version\":6}\n"
        "{\"site\":\"o\",\"phase\":\"begin\",\"depth\":1,\"ring\":1,\"task_window_end\":0,\"heap_"
        "end\":0}\n"
        "{\"site\":\"a\",\"phase\":\"begin\",\"depth\":2,\"ring\":2,\"task_window_end\":0}\n"
        "{\"site\":\"a\",\"phase\":\"end\",\"depth\":2,\"ring\":2,\"task_window_end\":2}\n"
        "{\"site\":\"b\",\"phase\":\"begin\",\"depth\":2,\"ring\":2,\"task_window_end\":2}\n"
        "{\"site\":\"b\",\"phase\":\"end\",\"depth\":2,\"ring\":2,\"task_window_end\":3}\n"
        "{\"site\":\"o\",\"phase\":\"end\",\"depth\":1,\"ring\":1,\"task_window_end\":5,\"heap_"
        "end\":3072}\n";
    static const ptowsp_dump_rings expected = {
        {4, 8, 4, 4}, {1024, 3072, 1024, 1024}, {4, 4, 4, 4}};
    ptowsp_dump *dump = NULL;
    ptowsp_dump_rings rings;
    ptowsp_dump_rings_result result;
    ptowsp_dump_desc desc = {.deps = dw_exact(tasks, sizeof tasks - 1)};
    desc.scopes = dw_exact(scopes, sizeof scopes - 1);
    assert_ok(ptowsp_dump_open(context, &desc, &dump));
    assert_ok(ptowsp_dump_rings_least(dump, &rings));
    assert_memory_equal(&rings, &expected, sizeof rings);
    rings.task_window[1] = 4;  // three of its five slots
    assert_ok(ptowsp_dump_rings_try(dump, &rings, &result));
    assert_int_equal(result.error, PTOWSP_DUMP_SCOPE_DEADLOCK);
    assert_true(result.task == 4294967299 && result.holder == 4294967296);
    assert_int_equal(result.depth, 1);
    assert_string_equal(result.site, "o");
    rings.task_window[1] = 6;
    assert_invalid(ptowsp_dump_rings_try(dump, &rings, &result));
    ptowsp_dump_close(dump);
    free((void *)(uintptr_t)desc.deps.text);
    free((void *)(uintptr_t)desc.scopes.text);
}
