// Spans of one's own as pictures: their order on a lane, what they wait for, arrows, narrow ones that are
// drawn together, and times up to the last one.

#include "written.h"

enum { MANY = 200 };

static const char *const names[] = {"decode", "merge", ""};

static ptowsp_span_set set_of(const ptowsp_span *spans, uint64_t count) {
    ptowsp_span_set set = {.spans = spans, .count = count, .names = names, .name_count = 3};
    return set;
}

// By their begin, then the longest first, then as they come.
TEST_F(spans__of_a_lane_come_in_order) {
    static const ptowsp_span spans[] = {
        {10, 20, 0, 0}, {10, 15, 0, 1}, {10, 20, 0, 1}, {5, 8, 0, 0}, {10, 15, 0, 0}};
    static const int order[] = {3, 0, 2, 1, 4};
    const ptowsp_span_set set = set_of(spans, 5);
    export_spans(f, &set, PTOWSP_EXPORT_CSV, NULL);
    const char *at = written.text;
    for (int i = 0; i < 5; i++) {
        at = strchr(at, '\n');
        assert_non_null(at);
        assert_int_equal(strtol(++at, NULL, 10), order[i]);
    }
}

// The last one of lane 1 waits for the latest begin of those with an arrow to it, until its own end; one
// that had begun before it is none that it waited for.
TEST_F(spans__wait_for_the_one_that_begins_last) {
    static const ptowsp_span spans[] = {{0, 100, 0, 0},
                                        {1000, 1200, 2, 0},
                                        {800, 900, 0, 1},
                                        {500, 1500, 1, 1},
                                        {2000, 2100, 0, 0}};
    static const ptowsp_span_arrow arrows[] = {{0, 3}, {2, 3}, {1, 3}, {2, 3}};
    static const ptowsp_span_arrow late = {4, 3};
    ptowsp_span_set set = set_of(spans, 5);
    set.arrows = arrows;
    set.arrow_count = 4;
    export_spans(f, &set, PTOWSP_EXPORT_CHROME, NULL);
    has_times(1, "\"ts\":0.500,\"dur\":0.500,\"cat\":\"rank\",\"name\":\"waits for lane 2\"}");
    has_times(1, "waits for");
    set.arrows = &late;
    set.arrow_count = 1;
    export_spans(f, &set, PTOWSP_EXPORT_CHROME, NULL);
    has_times(1, "\"ts\":0.500,\"dur\":1.000,\"cat\":\"rank\",\"name\":\"waits for lane 0\"}");
}

static void span_label(void *user, uint64_t i, ptowsp_output text) {
    (void)user;
    char room[24];
    text.write(text.user, room, (size_t)snprintf(room, sizeof room, "number=%d", (int)i));
}

TEST_F(spans__have_no_title_and_no_label) {
    static const ptowsp_span spans[] = {{5, 10, 0, 0}, {10, 20, 0, 2}};
    ptowsp_export_options options = {0};
    ptowsp_span_set set = set_of(spans, 1);
    export_spans(f, &set, PTOWSP_EXPORT_SVG, &options);
    has_times(1, "<title></title>");
    has_times(1, ">5 ns, measured: 1 task, 1 lane, lanes busy 100.0 % of the time</text>");
    has_times(1, "<title>decode\n");
    set.label = span_label;
    export_spans(f, &set, PTOWSP_EXPORT_SVG, &options);
    has_times(1, "<title>decode number=0\n");
    has_times(1, ">decode number=0</text>");  // in the bar
    options.is_short = true;
    export_spans(f, &set, PTOWSP_EXPORT_SVG, &options);
    has_times(0, ">decode number=0</text>");
    has_times(2, ">decode</text>");  // there, and in the legend
    // A kind may be called nothing at all; then its bar has no text.
    set = set_of(spans + 1, 1);
    export_spans(f, &set, PTOWSP_EXPORT_SVG, NULL);
    has_times(0, "<text class=\"b m\"");
}

// A pixel is 1000 ns. Spans of 100 ns are drawn as whole columns: those of pixels 10 and 11 are one, that
// of 20 stands alone, and that of 21 is of another kind.
TEST_F(spans__that_are_narrow_become_columns) {
    static const ptowsp_span spans[] = {{0, 1000000, 1, 0},   {10000, 10100, 0, 0},
                                        {10200, 10300, 0, 0}, {11000, 11100, 0, 0},
                                        {20000, 20100, 0, 0}, {21000, 21100, 0, 1}};
    ptowsp_export_options options = {.width = 84 + 1000 + 16};
    const ptowsp_span_set set = set_of(spans, 6);
    export_spans(f, &set, PTOWSP_EXPORT_SVG, &options);
    has_times(4, "height=\"20\" fill=");
    has_times(1, "<rect x=\"94\" width=\"2\" y=\"82\"");
    has_times(1, "<rect x=\"104\" width=\"1\" y=\"82\"");
    has_times(1, "<rect x=\"105\" width=\"1\" y=\"82\"");
    has_times(1, "<rect x=\"84\" width=\"999\" y=\"106\"");
}

TEST_F(spans__have_arrows_in_a_window_of_time) {
    static const ptowsp_span spans[] = {
        {0, 10, 0, 0}, {20, 30, 1, 0}, {100, 110, 0, 0}, {120, 130, 1, 0}};
    static const ptowsp_span_arrow arrows[] = {{0, 1}, {2, 3}};
    static const uint64_t windows[][3] = {{0, 0, 2}, {0, 40, 1}, {40, 130, 1}, {40, 90, 0}};
    ptowsp_span_set set = set_of(spans, 4);
    set.arrows = arrows;
    set.arrow_count = 2;
    for (int i = 0; i < 4; i++) {
        ptowsp_export_options options = {.begin = windows[i][0], .end = windows[i][1]};
        export_spans(f, &set, PTOWSP_EXPORT_SVG, &options);
        has_times((uint32_t)windows[i][2], "<line x1=");
    }
}

// Ticks end where time does: they do not go round.
TEST_F(spans__may_end_at_the_last_time_there_is) {
    static const ptowsp_span spans[] = {{0, UINT64_MAX, 0, 0}, {1, UINT64_MAX, 1, 0}};
    ptowsp_export_options options = {.width = 320};
    ptowsp_span_set set = set_of(spans, 1);
    set.has_cycles = true;
    export_spans(f, &set, PTOWSP_EXPORT_SVG, &options);
    has_times(
        1, ">18,446,744,073,709,551,615 cycles, 1 task, 1 lane, lanes busy 100.0 % of the time<");
    has_times(1, ">18,000,000,000,000,000,000</text>");
    has_times(10, "<text class=\"u m\"");
    // How long two lanes are is no number of 64 bits.
    set.count = 2;
    export_spans(f, &set, PTOWSP_EXPORT_SVG, &options);
    has_times(1, ">18,446,744,073,709,551,615 cycles, 2 tasks, 2 lanes<");
    options.begin = UINT64_MAX - 5;
    export_spans(f, &set, PTOWSP_EXPORT_SVG, &options);
    has_times(1, "; drawn: 18,446,744,073,709,551,610 to 18,446,744,073,709,551,615<");
    has_times(3, "<text class=\"u m\"");  // by 2
    has_times(1, ">18,446,744,073,709,551,614</text>");
    // As long as all time twice: no more than busy.
    static const ptowsp_span twice[] = {{0, UINT64_MAX, 0, 0}, {0, UINT64_MAX, 0, 1}};
    set = set_of(twice, 2);
    export_spans(f, &set, PTOWSP_EXPORT_SVG, NULL);
    has_times(1, " 1 lane, lanes busy 100.0 % of the time<");
}

// In a trace of Perfetto, flows are fields 47 and 48 of 64 bits: a slice has at most 128 of each.
TEST_F(spans__have_so_many_arrows_each) {
    static ptowsp_span spans[MANY + 1];
    static ptowsp_span_arrow arrows[MANY];
    spans[0].end = 1;
    for (uint32_t i = 0; i < MANY; i++) {
        spans[i + 1].begin = 10 + i;
        spans[i + 1].end = 11 + i;
        spans[i + 1].lane = 1;
    }
    ptowsp_span_set set = set_of(spans, MANY + 1);
    set.arrows = arrows;
    set.arrow_count = MANY;
    for (uint32_t is_to = 0; is_to < 2; is_to++) {
        for (uint32_t i = 0; i < MANY; i++) {
            arrows[i].from = is_to ? i + 1 : 0;
            arrows[i].to = is_to ? 0 : i + 1;
        }
        export_spans(f, &set, PTOWSP_EXPORT_PERFETTO, NULL);
        uint32_t from_count = 0, to_count = 0;
        for (int id = 1; id <= MANY; id++) {
            const char from[] = {'\xf9', '\x02', (char)id, 0, 0, 0, 0, 0, 0, 0};
            const char to[] = {'\x81', '\x03', (char)id, 0, 0, 0, 0, 0, 0, 0};
            from_count += count_of(from, sizeof from);
            to_count += count_of(to, sizeof to);
        }
        assert_int_equal(from_count, is_to ? MANY : 128);
        assert_int_equal(to_count, is_to ? 128 : MANY);
    }
    // An output that fails is not called again.
    for (int format = PTOWSP_EXPORT_PERFETTO; format <= PTOWSP_EXPORT_TABLE; format++) {
        export_spans(f, &set, (ptowsp_export_format)format, NULL);
        for (size_t room = 0; room < written.length; room += 1 + written.length / 40) {
            const size_t length = written.length;
            assert_int_equal(ptowsp_spans_export(f->context, &set, (ptowsp_export_format)format,
                                                 NULL, written_within(room)),
                             PTOWSP_SYSTEM_FAILED);
            assert_int_equal(written.failed_count, 1);
            written.length = length;
        }
    }
}

TEST_F(spans__are_refused_with_wrong_options) {
    static const ptowsp_span span = {5, 10, 0, 0};
    static const struct {
        ptowsp_export_options options;
        const char *text;
    } cases[] = {{{.theme = (ptowsp_theme)9}, "export: there is no theme 9"},
                 {{.fold = (ptowsp_fold)9}, "export: there is no fold 9"},
                 {{.width = 100}, "export: a width of 100 is not in 320 to 10000"},
                 {{.begin = 5}, "export: the window begins at 5, but the run ends at 5"}};
    const ptowsp_span_set set = set_of(&span, 1);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_invalid(ptowsp_spans_export(f->context, &set, PTOWSP_EXPORT_SVG, &cases[i].options,
                                           written_output()));
        assert_string_equal(ptowsp_context_error(f->context).text, cases[i].text);
        assert_int_equal(written.length, 0);
    }
    // Titles that are no characters at all are cut to nothing.
    static char endless[1000];
    memset(endless, '\x80', sizeof endless - 1);
    const ptowsp_export_options options = {.title = endless};
    export_spans(f, &set, PTOWSP_EXPORT_PERFETTO, &options);
    has_times(0, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80");
    has_times(1, ", measured");
}
