// Softmax in a pipeline of three processes, each with a time of its own:
//
//      load --[ loaded ]--> compute --[ made ]--> store
//
// Load copies tiles of x into places on chip, compute takes each to another place, store copies it
// out. Every eighth tile comes from far memory and takes load 16 times as long, longer than compute
// has for three: on average load is the faster one, but not at every moment.
//
// A channel carries indices of tiles; their data lies in rings of places (common/stages.h). Depth
// and latency of both channels are symbols, so that all of the table comes from one program.
// Every depth is executed as well, and its data compared with softmax in double.

#include "ptowsp.h"

#include "common/command.h"
#include "common/stages.h"

#include <stdio.h>

enum { TILES = 64, COUNT = STAGES_ROWS * STAGES_COLS };

static const uint64_t depths[] = {0, 1, 2, STAGES_DEPTH_MAX};
static const uint64_t latencies[] = {0, 50, 500, 5000};
enum { DEPTH_COUNT = 4, LATENCY_COUNT = 4 };

// -- runs -----------------------------------------------------------------------------------------

static ptowsp_run *run_create(const stages *p, const char *workload, ptowsp_program **out_program) {
    const setup *s = p->s;
    ptowsp_program_desc desc = {.workload = workload};
    ptowsp_run *run;
    command_check(s->context, ptowsp_program_create(s->context, s->module, &desc, out_program));
    command_check(s->context, ptowsp_run_create(s->context, *out_program, &run));
    setup_bind(s, run);
    return run;
}

static ptowsp_cycles makespan(const stages *p, ptowsp_run *run, ptowsp_run_mode mode) {
    ptowsp_run_options options = {.mode = mode, .lane_count = (uint32_t)p->s->thread_count};
    command_check(p->s->context, ptowsp_run_execute(run, &options));
    return ptowsp_run_result(run)->makespan_cycles;
}

static ptowsp_cycles pipeline_run(const stages *p, ptowsp_run *run, uint64_t depth,
                                  uint64_t latency, ptowsp_run_mode mode) {
    command_check(p->s->context, ptowsp_run_bind_symbol(run, "depth", depth));
    command_check(p->s->context, ptowsp_run_bind_symbol(run, "latency", latency));
    return makespan(p, run, mode);
}

// The makespan without a pipeline.
static ptowsp_cycles sequence_run(const stages *p) {
    ptowsp_program *program;
    ptowsp_run *run = run_create(p, "sequence", &program);
    ptowsp_cycles cycles = makespan(p, run, PTOWSP_RUN_TIME_ONLY);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    return cycles;
}

// Executes with every depth. Returns whether data is right, and time the same as without kernels.
static bool check_data(const stages *p, ptowsp_run *run) {
    double largest = 0.0;
    bool is_same = true;
    for (int d = 0; d < DEPTH_COUNT; d++) {
        p->s->prepare(p->s->user);
        ptowsp_cycles cycles = pipeline_run(p, run, depths[d], 500, PTOWSP_RUN_EXECUTE);
        double error = setup_error(p->y, p->wanted);
        largest = error <= largest ? largest : error;  // keeps a NaN
        is_same &= cycles == pipeline_run(p, run, depths[d], 500, PTOWSP_RUN_TIME_ONLY);
    }
    printf("  time      without running kernels every depth takes %s\n",
           is_same ? "the same cycles: good" : "OTHER cycles: WRONG");
    return setup_report(p->y, largest, STAGES_ALLOWED) && is_same;
}

// -- what is shown --------------------------------------------------------------------------------

// A deeper channel is never slower.
static bool print_table(const stages *p, ptowsp_run *run) {
    bool is_good = true;
    printf("\n  makespan     ");
    for (int d = 0; d < DEPTH_COUNT; d++) {
        printf("    depth %llu", (unsigned long long)depths[d]);
    }
    for (int l = 0; l < LATENCY_COUNT; l++) {
        ptowsp_cycles last = PTOWSP_CYCLES_MAX;
        printf("\n  latency %5llu", (unsigned long long)latencies[l]);
        for (int d = 0; d < DEPTH_COUNT; d++) {
            ptowsp_cycles cycles =
                pipeline_run(p, run, depths[d], latencies[l], PTOWSP_RUN_TIME_ONLY);
            printf(" %10llu", (unsigned long long)cycles);
            is_good &= cycles <= last;
            last = cycles;
        }
    }
    printf("\n\nDepth 0 pays already: load and store go on beside compute. Depth pays where loads\n"
           "are uneven, as tiles in the channel cover for a slow one, and it hides latency: at\n"
           "depth 0 every tile waits for it, at depth d none does if compute takes as long for d\n"
           "tiles.\n\n");
    return is_good;
}

// Names the bottleneck: the process that works most. If even that one mostly waits, it is what it
// waits for.
static void print_bottleneck(const stages *p, ptowsp_run *run, uint64_t depth, uint64_t latency) {
    double total = (double)pipeline_run(p, run, depth, latency, PTOWSP_RUN_TIME_ONLY) / 100.0;
    uint32_t count;
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &count), *most = processes;
    printf("  depth %llu, latency %llu\n", (unsigned long long)depth, (unsigned long long)latency);
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_process_stats *one = &processes[i];
        printf("    %-8s  busy %5.1f %%   waiting full %5.1f %%   empty %5.1f %%\n", one->name,
               (double)one->busy_cycles / total, (double)one->full_cycles / total,
               (double)one->empty_cycles / total);
        most = one->busy_cycles > most->busy_cycles ? one : most;
    }
    bool is_busy = (double)most->busy_cycles / total > 90.0;
    printf("    bottleneck: %s\n", is_busy ? most->name : "no process, but latency and depth");
}

int main(int argc, char **argv) {
    setup s;
    stages p;
    setup_create(&s, argc, argv);
    stages_make(&p, &s);
    stages_fill(&p, TILES);

    ptowsp_program *program;
    ptowsp_run *run = run_create(&p, "pipeline", &program);
    printf("softmax of %d tiles of %d x %d through load, compute and store\n", TILES, STAGES_ROWS,
           STAGES_COLS);
    printf("  a tile    load %d cycles, every %dth one %d; store %d\n", COUNT, STAGES_FAR_EVERY,
           COUNT * STAGES_FAR_CYCLES, COUNT);
    setup_print_kernel(&s, "compute", p.softmax);
    printf("  one place, one after another: %llu cycles\n", (unsigned long long)sequence_run(&p));
    bool is_good = check_data(&p, run);
    is_good &= print_table(&p, run);
    print_bottleneck(&p, run, 4, 500);
    print_bottleneck(&p, run, 0, 500);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    stages_destroy(&p);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}
