// A blocked Cholesky factorization as a graph of tasks on threads: A = L L', block by block.
//
//      graph_threads [--size N] [--block N] [--threads N] [--runs N]
//
// For each column k of blocks: factor the diagonal block, solve the blocks below it against it, and
// update all blocks to the right with products of two of those. A block is ready for its next task
// when the last one that writes it is done, and its inputs are final: those are the edges. Below,
// L L' is compared with A, and the factor with that of one lane, bit by bit.

#include "ptowsp.h"

#include "common/command.h"
#include "common/lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cholesky cholesky;

typedef struct block_task {
    cholesky *c;
    uint32_t i, j, k;  // writes block (i, j), in step k
} block_task;

struct cholesky {
    uint64_t size, block, blocks;  // blocks in a row: size / block
    double *a, *l;                 // l holds a copy of a, and becomes the factor
    block_task *tasks;
    uint64_t *last;  // by block: the task that has written it last, or PTOWSP_NO_INDEX
    uint64_t task_count;
};

static double *block_at(const cholesky *c, uint64_t i, uint64_t j) {
    return c->l + i * c->block * c->size + j * c->block;
}

// -- tasks ----------------------------------------------------------------------------------------

// The diagonal block: a Cholesky factorization of its own. Fails if the matrix is not positive
// definite.
static ptowsp_status factor(void *user, uint64_t task, uint32_t lane) {
    const block_task *t = (const block_task *)user;
    const cholesky *c = t->c;
    double *d = block_at(c, t->k, t->k);
    (void)task, (void)lane;
    for (uint64_t j = 0; j < c->block; j++) {
        for (uint64_t i = j; i < c->block; i++) {
            double sum = d[i * c->size + j];
            for (uint64_t k = 0; k < j; k++) {
                sum -= d[i * c->size + k] * d[j * c->size + k];
            }
            if (i == j && !(sum > 0.0)) {
                return PTOWSP_INVALID_PARAMS;
            }
            d[i * c->size + j] = i == j ? sqrt(sum) : sum / d[j * c->size + j];
        }
    }
    return PTOWSP_OK;
}

// A block below the diagonal: X D' = B, for the factored diagonal block D.
static ptowsp_status solve(void *user, uint64_t task, uint32_t lane) {
    const block_task *t = (const block_task *)user;
    const cholesky *c = t->c;
    const double *d = block_at(c, t->k, t->k);
    double *x = block_at(c, t->i, t->k);
    (void)task, (void)lane;
    for (uint64_t i = 0; i < c->block; i++) {
        for (uint64_t j = 0; j < c->block; j++) {
            double sum = x[i * c->size + j];
            for (uint64_t k = 0; k < j; k++) {
                sum -= x[i * c->size + k] * d[j * c->size + k];
            }
            x[i * c->size + j] = sum / d[j * c->size + j];
        }
    }
    return PTOWSP_OK;
}

// A block to the right: minus the product of block (i, k) and the transpose of block (j, k).
static ptowsp_status update(void *user, uint64_t task, uint32_t lane) {
    const block_task *t = (const block_task *)user;
    const cholesky *c = t->c;
    const double *a = block_at(c, t->i, t->k), *b = block_at(c, t->j, t->k);
    double *x = block_at(c, t->i, t->j);
    (void)task, (void)lane;
    for (uint64_t i = 0; i < c->block; i++) {
        for (uint64_t j = 0; j < c->block; j++) {
            double sum = 0.0;
            for (uint64_t k = 0; k < c->block; k++) {
                sum += a[i * c->size + k] * b[j * c->size + k];
            }
            x[i * c->size + j] -= sum;
        }
    }
    return PTOWSP_OK;
}

// -- the graph ------------------------------------------------------------------------------------

// Adds a task that writes block (i, j), after the one that wrote it before.
static void add_task(cholesky *c, ptowsp_graph *graph, ptowsp_graph_fn fn, uint64_t i, uint64_t j,
                     uint64_t k) {
    block_task *t = &c->tasks[c->task_count++];
    t->c = c;
    t->i = (uint32_t)i;
    t->j = (uint32_t)j;
    t->k = (uint32_t)k;
    ptowsp_graph_task_desc desc = {.fn = fn, .user = t, .name = fn == factor ? "factor" : NULL};
    uint64_t *last = &c->last[i * c->blocks + j], task;
    ptowsp_graph_task_make(graph, &desc, &task);
    if (*last != PTOWSP_NO_INDEX) {
        ptowsp_graph_edge_make(graph, *last, task);
    }
    *last = task;
}

// The task added last reads block (i, j) as it is now.
static void add_input(cholesky *c, ptowsp_graph *graph, uint64_t i, uint64_t j) {
    ptowsp_graph_edge_make(graph, c->last[i * c->blocks + j], c->task_count - 1);
}

// Errors are looked at once, when the graph is sealed.
static void build(cholesky *c, ptowsp_graph *graph) {
    c->task_count = 0;
    for (uint64_t i = 0; i < c->blocks * c->blocks; i++) {
        c->last[i] = PTOWSP_NO_INDEX;
    }
    for (uint64_t k = 0; k < c->blocks; k++) {
        add_task(c, graph, factor, k, k, k);
        for (uint64_t i = k + 1; i < c->blocks; i++) {
            add_task(c, graph, solve, i, k, k);
            add_input(c, graph, k, k);
        }
        for (uint64_t j = k + 1; j < c->blocks; j++) {
            for (uint64_t i = j; i < c->blocks; i++) {
                add_task(c, graph, update, i, j, k);
                add_input(c, graph, i, k);
                if (i != j) {
                    add_input(c, graph, j, k);
                }
            }
        }
    }
}

// -- the matrix -----------------------------------------------------------------------------------

// A symmetric matrix with a heavy diagonal, which makes it positive definite.
static void fill(cholesky *c) {
    uint64_t random = 1;
    for (uint64_t i = 0; i < c->size; i++) {
        for (uint64_t j = 0; j <= i; j++) {
            double value = lengths_random_unit(&random) - 0.5;
            c->a[i * c->size + j] = c->a[j * c->size + i] = value;
        }
        c->a[i * c->size + i] += (double)c->size;
    }
}

// The largest difference between L L' and A, as a part of the largest element of A.
static double error_of(const cholesky *c) {
    double most = 0.0;
    for (uint64_t i = 0; i < c->size; i++) {
        for (uint64_t j = 0; j <= i; j++) {
            double sum = 0.0;
            for (uint64_t k = 0; k <= j; k++) {
                sum += c->l[i * c->size + k] * c->l[j * c->size + k];
            }
            double off = fabs(sum - c->a[i * c->size + j]) / ((double)c->size + 0.5);
            most = off <= most ? most : off;  // keeps a NaN
        }
    }
    return most;
}

// Builds and runs the graph on so many lanes; the best time of a run, in seconds.
static double run(cholesky *c, uint64_t threads, uint64_t runs, uint64_t *out_steals) {
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = (uint32_t)threads};
    ptowsp_context *context;
    ptowsp_graph *graph;
    command_check(NULL, ptowsp_context_create(&desc, &context));
    command_check(context, ptowsp_graph_create(context, NULL, &graph));
    build(c, graph);
    command_check(context, ptowsp_graph_seal(graph));
    double best = INFINITY;
    for (uint64_t i = 0; i < runs; i++) {
        memcpy(c->l, c->a, c->size * c->size * sizeof(double));
        uint64_t start = ptowsp_clock_ns();
        command_check(context, ptowsp_graph_run(graph));
        double seconds = (double)(ptowsp_clock_ns() - start) * 1e-9;
        best = seconds < best ? seconds : best;
    }
    *out_steals = 0;
    for (uint64_t i = 0; i < threads; i++) {
        *out_steals += ptowsp_graph_lanes(graph)[i].steal_count;
    }
    ptowsp_graph_destroy(graph);
    ptowsp_context_destroy(context);
    return best;
}

int main(int argc, char **argv) {
    uint64_t size = 720, block = 48, threads = 2, runs = 3;
    const command_option options[] = {
        {.flag = "--size", .whole = &size, .low = 1, .high = 8192},
        {.flag = "--block", .whole = &block, .low = 1, .high = 8192},
        {.flag = "--threads", .whole = &threads, .low = 1, .high = 64},
        {.flag = "--runs", .whole = &runs, .low = 1, .high = 1000},
    };
    command_parse(argc, argv,
                  "graph_threads [--size N] [--block N] [--threads N] [--runs N]\n"
                  "factors a matrix of N x N numbers, in blocks, as a graph of tasks\n",
                  options, sizeof options / sizeof options[0]);
    if (size % block) {
        command_fail("--size is %llu, not a multiple of --block, %llu", (unsigned long long)size,
                     (unsigned long long)block);
    }
    cholesky c = {.size = size, .block = block, .blocks = size / block};
    uint64_t n = c.blocks, task_max = n * (n + 1) * (n + 2) / 6;
    c.a = (double *)command_allocate(size * size, sizeof(double));
    c.l = (double *)command_allocate(size * size, sizeof(double));
    c.tasks = (block_task *)command_allocate(task_max, sizeof(block_task));
    c.last = (uint64_t *)command_allocate(n * n, sizeof(uint64_t));
    double *alone = (double *)command_allocate(size * size, sizeof(double));
    fill(&c);
    uint64_t steals;
    double one = run(&c, 1, runs, &steals);
    memcpy(alone, c.l, size * size * sizeof(double));
    double many = run(&c, threads, runs, &steals);
    double error = error_of(&c), flops = (double)size * (double)size * (double)size / 3.0;
    bool is_same = memcmp(alone, c.l, size * size * sizeof(double)) == 0;
    bool is_good = error <= 1e-14 && is_same;
    printf("cholesky of %llu x %llu, blocks of %llu: %llu tasks\n", (unsigned long long)size,
           (unsigned long long)size, (unsigned long long)block, (unsigned long long)c.task_count);
    printf("  1 thread   %8.3f ms  %6.2f GFLOP/s\n", one * 1e3, flops / one * 1e-9);
    printf("  %llu threads  %8.3f ms  %6.2f GFLOP/s, %llu tasks stolen\n",
           (unsigned long long)threads, many * 1e3, flops / many * 1e-9,
           (unsigned long long)steals);
    printf("  check      L L' is off by %.1e of A, 1e-14 allowed; as on one thread: %s: %s\n",
           error, is_same ? "yes" : "no", is_good ? "good" : "WRONG");
    free(c.a);
    free(c.l);
    free(c.tasks);
    free(c.last);
    free(alone);
    command_flush();
    return is_good ? 0 : 1;
}
