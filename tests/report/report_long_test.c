// What is too long to be listed: processes, channels and steps beyond those that there is room for are counted
// instead. Lanes, tasks and times are cases (tests/cases/written.case).

#include "written.h"

enum { RING = 40 };

static char text[1 << 14];

// Executes the module that is in `text`, and prints the run.
static ptowsp_status run_printed(fixture *f) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    program_make(f, text, NULL, NULL);
    const ptowsp_status status = ptowsp_run_execute(f->run, &options);
    ptowsp_run_print(f->run, written_output());
    return status;
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

TEST_F(report__counts_processes_channels_and_steps_beyond_its_room) {
    write_ring(true);
    assert_ok(run_printed(f));
    // 32 of 40 are listed.
    has_times(32, "    process p");
    has("    ... 8 more processes\n");
    has_times(32, "    channel c");
    has("    ... 8 more channels\n");
    // The chain goes through all of them: what it has is 32 lines and a number.
    has("    critical chain of ");
    const char *chain = strstr(written.text, "    critical chain of ");
    const unsigned long long steps = strtoull(chain + 22, NULL, 10);
    assert_true(steps >= 2 * RING);
    char more[64];
    snprintf(more, sizeof more, "      ... %llu more\n", steps - 32);
    has(more);
}

TEST_F(report__counts_the_rest_of_a_long_deadlock) {
    write_ring(false);
    assert_int_equal(run_printed(f), PTOWSP_STUCK);
    assert_non_null(strstr(ptowsp_context_error(f->context).text, "stuck"));
    // A cycle names 16 of its processes.
    has("24 more -> p");
    has(": 40 of 40 processes wait\n");
}
