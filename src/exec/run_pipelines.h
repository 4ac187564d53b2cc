// Pipelines of a run: each is run on a time of its own, and then issued to time like a task.

#ifndef PWSP_RUN_PIPELINES_H
#define PWSP_RUN_PIPELINES_H

#include "../time/pipeline.h"
#include "../time/timeline.h"
#include "call.h"

// How the tasks of processes are run, where that is not at once, by the walk itself. False with the
// error of the expander, or of time.
typedef struct pwsp_process_tasks {
    // Runs the task that the expander is at, or only counts it and lets it run later.
    bool (*task)(void *user, uint32_t process, ptowsp_cycles *out_cycles);
    bool (*load)(void *user);    // waits for what writes the element of a slot load, and loads it
    bool (*settle)(void *user);  // waits for all tasks, before a pipeline is told to be stuck
    void *user;
} pwsp_process_tasks;

typedef struct pwsp_pipes {
    pwsp_walk *walk;
    pwsp_timeline *time;
    pwsp_pipelines pipelines;
    pwsp_process_tasks tasks;
    pwsp_tile_at *wholes;  // of the tensors of a pipeline
} pwsp_pipes;

// False when memory is out; pwsp_pipes_free is to be called all the same. The object must not be
// moved.
PWSP_INTERNAL bool pwsp_pipes_init(pwsp_pipes *pipes, pwsp_walk *walk, pwsp_timeline *time);
PWSP_INTERNAL void pwsp_pipes_free(pwsp_pipes *pipes);
PWSP_INTERNAL size_t pwsp_pipes_bytes(const pwsp_pipes *pipes);

// Makes room for the processes of pipelines. With tasks NULL the walk runs what is in them. False
// with the expander's error.
PWSP_INTERNAL bool pwsp_pipes_begin(pwsp_pipes *pipes, const ptowsp_run_options *options,
                                    const pwsp_process_tasks *tasks);

// What a pipeline that has been run is to what surrounds it.
PWSP_INTERNAL void pwsp_pipes_arrival(pwsp_pipes *pipes, const pwsp_pipeline_op *op,
                                      uint64_t first_task, uint64_t cycles,
                                      pwsp_pipeline_arrival *arrival);

// Runs the pipeline that the expander is at, and issues it to time, as *out_arrival. False with an
// error in the expander or in sim.
PWSP_INTERNAL bool pwsp_pipes_run(pwsp_pipes *pipes, pwsp_pipeline_arrival *out_arrival);

// Walks its processes without kernels and tokens. False with the expander's error.
PWSP_INTERNAL bool pwsp_pipes_dry(pwsp_pipes *pipes);

#endif
