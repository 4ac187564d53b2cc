// Elements of arrays: signed integers are sign-extended.

#include "array.h"

// The range that has i: bounds[r] <= i < bounds[r + 1]. Neighbours take the same way through the
// search, so that its branches are predicted.
static uint64_t pwsp_array_range(const pwsp_array *array, uint64_t i) {
    const uint32_t *bounds = (const uint32_t *)array->data;
    uint32_t low = 0, high = array->range_count;  // bounds[low] <= i < bounds[high]
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (bounds[middle] <= i) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

PWSP_INTERNAL uint64_t pwsp_array_at(const pwsp_array *array, uint64_t i) {
    PTOWSP_ASSERT(i < array->count);
    if (array->range_count) {
        return pwsp_array_range(array, i);
    }
    if (array->stride) {
        const char *data = (const char *)array->data + (size_t)i * array->stride;
        pwsp_array element = {data, 1, array->dtype, true, 0, 0};
        return pwsp_array_at(&element, 0);
    }
    switch (array->dtype) {
    case PTOWSP_I8: return (uint64_t)(int64_t)((const int8_t *)array->data)[i];
    case PTOWSP_I16: return (uint64_t)(int64_t)((const int16_t *)array->data)[i];
    case PTOWSP_I32: return (uint64_t)(int64_t)((const int32_t *)array->data)[i];
    case PTOWSP_I64: return (uint64_t)((const int64_t *)array->data)[i];
    case PTOWSP_U8: return ((const uint8_t *)array->data)[i];
    case PTOWSP_U16: return ((const uint16_t *)array->data)[i];
    case PTOWSP_U32: return ((const uint32_t *)array->data)[i];
    case PTOWSP_U64: return ((const uint64_t *)array->data)[i];
    case PTOWSP_BOOL: return ((const uint8_t *)array->data)[i] != 0;
    default: PTOWSP_ASSERT(0 && "an array of floats"); return 0;
    }
}
