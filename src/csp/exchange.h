// Processes that exchange tokens through channels: the rules of section 21 of ptowsp.h. Used by the
// walk over the processes of a program (pipeline.h) and by emitted trees, whose processes have
// threads.
//
//      ready --move--> ... --send, receive--> waits (full, empty) --woken--> ready ... ended
//
// The ready process with the smallest (time, index) moves, and goes on as long as it is the
// smallest. A queue holds the others: a few in order, as most come behind those that are there, and
// a heap of the rest. A process that has to wait stands in the line of its channel,
// behind earlier arrivals, and repeats its send or receive at its next move. Each token put wakes
// the first receiver in line; each token taken wakes the first sender. A woken process is ready, at
// the time of its arrival. If an earlier process has just taken the token or the room, it stands in
// line again. So the order of the queue is the whole rule. Only at depth 0, where two processes
// meet, the second to arrive acts for both.
//
// No process waits in vain: while one stands in line, as many woken processes are on their way to
// the channel as there are tokens (or room) to be had.

#ifndef PWSP_EXCHANGE_H
#define PWSP_EXCHANGE_H

#include "../base/error.h"
#include "../runtime/arrival.h"
#include "channel.h"

typedef enum pwsp_process_wait {
    PWSP_PROCESS_READY,
    PWSP_PROCESS_WAITS_FULL,   // at a send, of `token`
    PWSP_PROCESS_WAITS_EMPTY,  // at a receive
    PWSP_PROCESS_HAS_ENDED
} pwsp_process_wait;

// The cause of a process' time.
typedef enum pwsp_process_mover {
    PWSP_MOVER_START,
    PWSP_MOVER_TASK,
    PWSP_MOVER_CHANNEL
} pwsp_process_mover;

// A process, or one replica of it, while its pipeline runs.
typedef struct pwsp_process {
    uint64_t time;
    uint64_t *inbox;  // where it wants its token
    // For walked processes: see pipeline.h. Other owners use this room as they like.
    uint64_t *kept;
    struct pwsp_frame *frames;
    uint32_t next_op, frame_count;
    uint32_t index;  // among those of the pipeline
    uint32_t after;  // the next in a line of waiting processes or of ready ones: index + 1, or 0
    pwsp_process_wait wait;
    uint32_t channel;  // that it waits for
    uint32_t node;     // its node
    uint32_t mark;     // for searches
    bool is_loop;      // its receive goes on to the end of the stream
    bool has_met;      // its wait was completed by another process
    uint64_t token;
    uint64_t full, empty;  // cycles that it has waited
    uint64_t busy, tasks;
    const pwsp_port *ports;
    uint8_t *closed;  // by port
    uint32_t port_count;
    uint32_t replica, replica_count;
    const char *name;
    const struct pwsp_process_op *op;
    // When steps are recorded:
    uint64_t step;  // its last
    uint64_t task;  // on the chain of steps that its time comes from, the last task
    pwsp_process_mover mover;
} pwsp_process;

typedef struct pwsp_ready {
    uint64_t time;
    uint32_t process;
} pwsp_ready;

#define PWSP_READY_FEW 16u

typedef struct pwsp_exchange {
    pwsp_channel *channels;
    pwsp_process *processes;
    uint32_t running_count, ended_count;
    bool is_ordered;   // processes move in the order of time
    bool is_by_order;  // time counts steps, and takes none: see explore.c
    bool has_records;  // steps are recorded, by:
    uint32_t ready;    // without order: a stack of processes, the first's index + 1
    // With order: all that are ready, in order in few[few_first ... few_end - 1], or in the heap.
    uint32_t ready_count, few_first, few_end;
    pwsp_ready few[2 * PWSP_READY_FEW];
    pwsp_ready *heap;
    uint64_t step_count;  // that have been
    uint64_t (*record)(void *user, pwsp_process *process, ptowsp_step_kind kind, uint32_t channel,
                       uint64_t end, uint64_t token, const pwsp_channel_mark *cause);
    void *user;
    const pwsp_process *cycle;  // of a cycle of waits, or NULL: see deadlock.c
} pwsp_exchange;

// The result of a send or receive.
typedef enum pwsp_exchanged {
    PWSP_EXCHANGED,
    PWSP_EXCHANGE_WAITS,
    PWSP_EXCHANGE_END,     // of the stream
    PWSP_EXCHANGE_LATE,    // the token would arrive after PTOWSP_CYCLES_MAX
    PWSP_EXCHANGE_CLOSED,  // the process has closed the port
    PWSP_EXCHANGE_LIMIT    // more tokens than the channel's limit
} pwsp_exchanged;

// The error of one of the last three.
PWSP_INTERNAL ptowsp_status pwsp_exchange_fail(const pwsp_exchange *exchange, pwsp_exchanged what,
                                               uint32_t channel, pwsp_error *error);

// Is a channel allowed to be so? by_symbol: PTOWSP_CHANNEL_LATENCY_SYMBOL gives its latency.
PWSP_INTERNAL ptowsp_status pwsp_exchange_check_channel(pwsp_error *error, const char *name,
                                                        uint64_t depth, uint64_t latency,
                                                        bool by_symbol);

// Counts the producers and consumers of each channel; returns whether each has at most one of both.
PWSP_INTERNAL bool pwsp_exchange_connect(pwsp_exchange *exchange, uint32_t first_channel,
                                         uint32_t channel_count);

// -- the ready ------------------------------------------------------------------------------------

// Does the process of an index, at a time, come before another one?
PWSP_FORCE_INLINE bool pwsp_exchange_is_before(uint64_t time, uint32_t index, uint64_t other_time,
                                               uint32_t other) {
    return time < other_time || (time == other_time && index < other);
}

// Makes room behind the few. False if there are as many as can be, and the process is in the heap.
PWSP_INTERNAL bool pwsp_exchange_make_few(pwsp_exchange *exchange, uint64_t time, uint32_t index);

// Puts a process that is ready into the queue.
PWSP_FORCE_INLINE void pwsp_exchange_push(pwsp_exchange *exchange, uint64_t time, uint32_t index) {
    PTOWSP_ASSERT(exchange->ready_count < exchange->running_count);  // each process is in it once
    if (exchange->few_end == 2 * PWSP_READY_FEW && !pwsp_exchange_make_few(exchange, time, index)) {
        return;
    }
    pwsp_ready *first = &exchange->few[exchange->few_first];
    pwsp_ready *at = &exchange->few[exchange->few_end++];
    for (; at > first && pwsp_exchange_is_before(time, index, at[-1].time, at[-1].process); at--) {
        at[0] = at[-1];
    }
    at->time = time;
    at->process = index;
    exchange->ready_count++;
}

PWSP_INTERNAL uint32_t pwsp_exchange_pop_heap(pwsp_exchange *exchange);

// Removes the first of the queue, which is not empty.
PWSP_FORCE_INLINE uint32_t pwsp_exchange_pop(pwsp_exchange *exchange) {
    uint32_t few_count = exchange->few_end - exchange->few_first;
    PTOWSP_ASSERT(exchange->ready_count > 0 && exchange->ready_count >= few_count);
    if (PWSP_UNLIKELY(exchange->ready_count > few_count)) {
        const pwsp_ready *few = &exchange->few[exchange->few_first], *heap = exchange->heap;
        if (few_count == 0 ||
            pwsp_exchange_is_before(heap->time, heap->process, few->time, few->process)) {
            return pwsp_exchange_pop_heap(exchange);
        }
    }
    exchange->ready_count--;
    return exchange->few[exchange->few_first++].process;
}

// Does a process come before all in the queue?
PWSP_FORCE_INLINE bool pwsp_exchange_leads(const pwsp_exchange *exchange, uint64_t time,
                                           uint32_t index) {
    uint32_t few_count = exchange->few_end - exchange->few_first;
    const pwsp_ready *few = &exchange->few[exchange->few_first], *heap = exchange->heap;
    return (few_count == 0 || pwsp_exchange_is_before(time, index, few->time, few->process)) &&
           (exchange->ready_count == few_count ||
            pwsp_exchange_is_before(time, index, heap->time, heap->process));
}

// Does a ready process come before all other ready ones?
PWSP_INLINE bool pwsp_exchange_is_first(const pwsp_exchange *exchange,
                                        const pwsp_process *process) {
    return pwsp_exchange_leads(exchange, process->time, process->index);
}

PWSP_INLINE void pwsp_exchange_wake(pwsp_exchange *exchange, pwsp_process *process) {
    uint32_t index = process->index;
    process->wait = PWSP_PROCESS_READY;
    if (exchange->is_ordered) {
        pwsp_exchange_push(exchange, process->time, index);
    } else {
        process->after = exchange->ready;
        exchange->ready = index + 1;
    }
}

// -- lines ----------------------------------------------------------------------------------------

// Puts a process into a line that is not empty.
PWSP_INTERNAL void pwsp_exchange_queue_behind(pwsp_exchange *exchange, pwsp_channel_line *line,
                                              pwsp_process *process);

// Puts a process in line: behind all that arrived before it, or at the same time with a smaller
// index.
PWSP_FORCE_INLINE void pwsp_exchange_queue(pwsp_exchange *exchange, pwsp_channel_line *line,
                                           pwsp_process *process) {
    if (line->first) {
        pwsp_exchange_queue_behind(exchange, line, process);
    } else {
        process->after = 0;
        line->first = line->last = process->index + 1;
    }
}

// Takes the first out of a line.
PWSP_FORCE_INLINE pwsp_process *pwsp_exchange_unqueue(pwsp_exchange *exchange,
                                                      pwsp_channel_line *line) {
    PTOWSP_ASSERT(line->first > 0 && line->first <= exchange->running_count);
    pwsp_process *first = &exchange->processes[line->first - 1];
    line->first = first->after;
    if (line->first == 0) {
        line->last = 0;
    }
    return first;
}

// -- operations of processes ----------------------------------------------------------------------

// Sends a token at a port that the process produces. `node` is the place of the op, for reports.
PWSP_INTERNAL pwsp_exchanged pwsp_exchange_send(pwsp_exchange *exchange, pwsp_process *process,
                                                uint32_t port, uint64_t token, uint32_t node);

// Receives into *token. If it waits, a token at depth 0 goes to process->inbox, which the caller
// sets. An event's stream has no end.
PWSP_INTERNAL pwsp_exchanged pwsp_exchange_receive(pwsp_exchange *exchange, pwsp_process *process,
                                                   uint32_t channel, uint64_t *token,
                                                   uint32_t node);

// A producer closes a port before it ends; again does nothing.
PWSP_INTERNAL void pwsp_exchange_close(pwsp_exchange *exchange, pwsp_process *process,
                                       uint32_t port);
PWSP_INTERNAL void pwsp_exchange_end(pwsp_exchange *exchange, pwsp_process *process);

// -- deadlocks: deadlock.c ------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_deadlock_fail(pwsp_exchange *exchange, pwsp_error *error);

// The parts of a longer report, after that call.
PWSP_INTERNAL bool pwsp_process_waits(const pwsp_process *process);
PWSP_INTERNAL void pwsp_deadlock_print_name(const pwsp_process *process, ptowsp_text text);
PWSP_INTERNAL void pwsp_deadlock_print_wait(const pwsp_exchange *exchange,
                                            const pwsp_process *process, ptowsp_text text);
PWSP_INTERNAL void pwsp_deadlock_print_cycle(const pwsp_exchange *exchange, ptowsp_text text);
PWSP_INTERNAL void pwsp_deadlock_print_hint(const pwsp_exchange *exchange, ptowsp_text text);

#endif
