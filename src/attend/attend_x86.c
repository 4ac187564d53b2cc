// The loops of attend_body.h with AVX2 and with AVX-512. Every processor with AVX2 has F16C.

#include "attend_simd.h"

#if PWSP_X86

// -- AVX2 ------------------------------------------------------------------------------------------

#define PWSP_ATTEND_AVX2 __attribute__((target("avx2,fma,f16c")))

PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE __m256 pwsp_attend_avx2_exp(__m256 x) {
    __m256 is_kept = _mm256_cmp_ps(x, _mm256_set1_ps(PWSP_EXP_LOWEST), _CMP_NLT_UQ);  // or NaN
    __m256 round = _mm256_set1_ps(PWSP_EXP_ROUND);
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(PWSP_EXP_LOG2E), round);
    __m256 r = _mm256_fnmadd_ps(_mm256_sub_ps(shifted, round), _mm256_set1_ps(PWSP_EXP_LN2), x);
    __m256 p = _mm256_set1_ps(PWSP_EXP_C7);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PWSP_EXP_C6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PWSP_EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PWSP_EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PWSP_EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PWSP_EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    __m256i n = _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127));
    __m256i power = _mm256_slli_epi32(n, 23);
    return _mm256_and_ps(is_kept, _mm256_mul_ps(p, _mm256_castsi256_ps(power)));
}

PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE __m256 pwsp_attend_avx2_load_f16(const char *at) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
}

PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE __m256 pwsp_attend_avx2_load_bf16(const char *at) {
    __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)at);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE __m256 pwsp_attend_avx2_load_i8(const char *at) {
    __m128i values = _mm_loadl_epi64((const __m128i *)(const void *)at);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(values));
}

// Memory as operand saves the shuffle that a conversion in registers has.
PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE __m256 pwsp_attend_avx2_set_f16(const char *at) {
    return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}

PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE __m256 pwsp_attend_avx2_reduce4(__m256 a, __m256 b, __m256 c,
                                                                   __m256 d) {
    __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    return _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
}

PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE float pwsp_attend_avx2_fold_add(__m256 a) {
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE float pwsp_attend_avx2_fold_max(__m256 a) {
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

PWSP_ATTEND_AVX2 PWSP_FORCE_INLINE __m256 pwsp_attend_avx2_copysign(__m256 a, __m256 b) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, b));
}

#define PWSP_V_NAME(x)             pwsp_attend_avx2_##x
#define PWSP_V_TARGET              PWSP_ATTEND_AVX2
#define PWSP_V                     __m256
#define PWSP_V_LANES               8
#define PWSP_V_SCORE_ROWS          2
#define PWSP_V_VALUE_ROWS          6
#define PWSP_V_TYPE_ROWS           PWSP_ATTEND_TYPED
#define PWSP_V_UNROLL              PWSP_UNROLL
#define PWSP_V_VALUE_VECTORS       12
#define PWSP_V_LOAD(p)             _mm256_loadu_ps(p)
#define PWSP_V_LOAD_F16(p)         pwsp_attend_avx2_load_f16(p)
#define PWSP_V_LOAD_BF16(p)        pwsp_attend_avx2_load_bf16(p)
#define PWSP_V_LOAD_I8(p)          pwsp_attend_avx2_load_i8(p)
#define PWSP_V_STORE(p, a)         _mm256_storeu_ps(p, a)
#define PWSP_V_SET(x)              _mm256_set1_ps(x)
#define PWSP_V_SET_F16(p)          pwsp_attend_avx2_set_f16(p)
#define PWSP_V_STORE_QUAD(p, a)    _mm_storeu_ps(p, _mm256_castps256_ps128(a))
#define PWSP_V_SET_QUAD(p)         _mm256_broadcast_ps((const __m128 *)(const void *)(p))
#define PWSP_V_FMA(a, b, c)        _mm256_fmadd_ps(a, b, c)
#define PWSP_V_MUL(a, b)           _mm256_mul_ps(a, b)
#define PWSP_V_ADD(a, b)           _mm256_add_ps(a, b)
#define PWSP_V_SUB(a, b)           _mm256_sub_ps(a, b)
#define PWSP_V_DIV(a, b)           _mm256_div_ps(a, b)
#define PWSP_V_MAX(a, b)           _mm256_max_ps(a, b)
#define PWSP_V_FIRST(a)            _mm256_cvtss_f32(a)
#define PWSP_V_COPYSIGN(a, b)      pwsp_attend_avx2_copysign(a, b)
#define PWSP_V_REDUCE4(a, b, c, d) pwsp_attend_avx2_reduce4(a, b, c, d)
#define PWSP_V_FOLD_MAX(a)         pwsp_attend_avx2_fold_max(a)
#define PWSP_V_FOLD_ADD(a)         pwsp_attend_avx2_fold_add(a)
#define PWSP_V_EXP(a)              pwsp_attend_avx2_exp(a)
#include "attend_body.h"

PWSP_INTERNAL void pwsp_attend_avx2(pwsp_attend_variant *out) {
    pwsp_attend_avx2_fill("avx2", out);
}

#define PWSP_ALL_16 ((__mmask16)0xffff)  // as PWSP_ALL_8

// -- AVX-512 ---------------------------------------------------------------------------------------

#define PWSP_ATTEND_AVX512                                                                         \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE __m512 pwsp_attend_avx512_exp(__m512 x) {
    __mmask16 is_kept =
        _mm512_cmp_ps_mask(x, _mm512_set1_ps(PWSP_EXP_LOWEST), _CMP_NLT_UQ);  // or NaN
    __m512 round = _mm512_set1_ps(PWSP_EXP_ROUND);
    __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(PWSP_EXP_LOG2E), round), round);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(PWSP_EXP_LN2), x);
    __m512 p = _mm512_set1_ps(PWSP_EXP_C7);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PWSP_EXP_C6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PWSP_EXP_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PWSP_EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PWSP_EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PWSP_EXP_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_maskz_scalef_ps(is_kept, p, n);
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE __m512 pwsp_attend_avx512_load_f16(const char *at) {
    return _mm512_maskz_cvtph_ps(PWSP_ALL_16,
                                 _mm256_loadu_si256((const __m256i *)(const void *)at));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE __m512 pwsp_attend_avx512_load_bf16(const char *at) {
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)at);
    return _mm512_castsi512_ps(
        _mm512_maskz_slli_epi32(PWSP_ALL_16, _mm512_maskz_cvtepu16_epi32(PWSP_ALL_16, bits), 16));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE __m512 pwsp_attend_avx512_load_i8(const char *at) {
    __m128i values = _mm_loadu_si128((const __m128i *)(const void *)at);
    return _mm512_maskz_cvtepi32_ps(PWSP_ALL_16, _mm512_maskz_cvtepi8_epi32(PWSP_ALL_16, values));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE __m512 pwsp_attend_avx512_set_f16(const char *at) {
    return _mm512_maskz_broadcastss_ps(
        PWSP_ALL_16, _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE void pwsp_attend_avx512_quads_f32(const char *const *from,
                                                                       size_t at, char *to) {
    __m512 a = _mm512_loadu_ps(from[0] + at), b = _mm512_loadu_ps(from[1] + at);
    __m512 c = _mm512_loadu_ps(from[2] + at), d = _mm512_loadu_ps(from[3] + at);
    __m512 ab_low = _mm512_maskz_shuffle_f32x4(PWSP_ALL_16, a, b, 0x44),
           ab_high = _mm512_maskz_shuffle_f32x4(PWSP_ALL_16, a, b, 0xee);
    __m512 cd_low = _mm512_maskz_shuffle_f32x4(PWSP_ALL_16, c, d, 0x44),
           cd_high = _mm512_maskz_shuffle_f32x4(PWSP_ALL_16, c, d, 0xee);
    _mm512_storeu_ps(to, _mm512_maskz_shuffle_f32x4(PWSP_ALL_16, ab_low, cd_low, 0x88));
    _mm512_storeu_ps(to + 256, _mm512_maskz_shuffle_f32x4(PWSP_ALL_16, ab_low, cd_low, 0xdd));
    _mm512_storeu_ps(to + 512, _mm512_maskz_shuffle_f32x4(PWSP_ALL_16, ab_high, cd_high, 0x88));
    _mm512_storeu_ps(to + 768, _mm512_maskz_shuffle_f32x4(PWSP_ALL_16, ab_high, cd_high, 0xdd));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE __m128i pwsp_attend_avx512_load_16(const char *at) {
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

// A quad is 8 bytes. Memory as operand saves a shuffle.
PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE void pwsp_attend_avx512_quads_half(const char *const *from,
                                                                        size_t at, char *to) {
    PWSP_UNROLL for (size_t i = 0; i < 2; i++, at += 16, to += 256) {
        const __m256i ac = _mm256_inserti128_si256(
            _mm256_castsi128_si256(pwsp_attend_avx512_load_16(from[0] + at)),
            pwsp_attend_avx512_load_16(from[2] + at), 1);
        const __m256i bd = _mm256_inserti128_si256(
            _mm256_castsi128_si256(pwsp_attend_avx512_load_16(from[1] + at)),
            pwsp_attend_avx512_load_16(from[3] + at), 1);
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_unpacklo_epi64(ac, bd));
        _mm256_storeu_si256((__m256i *)(void *)(to + 128), _mm256_unpackhi_epi64(ac, bd));
    }
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE void pwsp_attend_avx512_store_16(char *to, __m128i a) {
    _mm_storeu_si128((__m128i *)(void *)to, a);
}

// A quad is 4 bytes.
PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE void pwsp_attend_avx512_quads_i8(const char *const *from,
                                                                      size_t at, char *to) {
    const __m128i a = pwsp_attend_avx512_load_16(from[0] + at),
                  b = pwsp_attend_avx512_load_16(from[1] + at);
    const __m128i c = pwsp_attend_avx512_load_16(from[2] + at),
                  d = pwsp_attend_avx512_load_16(from[3] + at);
    const __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
    const __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
    pwsp_attend_avx512_store_16(to, _mm_unpacklo_epi64(ab_low, cd_low));
    pwsp_attend_avx512_store_16(to + 64, _mm_unpackhi_epi64(ab_low, cd_low));
    pwsp_attend_avx512_store_16(to + 128, _mm_unpacklo_epi64(ab_high, cd_high));
    pwsp_attend_avx512_store_16(to + 192, _mm_unpackhi_epi64(ab_high, cd_high));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE __m512 pwsp_attend_avx512_reduce4(__m512 a, __m512 b, __m512 c,
                                                                       __m512 d) {
    __m512 ab = _mm512_add_ps(_mm512_maskz_unpacklo_ps(PWSP_ALL_16, a, b),
                              _mm512_maskz_unpackhi_ps(PWSP_ALL_16, a, b));
    __m512 cd = _mm512_add_ps(_mm512_maskz_unpacklo_ps(PWSP_ALL_16, c, d),
                              _mm512_maskz_unpackhi_ps(PWSP_ALL_16, c, d));
    return _mm512_add_ps(_mm512_maskz_shuffle_ps(PWSP_ALL_16, ab, cd, 0x44),
                         _mm512_maskz_shuffle_ps(PWSP_ALL_16, ab, cd, 0xee));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE float pwsp_attend_avx512_fold_add(__m512 a) {
    __m256 high = _mm512_maskz_extractf32x8_ps(PWSP_ALL_8, a, 1);
    return pwsp_attend_avx2_fold_add(
        _mm256_add_ps(_mm512_maskz_extractf32x8_ps(PWSP_ALL_8, a, 0), high));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE float pwsp_attend_avx512_fold_max(__m512 a) {
    __m256 high = _mm512_maskz_extractf32x8_ps(PWSP_ALL_8, a, 1);
    return pwsp_attend_avx2_fold_max(
        _mm256_max_ps(_mm512_maskz_extractf32x8_ps(PWSP_ALL_8, a, 0), high));
}

PWSP_ATTEND_AVX512 PWSP_FORCE_INLINE __m512 pwsp_attend_avx512_copysign(__m512 a, __m512 b) {
    __m512 sign = _mm512_set1_ps(-0.0f);
    return _mm512_maskz_or_ps(PWSP_ALL_16, _mm512_maskz_andnot_ps(PWSP_ALL_16, sign, a),
                              _mm512_maskz_and_ps(PWSP_ALL_16, sign, b));
}

#define PWSP_V_HALF(x)                           pwsp_attend_avx2_##x
#define PWSP_V_NAME(x)                           pwsp_attend_avx512_##x
#define PWSP_V_TARGET                            PWSP_ATTEND_AVX512
#define PWSP_V                                   __m512
#define PWSP_V_LANES                             16
#define PWSP_V_SCORE_ROWS                        6
#define PWSP_V_VALUE_ROWS                        6
#define PWSP_V_TYPE_ROWS                         PWSP_ATTEND_TYPED
#define PWSP_V_UNROLL                            PWSP_UNROLL
#define PWSP_V_VALUE_VECTORS                     24
#define PWSP_V_LOAD(p)                           _mm512_loadu_ps(p)
#define PWSP_V_LOAD_F16(p)                       pwsp_attend_avx512_load_f16(p)
#define PWSP_V_LOAD_BF16(p)                      pwsp_attend_avx512_load_bf16(p)
#define PWSP_V_LOAD_I8(p)                        pwsp_attend_avx512_load_i8(p)
#define PWSP_V_STORE(p, a)                       _mm512_storeu_ps(p, a)
#define PWSP_V_SET(x)                            _mm512_set1_ps(x)
#define PWSP_V_SET_F16(p)                        pwsp_attend_avx512_set_f16(p)
#define PWSP_V_STORE_QUAD(p, a)                  _mm_storeu_ps(p, _mm512_castps512_ps128(a))
#define PWSP_V_SET_QUAD(p)                       _mm512_maskz_broadcast_f32x4(PWSP_ALL_16, _mm_loadu_ps(p))
#define PWSP_V_FMA(a, b, c)                      _mm512_fmadd_ps(a, b, c)
#define PWSP_V_MUL(a, b)                         _mm512_mul_ps(a, b)
#define PWSP_V_ADD(a, b)                         _mm512_add_ps(a, b)
#define PWSP_V_SUB(a, b)                         _mm512_sub_ps(a, b)
#define PWSP_V_DIV(a, b)                         _mm512_div_ps(a, b)
#define PWSP_V_MAX(a, b)                         _mm512_maskz_max_ps(PWSP_ALL_16, a, b)
#define PWSP_V_FIRST(a)                          _mm512_cvtss_f32(a)
#define PWSP_V_COPYSIGN(a, b)                    pwsp_attend_avx512_copysign(a, b)
#define PWSP_V_REDUCE4(a, b, c, d)               pwsp_attend_avx512_reduce4(a, b, c, d)
#define PWSP_V_PACK_16_F32(from, at, bytes, to)  pwsp_attend_avx512_quads_f32(from, at, to)
#define PWSP_V_PACK_16_HALF(from, at, bytes, to) pwsp_attend_avx512_quads_half(from, at, to)
#define PWSP_V_PACK_16_I8(from, at, bytes, to)   pwsp_attend_avx512_quads_i8(from, at, to)
#define PWSP_V_FOLD_MAX(a)                       pwsp_attend_avx512_fold_max(a)
#define PWSP_V_FOLD_ADD(a)                       pwsp_attend_avx512_fold_add(a)
#define PWSP_V_EXP(a)                            pwsp_attend_avx512_exp(a)
#include "attend_body.h"

PWSP_INTERNAL void pwsp_attend_avx512(pwsp_attend_variant *out) {
    pwsp_attend_avx512_fill("avx512", out);
}

#endif
