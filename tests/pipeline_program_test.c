// Pipelines as statements of larger workloads, on paper: what they wait for and what waits for them,
// in order and in dataflow issue, where lanes choose, under windows and limits of rate; what the
// results of a run say of them.

#include "pipeline_fixture.h"

enum { IN_ORDER, FIFO, STEALING, THIEVES, PRIORITY, SCHEDULE_COUNT };

// In order; dataflow with fixed lanes; and the three ways in which lanes choose.
static ptowsp_schedule schedule_of(const fixture *f, int which, uint32_t lane_count) {
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.lane_count = lane_count;
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    switch (which) {
    case IN_ORDER: schedule.issue = PTOWSP_ISSUE_IN_ORDER; break;
    case STEALING: schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING; break;
    case THIEVES: schedule.ready = PTOWSP_READY_WORK_STEALING; break;
    case PRIORITY:
        schedule.ready = PTOWSP_READY_PRIORITY;
        schedule.priority_key = number(f, 1);
        break;
    default: break;
    }
    return schedule;
}

static void expect(const fixture *f, uint64_t task, uint64_t start, uint64_t end) {
    const ptowsp_task_record *record = &ptowsp_run_records(f->run)[task];
    assert_true(task < ptowsp_run_result(f->run)->task_count);
    if (record->start != start || record->end != end) {
        fail_msg("task %llu runs from %llu to %llu, not from %llu to %llu",
                 (unsigned long long)task, (unsigned long long)record->start,
                 (unsigned long long)record->end, (unsigned long long)start,
                 (unsigned long long)end);
    }
}

static void expect_stall(const fixture *f, uint64_t task, const char *stall) {
    assert_string_equal(ptowsp_stall_name(ptowsp_run_records(f->run)[task].stall), stall);
}

static void expect_path(const fixture *f, const uint64_t *tasks, uint64_t count) {
    uint64_t path_count = 0;
    const uint64_t *path = ptowsp_run_critical_path(f->run, &path_count);
    assert_int_equal(path_count, count);
    assert_memory_equal(path, tasks, count * sizeof *tasks);
}

// Asserts when the last time of a pipeline started, and how long it took.
static void expect_pipeline(const fixture *f, uint32_t id, uint64_t start, uint64_t cycles) {
    assert_int_equal(pipeline(f, id)->start_cycles, start);
    assert_int_equal(pipeline(f, id)->makespan_cycles, cycles);
}

// 12 cycles and two tasks: load, from 0 to 5, and use, from 5 to 12.
static ptowsp_node twelve(const fixture *f, const char *name, const ptowsp_node *after,
                          uint32_t after_count) {
    ptowsp_node node = ptowsp_pipeline_begin(f->m, name, after, after_count);
    ptowsp_channel a = channel(f, "a", 1, 0);
    PTOWSP_PROCESS(f->m, "load") {
        ptowsp_produces(f->m, a);
        send_work(f, a, number(f, 1), 5);
    }
    consumer(f, "use", a, 0, 7);
    ptowsp_scope_end(f->m);
    return node;
}

// One process with one task on the tile of a tensor at (row, col).
static void touch_pipeline(const fixture *f, const char *name, ptowsp_kernel kernel,
                           ptowsp_tensor tensor, int64_t row, int64_t col, int64_t cycles) {
    PTOWSP_PIPELINE(f->m, name) {
        PTOWSP_PROCESS(f->m, "only") {
            touch(f, kernel, tensor, number(f, row), col, number(f, cycles), cycles);
        }
    }
}

// -- structure ------------------------------------------------------------------------------------

//      task 0      0 ..... 10
//      p                   10 .......... 22        load 10-15, use 15-22
//      task 3                            22 .. 25
static void pipeline_program__a_sequence_waits_for_it_and_it_for_the_sequence(void **state) {
    (void)state;
    static const uint64_t path[] = {0, 1, 2, 3};
    for (int which = 0; which < SCHEDULE_COUNT; which++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            busy(&f, 10);
            twelve(&f, "p", NULL, 0);
            busy(&f, 3);
        }
        const ptowsp_schedule schedule = schedule_of(&f, which, 2);
        run_with(&f, &schedule);
        EXPECT_CALLS(&f, 10, 1, 1, 3);
        expect(&f, 0, 0, 10);
        expect(&f, 1, 10, 15);
        expect(&f, 2, 15, 22);
        expect(&f, 3, 22, 25);
        expect_pipeline(&f, 0, 10, 12);
        assert_int_equal(makespan(&f), 25);
        expect_path(&f, path, 4);
        expect_stall(&f, 0, "none");
        expect_stall(&f, 1, "dependency");
        expect_stall(&f, 2, "channel");
        expect_stall(&f, 3, "dependency");
        const ptowsp_task_record *records = ptowsp_run_records(f.run);
        assert_int_equal(records[1].lane, PTOWSP_NO_LANE);
        assert_int_equal(records[2].lane, PTOWSP_NO_LANE);
        assert_int_equal(records[0].lane, 0);
        assert_in_range(records[3].lane, 0, 1);
        assert_string_equal(ptowsp_program_kernel_name(f.program, records[2].kernel), "work");
        const ptowsp_run_stats *stats = ptowsp_run_result(f.run);
        assert_int_equal(stats->busy_cycles, 25);
        assert_int_equal(stats->stall_cycles[PTOWSP_STALL_CHANNEL], 5);
        const ptowsp_lane_stats *lanes = ptowsp_run_lanes(f.run);
        assert_int_equal(lanes[0].busy_cycles + lanes[1].busy_cycles, 13);
        assert_int_equal(lanes[0].task_count + lanes[1].task_count, 2);
        assert_int_equal(lanes[0].idle_cycles, 25 - lanes[0].busy_cycles);
        fixture_free(&f);
    }
}

// On one lane: tasks at 0 and at 10, the pipeline beside them.
static void pipeline_program__it_runs_beside_what_is_parallel_and_needs_no_lane(void **state) {
    (void)state;
    for (int which = 0; which < SCHEDULE_COUNT; which++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                busy(&f, 10);
                twelve(&f, "p", NULL, 0);
                busy(&f, 3);
            }
            busy(&f, 1);
        }
        const ptowsp_schedule schedule = schedule_of(&f, which, 1);
        run_with(&f, &schedule);
        expect(&f, 0, 0, 10);
        expect(&f, 1, 0, 5);
        expect(&f, 2, 5, 12);
        expect(&f, 3, 10, 13);
        expect(&f, 4, 13, 14);
        expect_stall(&f, 1, "none");
        expect_stall(&f, 3, "lane");
        expect_pipeline(&f, 0, 0, 12);
        fixture_free(&f);
    }
}

// The pipeline is the last to end, and by a receive: after it, at 65, goes on what comes next.
static void pipeline_program__it_ends_with_its_last_process(void **state) {
    (void)state;
    for (int which = 0; which < SCHEDULE_COUNT; which++) {
        for (int has_next = 0; has_next < 2; has_next++) {
            fixture f;
            fixture_make(&f);
            PTOWSP_WORKLOAD(f.m, "main") {
                PTOWSP_PIPELINE(f.m, "p") {
                    ptowsp_channel a = channel(&f, "a", 1, 60);
                    producer(&f, "load", a, 0, 1, 5);
                    PTOWSP_PROCESS(f.m, "use") {
                        ptowsp_consumes(f.m, a);
                        PTOWSP_RECEIVE(f.m, t, a) {
                        }
                    }
                }
                if (has_next) {
                    busy(&f, 3);
                }
            }
            const ptowsp_schedule schedule = schedule_of(&f, which, 1);
            run_with(&f, &schedule);
            expect_pipeline(&f, 0, 0, 65);
            assert_int_equal(makespan(&f), has_next ? 68 : 65);
            if (has_next) {
                expect(&f, 1, 65, 68);
            }
            fixture_free(&f);
        }
    }
}

// In order, what the pipeline waits for moves the clock for what is issued behind it.
static void pipeline_program__in_order_its_data_moves_the_clock(void **state) {
    (void)state;
    for (int which = 0; which < SCHEDULE_COUNT; which++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                PTOWSP_SEQUENCE(f.m) {
                    busy(&f, 10);
                    twelve(&f, "p", NULL, 0);
                }
                busy(&f, 3);
            }
        }
        const ptowsp_schedule schedule = schedule_of(&f, which, 2);
        run_with(&f, &schedule);
        expect_pipeline(&f, 0, 10, 12);
        expect(&f, 3, which == IN_ORDER ? 10 : 0, which == IN_ORDER ? 13 : 3);
        assert_int_equal(makespan(&f), 22);
        fixture_free(&f);
    }
}

// -- loops ----------------------------------------------------------------------------------------

// Round k has one task of 5 (k + 1) cycles.
static void build_rounds(const fixture *f, bool is_parallel) {
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_axis rounds = axis(f, "rounds", 3);
        ptowsp_expr k = is_parallel ? ptowsp_parallel_begin(f->m, "k", rounds)
                                    : ptowsp_for_each_begin(f->m, "k", rounds);
        PTOWSP_PIPELINE(f->m, "p") {
            PTOWSP_PROCESS(f->m, "only") {
                ptowsp_task_desc desc = task_desc(f, f->work, k, 0);
                desc.axes[1] = linear(f, k, 5, 5);
                ptowsp_task_make(f->m, &desc);
            }
        }
        ptowsp_scope_end(f->m);
    }
}

//      one after another    0-5, 5-15, 15-30
//      parallel             0-5, 0-10, 0-15
static void pipeline_program__it_runs_as_often_as_a_loop_says(void **state) {
    (void)state;
    for (int which = 0; which < SCHEDULE_COUNT; which++) {
        for (int is_parallel = 0; is_parallel < 2; is_parallel++) {
            fixture f;
            fixture_make(&f);
            build_rounds(&f, is_parallel);
            const ptowsp_schedule schedule = schedule_of(&f, which, 1);
            run_with(&f, &schedule);
            expect(&f, 0, 0, 5);
            expect(&f, 1, is_parallel ? 0 : 5, is_parallel ? 10 : 15);
            expect(&f, 2, is_parallel ? 0 : 15, is_parallel ? 15 : 30);
            expect_pipeline(&f, 0, is_parallel ? 0 : 15, 15);
            assert_int_equal(pipeline(&f, 0)->run_count, 3);
            assert_int_equal(pipeline(&f, 0)->total_cycles, 30);
            assert_int_equal(process(&f, "only", 0)->task_count, 3);
            assert_int_equal(process(&f, "only", 0)->busy_cycles, 30);
            assert_int_equal(process(&f, "only", 0)->end_cycles, 15);
            assert_int_equal(makespan(&f), is_parallel ? 15 : 30);
            expect_steps(&f, "only", 0, "task 0-5, end 5, task 0-10, end 10, task 0-15, end 15");
            fixture_free(&f);
        }
    }
}

// Sums are over all times, also of channels; a pipeline that a condition skips has no results.
static void pipeline_program__results_are_sums_over_calls_of_its_workload(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "part") {
        twelve(&f, "p", NULL, 0);
        PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
            twelve(&f, "q", NULL, 0);
        }
    }
    PTOWSP_WORKLOAD(f.m, "main") {
        ptowsp_call(f.m, "part", NULL, 0);
        PTOWSP_FOR_EACH(f.m, k, axis(&f, "two", 2)) {
            ptowsp_call(f.m, "part", NULL, 0);
        }
    }
    run(&f);
    expect_pipeline(&f, 0, 24, 12);
    assert_string_equal(pipeline(&f, 0)->name, "p");
    assert_string_equal(pipeline(&f, 1)->name, "q");
    assert_int_equal(pipeline(&f, 0)->run_count, 3);
    assert_int_equal(pipeline(&f, 0)->total_cycles, 36);
    assert_int_equal(pipeline(&f, 1)->run_count, 0);
    assert_int_equal(pipeline(&f, 1)->total_cycles, 0);
    const ptowsp_channel_stats *channels = channels_of(&f);
    assert_int_equal(channels[pipeline(&f, 0)->first_channel].token_count, 3);
    assert_int_equal(channels[pipeline(&f, 0)->first_channel].empty_cycles, 15);
    assert_int_equal(channels[pipeline(&f, 1)->first_channel].token_count, 0);
    uint64_t count = 1;
    assert_null(ptowsp_run_critical_steps(f.run, 1, &count));
    assert_int_equal(count, 0);
    fixture_free(&f);
}

// p from 0 to 12, q from 12 to 24, or both at 0.
static void pipeline_program__two_pipelines_are_one_after_another_or_side_by_side(void **state) {
    (void)state;
    for (int which = 0; which < SCHEDULE_COUNT; which++) {
        for (int is_parallel = 0; is_parallel < 2; is_parallel++) {
            fixture f;
            fixture_make(&f);
            PTOWSP_WORKLOAD(f.m, "main") {
                if (is_parallel) {
                    ptowsp_combine_begin(f.m);
                } else {
                    ptowsp_sequence_begin(f.m);
                }
                twelve(&f, "p", NULL, 0);
                twelve(&f, "q", NULL, 0);
                ptowsp_scope_end(f.m);
            }
            const ptowsp_schedule schedule = schedule_of(&f, which, 1);
            run_with(&f, &schedule);
            expect_pipeline(&f, 0, 0, 12);
            expect_pipeline(&f, 1, is_parallel ? 0 : 12, 12);
            expect(&f, 3, is_parallel ? 5 : 17, is_parallel ? 12 : 24);
            assert_int_equal(pipeline(&f, 1)->first_process, 2);
            assert_int_equal(pipeline(&f, 1)->process_count, 2);
            assert_int_equal(pipeline(&f, 1)->first_channel, 1);
            assert_int_equal(pipeline(&f, 1)->channel_count, 1);
            fixture_free(&f);
        }
    }
}

// -- data and edges -------------------------------------------------------------------------------

// Structure counts for nothing; the pipeline has one task on the tile of x at (4, 4).
//
//      0   writes x (0, 0)     0-10
//      1   p                  10-15     all of x, so it waits for task 0
//      2   reads x (6, 0)      0-1      or 15-16 when p writes
//      3   writes x (6, 6)    15-17     when p reads or writes; with RAW alone 0-2
//      4   reads y (4, 4)      0-3
static void pipeline_program__it_reads_and_writes_whole_tensors(void **state) {
    (void)state;
    for (int which = FIFO; which < SCHEDULE_COUNT; which++) {
        for (int row = 0; row < 8; row++) {
            bool is_written = row & 1, is_raw_only = row & 2;
            fixture f;
            fixture_make(&f);
            ptowsp_expr zero = number(&f, 0);
            PTOWSP_WORKLOAD(f.m, "main") {
                touch(&f, f.writes, f.x, zero, 0, zero, 10);
                touch_pipeline(&f, "p", is_written ? f.updates : f.reads, f.x, 4, 4, 5);
                touch(&f, f.reads, f.x, number(&f, 6), 0, zero, 1);
                touch(&f, f.writes, f.x, number(&f, 6), 6, zero, 2);
                touch(&f, f.reads, f.y, number(&f, 4), 4, zero, 3);
            }
            ptowsp_schedule schedule = schedule_of(&f, which, 8);
            schedule.dependencies =
                row & 4 ? PTOWSP_DEPENDENCIES_EXACT : PTOWSP_DEPENDENCIES_OVERLAP;
            schedule.hazards = is_raw_only ? PTOWSP_HAZARD_RAW : 0;
            run_with(&f, &schedule);
            expect(&f, 0, 0, 10);
            expect(&f, 1, 10, 15);
            expect_pipeline(&f, 0, 10, 5);
            expect(&f, 2, is_written ? 15 : 0, is_written ? 16 : 1);
            expect(&f, 3, is_raw_only ? 0 : 15, is_raw_only ? 2 : 17);
            expect(&f, 4, 0, 3);
            expect_stall(&f, 1, "dependency");
            fixture_free(&f);
        }
    }
}

// What processes load slots from they read, all of it:
//
//      0   p            0-9     loads x (0, 0), then works
//      1   writes x (6, 6)      behind p; with read-after-write alone beside it
//      2   reads x (6, 0)       beside p
static void pipeline_program__a_slot_load_reads_the_whole_tensor(void **state) {
    (void)state;
    for (int which = FIFO; which < SCHEDULE_COUNT; which++) {
        for (int row = 0; row < 4; row++) {
            bool is_raw_only = row & 1;
            fixture f;
            fixture_make(&f);
            ptowsp_view view;
            memset(&view, 0, sizeof view);
            view.tensor = f.x;
            PTOWSP_WORKLOAD(f.m, "main") {
                PTOWSP_COMBINE(f.m) {
                    PTOWSP_PIPELINE(f.m, "p") {
                        PTOWSP_PROCESS(f.m, "only") {
                            ptowsp_slot_load(f.m, 0, &view, number(&f, 0), number(&f, 0));
                            work(&f, number(&f, 1), 9);
                        }
                    }
                    touch(&f, f.writes, f.x, number(&f, 6), 6, number(&f, 0), 2);
                    touch(&f, f.reads, f.x, number(&f, 6), 0, number(&f, 0), 1);
                }
            }
            f.is_loading = true;
            ptowsp_schedule schedule = schedule_of(&f, which, 8);
            schedule.dependencies =
                row & 2 ? PTOWSP_DEPENDENCIES_EXACT : PTOWSP_DEPENDENCIES_OVERLAP;
            schedule.hazards = is_raw_only ? PTOWSP_HAZARD_RAW : 0;
            run_with(&f, &schedule);
            expect_pipeline(&f, 0, 0, 9);
            expect(&f, 1, is_raw_only ? 0 : 9, is_raw_only ? 2 : 11);
            expect(&f, 2, 0, 1);
            fixture_free(&f);
        }
    }
}

static void pipeline_program__two_pipelines_share_data(void **state) {
    (void)state;
    for (int which = FIFO; which < SCHEDULE_COUNT; which++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                touch_pipeline(&f, "p", f.writes, f.x, 0, 0, 5);
                touch_pipeline(&f, "q", f.reads, f.x, 6, 6, 7);   // reads what p writes
                touch_pipeline(&f, "r", f.reads, f.x, 4, 0, 20);  // beside q
                touch_pipeline(&f, "s", f.writes, f.x, 2, 2, 1);  // when both have read
                touch_pipeline(&f, "t", f.updates, f.y, 2, 2, 3);
            }
        }
        const ptowsp_schedule schedule = schedule_of(&f, which, 1);
        run_with(&f, &schedule);
        expect_pipeline(&f, 0, 0, 5);
        expect_pipeline(&f, 1, 5, 7);
        expect_pipeline(&f, 2, 5, 20);
        expect_pipeline(&f, 3, 25, 1);
        expect_pipeline(&f, 4, 0, 3);
        fixture_free(&f);
    }
}

// Two tensors in one piece of memory are the same data, whatever their names.
static void pipeline_program__tensors_that_share_memory_are_the_same(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_buffer buffer;
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            touch_pipeline(&f, "p", f.writes, f.x, 0, 0, 5);
            touch(&f, f.reads, f.y, number(&f, 6), 6, number(&f, 0), 7);
        }
    }
    compile(&f, NULL);
    run_compiled(&f);
    expect(&f, 1, 0, 7);
    memset(&buffer, 0, sizeof buffer);
    buffer.data = f.x_data;
    assert_int_equal(ptowsp_run_bind_tensor(f.run, "y", &buffer), PTOWSP_OK);
    run_compiled(&f);
    expect(&f, 1, 5, 12);
    fixture_free(&f);
}

//      0   10 cycles             0-10
//      1   50 cycles             0-50
//      p   after 0              10-22
//      4   after p              22-23
//      q   after p              22-34
//      7   after q and 1        50-52
static void pipeline_program__edges_lead_to_and_from_it(void **state) {
    (void)state;
    for (int which = FIFO; which < SCHEDULE_COUNT; which++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            const ptowsp_node first = busy(&f, 10), second = busy(&f, 50);
            const ptowsp_node p = twelve(&f, "p", &first, 1);
            ptowsp_task_desc desc = task_desc(&f, f.work, number(&f, 4), 1);
            desc.after[0] = p;
            ptowsp_task_make(f.m, &desc);
            const ptowsp_node q = twelve(&f, "q", &p, 1);
            desc = task_desc(&f, f.work, number(&f, 7), 2);
            desc.after[0] = q;
            desc.after[1] = second;
            ptowsp_task_make(f.m, &desc);
        }
        ptowsp_schedule schedule = schedule_of(&f, which, 8);
        schedule.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;
        run_with(&f, &schedule);
        expect_pipeline(&f, 0, 10, 12);
        expect_pipeline(&f, 1, 22, 12);
        expect(&f, 4, 22, 23);
        expect(&f, 7, 50, 52);
        fixture_free(&f);
    }
}

// In a loop an edge is to the instance of the same iteration: task k takes 10, and p 12 after it; on
// one lane tasks are at 0, 10, 20, and the last pipeline from 30.
static void pipeline_program__an_edge_in_a_loop_is_to_the_matching_instance(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PARALLEL(f.m, k, axis(&f, "three", 3)) {
            const ptowsp_node first = busy(&f, 10);
            twelve(&f, "p", &first, 1);
        }
    }
    ptowsp_schedule schedule = schedule_of(&f, FIFO, 1);
    schedule.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;
    run_with(&f, &schedule);
    for (uint64_t k = 0; k < 3; k++) {
        expect(&f, 3 * k, 10 * k, 10 * k + 10);
        expect(&f, 3 * k + 1, 10 * k + 10, 10 * k + 15);
    }
    expect_pipeline(&f, 0, 30, 12);
    fixture_free(&f);
}

// Kernels are called in program order, pipelines at their place in it.
static void pipeline_program__data_is_that_of_program_order(void **state) {
    (void)state;
    for (int which = 0; which < SCHEDULE_COUNT; which++) {
        fixture f;
        fixture_make(&f);
        ptowsp_expr zero = number(&f, 0);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                touch(&f, f.put, f.x, zero, 0, number(&f, 41), 100);
                touch_pipeline(&f, "p", f.sees, f.x, 0, 0, 1);
                touch(&f, f.put, f.x, zero, 0, number(&f, 42), 1);
                touch_pipeline(&f, "q", f.sees, f.x, 0, 0, 1);
            }
        }
        const ptowsp_schedule schedule = schedule_of(&f, which, 4);
        run_with(&f, &schedule);
        EXPECT_CALLS(&f, 41, 41, 42, 42);
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_program__a_sequence_waits_for_it_and_it_for_the_sequence),
        cmocka_unit_test(pipeline_program__it_runs_beside_what_is_parallel_and_needs_no_lane),
        cmocka_unit_test(pipeline_program__it_ends_with_its_last_process),
        cmocka_unit_test(pipeline_program__in_order_its_data_moves_the_clock),
        cmocka_unit_test(pipeline_program__it_runs_as_often_as_a_loop_says),
        cmocka_unit_test(pipeline_program__results_are_sums_over_calls_of_its_workload),
        cmocka_unit_test(pipeline_program__two_pipelines_are_one_after_another_or_side_by_side),
        cmocka_unit_test(pipeline_program__it_reads_and_writes_whole_tensors),
        cmocka_unit_test(pipeline_program__a_slot_load_reads_the_whole_tensor),
        cmocka_unit_test(pipeline_program__two_pipelines_share_data),
        cmocka_unit_test(pipeline_program__tensors_that_share_memory_are_the_same),
        cmocka_unit_test(pipeline_program__edges_lead_to_and_from_it),
        cmocka_unit_test(pipeline_program__an_edge_in_a_loop_is_to_the_matching_instance),
        cmocka_unit_test(pipeline_program__data_is_that_of_program_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
