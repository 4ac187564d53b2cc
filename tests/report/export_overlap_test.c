// Exports of what overlaps on one lane: slices of a track nest, for a reader of PERFETTO and for one of
// CHROME that takes times as doubles; bars of an SVG do not hide each other. And texts of traces that are not UTF-8.

#include "trace_reader.h"

#include <math.h>

enum { DEPTH_MAX = 512 };

// What was read: a slice of a track, and the name of that.
typedef struct seen_slice {
    uint64_t track, begin, end;
    double from, to;  // as a reader of CHROME has them
} seen_slice;

static struct {
    seen_slice slices[SLICE_MAX];
    uint32_t count, track_count;
    uint64_t tracks[TRACK_MAX];
    char names[TRACK_MAX][128];
} seen;

static void read_perfetto(void) {
    static reader r;
    read_trace(&r);
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < r.count; i++) {
        assert_false(r.slices[i].is_open);
        seen.slices[i].track = r.slices[i].track;
        seen.slices[i].begin = r.slices[i].begin;
        seen.slices[i].end = r.slices[i].end;
    }
    seen.count = (uint32_t)r.count;
    for (int i = 0; i < r.track_count; i++) {
        seen.tracks[seen.track_count] = r.uuids[i];
        strcpy(seen.names[seen.track_count], r.names[i]);
        seen.track_count += !r.is_process[i];
    }
}

// -- CHROME ---------------------------------------------------------------------------------------

static uint64_t number(const char *line, const char *name) {
    const char *at = strstr(line, name);
    assert_non_null(at);
    return strtoull(at + strlen(name), NULL, 10);
}

static double real(const char *line, const char *name) {
    const char *at = strstr(line, name);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

static int in_order(const void *left, const void *right) {
    const seen_slice *a = (const seen_slice *)left, *b = (const seen_slice *)right;
    return a->track != b->track                       ? (a->track < b->track ? -1 : 1)
           : a->from != b->from                       ? (a->from < b->from ? -1 : 1)
           : (a->to == a->from) != (b->to == b->from) ? (a->to == a->from ? -1 : 1)
           : a->to != b->to                           ? (a->to > b->to ? -1 : 1)
                                                      : 0;
}

// Slices of a thread nest where their ends are ts + dur, added up as doubles.
static void read_chrome(void) {
    char *line = written.text;
    memset(&seen, 0, sizeof seen);
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (strstr(line, "\"thread_name\"")) {
            assert_true(seen.track_count < TRACK_MAX);
            seen.tracks[seen.track_count] =
                number(line, "\"pid\":") << 32 | number(line, "\"tid\":");
            assert_int_equal(sscanf(strstr(line, "\"args\":{"), "\"args\":{\"name\":\"%127[^\"]",
                                    seen.names[seen.track_count++]),
                             1);
        } else if (strstr(line, "\"ph\":\"X\"")) {
            assert_true(seen.count < SLICE_MAX);
            seen_slice *s = &seen.slices[seen.count++];
            s->track = number(line, "\"pid\":") << 32 | number(line, "\"tid\":");
            s->from = real(line, "\"ts\":");
            const double dur = real(line, "\"dur\":");
            assert_true(dur >= 0);
            s->to = s->from + dur;
            s->begin = (uint64_t)llround(s->from * 1000);
            s->end = (uint64_t)llround(s->to * 1000);
        }
        *end = '\n';
    }
    double stack[DEPTH_MAX];
    uint32_t depth = 0;
    qsort(seen.slices, seen.count, sizeof(seen_slice), in_order);
    for (uint32_t i = 0; i < seen.count; i++) {
        const seen_slice *s = &seen.slices[i];
        depth = i && s->track != seen.slices[i - 1].track ? 0 : depth;
        while (depth && stack[depth - 1] <= s->from) {
            depth--;
        }
        if (depth && s->to > stack[depth - 1]) {
            fail_msg("%.17g to %.17g is in one to %.17g", s->from, s->to, stack[depth - 1]);
        }
        assert_true(depth < DEPTH_MAX);
        stack[depth++] = s->to;
    }
}

// -- what was given -------------------------------------------------------------------------------

// Is there a slice for each span that ran, on a track of its lane? From `first` on times begin.
static void check_spans(const ptowsp_span_set *set, uint32_t wait_count) {
    static bool used[SLICE_MAX];
    uint64_t first = UINT64_MAX;
    uint32_t ran = 0;
    memset(used, 0, sizeof used);
    for (uint64_t i = 0; i < set->count; i++) {
        first = set->spans[i].end && set->spans[i].begin < first ? set->spans[i].begin : first;
    }
    for (uint64_t i = 0; i < set->count; i++) {
        const ptowsp_span *span = &set->spans[i];
        uint32_t at = span->end ? 0 : seen.count;
        ran += span->end != 0;
        for (; at < seen.count; at++) {
            const seen_slice *s = &seen.slices[at];
            if (!used[at] && s->begin == span->begin - first && s->end == span->end - first) {
                uint32_t track = 0;
                while (track < seen.track_count && seen.tracks[track] != s->track) {
                    track++;
                }
                assert_true(track < seen.track_count);
                char lane[32];
                const int length = snprintf(lane, sizeof lane, "lane %u", span->lane);
                if (strncmp(seen.names[track], lane, (size_t)length) == 0 &&
                    (seen.names[track][length] == '\0' || seen.names[track][length] == ' ')) {
                    used[at] = true;
                    break;
                }
            }
        }
        assert_true(at < seen.count || !span->end);
    }
    assert_int_equal(seen.count, ran + wait_count);
}

static const char *const names[] = {"k"};

static ptowsp_span_set set_of(const ptowsp_span *spans, uint64_t count) {
    ptowsp_span_set set = {
        .title = "t", .spans = spans, .count = count, .names = names, .name_count = 1};
    return set;
}

static void export_as(fixture *f, const ptowsp_span_set *set, ptowsp_export_format format) {
    const ptowsp_export_options options = {.lane_max = 4096, .width = 4000};
    export_spans(f, set, format, &options);
}

static void check_both(fixture *f, const ptowsp_span_set *set, uint32_t wait_count) {
    export_as(f, set, PTOWSP_EXPORT_CHROME);
    read_chrome();
    check_spans(set, wait_count);
    export_as(f, set, PTOWSP_EXPORT_PERFETTO);
    read_perfetto();
    check_spans(set, wait_count);
}

// Bars of a row of the SVG do not overlap.
static void check_svg(uint32_t count) {
    typedef struct bar {
        double x, end;
        int y;
    } bar;
    static bar bars[SLICE_MAX];
    uint32_t found = 0;
    for (const char *at = written.text; (at = strstr(at, "<rect x=\"")) != NULL; at++) {
        double x, width;
        int y, height, used = 0;
        if (sscanf(at, "<rect x=\"%lf\" width=\"%lf\" y=\"%d\" height=\"%d\" fill=\"url(#k0)\"><%n",
                   &x, &width, &y, &height, &used) == 4 &&
            used) {
            for (uint32_t i = 0; i < found; i++) {
                assert_true(bars[i].y != y || x >= bars[i].end - 0.011 ||
                            x + width <= bars[i].x + 0.011);
            }
            assert_true(found < SLICE_MAX);
            bars[found].x = x, bars[found].end = x + width, bars[found++].y = y;
        }
    }
    assert_int_equal(found, count);
}

// -- tests ----------------------------------------------------------------------------------------

// Nested spans stay on the track of their lane; one that overlaps gets a second one.
TEST_F(overlap__nested_spans_share_a_track) {
    static const ptowsp_span nested[] = {
        {110, 120, 0, 0}, {100, 200, 0, 0}, {105, 150, 0, 0}, {100, 200, 0, 0}, {150, 200, 0, 0}};
    static const ptowsp_span crossed[] = {{100, 110, 0, 0}, {105, 115, 0, 0}, {90, 200, 0, 0}};
    static const ptowsp_span apart[] = {{20, 30, 0, 0}, {10, 20, 0, 0}, {20, 20, 0, 0}};
    ptowsp_span_set set = set_of(nested, 5);
    check_both(f, &set, 0);
    assert_int_equal(seen.track_count, 1);
    set = set_of(apart, 3);
    check_both(f, &set, 0);
    assert_int_equal(seen.track_count, 1);
    set = set_of(crossed, 3);
    check_both(f, &set, 0);
    assert_int_equal(seen.track_count, 2);
    assert_string_equal(seen.names[1], "lane 0 (2)");
    export_as(f, &set, PTOWSP_EXPORT_CHROME);
    has_times(1, "\"args\":{\"name\":\"lane 0 (2)\"}");
    export_as(f, &set, PTOWSP_EXPORT_SVG);
    check_svg(3);
    const ptowsp_export_options narrow = {.lane_max = 2};
    test_refused(
        f->context,
        ptowsp_spans_export(f->context, &set, PTOWSP_EXPORT_SVG, &narrow, written_output()),
        PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
        "export: a picture of 3 lanes and processes, where tasks overlap several times, but "
        "lane_max is 2");
}

// 0.1 + 0.2 is more than 0.3, and 0.7 + 0.1 less than 0.8.
TEST_F(overlap__ends_as_doubles_do_not_pass_what_follows) {
    static const ptowsp_span spans[] = {{0, 100, 0, 0},   {100, 300, 0, 0}, {300, 700, 0, 0},
                                        {700, 800, 0, 0}, {800, 801, 0, 0}, {700, 800, 1, 0}};
    ptowsp_span_set set = set_of(spans, 5);
    check_both(f, &set, 0);
    export_as(f, &set, PTOWSP_EXPORT_CHROME);
    has_times(1, "\"ts\":0.000,\"dur\":0.100,");
    has_times(0, "\"ts\":0.100,\"dur\":0.200,");
    set.count = 6;
    check_both(f, &set, 0);
    // A lane of tasks one after the other, at every length of time.
    static ptowsp_span row[2000];
    uint64_t random = test_seed();
    for (int bits = 4; bits < 42; bits++) {
        uint64_t now = 0;
        for (int i = 0; i < 2000; i++) {
            row[i].begin = now;
            now += 1 + test_random(&random) % (UINT64_C(1) << bits);
            row[i].end = now;
            row[i].lane = row[i].kind = 0;
        }
        set = set_of(row, 2000);
        set.has_cycles = true;
        export_as(f, &set, PTOWSP_EXPORT_CHROME);
        read_chrome();
        assert_int_equal(seen.track_count, 1);
        assert_int_equal(seen.count, 2000);
        for (int i = 0; i < 2000; i++) {
            assert_true(seen.slices[i].begin == row[i].begin && seen.slices[i].end == row[i].end);
        }
    }
}

// How many spans wait, by the rule in ptowsp.h.
static uint32_t waits_of(const ptowsp_span_set *set) {
    uint32_t count = 0;
    for (uint64_t i = 0; i < set->count; i++) {
        bool waits = false;
        for (uint64_t j = 0; j < set->arrow_count; j++) {
            const ptowsp_span *to = &set->spans[i], *from = &set->spans[set->arrows[j].from];
            waits =
                waits || (set->arrows[j].to == i && from->begin > to->begin && to->end > to->begin);
        }
        count += waits;
    }
    return count;
}

TEST_F(overlap__random_spans_nest_on_their_tracks) {
    uint64_t random = test_seed();
    for (int round = 0; round < 300; round++) {
        static ptowsp_span spans[200];
        static ptowsp_span_arrow arrows[40];
        static const uint64_t ranges[] = {12, 60, 1000, 1000000, UINT64_C(1) << 50};
        const uint64_t range = ranges[test_random(&random) % 5];
        const uint32_t count = 1 + (uint32_t)(test_random(&random) % (round % 10 ? 30 : 200));
        for (uint32_t i = 0; i < count; i++) {
            ptowsp_span *span = &spans[i];
            const uint64_t length = round % 3 ? range : range / 8 + 1;
            span->begin = 5 + test_random(&random) % range;
            span->end = span->begin + test_random(&random) % length;
            span->lane = (uint32_t)(test_random(&random) % 3);
            if (i && test_random(&random) % 4 == 0) {  // ends and begins that are the same
                span->begin = spans[i - 1].begin;
                span->end = spans[i - 1].end > span->begin ? spans[i - 1].end : span->begin;
            }
        }
        ptowsp_span_set set = set_of(spans, count);
        if (round % 2) {
            for (set.arrow_count = 0; set.arrow_count < 1 + count / 5; set.arrow_count++) {
                arrows[set.arrow_count].from = test_random(&random) % count;
                arrows[set.arrow_count].to = test_random(&random) % count;
            }
            set.arrows = arrows;
        }
        check_both(f, &set, waits_of(&set));
    }
}

TEST_F(overlap__bars_do_not_hide_each_other) {
    uint64_t random = test_seed();
    for (int round = 0; round < 20; round++) {
        ptowsp_span spans[40];
        for (uint32_t i = 0; i < 40; i++) {
            spans[i].begin = 1 + test_random(&random) % 100;
            spans[i].end = spans[i].begin + 1 + test_random(&random) % 30;
            spans[i].lane = (uint32_t)(test_random(&random) % 3);
            spans[i].kind = 0;
        }
        const ptowsp_span_set set = set_of(spans, 40);
        export_as(f, &set, PTOWSP_EXPORT_SVG);
        check_svg(40);
    }
}

// Passes of a pipeline in a parallel loop overlap: each of 5 has two tasks of 10 cycles in process a.
TEST_F(overlap__pipelines_in_parallel_loops_are_drawn) {
    static const char text[] = "module m\n"
                               "axis n 5\n"
                               "kernel k(axes 1) vector, 10 cycles, time only\n"
                               "workload w\n"
                               "  parallel i in n\n"
                               "    task k(i)\n"
                               "    pipeline p\n"
                               "      process a\n"
                               "        task k(i)\n"
                               "        task k(i)\n";
    const ptowsp_record_options record = {PTOWSP_RECORD_TASKS, 0, 0, 0, false};
    execute_text(f, text, NULL, &record, NULL);
    for (int format = PTOWSP_EXPORT_PERFETTO; format <= PTOWSP_EXPORT_TABLE; format++) {
        export_run(f, (ptowsp_export_format)format, NULL);
        if (format == PTOWSP_EXPORT_PERFETTO) {
            read_perfetto();
            assert_int_equal(seen.count, 15);
        } else if (format == PTOWSP_EXPORT_CHROME) {
            read_chrome();
            assert_int_equal(seen.count, 15);
        } else if (format == PTOWSP_EXPORT_SVG) {
            check_svg(15);
        }
    }
    report_run(f, PTOWSP_REPORT_HTML, NULL, 0);
    check_svg(15);
    const ptowsp_export_options narrow = {.lane_max = 2};
    assert_ok(ptowsp_run_report(f->run, PTOWSP_REPORT_HTML, &narrow, NULL, 0, written_output()));
    has_times(0, "<svg");
}

// U+FFFD stands for each byte of the name, the title and the label that is no part of a character.
static void label_bad(void *user, uint64_t i, ptowsp_output text) {
    (void)user, (void)i;
    text.write(text.user, "\xf0\x9f\x98\x80 \xc3", 6);  // a character, and half of one
}

TEST_F(overlap__texts_of_traces_are_utf8) {
    static const char *const bad[] = {"\xff\xed\xa0\x80 \xc3\xa9"};  // a byte, a surrogate, e
    static const ptowsp_span spans[] = {{10, 1000, 0, 0}, {1000, 2000, 0, 0}};
    ptowsp_span_set set = set_of(spans, 2);
    set.names = bad;
    set.title = "\xfd\xc3\xa9";
    set.label = label_bad;
    export_as(f, &set, PTOWSP_EXPORT_PERFETTO);
    has_times(0, "\xed\xa0");
    assert_true(count_of("\xef\xbf\xbd\xc3\xa9", 5) > 0);
    assert_true(count_of("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xc3\xa9", 15) > 0);
    assert_true(count_of("\xf0\x9f\x98\x80 \xef\xbf\xbd", 8) > 0);
}
