// Binding: see wsp_bindings.h. Errors have the texts of ptowsp_run_bind_... and ptowsp_run_execute.

#include "wsp_bindings.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "wsp_expand.h"

namespace wsp {

uint32_t dtype_size(ptowsp_dtype dtype) {
    switch (dtype) {
#define WSP_DTYPE_SIZE(name, value, bytes, text)                                                   \
    case PTOWSP_##name: return bytes;
        PTOWSP_DTYPES(WSP_DTYPE_SIZE)
#undef WSP_DTYPE_SIZE
    case PTOWSP_DTYPE_NONE:
    case PTOWSP_DTYPE_FORCE_INT: break;
    }
    return 0;
}

const char *dtype_name(ptowsp_dtype dtype) {
    switch (dtype) {
#define WSP_DTYPE_NAME(name, value, bytes, text)                                                   \
    case PTOWSP_##name: return text;
        PTOWSP_DTYPES(WSP_DTYPE_NAME)
#undef WSP_DTYPE_NAME
    case PTOWSP_DTYPE_NONE:
    case PTOWSP_DTYPE_FORCE_INT: break;
    }
    return "none";
}

namespace {

bool is_index_dtype(ptowsp_dtype dtype) {
    return dtype == PTOWSP_I32 || dtype == PTOWSP_I64 || dtype == PTOWSP_U32 || dtype == PTOWSP_U64;
}

bool is_named(const char *name, const char *wanted) {
    return name && wanted && strcmp(name, wanted) == 0;
}

// Could it be a name? Else it is not repeated in a text.
bool is_name(const char *text) {
    size_t length = 0;
    for (; text[length]; length++) {
        const char c = text[length];
        if (length == PTOWSP_NAME_MAX || c < ' ' || c > '~' || c == '"' || c == '\'' || c == '\\') {
            return false;
        }
    }
    return length > 0;
}

bool multiply(uint64_t a, uint64_t b, uint64_t *out) {
    *out = a * b;
    return a == 0 || *out / a == b;
}

// Row-major strides. False if the tensor is too large.
bool find_strides(uint32_t rank, const int64_t *shape, int64_t *out_strides) {
    uint64_t stride = 1;
    bool is_empty = false;
    for (uint32_t i = rank; i > 0; i--) {
        out_strides[i - 1] = static_cast<int64_t>(stride);
        is_empty = is_empty || shape[i - 1] == 0;
        const uint64_t size = shape[i - 1] ? static_cast<uint64_t>(shape[i - 1]) : 1;
        if (!multiply(stride, size, &stride) || stride > INT64_MAX) {
            if (!is_empty) {
                return false;
            }
            stride = 1;
        }
    }
    return true;
}

// The lowest and highest offset, in elements; 0 and -1 if there is no element. False if they are
// beyond 63 bits.
bool find_span(uint32_t rank, const int64_t *shape, const int64_t *strides, int64_t *out_low,
               int64_t *out_high) {
    uint64_t below = 0, above = 0;
    *out_low = 0;
    *out_high = -1;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0) {
            return true;
        }
    }
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t stride = static_cast<uint64_t>(strides[i]), distance;
        stride = strides[i] < 0 ? 0 - stride : stride;
        if (!multiply(static_cast<uint64_t>(shape[i]) - 1, stride, &distance) ||
            distance > static_cast<uint64_t>(INT64_MAX) - below - above) {
            return false;
        }
        (strides[i] < 0 ? below : above) += distance;
    }
    *out_low = -static_cast<int64_t>(below);
    *out_high = static_cast<int64_t>(above);
    return true;
}

}  // namespace

Bindings::Bindings(const wsp_program &program) : program_(program), table_() {
    const auto room = [](uint32_t count) { return static_cast<size_t>(count) + 1; };
    sizes_.resize(room(program.axis_count));
    is_size_bound_.resize(room(program.axis_count));
    csrs_.resize(room(program.axis_count), wsp_csr());
    symbols_.resize(room(program.symbol_count));
    is_symbol_bound_.resize(room(program.symbol_count));
    arrays_.resize(room(program.array_count), wsp_array());
    tensors_.resize(room(program.tensor_count), wsp_tensor());
    initial_slots_.resize(program.slot_count);
    slots_.resize(program.slot_count);
}

// -- errors ---------------------------------------------------------------------------------------

ptowsp_status Bindings::fail(ptowsp_status status, uint64_t index, const char *format, ...) {
    va_list args;
    va_start(args, format);
    failure.status = status;
    failure.index = index;
    vsnprintf(failure.text, sizeof failure.text, format, args);
    va_end(args);
    return status;
}

uint32_t Bindings::fail_name(const char *what, const char *name) {
    const char *shown = !name ? "NULL" : is_name(name) ? name : "of such a name";
    fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "bind: module %s has no %s %s", program_.name,
         what, shown);
    return 0;
}

ptowsp_status Bindings::fail_index(const char *what, uint32_t index) {
    return fail(PTOWSP_INVALID_PARAMS, index, "bind: module %s has no %s %" PRIu32, program_.name,
                what, index);
}

ptowsp_status Bindings::fail_unbound(const char *what, const char *name) {
    return fail(PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: %s %s is not bound", what, name);
}

// -- names ----------------------------------------------------------------------------------------

bool Bindings::is_axis(uint32_t axis, ptowsp_axis_kind kind) const {
    return axis > 0 && axis < program_.axis_count && program_.axes[axis].name &&
           program_.axes[axis].kind == static_cast<uint32_t>(kind);
}

uint32_t Bindings::find_axis(const char *axis, ptowsp_axis_kind kind, const char *what) {
    for (uint32_t i = 1; i < program_.axis_count; i++) {
        if (is_axis(i, kind) && is_named(program_.axes[i].name, axis)) {
            return i;
        }
    }
    return fail_name(what, axis);
}

uint32_t Bindings::find_size(const char *axis) {
    return find_axis(axis, PTOWSP_AXIS_DYNAMIC, "dynamic axis");
}

uint32_t Bindings::find_csr(const char *axis) {
    return find_axis(axis, PTOWSP_AXIS_SPARSE, "sparse axis");
}

uint32_t Bindings::find_symbol(const char *symbol) {
    for (uint32_t i = 1; i < program_.symbol_count; i++) {
        if (is_named(program_.symbols[i].name, symbol)) {
            return i;
        }
    }
    return fail_name("symbol", symbol);
}

uint32_t Bindings::find_array(const char *array, bool is_lengths) {
    for (uint32_t i = 1; i < program_.array_count; i++) {
        if (is_named(program_.arrays[i].name, array)) {
            return i;
        }
    }
    return fail_name(is_lengths ? "ragged axis" : "array", array);
}

uint32_t Bindings::find_tensor(const char *tensor) {
    for (uint32_t i = 1; i < program_.tensor_count; i++) {
        if (is_named(program_.tensors[i].name, tensor)) {
            return i;
        }
    }
    return fail_name("tensor", tensor);
}

// -- sizes, symbols, slots ------------------------------------------------------------------------

ptowsp_status Bindings::bind_size(uint32_t axis, int64_t size) {
    if (!is_axis(axis, PTOWSP_AXIS_DYNAMIC)) {
        return fail_index("dynamic axis", axis);
    }
    if (size < 0) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "bind: size %" PRId64 " of axis %s",
                    size, program_.axes[axis].name);
    }
    sizes_[axis] = size;
    is_size_bound_[axis] = 1;
    return PTOWSP_OK;
}

ptowsp_status Bindings::bind_symbol(uint32_t symbol, uint64_t value) {
    if (symbol == 0 || symbol >= program_.symbol_count) {
        return fail_index("symbol", symbol);
    }
    symbols_[symbol] = value;
    is_symbol_bound_[symbol] = 1;
    return PTOWSP_OK;
}

ptowsp_status Bindings::bind_slot(uint32_t slot, uint64_t value) {
    if (slot >= program_.slot_count) {
        return fail(PTOWSP_INVALID_PARAMS, slot, "bind: slot %" PRIu32 ", but there are %" PRIu32,
                    slot, program_.slot_count);
    }
    initial_slots_[slot] = value;
    return PTOWSP_OK;
}

// -- arrays ---------------------------------------------------------------------------------------

// Checks pointer, alignment and size of an array; `what` is "" or "indptr of ".
ptowsp_status Bindings::check_data(const char *what, const char *name, ptowsp_dtype dtype,
                                   const void *data, uint64_t count) {
    const uint32_t size = dtype_size(dtype);
    uint64_t bytes;
    if (count > 0 && !data) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: %s%s has %" PRIu64 " elements at NULL", what, name, count);
    }
    if (reinterpret_cast<uintptr_t>(data) % size != 0) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: %s%s is not aligned to its elements of %" PRIu32 " bytes", what, name,
                    size);
    }
    if (!multiply(count, size, &bytes) || bytes > INT64_MAX) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: %s%s has %" PRIu64 " elements, which cannot be", what, name, count);
    }
    return PTOWSP_OK;
}

ptowsp_status Bindings::bind_array(uint32_t array, bool is_lengths, ptowsp_dtype dtype,
                                   const void *data, uint64_t count) {
    if (array == 0 || array >= program_.array_count) {
        return fail_index(is_lengths ? "ragged axis" : "array", array);
    }
    const wsp_array_decl &decl = program_.arrays[array];
    const ptowsp_dtype declared = static_cast<ptowsp_dtype>(decl.dtype);
    if (is_lengths && !decl.is_lengths) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: %s is an array, not a ragged axis", decl.name);
    }
    if (decl.is_lengths && !is_index_dtype(dtype)) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: lengths of %s are %s; they are i32, i64, u32 or u64", decl.name,
                    dtype_name(dtype));
    }
    if (declared != PTOWSP_DTYPE_NONE && dtype != declared) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "bind: %s is %s; it is declared %s",
                    decl.name, dtype_name(dtype), dtype_name(declared));
    }
    const ptowsp_status status = check_data("", decl.name, dtype, data, count);
    if (status == PTOWSP_OK) {
        arrays_[array] = {reinterpret_cast<uintptr_t>(data), count, static_cast<uint32_t>(dtype),
                          1};
    }
    return status;
}

ptowsp_status Bindings::bind_csr(uint32_t axis, const ptowsp_csr *csr) {
    if (!is_axis(axis, PTOWSP_AXIS_SPARSE)) {
        return fail_index("sparse axis", axis);
    }
    const char *name = program_.axes[axis].name;
    if (!csr) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "bind: the csr of axis %s is NULL",
                    name);
    }
    if (!is_index_dtype(csr->dtype)) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: arrays of axis %s are %s; they are i32, i64, u32 or u64", name,
                    dtype_name(csr->dtype));
    }
    if (csr->row_count >= INT64_MAX) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: axis %s has %" PRIu64 " rows, which cannot be", name, csr->row_count);
    }
    ptowsp_status status =
        check_data("indptr of ", name, csr->dtype, csr->indptr, csr->row_count + 1);
    if (status == PTOWSP_OK) {
        status = check_data("indices of ", name, csr->dtype, csr->indices, csr->entry_count);
    }
    if (status == PTOWSP_OK) {
        const uint32_t dtype = static_cast<uint32_t>(csr->dtype);
        csrs_[axis] = {{reinterpret_cast<uintptr_t>(csr->indptr), csr->row_count + 1, dtype, 1},
                       {reinterpret_cast<uintptr_t>(csr->indices), csr->entry_count, dtype, 1},
                       csr->row_count,
                       0,
                       1,
                       0};
    }
    return status;
}

// -- tensors --------------------------------------------------------------------------------------

// The shape: the declared one where that is static. An error if they differ.
ptowsp_status Bindings::find_shape(const wsp_tensor_decl &decl, const ptowsp_buffer &buffer,
                                   int64_t *out_shape) {
    const ptowsp_dtype dtype = static_cast<ptowsp_dtype>(decl.dtype);
    if (buffer.dtype != PTOWSP_DTYPE_NONE && buffer.dtype != dtype) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: tensor %s is %s; it is declared %s", decl.name, dtype_name(buffer.dtype),
                    dtype_name(dtype));
    }
    if (buffer.rank != 0 && buffer.rank != decl.rank) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: tensor %s has rank %" PRIu32 "; it is declared with %" PRIu32, decl.name,
                    buffer.rank, decl.rank);
    }
    for (uint32_t i = 0; i < decl.rank; i++) {
        const int64_t size = buffer.rank ? buffer.shape[i] : decl.shape[i];
        if (decl.shape[i] == PTOWSP_DYNAMIC && size < 0) {
            return fail(PTOWSP_INVALID_PARAMS, i,
                        "bind: dimension %" PRIu32 " of tensor %s needs a size, not %" PRId64, i,
                        decl.name, size);
        }
        if (decl.shape[i] != PTOWSP_DYNAMIC && size != decl.shape[i]) {
            return fail(PTOWSP_INVALID_PARAMS, i,
                        "bind: dimension %" PRIu32 " of tensor %s is %" PRId64
                        "; it is declared %" PRId64,
                        i, decl.name, size, decl.shape[i]);
        }
        out_shape[i] = size;
    }
    return PTOWSP_OK;
}

ptowsp_status Bindings::bind_tensor(uint32_t tensor, const ptowsp_buffer *buffer) {
    if (tensor == 0 || tensor >= program_.tensor_count) {
        return fail_index("tensor", tensor);
    }
    const wsp_tensor_decl &decl = program_.tensors[tensor];
    if (!buffer) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "bind: the buffer of tensor %s is NULL",
                    decl.name);
    }
    int64_t shape[PTOWSP_TENSOR_RANK_MAX], strides[PTOWSP_TENSOR_RANK_MAX], low, high;
    const ptowsp_status status = find_shape(decl, *buffer, shape);
    if (status != PTOWSP_OK) {
        return status;
    }
    bool has_strides = false;
    for (uint32_t i = 0; i < decl.rank; i++) {
        strides[i] = buffer->strides[i];
        has_strides = has_strides || strides[i] != 0;
    }
    const int64_t element = dtype_size(static_cast<ptowsp_dtype>(decl.dtype));
    if ((!has_strides && !find_strides(decl.rank, shape, strides)) ||
        !find_span(decl.rank, shape, strides, &low, &high) || low <= -(INT64_MAX / 4 / element) ||
        high >= INT64_MAX / 4 / element) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: tensor %s spans more than 2^61 bytes", decl.name);
    }
    if (buffer->size != 0 &&
        (low < 0 || static_cast<uint64_t>((high + 1) * element) > buffer->size)) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: tensor %s spans elements %" PRId64 " to %" PRId64
                    ", which are not all in its %" PRIu64 " bytes",
                    decl.name, low, high, buffer->size);
    }
    const uintptr_t data = reinterpret_cast<uintptr_t>(buffer->data);
    if (data % static_cast<uintptr_t>(element) != 0) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: tensor %s is not aligned to its elements of %" PRId64 " bytes",
                    decl.name, element);
    }
    wsp_tensor bound = wsp_tensor();
    for (uint32_t i = 0; i < PTOWSP_VIEW_LEAD_MAX; i++) {
        const bool has = decl.rank > 2 && i < decl.rank - 2;
        bound.lead_shape[i] = has ? shape[i] : 1;
        bound.lead_strides[i] = has ? strides[i] : 0;
    }
    bound.data = data;
    bound.rows = decl.rank >= 2 ? shape[decl.rank - 2] : 1;
    bound.row_stride = decl.rank >= 2 ? strides[decl.rank - 2] : 0;
    bound.cols = decl.rank >= 1 ? shape[decl.rank - 1] : 1;
    bound.col_stride = decl.rank >= 1 ? strides[decl.rank - 1] : 1;
    bound.dtype = decl.dtype;
    bound.element_size = static_cast<uint32_t>(element);
    bound.is_bound = 1;
    tensors_[tensor] = bound;
    return PTOWSP_OK;
}

// -- before a run ---------------------------------------------------------------------------------

// An element that no length or index can be.
ptowsp_status Bindings::fail_element(const char *what, uint64_t i, const char *axis,
                                     const wsp_array &array, uint64_t value) {
    if (array.dtype == PTOWSP_U64) {
        return fail(PTOWSP_INVALID_PARAMS, i, "run: %s %" PRIu64 " of axis %s is %" PRIu64, what, i,
                    axis, value);
    }
    return fail(PTOWSP_INVALID_PARAMS, i, "run: %s %" PRIu64 " of axis %s is %" PRId64, what, i,
                axis, static_cast<int64_t>(value));
}

ptowsp_status Bindings::verify_lengths(const wsp_array &array, const char *name) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < array.count; i++) {
        const uint64_t length = element_at(array, i);
        if (length > INT64_MAX) {
            return fail_element("length", i, name, array, length);
        }
        sum += length;
        if (sum > INT64_MAX) {
            return fail(PTOWSP_LIMIT_EXCEEDED, i,
                        "run: the lengths of axis %s sum up to more than 2^63 - 1", name);
        }
    }
    return PTOWSP_OK;
}

ptowsp_status Bindings::verify_csr(wsp_csr *csr, const char *name) {
    uint64_t last = 0;
    for (uint64_t i = 0; i <= csr->row_count; i++) {
        const uint64_t at = element_at(csr->indptr, i);
        if (at > INT64_MAX) {
            return fail_element("indptr", i, name, csr->indptr, at);
        }
        if (i == 0 && at != 0) {
            return fail(PTOWSP_INVALID_PARAMS, i, "run: indptr 0 of axis %s is %" PRIu64 ", not 0",
                        name, at);
        }
        if (at < last) {
            return fail(PTOWSP_INVALID_PARAMS, i,
                        "run: indptr %" PRIu64 " of axis %s is %" PRIu64 ", less than the %" PRIu64
                        " before",
                        i, name, at, last);
        }
        if (at > csr->indices.count) {
            return fail(PTOWSP_INVALID_PARAMS, i,
                        "run: indptr %" PRIu64 " of axis %s is %" PRIu64 ", but there are %" PRIu64
                        " indices",
                        i, name, at, csr->indices.count);
        }
        last = at;
    }
    csr->entry_count = last;
    for (uint64_t i = 0; i < last; i++) {
        const uint64_t index = element_at(csr->indices, i);
        if (index > INT64_MAX) {
            return fail_element("index", i, name, csr->indices, index);
        }
    }
    return PTOWSP_OK;
}

ptowsp_status Bindings::verify_sizes() {
    for (uint32_t i = 1; i < program_.axis_count; i++) {
        const wsp_axis_decl &axis = program_.axes[i];
        if (!axis.name || !axis.is_used) {
            continue;
        }
        if (axis.kind == PTOWSP_AXIS_DYNAMIC && !is_size_bound_[i]) {
            return fail_unbound("the size of axis", axis.name);
        }
        if (axis.kind == PTOWSP_AXIS_SPARSE) {
            const ptowsp_status status = csrs_[i].is_bound ? verify_csr(&csrs_[i], axis.name)
                                                           : fail_unbound("sparse axis", axis.name);
            if (status != PTOWSP_OK) {
                return status;
            }
        }
    }
    for (uint32_t i = 1; i < program_.symbol_count; i++) {
        if (program_.symbols[i].is_used && !is_symbol_bound_[i]) {
            return fail_unbound("symbol", program_.symbols[i].name);
        }
    }
    return PTOWSP_OK;
}

ptowsp_status Bindings::verify_arrays() {
    for (uint32_t i = 1; i < program_.array_count; i++) {
        const wsp_array_decl &decl = program_.arrays[i];
        if (!decl.is_used) {
            continue;
        }
        if (!arrays_[i].is_bound) {
            return fail_unbound(decl.is_lengths ? "ragged axis" : "array", decl.name);
        }
        const ptowsp_status status =
            decl.is_lengths ? verify_lengths(arrays_[i], decl.name) : PTOWSP_OK;
        if (status != PTOWSP_OK) {
            return status;
        }
    }
    return PTOWSP_OK;
}

// What the program does not use is as if it were not bound.
ptowsp_status Bindings::verify_tensors() {
    used_tensors_ = tensors_;
    for (uint32_t i = 1; i < program_.tensor_count; i++) {
        wsp_tensor &tensor = used_tensors_[i];
        if (!program_.tensors[i].is_used) {
            tensor.is_bound = 0;
            continue;
        }
        if (!tensor.is_bound) {
            return fail_unbound("tensor", program_.tensors[i].name);
        }
        bool is_empty = tensor.rows == 0 || tensor.cols == 0;
        for (int64_t size : tensor.lead_shape) {
            is_empty = is_empty || size == 0;
        }
        if (!tensor.data && !is_empty) {
            return fail(PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: tensor %s is bound without data",
                        program_.tensors[i].name);
        }
    }
    return PTOWSP_OK;
}

ptowsp_status Bindings::verify(uint32_t model) {
    ptowsp_status status = verify_sizes();
    status = status != PTOWSP_OK ? status : verify_arrays();
    status = status != PTOWSP_OK ? status : verify_tensors();
    slots_ = initial_slots_;
    table_.abi_version = WSP_ABI_VERSION;
    table_.model = model;
    table_.sizes = reinterpret_cast<uintptr_t>(sizes_.data());
    table_.symbols = reinterpret_cast<uintptr_t>(symbols_.data());
    table_.is_symbol_bound = reinterpret_cast<uintptr_t>(is_symbol_bound_.data());
    table_.arrays = reinterpret_cast<uintptr_t>(arrays_.data());
    table_.csrs = reinterpret_cast<uintptr_t>(csrs_.data());
    table_.tensors = reinterpret_cast<uintptr_t>(used_tensors_.data());
    table_.slots = reinterpret_cast<uintptr_t>(slots_.data());
    return status;
}

}  // namespace wsp
