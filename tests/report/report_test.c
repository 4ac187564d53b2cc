// Why a run takes what it takes: what-ifs beside runs with other costs, and reports read back. Bounds are in
// export.facts and pipelines.case, and reports as text in the first.

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
