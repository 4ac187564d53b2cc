// Additions, maxima and minima of arrays, by element type.

#include "ranks.h"

// A NaN on either side gives a NaN; x is the left operand.
#define PWSP_SUM_OF(type, x, y) ((type)((x) + (y)))
#define PWSP_MAX_OF(type, x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define PWSP_MIN_OF(type, x, y) ((x) < (y) || (x) != (x) ? (x) : (y))

// Elements need no alignment, and `to` may be a or b.
#define PWSP_REDUCE_LOOP(type, word, of)                                                           \
    for (uint64_t i = 0; i < count; i++) {                                                         \
        type x, y;                                                                                 \
        memcpy(&x, (const char *)a + i * sizeof x, sizeof x);                                      \
        memcpy(&y, (const char *)b + i * sizeof y, sizeof y);                                      \
        const type z = (type)of(word, x, y);                                                       \
        memcpy((char *)to + i * sizeof z, &z, sizeof z);                                           \
    }

#define PWSP_REDUCE(name, type, word)                                                              \
    static void pwsp_reduce_##name(ptowsp_reduction reduction, void *to, const void *a,            \
                                   const void *b, uint64_t count) {                                \
        if (reduction == PTOWSP_REDUCTION_SUM) {                                                   \
            PWSP_REDUCE_LOOP(word, word, PWSP_SUM_OF)                                              \
        } else if (reduction == PTOWSP_REDUCTION_MAX) {                                            \
            PWSP_REDUCE_LOOP(type, type, PWSP_MAX_OF)                                              \
        } else {                                                                                   \
            PWSP_REDUCE_LOOP(type, type, PWSP_MIN_OF)                                              \
        }                                                                                          \
    }

// The second type adds without overflow that is not defined.
PWSP_REDUCE(f32, float, float)
PWSP_REDUCE(f64, double, double)
PWSP_REDUCE(i8, int8_t, uint8_t)
PWSP_REDUCE(i16, int16_t, uint16_t)
PWSP_REDUCE(i32, int32_t, uint32_t)
PWSP_REDUCE(i64, int64_t, uint64_t)
PWSP_REDUCE(u8, uint8_t, uint8_t)
PWSP_REDUCE(u16, uint16_t, uint16_t)
PWSP_REDUCE(u32, uint32_t, uint32_t)
PWSP_REDUCE(u64, uint64_t, uint64_t)

#define PWSP_REDUCE_BLOCK 256

static void pwsp_reduce_half(ptowsp_reduction reduction, ptowsp_dtype dtype, void *to,
                             const void *a, const void *b, uint64_t count) {
    float x[PWSP_REDUCE_BLOCK], y[PWSP_REDUCE_BLOCK];
    for (uint64_t at = 0; at < count; at += PWSP_REDUCE_BLOCK) {
        const uint64_t n = pwsp_min_u64(count - at, PWSP_REDUCE_BLOCK);
        ptowsp_convert(x, PTOWSP_F32, (const char *)a + 2 * at, dtype, n);
        ptowsp_convert(y, PTOWSP_F32, (const char *)b + 2 * at, dtype, n);
        pwsp_reduce_f32(reduction, x, x, y, n);
        ptowsp_convert((char *)to + 2 * at, dtype, x, PTOWSP_F32, n);
    }
}

PWSP_INTERNAL void pwsp_reduce_elements(ptowsp_reduction reduction, ptowsp_dtype dtype, void *to,
                                        const void *a, const void *b, uint64_t count) {
    switch (dtype) {
    case PTOWSP_F16:
    case PTOWSP_BF16: pwsp_reduce_half(reduction, dtype, to, a, b, count); break;
    case PTOWSP_F32: pwsp_reduce_f32(reduction, to, a, b, count); break;
    case PTOWSP_F64: pwsp_reduce_f64(reduction, to, a, b, count); break;
    case PTOWSP_I8: pwsp_reduce_i8(reduction, to, a, b, count); break;
    case PTOWSP_I16: pwsp_reduce_i16(reduction, to, a, b, count); break;
    case PTOWSP_I32: pwsp_reduce_i32(reduction, to, a, b, count); break;
    case PTOWSP_I64: pwsp_reduce_i64(reduction, to, a, b, count); break;
    case PTOWSP_U8: pwsp_reduce_u8(reduction, to, a, b, count); break;
    case PTOWSP_U16: pwsp_reduce_u16(reduction, to, a, b, count); break;
    case PTOWSP_U32: pwsp_reduce_u32(reduction, to, a, b, count); break;
    default: PTOWSP_ASSERT(dtype == PTOWSP_U64); pwsp_reduce_u64(reduction, to, a, b, count);
    }
}
