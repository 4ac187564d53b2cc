// Records of tasks: labels, sums over all, and which tasks are kept. Values, times and bytes of each, and sums of
// kernels, are in cases/records.case, on lanes as well.
// Times on paper: with request r and head h, task 4 r + h takes 10 + r + h, task 4 r + 3 takes 4.

#include "see_fixture.h"

static void label_is(const see *s, uint64_t index, const char *expected) {
    char data[200];
    ptowsp_task_trace task;
    assert_true(ptowsp_run_trace_find(s->run, index, &task));
    assert_int_equal(task.index, index);
    ptowsp_run_print_task(s->run, &task, TEST_TEXT(data));
    assert_string_equal(data, expected);
}

static ptowsp_schedule schedule_of(int kind) {
    const ptowsp_schedule schedule = {
        .lane_count = 2,
        .issue = kind == 0 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW,
        .dispatch = kind == 2 ? PTOWSP_DISPATCH_WORK_STEALING : PTOWSP_DISPATCH_ROUND_ROBIN};
    return schedule;
}

SEE_TEST(trace__tasks_are_found_and_printed_by_their_numbers, 1, 5) {
    ptowsp_task_trace task;
    see_run_tasks(s);
    assert_int_equal(ptowsp_run_trace_count(s->run), 20);
    label_is(s, 0, "attend request=0 head=0 scale=1");
    label_is(s, 19, "merge axis0=47");
    assert_false(ptowsp_run_trace_find(s->run, 20, &task));
    assert_ptr_equal(ptowsp_run_records(s->run), ptowsp_run_trace_at(s->run, 0).record);
}

// Node and values of the one program's tasks are none of the other's: no kernel of it is named.
TEST(trace__task_of_another_program_is_told_by_its_index) {
    see both[2] = {0};
    see_make(&both[0], NULL, 2);
    see_make_pipeline(&both[1]);
    see_run_tasks(&both[0]);
    see_run_tasks(&both[1]);
    for (int from = 0; from < 2; from++) {
        uint64_t count = ptowsp_run_trace_count(both[from].run), strange = 0;
        for (uint64_t i = 0; i < count; i++) {
            char label[2][200], expected[40];
            ptowsp_task_trace task = ptowsp_run_trace_at(both[from].run, i);
            for (int by = 0; by < 2; by++) {
                ptowsp_run_print_task(both[by].run, &task, TEST_TEXT(label[by]));
            }
            snprintf(expected, sizeof expected, "task %d", (int)task.index);
            strange += strcmp(label[1 - from], expected) == 0;
            assert_string_not_equal(label[from], expected);
        }
        assert_true(strange > 0);
    }
    // The same node with other numbers of values, and a node beyond all.
    ptowsp_task_trace task = ptowsp_run_trace_at(both[0].run, 0);
    ptowsp_task_record record = *task.record;
    for (int k = 0; k < 3; k++) {
        char label[200];
        ptowsp_task_trace other = task;
        other.record = &record;
        other.axis_count += k == 0;
        other.scalar_count += k == 1;
        record.node = k == 2 ? UINT32_MAX : task.record->node;
        ptowsp_run_print_task(both[0].run, &other, TEST_TEXT(label));
        assert_string_equal(label, "task 0");
    }
    see_free(&both[0]);
    see_free(&both[1]);
}

// 3 heads: attend takes 3 (10 + r) + 3 for request r; merge takes 4.
TEST(trace__sums_are_those_of_all_tasks) {
    for (int kind = 0; kind < 6; kind++) {
        see s = {0};
        uint32_t count;
        ptowsp_schedule schedule = schedule_of(kind % 3);
        see_make(&s, &schedule, 5);
        const ptowsp_record_options totals = {PTOWSP_RECORD_TOTALS, 0, 0, 0, false};
        const ptowsp_record_options tasks = {PTOWSP_RECORD_TASKS, 40, 60, 3, false};
        see_run(&s, kind < 3 ? &totals : &tasks);
        const ptowsp_task_sums *kernels = ptowsp_run_kernels(s.run, &count);
        assert_int_equal(count, 3);
        assert_int_equal(kernels[0].task_count, 0);
        assert_int_equal(kernels[1].busy_cycles, 195);  // 5 * 33 + 3 * 10
        assert_int_equal(kernels[2].busy_cycles, 20);
        const ptowsp_run_stats *stats = ptowsp_run_result(s.run);
        assert_int_equal(stats->busy_cycles, 215);
        uint64_t idle = 0;
        for (int i = 0; i < PTOWSP_STALL_COUNT; i++) {
            idle += ptowsp_run_idle(s.run)[i];
        }
        assert_int_equal(idle, 2 * stats->makespan_cycles - 215);
        assert_int_equal(ptowsp_run_idle(s.run)[PTOWSP_STALL_LANE], 0);
        ptowsp_usage usage = ptowsp_run_usage(s.run);
        assert_int_equal(usage.bin_cycles, 1);
        assert_int_equal(usage.bin_count, stats->makespan_cycles);
        uint64_t busy[3] = {0, 0, 0};
        for (uint32_t i = 0; i < usage.bin_count; i++) {
            assert_in_range(usage.busy[i * 3 + 1] + usage.busy[i * 3 + 2], 0, 2);
            busy[1] += usage.busy[i * 3 + 1];
            busy[2] += usage.busy[i * 3 + 2];
        }
        assert_int_equal(busy[1], 195);
        assert_int_equal(busy[2], 20);
        see_free(&s);
    }
}

// Keeping some is the same as keeping all and choosing among them.
TEST(trace__a_window_and_every_nth_keep_the_same_records) {
    uint64_t seed = test_seed();
    for (int round = 0; round < 60; round++) {
        see s = {0}, all = {0};
        ptowsp_schedule schedule = schedule_of(round % 3);
        int64_t requests = test_random_in(&seed, 0, 60);
        see_make(&s, &schedule, requests);
        see_make(&all, &schedule, requests);
        see_run_tasks(&all);
        ptowsp_record_options some = {PTOWSP_RECORD_TASKS, 0, 0, 0, false};
        some.begin = (ptowsp_cycles)test_random_in(&seed, 0, 500);
        some.end = test_random(&seed) % 3 ? some.begin + 1 + test_random(&seed) % 300 : 0;
        some.every = test_random(&seed) % 5;
        see_run(&s, &some);
        uint64_t at = 0;
        for (uint64_t i = 0; i < ptowsp_run_trace_count(all.run); i++) {
            ptowsp_task_trace kept, one = ptowsp_run_trace_at(all.run, i);
            const ptowsp_task_record *record = one.record;
            bool is_in = (record->end > some.begin || record->start >= some.begin) &&
                         (!some.end || record->start < some.end) &&
                         (some.every == 0 || i % some.every == 0);
            assert_int_equal(ptowsp_run_trace_find(s.run, i, &kept), is_in);
            if (!is_in) {
                continue;
            }
            assert_int_equal(ptowsp_run_trace_at(s.run, at++).index, i);
            assert_int_equal(kept.index, i);
            assert_memory_equal(kept.record, record, sizeof *record);
            assert_memory_equal(kept.args, one.args,
                                (one.axis_count + one.scalar_count) * sizeof(uint64_t));
            assert_int_equal(kept.bytes_written, one.bytes_written);
        }
        assert_int_equal(ptowsp_run_trace_count(s.run), at);
        assert_memory_equal(ptowsp_run_result(s.run), ptowsp_run_result(all.run),
                            offsetof(ptowsp_run_stats, memory_bytes));
        uint64_t count;
        bool has_all = some.begin == 0 && some.end == 0 && some.every <= 1;
        assert_int_equal(ptowsp_run_critical_path(s.run, &count) != NULL, has_all && requests > 0);
        see_free(&s);
        see_free(&all);
    }
}

// With a window of time the memory is that of the tasks kept, not of all.
TEST(trace__memory_is_for_what_is_kept) {
    for (int kind = 0; kind < 3; kind++) {
        see s = {0};
        ptowsp_schedule schedule = schedule_of(kind);
        schedule.window_policy = PTOWSP_WINDOW_STALL;
        schedule.window = 8;
        see_make(&s, &schedule, 4000);
        see_run(&s, NULL);
        size_t before = ptowsp_run_result(s.run)->memory_bytes;
        const ptowsp_record_options some = {PTOWSP_RECORD_TASKS, 1000, 1100, 0, false};
        see_run(&s, &some);
        assert_in_range(ptowsp_run_trace_count(s.run), 4, 60);
        assert_in_range(ptowsp_run_result(s.run)->memory_bytes - before, 1, 40000);
        see_free(&s);
    }
}

// compute ends at 57.
TEST(trace__a_window_has_the_tasks_of_processes_that_are_in_it) {
    see s = {0};
    const ptowsp_record_options some = {PTOWSP_RECORD_TASKS, 50, 0, 0, false};
    see_make_pipeline(&s);
    see_run(&s, &some);
    assert_int_equal(ptowsp_run_trace_count(s.run), 1);
    label_is(&s, 8, "compute token=3");
    see_free(&s);
}

static bool discard(void *user, const void *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
    return true;
}

// Every allocation of recording, exporting and reporting is refused once: an error, and no leak.
TEST(trace__without_memory_is_an_error) {
    for (int kind = 0; kind < 6; kind++) {
        EACH_REFUSED(n, 0) {
            test_memory memory = {0, 0, 0, 0};
            see s = {0};
            const ptowsp_record_options record = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};
            size_t size = 0;
            const ptowsp_output output = {discard, &size};
            ptowsp_schedule schedule = schedule_of(kind % 3);
            s.context_desc.resize = test_resize;
            s.context_desc.resize_user = &memory;
            if (kind < 3) {
                see_make(&s, &schedule, 20);
            } else {
                see_make_pipeline(&s);
            }
            assert_ok(ptowsp_run_record(s.run, &record));
            test_refuse(&memory, n);
            ptowsp_status status = test_time(s.run);
            for (int f = 0;
                 status == PTOWSP_OK && f <= (kind < 3 ? PTOWSP_EXPORT_NAMES : PTOWSP_EXPORT_DOT);
                 f++) {
                ptowsp_export_options how = {.fold = (ptowsp_fold)(n % 3)};
                status = ptowsp_run_export(s.run, (ptowsp_export_format)f, &how, output);
            }
            for (int f = 0; status == PTOWSP_OK && f <= PTOWSP_REPORT_HTML; f++) {
                status = ptowsp_run_report(s.run, (ptowsp_report_format)f, NULL, NULL, 0, output);
            }
            has_more = test_was_refused(&memory, status);
            see_free(&s);
            assert_int_equal(memory.live_bytes, 0);
        }
    }
}

// Its task ends at 1, the pipeline at 2001, with a receive: bins of 4 cycles reach there, of 2 do not.
TEST(trace__use_reaches_the_end_of_a_pipeline_that_waits) {
    static const char text[] = "module m\n"
                               "kernel k(axes 0) vector, 1 cycles, time only\n"
                               "workload w\n"
                               "  pipeline p\n"
                               "    channel c depth 1 latency 2000\n"
                               "    process load produces c\n"
                               "      task k()\n"
                               "      send c(1)\n"
                               "    process use consumes c\n"
                               "      receive t from c\n";
    see s = {0};
    const ptowsp_record_options totals = {PTOWSP_RECORD_TOTALS, 0, 0, 0, false};
    see_parse(&s, text, NULL, 0, NULL);
    see_run(&s, &totals);
    ptowsp_usage usage = ptowsp_run_usage(s.run);
    assert_int_equal(usage.bin_cycles, 4);
    assert_int_equal(usage.bin_count, 501);
    assert_int_equal(usage.busy[1], 1);
    for (uint32_t i = 1; i < usage.bin_count; i++) {
        assert_int_equal(usage.busy[i * usage.kernel_count + 1], 0);
    }
    see_free(&s);
}

SEE_TEST(trace__refuses_what_cannot_be, 1, 1) {
    ptowsp_task_trace task;
    assert_int_equal(ptowsp_run_trace_count(s->run), 0);
    assert_false(ptowsp_run_trace_find(s->run, 0, &task));
    assert_null(ptowsp_run_kernels(s->run, NULL));
    assert_null(ptowsp_run_idle(s->run));
    assert_null(ptowsp_run_usage(s->run).busy);
    ptowsp_record_options bad = {(ptowsp_record_level)9, 0, 0, 0, false};
    test_invalid(s->context, ptowsp_run_record(s->run, &bad),
                 "run: there is no level of records 9");
    const ptowsp_record_options empty = {PTOWSP_RECORD_TASKS, 7, 7, 0, false};
    test_invalid(s->context, ptowsp_run_record(s->run, &empty),
                 "run: records from cycle 7 to cycle 7 would be none");
    see_run(s, NULL);
    assert_int_equal(ptowsp_run_trace_count(s->run), 0);
    assert_null(ptowsp_run_kernels(s->run, NULL));
}
