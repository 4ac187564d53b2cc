// What must hold of any run, whatever its program: all that its results say follows from its steps and
// records. Also the results as numbers, to be compared, and steps as text in Hoare's notation:
//
//      task 0-4       in a task
//      a!7 4-10       sent token 7 to channel a: came at 4, went on at 10 (a!7 4: went on at once)
//      a?7 0-10       received it
//      a?end 0-10     saw the end of the stream
//      a!end 5        closed it
//      end 12         ended
//
// Channels whose name begins with a capital are events: their tokens are not looked at.

#ifndef RUN_RESULTS_H
#define RUN_RESULTS_H

#include "test.h"

// One step as text.
static inline void step_text(const ptowsp_run *run, const ptowsp_step_record *step, char *text,
                             size_t size) {
    char token[32] = "", time[64];
    const char *name =
        step->channel == UINT32_MAX ? "" : ptowsp_run_channels(run, NULL)[step->channel].name;
    if (name[0] < 'A' || name[0] > 'Z') {
        snprintf(token, sizeof token, "%lld", (long long)step->token);
    }
    if (step->kind == PTOWSP_STEP_TASK || step->arrive != step->end) {
        snprintf(time, sizeof time, "%llu-%llu", (unsigned long long)step->arrive,
                 (unsigned long long)step->end);
    } else {
        snprintf(time, sizeof time, "%llu", (unsigned long long)step->end);
    }
    switch ((int)step->kind) {
    case PTOWSP_STEP_TASK: snprintf(text, size, "task %s", time); break;
    case PTOWSP_STEP_SEND: snprintf(text, size, "%s!%s %s", name, token, time); break;
    case PTOWSP_STEP_RECEIVE: snprintf(text, size, "%s?%s %s", name, token, time); break;
    case PTOWSP_STEP_END: snprintf(text, size, "%s?end %s", name, time); break;
    default: snprintf(text, size, "%s%send %s", name, name[0] ? "!" : "", time); break;
    }
}

// -- what must hold of any run --------------------------------------------------------------------

typedef struct step_sums {
    uint64_t tasks, busy, full, empty, sent, received, last_end;
} step_sums;

// Sums the steps of a process or of a channel.
static inline step_sums sums_of(const ptowsp_run *run, uint32_t process_id, uint32_t channel_id) {
    uint64_t count = 0;
    const ptowsp_step_record *steps = ptowsp_run_steps(run, &count);
    step_sums s = {0};
    for (uint64_t i = 0; i < count; i++) {
        const ptowsp_step_record *step = &steps[i];
        uint64_t cycles = step->end - step->arrive;
        if (step->process == process_id || step->channel == channel_id) {
            bool is_task = step->kind == PTOWSP_STEP_TASK, is_send = step->kind == PTOWSP_STEP_SEND;
            s.tasks += is_task;
            s.sent += is_send;
            s.received += step->kind == PTOWSP_STEP_RECEIVE;
            s.busy += is_task ? cycles : 0;
            s.full += is_send ? cycles : 0;
            s.empty += is_task || is_send ? 0 : cycles;
            s.last_end = step->end;
        }
    }
    return s;
}

// Each process does one step after another; what a step waited for is a step of another process
// (or of its own, if it sends to itself) that was over by then.
static inline void check_steps(const ptowsp_run *run) {
    uint64_t count = 0;
    const ptowsp_step_record *steps = ptowsp_run_steps(run, &count);
    assert_non_null(steps);
    for (uint64_t i = 0; i < count; i++) {
        const ptowsp_step_record *step = &steps[i];
        assert_true(step->arrive <= step->end);
        uint64_t before = i;
        while (before > 0 && steps[before - 1].process != step->process) {
            before--;
        }
        const ptowsp_step_record *last = before > 0 ? &steps[before - 1] : NULL;
        if (!last || (last->kind == PTOWSP_STEP_CLOSE && last->channel == UINT32_MAX)) {
            assert_true(step->previous == PTOWSP_NO_INDEX);  // the first this time
            assert_int_equal(step->arrive, 0);
        } else {
            assert_int_equal(step->previous, before - 1);
            assert_int_equal(step->arrive, last->end);
        }
        if (step->cause != PTOWSP_NO_INDEX) {
            assert_true(step->cause < count);
            assert_true(step->end > step->arrive);
            assert_true(steps[step->cause].end <= step->end);
        }
    }
}

// The critical chain goes from a step without one before it to the end of the pipeline.
static inline void check_chain(const ptowsp_run *run, uint32_t id) {
    uint64_t count = 0, step_count = 0;
    const uint64_t *chain = ptowsp_run_critical_steps(run, id, &count);
    const ptowsp_step_record *steps = ptowsp_run_steps(run, &step_count);
    assert_non_null(chain);
    assert_true(count > 0 && count <= step_count);
    for (uint64_t i = 0; i < count; i++) {
        const ptowsp_step_record *step = &steps[chain[i]];
        uint64_t before = step->cause != PTOWSP_NO_INDEX ? step->cause : step->previous;
        assert_true(before == (i > 0 ? chain[i - 1] : PTOWSP_NO_INDEX));
    }
    assert_int_equal(steps[chain[count - 1]].kind, PTOWSP_STEP_CLOSE);
    assert_int_equal(steps[chain[count - 1]].channel, UINT32_MAX);
    assert_int_equal(steps[chain[count - 1]].end,
                     ptowsp_run_pipelines(run, NULL)[id].makespan_cycles);
}

// All that results say of a run that ended follows from its steps.
static inline void check_results(const ptowsp_run *run) {
    uint32_t process_count = 0, channel_count = 0, pipeline_count = 0;
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &process_count);
    const ptowsp_channel_stats *channels = ptowsp_run_channels(run, &channel_count);
    const ptowsp_pipeline_stats *pipelines = ptowsp_run_pipelines(run, &pipeline_count);
    uint64_t waited = 0;
    check_steps(run);
    for (uint32_t i = 0; i < process_count; i++) {
        step_sums s = sums_of(run, i, UINT32_MAX - 1);
        assert_int_equal(processes[i].state, PTOWSP_PROCESS_ENDED);
        assert_int_equal(processes[i].task_count, s.tasks);
        assert_int_equal(processes[i].busy_cycles, s.busy);
        assert_int_equal(processes[i].full_cycles, s.full);
        assert_int_equal(processes[i].empty_cycles, s.empty);
        assert_int_equal(processes[i].end_cycles, s.last_end);
        waited += s.full + s.empty;
    }
    assert_int_equal(ptowsp_run_result(run)->stall_cycles[PTOWSP_STALL_CHANNEL], waited);
    for (uint32_t i = 0; i < channel_count; i++) {
        step_sums s = sums_of(run, UINT32_MAX, i);
        assert_int_equal(channels[i].token_count, s.sent);
        assert_int_equal(channels[i].full_cycles, s.full);
        assert_int_equal(channels[i].empty_cycles, s.empty);
        assert_true(channels[i].pending_max <= channels[i].depth);
        if (pipeline_count == 1 && pipelines[0].run_count == 1) {
            assert_int_equal(channels[i].pending_count, s.sent - s.received);
        }
    }
    for (uint32_t i = 0; i < pipeline_count; i++) {
        uint64_t end = 0;
        for (uint32_t k = 0; k < pipelines[i].process_count; k++) {
            uint64_t e = processes[pipelines[i].first_process + k].end_cycles;
            end = e > end ? e : end;
        }
        assert_int_equal(pipelines[i].makespan_cycles, end);
        if (pipelines[i].run_count > 0) {
            check_chain(run, i);
        }
    }
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    uint64_t busy_cycles = 0;
    for (uint64_t i = 0; i < stats->task_count; i++) {
        const ptowsp_task_record *record = &ptowsp_run_records(run)[i];
        busy_cycles += record->end - record->start;
        assert_true(record->end <= stats->makespan_cycles);
    }
    assert_int_equal(stats->busy_cycles, busy_cycles);
}

enum { RESULT_MAX = 4000 };

// The numbers of all results but those of memory, one after another.
typedef struct results {
    uint64_t numbers[RESULT_MAX];
    uint32_t count;
} results;

static inline void add_result(results *r, uint64_t number) {
    assert_in_range(r->count, 0, RESULT_MAX - 1);
    r->numbers[r->count++] = number;
}

static inline void results_of(const ptowsp_run *run, results *r) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    uint32_t count = 0;
    memset(r, 0, sizeof *r);
    add_result(r, stats->makespan_cycles);
    add_result(r, stats->task_count);
    add_result(r, stats->busy_cycles);
    for (int i = 0; i < PTOWSP_STALL_COUNT; i++) {
        add_result(r, stats->stall_cycles[i]);
    }
    const ptowsp_pipeline_stats *pipelines = ptowsp_run_pipelines(run, &count);
    for (uint32_t i = 0; i < count; i++) {
        add_result(r, pipelines[i].run_count);
        add_result(r, pipelines[i].start_cycles);
        add_result(r, pipelines[i].makespan_cycles);
        add_result(r, pipelines[i].total_cycles);
        add_result(r, pipelines[i].process_count);
    }
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &count);
    for (uint32_t i = 0; i < count; i++) {
        add_result(r, (uint64_t)processes[i].state);
        add_result(r, processes[i].channel);
        add_result(r, processes[i].end_cycles);
        add_result(r, processes[i].task_count);
        add_result(r, processes[i].busy_cycles);
        add_result(r, processes[i].full_cycles);
        add_result(r, processes[i].empty_cycles);
    }
    const ptowsp_channel_stats *channels = ptowsp_run_channels(run, &count);
    for (uint32_t i = 0; i < count; i++) {
        add_result(r, channels[i].depth);
        add_result(r, channels[i].latency);
        add_result(r, channels[i].pending_count);
        add_result(r, channels[i].token_count);
        add_result(r, channels[i].pending_max);
        add_result(r, channels[i].full_cycles);
        add_result(r, channels[i].empty_cycles);
    }
}

#endif
