// Both functions work in double precision, so that rounding to float at the end is nearly always
// the correctly rounded result; they serve code that calls them once per row, not once per element.
//
// exp: x = k ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series to r^11 (remainder below
// 7e-15), times 2^k put together from bits. log: x = 2^k m with m in [sqrt(1/2), sqrt(2)); with s =
// (m - 1) / (m + 1), |s| < 0.172, log m = 2 (s + s^3/3 + s^5/5 + ...), to s^15 (remainder below
// 2e-14).

//
// Vector code of exp rounds in other places, and has the same results after rounding to float.

#include "math.h"

#include "cpu.h"

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

#if PWSP_X86

// Up to eight at once, each above -110 and at most 89; otherwise does nothing and returns false.
// The series is divided by multiplying with reciprocals, which takes less than half the time. It
// moves the double by some units in its last place and the float, compared for all of them, by
// none. It uses no operators, so the compiler contracts nothing.
PWSP_AVX512 static bool pwsp_exp_avx512(float *numbers, uint32_t count) {
    const __mmask8 mask = (__mmask8)((1u << count) - 1);
    const __m256 given = _mm256_maskz_loadu_ps(mask, numbers);
    __mmask8 is_good = _mm256_mask_cmp_ps_mask(mask, given, _mm256_set1_ps(-110.0f), _CMP_GT_OQ);
    is_good = _mm256_mask_cmp_ps_mask(is_good, given, _mm256_set1_ps(89.0f), _CMP_LE_OQ);
    if (is_good != mask) {
        return false;
    }
    const __m512d ln2 = _mm512_set1_pd(0.69314718055994530942);
    const __m512d inverse_ln2 = _mm512_set1_pd(1.44269504088896340736);
    const __m512d one = _mm512_set1_pd(1.0);
    static const double reciprocals[11] = {1.0 / 11, 1.0 / 10, 1.0 / 9, 1.0 / 8, 1.0 / 7, 1.0 / 6,
                                           1.0 / 5,  1.0 / 4,  1.0 / 3, 1.0 / 2, 1.0};
    __m512d x = _mm512_maskz_cvtps_pd(PWSP_ALL_8, given);
    __m512d scaled = _mm512_maskz_mul_pd(PWSP_ALL_8, x, inverse_ln2);
    __mmask8 is_below = _mm512_cmp_pd_mask(scaled, _mm512_setzero_pd(), _CMP_LT_OQ);
    __m512d half = _mm512_mask_mov_pd(_mm512_set1_pd(0.5), is_below, _mm512_set1_pd(-0.5));
    __m256i k =
        _mm512_maskz_cvttpd_epi32(PWSP_ALL_8, _mm512_maskz_add_pd(PWSP_ALL_8, scaled, half));
    __m512d whole = _mm512_maskz_mul_pd(PWSP_ALL_8, _mm512_maskz_cvtepi32_pd(PWSP_ALL_8, k), ln2);
    __m512d r = _mm512_maskz_sub_pd(PWSP_ALL_8, x, whole), sum = one;
    for (uint32_t i = 0; i < 11; i++) {
        __m512d part = _mm512_maskz_mul_pd(PWSP_ALL_8, r, _mm512_set1_pd(reciprocals[i]));
        sum = _mm512_fmadd_pd(sum, part, one);
    }
    __m512i power =
        _mm512_add_epi64(_mm512_maskz_cvtepi32_epi64(PWSP_ALL_8, k), _mm512_set1_epi64(1023));
    power = _mm512_maskz_slli_epi64(PWSP_ALL_8, power, 52);
    sum = _mm512_maskz_mul_pd(PWSP_ALL_8, sum, _mm512_castsi512_pd(power));
    _mm256_mask_storeu_ps(numbers, mask, _mm512_maskz_cvtpd_ps(PWSP_ALL_8, sum));
    return true;
}

#endif

PWSP_INTERNAL void pwsp_exp_each(float *x, uint32_t count) {
    uint32_t done = 0;
#if PWSP_X86
    bool is_good = pwsp_cpu_has_avx512();
    while (is_good && count - done >= 4) {  // of fewer, one by one takes no longer
        uint32_t taken = count - done < 8 ? count - done : 8;
        is_good = pwsp_exp_avx512(x + done, taken);
        done += is_good ? taken : 0;
    }
#endif
    for (uint32_t i = done; i < count; i++) {
        x[i] = pwsp_exp(x[i]);
    }
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
