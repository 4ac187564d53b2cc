// A load is made in three steps: requests with ids of any value; ids made dense, so that the cache
// of blocks is an array; repeats.

#include "serve_load.h"

#include "command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT_COUNT = 16, PROMPT_BLOCKS_MAX = 4, OUTPUT_MAX = 2000 };

static int load_compare_ids(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// By arrival; those of one time in the order of the trace, which is that of their ids or, without,
// of no consequence but for the result being one.
static int load_compare_requests(const void *a, const void *b) {
    const trace_request *x = *(const trace_request *const *)a;
    const trace_request *y = *(const trace_request *const *)b;
    int order =
        (x->arrival_seconds > y->arrival_seconds) - (x->arrival_seconds < y->arrival_seconds);
    return order ? order : (x > y) - (x < y);
}

// Gives the load dense ids for those of the trace.
static void load_set_ids(serve_load *load, const trace *from) {
    size_t count = from->id_count, distinct = 0;
    int64_t *sorted = (int64_t *)command_allocate(count, sizeof *sorted);
    load->ids = (uint32_t *)command_allocate(count, sizeof *load->ids);
    if (count > UINT32_MAX) {
        command_fail("the trace has more than %lld block ids", (long long)UINT32_MAX);
    }
    if (count > 0) {
        memcpy(sorted, from->ids, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, load_compare_ids);
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || sorted[i] != sorted[i - 1]) {
            sorted[distinct++] = sorted[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        const int64_t *at = (const int64_t *)bsearch(&from->ids[i], sorted, distinct,
                                                     sizeof *sorted, load_compare_ids);
        load->ids[i] = (uint32_t)(at - sorted);
    }
    load->block_count = (uint32_t)distinct;
    free(sorted);
}

// Repeats the requests until `hours` are full. A repeat begins one mean gap after the last arrival.
// Its blocks are others: conversations do not come again.
static void load_repeat(serve_load *load, double hours) {
    const uint64_t end_ns = (uint64_t)(hours * 3.6e12);
    uint64_t last_ns = load->requests[load->count - 1].arrival_ns;
    uint64_t period_ns = last_ns + last_ns / (load->count > 1 ? load->count - 1 : 1);
    uint64_t repeats = period_ns > 0 ? end_ns / period_ns + 1 : 1;
    uint32_t once = load->count, blocks = load->block_count;
    if (repeats > UINT32_MAX / once || repeats > UINT32_MAX / (blocks ? blocks : 1)) {
        command_fail("--hours %g needs more than 2^32 requests or blocks", hours);
    }
    serve_request *all = (serve_request *)command_allocate(repeats * once, sizeof *all);
    load->count = 0;
    for (uint32_t repeat = 0; repeat < repeats; repeat++) {
        for (uint32_t i = 0; i < once; i++) {
            serve_request r = load->requests[i];
            r.arrival_ns += repeat * period_ns;
            r.id_add = repeat * blocks;
            if (r.arrival_ns < end_ns) {
                all[load->count++] = r;
            }
        }
    }
    load->block_count = (uint32_t)repeats * blocks;
    free(load->requests);
    load->requests = all;
}

void serve_load_from_trace(const trace *from, const char *name, const serve_load_options *options,
                           serve_load *out_load) {
    const double ns_max = 9e18;
    serve_load load;
    memset(&load, 0, sizeof load);
    const trace_request **order =
        (const trace_request **)command_allocate(from->count, sizeof *order);
    size_t count =
        from->count < options->requests_max ? from->count : (size_t)options->requests_max;
    if (from->count > UINT32_MAX) {
        command_fail("%s: more than %lld requests", name, (long long)UINT32_MAX);
    }
    for (size_t i = 0; i < from->count; i++) {
        order[i] = &from->requests[i];
    }
    qsort(order, from->count, sizeof *order, load_compare_requests);
    load_set_ids(&load, from);
    load.count = (uint32_t)count;
    load.requests = (serve_request *)command_allocate(count, sizeof *load.requests);
    for (size_t i = 0; i < count; i++) {
        serve_request *r = &load.requests[i];
        double ns = (order[i]->arrival_seconds - order[0]->arrival_seconds) * 1e9 / options->speed;
        if (!(ns < ns_max)) {
            command_fail("%s: the requests come over more than 285 years", name);
        }
        r->arrival_ns = (uint64_t)ns;
        r->input = (uint32_t)order[i]->input_tokens;
        r->output = (uint32_t)order[i]->output_tokens;
        r->id_begin = (uint32_t)order[i]->id_begin;
        r->id_count = (uint32_t)order[i]->id_count;
    }
    free(order);
    if (options->hours > 0.0) {
        load_repeat(&load, options->hours);
    }
    snprintf(load.source, sizeof load.source, "%s (%s)", name, from->format);
    *out_load = load;
}

// A normal number (Box and Muller 1958).
static double load_random_normal(uint64_t *state) {
    double radius = sqrt(-2.0 * log(lengths_random_unit(state)));
    return radius * cos(6.283185307179586 * lengths_random_unit(state));
}

void serve_load_generate(uint64_t seed, uint64_t count, double rate,
                         const serve_load_options *options, serve_load *out_load) {
    uint64_t state = seed + 1;
    int32_t *inputs = (int32_t *)command_allocate(count, sizeof *inputs);
    int64_t own = PROMPT_COUNT * PROMPT_BLOCKS_MAX;  // the next id that is of one request alone
    double seconds = 0.0;
    uint64_t blocks = 0;
    trace made = {NULL, 0, "generated", NULL, 0};
    made.requests = (trace_request *)command_allocate(count, sizeof *made.requests);
    lengths_generate(seed, (uint32_t)count, inputs);
    for (uint64_t i = 0; i < count; i++) {
        blocks += (uint64_t)inputs[i] / TRACE_BLOCK_TOKENS;
    }
    made.ids = (int64_t *)command_allocate(blocks, sizeof *made.ids);
    for (uint64_t i = 0; i < count; i++) {
        double output = exp(4.9 + 0.9 * load_random_normal(&state));
        uint64_t pick = lengths_random(&state);
        uint32_t prompt = (uint32_t)(pick % (2 * PROMPT_COUNT));
        uint32_t shared = prompt < PROMPT_COUNT ? 1 + prompt % PROMPT_BLOCKS_MAX : 0;
        trace_request *r = &made.requests[made.count];
        r->arrival_seconds = seconds;
        r->input_tokens = inputs[i];
        r->output_tokens = output < 1.0 ? 1 : output > OUTPUT_MAX ? OUTPUT_MAX : (int32_t)output;
        r->id_begin = made.id_count;
        r->id_count = (size_t)inputs[i] / TRACE_BLOCK_TOKENS;
        for (size_t k = 0; k < r->id_count; k++) {
            made.ids[made.id_count++] =
                k < shared ? (int64_t)(prompt * PROMPT_BLOCKS_MAX + k) : own++;
        }
        made.count++;
        seconds -= log(lengths_random_unit(&state)) / rate;
        if (options->hours > 0.0 && seconds >= options->hours * 3600.0 * options->speed) {
            break;
        }
    }
    serve_load_options once = *options;
    once.hours = 0.0;
    once.requests_max = UINT64_MAX;
    serve_load_from_trace(&made, "requests", &once, out_load);
    snprintf(out_load->source, sizeof out_load->source,
             "generated requests, %g a second, seed %llu", rate * options->speed,
             (unsigned long long)seed);
    free(inputs);
    trace_free(&made);
}

void serve_load_free(serve_load *load) {
    free(load->requests);
    free(load->ids);
    memset(load, 0, sizeof *load);
}
