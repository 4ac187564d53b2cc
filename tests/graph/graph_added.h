// What tests of tasks that add tasks share: graphs of all kinds of lanes and on a device, and a task that
// adds thousands.

#ifndef GRAPH_ADDED_H
#define GRAPH_ADDED_H

#include "device_fixture.h"

static inline ptowsp_graph *growing(ptowsp_context *context, uint64_t task_max, uint64_t edge_max) {
    ptowsp_graph_desc desc = {.added_task_max = task_max, .added_edge_max = edge_max};
    ptowsp_graph *graph;
    assert_ok(ptowsp_graph_create(context, &desc, &graph));
    return graph;
}

static inline uint64_t add(ptowsp_graph *graph, ptowsp_graph_fn fn, void *user, const char *name) {
    ptowsp_graph_task_desc desc = {.fn = fn, .user = user, .name = name};
    uint64_t task;
    assert_ok(ptowsp_graph_task_make(graph, &desc, &task));
    return task;
}

// What a running task adds: tasks without edges.
static inline ptowsp_status add_part(ptowsp_graph *graph, uint64_t task,
                                     const ptowsp_graph_task_desc *tasks, uint32_t count,
                                     uint64_t *out_first) {
    const ptowsp_graph_part part = {tasks, count, NULL, 0};
    return ptowsp_graph_add(graph, task, &part, out_first);
}

// Contexts of all kinds, with the last one for the device.
static inline ptowsp_context *any_context(size_t kind) {
    return kind < lanes_kind_count ? lanes_context(kind) : plain_context();
}

#ifdef PTOWSP_NO_THREADS
#define ANY_KIND_COUNT lanes_kind_count
#else
#define ANY_KIND_COUNT (lanes_kind_count + 1)
#endif

#define ANY_KIND_TEST(name) CONTEXTS_TEST(name, ANY_KIND_COUNT, any_context)

// The same with a graph that may grow by so much.
#define GROWING_TEST(name, task_max, edge_max)                                                     \
    static void name##_in(size_t kind, ptowsp_context *context, ptowsp_graph *graph);              \
    ANY_KIND_TEST(name) {                                                                          \
        ptowsp_graph *graph = growing(context, task_max, edge_max);                                \
        name##_in(kind, context, graph);                                                           \
        ptowsp_graph_destroy(graph);                                                               \
    }                                                                                              \
    static void name##_in(size_t kind, ptowsp_context *context, ptowsp_graph *graph)

// Runs the graph: the last kind is a device of 2 AICPU threads, 3 vector cores and a cube core.
static inline ptowsp_status run_any(size_t kind, ptowsp_context *context, ptowsp_graph *graph) {
    if (kind < lanes_kind_count) {
        return ptowsp_graph_run(graph);
    }
    ptowsp_device *device = device_of(context, 2, 3, 1);
    ptowsp_status status = ptowsp_device_run_graph(device, graph);
    ptowsp_device_close(device);
    return status;
}

// -- divide and conquer ---------------------------------------------------------------------------

// fib(12) = 144. Each of the 232 calls above 1 adds three tasks and two edges: the number of those calls is
// c(n) = 1 + c(n - 1) + c(n - 2) = fib(n + 1) - 1, from c(0) = c(1) = 0.
enum { FIB_N = 12, FIB_CALLS = 232 };

// Numbers from 1 on of a complete tree: the children of node i are 2i and 2i + 1.
typedef struct fib_tree {
    ptowsp_graph *graph;
    struct fib_node {
        struct fib_tree *tree;
        uint32_t n, node;
        uint64_t value;
    } nodes[1 << 14];
} fib_tree;

static inline ptowsp_status fib_sum(void *user, uint64_t task, uint32_t lane) {
    struct fib_node *node = (struct fib_node *)user;
    (void)task, (void)lane;
    node->value =
        node->tree->nodes[2 * node->node].value + node->tree->nodes[2 * node->node + 1].value;
    return PTOWSP_OK;
}

static inline ptowsp_status fib_run(void *user, uint64_t task, uint32_t lane) {
    static const uint32_t edges[][2] = {{0, 2}, {1, 2}};
    struct fib_node *node = (struct fib_node *)user;
    (void)lane;
    if (node->n < 2) {
        node->value = node->n;
        return PTOWSP_OK;
    }
    ptowsp_graph_task_desc tasks[3] = {{.fn = fib_run}, {.fn = fib_run}, {.fn = fib_sum}};
    for (uint32_t i = 0; i < 2; i++) {
        struct fib_node *child = &node->tree->nodes[2 * node->node + i];
        child->tree = node->tree;
        child->node = 2 * node->node + i;
        child->n = node->n - 1 - i;
        tasks[i].user = child;
    }
    tasks[2].user = node;
    const ptowsp_graph_part part = {tasks, 3, edges, 2};
    return ptowsp_graph_add(node->tree->graph, task, &part, NULL);
}

// The task of the root, in this graph.
static inline ptowsp_graph_task_desc fib_root(fib_tree *tree, ptowsp_graph *graph) {
    tree->graph = graph;
    tree->nodes[1].tree = tree;
    tree->nodes[1].node = 1;
    tree->nodes[1].n = FIB_N;
    return (ptowsp_graph_task_desc){.fn = fib_run, .user = &tree->nodes[1]};
}

// -- wide -----------------------------------------------------------------------------------------

typedef struct wide {
    ptowsp_graph *graph;
    uint32_t ran;        // atomic
    uint64_t fails;      // of these, those whose number in the part is a multiple of it fail
    uint64_t cancel_at;  // cancels when so many have run; 0: never
    uint64_t first;      // of the added tasks
    ptowsp_unit unit;
    uint32_t priority_max;
} wide;

static inline ptowsp_status wide_child(void *user, uint64_t task, uint32_t lane) {
    wide *w = (wide *)user;
    (void)lane;
    uint64_t number = task - w->first;
    if (__atomic_add_fetch(&w->ran, 1, __ATOMIC_RELAXED) == w->cancel_at) {
        ptowsp_graph_cancel(w->graph);
    }
    return w->fails && number && number % w->fails == 0 ? (ptowsp_status)(-100 - (int)number)
                                                        : PTOWSP_OK;
}

enum { WIDE = 5000 };

static inline ptowsp_status wide_parent(void *user, uint64_t task, uint32_t lane) {
    wide *w = (wide *)user;
    (void)lane;
    ptowsp_graph_task_desc *tasks = (ptowsp_graph_task_desc *)calloc(WIDE, sizeof *tasks);
    for (uint32_t i = 0; i < WIDE; i++) {
        tasks[i] = (ptowsp_graph_task_desc){.fn = wide_child, .user = w, .unit = w->unit};
        tasks[i].priority = w->priority_max ? i % (w->priority_max + 1) : 0;
    }
    ptowsp_status status = add_part(w->graph, task, tasks, WIDE, &w->first);
    free(tasks);
    return status;
}

#endif
