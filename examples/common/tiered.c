// Kernels know nothing but their tiles and scalars, so that their text is all an emitter needs.

#include "tiered.h"

#include "command.h"
#include "lengths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// -- kernels: compiled here, and kept as text -----------------------------------------------------

// clang-format off
PTOWSP_SOURCE(kernels_source,

enum {
    DIM = 32,     // of a head
    GROUP = 4,    // query heads, all over one KV head
    BLOCK = 256   // tokens of which scores are kept; a short request has one block
};

static float *tile_row(const ptowsp_task *task, uint32_t tile, int64_t row) {
    return (float *)task->tiles[tile].data + row * task->tiles[tile].row_stride;
}

static ptowsp_cycles append(const ptowsp_task *task, void *user) {
    (void)user;
    memcpy(tile_row(task, 1, 0), tile_row(task, 0, 0), 2 * DIM * sizeof(float));
    return 0;  // the cost function tells the time
}

// Attends tile 1 with row `head` of tile 0, a block of tokens after another: leaves (m, l) and acc.
static ptowsp_partial attend(const ptowsp_task *task, int64_t head, float *acc) {
    const float *query = tile_row(task, 0, head);
    int64_t token_count = ptowsp_task_rows(task, 1);
    float scores[BLOCK];
    ptowsp_partial state = {.m = -INFINITY, .l = 0.0f};
    memset(acc, 0, DIM * sizeof *acc);
    for (int64_t begin = 0; begin < token_count; begin += BLOCK) {
        int64_t count = token_count - begin < BLOCK ? token_count - begin : BLOCK;
        float before = state.m;
        for (int64_t t = 0; t < count; t++) {
            const float *key = tile_row(task, 1, begin + t);
            float score = 0.0f;
            for (int d = 0; d < DIM; d++) {
                score += query[d] * key[d];
            }
            scores[t] = score;
            state.m = score > state.m ? score : state.m;
        }
        float scale = expf(before - state.m);
        state.l *= scale;
        for (int d = 0; d < DIM; d++) {
            acc[d] *= scale;
        }
        for (int64_t t = 0; t < count; t++) {
            const float *value = tile_row(task, 1, begin + t) + DIM;
            float weight = expf(scores[t] - state.m);
            state.l += weight;
            for (int d = 0; d < DIM; d++) {
                acc[d] += weight * value[d];
            }
        }
    }
    return state;
}

static ptowsp_cycles attend_whole(const ptowsp_task *task, void *user) {
    (void)user;
    for (int64_t head = 0; head < GROUP; head++) {
        float acc[DIM];
        ptowsp_partial state = attend(task, head, acc);
        ptowsp_merge_finish(&state, acc, DIM, tile_row(task, 2, head));
    }
    return 0;
}

static ptowsp_cycles attend_part(const ptowsp_task *task, void *user) {
    (void)user;
    for (int64_t head = 0; head < GROUP; head++) {
        ptowsp_partial state = attend(task, head, tile_row(task, 3, head));
        memcpy(tile_row(task, 2, head), &state, sizeof state);
    }
    return 0;
}

static ptowsp_cycles merge(const ptowsp_task *task, void *user) {
    (void)user;
    for (int64_t head = 0; head < GROUP; head++) {
        ptowsp_merge_partials((const ptowsp_partial *)tile_row(task, 0, head),
                              tile_row(task, 1, head), (uint32_t)(ptowsp_task_rows(task, 0) / GROUP),
                              GROUP, DIM, tile_row(task, 2, head));
    }
    return 0;
}

// What tasks cost is made up, but of the right kind: a start, then 32 bytes of memory per cycle.
static ptowsp_cycles append_cost(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 50 + 2 * DIM * sizeof(float) / 32;
}

static ptowsp_cycles short_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return 200 + (ptowsp_cycles)ptowsp_task_rows(task, 1) * 2 * DIM * sizeof(float) / 32;
}

static ptowsp_cycles long_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return 500 + (ptowsp_cycles)ptowsp_task_rows(task, 1) * 2 * DIM * sizeof(float) / 32;
}

static ptowsp_cycles merge_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_rows(task, 0) * (DIM + 2) * sizeof(float) / 32;
}
)
// clang-format on

// -- the workload ---------------------------------------------------------------------------------

enum { SHORT, LONG };  // tiers

static ptowsp_tensor tensor_make(ptowsp_module *m, const char *name, int64_t rows, int64_t cols,
                                 bool has_rows_per_request) {
    ptowsp_tensor_desc desc = {.name = name, .dtype = PTOWSP_F32};
    if (has_rows_per_request) {
        desc.shape[desc.rank++] = PTOWSP_DYNAMIC;  // requests
    }
    desc.shape[desc.rank++] = rows;
    desc.shape[desc.rank++] = cols;
    return ptowsp_tensor_make(m, &desc);
}

static void kernels_make(tiered *d) {
    const ptowsp_tile_param query = {
        .name = "query", .direction = PTOWSP_IN, .dtype = PTOWSP_F32, .rows = GROUP, .cols = DIM};
    const ptowsp_tile_param out = {
        .name = "out", .direction = PTOWSP_OUT, .dtype = PTOWSP_F32, .rows = GROUP, .cols = DIM};
    const ptowsp_tile_param kv = {.name = "kv",
                                  .direction = PTOWSP_IN,
                                  .dtype = PTOWSP_F32,
                                  .rows = PTOWSP_DYNAMIC,
                                  .cols = 2 * DIM};
    ptowsp_kernel_desc append_desc = {.name = "append",
                                      .axis_count = 1,
                                      .tiles = {{.name = "fresh",
                                                 .direction = PTOWSP_IN,
                                                 .dtype = PTOWSP_F32,
                                                 .rows = 1,
                                                 .cols = 2 * DIM},
                                                {.name = "kv",
                                                 .direction = PTOWSP_OUT,
                                                 .dtype = PTOWSP_F32,
                                                 .rows = 1,
                                                 .cols = 2 * DIM}},
                                      .fn = append,
                                      .cost = append_cost,
                                      .source = {.text = kernels_source, .cost = "append_cost"}};
    ptowsp_kernel_desc whole_desc = {
        .name = "attend_short",
        .axis_count = 1,
        .tiles = {query, kv, out},
        .fn = attend_whole,
        .cost = short_cost,
        .source = {.text = kernels_source, .fn = "attend_whole", .cost = "short_cost"}};
    ptowsp_kernel_desc part_desc = {.name = "attend_part",
                                    .axis_count = 1,
                                    .tiles = {query,
                                              kv,
                                              {.name = "state",
                                               .direction = PTOWSP_OUT,
                                               .dtype = PTOWSP_F32,
                                               .rows = GROUP,
                                               .cols = 2},
                                              {.name = "acc",
                                               .direction = PTOWSP_OUT,
                                               .dtype = PTOWSP_F32,
                                               .rows = GROUP,
                                               .cols = DIM}},
                                    .fn = attend_part,
                                    .cost = long_cost,
                                    .source = {.text = kernels_source, .cost = "long_cost"}};
    ptowsp_kernel_desc merge_desc = {
        .name = "merge",
        .axis_count = 1,
        .tiles = {{.name = "states",
                   .direction = PTOWSP_IN,
                   .dtype = PTOWSP_F32,
                   .rows = PTOWSP_DYNAMIC,
                   .cols = 2},
                  {.name = "accs",
                   .direction = PTOWSP_IN,
                   .dtype = PTOWSP_F32,
                   .rows = PTOWSP_DYNAMIC,
                   .cols = DIM},
                  out},
        .fn = merge,
        .cost = merge_cost,
        .source = {.text = kernels_source, .cost = "merge_cost"},
    };
    d->append = ptowsp_kernel_make(d->module, &append_desc);
    d->attend_short = ptowsp_kernel_make(d->module, &whole_desc);
    whole_desc.name = "attend_long";
    whole_desc.cost = long_cost;
    whole_desc.source.cost = "long_cost";
    d->attend_long = ptowsp_kernel_make(d->module, &whole_desc);
    d->attend_part = ptowsp_kernel_make(d->module, &part_desc);
    d->merge = ptowsp_kernel_make(d->module, &merge_desc);
}

static ptowsp_expr field(ptowsp_expr variable, ptowsp_plan_field which) {
    return ptowsp_loop_field(variable, which);
}

// A unit: by its tier and whether it is whole, one of three kernels.
static void unit_make(const tiered *d, ptowsp_tensor kv, ptowsp_tensor queries,
                      ptowsp_tensor states, ptowsp_tensor accs, ptowsp_tensor outputs,
                      ptowsp_expr unit) {
    ptowsp_module *m = d->module;
    ptowsp_expr request = field(unit, PTOWSP_PLAN_REQUEST);
    ptowsp_expr first = ptowsp_add(ptowsp_array_at(m, "kv_start", PTOWSP_I64, request),
                                   field(unit, PTOWSP_PLAN_KV_START));
    ptowsp_expr slot = ptowsp_mul(field(unit, PTOWSP_PLAN_SLOT), ptowsp_i64(m, GROUP));
    ptowsp_view query = {.tensor = queries, .index = {request}},
                out = {.tensor = outputs, .index = {request}};
    ptowsp_view tokens = {.tensor = kv, .row = first, .row_count = field(unit, PTOWSP_PLAN_KV_LEN)};
    ptowsp_task_desc whole = {.axes = {request}, .views = {query, tokens, out}};
    ptowsp_task_desc part = {
        .kernel = d->attend_part,
        .axes = {request},
        .views = {query, tokens, {.tensor = states, .row = slot}, {.tensor = accs, .row = slot}}};
    PTOWSP_WHEN(m, field(unit, PTOWSP_PLAN_IS_WHOLE)) {
        PTOWSP_WHEN(m, ptowsp_eq(field(unit, PTOWSP_PLAN_TIER), ptowsp_i64(m, SHORT))) {
            whole.kernel = d->attend_short;
            ptowsp_task_make(m, &whole);
        }
        PTOWSP_OTHERWISE(m) {
            whole.kernel = d->attend_long;
            ptowsp_task_make(m, &whole);
        }
    }
    PTOWSP_OTHERWISE(m) {
        ptowsp_task_make(m, &part);
    }
}

void tiered_make(tiered *d, ptowsp_context *context, ptowsp_module *m) {
    d->context = context;
    d->module = m;
    kernels_make(d);
    ptowsp_tensor kv = tensor_make(m, "kv", PTOWSP_DYNAMIC, 2 * DIM, false);
    ptowsp_tensor fresh = tensor_make(m, "fresh", PTOWSP_DYNAMIC, 2 * DIM, false);
    ptowsp_tensor queries = tensor_make(m, "queries", GROUP, DIM, true);
    ptowsp_tensor states = tensor_make(m, "states", PTOWSP_DYNAMIC, 2, false);
    ptowsp_tensor accs = tensor_make(m, "accs", PTOWSP_DYNAMIC, DIM, false);
    ptowsp_tensor outputs = tensor_make(m, "outputs", GROUP, DIM, true);
    ptowsp_axis requests = ptowsp_axis_dynamic(m, "requests");
    ptowsp_axis units = ptowsp_axis_plan(m, "attention");
    ptowsp_axis merges = ptowsp_axis_plan_merges(m, "attention");
    ptowsp_expr one = ptowsp_i64(m, 1), group = ptowsp_i64(m, GROUP);

    PTOWSP_WORKLOAD(m, "decode") {
        PTOWSP_COMBINE(m) {
            PTOWSP_PARALLEL(m, request, requests) {
                ptowsp_expr length = ptowsp_array_at(m, "kv_length", PTOWSP_I32, request);
                ptowsp_expr start = ptowsp_array_at(m, "kv_start", PTOWSP_I64, request);
                ptowsp_expr last = ptowsp_add(start, ptowsp_sub(length, one));
                ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = d->append,
                                                        .axes = {request},
                                                        .views = {{.tensor = fresh, .row = request},
                                                                  {.tensor = kv, .row = last}}});
            }
            PTOWSP_PARALLEL(m, unit, units) {
                unit_make(d, kv, queries, states, accs, outputs, unit);
            }
            PTOWSP_PARALLEL(m, part, merges) {
                ptowsp_expr request = field(part, PTOWSP_PLAN_REQUEST);
                ptowsp_expr first = ptowsp_mul(field(part, PTOWSP_PLAN_SLOT_FIRST), group);
                ptowsp_expr count = ptowsp_mul(field(part, PTOWSP_PLAN_SLOT_COUNT), group);
                ptowsp_task_make(m,
                                 &(ptowsp_task_desc){
                                     .kernel = d->merge,
                                     .axes = {request},
                                     .views = {{.tensor = states, .row = first, .row_count = count},
                                               {.tensor = accs, .row = first, .row_count = count},
                                               {.tensor = outputs, .index = {request}}}});
            }
        }
    }
}

// -- data -----------------------------------------------------------------------------------------

static void fill_random(float *out, uint64_t count, float scale, uint64_t seed) {
    for (uint64_t i = 0; i < count; i++) {
        out[i] = (float)(lengths_random_unit(&seed) * 2.0 - 1.0) * scale;
    }
}

void tiered_free_data(tiered *d) {
    free(d->kv_lengths);
    free(d->kv_starts);
    free(d->plan_block);
    free(d->kv);
    free(d->fresh);
    free(d->queries);
    free(d->states);
    free(d->accs);
    free(d->outputs);
    d->kv_lengths = NULL;
    d->kv_starts = NULL;
    d->plan_block = NULL;
    d->kv = d->fresh = d->queries = d->states = d->accs = d->outputs = NULL;
    d->row_count = 0;
}

// Lengths before the first step, and memory with room for the last one. The first request outgrows
// its tier in the second step.
void tiered_make_data(tiered *d, uint64_t batch, uint64_t seed) {
    uint64_t n = batch;
    tiered_free_data(d);
    d->batch = batch;
    d->seed = seed;
    d->kv_lengths = (int32_t *)command_allocate(n, sizeof *d->kv_lengths);
    d->kv_starts = (int64_t *)command_allocate(n, sizeof *d->kv_starts);
    lengths_generate(d->seed, (uint32_t)n, d->kv_lengths);
    d->kv_lengths[0] = TIERED_SHORT_MAX - 1;
    for (uint64_t i = 0; i < n; i++) {
        d->kv_starts[i] = d->row_count;
        d->row_count += d->kv_lengths[i] + TIERED_STEPS;
    }
    uint64_t rows = (uint64_t)d->row_count;
    d->kv = (float *)command_allocate(rows * 2 * DIM, sizeof(float));
    d->fresh = (float *)command_allocate(n * 2 * DIM, sizeof(float));
    d->queries = (float *)command_allocate(n * GROUP * DIM, sizeof(float));
    d->outputs = (float *)command_allocate(n * GROUP * DIM, sizeof(float));
    for (uint64_t i = 0; i < n; i++) {  // only what is there: the rest is NaN, and must not be read
        uint64_t tokens = (uint64_t)d->kv_lengths[i], start = (uint64_t)d->kv_starts[i];
        fill_random(d->kv + start * 2 * DIM, tokens * 2 * DIM, 1.0f, d->seed ^ (i << 32));
        for (uint64_t k = tokens * 2 * DIM; k < (tokens + TIERED_STEPS) * 2 * DIM; k++) {
            d->kv[start * 2 * DIM + k] = NAN;
        }
    }
}

// The next step: a token more for each request. Results of the last one become NaN.
void tiered_step(tiered *d, uint64_t step) {
    uint64_t n = d->batch;
    for (uint64_t i = 0; i < n; i++) {
        d->kv_lengths[i]++;
    }
    fill_random(d->fresh, n * 2 * DIM, 1.0f, d->seed + 1000 * step + 1);
    fill_random(d->queries, n * GROUP * DIM, 1.0f, d->seed + 1000 * step + 2);
    for (uint64_t i = 0; i < n * GROUP * DIM; i++) {
        d->outputs[i] = NAN;
    }
}

// The costs are those of the kernels' cost functions, so the plan predicts cycles.
void tiered_plan(tiered *d, uint32_t lane_count) {
    const ptowsp_tier tiers[] = {
        {.id = SHORT, .length_min = 1, .length_max = TIERED_SHORT_MAX},
        {.id = LONG, .length_min = TIERED_SHORT_MAX + 1, .length_max = INT32_MAX}};
    const ptowsp_attention_batch batch = {.kv_lengths = d->kv_lengths,
                                          .sequence_count = (uint32_t)d->batch};
    const ptowsp_attention_config config = {
        .kv_head_count = 1,
        .group = GROUP,
        .lane_count = lane_count,
        .is_causal = true,
        .page_size = TIERED_PAGE,
        .tile_rows = GROUP,
        .cost = {.per_unit = 500,
                 .per_token = 2 * DIM * sizeof(float) / 32.0,
                 .per_merged_row = (DIM + 2) * sizeof(float) / 32.0},
        .tiers = tiers,
        .tier_count = 2};
    ptowsp_attention_sizes sizes;
    command_check(NULL, ptowsp_attention_size(&batch, &config, &sizes, NULL));
    free(d->plan_block);
    free(d->states);
    free(d->accs);
    d->plan_block = command_allocate(sizes.block_bytes, 1);
    command_check(NULL, ptowsp_attention_place(&sizes, d->plan_block, sizes.block_bytes, &d->plan));
    command_check(NULL, ptowsp_attention_generate(&batch, &config, &d->plan, NULL));
    uint64_t rows = sizes.slot_count * GROUP;
    d->states = (float *)command_allocate(rows * 2, sizeof(float));
    d->accs = (float *)command_allocate(rows * DIM, sizeof(float));
    for (uint64_t i = 0; i < rows * 2; i++) {
        d->states[i] = NAN;
    }
}

uint64_t tiered_output_count(const tiered *d) {
    return d->batch * GROUP * DIM;
}

static void bind_tensor(const tiered *d, ptowsp_run *run, const char *name, float *data,
                        uint32_t rank, int64_t a, int64_t b, int64_t c) {
    ptowsp_buffer buffer = {.data = data, .rank = rank, .shape = {a, b, c}};
    command_check(d->context, ptowsp_run_bind_tensor(run, name, &buffer));
}

// All that a step is, bound to a run. Only pointers and sizes are kept, nothing is copied.
void tiered_bind(const tiered *d, ptowsp_run *run) {
    int64_t n = (int64_t)d->batch, parts = (int64_t)d->plan.slot_count * GROUP;
    command_check(d->context, ptowsp_run_bind_size(run, "requests", n));
    command_check(d->context, ptowsp_run_bind_plan(run, "attention", &d->plan));
    command_check(d->context,
                  ptowsp_run_bind_array(run, "kv_length", PTOWSP_I32, d->kv_lengths, d->batch));
    command_check(d->context,
                  ptowsp_run_bind_array(run, "kv_start", PTOWSP_I64, d->kv_starts, d->batch));
    bind_tensor(d, run, "kv", d->kv, 2, d->row_count, 2 * DIM, 0);
    bind_tensor(d, run, "fresh", d->fresh, 2, n, 2 * DIM, 0);
    bind_tensor(d, run, "queries", d->queries, 3, n, GROUP, DIM);
    bind_tensor(d, run, "states", d->states, 2, parts, 2, 0);
    bind_tensor(d, run, "accs", d->accs, 2, parts, DIM, 0);
    bind_tensor(d, run, "outputs", d->outputs, 3, n, GROUP, DIM);
}

// -- check ----------------------------------------------------------------------------------------

// One output row against attention in double, in two plain passes: the relative error.
static double row_error(const tiered *d, uint64_t request, uint64_t head, double *scores) {
    const float *kv = d->kv + d->kv_starts[request] * 2 * DIM;
    const float *query = d->queries + (request * GROUP + head) * DIM;
    const float *output = d->outputs + (request * GROUP + head) * DIM;
    double top = -INFINITY, total = 0.0, sum[DIM] = {0};
    for (int64_t t = 0; t < d->kv_lengths[request]; t++) {
        scores[t] = 0.0;
        for (int64_t i = 0; i < DIM; i++) {
            scores[t] += (double)query[i] * (double)kv[t * 2 * DIM + i];
        }
        top = fmax(top, scores[t]);
    }
    for (int64_t t = 0; t < d->kv_lengths[request]; t++) {
        double weight = exp(scores[t] - top);
        total += weight;
        for (int64_t i = 0; i < DIM; i++) {
            sum[i] += weight * (double)kv[t * 2 * DIM + DIM + i];
        }
    }
    double largest = 0.0, difference = 0.0;
    for (int i = 0; i < DIM; i++) {
        largest = fmax(largest, fabs(sum[i] / total));
        double off = fabs(sum[i] / total - (double)output[i]);
        difference = off <= difference ? difference : off;  // keeps a NaN
    }
    return difference / largest;
}

// The largest error of all outputs, NaN if one is. The reference reads the token of this step where
// append has put it; that it is the right one is looked at first.
double tiered_error(const tiered *d) {
    int32_t longest = 1;
    for (uint64_t i = 0; i < d->batch; i++) {
        longest = d->kv_lengths[i] > longest ? d->kv_lengths[i] : longest;
    }
    double *scores = (double *)command_allocate((uint64_t)longest, sizeof *scores);
    double largest = 0.0;
    for (uint64_t i = 0; i < d->batch; i++) {
        const float *token = d->kv + (d->kv_starts[i] + d->kv_lengths[i] - 1) * 2 * DIM;
        if (memcmp(token, d->fresh + i * 2 * DIM, 2 * DIM * sizeof(float)) != 0) {
            largest = NAN;
        }
        for (uint64_t head = 0; head < GROUP; head++) {
            double error = row_error(d, i, head, scores);
            largest = error <= largest ? largest : error;
        }
    }
    free(scores);
    return largest;
}
