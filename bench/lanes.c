// Programs on two lanes of threads, beside the same run without lanes. Kernels spin for some time
// and touch no data; so what is shown is what issuing, waiting, waking and retiring cost, and how
// well two lanes are used. Both simulate time as well.
//
//      independent   task i writes a tile of its own
//      readers       task i reads a tile of its own and one that all read, and writes one
//      chain         each task adds to the same tile
//      wavefront     task (i, j) reads the tiles (i - 1, j) and (i, j - 1) and writes (i, j)
//
// The limit is a bare hand-over: two threads and a ring of numbers, where the first runs every other task
// itself, or any when the ring is full. Nothing waits for anything, and no time is simulated. That of the
// wavefront is a bare scheduler of its graph (graph_limit.c), which need not be found from tiles first. That of
// the chain is its kernels alone on another thread: the second lane runs all of them, and its processor may be
// slower or faster than that of the calling thread, by a factor of 1.7 on a shared machine.

#include "bench.h"

#include "graph.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 2, SIDE = 64, TASKS = SIDE * SIDE, TILE = 4, LANE_ROUNDS = 11 };

typedef enum pattern { INDEPENDENT, READERS, CHAIN, WAVEFRONT, PATTERN_COUNT } pattern;

typedef struct lanes_bench {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    graph_limit *limit;  // of the wavefront
    uint32_t spin;
} lanes_bench;

static ptowsp_cycles lanes_kernel(const ptowsp_task *task, void *user) {
    graph_spin(((const lanes_bench *)user)->spin);
    return 100 + task->index % 7;
}

// -- the limit ------------------------------------------------------------------------------------

enum { RING = 256, LINE = 128 };

typedef struct hand_over {
    uint32_t spin;
    char padding[LINE];
    uint32_t given;  // atomic: by the first thread
    char padding_given[LINE];
    uint32_t taken;  // atomic: by the second
    char padding_taken[LINE];
    uint32_t slots[RING];
} hand_over;

static void *hand_over_main(void *arg) {
    hand_over *h = (hand_over *)arg;
    for (uint32_t taken = 0, idle = 0;;) {
        if (__atomic_load_n(&h->given, __ATOMIC_ACQUIRE) == taken) {
            if (++idle > 1000) {
                sched_yield();
            }
            continue;
        }
        const uint32_t task = h->slots[taken % RING];
        idle = 0;
        if (task == UINT32_MAX) {
            return NULL;
        }
        graph_spin(h->spin);
        __atomic_store_n(&h->taken, ++taken, __ATOMIC_RELEASE);
    }
}

static bool hand_over_give(hand_over *h, uint32_t task) {
    const uint32_t given = h->given;
    if (given - __atomic_load_n(&h->taken, __ATOMIC_ACQUIRE) == RING) {
        return false;
    }
    h->slots[given % RING] = task;
    __atomic_store_n(&h->given, given + 1, __ATOMIC_RELEASE);
    return true;
}

static void lanes_hand_over(void *user) {
    static hand_over h;
    pthread_t thread;
    memset(&h, 0, sizeof h);
    h.spin = ((const lanes_bench *)user)->spin;
    require(pthread_create(&thread, NULL, hand_over_main, &h) == 0, "no thread");
    for (uint32_t i = 0; i < TASKS; i++) {
        if (i % 2 == 0 || !hand_over_give(&h, i)) {
            graph_spin(h.spin);
        }
    }
    while (!hand_over_give(&h, UINT32_MAX)) {
        sched_yield();
    }
    pthread_join(thread, NULL);
}

static void *alone_main(void *arg) {
    for (uint32_t i = 0; i < TASKS; i++) {
        graph_spin(((const lanes_bench *)arg)->spin);
    }
    return NULL;
}

static void lanes_alone(void *user) {
    pthread_t thread;
    require(pthread_create(&thread, NULL, alone_main, user) == 0, "no thread");
    pthread_join(thread, NULL);
}

static void lanes_schedule(void *user) {
    graph_limit_schedule(((const lanes_bench *)user)->limit);
}

// -- programs -------------------------------------------------------------------------------------

static void lanes_check(const lanes_bench *b, ptowsp_status status) {
    require(status == PTOWSP_OK, ptowsp_context_error(b->context).text);
}

static ptowsp_kernel lanes_kernel_make(lanes_bench *b, const char *name, uint32_t tile_count) {
    const ptowsp_tile_param read = {"read", PTOWSP_IN, PTOWSP_F32, TILE, TILE};
    const ptowsp_tile_param other = {"other", PTOWSP_IN, PTOWSP_F32, TILE, TILE};
    const ptowsp_tile_param written = {"written", PTOWSP_INOUT, PTOWSP_F32, TILE, TILE};
    ptowsp_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.fn = lanes_kernel;
    desc.user = b;
    desc.tiles[0] = written;
    if (tile_count > 1) {
        desc.tiles[1] = read;
        desc.tiles[2] = other;
    }
    return ptowsp_kernel_make(b->module, &desc);
}

// The tile (row, col) of a matrix, counted in tiles.
static ptowsp_view lanes_view(lanes_bench *b, ptowsp_tensor tensor, ptowsp_expr row,
                              ptowsp_expr col) {
    ptowsp_view view;
    memset(&view, 0, sizeof view);
    const ptowsp_expr size = ptowsp_i64(b->module, TILE);
    view.tensor = tensor;
    view.row = ptowsp_mul(row, size);
    view.col = ptowsp_mul(col, size);
    return view;
}

static ptowsp_expr lanes_before(lanes_bench *b, ptowsp_expr i) {
    return ptowsp_max(ptowsp_sub(i, ptowsp_i64(b->module, 1)), ptowsp_i64(b->module, 0));
}

static void lanes_build(lanes_bench *b, pattern p) {
    ptowsp_module *m = b->module;
    const int64_t size = SIDE * TILE;
    const ptowsp_axis rows = ptowsp_axis_dense(m, "rows", SIDE);
    const ptowsp_axis cols = ptowsp_axis_dense(m, "cols", SIDE);
    ptowsp_tensor tensors[3];
    static const char *const names[] = {"x", "y", "w"};
    for (int t = 0; t < 3; t++) {
        ptowsp_tensor_desc desc = {names[t], PTOWSP_F32, 2, {size, size}, PTOWSP_LOCATION_GLOBAL};
        tensors[t] = ptowsp_tensor_make(m, &desc);
    }
    const bool has_reads = p == READERS || p == WAVEFRONT;
    const ptowsp_kernel kernel = lanes_kernel_make(b, "work", has_reads ? 3 : 1);
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_PARALLEL(m, i, rows) {
            PTOWSP_PARALLEL(m, j, cols) {
                const ptowsp_expr zero = ptowsp_i64(m, 0);
                ptowsp_task_desc task;
                memset(&task, 0, sizeof task);
                task.kernel = kernel;
                task.views[0] = p == CHAIN ? lanes_view(b, tensors[1], zero, zero)
                                           : lanes_view(b, tensors[1], i, j);
                if (p == READERS) {
                    task.views[1] = lanes_view(b, tensors[0], i, j);
                    task.views[2] = lanes_view(b, tensors[2], zero, zero);
                } else if (p == WAVEFRONT) {
                    task.views[1] = lanes_view(b, tensors[1], lanes_before(b, i), j);
                    task.views[2] = lanes_view(b, tensors[1], i, lanes_before(b, j));
                }
                ptowsp_task_make(m, &task);
            }
        }
    }
}

static void lanes_execute(lanes_bench *b, uint32_t lane_count) {
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.lane_count = lane_count;
    lanes_check(b, ptowsp_run_execute(b->run, &options));
}

static void lanes_run_many(void *user) {
    lanes_execute((lanes_bench *)user, LANES);
}

static void lanes_run_one(void *user) {
    lanes_execute((lanes_bench *)user, 1);
}

// Rounds of graph_spin that take so many nanoseconds.
static uint32_t lanes_rounds(uint64_t ns) {
    const uint32_t rounds = 1000000;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        const uint64_t start = ptowsp_clock_ns();
        graph_spin(rounds);
        const uint64_t taken = ptowsp_clock_ns() - start;
        best = taken < best ? taken : best;
    }
    return (uint32_t)((double)rounds * (double)ns / (double)best);
}

static void lanes_pattern(pattern p, const char *name) {
    static const uint64_t lengths[] = {0, 1000, 10000};
    lanes_bench b;
    memset(&b, 0, sizeof b);
    graph_shape shape = graph_shape_wavefront(SIDE);
    b.limit = graph_limit_begin(&shape);
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.threads = PTOWSP_THREADS_OWN;
    desc.lane_count = LANES;
    require(ptowsp_context_create(&desc, &b.context) == PTOWSP_OK, "context");
    lanes_check(&b, ptowsp_module_create(b.context, NULL, &b.module));
    lanes_build(&b, p);
    lanes_check(&b, ptowsp_program_create(b.context, b.module, NULL, &b.program));
    lanes_check(&b, ptowsp_run_create(b.context, b.program, &b.run));
    float *data[3];
    static const char *const names[] = {"x", "y", "w"};
    for (int t = 0; t < 3; t++) {
        data[t] = (float *)calloc((size_t)TASKS * TILE * TILE, sizeof(float));
        require(data[t] != NULL, "memory");
        ptowsp_buffer buffer;
        memset(&buffer, 0, sizeof buffer);
        buffer.data = data[t];
        const ptowsp_status status = ptowsp_run_bind_tensor(b.run, names[t], &buffer);
        require(status == PTOWSP_OK, "bind");
    }
    for (int i = 0; i < 3; i++) {
        b.spin = shape.spin = lengths[i] ? lanes_rounds(lengths[i]) : 0;
        char title[64];
        snprintf(title, sizeof title, "program, 2 lanes: %s, %u us", name,
                 (unsigned)(lengths[i] / 1000));
        bench_case row;
        memset(&row, 0, sizeof row);
        row.name = title;
        row.unit = "ns/task";
        row.work = TASKS;
        row.repeat = 1;
        row.rounds = LANE_ROUNDS;
        row.own = lanes_run_many;
        row.other_name = "without lanes";
        row.other = lanes_run_one;
        row.limit_name = p == CHAIN       ? "kernels on another thread"
                         : p == WAVEFRONT ? "bare scheduler"
                                          : "bare hand-over";
        row.limit = p == CHAIN ? lanes_alone : p == WAVEFRONT ? lanes_schedule : lanes_hand_over;
        row.most = lengths[i] ? 600 : 120;
        row.budget =
            lengths[i] > 1000 || (lengths[i] && p != INDEPENDENT) ? BUDGET_NONE : BUDGET_VALUE;
        bench_measure(&row, &b);
    }
    graph_limit_end(b.limit);
    graph_shape_free(&shape);
    ptowsp_run_destroy(b.run);
    ptowsp_program_destroy(b.program);
    ptowsp_module_destroy(b.module);
    ptowsp_context_destroy(b.context);
    for (int t = 0; t < 3; t++) {
        free(data[t]);
    }
}

void bench_lanes(void) {
    lanes_pattern(INDEPENDENT, "independent");
    lanes_pattern(READERS, "readers");
    lanes_pattern(CHAIN, "chain");
    lanes_pattern(WAVEFRONT, "wavefront");
}
