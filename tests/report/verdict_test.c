// Verdicts of reports, on programs whose times are worked out on paper: what limits a run, what would
// help, what cannot, and what looks like a mistake. More of them are cases (verdicts.case).

#include "written.h"

static const ptowsp_attention_plan *the_plan;  // that is bound to p, if any

// Makes a program of a text, or (NULL) of the module that has been built; binds `n` and tensors, and executes
// it with records of a level.
static void make(fixture *f, const char *text, const ptowsp_schedule *schedule, int64_t n,
                 ptowsp_record_level level) {
    static float data[64];
    const ptowsp_program_desc desc = {NULL, schedule};
    const ptowsp_record_options records = {level, 0, 0, 0, false};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_buffer rows = {.data = data, .rank = 2, .shape = {n, 8}};
    if (text) {
        fixture_clear(f);
    }
    program_make(f, text, NULL, &desc);
    (void)ptowsp_run_bind_size(f->run, "n", n);
    (void)ptowsp_run_bind_tensor(f->run, "t", &rows);
    (void)ptowsp_run_bind_tensor(f->run, "u", &rows);
    written_good(f, the_plan ? ptowsp_run_bind_plan(f->run, "p", the_plan) : PTOWSP_OK);
    written_good(f, ptowsp_run_record(f->run, &records));
    written_good(f, ptowsp_run_execute(f->run, &options));
}

static const char *report(const fixture *f, ptowsp_report_format format, const ptowsp_what_if *what,
                          uint32_t count) {
    report_run(f, format, what, count);
    return written.text;
}

// Are these the lines between the title and the table of bounds?
static void verdict_is(const fixture *f, const char *lines) {
    char *begin = strchr(report(f, PTOWSP_REPORT_TEXT, NULL, 0), '\n') + 1;
    char *end = strstr(begin, "lower bounds, of the makespan\n");
    assert_non_null(end);
    *end = '\0';
    assert_string_equal(begin, lines);
}

#define INDEPENDENT                                                                                \
    "module m\naxis n dynamic\nkernel a(axes 1) vector, 1000 cycles, time only\n"                  \
    "workload w\n  parallel i in n\n    task a(i)\n"

static ptowsp_schedule lanes(uint32_t count) {
    ptowsp_schedule schedule = {.lane_count = count};
    return schedule;
}

// Nine tasks of 1,000 on two lanes: 5 and 4 of them. Half of 9,000 is 4,500, 90 % of 5,000.
TEST_F(verdict__full_lanes_limit) {
    ptowsp_schedule schedule = lanes(2);
    make(f, INDEPENDENT, &schedule, 9, PTOWSP_RECORD_TASKS);
    verdict_is(
        f,
        "The work of the lanes takes 4,500 of 5,000 cycles (90.0 %) and limits this run. More "
        "lanes or faster kernels help.\n"
        "A better schedule of the same tasks gains 10.0 % at most (500 cycles).\n"
        "Kernel a has 100.0 % of the critical path: 10 % fewer cycles shorten it by 500 cycles.\n"
        "Lanes have nothing left for 10.0 % of their time: the last tasks are too few or too "
        "long.\n");
    const ptowsp_what_if what[2] = {{1, 80, 4000, 0}, {1, 50, 2500, 0}};
    report_run(f, PTOWSP_REPORT_TEXT, what, 2);
    has("With kernel a at 50 % of its cycles the run takes 2,500 cycles, 50.0 % "
        "less.\n");
}

#define PLANNED                                                                                    \
    "module m\naxis n dynamic\naxis p plan\nkernel a(axes 1) vector, 1000 cycles, time only\n"     \
    "workload w\n  combine\n    parallel i in p\n      task a(i)\n"                                \
    "    parallel j in n\n      task a(j)\n"

// Four units on lanes 0 to 3; twelve tasks beside them all go to lane 0, which works 13,000 cycles.
// A key spreads them: 4,000 cycles on each lane.
TEST_F(verdict__tasks_outside_a_plan_need_a_key) {
    enum { WHOLE = PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST };
    static ptowsp_work units[4] = {{PTOWSP_NO_SLOT, 0, WHOLE, 0, {0, 0, 0, 50}},
                                   {PTOWSP_NO_SLOT, 0, WHOLE, 0, {1, 0, 0, 50}},
                                   {PTOWSP_NO_SLOT, 0, WHOLE, 0, {2, 0, 0, 50}},
                                   {PTOWSP_NO_SLOT, 0, WHOLE, 0, {3, 0, 0, 50}}};
    static uint32_t unit_begin[5] = {0, 1, 2, 3, 4}, merge_begin[5];
    static const ptowsp_attention_plan plan = {.units = units,
                                               .unit_begin = unit_begin,
                                               .merge_begin = merge_begin,
                                               .unit_capacity = 4,
                                               .unit_count = 4,
                                               .lane_count = 4};
    ptowsp_schedule schedule = lanes(4);
    schedule.dispatch = PTOWSP_DISPATCH_PLAN;
    the_plan = &plan;
    make(f, PLANNED, &schedule, 12, PTOWSP_RECORD_TASKS);
    verdict_is(
        f,
        "Waiting limits this run: lanes are idle for 69.2 % of their time, with no task left. Give "
        "tasks outside the plan a dispatch_key.\n"
        "A better schedule of the same tasks gains 69.2 % at most (9,000 cycles).\n"
        "Kernel a has 100.0 % of the critical path: 10 % fewer cycles shorten it by 1,300 cycles.\n"
        "12 of 16 tasks run on lane 0: dispatch by plan has no dispatch_key for tasks outside the "
        "plan.\n");
    make(f, PLANNED, &schedule, 12,
         PTOWSP_RECORD_TOTALS);  // without records they may be of processes
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has("no task left. Split the last");
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has_not("dispatch_key");
    make(f, PLANNED, &schedule, 1, PTOWSP_RECORD_TASKS);  // a single task has to be on some lane
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has_not("dispatch_key");
    the_plan = NULL;
}

// A window of one task: the lanes wait for it.
TEST_F(verdict__a_small_window_is_what_lanes_wait_for) {
    ptowsp_schedule schedule = lanes(4);
    schedule.window = 1;
    make(f, INDEPENDENT, &schedule, 8, PTOWSP_RECORD_TASKS);
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has("waiting for room in the window. A larger window helps.\n");
    report_run(f, PTOWSP_REPORT_JSON, NULL, 0);
    has("\"limit\":\"waiting\",\n");
}

// Each task writes a row of its own, but FOR_EACH runs them one after another.
TEST_F(verdict__barriers_without_data_are_counted) {
    ptowsp_schedule schedule = lanes(4);
    const char *const orders[2] = {"0, 0", "i, 0"};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "module m\naxis n dynamic\ntensor t f32 [?, 8] global\n"
                 "kernel a(axes 1, inout x f32 1 x 8) vector, 1000 cycles, time only\n"
                 "workload w\n  for_each i in n\n    task a(i) x = t at (%s)\n",
                 orders[i]);
        make(f, text, &schedule, 6, PTOWSP_RECORD_EDGES);
        const char *found = strstr(report(f, PTOWSP_REPORT_TEXT, NULL, 0),
                                   "\n5 of 5 steps of the critical path wait for structure alone");
        assert_int_equal(found != NULL, i == 1);
    }
}

// An unnamed module is called by its workload. The cycles of a tile kernel follow from the model of the
// run's options, which the first line names.
TEST_F(verdict__the_first_line_names_the_model_of_tile_kernels) {
    static const struct {
        ptowsp_model model;
        const char *name;
    } models[] = {{PTOWSP_MODEL_UNIT, "unit"},
                  {PTOWSP_MODEL_A2A3, "a2a3"},
                  {PTOWSP_MODEL_910B, "910b"},
                  {PTOWSP_MODEL_950PR, "950pr"}};
    ptowsp_module *m = f->module = test_module(f->context, NULL);
    ptowsp_body_desc body = {.name = "twice"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &body);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 8);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 8, 8);
    ptowsp_tile_store(y, ptowsp_tile_add(x, x));
    const ptowsp_kernel twice = ptowsp_kernel_end(k);
    const ptowsp_tensor_desc tensors[] = {
        {.name = "t", .dtype = PTOWSP_F32, .rank = 2, .shape = {8, 8}},
        {.name = "u", .dtype = PTOWSP_F32, .rank = 2, .shape = {8, 8}}};
    const ptowsp_task_desc task = {.kernel = twice,
                                   .views = {{.tensor = ptowsp_tensor_make(m, &tensors[0])},
                                             {.tensor = ptowsp_tensor_make(m, &tensors[1])}}};
    PTOWSP_WORKLOAD(m, "step") {
        ptowsp_task_make(m, &task);
    }
    const ptowsp_schedule schedule = lanes(2);
    make(f, NULL, &schedule, 8, PTOWSP_RECORD_TASKS);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        ptowsp_kernel_stats stats;
        char line[128];
        options.cost.model = models[i].model;
        assert_int_equal(ptowsp_kernel_measure(m, twice, &options.cost, &stats), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
        const int cycles = (int)stats.cycles;
        assert_true(cycles < 1000000);
        const int length =
            cycles < 1000 ? snprintf(line, sizeof line, "%d", cycles)
                          : snprintf(line, sizeof line, "%d,%03d", cycles / 1000, cycles % 1000);
        snprintf(line + length, sizeof line - (size_t)length,
                 " cycles (model %s), 1 tasks, 2 lanes", models[i].name);
        const char *text = report(f, PTOWSP_REPORT_TEXT, NULL, 0);
        assert_memory_equal(text, "step: ", 6);
        assert_memory_equal(text + 6, line, strlen(line));
        assert_non_null(strstr(report(f, PTOWSP_REPORT_HTML, NULL, 0), line));
        snprintf(line, sizeof line, "\"model\":\"%s\",\n", models[i].name);
        assert_non_null(strstr(report(f, PTOWSP_REPORT_JSON, NULL, 0), line));
    }
    // Kernels with cycles of their own have no model. Their module has a name.
    const ptowsp_schedule two = lanes(2);
    make(f, INDEPENDENT, &two, 9, PTOWSP_RECORD_TASKS);
    assert_memory_equal(report(f, PTOWSP_REPORT_TEXT, NULL, 0),
                        "m: 5,000 cycles, 9 tasks, 2 lanes\n", 34);
    report_run(f, PTOWSP_REPORT_JSON, NULL, 0);
    has("\"model\":null,\n");
    const ptowsp_what_if what = {1, 80, 9868, 0};
    assert_non_null(strstr(report(f, PTOWSP_REPORT_TEXT, &what, 1), ":          9,868 cycles, "));
}

// Three tokens through a channel of latency 1,000 and depth 1: the sender's task takes 10 cycles.
TEST_F(verdict__processes_and_channels_are_named) {
    make(f,
         "module m\naxis n dynamic\nkernel load(axes 0) vector, 10 cycles, time only\n"
         "kernel use(axes 0) vector, 10 cycles, time only\n"
         "workload w\n  pipeline p\n    channel \"to <b>\" depth 1 latency 1000\n"
         "    process first produces \"to <b>\"\n      for_each i in n\n        task load()\n"
         "        send \"to <b>\"(i)\n"
         "    process second consumes \"to <b>\"\n      consume t from \"to <b>\"\n"
         "        task use()\n",
         NULL, 50, PTOWSP_RECORD_TASKS);
    const char *text = report(f, PTOWSP_REPORT_TEXT, NULL, 0);
    assert_non_null(strstr(text, "The latency of channel to <b> takes 50,000 of "));
    assert_non_null(strstr(text, " and limits this run. A deeper channel helps.\n"));
    report_run(f, PTOWSP_REPORT_HTML, NULL, 0);
    has("<p><b>The latency of channel to &lt;b&gt; takes 50,000 of ");
    report_run(f, PTOWSP_REPORT_JSON, NULL, 0);
    has("\"limit\":\"channel\",\n\"verdict\":[\n\"The latency of channel to <b> takes ");
    make(f,
         "module m\naxis n dynamic\nkernel load(axes 0) vector, 10 cycles, time only\n"
         "kernel use(axes 0) vector, 100 cycles, time only\n"
         "workload w\n  pipeline p\n    channel c depth 4 latency 1\n"
         "    process first produces c\n      for_each i in n\n        task load()\n        send "
         "c(i)\n"
         "    process second consumes c\n      consume t from c\n        task use()\n",
         NULL, 50, PTOWSP_RECORD_TASKS);
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has("Process second, one task at a time, takes 5,000 of 5,011 cycles (99.8 %) and "
        "limits this run. More replicas or shorter tasks help.\n");
}

// Nothing takes time: nothing is concluded.
TEST_F(verdict__of_no_time_is_empty) {
    make(f, INDEPENDENT, NULL, 0, PTOWSP_RECORD_TASKS);
    report_run(f, PTOWSP_REPORT_JSON, NULL, 0);
    has("\"limit\":\"\",\n\"verdict\":[],\n");
    verdict_is(f, "");
}
