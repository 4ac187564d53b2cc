// f32 vectors of each instruction set: one set of operations under one set of names, so that a loop
// is written once and instantiated for each.
//
//      avx512   16 lanes        neon   4 lanes
//      avx2      8 lanes        c      1 lane, portable C
//
// ptoisa_vec_<set> is the type, PTOISA_LANES_<set> its width, ptoisa_<operation>_<set> an
// operation. All sets compute the same bits: fused multiply-adds are explicit (portable C emulates
// them where the machine has none), and no product feeds a sum that a compiler could fuse by
// itself.
//
// max(a, b) is a where a is NaN or a > b, else b; so a NaN on either side is the result, and of two
// zeros the second is. min is its mirror.
//
// exp(x) = 2^n (1 + r + r^2 q(r)), n = x / ln 2 to nearest, r = x - n ln 2 in two parts, q of
// degree 4 by Remez' exchange for the relative error, 3.1e-9. Measured over all floats: within 0.90
// ulp, results below the normal range included. log(x) = k ln 2 + f - f^2/2 + f^3 q(f), x = 2^k (1
// + f) with 1 + f in [sqrt(1/2), sqrt(2)), q of degree 7 likewise, 5.8e-9. Measured over all
// floats: within 0.94 ulp.

#ifndef PTOISA_VECTOR_H
#define PTOISA_VECTOR_H

#include "simd.h"
#include "tile.h"

// -- portable C: scalars that libm would give -----------------------------------------------------

// a * b + c in double, where the product is exact, rounded to odd: then rounding it to float is
// right (Boldo and Melquiond, Emulation of FMA, 2008).
PTOISA_FN double ptoisa_fma_odd(float a, float b, float c) {
    double product = (double)a * (double)b, sum = product + (double)c;
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if ((bits >> 52 & 0x7ff) == 0x7ff) {
        return sum;
    }
    // The exact rounding error of the sum.
    double part = sum - product, error = (product - (sum - part)) + ((double)c - part);
    if (error != 0 && (bits & 1) == 0) {
        bits += (error > 0) == (sum > 0) ? 1 : (uint64_t)-1;
        memcpy(&sum, &bits, sizeof sum);
    }
    return sum;
}

// a * b + c, rounded once. The sum in double is rounded again, which goes wrong only if the first
// rounding falls on a tie of the second (or below the normal range).
PTOISA_INLINE float ptoisa_fma_c(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    double sum = (double)a * (double)b + (double)c;
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    bool is_tie = (bits & 0x1fffffff) == 0x10000000;
    bool is_small = (bits >> 52 & 0x7ff) < 1023 - 126;
    return (float)(PTOISA_UNLIKELY(is_tie || is_small) ? ptoisa_fma_odd(a, b, c) : sum);
#endif
}

// The square root, correctly rounded: in double, from a first guess by its exponent, by Newton's
// iteration. (The builtin would call libm to set errno.)
PTOISA_INLINE float ptoisa_sqrt_c(float x) {
    if (!(x > 0.0f) || x == __builtin_inff()) {
        return x < 0.0f ? __builtin_nanf("") : x;
    }
    double value = x, root;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits >> 1) + (UINT64_C(1023) << 51);
    memcpy(&root, &bits, sizeof root);
    for (int i = 0; i < 4; i++) {  // the guess is within 6 %: 1.8e-3, 1.6e-6, 1.3e-12, exact
        root = 0.5 * (root + value / root);
    }
    return (float)root;
}

#define PTOISA_LANES_c 1
typedef float ptoisa_vec_c;

#define PTOISA_C_OP(name, params, expression)                                                      \
    PTOISA_INLINE float ptoisa_##name##_c params {                                                 \
        return expression;                                                                         \
    }

// clang-format off
PTOISA_C_OP(all, (float x), x)
PTOISA_C_OP(load, (const float *p), *p)
PTOISA_C_OP(load_n, (const float *p, uint32_t n, float fill), n > 0 ? *p : fill)
PTOISA_C_OP(add, (float a, float b), a + b)
PTOISA_C_OP(sub, (float a, float b), a - b)
PTOISA_C_OP(mul, (float a, float b), a * b)
PTOISA_C_OP(div, (float a, float b), a / b)
PTOISA_C_OP(max, (float a, float b), a > b || a != a ? a : b)
PTOISA_C_OP(min, (float a, float b), a < b || a != a ? a : b)
PTOISA_C_OP(at_least, (float x, float low), low > x ? low : x)
PTOISA_C_OP(at_most, (float x, float high), high < x ? high : x)
PTOISA_C_OP(abs, (float x), ptoisa_f32_from_bits(ptoisa_bits_from_f32(x) & 0x7fffffff))
PTOISA_C_OP(neg, (float x), ptoisa_f32_from_bits(ptoisa_bits_from_f32(x) ^ 0x80000000))
PTOISA_C_OP(if_less, (float a, float b, float x, float y), a < b ? x : y)
// clang-format on

PTOISA_INLINE void ptoisa_store_c(float *p, float x) {
    *p = x;
}

PTOISA_INLINE void ptoisa_store_n_c(float *p, float x, uint32_t n) {
    if (n > 0) {
        *p = x;
    }
}

// p * 2^n in two exact steps and one that rounds; n is an integer from -152 to 130, or NaN if p is.
PTOISA_INLINE float ptoisa_scale_c(float p, float n) {
    uint32_t i = ptoisa_bits_from_f32(n + 0x1.8p23f) - 0x4b400000, half = ((i + 1024) >> 1) - 512;
    return p * ptoisa_f32_from_bits((half + 127) << 23) *
           ptoisa_f32_from_bits((i - half + 127) << 23);
}

// Takes a normal positive x apart: returns k, and m = x / 2^k from sqrt(1/2) up to sqrt(2).
PTOISA_INLINE float ptoisa_split_c(float x, float *m) {
    uint32_t bits = ptoisa_bits_from_f32(x);
    uint32_t k = ((bits - 0x3f3504f3 + 0x40000000) >> 23) - 128;
    *m = ptoisa_f32_from_bits(bits - (k << 23));
    return (float)(int32_t)k;
}

// -- the same on vectors --------------------------------------------------------------------------

#define PTOISA_VECTOR_OP(set, SET, name, params, expression)                                       \
    SET PTOISA_ALWAYS ptoisa_vec_##set ptoisa_##name##_##set params {                              \
        return expression;                                                                         \
    }

#if PTOISA_X86
typedef __m256 ptoisa_vec_avx2;
typedef __m512 ptoisa_vec_avx512;
#define PTOISA_LANES_avx2   8
#define PTOISA_LANES_avx512 16

#define PTOISA_AVX2_OP(name, params, expression)                                                   \
    PTOISA_VECTOR_OP(avx2, PTOISA_AVX2, name, params, expression)

// -1 for lanes below n, 0 above.
PTOISA_AVX2 PTOISA_ALWAYS __m256i ptoisa_mask_avx2(uint32_t n) {
    static const int32_t masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(const void *)(masks + 8 - n));
}

// Where x is NaN: x; else y.
PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_nan_or_avx2(__m256 x, __m256 y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

// clang-format off
PTOISA_AVX2_OP(all, (float x), _mm256_set1_ps(x))
PTOISA_AVX2_OP(load, (const float *p), _mm256_loadu_ps(p))
PTOISA_AVX2_OP(load_n, (const float *p, uint32_t n, float fill),
               _mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(p, ptoisa_mask_avx2(n)),
                                _mm256_castsi256_ps(ptoisa_mask_avx2(n))))
PTOISA_AVX2_OP(add, (__m256 a, __m256 b), _mm256_add_ps(a, b))
PTOISA_AVX2_OP(sub, (__m256 a, __m256 b), _mm256_sub_ps(a, b))
PTOISA_AVX2_OP(mul, (__m256 a, __m256 b), _mm256_mul_ps(a, b))
PTOISA_AVX2_OP(div, (__m256 a, __m256 b), _mm256_div_ps(a, b))
PTOISA_AVX2_OP(fma, (__m256 a, __m256 b, __m256 c), _mm256_fmadd_ps(a, b, c))
PTOISA_AVX2_OP(sqrt, (__m256 x), _mm256_sqrt_ps(x))
PTOISA_AVX2_OP(max, (__m256 a, __m256 b), ptoisa_nan_or_avx2(a, _mm256_max_ps(a, b)))
PTOISA_AVX2_OP(min, (__m256 a, __m256 b), ptoisa_nan_or_avx2(a, _mm256_min_ps(a, b)))
PTOISA_AVX2_OP(at_least, (__m256 x, __m256 low), _mm256_max_ps(low, x))
PTOISA_AVX2_OP(at_most, (__m256 x, __m256 high), _mm256_min_ps(high, x))
PTOISA_AVX2_OP(abs, (__m256 x), _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x))
PTOISA_AVX2_OP(neg, (__m256 x), _mm256_xor_ps(_mm256_set1_ps(-0.0f), x))
PTOISA_AVX2_OP(if_less, (__m256 a, __m256 b, __m256 x, __m256 y),
               _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ)))
PTOISA_AVX2_OP(power, (__m256i n), _mm256_castsi256_ps(
               _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23)))
// clang-format on

PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_store_avx2(float *p, __m256 x) {
    _mm256_storeu_ps(p, x);
}

PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_store_n_avx2(float *p, __m256 x, uint32_t n) {
    _mm256_maskstore_ps(p, ptoisa_mask_avx2(n), x);
}

PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_scale_avx2(__m256 p, __m256 n) {
    __m256i i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1);
    return _mm256_mul_ps(_mm256_mul_ps(p, ptoisa_power_avx2(half)),
                         ptoisa_power_avx2(_mm256_sub_epi32(i, half)));
}

PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_split_avx2(__m256 x, __m256 *m) {
    __m256i bits = _mm256_castps_si256(x);
    __m256i k = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
    *m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(k, 23)));
    return _mm256_cvtepi32_ps(k);
}

#define PTOISA_AVX512_OP(name, params, expression)                                                 \
    PTOISA_VECTOR_OP(avx512, PTOISA_AVX512, name, params, expression)

PTOISA_AVX512 PTOISA_ALWAYS __mmask16 ptoisa_mask_avx512(uint32_t n) {
    return (__mmask16)((1u << n) - 1);
}

// clang-format off
PTOISA_AVX512_OP(all, (float x), _mm512_set1_ps(x))
PTOISA_AVX512_OP(load, (const float *p), _mm512_loadu_ps(p))
PTOISA_AVX512_OP(load_n, (const float *p, uint32_t n, float fill),
                 _mm512_mask_loadu_ps(_mm512_set1_ps(fill), ptoisa_mask_avx512(n), p))
PTOISA_AVX512_OP(add, (__m512 a, __m512 b), _mm512_add_ps(a, b))
PTOISA_AVX512_OP(sub, (__m512 a, __m512 b), _mm512_sub_ps(a, b))
PTOISA_AVX512_OP(mul, (__m512 a, __m512 b), _mm512_mul_ps(a, b))
PTOISA_AVX512_OP(div, (__m512 a, __m512 b), _mm512_div_ps(a, b))
PTOISA_AVX512_OP(fma, (__m512 a, __m512 b, __m512 c), _mm512_fmadd_ps(a, b, c))
PTOISA_AVX512_OP(sqrt, (__m512 x), _mm512_maskz_sqrt_ps(PTOISA_ALL_16, x))
PTOISA_AVX512_OP(max, (__m512 a, __m512 b),
                 _mm512_mask_max_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b))
PTOISA_AVX512_OP(min, (__m512 a, __m512 b),
                 _mm512_mask_min_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b))
PTOISA_AVX512_OP(at_least, (__m512 x, __m512 low), _mm512_maskz_max_ps(PTOISA_ALL_16, low, x))
PTOISA_AVX512_OP(at_most, (__m512 x, __m512 high), _mm512_maskz_min_ps(PTOISA_ALL_16, high, x))
PTOISA_AVX512_OP(abs, (__m512 x), _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x))
PTOISA_AVX512_OP(neg, (__m512 x), _mm512_xor_ps(_mm512_set1_ps(-0.0f), x))
PTOISA_AVX512_OP(if_less, (__m512 a, __m512 b, __m512 x, __m512 y),
                 _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), x))
PTOISA_AVX512_OP(scale, (__m512 p, __m512 n), _mm512_maskz_scalef_ps(PTOISA_ALL_16, p, n))
// clang-format on

PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_store_avx512(float *p, __m512 x) {
    _mm512_storeu_ps(p, x);
}

PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_store_n_avx512(float *p, __m512 x, uint32_t n) {
    _mm512_mask_storeu_ps(p, ptoisa_mask_avx512(n), x);
}

PTOISA_AVX512 PTOISA_ALWAYS __m512 ptoisa_split_avx512(__m512 x, __m512 *m) {
    __m512i bits = _mm512_castps_si512(x);
    __m512i k = _mm512_maskz_srai_epi32(PTOISA_ALL_16,
                                        _mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f3504f3)), 23);
    *m = _mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_maskz_slli_epi32(PTOISA_ALL_16, k, 23)));
    return _mm512_maskz_cvtepi32_ps(PTOISA_ALL_16, k);
}
#endif

#if PTOISA_NEON
typedef float32x4_t ptoisa_vec_neon;
#define PTOISA_LANES_neon 4

#define PTOISA_NEON_OP(name, params, expression) PTOISA_VECTOR_OP(neon, , name, params, expression)

PTOISA_ALWAYS uint32x4_t ptoisa_nan_mask_neon(float32x4_t x) {
    return vmvnq_u32(vceqq_f32(x, x));
}

// clang-format off
PTOISA_NEON_OP(all, (float x), vdupq_n_f32(x))
PTOISA_NEON_OP(load, (const float *p), vld1q_f32(p))
PTOISA_NEON_OP(add, (float32x4_t a, float32x4_t b), vaddq_f32(a, b))
PTOISA_NEON_OP(sub, (float32x4_t a, float32x4_t b), vsubq_f32(a, b))
PTOISA_NEON_OP(mul, (float32x4_t a, float32x4_t b), vmulq_f32(a, b))
PTOISA_NEON_OP(div, (float32x4_t a, float32x4_t b), vdivq_f32(a, b))
PTOISA_NEON_OP(fma, (float32x4_t a, float32x4_t b, float32x4_t c), vfmaq_f32(c, a, b))
PTOISA_NEON_OP(sqrt, (float32x4_t x), vsqrtq_f32(x))
PTOISA_NEON_OP(max, (float32x4_t a, float32x4_t b),
               vbslq_f32(vorrq_u32(vcgtq_f32(a, b), ptoisa_nan_mask_neon(a)), a, b))
PTOISA_NEON_OP(min, (float32x4_t a, float32x4_t b),
               vbslq_f32(vorrq_u32(vcltq_f32(a, b), ptoisa_nan_mask_neon(a)), a, b))
PTOISA_NEON_OP(at_least, (float32x4_t x, float32x4_t low), vbslq_f32(vcgtq_f32(low, x), low, x))
PTOISA_NEON_OP(at_most, (float32x4_t x, float32x4_t high), vbslq_f32(vcltq_f32(high, x), high, x))
PTOISA_NEON_OP(abs, (float32x4_t x), vabsq_f32(x))
PTOISA_NEON_OP(neg, (float32x4_t x), vnegq_f32(x))
PTOISA_NEON_OP(if_less, (float32x4_t a, float32x4_t b, float32x4_t x, float32x4_t y),
               vbslq_f32(vcltq_f32(a, b), x, y))
PTOISA_NEON_OP(power, (int32x4_t n),
               vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23)))
// clang-format on

PTOISA_ALWAYS float32x4_t ptoisa_load_n_neon(const float *p, uint32_t n, float fill) {
    float lanes[4] = {fill, fill, fill, fill};
    for (uint32_t i = 0; i < n; i++) {
        lanes[i] = p[i];
    }
    return vld1q_f32(lanes);
}

PTOISA_ALWAYS void ptoisa_store_neon(float *p, float32x4_t x) {
    vst1q_f32(p, x);
}

PTOISA_ALWAYS void ptoisa_store_n_neon(float *p, float32x4_t x, uint32_t n) {
    float lanes[4];
    vst1q_f32(lanes, x);
    for (uint32_t i = 0; i < n; i++) {
        p[i] = lanes[i];
    }
}

PTOISA_ALWAYS float32x4_t ptoisa_scale_neon(float32x4_t p, float32x4_t n) {
    int32x4_t i = vcvtq_s32_f32(n), half = vshrq_n_s32(i, 1);
    return vmulq_f32(vmulq_f32(p, ptoisa_power_neon(half)), ptoisa_power_neon(vsubq_s32(i, half)));
}

PTOISA_ALWAYS float32x4_t ptoisa_split_neon(float32x4_t x, float32x4_t *m) {
    int32x4_t bits = vreinterpretq_s32_f32(x);
    int32x4_t k = vshrq_n_s32(vsubq_s32(bits, vdupq_n_s32(0x3f3504f3)), 23);
    *m = vreinterpretq_f32_s32(vsubq_s32(bits, vshlq_n_s32(k, 23)));
    return vcvtq_f32_s32(k);
}
#endif

// -- exp and log, of the operations above ---------------------------------------------------------

// exp: below -104 the result is 0, above 89 infinite; a NaN passes both bounds. The magic number
// 1.5 * 2^23 leaves an integer in the last bits of a sum, rounded to nearest.
// log: x below the normal range is scaled up first; zero, negative and non-finite x come last.
#define PTOISA_DEFINE_MATH(set, SET, FN)                                                           \
    SET FN ptoisa_vec_##set ptoisa_exp_##set(ptoisa_vec_##set x) {                                 \
        const ptoisa_vec_##set magic = ptoisa_all_##set(0x1.8p23f), one = ptoisa_all_##set(1.0f);  \
        x = ptoisa_at_least_##set(x, ptoisa_all_##set(-104.0f));                                   \
        x = ptoisa_at_most_##set(x, ptoisa_all_##set(89.0f));                                      \
        ptoisa_vec_##set n =                                                                       \
            ptoisa_sub_##set(ptoisa_fma_##set(x, ptoisa_all_##set(0x1.715476p+0f), magic), magic); \
        ptoisa_vec_##set r = ptoisa_fma_##set(n, ptoisa_all_##set(-0x1.62e43p-1f), x);             \
        r = ptoisa_fma_##set(n, ptoisa_all_##set(0x1.05c610p-29f), r);                             \
        ptoisa_vec_##set p = ptoisa_all_##set(0x1.6a242cp-10f);                                    \
        p = ptoisa_fma_##set(p, r, ptoisa_all_##set(0x1.1239e2p-7f));                              \
        p = ptoisa_fma_##set(p, r, ptoisa_all_##set(0x1.5558f2p-5f));                              \
        p = ptoisa_fma_##set(p, r, ptoisa_all_##set(0x1.555492p-3f));                              \
        p = ptoisa_fma_##set(p, r, ptoisa_all_##set(0x1.fffffcp-2f));                              \
        p = ptoisa_fma_##set(ptoisa_fma_##set(p, r, one), r, one);                                 \
        return ptoisa_scale_##set(p, n);                                                           \
    }                                                                                              \
                                                                                                   \
    SET FN ptoisa_vec_##set ptoisa_log_##set(ptoisa_vec_##set x) {                                 \
        const ptoisa_vec_##set zero = ptoisa_all_##set(0.0f), low = ptoisa_all_##set(0x1p-126f);   \
        const ptoisa_vec_##set infinity = ptoisa_all_##set(__builtin_inff());                      \
        ptoisa_vec_##set m, scaled = ptoisa_mul_##set(x, ptoisa_all_##set(0x1p23f));               \
        ptoisa_vec_##set k = ptoisa_split_##set(ptoisa_if_less_##set(x, low, scaled, x), &m);      \
        k = ptoisa_add_##set(k, ptoisa_if_less_##set(x, low, ptoisa_all_##set(-23.0f), zero));     \
        ptoisa_vec_##set f = ptoisa_sub_##set(m, ptoisa_all_##set(1.0f));                          \
        ptoisa_vec_##set q = ptoisa_all_##set(-0x1.38b240p-4f);                                    \
        q = ptoisa_fma_##set(q, f, ptoisa_all_##set(0x1.055c70p-3f));                              \
        q = ptoisa_fma_##set(q, f, ptoisa_all_##set(-0x1.0d8654p-3f));                             \
        q = ptoisa_fma_##set(q, f, ptoisa_all_##set(0x1.22da10p-3f));                              \
        q = ptoisa_fma_##set(q, f, ptoisa_all_##set(-0x1.54722ap-3f));                             \
        q = ptoisa_fma_##set(q, f, ptoisa_all_##set(0x1.99a008p-3f));                              \
        q = ptoisa_fma_##set(q, f, ptoisa_all_##set(-0x1.000228p-2f));                             \
        q = ptoisa_fma_##set(q, f, ptoisa_all_##set(0x1.555554p-2f));                              \
        q = ptoisa_fma_##set(q, f, ptoisa_all_##set(-0.5f));                                       \
        ptoisa_vec_##set square = ptoisa_mul_##set(f, f);                                          \
        q = ptoisa_fma_##set(q, square, f);                                                        \
        q = ptoisa_fma_##set(k, ptoisa_all_##set(-0x1.05c610p-29f), q);                            \
        q = ptoisa_fma_##set(k, ptoisa_all_##set(0x1.62e43p-1f), q);                               \
        q = ptoisa_if_less_##set(x, infinity, q, x);                                               \
        q = ptoisa_if_less_##set(x, ptoisa_all_##set(0x1p-149f), ptoisa_neg_##set(infinity), q);   \
        return ptoisa_if_less_##set(x, zero, ptoisa_all_##set(__builtin_nanf("")), q);             \
    }

PTOISA_DEFINE_MATH(c, , PTOISA_FN PTOISA_ONCE)
#if PTOISA_X86
PTOISA_DEFINE_MATH(avx2, PTOISA_AVX2, PTOISA_ALWAYS)
PTOISA_DEFINE_MATH(avx512, PTOISA_AVX512, PTOISA_ALWAYS)
#endif
#if PTOISA_NEON
PTOISA_DEFINE_MATH(neon, , PTOISA_ALWAYS)
#endif

#endif
