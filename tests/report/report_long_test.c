// Reports of what is too long to be listed: processes, channels, steps, tasks and lanes beyond those that
// a report has room for are counted instead; of times that are none, or as long as there are; and of what
// is not in every run: collectives, a full window.

#include "written.h"

enum { RING = 40 };

static char text[1 << 14];

// Compiles the module that is in `text`, and executes it.
static ptowsp_status execute(fixture *f, uint32_t lanes, bool has_records) {
    ptowsp_schedule schedule = {.lane_count = lanes};
    const ptowsp_program_desc desc = {NULL, &schedule};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = has_records};
    program_make(f, text, NULL, &desc);
    return ptowsp_run_execute(f->run, &options);
}

static void print(const fixture *f) {
    ptowsp_run_print(f->run, written_output());
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
    assert_int_equal(execute(f, 2, true), PTOWSP_OK);
    print(f);
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

TEST_F(report__counts_lanes_and_tasks_beyond_its_room) {
    char *at = text;
    at += sprintf(at, "module lanes\naxis n 50\nkernel w(axes 1) vector, 2 cycles, time only\n");
    at += sprintf(at, "workload main\n  for_each i in n\n    task w(i)\n");
    assert_int_equal(execute(f, 40, true), PTOWSP_OK);
    print(f);
    has_times(32, "  lane ");
    has("  ... 8 more lanes\n");
    // One after another: 50 tasks of 2 cycles, of which 32 are listed.
    has("run of module lanes: 100 cycles, 50 tasks, 40 lanes");
    has("  critical path of 50 tasks\n");
    has("    ... 18 more\n");
}

static const ptowsp_record_options edges = {.level = PTOWSP_RECORD_EDGES};

// Of no cycles, nothing is a part: 0 %. What would take longer than the run has a bar that ends there.
TEST_F(report__has_shares_of_no_time_and_of_more) {
    static const char none[] = "module m\n"
                               "workload main\n"
                               "  combine\n";
    execute_text(f, none, NULL, &edges, NULL);
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has("m: 0 cycles, 0 tasks, 1 lanes\n");
    has("  longest chain of dependencies                 0    0.0 %\n");
    static const char some[] = "module m\n"
                               "kernel w(axes 0) vector, 10 cycles, time only\n"
                               "kernel v(axes 0) vector, 10 cycles, time only\n"
                               "workload main\n"
                               "  task w()\n"
                               "  task v()\n";
    execute_text(f, some, NULL, &edges, NULL);
    const ptowsp_what_if what_ifs[] = {{1, 300, 40, 0}, {2, 50, 15, 0}};
    report_run(f, PTOWSP_REPORT_HTML, what_ifs, 2);
    has("<th>w took 300 %</th><td>40</td><td>200.0 %</td><td><div style=\"width:100.0%\">");
    has("<th>v took 50 %</th><td>15</td><td>75.0 %</td><td><div style=\"width:75.0%\">");
    report_run(f, PTOWSP_REPORT_JSON, what_ifs, 2);
    has("\"what_if\":[\n"
        "{\"kernel\":\"w\",\"percent\":300,\"makespan\":40},\n"
        "{\"kernel\":\"v\",\"percent\":50,\"makespan\":15}]");
    has_times(1, "\"pool\":");
}

// All lanes together may have more time than 64 bits count: as much as they count, then.
TEST_F(report__of_the_longest_time_saturates) {
    static const char longest[] = "module m\n"
                                  "kernel w(axes 0) vector, 9223372036854775807 cycles, time only\n"
                                  "workload main\n"
                                  "  task w()\n";
    const ptowsp_schedule three = {.lane_count = 3};
    execute_text(f, longest, &three, &edges, NULL);
    print(f);
    has("run of module m: 9223372036854775807 cycles, 1 tasks, 3 lanes, 50.0 % busy\n");
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has("m: 9,223,372,036,854,775,807 cycles, 1 tasks, 3 lanes\n");
    has("  nothing left                     18,446,744,073,709,551,614  100.0 %\n");
}

// A lane of two that is issued to while two tasks are in flight found the window full, but was not held up.
TEST_F(report__counts_tasks_that_found_the_window_full) {
    static const char module[] = "module m\n"
                                 "axis n 10\n"
                                 "kernel w(axes 1) vector, 5 cycles, time only\n"
                                 "workload main\n"
                                 "  parallel i in n\n"
                                 "    task w(i)\n";
    const ptowsp_schedule schedule = {.lane_count = 4,
                                      .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
                                      .window = 2,
                                      .window_policy = PTOWSP_WINDOW_BENCHMARK};
    execute_text(f, module, &schedule, &edges, NULL);
    const uint64_t count = ptowsp_run_result(f->run)->window_overflow_count;
    assert_true(count > 0);
    print(f);
    char line[96];
    snprintf(line, sizeof line, "tasks in flight at most, %d found it full\n", (int)count);
    has(line);
}

// A ring of 2 over 768 bytes takes 2 * (1000 + 384) cycles; before it, two tasks of 1000 in two pools.
TEST_F(report__has_collectives_and_pools) {
    static const char module[] =
        "module m\n"
        "tensor a i64 [96, 1] global\n"
        "kernel w(axes 0, inout x i64 ? x ?) vector, 1000 cycles, time only\n"
        "kernel c(axes 0, inout x i64 ? x ?) cube, 1000 cycles, time only\n"
        "kernel sum(axes 0, inout data i64 ? x ?) link, all_reduce, by ring\n"
        "workload main\n"
        "  task w() x = a of 96 x 1\n"
        "  task c() x = a of 96 x 1\n"
        "  task sum() data = a of 96 x 1\n";
    const ptowsp_schedule schedule = {
        .pools = PTOWSP_POOLS_BY_UNIT, .vector_lane_count = 1, .cube_lane_count = 1};
    ptowsp_run_ranks ranks = {.rank_count = 2,
                              .links.inside.latency_ps = 1000000,
                              .links.inside.bytes_per_us = 1000,
                              .cycles_per_us = 1000};
    execute_text(f, module, &schedule, &edges, &ranks);
    ptowsp_run_bounds bounds;
    assert_int_equal(ptowsp_run_find_bounds(f->run, &bounds), PTOWSP_OK);
    assert_int_equal(bounds.link_cycles, 2768);
    report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
    has("  collectives                               2,768   58.1 %\n");  // of 4768
    report_run(f, PTOWSP_REPORT_JSON, NULL, 0);
    has(",\"links\":2768}");
    has("\"cycles\":1000},{\"pool\":\"");
}
