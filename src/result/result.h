// The result of an execution: all that reports know of a run.
//
//      time      --> stats, lanes
//      pipelines --> stats of processes and channels, steps, chains
//      recorder  --> records, edges, sums, wall clock
//      bindings  --> values, places of transient tensors
//
// A run owns it. Each part is filled where it is found, as tasks retire, and nothing is copied: what
// clocks count while they run stays theirs, and is pointed to. For everybody else it is const.

#ifndef PWSP_RESULT_H
#define PWSP_RESULT_H

#include "../base/context.h"
#include "../data/placement.h"
#include "../csp/pipeline.h"
#include "recorder.h"

#define PWSP_RESULT_ON_DEVICE UINT32_MAX

typedef struct pwsp_result {
    ptowsp_context *context;  // for errors and memory
    const ptowsp_program *program;
    // Of time.
    const pwsp_timed *timed;
    const ptowsp_run_stats *stats;
    const ptowsp_lane_stats *lanes;
    const pwsp_pipelines *pipelines;
    bool has_rings;  // or depths, or a window that retires in order
    // Bindings.
    const uint64_t *values;     // by cell
    const bool *is_placed;      // transient tensors have been
    const pwsp_placed *placed;  // by transient tensor
    const pwsp_placement *placement;
    // Of tasks, and the critical path.
    pwsp_recorder recorder;
    uint64_t *critical;
    uint64_t critical_count, critical_capacity;
    bool has_records;  // of tasks
    bool has_clock;    // and their wall clock
    // How the last execution went.
    uint32_t lanes_used;  // or PWSP_RESULT_ON_DEVICE; 0: never executed
    bool is_time_only;
    ptowsp_model model;  // of the cycles of tile kernels
    bool has_dry_walk;   // before it
    bool is_plain;       // tasks were timed in batches, where one lane walked
    bool is_done;        // it was OK, so there are results
} pwsp_result;

// The result that a run owns.
PWSP_INTERNAL const pwsp_result *pwsp_run_result(const ptowsp_run *run);

// Forgets the last execution, before one on so many lanes.
PWSP_INTERNAL void pwsp_result_forget(pwsp_result *result, uint32_t lanes_used);

// Finds the critical path, of records of all tasks. False when memory is out.
PWSP_INTERNAL bool pwsp_result_find_critical(pwsp_result *result);

PWSP_INLINE bool pwsp_result_has_edges(const pwsp_result *result) {
    return result->has_records && result->recorder.options.level >= PTOWSP_RECORD_EDGES;
}

// Has anything been recorded? Then there are sums.
PWSP_INLINE bool pwsp_result_has_sums(const pwsp_result *result) {
    return result->recorder.options.level != PTOWSP_RECORD_NONE && result->recorder.kernels;
}

// Tasks that were kept, each by its slot.
PWSP_INLINE uint64_t pwsp_result_count(const pwsp_result *result) {
    return result->has_records ? result->recorder.count : 0;
}

// Cycles that lanes were busy: tasks in processes have none.
PWSP_INTERNAL uint64_t pwsp_result_busy(const pwsp_result *result);

// See ptowsp_run_... of the same names.
PWSP_INTERNAL ptowsp_task_trace pwsp_result_trace_at(const pwsp_result *result, uint64_t slot);
PWSP_INTERNAL ptowsp_usage pwsp_result_usage(const pwsp_result *result);
PWSP_INTERNAL const uint64_t *pwsp_result_critical_steps(const pwsp_result *result,
                                                         uint32_t pipeline, uint64_t *out_count);
PWSP_INTERNAL bool pwsp_result_edges(const pwsp_result *result, uint64_t task, ptowsp_edge_fn visit,
                                     void *user);
PWSP_INTERNAL ptowsp_status pwsp_result_find_bounds(const pwsp_result *result,
                                                    ptowsp_run_bounds *out_bounds);
PWSP_INTERNAL ptowsp_transient_sizes pwsp_result_transient_sizes(const pwsp_result *result);
PWSP_INTERNAL ptowsp_lifetime pwsp_result_lifetime_at(const pwsp_result *result, uint32_t i);

#endif
