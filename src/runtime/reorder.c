// The reorder buffer: reorder.h explains the links between entries.
//
// Tokens: for an entry, time is 0 and task its sequence number; the token is dead once the entry
// has been retired. For a join, time is 1 and task its id. Each held token counts as a reference of
// its join. A join is free when it has no references and is done; any thread may be the one to find
// out.

#include "reorder.h"

#define PWSP_FAN_BIAS (UINT32_C(1) << 31)
#define PWSP_JOIN     (UINT32_C(1) << 31)
#define PWSP_JOIN_MAX (UINT32_C(1) << 30)  // links to one join

#define PWSP_LINK_LEAST 2048u  // there from the start

// -- pieces ---------------------------------------------------------------------------------------

// The piece of an item, and its place there.
PWSP_INLINE uint32_t pwsp_piece_of(uint32_t id) {
    return 31 - (uint32_t)__builtin_clz(id / PWSP_PIECE_FIRST + 1);
}

PWSP_INLINE void *pwsp_pieces_at(const pwsp_pieces *pieces, uint32_t id, size_t item_size) {
    const uint32_t piece = pwsp_piece_of(id);
    return pieces->at[piece] + (id - (PWSP_PIECE_FIRST << piece) + PWSP_PIECE_FIRST) * item_size;
}

PWSP_INLINE pwsp_reorder_link *pwsp_reorder_link_at(const pwsp_reorder *reorder, uint32_t id) {
    return (pwsp_reorder_link *)pwsp_pieces_at(&reorder->links, id, sizeof(pwsp_reorder_link));
}

PWSP_INLINE pwsp_join *pwsp_reorder_join_at(const pwsp_reorder *reorder, uint32_t id) {
    return (pwsp_join *)pwsp_pieces_at(&reorder->joins, id, sizeof(pwsp_join));
}

PWSP_INLINE pwsp_fan *pwsp_reorder_fan(const pwsp_reorder *reorder, uint32_t node) {
    return node & PWSP_JOIN ? &pwsp_reorder_join_at(reorder, node & ~PWSP_JOIN)->fan
                            : &pwsp_reorder_at(reorder, node)->fan;
}

// The id of another item in a list of free ones.
PWSP_INLINE uint32_t *pwsp_pieces_next(const pwsp_pieces *pieces, uint32_t id) {
    return (uint32_t *)pwsp_pieces_at(pieces, id, pieces->item_size);
}

static void pwsp_pieces_begin(pwsp_pieces *pieces) {
    pieces->next = 1;
    pieces->free = pieces->freed = 0;
}

// Does an item of this id exist? Makes its piece if needed; false when memory is out.
static bool pwsp_reorder_has(const pwsp_reorder *reorder, pwsp_pieces *pieces, uint32_t id) {
    const uint32_t piece = pwsp_piece_of(id);
    if (reorder->is_fixed) {
        return id <= pieces->max;
    }
    return piece < PWSP_PIECE_COUNT &&
           (pieces->at[piece] || PWSP_ALLOC(reorder->memory, pieces->at[piece],
                                            (PWSP_PIECE_FIRST << piece) * pieces->item_size));
}

// A free item, or 0.
static uint32_t pwsp_reorder_try(const pwsp_reorder *reorder, pwsp_pieces *pieces) {
    if (!pieces->free) {
        pieces->free = pwsp_exchange_acq_rel(&pieces->freed, 0u);
    }
    const uint32_t id = pieces->free;
    if (id) {
        pieces->free = *pwsp_pieces_next(pieces, id);
        return id;
    }
    return pwsp_reorder_has(reorder, pieces, pieces->next) ? pieces->next++ : 0;
}

// The same. With fixed memory it waits for one: links to an entry come back when that entry is done,
// if none does earlier. 0 when memory is out, which the walking thread then knows.
static uint32_t pwsp_reorder_new(pwsp_reorder *reorder, pwsp_pieces *pieces) {
    uint32_t id = pwsp_reorder_try(reorder, pieces);
    while (!id && reorder->is_fixed) {
        const uint32_t ticket = pwsp_reorder_ticket(reorder);
        id = pwsp_reorder_try(reorder, pieces);  // perhaps since
        if (!id) {
            reorder->executor.help(reorder->executor.user, ticket);
        }
    }
    reorder->is_out_of_memory = reorder->is_out_of_memory || !id;
    return id;
}

// A list of items is free.
static void pwsp_pieces_give_back(pwsp_pieces *pieces, uint32_t first, uint32_t last) {
    uint32_t before = pwsp_load_relaxed(&pieces->freed);
    do {
        *pwsp_pieces_next(pieces, last) = before;
    } while (!pwsp_cas_acq_rel(&pieces->freed, &before, first));
}

// -- joins ----------------------------------------------------------------------------------------

// An open join with one reference; 0 when memory is out.
static uint32_t pwsp_reorder_new_join(pwsp_reorder *reorder) {
    const uint32_t id = pwsp_reorder_new(reorder, &reorder->joins);
    if (!id) {
        return 0;
    }
    pwsp_join *join = pwsp_reorder_join_at(reorder, id);
    pwsp_store_relaxed(&join->fan.waiters, 0u);
    pwsp_store_relaxed(&join->fan.pending, PWSP_FAN_BIAS);
    pwsp_store_relaxed(&join->fan.is_poisoned, 0u);
    pwsp_store_relaxed(&join->refs, 2u);  // and until it is done
    join->count = 0;
    join->is_open = true;
    return id;
}

static void pwsp_reorder_unref(pwsp_reorder *reorder, uint32_t id) {
    pwsp_join *join = pwsp_reorder_join_at(reorder, id);
    uint32_t refs = pwsp_fetch_sub_acq_rel(&join->refs, 1u);
    PTOWSP_ASSERT(refs > 0);
    if (refs == 1) {
        pwsp_pieces_give_back(&reorder->joins, id, id);
    }
}

// -- completing, on any thread --------------------------------------------------------------------

// An entry waits for nothing any more.
static void pwsp_reorder_ready(pwsp_reorder *reorder, uint32_t place, uint32_t by) {
    pwsp_entry *entry = pwsp_reorder_at(reorder, place);
    if (entry->kind == PWSP_ENTRY_LOAD) {  // only the walking thread waits for it
        pwsp_exchange_acq_rel(&entry->fan.waiters, PWSP_WAITERS_CLOSED);
        pwsp_fetch_add_seq_cst(&reorder->done_count, 1u);
        return;
    }
    reorder->executor.ready(reorder->executor.user, by, place);
}

// An entry or join is done: tells its waiters, and the waiters of joins that this completes. Joins
// still to be told about are linked by `next`.
static void pwsp_reorder_complete(pwsp_reorder *reorder, pwsp_fan *fan, uint32_t join,
                                  uint32_t by) {
    uint32_t joins = 0;
    for (;;) {
        uint32_t is_poisoned = pwsp_load_relaxed(&fan->is_poisoned), last = 0;
        uint32_t first = pwsp_exchange_acq_rel(&fan->waiters, PWSP_WAITERS_CLOSED);  // (2)
        PTOWSP_ASSERT(first != PWSP_WAITERS_CLOSED);  // it is done once
        for (uint32_t id = first; id; id = pwsp_reorder_link_at(reorder, id)->next) {
            uint32_t waiter = pwsp_reorder_link_at(reorder, id)->waiter;
            pwsp_fan *other = pwsp_reorder_fan(reorder, waiter);
            if (is_poisoned) {
                pwsp_store_relaxed(&other->is_poisoned, 1u);
            }
            if (pwsp_fetch_sub_acq_rel(&other->pending, 1u) == 1) {  // (3)
                if (waiter & PWSP_JOIN) {
                    pwsp_reorder_join_at(reorder, waiter & ~PWSP_JOIN)->next = joins;
                    joins = waiter & ~PWSP_JOIN;
                } else {
                    pwsp_reorder_ready(reorder, waiter, by);
                }
            }
            last = id;
        }
        if (first) {
            pwsp_pieces_give_back(&reorder->links, first, last);
        }
        if (join) {
            pwsp_reorder_unref(reorder, join);
        }
        if (!joins) {
            return;
        }
        join = joins;
        joins = pwsp_reorder_join_at(reorder, join)->next;
        fan = &pwsp_reorder_join_at(reorder, join)->fan;
    }
}

PWSP_INTERNAL void pwsp_reorder_set_result(pwsp_reorder *reorder, uint32_t place,
                                           ptowsp_cycles result) {
    pwsp_entry *entry = pwsp_reorder_at(reorder, place);
    PTOWSP_ASSERT(entry->kind <= PWSP_ENTRY_PROCESS_TASK && !pwsp_entry_is_done(entry));
    entry->cycles = result;
    if (result > PTOWSP_CYCLES_MAX) {
        pwsp_store_relaxed(&entry->fan.is_poisoned, 1u);
    }
}

PWSP_INTERNAL void pwsp_reorder_run(pwsp_reorder *reorder, uint32_t place, uint32_t lane) {
    const pwsp_entry *entry = pwsp_reorder_at(reorder, place);
    bool is_poisoned = pwsp_load_relaxed(&entry->fan.is_poisoned) != 0;
    pwsp_reorder_set_result(reorder, place,
                            is_poisoned ? ptowsp_task_fail(PTOWSP_SKIPPED)
                                        : reorder->call(reorder->call_user, entry, lane));
}

PWSP_INTERNAL void pwsp_reorder_done(pwsp_reorder *reorder, uint32_t place, uint32_t by) {
    pwsp_reorder_complete(reorder, &pwsp_reorder_at(reorder, place)->fan, 0, by);
    pwsp_fetch_add_seq_cst(&reorder->done_count, 1u);
}

// -- issuing, on the walking thread ---------------------------------------------------------------

PWSP_INTERNAL pwsp_entry *pwsp_reorder_open(pwsp_reorder *reorder, pwsp_entry_kind kind) {
    PTOWSP_ASSERT(!pwsp_reorder_is_full(reorder));
    uint32_t place = (uint32_t)reorder->tail & reorder->place_mask;
    pwsp_entry *entry = pwsp_reorder_at(reorder, place);
    bool is_task = kind <= PWSP_ENTRY_LOAD;
    pwsp_store_relaxed(&entry->fan.waiters, is_task ? 0u : PWSP_WAITERS_CLOSED);
    pwsp_store_relaxed(&entry->fan.pending, PWSP_FAN_BIAS);
    pwsp_store_relaxed(&entry->fan.is_poisoned, 0u);
    entry->home = PWSP_NO_HOME;
    entry->kind = kind;
    entry->cycles = 0;
    reorder->waiter = place;
    reorder->waiter_links = 0;
    return entry;
}

PWSP_INTERNAL void pwsp_reorder_issue(pwsp_reorder *reorder) {
    uint32_t place = (uint32_t)reorder->tail & reorder->place_mask;
    pwsp_entry *entry = pwsp_reorder_at(reorder, place);
    PTOWSP_ASSERT(reorder->waiter == place);  // it has been opened
    reorder->tail++;
    if (entry->kind > PWSP_ENTRY_LOAD) {
        return;
    }
    if (reorder->is_out_of_memory) {  // it may wait for too little
        pwsp_store_relaxed(&entry->fan.is_poisoned, 1u);
    }
    uint32_t excess = PWSP_FAN_BIAS - reorder->waiter_links;
    if (pwsp_fetch_sub_acq_rel(&entry->fan.pending, excess) == excess) {  // (4)
        pwsp_reorder_ready(reorder, place, PWSP_BY_WALK);
    }
}

// Links a node as a waiter, and returns true, if the awaited one is not done yet and the node does
// not wait for it already.
static bool pwsp_reorder_tie(pwsp_reorder *reorder, uint32_t waiter, pwsp_fan *fan) {
    uint32_t first = pwsp_load_acquire(&fan->waiters), id = 0;
    if (first != PWSP_WAITERS_CLOSED) {
        if (first && pwsp_reorder_link_at(reorder, first)->waiter == waiter) {
            return false;  // it waits already, because several tiles are shared
        }
        id = pwsp_reorder_new(reorder, &reorder->links);
        if (!id) {
            return false;
        }
        pwsp_reorder_link *link = pwsp_reorder_link_at(reorder, id);
        link->waiter = waiter;
        while (first != PWSP_WAITERS_CLOSED) {
            link->next = first;
            if (pwsp_cas_acq_rel(&fan->waiters, &first, id)) {  // (1)
                break;
            }
        }
        if (first != PWSP_WAITERS_CLOSED) {
            return true;
        }
        link->next = reorder->links.free;
        reorder->links.free = id;
    }
    if (pwsp_load_relaxed(&fan->is_poisoned)) {
        pwsp_store_relaxed(&pwsp_reorder_fan(reorder, waiter)->is_poisoned, 1u);
    }
    return false;
}

// Closes a join: it is done when all its members are.
static void pwsp_reorder_close(pwsp_reorder *reorder, uint32_t id) {
    pwsp_join *join = pwsp_reorder_join_at(reorder, id);
    if (!join->is_open) {
        return;
    }
    PTOWSP_ASSERT(join->count <= PWSP_JOIN_MAX);
    join->is_open = false;
    uint32_t excess = PWSP_FAN_BIAS - join->count;
    if (pwsp_fetch_sub_acq_rel(&join->fan.pending, excess) == excess) {  // (4)
        pwsp_reorder_complete(reorder, &join->fan, id, PWSP_BY_WALK);
    }
}

// The links of a living token's entry or join; this closes a join. NULL: it is done.
static pwsp_fan *pwsp_reorder_fan_of(pwsp_reorder *reorder, const pwsp_token *token) {
    if (token->task == PTOWSP_NO_INDEX) {
        return NULL;
    }
    if (token->time) {
        pwsp_reorder_close(reorder, (uint32_t)token->task);
        return &pwsp_reorder_join_at(reorder, (uint32_t)token->task)->fan;
    }
    PTOWSP_ASSERT(token->task <= reorder->tail);
    return token->task >= reorder->head ? &pwsp_reorder_entry(reorder, token->task)->fan : NULL;
}

PWSP_INTERNAL void pwsp_reorder_wait(pwsp_reorder *reorder, const pwsp_token *token) {
    pwsp_fan *fan = pwsp_reorder_fan_of(reorder, token);
    if (fan) {
        reorder->waiter_links += pwsp_reorder_tie(reorder, reorder->waiter, fan);
    }
}

// -- tokens ---------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_token pwsp_reorder_token(const pwsp_reorder *reorder) {
    pwsp_token token = {0, reorder->tail};
    return token;
}

PWSP_INTERNAL bool pwsp_reorder_is_dead(void *user, const pwsp_token *token) {
    const pwsp_reorder *reorder = (const pwsp_reorder *)user;
    if (token->task == PTOWSP_NO_INDEX) {
        return true;
    }
    const pwsp_fan *fan;
    if (token->time) {
        const pwsp_join *join = pwsp_reorder_join_at(reorder, (uint32_t)token->task);
        fan = &join->fan;
        bool is_done = join->is_open
                           ? pwsp_load_acquire(&fan->pending) == PWSP_FAN_BIAS - join->count
                           : pwsp_load_acquire(&fan->waiters) == PWSP_WAITERS_CLOSED;
        return is_done && !pwsp_load_relaxed(&fan->is_poisoned);
    }
    if (token->task < reorder->head) {
        return true;
    }
    fan = &pwsp_reorder_entry(reorder, token->task)->fan;
    return pwsp_load_acquire(&fan->waiters) == PWSP_WAITERS_CLOSED &&
           !pwsp_load_relaxed(&fan->is_poisoned);
}

static void pwsp_reorder_visit(void *user, const pwsp_token *token) {
    pwsp_reorder_wait((pwsp_reorder *)user, token);
}

static void pwsp_reorder_keep(void *user, const pwsp_token *token) {
    const pwsp_reorder *reorder = (const pwsp_reorder *)user;
    if (token->time) {
        pwsp_fetch_add_seq_cst(&pwsp_reorder_join_at(reorder, (uint32_t)token->task)->refs, 1u);
    }
}

// Dropping closes a join: nothing is added to it afterwards.
static void pwsp_reorder_drop(void *user, const pwsp_token *token) {
    pwsp_reorder *reorder = (pwsp_reorder *)user;
    if (token->time) {
        pwsp_reorder_close(reorder, (uint32_t)token->task);
        pwsp_reorder_unref(reorder, (uint32_t)token->task);
    }
}

static void pwsp_reorder_set(pwsp_reorder *reorder, pwsp_token *token, const pwsp_token *other) {
    pwsp_token before = *token;
    pwsp_reorder_keep(reorder, other);
    *token = *other;
    pwsp_reorder_drop(reorder, &before);
}

// Adds a member to an open join.
static void pwsp_reorder_join(pwsp_reorder *reorder, uint32_t id, const pwsp_token *token) {
    pwsp_fan *fan = pwsp_reorder_fan_of(reorder, token);
    if (fan) {
        pwsp_reorder_join_at(reorder, id)->count += pwsp_reorder_tie(reorder, id | PWSP_JOIN, fan);
    }
}

PWSP_INTERNAL void pwsp_reorder_merge(void *user, pwsp_token *into, const pwsp_token *other) {
    pwsp_reorder *reorder = (pwsp_reorder *)user;
    PTOWSP_ASSERT(into->time == 0 || !pwsp_token_is_same(into, other));
    if (into->time) {
        pwsp_join *join = pwsp_reorder_join_at(reorder, (uint32_t)into->task);
        if (join->is_open && join->count < PWSP_JOIN_MAX) {
            pwsp_reorder_join(reorder, (uint32_t)into->task, other);
            return;
        }
    }
    if (pwsp_reorder_is_dead(reorder, into)) {
        pwsp_reorder_set(reorder, into, other);
        return;
    }
    uint32_t id = pwsp_reorder_new_join(reorder);
    if (!id) {
        return;
    }
    pwsp_token token = {1, id};
    pwsp_reorder_join(reorder, id, into);
    pwsp_reorder_join(reorder, id, other);
    pwsp_reorder_drop(reorder, into);
    *into = token;
}

PWSP_INTERNAL pwsp_token_ops pwsp_reorder_ops(pwsp_reorder *reorder) {
    pwsp_token_ops ops = {pwsp_reorder_is_dead,
                          pwsp_reorder_visit,
                          pwsp_reorder_keep,
                          pwsp_reorder_drop,
                          pwsp_reorder_merge,
                          reorder,
                          false};
    return ops;
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_reorder_init(pwsp_reorder *reorder, const pwsp_memory *memory,
                                     uint32_t capacity, uint32_t word_count) {
    PTOWSP_ASSERT(capacity > 0 && capacity <= PWSP_FAN_BIAS / 2);
    memset(reorder, 0, sizeof *reorder);
    reorder->memory = memory;
    reorder->capacity = capacity;
    while (reorder->place_mask < capacity - 1) {
        reorder->place_mask = 2 * reorder->place_mask + 1;
    }
    reorder->stride = sizeof(pwsp_entry) + word_count * sizeof(uint64_t);
    reorder->links.item_size = sizeof(pwsp_reorder_link);
    reorder->joins.item_size = sizeof(pwsp_join);
    pwsp_pieces_begin(&reorder->links);
    pwsp_pieces_begin(&reorder->joins);
    bool is_good =
        PWSP_ALLOC(memory, reorder->ring, ((size_t)reorder->place_mask + 1) * reorder->stride) &&
        pwsp_reorder_has(reorder, &reorder->joins, 1);
    for (uint32_t id = 1; is_good && id <= PWSP_LINK_LEAST; id *= 2) {
        is_good = pwsp_reorder_has(reorder, &reorder->links, id);
    }
    return is_good;
}

PWSP_INTERNAL bool pwsp_reorder_fix(pwsp_reorder *reorder, uint32_t link_count,
                                    uint32_t join_count) {
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < PWSP_PIECE_COUNT; i++) {
        const uint32_t first = (PWSP_PIECE_FIRST << i) - PWSP_PIECE_FIRST;  // of the piece
        is_good = (first > link_count || pwsp_reorder_has(reorder, &reorder->links, first)) &&
                  (first > join_count || pwsp_reorder_has(reorder, &reorder->joins, first));
    }
    reorder->is_fixed = true;
    reorder->links.max = link_count;
    reorder->joins.max = join_count;
    return is_good;
}

PWSP_INTERNAL void pwsp_reorder_begin(pwsp_reorder *reorder, const pwsp_executor *executor) {
    PTOWSP_ASSERT(reorder->head == reorder->tail);
    reorder->executor = *executor;
    reorder->head = 0;
    reorder->tail = 0;
    pwsp_pieces_begin(&reorder->links);
    pwsp_pieces_begin(&reorder->joins);
    reorder->is_out_of_memory = false;
}
