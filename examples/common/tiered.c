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
    CHUNK = 1024  // tokens of a chunk; the longest short request
};

static float *tile_row(const ptowsp_task *task, uint32_t tile, int64_t row) {
    return (float *)task->tiles[tile].data + row * task->tiles[tile].row_stride;
}

static ptowsp_cycles append(const ptowsp_task *task, void *user) {
    (void)user;
    memcpy(tile_row(task, 1, 0), tile_row(task, 0, 0), 2 * DIM * sizeof(float));
    return 0;  // the cost function tells the time
}

// Attends the first token_count rows of tile 1 with row `head` of tile 0: leaves (m, l) and acc.
static ptowsp_partial attend(const ptowsp_task *task, int64_t head, float *acc) {
    const float *query = tile_row(task, 0, head);
    int64_t token_count = (int64_t)ptowsp_task_scalar(task, 0);
    float scores[CHUNK];
    ptowsp_partial state = {-INFINITY, 0.0f};
    for (int64_t t = 0; t < token_count; t++) {
        const float *key = tile_row(task, 1, t);
        float score = 0.0f;
        for (int d = 0; d < DIM; d++) {
            score += query[d] * key[d];
        }
        scores[t] = score;
        state.m = score > state.m ? score : state.m;
    }
    memset(acc, 0, DIM * sizeof *acc);
    for (int64_t t = 0; t < token_count; t++) {
        const float *value = tile_row(task, 1, t) + DIM;
        float weight = expf(scores[t] - state.m);
        state.l += weight;
        for (int d = 0; d < DIM; d++) {
            acc[d] += weight * value[d];
        }
    }
    return state;
}

static ptowsp_cycles attend_short(const ptowsp_task *task, void *user) {
    (void)user;
    for (int64_t head = 0; head < GROUP; head++) {
        float acc[DIM];
        ptowsp_partial state = attend(task, head, acc);
        ptowsp_merge_finish(&state, acc, DIM, tile_row(task, 2, head));
    }
    return 0;
}

static ptowsp_cycles attend_chunk(const ptowsp_task *task, void *user) {
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
                              tile_row(task, 1, head), (uint32_t)ptowsp_task_scalar(task, 0), GROUP,
                              DIM, tile_row(task, 2, head));
    }
    return 0;
}

// What tasks cost is made up, but of the right kind: a start, then 32 bytes of memory per cycle.
static ptowsp_cycles append_cost(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 50 + 2 * DIM * sizeof(float) / 32;
}

static ptowsp_cycles attend_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return 500 + ptowsp_task_scalar(task, 0) * 2 * DIM * sizeof(float) / 32;
}

static ptowsp_cycles merge_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return 100 + ptowsp_task_scalar(task, 0) * GROUP * (DIM + 2) * sizeof(float) / 32;
}
)
// clang-format on

// -- the workload ---------------------------------------------------------------------------------

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
    const ptowsp_tile_param query = {"query", PTOWSP_IN, PTOWSP_F32, GROUP, DIM};
    const ptowsp_tile_param out = {"out", PTOWSP_OUT, PTOWSP_F32, GROUP, DIM};
    const ptowsp_tile_param chunk = {"kv", PTOWSP_IN, PTOWSP_F32, CHUNK, 2 * DIM};
    const ptowsp_scalar_param tokens = {"tokens", PTOWSP_TYPE_I64};
    ptowsp_kernel_desc append_desc = {.name = "append",
                                      .axis_count = 1,
                                      .tiles = {{"fresh", PTOWSP_IN, PTOWSP_F32, 1, 2 * DIM},
                                                {"kv", PTOWSP_OUT, PTOWSP_F32, 1, 2 * DIM}},
                                      .fn = append,
                                      .cost = append_cost,
                                      .source = {.text = kernels_source, .cost = "append_cost"}};
    ptowsp_kernel_desc short_desc = {.name = "attend_short",
                                     .axis_count = 1,
                                     .tiles = {query, chunk, out},
                                     .scalars = {tokens},
                                     .fn = attend_short,
                                     .cost = attend_cost,
                                     .source = {.text = kernels_source, .cost = "attend_cost"}};
    ptowsp_kernel_desc chunk_desc = {.name = "attend_chunk",
                                     .axis_count = 1,
                                     .tiles = {query,
                                               chunk,
                                               {"state", PTOWSP_OUT, PTOWSP_F32, GROUP, 2},
                                               {"acc", PTOWSP_OUT, PTOWSP_F32, GROUP, DIM}},
                                     .scalars = {tokens},
                                     .fn = attend_chunk,
                                     .cost = attend_cost,
                                     .source = {.text = kernels_source, .cost = "attend_cost"}};
    ptowsp_kernel_desc merge_desc = {
        .name = "merge",
        .axis_count = 1,
        .tiles = {{"states", PTOWSP_IN, PTOWSP_F32, PTOWSP_DYNAMIC, 2},
                  {"accs", PTOWSP_IN, PTOWSP_F32, PTOWSP_DYNAMIC, DIM},
                  out},
        .scalars = {{"parts", PTOWSP_TYPE_I64}},
        .fn = merge,
        .cost = merge_cost,
        .source = {.text = kernels_source, .cost = "merge_cost"},
    };
    d->append = ptowsp_kernel_make(d->module, &append_desc);
    d->attend_short = ptowsp_kernel_make(d->module, &short_desc);
    d->attend_chunk = ptowsp_kernel_make(d->module, &chunk_desc);
    d->merge = ptowsp_kernel_make(d->module, &merge_desc);
}

void tiered_make(tiered *d, ptowsp_context *context, ptowsp_module *m) {
    d->context = context;
    d->module = m;
    kernels_make(d);
    ptowsp_tensor kv = tensor_make(m, "kv", PTOWSP_DYNAMIC, 2 * DIM, false);
    ptowsp_tensor fresh = tensor_make(m, "fresh", PTOWSP_DYNAMIC, 2 * DIM, false);
    ptowsp_tensor queries = tensor_make(m, "queries", GROUP, DIM, true);
    ptowsp_tensor states = tensor_make(m, "states", PTOWSP_DYNAMIC, 2, true);
    ptowsp_tensor accs = tensor_make(m, "accs", PTOWSP_DYNAMIC, DIM, true);
    ptowsp_tensor outputs = tensor_make(m, "outputs", GROUP, DIM, true);
    ptowsp_axis requests = ptowsp_axis_dynamic(m, "requests");
    ptowsp_axis chunks = ptowsp_axis_ragged(m, "chunks");
    ptowsp_expr one = ptowsp_i64(m, 1), whole = ptowsp_i64(m, CHUNK);

    PTOWSP_WORKLOAD(m, "decode") {
        PTOWSP_PARALLEL(m, request, requests) {
            ptowsp_expr length = ptowsp_array_at(m, "kv_length", PTOWSP_I32, request);
            ptowsp_expr start = ptowsp_array_at(m, "kv_start", PTOWSP_I64, request);
            ptowsp_view query = {queries, .index = {request}}, out = {outputs, .index = {request}};

            ptowsp_expr last = ptowsp_add(start, ptowsp_sub(length, one));
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = d->append,
                                       .axes = {request},
                                       .views = {{fresh, .row = request}, {kv, .row = last}}});
            PTOWSP_WHEN(m, ptowsp_le(length, whole)) {
                ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = d->attend_short,
                                                        .axes = {request},
                                                        .views = {query, {kv, .row = start}, out},
                                                        .scalars = {length}});
            }
            PTOWSP_OTHERWISE(m) {
                PTOWSP_PARALLEL(m, chunk, ptowsp_axis_row(m, chunks, request)) {
                    ptowsp_expr first = ptowsp_mul(chunk, whole);
                    ptowsp_expr part = ptowsp_mul(chunk, ptowsp_i64(m, GROUP));
                    ptowsp_task_make(
                        m, &(ptowsp_task_desc){
                               .kernel = d->attend_chunk,
                               .axes = {request},
                               .views = {query,
                                         {kv, .row = ptowsp_add(start, first)},
                                         {states, .index = {request}, .row = part},
                                         {accs, .index = {request}, .row = part}},
                               .scalars = {ptowsp_min(whole, ptowsp_sub(length, first))}});
                }
                ptowsp_expr count = ptowsp_array_at(m, "chunks", PTOWSP_I32, request);
                ptowsp_task_make(
                    m, &(ptowsp_task_desc){
                           .kernel = d->merge,
                           .axes = {request},
                           .views = {{states, .index = {request}}, {accs, .index = {request}}, out},
                           .scalars = {count}});
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

static int32_t chunk_count_of(int32_t length) {
    return (length + CHUNK - 1) / CHUNK;
}

void tiered_free_data(tiered *d) {
    free(d->kv_lengths);
    free(d->chunk_counts);
    free(d->kv_starts);
    free(d->kv);
    free(d->fresh);
    free(d->queries);
    free(d->states);
    free(d->accs);
    free(d->outputs);
    d->kv_lengths = d->chunk_counts = NULL;
    d->kv_starts = NULL;
    d->kv = d->fresh = d->queries = d->states = d->accs = d->outputs = NULL;
    d->row_count = d->chunk_max = 0;
}

// Lengths before the first step, and memory with room for the last one. A request's rows begin at
// a multiple of CHUNK, as if a chunk were a page: no chunk reads what another request appends.
void tiered_make_data(tiered *d, uint64_t batch, uint64_t seed) {
    uint64_t n = batch;
    tiered_free_data(d);
    d->batch = batch;
    d->seed = seed;
    d->kv_lengths = (int32_t *)command_allocate(n, sizeof *d->kv_lengths);
    d->chunk_counts = (int32_t *)command_allocate(n, sizeof *d->chunk_counts);
    d->kv_starts = (int64_t *)command_allocate(n, sizeof *d->kv_starts);
    lengths_generate(d->seed, (uint32_t)n, d->kv_lengths);
    d->kv_lengths[0] = CHUNK - 1;  // the first one outgrows its tier in the second step
    for (uint64_t i = 0; i < n; i++) {
        int32_t count = chunk_count_of(d->kv_lengths[i] + TIERED_STEPS);
        d->kv_starts[i] = d->row_count;
        d->row_count += (int64_t)count * CHUNK;
        d->chunk_max = count > d->chunk_max ? count : d->chunk_max;
    }
    uint64_t parts = n * (uint64_t)d->chunk_max * GROUP, rows = (uint64_t)d->row_count;
    d->kv = (float *)command_allocate(rows * 2 * DIM, sizeof(float));
    d->fresh = (float *)command_allocate(n * 2 * DIM, sizeof(float));
    d->queries = (float *)command_allocate(n * GROUP * DIM, sizeof(float));
    d->states = (float *)command_allocate(parts * 2, sizeof(float));
    d->accs = (float *)command_allocate(parts * DIM, sizeof(float));
    d->outputs = (float *)command_allocate(n * GROUP * DIM, sizeof(float));
    for (uint64_t i = 0; i < n; i++) {  // only what is there: the rest is NaN, and must not be read
        uint64_t tokens = (uint64_t)d->kv_lengths[i], start = (uint64_t)d->kv_starts[i];
        uint64_t room = (uint64_t)chunk_count_of(d->kv_lengths[i] + TIERED_STEPS) * CHUNK;
        fill_random(d->kv + start * 2 * DIM, tokens * 2 * DIM, 1.0f, d->seed ^ (i << 32));
        for (uint64_t k = tokens * 2 * DIM; k < room * 2 * DIM; k++) {
            d->kv[start * 2 * DIM + k] = NAN;
        }
    }
}

// The next step: a token more for each request. Results of the last one become NaN.
void tiered_step(tiered *d, uint64_t step) {
    uint64_t n = d->batch, parts = n * (uint64_t)d->chunk_max * GROUP;
    for (uint64_t i = 0; i < n; i++) {
        d->kv_lengths[i]++;
        d->chunk_counts[i] = chunk_count_of(d->kv_lengths[i]);
    }
    fill_random(d->fresh, n * 2 * DIM, 1.0f, d->seed + 1000 * step + 1);
    fill_random(d->queries, n * GROUP * DIM, 1.0f, d->seed + 1000 * step + 2);
    for (uint64_t i = 0; i < parts * 2; i++) {
        d->states[i] = NAN;
    }
    for (uint64_t i = 0; i < n * GROUP * DIM; i++) {
        d->outputs[i] = NAN;
    }
}

bool tiered_is_short(const tiered *d, uint64_t request) {
    return d->kv_lengths[request] <= CHUNK;
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
    int64_t n = (int64_t)d->batch, parts = d->chunk_max * GROUP;
    command_check(d->context, ptowsp_run_bind_size(run, "requests", n));
    command_check(d->context,
                  ptowsp_run_bind_array(run, "kv_length", PTOWSP_I32, d->kv_lengths, d->batch));
    command_check(d->context,
                  ptowsp_run_bind_array(run, "kv_start", PTOWSP_I64, d->kv_starts, d->batch));
    command_check(d->context,
                  ptowsp_run_bind_lengths(run, "chunks", PTOWSP_I32, d->chunk_counts, d->batch));
    bind_tensor(d, run, "kv", d->kv, 2, d->row_count, 2 * DIM, 0);
    bind_tensor(d, run, "fresh", d->fresh, 2, n, 2 * DIM, 0);
    bind_tensor(d, run, "queries", d->queries, 3, n, GROUP, DIM);
    bind_tensor(d, run, "states", d->states, 3, n, parts, 2);
    bind_tensor(d, run, "accs", d->accs, 3, n, parts, DIM);
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
    double *scores = (double *)command_allocate((uint64_t)d->chunk_max * CHUNK, sizeof *scores);
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
