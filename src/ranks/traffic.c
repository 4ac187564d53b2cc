// Messages of collectives on links, event by event.
//
//      heap of ranks by time --> a rank sends its next message: it takes both ends of its link
//                            --> cells of (member, round): expected messages, the latest arrival
//      start(round + 1) = max(start(round), end of sends, latest arrival) + time of additions
//
// Each rank is in one round of one collective. Among ranks with a message to send, the one whose
// outgoing link is free earliest goes first; ties by rank. Times only grow, as latencies are not
// negative, so each link serves messages in the order of these times, of whichever collective they
// are: first come, first served, as in LogGOPSim (Hoefler, Schneider, Lumsdaine 2010). A link is
// never idle while a message waits for it alone, so messages on a shared link move as fast as with
// fair shares, and all times are integers.
//
// Links have levels: inside nodes and between nodes, or one for each axis of a mesh. A message
// takes the level of the first axis, from the outermost on, along which its two ranks differ.
// A cap of a rank is a server of its own beside its links: it passes the bytes of all its messages, in the
// order in which they start, and a message ends when its link and the caps of both ranks have passed
// it. So messages that begin together on different links end as with fair shares of the cap.
//
// Time is in parts of a picosecond, so that cycles of any clock are whole numbers of them.

#include "traffic.h"

#include "../base/heap.h"

// -- levels ---------------------------------------------------------------------------------------

static uint32_t pwsp_traffic_rank(const pwsp_traffic *t, uint32_t slot) {
    return t->first + slot * t->stride;
}

// The levels of links: the outermost first.
static void pwsp_traffic_set_levels(pwsp_traffic *t) {
    const ptowsp_links *links = t->links;
    uint64_t span = 1;
    t->level_count = links->axis_count ? links->axis_count : links->node_size ? 2 : 1;
    for (uint32_t i = t->level_count; i > 0; i--) {
        pwsp_traffic_level *level = &t->levels[i - 1];
        const bool is_last = i == t->level_count;
        level->link = links->axis_count ? &links->axes[i - 1]
                      : is_last         ? &links->inside
                                        : &links->between;
        level->span = span;
        span *= links->axis_count ? links->axis_sizes[i - 1] : links->node_size;
        level->node_ranks = !is_last ? level->span : links->axis_count == 1 ? 0 : span;
    }
}

static uint64_t pwsp_traffic_node(const pwsp_traffic_level *level, uint64_t rank) {
    return level->node_ranks ? rank / level->node_ranks : 0;
}

static bool pwsp_traffic_make_level(pwsp_traffic *t, pwsp_traffic_level *level) {
    const uint64_t n = t->slot_count;
    uint64_t outs = n, ins = n;
    level->width = n;
    if (level->link->sharing == PTOWSP_LINK_PAIR) {
        const bool is_last = level == &t->levels[t->level_count - 1];
        level->width = is_last && level->node_ranks ? pwsp_min_u64(n, level->node_ranks) : n;
        outs = n * level->width;
        ins = 0;
    } else if (level->link->sharing == PTOWSP_LINK_NODE) {
        level->node_first = pwsp_traffic_node(level, t->first);
        outs = ins = pwsp_traffic_node(level, pwsp_traffic_rank(t, t->slot_count - 1)) + 1 -
                     level->node_first;
    }
    level->out_count = (size_t)(outs + ins);
    PWSP_ALLOC(&t->memory, level->out, level->out_count);
    level->in = level->out ? level->out + outs : NULL;
    return level->out != NULL;
}

static uint32_t pwsp_traffic_level_of(const pwsp_traffic *t, uint32_t from, uint32_t to) {
    uint32_t i = 0;
    while (i + 1 < t->level_count && from / t->levels[i].span == to / t->levels[i].span) {
        i++;
    }
    return i;
}

// When the two ends of a message's link are free, which may be one.
static const ptowsp_link *pwsp_traffic_link(pwsp_traffic *t, uint32_t level_index, uint32_t from,
                                            uint32_t to, uint64_t **out, uint64_t **in) {
    pwsp_traffic_level *level = &t->levels[level_index];
    switch (level->link->sharing) {
    case PTOWSP_LINK_PAIR: *out = *in = &level->out[from * level->width + to % level->width]; break;
    case PTOWSP_LINK_NODE:
        *out =
            &level->out[pwsp_traffic_node(level, pwsp_traffic_rank(t, from)) - level->node_first];
        *in = &level->in[pwsp_traffic_node(level, pwsp_traffic_rank(t, to)) - level->node_first];
        break;
    default:
        *out = &level->out[from];
        *in = &level->in[to];
        break;
    }
    return level->link;
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_traffic_init(pwsp_traffic *t, const pwsp_memory *memory,
                                     const ptowsp_links *links, uint64_t unit, uint32_t first,
                                     uint32_t stride, uint32_t slot_count) {
    PTOWSP_ASSERT(slot_count > 0 && unit > 0);
    memset(t, 0, sizeof *t);
    t->memory = *memory;
    t->links = links;
    t->unit = unit;
    t->first = first;
    t->stride = stride;
    t->slot_count = slot_count;
    pwsp_traffic_set_levels(t);
    bool is_good =
        PWSP_ALLOC(memory, t->flows, slot_count) && PWSP_ALLOC(memory, t->keys, slot_count) &&
        PWSP_ALLOC(memory, t->heap, slot_count) &&
        (!links->rank_bytes_per_us || PWSP_ALLOC(memory, t->caps, 2 * (size_t)slot_count));
    for (uint32_t i = 0; i < t->level_count && is_good; i++) {
        is_good = pwsp_traffic_make_level(t, &t->levels[i]);
    }
    return is_good;
}

PWSP_INTERNAL void pwsp_traffic_free(pwsp_traffic *t) {
    for (uint32_t i = 0; i < t->level_count; i++) {
        PWSP_FREE(&t->memory, t->levels[i].out, t->levels[i].out_count);
    }
    PWSP_FREE(&t->memory, t->flows, t->slot_count);
    PWSP_FREE(&t->memory, t->keys, t->slot_count);
    PWSP_FREE(&t->memory, t->heap, t->slot_count);
    PWSP_FREE(&t->memory, t->caps, 2 * (size_t)t->slot_count);
}

// -- what there is to do --------------------------------------------------------------------------

typedef struct pwsp_flow_maker {
    const pwsp_traffic *t;
    const ptowsp_collective *collective;
    pwsp_flow *flow;
    uint32_t me;
    uint64_t element;
} pwsp_flow_maker;

static void pwsp_flow_visit(void *user, const ptowsp_collective_step *step) {
    pwsp_flow_maker *maker = (pwsp_flow_maker *)user;
    pwsp_flow *flow = maker->flow;
    const ptowsp_collective *c = maker->collective;
    pwsp_traffic_cell *cell = &flow->cells[(size_t)maker->me * flow->round_count + step->round];
    const uint64_t bytes = step->count * maker->element;
    if (step->kind == PTOWSP_MOVE_SEND) {
        pwsp_traffic_send *send = &flow->sends[flow->send_count++];
        const uint32_t from = pwsp_collective_rank(c, maker->me);
        send->to = pwsp_collective_member(c, step->peer) % flow->member_count;
        send->round = step->round;
        send->bytes = bytes;
        send->level = pwsp_traffic_level_of(maker->t, from, step->peer);
    } else if (step->kind == PTOWSP_MOVE_RECEIVE) {
        cell->expected++;
    } else if (step->kind != PTOWSP_MOVE_COPY) {
        cell->added_bytes += bytes;
    }
}

static void pwsp_flow_count(void *user, const ptowsp_collective_step *step) {
    *(uint64_t *)user += step->kind == PTOWSP_MOVE_SEND;
}

static uint64_t pwsp_flow_cells(const pwsp_flow *flow) {
    return (uint64_t)flow->member_count * flow->round_count;
}

static bool pwsp_flow_reserve(const pwsp_traffic *t, pwsp_flow *flow, uint64_t send_count) {
    flow->send_count = send_count;
    return PWSP_ALLOC(&t->memory, flow->members, flow->member_count) &&
           PWSP_ALLOC(&t->memory, flow->cells, pwsp_flow_cells(flow)) &&
           PWSP_ALLOC(&t->memory, flow->sends, send_count);
}

PWSP_INTERNAL pwsp_flow *pwsp_flow_make(const pwsp_traffic *t, const ptowsp_collective *c,
                                        uint32_t member_count) {
    pwsp_flow *flow = (pwsp_flow *)pwsp_memory_alloc(&t->memory, sizeof *flow);
    if (!flow) {
        return NULL;
    }
    flow->collective = *c;
    flow->collective.counts = NULL;
    flow->member_count = member_count;
    uint64_t sends = 0;
    for (uint32_t i = 0; i < member_count; i++) {
        ptowsp_collective_size size;
        pwsp_collective_visit(c, i, pwsp_flow_count, &sends, &size);
        PTOWSP_ASSERT(i == 0 || flow->round_count == size.round_count);
        flow->round_count = size.round_count;
    }
    if (!pwsp_flow_reserve(t, flow, sends)) {
        pwsp_flow_free(t, flow);
        return NULL;
    }
    flow->send_count = 0;
    pwsp_flow_maker maker = {t, c, flow, 0, ptowsp_dtype_size(c->dtype)};
    for (uint32_t i = 0; i < member_count; i++) {
        ptowsp_collective_size size;
        maker.me = i;
        flow->members[i].send_begin = flow->send_count;
        pwsp_collective_visit(c, i, pwsp_flow_visit, &maker, &size);
        flow->members[i].send_end = flow->send_count;
    }
    PTOWSP_ASSERT(flow->send_count == sends);
    return flow;
}

PWSP_INTERNAL void pwsp_flow_free(const pwsp_traffic *t, pwsp_flow *flow) {
    if (flow) {
        PWSP_FREE(&t->memory, flow->members, flow->member_count);
        PWSP_FREE(&t->memory, flow->cells, (size_t)pwsp_flow_cells(flow));
        PWSP_FREE(&t->memory, flow->sends, flow->send_count);
        PWSP_FREE(&t->memory, flow, 1);
    }
}

// -- symmetry -------------------------------------------------------------------------------------

// Members of the first node, if all nodes have as many and they are contiguous; otherwise all.
static uint32_t pwsp_traffic_period(const pwsp_traffic *t, const ptowsp_collective *c) {
    uint32_t period = 1;
    const uint64_t span = t->level_count > 1 ? t->levels[0].span : 0;
    if (span == 0) {
        return 1;
    }
    const uint64_t first = c->first / span;
    while (period < c->members && pwsp_collective_rank(c, period) / span == first) {
        period++;
    }
    for (uint32_t i = 0; i < c->members; i++) {
        const uint64_t node = pwsp_collective_rank(c, i) / span;
        const uint64_t before = i ? pwsp_collective_rank(c, i - 1) / span : node;
        if (i > 0 && (node != before) != (i % period == 0)) {
            return c->members;
        }
    }
    return period == c->members ? 1 : period;
}

PWSP_INTERNAL uint32_t pwsp_traffic_symmetry(const ptowsp_links *links,
                                             const ptowsp_collective *c) {
    pwsp_traffic of;
    const pwsp_traffic *t = &of;
    memset(&of, 0, sizeof of);
    of.links = links;
    pwsp_traffic_set_levels(&of);
    const bool is_ring =
        c->algorithm == PTOWSP_ALGORITHM_RING || c->algorithm == PTOWSP_ALGORITHM_HIERARCHICAL;
    const bool is_even = c->kind <= PTOWSP_ALL_GATHER && c->count % c->members == 0;
    if (!is_ring || !is_even || t->level_count > 2) {
        return c->members;
    }
    uint32_t period = pwsp_traffic_period(t, c);
    const bool is_hierarchical = c->algorithm == PTOWSP_ALGORITHM_HIERARCHICAL;
    if (t->levels[t->level_count - 1].link->sharing == PTOWSP_LINK_NODE &&
        (period == 1 || is_hierarchical)) {
        return c
            ->members;  // members share the link of a node, and those that come at once go by rank
    }
    if (is_hierarchical && c->node_size) {
        period = period == 1 ? c->node_size : period;
        period = period % c->node_size ? c->members : period;
    }
    return period && c->members % period == 0 ? period : c->members;
}

// -- the heap -------------------------------------------------------------------------------------

static bool pwsp_traffic_before(const pwsp_traffic *t, uint32_t a, uint32_t b) {
    return t->keys[a] < t->keys[b] || (t->keys[a] == t->keys[b] && a < b);
}

PWSP_HEAP(pwsp_traffic_heap, uint32_t, pwsp_traffic, pwsp_traffic_before)

static void pwsp_traffic_push(pwsp_traffic *t, uint32_t slot, uint64_t key) {
    PTOWSP_ASSERT(t->heap_count < t->slot_count);
    t->keys[slot] = key;
    pwsp_traffic_heap_push(t, t->heap, t->heap_count++, slot);
}

// -- a round --------------------------------------------------------------------------------------

// Units of time, rounded up to picoseconds; UINT64_MAX where that does not fit.
static uint64_t pwsp_traffic_units(const pwsp_traffic *t, uint64_t bytes, uint64_t bytes_per_us) {
    uint64_t whole = 0, rest = 0, units = 0;
    if (bytes_per_us == 0) {
        return 0;
    }
    if (!pwsp_mul_fits(bytes / bytes_per_us, 1000000, &whole) ||
        !pwsp_mul_fits(bytes % bytes_per_us, 1000000, &rest)) {
        return UINT64_MAX;
    }
    const uint64_t ps = pwsp_sum_u64(whole, pwsp_ceil_div_u64(rest, bytes_per_us));
    return pwsp_mul_fits(ps, t->unit, &units) ? units : UINT64_MAX;
}

static uint32_t pwsp_flow_slot(const pwsp_traffic *t, const pwsp_flow *flow, uint32_t member) {
    return (pwsp_collective_rank(&flow->collective, member) - t->first) / t->stride;
}

// Ends the member's round if all that it waits for has been sent, and makes it ready for the next.
static void pwsp_traffic_end_round(pwsp_traffic *t, pwsp_flow *flow, uint32_t member) {
    pwsp_traffic_member *m = &flow->members[member];
    pwsp_traffic_cell *cell = &flow->cells[(size_t)member * flow->round_count + m->round];
    if (!m->has_sent || cell->expected > 0) {
        return;
    }
    const uint64_t added = pwsp_traffic_units(t, cell->added_bytes, t->links->reduce_bytes_per_us);
    const uint32_t slot = pwsp_flow_slot(t, flow, member);
    m->now = pwsp_sum_u64(pwsp_max_u64(m->now, cell->latest), added);
    m->has_sent = false;
    if (++m->round < flow->round_count) {
        pwsp_traffic_push(t, slot, m->now);
        return;
    }
    PTOWSP_ASSERT(t->done_count < 2);
    t->done[t->done_count++] = slot;
    t->is_late = t->is_late || m->now == UINT64_MAX;
    t->cost.time_ps = pwsp_max_u64(t->cost.time_ps, m->now);
    flow->ended++;
}

// The end of a message that starts and could end then: when both ranks have passed its bytes, too.
static uint64_t pwsp_traffic_cap(pwsp_traffic *t, uint64_t bytes, uint32_t from, uint32_t to,
                                 uint64_t start, uint64_t end) {
    uint64_t *const caps[] = {&t->caps[2 * (size_t)from], &t->caps[2 * (size_t)to + 1]};
    const uint64_t units = pwsp_traffic_units(t, bytes, t->links->rank_bytes_per_us);
    for (uint32_t i = 0; i < 2; i++) {
        *caps[i] = pwsp_sum_u64(pwsp_max_u64(*caps[i], start), units);
        end = pwsp_max_u64(end, *caps[i]);
    }
    return end;
}

// Sends a message that is ready at a time; says when its sender is done with it.
static uint64_t pwsp_traffic_message(pwsp_traffic *t, pwsp_flow *flow, uint32_t slot,
                                     const pwsp_traffic_send *send, uint64_t ready) {
    uint64_t *out, *in, latency;
    const uint32_t to = pwsp_flow_slot(t, flow, send->to);
    const ptowsp_link *link = pwsp_traffic_link(t, send->level, slot, to, &out, &in);
    const uint64_t start = pwsp_max_u64(ready, pwsp_max_u64(*out, *in));
    uint64_t end = pwsp_sum_u64(start, pwsp_traffic_units(t, send->bytes, link->bytes_per_us));
    if (t->caps && send->level + 1 == t->level_count) {
        end = pwsp_traffic_cap(t, send->bytes, slot, to, start, end);
    }
    latency = pwsp_mul_fits(link->latency_ps, t->unit, &latency) ? latency : UINT64_MAX;
    const uint64_t arrival = pwsp_sum_u64(end, latency);
    *out = *in = end;
    t->is_late = t->is_late || arrival == UINT64_MAX;
    t->cost.message_count++;
    t->cost.sent_bytes += send->bytes;
    t->cost.between_bytes += send->level + 1 < t->level_count ? send->bytes : 0;
    pwsp_traffic_cell *cell = &flow->cells[(size_t)send->to * flow->round_count + send->round];
    PTOWSP_ASSERT(cell->expected > 0);
    cell->latest = pwsp_max_u64(cell->latest, arrival);
    cell->expected--;
    return end;
}

PWSP_INTERNAL void pwsp_traffic_join(pwsp_traffic *t, pwsp_flow *flow, uint32_t member,
                                     uint64_t start) {
    const uint32_t slot = pwsp_flow_slot(t, flow, member);
    PTOWSP_ASSERT(slot < t->slot_count && !t->flows[slot] && !flow->members[member].has_joined);
    t->flows[slot] = flow;
    flow->members[member].has_joined = true;
    flow->members[member].now = start;
    flow->joined++;
    pwsp_traffic_push(t, slot, start);
}

// Sends the next message of the rank that is first, or ends its round.
PWSP_INTERNAL bool pwsp_traffic_step(pwsp_traffic *t) {
    t->done_count = 0;
    if (t->heap_count == 0) {
        return false;
    }
    const uint32_t slot = pwsp_traffic_heap_pop(t, t->heap, t->heap_count--);
    const uint64_t key = t->keys[slot];
    pwsp_flow *flow = t->flows[slot];
    const uint32_t member = pwsp_collective_member(&flow->collective, pwsp_traffic_rank(t, slot));
    pwsp_traffic_member *m = &flow->members[member];
    const pwsp_traffic_send *send =
        m->send_begin < m->send_end ? &flow->sends[m->send_begin] : NULL;
    bool is_last = !send || send->round != m->round;
    if (!is_last) {
        m->now = pwsp_max_u64(m->now, pwsp_traffic_message(t, flow, slot, send, key));
        m->send_begin++;
        if (flow->members[send->to].round == send->round) {
            pwsp_traffic_end_round(t, flow, send->to);
        }
        send++;
        is_last = m->send_begin == m->send_end || send->round != m->round;
        if (!is_last) {
            uint64_t *out, *in;
            pwsp_traffic_link(t, send->level, slot, pwsp_flow_slot(t, flow, send->to), &out, &in);
            pwsp_traffic_push(t, slot, pwsp_max_u64(key, *out));
        }
    }
    if (is_last) {
        m->has_sent = true;
        pwsp_traffic_end_round(t, flow, member);
    }
    for (uint32_t i = 0; i < t->done_count; i++) {
        t->flows[t->done[i]] = NULL;
    }
    return true;
}
