// Decode attention over a balanced plan, as a workload with its data and a check: what tiered_decode
// runs under many schedules, and emit_decode takes to an NPU.
//
//      parallel request
//          append                                   the new token's K and V, to the cache
//      parallel unit of the plan
//          when whole: attend_short, attend_long    by tier -> out
//          otherwise:  attend_part                  -> a partial state, in the unit's slot
//      parallel merge of the plan
//          merge                                    slots, in order -> out
//
// The plan cuts requests where lanes would get unequal work, and nowhere else; it is made anew each
// step, and bound to the program, which stays. Nothing says which tasks wait for which. The tiles do:
// a unit reads its own tokens, so only a request's last one waits for its append, and a merge waits
// for the parts in its slots.

#ifndef TIERED_H
#define TIERED_H

#include "ptowsp.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TIERED_STEPS = 3,  // decode steps that there is room for
    TIERED_PAGE = 16,  // tokens: where requests may be cut
    TIERED_SHORT_MAX = 256
};

typedef struct tiered {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_kernel append, attend_short, attend_long, attend_part, merge;

    uint64_t batch, seed;
    int32_t *kv_lengths;  // [request], with the token of this step
    int64_t *kv_starts;   // [request] its first row in the cache
    int64_t row_count;
    ptowsp_attention_plan plan;  // of this step
    void *plan_block;

    float *kv;       // [row][K, V]
    float *fresh;    // [request][K, V] of this step's token
    float *queries;  // [request][head]
    float *states;   // [slot][head][m, l]
    float *accs;     // [slot][head]
    float *outputs;  // [request][head]
} tiered;

// Declares the workload "decode" in a module; *d is zero.
void tiered_make(tiered *d, ptowsp_context *context, ptowsp_module *m);

// Makes lengths and data as they are before the first step, in place of older ones.
void tiered_make_data(tiered *d, uint64_t batch, uint64_t seed);
void tiered_free_data(tiered *d);

// The next step (1 .. TIERED_STEPS): a token more for each request. Results of the last one become
// NaN.
void tiered_step(tiered *d, uint64_t step);

// Plans the step that is there for a number of lanes.
void tiered_plan(tiered *d, uint32_t lane_count);

// Binds all that a step is, with its plan, to a run. Only pointers and sizes are kept, nothing is copied.
void tiered_bind(const tiered *d, ptowsp_run *run);

// The largest error of all outputs against attention in double, each as a part of the largest
// magnitude in its row; NaN if one is.
double tiered_error(const tiered *d);

uint64_t tiered_output_count(const tiered *d);

#endif
