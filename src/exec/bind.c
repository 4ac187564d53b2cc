// Binding names of a program to sizes, symbols, arrays and memory.
//
// What a binding is by itself (type, shape, layout, pointers) is checked here, once; what is in the
// arrays is checked when a run executes, as it may change in between.

#include "run.h"

#include "../base/atomic.h"

#include <inttypes.h>

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
        *out_status = pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                "bind: module %s has no %s %s", run->program->name, what,
                                !name                      ? "NULL"
                                : pwsp_name_is_valid(name) ? name
                                                           : "of such a name");
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
    if (size < 0) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: size %" PRId64 " of axis %s", size, axis);
    }
    run->initial[run->program->first_size + id] = (uint64_t)size;
    run->is_bound[run->program->first_size + id] = true;
    return PTOWSP_OK;
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
    if (slot >= run->program->slot_count) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, slot,
                         "bind: slot %u, but there are %u", slot, run->program->slot_count);
    }
    run->initial[run->program->first_slot + slot] = value;
    return PTOWSP_OK;
}

uint64_t ptowsp_run_slot(const ptowsp_run *run, uint32_t slot) {
    PTOWSP_ASSERT(slot < run->program->slot_count);
    return run->cells[run->program->first_slot + slot];
}

// -- arrays ---------------------------------------------------------------------------------------

static bool pwsp_dtype_is_index(ptowsp_dtype dtype) {
    return dtype == PTOWSP_I32 || dtype == PTOWSP_I64 || dtype == PTOWSP_U32 || dtype == PTOWSP_U64;
}

// Checks pointer, alignment and size of an array of elements; `what` is "" or "indptr of ".
static ptowsp_status pwsp_bind_check_data(ptowsp_run *run, const char *what, const char *name,
                                          ptowsp_dtype dtype, const void *data, uint64_t count) {
    uint32_t size = ptowsp_dtype_size(dtype);
    uint64_t bytes;
    if (count > 0 && !data) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: %s%s has %" PRIu64 " elements at NULL", what, name, count);
    }
    if ((uintptr_t)data % size != 0) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: %s%s is not aligned to its elements of %u bytes", what, name, size);
    }
    if (!pwsp_mul_fits(count, size, &bytes) || bytes > INT64_MAX) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: %s%s has %" PRIu64 " elements, which cannot be", what, name, count);
    }
    return PTOWSP_OK;
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
    if (is_lengths && !info->is_lengths) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: %s is an array, not a ragged axis", name);
    }
    if (info->is_lengths && !pwsp_dtype_is_index(dtype)) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: lengths of %s are %s; they are i32, i64, u32 or u64", name,
                         ptowsp_dtype_name(dtype));
    }
    if (info->dtype != PTOWSP_DTYPE_NONE && dtype != info->dtype) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: %s is %s; it is declared %s", name, ptowsp_dtype_name(dtype),
                         ptowsp_dtype_name(info->dtype));
    }
    status = pwsp_bind_check_data(run, "", name, dtype, data, count);
    if (status == PTOWSP_OK) {
        pwsp_array array = {data, count, dtype, true};
        run->arrays[id] = array;
    }
    return status;
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
    if (!csr) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: the csr of axis %s is NULL", axis);
    }
    if (!pwsp_dtype_is_index(csr->dtype)) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: arrays of axis %s are %s; they are i32, i64, u32 or u64", axis,
                         ptowsp_dtype_name(csr->dtype));
    }
    if (csr->row_count >= INT64_MAX) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: axis %s has %" PRIu64 " rows, which cannot be", axis,
                         csr->row_count);
    }
    status =
        pwsp_bind_check_data(run, "indptr of ", axis, csr->dtype, csr->indptr, csr->row_count + 1);
    if (status == PTOWSP_OK) {
        status = pwsp_bind_check_data(run, "indices of ", axis, csr->dtype, csr->indices,
                                      csr->entry_count);
    }
    if (status == PTOWSP_OK) {
        pwsp_bound_csr bound = {{csr->indptr, csr->row_count + 1, csr->dtype, true},
                                {csr->indices, csr->entry_count, csr->dtype, true},
                                csr->row_count,
                                0,
                                true};
        run->csrs[id] = bound;
    }
    return status;
}

// -- tensors --------------------------------------------------------------------------------------

// Fills in the shape: the declared one where that is static. An error if they differ.
static ptowsp_status pwsp_bind_shape(ptowsp_run *run, const ptowsp_tensor_desc *tensor,
                                     const ptowsp_buffer *buffer, int64_t *out_shape) {
    if (buffer->dtype != PTOWSP_DTYPE_NONE && buffer->dtype != tensor->dtype) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: tensor %s is %s; it is declared %s", tensor->name,
                         ptowsp_dtype_name(buffer->dtype), ptowsp_dtype_name(tensor->dtype));
    }
    if (buffer->rank != 0 && buffer->rank != tensor->rank) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: tensor %s has rank %u; it is declared with %u", tensor->name,
                         buffer->rank, tensor->rank);
    }
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t size = buffer->rank ? buffer->shape[i] : tensor->shape[i];
        if (size < 0 || (tensor->shape[i] != PTOWSP_DYNAMIC && size != tensor->shape[i])) {
            if (tensor->shape[i] == PTOWSP_DYNAMIC) {
                return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, i,
                                 "bind: dimension %u of tensor %s needs a size, not %" PRId64, i,
                                 tensor->name, size);
            }
            return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, i,
                             "bind: dimension %u of tensor %s is %" PRId64
                             "; it is declared %" PRId64,
                             i, tensor->name, size, tensor->shape[i]);
        }
        out_shape[i] = size;
    }
    return PTOWSP_OK;
}

// Row-major strides for a shape. False if the tensor is too large.
static bool pwsp_bind_row_major(uint32_t rank, const int64_t *shape, int64_t *out_strides) {
    uint64_t stride = 1;
    bool is_empty = false;
    for (uint32_t i = rank; i > 0; i--) {
        out_strides[i - 1] = (int64_t)stride;
        is_empty = is_empty || shape[i - 1] == 0;
        uint64_t size = shape[i - 1] ? (uint64_t)shape[i - 1] : 1;
        if (!pwsp_mul_fits(stride, size, &stride) || stride > INT64_MAX) {
            if (!is_empty) {
                return false;
            }
            stride = 1;
        }
    }
    return true;
}

// Where dimensions of a tensor go: leading ones, rows, columns.
static void pwsp_bind_dimensions(uint32_t rank, const int64_t *shape, const int64_t *strides,
                                 pwsp_bound_tensor *bound) {
    for (uint32_t i = 0; i < PWSP_TENSOR_LEAD_MAX; i++) {
        bool has = rank > 2 && i < rank - 2;
        bound->lead_shape[i] = has ? shape[i] : 1;
        bound->lead_strides[i] = has ? strides[i] : 0;
    }
    bound->rows = rank >= 2 ? shape[rank - 2] : 1;
    bound->row_stride = rank >= 2 ? strides[rank - 2] : 0;
    bound->cols = rank >= 1 ? shape[rank - 1] : 1;
    bound->col_stride = rank >= 1 ? strides[rank - 1] : 1;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_memory(ptowsp_run *run, uint32_t id,
                                             const ptowsp_buffer *buffer,
                                             pwsp_bound_tensor *out_bound) {
    const ptowsp_tensor_desc *desc = PWSP_PROGRAM_AT(run->program, tensors, ptowsp_tensor_desc, id);
    int64_t shape[PTOWSP_TENSOR_RANK_MAX], strides[PTOWSP_TENSOR_RANK_MAX], low, high;
    ptowsp_status status = pwsp_bind_shape(run, desc, buffer, shape);
    if (status != PTOWSP_OK) {
        return status;
    }
    bool has_strides = false, fits = true;
    for (uint32_t i = 0; i < desc->rank; i++) {
        strides[i] = buffer->strides[i];
        has_strides = has_strides || strides[i] != 0;
    }
    if (!has_strides) {
        fits = pwsp_bind_row_major(desc->rank, shape, strides);
    }
    int64_t element = (int64_t)ptowsp_dtype_size(desc->dtype);
    fits = fits && pwsp_layout_span(desc->rank, shape, strides, &low, &high) &&
           low > -(INT64_MAX / 4 / element) && high < INT64_MAX / 4 / element;
    if (!fits) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: tensor %s spans more than 2^61 bytes", desc->name);
    }
    if (buffer->size != 0 && (low < 0 || (uint64_t)(high + 1) * (uint64_t)element > buffer->size)) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: tensor %s spans elements %" PRId64 " to %" PRId64
                         ", which are not all in its %" PRIu64 " bytes",
                         desc->name, low, high, buffer->size);
    }
    if ((uintptr_t)buffer->data % (uintptr_t)element != 0) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: tensor %s is not aligned to its elements of %" PRId64 " bytes",
                         desc->name, element);
    }
    pwsp_bound_tensor bound;
    memset(&bound, 0, sizeof bound);
    pwsp_bind_dimensions(desc->rank, shape, strides, &bound);
    bound.data = (char *)buffer->data;
    bound.base = (uint64_t)(uintptr_t)buffer->data;
    bound.low = low;
    bound.high = high;
    bound.element_size = (uint32_t)element;
    bound.dtype = desc->dtype;
    bound.is_bound = true;
    *out_bound = bound;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_run_bind_tensor(ptowsp_run *run, const char *tensor,
                                     const ptowsp_buffer *buffer) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(run, "tensor", tensor, PWSP_BIND_TENSOR, &status);
    if (id == 0) {
        return status;
    }
    if (!buffer) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "bind: the buffer of tensor %s is NULL", tensor);
    }
    return pwsp_bind_memory(run, id, buffer, &run->tensors[id]);
}
