// Both functions work in double precision, so that rounding to float at the end is nearly always
// the correctly rounded result; they serve code that calls them once per row, not once per element.
//
// exp: x = k ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series to r^11 (remainder below
// 7e-15), times 2^k put together from bits. log: x = 2^k m with m in [sqrt(1/2), sqrt(2)); with s =
// (m - 1) / (m + 1), |s| < 0.172, log m = 2 (s + s^3/3 + s^5/5 + ...), to s^15 (remainder below
// 2e-14).

#include "math.h"

static double pwsp_exp2_int(int32_t k) {
    PTOWSP_ASSERT(-1022 <= k && k <= 1023);
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

PWSP_INTERNAL float pwsp_exp(float x) {
    PWSP_ROUND_APART;
    if (!(x > -110.0f)) {
        return x == x ? 0.0f : x;
    }
    if (x > 89.0f) {
        return pwsp_infinity();
    }
    const double ln2 = 0.69314718055994530942, inverse_ln2 = 1.44269504088896340736;
    double scaled = (double)x * inverse_ln2;
    int32_t k = (int32_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
    double r = (double)x - (double)k * ln2;
    double sum = 1.0;
    for (int32_t n = 11; n > 0; n--) {
        sum = 1.0 + sum * r / n;
    }
    return (float)(sum * pwsp_exp2_int(k));
}

PWSP_INTERNAL float pwsp_log(float x) {
    PWSP_ROUND_APART;
    if (!(x > 0.0f) || x == pwsp_infinity()) {
        return x == 0.0f ? -pwsp_infinity() : x < 0.0f ? pwsp_infinity() - pwsp_infinity() : x;
    }
    double value = x;  // every positive float is a normal double
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int32_t k = (int32_t)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    double s = (m - 1.0) / (m + 1.0), s2 = s * s, sum = 0.0;
    for (int32_t n = 15; n > 0; n -= 2) {
        sum = sum * s2 + 1.0 / n;
    }
    return (float)(2.0 * s * sum + (double)k * 0.69314718055994530942);
}
