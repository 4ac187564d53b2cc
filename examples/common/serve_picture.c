// The picture: a row for each policy, twice.
//
//      title, load and machine, conclusion
//                     time to first token     time per token
//                     median     p99          median     p99          of all requests
//      policy         #####      ######       ###        ####           bars, values, differences
//      policy         ####       #######      ####       #####
//
//                     waiting    KV cache     first      token        over time
//      policy         /\__/\     _/\__        _/\__      _/\__          lines
//      policy         /\__/\     _/\__        _/\__      _/\__
//      note: tokens a step, plans
//
// Bars show which policy is better and by how much. Lines show when: each cell has the first policy's line
// in grey behind its own. Cells of a column share their axes. Latencies vary over decades, so their axes
// are logarithmic.
//
// Colours are those of Okabe and Ito 2008, which people who do not see all colours can tell apart.

#include "serve_report.h"

#include "print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 960,
    MARGIN = 20,
    LEFT = 222,   // of the first column of cells
    PITCH = 186,  // of columns
    PLOT_WIDTH = 146,
    PLOT_HEIGHT = 44,
    ROW = 60,      // of cells
    BAR_ROW = 44,  // of bars
    BAR_HEIGHT = 12,
    TITLES_HEIGHT = 54,  // the title of a part, and two lines for each column
    PART_GAP = 24,
    HEAD_HEIGHT = 74,
    SENTENCE_ROW = 18,
    COLUMNS = 4,
    POINTS = 64,  // of the queue and of KV, at most
    WINDOWS = 48  // of latencies
};

typedef struct picture_line {
    double x[SERVE_INTERVALS], y[SERVE_INTERVALS];  // seconds, value; y below 0: a gap
    uint32_t count;
} picture_line;

// Columns of lines and of bars: two lines of title.
typedef enum picture_kind {
    PICTURE_WAITING,
    PICTURE_KV,
    PICTURE_FIRST,
    PICTURE_TOKEN
} picture_kind;

static const char *const picture_panels[COLUMNS][2] = {
    {"requests that wait", "count"},
    {"KV cache in use", "% of its pages"},
    {"time to first token", "median, s, log scale"},
    {"time per token", "median, ms, log scale"},
};

static const struct {
    const char *title[2], *unit;
    serve_metric metric;
    int quantile;
    double scale;
} picture_bars[COLUMNS] = {
    {{"time to first token", "median"}, "s", SERVE_FIRST, SERVE_P50, 1.0},
    {{"time to first token", "99th percentile"}, "s", SERVE_FIRST, SERVE_P99, 1.0},
    {{"time per token", "median"}, "ms", SERVE_TOKEN, SERVE_P50, 1e3},
    {{"time per token", "99th percentile"}, "ms", SERVE_TOKEN, SERVE_P99, 1e3},
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
    serve_metric metric = kind == PICTURE_TOKEN ? SERVE_TOKEN : SERVE_FIRST;
    uint64_t window_ns = load->requests[load->count - 1].arrival_ns / WINDOWS + 1;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < WINDOWS; i++) {
        uint32_t end = begin;
        while (end < load->count && load->requests[end].arrival_ns < (i + 1) * window_ns) {
            end++;
        }
        serve_summary s = serve_summarize(load, q, metric, SERVE_CLASS_ALL, begin, end);
        line->x[i] = ((double)i + 0.5) * (double)window_ns * 1e-9;
        line->y[i] = s.count == 0 ? -1.0 : s.p50 * (metric == SERVE_TOKEN ? 1e3 : 1.0);
        begin = end;
    }
    line->count = WINDOWS;
}

// The line of a policy in a column of cells.
static void picture_line_make(const serve_report *r, uint32_t policy, picture_kind kind,
                              picture_line *line) {
    line->count = 0;
    if (kind == PICTURE_WAITING || kind == PICTURE_KV) {
        picture_intervals(&r->results[policy], kind, line);
    } else {
        picture_latencies(&r->load, &r->results[policy], kind, line);
    }
}

// The vertical axis of a column, for all its lines.
static picture_axis picture_vertical(const picture_line *lines, uint32_t count, picture_kind kind) {
    picture_axis a = {0.0, 0.0, PLOT_HEIGHT, kind >= PICTURE_FIRST};
    double low = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < lines[i].count; k++) {
            double y = lines[i].y[k];
            a.high = fmax(a.high, y);
            low = y > 0.0 ? fmin(low, y) : low;
        }
    }
    if (a.is_log) {
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

// -- text -----------------------------------------------------------------------------------------

// Dark and light are classes, which viewers that know no schemes draw in light.
static const char picture_style[] =
    "<style>\n"
    ".back{fill:#ffffff}.text{fill:#24292f;font:12px sans-serif}\n"
    ".small{fill:#57606a;font:11px sans-serif}.title{font:bold 15px sans-serif}\n"
    ".part{font:bold 13px sans-serif}.strong{font-weight:bold}\n"
    ".grid{stroke:#d0d7de;stroke-width:1}.frame{fill:none;stroke:#8c959f}\n"
    ".line{fill:none;stroke:#0072b2;stroke-width:1.6;stroke-linejoin:round}\n"
    ".first{stroke:#b1b8c0}.bar{fill:#0072b2}.lowest{fill:#009e73}\n"
    "@media (prefers-color-scheme:dark){\n"
    ".back{fill:#0d1117}.text{fill:#e6edf3}.small{fill:#9da7b1}\n"
    ".grid{stroke:#30363d}.frame{stroke:#6e7681}\n"
    ".line{stroke:#56b4e9}.first{stroke:#626a73}.bar{fill:#56b4e9}.lowest{fill:#2fd6a5}\n"
    "}\n</style>\n";

static void picture_text(FILE *to, const char *look, double x, double y, const char *text) {
    fprintf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", look, x, y);
    print_xml(to, text);
    fputs("</text>\n", to);
}

// Where the bars begin: below the conclusion.
static double picture_bars_top(const serve_report *r) {
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
    for (uint32_t i = 0; (sentence = serve_report_conclusion(r, i)) != NULL; i++) {
        picture_text(to, "text", MARGIN, HEAD_HEIGHT - 4 + i * (double)SENTENCE_ROW, sentence);
    }
}

// A policy at the left of its row: its order, and the rest of its name below.
static void picture_policy(const serve_report *r, uint32_t policy, double y, FILE *to) {
    const char *name = r->policies[policy].name, *rest = strstr(name, ", ");
    char order[sizeof r->policies[policy].name];
    snprintf(order, sizeof order, "%.*s", (int)(rest ? (size_t)(rest - name) : strlen(name)), name);
    picture_text(to, "text strong", MARGIN, y, order);
    picture_text(to, "small", MARGIN, y + 16.0, rest ? rest + 2 : "");
}

static double picture_column(uint32_t column) {
    return LEFT + (double)column * PITCH;
}

// -- bars -----------------------------------------------------------------------------------------

// A latency of a policy as a bar, in words below it, and beside the first policy's.
static void picture_bar(const serve_report *r, uint32_t policy, uint32_t column, double high,
                        double y, FILE *to) {
    const serve_metric metric = picture_bars[column].metric;
    const int quantile = picture_bars[column].quantile;
    const double value = serve_report_latency(r, policy, metric, SERVE_CLASS_ALL, quantile);
    const double first = serve_report_latency(r, 0, metric, SERVE_CLASS_ALL, quantile);
    const double shown = value * picture_bars[column].scale, x = picture_column(column);
    const bool is_best = serve_report_best(r, metric, SERVE_CLASS_ALL, quantile) == policy;
    fprintf(to,
            "<rect class=\"bar%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n"
            "<text class=\"text%s\" x=\"%.1f\" y=\"%.1f\">%s %s",
            is_best ? " lowest" : "", x, y - 10.0, high > 0.0 ? value / high * PLOT_WIDTH : 0.0,
            BAR_HEIGHT, is_best ? " strong" : "", x, y + 16.0,
            print_fixed(shown, shown < 1.0 ? 3 : 2), picture_bars[column].unit);
    if (policy > 0 && first > 0.0) {
        const double percent = (value / first - 1.0) * 100.0;
        fprintf(to, ", %s %% %s", print_fixed(fabs(percent), 1), percent < 0.0 ? "less" : "more");
    }
    fputs("</text>\n", to);
}

static void picture_bars_draw(const serve_report *r, double top, FILE *to) {
    picture_text(to, "text part", MARGIN, top + 16.0,
                 r->policy_count > 1 ? "All requests: less is better; the lowest is green; "
                                       "differences are to the first row"
                                     : "All requests");
    top += TITLES_HEIGHT;
    for (uint32_t column = 0; column < COLUMNS; column++) {
        double high = 0.0;
        for (uint32_t i = 0; i < r->policy_count; i++) {
            high = fmax(high, serve_report_latency(r, i, picture_bars[column].metric,
                                                   SERVE_CLASS_ALL, picture_bars[column].quantile));
        }
        picture_text(to, "text", picture_column(column), top - 16.0, picture_bars[column].title[0]);
        picture_text(to, "small", picture_column(column), top - 2.0, picture_bars[column].title[1]);
        for (uint32_t i = 0; i < r->policy_count; i++) {
            picture_bar(r, i, column, high, top + 20.0 + i * (double)BAR_ROW, to);
        }
    }
    for (uint32_t i = 0; i < r->policy_count; i++) {
        picture_policy(r, i, top + 20.0 + i * (double)BAR_ROW, to);
    }
}

// -- lines over time ------------------------------------------------------------------------------

// A number of an axis, short.
static const char *picture_number(double value) {
    return value >= 1000.0 ? print_grouped((uint64_t)(value + 0.5))
                           : print_fixed(value, value >= 1.0 || value == 0.0 ? 0
                                                : value > 0.0999             ? 1
                                                : value > 0.00999            ? 2
                                                                             : 3);
}

// A horizontal line; values at the ends of the axis are written.
static void picture_level(FILE *to, const picture_axis *vertical, double left, double bottom,
                          double value) {
    const double y = bottom - picture_at(vertical, value);
    fprintf(to, "<path class=\"grid\" d=\"M%.1f %.1fh%d\"/>\n", left, y, PLOT_WIDTH);
    if (value <= vertical->low * 1.0001 || value >= vertical->high * 0.9999) {
        fprintf(to, "<text class=\"small\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                left - 4.0, y + 4.0, picture_number(value));
    }
}

static void picture_grid(const picture_axis *time, const picture_axis *vertical, double left,
                         double bottom, bool has_times, FILE *to) {
    picture_level(to, vertical, left, bottom, vertical->low);
    picture_level(to, vertical, left, bottom, vertical->high);
    if (vertical->is_log) {
        double value = pow(10.0, floor(log10(vertical->low) + 1e-9) + 1.0);
        for (; value < vertical->high * 0.9999; value *= 10.0) {
            picture_level(to, vertical, left, bottom, value);
        }
    }
    // Minutes and hours where they are of use: steps are round in the unit that is shown.
    double unit = time->high > 4.0 * 3600.0 ? 3600.0 : time->high > 600.0 ? 60.0 : 1.0;
    double step = picture_round(time->high / unit, 3.0) * unit;
    for (int i = 0; i * step <= time->high * 1.0001; i++) {
        double x = left + picture_at(time, i * step);
        fprintf(to, "<path class=\"grid\" d=\"M%.1f %.1fv-%d\"/>\n", x, bottom, PLOT_HEIGHT);
        if (has_times) {
            fprintf(to,
                    "<text class=\"small\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s%s"
                    "</text>\n",
                    x, bottom + 16.0, print_fixed(i * step / unit, step / unit < 1.0 ? 1 : 0),
                    unit > 60.0  ? " h"
                    : unit > 1.0 ? " min"
                                 : " s");
        }
    }
}

static void picture_path(const picture_line *line, const char *look, const picture_axis *time,
                         const picture_axis *vertical, double left, double bottom, FILE *to) {
    bool is_drawing = false;
    fprintf(to, "<path class=\"%s\" d=\"", look);
    for (uint32_t i = 0; i < line->count; i++) {
        if (line->y[i] < 0.0) {
            is_drawing = false;
            continue;
        }
        double x = left + picture_at(time, line->x[i]),
               y = bottom - picture_at(vertical, line->y[i]);
        // A point without neighbours is a short line.
        fprintf(to, is_drawing ? "L%.1f %.1f" : "M%.1f %.1fh1", x, y);
        is_drawing = true;
    }
    fputs("\"/>\n", to);
}

// A column of cells, all policies one below another.
static void picture_cells(const serve_report *r, picture_kind kind, const picture_axis *time,
                          double top, FILE *to) {
    picture_line *lines = (picture_line *)malloc(r->policy_count * sizeof *lines);
    const double left = picture_column(kind);
    if (!lines) {
        return;
    }
    for (uint32_t i = 0; i < r->policy_count; i++) {
        picture_line_make(r, i, kind, &lines[i]);
    }
    const picture_axis vertical = picture_vertical(lines, r->policy_count, kind);
    fputs("<g>\n", to);
    picture_text(to, "text", left, top - 16.0, picture_panels[kind][0]);
    picture_text(to, "small", left, top - 2.0, picture_panels[kind][1]);
    for (uint32_t i = 0; i < r->policy_count; i++) {
        const double above = top + 8.0 + i * (double)ROW, bottom = above + PLOT_HEIGHT;
        picture_grid(time, &vertical, left, bottom, i + 1 == r->policy_count, to);
        fprintf(to, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n",
                left, above, PLOT_WIDTH, PLOT_HEIGHT);
        if (i > 0) {
            picture_path(&lines[0], "line first", time, &vertical, left, bottom, to);
        }
        picture_path(&lines[i], "line", time, &vertical, left, bottom, to);
    }
    fputs("</g>\n", to);
    free(lines);
}

static void picture_cells_draw(const serve_report *r, double top, FILE *to) {
    picture_axis time = {0.0, 1e-9, PLOT_WIDTH, false};
    for (uint32_t i = 0; i < r->policy_count; i++) {
        time.high = fmax(time.high, (double)r->results[i].end_ns * 1e-9);
    }
    picture_text(to, "text part", MARGIN, top + 16.0,
                 r->policy_count > 1 ? "Over time; grey is the first row again" : "Over time");
    top += TITLES_HEIGHT;
    for (uint32_t i = 0; i < r->policy_count; i++) {
        picture_policy(r, i, top + 28.0 + i * (double)ROW, to);
    }
    for (int kind = 0; kind < COLUMNS; kind++) {
        picture_cells(r, (picture_kind)kind, &time, top, to);
    }
}

void serve_report_svg(const serve_report *r, FILE *to) {
    const double bars = picture_bars_top(r);
    const double cells = bars + TITLES_HEIGHT + r->policy_count * (double)BAR_ROW + PART_GAP;
    const int height = (int)(cells + TITLES_HEIGHT + r->policy_count * (double)ROW) + 2 * PART_GAP;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>Serving simulation</title>\n",
            WIDTH, height, WIDTH, height);
    fputs(picture_style, to);
    fprintf(to, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, height);
    picture_head(r, to);
    picture_bars_draw(r, bars, to);
    picture_cells_draw(r, cells, to);
    picture_text(
        to, "small", MARGIN, height - 12.0,
        "Tokens a step: the most query tokens of one step, of decoding and of prompts. Plan: "
        "how attention is divided among lanes, into equal chunks or into equal loads.");
    fputs("</svg>\n", to);
}
