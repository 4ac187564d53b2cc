// Soak cases of graphs: tasks that fail or cancel, threads that do not start, memory that is refused; on
// lanes, and on the cores of devices.

#include "soak.h"

#include "graph_random.h"

enum { ROUNDS = 5 };

// Builds as `build` does, until memory is out.
static ptowsp_status build_badly(ptowsp_graph *graph, const random_graph *g, random_task *tasks) {
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 0; i < g->task_count && status == PTOWSP_OK; i++) {
        ptowsp_graph_task_desc desc = {.fn = run_task, .user = &tasks[i]};
        status = ptowsp_graph_task_make(graph, &desc, NULL);
    }
    for (uint32_t i = 0; i < g->edge_count && status == PTOWSP_OK; i++) {
        status = ptowsp_graph_edge_make(graph, g->edges[i][0], g->edges[i][1]);
    }
    return status == PTOWSP_OK ? ptowsp_graph_seal(graph) : status;
}

// On the lanes of the context, or on a device.
static ptowsp_status run(ptowsp_device *device, ptowsp_graph *graph) {
    return device ? ptowsp_device_run_graph(device, graph) : ptowsp_graph_run(graph);
}

static void run_well(ptowsp_context *context, ptowsp_device *device, ptowsp_graph *graph,
                     random_graph *g, uint64_t first_failed) {
    memset(g->values, 0, sizeof g->values);
    memset(g->runs, 0, sizeof g->runs);
    ptowsp_status status = run(device, graph);
    if (status == PTOWSP_SYSTEM_FAILED) {
        fail_msg("%s", ptowsp_context_error(context).text);
    }
    assert_int_equal(status, first_failed == PTOWSP_NO_INDEX ? 0 : -1000 - (int)first_failed);
    compare(graph, g);
}

// On another thread, after a while.
static void *cancel_late(void *user) {
    uint64_t state = (uint64_t)(uintptr_t)user;
    for (uint64_t i = test_splitmix(&state) % 20000; i > 0; i--) {
        __asm__ volatile("" ::: "memory");
    }
    ptowsp_graph_cancel((ptowsp_graph *)user);
    return NULL;
}

static void run_badly(ptowsp_device *device, ptowsp_graph *graph, random_graph *g, soak_fault fault,
                      uint64_t *random) {
    pthread_t canceller;
    const bool is_cancelled = fault == SOAK_BY_cancel;
    memset(g->values, 0, sizeof g->values);
    memset(g->runs, 0, sizeof g->runs);
    if (is_cancelled) {
        assert_int_equal(pthread_create(&canceller, NULL, cancel_late, graph), 0);
    } else if (fault == SOAK_BY_thread) {
        soak_refuse_threads(random);
    }
    ptowsp_status status = run(device, graph);
    soak_allow_all();
    if (is_cancelled) {
        pthread_join(canceller, NULL);
    }
    if (status == PTOWSP_CANCELLED) {
        assert_true(is_cancelled);
        for (uint32_t i = 0; i < g->task_count; i++) {
            assert_true(g->runs[i] <= (g->is_range[i] ? (uint32_t)ITEMS : 1u));
        }
    } else if (status != PTOWSP_SYSTEM_FAILED || fault != SOAK_BY_thread) {
        compare(graph, g);
    }
    soak_count(fault, status == PTOWSP_CANCELLED || status == PTOWSP_SYSTEM_FAILED);
}

// Graphs on lanes, and on a device if it is one's turn.
static void run_case(uint64_t seed, bool has_device) {
    uint64_t random = seed;
    soak_memory memory;
    ptowsp_graph *graph = NULL;
    const uint32_t lane_count = test_random_u32(&random, 1, 8);
    ptowsp_context *context = soak_context(&memory, lane_count, &random);
    ptowsp_device *device = has_device ? soak_device(context, &memory, &random) : NULL;
    random_graph *g = (random_graph *)malloc(sizeof *g);
    random_task *tasks = (random_task *)calloc(TASK_MAX, sizeof *tasks);
    assert_true(g && tasks);
    make_shape(g, &random);
    sort_edges(g);
    const uint64_t first_failed = reference(g);
    ptowsp_graph_desc desc = {.cube_lane_count = test_random_u32(&random, 0, 2)};
    for (int i = 0; i < 2; i++) {
        soak_refuse_memory(&memory, &random, 24);
        ptowsp_status status = ptowsp_graph_create(context, &desc, &graph);
        if (status == PTOWSP_OK) {
            status = build_badly(graph, g, tasks);
            ptowsp_graph_destroy(graph);
        }
        soak_allow_memory(&memory);
        assert_true(status == PTOWSP_OK || status == PTOWSP_OUT_OF_MEMORY);
        soak_count(SOAK_BY_memory, status != PTOWSP_OK);
    }
    assert_ok(ptowsp_graph_create(context, &desc, &graph));
    build(graph, g, tasks, test_random(&random) % 2, &random);
    for (int i = 0; i < ROUNDS; i++) {
        const soak_fault faults[] = {SOAK_BY_none, SOAK_BY_cancel, SOAK_BY_thread};
        run_badly(test_random(&random) % 2 ? device : NULL, graph, g,
                  faults[test_random(&random) % 3], &random);
        run_well(context, test_random(&random) % 2 ? device : NULL, graph, g, first_failed);
    }
    soak_count(SOAK_BY_kernel, first_failed != PTOWSP_NO_INDEX);
    if (device) {
        uint64_t left = 0;
        soak_device_launches(context, device, &random);
        soak_device_memory(device, &memory, &random, &left);
        const ptowsp_status closed = ptowsp_device_close(device);
        assert_int_equal(closed, left ? PTOWSP_LEAKED : PTOWSP_OK);
        assert_true(!left || ptowsp_context_error(context).index == left);
    }
    ptowsp_graph_destroy(graph);
    soak_context_end(context, &memory);
    free(tasks);
    free(g);
}

void soak_run_graph(uint64_t seed) {
    run_case(seed, false);
}

void soak_run_device(uint64_t seed) {
    run_case(seed, true);
}
