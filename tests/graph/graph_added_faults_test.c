// Tasks that tasks add while a graph runs: runs that are cancelled or late, failures, bad parts, bounds.

#include "graph_added.h"

// -- cancelled, late and failed ------------------------------------------------------------------

GROWING_TEST(graph_added_faults__cancelled_and_late_runs_leave_the_rest_out_and_can_be_repeated,
             WIDE, 0) {
    wide w = {.graph = graph};
    add(graph, wide_parent, &w, NULL);
    add(graph, wide_child, &w, NULL);
    graph_chain(graph, 2);
    for (int run = 0; run < 2; run++) {
        w.ran = 0;
        w.cancel_at = 10;
        assert_int_equal(run_any(kind, context, graph), PTOWSP_CANCELLED);
        assert_true(w.ran >= 10 && w.ran < 10 + 8);
        graph_task_is(graph, 0, PTOWSP_SKIPPED, PTOWSP_NO_INDEX);
        assert_int_equal(ptowsp_graph_task_status(graph, 1, NULL), PTOWSP_SKIPPED);
        assert_int_equal(ptowsp_graph_result(graph).done_count, w.ran);
        w.ran = 0;
        w.cancel_at = 0;
        assert_ok(run_any(kind, context, graph));
        assert_int_equal(w.ran, WIDE + 1);
    }
    assert_ok(ptowsp_graph_limit(graph, 1));
    assert_int_equal(run_any(kind, context, graph), PTOWSP_TIMED_OUT);
    assert_ok(ptowsp_graph_limit(graph, 0));
    assert_ok(run_any(kind, context, graph));
}

// Children 7, 14, ... fail, with -100 - number: their parent is -107, whatever runs first.
GROWING_TEST(graph_added_faults__a_parent_fails_as_the_first_of_its_added_tasks_that_fail, WIDE,
             0) {
    wide w = {.graph = graph, .fails = 7};
    const uint64_t failed = (WIDE - 1) / 7 + 1;
    add(graph, wide_parent, &w, "wide");
    add(graph, wide_child, &w, NULL);
    add(graph, NULL, NULL, NULL);
    graph_chain(graph, 2);
    for (int run = 0; run < 5; run++) {
        w.ran = 0;
        test_refused(context, run_any(kind, context, graph), -107, 0,
                     "graph: task 0 'wide' failed in an added task: UNKNOWN");
        assert_int_equal(w.ran, WIDE);
        graph_task_is(graph, 0, (ptowsp_status)-107, 0);
        graph_task_is(graph, 1, PTOWSP_SKIPPED, 0);
        assert_ok(ptowsp_graph_task_status(graph, 2, NULL));
        graph_task_is(graph, w.first + 14, (ptowsp_status)-114, w.first + 14);
        graph_counts(graph, WIDE + 3 - failed - 1, failed, 1);
    }
}

// -- failures, nested -----------------------------------------------------------------------------

// root adds a -> b and c; a adds d, which fails.
typedef struct nest {
    ptowsp_graph *graph;
    uint64_t first, d;
    bool parent_fails;
    uint32_t ran_b, ran_c;
} nest;

static ptowsp_status nest_fail(void *user, uint64_t task, uint32_t lane) {
    (void)user, (void)task, (void)lane;
    return PTOWSP_UNSUPPORTED;
}

static ptowsp_status nest_count(void *user, uint64_t task, uint32_t lane) {
    (void)task, (void)lane;
    ++*(uint32_t *)user;
    return PTOWSP_OK;
}

static ptowsp_status nest_a(void *user, uint64_t task, uint32_t lane) {
    nest *n = (nest *)user;
    (void)lane;
    const ptowsp_graph_task_desc d = {.fn = nest_fail, .name = "deep"};
    return add_part(n->graph, task, &d, 1, &n->d);
}

static ptowsp_status nest_root(void *user, uint64_t task, uint32_t lane) {
    static const uint32_t edges[][2] = {{0, 1}};
    nest *n = (nest *)user;
    (void)lane;
    const ptowsp_graph_task_desc tasks[] = {{.fn = nest_a, .user = n},
                                            {.fn = nest_count, .user = &n->ran_b},
                                            {.fn = nest_count, .user = &n->ran_c}};
    const ptowsp_graph_part part = {tasks, 3, edges, 1};
    ptowsp_status status = ptowsp_graph_add(n->graph, task, &part, &n->first);
    return n->parent_fails ? PTOWSP_STUCK : status;
}

GROWING_TEST(graph_added_faults__failures_go_up_to_the_graphs_own_tasks, 4, 1) {
    nest n = {.graph = graph};
    add(graph, nest_root, &n, "root");
    for (int run = 0; run < 4; run++) {
        n.parent_fails = run % 2 == 1;
        n.ran_b = n.ran_c = 0;
        ptowsp_status status = run_any(kind, context, graph);
        if (n.parent_fails) {  // nothing that it has added runs
            test_refused(context, status, PTOWSP_STUCK, 0, "graph: task 0 'root' failed: STUCK");
            assert_true(n.ran_b == 0 && n.ran_c == 0);
            graph_task_is(graph, n.first + 2, PTOWSP_SKIPPED, 0);
            graph_counts(graph, 0, 1, 3);
            assert_int_equal(ptowsp_graph_result(graph).added_count, 3);
            continue;
        }
        test_refused(context, status, PTOWSP_UNSUPPORTED, 0,
                     "graph: task 0 'root' failed in an added task 'deep': UNSUPPORTED");
        assert_true(n.ran_b == 0 && n.ran_c == 1);
        assert_int_equal(ptowsp_graph_task_status(graph, n.first, NULL), PTOWSP_UNSUPPORTED);
        graph_task_is(graph, n.first + 1, PTOWSP_SKIPPED, n.first);
        assert_ok(ptowsp_graph_task_status(graph, n.first + 2, NULL));
        assert_int_equal(ptowsp_graph_task_status(graph, n.d, NULL), PTOWSP_UNSUPPORTED);
        graph_counts(graph, 1, 3, 1);
    }
}

// -- bad parts ------------------------------------------------------------------------------------

typedef struct bad {
    ptowsp_graph *graph;
    const ptowsp_graph_part *part;
    bool is_deep;  // an added task adds it
    uint64_t of;   // the task that it is added to, or PTOWSP_NO_INDEX: itself
} bad;

// It does not look at the status: the task fails all the same.
static ptowsp_status add_bad(void *user, uint64_t task, uint32_t lane) {
    bad *b = (bad *)user;
    (void)lane;
    if (b->is_deep && task == 0) {
        const ptowsp_graph_task_desc desc = {.fn = add_bad, .user = b, .name = "inner"};
        return add_part(b->graph, task, &desc, 1, NULL);
    }
    uint64_t first = 7, of = b->of == PTOWSP_NO_INDEX ? task : b->of;
    assert_invalid(ptowsp_graph_add(b->graph, of, b->part, &first));
    assert_true(first == PTOWSP_NO_INDEX);
    // Nor is what follows looked at.
    const ptowsp_graph_task_desc good = {.fn = nest_fail};
    assert_invalid(add_part(b->graph, of, &good, 1, NULL));
    return PTOWSP_OK;
}

static ptowsp_cycles some_kernel(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 1;
}

TEST(graph_added_faults__bad_parts_are_refused) {
    static const ptowsp_graph_call call = {0}, whole = {.fn = some_kernel};
    const ptowsp_graph_task_desc tasks[] = {{.fn = succeed, .range = succeed_range},
                                            {.fn = succeed, .item_count = 1},
                                            {.name = "a\"b"},
                                            {.priority = 4},
                                            {.unit = PTOWSP_UNIT_COUNT},
                                            {.range = succeed_range, .item_count = 3},
                                            {.kernel = &call},
                                            {.priority = 1, .fn = succeed},
                                            {.kernel = &whole}};
    static const uint32_t up[][2] = {{0, 1}, {1, 0}}, self[][2] = {{1, 1}}, out[][2] = {{0, 2}};
    const ptowsp_graph_task_desc good[2] = {{.fn = succeed}, {.fn = succeed}};
    const struct {
        ptowsp_graph_part part;
        const char *text;
    } rows[] = {
        {{&tasks[0], 1, NULL, 0}, "task 0 that it adds has both fn and range"},
        {{&tasks[1], 1, NULL, 0}, "task 0 that it adds has items but no range"},
        {{&tasks[2], 1, NULL, 0}, "task 0 that it adds has a bad name"},
        {{&tasks[3], 1, NULL, 0},
         "task 0 that it adds has a priority above PTOWSP_GRAPH_PRIORITY_MAX, 3: 4"},
        {{&tasks[4], 1, NULL, 0}, "task 0 that it adds has an unknown unit: 3"},
        {{&tasks[5], 1, NULL, 0}, "task 0 that it adds is a range"},
        {{&tasks[6], 1, NULL, 0}, "task 0 that it adds has a kernel without fn"},
        {{&tasks[7], 1, NULL, 0},
         "task 0 that it adds has a priority, but none of the graph's own tasks has one"},
        {{&tasks[8], 1, NULL, 0}, "task 0 that it adds is a kernel"},
        {{good, 2, up, 2}, "edge 1 that it adds leads to no later task of its part, but to: 0"},
        {{good, 2, self, 1}, "edge 0 that it adds leads to no later task of its part, but to: 1"},
        {{good, 2, out, 1}, "edge 0 that it adds leads to no later task of its part, but to: 2"},
        {{NULL, 2, NULL, 0}, "it adds tasks, but tasks is NULL, with a count"},
        {{good, 2, NULL, 1}, "it adds tasks, but edges is NULL, with a count"},
        {{NULL, 0, NULL, 0}, "it adds tasks, but part is NULL"},
    };
    enum { ROWS = COUNT_OF(rows) };
    for (size_t i = 0; i < 2 * ROWS * ANY_KIND_COUNT; i++) {
        size_t kind = i / (2 * ROWS), row = i / 2 % ROWS;
        ptowsp_context *context = any_context(kind);
        bad b = {.graph = growing(context, 8, 8), .is_deep = i % 2, .of = PTOWSP_NO_INDEX};
        b.part = row == ROWS - 1 ? NULL : &rows[row].part;
        add(b.graph, add_bad, &b, i % 2 ? NULL : "outer");
        char text[200];
        snprintf(text, sizeof text, "graph: task 0%s failed%s: %s", i % 2 ? "" : " 'outer'",
                 i % 2 ? " in an added task 'inner'" : "", rows[row].text);
        test_refused(context, run_any(kind, context, b.graph), PTOWSP_INVALID_PARAMS, 0, text);
        assert_int_equal(ptowsp_graph_result(b.graph).added_count, i % 2);
        ptowsp_graph_destroy(b.graph);
        ptowsp_context_destroy(context);
    }
}

GROWING_TEST(graph_added_faults__tasks_that_do_not_run_cannot_add, 8, 8) {
    const ptowsp_graph_part nothing = {NULL, 0, NULL, 0};
    bad b = {.graph = graph, .part = &nothing};
    test_refused(context, ptowsp_graph_add(graph, 0, &nothing, NULL), PTOWSP_INVALID_PARAMS, 0,
                 "graph: tasks are added to a graph that is not running");
    // 0 (a range) -> 1, which adds to 0, to 2 after it, to none.
    const ptowsp_graph_task_desc tasks[] = {
        {.range = succeed_range, .item_count = 5}, {.fn = add_bad, .user = &b}, {.fn = succeed}};
    graph_tasks(graph, tasks, 3);
    graph_chain(graph, 3);
    for (b.of = 0; b.of < 6; b.of++) {
        char text[100];
        b.of += b.of == 1;
        snprintf(text, sizeof text,
                 "graph: tasks were added to task %u, whose function was not running",
                 (unsigned)b.of);
        test_refused(context, run_any(kind, context, graph), PTOWSP_INVALID_PARAMS, b.of, text);
    }
}

static ptowsp_status add_bad_and_fail(void *user, uint64_t task, uint32_t lane) {
    const bad *b = (const bad *)user;
    (void)lane;
    assert_invalid(ptowsp_graph_add(b->graph, task, b->part, NULL));
    return (ptowsp_status)-42;
}

// A task that fails by itself keeps its status, whatever it has asked for.
GROWING_TEST(graph_added_faults__a_status_of_its_own_stays, 8, 8) {
    bad b = {.graph = graph};
    add(graph, add_bad_and_fail, &b, NULL);
    test_refused(context, run_any(kind, context, graph), -42, 0,
                 "graph: task 0 failed: it adds tasks, but part is NULL");
    assert_int_equal(ptowsp_graph_task_status(graph, 0, NULL), -42);
}

typedef struct asked {
    ptowsp_graph *graph;
    const ptowsp_graph_part *part;
    ptowsp_status status;
} asked;

static ptowsp_status ask(void *user, uint64_t task, uint32_t lane) {
    asked *a = (asked *)user;
    (void)lane;
    a->status = ptowsp_graph_add(a->graph, task, a->part, NULL);
    return PTOWSP_OK;
}

// A graph without bounds has room for no task and no edge.
TEST(graph_added_faults__a_graph_without_bounds_has_room_for_nothing) {
    static const ptowsp_graph_task_desc empty = {.fn = NULL};
    static const uint32_t edges[][2] = {{0, 0}};
    static const ptowsp_graph_part none = {NULL, 0, NULL, 0}, task = {&empty, 1, NULL, 0},
                                   edge = {NULL, 0, edges, 1};
    const ptowsp_graph_part *const parts[] = {&none, &task, &edge, NULL};
    for (size_t i = 0; i < 4 * ANY_KIND_COUNT; i++) {
        ptowsp_context *context = any_context(i / 4);
        asked a = {.graph = growing(context, 0, 0), .part = parts[i % 4]};
        const ptowsp_status wanted = i % 4 ? PTOWSP_LIMIT_EXCEEDED : PTOWSP_OK;
        add(a.graph, ask, &a, NULL);
        assert_int_equal(run_any(i / 4, context, a.graph), wanted);
        assert_int_equal(a.status, wanted);
        if (i % 4) {
            test_error_is(context, wanted, PTOWSP_NO_INDEX,
                          "graph: its tasks add more than added_task_max, 0, tasks or "
                          "added_edge_max, 0, edges");
        }
        ptowsp_graph_destroy(a.graph);
        ptowsp_context_destroy(context);
    }
}

TEST(graph_added_faults__bounds_that_no_graph_has) {
    static const struct {
        uint64_t tasks, edges;
        const char *text;
    } rows[] = {
        {UINT32_MAX, 0, "graph: added_task_max, 4294967295, is above 4294967294"},
        {1, UINT64_MAX, "graph: added_edge_max, 18446744073709551615, is above 4294967294"}};
    ptowsp_context *context = plain_context();
    ptowsp_graph *graph;
    for (size_t i = 0; i < 2; i++) {
        const ptowsp_graph_desc desc = {.added_task_max = rows[i].tasks,
                                        .added_edge_max = rows[i].edges};
        test_refused(context, ptowsp_graph_create(context, &desc, &graph), PTOWSP_LIMIT_EXCEEDED,
                     PTOWSP_NO_INDEX, rows[i].text);
        assert_null(graph);
    }
    for (int is_edges = 0; is_edges < 2; is_edges++) {
        graph = growing(context, is_edges ? 0 : UINT32_MAX - 1, is_edges ? UINT32_MAX - 1 : 0);
        graph_alike(graph, (ptowsp_graph_task_desc){.fn = succeed}, 3);
        graph_fan(graph, 3);
        test_refused(context, ptowsp_graph_seal(graph), PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                     is_edges ? "graph: more than 4294967295 edges with added_edge_max"
                              : "graph: more than 4294967295 tasks with added_task_max");
        ptowsp_graph_destroy(graph);
    }
    ptowsp_context_destroy(context);
}

#ifndef PTOWSP_NO_THREADS
CONTEXT_TEST(graph_added_faults__a_device_needs_a_core_of_the_unit) {
    const ptowsp_graph_task_desc cube = {.fn = succeed, .unit = PTOWSP_UNIT_CUBE};
    const ptowsp_graph_part part = {&cube, 1, NULL, 0};
    bad b = {.graph = growing(context, 8, 8), .part = &part, .of = PTOWSP_NO_INDEX};
    add(b.graph, add_bad, &b, NULL);
    ptowsp_device *device = device_of(context, 1, 2, 0);
    test_refused(context, ptowsp_device_run_graph(device, b.graph), PTOWSP_INVALID_PARAMS, 0,
                 "graph: task 0 failed: task 0 that it adds is of a unit of which the device has "
                 "no core: 1");
    const ptowsp_graph_task_desc empty = {.unit = PTOWSP_UNIT_CUBE};  // needs none
    const ptowsp_graph_part nothing = {&empty, 1, NULL, 0};
    asked a = {.graph = b.graph, .part = &nothing};
    ptowsp_graph_clear(b.graph);
    add(b.graph, ask, &a, NULL);
    assert_ok(ptowsp_device_run_graph(device, b.graph));
    assert_int_equal(ptowsp_graph_result(b.graph).added_count, 1);
    assert_int_equal(ptowsp_graph_result(b.graph).done_count, 2);
    ptowsp_device_close(device);
    ptowsp_graph_destroy(b.graph);
}
#endif
