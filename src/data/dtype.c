// Conversions between all element types, in integer arithmetic.
//
// No floating-point operation is used, so rounding modes, flush-to-zero and x87 registers change
// nothing, and a signalling NaN raises nothing. f32 to and from f16 and bf16, which convert whole
// tensors, have loops of their own. Every other pair goes element by element through one exact
// form:
//
//      bits of in --decode--> (-1)^negative * magnitude * 2^exponent --encode--> bits of out
//
// The magnitude has 64 bits, so it holds every element of every type exactly. Only encoding rounds,
// so i64 to f16 and f64 to bf16 round once. Infinity is a magnitude of 1 with an exponent beyond
// every type, so it overflows and saturates by itself. A NaN keeps its fraction in the magnitude,
// moved to the upper end.
//
// NaN     Widening moves the fraction and leaves it as it is, so that it can be undone; also for a
//         signalling NaN. Where the result cannot hold all of the source (f16 to bf16 and back
//         included), low fraction bits go and the quiet bit is set: without it a NaN could become
//         an infinity. Same type to same type copies.

#include "../base/base.h"

// -- f32 to and from f16 and bf16, on bits --------------------------------------------------------

PWSP_INLINE uint16_t pwsp_f16_bits_from_f32(uint32_t bits) {
    uint32_t sign = bits >> 16 & 0x8000, x = bits & 0x7fffffff;
    if (x - 0x38800000 < 0x47800000 - 0x38800000) {
        // 2^-14 <= |value| < 2^16: normal. The exponent's bias falls from 127 to 15, and half a
        // unit is added, less one when that makes a tie go to even. A carry may reach infinity.
        x += 0xfff + (x >> 13 & 1) - (UINT32_C(112) << 23);
        return (uint16_t)(sign | x >> 13);
    }
    if (x > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00 | (x >> 13 & 0x3ff));
    }
    if (x >= 0x47800000) {
        return (uint16_t)(sign | 0x7c00);
    }
    if (x < 0x33000000) {
        return (uint16_t)sign;  // below 2^-25, which is half of the smallest subnormal
    }
    // Subnormal: units of 2^-24. The significand has 24 bits and loses 14 to 24 of them.
    uint32_t drop = 126 - (x >> 23), significand = (x & 0x7fffff) | 0x800000;
    significand += (UINT32_C(1) << (drop - 1)) - 1 + (significand >> drop & 1);
    return (uint16_t)(sign | significand >> drop);
}

PWSP_INLINE uint32_t pwsp_f32_bits_from_f16(uint32_t bits) {
    uint32_t sign = (bits & 0x8000) << 16, exponent = bits & 0x7c00, fraction = bits & 0x3ff;
    if (exponent == 0x7c00) {
        return sign | 0x7f800000 | fraction << 13;
    }
    if (exponent != 0) {
        return sign | (((bits & 0x7fff) << 13) + (UINT32_C(112) << 23));
    }
    if (fraction == 0) {
        return sign;
    }
    // Subnormal, fraction * 2^-24: its leading bit, at place 31 - zeros, becomes the implicit one.
    uint32_t zeros = (uint32_t)__builtin_clz(fraction);
    return sign | ((134 - zeros) << 23) | (fraction << (zeros - 8) & 0x7fffff);
}

PWSP_INLINE uint16_t pwsp_bf16_bits_from_f32(uint32_t bits) {
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// -- any type, through the exact form -------------------------------------------------------------

typedef enum pwsp_dtype_kind {
    PWSP_KIND_FLOAT,
    PWSP_KIND_SIGNED,
    PWSP_KIND_UNSIGNED,
    PWSP_KIND_BOOL
} pwsp_dtype_kind;

typedef struct pwsp_dtype_format {
    pwsp_dtype_kind kind;
    uint32_t size;           // bytes
    uint32_t fraction_bits;  // of a float, without the implicit one
    int32_t bias;            // of a float's exponent
} pwsp_dtype_format;

static pwsp_dtype_format pwsp_dtype_format_of(ptowsp_dtype dtype) {
    pwsp_dtype_format format = {PWSP_KIND_FLOAT, ptowsp_dtype_size(dtype), 0, 0};
    PTOWSP_ASSERT(format.size > 0);
    switch (dtype) {
    case PTOWSP_F16:
        format.fraction_bits = 10;
        format.bias = 15;
        break;
    case PTOWSP_BF16:
        format.fraction_bits = 7;
        format.bias = 127;
        break;
    case PTOWSP_F32:
        format.fraction_bits = 23;
        format.bias = 127;
        break;
    case PTOWSP_F64:
        format.fraction_bits = 52;
        format.bias = 1023;
        break;
    case PTOWSP_I8:
    case PTOWSP_I16:
    case PTOWSP_I32:
    case PTOWSP_I64: format.kind = PWSP_KIND_SIGNED; break;
    case PTOWSP_U8:
    case PTOWSP_U16:
    case PTOWSP_U32:
    case PTOWSP_U64: format.kind = PWSP_KIND_UNSIGNED; break;
    default: PTOWSP_ASSERT(dtype == PTOWSP_BOOL); format.kind = PWSP_KIND_BOOL;
    }
    return format;
}

// Whether each element of type `in` is one of type `out`; both are floats.
static bool pwsp_dtype_widens(const pwsp_dtype_format *in, const pwsp_dtype_format *out) {
    return out->fraction_bits >= in->fraction_bits && out->bias >= in->bias;
}

#define PWSP_NUMBER_EXPONENT_INFINITE 4096

typedef struct pwsp_number {
    uint64_t magnitude;  // NaN: its fraction, from the top bit down
    int32_t exponent;
    bool is_negative;
    bool is_nan;
} pwsp_number;

static pwsp_number pwsp_number_from_float(uint64_t bits, const pwsp_dtype_format *format) {
    uint64_t fraction = bits & ((UINT64_C(1) << format->fraction_bits) - 1);
    int32_t exponent_max = 2 * format->bias + 1;  // all ones: infinity and NaN
    int32_t exponent = (int32_t)(bits >> format->fraction_bits) & exponent_max;
    pwsp_number number = {fraction, 0, (bits >> (8 * format->size - 1)) != 0, false};
    if (exponent == exponent_max) {
        number.is_nan = fraction != 0;
        number.magnitude = fraction != 0 ? fraction << (64 - format->fraction_bits) : 1;
        number.exponent = PWSP_NUMBER_EXPONENT_INFINITE;
        return number;
    }
    if (exponent != 0) {
        number.magnitude |= UINT64_C(1) << format->fraction_bits;
    }
    number.exponent =
        (exponent != 0 ? exponent : 1) - format->bias - (int32_t)format->fraction_bits;
    return number;
}

// The float nearest to a number, ties to even.
static uint64_t pwsp_float_from_number(pwsp_number number, const pwsp_dtype_format *format,
                                       bool quiet) {
    uint32_t fraction_bits = format->fraction_bits;
    uint64_t sign = (uint64_t)number.is_negative << (8 * format->size - 1);
    uint64_t infinity = (uint64_t)(2 * format->bias + 1) << fraction_bits;
    if (number.is_nan) {
        uint64_t quiet_bit = (uint64_t)quiet << (fraction_bits - 1);
        return sign | infinity | quiet_bit | number.magnitude >> (64 - fraction_bits);
    }
    if (number.magnitude == 0) {
        return sign;
    }
    // Now |number| is x * 2^(exponent - bias - 63), with the leading bit of x at place 63.
    uint32_t zeros = (uint32_t)__builtin_clzll(number.magnitude);
    uint64_t x = number.magnitude << zeros;
    int32_t exponent = number.exponent + 63 - (int32_t)zeros + format->bias;
    if (exponent > 2 * format->bias) {
        return sign | infinity;
    }
    uint32_t drop = 63 - fraction_bits;  // low bits of x that do not fit
    if (exponent < 1) {                  // subnormal: they are more, and no bit is implicit
        drop += exponent < -64 ? 65 : (uint32_t)(1 - exponent);
        exponent = 1;
    }
    if (drop > 64) {
        return sign;  // less than half of the smallest subnormal
    }
    uint64_t kept = drop < 64 ? x >> drop : 0, lost = x << (64 - drop);
    const uint64_t half = UINT64_C(1) << 63;
    kept += lost > half || (lost == half && (kept & 1) != 0);
    // The leading bit of a normal result adds 1 to the exponent, and so does a carry, also when it
    // makes the first normal number of the last subnormal, or infinity of the last finite one.
    return sign | (((uint64_t)(exponent - 1) << fraction_bits) + kept);
}

static pwsp_number pwsp_number_from_integer(uint64_t bits, const pwsp_dtype_format *format) {
    pwsp_number number = {bits, 0, false, false};
    if (format->kind == PWSP_KIND_BOOL) {
        number.magnitude = bits != 0;
    } else if (format->kind == PWSP_KIND_SIGNED) {
        uint64_t sign = UINT64_C(1) << (8 * format->size - 1);
        number.is_negative = (bits & sign) != 0;
        // sign is half of 2^bits, so for a negative number 2 * sign - bits is its magnitude.
        number.magnitude = number.is_negative ? sign - (bits - sign) : bits;
    }
    return number;
}

// The integer next to a number towards zero, or the end of the type's range on its side.
static uint64_t pwsp_integer_from_float(pwsp_number number, const pwsp_dtype_format *format) {
    if (number.is_nan) {
        return 0;
    }
    uint64_t limit = UINT64_MAX >> (64 - 8 * format->size);
    if (format->kind == PWSP_KIND_SIGNED) {
        limit = (limit >> 1) + number.is_negative;
    } else if (number.is_negative) {
        limit = 0;
    }
    uint64_t x = number.magnitude;
    if (number.exponent < 0) {
        x = number.exponent > -64 ? x >> -number.exponent : 0;
    } else if (x != 0) {
        bool fits = number.exponent < 64 && x <= limit >> number.exponent;
        x = fits ? x << number.exponent : limit;
    }
    x = pwsp_min_u64(x, limit);
    return number.is_negative ? 0 - x : x;
}

// Elements as bits, in the low end of 64.
PWSP_INLINE uint64_t pwsp_bits_load(const unsigned char *at, uint32_t size) {
    uint16_t half;
    uint32_t word;
    uint64_t bits;
    switch (size) {
    case 1: return *at;
    case 2: memcpy(&half, at, sizeof half); return half;
    case 4: memcpy(&word, at, sizeof word); return word;
    default: memcpy(&bits, at, sizeof bits); return bits;
    }
}

// The bits above size are ignored.
PWSP_INLINE void pwsp_bits_store(unsigned char *at, uint32_t size, uint64_t bits) {
    uint16_t half = (uint16_t)bits;
    uint32_t word = (uint32_t)bits;
    switch (size) {
    case 1: *at = (unsigned char)bits; break;
    case 2: memcpy(at, &half, sizeof half); break;
    case 4: memcpy(at, &word, sizeof word); break;
    default: memcpy(at, &bits, sizeof bits); break;
    }
}

PWSP_INLINE uint64_t pwsp_bits_convert(uint64_t bits, const pwsp_dtype_format *in,
                                       const pwsp_dtype_format *out, bool quiet) {
    bool from_float = in->kind == PWSP_KIND_FLOAT;
    pwsp_number number =
        from_float ? pwsp_number_from_float(bits, in) : pwsp_number_from_integer(bits, in);
    if (out->kind == PWSP_KIND_FLOAT) {
        return pwsp_float_from_number(number, out, quiet);
    }
    if (out->kind == PWSP_KIND_BOOL) {
        return number.magnitude != 0;
    }
    if (from_float) {
        return pwsp_integer_from_float(number, out);
    }
    return number.is_negative ? 0 - number.magnitude : number.magnitude;
}

// -- public functions -----------------------------------------------------------------------------

PWSP_INLINE uint32_t pwsp_f32_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

PWSP_INLINE float pwsp_f32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t ptowsp_f16_from_f32(float value) {
    return pwsp_f16_bits_from_f32(pwsp_f32_to_bits(value));
}

float ptowsp_f32_from_f16(uint16_t bits) {
    return pwsp_f32_of_bits(pwsp_f32_bits_from_f16(bits));
}

uint16_t ptowsp_bf16_from_f32(float value) {
    return pwsp_bf16_bits_from_f32(pwsp_f32_to_bits(value));
}

float ptowsp_f32_from_bf16(uint16_t bits) {
    return pwsp_f32_of_bits((uint32_t)bits << 16);
}

// Four loops rather than two with a choice inside: compilers make vector code of them.

static void pwsp_convert_f32_to_f16(unsigned char *PWSP_RESTRICT out,
                                    const unsigned char *PWSP_RESTRICT in, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, in + 4 * i, sizeof bits);
        uint16_t half = pwsp_f16_bits_from_f32(bits);
        memcpy(out + 2 * i, &half, sizeof half);
    }
}

static void pwsp_convert_f32_to_bf16(unsigned char *PWSP_RESTRICT out,
                                     const unsigned char *PWSP_RESTRICT in, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, in + 4 * i, sizeof bits);
        uint16_t half = pwsp_bf16_bits_from_f32(bits);
        memcpy(out + 2 * i, &half, sizeof half);
    }
}

static void pwsp_convert_f16_to_f32(unsigned char *PWSP_RESTRICT out,
                                    const unsigned char *PWSP_RESTRICT in, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, in + 2 * i, sizeof half);
        uint32_t bits = pwsp_f32_bits_from_f16(half);
        memcpy(out + 4 * i, &bits, sizeof bits);
    }
}

static void pwsp_convert_bf16_to_f32(unsigned char *PWSP_RESTRICT out,
                                     const unsigned char *PWSP_RESTRICT in, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, in + 2 * i, sizeof half);
        uint32_t bits = (uint32_t)half << 16;
        memcpy(out + 4 * i, &bits, sizeof bits);
    }
}

static void pwsp_convert_any(unsigned char *PWSP_RESTRICT out, ptowsp_dtype out_dtype,
                             const unsigned char *PWSP_RESTRICT in, ptowsp_dtype in_dtype,
                             uint64_t count) {
    const pwsp_dtype_format from = pwsp_dtype_format_of(in_dtype);
    const pwsp_dtype_format to = pwsp_dtype_format_of(out_dtype);
    bool quiet = !pwsp_dtype_widens(&from, &to);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits = pwsp_bits_load(in, from.size);
        pwsp_bits_store(out, to.size, pwsp_bits_convert(bits, &from, &to, quiet));
        in += from.size;
        out += to.size;
    }
}

ptowsp_status ptowsp_convert(void *out, ptowsp_dtype out_dtype, const void *in,
                             ptowsp_dtype in_dtype, uint64_t count) {
    uint32_t in_size = ptowsp_dtype_size(in_dtype);
    if (in_size == 0 || ptowsp_dtype_size(out_dtype) == 0 || (count > 0 && (!out || !in))) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (count == 0) {
        return PTOWSP_OK;
    }
    unsigned char *to = (unsigned char *)out;
    const unsigned char *from = (const unsigned char *)in;
    if (in_dtype == out_dtype && in_dtype != PTOWSP_BOOL) {  // bool: any byte but 0 becomes 1
        memcpy(to, from, (size_t)(count * in_size));
    } else if (in_dtype == PTOWSP_F32 && out_dtype == PTOWSP_F16) {
        pwsp_convert_f32_to_f16(to, from, count);
    } else if (in_dtype == PTOWSP_F32 && out_dtype == PTOWSP_BF16) {
        pwsp_convert_f32_to_bf16(to, from, count);
    } else if (in_dtype == PTOWSP_F16 && out_dtype == PTOWSP_F32) {
        pwsp_convert_f16_to_f32(to, from, count);
    } else if (in_dtype == PTOWSP_BF16 && out_dtype == PTOWSP_F32) {
        pwsp_convert_bf16_to_f32(to, from, count);
    } else {
        pwsp_convert_any(to, out_dtype, from, in_dtype, count);
    }
    return PTOWSP_OK;
}
