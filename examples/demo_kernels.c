// Two kernels in the form of PTO-ISA's demos, with their launches, unchanged: add (own/add.cpp) on a
// vector core, gemm (own/gemm.cpp) on a cube core. A block of a demo is a task here.
//
//      predicted     one block of each, on one core, by every model: cycles, and which pipes work
//      run           the workload in its tree, checked in double precision
//      as cycles     the predicted cycles given to the library, which then needs neither source nor data:
//                    the makespan is the tree's
//
// `demo_kernels --help` lists the options.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/measure.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 512, K = 1024, N = 512, TILE = 128 };           // gemm: 16 blocks
enum { ROWS = 2048, COLS = 128, SHARE = 256, LANES = 4 };  // add: 8 blocks
#define ALLOWED 1e-6

static const char help_text[] =
    "Runs kernels in the form of PTO-ISA's demos, and predicts what they take.\n"
    "  --directory DIR   where the tree goes, in place of an older one (build/emit/demo_kernels)\n"
    "  --cache DIR       where it is built ($XDG_CACHE_HOME/ptowsp or ~/.cache/ptowsp)\n"
    "  --compiler NAME   a C++ compiler ($CXX or c++)\n"
    "  --options TEXT    its options (-O1)\n";

// -- the workload ---------------------------------------------------------------------------------

typedef struct workload {
    setup s;
    setup_matrix *a, *b, *c, *x, *y, *sum;
    ptowsp_program *program;
} workload;

static const ptowsp_pto_source gemm_source = {.file = "examples/own/gemm.cpp",
                                              .args = {{.value = PTOWSP_PTO_DATA},
                                                       {.value = PTOWSP_PTO_DATA, .index = 1},
                                                       {.value = PTOWSP_PTO_DATA, .index = 2},
                                                       {.value = PTOWSP_PTO_COLS, .index = 1},
                                                       {.value = PTOWSP_PTO_ROW_STRIDE}}};
static const ptowsp_pto_source add_source = {.file = "examples/own/add.cpp",
                                             .args = {{.value = PTOWSP_PTO_DATA},
                                                      {.value = PTOWSP_PTO_DATA, .index = 1},
                                                      {.value = PTOWSP_PTO_DATA, .index = 2},
                                                      {.value = PTOWSP_PTO_ROWS}}};

static ptowsp_kernel gemm_make(ptowsp_module *m, ptowsp_cycles cycles) {
    return ptowsp_kernel_make(m, &(ptowsp_kernel_desc){
                                     .name = "gemm",
                                     .tiles = {{.name = "c",
                                                .direction = PTOWSP_OUT,
                                                .dtype = PTOWSP_F32,
                                                .rows = TILE,
                                                .cols = TILE},
                                               {.name = "a",
                                                .direction = PTOWSP_IN,
                                                .dtype = PTOWSP_F16,
                                                .rows = TILE,
                                                .cols = K},
                                               {.name = "b",
                                                .direction = PTOWSP_IN,
                                                .dtype = PTOWSP_F16,
                                                .rows = K,
                                                .cols = TILE}},
                                     .unit = PTOWSP_UNIT_CUBE,
                                     .cycles = cycles,
                                     .pto = &gemm_source,
                                 });
}

static ptowsp_kernel add_make(ptowsp_module *m, ptowsp_cycles cycles) {
    return ptowsp_kernel_make(m, &(ptowsp_kernel_desc){
                                     .name = "add",
                                     .tiles = {{.name = "out",
                                                .direction = PTOWSP_OUT,
                                                .dtype = PTOWSP_F32,
                                                .rows = SHARE,
                                                .cols = COLS},
                                               {.name = "x",
                                                .direction = PTOWSP_IN,
                                                .dtype = PTOWSP_F32,
                                                .rows = SHARE,
                                                .cols = COLS},
                                               {.name = "y",
                                                .direction = PTOWSP_IN,
                                                .dtype = PTOWSP_F32,
                                                .rows = SHARE,
                                                .cols = COLS}},
                                     .cycles = cycles,
                                     .pto = &add_source,
                                 });
}

// Each task gets its part of the matrices, and is block 0 of 1 of them. cycles 0: the shim counts.
static void workload_create(workload *w, ptowsp_cycles gemm_cycles, ptowsp_cycles add_cycles) {
    setup_create_serial(&w->s);
    ptowsp_module *m = w->s.module;
    w->c = setup_matrix_make(&w->s, "c", PTOWSP_F32, M, N);
    w->a = setup_matrix_make(&w->s, "a", PTOWSP_F16, M, K);
    w->b = setup_matrix_make(&w->s, "b", PTOWSP_F16, K, N);
    w->sum = setup_matrix_make(&w->s, "sum", PTOWSP_F32, ROWS, COLS);
    w->x = setup_matrix_make(&w->s, "x", PTOWSP_F32, ROWS, COLS);
    w->y = setup_matrix_make(&w->s, "y", PTOWSP_F32, ROWS, COLS);
    const ptowsp_kernel gemm = gemm_make(m, gemm_cycles), add = add_make(m, add_cycles);
    PTOWSP_WORKLOAD(m, "demos") {
        const ptowsp_expr zero = ptowsp_i64(m, 0);
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "rows", M / TILE)) {
            PTOWSP_PARALLEL(m, j, ptowsp_axis_dense(m, "columns", N / TILE)) {
                ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE));
                ptowsp_expr col = ptowsp_mul(j, ptowsp_i64(m, TILE));
                ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = gemm,
                                                        .views = {setup_view(w->c, row, col),
                                                                  setup_view(w->a, row, zero),
                                                                  setup_view(w->b, zero, col)}});
            }
        }
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "shares", ROWS / SHARE)) {
            ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, SHARE));
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = add,
                                                    .views = {setup_view(w->sum, row, zero),
                                                              setup_view(w->x, row, zero),
                                                              setup_view(w->y, row, zero)}});
        }
    }
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN, .lane_count = LANES};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    command_check(w->s.context, ptowsp_program_create(w->s.context, m, &desc, &w->program));
}

static void workload_destroy(workload *w) {
    ptowsp_program_destroy(w->program);
    setup_destroy(&w->s);
}

// -- predicted ------------------------------------------------------------------------------------

// Prints the table of one block, whose tiles lie in the workload's matrices; returns its cycles on 910B.
static ptowsp_cycles predict(const emit *e, const char *kernel, const uint64_t sizes[6],
                             setup_matrix *const matrices[3]) {
    ptowsp_tile tiles[3];
    ptowsp_kernel_stats stats;
    const ptowsp_cost cost = {.model = PTOWSP_MODEL_910B};
    for (int i = 0; i < 3; i++) {
        tiles[i] = (ptowsp_tile){.data = matrices[i]->data,
                                 .row_stride = matrices[i]->row_stride,
                                 .col_stride = matrices[i]->col_stride};
    }
    const ptowsp_task task = {
        .args = sizes, .arg_count = 6, .axis_arg_count = 6, .tile_count = 3, .tiles = tiles};
    printf("\na block of %s\n", kernel);
    measure_table(e->context, e->npu, kernel, &task, PTOWSP_FAMILY_A2A3);
    command_check(e->context, ptowsp_npu_measure(e->npu, kernel, &task, &cost, &stats));
    return stats.cycles;
}

// -- run ------------------------------------------------------------------------------------------

static bool is_right(const workload *w) {
    double *product = (double *)command_allocate((uint64_t)M * N, sizeof *product);
    double *sum = (double *)command_allocate((uint64_t)ROWS * COLS, sizeof *sum);
    double *b = (double *)command_allocate((uint64_t)K * N, sizeof *b);
    for (int64_t i = 0; i < (int64_t)K * N; i++) {
        b[i] = setup_get(w->b, i / N, i % N);
    }
    for (int64_t i = 0; i < M; i++) {
        for (int64_t k = 0; k < K; k++) {
            double a = setup_get(w->a, i, k);
            for (int64_t j = 0; j < N; j++) {
                product[i * N + j] += a * b[k * N + j];
            }
        }
    }
    for (int64_t i = 0; i < (int64_t)ROWS * COLS; i++) {
        sum[i] = setup_get(w->x, i / COLS, i % COLS) + setup_get(w->y, i / COLS, i % COLS);
    }
    bool is_good = setup_report(w->c, setup_error(w->c, product), ALLOWED);
    is_good &= setup_report(w->sum, setup_error(w->sum, sum), ALLOWED);
    free(product);
    free(b);
    free(sum);
    return is_good;
}

static ptowsp_cycles execute(emit *e, const workload *w, const char *title, ptowsp_model model) {
    ptowsp_run *run;
    ptowsp_npu_result result;
    const ptowsp_npu_options options = {.cost = {.model = model}};
    command_check(e->context, ptowsp_run_create(e->context, w->program, &run));
    setup_bind(&w->s, run);
    setup_fill(w->c, NAN);
    setup_fill(w->sum, NAN);
    command_check(e->context, ptowsp_npu_execute(e->npu, run, &options, NULL, 0, &result));
    printf("%-24s %8llu %10llu\n", title, (unsigned long long)result.task_count,
           (unsigned long long)result.makespan_cycles);
    ptowsp_run_destroy(run);
    return result.makespan_cycles;
}

// The library's own time of a workload whose kernels take these cycles.
static ptowsp_cycles simulate(ptowsp_cycles gemm_cycles, ptowsp_cycles add_cycles) {
    workload w;
    ptowsp_run *run;
    workload_create(&w, gemm_cycles, add_cycles);
    command_check(w.s.context, ptowsp_run_create(w.s.context, w.program, &run));
    setup_bind(&w.s, run);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    command_check(w.s.context, ptowsp_run_execute(run, &options));
    const ptowsp_cycles makespan = ptowsp_run_result(run)->makespan_cycles;
    ptowsp_run_destroy(run);
    workload_destroy(&w);
    return makespan;
}

int main(int argc, char **argv) {
    emit e = {.name = "demo_kernels", .is_good = true};
    const command_text texts[] = {{"--directory", &e.directory},
                                  {"--cache", &e.cache},
                                  {"--compiler", &e.compiler},
                                  {"--options", &e.options}};
    command_parse_texts(argc, argv, help_text, NULL, 0, texts, sizeof texts / sizeof *texts);

    workload w;
    workload_create(&w, 0, 0);
    setup_fill_random(&w.s, w.a, -1.0, 1.0);
    setup_fill_random(&w.s, w.b, -1.0, 1.0);
    setup_fill_random(&w.s, w.x, -1.0, 1.0);
    setup_fill_random(&w.s, w.y, -1.0, 1.0);
    printf("gemm of %d x %d x %d in blocks of %d x %d, and add of %d x %d in shares of %d rows\n",
           M, K, N, TILE, TILE, ROWS, COLS, SHARE);
    emit_build(&e, w.s.context, w.program);
    execute(&e, &w, "unit model", PTOWSP_MODEL_UNIT);
    execute(&e, &w, "a2a3", PTOWSP_MODEL_A2A3);
    const ptowsp_cycles run = execute(&e, &w, "910b", PTOWSP_MODEL_910B);
    e.is_good &= is_right(&w);

    const uint64_t gemm_sizes[] = {TILE, TILE, TILE, K, K, TILE};
    const uint64_t add_sizes[] = {SHARE, COLS, SHARE, COLS, SHARE, COLS};
    const ptowsp_cycles gemm =
        predict(&e, "gemm", gemm_sizes, (setup_matrix *const[]){w.c, w.a, w.b});
    const ptowsp_cycles add =
        predict(&e, "add", add_sizes, (setup_matrix *const[]){w.sum, w.x, w.y});
    const ptowsp_cycles predicted = simulate(gemm, add);
    e.is_good &= predicted == run;
    printf("\n  910b      %llu cycles predicted, %llu run\n", (unsigned long long)predicted,
           (unsigned long long)run);
    printf("  check     results and cycles: %s\n", e.is_good ? "good" : "WRONG");
    ptowsp_npu_destroy(e.npu);
    workload_destroy(&w);
    command_flush();
    return e.is_good ? 0 : 1;
}
