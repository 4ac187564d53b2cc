// Exports, read back by readers that know only the formats: a reader of protobuf's wire format by
// Perfetto's published field numbers, and python3's json, xml and csv modules where there is python3.
// What they read is compared with the records of the run.

#define _GNU_SOURCE  // popen

#include "src/report/label.h"
#include "see_fixture.h"
#include "support/files.h"
#include "trace_reader.h"

#include <inttypes.h>

static ptowsp_status export_to(const see *s, ptowsp_export_format format,
                               const ptowsp_export_options *options) {
    return ptowsp_run_export(s->run, format, options, written_output());
}

static ptowsp_schedule lanes(uint32_t count) {
    ptowsp_schedule schedule = {.lane_count = count};
    return schedule;
}

// Each task is a slice with its name and times, on its lane, and slices of a track do not overlap.
static void check_perfetto(see *s, bool is_short) {
    static reader r;
    ptowsp_export_options options = {.is_short = is_short};
    assert_ok(export_to(s, PTOWSP_EXPORT_PERFETTO, &options));
    read_trace(&r);
    uint64_t count = ptowsp_run_trace_count(s->run), path_count, found = 0;
    assert_int_equal(r.count, count);
    for (int i = 0; i < r.count; i++) {
        for (int j = i - 1; j >= 0; j--) {
            if (r.slices[j].track == r.slices[i].track) {
                assert_true(r.slices[j].end <= r.slices[i].begin);
                break;
            }
        }
    }
    for (uint64_t t = 0; t < count; t++) {
        char label[200], lane[32];
        ptowsp_output_buffer buffer = {label, sizeof label, 0};
        ptowsp_task_trace task = ptowsp_run_trace_at(s->run, t);
        const char *kernel = ptowsp_program_kernel_name(s->program, task.record->kernel);
        ptowsp_run_print_task(s->run, &task, ptowsp_output_to_buffer(&buffer));
        snprintf(lane, sizeof lane, "lane %u", task.record->lane);
        for (int i = 0; i < r.count; i++) {
            const slice *at = &r.slices[i];
            bool is_named = strcmp(at->name, is_short ? kernel : label) == 0 &&
                            (is_short || strcmp(at->category, kernel) == 0);
            bool is_on =
                task.record->lane == PTOWSP_NO_LANE || strcmp(track_name(&r, at->track), lane) == 0;
            if (is_named && is_on && at->begin == task.record->start &&
                at->end == task.record->end && !at->is_open) {
                found++;
                break;
            }
        }
    }
    assert_int_equal(found, count);
    ptowsp_run_critical_path(s->run, &path_count);
    assert_int_equal(r.flow_count, path_count ? path_count - 1 : 0);
    for (int i = 1; i <= r.flow_count; i++) {
        const slice *from = &r.slices[r.flow_from[i] - 1], *to = &r.slices[r.flow_to[i] - 1];
        assert_true(r.flow_from[i] && r.flow_to[i] && from->end <= to->begin);
    }
    double busy = (double)ptowsp_run_result(s->run)->busy_cycles;
    assert_true(r.counter_area > busy * 0.999 - 1 && r.counter_area < busy * 1.001 + 1);
}

TEST(export__perfetto_has_every_task_as_a_slice_on_its_lane) {
    for (uint32_t i = 1; i < 5; i++) {
        see s = {0};
        ptowsp_schedule schedule = lanes(i);
        schedule.dispatch = i == 4 ? PTOWSP_DISPATCH_WORK_STEALING : PTOWSP_DISPATCH_DEFAULT;
        schedule.ready = PTOWSP_READY_FIFO;
        see_make(&s, &schedule, 40);
        see_run_tasks(&s);
        check_perfetto(&s, false);
        check_perfetto(&s, true);
        see_free(&s);
    }
}

// Labels of 50 to 76 bytes, and packets of up to more than 127: lengths of one byte, and of two.
TEST(export__perfetto_has_labels_of_any_length) {
    for (int length = 26; length <= 52; length++) {
        see s = {0};
        char name[64];
        memset(name, 'x', sizeof name);
        name[length] = '\0';
        s.attend_name = name;
        ptowsp_schedule schedule = lanes(3);
        see_make(&s, &schedule, 4);
        see_run_tasks(&s);
        check_perfetto(&s, false);
        check_perfetto(&s, true);
        see_free(&s);
    }
}

TEST_MADE(export__perfetto_has_processes, see, s, see_make_pipeline(s), see_free(s)) {
    static reader r;
    see_run_tasks(s);
    check_perfetto(s, false);
    assert_ok(export_to(s, PTOWSP_EXPORT_PERFETTO, NULL));
    read_trace(&r);
    int loads = 0;
    for (int i = 0; i < r.count; i++) {
        bool is_load = strncmp(r.slices[i].name, "load ", 5) == 0;
        loads += is_load && strcmp(track_name(&r, r.slices[i].track), "load") == 0;
    }
    assert_int_equal(loads, 4);
}

// -- python ---------------------------------------------------------------------------------------

// One python3 for all exports runs a reader for each line of arguments, and says how it went.
static FILE *python;
static int answers[2];

static bool has_python(void) {
    char command[500];
    if (!python && system("python3 -c 'import json' > /dev/null 2>&1") == 0) {
        assert_int_equal(pipe(answers), 0);
        snprintf(command, sizeof command, "exec python3 tests/report/export_answer.py %d",
                 answers[1]);
        python = popen(command, "w");
        close(answers[1]);
    }
    return python != NULL;
}

// In place of processes: tasks by the wall clock.
static const char *const by_wall[] = {NULL};

// Tasks that run in [begin, end).
static void write_expected_in(see *s, const char *const *processes, uint64_t begin, uint64_t end) {
    FILE *file = fopen("build/export_expected.txt", "w");
    assert_non_null(file);
    for (uint64_t i = 0; i < ptowsp_run_trace_count(s->run); i++) {
        char label[400], lane[32];
        ptowsp_output_buffer buffer = {label, sizeof label, 0};
        ptowsp_task_trace task = ptowsp_run_trace_at(s->run, i);
        ptowsp_run_print_task(s->run, &task, ptowsp_output_to_buffer(&buffer));
        task.record = processes == by_wall ? ptowsp_run_clock_at(s->run, i) : task.record;
        snprintf(lane, sizeof lane, "lane %u", task.record->lane);
        if (begin && (task.record->end <= begin || task.record->start >= end)) {
            continue;
        }
        fprintf(file, "%llu|%s|%s|%llu|%llu|%s|%llu\n", (unsigned long long)task.index, label,
                task.record->lane == PTOWSP_NO_LANE ? processes[task.record->kernel] : lane,
                (unsigned long long)task.record->start, (unsigned long long)task.record->end,
                ptowsp_stall_name(task.record->stall), (unsigned long long)task.bytes_written);
    }
    fclose(file);
}

static void write_expected(see *s, const char *const *processes) {
    write_expected_in(s, processes, 0, UINT64_MAX);
}

static void check_python(see *s, const char *kind, ptowsp_export_format format,
                         const ptowsp_export_options *options, const char *more) {
    char answer = 'n';
    if (!has_python()) {
        skip();
    }
    if (export_to(s, format, options) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(s->context).text);
    }
    file_write("build/export_test.out", written.text, written.length);
    fprintf(python, "%s %s\n", kind, more);
    fflush(python);
    assert_true(read(answers[0], &answer, 1) == 1 && answer == 'y');
}

static void check_all(see *s, const char *const *processes) {
    ptowsp_export_options options = {
        .title = "a \"title\" <&> \\ with \x01 \t and \xc3\xa9 \xff \xed\xa0\x80 end"};
    write_expected(s, processes);
    check_python(s, "json", PTOWSP_EXPORT_CHROME, &options, "");
    check_python(s, "csv", PTOWSP_EXPORT_CSV, &options, "");
    check_python(s, "table", PTOWSP_EXPORT_TABLE, &options, "");
    for (int theme = 0; theme < 3; theme++) {
        options.theme = (ptowsp_theme)theme;
        check_python(s, "svg", PTOWSP_EXPORT_SVG, &options, "'critical path' title");
    }
}

TEST(export__json_csv_table_and_svg_say_what_the_run_did) {
    for (int i = 0; i < 2; i++) {
        see s = {0};
        ptowsp_schedule schedule = lanes(3);
        schedule.dispatch = i ? PTOWSP_DISPATCH_WORK_STEALING : PTOWSP_DISPATCH_DEFAULT;
        s.attend_name = "at<te&nd>";
        s.merge_name = "merge, ]]>;,%";
        see_make(&s, &schedule, 9);
        see_run_tasks(&s);
        check_all(&s, NULL);
        see_free(&s);
    }
    see s = {0};
    static const char *const processes[] = {"", "load", "compute"};
    see_make_pipeline(&s);
    see_run_tasks(&s);
    check_all(&s, processes);
    see_free(&s);
}

// The bytes of each bin and kernel add up to those of the run.
SEE_TEST(export__usage_adds_up, 3, 200) {
    const ptowsp_record_options totals = {PTOWSP_RECORD_TOTALS, 0, 0, 0, false};
    see_run(s, &totals);
    assert_ok(export_to(s, PTOWSP_EXPORT_USAGE_CSV, NULL));
    char *line = strstr(written.text, "\r\n");
    assert_int_equal(strncmp(written.text, "begin,end,\"attend\",\"merge\"\r\n", 28), 0);
    unsigned long long end = 0, from, to, attend, merge, sums[2] = {0, 0};
    int rows = 0;
    for (; line[2] != '\0'; line = strstr(line + 2, "\r\n")) {
        assert_int_equal(sscanf(line + 2, "%llu,%llu,%llu,%llu", &from, &to, &attend, &merge), 4);
        assert_true(from == end && attend + merge <= 3 * (to - from));
        end = to;
        sums[0] += attend;
        sums[1] += merge;
        rows++;
    }
    assert_int_equal(end, ptowsp_run_result(s->run)->makespan_cycles);
    assert_int_equal(sums[0], 200 * 33 + 3 * 19900);
    assert_int_equal(sums[1], 800);
    assert_in_range(rows, 256, 512);
    assert_ok(export_to(s, PTOWSP_EXPORT_PERFETTO, NULL));
    test_refused(s->context, export_to(s, PTOWSP_EXPORT_SVG, NULL), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "export: the run has recorded no tasks (PTOWSP_RECORD_TASKS)");
}

// Both times in one file, for readers of either; and the wall clock alone.
TEST(export__have_the_wall_clock_as_well) {
    static reader r;
    see s = {0};
    ptowsp_schedule schedule = lanes(3);
    ptowsp_record_options record = {PTOWSP_RECORD_TASKS, 0, 0, 0, true};
    ptowsp_run_options how = {0};
    ptowsp_export_options options = {0};
    s.context_desc.threads = PTOWSP_THREADS_OWN;
    s.context_desc.lane_count = how.lane_count = 2;
    see_make(&s, &schedule, 12);
    assert_ok(ptowsp_run_record(s.run, &record));
    assert_ok(ptowsp_run_execute(s.run, &how));
    options.time = PTOWSP_TIME_BOTH;
    write_expected(&s, NULL);
    check_python(&s, "json", PTOWSP_EXPORT_CHROME, &options, "1 2");
    write_expected(&s, by_wall);
    check_python(&s, "json", PTOWSP_EXPORT_CHROME, &options, "3 3");
    assert_ok(export_to(&s, PTOWSP_EXPORT_PERFETTO, &options));
    read_trace(&r);
    uint64_t count = ptowsp_run_trace_count(s.run);
    assert_int_equal(r.count, 2 * count);
    for (uint64_t t = 0; t < 2 * count; t++) {
        const ptowsp_task_record *at = t < count ? ptowsp_run_trace_at(s.run, t).record
                                                 : ptowsp_run_clock_at(s.run, t - count);
        char lane[32];
        int found = 0;
        snprintf(lane, sizeof lane, "lane %u", at->lane);
        for (int i = t < count ? 0 : (int)count; i < (t < count ? (int)count : r.count); i++) {
            const slice *one = &r.slices[i];
            found += one->begin == at->start && one->end == at->end &&
                     strcmp(track_name(&r, one->track), lane) == 0;
        }
        assert_true(found >= 1);
    }
    options.time = PTOWSP_TIME_WALL;
    options.clock_mhz = 7;  // of simulated time alone
    check_python(&s, "json", PTOWSP_EXPORT_CHROME, &options, "3 3");
    check_python(&s, "csv", PTOWSP_EXPORT_CSV, &options, "");
    check_python(&s, "table", PTOWSP_EXPORT_TABLE, &options, "");
    options.width = 10000;
    assert_ok(export_to(&s, PTOWSP_EXPORT_SVG, &options));
    has_times(1, " ns, measured: 48 tasks, ");
    see_free(&s);
}

// Spans of one's own, in no order; the third did not run.
CONTEXT_TEST(export__spans_are_slices_of_a_trace) {
    static const char *const names[] = {"decode", "merge, \"all\""};
    static const ptowsp_span spans[] = {
        {1050, 1090, 1, 0}, {1000, 1040, 1, 0}, {0, 0, 0, 0}, {1060, 1200, 0, 1}};
    static reader r;
    ptowsp_span_set set = {.spans = spans, .count = 4, .names = names, .name_count = 2};
    assert_ok(ptowsp_spans_export(context, &set, PTOWSP_EXPORT_PERFETTO, NULL, written_output()));
    read_trace(&r);
    assert_int_equal(r.count, 3);
    assert_string_equal(r.slices[0].name, "merge, \"all\"");
    assert_int_equal(r.slices[0].begin, 60);
    assert_int_equal(r.slices[0].end, 200);
    assert_string_equal(track_name(&r, r.slices[2].track), "lane 1");
    assert_int_equal(r.slices[2].begin, 50);
    set.count = 0, set.name_count = 0;
    for (int format = 0; format <= PTOWSP_EXPORT_TABLE; format++) {  // nothing can be drawn
        assert_ok(ptowsp_spans_export(context, &set, (ptowsp_export_format)format, NULL,
                                      written_output()));
    }
}

SEE_TEST(export__zero_tasks_are_a_picture_of_nothing, 1, 0) {
    see_run_tasks(s);
    write_expected(s, NULL);
    check_perfetto(s, false);
    check_python(s, "json", PTOWSP_EXPORT_CHROME, NULL, "");
    check_python(s, "csv", PTOWSP_EXPORT_CSV, NULL, "");
    check_python(s, "svg", PTOWSP_EXPORT_SVG, NULL, "decode");
}

// A run that ends at the last cycle there is. (As doubles of microseconds its times are not exact,
// so JSON is not compared.)
TEST(export__times_are_exact_up_to_the_last_cycle) {
    see s = {0};
    ptowsp_schedule schedule = lanes(2);
    s.merge_cycles = PTOWSP_CYCLES_MAX - 22;  // attend for head 0 and 2 take 10 and 12
    see_make(&s, &schedule, 1);
    see_run_tasks(&s);
    assert_true(ptowsp_run_result(s.run)->makespan_cycles == PTOWSP_CYCLES_MAX);
    write_expected(&s, NULL);
    check_perfetto(&s, false);
    check_perfetto(&s, true);
    ptowsp_usage usage = ptowsp_run_usage(s.run);
    assert_in_range(usage.bin_count, 256, 512);
    check_python(&s, "csv", PTOWSP_EXPORT_CSV, NULL, "");
    assert_ok(export_to(&s, PTOWSP_EXPORT_CHROME, NULL));
    has("\"ts\":0.022,\"dur\":9223372036854775.785");
    assert_ok(export_to(&s, PTOWSP_EXPORT_SVG, NULL));
    has("9,223,372,036,854,775,807 cycles");
    has("<rect x=\"84\" width=\"859\" y=\"106\"");
    // From attend, which ends on lane 0, to merge, which begins on lane 1.
    has("<line x1=\"84\" x2=\"84\" y1=\"102\" y2=\"106\" class=\"c\"/>");
    see_free(&s);
}

SEE_TEST(export__a_picture_of_a_window_has_the_tasks_in_it, 3, 12) {
    ptowsp_export_options options = {0};
    see_run_tasks(s);
    for (uint64_t begin = 1; begin < 60; begin += 7) {
        options.begin = begin;
        options.end = begin + 23;
        write_expected_in(s, NULL, options.begin, options.end);
        check_python(s, "svg", PTOWSP_EXPORT_SVG, &options, "'drawn: '");
    }
}

// Lanes choose, and the window is full before all are issued.
TEST(export__a_failed_run_has_what_was_done) {
    static reader r;
    see s = {0};
    ptowsp_schedule schedule = lanes(2);
    const ptowsp_record_options tasks = {PTOWSP_RECORD_TASKS, 0, 0, 0, false};
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    schedule.window_policy = PTOWSP_WINDOW_ABORT;
    schedule.window = 8;
    ptowsp_run_options run = {.mode = PTOWSP_RUN_TIME_ONLY};
    see_make(&s, &schedule, 6);
    assert_ok(ptowsp_run_record(s.run, &tasks));
    assert_int_equal(ptowsp_run_execute(s.run, &run), PTOWSP_LIMIT_EXCEEDED);
    assert_int_equal(ptowsp_run_trace_count(s.run), 8);
    for (int format = 0; format <= PTOWSP_EXPORT_USAGE_CSV; format++) {
        assert_ok(export_to(&s, (ptowsp_export_format)format, NULL));
        if (format == PTOWSP_EXPORT_PERFETTO) {
            read_trace(&r);
            assert_true(r.count < 8);
        } else if (format == PTOWSP_EXPORT_CHROME) {
            has_times((uint32_t)r.count, "\"ph\":\"X\"");
        } else if (format == PTOWSP_EXPORT_CSV) {
            has_times(8 - (uint32_t)r.count, ",\"-\",");
        }
    }
    see_free(&s);
}

TEST(export__tasks_may_take_no_cycles) {
    see s = {0};
    s.is_free = true;
    see_make(&s, NULL, 2);
    see_run_tasks(&s);
    assert_int_equal(ptowsp_run_result(s.run)->makespan_cycles, 0);
    write_expected(&s, NULL);
    check_perfetto(&s, false);
    check_python(&s, "json", PTOWSP_EXPORT_CHROME, NULL, "");
    check_python(&s, "csv", PTOWSP_EXPORT_CSV, NULL, "");
    check_python(&s, "table", PTOWSP_EXPORT_TABLE, NULL, "");
    assert_ok(export_to(&s, PTOWSP_EXPORT_SVG, NULL));
    assert_ok(export_to(&s, PTOWSP_EXPORT_USAGE_CSV, NULL));
    assert_int_equal(written.length, strlen("begin,end,\"attend\",\"merge\"\r\n"));
    see_free(&s);
}

// 20,000 tasks in 320 pixels: what is narrow is drawn together, so the picture stays small.
SEE_TEST(export__a_picture_of_many_tasks_stays_small, 4, 4000) {
    see_run_tasks(s);
    assert_ok(export_to(s, PTOWSP_EXPORT_SVG, NULL));
    assert_in_range(written.length, 1000, 400000);
}

// Against the C library, at every number of digits.
TEST(export__numbers_have_all_their_digits) {
    uint64_t power = 1;
    for (int digits = 1; digits <= 20; digits++, power *= 10) {
        const uint64_t values[] = {power - 1, power, power + 1, power / 3 * 7, UINT64_MAX - power};
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            char own[24], expected[24];
            own[pwsp_label_u64(values[i], own)] = '\0';
            snprintf(expected, sizeof expected, "%" PRIu64, values[i]);
            assert_string_equal(own, expected);
        }
    }
}
