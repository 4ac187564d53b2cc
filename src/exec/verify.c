// Checks before a run walks its program: all needed names are bound, arrays are well-formed,
// kernels support their calls.
//
// The contents of arrays are checked for each run: they belong to the caller and may have changed.

#include "transient.h"

#include "../runtime/binding_check.h"
#include "../runtime/plan_binding.h"

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
        if (p->axis_is_used[i] && axis->kind == PWSP_AXIS_DYNAMIC) {
            status = pwsp_verify_size(&error, axis->name, bindings->is_bound[p->first_size + i]);
        } else if (p->axis_is_used[i] && axis->kind >= PWSP_AXIS_PLAN &&
                   !bindings->is_bound[p->first_size + i]) {
            status = pwsp_verify_fail_unbound(&error, "plan", axis->name);
        } else if (p->axis_is_used[i] && axis->kind == PWSP_AXIS_SPARSE) {
            status = pwsp_verify_csr(&error, axis->name, &bindings->csrs[i]);
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
    ptowsp_status status = pwsp_check_sizes(bindings);
    status = status != PTOWSP_OK ? status : pwsp_check_arrays(bindings);
    return status != PTOWSP_OK ? status : pwsp_transients_find(bindings);
}

PWSP_INTERNAL ptowsp_status pwsp_bindings_verify_data(pwsp_bindings *bindings, bool is_time_only) {
    ptowsp_status status = pwsp_bindings_size(bindings);
    status = status != PTOWSP_OK ? status : pwsp_transients_bind(bindings, is_time_only);
    return status != PTOWSP_OK ? status : pwsp_check_tensors(bindings, is_time_only);
}

PWSP_INTERNAL ptowsp_status pwsp_bindings_verify(pwsp_bindings *bindings, bool is_time_only) {
    ptowsp_status status = pwsp_bindings_verify_data(bindings, is_time_only);
    return status != PTOWSP_OK ? status : pwsp_check_kernels(bindings, is_time_only);
}
