// Compares the recorded steps of pipelines, process by process, with those of the reference, and
// asserts that every cause is what was waited for, and that the critical chain has no gap.

#ifndef PTOWSP_PIPELINE_STEPS_H
#define PTOWSP_PIPELINE_STEPS_H

#include "pipeline_sample.h"

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
        if (step->actor == (int)actor) {
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

// Whether the record of a task says that it waited for the last thing that took its process time;
// true where that is not clear.
static inline bool sim_is_right_stall(const sim_walk *walk, uint64_t i,
                                      const ptowsp_task_record *records) {
    const ptowsp_task_record *record = &records[walk->steps[i].token];
    if (record->cause != PTOWSP_NO_INDEX && records[record->cause].end > record->start) {
        return false;
    }
    for (uint64_t at = walk->steps[i].previous; at != PTOWSP_NO_INDEX;) {
        const ptowsp_step_record *step = &walk->steps[at];
        if (step->end > step->arrive) {
            return record->stall ==
                   (step->kind == PTOWSP_STEP_TASK ? PTOWSP_STALL_LANE : PTOWSP_STALL_CHANNEL);
        } else if (step->kind == PTOWSP_STEP_TASK) {
            return true;  // one that took no time
        }
        at = step->previous;
    }
    return true;
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

// Of an execution with records: each process' steps are those of the reference, their causes are
// what they waited for, and the critical chain is tight.
static inline void sim_check_steps(const sim_sample *s, const ptowsp_run *run) {
    uint64_t count = 0;
    sim_walk walk = {.s = s, .run = run, .steps = ptowsp_run_steps(run, &count)};
    walk.nths = (uint64_t *)calloc((size_t)count + 1, sizeof *walk.nths);
    assert_non_null(walk.nths);
    for (walk.round = 0; walk.round < s->round_count; walk.round++) {
        sim_walk_round(&walk);
        walk.first = walk.count;
        walk.count += (uint64_t)s->rounds[walk.round].step_count;
        if (walk.count > count) {
            sim_complain(s, run, "steps are missing");
            break;
        }
        for (uint64_t i = walk.first; i < walk.count; i++) {
            sim_check_step(&walk, i);
        }
        for (uint64_t i = walk.first; i < walk.count; i++) {
            const char *wrong = sim_wrong_cause(&walk, i);
            if (walk.steps[i].kind == PTOWSP_STEP_TASK &&
                !sim_is_right_stall(&walk, i, ptowsp_run_records(run))) {
                wrong = "the stall or cause of a task";
            }
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

#endif
