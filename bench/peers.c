// Beside others that do the same: one graph of tasks run by ptowsp, oneTBB, OpenMP and StarPU, on two
// lanes; one graph simulated by ptowsp and SimGrid; matrix products by the shim and OpenBLAS. What is
// not installed is skipped with a line.
//
// The simulated graph has layers of tasks of which each has four inputs from the layer before, on 24
// lanes in turn, each in the order of issue. Both simulators must come to the makespan of a plain
// loop. SimGrid shares a host among tasks that run at once; that the one after another are so is an
// edge between them there.

#include "bench.h"

#include "graph.h"
#include "peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 2, ROUNDS_FEW = 5 };

// -- graphs that run ------------------------------------------------------------------------------

typedef struct peers_bench {
    graph_shape shape;
    ptowsp_context *context;
    ptowsp_graph *graph;
    graph_tbb *tbb;
    char *marks;  // of OpenMP
} peers_bench;

static ptowsp_status peers_task(void *user, uint64_t task, uint32_t lane) {
    (void)user, (void)task, (void)lane;
    return PTOWSP_OK;
}

// Building is in it, as it is for those that cannot keep a graph.
static void run_own(void *user) {
    peers_bench *b = (peers_bench *)user;
    const graph_shape *s = &b->shape;
    ptowsp_graph_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.fn = peers_task;
    ptowsp_graph_clear(b->graph);
    for (uint32_t i = 0; i < s->task_count; i++) {
        ptowsp_graph_task_make(b->graph, &desc, NULL);
        for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++) {
            ptowsp_graph_edge_make(b->graph, s->before[k], i);
        }
    }
    require(ptowsp_graph_seal(b->graph) == PTOWSP_OK && ptowsp_graph_run(b->graph) == PTOWSP_OK,
            "a graph fails");
}

#ifdef BENCH_HAS_TBB
static void run_peer_tbb(void *user) {
    peers_bench *b = (peers_bench *)user;
    graph_tbb *g = graph_tbb_build(&b->shape, LANES);
    graph_tbb_run(g);
    graph_tbb_destroy(g);
}
#endif

#ifdef _OPENMP
static void run_peer_openmp(void *user) {
    peers_bench *b = (peers_bench *)user;
    graph_openmp_run(&b->shape, b->marks, LANES);
}
#endif

#ifdef BENCH_HAS_STARPU
static void run_peer_starpu(void *user) {
    peer_starpu_run(&((peers_bench *)user)->shape);
}
#endif

static void peers_shape(graph_shape shape) {
    static const struct {
        const char *name;
        bench_fn run;
    } peers[] = {
#ifdef BENCH_HAS_TBB
        {"oneTBB flow graph", run_peer_tbb},
#endif
#ifdef _OPENMP
        {"OpenMP tasks", run_peer_openmp},
#endif
#ifdef BENCH_HAS_STARPU
        {"StarPU tasks", run_peer_starpu},
#endif
        {NULL, NULL}};
    peers_bench b;
    ptowsp_context_desc desc;
    memset(&b, 0, sizeof b);
    memset(&desc, 0, sizeof desc);
    b.shape = shape;
    b.marks = (char *)bench_allocate(shape.task_count);
    desc.threads = PTOWSP_THREADS_OWN;
    desc.lane_count = LANES;
    require(ptowsp_context_create(&desc, &b.context) == PTOWSP_OK &&
                ptowsp_graph_create(b.context, NULL, &b.graph) == PTOWSP_OK,
            "no graph");
    for (size_t i = 0; peers[i].run; i++) {
        const bench_case of = {shape.name, "ns/task", shape.task_count, 1,
                               ROUNDS_FEW, run_own,   peers[i].name,    peers[i].run,
                               NULL,       NULL,      BUDGET_BESIDE,    1.0};
        bench_measure(&of, &b);
    }
    ptowsp_graph_destroy(b.graph);
    ptowsp_context_destroy(b.context);
    free(b.marks);
    free(shape.first);
    free(shape.before);
}

// -- a graph that is simulated --------------------------------------------------------------------

#ifdef BENCH_HAS_SIMGRID
typedef struct simulated_bench {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    uint64_t makespan;  // of SimGrid
} simulated_bench;

static ptowsp_cycles dag_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return peer_dag_cycles((uint32_t)task->index);
}

// The makespan by a plain loop.
static uint64_t dag_makespan(void) {
    static uint64_t ends[PEER_LAYERS * PEER_WIDTH];
    uint64_t free_at[PEER_LANES] = {0}, makespan = 0;
    for (uint32_t i = 0; i < PEER_LAYERS * PEER_WIDTH; i++) {
        uint64_t start = free_at[i % PEER_LANES];
        for (uint32_t k = 0; k < PEER_INPUTS && i >= PEER_WIDTH; k++) {
            const uint64_t end = ends[peer_dag_before(i, k)];
            start = end > start ? end : start;
        }
        ends[i] = start + peer_dag_cycles(i);
        free_at[i % PEER_LANES] = ends[i];
        makespan = ends[i] > makespan ? ends[i] : makespan;
    }
    return makespan;
}

// Task i of a layer writes tile i of it, and reads four tiles of the layer before. The first layer
// reads what no task writes.
static void dag_module(simulated_bench *b) {
    ptowsp_module *m = b->module;
    const ptowsp_tensor_desc tensor = {
        "data", PTOWSP_F32, 3, {PEER_LAYERS + 1, PEER_WIDTH, 8}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_tensor data = ptowsp_tensor_make(m, &tensor);
    static const char *const names[] = {"in_0", "in_1", "in_2", "in_3"};
    ptowsp_kernel_desc kernel;
    ptowsp_task_desc task;
    memset(&kernel, 0, sizeof kernel);
    memset(&task, 0, sizeof task);
    kernel.name = "work";
    kernel.cost = dag_cost;
    const ptowsp_tile_param out = {"out", PTOWSP_OUT, PTOWSP_F32, 1, 8};
    kernel.tiles[PEER_INPUTS] = out;
    for (uint32_t k = 0; k < PEER_INPUTS; k++) {
        const ptowsp_tile_param in = {names[k], PTOWSP_IN, PTOWSP_F32, 1, 8};
        kernel.tiles[k] = in;
    }
    task.kernel = ptowsp_kernel_make(m, &kernel);
    PTOWSP_WORKLOAD(m, "layers") {
        PTOWSP_FOR_EACH(m, layer, ptowsp_axis_dense(m, "layers", PEER_LAYERS)) {
            PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "tiles", PEER_WIDTH)) {
                for (int64_t k = 0; k < PEER_INPUTS; k++) {
                    ptowsp_expr at = ptowsp_mul(i, ptowsp_i64(m, PEER_STEP(k)));
                    at = ptowsp_add(ptowsp_add(at, layer), ptowsp_i64(m, PEER_OFFSET(k)));
                    task.views[k].tensor = data;
                    task.views[k].index[0] = layer;
                    task.views[k].row = ptowsp_bitand(at, ptowsp_i64(m, PEER_WIDTH - 1));
                }
                task.views[PEER_INPUTS].tensor = data;
                task.views[PEER_INPUTS].index[0] = ptowsp_add(layer, ptowsp_i64(m, 1));
                task.views[PEER_INPUTS].row = i;
                ptowsp_task_make(m, &task);
            }
        }
    }
}

static void simulate_own(void *user) {
    simulated_bench *b = (simulated_bench *)user;
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    require(ptowsp_run_execute(b->run, &options) == PTOWSP_OK,
            ptowsp_context_error(b->context).text);
}

static void simulate_simgrid(void *user) {
    ((simulated_bench *)user)->makespan = peer_simgrid_run();
}

static void peers_simulated(void) {
    static const bench_case of = {"layers, 4 inputs, simulated on 24 lanes",
                                  "ns/task",
                                  PEER_LAYERS * PEER_WIDTH,
                                  1,
                                  3,
                                  simulate_own,
                                  "SimGrid, activities",
                                  simulate_simgrid,
                                  NULL,
                                  NULL,
                                  BUDGET_BESIDE,
                                  1.0};
    static float data[(PEER_LAYERS + 1) * PEER_WIDTH * 8];
    simulated_bench b;
    ptowsp_schedule schedule;
    ptowsp_buffer buffer;
    memset(&b, 0, sizeof b);
    memset(&schedule, 0, sizeof schedule);
    memset(&buffer, 0, sizeof buffer);
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    schedule.lane_count = PEER_LANES;
    schedule.dependencies = PTOWSP_DEPENDENCIES_EXACT;
    buffer.data = data;
    const ptowsp_program_desc desc = {NULL, &schedule};
    require(ptowsp_context_create(NULL, &b.context) == PTOWSP_OK &&
                ptowsp_module_create(b.context, NULL, &b.module) == PTOWSP_OK,
            "no memory");
    dag_module(&b);
    require(ptowsp_program_create(b.context, b.module, &desc, &b.program) == PTOWSP_OK &&
                ptowsp_run_create(b.context, b.program, &b.run) == PTOWSP_OK &&
                ptowsp_run_bind_tensor(b.run, "data", &buffer) == PTOWSP_OK,
            ptowsp_context_error(b.context).text);
    simulate_own(&b);
    simulate_simgrid(&b);
    const uint64_t expected = dag_makespan(), own = ptowsp_run_result(b.run)->makespan_cycles;
    require(own == expected, "the makespan of a simulated graph");
    require(b.makespan == expected, "the makespan of SimGrid");
    bench_measure(&of, &b);
    ptowsp_run_destroy(b.run);
    ptowsp_program_destroy(b.program);
    ptowsp_module_destroy(b.module);
    ptowsp_context_destroy(b.context);
}
#endif

void bench_peers(void) {
#ifndef BENCH_HAS_TBB
    printf("oneTBB: skipped, as there is no libtbb-dev\n");
#endif
#ifndef _OPENMP
    printf("OpenMP: skipped, as the compiler has none\n");
#endif
#ifdef BENCH_HAS_STARPU
    require(peer_starpu_begin(LANES), "StarPU does not start");
#else
    printf("StarPU: skipped, as there is no libstarpu-dev\n");
#endif
    peers_shape(graph_shape_chain());
    peers_shape(graph_shape_independent());
    peers_shape(graph_shape_random());
#ifdef BENCH_HAS_STARPU
    peer_starpu_end();
#endif
#ifdef BENCH_HAS_SIMGRID
    peers_simulated();
#else
    printf("SimGrid: skipped, as there is no libsimgrid-dev\n");
#endif
    bench_blas();
}
