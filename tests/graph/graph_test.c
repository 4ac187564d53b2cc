// Graphs: order, ranges, failures, cancelling, shapes of all sizes, on every kind of lanes.

#include "graph_fixture.h"

// -- order ----------------------------------------------------------------------------------------

GRAPH_TEST(graph__runs_tasks_in_the_order_of_edges) {
    order o;
    order_begin(&o, 4);
    // 2 before 0, 0 before 1 and 3, 1 before 3.
    for (int i = 0; i < 4; i++) {
        order_task(&o, graph);
    }
    order_edge(&o, graph, 2, 0);
    order_edge(&o, graph, 0, 1);
    order_edge(&o, graph, 0, 3);
    order_edge(&o, graph, 1, 3);
    for (int run = 0; run < 3; run++) {
        order_restart(&o);
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
        order_check(&o);
    }
    ptowsp_graph_stats stats = ptowsp_graph_result(graph);
    assert_int_equal(stats.task_count, 4);
    assert_int_equal(stats.edge_count, 4);
    assert_int_equal(stats.done_count, 4);
    assert_int_equal(stats.failed_count, 0);
    assert_int_equal(stats.skipped_count, 0);
    assert_int_equal(stats.lane_count, ptowsp_context_lane_count(context));
    order_end(&o);
}

GRAPH_TEST(graph__empty_and_single_graphs_run) {
    assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
    ptowsp_graph_task_desc nothing = {.user = NULL};
    uint64_t task;
    assert_int_equal(ptowsp_graph_task_make(graph, &nothing, &task), PTOWSP_OK);
    assert_int_equal(task, 0);
    assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
    assert_int_equal(ptowsp_graph_result(graph).done_count, 1);
    assert_int_equal(ptowsp_graph_task_status(graph, 0, NULL), PTOWSP_OK);
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
        uint64_t cause;
        assert_int_equal(ptowsp_graph_task_status(graph, size - 1, &cause), PTOWSP_SKIPPED);
        assert_true(cause == PTOWSP_NO_INDEX);
        order_restart(&o);
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
        order_check(&o);
        assert_int_equal(ptowsp_graph_task_status(graph, size - 1, NULL), PTOWSP_OK);
    }
    ptowsp_graph_clear(graph);
    assert_int_equal(ptowsp_graph_result(graph).task_count, 0);
    assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
    order_end(&o);
    order_begin(&o, 2);
    order_task(&o, graph);
    order_task(&o, graph);
    order_edge(&o, graph, 1, 0);
    assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
    order_check(&o);
    order_end(&o);
}

GRAPH_TEST(graph__an_edge_may_be_added_again) {
    order o;
    order_begin(&o, 3);
    order_task(&o, graph), order_task(&o, graph), order_task(&o, graph);
    for (int i = 0; i < 5; i++) {
        order_edge(&o, graph, 1, 0);
        order_edge(&o, graph, 2, 0);
    }
    for (int run = 0; run < 10; run++) {
        order_restart(&o);
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
        order_check(&o);
    }
    assert_int_equal(ptowsp_graph_result(graph).edge_count, 10);
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
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
        order_check(&o);
        order_edge(&o, graph, 59, 50);  // behind 39, and back
        order_edge(&o, graph, 58, 0);   // before all that are in order
        order_edge(&o, graph, 39, 57);
        order_edge(&o, graph, 58, 59);
        order_restart(&o);
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
        order_check(&o);
        order_end(&o);
    }
}

// -- shapes ---------------------------------------------------------------------------------------

// A million tasks one after another: no recursion, and the end waits for all.
TEST(graph__a_chain_of_a_million_tasks_runs_in_order) {
    for (size_t k = 0; k < 2; k++) {
        shape s = shape_make(lanes_context(k), 1000000);
        for (uint64_t i = 1; i < s.task_count; i++) {
            assert_int_equal(ptowsp_graph_edge_make(s.graph, i - 1, i), PTOWSP_OK);
        }
        shape_run(&s, 2);
        shape_destroy(&s);
    }
}

TEST(graph__a_million_independent_tasks_run_once_each) {
    for (size_t k = 0; k < lanes_kind_count; k++) {
        shape s = shape_make(lanes_context(k), 1000000);
        shape_run(&s, 2);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < ptowsp_context_lane_count(s.context); i++) {
            sum += ptowsp_graph_lanes(s.graph)[i].task_count;
        }
        assert_int_equal(sum, 1000000);
        shape_destroy(&s);
    }
}

// One task, 100,000 behind it, one behind all of them; and once more behind that.
TEST(graph__fans_of_a_hundred_thousand_run_in_order) {
    for (size_t k = 0; k < lanes_kind_count; k++) {
        shape s = shape_make(lanes_context(k), 200003);
        for (uint64_t half = 0; half < 2; half++) {
            uint64_t root = half * 100001;
            for (uint64_t i = 1; i <= 100000; i++) {
                assert_int_equal(ptowsp_graph_edge_make(s.graph, root, root + i), PTOWSP_OK);
                assert_int_equal(ptowsp_graph_edge_make(s.graph, root + i, root + 100001),
                                 PTOWSP_OK);
            }
        }
        shape_run(&s, 3);
        shape_destroy(&s);
    }
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

TEST(graph__ranges_do_each_item_once_between_what_is_before_and_after) {
    static const uint64_t counts[] = {0, 1, 2, 7, 1000, 100000},
                          grains[] = {0, 1, 3, 4096, 1000000};
    cells *c = (cells *)calloc(1, sizeof *c);
    assert_non_null(c);
    for (size_t k = 0; k < lanes_kind_count; k++) {
        ptowsp_context *context = lanes_context(k);
        ptowsp_graph *graph;
        assert_int_equal(ptowsp_graph_create(context, NULL, &graph), PTOWSP_OK);
        for (size_t i = 0; i < 30; i++) {
            memset(c, 0, sizeof *c);
            c->count = counts[i / 5];
            ptowsp_graph_clear(graph);
            ptowsp_graph_task_desc range = {
                .range = add_one, .item_count = c->count, .grain = grains[i % 5], .user = c};
            ptowsp_graph_task_desc check = {.fn = check_cells, .user = c};
            for (uint64_t t = 0; t < 6; t++) {
                assert_int_equal(ptowsp_graph_task_make(graph, t % 2 ? &check : &range, NULL), 0);
                assert_int_equal(t ? ptowsp_graph_edge_make(graph, t - 1, t) : PTOWSP_OK, 0);
            }
            assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
            assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
            assert_int_equal(ptowsp_graph_result(graph).done_count, 6);
            assert_int_equal(c->values[0], c->count ? 6 : 0);
        }
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
    }
    free(c);
}

GRAPH_TEST(graph__ranges_may_be_open_at_the_same_time) {
    cells *c = (cells *)calloc(20, sizeof *c);
    assert_non_null(c);
    for (int i = 0; i < 20; i++) {
        c[i].count = (uint64_t)(100 * i);
        ptowsp_graph_task_desc range = {
            .range = add_one, .item_count = c[i].count, .grain = 1, .user = &c[i]};
        assert_int_equal(ptowsp_graph_task_make(graph, &range, NULL), PTOWSP_OK);
    }
    for (uint32_t run = 1; run <= 20; run++) {
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_OK);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(check_cells(&c[i], 0, 0), PTOWSP_OK);
            assert_int_equal(c[i].values[0], i ? run : 0);
        }
    }
    free(c);
}

// A range of nothing has a time, between those of the tasks around it.
TEST(graph__an_empty_range_has_run) {
    for (size_t k = 0; k < lanes_kind_count; k++) {
        shape s = shape_make(lanes_context(k), 1);
        const ptowsp_graph_task_desc range = {.range = add_one};
        ptowsp_span spans[2];
        assert_int_equal(ptowsp_graph_task_make(s.graph, &range, NULL), PTOWSP_OK);
        assert_int_equal(ptowsp_graph_edge_make(s.graph, 0, 1), PTOWSP_OK);
        assert_int_equal(ptowsp_graph_record(s.graph, spans, 2), PTOWSP_OK);
        const uint64_t before = ptowsp_clock_ns();
        shape_run(&s, 1);
        assert_true(spans[0].begin <= spans[0].end && spans[0].end <= spans[1].begin);
        assert_true(spans[1].begin <= spans[1].end && spans[1].end >= before);
        shape_destroy(&s);
    }
}

// Ranges of 10 items from 50 on fail, with -100 - begin / 10: the first begins at 50.
TEST(graph__a_range_task_fails_as_its_lowest_range) {
    cells *c = (cells *)calloc(1, sizeof *c);
    assert_non_null(c);
    for (size_t k = 0; k < lanes_kind_count; k++) {
        ptowsp_context *context = lanes_context(k);
        ptowsp_graph *graph;
        assert_int_equal(ptowsp_graph_create(context, NULL, &graph), PTOWSP_OK);
        memset(c, 0, sizeof *c);
        c->count = 1000;
        c->fail_from = 50;
        c->fail_step = 10;
        ptowsp_graph_task_desc range = {
            .range = add_one, .item_count = 1000, .grain = 10, .user = c};
        ptowsp_graph_task_desc after = {.fn = check_cells, .user = c};
        assert_int_equal(ptowsp_graph_task_make(graph, &range, NULL), PTOWSP_OK);
        assert_int_equal(ptowsp_graph_task_make(graph, &after, NULL), PTOWSP_OK);
        assert_int_equal(ptowsp_graph_edge_make(graph, 0, 1), PTOWSP_OK);
        for (uint32_t run = 1; run <= 5; run++) {
            assert_int_equal(ptowsp_graph_run(graph), -105);
            assert_int_equal(ptowsp_graph_task_status(graph, 0, NULL), -105);
            assert_int_equal(ptowsp_graph_task_status(graph, 1, NULL), PTOWSP_SKIPPED);
            assert_int_equal(check_cells(c, 0, 0), PTOWSP_OK);
            assert_int_equal(c->values[0], run);
        }
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
    }
    free(c);
}

TEST(graph__a_cancelled_range_starts_no_more_ranges) {
    cells *c = (cells *)calloc(1, sizeof *c);
    assert_non_null(c);
    for (size_t k = 0; k < lanes_kind_count; k++) {
        ptowsp_context *context = lanes_context(k);
        ptowsp_graph *graph;
        assert_int_equal(ptowsp_graph_create(context, NULL, &graph), PTOWSP_OK);
        memset(c, 0, sizeof *c);
        c->count = 100000;
        c->cancels = graph;
        ptowsp_graph_task_desc range = {
            .range = add_one, .item_count = 100000, .grain = 1, .user = c};
        assert_int_equal(ptowsp_graph_task_make(graph, &range, NULL), PTOWSP_OK);
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_CANCELLED);
        assert_int_equal(ptowsp_graph_task_status(graph, 0, NULL), PTOWSP_SKIPPED);
        uint64_t done = 0;
        for (size_t i = 0; i < 100000; i++) {
            done += c->values[i];
        }
        assert_true(done >= 1 && done <= ptowsp_context_lane_count(context));
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
    }
    free(c);
}
