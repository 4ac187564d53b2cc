// Plans of batches that are bound.
//
// Planning is tried in the memory of the plan before, which mostly fits: a step of decode has as many
// units as the last one. Only where it does not is the plan measured, and memory grows to more than
// it needs. With a capacity there is memory for all plans that are allowed.

#include "plan_batch.h"

#include "../plan/attention.h"

#define PWSP_PLAN_WORD     sizeof(uint64_t)
#define PWSP_PLAN_SPARE_OF 8  // memory grows by its part of this more than is needed

// A fault of planning as an error: "run: plan kv: sequence 3 has the negative length -1".
static ptowsp_status pwsp_plan_fail_fault(pwsp_error *error, const char *when, const char *name,
                                          ptowsp_status status, const ptowsp_plan_info *info) {
    char line[PWSP_ERROR_TEXT_MAX];
    ptowsp_output_buffer buffer = {line, sizeof line, 0};
    ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
    const char *text = strstr(line, ": ");
    PTOWSP_ASSERT(status != PTOWSP_OK && text);
    return pwsp_error_set(error, status, info->index, "%s: plan %s%s", when, name, text);
}

static ptowsp_status pwsp_plan_fail_memory(pwsp_error *error, const char *name) {
    return pwsp_error_set(error, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                          "plan %s: no memory for its units", name);
}

// -- binding --------------------------------------------------------------------------------------

// The name of a field that programs do not support, or NULL. `positions` has an array, or is NULL.
static const char *pwsp_bind_unsupported(const ptowsp_attention_config *config,
                                         const ptowsp_attention_positions *positions) {
    if (config->shares_merges) {
        return "shares_merges";
    }
    if (!positions) {
        return NULL;
    }
    return positions->query_first ? "positions.query_first"
           : positions->before    ? "positions.before"
           : positions->after     ? "positions.after"
                                  : "positions.sinks";
}

PWSP_INTERNAL ptowsp_status pwsp_bind_check_batch(pwsp_error *error, const char *name,
                                                  const ptowsp_attention_batch *batch,
                                                  const ptowsp_attention_config *config,
                                                  const ptowsp_attention_sizes *capacity,
                                                  pwsp_plan_batch *out_bound) {
    ptowsp_plan_info info;
    pwsp_attention checked;
    ptowsp_status status = pwsp_attention_configure(config, &checked, &info);
    if (status == PTOWSP_OK && !batch) {
        status = pwsp_plan_fail(&info, PTOWSP_FAULT_BATCH_NULL, PTOWSP_NO_INDEX, 0, 0);
    } else if (status == PTOWSP_OK && !batch->kv_lengths && batch->sequence_count > 0) {
        status = pwsp_plan_fail(&info, PTOWSP_FAULT_LENGTHS_NULL, PTOWSP_NO_INDEX,
                                batch->sequence_count, 0);
    }
    if (status != PTOWSP_OK) {
        return pwsp_plan_fail_fault(error, "bind", name, status, &info);
    }
    const char *unsupported = pwsp_bind_unsupported(config, checked.config.positions);
    if (unsupported) {
        return PWSP_ERROR_REFUSE(
            error, "bind: the configuration of plan %s has %s, which programs do not do", name,
            unsupported);
    }
    if (capacity &&
        (capacity->lane_count != config->lane_count || capacity->unit_count > UINT32_MAX ||
         capacity->merge_count > UINT32_MAX || capacity->slot_count > UINT32_MAX)) {
        return PWSP_ERROR_REFUSE(error, "bind: the capacity of plan %s is not of its configuration",
                                 name);
    }
    memset(out_bound, 0, sizeof *out_bound);
    out_bound->is_bound = true;
    out_bound->batch = *batch;
    out_bound->config = *config;
    out_bound->config.positions = NULL;  // has no arrays, and may not outlive this call
    if (capacity) {
        out_bound->capacity = *capacity;
    }
    return PTOWSP_OK;
}

// -- memory ---------------------------------------------------------------------------------------

// Makes room for plans of these sizes, and of those before.
static bool pwsp_plan_room_grow(const pwsp_memory *memory, const ptowsp_attention_sizes *sizes,
                                pwsp_plan_room *room) {
    ptowsp_attention_sizes both = *sizes;
    both.unit_count = pwsp_max_u64(sizes->unit_count, room->sizes.unit_count);
    both.merge_count = pwsp_max_u64(sizes->merge_count, room->sizes.merge_count);
    both.lane_count =
        sizes->lane_count > room->sizes.lane_count ? sizes->lane_count : room->sizes.lane_count;
    both.block_bytes = pwsp_sizes_bytes(&both);
    const uint64_t words = pwsp_ceil_div_u64(both.block_bytes, PWSP_PLAN_WORD);
    memset(&room->sizes, 0, sizeof room->sizes);
    if (!pwsp_memory_room(memory, &room->words, &room->word_count, words, PWSP_PLAN_WORD)) {
        return false;
    }
    room->sizes = both;
    return true;
}

PWSP_INTERNAL ptowsp_status pwsp_plan_room_reserve(pwsp_error *error, const char *name,
                                                   const pwsp_memory *memory,
                                                   const pwsp_plan_batch *bound,
                                                   pwsp_plan_room *room) {
    return bound->capacity.lane_count == 0 || pwsp_plan_room_grow(memory, &bound->capacity, room)
               ? PTOWSP_OK
               : pwsp_plan_fail_memory(error, name);
}

PWSP_INTERNAL void pwsp_plan_room_free(const pwsp_memory *memory, pwsp_plan_room *room) {
    pwsp_memory_free(memory, room->words, (size_t)room->word_count * PWSP_PLAN_WORD);
    memset(room, 0, sizeof *room);
}

// As many as a batch needs, and some more: lengths that grow move the splits of all lanes.
static uint64_t pwsp_plan_with_spare(uint64_t count, uint32_t lanes) {
    return pwsp_min_u64(count + pwsp_max_u64(count / PWSP_PLAN_SPARE_OF, lanes), UINT32_MAX);
}

// -- planning -------------------------------------------------------------------------------------

// Plans in the room, as far as the batch may use it.
static ptowsp_status pwsp_plan_try(const pwsp_plan_batch *bound, const pwsp_plan_room *room,
                                   ptowsp_attention_plan *plan, ptowsp_plan_info *info) {
    ptowsp_attention_sizes sizes = room->sizes;
    PTOWSP_ASSERT(sizes.lane_count >= bound->config.lane_count);
    sizes.slot_count = UINT32_MAX;
    if (bound->capacity.lane_count > 0) {
        PTOWSP_ASSERT(sizes.unit_count >= bound->capacity.unit_count);
        sizes = bound->capacity;
    }
    ptowsp_status status =
        ptowsp_attention_place(&sizes, room->words, room->word_count * PWSP_PLAN_WORD, plan);
    (void)status;  // is asserted only
    PTOWSP_ASSERT(status == PTOWSP_OK);
    return ptowsp_attention_generate(&bound->batch, &bound->config, plan, info);
}

PWSP_INTERNAL ptowsp_status pwsp_plan_make(pwsp_error *error, const char *name,
                                           const pwsp_memory *memory, const pwsp_plan_batch *bound,
                                           pwsp_plan_room *room, ptowsp_attention_plan *out_plan) {
    const bool is_limited = bound->capacity.lane_count > 0;
    ptowsp_status status = pwsp_plan_room_reserve(error, name, memory, bound, room);
    ptowsp_plan_info info;
    PTOWSP_ASSERT(bound->is_bound);
    if (status != PTOWSP_OK) {
        return status;
    }
    status = PTOWSP_BUFFER_OVERFLOW;
    if (room->sizes.lane_count >= bound->config.lane_count) {
        status = pwsp_plan_try(bound, room, out_plan, &info);
    }
    if (status == PTOWSP_BUFFER_OVERFLOW && !is_limited) {
        ptowsp_attention_sizes sizes;
        status = ptowsp_attention_size(&bound->batch, &bound->config, &sizes, &info);
        if (status == PTOWSP_OK) {
            sizes.unit_count = pwsp_plan_with_spare(sizes.unit_count, sizes.lane_count);
            sizes.merge_count = pwsp_plan_with_spare(sizes.merge_count, sizes.lane_count);
            if (!pwsp_plan_room_grow(memory, &sizes, room)) {
                return pwsp_plan_fail_memory(error, name);
            }
            status = pwsp_plan_try(bound, room, out_plan, &info);
        }
    }
    return status == PTOWSP_OK ? status : pwsp_plan_fail_fault(error, "run", name, status, &info);
}
