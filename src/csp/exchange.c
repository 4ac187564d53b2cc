// Processes on their way: see exchange.h.

#include "rules.h"

#include <inttypes.h>

// -- channels of a pipeline -----------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_process_uses(const pwsp_process *process, uint32_t channel,
                                     bool is_produced) {
    for (uint32_t i = 0; i < process->port_count; i++) {
        const pwsp_port *port = &process->ports[i];
        if (port->channel == channel && port->is_produced == is_produced &&
            !(is_produced && process->closed[i])) {
            return true;
        }
    }
    return false;
}

PWSP_INTERNAL bool pwsp_exchange_connect(pwsp_exchange *exchange, uint32_t first_channel,
                                         uint32_t channel_count) {
    bool is_simple = true;
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        const pwsp_process *process = &exchange->processes[i];
        for (uint32_t j = 0; j < process->port_count; j++) {
            const pwsp_port *port = &process->ports[j];
            pwsp_channel *channel = &exchange->channels[port->channel];
            *(port->is_produced ? &channel->producers : &channel->consumers) += 1;
        }
    }
    for (uint32_t i = first_channel; i < first_channel + channel_count; i++) {
        const pwsp_channel *channel = &exchange->channels[i];
        is_simple = is_simple && channel->producers <= 1 && channel->consumers <= 1;
    }
    return is_simple;
}

PWSP_INTERNAL ptowsp_status pwsp_exchange_fail(const pwsp_exchange *exchange, pwsp_exchanged what,
                                               const pwsp_process *process, pwsp_error *error) {
    const pwsp_channel *at = &exchange->channels[process->channel];
    if (what == PWSP_EXCHANGE_LATE) {
        return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                              "a token of channel %s arrives after 2^63 - 1 cycles", at->name);
    }
    if (what == PWSP_EXCHANGE_CLOSED) {
        return PWSP_ERROR_REFUSE(error,
                                 at->is_event ? "it records event %s after closing it"
                                              : "it sends to channel %s after closing it",
                                 at->name);
    }
    PTOWSP_ASSERT(what == PWSP_EXCHANGE_LIMIT);
    return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                          "channel %s gets more than %" PRIu64
                          " tokens, the limit of this execution",
                          at->name, at->limit);
}

PWSP_INTERNAL void pwsp_exchange_start(pwsp_exchange *exchange) {
    const pwsp_moves moves = exchange->moves;
    exchange->first_time = PWSP_NO_TIME;
    exchange->stack = 0;
    if (moves == PWSP_MOVES_IN_TIME && exchange->running_count > 0) {
        pwsp_earliest_clear(&exchange->ready, PWSP_NO_TIME);
    }
    for (uint32_t i = exchange->running_count; i > 0; i--) {  // so the first is on the stack's top
        pwsp_exchange_wake(moves, exchange, &exchange->processes[i - 1]);
    }
}

PWSP_INTERNAL pwsp_exchange_sums pwsp_exchange_sum(const pwsp_exchange *exchange) {
    pwsp_exchange_sums sums = {0, 0, 0, 0};
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        const pwsp_process *process = &exchange->processes[i];
        sums.makespan = pwsp_max_u64(sums.makespan, process->time);
        sums.tasks += process->tasks;
        sums.busy = pwsp_sum_u64(sums.busy, process->busy);
        sums.waited = pwsp_sum_u64(sums.waited, pwsp_sum_u64(process->full, process->empty));
    }
    return sums;
}

// -- the rules: records, lines --------------------------------------------------------------------

static uint64_t pwsp_exchange_record(pwsp_exchange *exchange, pwsp_process *process,
                                     ptowsp_step_kind kind, uint32_t channel, uint64_t end,
                                     uint64_t token, const pwsp_channel_mark *cause) {
    return exchange->record(exchange->user, process, kind, channel, end, token, cause);
}

static uint32_t pwsp_exchange_index(const pwsp_exchange *exchange, const pwsp_channel *at) {
    return (uint32_t)(at - exchange->channels);
}

PWSP_INTERNAL void pwsp_rules_record(pwsp_exchange *exchange, pwsp_process *process, bool sends,
                                     const pwsp_channel *at, uint64_t before, uint64_t time,
                                     uint64_t token) {
    pwsp_channel_mark *mark = &at->marks[(sends ? at->sent - 1 : before) & at->mask];
    mark->step =
        pwsp_exchange_record(exchange, process, sends ? PTOWSP_STEP_SEND : PTOWSP_STEP_RECEIVE,
                             pwsp_exchange_index(exchange, at), time, token,
                             time > process->time ? &at->marks[before & at->mask] : NULL);
    mark->task = process->task;
}

PWSP_INTERNAL void pwsp_rules_record_meeting(pwsp_exchange *exchange, const pwsp_channel *at,
                                             pwsp_process *sender, pwsp_process *receiver,
                                             uint64_t sent, uint64_t token) {
    uint64_t next = exchange->step_count, time = pwsp_max_u64(sent, receiver->time);
    uint32_t channel = pwsp_exchange_index(exchange, at);
    pwsp_channel_mark send = {next, sender->task}, received = {next + 1, receiver->task};
    pwsp_exchange_record(exchange, sender, PTOWSP_STEP_SEND, channel, time, token,
                         receiver->time > sent ? &received : NULL);
    pwsp_exchange_record(exchange, receiver, PTOWSP_STEP_RECEIVE, channel, time, token,
                         sent > receiver->time ? &send : NULL);
}

PWSP_INTERNAL pwsp_exchanged pwsp_rules_see_end(pwsp_exchange *exchange, pwsp_process *process,
                                                pwsp_channel *at) {
    uint64_t time = pwsp_max_u64(process->time, at->close_time);
    PTOWSP_ASSERT(at->producers == 0 && pwsp_channel_pending(at) == 0);
    if (exchange->has_records) {
        pwsp_exchange_record(exchange, process, PTOWSP_STEP_END, pwsp_exchange_index(exchange, at),
                             time, 0, time > process->time ? &at->close_mark : NULL);
    }
    pwsp_rules_pass(process, time, &process->empty, &at->empty);
    return PWSP_EXCHANGE_END;
}

PWSP_INTERNAL void pwsp_rules_queue_after(pwsp_exchange *exchange, pwsp_channel_line *line,
                                          pwsp_process *process) {
    pwsp_process *processes = exchange->processes;
    const pwsp_process *last = &processes[line->last - 1];
    uint32_t index = process->index;
    uint32_t *at = &line->first;
    PTOWSP_ASSERT(&processes[index] == process);
    PTOWSP_ASSERT(line->first > 0);
    if (pwsp_exchange_is_before(last->time, line->last - 1, process->time, index)) {
        at = &processes[line->last - 1].after;
    }
    while (*at && pwsp_exchange_is_before(processes[*at - 1].time, *at - 1, process->time, index)) {
        at = &processes[*at - 1].after;
    }
    PTOWSP_ASSERT(*at != index + 1);  // it stands in line once
    process->after = *at;
    *at = index + 1;
    if (process->after == 0) {
        line->last = index + 1;
    }
}

// -- operations of processes ----------------------------------------------------------------------

PWSP_INTERNAL pwsp_exchanged pwsp_exchange_send(pwsp_exchange *exchange, pwsp_process *process,
                                                uint32_t port, uint64_t token) {
    process->channel = process->ports[port].channel;
    return PWSP_UNLIKELY(process->closed[port])
               ? PWSP_EXCHANGE_CLOSED
               : pwsp_rules_attempt(exchange->moves, exchange, process, true,
                                    &exchange->channels[process->channel], &token);
}

PWSP_INTERNAL pwsp_exchanged pwsp_exchange_receive(pwsp_exchange *exchange, pwsp_process *process,
                                                   uint32_t channel, uint64_t *token) {
    return pwsp_rules_attempt(exchange->moves, exchange, process, false,
                              &exchange->channels[channel], token);
}

PWSP_INTERNAL pwsp_exchanged pwsp_exchange_move(pwsp_exchange *exchange, pwsp_process *process,
                                                pwsp_process *partner) {
    bool sends = process->wait == PWSP_PROCESS_WAITS_FULL;
    PTOWSP_ASSERT(exchange->moves == PWSP_MOVES_CHOSEN && pwsp_process_waits(process));
    process->time = exchange->step_count + 1;
    if (partner) {
        partner->time = process->time;
    }
    return pwsp_rules_act(exchange, process, sends, &exchange->channels[process->channel], partner,
                          sends ? &process->token : process->inbox);
}

PWSP_INTERNAL bool pwsp_exchange_task(pwsp_exchange *exchange, pwsp_process *process,
                                      uint64_t index, uint64_t cycles, pwsp_error *error) {
    if (cycles > PTOWSP_CYCLES_MAX - process->time) {
        pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, index,
                       "task %" PRIu64 " ends after 2^63 - 1 cycles", index);
        return false;
    }
    if (exchange->has_records) {
        pwsp_exchange_record(exchange, process, PTOWSP_STEP_TASK, UINT32_MAX,
                             process->time + cycles, index, NULL);
        process->task = index;
    }
    process->tasks++;
    process->busy += cycles;
    process->time += cycles;
    return true;
}

// A producer closes a channel at its time. After the last close, waiting processes see the end of
// the stream, except those that wait for an event.
static void pwsp_exchange_close_channel(pwsp_exchange *exchange, const pwsp_process *process,
                                        uint32_t channel) {
    pwsp_channel *at = &exchange->channels[channel];
    if (process->time >= at->close_time) {
        at->close_time = process->time;
        at->close_mark.step = process->step;
        at->close_mark.task = process->task;
    }
    PTOWSP_ASSERT(at->producers > 0);
    at->producers--;
    while (at->producers == 0 && at->receivers.first && !at->is_event) {
        pwsp_rules_wake(exchange->moves, exchange, &at->receivers,
                        &exchange->processes[at->receivers.first - 1]);
    }
}

PWSP_INTERNAL void pwsp_exchange_close(pwsp_exchange *exchange, pwsp_process *process,
                                       uint32_t port) {
    if (process->closed[port]) {
        return;
    }
    process->closed[port] = 1;
    uint32_t channel = process->ports[port].channel;
    if (exchange->has_records) {
        pwsp_exchange_record(exchange, process, PTOWSP_STEP_CLOSE, channel, process->time, 0, NULL);
    }
    pwsp_exchange_close_channel(exchange, process, channel);
}

PWSP_INTERNAL void pwsp_exchange_end(pwsp_exchange *exchange, pwsp_process *process) {
    if (exchange->has_records) {
        pwsp_exchange_record(exchange, process, PTOWSP_STEP_CLOSE, UINT32_MAX, process->time, 0,
                             NULL);
    }
    PTOWSP_ASSERT(process->wait != PWSP_PROCESS_HAS_ENDED);
    process->wait = PWSP_PROCESS_HAS_ENDED;
    exchange->ended_count++;
    PTOWSP_ASSERT(exchange->ended_count <= exchange->running_count);
    for (uint32_t i = 0; i < process->port_count; i++) {
        uint32_t channel = process->ports[i].channel;
        if (!process->ports[i].is_produced) {
            exchange->channels[channel].consumers--;
        } else if (!process->closed[i]) {
            pwsp_exchange_close_channel(exchange, process, channel);
        }
    }
}
