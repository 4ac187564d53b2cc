// Pipelines on lanes, at random: those of pipeline_random_test.c, whose tasks update cells of a
// tensor and come after slot loads from it, with cycles that are known before they run or that only
// their kernels tell, on every kind of lanes. Times, steps, calls and who is stuck are what the slow
// reference says; cells are as if tasks had run one after another in the order of time; what was
// loaded and what an error says is as without lanes. The tasks of a process do not overlap.

#include "pipeline_check.h"
#include "pipeline_random.h"

enum { PIPELINES = LANE_IS_CHECKED ? 400 : 1200 };

typedef struct tally {
    lane_fleet fleet;
    unsigned ok, stuck;  // executions
} tally;

// What the run without lanes left behind, that the reference does not know.
typedef struct before {
    lane_error error;
    uint64_t loaded[SIM_CALL_MAX];
    ptowsp_run_stats stats;
} before;

// The cells as tasks leave them that run in the order of time.
static void expect_data(const sim_sample *s, int32_t *data) {
    memset(data, 0, SIM_CELL_COUNT * sizeof data[0]);
    int32_t *first = &data[0];
    if (s->around.before) {
        *first = sim_update(*first, 0, SIM_SITE_BEFORE);
    }
    for (int r = 0; r < s->round_count; r++) {
        for (int i = 0; i < s->rounds[r].task_count; i++) {
            const int64_t *call = s->rounds[r].calls[i];
            int32_t *cell = &data[call[0] & (SIM_CELL_COUNT - 1)];
            *cell = sim_update(*cell, call[0], call[1]);
        }
    }
    if (s->around.after && s->status == PTOWSP_OK) {
        *first = sim_update(*first, 0, SIM_SITE_AFTER);
    }
}

static void check_data(const sim_sample *s, const ptowsp_run *run) {
    int32_t data[SIM_CELL_COUNT];
    expect_data(s, data);
    for (int i = 0; s->around.has_data && i < SIM_CELL_COUNT; i++) {
        sim_check(s, run, (uint64_t)data[i], (uint64_t)s->built.data[i], "cell", i);
    }
}

// A task of a process begins when the one before has ended; all do when that before the pipeline
// has, and that behind it when all have.
static void check_order(const sim_sample *s, const ptowsp_run *run, const lane_watch *watch) {
    uint64_t first = s->around.before > 0, count = first;
    uint64_t begun = first ? watch->ends[0] : 0, ended = begun;
    for (int r = 0; r < s->round_count; r++) {
        uint64_t last[SIM_ACTOR_MAX];
        const sim_result *round = &s->rounds[r];
        for (int i = 0; i < SIM_ACTOR_MAX; i++) {
            last[i] = begun;
        }
        for (int i = 0; i < round->step_count; i++) {
            const sim_step *step = &round->steps[i];
            if (step->kind == PTOWSP_STEP_TASK) {
                uint64_t task = first + (uint64_t)step->token;
                if (watch->begins[task] < last[step->actor]) {
                    sim_complain(s, run, "two tasks of a process at a time");
                }
                last[step->actor] = watch->ends[task];
                ended = watch->ends[task] > ended ? watch->ends[task] : ended;
                count++;
            }
        }
        first = count;
    }
    if (s->status == PTOWSP_OK && s->around.after && watch->begins[count] < ended) {
        sim_complain(s, run, "the task behind the pipeline was too early");
    }
}

// Executes and compares with the reference.
static ptowsp_status check_execution(sim_sample *s, ptowsp_run *run, bool record_tasks) {
    ptowsp_status status = sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, record_tasks);
    sim_check_status(s, run, status);
    sim_check_calls(s, run);
    if (record_tasks) {
        sim_check_steps(s, run);
    }
    check_data(s, run);
    return status;
}

static void check_on_lanes(tally *t, sim_sample *s, ptowsp_run *run, uint32_t lane_count,
                           bool record_tasks, const before *b) {
    lane_watch *watch = &t->fleet.watch;
    s->lane_count = lane_count;
    lane_watch_restart(watch, lane_count, t->fleet.seed++);
    ptowsp_status status = check_execution(s, run, record_tasks);
    lane_error error = lane_error_of(s->run_context, status);
    if (!lane_error_is(&error, &b->error)) {
        sim_complain(s, run, "another error on lanes");
    }
    for (uint64_t i = 0; i < s->built.call_count; i++) {
        sim_check(s, run, 1, watch->calls[i], "calls of task", (int)i);
        if (s->around.has_data) {
            sim_check(s, run, b->loaded[i], s->built.loaded[i], "slot loaded before task", (int)i);
        }
    }
    sim_check(s, run, 0, watch->wrong_count, "calls on a lane that is busy, or is none", 0);
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    sim_check(s, run, b->stats.slot_load_count, stats->slot_load_count, "slot loads", 0);
    sim_check(s, run, b->stats.region_max, stats->region_max, "regions", 0);
    check_order(s, run, watch);
    t->ok += status == PTOWSP_OK;
    t->stuck += status == PTOWSP_STUCK;
}

static ptowsp_run *run_make(tally *t, sim_sample *s, lane_kind kind) {
    s->run_context = t->fleet.contexts[kind];
    ptowsp_run *run = test_run_of(s->run_context, s->built.program);
    sim_bind(&s->built, &s->b, run);
    return run;
}

static void check_setting(tally *t, sim_sample *s, int setting, const before *b) {
    lane_kind kind = lane_settings[setting].kind;
    uint32_t lane_count = lane_settings[setting].lane_count;
    ptowsp_run *run = run_make(t, s, kind);
    check_on_lanes(t, s, run, lane_count, true, b);
    size_t allocations = t->fleet.memories[kind].allocations;
    check_on_lanes(t, s, run, lane_count, true, b);
    check_on_lanes(t, s, run, lane_count, false, b);
    sim_check(s, run, allocations, t->fleet.memories[kind].allocations, "allocations", 0);
    ptowsp_run_destroy(run);
}

// One run with 8, 2, no and 3 lanes in turn.
static void check_in_turn(tally *t, sim_sample *s, const before *b) {
    static const uint32_t counts[] = {8, 2, 0, 3, 0, 8};
    ptowsp_run *run = run_make(t, s, LANE_OWN);
    for (int i = 0; i < 6; i++) {
        check_on_lanes(t, s, run, counts[i], i % 3 != 1, b);
    }
    ptowsp_run_destroy(run);
}

static void check_sample(tally *t, sim_sample *s) {
    static before b;
    sim_sample_build(s);
    if (s->built.status != PTOWSP_OK) {
        assert_true(sim_has_loose_channel(&s->p));
        return;
    }
    ptowsp_run *run = run_make(t, s, LANE_OWN);
    ptowsp_status status = check_execution(s, run, true);
    memcpy(b.loaded, s->built.loaded, sizeof b.loaded);
    b.stats = *ptowsp_run_result(run);
    b.error = lane_error_of(s->run_context, status);
    ptowsp_run_destroy(run);
    s->built.lanes = &t->fleet.watch;
    for (int i = 0; i < LANE_SETTING_COUNT; i++) {
        if ((s->number + (uint64_t)i) % 3 == 0) {
            check_setting(t, s, i, &b);
        }
    }
    if (s->number % 4 == 0) {
        check_in_turn(t, s, &b);
    }
}

TEST(pipeline_lanes__agree_with_the_slow_reference) {
    static tally t;
    memset(&t, 0, sizeof t);
    lane_fleet_make(&t.fleet, SIM_CALL_MAX);
    uint64_t seed = t.fleet.seed;
    for (unsigned number = 0; TEST_ROUNDS(number, PIPELINES); number++) {
        sim_sample *s = sim_sample_random(seed, number);
        s->around.has_no_cost = number % 2 == 0;
        s->around.has_data = number % 5 != 0;
        check_sample(&t, s);
        sim_sample_free(s);
    }
    lane_fleet_free(&t.fleet);
    print_message("%u executions were fine, %u were stuck\n", t.ok, t.stuck);
    assert_met(t.ok > t.stuck && t.stuck > 0);
}
