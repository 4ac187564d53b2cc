// Writes the descriptors of sequences whose lengths, tiers and counts have been checked.

#ifndef PWSP_GENERATE_H
#define PWSP_GENERATE_H

#include "count.h"

typedef struct pwsp_emit_desc {
    const PTOWSP_GM int32_t *lengths;  // of the whole batch
    uint32_t kv_head_count;
    uint32_t chunk;
    uint32_t align;
    ptowsp_chunks chunks;
    const ptowsp_tier *tiers;
    uint32_t tier_count;
} pwsp_emit_desc;

// Writes the work of sequences [first, end) to work[0 .. work_count), with ids from first_work_id.
// work_count is exactly their number of units; nothing beyond is touched.
PWSP_INTERNAL void pwsp_emit(const pwsp_emit_desc *desc, uint32_t first, uint32_t end,
                             uint32_t first_work_id, PTOWSP_GM ptowsp_work *work,
                             uint64_t work_count);

#endif
