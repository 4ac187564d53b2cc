// A decode step of requests that begin alike, twice: by a flat attention plan, in which each request
// reads all of its KV, and by a prefix plan, in which what is shared is read once.
//
// The requests are generated, or those of a Mooncake trace that are live at a moment:
//
//      system prompt   all chats begin with one of two prompts
//      few-shot        a third of the requests go on with the same examples
//      multi-turn      or with a conversation, of which several turns may be live
//      beams           some decode in four beams, which have all but their last tokens in common
//
// Shared blocks are the same pages of the cache in both cases. All outputs are compared with a plain
// softmax in double precision, over the pages of the request itself.

#include "ptowsp.h"

#include "common/command.h"
#include "common/lengths.h"
#include "common/pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 16, DIM = 64, STEPS_MAX = 31 };

#define TOLERANCE 1e-4  // of the largest magnitude in an output row

static const char help[] =
    "Usage: prefix_decode [OPTION VALUE]...\n"
    "Decodes a step of requests that share prefixes, by a flat plan and by a prefix plan.\n"
    "\n"
    "  --batch N      requests, at most (64)\n"
    "  --trace FILE   those of a Mooncake trace that are live (default: generated)\n"
    "  --at SECONDS   the moment in the trace (600)\n"
    "  --token-ms MS  a token of each request, in the trace (50)\n"
    "  --kv-mib N     KV that requests have, at most (256)\n"
    "  --kv-heads N   (2)\n"
    "  --group N      query heads of a KV head (4)\n"
    "  --tile N       rows of a unit, at most (64)\n"
    "  --threads N    (2)\n"
    "  --steps N      of which times are medians (5)\n"
    "  --seed N       (1)\n"
    "  --invariant    results do not depend on what is shared, bit by bit\n";

typedef struct prefix_options {
    uint64_t batch, kv_mib, kv_heads, group, tile, threads, steps, seed;
    double at_seconds, token_ms;
    const char *trace_path;
    bool is_invariant;
} prefix_options;

// The batch, its cache and queries.
typedef struct prefix_step {
    prefix_options o;
    char source[200];
    uint32_t count, block_tokens;
    int32_t *kv;
    uint64_t *ids, *block_begin;
    uint64_t id_capacity, tokens;
    ptowsp_prefix_batch batch;
    ptowsp_attention_config config;
    ptowsp_context *context;

    ptowsp_prefix_tree tree;
    uint32_t *pages;
    size_t page_stride;
    uint32_t page_count;
    uint16_t *pool;
    float *queries;
    ptowsp_attend_cache cache;
    ptowsp_attend_step attention;
} prefix_step;

// One of the two ways to decode it.
typedef struct prefix_run {
    prefix_step *s;
    bool is_tree;
    ptowsp_attend_step attention;
    float *outputs;
    void *block;
    ptowsp_attention_plan flat;
    ptowsp_prefix_plan plan;
    ptowsp_attend_job job;
    void *memory;  // of the job
    uint64_t tree_ns[STEPS_MAX], plan_ns[STEPS_MAX], run_ns[STEPS_MAX];
    double error;
} prefix_run;

// -- requests -------------------------------------------------------------------------------------

// Adds a request of so many KV tokens; false if that is too many.
static bool step_add(prefix_step *s, const uint64_t *ids, uint64_t id_count, int32_t kv) {
    const uint64_t most = (s->o.kv_mib << 20) / (s->o.kv_heads * 2 * DIM * sizeof(uint16_t));
    if (s->count == s->o.batch || s->tokens + (uint64_t)kv > most) {
        return false;
    }
    const uint64_t begin = s->block_begin[s->count];
    if (begin + id_count > s->id_capacity) {
        s->id_capacity = 2 * (begin + id_count);
        s->ids = (uint64_t *)realloc(s->ids, s->id_capacity * sizeof *s->ids);
        if (!s->ids) {
            command_fail("out of memory");
        }
    }
    if (id_count > 0) {
        memcpy(s->ids + begin, ids, id_count * sizeof *ids);
    }
    s->kv[s->count++] = kv;
    s->block_begin[s->count] = begin + id_count;
    s->tokens += (uint64_t)kv;
    return true;
}

static void step_from_trace(prefix_step *s) {
    trace t;
    char error[200];
    if (!trace_read(s->o.trace_path, &t, error, sizeof error)) {
        command_fail("%s", error);
    }
    if (t.id_count == 0) {
        command_fail("%s: no request has hash_ids", s->o.trace_path);
    }
    s->block_tokens = TRACE_BLOCK_TOKENS;
    for (size_t i = 0; i < t.count; i++) {
        const trace_request *r = &t.requests[i];
        const double since = s->o.at_seconds - r->arrival_seconds;
        const double tokens = since * 1000.0 / s->o.token_ms;
        if (since < 0 || tokens >= r->output_tokens || r->input_tokens == 0) {
            continue;
        }
        // The last block is not shared, as what is decoded goes on in it.
        uint64_t blocks = (uint64_t)r->input_tokens / s->block_tokens;
        blocks = blocks < r->id_count ? blocks : r->id_count;
        step_add(s, (const uint64_t *)t.ids + r->id_begin, blocks,
                 r->input_tokens + (int32_t)tokens + 1);
    }
    snprintf(s->source, sizeof s->source, "%s at %.6g s", t.format, s->o.at_seconds);
    trace_free(&t);
    if (s->count == 0) {
        command_fail("no request is live at %.6g s", s->o.at_seconds);
    }
}

static uint64_t below(uint64_t *random, uint64_t bound) {
    return lengths_random(random) % bound;
}

// Ids: a number for each kind of prefix, and the block in it.
static void step_generate(prefix_step *s) {
    enum { PROMPT = 16, SHOTS = 32, TURN = 4, TURNS = 12, BLOCKS = PROMPT + SHOTS + TURN * TURNS };
    uint64_t random = s->o.seed, ids[BLOCKS];
    s->block_tokens = 64;
    snprintf(s->source, sizeof s->source, "generated, seed %llu", (unsigned long long)s->o.seed);
    for (uint64_t chat = 0; s->count < s->o.batch; chat++) {
        uint64_t count = 0, prompt = below(&random, 2), turns = 0;
        for (; count < PROMPT; count++) {
            ids[count] = prompt << 32 | count;
        }
        if (below(&random, 3) == 0) {
            for (; count < PROMPT + SHOTS; count++) {
                ids[count] = UINT64_C(1) << 40 | count;
            }
        } else {
            const uint64_t talk = below(&random, 1 + s->o.batch / 8);
            turns = below(&random, TURNS);
            for (uint64_t i = 0; i < turns * TURN; i++) {
                ids[count++] = UINT64_C(2) << 40 | talk << 20 | i;
            }
        }
        const uint64_t beams = below(&random, 6) == 0 ? 4 : 1;
        const uint64_t own = 1 + below(&random, 6 * s->block_tokens);
        uint64_t shared = count;
        for (uint64_t i = 0; beams > 1 && i < own / s->block_tokens; i++) {
            ids[shared++] = UINT64_C(3) << 40 | chat << 16 | i;
            shared = shared < BLOCKS ? shared : BLOCKS - 1;
        }
        const int32_t kv = (int32_t)(count * s->block_tokens + own);
        for (uint64_t beam = 0; beam < beams; beam++) {
            if (!step_add(s, ids, shared, kv)) {
                return;
            }
        }
    }
}

// -- the cache ------------------------------------------------------------------------------------

static void fill_halves(uint16_t *to, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) {
        to[i] = ptowsp_f16_from_f32((float)(lengths_random_unit(&seed) * 2.0 - 1.0));
    }
}

// Gives pages: those of what a request shares with the one before it in the tree are that one's, but
// for a page of which it shares a part, whose content is the same.
static void step_pages(prefix_step *s) {
    const ptowsp_prefix_tree *tree = &s->tree;
    const size_t page_size = (size_t)s->o.kv_heads * 2 * PAGE * DIM;
    int32_t longest = 1;
    uint64_t most = 0;
    for (uint32_t r = 0; r < s->count; r++) {
        longest = s->kv[r] > longest ? s->kv[r] : longest;
        most += ((uint64_t)s->kv[r] + PAGE - 1) / PAGE;
    }
    for (uint32_t p = 0; p < s->count; p++) {
        most -= tree->common[p] / PAGE;
    }
    s->page_stride = ((size_t)longest + PAGE - 1) / PAGE;
    s->pages = (uint32_t *)command_allocate(s->count * s->page_stride, sizeof *s->pages);
    s->pool = (uint16_t *)pool_allocate(most * page_size * sizeof *s->pool);
    if (!s->pool) {
        command_fail("out of memory");
    }
    uint16_t *random = (uint16_t *)command_allocate(1 << 18, sizeof *random);
    fill_halves(random, 1 << 18, s->o.seed + 7);
    for (uint32_t p = 0; p < s->count; p++) {
        const uint32_t r = tree->order[p], whole = tree->common[p] / PAGE;
        uint32_t *own = s->pages + r * s->page_stride;
        const uint32_t *before = p > 0 ? s->pages + tree->order[p - 1] * s->page_stride : own;
        memcpy(own, before, p > 0 ? whole * sizeof *own : 0);
        for (uint32_t i = whole; i * PAGE < (uint32_t)s->kv[r]; i++) {
            uint16_t *page = s->pool + s->page_count * page_size;
            for (size_t at = 0; at < page_size; at += 256) {
                uint64_t key = s->page_count * UINT64_C(977) + at;
                const size_t from = lengths_random(&key) % ((1 << 18) - 256);
                memcpy(page + at, random + from, (page_size - at < 256 ? page_size - at : 256) * 2);
            }
            if (i == whole && tree->common[p] % PAGE > 0) {
                memcpy(page, s->pool + before[i] * page_size, page_size * sizeof *page);
            }
            own[i] = s->page_count++;
        }
    }
    free(random);
}

static void step_make(prefix_step *s) {
    s->kv = (int32_t *)command_allocate(s->o.batch, sizeof *s->kv);
    s->block_begin = (uint64_t *)command_allocate(s->o.batch + 1, sizeof *s->block_begin);
    if (s->o.trace_path) {
        step_from_trace(s);
    } else {
        step_generate(s);
    }
    if (s->count == 0) {
        command_fail("no request fits --kv-mib");
    }
    const ptowsp_attention_batch lengths = {.kv_lengths = s->kv, .sequence_count = s->count};
    s->batch.attention = lengths;
    s->batch.block_ids = s->ids;
    s->batch.block_begin = s->block_begin;
    s->batch.block_tokens = s->block_tokens;
    ptowsp_prefix_limits limits = {.request_count_max = s->count, .block_count_max = 1};
    for (uint32_t r = 0; r < s->count; r++) {
        const uint64_t blocks = s->block_begin[r + 1] - s->block_begin[r];
        limits.block_count_max = blocks > limits.block_count_max ? blocks : limits.block_count_max;
    }
    const uint64_t bytes = ptowsp_prefix_tree_bytes(&limits);
    command_check(NULL,
                  ptowsp_prefix_tree_place(&limits, command_allocate(bytes, 1), bytes, &s->tree));
    command_check(NULL, ptowsp_prefix_build(&s->batch, &s->tree, NULL));
    step_pages(s);
    const size_t heads = (size_t)(s->o.kv_heads * s->o.group);
    s->queries = (float *)command_allocate(s->count * heads * DIM, sizeof *s->queries);
    uint64_t random = s->o.seed + 3;
    for (size_t i = 0; i < s->count * heads * DIM; i++) {
        s->queries[i] = (float)(lengths_random_unit(&random) * 2.0 - 1.0);
    }
    const ptowsp_attend_strides strides = {
        .page = (size_t)s->o.kv_heads * 2 * PAGE * DIM, .token = DIM, .head = 2 * PAGE * DIM};
    s->cache.keys = s->pool;
    s->cache.values = s->pool + PAGE * DIM;
    s->cache.key_strides = s->cache.value_strides = strides;
    s->cache.type = PTOWSP_ATTEND_F16;
    s->cache.key_dim = s->cache.value_dim = DIM;
    s->cache.page_size = PAGE;
    s->attention.queries = s->queries;
    s->attention.query_token_stride = s->attention.output_token_stride = heads * DIM;
    s->attention.query_head_stride = s->attention.output_head_stride = DIM;
    s->attention.batch = &s->batch.attention;
    s->attention.config = &s->config;
    s->attention.pages = s->pages;
    s->attention.page_stride = s->page_stride;
    s->config.kv_head_count = (uint32_t)s->o.kv_heads;
    s->config.group = (uint32_t)s->o.group;
    s->config.lane_count = (uint32_t)s->o.threads;
    s->config.page_size = PAGE;
    s->config.tile_rows = (uint32_t)s->o.tile;
    s->config.mode = s->o.is_invariant ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
}

// -- runs -----------------------------------------------------------------------------------------

static const float *run_output(const prefix_run *run, uint32_t token, uint32_t kv_head,
                               uint32_t row) {
    const size_t head = kv_head * run->s->o.group + row % run->s->o.group;
    return run->outputs + token * run->attention.output_token_stride + head * DIM;
}

// Makes room: the sizes are those of every step, as lengths stay.
static void run_make(prefix_run *run, prefix_step *s, bool is_tree) {
    run->s = s;
    run->is_tree = is_tree;
    run->attention = s->attention;
    run->attention.plan = is_tree ? &run->plan.attention : &run->flat;
    run->attention.prefix = is_tree ? &run->plan : NULL;
    run->outputs = (float *)command_allocate(s->count * run->attention.output_token_stride,
                                             sizeof *run->outputs);
    run->attention.outputs = run->outputs;
    ptowsp_prefix_sizes sizes;
    memset(&sizes, 0, sizeof sizes);
    ptowsp_attention_sizes *flat = &sizes.attention;
    if (is_tree) {
        command_check(NULL,
                      ptowsp_prefix_size(&s->batch.attention, &s->config, &s->tree, &sizes, NULL));
        run->block = command_allocate(sizes.block_bytes, 1);
        command_check(NULL, ptowsp_prefix_place(&sizes, run->block, sizes.block_bytes, &run->plan));
    } else {
        command_check(NULL, ptowsp_attention_size(&s->batch.attention, &s->config, flat, NULL));
        run->block = command_allocate(flat->block_bytes, 1);
        command_check(NULL,
                      ptowsp_attention_place(flat, run->block, flat->block_bytes, &run->flat));
    }
    const ptowsp_attend_limits limits = {
        .plan = *flat, .join_count = sizes.join_count, .value_dim = DIM, .worker_count = 1};
    uint64_t bytes;
    command_check(NULL, ptowsp_attend_size(&limits, &bytes, NULL));
    run->memory = command_allocate(bytes, 1);
    command_check(NULL, ptowsp_attend_place(&limits, run->memory, bytes, &run->job.memory, NULL));
    run->job.cache = &s->cache;
    run->job.step = &run->attention;
}

static void run_step(prefix_run *run, uint32_t index) {
    prefix_step *s = run->s;
    const uint64_t start = ptowsp_clock_ns();
    if (run->is_tree) {
        command_check(NULL, ptowsp_prefix_build(&s->batch, &s->tree, NULL));
    }
    const uint64_t built = ptowsp_clock_ns();
    const ptowsp_attention_batch *batch = &s->batch.attention;
    command_check(NULL, run->is_tree
                            ? ptowsp_prefix_generate(batch, &s->config, &s->tree, &run->plan, NULL)
                            : ptowsp_attention_generate(batch, &s->config, &run->flat, NULL));
    const uint64_t planned = ptowsp_clock_ns();
    command_check(s->context, ptowsp_attend_run(s->context, &run->job));
    run->tree_ns[index] = built - start;
    run->plan_ns[index] = planned - built;
    run->run_ns[index] = ptowsp_clock_ns() - planned;
}

// -- the check ------------------------------------------------------------------------------------

static const uint16_t *cache_row(const prefix_step *s, uint32_t request, uint32_t token,
                                 uint32_t head, bool is_value) {
    const size_t page = s->pages[request * s->page_stride + token / PAGE];
    const ptowsp_attend_strides *strides = &s->cache.key_strides;
    return s->pool + page * strides->page + (token % PAGE) * strides->token + head * strides->head +
           (is_value ? PAGE * DIM : 0);
}

// Compares the outputs of a request and KV head with plain softmax in double precision.
static void check_head(const prefix_step *s, uint32_t request, uint32_t head, prefix_run *runs,
                       double *scores) {
    const uint32_t kv = (uint32_t)s->kv[request], group = (uint32_t)s->o.group;
    for (uint32_t g = 0; g < group; g++) {
        const float *query = s->queries + request * s->attention.query_token_stride +
                             (size_t)(head * group + g) * DIM;
        double most = -INFINITY, l = 0, sum[DIM] = {0};
        for (uint32_t t = 0; t < kv; t++) {
            const uint16_t *key = cache_row(s, request, t, head, false);
            scores[t] = 0;
            for (uint32_t d = 0; d < DIM; d++) {
                scores[t] += (double)query[d] * (double)ptowsp_f32_from_f16(key[d]);
            }
            scores[t] /= sqrt(DIM);
            most = scores[t] > most ? scores[t] : most;
        }
        for (uint32_t t = 0; t < kv; t++) {
            const uint16_t *value = cache_row(s, request, t, head, true);
            const double weight = exp(scores[t] - most);
            l += weight;
            for (uint32_t d = 0; d < DIM; d++) {
                sum[d] += weight * (double)ptowsp_f32_from_f16(value[d]);
            }
        }
        for (int i = 0; i < 2; i++) {
            const float *out = run_output(&runs[i], request, head, g);
            double largest = 0, error = 0;
            for (uint32_t d = 0; d < DIM; d++) {
                largest = fmax(largest, fabs(sum[d] / l));
                error = fmax(error, fabs(sum[d] / l - (double)out[d]));
            }
            if (!(error / largest <= runs[i].error)) {  // NaN, too
                runs[i].error = error / largest;
            }
        }
    }
}

static void check(const prefix_step *s, prefix_run *runs) {
    double *scores = (double *)command_allocate(s->page_stride * PAGE, sizeof *scores);
    for (uint32_t r = 0; r < s->count; r++) {
        for (uint32_t head = 0; head < s->o.kv_heads; head++) {
            check_head(s, r, head, runs, scores);
        }
    }
    free(scores);
}

// -- the program ----------------------------------------------------------------------------------

static int compare_ns(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_us(uint64_t *ns, uint64_t count) {
    qsort(ns, count, sizeof *ns, compare_ns);
    return (double)ns[count / 2] / 1000.0;
}

static bool report(const prefix_step *s, prefix_run *runs) {
    const ptowsp_prefix_plan *plan = &runs[1].plan;
    const double token = 2.0 * DIM * sizeof(uint16_t) / (1 << 20);
    const uint64_t reads[2] = {plan->flat_kv_token_reads, plan->kv_token_reads};
    const double times[2] = {plan->flat_time, plan->time};
    double run_us[2];
    bool is_good = true;
    printf("%u requests, %llu KV tokens (%s), blocks of %u, %u nodes\n", (unsigned)s->count,
           (unsigned long long)s->tokens, s->source, (unsigned)s->block_tokens,
           (unsigned)s->tree.node_count);
    printf("%u shared segments, %u joins; %u pages of %d tokens\n", (unsigned)plan->shared_count,
           (unsigned)plan->join_count, (unsigned)s->page_count, PAGE);
    printf("%-6s %12s %10s %10s %10s %12s %12s\n", "plan", "KV read MiB", "tree us", "plan us",
           "run us", "predicted", "error");
    for (int i = 0; i < 2; i++) {
        run_us[i] = median_us(runs[i].run_ns, s->o.steps);
        printf("%-6s %12.1f %10.1f %10.1f %10.1f %12.6g %12.2e\n", i ? "tree" : "flat",
               (double)reads[i] * token, median_us(runs[i].tree_ns, s->o.steps),
               median_us(runs[i].plan_ns, s->o.steps), run_us[i], times[i], runs[i].error);
        if (!(runs[i].error <= TOLERANCE)) {
            printf("WRONG: the error is above %g\n", TOLERANCE);
            is_good = false;
        }
    }
    printf("tree / flat: KV %.3f, predicted time %.3f, time %.3f\n",
           (double)reads[1] / (double)reads[0], times[1] / times[0], run_us[1] / run_us[0]);
    if (s->o.is_invariant) {
        const size_t floats = s->count * s->attention.output_token_stride;
        const bool is_same = memcmp(runs[0].outputs, runs[1].outputs, floats * sizeof(float)) == 0;
        printf("%s\n", is_same ? "the bits of both are the same" : "WRONG: bits differ");
        is_good = is_good && is_same;
    }
    return is_good;
}

static void step_free(prefix_step *s, prefix_run *runs) {
    for (int i = 0; i < 2; i++) {
        free(runs[i].outputs);
        free(runs[i].block);
        free(runs[i].memory);
    }
    ptowsp_context_destroy(s->context);
    free(s->tree.nodes);  // the block
    free(s->kv);
    free(s->ids);
    free(s->block_begin);
    free(s->pages);
    free(s->pool);
    free(s->queries);
}

int main(int argc, char **argv) {
    prefix_step s;
    memset(&s, 0, sizeof s);
    prefix_options *o = &s.o;
    o->batch = 64, o->kv_mib = 256, o->kv_heads = 2, o->group = 4, o->tile = 64, o->threads = 2;
    o->steps = 5, o->seed = 1, o->at_seconds = 600, o->token_ms = 50;
    const command_option numbers[] = {{"--batch", &o->batch, NULL, 1, 100000},
                                      {"--kv-mib", &o->kv_mib, NULL, 1, 1 << 16},
                                      {"--kv-heads", &o->kv_heads, NULL, 1, 128},
                                      {"--group", &o->group, NULL, 1, 64},
                                      {"--tile", &o->tile, NULL, 1, 4096},
                                      {"--threads", &o->threads, NULL, 1, 256},
                                      {"--steps", &o->steps, NULL, 1, STEPS_MAX},
                                      {"--seed", &o->seed, NULL, 0, INT32_MAX},
                                      {"--at", NULL, &o->at_seconds, 0, 100000000},
                                      {"--token-ms", NULL, &o->token_ms, 1, 100000}};
    const command_text texts[] = {{"--trace", &o->trace_path}};
    const command_flag flags[] = {{"--invariant", &o->is_invariant}};
    const command_options options = {numbers, sizeof numbers / sizeof *numbers, texts, 1, flags, 1};
    command_parse_all(argc, argv, help, &options);
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = (uint32_t)o->threads};
    command_check(NULL, ptowsp_context_create(&desc, &s.context));
    step_make(&s);
    prefix_run *runs = (prefix_run *)command_allocate(2, sizeof *runs);
    for (int i = 0; i < 2; i++) {
        run_make(&runs[i], &s, i == 1);
    }
    for (uint32_t step = 0; step < o->steps; step++) {
        run_step(&runs[0], step);
        run_step(&runs[1], step);
    }
    check(&s, runs);
    const bool is_good = report(&s, runs);
    step_free(&s, runs);
    free(runs);
    command_flush();
    return is_good ? 0 : 1;
}
