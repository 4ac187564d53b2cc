// Reports of what is too long to be listed: processes, channels, steps, tasks and lanes beyond those that
// a report has room for are counted instead. And of all kinds of kernels, on one page.

#include "program_fixture.h"

enum { TEXT_MAX = 1 << 20, RING = 40 };

static char text[TEXT_MAX];

// Compiles the module that is in `text`, and executes it.
static ptowsp_status execute(fixture *f, uint32_t lanes, bool has_records) {
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.lane_count = lanes;
    const ptowsp_program_desc desc = {NULL, &schedule};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = has_records};
    program_make(f, text, NULL, &desc);
    return ptowsp_run_execute(f->run, &options);
}

static void print(const fixture *f) {
    ptowsp_text_buffer buffer = {text, TEXT_MAX, 0};
    ptowsp_run_print(f->run, ptowsp_text_to_buffer(&buffer));
    assert_true(buffer.length < TEXT_MAX);
}

static void has(const char *part) {
    if (!strstr(text, part)) {
        fail_msg("\"%s\" is not in\n%s", part, text);
    }
}

// How many lines have a part.
static uint32_t lines_with(const char *part) {
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        count++;
    }
    return count;
}

// Processes that hand a token round; the first begins only if `is_good`, else each waits for the one
// before it. Each works for a cycle on what it gets.
static void write_ring(bool is_good) {
    char *at = text;
    at += sprintf(at, "module ring\nkernel w(axes 1) vector, 1 cycles, time only\n");
    at += sprintf(at, "workload main\n  pipeline p\n");
    for (int i = 0; i < RING; i++) {
        at += sprintf(at, "    channel c%d depth 1 latency 0\n", i);
    }
    for (int i = 0; i < RING; i++) {
        const int before = (i + RING - 1) % RING;
        at += sprintf(at, "    process p%d consumes c%d produces c%d\n", i, before, i);
        if (is_good && i == 0) {
            at += sprintf(at, "      send c0(0)\n      receive x from c%d\n        task w(x)\n",
                          before);
        } else {
            at += sprintf(at, "      receive x from c%d\n        task w(x)\n        send c%d(x)\n",
                          before, i);
        }
    }
}

static void report__counts_processes_channels_and_steps_beyond_its_room(void **state) {
    fixture *f = (fixture *)*state;
    write_ring(true);
    assert_int_equal(execute(f, 2, true), PTOWSP_OK);
    print(f);
    // 32 of 40 are listed.
    assert_int_equal(lines_with("    process p"), 32);
    has("    ... 8 more processes\n");
    assert_int_equal(lines_with("    channel c"), 32);
    has("    ... 8 more channels\n");
    // The chain goes through all of them: what it has is 32 lines and a number.
    has("    critical chain of ");
    const char *chain = strstr(text, "    critical chain of ");
    const unsigned long long steps = strtoull(chain + 22, NULL, 10);
    assert_true(steps >= 2 * RING);
    char more[64];
    snprintf(more, sizeof more, "      ... %llu more\n", steps - 32);
    has(more);
}

static void report__counts_the_rest_of_a_long_deadlock(void **state) {
    fixture *f = (fixture *)*state;
    write_ring(false);
    assert_int_equal(execute(f, 2, false), PTOWSP_STUCK);
    const char *error = ptowsp_context_error(f->context).text;
    if (!strstr(error, "stuck")) {
        fail_msg("%s", error);
    }
    print(f);
    // A cycle names 16 of its processes.
    has("24 more -> p");
    has(": 40 of 40 processes wait\n");
}

static void report__counts_lanes_and_tasks_beyond_its_room(void **state) {
    fixture *f = (fixture *)*state;
    char *at = text;
    at += sprintf(at, "module lanes\naxis n 50\nkernel w(axes 1) vector, 2 cycles, time only\n");
    at += sprintf(at, "workload main\n  for_each i in n\n    task w(i)\n");
    assert_int_equal(execute(f, 40, true), PTOWSP_OK);
    print(f);
    assert_int_equal(lines_with("  lane "), 32);
    has("  ... 8 more lanes\n");
    // One after another: 50 tasks of 2 cycles, of which 32 are listed.
    has("run of module lanes: 100 cycles, 50 tasks, 40 lanes");
    has("  critical path of 50 tasks\n");
    has("    ... 18 more\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(report__counts_processes_channels_and_steps_beyond_its_room,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(report__counts_the_rest_of_a_long_deadlock, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(report__counts_lanes_and_tasks_beyond_its_room, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
