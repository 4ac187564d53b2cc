// (a + b + 1) (a + b + 2) over 128 x 128 numbers, as a graph of kernels on a device of threads.
//
//      graph_formula [--schedulers N] [--cores N] [--blocks N]
//
// The matrices lie in the device's memory: the host copies a and b in and the result out. Each block
// of rows is a diamond of four kernels; blocks do not depend on each other:
//
//            +-> d = c + 1 --+
//      c = a + b             +-> f = d e
//            +-> e = c + 2 --+

#include "ptowsp.h"

#include "common/command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 128 };

// -- kernels: tiles in, tile out, the cycles of a vector core that does 32 numbers at once ---------

static float *row_of(const ptowsp_task *task, uint32_t tile, int64_t row) {
    return (float *)task->tiles[tile].data + row * task->tiles[tile].row_stride;
}

static ptowsp_cycles cycles_of(const ptowsp_task *task) {
    return (ptowsp_cycles)(ptowsp_task_rows(task, 0) * ptowsp_task_cols(task, 0) / 32);
}

static ptowsp_cycles add(const ptowsp_task *task, void *user) {
    for (int64_t i = 0; i < ptowsp_task_rows(task, 0); i++) {
        const float *x = row_of(task, 0, i), *y = row_of(task, 1, i);
        float *z = row_of(task, 2, i);
        for (int64_t j = 0; j < ptowsp_task_cols(task, 0); j++) {
            z[j] = x[j] + y[j];
        }
    }
    (void)user;
    return cycles_of(task);
}

static ptowsp_cycles add_scalar(const ptowsp_task *task, void *user) {
    float scalar = (float)ptowsp_task_scalar(task, 0);
    for (int64_t i = 0; i < ptowsp_task_rows(task, 0); i++) {
        const float *x = row_of(task, 0, i);
        float *z = row_of(task, 1, i);
        for (int64_t j = 0; j < ptowsp_task_cols(task, 0); j++) {
            z[j] = x[j] + scalar;
        }
    }
    (void)user;
    return cycles_of(task);
}

static ptowsp_cycles multiply(const ptowsp_task *task, void *user) {
    for (int64_t i = 0; i < ptowsp_task_rows(task, 0); i++) {
        const float *x = row_of(task, 0, i), *y = row_of(task, 1, i);
        float *z = row_of(task, 2, i);
        for (int64_t j = 0; j < ptowsp_task_cols(task, 0); j++) {
            z[j] = x[j] * y[j];
        }
    }
    (void)user;
    return cycles_of(task);
}

// -- the graph ------------------------------------------------------------------------------------

// Adds a kernel over a block of rows of some matrices, the last of which it writes; returns its task.
static uint64_t add_task(ptowsp_graph *graph, const char *name, ptowsp_kernel_fn fn, int64_t row,
                         int64_t rows, float *const *matrices, uint32_t count,
                         const uint64_t *scalar) {
    ptowsp_tile tiles[3];
    uint64_t args[7], task;
    for (uint32_t i = 0; i < count; i++) {
        tiles[i] =
            (ptowsp_tile){.data = matrices[i] + row * SIZE, .row_stride = SIZE, .col_stride = 1};
        args[2 * i] = (uint64_t)rows;
        args[2 * i + 1] = SIZE;
    }
    if (scalar) {
        args[2 * count] = *scalar;
    }
    ptowsp_graph_call call = {.fn = fn,
                              .args = args,
                              .tiles = tiles,
                              .tile_count = count,
                              .scalar_count = scalar ? 1 : 0};
    ptowsp_graph_task_desc desc = {.kernel = &call, .name = name};
    ptowsp_graph_task_make(graph, &desc, &task);
    return task;
}

// What fails is kept by the graph, and reported when it runs.
static void add_block(ptowsp_graph *graph, int64_t row, int64_t rows, float *const m[6]) {
    const uint64_t one = 1, two = 2;
    float *const abc[] = {m[0], m[1], m[2]}, *const cd[] = {m[2], m[3]};
    float *const ce[] = {m[2], m[4]}, *const def[] = {m[3], m[4], m[5]};
    uint64_t c = add_task(graph, "c = a + b", add, row, rows, abc, 3, NULL);
    uint64_t d = add_task(graph, "d = c + 1", add_scalar, row, rows, cd, 2, &one);
    uint64_t e = add_task(graph, "e = c + 2", add_scalar, row, rows, ce, 2, &two);
    uint64_t f = add_task(graph, "f = d e", multiply, row, rows, def, 3, NULL);
    ptowsp_graph_edge_make(graph, c, d);
    ptowsp_graph_edge_make(graph, c, e);
    ptowsp_graph_edge_make(graph, d, f);
    ptowsp_graph_edge_make(graph, e, f);
}

int main(int argc, char **argv) {
    uint64_t schedulers = 1, cores = 4, blocks = 8;
    const command_option options[] = {
        {.flag = "--schedulers", .whole = &schedulers, .low = 1, .high = 16},
        {.flag = "--cores", .whole = &cores, .low = 1, .high = 256},
        {.flag = "--blocks", .whole = &blocks, .low = 1, .high = SIZE},
    };
    command_parse(argc, argv,
                  "graph_formula [--schedulers N] [--cores N] [--blocks N]\n"
                  "computes (a + b + 1) (a + b + 2) as a graph of kernels on a device of threads\n",
                  options, sizeof options / sizeof options[0]);
    ptowsp_context *context;
    if (ptowsp_context_create(NULL, &context)) {
        command_fail("no memory");
    }
    ptowsp_device_desc desc = {.scheduler_count = (uint32_t)schedulers,
                               .vector_count = (uint32_t)cores};
    ptowsp_device *device;
    command_check(context, ptowsp_device_open(context, &desc, &device));

    static float a[SIZE * SIZE], b[SIZE * SIZE], result[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++) {
        a[i] = 2.0f;
        b[i] = 3.0f;
    }
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    float *matrices[6];
    for (int i = 0; i < 6; i++) {
        void *memory;
        command_check(context, ptowsp_device_alloc(device, names[i], sizeof a, &memory));
        matrices[i] = (float *)memory;
    }
    command_check(context, ptowsp_device_copy_in(device, matrices[0], a, sizeof a));
    command_check(context, ptowsp_device_copy_in(device, matrices[1], b, sizeof b));

    ptowsp_graph *graph;
    command_check(context, ptowsp_graph_create(context, NULL, &graph));
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t begin = i * SIZE / blocks, end = (i + 1) * SIZE / blocks;
        add_block(graph, (int64_t)begin, (int64_t)(end - begin), matrices);
    }
    command_check(context, ptowsp_device_run_graph(device, graph));
    command_check(context, ptowsp_device_copy_out(device, result, matrices[5], sizeof result));

    ptowsp_graph_stats stats = ptowsp_graph_result(graph);
    ptowsp_cycles cycles = 0;
    for (uint64_t i = 0; i < stats.task_count; i++) {
        cycles += ptowsp_graph_task_cycles(graph, i);
    }
    int wrong = 0;
    for (int i = 0; i < SIZE * SIZE; i++) {
        wrong += fabsf(result[i] - 42.0f) > 0.0f;
    }
    printf("(a + b + 1) (a + b + 2), a = 2, b = 3, %d x %d numbers: %llu kernels, %llu cycles\n",
           SIZE, SIZE, (unsigned long long)stats.task_count, (unsigned long long)cycles);
    for (uint32_t core = 0; core < stats.lane_count; core++) {
        printf("  core %-3u %5llu kernels\n", core,
               (unsigned long long)ptowsp_graph_lanes(graph)[core].task_count);
    }
    if (wrong) {
        printf("  check    %d numbers are not 42: WRONG\n", wrong);
    } else {
        printf("  check    all are 42: good\n");
    }

    ptowsp_graph_destroy(graph);
    for (int i = 0; i < 6; i++) {
        command_check(context, ptowsp_device_free(device, matrices[i]));
    }
    command_check(context, ptowsp_device_close(device));  // would say what was not freed
    ptowsp_context_destroy(context);
    command_flush();
    return wrong ? 1 : 0;
}
