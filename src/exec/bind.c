// Binds names of a program to sizes, symbols, arrays and memory.
//
// The binding itself (type, shape, layout, pointers) is checked once, by the rules of
// runtime/binding_check.h. Data of the caller that may have changed, as the contents of arrays, is
// checked whenever a run executes, before it walks its program.

#include "transient.h"

#include "../base/text.h"
#include "../runtime/binding_check.h"
#include "../runtime/plan_binding.h"

// -- life -----------------------------------------------------------------------------------------

#define PWSP_BINDINGS_ARRAYS(ARRAY)                                                                \
    ARRAY(bindings->initial, program->cell_count)                                                  \
    ARRAY(bindings->is_bound, program->cell_count)                                                 \
    ARRAY(bindings->arrays, program->arrays.count + 1)                                             \
    ARRAY(bindings->csrs, program->axes.count + 1)                                                 \
    ARRAY(bindings->tensors, program->tensors.count + 1)                                           \
    ARRAY(bindings->plans, program->axes.count + 1)                                                \
    ARRAY(bindings->batches, program->axes.count + 1)                                              \
    ARRAY(bindings->rooms, program->axes.count + 1)                                                \
    ARRAY(bindings->length_sums, program->arrays.count + 1)                                        \
    ARRAY(bindings->effective, program->tensors.count + 1)                                         \
    ARRAY(bindings->transients.placed, program->transients.count + 1)                              \
    ARRAY(bindings->transients.order, 2 * program->transients.count + 1)                           \
    ARRAY(bindings->transients.offsets, program->transients.count + 1)                             \
    ARRAY(bindings->transients.alive, program->points.count + 1)

PWSP_INTERNAL bool pwsp_bindings_init(pwsp_bindings *bindings, const pwsp_memory *memory,
                                      ptowsp_context *context, const ptowsp_program *program) {
    bool is_good = true;
    memset(bindings, 0, sizeof *bindings);
    bindings->memory = memory;
    bindings->context = context;
    bindings->program = program;
    PWSP_BINDINGS_ARRAYS(PWSP_ARRAY_ALLOC)
    if (is_good && program->consts.count) {
        memcpy(bindings->initial + program->first_const, program->consts.items,
               (size_t)program->consts.count * sizeof(uint64_t));
    }
    return is_good;
}

// -- names ----------------------------------------------------------------------------------------

// By kind of binding: the kind of name.
static const uint8_t pwsp_bind_kinds[PTOWSP_BIND_KIND_COUNT] = {
    PWSP_BIND_SIZE,   PWSP_BIND_SYMBOL, PWSP_BIND_ARRAY, PWSP_BIND_ARRAY, PWSP_BIND_CSR,
    PWSP_BIND_TENSOR, PWSP_BIND_PLAN,   PWSP_BIND_PLAN,  PWSP_BIND_PLAN};

// The index of the thing that a binding names; 0 if the module lacks it.
static uint32_t pwsp_bind_find(const pwsp_bindings *bindings, const ptowsp_binding *b) {
    const pwsp_name *found = b->name ? pwsp_names_get(&bindings->program->names, b->name) : NULL;
    return found && found->kind == pwsp_bind_kinds[b->kind] ? found->index : 0;
}

// The error for a name that the module lacks, with up to three names of the kind.
static ptowsp_status pwsp_bind_fail_unknown(const pwsp_bindings *bindings, const ptowsp_binding *b,
                                            const char *what, pwsp_error *error) {
    const pwsp_names *names = &bindings->program->names;
    char hint[3 * (PTOWSP_NAME_MAX + 2) + 16] = "";
    ptowsp_output_buffer buffer = {hint, sizeof hint, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    uint32_t count = 0;
    for (uint64_t i = 0; i < names->count && count <= 3; i++) {
        if (names->items[i].kind == pwsp_bind_kinds[b->kind]) {
            pwsp_text_format(text, "%s%s", count ? ", " : "; it has ",
                             count < 3 ? names->items[i].text : "...");
            count++;
        }
    }
    return pwsp_bind_fail_name(error, bindings->program->name, what, b->name, hint);
}

// -- sizes, symbols, slots, arrays ----------------------------------------------------------------

static void pwsp_bind_cell(pwsp_bindings *bindings, uint32_t cell, uint64_t value) {
    bindings->initial[cell] = value;
    bindings->is_bound[cell] = true;
}

static ptowsp_status pwsp_bind_size(pwsp_bindings *bindings, uint32_t id, const ptowsp_binding *b,
                                    pwsp_error *error) {
    const ptowsp_status status = pwsp_bind_check_size(error, b->name, (int64_t)b->value);
    if (status == PTOWSP_OK) {
        pwsp_bind_cell(bindings, bindings->program->first_size + id, b->value);
    }
    return status;
}

static ptowsp_status pwsp_bind_slot(pwsp_bindings *bindings, const ptowsp_binding *b,
                                    pwsp_error *error) {
    const ptowsp_status status =
        pwsp_bind_check_slot(error, b->slot, bindings->program->slot_count);
    if (status == PTOWSP_OK) {
        bindings->initial[bindings->program->first_slot + b->slot] = b->value;
    }
    return status;
}

// -- plans ----------------------------------------------------------------------------------------

// The axes of a plan are a list, from the one that names find; their fields are lists, too.
#define PWSP_PLAN_AXIS(p, i)  (&(p)->axes.items[i])
#define PWSP_PLAN_FIELD(p, i) (&(p)->arrays.items[i])

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

static ptowsp_status pwsp_bind_plan(pwsp_bindings *bindings, uint32_t axis, const ptowsp_binding *b,
                                    pwsp_error *error) {
    ptowsp_attention_plan plan;
    ptowsp_status status =
        b->kind == PTOWSP_BIND_WORK
            ? pwsp_bind_check_work(error, b->name, (const ptowsp_work *)b->data, b->count, &plan)
            : pwsp_bind_check_plan(error, b->name, (const ptowsp_attention_plan *)b->data, &plan);
    status = status != PTOWSP_OK ? status : pwsp_bind_plan_uses(bindings, error, axis, &plan);
    if (status == PTOWSP_OK) {
        bindings->batches[axis].is_bound = false;
        pwsp_bind_plan_parts(bindings, axis, &plan);
    }
    return status;
}

// -- batches --------------------------------------------------------------------------------------

// No plan is bound to these axes any more.
static void pwsp_unbind_plan(pwsp_bindings *bindings, uint32_t first) {
    const ptowsp_program *p = bindings->program;
    for (uint32_t i = first; i; i = PWSP_PLAN_AXIS(p, i)->next) {
        bindings->is_bound[p->first_size + i] = false;
    }
}

static ptowsp_status pwsp_bind_batch(pwsp_bindings *bindings, uint32_t axis,
                                     const ptowsp_binding *b, pwsp_error *error) {
    PWSP_ZERO(pwsp_plan_batch, checked);
    ptowsp_status status = pwsp_bind_check_batch(
        error, b->name, (const ptowsp_attention_batch *)b->data, b->config, b->capacity, &checked);
    if (status == PTOWSP_OK) {
        if (bindings->batches[axis].is_bound) {
            pwsp_unbind_plan(bindings, axis);  // it is in the room
        }
        status = pwsp_plan_room_reserve(error, b->name, bindings->memory, &checked,
                                        &bindings->rooms[axis]);
    }
    if (status == PTOWSP_OK) {
        pwsp_unbind_plan(bindings, axis);
        bindings->batches[axis] = checked;
    }
    return status;
}

PWSP_INTERNAL const pwsp_plan_batch *pwsp_bound_batch(const pwsp_bindings *bindings,
                                                      uint32_t axis) {
    const pwsp_axis_info *info = &bindings->program->axes.items[axis];
    if (info->kind < PWSP_AXIS_PLAN || info->declared != axis) {
        return NULL;
    }
    const pwsp_name *found = pwsp_names_find(&bindings->program->names, info->name);
    PTOWSP_ASSERT(found && found->kind == PWSP_BIND_PLAN);
    const pwsp_plan_batch *bound = &bindings->batches[found->index];
    return bound->is_bound ? bound : NULL;
}

// -- tensors --------------------------------------------------------------------------------------

static ptowsp_status pwsp_bind_tensor(pwsp_bindings *bindings, uint32_t id, const ptowsp_binding *b,
                                      pwsp_error *error) {
    const ptowsp_program *p = bindings->program;
    return p->tensor_is_transient[id]
               ? pwsp_bind_fail_transient(error, b->name)
               : pwsp_bind_check_tensor(error, &p->tensors.items[id],
                                        (const ptowsp_buffer *)b->data, &bindings->tensors[id]);
}

static ptowsp_status pwsp_bind_transients(pwsp_transients *transients, const ptowsp_binding *b,
                                          pwsp_error *error) {
    if ((uintptr_t)b->block % PTOWSP_TRANSIENT_ALIGN != 0) {
        return pwsp_transient_fail_align(error);
    }
    transients->block = (char *)b->block;
    transients->size = b->count;
    return PTOWSP_OK;
}

// -- all ------------------------------------------------------------------------------------------

// `id`: of the thing that the binding names.
static ptowsp_status pwsp_bind_named(pwsp_bindings *bindings, uint32_t id, const ptowsp_binding *b,
                                     pwsp_error *error) {
    const ptowsp_program *p = bindings->program;
    switch (b->kind) {
    case PTOWSP_BIND_SIZE: return pwsp_bind_size(bindings, id, b, error);
    case PTOWSP_BIND_SYMBOL: pwsp_bind_cell(bindings, p->first_symbol + id, b->value); break;
    case PTOWSP_BIND_ARRAY:
    case PTOWSP_BIND_LENGTHS:
        return pwsp_bind_check_array(error, &p->arrays.items[id], b->kind == PTOWSP_BIND_LENGTHS,
                                     b->dtype, b->data, b->count, &bindings->arrays[id]);
    case PTOWSP_BIND_CSR:
        return pwsp_bind_check_csr(error, b->name, (const ptowsp_csr *)b->data,
                                   &bindings->csrs[id]);
    case PTOWSP_BIND_TENSOR: return pwsp_bind_tensor(bindings, id, b, error);
    case PTOWSP_BIND_BATCH: return pwsp_bind_batch(bindings, id, b, error);
    default: return pwsp_bind_plan(bindings, id, b, error);
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_bind(pwsp_bindings *bindings, const ptowsp_binding *b) {
    static const char what[PTOWSP_BIND_KIND_COUNT][16] = {
#define PWSP_BIND_WHAT(kind, name_of) name_of,
        PTOWSP_BIND_KINDS(PWSP_BIND_WHAT)
#undef PWSP_BIND_WHAT
    };
    pwsp_error error;
    ptowsp_status status;
    if ((uint32_t)b->kind >= PTOWSP_BIND_KIND_COUNT) {
        return PWSP_REFUSE(bindings->context, "bind: there is no kind of binding %d", (int)b->kind);
    }
    if (!what[b->kind][0]) {
        status = b->kind == PTOWSP_BIND_SLOT
                     ? pwsp_bind_slot(bindings, b, &error)
                     : pwsp_bind_transients(&bindings->transients, b, &error);
    } else {
        const uint32_t id = pwsp_bind_find(bindings, b);
        status = id ? pwsp_bind_named(bindings, id, b, &error)
                    : pwsp_bind_fail_unknown(bindings, b, what[b->kind], &error);
    }
    return pwsp_bindings_status(bindings, &error, status);
}

// -- before a walk --------------------------------------------------------------------------------

// Plans the batches that are bound, and binds their plans.
static ptowsp_status pwsp_check_batches(pwsp_bindings *bindings) {
    const ptowsp_program *p = bindings->program;
    ptowsp_status status = PTOWSP_OK;
    pwsp_error error;
    for (uint32_t i = 1; status == PTOWSP_OK && i < p->axes.count; i++) {
        ptowsp_attention_plan plan;
        if (bindings->batches[i].is_bound) {
            const char *name = p->axes.items[i].name;
            pwsp_unbind_plan(bindings, i);
            status = pwsp_plan_make(&error, name, bindings->memory, &bindings->batches[i],
                                    &bindings->rooms[i], &plan);
            if (status == PTOWSP_OK) {
                pwsp_bind_plan_parts(bindings, i, &plan);
            }
        }
    }
    return pwsp_bindings_status(bindings, &error, status);
}

static ptowsp_status pwsp_check_arrays(pwsp_bindings *bindings) {
    const ptowsp_program *p = bindings->program;
    ptowsp_status status = PTOWSP_OK;
    pwsp_error error;
    for (uint32_t i = 1; i < p->arrays.count && status == PTOWSP_OK; i++) {
        const pwsp_array_info *info = &p->arrays.items[i];
        if (!p->array_is_used[i]) {
            continue;
        }
        if (info->plan_axis == 0) {
            status =
                pwsp_verify_array(&error, info, &bindings->arrays[i], &bindings->length_sums[i]);
        } else if (info->field == PTOWSP_PLAN_LANE) {  // other fields are bound, as their axis is
            const pwsp_axis_info *axis = &p->axes.items[info->plan_axis];
            status = pwsp_verify_plan_lanes(&error, axis->name, (ptowsp_axis_kind)axis->kind,
                                            &bindings->arrays[i]);
        }
    }
    return pwsp_bindings_status(bindings, &error, status);
}

static ptowsp_status pwsp_check_sizes(pwsp_bindings *bindings) {
    const ptowsp_program *p = bindings->program;
    ptowsp_status status = PTOWSP_OK;
    pwsp_error error;
    for (uint32_t i = 1; i < p->axes.count && status == PTOWSP_OK; i++) {
        const pwsp_axis_info *axis = &p->axes.items[i];
        if (p->axis_is_used[i]) {
            status = pwsp_verify_axis(&error, axis->name, (ptowsp_axis_kind)axis->kind,
                                      bindings->is_bound[p->first_size + i], &bindings->csrs[i]);
        }
    }
    for (uint32_t i = 1; i < p->symbols.count && status == PTOWSP_OK; i++) {
        const pwsp_symbol_info *symbol = &p->symbols.items[i];
        if (p->symbol_is_used[i]) {
            status =
                pwsp_verify_symbol(&error, symbol->name, bindings->is_bound[p->first_symbol + i]);
        }
    }
    return pwsp_bindings_status(bindings, &error, status);
}

// Places a tensor without data at unused addresses: beyond all others, one after another from
// *base.
static ptowsp_status pwsp_check_place(const pwsp_bindings *bindings, const char *name,
                                      pwsp_bound_tensor *tensor, uint64_t *base) {
    uint64_t below = (uint64_t)-tensor->low * tensor->element_size;  // spans are below 2^62 bytes
    tensor->base = *base + below;
    *base += below + (uint64_t)(tensor->high + 1) * tensor->element_size;
    if (*base >= UINT64_C(3) << 62) {
        return pwsp_fail(bindings->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "run: tensors without data, up to %s, span more than 2^62 bytes", name);
    }
    return PTOWSP_OK;
}

// Tensors as this execution sees them. When only time is measured, a tensor needs data only if a
// slot is loaded from it; with a declared shape it needs no binding either.
static ptowsp_status pwsp_check_tensors(pwsp_bindings *bindings, bool is_time_only) {
    const ptowsp_program *p = bindings->program;
    const ptowsp_buffer as_declared = {NULL, 0, PTOWSP_DTYPE_NONE, 0, {0}, {0}};
    uint64_t base = (UINT64_C(1) << 63) + bindings->transients.placement.peak;
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 1; status == PTOWSP_OK && i < p->tensors.count; i++) {
        const ptowsp_tensor_desc *desc = &p->tensors.items[i];
        pwsp_bound_tensor *tensor = &bindings->effective[i];
        *tensor = bindings->tensors[i];
        if (!p->tensor_is_used[i]) {
            tensor->is_bound = false;
            continue;
        }
        bool needs_data = !is_time_only || p->tensor_is_loaded[i];
        pwsp_error error;
        if (!tensor->is_bound && !needs_data) {
            pwsp_bind_check_tensor(&error, desc, &as_declared, tensor);
        }
        status = pwsp_verify_tensor(&error, desc->name, tensor);
        if (status != PTOWSP_OK) {
            status = p->tensor_is_transient[i] ? PTOWSP_OK
                     : needs_data || !tensor->is_bound
                         ? pwsp_bindings_status(bindings, &error, status)
                         : pwsp_check_place(bindings, desc->name, tensor, &base);
        }
    }
    return status;
}

static ptowsp_status pwsp_check_kernels(const pwsp_bindings *bindings, bool is_time_only) {
    const ptowsp_program *p = bindings->program;
    for (uint32_t i = 0; i < p->tasks.count; i++) {
        const pwsp_kernel_info *kernel = &p->kernels.items[p->tasks.items[i].kernel];
        if (kernel->code || kernel->unit == PTOWSP_UNIT_LINK) {
            continue;
        }
        if (is_time_only && !kernel->cost && kernel->cycles == 0 && !p->tasks.items[i].has_cycles) {
            return pwsp_fail(
                bindings->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                "run: kernel %s has neither cost nor cycles, so that its time is known "
                "only by executing it",
                kernel->name);
        }
        if (!is_time_only && !kernel->fn) {
            return pwsp_fail(bindings->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                             kernel->pto ? "run: kernel %s is a PTO-ISA source without fn: it runs "
                                           "in a tree (ptowsp_npu_emit), or give it an fn that is "
                                           "built with ptoisa_shim.h"
                                         : "run: kernel %s has no fn, so that only its time can be "
                                           "measured",
                             kernel->name);
        }
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_bindings_size(pwsp_bindings *bindings) {
    ptowsp_status status = pwsp_check_batches(bindings);
    status = status != PTOWSP_OK ? status : pwsp_check_sizes(bindings);
    status = status != PTOWSP_OK ? status : pwsp_check_arrays(bindings);
    return status != PTOWSP_OK || bindings->program->transients.count == 0
               ? status
               : pwsp_transients_find(bindings);
}

PWSP_INTERNAL ptowsp_status pwsp_bindings_verify_data(pwsp_bindings *bindings, bool is_time_only) {
    ptowsp_status status = pwsp_bindings_size(bindings);
    if (status == PTOWSP_OK && bindings->program->transients.count) {
        status = pwsp_transients_bind(bindings, is_time_only);
    }
    return status != PTOWSP_OK ? status : pwsp_check_tensors(bindings, is_time_only);
}

PWSP_INTERNAL ptowsp_status pwsp_bindings_verify(pwsp_bindings *bindings, bool is_time_only) {
    ptowsp_status status = pwsp_bindings_verify_data(bindings, is_time_only);
    return status != PTOWSP_OK ? status : pwsp_check_kernels(bindings, is_time_only);
}
