// The attention kernel: decode beside one read of the cache, and prefill beside a
// bare loop of multiply-adds.

#include "bench.h"

#include "common/lengths.h"
#include "common/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {"f32", "f16", "bf16", "i8", "q8_0", "q4_0"};

// -- a cache --------------------------------------------------------------------------------------

// Requests of equal length that together have the whole pool, pages in random order:
// [page][kv_head][K or V][slot][dim], and [page][kv_head][slot] of scales.
typedef struct cache_bench {
    ptowsp_attend_cache kv;
    ptowsp_attend_step step;
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    char *pool;
    size_t pool_size;
    float *scales, *queries, *outputs;
    uint32_t *pages;
    int32_t *lengths;
    uint32_t request_count, kv_heads;

    ptowsp_context *context;  // of decode
    ptowsp_work *work;
    uint64_t work_count;
    float *accs;
    ptowsp_partial *states;

    int32_t query_count;  // of prefill: tokens of its one request
    uint32_t tile;        // and of a tile
    double flops;
} cache_bench;

// A number from -1 to 1; of blocks, one of them: a scale of 1 / 128, then random bytes.
static void put_random(char *at, ptowsp_attend_type type, uint64_t *random) {
    const float value = (float)(lengths_random_unit(random) * 2.0 - 1.0);
    const uint16_t half = type == PTOWSP_ATTEND_F16    ? ptowsp_f16_from_f32(value)
                          : type == PTOWSP_ATTEND_BF16 ? ptowsp_bf16_from_f32(value)
                                                       : ptowsp_f16_from_f32(1.0f / 128.0f);
    const int8_t whole = (int8_t)(value * 127.0f);
    switch (type) {
    case PTOWSP_ATTEND_F32: memcpy(at, &value, sizeof value); break;
    case PTOWSP_ATTEND_I8: memcpy(at, &whole, sizeof whole); break;
    default: memcpy(at, &half, sizeof half); break;
    }
    for (size_t i = 2; i < ptowsp_attend_bytes(type, 32) && type >= PTOWSP_ATTEND_Q8_0; i++) {
        at[i] = (char)lengths_random(random);
    }
}

// About a megabyte of them, again and again.
static void fill_random(char *memory, size_t size, ptowsp_attend_type type) {
    const size_t element =
        type >= PTOWSP_ATTEND_Q8_0 ? ptowsp_attend_bytes(type, 32) : ptowsp_attend_bytes(type, 1);
    const size_t period = ((size_t)1 << 20) / element * element;
    uint64_t random = 1;
    for (size_t at = 0; at + element <= size && at < period; at += element) {
        put_random(memory + at, type, &random);
    }
    for (size_t at = period; at < size; at += period) {
        memcpy(memory + at, memory, size - at < period ? size - at : period);
    }
}

static void cache_create(cache_bench *b, ptowsp_attend_type type, uint32_t request_count,
                         uint32_t length, uint32_t kv_heads, uint32_t dim) {
    enum { PAGE = 16 };
    uint32_t pages_per_request = length / PAGE, page_count = pages_per_request * request_count;
    size_t page_bytes = ptowsp_attend_bytes(type, (size_t)kv_heads * 2 * PAGE * dim);
    memset(b, 0, sizeof *b);
    b->request_count = request_count;
    b->kv_heads = kv_heads;
    b->pool_size = page_count * page_bytes;
    b->pool = (char *)pool_allocate(b->pool_size);
    require(b->pool != NULL, "no memory");
    fill_random(b->pool, b->pool_size, type);
    size_t scale_size = (size_t)page_count * kv_heads * PAGE * sizeof(float);
    b->scales = (float *)bench_allocate(scale_size);
    for (size_t i = 0; i < scale_size / sizeof(float); i++) {
        b->scales[i] = 1.0f / 127.0f;
    }
    b->pages = (uint32_t *)bench_allocate(page_count * sizeof *b->pages);
    uint64_t random = 1;
    for (uint32_t i = 0; i < page_count; i++) {
        uint64_t k = lengths_random(&random) % (i + 1u);
        b->pages[i] = b->pages[k];
        b->pages[k] = i;
    }
    b->lengths = (int32_t *)bench_allocate(request_count * sizeof *b->lengths);
    for (uint32_t i = 0; i < request_count; i++) {
        b->lengths[i] = (int32_t)(pages_per_request * PAGE);
    }
    ptowsp_attend_strides strides = {(size_t)kv_heads * 2 * PAGE * dim, dim,
                                     (size_t)2 * PAGE * dim};
    ptowsp_attend_strides scale_strides = {(size_t)kv_heads * PAGE, 1, PAGE};
    b->kv.keys = b->pool;
    b->kv.values = b->pool + ptowsp_attend_bytes(type, (size_t)PAGE * dim);
    b->kv.key_strides = b->kv.value_strides = strides;
    b->kv.key_scales = b->kv.value_scales = b->scales;
    b->kv.scale_strides = scale_strides;
    b->kv.type = type;
    b->kv.key_dim = b->kv.value_dim = dim;
    b->kv.page_size = PAGE;
    b->batch.kv_lengths = b->lengths;
    b->batch.sequence_count = request_count;
    b->step.batch = &b->batch;
    b->step.config = &b->config;
    b->step.pages = b->pages;
    b->step.page_stride = pages_per_request;
}

static void make_queries(cache_bench *b, uint32_t token_count, uint32_t group) {
    size_t heads = (size_t)b->kv_heads * group;
    size_t query_size = token_count * heads * b->kv.key_dim * sizeof(float);
    b->queries = (float *)bench_allocate(query_size);
    b->outputs = (float *)bench_allocate(token_count * heads * b->kv.value_dim * sizeof(float));
    fill_random((char *)b->queries, query_size, PTOWSP_ATTEND_F32);
    b->step.queries = b->queries;
    b->step.query_head_stride = b->kv.key_dim;
    b->step.query_token_stride = heads * b->kv.key_dim;
    b->step.outputs = b->outputs;
    b->step.output_head_stride = b->kv.value_dim;
    b->step.output_token_stride = heads * b->kv.value_dim;
    b->config.group = group;
}

static void cache_destroy(cache_bench *b) {
    free(b->pool);
    free(b->scales);
    free(b->pages);
    free(b->lengths);
    free(b->queries);
    free(b->outputs);
}

// -- prefill --------------------------------------------------------------------------------------

enum { PEAK_SUMS = 12, PEAK_ROUNDS = 8 << 20 };  // about as long as a row of prefill

// Multiply-adds in registers alone; returns how many floating-point operations they were.
#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static double multiply_avx512(void) {
    __m512 sums[PEAK_SUMS], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
    for (int i = 0; i < PEAK_SUMS; i++) {
        sums[i] = x;
    }
    for (int round = 0; round < PEAK_ROUNDS; round++) {
        _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_SUMS; i++) {
            sums[i] = _mm512_fmadd_ps(sums[i], x, y);
        }
    }
    bench_keep(sums);
    return 2.0 * 16 * PEAK_SUMS * PEAK_ROUNDS;
}

__attribute__((target("avx2,fma"))) static double multiply_avx2(void) {
    __m256 sums[PEAK_SUMS], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
    for (int i = 0; i < PEAK_SUMS; i++) {
        sums[i] = x;
    }
    for (int round = 0; round < PEAK_ROUNDS; round++) {
        _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_SUMS; i++) {
            sums[i] = _mm256_fmadd_ps(sums[i], x, y);
        }
    }
    bench_keep(sums);
    return 2.0 * 8 * PEAK_SUMS * PEAK_ROUNDS;
}

static double multiply(void) {
    bool is_avx512 = strcmp(ptowsp_attend_variant(), "avx512") == 0;
    return is_avx512 ? multiply_avx512() : multiply_avx2();
}
#define HAS_PEAK true
#elif defined(__GNUC__) && defined(__aarch64__)
#include <arm_neon.h>

static double multiply(void) {
    float32x4_t sums[PEAK_SUMS], x = vdupq_n_f32(0.999f), y = vdupq_n_f32(0.001f);
    for (int i = 0; i < PEAK_SUMS; i++) {
        sums[i] = x;
    }
    for (int round = 0; round < PEAK_ROUNDS; round++) {
        _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_SUMS; i++) {
            sums[i] = vfmaq_f32(y, sums[i], x);
        }
    }
    bench_keep(sums);
    return 2.0 * 4 * PEAK_SUMS * PEAK_ROUNDS;
}
#define HAS_PEAK true
#else
static double multiply(void) {
    return 1.0;
}
#define HAS_PEAK false
#endif

static void run_multiply(void *user) {
    double *flops = &((cache_bench *)user)->flops;
    *flops = multiply();
}

// -- decode ---------------------------------------------------------------------------------------

static void decode_unit(const ptowsp_work *work, uint32_t lane, void *user) {
    cache_bench *b = (cache_bench *)user;
    uint64_t row = (uint64_t)work->work_id * b->config.group;
    ptowsp_attend_unit unit = {.request = ptowsp_work_request(work),
                               .kv_head = ptowsp_work_head(work),
                               .query_count = 1,
                               .kv_start = ptowsp_work_kv_start(work),
                               .kv_len = ptowsp_work_kv_len(work)};
    (void)lane;
    ptowsp_attend_compute(&b->kv, &b->step, &unit, b->states + row,
                          b->accs + row * b->kv.value_dim);
}

static void run_decode(void *user) {
    cache_bench *b = (cache_bench *)user;
    const ptowsp_work_fn table[] = {decode_unit, decode_unit, decode_unit, decode_unit};
    ptowsp_dispatch_spmd(b->context, b->work, b->work_count, table, 4, b);
    bench_keep(b->accs);
}

#if defined(__GNUC__)
typedef uint64_t bench_vector __attribute__((vector_size(64)));
#else
typedef uint64_t bench_vector;
#endif

#if defined(__GNUC__) && defined(__x86_64__) && defined(__GLIBC__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
read_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    cache_bench *b = (cache_bench *)user;
    const bench_vector *at = (const bench_vector *)(const void *)(b->pool + begin * 4096);
    const bench_vector *stop = (const bench_vector *)(const void *)(b->pool + end * 4096);
    bench_vector sums[4];
    memset(sums, 0, sizeof sums);
    (void)lane;
    for (; at < stop; at += 4) {
        sums[0] += at[0];
        sums[1] += at[1];
        sums[2] += at[2];
        sums[3] += at[3];
    }
    sums[0] += sums[1] + sums[2] + sums[3];
    bench_keep(sums);
}

static void run_read(void *user) {
    cache_bench *b = (cache_bench *)user;
    ptowsp_parallel_for(b->context, b->pool_size / 4096, 64, read_range, b);
}

// What reads the KV once and has all multiply-adds of `group` rows, on all lanes: the slower of the two.
static bench_limit decode_limit(cache_bench *b, double token_bytes, double read_gb, double gb) {
    const bool is_there = HAS_PEAK && !is_counting;
    bench_limit limit = {is_there ? "reading, multiply-adds" : NULL, read_gb, 0.0};
    if (is_there) {
        const bench_times t = measure(run_multiply, run_multiply, b, 1, 5);
        const double token_flops =
            2.0 * b->kv_heads * b->config.group * (b->kv.key_dim + b->kv.value_dim);
        const double lanes = ptowsp_context_lane_count(b->context);
        const double flops_gb = b->flops / t.own_ns * lanes / token_flops * token_bytes;
        limit.value = flops_gb < read_gb ? flops_gb : read_gb;
        limit.share = gb / limit.value;
    }
    return limit;
}

// The kernel alone, without the merge: 16 requests, 4 query heads to a KV head, chunks of 1,024.
static void bench_decode_type(ptowsp_context *context, ptowsp_attend_type type, uint64_t kv_mib) {
    enum { REQUESTS = 16, KV_HEADS = 8, DIM = 128, GROUP = 4, CHUNK = 1024 };
    cache_bench b;
    uint64_t token_bytes = ptowsp_attend_bytes(type, (size_t)KV_HEADS * 2 * DIM);
    cache_create(&b, type, REQUESTS, (uint32_t)((kv_mib << 20) / token_bytes / REQUESTS), KV_HEADS,
                 DIM);
    make_queries(&b, REQUESTS, GROUP);
    b.context = context;
    ptowsp_batch batch = {b.lengths, REQUESTS, KV_HEADS};
    ptowsp_plan_config config;
    memset(&config, 0, sizeof config);
    config.align = b.kv.page_size;
    ptowsp_plan_info info;
    ptowsp_plan_total_work(&batch, &config, CHUNK, &info);
    b.work_count = info.work_count;
    require(ptowsp_work_create(context, b.work_count, &b.work) == PTOWSP_OK &&
                ptowsp_plan_generate(&batch, &config, CHUNK, b.work, b.work_count, &info) ==
                    PTOWSP_OK,
            "cannot plan the decode step");
    b.states = (ptowsp_partial *)bench_allocate((size_t)b.work_count * GROUP * sizeof *b.states);
    b.accs = (float *)bench_allocate((size_t)b.work_count * GROUP * DIM * sizeof(float));
    bench_times t = measure(run_decode, run_read, &b, 1, 21);
    char name[64];
    snprintf(name, sizeof name, "decode attention, %s KV, all lanes", type_names[type]);
    bench_row row = {name,
                     "GB/s",
                     (double)b.pool_size / t.own_ns,
                     "reading the KV once",
                     (double)b.pool_size / t.other_ns,
                     1.0 / t.ratio,
                     "80 % of reading",
                     true,
                     t.ratio * 0.8 <= 1.0};
    report_beside_limit(row, decode_limit(&b, (double)token_bytes, row.other_value, row.value));
    ptowsp_work_destroy(context, b.work);
    free(b.states);
    free(b.accs);
    cache_destroy(&b);
}

void bench_decode(ptowsp_context *context, uint64_t kv_mib) {
    for (int type = PTOWSP_ATTEND_F32; type < PTOWSP_ATTEND_TYPE_COUNT; type++) {
        bench_decode_type(context, (ptowsp_attend_type)type, kv_mib);
    }
}

// -- prefill ---------------------------------------------------------------------------------------

// All tiles of the one request, one after another, each with all tokens that it sees.
static void run_prefill(void *user) {
    cache_bench *b = (cache_bench *)user;
    uint32_t length = (uint32_t)b->lengths[0], count = (uint32_t)b->query_count;
    for (uint32_t at = 0; at < count; at += b->tile) {
        uint32_t left = count - at;
        ptowsp_attend_unit unit = {
            .query_start = at, .query_count = left < b->tile ? left : b->tile, .kv_len = length};
        ptowsp_attend_compute(&b->kv, &b->step, &unit, NULL, NULL);
    }
    bench_keep(b->outputs);
}

// One lane, one KV head; the last `query_count` of `length` tokens.
static void bench_prefill_case(const char *name, ptowsp_attend_type type, uint32_t dim,
                               uint32_t group, uint32_t tile, uint32_t query_count, uint32_t length,
                               uint32_t value_dim) {
    cache_bench b;
    cache_create(&b, type, 1, length, 1, dim);
    b.kv.value_dim = value_dim;
    make_queries(&b, query_count, group);
    uint32_t query_start = 0;
    b.step.query_starts = &query_start;
    b.batch.query_lengths = &b.query_count;
    b.config.is_causal = true;
    b.tile = tile;
    b.query_count = (int32_t)query_count;
    if (value_dim < dim) {  // latent: values are the first elements of the keys
        b.kv.values = b.kv.keys;
    }
    bench_times t = measure(run_prefill, run_multiply, &b, 1, 21);
    double seen = (double)query_count * (length - query_count) +
                  0.5 * (double)query_count * (query_count + 1.0);
    double flops = seen * group * 2.0 * (dim + value_dim);
    double share = flops / b.flops / t.ratio;
    bench_row row = {name,
                     "GFLOP/s",
                     flops / t.own_ns,
                     "multiply-adds alone",
                     b.flops / t.other_ns,
                     share,
                     "70 % of them",
                     true,
                     share >= 0.7};
    report(row);
    cache_destroy(&b);
}

void bench_prefill(void) {
    if (!HAS_PEAK || strcmp(ptowsp_attend_variant(), "portable") == 0) {
        return;
    }
    for (int type = PTOWSP_ATTEND_F32; type < PTOWSP_ATTEND_TYPE_COUNT; type++) {
        char name[64];
        snprintf(name, sizeof name, "prefill, last 128 of 4096, 16 x 8 rows, %s", type_names[type]);
        bench_prefill_case(name, (ptowsp_attend_type)type, 128, 8, 16, 128, 4096, 128);
    }
    bench_prefill_case("prefill, prompt of 1024, 16 x 8 rows, bf16", PTOWSP_ATTEND_BF16, 128, 8, 16,
                       1024, 1024, 128);
    bench_prefill_case("prefill, prompt of 1024, 64 x 1 rows, f16", PTOWSP_ATTEND_F16, 128, 1, 64,
                       1024, 1024, 128);
    bench_prefill_case("prefill, last 128 of 4096, 16 x 8 rows of 64", PTOWSP_ATTEND_F16, 64, 8, 16,
                       128, 4096, 64);
    bench_prefill_case("latent decode, 128 rows of 576 and 512, bf16", PTOWSP_ATTEND_BF16, 576, 128,
                       1, 1, 2048, 512);
}
