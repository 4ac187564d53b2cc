// Checks of bindings; see binding_check.h.

#include "binding_check.h"

#include "../base/text.h"
#include "../data/names.h"

#include <inttypes.h>
#include <stddef.h>

PWSP_INTERNAL ptowsp_status pwsp_bind_fail_name(pwsp_error *error, const char *module,
                                                const char *what, const char *name,
                                                const char *hint) {
    const bool is_named = strcmp(module, PWSP_MODULE_UNNAMED) != 0;
    return PWSP_ERROR_REFUSE(error, "bind: module%s%s has no %s %s%s", is_named ? " " : "",
                             is_named ? module : "", what,
                             !name                      ? "NULL"
                             : pwsp_name_is_valid(name) ? name
                                                        : "of such a name",
                             hint);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_check_size(pwsp_error *error, const char *axis,
                                                 int64_t size) {
    return size >= 0 ? PTOWSP_OK
                     : PWSP_ERROR_REFUSE(error, "bind: size %" PRId64 " of axis %s is negative",
                                         size, axis);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_check_slot(pwsp_error *error, uint32_t slot, uint32_t count) {
    return slot < count ? PTOWSP_OK
                        : pwsp_error_set(error, PTOWSP_INVALID_PARAMS, slot,
                                         "bind: slot %u, but there are %u", slot, count);
}

// -- arrays ---------------------------------------------------------------------------------------

static bool pwsp_dtype_is_index(ptowsp_dtype dtype) {
    return dtype == PTOWSP_I32 || dtype == PTOWSP_I64 || dtype == PTOWSP_U32 || dtype == PTOWSP_U64;
}

// What elements of 8 bytes are aligned to wherever they are: on i686 less than that.
typedef struct pwsp_aligned_word {
    char before;
    uint64_t word;
} pwsp_aligned_word;

static bool pwsp_is_aligned(const void *data, uint64_t size) {
    return (uintptr_t)data % pwsp_min_u64(size, offsetof(pwsp_aligned_word, word)) == 0;
}

// Checks pointer, alignment and size of an array of elements; `what` is "" or "indptr of ".
static ptowsp_status pwsp_bind_data(pwsp_error *error, const char *what, const char *name,
                                    ptowsp_dtype dtype, const void *data, uint64_t count) {
    uint32_t size = ptowsp_dtype_size(dtype);
    uint64_t bytes;
    if (count > 0 && !data) {
        return PWSP_ERROR_REFUSE(error, "bind: %s%s has %" PRIu64 " elements at NULL", what, name,
                                 count);
    }
    if (!pwsp_is_aligned(data, size)) {
        return PWSP_ERROR_REFUSE(error, "bind: %s%s is not aligned to its elements of %u bytes",
                                 what, name, size);
    }
    if (!pwsp_mul_fits(count, size, &bytes) || bytes > INT64_MAX) {
        return PWSP_ERROR_REFUSE(error, "bind: %s%s has %" PRIu64 " elements, which cannot be",
                                 what, name, count);
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_check_array(pwsp_error *error, const pwsp_array_info *info,
                                                  bool as_lengths, ptowsp_dtype dtype,
                                                  const void *data, uint64_t count,
                                                  pwsp_array *out_array) {
    const char *name = info->name;
    if (as_lengths && !info->is_lengths) {
        return PWSP_ERROR_REFUSE(error, "bind: %s is an array, not a ragged axis", name);
    }
    if (info->is_lengths && !pwsp_dtype_is_index(dtype)) {
        return PWSP_ERROR_REFUSE(error, "bind: lengths of %s are %s; they are i32, i64, u32 or u64",
                                 name, ptowsp_dtype_name(dtype));
    }
    if (info->dtype != PTOWSP_DTYPE_NONE && dtype != info->dtype) {
        return PWSP_ERROR_REFUSE(error, "bind: %s is %s; it is declared %s", name,
                                 ptowsp_dtype_name(dtype), ptowsp_dtype_name(info->dtype));
    }
    ptowsp_status status = pwsp_bind_data(error, "", name, dtype, data, count);
    if (status == PTOWSP_OK) {
        pwsp_array array = {data, count, dtype, true, 0, 0};
        *out_array = array;
    }
    return status;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_check_csr(pwsp_error *error, const char *axis,
                                                const ptowsp_csr *csr, pwsp_bound_csr *out_csr) {
    if (!csr) {
        return PWSP_ERROR_REFUSE(error, "bind: the csr of axis %s is NULL", axis);
    }
    if (!pwsp_dtype_is_index(csr->dtype)) {
        return PWSP_ERROR_REFUSE(error,
                                 "bind: arrays of axis %s are %s; they are i32, i64, u32 or u64",
                                 axis, ptowsp_dtype_name(csr->dtype));
    }
    if (csr->row_count >= INT64_MAX) {
        return PWSP_ERROR_REFUSE(error, "bind: axis %s has %" PRIu64 " rows, which cannot be", axis,
                                 csr->row_count);
    }
    ptowsp_status status =
        pwsp_bind_data(error, "indptr of ", axis, csr->dtype, csr->indptr, csr->row_count + 1);
    if (status == PTOWSP_OK) {
        status =
            pwsp_bind_data(error, "indices of ", axis, csr->dtype, csr->indices, csr->entry_count);
    }
    if (status == PTOWSP_OK) {
        pwsp_bound_csr bound = {{csr->indptr, csr->row_count + 1, csr->dtype, true, 0, 0},
                                {csr->indices, csr->entry_count, csr->dtype, true, 0, 0},
                                csr->row_count,
                                0,
                                true};
        *out_csr = bound;
    }
    return status;
}

// -- tensors --------------------------------------------------------------------------------------

// Fills in the shape: the declared one where that is static. An error if they differ.
static ptowsp_status pwsp_bind_shape(pwsp_error *error, const ptowsp_tensor_desc *tensor,
                                     const ptowsp_buffer *buffer, int64_t *out_shape) {
    if (buffer->dtype != PTOWSP_DTYPE_NONE && buffer->dtype != tensor->dtype) {
        return PWSP_ERROR_REFUSE(error, "bind: tensor %s is %s; it is declared %s", tensor->name,
                                 ptowsp_dtype_name(buffer->dtype),
                                 ptowsp_dtype_name(tensor->dtype));
    }
    if (buffer->rank != 0 && buffer->rank != tensor->rank) {
        return PWSP_ERROR_REFUSE(error, "bind: tensor %s has rank %u; it is declared with %u",
                                 tensor->name, buffer->rank, tensor->rank);
    }
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t size = buffer->rank ? buffer->shape[i] : tensor->shape[i];
        if (size < 0 || (tensor->shape[i] != PTOWSP_DYNAMIC && size != tensor->shape[i])) {
            if (tensor->shape[i] == PTOWSP_DYNAMIC) {
                return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                                      "bind: dimension %u of tensor %s needs a size, not %" PRId64,
                                      i, tensor->name, size);
            }
            return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
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

// The position of each dimension of a tensor: leading ones, rows, columns.
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

PWSP_INTERNAL ptowsp_status pwsp_bind_check_tensor(pwsp_error *error,
                                                   const ptowsp_tensor_desc *tensor,
                                                   const ptowsp_buffer *buffer,
                                                   pwsp_bound_tensor *out_tensor) {
    if (!buffer) {
        return PWSP_ERROR_REFUSE(error, "bind: the buffer of tensor %s is NULL", tensor->name);
    }
    int64_t shape[PTOWSP_TENSOR_RANK_MAX], strides[PTOWSP_TENSOR_RANK_MAX], low, high;
    ptowsp_status status = pwsp_bind_shape(error, tensor, buffer, shape);
    if (status != PTOWSP_OK) {
        return status;
    }
    bool has_strides = false, fits = true;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        strides[i] = buffer->strides[i];
        has_strides = has_strides || strides[i] != 0;
    }
    if (!has_strides) {
        fits = pwsp_bind_row_major(tensor->rank, shape, strides);
    }
    int64_t element = (int64_t)ptowsp_dtype_size(tensor->dtype);
    fits = fits && pwsp_layout_span(tensor->rank, shape, strides, &low, &high) &&
           low > -(INT64_MAX / 4 / element) && high < INT64_MAX / 4 / element;
    if (!fits) {
        return PWSP_ERROR_REFUSE(error, "bind: tensor %s spans more than 2^61 bytes", tensor->name);
    }
    if (buffer->size != 0 && (low < 0 || (uint64_t)(high + 1) * (uint64_t)element > buffer->size)) {
        return PWSP_ERROR_REFUSE(error,
                                 "bind: tensor %s spans elements %" PRId64 " to %" PRId64
                                 ", which are not all in its %" PRIu64 " bytes",
                                 tensor->name, low, high, buffer->size);
    }
    if (!pwsp_is_aligned(buffer->data, (uint64_t)element)) {
        return PWSP_ERROR_REFUSE(
            error, "bind: tensor %s is not aligned to its elements of %" PRId64 " bytes",
            tensor->name, element);
    }
    PWSP_ZERO(pwsp_bound_tensor, bound);
    pwsp_bind_dimensions(tensor->rank, shape, strides, &bound);
    bound.data = (char *)buffer->data;
    bound.base = (uint64_t)(uintptr_t)buffer->data;
    bound.low = low;
    bound.high = high;
    bound.element_size = (uint32_t)element;
    bound.dtype = tensor->dtype;
    bound.is_bound = true;
    *out_tensor = bound;
    return PTOWSP_OK;
}

// -- before a run ---------------------------------------------------------------------------------

// `what` is a kind: "ragged axis".
static ptowsp_status pwsp_verify_fail_unbound(pwsp_error *error, const char *what,
                                              const char *name) {
    return pwsp_error_set(error, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: %s %s is not bound", what,
                          name);
}

PWSP_INTERNAL ptowsp_status pwsp_verify_symbol(pwsp_error *error, const char *symbol,
                                               bool is_bound) {
    return is_bound ? PTOWSP_OK : pwsp_verify_fail_unbound(error, "symbol", symbol);
}

// Element i of an array of lengths or indices; false if it is negative or beyond 63 bits.
static bool pwsp_verify_index(const pwsp_array *array, uint64_t i, uint64_t *out_value) {
    *out_value = pwsp_array_at(array, i);
    return *out_value <= INT64_MAX;
}

// An element that is not a valid length or index.
static ptowsp_status pwsp_verify_fail_index(pwsp_error *error, const char *what, uint64_t i,
                                            const char *axis, const pwsp_array *array,
                                            uint64_t value) {
    if (array->dtype == PTOWSP_U64) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                              "run: %s %" PRIu64 " of axis %s is %" PRIu64, what, i, axis, value);
    }
    return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                          "run: %s %" PRIu64 " of axis %s is %" PRId64, what, i, axis,
                          (int64_t)value);
}

PWSP_INTERNAL ptowsp_status pwsp_verify_array(pwsp_error *error, const pwsp_array_info *info,
                                              const pwsp_array *array, int64_t *out_sum) {
    const char *axis = info->name;
    uint64_t sum = 0;
    if (!array->is_bound) {
        return pwsp_verify_fail_unbound(error, info->is_lengths ? "ragged axis" : "array", axis);
    }
    for (uint64_t i = 0; info->is_lengths && i < array->count; i++) {
        uint64_t length;
        if (!pwsp_verify_index(array, i, &length)) {
            return pwsp_verify_fail_index(error, "length", i, axis, array, length);
        }
        sum += length;
        if (sum > INT64_MAX) {
            return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, i,
                                  "run: the lengths of axis %s sum up to more than 2^63 - 1", axis);
        }
    }
    if (out_sum && info->is_lengths) {
        *out_sum = (int64_t)sum;
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_verify_csr(pwsp_error *error, const char *axis, pwsp_bound_csr *csr) {
    uint64_t last = 0;
    if (!csr->is_bound) {
        return pwsp_verify_fail_unbound(error, "sparse axis", axis);
    }
    for (uint64_t i = 0; i <= csr->row_count; i++) {
        uint64_t at;
        if (!pwsp_verify_index(&csr->indptr, i, &at)) {
            return pwsp_verify_fail_index(error, "indptr", i, axis, &csr->indptr, at);
        }
        if (i == 0 && at != 0) {
            return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                                  "run: indptr 0 of axis %s is %" PRIu64 ", not 0", axis, at);
        }
        if (at < last) {
            return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                                  "run: indptr %" PRIu64 " of axis %s is %" PRIu64
                                  ", less than the %" PRIu64 " before",
                                  i, axis, at, last);
        }
        if (at > csr->indices.count) {
            return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                                  "run: indptr %" PRIu64 " of axis %s is %" PRIu64
                                  ", but there are %" PRIu64 " indices",
                                  i, axis, at, csr->indices.count);
        }
        last = at;
    }
    csr->entry_count = last;
    for (uint64_t i = 0; i < last; i++) {
        uint64_t index;
        if (!pwsp_verify_index(&csr->indices, i, &index)) {
            return pwsp_verify_fail_index(error, "index", i, axis, &csr->indices, index);
        }
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_verify_axis(pwsp_error *error, const char *axis,
                                             ptowsp_axis_kind kind, bool is_bound,
                                             pwsp_bound_csr *csr) {
    const bool is_plan = kind >= PTOWSP_AXIS_PLAN;
    if (kind == PTOWSP_AXIS_SPARSE) {
        return pwsp_verify_csr(error, axis, csr);
    }
    return is_bound || !(is_plan || kind == PTOWSP_AXIS_DYNAMIC)
               ? PTOWSP_OK
               : pwsp_verify_fail_unbound(error, is_plan ? "plan" : "the size of axis", axis);
}

PWSP_INTERNAL ptowsp_status pwsp_verify_tensor(pwsp_error *error, const char *name,
                                               const pwsp_bound_tensor *tensor) {
    if (!tensor->is_bound) {
        return pwsp_verify_fail_unbound(error, "tensor", name);
    }
    return tensor->data || tensor->high < tensor->low
               ? PTOWSP_OK
               : pwsp_error_set(error, PTOWSP_UNBOUND, PTOWSP_NO_INDEX,
                                "run: tensor %s is bound without data", name);
}

// -- transient tensors ----------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_bind_fail_transient(pwsp_error *error, const char *tensor) {
    return PWSP_ERROR_REFUSE(error, "bind: tensor %s is transient: executions give it memory",
                             tensor);
}

PWSP_INTERNAL ptowsp_status pwsp_transient_fail_align(pwsp_error *error) {
    return PWSP_ERROR_REFUSE(error,
                             "bind: the block of transient tensors is not aligned to %d bytes",
                             PTOWSP_TRANSIENT_ALIGN);
}

PWSP_INTERNAL ptowsp_status pwsp_transient_size(pwsp_error *error, const ptowsp_tensor_desc *desc,
                                                const int64_t shape[PTOWSP_TENSOR_RANK_MAX],
                                                pwsp_bound_tensor *out_tensor, pwsp_placed *item,
                                                uint64_t *sum) {
    const uint64_t align = PTOWSP_TRANSIENT_ALIGN;
    PWSP_ZERO(ptowsp_buffer, buffer);
    buffer.rank = desc->rank;
    for (uint32_t i = 0; i < desc->rank; i++) {
        buffer.shape[i] = shape[i];
    }
    ptowsp_status status = pwsp_bind_check_tensor(error, desc, &buffer, out_tensor);
    if (status != PTOWSP_OK) {
        return status;
    }
    bool takes_room = out_tensor->high >= 0 && item->lifetime_count > 0;
    uint64_t bytes = takes_room ? (uint64_t)(out_tensor->high + 1) * out_tensor->element_size : 0;
    item->name = desc->name;
    item->bytes = (bytes + align - 1) / align * align;
    *sum += item->bytes;  // each at most 2^61
    return *sum <= UINT64_C(1) << 61
               ? PTOWSP_OK
               : pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                                "run: transient tensors, up to %s, take more than 2^61 bytes",
                                desc->name);
}

PWSP_INTERNAL ptowsp_status pwsp_transient_fail_size(pwsp_error *error, const char *tensor,
                                                     ptowsp_status status, uint64_t index,
                                                     const char *text) {
    return pwsp_error_set(error, status, index, "run: the size of transient tensor %s: %s", tensor,
                          text);
}

static bool pwsp_placed_is_alive(const pwsp_placed *item, const pwsp_lifetime *lifetimes,
                                 uint32_t point) {
    bool is_alive = false;
    for (uint32_t i = 0; i < item->lifetime_count; i++) {
        const pwsp_lifetime *lifetime = &lifetimes[item->first_lifetime + i];
        is_alive = is_alive || (lifetime->first <= point && point <= lifetime->last);
    }
    return is_alive;
}

PWSP_INTERNAL ptowsp_status pwsp_transient_fail_room(pwsp_error *error, const pwsp_placed *items,
                                                     uint32_t count, const pwsp_lifetime *lifetimes,
                                                     const pwsp_placement *placement,
                                                     const char *place, uint64_t size) {
    const pwsp_placed *named[4];
    const uint32_t named_max = 4;
    uint32_t named_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!pwsp_placed_is_alive(&items[i], lifetimes, placement->point) || !items[i].bytes) {
            continue;
        }
        uint32_t at = named_count < named_max ? named_count++ : named_max;
        while (at > 0 && named[at - 1]->bytes < items[i].bytes) {
            if (at < named_max) {
                named[at] = named[at - 1];
            }
            at--;
        }
        if (at < named_max) {
            named[at] = &items[i];
        }
    }
    char list[PWSP_ERROR_TEXT_MAX / 2];
    ptowsp_output_buffer buffer = {list, sizeof list, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    for (uint32_t i = 0; i < named_count; i++) {
        pwsp_text_format(text, "%s%s %" PRIu64, i ? ", " : "", named[i]->name, named[i]->bytes);
    }
    return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                          "run: transient tensors take %" PRIu64 " bytes, and there are %" PRIu64
                          "; most at %s: %s. Smaller tiles there, or computing again what lives "
                          "long, takes less",
                          placement->peak, size, place, list);
}
