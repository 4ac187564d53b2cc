// What exports and reports refuse, in their words; and outputs that fail: after any number of bytes an
// export ends, says after how many, and nothing is written any more.

#include "support/fixture.h"

static const char sample[] = "module m slots 2\n"
                             "axis n 3\n"
                             "tensor x i32 [4, 8] global\n"
                             "tensor mid i32 [4, 8] global transient\n"
                             "kernel w(axes 1, inout t i32 1 x 8) vector, 3 cycles, time only\n"
                             "kernel v(axes 1, inout t i32 1 x 8) vector, 2 cycles, time only\n"
                             "kernel put(axes 1, out t i32 1 x 8) vector, 2 cycles, time only\n"
                             "workload main\n"
                             "  parallel i in n\n"
                             "    task w(i) t = x at (i, 0)\n"
                             "    task put(i) t = mid at (i, 0)\n"
                             "    task v(i) t = mid at (i, 0)\n"
                             "  pipeline p\n"
                             "    channel c depth 1 latency 1\n"
                             "    process a produces c\n"
                             "      send c(1)\n"
                             "    process b consumes c\n"
                             "      consume y from c\n"
                             "        task v(y) t = x at (0, 0)\n";

static void execute(fixture *f) {
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    assert_ok(ptowsp_run_record(f->run, &record));
    test_ok(f->context, ptowsp_run_execute(f->run, &options));
}

// An output with room for `room` bytes.
typedef struct sink {
    uint64_t room, written;
    bool has_failed;
} sink;

static bool take(void *user, const void *data, size_t size) {
    sink *s = (sink *)user;
    (void)data;
    assert_false(s->has_failed);  // nothing is written after a failure
    s->has_failed = size > s->room - s->written;
    s->written += s->has_failed ? 0 : size;
    return !s->has_failed;
}

static sink all;
static const ptowsp_output good = {take, &all};

static void is_refused(fixture *f, ptowsp_status status, const char *text) {
    assert_invalid(status);
    assert_string_equal(ptowsp_context_error(f->context).text, text);
    assert_int_equal(all.written, 0);
}

TEST_F(refused__before_there_is_anything_to_export) {
    all.room = UINT64_MAX;
    program_make(f, sample, NULL, NULL);
    is_refused(f, ptowsp_run_export(f->run, PTOWSP_EXPORT_CSV, NULL, good),
               "export: the run has recorded nothing (ptowsp_run_record)");
    is_refused(f, ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, NULL, good),
               "export: no transient tensors have been placed (ptowsp_run_size_transients)");
    ptowsp_run *runs[2] = {f->run, NULL};
    ptowsp_run_group group = {0};
    char text[128];
    for (uint32_t i = 0; i < 3; i++) {
        group.rank_count = i == 0 ? 0 : i == 1 ? PTOWSP_RANK_COUNT_MAX + 1 : 1;
        group.runs = i == 2 ? NULL : runs;
        snprintf(text, sizeof text, "export: %u ranks: there are 1 to %d, each with a run",
                 (unsigned)group.rank_count, PTOWSP_RANK_COUNT_MAX);
        is_refused(f, ptowsp_run_group_export(f->context, &group, PTOWSP_EXPORT_CHROME, NULL, good),
                   text);
    }
    group.runs = runs;
    is_refused(f, ptowsp_run_group_export(f->context, &group, PTOWSP_EXPORT_CHROME, NULL, good),
               "export: rank 0 has no run that has recorded tasks");
    execute(f);
    group.rank_count = 2;
    is_refused(f, ptowsp_run_group_export(f->context, &group, PTOWSP_EXPORT_CHROME, NULL, good),
               "export: rank 1 has no run that has recorded tasks");
}

TEST_F(refused__wrong_options_and_formats_have_a_text) {
    all.room = UINT64_MAX;
    program_make(f, sample, NULL, NULL);
    execute(f);
    static const struct {
        ptowsp_export_format format;
        ptowsp_export_options options;
        const char *text;
    } cases[] = {
        {(ptowsp_export_format)99, {0}, "export: there is no format 99"},
        {PTOWSP_EXPORT_SVG, {.width = 319}, "export: a width of 319 is not in 320 to 10000"},
        {PTOWSP_EXPORT_SVG, {.width = 10001}, "export: a width of 10001 is not in 320 to 10000"},
        {PTOWSP_EXPORT_SVG,
         {.lane_max = PTOWSP_EXPORT_LANE_MAX + 1},
         NULL},  // the text has the maximum
        {PTOWSP_EXPORT_SVG, {.begin = 5, .end = 5}, "export: the window of time is empty"},
        {PTOWSP_EXPORT_CSV, {.theme = (ptowsp_theme)9}, "export: there is no theme 9"},
        {PTOWSP_EXPORT_CSV, {.fold = (ptowsp_fold)9}, "export: there is no fold 9"},
        {PTOWSP_EXPORT_CSV, {.time = (ptowsp_export_time)9}, "export: there is no time 9"},
        {PTOWSP_EXPORT_CSV,
         {.time = PTOWSP_TIME_BOTH},
         "export: two times side by side are for PERFETTO and CHROME"},
        {PTOWSP_EXPORT_SVG,
         {.time = PTOWSP_TIME_BOTH},
         "export: two times side by side are for PERFETTO and CHROME"},
        {PTOWSP_EXPORT_DOT, {.fold = (ptowsp_fold)3}, "export: there is no fold 3"},
        {PTOWSP_EXPORT_SVG, {.theme = (ptowsp_theme)7}, "export: there is no theme 7"},
        {PTOWSP_EXPORT_DOT, {.time = PTOWSP_TIME_WALL}, "export: this format has no wall clock"},
        {PTOWSP_EXPORT_USAGE_CSV,
         {.time = PTOWSP_TIME_WALL},
         "export: this format has no wall clock"},
        {PTOWSP_EXPORT_CHROME,
         {.time = PTOWSP_TIME_WALL},
         "export: the run has recorded no wall clock (has_clock)"}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char most[128];
        snprintf(most, sizeof most, "export: lane_max %d is more than %d",
                 PTOWSP_EXPORT_LANE_MAX + 1, PTOWSP_EXPORT_LANE_MAX);
        is_refused(f, ptowsp_run_export(f->run, cases[i].format, &cases[i].options, good),
                   cases[i].text ? cases[i].text : most);
    }
    const ptowsp_output none = {NULL, NULL};
    is_refused(f, ptowsp_run_export(f->run, PTOWSP_EXPORT_CSV, NULL, none),
               "export: an output without a function");

    ptowsp_transient_sizes sizes;
    assert_ok(ptowsp_run_size_transients(f->run, &sizes));
    static const struct {
        ptowsp_export_format format;
        ptowsp_export_options options;
        const char *text;
    } drawn[] = {
        {PTOWSP_EXPORT_CHROME, {0}, "export: transient tensors are drawn as SVG, CSV or TABLE"},
        {PTOWSP_EXPORT_SVG, {.theme = (ptowsp_theme)9}, "export: there is no such theme"},
        {PTOWSP_EXPORT_SVG, {.width = 100}, "export: a width is not in 320 to 10000"},
        {PTOWSP_EXPORT_SVG, {.width = 10001}, "export: a width is not in 320 to 10000"}};
    for (uint32_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++) {
        is_refused(f,
                   ptowsp_run_export_transients(f->run, drawn[i].format, &drawn[i].options, good),
                   drawn[i].text);
    }
    is_refused(f, ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, NULL, none),
               "export: an output without a function");

    static const uint32_t kernels[2] = {0, 4};
    for (uint32_t i = 0; i < 2; i++) {
        const ptowsp_what_if what_ifs[2] = {{1, 50, 0, 0}, {kernels[i], 50, 0, 0}};
        is_refused(f, ptowsp_run_report(f->run, PTOWSP_REPORT_HTML, NULL, what_ifs, 2, good),
                   "export: what if 1 is about no kernel");
    }
    is_refused(f, ptowsp_run_report(f->run, (ptowsp_report_format)99, NULL, NULL, 0, good),
               "export: there is no format 99 of reports");
}

TEST_F(refused__wrong_spans_have_a_text) {
    all.room = UINT64_MAX;
    static const char *const names[2] = {"a", "b"}, *const gaps[2] = {"a", NULL};
    static char endless[PTOWSP_NAME_MAX + 2];
    memset(endless, 'x', PTOWSP_NAME_MAX + 1);
    const char *const longs[1] = {endless};
    const ptowsp_span span = {.begin = 4, .end = 9};
    ptowsp_span_set set, first = {.spans = &span, .count = 1, .names = names, .name_count = 2};
    const ptowsp_export_format format = PTOWSP_EXPORT_CSV;
    is_refused(f, ptowsp_spans_export(f->context, NULL, format, NULL, good),
               "export: the set, its spans or its names are NULL");
    set = first;
    set.spans = NULL;
    is_refused(f, ptowsp_spans_export(f->context, &set, format, NULL, good),
               "export: the set, its spans or its names are NULL");
    set = first;
    set.names = NULL;
    is_refused(f, ptowsp_spans_export(f->context, &set, format, NULL, good),
               "export: the set, its spans or its names are NULL");
    set.names = gaps;
    is_refused(f, ptowsp_spans_export(f->context, &set, format, NULL, good),
               "export: the name of kind 1 is NULL, or too long");
    set.names = longs;
    set.name_count = 1;
    is_refused(f, ptowsp_spans_export(f->context, &set, format, NULL, good),
               "export: the name of kind 0 is NULL, or too long");
    is_refused(f, ptowsp_spans_export(f->context, &first, PTOWSP_EXPORT_EDGES, NULL, good),
               "export: there is no format 6 of spans");
    ptowsp_span wrong[3] = {span, span, span};
    wrong[0].begin = 10;
    wrong[1].kind = 2;
    wrong[2].lane = PTOWSP_LANE_COUNT_MAX;
    static const char *const texts[3] = {"export: span 0 ends before it begins",
                                         "export: span 0 is of a kind without a name",
                                         "export: span 0 is on a lane that cannot be"};
    for (uint32_t i = 0; i < 3; i++) {
        set = first;
        set.spans = &wrong[i];
        is_refused(f, ptowsp_spans_export(f->context, &set, format, NULL, good), texts[i]);
    }
}

// -- outputs that fail ----------------------------------------------------------------------------

static ptowsp_status export_as(fixture *f, uint32_t format, ptowsp_output output) {
    static const ptowsp_what_if what_ifs[1] = {{1, 50, 0, 0}};
    switch (format) {
    case PTOWSP_EXPORT_DOT + 1:
        return ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, NULL, output);
    case PTOWSP_EXPORT_DOT + 2:
        return ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_TABLE, NULL, output);
    case PTOWSP_EXPORT_DOT + 3:
        return ptowsp_run_report(f->run, PTOWSP_REPORT_HTML, NULL, what_ifs, 1, output);
    case PTOWSP_EXPORT_DOT + 4:
        return ptowsp_run_export_decisions(f->run, PTOWSP_REPORT_TEXT, output);
    default: return ptowsp_run_export(f->run, (ptowsp_export_format)format, NULL, output);
    }
}

TEST_F(output__may_fail_after_any_number_of_bytes) {
    ptowsp_transient_sizes sizes;
    program_make(f, sample, NULL, NULL);
    execute(f);
    assert_ok(ptowsp_run_size_transients(f->run, &sizes));
    for (uint32_t format = 0; format <= PTOWSP_EXPORT_DOT + 4; format++) {
        sink whole = {UINT64_MAX, 0, false};
        const ptowsp_output to_all = {take, &whole};
        assert_ok(export_as(f, format, to_all));
        assert_true(whole.written > 0);
        for (uint64_t room = 0; room < whole.written; room += 1 + whole.written / 50) {
            sink some = {room, 0, false};
            const ptowsp_output to_some = {take, &some};
            char text[96];
            assert_int_equal(export_as(f, format, to_some), PTOWSP_SYSTEM_FAILED);
            snprintf(text, sizeof text, " %llu bytes", (unsigned long long)some.written);
            if (!strstr(ptowsp_context_error(f->context).text, text)) {
                fail_msg("\"%s\" does not say%s", ptowsp_context_error(f->context).text, text);
            }
        }
    }
}
