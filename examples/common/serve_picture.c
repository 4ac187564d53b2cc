// The picture: panels one below another over one time axis, a line for each policy.
//
//      title, load and machine, conclusion, legend
//      requests that wait
//      KV cache in use
//      time to first token, p50 and p99, and time per token, of requests by their arrival
//
// Latencies move over decades, and policies differ by percents. So where there are several, latencies
// are multiples of the first policy's.
//
// Colours are those of Okabe and Ito 2008, which people who do not see all colours can tell apart;
// lines differ in their dashes, too.

#include "serve_report.h"

#include "print.h"

#include <math.h>
#include <stdlib.h>

enum {
    WIDTH = 960,
    LEFT = 76,
    RIGHT = 36,
    PLOT_WIDTH = WIDTH - LEFT - RIGHT,
    PLOT_HEIGHT = 104,
    PANEL_HEIGHT = PLOT_HEIGHT + 40,
    HEAD_HEIGHT = 74,
    LEGEND_ROW = 20,
    LEGEND_COLUMNS = 3,
    SENTENCE_ROW = 18,
    FACTOR_MAX = 10,  // of latencies, drawn
    POINTS = 128,     // of the queue and of KV, at most
    WINDOWS = 64      // of latencies
};

typedef struct picture_line {
    double x[SERVE_INTERVALS], y[SERVE_INTERVALS];  // seconds, value; y below 0: a gap
    uint32_t count;
} picture_line;

typedef enum picture_kind {
    PICTURE_WAITING,
    PICTURE_KV,
    PICTURE_FIRST_P50,
    PICTURE_FIRST_P99,
    PICTURE_TOKEN_P50,
    PICTURE_TOKEN_P99,
    PICTURE_COUNT
} picture_kind;

static const struct {
    const char *title, *unit;
    bool is_latency;
} picture_panels[PICTURE_COUNT] = {
    {"requests that wait", "", false},       {"KV cache in use, %", "", false},
    {"time to first token, p50", "s", true}, {"time to first token, p99", "s", true},
    {"time per token, p50", "ms", true},     {"time per token, p99", "ms", true},
};

// An axis from low to high, in pixels from the bottom or the left.
typedef struct picture_axis {
    double low, high, pixels;
    bool is_log;
} picture_axis;

static double picture_at(const picture_axis *a, double value) {
    if (a->is_log) {
        value = value > a->low ? value : a->low;
        return log(value / a->low) / log(a->high / a->low) * a->pixels;
    }
    return (value - a->low) / (a->high - a->low) * a->pixels;
}

// The round number, 1, 2 or 5 times a power of ten, that makes up to `count` steps to high.
static double picture_round(double high, double count) {
    double power = pow(10.0, floor(log10(high / count)));
    double left = high / count / power;
    return power * (left <= 1.0 ? 1.0 : left <= 2.0 ? 2.0 : left <= 5.0 ? 5.0 : 10.0);
}

// -- lines ----------------------------------------------------------------------------------------

static void picture_intervals(const serve_result *q, picture_kind kind, picture_line *line) {
    uint64_t used = (q->end_ns + q->interval_ns - 1) / q->interval_ns;
    uint64_t group = (used + POINTS - 1) / POINTS;
    for (uint64_t i = 0; i < used; i += group) {
        uint64_t end = i + group < used ? i + group : used;
        double sum = 0.0, ns = (double)((end - i) * q->interval_ns);
        for (uint64_t k = i; k < end; k++) {
            const serve_interval *v = &q->intervals[k];
            sum += kind == PICTURE_WAITING ? v->waiting_ns
                                           : v->page_ns * 100.0 / (double)(q->pages ? q->pages : 1);
        }
        line->x[line->count] = (double)(i + end) * 0.5 * (double)q->interval_ns * 1e-9;
        line->y[line->count++] = sum / ns;
    }
}

static void picture_latencies(const serve_load *load, const serve_result *q, picture_kind kind,
                              picture_line *line) {
    serve_metric metric = kind >= PICTURE_TOKEN_P50 ? SERVE_TOKEN : SERVE_FIRST;
    uint64_t window_ns = load->requests[load->count - 1].arrival_ns / WINDOWS + 1;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < WINDOWS; i++) {
        uint32_t end = begin;
        while (end < load->count && load->requests[end].arrival_ns < (i + 1) * window_ns) {
            end++;
        }
        serve_summary s = serve_summarize(load, q, metric, SERVE_CLASS_ALL, begin, end);
        double value = kind == PICTURE_FIRST_P50 || kind == PICTURE_TOKEN_P50 ? s.p50 : s.p99;
        line->x[i] = ((double)i + 0.5) * (double)window_ns * 1e-9;
        line->y[i] = s.count == 0 ? -1.0 : value * (metric == SERVE_TOKEN ? 1e3 : 1.0);
        begin = end;
    }
    line->count = WINDOWS;
}

// Lines as multiples of the first one.
static void picture_divide(picture_line *lines, uint32_t count) {
    for (uint32_t i = count; i-- > 0;) {
        for (uint32_t k = 0; k < lines[i].count; k++) {
            double *y = &lines[i].y[k];
            const double by = lines[0].y[k];
            *y = by > 0.0 && *y > 0.0 ? fmin(fmax(*y / by, 1.0 / FACTOR_MAX), FACTOR_MAX) : -1.0;
        }
    }
}

// The vertical axis of a panel, for all its lines.
static picture_axis picture_vertical(const picture_line *lines, uint32_t count, picture_kind kind) {
    picture_axis a = {0.0, 0.0, PLOT_HEIGHT, picture_panels[kind].is_latency};
    double low = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < lines[i].count; k++) {
            double y = lines[i].y[k];
            a.high = fmax(a.high, y);
            low = y > 0.0 ? fmin(low, y) : low;
        }
    }
    if (a.is_log && count > 1) {
        a.high = picture_round(fmax(2.0, fmax(a.high, 1.0 / low)), 1.0);
        a.low = 1.0 / a.high;
    } else if (a.is_log) {
        // To 1, 2 or 5 times a power of ten, and at least a decade.
        a.low = a.high > 0.0 ? 1.0 / picture_round(1.0 / low, 1.0) : 1.0;
        a.high = a.high > 0.0 ? picture_round(a.high, 1.0) : 10.0;
        a.high = fmax(a.high, a.low * 10.0);
    } else {
        a.high = fmax(a.high, kind == PICTURE_KV ? 10.0 : 1.0);
        double step = picture_round(a.high, 5.0);
        a.high = ceil(a.high / step - 1e-9) * step;
    }
    return a;
}

// -- drawing --------------------------------------------------------------------------------------

// Dark and light are classes, which viewers that know no schemes draw in light.
static void picture_style(FILE *to) {
    static const char *const light[] = {"#0072b2", "#d55e00", "#009e73", "#aa4499",
                                        "#000000", "#56b4e9", "#b08800", "#888888"};
    static const char *const dark[] = {"#56b4e9", "#ff9448", "#2fd6a5", "#e58fd0",
                                       "#ffffff", "#0f8fdf", "#f0e442", "#9a9a9a"};
    static const char *const dashes[] = {"none", "7 3", "2 3", "10 3 2 3",
                                         "none", "7 3", "2 3", "10 3 2 3"};
    fputs("<style>\n"
          ".back{fill:#ffffff}.text{fill:#24292f;font:12px sans-serif}\n"
          ".small{fill:#57606a;font:11px sans-serif}.title{font:bold 15px sans-serif}\n"
          ".grid{stroke:#d0d7de;stroke-width:1}.frame{fill:none;stroke:#8c959f}\n"
          ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}\n",
          to);
    for (int i = 0; i < SERVE_POLICIES_MAX; i++) {
        fprintf(to, ".p%d{stroke:%s;stroke-dasharray:%s}\n", i, light[i], dashes[i]);
    }
    fputs("@media (prefers-color-scheme:dark){\n"
          ".back{fill:#0d1117}.text{fill:#e6edf3}.small{fill:#9da7b1}\n"
          ".grid{stroke:#30363d}.frame{stroke:#6e7681}\n",
          to);
    for (int i = 0; i < SERVE_POLICIES_MAX; i++) {
        fprintf(to, ".p%d{stroke:%s}\n", i, dark[i]);
    }
    fputs("}\n</style>\n", to);
}

// Where the legend begins: below the conclusion.
static double picture_legend(const serve_report *r) {
    uint32_t sentences = 0;
    while (serve_report_conclusion(r, sentences)) {
        sentences++;
    }
    return HEAD_HEIGHT + sentences * (double)SENTENCE_ROW;
}

static void picture_head(const serve_report *r, FILE *to) {
    const serve_setup *s = &r->setup;
    fputs("<text class=\"text title\" x=\"20\" y=\"28\">Serving simulation: ", to);
    print_xml(to, r->load.source);
    fprintf(to, "</text>\n<text class=\"small\" x=\"20\" y=\"48\">%s requests; ",
            print_grouped(r->load.count));
    print_xml(to, s->model.name);
    fprintf(to, " on %u x ", (unsigned)s->devices);
    print_xml(to, s->machine.name);
    fprintf(to, "; a KV cache of %s tokens</text>\n", print_grouped(r->results[0].pages * s->page));
    const char *sentence;
    uint32_t sentences = 0;
    for (; (sentence = serve_report_conclusion(r, sentences)) != NULL; sentences++) {
        fprintf(to, "<text class=\"text\" x=\"20\" y=\"%d\">",
                HEAD_HEIGHT + (int)sentences * SENTENCE_ROW - 4);
        print_xml(to, sentence);
        fputs("</text>\n", to);
    }
    for (uint32_t i = 0; i < r->policy_count; i++) {
        double x = 20.0 + i % LEGEND_COLUMNS * ((WIDTH - 40.0) / LEGEND_COLUMNS);
        double y = picture_legend(r) + i / LEGEND_COLUMNS * (double)LEGEND_ROW;
        fprintf(to,
                "<path class=\"line p%u\" d=\"M%.1f %.1fh40\"/>"
                "<text class=\"text\" x=\"%.1f\" y=\"%.1f\">",
                (unsigned)i, x, y - 4.0, x + 48.0, y);
        print_xml(to, r->policies[i].name);
        fputs("</text>\n", to);
    }
}

// A number of an axis, short.
static const char *picture_number(double value) {
    return value >= 1000.0 ? print_grouped((uint64_t)(value + 0.5))
                           : print_fixed(value, value >= 1.0 || value == 0.0 ? 0
                                                : value > 0.0999             ? 1
                                                : value > 0.00999            ? 2
                                                                             : 3);
}

static void picture_horizontal_line(FILE *to, double bottom, double y, double value) {
    fprintf(to,
            "<path class=\"grid\" d=\"M%d %.1fh%d\"/>"
            "<text class=\"small\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n",
            LEFT, bottom - y, PLOT_WIDTH, LEFT - 6, bottom - y + 4.0, picture_number(value));
}

static void picture_grid(const picture_axis *time, const picture_axis *vertical, double bottom,
                         bool has_labels, FILE *to) {
    if (vertical->is_log) {
        double decades = log10(vertical->high / vertical->low);
        int first = (int)floor(log10(vertical->low) + 1e-9);
        int last = (int)floor(log10(vertical->high) + 1e-9), every = decades > 5.5 ? 2 : 1;
        for (int power = first; power <= last; power += every) {
            static const double between[] = {1.0, 2.0, 5.0};
            for (int k = 0; k < (decades < 2.5 ? 3 : 1); k++) {
                double value = pow(10.0, power) * between[k];
                if (value >= vertical->low * 0.9999 && value <= vertical->high * 1.0001) {
                    picture_horizontal_line(to, bottom, picture_at(vertical, value), value);
                }
            }
        }
    } else {
        double step = picture_round(vertical->high, 5.0);
        for (double value = 0.0; value <= vertical->high * 1.0001; value += step) {
            picture_horizontal_line(to, bottom, picture_at(vertical, value), value);
        }
    }
    // Minutes and hours where they are of use: steps are round in the unit that is shown.
    double unit = time->high > 4.0 * 3600.0 ? 3600.0 : time->high > 600.0 ? 60.0 : 1.0;
    double step = picture_round(time->high / unit, 13.0) * unit;
    for (int i = 0; i * step <= time->high * 1.0001; i++) {
        double x = LEFT + picture_at(time, i * step);
        fprintf(to, "<path class=\"grid\" d=\"M%.1f %.1fv-%d\"/>", x, bottom, PLOT_HEIGHT);
        if (has_labels) {
            fprintf(
                to,
                "<text class=\"small\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s%s</text>", x,
                bottom + 16.0, print_fixed(i * step / unit, step / unit < 1.0 ? 1 : 0),
                unit > 60.0  ? " h"
                : unit > 1.0 ? " min"
                             : " s");
        }
        putc('\n', to);
    }
}

static void picture_path(const picture_line *line, uint32_t policy, const picture_axis *time,
                         const picture_axis *vertical, double bottom, FILE *to) {
    bool is_drawing = false;
    fprintf(to, "<path class=\"line p%u\" d=\"", (unsigned)policy);
    for (uint32_t i = 0; i < line->count; i++) {
        if (line->y[i] < 0.0) {
            is_drawing = false;
            continue;
        }
        double x = LEFT + picture_at(time, line->x[i]),
               y = bottom - picture_at(vertical, line->y[i]);
        // A point without neighbours is a short line.
        fprintf(to, is_drawing ? "L%.1f %.1f" : "M%.1f %.1fh1", x, y);
        is_drawing = true;
    }
    fputs("\"/>\n", to);
}

static void picture_panel(const serve_report *r, picture_kind kind, const picture_axis *time,
                          double top, FILE *to) {
    picture_line *lines = (picture_line *)calloc(r->policy_count, sizeof *lines);
    double bottom = top + PLOT_HEIGHT;
    if (!lines) {
        return;
    }
    for (uint32_t i = 0; i < r->policy_count; i++) {
        if (kind == PICTURE_WAITING || kind == PICTURE_KV) {
            picture_intervals(&r->results[i], kind, &lines[i]);
        } else {
            picture_latencies(&r->load, &r->results[i], kind, &lines[i]);
        }
    }
    const bool is_latency = picture_panels[kind].is_latency;
    if (is_latency && r->policy_count > 1) {
        picture_divide(lines, r->policy_count);
    }
    picture_axis vertical = picture_vertical(lines, r->policy_count, kind);
    fprintf(to, "<g>\n<text class=\"text\" x=\"%d\" y=\"%.1f\">%s", LEFT, top - 7.0,
            picture_panels[kind].title);
    if (is_latency && r->policy_count > 1) {
        fputs(", relative to ", to);
        print_xml(to, r->policies[0].name);
    } else if (is_latency) {
        fprintf(to, ", %s (logarithmic)", picture_panels[kind].unit);
    }
    fputs("</text>\n", to);
    picture_grid(time, &vertical, bottom, kind + 1 == PICTURE_COUNT, to);
    fprintf(to, "<rect class=\"frame\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n", LEFT,
            top, PLOT_WIDTH, PLOT_HEIGHT);
    for (uint32_t i = 0; i < r->policy_count; i++) {
        picture_path(&lines[i], i, time, &vertical, bottom, to);
    }
    fputs("</g>\n", to);
    free(lines);
}

void serve_report_svg(const serve_report *r, FILE *to) {
    uint32_t legend_rows = (r->policy_count + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;
    double top = picture_legend(r) + legend_rows * (double)LEGEND_ROW + 14.0;
    int height = (int)top + PICTURE_COUNT * PANEL_HEIGHT + 4;
    picture_axis time = {0.0, 1e-9, PLOT_WIDTH, false};
    for (uint32_t i = 0; i < r->policy_count; i++) {
        time.high = fmax(time.high, (double)r->results[i].end_ns * 1e-9);
    }
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>Serving simulation</title>\n",
            WIDTH, height, WIDTH, height);
    picture_style(to);
    fprintf(to, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, height);
    picture_head(r, to);
    for (int kind = 0; kind < PICTURE_COUNT; kind++) {
        picture_panel(r, (picture_kind)kind, &time, top + kind * PANEL_HEIGHT, to);
    }
    fputs("</svg>\n", to);
}
