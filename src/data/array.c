// Elements of arrays: signed integers are sign-extended.

#include "array.h"

PWSP_INTERNAL uint64_t pwsp_array_at(const pwsp_array *array, uint64_t i) {
    PTOWSP_ASSERT(i < array->count);
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
    default: break;
    }
    PTOWSP_ASSERT(0 && "an array of floats");
    return 0;
}
