// Tests of ptoisa_shim.h: what elements and instructions are, written down once more.
//
// Formats are worked on by arithmetic (a value is a sign, a power of two and a number of steps),
// not by moving bits as the shim does. Where an element is follows the formulas of the
// specification, each layout by itself. Instructions are functions of one element or a plain loop,
// in double: doubles hold all sums, products and quotients of f32, f16 and bf16 well enough that
// rounding them once more is exact (53 >= 2 * 24 + 2 bits; Figueroa 1995).

#ifndef PTOISA_REFERENCE_H
#define PTOISA_REFERENCE_H

#include "ptoisa_shim.h"

#include <math.h>

// -- formats --------------------------------------------------------------------------------------

typedef struct ref_format {
    int precision;  // bits of the significand, the hidden one included
    int exponent_min, exponent_max;
    int bits;
} ref_format;

static inline ref_format ref_format_of(ptoisa_dtype dtype) {
    ref_format f16 = {11, -14, 15, 16}, bf16 = {8, -126, 127, 16}, f32 = {24, -126, 127, 32};
    return dtype == PTOISA_F16 ? f16 : dtype == PTOISA_BF16 ? bf16 : f32;
}

static inline bool ref_is_float(ptoisa_dtype dtype) {
    return dtype == PTOISA_F16 || dtype == PTOISA_BF16 || dtype == PTOISA_F32;
}

static inline uint32_t ref_size(ptoisa_dtype dtype) {
    switch (dtype) {
    case PTOISA_I8:
    case PTOISA_U8:
    case PTOISA_BOOL: return 1;
    case PTOISA_F16:
    case PTOISA_BF16:
    case PTOISA_I16:
    case PTOISA_U16: return 2;
    case PTOISA_F32:
    case PTOISA_I32:
    case PTOISA_U32: return 4;
    default: return 8;
    }
}

static inline bool ref_is_signed(ptoisa_dtype dtype) {
    return dtype == PTOISA_I8 || dtype == PTOISA_I16 || dtype == PTOISA_I32 || dtype == PTOISA_I64;
}

// The greatest finite number and, of integers, the least.
static inline double ref_greatest(ptoisa_dtype dtype) {
    if (ref_is_float(dtype)) {
        ref_format f = ref_format_of(dtype);
        return ldexp(2 - ldexp(1, 1 - f.precision), f.exponent_max);
    }
    return ldexp(1, (int)ref_size(dtype) * 8 - ref_is_signed(dtype)) - 1;
}

static inline double ref_least(ptoisa_dtype dtype) {
    return ref_is_signed(dtype) ? -ldexp(1, (int)ref_size(dtype) * 8 - 1) : 0;
}

// The distance of a type's numbers around x.
static inline double ref_ulp(ptoisa_dtype dtype, double x) {
    if (!ref_is_float(dtype)) {
        return 1;
    }
    ref_format f = ref_format_of(dtype);
    int exponent = x == 0 || isinf(x) || isnan(x) ? f.exponent_min : ilogb(x);
    exponent = exponent < f.exponent_min ? f.exponent_min : exponent;
    exponent = exponent > f.exponent_max ? f.exponent_max : exponent;
    return ldexp(1, exponent - f.precision + 1);
}

// The number of the type that is nearest to x, ties to even. Integers are not touched.
static inline double ref_round(ptoisa_dtype dtype, double x) {
    if (!ref_is_float(dtype) || isnan(x) || isinf(x) || x == 0) {
        return x;
    }
    double step = ref_ulp(dtype, x), rounded = nearbyint(x / step) * step;
    return fabs(rounded) > ref_greatest(dtype) ? copysign((double)INFINITY, x) : rounded;
}

// The low bits of an integer, as the type reads them.
static inline double ref_wrap(ptoisa_dtype dtype, uint64_t bits) {
    uint32_t width = ref_size(dtype) * 8;
    if (width < 64) {
        bits &= (UINT64_C(1) << width) - 1;
    }
    if (ref_is_signed(dtype) && bits >> (width - 1) & 1) {
        uint64_t magnitude = width < 64 ? (UINT64_C(1) << width) - bits : ~bits + 1;
        return -(double)magnitude;
    }
    return (double)bits;
}

static inline double ref_decode(ptoisa_dtype dtype, uint64_t bits) {
    if (!ref_is_float(dtype)) {
        return ref_wrap(dtype, bits);
    }
    ref_format f = ref_format_of(dtype);
    uint64_t steps = bits & ((UINT64_C(1) << (f.precision - 1)) - 1);
    uint64_t sign = bits >> (f.bits - 1) & 1;
    int exponent = (int)(bits >> (f.precision - 1) & ((UINT64_C(1) << (f.bits - f.precision)) - 1));
    double value;
    if (exponent == f.exponent_max * 2 + 1) {
        value = steps ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp((double)steps, f.exponent_min - f.precision + 1);
    } else {
        value = ldexp((double)steps + ldexp(1, f.precision - 1),
                      exponent - f.exponent_max - f.precision + 1);
    }
    return sign ? -value : value;
}

// The bits of a number: rounded to nearest where floats cannot hold it; integers must.
static inline uint64_t ref_encode(ptoisa_dtype dtype, double x) {
    if (!ref_is_float(dtype)) {
        uint64_t whole = x < 0 ? (uint64_t)(int64_t)x : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
        return ref_size(dtype) == 8 ? whole : whole & ((UINT64_C(1) << ref_size(dtype) * 8) - 1);
    }
    ref_format f = ref_format_of(dtype);
    uint64_t sign = signbit(x) ? UINT64_C(1) << (f.bits - 1) : 0;
    uint64_t infinity = (uint64_t)(f.exponent_max * 2 + 1) << (f.precision - 1);
    double magnitude = fabs(ref_round(dtype, x));
    if (isnan(x)) {
        return sign | infinity | UINT64_C(1) << (f.precision - 2);
    }
    if (isinf(magnitude)) {
        return sign | infinity;
    }
    double least = ldexp(1, f.exponent_min);
    if (magnitude < least) {
        return sign | (uint64_t)(magnitude / ref_ulp(dtype, 0));
    }
    int exponent = ilogb(magnitude);
    uint64_t steps = (uint64_t)(magnitude / ref_ulp(dtype, magnitude));
    uint64_t hidden = UINT64_C(1) << (f.precision - 1);
    return sign | (uint64_t)(exponent + f.exponent_max) << (f.precision - 1) | (steps - hidden);
}

// -- where elements are ---------------------------------------------------------------------------

static inline uint64_t ref_offset(const ptoisa_tile *t, uint32_t r, uint32_t c) {
    uint64_t rows = t->rows, cols = t->cols, block = 32 / ref_size((ptoisa_dtype)t->dtype);
    uint64_t inner = t->memory == PTOISA_ACC ? 16 : block;  // the side that is 32 bytes
    switch ((ptoisa_layout)t->layout) {
    case PTOISA_COL_MAJOR: return c * rows + r;
    case PTOISA_NZ:
        return c / inner * rows * inner + r / 16 * 16 * inner + r % 16 * inner + c % inner;
    case PTOISA_ZZ: return r / 16 * cols * 16 + c / inner * 16 * inner + r % 16 * inner + c % inner;
    case PTOISA_ZN:
        return r / inner * cols * inner + c / 16 * 16 * inner + c % 16 * inner + r % inner;
    case PTOISA_NN: return c / 16 * rows * 16 + r / inner * 16 * inner + c % 16 * inner + r % inner;
    default: return r * cols + c;
    }
}

// Elements in the machine's byte order, which the bytes of a number show.
static inline uint32_t ref_byte(uint32_t size, uint32_t k) {
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 1 ? k : size - 1 - k;
}

static inline uint64_t ref_get_bits(const void *data, ptoisa_dtype dtype, uint64_t i) {
    const uint32_t size = ref_size(dtype);
    const uint8_t *bytes = (const uint8_t *)data + i * size;
    uint64_t bits = 0;
    for (uint32_t k = size; k-- > 0;) {
        bits = bits << 8 | bytes[ref_byte(size, k)];
    }
    return bits;
}

static inline void ref_put_bits(void *data, ptoisa_dtype dtype, uint64_t i, uint64_t bits) {
    const uint32_t size = ref_size(dtype);
    uint8_t *bytes = (uint8_t *)data + i * size;
    for (uint32_t k = 0; k < size; k++) {
        bytes[ref_byte(size, k)] = (uint8_t)(bits >> 8 * k);
    }
}

// -- one element ----------------------------------------------------------------------------------

static inline double ref_max(double a, double b) {
    return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
}

static inline double ref_min(double a, double b) {
    return isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b;
}

// The remainder that has the divisor's sign.
static inline double ref_rem(double a, double b) {
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static inline double ref_binary_float(ptoisa_op op, double a, double b) {
    switch (op) {
    case PTOISA_TADD: return a + b;
    case PTOISA_TSUB: return a - b;
    case PTOISA_TMUL: return a * b;
    case PTOISA_TDIV: return a / b;
    case PTOISA_TMAX: return ref_max(a, b);
    case PTOISA_TMIN: return ref_min(a, b);
    case PTOISA_TREM: return ref_rem(a, b);
    case PTOISA_TFMOD: return fmod(a, b);
    case PTOISA_TPOW: return pow(a, b);
    case PTOISA_TSDIV: return b / a;
    case PTOISA_TROWEXPANDEXPDIF: return exp((float)(a - b));
    case PTOISA_TLRELU: return a > 0 ? a : a * b;
    case PTOISA_TSUBRELU: return a - b < 0 ? 0 : a - b;
    default: return (double)NAN;
    }
}

static inline uint64_t ref_power(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        return base == 1 || base == -1 ? (exponent % 2 ? (uint64_t)base : 1) : 0;
    }
    uint64_t product = 1, square = (uint64_t)base;
    for (; exponent; exponent >>= 1, square *= square) {
        product *= exponent & 1 ? square : 1;
    }
    return product;
}

// Negative numbers go towards minus infinity; by as many bits as there are, or more, all of them go.
static inline uint64_t ref_shift(ptoisa_op op, ptoisa_dtype dtype, int64_t a, int64_t b) {
    const bool is_left = op == PTOISA_TSHL;
    if (b < 0 || b >= 8 * (int64_t)ref_size(dtype)) {
        return is_left || a >= 0 ? 0 : UINT64_MAX;
    }
    return is_left ? (uint64_t)a << b : a < 0 ? ~(~(uint64_t)a >> b) : (uint64_t)a >> b;
}

// Integers, exact and then wrapped to the type. A division by 0 is 0, and so is its remainder.
static inline double ref_binary_int(ptoisa_op op, ptoisa_dtype dtype, int64_t a, int64_t b) {
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b, result = 0;
    switch (op) {
    case PTOISA_TADD: result = ua + ub; break;
    case PTOISA_TSUB: result = ua - ub; break;
    case PTOISA_TMUL: result = ua * ub; break;
    case PTOISA_TDIV: result = b == 0 ? 0 : (uint64_t)(a / b); break;
    case PTOISA_TSDIV: result = a == 0 ? 0 : (uint64_t)(b / a); break;
    case PTOISA_TMAX: result = a > b ? ua : ub; break;
    case PTOISA_TMIN: result = a < b ? ua : ub; break;
    case PTOISA_TREM: {
        int64_t r = b == 0 ? 0 : a % b;
        result = (uint64_t)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
        break;
    }
    case PTOISA_TFMOD: result = b == 0 ? 0 : (uint64_t)(a % b); break;
    case PTOISA_TPOW: result = ref_power(a, b); break;
    case PTOISA_TAND: result = ua & ub; break;
    case PTOISA_TOR: result = ua | ub; break;
    case PTOISA_TXOR: result = ua ^ ub; break;
    case PTOISA_TSHL:
    case PTOISA_TSHR: result = ref_shift(op, dtype, a, b); break;
    default: break;
    }
    return ref_wrap(dtype, result);
}

// The exact result of a binary instruction on two elements (floats: not yet rounded).
static inline double ref_binary(ptoisa_op op, ptoisa_dtype dtype, double a, double b) {
    return ref_is_float(dtype) ? ref_binary_float(op, a, b)
                               : ref_binary_int(op, dtype, (int64_t)a, (int64_t)b);
}

// Of three elements; z is what the destination held where an instruction reads that. Floats are rounded
// to f32 after each step, and a multiplication and an addition are one step.
static inline double ref_ternary(ptoisa_op op, ptoisa_dtype dtype, double a, double b, double z) {
    const bool is_float = ref_is_float(dtype);
    float fused;
    switch (op) {
    case PTOISA_TADDC: a = is_float ? (float)(a + b) : a + b; break;
    case PTOISA_TSUBC: a = is_float ? (float)(a - b) : a - b; break;
    case PTOISA_TAXPY:
    case PTOISA_TMULADDDST: return fmaf((float)a, (float)b, (float)z);
    case PTOISA_TFUSEDMULADD: return fmaf((float)a, (float)z, (float)b);
    case PTOISA_TFUSEDMULADDRELU:
        fused = fmaf((float)a, (float)z, (float)b);
        return fused < 0 ? 0 : fused;
    default: return ref_binary(op, dtype, a, b);
    }
    return is_float ? (float)(a + z) : ref_wrap(dtype, (uint64_t)(int64_t)(a + z));
}

static inline double ref_unary(ptoisa_op op, ptoisa_dtype dtype, double a) {
    if (!ref_is_float(dtype)) {
        int64_t i = (int64_t)a;
        switch (op) {
        case PTOISA_TABS: return ref_wrap(dtype, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
        case PTOISA_TNEG: return ref_wrap(dtype, 0 - (uint64_t)i);
        case PTOISA_TNOT: return ref_wrap(dtype, ~(uint64_t)i);
        case PTOISA_TRELU: return i > 0 ? a : 0;
        case PTOISA_TRECIP: return i == 0 ? 0 : (double)(1 / i);
        default: return (double)NAN;
        }
    }
    switch (op) {
    case PTOISA_TEXP: return exp(a);
    case PTOISA_TLOG: return log(a);
    case PTOISA_TSQRT: return sqrt(a);
    case PTOISA_TRSQRT: return 1 / (float)sqrt(a);
    case PTOISA_TRECIP: return 1 / a;
    case PTOISA_TABS: return fabs(a);
    case PTOISA_TNEG: return -a;
    case PTOISA_TRELU: return a < 0 ? 0 : a;
    default: return (double)NAN;
    }
}

static inline double ref_clamp(ptoisa_dtype dtype, double x) {
    return isnan(x) ? 0 : fmin(fmax(x, ref_least(dtype)), ref_greatest(dtype));
}

// Keeps the low bits of a whole number, however big.
static inline double ref_wrap_whole(ptoisa_dtype dtype, double x) {
    double span = ldexp(1, (int)ref_size(dtype) * 8), rest = fmod(x, span);
    rest = rest < 0 ? rest + span : rest;
    return rest > ref_greatest(dtype) ? rest - span : rest;
}

static inline bool ref_compare(ptoisa_compare mode, double a, double b) {
    switch (mode) {
    case PTOISA_EQ: return a == b;
    case PTOISA_NE: return a != b;
    case PTOISA_LT: return a < b;
    case PTOISA_LE: return a <= b;
    case PTOISA_GT: return a > b;
    default: return a >= b;
    }
}

#endif
