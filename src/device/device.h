// A device made of threads: the host's side, AICPU threads and cores, and the jobs they run.
//
//      host thread ----> queues of ready tasks ----> AICPU threads --line--> core threads
//       opens a run       by unit and priority,       each has cores of       run, DONE
//       waits             and by core; one lock       its own
//
// Everything that runs on a device is a job: numbered entries that become ready. The scheduler
// knows only the fields of pwsp_job. Graphs, launches and programs are jobs.
//
//      ready(entry)         by the host, or by an AICPU thread inside done
//      queue_of(entry)      where it waits
//      take(entry)          a part of it leaves the queue, or all of it
//      has_block(entry)     it takes a cube core and the two vector cores of its block
//      is_wanted(entry)     it must run; else pass(entry, part) replaces all further calls
//      run(entry, part)     on a core
//      done(result)         on the AICPU thread of that core
//
// A run is over when pwsp_device_finish has been called; by then all ready entries are done. AICPU
// threads that wake too late for a run are not waited for: they enter and leave under the lock.
// Only entries that are bound to their cores wait for them.

#ifndef PWSP_DEVICE_H
#define PWSP_DEVICE_H

#include "../base/sleeper.h"
#include "../runtime/handshake.h"
#include "device_memory.h"
#include "../graph/graph_state.h"
#include "../exec/run.h"

#include "../base/text.h"

#define PWSP_DEVICE_NONE   UINT32_MAX
#define PWSP_DEVICE_QUEUES (PWSP_GRAPH_CLASSES + PTOWSP_DEVICE_CORE_MAX)

// The events that an AICPU thread sleeps for:
#define PWSP_AWAIT_ANY    1u  // a finished task, a run, the end
#define PWSP_AWAIT_VECTOR 2u  // a task for one of its free cores of a unit: VECTOR << unit
#define PWSP_AWAIT_CUBE   4u
// The host sleeps for these, and for a finished entry.
#define PWSP_AWAIT_DONE 2u

// How a thread waits before it sleeps: see pwsp_device_spin.
typedef struct pwsp_patience {
    uint32_t round;
    uint32_t hurry;  // waits that are left without yields
} pwsp_patience;

typedef struct pwsp_core_result {
    uint32_t entry, part;
    uint32_t core;
    ptowsp_status status;  // negative: it failed
    ptowsp_cycles cycles;
    uint64_t start, end;  // ticks, if the job is clocked
} pwsp_core_result;

typedef struct pwsp_job {
    void *user;
    uint32_t *links;  // by entry: for queues
    // A queue: unit * PWSP_GRAPH_LEVELS + priority, or PWSP_GRAPH_CLASSES + core.
    uint32_t (*queue_of)(void *user, uint32_t entry);
    // Does it run on a cube core that has its two vector cores meanwhile?
    bool (*has_block)(void *user, uint32_t entry);
    // Under the device's lock; true: more parts remain. NULL: every entry has one part, number 0.
    bool (*take)(void *user, uint32_t entry, uint32_t *out_part);
    bool (*is_wanted)(void *user, uint32_t entry);
    void (*pass)(void *user, uint32_t entry, uint32_t part, uint32_t by);
    void (*run)(void *user, pwsp_core_result *result);  // writes status and cycles
    void (*done)(void *user, const pwsp_core_result *result, uint32_t by);
    void (*stop)(void *user);  // once set, is_wanted is false: the device is lost
    // Describes an entry for an error, and returns the error's index.
    uint64_t (*describe)(void *user, uint32_t entry, uint32_t part, ptowsp_text text);
    bool is_awaited;  // the host calls pwsp_device_await
    bool is_clocked;
} pwsp_job;

// A task as a core gets it: the result's entry, part and core, and the function to run.
typedef struct pwsp_core_task {
    void (*run)(void *user, pwsp_core_result *result);
    void *user;
    bool is_clocked;
    pwsp_core_result result;
} pwsp_core_task;

typedef struct pwsp_core {
    PWSP_ALIGNAS(64) pwsp_line line;
    pwsp_core_task task;  // matches the line's turn
    char padding[PWSP_FALSE_SHARING];
    pwsp_sleeper sleeper;
    struct pwsp_aicpu *aicpu;
    uint32_t index, unit;
    pwsp_thread thread;
    bool is_started;
    pwsp_patience patience;
    // Of its AICPU thread.
    bool is_stuck, is_busy;
    bool is_held;          // a vector core: a task of its block has it, or waits for it
    bool has_block;        // a cube core: its task has its vector cores, or waits for them
    uint32_t entry, part;  // when it was dispatched, or began to wait for its block
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
    pwsp_patience patience;
    pwsp_sleeper sleeper;
    pwsp_graph_tally tally;
    ptowsp_status failed_status;  // of the lowest failed one, in launches
    // Its cores by unit: all of them, the free ones, and the busy ones.
    uint32_t *cores, *free_cores[2], *busy_cores;
    uint32_t core_count, free_count[2], busy_count;
    uint32_t *waiting_cores, waiting_count;  // cube cores whose entries wait for their block
    pwsp_pick *picks;                        // one for each of its cores, and one more
    uint32_t ready_head, ready_tail;         // found ready, not yet in queues
    char padding[PWSP_FALSE_SHARING];
} pwsp_aicpu;

typedef struct pwsp_device_graph {
    ptowsp_graph *graph;
    pwsp_graph_tally tally;  // of the host
} pwsp_device_graph;

typedef struct pwsp_device_launch {
    ptowsp_launch desc;
    uint64_t scalars[PTOWSP_TASK_SCALAR_MAX];
    bool is_pinned;       // instance i runs on core i and is an entry; else it is a part
    uint32_t next;        // instance, if it is not pinned; under the lock
    uint32_t remaining;   // atomic: instances
    uint32_t is_stopped;  // atomic
    uint32_t is_cut;      // atomic: some instance was left out
} pwsp_device_launch;

struct ptowsp_device {
    ptowsp_context *context;
    void *block;  // the block that holds everything but memory pieces
    size_t block_size;
    uint32_t scheduler_count, vector_count, cube_count, core_count;
    uint32_t block_count;  // cube_count, if there are two vector cores for each cube core
    uint64_t time_limit_ns;
    uint32_t spin_count, yield_count;  // rounds of waiting before a sleep
    pwsp_core *cores;
    pwsp_aicpu *aicpus;
    uint32_t *links;  // by core, for launches
    pwsp_device_memory memory;
    // The subject of a run's job. It stays valid: a stuck core may look at it later.
    pwsp_device_graph graph;
    pwsp_device_launch launch;
    pwsp_halt launch_halt;  // apart, as it may be cancelled at any time
    ptowsp_run *run;
    uint32_t is_run_stopped;                    // atomic
    uint32_t places[PWSP_FRONTEND_WINDOW_MAX];  // links of a program's entries

    pwsp_sleeper host;  // the host sleeps here
    pwsp_mutex mutex;   // protects queues, is_open, and the fields of stuck cores
    bool is_open;       // a run may be entered
    pwsp_job job;       // written while no AICPU thread is in a run
    uint32_t head[PWSP_DEVICE_QUEUES], tail[PWSP_DEVICE_QUEUES];  // head: atomic
    uint32_t queued_count[2];  // atomic: entries in the queues of a unit
    uint64_t stuck_index;      // of the first stuck entry, for the error
    uint32_t stuck_part, stuck_core;
    char stuck_text[PTOWSP_NAME_MAX + 64];  // its description

    char padding[PWSP_FALSE_SHARING];
    uint32_t opened_count;  // atomic: AICPU threads whose cores poll
    uint32_t generation;    // atomic: counts runs
    uint32_t is_closing;    // atomic
    uint32_t inside_count;  // atomic: AICPU threads in the run
    uint32_t is_over;       // atomic: the run is finished
    uint32_t has_stuck;     // atomic: a core is stuck
    char padding_after[PWSP_FALSE_SHARING];
};

// -- for jobs -------------------------------------------------------------------------------------

// Puts a ready entry where AICPU threads find it. `by` is the AICPU thread whose done or pass makes
// this call, or PWSP_DEVICE_NONE for the host.
PWSP_INTERNAL void pwsp_device_ready(ptowsp_device *device, uint32_t by, uint32_t entry);

// The run is finished: all entries are done. From any thread.
PWSP_INTERNAL void pwsp_device_finish(ptowsp_device *device);

// Lets AICPU threads in. pwsp_device_ready may be called earlier. The job is copied.
PWSP_INTERNAL void pwsp_device_prepare(ptowsp_device *device, const pwsp_job *job);
PWSP_INTERNAL void pwsp_device_begin(ptowsp_device *device);

// Waits, on the host, until a count that done and pass change differs from `seen`.
PWSP_INTERNAL void pwsp_device_await(ptowsp_device *device, const uint32_t *count, uint32_t seen);

// Waits, on the host, until the run is finished and all AICPU threads have left it. False if a core
// is stuck; pwsp_device_fail_stuck then makes the error.
PWSP_INTERNAL bool pwsp_device_end(ptowsp_device *device);
PWSP_INTERNAL ptowsp_status pwsp_device_fail_stuck(ptowsp_device *device);

// Enters the context for a call that needs a working device. BUSY, or STUCK with an error.
PWSP_INTERNAL ptowsp_status pwsp_device_enter(ptowsp_device *device);

// The number of tasks of a unit that run at once.
PWSP_INLINE uint32_t pwsp_device_unit_count(const ptowsp_device *device, uint32_t unit) {
    return unit == PTOWSP_UNIT_MIX    ? device->block_count
           : unit == PTOWSP_UNIT_CUBE ? device->cube_count
                                      : device->vector_count;
}

// What a device lacks that can run no task of a unit, for errors: "needs ...".
PWSP_INLINE const char *pwsp_device_lack(ptowsp_unit unit) {
    return unit == PTOWSP_UNIT_MIX    ? "two vector cores with each cube core, and there are fewer"
           : unit == PTOWSP_UNIT_CUBE ? "a cube core, and there is none"
                                      : "a vector core, and there is none";
}

// The block of a core; its cube core, and vector core i of it. Vector cores behind those of blocks
// have the numbers of further blocks.
PWSP_INLINE uint32_t pwsp_device_block_of(const ptowsp_device *device, uint32_t core) {
    return core >= device->vector_count     ? core - device->vector_count
           : core < 2 * device->block_count ? core / 2
                                            : core - device->block_count;
}

PWSP_INLINE pwsp_core *pwsp_device_block_core(ptowsp_device *device, const pwsp_core *cube,
                                              uint32_t i) {
    PTOWSP_ASSERT(cube->unit == PTOWSP_UNIT_CUBE && device->block_count > 0 && i < 2);
    return &device->cores[2 * pwsp_device_block_of(device, cube->index) + i];
}

// -- threads --------------------------------------------------------------------------------------

// Waits a little, as pwsp_spin does. A yield to a program that computes, and has nothing to do with the
// device, takes its whole slice, which is milliseconds; a thread that sleeps is let in when it is called.
// So after a yield that has taken PWSP_DEVICE_LATE_TICKS this wait and the next ones have none. (Beside
// eight such programs on its processor, a soak case of 0.04 s took 14 s, and takes 0.8 s so.)
#define PWSP_DEVICE_LATE_TICKS (200 * PWSP_TICKS_US)
#define PWSP_DEVICE_HURRY      256u

PWSP_INTERNAL bool pwsp_device_spin(const ptowsp_device *device, pwsp_patience *patience);

// The same after a yield has taken so long.
PWSP_INLINE void pwsp_device_yielded(pwsp_patience *patience, uint64_t ticks) {
    patience->hurry = ticks >= PWSP_DEVICE_LATE_TICKS ? PWSP_DEVICE_HURRY : patience->hurry;
}

PWSP_INTERNAL void *pwsp_core_main(void *core);
PWSP_INTERNAL void *pwsp_aicpu_main(void *aicpu);

// The last step of an AICPU thread; the host takes it for a thread that never started.
PWSP_INTERNAL void pwsp_aicpu_close(pwsp_aicpu *aicpu);

#endif
