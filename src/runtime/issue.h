// The scheduler: takes what arrives in program order, runs it as soon as it may, and retires it in
// program order.
//
//      arrivals -> issue -> reorder buffer -> executor runs them
//                               | in program order
//                               v
//                            retire -> whoever issues: time, errors
//
// What a task waits for, in real time: tasks that touch the same data, by a map of regions; and the
// structure, explicit edges and streams of the schedule, where it has them.
//
// One thread issues. It retires what is done at the head before it opens the next entry, and helps
// to run tasks while there is no room, an element has to be loaded, or all has been issued. After a
// failure nothing more is issued or retired.
//
// The owner gives this room its arrivals, an executor (reorder.h) and a host, and nothing here knows
// what it schedules. With memory given once (is_fixed) running takes none: what finds no room waits
// until something is done.

#ifndef PWSP_ISSUE_H
#define PWSP_ISSUE_H

#include "deps.h"
#include "precedence.h"
#include "reorder.h"

// The owner, on the thread that issues.
typedef struct pwsp_issue_host {
    // An entry is done and the oldest: a task, a load, a mark. False after a failure.
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
    uint32_t link_count;    // is_fixed: from a task to one that waits; 4 * place_count
} pwsp_issue_desc;

typedef struct pwsp_issue {
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
    // Of the pipeline that is being run:
    uint64_t *process_last;  // by process: sequence of its last task, or PTOWSP_NO_INDEX
    uint64_t process_capacity;
    pwsp_token pipeline_done;
} pwsp_issue;

// False when memory is out; pwsp_issue_free is to be called all the same. The object must not be
// moved, and timed must live as long.
PWSP_INTERNAL bool pwsp_issue_init(pwsp_issue *issue, const pwsp_memory *memory,
                                   const pwsp_timed *timed, const pwsp_issue_desc *desc);
PWSP_INTERNAL void pwsp_issue_free(pwsp_issue *issue);
PWSP_INTERNAL size_t pwsp_issue_bytes(const pwsp_issue *issue);

// Back to nothing in flight, with tensors as they are bound now.
PWSP_INTERNAL void pwsp_issue_begin(pwsp_issue *issue, const pwsp_bound_tensor *bound,
                                    const pwsp_executor *executor, const pwsp_issue_host *host);

// -- the thread that issues -----------------------------------------------------------------------

// An entry behind the last, to be filled in (home, unit, kernel, index, words), and then submitted.
// NULL after a failure.
PWSP_INTERNAL pwsp_entry *pwsp_issue_open(pwsp_issue *issue, pwsp_entry_kind kind);

// Submits the entry that has been opened. False after a failure.
//
//      TASK                   runs when what it waits for is done
//      LOAD                   tiles[0] is an element: returns when what writes it is done
//      PARALLEL, SEQUENTIAL   a scope begins; the arrival may be NULL
//      SCOPE_END              it ends; the arrival may be NULL
//      RESET                  the edges `after` begin anew
PWSP_INTERNAL bool pwsp_issue_submit(pwsp_issue *issue, const pwsp_arrival *arrival);

// Retires what is done at the head. Until there is room, or nothing is in flight. False after a
// failure, all of them.
PWSP_INTERNAL bool pwsp_issue_retire(pwsp_issue *issue);
PWSP_INTERNAL bool pwsp_issue_settle(pwsp_issue *issue);

// Until an entry is done. False after a failure, also of what it waits for.
PWSP_INTERNAL bool pwsp_issue_await(pwsp_issue *issue, const pwsp_entry *entry);

// The owner has found a failure by itself.
PWSP_INTERNAL bool pwsp_issue_fail(pwsp_issue *issue);  // false

// After a failure: waits for what is in flight, and forgets it.
PWSP_INTERNAL void pwsp_issue_drain(pwsp_issue *issue);

// -- pipelines ------------------------------------------------------------------------------------

// All that is before a pipeline has been retired, so it waits for nothing; tasks of one process run
// in order; what follows waits for all of them. `whole` is what it is to what surrounds it.
PWSP_INTERNAL bool pwsp_issue_pipeline_begin(pwsp_issue *issue);
PWSP_INTERNAL void pwsp_issue_pipeline_end(pwsp_issue *issue, const pwsp_arrival *whole);

// Makes room for another process. False after a failure.
PWSP_INTERNAL bool pwsp_issue_has_process(pwsp_issue *issue, uint32_t process);

// Submits the PROCESS_TASK that has been opened.
PWSP_INTERNAL bool pwsp_issue_submit_process(pwsp_issue *issue, uint32_t process,
                                             const pwsp_arrival *arrival);

#endif
