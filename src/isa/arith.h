// Remainders and powers of single numbers. No machine has vector instructions for them, and libm is
// not linked.

#ifndef PTOISA_ARITH_H
#define PTOISA_ARITH_H

#include "tile.h"

// -- f32 ------------------------------------------------------------------------------------------

// m and exponent of |x| = m * 2^exponent.
PTOISA_INLINE uint32_t ptoisa_mantissa(float x, int *exponent) {
    uint32_t bits = ptoisa_bits_from_f32(x) & 0x7fffffff, biased = bits >> 23;
    *exponent = (int)(biased > 0 ? biased : 1) - 150;
    return biased > 0 ? (bits & 0x7fffff) | 0x800000 : bits;
}

PTOISA_INLINE double ptoisa_power_of_two(int n) {
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

// C's fmodf, exactly: long division of the significands, 39 bits of the quotient at a time.
PTOISA_FN float ptoisa_fmod_f32(float x, float y) {
    const float infinity = __builtin_inff();
    if (x != x || y != y || y == 0 || x == infinity || x == -infinity) {
        return __builtin_nanf("");
    }
    int x_exponent, y_exponent;
    uint64_t rest = ptoisa_mantissa(x, &x_exponent), divisor = ptoisa_mantissa(y, &y_exponent);
    if (y == infinity || y == -infinity || x_exponent < y_exponent) {
        return x;
    }
    rest %= divisor;
    for (int left = x_exponent - y_exponent; left > 0;) {
        int step = left < 39 ? left : 39;
        rest = (rest << step) % divisor;
        left -= step;
    }
    float result = (float)((double)rest * ptoisa_power_of_two(y_exponent));
    return ptoisa_bits_from_f32(x) >> 31 ? -result : result;
}

// The remainder with the sign of the divisor, zero included.
PTOISA_FN float ptoisa_rem_f32(float x, float y) {
    float rest = ptoisa_fmod_f32(x, y);
    if (rest == 0) {
        return ptoisa_bits_from_f32(y) >> 31 ? -0.0f : 0.0f;
    }
    return (rest < 0) != (y < 0) && rest == rest ? rest + y : rest;
}

// |x|^y for finite positive |x|, as exp(y log |x|) in double: by series whose remainders are below
// 1e-14, so that the result is nearly always the correctly rounded one.
PTOISA_FN float ptoisa_pow_positive(float x, float y) {
    double value = x;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int k = (int)(bits >> 52 & 0x7ff) - 1023;
    double m = value * ptoisa_power_of_two(-k);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    double s = (m - 1.0) / (m + 1.0), s2 = s * s, sum = 0.0;
    for (int n = 17; n > 0; n -= 2) {
        sum = sum * s2 + 1.0 / n;
    }
    double log2_value = (double)k + 2.0 * s * sum * 1.44269504088896340736;
    double z = (double)y * log2_value;
    if (!(z < 128.0)) {
        return __builtin_inff();
    }
    if (z < -150.0) {
        return 0.0f;
    }
    int n = (int)(z + (z < 0 ? -0.5 : 0.5));
    double r = (z - (double)n) * 0.69314718055994530942, power = 1.0;
    for (int i = 12; i > 0; i--) {
        power = 1.0 + power * r / i;
    }
    return (float)(power * ptoisa_power_of_two(n));
}

// C's powf: x^0 and 1^y are 1, a negative x takes an integer y, NaN otherwise.
PTOISA_FN float ptoisa_pow_f32(float x, float y) {
    const float infinity = __builtin_inff();
    if (y == 0 || x == 1) {
        return 1.0f;
    }
    if (x != x || y != y) {
        return __builtin_nanf("");
    }
    float size = ptoisa_f32_from_bits(ptoisa_bits_from_f32(x) & 0x7fffffff);
    float y_size = ptoisa_f32_from_bits(ptoisa_bits_from_f32(y) & 0x7fffffff);
    bool is_integer = y_size >= 0x1p24f || (float)(int32_t)y_size == y_size;
    bool is_odd = is_integer && y_size < 0x1p24f && ((int32_t)y_size & 1);
    float sign = (ptoisa_bits_from_f32(x) >> 31) && is_odd ? -1.0f : 1.0f;
    if (size == 0 || size == infinity) {
        return sign * ((size == 0) == (y > 0) ? 0.0f : infinity);
    }
    if (y_size == infinity) {
        return size == 1 ? 1.0f : (size < 1) == (y > 0) ? 0.0f : infinity;
    }
    if (x < 0 && !is_integer) {
        return __builtin_nanf("");
    }
    return sign * ptoisa_pow_positive(size, y);
}

// -- 32-bit integers, as unsigned bits ------------------------------------------------------------

// x / 0 and x % 0 are 0; INT_MIN / -1 wraps.
PTOISA_INLINE uint32_t ptoisa_div_int(uint32_t x, uint32_t y, bool is_unsigned) {
    if (y == 0) {
        return 0;
    }
    return is_unsigned ? x / y : y == UINT32_MAX ? 0u - x : (uint32_t)((int32_t)x / (int32_t)y);
}

// The remainder, with the sign of the divisor or of the dividend.
PTOISA_INLINE uint32_t ptoisa_rem_int(uint32_t x, uint32_t y, bool is_unsigned, bool is_fmod) {
    uint32_t rest = y == 0 ? 0 : x - ptoisa_div_int(x, y, is_unsigned) * y;
    bool is_other_sign = !is_unsigned && ((rest ^ y) >> 31);
    return rest != 0 && is_other_sign && !is_fmod ? rest + y : rest;
}

// By squaring, wrapping. A negative exponent leaves 1 / x^|y|: 0 but for x = 1 and -1.
PTOISA_INLINE uint32_t ptoisa_pow_int(uint32_t x, uint32_t y, bool is_unsigned) {
    if (!is_unsigned && (y >> 31)) {
        return x == 1 ? 1 : x == UINT32_MAX ? (y & 1 ? x : 1u) : 0u;
    }
    uint32_t power = 1;
    for (; y > 0; y >>= 1) {
        power *= y & 1 ? x : 1u;
        x *= x;
    }
    return power;
}

#endif
