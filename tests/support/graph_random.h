// Random graphs and what must come of them, worked out serially: what tasks compute, which ones fail
// and which are skipped, and whom that is blamed on. Numbers are dealt out at random, so that edges
// lead up and down; some tasks are ranges, some wait a little, some fail.

#ifndef GRAPH_RANDOM_H
#define GRAPH_RANDOM_H

#include "graph_fixture.h"

enum { TASK_MAX = 400, EDGE_MAX = 4096, ITEMS = 24 };

typedef struct random_graph {
    uint32_t task_count, edge_count;
    uint32_t order[TASK_MAX];  // numbers, in a topological order
    uint32_t edges[EDGE_MAX][2];
    bool is_range[TASK_MAX], fails[TASK_MAX];
    uint32_t delay[TASK_MAX];  // rounds of waiting
    // What comes out; a cell for each item of a range.
    uint64_t values[TASK_MAX][ITEMS];
    uint32_t runs[TASK_MAX];
    // What is to come out.
    uint64_t wanted[TASK_MAX][ITEMS];
    ptowsp_status status[TASK_MAX];
    uint64_t cause[TASK_MAX];
    uint32_t first_edge[TASK_MAX + 1], before[EDGE_MAX];  // by task, what is before it
} random_graph;

// One for each task, so that ranges know theirs.
typedef struct random_task {
    random_graph *g;
    uint32_t task;
} random_task;

static inline uint64_t mix(uint64_t x) {
    return test_splitmix(&x);
}

// The value of an item depends on all values of the tasks before.
static inline uint64_t item_value(const random_graph *g, uint64_t (*values)[ITEMS], uint32_t task,
                                  uint64_t item) {
    uint64_t value = mix(task + 1000 * item);
    for (uint32_t k = g->first_edge[task]; k < g->first_edge[task + 1]; k++) {
        for (uint32_t i = 0; i < ITEMS; i++) {
            value = mix(value + values[g->before[k]][i]);
        }
    }
    return value;
}

static inline void spend(uint32_t rounds) {
    for (volatile uint32_t i = 0; i < rounds; i++) {
    }
}

static inline ptowsp_status run_task(void *user, uint64_t task, uint32_t lane) {
    random_graph *g = ((random_task *)user)->g;
    (void)lane;
    spend(g->delay[task]);
    g->runs[task]++;
    g->values[task][0] = item_value(g, g->values, (uint32_t)task, 0);
    return g->fails[task] ? (ptowsp_status)(-1000 - (int)task) : (ptowsp_status)(task % 3);
}

static inline ptowsp_status run_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    random_task *t = (random_task *)user;
    random_graph *g = t->g;
    (void)lane;
    spend(g->delay[t->task]);
    __atomic_fetch_add(&g->runs[t->task], (uint32_t)(end - begin), __ATOMIC_RELAXED);
    for (uint64_t i = begin; i < end; i++) {
        g->values[t->task][i] = item_value(g, g->values, t->task, i);
    }
    return g->fails[t->task] && end == ITEMS ? (ptowsp_status)(-1000 - (int)t->task) : PTOWSP_OK;
}

static inline void make_shape(random_graph *g, uint64_t *random) {
    memset(g, 0, sizeof *g);
    g->task_count = (uint32_t)test_random_in(random, 1, test_random_in(random, 1, TASK_MAX));
    uint32_t n = g->task_count;
    bool is_ordered = test_random_in(random, 0, 2) == 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = is_ordered ? i : (uint32_t)test_random_in(random, 0, i);
        g->order[i] = g->order[j];
        g->order[j] = i;
    }
    uint32_t edge_max = (uint32_t)test_random_in(random, 0, test_random_in(random, 0, 4)) * n;
    int64_t reach = test_random_in(random, 1, n);
    for (uint32_t e = 0; e < edge_max && n > 1 && e < EDGE_MAX; e++) {
        int64_t after = test_random_in(random, 1, n - 1);
        int64_t low = after > reach ? after - reach : 0;
        g->edges[e][0] = g->order[test_random_in(random, low, after - 1)];
        g->edges[e][1] = g->order[after];
        g->edge_count++;
    }
    int64_t rate = test_random_in(random, 0, 3) ? 0 : test_random_in(random, 2, 200);
    int64_t delay = test_random_in(random, 0, 2) ? 0 : test_random_in(random, 0, 3000);
    for (uint32_t i = 0; i < n; i++) {
        g->is_range[i] = test_random_in(random, 0, 15) == 0;
        g->fails[i] = rate && test_random_in(random, 1, rate) == 1;
        g->delay[i] = (uint32_t)test_random_in(random, 0, delay);
    }
}

// What is before each task, in the order in which edges are added.
static inline void sort_edges(random_graph *g) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->edge_count; i++) {
        g->first_edge[g->edges[i][1] + 1]++;
    }
    for (uint32_t i = 0; i < g->task_count; i++) {
        g->first_edge[i + 1] += g->first_edge[i];
    }
    uint32_t next[TASK_MAX];
    memcpy(next, g->first_edge, sizeof next);
    for (; count < g->edge_count; count++) {
        g->before[next[g->edges[count][1]]++] = g->edges[count][0];
    }
}

// Runs the graph on paper: the first failed task, or PTOWSP_NO_INDEX.
static inline uint64_t reference(random_graph *g) {
    uint64_t first_failed = PTOWSP_NO_INDEX;
    for (uint32_t k = 0; k < g->task_count; k++) {
        uint32_t task = g->order[k];
        uint64_t cause = PTOWSP_NO_INDEX;
        for (uint32_t i = g->first_edge[task]; i < g->first_edge[task + 1]; i++) {
            cause = g->cause[g->before[i]] < cause ? g->cause[g->before[i]] : cause;
        }
        g->status[task] = cause == PTOWSP_NO_INDEX ? PTOWSP_OK : PTOWSP_SKIPPED;
        if (cause == PTOWSP_NO_INDEX) {
            for (uint32_t i = 0; i < (g->is_range[task] ? ITEMS : 1); i++) {
                g->wanted[task][i] = item_value(g, g->wanted, task, i);
            }
            if (g->fails[task]) {
                g->status[task] = (ptowsp_status)(-1000 - (int)task);
                cause = task;
                first_failed = task < first_failed ? task : first_failed;
            }
        }
        g->cause[task] = cause;
    }
    return first_failed;
}

static inline void build(ptowsp_graph *graph, random_graph *g, random_task *tasks, bool has_classes,
                         uint64_t *random) {
    for (uint32_t i = 0; i < g->task_count; i++) {
        tasks[i].g = g;
        tasks[i].task = i;
        ptowsp_graph_task_desc desc = {.user = &tasks[i]};
        if (g->is_range[i]) {
            desc.range = run_range;
            desc.item_count = ITEMS;
            desc.grain = (uint64_t)test_random_in(random, 0, ITEMS + 1);
        } else {
            desc.fn = run_task;
        }
        if (has_classes) {
            desc.priority = (uint32_t)test_random_in(random, 0, PTOWSP_GRAPH_PRIORITY_MAX);
            desc.unit = (ptowsp_unit)test_random_in(random, 0, 1);
        }
        assert_ok(ptowsp_graph_task_make(graph, &desc, NULL));
    }
    for (uint32_t i = 0; i < g->edge_count; i++) {
        assert_ok(ptowsp_graph_edge_make(graph, g->edges[i][0], g->edges[i][1]));
    }
}

static inline void compare(const ptowsp_graph *graph, const random_graph *g) {
    uint64_t done = 0, failed = 0;
    for (uint32_t i = 0; i < g->task_count; i++) {
        uint64_t cause;
        assert_int_equal(ptowsp_graph_task_status(graph, i, &cause), g->status[i]);
        assert_true(cause == g->cause[i]);
        uint32_t runs = g->status[i] == PTOWSP_SKIPPED ? 0 : g->is_range[i] ? ITEMS : 1;
        assert_int_equal(g->runs[i], runs);
        done += g->status[i] == PTOWSP_OK;
        failed += g->status[i] <= -1000;
    }
    assert_memory_equal(g->values, g->wanted, sizeof g->values);
    ptowsp_graph_stats stats = ptowsp_graph_result(graph);
    assert_int_equal(stats.done_count, done);
    assert_int_equal(stats.failed_count, failed);
    assert_int_equal(stats.skipped_count, g->task_count - done - failed);
}

// A random graph, in place of the one at hand, is run three times, by a function that is told which time it is,
// and does what running in order does.
static inline void random_graph_agrees(ptowsp_context *context, ptowsp_graph *graph,
                                       random_graph *g, random_task *tasks, bool has_classes,
                                       uint64_t *random,
                                       ptowsp_status (*run)(ptowsp_graph *graph, int time,
                                                            ptowsp_device *device),
                                       ptowsp_device *device) {
    make_shape(g, random);
    sort_edges(g);
    const uint64_t first_failed = reference(g);
    ptowsp_graph_clear(graph);
    build(graph, g, tasks, has_classes, random);
    for (int time = 0; time < 3; time++) {
        memset(g->values, 0, sizeof g->values);
        memset(g->runs, 0, sizeof g->runs);
        const ptowsp_status status = run(graph, time, device);
        if (first_failed == PTOWSP_NO_INDEX) {
            assert_ok(status);
        } else {
            assert_int_equal(status, -1000 - (int)first_failed);
            assert_true(ptowsp_context_error(context).index == first_failed);
        }
        compare(graph, g);
    }
}

#endif
