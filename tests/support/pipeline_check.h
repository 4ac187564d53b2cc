// Compares what the library says of a pipeline with what the reference says: status, results,
// statistics, calls of kernels and who waits; executed, measured, recorded, again, and bound anew.

#ifndef PTOWSP_PIPELINE_CHECK_H
#define PTOWSP_PIPELINE_CHECK_H

#include "pipeline_steps.h"

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
        sums->full += cycles;
    } else {
        sums->empty += cycles;  // closes take none
    }
}

// Over all rounds: of a process, of a channel, or with -1 and -1 of everything.
static inline sim_sums sim_sums_of(const sim_sample *s, int actor, int channel) {
    sim_sums sums = {0};
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
        uint64_t replica_count = (uint64_t)sim_replica_count(&s->p, &s->b, last->process[i]);
        sim_check(s, run, (uint64_t)last->replica[i], got->replica, "replica", i);
        sim_check(s, run, replica_count, got->replica_count, "replicas of process", i);
        sim_check(s, run, sums.task_count, got->task_count, "tasks of process", i);
        sim_check(s, run, sums.busy, got->busy_cycles, "busy cycles of process", i);
        sim_check(s, run, sums.full, got->full_cycles, "full cycles of process", i);
        sim_check(s, run, sums.empty, got->empty_cycles, "empty cycles of process", i);
        sim_check(s, run, last->states[i], got->state, "state of process", i);
        sim_check(s, run, last->ends[i], got->end_cycles, "end of process", i);
        if (last->states[i] > PTOWSP_PROCESS_STOPPED) {
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
    uint64_t last = sim_last(s)->makespan;
    sim_check(s, run, before + total + after, stats->makespan_cycles, "makespan", 0);
    sim_check(s, run, (uint64_t)s->round_count, line->run_count, "runs of pipeline", 0);
    sim_check(s, run, before + total - last, line->start_cycles, "start of pipeline", 0);
    sim_check(s, run, last, line->makespan_cycles, "makespan of pipeline", 0);
    sim_check(s, run, total, line->total_cycles, "total of pipeline", 0);
    if (s->status == PTOWSP_OK) {
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

// -- deadlocks ------------------------------------------------------------------------------------

// That the text names every process that waits, and where; and that there is none unless stuck.
static inline void sim_check_stuck_text(const sim_sample *s, const ptowsp_run *run) {
    static char text[1 << 17];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_run_print_stuck(run, ptowsp_output_to_buffer(&buffer));
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

// -- all of it ------------------------------------------------------------------------------------

static inline void sim_check_status(const sim_sample *s, const ptowsp_run *run,
                                    ptowsp_status status) {
    if (status != s->status) {
        sim_complain(s, run, s->status == PTOWSP_OK ? "it should end" : "it should be stuck");
    }
    if (status != PTOWSP_OK) {
        assert_int_equal(ptowsp_context_error(s->run_context).status, status);
    }
    sim_check_results(s, run);
    sim_check_stuck_text(s, run);
}

static inline bool sim_has_task(const sim_sample *s) {
    bool has_task = s->around.before || s->around.after;
    for (int i = 0; i < s->p.stmt_count; i++) {
        sim_kind kind = s->p.stmts[i].kind;
        has_task = has_task || kind == SIM_TASK || kind == SIM_SEND_TASK;
    }
    return has_task;
}

static inline void sim_check_executions(sim_sample *s, ptowsp_run *run) {
    if (s->around.has_no_cost && sim_has_task(s)) {
        assert_int_equal(sim_sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, false),
                         PTOWSP_UNSUPPORTED);
    } else {
        sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, false));
        assert_int_equal(s->built.call_count, 0);
    }
    sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, false));
    sim_check_calls(s, run);
    uint64_t count = 77;
    assert_null(ptowsp_run_steps(run, &count));
    assert_int_equal(count, 0);
}

static inline void sim_check_records(sim_sample *s, ptowsp_run *run) {
    ptowsp_run_mode mode = s->around.has_no_cost ? PTOWSP_RUN_EXECUTE : PTOWSP_RUN_TIME_ONLY;
    sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, true));
    sim_check_calls(s, run);
    sim_check_steps(s, run);
    size_t allocations = s->memory.allocations;
    sim_check_status(s, run, sim_sample_execute(s, run, mode, true));
    sim_check_steps(s, run);
    ptowsp_run_bounds bounds;
    assert_ok(ptowsp_run_find_bounds(run, &bounds));
    assert_true(s->status != PTOWSP_OK || bounds.largest_cycles <= bounds.makespan_cycles);
    sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, false));
    sim_check_calls(s, run);
    assert_int_equal(s->memory.allocations, allocations);
}

static inline void sim_check_again(sim_sample *s, ptowsp_run *run) {
    size_t allocations = s->memory.allocations;
    sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, false));
    sim_check_calls(s, run);
    assert_int_equal(s->memory.allocations, allocations);
}

// Executes in every way, with what is bound.
static inline void sim_check_runs(sim_sample *s, ptowsp_run *run) {
    sim_check_executions(s, run);
    sim_check_again(s, run);
    sim_check_records(s, run);
}

#endif
