// Planning, dispatch and merging: descriptors beside memcpy of the same bytes and beside plain loops.

#include "bench.h"

#include "limit.h"

#include "common/lengths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- planning -------------------------------------------------------------------------------------

typedef struct plan_bench {
    limit_arrays limit;  // of descriptors of one head
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
    bench_keep(&b->chunk);
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
        if (units * b->batch.kv_head_count <= b->config.max_work_units) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low != b->chunk) {
        fprintf(stderr, "bench: chunk %u, expected %u\n", (unsigned)b->chunk, (unsigned)low);
        exit(1);
    }
    bench_keep(&low);
}

static void run_generate(void *user) {
    plan_bench *b = (plan_bench *)user;
    ptowsp_plan_generate(&b->batch, &b->config, b->chunk, b->work, b->capacity, &b->info);
    bench_keep(b->work);
}

static void run_generate_parallel(void *user) {
    plan_bench *b = (plan_bench *)user;
    ptowsp_plan_generate_parallel(b->context, &b->batch, &b->config, b->chunk, b->work, b->capacity,
                                  &b->info);
    bench_keep(b->work);
}

// The same descriptors by three nested loops, as one would write them first.
static void run_generate_plain(void *user) {
    plan_bench *b = (plan_bench *)user;
    uint32_t id = 0;
    for (uint32_t r = 0; r < b->batch.sequence_count; r++) {
        uint32_t length = (uint32_t)b->lengths[r], n = (length + b->chunk - 1) / b->chunk;
        int32_t tier =
            ptowsp_tier_find(ptowsp_decode_tiers(), PTOWSP_DECODE_TIER_COUNT, (int32_t)length);
        for (uint32_t head = 0; head < b->batch.kv_head_count; head++) {
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
    bench_keep(b->work);
}

static void run_copy(void *user) {
    plan_bench *b = (plan_bench *)user;
    memcpy(b->copy, b->work, (size_t)b->info.work_count * sizeof *b->work);
    bench_keep(b->copy);
}

static void bench_chunk_size(plan_bench *b, uint32_t max_work_units, const char *name) {
    b->batch.sequence_count = 10000;
    b->batch.kv_head_count = 1;
    b->config.max_work_units = max_work_units;
    const bench_case of = {name,
                           "us",
                           1.0,
                           10,
                           ROUNDS,
                           run_chunk_size,
                           "plain bisection",
                           run_chunk_size_plain,
                           NULL,
                           NULL,
                           BUDGET_VALUE,
                           10.0};
    bench_measure(&of, b);
}

static void set_batch(plan_bench *b, uint32_t sequences, uint32_t heads, uint32_t chunk) {
    b->batch.sequence_count = sequences;
    b->batch.kv_head_count = heads;
    b->chunk = chunk;
}

// The plain loops and the library write the same bytes.
static void check_generate(plan_bench *b) {
    run_generate(b);
    require(b->info.fault == PTOWSP_FAULT_NONE && b->info.work_count > 0, "generate fails");
    memcpy(b->copy, b->work, (size_t)b->info.work_count * sizeof *b->work);
    memset(b->work, 0, (size_t)b->info.work_count * sizeof *b->work);
    run_generate_plain(b);
    require(memcmp(b->copy, b->work, (size_t)b->info.work_count * sizeof *b->work) == 0,
            "generate and the plain loops differ");
}

// Descriptors against their bare limit, which is writing their bytes. Name and work are of a batch.
#define COPY "memcpy of the same bytes", run_copy
static const bench_case beside_copy = {
    "", "us/1000", 0.0, 10, ROUNDS, run_generate, COPY, NULL, run_copy, BUDGET_BESIDE, 1.5};
static const bench_case beside_loops = {
    "",   "us/1000",   0.0, 10, ROUNDS, run_generate, "three plain loops", run_generate_plain,
    COPY, BUDGET_NONE, 0.0};
static const bench_case beside_operations = {
    "",   "us/1000",   0.0, 10, ROUNDS, run_generate, COPY, "its vector operations alone",
    NULL, BUDGET_NONE, 0.0};
static const bench_case beside_one_lane = {
    "",           "us/1000", 0.0,         1,  11, run_generate_parallel, "generate on one lane",
    run_generate, COPY,      BUDGET_NONE, 0.0};
#undef COPY

static const struct {
    uint32_t sequences, heads, chunk;
    const char *name;
    const bench_case *of;
} plan_cases[] = {
    {256, 8, 1024, "generate, 256 sequences x 8 heads", &beside_copy},
    {256, 8, 1024, "generate, 256 sequences x 8 heads", &beside_loops},
    {64, 8, 256, "generate, 64 sequences x 8 heads, chunk 256", &beside_copy},
    {256, 1, 512, "generate, 256 sequences x 1 head", &beside_copy},
    {256, 1, 512, "generate, 256 sequences x 1 head", &beside_loops},
    {256, 1, 512, "generate, 256 sequences x 1 head", &beside_operations},
    {100000, 8, 1024, "generate_parallel, 100,000 sequences x 8 heads", &beside_one_lane},
};

void bench_plan(ptowsp_context *context) {
    plan_bench b;
    memset(&b, 0, sizeof b);
    const uint32_t sequence_max = 100000;
    b.context = context;
    b.capacity = 4 << 20;
    b.lengths = (int32_t *)bench_allocate(sequence_max * sizeof *b.lengths);
    b.work = (ptowsp_work *)bench_allocate(b.capacity * sizeof *b.work);
    b.copy = (ptowsp_work *)bench_allocate(b.capacity * sizeof *b.copy);
    lengths_generate(1, sequence_max, b.lengths);
    b.batch.lengths = b.lengths;
    bench_chunk_size(&b, 65536, "plan_chunk_size, 10,000 lengths, 65,536 units");
    bench_chunk_size(&b, 16384, "plan_chunk_size, 10,000 lengths, 16,384 units");
    for (uint32_t i = 0; i < 10000; i++) {
        b.lengths[i] = 4096;
    }
    bench_chunk_size(&b, 20017, "plan_chunk_size, 10,000 equal lengths");
    lengths_generate(1, sequence_max, b.lengths);
    for (size_t i = 0; i < sizeof plan_cases / sizeof *plan_cases; i++) {
        bench_case of = *plan_cases[i].of;
        of.name = plan_cases[i].name;
        set_batch(&b, plan_cases[i].sequences, plan_cases[i].heads, plan_cases[i].chunk);
        check_generate(&b);
        of.work = (double)b.info.work_count / 1e3;
        if (plan_cases[i].of == &beside_operations) {
            b.limit.left = (const float *)b.lengths;
            b.limit.right = (const float *)b.copy;
            b.limit.out = (float *)b.work;
            b.limit.count = (uint32_t)b.info.work_count;
            of.limit = limit_of(LIMIT_DESCRIPTORS);
        }
        bench_measure(&of, &b);
    }
    free(b.lengths);
    free(b.work);
    free(b.copy);
}

// -- dispatch -------------------------------------------------------------------------------------

typedef struct dispatch_bench {
    ptowsp_context *context;
    ptowsp_context *serial;
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

static void run_serial_for(void *user) {
    dispatch_bench *b = (dispatch_bench *)user;
    ptowsp_parallel_for(b->serial, ptowsp_context_lane_count(b->context), 1, empty_range, NULL);
}

void bench_dispatch(ptowsp_context *context) {
    dispatch_bench b = {context, NULL, NULL, 16384};
    require(ptowsp_context_create(NULL, &b.serial) == PTOWSP_OK &&
                ptowsp_work_create(context, b.work_count, &b.work) == PTOWSP_OK,
            "out of memory");
    for (uint64_t i = 0; i < b.work_count; i++) {
        b.work[i] = ptowsp_work_of((uint32_t)i, (uint8_t)(i / 64 % 4), 0, 0, 0, 0, 1);
    }
    require(ptowsp_dispatch_spmd(context, b.work, b.work_count, empty_table, 4, NULL) == PTOWSP_OK,
            "dispatch fails");
    const bench_case cases[] = {
        {"dispatch_spmd, all lanes, 16,384 empty kernels", "ns each", (double)b.work_count, 10,
         ROUNDS, run_dispatch_spmd, "dispatch_serial", run_dispatch_serial, NULL, NULL, BUDGET_NONE,
         0.0},
        {"parallel_for, one empty item for each lane", "us", 1.0, 1000, 11, run_parallel_for,
         "on a serial context", run_serial_for, NULL, NULL, BUDGET_NONE, 0.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_measure(&cases[i], &b);
    }
    ptowsp_work_destroy(context, b.work);
    ptowsp_context_destroy(b.serial);
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
    bench_keep(b->out);
}

static void run_merge_read(void *user) {
    merge_bench *b = (merge_bench *)user;
    for (uint32_t row = 0; row < MERGE_ROWS; row++) {
        for (uint32_t part = 0; part < MERGE_PARTS; part++) {
            memcpy(b->out[row], b->accs[part][row], sizeof b->out[row]);
            bench_keep(b->out);
        }
    }
}

void bench_merge(void) {
    merge_bench *b = (merge_bench *)bench_allocate(sizeof *b);
    uint64_t random = 1;
    for (uint32_t part = 0; part < MERGE_PARTS; part++) {
        for (uint32_t row = 0; row < MERGE_ROWS; row++) {
            b->states[part][row].m = (float)(lengths_random_unit(&random) * 20.0);
            b->states[part][row].l = 1.0f;
        }
    }
    static const bench_case of = {"merge_partials, 8 parts of 128",
                                  "ns/row",
                                  MERGE_ROWS,
                                  100,
                                  ROUNDS,
                                  run_merge,
                                  "memcpy of each part",
                                  run_merge_read,
                                  NULL,
                                  run_merge_read,
                                  BUDGET_BESIDE,
                                  1.5};
    bench_measure(&of, b);
    free(b);
}
