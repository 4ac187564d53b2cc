// A graph of tasks: the arrays built, the arrays that sealing derives, and the lanes that run it.
//
// By task, indexed by its number:
//
//      nodes     the function to call                16 bytes
//      counts    how many edges are still to come      8
//      first     where its edges begin in `targets`    4    [first[t], first[t + 1])
//      kinds     how it ended                          1
//      outcomes  status or cause, if it is not done    4
//      links     of ready tasks in no deque            4
//
// By edge: the task before, 4 bytes, as it was added, and the target, 4. Edges are mostly added with
// the task that they lead to: while they come in the order of these, fan-ins say where each leads, and
// there are no `afters`. Few tasks have more properties (a range, a name, a class of priority and
// unit). These live in separate arrays, which only graphs with such tasks have.
//
// A graph whose tasks may add tasks (graph_added.c) has room for them after its own: the arrays by
// task are as long as task_count + added_task_max, and `targets` as edge_count + added_edge_max.

#ifndef PWSP_GRAPH_STATE_H
#define PWSP_GRAPH_STATE_H

#include "../base/arena.h"
#include "../base/wall.h"
#include "../base/context.h"
#include "../base/halt.h"
#include "../base/start.h"
#include "../runtime/arrival.h"
#include "../engine/engine.h"

#define PWSP_GRAPH_NONE PWSP_ENGINE_NONE

#define PWSP_GRAPH_LEVELS 4u  // of priority

typedef struct pwsp_graph_node {
    ptowsp_graph_fn fn;  // NULL: a range, whose index is in user
    void *user;
} pwsp_graph_node;

// Between runs pending is fan_in. A lane that sees a task become ready restores it for the next
// run.
typedef struct pwsp_graph_count {
    uint32_t pending;  // atomic while several lanes work
    uint32_t fan_in;
} pwsp_graph_count;

// A kernel call, in the graph's arena: one block, followed by its arguments and tiles.
typedef struct pwsp_graph_kernel {
    const ptowsp_graph *graph;
    ptowsp_kernel_fn fn;
    void *user;
    ptowsp_task task;      // all fields but index and lane
    ptowsp_cycles cycles;  // returned in run `run_number`; 0: it failed
    uint64_t run_number;
} pwsp_graph_kernel;

typedef struct pwsp_graph_range {
    ptowsp_graph_range_fn fn;
    void *user;
    uint64_t item_count, grain;
    uint32_t task;
    // While it is open:
    pwsp_queue queue;
    PWSP_ALIGNAS(8) uint64_t done;  // atomic: items
    uint64_t failed_begin;          // the lowest failed item; under the graph's lock
    ptowsp_status failed_status;    // its status
    uint32_t is_cut;                // atomic: some items were left out, as the run was cancelled
} pwsp_graph_range;

// The tasks added while a task's function runs, and those still pending. See graph_added.c.
typedef struct pwsp_graph_join {
    const char *fault;  // of its first call that was refused, or NULL
    uint64_t fault_value;
    uint32_t fault_index;  // of the task or edge in that call, or PWSP_GRAPH_NONE
    bool is_edge;
    uint32_t first, last;  // the first tasks of its first and its last part, or PWSP_GRAPH_NONE
    uint32_t count;        // tasks that it has added
    uint32_t pending;      // atomic: those that are not over
    uint32_t failed;       // atomic: the lowest of them that has failed, or PWSP_GRAPH_NONE
    uint32_t is_cut;       // atomic: some were left out, as the run was cancelled
    uint32_t is_open;      // atomic: its function is running
} pwsp_graph_join;

// An added task. The first one of a part has the part's numbers.
typedef struct pwsp_graph_added {
    const char *name;     // the caller's
    uint32_t parent;      // the task that has added it
    uint32_t begin, end;  // its edges in `targets`
    uint32_t part_count;  // tasks of the part
    uint32_t next;        // the first task of its parent's next part, or PWSP_GRAPH_NONE
} pwsp_graph_added;

// The counts of a lane in a run.
typedef struct pwsp_graph_tally {
    uint64_t failed_count, skipped_count;
    uint32_t first_failed;  // PWSP_GRAPH_NONE: none
} pwsp_graph_tally;

enum {
    PWSP_GRAPH_DONE = 0,
    PWSP_GRAPH_FAILED,   // outcome: the status
    PWSP_GRAPH_SKIPPED,  // outcome: the lowest task to blame, or PWSP_GRAPH_NONE
};

// How long tasks take; see graph_lanes.c.
enum { PWSP_GRAPH_LONG = 0, PWSP_GRAPH_MEDIUM, PWSP_GRAPH_SHORT };

// Only the choice of lanes depends on ticks, so a resolution of 0.2 to 1 ns is good enough.
#define PWSP_GRAPH_LONG_TICKS PWSP_TICKS_US
#define PWSP_GRAPH_SHARE_MIN  (50 * PWSP_TICKS_US)  // how long it is alone

// Conditions that make a run not plain, in one word with its halt's.
#define PWSP_GRAPH_HAS_FAILED 0x100u
#define PWSP_GRAPH_IS_CLOCKED 0x200u   // spans are written
#define PWSP_GRAPH_MAY_GROW   0x400u   // its tasks may add tasks
#define PWSP_GRAPH_IS_FULL    0x800u   // it is cancelled because they have added too many
#define PWSP_GRAPH_IS_RANKED  0x1000u  // tasks have priorities, or units have lanes of their own

// Those under which tasks run one by one, but a lane may be alone.
#define PWSP_GRAPH_LETS_BE_ALONE (PWSP_GRAPH_IS_CLOCKED | PWSP_HALT_LIMITED | PWSP_GRAPH_MAY_GROW)

typedef struct pwsp_graph_lane {
    pwsp_engine_lane base;
    bool is_alone;  // no other lane has tasks: no atomic operations on counters
    // The pace of tasks on this lane, and the decisions that depend on it; see graph_lanes.c.
    int pace;
    uint32_t offer_at;            // it offers from this number of private tasks on
    uint32_t grab;                // tasks that it takes back at once
    uint32_t batch;               // sources that it takes at a time
    uint32_t run_count;           // tasks since `looked_at`
    uint64_t looked_at;           // ticks
    uint64_t share_at;            // ticks: when the keeper tries to share again
    uint32_t source, source_end;  // sources that it has taken and not yet run
    uint64_t done_count;          // not yet subtracted from `remaining`
    pwsp_graph_tally tally;
    ptowsp_graph_lane_stats stats;
    uint32_t open_range;  // atomic: index + 1 of the range that it has opened, or 0
} pwsp_graph_lane;

// The arrays of a graph: type, name. `with` is handed to each row. Joins (by task) and added tasks
// exist in graphs whose tasks may add tasks; statistics are of the lanes of the last run, or of the
// cores of its device.
// clang-format off
#define PWSP_GRAPH_ARRAYS(ROW, with)                                                               \
    ROW(with, pwsp_graph_node, nodes)                                                              \
    ROW(with, pwsp_graph_count, counts)                                                            \
    ROW(with, uint32_t, befores) /* by edge */                                                     \
    ROW(with, uint32_t, afters)  /* the same; none if is_sorted */                                 \
    ROW(with, pwsp_graph_range, ranges)                                                            \
    ROW(with, const char *, names) /* by task, as far as name_count */                             \
    ROW(with, uint8_t, classes)    /* by task, as far as class_count, 0 beyond: */                 \
                                   /* unit * PWSP_GRAPH_LEVELS + priority */                       \
    ROW(with, uint32_t, first)                                                                     \
    ROW(with, uint32_t, targets)                                                                   \
    ROW(with, uint32_t, sources)                                                                   \
    ROW(with, uint32_t, links)                                                                     \
    ROW(with, pwsp_ready_link, ranks) /* the same, if is_classed */                                \
    ROW(with, uint32_t, outcomes)                                                                  \
    ROW(with, uint8_t, kinds)                                                                      \
    ROW(with, pwsp_graph_join, joins)                                                              \
    ROW(with, pwsp_graph_added, added)                                                             \
    ROW(with, ptowsp_graph_lane_stats, stats)
// clang-format on

#define PWSP_GRAPH_POINTER(with, type, name)  type *name;
#define PWSP_GRAPH_CAPACITY(with, type, name) uint64_t name;
typedef struct pwsp_graph_arrays {
    PWSP_GRAPH_ARRAYS(PWSP_GRAPH_POINTER, )
} pwsp_graph_arrays;
typedef struct pwsp_graph_capacities {  // of items
    PWSP_GRAPH_ARRAYS(PWSP_GRAPH_CAPACITY, )
} pwsp_graph_capacities;
#undef PWSP_GRAPH_POINTER
#undef PWSP_GRAPH_CAPACITY

// How many tasks may be added, and the error of adding to a task that is not running.
typedef struct pwsp_graph_growth {
    uint64_t task_max, edge_max;
    uint32_t unit_lacks;  // of the device that it runs on: a bit for each unit without cores
    uint64_t stray_task;  // the lowest such task; under the lock
    bool has_stray;
} pwsp_graph_growth;

// The last run, or the present one.
typedef struct pwsp_graph_last {
    uint64_t run_number;    // counts runs, from 1
    uint64_t ran_count;     // its tasks
    uint64_t marked_count;  // kinds and outcomes that have a value
    uint64_t done_count;
    pwsp_graph_tally tally;  // of all lanes
    bool is_marked;          // kinds and outcomes are not all as before a run
} pwsp_graph_last;

// The caller's spans; in ticks while the graph runs.
typedef struct pwsp_graph_record {
    ptowsp_span *spans;
    uint64_t capacity;
    pwsp_wall wall;
} pwsp_graph_record;

// Whether to wake other lanes at all; see pwsp_graph_call_lanes.
typedef struct pwsp_graph_direct {
    bool is_on;           // only the calling lane has been called
    uint32_t count;       // runs without other lanes
    uint32_t hold;        // runs until that is tried again
    uint64_t pool_ticks;  // of the last run on all lanes
} pwsp_graph_direct;

// Written by lanes as they run. Atomic.
typedef struct pwsp_graph_shared {
    uint32_t source_next;   // sources from here on have not been taken
    uint32_t busy_count;    // lanes that have tasks or look for tasks
    uint32_t alone_ticks;   // ticks / 16 per task of a lane that is alone; 0: not known
    uint32_t starts_alone;  // the first lane is to be the keeper
    PWSP_ALIGNAS(8) uint64_t remaining;  // tasks that no lane has reported as done
    uint64_t share_ticks;                // how long the keeper is to be alone
    uint64_t grown;                      // tasks added in this run << 32 | their edges
} pwsp_graph_shared;

struct ptowsp_graph {
    ptowsp_context *context;
    pwsp_memory memory;
    ptowsp_status status;  // the first error of building
    bool is_sealed;
    bool is_ordered;  // all edges lead to higher numbers, so the graph has no cycle
    bool is_sorted;   // edges are in the order of the tasks that they lead to
    bool is_classed;  // some task has a priority, or units have lanes of their own
    bool is_whole;    // of a started run: each lane was called once
    uint32_t lane_count, cube_lane_count;
    pwsp_graph_arrays arrays;
    pwsp_graph_capacities capacities;
    pwsp_arena arena;  // names and kernels
    uint64_t task_count, edge_count;
    uint64_t ready_count;  // tasks without edges to them
    uint64_t range_count, name_count, class_count;
    uint32_t last_after;  // of the last edge
    uint32_t core_count;  // of the device of the last run; 0: it was on lanes
    pwsp_graph_growth growth;
    pwsp_graph_last last;
    pwsp_graph_record record;
    pwsp_graph_direct direct;
    uint64_t time_limit_ns;  // 0: none
    pwsp_start *start;       // of started runs
    pwsp_engine engine;      // the lock of its sleepers protects ranges that fail, and stray_task
    char padding[PWSP_FALSE_SHARING];
    // Read by each task, rarely written.
    pwsp_halt halt;
    uint32_t is_running;    // atomic
    uint32_t source_count;  // in `sources`
    char padding_shared[PWSP_FALSE_SHARING];
    pwsp_graph_shared shared;
    char padding_after[PWSP_FALSE_SHARING];
};

PWSP_INLINE pwsp_graph_lane *pwsp_graph_lane_at(const ptowsp_graph *graph, uint32_t index) {
    return (pwsp_graph_lane *)(void *)pwsp_engine_at(&graph->engine, index);
}

// The span of a task, or NULL.
PWSP_INLINE ptowsp_span *pwsp_graph_span(const ptowsp_graph *graph, uint64_t task) {
    return task < graph->record.capacity ? &graph->record.spans[task] : NULL;
}

// Makes an array longer or shorter, or leaves it as it was: false. New items are not zeroed.
PWSP_INTERNAL bool pwsp_graph_resize(ptowsp_graph *graph, void *array, uint64_t *capacity,
                                     uint64_t count, size_t item_size);

// Makes room in an array of the graph that is too short: it doubles.
PWSP_INTERNAL bool pwsp_graph_grow(ptowsp_graph *graph, void *array, uint64_t *capacity,
                                   uint64_t needed, size_t item_size);

// Calls one of these for an array by name.
#define PWSP_GRAPH_ARRAY(call, graph, name, count)                                                 \
    call(graph, &(graph)->arrays.name, &(graph)->capacities.name, count,                           \
         sizeof *(graph)->arrays.name)
#define PWSP_GRAPH_GROW(graph, name, needed)                                                       \
    ((needed) <= (graph)->capacities.name || PWSP_GRAPH_ARRAY(pwsp_graph_grow, graph, name, needed))

// The name of a task, or NULL.
PWSP_INTERNAL const char *pwsp_graph_name(const ptowsp_graph *graph, uint64_t task);

// The fault of a task, or NULL; and the wrong value, where there is one, else UINT64_MAX.
PWSP_INTERNAL const char *pwsp_graph_task_fault(const ptowsp_graph_task_desc *task,
                                                uint64_t *out_value);

// Adds a kernel of a checked task; NULL when memory is out.
PWSP_INTERNAL pwsp_graph_kernel *pwsp_graph_add_kernel(ptowsp_graph *graph,
                                                       const ptowsp_graph_task_desc *task);

// The fault of a kernel's call, or NULL; and the wrong index, where there is one.
PWSP_INTERNAL const char *pwsp_graph_check_kernel(const ptowsp_graph_call *call,
                                                  uint64_t *out_value);

// The fn of kernel tasks, with a pwsp_graph_kernel as user; and the fn of empty tasks.
PWSP_INTERNAL ptowsp_status pwsp_graph_run_kernel(void *user, uint64_t task, uint32_t lane);
PWSP_INTERNAL ptowsp_status pwsp_graph_do_nothing(void *user, uint64_t task, uint32_t lane);

// Calls a kernel; records nothing.
PWSP_INTERNAL ptowsp_status pwsp_graph_call_kernel(const pwsp_graph_kernel *kernel, uint64_t task,
                                                   uint32_t lane, ptowsp_cycles *out_cycles);

// Work before and after a run of a sealed graph, on lanes or a device. After the run all tallies
// must have been added; returns the status of the run, with an error.
PWSP_INTERNAL void pwsp_graph_begin_run(ptowsp_graph *graph);
PWSP_INTERNAL void pwsp_graph_add_tally(ptowsp_graph *graph, const pwsp_graph_tally *tally);
PWSP_INTERNAL ptowsp_status pwsp_graph_end_run(ptowsp_graph *graph, bool is_whole);

// Seals, once the first building error has been checked.
PWSP_INTERNAL ptowsp_status pwsp_graph_seal(ptowsp_graph *graph);

// Runs a sealed graph on the lanes of the context, which must have been entered; false as
// pwsp_pool_run.
PWSP_INTERNAL bool pwsp_graph_run_lanes(ptowsp_graph *graph);

PWSP_INLINE ptowsp_unit pwsp_graph_unit_of(const ptowsp_graph *graph, uint32_t task) {
    return (ptowsp_unit)(task < graph->class_count ? graph->arrays.classes[task] / PWSP_GRAPH_LEVELS
                                                   : 0);
}

PWSP_INLINE uint32_t pwsp_graph_priority_of(const ptowsp_graph *graph, uint32_t task) {
    return task < graph->class_count ? graph->arrays.classes[task] % PWSP_GRAPH_LEVELS : 0;
}

// The group of lanes that it goes to.
PWSP_INLINE uint32_t pwsp_graph_group_of(const ptowsp_graph *graph, uint32_t task) {
    return (uint32_t)pwsp_unit_lane(pwsp_graph_unit_of(graph, task));
}

// -- tasks that were added ------------------------------------------------------------------------

// Tasks of the current or last run that were added.
PWSP_INLINE uint64_t pwsp_graph_added_count(const ptowsp_graph *graph) {
    return pwsp_load_relaxed(&graph->shared.grown) >> 32;
}

// The edges of a task, in `targets`: from *out_begin to the result.
PWSP_INLINE uint32_t pwsp_graph_row(const ptowsp_graph *graph, uint32_t task, uint32_t *out_begin) {
    if (PWSP_LIKELY(task < graph->task_count)) {
        *out_begin = graph->arrays.first[task];
        return graph->arrays.first[task + 1];
    }
    const pwsp_graph_added *added = &graph->arrays.added[task - graph->task_count];
    *out_begin = added->begin;
    return added->end;
}

// Makes room for them, when sealing. Before a run: none have been added; and after it.
PWSP_INTERNAL bool pwsp_graph_reserve_added(ptowsp_graph *graph);
PWSP_INTERNAL void pwsp_graph_begin_added(ptowsp_graph *graph);
PWSP_INTERNAL void pwsp_graph_end_added(ptowsp_graph *graph);

// A task's function begins, and has returned *status. If that is good, and it has added tasks, these
// count as remaining, and the result is the first task of the first part; the task is over when
// these are. Else the result is PWSP_GRAPH_NONE, *status is the task's, and the *out_dropped tasks
// that it has added are marked as skipped.
PWSP_INTERNAL void pwsp_graph_open(ptowsp_graph *graph, uint32_t task);
PWSP_INTERNAL uint32_t pwsp_graph_close(ptowsp_graph *graph, pwsp_graph_tally *tally, uint32_t task,
                                        ptowsp_status *status, uint64_t *out_dropped);

// The next task after an added one that has no task of its parent before it, or PWSP_GRAPH_NONE;
// `at` is PWSP_GRAPH_NONE at first, with the result of pwsp_graph_close as part.
PWSP_INTERNAL uint32_t pwsp_graph_next_source(const ptowsp_graph *graph, uint32_t *part,
                                              uint32_t at);

// An added task is over, as *task, with *status or skipped. If that completes its parent, *task,
// *status and *is_skipped become the parent's.
PWSP_INTERNAL bool pwsp_graph_leave(ptowsp_graph *graph, uint32_t *task, ptowsp_status *status,
                                    bool *is_skipped);

// -- shared by both ways to run -------------------------------------------------------------------

// Is the task skipped, because the run is cancelled or a predecessor has failed?
PWSP_INLINE bool pwsp_graph_is_unwanted(ptowsp_graph *graph, uint32_t task) {
    return pwsp_halt_is(&graph->halt) ||
           pwsp_load_relaxed(&graph->arrays.kinds[task]) == PWSP_GRAPH_SKIPPED;
}

// Begins a range; records that its items from `begin` on have failed; returns how it ended.
PWSP_INLINE void pwsp_graph_range_begin(pwsp_graph_range *range) {
    range->queue.cursor = 0;
    range->done = 0;
    range->failed_begin = UINT64_MAX;
    range->is_cut = 0;
}
PWSP_INTERNAL void pwsp_graph_range_failed(ptowsp_graph *graph, pwsp_graph_range *range,
                                           uint64_t begin, ptowsp_status status);
PWSP_INLINE ptowsp_status pwsp_graph_range_end(const pwsp_graph_range *range, bool *out_is_cut) {
    const bool has_failed = range->failed_begin != UINT64_MAX;
    *out_is_cut = !has_failed && pwsp_load_relaxed(&range->is_cut);
    return has_failed ? range->failed_status : PTOWSP_OK;
}

// Records how a task ended, and tells its successors if they must not run.
PWSP_INTERNAL void pwsp_graph_mark(ptowsp_graph *graph, pwsp_graph_tally *tally, uint32_t task,
                                   ptowsp_status status, bool is_skipped);

// A task is done, with a status or skipped: marks it, and releases its successors as
// pwsp_graph_step does.
PWSP_INTERNAL uint32_t pwsp_graph_finish(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task,
                                         ptowsp_status status, bool is_skipped);

// Runs a task, skips it, or works on the range that it is; then releases its successors. Returns
// one of the tasks that became ready, or PWSP_GRAPH_NONE; the others are in the lane's deque.
PWSP_INTERNAL uint32_t pwsp_graph_step(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task);

// Helps with a range that another lane has opened; false if none had items left. If it did the last
// items, releases as pwsp_graph_step does.
PWSP_INTERNAL bool pwsp_graph_help(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t *out_task);

// Has some lane opened a range with items left that this lane may do?
PWSP_INTERNAL bool pwsp_graph_has_open_range(const ptowsp_graph *graph,
                                             const pwsp_graph_lane *lane);

PWSP_INLINE void pwsp_graph_push(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    pwsp_engine_push(&graph->engine, &lane->base, task);
}

// One of the edges to a task is done; returns whether it was the last.
PWSP_FORCE_INLINE bool pwsp_graph_release(pwsp_graph_count *count, bool is_alone) {
    if (is_alone) {
        if (count->pending != 1) {
            count->pending--;
            return false;
        }
        count->pending = count->fan_in;
        return true;
    }
    if (pwsp_load_acquire(&count->pending) != 1 &&
        pwsp_fetch_sub_acq_rel(&count->pending, 1u) != 1) {
        return false;
    }
    pwsp_store_relaxed(&count->pending, count->fan_in);
    return true;
}

// Releases all successors of a task, targets [begin, end): returns the first that became ready,
// pushes the others. If asked to, fetches what these need to run.
PWSP_FORCE_INLINE uint32_t pwsp_graph_release_all(ptowsp_graph *graph, pwsp_graph_lane *lane,
                                                  uint32_t begin, uint32_t end, bool is_alone,
                                                  bool fetches) {
    uint32_t next = PWSP_GRAPH_NONE;
    const uint32_t *targets = graph->arrays.targets;
    pwsp_graph_count *counts = graph->arrays.counts;
    for (uint32_t i = begin; i < end; i++) {
        uint32_t target = targets[i];
        if (pwsp_graph_release(&counts[target], is_alone)) {
            if (fetches) {
                __builtin_prefetch(&graph->arrays.nodes[target]);
                __builtin_prefetch(&targets[graph->arrays.first[target]]);
            }
            if (next == PWSP_GRAPH_NONE) {
                next = target;
            } else {
                pwsp_graph_push(graph, lane, target);
            }
        }
    }
    return next;
}

#endif
