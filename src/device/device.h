// A device made of threads: the host's side, and the jobs that run on its AICPU threads and cores.
//
//      host thread ----> ../runtime/cores: AICPU threads --line--> core threads
//       opens a run       give out ready entries                    run, DONE
//       waits
//
// Graphs, launches and programs are jobs. All tasks of a job run by one function, on a core; it leaves
// its result in the core's task, and the AICPU thread that takes it calls the job's done.
//
// A run is over when pwsp_cores_finish has been called; by then all ready entries are done. AICPU
// threads that wake too late for a run are not waited for: they enter and leave under the lock.
// Only entries that are bound to their cores wait for them.

#ifndef PWSP_DEVICE_H
#define PWSP_DEVICE_H

#include "../exec/run.h"
#include "../graph/graph_state.h"
#include "../runtime/cores.h"
#include "device_memory.h"

#include "../base/text.h"

typedef struct pwsp_core_result {
    uint32_t entry, part;
    uint32_t core;
    ptowsp_status status;  // negative: it failed
    ptowsp_cycles cycles;
    uint64_t start, end;  // ticks, if the job is clocked
} pwsp_core_result;

// A job of a device: the state its cores need, and the handling of results. `user` is the device.
typedef struct pwsp_device_job {
    pwsp_core_job cores;  // without user, links, give, done and lose, which are alike in all
    void (*run)(void *user, pwsp_core_result *result);  // writes status and cycles
    void (*done)(void *user, const pwsp_core_result *result, uint32_t by);
    void (*stop)(void *user);  // once set, is_wanted is false: the device is lost
    // Describes an entry for an error, and returns the error's index.
    uint64_t (*describe)(void *user, uint32_t entry, uint32_t part, ptowsp_output text);
    bool is_clocked;
} pwsp_device_job;

// A core's thread, and its task as it gets it: the result's entry, part and core, and what runs it.
typedef struct pwsp_device_core {
    PWSP_ALIGNAS(64) pwsp_line line;
    pwsp_core_result result;  // matches the line's turn
    void (*run)(void *user, pwsp_core_result *result);
    bool is_clocked;
    pwsp_core *core;
    ptowsp_device *device;
    pwsp_thread thread;
    bool is_started;
} pwsp_device_core;

typedef struct pwsp_device_aicpu {
    ptowsp_device *device;
    pwsp_aicpu *aicpu;
    pwsp_thread thread;
    bool is_started;
    pwsp_graph_tally tally;
    ptowsp_status failed_status;  // of the lowest failed one, in launches
    char padding[PWSP_FALSE_SHARING];
} pwsp_device_aicpu;

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
    void *block;  // the block that holds everything but memory pieces, links and what `cores` has
    size_t block_size;
    pwsp_cores cores;
    pwsp_device_core *threads;  // of cores
    pwsp_device_aicpu *aicpus;
    pwsp_ready_link *links;  // by entry
    uint64_t link_capacity;
    pwsp_device_memory memory;
    pwsp_device_job job;  // written while no AICPU thread is in a run
    // The subject of a run's job. It stays valid: a stuck core may look at it later.
    pwsp_device_graph graph;
    pwsp_device_launch launch;
    pwsp_halt launch_halt;  // apart, as it may be cancelled at any time
    ptowsp_run *run;
    uint32_t is_run_stopped;  // atomic

    // Of the first stuck entry; under the lock of the cores:
    bool has_stuck;
    uint64_t stuck_index;
    uint32_t stuck_part, stuck_core;
    char stuck_text[PTOWSP_NAME_MAX + 64];  // its description

    char padding[PWSP_FALSE_SHARING];
    uint32_t opened_count;  // atomic: AICPU threads whose cores poll
    uint32_t generation;    // atomic: counts runs
    uint32_t is_closing;    // atomic
    uint32_t inside_count;  // atomic: AICPU threads in the run
    char padding_after[PWSP_FALSE_SHARING];
};

// -- for jobs -------------------------------------------------------------------------------------

// Lets AICPU threads in. The first call copies the job; pwsp_cores_ready may follow.
PWSP_INTERNAL void pwsp_device_prepare(ptowsp_device *device, const pwsp_device_job *job);
PWSP_INTERNAL void pwsp_device_begin(ptowsp_device *device);

// Waits, on the host, until the run is finished and all AICPU threads have left it. False if a core
// is stuck; pwsp_device_fail_stuck then makes the error.
PWSP_INTERNAL bool pwsp_device_end(ptowsp_device *device);
PWSP_INTERNAL ptowsp_status pwsp_device_fail_stuck(ptowsp_device *device);

// Makes room for links of so many entries. False when memory is out.
PWSP_INTERNAL bool pwsp_device_reserve(ptowsp_device *device, uint64_t entry_count);

// Enters the context for a call that needs a working device. BUSY, or STUCK with an error.
PWSP_INTERNAL ptowsp_status pwsp_device_enter(ptowsp_device *device);

// The number of tasks of a unit that run at once.
PWSP_INLINE uint32_t pwsp_device_unit_count(const ptowsp_device *device, uint32_t unit) {
    const pwsp_cores *cores = &device->cores;
    return unit == PTOWSP_UNIT_MIX    ? cores->block_count
           : unit == PTOWSP_UNIT_CUBE ? cores->desc.cube_count
                                      : cores->desc.vector_count;
}

// The cores that a device lacks for tasks of a unit, for errors: "needs ...".
PWSP_INLINE const char *pwsp_device_lack(ptowsp_unit unit) {
    return unit == PTOWSP_UNIT_MIX    ? "two vector cores with each cube core, and there are fewer"
           : unit == PTOWSP_UNIT_CUBE ? "a cube core, and there is none"
                                      : "a vector core, and there is none";
}

#endif
