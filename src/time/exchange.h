// Processes that exchange tokens through channels: the rules of section 16 of ptowsp.h, for those who
// walk the processes of a program (pipeline.h) and for emitted trees, whose processes have threads.
//
//      ready --move--> ... --send, receive--> waits (full, empty) --woken--> ready ... ended
//
// The ready process with the smallest (time, index) moves, and goes on as long as it is the
// smallest: a heap holds the others. One that has to wait stands in the line of its channel, behind
// those that have arrived before, and does its send or receive again when it moves next. Each token
// that is put wakes the first receiver in line, each that is taken the first sender. Woken means
// ready, with the time at which it arrived: if another one that comes first has just taken the token
// or the room, it stands in line again. So the rule of the order is nothing but the order of the
// heap. Only at depth 0, where two meet, the second to come does what both have to.
//
// No process waits in vain: as long as one stands in line, as many processes are on their way to the
// channel, woken, as there are tokens (or room) to be had.

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

// What a process' time comes from.
typedef enum pwsp_process_mover {
    PWSP_MOVER_START,
    PWSP_MOVER_TASK,
    PWSP_MOVER_CHANNEL
} pwsp_process_mover;

// A process, or one replica of it, while its pipeline runs.
typedef struct pwsp_process {
    uint64_t time;
    uint64_t *inbox;  // where it wants the token that it waits for
    // Of a process that is walked: see pipeline.h. Others use the room as they like.
    uint64_t *kept;
    struct pwsp_frame *frames;
    uint32_t next_op, frame_count;
    uint32_t index;  // among those of the pipeline
    uint32_t after;  // the next in a line of waiting processes or of ready ones: index + 1, or 0
    pwsp_process_wait wait;
    uint32_t channel;  // that it waits at
    uint32_t node;     // where
    uint32_t mark;     // for searches
    bool is_loop;      // its receive goes on to the end of the stream
    bool has_met;      // what it waited for has been done by another process
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

typedef struct pwsp_exchange {
    pwsp_channel *channels;
    pwsp_process *processes;
    uint32_t running_count, ended_count;
    bool is_ordered;   // processes move in the order of time
    bool has_records;  // steps are recorded, by:
    uint32_t ready;    // without order: a stack of processes, the first's index + 1
    uint32_t heap_count;
    pwsp_ready *heap;
    uint64_t step_count;  // that have been
    uint64_t (*record)(void *user, pwsp_process *process, ptowsp_step_kind kind, uint32_t channel,
                       uint64_t end, uint64_t token, const pwsp_channel_mark *cause);
    void *user;
    const pwsp_process *circle;  // of those that wait for each other, or NULL: see deadlock.c
} pwsp_exchange;

// What has become of a send or receive.
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

// May a channel be so? by_symbol: its latency is what PTOWSP_CHANNEL_LATENCY_SYMBOL says.
PWSP_INTERNAL ptowsp_status pwsp_exchange_check_channel(pwsp_error *error, const char *name,
                                                        uint64_t depth, uint64_t latency,
                                                        bool by_symbol);

// Counts the producers and consumers of each channel; says whether each has at most one of both.
PWSP_INTERNAL bool pwsp_exchange_connect(pwsp_exchange *exchange, uint32_t first_channel,
                                         uint32_t channel_count);

// -- the ready ------------------------------------------------------------------------------------

// Puts a process that is ready into the heap.
PWSP_INTERNAL void pwsp_exchange_push(pwsp_exchange *exchange, const pwsp_ready *ready);

// Takes the first out of the heap, which is not empty; and puts another one in, if it is not NULL.
PWSP_INTERNAL uint32_t pwsp_exchange_pop(pwsp_exchange *exchange, const pwsp_ready *ready);

// Does a process that is ready come before all others that are?
PWSP_INLINE bool pwsp_exchange_is_first(const pwsp_exchange *exchange,
                                        const pwsp_process *process) {
    const pwsp_ready *first = &exchange->heap[0];
    return exchange->heap_count == 0 || process->time < first->time ||
           (process->time == first->time && process->index < first->process);
}

PWSP_INLINE void pwsp_exchange_wake(pwsp_exchange *exchange, pwsp_process *process) {
    uint32_t index = process->index;
    process->wait = PWSP_PROCESS_READY;
    if (exchange->is_ordered) {
        pwsp_ready ready = {process->time, index};
        pwsp_exchange_push(exchange, &ready);
    } else {
        process->after = exchange->ready;
        exchange->ready = index + 1;
    }
}

// -- what processes do ----------------------------------------------------------------------------

// Sends a token at a port that the process produces. `node` is where, should it wait.
PWSP_INTERNAL pwsp_exchanged pwsp_exchange_send(pwsp_exchange *exchange, pwsp_process *process,
                                                uint32_t port, uint64_t token, uint32_t node);

// Receives into *token. If it waits, the token that comes at depth 0 goes into process->inbox, which
// the caller sets. There is no end of the stream of an event.
PWSP_INTERNAL pwsp_exchanged pwsp_exchange_receive(pwsp_exchange *exchange, pwsp_process *process,
                                                   uint32_t channel, uint64_t *token,
                                                   uint32_t node);

// A producer closes a port before it ends; again does nothing.
PWSP_INTERNAL void pwsp_exchange_close(pwsp_exchange *exchange, pwsp_process *process,
                                       uint32_t port);
PWSP_INTERNAL void pwsp_exchange_end(pwsp_exchange *exchange, pwsp_process *process);

// -- why nobody can go on: deadlock.c -------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_deadlock_fail(pwsp_exchange *exchange, pwsp_error *error);

// The parts of a longer report, once that has been called.
PWSP_INTERNAL bool pwsp_process_waits(const pwsp_process *process);
PWSP_INTERNAL void pwsp_deadlock_print_name(const pwsp_process *process, ptowsp_text text);
PWSP_INTERNAL void pwsp_deadlock_print_wait(const pwsp_exchange *exchange,
                                            const pwsp_process *process, ptowsp_text text);
PWSP_INTERNAL void pwsp_deadlock_print_circle(const pwsp_exchange *exchange, ptowsp_text text);
PWSP_INTERNAL void pwsp_deadlock_print_hint(const pwsp_exchange *exchange, ptowsp_text text);

#endif
