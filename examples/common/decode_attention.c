// Paging, number formats and the choice of a variant; the kernel itself is decode_attention_body.h.

#define _DEFAULT_SOURCE  // madvise

#include "decode_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__GNUC__)
#define FORCE_INLINE static inline __attribute__((always_inline))
#define NOINLINE     __attribute__((noinline))
#define PREFETCH(p)  __builtin_prefetch(p, 0, 3)
#else
#define FORCE_INLINE static inline
#define NOINLINE
#define PREFETCH(p) ((void)(p))
#endif

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 4")
#else
#define UNROLL
#endif

#if defined(__GNUC__) && defined(__x86_64__) && !defined(PTOWSP_NO_SIMD)
#define DECODE_X86 1
#include <immintrin.h>
#else
#define DECODE_X86 0
#endif

#if defined(__GNUC__) && defined(__aarch64__) && !defined(PTOWSP_NO_SIMD)
#define DECODE_NEON 1
#include <arm_neon.h>
#else
#define DECODE_NEON 0
#endif

// -- number formats -------------------------------------------------------------------------------

uint16_t decode_f16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x7f800000) {  // infinity, NaN (kept a NaN)
        return (uint16_t)(sign | 0x7c00 | (magnitude > 0x7f800000 ? 0x0200 : 0));
    }
    if (magnitude >= 0x477ff000) {  // rounds to 65536 or more
        return (uint16_t)(sign | 0x7c00);
    }
    if (magnitude < 0x38800000) {  // below 2^-14: a subnormal multiple of 2^-24
        float scaled;
        memcpy(&scaled, &magnitude, sizeof scaled);
        scaled = scaled * 16777216.0f;
        uint32_t whole = (uint32_t)scaled;
        float rest = scaled - (float)whole;
        whole += rest > 0.5f || (rest == 0.5f && (whole & 1));
        return (uint16_t)(sign | whole);
    }
    uint32_t rounded = magnitude + 0x0fff + ((magnitude >> 13) & 1);
    return (uint16_t)(sign | ((rounded - 0x38000000) >> 13));
}

float decode_f32_from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = (half >> 10) & 31;
    uint32_t fraction = half & 0x3ff, bits;
    if (exponent == 0) {
        float value = (float)fraction * (1.0f / 16777216.0f);
        return sign ? -value : value;
    }
    if (exponent == 31) {
        bits = sign | 0x7f800000 | fraction << 13;
    } else {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

size_t decode_kv_element_size(decode_kv_type type) {
    return type == DECODE_KV_F16 ? 2 : 4;
}

// -- portable variant -----------------------------------------------------------------------------

#if !DECODE_NEON  // arm64 always has NEON

static float decode_load_f16(const char *at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return decode_f32_from_f16(half);
}

#define NAME(x) decode_portable_##x
#define TARGET
#define V                      float
#define W                      1
#define HEADS_MAX              4
#define LOAD(p)                (*(p))
#define LOAD_F16(p)            decode_load_f16(p)
#define STORE(p, a)            (*(p) = (a))
#define SET(x)                 (x)
#define FMA(a, b, c)           ((a) * (b) + (c))
#define MUL(a, b)              ((a) * (b))
#define ADD(a, b)              ((a) + (b))
#define MAX(a, b)              ((a) > (b) ? (a) : (b))
#define REDUCE4(p, a, b, c, d) ((p)[0] = (a), (p)[1] = (b), (p)[2] = (c), (p)[3] = (d))
#define REDUCE_MAX(a)          (a)
#define REDUCE_ADD(a)          (a)
#define EXP(a)                 expf(a)
#include "decode_attention_body.h"
#endif

// e^x for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor series of e^r to r^7 (remainder
// below 6e-9), times 2^n. ln 2 is split so that n times its high part is exact. Below -87 the
// result is about 2^-126 instead of less.
#define EXP_LOWEST -87.0f
#define EXP_LOG2E  1.44269504f
#define EXP_LN2_HI 0.693145751953125f
#define EXP_LN2_LO 1.42860682e-6f
#define EXP_C7     (1.0f / 5040.0f)
#define EXP_C6     (1.0f / 720.0f)
#define EXP_C5     (1.0f / 120.0f)
#define EXP_C4     (1.0f / 24.0f)
#define EXP_C3     (1.0f / 6.0f)
#define EXP_C2     0.5f

#if DECODE_X86

// -- AVX-512 --------------------------------------------------------------------------------------

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))

AVX512 FORCE_INLINE __m512 decode_avx512_exp(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(EXP_LOWEST), x);  // in this order it keeps a NaN
    __m512 n = _mm512_cvtepi32_ps(_mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(EXP_LOG2E))));
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2_HI), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2_LO), r);
    __m512 p = _mm512_set1_ps(EXP_C7);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C2));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), _mm512_add_ps(r, _mm512_set1_ps(1.0f)));
    return _mm512_scalef_ps(p, n);
}

AVX512 FORCE_INLINE __m512 decode_avx512_load_f16(const char *at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

// Sums of the lanes of four vectors: two rounds inside 128-bit parts, then over the parts.
AVX512 FORCE_INLINE void decode_avx512_reduce4(float *out, __m512 a, __m512 b, __m512 c, __m512 d) {
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    __m512 low = _mm512_shuffle_ps(ab, cd, 0x44), high = _mm512_shuffle_ps(ab, cd, 0xee);
    __m512 parts = _mm512_add_ps(low, high);
    __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(parts), _mm512_extractf32x8_ps(parts, 1));
    _mm_storeu_ps(out,
                  _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
}

#define NAME(x)                decode_avx512_##x
#define TARGET                 AVX512
#define V                      __m512
#define W                      16
#define HEADS_MAX              4
#define LOAD(p)                _mm512_loadu_ps(p)
#define LOAD_F16(p)            decode_avx512_load_f16(p)
#define STORE(p, a)            _mm512_storeu_ps(p, a)
#define SET(x)                 _mm512_set1_ps(x)
#define FMA(a, b, c)           _mm512_fmadd_ps(a, b, c)
#define MUL(a, b)              _mm512_mul_ps(a, b)
#define ADD(a, b)              _mm512_add_ps(a, b)
#define MAX(a, b)              _mm512_max_ps(a, b)
#define REDUCE4(p, a, b, c, d) decode_avx512_reduce4(p, a, b, c, d)
#define REDUCE_MAX(a)          _mm512_reduce_max_ps(a)
#define REDUCE_ADD(a)          _mm512_reduce_add_ps(a)
#define EXP(a)                 decode_avx512_exp(a)
#include "decode_attention_body.h"

// -- AVX2 -----------------------------------------------------------------------------------------

#define AVX2 __attribute__((target("avx2,fma,f16c")))

AVX2 FORCE_INLINE __m256 decode_avx2_exp(__m256 x) {
    x = _mm256_max_ps(_mm256_set1_ps(EXP_LOWEST), x);  // in this order it keeps a NaN
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(EXP_LOG2E)), 8);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_LN2_HI), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_LN2_LO), r);
    __m256 p = _mm256_set1_ps(EXP_C7);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C2));
    p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1.0f)));
    __m256i power =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

AVX2 FORCE_INLINE void decode_avx2_reduce4(float *out, __m256 a, __m256 b, __m256 c, __m256 d) {
    __m256 parts = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(parts), _mm256_extractf128_ps(parts, 1)));
}

AVX2 FORCE_INLINE float decode_avx2_reduce_add(__m256 a) {
    float lanes[4];
    decode_avx2_reduce4(lanes, a, a, a, a);
    return lanes[0];
}

AVX2 FORCE_INLINE float decode_avx2_reduce_max(__m256 a) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_shuffle_ps(half, half, 1)));
}

#define NAME(x)                decode_avx2_##x
#define TARGET                 AVX2
#define V                      __m256
#define W                      8
#define HEADS_MAX              2
#define LOAD(p)                _mm256_loadu_ps(p)
#define LOAD_F16(p)            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define STORE(p, a)            _mm256_storeu_ps(p, a)
#define SET(x)                 _mm256_set1_ps(x)
#define FMA(a, b, c)           _mm256_fmadd_ps(a, b, c)
#define MUL(a, b)              _mm256_mul_ps(a, b)
#define ADD(a, b)              _mm256_add_ps(a, b)
#define MAX(a, b)              _mm256_max_ps(a, b)
#define REDUCE4(p, a, b, c, d) decode_avx2_reduce4(p, a, b, c, d)
#define REDUCE_MAX(a)          decode_avx2_reduce_max(a)
#define REDUCE_ADD(a)          decode_avx2_reduce_add(a)
#define EXP(a)                 decode_avx2_exp(a)
#include "decode_attention_body.h"

#endif

#if DECODE_NEON

// -- NEON -----------------------------------------------------------------------------------------

FORCE_INLINE float32x4_t decode_neon_exp(float32x4_t x) {
    x = vmaxq_f32(x, vdupq_n_f32(EXP_LOWEST));
    float32x4_t n = vrndnq_f32(vmulq_f32(x, vdupq_n_f32(EXP_LOG2E)));
    float32x4_t r = vfmsq_f32(x, n, vdupq_n_f32(EXP_LN2_HI));
    r = vfmsq_f32(r, n, vdupq_n_f32(EXP_LN2_LO));
    float32x4_t p = vdupq_n_f32(EXP_C7);
    p = vfmaq_f32(vdupq_n_f32(EXP_C6), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_C5), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_C4), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_C3), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_C2), p, r);
    p = vfmaq_f32(vaddq_f32(r, vdupq_n_f32(1.0f)), p, vmulq_f32(r, r));
    int32x4_t power = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23);
    return vmulq_f32(p, vreinterpretq_f32_s32(power));
}

FORCE_INLINE float32x4_t decode_neon_load_f16(const char *at) {
    uint16x4_t bits;
    memcpy(&bits, at, sizeof bits);
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

#define NAME(x) decode_neon_##x
#define TARGET
#define V                      float32x4_t
#define W                      4
#define HEADS_MAX              4
#define LOAD(p)                vld1q_f32(p)
#define LOAD_F16(p)            decode_neon_load_f16(p)
#define STORE(p, a)            vst1q_f32(p, a)
#define SET(x)                 vdupq_n_f32(x)
#define FMA(a, b, c)           vfmaq_f32(c, a, b)
#define MUL(a, b)              vmulq_f32(a, b)
#define ADD(a, b)              vaddq_f32(a, b)
#define MAX(a, b)              vmaxq_f32(a, b)
#define REDUCE4(p, a, b, c, d) vst1q_f32(p, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)))
#define REDUCE_MAX(a)          vmaxvq_f32(a)
#define REDUCE_ADD(a)          vaddvq_f32(a)
#define EXP(a)                 decode_neon_exp(a)
#include "decode_attention_body.h"

#endif

// -- choice and paging ----------------------------------------------------------------------------

typedef void (*decode_group_fn)(const char *const *rows, const char *const *next, size_t v_offset,
                                size_t count, const float *queries, size_t group, size_t dim,
                                bool is_f16, ptowsp_partial *states, float *accs);

typedef struct decode_variant {
    const char *name;
    decode_group_fn group;
} decode_variant;

static decode_variant decode_variant_choose(void) {
#if DECODE_X86
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        decode_variant avx512 = {"avx512", decode_avx512_group};
        return avx512;
    }
    if (has_avx2) {  // every processor with AVX2 has F16C
        decode_variant avx2 = {"avx2", decode_avx2_group};
        return avx2;
    }
#elif DECODE_NEON
    decode_variant neon = {"neon", decode_neon_group};
    return neon;
#endif
#if !DECODE_NEON
    decode_variant portable = {"portable", decode_portable_group};
    return portable;
#endif
}

const char *decode_attention_variant(void) {
    return decode_variant_choose().name;
}

void *decode_pool_allocate(size_t size) {
    const size_t huge = (size_t)2 << 20;
    if (size > SIZE_MAX - huge) {
        return NULL;
    }
    size = (size + huge - 1) / huge * huge;
    void *pool = aligned_alloc(huge, size);
    if (pool) {
#if defined(MADV_HUGEPAGE)
        madvise(pool, size, MADV_HUGEPAGE);  // a wish: without it, it is only slower
#endif
        memset(pool, 0, size);
    }
    return pool;
}

const char *decode_kv_row(const decode_kv *kv, const uint32_t *pages, uint32_t kv_head,
                          uint32_t token) {
    size_t element = decode_kv_element_size(kv->type);
    size_t head_size = (size_t)2 * kv->page_size * kv->dim * element;
    size_t page = pages[token / kv->page_size];
    return (const char *)kv->pool + (page * kv->kv_head_count + kv_head) * head_size +
           (size_t)(token % kv->page_size) * kv->dim * element;
}

// Finds the rows of up to DECODE_BLOCK tokens from `token` on, page by page, and repeats the last
// one to fill the block. Returns their number.
static uint32_t decode_find_rows(const decode_kv *kv, const uint32_t *pages, uint32_t kv_head,
                                 uint32_t token, uint32_t count, const char **rows) {
    size_t row_size = kv->dim * decode_kv_element_size(kv->type);
    uint32_t found = count < DECODE_BLOCK ? count : DECODE_BLOCK;
    for (uint32_t t = 0; t < found;) {
        uint32_t left_in_page = kv->page_size - (token + t) % kv->page_size;
        const char *row = decode_kv_row(kv, pages, kv_head, token + t);
        for (uint32_t end = t + left_in_page; t < end && t < found; t++) {
            rows[t] = row;
            row += row_size;
        }
    }
    for (uint32_t t = found; found > 0 && t < DECODE_BLOCK; t++) {
        rows[t] = rows[found - 1];
    }
    return found;
}

void decode_attention(const decode_kv *kv, const uint32_t *pages, uint32_t kv_head, uint32_t start,
                      uint32_t count, const float *queries, uint32_t group, ptowsp_partial *states,
                      float *accs) {
    decode_variant variant = decode_variant_choose();
    size_t v_offset = (size_t)kv->page_size * kv->dim * decode_kv_element_size(kv->type);
    for (uint32_t h = 0; h < group; h++) {
        ptowsp_merge_clear(&states[h], accs + (size_t)h * kv->dim, kv->dim);
    }
    const char *rows[2][DECODE_BLOCK];
    uint32_t block = decode_find_rows(kv, pages, kv_head, start, count, rows[0]), turn = 0;
    while (block > 0) {
        start += block;
        count -= block;
        uint32_t next = decode_find_rows(kv, pages, kv_head, start, count, rows[1 - turn]);
        variant.group(rows[turn], next ? rows[1 - turn] : rows[turn], v_offset, block, queries,
                      group, kv->dim, kv->type == DECODE_KV_F16, states, accs);
        block = next;
        turn = 1 - turn;
    }
}
