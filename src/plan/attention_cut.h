// Where the lanes' shares end.

#ifndef PWSP_ATTENTION_CUT_H
#define PWSP_ATTENTION_CUT_H

#include "attention_write.h"

// A cut: how much each lane may cost, and what that makes of the batch.
typedef struct pwsp_attention_cut {
    uint64_t time;  // the cost that a lane of the greatest speed may have
    uint64_t unit_count, merge_count, slot_count;
} pwsp_attention_cut;

// Finds a cut of a batch that has been counted.
PWSP_INTERNAL void pwsp_attention_cut_find(const pwsp_attention *a, pwsp_attention_cut *cut);

// Writes the plan of a cut. All fits.
PWSP_INTERNAL void pwsp_attention_cut_write(const pwsp_attention *a, const pwsp_attention_cut *cut,
                                            ptowsp_attention_plan *plan);

#endif
