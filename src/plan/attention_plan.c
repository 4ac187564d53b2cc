// Attention plans: sizes, bounds, placing, planning.

#include "attention_cut.h"

// -- sizes ----------------------------------------------------------------------------------------

// Fills in the sizes that follow from the counts.
PWSP_INTERNAL ptowsp_status pwsp_sizes_complete(const pwsp_attention *a,
                                                ptowsp_attention_sizes *sizes,
                                                ptowsp_plan_info *info) {
    sizes->lane_count = a->config.lane_count;
    if (sizes->unit_count > UINT32_MAX) {
        const int64_t units = pwsp_info_value(sizes->unit_count);
        memset(sizes, 0, sizeof *sizes);
        return PWSP_PLAN_FAIL(info, UNITS_EXCEEDED, units, UINT32_MAX);
    }
    PTOWSP_ASSERT(sizes->merge_count <= sizes->unit_count &&
                  sizes->slot_count <= sizes->unit_count);
    sizes->block_bytes = pwsp_sizes_bytes(sizes);
    return PTOWSP_OK;
}

ptowsp_status ptowsp_attention_size(const ptowsp_attention_batch *batch,
                                    const ptowsp_attention_config *config,
                                    ptowsp_attention_sizes *out_sizes, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_sizes) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_SIZES, 0);
    }
    memset(out_sizes, 0, sizeof *out_sizes);
    pwsp_attention a;
    pwsp_attention_cut cut;
    ptowsp_status status = pwsp_attention_prepare(batch, config, &a, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_attention_cut_find(&a, NULL, &cut);
    out_sizes->unit_count = cut.unit_count;
    out_sizes->merge_count = cut.merge_count;
    out_sizes->slot_count = cut.slot_count;
    out_sizes->slot_rows = a.slot_rows;
    info->work_count = cut.unit_count;
    return pwsp_sizes_complete(&a, out_sizes, info);
}

// -- bounds ---------------------------------------------------------------------------------------

// The most that the sum of ceil(length / size) is over `count` lengths up to length_max, of together
// total (0: any). Lengths above 0 are counted, too: at most `count`.
static uint64_t pwsp_parts_bound(uint64_t count, uint64_t length_max, uint64_t total,
                                 uint64_t size) {
    uint64_t parts = count * pwsp_ceil_div_u64(length_max, size);  // below 2^63
    if (total > 0) {
        total = pwsp_min_u64(total, count * length_max);
        count = pwsp_min_u64(count, total);
        parts = pwsp_min_u64(parts, total / size + (total % size + count * (size - 1)) / size);
    }
    return parts;
}

static pwsp_attention_most pwsp_limits_count(const pwsp_attention *a,
                                             const ptowsp_attention_limits *limits,
                                             uint64_t query_max) {
    pwsp_attention_most found = {query_max, 0, 0, false};
    uint64_t kv_max = (uint32_t)limits->kv_length_max, kv_total = limits->kv_token_count_max;
    if (a->config.positions) {  // a sequence without KV has tiles, too, as with one token
        kv_max = pwsp_max_u64(kv_max, 1);
        kv_total = kv_total > 0 ? pwsp_sum_u64(kv_total, limits->sequence_count_max) : 0;
    }
    uint64_t count = kv_max > 0 && query_max > 0 ? limits->sequence_count_max : 0;
    count = kv_total > 0 ? pwsp_min_u64(count, kv_total) : count;
    uint64_t most = pwsp_ceil_div_u64(query_max, a->tile_tokens);  // of a sequence
    if (limits->query_token_count_max > 0) {
        count = pwsp_min_u64(count, limits->query_token_count_max);
        most = pwsp_min_u64(most, pwsp_ceil_div_u64(limits->query_token_count_max, a->tile_tokens));
    }
    found.tiles = pwsp_parts_bound(count, query_max, limits->query_token_count_max, a->tile_tokens);
    // The KV of a tile begins and ends anywhere, so it may touch one chunk more.
    uint64_t seen = kv_max;
    if (a->config.window && !a->config.positions) {
        const uint64_t tokens = a->config.is_causal ? a->tile_tokens : query_max;
        seen = pwsp_min_u64(seen, a->config.window + pwsp_max_u64(tokens, 1) - 1);
    }
    uint64_t each = pwsp_ceil_div_u64(kv_max, a->chunk);
    each = pwsp_min_u64(each, (seen + a->chunk - 2) / a->chunk + 1);
    const bool has_sinks =
        a->config.positions && a->config.positions->sinks;  // pieces of their own
    each += has_sinks;
    found.cuts = each > 1;
    found.pieces = pwsp_mul_u64(found.tiles, each);
    if (kv_total > 0 && count > 0) {
        found.pieces = pwsp_min_u64(
            found.pieces,
            pwsp_mul_u64(pwsp_parts_bound(count, kv_max, kv_total, a->chunk) + has_sinks * count,
                         most));
    }
    return found;
}

PWSP_INTERNAL ptowsp_status pwsp_attention_limits(const pwsp_attention *a,
                                                  const ptowsp_attention_limits *limits,
                                                  pwsp_attention_most *out_most,
                                                  ptowsp_plan_info *info) {
    if (!limits) {
        return PWSP_PLAN_FAIL(info, LIMITS_NULL, 0, 0);
    }
    const int32_t lengths[2] = {limits->kv_length_max, limits->query_length_max};
    for (uint32_t i = 0; i < 2; i++) {
        if (lengths[i] < 0) {
            return PWSP_PLAN_FAIL(info, LIMITS_LENGTH, lengths[i], 0);
        }
    }
    uint64_t query_max = lengths[1] > 0 ? (uint64_t)lengths[1] : 1;
    if (a->config.is_causal && !a->config.positions) {
        query_max = pwsp_min_u64(query_max, (uint64_t)lengths[0]);
    }
    // Batches whose sequences have more tiles are refused.
    query_max = pwsp_min_u64(query_max, (uint64_t)a->tile_tokens * (UINT16_MAX + 1));
    *out_most = pwsp_limits_count(a, limits, query_max);
    return PTOWSP_OK;
}

ptowsp_status ptowsp_attention_bound(const ptowsp_attention_config *config,
                                     const ptowsp_attention_limits *limits,
                                     ptowsp_attention_sizes *out_sizes,
                                     ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_sizes) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_SIZES, 0);
    }
    memset(out_sizes, 0, sizeof *out_sizes);
    pwsp_attention a;
    ptowsp_status status = pwsp_attention_configure(config, &a, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_attention_most most;
    status = pwsp_attention_limits(&a, limits, &most, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint64_t tiles = pwsp_mul_u64(most.tiles, config->kv_head_count);
    if (pwsp_attention_cuts_chunks(&a)) {
        out_sizes->unit_count = pwsp_mul_u64(most.pieces, config->kv_head_count);
        out_sizes->slot_count = most.cuts ? out_sizes->unit_count : 0;
        out_sizes->merge_count = pwsp_min_u64(tiles, out_sizes->slot_count / 2);
    } else {
        uint64_t splits =
            (uint64_t)limits->kv_length_max < 2 * a.piece_min ? 0 : a.worker_count - 1;
        splits = tiles > 0 ? splits : 0;
        out_sizes->unit_count = pwsp_sum_u64(tiles, splits);
        out_sizes->merge_count = pwsp_min_u64(tiles, splits);
        out_sizes->slot_count = splits + out_sizes->merge_count;
    }
    if (a.config.shares_merges) {  // a lane that continues a tile has a merge of its own
        out_sizes->merge_count = pwsp_min_u64(
            pwsp_sum_u64(out_sizes->merge_count, a.worker_count - 1), out_sizes->slot_count);
    }
    out_sizes->slot_rows =
        tiles > 0 ? (uint32_t)pwsp_min_u64(most.query_max, a.tile_tokens) * a.config.group : 0;
    return pwsp_sizes_complete(&a, out_sizes, info);
}

// -- placing --------------------------------------------------------------------------------------

ptowsp_status ptowsp_attention_place(const ptowsp_attention_sizes *sizes, void *block,
                                     uint64_t block_bytes, ptowsp_attention_plan *out_plan) {
    if (!sizes || !block || !out_plan || ((uintptr_t)block & 7) != 0 || sizes->lane_count == 0) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (sizes->unit_count > UINT32_MAX || sizes->merge_count > UINT32_MAX ||
        sizes->slot_count > UINT32_MAX) {
        return PTOWSP_LIMIT_EXCEEDED;
    }
    const uint64_t lanes = sizes->lane_count;
    if (block_bytes < pwsp_sizes_bytes(sizes)) {
        return PTOWSP_BUFFER_OVERFLOW;
    }
    memset(out_plan, 0, sizeof *out_plan);
    out_plan->units = (ptowsp_work *)block;
    out_plan->merges = out_plan->units + sizes->unit_count;
    out_plan->lane_costs = (double *)(void *)(out_plan->merges + sizes->merge_count);
    out_plan->unit_begin = (uint32_t *)(void *)(out_plan->lane_costs + lanes);
    out_plan->merge_begin = out_plan->unit_begin + lanes + 1;
    out_plan->unit_capacity = (uint32_t)sizes->unit_count;
    out_plan->merge_capacity = (uint32_t)sizes->merge_count;
    out_plan->slot_capacity = (uint32_t)sizes->slot_count;
    out_plan->lane_capacity = out_plan->lane_count = sizes->lane_count;
    return PTOWSP_OK;
}

// -- planning -------------------------------------------------------------------------------------

ptowsp_status ptowsp_attention_generate(const ptowsp_attention_batch *batch,
                                        const ptowsp_attention_config *config,
                                        ptowsp_attention_plan *plan, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_attention a;
    pwsp_attention_cut cut;
    ptowsp_status status = pwsp_attention_prepare(batch, config, &a, info);
    if (status == PTOWSP_OK) {
        status = pwsp_plan_arrays_check(plan, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    if (!pwsp_attention_cut_find(&a, pwsp_plan_has_room(&a, plan) ? plan : NULL, &cut)) {
        status = pwsp_cut_check(&a, &cut, plan, info);
        if (status == PTOWSP_OK) {
            pwsp_attention_cut_write(&a, &cut, plan);
        }
    }
    info->work_count = status == PTOWSP_LIMIT_EXCEEDED ? 0 : cut.unit_count;
    return status;
}

bool ptowsp_attention_is_invariant(const ptowsp_attention_config *config) {
    return config && config->mode == PTOWSP_ATTENTION_INVARIANT;
}
