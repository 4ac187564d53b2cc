// The columns of c that an entry does not have keep a mark, which is checked like the rest. Errors
// are parts of the largest value in a row, mark included: so the mark is about as large as sums of
// GEMM_DEPTH products get, and a row of a single column, whose sum may cancel, is measured by it.

#include "gemm.h"

#include "command.h"

#include <stdlib.h>
#include <string.h>

enum { TILE = GEMM_TILE, SLICES = (GEMM_DEPTH + GEMM_TILE - 1) / GEMM_TILE };

#define MARK 6.0  // sqrt(GEMM_DEPTH) / 3, the standard deviation of a sum

const gemm_size gemm_fixed[GEMM_ENTRIES] = {{1, 150, 300},   {64, 150, 300}, {0, 150, 300},
                                            {130, 150, 300}, {7, 150, 300},  {65, 150, 300},
                                            {200, 150, 300}, {33, 150, 300}};
const gemm_size gemm_ragged[GEMM_ENTRIES] = {{1, 64, 1},      {64, 1, 300},  {0, 10, 64},
                                             {130, 100, 129}, {7, 200, 256}, {65, 65, 17},
                                             {200, 150, 100}, {33, 0, 65}};

static ptowsp_kernel kernel_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "gemm"});
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, TILE, SLICES * TILE);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F16, SLICES * TILE, TILE);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, TILE, TILE);
    ptowsp_value none = {0}, sum = none;
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, TILE, TILE, 0);
    PTOWSP_TILE_LOOP(k, at, ptowsp_tile_const(k, 0), ptowsp_tile_cols(a), TILE) {
        ptowsp_value left = ptowsp_tile_slice_at(a, none, at, TILE, TILE);
        ptowsp_value right = ptowsp_tile_slice_at(b, at, none, TILE, TILE);
        sum = ptowsp_tile_carry(zero);
        ptowsp_tile_next(sum, ptowsp_tile_matmul_acc(sum, left, right));
    }
    ptowsp_tile_store(c, sum);
    return ptowsp_kernel_end(k);
}

static void workload_make(ptowsp_module *m, const gemm *g) {
    ptowsp_axis row_tiles = ptowsp_axis_ragged(m, "row_tiles");
    ptowsp_axis col_tiles = ptowsp_axis_ragged(m, "col_tiles");
    ptowsp_expr tile = ptowsp_i64(m, TILE);
    PTOWSP_WORKLOAD(m, "gemm") {
        PTOWSP_PARALLEL(m, entry, ptowsp_axis_dense(m, "entries", GEMM_ENTRIES)) {
            PTOWSP_PARALLEL(m, i, ptowsp_axis_row(m, row_tiles, entry)) {
                PTOWSP_PARALLEL(m, j, ptowsp_axis_row(m, col_tiles, entry)) {
                    ptowsp_expr none = {0};
                    ptowsp_expr row = ptowsp_mul(i, tile), col = ptowsp_mul(j, tile);
                    ptowsp_expr start = ptowsp_array_at(m, "start", PTOWSP_I32, entry);
                    ptowsp_expr k = ptowsp_array_at(m, "k", PTOWSP_I32, entry);
                    ptowsp_view a = setup_view(g->a, ptowsp_add(start, row), none);
                    ptowsp_view b = setup_stack_view(g->b, entry, none, col);
                    ptowsp_view c = setup_view(g->c, ptowsp_add(start, row), col);
                    a.row_count = c.row_count =
                        ptowsp_sub(ptowsp_array_at(m, "m", PTOWSP_I32, entry), row);
                    b.col_count = c.col_count =
                        ptowsp_sub(ptowsp_array_at(m, "n", PTOWSP_I32, entry), col);
                    a.col_count = b.row_count = k;
                    ptowsp_task_make(m,
                                     &(ptowsp_task_desc){.kernel = g->kernel, .views = {a, b, c}});
                }
            }
        }
    }
}

static void reference(const gemm *g, int e) {
    for (int64_t r = g->start[e]; r < g->start[e] + g->m[e]; r++) {
        for (int64_t c = 0; c < GEMM_COLS; c++) {
            double sum = 0.0;
            for (int64_t i = 0; i < g->k[e]; i++) {
                sum += setup_get(g->a, r, i) * setup_get(g->b, e * GEMM_DEPTH + i, c);
            }
            g->wanted[r * GEMM_COLS + c] = c < g->n[e] ? sum : MARK;
        }
    }
}

void gemm_fill(gemm *g, setup *s, const gemm_size *sizes) {
    int32_t rows = 0;
    for (int e = 0; e < GEMM_ENTRIES; e++) {
        g->start[e] = rows;
        g->m[e] = sizes[e].m;
        g->n[e] = sizes[e].n;
        g->k[e] = sizes[e].k;
        g->row_tiles[e] = (sizes[e].m + TILE - 1) / TILE;
        g->col_tiles[e] = (sizes[e].n + TILE - 1) / TILE;
        rows += sizes[e].m;
    }
    setup_resize(g->a, rows, GEMM_DEPTH);
    setup_resize(g->c, rows, GEMM_COLS);
    setup_fill_random(s, g->a, -1.0, 1.0);
    setup_fill_random(s, g->b, -1.0, 1.0);
    for (int e = 0; e < GEMM_ENTRIES; e++) {
        reference(g, e);
    }
}

static void prepare(void *user) {
    setup_fill(((const gemm *)user)->c, MARK);
}

static bool check(void *user) {
    gemm *g = (gemm *)user;
    double error = setup_error(g->c, g->wanted);
    g->error = error <= g->error ? g->error : error;  // keeps a NaN
    return error <= GEMM_ALLOWED;
}

// An array that cannot be bound is named by the execution.
static void bind(void *user, ptowsp_run *run) {
    const gemm *g = (const gemm *)user;
    const struct {
        const char *name;
        const int32_t *values;
    } arrays[] = {{"row_tiles", g->row_tiles},
                  {"col_tiles", g->col_tiles},
                  {"start", g->start},
                  {"m", g->m},
                  {"n", g->n},
                  {"k", g->k}};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        ptowsp_run_bind_array(run, arrays[i].name, PTOWSP_I32, arrays[i].values, GEMM_ENTRIES);
    }
}

void gemm_make(gemm *g, setup *s) {
    memset(g, 0, sizeof *g);
    g->wanted = (double *)command_allocate(GEMM_ROWS * GEMM_COLS, sizeof(double));
    g->a = setup_dynamic_make(s, "a", PTOWSP_F16, GEMM_ROWS, GEMM_DEPTH, true, false);
    g->b = setup_stack_make(s, "b", PTOWSP_F16, GEMM_ENTRIES, GEMM_DEPTH, GEMM_COLS);
    g->c = setup_dynamic_make(s, "c", PTOWSP_F32, GEMM_ROWS, GEMM_COLS, true, false);
    g->kernel = kernel_make(s->module);
    workload_make(s->module, g);
    s->bind = bind;
    s->prepare = prepare;
    s->check = check;
    s->user = g;
}

void gemm_destroy(gemm *g) {
    free(g->wanted);
}
