// Processes that exchange tokens through channels, section 25 of ptowsp.h: their state, and which
// one moves. rules.h defines send and receive.
//
//      ready --move--> ... --send, receive--> waits (full, empty) --woken--> ready ... ended
//
// Three drivers decide which process goes next: the walk over the processes of a program (order.h),
// emitted trees, whose processes have threads, and the search for an order that gets stuck
// (explore.h).
//
// In the order of time the ready process with the smallest (time, index) moves, and continues as
// long as it is the smallest. A process that has to wait stands in the line of its channel, after
// earlier arrivals, and repeats its send or receive at its next move. Each token put wakes the first
// receiver in line; each token taken wakes the first sender. A woken process is ready, at the time
// of its arrival. If an earlier process has just taken the token or the room, it stands in line
// again. So the order of the ready is the whole rule. Only at depth 0, where two processes meet, the
// second to arrive acts for both.
//
// No process waits in vain: while one stands in line, as many woken processes are on their way to
// the channel as there are tokens (or room) to be had.

#ifndef PWSP_EXCHANGE_H
#define PWSP_EXCHANGE_H

#include "../base/earliest.h"
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
    uint32_t index;  // in the pipeline
    uint32_t after;  // the next in a line of waiting processes or of ready ones: index + 1, or 0
    pwsp_process_wait wait;
    uint32_t channel;  // of its last send or receive
    uint32_t node;     // its node, for reports: kept by the owner
    uint32_t mark;     // for searches
    bool is_loop;      // its receive loops to the end of the stream
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

PWSP_INLINE bool pwsp_process_waits(const pwsp_process *process) {
    return process->wait == PWSP_PROCESS_WAITS_FULL || process->wait == PWSP_PROCESS_WAITS_EMPTY;
}

// Does a process produce a channel, and has not closed it, or does it consume it?
PWSP_INTERNAL bool pwsp_process_uses(const pwsp_process *process, uint32_t channel,
                                     bool is_produced);

// The driver's choice of the process that moves.
typedef enum pwsp_moves {
    PWSP_MOVES_IN_TIME,  // the first in time
    PWSP_MOVES_FREELY,   // any: the result is the same, see order.c
    PWSP_MOVES_CHOSEN    // each by name, in steps that take no time: see explore.c
} pwsp_moves;

#define PWSP_NO_TIME PWSP_EARLIEST_NONE  // of a process that is not ready

typedef struct pwsp_exchange {
    pwsp_channel *channels;
    pwsp_process *processes;
    uint32_t running_count, ended_count;
    pwsp_moves moves;
    bool has_records;  // steps are recorded, by:
    uint64_t (*record)(void *user, pwsp_process *process, ptowsp_step_kind kind, uint32_t channel,
                       uint64_t end, uint64_t token, const pwsp_channel_mark *cause);
    void *user;
    uint64_t step_count;  // that have been
    // The ready. In time: their times, and the first of them, PWSP_NO_TIME if none is.
    pwsp_earliest ready;
    uint64_t first_time;
    uint32_t first;
    uint32_t stack;             // freely: the last's index + 1, linked by `after`
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

// The error of one of the last three, at the process' channel.
PWSP_INTERNAL ptowsp_status pwsp_exchange_fail(const pwsp_exchange *exchange, pwsp_exchanged what,
                                               const pwsp_process *process, pwsp_error *error);

// Counts the producers and consumers of each channel; returns whether each has at most one of both.
PWSP_INTERNAL bool pwsp_exchange_connect(pwsp_exchange *exchange, uint32_t first_channel,
                                         uint32_t channel_count);

// -- the ready ------------------------------------------------------------------------------------

// All processes are ready; `ready` has room for them, if they move in time.
PWSP_INTERNAL void pwsp_exchange_start(pwsp_exchange *exchange);

// Does the process of an index, at a time, come before another one?
PWSP_FORCE_INLINE bool pwsp_exchange_is_before(uint64_t time, uint32_t index, uint64_t other_time,
                                               uint32_t other) {
    return time < other_time || (time == other_time && index < other);
}

// Does a process come before all that are ready?
PWSP_FORCE_INLINE bool pwsp_exchange_is_first(const pwsp_exchange *exchange,
                                              const pwsp_process *process) {
    return pwsp_exchange_is_before(process->time, process->index, exchange->first_time,
                                   exchange->first);
}

// Makes a process ready.
PWSP_FORCE_INLINE void pwsp_exchange_wake(pwsp_moves moves, pwsp_exchange *exchange,
                                          pwsp_process *process) {
    process->wait = PWSP_PROCESS_READY;
    if (moves == PWSP_MOVES_FREELY) {
        process->after = exchange->stack;
        exchange->stack = process->index + 1;
        return;
    }
    pwsp_earliest_set(&exchange->ready, process->index, process->time);
    if (pwsp_exchange_is_first(exchange, process)) {
        exchange->first_time = process->time;
        exchange->first = process->index;
    }
}

// Takes the process that moves next out of the ready; NULL if none is.
PWSP_FORCE_INLINE pwsp_process *pwsp_exchange_next(pwsp_moves moves, pwsp_exchange *exchange) {
    if (moves == PWSP_MOVES_FREELY) {
        pwsp_process *last = exchange->stack ? &exchange->processes[exchange->stack - 1] : NULL;
        exchange->stack = last ? last->after : 0;
        return last;
    }
    if (exchange->first_time == PWSP_NO_TIME) {
        return NULL;
    }
    pwsp_process *first = &exchange->processes[exchange->first];
    pwsp_earliest_set(&exchange->ready, exchange->first, PWSP_NO_TIME);
    exchange->first_time = pwsp_earliest_time(&exchange->ready);
    exchange->first = pwsp_earliest_lane(&exchange->ready);
    return first;
}

// -- operations of processes ----------------------------------------------------------------------

// Sends a token at a port that the process produces.
PWSP_INTERNAL pwsp_exchanged pwsp_exchange_send(pwsp_exchange *exchange, pwsp_process *process,
                                                uint32_t port, uint64_t token);

// Receives into *token. If it waits, the token may go to process->inbox, which the caller sets, as
// it does is_loop. An event's stream has no end.
PWSP_INTERNAL pwsp_exchanged pwsp_exchange_receive(pwsp_exchange *exchange, pwsp_process *process,
                                                   uint32_t channel, uint64_t *token);

// Chosen moves: a process does the send or receive that it waits at. partner: the process that it
// meets, if it does. WAITS: it cannot.
PWSP_INTERNAL pwsp_exchanged pwsp_exchange_move(pwsp_exchange *exchange, pwsp_process *process,
                                                pwsp_process *partner);

// Does a task, of an index in the program. False with an error.
PWSP_INTERNAL bool pwsp_exchange_task(pwsp_exchange *exchange, pwsp_process *process,
                                      uint64_t index, uint64_t cycles, pwsp_error *error);

// A producer closes a port before it ends; again does nothing.
PWSP_INTERNAL void pwsp_exchange_close(pwsp_exchange *exchange, pwsp_process *process,
                                       uint32_t port);
PWSP_INTERNAL void pwsp_exchange_end(pwsp_exchange *exchange, pwsp_process *process);

// What its processes have come to, together.
typedef struct pwsp_exchange_sums {
    uint64_t makespan, tasks;
    uint64_t busy, waited;  // cycles of tasks, and at channels
} pwsp_exchange_sums;

PWSP_INTERNAL pwsp_exchange_sums pwsp_exchange_sum(const pwsp_exchange *exchange);

// -- deadlocks: deadlock.c ------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_deadlock_fail(pwsp_exchange *exchange, pwsp_error *error);

// "compute[1]"
PWSP_INTERNAL void pwsp_process_print_name(const char *name, uint32_t replica,
                                           uint32_t replica_count, ptowsp_output text);

// The parts of a longer report, after that call.
PWSP_INTERNAL void pwsp_deadlock_print_name(const pwsp_process *process, ptowsp_output text);
PWSP_INTERNAL void pwsp_deadlock_print_wait(const pwsp_exchange *exchange,
                                            const pwsp_process *process, ptowsp_output text);
PWSP_INTERNAL void pwsp_deadlock_print_cycle(const pwsp_exchange *exchange, ptowsp_output text);
PWSP_INTERNAL void pwsp_deadlock_print_hint(const pwsp_exchange *exchange, ptowsp_output text);

#endif
