// Four ways to cut a decode step into units of a plan, so that one kernel runs all of them.

#ifndef DECODE_RULES_H
#define DECODE_RULES_H

#include "ptowsp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum decode_rule {
    DECODE_WHOLE = 0,   // no split: a block for each sequence and head
    DECODE_SPLIT,       // every sequence in the same number of pieces, a block for each
    DECODE_FIRST_FREE,  // a chunk plan (section 6), whose units blocks draw as they become free
    DECODE_PLANNED,     // an attention plan (section 9): each block has a list
    DECODE_RULE_COUNT
} decode_rule;

extern const char *const decode_rule_names[DECODE_RULE_COUNT];

typedef struct decode_shape {
    uint32_t kv_head_count, group, page_size;
    uint32_t lane_count;   // persistent blocks
    uint32_t split_count;  // pieces of a sequence under DECODE_SPLIT, at most
    ptowsp_attention_cost cost;
} decode_shape;

// Sizes that hold the plan of any rule for batches within limits.
// Errors   As ptowsp_attention_bound and ptowsp_plan_work_bound.
ptowsp_status decode_bound(decode_rule rule, const decode_shape *shape,
                           const ptowsp_attention_limits *limits, ptowsp_attention_sizes *out_sizes,
                           ptowsp_plan_info *out_info);

// Cuts a batch into the arrays of a plan, which has been placed for those sizes. Pieces begin at pages.
// plan->lane_count is the number of blocks that the launch has, under every rule.
// Errors   As ptowsp_attention_generate and ptowsp_plan_generate. BUFFER_OVERFLOW without a fault in
//          *out_info: the plan was placed for smaller limits.
ptowsp_status decode_cut(decode_rule rule, const decode_shape *shape,
                         const ptowsp_attention_batch *batch, ptowsp_attention_plan *plan,
                         ptowsp_plan_info *out_info);

// Whether blocks draw units from a counter instead of having lists.
bool decode_draws(decode_rule rule);

#ifdef __cplusplus
}
#endif

#endif
