// A run: what is bound to a program, and the state of walking it.

#ifndef PWSP_RUN_H
#define PWSP_RUN_H

#include "../base/context.h"
#include "../time/flow.h"
#include "../time/lanes.h"
#include "../time/pipeline.h"

// What a tile kernel took for the valid sizes that it was last asked about.
typedef struct pwsp_tile_memo {
    bool is_set;
    uint32_t sizes[2 * PTOWSP_TASK_TILE_MAX];
    ptowsp_cycles cycles;
} pwsp_tile_memo;

typedef struct pwsp_issue pwsp_issue;
typedef struct pwsp_crew pwsp_crew;

// Who walks a program with kernels, issuing its tasks: as pwsp_crew_walk does.
typedef ptowsp_status (*pwsp_run_walk_fn)(void *user, ptowsp_run *run);

struct ptowsp_run {
    ptowsp_context *context;
    pwsp_memory memory;
    const ptowsp_program *program;
    uint32_t is_running;  // atomic
    bool is_flow;         // lanes choose: event-driven time
    bool is_time_only;    // this execution
    // Bindings.
    uint64_t *initial;           // cells as a run begins
    bool *is_bound;              // by cell: sizes and symbols
    pwsp_array *arrays;          // by array
    pwsp_bound_csr *csrs;        // by axis
    pwsp_bound_tensor *tensors;  // by tensor
    // Walking.
    uint64_t *cells;
    int64_t *length_sums;          // by array
    pwsp_bound_tensor *effective;  // tensors as this execution sees them
    pwsp_frame *frames;
    bool *is_written;  // by tensor: by a task, through this or another tensor
    uint8_t *unknown;  // by op, for is_written
    bool is_unknown_set;
    pwsp_expander expander;
    // Time.
    pwsp_timed timed;
    pwsp_sim sim;
    pwsp_lanes lanes;
    pwsp_flow flow;
    pwsp_batch batch;  // plain tasks that have run and wait to be issued
    pwsp_pipelines pipelines;
    pwsp_tile_at *wholes;  // of the tensors of a pipeline
    // Tile kernels.
    pwsp_tile_core tile_core;
    ptowsp_cost cost;
    pwsp_tile_memo *memos;  // by kernel
    // On lanes, or on a device; made when that is first asked for.
    pwsp_issue *issue;
    pwsp_crew *crew;
    bool is_issued;         // this execution
    pwsp_run_walk_fn walk;  // by whom it is issued; NULL: by the crew
    void *walk_user;
    // Results.
    uint64_t *critical;
    uint64_t critical_count, critical_capacity;
    bool has_records;
};

// Checks all that a run needs before it walks; finds what is unknown before kernels have run.
PWSP_INTERNAL ptowsp_status pwsp_run_verify(ptowsp_run *run, bool is_time_only);

// Executes as ptowsp_run_execute does, but by somebody who has core_count cores to issue to. The
// context has been entered.
PWSP_INTERNAL ptowsp_status pwsp_run_execute_by(ptowsp_run *run, const ptowsp_run_options *options,
                                                uint32_t core_count, pwsp_run_walk_fn walk,
                                                void *user);

// Begins to walk the program from its start, dry: leaving out what is unknown.
PWSP_INTERNAL void pwsp_run_begin_walk(ptowsp_run *run, bool is_dry);

// Tells time of an event of the walk that is neither a task nor a pipeline; which edges it resets,
// and which element it loads. False with an error in sim.
PWSP_INTERNAL bool pwsp_run_time(ptowsp_run *run, pwsp_event event, pwsp_range reset,
                                 const pwsp_tile_at *load_at);

// The error of the expander, or of sim, as that of the run.
PWSP_INTERNAL ptowsp_status pwsp_run_fail_walk(ptowsp_run *run);
PWSP_INTERNAL ptowsp_status pwsp_run_fail_sim(ptowsp_run *run);

// Makes room for the processes of pipelines. False with the expander's error.
PWSP_INTERNAL bool pwsp_run_begin_pipelines(ptowsp_run *run, const ptowsp_run_options *options);

// Runs the pipeline that the expander is at, and issues it. False with an error in the expander or
// in sim.
PWSP_INTERNAL bool pwsp_run_pipeline(ptowsp_run *run);

// Walks its processes without kernels and tokens. False with the expander's error.
PWSP_INTERNAL bool pwsp_run_pipeline_dry(ptowsp_run *run);

// Do the sizes of a tile kernel's task go together? False with the expander's error.
PWSP_INTERNAL bool pwsp_run_check_tiles(ptowsp_run *run, const pwsp_tile_code *code);

// Runs a tile kernel, or counts it: once for tasks of the same sizes that follow each other. False
// with the expander's error.
PWSP_INTERNAL bool pwsp_run_tiles(ptowsp_run *run, bool is_time_only, ptowsp_cycles *out_cycles);

#endif
