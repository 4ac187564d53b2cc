// The bindings of a program: sizes, symbols, slots, arrays and memory.

#ifndef PWSP_BIND_H
#define PWSP_BIND_H

#include "../base/context.h"
#include "../runtime/plan_batch.h"
#include "../workload/expand.h"

// Memory of transient tensors.
typedef struct pwsp_transients {
    pwsp_placed *placed;        // by transient tensor of the program
    uint32_t *order;            // scratch of the placement, as the following
    uint64_t *offsets, *alive;  //
    pwsp_placement placement;   //
    bool is_found;              // the placement is for the sizes in placed
    char *block;                // the caller's, or NULL
    uint64_t size;              // of it, or the most that the context may give; 0: no limit
    char *own;                  // the context's
    uint64_t own_bytes;         //
} pwsp_transients;

typedef struct pwsp_bindings {
    const pwsp_memory *memory;
    ptowsp_context *context;
    const ptowsp_program *program;
    // As bound by the caller:
    uint64_t *initial;             // cells at the start of a run
    bool *is_bound;                // by cell: sizes and symbols
    pwsp_array *arrays;            // by array
    pwsp_bound_csr *csrs;          // by axis
    pwsp_bound_tensor *tensors;    // by tensor
    ptowsp_attention_plan *plans;  // by axis of a plan, each the same; as its arrays and sizes say
    pwsp_plan_batch *batches;      // by the first axis of a plan
    pwsp_transients transients;
    // As seen by the present execution:
    int64_t *length_sums;          // by array
    pwsp_bound_tensor *effective;  // by tensor
    pwsp_plan_room *rooms;         // by the first axis of a plan: of plans of batches
} pwsp_bindings;

// The status of a check, with its error in the context.
PWSP_INLINE ptowsp_status pwsp_bindings_status(const pwsp_bindings *bindings,
                                               const pwsp_error *error, ptowsp_status status) {
    return status == PTOWSP_OK
               ? status
               : pwsp_fail(bindings->context, status, error->index, "%s", error->text);
}

// False when memory is out, which must stay.
PWSP_INTERNAL bool pwsp_bindings_init(pwsp_bindings *bindings, const pwsp_memory *memory,
                                      ptowsp_context *context, const ptowsp_program *program);

// Binds all but ranks: see ptowsp_run_bind.
PWSP_INTERNAL ptowsp_status pwsp_bind(pwsp_bindings *bindings, const ptowsp_binding *binding);

// The batch that is bound to the plan of an axis; NULL: none is.
PWSP_INTERNAL const pwsp_plan_batch *pwsp_bound_batch(const pwsp_bindings *bindings, uint32_t axis);

// Plans the batches that are bound, checks sizes and arrays, and places transient tensors: a part of
// the following.
PWSP_INTERNAL ptowsp_status pwsp_bindings_size(pwsp_bindings *bindings);

// Checks the data that an execution needs before it walks: all names are bound, arrays are
// well-formed.
PWSP_INTERNAL ptowsp_status pwsp_bindings_verify_data(pwsp_bindings *bindings, bool is_time_only);

// The same, and that kernels support their calls.
PWSP_INTERNAL ptowsp_status pwsp_bindings_verify(pwsp_bindings *bindings, bool is_time_only);

#endif
