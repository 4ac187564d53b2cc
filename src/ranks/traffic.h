// Messages of collectives on links: see traffic.c. Ranks join a collective when they are ready;
// messages under way share the links.

#ifndef PWSP_TRAFFIC_H
#define PWSP_TRAFFIC_H

#include "ranks.h"

#define PWSP_TRAFFIC_LEVELS PTOWSP_MESH_AXIS_MAX

typedef struct pwsp_traffic_send {
    uint32_t to, round;  // the member that receives it
    uint64_t bytes;
    uint32_t level;  // of its link
} pwsp_traffic_send;

typedef struct pwsp_traffic_cell {
    uint32_t expected;  // messages that have not been sent yet
    uint64_t latest, added_bytes;
} pwsp_traffic_cell;

typedef struct pwsp_traffic_member {
    uint64_t now;  // when its sends of this round have ended so far; at last its end
    uint64_t send_begin, send_end;  // the remaining sends
    uint32_t round;
    bool has_joined, has_sent;  // has_sent: all of this round
} pwsp_traffic_member;

// A collective under way.
typedef struct pwsp_flow {
    ptowsp_collective collective;  // without counts, which are needed only when it is made
    uint32_t member_count;         // members, or those that stand for all (pwsp_traffic_symmetry)
    uint32_t round_count, joined, ended;
    pwsp_traffic_send *sends;
    uint64_t send_count;
    pwsp_traffic_cell *cells;  // [member_count * round_count]
    pwsp_traffic_member *members;
    struct pwsp_flow *next;  // for the owner's lists, as are these
    uint64_t hash, last_start, last_task;
    uint32_t last_rank, taken;
} pwsp_flow;

typedef struct pwsp_traffic_level {
    const ptowsp_link *link;
    uint64_t span;        // ranks whose numbers differ by the quotient are on another side of it
    uint64_t node_ranks;  // NODE: ranks that share it; 0: all
    uint64_t node_first, width;
    uint64_t *out, *in;  // when they are free: by slot, by pair of slots (in is out), or by node
    size_t out_count;
} pwsp_traffic_level;

// Slots are the ranks first, first + stride, ... A slot is in one collective at a time.
typedef struct pwsp_traffic {
    pwsp_memory memory;
    const ptowsp_links *links;
    uint64_t unit;  // of time, in parts of a picosecond
    uint32_t first, stride, slot_count;
    pwsp_traffic_level levels[PWSP_TRAFFIC_LEVELS];
    uint32_t level_count;
    uint64_t *caps;     // by slot, out and in: when the rank has passed all its bytes; NULL: no cap
    pwsp_flow **flows;  // by slot
    uint64_t *keys;     // by slot: when it goes next, in the heap
    uint32_t *heap;
    uint32_t heap_count;
    uint32_t done[2];  // slots whose collective has ended with the last event
    uint32_t done_count;
    ptowsp_collective_cost cost;  // of all messages
    bool is_late;                 // a time does not fit
} pwsp_traffic;

// False when memory is out; pwsp_traffic_free must still be called. The links stay.
PWSP_INTERNAL bool pwsp_traffic_init(pwsp_traffic *t, const pwsp_memory *memory,
                                     const ptowsp_links *links, uint64_t unit, uint32_t first,
                                     uint32_t stride, uint32_t slot_count);
PWSP_INTERNAL void pwsp_traffic_free(pwsp_traffic *t);

// Members that represent all, if all begin at once and member i acts as member i + n: this n, or
// `members` without such a symmetry. The slots are the members then.
PWSP_INTERNAL uint32_t pwsp_traffic_symmetry(const ptowsp_links *links, const ptowsp_collective *c);

// A collective with so many members, that has been checked and has an algorithm. NULL: memory is out.
PWSP_INTERNAL pwsp_flow *pwsp_flow_make(const pwsp_traffic *t, const ptowsp_collective *c,
                                        uint32_t member_count);
PWSP_INTERNAL void pwsp_flow_free(const pwsp_traffic *t, pwsp_flow *flow);

// A member begins, at no earlier time than the last event's.
PWSP_INTERNAL void pwsp_traffic_join(pwsp_traffic *t, pwsp_flow *flow, uint32_t member,
                                     uint64_t start);

// Handles the next event; t->done names the ranks whose collective it ended. False: no event is left.
PWSP_INTERNAL bool pwsp_traffic_step(pwsp_traffic *t);

#endif
