// Channels: rings of tokens with the times at which they are sent and received.

#ifndef PWSP_CHANNEL_H
#define PWSP_CHANNEL_H

#include "../base/error.h"

// Stored beside a time in a ring when steps are recorded: the step of that time, and its task.
typedef struct pwsp_channel_mark {
    uint64_t step, task;
} pwsp_channel_mark;

// Waiting processes, by time and then index.
typedef struct pwsp_channel_line {
    uint32_t first, last;  // indices + 1, or 0
} pwsp_channel_line;

// Token k has place k & mask of the ring. The place holds the time of its send while the token is
// pending. It then holds the time of its receive, until another token takes the place. The value is
// mask + 1 places later. (The two are apart because compilers would store both at once, and a load
// of the time would wait for that.)
typedef struct pwsp_channel {
    uint64_t *ring;
    uint64_t mask;  // places of the ring - 1; at least depth places, a power of two
    uint64_t sent;  // tokens
    uint64_t depth;
    uint64_t delay;  // the latency, or 0 where a step has no time
    uint64_t received;
    uint64_t high;         // the largest number of tokens at once, including one being received
    uint64_t full, empty;  // cycles that senders and receivers have waited
    uint64_t limit;        // of tokens sent
    uint64_t close_time, latency;
    pwsp_channel_line senders, receivers;
    uint32_t producers, consumers;            // producers that have not ended
    uint32_t first_producer, first_consumer;  // of the deadlocked: index + 1, see deadlock.c
    uint64_t oldest, newest;                  // tokens, see channel.c
    pwsp_channel_mark *marks;                 // by place
    pwsp_channel_mark close_mark;
    uint64_t ring_capacity, mark_capacity;
    const char *name;
    bool is_event;  // its stream has no end; set by the owner, as is a limit
} pwsp_channel;

// Empties the channel, which is zeroed or has been open, and makes room for depth tokens, if it may be
// so. by_symbol: PTOWSP_CHANNEL_LATENCY_SYMBOL gives its latency. The caller keeps the name.
PWSP_INTERNAL ptowsp_status pwsp_channel_open(pwsp_channel *channel, const pwsp_memory *memory,
                                              const char *name, uint64_t depth, uint64_t latency,
                                              bool by_symbol, bool has_marks, pwsp_error *error);
PWSP_INTERNAL void pwsp_channel_free(pwsp_channel *channel, const pwsp_memory *memory);

// Empties it again, and puts tokens that were sent at time 0; their values follow.
PWSP_INTERNAL void pwsp_channel_fill(pwsp_channel *channel, uint64_t count);

// Update the high-water mark before a token is put at a time, or taken.
PWSP_INTERNAL void pwsp_channel_note_put(pwsp_channel *channel, uint64_t time);
PWSP_INTERNAL void pwsp_channel_note_take(pwsp_channel *channel, uint64_t time);

// Tokens in it, in the state simulated so far.
PWSP_INLINE uint64_t pwsp_channel_pending(const pwsp_channel *channel) {
    return channel->sent - channel->received;
}

// The largest number of tokens in it at once, once the run is over.
PWSP_INLINE uint64_t pwsp_channel_high(const pwsp_channel *channel) {
    return pwsp_max_u64(channel->high, pwsp_channel_pending(channel));
}

// Where the value of a token is.
PWSP_INLINE uint64_t *pwsp_channel_token(const pwsp_channel *channel, uint64_t k) {
    return &channel->ring[(k & channel->mask) + channel->mask + 1];
}

// A channel's answer to a process that stands at a send or a receive.
typedef enum pwsp_offer {
    PWSP_OFFER_NONE,   // it waits
    PWSP_OFFER_PLACE,  // in the ring: free for the sender, with a token for the receiver
    PWSP_OFFER_MEET,   // with its partner, at depth 0
    PWSP_OFFER_END     // of the stream
} pwsp_offer;

// When a process waits, and when it does not. has_partner: a process waits at the other side.
PWSP_FORCE_INLINE pwsp_offer pwsp_channel_offer(const pwsp_channel *channel, bool sends,
                                                bool has_partner) {
    uint64_t pending = pwsp_channel_pending(channel);
    if (sends ? pending < channel->depth : pending > 0) {
        return PWSP_OFFER_PLACE;
    }
    if (channel->depth == 0 && has_partner) {
        return PWSP_OFFER_MEET;
    }
    return !sends && channel->producers == 0 && !channel->is_event  // an event has no end
               ? PWSP_OFFER_END
               : PWSP_OFFER_NONE;
}

// Puts a token of a sender that arrives at a time into a channel that has room; returns the time of
// the send.
PWSP_FORCE_INLINE uint64_t pwsp_channel_put(pwsp_channel *channel, uint64_t token, uint64_t time) {
    uint64_t k = channel->sent, mask = channel->mask;
    uint64_t *ring = channel->ring;
    if (PWSP_LIKELY(k >= channel->depth)) {  // after the receive of token k - depth
        time = pwsp_max_u64(time, ring[(k - channel->depth) & mask]);
    }
    if (channel->high < channel->depth) {
        pwsp_channel_note_put(channel, time);
    }
    *pwsp_channel_token(channel, k) = token;
    ring[k & mask] = time;
    channel->sent = k + 1;
    return time;
}

// The earliest time to receive the first token of a channel that has one.
PWSP_INLINE uint64_t pwsp_channel_first_due(const pwsp_channel *channel) {
    return channel->ring[channel->received & channel->mask] + channel->delay;
}

// Takes the first token of a channel that has one, for a receiver that arrives at a time; returns
// the time of the receive, which may be beyond PTOWSP_CYCLES_MAX.
PWSP_FORCE_INLINE uint64_t pwsp_channel_take(pwsp_channel *channel, uint64_t time,
                                             uint64_t *out_token) {
    uint64_t k = channel->received;
    time = pwsp_max_u64(time, pwsp_channel_first_due(channel));
    if (channel->high < channel->depth) {
        pwsp_channel_note_take(channel, time);
    }
    *out_token = *pwsp_channel_token(channel, k);
    channel->ring[k & channel->mask] = time;
    channel->received = k + 1;
    return time;
}

#endif
