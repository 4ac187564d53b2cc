// The rules of send, receive and rendezvous: the only definition, for simulated runs, emitted trees
// and searches of orders alike.
//
//      offer     the process' options: wait, use the ring, rendezvous, see the end (channel.h)
//      act       the process does that, if it can: tokens move, and times of those that take part
//      attempt   acts or waits in line; a process that this releases is woken
//
// A step happens at the time of the last of its conditions (channel.c). Waiting is charged to the
// process and the channel. Where the driver chooses the moves, a process comes to its k-th step at
// time k and channels have no delay, so nobody waits.
//
// Everything is inlined: the walk of order.c knows how processes move when it is compiled.

#ifndef PWSP_RULES_H
#define PWSP_RULES_H

#include "exchange.h"

// -- acting ---------------------------------------------------------------------------------------

// A process moves to the time of its step.
PWSP_FORCE_INLINE void pwsp_rules_pass(pwsp_process *process, uint64_t time, uint64_t *of_process,
                                       uint64_t *of_channel) {
    uint64_t waited = time - process->time;
    if (waited) {
        if (PWSP_UNLIKELY(__builtin_add_overflow(*of_channel, waited, of_channel))) {
            *of_channel = UINT64_MAX;  // several processes may wait at it
        }
        *of_process += waited;
        process->time = time;
    }
}

// Records that a token has been put or taken at a time. `before` is the token whose place in the
// ring holds the time that was waited for.
PWSP_INTERNAL void pwsp_rules_record(pwsp_exchange *exchange, pwsp_process *process, bool sends,
                                     const pwsp_channel *at, uint64_t before, uint64_t time,
                                     uint64_t token);

PWSP_FORCE_INLINE pwsp_exchanged pwsp_rules_put(pwsp_exchange *exchange, pwsp_process *process,
                                                pwsp_channel *at, uint64_t token) {
    uint64_t time = pwsp_channel_put(at, token, process->time);
    if (PWSP_UNLIKELY(exchange->has_records)) {
        pwsp_rules_record(exchange, process, true, at, at->sent - 1 - at->depth, time, token);
    }
    pwsp_rules_pass(process, time, &process->full, &at->full);
    return PWSP_EXCHANGED;
}

PWSP_FORCE_INLINE pwsp_exchanged pwsp_rules_take(pwsp_exchange *exchange, pwsp_process *process,
                                                 pwsp_channel *at, uint64_t *token) {
    if (PWSP_UNLIKELY(pwsp_channel_first_due(at) > PTOWSP_CYCLES_MAX)) {
        return PWSP_EXCHANGE_LATE;
    }
    uint64_t time = pwsp_channel_take(at, process->time, token);
    if (PWSP_UNLIKELY(exchange->has_records)) {
        pwsp_rules_record(exchange, process, false, at, at->received - 1, time, *token);
    }
    pwsp_rules_pass(process, time, &process->empty, &at->empty);
    return PWSP_EXCHANGED;
}

// The channel has room for the process' token, or a token for it.
PWSP_FORCE_INLINE pwsp_exchanged pwsp_rules_use(pwsp_exchange *exchange, pwsp_process *process,
                                                bool sends, pwsp_channel *at, uint64_t *token) {
    if (sends && PWSP_UNLIKELY(at->sent >= at->limit)) {
        return PWSP_EXCHANGE_LIMIT;
    }
    return sends ? pwsp_rules_put(exchange, process, at, *token)
                 : pwsp_rules_take(exchange, process, at, token);
}

// Records both sides of a meeting that comes about at a time, the later of the two.
PWSP_INTERNAL void pwsp_rules_record_meeting(pwsp_exchange *exchange, const pwsp_channel *at,
                                             pwsp_process *sender, pwsp_process *receiver,
                                             uint64_t sent, uint64_t token);

// Sender and receiver meet at a channel of depth 0: both continue at the same time.
PWSP_FORCE_INLINE pwsp_exchanged pwsp_rules_meet(pwsp_exchange *exchange, pwsp_channel *at,
                                                 pwsp_process *sender, uint64_t token,
                                                 pwsp_process *receiver, uint64_t *out_token) {
    uint64_t sent = sender->time + at->delay, time = pwsp_max_u64(sent, receiver->time);
    if (PWSP_UNLIKELY(at->sent >= at->limit)) {  // several may have come before it was reached
        return PWSP_EXCHANGE_LIMIT;
    }
    if (PWSP_UNLIKELY(time > PTOWSP_CYCLES_MAX)) {
        return PWSP_EXCHANGE_LATE;
    }
    if (PWSP_UNLIKELY(exchange->has_records)) {
        pwsp_rules_record_meeting(exchange, at, sender, receiver, sent, token);
    }
    at->sent++;
    at->received++;
    *out_token = token;
    pwsp_rules_pass(sender, time, &sender->full, &at->full);
    pwsp_rules_pass(receiver, time, &receiver->empty, &at->empty);
    return PWSP_EXCHANGED;
}

// A receiver sees the end of the stream.
PWSP_INTERNAL pwsp_exchanged pwsp_rules_see_end(pwsp_exchange *exchange, pwsp_process *process,
                                                pwsp_channel *at);

// A process does its send of *token, or its receive into it, if it can. partner: the process that
// waits at the other side, or NULL.
PWSP_FORCE_INLINE pwsp_exchanged pwsp_rules_act(pwsp_exchange *exchange, pwsp_process *process,
                                                bool sends, pwsp_channel *at, pwsp_process *partner,
                                                uint64_t *token) {
    if (sends && PWSP_UNLIKELY(at->sent >= at->limit)) {
        return PWSP_EXCHANGE_LIMIT;
    }
    switch (pwsp_channel_offer(at, sends, partner != NULL)) {
    case PWSP_OFFER_PLACE: return pwsp_rules_use(exchange, process, sends, at, token);
    case PWSP_OFFER_MEET:
        return sends ? pwsp_rules_meet(exchange, at, process, *token, partner, partner->inbox)
                     : pwsp_rules_meet(exchange, at, partner, partner->token, process, token);
    case PWSP_OFFER_END: return pwsp_rules_see_end(exchange, process, at);
    case PWSP_OFFER_NONE: break;
    }
    return PWSP_EXCHANGE_WAITS;
}

// -- lines ----------------------------------------------------------------------------------------

// Puts a process into a line that is not empty.
PWSP_INTERNAL void pwsp_rules_queue_after(pwsp_exchange *exchange, pwsp_channel_line *line,
                                          pwsp_process *process);

// Puts a process in line: after all that arrived before it, or at the same time with a smaller
// index.
PWSP_FORCE_INLINE void pwsp_rules_queue(pwsp_exchange *exchange, pwsp_channel_line *line,
                                        pwsp_process *process) {
    if (line->first) {
        pwsp_rules_queue_after(exchange, line, process);
    } else {
        process->after = 0;
        line->first = line->last = process->index + 1;
    }
}

// A process waits, in line unless its move will be chosen.
PWSP_FORCE_INLINE void pwsp_rules_wait(pwsp_moves moves, pwsp_exchange *exchange,
                                       pwsp_process *process, bool sends, pwsp_channel_line *line,
                                       const uint64_t *token) {
    process->wait = sends ? PWSP_PROCESS_WAITS_FULL : PWSP_PROCESS_WAITS_EMPTY;
    process->has_met = false;
    if (sends) {
        process->token = *token;
    }
    if (moves != PWSP_MOVES_CHOSEN) {
        pwsp_rules_queue(exchange, line, process);
    }
}

// Wakes the first in line.
PWSP_FORCE_INLINE void pwsp_rules_wake(pwsp_moves moves, pwsp_exchange *exchange,
                                       pwsp_channel_line *line, pwsp_process *first) {
    PTOWSP_ASSERT(line->first == first->index + 1);
    line->first = first->after;
    pwsp_exchange_wake(moves, exchange, first);
}

// -- attempting -----------------------------------------------------------------------------------

// Would a process that is woken now move next, and wake nobody? `others` are those that it would
// wake. Then its wait is over at once. (It moves first but for ties, as it has waited longest.)
PWSP_FORCE_INLINE bool pwsp_rules_is_next(pwsp_moves moves, const pwsp_exchange *exchange,
                                          const pwsp_process *woken, const pwsp_process *mover,
                                          const pwsp_channel_line *others) {
    return moves == PWSP_MOVES_FREELY ||
           PWSP_LIKELY(
               pwsp_exchange_is_before(woken->time, woken->index, mover->time, mover->index) &&
               pwsp_exchange_is_first(exchange, woken) && others->first == 0);
}

// A process sends *token, or receives into it. If it has to wait, it stands in line. Chosen moves:
// it always waits, for the move.
//
//      consumer    receive k ..... receive k + 1         one move, in which producer's send is done:
//      producer    send k + d (waits) .. send k + d + 1  it is ready again after that send
PWSP_FORCE_INLINE pwsp_exchanged pwsp_rules_attempt(pwsp_moves moves, pwsp_exchange *exchange,
                                                    pwsp_process *process, bool sends,
                                                    pwsp_channel *at, uint64_t *token) {
    pwsp_channel_line *own = sends ? &at->senders : &at->receivers;
    pwsp_channel_line *line = sends ? &at->receivers : &at->senders;
    pwsp_process *other = line->first ? &exchange->processes[line->first - 1] : NULL;
    pwsp_exchanged done = moves == PWSP_MOVES_CHOSEN
                              ? PWSP_EXCHANGE_WAITS
                              : pwsp_rules_act(exchange, process, sends, at, other, token);
    if (PWSP_LIKELY(done == PWSP_EXCHANGED)) {
        if (other) {
            other->has_met =
                at->depth == 0 ||
                (pwsp_rules_is_next(moves, exchange, other, process, own) &&
                 pwsp_rules_use(exchange, other, !sends, at,
                                sends ? other->inbox : &other->token) == PWSP_EXCHANGED);
            pwsp_rules_wake(moves, exchange, line, other);
        }
        return done;
    }
    process->channel = (uint32_t)(at - exchange->channels);
    if (done == PWSP_EXCHANGE_WAITS) {
        pwsp_rules_wait(moves, exchange, process, sends, own, token);
    }
    return done;
}

#endif
