// Softmax in a pipeline of three processes, each with a time of its own:
//
//      load --[ loaded ]--> compute --[ made ]--> store
//
// Load copies tiles of x into places on chip, compute takes each to another place, store copies it
// out. Every eighth tile comes from far memory and takes load 16 times as long, longer than compute
// has for three: on average load is the faster one, but not at every moment.
//
// Places. A channel carries indices of tiles; their data lies in a ring of places. With depth d, d
// tiles wait in the channel, while the sender fills one more and the receiver reads one: load works
// on tile i only when its send of tile i - 1 is done, which is when tile i - 1 - d has been
// received; the tiles before that one, compute is done with. So d + 2 places are needed, and tile i
// has place i % (d + 2). Depth 0 is what is called double buffering, depth 1 triple buffering.
//
// Depth and latency of both channels are symbols, so that all of the table comes from one program.
// Every depth is executed as well, and its data compared with softmax in double.

#include "ptowsp.h"

#include "common/command.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TILES = 64,
    ROWS = 8,  // of a tile
    COLS = 32,
    FAR_EVERY = 8,
    FAR_CYCLES = 16,  // for an element, instead of 1
    DEPTH_MAX = 4,
    PLACES = DEPTH_MAX + 2
};

#define ALLOWED 1e-6

static const uint64_t depths[] = {0, 1, 2, DEPTH_MAX};
static const uint64_t latencies[] = {0, 50, 500, 5000};
enum { DEPTH_COUNT = 4, LATENCY_COUNT = 4 };

// -- kernels --------------------------------------------------------------------------------------

static ptowsp_cycles copy(const ptowsp_task *task, void *user) {
    const ptowsp_tile *from = &task->tiles[0], *to = &task->tiles[1];
    (void)user;
    for (int64_t row = 0; row < ROWS; row++) {
        memcpy((float *)to->data + row * to->row_stride,
               (const float *)from->data + row * from->row_stride, COLS * sizeof(float));
    }
    return 0;  // copy_cost says how long it takes
}

static ptowsp_cycles copy_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return ROWS * COLS * ptowsp_task_scalar(task, 0);
}

static ptowsp_kernel copy_make(ptowsp_module *m, const char *name) {
    ptowsp_kernel_desc desc = {.name = name,
                               .axis_count = 1,  // the tile
                               .tiles = {{"from", PTOWSP_IN, PTOWSP_F32, ROWS, COLS},
                                         {"to", PTOWSP_OUT, PTOWSP_F32, ROWS, COLS}},
                               .scalars = {{"element_cycles", PTOWSP_TYPE_U64}},
                               .fn = copy,
                               .cost = copy_cost};
    return ptowsp_kernel_make(m, &desc);
}

static ptowsp_kernel softmax_make(ptowsp_module *m) {
    ptowsp_body *k =
        ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "softmax", .axis_count = 1});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, ROWS, COLS);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, ROWS, COLS);
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(x, ptowsp_tile_rowmax(x)));
    ptowsp_tile_store(y, ptowsp_tile_div(e, ptowsp_tile_rowsum(e)));
    return ptowsp_kernel_end(k);
}

// -- workloads ------------------------------------------------------------------------------------

typedef struct example {
    setup s;
    setup_matrix *x, *loaded, *made, *y;  // loaded, made: the places
    ptowsp_kernel load, softmax, store;
    double *wanted;
} example;

// What happens to tile i, which has place `place` in both rings.
static ptowsp_task_desc load_task(const example *e, ptowsp_expr i, ptowsp_expr place) {
    ptowsp_module *m = e->s.module;
    ptowsp_expr zero = ptowsp_i64(m, 0), row = ptowsp_mul(i, ptowsp_i64(m, ROWS));
    ptowsp_expr turn = ptowsp_rem(i, ptowsp_i64(m, FAR_EVERY));
    ptowsp_expr is_far = ptowsp_eq(turn, ptowsp_i64(m, FAR_EVERY - 1));
    return (ptowsp_task_desc){
        .kernel = e->load,
        .axes = {i},
        .views = {setup_view(e->x, row, zero), setup_stack_view(e->loaded, place, zero, zero)},
        .scalars = {ptowsp_select(is_far, ptowsp_u64(m, FAR_CYCLES), ptowsp_u64(m, 1))}};
}

static ptowsp_task_desc softmax_task(const example *e, ptowsp_expr i, ptowsp_expr place) {
    ptowsp_expr zero = ptowsp_i64(e->s.module, 0);
    return (ptowsp_task_desc){.kernel = e->softmax,
                              .axes = {i},
                              .views = {setup_stack_view(e->loaded, place, zero, zero),
                                        setup_stack_view(e->made, place, zero, zero)}};
}

static ptowsp_task_desc store_task(const example *e, ptowsp_expr i, ptowsp_expr place) {
    ptowsp_module *m = e->s.module;
    ptowsp_expr zero = ptowsp_i64(m, 0), row = ptowsp_mul(i, ptowsp_i64(m, ROWS));
    return (ptowsp_task_desc){
        .kernel = e->store,
        .axes = {i},
        .views = {setup_stack_view(e->made, place, zero, zero), setup_view(e->y, row, zero)},
        .scalars = {ptowsp_u64(m, 1)}};
}

// The place of a tile.
static ptowsp_expr place_of(ptowsp_module *m, ptowsp_expr i) {
    ptowsp_expr depth = ptowsp_to_i64(ptowsp_symbol(m, "depth"));
    return ptowsp_rem(i, ptowsp_add(depth, ptowsp_i64(m, 2)));
}

static void pipeline_make(const example *e, ptowsp_axis tiles) {
    ptowsp_module *m = e->s.module;
    ptowsp_channel_desc desc = {.name = "loaded",
                                .depth_at_start = ptowsp_symbol(m, "depth"),
                                .latency_at_start = ptowsp_symbol(m, "latency")};
    ptowsp_task_desc task;
    PTOWSP_WORKLOAD(m, "pipeline") {
        PTOWSP_PIPELINE(m, "softmax") {
            ptowsp_channel loaded = ptowsp_channel_make(m, &desc);
            desc.name = "made";
            ptowsp_channel made = ptowsp_channel_make(m, &desc);
            PTOWSP_PROCESS(m, "load") {
                ptowsp_produces(m, loaded);
                PTOWSP_FOR_EACH(m, i, tiles) {
                    task = load_task(e, i, place_of(m, i));
                    ptowsp_send_task(m, loaded, &task);  // sends i
                }
            }
            PTOWSP_PROCESS(m, "compute") {
                ptowsp_consumes(m, loaded);
                ptowsp_produces(m, made);
                PTOWSP_CONSUME(m, t, loaded) {
                    task = softmax_task(e, t, place_of(m, t));
                    ptowsp_send_task(m, made, &task);
                }
            }
            PTOWSP_PROCESS(m, "store") {
                ptowsp_consumes(m, made);
                PTOWSP_CONSUME(m, t, made) {
                    task = store_task(e, t, place_of(m, t));
                    ptowsp_task_make(m, &task);
                }
            }
        }
    }
}

// The same without overlap: one place is enough.
static void sequence_make(const example *e, ptowsp_axis tiles) {
    ptowsp_module *m = e->s.module;
    ptowsp_task_desc task;
    PTOWSP_WORKLOAD(m, "sequence") {
        PTOWSP_FOR_EACH(m, i, tiles) {
            task = load_task(e, i, ptowsp_i64(m, 0));
            ptowsp_task_make(m, &task);
            task = softmax_task(e, i, ptowsp_i64(m, 0));
            ptowsp_task_make(m, &task);
            task = store_task(e, i, ptowsp_i64(m, 0));
            ptowsp_task_make(m, &task);
        }
    }
}

// -- runs -----------------------------------------------------------------------------------------

static ptowsp_run *run_create(const example *e, const char *workload,
                              ptowsp_program **out_program) {
    const setup *s = &e->s;
    ptowsp_program_desc desc = {.workload = workload};
    ptowsp_run *run;
    command_check(s->context, ptowsp_program_create(s->context, s->module, &desc, out_program));
    command_check(s->context, ptowsp_run_create(s->context, *out_program, &run));
    for (uint32_t i = 0; i < s->matrix_count; i++) {
        ptowsp_buffer buffer = {.data = s->matrices[i].data};
        command_check(s->context, ptowsp_run_bind_tensor(run, s->matrices[i].name, &buffer));
    }
    return run;
}

static ptowsp_cycles makespan(const example *e, ptowsp_run *run, ptowsp_run_mode mode) {
    ptowsp_run_options options = {.mode = mode, .lane_count = (uint32_t)e->s.thread_count};
    command_check(e->s.context, ptowsp_run_execute(run, &options));
    return ptowsp_run_result(run)->makespan_cycles;
}

static ptowsp_cycles pipeline_run(const example *e, ptowsp_run *run, uint64_t depth,
                                  uint64_t latency, ptowsp_run_mode mode) {
    command_check(e->s.context, ptowsp_run_bind_symbol(run, "depth", depth));
    command_check(e->s.context, ptowsp_run_bind_symbol(run, "latency", latency));
    return makespan(e, run, mode);
}

// The makespan without a pipeline.
static ptowsp_cycles sequence_run(const example *e) {
    ptowsp_program *program;
    ptowsp_run *run = run_create(e, "sequence", &program);
    ptowsp_cycles cycles = makespan(e, run, PTOWSP_RUN_TIME_ONLY);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    return cycles;
}

static void reference(const example *e) {
    for (int64_t r = 0; r < TILES * ROWS; r++) {
        double most = -INFINITY, sum = 0.0;
        for (int64_t c = 0; c < COLS; c++) {
            most = fmax(most, setup_get(e->x, r, c));
        }
        for (int64_t c = 0; c < COLS; c++) {
            sum += e->wanted[r * COLS + c] = exp(setup_get(e->x, r, c) - most);
        }
        for (int64_t c = 0; c < COLS; c++) {
            e->wanted[r * COLS + c] /= sum;
        }
    }
}

// Executes with every depth. Returns whether data is right, and time the same as without kernels.
static bool check_data(const example *e, ptowsp_run *run) {
    double largest = 0.0;
    bool is_same = true;
    for (int d = 0; d < DEPTH_COUNT; d++) {
        setup_fill(e->loaded, NAN);
        setup_fill(e->made, NAN);
        setup_fill(e->y, NAN);
        ptowsp_cycles cycles = pipeline_run(e, run, depths[d], 500, PTOWSP_RUN_EXECUTE);
        double error = setup_error(e->y, e->wanted);
        largest = error <= largest ? largest : error;  // keeps a NaN
        is_same &= cycles == pipeline_run(e, run, depths[d], 500, PTOWSP_RUN_TIME_ONLY);
    }
    printf("  time      without running kernels every depth takes %s\n",
           is_same ? "the same cycles: good" : "OTHER cycles: WRONG");
    return setup_report(e->y, largest, ALLOWED) && is_same;
}

// -- what is shown --------------------------------------------------------------------------------

// A deeper channel is never slower.
static bool print_table(const example *e, ptowsp_run *run) {
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
                pipeline_run(e, run, depths[d], latencies[l], PTOWSP_RUN_TIME_ONLY);
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
static void print_bottleneck(const example *e, ptowsp_run *run, uint64_t depth, uint64_t latency) {
    double total = (double)pipeline_run(e, run, depth, latency, PTOWSP_RUN_TIME_ONLY) / 100.0;
    uint32_t count;
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &count), *most = processes;
    printf("  depth %llu, latency %llu\n", (unsigned long long)depth, (unsigned long long)latency);
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_process_stats *p = &processes[i];
        printf("    %-8s  busy %5.1f %%   waiting full %5.1f %%   empty %5.1f %%\n", p->name,
               (double)p->busy_cycles / total, (double)p->full_cycles / total,
               (double)p->empty_cycles / total);
        most = p->busy_cycles > most->busy_cycles ? p : most;
    }
    bool is_busy = (double)most->busy_cycles / total > 90.0;
    printf("    bottleneck: %s\n", is_busy ? most->name : "no process, but latency and depth");
}

int main(int argc, char **argv) {
    example e;
    setup *s = &e.s;
    setup_create(s, argc, argv);
    ptowsp_module *m = s->module;
    e.x = setup_matrix_make(s, "x", PTOWSP_F32, TILES * ROWS, COLS);
    e.loaded = setup_stack_make(s, "loaded", PTOWSP_F32, PLACES, ROWS, COLS);
    e.made = setup_stack_make(s, "made", PTOWSP_F32, PLACES, ROWS, COLS);
    e.y = setup_matrix_make(s, "y", PTOWSP_F32, TILES * ROWS, COLS);
    e.wanted = (double *)command_allocate(TILES * ROWS * COLS, sizeof(double));
    e.load = copy_make(m, "load");
    e.softmax = softmax_make(m);
    e.store = copy_make(m, "store");
    ptowsp_axis tiles = ptowsp_axis_dense(m, "tiles", TILES);
    pipeline_make(&e, tiles);
    sequence_make(&e, tiles);
    setup_fill_random(s, e.x, -20.0, 20.0);
    reference(&e);

    ptowsp_program *program;
    ptowsp_run *run = run_create(&e, "pipeline", &program);
    printf("softmax of %d tiles of %d x %d through load, compute and store\n", TILES, ROWS, COLS);
    printf("  a tile    load %d cycles, every %dth one %d; store %d\n", ROWS * COLS, FAR_EVERY,
           ROWS * COLS * FAR_CYCLES, ROWS * COLS);
    setup_print_kernel(s, "compute", e.softmax);
    printf("  one place, one after another: %llu cycles\n", (unsigned long long)sequence_run(&e));
    bool is_good = check_data(&e, run);
    is_good &= print_table(&e, run);
    print_bottleneck(&e, run, 4, 500);
    print_bottleneck(&e, run, 0, 500);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    free(e.wanted);
    setup_destroy(s);
    return is_good ? 0 : 1;
}
