// What options change in exports that no case says (tests/cases/written.case has the others): titles of any
// text, labels that are too long, every second task, how many lanes are drawn.

#include "written.h"

static void execute(fixture *f, ptowsp_record_level level) {
    static const char text[] = "module m\n"
                               "tensor mid i32 [4, 8] global transient\n"
                               "kernel put(axes 0, out t i32 1 x 8) vector, 2 cycles, time only\n"
                               "kernel w(axes 0, inout t i32 1 x 8) vector, 3 cycles, time only\n"
                               "workload main\n"
                               "  task put() t = mid\n"
                               "  task w() t = mid\n";
    const ptowsp_record_options record = {.level = level};
    const ptowsp_schedule two = {.lane_count = 2};
    execute_text(f, text, &two, &record, NULL);
}

// RFC 8259: quotes, backslashes and control characters are escaped, and text is UTF-8.
TEST_F(options__take_any_title) {
    ptowsp_export_options options = {0};
    execute(f, PTOWSP_RECORD_EDGES);
    options.title = "a\"b\\c\x7f\x01 \xc3\xa9 \xff.";
    export_run(f, PTOWSP_EXPORT_CHROME, &options);
    has("a\\\"b\\\\c\\u007f\\u0001 \xc3\xa9 \xef\xbf\xbd.");
    options.title = "a & b < c";
    export_run(f, PTOWSP_EXPORT_SVG, &options);
    has("a &amp; b &lt; c");
    ptowsp_transient_sizes sizes;
    assert_ok(ptowsp_run_size_transients(f->run, &sizes));
    assert_ok(ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, &options, written_output()));
    has("a &amp; b &lt; c");

    // One that is cut off is cut between characters, whatever stands before them.
    static char endless[2 * 4096 + 2];
    for (uint32_t before = 0; before < 2; before++) {
        memset(endless, 'x', before);
        for (uint32_t i = before; i + 2 < sizeof endless; i += 2) {
            memcpy(endless + i, "\xc3\xa9", 2);
        }
        options.title = endless;
        export_run(f, PTOWSP_EXPORT_PERFETTO, &options);
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

// A label has 1024 bytes, of which 32 are kept for a value. Names of 63 bytes: each value takes 66, so
// that 14 of 16 follow the kernel's name: 63 + 13 * 66 + 63 + 32 is 1016.
TEST_F(options__end_labels_that_are_too_long) {
    static char text[8192], name[PTOWSP_NAME_MAX];
    memset(name, 'x', sizeof name - 1);
    char *at = text + sprintf(text, "module m\naxis n 1\nkernel k%s(axes 8", name);
    for (int i = 0; i < 8; i++) {
        at += sprintf(at, ", %s%d i64", name, i);
    }
    at += sprintf(at, ") vector, 3 cycles, time only\nworkload main\n");
    for (int i = 0; i < 8; i++) {
        at += sprintf(at, "%*sparallel %s%d in n\n", 2 * i + 2, "", name, i);
    }
    at += sprintf(at, "%*stask k%s(", 18, "", name);
    for (int i = 0; i < 8; i++) {
        at += sprintf(at, "%s%s%d", i ? ", " : "", name, i);
    }
    at += sprintf(at, ")");
    for (int i = 0; i < 8; i++) {
        at += sprintf(at, " %s%d = %d", name, i, 1 + i);
    }
    sprintf(at, "\n");
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS};
    execute_text(f, text, NULL, &record, NULL);
    export_run(f, PTOWSP_EXPORT_SVG, NULL);
    has("x7=0 ");
    has("x5=6\ntask 0: ");
    has_not("x6=7");
}

// Of every second task only, gaps between bars say nothing. Names of processes and kernels that are longer
// than their place are squeezed.
TEST_F(options__draw_what_is_recorded) {
    static const char text[] =
        "module m\n"
        "axis n 4\n"
        "kernel \"a kernel of a long name\"(axes 1) vector, 1000 cycles, time only\n"
        "workload main\n"
        "  for_each i in n\n"
        "    task \"a kernel of a long name\"(i)\n"
        "  pipeline p\n"
        "    channel c depth 1 latency 0\n"
        "    process producer_of_it produces c\n"
        "      send c(1)\n"
        "    process b consumes c\n"
        "      consume y from c\n"
        "        task \"a kernel of a long name\"(y)\n";
    ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS};
    const ptowsp_schedule two = {.lane_count = 2};
    execute_text(f, text, &two, &record, NULL);
    export_run(f, PTOWSP_EXPORT_SVG, NULL);
    has(" textLength=\"72\" lengthAdjust=\"spacingAndGlyphs\">producer_of_it</text>");
    has(" textLength=\"118\" lengthAdjust=\"spacingAndGlyphs\">a kernel of a long name</text>");
    has(">b</text>");
    has("fill=\"url(#s");  // stripes where a lane is idle
    has("task 1: 1000 to 2000");
    record.every = 2;
    execute_text(f, text, &two, &record, NULL);
    export_run(f, PTOWSP_EXPORT_SVG, NULL);
    has_not("fill=\"url(#s");
    has_not("task 1: ");
    has("task 2: 2000 to 3000");
}

// Titles that begin with what has to be escaped.
TEST_F(options__escape_the_first_character) {
    static const struct {
        const char *title, *written;
    } cases[] = {{"\\x", "\"\\\\x"}, {"\x7fx", "\"\\u007fx"}, {"\xc3\xa9", "\"\xc3\xa9"}};
    execute(f, PTOWSP_RECORD_TASKS);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ptowsp_export_options options = {.title = cases[i].title};
        export_run(f, PTOWSP_EXPORT_CHROME, &options);
        has(cases[i].written);
    }
}

// Kernels only are columns of a usage over time: where there are none, times alone.
TEST_F(options__have_usage_without_kernels) {
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_TOTALS};
    execute_text(f, "module m\nworkload main\n  combine\n", NULL, &record, NULL);
    export_run(f, PTOWSP_EXPORT_USAGE_CSV, NULL);
    assert_string_equal(written.text, "begin,end\r\n");
    const ptowsp_export_options wall = {.time = PTOWSP_TIME_WALL};
    assert_invalid(ptowsp_run_export(f->run, PTOWSP_EXPORT_CHROME, &wall, written_output()));
    assert_string_equal(ptowsp_context_error(f->context).text,
                        "export: the run has recorded no wall clock (has_clock)");
    assert_invalid(ptowsp_run_export(f->run, PTOWSP_EXPORT_DOT, NULL, written_output()));
    assert_string_equal(ptowsp_context_error(f->context).text,
                        "export: the run has recorded no edges (PTOWSP_RECORD_EDGES)");
    assert_invalid(ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, NULL, written_output()));
    assert_string_equal(ptowsp_context_error(f->context).text,
                        "export: there are no transient tensors");
}

// A report draws a run that has been recorded and has as many lanes as may be drawn.
TEST_F(options__leave_pictures_out) {
    ptowsp_export_options options = {0};
    execute(f, PTOWSP_RECORD_TOTALS);
    for (uint32_t is_recorded = 0; is_recorded < 2; is_recorded++) {
        for (options.lane_max = 0; options.lane_max < 2; options.lane_max++) {
            assert_ok(
                ptowsp_run_report(f->run, PTOWSP_REPORT_HTML, &options, NULL, 0, written_output()));
            assert_int_equal(count_of("<rect", 5) > 0, is_recorded && options.lane_max == 0);
        }
        const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS};
        const ptowsp_run_options run = {.mode = PTOWSP_RUN_TIME_ONLY};
        assert_ok(ptowsp_run_record(f->run, &record));
        assert_ok(ptowsp_run_execute(f->run, &run));
    }
}
