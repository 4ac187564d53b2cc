// Pipelines of a run: each runs on a time of its own and is then issued to time like a task.

#ifndef PWSP_RUN_PIPELINES_H
#define PWSP_RUN_PIPELINES_H

#include "../result/recorder.h"
#include "../csp/pipeline.h"
#include "../time/timeline.h"
#include "walk.h"

// Runs the tasks of processes, where the walk does not run them itself at once. False with the
// error of the expander, or of time.
typedef struct pwsp_process_tasks {
    // Runs the expander's current task, or accounts for it and lets it run later.
    bool (*task)(void *user, uint32_t process, ptowsp_cycles *out_cycles);
    bool (*load)(void *user);    // waits for the writer of a slot load's element, and loads it
    bool (*settle)(void *user);  // waits for all tasks, before a deadlock is reported
    void *user;
} pwsp_process_tasks;

typedef struct pwsp_pipes {
    pwsp_walk *walk;
    pwsp_timeline *time;
    pwsp_pipelines pipelines;
    pwsp_process_tasks tasks;
    pwsp_recorder *clocked;         // gets the wall clock of tasks; NULL: off
    pwsp_wall_mark mark;            // of a task that `tasks` has run at once
    pwsp_tile_at *wholes;           // of the tensors of a pipeline
    pwsp_pipeline_arrival arrival;  // of the last pipeline
    bool is_held;                   // it has run, and is still to be issued
} pwsp_pipes;

// False when memory is out. The object must not be moved.
PWSP_INTERNAL bool pwsp_pipes_init(pwsp_pipes *pipes, pwsp_walk *walk, pwsp_timeline *time);

// Makes room for the processes of pipelines. With tasks NULL the walk runs their tasks. False with
// the expander's error.
PWSP_INTERNAL bool pwsp_pipes_begin(pwsp_pipes *pipes, const ptowsp_run_options *options,
                                    const pwsp_process_tasks *tasks);

// A finished pipeline, as its surroundings see it.
PWSP_INTERNAL void pwsp_pipes_arrival(pwsp_pipes *pipes, const pwsp_pipeline_op *op,
                                      uint64_t first_task, uint64_t cycles,
                                      pwsp_pipeline_arrival *arrival);

// Runs the expander's current pipeline and issues it to time, as pipes->arrival. False with an error
// in the expander or in sim, or if sim holds it: it is issued when this is called again.
PWSP_INTERNAL bool pwsp_pipes_run(pwsp_pipes *pipes);

// Walks its processes without kernels and tokens. False with the expander's error.
PWSP_INTERNAL bool pwsp_pipes_dry(pwsp_pipes *pipes);

#endif
