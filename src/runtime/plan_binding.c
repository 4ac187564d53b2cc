// Checks of plans that are bound, and their fields as arrays; see plan_binding.h.

#include "plan_binding.h"

#include <inttypes.h>

typedef struct pwsp_field_place {
    uint8_t dtype, byte;
} pwsp_field_place;

static const pwsp_field_place pwsp_field_places[PTOWSP_PLAN_FIELD_COUNT] = {
#define PWSP_FIELD_PLACE(name, text, dtype, byte, flags, units, merges) {PTOWSP_##dtype, byte},
    PTOWSP_PLAN_FIELDS(PWSP_FIELD_PLACE)
#undef PWSP_FIELD_PLACE
};

#define PWSP_FIELD_FITS(name, text, dtype, byte, flags, units, merges)                             \
    PTOWSP_STATIC_ASSERT((byte) < sizeof(ptowsp_work), "field " text);
PTOWSP_PLAN_FIELDS(PWSP_FIELD_FITS)
#undef PWSP_FIELD_FITS

static const char *pwsp_plan_list_text(ptowsp_axis_kind kind) {
    return kind == PTOWSP_AXIS_PLAN_MERGES ? "merge" : "unit";
}

// -- binding --------------------------------------------------------------------------------------

// One list: descriptors, the room for them, and where each lane's begin.
static ptowsp_status pwsp_bind_check_list(pwsp_error *error, const char *name,
                                          ptowsp_axis_kind kind, const ptowsp_work *items,
                                          uint32_t count, uint32_t capacity,
                                          const uint32_t *begin) {
    const char *what = pwsp_plan_list_text(kind);
    if (count > capacity) {
        return PWSP_ERROR_REFUSE(error, "bind: plan %s has %u %ss, with a capacity of %u", name,
                                 count, what, capacity);
    }
    if (count > 0 && !items) {
        return PWSP_ERROR_REFUSE(error, "bind: plan %s has %u %ss at NULL", name, count, what);
    }
    if (!begin) {
        return PWSP_ERROR_REFUSE(error, "bind: %s_begin of plan %s is NULL", what, name);
    }
    if ((uintptr_t)items % 8 != 0 || (uintptr_t)begin % sizeof(uint32_t) != 0) {
        return PWSP_ERROR_REFUSE(
            error, "bind: the %ss of plan %s, or the bounds of their lanes, are not aligned", what,
            name);
    }
    return PTOWSP_OK;
}

// A program's merges have no rows: of a tile whose merge lanes share, it would do all rows each time.
static ptowsp_status pwsp_bind_check_rows(pwsp_error *error, const char *name,
                                          const ptowsp_attention_plan *plan) {
    for (uint32_t i = 0; i < plan->merge_count; i++) {
        if (plan->merges[i].flags & PTOWSP_WORK_ROWS) {
            return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                                  "bind: merge %u of plan %s has a part of its tile's rows, which "
                                  "programs do not (shares_merges)",
                                  i, name);
        }
    }
    return PTOWSP_OK;
}

// Nor do they do units whose KV is not kv_start and kv_len alone.
static ptowsp_status pwsp_bind_check_units(pwsp_error *error, const char *name,
                                           const ptowsp_work *units, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (units[i].flags & PTOWSP_WORK_POSITIONS && ptowsp_work_is_valid(&units[i])) {
            return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                                  "bind: unit %u of plan %s has %s, which programs do not do "
                                  "(positions)",
                                  i, name, units[i].params[3] > 0 ? "sinks apart" : "no KV");
        }
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_check_plan(pwsp_error *error, const char *name,
                                                 const ptowsp_attention_plan *plan,
                                                 ptowsp_attention_plan *out_plan) {
    if (!plan) {
        return PWSP_ERROR_REFUSE(error, "bind: plan %s is NULL", name);
    }
    if (plan->lane_count == 0 || plan->lane_count > PTOWSP_ATTENTION_LANE_MAX) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, plan->lane_count,
                              "bind: plan %s has %u lanes, not 1 to %d", name, plan->lane_count,
                              PTOWSP_ATTENTION_LANE_MAX);
    }
    ptowsp_status status =
        pwsp_bind_check_list(error, name, PTOWSP_AXIS_PLAN, plan->units, plan->unit_count,
                             plan->unit_capacity, plan->unit_begin);
    if (status == PTOWSP_OK) {
        status = pwsp_bind_check_units(error, name, plan->units, plan->unit_count);
    }
    const bool has_merges = plan->merge_begin || plan->merge_count > 0 || plan->merge_capacity > 0;
    if (status == PTOWSP_OK && has_merges) {
        status = pwsp_bind_check_list(error, name, PTOWSP_AXIS_PLAN_MERGES, plan->merges,
                                      plan->merge_count, plan->merge_capacity, plan->merge_begin);
        status = status == PTOWSP_OK ? pwsp_bind_check_rows(error, name, plan) : status;
    }
    if (status == PTOWSP_OK) {
        *out_plan = *plan;
    }
    return status;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_check_work(pwsp_error *error, const char *name,
                                                 const ptowsp_work *work, uint64_t count,
                                                 ptowsp_attention_plan *out_plan) {
    if (count > UINT32_MAX) {
        return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, count,
                              "bind: work bound to plan %s has %" PRIu64
                              " units, which are more than 2^32 - 1",
                              name, count);
    }
    if (count > 0 && (!work || (uintptr_t)work % 8 != 0)) {
        return PWSP_ERROR_REFUSE(error, "bind: work bound to plan %s is %s", name,
                                 work ? "not aligned to 8 bytes" : "NULL");
    }
    memset(out_plan, 0, sizeof *out_plan);
    memcpy(&out_plan->units, &work, sizeof work);  // only read
    out_plan->unit_count = out_plan->unit_capacity = (uint32_t)count;
    return pwsp_bind_check_units(error, name, work, out_plan->unit_count);
}

// -- what programs read ---------------------------------------------------------------------------

PWSP_INTERNAL int64_t pwsp_plan_size(const ptowsp_attention_plan *plan, ptowsp_axis_kind kind) {
    return kind == PTOWSP_AXIS_PLAN          ? plan->unit_count
           : kind == PTOWSP_AXIS_PLAN_MERGES ? plan->merge_count
                                             : plan->lane_count;
}

static ptowsp_status pwsp_plan_fail_work(pwsp_error *error, const char *name, const char *what) {
    return PWSP_ERROR_REFUSE(
        error, "bind: plan %s is bound as work, which has no %s; the program uses them", name,
        what);
}

PWSP_INTERNAL ptowsp_status pwsp_plan_has_axis(pwsp_error *error, const char *name,
                                               const ptowsp_attention_plan *plan,
                                               ptowsp_axis_kind kind) {
    return plan->lane_count > 0 || kind == PTOWSP_AXIS_PLAN ? PTOWSP_OK
           : kind == PTOWSP_AXIS_PLAN_MERGES ? pwsp_plan_fail_work(error, name, "merges")
                                             : pwsp_plan_fail_work(error, name, "lanes");
}

PWSP_INTERNAL ptowsp_status pwsp_plan_has_field(pwsp_error *error, const char *name,
                                                const ptowsp_attention_plan *plan,
                                                ptowsp_plan_field field) {
    return plan->lane_count > 0 || (field != PTOWSP_PLAN_LANE && field != PTOWSP_PLAN_SLOT)
               ? PTOWSP_OK
           : field == PTOWSP_PLAN_LANE ? pwsp_plan_fail_work(error, name, "lanes")
                                       : pwsp_plan_fail_work(error, name, "slots");
}

PWSP_INTERNAL pwsp_array pwsp_plan_array(const ptowsp_attention_plan *plan, ptowsp_axis_kind kind,
                                         ptowsp_plan_field field) {
    PTOWSP_ASSERT((uint32_t)field < PTOWSP_PLAN_FIELD_COUNT && kind != PTOWSP_AXIS_PLAN_LANES);
    const bool is_unit = kind == PTOWSP_AXIS_PLAN;
    const ptowsp_work *items = is_unit ? plan->units : plan->merges;
    const pwsp_field_place *place = &pwsp_field_places[field];
    pwsp_array array = {items,
                        is_unit ? plan->unit_count : plan->merge_count,
                        (ptowsp_dtype)place->dtype,
                        true,
                        (uint32_t)sizeof(ptowsp_work),
                        0};
    if (field == PTOWSP_PLAN_LANE) {
        array.data = is_unit ? plan->unit_begin : plan->merge_begin;
        array.stride = 0;
        array.range_count = array.data ? plan->lane_count : 0;
    } else if (items) {
        array.data = (const char *)items + place->byte;
    }
    return array;
}

PWSP_INTERNAL ptowsp_status pwsp_verify_plan_lanes(pwsp_error *error, const char *name,
                                                   ptowsp_axis_kind kind, const pwsp_array *lanes) {
    const uint32_t *begin = (const uint32_t *)lanes->data;
    const char *what = pwsp_plan_list_text(kind);
    for (uint32_t i = 0; begin && i <= lanes->range_count; i++) {
        bool is_wrong = i == 0 ? begin[0] != 0 : begin[i] < begin[i - 1];
        if (is_wrong || (i == lanes->range_count && begin[i] != lanes->count)) {
            return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                                  "run: %s_begin %u of plan %s is %u; it goes from 0 to %" PRIu64
                                  ", in order",
                                  what, i, name, begin[i], lanes->count);
        }
    }
    return PTOWSP_OK;
}
