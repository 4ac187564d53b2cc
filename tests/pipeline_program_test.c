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

// -- loops ----------------------------------------------------------------------------------------

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_program__a_sequence_waits_for_it_and_it_for_the_sequence),
        cmocka_unit_test(pipeline_program__results_are_sums_over_calls_of_its_workload),
        cmocka_unit_test(pipeline_program__two_pipelines_are_one_after_another_or_side_by_side),
        cmocka_unit_test(pipeline_program__tensors_that_share_memory_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
