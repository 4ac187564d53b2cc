// Read access to the bindings of a run, for executors outside the library.

#include "run.h"

const ptowsp_program *ptowsp_run_program(const ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    return run->program;
}

bool ptowsp_run_bound_size(const ptowsp_run *run, uint32_t axis, int64_t *out_size) {
    PTOWSP_ASSERT(run);
    const ptowsp_program *p = run->program;
    PTOWSP_ASSERT(axis > 0 && axis < p->axes.count);
    const pwsp_axis_info *info = &p->axes.items[axis];
    if (!out_size) {
        return false;
    }
    if (info->kind == PWSP_AXIS_DENSE) {
        *out_size = info->size;
        return true;
    }
    bool has_size = info->kind == PWSP_AXIS_DYNAMIC || info->kind >= PWSP_AXIS_PLAN;
    if (!has_size || !run->bindings.is_bound[p->first_size + axis]) {
        return false;
    }
    *out_size = (int64_t)run->bindings.initial[p->first_size + axis];
    return true;
}

bool ptowsp_run_bound_symbol(const ptowsp_run *run, uint32_t symbol, uint64_t *out_value) {
    PTOWSP_ASSERT(run);
    const ptowsp_program *p = run->program;
    PTOWSP_ASSERT(symbol > 0 && symbol < p->symbols.count);
    if (!out_value || !run->bindings.is_bound[p->first_symbol + symbol]) {
        return false;
    }
    *out_value = run->bindings.initial[p->first_symbol + symbol];
    return true;
}

bool ptowsp_run_bound_array(const ptowsp_run *run, uint32_t array, ptowsp_dtype *out_dtype,
                            const void **out_data, uint64_t *out_count) {
    PTOWSP_ASSERT(run && array > 0 && array < run->program->arrays.count);
    const pwsp_array *bound = &run->bindings.arrays[array];
    if (!out_dtype || !out_data || !out_count || !bound->is_bound ||
        run->program->arrays.items[array].plan_axis) {
        return false;
    }
    *out_dtype = bound->dtype;
    *out_data = bound->data;
    *out_count = bound->count;
    return true;
}

bool ptowsp_run_bound_csr(const ptowsp_run *run, uint32_t axis, ptowsp_csr *out_csr) {
    PTOWSP_ASSERT(run && axis > 0 && axis < run->program->axes.count);
    const pwsp_bound_csr *bound = &run->bindings.csrs[axis];
    if (!out_csr || !bound->is_bound) {
        return false;
    }
    out_csr->dtype = bound->indptr.dtype;
    out_csr->indptr = bound->indptr.data;
    out_csr->indices = bound->indices.data;
    out_csr->row_count = bound->row_count;
    out_csr->entry_count = bound->indices.count;
    return true;
}

bool ptowsp_run_bound_plan(const ptowsp_run *run, uint32_t axis, ptowsp_attention_plan *out_plan) {
    PTOWSP_ASSERT(run);
    const ptowsp_program *p = run->program;
    PTOWSP_ASSERT(axis > 0 && axis < p->axes.count);
    if (!out_plan || p->axes.items[axis].kind < PWSP_AXIS_PLAN ||
        !run->bindings.is_bound[p->first_size + axis]) {
        return false;
    }
    *out_plan = run->bindings.plans[axis];
    return true;
}

bool ptowsp_run_bound_batch(const ptowsp_run *run, uint32_t axis, ptowsp_attention_batch *out_batch,
                            ptowsp_attention_config *out_config,
                            ptowsp_attention_sizes *out_capacity) {
    PTOWSP_ASSERT(run && axis > 0 && axis < run->program->axes.count);
    const pwsp_plan_batch *bound = pwsp_bound_batch(&run->bindings, axis);
    if (!bound || !out_batch || !out_config || !out_capacity) {
        return false;
    }
    *out_batch = bound->batch;
    *out_config = bound->config;
    *out_capacity = bound->capacity;
    return true;
}

// The size counts the bytes that the tensor spans from its first element; 0 (not checked) where
// elements lie before the first one.
bool ptowsp_run_bound_tensor(const ptowsp_run *run, uint32_t tensor, ptowsp_buffer *out_buffer) {
    PTOWSP_ASSERT(run && tensor > 0 && tensor < run->program->tensors.count);
    const pwsp_bound_tensor *bound = &run->bindings.tensors[tensor];
    if (!out_buffer || !bound->is_bound || run->program->tensor_is_transient[tensor]) {
        return false;
    }
    uint32_t rank = run->program->tensors.items[tensor].rank;
    memset(out_buffer, 0, sizeof *out_buffer);
    out_buffer->data = bound->data;
    out_buffer->size =
        bound->low < 0 ? 0 : (uint64_t)(bound->high + 1) * (uint64_t)bound->element_size;
    out_buffer->dtype = bound->dtype;
    out_buffer->rank = rank;
    for (uint32_t i = 0; i + 2 < rank; i++) {
        out_buffer->shape[i] = bound->lead_shape[i];
        out_buffer->strides[i] = bound->lead_strides[i];
    }
    if (rank >= 2) {
        out_buffer->shape[rank - 2] = bound->rows;
        out_buffer->strides[rank - 2] = bound->row_stride;
    }
    if (rank >= 1) {
        out_buffer->shape[rank - 1] = bound->cols;
        out_buffer->strides[rank - 1] = bound->col_stride;
    }
    return true;
}

uint64_t ptowsp_run_bound_slot(const ptowsp_run *run, uint32_t slot) {
    PTOWSP_ASSERT(run);
    PTOWSP_ASSERT(slot < run->program->slot_count);
    return run->bindings.initial[run->program->first_slot + slot];
}

// -- transient tensors ----------------------------------------------------------------------------

void ptowsp_run_bound_transients(const ptowsp_run *run, void **out_block, uint64_t *out_size) {
    PTOWSP_ASSERT(run);
    if (out_block && out_size) {
        *out_block = run->bindings.transients.block;
        *out_size = run->bindings.transients.size;
    }
}

ptowsp_status ptowsp_run_size_transients(ptowsp_run *run, ptowsp_transient_sizes *out_sizes) {
    PTOWSP_ASSERT(run);
    if (!out_sizes) {
        return PWSP_REFUSE(run->context, "run: out_sizes is NULL");
    }
    if (pwsp_exchange_acquire(&run->is_running, 1u)) {
        return pwsp_fail_busy(run->owner);
    }
    ptowsp_status status = pwsp_bindings_size(&run->bindings);
    if (status == PTOWSP_OK) {
        *out_sizes = pwsp_result_transient_sizes(&run->result);
    }
    pwsp_store_release(&run->is_running, 0u);
    return status;
}
