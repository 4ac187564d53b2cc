// How lanes share the tasks of graphs that grow, are recorded or have a time limit, under a clock that the
// test moves: tasks are as short or long as it says, whatever the machine does.

#include "src/graph/graph_state.h"

static uint64_t clock_ticks, look_ticks;  // atomic: now; from one look to the next

#undef pwsp_ticks
#define pwsp_ticks() __atomic_add_fetch(&clock_ticks, look_ticks, __ATOMIC_RELAXED)

#include "src/graph/graph_lanes.c"

#include "graph_added.h"

enum { PACE_RUNS = 100 };

// Runs fib(12) on two lanes, again and again, and returns in how many runs a lane was alone at the end.
static uint32_t alone_count(uint64_t ticks, uint64_t time_limit_ns, bool is_recorded) {
    static fib_tree tree;
    static ptowsp_span spans[3 * FIB_CALLS + 1];
    uint32_t count = 0;
#ifdef PTOWSP_NO_THREADS
    skip();
#endif
    look_ticks = ticks;
    ptowsp_context *context = test_lanes(2);
    ptowsp_graph *graph = growing(context, 3 * FIB_CALLS, 2 * FIB_CALLS);
    graph_alike(graph, fib_root(&tree, graph), 1);
    assert_ok(ptowsp_graph_limit(graph, time_limit_ns));
    assert_ok(ptowsp_graph_record(graph, spans, is_recorded ? 3 * FIB_CALLS + 1 : 0));
    for (uint32_t i = 0; i < PACE_RUNS; i++) {
        memset(&tree, 0, sizeof tree);
        (void)fib_root(&tree, graph);
        assert_ok(ptowsp_graph_run(graph));
        assert_int_equal(tree.nodes[1].value, 144);
        count += graph->engine.keeper != 0;
    }
    ptowsp_graph_destroy(graph);
    ptowsp_context_destroy(context);
    return count;
}

TEST(graph_pace__one_lane_runs_short_tasks_that_are_added) {
    assert_true(alone_count(PWSP_GRAPH_SHORT_TICKS, 0, false) > 0);
}

TEST(graph_pace__one_lane_runs_short_tasks_within_a_time_limit_or_recorded) {
    assert_true(alone_count(PWSP_GRAPH_SHORT_TICKS, UINT64_C(1) << 60, false) > 0);
    assert_true(alone_count(PWSP_GRAPH_SHORT_TICKS, 0, true) > 0);
}

TEST(graph_pace__all_lanes_run_long_tasks_that_are_added) {
    assert_int_equal(alone_count(PWSP_GRAPH_WINDOW * PWSP_GRAPH_LONG_TICKS, 0, false), 0);
}
