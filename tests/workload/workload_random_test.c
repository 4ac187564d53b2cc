// Workloads, at random: small programs of every statement are compiled with random schedules, run,
// and compared with the slow reference of workload_reference.h: the arguments of every task, its
// lane, its times, the data and the slots afterwards. Then what must hold without a reference:
// running again, measuring instead of executing, and binding anew change nothing that they should
// not.

#define PWSP_BLOCK_MIN 1  // loops here are short, and are to be evaluated in blocks
#include "src/workload/expand.c"
#include "workload_sample.h"

// Fewer where every access is checked.
enum { PROGRAMS = LANE_IS_CHECKED ? 30 : 120 };

// -- without the reference ------------------------------------------------------------------------

static void check_again(sample *s, ptowsp_run *run, const outcome *first) {
    ptowsp_status status = check_execution(s, run);
    check_same(s, first, run, status, "running again changes something");
    sample_expect(s);
    ref_bind(run, &s->program, &s->bindings, &s->memory, true);
    status = sample_execute(s, run, PTOWSP_RUN_EXECUTE, false);
    assert_null(ptowsp_run_records(run));
    check_same(s, first, run, status, "not recording changes something");
}

// Measuring leaves the data alone, does not need it, and takes the same time.
static void check_time_only(sample *s, ptowsp_run *run, const outcome *first) {
    if (!s->program.can_measure || s->program.loads_written) {
        return;
    }
    sample_expect(s);
    ref_bind(run, &s->program, &s->bindings, &s->memory, s->program.has_aliases);
    ptowsp_status status = sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, true);
    check_run(s, run, status);
    check_same(s, first, run, status, "measuring differs from executing");
    assert_int_equal(s->module.watch.calls, 0);
    memcpy(s->x.cells, s->bindings.cells, sizeof s->x.cells);
    check_data(s, run);
}

// A module, program and run that are made anew give the same.
static void check_fresh(sample *s, const outcome *first) {
    ref_module *old = (ref_module *)malloc(sizeof *old);
    assert_non_null(old);
    *old = s->module;
    ref_module_build(&s->module, s->context, &s->program);
    ptowsp_program *program = NULL;
    assert_ok(sample_compile(s, &s->module, &program));
    ptowsp_run *run = test_run_of(s->context, program);
    check_same(s, first, run, check_execution(s, run), "a fresh program differs");
    test_destroy(run, program, NULL, NULL);
    ref_module_free(&s->module);
    s->module = *old;
    free(old);
}

// Nor does a program that has been saved and loaded.
static void check_saved(sample *s, const ptowsp_program *program, const outcome *first) {
    ptowsp_program *loaded = sample_reload(s, program);
    ptowsp_run *run = test_run_of(s->context, loaded);
    sample_expect(s);
    check_same(s, first, run, check_execution(s, run), "a saved program differs");
    test_destroy(run, loaded, NULL, NULL);
}

// -- tests ----------------------------------------------------------------------------------------

typedef struct tally {
    unsigned ok, stuck, aborted;
} tally;

static void check_sample(sample *s, tally *counts) {
    ptowsp_program *program = NULL;
    sample_expect(s);
    ptowsp_status status = sample_compile(s, &s->module, &program);
    if (status == PTOWSP_STUCK && s->expected.status == PTOWSP_STUCK) {
        counts->stuck++;  // known without running
        sample_reload(s, NULL);
        return;
    } else if (status != PTOWSP_OK) {
        complain(s, NULL, -1, "the program is refused");
        return;
    }
    ptowsp_run *run = test_run_of(s->context, program);
    status = check_execution(s, run);
    counts->ok += status == PTOWSP_OK;
    counts->stuck += status == PTOWSP_STUCK;
    counts->aborted += status == PTOWSP_LIMIT_EXCEEDED;
    outcome *first = outcome_of(run, status);
    check_again(s, run, first);
    check_time_only(s, run, first);
    free(first);
    sample_rebind(s);
    status = check_execution(s, run);
    first = outcome_of(run, status);
    if (s->schedule_number == 0) {
        check_fresh(s, first);
    }
    if (s->schedule_number < 3) {
        check_saved(s, program, first);
    }
    free(first);
    test_destroy(run, program, NULL, NULL);
}

TEST(workload__agrees_with_the_slow_reference) {
    uint64_t seed = test_seed();
    tally counts = {0, 0, 0};
    for (unsigned number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        sample *s = sample_make(seed, number);
        for (unsigned i = 0; i < 6; i++) {
            sample_schedule(s, i);
            check_sample(s, &counts);
        }
        sample_free(s);
    }
    print_message("%u runs were fine, %u stuck, %u aborted\n", counts.ok, counts.stuck,
                  counts.aborted);
    assert_met(counts.ok > 0 && counts.stuck > 0 && counts.aborted > 0);
}

// Runs the sample with its schedule and returns what came out.
static outcome *sample_run_once(sample *s) {
    ptowsp_program *program = NULL;
    if (sample_compile(s, &s->module, &program) != PTOWSP_OK) {
        complain(s, NULL, -1, "the program is refused");
    }
    ptowsp_run *run = test_run_of(s->context, program);
    outcome *result = outcome_of(run, check_execution(s, run));
    test_destroy(run, program, NULL, NULL);
    return result;
}

TEST(workload__with_a_window_of_one_both_ways_to_issue_agree) {
    uint64_t seed = test_seed() + 1;
    for (unsigned number = 0; number < PROGRAMS / 2; number++) {
        sample *s = sample_make(seed, number);
        sample_schedule(s, 0);
        ptowsp_schedule *schedule = &s->schedule.schedule;
        if (schedule->dispatch == PTOWSP_DISPATCH_WORK_STEALING) {
            schedule->dispatch = PTOWSP_DISPATCH_DEFAULT;
        }
        schedule->ready = PTOWSP_READY_FIFO;
        s->schedule.priority_key = 0;
        schedule->start = PTOWSP_START_AT_ONCE;
        schedule->start_threshold = 0;
        schedule->timing = PTOWSP_TIMING_IMMEDIATE;
        schedule->timing_count = 0;
        schedule->timing_cycles = 0;
        schedule->window_policy = PTOWSP_WINDOW_STALL;
        schedule->window = 1;
        schedule->dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
        schedule->hazards = 0;
        schedule->issue = PTOWSP_ISSUE_IN_ORDER;
        outcome *in_order = sample_run_once(s);
        schedule->issue = PTOWSP_ISSUE_DATAFLOW;
        outcome *dataflow = sample_run_once(s);
        assert_true(in_order->stats.task_count == dataflow->stats.task_count);
        for (uint64_t i = 0; i < dataflow->stats.task_count; i++) {
            assert_true(in_order->records[i].start == dataflow->records[i].start);
            assert_true(in_order->records[i].end == dataflow->records[i].end);
        }
        free(in_order);
        free(dataflow);
        sample_free(s);
    }
}

// Work stealing in one pool, which starts tasks in a way of its own if nothing else is asked for: so one
// thing at a time is, with and without records.
TEST(workload__stealing_in_one_pool_agrees_with_the_slow_reference) {
    uint64_t seed = test_seed() + 2;
    tally counts = {0, 0, 0};
    for (unsigned number = 0; TEST_ROUNDS(number, PROGRAMS / 2); number++) {
        sample *s = sample_make(seed, number);
        for (unsigned i = 0; i < 6; i++) {
            sample_schedule(s, i);
            const ptowsp_schedule made = s->schedule.schedule;
            ptowsp_schedule *schedule = &s->schedule.schedule;
            memset(schedule, 0, sizeof *schedule);
            schedule->issue = PTOWSP_ISSUE_DATAFLOW;
            schedule->dispatch = PTOWSP_DISPATCH_WORK_STEALING;
            schedule->lane_count = 1 + number % 7;
            schedule->dependencies = made.dependencies;
            schedule->hazards = made.hazards;
            schedule->stream_count = made.stream_count;
            s->schedule.dispatch_key = s->schedule.priority_key = 0;
            switch (i) {
            case 1:
                schedule->start = PTOWSP_START_THRESHOLD;
                schedule->start_threshold = 1 + number % 8;  // more than the window: stuck
                schedule->window = 1 + number % 5;
                break;
            case 2: schedule->start = PTOWSP_START_ALL_ISSUED; break;
            case 3:
                schedule->timing = PTOWSP_TIMING_RATE_LIMITED;
                schedule->timing_cycles = 1 + number % 9;
                break;
            case 4: schedule->window = 1 + number % 6; break;
            case 5:
                schedule->window = 4;
                schedule->release = PTOWSP_RELEASE_IN_ORDER;
                break;
            default: break;  // nothing
            }
            check_sample(s, &counts);
        }
        sample_free(s);
    }
    print_message("%u runs were fine, %u stuck\n", counts.ok, counts.stuck);
    assert_met(counts.ok > 0 && counts.stuck > 0);
}
