// Where the lanes' shares end.

#ifndef PWSP_ATTENTION_CUT_H
#define PWSP_ATTENTION_CUT_H

#include "attention_write.h"

// A cut: how much each lane may cost, and what that makes of the batch.
typedef struct pwsp_attention_cut {
    uint64_t time;  // the cost that a lane of the greatest speed may have
    uint64_t unit_count, merge_count, slot_count;
} pwsp_attention_cut;

// Whether a plan has room for any cut of a batch.
PWSP_INTERNAL bool pwsp_plan_has_room(const pwsp_attention *a, const ptowsp_attention_plan *plan);

// Finds a cut of a batch that has been counted. With a plan, which has room for any, it may write it
// on the way, and is true then.
PWSP_INTERNAL bool pwsp_attention_cut_find(const pwsp_attention *a, ptowsp_attention_plan *plan,
                                           pwsp_attention_cut *cut);

// Checks that a cut fits a plan.
PWSP_INTERNAL ptowsp_status pwsp_cut_check(const pwsp_attention *a, const pwsp_attention_cut *cut,
                                           const ptowsp_attention_plan *plan,
                                           ptowsp_plan_info *info);

// Writes the plan of a cut that fits.
PWSP_INTERNAL void pwsp_attention_cut_write(const pwsp_attention *a, const pwsp_attention_cut *cut,
                                            ptowsp_attention_plan *plan);

#endif
