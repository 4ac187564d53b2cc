// What is checked before a run walks its program: everything that is needed is bound, arrays are
// well-formed, kernels can do what is asked; and what cannot be known before kernels have run.
//
// The contents of arrays are looked at each time, as they are the caller's and may have changed.

#include "run.h"

#include <inttypes.h>

static ptowsp_status pwsp_run_fail_unbound(ptowsp_run *run, const char *what, const char *name) {
    return pwsp_fail(run->context, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: %s %s is not bound", what,
                     name);
}

// Element i of an array of lengths or indices; false if it is negative or beyond 63 bits.
static bool pwsp_run_index(const pwsp_array *array, uint64_t i, uint64_t *out_value) {
    *out_value = pwsp_array_at(array, i);
    return *out_value <= INT64_MAX;
}

// An element that no length or index can be.
static ptowsp_status pwsp_run_fail_index(ptowsp_run *run, const char *what, uint64_t i,
                                         const char *axis, const pwsp_array *array,
                                         uint64_t value) {
    if (array->dtype == PTOWSP_U64) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, i,
                         "run: %s %" PRIu64 " of axis %s is %" PRIu64, what, i, axis, value);
    }
    return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, i,
                     "run: %s %" PRIu64 " of axis %s is %" PRId64, what, i, axis, (int64_t)value);
}

static ptowsp_status pwsp_run_check_lengths(ptowsp_run *run, uint32_t id, const char *name) {
    const pwsp_array *array = &run->arrays[id];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < array->count; i++) {
        uint64_t length;
        if (!pwsp_run_index(array, i, &length)) {
            return pwsp_run_fail_index(run, "length", i, name, array, length);
        }
        sum += length;
        if (sum > INT64_MAX) {
            return pwsp_fail(run->context, PTOWSP_LIMIT_EXCEEDED, i,
                             "run: the lengths of axis %s sum up to more than 2^63 - 1", name);
        }
    }
    run->length_sums[id] = (int64_t)sum;
    return PTOWSP_OK;
}

static ptowsp_status pwsp_run_check_csr(ptowsp_run *run, uint32_t id, const char *name) {
    pwsp_bound_csr *csr = &run->csrs[id];
    uint64_t last = 0;
    for (uint64_t i = 0; i <= csr->row_count; i++) {
        uint64_t at;
        if (!pwsp_run_index(&csr->indptr, i, &at)) {
            return pwsp_run_fail_index(run, "indptr", i, name, &csr->indptr, at);
        }
        if (i == 0 && at != 0) {
            return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, i,
                             "run: indptr 0 of axis %s is %" PRIu64 ", not 0", name, at);
        }
        if (at < last) {
            return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, i,
                             "run: indptr %" PRIu64 " of axis %s is %" PRIu64
                             ", less than the %" PRIu64 " before",
                             i, name, at, last);
        }
        if (at > csr->indices.count) {
            return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, i,
                             "run: indptr %" PRIu64 " of axis %s is %" PRIu64
                             ", but there are %" PRIu64 " indices",
                             i, name, at, csr->indices.count);
        }
        last = at;
    }
    csr->entry_count = last;
    for (uint64_t i = 0; i < last; i++) {
        uint64_t index;
        if (!pwsp_run_index(&csr->indices, i, &index)) {
            return pwsp_run_fail_index(run, "index", i, name, &csr->indices, index);
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_run_check_arrays(ptowsp_run *run) {
    const ptowsp_program *p = run->program;
    for (uint32_t i = 1; i < p->arrays.count; i++) {
        const pwsp_array_info *info = PWSP_PROGRAM_AT(p, arrays, pwsp_array_info, i);
        if (!p->array_is_used[i]) {
            continue;
        }
        if (!run->arrays[i].is_bound) {
            return pwsp_run_fail_unbound(run, info->is_lengths ? "ragged axis" : "array",
                                         info->name);
        }
        if (info->is_lengths) {
            ptowsp_status status = pwsp_run_check_lengths(run, i, info->name);
            if (status != PTOWSP_OK) {
                return status;
            }
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_run_check_sizes(ptowsp_run *run) {
    const ptowsp_program *p = run->program;
    for (uint32_t i = 1; i < p->axes.count; i++) {
        const pwsp_axis_info *axis = PWSP_PROGRAM_AT(p, axes, pwsp_axis_info, i);
        if (!p->axis_is_used[i]) {
            continue;
        }
        if (axis->kind == PWSP_AXIS_DYNAMIC && !run->is_bound[p->first_size + i]) {
            return pwsp_run_fail_unbound(run, "the size of axis", axis->name);
        }
        if (axis->kind == PWSP_AXIS_SPARSE) {
            if (!run->csrs[i].is_bound) {
                return pwsp_run_fail_unbound(run, "sparse axis", axis->name);
            }
            ptowsp_status status = pwsp_run_check_csr(run, i, axis->name);
            if (status != PTOWSP_OK) {
                return status;
            }
        }
    }
    for (uint32_t i = 1; i < p->symbols.count; i++) {
        if (p->symbol_is_used[i] && !run->is_bound[p->first_symbol + i]) {
            return pwsp_run_fail_unbound(run, "symbol",
                                         PWSP_PROGRAM_AT(p, symbols, pwsp_symbol_info, i)->name);
        }
    }
    return PTOWSP_OK;
}

// Puts a tensor without data where no other is: beyond all addresses, one after another from *base.
static ptowsp_status pwsp_run_place(ptowsp_run *run, const char *name, pwsp_bound_tensor *tensor,
                                    uint64_t *base) {
    uint64_t below = (uint64_t)-tensor->low * tensor->element_size;  // spans are below 2^62 bytes
    tensor->base = *base + below;
    *base += below + (uint64_t)(tensor->high + 1) * tensor->element_size;
    if (*base >= UINT64_C(3) << 62) {
        return pwsp_fail(run->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "run: tensors without data, up to %s, span more than 2^62 bytes", name);
    }
    return PTOWSP_OK;
}

// Tensors as this execution sees them. When only time is measured, those that no slot is loaded
// from need no data, and if their shape is declared no binding either.
static ptowsp_status pwsp_run_check_tensors(ptowsp_run *run, bool is_time_only) {
    const ptowsp_program *p = run->program;
    const ptowsp_buffer as_declared = {NULL, 0, PTOWSP_DTYPE_NONE, 0, {0}, {0}};
    uint64_t base = UINT64_C(1) << 63;
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 1; status == PTOWSP_OK && i < p->tensors.count; i++) {
        const char *name = PWSP_PROGRAM_AT(p, tensors, ptowsp_tensor_desc, i)->name;
        pwsp_bound_tensor *tensor = &run->effective[i];
        *tensor = run->tensors[i];
        if (!p->tensor_is_used[i]) {
            tensor->is_bound = false;
            continue;
        }
        bool needs_data = !is_time_only || p->tensor_is_loaded[i];
        if (!tensor->is_bound &&
            (needs_data || pwsp_bind_memory(run, i, &as_declared, tensor) != PTOWSP_OK)) {
            return pwsp_run_fail_unbound(run, "tensor", name);
        }
        bool is_empty = tensor->high < tensor->low;
        if (!tensor->data && !is_empty) {
            status = needs_data ? pwsp_fail(run->context, PTOWSP_UNBOUND, PTOWSP_NO_INDEX,
                                            "run: tensor %s is bound without data", name)
                                : pwsp_run_place(run, name, tensor, &base);
        }
    }
    return status;
}

static ptowsp_status pwsp_run_check_kernels(ptowsp_run *run, bool is_time_only) {
    const ptowsp_program *p = run->program;
    for (uint32_t i = 0; i < p->tasks.count; i++) {
        const pwsp_kernel_info *kernel = PWSP_PROGRAM_AT(
            p, kernels, pwsp_kernel_info, PWSP_PROGRAM_AT(p, tasks, pwsp_task_op, i)->kernel);
        if (kernel->code) {
            continue;
        }
        if (is_time_only && !kernel->cost && kernel->cycles == 0) {
            return pwsp_fail(
                run->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                "run: kernel %s has neither cost nor cycles, so that its time is known "
                "only by executing it",
                kernel->name);
        }
        if (!is_time_only && !kernel->fn) {
            return pwsp_fail(run->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                             "run: kernel %s has no fn, so that only its time can be measured",
                             kernel->name);
        }
    }
    return PTOWSP_OK;
}

// Which tensors tasks write, as they share memory now, and what depends on that.
static ptowsp_status pwsp_run_find_tainted(ptowsp_run *run, bool is_time_only) {
    const ptowsp_program *p = run->program;
    pwsp_deps *deps = &run->sim.deps;
    bool has_changed = !run->is_unknown_set;
    pwsp_deps_begin(deps, &run->timed, run->effective);
    for (uint32_t i = 1; i < p->tensors.count; i++) {
        has_changed = has_changed || deps->tensors[i].is_written != run->is_written[i];
        run->is_written[i] = deps->tensors[i].is_written;
    }
    if (has_changed) {
        run->is_unknown_set =
            pwsp_program_find_tainted(p, &run->memory, run->is_written, run->unknown);
        if (!run->is_unknown_set) {
            return pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                             "run: out of memory");
        }
    }
    for (uint32_t i = 0; is_time_only && i < p->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(p, i);
        if (op->kind == PWSP_OP_SLOT_LOAD &&
            run->is_written[PWSP_PROGRAM_AT(p, slot_ops, pwsp_slot_op, op->at)->view.tensor]) {
            run->expander.node = op->node;
            pwsp_expander_fail(&run->expander, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                               "it loads what a task writes, which only executing can tell");
            return pwsp_fail(run->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX, "%s",
                             run->expander.text);
        }
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_run_verify(ptowsp_run *run, bool is_time_only) {
    ptowsp_status status = pwsp_run_check_sizes(run);
    status = status != PTOWSP_OK ? status : pwsp_run_check_arrays(run);
    status = status != PTOWSP_OK ? status : pwsp_run_check_tensors(run, is_time_only);
    status = status != PTOWSP_OK ? status : pwsp_run_check_kernels(run, is_time_only);
    return status != PTOWSP_OK ? status : pwsp_run_find_tainted(run, is_time_only);
}
