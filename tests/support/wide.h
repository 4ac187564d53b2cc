// Signed numbers of 128 bits, in which references have room where the library wraps or saturates.
//
// Two words in two's complement, for every compiler: those for 32-bit machines have no __int128.
// base_test.c holds them against it where there is one.

#ifndef PTOWSP_TEST_WIDE_H
#define PTOWSP_TEST_WIDE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wide {
    uint64_t high, low;
} wide;

static inline wide wide_of_bits(uint64_t high, uint64_t low) {
    wide result;
    result.high = high;
    result.low = low;
    return result;
}

static inline wide wide_of_u64(uint64_t value) {
    return wide_of_bits(0, value);
}

static inline wide wide_of_i64(int64_t value) {
    return wide_of_bits(value < 0 ? UINT64_MAX : 0, (uint64_t)value);
}

static inline bool wide_is_negative(wide a) {
    return a.high >> 63 != 0;
}

static inline wide wide_add(wide a, wide b) {
    const uint64_t low = a.low + b.low;
    return wide_of_bits(a.high + b.high + (low < a.low), low);
}

static inline wide wide_neg(wide a) {
    return wide_add(wide_of_bits(~a.high, ~a.low), wide_of_u64(1));
}

static inline wide wide_sub(wide a, wide b) {
    return wide_add(a, wide_neg(b));
}

// -1, 0 or 1, as a is less than b, equal or greater.
static inline int wide_compare(wide a, wide b) {
    const uint64_t flip = UINT64_C(1) << 63;
    const uint64_t high_a = a.high ^ flip, high_b = b.high ^ flip;
    return high_a != high_b ? (high_a < high_b ? -1 : 1) : (a.low > b.low) - (a.low < b.low);
}

// By adding the multiples that are powers of two. Wraps at 128 bits, which a product of two numbers of
// 64 bits does not reach.
static inline wide wide_mul(wide a, wide b) {
    wide sum = wide_of_u64(0);
    for (; b.low || b.high; b = wide_of_bits(b.high >> 1, b.low >> 1 | b.high << 63)) {
        sum = b.low & 1 ? wide_add(sum, a) : sum;
        a = wide_add(a, a);
    }
    return sum;
}

// By long division of the magnitudes, a bit at a time. The quotient is cut towards zero, the rest has the
// sign of the dividend; the divisor is not 0, and no magnitude 2^127.
static inline wide wide_divide(wide a, wide b, wide *out_rest) {
    const wide bits = wide_is_negative(a) ? wide_neg(a) : a;
    const wide divisor = wide_is_negative(b) ? wide_neg(b) : b;
    wide quotient = wide_of_u64(0), rest = wide_of_u64(0);
    for (int bit = bits.high ? 127 : 63; bit >= 0; bit--) {
        const uint64_t word = bit < 64 ? bits.low : bits.high;
        rest = wide_add(wide_add(rest, rest), wide_of_u64(word >> bit % 64 & 1));
        quotient = wide_add(quotient, quotient);
        if (wide_compare(rest, divisor) >= 0) {
            rest = wide_sub(rest, divisor);
            quotient = wide_add(quotient, wide_of_u64(1));
        }
    }
    *out_rest = wide_is_negative(a) ? wide_neg(rest) : rest;
    return wide_is_negative(a) != wide_is_negative(b) ? wide_neg(quotient) : quotient;
}

static inline wide wide_div(wide a, wide b) {
    wide rest;
    return wide_divide(a, b, &rest);
}

static inline wide wide_rem(wide a, wide b) {
    wide rest;
    wide_divide(a, b, &rest);
    return rest;
}

static inline wide wide_not(wide a) {
    return wide_of_bits(~a.high, ~a.low);
}

// Towards minus infinity, by less than 64.
static inline wide wide_shift_right(wide a, unsigned count) {
    const wide unit = wide_of_u64(UINT64_C(1) << count);
    return wide_is_negative(a) ? wide_not(wide_div(wide_not(a), unit)) : wide_div(a, unit);
}

#endif
