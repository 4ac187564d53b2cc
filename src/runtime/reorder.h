// Tasks of a program in flight, in program order: a reorder buffer.
//
// The thread that walks the program issues entries into a ring. Lanes (or cores of a device) run
// them as soon as what they wait for is done, in any order; the walking thread retires them in
// program order, so that time, results and errors are what they would be one after another.
//
//      head                                              tail
//       | done | running | waits | done | ready | waits |  free ...
//       retired in this order ->                        issued ->
//
// Who waits for whom. An entry has a list of links to those that wait for it, and a count of what
// it waits for itself. The walking thread adds links while others complete entries:
//
//      walking thread, for entry W                   whoever has run entry E
//      pending of W = BIAS                           result of E
//      for each E that it waits for:                 waiters of E: exchange for CLOSED (2)
//        puts a link before waiters of E: CAS (1),   for each link, to W: pending of W - 1 (3)
//        or sees CLOSED: E is done
//      pending of W - (BIAS - its links) (4)
//
// (1), (2): acquire and release, so either the link is seen by (2), or CLOSED and the result by
// (1). (3), (4): acquire and release; whoever brings pending to 0 has seen all that W waits for,
// and makes it ready. The links of E then belong to whoever did (2), who gives them back on a stack
// that many push to and only the walking thread empties.
//
// A join stands for several entries at once: the readers of a tile, the children of a parallel
// scope. It is *open* as long as more may come, and is done when it has been closed and all of them
// are; it has links as entries do. Tokens of the map of regions are entries or joins.
//
// When an entry has failed, or was skipped as something that it waits for has failed, it is
// *poisoned*; (3) hands that on. Poisoned entries are ready and done as all others, without
// running.
//
// Entries are named by sequence numbers, that never come back, as long as only the walking thread
// uses them; and by their places in the ring for all others.

#ifndef PWSP_REORDER_H
#define PWSP_REORDER_H

#include "../base/atomic.h"
#include "deps.h"

#define PWSP_NO_HOME UINT32_MAX
#define PWSP_BY_WALK UINT32_MAX

// What has links, and what waits.
typedef struct pwsp_fan {
    uint32_t waiters;      // atomic: the first link, 0, or CLOSED
    uint32_t pending;      // atomic
    uint32_t is_poisoned;  // atomic
} pwsp_fan;

typedef enum pwsp_entry_kind {
    PWSP_ENTRY_TASK = 0,
    PWSP_ENTRY_PROCESS_TASK,  // time has been accounted for when it was issued
    PWSP_ENTRY_LOAD,          // of a slot: done as soon as it waits for nothing
    PWSP_ENTRY_PARALLEL,      // these are done when they are issued
    PWSP_ENTRY_SEQUENTIAL,
    PWSP_ENTRY_SCOPE_END,
    PWSP_ENTRY_RESET  // of edges
} pwsp_entry_kind;

// Behind it in the ring: words of whoever issues it.
typedef struct pwsp_entry {
    pwsp_fan fan;
    uint32_t next;  // for the executor, while it is ready
    uint32_t home;  // the lane or core that is to run it, or PWSP_NO_HOME
    pwsp_entry_kind kind;
    ptowsp_unit unit;  // of a task
    uint32_t kernel;   // of a task
    uint64_t index;    // of the task
    uint64_t cycles;   // when it is done: what its kernel has returned, a failure included
} pwsp_entry;

typedef struct pwsp_reorder_link {
    uint32_t waiter;  // the place of an entry, or a join's id with PWSP_JOIN
    uint32_t next;
} pwsp_reorder_link;

typedef struct pwsp_join {
    pwsp_fan fan;
    uint32_t refs;   // atomic: tokens, and one until it is done
    uint32_t count;  // links to it so far
    uint32_t next;   // in a list of free ones, or of those to be completed
    bool is_open;
} pwsp_join;

// Runs entries that are ready. `by` is what the one who completed the last thing that an entry
// waited for gave to pwsp_reorder_done; PWSP_BY_WALK: the walking thread found it ready.
typedef struct pwsp_executor {
    void (*ready)(void *user, uint32_t by, uint32_t place);
    // The walking thread can go on only when something has been completed: does something useful,
    // or waits until done_count is not `ticket` any more.
    void (*help)(void *user, uint32_t ticket);
    void *user;
} pwsp_executor;

// Arrays whose items stay where they are when there are more: piece k has FIRST << k of them.
#define PWSP_PIECE_FIRST 256u
#define PWSP_PIECE_COUNT 24

typedef struct pwsp_reorder {
    const pwsp_memory *memory;
    pwsp_executor executor;
    // Runs the kernel of an entry, and says what it returned.
    ptowsp_cycles (*call)(void *user, const pwsp_entry *entry, uint32_t lane);
    void *call_user;
    char *ring;
    size_t stride;                               // bytes of an entry with its words
    uint32_t capacity;                           // entries in flight, at most
    uint32_t place_mask;                         // places of the ring, a power of two, - 1
    bool is_fixed;                               // what finds no link or no join waits for one
    uint32_t link_max, join_max;                 // is_fixed: ids from 1
    pwsp_reorder_link *links[PWSP_PIECE_COUNT];  // from 1
    pwsp_join *joins[PWSP_PIECE_COUNT];          // from 1
    char padding[PWSP_FALSE_SHARING];
    // Of the walking thread:
    uint64_t head, tail;  // sequence numbers
    uint32_t link_count, free_link;
    uint32_t join_count, free_join;
    uint32_t waiter;        // the entry that has been opened: who links lead to
    uint32_t waiter_links;  // how many so far
    bool is_out_of_memory;
    char padding_shared[PWSP_FALSE_SHARING];
    uint32_t done_count;  // atomic: counts completions, and wraps
    uint32_t freed_link;  // atomic: a stack
    uint32_t freed_join;  // atomic: a stack
    char padding_after[PWSP_FALSE_SHARING];
} pwsp_reorder;

// Makes room for entries with word_count words, and for some links. False when memory is out.
PWSP_INTERNAL bool pwsp_reorder_init(pwsp_reorder *reorder, const pwsp_memory *memory,
                                     uint32_t capacity, uint32_t word_count);

// Makes room for so many links and joins, and takes no more memory from then on. For every token
// that can be held at once there must be a join, and one more; for every waiter that an entry can
// have before it is issued there must be a link.
PWSP_INTERNAL bool pwsp_reorder_fix(pwsp_reorder *reorder, uint32_t link_count,
                                    uint32_t join_count);
PWSP_INTERNAL void pwsp_reorder_free(pwsp_reorder *reorder);
PWSP_INTERNAL size_t pwsp_reorder_bytes(const pwsp_reorder *reorder);

// Back to nothing in flight. Requires that all entries are done.
PWSP_INTERNAL void pwsp_reorder_begin(pwsp_reorder *reorder, const pwsp_executor *executor);

PWSP_INLINE pwsp_entry *pwsp_reorder_at(const pwsp_reorder *reorder, uint32_t place) {
    return (pwsp_entry *)(void *)(reorder->ring + place * reorder->stride);
}
PWSP_INLINE pwsp_entry *pwsp_reorder_entry(const pwsp_reorder *reorder, uint64_t sequence) {
    return pwsp_reorder_at(reorder, (uint32_t)sequence & reorder->place_mask);
}
PWSP_INLINE uint64_t *pwsp_entry_words(const pwsp_entry *entry) {
    return (uint64_t *)(uintptr_t)(entry + 1);
}

// -- the walking thread ---------------------------------------------------------------------------

PWSP_INLINE bool pwsp_reorder_is_full(const pwsp_reorder *reorder) {
    return reorder->tail - reorder->head == reorder->capacity;
}

#define PWSP_WAITERS_CLOSED UINT32_MAX

// Acquires what running the entry has written.
PWSP_INLINE bool pwsp_entry_is_done(const pwsp_entry *entry) {
    return pwsp_load_acquire(&entry->fan.waiters) == PWSP_WAITERS_CLOSED;
}

PWSP_INLINE uint32_t pwsp_reorder_ticket(const pwsp_reorder *reorder) {
    return pwsp_load_seq_cst(&reorder->done_count);
}

// Begins the entry behind the last. Requires that the ring is not full.
PWSP_INTERNAL pwsp_entry *pwsp_reorder_open(pwsp_reorder *reorder, pwsp_entry_kind kind);

// Ends it: it is ready as soon as what it waits for is done, perhaps now.
PWSP_INTERNAL void pwsp_reorder_issue(pwsp_reorder *reorder);

// The entry that has been opened waits for what a token stands for.
PWSP_INTERNAL void pwsp_reorder_wait(pwsp_reorder *reorder, const pwsp_token *token);

// Tokens. One that is held, but in entries that are done, has been kept and is to be dropped.
PWSP_INTERNAL pwsp_token pwsp_reorder_token(const pwsp_reorder *reorder);  // of the opened entry
PWSP_INTERNAL pwsp_token_ops pwsp_reorder_ops(pwsp_reorder *reorder);      // of the following
PWSP_INTERNAL bool pwsp_reorder_is_dead(void *reorder, const pwsp_token *token);
PWSP_INTERNAL void pwsp_reorder_visit(void *reorder, const pwsp_token *token);
PWSP_INTERNAL void pwsp_reorder_keep(void *reorder, const pwsp_token *token);
PWSP_INTERNAL void pwsp_reorder_drop(void *reorder, const pwsp_token *token);
PWSP_INTERNAL void pwsp_reorder_merge(void *reorder, pwsp_token *into, const pwsp_token *other);

// -- executors, on any thread ---------------------------------------------------------------------

// Runs a ready entry, or skips it if it is poisoned.
PWSP_INTERNAL void pwsp_reorder_run(pwsp_reorder *reorder, uint32_t place, uint32_t lane);

// Notes what the kernel of an entry has returned, or that it has not been called: a failure. For
// those who do not call pwsp_reorder_run, but reorder->call, or nothing.
PWSP_INTERNAL void pwsp_reorder_set_result(pwsp_reorder *reorder, uint32_t place,
                                           ptowsp_cycles result);

// It has been run: makes ready what waited for it. It must not be touched afterwards.
PWSP_INTERNAL void pwsp_reorder_done(pwsp_reorder *reorder, uint32_t place, uint32_t by);

#endif
