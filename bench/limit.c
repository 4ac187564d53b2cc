// Bare limits of instructions: loops that do what cannot be avoided and nothing else, in the widest
// vectors that the shim uses on this machine. Without vectors there are none: limits are NULL.
//
//      matmul    multiply-adds of registers: as many as a product of 128 x 128 x 128 has
//      moved     the same multiply-adds with the loads of their operands, the least that brings tiles
//                into panels, one vector of each side between 128 of them, and a store for each sum
//      exp       the same polynomial on an array, with neither tile nor time
//      rows      each element loaded and added to one of four sums, and nothing stored
//      add       two loads and a store
//      descriptors   of one head, 16 at a time: the vector operations of src/plan/generate_avx512.c, 15
//                of them shuffles, but for those that spread numbers, with all that they read in
//                registers, and 6 stores. `left` has a byte for each descriptor, `right` 4 vectors

#include "bench.h"

#include "limit.h"

#include "ptoisa_shim.h"

#include <string.h>

#if PTOISA_X86

#define VNNI __attribute__((target("avx512f,avx512vnni")))
#define BF16 __attribute__((target("avx512f,avx512bf16")))

enum { SUMS = 16, PRODUCTS = 128 * 128 * 128 };  // enough sums for any latency

// One loop for a set of vectors: `type` sums, each step adding `products` of them.
#define DEFINE_PRODUCTS(name, TARGET, type, products, ZERO, ONE, STEP)                             \
    TARGET static void name(void *user) {                                                          \
        type sums[SUMS], x = ONE;                                                                  \
        (void)user;                                                                                \
        PTOISA_MM_UNROLL                                                                           \
        for (int i = 0; i < SUMS; i++) {                                                           \
            sums[i] = ZERO;                                                                        \
            __asm__ volatile("" : "+v"(sums[i])); /* or they would be one */                       \
        }                                                                                          \
        for (int n = 0; n < PRODUCTS / (products) / SUMS; n++) {                                   \
            __asm__ volatile("" : "+v"(x));                                                        \
            PTOISA_MM_UNROLL                                                                       \
            for (int i = 0; i < SUMS; i++) {                                                       \
                sums[i] = STEP;                                                                    \
            }                                                                                      \
        }                                                                                          \
        PTOISA_MM_UNROLL                                                                           \
        for (int i = 0; i < SUMS; i++) {                                                           \
            __asm__ volatile("" : : "v"(sums[i]));                                                 \
        }                                                                                          \
    }

DEFINE_PRODUCTS(products_f32_avx512, PTOISA_AVX512, __m512, 16, _mm512_setzero_ps(),
                _mm512_set1_ps(1.0f), _mm512_fmadd_ps(x, x, sums[i]))
DEFINE_PRODUCTS(products_bf16, BF16, __m512, 32, _mm512_setzero_ps(), _mm512_set1_ps(1.0f),
                _mm512_dpbf16_ps(sums[i], (__m512bh)x, (__m512bh)x))
DEFINE_PRODUCTS(products_i8_vnni, VNNI, __m512i, 64, _mm512_setzero_si512(), _mm512_set1_epi8(1),
                _mm512_dpbusd_epi32(sums[i], x, x))
DEFINE_PRODUCTS(products_i8_avx512, PTOISA_AVX512, __m512i, 32, _mm512_setzero_si512(),
                _mm512_set1_epi16(1), _mm512_add_epi32(sums[i], _mm512_madd_epi16(x, sums[i])))
#undef SUMS
#define SUMS 12  // AVX2 has 16 registers in all
DEFINE_PRODUCTS(products_f32_avx2, PTOISA_AVX2, __m256, 8, _mm256_setzero_ps(),
                _mm256_set1_ps(1.0f), _mm256_fmadd_ps(x, x, sums[i]))
DEFINE_PRODUCTS(products_i8_avx2, PTOISA_AVX2, __m256i, 16, _mm256_setzero_si256(),
                _mm256_set1_epi16(1), _mm256_add_epi32(sums[i], _mm256_madd_epi16(x, sums[i])))

#define DEFINE_LOOPS(set, SET)                                                                     \
    SET static void exp_##set(void *user) {                                                        \
        const limit_arrays *a = (const limit_arrays *)user;                                        \
        for (uint32_t i = 0; i < a->count; i += PTOISA_LANES_##set) {                              \
            ptoisa_store_##set(a->out + i, ptoisa_exp_##set(ptoisa_load_##set(a->left + i)));      \
        }                                                                                          \
        bench_keep(a->out);                                                                        \
    }                                                                                              \
    SET static void add_##set(void *user) {                                                        \
        const limit_arrays *a = (const limit_arrays *)user;                                        \
        for (uint32_t i = 0; i < a->count; i += PTOISA_LANES_##set) {                              \
            ptoisa_vec_##set x = ptoisa_load_##set(a->left + i);                                   \
            ptoisa_store_##set(a->out + i, ptoisa_add_##set(x, ptoisa_load_##set(a->right + i)));  \
        }                                                                                          \
        bench_keep(a->out);                                                                        \
    }                                                                                              \
    SET static void rows_##set(void *user) {                                                       \
        const limit_arrays *a = (const limit_arrays *)user;                                        \
        ptoisa_vec_##set sums[4];                                                                  \
        memset(sums, 0, sizeof sums);                                                              \
        for (uint32_t i = 0; i < a->count; i += 4 * PTOISA_LANES_##set) {                          \
            PTOISA_MM_UNROLL                                                                       \
            for (uint32_t v = 0; v < 4; v++) {                                                     \
                ptoisa_vec_##set x = ptoisa_load_##set(a->left + i + v * PTOISA_LANES_##set);      \
                sums[v] = ptoisa_add_##set(sums[v], x);                                            \
            }                                                                                      \
        }                                                                                          \
        PTOISA_MM_UNROLL                                                                           \
        for (uint32_t v = 0; v < 4; v++) {                                                         \
            ptoisa_store_##set(a->out + v * PTOISA_LANES_##set, sums[v]);                          \
        }                                                                                          \
        bench_keep(a->out);                                                                        \
    }
DEFINE_LOOPS(avx2, PTOISA_AVX2)
DEFINE_LOOPS(avx512, PTOISA_AVX512)

// What becomes one vector of A's panel, and one of B's: bytes of A are summed, B's have their top bit
// turned; f16 is widened; pairs of bf16 are turned, and their magnitudes noted in extremes. 16 columns
// of B lie 32 bytes apart, so words of 4 bytes take 4 loads and 2 shuffles, f16 a level more.
PTOISA_AVX512 PTOISA_ALWAYS void move_vectors(const char *a, const char *b, char *panel,
                                              __m512i *extremes, const ptoisa_mm_kind kind) {
    const __m512i magnitude = _mm512_set1_epi16(0x7fff);
    if (kind == PTOISA_MM_F16) {
        const __m256i half = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)b)),
            _mm_loadu_si128((const __m128i *)(const void *)(b + 32)), 1);
        __m256i turned = _mm256_unpacklo_epi16(half, half);
        turned = _mm256_unpacklo_epi64(_mm256_unpackhi_epi32(turned, half), half);
        const __m256i row = _mm256_loadu_si256((const __m256i *)(const void *)a);
        _mm512_store_ps(panel, _mm512_cvtph_ps(row));
        _mm512_store_ps(panel + 64, _mm512_cvtph_ps(turned));
        return;
    }
    __m512i x = _mm512_loadu_si512(a);
    __m512i y = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)b));
    y = _mm512_inserti32x4(y, _mm_loadu_si128((const __m128i *)(const void *)(b + 32)), 1);
    y = _mm512_inserti32x4(y, _mm_loadu_si128((const __m128i *)(const void *)(b + 64)), 2);
    y = _mm512_inserti32x4(y, _mm_loadu_si128((const __m128i *)(const void *)(b + 96)), 3);
    y = _mm512_unpackhi_epi64(_mm512_unpacklo_epi32(y, x), y);
    if (kind == PTOISA_MM_QUADS) {
        PTOISA_MM_QUADS_AVX512(extremes[0], x, magnitude);
        _mm512_store_si512(panel + 64, _mm512_xor_si512(y, _mm512_set1_epi8(-128)));
        return;
    }
    __m512i words[2] = {x, y};
    PTOISA_MM_UNROLL
    for (int i = 0; i < 2; i++) {
        const __m512i bits = _mm512_and_si512(words[i], magnitude);
        extremes[2 * i] =
            _mm512_min_epu16(extremes[2 * i], _mm512_sub_epi16(bits, _mm512_set1_epi16(1)));
        extremes[2 * i + 1] = _mm512_max_epu16(extremes[2 * i + 1], bits);
        _mm512_store_si512(panel + 64 * i, _mm512_shuffle_epi8(words[i], magnitude));
    }
}

// boxes: of 8 rows of A x 8 units x 32 columns. Vectors are moved for 64 boxes at a time, which took
// less time than one before each box.
PTOISA_AVX512 PTOISA_ALWAYS void moved_of(void *user, const uint32_t depth, const uint32_t boxes,
                                          const ptoisa_mm_kind kind) {
    enum { PANEL = 8 * 1024, TILE = 16 * 1024 };
    const limit_arrays *a = (const limit_arrays *)user;
    const char *left = (const char *)a->left, *right = (const char *)a->right;
    PWSP_ALIGNAS(64) char panels[2 * PANEL];
    __m512i extremes[4];
    memset(panels, 0, sizeof panels);
    for (uint32_t n = 0; n < boxes / depth; n++) {
        if (n * depth % 64 == 0) {
            PTOISA_MM_UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                extremes[i] = _mm512_setzero_si512();
            }
            for (uint32_t i = 0; i < 64; i++) {
                const uint32_t at = (n * depth + i) * 64 % TILE;
                move_vectors(left + at, right + at, panels + PANEL + i * 128, extremes, kind);
            }
            __asm__ volatile(""
                             :
                             : "v"(extremes[0]), "v"(extremes[1]), "v"(extremes[2]),
                               "v"(extremes[3]));
        }
        __m512 sums[8][2];
        PTOISA_MM_UNROLL
        for (uint32_t r = 0; r < 8; r++) {
            sums[r][0] = sums[r][1] = _mm512_setzero_ps();
        }
        for (uint32_t k = 0; k < depth; k++) {
            ptoisa_mm_box_avx512(sums, (const float *)(const void *)(panels + k * 256),
                                 (const float *)(const void *)(panels + k * 1024 % PANEL), 8, 8, 2,
                                 kind == PTOISA_MM_F16 ? PTOISA_MM_F32 : kind);
        }
        PTOISA_MM_UNROLL
        for (uint32_t r = 0; r < 8; r++) {
            _mm512_storeu_ps(a->out + n * 256 + r * 32, sums[r][0]);
            _mm512_storeu_ps(a->out + n * 256 + r * 32 + 16, sums[r][1]);
        }
    }
    bench_keep(a->out);
}

PTOISA_AVX512 static void moved_f16(void *user) {
    moved_of(user, 16, PRODUCTS / 2048, PTOISA_MM_F16);
}
PTOISA_AVX512 static void moved_bf16(void *user) {
    moved_of(user, 8, PRODUCTS / 4096, PTOISA_MM_DOTS);
}
PTOISA_AVX512 static void moved_i8(void *user) {
    moved_of(user, 4, PRODUCTS / 8192, PTOISA_MM_QUADS);
}

// Numbers and indices are not those of real descriptors; how long operations take does not depend on
// them.
PTOISA_AVX512 static void descriptors_avx512(void *user) {
    const limit_arrays *a = (const limit_arrays *)user;
    const __m512i one = _mm512_set1_epi32(1), zero = _mm512_setzero_si512();
    __m512i of[4], words[3], take = _mm512_set1_epi32(9), number = zero;
    memcpy(of, a->right, sizeof of);
    __asm__ volatile("" : "+v"(take));
    words[0] = words[1] = words[2] = take;
    __asm__ volatile("" : "+v"(words[0]), "+v"(words[1]), "+v"(words[2]));  // or they would be one
    for (uint32_t i = 0; i + 16 <= a->count; i += 16) {
        char *out = (char *)a->out + (size_t)i * 24;
        __m128i bytes;
        memcpy(&bytes, (const char *)a->left + i, sizeof bytes);
        const __mmask16 last = _mm_cmpneq_epi8_mask(bytes, _mm_setzero_si128());
        const __m512i from = _mm512_cvtepu8_epi32(bytes);
        const __m512i piece = _mm512_sub_epi16(number, _mm512_permutexvar_epi32(from, of[0]));
        const __m512i factors = _mm512_permutexvar_epi32(from, of[1]);
        const __m512i start = _mm512_madd_epi16(_mm512_max_epi16(piece, zero), factors);
        const __m512i tail = _mm512_permutexvar_epi32(from, of[2]);
        __m512i length = _mm512_and_si512(factors, take);
        length = _mm512_mask_add_epi32(length, _mm512_cmpge_epi32_mask(piece, zero), length, one);
        length = _mm512_mask_madd_epi16(length, last, tail, take);
        __m512i tag = _mm512_and_si512(tail, take);
        tag = _mm512_mask_or_epi32(tag, _mm512_testn_epi32_mask(piece, take), tag, one);
        tag = _mm512_mask_or_epi32(tag, last, tag, take);
        const __m512i request = _mm512_permutexvar_epi32(from, of[3]);
        PTOISA_MM_UNROLL
        for (int half = 0; half < 2; half++) {
            const __m512i tags =
                half ? _mm512_unpackhi_epi32(tag, request) : _mm512_unpacklo_epi32(tag, request);
            const __m512i starts =
                half ? _mm512_unpackhi_epi32(start, length) : _mm512_unpacklo_epi32(start, length);
            PTOISA_MM_UNROLL
            for (int part = 0; part < 3; part++) {
                const __m512i x = _mm512_mask2_permutex2var_epi32(
                    tags, words[part], (__mmask16)(0x6db6 << part), starts);
                memcpy(out + 192 * half + 64 * part, &x, sizeof x);
                words[part] = _mm512_add_epi32(words[part], one);
            }
        }
        number = _mm512_add_epi16(number, one);
    }
    bench_keep(a->out);
}

bench_fn limit_of(limit_kind kind) {
    const bool is_wide = ptoisa_has_avx512();
    if (!ptoisa_has_avx2()) {
        return NULL;
    }
    switch (kind) {
    case LIMIT_PRODUCTS_BF16:  // widened where there is no instruction
        if (is_wide && ptoisa_has_vnni() && ptoisa_has_bf16()) {
            return products_bf16;
        }
        return is_wide ? products_f32_avx512 : products_f32_avx2;
    case LIMIT_PRODUCTS_F32: return is_wide ? products_f32_avx512 : products_f32_avx2;
    case LIMIT_PRODUCTS_I8:
        if (is_wide && __builtin_cpu_supports("avx512vnni")) {
            return products_i8_vnni;
        }
        return is_wide ? products_i8_avx512 : products_i8_avx2;
    case LIMIT_MOVED_F16: return is_wide ? moved_f16 : NULL;
    case LIMIT_MOVED_BF16:
        return is_wide && ptoisa_has_vnni() && ptoisa_has_bf16() ? moved_bf16 : NULL;
    case LIMIT_MOVED_I8: return is_wide && ptoisa_has_vnni() ? moved_i8 : NULL;
    case LIMIT_EXP: return is_wide ? exp_avx512 : exp_avx2;
    case LIMIT_ADD: return is_wide ? add_avx512 : add_avx2;
    case LIMIT_DESCRIPTORS: return is_wide ? descriptors_avx512 : NULL;
    case LIMIT_ROWS: break;
    }
    return is_wide ? rows_avx512 : rows_avx2;
}
#else
bench_fn limit_of(limit_kind kind) {
    (void)kind;
    return NULL;
}
#endif
