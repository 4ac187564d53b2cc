// What tests of graphs share: contexts with all kinds of lanes, graphs from tables, and tasks that note when
// they ran.

#ifndef GRAPH_FIXTURE_H
#define GRAPH_FIXTURE_H

#include "test.h"

// -- lanes ----------------------------------------------------------------------------------------

// An executor without threads: the last lane first, then the others in order.
static inline void lanes_run_last_only(void *user, uint32_t lane_count, ptowsp_lane_fn lane,
                                       void *job) {
    (void)user;
    lane(job, lane_count - 1);
    for (uint32_t i = 0; i + 1 < lane_count; i++) {
        lane(job, i);
    }
}

#ifdef PTOWSP_NO_THREADS
static const size_t lanes_kind_count = 4;
#else
static const size_t lanes_kind_count = 8;
#endif

// Serial, with the user's threads and without, and with own threads. Some have more lanes than the
// machine has processors.
static inline ptowsp_context *lanes_context(size_t kind) {
    static const struct {
        uint32_t lane_count;
        ptowsp_run_lanes_fn run_lanes;
    } kinds[] = {{1, NULL},
                 {3, test_run_lanes_on_threads},
                 {3, test_run_lanes_backwards},
                 {8, lanes_run_last_only},
                 {2, NULL},
                 {3, NULL},
                 {8, NULL},
                 {1, test_run_lanes_on_threads}};
    ptowsp_context_desc desc = {.lane_count = kinds[kind].lane_count,
                                .run_lanes = kinds[kind].run_lanes};
    desc.threads = desc.run_lanes         ? PTOWSP_THREADS_USER
                   : desc.lane_count == 1 ? PTOWSP_THREADS_SERIAL
                                          : PTOWSP_THREADS_OWN;
    return test_context(&desc);
}

// -- graphs ---------------------------------------------------------------------------------------

static inline ptowsp_graph *graph_of(ptowsp_context *context) {
    ptowsp_graph *graph;
    assert_ok(ptowsp_graph_create(context, NULL, &graph));
    return graph;
}

// Tasks, of which each may have another description; all alike.
static inline void graph_tasks(ptowsp_graph *graph, const ptowsp_graph_task_desc *descs,
                               uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        assert_ok(ptowsp_graph_task_make(graph, &descs[i], NULL));
    }
}

static inline void graph_alike(ptowsp_graph *graph, ptowsp_graph_task_desc desc, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        assert_ok(ptowsp_graph_task_make(graph, &desc, NULL));
    }
}

static inline void graph_edges(ptowsp_graph *graph, const uint64_t (*edges)[2], size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_ok(ptowsp_graph_edge_make(graph, edges[i][0], edges[i][1]));
    }
}

// Edges from each of `count` tasks to the next one; from task 0 to all others.
static inline void graph_chain(ptowsp_graph *graph, uint64_t count) {
    for (uint64_t i = 1; i < count; i++) {
        assert_ok(ptowsp_graph_edge_make(graph, i - 1, i));
    }
}

static inline void graph_fan(ptowsp_graph *graph, uint64_t count) {
    for (uint64_t i = 1; i < count; i++) {
        assert_ok(ptowsp_graph_edge_make(graph, 0, i));
    }
}

// What the last run has made of a task; how many tasks were done, failed and were skipped.
static inline void graph_task_is(const ptowsp_graph *graph, uint64_t task, ptowsp_status status,
                                 uint64_t cause) {
    uint64_t found;
    assert_int_equal(ptowsp_graph_task_status(graph, task, &found), status);
    assert_true(found == cause);
}

static inline void graph_counts(const ptowsp_graph *graph, uint64_t done, uint64_t failed,
                                uint64_t skipped) {
    const ptowsp_graph_stats stats = ptowsp_graph_result(graph);
    assert_int_equal(stats.done_count, done);
    assert_int_equal(stats.failed_count, failed);
    assert_int_equal(stats.skipped_count, skipped);
}

// Functions of tasks that do nothing.
static inline ptowsp_status succeed(void *user, uint64_t task, uint32_t lane) {
    (void)user, (void)task, (void)lane;
    return PTOWSP_OK;
}

static inline ptowsp_status succeed_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)begin, (void)end, (void)lane;
    return PTOWSP_OK;
}

// A test in a context with lanes of each kind.
#define CONTEXTS_TEST(name, count, context_of)                                                     \
    static void name##_of(size_t kind, ptowsp_context *context);                                   \
    TEST(name) {                                                                                   \
        for (size_t kind = 0; kind < (count); kind++) {                                            \
            ptowsp_context *context = context_of(kind);                                            \
            name##_of(kind, context);                                                              \
            ptowsp_context_destroy(context);                                                       \
        }                                                                                          \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) size_t kind, ptowsp_context *context)

#define LANES_TEST(name) CONTEXTS_TEST(name, lanes_kind_count, lanes_context)

// A test with a graph, in a context with lanes of one kind, or of each.
#define GRAPH_TEST_KINDS(name, first, end)                                                         \
    static void name##_of(ptowsp_context *context, ptowsp_graph *graph);                           \
    TEST(name) {                                                                                   \
        for (size_t kind = first; kind < (end); kind++) {                                          \
            ptowsp_context *context = lanes_context(kind);                                         \
            ptowsp_graph *graph = graph_of(context);                                               \
            name##_of(context, graph);                                                             \
            ptowsp_graph_destroy(graph);                                                           \
            ptowsp_context_destroy(context);                                                       \
        }                                                                                          \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) ptowsp_context *context, ptowsp_graph *graph)

#define GRAPH_TEST(name)          GRAPH_TEST_KINDS(name, 0, lanes_kind_count)
#define GRAPH_TEST_ON(kind, name) GRAPH_TEST_KINDS(name, kind, kind + 1)

// A test with a graph in the context that is made for it; some of its lanes are for cube tasks.
#define GRAPH_TEST_IN(made, cube_lanes, name)                                                      \
    static void name##_of(ptowsp_context *context, ptowsp_graph *graph);                           \
    TEST(name) {                                                                                   \
        const ptowsp_graph_desc desc = {.cube_lane_count = cube_lanes};                            \
        ptowsp_context *context = made;                                                            \
        ptowsp_graph *graph;                                                                       \
        assert_ok(ptowsp_graph_create(context, &desc, &graph));                                    \
        name##_of(context, graph);                                                                 \
        ptowsp_graph_destroy(graph);                                                               \
        ptowsp_context_destroy(context);                                                           \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) ptowsp_context *context, ptowsp_graph *graph)

// -- order ----------------------------------------------------------------------------------------

// Small graphs whose tasks draw a number when they begin and one when they end.
typedef struct order {
    uint32_t task_count, edge_count;
    uint64_t edges[4096][2];
    uint64_t clock;  // atomic
    uint64_t *begins, *ends;
} order;

static inline void order_begin(order *o, uint32_t task_max) {
    memset(o, 0, sizeof *o);
    o->begins = (uint64_t *)calloc(task_max, sizeof(uint64_t));
    o->ends = (uint64_t *)calloc(task_max, sizeof(uint64_t));
    assert_true(o->begins && o->ends);
}

static inline void order_end(order *o) {
    free(o->begins);
    free(o->ends);
}

static inline ptowsp_status order_note(void *user, uint64_t task, uint32_t lane) {
    order *o = (order *)user;
    (void)lane;
    assert_int_equal(o->ends[task], 0);  // it has not run before
    o->begins[task] = __atomic_add_fetch(&o->clock, 1, __ATOMIC_RELAXED);
    o->ends[task] = __atomic_add_fetch(&o->clock, 1, __ATOMIC_RELAXED);
    return PTOWSP_OK;
}

static inline void order_task(order *o, ptowsp_graph *graph) {
    ptowsp_graph_task_desc desc = {.fn = order_note, .user = o};
    uint64_t task;
    assert_ok(ptowsp_graph_task_make(graph, &desc, &task));
    assert_int_equal(task, o->task_count++);
}

static inline void order_edge(order *o, ptowsp_graph *graph, uint64_t before, uint64_t after) {
    assert_true(o->edge_count < 4096);
    o->edges[o->edge_count][0] = before;
    o->edges[o->edge_count++][1] = after;
    assert_ok(ptowsp_graph_edge_make(graph, before, after));
}

static inline void order_restart(order *o) {
    o->clock = 0;
    memset(o->ends, 0, o->task_count * sizeof(uint64_t));
}

// All tasks have run, once, and in order.
static inline void order_check(const order *o) {
    assert_int_equal(o->clock, 2 * o->task_count);
    for (uint32_t i = 0; i < o->task_count; i++) {
        assert_true(o->ends[i] > o->begins[i]);
    }
    for (uint32_t i = 0; i < o->edge_count; i++) {
        assert_true(o->ends[o->edges[i][0]] < o->begins[o->edges[i][1]]);
    }
}

// -- shapes ---------------------------------------------------------------------------------------

// Large graphs, whose tasks count how often they have run.
typedef struct shape {
    ptowsp_context *context;
    ptowsp_graph *graph;
    uint64_t task_count;
    uint8_t *runs;
} shape;

static inline ptowsp_status shape_count(void *user, uint64_t task, uint32_t lane) {
    (void)lane;
    ((uint8_t *)user)[task]++;
    return PTOWSP_OK;
}

static inline shape shape_make(ptowsp_context *context, uint64_t task_count) {
    shape s = {
        .context = context, .task_count = task_count, .runs = (uint8_t *)calloc(task_count, 1)};
    assert_non_null(s.runs);
    s.graph = graph_of(context);
    graph_alike(s.graph, (ptowsp_graph_task_desc){.fn = shape_count, .user = s.runs}, task_count);
    return s;
}

static inline void shape_run(shape *s, uint32_t run_count) {
    memset(s->runs, 0, s->task_count);
    for (uint32_t run = 0; run < run_count; run++) {
        assert_ok(ptowsp_graph_run(s->graph));
    }
    for (uint64_t i = 0; i < s->task_count; i++) {
        assert_int_equal(s->runs[i], run_count);
    }
}

static inline void shape_destroy(shape *s) {
    free(s->runs);
    ptowsp_graph_destroy(s->graph);
    ptowsp_context_destroy(s->context);
}

// A test with a shape, on the first kinds of lanes.
#define SHAPE_TEST(name, kind_count, task_count)                                                   \
    static void name##_of(shape *s);                                                               \
    TEST(name) {                                                                                   \
        for (size_t kind = 0; kind < (kind_count); kind++) {                                       \
            shape made = shape_make(lanes_context(kind), task_count);                              \
            name##_of(&made);                                                                      \
            shape_destroy(&made);                                                                  \
        }                                                                                          \
    }                                                                                              \
    static void name##_of(shape *s)

#endif
