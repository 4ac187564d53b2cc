// Workloads on lanes, at random: the programs of workload_random_test.c, with any schedule, on some
// lanes of own threads, of threads of the user's, and on lanes that run one after another. Tasks
// take some time or none, so that they are done in any order; what comes out is what the slow
// reference says, and what the run without lanes left behind, failures included. Under TSan it also
// shows that two tasks that touch the same data are ordered.

#include "workload_sample.h"

enum { PROGRAMS = LANE_IS_CHECKED ? 12 : 100, SCHEDULES = 6, SETTING_COUNT = 7 };

// -- settings -------------------------------------------------------------------------------------

static const struct {
    lane_kind kind;
    uint32_t lane_count;
} settings[SETTING_COUNT] = {{LANE_OWN, 2},       {LANE_OWN, 3},  {LANE_OWN, 8}, {LANE_IN_ORDER, 3},
                             {LANE_BACKWARDS, 3}, {LANE_LATE, 3}, {LANE_OWN, 1}};

// All that runs are made in, and how often they were executed.
typedef struct fleet {
    test_memory memories[LANE_KIND_COUNT];
    ptowsp_context *contexts[LANE_KIND_COUNT];
    lane_watch watch;
    uint64_t seed;
    unsigned ok, failed, refused;
} fleet;

static void fleet_make(fleet *f) {
    memset(f, 0, sizeof *f);
    f->seed = test_seed();
    for (int kind = 0; kind < LANE_KIND_COUNT; kind++) {
        uint32_t lane_count = kind == LANE_OWN ? 8 : 3;
        f->contexts[kind] = lane_context((lane_kind)kind, lane_count, &f->memories[kind]);
    }
    lane_watch_begin(&f->watch, REF_TASK_MAX);
}

static void fleet_free(fleet *f) {
    for (int kind = 0; kind < LANE_KIND_COUNT; kind++) {
        ptowsp_context_destroy(f->contexts[kind]);
        assert_int_equal(f->memories[kind].live_blocks, 0);
    }
    lane_watch_end(&f->watch);
    print_message("%u executions were fine, %u failed, %u were refused\n", f->ok, f->failed,
                  f->refused);
    assert_true(f->ok > 0 && f->failed > 0);
}

// What ended a run, beside what it left behind.
typedef struct ending {
    ptowsp_status status;
    uint64_t index;
    char text[512];
} ending;

static ending ending_of(const ptowsp_context *context, ptowsp_status status) {
    ending end = {status, 0, ""};
    if (status != PTOWSP_OK) {
        ptowsp_error error = ptowsp_context_error(context);
        end.index = error.index;
        snprintf(end.text, sizeof end.text, "%s", error.text);
    }
    return end;
}

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
static void check_on_lanes(fleet *f, sample *s, ptowsp_run *run, uint32_t lane_count,
                           bool record_tasks, const outcome *first, const ending *end) {
    s->lane_count = lane_count;
    lane_watch_restart(&f->watch, lane_count, f->seed++);
    sample_refresh(s);
    ptowsp_status status = check_as_expected(s, run, record_tasks);
    ending got = ending_of(s->run_context, status);
    if (got.status != end->status || got.index != end->index || strcmp(got.text, end->text) != 0) {
        print_message("not: %s\n", end->text);
        complain(s, run, -1, "another error on lanes");
    }
    check_same(s, first, run, status, "lanes change something");
    if (!is_same_stats(&first->stats, ptowsp_run_result(run))) {
        complain(s, run, -1, "lanes change the statistics of a failure");
    }
    if (!is_refused(s, status)) {
        check_calls(s, run, &f->watch);
    }
    f->ok += status == PTOWSP_OK;
    f->refused += is_refused(s, status);
    f->failed += status != PTOWSP_OK && !is_refused(s, status);
}

// A run of the program in a context of the fleet.
static ptowsp_run *run_make(fleet *f, sample *s, const ptowsp_program *program, lane_kind kind) {
    ptowsp_run *run = NULL;
    s->run_context = f->contexts[kind];
    assert_int_equal(ptowsp_run_create(s->run_context, program, &run), PTOWSP_OK);
    return run;
}

static void check_setting(fleet *f, sample *s, const ptowsp_program *program, int setting,
                          const outcome *first, const ending *end) {
    lane_kind kind = settings[setting].kind;
    uint32_t lane_count = settings[setting].lane_count;
    ptowsp_run *run = run_make(f, s, program, kind);
    check_on_lanes(f, s, run, lane_count, true, first, end);
    size_t allocations = f->memories[kind].allocations;
    check_on_lanes(f, s, run, lane_count, true, first, end);
    check_on_lanes(f, s, run, lane_count, false, first, end);
    if (f->memories[kind].allocations != allocations) {
        complain(s, run, -1, "the second execution allocates");
    }
    ptowsp_run_destroy(run);
}

// One run with 8, 2, no and 3 lanes in turn.
static void check_in_turn(fleet *f, sample *s, const ptowsp_program *program, const outcome *first,
                          const ending *end) {
    static const uint32_t counts[] = {8, 2, 0, 3, 0, 2, 8, 3};
    ptowsp_run *run = run_make(f, s, program, LANE_OWN);
    for (int i = 0; i < 8; i++) {
        check_on_lanes(f, s, run, counts[i], i % 3 != 1, first, end);
    }
    ptowsp_run_destroy(run);
}

// The program with its present bindings without lanes, and then in the settings of a set.
static void check_settings(fleet *f, sample *s, const ptowsp_program *program, unsigned set) {
    sample_expect(s);
    ptowsp_run *run = run_make(f, s, program, LANE_OWN);
    s->lane_count = 0;
    s->module.watch.lanes = NULL;
    ptowsp_status status = check_as_expected(s, run, true);
    outcome *first = outcome_of(run, status);
    ending end = ending_of(s->run_context, status);
    s->module.watch.lanes = &f->watch;
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (set >> i & 1) {
            check_setting(f, s, program, i, first, &end);
        }
    }
    if (set >> SETTING_COUNT & 1) {
        check_in_turn(f, s, program, first, &end);
    }
    // The run that has been on no lanes so far, and is recorded or not.
    check_on_lanes(f, s, run, 2, s->number % 2, first, &end);
    ptowsp_run_destroy(run);
    s->module.watch.lanes = NULL;
    s->lane_count = 0;
    s->run_context = s->context;
    free(first);
}

static void check_sample(fleet *f, sample *s) {
    ptowsp_program *program = NULL;
    sample_expect(s);
    ptowsp_status status = sample_compile(s, &s->module, &program);
    if (status == PTOWSP_STUCK && s->expected.status == PTOWSP_STUCK) {
        return;  // known without running
    } else if (status != PTOWSP_OK) {
        complain(s, NULL, -1, "the program is refused");
    }
    check_settings(f, s, program, s->schedule_number == 0 ? 0xff : 0x2b);
    sample_rebind(s);
    check_settings(f, s, program, 0x14);
    ptowsp_program_destroy(program);
}

static void workload_lanes__agree_with_the_slow_reference(void **state) {
    fleet f;
    (void)state;
    fleet_make(&f);
    uint64_t seed = f.seed;
    for (unsigned number = 0; number < PROGRAMS; number++) {
        sample *s = sample_make(seed, number);
        for (unsigned i = 0; i < SCHEDULES; i++) {
            sample_schedule(s, i);
            check_sample(&f, s);
        }
        sample_free(s);
    }
    fleet_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workload_lanes__agree_with_the_slow_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
