// What options change in exports: names instead of labels, titles of any text, windows, how many lanes
// are drawn; and what labels call the values of a task.

#include "written.h"

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

// A value is called after its variable or array, else by its number.
TEST_F(options__make_bars_short) {
    static const ptowsp_export_format formats[] = {PTOWSP_EXPORT_CHROME, PTOWSP_EXPORT_TABLE};
    execute(f, PTOWSP_RECORD_EDGES);
    for (uint32_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        ptowsp_export_options options = {0};
        export_run(f, formats[i], &options);
        has("w order=40 axis1=1");
        has("w order=-50 axis1=2");
        has("w axis0=7 axis1=8");
        const size_t length = written.length;
        options.is_short = true;
        export_run(f, formats[i], &options);
        has_not("axis1=");
        has("put");
        assert_true(written.length < length);
    }
    static const ptowsp_export_format others[] = {PTOWSP_EXPORT_SVG, PTOWSP_EXPORT_EDGES,
                                                  PTOWSP_EXPORT_DOT, PTOWSP_EXPORT_PERFETTO};
    for (uint32_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ptowsp_export_options options = {0};
        export_run(f, others[i], &options);
        const size_t length = written.length;
        options.is_short = true;
        export_run(f, others[i], &options);
        assert_true(written.length < length);
    }
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
    assert_int_equal(ptowsp_run_size_transients(f->run, &sizes), PTOWSP_OK);
    assert_int_equal(
        ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, &options, written_output()),
        PTOWSP_OK);
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

// A scalar has the name of its parameter, and its sign by its type.
TEST_F(options__name_scalars) {
    static const char text[] =
        "module m\n"
        "axis n 1\n"
        "kernel w(axes 2, id u64, step i64, is_last bool) vector, 3 cycles, time only\n"
        "kernel plain(axes 0) vector, 2 cycles, time only\n"
        "workload main\n"
        "  parallel width in n\n"
        "    task w(width, width - 3) id = 18446744073709551615u step = -7 is_last = true\n"
        "  task plain()\n";
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS};
    execute_text(f, text, NULL, &record, NULL);
    export_run(f, PTOWSP_EXPORT_CSV, NULL);
    has("\"w\",\"width=0 axis1=-3 id=18446744073709551615 step=-7 is_last=1\",");
    has("\"plain\",\"\",");
    char line[128];
    ptowsp_output_buffer buffer = {line, sizeof line, 0};
    const ptowsp_task_trace task = ptowsp_run_trace_at(f->run, 0);
    ptowsp_run_print_task(f->run, &task, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(line, "w width=0 axis1=-3 id=18446744073709551615 step=-7 is_last=1");
    // Where no task has a value, no words have been recorded.
    static const char none[] = "module m\n"
                               "kernel plain(axes 0) vector, 2 cycles, time only\n"
                               "workload main\n"
                               "  task plain()\n";
    execute_text(f, none, NULL, &record, NULL);
    export_run(f, PTOWSP_EXPORT_SVG, NULL);
    has("<title>plain\ntask 0: 0 to 2</title>");
    has(">2 cycles, 1 task, 1 lane, ");
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

// With many cycles in a nanosecond, tasks begin and end in the same one, and so do flows between them.
TEST_F(options__have_flows_of_short_tasks) {
    static const char text[] = "module m\n"
                               "tensor x i32 [4, 8] global\n"
                               "kernel w(axes 0, inout t i32 1 x 8) vector, 3 cycles, time only\n"
                               "workload main\n"
                               "  task w() t = x\n"
                               "  task w() t = x\n";
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    execute_text(f, text, NULL, &record, NULL);
    ptowsp_export_options options = {.clock_mhz = 3000};  // 1 ns each
    export_run(f, PTOWSP_EXPORT_CHROME, &options);
    has("\"id\":1,\"pid\":1,\"tid\":1,\"ts\":0.000}");
    has("\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"critical\",\"name\":\"critical\",\"id\":1,"
        "\"pid\":1,\"tid\":1,\"ts\":0.001}");
    options.clock_mhz = 100000;
    export_run(f, PTOWSP_EXPORT_CHROME, &options);
    has("\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"critical\",\"name\":\"critical\",\"id\":1,"
        "\"pid\":1,\"tid\":1,\"ts\":0.000}");
}

// Tiles of tensors of three dimensions say where their matrix is; hazards are by who reads and who writes.
TEST_F(options__say_tiles_of_edges) {
    static const char text[] = "module m\n"
                               "tensor x i32 [3, 4, 8] global\n"
                               "kernel get(axes 0, in t i32 1 x 8) vector, 3 cycles, time only\n"
                               "kernel put(axes 0, out t i32 1 x 8) vector, 3 cycles, time only\n"
                               "kernel idle(axes 0) vector, 3 cycles, time only\n"
                               "workload main\n"
                               "  task get() t = x[2] at (1, 0)\n"
                               "  task put() t = x[2] at (1, 0)\n"
                               "  task put() t = x[2] at (1, 0)\n"
                               "  when false\n"
                               "    task idle()\n";
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    execute_text(f, text, NULL, &record, NULL);
    export_run(f, PTOWSP_EXPORT_EDGES, NULL);
    // Two matrices of 32 elements are before it.
    has(" x, 1 x 8 at (1, 0) + 64, here 1 x 8 at (1, 0) + 64, write after read\n");
    has(" x, 1 x 8 at (1, 0) + 64, here 1 x 8 at (1, 0) + 64, write after write\n");
    // Folded, a kernel whose tasks did not run is no node.
    const ptowsp_export_options options = {.fold = PTOWSP_FOLD_KERNELS};
    export_run(f, PTOWSP_EXPORT_DOT, &options);
    has("[label=\"put\\n2 tasks\"]");
    has("[label=\"get\\n1 task\"]");
    has_not("idle");
}

// Bars of transient tensors: one without bytes has none, and one that is too low or too narrow for its
// name has no text.
TEST_F(options__draw_transient_tensors) {
    static const char text[] = "module m\n"
                               "symbol rows\n"
                               "tensor large i32 [1000, 8] global transient\n"
                               "tensor low i32 [1, 8] global transient\n"
                               "tensor empty i32 [i64(rows), 8] global transient\n"
                               "kernel put(axes 0, out t i32 ? x 8) vector, 2 cycles, time only\n"
                               "kernel use(axes 0, in t i32 ? x 8) vector, 2 cycles, time only\n"
                               "workload main\n"
                               "  task put() t = large\n"
                               "  task put() t = low\n"
                               "  task put() t = empty\n"
                               "  task use() t = empty\n"
                               "  task use() t = low\n"
                               "  task use() t = large\n";
    ptowsp_transient_sizes sizes;
    program_make(f, text, NULL, NULL);
    assert_int_equal(ptowsp_run_bind_symbol(f->run, "rows", 0), PTOWSP_OK);
    assert_int_equal(ptowsp_run_size_transients(f->run, &sizes), PTOWSP_OK);
    assert_int_equal(sizes.peak, 32000 + 64);  // each begins at a multiple of 64
    assert_int_equal(
        ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, NULL, written_output()), PTOWSP_OK);
    has("<title>large: 32000 bytes at ");
    has("<title>low: 64 bytes at ");
    has_not("<title>empty: ");
    has(">large</text>");
    has_not(">low</text>");
    assert_int_equal(
        ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_CSV, NULL, written_output()), PTOWSP_OK);
    has("\"empty\",0,0,");
    // All of them may be empty.
    static const char nothing[] =
        "module m\n"
        "symbol rows\n"
        "tensor empty i32 [i64(rows), 8] global transient\n"
        "kernel put(axes 0, out t i32 ? x 8) vector, 2 cycles, time only\n"
        "workload main\n"
        "  task put() t = empty\n";
    fixture_clear(f);
    program_make(f, nothing, NULL, NULL);
    assert_int_equal(ptowsp_run_bind_symbol(f->run, "rows", 0), PTOWSP_OK);
    assert_int_equal(ptowsp_run_size_transients(f->run, &sizes), PTOWSP_OK);
    assert_int_equal(
        ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, NULL, written_output()), PTOWSP_OK);
    has(": 0 bytes in one block, 0 each alone, 0 alive at most</text>");
    has_not("<title>empty: ");
}

// Kernels only are columns of a usage over time: where there are none, times alone.
TEST_F(options__have_usage_without_kernels) {
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_TOTALS};
    execute_text(f, "module m\nworkload main\n  combine\n", NULL, &record, NULL);
    export_run(f, PTOWSP_EXPORT_USAGE_CSV, NULL);
    assert_string_equal(written.text, "begin,end\r\n");
    const ptowsp_export_options wall = {.time = PTOWSP_TIME_WALL};
    assert_int_equal(ptowsp_run_export(f->run, PTOWSP_EXPORT_CHROME, &wall, written_output()),
                     PTOWSP_INVALID_PARAMS);
    assert_string_equal(ptowsp_context_error(f->context).text,
                        "export: the run has recorded no wall clock (has_clock)");
    assert_int_equal(ptowsp_run_export(f->run, PTOWSP_EXPORT_DOT, NULL, written_output()),
                     PTOWSP_INVALID_PARAMS);
    assert_string_equal(ptowsp_context_error(f->context).text,
                        "export: the run has recorded no edges (PTOWSP_RECORD_EDGES)");
    assert_int_equal(
        ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, NULL, written_output()),
        PTOWSP_INVALID_PARAMS);
    assert_string_equal(ptowsp_context_error(f->context).text,
                        "export: there are no transient tensors");
}

// Processes that are one of several have their number.
TEST_F(options__name_each_replica) {
    execute(f, PTOWSP_RECORD_EDGES);
    export_run(f, PTOWSP_EXPORT_CHROME, NULL);
    has("a[0]");
    has("a[1]");
}

// A report draws a run that has been recorded and has as many lanes as may be drawn.
TEST_F(options__leave_pictures_out) {
    ptowsp_export_options options = {0};
    execute(f, PTOWSP_RECORD_TOTALS);
    for (uint32_t is_recorded = 0; is_recorded < 2; is_recorded++) {
        for (options.lane_max = 0; options.lane_max < 2; options.lane_max++) {
            assert_int_equal(
                ptowsp_run_report(f->run, PTOWSP_REPORT_HTML, &options, NULL, 0, written_output()),
                PTOWSP_OK);
            assert_int_equal(count_of("<rect", 5) > 0, is_recorded && options.lane_max == 0);
        }
        const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS};
        const ptowsp_run_options run = {.mode = PTOWSP_RUN_TIME_ONLY};
        assert_int_equal(ptowsp_run_record(f->run, &record), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f->run, &run), PTOWSP_OK);
    }
}
