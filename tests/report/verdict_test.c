// Verdicts of reports, on programs whose times are worked out on paper: what limits a run, what would
// help, what cannot, and what looks like a mistake. More of them are cases (verdicts.case).

#include "report_text.h"
#include "test.h"

typedef struct verdict {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    char text[200000];
} verdict;

static verdict v;

// Makes a program of a text, binds `n`, and executes it with records of a level.
static void make(const char *text, const ptowsp_schedule *schedule, int64_t n,
                 ptowsp_record_level level) {
    const ptowsp_program_desc desc = {NULL, schedule};
    const ptowsp_record_options records = {level, 0, 0, 0, false};
    memset(&v, 0, sizeof v);
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    assert_int_equal(ptowsp_context_create(NULL, &v.context), PTOWSP_OK);
    ptowsp_status status = ptowsp_module_parse(v.context, text, strlen(text), NULL, &v.m, NULL);
    if (status == PTOWSP_OK) {
        status = ptowsp_program_create(v.context, v.m, &desc, &v.program);
    }
    if (status == PTOWSP_OK) {
        status = ptowsp_run_create(v.context, v.program, &v.run);
    }
    if (status == PTOWSP_OK) {
        status = ptowsp_run_bind_size(v.run, "n", n);
    }
    if (status == PTOWSP_OK) {
        status = ptowsp_run_record(v.run, &records);
    }
    if (status == PTOWSP_OK) {
        status = ptowsp_run_execute(v.run, &options);
    }
    if (status != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(v.context).text);
    }
}

static const char *report(ptowsp_report_format format, const ptowsp_what_if *what, uint32_t count) {
    ptowsp_output_buffer out = {v.text, sizeof v.text, 0};
    const ptowsp_output sink = {text_take, &out};
    v.text[0] = '\0';
    assert_int_equal(ptowsp_run_report(v.run, format, NULL, what, count, sink), PTOWSP_OK);
    return v.text;
}

// Are these the lines between the title and the table of bounds?
static void verdict_is(const char *lines) {
    const char *text = report(PTOWSP_REPORT_TEXT, NULL, 0);
    const char *begin = strchr(text, '\n') + 1;
    const char *end = strstr(text, "lower bounds, of the makespan\n");
    assert_non_null(end);
    char found[8192];
    assert_true((size_t)(end - begin) < sizeof found);
    memcpy(found, begin, (size_t)(end - begin));
    found[end - begin] = '\0';
    assert_string_equal(found, lines);
}

static void done(void) {
    test_destroy(v.run, v.program, v.m, v.context);
}

#define INDEPENDENT                                                                                \
    "module m\naxis n dynamic\nkernel a(axes 1) vector, 1000 cycles, time only\n"                  \
    "workload w\n  parallel i in n\n    task a(i)\n"

static ptowsp_schedule lanes(uint32_t count) {
    ptowsp_schedule schedule = {.lane_count = count};
    return schedule;
}

// Nine tasks of 1,000 on two lanes: 5 and 4 of them. Half of 9,000 is 4,500, 90 % of 5,000.
TEST(verdict__full_lanes_limit) {
    ptowsp_schedule schedule = lanes(2);
    make(INDEPENDENT, &schedule, 9, PTOWSP_RECORD_TASKS);
    verdict_is(
        "The work of the lanes takes 4,500 of 5,000 cycles (90.0 %) and limits this run. More "
        "lanes or faster kernels help.\n"
        "A better schedule of the same tasks gains 10.0 % at most (500 cycles).\n"
        "Kernel a has 100.0 % of the critical path: 10 % fewer cycles shorten it by 500 cycles.\n"
        "Lanes have nothing left for 10.0 % of their time: the last tasks are too few or too "
        "long.\n");
    const ptowsp_what_if what[2] = {{1, 80, 4000, 0}, {1, 50, 2500, 0}};
    assert_non_null(strstr(report(PTOWSP_REPORT_TEXT, what, 2),
                           "With kernel a at 50 % of its cycles the run takes 2,500 cycles, 50.0 % "
                           "less.\n"));
    done();
}

// A window of one task: the lanes wait for it.
TEST(verdict__a_small_window_is_what_lanes_wait_for) {
    ptowsp_schedule schedule = lanes(4);
    schedule.window = 1;
    make(INDEPENDENT, &schedule, 8, PTOWSP_RECORD_TASKS);
    assert_non_null(strstr(report(PTOWSP_REPORT_TEXT, NULL, 0),
                           "waiting for room in the window. A larger window helps.\n"));
    assert_non_null(strstr(report(PTOWSP_REPORT_JSON, NULL, 0), "\"limit\":\"waiting\",\n"));
    done();
}

// Each task writes a row of its own, but FOR_EACH runs them one after another.
TEST(verdict__barriers_without_data_are_counted) {
    ptowsp_schedule schedule = lanes(4);
    const char *const orders[2] = {"0, 0", "i, 0"};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "module m\naxis n dynamic\ntensor t f32 [?, 8] global\n"
                 "kernel a(axes 1, inout x f32 1 x 8) vector, 1000 cycles, time only\n"
                 "workload w\n  for_each i in n\n    task a(i) x = t at (%s)\n",
                 orders[i]);
        const ptowsp_program_desc desc = {NULL, &schedule};
        const ptowsp_record_options records = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};
        memset(&v, 0, sizeof v);
        ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        assert_int_equal(ptowsp_context_create(NULL, &v.context), PTOWSP_OK);
        if (ptowsp_module_parse(v.context, text, strlen(text), NULL, &v.m, NULL) != PTOWSP_OK) {
            fail_msg("%s", ptowsp_context_error(v.context).text);
        }
        assert_int_equal(ptowsp_program_create(v.context, v.m, &desc, &v.program), PTOWSP_OK);
        assert_int_equal(ptowsp_run_create(v.context, v.program, &v.run), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_size(v.run, "n", 6), PTOWSP_OK);
        static float data[6][8];
        ptowsp_buffer buffer = {0};
        buffer.data = data, buffer.size = sizeof data, buffer.rank = 2, buffer.dtype = PTOWSP_F32;
        buffer.shape[0] = 6, buffer.shape[1] = 8;
        assert_int_equal(ptowsp_run_bind_tensor(v.run, "t", &buffer), PTOWSP_OK);
        assert_int_equal(ptowsp_run_record(v.run, &records), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(v.run, &options), PTOWSP_OK);
        const char *found = strstr(report(PTOWSP_REPORT_TEXT, NULL, 0),
                                   "\n5 of 5 steps of the critical path wait for structure alone");
        assert_int_equal(found != NULL, i == 1);
        done();
    }
}

// Three tokens through a channel of latency 1,000 and depth 1: the sender's task takes 10 cycles.
TEST(verdict__processes_and_channels_are_named) {
    make("module m\naxis n dynamic\nkernel load(axes 0) vector, 10 cycles, time only\n"
         "kernel use(axes 0) vector, 10 cycles, time only\n"
         "workload w\n  pipeline p\n    channel \"to <b>\" depth 1 latency 1000\n"
         "    process first produces \"to <b>\"\n      for_each i in n\n        task load()\n"
         "        send \"to <b>\"(i)\n"
         "    process second consumes \"to <b>\"\n      consume t from \"to <b>\"\n"
         "        task use()\n",
         NULL, 50, PTOWSP_RECORD_TASKS);
    const char *text = report(PTOWSP_REPORT_TEXT, NULL, 0);
    assert_non_null(strstr(text, "The latency of channel to <b> takes 50,000 of "));
    assert_non_null(strstr(text, " and limits this run. A deeper channel helps.\n"));
    assert_non_null(strstr(report(PTOWSP_REPORT_HTML, NULL, 0),
                           "<p><b>The latency of channel to &lt;b&gt; takes 50,000 of "));
    assert_non_null(
        strstr(report(PTOWSP_REPORT_JSON, NULL, 0),
               "\"limit\":\"channel\",\n\"verdict\":[\n\"The latency of channel to <b> takes "));
    done();
    make("module m\naxis n dynamic\nkernel load(axes 0) vector, 10 cycles, time only\n"
         "kernel use(axes 0) vector, 100 cycles, time only\n"
         "workload w\n  pipeline p\n    channel c depth 4 latency 1\n"
         "    process first produces c\n      for_each i in n\n        task load()\n        send "
         "c(i)\n"
         "    process second consumes c\n      consume t from c\n        task use()\n",
         NULL, 50, PTOWSP_RECORD_TASKS);
    assert_non_null(
        strstr(report(PTOWSP_REPORT_TEXT, NULL, 0),
               "Process second, one task at a time, takes 5,000 of 5,011 cycles (99.8 %) and "
               "limits this run. More replicas or shorter tasks help.\n"));
    done();
}

// Nothing takes time: nothing is concluded.
TEST(verdict__of_no_time_is_empty) {
    make(INDEPENDENT, NULL, 0, PTOWSP_RECORD_TASKS);
    assert_non_null(
        strstr(report(PTOWSP_REPORT_JSON, NULL, 0), "\"limit\":\"\",\n\"verdict\":[],\n"));
    verdict_is("");
    done();
}
