// Softmax over the rows of a matrix, as a tile kernel: e^(x - max) / sum, 32 rows to a task. Tiles
// are 32 x 512 (two of them, and what reductions need beside, fit on chip); the matrix has 1000
// rows of 450, so that every task has fewer valid columns, and the last one fewer rows as well.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1000, COLS = 450, TILE_ROWS = 32, TILE_COLS = 512, LANES = 8 };

#define ALLOWED 1e-6

static ptowsp_kernel softmax_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "softmax"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, TILE_ROWS, TILE_COLS);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, TILE_ROWS, TILE_COLS);
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(x, ptowsp_tile_rowmax(x)));
    ptowsp_tile_store(y, ptowsp_tile_div(e, ptowsp_tile_rowsum(e)));
    return ptowsp_kernel_end(k);
}

static void reference(const setup_matrix *x, double *y) {
    for (int64_t r = 0; r < ROWS; r++) {
        double most = -INFINITY, sum = 0.0;
        for (int64_t c = 0; c < COLS; c++) {
            most = fmax(most, setup_get(x, r, c));
        }
        for (int64_t c = 0; c < COLS; c++) {
            sum += y[r * COLS + c] = exp(setup_get(x, r, c) - most);
        }
        for (int64_t c = 0; c < COLS; c++) {
            y[r * COLS + c] /= sum;
        }
    }
}

typedef struct example {
    setup_matrix *x, *y;
    double *wanted;
    double error;
} example;

static void prepare(void *user) {
    setup_fill(((const example *)user)->y, NAN);
}

static bool check(void *user) {
    example *e = (example *)user;
    e->error = setup_error(e->y, e->wanted);
    return e->error <= ALLOWED;
}

int main(int argc, char **argv) {
    setup s;
    emit_create(&s, argc, argv);
    ptowsp_module *m = s.module;
    example e = {.x = setup_matrix_make(&s, "x", PTOWSP_F32, ROWS, COLS),
                 .y = setup_matrix_make(&s, "y", PTOWSP_F32, ROWS, COLS),
                 .wanted = (double *)command_allocate(ROWS * COLS, sizeof(double))};
    ptowsp_kernel softmax = softmax_make(m);
    PTOWSP_WORKLOAD(m, "softmax") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "tiles", (ROWS + TILE_ROWS - 1) / TILE_ROWS)) {
            ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE_ROWS)), col = ptowsp_i64(m, 0);
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = softmax,
                                                    .views = {setup_view(e.x, row, col),
                                                              setup_view(e.y, row, col)}});
        }
    }
    setup_fill_random(&s, e.x, -20.0, 20.0);
    reference(e.x, e.wanted);
    s.prepare = prepare;
    s.check = check;
    s.user = &e;

    printf("softmax of %d rows of %d, in tiles of %d x %d\n", ROWS, COLS, TILE_ROWS, TILE_COLS);
    setup_print_kernel(&s, "softmax", softmax);
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN, .lane_count = LANES};
    bool is_good = setup_run(&s, "round robin", &schedule);
    is_good &= setup_report(e.y, e.error, ALLOWED);
    free(e.wanted);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}
