// Exports and reports as facts (support/facts.h): pictures of spans of one's own, titles of any text, and what is
// refused, of spans, runs, groups of ranks, transient tensors and reports.

#include "facts.h"
#include "written.h"

enum { SPANS = 8, ARROWS = 4, NAMES = 3 };

static const char *const formats[] = {"perfetto", "chrome", "svg",   "csv", "table",
                                      "usage",    "edges",  "dot",   NULL};
static fixture *made;  // a run with records of edges
static ptowsp_span spans[SPANS];
static ptowsp_span_arrow arrows[ARROWS];
static const char *names[NAMES], *lane_names[2], *text = written.text;
static ptowsp_span_set set;
static ptowsp_export_options options;
static ptowsp_export_format format;
static ptowsp_report_format report;
static ptowsp_what_if what_if;
static ptowsp_run_group group;
static uint64_t room;
static bool has_set, has_spans, has_names, has_lane_names, has_arrows, has_label, has_output,
    has_runs, has_second, is_recorded;

static void begin(void) {
    memset(spans, 0, sizeof spans);
    memset(arrows, 0, sizeof arrows);
    names[0] = "decode", names[1] = "merge", names[2] = "";
    lane_names[0] = "cores", lane_names[1] = "links";
    set = (ptowsp_span_set){.name_count = NAMES};
    options = (ptowsp_export_options){0};
    format = PTOWSP_EXPORT_SVG;
    report = PTOWSP_REPORT_HTML;
    what_if = (ptowsp_what_if){.kernel = 1, .percent = 50};
    group = (ptowsp_run_group){.rank_count = 2};
    room = WRITTEN_MAX;
    has_set = has_spans = has_names = has_output = has_runs = is_recorded = true;
    has_lane_names = has_arrows = has_label = has_second = false;
}

static void label(void *user, uint64_t i, ptowsp_output output) {
    char number[24];
    (void)user;
    output.write(output.user, number,
                 (size_t)snprintf(number, sizeof number, "number=%d", (int)i));
}

static ptowsp_output output(void) {
    const ptowsp_output none = {NULL, NULL}, given = written_within(room);
    return has_output ? given : none;
}

static ptowsp_status draw(void) {
    set.spans = has_spans ? spans : NULL;
    set.names = has_names ? names : NULL;
    set.lane_names = has_lane_names ? lane_names : NULL;
    set.arrows = has_arrows ? arrows : NULL;
    set.label = has_label ? label : NULL;
    return ptowsp_spans_export(made->context, has_set ? &set : NULL, format, &options, output());
}

static ptowsp_run *run(void) {
    static ptowsp_run *without;
    ptowsp_run_destroy(without);
    without = is_recorded ? NULL : test_run_of(made->context, made->program);
    return is_recorded ? made->run : without;
}
