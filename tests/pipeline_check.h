// Compares what the library says of a pipeline with what the reference says: results, statistics,
// calls of kernels, and recorded steps with their causes.

#ifndef PTOWSP_PIPELINE_CHECK_H
#define PTOWSP_PIPELINE_CHECK_H

#include "pipeline_build.h"

enum { SIM_ROUND_MAX = 3 };

// A pipeline with its bindings, what the reference makes of it, and what the library has built.
typedef struct sim_sample {
    const char *name;
    uint64_t number;
    sim_pipeline p;
    sim_bindings b;
    sim_around around;
    int round_count;  // that the reference ran: fewer than bound if it got stuck
    ptowsp_status status;
    sim_result rounds[SIM_ROUND_MAX];
    test_memory memory;
    ptowsp_context *context;
    sim_built built;
} sim_sample;

// -- samples --------------------------------------------------------------------------------------

static inline sim_sample *sim_sample_make(const char *name, uint64_t number) {
    sim_sample *s = (sim_sample *)calloc(1, sizeof *s);
    assert_non_null(s);
    s->name = name;
    s->number = number;
    s->b.rounds = 1;
    return s;
}

// Runs the reference. Returns false if it takes too long.
static inline bool sim_sample_expect(sim_sample *s) {
    s->status = PTOWSP_OK;
    for (s->round_count = 0; s->round_count < s->b.rounds && s->status == PTOWSP_OK;) {
        sim_result *result = &s->rounds[s->round_count];
        sim_run(&s->p, &s->b, s->round_count++, result);
        s->status = result->status;
        if (result->is_too_long) {
            return false;
        }
    }
    return true;
}

static inline void sim_sample_build(sim_sample *s) {
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.resize = test_resize;
    desc.resize_user = &s->memory;
    assert_int_equal(ptowsp_context_create(&desc, &s->context), PTOWSP_OK);
    sim_build(&s->built, s->context, &s->p, &s->around);
}

static inline void sim_sample_free(sim_sample *s) {
    if (s->context) {
        sim_built_free(&s->built);
        ptowsp_context_destroy(s->context);
        assert_int_equal(s->memory.live_bytes, 0);
    }
    free(s);
}

static inline ptowsp_status sim_sample_execute(sim_sample *s, ptowsp_run *run, ptowsp_run_mode mode,
                                               bool record) {
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.mode = mode;
    options.record_tasks = record;
    s->built.call_count = 0;
    return ptowsp_run_execute(run, &options);
}

static inline const sim_result *sim_last(const sim_sample *s) {
    return &s->rounds[s->round_count - 1];
}

// -- saying what is wrong -------------------------------------------------------------------------

static inline void sim_write(void *user, const char *text, size_t length) {
    (void)user;
    print_message("%.*s", (int)length, text);
}

static inline const char *sim_step_name(ptowsp_step_kind kind) {
    static const char *const names[] = {"task", "send", "receive", "end", "close"};
    return kind <= PTOWSP_STEP_CLOSE ? names[kind] : "none";
}

// Prints the sample, with what the reference and the library did, and fails.
static inline void sim_complain(const sim_sample *s, const ptowsp_run *run, const char *what) {
    const ptowsp_text text = {sim_write, NULL};
    ptowsp_module_print(s->built.module, text);
    const sim_result *last = sim_last(s);
    for (int i = 0; i < last->step_count; i++) {
        const sim_step *step = &last->steps[i];
        print_message("%4d: process %d, %s, channel %d, token %lld, from %llu to %llu%s\n", i,
                      step->actor, sim_step_name(step->kind), (int)step->channel,
                      (long long)step->token, (unsigned long long)step->arrive,
                      (unsigned long long)step->end, step->is_done ? "" : ", not met");
    }
    uint64_t count = 0;
    const ptowsp_step_record *steps = run ? ptowsp_run_steps(run, &count) : NULL;
    for (uint64_t i = 0; steps && i < count; i++) {
        print_message("%4d: got process %u, %s, channel %d, token %lld, from %llu to %llu, "
                      "previous %lld, cause %lld\n",
                      (int)i, steps[i].process, sim_step_name(steps[i].kind), (int)steps[i].channel,
                      (long long)steps[i].token, (unsigned long long)steps[i].arrive,
                      (unsigned long long)steps[i].end, (long long)steps[i].previous,
                      (long long)steps[i].cause);
    }
    if (run) {
        ptowsp_run_print(run, text);
        ptowsp_run_print_stuck(run, text);
    }
    print_message("\nlast error: %s\n", ptowsp_context_error(s->context).text);
    fail_msg("%s %llu: %s", s->name, (unsigned long long)s->number, what);
}

static inline void sim_check(const sim_sample *s, const ptowsp_run *run, uint64_t expected,
                             uint64_t got, const char *what, int which) {
    if (expected != got) {
        char text[160];
        snprintf(text, sizeof text, "%s %d is %llu and should be %llu", what, which,
                 (unsigned long long)got, (unsigned long long)expected);
        sim_complain(s, run, text);
    }
}

// -- results --------------------------------------------------------------------------------------

typedef struct sim_sums {
    uint64_t task_count, busy, full, empty, token_count, pending_max;
} sim_sums;

static inline void sim_sum_step(const sim_step *step, sim_sums *sums) {
    uint64_t cycles = step->end - step->arrive;
    if (step->kind == PTOWSP_STEP_TASK) {
        sums->task_count++;
        sums->busy += cycles;
    } else if (step->kind == PTOWSP_STEP_SEND) {
        sums->full += step->is_done ? cycles : 0;
    } else {
        sums->empty += cycles;  // closes take none
    }
}

// Over all rounds: of a process, of a channel, or with -1 and -1 of everything.
static inline sim_sums sim_sums_of(const sim_sample *s, int actor, int channel) {
    sim_sums sums;
    memset(&sums, 0, sizeof sums);
    for (int r = 0; r < s->round_count; r++) {
        const sim_result *result = &s->rounds[r];
        for (int i = 0; i < result->step_count; i++) {
            const sim_step *step = &result->steps[i];
            if ((actor < 0 || step->actor == actor) &&
                (channel < 0 || step->channel == (uint32_t)channel)) {
                sim_sum_step(step, &sums);
            }
        }
        if (channel >= 0) {
            sums.token_count += result->tokens[channel];
            sums.pending_max = sim_max(sums.pending_max, result->pending_max[channel]);
        }
    }
    return sums;
}

static inline void sim_check_processes(const sim_sample *s, const ptowsp_run *run) {
    const sim_result *last = sim_last(s);
    uint32_t count = 0;
    const ptowsp_process_stats *stats = ptowsp_run_processes(run, &count);
    sim_check(s, run, (uint64_t)last->actor_count, count, "the number of processes", 0);
    for (int i = 0; i < last->actor_count; i++) {
        const ptowsp_process_stats *got = &stats[i];
        sim_sums sums = sim_sums_of(s, i, -1);
        assert_string_equal(got->name, sim_named("proc", last->process[i]).text);
        sim_check(s, run, (uint64_t)last->replica[i], got->replica, "replica", i);
        sim_check(s, run, sums.task_count, got->task_count, "tasks of process", i);
        sim_check(s, run, sums.busy, got->busy_cycles, "busy cycles of process", i);
        sim_check(s, run, sums.full, got->full_cycles, "full cycles of process", i);
        sim_check(s, run, sums.empty, got->empty_cycles, "empty cycles of process", i);
        if (last->is_wait_past_end) {
            continue;
        }
        sim_check(s, run, last->states[i], got->state, "state of process", i);
        sim_check(s, run, last->ends[i], got->end_cycles, "end of process", i);
        if (last->states[i] != PTOWSP_PROCESS_ENDED) {
            sim_check(s, run, last->waits_at[i], got->channel, "channel of process", i);
        }
    }
}

static inline void sim_check_channels(const sim_sample *s, const ptowsp_run *run) {
    const sim_result *last = sim_last(s);
    uint32_t count = 0;
    const ptowsp_channel_stats *stats = ptowsp_run_channels(run, &count);
    sim_check(s, run, (uint64_t)s->p.channel_count, count, "the number of channels", 0);
    for (int c = 0; c < s->p.channel_count; c++) {
        const ptowsp_channel_stats *got = &stats[c];
        sim_sums sums = sim_sums_of(s, -1, c);
        assert_string_equal(got->name, sim_named("chan", c).text);
        sim_check(s, run, last->depths[c], got->depth, "depth of channel", c);
        sim_check(s, run, last->latencies[c], got->latency, "latency of channel", c);
        sim_check(s, run, last->pending[c], got->pending_count, "pending tokens of channel", c);
        sim_check(s, run, sums.token_count, got->token_count, "tokens of channel", c);
        sim_check(s, run, sums.pending_max, got->pending_max, "pending_max of channel", c);
        sim_check(s, run, sums.full, got->full_cycles, "full cycles of channel", c);
        sim_check(s, run, sums.empty, got->empty_cycles, "empty cycles of channel", c);
    }
}

// Everything but calls and records, of an execution that ended as it should.
static inline void sim_check_results(const sim_sample *s, const ptowsp_run *run) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    uint64_t before = (uint64_t)s->around.before, after = 0, total = 0;
    if (s->status == PTOWSP_OK) {
        after = (uint64_t)s->around.after;
    }
    for (int r = 0; r < s->round_count; r++) {
        total += s->rounds[r].makespan;
    }
    sim_sums sums = sim_sums_of(s, -1, -1);
    uint64_t task_count = sums.task_count + (before > 0) + (after > 0);
    sim_check(s, run, task_count, stats->task_count, "number of tasks", 0);
    sim_check(s, run, sums.busy + before + after, stats->busy_cycles, "busy cycles", 0);
    sim_check(s, run, sums.full + sums.empty, stats->stall_cycles[PTOWSP_STALL_CHANNEL], "stall",
              PTOWSP_STALL_CHANNEL);
    uint32_t count = 0;
    const ptowsp_pipeline_stats *line = ptowsp_run_pipelines(run, &count);
    assert_int_equal(count, 1);
    assert_string_equal(line->name, "line");
    sim_check(s, run, 0, line->first_process, "first process", 0);
    sim_check(s, run, 0, line->first_channel, "first channel", 0);
    sim_check(s, run, (uint64_t)sim_last(s)->actor_count, line->process_count, "processes", 0);
    sim_check(s, run, (uint64_t)s->p.channel_count, line->channel_count, "channels", 0);
    if (s->status == PTOWSP_OK) {
        uint64_t last = sim_last(s)->makespan;
        sim_check(s, run, before + total + after, stats->makespan_cycles, "makespan", 0);
        sim_check(s, run, (uint64_t)s->round_count, line->run_count, "runs of pipeline", 0);
        sim_check(s, run, before + total - last, line->start_cycles, "start of pipeline", 0);
        sim_check(s, run, last, line->makespan_cycles, "makespan of pipeline", 0);
        sim_check(s, run, total, line->total_cycles, "total of pipeline", 0);
        for (int i = 0; i < SIM_SLOT_COUNT; i++) {
            int64_t slot = s->b.slots[i] + (i == 0 ? s->round_count - 1 : 0);
            sim_check(s, run, (uint64_t)slot, ptowsp_run_slot(run, (uint32_t)i), "slot", i);
        }
    }
    sim_check_processes(s, run);
    sim_check_channels(s, run);
}

// That kernels were called with these arguments, in this order.
static inline void sim_check_calls(const sim_sample *s, const ptowsp_run *run) {
    const sim_built *built = &s->built;
    uint64_t next = 0;
    if (s->around.before) {
        sim_check(s, run, SIM_SITE_BEFORE, (uint64_t)built->calls[next++][1], "site of call", 0);
    }
    for (int r = 0; r < s->round_count; r++) {
        for (int i = 0; i < s->rounds[r].task_count; i++) {
            const int64_t *expected = s->rounds[r].calls[i], *got = built->calls[next++];
            sim_check(s, run, (uint64_t)expected[1], (uint64_t)got[1], "site of call", i);
            sim_check(s, run, (uint64_t)expected[0], (uint64_t)got[0], "argument of call", i);
        }
    }
    if (s->around.after && s->status == PTOWSP_OK) {
        sim_check(s, run, SIM_SITE_AFTER, (uint64_t)built->calls[next++][1], "site of call", -1);
    }
    sim_check(s, run, next, built->call_count, "number of calls", 0);
}

// -- records --------------------------------------------------------------------------------------

// Where the comparison of steps stands: in one round after another.
typedef struct sim_walk {
    const sim_sample *s;
    const ptowsp_run *run;
    const ptowsp_step_record *steps;
    uint64_t count;
    int round;
    uint64_t first;              // step of this round
    uint64_t first_task;         // of this round
    uint64_t start;              // of this round, on the clock of the run
    int cursors[SIM_ACTOR_MAX];  // in the reference's steps
    uint64_t previous[SIM_ACTOR_MAX];
    uint64_t counts[SIM_CHANNEL_MAX][PTOWSP_STEP_CLOSE + 1];
    uint64_t *nths;  // of each step: the how manieth of its kind on its channel, from 0
} sim_walk;

static inline void sim_walk_round(sim_walk *walk) {
    walk->first_task = walk->s->around.before > 0;
    walk->start = (uint64_t)walk->s->around.before;
    for (int r = 0; r < walk->round; r++) {
        walk->first_task += (uint64_t)walk->s->rounds[r].task_count;
        walk->start += walk->s->rounds[r].makespan;
    }
    memset(walk->cursors, 0, sizeof walk->cursors);
    memset(walk->counts, 0, sizeof walk->counts);
    for (int i = 0; i < SIM_ACTOR_MAX; i++) {
        walk->previous[i] = PTOWSP_NO_INDEX;
    }
}

// The next step of a process in the reference, NULL if it has none in this round.
static inline const sim_step *sim_walk_next(sim_walk *walk, uint32_t actor) {
    const sim_result *result = &walk->s->rounds[walk->round];
    assert_true(actor < (uint32_t)result->actor_count);
    while (walk->cursors[actor] < result->step_count) {
        const sim_step *step = &result->steps[walk->cursors[actor]++];
        if (step->actor == (int)actor && step->is_done) {
            return step;
        }
    }
    return NULL;
}

static inline void sim_check_task_record(const sim_walk *walk, uint64_t i, const sim_step *step) {
    const ptowsp_step_record *got = &walk->steps[i];
    const ptowsp_task_record *record = &ptowsp_run_records(walk->run)[got->token];
    int number = (int)i;
    int64_t site = walk->s->rounds[walk->round].calls[step->token][1];
    sim_check(walk->s, walk->run, walk->start + step->arrive, record->start, "task's start",
              number);
    sim_check(walk->s, walk->run, walk->start + step->end, record->end, "task's end", number);
    sim_check(walk->s, walk->run, PTOWSP_NO_LANE, record->lane, "task's lane", number);
    sim_check(walk->s, walk->run, walk->s->built.kernel.id, record->kernel, "kernel", number);
    sim_check(walk->s, walk->run, walk->s->built.nodes[site], record->node, "task's node", number);
    sim_check(walk->s, walk->run, walk->s->built.nodes[site], got->node, "step's node", number);
}

static inline void sim_check_step(sim_walk *walk, uint64_t i) {
    const sim_sample *s = walk->s;
    const ptowsp_step_record *got = &walk->steps[i];
    const sim_step *step = sim_walk_next(walk, got->process);
    int number = (int)i;
    if (!step) {
        sim_complain(s, walk->run, "a process does more than it should");
        return;
    }
    sim_check(s, walk->run, step->kind, got->kind, "kind of step", number);
    sim_check(s, walk->run, step->channel, got->channel, "channel of step", number);
    sim_check(s, walk->run, step->arrive, got->arrive, "arrival of step", number);
    sim_check(s, walk->run, step->end, got->end, "end of step", number);
    sim_check(s, walk->run, walk->previous[got->process], got->previous, "step before", number);
    walk->previous[got->process] = i;
    if (step->kind == PTOWSP_STEP_TASK) {
        sim_check(s, walk->run, walk->first_task + (uint64_t)step->token, got->token, "task",
                  number);
        sim_check_task_record(walk, i, step);
    } else if (step->channel != UINT32_MAX) {
        walk->nths[i] = walk->counts[step->channel][step->kind]++;
        bool has_token = step->kind == PTOWSP_STEP_SEND || step->kind == PTOWSP_STEP_RECEIVE;
        if (has_token && !s->p.channels[step->channel].is_event) {
            sim_check(s, walk->run, (uint64_t)step->token, got->token, "token", number);
        }
    }
}

// Whether a process receives what it has sent itself: it waits for no other then.
static inline bool sim_is_own_token(const sim_walk *walk, uint64_t receive) {
    const ptowsp_step_record *step = &walk->steps[receive];
    for (uint64_t i = walk->first; i < walk->count; i++) {
        const ptowsp_step_record *send = &walk->steps[i];
        if (send->kind == PTOWSP_STEP_SEND && send->channel == step->channel &&
            walk->nths[i] == walk->nths[receive]) {
            return send->process == step->process;
        }
    }
    return false;
}

// Whether a step's cause is what it waited for, if it did; NULL: it is.
static inline const char *sim_wrong_cause(const sim_walk *walk, uint64_t i) {
    const ptowsp_step_record *step = &walk->steps[i];
    const sim_result *result = &walk->s->rounds[walk->round];
    uint64_t depth = step->channel == UINT32_MAX ? 0 : result->depths[step->channel];
    uint64_t latency = step->channel == UINT32_MAX ? 0 : result->latencies[step->channel];
    if (step->cause == PTOWSP_NO_INDEX) {
        bool is_own_latency =
            step->kind == PTOWSP_STEP_SEND && depth == 0 && step->end == step->arrive + latency;
        bool is_fine = step->kind == PTOWSP_STEP_TASK || step->kind == PTOWSP_STEP_CLOSE ||
                       step->end == step->arrive || is_own_latency ||
                       (step->kind == PTOWSP_STEP_RECEIVE && sim_is_own_token(walk, i));
        return is_fine ? NULL : "a step that waited has no cause";
    }
    if (step->cause < walk->first || step->cause >= walk->count || step->cause == i) {
        return "a cause is no step of this time that the pipeline ran";
    }
    const ptowsp_step_record *cause = &walk->steps[step->cause];
    uint64_t nth = walk->nths[i], cause_nth = walk->nths[step->cause];
    bool is_same = cause->channel == step->channel;
    if (step->end == step->arrive) {
        return "a step that did not wait has a cause";
    }
    switch (step->kind) {
    case PTOWSP_STEP_SEND:
        return is_same && cause->kind == PTOWSP_STEP_RECEIVE && cause_nth + depth == nth &&
                       cause->end == step->end && (depth > 0 || cause->arrive == step->end)
                   ? NULL
                   : "a send waited for another receive";
    case PTOWSP_STEP_RECEIVE:
        return is_same && cause->kind == PTOWSP_STEP_SEND && cause_nth == nth &&
                       (depth > 0 ? cause->end : cause->arrive) + latency == step->end
                   ? NULL
                   : "a receive waited for another send";
    case PTOWSP_STEP_END:
        return (is_same || cause->channel == UINT32_MAX) && cause->kind == PTOWSP_STEP_CLOSE &&
                       cause->end == step->end
                   ? NULL
                   : "the end of a stream waited for another close";
    default: return "a step that never waits has a cause";
    }
}

// From the end of the process that ended last, back along causes and what was before them.
static inline void sim_check_critical(const sim_walk *walk) {
    const sim_sample *s = walk->s;
    uint64_t count = 0, last = PTOWSP_NO_INDEX;
    const uint64_t *chain = ptowsp_run_critical_steps(walk->run, 0, &count);
    for (uint64_t i = walk->first; i < walk->count; i++) {
        const ptowsp_step_record *step = &walk->steps[i];
        bool is_end = step->kind == PTOWSP_STEP_CLOSE && step->channel == UINT32_MAX;
        bool is_last = is_end && step->end == sim_last(s)->makespan;
        if (is_last && (last == PTOWSP_NO_INDEX || step->process < walk->steps[last].process)) {
            last = i;
        }
    }
    if (!chain || count == 0 || count > walk->count || chain[count - 1] != last) {
        sim_complain(s, walk->run, "the critical chain has another end");
        return;
    }
    for (uint64_t i = count - 1; i > 0; i--) {
        const ptowsp_step_record *step = &walk->steps[chain[i]];
        bool has_cause = step->cause != PTOWSP_NO_INDEX;
        if (chain[i - 1] != (has_cause ? step->cause : step->previous)) {
            sim_complain(s, walk->run, "the critical chain goes another way");
        } else if (!has_cause && walk->steps[chain[i - 1]].end != step->arrive) {
            sim_complain(s, walk->run, "the critical chain has a gap");
        }
    }
    const ptowsp_step_record *first = &walk->steps[chain[0]];
    if (first->arrive != 0 || first->cause != PTOWSP_NO_INDEX ||
        first->previous != PTOWSP_NO_INDEX) {
        sim_complain(s, walk->run, "the critical chain begins elsewhere");
    }
}

static inline int sim_done_count(const sim_result *result) {
    int count = 0;
    for (int i = 0; i < result->step_count; i++) {
        count += result->steps[i].is_done;
    }
    return count;
}

// Of an execution with records: each process' steps are those of the reference, their causes are
// what they waited for, and the critical chain is tight.
static inline void sim_check_steps(const sim_sample *s, const ptowsp_run *run) {
    sim_walk walk;
    memset(&walk, 0, sizeof walk);
    walk.s = s;
    walk.run = run;
    uint64_t count = 0;
    walk.steps = ptowsp_run_steps(run, &count);
    walk.nths = (uint64_t *)calloc((size_t)count + 1, sizeof *walk.nths);
    assert_non_null(walk.nths);
    for (walk.round = 0; walk.round < s->round_count; walk.round++) {
        sim_walk_round(&walk);
        walk.first = walk.count;
        walk.count += (uint64_t)sim_done_count(&s->rounds[walk.round]);
        if (walk.count > count) {
            sim_complain(s, run, "steps are missing");
            break;
        }
        for (uint64_t i = walk.first; i < walk.count; i++) {
            sim_check_step(&walk, i);
        }
        for (uint64_t i = walk.first; i < walk.count; i++) {
            const char *wrong = sim_wrong_cause(&walk, i);
            if (wrong) {
                print_message("step %d\n", (int)i);
                sim_complain(s, run, wrong);
            }
        }
    }
    sim_check(s, run, walk.count, count, "number of steps", 0);
    if (s->status == PTOWSP_OK) {
        walk.round = s->round_count - 1;
        sim_check_critical(&walk);
    }
    free(walk.nths);
}

// -- deadlocks ------------------------------------------------------------------------------------

// That the text names every process that waits, and where; and that there is none unless stuck.
static inline void sim_check_stuck_text(const sim_sample *s, const ptowsp_run *run) {
    char text[20000];
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    ptowsp_run_print_stuck(run, ptowsp_text_to_buffer(&buffer));
    const sim_result *last = sim_last(s);
    if (s->status == PTOWSP_OK) {
        assert_string_equal(text, "");
        return;
    }
    assert_true(buffer.length < sizeof text);
    for (int i = 0; i < last->actor_count; i++) {
        ptowsp_process_state state = last->states[i];
        if (state == PTOWSP_PROCESS_FULL || state == PTOWSP_PROCESS_EMPTY) {
            if (!strstr(text, sim_named("proc", last->process[i]).text) ||
                !strstr(text, sim_named("chan", (int)last->waits_at[i]).text)) {
                sim_complain(s, run, "the text does not say who waits where");
            }
        }
    }
}

#endif
