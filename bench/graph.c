// Task graphs on threads: building and running empty tasks, in ns per task, and how much of two
// lanes 200 ns tasks get. Beside each: the same graph as OpenMP tasks with dependencies, which are
// built while they run, and as a oneTBB flow graph, if this was compiled with them. And tasks that add
// tasks, beside OpenMP's and oneTBB's nested ones. The limits are those of graph_limit.c: of a
// run, the tasks in order and their edges counted down on one thread, without queues; of the share of two
// lanes, a bare scheduler on two threads; of building, edges sorted by counting in new memory.

#include "graph.h"

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH_TASKS = 1 << 16, GRAPH_ROUNDS = 9 };

// -- shapes ---------------------------------------------------------------------------------------

static graph_shape shape_begin(const char *name, uint32_t task_count, uint32_t edge_max) {
    graph_shape s = {name, task_count, 0, NULL, NULL, 0};
    s.first = (uint32_t *)calloc(task_count + 1, sizeof(uint32_t));
    s.before = (uint32_t *)calloc(edge_max + 1, sizeof(uint32_t));
    require(s.first && s.before, "out of memory");
    return s;
}

void graph_shape_free(graph_shape *shape) {
    free(shape->first);
    free(shape->before);
}

static void shape_edge(graph_shape *s, uint32_t before) {
    s->before[s->edge_count++] = before;
}

static void shape_end_task(graph_shape *s, uint32_t task) {
    s->first[task + 1] = s->edge_count;
}

graph_shape graph_shape_chain(void) {
    graph_shape s = shape_begin("chain", GRAPH_TASKS, GRAPH_TASKS);
    for (uint32_t i = 0; i < s.task_count; i++) {
        if (i > 0) {
            shape_edge(&s, i - 1);
        }
        shape_end_task(&s, i);
    }
    return s;
}

static graph_shape shape_tree(void) {
    graph_shape s = shape_begin("binary tree", GRAPH_TASKS - 1, GRAPH_TASKS);
    for (uint32_t i = 0; i < s.task_count; i++) {
        if (i > 0) {
            shape_edge(&s, (i - 1) / 2);
        }
        shape_end_task(&s, i);
    }
    return s;
}

graph_shape graph_shape_independent(void) {
    return shape_begin("independent", GRAPH_TASKS, 0);
}

graph_shape graph_shape_wavefront(uint32_t side) {
    graph_shape s = shape_begin("2-D wavefront", side * side, 2 * side * side);
    for (uint32_t i = 0; i < s.task_count; i++) {
        if (i >= side) {
            shape_edge(&s, i - side);
        }
        if (i % side) {
            shape_edge(&s, i - 1);
        }
        shape_end_task(&s, i);
    }
    return s;
}

// Layers of 1024 tasks; each task has four inputs from the layer before.
graph_shape graph_shape_random(void) {
    enum { WIDTH = 1024 };
    graph_shape s = shape_begin("random layers, 4 inputs", GRAPH_TASKS, 4 * GRAPH_TASKS);
    uint64_t random = 1;
    for (uint32_t i = 0; i < s.task_count; i++) {
        for (uint32_t k = 0; k < 4 && i >= WIDTH; k++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            shape_edge(&s, (i / WIDTH - 1) * WIDTH + (uint32_t)(random >> 33) % WIDTH);
        }
        shape_end_task(&s, i);
    }
    return s;
}

// Decode attention, layer after layer: for each request a projection, then for each head one to
// eight chunks of its sequence and their merge, then a projection of all heads.
static graph_shape shape_attention(void) {
    enum { REQUESTS = 32, HEADS = 8, LAYERS = 32 };
    graph_shape s = shape_begin("attention", 0, 4 * GRAPH_TASKS);
    s.first = (uint32_t *)realloc(s.first, (4 * GRAPH_TASKS + 1) * sizeof(uint32_t));
    require(s.first != NULL, "out of memory");
    s.first[0] = 0;
    uint32_t last[REQUESTS] = {0}, merges[HEADS];
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        for (uint32_t request = 0; request < REQUESTS; request++) {
            if (layer > 0) {
                shape_edge(&s, last[request]);
            }
            uint32_t begin = s.task_count++;
            shape_end_task(&s, begin);
            uint32_t chunks = 1 + request % 8;
            for (uint32_t head = 0; head < HEADS; head++) {
                for (uint32_t chunk = 0; chunk < chunks; chunk++) {
                    shape_edge(&s, begin);
                    shape_end_task(&s, s.task_count++);
                }
                for (uint32_t chunk = 0; chunk < chunks; chunk++) {
                    shape_edge(&s, s.task_count - chunks + chunk);
                }
                merges[head] = s.task_count;
                shape_end_task(&s, s.task_count++);
            }
            for (uint32_t head = 0; head < HEADS; head++) {
                shape_edge(&s, merges[head]);
            }
            last[request] = s.task_count;
            shape_end_task(&s, s.task_count++);
        }
    }
    return s;
}

// -- ptowsp ---------------------------------------------------------------------------------------

typedef struct graph_bench {
    const graph_shape *shape;
    uint32_t lane_count;
    ptowsp_context *context;
    ptowsp_graph *graph;
    graph_tbb *tbb;
    char *marks;  // of OpenMP: where dependencies meet
    graph_limit *limit;
} graph_bench;

static ptowsp_status run_task(void *user, uint64_t task, uint32_t lane) {
    (void)task, (void)lane;
    graph_spin(((const graph_shape *)user)->spin);
    return PTOWSP_OK;
}

static ptowsp_status run_empty(void *user, uint64_t task, uint32_t lane) {
    (void)user, (void)task, (void)lane;
    return PTOWSP_OK;
}

// Fills an empty graph, and seals it.
static void fill_graph(graph_bench *b) {
    const graph_shape *s = b->shape;
    ptowsp_graph_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.fn = s->spin ? run_task : run_empty;
    desc.user = (void *)(uintptr_t)s;
    for (uint32_t i = 0; i < s->task_count; i++) {
        ptowsp_graph_task_make(b->graph, &desc, NULL);
        for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++) {
            ptowsp_graph_edge_make(b->graph, s->before[k], i);
        }
    }
    require(ptowsp_graph_seal(b->graph) == PTOWSP_OK, "a graph cannot be sealed");
}

static void build_graph(void *user) {
    graph_bench *b = (graph_bench *)user;
    require(ptowsp_graph_create(b->context, NULL, &b->graph) == PTOWSP_OK, "no graph");
    fill_graph(b);
}

static void build_again(void *user) {
    graph_bench *b = (graph_bench *)user;
    ptowsp_graph_clear(b->graph);
    fill_graph(b);
}

static void build_and_destroy(void *user) {
    graph_bench *b = (graph_bench *)user;
    build_graph(b);
    ptowsp_graph_destroy(b->graph);
    b->graph = NULL;
}

static void run_graph(void *user) {
    graph_bench *b = (graph_bench *)user;
    require(ptowsp_graph_run(b->graph) == PTOWSP_OK, "a graph fails");
}

// The tasks alone, one after another.
static void run_loop(void *user) {
    const graph_shape *s = ((graph_bench *)user)->shape;
    for (uint32_t i = 0; i < s->task_count; i++) {
        run_task((void *)(uintptr_t)s, i, 0);
    }
}

// The limits of graph_limit.c.
static void count_edges(void *user) {
    graph_limit_count(((graph_bench *)user)->limit);
}

static void schedule_bare(void *user) {
    graph_limit_schedule(((graph_bench *)user)->limit);
}

static void build_bare(void *user) {
    graph_limit_build(((graph_bench *)user)->shape);
}

static void run_nothing(void *user) {
    (void)user;
}

static graph_bench bench_begin(const graph_shape *shape, uint32_t lane_count) {
    graph_bench b;
    memset(&b, 0, sizeof b);
    b.shape = shape;
    b.lane_count = lane_count;
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.threads = PTOWSP_THREADS_OWN;
    desc.lane_count = lane_count;
    require(ptowsp_context_create(&desc, &b.context) == PTOWSP_OK, "no context");
    b.marks = (char *)calloc(shape->task_count, 1);
    require(b.marks != NULL, "out of memory");
    b.limit = graph_limit_begin(shape);
    return b;
}

static void bench_end(graph_bench *b) {
    ptowsp_graph_destroy(b->graph);
    ptowsp_context_destroy(b->context);
    graph_limit_end(b->limit);
    free(b->marks);
}

// -- beside: OpenMP -------------------------------------------------------------------------------

#ifdef _OPENMP
static void create_openmp_task(const graph_shape *s, char *marks, uint32_t i) {
    const uint32_t *before = s->before + s->first[i];
    uint32_t count = s->first[i + 1] - s->first[i], spin = s->spin;
    (void)marks;  // gcc does not see its uses
    switch (count) {
    case 0:
#pragma omp task depend(out : marks[i]) firstprivate(spin)
        graph_spin(spin);
        break;
    case 1:
#pragma omp task depend(in : marks[before[0]]) depend(out : marks[i]) firstprivate(spin)
        graph_spin(spin);
        break;
    case 2:
#pragma omp task depend(in                                                                         \
                        : marks[before[0]], marks[before[1]]) depend(out                           \
                                                                     : marks[i])                   \
    firstprivate(spin)
        graph_spin(spin);
        break;
    default:
#pragma omp task depend(iterator(uint32_t k = 0                                                    \
                                 : count),                                                         \
                        in                                                                         \
                        : marks[before[k]]) depend(out                                             \
                                                   : marks[i]) firstprivate(spin)
        graph_spin(spin);
        break;
    }
}

void graph_openmp_run(const graph_shape *shape, char *marks, unsigned lane_count) {
#pragma omp parallel num_threads(lane_count)
#pragma omp single
    for (uint32_t i = 0; i < shape->task_count; i++) {
        create_openmp_task(shape, marks, i);
    }
}

static void run_openmp(void *user) {
    graph_bench *b = (graph_bench *)user;
    graph_openmp_run(b->shape, b->marks, b->lane_count);
}
#endif

// -- beside: oneTBB -------------------------------------------------------------------------------

#ifdef BENCH_HAS_TBB
static void run_tbb(void *user) {
    graph_tbb_run(((graph_bench *)user)->tbb);
}

static void build_tbb(void *user) {
    graph_bench *b = (graph_bench *)user;
    graph_tbb_destroy(graph_tbb_build(b->shape, b->lane_count));
}
#endif

// -- rows -----------------------------------------------------------------------------------------

typedef struct graph_budget {
    double ns;
    const char *text;
} graph_budget;

static void report_graph(const graph_shape *s, const char *what, bench_times t, const char *other,
                         graph_budget budget, const char *limit_name, const bench_times *limit) {
    double tasks = s->task_count, ns = t.own_ns / tasks;
    char name[64];
    snprintf(name, sizeof name, "%s, %s", s->name, what);
    bench_row row = {name,
                     "ns/task",
                     ns,
                     other,
                     other[0] == '-' ? 0 : t.other_ns / tasks,
                     other[0] == '-' ? 0 : t.ratio,
                     budget.text,
                     budget.ns > 0,
                     ns <= budget.ns};
    bench_limit bare = {NULL, 0, 0};
    if (limit) {
        bare.name = limit_name;
        bare.value = limit->other_ns / tasks;
        bare.share = 1 / limit->ratio;
    }
    report_beside_limit(row, bare);
}

static void bench_shape(const graph_shape *s, graph_budget run_budget) {
    const graph_budget none = {0, ""}, build_budget = {30, "30 ns"};
    double one_lane = 0;
    graph_bench b = bench_begin(s, 1);
    const bench_times bare = measure(build_and_destroy, build_bare, &b, 1, 21);
    report_graph(s, "build", bare, "-", build_budget, "a bare counting sort", &bare);
#ifdef BENCH_HAS_TBB
    report_graph(s, "build", measure(build_and_destroy, build_tbb, &b, 1, GRAPH_ROUNDS), "oneTBB",
                 none, NULL, NULL);
#endif
    build_graph(&b);
    report_graph(s, "build again, cleared", measure(build_again, run_nothing, &b, 1, 21), "-",
                 build_budget, NULL, NULL);
    bench_end(&b);
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        b = bench_begin(s, lanes);
        build_graph(&b);
        bench_times t = measure(run_graph, count_edges, &b, 3, 21);
        char what[16];
        snprintf(what, sizeof what, "%u lane%s", (unsigned)lanes, lanes > 1 ? "s" : "");
        graph_budget two = {1.1 * one_lane / s->task_count, "1.1 of one lane"};
        report_graph(s, what, t, "-", lanes > 1 ? two : run_budget, "counting edges, one thread",
                     &t);
        one_lane = t.own_ns;
#ifdef BENCH_HAS_TBB
        b.tbb = graph_tbb_build(s, lanes);
        report_graph(s, what, measure(run_graph, run_tbb, &b, 1, GRAPH_ROUNDS), "oneTBB", none,
                     NULL, NULL);
        graph_tbb_destroy(b.tbb);
#endif
#ifdef _OPENMP
        report_graph(s, what, measure(run_graph, run_openmp, &b, 1, GRAPH_ROUNDS),
                     "OpenMP (builds and runs)", none, NULL, NULL);
#endif
        (void)none;
        bench_end(&b);
    }
}

// How many rounds of graph_spin take 200 ns.
static uint32_t spin_of_200_ns(void) {
    enum { SPIN_ROUNDS = 10000000 };
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t start = ptowsp_clock_ns();
        graph_spin(SPIN_ROUNDS);
        uint64_t ns = ptowsp_clock_ns() - start;
        best = ns < best ? ns : best;
    }
    return (uint32_t)(200.0 * SPIN_ROUNDS / (double)best);
}

// What part of two lanes the tasks themselves take.
static void bench_efficiency(graph_shape *s, double budget, const char *budget_text) {
    s->spin = spin_of_200_ns();
    graph_bench b = bench_begin(s, 2);
    build_graph(&b);
    bench_times t = measure(run_graph, run_loop, &b, 1, 21);
    char name[64];
    snprintf(name, sizeof name, "%s, 200 ns tasks, 2 lanes", s->name);
    double efficiency = 100 / (2 * t.ratio), tasks = s->task_count;
    const bench_times bare = measure(schedule_bare, run_loop, &b, 1, 21);
    const bench_limit limit = {"a bare scheduler, two threads", 100 / (2 * bare.ratio),
                               bare.ratio / t.ratio};
    bench_row row = {
        name,    "% busy",    efficiency, "a loop of them, ns/task", t.other_ns / tasks,
        t.ratio, budget_text, true,       efficiency >= budget};
    report_beside_limit(row, limit);
    bench_end(&b);
    s->spin = 0;
}

// -- tasks that add tasks -------------------------------------------------------------------------

// fib(FIB_N), each call above 1 as three tasks: both calls, and their sum.
enum { FIB_N = 20, FIB_CALLS = 10945 };  // c(n) = 1 + c(n - 1) + c(n - 2), from c(0) = c(1) = 0

typedef struct fib_call {
    struct fib_bench *bench;
    uint32_t n;
    uint64_t value;
    struct fib_call *parts;  // two
} fib_call;

typedef struct fib_bench {
    ptowsp_graph *graph;
    uint32_t lane_count;
    uint64_t call_count;  // atomic
    fib_call calls[2 * FIB_CALLS + 1];
} fib_bench;

static ptowsp_status fib_sum(void *user, uint64_t task, uint32_t lane) {
    fib_call *call = (fib_call *)user;
    (void)task, (void)lane;
    call->value = call->parts[0].value + call->parts[1].value;
    return PTOWSP_OK;
}

static ptowsp_status fib_run(void *user, uint64_t task, uint32_t lane) {
    static const uint32_t edges[][2] = {{0, 2}, {1, 2}};
    fib_call *call = (fib_call *)user;
    (void)lane;
    if (call->n < 2) {
        call->value = call->n;
        return PTOWSP_OK;
    }
    fib_bench *b = call->bench;
    call->parts = &b->calls[__atomic_fetch_add(&b->call_count, 2, __ATOMIC_RELAXED)];
    ptowsp_graph_task_desc tasks[3];
    memset(tasks, 0, sizeof tasks);
    for (uint32_t i = 0; i < 2; i++) {
        call->parts[i].bench = b;
        call->parts[i].n = call->n - 1 - i;
        tasks[i].fn = fib_run;
        tasks[i].user = &call->parts[i];
    }
    tasks[2].fn = fib_sum;
    tasks[2].user = call;
    const ptowsp_graph_part part = {tasks, 3, edges, 2};
    return ptowsp_graph_add(b->graph, task, &part, NULL);
}

static void run_fib(void *user) {
    fib_bench *b = (fib_bench *)user;
    b->call_count = 1;
    b->calls[0].bench = b;
    b->calls[0].n = FIB_N;
    require(ptowsp_graph_run(b->graph) == PTOWSP_OK && b->calls[0].value == 6765, "fib fails");
}

#ifdef _OPENMP
static uint64_t fib_openmp(uint32_t n) {
    uint64_t a = 0, b = 0;
    if (n < 2) {
        return n;
    }
#pragma omp task shared(a) firstprivate(n)
    a = fib_openmp(n - 1);
#pragma omp task shared(b) firstprivate(n)
    b = fib_openmp(n - 2);
#pragma omp taskwait
    return a + b;
}

static void run_fib_openmp(void *user) {
    fib_bench *b = (fib_bench *)user;
    uint64_t value = 0;
#pragma omp parallel num_threads(b->lane_count)
#pragma omp single
    value = fib_openmp(FIB_N);
    require(value == 6765, "fib fails");
}
#endif

#ifdef BENCH_HAS_TBB
static void run_fib_tbb(void *user) {
    fib_bench *b = (fib_bench *)user;
    require(graph_tbb_fib(FIB_N, b->lane_count) == 6765, "fib fails");
}
#endif

static void report_fib(const fib_bench *b, bench_times t, const char *other) {
    bool is_alone = other[0] == '-';
    bench_row row = {b->lane_count > 1 ? "fib(20) by added tasks, 2 lanes"
                                       : "fib(20) by added tasks, 1 lane",
                     "ns/call",
                     t.own_ns / FIB_CALLS,
                     other,
                     is_alone ? 0 : t.other_ns / FIB_CALLS,
                     is_alone ? 0 : t.ratio,
                     "",
                     false,
                     false};
    report(row);
}

static void bench_added(void) {
    fib_bench *b = (fib_bench *)calloc(1, sizeof *b);
    require(b != NULL, "out of memory");
    for (b->lane_count = 1; b->lane_count <= 2; b->lane_count++) {
        ptowsp_context *context;
        ptowsp_context_desc desc;
        ptowsp_graph_desc graph;
        ptowsp_graph_task_desc task;
        memset(&desc, 0, sizeof desc);
        memset(&graph, 0, sizeof graph);
        memset(&task, 0, sizeof task);
        desc.threads = PTOWSP_THREADS_OWN;
        desc.lane_count = b->lane_count;
        graph.added_task_max = 3 * FIB_CALLS;
        graph.added_edge_max = 2 * FIB_CALLS;
        task.fn = fib_run;
        task.user = &b->calls[0];
        require(ptowsp_context_create(&desc, &context) == PTOWSP_OK &&
                    ptowsp_graph_create(context, &graph, &b->graph) == PTOWSP_OK &&
                    ptowsp_graph_task_make(b->graph, &task, NULL) == PTOWSP_OK,
                "no graph");
        report_fib(b, measure(run_fib, run_nothing, b, 1, 21), "-");
#ifdef BENCH_HAS_TBB
        report_fib(b, measure(run_fib, run_fib_tbb, b, 1, GRAPH_ROUNDS), "oneTBB task_group");
#endif
#ifdef _OPENMP
        report_fib(b, measure(run_fib, run_fib_openmp, b, 1, GRAPH_ROUNDS), "OpenMP taskwait");
#endif
        ptowsp_graph_destroy(b->graph);
        ptowsp_context_destroy(context);
    }
    free(b);
}

void bench_graph(void) {
#ifndef _OPENMP
    printf("graph: not compiled with OpenMP\n");
#endif
#ifndef BENCH_HAS_TBB
    printf("graph: oneTBB is not installed\n");
#endif
    graph_shape shapes[] = {graph_shape_chain(),       shape_tree(),
                            graph_shape_independent(), graph_shape_wavefront(256),
                            graph_shape_random(),      shape_attention()};
    static const graph_budget budgets[] = {{6, "6 ns"}, {6, "6 ns"},   {6, "6 ns"},
                                           {9, "9 ns"}, {25, "25 ns"}, {0, ""}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        bench_shape(&shapes[i], budgets[i]);
        if (i > 0) {
            bench_efficiency(&shapes[i], i == 4 ? 90 : 95, i == 4 ? "90 %" : "95 %");
        }
        graph_shape_free(&shapes[i]);
    }
    bench_added();
}
