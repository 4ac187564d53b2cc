// Floating-point numbers as text and back: exact, correctly rounded, and the same in every locale.
// The C library's printf and strtod take the decimal point from the locale, so nothing in src uses
// them for floating-point numbers. Needs no other room: the emitter and the shim carry it as well.
//
// A binary fraction is a finite decimal fraction, so a number is held exactly, as a fixed-point
// number of base 10^9. A scaling by 2^n is one pass over the limbs in use:
//
//      limbs    [0] ... [34] . [35] ... [155]      35 before the point: 2^1024 < 10^309
//                                                  121 after it: 2^-1075 has 1075 digits
//
// To print, scale the significand by the exponent and round decimal digits. To read, place the
// digits, scale to an integer of 53 bits and round that. Digits after the last limb only ever decide
// whether a number is above the middle of two others: the last limb is made odd for them.

#ifndef PWSP_NUMBER_H
#define PWSP_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PWSP_DECIMAL_ONES   35
#define PWSP_DECIMAL_LIMBS  156
#define PWSP_DECIMAL_BASE   1000000000u
#define PWSP_DECIMAL_STEP   28                            // bits of one scaling: 2^28 < 10^9
#define PWSP_DECIMAL_POINT  (9 * (int)PWSP_DECIMAL_ONES)  // places are counted from limbs[0]
#define PWSP_DECIMAL_PLACES (9 * (int)PWSP_DECIMAL_LIMBS)
#define PWSP_NUMBER_DIGITS  40  // most digits after the point that are printed
#define PWSP_NUMBER_API     static inline __attribute__((unused))

typedef struct pwsp_decimal {
    uint32_t limbs[PWSP_DECIMAL_LIMBS];
    int begin, end;  // limbs outside of these are 0
} pwsp_decimal;

// Returned by value: valid until the end of the full expression.
typedef struct pwsp_number_text {
    char text[320 + PWSP_NUMBER_DIGITS];
} pwsp_number_text;

// -- decimals -------------------------------------------------------------------------------------

// The unit of a place within its limb.
static inline uint32_t pwsp_decimal_unit(int place) {
    uint32_t unit = 1;
    for (int i = place % 9; i < 8; i++) {
        unit *= 10;
    }
    return unit;
}

static inline uint32_t pwsp_decimal_digit(const pwsp_decimal *d, int place) {
    return place < PWSP_DECIMAL_PLACES ? d->limbs[place / 9] / pwsp_decimal_unit(place) % 10 : 0;
}

// Multiplies by 2^bits, where bits is from -PWSP_DECIMAL_STEP to PWSP_DECIMAL_STEP.
static inline void pwsp_decimal_scale(pwsp_decimal *d, int bits) {
    uint64_t carry = 0;
    for (int i = d->end; bits >= 0 && i > d->begin; i--) {
        carry += (uint64_t)d->limbs[i - 1] << bits;
        d->limbs[i - 1] = (uint32_t)(carry % PWSP_DECIMAL_BASE);
        carry /= PWSP_DECIMAL_BASE;
    }
    if (bits >= 0) {
        if (carry) {
            d->limbs[--d->begin] = (uint32_t)carry;
        }
        return;
    }
    for (int i = d->begin; i < d->end || carry; i++) {
        if (i == PWSP_DECIMAL_LIMBS) {
            d->limbs[i - 1] |= 1;
            break;
        }
        carry = carry * PWSP_DECIMAL_BASE + d->limbs[i];
        d->limbs[i] = (uint32_t)(carry >> -bits);
        carry &= (UINT64_C(1) << -bits) - 1;
        d->end = i < d->end ? d->end : i + 1;
    }
    while (d->begin < d->end && d->limbs[d->begin] == 0) {
        d->begin++;
    }
}

// The first place that is not 0; of zero, the place before the point.
static inline int pwsp_decimal_first(const pwsp_decimal *d) {
    int place = 9 * d->begin;
    while (place < 9 * d->end && pwsp_decimal_digit(d, place) == 0) {
        place++;
    }
    return place < 9 * d->end ? place : PWSP_DECIMAL_POINT - 1;
}

// Rounds to the places before this one, ties to even.
static inline void pwsp_decimal_round(pwsp_decimal *d, int place) {
    if (place >= 9 * d->end) {
        return;
    }
    const int at = place / 9;
    const uint32_t unit = place % 9 ? 10 * pwsp_decimal_unit(place) : PWSP_DECIMAL_BASE;
    const uint32_t rest = d->limbs[at] % unit;
    bool is_more = false;
    for (int i = at + 1; i < d->end; i++) {
        is_more = is_more || d->limbs[i];
        d->limbs[i] = 0;
    }
    const bool is_odd = pwsp_decimal_digit(d, place - 1) & 1;
    const bool is_up = rest > unit / 2 || (rest == unit / 2 && (is_more || is_odd));
    d->limbs[at] -= rest;
    d->end = at + 1;
    uint32_t carry = is_up ? unit : 0;
    for (int i = at; carry; i--) {
        const uint32_t limb = d->limbs[i] + carry;
        carry = limb >= PWSP_DECIMAL_BASE;
        d->limbs[i] = carry ? limb - PWSP_DECIMAL_BASE : limb;
        d->begin = i < d->begin ? i : d->begin;
    }
}

// -- numbers to text ------------------------------------------------------------------------------

static inline pwsp_decimal pwsp_decimal_from(double number) {
    pwsp_decimal d;
    memset(&d, 0, sizeof d);
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    const int biased = (int)(bits >> 52 & 2047);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    const uint64_t significand = biased ? fraction | UINT64_C(1) << 52 : fraction;
    d.limbs[PWSP_DECIMAL_ONES - 2] = (uint32_t)(significand / PWSP_DECIMAL_BASE);
    d.limbs[PWSP_DECIMAL_ONES - 1] = (uint32_t)(significand % PWSP_DECIMAL_BASE);
    d.begin = PWSP_DECIMAL_ONES - 2;
    d.end = PWSP_DECIMAL_ONES;
    for (int left = (biased ? biased : 1) - 1075; left != 0;) {
        const int step = left > PWSP_DECIMAL_STEP    ? PWSP_DECIMAL_STEP
                         : left < -PWSP_DECIMAL_STEP ? -PWSP_DECIMAL_STEP
                                                     : left;
        pwsp_decimal_scale(&d, step);
        left -= step;
    }
    return d;
}

// As printf does in the C locale, with 'f', 'e' or 'g' and at most PWSP_NUMBER_DIGITS digits.
static inline pwsp_number_text pwsp_number_format(double number, char style, int digits) {
    pwsp_number_text out;
    char *to = out.text;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (bits >> 63) {
        *to++ = '-';
    }
    if ((bits >> 52 & 2047) == 2047) {
        memcpy(to, bits << 12 ? "nan" : "inf", 4);
        return out;
    }
    digits = digits < PWSP_NUMBER_DIGITS ? digits : PWSP_NUMBER_DIGITS;
    digits -= style == 'g' && digits > 0;  // after the first one
    pwsp_decimal d = pwsp_decimal_from(number);
    pwsp_decimal_round(&d,
                       (style == 'f' ? PWSP_DECIMAL_POINT : pwsp_decimal_first(&d) + 1) + digits);
    int first = pwsp_decimal_first(&d), point = PWSP_DECIMAL_POINT;
    const int exponent = PWSP_DECIMAL_POINT - 1 - first;
    const bool is_power = style == 'e' || (style == 'g' && (exponent < -4 || exponent > digits));
    if (is_power) {
        point = first + 1;
    } else {
        first = first < PWSP_DECIMAL_POINT ? first : PWSP_DECIMAL_POINT - 1;
        digits -= style == 'g' ? exponent : 0;
    }
    while (style == 'g' && digits > 0 && pwsp_decimal_digit(&d, point + digits - 1) == 0) {
        digits--;
    }
    for (int place = first; place < point + digits; place++) {
        if (place == point) {
            *to++ = '.';
        }
        *to++ = (char)('0' + pwsp_decimal_digit(&d, place));
    }
    if (is_power) {
        const int size = exponent < 0 ? -exponent : exponent;
        *to++ = 'e';
        *to++ = exponent < 0 ? '-' : '+';
        if (size >= 100) {
            *to++ = (char)('0' + size / 100);
        }
        *to++ = (char)('0' + size / 10 % 10);
        *to++ = (char)('0' + size % 10);
    }
    *to = '\0';
    return out;
}

// As "%.*f" prints it.
PWSP_NUMBER_API pwsp_number_text pwsp_fixed(double number, int digits) {
    return pwsp_number_format(number, 'f', digits);
}

// As "%.*g" prints it.
PWSP_NUMBER_API pwsp_number_text pwsp_general(double number, int digits) {
    return pwsp_number_format(number, 'g', digits);
}

// -- text to numbers ------------------------------------------------------------------------------

// The integer part has this many bits, or at least as many.
static inline int pwsp_decimal_bits(const pwsp_decimal *d, uint64_t *out_integer) {
    *out_integer = (uint64_t)d->limbs[PWSP_DECIMAL_ONES - 2] * PWSP_DECIMAL_BASE +
                   d->limbs[PWSP_DECIMAL_ONES - 1];
    if (d->begin < PWSP_DECIMAL_ONES - 2) {
        return d->begin < PWSP_DECIMAL_ONES - 3 ? 88 : 60;
    }
    int bits = 0;
    while (*out_integer >> bits) {
        bits++;
    }
    return bits;
}

// The nearest number with a significand of this many bits and an exponent of at least `lowest`, as
// the bits of its format without the sign. The format's infinity may follow.
static inline uint64_t pwsp_decimal_nearest(pwsp_decimal *d, int significand_bits, int lowest) {
    int exponent = 0;
    uint64_t integer;
    for (;;) {
        int step = significand_bits - pwsp_decimal_bits(d, &integer);
        step = step > PWSP_DECIMAL_STEP ? PWSP_DECIMAL_STEP : step;
        step = step < -PWSP_DECIMAL_STEP ? -PWSP_DECIMAL_STEP : step;
        step = exponent - step < lowest ? exponent - lowest : step;
        if (step == 0) {
            break;
        }
        pwsp_decimal_scale(d, step);
        exponent -= step;
    }
    const uint32_t half = PWSP_DECIMAL_BASE / 2;
    bool is_more = d->limbs[PWSP_DECIMAL_ONES] > half;
    for (int i = PWSP_DECIMAL_ONES + 1; i < d->end; i++) {
        is_more = is_more || (d->limbs[PWSP_DECIMAL_ONES] == half && d->limbs[i]);
    }
    const bool is_tie = d->limbs[PWSP_DECIMAL_ONES] == half && !is_more;
    integer += is_more || (is_tie && (integer & 1));
    return ((uint64_t)(exponent - lowest) << (significand_bits - 1)) + integer;
}

// Finds the digits of [+-]digits[.digits][e[+-]digits]; false: the text is something else.
static inline bool pwsp_number_scan(const char *text, size_t length, size_t *out_begin,
                                    size_t *out_end, int64_t *out_ones) {
    size_t at = length > 0 && (text[0] == '-' || text[0] == '+'), digits = 0;
    *out_begin = at;
    *out_ones = 0;  // digits before the point
    for (bool has_point = false; at < length; at++) {
        if (text[at] == '.' && !has_point) {
            has_point = true;
        } else if (text[at] >= '0' && text[at] <= '9') {
            digits++;
            *out_ones += !has_point;
        } else {
            break;
        }
    }
    *out_end = at;
    if (digits == 0 || at == length) {
        return digits > 0;
    }
    const bool is_power = text[at] == 'e' || text[at] == 'E';
    at++;
    const bool is_negative = at < length && text[at] == '-';
    at += at < length && (text[at] == '-' || text[at] == '+');
    int64_t exponent = 0;
    const size_t first = at;
    while (at < length && text[at] >= '0' && text[at] <= '9') {
        exponent = exponent < INT64_C(1) << 50 ? 10 * exponent + (text[at] - '0') : exponent;
        at++;
    }
    *out_ones += is_negative ? -exponent : exponent;
    return is_power && at > first && at == length;
}

// The double that is nearest to a decimal number, or with is_f32 the float; ties go to even, and what
// is too large is infinite. False: all of the text is not [+-]digits[.digits][e[+-]digits].
PWSP_NUMBER_API bool pwsp_number_read(const char *text, size_t length, bool is_f32,
                                      double *out_number) {
    size_t at, end;
    int64_t place;
    if (!pwsp_number_scan(text, length, &at, &end, &place)) {
        return false;
    }
    place = PWSP_DECIMAL_POINT - place;
    pwsp_decimal d;
    memset(&d, 0, sizeof d);
    d.begin = PWSP_DECIMAL_LIMBS;
    bool is_infinite = false;
    for (; at < end; at++) {
        const uint32_t digit = (uint32_t)(text[at] - '0');
        if (text[at] == '.') {
            continue;
        }
        if (digit && place < PWSP_DECIMAL_POINT - 310) {
            is_infinite = true;
        } else if (digit) {
            const bool is_held = place < PWSP_DECIMAL_PLACES;
            const int limb = is_held ? (int)(place / 9) : PWSP_DECIMAL_LIMBS - 1;
            d.limbs[limb] =
                is_held ? d.limbs[limb] + digit * pwsp_decimal_unit((int)place) : d.limbs[limb] | 1;
            d.begin = limb < d.begin ? limb : d.begin;
            d.end = limb + 1;
        }
        place++;
    }
    const uint64_t infinity = is_f32 ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000);
    uint64_t bits = is_infinite ? infinity
                    : d.end     ? pwsp_decimal_nearest(&d, is_f32 ? 24 : 53, is_f32 ? -149 : -1074)
                                : 0;
    bits = bits < infinity ? bits : infinity;
    float single;
    const uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(out_number, &bits, sizeof bits);
    *out_number = is_f32 ? (double)single : *out_number;
    *out_number = text[0] == '-' ? -*out_number : *out_number;
    return true;
}

// The text that reads back as the same number: a double as %.15g, %.16g or %.17g prints it, the first
// of these, and a float as the first of %.1g to %.9g.
PWSP_NUMBER_API pwsp_number_text pwsp_shortest(double number, bool is_f32) {
    pwsp_number_text out;
    const int most = is_f32 ? 9 : 17;
    for (int digits = is_f32 ? 1 : 15;; digits++) {
        double back = number;
        out = pwsp_general(number, digits);
        if (digits == most ||
            (pwsp_number_read(out.text, strlen(out.text), is_f32, &back) && back == number)) {
            return out;
        }
    }
}

#endif
