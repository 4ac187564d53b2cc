// Random graphs (graph_random.h) on every kind of lanes.

#include "graph_random.h"

static ptowsp_status run_on_lanes(ptowsp_graph *graph, int time, ptowsp_device *device) {
    (void)time, (void)device;
    return ptowsp_graph_run(graph);
}

static void run_rounds(uint32_t round_count, bool has_classes) {
    uint64_t random = test_seed();
    ptowsp_context *contexts[8];
    ptowsp_graph *graphs[8];
    static random_graph g;
    static random_task tasks[TASK_MAX];
    for (size_t k = 0; k < lanes_kind_count; k++) {
        contexts[k] = lanes_context(k);
        ptowsp_graph_desc desc = {.cube_lane_count = has_classes ? (uint32_t)(k % 4) : 0};
        assert_ok(ptowsp_graph_create(contexts[k], &desc, &graphs[k]));
    }
    for (uint32_t round = 0; round < round_count; round++) {
        size_t k = round % lanes_kind_count;
        random_graph_agrees(contexts[k], graphs[k], &g, tasks, has_classes, &random, run_on_lanes,
                            NULL);
    }
    for (size_t k = 0; k < lanes_kind_count; k++) {
        ptowsp_graph_destroy(graphs[k]);
        ptowsp_context_destroy(contexts[k]);
    }
}

TEST(graph_random__agrees_with_running_in_order) {
    run_rounds(4000, false);
}

TEST(graph_random__agrees_with_priorities_and_units) {
    run_rounds(1500, true);
}

// Layers of `width` tasks, each with four inputs from the layer before, long enough that lanes
// share, spill and go alone.
enum { WIDTH = 1500, LAYERS = 40, INPUTS = 4 };

typedef struct layers {
    uint64_t values[LAYERS * WIDTH];
    uint32_t inputs[LAYERS * WIDTH][INPUTS];
} layers;

static ptowsp_status add_inputs(void *user, uint64_t task, uint32_t lane) {
    layers *l = (layers *)user;
    (void)lane;
    uint64_t sum = task;
    for (int i = 0; i < INPUTS && task >= WIDTH; i++) {
        sum = mix(sum + l->values[l->inputs[task][i]]);
    }
    l->values[task] = sum;
    return PTOWSP_OK;
}

GRAPH_TEST(graph_random__wide_layers_of_short_tasks_equal_a_serial_run) {
    static uint64_t random;
    static layers l, wanted;
    random = random ? random : test_seed();
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = add_inputs, .user = &l}, LAYERS * WIDTH);
    for (uint32_t t = WIDTH; t < LAYERS * WIDTH; t++) {
        for (uint32_t i = 0; i < INPUTS; i++) {
            uint32_t before =
                (t / WIDTH - 1) * WIDTH + (uint32_t)test_random_in(&random, 0, WIDTH - 1);
            l.inputs[t][i] = before;
            assert_ok(ptowsp_graph_edge_make(graph, before, t));
        }
    }
    memcpy(wanted.inputs, l.inputs, sizeof l.inputs);
    for (uint32_t t = 0; t < LAYERS * WIDTH; t++) {
        add_inputs(&wanted, t, 0);
    }
    for (int run = 0; run < 10; run++) {
        memset(l.values, 0, sizeof l.values);
        assert_ok(ptowsp_graph_run(graph));
        assert_memory_equal(l.values, wanted.values, sizeof l.values);
    }
}
