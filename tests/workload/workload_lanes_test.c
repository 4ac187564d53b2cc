// Workloads on lanes, at random: the programs of workload_random_test.c, with any schedule, on some
// lanes of own threads, of threads of the user's, and on lanes that run one after another. Tasks
// take some time or none, so that they are done in any order; what comes out is what the slow
// reference says, and what the run without lanes left behind, failures included. Under TSan it also
// shows that two tasks that touch the same data are ordered.

#include "workload_sample.h"

enum { PROGRAMS = LANE_IS_CHECKED ? 30 : 40, SCHEDULES = 6 };

typedef struct tally {
    lane_fleet fleet;
    unsigned ok, failed, refused;  // executions
} tally;

// -- executions -----------------------------------------------------------------------------------

static void check_calls(sample *s, const ptowsp_run *run, const lane_watch *watch) {
    bool is_ok = s->expected.status == PTOWSP_OK;
    for (int i = 0; i < s->x.task_count; i++) {
        if (watch->calls[i] > 1 || (is_ok && watch->calls[i] != 1)) {
            complain(s, run, i, "not called once");
        }
    }
    if (watch->wrong_count > 0) {
        complain(s, run, -1, "two tasks at a time on one lane, or a lane that there is not");
    }
}

// Executes on lanes and compares all there is: with the reference, and with the run without lanes.
static void check_on_lanes(tally *t, sample *s, ptowsp_run *run, uint32_t lane_count,
                           bool record_tasks, const outcome *first, const lane_error *end) {
    s->lane_count = lane_count;
    lane_watch_restart(&t->fleet.watch, lane_count, t->fleet.seed++);
    sample_refresh(s);
    ptowsp_status status = check_as_expected(s, run, record_tasks);
    lane_error got = lane_error_of(s->run_context, status);
    if (!lane_error_is(&got, end)) {
        complain(s, run, -1, "another error on lanes");
    }
    check_same(s, first, run, status, "lanes change something");
    if (!is_same_stats(&first->stats, ptowsp_run_result(run))) {
        complain(s, run, -1, "lanes change the statistics of a failure");
    }
    if (!is_refused(s, status)) {
        check_calls(s, run, &t->fleet.watch);
    }
    t->ok += status == PTOWSP_OK;
    t->refused += is_refused(s, status);
    t->failed += status != PTOWSP_OK && !is_refused(s, status);
}

// A run of the program in a context of the fleet.
static ptowsp_run *run_make(tally *t, sample *s, const ptowsp_program *program, lane_kind kind) {
    s->run_context = t->fleet.contexts[kind];
    ptowsp_run *run = test_run_of(s->run_context, program);
    return run;
}

static void check_setting(tally *t, sample *s, const ptowsp_program *program, int setting,
                          const outcome *first, const lane_error *end) {
    lane_kind kind = lane_settings[setting].kind;
    uint32_t lane_count = lane_settings[setting].lane_count;
    ptowsp_run *run = run_make(t, s, program, kind);
    check_on_lanes(t, s, run, lane_count, true, first, end);
    size_t allocations = t->fleet.memories[kind].allocations;
    check_on_lanes(t, s, run, lane_count, true, first, end);
    check_on_lanes(t, s, run, lane_count, false, first, end);
    // One that fails may have got further than the first time.
    if (end->status == PTOWSP_OK && t->fleet.memories[kind].allocations != allocations) {
        complain(s, run, -1, "the second execution allocates");
    }
    ptowsp_run_destroy(run);
}

// One run with 8, 2, no and 3 lanes in turn.
static void check_in_turn(tally *t, sample *s, const ptowsp_program *program, const outcome *first,
                          const lane_error *end) {
    static const uint32_t counts[] = {8, 2, 0, 3, 0, 2, 8, 3};
    ptowsp_run *run = run_make(t, s, program, LANE_OWN);
    for (int i = 0; i < 8; i++) {
        check_on_lanes(t, s, run, counts[i], i % 3 != 1, first, end);
    }
    ptowsp_run_destroy(run);
}

// The program with its present bindings without lanes, and then in the settings of a set.
static void check_settings(tally *t, sample *s, const ptowsp_program *program, unsigned set) {
    sample_expect(s);
    ptowsp_run *run = run_make(t, s, program, LANE_OWN);
    s->lane_count = 0;
    s->module.watch.lanes = NULL;
    ptowsp_status status = check_as_expected(s, run, true);
    outcome *first = outcome_of(run, status);
    lane_error end = lane_error_of(s->run_context, status);
    s->module.watch.lanes = &t->fleet.watch;
    for (int i = 0; i < LANE_SETTING_COUNT; i++) {
        if (set >> i & 1) {
            check_setting(t, s, program, i, first, &end);
        }
    }
    if (set >> LANE_SETTING_COUNT & 1) {
        check_in_turn(t, s, program, first, &end);
    }
    // The run that has been on no lanes so far, and is recorded or not.
    check_on_lanes(t, s, run, 2, s->number % 2, first, &end);
    ptowsp_run_destroy(run);
    s->module.watch.lanes = NULL;
    s->lane_count = 0;
    s->run_context = s->context;
    free(first);
}

static void check_sample(tally *t, sample *s) {
    ptowsp_program *program = NULL;
    sample_expect(s);
    ptowsp_status status = sample_compile(s, &s->module, &program);
    if (status == PTOWSP_STUCK && s->expected.status == PTOWSP_STUCK) {
        return;  // known without running
    } else if (status != PTOWSP_OK) {
        complain(s, NULL, -1, "the program is refused");
    }
    check_settings(t, s, program, s->schedule_number == 0 ? 0xff : 0x2b);
    sample_rebind(s);
    check_settings(t, s, program, 0x14);
    ptowsp_program_destroy(program);
}

TEST(workload_lanes__agree_with_the_slow_reference) {
    static tally t;
    memset(&t, 0, sizeof t);
    lane_fleet_make(&t.fleet, REF_TASK_MAX);
    uint64_t seed = t.fleet.seed;
    for (unsigned number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        sample *s = sample_make(seed, number);
        for (unsigned i = 0; i < SCHEDULES; i++) {
            sample_schedule(s, i);
            check_sample(&t, s);
        }
        sample_free(s);
    }
    lane_fleet_free(&t.fleet);
    print_message("%u executions were fine, %u failed, %u were refused\n", t.ok, t.failed,
                  t.refused);
    assert_met(t.ok > 0 && t.failed > 0);
}
