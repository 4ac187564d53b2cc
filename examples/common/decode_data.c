// The data of a step: lengths from a generator or a trace, a KV cache whose pages are scattered over
// a pool, and queries. What belongs to a request does not depend on those after it, so results can be
// compared between batches.

#include "command.h"
#include "decode.h"
#include "lengths.h"
#include "pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t decode_query_length(const decode_step *s, uint32_t request) {
    return s->query_lengths ? (uint32_t)s->query_lengths[request] : 1;
}

uint32_t decode_query_start(const decode_step *s, uint32_t request) {
    return s->query_starts ? s->query_starts[request] : request;
}

// -- lengths --------------------------------------------------------------------------------------

static void decode_trace_read(decode_step *s) {
    const decode_options *o = &s->o;
    char error[512];
    trace t;
    if (!trace_read(o->trace_path, &t, error, sizeof error)) {
        command_fail("%s", error);
    }
    const char *slash = strrchr(o->trace_path, '/');
    const char *name = slash ? slash + 1 : o->trace_path;
    const double token_seconds = o->token_ms / 1000.0;
    if (o->has_at) {
        s->sequence_count =
            trace_live(&t, o->at_seconds, token_seconds, s->sequence_count, s->kv_lengths);
        int length = snprintf(s->source, sizeof s->source, "%s (%s), live at %g s", name, t.format,
                              o->at_seconds);
        if (s->sequence_count == 0 && length > 0 && (size_t)length < sizeof s->source) {
            snprintf(s->source + length, sizeof s->source - (size_t)length,
                     ". No request is live then; the last one ends at %.3f s",
                     trace_end(&t, token_seconds));
        }
    } else {
        s->sequence_count = trace_first(&t, s->sequence_count, s->kv_lengths);
        snprintf(s->source, sizeof s->source, "%s (%s), first requests", name, t.format);
    }
    trace_free(&t);
}

// Gives some requests a prompt: their last tokens are queries. Sequences without KV have no queries.
static void decode_prompts_make(decode_step *s) {
    uint64_t state = s->o.seed + 2;
    s->query_lengths = (int32_t *)command_allocate(s->sequence_count, sizeof(int32_t));
    s->query_starts = (uint32_t *)command_allocate(s->sequence_count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < s->sequence_count; i++) {
        int32_t length = s->kv_lengths[i], prompt = 1;
        if (i % DECODE_PROMPT_EVERY == 0) {
            prompt += (int32_t)(lengths_random(&state) % DECODE_PROMPT_TOKENS);
            s->prompt_count++;
        }
        s->query_lengths[i] = prompt < length ? prompt : length;
        s->query_starts[i + 1] = s->query_starts[i] + (uint32_t)s->query_lengths[i];
    }
    s->query_count = s->query_starts[s->sequence_count];
}

void decode_lengths_make(decode_step *s) {
    s->group = (uint32_t)(s->o.heads / s->o.kv_heads);
    s->key_dim = (uint32_t)s->o.dim;
    s->value_dim = s->o.is_mla ? 512 : s->key_dim;
    s->sequence_count = (uint32_t)s->o.batch;
    s->kv_lengths = (int32_t *)command_allocate(s->sequence_count, sizeof *s->kv_lengths);
    if (s->o.trace_path) {
        decode_trace_read(s);
    } else {
        lengths_generate(s->o.seed, s->sequence_count, s->kv_lengths);
        snprintf(s->source, sizeof s->source, "generated lengths, seed %llu",
                 (unsigned long long)s->o.seed);
    }
    for (uint32_t i = 0; i < s->sequence_count; i++) {
        s->token_count += (uint64_t)s->kv_lengths[i];
        s->length_max = s->kv_lengths[i] > s->length_max ? s->kv_lengths[i] : s->length_max;
    }
    s->query_count = s->sequence_count;
    if (s->o.is_prefill) {
        decode_prompts_make(s);
    }
}

// -- cache ----------------------------------------------------------------------------------------

static float decode_random(uint64_t *state) {
    return (float)(lengths_random_unit(state) * 2.0 - 1.0);
}

// Element `at` of the pool, rounded to its type. Integers are of 1 / 127, times their scale.
static void decode_kv_set(decode_step *s, uint64_t at, float value) {
    switch (s->o.type) {
    case PTOWSP_ATTEND_F32: ((float *)s->pool)[at] = value; break;
    case PTOWSP_ATTEND_F16: ((uint16_t *)s->pool)[at] = ptowsp_f16_from_f32(value); break;
    case PTOWSP_ATTEND_BF16: ((uint16_t *)s->pool)[at] = ptowsp_bf16_from_f32(value); break;
    default: ((int8_t *)s->pool)[at] = (int8_t)lrintf(value * 127.0f); break;
    }
}

// A step and the place of each page of its cache in the pool.
typedef struct decode_filling {
    decode_step *step;
    const uint32_t *order;  // [pool_pages]
} decode_filling;

static void decode_fill_pages(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    const decode_filling *filling = (const decode_filling *)user;
    decode_step *s = filling->step;
    uint64_t scale_count = s->o.type == PTOWSP_ATTEND_I8 ? s->o.kv_heads * s->o.page : 0;
    (void)lane;
    for (uint64_t i = begin; i < end; i++) {
        uint64_t page = filling->order[i];
        uint64_t state = s->o.seed ^ (i + 1) * UINT64_C(0xd1342543de82ef95);
        for (uint64_t k = 0; k < s->page_elements; k++) {
            decode_kv_set(s, page * s->page_elements + k, decode_random(&state));
        }
        for (uint64_t k = 0; k < scale_count; k++) {
            s->scales[page * scale_count + k] = (1.0f + 0.5f * decode_random(&state)) / 127.0f;
        }
    }
}

// Addresses of the cache for the kernel.
static void decode_cache_describe(decode_step *s) {
    size_t slots = s->o.page, dim = s->key_dim, planes = s->o.is_mla ? 1 : 2;
    ptowsp_attend_strides strides = {
        .page = s->page_elements, .token = dim, .head = planes * slots * dim};
    ptowsp_attend_strides scale_strides = {
        .page = s->o.kv_heads * slots, .token = 1, .head = slots};
    s->kv.keys = s->pool;
    s->kv.values =
        (const char *)s->pool + (planes - 1) * slots * dim * ptowsp_attend_bytes(s->o.type, 1);
    s->kv.key_strides = s->kv.value_strides = strides;
    s->kv.key_scales = s->kv.value_scales = s->scales;
    s->kv.scale_strides = scale_strides;
    s->kv.type = s->o.type;
    s->kv.key_dim = s->key_dim;
    s->kv.value_dim = s->value_dim;
    s->kv.page_size = (uint32_t)slots;
}

// Makes the pool, as large as allowed and no larger than page_count pages.
static void decode_pool_make(decode_step *s, uint64_t page_count) {
    const decode_options *o = &s->o;
    s->page_elements = o->kv_heads * (o->is_mla ? 1 : 2) * o->page * o->dim;
    uint64_t page_bytes = s->page_elements * ptowsp_attend_bytes(o->type, 1);
    s->pool_pages = o->kv_mib * 1024 * 1024 / page_bytes;
    if (page_count > UINT32_MAX || s->pool_pages > SIZE_MAX / page_bytes) {
        command_fail("%llu KV pages and a pool of %llu MiB are more than this machine can address",
                     (unsigned long long)page_count, (unsigned long long)o->kv_mib);
    }
    if (s->pool_pages == 0) {
        command_fail("--kv-mib %llu has no room for one page of %llu bytes",
                     (unsigned long long)o->kv_mib, (unsigned long long)page_bytes);
    }
    if (s->pool_pages > page_count) {
        s->pool_pages = page_count ? page_count : 1;
    }
    s->pool = pool_allocate((size_t)(s->pool_pages * page_bytes));
    s->scales = (float *)command_allocate(s->pool_pages * o->kv_heads * o->page, sizeof(float));
    if (!s->pool) {
        command_fail("out of memory for a KV pool of %llu MiB", (unsigned long long)o->kv_mib);
    }
}

// The pool, and page tables that scatter the requests over it.
static void decode_cache_make(decode_step *s) {
    uint64_t page_count = 0;
    s->page_starts = (uint32_t *)command_allocate(s->sequence_count, sizeof *s->page_starts);
    for (uint32_t i = 0; i < s->sequence_count; i++) {
        s->page_starts[i] = (uint32_t)page_count;
        page_count += ((uint64_t)s->kv_lengths[i] + s->o.page - 1) / s->o.page;
    }
    decode_pool_make(s, page_count);
    uint32_t *order = (uint32_t *)command_allocate(s->pool_pages, sizeof *order);
    uint64_t state = s->o.seed;
    for (uint64_t i = 0; i < s->pool_pages; i++) {  // shuffled from the inside (Fisher and Yates)
        uint64_t k = lengths_random(&state) % (i + 1);
        order[i] = order[k];
        order[k] = (uint32_t)i;
    }
    s->pages = (uint32_t *)command_allocate(page_count, sizeof *s->pages);
    for (uint64_t i = 0; i < page_count; i++) {
        s->pages[i] = order[i % s->pool_pages];
    }
    decode_filling filling = {s, order};
    command_check(s->context,
                  ptowsp_parallel_for(s->context, s->pool_pages, 1, decode_fill_pages, &filling));
    free(order);
    decode_cache_describe(s);
}

// -- queries --------------------------------------------------------------------------------------

// Scores spread as in a trained model: a standard deviation of about 2.
static void decode_queries_make(decode_step *s) {
    uint64_t count = s->query_count * s->o.heads * s->key_dim;
    uint64_t state = s->o.seed + 1;
    s->queries = (float *)command_allocate(count, sizeof(float));
    for (uint64_t i = 0; i < count; i++) {
        s->queries[i] = decode_random(&state) * 6.0f;
    }
}

static void decode_outputs_make(decode_step *s, decode_run *run) {
    run->step = s;
    run->outputs =
        (float *)command_allocate(s->query_count * s->o.heads * s->value_dim, sizeof(float));
    run->lanes =
        (decode_lane *)command_allocate(ptowsp_context_lane_count(s->context), sizeof *run->lanes);
    run->attention = s->attention;
    run->attention.outputs = run->outputs;
}

void decode_data_make(decode_step *s) {
    decode_cache_make(s);
    decode_queries_make(s);
    ptowsp_attend_step *a = &s->attention;
    a->queries = s->queries;
    a->query_head_stride = s->key_dim;
    a->query_token_stride = s->o.heads * s->key_dim;
    a->output_head_stride = s->value_dim;
    a->output_token_stride = s->o.heads * s->value_dim;
    a->query_starts = s->query_starts;
    a->pages = s->pages;
    a->page_starts = s->page_starts;
    a->batch = &s->lengths;
    a->config = &s->config;
    a->plan = &s->plan;
    decode_outputs_make(s, &s->balanced);
    decode_outputs_make(s, &s->chunks);
}

static void decode_run_free(decode_run *run) {
    if (run->memory) {
        free(run->memory);
    } else {
        free(run->scratch.states);
        free(run->scratch.accs);
    }
    free(run->outputs);
    free(run->lanes);
}

void decode_free(decode_step *s) {
    decode_run_free(&s->balanced);
    decode_run_free(&s->chunks);
    ptowsp_work_destroy(s->context, s->work);
    ptowsp_context_destroy(s->context);
    void *const blocks[] = {s->kv_lengths,  s->query_lengths, s->query_starts,
                            s->page_starts, s->pool,          s->scales,
                            s->pages,       s->queries,       s->plan_block};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        free(blocks[i]);
    }
}
