// A device made of threads: the host's side, AICPU threads and cores, and what runs on them.
//
//      host thread ----> queues of ready tasks ----> AICPU threads --line--> core threads
//       opens a run       by unit and priority,       each has cores of       run, DONE
//       waits             and by core; one lock       its own
//
// Whatever runs on a device is a job: some entries with numbers, which somebody finds to be ready.
// The scheduler knows of them what is in pwsp_job, and not what they are; graphs and launches are
// jobs.
//
//      ready(entry)         by the host, or by an AICPU thread inside done
//      queue_of(entry)      where it waits
//      take(entry)          a part of it leaves the queue, or all of it
//      is_wanted(entry)     it must run; else pass(entry, part) instead of all that follows
//      run(entry, part)     on a core
//      done(result)         on the AICPU thread of that core
//
// A run is over when somebody has called pwsp_device_finish; then all that is ready has been done.
// AICPU threads that wake too late for a run are not waited for: they enter and leave under the
// lock, and what would be theirs waits for them only if it is bound to their cores.

#ifndef PWSP_DEVICE_H
#define PWSP_DEVICE_H

#include "../base/sleeper.h"
#include "../runtime/handshake.h"
#include "device_memory.h"
#include "graph_state.h"
#include "run.h"

#include "../base/text.h"

#define PWSP_DEVICE_NONE   UINT32_MAX
#define PWSP_DEVICE_QUEUES (PWSP_GRAPH_CLASSES + PTOWSP_DEVICE_CORE_MAX)

// What an AICPU thread sleeps for.
#define PWSP_AWAIT_ANY    1u  // a task that is done, a run, the end
#define PWSP_AWAIT_VECTOR 2u  // a task for one of its free cores of a unit: VECTOR << unit
#define PWSP_AWAIT_CUBE   4u
// And the host: for something that is done, besides.
#define PWSP_AWAIT_DONE 2u

typedef struct pwsp_result {
    uint32_t entry, part;
    uint32_t core;
    ptowsp_status status;  // negative: it failed
    ptowsp_cycles cycles;
} pwsp_result;

typedef struct pwsp_job {
    void *user;
    uint32_t *links;  // by entry: for queues
    // A queue: unit * PWSP_GRAPH_LEVELS + priority, or PWSP_GRAPH_CLASSES + core.
    uint32_t (*queue_of)(void *user, uint32_t entry);
    // Under the device's lock; true: there are more parts. NULL: all are of one part, number 0.
    bool (*take)(void *user, uint32_t entry, uint32_t *out_part);
    bool (*is_wanted)(void *user, uint32_t entry);
    void (*pass)(void *user, uint32_t entry, uint32_t part, uint32_t by);
    void (*run)(void *user, pwsp_result *result);  // writes status and cycles
    void (*done)(void *user, const pwsp_result *result, uint32_t by);
    void (*stop)(void *user);  // from now on nothing is wanted: the device is lost
    // What it is, for an error, whose index it returns.
    uint64_t (*describe)(void *user, uint32_t entry, uint32_t part, ptowsp_text text);
    bool is_awaited;  // the host calls pwsp_device_await
} pwsp_job;

// What a core is given: the result's entry, part and core, and how to run it.
typedef struct pwsp_core_task {
    void (*run)(void *user, pwsp_result *result);
    void *user;
    pwsp_result result;
} pwsp_core_task;

typedef struct pwsp_core {
    PWSP_ALIGNAS(64) pwsp_line line;
    pwsp_core_task task;  // as the line's turn is
    char padding[PWSP_FALSE_SHARING];
    pwsp_sleeper sleeper;
    struct pwsp_aicpu *aicpu;
    uint32_t index, unit;
    pwsp_thread thread;
    bool is_started;
    // Of its AICPU thread.
    bool is_stuck;
    uint32_t entry, part;  // that it was given
    uint64_t given_ns;     // if there is a time limit
    uint64_t task_count;
} pwsp_core;

typedef struct pwsp_pick {
    uint32_t core, entry, part;
} pwsp_pick;

typedef struct pwsp_aicpu {
    struct ptowsp_device *device;
    uint32_t index;
    pwsp_thread thread;
    bool is_started;
    pwsp_sleeper sleeper;
    pwsp_graph_tally tally;
    ptowsp_status failed_status;  // of the lowest failed one, in launches
    // Its cores, all and those that are free, by unit, and busy.
    uint32_t *cores, *free_cores[2], *busy_cores;
    uint32_t core_count, free_count[2], busy_count;
    pwsp_pick *picks;                 // one for each of its cores, and one more
    uint32_t ready_head, ready_tail;  // what it has found to be ready, not yet in queues
    char padding[PWSP_FALSE_SHARING];
} pwsp_aicpu;

typedef struct pwsp_device_graph {
    ptowsp_graph *graph;
    pwsp_graph_tally tally;  // of the host
} pwsp_device_graph;

typedef struct pwsp_device_launch {
    ptowsp_launch desc;
    uint64_t scalars[PTOWSP_TASK_SCALAR_MAX];
    bool is_pinned;       // instance i runs on core i of the unit, and is an entry; else a part
    uint32_t next;        // instance, if it is not pinned; under the lock
    uint32_t remaining;   // atomic: instances
    uint32_t is_stopped;  // atomic
} pwsp_device_launch;

struct ptowsp_device {
    ptowsp_context *context;
    void *block;  // that all but pieces of memory is in
    size_t block_size;
    uint32_t scheduler_count, vector_count, cube_count, core_count;
    uint64_t time_limit_ns;
    uint32_t spin_count, yield_count;  // rounds of waiting, before sleeping
    pwsp_core *cores;
    pwsp_aicpu *aicpus;
    uint32_t *links;  // by core, for launches
    pwsp_device_memory memory;
    // What the job of a run is about. It stays: a core that is stuck may look at it later.
    pwsp_device_graph graph;
    pwsp_device_launch launch;
    ptowsp_run *run;
    uint32_t is_run_stopped;                    // atomic
    uint32_t places[PWSP_FRONTEND_WINDOW_MAX];  // links of a program's entries

    pwsp_sleeper host;  // the host sleeps here
    pwsp_mutex mutex;   // protects queues, is_open, and what is stuck
    bool is_open;       // a run may be entered
    pwsp_job job;       // written while no AICPU thread is inside
    uint32_t head[PWSP_DEVICE_QUEUES], tail[PWSP_DEVICE_QUEUES];  // head: atomic
    uint32_t queued_count[2];  // atomic: entries in the queues of a unit
    uint64_t stuck_index;      // of the first that is stuck, for the error
    uint32_t stuck_part, stuck_core;
    char stuck_text[PTOWSP_NAME_MAX + 64];  // what that is

    char padding[PWSP_FALSE_SHARING];
    uint32_t opened_count;  // atomic: AICPU threads whose cores poll
    uint32_t generation;    // atomic: counts runs
    uint32_t is_closing;    // atomic
    uint32_t inside_count;  // atomic: AICPU threads in the run
    uint32_t is_over;       // atomic: the run is
    uint32_t has_stuck;     // atomic: a core is
    char padding_after[PWSP_FALSE_SHARING];
};

// -- for jobs -------------------------------------------------------------------------------------

// Puts an entry that is ready where AICPU threads find it. `by` is the AICPU thread inside whose
// done or pass it is called, or PWSP_DEVICE_NONE: the host.
PWSP_INTERNAL void pwsp_device_ready(ptowsp_device *device, uint32_t by, uint32_t entry);

// The run is over: all is done. From any thread.
PWSP_INTERNAL void pwsp_device_finish(ptowsp_device *device);

// Lets AICPU threads in; pwsp_device_ready may be called before, too. The job is copied.
PWSP_INTERNAL void pwsp_device_prepare(ptowsp_device *device, const pwsp_job *job);
PWSP_INTERNAL void pwsp_device_begin(ptowsp_device *device);

// Waits, on the host, until a count that done and pass change is not `seen` any more.
PWSP_INTERNAL void pwsp_device_await(ptowsp_device *device, const uint32_t *count, uint32_t seen);

// Waits, on the host, until the run is over, and until all AICPU threads have left it. False if a
// core is stuck, and then the error is made by pwsp_device_fail_stuck.
PWSP_INTERNAL bool pwsp_device_end(ptowsp_device *device);
PWSP_INTERNAL ptowsp_status pwsp_device_fail_stuck(ptowsp_device *device);

// Enters the context for a call that needs the device to be whole. BUSY, or STUCK with an error.
PWSP_INTERNAL ptowsp_status pwsp_device_enter(ptowsp_device *device);

PWSP_INLINE uint32_t pwsp_device_unit_count(const ptowsp_device *device, uint32_t unit) {
    return unit == PTOWSP_UNIT_CUBE ? device->cube_count : device->vector_count;
}

// -- threads --------------------------------------------------------------------------------------

PWSP_INTERNAL void *pwsp_core_main(void *core);
PWSP_INTERNAL void *pwsp_aicpu_main(void *aicpu);

// What an AICPU thread does last; the host, if there is no such thread.
PWSP_INTERNAL void pwsp_aicpu_close(pwsp_aicpu *aicpu);

#endif
