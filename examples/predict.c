// Predicts published measurements: cycles of single instructions and times of kernels, by the models
// 910B and 950PR of measured machines.
//
//      predict                       the rows that come with it: published, predicted, ratio
//      predict --svg FILE            the same as a picture, with a band of 10 %
//      predict --instructions FILE   rows of a CSV file with predicted_cycles appended
//      predict --rows FILE           rows of kernels with predicted_us and shares of pipes appended
//      predict --control FILE        rows of launches and scheduling with predicted appended
//
// Columns are found by their names in the first line. A row that cannot be predicted says why. The
// picture and the tables show how far a prediction can be trusted; they are facts about the models,
// not about the device of the reader.

#include "ptowsp.h"

#include "common/command.h"
#include "common/predict.h"
#include "common/predict_control.h"
#include "common/predict_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096, FIELDS = 32, POINTS = 512 };

// -- lines of CSV ---------------------------------------------------------------------------------

// A line cut into fields, in a copy.
typedef struct line {
    char text[LINE_MAX_BYTES];
    const char *fields[FIELDS];
    uint32_t count;
} line;

// Cuts a line at commas outside quotes. False for more fields or bytes than fit.
static bool line_cut(line *l, const char *text) {
    size_t length = strcspn(text, "\r\n");
    char *to = l->text;
    bool is_quoted = false;
    l->count = 0;
    if (length + 1 >= sizeof l->text) {
        return false;
    }
    l->fields[l->count++] = to;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') {
            is_quoted = !is_quoted;
        } else if (text[i] == ',' && !is_quoted) {
            *to++ = '\0';
            if (l->count == FIELDS) {
                return false;
            }
            l->fields[l->count++] = to;
        } else {
            *to++ = text[i];
        }
    }
    *to = '\0';
    return !is_quoted;
}

// The field of the column that the head calls `name`; "" if there is no such column.
static const char *line_field(const line *head, const line *l, const char *name) {
    for (uint32_t i = 0; i < head->count; i++) {
        if (strcmp(head->fields[i], name) == 0) {
            return i < l->count ? l->fields[i] : "";
        }
    }
    return "";
}

static uint32_t line_number(const line *head, const line *l, const char *name) {
    return (uint32_t)strtoul(line_field(head, l, name), NULL, 10);
}

static void copy_text(char to[PREDICT_TEXT_MAX], const char *from) {
    snprintf(to, PREDICT_TEXT_MAX, "%.*s", PREDICT_TEXT_MAX - 1, from);
}

static bool cycles_of(const line *head, const line *l, double *out_cycles, char *reason) {
    predict_instruction row;
    copy_text(row.machine, line_field(head, l, "machine"));
    copy_text(row.name, line_field(head, l, "instruction"));
    copy_text(row.dtype, line_field(head, l, "dtype"));
    copy_text(row.params, line_field(head, l, "params"));
    copy_text(row.variant, line_field(head, l, "variant"));
    row.rows = line_number(head, l, "rows");
    row.cols = line_number(head, l, "cols");
    row.valid_rows = line_number(head, l, "valid_rows");
    row.valid_cols = line_number(head, l, "valid_cols");
    return predict_cycles(&row, out_cycles, reason);
}

static bool times_of(const line *head, const line *l, predict_times *out_times, char *reason) {
    predict_kernel row;
    copy_text(row.kernel, line_field(head, l, "kernel"));
    copy_text(row.machine, line_field(head, l, "machine"));
    copy_text(row.shape, line_field(head, l, "shape"));
    copy_text(row.tiling, line_field(head, l, "tiling"));
    return predict_time(&row, out_times, reason);
}

// -- files ----------------------------------------------------------------------------------------

typedef enum file_kind { INSTRUCTION_FILE, KERNEL_FILE, CONTROL_FILE } file_kind;

static void print_predicted(const line *head, const line *l, const char *text, file_kind kind) {
    char reason[PREDICT_REASON_MAX], control[PREDICT_TEXT_MAX];
    const bool is_kernels = kind == KERNEL_FILE;
    double cycles;
    predict_times t;
    printf("%.*s,", (int)strcspn(text, "\r\n"), text);
    if (kind == CONTROL_FILE &&
        predict_control(line_field(head, l, "what"), line_field(head, l, "value"),
                        line_field(head, l, "conditions"), control, reason)) {
        printf("%s\n", control);
    } else if (is_kernels && times_of(head, l, &t, reason)) {
        printf("%.1f,%.1f,%.1f,%.1f,%.1f,%.1f\n", t.us, t.cube, t.vector, t.mte1, t.mte2, t.store);
    } else if (kind == INSTRUCTION_FILE && cycles_of(head, l, &cycles, reason)) {
        printf("%.0f\n", cycles);
    } else {
        printf("\"not predicted: %s\"%s\n", reason, is_kernels ? ",,,,," : "");
    }
}

static void predict_file(const char *path, file_kind kind) {
    static const char *const appended[] = {
        "predicted_cycles",
        ("predicted_us,predicted_cube_pct,predicted_vector_pct,predicted_mte1_pct,"
         "predicted_mte2_pct,predicted_store_pct"),
        "predicted"};
    static const char *const needed[][8] = {
        {"machine", "instruction", "dtype", "rows", "cols", "valid_rows", "valid_cols", NULL},
        {"kernel", "machine", "shape", "tiling", NULL},
        {"what", "value", NULL}};
    static char text[LINE_MAX_BYTES];
    static line head, l;
    FILE *file = fopen(path, "r");
    if (!file) {
        command_fail("%s cannot be read", path);
    }
    if (!fgets(text, sizeof text, file) || !line_cut(&head, text)) {
        command_fail("%s: there is no line with names of columns", path);
    }
    for (int i = 0; needed[kind][i]; i++) {
        uint32_t at = 0;
        while (at < head.count && strcmp(head.fields[at], needed[kind][i]) != 0) {
            at++;
        }
        if (at == head.count) {
            command_fail("%s: there is no column %s", path, needed[kind][i]);
        }
    }
    printf("%.*s,%s\n", (int)strcspn(text, "\r\n"), text, appended[kind]);
    for (unsigned number = 2; fgets(text, sizeof text, file); number++) {
        if (!line_cut(&l, text) || (!strchr(text, '\n') && !feof(file))) {
            command_fail("%s: line %u is too long, or a quote is not closed", path, number);
        }
        print_predicted(&head, &l, text, kind);
    }
    fclose(file);
}

// -- the rows that come with it -------------------------------------------------------------------

typedef enum kind { A2A3_VECTOR, A2A3_MOVE, A5_VECTOR, KERNEL, KINDS } kind;

static const char *const kind_names[KINDS] = {"A2/A3 element by element", "A2/A3 moves, reductions",
                                              "A5 vector instructions", "kernels"};

// Families of kernels: how their names begin, the longer ones first, and the legend's words.
static const struct {
    const char *prefix, *words;
} families[] = {{"gemm_allreduce", "GEMM and all-reduce"},
                {"gemm", "GEMM"},
                {"conv2d", "convolution"},
                {"topk", "top-k"},
                {"flash_attention", "flash attention"},
                {"allgather_gemm", "all-gather and GEMM"}};

enum { FAMILIES = sizeof families / sizeof *families };

typedef struct point {
    kind of;
    uint32_t family;  // of a kernel
    char label[64];
    double measured, predicted;
} point;

static point points[POINTS];
static uint32_t point_count;

static void add_point(kind of, uint32_t family, const char *label, double measured,
                      double predicted) {
    point *to = &points[point_count];
    if (point_count == POINTS || measured <= 0 || predicted <= 0) {
        return;
    }
    point_count++;
    to->of = of;
    to->family = family;
    to->measured = measured;
    to->predicted = predicted;
    snprintf(to->label, sizeof to->label, "%s", label);
}

static kind kind_of(const char *machine, const char *name) {
    static const char *const moves[] = {"TMOV", "TLOAD", "TROW", "TCOL", "TTRANS"};
    if (strcmp(machine, "A5") == 0) {
        return A5_VECTOR;
    }
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        if (strncmp(name, moves[i], strlen(moves[i])) == 0) {
            return A2A3_MOVE;
        }
    }
    return A2A3_VECTOR;
}

static uint32_t family_of(const char *kernel) {
    uint32_t i = 0;
    while (i + 1 < FAMILIES &&
           strncmp(kernel, families[i].prefix, strlen(families[i].prefix)) != 0) {
        i++;
    }
    return i;
}

static void gather_points(void) {
    static line head, l;
    char reason[PREDICT_REASON_MAX], label[LINE_MAX_BYTES];
    size_t count = sizeof predict_instruction_rows / sizeof *predict_instruction_rows;
    line_cut(&head, predict_instruction_rows[0]);
    for (size_t i = 1; i < count; i++) {
        double cycles = 0;
        line_cut(&l, predict_instruction_rows[i]);
        const char *name = line_field(&head, &l, "instruction");
        const char *machine = line_field(&head, &l, "machine");
        if (!cycles_of(&head, &l, &cycles, reason)) {
            printf("%s: not predicted: %s\n", predict_instruction_rows[i], reason);
        }
        snprintf(label, sizeof label, "%s %s %ux%u %.20s", name, line_field(&head, &l, "dtype"),
                 line_number(&head, &l, "valid_rows"), line_number(&head, &l, "valid_cols"),
                 strchr(line_field(&head, &l, "params"), ' ') ? ""
                                                              : line_field(&head, &l, "params"));
        add_point(kind_of(machine, name), 0, label,
                  strtod(line_field(&head, &l, "measured_cycles"), NULL), cycles);
    }
    count = sizeof predict_kernel_rows / sizeof *predict_kernel_rows;
    line_cut(&head, predict_kernel_rows[0]);
    for (size_t i = 1; i < count; i++) {
        predict_times times = {0, 0, 0, 0, 0, 0};
        line_cut(&l, predict_kernel_rows[i]);
        if (!times_of(&head, &l, &times, reason)) {
            printf("%s: not predicted: %s\n", predict_kernel_rows[i], reason);
        }
        const char *shape = line_field(&head, &l, "shape"), *sizes = strstr(shape, ": ");
        const char *machine = line_field(&head, &l, "machine");
        snprintf(label, sizeof label, "%.15s %.*s %.40s", line_field(&head, &l, "kernel"),
                 (int)strcspn(machine, " "), machine, sizes ? sizes + 2 : shape);
        add_point(KERNEL, family_of(line_field(&head, &l, "kernel")), label,
                  strtod(line_field(&head, &l, "measured_us"), NULL), times.us);
    }
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The errors of kinds first to last, in percent, ascending.
static uint32_t errors_of(kind first, kind last, double errors[POINTS]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < point_count; i++) {
        if (points[i].of >= first && points[i].of <= last) {
            errors[count++] = 100 * fabs(points[i].predicted / points[i].measured - 1);
        }
    }
    qsort(errors, count, sizeof *errors, compare_numbers);
    return count;
}

static void print_points(void) {
    for (int k = 0; k < KINDS; k++) {
        double errors[POINTS];
        const uint32_t count = errors_of((kind)k, (kind)k, errors);
        printf("%-48s %10s %10s %6s\n", kind_names[k], k == KERNEL ? "us" : "cycles", "predicted",
               "ratio");
        for (uint32_t i = 0; i < point_count; i++) {
            const point *p = &points[i];
            if (p->of == (kind)k) {
                printf("  %-46.46s %10.1f %10.1f %6.2f\n", p->label, p->measured, p->predicted,
                       p->predicted / p->measured);
            }
        }
        printf("  %u rows: median error %.1f %%, 90 of 100 within %.1f %%\n\n", count,
               count ? errors[count / 2] : 0.0, count ? errors[count * 9 / 10] : 0.0);
    }
}

// -- the picture ----------------------------------------------------------------------------------

// Two plots side by side, each of published against predicted values on logarithmic axes: cycles of
// instructions, and times of kernels. A point on the diagonal was predicted as it was published. The
// legends are below the plots: kinds of instructions, and families of kernels with marks of their own.
enum {
    WIDTH = 1120,
    TOP = 76,
    SIDE = 440,
    BOTTOM = TOP + SIDE,
    LEGEND = BOTTOM + 78,
    LEGEND_ROW = 20,
    LEGEND_ROWS = FAMILIES,
    HEIGHT = LEGEND + LEGEND_ROW * LEGEND_ROWS
};

typedef struct plot {
    const char *title, *unit;
    int left, decades;
    double low;  // both axes begin here
} plot;

static const plot plots[] = {{"instructions", "cycles", 86, 4, 10}, {"kernels", "us", 646, 3, 10}};

static const char style[] =
    ".back{fill:#ffffff}text{fill:#24292f;font:12px sans-serif}\n"
    "text.head{font:bold 15px sans-serif}.grid{stroke:#d0d7de}\n"
    ".frame{fill:none;stroke:#8c959f}.band{fill:#dde6ee}.mark{fill-opacity:0.75}\n"
    ".p0{fill:#0072b2}.p1{fill:#b08800}.p2{fill:#009e73}.p3{fill:#d55e00}\n"
    ".p4{fill:#0072b2}.p5{fill:#009e73}.p6{fill:#aa4499}.p7{fill:#b08800}.p8{fill:#24292f}\n"
    "@media (prefers-color-scheme:dark){.back{fill:#0d1117}text{fill:#e6edf3}\n"
    ".grid{stroke:#30363d}.frame{stroke:#6e7681}.band{fill:#22303c}\n"
    ".p0{fill:#56b4e9}.p1{fill:#f0e442}.p2{fill:#2fd6a5}.p3{fill:#ff9448}\n"
    ".p4{fill:#56b4e9}.p5{fill:#2fd6a5}.p6{fill:#e58fd0}.p7{fill:#f0e442}.p8{fill:#e6edf3}}\n";

// Paths around a point: of all instructions, then of each family of kernels.
static const char *const marks[1 + FAMILIES] = {"m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
                                                "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
                                                "m-4.5-4.5h9v9h-9z",
                                                "m0-6.5l6.5 6.5-6.5 6.5-6.5-6.5z",
                                                "m0-6l6 10.5h-12z",
                                                "m0 6l6-10.5h-12z",
                                                "m-6-2h4v-4h4v4h4v4h-4v4h-4v-4h-4z"};

static const plot *plot_of(kind of) {
    return &plots[of == KERNEL];
}

// Where a value is along an axis.
static double along(const plot *p, double value) {
    return SIDE * log10(value / p->low) / p->decades;
}

static const char *number_text(double value, char text[16]) {
    snprintf(text, 16, value < 1000 ? "%.0f" : "%.0f,000", value < 1000 ? value : value / 1000);
    return text;
}

static void svg_escaped(FILE *file, const char *text) {
    for (const char *c = text; *c; c++) {
        if (*c == '>' || *c == '<' || *c == '&') {
            fputs(*c == '>' ? "&gt;" : *c == '<' ? "&lt;" : "&amp;", file);
        } else {
            fputc(*c, file);
        }
    }
}

// The band of 10 %, named below it, and the diagonal. The rest of the band is clipped.
static void svg_band(FILE *file, const plot *p) {
    double up = along(p, 1.1 * p->low), down = along(p, 0.9 * p->low);
    fprintf(
        file,
        "<clipPath id=\"%s\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n"
        "<g clip-path=\"url(#%s)\"><path d=\"M%d %.1f l%d %d v%.1f l%d %d z\" class=\"band\"/>"
        "<path d=\"M%d %d l%d %d\" class=\"frame\"/></g>\n"
        "<text transform=\"translate(%d %d) rotate(-45)\" text-anchor=\"middle\">shaded: within "
        "10 %%</text>\n",
        p->unit, p->left, TOP, SIDE, SIDE, p->unit, p->left, BOTTOM - up, SIDE, -SIDE, up - down,
        -SIDE, SIDE, p->left, BOTTOM, SIDE, -SIDE, p->left + SIDE / 2 + 20, BOTTOM - SIDE / 2 + 20);
}

static void svg_axes(FILE *file, const plot *p) {
    double at = p->low, errors[POINTS];
    const bool is_kernels = p == plot_of(KERNEL);
    const uint32_t count =
        errors_of(is_kernels ? KERNEL : A2A3_VECTOR, is_kernels ? KERNEL : A5_VECTOR, errors);
    for (int i = 0; i <= p->decades; i++, at *= 10) {
        char text[16];
        const char *number = number_text(at, text);
        double x = p->left + along(p, at), y = BOTTOM - along(p, at);
        const char *unit = i ? "" : p->unit;
        fprintf(file,
                "<path d=\"M%.1f %d v%d M%d %.1f h%d\" class=\"grid\"/>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s %s</text>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s %s</text>\n",
                x, TOP, SIDE, p->left, y, SIDE, x, BOTTOM + 20, number, unit, p->left - 8, y + 4,
                number, unit);
    }
    fprintf(file,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n"
            "<text class=\"head\" x=\"%d\" y=\"%d\">%u published %s: median error %.1f %%, "
            "largest %.1f %%</text>\n"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">published, %s (log scale)</text>\n"
            "<text transform=\"translate(%d %d) rotate(-90)\" text-anchor=\"middle\">predicted, %s "
            "(log scale)</text>\n",
            p->left, TOP, SIDE, SIDE, p->left, TOP - 12, count, p->title, errors[count / 2],
            errors[count - 1], p->left + SIDE / 2, BOTTOM + 44, p->unit, p->left - 66,
            TOP + SIDE / 2, p->unit);
}

static void svg_mark(FILE *file, double x, double y, kind of, uint32_t family) {
    const bool is_kernel = of == KERNEL;
    fprintf(file, "<path d=\"M%.1f %.1f%s\" class=\"mark p%u\">", x, y,
            marks[is_kernel ? 1 + family : 0], (unsigned)of + (is_kernel ? family : 0));
}

static void svg_point(FILE *file, const point *at) {
    const plot *p = plot_of(at->of);
    svg_mark(file, p->left + along(p, at->measured), BOTTOM - along(p, at->predicted), at->of,
             at->family);
    fputs("<title>", file);
    svg_escaped(file, at->label);
    fprintf(file, ": %.1f, predicted %.1f</title></path>\n", at->measured, at->predicted);
}

// A line of a legend: the mark, its name, and how many points there are with which largest error.
static void svg_entry(FILE *file, uint32_t row, kind of, uint32_t family, const char *name) {
    const int x = plot_of(of)->left + 12, y = LEGEND + LEGEND_ROW * (int)row;
    double largest = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < point_count; i++) {
        if (points[i].of == of && points[i].family == family) {
            largest = fmax(largest, 100 * fabs(points[i].predicted / points[i].measured - 1));
            count++;
        }
    }
    svg_mark(file, x, y - 4, of, family);
    fprintf(file,
            "</path><text x=\"%d\" y=\"%d\">%s</text>"
            "<text x=\"%d\" y=\"%d\">%u points, largest error %.1f %%</text>\n",
            x + 16, y, name, x + 190, y, count, largest);
}

static void svg_legend(FILE *file) {
    for (uint32_t i = 0; i < KERNEL; i++) {
        svg_entry(file, i, (kind)i, 0, kind_names[i]);
    }
    for (uint32_t i = 0; i < FAMILIES; i++) {
        svg_entry(file, i, KERNEL, i, families[i].words);
    }
}

static void write_picture(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) {
        command_fail("%s cannot be written", path);
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" role=\"img\">\n<title>Published and predicted</title>\n<style>\n%s</style>\n"
            "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n"
            "<text class=\"head\" x=\"%d\" y=\"32\">Published and predicted on Ascend 910B and "
            "950PR</text>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT, style, WIDTH, HEIGHT, plots[0].left);
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        svg_band(file, &plots[i]);
        svg_axes(file, &plots[i]);
    }
    for (uint32_t i = 0; i < point_count; i++) {
        svg_point(file, &points[i]);
    }
    svg_legend(file);
    fputs("</svg>\n", file);
    bool is_good = !ferror(file);
    if (fclose(file) != 0 || !is_good) {
        command_fail("%s cannot be written", path);
    }
}

int main(int argc, char **argv) {
    static const char help[] =
        "usage: predict [--instructions FILE | --rows FILE | --control FILE | --svg FILE]\n"
        "Predicts published measurements of Ascend 910B and 950PR.\n\n"
        "  --instructions FILE   CSV rows of instructions: appends predicted_cycles\n"
        "  --rows FILE           CSV rows of kernels: appends predicted_us and shares of pipes\n"
        "  --control FILE        CSV rows of launches and scheduling: appends predicted\n"
        "  --svg FILE            writes a picture of the rows that come with the program\n";
    const char *instructions = NULL, *rows = NULL, *control = NULL, *svg = NULL;
    const command_text texts[] = {{"--instructions", &instructions},
                                  {"--rows", &rows},
                                  {"--control", &control},
                                  {"--svg", &svg}};
    command_parse_texts(argc, argv, help, NULL, 0, texts, sizeof texts / sizeof *texts);
    if ((instructions != NULL) + (rows != NULL) + (control != NULL) + (svg != NULL) > 1) {
        command_fail("--instructions, --rows, --control and --svg go one at a time");
    }
    if (instructions) {
        predict_file(instructions, INSTRUCTION_FILE);
    } else if (rows) {
        predict_file(rows, KERNEL_FILE);
    } else if (control) {
        predict_file(control, CONTROL_FILE);
    } else {
        gather_points();
        print_points();
        if (svg) {
            write_picture(svg);
        }
    }
    command_flush();
    return 0;
}
