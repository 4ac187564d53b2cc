// One decode step of a serving engine, for real: plans a ragged batch, attends a paged KV cache
// piece by piece on threads, merges the pieces, and compares every output with a plain
// double-precision softmax attention.
//
//      lengths -> plan -> descriptors -> attention_compute, per tier, on lanes -> merge -> check
//
// Every step is done anew as an engine would: plan, run, merge; the times shown are medians over
// steps. `decode_batch --help` lists the options.

#include "ptowsp.h"

#include "common/attention.h"
#include "common/lengths.h"
#include "common/pool.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOLERANCE 1e-4  // of the largest magnitude in an output row
#define STEPS_MAX 100

// -- options --------------------------------------------------------------------------------------

typedef struct options {
    uint64_t batch, heads, kv_heads, dim, page, threads, units, kv_mib, steps, seed;
    attention_type type;
    bool is_fixed, is_json, has_at;
    double at_seconds, token_ms;
    const char *trace_path;
} options;

static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("decode_batch: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static const char help_text[] =
    "usage: decode_batch [options]\n"
    "  --batch N          requests in the step (256)\n"
    "  --heads N          query heads (32)\n"
    "  --kv-heads N       KV heads; heads is a multiple of it (8)\n"
    "  --dim N            head dimension, a multiple of 16 up to 576 (128)\n"
    "  --page N           tokens in a KV page (16)\n"
    "  --kv TYPE          type of the KV cache: f32, f16, bf16 or i8 (f16)\n"
    "  --kv-mib N         size of the KV pool; pages repeat beyond it (256)\n"
    "  --threads N        lanes (one for each processor)\n"
    "  --units N          limit on work units (4096)\n"
    "  --fixed            chunks of fixed length instead of balanced ones\n"
    "  --steps N          steps to take the median over (5)\n"
    "  --seed N           of lengths, page table and data (1)\n"
    "  --trace FILE       lengths from an Azure CSV or Mooncake JSONL trace: its first requests\n"
    "  --at SECONDS       with --trace: the requests live at that time\n"
    "  --token-ms X       with --at: time for an output token (30)\n"
    "  --json             the result as JSON\n";

static uint64_t parse_whole(const char *flag, const char *text, uint64_t low, uint64_t high) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (!text || text[0] < '0' || text[0] > '9' || *end || errno || value < low || value > high) {
        fail("%s takes a whole number from %llu to %llu, not '%s'", flag, (unsigned long long)low,
             (unsigned long long)high, text ? text : "");
    }
    return value;
}

// Says what is done next, to stderr, as a default step takes seconds. JSON is for programs.
static void say(const options *o, const char *format, ...) {
    if (!o->is_json) {
        va_list args;
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
}

// Exits with 2 when what was printed could not be written, as on a full disk.
static void flush_output(void) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fail("cannot write the output");
    }
}

static double parse_real(const char *flag, const char *text, double low) {
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !(value >= low && value <= 1e12)) {
        fail("%s takes a number from %g to 1e12, not '%s'", flag, low, text ? text : "");
    }
    return value;
}

static const char *const type_names[] = {"f32", "f16", "bf16", "i8"};

static attention_type parse_type(const char *text) {
    for (uint32_t i = 0; text && i < 4; i++) {
        if (strcmp(text, type_names[i]) == 0) {
            return (attention_type)i;
        }
    }
    fail("--kv takes f32, f16, bf16 or i8, not '%s'", text ? text : "");
    return ATTENTION_F32;
}

static options options_parse(int argc, char **argv) {
    options o = {256,           32,    8,     128,   16,  0,    4096, 256, 5, 1,
                 ATTENTION_F16, false, false, false, 0.0, 30.0, NULL};
    const struct {
        const char *flag;
        uint64_t *value;
        uint64_t low, high;
    } numbers[] = {
        {"--batch", &o.batch, 1, 65536},      {"--heads", &o.heads, 1, 1024},
        {"--kv-heads", &o.kv_heads, 1, 1024}, {"--dim", &o.dim, 16, ATTENTION_DIM_MAX},
        {"--page", &o.page, 1, 65536},        {"--threads", &o.threads, 1, PTOWSP_LANE_COUNT_MAX},
        {"--units", &o.units, 1, UINT32_MAX}, {"--kv-mib", &o.kv_mib, 1, 1 << 20},
        {"--steps", &o.steps, 1, STEPS_MAX},  {"--seed", &o.seed, 0, UINT64_MAX},
    };
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool is_known = false;
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            if (strcmp(flag, numbers[k].flag) == 0) {
                *numbers[k].value = parse_whole(flag, value, numbers[k].low, numbers[k].high);
                is_known = true;
            }
        }
        if (is_known) {
            i++;
        } else if (strcmp(flag, "--help") == 0) {
            fputs(help_text, stdout);
            flush_output();
            exit(0);
        } else if (strcmp(flag, "--json") == 0) {
            o.is_json = true;
        } else if (strcmp(flag, "--fixed") == 0) {
            o.is_fixed = true;
        } else if (strcmp(flag, "--kv") == 0) {
            o.type = parse_type(value);
            i++;
        } else if (strcmp(flag, "--trace") == 0) {
            if (!value) {
                fail("--trace takes a file");
            }
            o.trace_path = argv[++i];
        } else if (strcmp(flag, "--at") == 0) {
            o.at_seconds = parse_real(flag, value, 0.0);
            o.has_at = true;
            i++;
        } else if (strcmp(flag, "--token-ms") == 0) {
            o.token_ms = parse_real(flag, value, 1e-3);
            i++;
        } else {
            fail("unknown option '%s'; see --help", flag);
        }
    }
    if (o.heads % o.kv_heads != 0) {
        fail("--heads %llu is not a multiple of --kv-heads %llu", (unsigned long long)o.heads,
             (unsigned long long)o.kv_heads);
    }
    if (o.dim % 16 != 0) {
        fail("--dim %llu is not a multiple of 16", (unsigned long long)o.dim);
    }
    if (o.has_at && !o.trace_path) {
        fail("--at needs --trace");
    }
    return o;
}

// -- the step's data ------------------------------------------------------------------------------

// Counters of one lane, a cache line apart.
typedef struct lane_stats {
    uint64_t busy_ns;
    uint64_t units;
    char padding[112];
} lane_stats;

typedef struct step {
    options o;
    ptowsp_context *context;
    char source[256];  // where the lengths come from

    int32_t *lengths;  // [batch.sequence_count]
    ptowsp_batch batch;
    uint64_t token_count;
    uint32_t group;  // query heads of a KV head

    attention_kv kv;
    attention_step attention;
    void *pool;     // [page][kv_head][K or V][slot][dim]
    float *scales;  // [page][kv_head][slot], of keys and of values; KV in i8 alone
    uint64_t pool_pages;
    uint32_t *pages;        // page tables of all requests, one after another
    uint32_t *page_starts;  // [request] where its table begins

    float *queries;  // [request][head][dim]
    float *outputs;  // [request][head][dim]

    uint32_t chunk;
    ptowsp_work *work;
    uint64_t work_capacity;
    uint64_t work_count;
    ptowsp_partial *states;  // [unit][group]
    float *accs;             // [unit][group][dim]

    lane_stats *lanes;
    uint64_t chunk_ns[STEPS_MAX], generate_ns[STEPS_MAX], run_ns[STEPS_MAX], merge_ns[STEPS_MAX];
    double error;  // largest, relative
} step;

static void *allocate(uint64_t count, size_t size) {
    void *memory = count <= SIZE_MAX / size ? calloc(count ? (size_t)count : 1, size) : NULL;
    if (!memory) {
        fail("out of memory for %llu x %zu bytes", (unsigned long long)count, size);
    }
    return memory;
}

static void check(const step *s, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        fail("%s", s->context ? ptowsp_context_error(s->context).text : ptowsp_status_text(status));
    }
}

// Lengths of the batch, from the generator or the trace.
static void step_read_lengths(step *s) {
    const options *o = &s->o;
    uint32_t count = (uint32_t)o->batch;
    s->lengths = (int32_t *)allocate(count, sizeof *s->lengths);
    if (!o->trace_path) {
        lengths_generate(o->seed, count, s->lengths);
        snprintf(s->source, sizeof s->source, "generated lengths, seed %llu",
                 (unsigned long long)o->seed);
    } else {
        char error[512];
        trace t;
        if (!trace_read(o->trace_path, &t, error, sizeof error)) {
            fail("%s", error);
        }
        const char *slash = strrchr(o->trace_path, '/');
        const char *name = slash ? slash + 1 : o->trace_path;
        if (o->has_at) {
            count = trace_live(&t, o->at_seconds, o->token_ms / 1000.0, count, s->lengths);
            int length = snprintf(s->source, sizeof s->source, "%s (%s), live at %g s", name,
                                  t.format, o->at_seconds);
            if (count == 0 && length > 0 && (size_t)length < sizeof s->source) {
                snprintf(s->source + length, sizeof s->source - (size_t)length,
                         ". No request is live then; the last one ends at %.3f s",
                         trace_end(&t, o->token_ms / 1000.0));
            }
        } else {
            count = trace_first(&t, count, s->lengths);
            snprintf(s->source, sizeof s->source, "%s (%s), first requests", name, t.format);
        }
        trace_free(&t);
    }
    s->batch.lengths = s->lengths;
    s->batch.sequence_count = count;
    s->batch.head_count = (uint32_t)o->kv_heads;
    for (uint32_t i = 0; i < count; i++) {
        s->token_count += (uint64_t)s->lengths[i];
    }
}

static float random_float(uint64_t *state) {
    return (float)(lengths_random_unit(state) * 2.0 - 1.0);
}

// Element `at` of the pool, rounded to its type. Integers are of 1 / 127, times their scale.
static void kv_set(step *s, uint64_t at, float value) {
    switch (s->o.type) {
    case ATTENTION_F32: ((float *)s->pool)[at] = value; break;
    case ATTENTION_F16: ((uint16_t *)s->pool)[at] = ptowsp_f16_from_f32(value); break;
    case ATTENTION_BF16: ((uint16_t *)s->pool)[at] = ptowsp_bf16_from_f32(value); break;
    case ATTENTION_I8: ((int8_t *)s->pool)[at] = (int8_t)lrintf(value * 127.0f); break;
    }
}

static void fill_pages(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    step *s = (step *)user;
    uint64_t scale_count = s->o.type == ATTENTION_I8 ? s->o.kv_heads * s->o.page : 0;
    uint64_t elements = s->o.kv_heads * 2 * s->o.page * s->o.dim;
    (void)lane;
    for (uint64_t page = begin; page < end; page++) {
        uint64_t state = s->o.seed ^ (page + 1) * UINT64_C(0xd1342543de82ef95);
        for (uint64_t i = 0; i < elements; i++) {
            kv_set(s, page * elements + i, random_float(&state));
        }
        for (uint64_t i = 0; i < scale_count; i++) {
            s->scales[page * scale_count + i] = (1.0f + 0.5f * random_float(&state)) / 127.0f;
        }
    }
}

// Addresses of the cache for the kernel.
static void step_describe_cache(step *s) {
    size_t slots = s->o.page, dim = s->o.dim, heads = s->o.kv_heads;
    attention_strides strides = {heads * 2 * slots * dim, dim, 2 * slots * dim};
    attention_strides scale_strides = {heads * slots, 1, slots};
    s->kv.keys = s->pool;
    s->kv.values = (const char *)s->pool + slots * dim * attention_type_size(s->o.type);
    s->kv.key_strides = s->kv.value_strides = strides;
    s->kv.key_scales = s->kv.value_scales = s->scales;
    s->kv.scale_strides = scale_strides;
    s->kv.type = s->o.type;
    s->kv.key_dim = s->kv.value_dim = (uint32_t)dim;
    s->kv.page_size = (uint32_t)slots;
}

// The KV pool, as large as allowed, and page tables that scatter the requests over it.
static void step_make_cache(step *s) {
    const options *o = &s->o;
    uint64_t page_count = 0;
    s->page_starts = (uint32_t *)allocate(s->batch.sequence_count, sizeof *s->page_starts);
    for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
        s->page_starts[i] = (uint32_t)page_count;
        page_count += ((uint64_t)s->lengths[i] + o->page - 1) / o->page;
    }
    size_t element = attention_type_size(o->type);
    uint64_t page_bytes = o->kv_heads * 2 * o->page * o->dim * element;
    s->pool_pages = o->kv_mib * 1024 * 1024 / page_bytes;
    if (page_count > UINT32_MAX || s->pool_pages > SIZE_MAX / page_bytes) {
        fail("%llu KV pages and a pool of %llu MiB are more than this machine can address",
             (unsigned long long)page_count, (unsigned long long)o->kv_mib);
    }
    if (s->pool_pages == 0) {
        fail("--kv-mib %llu has no room for one page of %llu bytes", (unsigned long long)o->kv_mib,
             (unsigned long long)page_bytes);
    }
    if (s->pool_pages > page_count) {
        s->pool_pages = page_count ? page_count : 1;
    }
    s->pool = pool_allocate((size_t)(s->pool_pages * page_bytes));
    s->scales = (float *)allocate(s->pool_pages * o->kv_heads * o->page, sizeof *s->scales);
    if (!s->pool) {
        fail("out of memory for a KV pool of %llu MiB", (unsigned long long)o->kv_mib);
    }
    check(s, ptowsp_parallel_for(s->context, s->pool_pages, 1, fill_pages, s));

    uint32_t *order = (uint32_t *)allocate(s->pool_pages, sizeof *order);
    uint64_t state = o->seed;
    for (uint64_t i = 0; i < s->pool_pages; i++) {  // shuffled from the inside (Fisher and Yates)
        uint64_t k = lengths_random(&state) % (i + 1);
        order[i] = order[k];
        order[k] = (uint32_t)i;
    }
    s->pages = (uint32_t *)allocate(page_count, sizeof *s->pages);
    for (uint64_t i = 0; i < page_count; i++) {
        s->pages[i] = order[i % s->pool_pages];
    }
    free(order);
    step_describe_cache(s);
}

// Queries, with scores that spread as in a trained model (a standard deviation of about 2), and
// outputs.
static void step_make_queries(step *s) {
    uint64_t count = (uint64_t)s->batch.sequence_count * s->o.heads * s->o.dim;
    uint64_t state = s->o.seed + 1;
    s->queries = (float *)allocate(count, sizeof(float));
    s->outputs = (float *)allocate(count, sizeof(float));
    for (uint64_t i = 0; i < count; i++) {
        s->queries[i] = random_float(&state) * 6.0f;
    }
    s->attention.queries = s->queries;
    s->attention.outputs = s->outputs;
    s->attention.query_head_stride = s->attention.output_head_stride = s->o.dim;
    s->attention.query_token_stride = s->attention.output_token_stride = s->o.heads * s->o.dim;
    s->attention.kv_lengths = s->lengths;
    s->attention.pages = s->pages;
    s->attention.page_starts = s->page_starts;
    s->attention.group = s->group;
}

// -- plan, run, merge -----------------------------------------------------------------------------

static ptowsp_plan_config step_config(const step *s) {
    ptowsp_plan_config config = {0};
    config.max_work_units = (uint32_t)s->o.units;
    config.align = (uint32_t)s->o.page;
    config.chunks = s->o.is_fixed ? PTOWSP_CHUNKS_FIXED : PTOWSP_CHUNKS_BALANCED;
    if (s->o.page > PTOWSP_CHUNK_MAX_DEFAULT) {
        config.chunk_max = config.align;
    }
    return config;
}

// Makes room for `count` units: descriptors and partial states.
static void step_reserve(step *s, uint64_t count) {
    if (count > s->work_capacity) {
        ptowsp_work_destroy(s->context, s->work);
        free(s->states);
        free(s->accs);
        check(s, ptowsp_work_create(s->context, count, &s->work));
        s->states = (ptowsp_partial *)allocate(count * s->group, sizeof *s->states);
        s->accs = (float *)allocate(count * s->group * s->o.dim, sizeof *s->accs);
        s->work_capacity = count;
    }
}

static void step_plan(step *s, uint32_t index) {
    ptowsp_plan_config config = step_config(s);
    ptowsp_plan_info info;
    uint64_t start = ptowsp_clock_ns();
    ptowsp_status status = ptowsp_plan_chunk_size(&s->batch, &config, &s->chunk, &info);
    uint64_t middle = ptowsp_clock_ns();
    if (status == PTOWSP_OK) {
        status =
            ptowsp_plan_generate(&s->batch, &config, s->chunk, s->work, s->work_capacity, &info);
    }
    if (status == PTOWSP_BUFFER_OVERFLOW) {  // the first step: now the size is known
        step_reserve(s, info.work_count);
        middle = ptowsp_clock_ns();
        status =
            ptowsp_plan_generate(&s->batch, &config, s->chunk, s->work, s->work_capacity, &info);
    }
    uint64_t end = ptowsp_clock_ns();
    if (status != PTOWSP_OK) {
        char line[256];
        ptowsp_text_buffer buffer = {line, sizeof line, 0};
        ptowsp_plan_explain(&info, ptowsp_text_to_buffer(&buffer));
        fail("%s", line);
    }
    s->work_count = info.work_count;
    s->chunk_ns[index] = middle - start;
    s->generate_ns[index] = end - middle;
}

// The kernel of every tier: attends the unit's tokens, for all query heads of its KV head. A sequence
// that is not cut has its outputs at once. A kernel library would use `tier` to choose tile sizes.
PTOWSP_INLINE void attend(const ptowsp_work *work, uint32_t lane, void *user, int tier) {
    step *s = (step *)user;
    uint64_t start = ptowsp_clock_ns();
    uint64_t row = (uint64_t)work->work_id * s->group;
    bool is_whole = ptowsp_work_is_first(work) && ptowsp_work_is_last(work);
    (void)tier;
    attention_compute_work(&s->kv, &s->attention, work, is_whole ? NULL : s->states + row,
                           s->accs + row * s->o.dim);
    s->lanes[lane].busy_ns += ptowsp_clock_ns() - start;
    s->lanes[lane].units++;
}

PTOWSP_DEFINE_TIERS(attend, PTOWSP_DECODE_TIERS, attend)

// Merges the pieces of each (request, KV head) that was cut: a run of descriptors from FIRST to LAST.
static void merge_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    step *s = (step *)user;
    (void)lane;
    for (uint64_t unit = begin; unit < end; unit++) {
        const ptowsp_work *work = &s->work[unit];
        if (!ptowsp_work_is_first(work) || ptowsp_work_is_last(work)) {
            continue;
        }
        uint32_t piece_count = 1;
        while (!ptowsp_work_is_last(&work[piece_count - 1])) {
            piece_count++;
        }
        for (uint32_t g = 0; g < s->group; g++) {
            uint64_t row = unit * s->group + g;
            uint64_t head = (uint64_t)ptowsp_work_head(work) * s->group + g;
            uint64_t out = ptowsp_work_request(work) * s->o.heads + head;
            ptowsp_merge_partials(s->states + row, s->accs + row * s->o.dim, piece_count, s->group,
                                  (uint32_t)s->o.dim, s->outputs + out * s->o.dim);
        }
    }
}

static void step_run(step *s, uint32_t index) {
    uint64_t start = ptowsp_clock_ns();
    check(s, ptowsp_dispatch_spmd(s->context, s->work, s->work_count, attend_table,
                                  attend_tier_count, s));
    uint64_t middle = ptowsp_clock_ns();
    check(s, ptowsp_parallel_for(s->context, s->work_count, 0, merge_range, s));
    s->run_ns[index] = middle - start;
    s->merge_ns[index] = ptowsp_clock_ns() - middle;
}

// -- check ----------------------------------------------------------------------------------------

typedef struct reference {
    step *s;
    double *scores;      // [lane][length_max]
    double *lane_error;  // [lane]
    uint64_t length_max;
    uint64_t started_ns;
    int percent_shown;
    bool has_bar;  // stderr is a terminal; others get a line now and then
} reference;

// Where a token's K or V row begins by the layout's definition, pool[page][kv_head][K or
// V][slot][dim], apart from the addressing that the kernel uses.
static uint64_t kv_index(const step *s, uint32_t request, uint32_t kv_head, uint32_t is_v,
                         uint64_t token) {
    uint64_t at = s->pages[s->page_starts[request] + token / s->o.page];
    at = at * s->o.kv_heads + kv_head;
    at = at * 2 + is_v;
    at = at * s->o.page + token % s->o.page;
    return at * s->o.dim;
}

static double kv_value(const step *s, uint64_t at) {
    switch (s->o.type) {
    case ATTENTION_F32: return (double)((const float *)s->pool)[at];
    case ATTENTION_F16: return (double)ptowsp_f32_from_f16(((const uint16_t *)s->pool)[at]);
    case ATTENTION_BF16: return (double)ptowsp_f32_from_bf16(((const uint16_t *)s->pool)[at]);
    case ATTENTION_I8: break;
    }
    return (double)((const int8_t *)s->pool)[at];
}

// What the elements of a token's rows are multiplied by.
static double kv_scale(const step *s, uint32_t request, uint32_t kv_head, uint64_t token) {
    uint64_t page = s->pages[s->page_starts[request] + token / s->o.page];
    uint64_t at = (page * s->o.kv_heads + kv_head) * s->o.page + token % s->o.page;
    return s->o.type == ATTENTION_I8 ? (double)s->scales[at] : 1.0;
}

// One output row in double precision, in two plain passes; returns the error of what was computed.
static double reference_row(const reference *r, uint32_t request, uint32_t kv_head, uint32_t g,
                            double *scores) {
    const step *s = r->s;
    uint64_t dim = s->o.dim, head = (uint64_t)kv_head * s->group + g;
    const float *query = s->queries + (request * s->o.heads + head) * dim;
    const float *output = s->outputs + (request * s->o.heads + head) * dim;
    uint32_t length = (uint32_t)s->lengths[request];
    double top = -INFINITY, total = 0.0, sum[ATTENTION_DIM_MAX] = {0};
    for (uint32_t t = 0; t < length; t++) {
        uint64_t k = kv_index(s, request, kv_head, 0, t);
        double score = 0.0;
        for (uint64_t d = 0; d < dim; d++) {
            score += (double)query[d] * kv_value(s, k + d);
        }
        score *= kv_scale(s, request, kv_head, t) / sqrt((double)dim);
        scores[t] = score;
        top = score > top ? score : top;
    }
    for (uint32_t t = 0; t < length; t++) {
        uint64_t v = kv_index(s, request, kv_head, 1, t);
        double weight = exp(scores[t] - top), scale = kv_scale(s, request, kv_head, t);
        total += weight;
        for (uint64_t d = 0; d < dim; d++) {
            sum[d] += weight * scale * kv_value(s, v + d);
        }
    }
    double largest = 0.0, difference = 0.0;
    for (uint64_t d = 0; d < dim; d++) {
        double exact = length ? sum[d] / total : 0.0;
        largest = fmax(largest, fabs(exact));
        double off = fabs(exact - (double)output[d]);
        difference = off <= difference ? difference : off;  // keeps a NaN
    }
    return difference == 0.0 ? 0.0 : difference / largest;
}

// A bar on a terminal, once checking has taken a second; drawn by lane 0, the main thread.
// Shown once the check has taken a second: a bar, or a line each 20 %.
static void reference_progress(reference *r, uint64_t done, uint64_t item_count) {
    enum { WIDTH = 40, LINE_PERCENT = 20 };
    int percent = (int)(done * 100 / item_count);
    percent -= r->has_bar ? 0 : percent % LINE_PERCENT;
    if (r->s->o.is_json || percent == 0 || percent == r->percent_shown ||
        ptowsp_clock_ns() - r->started_ns < UINT64_C(1000000000)) {
        return;
    }
    r->percent_shown = percent;
    if (r->has_bar) {
        int full = percent * WIDTH / 100;
        fprintf(stderr, "\rchecking [%.*s%*s] %3d %%", full,
                "########################################", WIDTH - full, "", percent);
    } else {
        fprintf(stderr, "checking: %d %%\n", percent);
    }
    fflush(stderr);
}

static void reference_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    reference *r = (reference *)user;
    uint64_t kv_heads = r->s->o.kv_heads;
    for (uint64_t item = begin; item < end; item++) {
        if (lane == 0) {
            reference_progress(r, item, r->s->batch.sequence_count * kv_heads);
        }
        for (uint32_t g = 0; g < r->s->group; g++) {
            double error =
                reference_row(r, (uint32_t)(item / kv_heads), (uint32_t)(item % kv_heads), g,
                              r->scores + lane * r->length_max);
            double *largest = &r->lane_error[lane];
            *largest = error <= *largest ? *largest : error;  // keeps a NaN
        }
    }
}

static void step_check(step *s) {
    uint32_t lane_count = ptowsp_context_lane_count(s->context);
    reference r = {s, NULL, NULL, 1, ptowsp_clock_ns(), -1, isatty(2) != 0};
    for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
        r.length_max =
            (uint64_t)s->lengths[i] > r.length_max ? (uint64_t)s->lengths[i] : r.length_max;
    }
    r.scores = (double *)allocate(r.length_max * lane_count, sizeof *r.scores);
    r.lane_error = (double *)allocate(lane_count, sizeof *r.lane_error);
    uint64_t item_count = s->batch.sequence_count * s->o.kv_heads;
    check(s, ptowsp_parallel_for(s->context, item_count, 1, reference_range, &r));
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        s->error = r.lane_error[lane] <= s->error ? s->error : r.lane_error[lane];
    }
    if (r.has_bar && r.percent_shown >= 0) {
        fprintf(stderr, "\r%60s\r", "");
    }
    free(r.scores);
    free(r.lane_error);
}

// -- report ---------------------------------------------------------------------------------------

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_us(uint64_t *ns, uint64_t count) {
    qsort(ns, (size_t)count, sizeof *ns, compare_u64);
    return (double)ns[count / 2] / 1000.0;
}

// All that is reported.
typedef struct summary {
    uint64_t tier_requests[PTOWSP_DECODE_TIER_COUNT], tier_units[PTOWSP_DECODE_TIER_COUNT];
    int32_t longest;
    double chunk_us, generate_us, run_us, merge_us, kv_gb_per_s, balance;
    uint64_t kv_bytes, hash;
    bool is_good;
} summary;

static summary step_summary(step *s) {
    summary sum;
    memset(&sum, 0, sizeof sum);
    for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
        int32_t tier = ptowsp_tier_find(attend_tiers, attend_tier_count, s->lengths[i]);
        if (tier >= 0) {
            sum.tier_requests[tier]++;
        }
        sum.longest = s->lengths[i] > sum.longest ? s->lengths[i] : sum.longest;
    }
    for (uint64_t i = 0; i < s->work_count; i++) {
        sum.tier_units[s->work[i].tier]++;
    }
    sum.chunk_us = median_us(s->chunk_ns, s->o.steps);
    sum.generate_us = median_us(s->generate_ns, s->o.steps);
    sum.run_us = median_us(s->run_ns, s->o.steps);
    sum.merge_us = median_us(s->merge_ns, s->o.steps);
    sum.kv_bytes = s->token_count * s->o.kv_heads * 2 * s->o.dim * attention_type_size(s->o.type);
    sum.kv_gb_per_s = sum.run_us > 0.0 ? (double)sum.kv_bytes / sum.run_us * 1e-3 : 0.0;
    uint32_t lane_count = ptowsp_context_lane_count(s->context);
    uint64_t busy = 0, busiest = 0;
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        busy += s->lanes[lane].busy_ns;
        busiest = s->lanes[lane].busy_ns > busiest ? s->lanes[lane].busy_ns : busiest;
    }
    sum.balance = busiest ? (double)busy / ((double)busiest * lane_count) : 1.0;
    sum.hash =
        ptowsp_hash(PTOWSP_HASH_START, s->outputs,
                    (size_t)(s->batch.sequence_count * s->o.heads * s->o.dim) * sizeof(float));
    sum.is_good = s->error <= TOLERANCE;
    return sum;
}

// 1234567 as "1,234,567", in one of a few buffers that take turns.
static const char *grouped(uint64_t value) {
    static char buffers[8][32];
    static unsigned turn;
    char digits[32], *out = buffers[turn++ % 8];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

static void print_table(const step *s, const summary *sum) {
    const options *o = &s->o;
    uint32_t lane_count = ptowsp_context_lane_count(s->context);
    printf("decode step: %s\n", s->source);
    printf(
        "  model     %llu query heads over %llu KV heads of %llu, KV in %s, pages of %llu tokens\n",
        (unsigned long long)o->heads, (unsigned long long)o->kv_heads, (unsigned long long)o->dim,
        type_names[o->type], (unsigned long long)o->page);
    printf("  batch     %s requests, %s tokens, the longest %s; %s MiB of KV in a pool of %s MiB\n",
           grouped(s->batch.sequence_count), grouped(s->token_count),
           grouped((uint64_t)sum->longest), grouped(sum->kv_bytes >> 20),
           grouped((s->pool_pages * o->kv_heads * 2 * o->page * o->dim *
                    attention_type_size(o->type)) >>
                   20));
    printf("  plan      chunk %s (%s), %s units of at most %s; %.1f us + %.1f us to write them\n",
           grouped(s->chunk), o->is_fixed ? "fixed" : "balanced", grouped(s->work_count),
           grouped(o->units), sum->chunk_us, sum->generate_us);
    for (uint32_t i = 0; i < attend_tier_count; i++) {
        printf("  tier %u    %7s to %7s tokens %8s requests %8s units\n", (unsigned)i,
               grouped((uint64_t)attend_tiers[i].length_min),
               grouped((uint64_t)attend_tiers[i].length_max), grouped(sum->tier_requests[i]),
               grouped(sum->tier_units[i]));
    }
    printf("  run       %.2f ms on %u lane%s (%s), %.1f GB/s of KV; merge %.2f ms\n",
           sum->run_us / 1000.0, (unsigned)lane_count, lane_count == 1 ? "" : "s",
           attention_variant_name(), sum->kv_gb_per_s, sum->merge_us / 1000.0);
    for (uint32_t lane = 0; lane < lane_count && lane_count <= 16; lane++) {
        printf("  lane %-4u %8s units a step, busy %.2f ms\n", (unsigned)lane,
               grouped(s->lanes[lane].units / o->steps),
               (double)s->lanes[lane].busy_ns / (double)o->steps * 1e-6);
    }
    printf("  balance   %.1f %% (mean lane's busy time over the longest)\n", sum->balance * 100.0);
    printf("  check     %s outputs, largest error %.2e of the row, %.0e allowed: %s\n",
           grouped(s->batch.sequence_count * o->heads * o->dim), s->error, TOLERANCE,
           sum->is_good ? "good" : "WRONG");
    printf("  hash      %016llx (the same for any number of threads)\n",
           (unsigned long long)sum->hash);
}

static void print_json_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c < 0x20) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static void print_json(const step *s, const summary *sum) {
    const options *o = &s->o;
    printf("{\"source\": ");
    print_json_string(s->source);
    printf(", \"batch\": %u, \"tokens\": %llu, \"heads\": %llu, \"kv_heads\": %llu, \"dim\": %llu, "
           "\"page\": %llu, \"kv\": \"%s\", \"threads\": %u, \"variant\": \"%s\", ",
           (unsigned)s->batch.sequence_count, (unsigned long long)s->token_count,
           (unsigned long long)o->heads, (unsigned long long)o->kv_heads,
           (unsigned long long)o->dim, (unsigned long long)o->page, type_names[o->type],
           (unsigned)ptowsp_context_lane_count(s->context), attention_variant_name());
    printf("\"chunk\": %u, \"units\": %llu, \"tier_units\": [", (unsigned)s->chunk,
           (unsigned long long)s->work_count);
    for (uint32_t i = 0; i < attend_tier_count; i++) {
        printf("%s%llu", i ? ", " : "", (unsigned long long)sum->tier_units[i]);
    }
    printf("], \"chunk_us\": %.3f, \"generate_us\": %.3f, \"run_us\": %.3f, \"merge_us\": %.3f, "
           "\"kv_bytes\": %llu, \"kv_gb_per_s\": %.3f, \"balance\": %.4f, \"largest_error\": ",
           sum->chunk_us, sum->generate_us, sum->run_us, sum->merge_us,
           (unsigned long long)sum->kv_bytes, sum->kv_gb_per_s, sum->balance);
    if (isfinite(s->error)) {
        printf("%.3e", s->error);
    } else {
        printf("null");  // JSON has no NaN
    }
    printf(", \"hash\": \"%016llx\", \"good\": %s}\n", (unsigned long long)sum->hash,
           sum->is_good ? "true" : "false");
}

int main(int argc, char **argv) {
    static step s;  // zeroed
    s.o = options_parse(argc, argv);
    s.group = (uint32_t)(s.o.heads / s.o.kv_heads);
    ptowsp_context_desc desc = {0};
    desc.threads = s.o.threads == 1 ? PTOWSP_THREADS_SERIAL : PTOWSP_THREADS_OWN;
    desc.lane_count = (uint32_t)s.o.threads;
    ptowsp_status status = ptowsp_context_create(&desc, &s.context);
    if (status != PTOWSP_OK) {
        fail("threads: %s", ptowsp_status_text(status));
    }
    s.lanes = (lane_stats *)allocate(ptowsp_context_lane_count(s.context), sizeof *s.lanes);
    step_read_lengths(&s);
    step_plan(&s, 0);  // refuses bad lengths before memory is filled
    say(&s.o, "filling a KV cache of up to %llu MiB", (unsigned long long)s.o.kv_mib);
    step_make_cache(&s);
    step_make_queries(&s);
    say(&s.o, "%llu steps: plan, run, merge", (unsigned long long)s.o.steps);
    for (uint32_t i = 0; i < s.o.steps; i++) {
        step_plan(&s, i);
        step_run(&s, i);
    }
    say(&s.o, "checking all outputs in double precision");
    step_check(&s);
    summary sum = step_summary(&s);
    if (s.o.is_json) {
        print_json(&s, &sum);
    } else {
        print_table(&s, &sum);
    }
    flush_output();
    ptowsp_work_destroy(s.context, s.work);
    ptowsp_context_destroy(s.context);
    free(s.lanes);
    free(s.lengths);
    free(s.page_starts);
    free(s.pool);
    free(s.scales);
    free(s.pages);
    free(s.queries);
    free(s.outputs);
    free(s.states);
    free(s.accs);
    return sum.is_good ? 0 : 1;
}
