// Vectors for the loops of attention_body.h: portable ones, AVX-512, AVX2 and NEON. Included by
// attention.c alone.

#if defined(__GNUC__)
#define FORCE_INLINE static inline __attribute__((always_inline))
#define NOINLINE     __attribute__((noinline))
#define PREFETCH(p)  __builtin_prefetch(p, 0, 2)  // to the second level
#else
#define FORCE_INLINE static inline
#define NOINLINE
#define PREFETCH(p) ((void)(p))
#endif

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

#if defined(__GNUC__) && defined(__x86_64__) && !defined(PTOWSP_NO_SIMD)
#define ATTENTION_X86 1
#include <immintrin.h>
#else
#define ATTENTION_X86 0
#endif

#if defined(__GNUC__) && defined(__aarch64__) && !defined(PTOWSP_NO_SIMD)
#define ATTENTION_NEON 1
#include <arm_neon.h>
#else
#define ATTENTION_NEON 0
#endif

// e^x for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor series of e^r to r^7 (remainder
// below 6e-9), times 2^n. Adding EXP_ROUND rounds to a whole number, which is then in the low bits of
// the sum. n ln 2 is off by n * 2e-9, and n matters only where the result is large.
#define EXP_LOWEST -87.0f
#define EXP_LOG2E  1.44269504f
#define EXP_LN2    0.693147181f
#define EXP_ROUND  12582912.0f  // 1.5 * 2^23
#define EXP_C7     (1.0f / 5040.0f)
#define EXP_C6     (1.0f / 720.0f)
#define EXP_C5     (1.0f / 120.0f)
#define EXP_C4     (1.0f / 24.0f)
#define EXP_C3     (1.0f / 6.0f)
#define EXP_C2     0.5f

// -- portable -------------------------------------------------------------------------------------

#if !ATTENTION_NEON  // arm64 always has NEON

typedef struct attention_floats {
    float x[4];
} attention_floats;

#define EACH(expression)                                                                           \
    attention_floats out;                                                                          \
    for (size_t i = 0; i < 4; i++) {                                                               \
        out.x[i] = (expression);                                                                   \
    }                                                                                              \
    return out

FORCE_INLINE attention_floats attention_portable_load(const float *p) {
    EACH(p[i]);
}

FORCE_INLINE void attention_portable_store(float *p, attention_floats a) {
    for (size_t i = 0; i < 4; i++) {
        p[i] = a.x[i];
    }
}

FORCE_INLINE attention_floats attention_portable_set(float value) {
    EACH(value);
}

FORCE_INLINE attention_floats attention_portable_fma(attention_floats a, attention_floats b,
                                                     attention_floats c) {
    EACH(a.x[i] * b.x[i] + c.x[i]);
}

FORCE_INLINE attention_floats attention_portable_mul(attention_floats a, attention_floats b) {
    EACH(a.x[i] * b.x[i]);
}

FORCE_INLINE attention_floats attention_portable_add(attention_floats a, attention_floats b) {
    EACH(a.x[i] + b.x[i]);
}

FORCE_INLINE attention_floats attention_portable_sub(attention_floats a, attention_floats b) {
    EACH(a.x[i] - b.x[i]);
}

FORCE_INLINE attention_floats attention_portable_div(attention_floats a, attention_floats b) {
    EACH(a.x[i] / b.x[i]);
}

FORCE_INLINE attention_floats attention_portable_max(attention_floats a, attention_floats b) {
    EACH(a.x[i] > b.x[i] ? a.x[i] : b.x[i]);
}

FORCE_INLINE attention_floats attention_portable_copysign(attention_floats a, attention_floats b) {
    EACH(copysignf(a.x[i], b.x[i]));
}

FORCE_INLINE attention_floats attention_portable_exp(attention_floats a) {
    EACH(a.x[i] < EXP_LOWEST ? 0.0f : expf(a.x[i]));
}

FORCE_INLINE attention_floats attention_portable_load_f16(const char *at) {
    uint16_t bits[4];
    memcpy(bits, at, sizeof bits);
    EACH(attention_f32_from_f16(bits[i]));
}

FORCE_INLINE attention_floats attention_portable_load_bf16(const char *at) {
    uint16_t bits[4];
    memcpy(bits, at, sizeof bits);
    EACH(attention_f32_from_bf16(bits[i]));
}

FORCE_INLINE attention_floats attention_portable_load_i8(const char *at) {
    int8_t values[4];
    memcpy(values, at, sizeof values);
    EACH((float)values[i]);
}

FORCE_INLINE float attention_portable_sum(attention_floats a) {
    return (a.x[0] + a.x[2]) + (a.x[1] + a.x[3]);
}

FORCE_INLINE float attention_portable_top(attention_floats a) {
    float low = a.x[0] > a.x[1] ? a.x[0] : a.x[1], high = a.x[2] > a.x[3] ? a.x[2] : a.x[3];
    return low > high ? low : high;
}

FORCE_INLINE attention_floats attention_portable_reduce4(attention_floats a, attention_floats b,
                                                         attention_floats c, attention_floats d) {
    attention_floats out = {{attention_portable_sum(a), attention_portable_sum(b),
                             attention_portable_sum(c), attention_portable_sum(d)}};
    return out;
}
#undef EACH

#define NAME(x)      attention_portable_##x
#define VARIANT_NAME "portable"
#define TARGET
#define V                   attention_floats
#define W                   4
#define SCORE_ROWS          2
#define VALUE_VECTORS       8
#define LOAD(p)             attention_portable_load(p)
#define LOAD_F16(p)         attention_portable_load_f16(p)
#define LOAD_BF16(p)        attention_portable_load_bf16(p)
#define LOAD_I8(p)          attention_portable_load_i8(p)
#define STORE(p, a)         attention_portable_store(p, a)
#define SET(x)              attention_portable_set(x)
#define SET_QUAD(p)         attention_portable_load(p)
#define FMA(a, b, c)        attention_portable_fma(a, b, c)
#define MUL(a, b)           attention_portable_mul(a, b)
#define ADD(a, b)           attention_portable_add(a, b)
#define SUB(a, b)           attention_portable_sub(a, b)
#define DIV(a, b)           attention_portable_div(a, b)
#define MAX(a, b)           attention_portable_max(a, b)
#define FIRST(a)            ((a).x[0])
#define COPYSIGN(a, b)      attention_portable_copysign(a, b)
#define REDUCE4(a, b, c, d) attention_portable_reduce4(a, b, c, d)
#define FOLD_MAX(a)         attention_portable_top(a)
#define FOLD_ADD(a)         attention_portable_sum(a)
#define EXP(a)              attention_portable_exp(a)
#include "attention_body.h"
#endif

#if ATTENTION_X86

// -- AVX-512 --------------------------------------------------------------------------------------

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))

AVX512 FORCE_INLINE __m512 attention_avx512_exp(__m512 x) {
    __mmask16 is_kept = _mm512_cmp_ps_mask(x, _mm512_set1_ps(EXP_LOWEST), _CMP_NLT_UQ);  // or NaN
    __m512 round = _mm512_set1_ps(EXP_ROUND);
    __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(EXP_LOG2E), round), round);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2), x);
    __m512 p = _mm512_set1_ps(EXP_C7);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_maskz_scalef_ps(is_kept, p, n);
}

AVX512 FORCE_INLINE __m512 attention_avx512_load_f16(const char *at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

AVX512 FORCE_INLINE __m512 attention_avx512_load_bf16(const char *at) {
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)at);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

AVX512 FORCE_INLINE __m512 attention_avx512_load_i8(const char *at) {
    __m128i values = _mm_loadu_si128((const __m128i *)(const void *)at);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(values));
}

AVX512 FORCE_INLINE void attention_avx512_quads_f32(const char *const *from, size_t at, char *to) {
    __m512 a = _mm512_loadu_ps(from[0] + at), b = _mm512_loadu_ps(from[1] + at);
    __m512 c = _mm512_loadu_ps(from[2] + at), d = _mm512_loadu_ps(from[3] + at);
    __m512 ab_low = _mm512_shuffle_f32x4(a, b, 0x44), ab_high = _mm512_shuffle_f32x4(a, b, 0xee);
    __m512 cd_low = _mm512_shuffle_f32x4(c, d, 0x44), cd_high = _mm512_shuffle_f32x4(c, d, 0xee);
    _mm512_storeu_ps(to, _mm512_shuffle_f32x4(ab_low, cd_low, 0x88));
    _mm512_storeu_ps(to + 256, _mm512_shuffle_f32x4(ab_low, cd_low, 0xdd));
    _mm512_storeu_ps(to + 512, _mm512_shuffle_f32x4(ab_high, cd_high, 0x88));
    _mm512_storeu_ps(to + 768, _mm512_shuffle_f32x4(ab_high, cd_high, 0xdd));
}

AVX512 FORCE_INLINE __m256i attention_avx512_load_32(const char *at) {
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

AVX512 FORCE_INLINE void attention_avx512_store_32(char *to, __m256i a) {
    _mm256_storeu_si256((__m256i *)(void *)to, a);
}

// A quad is 8 bytes.
AVX512 FORCE_INLINE void attention_avx512_quads_half(const char *const *from, size_t at, char *to) {
    __m256i a = attention_avx512_load_32(from[0] + at), b = attention_avx512_load_32(from[1] + at);
    __m256i c = attention_avx512_load_32(from[2] + at), d = attention_avx512_load_32(from[3] + at);
    __m256i ab_even = _mm256_unpacklo_epi64(a, b), ab_odd = _mm256_unpackhi_epi64(a, b);
    __m256i cd_even = _mm256_unpacklo_epi64(c, d), cd_odd = _mm256_unpackhi_epi64(c, d);
    attention_avx512_store_32(to, _mm256_permute2x128_si256(ab_even, cd_even, 0x20));
    attention_avx512_store_32(to + 128, _mm256_permute2x128_si256(ab_odd, cd_odd, 0x20));
    attention_avx512_store_32(to + 256, _mm256_permute2x128_si256(ab_even, cd_even, 0x31));
    attention_avx512_store_32(to + 384, _mm256_permute2x128_si256(ab_odd, cd_odd, 0x31));
}

AVX512 FORCE_INLINE __m128i attention_avx512_load_16(const char *at) {
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

AVX512 FORCE_INLINE void attention_avx512_store_16(char *to, __m128i a) {
    _mm_storeu_si128((__m128i *)(void *)to, a);
}

// A quad is 4 bytes.
AVX512 FORCE_INLINE void attention_avx512_quads_i8(const char *const *from, size_t at, char *to) {
    __m128i a = attention_avx512_load_16(from[0] + at), b = attention_avx512_load_16(from[1] + at);
    __m128i c = attention_avx512_load_16(from[2] + at), d = attention_avx512_load_16(from[3] + at);
    __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
    __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
    attention_avx512_store_16(to, _mm_unpacklo_epi64(ab_low, cd_low));
    attention_avx512_store_16(to + 64, _mm_unpackhi_epi64(ab_low, cd_low));
    attention_avx512_store_16(to + 128, _mm_unpacklo_epi64(ab_high, cd_high));
    attention_avx512_store_16(to + 192, _mm_unpackhi_epi64(ab_high, cd_high));
}

AVX512 FORCE_INLINE __m512 attention_avx512_reduce4(__m512 a, __m512 b, __m512 c, __m512 d) {
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    return _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
}

AVX512 FORCE_INLINE float attention_avx512_fold_add(__m512 a) {
    __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}

AVX512 FORCE_INLINE __m512 attention_avx512_copysign(__m512 a, __m512 b) {
    __m512 sign = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(sign, a), _mm512_and_ps(sign, b));
}

#define NAME(x)                           attention_avx512_##x
#define VARIANT_NAME                      "avx512"
#define TARGET                            AVX512
#define V                                 __m512
#define W                                 16
#define SCORE_ROWS                        6
#define VALUE_VECTORS                     24
#define LOAD(p)                           _mm512_loadu_ps(p)
#define LOAD_F16(p)                       attention_avx512_load_f16(p)
#define LOAD_BF16(p)                      attention_avx512_load_bf16(p)
#define LOAD_I8(p)                        attention_avx512_load_i8(p)
#define STORE(p, a)                       _mm512_storeu_ps(p, a)
#define SET(x)                            _mm512_set1_ps(x)
#define SET_QUAD(p)                       _mm512_broadcast_f32x4(_mm_loadu_ps(p))
#define FMA(a, b, c)                      _mm512_fmadd_ps(a, b, c)
#define MUL(a, b)                         _mm512_mul_ps(a, b)
#define ADD(a, b)                         _mm512_add_ps(a, b)
#define SUB(a, b)                         _mm512_sub_ps(a, b)
#define DIV(a, b)                         _mm512_div_ps(a, b)
#define MAX(a, b)                         _mm512_max_ps(a, b)
#define FIRST(a)                          _mm512_cvtss_f32(a)
#define COPYSIGN(a, b)                    attention_avx512_copysign(a, b)
#define REDUCE4(a, b, c, d)               attention_avx512_reduce4(a, b, c, d)
#define PACK_16_F32(from, at, bytes, to)  attention_avx512_quads_f32(from, at, to)
#define PACK_16_HALF(from, at, bytes, to) attention_avx512_quads_half(from, at, to)
#define PACK_16_I8(from, at, bytes, to)   attention_avx512_quads_i8(from, at, to)
#define FOLD_MAX(a)                       _mm512_reduce_max_ps(a)
#define FOLD_ADD(a)                       attention_avx512_fold_add(a)
#define EXP(a)                            attention_avx512_exp(a)
#include "attention_body.h"

// -- AVX2 -----------------------------------------------------------------------------------------

#define AVX2 __attribute__((target("avx2,fma,f16c")))

AVX2 FORCE_INLINE __m256 attention_avx2_exp(__m256 x) {
    __m256 is_kept = _mm256_cmp_ps(x, _mm256_set1_ps(EXP_LOWEST), _CMP_NLT_UQ);  // or NaN
    __m256 round = _mm256_set1_ps(EXP_ROUND);
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(EXP_LOG2E), round);
    __m256 r = _mm256_fnmadd_ps(_mm256_sub_ps(shifted, round), _mm256_set1_ps(EXP_LN2), x);
    __m256 p = _mm256_set1_ps(EXP_C7);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    __m256i n = _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127));
    __m256i power = _mm256_slli_epi32(n, 23);
    return _mm256_and_ps(is_kept, _mm256_mul_ps(p, _mm256_castsi256_ps(power)));
}

AVX2 FORCE_INLINE __m256 attention_avx2_load_f16(const char *at) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
}

AVX2 FORCE_INLINE __m256 attention_avx2_load_bf16(const char *at) {
    __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)at);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

AVX2 FORCE_INLINE __m256 attention_avx2_load_i8(const char *at) {
    __m128i values = _mm_loadl_epi64((const __m128i *)(const void *)at);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(values));
}

AVX2 FORCE_INLINE __m256 attention_avx2_reduce4(__m256 a, __m256 b, __m256 c, __m256 d) {
    __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    return _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
}

AVX2 FORCE_INLINE float attention_avx2_fold_add(__m256 a) {
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

AVX2 FORCE_INLINE float attention_avx2_fold_max(__m256 a) {
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

AVX2 FORCE_INLINE __m256 attention_avx2_copysign(__m256 a, __m256 b) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, b));
}

#define NAME(x)             attention_avx2_##x
#define VARIANT_NAME        "avx2"
#define TARGET              AVX2
#define V                   __m256
#define W                   8
#define SCORE_ROWS          2
#define VALUE_VECTORS       12
#define LOAD(p)             _mm256_loadu_ps(p)
#define LOAD_F16(p)         attention_avx2_load_f16(p)
#define LOAD_BF16(p)        attention_avx2_load_bf16(p)
#define LOAD_I8(p)          attention_avx2_load_i8(p)
#define STORE(p, a)         _mm256_storeu_ps(p, a)
#define SET(x)              _mm256_set1_ps(x)
#define SET_QUAD(p)         _mm256_broadcast_ps((const __m128 *)(const void *)(p))
#define FMA(a, b, c)        _mm256_fmadd_ps(a, b, c)
#define MUL(a, b)           _mm256_mul_ps(a, b)
#define ADD(a, b)           _mm256_add_ps(a, b)
#define SUB(a, b)           _mm256_sub_ps(a, b)
#define DIV(a, b)           _mm256_div_ps(a, b)
#define MAX(a, b)           _mm256_max_ps(a, b)
#define FIRST(a)            _mm256_cvtss_f32(a)
#define COPYSIGN(a, b)      attention_avx2_copysign(a, b)
#define REDUCE4(a, b, c, d) attention_avx2_reduce4(a, b, c, d)
#define FOLD_MAX(a)         attention_avx2_fold_max(a)
#define FOLD_ADD(a)         attention_avx2_fold_add(a)
#define EXP(a)              attention_avx2_exp(a)
#include "attention_body.h"

#endif

#if ATTENTION_NEON

// -- NEON -----------------------------------------------------------------------------------------

FORCE_INLINE float32x4_t attention_neon_exp(float32x4_t x) {
    uint32x4_t is_dropped = vcltq_f32(x, vdupq_n_f32(EXP_LOWEST));
    float32x4_t round = vdupq_n_f32(EXP_ROUND);
    float32x4_t shifted = vfmaq_f32(round, x, vdupq_n_f32(EXP_LOG2E));
    float32x4_t r = vfmsq_f32(x, vsubq_f32(shifted, round), vdupq_n_f32(EXP_LN2));
    float32x4_t p = vdupq_n_f32(EXP_C7);
    p = vfmaq_f32(vdupq_n_f32(EXP_C6), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_C5), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_C4), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_C3), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_C2), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    uint32x4_t n = vaddq_u32(vreinterpretq_u32_f32(shifted), vdupq_n_u32(127));
    uint32x4_t power = vshlq_n_u32(n, 23);
    p = vmulq_f32(p, vreinterpretq_f32_u32(power));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(p), is_dropped));
}

FORCE_INLINE float32x4_t attention_neon_load_f16(const char *at) {
    uint16x4_t bits;
    memcpy(&bits, at, sizeof bits);
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

FORCE_INLINE float32x4_t attention_neon_load_bf16(const char *at) {
    uint16x4_t bits;
    memcpy(&bits, at, sizeof bits);
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(bits), 16));
}

FORCE_INLINE float32x4_t attention_neon_load_i8(const char *at) {
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    int16x8_t values = vmovl_s8(vcreate_s8(bits));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(values)));
}

FORCE_INLINE float32x4_t attention_neon_reduce4(float32x4_t a, float32x4_t b, float32x4_t c,
                                                float32x4_t d) {
    float64x2_t ab = vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(a, b), vzip2q_f32(a, b)));
    float64x2_t cd = vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(c, d), vzip2q_f32(c, d)));
    return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(ab, cd)),
                     vreinterpretq_f32_f64(vzip2q_f64(ab, cd)));
}

FORCE_INLINE float attention_neon_fold_add(float32x4_t a) {
    float32x2_t half = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
}

FORCE_INLINE float32x4_t attention_neon_copysign(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vdupq_n_u32(0x80000000), b, a);
}

#define NAME(x)      attention_neon_##x
#define VARIANT_NAME "neon"
#define TARGET
#define V                   float32x4_t
#define W                   4
#define SCORE_ROWS          6
#define VALUE_VECTORS       24
#define LOAD(p)             vld1q_f32(p)
#define LOAD_F16(p)         attention_neon_load_f16(p)
#define LOAD_BF16(p)        attention_neon_load_bf16(p)
#define LOAD_I8(p)          attention_neon_load_i8(p)
#define STORE(p, a)         vst1q_f32(p, a)
#define SET(x)              vdupq_n_f32(x)
#define SET_QUAD(p)         vld1q_f32(p)
#define FMA(a, b, c)        vfmaq_f32(c, a, b)
#define MUL(a, b)           vmulq_f32(a, b)
#define ADD(a, b)           vaddq_f32(a, b)
#define SUB(a, b)           vsubq_f32(a, b)
#define DIV(a, b)           vdivq_f32(a, b)
#define MAX(a, b)           vmaxq_f32(a, b)
#define FIRST(a)            vgetq_lane_f32(a, 0)
#define COPYSIGN(a, b)      attention_neon_copysign(a, b)
#define REDUCE4(a, b, c, d) attention_neon_reduce4(a, b, c, d)
#define FOLD_MAX(a)         vmaxvq_f32(a)
#define FOLD_ADD(a)         attention_neon_fold_add(a)
#define EXP(a)              attention_neon_exp(a)
#include "attention_body.h"

#endif
