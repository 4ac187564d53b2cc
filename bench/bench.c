// Benchmarks: each measures something of ptowsp and, in turns with it, something to compare with,
// and prints medians and their ratio. Machines differ and are shared: only ratios inside one run
// mean much.
//
//      bench [--json FILE] [--kv-mib N] [--only GROUP] [--count] [--svg FILE]
//
// The groups are those of `groups` below. --count runs each row once, for callgrind (count.c).

#include "bench.h"

#include "common/attention.h"
#include "common/lengths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- results --------------------------------------------------------------------------------------

static bench_row rows[128];
static double row_counts[128];  // instructions per unit, or 0
static size_t row_count;
static const char *group;  // that runs

bool is_counting;

// Of the last measurement: the time and the instructions of a call.
static double last_ns, last_count;

// A line for a row that was counted: group, name, unit, and what a count is multiplied by.
static void report_count(const bench_row *row) {
    printf("%s: %s\t%s\t%.9g\n", group, row->name, row->unit, count_scale(row, last_ns));
}

void report(bench_row row) {
    require(row_count < sizeof rows / sizeof *rows, "more rows than there is room for");
    if (is_counting) {
        if (last_ns > 0.0) {
            report_count(&row);
        }
        last_ns = 0.0;
        return;
    }
    row_counts[row_count] = last_count > 0.0 ? last_count * count_scale(&row, last_ns) : 0.0;
    rows[row_count++] = row;
    printf("%-46s %9.3f %-8s %-34s %9.3f  x%-8.3g %s%s", row.name, row.value, row.unit, row.other,
           row.other_value, row.ratio, row.budget,
           !row.has_budget ? ""
           : row.is_met    ? " (met)"
                           : " (NOT MET)");
    if (row_counts[row_count - 1] > 0.0) {
        printf("  %.4g instructions", row_counts[row_count - 1]);
    }
    putchar('\n');
    last_ns = last_count = 0.0;
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
        fprintf(
            file,
            "  {\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.4f, \"other\": \"%s\", "
            "\"other_value\": %.4f, \"ratio\": %.4f, \"instructions\": %.1f, \"budget\": \"%s\", "
            "\"met\": %s}%s\n",
            row->name, row->unit, row->value, row->other, row->other_value, row->ratio,
            row_counts[i], row->budget,
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

bench_times measure(bench_fn own, bench_fn other, void *user, uint32_t repeat, uint32_t rounds) {
    double times[3][ROUNDS];
    require(rounds <= ROUNDS, "more rounds than there is room for");
    if (is_counting) {
        bench_times once = {1.0, 1.0, 1.0};
        bench_counted(own, user);
        last_ns = 1.0;
        return once;
    }
    own(user);
    other(user);
    for (uint32_t i = 0; i < rounds; i++) {
        times[0][i] = time_ns(own, user, repeat);
        times[1][i] = time_ns(other, user, repeat);
        times[2][i] = times[0][i] / times[1][i];
    }
    for (uint32_t i = 0; i < 3; i++) {
        qsort(times[i], rounds, sizeof(double), compare_double);
    }
    bench_times medians = {times[0][rounds / 2], times[1][rounds / 2], times[2][rounds / 2]};
    last_ns = medians.own_ns;
    last_count = count_instructions(own, user);
    return medians;
}

void require(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "bench: %s\n", what);
        exit(1);
    }
}

static volatile uint64_t sink;

void bench_keep(const void *memory) {
#if defined(__GNUC__)
    __asm__ volatile("" : : "r"(memory) : "memory");
#else
    sink = (uint64_t)(uintptr_t)memory;
#endif
}

void *bench_allocate(size_t size) {
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
    bench_keep(b->work);
}

static void run_copy(void *user) {
    plan_bench *b = (plan_bench *)user;
    memcpy(b->copy, b->work, (size_t)b->info.work_count * sizeof *b->work);
    bench_keep(b->copy);
}

static void bench_chunk_size(plan_bench *b, uint32_t max_work_units, const char *name) {
    b->batch.sequence_count = 10000;
    b->batch.head_count = 1;
    b->config.max_work_units = max_work_units;
    bench_times t = measure(run_chunk_size, run_chunk_size_plain, b, 10, ROUNDS);
    bench_row row = {name,    "us",    t.own_ns / 1e3, "plain bisection", t.other_ns / 1e3,
                     t.ratio, "10 us", true,           t.own_ns <= 10e3};
    report(row);
}

// Reports one of the generators in microseconds for 1,000 descriptors.
static void bench_generate(plan_bench *b, bench_fn own, bench_fn other, uint32_t repeat,
                           const char *name, const char *other_name, double budget) {
    bench_times t = measure(own, other, b, repeat, repeat > 1 ? ROUNDS : 11);
    double per_thousand = (double)b->info.work_count / 1e3 * 1e3;
    bench_row row = {name,
                     "us/1000",
                     t.own_ns / per_thousand,
                     other_name,
                     t.other_ns / per_thousand,
                     t.ratio,
                     budget > 0.0 ? "1.5x memcpy" : "",
                     budget > 0.0,
                     t.ratio <= budget};
    report(row);
}

static void set_batch(plan_bench *b, uint32_t sequences, uint32_t heads, uint32_t chunk) {
    b->batch.sequence_count = sequences;
    b->batch.head_count = heads;
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

static void bench_plan(ptowsp_context *context) {
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

    const char *copy = "memcpy of the same bytes";
    set_batch(&b, 256, 8, 1024);
    check_generate(&b);
    bench_generate(&b, run_generate, run_copy, 10, "generate, 256 sequences x 8 heads", copy, 1.5);
    bench_generate(&b, run_generate, run_generate_plain, 10, "generate, 256 sequences x 8 heads",
                   "three plain loops", 0.0);
    set_batch(&b, 64, 8, 256);
    bench_generate(&b, run_generate, run_copy, 10, "generate, 64 sequences x 8 heads, chunk 256",
                   copy, 1.5);
    set_batch(&b, 256, 1, 512);
    bench_generate(&b, run_generate, run_copy, 10, "generate, 256 sequences x 1 head", copy, 1.5);
    bench_generate(&b, run_generate, run_generate_plain, 10, "generate, 256 sequences x 1 head",
                   "three plain loops", 0.0);
    set_batch(&b, sequence_max, 8, 1024);
    check_generate(&b);
    bench_generate(&b, run_generate_parallel, run_generate, 1,
                   "generate_parallel, 100,000 sequences x 8 heads", "generate on one lane", 0.0);
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

static void bench_dispatch(ptowsp_context *context) {
    dispatch_bench b = {context, NULL, NULL, 16384};
    require(ptowsp_context_create(NULL, &b.serial) == PTOWSP_OK &&
                ptowsp_work_create(context, b.work_count, &b.work) == PTOWSP_OK,
            "out of memory");
    for (uint64_t i = 0; i < b.work_count; i++) {
        b.work[i] = ptowsp_work_of((uint32_t)i, (uint8_t)(i / 64 % 4), 0, 0, 0, 0, 1);
    }
    require(ptowsp_dispatch_spmd(context, b.work, b.work_count, empty_table, 4, NULL) == PTOWSP_OK,
            "dispatch fails");
    bench_times t = measure(run_dispatch_spmd, run_dispatch_serial, &b, 10, ROUNDS);
    bench_row row = {"dispatch_spmd, all lanes, 16,384 empty kernels",
                     "ns each",
                     t.own_ns / (double)b.work_count,
                     "dispatch_serial",
                     t.other_ns / (double)b.work_count,
                     t.ratio,
                     "",
                     false,
                     false};
    report(row);
    t = measure(run_parallel_for, run_serial_for, &b, 1000, 11);
    bench_row job = {"parallel_for, one empty item for each lane",
                     "us",
                     t.own_ns / 1e3,
                     "on a serial context",
                     t.other_ns / 1e3,
                     t.ratio,
                     "",
                     false,
                     false};
    report(job);
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

static void bench_merge(void) {
    merge_bench *b = (merge_bench *)bench_allocate(sizeof *b);
    uint64_t random = 1;
    for (uint32_t part = 0; part < MERGE_PARTS; part++) {
        for (uint32_t row = 0; row < MERGE_ROWS; row++) {
            b->states[part][row].m = (float)(lengths_random_unit(&random) * 20.0);
            b->states[part][row].l = 1.0f;
        }
    }
    bench_times t = measure(run_merge, run_merge_read, b, 100, ROUNDS);
    bench_row row = {"merge_partials, 8 parts of 128",
                     "ns/row",
                     t.own_ns / MERGE_ROWS,
                     "memcpy of each part",
                     t.other_ns / MERGE_ROWS,
                     t.ratio,
                     "1.5x memcpy",
                     true,
                     t.ratio <= 1.5};
    report(row);
    free(b);
}

// -- groups ---------------------------------------------------------------------------------------

static uint64_t kv_mib = 256;

static const char *svg;  // the picture of scale

static void bench_scale_group(ptowsp_context *context) {
    (void)context;
    bench_scale(svg);
}

static void bench_decode_group(ptowsp_context *context) {
    bench_decode(context, kv_mib);
}

// Those that take no context of the benchmark's own.
#define WITHOUT_CONTEXT(function)                                                                  \
    static void function##_group(ptowsp_context *context) {                                        \
        (void)context;                                                                             \
        function();                                                                                \
    }

WITHOUT_CONTEXT(bench_attention_plan)
WITHOUT_CONTEXT(bench_attention_run)
WITHOUT_CONTEXT(bench_merge)
WITHOUT_CONTEXT(bench_prefill)
WITHOUT_CONTEXT(bench_time)
WITHOUT_CONTEXT(bench_see)
WITHOUT_CONTEXT(bench_pipeline)
WITHOUT_CONTEXT(bench_kernel)
WITHOUT_CONTEXT(bench_blas)
WITHOUT_CONTEXT(bench_lanes)
WITHOUT_CONTEXT(bench_graph)
WITHOUT_CONTEXT(bench_emit)

static const struct {
    const char *name;
    void (*run)(ptowsp_context *context);
} groups[] = {{"plan", bench_plan},
              {"attention", bench_attention_plan_group},
              {"moe", bench_moe},
              {"prefix", bench_prefix},
              {"dispatch", bench_dispatch},
              {"attention_run", bench_attention_run_group},
              {"merge", bench_merge_group},
              {"decode", bench_decode_group},
              {"prefill", bench_prefill_group},
              {"time", bench_time_group},
              {"see", bench_see_group},
              {"tune", bench_tune},
              {"pipeline", bench_pipeline_group},
              {"kernel", bench_kernel_group},
              {"blas", bench_blas_group},
              {"lanes", bench_lanes_group},
              {"graph", bench_graph_group},
              {"emit", bench_emit_group},
              {"scale", bench_scale_group}};

static int usage(void) {
    fprintf(stderr,
            "usage: bench [--json FILE] [--kv-mib N] [--only GROUP] [--count] [--svg FILE]\n"
            "groups:");
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        fprintf(stderr, " %s", groups[i].name);
    }
    fputc('\n', stderr);
    return 2;
}

static void print_head(ptowsp_context *context) {
    printf("ptowsp %s, %u lanes, %s; medians, in turns with what they are compared with\n",
           PTOWSP_VERSION, (unsigned)ptowsp_context_lane_count(context), attention_variant_name());
    printf("%s\n\n", count_open() ? "instructions are those of one run, per unit of a time"
                                  : "instructions are not counted: no counters of perf here");
    printf("%-46s %9s %-8s %-34s %9s  %-9s %s\n", "what", "ptowsp", "", "beside", "", "ratio",
           "budget");
}

int main(int argc, char **argv) {
    const char *json = NULL, *only = NULL;
    bool is_known = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json = argv[++i];
        } else if (strcmp(argv[i], "--kv-mib") == 0 && i + 1 < argc) {
            kv_mib = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else if (strcmp(argv[i], "--svg") == 0 && i + 1 < argc) {
            svg = argv[++i];
        } else if (strcmp(argv[i], "--count") == 0) {
            is_counting = true;
        } else {
            return usage();
        }
    }
    for (size_t i = 0; only && i < sizeof groups / sizeof *groups; i++) {
        is_known = strcmp(only, groups[i].name) == 0;
        if (is_known) {
            break;
        }
    }
    if (!is_known) {
        return usage();
    }
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.threads = is_counting ? PTOWSP_THREADS_SERIAL : PTOWSP_THREADS_OWN;
    ptowsp_context *context;
    if (kv_mib < 8 || kv_mib > 8192 || ptowsp_context_create(&desc, &context) != PTOWSP_OK) {
        fprintf(stderr, "bench: --kv-mib is not in 8 to 8192, or no threads\n");
        return 2;
    }
    if (!is_counting) {
        print_head(context);
    }
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        group = groups[i].name;
        if (!only || strcmp(only, group) == 0) {
            groups[i].run(context);
        }
    }
    ptowsp_context_destroy(context);
    require(fflush(stdout) == 0 && !ferror(stdout), "cannot write the table");
    return json && !write_json(json) ? 1 : 0;
}
