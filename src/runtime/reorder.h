// Tasks of a program in flight, in program order: a reorder buffer.
//
// The thread that walks the program issues entries into a ring. Lanes (or cores of a device) run
// them as soon as their dependences are done, in any order. The walking thread retires them in
// program order, so time, results and errors are as in a serial run.
//
//      head                                              tail
//       | done | running | waits | done | ready | waits |  free ...
//       retired in this order ->                        issued ->
//
// Links. An entry has a list of links to its waiters, and a count of its own open dependences. The
// walking thread adds links while others complete entries:
//
//      walking thread, for entry W                   thread that has run entry E
//      pending of W = BIAS                           result of E
//      for each E that it waits for:                 waiters of E: exchange for CLOSED (2)
//        puts a link before waiters of E: CAS (1),   for each link, to W: pending of W - 1 (3)
//        or sees CLOSED: E is done
//      pending of W - (BIAS - its links) (4)
//
// (1), (2): acquire and release, so either (2) sees the link, or (1) sees CLOSED and the result.
// (3), (4): acquire and release; the thread that brings pending to 0 has seen all dependences of W,
// and makes it ready. The links of E then belong to the thread that did (2). It returns them on a
// stack that many push to and only the walking thread empties.
//
// A join stands for several entries at once: the readers of a tile, the children of a parallel
// scope. It is *open* while it may gain members, and done when it has been closed and all members
// are. It has links as entries do. Tokens of the map of regions are entries or joins.
//
// An entry that has failed is *poisoned*, and so is an entry that was skipped because a dependence
// failed; (3) passes that on. Poisoned entries become ready and done like all others, without
// running.
//
// The walking thread names entries by sequence numbers, which are never reused. All other threads
// name them by their places in the ring.

#ifndef PWSP_REORDER_H
#define PWSP_REORDER_H

#include "../base/atomic.h"
#include "deps.h"

#define PWSP_NO_HOME UINT32_MAX
#define PWSP_BY_WALK UINT32_MAX

// A node: it has links, and it may wait.
typedef struct pwsp_fan {
    uint32_t waiters;      // atomic: the first link, 0, or CLOSED
    uint32_t pending;      // atomic
    uint32_t is_poisoned;  // atomic
} pwsp_fan;

typedef enum pwsp_entry_kind {
    PWSP_ENTRY_TASK = 0,
    PWSP_ENTRY_PROCESS_TASK,  // time has been accounted for when it was issued
    PWSP_ENTRY_LOAD,          // of a slot: done as soon as it waits for nothing
    PWSP_ENTRY_MARK           // done when it is issued
} pwsp_entry_kind;

// Behind it in the ring: words of the owner.
typedef struct pwsp_entry {
    pwsp_fan fan;
    uint32_t next;  // for the executor, while it is ready
    uint32_t home;  // the lane or core to run it, or PWSP_NO_HOME
    pwsp_entry_kind kind;
    ptowsp_unit unit;  // of a task
    uint32_t kernel;   // of a task
    uint64_t index;    // of the task
    uint64_t cycles;   // when it is done: its kernel's return value, a failure included
} pwsp_entry;

// Items with ids from 1, which keep their places as their number grows: piece k has FIRST << k of them. An
// item begins with the id of another one, while it is in a list of free ones. The walking thread takes
// items, and any thread gives them back.
#define PWSP_PIECE_FIRST 256u
#define PWSP_PIECE_COUNT 24

typedef struct pwsp_pieces {
    char *at[PWSP_PIECE_COUNT];
    size_t item_size;
    uint32_t max;  // is_fixed: items
    char padding[PWSP_FALSE_SHARING];
    uint32_t next, free;  // of the walking thread: the least id that was never used, a list
    char padding_shared[PWSP_FALSE_SHARING];
    uint32_t freed;  // atomic: a stack
    char padding_after[PWSP_FALSE_SHARING];
} pwsp_pieces;

typedef struct pwsp_reorder_link {
    uint32_t next;
    uint32_t waiter;  // the place of an entry, or a join's id with PWSP_JOIN
} pwsp_reorder_link;

typedef struct pwsp_join {
    uint32_t next;  // also in a list of those to be completed
    pwsp_fan fan;
    uint32_t refs;   // atomic: tokens, and one until it is done
    uint32_t count;  // links to it so far
    bool is_open;
} pwsp_join;

// Runs ready entries. `by` is the value passed to pwsp_reorder_done by the thread that completed
// the last dependence; PWSP_BY_WALK: the walking thread found it ready.
typedef struct pwsp_executor {
    void (*ready)(void *user, uint32_t by, uint32_t place);
    // The walking thread cannot continue until another entry is completed: does useful work, or waits
    // until done_count differs from `ticket`.
    void (*help)(void *user, uint32_t ticket);
    void *user;
} pwsp_executor;

typedef struct pwsp_reorder {
    const pwsp_memory *memory;
    pwsp_executor executor;
    // Runs the kernel of an entry; returns its result.
    ptowsp_cycles (*call)(void *user, const pwsp_entry *entry, uint32_t lane);
    void *call_user;
    char *ring;
    size_t stride;        // bytes of an entry with its words
    uint32_t capacity;    // entries in flight, at most
    uint32_t place_mask;  // places of the ring, a power of two, - 1
    bool is_fixed;        // without a free link or join, waits for one
    pwsp_pieces links, joins;
    // Of the walking thread:
    uint64_t head, tail;    // sequence numbers
    uint32_t waiter;        // the opened entry, the target of links
    uint32_t waiter_links;  // links to it so far
    bool is_out_of_memory;
    char padding_shared[PWSP_FALSE_SHARING];
    uint32_t done_count;  // atomic: counts completions, and wraps
    char padding_after[PWSP_FALSE_SHARING];
} pwsp_reorder;

// Makes room for entries with word_count words, and for some links. False when memory is out.
PWSP_INTERNAL bool pwsp_reorder_init(pwsp_reorder *reorder, const pwsp_memory *memory,
                                     uint32_t capacity, uint32_t word_count);

// Makes room for a number of links and joins, and takes no more memory from then on. There must be
// a join for every token that can be held at once, and one more; and a link for every waiter that
// an entry can have before it is issued.
PWSP_INTERNAL bool pwsp_reorder_fix(pwsp_reorder *reorder, uint32_t link_count,
                                    uint32_t join_count);

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

// Opens a new last entry. Requires that the ring is not full.
PWSP_INTERNAL pwsp_entry *pwsp_reorder_open(pwsp_reorder *reorder, pwsp_entry_kind kind);

// Submits it: it is ready as soon as its dependences are done, perhaps now.
PWSP_INTERNAL void pwsp_reorder_issue(pwsp_reorder *reorder);

// The opened entry waits for a token.
PWSP_INTERNAL void pwsp_reorder_wait(pwsp_reorder *reorder, const pwsp_token *token);

// Tokens. A token that is held outside finished entries has been kept and must be dropped.
PWSP_INTERNAL pwsp_token pwsp_reorder_token(const pwsp_reorder *reorder);  // of the opened entry
PWSP_INTERNAL pwsp_token_ops pwsp_reorder_ops(pwsp_reorder *reorder);      // of the following
PWSP_INTERNAL bool pwsp_reorder_is_dead(void *reorder, const pwsp_token *token);
PWSP_INTERNAL void pwsp_reorder_merge(void *reorder, pwsp_token *into, const pwsp_token *other);

// -- executors, on any thread ---------------------------------------------------------------------

// Runs a ready entry, or skips it if it is poisoned.
PWSP_INTERNAL void pwsp_reorder_run(pwsp_reorder *reorder, uint32_t place, uint32_t lane);

// Records the result of an entry's kernel, or a failure without a call. For executors that do not
// call pwsp_reorder_run, but reorder->call, or nothing.
PWSP_INTERNAL void pwsp_reorder_set_result(pwsp_reorder *reorder, uint32_t place,
                                           ptowsp_cycles result);

// The entry has run: readies its waiters. It must not be touched afterwards.
PWSP_INTERNAL void pwsp_reorder_done(pwsp_reorder *reorder, uint32_t place, uint32_t by);

#endif
