// A kernel that somebody has as a PTO-ISA source (own/swiglu.cpp): unchanged, it becomes the kernel
// of a workload. The tree of that is built for this machine and run; results are compared with
// double precision, cycles are those of the shim's clock. What it took is then given to the library
// as the kernel's cycles, which so times the workload without data and without a compiler. Last,
// what is said of sources that are wrong. `own_kernel --help` lists the options.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A band of rows is a task. 50 rows are six pieces of the kernel and two rows more.
enum { BAND = 50, BANDS = 8, ROWS = BAND * BANDS, COLS = 700, LANES = 4, THREADS_MAX = 4 };

#define ALLOWED 1e-6

static const char help_text[] =
    "Takes a PTO-ISA source through a workload, a source tree, and the shim.\n"
    "  --source FILE     the source (examples/own/swiglu.cpp)\n"
    "  --directory DIR   where the tree goes, in place of an older one (build/emit/own_kernel)\n"
    "  --cache DIR       where it is built ($XDG_CACHE_HOME/ptowsp or ~/.cache/ptowsp)\n"
    "  --compiler NAME   a C++ compiler ($CXX or c++)\n"
    "  --options TEXT    its options (-O1)\n";

// -- the workload ---------------------------------------------------------------------------------

typedef struct workload {
    setup s;
    setup_matrix *gate, *up, *y;
    ptowsp_program *program;
} workload;

// One task for each band. cycles 0: nobody has said what the kernel takes.
static void workload_create(workload *w, const ptowsp_pto_source *source, ptowsp_cycles cycles) {
    setup_create_serial(&w->s);
    ptowsp_module *m = w->s.module;
    w->y = setup_matrix_make(&w->s, "y", PTOWSP_F32, ROWS, COLS);
    w->gate = setup_matrix_make(&w->s, "gate", PTOWSP_F32, ROWS, COLS);
    w->up = setup_matrix_make(&w->s, "up", PTOWSP_F32, ROWS, COLS);
    ptowsp_kernel swiglu = ptowsp_kernel_make(m, &(ptowsp_kernel_desc){
                                                     .name = "swiglu",
                                                     .tiles = {{.name = "y",
                                                                .direction = PTOWSP_OUT,
                                                                .dtype = PTOWSP_F32,
                                                                .rows = BAND,
                                                                .cols = COLS},
                                                               {.name = "gate",
                                                                .direction = PTOWSP_IN,
                                                                .dtype = PTOWSP_F32,
                                                                .rows = BAND,
                                                                .cols = COLS},
                                                               {.name = "up",
                                                                .direction = PTOWSP_IN,
                                                                .dtype = PTOWSP_F32,
                                                                .rows = BAND,
                                                                .cols = COLS}},
                                                     .cycles = cycles,
                                                     .pto = source,
                                                 });
    PTOWSP_WORKLOAD(m, "swiglu") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "bands", BANDS)) {
            ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, BAND)), zero = ptowsp_i64(m, 0);
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = swiglu,
                                                    .views = {setup_view(w->y, row, zero),
                                                              setup_view(w->gate, row, zero),
                                                              setup_view(w->up, row, zero)}});
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

// -- running the tree -----------------------------------------------------------------------------

static double *reference(const workload *w) {
    double *wanted = (double *)command_allocate((uint64_t)ROWS * COLS, sizeof *wanted);
    for (int64_t i = 0; i < (int64_t)ROWS * COLS; i++) {
        double gate = setup_get(w->gate, i / COLS, i % COLS);
        wanted[i] = gate / (1.0 + exp(-gate)) * setup_get(w->up, i / COLS, i % COLS);
    }
    return wanted;
}

// Runs the tree with 1 to 4 scheduler threads, and returns the makespan.
static ptowsp_cycles execute(emit *e, const workload *w, const ptowsp_run *run,
                             const double *wanted, const char *title, ptowsp_model model) {
    ptowsp_npu_result result, first = {0};
    double worst = 0.0;
    bool is_same = true;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        const ptowsp_npu_options options = {.aicpu_count = threads, .cost = {.model = model}};
        setup_fill(w->y, NAN);
        command_check(e->context, ptowsp_npu_execute(e->npu, run, &options, NULL, 0, &result));
        first = threads == 1 ? result : first;
        is_same &= result.makespan_cycles == first.makespan_cycles;
        double error = setup_error(w->y, wanted);
        worst = error <= worst ? worst : error;
    }
    bool is_right = worst <= ALLOWED;
    printf("%-24s %8llu %10llu  %s, error %.1e%s\n", title, (unsigned long long)first.task_count,
           (unsigned long long)first.makespan_cycles, is_same ? "same cycles" : "OTHER CYCLES",
           worst, is_right ? "" : ", WRONG");
    e->is_good &= is_same && is_right;
    return first.makespan_cycles;
}

// The same in one call, for programs that run a tree once: it is in the cache already.
static void execute_once(emit *e, const ptowsp_run *run, ptowsp_cycles makespan) {
    const ptowsp_npu_build_desc build = {
        .cache_directory = e->cache, .compiler = e->compiler, .options = e->options};
    const ptowsp_npu_options options = {.cost = {.model = PTOWSP_MODEL_UNIT}};
    ptowsp_npu_result result;
    command_check(e->context, ptowsp_npu_build_run(e->context, run, &build, &options, &result));
    e->is_good &= result.makespan_cycles == makespan;
}

// The library's own time, where a task takes as many cycles as the shim has counted. All tasks are
// alike: on LANES lanes, each takes its part of the makespan.
static void simulate(emit *e, const ptowsp_pto_source *source, ptowsp_cycles makespan) {
    workload w;
    ptowsp_run *run;
    workload_create(&w, source, makespan * LANES / BANDS);
    command_check(w.s.context, ptowsp_run_create(w.s.context, w.program, &run));
    setup_bind(&w.s, run);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    command_check(w.s.context, ptowsp_run_execute(run, &options));
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    bool is_same = stats->makespan_cycles == makespan;
    printf("%-24s %8llu %10llu  %s\n", "a2a3, given as cycles",
           (unsigned long long)stats->task_count, (unsigned long long)stats->makespan_cycles,
           is_same ? "by the library alone: the same" : "by the library alone: OTHER CYCLES");
    e->is_good &= is_same;
    ptowsp_run_destroy(run);
    workload_destroy(&w);
}

// -- what is wrong --------------------------------------------------------------------------------

// Builds a workload of a source that is wrong, and prints what is said of it.
static void refuse(emit *e, const char *title, const ptowsp_pto_source *source,
                   ptowsp_status status) {
    workload w;
    ptowsp_npu *npu = NULL;
    workload_create(&w, source, 0);
    const ptowsp_npu_build_desc desc = {
        .cache_directory = e->cache, .compiler = e->compiler, .options = e->options};
    bool is_refused = ptowsp_npu_build(w.s.context, w.program, &desc, &npu) == status;
    printf("  %-10s %s\n", title, is_refused ? ptowsp_context_error(w.s.context).text : "WRONG");
    e->is_good &= is_refused;
    ptowsp_npu_destroy(npu);
    workload_destroy(&w);
}

// The text of a file, without its first semicolon after a word. Free it.
static char *spoiled_text(const char *path, const char *word) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        command_fail("cannot read %s", path);
    }
    size_t capacity = (size_t)1 << 20;
    char *text = (char *)command_allocate(capacity, 1);
    size_t size = fread(text, 1, capacity - 1, file);
    fclose(file);
    text[size] = '\0';
    char *at = strstr(text, word);
    at = at ? strchr(at, ';') : NULL;
    if (at) {
        *at = ' ';
    }
    return text;
}

static void refuse_all(emit *e, const ptowsp_pto_source *source) {
    ptowsp_pto_source wrong = *source;
    printf("\n");
    wrong.entry = "swiglu_f16";
    refuse(e, "no entry", &wrong, PTOWSP_UNSUPPORTED);
    wrong = *source;
    char *text = spoiled_text(source->file, "TEXP");
    wrong.text = text;
    wrong.file = NULL;
    refuse(e, "no ;", &wrong, PTOWSP_SYSTEM_FAILED);
    free(text);
}

int main(int argc, char **argv) {
    emit e = {.name = "own_kernel", .is_good = true};
    ptowsp_pto_source source = {.file = "examples/own/swiglu.cpp",
                                .args = {{.value = PTOWSP_PTO_DATA},
                                         {.value = PTOWSP_PTO_DATA, .index = 1},
                                         {.value = PTOWSP_PTO_DATA, .index = 2},
                                         {.value = PTOWSP_PTO_ROWS},
                                         {.value = PTOWSP_PTO_COLS},
                                         {.value = PTOWSP_PTO_ROW_STRIDE}}};
    const command_text texts[] = {{"--source", &source.file},
                                  {"--directory", &e.directory},
                                  {"--cache", &e.cache},
                                  {"--compiler", &e.compiler},
                                  {"--options", &e.options}};
    command_parse_texts(argc, argv, help_text, NULL, 0, texts, sizeof texts / sizeof *texts);

    workload w;
    ptowsp_run *run;
    workload_create(&w, &source, 0);
    setup_fill_random(&w.s, w.gate, -8.0, 8.0);
    setup_fill_random(&w.s, w.up, -2.0, 2.0);
    double *wanted = reference(&w);
    printf("swiglu of %d rows of %d, in bands of %d on %d lanes: %s\n", ROWS, COLS, BAND, LANES,
           source.file);
    emit_build(&e, w.s.context, w.program);
    command_check(w.s.context, ptowsp_run_create(w.s.context, w.program, &run));
    setup_bind(&w.s, run);
    execute_once(&e, run, execute(&e, &w, run, wanted, "unit model", PTOWSP_MODEL_UNIT));
    simulate(&e, &source, execute(&e, &w, run, wanted, "a2a3", PTOWSP_MODEL_A2A3));
    refuse_all(&e, &source);
    printf("\n  check     results, cycles and refusals: %s\n", e.is_good ? "good" : "WRONG");
    ptowsp_npu_destroy(e.npu);
    free(wanted);
    ptowsp_run_destroy(run);
    workload_destroy(&w);
    return e.is_good ? 0 : 1;
}
