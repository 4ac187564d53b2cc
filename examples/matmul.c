// Matrix product c = a b of f16 matrices, whose sizes are no multiples of the tiles', in two ways:
//
//      split     a task for each 64 x 64 tile of c and each 64 of the inner size adds its part to
//                the tile in memory; the parts of a tile run one after another
//      loop      a task for each tile of c walks over the inner size in a loop, and adds up products
//                in the accumulators of the cube unit, while the next operands are loaded
//
// Both read the operands equally often; split stores and loads c again for every part.
//
//      matmul --size N
//
// multiplies N x N matrices as it is done by hand on 24 cores: 4 x 6 of them have a part of c each,
// and the work of a core is one kernel (gemm_core.h). It prints the predicted time on a 910B, and
// beside it the published one of sizes that have been measured.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/gemm_core.h"
#include "common/published.h"
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

// -- a product on all cores -----------------------------------------------------------------------

enum { CORE_ROWS = 4, CORE_COLS = 6, SIZE_MAX_CHECKED = 1024, SIZE_MOST = 16384 };

#define WHOLE_ALLOWED 1e-5  // of sums of up to 1,024 products

// What each core has of `size` rows or columns: whole output tiles.
static int64_t part_of(int64_t size, int64_t cores, int64_t tile) {
    return ((size + cores - 1) / cores + tile - 1) / tile * tile;
}

static void whole_reference(const example *e) {
    int64_t n = e->a->rows;
    for (int64_t r = 0; r < n; r++) {
        for (int64_t i = 0; i < n; i++) {
            double left = setup_get(e->a, r, i);
            for (int64_t c = 0; c < n; c++) {
                e->wanted[r * n + c] += left * setup_get(e->b, i, c);
            }
        }
    }
}

static void whole_prepare(void *user) {
    setup_fill(((const example *)user)->c, NAN);
}

static bool whole_check(void *user) {
    example *e = (example *)user;
    double error = setup_error(e->c, e->wanted);
    e->error = error <= e->error ? e->error : error;
    return error <= WHOLE_ALLOWED;
}

static bool whole(setup *s, int64_t n) {
    ptowsp_module *m = s->module;
    int64_t rows = part_of(n, CORE_ROWS, GEMM_CORE_ROWS),
            cols = part_of(n, CORE_COLS, GEMM_CORE_COLS);
    const gemm_core part = {
        .rows = rows, .cols = cols, .depth = n, .panel = n < 256 ? n : 256, .out = PTOWSP_F32};
    ptowsp_kernel kernel = gemm_core_make(m, "part", &part);
    example e = {.a = setup_matrix_make(s, "a", PTOWSP_F16, n, n),
                 .b = setup_matrix_make(s, "b", PTOWSP_F16, n, n),
                 .c = setup_matrix_make(s, "c", PTOWSP_F32, n, n)};
    ptowsp_axis down = ptowsp_axis_dense(m, "down", (n + rows - 1) / rows);
    ptowsp_axis across = ptowsp_axis_dense(m, "across", (n + cols - 1) / cols);
    PTOWSP_WORKLOAD(m, "whole") {
        PTOWSP_PARALLEL(m, i, down) {
            PTOWSP_PARALLEL(m, j, across) {
                ptowsp_expr none = {0};
                ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, rows));
                ptowsp_expr col = ptowsp_mul(j, ptowsp_i64(m, cols));
                ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = kernel,
                                                        .views = {setup_view(e.a, row, none),
                                                                  setup_view(e.b, none, col),
                                                                  setup_view(e.c, row, col)}});
            }
        }
    }
    ptowsp_schedule schedule = {.lane_count = CORE_ROWS * CORE_COLS};
    bool is_good = true;
    printf("matmul of %d x %d by %d x %d in f16, on cores with %d x %d each, in one kernel\n",
           (int)n, (int)n, (int)n, (int)n, (int)rows, (int)cols);
    setup_print_kernel(s, "part", kernel);
    if (n <= SIZE_MAX_CHECKED) {
        e.wanted = (double *)command_allocate((uint64_t)(n * n), sizeof(double));
        setup_fill_random(s, e.a, -1.0, 1.0);
        setup_fill_random(s, e.b, -1.0, 1.0);
        whole_reference(&e);
        s->prepare = whole_prepare;
        s->check = whole_check;
        s->user = &e;
        is_good = setup_run(s, "whole", &schedule);
        is_good &= setup_report(e.c, e.error, WHOLE_ALLOWED);
        free(e.wanted);
    } else {
        printf("  (values are computed and checked up to %d)\n", SIZE_MAX_CHECKED);
    }
    char shape[64];
    snprintf(shape, sizeof shape, "m=%d k=%d n=%d ", (int)n, (int)n, (int)n);
    published_print(s, &schedule, CUBE_LAUNCH_US, "gemm", shape);
    return is_good;
}

static const char help_text[] =
    "Multiplies f16 matrices by tile kernels, and prints how far they are off.\n"
    "  --size N      N x N by N x N on 24 cores, a kernel each; its time on a 910B\n"
    "  --threads N   lanes that run kernels, 1 to 64 (1); what is printed is the same for all\n"
    "  --emit DIR    also writes, builds and runs the trees\n"
    "  --cache DIR, --compiler NAME, --options TEXT   of the trees\n";

int main(int argc, char **argv) {
    setup s;
    uint64_t size = 0;
    const command_option more[] = {{"--size", &size, NULL, 1, SIZE_MOST}};
    emit_create_with(&s, argc, argv, help_text, more, 1);
    if (size) {
        bool is_right = whole(&s, (int64_t)size);
        setup_destroy(&s);
        return is_right ? 0 : 1;
    }
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
