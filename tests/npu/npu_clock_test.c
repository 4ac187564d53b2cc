// The clock of emitted trees keeps the library's time: random workloads with random schedules, and
// random pipelines, are executed, then executed again with each event told to the clock; makespan,
// stalls and all other statistics, of lanes too, and errors have to be the same.

#include "pipeline_random.h"
#include "workload_sample.h"

#include "npu_clock_mirror.h"

// Fewer where every access is checked.
enum { PROGRAMS = LANE_IS_CHECKED ? 60 : 1000, PIPELINES = LANE_IS_CHECKED ? 300 : 4000 };

typedef struct tally {
    unsigned ok, failed;
    unsigned lanes, flow, loads;  // of those that were ok
} tally;

static void count(tally *counts, const ptowsp_run *run, ptowsp_status status) {
    counts->ok += status == PTOWSP_OK;
    counts->failed += status != PTOWSP_OK;
    if (status == PTOWSP_OK) {
        counts->flow += run->time.is_events;
        counts->lanes += !run->time.is_events;
        counts->loads += run->time.sim.stats.slot_load_count > 0;
    }
}

static void print_counts(const tally *counts) {
    print_message("%u runs were fine (%u by lanes; %u by flow; %u load slots), %u failed\n",
                  counts->ok, counts->lanes, counts->flow, counts->loads, counts->failed);
}

// -- on paper -------------------------------------------------------------------------------------

// Round robin, by the tree's order, each task when it is issued; a program without tensors.
static ptowsp_schedule paper_schedule(ptowsp_issue issue) {
    ptowsp_schedule schedule = {.issue = issue,
                                .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
                                .pools = PTOWSP_POOLS_ONE,
                                .dependencies = PTOWSP_DEPENDENCIES_STRUCTURE,
                                .ready = PTOWSP_READY_FIFO,
                                .start = PTOWSP_START_AT_ONCE,
                                .timing = PTOWSP_TIMING_IMMEDIATE};
    return schedule;
}

static void print_nothing(const void *user, uint32_t node, ptowsp_output text) {
    (void)user;
    (void)node;
    (void)text;
}

static void paper_begin(npu_clock *clock, const ptowsp_schedule *schedule, uint32_t lane_count) {
    static const bool no_tensor[1];
    static const pwsp_bound_tensor unbound[1];
    static pwsp_pool_info pools[PWSP_POOL_MAX];
    pwsp_timed timed = {.schedule = *schedule,
                        .pools = pools,
                        .lane_count = lane_count,
                        .scope_depth = 2,
                        .pipeline_count = 2,
                        .tensor_count = 1,
                        .tensor_is_loaded = no_tensor,
                        .tensor_is_written = no_tensor,
                        .print_place = print_nothing};
    timed.schedule.lane_count = lane_count;
    timed.pool_count = pwsp_schedule_pools(&timed.schedule, pools);
    assert_true(npu_clock_begin(clock, &timed, unbound));
}

static bool paper_task(npu_clock *clock, uint64_t cycles) {
    const pwsp_arrival task = {.cycles = cycles};
    return npu_clock_do_task(clock, &task);
}

static bool paper_mark(npu_clock *clock, pwsp_mark_kind kind) {
    const uint32_t edge = 0;
    const pwsp_mark mark = {kind, 0, kind == PWSP_MARK_RESET, &edge};
    return npu_clock_mark(clock, &mark);
}

// Pipelines beside tasks, where lanes choose: one starts when the task of 10 cycles has ended, and
// once more after its own 7.
TEST(npu_clock__tells_when_the_last_run_of_a_pipeline_has_started) {
    ptowsp_schedule schedule = paper_schedule(PTOWSP_ISSUE_DATAFLOW);
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    npu_clock *clock = npu_clock_create();
    paper_begin(clock, &schedule, 2);
    const pwsp_pipeline_arrival pipeline = {.whole.cycles = 7, .pipeline = 1, .task_count = 5};
    assert_true(paper_task(clock, 10) && npu_clock_do_pipeline(clock, &pipeline, 9, 4, 3));
    assert_true(npu_clock_do_pipeline(clock, &pipeline, 9, 4, 3) && npu_clock_end(clock));
    ptowsp_run_stats stats = npu_clock_stats(clock);
    assert_int_equal(npu_clock_pipeline_start(clock, 0), 0);
    assert_int_equal(npu_clock_pipeline_start(clock, 1), 17);
    assert_int_equal(stats.makespan_cycles, 24);
    assert_int_equal(stats.task_count, 11);
    assert_int_equal(stats.busy_cycles, 10 + 9 + 9);
    assert_int_equal(stats.stall_cycles[PTOWSP_STALL_CHANNEL], 8);
    assert_int_equal(stats.slot_load_count, 6);
    npu_clock_destroy(clock);
}

// Every call: nothing comes of it.
static void expect_nothing_more(npu_clock *clock) {
    const pwsp_tile_at tile = {0};
    const pwsp_pipeline_arrival pipeline = {.pipeline = 0};
    assert_false(paper_mark(clock, PWSP_MARK_PARALLEL));
    assert_false(paper_mark(clock, PWSP_MARK_END));
    assert_false(paper_mark(clock, PWSP_MARK_RESET));
    assert_false(npu_clock_slot_load(clock, &tile));
    assert_false(npu_clock_do_pipeline(clock, &pipeline, 0, 0, 0));
    assert_false(paper_task(clock, 1));
}

TEST(npu_clock__does_nothing_after_an_error_until_it_begins_anew) {
    for (int issue = PTOWSP_ISSUE_DATAFLOW; issue <= PTOWSP_ISSUE_IN_ORDER; issue++) {
        ptowsp_schedule schedule = paper_schedule((ptowsp_issue)issue);
        npu_clock *clock = npu_clock_create();
        expect_nothing_more(clock);  // not begun
        assert_false(npu_clock_end(clock));
        paper_begin(clock, &schedule, 1);
        assert_true(paper_task(clock, 3));
        assert_false(paper_mark(clock, PWSP_MARK_END));
        expect_nothing_more(clock);
        assert_invalid(npu_clock_status(clock));
        assert_string_equal(npu_clock_error(clock), "clock: no scope is open");
        assert_false(npu_clock_end(clock));
        ptowsp_run_stats stats = npu_clock_stats(clock);
        assert_int_equal(stats.task_count, 1);
        assert_int_equal(stats.slot_load_count, 0);
        assert_int_equal(stats.makespan_cycles, 3);
        assert_int_equal(npu_clock_lanes(clock)[0].task_count, 1);
        paper_begin(clock, &schedule, 1);
        assert_ok(npu_clock_status(clock));
        assert_string_equal(npu_clock_error(clock), "");
        assert_true(paper_mark(clock, PWSP_MARK_SEQUENTIAL));
        assert_false(paper_mark(clock, PWSP_MARK_PARALLEL));  // it was told two at most
        assert_int_equal(npu_clock_status(clock), PTOWSP_LIMIT_EXCEEDED);
        paper_begin(clock, &schedule, 1);
        assert_true(paper_task(clock, 8) && npu_clock_end(clock));
        assert_int_equal(npu_clock_stats(clock).makespan_cycles, 8);
        assert_false(paper_task(clock, 8) || npu_clock_end(clock));  // it has ended
        // Two tasks of 2^63 - 1 cycles one after another.
        paper_begin(clock, &schedule, 1);
        assert_true(paper_task(clock, PTOWSP_CYCLES_MAX));
        assert_false(paper_task(clock, PTOWSP_CYCLES_MAX) && npu_clock_end(clock));
        assert_int_equal(npu_clock_status(clock), PTOWSP_LIMIT_EXCEEDED);
        expect_nothing_more(clock);
        npu_clock_destroy(clock);
    }
}

// -- workloads ------------------------------------------------------------------------------------

// Fresh memory, and what kernels are watched for.
static void prepare(sample *s, ptowsp_run *run) {
    sample_refresh(s);
    ref_expand(&s->program, &s->bindings, &s->schedule, &s->x);
    s->module.watch.args = s->x.args;
    s->module.watch.task_count = (uint64_t)s->x.task_count;
    s->module.watch.calls = 0;
    ref_bind(run, &s->program, &s->bindings, &s->memory, true);
}

static void check_workload(sample *s, tally *counts) {
    ptowsp_program *program = NULL;
    if (sample_compile(s, &s->module, &program) != PTOWSP_OK) {
        return;  // stuck, and known to be
    }
    ptowsp_run *run = test_run_of(s->context, program);
    ptowsp_run_options options = {0};
    prepare(s, run);
    ptowsp_status status = ptowsp_run_execute(run, &options);
    ptowsp_run_stats stats = *ptowsp_run_result(run);
    count(counts, run, status);
    prepare(s, run);
    const char *what = mirror_check(run, &options, status, &stats);
    if (what) {
        complain(s, NULL, -1, what);
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}

TEST(npu_clock__takes_the_time_of_random_workloads) {
    uint64_t seed = test_seed();
    tally counts = {0};
    for (unsigned number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        sample *s = sample_make(seed, number);
        for (unsigned i = 0; i < 8; i++) {
            do {
                sample_schedule(s, i);
            } while (s->schedule.schedule.pools == PTOWSP_POOLS_NAMED);
            memset(s->schedule.schedule.ring_sizes, 0, sizeof s->schedule.schedule.ring_sizes);
            memset(s->schedule.schedule.depths, 0, sizeof s->schedule.schedule.depths);
            s->schedule.schedule.start = PTOWSP_START_AT_ONCE;
            s->schedule.schedule.start_threshold = 0;
            // Trees have no rings, nor named pools, nor do their tasks wait to start.
            s->schedule.schedule.release = PTOWSP_RELEASE_COMPLETION;
            check_workload(s, &counts);
        }
        sample_free(s);
    }
    print_counts(&counts);
    assert_met(counts.lanes && counts.flow && counts.loads && counts.failed);
}

// -- pipelines ------------------------------------------------------------------------------------

// Rules of issue for the tasks around, which pipelines wait for.
static ptowsp_schedule random_schedule(uint64_t *random) {
    ptowsp_schedule schedule = {.issue = test_random(random) % 2 ? PTOWSP_ISSUE_IN_ORDER
                                                                 : PTOWSP_ISSUE_DATAFLOW,
                                .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN};
    if (schedule.issue == PTOWSP_ISSUE_DATAFLOW && test_random(random) % 2) {
        schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    }
    schedule.lane_count = (uint32_t)test_random_in(random, 1, 3);
    switch (test_random(random) % 3) {
    case 0:
        schedule.timing = PTOWSP_TIMING_BATCHED;
        schedule.timing_count = (uint32_t)test_random_in(random, 1, 3);
        schedule.timing_cycles = (ptowsp_cycles)test_random_in(random, 0, 60);
        break;
    case 1:
        schedule.timing = PTOWSP_TIMING_RATE_LIMITED;
        schedule.timing_cycles = (ptowsp_cycles)test_random_in(random, 1, 60);
        break;
    default: break;
    }
    if (test_random(random) % 3 == 0) {  // there are none, so only slot loads wait
        schedule.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;
    }
    return schedule;
}

static void check_pipeline(sim_sample *s, const ptowsp_program *program, tally *counts) {
    ptowsp_run *run = test_run_of(s->context, program);
    sim_bind(&s->built, &s->b, run);
    ptowsp_run_options options = {0};
    ptowsp_status status = sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, false);
    ptowsp_run_stats stats = *ptowsp_run_result(run);
    count(counts, run, status);
    s->built.call_count = 0;
    memset(s->built.data, 0, sizeof s->built.data);
    const char *what = mirror_check(run, &options, status, &stats);
    if (what) {
        sim_complain(s, run, what);
    }
    ptowsp_run_destroy(run);
}

TEST(npu_clock__takes_the_time_of_random_pipelines) {
    uint64_t seed = test_seed(), random = seed;
    tally counts = {0};
    for (unsigned number = 0; TEST_ROUNDS(number, PIPELINES); number++) {
        sim_sample *s = sim_sample_random(seed, number);
        s->around.has_data = !s->around.has_no_cost && test_random(&random) % 2;
        sim_sample_build(s);
        if (s->built.status == PTOWSP_OK) {
            check_pipeline(s, s->built.program, &counts);
            ptowsp_program *program = NULL;
            ptowsp_schedule schedule = random_schedule(&random);
            const ptowsp_program_desc desc = {NULL, &schedule};
            if (ptowsp_program_create(s->context, s->built.module, &desc, &program) == PTOWSP_OK) {
                check_pipeline(s, program, &counts);
                ptowsp_program_destroy(program);
            }
        }
        sim_sample_free(s);
    }
    print_counts(&counts);
    assert_met(counts.lanes && counts.flow && counts.loads && counts.failed);
}
