// Channels: rings of tokens with the times at which they are sent and received.

#ifndef PWSP_CHANNEL_H
#define PWSP_CHANNEL_H

#include "../base/base.h"

// A place of a ring: a token that nobody has received yet, with the time of its send; then, until
// another token takes the place, the time of its receive.
typedef struct pwsp_channel_place {
    uint64_t token, time;
} pwsp_channel_place;

// Beside a place, when steps are recorded: the step that this time is of, and the task that it
// comes from.
typedef struct pwsp_channel_mark {
    uint64_t step, task;
} pwsp_channel_mark;

// Processes that wait, by time and then index.
typedef struct pwsp_channel_line {
    uint32_t first, last;  // indices + 1, or 0
} pwsp_channel_line;

typedef struct pwsp_channel {
    pwsp_channel_place *ring;
    uint32_t depth, pending;
    uint32_t tail, head;  // places of the next send and of the next receive
    uint64_t latency;
    uint64_t sent, received;
    uint64_t oldest, newest;        // tokens, see channel.c
    uint32_t oldest_at, newest_at;  // their places
    uint32_t high;                  // tokens in it at once, so far
    uint32_t producers, consumers;  // that have not ended
    uint64_t close_time;
    pwsp_channel_line senders, receivers;
    pwsp_channel_mark *marks;
    pwsp_channel_mark close_mark;
    uint32_t ring_capacity, mark_capacity;
    uint64_t full, empty;  // cycles that senders and receivers have waited
} pwsp_channel;

// Makes it empty, with as many tokens as depth. False when memory is out.
PWSP_INTERNAL bool pwsp_channel_begin(pwsp_channel *channel, const pwsp_memory *memory,
                                      uint32_t depth, uint64_t latency, bool has_marks);
PWSP_INTERNAL void pwsp_channel_free(pwsp_channel *channel, const pwsp_memory *memory);
PWSP_INTERNAL size_t pwsp_channel_bytes(const pwsp_channel *channel);

// Account for the high-water mark before a token is put at a time, or taken.
PWSP_INTERNAL void pwsp_channel_note_put(pwsp_channel *channel, uint64_t time);
PWSP_INTERNAL void pwsp_channel_note_take(pwsp_channel *channel, uint64_t time);

PWSP_INLINE uint32_t pwsp_channel_next(const pwsp_channel *channel, uint32_t place) {
    return place + 1 == channel->depth ? 0 : place + 1;
}

// Puts a token into a channel that has room, of a sender that arrives at a time; returns the time
// of the send.
PWSP_INLINE uint64_t pwsp_channel_put(pwsp_channel *channel, uint64_t token, uint64_t time) {
    pwsp_channel_place *place = &channel->ring[channel->tail];
    if (channel->sent >= channel->depth) {
        time = pwsp_max_u64(time, place->time);  // of the receive of the token before in this place
    }
    if (channel->high < channel->depth) {
        pwsp_channel_note_put(channel, time);
    }
    place->token = token;
    place->time = time;
    channel->tail = pwsp_channel_next(channel, channel->tail);
    channel->sent++;
    channel->pending++;
    return time;
}

// Takes the first token of a channel that has one, for a receiver that arrives at a time; returns
// the time of the receive, which may be beyond PTOWSP_CYCLES_MAX.
PWSP_INLINE uint64_t pwsp_channel_take(pwsp_channel *channel, uint64_t time, uint64_t *out_token) {
    pwsp_channel_place *place = &channel->ring[channel->head];
    time = pwsp_max_u64(time, place->time + channel->latency);
    if (channel->high < channel->depth) {
        pwsp_channel_note_take(channel, time);
    }
    *out_token = place->token;
    place->time = time;
    channel->head = pwsp_channel_next(channel, channel->head);
    channel->received++;
    channel->pending--;
    return time;
}

#endif
