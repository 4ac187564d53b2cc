// A libFuzzer target: bytes are the tasks and edges of a graph, how its tasks end and how its
// ranges are cut. On one lane and on three it does what running in order does (graph_random.h):
// values, statuses and causes. With an edge that closes a cycle it is refused, and no task runs.

#include "choices.h"

#include "graph_random.h"

static random_graph made;
static random_task tasks[TASK_MAX];

static ptowsp_status run(ptowsp_graph *graph, int time, ptowsp_device *device) {
    (void)time, (void)device;
    return ptowsp_graph_run(graph);
}

// From a task back to one that is a few edges before it, if any is.
static void require_cycle_refused(ptowsp_context *context, ptowsp_graph *graph, uint64_t *random) {
    const uint32_t last = (uint32_t)(test_random(random) % made.task_count);
    uint32_t first = last;
    for (uint64_t steps = 1 + test_random(random) % 8; steps > 0; steps--) {
        const uint32_t begin = made.first_edge[first], end = made.first_edge[first + 1];
        first = begin < end ? made.before[begin + test_random(random) % (end - begin)] : first;
    }
    if (first == last) {
        return;
    }
    ptowsp_graph_clear(graph);
    build(graph, &made, tasks, false, random);
    memset(made.runs, 0, sizeof made.runs);
    REQUIRE(ptowsp_graph_edge_make(graph, last, first) == PTOWSP_OK);
    REQUIRE(ptowsp_graph_run(graph) == PTOWSP_INVALID_PARAMS);
    REQUIRE(strstr(ptowsp_context_error(context).text, "cycle") != NULL);
    for (uint32_t i = 0; i < made.task_count; i++) {
        REQUIRE(made.runs[i] == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint32_t lanes[2] = {1, 3};
    static ptowsp_context *contexts[2];
    for (int i = 0; i < 2; i++) {
        uint64_t random = choices_begin(data, size);
        ptowsp_graph *graph = NULL;
        contexts[i] = contexts[i] ? contexts[i] : test_lanes(lanes[i]);
        REQUIRE(ptowsp_graph_create(contexts[i], NULL, &graph) == PTOWSP_OK);
        random_graph_agrees(contexts[i], graph, &made, tasks, false, &random, run, NULL);
        require_cycle_refused(contexts[i], graph, &random);
        ptowsp_graph_destroy(graph);
    }
    return 0;
}
