// RMSNorm, the norm of Llama (Zhang and Sennrich 2019), as a tile kernel: each row is divided by
// the root of the mean of its squares, plus epsilon, and multiplied by gamma. The mean is that of
// the valid columns: tiles are 16 x 512, the rows have 500.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 700, COLS = 500, TILE_ROWS = 16, TILE_COLS = 512, LANES = 8 };

#define EPSILON 1e-5
#define ALLOWED 1e-6

static ptowsp_kernel rmsnorm_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "rmsnorm"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, TILE_ROWS, TILE_COLS);
    ptowsp_value gamma = ptowsp_tile_in(k, "gamma", PTOWSP_F32, 1, TILE_COLS);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, TILE_ROWS, TILE_COLS);
    ptowsp_value mean = ptowsp_tile_rowmean(ptowsp_tile_mul(x, x));
    ptowsp_value scale = ptowsp_tile_rsqrt(ptowsp_tile_add(mean, ptowsp_tile_const(k, EPSILON)));
    ptowsp_tile_store(y, ptowsp_tile_mul(ptowsp_tile_mul(x, scale), gamma));
    return ptowsp_kernel_end(k);
}

static void reference(const setup_matrix *x, const setup_matrix *gamma, double *y) {
    for (int64_t r = 0; r < ROWS; r++) {
        double squares = 0.0;
        for (int64_t c = 0; c < COLS; c++) {
            squares += setup_get(x, r, c) * setup_get(x, r, c);
        }
        double scale = 1.0 / sqrt(squares / COLS + EPSILON);
        for (int64_t c = 0; c < COLS; c++) {
            y[r * COLS + c] = setup_get(x, r, c) * scale * setup_get(gamma, 0, c);
        }
    }
}

typedef struct example {
    setup_matrix *x, *gamma, *y;
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
                 .gamma = setup_matrix_make(&s, "gamma", PTOWSP_F32, 1, COLS),
                 .y = setup_matrix_make(&s, "y", PTOWSP_F32, ROWS, COLS),
                 .wanted = (double *)command_allocate(ROWS * COLS, sizeof(double))};
    ptowsp_kernel rmsnorm = rmsnorm_make(m);
    PTOWSP_WORKLOAD(m, "rmsnorm") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "tiles", (ROWS + TILE_ROWS - 1) / TILE_ROWS)) {
            ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE_ROWS)), zero = ptowsp_i64(m, 0);
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = rmsnorm,
                                                    .views = {setup_view(e.x, row, zero),
                                                              setup_view(e.gamma, zero, zero),
                                                              setup_view(e.y, row, zero)}});
        }
    }
    setup_fill_random(&s, e.x, -3.0, 3.0);
    setup_fill_random(&s, e.gamma, 0.5, 1.5);
    reference(e.x, e.gamma, e.wanted);
    s.prepare = prepare;
    s.check = check;
    s.user = &e;

    printf("rmsnorm of %d rows of %d, in tiles of %d x %d\n", ROWS, COLS, TILE_ROWS, TILE_COLS);
    setup_print_kernel(&s, "rmsnorm", rmsnorm);
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN, .lane_count = LANES};
    bool is_good = setup_run(&s, "round robin", &schedule);
    is_good &= setup_report(e.y, e.error, ALLOWED);
    free(e.wanted);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}
