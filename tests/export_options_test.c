// What options change in exports: names instead of labels, titles of any text, windows, how many lanes
// are drawn; and what labels call the values of a task.

#include "program_fixture.h"

enum { TEXT_MAX = 1 << 17 };

static const char sample[] = "module m\n"
                             "axis n 3\n"
                             "axis two 2\n"
                             "array order i64\n"
                             "tensor x i32 [4, 8] global\n"
                             "tensor mid i32 [4, 8] global transient\n"
                             "kernel w(axes 2, inout t i32 1 x 8) vector, 3 cycles, time only\n"
                             "kernel put(axes 0, out t i32 1 x 8) vector, 2 cycles, time only\n"
                             "workload main\n"
                             "  parallel row in n\n"
                             "    task put() t = mid at (row, 0)\n"
                             "    task w(order[row], row + 1) t = mid at (row, 0)\n"
                             "  pipeline p\n"
                             "    channel c depth 4 latency 1\n"
                             "    process a replicas r in two produces c\n"
                             "      send c(1)\n"
                             "    process b consumes c\n"
                             "      consume y from c\n"
                             "        task w(7, 8) t = x at (0, 0)\n";

static void execute(fixture *f, ptowsp_record_level level) {
    static const int64_t order[3] = {40, -50, 60};
    const ptowsp_record_options record = {.level = level};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    if (ptowsp_module_parse(f->context, sample, sizeof sample - 1, NULL, &f->module, NULL) !=
            PTOWSP_OK ||
        ptowsp_program_create(f->context, f->module, NULL, &f->program) != PTOWSP_OK ||
        ptowsp_run_create(f->context, f->program, &f->run) != PTOWSP_OK ||
        ptowsp_run_bind_array(f->run, "order", PTOWSP_I64, order, 3) != PTOWSP_OK ||
        (level && ptowsp_run_record(f->run, &record) != PTOWSP_OK) ||
        ptowsp_run_execute(f->run, &options) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

// What was written last.
static struct {
    char text[TEXT_MAX];
    size_t length;
} written;

static bool take(void *user, const void *data, size_t size) {
    (void)user;
    assert_true(size < TEXT_MAX - written.length);
    memcpy(written.text + written.length, data, size);
    written.length += size;
    written.text[written.length] = '\0';
    return true;
}

static const ptowsp_output output = {take, NULL};

static void export_as(fixture *f, ptowsp_export_format format,
                      const ptowsp_export_options *options) {
    written.length = 0;
    if (ptowsp_run_export(f->run, format, options, output) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

static void has(bool is_there, const char *part) {
    if (!strstr(written.text, part) == is_there) {
        fail_msg("\"%s\" is %s\n%s", part, is_there ? "not in" : "in", written.text);
    }
}

// A value is called after its variable or array, else by its number.
static void options__make_bars_short(void **state) {
    fixture *f = (fixture *)*state;
    static const ptowsp_export_format formats[] = {PTOWSP_EXPORT_CHROME, PTOWSP_EXPORT_TABLE};
    execute(f, PTOWSP_RECORD_EDGES);
    for (uint32_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        ptowsp_export_options options;
        memset(&options, 0, sizeof options);
        export_as(f, formats[i], &options);
        has(true, "w order=40 axis1=1");
        has(true, "w order=-50 axis1=2");
        has(true, "w axis0=7 axis1=8");
        const size_t length = written.length;
        options.is_short = true;
        export_as(f, formats[i], &options);
        has(false, "axis1=");
        has(true, "put");
        assert_true(written.length < length);
    }
    static const ptowsp_export_format others[] = {PTOWSP_EXPORT_SVG, PTOWSP_EXPORT_EDGES,
                                                  PTOWSP_EXPORT_DOT, PTOWSP_EXPORT_PERFETTO};
    for (uint32_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ptowsp_export_options options;
        memset(&options, 0, sizeof options);
        export_as(f, others[i], &options);
        const size_t length = written.length;
        options.is_short = true;
        export_as(f, others[i], &options);
        assert_true(written.length < length);
    }
}

// RFC 8259: quotes, backslashes and control characters are escaped, and text is UTF-8.
static void options__take_any_title(void **state) {
    fixture *f = (fixture *)*state;
    ptowsp_export_options options;
    memset(&options, 0, sizeof options);
    execute(f, PTOWSP_RECORD_EDGES);
    options.title = "a\"b\\c\x7f\x01 \xc3\xa9 \xff.";
    export_as(f, PTOWSP_EXPORT_CHROME, &options);
    has(true, "a\\\"b\\\\c\\u007f\\u0001 \xc3\xa9 \xef\xbf\xbd.");
    options.title = "a & b < c";
    export_as(f, PTOWSP_EXPORT_SVG, &options);
    has(true, "a &amp; b &lt; c");
    written.length = 0;
    ptowsp_transient_sizes sizes;
    assert_int_equal(ptowsp_run_size_transients(f->run, &sizes), PTOWSP_OK);
    assert_int_equal(ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, &options, output),
                     PTOWSP_OK);
    has(true, "a &amp; b &lt; c");

    // One that is cut off is cut between characters, whatever stands before them.
    static char endless[2 * 4096 + 2];
    for (uint32_t before = 0; before < 2; before++) {
        memset(endless, 'x', before);
        for (uint32_t i = before; i + 2 < sizeof endless; i += 2) {
            memcpy(endless + i, "\xc3\xa9", 2);
        }
        options.title = endless;
        export_as(f, PTOWSP_EXPORT_PERFETTO, &options);
        size_t longest = 0, length = 0;
        for (size_t i = 0; i < written.length; i++) {
            const unsigned char c = (unsigned char)written.text[i];
            length = c == 0xc3 || c == 0xa9 ? length + 1 : 0;
            longest = length > longest ? length : longest;
        }
        assert_true(longest > 100);
        assert_int_equal(longest % 2, 0);
    }
}

// Processes that are one of several have their number.
static void options__name_each_replica(void **state) {
    fixture *f = (fixture *)*state;
    execute(f, PTOWSP_RECORD_EDGES);
    export_as(f, PTOWSP_EXPORT_CHROME, NULL);
    has(true, "a[0]");
    has(true, "a[1]");
}

// A report draws a run that has been recorded and has as many lanes as may be drawn.
static void options__leave_pictures_out(void **state) {
    fixture *f = (fixture *)*state;
    ptowsp_export_options options;
    memset(&options, 0, sizeof options);
    execute(f, PTOWSP_RECORD_TOTALS);
    for (uint32_t is_recorded = 0; is_recorded < 2; is_recorded++) {
        for (options.lane_max = 0; options.lane_max < 2; options.lane_max++) {
            written.length = 0;
            assert_int_equal(
                ptowsp_run_report(f->run, PTOWSP_REPORT_HTML, &options, NULL, 0, output),
                PTOWSP_OK);
            has(is_recorded && options.lane_max == 0, "<rect");
        }
        const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS};
        const ptowsp_run_options run = {.mode = PTOWSP_RUN_TIME_ONLY};
        assert_int_equal(ptowsp_run_record(f->run, &record), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f->run, &run), PTOWSP_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(options__make_bars_short, setup, teardown),
        cmocka_unit_test_setup_teardown(options__take_any_title, setup, teardown),
        cmocka_unit_test_setup_teardown(options__name_each_replica, setup, teardown),
        cmocka_unit_test_setup_teardown(options__leave_pictures_out, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
