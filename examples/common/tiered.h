// Decode attention in two tiers, as a workload with its data and a check: what tiered_decode runs
// under many schedules, and emit_decode takes to an NPU.
//
//      parallel request
//          append                                   the new token's K and V, to the cache
//          when kv_length <= 1024
//              attend_short                         -> out
//          otherwise
//              parallel chunk of request            a ragged axis: ceil(kv_length / 1024)
//                  attend_chunk                     -> a partial state
//              merge                                -> out
//
// Nothing says which of these wait for which. The tiles do: a chunk reads rows of the cache, so
// only a request's last one waits for its append, and a merge waits for the chunks of its request.

#ifndef TIERED_H
#define TIERED_H

#include "ptowsp.h"

#include <stdbool.h>
#include <stdint.h>

enum { TIERED_STEPS = 3 };  // decode steps that there is room for

typedef struct tiered {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_kernel append, attend_short, attend_chunk, merge;

    uint64_t batch, seed;
    int32_t *kv_lengths;    // [request], with the token of this step
    int32_t *chunk_counts;  // [request]
    int64_t *kv_starts;     // [request] its first row in the cache; a multiple of a chunk
    int64_t row_count, chunk_max;

    float *kv;       // [row][K, V]
    float *fresh;    // [request][K, V] of this step's token
    float *queries;  // [request][head]
    float *states;   // [request][chunk][head][m, l]
    float *accs;     // [request][chunk][head]
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

// Binds all that a step is to a run. Only pointers and sizes are kept, nothing is copied.
void tiered_bind(const tiered *d, ptowsp_run *run);

// The largest error of all outputs against attention in double, each as a part of the largest
// magnitude in its row; NaN if one is.
double tiered_error(const tiered *d);

bool tiered_is_short(const tiered *d, uint64_t request);
uint64_t tiered_output_count(const tiered *d);

#endif
