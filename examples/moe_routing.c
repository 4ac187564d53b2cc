// A mixture-of-experts layer as a workload: a sparse axis says which tokens go to which expert, and
// what the layer measures while it runs decides how it goes on.
//
//      measure                                   counts the tokens of each expert, into loads
//      parallel expert
//          slot = loads[expert]                  control waits for data: the count is read here
//          when slot > limit                     too hot for one lane:
//              parallel copy of copies
//                  when (copy + 1) * limit < slot
//                      replicate                 weights[0, expert] -> weights[copy + 1, expert]
//              select token of row expert        each share of `limit` tokens has its own copy,
//                  apply with that copy          which is at home on another lane
//          otherwise
//              select token of row expert
//                  apply
//      parallel token
//          combine                               out = sum of gates * what its experts made
//
// The router draws for each token its top-k of the experts, whose popularity falls as in Zipf's law
// (1 / rank^skew), so that a few are hot. Its choice is bound as compressed sparse rows.
//
// The program is compiled once for each way of dispatch, and run without and with copies by binding
// `limit`. Shown are the makespan, the busy time of each lane, and how often a lane had to fetch
// the weights of another expert than it used last, which the cycles do not include: round robin
// and work stealing balance best and fetch most. To keep experts at home costs balance, unless hot
// ones are split and all are placed by load, as serving systems do from the loads of the steps
// before (here from those of the step itself, which is the best that it can be).
//
// Last comes the same layer on a MoE plan: the library sorts the pairs by expert, and gives each lane
// units of neighbouring rows, an expert split where that balances. A task is a unit, not a token:
//
//      parallel lane of the plan
//          parallel unit of the lane
//              apply_rows                        parts of the unit's rows, with one read of weights
//      parallel token
//          mix                                   out = sum of gates * parts[rows of its pairs]
//
// Every output of every run is compared with the layer in double; copies are NaN until they are
// made, so one that is read too early shows.

#include "ptowsp.h"

#include "common/command.h"
#include "common/lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_MAX = 7, LOAD_SLOT = 0, LANES_SHOWN = 16 };

#define TOLERANCE 1e-4  // of the largest magnitude in an output row

// -- kernels: compiled here, and kept as text -----------------------------------------------------

// clang-format off
PTOWSP_SOURCE(kernels_source,

enum { DIM = 32 };  // of a token

static float *tile_row(const ptowsp_task *task, uint32_t tile, int64_t row) {
    return (float *)task->tiles[tile].data + row * task->tiles[tile].row_stride;
}

static ptowsp_cycles measure(const ptowsp_task *task, void *user) {
    int32_t *loads = (int32_t *)task->tiles[1].data;
    (void)user;
    memset(loads, 0, (size_t)ptowsp_task_cols(task, 1) * sizeof *loads);
    for (int64_t t = 0; t < ptowsp_task_rows(task, 0); t++) {
        const int32_t *experts =
            (const int32_t *)task->tiles[0].data + t * task->tiles[0].row_stride;
        for (int64_t k = 0; k < ptowsp_task_cols(task, 0); k++) {
            loads[experts[k]]++;
        }
    }
    return 50 + (ptowsp_cycles)(ptowsp_task_rows(task, 0) * ptowsp_task_cols(task, 0)) / 16;
}

static ptowsp_cycles replicate(const ptowsp_task *task, void *user) {
    (void)user;
    for (int64_t row = 0; row < DIM; row++) {
        memcpy(tile_row(task, 1, row), tile_row(task, 0, row), DIM * sizeof(float));
    }
    return 50 + DIM * DIM * sizeof(float) / 32;
}

// part = relu(weights token), for one token and one expert.
static ptowsp_cycles apply(const ptowsp_task *task, void *user) {
    (void)user;
    const float *token = tile_row(task, 0, 0);
    float *part = tile_row(task, 2, 0);
    for (int64_t row = 0; row < DIM; row++) {
        const float *weights = tile_row(task, 1, row);
        float sum = 0.0f;
        for (int64_t i = 0; i < DIM; i++) {
            sum += weights[i] * token[i];
        }
        part[row] = sum < 0.0f ? 0.0f : sum;  // keeps a NaN
    }
    return 50 + DIM * DIM / 16;
}

// The same for the tokens of a unit, whose rows are neighbours.
static ptowsp_cycles apply_rows(const ptowsp_task *task, void *user) {
    (void)user;
    int64_t count = ptowsp_task_rows(task, 0);
    for (int64_t t = 0; t < count; t++) {
        const float *token = tile_row(task, 0, t);
        float *part = tile_row(task, 2, t);
        for (int64_t row = 0; row < DIM; row++) {
            const float *weights = tile_row(task, 1, row);
            float sum = 0.0f;
            for (int64_t i = 0; i < DIM; i++) {
                sum += weights[i] * token[i];
            }
            part[row] = sum < 0.0f ? 0.0f : sum;
        }
    }
    return 50 + (ptowsp_cycles)count * (DIM * DIM / 16);
}

// Adds up the parts of a token, which are in any rows of the tile.
static ptowsp_cycles mix(const ptowsp_task *task, void *user) {
    (void)user;
    int64_t top_k = ptowsp_task_cols(task, 1);
    const uint32_t *rows = (const uint32_t *)task->tiles[1].data;
    const float *gates = tile_row(task, 2, 0);
    float *out = tile_row(task, 3, 0);
    memset(out, 0, DIM * sizeof *out);
    for (int64_t k = 0; k < top_k; k++) {
        const float *part = tile_row(task, 0, (int64_t)rows[k]);
        for (int64_t i = 0; i < DIM; i++) {
            out[i] += gates[k] * part[i];
        }
    }
    return 20 + (ptowsp_cycles)top_k * DIM / 16;
}

static ptowsp_cycles combine(const ptowsp_task *task, void *user) {
    (void)user;
    int64_t top_k = ptowsp_task_rows(task, 0);
    const float *gates = tile_row(task, 1, 0);
    float *out = tile_row(task, 2, 0);
    memset(out, 0, DIM * sizeof *out);
    for (int64_t k = 0; k < top_k; k++) {
        const float *part = tile_row(task, 0, k);
        for (int64_t i = 0; i < DIM; i++) {
            out[i] += gates[k] * part[i];
        }
    }
    return 20 + (ptowsp_cycles)top_k * DIM / 16;
}
)
// clang-format on

// -- the layer ------------------------------------------------------------------------------------

typedef struct layer {
    uint64_t token_count, expert_count, top_k, lane_count, seed;
    double skew, factor;  // limit = factor * mean load
    uint64_t limit;       // tokens of an expert on one lane
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_kernel measure, replicate, apply, combine;

    int32_t *routes;    // [token][top_k] experts
    float *gates;       // [token][top_k], of sum 1
    uint32_t *indptr;   // [expert + 1] the same by expert: the tokens of each, ascending
    uint32_t *indices;  // [entry]
    int32_t *entry;     // [expert][token] token * top_k + its place among the token's experts
    int32_t *rank;      // [expert][token] its place among the expert's tokens
    uint32_t *places;   // [copy][expert], then [token]: lanes, by load

    ptowsp_moe_order order;  // the pairs by expert; its offsets are indptr
    ptowsp_moe_plan plan;    // and units for the lanes
    void *plan_block;

    float *sorted;   // [row][DIM] the token of each row of the order
    float *tokens;   // [token][DIM]
    float *weights;  // [1 + COPY_MAX][expert][DIM][DIM]; the first are the expert's own
    int32_t *loads;  // [1][expert], by measure
    float *parts;    // [entry][DIM]
    float *outputs;  // [token][DIM]
    double error;    // the largest of all runs
} layer;

// -- the workload ---------------------------------------------------------------------------------

static ptowsp_tensor tensor_make(ptowsp_module *m, const char *name, ptowsp_dtype dtype,
                                 uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    ptowsp_tensor_desc desc = {.name = name, .dtype = dtype, .rank = rank, .shape = {a, b, c, d}};
    return ptowsp_tensor_make(m, &desc);
}

static void kernels_make(layer *l) {
    const int64_t top_k = (int64_t)l->top_k, any = PTOWSP_DYNAMIC;
    const ptowsp_tile_param token = {
        .name = "token", .direction = PTOWSP_IN, .dtype = PTOWSP_F32, .rows = 1, .cols = DIM};
    const ptowsp_tile_param weights = {
        .name = "weights", .direction = PTOWSP_IN, .dtype = PTOWSP_F32, .rows = DIM, .cols = DIM};
    const ptowsp_kernel_source source = {.text = kernels_source};
    const ptowsp_kernel_desc descs[] = {
        {.name = "measure",
         .tiles = {{.name = "routes",
                    .direction = PTOWSP_IN,
                    .dtype = PTOWSP_I32,
                    .rows = any,
                    .cols = top_k},
                   {.name = "loads",
                    .direction = PTOWSP_OUT,
                    .dtype = PTOWSP_I32,
                    .rows = 1,
                    .cols = any}},
         .fn = measure,
         .source = source},
        {.name = "replicate",
         .tiles = {weights,
                   {.name = "copy",
                    .direction = PTOWSP_OUT,
                    .dtype = PTOWSP_F32,
                    .rows = DIM,
                    .cols = DIM}},
         .fn = replicate,
         .source = source},
        {.name = "apply",
         .axis_count = 2,  // copy, expert
         .tiles = {token,
                   weights,
                   {.name = "part",
                    .direction = PTOWSP_OUT,
                    .dtype = PTOWSP_F32,
                    .rows = 1,
                    .cols = DIM}},
         .fn = apply,
         .source = source},
        {.name = "combine",
         .tiles = {{.name = "parts",
                    .direction = PTOWSP_IN,
                    .dtype = PTOWSP_F32,
                    .rows = top_k,
                    .cols = DIM},
                   {.name = "gates",
                    .direction = PTOWSP_IN,
                    .dtype = PTOWSP_F32,
                    .rows = 1,
                    .cols = top_k},
                   {.name = "out",
                    .direction = PTOWSP_OUT,
                    .dtype = PTOWSP_F32,
                    .rows = 1,
                    .cols = DIM}},
         .fn = combine,
         .source = source},
    };
    l->measure = ptowsp_kernel_make(l->module, &descs[0]);
    l->replicate = ptowsp_kernel_make(l->module, &descs[1]);
    l->apply = ptowsp_kernel_make(l->module, &descs[2]);
    l->combine = ptowsp_kernel_make(l->module, &descs[3]);
}

typedef struct tensors {
    ptowsp_tensor routes, gates, loads, tokens, weights, parts, outputs;
} tensors;

// Tags by which the keys of schedules find a lane: experts and their copies are at home next to
// each other, and have a place of their own.
static ptowsp_tag tag(const char *name, ptowsp_expr value) {
    ptowsp_tag made = {.name = name, .value = ptowsp_cast(value, PTOWSP_TYPE_U64)};
    return made;
}

static ptowsp_tag tag_home(ptowsp_expr expert, ptowsp_expr copy) {
    return tag("home", ptowsp_add(expert, copy));
}

static ptowsp_tag tag_place(const layer *l, ptowsp_expr expert, ptowsp_expr copy) {
    ptowsp_expr count = ptowsp_i64(l->module, (int64_t)l->expert_count);
    return tag("place", ptowsp_add(ptowsp_mul(copy, count), expert));
}

// Applies an expert, by one of its copies, to a token.
static void apply_make(const layer *l, const tensors *x, ptowsp_expr expert, ptowsp_expr token,
                       ptowsp_expr copy) {
    ptowsp_module *m = l->module;
    ptowsp_expr at = ptowsp_add(ptowsp_mul(expert, ptowsp_i64(m, (int64_t)l->token_count)), token);
    ptowsp_expr entry = ptowsp_array_at(m, "entry", PTOWSP_I32, at);
    ptowsp_task_make(
        m, &(ptowsp_task_desc){.kernel = l->apply,
                               .axes = {copy, expert},
                               .views = {{.tensor = x->tokens, .row = token},
                                         {.tensor = x->weights, .index = {copy, expert}},
                                         {.tensor = x->parts, .row = entry}},
                               .tags = {tag_home(expert, copy), tag_place(l, expert, copy)}});
}

// The statements of one expert: whether it is hot is known when its load has been counted.
static void expert_make(const layer *l, const tensors *x, ptowsp_expr expert, ptowsp_axis row) {
    ptowsp_module *m = l->module;
    ptowsp_expr zero = ptowsp_i64(m, 0), one = ptowsp_i64(m, 1);
    ptowsp_expr limit = ptowsp_cast(ptowsp_symbol(m, "limit"), PTOWSP_TYPE_I64);
    ptowsp_expr load = ptowsp_slot(m, LOAD_SLOT, PTOWSP_TYPE_I64);
    ptowsp_axis copies = ptowsp_axis_dense(m, "copies", COPY_MAX);

    ptowsp_slot_load_make(m, LOAD_SLOT, &(ptowsp_view){.tensor = x->loads, .col = expert}, zero,
                          zero);
    PTOWSP_WHEN(m, ptowsp_gt(load, limit)) {
        PTOWSP_PARALLEL(m, i, copies) {
            ptowsp_expr copy = ptowsp_add(i, one);
            PTOWSP_WHEN(m, ptowsp_lt(ptowsp_mul(copy, limit), load)) {
                ptowsp_task_make(m,
                                 &(ptowsp_task_desc){
                                     .kernel = l->replicate,
                                     .views = {{.tensor = x->weights, .index = {zero, expert}},
                                               {.tensor = x->weights, .index = {copy, expert}}},
                                     .tags = {tag_home(expert, copy), tag_place(l, expert, copy)}});
            }
        }
        PTOWSP_SELECT(m, token, row) {
            ptowsp_expr at =
                ptowsp_add(ptowsp_mul(expert, ptowsp_i64(m, (int64_t)l->token_count)), token);
            ptowsp_expr rank = ptowsp_array_at(m, "rank", PTOWSP_I32, at);
            apply_make(l, x, expert, token,
                       ptowsp_min(ptowsp_div(rank, limit), ptowsp_i64(m, COPY_MAX)));
        }
    }
    PTOWSP_OTHERWISE(m) {
        PTOWSP_SELECT(m, token, row) {
            apply_make(l, x, expert, token, zero);
        }
    }
}

static void workload_make(layer *l) {
    ptowsp_module *m = l->module;
    const int64_t t = (int64_t)l->token_count, k = (int64_t)l->top_k, e = (int64_t)l->expert_count;
    kernels_make(l);
    const tensors x = {
        .routes = tensor_make(m, "routes", PTOWSP_I32, 2, t, k, 0, 0),
        .gates = tensor_make(m, "gates", PTOWSP_F32, 2, t, k, 0, 0),
        .loads = tensor_make(m, "loads", PTOWSP_I32, 2, 1, e, 0, 0),
        .tokens = tensor_make(m, "tokens", PTOWSP_F32, 2, t, DIM, 0, 0),
        .weights = tensor_make(m, "weights", PTOWSP_F32, 4, 1 + COPY_MAX, e, DIM, DIM),
        .parts = tensor_make(m, "parts", PTOWSP_F32, 2, t * k, DIM, 0, 0),
        .outputs = tensor_make(m, "outputs", PTOWSP_F32, 2, t, DIM, 0, 0),
    };
    ptowsp_axis experts = ptowsp_axis_dense(m, "experts", e);
    ptowsp_axis tokens = ptowsp_axis_dense(m, "token_axis", t);
    ptowsp_axis routing = ptowsp_axis_sparse(m, "routing");

    // Statements are independent of each other, but for the data they share: a token is combined
    // as soon as its own experts are done.
    PTOWSP_WORKLOAD(m, "layer") {
        PTOWSP_COMBINE(m) {
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = l->measure,
                                       .views = {{.tensor = x.routes}, {.tensor = x.loads}}});
            PTOWSP_PARALLEL(m, expert, experts) {
                expert_make(l, &x, expert, ptowsp_axis_row(m, routing, expert));
            }
            PTOWSP_PARALLEL(m, token, tokens) {
                ptowsp_task_make(
                    m,
                    &(ptowsp_task_desc){
                        .kernel = l->combine,
                        .views = {{.tensor = x.parts, .row = ptowsp_mul(token, ptowsp_i64(m, k))},
                                  {.tensor = x.gates, .row = token},
                                  {.tensor = x.outputs, .row = token}},
                        .tags = {tag("home", token),
                                 tag_place(l, token, ptowsp_i64(m, 1 + COPY_MAX))}});
            }
        }
    }
}

// The layer on a plan.
static void planned_make(ptowsp_module *m, int64_t t, int64_t k, int64_t e) {
    const int64_t any = PTOWSP_DYNAMIC;
    const ptowsp_kernel_source source = {.text = kernels_source};
    const ptowsp_kernel_desc descs[] = {
        {.name = "apply_rows",
         .tiles = {{.name = "tokens",
                    .direction = PTOWSP_IN,
                    .dtype = PTOWSP_F32,
                    .rows = any,
                    .cols = DIM},
                   {.name = "weights",
                    .direction = PTOWSP_IN,
                    .dtype = PTOWSP_F32,
                    .rows = DIM,
                    .cols = DIM},
                   {.name = "parts",
                    .direction = PTOWSP_OUT,
                    .dtype = PTOWSP_F32,
                    .rows = any,
                    .cols = DIM}},
         .fn = apply_rows,
         .source = source},
        {.name = "mix",
         .tiles =
             {{.name = "parts",
               .direction = PTOWSP_IN,
               .dtype = PTOWSP_F32,
               .rows = any,
               .cols = DIM},
              {.name = "rows", .direction = PTOWSP_IN, .dtype = PTOWSP_U32, .rows = 1, .cols = k},
              {.name = "gates", .direction = PTOWSP_IN, .dtype = PTOWSP_F32, .rows = 1, .cols = k},
              {.name = "out",
               .direction = PTOWSP_OUT,
               .dtype = PTOWSP_F32,
               .rows = 1,
               .cols = DIM}},
         .fn = mix,
         .source = source},
    };
    const ptowsp_kernel kernels[2] = {ptowsp_kernel_make(m, &descs[0]),
                                      ptowsp_kernel_make(m, &descs[1])};
    const ptowsp_tensor sorted = tensor_make(m, "sorted", PTOWSP_F32, 2, t * k, DIM, 0, 0);
    const ptowsp_tensor weights = tensor_make(m, "weights", PTOWSP_F32, 3, e, DIM, DIM, 0);
    const ptowsp_tensor parts = tensor_make(m, "parts", PTOWSP_F32, 2, t * k, DIM, 0, 0);
    const ptowsp_tensor rows = tensor_make(m, "rows", PTOWSP_U32, 2, t, k, 0, 0);
    const ptowsp_tensor gates = tensor_make(m, "gates", PTOWSP_F32, 2, t, k, 0, 0);
    const ptowsp_tensor outputs = tensor_make(m, "outputs", PTOWSP_F32, 2, t, DIM, 0, 0);
    ptowsp_axis units = ptowsp_axis_plan(m, "plan"), lanes = ptowsp_axis_plan_lanes(m, "plan");
    ptowsp_axis tokens = ptowsp_axis_dense(m, "token_axis", t);
    PTOWSP_WORKLOAD(m, "planned") {
        PTOWSP_PARALLEL(m, lane, lanes) {
            PTOWSP_PARALLEL(m, unit, ptowsp_axis_row(m, units, lane)) {
                ptowsp_expr expert = ptowsp_loop_field(unit, PTOWSP_PLAN_EXPERT);
                ptowsp_expr row = ptowsp_loop_field(unit, PTOWSP_PLAN_TOKEN_START);
                ptowsp_expr count = ptowsp_loop_field(unit, PTOWSP_PLAN_TOKEN_COUNT);
                ptowsp_task_make(m,
                                 &(ptowsp_task_desc){
                                     .kernel = kernels[0],
                                     .views = {{.tensor = sorted, .row = row, .row_count = count},
                                               {.tensor = weights, .index = {expert}},
                                               {.tensor = parts, .row = row, .row_count = count}},
                                     .tags = {tag("home", lane)}});
            }
        }
        PTOWSP_PARALLEL(m, token, tokens) {
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = kernels[1],
                                                    .views = {{.tensor = parts},
                                                              {.tensor = rows, .row = token},
                                                              {.tensor = gates, .row = token},
                                                              {.tensor = outputs, .row = token}},
                                                    .tags = {tag("home", token)}});
        }
    }
}

// -- routing and data -----------------------------------------------------------------------------

// Draws the experts and gates of every token: the top-k of log popularity plus Gumbel noise, which
// draws without replacement by popularity (Kool, van Hoof and Welling 2019); gates are their
// softmax.
static void route(layer *l) {
    uint64_t e = l->expert_count, state = l->seed;
    double *popularity = (double *)command_allocate(e, sizeof *popularity);
    double *score = (double *)command_allocate(e, sizeof *score);
    for (uint64_t i = 0; i < e; i++) {  // shuffled from the inside, so that the hot are anywhere
        uint64_t j = lengths_random(&state) % (i + 1);
        popularity[i] = popularity[j];
        popularity[j] = -l->skew * log((double)(i + 1));
    }
    for (uint64_t t = 0; t < l->token_count; t++) {
        double total = 0.0;
        for (uint64_t i = 0; i < e; i++) {
            score[i] = popularity[i] - log(-log(lengths_random_unit(&state)));
        }
        for (uint64_t k = 0; k < l->top_k; k++) {
            uint64_t best = 0;
            for (uint64_t i = 1; i < e; i++) {
                best = score[i] > score[best] ? i : best;
            }
            l->routes[t * l->top_k + k] = (int32_t)best;
            l->gates[t * l->top_k + k] = (float)score[best];
            score[best] = -INFINITY;
        }
        for (uint64_t k = 0; k < l->top_k; k++) {
            float *gates = l->gates + t * l->top_k;
            double weight = exp((double)gates[k] - (double)gates[0]);
            total += weight;
            score[k] = weight;
        }
        for (uint64_t k = 0; k < l->top_k; k++) {
            l->gates[t * l->top_k + k] = (float)(score[k] / total);
        }
    }
    free(popularity);
    free(score);
}

// Stops with the text of a fault.
static void plan_check(ptowsp_status status, const ptowsp_plan_info *info) {
    if (status != PTOWSP_OK) {
        char line[160];
        ptowsp_output_buffer buffer = {.data = line, .size = sizeof line};
        ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
        command_fail("%s", line);
    }
}

// The routes by expert.
static void route_sort(layer *l) {
    uint64_t entry_count = l->token_count * l->top_k;
    const ptowsp_moe_routes routes = {.ids = l->routes,
                                      .token_count = (uint32_t)l->token_count,
                                      .top_k = (uint32_t)l->top_k,
                                      .expert_count = (uint32_t)l->expert_count};
    ptowsp_plan_info info;
    l->order.counts = (uint32_t *)command_allocate(l->expert_count, sizeof(uint32_t));
    l->order.offsets = l->indptr;
    l->order.pairs = (uint32_t *)command_allocate(entry_count, sizeof(uint32_t));
    l->order.rows = (uint32_t *)command_allocate(entry_count, sizeof(uint32_t));
    l->order.row_capacity = (uint32_t)entry_count;
    plan_check(ptowsp_moe_sort(&routes, &l->order, &info), &info);
    for (uint64_t row = 0; row < entry_count; row++) {
        uint64_t pair = l->order.pairs[row], token = pair / l->top_k;
        uint64_t e = (uint64_t)l->routes[pair];
        l->indices[row] = (uint32_t)token;
        l->entry[e * l->token_count + token] = (int32_t)pair;
        l->rank[e * l->token_count + token] = (int32_t)(row - l->indptr[e]);
    }
}

// The units of the plan. Its cost is that of apply_rows.
static void layer_plan(layer *l) {
    const ptowsp_moe_config config = {.expert_count = (uint32_t)l->expert_count,
                                      .lane_count = (uint32_t)l->lane_count,
                                      .cost = {.per_unit = 50, .per_token = DIM * DIM / 16}};
    const ptowsp_moe_batch batch = {.counts = l->order.counts, .offsets = l->indptr};
    ptowsp_plan_info info;
    ptowsp_moe_sizes sizes;
    plan_check(ptowsp_moe_size(&batch, &config, &sizes, &info), &info);
    l->plan_block = command_allocate(sizes.block_bytes, 1);
    ptowsp_moe_place(&sizes, l->plan_block, sizes.block_bytes, &l->plan);
    plan_check(ptowsp_moe_generate(&batch, &config, &l->plan, &info), &info);
}

static void fill_random(float *out, uint64_t count, float scale, uint64_t seed) {
    for (uint64_t i = 0; i < count; i++) {
        out[i] = (float)(lengths_random_unit(&seed) * 2.0 - 1.0) * scale;
    }
}

static void layer_make_data(layer *l) {
    uint64_t t = l->token_count, e = l->expert_count, entries = t * l->top_k;
    l->routes = (int32_t *)command_allocate(entries, sizeof *l->routes);
    l->gates = (float *)command_allocate(entries, sizeof *l->gates);
    l->indptr = (uint32_t *)command_allocate(e + 1, sizeof *l->indptr);
    l->indices = (uint32_t *)command_allocate(entries, sizeof *l->indices);
    l->entry = (int32_t *)command_allocate(e * t, sizeof *l->entry);
    l->rank = (int32_t *)command_allocate(e * t, sizeof *l->rank);
    l->places = (uint32_t *)command_allocate((1 + COPY_MAX) * e + t, sizeof *l->places);
    l->tokens = (float *)command_allocate(t * DIM, sizeof *l->tokens);
    l->weights = (float *)command_allocate((1 + COPY_MAX) * e * DIM * DIM, sizeof *l->weights);
    l->loads = (int32_t *)command_allocate(e, sizeof *l->loads);
    l->parts = (float *)command_allocate(entries * DIM, sizeof *l->parts);
    l->outputs = (float *)command_allocate(t * DIM, sizeof *l->outputs);
    l->sorted = (float *)command_allocate(entries * DIM, sizeof *l->sorted);
    route(l);
    route_sort(l);
    layer_plan(l);
    fill_random(l->tokens, t * DIM, 1.0f, l->seed + 1);
    for (uint64_t row = 0; row < entries; row++) {
        memcpy(l->sorted + row * DIM, l->tokens + (uint64_t)l->indices[row] * DIM,
               DIM * sizeof *l->sorted);
    }
    fill_random(l->weights, e * DIM * DIM, 0.3f, l->seed + 2);
}

// Everything that tasks write becomes NaN, or nonsense.
static void layer_clear(layer *l) {
    uint64_t own = l->expert_count * DIM * DIM;
    for (uint64_t i = own; i < (1 + COPY_MAX) * own; i++) {
        l->weights[i] = NAN;
    }
    for (uint64_t i = 0; i < l->token_count * l->top_k * DIM; i++) {
        l->parts[i] = NAN;
    }
    for (uint64_t i = 0; i < l->token_count * DIM; i++) {
        l->outputs[i] = NAN;
    }
    memset(l->loads, 0xff, l->expert_count * sizeof *l->loads);
}

// -- check ----------------------------------------------------------------------------------------

// The largest error of all outputs against the layer in double, each relative to its row; NaN if
// one is.
static double layer_error(const layer *l) {
    double worst = 0.0;
    for (uint64_t t = 0; t < l->token_count; t++) {
        double exact[DIM] = {0}, largest = 0.0, difference = 0.0;
        for (uint64_t k = 0; k < l->top_k; k++) {
            uint64_t expert = (uint64_t)l->routes[t * l->top_k + k];
            for (uint64_t row = 0; row < DIM; row++) {
                double sum = 0.0;
                for (uint64_t i = 0; i < DIM; i++) {
                    sum += (double)l->weights[(expert * DIM + row) * DIM + i] *
                           (double)l->tokens[t * DIM + i];
                }
                exact[row] += (double)l->gates[t * l->top_k + k] * fmax(sum, 0.0);
            }
        }
        for (uint64_t i = 0; i < DIM; i++) {
            double off = fabs(exact[i] - (double)l->outputs[t * DIM + i]);
            largest = fmax(largest, exact[i]);
            difference = off <= difference ? difference : off;
        }
        double error = difference == 0.0 ? 0.0 : difference / largest;
        worst = error <= worst ? worst : error;
    }
    return worst;
}

// -- placement ------------------------------------------------------------------------------------

// Tokens that a copy of an expert has under a limit; 0: there is no such copy.
static uint64_t share_of(const layer *l, uint64_t limit, uint64_t copy, uint64_t expert) {
    uint64_t load = l->indptr[expert + 1] - l->indptr[expert], before = copy * limit;
    uint64_t rest = load > before ? load - before : 0;
    return copy < COPY_MAX && rest > limit ? limit : rest;
}

static uint64_t copies_wanted(const layer *l, uint64_t limit) {
    uint64_t count = 0;
    for (uint64_t copy = 1; copy <= COPY_MAX; copy++) {
        for (uint64_t e = 0; e < l->expert_count; e++) {
            count += share_of(l, limit, copy, e) > 0;
        }
    }
    return count;
}

typedef struct share {
    uint64_t token_count;
    size_t place;
} share;

static int compare_shares(const void *a, const void *b) {
    const share *x = (const share *)a, *y = (const share *)b;
    if (x->token_count != y->token_count) {
        return x->token_count < y->token_count ? 1 : -1;
    }
    return (x->place > y->place) - (x->place < y->place);
}

// Gives each share, the largest first, to the lane that has least so far (Graham 1969); tokens are
// combined round robin.
static void place_by_load(layer *l, uint64_t limit) {
    size_t share_count = (size_t)((1 + COPY_MAX) * l->expert_count);
    share *shares = (share *)command_allocate(share_count, sizeof *shares);
    uint64_t *given = (uint64_t *)command_allocate(l->lane_count, sizeof *given);
    for (size_t i = 0; i < share_count; i++) {
        shares[i].token_count = share_of(l, limit, i / l->expert_count, i % l->expert_count);
        shares[i].place = i;
    }
    qsort(shares, share_count, sizeof *shares, compare_shares);
    for (size_t i = 0; i < share_count; i++) {
        uint64_t lane = 0;
        for (uint64_t k = 1; k < l->lane_count; k++) {
            lane = given[k] < given[lane] ? k : lane;
        }
        given[lane] += shares[i].token_count;
        l->places[shares[i].place] = (uint32_t)lane;
    }
    for (uint64_t t = 0; t < l->token_count; t++) {
        l->places[share_count + t] = (uint32_t)(t % l->lane_count);
    }
    free(shares);
    free(given);
}

// -- runs -----------------------------------------------------------------------------------------

typedef struct policy {
    const char *name;
    ptowsp_dispatch dispatch;
} policy;

static const policy policies[] = {
    {"round robin", PTOWSP_DISPATCH_ROUND_ROBIN},
    {"work stealing", PTOWSP_DISPATCH_WORK_STEALING},
    {"affinity by expert", PTOWSP_DISPATCH_AFFINITY},
    {"hash of expert", PTOWSP_DISPATCH_HASH},
    {"placed by load", PTOWSP_DISPATCH_CUSTOM},
};
enum { POLICY_COUNT = sizeof policies / sizeof policies[0] };

static ptowsp_program *compile(const layer *l, const policy *p) {
    ptowsp_schedule schedule = {.dispatch = p->dispatch, .lane_count = (uint32_t)l->lane_count};
    if (p->dispatch == PTOWSP_DISPATCH_AFFINITY || p->dispatch == PTOWSP_DISPATCH_HASH) {
        schedule.dispatch_key = ptowsp_task_tag(l->module, "home");
    } else if (p->dispatch == PTOWSP_DISPATCH_CUSTOM) {
        ptowsp_expr place = ptowsp_cast(ptowsp_task_tag(l->module, "place"), PTOWSP_TYPE_I64);
        schedule.dispatch_key = ptowsp_array_at(l->module, "places", PTOWSP_U32, place);
    }
    ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program;
    command_check(l->context, ptowsp_program_create(l->context, l->module, &desc, &program));
    return program;
}

static void bind_tensor(const layer *l, ptowsp_run *run, const char *name, void *data) {
    ptowsp_buffer buffer = {.data = data};  // the rest is declared
    command_check(l->context, ptowsp_run_bind_tensor(run, name, &buffer));
}

static void layer_bind(const layer *l, const policy *p, ptowsp_run *run, uint64_t limit) {
    uint64_t cells = l->expert_count * l->token_count;
    ptowsp_csr csr = {.dtype = PTOWSP_U32,
                      .indptr = l->indptr,
                      .indices = l->indices,
                      .row_count = l->expert_count,
                      .entry_count = l->token_count * l->top_k};
    command_check(l->context, ptowsp_run_bind_symbol(run, "limit", limit));
    command_check(l->context, ptowsp_run_bind_csr(run, "routing", &csr));
    command_check(l->context, ptowsp_run_bind_array(run, "entry", PTOWSP_I32, l->entry, cells));
    command_check(l->context, ptowsp_run_bind_array(run, "rank", PTOWSP_I32, l->rank, cells));
    if (p->dispatch == PTOWSP_DISPATCH_CUSTOM) {
        command_check(l->context,
                      ptowsp_run_bind_array(run, "places", PTOWSP_U32, l->places,
                                            (1 + COPY_MAX) * l->expert_count + l->token_count));
    }
    bind_tensor(l, run, "routes", l->routes);
    bind_tensor(l, run, "gates", l->gates);
    bind_tensor(l, run, "loads", l->loads);
    bind_tensor(l, run, "tokens", l->tokens);
    bind_tensor(l, run, "weights", l->weights);
    bind_tensor(l, run, "parts", l->parts);
    bind_tensor(l, run, "outputs", l->outputs);
}

typedef struct visit {
    ptowsp_cycles start;
    uint32_t lane;
    uint64_t fetched;  // the weights: copy and expert
} visit;

static int compare_visits(const void *a, const void *b) {
    const visit *x = (const visit *)a, *y = (const visit *)b;
    if (x->lane != y->lane) {
        return x->lane < y->lane ? -1 : 1;
    }
    return (x->start > y->start) - (x->start < y->start);
}

// How often a lane applies other weights than the last time. In program order an expert is applied
// to its tokens one after another, each share of `limit` with the next copy.
static uint64_t fetch_count(const layer *l, const ptowsp_run *run, uint64_t limit) {
    const ptowsp_task_record *records = ptowsp_run_records(run);
    visit *visits = (visit *)command_allocate(l->token_count * l->top_k, sizeof *visits);
    uint64_t visit_count = 0, count = 0, task = 0;
    for (uint64_t e = 0; e < l->expert_count; e++) {
        for (uint64_t rank = 0; rank < l->indptr[e + 1] - l->indptr[e]; rank++, task++) {
            while (records[task].kernel != l->apply.id) {
                task++;
            }
            uint64_t copy = rank / limit < COPY_MAX ? rank / limit : COPY_MAX;
            visits[visit_count++] =
                (visit){records[task].start, records[task].lane, copy * l->expert_count + e};
        }
    }
    qsort(visits, (size_t)visit_count, sizeof *visits, compare_visits);
    for (uint64_t i = 0; i < visit_count; i++) {
        count += i == 0 || visits[i].lane != visits[i - 1].lane ||
                 visits[i].fetched != visits[i - 1].fetched;
    }
    free(visits);
    return count;
}

// Busy time of each lane, in percent of the mean.
static void print_lanes(const ptowsp_run *run) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    const ptowsp_lane_stats *lanes = ptowsp_run_lanes(run);
    double mean = (double)stats->busy_cycles / (double)stats->lane_count;
    for (uint32_t i = 0; i < stats->lane_count && i < LANES_SHOWN; i++) {
        printf(" %3.0f", 100.0 * (double)lanes[i].busy_cycles / mean);
    }
    printf("%s\n", stats->lane_count > LANES_SHOWN ? " ..." : "");
}

static void print_run(const ptowsp_run *run, const char *name, uint64_t copies, uint64_t fetches) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    uint64_t longest = 0;
    for (uint32_t i = 0; i < stats->lane_count; i++) {
        uint64_t busy = ptowsp_run_lanes(run)[i].busy_cycles;
        longest = busy > longest ? busy : longest;
    }
    printf("  %-18s %6llu %8llu %6.0f %% %7llu ", name, (unsigned long long)copies,
           (unsigned long long)stats->makespan_cycles,
           100.0 * (double)stats->busy_cycles / ((double)longest * (double)stats->lane_count),
           (unsigned long long)fetches);
    print_lanes(run);
}

// Runs the layer under a limit and prints a line. Returns whether all is well.
static bool run_layer(layer *l, const policy *p, ptowsp_run *run, uint64_t limit) {
    ptowsp_run_options options = {.record_tasks = true};
    layer_clear(l);
    place_by_load(l, limit);
    layer_bind(l, p, run, limit);
    command_check(l->context, ptowsp_run_execute(run, &options));
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    uint64_t copies = stats->task_count - 1 - l->token_count * l->top_k - l->token_count;
    print_run(run, p->name, copies, fetch_count(l, run, limit));
    double error = layer_error(l);
    l->error = error <= l->error ? l->error : error;  // keeps a NaN
    bool is_good = error <= TOLERANCE && copies == copies_wanted(l, limit) &&
                   stats->slot_load_count == l->expert_count;
    if (!is_good) {
        printf("  WRONG: error %.2e, %llu copies of %llu, %llu slot loads\n", error,
               (unsigned long long)copies, (unsigned long long)copies_wanted(l, limit),
               (unsigned long long)stats->slot_load_count);
    }
    return is_good;
}

// Runs the layer on its plan and prints a line. A lane fetches the weights of each of its units, but
// of those that follow one of the same expert.
static bool run_planned(layer *l) {
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_PLAN,
                                .lane_count = (uint32_t)l->lane_count};
    ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    layer_clear(l);
    command_check(l->context, ptowsp_module_create(l->context, NULL, &m));
    schedule.dispatch_key = ptowsp_task_tag(m, "home");  // of tokens, which are in no plan
    planned_make(m, (int64_t)l->token_count, (int64_t)l->top_k, (int64_t)l->expert_count);
    command_check(l->context, ptowsp_program_create(l->context, m, &desc, &program));
    command_check(l->context, ptowsp_run_create(l->context, program, &run));
    const ptowsp_attention_plan units = ptowsp_moe_plan_units(&l->plan);
    command_check(l->context, ptowsp_run_bind_plan(run, "plan", &units));
    bind_tensor(l, run, "sorted", l->sorted);
    bind_tensor(l, run, "weights", l->weights);
    bind_tensor(l, run, "parts", l->parts);
    bind_tensor(l, run, "rows", l->order.rows);
    bind_tensor(l, run, "gates", l->gates);
    bind_tensor(l, run, "outputs", l->outputs);
    command_check(l->context, ptowsp_run_execute(run, NULL));
    uint64_t fetches = 0;
    for (uint32_t lane = 0; lane < l->plan.lane_count; lane++) {
        for (uint32_t i = l->plan.unit_begin[lane]; i < l->plan.unit_begin[lane + 1]; i++) {
            fetches +=
                i == l->plan.unit_begin[lane] ||
                ptowsp_work_expert(&l->plan.units[i]) != ptowsp_work_expert(&l->plan.units[i - 1]);
        }
    }
    print_run(run, "MoE plan", 0, fetches);
    double error = layer_error(l);
    l->error = error <= l->error ? l->error : error;  // keeps a NaN
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    return error <= TOLERANCE;
}

static bool run_policies(layer *l) {
    bool is_good = true;
    printf("\n  %-18s %6s %8s %8s %7s  %s\n", "dispatch", "copies", "cycles", "balance", "fetches",
           "busy time of lanes, % of the mean");
    for (size_t i = 0; i < POLICY_COUNT; i++) {
        ptowsp_program *program = compile(l, &policies[i]);
        ptowsp_run *run;
        command_check(l->context, ptowsp_run_create(l->context, program, &run));
        is_good &= run_layer(l, &policies[i], run, l->token_count);  // no expert has more
        is_good &= run_layer(l, &policies[i], run, l->limit);
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
    }
    is_good &= run_planned(l);
    printf("\n  check     %llu outputs a run, largest error %.2e of the row, %.0e allowed: %s\n",
           (unsigned long long)(l->token_count * DIM), l->error, TOLERANCE,
           is_good ? "good" : "WRONG");
    return is_good;
}

static int descending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void print_routing(const layer *l) {
    uint64_t e = l->expert_count;
    uint32_t *loads = (uint32_t *)command_allocate(e, sizeof *loads);
    uint64_t idle = 0;
    for (uint64_t i = 0; i < e; i++) {
        loads[i] = l->indptr[i + 1] - l->indptr[i];
        idle += loads[i] == 0;
    }
    qsort(loads, e, sizeof *loads, descending);
    printf("%llu tokens, top %llu of %llu experts, skew %g, %llu lanes\n",
           (unsigned long long)l->token_count, (unsigned long long)l->top_k, (unsigned long long)e,
           l->skew, (unsigned long long)l->lane_count);
    printf("  loads     mean %.1f; hottest", (double)(l->token_count * l->top_k) / (double)e);
    for (uint64_t i = 0; i < 6 && i < e; i++) {
        printf(" %u", (unsigned)loads[i]);
    }
    printf("; experts without a token: %llu\n", (unsigned long long)idle);
    printf("  limit     %llu tokens for an expert or a copy of it (%g times the mean)\n",
           (unsigned long long)l->limit, l->factor);
    free(loads);
}

static const char help_text[] = "usage: moe_routing [options]\n"
                                "  --tokens N   1 to 4096 (256)\n"
                                "  --experts N  1 to 512 (64)\n"
                                "  --top-k N    experts of a token, 1 to 8 (4)\n"
                                "  --skew X     exponent of Zipf's law, 0 to 4 (1)\n"
                                "  --factor X   limit by the mean load, 1 to 1000 (2)\n"
                                "  --lanes N    simulated lanes, 1 to 4096 (16)\n"
                                "  --seed N     of routing and data (1)\n";

int main(int argc, char **argv) {
    static layer l;  // zeroed
    l.token_count = 256;
    l.expert_count = 64;
    l.top_k = 4;
    l.lane_count = 16;
    l.seed = 1;
    l.skew = 1.0;
    l.factor = 2.0;
    const command_option options[] = {
        {"--tokens", &l.token_count, NULL, 1, 4096}, {"--experts", &l.expert_count, NULL, 1, 512},
        {"--top-k", &l.top_k, NULL, 1, 8},           {"--skew", NULL, &l.skew, 0, 4},
        {"--factor", NULL, &l.factor, 1, 1000},      {"--lanes", &l.lane_count, NULL, 1, 4096},
        {"--seed", &l.seed, NULL, 0, UINT64_MAX},
    };
    command_parse(argc, argv, help_text, options, sizeof options / sizeof options[0]);
    if (l.top_k > l.expert_count) {
        command_fail("--top-k %llu is more than --experts %llu", (unsigned long long)l.top_k,
                     (unsigned long long)l.expert_count);
    }
    double mean = (double)(l.token_count * l.top_k) / (double)l.expert_count;
    l.limit = (uint64_t)ceil(l.factor * mean);
    command_check(NULL, ptowsp_context_create(NULL, &l.context));
    command_check(l.context, ptowsp_module_create(l.context, NULL, &l.module));
    workload_make(&l);
    layer_make_data(&l);
    print_routing(&l);
    bool is_good = run_policies(&l);
    command_flush();
    ptowsp_module_destroy(l.module);
    ptowsp_context_destroy(l.context);
    free(l.routes);
    free(l.gates);
    free(l.indptr);
    free(l.indices);
    free(l.entry);
    free(l.rank);
    free(l.places);
    free(l.order.counts);
    free(l.order.pairs);
    free(l.order.rows);
    free(l.plan_block);
    free(l.sorted);
    free(l.tokens);
    free(l.weights);
    free(l.loads);
    free(l.parts);
    free(l.outputs);
    return is_good ? 0 : 1;
}
