// The time rules of a channel, of depth d > 0 and latency L, for its k-th token:
//
//      s(k) = max(sender arrives, r(k - d))        r(k) = max(receiver arrives, s(k) + L)
//
// Token k and token k - d share a place of the ring, one after the other, so r(k - d) is where s(k)
// goes. Neither s nor r ever decrease: senders and receivers come in the order in which they
// arrive.
//
// The high-water mark is a matter of simulated time, and not of the order in which processes are
// simulated: just after the send of token k, those tokens i <= k are in the channel whose r(i) >
// s(k). As r does not decrease, they are a run i ... k, and the mark is the longest k - i + 1 with
// r(i) > s(k). Of each such pair either the receive is simulated first, and the send finds it; or
// the send, and the receive finds it:
//
//      put k     looks for the first received i with r(i) > s(k), `oldest`
//      take i    looks for the last sent k with s(k) < r(i), `newest`
//
// Both only move forward. Once the mark is the depth there is nothing more to find.

#include "channel.h"

PWSP_INTERNAL bool pwsp_channel_begin(pwsp_channel *channel, const pwsp_memory *memory,
                                      uint32_t depth, uint64_t latency, bool has_marks) {
    if (depth > channel->ring_capacity) {
        pwsp_memory_free(memory, channel->ring,
                         channel->ring_capacity * sizeof(pwsp_channel_place));
        channel->ring =
            (pwsp_channel_place *)pwsp_memory_alloc(memory, depth * sizeof(pwsp_channel_place));
        channel->ring_capacity = channel->ring ? depth : 0;
        if (!channel->ring) {
            return false;
        }
    }
    if (has_marks && depth > channel->mark_capacity) {
        pwsp_memory_free(memory, channel->marks,
                         channel->mark_capacity * sizeof(pwsp_channel_mark));
        channel->marks =
            (pwsp_channel_mark *)pwsp_memory_alloc(memory, depth * sizeof(pwsp_channel_mark));
        channel->mark_capacity = channel->marks ? depth : 0;
        if (!channel->marks) {
            return false;
        }
    }
    pwsp_channel fresh;
    memset(&fresh, 0, sizeof fresh);
    fresh.ring = channel->ring;
    fresh.ring_capacity = channel->ring_capacity;
    fresh.marks = channel->marks;
    fresh.mark_capacity = channel->mark_capacity;
    fresh.depth = depth;
    fresh.latency = latency;
    *channel = fresh;
    return true;
}

PWSP_INTERNAL void pwsp_channel_free(pwsp_channel *channel, const pwsp_memory *memory) {
    pwsp_memory_free(memory, channel->ring, channel->ring_capacity * sizeof(pwsp_channel_place));
    pwsp_memory_free(memory, channel->marks, channel->mark_capacity * sizeof(pwsp_channel_mark));
    memset(channel, 0, sizeof *channel);
}

PWSP_INTERNAL size_t pwsp_channel_bytes(const pwsp_channel *channel) {
    return channel->ring_capacity * sizeof(pwsp_channel_place) +
           channel->mark_capacity * sizeof(pwsp_channel_mark);
}

static void pwsp_channel_mark_high(pwsp_channel *channel, uint64_t count) {
    if (count > channel->high) {
        channel->high = (uint32_t)count;
    }
}

PWSP_INTERNAL void pwsp_channel_note_put(pwsp_channel *channel, uint64_t time) {
    while (channel->oldest < channel->received && channel->ring[channel->oldest_at].time <= time) {
        channel->oldest++;
        channel->oldest_at = pwsp_channel_next(channel, channel->oldest_at);
    }
    bool is_found = channel->oldest < channel->received;
    pwsp_channel_mark_high(channel, is_found ? channel->sent - channel->oldest + 1 : 1);
}

PWSP_INTERNAL void pwsp_channel_note_take(pwsp_channel *channel, uint64_t time) {
    if (channel->newest < channel->received) {
        channel->newest = channel->received;
        channel->newest_at = channel->head;
    }
    while (channel->newest + 1 < channel->sent &&
           channel->ring[pwsp_channel_next(channel, channel->newest_at)].time < time) {
        channel->newest++;
        channel->newest_at = pwsp_channel_next(channel, channel->newest_at);
    }
    pwsp_channel_mark_high(channel, channel->newest - channel->received + 1);
}
