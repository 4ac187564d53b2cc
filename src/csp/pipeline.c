// Pipelines of a run: their memory, and one run of a pipeline from start to end.
//
// Before an execution the sizes of axes give the number of processes. Memory is made for the
// pipeline with the most of them, and all pipelines share it, because one runs at a time. At the
// start of a pipeline each process keeps the current slots, and channels open with their current
// depths. Then the processes walk (order.c). The counts of channels and processes are
// added to the results.

#include "order.h"

#include <inttypes.h>

// -- life -----------------------------------------------------------------------------------------

// Every array with a fixed size.
#define PWSP_PIPELINES_ARRAYS(ARRAY)                                                               \
    ARRAY(pipelines->stats, program->pipelines.count + 1)                                          \
    ARRAY(pipelines->channel_stats, program->channels.count + 1)                                   \
    ARRAY(pipelines->exchange.channels, program->channels.count + 1)                               \
    ARRAY(pipelines->chains, program->pipelines.count + 1)                                         \
    ARRAY(pipelines->order_ops, program->ops.count)

PWSP_INTERNAL bool pwsp_pipelines_init(pwsp_pipelines *pipelines, const pwsp_memory *memory,
                                       const ptowsp_program *program) {
    memset(pipelines, 0, sizeof *pipelines);
    if (program->pipelines.count == 0) {
        return true;
    }
    pipelines->program = program;
    pipelines->memory = *memory;
    bool is_good = true;
    PWSP_PIPELINES_ARRAYS(PWSP_ARRAY_ALLOC)
    return is_good && pwsp_pipelines_prepare(pipelines);
}

// -- before an execution --------------------------------------------------------------------------

// The number of replicas of a process; 0 with an error.
static uint64_t pwsp_pipelines_replicas(pwsp_pipelines *pipelines, const pwsp_process_op *op,
                                        const uint64_t *cells) {
    const ptowsp_program *program = pipelines->program;
    uint64_t count = cells[op->size];
    pipelines->x->node = op->node;
    if (count == 0) {
        pwsp_expander_fail(pipelines->x, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                           "axis %s has size 0, so that there is no replica",
                           program->axes.items[op->axis].name);
    } else if (count > PTOWSP_PROCESS_MAX ||
               pipelines->process_count + count > PTOWSP_PROCESS_MAX) {
        pwsp_expander_fail(pipelines->x, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                           "%" PRIu64 " replicas make more than %d processes", count,
                           PTOWSP_PROCESS_MAX);
        count = 0;
    }
    return count;
}

// The memory a pipeline takes.
typedef struct pwsp_pipeline_needs {
    uint64_t processes, ports, kept;
} pwsp_pipeline_needs;

// Measures one pipeline and keeps the maximum; false with an error.
static bool pwsp_pipelines_count(pwsp_pipelines *pipelines, uint32_t index, const uint64_t *cells,
                                 pwsp_pipeline_needs *needs) {
    const pwsp_pipeline_op *op = PWSP_PIPELINE_AT(pipelines, index);
    ptowsp_pipeline_stats *stats = &pipelines->stats[index];
    stats->first_process = pipelines->process_count;
    stats->first_channel = op->first_channel;
    stats->channel_count = op->channel_count;
    uint64_t ports = 0, kept = op->slot_count;
    for (uint32_t i = 0; i < op->process_count; i++) {
        const pwsp_process_op *process = PWSP_PROCESS_OP_AT(pipelines, op->first_process + i);
        uint64_t count = pwsp_pipelines_replicas(pipelines, process, cells);
        if (count == 0) {
            return false;
        }
        pipelines->process_count += (uint32_t)count;
        ports += count * process->port_count;
        kept += count * process->private_count;
    }
    stats->process_count = pipelines->process_count - stats->first_process;
    needs->processes = pwsp_max_u64(needs->processes, stats->process_count);
    needs->ports = pwsp_max_u64(needs->ports, ports);
    needs->kept = pwsp_max_u64(needs->kept, kept);
    return true;
}

static void pwsp_pipelines_name_processes(pwsp_pipelines *pipelines, const uint64_t *cells) {
    ptowsp_process_stats *stats = pipelines->process_stats;
    memset(stats, 0, pipelines->process_count * sizeof *stats);
    for (uint32_t i = 0; i < pipelines->program->processes.count; i++) {
        const pwsp_process_op *op = PWSP_PROCESS_OP_AT(pipelines, i);
        for (uint32_t j = 0; j < cells[op->size]; j++) {
            stats->name = op->name;
            stats->replica = j;
            stats->replica_count = (uint32_t)cells[op->size];
            stats->channel = UINT32_MAX;
            stats++;
        }
    }
}

PWSP_INTERNAL void pwsp_pipelines_forget(pwsp_pipelines *pipelines) {
    pipelines->process_count = 0;
    pipelines->exchange.step_count = 0;
    pipelines->chain_count = 0;
    pipelines->slot_load_count = pipelines->constant_count = 0;
    pipelines->has_constants_found = false;
    pipelines->process_least = pipelines->channel_least = 0;
    pipelines->least_process = pipelines->least_channel = UINT32_MAX;
    pipelines->is_stuck = false;
    pipelines->is_out_of_memory = false;
    for (uint32_t i = 0; pipelines->program && i < pipelines->program->pipelines.count; i++) {
        memset(&pipelines->stats[i], 0, sizeof pipelines->stats[i]);
        memset(&pipelines->chains[i], 0, sizeof pipelines->chains[i]);
        pipelines->stats[i].name = PWSP_PIPELINE_AT(pipelines, i)->name;
        pipelines->chains[i].end_step = PWSP_NO_STEP;
    }
    for (uint32_t i = 0; pipelines->program && i < pipelines->program->channels.count; i++) {
        memset(&pipelines->channel_stats[i], 0, sizeof pipelines->channel_stats[i]);
        pipelines->channel_stats[i].name = PWSP_CHANNEL_AT(pipelines, i)->name;
    }
}

// Makes room for the largest pipeline. False when memory is out.
static bool pwsp_pipelines_room(pwsp_pipelines *pipelines, const pwsp_pipeline_needs *needs) {
    const pwsp_memory *memory = &pipelines->memory;
    pwsp_exchange *exchange = &pipelines->exchange;
    pwsp_earliest *ready = &exchange->ready;
    bool is_good =
        PWSP_ROOM(memory, pipelines->process_stats, pipelines->process_stats_capacity,
                  pipelines->process_count) &&
        PWSP_ROOM(memory, exchange->processes, pipelines->process_capacity, needs->processes) &&
        PWSP_ROOM(memory, pipelines->kept, pipelines->kept_capacity, needs->kept + 1) &&
        PWSP_ROOM(memory, pipelines->frames, pipelines->frame_capacity,
                  needs->processes * pipelines->program->frame_depth) &&
        PWSP_ROOM(memory, pipelines->closed, pipelines->closed_capacity, needs->ports + 1);
    if (!is_good || (ready->times && needs->processes <= ready->tournament.lane_count)) {
        return is_good;
    }
    pwsp_earliest_free(ready, memory);
    return pwsp_earliest_init(ready, memory, (uint32_t)needs->processes);
}

PWSP_INTERNAL bool pwsp_pipelines_begin(pwsp_pipelines *pipelines, pwsp_expander *x,
                                        const pwsp_pipeline_host *host, const uint64_t *cells) {
    const ptowsp_program *program = pipelines->program;
    pwsp_pipeline_needs needs = {0, 0, 0};
    if (!program) {
        return true;
    }
    x->cells = NULL;  // no variables around, if there is an error
    pipelines->x = x;
    pipelines->host = *host;
    for (uint32_t i = 0; i < program->pipelines.count; i++) {
        if (!pwsp_pipelines_count(pipelines, i, cells, &needs)) {
            pwsp_pipelines_forget(pipelines);
            return false;
        }
    }
    if (!pwsp_pipelines_room(pipelines, &needs)) {
        pwsp_pipelines_forget(pipelines);
        pwsp_expander_fail(x, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "out of memory");
        return false;
    }
    pwsp_pipelines_name_processes(pipelines, cells);
    return true;
}

PWSP_INTERNAL bool pwsp_pipelines_end(pwsp_pipelines *pipelines) {
    return !pipelines->program || pwsp_steps_find_chains(pipelines);
}

// -- a pipeline -----------------------------------------------------------------------------------

// Opens a channel with the values where the pipeline starts. False with an error.
static bool pwsp_pipelines_open_channel(pwsp_pipelines *pipelines, uint32_t channel) {
    const pwsp_channel_op *op = PWSP_CHANNEL_AT(pipelines, channel);
    pwsp_expander *x = pipelines->x;
    uint64_t depth = op->has_depth ? pwsp_expander_value(x, op->depth_code) : op->depth;
    uint64_t latency = op->has_latency ? pwsp_expander_value(x, op->latency_code) : op->latency;
    latency = pipelines->host.has_latency ? pipelines->host.latency : latency;
    if (x->fault.is_set) {
        pwsp_expander_fail(x, PTOWSP_INVALID_PARAMS, pwsp_error_index(x->fault.index),
                           "channel %s: array %s is read at %" PRId64 "; it has %" PRIu64
                           " elements",
                           op->name, x->program->arrays.items[x->fault.array].name, x->fault.index,
                           x->arrays[x->fault.array].count);
        return false;
    }
    pwsp_channel *opened = &pipelines->exchange.channels[channel];
    pwsp_error error;
    if (pwsp_channel_open(opened, &pipelines->memory, op->name, depth, latency,
                          pipelines->host.has_latency, pipelines->host.has_records,
                          &error) != PTOWSP_OK) {
        pwsp_expander_fail_check(x, &error);
        return false;
    }
    opened->limit = pipelines->host.token_limit;
    opened->is_event = op->is_event;
    return true;
}

// Keeps the cells' current values; returns the place for the next ones.
static uint64_t *pwsp_pipelines_keep(const pwsp_pipelines *pipelines, uint32_t first,
                                     uint32_t count, uint64_t *kept) {
    const uint32_t *privates = &pipelines->program->privates.items[first];
    for (uint32_t i = 0; i < count; i++) {
        kept[i] = pipelines->cells[privates[i]];
    }
    return kept + count;
}

PWSP_INTERNAL void pwsp_pipelines_place(pwsp_pipelines *pipelines) {
    const ptowsp_program *program = pipelines->program;
    const pwsp_pipeline_op *op = pipelines->x->pipeline;
    uint32_t index = 0;
    uint8_t *closed = pipelines->closed;
    pipelines->outer_frames = pipelines->x->frames;
    pipelines->outer_frame_count = pipelines->x->frame_count;
    pipelines->outer_next_op = pipelines->x->next_op;
    pipelines->outer_node = pipelines->x->node;
    pipelines->op = op;
    pipelines->index = (uint32_t)(op - PWSP_PIPELINE_AT(pipelines, 0));
    PTOWSP_ASSERT(pipelines->index < program->pipelines.count);
    pipelines->running =
        pipelines->process_stats + pipelines->stats[pipelines->index].first_process;
    pipelines->cells = pipelines->x->cells;
    uint64_t *kept =
        pwsp_pipelines_keep(pipelines, op->first_slot, op->slot_count, pipelines->kept);
    for (uint32_t i = 0; i < op->process_count; i++) {
        const pwsp_process_op *process_op = PWSP_PROCESS_OP_AT(pipelines, op->first_process + i);
        uint64_t count = pipelines->cells[process_op->size];
        for (uint64_t j = 0; j < count; j++) {
            pwsp_process *process = &pipelines->exchange.processes[index];
            memset(process, 0, sizeof *process);
            process->kept = kept;
            process->frames = pipelines->frames + (size_t)index * program->frame_depth;
            process->op = process_op;
            process->name = process_op->name;
            process->ports = PWSP_PORT_AT(pipelines, process_op->first_port);
            process->port_count = process_op->port_count;
            process->replica = (uint32_t)j;
            process->replica_count = (uint32_t)count;
            process->index = index++;
            process->next_op = process_op->first_op;
            process->closed = closed;
            process->step = PWSP_NO_STEP;
            process->task = PTOWSP_NO_INDEX;
            memset(closed, 0, process_op->port_count);
            closed += process_op->port_count;
            kept = pwsp_pipelines_keep(pipelines, process_op->first_private,
                                       process_op->private_count, kept);
            if (process_op->index) {
                process->kept[0] = j;
            }
        }
    }
    PTOWSP_ASSERT(index == pipelines->stats[pipelines->index].process_count);
    PTOWSP_ASSERT(closed <= pipelines->closed + pipelines->closed_capacity);
    PTOWSP_ASSERT(kept <= pipelines->kept + pipelines->kept_capacity);
    pipelines->exchange.running_count = index;
    pipelines->exchange.ended_count = 0;
    pipelines->end_task = PTOWSP_NO_INDEX;
}

PWSP_INTERNAL void pwsp_pipelines_restore(pwsp_pipelines *pipelines) {
    const pwsp_pipeline_op *op = pipelines->op;
    const uint32_t *slots = &pipelines->program->privates.items[op->first_slot];
    pipelines->x->frames = pipelines->outer_frames;
    pipelines->x->frame_count = pipelines->outer_frame_count;
    pipelines->x->next_op = pipelines->outer_next_op;
    pipelines->x->node = pipelines->outer_node;
    for (uint32_t i = 0; i < op->slot_count; i++) {
        pipelines->cells[slots[i]] = pipelines->kept[i];
    }
}

// The tokens that may be on their way through a channel at once: at depth 0 one of each sender.
static uint64_t pwsp_pipelines_width(const pwsp_pipelines *pipelines, uint32_t channel) {
    uint64_t width = pipelines->exchange.channels[channel].depth, senders = 0;
    for (uint32_t i = 0; width == 0 && i < pipelines->exchange.running_count; i++) {
        const pwsp_process_op *op = pipelines->exchange.processes[i].op;
        for (uint32_t j = 0; j < op->port_count; j++) {
            const pwsp_port *port = PWSP_PORT_AT(pipelines, op->first_port + j);
            senders += port->is_produced && port->channel == channel;
        }
    }
    return width ? width : pwsp_max_u64(senders, 1);
}

// Lower bounds of a run. A process does one task at a time. Token k of a channel of depth d is sent
// when token k - d has been received, and is received a latency later (channel.c). So the last of n
// tokens is received after ceil(n / d) latencies at the earliest.
static void pwsp_pipelines_bound(pwsp_pipelines *pipelines) {
    const pwsp_pipeline_op *op = pipelines->op;
    for (uint32_t i = op->first_channel; i < op->first_channel + op->channel_count; i++) {
        const pwsp_channel *channel = &pipelines->exchange.channels[i];
        uint64_t rounds = channel->received, least;
        if (rounds && channel->latency) {
            rounds = pwsp_ceil_div_u64(rounds, pwsp_pipelines_width(pipelines, i));
        }
        least = pwsp_mul_fits(rounds, channel->latency, &least) ? least : UINT64_MAX;
        if (least > pipelines->channel_least) {
            pipelines->channel_least = least;
            pipelines->least_channel = i;
        }
    }
    for (uint32_t i = 0; i < pipelines->exchange.running_count; i++) {
        const pwsp_process *process = &pipelines->exchange.processes[i];
        if (process->busy > pipelines->process_least) {
            pipelines->process_least = process->busy;
            pipelines->least_process =
                (uint32_t)(pipelines->running - pipelines->process_stats) + i;
        }
    }
}

// The results of a run of the pipeline.
static void pwsp_pipelines_account(pwsp_pipelines *pipelines) {
    const pwsp_pipeline_op *op = pipelines->op;
    ptowsp_pipeline_stats *stats = &pipelines->stats[pipelines->index];
    uint64_t latest = 0;
    for (uint32_t i = op->first_channel; i < op->first_channel + op->channel_count; i++) {
        const pwsp_channel *channel = &pipelines->exchange.channels[i];
        ptowsp_channel_stats *sum = &pipelines->channel_stats[i];
        sum->depth = (uint32_t)channel->depth;
        sum->latency = channel->latency;
        sum->pending_count = pwsp_channel_pending(channel);
        PTOWSP_ASSERT(channel->received <= channel->sent);
        PTOWSP_ASSERT(sum->pending_count <= channel->depth);
        sum->token_count = pwsp_sum_u64(sum->token_count, channel->sent);
        sum->pending_max =  // steps of an order have no time
            pwsp_max_u64(sum->pending_max, pipelines->exchange.moves == PWSP_MOVES_CHOSEN
                                               ? sum->pending_count
                                               : pwsp_channel_high(channel));
        sum->full_cycles = pwsp_sum_u64(sum->full_cycles, channel->full);
        sum->empty_cycles = pwsp_sum_u64(sum->empty_cycles, channel->empty);
    }
    for (uint32_t i = 0; i < pipelines->exchange.running_count; i++) {
        const pwsp_process *process = &pipelines->exchange.processes[i];
        ptowsp_process_stats *sum = &pipelines->running[i];
        bool is_full = process->wait == PWSP_PROCESS_WAITS_FULL;
        bool is_waiting = is_full || process->wait == PWSP_PROCESS_WAITS_EMPTY;
        bool is_stuck = is_waiting && pipelines->is_stuck;
        sum->end_cycles = process->time;
        sum->task_count += process->tasks;
        sum->busy_cycles = pwsp_sum_u64(sum->busy_cycles, process->busy);
        sum->full_cycles = pwsp_sum_u64(sum->full_cycles, process->full);
        sum->empty_cycles = pwsp_sum_u64(sum->empty_cycles, process->empty);
        sum->channel = is_stuck ? process->channel : UINT32_MAX;
        sum->node = is_stuck ? process->node : 0;
        sum->state = process->wait == PWSP_PROCESS_HAS_ENDED ? PTOWSP_PROCESS_ENDED
                     : !is_stuck                             ? PTOWSP_PROCESS_STOPPED
                     : is_full                               ? PTOWSP_PROCESS_FULL
                                                             : PTOWSP_PROCESS_EMPTY;
        if (process->time > latest || i == 0) {
            latest = process->time;
            stats->makespan_cycles = latest;
            pipelines->chains[pipelines->index].end_step = process->step;
            pipelines->end_task = process->task;
        }
    }
    pwsp_pipelines_bound(pipelines);
    stats->run_count++;
    stats->total_cycles = pwsp_sum_u64(stats->total_cycles, stats->makespan_cycles);
}

// Do the moves of processes depend on the timing of others? is_simple: no channel has several
// producers or consumers.
static bool pwsp_pipelines_is_independent(const pwsp_pipelines *pipelines, bool is_simple) {
    const pwsp_task_op *task = &pipelines->op->task;
    for (uint32_t i = 0; is_simple && i < task->view_count; i++) {
        uint32_t access = pipelines->program->views.items[task->first_view + i].access;
        is_simple = !(access & PWSP_TILE_LOADED) || !(access & PWSP_TILE_WRITTEN);
    }
    return is_simple;
}

PWSP_INTERNAL bool pwsp_pipelines_open(pwsp_pipelines *pipelines, bool *out_is_simple) {
    const pwsp_pipeline_op *op = pipelines->op;
    pwsp_exchange *exchange = &pipelines->exchange;
    for (uint32_t i = op->first_channel; i < op->first_channel + op->channel_count; i++) {
        if (!pwsp_pipelines_open_channel(pipelines, i)) {
            return false;
        }
    }
    *out_is_simple = pwsp_exchange_connect(exchange, op->first_channel, op->channel_count);
    pipelines->stats[pipelines->index].is_timing_independent =
        pwsp_pipelines_is_independent(pipelines, *out_is_simple);
    exchange->has_records = pipelines->host.has_records;
    exchange->record = pwsp_step_add;
    exchange->user = pipelines;
    return true;
}

static bool pwsp_pipelines_run_open(pwsp_pipelines *pipelines) {
    const pwsp_exchange *exchange = &pipelines->exchange;
    bool is_simple;
    if (!pwsp_pipelines_open(pipelines, &is_simple)) {
        return false;
    }
    pipelines->exchange.moves =
        is_simple && !pipelines->host.is_ordered && !pipelines->host.has_records
            ? PWSP_MOVES_FREELY
            : PWSP_MOVES_IN_TIME;
    bool is_good = pwsp_pipelines_walk(pipelines);
    if (is_good && pipelines->is_out_of_memory) {
        pwsp_expander_fail(pipelines->x, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                           "out of memory for records of steps");
        is_good = false;
    }
    PTOWSP_ASSERT(exchange->ended_count <= exchange->running_count);
    bool has_stopped = exchange->ended_count < exchange->running_count;
    if (is_good && has_stopped && pipelines->host.settle) {
        is_good = pipelines->host.settle(pipelines->host.waiting);
    }
    pipelines->is_stuck = is_good && has_stopped;
    pwsp_pipelines_account(pipelines);
    return is_good;
}

static void pwsp_pipelines_fail_deadlock(pwsp_pipelines *pipelines) {
    pwsp_error error;
    pwsp_deadlock_fail(&pipelines->exchange, &error);
    pwsp_expander_fail(pipelines->x, error.status, error.index, "%s", error.text);
}

PWSP_INTERNAL void pwsp_pipelines_fail_stuck(pwsp_pipelines *pipelines) {
    pipelines->is_stuck = true;
    pwsp_pipelines_account(pipelines);
    pwsp_pipelines_fail_deadlock(pipelines);
}

PWSP_INTERNAL bool pwsp_pipelines_run(pwsp_pipelines *pipelines, ptowsp_cycles *out_cycles) {
    pwsp_pipelines_place(pipelines);
    pipelines->stats[pipelines->index].makespan_cycles = 0;
    bool is_good = pwsp_pipelines_run_open(pipelines);
    pwsp_pipelines_restore(pipelines);
    if (pipelines->is_stuck) {
        pwsp_pipelines_fail_deadlock(pipelines);
        is_good = false;
    }
    *out_cycles = pwsp_exchange_sum(&pipelines->exchange).makespan;
    return is_good;
}

// -- after a deadlocked execution -----------------------------------------------------------------

#define PWSP_STUCK_MAX 200  // processes that the report lists

PWSP_INTERNAL void pwsp_pipelines_print_stuck(const pwsp_pipelines *pipelines, ptowsp_output text) {
    if (!pipelines->is_stuck) {
        return;
    }
    bool is_by_order = pipelines->exchange.moves == PWSP_MOVES_CHOSEN;
    uint32_t left = pipelines->exchange.running_count - pipelines->exchange.ended_count, shown = 0;
    pwsp_text_format(text, "pipeline %s %s: %u of %u processes wait\n", pipelines->op->name,
                     is_by_order ? "gets stuck in an order of steps" : "is stuck", left,
                     pipelines->exchange.running_count);
    for (uint32_t i = 0; i < pipelines->exchange.running_count && shown < PWSP_STUCK_MAX; i++) {
        const pwsp_process *process = &pipelines->exchange.processes[i];
        if (!pwsp_process_waits(process)) {
            continue;
        }
        shown++;
        pwsp_text_format(text, "  ");
        pwsp_deadlock_print_name(process, text);
        pwsp_text_format(text, " ");
        pwsp_deadlock_print_wait(&pipelines->exchange, process, text);
        pwsp_text_format(text, "\n    at ");
        pwsp_process_swap(pipelines, process);
        pwsp_program_print_place(pipelines->program, process->node, pipelines->cells, text);
        pwsp_process_swap(pipelines, process);
        pwsp_text_format(text, "\n");
    }
    if (left > shown) {
        pwsp_text_format(text, "  ... %u more\n", left - shown);
    }
    if (pipelines->exchange.cycle) {
        pwsp_text_format(text, "  cycle: ");
        pwsp_deadlock_print_cycle(&pipelines->exchange, text);
        pwsp_text_format(text, "\n");
    }
    pwsp_text_format(text, "  help: ");
    pwsp_deadlock_print_hint(&pipelines->exchange, text);
    pwsp_text_format(text, "\n");
    if (is_by_order) {
        pwsp_steps_print_order(pipelines, text);
    }
}
