// Tasks that tasks add while a graph runs: order, results, memory; on every kind of lanes, and on a device.

#include "graph_added.h"

// -- divide and conquer ---------------------------------------------------------------------------

static ptowsp_status fib_check(void *user, uint64_t task, uint32_t lane) {
    (void)task, (void)lane;
    return ((fib_tree *)user)->nodes[1].value == 144 ? PTOWSP_OK : PTOWSP_STUCK;
}

TEST(graph_added__fib_as_a_tree_fits_the_bound_and_fails_one_past_it) {
    fib_tree *tree = (fib_tree *)calloc(1, sizeof *tree);
    assert_non_null(tree);
    static const struct {
        uint64_t tasks, edges;
        const char *text;
    } rows[] = {
        {3 * 232, 2 * 232, NULL},
        {3 * 232 - 1, 2 * 232,
         "graph: its tasks add more than added_task_max, 695, tasks or added_edge_max, 464, edges"},
        {3 * 232, 2 * 232 - 1,
         "graph: its tasks add more than added_task_max, 696, tasks or added_edge_max, 463, edges"},
        {0, 0,
         "graph: its tasks add more than added_task_max, 0, tasks or added_edge_max, 0, edges"},
    };
    for (size_t i = 0; i < 4 * ANY_KIND_COUNT; i++) {
        size_t kind = i / 4;
        ptowsp_context *context = any_context(kind);
        ptowsp_graph *graph = growing(context, rows[i % 4].tasks, rows[i % 4].edges);
        const ptowsp_graph_task_desc root = fib_root(tree, graph);
        graph_alike(graph, root, 1);
        uint64_t check = add(graph, fib_check, tree, NULL);
        graph_chain(graph, 2);
        for (int run = 0; run < 3; run++) {
            tree->nodes[1].value = 0;
            ptowsp_status status = run_any(kind, context, graph);
            ptowsp_graph_stats stats = ptowsp_graph_result(graph);
            if (rows[i % 4].text) {
                test_refused(context, status, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             rows[i % 4].text);
                assert_true(ptowsp_graph_task_status(graph, check, NULL) < 0);
                continue;
            }
            assert_ok(status);
            assert_int_equal(stats.task_count, 2);
            assert_int_equal(stats.added_count, 696);
            assert_int_equal(stats.done_count, 698);
            for (uint64_t task = 0; task < 698; task++) {
                assert_ok(ptowsp_graph_task_status(graph, task, NULL));
            }
        }
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
    }
    free(tree);
}

// -- order ----------------------------------------------------------------------------------------

// Task 1 of 0 -> 1 -> 2 adds x -> z, y -> z; x adds x1 -> x2; and an empty one. All note when they ran.
enum { O_BEFORE, O_PARENT, O_AFTER, O_X, O_Y, O_Z, O_X1, O_X2, O_COUNT };

typedef struct noted {
    ptowsp_graph *graph;
    uint64_t clock;  // atomic
    struct noted_task {
        struct noted *all;
        uint64_t begin, end, task;
    } tasks[O_COUNT];
} noted;

static ptowsp_status note(void *user, uint64_t task, uint32_t lane) {
    static const uint32_t edges[][2] = {{0, 2}, {1, 2}, {0, 2}}, chain[][2] = {{0, 1}};
    struct noted_task *me = (struct noted_task *)user, *t = me->all->tasks;
    ptowsp_graph *graph = me->all->graph;
    (void)lane;
    ptowsp_status status = PTOWSP_OK;
    me->task = task;
    me->begin = __atomic_add_fetch(&me->all->clock, 1, __ATOMIC_RELAXED);
    if (me == &t[O_PARENT]) {
        const ptowsp_graph_task_desc tasks[] = {{.fn = note, .user = &t[O_X]},
                                                {.fn = note, .user = &t[O_Y]},
                                                {.fn = note, .user = &t[O_Z]},
                                                {.name = "empty"}};
        const ptowsp_graph_part part = {tasks, 4, edges, 3}, nothing = {NULL, 0, NULL, 0};
        uint64_t first = 7;
        status = ptowsp_graph_add(graph, task, &part, &first);
        assert_int_equal(first, 3);
        status = status ? status : ptowsp_graph_add(graph, task, &nothing, &first);
        assert_true(first == PTOWSP_NO_INDEX);
    } else if (me == &t[O_X]) {
        const ptowsp_graph_task_desc tasks[] = {{.fn = note, .user = &t[O_X1]},
                                                {.fn = note, .user = &t[O_X2]}};
        const ptowsp_graph_part part = {tasks, 2, chain, 1};
        status = ptowsp_graph_add(graph, task, &part, NULL);
    }
    me->end = __atomic_add_fetch(&me->all->clock, 1, __ATOMIC_RELAXED);
    return status;
}

GROWING_TEST(graph_added__what_a_task_adds_runs_between_it_and_what_comes_after, 6, 4) {
    static const int before[][2] = {{O_BEFORE, O_PARENT}, {O_PARENT, O_X}, {O_PARENT, O_Y},
                                    {O_X, O_X1},          {O_X1, O_X2},    {O_X2, O_Z},
                                    {O_Y, O_Z},           {O_Z, O_AFTER}};
    noted n = {.graph = graph};
    ptowsp_span spans[9];
    for (int i = 0; i < O_COUNT; i++) {
        n.tasks[i].all = &n;
    }
    for (uint64_t i = 0; i < 3; i++) {
        add(graph, note, &n.tasks[i], NULL);
    }
    graph_chain(graph, 3);
    for (int run = 0; run < 10; run++) {
        n.clock = 0;
        memset(spans, 0xab, sizeof spans);
        assert_ok(ptowsp_graph_record(graph, run % 2 ? spans : NULL, run % 2 ? 9 : 0));
        assert_ok(run_any(kind, context, graph));
        assert_int_equal(n.clock, 2 * O_COUNT);
        for (size_t i = 0; i < COUNT_OF(before); i++) {
            assert_true(n.tasks[before[i][0]].end < n.tasks[before[i][1]].begin);
        }
        for (int i = 0; i < O_COUNT && run % 2; i++) {
            const ptowsp_span *span = &spans[n.tasks[i].task];
            assert_true(span->begin > 0 && span->end >= span->begin);
            assert_int_equal(span->kind, PTOWSP_UNIT_VECTOR);
        }
        ptowsp_graph_stats stats = ptowsp_graph_result(graph);
        uint64_t lane_tasks = 0;
        for (uint32_t i = 0; i < stats.lane_count; i++) {
            lane_tasks += ptowsp_graph_lanes(graph)[i].task_count;
        }
        assert_int_equal(lane_tasks, kind < lanes_kind_count ? 9 : 8);  // empty tasks take no core
        assert_int_equal(stats.done_count, 9);
    }
    // Tasks made later take the numbers.
    assert_ok(ptowsp_graph_task_status(graph, 3, NULL));
    assert_int_equal(add(graph, NULL, NULL, NULL), 3);
    assert_int_equal(ptowsp_graph_task_status(graph, 3, NULL), PTOWSP_SKIPPED);
}

// -- wide -----------------------------------------------------------------------------------------

// More than the ring of a lane holds, so some go to blocks; or to queues of classes.
TEST(graph_added__a_task_adds_thousands) {
    for (size_t i = 0; i < 3 * ANY_KIND_COUNT; i++) {
        size_t kind = i / 3;
        ptowsp_context *context = any_context(kind);
        ptowsp_graph_desc desc = {.added_task_max = WIDE, .cube_lane_count = i % 3 == 2};
        wide w = {.unit = i % 3 == 2 ? PTOWSP_UNIT_CUBE : PTOWSP_UNIT_VECTOR,
                  .priority_max = i % 3 == 1 ? 3 : 0};
        assert_ok(ptowsp_graph_create(context, &desc, &w.graph));
        ptowsp_graph_task_desc parent = {.fn = wide_parent, .user = &w, .priority = i % 3 == 1};
        assert_ok(ptowsp_graph_task_make(w.graph, &parent, NULL));
        for (int run = 0; run < 3; run++) {
            w.ran = 0;
#ifndef PTOWSP_NO_THREADS
            if (run == 2 && kind < lanes_kind_count) {
                assert_ok(ptowsp_graph_start(w.graph));
                assert_ok(ptowsp_graph_wait(w.graph));
            } else
#endif
                assert_ok(run_any(kind, context, w.graph));
            assert_int_equal(w.ran, WIDE);
            assert_int_equal(ptowsp_graph_result(w.graph).done_count, WIDE + 1);
        }
        ptowsp_graph_destroy(w.graph);
        ptowsp_context_destroy(context);
    }
}

// -- random trees ---------------------------------------------------------------------------------

// What a task adds follows from its seed alone, and so does the status of each, and the expected status of
// the graph's own tasks, which the slow walk below finds.
typedef struct tree {
    ptowsp_graph *graph;
    uint64_t ran, expected_ran;  // atomic
    struct tree_node *nodes;     // of added tasks
    uint64_t node_count;         // atomic
} tree;

typedef struct tree_node {
    tree *all;
    uint64_t seed;
    uint32_t depth;
} tree_node;

enum { TREE_CHILDREN = 4, TREE_DEPTH = 5 };

static ptowsp_status tree_run(void *user, uint64_t task, uint32_t lane);

static ptowsp_status tree_status(const tree_node *node) {
    return node->seed >> 40 & 31 ? PTOWSP_OK : (ptowsp_status)(-100 - (int)(node->seed >> 50 & 7));
}

static uint32_t tree_count(const tree_node *node) {
    return node->depth < TREE_DEPTH ? (uint32_t)(node->seed >> 20) % (TREE_CHILDREN + 1) : 0;
}

static tree_node tree_child(const tree_node *node, uint32_t i) {
    uint64_t seed = node->seed + i + 1;
    test_random(&seed);
    tree_node child = {node->all, test_random(&seed), node->depth + 1};
    return child;
}

// Children from this one on are added apart; none are where it is 0 or their number.
static uint32_t tree_split(const tree_node *node) {
    return (uint32_t)(node->seed >> 30) % (tree_count(node) + 1);
}

// Child i > 0 comes after child i - 1 of the same part if the bit of its seed is set.
static bool tree_has_edge(const tree_node *node, uint32_t i) {
    return i > 0 && i != tree_split(node) && node->seed >> i & 1;
}

static ptowsp_status tree_add(const tree_node *node, uint64_t task, uint32_t begin, uint32_t end) {
    ptowsp_graph_task_desc tasks[TREE_CHILDREN] = {{.fn = NULL}};
    uint32_t edges[TREE_CHILDREN][2], edge_count = 0;
    for (uint32_t i = begin; i < end; i++) {
        const uint64_t number = __atomic_fetch_add(&node->all->node_count, 1, __ATOMIC_RELAXED);
        tree_node *child = &node->all->nodes[number];
        *child = tree_child(node, i);
        tasks[i - begin] = (ptowsp_graph_task_desc){.fn = tree_run, .user = child};
        if (tree_has_edge(node, i)) {
            edges[edge_count][0] = i - begin - 1;
            edges[edge_count++][1] = i - begin;
        }
    }
    const ptowsp_graph_part part = {tasks, end - begin, (const uint32_t(*)[2])edges, edge_count};
    return ptowsp_graph_add(node->all->graph, task, &part, NULL);
}

static ptowsp_status tree_run(void *user, uint64_t task, uint32_t lane) {
    const tree_node node = *(tree_node *)user;
    (void)lane;
    __atomic_add_fetch(&node.all->ran, 1, __ATOMIC_RELAXED);
    const uint32_t split = tree_split(&node);
    ptowsp_status status = tree_status(&node);
    status = status < 0 ? status : tree_add(&node, task, 0, split);
    return status < 0 ? status : tree_add(&node, task, split, tree_count(&node));
}

// Counts what runs; the status as the first child's that fails.
static ptowsp_status tree_walk(const tree_node *node, bool is_skipped) {
    ptowsp_status status = tree_status(node), below = PTOWSP_OK;
    if (is_skipped) {
        return PTOWSP_OK;
    }
    node->all->expected_ran++;
    bool is_bad = false;  // the child before failed or was skipped
    for (uint32_t i = 0; status >= 0 && i < tree_count(node); i++) {
        const tree_node child = tree_child(node, i);
        bool child_skipped = is_bad && tree_has_edge(node, i);
        ptowsp_status child_status = tree_walk(&child, child_skipped);
        is_bad = child_skipped || child_status < 0;
        below = below < 0 ? below : child_status;
    }
    return status < 0 ? status : below;
}

TEST(graph_added__random_trees_end_as_a_slow_walk_says) {
    uint64_t random = test_seed();
    tree_node *nodes = (tree_node *)calloc(100000, sizeof *nodes);
    for (uint64_t round = 0; round < test_rounds(200); round++) {
        size_t kind = round % ANY_KIND_COUNT;
        ptowsp_context *context = any_context(kind);
        tree t = {.graph = growing(context, 100000, 100000), .nodes = nodes};
        tree_node roots[8];
        for (uint64_t i = 0; i < 8; i++) {
            roots[i] = (tree_node){&t, test_random(&random), 0};
            add(t.graph, tree_run, &roots[i], NULL);
        }
        ptowsp_status statuses[8], first = PTOWSP_OK;
        uint64_t index = PTOWSP_NO_INDEX;
        for (uint64_t i = 0; i < 8; i++) {
            statuses[i] = tree_walk(&roots[i], false);
            index = statuses[i] < 0 && index == PTOWSP_NO_INDEX ? i : index;
            first = first < 0 ? first : statuses[i];
        }
        assert_int_equal(run_any(kind, context, t.graph), first);
        assert_int_equal(t.ran, t.expected_ran);
        for (uint64_t i = 0; i < 8; i++) {
            assert_int_equal(ptowsp_graph_task_status(t.graph, i, NULL), statuses[i]);
        }
        if (first < 0) {
            assert_int_equal(ptowsp_context_error(context).index, index);
        }
        ptowsp_graph_destroy(t.graph);
        ptowsp_context_destroy(context);
    }
    free(nodes);
}

// -- memory ---------------------------------------------------------------------------------------

TEST(graph_added__every_allocation_may_be_refused_and_running_makes_none) {
    fib_tree *calls = (fib_tree *)calloc(1, sizeof *calls);
    EACH_REFUSED(n, 8) {
        test_memory memory;
        const ptowsp_graph_desc graph_desc = {.added_task_max = 3 * 232, .added_edge_max = 2 * 232};
        ptowsp_graph *graph = NULL;
        ptowsp_context *context = test_counted(&memory);
        test_refuse(&memory, n);
        ptowsp_status status = ptowsp_graph_create(context, &graph_desc, &graph);
        const ptowsp_graph_task_desc task = fib_root(calls, graph);
        status = status ? status : ptowsp_graph_task_make(graph, &task, NULL);
        status = status ? status : ptowsp_graph_run(graph);
        has_more = test_was_refused(&memory, status);
        if (!has_more) {
            size_t allocations = memory.allocations;
            assert_ok(ptowsp_graph_run(graph));
            assert_int_equal(memory.allocations, allocations);
            assert_true(ptowsp_graph_result(graph).memory_bytes <= memory.live_bytes);
            assert_true(ptowsp_graph_result(graph).memory_bytes > 696 * 100);
        }
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_bytes, 0);
    }
    free(calls);
}
