// Placing relayouts: what its rooms share.

#ifndef PWSP_PLACE_H
#define PWSP_PLACE_H

#include "build.h"

// A tensor that holds another one in some layout.
typedef struct pwsp_target {
    uint32_t tensor;
    uint32_t earlier;  // of the same source; 0: none
    ptowsp_spread axes[PTOWSP_MESH_AXIS_MAX];
} pwsp_target;

// Inserted steps, by source and target layout.
typedef struct pwsp_brought {
    uint32_t before, target;
    uint32_t earlier;     // of the same source; 0: none
    pwsp_view_info view;  // of the source
} pwsp_brought;

typedef struct pwsp_placer_tensor {
    uint32_t target;      // the last of `targets` that holds it; 0: none
    uint32_t brought;     // the last of `brought` from it; 0: none
    uint32_t writer_end;  // its writers are those from the end of the tensor before
} pwsp_placer_tensor;

typedef struct pwsp_placer {
    ptowsp_module *module;
    const ptowsp_mesh *mesh;
    PWSP_TABLE(pwsp_target) targets;  // from 1, as are these
    PWSP_TABLE(pwsp_brought) brought;
    PWSP_TABLE(pwsp_insert) inserts;
    pwsp_placer_tensor *tensors;
    uint32_t *writers;  // nodes of the workload in order, by tensor; calls stand under tensor 0
    uint32_t tensor_count, writer_count;
} pwsp_placer;

// The tensor that holds `source` in a layout; 0 with an error.
PWSP_INTERNAL uint32_t pwsp_target_of(pwsp_placer *p, uint32_t source, const ptowsp_spread *axes);

// The kernel "all_gather.tp.f32" of a step; 0 with an error.
PWSP_INTERNAL uint32_t pwsp_step_kernel(const pwsp_placer *p, const ptowsp_relayout_step *step,
                                        const ptowsp_tensor_desc *tensor);

// Adds the task that does a step, from one tensor to another, before a node.
PWSP_INTERNAL bool pwsp_step_place(pwsp_placer *p, uint32_t before, uint32_t kernel,
                                   const pwsp_view_info *view, uint32_t from, uint32_t to);

#endif
