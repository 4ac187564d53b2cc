// Binding names of a program to sizes, symbols, arrays and memory.
//
// What a binding is by itself (type, shape, layout, pointers) is checked here, once, by the rules of
// runtime/binding_check.h; what is in the arrays is checked when a run executes, as it may change in
// between.

#include "run.h"

#include "../base/atomic.h"
#include "../runtime/binding_check.h"

// A check's status, with its error in the context.
static ptowsp_status pwsp_bind_result(ptowsp_run *run, const pwsp_error *error,
                                      ptowsp_status status) {
    return status == PTOWSP_OK ? status
                               : pwsp_fail(run->context, status, error->index, "%s", error->text);
}

// The index that a name has as a thing of some kind; 0 with an error.
static uint32_t pwsp_bind_find(ptowsp_run *run, const char *what, const char *name, uint32_t kind,
                               ptowsp_status *out_status) {
    const pwsp_name *found = name ? pwsp_names_find(&run->program->names, name) : NULL;
    *out_status = PTOWSP_OK;
    if (pwsp_load_relaxed(&run->is_running)) {
        *out_status = PTOWSP_BUSY;
        return 0;
    }
    if (!found || strcmp(found->text, name) != 0 || found->kind != kind) {
        pwsp_error error;
        *out_status = pwsp_bind_result(run, &error,
                                       pwsp_bind_fail_name(&error, run->program->name, what, name));
        return 0;
    }
    return found->index;
}

ptowsp_status ptowsp_run_bind_size(ptowsp_run *run, const char *axis, int64_t size) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(run, "dynamic axis", axis, PWSP_BIND_SIZE, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = pwsp_bind_check_size(&error, axis, size);
    if (status == PTOWSP_OK) {
        run->initial[run->program->first_size + id] = (uint64_t)size;
        run->is_bound[run->program->first_size + id] = true;
    }
    return pwsp_bind_result(run, &error, status);
}

ptowsp_status ptowsp_run_bind_symbol(ptowsp_run *run, const char *symbol, uint64_t value) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(run, "symbol", symbol, PWSP_BIND_SYMBOL, &status);
    if (id == 0) {
        return status;
    }
    run->initial[run->program->first_symbol + id] = value;
    run->is_bound[run->program->first_symbol + id] = true;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_run_bind_slot(ptowsp_run *run, uint32_t slot, uint64_t value) {
    if (pwsp_load_relaxed(&run->is_running)) {
        return PTOWSP_BUSY;
    }
    pwsp_error error;
    ptowsp_status status = pwsp_bind_check_slot(&error, slot, run->program->slot_count);
    if (status == PTOWSP_OK) {
        run->initial[run->program->first_slot + slot] = value;
    }
    return pwsp_bind_result(run, &error, status);
}

uint64_t ptowsp_run_slot(const ptowsp_run *run, uint32_t slot) {
    PTOWSP_ASSERT(slot < run->program->slot_count);
    return run->cells[run->program->first_slot + slot];
}

static ptowsp_status pwsp_bind_array(ptowsp_run *run, const char *name, bool is_lengths,
                                     ptowsp_dtype dtype, const void *data, uint64_t count) {
    ptowsp_status status;
    uint32_t id =
        pwsp_bind_find(run, is_lengths ? "ragged axis" : "array", name, PWSP_BIND_ARRAY, &status);
    if (id == 0) {
        return status;
    }
    const pwsp_array_info *info = PWSP_PROGRAM_AT(run->program, arrays, pwsp_array_info, id);
    pwsp_error error;
    status = pwsp_bind_check_array(&error, info, is_lengths, dtype, data, count, &run->arrays[id]);
    return pwsp_bind_result(run, &error, status);
}

ptowsp_status ptowsp_run_bind_array(ptowsp_run *run, const char *array, ptowsp_dtype dtype,
                                    const void *data, uint64_t count) {
    return pwsp_bind_array(run, array, false, dtype, data, count);
}

ptowsp_status ptowsp_run_bind_lengths(ptowsp_run *run, const char *axis, ptowsp_dtype dtype,
                                      const void *data, uint64_t count) {
    return pwsp_bind_array(run, axis, true, dtype, data, count);
}

ptowsp_status ptowsp_run_bind_csr(ptowsp_run *run, const char *axis, const ptowsp_csr *csr) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(run, "sparse axis", axis, PWSP_BIND_CSR, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = pwsp_bind_check_csr(&error, axis, csr, &run->csrs[id]);
    return pwsp_bind_result(run, &error, status);
}

ptowsp_status ptowsp_run_bind_tensor(ptowsp_run *run, const char *tensor,
                                     const ptowsp_buffer *buffer) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(run, "tensor", tensor, PWSP_BIND_TENSOR, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = pwsp_bind_check_tensor(&error,
                                    PWSP_PROGRAM_AT(run->program, tensors, ptowsp_tensor_desc, id),
                                    buffer, &run->tensors[id]);
    return pwsp_bind_result(run, &error, status);
}
