// Layers over ranks as stages of a pipeline: each rank has some of 8 layers, x = relu(x w), takes
// activations from the rank before and sends its own to the one behind, micro-batch by micro-batch:
//
//      for each micro-batch      send from rank - 1        (all but the first rank)
//                                its layers
//                                send to rank + 1          (all but the last)
//
// A message waits for nobody: its sender goes on with the next micro-batch. So with b micro-batches
// and p stages of time t the makespan is about (b + p - 1) t, which the time of all ranks together
// says exactly for the rates measured here. Results are compared with one rank in double precision;
// the bits do not depend on the number of ranks.

#include "ptowsp.h"

#include "common/command.h"
#include "common/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 128, ROWS = 32, LAYERS = 8 };

static const char help[] =
    "usage: pipeline_parallel [options]\n"
    "\n"
    "  --ranks N    processes: 1, 2, 4 or 8, default 1, 2 and 4\n"
    "  --batches N  micro-batches, default 8\n"
    "  --draw FILE  a picture of all ranks by the clock: SVG, or for a name that\n"
    "               ends in .pftrace or .json of Perfetto or Chrome\n"
    "  --simulated FILE  the same of the simulation of all ranks together\n";

typedef struct options {
    uint64_t ranks, batches;
    const char *draw, *simulated;
} options;

static uint64_t ns_per_layer = 1;  // measured

static const char *const kernel_names[] = {"layer", "send"};

static ptowsp_cycles layer_fn(const ptowsp_task *t, void *user) {
    (void)user;
    for (int64_t r = 0; r < ROWS; r++) {
        const float *x = (const float *)t->tiles[0].data + r * DIM;
        float *y = (float *)t->tiles[2].data + r * DIM;
        memset(y, 0, DIM * sizeof *y);
        for (int64_t k = 0; k < DIM; k++) {
            const float *w = (const float *)t->tiles[1].data + k * DIM;
            for (int64_t c = 0; c < DIM; c++) {
                y[c] += x[k] * w[c];
            }
        }
        for (int64_t c = 0; c < DIM; c++) {
            y[c] = y[c] > 0 ? y[c] : 0;
        }
    }
    return 0;
}

static ptowsp_cycles layer_cost(const ptowsp_task *t, void *user) {
    (void)t;
    (void)user;
    return ns_per_layer;
}

// -- data -----------------------------------------------------------------------------------------

static float element(uint64_t id, uint64_t at) {
    uint64_t x = (id * 1000003 + at) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    return (float)(((double)(x % 2001) - 1000) / 1000 * (id < LAYERS ? 0.2 : 1));
}

// The largest difference to one rank in double precision, relative to the largest result.
static double error_of(const float *y, uint64_t batches) {
    const uint64_t size = batches * ROWS * DIM;
    double *x = command_allocate(size, sizeof *x), *next = command_allocate(size, sizeof *next);
    double worst = 0, largest = 0;
    for (uint64_t e = 0; e < size; e++) {
        x[e] = (double)element(LAYERS, e);
    }
    for (uint64_t l = 0; l < LAYERS; l++) {
        memset(next, 0, size * sizeof *next);
        for (uint64_t r = 0; r < batches * ROWS; r++) {
            for (uint64_t k = 0; k < DIM; k++) {
                for (uint64_t c = 0; c < DIM; c++) {
                    next[r * DIM + c] += x[r * DIM + k] * (double)element(l, k * DIM + c);
                }
            }
        }
        for (uint64_t e = 0; e < size; e++) {
            x[e] = fmax(next[e], 0);
        }
    }
    for (uint64_t e = 0; e < size; e++) {
        worst = fmax(worst, fabs((double)y[e] - x[e]));
        largest = fmax(largest, fabs(x[e]));
    }
    free(x);
    free(next);
    return worst / largest;
}

// -- the workload ---------------------------------------------------------------------------------

// Activations behind layer i of this stage are in slab i of "x", by micro-batch; 0 comes in.
typedef struct stage {
    world *w;
    ptowsp_module *m;
    ptowsp_kernel layer, send;
    ptowsp_tensor x, weights;
    int64_t layers;
} stage;

static void make_send(const stage *s, ptowsp_expr batch, int64_t slab, int64_t root) {
    const ptowsp_task_desc desc = {
        .kernel = s->send,
        .views = {{.tensor = s->x, .index = {ptowsp_i64(s->m, slab), batch}}},
        .scalars = {ptowsp_i64(s->m, root), ptowsp_i64(s->m, root + 1)}};
    ptowsp_task_make(s->m, &desc);
}

static void build(stage *s, uint64_t batches) {
    ptowsp_module *m = s->m;
    const ptowsp_kernel_desc layer = {
        .name = kernel_names[0],
        .tiles =
            {{.name = "x", .direction = PTOWSP_IN, .dtype = PTOWSP_F32, .rows = ROWS, .cols = DIM},
             {.name = "w", .direction = PTOWSP_IN, .dtype = PTOWSP_F32, .rows = DIM, .cols = DIM},
             {.name = "y",
              .direction = PTOWSP_OUT,
              .dtype = PTOWSP_F32,
              .rows = ROWS,
              .cols = DIM}},
        .fn = layer_fn,
        .cost = layer_cost};
    const ptowsp_collective_desc send = {
        .name = kernel_names[1], .kind = PTOWSP_SEND, .dtype = PTOWSP_F32};
    s->layer = ptowsp_kernel_make(m, &layer);
    s->send = ptowsp_kernel_collective(m, &send);
    const ptowsp_tensor_desc x = {.name = "x",
                                  .dtype = PTOWSP_F32,
                                  .rank = 4,
                                  .shape = {s->layers + 1, (int64_t)batches, ROWS, DIM}};
    const ptowsp_tensor_desc w = {
        .name = "w", .dtype = PTOWSP_F32, .rank = 3, .shape = {s->layers, DIM, DIM}};
    s->x = ptowsp_tensor_make(m, &x);
    s->weights = ptowsp_tensor_make(m, &w);
    const ptowsp_axis axis = ptowsp_axis_dense(m, "batches", (int64_t)batches);
    PTOWSP_WORKLOAD(m, "stage") {
        PTOWSP_PARALLEL(m, b, axis) {
            PTOWSP_SEQUENCE(m) {
                if (s->w->rank > 0) {
                    make_send(s, b, 0, s->w->rank - 1);
                }
                for (int64_t l = 0; l < s->layers; l++) {
                    const ptowsp_expr at = ptowsp_i64(m, l), behind = ptowsp_i64(m, l + 1);
                    const ptowsp_task_desc desc = {
                        .kernel = s->layer,
                        .views = {{.tensor = s->x, .index = {at, b}},
                                  {.tensor = s->weights, .index = {at}},
                                  {.tensor = s->x, .index = {behind, b}}}};
                    ptowsp_task_make(m, &desc);
                }
                if (s->w->rank + 1 < s->w->rank_count) {
                    make_send(s, b, s->layers, s->w->rank);
                }
            }
        }
    }
}

// -- a rank ---------------------------------------------------------------------------------------

static void measure_layer(world *w, float *x, float *weights) {
    const ptowsp_tile tiles[] = {{.data = x, .row_stride = DIM, .col_stride = 1},
                                 {.data = weights, .row_stride = DIM, .col_stride = 1},
                                 {.data = x + ROWS * DIM, .row_stride = DIM, .col_stride = 1}};
    const ptowsp_task t = {.tile_count = 3, .tiles = tiles};
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 50; i++) {
        const uint64_t begin = ptowsp_clock_ns();
        layer_fn(&t, NULL);
        const uint64_t took = ptowsp_clock_ns() - begin;
        best = took < best ? took : best;
    }
    uint64_t *all = command_allocate(w->rank_count, sizeof *all);
    world_gather(w, &best, all, sizeof best);
    ns_per_layer = all[0];
    free(all);
}

static int pipeline_parallel(world *w, void *user) {
    const options *o = (const options *)user;
    stage s = {.w = w, .layers = LAYERS / (int64_t)w->rank_count};
    const uint64_t layers = (uint64_t)s.layers, slab = o->batches * ROWS * DIM;
    float *x = command_allocate((layers + 1) * slab, sizeof *x);
    float *weights = command_allocate(layers * DIM * DIM, sizeof *weights);
    for (uint64_t e = 0; e < layers * DIM * DIM; e++) {
        weights[e] = element(w->rank * layers + e / (DIM * DIM), e % (DIM * DIM));
    }
    measure_layer(w, x, weights);  // which writes over x
    for (uint64_t e = 0; w->rank == 0 && e < slab; e++) {
        x[e] = element(LAYERS, e);
    }
    command_check(w->context, ptowsp_module_create(w->context, NULL, &s.m));
    build(&s, o->batches);
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    command_check(w->context, ptowsp_program_create(w->context, s.m, NULL, &program));
    command_check(w->context, ptowsp_run_create(w->context, program, &run));
    const ptowsp_buffer x_buffer = {.data = x}, w_buffer = {.data = weights};
    command_check(w->context, ptowsp_run_bind_tensor(run, "x", &x_buffer));
    command_check(w->context, ptowsp_run_bind_tensor(run, "w", &w_buffer));
    const world_picture picture = {o->draw, o->simulated, "pipeline_parallel", kernel_names, 2};
    const world_times times = world_execute(w, run, 0, &picture);
    bool is_good = true;
    if (w->rank + 1 == w->rank_count) {
        const float *y = x + layers * slab;
        const double error = error_of(y, o->batches);
        is_good = error < 1e-4;
        printf("%u stage%s  simulated %8.1f us  measured %8.1f us  %5.2f layers of time  bits "
               "%016llx  error %.1e: %s\n",
               w->rank_count, w->rank_count == 1 ? " " : "s", (double)times.simulated_ns / 1000,
               (double)times.measured_ns / 1000, (double)times.simulated_ns / (double)ns_per_layer,
               (unsigned long long)ptowsp_hash(PTOWSP_HASH_START, y, slab * sizeof *y), error,
               is_good ? "good" : "WRONG");
    }
    free(x);
    free(weights);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(s.m);
    return is_good ? 0 : 1;
}

int main(int argc, char **argv) {
    options o = {0, 8, NULL, NULL};
    const command_option numbers[] = {{"--ranks", &o.ranks, NULL, 1, LAYERS},
                                      {"--batches", &o.batches, NULL, 1, 64}};
    const command_text texts[] = {{"--draw", &o.draw}, {"--simulated", &o.simulated}};
    command_parse_texts(argc, argv, help, numbers, 2, texts, 2);
    o.ranks = world_size() ? world_size() : o.ranks;
    if (o.ranks && LAYERS % o.ranks) {
        command_fail("%u ranks do not divide %d layers", (unsigned)o.ranks, LAYERS);
    }
    int code = 0;
    for (uint32_t p = 1; p <= LAYERS; p *= 2) {
        if (o.ranks == p || (o.ranks == 0 && p <= 4)) {
            code |= world_run(p, 1, pipeline_parallel, &o);
        }
    }
    command_flush();
    return code;
}
