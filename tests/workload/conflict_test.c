// Iterations of a parallel loop that write the same tile: what decisions and reports say, beside the time
// that the run takes on as many lanes as there are iterations.

#include "written.h"

typedef struct example {
    const char *body;
    uint64_t cycles;     // on 8 lanes
    const char *loop;    // NULL: no conflict
    const char *writer;  // that writes x
} example;

static const example examples[] = {
    {"  parallel i in n\n    task k(i) o = x\n", 80, "parallel i", "task k"},
    {"  parallel i in n\n    task k(i) o = x at (i * 2, 0)\n", 10, NULL, NULL},
    {"  parallel i in n\n    task k(i) o = x at (i - i, 0)\n", 80, NULL, NULL},  // not seen
    {"  for_each i in n\n    task k(i) o = x\n", 80, NULL, NULL},
    {"  parallel i in one\n    task k(i) o = x\n", 10, NULL, NULL},
    {"  parallel i in n\n    when i == 3\n      task k(i) o = x\n", 10, NULL, NULL},
    {"  parallel i in n\n    task r(i) i = x\n", 10, NULL, NULL},
    {"  parallel i in n\n    task k(i) o = x up to i + 1 rows\n", 80, NULL,
     NULL},  // tiles that meet
    // Each iteration writes both tiles, one after the other; the first ones are a chain of 8.
    {"  parallel i in n\n    sequence\n      for_each j in two\n        task k(i) o = x at (j * 2, "
     "0)\n",
     90, "parallel i", "task k"},
    {"  parallel i in n\n    parallel j in two\n      task k(i) o = x at (j * 2, 0)\n", 80,
     "parallel i", "task k"},
    // Lane 0 begins the second chain after the first task.
    {"  parallel i in two\n    parallel j in n\n      task k(i) o = x at (i * 2, 0)\n", 90,
     "parallel j", "task k"},
    {"  slot_set 0 = 2\n  parallel i in n\n    task k(i) o = x at (slot_i64[0], 0)\n", 80,
     "parallel i", "task k"},
    {"  parallel i in n\n    pipeline p\n      process a\n        task k(i) o = x at (i * 2, 0)\n",
     80, "parallel i", "pipeline p"}};

static void make(fixture *f, const char *body, uint32_t hazards) {
    static char text[2000];
    ptowsp_schedule schedule = {
        .issue = PTOWSP_ISSUE_DATAFLOW, .lane_count = 8, .hazards = hazards};
    snprintf(text, sizeof text,
             "module m\naxis n 8\naxis two 2\naxis one 1\ntensor x f32 [16, 8] global\n"
             "kernel k(axes 1, out o f32 2 x 8) vector, 10 cycles, time only\n"
             "kernel r(axes 1, in i f32 2 x 8) vector, 10 cycles, time only\n"
             "workload w\n%s",
             body);
    const ptowsp_record_options record = {PTOWSP_RECORD_TASKS, 0, 0, 0, false};
    execute_text(f, text, &schedule, &record, NULL);
}

TEST_F(conflict__iterations_that_write_one_tile_are_named) {
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const example *e = &examples[i];
        char expected[200] = "conflict on";
        make(f, e->body, 0);
        if (ptowsp_run_result(f->run)->makespan_cycles != e->cycles) {
            fail_msg("%d cycles of\n%s", (int)ptowsp_run_result(f->run)->makespan_cycles, e->body);
        }
        written_good(f, ptowsp_run_export_decisions(f->run, PTOWSP_REPORT_TEXT, written_output()));
        if (e->loop) {
            snprintf(
                expected, sizeof expected,
                "%s: iterations conflict on tensor x: they run one after another; %s writes the "
                "same tile in each\n",
                e->loop, e->writer);
        }
        has_times(e->loop != NULL, expected);
        has_times(e->loop != NULL, "conflict on");
        if (e->loop) {
            snprintf(expected, sizeof expected,
                     "iterations of %s conflict on tensor x, which %s writes in each: they run one "
                     "after another",
                     e->loop, e->writer);
        }
        report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
        has_times(e->loop != NULL, expected);
        report_run(f, PTOWSP_REPORT_HTML, NULL, 0);
        has_times(e->loop != NULL, expected);
        if (e->loop) {
            snprintf(expected, sizeof expected,
                     "\"conflicts\":[\n{\"loop\":\"%s\",\"tensor\":\"x\",\"task\":\"%s\"}]",
                     e->loop, e->writer);
        } else {
            snprintf(expected, sizeof expected, "\"conflicts\":[]");
        }
        report_run(f, PTOWSP_REPORT_JSON, NULL, 0);
        has_times(1, expected);
        // Without a window there is no number of tasks in flight.
        has_times(1, "\"in_flight_max\":null");
        report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
        has_times(0, "in flight");
    }
}

// Where writers do not wait for writers, nothing orders them.
TEST_F(conflict__of_iterations_that_do_not_wait_is_said) {
    make(f, examples[0].body, PTOWSP_HAZARD_RAW);
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 10);
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has_times(1, "iterations of parallel i conflict on tensor x, which task k writes in each: "
                 "they run in no order, as the schedule leaves this dependency out\n");
}

static bool stop(void *user, const ptowsp_decision *decision) {
    (*(uint32_t *)user)++;
    return strstr(decision->chosen, "conflict") == NULL;
}

TEST_F(conflict__is_the_last_decision_of_a_visitor_that_stops_there) {
    make(f, "  parallel i in n\n    task k(i) o = x\n    task k(i) o = x\n", 0);
    uint32_t count = 0;
    assert_false(ptowsp_run_decisions(f->run, stop, &count));
    assert_int_equal(count, 2);  // the kernel, and the first of two conflicts
}
