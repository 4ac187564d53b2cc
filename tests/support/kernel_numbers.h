// Numbers of the element types of tiles, as doubles: read, written, rounded; and how far a rounding
// may be off.

#ifndef PTOWSP_KERNEL_NUMBERS_H
#define PTOWSP_KERNEL_NUMBERS_H

#include "test.h"

#include <math.h>

static inline double kt_get(ptowsp_dtype dtype, const void *at) {
    uint16_t half;
    switch (dtype) {
    case PTOWSP_F16: return memcpy(&half, at, 2), (double)ptowsp_f32_from_f16(half);
    case PTOWSP_BF16: return memcpy(&half, at, 2), (double)ptowsp_f32_from_bf16(half);
    case PTOWSP_F32: return (double)*(const float *)at;
    case PTOWSP_I8: return *(const int8_t *)at;
    case PTOWSP_U8: return *(const uint8_t *)at;
    case PTOWSP_I16: return *(const int16_t *)at;
    case PTOWSP_U16: return *(const uint16_t *)at;
    case PTOWSP_I32: return *(const int32_t *)at;
    case PTOWSP_U32: return *(const uint32_t *)at;
    default: fail_msg("no element type %d", (int)dtype); return 0;
    }
}

static inline void kt_put(ptowsp_dtype dtype, void *at, double x) {
    uint16_t half;
    switch (dtype) {
    case PTOWSP_F16: half = test_half_of(PTOWSP_F16, x), memcpy(at, &half, 2); break;
    case PTOWSP_BF16: half = test_half_of(PTOWSP_BF16, x), memcpy(at, &half, 2); break;
    case PTOWSP_F32: *(float *)at = (float)x; break;
    case PTOWSP_I8: *(int8_t *)at = (int8_t)x; break;
    case PTOWSP_U8: *(uint8_t *)at = (uint8_t)x; break;
    case PTOWSP_I16: *(int16_t *)at = (int16_t)x; break;
    case PTOWSP_U16: *(uint16_t *)at = (uint16_t)x; break;
    case PTOWSP_I32: *(int32_t *)at = (int32_t)x; break;
    case PTOWSP_U32: *(uint32_t *)at = (uint32_t)x; break;
    default: fail_msg("no element type %d", (int)dtype);
    }
}

static inline bool kt_is_float(ptowsp_dtype dtype) {
    return dtype == PTOWSP_F16 || dtype == PTOWSP_BF16 || dtype == PTOWSP_F32;
}

// Half a unit in the last place of 1, and the smallest subnormal.
static inline double kt_unit(ptowsp_dtype dtype) {
    return dtype == PTOWSP_F32 ? 0x1p-24 : dtype == PTOWSP_F16 ? 0x1p-11 : 0x1p-8;
}

static inline double kt_tiny(ptowsp_dtype dtype) {
    return dtype == PTOWSP_F32 ? 0x1p-149 : dtype == PTOWSP_F16 ? 0x1p-24 : 0x1p-133;
}

// To the nearest number of the type; an integer (given as its exact value) wraps.
static inline double kt_round(ptowsp_dtype dtype, double x) {
    switch (dtype) {
    case PTOWSP_F16: return (double)ptowsp_f32_from_f16(test_half_of(PTOWSP_F16, x));
    case PTOWSP_BF16: return (double)ptowsp_f32_from_bf16(test_half_of(PTOWSP_BF16, x));
    case PTOWSP_F32: return (double)(float)x;
    case PTOWSP_I8: return (int8_t)(uint8_t)(uint64_t)(int64_t)x;
    case PTOWSP_I16: return (int16_t)(uint16_t)(uint64_t)(int64_t)x;
    case PTOWSP_I32: return (int32_t)(uint32_t)(uint64_t)(int64_t)x;
    case PTOWSP_U16: return (uint16_t)(uint64_t)(int64_t)x;
    case PTOWSP_U32: return (uint32_t)(uint64_t)(int64_t)x;
    default: return x;
    }
}

// A constant in a type.
static inline double kt_cast(ptowsp_dtype dtype, double x) {
    return kt_round(dtype, kt_is_float(dtype) ? x : trunc(x));
}

#endif
