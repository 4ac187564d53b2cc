// Decode attention as a workload: what a task is depends on the lengths of the moment, the program
// does not. It is compiled once; then each of three decode steps binds lengths that have grown.
//
//      parallel request
//          append                                   the new token's K and V, to the cache
//          when kv_length <= 1024
//              attend_short                         -> out
//          otherwise
//              parallel chunk of request            a ragged axis: ceil(kv_length / 1024)
//                  attend_chunk                     -> a partial state
//              merge                                -> out
//
// Nothing says which of these wait for which. The tiles do: a chunk reads rows of the cache, so
// only a request's last one waits for its append, and a merge waits for the chunks of its request.
//
// Kernels compute in f32, on the calling thread; outputs are compared with attention in double.
// Their cost functions say how long each takes, so the last step is measured under other schedules
// without running a kernel. What the tables show:
//
//      issue      in order, a merge that waits for its chunks holds up every request behind it;
//                 dataflow lets them pass
//      dispatch   affinity keeps the cache of a request with one lane, and then the longest one is
//                 the makespan; round robin spreads chunks, but lanes take their tasks in order;
//                 under work stealing no lane waits while there is something to do
//      window     tasks that wait fill it up, and then lanes run dry

#include "ptowsp.h"

#include "common/command.h"
#include "common/lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIM = 32,      // of a head
    GROUP = 4,     // query heads, all over one KV head
    CHUNK = 1024,  // tokens of a chunk; the longest short request
    STEPS = 3
};

#define TOLERANCE 1e-4  // of the largest magnitude in an output row

typedef struct decode {
    uint64_t batch, seed, lane_count, window;
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_kernel append, attend_short, attend_chunk, merge;

    int32_t *kv_lengths;    // [request], with the token of this step
    int32_t *chunk_counts;  // [request]
    int64_t *kv_starts;     // [request] its first row in the cache; a multiple of CHUNK
    int64_t row_count, chunk_max;

    float *kv;        // [row][K: DIM, V: DIM]
    float *fresh;     // [request][K, V] of this step's token
    float *queries;   // [request][GROUP][DIM]
    float *states;    // [request][chunk][GROUP][m, l]
    float *accs;      // [request][chunk][GROUP][DIM]
    float *outputs;   // [request][GROUP][DIM]
    uint32_t *owner;  // [task] its request, noted by the kernels' costs
    uint64_t owner_count;
} decode;

// -- kernels --------------------------------------------------------------------------------------

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
static ptowsp_cycles cost(const ptowsp_task *task, ptowsp_cycles start, uint64_t bytes,
                          void *user) {
    decode *d = (decode *)user;
    if (task->index < d->owner_count) {
        d->owner[task->index] = (uint32_t)ptowsp_task_axis(task, 0);
    }
    return start + bytes / 32;
}

static ptowsp_cycles append_cost(const ptowsp_task *task, void *user) {
    return cost(task, 50, 2 * DIM * sizeof(float), user);
}

static ptowsp_cycles attend_cost(const ptowsp_task *task, void *user) {
    return cost(task, 500, ptowsp_task_scalar(task, 0) * 2 * DIM * sizeof(float), user);
}

static ptowsp_cycles merge_cost(const ptowsp_task *task, void *user) {
    return cost(task, 100, ptowsp_task_scalar(task, 0) * GROUP * (DIM + 2) * sizeof(float), user);
}

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

static void kernels_make(decode *d) {
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
                                      .user = d};
    ptowsp_kernel_desc short_desc = {.name = "attend_short",
                                     .axis_count = 1,
                                     .tiles = {query, chunk, out},
                                     .scalars = {tokens},
                                     .fn = attend_short,
                                     .cost = attend_cost,
                                     .user = d};
    ptowsp_kernel_desc chunk_desc = {.name = "attend_chunk",
                                     .axis_count = 1,
                                     .tiles = {query,
                                               chunk,
                                               {"state", PTOWSP_OUT, PTOWSP_F32, GROUP, 2},
                                               {"acc", PTOWSP_OUT, PTOWSP_F32, GROUP, DIM}},
                                     .scalars = {tokens},
                                     .fn = attend_chunk,
                                     .cost = attend_cost,
                                     .user = d};
    ptowsp_kernel_desc merge_desc = {
        .name = "merge",
        .axis_count = 1,
        .tiles = {{"states", PTOWSP_IN, PTOWSP_F32, PTOWSP_DYNAMIC, 2},
                  {"accs", PTOWSP_IN, PTOWSP_F32, PTOWSP_DYNAMIC, DIM},
                  out},
        .scalars = {{"parts", PTOWSP_TYPE_I64}},
        .fn = merge,
        .cost = merge_cost,
        .user = d,
    };
    d->append = ptowsp_kernel_make(d->module, &append_desc);
    d->attend_short = ptowsp_kernel_make(d->module, &short_desc);
    d->attend_chunk = ptowsp_kernel_make(d->module, &chunk_desc);
    d->merge = ptowsp_kernel_make(d->module, &merge_desc);
}

static void workload_make(decode *d) {
    ptowsp_module *m = d->module;
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

// Lengths before the first step, and memory with room for the last one. A request's rows begin at
// a multiple of CHUNK, as if a chunk were a page: no chunk reads what another request appends.
static void decode_make_data(decode *d) {
    uint64_t n = d->batch;
    d->kv_lengths = (int32_t *)command_allocate(n, sizeof *d->kv_lengths);
    d->chunk_counts = (int32_t *)command_allocate(n, sizeof *d->chunk_counts);
    d->kv_starts = (int64_t *)command_allocate(n, sizeof *d->kv_starts);
    lengths_generate(d->seed, (uint32_t)n, d->kv_lengths);
    d->kv_lengths[0] = CHUNK - 1;  // the first one outgrows its tier in the second step
    for (uint64_t i = 0; i < n; i++) {
        int32_t count = chunk_count_of(d->kv_lengths[i] + STEPS);
        d->kv_starts[i] = d->row_count;
        d->row_count += (int64_t)count * CHUNK;
        d->chunk_max = count > d->chunk_max ? count : d->chunk_max;
        d->owner_count += (uint64_t)count + 2;
    }
    uint64_t parts = n * (uint64_t)d->chunk_max * GROUP, rows = (uint64_t)d->row_count;
    d->kv = (float *)command_allocate(rows * 2 * DIM, sizeof(float));
    d->fresh = (float *)command_allocate(n * 2 * DIM, sizeof(float));
    d->queries = (float *)command_allocate(n * GROUP * DIM, sizeof(float));
    d->states = (float *)command_allocate(parts * 2, sizeof(float));
    d->accs = (float *)command_allocate(parts * DIM, sizeof(float));
    d->outputs = (float *)command_allocate(n * GROUP * DIM, sizeof(float));
    d->owner = (uint32_t *)command_allocate(d->owner_count, sizeof *d->owner);
    for (uint64_t i = 0; i < n; i++) {  // only what is there: the rest is NaN, and must not be read
        uint64_t tokens = (uint64_t)d->kv_lengths[i], start = (uint64_t)d->kv_starts[i];
        uint64_t room = (uint64_t)chunk_count_of(d->kv_lengths[i] + STEPS) * CHUNK;
        fill_random(d->kv + start * 2 * DIM, tokens * 2 * DIM, 1.0f, d->seed ^ (i << 32));
        for (uint64_t k = tokens * 2 * DIM; k < room * 2 * DIM; k++) {
            d->kv[start * 2 * DIM + k] = NAN;
        }
    }
}

// The next step: a token more for each request. Results of the last one become NaN.
static void decode_step(decode *d, uint64_t step) {
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

static void bind_tensor(const decode *d, ptowsp_run *run, const char *name, float *data,
                        uint32_t rank, int64_t a, int64_t b, int64_t c) {
    ptowsp_buffer buffer = {.data = data, .rank = rank, .shape = {a, b, c}};
    command_check(d->context, ptowsp_run_bind_tensor(run, name, &buffer));
}

// All that a step is, bound to a run. Only pointers and sizes are kept, nothing is copied.
static void decode_bind(const decode *d, ptowsp_run *run) {
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
static double row_error(const decode *d, uint64_t request, uint64_t head, double *scores) {
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
static double decode_error(const decode *d) {
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

// -- schedules ------------------------------------------------------------------------------------

typedef struct policy {
    const char *name;
    ptowsp_issue issue;
    ptowsp_dispatch dispatch;
} policy;

static const policy policies[] = {
    {"in order, affinity by request", PTOWSP_ISSUE_IN_ORDER, PTOWSP_DISPATCH_AFFINITY},
    {"dataflow, affinity by request", PTOWSP_ISSUE_DATAFLOW, PTOWSP_DISPATCH_AFFINITY},
    {"in order, round robin", PTOWSP_ISSUE_IN_ORDER, PTOWSP_DISPATCH_ROUND_ROBIN},
    {"dataflow, round robin", PTOWSP_ISSUE_DATAFLOW, PTOWSP_DISPATCH_ROUND_ROBIN},
    {"in order, work stealing", PTOWSP_ISSUE_IN_ORDER, PTOWSP_DISPATCH_WORK_STEALING},
    {"dataflow, work stealing", PTOWSP_ISSUE_DATAFLOW, PTOWSP_DISPATCH_WORK_STEALING},
};
enum { POLICY_COUNT = sizeof policies / sizeof policies[0], AFFINITY = 1, STEALING = 5 };

// Compiles the workload under a schedule. Tasks wait for data in both kinds of issue.
static ptowsp_program *compile(const decode *d, const policy *p, uint64_t lane_count,
                               uint64_t window) {
    ptowsp_schedule schedule = {.issue = p->issue,
                                .dispatch = p->dispatch,
                                .lane_count = (uint32_t)lane_count,
                                .window = (uint32_t)window,
                                .dependencies = PTOWSP_DEPENDENCIES_HYBRID};
    if (p->dispatch == PTOWSP_DISPATCH_AFFINITY) {
        schedule.dispatch_key = ptowsp_task_variable(d->module, "request");
    }
    ptowsp_program *program;
    ptowsp_program_desc desc = {.schedule = &schedule};
    command_check(d->context, ptowsp_program_create(d->context, d->module, &desc, &program));
    return program;
}

// Simulates the step that is there under a schedule, without running kernels.
static ptowsp_run *simulate(const decode *d, const ptowsp_program *program) {
    ptowsp_run *run;
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    command_check(d->context, ptowsp_run_create(d->context, program, &run));
    decode_bind(d, run);
    command_check(d->context, ptowsp_run_execute(run, &options));
    return run;
}

// Prints the makespan under a schedule, and the busy part of all lanes' time.
static void print_simulated(const decode *d, const policy *p, uint64_t lane_count,
                            uint64_t window) {
    ptowsp_program *program = compile(d, p, lane_count, window);
    ptowsp_run *run = simulate(d, program);
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    double busy = 100.0 * (double)stats->busy_cycles /
                  ((double)stats->makespan_cycles * (double)stats->lane_count);
    printf("%11llu %3.0f %%", (unsigned long long)stats->makespan_cycles, busy);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}

// The heading of a column, as wide as a cell.
static void print_heading(uint64_t number, const char *unit) {
    char text[64];
    snprintf(text, sizeof text, "%llu%s", (unsigned long long)number, unit);
    printf("%17s", text);
}

static void print_schedules(const decode *d) {
    const uint64_t lanes[] = {1, (d->lane_count + 2) / 3, d->lane_count};
    const uint64_t windows[] = {d->window, (d->window + 3) / 4};
    printf("\nthe last step under other schedules: cycles, and how busy lanes are\n%-31s", "");
    for (size_t i = 0; i < 3; i++) {
        print_heading(lanes[i], lanes[i] == 1 ? " lane" : " lanes");
    }
    for (size_t i = 0; i < 2; i++) {
        print_heading(windows[i], " in window");
    }
    for (size_t p = 0; p < POLICY_COUNT; p++) {
        printf("\n  %-29s", policies[p].name);
        for (size_t i = 0; i < 3; i++) {
            print_simulated(d, &policies[p], lanes[i], 0);
        }
        for (size_t i = 0; i < 2; i++) {
            print_simulated(d, &policies[p], d->lane_count, windows[i]);
        }
    }
    printf("\n  (with a window: on %llu lanes)\n", (unsigned long long)d->lane_count);
}

// What the makespan is made of: the tasks of the critical path, those that follow each other with
// the same kernel, request and lane in one line.
static void print_critical_path(decode *d, const policy *p) {
    const char *const names[] = {"append", "attend_short", "attend_chunk", "merge"};
    const uint32_t kernels[] = {d->append.id, d->attend_short.id, d->attend_chunk.id, d->merge.id};
    ptowsp_program *program = compile(d, p, d->lane_count, 0);
    ptowsp_run *run = simulate(d, program);
    const ptowsp_task_record *records = ptowsp_run_records(run);
    uint64_t count, line_count = 0;
    const uint64_t *path = ptowsp_run_critical_path(run, &count);
    printf("\ncritical path, %s, %llu lanes: %llu tasks\n", p->name,
           (unsigned long long)d->lane_count, (unsigned long long)count);
    for (uint64_t i = 0, end; i < count; i = end) {
        const ptowsp_task_record *first = &records[path[i]];
        uint32_t request = d->owner[path[i]];
        for (end = i + 1; end < count; end++) {
            const ptowsp_task_record *next = &records[path[end]];
            if (next->kernel != first->kernel || next->lane != first->lane ||
                d->owner[path[end]] != request) {
                break;
            }
        }
        size_t k = 0;
        while (kernels[k] != first->kernel) {
            k++;
        }
        if (line_count++ < 8) {
            printf("  %9llu to %9llu  %3llu x %-12s  request %-4u lane %-4u after %s\n",
                   (unsigned long long)first->start, (unsigned long long)records[path[end - 1]].end,
                   (unsigned long long)(end - i), names[k], (unsigned)request,
                   (unsigned)first->lane, ptowsp_stall_name(first->stall));
        }
    }
    if (line_count > 8) {
        printf("  ... %llu more lines\n", (unsigned long long)(line_count - 8));
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}

// -- steps ----------------------------------------------------------------------------------------

// Runs the steps on one program and checks each. Returns whether all is well.
static bool run_steps(decode *d) {
    ptowsp_program *program = compile(d, &policies[AFFINITY], d->lane_count, d->window);
    ptowsp_run *run;
    bool is_good = true;
    command_check(d->context, ptowsp_run_create(d->context, program, &run));
    printf("one program, compiled once: %zu bytes; %s, %llu lanes, window %llu\n",
           ptowsp_program_size(program), policies[AFFINITY].name, (unsigned long long)d->lane_count,
           (unsigned long long)d->window);
    for (uint64_t step = 1; step <= STEPS; step++) {
        uint64_t short_count = 0, task_count = 0, token_count = 0;
        decode_step(d, step);
        decode_bind(d, run);
        command_check(d->context, ptowsp_run_execute(run, NULL));
        for (uint64_t i = 0; i < d->batch; i++) {
            bool is_short = d->kv_lengths[i] <= CHUNK;
            short_count += is_short;
            task_count += is_short ? 2 : 2 + (uint64_t)d->chunk_counts[i];
            token_count += (uint64_t)d->kv_lengths[i];
        }
        const ptowsp_run_stats *stats = ptowsp_run_result(run);
        double error = decode_error(d);
        bool step_is_good = error <= TOLERANCE && stats->task_count == task_count;
        is_good &= step_is_good;
        printf("  step %llu  %7llu tokens  %3llu short  %3llu chunked  %4llu tasks  %9llu cycles  "
               "error %.0e  %s\n",
               (unsigned long long)step, (unsigned long long)token_count,
               (unsigned long long)short_count, (unsigned long long)(d->batch - short_count),
               (unsigned long long)stats->task_count, (unsigned long long)stats->makespan_cycles,
               error, step_is_good ? "good" : "WRONG");
    }
    uint64_t executed = ptowsp_run_result(run)->makespan_cycles;
    ptowsp_run_destroy(run);
    run = simulate(d, program);
    bool same = ptowsp_run_result(run)->makespan_cycles == executed;
    printf("  checked  %llu outputs a step against attention in double, %.0e of the row allowed\n"
           "  time     without running kernels the last step takes %s\n",
           (unsigned long long)(d->batch * GROUP * DIM), TOLERANCE,
           same ? "the same cycles: good" : "OTHER cycles: WRONG");
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    return is_good && same;
}

static const char help_text[] = "usage: tiered_decode [options]\n"
                                "  --batch N    requests, 1 to 1024 (48)\n"
                                "  --lanes N    simulated lanes, 1 to 4096 (24)\n"
                                "  --window N   tasks in flight, 1 to 1000000 (32)\n"
                                "  --seed N     of lengths and data (1)\n";

int main(int argc, char **argv) {
    static decode d;  // zeroed
    d.batch = 48;
    d.lane_count = 24;
    d.window = 32;
    d.seed = 1;
    const command_option options[] = {{"--batch", &d.batch, NULL, 1, 1024},
                                      {"--lanes", &d.lane_count, NULL, 1, 4096},
                                      {"--window", &d.window, NULL, 1, 1000000},
                                      {"--seed", &d.seed, NULL, 0, UINT64_MAX}};
    command_parse(argc, argv, help_text, options, sizeof options / sizeof options[0]);
    command_check(NULL, ptowsp_context_create(NULL, &d.context));
    command_check(d.context, ptowsp_module_create(d.context, NULL, &d.module));
    workload_make(&d);
    decode_make_data(&d);
    bool is_good = run_steps(&d);
    print_schedules(&d);
    print_critical_path(&d, &policies[AFFINITY]);
    print_critical_path(&d, &policies[STEALING]);
    command_flush();
    ptowsp_module_destroy(d.module);
    ptowsp_context_destroy(d.context);
    free(d.kv_lengths);
    free(d.chunk_counts);
    free(d.kv_starts);
    free(d.kv);
    free(d.fresh);
    free(d.queries);
    free(d.states);
    free(d.accs);
    free(d.outputs);
    free(d.owner);
    return is_good ? 0 : 1;
}
