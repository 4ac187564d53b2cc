// A run: the bindings of a program, the walk over it, its time, and the executors of its tasks.

#ifndef PWSP_RUN_H
#define PWSP_RUN_H

#include "../base/atomic.h"
#include "../base/start.h"
#include "../result/result.h"
#include "frontend.h"
#include "workers.h"

// Executes a program's tasks: issues them through the run's front end, as lanes of the context do.
typedef ptowsp_status (*pwsp_run_issue_fn)(void *user, ptowsp_run *run);

// Settings that all tasks of a walk share.
typedef struct pwsp_run_mode {
    bool is_time_only, has_plain, has_data, is_clocked;
    bool has_meeting;  // a task that communicates may be held, so each is issued alone
} pwsp_run_mode;

struct ptowsp_run {
    ptowsp_context *context;  // the owner's, or the context of a started execution
    ptowsp_context *owner;
    const ptowsp_program *program;
    uint32_t is_running;  // atomic; of a started run until it has been waited for
    pwsp_blocks blocks;   // all memory of the parts
    pwsp_memory memory;
    pwsp_bindings bindings;
    pwsp_timed timed;
    pwsp_timeline time;
    pwsp_walk walk;
    pwsp_pipes pipes;
    pwsp_run_mode mode;
    pwsp_batch batch;  // plain tasks that have run and await issue
    pwsp_event held;  // at which the walk is held, until other ranks continue; NONE: it is not held
    pwsp_arrival held_arrival;
    // On lanes, or on a device; made at the first such execution.
    pwsp_frontend *front;
    pwsp_workers *workers;
    bool keeps;                    // the walking lane runs the tasks itself
    bool has_kept;                 // as it did when the last execution ended
    pwsp_result result;            // of the last execution
    ptowsp_record_options record;  // of the next one
    bool is_strict;                // it is compared with a fingerprint:
    ptowsp_fingerprint expected;   // with its parts that are not 0
    // A started execution.
    pwsp_start *start;
    ptowsp_run_options started;
    bool has_lanes;                   // the context is busy with it
    ptowsp_context **device_context;  // of the device that it is on, or NULL
};

PWSP_INLINE bool pwsp_run_is_running(const ptowsp_run *run) {
    return pwsp_load_relaxed(&run->is_running) != 0;
}

// Options as they are given, or all zero.
PWSP_INLINE ptowsp_run_options pwsp_run_options(const ptowsp_run_options *options) {
    PWSP_ZERO(ptowsp_run_options, chosen);
    return options ? *options : chosen;
}

// The run is claimed, by one execution at a time: false if it already is. Nothing is cancelled yet.
PWSP_INTERNAL bool pwsp_run_claim(ptowsp_run *run, const ptowsp_run_options *options);
PWSP_INTERNAL void pwsp_run_leave(ptowsp_run *run);

// An execution has ended with a status: of one that has failed, other ranks are told.
PWSP_INTERNAL void pwsp_run_give_up(ptowsp_run *run, ptowsp_status status);
PWSP_INTERNAL ptowsp_status pwsp_run_check_options(ptowsp_run *run,
                                                   const ptowsp_run_options *options);
PWSP_INTERNAL bool pwsp_run_is_on_lanes(const ptowsp_run_options *options);

// Executes a claimed run whose options have been checked, on the calling thread and lanes.
PWSP_INTERNAL ptowsp_status pwsp_run_execute_here(ptowsp_run *run,
                                                  const ptowsp_run_options *options);

// Starts a claimed run: fn(user) executes it on its thread, with run->start->inner as its context.
// After an error the run is still claimed.
PWSP_INTERNAL ptowsp_status pwsp_run_start_by(ptowsp_run *run, const ptowsp_run_options *options,
                                              pwsp_start_fn fn, void *user);
// Gives the caller's context back to a run that has been started, and leaves it.
PWSP_INTERNAL void pwsp_run_end_start(ptowsp_run *run);

// Executes a claimed run as ptowsp_run_execute does, on an executor with core_count cores. The
// context must have been entered.
PWSP_INTERNAL ptowsp_status pwsp_run_execute_by(ptowsp_run *run, const ptowsp_run_options *options,
                                                uint32_t core_count, pwsp_run_issue_fn issue,
                                                void *user);

// Walks the program without kernels. *out_count is its number of tasks, or a number that is enough
// for start_threshold; UINT64_MAX when that depends on data that tasks write.
PWSP_INTERNAL ptowsp_status pwsp_run_walk_dry(ptowsp_run *run, uint64_t *out_count);

// Walks the program with kernels and time. BUSY: it is held until other ranks continue, and is then to
// be walked on.
PWSP_INTERNAL ptowsp_status pwsp_run_walk(ptowsp_run *run, bool is_time_only);
PWSP_INTERNAL ptowsp_status pwsp_run_walk_on(ptowsp_run *run);

// On lanes, with nothing in flight: runs tasks as long as they are to be kept. *out_event is END, or the
// event that is to be issued, which has been walked; NONE: no such event yet.
PWSP_INTERNAL ptowsp_status pwsp_run_walk_kept(ptowsp_run *run, pwsp_event *out_event);

// The parts of an execution on the calling thread, of a claimed run whose options have been checked:
// all before the walk, and all after it. After an error of the first part, too, comes the last.
PWSP_INTERNAL ptowsp_status pwsp_run_open(ptowsp_run *run, const ptowsp_run_options *options);
PWSP_INTERNAL ptowsp_status pwsp_run_finish(ptowsp_run *run, ptowsp_status status);

// Copies the error of the walk, or of time, to the run.
PWSP_INTERNAL ptowsp_status pwsp_run_fail_walk(ptowsp_run *run);
PWSP_INTERNAL ptowsp_status pwsp_run_fail_time(ptowsp_run *run);

// Issues the program's tasks to an executor, through the front end.
PWSP_INTERNAL ptowsp_status pwsp_run_issue_to(ptowsp_run *run, const pwsp_executor *executor,
                                              uint32_t vector_count, uint32_t cube_count);

#endif
