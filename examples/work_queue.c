// A queue of uneven work for replicated workers: the requests of a decode batch, whose sequences
// have lognormal lengths, so that a few are many times as long as most.
//
//      shared queue      requests --[ queue ]--> worker 0 .. n - 1 --[ done ]--> collect
//
//          worker:   consume request from queue: attend; send request to done
//          collect:  consume request from done:  finish
//
//      own shares        the same without a queue: worker w has requests w, w + n, ...
//
// Whoever is free takes the next request, so no worker idles while there is one. That is list
// scheduling: at most the longest request beyond an equal share for all (Graham 1966). Given the
// longest requests first, little is left at the end (Graham 1969). Shares that are dealt out
// beforehand, with no regard to lengths, have no such bound.
//
// The number of workers is the size of a dynamic axis and the order is an array: two programs, the
// queue and the shares, make the whole table. Every output of every run is compared with attention
// in double.

#include "ptowsp.h"

#include "common/command.h"
#include "common/lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 64, WORKERS_MAX = 8 };

// -- kernels: compiled here, and kept as text -----------------------------------------------------

// clang-format off
PTOWSP_SOURCE(kernels_source,

enum {
    DIM = 8,  // of a head; a row of kv is K, then V
    ATTEND_CYCLES = 200,
    FINISH_CYCLES = 20
};

static const float *row_of(const ptowsp_tile *tile, int64_t row) {
    return (const float *)tile->data + row * tile->row_stride;
}

// Attention of one query over the request's tokens, with online softmax.
static ptowsp_cycles attend(const ptowsp_task *task, void *user) {
    const float *query = row_of(&task->tiles[1], 0);
    float *part = (float *)task->tiles[2].data;
    float top = -INFINITY, sums[DIM + 1] = {0.0f};
    int64_t length = (int64_t)ptowsp_task_scalar(task, 0);
    (void)user;
    for (int64_t t = 0; t < length; t++) {
        const float *kv = row_of(&task->tiles[0], t);
        float score = 0.0f;
        for (int i = 0; i < DIM; i++) {
            score += query[i] * kv[i];
        }
        float factor = score > top ? expf(top - score) : 1.0f;
        top = score > top ? score : top;
        float weight = expf(score - top);
        for (int i = 0; i < DIM; i++) {
            sums[i] = sums[i] * factor + weight * kv[DIM + i];
        }
        sums[DIM] = sums[DIM] * factor + weight;
    }
    for (int i = 0; i <= DIM; i++) {
        part[i] = sums[i];
    }
    return 0;  // attend_cost says how long it takes
}

static ptowsp_cycles attend_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return ATTEND_CYCLES + ptowsp_task_scalar(task, 0);
}

static ptowsp_cycles finish(const ptowsp_task *task, void *user) {
    const float *part = row_of(&task->tiles[0], 0);
    float *output = (float *)task->tiles[1].data;
    (void)user;
    for (int i = 0; i < DIM; i++) {
        output[i] = part[i] / part[DIM];
    }
    return FINISH_CYCLES;
}
)
// clang-format on

#define ALLOWED 1e-5  // of the largest magnitude in an output row

typedef struct batch {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_kernel attend, finish;
    ptowsp_tensor kv, queries, parts, outputs;
    int32_t lengths[REQUESTS];
    int64_t starts[REQUESTS];  // rows of kv
    int32_t arrival[REQUESTS], longest_first[REQUESTS];
    int64_t row_count;
    ptowsp_cycles attend_cycles, longest_cycles;  // of all requests, of the longest
    float *kv_data;                               // [row][2 * DIM]
    float queries_data[REQUESTS][DIM];
    float parts_data[REQUESTS][DIM + 1];  // unscaled, and by what to divide
    float outputs_data[REQUESTS][DIM];
    double wanted[REQUESTS][DIM];
} batch;

// -- workloads ------------------------------------------------------------------------------------

static ptowsp_tensor tensor_make(ptowsp_module *m, const char *name, int64_t rows, int64_t cols) {
    ptowsp_tensor_desc desc = {.name = name, .dtype = PTOWSP_F32, .rank = 2, .shape = {rows, cols}};
    return ptowsp_tensor_make(m, &desc);
}

static void declare(batch *b) {
    ptowsp_module *m = b->module;
    const ptowsp_kernel_desc kernels[] = {
        {.name = "attend",
         .axis_count = 1,  // the request
         .tiles = {{.name = "kv",
                    .direction = PTOWSP_IN,
                    .dtype = PTOWSP_F32,
                    .rows = PTOWSP_DYNAMIC,
                    .cols = 2 * DIM},
                   {.name = "query",
                    .direction = PTOWSP_IN,
                    .dtype = PTOWSP_F32,
                    .rows = 1,
                    .cols = DIM},
                   {.name = "part",
                    .direction = PTOWSP_OUT,
                    .dtype = PTOWSP_F32,
                    .rows = 1,
                    .cols = DIM + 1}},
         .scalars = {{.name = "length", .type = PTOWSP_TYPE_I64}},
         .fn = attend,
         .cost = attend_cost,
         .source = {.text = kernels_source, .cost = "attend_cost"}},
        {.name = "finish",
         .tiles = {{.name = "part",
                    .direction = PTOWSP_IN,
                    .dtype = PTOWSP_F32,
                    .rows = 1,
                    .cols = DIM + 1},
                   {.name = "output",
                    .direction = PTOWSP_OUT,
                    .dtype = PTOWSP_F32,
                    .rows = 1,
                    .cols = DIM}},
         .fn = finish,
         .cycles = FINISH_CYCLES,
         .source = {.text = kernels_source}},
    };
    b->attend = ptowsp_kernel_make(m, &kernels[0]);
    b->finish = ptowsp_kernel_make(m, &kernels[1]);
    b->kv = tensor_make(m, "kv", PTOWSP_DYNAMIC, 2 * DIM);
    b->queries = tensor_make(m, "queries", REQUESTS, DIM);
    b->parts = tensor_make(m, "parts", REQUESTS, DIM + 1);
    b->outputs = tensor_make(m, "outputs", REQUESTS, DIM);
}

// A worker's task: attends a request, and sends it on.
static void attend_send(const batch *b, ptowsp_channel done, ptowsp_expr request) {
    ptowsp_module *m = b->module;
    ptowsp_send_task_make(
        m, done,
        &(ptowsp_task_desc){
            .kernel = b->attend,
            .axes = {request},
            .views = {{.tensor = b->kv, .row = ptowsp_array_at(m, "starts", PTOWSP_I64, request)},
                      {.tensor = b->queries, .row = request},
                      {.tensor = b->parts, .row = request}},
            .scalars = {ptowsp_array_at(m, "lengths", PTOWSP_I32, request)}});
}

static void collect_make(const batch *b, ptowsp_channel done) {
    ptowsp_module *m = b->module;
    PTOWSP_PROCESS(m, "collect") {
        ptowsp_consumes(m, done);
        PTOWSP_CONSUME(m, request, done) {
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = b->finish,
                                       .views = {{.tensor = b->parts, .row = request},
                                                 {.tensor = b->outputs, .row = request}}});
        }
    }
}

// A queue of depth 1 is enough: what workers take must be there, and generating takes no time.
static void workloads_make(const batch *b) {
    ptowsp_module *m = b->module;
    const ptowsp_channel_desc queue_desc = {.name = "queue", .depth = 1};
    const ptowsp_channel_desc done_desc = {.name = "done", .depth = 16};
    ptowsp_axis workers = ptowsp_axis_dynamic(m, "workers");
    ptowsp_axis rounds = ptowsp_axis_dynamic(m, "rounds");
    ptowsp_axis requests = ptowsp_axis_dense(m, "requests", REQUESTS);
    PTOWSP_WORKLOAD(m, "shared queue") {
        PTOWSP_PIPELINE(m, "decode") {
            ptowsp_channel queue = ptowsp_channel_make(m, &queue_desc);
            ptowsp_channel done = ptowsp_channel_make(m, &done_desc);
            PTOWSP_PROCESS(m, "requests") {
                ptowsp_produces(m, queue);
                PTOWSP_FOR_EACH(m, i, requests) {
                    ptowsp_send_make(m, queue, ptowsp_array_at(m, "order", PTOWSP_I32, i));
                }
            }
            PTOWSP_REPLICATE(m, w, workers, "worker") {
                ptowsp_consumes(m, queue);
                ptowsp_produces(m, done);
                PTOWSP_CONSUME(m, request, queue) {
                    attend_send(b, done, request);
                }
            }
            collect_make(b, done);
        }
    }
    PTOWSP_WORKLOAD(m, "own shares") {
        PTOWSP_PIPELINE(m, "decode") {
            ptowsp_channel done = ptowsp_channel_make(m, &done_desc);
            PTOWSP_REPLICATE(m, w, workers, "worker") {
                ptowsp_produces(m, done);
                PTOWSP_FOR_EACH(m, round, rounds) {
                    ptowsp_expr count = ptowsp_axis_size(m, workers);
                    ptowsp_expr request = ptowsp_add(ptowsp_mul(round, count), w);
                    PTOWSP_WHEN(m, ptowsp_lt(request, ptowsp_i64(m, REQUESTS))) {
                        attend_send(b, done, request);
                    }
                }
            }
            collect_make(b, done);
        }
    }
}

// -- data -----------------------------------------------------------------------------------------

// Attention of a request in double, in two plain passes.
static void reference(batch *b, int request) {
    const float *kv = b->kv_data + b->starts[request] * 2 * DIM;
    double top = -INFINITY, sum = 0.0, *out = b->wanted[request];
    double *scores = (double *)command_allocate((uint64_t)b->lengths[request], sizeof *scores);
    for (int64_t t = 0; t < b->lengths[request]; t++) {
        for (int i = 0; i < DIM; i++) {
            scores[t] += (double)b->queries_data[request][i] * (double)kv[t * 2 * DIM + i];
        }
        top = fmax(top, scores[t]);
    }
    for (int64_t t = 0; t < b->lengths[request]; t++) {
        double weight = exp(scores[t] - top);
        sum += weight;
        for (int i = 0; i < DIM; i++) {
            out[i] += weight * (double)kv[t * 2 * DIM + DIM + i];
        }
    }
    for (int i = 0; i < DIM; i++) {
        out[i] /= sum;
    }
    free(scores);
}

static void make_data(batch *b) {
    uint64_t state = 1;
    lengths_generate(1, REQUESTS, b->lengths);
    for (int i = 0; i < REQUESTS; i++) {
        ptowsp_cycles cycles = ATTEND_CYCLES + (ptowsp_cycles)b->lengths[i];
        int at = i;  // by insertion
        for (; at > 0 && b->lengths[b->longest_first[at - 1]] < b->lengths[i]; at--) {
            b->longest_first[at] = b->longest_first[at - 1];
        }
        b->longest_first[at] = i;
        b->arrival[i] = i;
        b->starts[i] = b->row_count;
        b->row_count += b->lengths[i];
        b->attend_cycles += cycles;
        b->longest_cycles = cycles > b->longest_cycles ? cycles : b->longest_cycles;
        for (int k = 0; k < DIM; k++) {
            b->queries_data[i][k] = (float)(2.0 * lengths_random_unit(&state) - 1.0);
        }
    }
    b->kv_data = (float *)command_allocate((uint64_t)b->row_count * 2 * DIM, sizeof(float));
    for (int64_t i = 0; i < b->row_count * 2 * DIM; i++) {
        b->kv_data[i] = (float)(2.0 * lengths_random_unit(&state) - 1.0);
    }
    for (int i = 0; i < REQUESTS; i++) {
        reference(b, i);
    }
}

// The largest error of all outputs, NaN if one is.
static double error_of(const batch *b) {
    double most = 0.0;
    for (int r = 0; r < REQUESTS; r++) {
        double largest = 0.0, error = 0.0;
        for (int i = 0; i < DIM; i++) {
            double off = fabs((double)b->outputs_data[r][i] - b->wanted[r][i]);
            largest = fmax(largest, fabs(b->wanted[r][i]));
            error = off <= error ? error : off;  // keeps a NaN
        }
        error /= largest;
        most = error <= most ? most : error;
    }
    return most;
}

// -- runs -----------------------------------------------------------------------------------------

static void bind_matrix(const batch *b, ptowsp_run *run, const char *name, float *data,
                        int64_t rows, int64_t cols) {
    ptowsp_buffer buffer = {.data = data, .rank = 2, .shape = {rows, cols}};
    command_check(b->context, ptowsp_run_bind_tensor(run, name, &buffer));
}

static ptowsp_run *run_create(batch *b, const char *workload, ptowsp_program **out_program) {
    ptowsp_program_desc desc = {.workload = workload};
    ptowsp_run *run;
    command_check(b->context, ptowsp_program_create(b->context, b->module, &desc, out_program));
    command_check(b->context, ptowsp_run_create(b->context, *out_program, &run));
    command_check(b->context,
                  ptowsp_run_bind_array(run, "starts", PTOWSP_I64, b->starts, REQUESTS));
    command_check(b->context,
                  ptowsp_run_bind_array(run, "lengths", PTOWSP_I32, b->lengths, REQUESTS));
    bind_matrix(b, run, "kv", b->kv_data, b->row_count, 2 * DIM);
    bind_matrix(b, run, "queries", b->queries_data[0], REQUESTS, DIM);
    bind_matrix(b, run, "parts", b->parts_data[0], REQUESTS, DIM + 1);
    bind_matrix(b, run, "outputs", b->outputs_data[0], REQUESTS, DIM);
    return run;
}

typedef struct outcome {
    ptowsp_cycles makespan;
    double balance;  // mean worker's busy time over that of the one with most
    double error;
} outcome;

static outcome execute(batch *b, ptowsp_run *run, int64_t workers) {
    for (int r = 0; r < REQUESTS; r++) {
        for (int i = 0; i < DIM; i++) {
            b->parts_data[r][i] = b->outputs_data[r][i] = NAN;
        }
    }
    command_check(b->context, ptowsp_run_bind_size(run, "workers", workers));
    command_check(b->context, ptowsp_run_execute(run, NULL));
    uint32_t count;
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &count);
    ptowsp_cycles sum = 0, most = 0;
    for (uint32_t i = 0; i + 1 < count; i++) {  // the last one collects, and requests take no time
        sum += processes[i].busy_cycles;
        most = processes[i].busy_cycles > most ? processes[i].busy_cycles : most;
    }
    outcome made = {ptowsp_run_result(run)->makespan_cycles,
                    (double)sum / ((double)most * (double)workers), error_of(b)};
    return made;
}

static void print_outcome(const batch *b, const outcome *o) {
    printf("  |%8llu  %5.2f  %3.0f %%", (unsigned long long)o->makespan,
           (double)b->attend_cycles / (double)o->makespan, 100.0 * o->balance);
}

// One line of the table: shares, the queue as requests arrive, the queue with the longest first.
// Returns whether outputs are right and makespans within their bounds.
static bool compare(batch *b, ptowsp_run *shares, ptowsp_run *queue, int64_t workers,
                    double *error) {
    const int32_t *orders[] = {b->arrival, b->longest_first};
    ptowsp_cycles w = (ptowsp_cycles)workers, share = (b->attend_cycles + w - 1) / w;
    ptowsp_cycles low = share > b->longest_cycles ? share : b->longest_cycles;
    ptowsp_cycles high = share + b->longest_cycles + REQUESTS * FINISH_CYCLES;
    outcome made[3];
    command_check(b->context,
                  ptowsp_run_bind_size(shares, "rounds", (REQUESTS + workers - 1) / workers));
    made[0] = execute(b, shares, workers);
    for (int i = 0; i < 2; i++) {
        command_check(b->context,
                      ptowsp_run_bind_array(queue, "order", PTOWSP_I32, orders[i], REQUESTS));
        made[1 + i] = execute(b, queue, workers);
    }
    bool is_good = true;
    printf("  %7lld  %8llu", (long long)workers, (unsigned long long)low);
    for (int i = 0; i < 3; i++) {
        is_good &= made[i].makespan >= low && (i == 0 || made[i].makespan <= high);
        *error = made[i].error <= *error ? *error : made[i].error;  // keeps a NaN
        print_outcome(b, &made[i]);
    }
    printf("\n");
    return is_good;
}

int main(int argc, char **argv) {
    static batch b;  // zeroed
    command_parse(argc, argv, "takes no options; prints makespans of a queue, and of shares\n",
                  NULL, 0);
    command_check(NULL, ptowsp_context_create(NULL, &b.context));
    command_check(b.context, ptowsp_module_create(b.context, NULL, &b.module));
    declare(&b);
    workloads_make(&b);
    make_data(&b);

    ptowsp_program *shares_program, *queue_program;
    ptowsp_run *shares = run_create(&b, "own shares", &shares_program);
    ptowsp_run *queue = run_create(&b, "shared queue", &queue_program);
    printf("attention of %d requests, %lld tokens: %llu cycles, %llu of the longest\n\n", REQUESTS,
           (long long)b.row_count, (unsigned long long)b.attend_cycles,
           (unsigned long long)b.longest_cycles);
    printf("           at least  |own shares              |shared queue            |longest first\n"
           "  workers    cycles  |  cycles speedup balance|  cycles speedup balance|  cycles "
           "speedup balance\n");
    bool is_good = true;
    double error = 0.0;
    for (int64_t workers = 1; workers <= WORKERS_MAX; workers *= 2) {
        is_good &= compare(&b, shares, queue, workers, &error);
    }
    printf("\n  bounds    makespans are %s\n"
           "  check     %d outputs of each run, largest error %.0e of the row, %.0e allowed: %s\n",
           is_good ? "within them: good" : "OUTSIDE: WRONG", REQUESTS * DIM, error, ALLOWED,
           error <= ALLOWED ? "good" : "WRONG");
    is_good &= error <= ALLOWED;

    ptowsp_run_destroy(shares);
    ptowsp_run_destroy(queue);
    ptowsp_program_destroy(shares_program);
    ptowsp_program_destroy(queue_program);
    ptowsp_module_destroy(b.module);
    ptowsp_context_destroy(b.context);
    free(b.kv_data);
    command_flush();
    return is_good ? 0 : 1;
}
