// The scheduler: takes arrivals in program order, runs each as soon as its dependences allow, and
// retires them in program order.
//
//      arrivals -> issue -> reorder buffer -> executor runs them
//                               | in program order
//                               v
//                            retire -> owner: time, errors
//
// The dependences of a task in real time: tasks that access the same data, by a map of regions; and
// the structure, explicit edges and streams of the schedule, where it has them.
//
// One thread issues. It retires finished entries at the head before it opens the next entry. It
// helps to run tasks while room is short, while an element has to be loaded, or once all has
// been issued. After a failure nothing more is issued or retired.
//
// The owner provides arrivals, an executor (reorder.h) and a host; the scheduler does not know what
// it schedules. With fixed memory (is_fixed) running allocates none: an entry without room waits
// until others finish.

#ifndef PWSP_ISSUE_H
#define PWSP_ISSUE_H

#include "../base/block_list.h"
#include "deps.h"
#include "precedence.h"
#include "reorder.h"

// The owner's callbacks, on the issuing thread.
typedef struct pwsp_issue_host {
    // The oldest entry is done: a task, a load, a mark. False after a failure.
    bool (*retire)(void *user, const pwsp_entry *entry);
    void (*no_memory)(void *user);  // a failure; not where memory is fixed
    void *user;
} pwsp_issue_host;

// Zero means the default, where there is one.
typedef struct pwsp_issue_desc {
    uint32_t place_count;   // entries in flight: tasks and marks; required
    uint32_t task_max;      // tasks in flight; place_count
    uint32_t word_count;    // of each entry, for the owner
    uint32_t tile_max;      // of one task; PTOWSP_TASK_TILE_MAX
    bool is_fixed;          // all memory is taken beforehand
    uint32_t region_count;  // is_fixed: tiles in the map; place_count * tile_max
    uint32_t link_count;    // is_fixed: from a task to its waiters; 4 * place_count
} pwsp_issue_desc;

typedef struct pwsp_issue {
    pwsp_blocks blocks;  // all memory of the parts
    pwsp_memory memory;
    pwsp_issue_desc desc;  // defaults filled in
    const pwsp_timed *timed;
    pwsp_reorder reorder;
    pwsp_precedence order;
    pwsp_deps deps;
    pwsp_issue_host host;
    uint32_t task_count;  // in flight
    uint32_t task_count_max;
    bool has_failed;
    // Of the running pipeline:
    uint64_t *process_last;  // by process: sequence of its last task, or PTOWSP_NO_INDEX
    uint64_t process_capacity;
    pwsp_token pipeline_done;
} pwsp_issue;

// False when memory is out; pwsp_issue_free must still be called. The object must not be moved, and
// timed must live as long.
PWSP_INTERNAL bool pwsp_issue_init(pwsp_issue *issue, const pwsp_memory *memory,
                                   const pwsp_timed *timed, const pwsp_issue_desc *desc);
PWSP_INTERNAL void pwsp_issue_free(pwsp_issue *issue);

// Back to nothing in flight, with tensors as they are bound now.
PWSP_INTERNAL void pwsp_issue_begin(pwsp_issue *issue, const pwsp_bound_tensor *bound,
                                    const pwsp_executor *executor, const pwsp_issue_host *host);

// -- the issuing thread ---------------------------------------------------------------------------

// A new last entry; the caller fills it in (home, unit, kernel, index, words) and submits it. NULL
// after a failure.
PWSP_INTERNAL pwsp_entry *pwsp_issue_open(pwsp_issue *issue, pwsp_entry_kind kind);

// Submits the opened entry. False after a failure.
//
//      TASK   runs when its dependences are done
//      LOAD   tiles[0] is an element: returns when its writer is done
PWSP_INTERNAL bool pwsp_issue_submit(pwsp_issue *issue, const pwsp_arrival *arrival);

// Issues a mark, as an entry of its own, whose words begin with it. False after a failure. While nothing
// is in flight the owner may run tasks itself, and needs no entries for the events between them: then
// pwsp_precedence_mark is enough.
PWSP_INTERNAL bool pwsp_issue_mark(pwsp_issue *issue, const pwsp_mark *mark);

// The mark of an entry. Its edges live until then.
PWSP_INLINE pwsp_mark pwsp_entry_mark(const pwsp_entry *entry) {
    pwsp_mark mark;
    memcpy(&mark, pwsp_entry_words(entry), sizeof mark);
    return mark;
}

// Retire finished entries at the head: the first until there is room, the second until nothing is
// in flight. False after a failure, as for the next two.
PWSP_INTERNAL bool pwsp_issue_retire(pwsp_issue *issue);
PWSP_INTERNAL bool pwsp_issue_settle(pwsp_issue *issue);

// Retires until an entry is done. False after a failure, also of its dependences.
PWSP_INTERNAL bool pwsp_issue_await(pwsp_issue *issue, const pwsp_entry *entry);

// The owner reports a failure of its own.
PWSP_INTERNAL bool pwsp_issue_fail(pwsp_issue *issue);  // false

// After a failure: waits for entries in flight, and forgets it.
PWSP_INTERNAL void pwsp_issue_drain(pwsp_issue *issue);

// -- pipelines ------------------------------------------------------------------------------------

// Everything before a pipeline has been retired, so the pipeline waits for nothing. Tasks of one
// process run in order. Later entries wait for all of them. `whole` is the pipeline as its
// surroundings see it.
PWSP_INTERNAL bool pwsp_issue_pipeline_begin(pwsp_issue *issue);
PWSP_INTERNAL void pwsp_issue_pipeline_end(pwsp_issue *issue, const pwsp_arrival *whole);

// Makes room for another process. False after a failure.
PWSP_INTERNAL bool pwsp_issue_has_process(pwsp_issue *issue, uint32_t process);

// Submits the opened PROCESS_TASK.
PWSP_INTERNAL bool pwsp_issue_submit_process(pwsp_issue *issue, uint32_t process,
                                             const pwsp_arrival *arrival);

#endif
