// The shapes as oneTBB flow graphs: a continue_node for each task.

#include "graph.h"

#include <memory>
#include <vector>

#include <tbb/flow_graph.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace flow = tbb::flow;
typedef flow::continue_node<flow::continue_msg> task_node;

struct graph_tbb {
    explicit graph_tbb(unsigned lane_count) : arena(static_cast<int>(lane_count)) {
    }
    tbb::task_arena arena;
    std::unique_ptr<flow::graph> graph;
    std::vector<std::unique_ptr<task_node>> nodes;
    std::vector<task_node *> sources;
};

extern "C" graph_tbb *graph_tbb_build(const graph_shape *shape, unsigned lane_count) {
    graph_tbb *g = new graph_tbb(lane_count);
    const uint32_t spin = shape->spin;
    g->arena.execute([&] {
        g->graph.reset(new flow::graph);
        g->nodes.reserve(shape->task_count);
        for (uint32_t i = 0; i < shape->task_count; i++) {
            g->nodes.emplace_back(
                new task_node(*g->graph, [spin](const flow::continue_msg &) { graph_spin(spin); }));
            for (uint32_t k = shape->first[i]; k < shape->first[i + 1]; k++) {
                flow::make_edge(*g->nodes[shape->before[k]], *g->nodes[i]);
            }
            if (shape->first[i] == shape->first[i + 1]) {
                g->sources.push_back(g->nodes[i].get());
            }
        }
    });
    return g;
}

extern "C" void graph_tbb_run(graph_tbb *g) {
    g->arena.execute([&] {
        for (task_node *source : g->sources) {
            source->try_put(flow::continue_msg());
        }
        g->graph->wait_for_all();
    });
}

extern "C" void graph_tbb_destroy(graph_tbb *g) {
    delete g;
}

static uint64_t fib(uint32_t n) {
    if (n < 2) {
        return n;
    }
    uint64_t a = 0, b = 0;
    tbb::task_group group;
    group.run([&a, n] { a = fib(n - 1); });
    group.run([&b, n] { b = fib(n - 2); });
    group.wait();
    return a + b;
}

extern "C" uint64_t graph_tbb_fib(uint32_t n, unsigned lane_count) {
    tbb::task_arena arena(static_cast<int>(lane_count));
    return arena.execute([n] { return fib(n); });
}
