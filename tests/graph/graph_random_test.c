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
