// Binds names of a program to sizes, symbols, arrays and memory.
//
// The binding itself (type, shape, layout, pointers) is checked here, once, by the rules of
// runtime/binding_check.h. The contents of arrays are checked when a run executes, because they may
// change in between.

#include "bindings.h"

#include "../runtime/binding_check.h"
#include "../runtime/plan_binding.h"

// -- life -----------------------------------------------------------------------------------------

// Every array: field, item type, count.
#define PWSP_BINDINGS_ARRAYS(ARRAY)                                                                \
    ARRAY(initial, uint64_t, program->cell_count)                                                  \
    ARRAY(is_bound, bool, program->cell_count)                                                     \
    ARRAY(arrays, pwsp_array, program->arrays.count + 1)                                           \
    ARRAY(csrs, pwsp_bound_csr, program->axes.count + 1)                                           \
    ARRAY(tensors, pwsp_bound_tensor, program->tensors.count + 1)                                  \
    ARRAY(plans, ptowsp_attention_plan, program->axes.count + 1)                                   \
    ARRAY(batches, pwsp_plan_batch, program->axes.count + 1)                                       \
    ARRAY(rooms, pwsp_plan_room, program->axes.count + 1)                                          \
    ARRAY(length_sums, int64_t, program->arrays.count + 1)                                         \
    ARRAY(effective, pwsp_bound_tensor, program->tensors.count + 1)                                \
    ARRAY(transients.placed, pwsp_placed, program->transients.count + 1)                           \
    ARRAY(transients.order, uint32_t, 2 * program->transients.count + 1)                           \
    ARRAY(transients.offsets, uint64_t, program->transients.count + 1)                             \
    ARRAY(transients.alive, uint64_t, program->points.count + 1)

PWSP_INTERNAL bool pwsp_bindings_init(pwsp_bindings *bindings, ptowsp_context *context,
                                      const ptowsp_program *program) {
    memset(bindings, 0, sizeof *bindings);
    bindings->context = context;
    bindings->program = program;
#define PWSP_BINDINGS_ALLOC(field, type, count)                                                    \
    bindings->field = (type *)pwsp_memory_alloc(&context->memory, (size_t)(count) * sizeof(type)); \
    if (!bindings->field) {                                                                        \
        return false;                                                                              \
    }
    PWSP_BINDINGS_ARRAYS(PWSP_BINDINGS_ALLOC)
#undef PWSP_BINDINGS_ALLOC
    if (program->consts.count) {
        memcpy(bindings->initial + program->first_const, program->consts.items,
               (size_t)program->consts.count * sizeof(uint64_t));
    }
    return true;
}

PWSP_INTERNAL void pwsp_bindings_free(pwsp_bindings *bindings) {
    const ptowsp_program *program = bindings->program;
    for (uint32_t i = 0; bindings->rooms && i < program->axes.count; i++) {
        pwsp_plan_room_free(&bindings->context->memory, &bindings->rooms[i]);
    }
    pwsp_memory_free(&bindings->context->memory, bindings->transients.own,
                     (size_t)bindings->transients.own_bytes);
#define PWSP_BINDINGS_FREE(field, type, count)                                                     \
    pwsp_memory_free(&bindings->context->memory, bindings->field, (size_t)(count) * sizeof(type));
    PWSP_BINDINGS_ARRAYS(PWSP_BINDINGS_FREE)
#undef PWSP_BINDINGS_FREE
    memset(bindings, 0, sizeof *bindings);
}

PWSP_INTERNAL size_t pwsp_bindings_bytes(const pwsp_bindings *bindings) {
    const ptowsp_program *program = bindings->program;
    size_t bytes = (size_t)bindings->transients.own_bytes;
    for (uint32_t i = 0; i < program->axes.count; i++) {
        bytes += (size_t)bindings->rooms[i].word_count * sizeof(uint64_t);
    }
#define PWSP_BINDINGS_SIZE(field, type, count) bytes += (size_t)(count) * sizeof(type);
    PWSP_BINDINGS_ARRAYS(PWSP_BINDINGS_SIZE)
#undef PWSP_BINDINGS_SIZE
    return bytes;
}

// -- names ----------------------------------------------------------------------------------------

// Returns the status of a check, with its error in the context.
static ptowsp_status pwsp_bind_result(const pwsp_bindings *bindings, const pwsp_error *error,
                                      ptowsp_status status) {
    return status == PTOWSP_OK
               ? status
               : pwsp_fail(bindings->context, status, error->index, "%s", error->text);
}

// The index of a name among things of one kind; 0 with an error.
static uint32_t pwsp_bind_find(const pwsp_bindings *bindings, const char *what, const char *name,
                               uint32_t kind, ptowsp_status *out_status) {
    const pwsp_name *found = name ? pwsp_names_find(&bindings->program->names, name) : NULL;
    *out_status = PTOWSP_OK;
    if (!found || strcmp(found->text, name) != 0 || found->kind != kind) {
        pwsp_error error;
        *out_status = pwsp_bind_result(
            bindings, &error, pwsp_bind_fail_name(&error, bindings->program->name, what, name));
        return 0;
    }
    return found->index;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_size(pwsp_bindings *bindings, const char *axis,
                                           int64_t size) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, "dynamic axis", axis, PWSP_BIND_SIZE, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = pwsp_bind_check_size(&error, axis, size);
    if (status == PTOWSP_OK) {
        bindings->initial[bindings->program->first_size + id] = (uint64_t)size;
        bindings->is_bound[bindings->program->first_size + id] = true;
    }
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_symbol(pwsp_bindings *bindings, const char *symbol,
                                             uint64_t value) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, "symbol", symbol, PWSP_BIND_SYMBOL, &status);
    if (id == 0) {
        return status;
    }
    bindings->initial[bindings->program->first_symbol + id] = value;
    bindings->is_bound[bindings->program->first_symbol + id] = true;
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_slot(pwsp_bindings *bindings, uint32_t slot, uint64_t value) {
    pwsp_error error;
    ptowsp_status status = pwsp_bind_check_slot(&error, slot, bindings->program->slot_count);
    if (status == PTOWSP_OK) {
        bindings->initial[bindings->program->first_slot + slot] = value;
    }
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_array(pwsp_bindings *bindings, const char *name,
                                            bool is_lengths, ptowsp_dtype dtype, const void *data,
                                            uint64_t count) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, is_lengths ? "ragged axis" : "array", name,
                                 PWSP_BIND_ARRAY, &status);
    if (id == 0) {
        return status;
    }
    const pwsp_array_info *info = PWSP_PROGRAM_AT(bindings->program, arrays, pwsp_array_info, id);
    pwsp_error error;
    status =
        pwsp_bind_check_array(&error, info, is_lengths, dtype, data, count, &bindings->arrays[id]);
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_csr(pwsp_bindings *bindings, const char *axis,
                                          const ptowsp_csr *csr) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, "sparse axis", axis, PWSP_BIND_CSR, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = pwsp_bind_check_csr(&error, axis, csr, &bindings->csrs[id]);
    return pwsp_bind_result(bindings, &error, status);
}

// -- plans ----------------------------------------------------------------------------------------

// The axes of a plan are a list, from the one that names find; their fields are lists, too.
#define PWSP_PLAN_AXIS(p, i)  PWSP_PROGRAM_AT(p, axes, pwsp_axis_info, i)
#define PWSP_PLAN_FIELD(p, i) PWSP_PROGRAM_AT(p, arrays, pwsp_array_info, i)

// Has the plan all that the program uses of it?
static ptowsp_status pwsp_bind_plan_uses(const pwsp_bindings *bindings, pwsp_error *error,
                                         uint32_t first, const ptowsp_attention_plan *plan) {
    const ptowsp_program *p = bindings->program;
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = first; status == PTOWSP_OK && i; i = PWSP_PLAN_AXIS(p, i)->next) {
        const pwsp_axis_info *axis = PWSP_PLAN_AXIS(p, i);
        if (p->axis_is_used[i]) {
            status = pwsp_plan_has_axis(error, axis->name, plan, (ptowsp_axis_kind)axis->kind);
        }
        for (uint32_t j = axis->array; status == PTOWSP_OK && j;
             j = PWSP_PLAN_FIELD(p, j)->next_field) {
            if (p->array_is_used[j]) {
                status = pwsp_plan_has_field(error, axis->name, plan, PWSP_PLAN_FIELD(p, j)->field);
            }
        }
    }
    return status;
}

static void pwsp_bind_plan_parts(pwsp_bindings *bindings, uint32_t first,
                                 const ptowsp_attention_plan *plan) {
    const ptowsp_program *p = bindings->program;
    for (uint32_t i = first; i; i = PWSP_PLAN_AXIS(p, i)->next) {
        const pwsp_axis_info *axis = PWSP_PLAN_AXIS(p, i);
        const ptowsp_axis_kind kind = (ptowsp_axis_kind)axis->kind;
        bindings->plans[i] = *plan;
        bindings->initial[p->first_size + i] = (uint64_t)pwsp_plan_size(plan, kind);
        bindings->is_bound[p->first_size + i] = true;
        for (uint32_t j = axis->array; j; j = PWSP_PLAN_FIELD(p, j)->next_field) {
            bindings->arrays[j] = pwsp_plan_array(plan, kind, PWSP_PLAN_FIELD(p, j)->field);
        }
    }
}

// Binds what one of the following has checked.
static ptowsp_status pwsp_bind_checked_plan(pwsp_bindings *bindings, pwsp_error *error,
                                            ptowsp_status status, uint32_t axis,
                                            const ptowsp_attention_plan *plan) {
    status = status != PTOWSP_OK ? status : pwsp_bind_plan_uses(bindings, error, axis, plan);
    if (status == PTOWSP_OK) {
        bindings->batches[axis].is_bound = false;
        pwsp_bind_plan_parts(bindings, axis, plan);
    }
    return pwsp_bind_result(bindings, error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_plan(pwsp_bindings *bindings, const char *name,
                                           const ptowsp_attention_plan *plan) {
    ptowsp_status status;
    pwsp_error error;
    ptowsp_attention_plan checked;
    uint32_t axis = pwsp_bind_find(bindings, "plan", name, PWSP_BIND_PLAN, &status);
    if (axis == 0) {
        return status;
    }
    status = pwsp_bind_check_plan(&error, name, plan, &checked);
    return pwsp_bind_checked_plan(bindings, &error, status, axis, &checked);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_work(pwsp_bindings *bindings, const char *name,
                                           const ptowsp_work *work, uint64_t count) {
    ptowsp_status status;
    pwsp_error error;
    ptowsp_attention_plan checked;
    uint32_t axis = pwsp_bind_find(bindings, "plan", name, PWSP_BIND_PLAN, &status);
    if (axis == 0) {
        return status;
    }
    status = pwsp_bind_check_work(&error, name, work, count, &checked);
    return pwsp_bind_checked_plan(bindings, &error, status, axis, &checked);
}

// -- batches --------------------------------------------------------------------------------------

// No plan is bound to these axes any more.
static void pwsp_unbind_plan(pwsp_bindings *bindings, uint32_t first) {
    const ptowsp_program *p = bindings->program;
    for (uint32_t i = first; i; i = PWSP_PLAN_AXIS(p, i)->next) {
        bindings->is_bound[p->first_size + i] = false;
    }
}

PWSP_INTERNAL ptowsp_status pwsp_bind_batch(pwsp_bindings *bindings, const char *name,
                                            const ptowsp_attention_batch *batch,
                                            const ptowsp_attention_config *config,
                                            const ptowsp_attention_sizes *capacity) {
    ptowsp_status status;
    pwsp_error error;
    pwsp_plan_batch checked;
    memset(&checked, 0, sizeof checked);
    uint32_t axis = pwsp_bind_find(bindings, "plan", name, PWSP_BIND_PLAN, &status);
    if (axis == 0) {
        return status;
    }
    status = pwsp_bind_check_batch(&error, name, batch, config, capacity, &checked);
    if (status == PTOWSP_OK) {
        if (bindings->batches[axis].is_bound) {
            pwsp_unbind_plan(bindings, axis);  // it is in the room
        }
        status = pwsp_plan_room_reserve(&error, name, &bindings->context->memory, &checked,
                                        &bindings->rooms[axis]);
    }
    if (status == PTOWSP_OK) {
        pwsp_unbind_plan(bindings, axis);
        bindings->batches[axis] = checked;
    }
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL const pwsp_plan_batch *pwsp_bound_batch(const pwsp_bindings *bindings,
                                                      uint32_t axis) {
    const pwsp_axis_info *info = PWSP_PROGRAM_AT(bindings->program, axes, pwsp_axis_info, axis);
    if (info->kind < PWSP_AXIS_PLAN || info->declared != axis) {
        return NULL;
    }
    const pwsp_name *found = pwsp_names_find(&bindings->program->names, info->name);
    PTOWSP_ASSERT(found && found->kind == PWSP_BIND_PLAN);
    const pwsp_plan_batch *bound = &bindings->batches[found->index];
    return bound->is_bound ? bound : NULL;
}

PWSP_INTERNAL ptowsp_status pwsp_bindings_plan(pwsp_bindings *bindings) {
    const ptowsp_program *p = bindings->program;
    ptowsp_status status = PTOWSP_OK;
    pwsp_error error;
    for (uint32_t i = 1; status == PTOWSP_OK && i < p->axes.count; i++) {
        ptowsp_attention_plan plan;
        if (bindings->batches[i].is_bound) {
            const char *name = PWSP_PROGRAM_AT(p, axes, pwsp_axis_info, i)->name;
            pwsp_unbind_plan(bindings, i);
            status = pwsp_plan_make(&error, name, &bindings->context->memory, &bindings->batches[i],
                                    &bindings->rooms[i], &plan);
            if (status == PTOWSP_OK) {
                pwsp_bind_plan_parts(bindings, i, &plan);
            }
        }
    }
    return pwsp_bind_result(bindings, &error, status);
}

// -- tensors --------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_bind_tensor(pwsp_bindings *bindings, const char *tensor,
                                             const ptowsp_buffer *buffer) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, "tensor", tensor, PWSP_BIND_TENSOR, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = bindings->program->tensor_is_transient[id]
                 ? pwsp_bind_fail_transient(&error, tensor)
                 : pwsp_bind_check_tensor(
                       &error, PWSP_PROGRAM_AT(bindings->program, tensors, ptowsp_tensor_desc, id),
                       buffer, &bindings->tensors[id]);
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_transients(pwsp_bindings *bindings, void *block,
                                                 uint64_t size) {
    if ((uintptr_t)block % PTOWSP_TRANSIENT_ALIGN != 0) {
        pwsp_error error;
        return pwsp_bind_result(bindings, &error, pwsp_transient_fail_align(&error));
    }
    bindings->transients.block = (char *)block;
    bindings->transients.size = size;
    return PTOWSP_OK;
}
