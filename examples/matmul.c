// Matrix product c = a b of f16 matrices, whose sizes are no multiples of the tiles', in two ways:
//
//      split     a task for each 64 x 64 tile of c and each 64 of the inner size adds its part to
//                the tile in memory; the parts of a tile run one after another
//      loop      a task for each tile of c walks over the inner size in a loop, and adds up products
//                in the accumulators of the cube unit, while the next operands are loaded
//
// Both read the operands equally often; split stores and loads c again for every part.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 200, COLS = 150, DEPTH = 300, TILE = 64, SLICES = 5, LANES = 8 };

#define ALLOWED 1e-6  // f16 products are exact in f32; their sum is not

PTOWSP_STATIC_ASSERT(SLICES == (DEPTH + TILE - 1) / TILE, "slices cover the inner size");

static ptowsp_kernel split_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "split"});
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, TILE, TILE);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F16, TILE, TILE);
    ptowsp_value c = ptowsp_tile_inout(k, "c", PTOWSP_F32, TILE, TILE);
    ptowsp_tile_store(c, ptowsp_tile_add(c, ptowsp_tile_matmul(a, b)));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel loop_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "loop"});
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, TILE, SLICES * TILE);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F16, SLICES * TILE, TILE);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, TILE, TILE);
    ptowsp_value none = {NULL, 0}, sum = none;
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

typedef struct example {
    setup_matrix *a, *b, *c;
    ptowsp_axis tile_rows, tile_cols;
    double *wanted;
    double error;
    bool is_split;
} example;

static void reference(const example *e) {
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t c = 0; c < COLS; c++) {
            double sum = 0.0;
            for (int64_t i = 0; i < DEPTH; i++) {
                sum += setup_get(e->a, r, i) * setup_get(e->b, i, c);
            }
            e->wanted[r * COLS + c] = sum;
        }
    }
}

static void prepare(void *user) {
    const example *e = (const example *)user;
    setup_fill(e->c, e->is_split ? 0.0 : NAN);
}

static bool check(void *user) {
    example *e = (example *)user;
    double error = setup_error(e->c, e->wanted);
    e->error = error <= e->error ? e->error : error;  // keeps a NaN
    return error <= ALLOWED;
}

static void workload_make(ptowsp_module *m, const example *e, const char *name,
                          ptowsp_kernel kernel, ptowsp_axis parts) {
    ptowsp_expr tile = ptowsp_i64(m, TILE);
    PTOWSP_WORKLOAD(m, name) {
        PTOWSP_PARALLEL(m, i, e->tile_rows) {
            PTOWSP_PARALLEL(m, j, e->tile_cols) {
                PTOWSP_FOR_EACH(m, p, parts) {
                    ptowsp_expr row = ptowsp_mul(i, tile), col = ptowsp_mul(j, tile);
                    ptowsp_expr part = ptowsp_mul(p, tile);
                    ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = kernel,
                                                            .views = {setup_view(e->a, row, part),
                                                                      setup_view(e->b, part, col),
                                                                      setup_view(e->c, row, col)}});
                }
            }
        }
    }
}

int main(int argc, char **argv) {
    setup s;
    emit_create(&s, argc, argv);
    ptowsp_module *m = s.module;
    example e = {.a = setup_matrix_make(&s, "a", PTOWSP_F16, ROWS, DEPTH),
                 .b = setup_matrix_make(&s, "b", PTOWSP_F16, DEPTH, COLS),
                 .c = setup_matrix_make(&s, "c", PTOWSP_F32, ROWS, COLS),
                 .tile_rows = ptowsp_axis_dense(m, "tile_rows", (ROWS + TILE - 1) / TILE),
                 .tile_cols = ptowsp_axis_dense(m, "tile_cols", (COLS + TILE - 1) / TILE),
                 .wanted = (double *)command_allocate(ROWS * COLS, sizeof(double))};
    ptowsp_axis slices = ptowsp_axis_dense(m, "slices", SLICES);
    ptowsp_axis whole = ptowsp_axis_dense(m, "whole", 1);
    setup_fill_random(&s, e.a, -1.0, 1.0);
    setup_fill_random(&s, e.b, -1.0, 1.0);
    reference(&e);
    s.prepare = prepare;
    s.check = check;
    s.user = &e;

    printf("matmul of %d x %d by %d x %d in f16, tiles of %d\n", ROWS, DEPTH, DEPTH, COLS, TILE);
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = LANES};
    bool is_good = true;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "loop" : "split";
        ptowsp_kernel kernel = i ? loop_make(m) : split_make(m);
        e.is_split = i == 0;
        workload_make(m, &e, name, kernel, e.is_split ? slices : whole);
        setup_print_kernel(&s, name, kernel);
        is_good &= setup_run(&s, name, &schedule);
    }
    is_good &= setup_report(e.c, e.error, ALLOWED);
    free(e.wanted);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}
