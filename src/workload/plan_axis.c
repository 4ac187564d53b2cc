// Axes over a plan: its units, its merges, its lanes.
//
// A plan is bound as a set of typed arrays with one stride, the fields of its descriptors:
//
//      descriptor   | work_id | tier | flags | tile | request | head | kv_start | kv_len |   24 bytes
//      kv.flags                        ^ u8, every 24 bytes
//      kv.request                                     ^ u32
//
// So a field in an expression is a read of an array, here and in emitted trees. The lane of a unit
// is not a field of its descriptor; its array holds the bounds of the lanes, which reading
// searches. A loop needs three things: the size of its axis, the flags (to skip invalid units), and
// for one lane the bounds. Flags and lanes are declared with the axis, in this order; other fields
// when they are first named. None of them can be bound by name.

#include "module.h"

#include "../base/text.h"

typedef struct pwsp_field_row {
    char text[12];
    uint8_t flags;  // that have to be set, or 0 for a number
    uint8_t dtype;
    bool of_units, of_merges;
} pwsp_field_row;

static const pwsp_field_row pwsp_field_rows[PTOWSP_PLAN_FIELD_COUNT] = {
#define PWSP_FIELD_ROW(name, text, dtype, byte, flags, units, merges)                              \
    {text, flags, PTOWSP_##dtype, units, merges},
    PTOWSP_PLAN_FIELDS(PWSP_FIELD_ROW)
#undef PWSP_FIELD_ROW
};

// The words for the axes of a plan.
static const char *pwsp_plan_axis_text(pwsp_axis_kind kind) {
    return kind == PWSP_AXIS_PLAN ? "units" : kind == PWSP_AXIS_PLAN_MERGES ? "merges" : "lanes";
}

// The array of a field of a plan axis, declared here if it is new; 0 with an error. Its name is for
// texts alone, as it is not bound by itself.
static uint32_t pwsp_field_array(ptowsp_module *module, uint32_t axis, ptowsp_plan_field field) {
    uint32_t last = 0;
    for (uint32_t i = PWSP_AXIS(module, axis)->array; i; i = PWSP_ARRAY(module, i)->next_field) {
        if (PWSP_ARRAY(module, i)->field == field) {
            return i;
        }
        last = i;
    }
    char name[PTOWSP_NAME_MAX + 1];
    pwsp_text_into(name, sizeof name, "%s.%s%s", PWSP_AXIS(module, axis)->name,
                   PWSP_AXIS(module, axis)->kind == PWSP_AXIS_PLAN_MERGES ? "merges." : "",
                   pwsp_field_rows[field].text);
    const char *copy = pwsp_module_name(module, "field", name);
    uint32_t id = copy ? PWSP_MODULE_ADD(module, module->arrays) : 0;
    if (id) {
        pwsp_array_info info = {
            copy, (ptowsp_dtype)pwsp_field_rows[field].dtype, false, axis, field, 0, 0};
        *PWSP_ARRAY(module, id) = info;
        *(last ? &PWSP_ARRAY(module, last)->next_field : &PWSP_AXIS(module, axis)->array) = id;
    }
    return id;
}

// The module's copy of the name of a plan, which may have other axes already; NULL with an error.
static const char *pwsp_plan_name(ptowsp_module *module, const char *name, pwsp_axis_kind kind,
                                  uint32_t axis) {
    const pwsp_name *found = pwsp_name_is_valid(name) ? pwsp_module_find(module, name) : NULL;
    if (!found || found->kind != PWSP_BIND_PLAN) {
        if (pwsp_name_is_valid(name) && strlen(name) > PTOWSP_PLAN_NAME_MAX) {
            PWSP_MODULE_REFUSE(module, "plan %s: its name has more than %d characters", name,
                               PTOWSP_PLAN_NAME_MAX);
            return NULL;
        }
        return pwsp_module_bindable(module, "plan", name, PWSP_BIND_PLAN, axis);
    }
    if (pwsp_module_axis(module, name, kind)) {
        PWSP_MODULE_REFUSE(module, "plan %s: there is an axis of its %s already", name,
                           pwsp_plan_axis_text(kind));
        return NULL;
    }
    uint32_t last = found->index;
    while (PWSP_AXIS(module, last)->next) {
        last = PWSP_AXIS(module, last)->next;
    }
    PWSP_AXIS(module, last)->next = axis;
    return found->text;
}

static ptowsp_axis pwsp_no_axis(void) {
    ptowsp_axis none = {0};
    return none;
}

static ptowsp_axis pwsp_plan_axis(ptowsp_module *module, const char *name, pwsp_axis_kind kind) {
    if (!pwsp_module_is_good(module)) {
        return pwsp_no_axis();
    }
    uint32_t id = PWSP_MODULE_ADD(module, module->axes);
    const char *copy = id ? pwsp_plan_name(module, name, kind, id) : NULL;
    if (!copy) {
        return pwsp_no_axis();
    }
    pwsp_axis_info info = {copy, kind, id, 0, 0, 0, 0};
    *PWSP_AXIS(module, id) = info;
    if (pwsp_axis_is_work(kind)) {
        uint32_t flags = pwsp_field_array(module, id, PTOWSP_PLAN_FLAGS);
        uint32_t lanes = flags ? pwsp_field_array(module, id, PTOWSP_PLAN_LANE) : 0;
        PTOWSP_ASSERT(!lanes || lanes == flags + 1);
        id = lanes ? id : 0;
    }
    ptowsp_axis axis = {id};
    return axis;
}

ptowsp_axis ptowsp_axis_plan(ptowsp_module *module, const char *name) {
    return pwsp_plan_axis(module, name, PWSP_AXIS_PLAN);
}

ptowsp_axis ptowsp_axis_plan_merges(ptowsp_module *module, const char *name) {
    return pwsp_plan_axis(module, name, PWSP_AXIS_PLAN_MERGES);
}

ptowsp_axis ptowsp_axis_plan_lanes(ptowsp_module *module, const char *name) {
    return pwsp_plan_axis(module, name, PWSP_AXIS_PLAN_LANES);
}

PWSP_INTERNAL uint32_t pwsp_plan_field_array(ptowsp_module *module, uint32_t axis,
                                             ptowsp_plan_field field, uint8_t *out_flags) {
    const pwsp_axis_info *info = PWSP_AXIS(module, axis);
    if (!pwsp_axis_is_work(info->kind)) {
        return PWSP_MODULE_REFUSE(module, "loop_field: axis %s is not of a plan's units or merges",
                                  info->name);
    }
    if ((uint32_t)field >= PTOWSP_PLAN_FIELD_COUNT) {
        return PWSP_MODULE_REFUSE(module, "loop_field: %d is no field", (int)field);
    }
    const pwsp_field_row *row = &pwsp_field_rows[field];
    if (info->kind == PWSP_AXIS_PLAN ? !row->of_units : !row->of_merges) {
        return PWSP_MODULE_REFUSE(module, "loop_field: the %s of plan %s have no %s",
                                  pwsp_plan_axis_text(info->kind), info->name, row->text);
    }
    *out_flags = row->flags;
    return pwsp_field_array(module, info->declared, row->flags ? PTOWSP_PLAN_FLAGS : field);
}
