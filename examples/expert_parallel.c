// A layer of experts over ranks: each rank has some of the tokens and some of the experts.
//
//      route      tokens to experts (a seeded router), experts to ranks (ptowsp_moe_rebalance: busy ones
//                 have replicas), pairs to replicas, in the order of replicas, so of ranks
//      dispatch   rows to the ranks of their replicas: a ragged all-to-all
//      expert     relu(x w) on the rows of each replica, by source
//      combine    the results back: the same with the counts transposed
//      sum        out = sum over a token's experts of gate * result
//
// Tokens come in two batches, so that the rows of one are on their way while experts work on the
// other. Each result is one product and one sum in a fixed order, so the bits do not depend on the
// number of ranks. They are compared with double precision.

#include "ptowsp.h"

#include "common/command.h"
#include "common/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 64, EXPERTS = 16, REPLICAS = 20, TOP_K = 2, BATCHES = 2, RANK_MAX = 4 };

static const char help[] =
    "usage: expert_parallel [options]\n"
    "\n"
    "  --ranks N    processes: 1, 2 or 4, default each of them\n"
    "  --tokens N   of all ranks and each of 2 batches, a multiple of 4, "
    "default 512\n"
    "  --draw FILE  a picture of all ranks by the clock: SVG, or for a name that\n"
    "               ends in .pftrace or .json of Perfetto or Chrome\n"
    "  --simulated FILE  the same of the simulation of all ranks together\n";

typedef struct options {
    uint64_t ranks, tokens;
    const char *draw, *simulated;
} options;

static double ns_per_row = 1;  // of an expert, measured

enum { GATHER, EXPERT, SUM, DISPATCH, COMBINE = DISPATCH + BATCHES, KERNELS = COMBINE + BATCHES };
static const char *const kernel_names[KERNELS] = {
    "gather", "expert", "sum", "dispatch 0", "dispatch 1", "combine 0", "combine 1"};

// -- data -----------------------------------------------------------------------------------------

static float element(uint64_t id, uint64_t at) {
    uint64_t x = (id * 1000003 + at) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    return (float)(((double)(x % 2001) - 1000) / 1000);
}

static float weight(uint64_t expert, uint64_t at) {
    return 0.2f * element(expert, at);
}

static float token_element(uint64_t batch, uint64_t token, uint64_t col) {
    return element(100 + batch, token * DIM + col);
}

static float gate_of(uint64_t batch, uint64_t pair) {
    return 0.5f + 0.4f * element(200 + batch, pair);
}

// A batch on this rank. Rows of dispatch are those of `pairs`, in the order of replicas.
typedef struct batch {
    int32_t *experts;  // of all tokens of all ranks: [tokens][TOP_K]
    float *x, *sent, *received, *made, *returned, *out, *gates;
    uint32_t *pairs, *rows;
    int64_t dispatch[RANK_MAX * RANK_MAX], combine[RANK_MAX * RANK_MAX];
    int64_t begin[RANK_MAX * REPLICAS], length[RANK_MAX * REPLICAS];  // of received rows
} batch;

typedef struct layer {
    world *w;
    const options *o;
    uint32_t own, local;  // tokens and replicas of this rank
    int32_t replica_experts[REPLICAS];
    float *weights;
    batch batches[BATCHES];
    ptowsp_module *m;
    ptowsp_kernel kernels[KERNELS];
    bool is_balanced;
} layer;

static void check_plan(ptowsp_status status) {
    if (status != PTOWSP_OK) {
        command_fail("planning: %s", ptowsp_status_text(status));
    }
}

// Routes of all ranks, the same on each; the placement of experts by the loads of both batches.
static void route(layer *l, int32_t *replicas[BATCHES]) {
    const uint32_t tokens = (uint32_t)l->o->tokens, p = l->w->rank_count;
    float loads[EXPERTS] = {0};
    ptowsp_plan_info info;
    for (int b = 0; b < BATCHES; b++) {
        const ptowsp_moe_traffic traffic = {.pattern = PTOWSP_MOE_SKEWED,
                                            .token_count = tokens,
                                            .top_k = TOP_K,
                                            .expert_count = EXPERTS,
                                            .seed = 7 + (uint64_t)b};
        uint64_t scratch[EXPERTS + 1];
        l->batches[b].experts = command_allocate(tokens * TOP_K, sizeof(int32_t));
        check_plan(ptowsp_moe_routes_generate(&traffic, scratch, l->batches[b].experts, &info));
        for (uint32_t i = 0; i < tokens * TOP_K; i++) {
            loads[l->batches[b].experts[i]] += 1;
        }
    }
    const ptowsp_moe_cluster cluster = {
        .expert_count = EXPERTS, .replica_count = REPLICAS, .rank_count = p};
    int32_t counts[EXPERTS], of[EXPERTS * (REPLICAS - EXPERTS + 1)];
    const ptowsp_moe_placement placement = {.replica_experts = l->replica_experts,
                                            .expert_counts = counts,
                                            .expert_replicas = of,
                                            .stride = REPLICAS - EXPERTS + 1};
    const uint64_t bytes = ptowsp_moe_scratch_bytes(&cluster);
    void *scratch = command_allocate(bytes, 1);
    check_plan(ptowsp_moe_rebalance(&cluster, loads, 1, scratch, bytes, &placement, &info));
    free(scratch);
    for (int b = 0; b < BATCHES; b++) {
        const ptowsp_moe_routes routes = {.ids = l->batches[b].experts,
                                          .token_count = tokens,
                                          .top_k = TOP_K,
                                          .expert_count = EXPERTS};
        uint32_t next[EXPERTS];
        replicas[b] = command_allocate(tokens * TOP_K, sizeof(int32_t));
        check_plan(ptowsp_moe_share(&routes, &placement, next, replicas[b], &info));
    }
}

// What this rank sends and gets of a batch.
static void plan_batch(layer *l, batch *b, uint64_t which, const int32_t *replicas) {
    const uint32_t p = l->w->rank_count, me = l->w->rank, own = l->own, rows = own * TOP_K;
    const uint64_t most = (uint64_t)rows * p;
    uint32_t counts[REPLICAS], offsets[REPLICAS + 1];
    int64_t by_source[RANK_MAX][REPLICAS] = {{0}};
    ptowsp_plan_info info;
    b->x = command_allocate(own * DIM, sizeof(float));
    b->out = command_allocate(own * DIM, sizeof(float));
    b->sent = command_allocate(rows * DIM, sizeof(float));
    b->returned = command_allocate(rows * DIM, sizeof(float));
    b->received = command_allocate(most * DIM, sizeof(float));
    b->made = command_allocate(most * DIM, sizeof(float));
    b->gates = command_allocate(rows, sizeof(float));
    b->pairs = command_allocate(rows, sizeof(uint32_t));
    b->rows = command_allocate(rows, sizeof(uint32_t));
    for (uint32_t i = 0; i < own * DIM; i++) {
        b->x[i] = token_element(which, me * own + i / DIM, i % DIM);
    }
    for (uint32_t i = 0; i < rows; i++) {
        b->gates[i] = gate_of(which, me * rows + i);
    }
    const ptowsp_moe_routes routes = {
        .ids = replicas + me * rows, .token_count = own, .top_k = TOP_K, .expert_count = REPLICAS};
    ptowsp_moe_order order = {.counts = counts,
                              .offsets = offsets,
                              .pairs = b->pairs,
                              .rows = b->rows,
                              .row_capacity = rows};
    check_plan(ptowsp_moe_sort(&routes, &order, &info));
    for (uint32_t i = 0; i < rows * p; i++) {
        by_source[i / rows][replicas[i]]++;
    }
    for (uint32_t s = 0; s < p; s++) {
        for (uint32_t r = 0; r < REPLICAS; r++) {
            b->dispatch[s * p + r / l->local] += by_source[s][r];
            b->combine[r / l->local * p + s] += by_source[s][r];
        }
    }
    int64_t at = 0;
    for (uint32_t i = 0; i < p * l->local; i++) {
        b->begin[i] = at;
        b->length[i] = by_source[i / l->local][me * l->local + i % l->local];
        at += b->length[i];
    }
}

// -- kernels --------------------------------------------------------------------------------------

static ptowsp_cycles gather_fn(const ptowsp_task *t, void *user) {
    (void)user;
    const uint32_t *pairs = (const uint32_t *)t->tiles[1].data;
    for (int64_t r = 0; r < ptowsp_task_rows(t, 2); r++) {
        memcpy((float *)t->tiles[2].data + r * DIM,
               (const float *)t->tiles[0].data + pairs[r] / TOP_K * DIM, DIM * sizeof(float));
    }
    return 0;
}

static ptowsp_cycles expert_fn(const ptowsp_task *t, void *user) {
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(t, 0); r++) {
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

static ptowsp_cycles sum_fn(const ptowsp_task *t, void *user) {
    (void)user;
    ptowsp_moe_combine((const uint32_t *)t->tiles[0].data, TOP_K, (const float *)t->tiles[1].data,
                       (const float *)t->tiles[2].data, DIM, 0, (uint32_t)ptowsp_task_rows(t, 3),
                       (float *)t->tiles[3].data);
    return 0;
}

static ptowsp_cycles expert_cost(const ptowsp_task *t, void *user) {
    (void)user;
    return (ptowsp_cycles)((double)ptowsp_task_rows(t, 0) * ns_per_row) + 1;
}

static ptowsp_cycles copy_cost(const ptowsp_task *t, void *user) {
    (void)user;
    return (ptowsp_cycles)((double)ptowsp_task_rows(t, 2) * ns_per_row / 16) + 1;
}

static void make_kernels(layer *l) {
    const ptowsp_tile_param x = {.name = "x",
                                 .direction = PTOWSP_IN,
                                 .dtype = PTOWSP_F32,
                                 .rows = PTOWSP_DYNAMIC,
                                 .cols = DIM};
    const ptowsp_tile_param y = {.name = "y",
                                 .direction = PTOWSP_OUT,
                                 .dtype = PTOWSP_F32,
                                 .rows = PTOWSP_DYNAMIC,
                                 .cols = DIM};
    const ptowsp_tile_param index = {.name = "index",
                                     .direction = PTOWSP_IN,
                                     .dtype = PTOWSP_U32,
                                     .rows = 1,
                                     .cols = PTOWSP_DYNAMIC};
    const ptowsp_tile_param gates = {.name = "gates",
                                     .direction = PTOWSP_IN,
                                     .dtype = PTOWSP_F32,
                                     .rows = 1,
                                     .cols = PTOWSP_DYNAMIC};
    const ptowsp_tile_param w = {
        .name = "w", .direction = PTOWSP_IN, .dtype = PTOWSP_F32, .rows = DIM, .cols = DIM};
    const ptowsp_kernel_desc descs[] = {
        {.name = "gather", .tiles = {x, index, y}, .fn = gather_fn, .cost = copy_cost},
        {.name = "expert", .tiles = {x, w, y}, .fn = expert_fn, .cost = expert_cost},
        {.name = "sum", .tiles = {index, gates, x, y}, .fn = sum_fn, .cost = copy_cost}};
    for (int i = 0; i < DISPATCH; i++) {
        l->kernels[i] = ptowsp_kernel_make(l->m, &descs[i]);
    }
    for (int i = DISPATCH; i < KERNELS; i++) {
        const ptowsp_collective_desc desc = {.name = kernel_names[i],
                                             .kind = PTOWSP_ALL_TO_ALL,
                                             .dtype = PTOWSP_F32,
                                             .counts = kernel_names[i]};
        l->kernels[i] = ptowsp_kernel_collective(l->m, &desc);
    }
}

// -- the workload ---------------------------------------------------------------------------------

// A tensor that is bound later, by its name and the number of its batch.
static const char *const tensor_names[] = {"x",    "pairs",    "rows", "gates", "sent",  "received",
                                           "made", "returned", "out",  "begin", "length"};
enum { X, PAIRS, ROWS, GATES, SENT, RECEIVED, MADE, RETURNED, OUT, BEGIN, LENGTH };

static void name_of(char name[32], int tensor, int b) {
    snprintf(name, 32, "%s%d", tensor_names[tensor], b);
}

static ptowsp_tensor tensor_of(const layer *l, int which, int b) {
    const int64_t own = l->own, rows = own * TOP_K;
    const bool is_index = which == PAIRS || which == ROWS;
    char name[32];
    name_of(name, which, b);
    ptowsp_tensor_desc desc = {
        .name = name, .dtype = is_index ? PTOWSP_U32 : PTOWSP_F32, .rank = 2};
    desc.shape[0] = is_index || which == GATES           ? 1
                    : which == X || which == OUT         ? own
                    : which == SENT || which == RETURNED ? rows
                                                         : rows * l->w->rank_count;
    desc.shape[1] = is_index || which == GATES ? rows : DIM;
    return ptowsp_tensor_make(l->m, &desc);
}

static void build(layer *l) {
    ptowsp_module *m = l->m;
    ptowsp_tensor t[BATCHES][OUT + 1];
    const ptowsp_tensor_desc weights = {
        .name = "weights", .dtype = PTOWSP_F32, .rank = 3, .shape = {l->local, DIM, DIM}};
    const ptowsp_tensor w = ptowsp_tensor_make(m, &weights);
    const ptowsp_axis segments =
        ptowsp_axis_dense(m, "segments", (int64_t)l->local * l->w->rank_count);
    make_kernels(l);
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i <= OUT; i++) {
            t[b][i] = tensor_of(l, i, b);
        }
    }
    PTOWSP_WORKLOAD(m, "layer") {
        PTOWSP_COMBINE(m) {  // all order follows from data
            for (int b = 0; b < BATCHES; b++) {
                const ptowsp_task_desc gather = {.kernel = l->kernels[GATHER],
                                                 .views = {{.tensor = t[b][X]},
                                                           {.tensor = t[b][PAIRS]},
                                                           {.tensor = t[b][SENT]}}};
                const ptowsp_task_desc dispatch = {
                    .kernel = l->kernels[DISPATCH + b],
                    .views = {{.tensor = t[b][SENT]}, {.tensor = t[b][RECEIVED]}}};
                ptowsp_task_make(m, &gather);
                ptowsp_task_make(m, &dispatch);
            }
            for (int b = 0; b < BATCHES; b++) {
                char begin[32], length[32];
                name_of(begin, BEGIN, b);
                name_of(length, LENGTH, b);
                PTOWSP_PARALLEL(m, i, segments) {
                    const ptowsp_expr rows = ptowsp_array_at(m, length, PTOWSP_I64, i);
                    const ptowsp_expr at = ptowsp_array_at(m, begin, PTOWSP_I64, i);
                    PTOWSP_WHEN(m, ptowsp_gt(rows, ptowsp_i64(m, 0))) {
                        const ptowsp_expr replica = ptowsp_rem(i, ptowsp_i64(m, l->local));
                        const ptowsp_task_desc expert = {
                            .kernel = l->kernels[EXPERT],
                            .views = {{.tensor = t[b][RECEIVED], .row = at, .row_count = rows},
                                      {.tensor = w, .index = {replica}},
                                      {.tensor = t[b][MADE], .row = at, .row_count = rows}}};
                        ptowsp_task_make(m, &expert);
                    }
                }
                const ptowsp_task_desc combine = {
                    .kernel = l->kernels[COMBINE + b],
                    .views = {{.tensor = t[b][MADE]}, {.tensor = t[b][RETURNED]}}};
                const ptowsp_task_desc sum = {.kernel = l->kernels[SUM],
                                              .views = {{.tensor = t[b][ROWS]},
                                                        {.tensor = t[b][GATES]},
                                                        {.tensor = t[b][RETURNED]},
                                                        {.tensor = t[b][OUT]}}};
                ptowsp_task_make(m, &combine);
                ptowsp_task_make(m, &sum);
            }
        }
    }
}

static void bind(const layer *l, ptowsp_run *run) {
    const uint64_t p = l->w->rank_count;
    const ptowsp_buffer weights = {.data = l->weights};
    command_check(l->w->context, ptowsp_run_bind_tensor(run, "weights", &weights));
    for (int b = 0; b < BATCHES; b++) {
        const batch *at = &l->batches[b];
        void *const data[] = {at->x,        at->pairs, at->rows,     at->gates, at->sent,
                              at->received, at->made,  at->returned, at->out};
        char name[32];
        for (int i = 0; i <= OUT; i++) {
            const ptowsp_buffer buffer = {.data = data[i]};
            name_of(name, i, b);
            command_check(l->w->context, ptowsp_run_bind_tensor(run, name, &buffer));
        }
        const int64_t *const arrays[] = {at->begin, at->length};
        for (int i = 0; i < 2; i++) {
            name_of(name, BEGIN + i, b);
            command_check(l->w->context,
                          ptowsp_run_bind_array(run, name, PTOWSP_I64, arrays[i], p * l->local));
        }
        command_check(l->w->context, ptowsp_run_bind_array(run, kernel_names[DISPATCH + b],
                                                           PTOWSP_I64, at->dispatch, p * p));
        command_check(l->w->context, ptowsp_run_bind_array(run, kernel_names[COMBINE + b],
                                                           PTOWSP_I64, at->combine, p * p));
    }
}

// -- a rank ---------------------------------------------------------------------------------------

static void measure_expert(layer *l) {
    enum { ROWS_AT_ONCE = 16 };
    float x[ROWS_AT_ONCE * DIM], y[ROWS_AT_ONCE * DIM];
    for (int i = 0; i < ROWS_AT_ONCE * DIM; i++) {
        x[i] = element(1, (uint64_t)i);
    }
    const uint64_t args[] = {ROWS_AT_ONCE, DIM, DIM, DIM, ROWS_AT_ONCE, DIM};
    const ptowsp_tile tiles[] = {{.data = x, .row_stride = DIM, .col_stride = 1},
                                 {.data = l->weights, .row_stride = DIM, .col_stride = 1},
                                 {.data = y, .row_stride = DIM, .col_stride = 1}};
    const ptowsp_task t = {.args = args, .tile_count = 3, .tiles = tiles};
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 50; i++) {
        const uint64_t begin = ptowsp_clock_ns();
        expert_fn(&t, NULL);
        const uint64_t took = ptowsp_clock_ns() - begin;
        best = took < best ? took : best;
    }
    uint64_t *all = command_allocate(l->w->rank_count, sizeof *all);
    world_gather(l->w, &best, all, sizeof best);
    ns_per_row = (double)all[0] / ROWS_AT_ONCE;
    free(all);
}

// The largest difference to double precision, relative to the largest result.
static double error_of(const layer *l) {
    double worst = 0, largest = 0;
    for (uint64_t i = 0; i < (uint64_t)BATCHES * l->own; i++) {
        const uint64_t b = i / l->own, own = i % l->own, token = l->w->rank * l->own + own;
        double due[DIM] = {0};
        for (uint64_t pair = token * TOP_K; pair < (token + 1) * TOP_K; pair++) {
            const uint64_t expert = (uint64_t)l->batches[b].experts[pair];
            for (uint64_t c = 0; c < DIM; c++) {
                double made = 0;
                for (uint64_t k = 0; k < DIM; k++) {
                    made +=
                        (double)token_element(b, token, k) * (double)weight(expert, k * DIM + c);
                }
                due[c] += (double)gate_of(b, pair) * fmax(made, 0);
            }
        }
        for (uint64_t c = 0; c < DIM; c++) {
            worst = fmax(worst, fabs((double)l->batches[b].out[own * DIM + c] - due[c]));
            largest = fmax(largest, fabs(due[c]));
        }
    }
    return worst / largest;
}

// The hash of the results of all ranks, in the order of tokens.
static uint64_t bits_of(const layer *l) {
    const uint64_t bytes = (uint64_t)l->own * DIM * sizeof(float);
    float *all = command_allocate(bytes * l->w->rank_count, 1);
    uint64_t hash = PTOWSP_HASH_START;
    for (int b = 0; b < BATCHES; b++) {
        world_gather(l->w, l->batches[b].out, all, bytes);
        hash = ptowsp_hash(hash, all, bytes * l->w->rank_count);
    }
    free(all);
    return hash;
}

static void free_batch(batch *b) {
    void *const all[] = {b->experts,  b->x,   b->sent,  b->received, b->made,
                         b->returned, b->out, b->gates, b->pairs,    b->rows};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

static int expert_parallel(world *w, void *user) {
    const options *o = (const options *)user;
    layer *l = command_allocate(1, sizeof *l);
    int32_t *replicas[BATCHES];
    l->w = w;
    l->o = o;
    l->own = (uint32_t)o->tokens / w->rank_count;
    l->local = REPLICAS / w->rank_count;
    route(l, replicas);
    l->weights = command_allocate((uint64_t)l->local * DIM * DIM, sizeof(float));
    for (uint64_t i = 0; i < (uint64_t)l->local * DIM * DIM; i++) {
        const uint64_t replica = w->rank * l->local + i / (DIM * DIM);
        l->weights[i] = weight((uint64_t)l->replica_experts[replica], i % (DIM * DIM));
    }
    uint64_t rows = 0;  // that the experts here get
    for (int b = 0; b < BATCHES; b++) {
        plan_batch(l, &l->batches[b], (uint64_t)b, replicas[b]);
        free(replicas[b]);
        for (uint32_t i = 0; i < w->rank_count * l->local; i++) {
            rows += (uint64_t)l->batches[b].length[i];
        }
    }
    measure_expert(l);
    command_check(w->context, ptowsp_module_create(w->context, NULL, &l->m));
    build(l);
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    command_check(w->context, ptowsp_program_create(w->context, l->m, NULL, &program));
    command_check(w->context, ptowsp_run_create(w->context, program, &run));
    bind(l, run);
    const world_picture picture = {o->draw, o->simulated, "expert_parallel", kernel_names, KERNELS};
    const world_times times = world_execute(w, run, 0, &picture);
    const double error = error_of(l), mean = 2.0 * BATCHES * (double)o->tokens / w->rank_count;
    const bool is_good = world_largest(w, !(error < 1e-5)) == 0;
    const uint64_t bits = bits_of(l), most = world_largest(w, rows);
    if (w->rank == 0) {
        printf("%u rank%s  simulated %8.1f us  measured %8.1f us  busiest rank %.3f of the mean  "
               "bits %016llx  error %.1e: %s\n",
               w->rank_count, w->rank_count == 1 ? " " : "s", (double)times.simulated_ns / 1000,
               (double)times.measured_ns / 1000, (double)most / mean, (unsigned long long)bits,
               error, is_good ? "good" : "WRONG");
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(l->m);
    for (int b = 0; b < BATCHES; b++) {
        free_batch(&l->batches[b]);
    }
    free(l->weights);
    free(l);
    return is_good ? 0 : 1;
}

int main(int argc, char **argv) {
    options o = {0, 512, NULL, NULL};
    const command_option numbers[] = {{"--ranks", &o.ranks, NULL, 1, RANK_MAX},
                                      {"--tokens", &o.tokens, NULL, 4, 65536}};
    const command_text texts[] = {{"--draw", &o.draw}, {"--simulated", &o.simulated}};
    command_parse_texts(argc, argv, help, numbers, 2, texts, 2);
    o.ranks = world_size() ? world_size() : o.ranks;
    if (o.ranks == 3 || o.ranks > RANK_MAX || o.tokens % RANK_MAX) {
        command_fail("%u ranks, %u tokens: there are 1, 2 or 4 ranks, and a multiple of 4 tokens",
                     (unsigned)o.ranks, (unsigned)o.tokens);
    }
    int code = 0;
    for (uint32_t p = 1; p <= RANK_MAX; p *= 2) {
        if (o.ranks == 0 || o.ranks == p) {
            code |= world_run(p, 1, expert_parallel, &o);
        }
    }
    command_flush();
    return code;
}
