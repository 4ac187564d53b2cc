// Pipelines and the clock of issue, on paper: slot loads, windows, timing; why tasks of processes
// start when they do; critical paths; results before anything ran, and as text.

#include "pipeline_fixture.h"

static ptowsp_schedule lanes(uint32_t lane_count) {
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    schedule.lane_count = lane_count;
    return schedule;
}

// Dataflow with fixed lanes, and where lanes choose.
static ptowsp_schedule choosing(int is_choosing, uint32_t lane_count) {
    ptowsp_schedule schedule = lanes(lane_count);
    if (is_choosing) {
        schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    }
    return schedule;
}

static void expect(const fixture *f, uint64_t task, uint64_t start, uint64_t end,
                   const char *stall) {
    assert_true(task < ptowsp_run_result(f->run)->task_count);
    const ptowsp_task_record *record = &ptowsp_run_records(f->run)[task];
    if (record->start != start || record->end != end ||
        strcmp(ptowsp_stall_name(record->stall), stall) != 0) {
        fail_msg("task %llu runs from %llu to %llu (%s), not from %llu to %llu (%s)",
                 (unsigned long long)task, (unsigned long long)record->start,
                 (unsigned long long)record->end, ptowsp_stall_name(record->stall),
                 (unsigned long long)start, (unsigned long long)end, stall);
    }
}

static void expect_start(const fixture *f, uint32_t id, uint64_t start) {
    assert_int_equal(pipeline(f, id)->start_cycles, start);
}

static void expect_path(const fixture *f, const uint64_t *tasks, uint64_t count) {
    uint64_t path_count = 0;
    const uint64_t *path = ptowsp_run_critical_path(f->run, &path_count);
    assert_int_equal(path_count, count);
    assert_memory_equal(path, tasks, count * sizeof *tasks);
}

static uint64_t stalled(const fixture *f, ptowsp_stall stall) {
    return ptowsp_run_result(f->run)->stall_cycles[stall];
}

// One process with one task of so many cycles.
static void one(const fixture *f, const char *name, int64_t cycles) {
    PTOWSP_PIPELINE(f->m, name) {
        PTOWSP_PROCESS(f->m, "only") {
            busy(f, cycles);
        }
    }
}

static void load(const fixture *f, uint32_t slot, ptowsp_tensor tensor, int64_t row, int64_t col) {
    ptowsp_view view;
    memset(&view, 0, sizeof view);
    view.tensor = tensor;
    view.row = number(f, row);
    view.col = number(f, col);
    ptowsp_slot_load(f->m, slot, &view, number(f, 0), number(f, 0));
}

// -- slot loads -----------------------------------------------------------------------------------

// p writes x (2, 3) in 20 cycles; what is loaded from x, anywhere, is there at 20. A load from y,
// which p reads, waits for nothing. Structure counts for nothing.
static void pipeline_issue__a_slot_load_waits_for_the_pipeline_that_writes_its_tensor(
    void **state) {
    (void)state;
    for (int row = 0; row < 8; row++) {
        bool is_in_order = row & 1, is_y = row & 4;
        int64_t col = row & 2 ? 3 : 7;
        fixture f;
        fixture_make(&f);
        f.is_loading = !is_y;
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                PTOWSP_PROCESS(f.m, "only") {
                    touch(&f, f.put, f.x, number(&f, 2), 3, number(&f, 77), 20);
                    touch(&f, f.sees, f.y, number(&f, 2), 3, number(&f, 0), 0);
                }
            }
            busy(&f, 2);
            load(&f, 0, is_y ? f.y : f.x, 2, col);
            work(&f, ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64), 4);
        }
        ptowsp_schedule schedule = lanes(4);
        schedule.issue = is_in_order ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        schedule.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;  // there are none
        run_with(&f, &schedule);
        assert_int_equal(f.called[3], is_y || col == 7 ? 0 : 77);
        bool is_waiting = !is_in_order && !is_y;
        expect(&f, 2, 0, 2, "none");
        expect(&f, 3, is_waiting ? 20 : 0, is_waiting ? 24 : 4, is_waiting ? "slot" : "none");
        assert_int_equal(stalled(&f, PTOWSP_STALL_SLOT), is_waiting ? 20 : 0);
        fixture_free(&f);
    }
}

// The pipeline behind a slot load starts where the clock is: at 10.
static void pipeline_issue__a_pipeline_starts_no_sooner_than_the_clock(void **state) {
    (void)state;
    for (int is_choosing = 0; is_choosing < 2; is_choosing++) {
        fixture f;
        fixture_make(&f);
        f.is_loading = true;
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                touch(&f, f.put, f.x, number(&f, 0), 0, number(&f, 6), 10);
                PTOWSP_SEQUENCE(f.m) {
                    load(&f, 0, f.x, 0, 0);
                    PTOWSP_PIPELINE(f.m, "p") {
                        const ptowsp_channel_desc desc = {
                            "a", 0, 0, {NULL, 0}, ptowsp_slot(f.m, 0, PTOWSP_TYPE_U64)};
                        ptowsp_channel a = ptowsp_channel_make(f.m, &desc);
                        producer(&f, "load", a, 0, 1, 1);
                        consumer(&f, "use", a, 0, 2);
                    }
                }
            }
        }
        const ptowsp_schedule schedule = choosing(is_choosing, 1);
        run_with(&f, &schedule);
        expect_start(&f, 0, 10);
        assert_int_equal(channel_of(&f, "a")->latency, 6);
        expect(&f, 1, 10, 11, "slot");
        expect(&f, 2, 17, 19, "channel");
        assert_int_equal(makespan(&f), 19);
        fixture_free(&f);
    }
}

// -- windows and timing ---------------------------------------------------------------------------

// A window of 1 and four lanes: tasks one at a time, at 0, 10 and 13; the pipelines start at once,
// and end long after.
static void pipeline_issue__a_window_does_not_count_pipelines(void **state) {
    (void)state;
    for (int row = 0; row < 3; row++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                one(&f, "p", 100);
                busy(&f, 10);
                one(&f, "q", 100);
                busy(&f, 3);
                one(&f, "r", 100);
                busy(&f, 4);
            }
        }
        ptowsp_schedule schedule = choosing(row == 1, 4);
        schedule.issue = row == 2 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        schedule.window = 1;
        run_with(&f, &schedule);
        expect_start(&f, 0, 0);
        expect_start(&f, 1, 0);
        expect_start(&f, 2, 10);
        expect(&f, 1, 0, 10, "none");
        // where lanes choose, the first one takes them all
        expect(&f, 3, 10, 13, row == 1 ? "lane" : "window");
        expect(&f, 5, 13, 17, row == 1 ? "lane" : "window");
        assert_int_equal(makespan(&f), 110);
        assert_int_equal(ptowsp_run_result(f.run)->in_flight_max, 1);
        assert_int_equal(stalled(&f, PTOWSP_STALL_WINDOW), 13);
        fixture_free(&f);
    }
}

// A task whose window is full counts or aborts; a pipeline does not.
static void pipeline_issue__a_full_window_is_nothing_to_a_pipeline(void **state) {
    (void)state;
    for (int is_abort = 0; is_abort < 2; is_abort++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                busy(&f, 10);
                one(&f, "p", 20);
                one(&f, "q", 20);
            }
        }
        ptowsp_schedule schedule = lanes(4);
        schedule.window = 1;
        schedule.window_policy = is_abort ? PTOWSP_WINDOW_ABORT : PTOWSP_WINDOW_BENCHMARK;
        run_with(&f, &schedule);
        expect_start(&f, 0, 0);
        expect_start(&f, 1, 0);
        assert_int_equal(ptowsp_run_result(f.run)->window_overflow_count, 0);
        fixture_free(&f);
    }
}

// One task every 5 cycles, or two every 7; pipelines take no turn.
//      task    p    task   q   task
//      0       0    5      5   10
//      0       0    0      0   7
static void pipeline_issue__timing_does_not_count_pipelines(void **state) {
    (void)state;
    for (int row = 0; row < 4; row++) {
        bool is_batched = row & 1;
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                busy(&f, 1);
                one(&f, "p", 2);
                busy(&f, 1);
                one(&f, "q", 2);
                busy(&f, 1);
            }
        }
        ptowsp_schedule schedule = choosing(row & 2, 4);
        schedule.timing = is_batched ? PTOWSP_TIMING_BATCHED : PTOWSP_TIMING_RATE_LIMITED;
        schedule.timing_cycles = is_batched ? 7 : 5;
        schedule.timing_count = is_batched ? 2 : 0;
        run_with(&f, &schedule);
        expect(&f, 0, 0, 1, "none");
        expect_start(&f, 0, 0);
        expect(&f, 2, is_batched ? 0 : 5, is_batched ? 1 : 6, is_batched ? "none" : "timing");
        expect_start(&f, 1, is_batched ? 0 : 5);
        expect(&f, 4, is_batched ? 7 : 10, is_batched ? 8 : 11, "timing");
        fixture_free(&f);
    }
}

// Nothing completes before tasks begin to start: a load of what a pipeline writes cannot proceed
// then, where lanes choose and where they do not. A load of something else can.
static void pipeline_issue__a_slot_load_needs_tasks_to_have_begun(void **state) {
    (void)state;
    for (int row = 0; row < 4; row++) {
        bool is_y = row & 2;
        fixture f;
        fixture_make(&f);
        f.is_loading = !is_y;
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                PTOWSP_PIPELINE(f.m, "p") {
                    PTOWSP_PROCESS(f.m, "only") {
                        touch(&f, f.put, f.x, number(&f, 0), 0, number(&f, 6), 10);
                    }
                }
                load(&f, 0, is_y ? f.y : f.x, 0, 0);
                busy(&f, 3);
            }
        }
        ptowsp_schedule schedule = choosing(row & 1, 2);
        schedule.start = PTOWSP_START_ALL_ISSUED;
        compile(&f, &schedule);
        if (is_y) {
            run_compiled(&f);
            expect(&f, 1, 0, 3, "none");
            assert_int_equal(makespan(&f), 10);
        } else {
            assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, true), PTOWSP_STUCK);
            EXPECT_PARTS(ptowsp_context_error(f.context).text, "slot load", "start");
        }
        fixture_free(&f);
    }
}

// Streams and priorities have nothing to say to processes: their tasks have the keys too.
static void pipeline_issue__keys_of_a_schedule_do_not_touch_processes(void **state) {
    (void)state;
    for (int is_choosing = 0; is_choosing < 2; is_choosing++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                work(&f, number(&f, 1), 10);
                PTOWSP_PIPELINE(f.m, "p") {
                    ptowsp_channel a = channel(&f, "a", 1, 0);
                    producer(&f, "load", a, 1, 2, 3);
                    consumer(&f, "use", a, 0, 4);
                }
                work(&f, number(&f, 1), 10);
            }
        }
        ptowsp_schedule schedule = lanes(4);
        schedule.stream_count = 2;
        schedule.stream_key = ptowsp_task_arg(f.m, 0);
        if (is_choosing) {
            schedule.ready = PTOWSP_READY_PRIORITY;
            schedule.priority_key = ptowsp_task_arg(f.m, 0);
        }
        run_with(&f, &schedule);
        expect(&f, 0, 0, 10, "none");
        expect(&f, 1, 0, 3, "none");
        expect(&f, 2, 3, 6, "lane");
        expect(&f, 3, 3, 7, "channel");
        expect(&f, 4, 7, 11, "lane");
        assert_int_equal(ptowsp_run_records(f.run)[5].start, 10);
        fixture_free(&f);
    }
}

// By unit there are lanes for vector tasks only; a process does cube tasks without one.
static void pipeline_issue__a_process_needs_no_lane_of_its_unit(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_kernel_desc kernel;
    memset(&kernel, 0, sizeof kernel);
    kernel.name = "cube";
    kernel.axis_count = 2;
    kernel.fn = note_value;
    kernel.cost = second_axis;
    kernel.user = &f;
    kernel.unit = PTOWSP_UNIT_CUBE;
    const ptowsp_kernel cube = ptowsp_kernel_make(f.m, &kernel);
    PTOWSP_WORKLOAD(f.m, "main") {
        busy(&f, 3);
        PTOWSP_PIPELINE(f.m, "p") {
            PTOWSP_PROCESS(f.m, "only") {
                const ptowsp_task_desc desc = task_desc(&f, cube, number(&f, 1), 4);
                ptowsp_task_make(f.m, &desc);
                busy(&f, 2);
            }
        }
    }
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.pools = PTOWSP_POOLS_BY_UNIT;
    schedule.vector_lane_count = 2;
    run_with(&f, &schedule);
    expect(&f, 1, 3, 7, "dependency");
    expect(&f, 2, 7, 9, "lane");
    fixture_free(&f);
}

// -- stalls and critical paths --------------------------------------------------------------------

//      task 0    0-2
//      load          2-7      7-12     sends at 7, 12        (the pipeline starts at 2)
//      use                    7-8      12-13
//      last      waits for the record of use, at 13, then 13-20
//      task 6    20-21
static void pipeline_issue__records_say_why_a_process_was_late(void **state) {
    (void)state;
    static const uint64_t path[] = {0, 1, 2, 4, 5, 6};
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        busy(&f, 2);
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0), e = ptowsp_event_make(f.m, "E");
            producer(&f, "load", a, 0, 2, 5);
            PTOWSP_PROCESS(f.m, "use") {
                ptowsp_consumes(f.m, a);
                ptowsp_produces(f.m, e);
                PTOWSP_CONSUME(f.m, t, a) {
                    work(&f, t, 1);
                }
                ptowsp_record(f.m, e);
            }
            PTOWSP_PROCESS(f.m, "last") {
                ptowsp_consumes(f.m, e);
                ptowsp_wait(f.m, e);
                busy(&f, 7);
            }
        }
        busy(&f, 1);
    }
    const ptowsp_schedule schedule = lanes(2);
    run_with(&f, &schedule);
    expect(&f, 0, 0, 2, "none");
    expect(&f, 1, 2, 7, "dependency");
    expect(&f, 2, 7, 12, "lane");
    expect(&f, 3, 7, 8, "channel");
    expect(&f, 4, 12, 13, "channel");
    expect(&f, 5, 13, 20, "channel");
    expect(&f, 6, 20, 21, "dependency");
    // use waits 5 and 4 cycles for tokens, last 11 for the record
    assert_int_equal(stalled(&f, PTOWSP_STALL_CHANNEL), 5 + 4 + 11);
    assert_int_equal(process(&f, "use", 0)->empty_cycles, 9);
    assert_int_equal(process(&f, "last", 0)->empty_cycles, 11);
    expect_path(&f, path, 6);
    fixture_free(&f);
}

// A sender that waited for room: its next task was late because of the channel.
//      load   0-1  send 1   1-2  send 2-11    11-12
//      use             1-11         11-21
static void pipeline_issue__a_full_channel_is_a_stall_too(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 0, 0);
            producer(&f, "load", a, 0, 3, 1);
            consumer(&f, "use", a, 0, 10);
        }
    }
    run(&f);
    expect(&f, 0, 0, 1, "none");
    expect(&f, 1, 1, 2, "lane");
    expect(&f, 2, 1, 11, "channel");
    expect(&f, 3, 11, 12, "channel");
    expect(&f, 4, 11, 21, "lane");
    expect(&f, 5, 21, 31, "lane");
    assert_int_equal(stalled(&f, PTOWSP_STALL_CHANNEL), 9 + 9 + 1);
    fixture_free(&f);
}

// -- before anything ran, and as text -------------------------------------------------------------

static void discard(void *user, const char *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
}

static void pipeline_issue__results_are_zero_before_the_first_run(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_axis workers = ptowsp_axis_dynamic(f.m, "workers");
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            producer(&f, "load", a, 0, 2, 3);
            PTOWSP_REPLICATE(f.m, w, workers, "use") {
                ptowsp_consumes(f.m, a);
                PTOWSP_CONSUME(f.m, t, a) {
                    work(&f, t, 1);
                }
            }
        }
    }
    compile(&f, NULL);
    uint32_t count = 99;
    uint64_t long_count = 99;
    const ptowsp_pipeline_stats *pipelines = ptowsp_run_pipelines(f.run, &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pipelines[i].run_count, 0);
        assert_int_equal(pipelines[i].makespan_cycles, 0);
    }
    assert_true(count <= 1);
    const ptowsp_process_stats *processes = ptowsp_run_processes(f.run, &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(processes[i].state, PTOWSP_PROCESS_ENDED);
        assert_int_equal(processes[i].task_count, 0);
    }
    ptowsp_run_channels(f.run, &count);
    assert_true(count <= 1);
    assert_null(ptowsp_run_steps(f.run, &long_count));
    assert_int_equal(long_count, 0);
    long_count = 99;
    assert_null(ptowsp_run_critical_steps(f.run, 0, &long_count));
    assert_int_equal(long_count, 0);
    size_t length = 0;
    const ptowsp_text text = {discard, &length};
    ptowsp_run_print_stuck(f.run, text);
    assert_int_equal(length, 0);
    ptowsp_run_print(f.run, text);
    assert_int_equal(ptowsp_run_bind_size(f.run, "workers", 2), PTOWSP_OK);
    run_compiled(&f);
    assert_int_equal(makespan(&f), 7);
    length = 0;
    ptowsp_run_print_stuck(f.run, text);
    assert_int_equal(length, 0);
    fixture_free(&f);
}

// The text names pipelines, processes and channels, and has their numbers.
static void pipeline_issue__results_are_written_as_text(void **state) {
    (void)state;
    static char text[8000];
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "double_buffer") {
            ptowsp_channel a = channel(&f, "loaded", 2, 50);
            producer(&f, "load", a, 0, 4, 4);
            PTOWSP_REPLICATE(f.m, w, axis(&f, "pair", 2), "compute") {
                ptowsp_consumes(f.m, a);
                PTOWSP_CONSUME(f.m, t, a) {
                    work(&f, t, 1000);
                }
            }
        }
        busy(&f, 3);
    }
    run(&f);
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    ptowsp_run_print(f.run, ptowsp_text_to_buffer(&buffer));
    assert_true(buffer.length < sizeof text);
    // sent at 4, 8, 54, 58, taken at 54, 58 and then at 1054 and 1058
    EXPECT_PARTS(text, "2061 cycles, 9 tasks", "double_buffer", "2058 cycles", "process load",
                 "busy 16", "full 42", "ended at 58", "compute[1]", "busy 2000", "empty 58",
                 "ended at 2054", "channel loaded", "depth 2", "latency 50", "4 tokens",
                 "empty 112", "channel 154 cycles", "critical");
    assert_null(strstr(text, "4294967295"));
    fixture_free(&f);
}

// -- what is around, whatever a pipeline does this time -------------------------------------------

// A task writes x until 100; p would write it, too, but does nothing this time. Who reads x after
// that still waits for the writer.
static void pipeline_issue__a_pipeline_without_tasks_hides_nothing(void **state) {
    (void)state;
    for (int is_choosing = 0; is_choosing < 2; is_choosing++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                touch(&f, f.writes, f.x, number(&f, 0), 0, number(&f, 1), 100);
                PTOWSP_PIPELINE(f.m, "p") {
                    PTOWSP_PROCESS(f.m, "idle") {
                        PTOWSP_WHEN(f.m, ptowsp_bool(f.m, false)) {
                            touch(&f, f.writes, f.x, number(&f, 0), 0, number(&f, 2), 5);
                        }
                    }
                }
                touch(&f, f.reads, f.x, number(&f, 0), 0, number(&f, 3), 10);
            }
        }
        ptowsp_schedule schedule = choosing(is_choosing, 4);
        run_with(&f, &schedule);
        expect_start(&f, 0, 100);
        expect(&f, 1, 100, 110, "dependency");
        fixture_free(&f);
    }
}

// The process of p loads what a task writes until 100, and works on that for 7 cycles.
static void pipeline_issue__what_processes_load_is_waited_for_whatever_the_dependencies(
    void **state) {
    (void)state;
    static const uint32_t dependencies[] = {
        PTOWSP_DEPENDENCIES_STRUCTURE, PTOWSP_DEPENDENCIES_EXPLICIT, PTOWSP_DEPENDENCIES_OVERLAP};
    for (int i = 0; i < 6; i++) {
        fixture f;
        fixture_make(&f);
        f.is_loading = true;
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                touch(&f, f.put, f.x, number(&f, 2), 3, number(&f, 5), 100);
                PTOWSP_PIPELINE(f.m, "p") {
                    PTOWSP_PROCESS(f.m, "only") {
                        load(&f, 0, f.x, 2, 3);
                        work(&f, ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64), 7);
                    }
                }
            }
        }
        ptowsp_schedule schedule = choosing(i % 2, 4);
        schedule.dependencies = dependencies[i / 2];
        schedule.hazards = PTOWSP_HAZARD_WAW;
        run_with(&f, &schedule);
        EXPECT_CALLS(&f, 5, 5);
        expect_start(&f, 0, 100);
        expect(&f, 1, 100, 107, "dependency");
        fixture_free(&f);
    }
}

// A token that no task comes before takes 50 cycles from the start of p, for which task 0 is waited
// until 100; so the path goes from there to task 1, and over the end of q, in which there are no
// tasks at all, to task 2.
static void pipeline_issue__the_path_goes_through_pipelines_that_wait_without_tasks(void **state) {
    (void)state;
    for (int is_choosing = 0; is_choosing < 2; is_choosing++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            busy(&f, 100);
            for (int i = 0; i < 2; i++) {
                PTOWSP_PIPELINE(f.m, i == 0 ? "p" : "q") {
                    ptowsp_channel a = channel(&f, "a", 1, 50);
                    PTOWSP_PROCESS(f.m, "from") {
                        ptowsp_produces(f.m, a);
                        send(&f, a, 1);
                    }
                    PTOWSP_PROCESS(f.m, "to") {
                        ptowsp_consumes(f.m, a);
                        PTOWSP_CONSUME(f.m, t, a) {
                            PTOWSP_WHEN(f.m, ptowsp_bool(f.m, i == 0)) {
                                work(&f, t, 9);
                            }
                        }
                    }
                }
            }
            busy(&f, 20);
        }
        static const uint64_t path[] = {0, 1, 2};
        ptowsp_schedule schedule = choosing(is_choosing, 2);
        run_with(&f, &schedule);
        expect(&f, 1, 150, 159, "channel");
        expect(&f, 2, 209, 229, "dependency");
        expect_path(&f, path, 3);
        fixture_free(&f);
    }
}

// Tasks are issued at 0, 1, ... 3 and start then. The depth of p depends on what its own task
// writes, so that the walk without kernels passes it over; none of its tasks is issued.
static void pipeline_issue__the_number_of_issued_tasks_does_not_depend_on_pipelines(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    f.is_loading = true;
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            for (int i = 0; i < 4; i++) {
                busy(&f, 10);
            }
            load(&f, 0, f.y, 0, 0);
            PTOWSP_PIPELINE(f.m, "p") {
                const ptowsp_expr depth =
                    ptowsp_add(ptowsp_slot(f.m, 0, PTOWSP_TYPE_U64), ptowsp_u64(f.m, 1));
                const ptowsp_channel_desc desc = {"a", 0, 0, depth, {NULL, 0}};
                ptowsp_channel a = ptowsp_channel_make(f.m, &desc);
                producer(&f, "from", a, 1, 2, 7);
                consumer(&f, "to", a, 0, 0);
                PTOWSP_PROCESS(f.m, "writes") {
                    touch(&f, f.put, f.y, number(&f, 4), 4, number(&f, 2), 1);
                }
            }
        }
    }
    ptowsp_schedule schedule = lanes(4);
    schedule.start = PTOWSP_START_ALL_ISSUED;
    schedule.timing = PTOWSP_TIMING_RATE_LIMITED;
    schedule.timing_cycles = 1;
    run_with(&f, &schedule);
    expect(&f, 0, 3, 13, "start");
    expect(&f, 3, 3, 13, "timing");
    fixture_free(&f);
}

// A task of 2^62 cycles, and a pipeline behind it that takes one cycle too many.
static void pipeline_issue__the_end_of_time_is_that_of_a_pipeline(void **state) {
    (void)state;
    const int64_t half = INT64_C(1) << 62;
    for (int i = 0; i < 12; i++) {
        const bool is_late = i % 2;
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            busy(&f, half);
            one(&f, "p", is_late ? half : half - 1);
            if (i / 6) {
                one(&f, "q", 0);
            }
        }
        ptowsp_schedule schedule = choosing(i / 2 % 3 == 1, 2);
        schedule.issue = i / 2 % 3 == 2 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        compile(&f, &schedule);
        for (int mode = 0; mode < 2; mode++) {
            f.call_count = 0;
            const ptowsp_status status =
                execute(&f, mode ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE, false);
            assert_int_equal(status, is_late ? PTOWSP_LIMIT_EXCEEDED : PTOWSP_OK);
            if (is_late) {
                test_error_is(f.context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                              "main/pipeline p: the pipeline ends after 2^63 - 1 cycles");
            } else {
                assert_true(makespan(&f) == PTOWSP_CYCLES_MAX);
            }
        }
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_issue__a_slot_load_waits_for_the_pipeline_that_writes_its_tensor),
        cmocka_unit_test(pipeline_issue__a_pipeline_starts_no_sooner_than_the_clock),
        cmocka_unit_test(pipeline_issue__a_window_does_not_count_pipelines),
        cmocka_unit_test(pipeline_issue__a_full_window_is_nothing_to_a_pipeline),
        cmocka_unit_test(pipeline_issue__timing_does_not_count_pipelines),
        cmocka_unit_test(pipeline_issue__a_slot_load_needs_tasks_to_have_begun),
        cmocka_unit_test(pipeline_issue__keys_of_a_schedule_do_not_touch_processes),
        cmocka_unit_test(pipeline_issue__a_process_needs_no_lane_of_its_unit),
        cmocka_unit_test(pipeline_issue__records_say_why_a_process_was_late),
        cmocka_unit_test(pipeline_issue__a_full_channel_is_a_stall_too),
        cmocka_unit_test(pipeline_issue__a_pipeline_without_tasks_hides_nothing),
        cmocka_unit_test(
            pipeline_issue__what_processes_load_is_waited_for_whatever_the_dependencies),
        cmocka_unit_test(pipeline_issue__the_path_goes_through_pipelines_that_wait_without_tasks),
        cmocka_unit_test(pipeline_issue__the_number_of_issued_tasks_does_not_depend_on_pipelines),
        cmocka_unit_test(pipeline_issue__results_are_zero_before_the_first_run),
        cmocka_unit_test(pipeline_issue__results_are_written_as_text),
        cmocka_unit_test(pipeline_issue__the_end_of_time_is_that_of_a_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
