// The time rules of a channel, of depth d > 0 and latency L, for its k-th token:
//
//      s(k) = max(sender arrives, r(k - d))        r(k) = max(receiver arrives, s(k) + L)
//
// The ring keeps at least the last d tokens, so r(k - d) is still there when token k is sent.
// Neither s nor r ever decreases: senders and receivers act in the order in which they arrive.
//
// The high-water mark depends on simulated time alone, not on the order in which processes are
// simulated. Just after the send of token k, the channel holds the tokens i <= k with r(i) > s(k).
// As r does not decrease, they are a run i ... k, and the mark is the longest k - i + 1 with r(i) >
// s(k). In each such pair one side is simulated second, and that side finds it:
//
//      put k     looks for the first received i with r(i) > s(k), `oldest`
//      take i    looks for the last sent k with s(k) < r(i), `newest`
//
// Both only move forward. Once the mark equals the depth, the search stops. Tokens that are never
// received stay in the channel after the last send: they are counted at the end.

#include "channel.h"

#include <inttypes.h>

PWSP_INTERNAL ptowsp_status pwsp_channel_open(pwsp_channel *channel, const pwsp_memory *memory,
                                              const char *name, uint64_t depth, uint64_t latency,
                                              bool by_symbol, bool has_marks, pwsp_error *error) {
    PWSP_ZERO(pwsp_channel, fresh);
    if (depth > PTOWSP_CHANNEL_DEPTH_MAX) {
        return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                              "channel %s: a depth of %" PRIu64 ", more than %d", name, depth,
                              PTOWSP_CHANNEL_DEPTH_MAX);
    }
    if (latency > PTOWSP_CYCLES_MAX) {
        return PWSP_ERROR_REFUSE(error, "channel %s: a latency of %" PRId64 " cycles%s", name,
                                 (int64_t)latency,
                                 by_symbol ? ", by symbol " PTOWSP_CHANNEL_LATENCY_SYMBOL : "");
    }
    uint64_t places = 1;
    while (places < depth) {
        places *= 2;
    }
    bool is_good =
        PWSP_ROOM(memory, channel->ring, channel->ring_capacity, 2 * places) &&
        (!has_marks || PWSP_ROOM(memory, channel->marks, channel->mark_capacity, places));
    fresh.ring = channel->ring;
    fresh.ring_capacity = channel->ring_capacity;
    fresh.marks = channel->marks;
    fresh.mark_capacity = channel->mark_capacity;
    fresh.mask = places - 1;
    fresh.depth = depth;
    fresh.delay = fresh.latency = latency;
    fresh.limit = UINT64_MAX;
    fresh.name = name;
    *channel = fresh;
    return is_good ? PTOWSP_OK
                   : pwsp_error_set(error, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                                    "channel %s: out of memory", name);
}

PWSP_INTERNAL void pwsp_channel_fill(pwsp_channel *channel, uint64_t count) {
    PTOWSP_ASSERT(count <= channel->depth);
    channel->received = channel->oldest = channel->newest = channel->high = 0;
    channel->sent = count;
    for (uint64_t i = 0; i < count; i++) {
        channel->ring[i] = 0;
    }
}

PWSP_INTERNAL void pwsp_channel_free(pwsp_channel *channel, const pwsp_memory *memory) {
    PWSP_FREE(memory, channel->ring, channel->ring_capacity);
    PWSP_FREE(memory, channel->marks, channel->mark_capacity);
    memset(channel, 0, sizeof *channel);
}

static uint64_t pwsp_channel_time(const pwsp_channel *channel, uint64_t token) {
    return channel->ring[token & channel->mask];
}

PWSP_INTERNAL void pwsp_channel_note_put(pwsp_channel *channel, uint64_t time) {
    uint64_t oldest = channel->oldest, count = 1;
    while (oldest < channel->received && pwsp_channel_time(channel, oldest) <= time) {
        oldest++;
    }
    if (oldest < channel->received) {
        count = channel->sent - oldest + 1;
    }
    PTOWSP_ASSERT(count <= channel->depth);
    channel->oldest = oldest;
    channel->high = pwsp_max_u64(channel->high, count);
}

PWSP_INTERNAL void pwsp_channel_note_take(pwsp_channel *channel, uint64_t time) {
    uint64_t newest = pwsp_max_u64(channel->newest, channel->received);
    while (newest + 1 < channel->sent && pwsp_channel_time(channel, newest + 1) < time) {
        newest++;
    }
    PTOWSP_ASSERT(channel->received <= newest);
    channel->newest = newest;
    channel->high = pwsp_max_u64(channel->high, newest - channel->received + 1);
}
