// Sending, receiving, and the order of time: see exchange.h.

#include "exchange.h"

#include <inttypes.h>

// -- channels of a pipeline -----------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_exchange_check_channel(pwsp_error *error, const char *name,
                                                        uint64_t depth, uint64_t latency,
                                                        bool by_symbol) {
    if (depth > PTOWSP_CHANNEL_DEPTH_MAX) {
        return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                              "channel %s: a depth of %" PRIu64 ", more than %d", name, depth,
                              PTOWSP_CHANNEL_DEPTH_MAX);
    }
    if (latency > PTOWSP_CYCLES_MAX) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                              "channel %s: a latency of %" PRId64 " cycles%s", name,
                              (int64_t)latency,
                              by_symbol ? ", by symbol " PTOWSP_CHANNEL_LATENCY_SYMBOL : "");
    }
    return PTOWSP_OK;
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
                                               uint32_t channel, pwsp_error *error) {
    const pwsp_channel *at = &exchange->channels[channel];
    if (what == PWSP_EXCHANGE_LATE) {
        return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                              "a token of channel %s arrives after 2^63 - 1 cycles", at->name);
    }
    if (what == PWSP_EXCHANGE_CLOSED) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
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

// -- the ready ------------------------------------------------------------------------------------

static bool pwsp_ready_is_less(const pwsp_ready *a, const pwsp_ready *b) {
    return pwsp_exchange_is_before(a->time, a->process, b->time, b->process);
}

PWSP_INTERNAL bool pwsp_exchange_make_few(pwsp_exchange *exchange, uint64_t time, uint32_t index) {
    const pwsp_ready ready = {time, index};
    uint32_t few_count = exchange->few_end - exchange->few_first;
    if (few_count <= PWSP_READY_FEW) {  // so all of them move once for as many that have left
        memmove(exchange->few, &exchange->few[exchange->few_first], few_count * sizeof(pwsp_ready));
        exchange->few_first = 0;
        exchange->few_end = few_count;
        return true;
    }
    pwsp_ready *heap = exchange->heap;
    uint32_t i = exchange->ready_count++ - few_count;
    while (i > 0 && pwsp_ready_is_less(&ready, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = ready;
    return false;
}

PWSP_INTERNAL uint32_t pwsp_exchange_pop_heap(pwsp_exchange *exchange) {
    pwsp_ready *heap = exchange->heap;
    uint32_t i = 0, first = heap[0].process;
    uint32_t count = --exchange->ready_count - (exchange->few_end - exchange->few_first);
    pwsp_ready last = heap[count];
    for (uint32_t child = 1; child < count; child = 2 * i + 1) {
        child += child + 1 < count && pwsp_ready_is_less(&heap[child + 1], &heap[child]);
        if (!pwsp_ready_is_less(&heap[child], &last)) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

// -- lines ----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_exchange_queue_behind(pwsp_exchange *exchange, pwsp_channel_line *line,
                                              pwsp_process *process) {
    pwsp_process *processes = exchange->processes;
    const pwsp_process *last = &processes[line->last - 1];
    uint32_t index = process->index;
    uint32_t *at = &line->first;
    PTOWSP_ASSERT(&processes[index] == process);
    PTOWSP_ASSERT(line->first > 0 && line->last > 0);
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

static pwsp_exchanged pwsp_exchange_wait(pwsp_exchange *exchange, pwsp_process *process,
                                         uint32_t channel, pwsp_process_wait wait, uint32_t node) {
    pwsp_channel *at = &exchange->channels[channel];
    process->wait = wait;
    process->channel = channel;
    process->node = node;
    process->has_met = false;
    pwsp_exchange_queue(exchange, wait == PWSP_PROCESS_WAITS_FULL ? &at->senders : &at->receivers,
                        process);
    return PWSP_EXCHANGE_WAITS;
}

PWSP_FORCE_INLINE void pwsp_exchange_wake_first(pwsp_exchange *exchange, pwsp_channel_line *line) {
    if (line->first) {
        pwsp_exchange_wake(exchange, pwsp_exchange_unqueue(exchange, line));
    }
}

// -- sending and receiving ------------------------------------------------------------------------

PWSP_FORCE_INLINE uint64_t pwsp_exchange_record(pwsp_exchange *exchange, pwsp_process *process,
                                                ptowsp_step_kind kind, uint32_t channel,
                                                uint64_t end, uint64_t token,
                                                const pwsp_channel_mark *cause) {
    return exchange->record(exchange->user, process, kind, channel, end, token, cause);
}

PWSP_FORCE_INLINE void pwsp_exchange_put(pwsp_exchange *exchange, uint32_t channel,
                                         pwsp_process *process, uint64_t token) {
    pwsp_channel *at = &exchange->channels[channel];
    uint64_t k = at->sent, time = pwsp_channel_put(at, token, process->time);
    uint64_t waited = time - process->time;
    if (PWSP_UNLIKELY(exchange->has_records)) {
        const pwsp_channel_mark *cause = &at->marks[(k - at->depth) & at->mask];
        uint64_t step = pwsp_exchange_record(exchange, process, PTOWSP_STEP_SEND, channel, time,
                                             token, waited ? cause : NULL);
        at->marks[k & at->mask].step = step;
        at->marks[k & at->mask].task = process->task;
    }
    if (waited) {
        at->full = pwsp_sum_u64(at->full, waited);
        process->full += exchange->is_ordered ? waited : 0;
        process->time = time;
    }
}

// False when its time is beyond what time can be.
PWSP_FORCE_INLINE bool pwsp_exchange_take(pwsp_exchange *exchange, uint32_t channel,
                                          pwsp_process *process, uint64_t *token) {
    pwsp_channel *at = &exchange->channels[channel];
    if (PWSP_UNLIKELY(pwsp_channel_first_due(at) > PTOWSP_CYCLES_MAX)) {
        return false;
    }
    uint64_t k = at->received, time = pwsp_channel_take(at, process->time, token);
    uint64_t waited = time - process->time;
    if (PWSP_UNLIKELY(exchange->has_records)) {
        pwsp_channel_mark *mark = &at->marks[k & at->mask];
        mark->step = pwsp_exchange_record(exchange, process, PTOWSP_STEP_RECEIVE, channel, time,
                                          *token, waited ? mark : NULL);
        mark->task = process->task;
    }
    if (waited) {
        at->empty = pwsp_sum_u64(at->empty, waited);
        process->empty += exchange->is_ordered ? waited : 0;
        process->time = time;
    }
    return true;
}

// Sender and receiver meet at a channel of depth 0; one of them has waited.
static pwsp_exchanged pwsp_exchange_meet(pwsp_exchange *exchange, uint32_t channel,
                                         pwsp_process *sender, uint64_t token,
                                         pwsp_process *receiver, uint64_t *out_token) {
    pwsp_channel *at = &exchange->channels[channel];
    PTOWSP_ASSERT(at->depth == 0 && at->sent == at->received);
    PTOWSP_ASSERT((sender->wait == PWSP_PROCESS_READY) != (receiver->wait == PWSP_PROCESS_READY));
    uint64_t sent = sender->time + at->latency;
    uint64_t time = pwsp_max_u64(sent, receiver->time);
    if (time > PTOWSP_CYCLES_MAX) {
        return PWSP_EXCHANGE_LATE;
    }
    if (exchange->has_records) {
        uint64_t next = exchange->step_count;
        pwsp_channel_mark send = {next, sender->task}, received = {next + 1, receiver->task};
        pwsp_exchange_record(exchange, sender, PTOWSP_STEP_SEND, channel, time, token,
                             receiver->time > sent ? &received : NULL);
        pwsp_exchange_record(exchange, receiver, PTOWSP_STEP_RECEIVE, channel, time, token,
                             sent > receiver->time ? &send : NULL);
    }
    at->sent++;
    at->received++;
    at->full = pwsp_sum_u64(at->full, time - sender->time);
    at->empty = pwsp_sum_u64(at->empty, time - receiver->time);
    sender->full += exchange->is_ordered ? time - sender->time : 0;
    receiver->empty += exchange->is_ordered ? time - receiver->time : 0;
    *out_token = token;
    sender->time = time;
    receiver->time = time;
    pwsp_process *waited = sender->wait == PWSP_PROCESS_READY ? receiver : sender;
    waited->has_met = true;
    pwsp_exchange_wake(exchange, waited);
    return PWSP_EXCHANGED;
}

PWSP_INTERNAL pwsp_exchanged pwsp_exchange_send(pwsp_exchange *exchange, pwsp_process *process,
                                                uint32_t port, uint64_t token, uint32_t node) {
    uint32_t channel = process->ports[port].channel;
    pwsp_channel *at = &exchange->channels[channel];
    if (PWSP_UNLIKELY(process->closed[port])) {
        return PWSP_EXCHANGE_CLOSED;
    }
    if (PWSP_UNLIKELY(at->sent >= at->limit)) {
        return PWSP_EXCHANGE_LIMIT;
    }
    if (pwsp_channel_pending(at) < at->depth) {
        pwsp_exchange_put(exchange, channel, process, token);
        pwsp_exchange_wake_first(exchange, &at->receivers);
        return PWSP_EXCHANGED;
    }
    if (at->depth == 0 && at->receivers.first) {
        pwsp_process *receiver = pwsp_exchange_unqueue(exchange, &at->receivers);
        return pwsp_exchange_meet(exchange, channel, process, token, receiver, receiver->inbox);
    }
    process->token = token;
    return pwsp_exchange_wait(exchange, process, channel, PWSP_PROCESS_WAITS_FULL, node);
}

// A receiver sees the end of the stream.
static void pwsp_exchange_see_end(pwsp_exchange *exchange, pwsp_process *process,
                                  uint32_t channel) {
    pwsp_channel *at = &exchange->channels[channel];
    uint64_t time = pwsp_max_u64(process->time, at->close_time), waited = time - process->time;
    PTOWSP_ASSERT(at->producers == 0 && pwsp_channel_pending(at) == 0);
    if (exchange->has_records) {
        pwsp_exchange_record(exchange, process, PTOWSP_STEP_END, channel, time, 0,
                             waited ? &at->close_mark : NULL);
    }
    at->empty = pwsp_sum_u64(at->empty, waited);
    process->empty += exchange->is_ordered ? waited : 0;
    process->time = time;
}

PWSP_INTERNAL pwsp_exchanged pwsp_exchange_receive(pwsp_exchange *exchange, pwsp_process *process,
                                                   uint32_t channel, uint64_t *token,
                                                   uint32_t node) {
    pwsp_channel *at = &exchange->channels[channel];
    if (pwsp_channel_pending(at)) {
        bool is_good = pwsp_exchange_take(exchange, channel, process, token);
        pwsp_exchange_wake_first(exchange, &at->senders);
        return is_good ? PWSP_EXCHANGED : PWSP_EXCHANGE_LATE;
    }
    if (at->senders.first && at->depth == 0) {
        if (PWSP_UNLIKELY(at->sent >= at->limit)) {  // several may have come before it was reached
            return PWSP_EXCHANGE_LIMIT;
        }
        pwsp_process *sender = pwsp_exchange_unqueue(exchange, &at->senders);
        return pwsp_exchange_meet(exchange, channel, sender, sender->token, process, token);
    }
    if (at->producers == 0 && !at->is_event) {  // a wait for an event lasts for ever
        pwsp_exchange_see_end(exchange, process, channel);
        return PWSP_EXCHANGE_END;
    }
    return pwsp_exchange_wait(exchange, process, channel, PWSP_PROCESS_WAITS_EMPTY, node);
}

// -- closing --------------------------------------------------------------------------------------

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
        pwsp_exchange_wake_first(exchange, &at->receivers);
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
