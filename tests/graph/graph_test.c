// Graphs: order, ranges, failures, cancelling, shapes of all sizes, on every kind of lanes. That edges, in any order
// and more than once, are kept to is in graph_random_test.c.

#include "graph_fixture.h"

// -- order ----------------------------------------------------------------------------------------

GRAPH_TEST(graph__empty_and_single_graphs_run) {
    assert_ok(ptowsp_graph_run(graph));
    ptowsp_graph_task_desc nothing = {.user = NULL};
    uint64_t task;
    assert_ok(ptowsp_graph_task_make(graph, &nothing, &task));
    assert_int_equal(task, 0);
    assert_ok(ptowsp_graph_run(graph));
    const ptowsp_graph_stats stats = ptowsp_graph_result(graph);
    assert_int_equal(stats.task_count, 1);
    assert_int_equal(stats.done_count, 1);
    assert_int_equal(stats.lane_count, ptowsp_context_lane_count(context));
    assert_ok(ptowsp_graph_task_status(graph, 0, NULL));
}

GRAPH_TEST_ON(1, graph__grows_between_runs_and_is_cleared) {
    order o;
    order_begin(&o, 1000);
    for (uint32_t size = 1; size <= 1000; size += 333) {
        while (o.task_count < size) {
            order_task(&o, graph);
            if (o.task_count > 1) {
                order_edge(&o, graph, o.task_count - 2, o.task_count - 1);
            }
        }
        graph_task_is(graph, size - 1, PTOWSP_SKIPPED, PTOWSP_NO_INDEX);
        order_restart(&o);
        assert_ok(ptowsp_graph_run(graph));
        order_check(&o);
        assert_ok(ptowsp_graph_task_status(graph, size - 1, NULL));
    }
    ptowsp_graph_clear(graph);
    assert_int_equal(ptowsp_graph_result(graph).task_count, 0);
    assert_ok(ptowsp_graph_run(graph));
    order_end(&o);
    order_begin(&o, 2);
    order_task(&o, graph);
    order_task(&o, graph);
    order_edge(&o, graph, 1, 0);
    assert_ok(ptowsp_graph_run(graph));
    order_check(&o);
    order_end(&o);
}

// Edges in the order of the tasks that they lead to need less memory; then one is out of order.
GRAPH_TEST(graph__edges_come_in_any_order) {
    for (int round = 0; round < 2; round++, ptowsp_graph_clear(graph)) {
        order o;
        order_begin(&o, 60);
        for (uint32_t i = 0; i < 60; i++) {
            order_task(&o, graph);
            for (uint32_t before = i < 3 ? 0 : i - 3; before < i && i < 40; before++) {
                order_edge(&o, graph, before, i);
            }
        }
        assert_ok(ptowsp_graph_run(graph));
        order_check(&o);
        order_edge(&o, graph, 59, 50);  // behind 39, and back
        order_edge(&o, graph, 58, 0);   // before all that are in order
        order_edge(&o, graph, 39, 57);
        order_edge(&o, graph, 58, 59);
        order_restart(&o);
        assert_ok(ptowsp_graph_run(graph));
        order_check(&o);
        assert_int_equal(ptowsp_graph_result(graph).edge_count, o.edge_count);
        order_end(&o);
    }
}

// -- shapes ---------------------------------------------------------------------------------------

// A million tasks one after another: no recursion, and the end waits for all.
SHAPE_TEST(graph__a_chain_of_a_million_tasks_runs_in_order, 2, 1000000) {
    graph_chain(s->graph, s->task_count);
    shape_run(s, 2);
}

SHAPE_TEST(graph__a_million_independent_tasks_run_once_each, lanes_kind_count, 1000000) {
    shape_run(s, 2);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ptowsp_context_lane_count(s->context); i++) {
        sum += ptowsp_graph_lanes(s->graph)[i].task_count;
    }
    assert_int_equal(sum, 1000000);
}

// One task, 100,000 behind it, one behind all of them; and once more behind that.
SHAPE_TEST(graph__fans_of_a_hundred_thousand_run_in_order, lanes_kind_count, 200003) {
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t root = half * 100001;
        for (uint64_t i = 1; i <= 100000; i++) {
            assert_ok(ptowsp_graph_edge_make(s->graph, root, root + i));
            assert_ok(ptowsp_graph_edge_make(s->graph, root + i, root + 100001));
        }
    }
    shape_run(s, 3);
}

// -- ranges ---------------------------------------------------------------------------------------

typedef struct cells {
    uint32_t values[100000];
    uint64_t count;
    uint64_t fail_from, fail_step;
    ptowsp_graph *cancels;
} cells;

static ptowsp_status add_one(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    cells *c = (cells *)user;
    (void)lane;
    assert_true(begin < end && end <= c->count);
    for (uint64_t i = begin; i < end; i++) {
        c->values[i]++;
    }
    if (c->cancels) {
        ptowsp_graph_cancel(c->cancels);
    }
    if (c->fail_step && end > c->fail_from) {
        return (ptowsp_status)(-100 - (int)(begin / c->fail_step));
    }
    return PTOWSP_OK;
}

static ptowsp_status check_cells(void *user, uint64_t task, uint32_t lane) {
    cells *c = (cells *)user;
    (void)task, (void)lane;
    for (uint64_t i = 1; i < c->count; i++) {
        if (c->values[i] != c->values[0]) {
            return PTOWSP_INVALID_PARAMS;
        }
    }
    return PTOWSP_OK;
}

GRAPH_TEST(graph__ranges_do_each_item_once_between_what_is_before_and_after) {
    static const uint64_t counts[] = {0, 1, 2, 7, 1000, 100000},
                          grains[] = {0, 1, 3, 4096, 1000000};
    static cells c;
    for (size_t i = 0; i < 30; i++) {
        memset(&c, 0, sizeof c);
        c.count = counts[i / 5];
        ptowsp_graph_clear(graph);
        const ptowsp_graph_task_desc range_and_check[2] = {
            {.range = add_one, .item_count = c.count, .grain = grains[i % 5], .user = &c},
            {.fn = check_cells, .user = &c}};
        for (int k = 0; k < 3; k++) {
            graph_tasks(graph, range_and_check, 2);
        }
        graph_chain(graph, 6);
        assert_ok(ptowsp_graph_run(graph));
        assert_ok(ptowsp_graph_run(graph));
        assert_int_equal(ptowsp_graph_result(graph).done_count, 6);
        assert_int_equal(c.values[0], c.count ? 6 : 0);
    }
}

// A range of nothing has a time, between those of the tasks around it.
SHAPE_TEST(graph__an_empty_range_has_run, lanes_kind_count, 1) {
    ptowsp_span spans[2];
    graph_alike(s->graph, (ptowsp_graph_task_desc){.range = add_one}, 1);
    graph_chain(s->graph, 2);
    assert_ok(ptowsp_graph_record(s->graph, spans, 2));
    const uint64_t before = ptowsp_clock_ns();
    shape_run(s, 1);
    assert_true(spans[0].begin <= spans[0].end && spans[0].end <= spans[1].begin);
    assert_true(spans[1].begin <= spans[1].end && spans[1].end >= before);
}

// Ranges of 10 items from 50 on fail, with -100 - begin / 10: the first begins at 50.
GRAPH_TEST(graph__a_range_task_fails_as_its_lowest_range) {
    static cells c;
    memset(&c, 0, sizeof c);
    c.count = 1000;
    c.fail_from = 50;
    c.fail_step = 10;
    const ptowsp_graph_task_desc tasks[2] = {
        {.range = add_one, .item_count = 1000, .grain = 10, .user = &c},
        {.fn = check_cells, .user = &c}};
    graph_tasks(graph, tasks, 2);
    graph_chain(graph, 2);
    for (uint32_t run = 1; run <= 5; run++) {
        assert_int_equal(ptowsp_graph_run(graph), -105);
        assert_int_equal(ptowsp_graph_task_status(graph, 0, NULL), -105);
        assert_int_equal(ptowsp_graph_task_status(graph, 1, NULL), PTOWSP_SKIPPED);
        assert_ok(check_cells(&c, 0, 0));
        assert_int_equal(c.values[0], run);
    }
}

GRAPH_TEST(graph__a_cancelled_range_starts_no_more_ranges) {
    static cells c;
    memset(&c, 0, sizeof c);
    c.count = 100000;
    c.cancels = graph;
    graph_alike(
        graph,
        (ptowsp_graph_task_desc){.range = add_one, .item_count = 100000, .grain = 1, .user = &c},
        1);
    assert_int_equal(ptowsp_graph_run(graph), PTOWSP_CANCELLED);
    assert_int_equal(ptowsp_graph_task_status(graph, 0, NULL), PTOWSP_SKIPPED);
    uint64_t done = 0;
    for (size_t i = 0; i < 100000; i++) {
        done += c.values[i];
    }
    assert_true(done >= 1 && done <= ptowsp_context_lane_count(context));
}
