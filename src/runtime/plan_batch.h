// A batch that is bound in place of a plan, and the plan that is made of it as an execution begins:
// in the library, and on the AICPU of emitted trees.

#ifndef PWSP_PLAN_BATCH_H
#define PWSP_PLAN_BATCH_H

#include "../base/error.h"

// All zero: none is bound, and no memory is held.
typedef struct pwsp_plan_batch {
    bool is_bound;
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_sizes capacity;  // lane_count 0: none
} pwsp_plan_batch;

// Memory of plans. It stays as batches are bound again, and grows where a plan does not fit.
typedef struct pwsp_plan_room {
    void *words;
    uint64_t word_count;
    ptowsp_attention_sizes sizes;  // that the words hold; slot_count is not used
} pwsp_plan_room;

// Checks a batch that is bound under a name, as ptowsp_run_bind_batch does. Lengths are not looked at.
PWSP_INTERNAL ptowsp_status pwsp_bind_check_batch(pwsp_error *error, const char *name,
                                                  const ptowsp_attention_batch *batch,
                                                  const ptowsp_attention_config *config,
                                                  const ptowsp_attention_sizes *capacity,
                                                  pwsp_plan_batch *out_bound);

// Makes room for the capacity of a batch, or nothing. Plans in the room are lost where it grows.
PWSP_INTERNAL ptowsp_status pwsp_plan_room_reserve(pwsp_error *error, const char *name,
                                                   const pwsp_memory *memory,
                                                   const pwsp_plan_batch *bound,
                                                   pwsp_plan_room *room);
PWSP_INTERNAL void pwsp_plan_room_free(const pwsp_memory *memory, pwsp_plan_room *room);

// Plans a batch that is bound. The plan is in the room.
PWSP_INTERNAL ptowsp_status pwsp_plan_make(pwsp_error *error, const char *name,
                                           const pwsp_memory *memory, const pwsp_plan_batch *bound,
                                           pwsp_plan_room *room, ptowsp_attention_plan *out_plan);

#endif
