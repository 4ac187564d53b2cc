// How lanes share the tasks of graphs that grow, are recorded or have a time limit, under a clock that the
// test moves: tasks are as short or long as it says, whatever the machine does.

#include "src/graph/graph_state.h"

static uint64_t clock_ticks, look_ticks;  // atomic: now; from one look to the next

#undef pwsp_ticks
#define pwsp_ticks() __atomic_add_fetch(&clock_ticks, look_ticks, __ATOMIC_RELAXED)

#include "src/graph/graph_lanes.c"

#include "test.h"

enum { FIB_N = 12, FIB_CALLS = 232, PACE_RUNS = 100 };

typedef struct pace_call {
    struct pace_bench *bench;
    uint32_t n;
    uint64_t value;
    struct pace_call *parts;
} pace_call;

typedef struct pace_bench {
    ptowsp_graph *graph;
    uint64_t call_count;  // atomic
    pace_call calls[2 * FIB_CALLS + 1];
} pace_bench;

static ptowsp_status pace_sum(void *user, uint64_t task, uint32_t lane) {
    pace_call *call = (pace_call *)user;
    (void)task, (void)lane;
    call->value = call->parts[0].value + call->parts[1].value;
    return PTOWSP_OK;
}

static ptowsp_status pace_fib(void *user, uint64_t task, uint32_t lane) {
    static const uint32_t edges[][2] = {{0, 2}, {1, 2}};
    pace_call *call = (pace_call *)user;
    (void)lane;
    if (call->n < 2) {
        call->value = call->n;
        return PTOWSP_OK;
    }
    pace_bench *b = call->bench;
    call->parts = &b->calls[__atomic_fetch_add(&b->call_count, 2, __ATOMIC_RELAXED)];
    ptowsp_graph_task_desc tasks[3] = {{.fn = pace_fib}, {.fn = pace_fib}, {.fn = pace_sum}};
    for (uint32_t i = 0; i < 2; i++) {
        call->parts[i].bench = b;
        call->parts[i].n = call->n - 1 - i;
        tasks[i].user = &call->parts[i];
    }
    tasks[2].user = call;
    const ptowsp_graph_part part = {tasks, 3, edges, 2};
    return ptowsp_graph_add(b->graph, task, &part, NULL);
}

// Runs fib(12) on two lanes, again and again, and returns in how many runs a lane was alone at the end.
static uint32_t alone_count(uint64_t ticks, uint64_t time_limit_ns, bool is_recorded) {
    static pace_bench b;
    static ptowsp_span spans[3 * FIB_CALLS + 1];
    ptowsp_context *context;
    const ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = 2};
    const ptowsp_graph_desc grown = {.added_task_max = 3 * FIB_CALLS,
                                     .added_edge_max = 2 * FIB_CALLS};
    const ptowsp_graph_task_desc task = {.fn = pace_fib, .user = &b.calls[0]};
    uint32_t count = 0;
#ifdef PTOWSP_NO_THREADS
    skip();
#endif
    look_ticks = ticks;
    assert_ok(ptowsp_context_create(&desc, &context));
    assert_ok(ptowsp_graph_create(context, &grown, &b.graph));
    assert_ok(ptowsp_graph_task_make(b.graph, &task, NULL));
    assert_ok(ptowsp_graph_limit(b.graph, time_limit_ns));
    assert_ok(ptowsp_graph_record(b.graph, spans, is_recorded ? 3 * FIB_CALLS + 1 : 0));
    for (uint32_t i = 0; i < PACE_RUNS; i++) {
        memset(&b.calls, 0, sizeof b.calls);
        b.call_count = 1;
        b.calls[0].bench = &b;
        b.calls[0].n = FIB_N;
        assert_ok(ptowsp_graph_run(b.graph));
        assert_int_equal(b.calls[0].value, 144);
        count += b.graph->engine.keeper != 0;
    }
    ptowsp_graph_destroy(b.graph);
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
