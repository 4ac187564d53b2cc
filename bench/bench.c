// Benchmarks: each measures something of ptowsp and, in turns with it, something to compare with,
// and prints medians and their ratio. A row may have a limit besides: a bare loop that does only what
// cannot be avoided. Its time is that of the limit / share. Machines differ and are shared: only
// ratios inside one run mean much.
//
//      bench [--json FILE] [--markdown FILE] [--kv-mib N] [--only GROUP] [--count] [--svg FILE]
//            [--minutes N]
//
// --markdown replaces the rows below the marker line of a file, as of README.md here.
//
// The groups are those of `groups` below. --count runs each row once, for callgrind (count.c).

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- results --------------------------------------------------------------------------------------

// A row, its group, its limit and its count. Its texts are its own.
typedef struct bench_line {
    const char *group;
    bench_row row;
    bench_limit limit;
    double count;  // instructions per unit, or 0
} bench_line;

static bench_line lines[256];
static size_t line_count;
static const char *group;  // that runs

bool is_counting;

// Of the last measurement: the time and the instructions of a call.
static double last_ns, last_count;

// A line for a row that was counted: group, name, unit, and what a count is multiplied by.
static void report_count(const bench_row *row) {
    printf("%s: %s\t%s\t%.9g\n", group, row->name, row->unit, count_scale(row, last_ns));
}

static void print_line(const bench_line *line) {
    const bench_row *row = &line->row;
    printf("%-46s %9.3f %-8s %-34s %9.3f  x%-8.3g ", row->name, row->value, row->unit, row->other,
           row->other_value, row->ratio);
    if (line->limit.name) {
        printf("%9.3f %4.0f %%  ", line->limit.value, 100.0 * line->limit.share);
    } else {
        printf("%9s %6s  ", "-", "");
    }
    const bool is_shown = line->limit.name && line->limit.share >= BENCH_LIMIT_SHOWN;
    printf("%s%s", row->budget,
           !row->has_budget ? ""
           : row->is_met    ? " (met)"
           : is_shown       ? " (limit shown)"
                            : " (NOT MET)");
    if (line->limit.name && strcmp(line->limit.name, row->other) != 0) {
        printf("  limit: %s", line->limit.name);
    }
    if (line->count > 0.0) {
        printf("  %.4g instructions", line->count);
    }
    putchar('\n');
    fflush(stdout);
}

static const char *keep_text(const char *text) {
    const size_t size = text ? strlen(text) + 1 : 0;
    char *kept = (char *)malloc(size + 1);
    require(kept != NULL, "out of memory");
    return text ? (char *)memcpy(kept, text, size) : NULL;
}

void report_beside_limit(bench_row row, bench_limit limit) {
    require(line_count < sizeof lines / sizeof *lines, "more rows than there is room for");
    if (is_counting) {
        if (last_ns > 0.0) {
            report_count(&row);
        }
        last_ns = 0.0;
        return;
    }
    bench_line *line = &lines[line_count++];
    line->group = group;
    line->row = row;
    line->row.name = keep_text(row.name);
    line->row.unit = keep_text(row.unit);
    line->row.other = keep_text(row.other);
    line->row.budget = keep_text(row.budget);
    line->limit = limit;
    line->limit.name = keep_text(limit.name);
    line->count = last_count > 0.0 ? last_count * count_scale(&row, last_ns) : 0.0;
    last_ns = last_count = 0.0;
    print_line(line);
}

void report(bench_row row) {
    const bench_limit none = {NULL, 0.0, 0.0};
    report_beside_limit(row, none);
}

static void write_line(FILE *file, const bench_line *line, bool is_last) {
    const bench_row *row = &line->row;
    fprintf(file,
            "  {\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.4f, \"other\": \"%s\", "
            "\"other_value\": %.4f, \"ratio\": %.4f, ",
            row->name, row->unit, row->value, row->other, row->other_value, row->ratio);
    if (line->limit.name) {
        fprintf(file, "\"limit\": \"%s\", \"limit_value\": %.4f, \"share\": %.4f, ",
                line->limit.name, line->limit.value, line->limit.share);
    }
    fprintf(file, "\"instructions\": %.1f, \"budget\": \"%s\", \"met\": %s}%s\n", line->count,
            row->budget,
            !row->has_budget ? "null"
            : row->is_met    ? "true"
                             : "false",
            is_last ? "" : ",");
}

static bool write_json(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "bench: cannot write %s\n", path);
        return false;
    }
    fputs("[\n", file);
    for (size_t i = 0; i < line_count; i++) {
        write_line(file, &lines[i], i + 1 == line_count);
    }
    fputs("]\n", file);
    return fclose(file) == 0;
}

#define MARKDOWN_MARK "<!-- written by bench --markdown -->\n"

// Three digits: 0.123, 1.23, 12.3, 123; of ratios and counts, which have no unit, five.
static void write_value(FILE *file, double value, const bench_row *of) {
    const double size = value < 0 ? -value : value;
    if (!*of->unit) {
        fprintf(file, "%.5g", value);
        return;
    }
    fprintf(file, "%.*f", size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3, value);
}

static bool is_named_alike(const bench_line *a, const bench_line *b) {
    return a->group == b->group && strcmp(a->row.name, b->row.name) == 0;
}

static void write_others(FILE *file, size_t first) {
    const char *comma = "", *before = "";
    for (size_t i = first; i < line_count; i++) {
        const bench_row *row = &lines[i].row;
        if (!is_named_alike(&lines[first], &lines[i]) || strcmp(row->other, before) == 0 ||
            strcmp(row->other, "none") == 0 || strcmp(row->other, "-") == 0) {
            continue;
        }
        fprintf(file, "%s%s", comma, row->other);
        if (row->other_value > 0) {
            fputs(": ", file);
            write_value(file, row->other_value, row);
        }
        comma = "; ";
        before = row->other;
    }
}

// All rows of one name are a line of the table: one thing beside several others. Those with neither
// limit nor budget are left to the program's own table.
static void write_markdown_line(FILE *file, size_t first) {
    const bench_line *line = &lines[first], *limit = NULL, *budget = NULL;
    for (size_t i = first; i < line_count; i++) {
        if (is_named_alike(line, &lines[i])) {
            limit = lines[i].limit.name ? &lines[i] : limit;
            budget = lines[i].row.has_budget ? &lines[i] : budget;
        }
    }
    if (!limit && !budget) {
        return;
    }
    fprintf(file, "| %s | ", line->row.name);
    write_value(file, line->row.value, &line->row);
    fprintf(file, "%s%s | ", *line->row.unit ? " " : "", line->row.unit);
    write_others(file, first);
    fputs(" | ", file);
    if (limit) {
        write_value(file, limit->limit.value, &line->row);
        fprintf(file, ", %.0f %%", 100.0 * limit->limit.share);
    }
    fprintf(file, " | %s%s | %s |\n", budget ? budget->row.budget : "",
            !budget              ? ""
            : budget->row.is_met ? ": met"
                                 : ": **missed**",
            line->group);
}

// Keeps the file up to the marker, and writes the rows after it.
static bool write_markdown(const char *path) {
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    const bool is_read = file && !ferror(file);
    text[length] = '\0';
    if (file) {
        fclose(file);
    }
    char *mark = strstr(text, MARKDOWN_MARK);
    if (!is_read || !mark || !(file = fopen(path, "w"))) {
        fprintf(stderr, "bench: cannot write %s, or it has no line %s", path, MARKDOWN_MARK);
        return false;
    }
    fwrite(text, 1, (size_t)(mark - text), file);
    fputs(MARKDOWN_MARK
          "\n| what | ptowsp | beside it, in the same unit | limit, share reached | budget "
          "| `--only` |\n|---|--:|---|---|---|---|\n",
          file);
    for (size_t i = 0; i < line_count; i++) {
        bool is_first = true;
        for (size_t k = 0; k < i; k++) {
            is_first = is_first && !is_named_alike(&lines[k], &lines[i]);
        }
        if (is_first) {
            write_markdown_line(file, i);
        }
    }
    return fclose(file) == 0;
}

// -- timing ---------------------------------------------------------------------------------------

enum { FUNCTION_MAX = 3 };

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

static double median(double *values, uint32_t count) {
    qsort(values, count, sizeof *values, compare_double);
    return values[count / 2];
}

// Medians of functions that take turns, and of the quotient of the first and each in each round.
static void measure_all(const bench_fn *fns, uint32_t fn_count, void *user, uint32_t repeat,
                        uint32_t rounds, double *out_ns, double *out_ratios) {
    double times[FUNCTION_MAX][ROUNDS], ratios[FUNCTION_MAX][ROUNDS];
    require(rounds <= ROUNDS, "more rounds than there is room for");
    if (is_counting) {
        for (uint32_t f = 0; f < fn_count; f++) {
            out_ns[f] = out_ratios[f] = 1.0;
        }
        bench_counted(fns[0], user);
        last_ns = 1.0;
        return;
    }
    for (uint32_t f = 0; f < fn_count; f++) {
        fns[f](user);
    }
    for (uint32_t i = 0; i < rounds; i++) {
        for (uint32_t f = 0; f < fn_count; f++) {
            times[f][i] = time_ns(fns[f], user, repeat);
            ratios[f][i] = times[0][i] / times[f][i];
        }
    }
    for (uint32_t f = 0; f < fn_count; f++) {
        out_ns[f] = median(times[f], rounds);
        out_ratios[f] = median(ratios[f], rounds);
    }
    last_ns = out_ns[0];
    last_count = count_instructions(fns[0], user);
}

bench_times measure(bench_fn own, bench_fn other, void *user, uint32_t repeat, uint32_t rounds) {
    const bench_fn fns[2] = {own, other};
    double ns[2], ratios[2];
    measure_all(fns, 2, user, repeat, rounds, ns, ratios);
    bench_times medians = {ns[0], ns[1], ratios[1]};
    return medians;
}

// -- cases ----------------------------------------------------------------------------------------

// What a call of ns nanoseconds is in the unit of a case.
static double case_value(const bench_case *of, double ns) {
    double unit_ns = bench_unit_ns(of->unit);
    return unit_ns > 0.0 ? ns / unit_ns / of->work : of->work / ns;
}

// Is the budget met, and what is it called?
static bool check_budget(const bench_case *of, const double *ratios, double value, char *text,
                         size_t size) {
    const bool is_rate = bench_unit_ns(of->unit) == 0.0;
    switch (of->budget) {
    case BUDGET_NONE: text[0] = 0; return false;
    case BUDGET_VALUE:
        snprintf(text, size, "%g %s", of->most, of->unit);
        return is_rate ? value >= of->most : value <= of->most;
    case BUDGET_BESIDE: snprintf(text, size, "%.3g x it", of->most); return ratios[1] <= of->most;
    case BUDGET_LIMIT: break;
    }
    snprintf(text, size, "%.3g x limit", of->most);
    return ratios[2] <= of->most;
}

void bench_measure(const bench_case *of, void *user) {
    static char texts[sizeof lines / sizeof *lines][32];  // of budgets, as long as the rows
    char *text = texts[line_count % (sizeof lines / sizeof *lines)];
    const bool is_other = of->limit == of->other;
    const bench_fn fns[FUNCTION_MAX] = {of->own, of->other, of->limit};
    double ns[FUNCTION_MAX], ratios[FUNCTION_MAX];
    measure_all(fns, of->limit && !is_other ? 3 : 2, user, of->repeat, of->rounds, ns, ratios);
    if (is_other) {
        ns[2] = ns[1];
        ratios[2] = ratios[1];
    }
    const double value = case_value(of, ns[0]);
    const bool is_met = check_budget(of, ratios, value, text, sizeof texts[0]);
    const bool is_rate = bench_unit_ns(of->unit) == 0.0;
    bench_row row = {of->name,
                     of->unit,
                     value,
                     of->other_name,
                     case_value(of, ns[1]),
                     is_rate ? 1.0 / ratios[1] : ratios[1],
                     text,
                     of->budget != BUDGET_NONE,
                     is_met};
    bench_limit limit = {NULL, 0.0, 0.0};
    if (of->limit) {
        limit.name = is_other ? of->other_name : of->limit_name;
        limit.value = case_value(of, ns[2]);
        limit.share = 1.0 / ratios[2];
    }
    report_beside_limit(row, limit);
}

void require(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "bench: %s\n", what);
        exit(1);
    }
}

#if !defined(__GNUC__)
static volatile uint64_t sink;
#endif

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

// -- groups ---------------------------------------------------------------------------------------

static uint64_t kv_mib = 256;

static const char *svg;  // the picture of scale

static double growth_minutes = 0.1;

static void bench_growth_group(ptowsp_context *context) {
    (void)context;
    if (!is_counting) {
        bench_growth(growth_minutes);
    }
}

static void bench_scale_group(ptowsp_context *context) {
    (void)context;
    bench_scale(svg);
}

static void bench_decode_group(ptowsp_context *context) {
    bench_decode(context, is_counting ? 8 : kv_mib);
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
WITHOUT_CONTEXT(bench_peers)

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
              {"peers", bench_peers_group},
              {"scale", bench_scale_group},
              {"growth", bench_growth_group}};

static int usage(void) {
    fprintf(stderr,
            "usage: bench [--json FILE] [--markdown FILE] [--kv-mib N] [--only GROUP] [--count] "
            "[--svg FILE] [--minutes N]\n"
            "groups:");
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        fprintf(stderr, " %s", groups[i].name);
    }
    fputc('\n', stderr);
    return 2;
}

static void print_head(ptowsp_context *context) {
    printf("ptowsp %s, %u lanes, %s; medians, in turns with what they are compared with\n",
           PTOWSP_VERSION, (unsigned)ptowsp_context_lane_count(context), ptowsp_attend_variant());
    printf("%s\n\n", count_open() ? "instructions are those of one run, per unit of a time"
                                  : "instructions are not counted: no counters of perf here");
    printf("%-46s %9s %-8s %-34s %9s  %-9s %9s %6s  %s\n", "what", "ptowsp", "", "beside", "",
           "ratio", "limit", "share", "budget");
}

int main(int argc, char **argv) {
    const char *json = NULL, *markdown = NULL, *only = NULL;
    bool is_known = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json = argv[++i];
        } else if (strcmp(argv[i], "--markdown") == 0 && i + 1 < argc) {
            markdown = argv[++i];
        } else if (strcmp(argv[i], "--kv-mib") == 0 && i + 1 < argc) {
            kv_mib = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else if (strcmp(argv[i], "--minutes") == 0 && i + 1 < argc) {
            growth_minutes = strtod(argv[++i], NULL);
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
    const bool is_written = (!json || write_json(json)) && (!markdown || write_markdown(markdown));
    return is_written ? 0 : 1;
}
