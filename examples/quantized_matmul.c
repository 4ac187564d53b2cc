// A matrix product in int8: y = x w' with a step for each row of x and for each row of w, that is,
// for each output channel.
//
//      quantize     step = largest magnitude of a row / 127; the row in steps, as i8   x and w
//      multiply     i8 x i8 -> i32 -> f32, times the step of its row and that of its column
//
// The kernel that quantizes does not know whose rows they are, so the weights are quantized by it
// once, as they would be when a model is loaded. w is kept by rows and bound a second time, with
// other strides, as its transpose.
//
// The product is compared with what the quantized numbers give in double, and, which is no error of
// the kernels, with the product of what was quantized.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100, CHANNELS = 80, DEPTH = 200, TILE_ROWS = 32, TILE_COLS = 64, DEPTH_MAX = 256 };
enum { LANES = 8 };

#define ALLOWED      5e-7
#define ALLOWED_LOSS 3e-2  // by steps of 1/127

// -- kernels --------------------------------------------------------------------------------------

static ptowsp_kernel quantize_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "quantize"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, TILE_ROWS, DEPTH_MAX);
    ptowsp_value in_steps = ptowsp_tile_out(k, "in_steps", PTOWSP_I8, TILE_ROWS, DEPTH_MAX);
    ptowsp_value step = ptowsp_tile_out(k, "step", PTOWSP_F32, TILE_ROWS, 1);
    ptowsp_value most = ptowsp_tile_rowmax(ptowsp_tile_abs(x));
    ptowsp_value per_unit = ptowsp_tile_div(ptowsp_tile_const(k, 127.0), most);
    ptowsp_tile_store(in_steps, ptowsp_tile_quantize(x, per_unit));
    ptowsp_tile_store(step, ptowsp_tile_mul(most, ptowsp_tile_const(k, 1.0 / 127.0)));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel multiply_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "multiply"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_I8, TILE_ROWS, DEPTH_MAX);
    ptowsp_value w = ptowsp_tile_in(k, "w", PTOWSP_I8, DEPTH_MAX, TILE_COLS);
    ptowsp_value x_step = ptowsp_tile_in(k, "x_step", PTOWSP_F32, TILE_ROWS, 1);
    ptowsp_value w_step = ptowsp_tile_in(k, "w_step", PTOWSP_F32, 1, TILE_COLS);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, TILE_ROWS, TILE_COLS);
    ptowsp_value sums = ptowsp_tile_cvt(ptowsp_tile_matmul(x, w), PTOWSP_F32, PTOWSP_ROUND_NEAREST);
    ptowsp_tile_store(y, ptowsp_tile_mul(ptowsp_tile_mul(sums, x_step), w_step));
    return ptowsp_kernel_end(k);
}

// -- the workload ---------------------------------------------------------------------------------

typedef struct example {
    setup_matrix *x, *w, *x_q, *w_q, *w_q_t, *x_step, *w_step, *w_step_t, *y;
    ptowsp_kernel quantize, multiply;
    double *wanted, *exact;
    double error, loss;
    uint64_t wrong_steps;
} example;

static void quantize_rows(ptowsp_module *m, const example *e, ptowsp_axis tiles,
                          const setup_matrix *x, const setup_matrix *in_steps,
                          const setup_matrix *step) {
    ptowsp_expr zero = ptowsp_i64(m, 0);
    PTOWSP_PARALLEL(m, i, tiles) {
        ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE_ROWS));
        ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = e->quantize,
                                                .views = {setup_view(x, row, zero),
                                                          setup_view(in_steps, row, zero),
                                                          setup_view(step, row, zero)}});
    }
}

static void workload_make(ptowsp_module *m, const example *e) {
    ptowsp_axis row_tiles = ptowsp_axis_dense(m, "row_tiles", (ROWS + TILE_ROWS - 1) / TILE_ROWS);
    ptowsp_axis col_tiles =
        ptowsp_axis_dense(m, "col_tiles", (CHANNELS + TILE_COLS - 1) / TILE_COLS);
    ptowsp_axis channel_tiles =
        ptowsp_axis_dense(m, "channel_tiles", (CHANNELS + TILE_ROWS - 1) / TILE_ROWS);
    ptowsp_expr zero = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "quantized") {
        PTOWSP_COMBINE(m) {  // what waits for what follows from the data
            quantize_rows(m, e, channel_tiles, e->w, e->w_q, e->w_step);
            quantize_rows(m, e, row_tiles, e->x, e->x_q, e->x_step);
            PTOWSP_PARALLEL(m, i, row_tiles) {
                PTOWSP_PARALLEL(m, j, col_tiles) {
                    ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE_ROWS));
                    ptowsp_expr col = ptowsp_mul(j, ptowsp_i64(m, TILE_COLS));
                    ptowsp_task_make(
                        m, &(ptowsp_task_desc){.kernel = e->multiply,
                                               .views = {setup_view(e->x_q, row, zero),
                                                         setup_view(e->w_q_t, zero, col),
                                                         setup_view(e->x_step, row, zero),
                                                         setup_view(e->w_step_t, zero, col),
                                                         setup_view(e->y, row, col)}});
                }
            }
        }
    }
}

// -- checks ---------------------------------------------------------------------------------------

static void prepare(void *user) {
    const example *e = (const example *)user;
    setup_fill(e->x_q, 99.0);
    setup_fill(e->w_q, 99.0);
    setup_fill(e->x_step, NAN);
    setup_fill(e->w_step, NAN);
    setup_fill(e->y, NAN);
}

// How many elements are not the nearest number of steps. Half a step more may be rounded either
// way, as the kernel computes in f32.
static uint64_t wrong_steps(const setup_matrix *x, const setup_matrix *in_steps,
                            const setup_matrix *step) {
    uint64_t wrong = 0;
    for (int64_t r = 0; r < x->rows; r++) {
        double most = 0.0;
        for (int64_t c = 0; c < x->cols; c++) {
            most = fmax(most, fabs(setup_get(x, r, c)));
        }
        wrong += !(fabs(setup_get(step, r, 0) * 127.0 / most - 1.0) < 3e-7);
        for (int64_t c = 0; c < x->cols; c++) {
            double steps = setup_get(x, r, c) * 127.0 / most;
            wrong += !(fabs(setup_get(in_steps, r, c) - steps) < 0.5 + 1e-4);
        }
    }
    return wrong;
}

static bool check(void *user) {
    example *e = (example *)user;
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t c = 0; c < CHANNELS; c++) {
            double sum = 0.0, exact = 0.0;
            for (int64_t i = 0; i < DEPTH; i++) {
                sum += setup_get(e->x_q, r, i) * setup_get(e->w_q, c, i);
                exact += setup_get(e->x, r, i) * setup_get(e->w, c, i);
            }
            e->wanted[r * CHANNELS + c] =
                sum * setup_get(e->x_step, r, 0) * setup_get(e->w_step, c, 0);
            e->exact[r * CHANNELS + c] = exact;
        }
    }
    e->wrong_steps = wrong_steps(e->x, e->x_q, e->x_step) + wrong_steps(e->w, e->w_q, e->w_step);
    e->error = setup_error(e->y, e->wanted);
    e->loss = setup_error(e->y, e->exact);
    return e->error <= ALLOWED && e->loss <= ALLOWED_LOSS && e->wrong_steps == 0;
}

int main(int argc, char **argv) {
    setup s;
    emit_create(&s, argc, argv);
    ptowsp_module *m = s.module;
    example e = {.x = setup_matrix_make(&s, "x", PTOWSP_F32, ROWS, DEPTH),
                 .w = setup_matrix_make(&s, "w", PTOWSP_F32, CHANNELS, DEPTH),
                 .x_q = setup_matrix_make(&s, "x_q", PTOWSP_I8, ROWS, DEPTH),
                 .w_q = setup_matrix_make(&s, "w_q", PTOWSP_I8, CHANNELS, DEPTH),
                 .x_step = setup_matrix_make(&s, "x_step", PTOWSP_F32, ROWS, 1),
                 .w_step = setup_matrix_make(&s, "w_step", PTOWSP_F32, CHANNELS, 1),
                 .y = setup_matrix_make(&s, "y", PTOWSP_F32, ROWS, CHANNELS),
                 .quantize = quantize_make(m),
                 .multiply = multiply_make(m),
                 .wanted = (double *)command_allocate(ROWS * CHANNELS, sizeof(double)),
                 .exact = (double *)command_allocate(ROWS * CHANNELS, sizeof(double))};
    e.w_q_t = setup_transpose_make(&s, "w_q_t", e.w_q);
    e.w_step_t = setup_transpose_make(&s, "w_step_t", e.w_step);
    workload_make(m, &e);
    setup_fill_random(&s, e.x, -1.0, 1.0);
    setup_fill_random(&s, e.w, -0.1, 0.1);
    s.prepare = prepare;
    s.check = check;
    s.user = &e;

    printf("int8 product of %d x %d by %d x %d, in tiles of %d x %d\n", ROWS, DEPTH, DEPTH,
           CHANNELS, TILE_ROWS, TILE_COLS);
    setup_print_kernel(&s, "quantize", e.quantize);
    setup_print_kernel(&s, "multiply", e.multiply);
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = LANES};
    bool is_good = setup_run(&s, "work stealing", &schedule);
    printf(
        "  steps     wrongly rounded: %llu; largest loss by them %.1e of the row, %.0e allowed\n",
        (unsigned long long)e.wrong_steps, e.loss, ALLOWED_LOSS);
    is_good &= setup_report(e.y, e.error, ALLOWED);
    free(e.wanted);
    free(e.exact);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}
