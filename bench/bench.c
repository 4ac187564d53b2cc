// Benchmarks: each measures something of ptowsp and, in turns with it, something to compare with,
// and prints medians and their ratio. Machines differ and are shared: only ratios inside one run
// mean much.
//
//      bench [--json FILE] [--kv-mib N] [--only plan|dispatch|merge|decode]

#include "ptowsp.h"

#include "common/decode_attention.h"
#include "common/lengths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 41  // odd: the median is one of them

typedef void (*bench_fn)(void *user);

// -- results --------------------------------------------------------------------------------------

typedef struct bench_row {
    const char *name;
    const char *unit;
    double value;        // of ptowsp, in `unit`
    const char *other;   // what it is compared with
    double other_value;  // in `unit`
    const char *budget;  // in words
    bool has_budget, is_met;
} bench_row;

static bench_row rows[32];
static size_t row_count;

static void report(bench_row row) {
    rows[row_count++] = row;
    printf("%-46s %9.3f %-8s %-34s %9.3f  x%-6.2f %s%s\n", row.name, row.value, row.unit, row.other,
           row.other_value, row.value / row.other_value, row.budget,
           !row.has_budget ? ""
           : row.is_met    ? " (met)"
                           : " (NOT MET)");
    fflush(stdout);
}

static bool write_json(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "bench: cannot write %s\n", path);
        return false;
    }
    fputs("[\n", file);
    for (size_t i = 0; i < row_count; i++) {
        const bench_row *row = &rows[i];
        fprintf(file,
                "  {\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.4f, \"other\": \"%s\", "
                "\"other_value\": %.4f, \"budget\": \"%s\", \"met\": %s}%s\n",
                row->name, row->unit, row->value, row->other, row->other_value, row->budget,
                !row->has_budget ? "null"
                : row->is_met    ? "true"
                                 : "false",
                i + 1 < row_count ? "," : "");
    }
    fputs("]\n", file);
    return fclose(file) == 0;
}

// -- timing ---------------------------------------------------------------------------------------

static int compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_ns(bench_fn fn, void *user, uint32_t repeat) {
    uint64_t start = ptowsp_clock_ns();
    for (uint32_t i = 0; i < repeat; i++) {
        fn(user);
    }
    return (double)(ptowsp_clock_ns() - start) / repeat;
}

// Medians of two functions that take turns.
static void measure(bench_fn a, bench_fn b, void *user, uint32_t repeat, uint32_t rounds,
                    double *out_a_ns, double *out_b_ns) {
    double times[2][ROUNDS];
    a(user);
    b(user);
    for (uint32_t i = 0; i < rounds; i++) {
        times[0][i] = time_ns(a, user, repeat);
        times[1][i] = time_ns(b, user, repeat);
    }
    qsort(times[0], rounds, sizeof(double), compare_double);
    qsort(times[1], rounds, sizeof(double), compare_double);
    *out_a_ns = times[0][rounds / 2];
    *out_b_ns = times[1][rounds / 2];
}

// Keeps a result, and the memory it is computed from, alive for the compiler.
static volatile uint64_t sink;

static void keep(const void *memory) {
#if defined(__GNUC__)
    __asm__ volatile("" : : "r"(memory) : "memory");
#else
    sink = (uint64_t)(uintptr_t)memory;
#endif
}

static void *allocate(size_t size) {
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "bench: out of memory\n");
        exit(2);
    }
    memset(memory, 0, size);
    return memory;
}

// -- planning -------------------------------------------------------------------------------------

typedef struct plan_bench {
    ptowsp_context *context;
    int32_t *lengths;
    ptowsp_batch batch;
    ptowsp_plan_config config;
    uint32_t chunk;
    ptowsp_work *work, *copy;
    uint64_t capacity;
    ptowsp_plan_info info;
} plan_bench;

static void run_chunk_size(void *user) {
    plan_bench *b = (plan_bench *)user;
    ptowsp_plan_chunk_size(&b->batch, &b->config, &b->chunk, NULL);
    sink = b->chunk;
}

// What the rule says, by bisection with plain divisions.
static void run_chunk_size_plain(void *user) {
    plan_bench *b = (plan_bench *)user;
    uint32_t low = PTOWSP_CHUNK_MIN_DEFAULT, high = PTOWSP_CHUNK_MAX_DEFAULT;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t units = 0;
        for (uint32_t i = 0; i < b->batch.sequence_count; i++) {
            units += ((uint32_t)b->lengths[i] + middle - 1) / middle;
        }
        if (units * b->batch.head_count <= b->config.max_work_units) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low != b->chunk) {
        fprintf(stderr, "bench: chunk %u, expected %u\n", (unsigned)b->chunk, (unsigned)low);
        exit(1);
    }
    sink = low;
}

static void run_generate(void *user) {
    plan_bench *b = (plan_bench *)user;
    ptowsp_plan_generate(&b->batch, &b->config, b->chunk, b->work, b->capacity, &b->info);
    keep(b->work);
}

static void run_generate_parallel(void *user) {
    plan_bench *b = (plan_bench *)user;
    ptowsp_plan_generate_parallel(b->context, &b->batch, &b->config, b->chunk, b->work, b->capacity,
                                  &b->info);
    keep(b->work);
}

// The same descriptors by three nested loops, as one would write them first.
static void run_generate_plain(void *user) {
    plan_bench *b = (plan_bench *)user;
    uint32_t id = 0;
    for (uint32_t r = 0; r < b->batch.sequence_count; r++) {
        uint32_t length = (uint32_t)b->lengths[r], n = (length + b->chunk - 1) / b->chunk;
        int32_t tier =
            ptowsp_tier_find(ptowsp_decode_tiers(), PTOWSP_DECODE_TIER_COUNT, (int32_t)length);
        for (uint32_t head = 0; head < b->batch.head_count; head++) {
            uint32_t start = 0;
            for (uint32_t c = 0; c < n; c++) {
                uint32_t piece = length / n + (c >= n - length % n);
                ptowsp_work *work = &b->work[id];
                work->work_id = id++;
                work->tier = (uint8_t)tier;
                work->flags = (uint8_t)((c == 0 ? PTOWSP_WORK_FIRST : 0) |
                                        (c + 1 == n ? PTOWSP_WORK_LAST : 0));
                work->reserved = 0;
                work->params[0] = r;
                work->params[1] = head;
                work->params[2] = start;
                work->params[3] = piece;
                start += piece;
            }
        }
    }
    keep(b->work);
}

static void run_copy(void *user) {
    plan_bench *b = (plan_bench *)user;
    memcpy(b->copy, b->work, (size_t)b->info.work_count * sizeof *b->work);
    keep(b->copy);
}

static void bench_chunk_size(plan_bench *b, uint32_t max_work_units, const char *name) {
    double own, plain;
    b->batch.sequence_count = 10000;
    b->batch.head_count = 1;
    b->config.max_work_units = max_work_units;
    measure(run_chunk_size, run_chunk_size_plain, b, 10, ROUNDS, &own, &plain);
    bench_row row = {name,        "us",    own / 1e3, "plain bisection",
                     plain / 1e3, "10 us", true,      own <= 10e3};
    report(row);
}

static void bench_generate(plan_bench *b, uint32_t sequences, uint32_t heads, uint32_t chunk,
                           const char *name, bool has_budget) {
    double own, copy;
    b->batch.sequence_count = sequences;
    b->batch.head_count = heads;
    b->chunk = chunk;
    measure(run_generate, run_copy, b, 10, ROUNDS, &own, &copy);
    double thousands = (double)b->info.work_count / 1e3;
    bench_row row = {name,
                     "us/1000",
                     own / 1e3 / thousands,
                     "memcpy of the same bytes",
                     copy / 1e3 / thousands,
                     "1.5x memcpy",
                     has_budget,
                     own <= 1.5 * copy};
    report(row);
}

static void bench_plan(ptowsp_context *context) {
    plan_bench b;
    memset(&b, 0, sizeof b);
    const uint32_t sequence_max = 100000;
    b.context = context;
    b.capacity = 4 << 20;
    b.lengths = (int32_t *)allocate(sequence_max * sizeof *b.lengths);
    b.work = (ptowsp_work *)allocate(b.capacity * sizeof *b.work);
    b.copy = (ptowsp_work *)allocate(b.capacity * sizeof *b.copy);
    lengths_generate(1, sequence_max, b.lengths);
    b.batch.lengths = b.lengths;
    bench_chunk_size(&b, 65536, "plan_chunk_size, 10,000 lengths, 65,536 units");
    bench_chunk_size(&b, 16384, "plan_chunk_size, 10,000 lengths, 16,384 units");
    bench_generate(&b, 256, 8, 1024, "generate, 256 sequences x 8 heads", true);
    bench_generate(&b, 64, 8, 256, "generate, 64 sequences x 8 heads, small chunks", false);
    bench_generate(&b, 256, 1, 512, "generate, 256 sequences x 1 head", false);

    double own, other;
    b.batch.sequence_count = 256;
    b.batch.head_count = 8;
    b.chunk = 1024;
    measure(run_generate, run_generate_plain, &b, 10, ROUNDS, &own, &other);
    double thousands = (double)b.info.work_count / 1e3;
    bench_row plain = {"generate, 256 sequences x 8 heads",
                       "us/1000",
                       own / 1e3 / thousands,
                       "three plain loops",
                       other / 1e3 / thousands,
                       "",
                       false,
                       false};
    report(plain);
    b.batch.sequence_count = sequence_max;
    measure(run_generate_parallel, run_generate, &b, 1, 11, &own, &other);
    thousands = (double)b.info.work_count / 1e3;
    bench_row parallel = {"generate_parallel, 100,000 sequences x 8 heads",
                          "us/1000",
                          own / 1e3 / thousands,
                          "generate on one lane",
                          other / 1e3 / thousands,
                          "",
                          false,
                          false};
    report(parallel);
    free(b.lengths);
    free(b.work);
    free(b.copy);
}

// -- dispatch -------------------------------------------------------------------------------------

typedef struct dispatch_bench {
    ptowsp_context *context;
    ptowsp_work *work;
    uint64_t work_count;
} dispatch_bench;

static void empty_kernel(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane, (void)user;
}

static const ptowsp_work_fn empty_table[] = {empty_kernel, empty_kernel, empty_kernel,
                                             empty_kernel};

static void run_dispatch_spmd(void *user) {
    dispatch_bench *b = (dispatch_bench *)user;
    ptowsp_dispatch_spmd(b->context, b->work, b->work_count, empty_table, 4, NULL);
}

static void run_dispatch_serial(void *user) {
    dispatch_bench *b = (dispatch_bench *)user;
    ptowsp_dispatch_serial(b->work, b->work_count, empty_table, 4, NULL, NULL);
}

static void empty_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)begin, (void)end, (void)lane;
}

static void run_parallel_for(void *user) {
    dispatch_bench *b = (dispatch_bench *)user;
    ptowsp_parallel_for(b->context, ptowsp_context_lane_count(b->context), 1, empty_range, NULL);
}

static void bench_dispatch(ptowsp_context *context) {
    dispatch_bench b = {context, NULL, 16384};
    double own, other;
    ptowsp_work_create(context, b.work_count, &b.work);
    for (uint64_t i = 0; i < b.work_count; i++) {
        b.work[i] = ptowsp_work_of((uint32_t)i, (uint8_t)(i / 64 % 4), 0, 0, 0, 0, 1);
    }
    measure(run_dispatch_spmd, run_dispatch_serial, &b, 10, ROUNDS, &own, &other);
    bench_row row = {"dispatch_spmd, all lanes, 16,384 empty kernels",
                     "ns each",
                     own / (double)b.work_count,
                     "dispatch_serial",
                     other / (double)b.work_count,
                     "",
                     false,
                     false};
    report(row);
    measure(run_parallel_for, run_dispatch_serial, &b, 1000, 11, &own, &other);
    bench_row job = {"parallel_for, one empty item for each lane",
                     "us",
                     own / 1e3,
                     "dispatch_serial of 16,384",
                     other / 1e3,
                     "",
                     false,
                     false};
    report(job);
    ptowsp_work_destroy(context, b.work);
}

// -- merge ----------------------------------------------------------------------------------------

#define MERGE_PARTS 8
#define MERGE_ROWS  64
#define MERGE_DIM   128

typedef struct merge_bench {
    ptowsp_partial states[MERGE_PARTS][MERGE_ROWS];
    float accs[MERGE_PARTS][MERGE_ROWS][MERGE_DIM];
    float out[MERGE_ROWS][MERGE_DIM];
} merge_bench;

static void run_merge(void *user) {
    merge_bench *b = (merge_bench *)user;
    for (uint32_t row = 0; row < MERGE_ROWS; row++) {
        ptowsp_merge_partials(&b->states[0][row], b->accs[0][row], MERGE_PARTS, MERGE_ROWS,
                              MERGE_DIM, b->out[row]);
    }
    keep(b->out);
}

static void run_merge_read(void *user) {
    merge_bench *b = (merge_bench *)user;
    for (uint32_t row = 0; row < MERGE_ROWS; row++) {
        for (uint32_t part = 0; part < MERGE_PARTS; part++) {
            memcpy(b->out[row], b->accs[part][row], sizeof b->out[row]);
            keep(b->out);
        }
    }
}

static void bench_merge(void) {
    merge_bench *b = (merge_bench *)allocate(sizeof *b);
    uint64_t random = 1;
    double own, other;
    for (uint32_t part = 0; part < MERGE_PARTS; part++) {
        for (uint32_t row = 0; row < MERGE_ROWS; row++) {
            b->states[part][row].m = (float)(lengths_random_unit(&random) * 20.0);
            b->states[part][row].l = 1.0f;
        }
    }
    measure(run_merge, run_merge_read, b, 100, ROUNDS, &own, &other);
    bench_row row = {"merge_partials, 8 parts of 128",
                     "ns/row",
                     own / MERGE_ROWS,
                     "memcpy of each part",
                     other / MERGE_ROWS,
                     "",
                     false,
                     false};
    report(row);
    free(b);
}

// -- decode attention -----------------------------------------------------------------------------

typedef struct decode_bench {
    ptowsp_context *context;
    decode_kv kv;
    char *pool;
    size_t pool_size;
    uint32_t *pages;
    uint64_t page_count;
    ptowsp_work *work;
    uint64_t work_count, pages_per_request;
    uint32_t group;
    float *queries, *accs;
    ptowsp_partial *states;
} decode_bench;

static void decode_unit(const ptowsp_work *work, uint32_t lane, void *user) {
    decode_bench *b = (decode_bench *)user;
    uint64_t row = (uint64_t)work->work_id * b->group;
    (void)lane;
    decode_attention(&b->kv, b->pages + work->params[0] * b->pages_per_request,
                     ptowsp_work_head(work), ptowsp_work_kv_start(work), ptowsp_work_kv_len(work),
                     b->queries, b->group, b->states + row, b->accs + row * b->kv.dim);
}

static void run_decode(void *user) {
    decode_bench *b = (decode_bench *)user;
    const ptowsp_work_fn table[] = {decode_unit, decode_unit, decode_unit, decode_unit};
    ptowsp_dispatch_spmd(b->context, b->work, b->work_count, table, 4, b);
    keep(b->accs);
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
    decode_bench *b = (decode_bench *)user;
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
    keep(sums);
}

static void run_read(void *user) {
    decode_bench *b = (decode_bench *)user;
    ptowsp_parallel_for(b->context, b->pool_size / 4096, 64, read_range, b);
}

// 16 requests that together have the whole pool, pages in random order, 4 query heads to a KV head.
static void bench_decode(ptowsp_context *context, decode_kv_type type, uint64_t kv_mib,
                         const char *name) {
    enum { REQUESTS = 16, PAGE = 16, KV_HEADS = 8, DIM = 128 };
    decode_bench b;
    memset(&b, 0, sizeof b);
    b.context = context;
    b.group = 4;
    decode_kv kv = {NULL, type, PAGE, KV_HEADS, DIM};
    b.kv = kv;
    uint64_t page_bytes = (uint64_t)KV_HEADS * 2 * PAGE * DIM * decode_kv_element_size(type);
    b.pages_per_request = (kv_mib << 20) / page_bytes / REQUESTS;
    b.page_count = b.pages_per_request * REQUESTS;
    b.pool_size = (size_t)(b.page_count * page_bytes);
    b.pool = (char *)decode_pool_allocate(b.pool_size);
    b.kv.pool = b.pool;
    b.pages = (uint32_t *)allocate((size_t)b.page_count * sizeof *b.pages);
    uint64_t random = 1;
    for (uint32_t i = 0; i < b.page_count; i++) {
        uint64_t k = lengths_random(&random) % (i + 1u);
        b.pages[i] = b.pages[k];
        b.pages[k] = i;
    }
    int32_t lengths[REQUESTS];
    for (uint32_t i = 0; i < REQUESTS; i++) {
        lengths[i] = (int32_t)(b.pages_per_request * PAGE);
    }
    ptowsp_batch batch = {lengths, REQUESTS, KV_HEADS};
    ptowsp_plan_config config;
    memset(&config, 0, sizeof config);
    config.align = PAGE;
    ptowsp_plan_info info;
    const uint32_t chunk = 1024;
    ptowsp_plan_total_work(&batch, &config, chunk, &info);
    b.work_count = info.work_count;
    if (!b.pool || ptowsp_work_create(context, b.work_count, &b.work) != PTOWSP_OK ||
        ptowsp_plan_generate(&batch, &config, chunk, b.work, b.work_count, &info) != PTOWSP_OK) {
        fprintf(stderr, "bench: cannot plan the decode step\n");
        exit(2);
    }
    b.queries = (float *)allocate(b.group * DIM * sizeof(float));
    b.states = (ptowsp_partial *)allocate((size_t)b.work_count * b.group * sizeof *b.states);
    b.accs = (float *)allocate((size_t)b.work_count * b.group * DIM * sizeof(float));
    double own, read;
    measure(run_decode, run_read, &b, 1, 21, &own, &read);
    bench_row row = {name,
                     "GB/s",
                     (double)b.pool_size / own,
                     "reading the KV once",
                     (double)b.pool_size / read,
                     "65 % of reading",
                     true,
                     own * 0.65 <= read};
    report(row);
    ptowsp_work_destroy(context, b.work);
    free(b.pool);
    free(b.pages);
    free(b.queries);
    free(b.states);
    free(b.accs);
}

int main(int argc, char **argv) {
    const char *json = NULL, *only = NULL;
    uint64_t kv_mib = 256;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json = argv[++i];
        } else if (strcmp(argv[i], "--kv-mib") == 0 && i + 1 < argc) {
            kv_mib = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: bench [--json FILE] [--kv-mib N] [--only GROUP]\n");
            return 2;
        }
    }
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.threads = PTOWSP_THREADS_OWN;
    ptowsp_context *context;
    if (kv_mib < 8 || kv_mib > 65536 || ptowsp_context_create(&desc, &context) != PTOWSP_OK) {
        fprintf(stderr, "bench: --kv-mib is not in 8 to 65536, or no threads\n");
        return 2;
    }
    printf("ptowsp %s, %u lanes, %s; medians, in turns with what they are compared with\n\n",
           PTOWSP_VERSION, (unsigned)ptowsp_context_lane_count(context),
           decode_attention_variant());
    printf("%-46s %9s %-8s %-34s %9s  %-7s %s\n", "what", "ptowsp", "", "beside", "", "ratio",
           "budget");
    if (!only || strcmp(only, "plan") == 0) {
        bench_plan(context);
    }
    if (!only || strcmp(only, "dispatch") == 0) {
        bench_dispatch(context);
    }
    if (!only || strcmp(only, "merge") == 0) {
        bench_merge();
    }
    if (!only || strcmp(only, "decode") == 0) {
        bench_decode(context, DECODE_KV_F16, kv_mib, "decode attention, f16 KV, all lanes");
        bench_decode(context, DECODE_KV_F32, kv_mib, "decode attention, f32 KV, all lanes");
    }
    ptowsp_context_destroy(context);
    return json && !write_json(json) ? 1 : 0;
}
