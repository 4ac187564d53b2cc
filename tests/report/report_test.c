// Why a run takes what it takes: bounds of pipelines on paper, what-ifs beside runs with other costs, and reports read
// back. Bounds of tasks and reports as text are in export.facts.

#include "see_fixture.h"
#include "support/files.h"
#include "written.h"

static const ptowsp_record_options edges_level = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};

static ptowsp_status report_of(const see *s, ptowsp_report_format format,
                               const ptowsp_export_options *options, const ptowsp_what_if *what,
                               uint32_t count) {
    return ptowsp_run_report(s->run, format, options, what, count, written_output());
}

static ptowsp_schedule lanes(uint32_t count) {
    ptowsp_schedule schedule = {.lane_count = count};
    return schedule;
}

// A channel of latency 100 from one process to three: 12 tokens, whose tasks take 30 and 90 cycles.
// Depth d passes d tokens in each latency; all replicas share the channel.
TEST(report__bounds_by_processes_and_channels_are_those_on_paper) {
    const uint64_t depths[] = {0, 1, 2, 5, 12, 40}, least[] = {1200, 1200, 600, 300, 100, 100};
    for (int i = 0; i < 6; i++) {
        see s = {0};
        ptowsp_run_bounds bounds;
        see_make_workers(&s);
        assert_ok(ptowsp_run_bind_symbol(s.run, "depth", depths[i]));
        see_run(&s, &edges_level);
        assert_ok(ptowsp_run_find_bounds(s.run, &bounds));
        assert_int_equal(bounds.channel_cycles, least[i]);
        assert_string_equal(ptowsp_run_channels(s.run, NULL)[bounds.channel].name, "loaded");
        // the first of three workers that got as many tokens as any, or the process that sends all
        const ptowsp_process_stats *processes = ptowsp_run_processes(s.run, NULL);
        assert_int_equal(bounds.process_cycles, processes[bounds.process].busy_cycles);
        for (uint32_t p = 0; p < 4; p++) {
            assert_true(processes[p].busy_cycles <= bounds.process_cycles);
        }
        assert_true(bounds.process_cycles >= 360 && bounds.process_cycles % 90 == 0);
        assert_int_equal(bounds.path_cycles, 90);
        assert_int_equal(bounds.largest_cycles, i < 3 ? least[i] : bounds.process_cycles);
        assert_true(bounds.largest_cycles <= bounds.makespan_cycles);
        assert_ok(report_of(&s, PTOWSP_REPORT_TEXT, NULL, NULL, 0));
        has("  work of a process  ");
        has("  latencies of a channel  ");
        assert_ok(report_of(&s, PTOWSP_REPORT_JSON, NULL, NULL, 0));
        char wanted[64];
        snprintf(wanted, sizeof wanted, "\"channel\":%d}", (int)least[i]);
        has(wanted);
        see_free(&s);
    }
    see s = {0};  // no latency, so no bound; load takes 7 + 8 + 9 + 10, compute 40
    ptowsp_run_bounds bounds;
    see_make_pipeline(&s);
    see_run_tasks(&s);
    assert_ok(ptowsp_run_find_bounds(s.run, &bounds));
    assert_int_equal(bounds.channel_cycles, 0);
    assert_int_equal(bounds.channel, UINT32_MAX);
    assert_int_equal(bounds.process_cycles, 40);
    assert_int_equal(bounds.process, 1);
    see_free(&s);
}

// What if merge took a part of its cycles? The same as a run whose merge takes so many.
TEST(report__what_ifs_are_runs_with_other_costs) {
    for (int kind = 0; kind < 2; kind++) {
        see s = {0};
        ptowsp_schedule schedule = lanes(3);
        schedule.dispatch = kind ? PTOWSP_DISPATCH_WORK_STEALING : PTOWSP_DISPATCH_DEFAULT;
        s.merge_cycles = 40;
        see_make(&s, &schedule, 6);
        see_run(&s, &edges_level);
        uint64_t makespan = ptowsp_run_result(s.run)->makespan_cycles;
        for (uint32_t percent = 10; percent <= 200; percent += 30) {
            see other = {0};
            ptowsp_what_if what = {2, percent, 0, 0};
            other.merge_cycles = 40 * percent / 100;
            see_make(&other, &schedule, 6);
            see_run(&other, NULL);
            assert_ok(ptowsp_run_what_if(s.run, NULL, &what));
            assert_int_equal(what.makespan_cycles, ptowsp_run_result(other.run)->makespan_cycles);
            see_free(&other);
        }
        ptowsp_what_if free_attend = {1, 0, 0, 0};
        assert_ok(ptowsp_run_what_if(s.run, NULL, &free_attend));
        // 6 merges on 3 lanes; in turns, an attend of each request waits for the merge before it
        assert_int_equal(free_attend.makespan_cycles, kind ? 80 : 240);
        assert_null(ptowsp_run_kernels(s.run, NULL));
        see_run(&s, &edges_level);
        assert_int_equal(ptowsp_run_result(s.run)->makespan_cycles, makespan);
        ptowsp_what_if bad = {3, 10, 0, 0};
        test_refused(s.context, ptowsp_run_what_if(s.run, NULL, &bad), PTOWSP_INVALID_PARAMS,
                     PTOWSP_NO_INDEX,
                     "run: what if kernel 3 took 10 percent: no such kernel, or over 1000");
        see_free(&s);
    }
    see p = {0};
    ptowsp_what_if slow = {1, 200, 0, 0};  // load: 14, 16, 18, 20
    see_make_pipeline(&p);
    assert_ok(ptowsp_run_what_if(p.run, NULL, &slow));
    assert_int_equal(slow.makespan_cycles, 10 + 14 + 16 + 18 + 20 + 10);
    see_free(&p);
}

TEST(report__json_and_html_are_read_back) {
    see s = {0};
    ptowsp_schedule schedule = lanes(40);
    const ptowsp_what_if what = {1, 50, 14, 0};
    ptowsp_export_options options = {.title = "a \"<&>\\"};
    see_make(&s, &schedule, 5);
    see_run(&s, &edges_level);
    assert_ok(report_of(&s, PTOWSP_REPORT_JSON, &options, &what, 1));
    file_write("build/report.json", written.text, written.length);
    assert_ok(report_of(&s, PTOWSP_REPORT_HTML, &options, &what, 1));
    file_write("build/report.html", written.text, written.length);
    see_free(&s);
    if (system("python3 -c 'import json' > /dev/null 2>&1") != 0) {
        skip();
    }
    assert_int_equal(system("python3 tests/report/report_read.py"), 0);
}
