// Collectives between ranks: shared by the rooms of this floor.

#ifndef PWSP_RANKS_H
#define PWSP_RANKS_H

#include "../base/context.h"

PWSP_INTERNAL ptowsp_context *pwsp_ranks_context(const ptowsp_ranks *ranks);
PWSP_INTERNAL ptowsp_links pwsp_ranks_links(const ptowsp_ranks *ranks);

// Closes the communicator as one that has failed: all others get errors.
PWSP_INTERNAL void pwsp_ranks_give_up(ptowsp_ranks *ranks);

// Called for each step of a member, in order.
typedef void (*pwsp_step_fn)(void *user, const ptowsp_collective_step *step);

// Records an error if there is a context to record it in, and returns the status.
PWSP_INTERNAL ptowsp_status pwsp_ranks_fail(ptowsp_context *context, ptowsp_status status,
                                            uint64_t index, const char *format, ...)
    PWSP_PRINTF(4, 5);

// Checks all but the algorithm if it is AUTO.
PWSP_INTERNAL ptowsp_status pwsp_collective_check(ptowsp_context *context,
                                                  const ptowsp_collective *collective);

// Does the kind have the algorithm?
PWSP_INTERNAL bool pwsp_collective_has(ptowsp_collective_kind kind, ptowsp_algorithm algorithm);

// Does the kind reduce?
PWSP_INLINE bool pwsp_collective_reduces(const ptowsp_collective *collective) {
    return collective->kind == PTOWSP_ALL_REDUCE || collective->kind == PTOWSP_REDUCE_SCATTER;
}

// From a member's rank to the next: 1 where none is given.
PWSP_INLINE uint32_t pwsp_stride(uint32_t stride) {
    return stride ? stride : 1;
}

PWSP_INLINE uint32_t pwsp_collective_rank(const ptowsp_collective *collective, uint32_t member) {
    return collective->first + member * pwsp_stride(collective->stride);
}

PWSP_INLINE uint32_t pwsp_collective_member(const ptowsp_collective *collective, uint32_t rank) {
    return (rank - collective->first) / pwsp_stride(collective->stride);
}

// Where part i of count elements begins, of so many parts; i may be `parts`.
PWSP_INLINE uint64_t pwsp_part_at(uint64_t count, uint32_t parts, uint64_t i) {
    return count / parts * i + pwsp_min_u64(i, count % parts);
}

// Visits the steps of a member of a collective that has been checked and has an algorithm. fn NULL:
// only counts. Rounds have the same number on both ends of a message.
PWSP_INTERNAL void pwsp_collective_visit(const ptowsp_collective *collective, uint32_t member,
                                         pwsp_step_fn fn, void *user,
                                         ptowsp_collective_size *out_size);

// The hash of all that members must agree on.
PWSP_INTERNAL uint64_t pwsp_collective_hash(const ptowsp_collective *collective);

// Simulates a collective whose members begin at these times (NULL: all at 0), and writes when each is
// done. Times are in parts of a picosecond, `unit` of them. Links are idle before.
PWSP_INTERNAL ptowsp_status pwsp_collective_time_from(ptowsp_context *context,
                                                      const ptowsp_collective *collective,
                                                      const ptowsp_links *links, uint64_t unit,
                                                      const uint64_t *starts, uint64_t *ends);

// The same where all begin at 0, beside the groups of so many ranks that do the same at once, which
// may share links with it.
PWSP_INTERNAL ptowsp_status pwsp_collective_time_beside(ptowsp_context *context,
                                                        const ptowsp_collective *collective,
                                                        const ptowsp_links *links, uint64_t unit,
                                                        uint32_t rank_count, uint64_t *ends);

// Members that one node has, or 1 if nodes do not have equally many.
PWSP_INTERNAL uint32_t pwsp_links_inner(const ptowsp_collective *collective,
                                        const ptowsp_links *links);

// Are all links as in a description that says nothing of them?
PWSP_INTERNAL bool pwsp_links_are_zero(const ptowsp_links *links);

// Are all links within limits?
PWSP_INTERNAL ptowsp_status pwsp_links_check(ptowsp_context *context, const ptowsp_links *links);

// to = a op b, by element. `to` may be a or b.
PWSP_INTERNAL void pwsp_reduce_elements(ptowsp_reduction reduction, ptowsp_dtype dtype, void *to,
                                        const void *a, const void *b, uint64_t count);

#endif
