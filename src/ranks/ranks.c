// Communicators: steps of a collective, round by round, over a transport.
//
//      start   plans the steps of this rank; nothing is sent
//      poll    begins messages of the round, at most one each way with each peer, and tests them;
//              when all of the round are done, the local steps; then the next round
//
// A message has the tag (hash of the collective) << 32 | ordinal among its pair's messages. So a
// message that is lost, duplicated, or of a different collective is detected where it arrives.
// Sizes are compared as well.

#include "../base/atomic.h"
#include "../base/sleeper.h"
#include "ranks.h"

#include <inttypes.h>

#define PWSP_RANKS_LIMIT_NS UINT64_C(60000000000)
#define PWSP_RANKS_YIELDS   200
#define PWSP_RANKS_NAP_NS   50000
#define PWSP_RANKS_CHOICES  16

enum { PWSP_STEP_WAITS = 0, PWSP_STEP_IS_UNDER_WAY, PWSP_STEP_IS_DONE };

typedef struct pwsp_ranks_peer {
    uint32_t ordinals[2];  // of the next message received, sent
    bool is_busy[2];
} pwsp_ranks_peer;

// The algorithm of a collective that asks for the cheapest.
typedef struct pwsp_ranks_choice {
    uint64_t hash;
    ptowsp_algorithm algorithm;  // AUTO: none
    uint32_t node_size;
} pwsp_ranks_choice;

struct ptowsp_ranks {
    ptowsp_context *context;
    uint32_t rank, count;
    ptowsp_transport transport;
    uint64_t time_limit_ns, deadline_ns;
    ptowsp_links links;
    bool is_closed;
    pwsp_ranks_peer *peers;  // [count]

    // The collective under way.
    bool is_started;
    ptowsp_collective collective;
    uint32_t hash, element;
    const char *in;
    char *out;
    ptowsp_collective_step *steps;
    uint64_t step_count, step_capacity;
    uint8_t *states;  // of the steps
    uint64_t state_capacity;
    char *scratch;
    uint64_t scratch_capacity;
    uint64_t round_begin, round_end;  // steps
    uint64_t left;                    // messages of the round that are not done

    pwsp_ranks_choice choices[PWSP_RANKS_CHOICES];  // the last ones, by hash
};

static void pwsp_ranks_free(ptowsp_ranks *r) {
    const pwsp_memory *memory = &r->context->memory;
    PWSP_FREE(memory, r->steps, r->step_capacity);
    PWSP_FREE(memory, r->states, r->state_capacity);
    PWSP_FREE(memory, r->scratch, r->scratch_capacity);
    PWSP_FREE(memory, r->peers, r->count);
    PWSP_FREE(memory, r, 1);
}

static void pwsp_ranks_close(ptowsp_ranks *r, bool has_failed) {
    if (!r->is_closed) {
        for (uint32_t i = 0; i < r->count; i++) {
            for (int is_send = 0; is_send < 2; is_send++) {
                if (r->peers && r->peers[i].is_busy[is_send]) {
                    r->transport.cancel(r->transport.user, i, is_send != 0);
                    r->peers[i].is_busy[is_send] = false;
                }
            }
        }
        r->transport.close(r->transport.user, has_failed);
        r->is_closed = true;
        r->is_started = false;
    }
}

// -- messages -------------------------------------------------------------------------------------

static uint64_t pwsp_ranks_tag(const ptowsp_ranks *r, uint32_t peer, bool is_send) {
    return (uint64_t)r->hash << 32 | r->peers[peer].ordinals[is_send];
}

static const char *pwsp_ranks_name(const ptowsp_ranks *r) {
    return ptowsp_collective_name(r->collective.kind);
}

// A status of the transport about a peer, as an error.
static ptowsp_status pwsp_ranks_fail_peer(ptowsp_ranks *r, ptowsp_status status, uint32_t peer,
                                          bool is_send, uint64_t bytes) {
    if (status == PTOWSP_BUFFER_OVERFLOW) {
        return pwsp_ranks_fail(r->context, PTOWSP_RANK_FAILED, peer,
                               "%s: a message of rank %" PRIu32 " is longer than %" PRIu64 " bytes",
                               pwsp_ranks_name(r), peer, bytes);
    }
    if (status == PTOWSP_RANK_FAILED) {
        return pwsp_ranks_fail(r->context, status, peer,
                               "%s: %s rank %" PRIu32 ", a rank failed or has ended",
                               pwsp_ranks_name(r), is_send ? "sending to" : "receiving from", peer);
    }
    return pwsp_ranks_fail(r->context, status, peer, "%s: the transport %s rank %" PRIu32 ": %s",
                           pwsp_ranks_name(r), is_send ? "to" : "from", peer,
                           ptowsp_status_text(status));
}

// Is a message that has come the one that is due?
static ptowsp_status pwsp_ranks_check_message(ptowsp_ranks *r, uint32_t peer, uint64_t tag,
                                              uint64_t size, uint64_t bytes) {
    const uint64_t due = pwsp_ranks_tag(r, peer, false);
    const uint32_t ordinal = (uint32_t)tag, due_ordinal = (uint32_t)due;
    const char *name = pwsp_ranks_name(r);
    if (ordinal != due_ordinal) {
        const bool is_old = (int32_t)(due_ordinal - ordinal) > 0;
        return pwsp_ranks_fail(
            r->context, PTOWSP_RANK_FAILED, peer,
            "%s: message %" PRIu32 " of rank %" PRIu32 " came %s, due is %" PRIu32, name, ordinal,
            peer, is_old ? "twice or late" : "too early", due_ordinal);
    }
    if (tag != due) {
        return pwsp_ranks_fail(r->context, PTOWSP_RANK_FAILED, peer,
                               "%s: rank %" PRIu32 " runs another collective, or of other sizes",
                               name, peer);
    }
    if (size != bytes) {
        return pwsp_ranks_fail(r->context, PTOWSP_RANK_FAILED, peer,
                               "%s: message %" PRIu32 " of rank %" PRIu32 " has %" PRIu64
                               " bytes, not %" PRIu64,
                               name, ordinal, peer, size, bytes);
    }
    return PTOWSP_OK;
}

static char *pwsp_ranks_at(ptowsp_ranks *r, ptowsp_collective_space space, uint64_t at) {
    char *base = space == PTOWSP_SPACE_OUT ? r->out : r->scratch;
    PTOWSP_ASSERT(space != PTOWSP_SPACE_IN);
    return base ? base + at * r->element : NULL;
}

static const char *pwsp_ranks_from(ptowsp_ranks *r, ptowsp_collective_space space, uint64_t at) {
    return space != PTOWSP_SPACE_IN ? pwsp_ranks_at(r, space, at)
           : r->in                  ? r->in + at * r->element
                                    : NULL;
}

// Begins a message if its peer is free, or tests it.
static ptowsp_status pwsp_ranks_move(ptowsp_ranks *r, uint64_t i) {
    const ptowsp_collective_step *step = &r->steps[i];
    const bool is_send = step->kind == PTOWSP_MOVE_SEND;
    const uint64_t bytes = step->count * r->element;
    pwsp_ranks_peer *peer = &r->peers[step->peer];
    const ptowsp_transport *t = &r->transport;
    ptowsp_status status = PTOWSP_OK;
    if (r->states[i] == PWSP_STEP_WAITS) {
        if (peer->is_busy[is_send]) {
            return PTOWSP_OK;
        }
        status = is_send ? t->send(t->user, step->peer, pwsp_ranks_tag(r, step->peer, true),
                                   pwsp_ranks_from(r, step->from, step->from_at), bytes)
                         : t->receive(t->user, step->peer, pwsp_ranks_at(r, step->to, step->to_at),
                                      bytes);
        if (status != PTOWSP_OK) {
            return pwsp_ranks_fail_peer(r, status, step->peer, is_send, bytes);
        }
        peer->is_busy[is_send] = true;
        r->states[i] = PWSP_STEP_IS_UNDER_WAY;
    }
    bool is_done = false;
    uint64_t tag = 0, size = 0;
    status = t->test(t->user, step->peer, is_send, &is_done, &tag, &size);
    if (status != PTOWSP_OK) {
        return pwsp_ranks_fail_peer(r, status, step->peer, is_send, bytes);
    }
    if (is_done) {
        peer->is_busy[is_send] = false;
        r->states[i] = PWSP_STEP_IS_DONE;
        r->left--;
        status = is_send ? PTOWSP_OK : pwsp_ranks_check_message(r, step->peer, tag, size, bytes);
        peer->ordinals[is_send]++;
    }
    return status;
}

// -- rounds ---------------------------------------------------------------------------------------

static bool pwsp_step_is_message(const ptowsp_collective_step *step) {
    return step->kind == PTOWSP_MOVE_SEND || step->kind == PTOWSP_MOVE_RECEIVE;
}

static void pwsp_ranks_begin_round(ptowsp_ranks *r) {
    r->round_begin = r->round_end;
    r->left = 0;
    while (r->round_end < r->step_count &&
           r->steps[r->round_end].round == r->steps[r->round_begin].round) {
        r->left += pwsp_step_is_message(&r->steps[r->round_end++]);
    }
}

static void pwsp_ranks_do(ptowsp_ranks *r, const ptowsp_collective_step *step) {
    const char *from = pwsp_ranks_from(r, step->from, step->from_at);
    char *to = pwsp_ranks_at(r, step->to, step->to_at);
    const ptowsp_collective *c = &r->collective;
    if (step->kind == PTOWSP_MOVE_REDUCE) {
        pwsp_reduce_elements(c->reduction, c->dtype, to, from, to, step->count);
    } else if (step->kind == PTOWSP_MOVE_ADD) {
        pwsp_reduce_elements(c->reduction, c->dtype, to, to, from, step->count);
    } else if (from != to) {
        memcpy(to, from, (size_t)(step->count * r->element));
    }
}

// Makes progress without waiting.
static ptowsp_status pwsp_ranks_progress(ptowsp_ranks *r) {
    while (r->round_begin < r->step_count) {
        for (uint64_t i = r->round_begin; r->left > 0 && i < r->round_end; i++) {
            if (pwsp_step_is_message(&r->steps[i]) && r->states[i] != PWSP_STEP_IS_DONE) {
                const ptowsp_status status = pwsp_ranks_move(r, i);
                if (status != PTOWSP_OK) {
                    return status;
                }
            }
        }
        if (r->left > 0) {
            return PTOWSP_OK;
        }
        for (uint64_t i = r->round_begin; i < r->round_end; i++) {
            if (!pwsp_step_is_message(&r->steps[i])) {
                pwsp_ranks_do(r, &r->steps[i]);
            }
        }
        pwsp_ranks_begin_round(r);
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_ranks_fail_late(ptowsp_ranks *r) {
    uint64_t i = r->round_begin;
    while (!pwsp_step_is_message(&r->steps[i]) || r->states[i] == PWSP_STEP_IS_DONE) {
        i++;
        PTOWSP_ASSERT(i < r->round_end);
    }
    const ptowsp_collective_step *step = &r->steps[i];
    return pwsp_ranks_fail(r->context, PTOWSP_TIMED_OUT, step->peer,
                           "%s: rank %" PRIu32 " did not %s in %" PRIu64 " ms, round %" PRIu32,
                           pwsp_ranks_name(r), step->peer,
                           step->kind == PTOWSP_MOVE_SEND ? "take a message" : "answer",
                           r->time_limit_ns / 1000000, step->round);
}

ptowsp_status ptowsp_ranks_poll(ptowsp_ranks *ranks, bool *out_is_done) {
    PTOWSP_ASSERT(ranks);
    if (!out_is_done) {
        return pwsp_ranks_fail(ranks->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               "poll: no place for the answer");
    }
    *out_is_done = !ranks->is_started;
    if (ranks->is_closed) {
        return pwsp_ranks_fail(ranks->context, PTOWSP_RANK_FAILED, PTOWSP_NO_INDEX,
                               "this communicator has failed before");
    }
    if (!ranks->is_started) {
        return PTOWSP_OK;
    }
    ptowsp_status status = pwsp_ranks_progress(ranks);
    const bool is_done = ranks->round_begin == ranks->step_count;
    if (status == PTOWSP_OK && !is_done && ptowsp_clock_ns() >= ranks->deadline_ns) {
        status = pwsp_ranks_fail_late(ranks);
    }
    if (status != PTOWSP_OK) {
        *out_is_done = true;
        pwsp_ranks_close(ranks, true);
        return status;
    }
    *out_is_done = is_done;
    ranks->is_started = !is_done;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_ranks_wait(ptowsp_ranks *ranks) {
    PTOWSP_ASSERT(ranks);
    const uint32_t spins = pwsp_pool_spin_count(ranks->context->pool, ranks->count);
    uint32_t round = 0;
    for (;;) {
        bool is_done = false;
        const ptowsp_status status = ptowsp_ranks_poll(ranks, &is_done);
        if (status != PTOWSP_OK || is_done) {
            return status;
        }
        if (!pwsp_spin(&round, spins, PWSP_RANKS_YIELDS)) {
            pwsp_nap(PWSP_RANKS_NAP_NS);
        }
    }
}

// -- starting -------------------------------------------------------------------------------------

PWSP_INTERNAL uint64_t pwsp_collective_hash(const ptowsp_collective *c) {
    const uint64_t words[] = {(uint64_t)c->kind,
                              (uint64_t)c->algorithm,
                              (uint64_t)c->reduction,
                              (uint64_t)c->dtype,
                              c->count,
                              c->members,
                              c->first,
                              pwsp_stride(c->stride),
                              c->node_size,
                              c->root,
                              c->target};
    uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, words, sizeof words);
    if (c->counts) {
        const size_t count = (size_t)c->members * c->members;
        hash = ptowsp_hash(hash, c->counts, count * sizeof c->counts[0]);
    }
    return hash;
}

static ptowsp_status pwsp_ranks_check(ptowsp_ranks *r, const ptowsp_collective *c, const void *in,
                                      const void *out, uint32_t *out_member) {
    if (r->is_closed) {
        return pwsp_ranks_fail(r->context, PTOWSP_RANK_FAILED, PTOWSP_NO_INDEX,
                               "this communicator has failed before");
    }
    if (r->is_started) {
        return pwsp_ranks_fail(r->context, PTOWSP_BUSY, PTOWSP_NO_INDEX,
                               "a collective has been started; wait for it first");
    }
    const ptowsp_status status = pwsp_collective_check(r->context, c);
    if (status != PTOWSP_OK) {
        return status;
    }
    const char *name = ptowsp_collective_name(c->kind);
    *out_member = pwsp_collective_member(c, r->rank);
    if (r->rank < c->first || pwsp_collective_rank(c, *out_member) != r->rank ||
        *out_member >= c->members || pwsp_collective_rank(c, c->members - 1) >= r->count) {
        return pwsp_ranks_fail(r->context, PTOWSP_INVALID_PARAMS, r->rank,
                               "%s: rank %" PRIu32 " of %" PRIu32 " is not a member, or members "
                               "are not ranks",
                               name, r->rank, r->count);
    }
    ptowsp_collective_size size;
    ptowsp_collective sized = *c;
    sized.algorithm = PTOWSP_ALGORITHM_DIRECT;  // the same sizes in all
    pwsp_collective_visit(&sized, *out_member, NULL, NULL, &size);
    if ((size.in_count && !in) || (size.out_count && !out)) {
        return pwsp_ranks_fail(r->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "%s: %s is NULL",
                               name, size.in_count && !in ? "in" : "out");
    }
    const uint64_t element = ptowsp_dtype_size(c->dtype);
    const uintptr_t in_at = (uintptr_t)in, out_at = (uintptr_t)out;
    const bool may_be_same = c->kind == PTOWSP_ALL_REDUCE || c->kind == PTOWSP_BROADCAST;
    if (size.in_count && size.out_count && in_at < out_at + size.out_count * element &&
        out_at < in_at + size.in_count * element && !(may_be_same && in == out)) {
        return pwsp_ranks_fail(r->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               "%s: in and out overlap", name);
    }
    return PTOWSP_OK;
}

static void pwsp_ranks_write(void *user, const ptowsp_collective_step *step) {
    ptowsp_ranks *r = (ptowsp_ranks *)user;
    PTOWSP_ASSERT(r->step_count < r->step_capacity);
    r->steps[r->step_count++] = *step;
}

static bool pwsp_ranks_reserve(ptowsp_ranks *r, const ptowsp_collective_size *size) {
    const pwsp_memory *memory = &r->context->memory;
    return PWSP_ROOM(memory, r->steps, r->step_capacity, size->step_count) &&
           PWSP_ROOM(memory, r->states, r->state_capacity, size->step_count) &&
           PWSP_ROOM(memory, r->scratch, r->scratch_capacity, size->scratch_count * r->element);
}

static ptowsp_status pwsp_ranks_choose(ptowsp_ranks *r) {
    ptowsp_collective *c = &r->collective;
    const uint64_t hash = pwsp_collective_hash(c);
    pwsp_ranks_choice *choice = &r->choices[pwsp_mix64(hash) % PWSP_RANKS_CHOICES];
    if (hash != choice->hash || choice->algorithm == PTOWSP_ALGORITHM_AUTO) {
        const ptowsp_output none = {NULL, NULL};
        const ptowsp_status status = ptowsp_collective_choose(r->context, c, &r->links, none);
        if (status != PTOWSP_OK) {
            return status;
        }
        choice->hash = hash;
        choice->algorithm = c->algorithm;
        choice->node_size = c->node_size;
    }
    c->algorithm = choice->algorithm;
    c->node_size = choice->node_size;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_ranks_start(ptowsp_ranks *ranks, const ptowsp_collective *collective,
                                 const void *in, void *out) {
    PTOWSP_ASSERT(ranks);
    uint32_t member = 0;
    ptowsp_status status = pwsp_ranks_check(ranks, collective, in, out, &member);
    if (status != PTOWSP_OK) {
        return status;
    }
    ranks->collective = *collective;
    if (collective->algorithm == PTOWSP_ALGORITHM_AUTO) {
        status = pwsp_ranks_choose(ranks);
    }
    ptowsp_collective_size size;
    if (status == PTOWSP_OK) {
        const uint64_t hash = pwsp_collective_hash(&ranks->collective);
        ranks->hash = (uint32_t)(hash ^ hash >> 32);
        ranks->element = ptowsp_dtype_size(collective->dtype);
        pwsp_collective_visit(&ranks->collective, member, NULL, NULL, &size);
        if (!pwsp_ranks_reserve(ranks, &size)) {
            status = pwsp_ranks_fail(ranks->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                                     "%s: out of memory", pwsp_ranks_name(ranks));
        }
    }
    if (status != PTOWSP_OK) {
        pwsp_ranks_close(ranks, true);
        return status;
    }
    ranks->step_count = 0;
    pwsp_collective_visit(&ranks->collective, member, pwsp_ranks_write, ranks, &size);
    if (ranks->step_count > 0) {
        memset(ranks->states, PWSP_STEP_WAITS, (size_t)ranks->step_count);
    }
    ranks->in = (const char *)in;
    ranks->out = (char *)out;
    ranks->round_end = 0;
    pwsp_ranks_begin_round(ranks);
    ranks->deadline_ns = pwsp_sum_u64(ptowsp_clock_ns(), ranks->time_limit_ns);
    ranks->is_started = true;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_ranks_run(ptowsp_ranks *ranks, const ptowsp_collective *collective,
                               const void *in, void *out) {
    PTOWSP_ASSERT(ranks);
    const ptowsp_status status = ptowsp_ranks_start(ranks, collective, in, out);
    return status == PTOWSP_OK ? ptowsp_ranks_wait(ranks) : status;
}

// -- communicators --------------------------------------------------------------------------------

enum { PWSP_RECORD_VERSION, PWSP_RECORD_PROGRAM, PWSP_RECORD_LINKS, PWSP_RECORD_RANK, PWSP_RECORD };

static uint64_t pwsp_link_hash(uint64_t hash, const ptowsp_link *link) {
    const uint64_t words[] = {link->latency_ps, link->bytes_per_us, (uint64_t)link->sharing};
    return ptowsp_hash(hash, words, sizeof words);
}

static uint64_t pwsp_links_hash(const ptowsp_links *links) {
    const uint64_t words[] = {links->node_size, links->axis_count, links->reduce_bytes_per_us,
                              links->rank_bytes_per_us};
    uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, words, sizeof words);
    hash = pwsp_link_hash(pwsp_link_hash(hash, &links->inside), &links->between);
    for (uint32_t i = 0; i < links->axis_count && i < PTOWSP_MESH_AXIS_MAX; i++) {
        hash = pwsp_link_hash(hash ^ links->axis_sizes[i], &links->axes[i]);
    }
    return hash;
}

PWSP_INTERNAL bool pwsp_links_are_zero(const ptowsp_links *links) {
    PWSP_ZERO(ptowsp_links, none);
    return pwsp_links_hash(links) == pwsp_links_hash(&none);
}

// Do all ranks have one version, program and links?
static ptowsp_status pwsp_ranks_compare(ptowsp_ranks *r, uint64_t fingerprint, uint64_t *records) {
    static const char differences[][24] = {"version of the library", "fingerprint", "links",
                                           "rank"};
    const uint64_t own[PWSP_RECORD] = {
        ptowsp_hash(PTOWSP_HASH_START, ptowsp_version(), strlen(ptowsp_version())), fingerprint,
        pwsp_links_hash(&r->links), r->rank};
    PWSP_ZERO(ptowsp_collective, c);
    c.kind = PTOWSP_ALL_GATHER;
    c.algorithm = PTOWSP_ALGORITHM_DIRECT;
    c.dtype = PTOWSP_U64;
    c.count = (uint64_t)r->count * PWSP_RECORD;
    c.members = r->count;
    const ptowsp_status status = ptowsp_ranks_run(r, &c, own, records);
    if (status != PTOWSP_OK) {
        return status;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        for (uint32_t k = 0; k < PWSP_RECORD; k++) {
            const uint64_t due = k == PWSP_RECORD_RANK ? i : records[k];
            if (records[i * PWSP_RECORD + k] != due) {
                pwsp_ranks_close(r, false);  // the others find it, too, once they have all records
                return pwsp_ranks_fail(r->context, PTOWSP_RANK_FAILED, i,
                                       "rank %" PRIu32 " has another %s than rank 0: %016" PRIx64
                                       ", not %016" PRIx64,
                                       i, differences[k], records[i * PWSP_RECORD + k], due);
            }
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_ranks_check_desc(ptowsp_context *context, const ptowsp_ranks_desc *desc,
                                           ptowsp_ranks **out_ranks) {
    const ptowsp_transport *t = desc ? &desc->transport : NULL;
    if (!desc || !out_ranks || !t->send || !t->receive || !t->test || !t->cancel || !t->close) {
        return pwsp_ranks_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               "a communicator needs a description, all of a transport, and a "
                               "place to go");
    }
    if (desc->rank_count == 0 || desc->rank_count > PTOWSP_RANK_COUNT_MAX ||
        desc->rank >= desc->rank_count) {
        return pwsp_ranks_fail(context, PTOWSP_INVALID_PARAMS, desc->rank,
                               "no rank %" PRIu32 " of %" PRIu32 "; there are 1 to %d", desc->rank,
                               desc->rank_count, PTOWSP_RANK_COUNT_MAX);
    }
    return pwsp_links_check(context, &desc->links);
}

ptowsp_status ptowsp_ranks_create(ptowsp_context *context, const ptowsp_ranks_desc *desc,
                                  ptowsp_ranks **out_ranks) {
    PTOWSP_ASSERT(context);
    if (out_ranks) {
        *out_ranks = NULL;
    }
    ptowsp_status status = pwsp_ranks_check_desc(context, desc, out_ranks);
    if (status != PTOWSP_OK) {
        return status;
    }
    const pwsp_memory *memory = &context->memory;
    const size_t size = desc->rank_count * PWSP_RECORD * sizeof(uint64_t);
    ptowsp_ranks *r = (ptowsp_ranks *)pwsp_memory_alloc(memory, sizeof *r);
    uint64_t *records = NULL;
    if (r) {
        r->context = context;
        r->rank = desc->rank;
        r->count = desc->rank_count;
        r->transport = desc->transport;
        r->time_limit_ns = desc->time_limit_ns ? desc->time_limit_ns : PWSP_RANKS_LIMIT_NS;
        r->links = desc->links;
        if (pwsp_links_are_zero(&r->links)) {
            r->links = ptowsp_links_make(PTOWSP_LINKS_ASCEND_910B);
        }
        r->links.name = NULL;
        PWSP_ALLOC(memory, r->peers, r->count);
        records = r->peers ? (uint64_t *)pwsp_memory_alloc(memory, size) : NULL;
    }
    status = records
                 ? pwsp_ranks_compare(r, desc->fingerprint, records)
                 : pwsp_ranks_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "out of memory");
    pwsp_memory_free(memory, records, records ? size : 0);
    if (status != PTOWSP_OK) {
        if (!r) {
            desc->transport.close(desc->transport.user, true);
        } else {
            pwsp_ranks_close(r, true);
            r->count = r->peers ? r->count : 0;
            pwsp_ranks_free(r);
        }
        return status;
    }
    pwsp_context_own(context);
    *out_ranks = r;
    return PTOWSP_OK;
}

void ptowsp_ranks_destroy(ptowsp_ranks *ranks) {
    if (ranks) {
        ptowsp_context *context = ranks->context;
        pwsp_ranks_close(ranks, ranks->is_started);
        pwsp_ranks_free(ranks);
        pwsp_context_disown(context);
    }
}

PWSP_INTERNAL void pwsp_ranks_give_up(ptowsp_ranks *ranks) {
    pwsp_ranks_close(ranks, true);
}

PWSP_INTERNAL ptowsp_links pwsp_ranks_links(const ptowsp_ranks *ranks) {
    return ranks->links;
}

PWSP_INTERNAL ptowsp_context *pwsp_ranks_context(const ptowsp_ranks *ranks) {
    return ranks->context;
}

uint32_t ptowsp_ranks_rank(const ptowsp_ranks *ranks) {
    PTOWSP_ASSERT(ranks);
    return ranks->rank;
}

uint32_t ptowsp_ranks_count(const ptowsp_ranks *ranks) {
    PTOWSP_ASSERT(ranks);
    return ranks->count;
}
