// Maps: the inner loops of element-wise instructions, expands and column reductions.
//
//      for each row r, for each column c:  d[r][c] = f(x, y, z)
//      x = a[r][c]    y = b[r][c], or b[r][0] for all columns    z = c[r][c]
//
// A pitch of 0 gives the same row again and again: a scalar, one row for all rows, or (d = a) the
// sum of all rows. Rows one after another become one long row. Any operand may be d itself.
//
// Two kinds of loops do the work: f32 by the vectors of vector.h, and 32-bit integers by blocks of
// 16 that the compiler turns into vectors. All other types pass through them: pieces of a row are
// widened into buffers, mapped, and narrowed; for the integers that wrap this is the same, and f16
// and bf16 are so computed in f32 and rounded once.

#ifndef PTOISA_MAP_H
#define PTOISA_MAP_H

#include "arith.h"
#include "vector.h"

// Elements widened at a time: four buffers of 2 KiB, all in the first-level cache.
#define PTOISA_PIECE 512

typedef enum ptoisa_map_op {
    PTOISA_MAP_ADD,
    PTOISA_MAP_SUB,
    PTOISA_MAP_MUL,
    PTOISA_MAP_DIV,
    PTOISA_MAP_DIV_BY,  // y / x
    PTOISA_MAP_MAX,
    PTOISA_MAP_MIN,
    PTOISA_MAP_EXPDIF,        // exp(x - y)
    PTOISA_MAP_LEAKY,         // x > 0 ? x : x * y
    PTOISA_MAP_MUL_ADD,       // x * y + z
    PTOISA_MAP_MUL_ADD_RELU,  // the same, negative ones 0
    PTOISA_MAP_SUB_RELU,
    PTOISA_MAP_ADD_ADD,  // x + y + z
    PTOISA_MAP_SUB_ADD,  // x - y + z
    PTOISA_MAP_COPY,     // y, bit by bit
    PTOISA_MAP_EXP,
    PTOISA_MAP_LOG,
    PTOISA_MAP_SQRT,
    PTOISA_MAP_RSQRT,
    PTOISA_MAP_RECIP,
    PTOISA_MAP_ABS,
    PTOISA_MAP_NEG,
    PTOISA_MAP_RELU,
    PTOISA_MAP_REM,   // sign of y
    PTOISA_MAP_FMOD,  // sign of x
    PTOISA_MAP_POW,
    PTOISA_MAP_AND,
    PTOISA_MAP_OR,
    PTOISA_MAP_XOR,
    PTOISA_MAP_SHL,
    PTOISA_MAP_SHR,
    PTOISA_MAP_NOT,
    PTOISA_MAP_MAX_U,  // of unsigned integers: ptoisa_map_run puts them in
    PTOISA_MAP_MIN_U,
    PTOISA_MAP_SHR_U
} ptoisa_map_op;

// Pitches in elements. b and c may be NULL where the operation does not use them.
typedef struct ptoisa_map {
    void *d;
    const void *a, *b, *c;
    size_t d_pitch, a_pitch, b_pitch, c_pitch;
    uint32_t rows;
    size_t cols;
    bool is_scalar;  // b has one element in each row
} ptoisa_map;

// -- f32 ------------------------------------------------------------------------------------------

// What each operation computes; F(set, name) is an operation of the instruction set.
#define PTOISA_F(set, name) ptoisa_##name##_##set
#define PTOISA_F32_MAPS(MAP, set, SET)                                                             \
    MAP(set, SET, ADD, PTOISA_F(set, add)(x, y))                                                   \
    MAP(set, SET, SUB, PTOISA_F(set, sub)(x, y))                                                   \
    MAP(set, SET, MUL, PTOISA_F(set, mul)(x, y))                                                   \
    MAP(set, SET, DIV, PTOISA_F(set, div)(x, y))                                                   \
    MAP(set, SET, DIV_BY, PTOISA_F(set, div)(y, x))                                                \
    MAP(set, SET, MAX, PTOISA_F(set, max)(x, y))                                                   \
    MAP(set, SET, MIN, PTOISA_F(set, min)(x, y))                                                   \
    MAP(set, SET, EXPDIF, PTOISA_F(set, exp)(PTOISA_F(set, sub)(x, y)))                            \
    MAP(set, SET, LEAKY, PTOISA_F(set, if_less)(zero, x, x, PTOISA_F(set, mul)(x, y)))             \
    MAP(set, SET, MUL_ADD, PTOISA_F(set, fma)(x, y, z))                                            \
    MAP(set, SET, MUL_ADD_RELU, PTOISA_F(set, at_least)(PTOISA_F(set, fma)(x, y, z), zero))        \
    MAP(set, SET, SUB_RELU, PTOISA_F(set, at_least)(PTOISA_F(set, sub)(x, y), zero))               \
    MAP(set, SET, ADD_ADD, PTOISA_F(set, add)(PTOISA_F(set, add)(x, y), z))                        \
    MAP(set, SET, SUB_ADD, PTOISA_F(set, add)(PTOISA_F(set, sub)(x, y), z))                        \
    MAP(set, SET, COPY, y)                                                                         \
    MAP(set, SET, EXP, PTOISA_F(set, exp)(x))                                                      \
    MAP(set, SET, LOG, PTOISA_F(set, log)(x))                                                      \
    MAP(set, SET, SQRT, PTOISA_F(set, sqrt)(x))                                                    \
    MAP(set, SET, RSQRT, PTOISA_F(set, div)(PTOISA_F(set, all)(1.0f), PTOISA_F(set, sqrt)(x)))     \
    MAP(set, SET, RECIP, PTOISA_F(set, div)(PTOISA_F(set, all)(1.0f), x))                          \
    MAP(set, SET, ABS, PTOISA_F(set, abs)(x))                                                      \
    MAP(set, SET, NEG, PTOISA_F(set, neg)(x))                                                      \
    MAP(set, SET, RELU, PTOISA_F(set, at_least)(x, zero))

// A scalar is spread into one vector in memory and the loop then does not advance, so that scalars
// need no loops of their own. What an operation does not use is not loaded.
#define PTOISA_DEFINE_F32_MAP(set, SET, name, result)                                              \
    SET PTOISA_FN void ptoisa_map_##name##_##set(const ptoisa_map *map) {                          \
        enum { LANES = PTOISA_LANES_##set };                                                       \
        const ptoisa_vec_##set zero = ptoisa_all_##set(0.0f);                                      \
        (void)zero;                                                                                \
        for (uint32_t r = 0; r < map->rows; r++) {                                                 \
            float *d = (float *)map->d + r * map->d_pitch;                                         \
            const float *a = (const float *)map->a + r * map->a_pitch;                             \
            const float *b = (const float *)map->b + r * map->b_pitch;                             \
            const float *c = (const float *)map->c + r * map->c_pitch;                             \
            size_t step = LANES, left = map->cols;                                                 \
            float spread[LANES];                                                                   \
            if (map->is_scalar) {                                                                  \
                ptoisa_store_##set(spread, ptoisa_all_##set(*b));                                  \
                b = spread;                                                                        \
                step = 0;                                                                          \
            }                                                                                      \
            for (; left >= LANES; left -= LANES) {                                                 \
                ptoisa_vec_##set x = ptoisa_load_##set(a), y = ptoisa_load_##set(b);               \
                ptoisa_vec_##set z = ptoisa_load_##set(c);                                         \
                (void)x, (void)y, (void)z;                                                         \
                ptoisa_store_##set(d, result);                                                     \
                d += LANES, a += LANES, b += step, c += LANES;                                     \
            }                                                                                      \
            if (left > 0) {                                                                        \
                uint32_t n = (uint32_t)left;                                                       \
                ptoisa_vec_##set x = ptoisa_load_n_##set(a, n, 0);                                 \
                ptoisa_vec_##set y = ptoisa_load_n_##set(b, n, 0);                                 \
                ptoisa_vec_##set z = ptoisa_load_n_##set(c, n, 0);                                 \
                (void)x, (void)y, (void)z;                                                         \
                ptoisa_store_n_##set(d, result, n);                                                \
            }                                                                                      \
        }                                                                                          \
    }

#define PTOISA_F32_MAP_CASE(set, SET, name, result)                                                \
    case PTOISA_MAP_##name:                                                                        \
        ptoisa_map_##name##_##set(map);                                                            \
        return;

#define PTOISA_DEFINE_F32_MAPS(set, SET)                                                           \
    PTOISA_F32_MAPS(PTOISA_DEFINE_F32_MAP, set, SET)                                               \
    PTOISA_FN void ptoisa_map_f32_##set(ptoisa_map_op op, const ptoisa_map *map) {                 \
        switch (op) {                                                                              \
            PTOISA_F32_MAPS(PTOISA_F32_MAP_CASE, set, SET)                                         \
        default: return;                                                                           \
        }                                                                                          \
    }

// clang-format off
PTOISA_DEFINE_F32_MAPS(c, )
#if PTOISA_X86
PTOISA_DEFINE_F32_MAPS(avx2, PTOISA_AVX2)
PTOISA_DEFINE_F32_MAPS(avx512, PTOISA_AVX512)
#endif
#if PTOISA_NEON
PTOISA_DEFINE_F32_MAPS(neon, )
#endif
// clang-format on

// Operations that libm would be called for, one element at a time.
PTOISA_FN void ptoisa_map_f32_slow(ptoisa_map_op op, const ptoisa_map *map) {
    for (uint32_t r = 0; r < map->rows; r++) {
        float *d = (float *)map->d + r * map->d_pitch;
        const float *a = (const float *)map->a + r * map->a_pitch;
        const float *b = (const float *)map->b + r * map->b_pitch;
        for (size_t i = 0; i < map->cols; i++) {
            float x = a[i], y = b[map->is_scalar ? 0 : i];
            d[i] = op == PTOISA_MAP_REM    ? ptoisa_rem_f32(x, y)
                   : op == PTOISA_MAP_FMOD ? ptoisa_fmod_f32(x, y)
                                           : ptoisa_pow_f32(x, y);
        }
    }
}

PTOISA_FN void ptoisa_map_f32(ptoisa_map_op op, const ptoisa_map *map) {
    if (op == PTOISA_MAP_REM || op == PTOISA_MAP_FMOD || op == PTOISA_MAP_POW) {
        ptoisa_map_f32_slow(op, map);
        return;
    }
#if PTOISA_X86
    if (ptoisa_has_avx512()) {
        ptoisa_map_f32_avx512(op, map);
        return;
    }
    if (ptoisa_has_avx2()) {
        ptoisa_map_f32_avx2(op, map);
        return;
    }
#endif
#if PTOISA_NEON
    ptoisa_map_f32_neon(op, map);
#else
    ptoisa_map_f32_c(op, map);
#endif
}

// -- 32-bit integers ------------------------------------------------------------------------------

// Eight words, as the compiler's own vectors: one body for AVX2 and for whatever the machine has.
typedef uint32_t ptoisa_u32x8 __attribute__((vector_size(32)));
typedef int32_t ptoisa_i32x8 __attribute__((vector_size(32)));
typedef uint16_t ptoisa_u16x8 __attribute__((vector_size(16)));
typedef int16_t ptoisa_i16x8 __attribute__((vector_size(16)));
typedef uint8_t ptoisa_u8x8 __attribute__((vector_size(8)));
typedef int8_t ptoisa_i8x8 __attribute__((vector_size(8)));

#define PTOISA_X8_SIGNED(v)          ((ptoisa_i32x8)(v))
#define PTOISA_X8_SELECT(mask, v, w) (((ptoisa_u32x8)(mask) & (v)) | (~(ptoisa_u32x8)(mask) & (w)))

// Of unsigned x, y, z, which wrap. A shift by the width or more (or by a negative count, which is
// large) leaves nothing but the sign.
#define PTOISA_INT_MAPS(MAP, set, SET)                                                             \
    MAP(set, SET, ADD, x + y)                                                                      \
    MAP(set, SET, SUB, x - y)                                                                      \
    MAP(set, SET, MUL, (x) * (y))                                                                  \
    MAP(set, SET, MAX, PTOISA_X8_SELECT(PTOISA_X8_SIGNED(x) > PTOISA_X8_SIGNED(y), x, y))          \
    MAP(set, SET, MIN, PTOISA_X8_SELECT(PTOISA_X8_SIGNED(x) < PTOISA_X8_SIGNED(y), x, y))          \
    MAP(set, SET, MAX_U, PTOISA_X8_SELECT(x > y, x, y))                                            \
    MAP(set, SET, MIN_U, PTOISA_X8_SELECT(x < y, x, y))                                            \
    MAP(set, SET, ADD_ADD, x + y + z)                                                              \
    MAP(set, SET, SUB_ADD, x - y + z)                                                              \
    MAP(set, SET, ABS, PTOISA_X8_SELECT(PTOISA_X8_SIGNED(x) < 0, -x, x))                           \
    MAP(set, SET, NEG, -x)                                                                         \
    MAP(set, SET, RELU, ~(ptoisa_u32x8)(PTOISA_X8_SIGNED(x) < 0) & (x))                            \
    MAP(set, SET, AND, (x) & (y))                                                                  \
    MAP(set, SET, OR, x | y)                                                                       \
    MAP(set, SET, XOR, x ^ y)                                                                      \
    MAP(set, SET, NOT, ~x)                                                                         \
    MAP(set, SET, SHL, (ptoisa_u32x8)(y < 32) & (x << (y & 31)))                                   \
    MAP(set, SET, SHR,                                                                             \
        (ptoisa_u32x8)(PTOISA_X8_SIGNED(x) >>                                                      \
                       PTOISA_X8_SIGNED(PTOISA_X8_SELECT(y < 32, y, (y & 0) + 31))))               \
    MAP(set, SET, SHR_U, (ptoisa_u32x8)(y < 32) & (x >> (y & 31)))

#define PTOISA_DEFINE_INT_MAP(set, SET, name, result)                                              \
    SET PTOISA_FN void ptoisa_map_int_##name##_##set(const ptoisa_map *map) {                      \
        for (uint32_t r = 0; r < map->rows; r++) {                                                 \
            uint32_t *d = (uint32_t *)map->d + r * map->d_pitch;                                   \
            const uint32_t *a = (const uint32_t *)map->a + r * map->a_pitch;                       \
            const uint32_t *b = (const uint32_t *)map->b + r * map->b_pitch;                       \
            const uint32_t *c = (const uint32_t *)map->c + r * map->c_pitch;                       \
            size_t step = 8, left = map->cols;                                                     \
            uint32_t spread[8];                                                                    \
            if (map->is_scalar) {                                                                  \
                for (int i = 0; i < 8; i++) {                                                      \
                    spread[i] = *b;                                                                \
                }                                                                                  \
                b = spread;                                                                        \
                step = 0;                                                                          \
            }                                                                                      \
            ptoisa_u32x8 x = {0}, y = {0}, z = {0}, w;                                             \
            (void)x, (void)y, (void)z;                                                             \
            for (; left >= 8; left -= 8) {                                                         \
                memcpy(&x, a, sizeof x);                                                           \
                memcpy(&y, b, sizeof y);                                                           \
                memcpy(&z, c, sizeof z);                                                           \
                w = result;                                                                        \
                memcpy(d, &w, sizeof w);                                                           \
                d += 8, a += 8, b += step, c += 8;                                                 \
            }                                                                                      \
            if (left > 0) {                                                                        \
                memcpy(&x, a, left * sizeof *a);                                                   \
                memcpy(&y, b, left * sizeof *b);                                                   \
                memcpy(&z, c, left * sizeof *c);                                                   \
                w = result;                                                                        \
                memcpy(d, &w, left * sizeof *d);                                                   \
            }                                                                                      \
        }                                                                                          \
    }

#define PTOISA_INT_MAP_CASE(set, SET, name, result)                                                \
    case PTOISA_MAP_##name:                                                                        \
        ptoisa_map_int_##name##_##set(map);                                                        \
        return;

#define PTOISA_DEFINE_INT_MAPS(set, SET)                                                           \
    PTOISA_INT_MAPS(PTOISA_DEFINE_INT_MAP, set, SET)                                               \
    PTOISA_FN void ptoisa_map_int_##set(ptoisa_map_op op, const ptoisa_map *map) {                 \
        switch (op) {                                                                              \
            PTOISA_INT_MAPS(PTOISA_INT_MAP_CASE, set, SET)                                         \
        default: return;                                                                           \
        }                                                                                          \
    }

// clang-format off
PTOISA_DEFINE_INT_MAPS(c, )
#if PTOISA_X86
PTOISA_DEFINE_INT_MAPS(avx2, PTOISA_AVX2)
#endif
// clang-format on

PTOISA_FN uint32_t ptoisa_int_slow(ptoisa_map_op op, uint32_t x, uint32_t y, bool is_unsigned) {
    switch (op) {
    case PTOISA_MAP_DIV: return ptoisa_div_int(x, y, is_unsigned);
    case PTOISA_MAP_DIV_BY: return ptoisa_div_int(y, x, is_unsigned);
    case PTOISA_MAP_RECIP: return ptoisa_div_int(1, x, is_unsigned);
    case PTOISA_MAP_REM: return ptoisa_rem_int(x, y, is_unsigned, false);
    case PTOISA_MAP_FMOD: return ptoisa_rem_int(x, y, is_unsigned, true);
    case PTOISA_MAP_POW: return ptoisa_pow_int(x, y, is_unsigned);
    default: return 0;
    }
}

PTOISA_FN void ptoisa_map_int(ptoisa_map_op op, bool is_unsigned, const ptoisa_map *map) {
    if (op == PTOISA_MAP_DIV || op == PTOISA_MAP_DIV_BY || op == PTOISA_MAP_RECIP ||
        op == PTOISA_MAP_REM || op == PTOISA_MAP_FMOD || op == PTOISA_MAP_POW) {
        for (uint32_t r = 0; r < map->rows; r++) {
            uint32_t *d = (uint32_t *)map->d + r * map->d_pitch;
            const uint32_t *a = (const uint32_t *)map->a + r * map->a_pitch;
            const uint32_t *b = (const uint32_t *)map->b + r * map->b_pitch;
            for (size_t i = 0; i < map->cols; i++) {
                d[i] = ptoisa_int_slow(op, a[i], b[map->is_scalar ? 0 : i], is_unsigned);
            }
        }
        return;
    }
    if (is_unsigned) {
        op = op == PTOISA_MAP_MAX   ? PTOISA_MAP_MAX_U
             : op == PTOISA_MAP_MIN ? PTOISA_MAP_MIN_U
             : op == PTOISA_MAP_SHR ? PTOISA_MAP_SHR_U
                                    : op;
    }
#if PTOISA_X86
    if (ptoisa_has_avx2()) {
        ptoisa_map_int_avx2(op, map);
        return;
    }
#endif
    ptoisa_map_int_c(op, map);
}

// -- other types, through 32 bits -----------------------------------------------------------------

// What the narrow types are computed in.
typedef union ptoisa_piece {
    float f32[PTOISA_PIECE];
    uint32_t u32[PTOISA_PIECE];
} ptoisa_piece;

// Copies n elements from one type to another, eight at a time. from and to are u32, u16 ..
#define PTOISA_DEFINE_COPY(set, SET, name, to, from, result)                                       \
    SET PTOISA_FN void ptoisa_##name##_##set(void *d, const void *s, size_t n) {                   \
        uint8_t *out = (uint8_t *)d;                                                               \
        const uint8_t *in = (const uint8_t *)s;                                                    \
        ptoisa_##from##x8 x = {0};                                                                 \
        ptoisa_##to##x8 w;                                                                         \
        for (; n >= 8; n -= 8, out += sizeof w, in += sizeof x) {                                  \
            memcpy(&x, in, sizeof x);                                                              \
            w = result;                                                                            \
            memcpy(out, &w, sizeof w);                                                             \
        }                                                                                          \
        if (n > 0) {                                                                               \
            memcpy(&x, in, n * sizeof x / 8);                                                      \
            w = result;                                                                            \
            memcpy(out, &w, n * sizeof w / 8);                                                     \
        }                                                                                          \
    }

#define PTOISA_X8_CONVERT(v, to) __builtin_convertvector(v, ptoisa_##to##x8)
#define PTOISA_BF16_BITS(x)                                                                        \
    PTOISA_X8_SELECT((x & 0x7fffffff) > 0x7f800000, x >> 16 | 0x40,                                \
                     (x + 0x7fff + (x >> 16 & 1)) >> 16)

#define PTOISA_DEFINE_COPIES(set, SET)                                                             \
    PTOISA_DEFINE_COPY(set, SET, widen_bf16, u32, u16, PTOISA_X8_CONVERT(x, u32) << 16)            \
    PTOISA_DEFINE_COPY(set, SET, widen_i8, i32, i8,                                                \
                       PTOISA_X8_CONVERT(PTOISA_X8_CONVERT(x, i16), i32))                          \
    PTOISA_DEFINE_COPY(set, SET, widen_i16, i32, i16, PTOISA_X8_CONVERT(x, i32))                   \
    PTOISA_DEFINE_COPY(set, SET, widen_u8, u32, u8,                                                \
                       PTOISA_X8_CONVERT(PTOISA_X8_CONVERT(x, u16), u32))                          \
    PTOISA_DEFINE_COPY(set, SET, widen_u16, u32, u16, PTOISA_X8_CONVERT(x, u32))                   \
    PTOISA_DEFINE_COPY(set, SET, narrow_8, u8, u32,                                                \
                       PTOISA_X8_CONVERT(PTOISA_X8_CONVERT(x, u16), u8))                           \
    PTOISA_DEFINE_COPY(set, SET, narrow_16, u16, u32, PTOISA_X8_CONVERT(x, u16))                   \
    PTOISA_DEFINE_COPY(set, SET, narrow_bf16, u16, u32,                                            \
                       PTOISA_X8_CONVERT(PTOISA_BF16_BITS(x), u16))                                \
                                                                                                   \
    PTOISA_FN void ptoisa_widen_##set(ptoisa_dtype dtype, ptoisa_piece *d, const void *s,          \
                                      size_t n) {                                                  \
        switch (dtype) {                                                                           \
        case PTOISA_F16: ptoisa_widen_f16_##set(d->f32, (const uint16_t *)s, n); return;           \
        case PTOISA_BF16: ptoisa_widen_bf16_##set(d, s, n); return;                                \
        case PTOISA_I8: ptoisa_widen_i8_##set(d, s, n); return;                                    \
        case PTOISA_I16: ptoisa_widen_i16_##set(d, s, n); return;                                  \
        case PTOISA_U8: ptoisa_widen_u8_##set(d, s, n); return;                                    \
        case PTOISA_U16: ptoisa_widen_u16_##set(d, s, n); return;                                  \
        default: memcpy(d, s, n * 4); return;                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    PTOISA_FN void ptoisa_narrow_##set(ptoisa_dtype dtype, void *d, const ptoisa_piece *s,         \
                                       size_t n) {                                                 \
        switch (dtype) {                                                                           \
        case PTOISA_F16: ptoisa_narrow_f16_##set((uint16_t *)d, s->f32, n); return;                \
        case PTOISA_BF16: ptoisa_narrow_bf16_##set(d, s, n); return;                               \
        case PTOISA_I8:                                                                            \
        case PTOISA_U8: ptoisa_narrow_8_##set(d, s, n); return;                                    \
        case PTOISA_I16:                                                                           \
        case PTOISA_U16: ptoisa_narrow_16_##set(d, s, n); return;                                  \
        default: memcpy(d, s, n * 4); return;                                                      \
        }                                                                                          \
    }

// clang-format off
#if PTOISA_NEON
PTOISA_FN void ptoisa_widen_f16_c(float *d, const uint16_t *s, size_t n) {
    for (; n >= 4; n -= 4, d += 4, s += 4) {
        vst1q_f32(d, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(s))));
    }
    for (size_t i = 0; i < n; i++) {
        d[i] = ptoisa_f32_from_f16(s[i]);
    }
}

PTOISA_FN void ptoisa_narrow_f16_c(uint16_t *d, const float *s, size_t n) {
    for (; n >= 4; n -= 4, d += 4, s += 4) {
        vst1_u16(d, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(s))));
    }
    for (size_t i = 0; i < n; i++) {
        d[i] = ptoisa_f16_from_f32(s[i]);
    }
}
#else
PTOISA_FN void ptoisa_widen_f16_c(float *d, const uint16_t *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        d[i] = ptoisa_f32_from_f16(s[i]);
    }
}

PTOISA_FN void ptoisa_narrow_f16_c(uint16_t *d, const float *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        d[i] = ptoisa_f16_from_f32(s[i]);
    }
}
#endif
PTOISA_DEFINE_COPIES(c, )

#if PTOISA_X86
PTOISA_AVX2 PTOISA_FN void ptoisa_widen_f16_avx2(float *d, const uint16_t *s, size_t n) {
    for (; n >= 8; n -= 8, d += 8, s += 8) {
        _mm256_storeu_ps(d, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)s)));
    }
    for (size_t i = 0; i < n; i++) {
        d[i] = ptoisa_f32_from_f16(s[i]);
    }
}

PTOISA_AVX2 PTOISA_FN void ptoisa_narrow_f16_avx2(uint16_t *d, const float *s, size_t n) {
    for (; n >= 8; n -= 8, d += 8, s += 8) {
        _mm_storeu_si128((__m128i *)(void *)d,
                         _mm256_cvtps_ph(_mm256_loadu_ps(s), _MM_FROUND_TO_NEAREST_INT));
    }
    for (size_t i = 0; i < n; i++) {
        d[i] = ptoisa_f16_from_f32(s[i]);
    }
}

PTOISA_DEFINE_COPIES(avx2, PTOISA_AVX2)
#endif
// clang-format on

// Widens n elements, at most PTOISA_PIECE.
PTOISA_FN void ptoisa_widen(ptoisa_dtype dtype, ptoisa_piece *d, const void *s, size_t n) {
#if PTOISA_X86
    if (ptoisa_has_avx2()) {
        ptoisa_widen_avx2(dtype, d, s, n);
        return;
    }
#endif
    ptoisa_widen_c(dtype, d, s, n);
}

PTOISA_FN void ptoisa_narrow(ptoisa_dtype dtype, void *d, const ptoisa_piece *s, size_t n) {
#if PTOISA_X86
    if (ptoisa_has_avx2()) {
        ptoisa_narrow_avx2(dtype, d, s, n);
        return;
    }
#endif
    ptoisa_narrow_c(dtype, d, s, n);
}

// -- all types ------------------------------------------------------------------------------------

// Maps words: f32, i32, u32, or what narrower types were widened to.
PTOISA_INLINE void ptoisa_map_words(ptoisa_map_op op, ptoisa_dtype dtype, const ptoisa_map *map) {
    if (ptoisa_dtype_is_float(dtype)) {
        ptoisa_map_f32(op, map);
    } else {
        ptoisa_map_int(op, dtype >= PTOISA_U8, map);
    }
}

// The same with a, b, c and d in any type; a in one of its own.
PTOISA_FN void ptoisa_map_pieces(ptoisa_map_op op, ptoisa_dtype dtype, ptoisa_dtype a_dtype,
                                 const ptoisa_map *map) {
    size_t size = ptoisa_dtype_size(dtype), a_size = ptoisa_dtype_size(a_dtype);
    ptoisa_piece d, a, b, c;
    ptoisa_map piece = *map;
    piece.rows = 1;
    piece.d = &d, piece.a = &a, piece.b = map->b ? &b : &a, piece.c = map->c ? &c : &a;
    for (uint32_t r = 0; r < map->rows; r++) {
        uint8_t *d_row = (uint8_t *)map->d + r * map->d_pitch * size;
        const uint8_t *a_row = (const uint8_t *)map->a + r * map->a_pitch * a_size;
        for (size_t at = 0; at < map->cols; at += PTOISA_PIECE) {
            size_t n = map->cols - at < PTOISA_PIECE ? map->cols - at : PTOISA_PIECE;
            piece.cols = n;
            ptoisa_widen(a_dtype, &a, a_row + at * a_size, n);
            if (map->b) {
                const uint8_t *b_row = (const uint8_t *)map->b + r * map->b_pitch * size;
                ptoisa_widen(dtype, &b, map->is_scalar ? b_row : b_row + at * size,
                             map->is_scalar ? 1 : n);
            }
            if (map->c) {
                const uint8_t *c_row = (const uint8_t *)map->c + r * map->c_pitch * size;
                ptoisa_widen(dtype, &c, c_row + at * size, n);
            }
            ptoisa_map_words(op, dtype, &piece);
            ptoisa_narrow(dtype, d_row + at * size, &d, n);
        }
    }
}

// Maps operands of one type; a may be of another that fits in 32 bits as well.
PTOISA_FN void ptoisa_map_run(ptoisa_map_op op, ptoisa_dtype dtype, ptoisa_dtype a_dtype,
                              ptoisa_map map) {
    bool is_b_in_line = map.b == NULL || map.b_pitch == (map.is_scalar ? 0 : map.cols);
    if (map.d_pitch == map.cols && map.a_pitch == map.cols && is_b_in_line &&
        (map.c == NULL || map.c_pitch == map.cols)) {
        map.cols *= map.rows;
        map.rows = map.rows > 0;
    }
    if (ptoisa_dtype_size(dtype) != 4 || a_dtype != dtype) {
        ptoisa_map_pieces(op, dtype, a_dtype, &map);
        return;
    }
    if (map.b == NULL) {
        map.b = map.a, map.b_pitch = map.a_pitch, map.is_scalar = false;
    }
    if (map.c == NULL) {
        map.c = map.a, map.c_pitch = map.a_pitch;
    }
    ptoisa_map_words(op, dtype, &map);
}

#endif
