// The rules write units in order of sequence, head and KV. Units of a sequence and head that are several get
// consecutive slots and a merge, as an attention plan has them.

#include "decode_rules.h"

#include <string.h>

const char *const decode_rule_names[DECODE_RULE_COUNT] = {"no split", "fixed split", "first free",
                                                          "planned"};

// Of a chunk plan: chunks small enough for some units for each lane, and no smaller.
enum { UNITS_FOR_EACH_LANE = 4, CHUNK_MIN = 128, CHUNK_MAX = 8192 };

bool decode_draws(decode_rule rule) {
    return rule == DECODE_FIRST_FREE;
}

static ptowsp_attention_config config_of(const decode_shape *shape) {
    return (ptowsp_attention_config){.kv_head_count = shape->kv_head_count,
                                     .group = shape->group,
                                     .lane_count = shape->lane_count,
                                     .page_size = shape->page_size,
                                     .cost = shape->cost};
}

static const ptowsp_tier one_tier = {.id = 0, .length_min = 0, .length_max = INT32_MAX};

static ptowsp_plan_config chunks_of(const decode_shape *shape) {
    return (ptowsp_plan_config){.chunk_min = CHUNK_MIN,
                                .chunk_max = CHUNK_MAX,
                                .max_work_units = shape->lane_count * UNITS_FOR_EACH_LANE,
                                .align = shape->page_size,
                                .tiers = &one_tier,
                                .tier_count = 1};
}

ptowsp_status decode_bound(decode_rule rule, const decode_shape *shape,
                           const ptowsp_attention_limits *limits, ptowsp_attention_sizes *out_sizes,
                           ptowsp_plan_info *out_info) {
    const ptowsp_attention_config config = config_of(shape);
    const ptowsp_status status = ptowsp_attention_bound(&config, limits, out_sizes, out_info);
    if (status || rule == DECODE_PLANNED) {
        return status;
    }
    const uint64_t tiles = (uint64_t)limits->sequence_count_max * shape->kv_head_count;
    uint64_t units = rule == DECODE_SPLIT ? tiles * shape->split_count : tiles;
    if (rule == DECODE_FIRST_FREE) {
        const ptowsp_plan_config chunks = chunks_of(shape);
        const ptowsp_plan_limits bounds = {.sequence_count_max = limits->sequence_count_max,
                                           .kv_head_count = shape->kv_head_count,
                                           .length_max = limits->kv_length_max,
                                           .token_count_max = limits->kv_token_count_max};
        const ptowsp_status failed = ptowsp_plan_work_bound(&chunks, &bounds, &units, out_info);
        if (failed) {
            return failed;
        }
    }
    out_sizes->unit_count = out_sizes->slot_count = units;
    out_sizes->merge_count = tiles;
    out_sizes->lane_count = rule == DECODE_FIRST_FREE ? shape->lane_count : (uint32_t)units;
    // As ptowsp_attention_place places arrays: units, merges, two lists, costs.
    out_sizes->block_bytes = (units + tiles) * sizeof(ptowsp_work) +
                             ((uint64_t)out_sizes->lane_count + 1) * 2 * sizeof(uint32_t) +
                             (uint64_t)out_sizes->lane_count * sizeof(double) + 64;
    return PTOWSP_OK;
}

// Units of one sequence and head from `first` on get slots and a merge, if they are several.
static void tile_end(ptowsp_attention_plan *plan, uint32_t first) {
    const uint32_t count = plan->unit_count - first;
    ptowsp_work *units = plan->units + first;
    plan->tile_count++;
    units[0].flags |= PTOWSP_WORK_FIRST;
    units[count - 1].flags |= PTOWSP_WORK_LAST;
    if (count == 1) {
        units[0].work_id = PTOWSP_NO_SLOT;
        return;
    }
    plan->merges[plan->merge_count] = ptowsp_work_of(plan->merge_count, 0, 0, units[0].params[0],
                                                     units[0].params[1], plan->slot_count, count);
    plan->merge_count++;
    for (uint32_t i = 0; i < count; i++) {
        units[i].work_id = plan->slot_count++;
    }
}

// Cuts each sequence and head into `pieces` even pieces of whole pages, or fewer.
static ptowsp_status cut_evenly(const decode_shape *shape, uint32_t pieces,
                                const ptowsp_attention_batch *batch, ptowsp_attention_plan *plan) {
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        const uint32_t length = (uint32_t)batch->kv_lengths[i];
        const uint32_t pages = (length + shape->page_size - 1) / shape->page_size;
        const uint32_t share = (pages + pieces - 1) / pieces * shape->page_size;
        for (uint32_t head = 0; length > 0 && head < shape->kv_head_count; head++) {
            const uint32_t first = plan->unit_count;
            for (uint32_t at = 0; at < length; at += share) {
                const uint32_t count = length - at < share ? length - at : share;
                if (plan->unit_count == plan->unit_capacity) {
                    return PTOWSP_BUFFER_OVERFLOW;
                }
                plan->units[plan->unit_count++] = ptowsp_work_of(0, 0, 0, i, head, at, count);
            }
            tile_end(plan, first);
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status cut_chunks(const decode_shape *shape, const ptowsp_attention_batch *batch,
                                ptowsp_attention_plan *plan, ptowsp_plan_info *info) {
    const ptowsp_plan_config config = chunks_of(shape);
    const ptowsp_batch lengths = {.lengths = batch->kv_lengths,
                                  .sequence_count = batch->sequence_count,
                                  .kv_head_count = shape->kv_head_count};
    uint32_t chunk;
    ptowsp_status status = ptowsp_plan_chunk_size(&lengths, &config, &chunk, info);
    if (!status) {
        status =
            ptowsp_plan_generate(&lengths, &config, chunk, plan->units, plan->unit_capacity, info);
    }
    if (status) {
        return status;
    }
    const uint32_t count = (uint32_t)info->work_count;
    for (uint32_t first = 0; plan->unit_count < count;) {
        const bool is_last = ptowsp_work_is_last(&plan->units[plan->unit_count++]);
        if (is_last) {
            tile_end(plan, first);
            first = plan->unit_count;
        }
    }
    return PTOWSP_OK;
}

// Lists of one unit, then empty ones; or all units in the first list, where blocks draw.
static void lists_write(decode_rule rule, ptowsp_attention_plan *plan) {
    const ptowsp_work none = {.work_id = PTOWSP_NO_SLOT, .flags = PTOWSP_WORK_INVALID};
    for (uint32_t i = 0; i <= plan->lane_count; i++) {
        const uint32_t units = decode_draws(rule) && i > 0 ? plan->unit_count : i;
        plan->unit_begin[i] = units < plan->unit_count ? units : plan->unit_count;
        plan->merge_begin[i] = 0;
    }
    for (uint32_t i = plan->unit_count; i < plan->unit_capacity; i++) {
        plan->units[i] = none;
    }
    for (uint32_t i = plan->merge_count; i < plan->merge_capacity; i++) {
        plan->merges[i] = none;
    }
}

ptowsp_status decode_cut(decode_rule rule, const decode_shape *shape,
                         const ptowsp_attention_batch *batch, ptowsp_attention_plan *plan,
                         ptowsp_plan_info *out_info) {
    if (rule == DECODE_PLANNED) {
        const ptowsp_attention_config config = config_of(shape);
        return ptowsp_attention_generate(batch, &config, plan, out_info);
    }
    ptowsp_plan_info info = {.index = PTOWSP_NO_INDEX};
    plan->unit_count = plan->merge_count = plan->slot_count = plan->tile_count = 0;
    plan->tile_tokens = 1;
    plan->group = plan->slot_rows = shape->group;
    ptowsp_status status;
    if (rule == DECODE_FIRST_FREE) {
        status = cut_chunks(shape, batch, plan, &info);
    } else {
        status = cut_evenly(shape, rule == DECODE_SPLIT ? shape->split_count : 1, batch, plan);
    }
    if (!status) {
        lists_write(rule, plan);
    }
    if (out_info) {
        *out_info = info;
    }
    return status;
}
