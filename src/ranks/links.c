// Simulated time of collectives.
//
// Each rank is in one round. Of the ranks that have a message to send, the one whose way out is free
// earliest sends it (a heap; ties by rank): the message takes its links and arrives. Times only
// grow, as latencies are not negative, so links serve messages in the order of these times.
//
//      cell (rank, round)   expected messages, the latest arrival, bytes to add
//      start(round + 1) = max(start(round), end of sends, latest arrival) + time of additions

#include "ranks.h"

#include <inttypes.h>

typedef struct pwsp_time_send {
    uint32_t to, round;
    uint64_t bytes;
} pwsp_time_send;

typedef struct pwsp_time_cell {
    uint32_t expected;  // messages that have not been sent yet
    uint64_t latest, added_bytes;
} pwsp_time_cell;

typedef struct pwsp_time_rank {
    uint64_t now;                   // when its sends of this round have ended so far
    uint64_t key;                   // when it goes next, in the heap
    uint64_t send_begin, send_end;  // what is left of its sends
    uint32_t round;
    bool has_sent;  // all of this round
} pwsp_time_rank;

typedef struct pwsp_time {
    const ptowsp_collective *collective;
    const ptowsp_links *links;
    uint32_t p, round_count, me;
    uint64_t element;
    pwsp_time_send *sends;
    uint64_t send_count;
    pwsp_time_cell *cells;  // [p * round_count]
    pwsp_time_rank *ranks;
    uint32_t *heap;
    uint32_t heap_count;
    uint64_t *out_free, *in_free;  // by rank, of ports; and by node
    uint64_t *node_out, *node_in;
    uint64_t *pair_free;  // [p * p]
    ptowsp_collective_cost cost;
    bool is_late;  // a time does not fit
} pwsp_time;

// Picoseconds, rounded up; UINT64_MAX where that does not fit.
static uint64_t pwsp_time_to_move(uint64_t bytes, uint64_t bytes_per_us) {
    if (bytes_per_us == 0) {
        return 0;
    }
    uint64_t whole = 0, rest = 0;
    const uint64_t left = bytes % bytes_per_us;
    if (!pwsp_mul_fits(bytes / bytes_per_us, 1000000, &whole) ||
        !pwsp_mul_fits(left, 1000000, &rest)) {
        return UINT64_MAX;
    }
    return pwsp_sum_u64(whole, pwsp_ceil_div_u64(rest, bytes_per_us));
}

static uint32_t pwsp_time_node(const pwsp_time *t, uint32_t member) {
    const uint32_t rank = pwsp_collective_rank(t->collective, member);
    return t->links->node_size ? rank / t->links->node_size : 0;
}

static uint32_t pwsp_time_member(const pwsp_time *t, uint32_t rank) {
    return (rank - t->collective->first) / (t->collective->stride ? t->collective->stride : 1);
}

// -- what there is to do --------------------------------------------------------------------------

static void pwsp_time_visit(void *user, const ptowsp_collective_step *step) {
    pwsp_time *t = (pwsp_time *)user;
    pwsp_time_cell *cell = &t->cells[(size_t)t->me * t->round_count + step->round];
    const uint64_t bytes = step->count * t->element;
    if (step->kind == PTOWSP_MOVE_SEND) {
        pwsp_time_send *send = &t->sends[t->send_count++];
        send->to = pwsp_time_member(t, step->peer);
        send->round = step->round;
        send->bytes = bytes;
    } else if (step->kind == PTOWSP_MOVE_RECEIVE) {
        cell->expected++;
    } else if (step->kind != PTOWSP_MOVE_COPY) {
        cell->added_bytes += bytes;
    }
}

static void pwsp_time_count(void *user, const ptowsp_collective_step *step) {
    *(uint64_t *)user += step->kind == PTOWSP_MOVE_SEND;
}

// -- the heap -------------------------------------------------------------------------------------

static bool pwsp_time_before(const pwsp_time *t, uint32_t a, uint32_t b) {
    const uint64_t x = t->ranks[a].key, y = t->ranks[b].key;
    return x < y || (x == y && a < b);
}

static void pwsp_time_push(pwsp_time *t, uint32_t rank, uint64_t key) {
    uint32_t at = t->heap_count++;
    PTOWSP_ASSERT(at < t->p);
    t->ranks[rank].key = key;
    for (; at > 0 && pwsp_time_before(t, rank, t->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        t->heap[at] = t->heap[(at - 1) / 2];
    }
    t->heap[at] = rank;
}

static uint32_t pwsp_time_pop(pwsp_time *t) {
    PTOWSP_ASSERT(t->heap_count > 0);
    const uint32_t first = t->heap[0], last = t->heap[--t->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= t->heap_count) {
            break;
        }
        if (child + 1 < t->heap_count && pwsp_time_before(t, t->heap[child + 1], t->heap[child])) {
            child++;
        }
        if (!pwsp_time_before(t, t->heap[child], last)) {
            break;
        }
        t->heap[at] = t->heap[child];
        at = child;
    }
    t->heap[at] = last;
    return first;
}

// -- a round --------------------------------------------------------------------------------------

// Ends the rank's round if all that it waits for has been sent, and makes it ready for the next.
static void pwsp_time_end_round(pwsp_time *t, uint32_t rank) {
    pwsp_time_rank *r = &t->ranks[rank];
    pwsp_time_cell *cell = &t->cells[(size_t)rank * t->round_count + r->round];
    if (!r->has_sent || cell->expected > 0) {
        return;
    }
    r->now = pwsp_sum_u64(pwsp_max_u64(r->now, cell->latest),
                          pwsp_time_to_move(cell->added_bytes, t->links->reduce_bytes_per_us));
    r->has_sent = false;
    if (++r->round < t->round_count) {
        pwsp_time_push(t, rank, r->now);
    }
}

// The link of a message: when its two ends are free, which may be one.
static const ptowsp_link *pwsp_time_link(pwsp_time *t, uint32_t from, uint32_t to, uint64_t **out,
                                         uint64_t **in) {
    const uint32_t from_node = pwsp_time_node(t, from), to_node = pwsp_time_node(t, to);
    const bool is_between = from_node != to_node;
    const ptowsp_link *link = is_between ? &t->links->between : &t->links->inside;
    *out = &t->out_free[from + (is_between ? t->p : 0)];
    *in = &t->in_free[to + (is_between ? t->p : 0)];
    if (link->sharing == PTOWSP_LINK_PAIR) {
        *out = *in = &t->pair_free[(size_t)from * t->p + to];
    } else if (link->sharing == PTOWSP_LINK_NODE) {
        *out = &t->node_out[from_node + (is_between ? PTOWSP_RANK_COUNT_MAX : 0)];
        *in = &t->node_in[to_node + (is_between ? PTOWSP_RANK_COUNT_MAX : 0)];
    }
    return link;
}

// Sends a message that is ready at a time; says when its sender is done with it.
static uint64_t pwsp_time_message(pwsp_time *t, uint32_t from, const pwsp_time_send *send,
                                  uint64_t ready) {
    uint64_t *out, *in;
    const ptowsp_link *link = pwsp_time_link(t, from, send->to, &out, &in);
    const uint64_t start = pwsp_max_u64(ready, pwsp_max_u64(*out, *in));
    const uint64_t end = pwsp_sum_u64(start, pwsp_time_to_move(send->bytes, link->bytes_per_us));
    const uint64_t arrival = pwsp_sum_u64(end, link->latency_ps);
    *out = *in = end;
    t->is_late = t->is_late || arrival == UINT64_MAX;
    t->cost.message_count++;
    t->cost.sent_bytes += send->bytes;
    t->cost.between_bytes += link == &t->links->between ? send->bytes : 0;
    pwsp_time_cell *cell = &t->cells[(size_t)send->to * t->round_count + send->round];
    PTOWSP_ASSERT(cell->expected > 0);
    cell->latest = pwsp_max_u64(cell->latest, arrival);
    cell->expected--;
    return end;
}

// Sends the rank's next message, or ends its round.
static void pwsp_time_go(pwsp_time *t, uint32_t rank) {
    pwsp_time_rank *r = &t->ranks[rank];
    const pwsp_time_send *send = &t->sends[r->send_begin];
    if (r->send_begin < r->send_end && send->round == r->round) {
        r->now = pwsp_max_u64(r->now, pwsp_time_message(t, rank, send, r->key));
        r->send_begin++;
        if (t->ranks[send->to].round == send->round) {
            pwsp_time_end_round(t, send->to);
        }
        send++;
        if (r->send_begin < r->send_end && send->round == r->round) {
            uint64_t *out, *in;
            pwsp_time_link(t, rank, send->to, &out, &in);
            pwsp_time_push(t, rank, pwsp_max_u64(r->key, *out));
            return;
        }
    }
    r->has_sent = true;
    pwsp_time_end_round(t, rank);
}

static void pwsp_time_run(pwsp_time *t, const uint64_t *starts) {
    for (uint32_t i = 0; i < t->p; i++) {
        t->me = i;
        t->ranks[i].send_begin = t->send_count;
        ptowsp_collective_size size;
        pwsp_collective_visit(t->collective, i, pwsp_time_visit, t, &size);
        t->ranks[i].send_end = t->send_count;
        t->ranks[i].now = starts ? starts[i] : 0;
        pwsp_time_push(t, i, t->ranks[i].now);
    }
    while (t->heap_count > 0) {
        pwsp_time_go(t, pwsp_time_pop(t));
    }
    for (uint32_t i = 0; i < t->p; i++) {
        PTOWSP_ASSERT(t->ranks[i].round == t->round_count);
        t->cost.time_ps = pwsp_max_u64(t->cost.time_ps, t->ranks[i].now);
        t->is_late = t->is_late || t->ranks[i].now == UINT64_MAX;
    }
    t->cost.round_count = t->round_count;
}

// -- public ---------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_links_check(ptowsp_context *context, const ptowsp_links *links) {
    if (!links || (uint32_t)links->inside.sharing > PTOWSP_LINK_NODE ||
        (uint32_t)links->between.sharing > PTOWSP_LINK_NODE) {
        return pwsp_ranks_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               links ? "links are shared in an unknown way" : "no links");
    }
    return PTOWSP_OK;
}

ptowsp_links ptowsp_links_make(ptowsp_links_of machine) {
    const ptowsp_links known[] = {
        {"ascend_910b",
         8,
         {2000000, 28000, PTOWSP_LINK_PAIR},
         {5000000, 25000, PTOWSP_LINK_PORT},
         0},
        {"ethernet_100g", 1, {0, 0, PTOWSP_LINK_PORT}, {20000000, 12500, PTOWSP_LINK_PORT}, 0},
        {"ethernet_10g", 1, {0, 0, PTOWSP_LINK_PORT}, {30000000, 1250, PTOWSP_LINK_PORT}, 0},
    };
    ptowsp_links none;
    memset(&none, 0, sizeof none);
    return (uint32_t)machine < sizeof known / sizeof known[0] ? known[machine] : none;
}

static ptowsp_status pwsp_time_simulate(ptowsp_context *context, pwsp_arena *arena,
                                        const ptowsp_collective *collective,
                                        const ptowsp_links *links, const uint64_t *starts,
                                        uint64_t *ends, ptowsp_collective_cost *out_cost) {
    pwsp_time t;
    memset(&t, 0, sizeof t);
    t.collective = collective;
    t.links = links;
    t.p = collective->members;
    t.element = ptowsp_dtype_size(collective->dtype);
    uint64_t sends = 0;
    for (uint32_t i = 0; i < t.p; i++) {
        ptowsp_collective_size size;
        pwsp_collective_visit(collective, i, pwsp_time_count, &sends, &size);
        PTOWSP_ASSERT(i == 0 || t.round_count == size.round_count);
        t.round_count = size.round_count;
    }
    const size_t word = sizeof(uint64_t), p = t.p, node_count = 2 * PTOWSP_RANK_COUNT_MAX;
    t.sends = (pwsp_time_send *)pwsp_arena_alloc(arena, (size_t)(sends * sizeof *t.sends), word);
    t.cells = (pwsp_time_cell *)pwsp_arena_alloc(arena, p * t.round_count * sizeof *t.cells, word);
    t.ranks = (pwsp_time_rank *)pwsp_arena_alloc(arena, p * sizeof *t.ranks, word);
    t.heap = (uint32_t *)pwsp_arena_alloc(arena, p * sizeof *t.heap, word);
    t.out_free = (uint64_t *)pwsp_arena_alloc(arena, 2 * p * word, word);
    t.in_free = (uint64_t *)pwsp_arena_alloc(arena, 2 * p * word, word);
    t.node_out = (uint64_t *)pwsp_arena_alloc(arena, node_count * word, word);
    t.node_in = (uint64_t *)pwsp_arena_alloc(arena, node_count * word, word);
    const bool has_pairs =
        links->inside.sharing == PTOWSP_LINK_PAIR || links->between.sharing == PTOWSP_LINK_PAIR;
    t.pair_free = (uint64_t *)pwsp_arena_alloc(arena, has_pairs ? p * p * word : 0, word);
    if (!t.sends || !t.cells || !t.ranks || !t.heap || !t.out_free || !t.in_free || !t.node_out ||
        !t.node_in || !t.pair_free) {
        return pwsp_ranks_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "out of memory");
    }
    pwsp_time_run(&t, starts);
    if (t.is_late) {
        return pwsp_ranks_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                               "%s: its time does not fit 64 bits",
                               ptowsp_collective_name(collective->kind));
    }
    for (uint32_t i = 0; ends && i < t.p; i++) {
        ends[i] = t.ranks[i].now;
    }
    *out_cost = t.cost;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_collective_time(ptowsp_context *context, const ptowsp_collective *collective,
                                     const ptowsp_links *links, ptowsp_collective_cost *out_cost) {
    PTOWSP_ASSERT(context);
    ptowsp_status status = pwsp_collective_check(context, collective);
    if (status == PTOWSP_OK) {
        status = pwsp_links_check(context, links);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    if (collective->algorithm == PTOWSP_ALGORITHM_AUTO || !out_cost) {
        return pwsp_ranks_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               "%s: its time needs %s", ptowsp_collective_name(collective->kind),
                               out_cost ? "an algorithm" : "room to write");
    }
    pwsp_arena arena;
    pwsp_arena_init(&arena, &context->memory);
    status = pwsp_time_simulate(context, &arena, collective, links, NULL, NULL, out_cost);
    pwsp_arena_free(&arena);
    return status;
}

PWSP_INTERNAL ptowsp_status pwsp_collective_time_from(ptowsp_context *context,
                                                      const ptowsp_collective *collective,
                                                      const ptowsp_links *links,
                                                      const uint64_t *starts, uint64_t *ends) {
    ptowsp_collective_cost cost;
    pwsp_arena arena;
    ptowsp_status status = pwsp_collective_check(context, collective);
    if (status == PTOWSP_OK) {
        pwsp_arena_init(&arena, &context->memory);
        status = pwsp_time_simulate(context, &arena, collective, links, starts, ends, &cost);
        pwsp_arena_free(&arena);
    }
    return status;
}

// -- the choice -----------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_links_inner(const ptowsp_collective *c, const ptowsp_links *links) {
    const uint32_t stride = c->stride ? c->stride : 1, size = links->node_size;
    if (size == 0) {
        return c->members;
    }
    if (size % stride || c->first % size >= stride) {
        return 1;
    }
    const uint32_t inner = size / stride;
    return c->members % inner == 0 ? inner : 1;
}

typedef struct pwsp_algorithm_choice {
    ptowsp_algorithm algorithm;
    uint64_t time_ps;
} pwsp_algorithm_choice;

static void pwsp_algorithm_say(const ptowsp_collective *c, const ptowsp_links *links,
                               const pwsp_algorithm_choice *choices, uint32_t count,
                               ptowsp_text text) {
    uint64_t elements = c->count;
    for (size_t i = 0; c->counts && i < (size_t)c->members * c->members; i++) {
        elements += c->counts[i];
    }
    pwsp_text_format(text, "%s of %" PRIu32 " rank%s, %" PRIu64 " bytes, on %s:",
                     ptowsp_collective_name(c->kind), c->members, c->members == 1 ? "" : "s",
                     elements * ptowsp_dtype_size(c->dtype), links->name ? links->name : "links");
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t hundredths =
            choices[i].time_ps / 10000 + (choices[i].time_ps % 10000 >= 5000);
        pwsp_text_format(text, "%s %s %" PRIu64 ".%02" PRIu64 " us", i ? "," : "",
                         ptowsp_algorithm_name(choices[i].algorithm), hundredths / 100,
                         hundredths % 100);
    }
    pwsp_text_format(text, "\n");
}

ptowsp_status ptowsp_collective_choose(ptowsp_context *context, ptowsp_collective *collective,
                                       const ptowsp_links *links, ptowsp_text text) {
    ptowsp_status status = pwsp_collective_check(context, collective);
    if (status == PTOWSP_OK) {
        status = pwsp_links_check(context, links);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    ptowsp_collective tried = *collective;
    tried.node_size = pwsp_links_inner(collective, links);
    pwsp_algorithm_choice choices[PTOWSP_ALGORITHM_RING];
    uint32_t count = 0;
    for (uint32_t a = PTOWSP_ALGORITHM_DIRECT; a <= PTOWSP_ALGORITHM_RING; a++) {
        tried.algorithm = (ptowsp_algorithm)a;  // in the order of names
        const bool is_ring = tried.node_size == 1 || tried.node_size == tried.members;
        if (!pwsp_collective_has(tried.kind, tried.algorithm) ||
            (a == PTOWSP_ALGORITHM_HIERARCHICAL && is_ring)) {
            continue;
        }
        ptowsp_collective_cost cost;
        status = ptowsp_collective_time(context, &tried, links, &cost);
        if (status != PTOWSP_OK) {
            return status;
        }
        uint32_t at = count++;
        for (; at > 0 && choices[at - 1].time_ps > cost.time_ps; at--) {
            choices[at] = choices[at - 1];
        }
        choices[at].algorithm = tried.algorithm;
        choices[at].time_ps = cost.time_ps;
    }
    PTOWSP_ASSERT(count > 0);
    if (text.write) {
        pwsp_algorithm_say(collective, links, choices, count, text);
    }
    collective->algorithm = choices[0].algorithm;
    collective->node_size = tried.node_size;
    return PTOWSP_OK;
}
