// Maps: the inner loops of element-wise instructions, expands and column reductions.
//
//      for each row r, for each column c:  d[r][c] = f(x, y, z)
//      x = a[r][c]    y = b[r][c], or b[r][0] for all columns    z = c[r][c]
//
// A pitch of 0 gives the same row again and again: a scalar, one row for all rows, or (d = a) the
// sum of all rows. Rows one after another become one long row. Any operand may be d itself.
//
// Two kinds of loops do the work, each compiled once for each width of vectors: f32 by the vectors of
// vector.h, and 32-bit integers by the compiler's own. All other types pass through them: pieces of a row are
// widened into buffers, mapped, and narrowed; for the integers that wrap this is the same, and f16
// and bf16 are so computed in f32 and rounded once.

#ifndef PTOISA_MAP_H
#define PTOISA_MAP_H

#include "arith.h"
#include "cast.h"
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
    PTOISA_MAP_COPY,     // y, of words: a float register of an x87 would make NaNs quiet
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
    PTOISA_MAP_NOT
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

// The loops of an operation: runs the map for words of a kind, if it has one, and identifies the
// operation (also without a map). An instruction names the loops of its own operation,
// ptoisa_loops_ADD: so a kernel is compiled with the loops of its instructions only. They are
// functions and not a table, as addresses in a table would make it writable where code has no fixed
// place.
typedef enum ptoisa_word { PTOISA_WORD_F32 = 0, PTOISA_WORD_I32, PTOISA_WORD_U32 } ptoisa_word;

typedef ptoisa_map_op ptoisa_loops(ptoisa_word word, const ptoisa_map *map);

// -- f32 ------------------------------------------------------------------------------------------

// The function of each operation; F(set, name) is an operation of the instruction set.
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
    MAP(set, SET, EXP, PTOISA_F(set, exp)(x))                                                      \
    MAP(set, SET, LOG, PTOISA_F(set, log)(x))                                                      \
    MAP(set, SET, SQRT, PTOISA_F(set, sqrt)(x))                                                    \
    MAP(set, SET, RSQRT, PTOISA_F(set, div)(PTOISA_F(set, all)(1.0f), PTOISA_F(set, sqrt)(x)))     \
    MAP(set, SET, RECIP, PTOISA_F(set, div)(PTOISA_F(set, all)(1.0f), x))                          \
    MAP(set, SET, ABS, PTOISA_F(set, abs)(x))                                                      \
    MAP(set, SET, NEG, PTOISA_F(set, neg)(x))                                                      \
    MAP(set, SET, RELU, PTOISA_F(set, at_least)(x, zero))

// A scalar is spread into one vector in memory and the loop then does not advance, so that scalars
// need no loops of their own. Unused operands are not loaded.
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

#define PTOISA_DEFINE_F32_MAPS(set, SET) PTOISA_F32_MAPS(PTOISA_DEFINE_F32_MAP, set, SET)

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

// The widest that this machine has.
#if PTOISA_X86
#define PTOISA_F32_BEST(name)                                                                      \
    (ptoisa_has_avx512() ? ptoisa_map_##name##_avx512                                              \
     : ptoisa_has_avx2() ? ptoisa_map_##name##_avx2                                                \
                         : ptoisa_map_##name##_c)
#elif PTOISA_NEON
#define PTOISA_F32_BEST(name) ptoisa_map_##name##_neon
#else
#define PTOISA_F32_BEST(name) ptoisa_map_##name##_c
#endif

#define PTOISA_DEFINE_F32_LOOP(set, SET, name, result)                                             \
    PTOISA_FN void ptoisa_map_f32_##name(const ptoisa_map *map) {                                  \
        PTOISA_F32_BEST(name)(map);                                                                \
    }
// clang-format off
PTOISA_F32_MAPS(PTOISA_DEFINE_F32_LOOP, c, )
// clang-format on

// Operations that libm would be called for, one element at a time.
#define PTOISA_DEFINE_F32_SLOW(name, result)                                                       \
    PTOISA_FN void ptoisa_map_f32_##name(const ptoisa_map *map) {                                  \
        for (uint32_t r = 0; r < map->rows; r++) {                                                 \
            float *d = (float *)map->d + r * map->d_pitch;                                         \
            const float *a = (const float *)map->a + r * map->a_pitch;                             \
            const float *b = (const float *)map->b + r * map->b_pitch;                             \
            for (size_t i = 0; i < map->cols; i++) {                                               \
                float x = a[i], y = b[map->is_scalar ? 0 : i];                                     \
                d[i] = result;                                                                     \
            }                                                                                      \
        }                                                                                          \
    }

PTOISA_DEFINE_F32_SLOW(REM, ptoisa_rem_f32(x, y))
PTOISA_DEFINE_F32_SLOW(FMOD, ptoisa_fmod_f32(x, y))
PTOISA_DEFINE_F32_SLOW(POW, ptoisa_pow_f32(x, y))

// -- 32-bit integers ------------------------------------------------------------------------------

// L words, as the compiler's own vectors: 8 for AVX2, 4 for what every processor has.
#define PTOISA_SIGNED(L, v) ((ptoisa_i32x##L)(v))
#define PTOISA_PICK(L, mask, v, w)                                                                 \
    (((ptoisa_u32x##L)(mask) & (v)) | (~(ptoisa_u32x##L)(mask) & (w)))

// Of unsigned x, y, z, which wrap. A shift by the width or more (or by a negative count, which is
// large) leaves nothing but the sign.
#define PTOISA_INT_MAPS(MAP, L, set, SET)                                                          \
    MAP(L, set, SET, ADD, x + y)                                                                   \
    MAP(L, set, SET, SUB, x - y)                                                                   \
    MAP(L, set, SET, MUL, (x) * (y))                                                               \
    MAP(L, set, SET, MAX, PTOISA_PICK(L, PTOISA_SIGNED(L, x) > PTOISA_SIGNED(L, y), x, y))         \
    MAP(L, set, SET, MIN, PTOISA_PICK(L, PTOISA_SIGNED(L, x) < PTOISA_SIGNED(L, y), x, y))         \
    MAP(L, set, SET, MAX_U, PTOISA_PICK(L, x > y, x, y))                                           \
    MAP(L, set, SET, MIN_U, PTOISA_PICK(L, x < y, x, y))                                           \
    MAP(L, set, SET, ADD_ADD, x + y + z)                                                           \
    MAP(L, set, SET, SUB_ADD, x - y + z)                                                           \
    MAP(L, set, SET, ABS, PTOISA_PICK(L, PTOISA_SIGNED(L, x) < 0, -x, x))                          \
    MAP(L, set, SET, NEG, -x)                                                                      \
    MAP(L, set, SET, RELU, ~(ptoisa_u32x##L)(PTOISA_SIGNED(L, x) < 0) & (x))                       \
    MAP(L, set, SET, AND, (x) & (y))                                                               \
    MAP(L, set, SET, OR, x | y)                                                                    \
    MAP(L, set, SET, XOR, x ^ y)                                                                   \
    MAP(L, set, SET, NOT, ~x)                                                                      \
    MAP(L, set, SET, COPY, y)                                                                      \
    MAP(L, set, SET, SHL, (ptoisa_u32x##L)(y < 32) & (x << (y & 31)))                              \
    MAP(L, set, SET, SHR,                                                                          \
        (ptoisa_u32x##L)(PTOISA_SIGNED(L, x) >>                                                    \
                         PTOISA_SIGNED(L, PTOISA_PICK(L, y < 32, y, (y & 0) + 31))))               \
    MAP(L, set, SET, SHR_U, (ptoisa_u32x##L)(y < 32) & (x >> (y & 31)))

// One loop for each operation, over n words, a multiple of L; b advances by step.
typedef void (*ptoisa_map_line)(uint32_t *d, const uint32_t *a, const uint32_t *b,
                                const uint32_t *c, size_t step, size_t n);

#define PTOISA_DEFINE_INT_LINE(L, set, SET, name, result)                                          \
    SET PTOISA_FN void ptoisa_map_int_##name##_##set(uint32_t *d, const uint32_t *a,               \
                                                     const uint32_t *b, const uint32_t *c,         \
                                                     size_t step, size_t n) {                      \
        ptoisa_u32x##L x, y, z, w;                                                                 \
        for (; n > 0; n -= L, d += L, a += L, b += step, c += L) {                                 \
            memcpy(&x, a, sizeof x);                                                               \
            memcpy(&y, b, sizeof y);                                                               \
            memcpy(&z, c, sizeof z);                                                               \
            (void)x, (void)y, (void)z;                                                             \
            w = result;                                                                            \
            memcpy(d, &w, sizeof w);                                                               \
        }                                                                                          \
    }

#define PTOISA_DEFINE_INT_LINES(L, set, SET) PTOISA_INT_MAPS(PTOISA_DEFINE_INT_LINE, L, set, SET)

// clang-format off
PTOISA_DEFINE_INT_LINES(4, c, )
#if PTOISA_X86
PTOISA_DEFINE_INT_LINES(8, avx2, PTOISA_AVX2)
#endif
// clang-format on

// Runs a loop for vectors of L over all rows. A scalar is spread into one vector; what fills no vector
// at the end of a row goes through buffers.
PTOISA_FN void ptoisa_map_lines(ptoisa_map_line line, const ptoisa_map *map, const uint32_t L) {
    uint32_t last[4][8] = {{0}}, spread[8];
    const size_t left = map->cols % L, whole = map->cols - left, step = map->is_scalar ? 0 : L;
    for (uint32_t r = 0; r < map->rows; r++) {
        uint32_t *d = (uint32_t *)map->d + r * map->d_pitch;
        const uint32_t *a = (const uint32_t *)map->a + r * map->a_pitch;
        const uint32_t *b = (const uint32_t *)map->b + r * map->b_pitch;
        const uint32_t *c = (const uint32_t *)map->c + r * map->c_pitch;
        if (map->is_scalar) {
            for (uint32_t i = 0; i < L; i++) {
                spread[i] = *b;
            }
            b = spread;
        }
        if (whole > 0) {
            line(d, a, b, c, step, whole);
        }
        if (left > 0) {
            memcpy(last[0], a + whole, left * sizeof *a);
            memcpy(last[1], map->is_scalar ? b : b + whole, left * sizeof *b);
            memcpy(last[2], c + whole, left * sizeof *c);
            line(last[3], last[0], last[1], last[2], L, L);
            memcpy(d + whole, last[3], left * sizeof *d);
        }
    }
}

#if PTOISA_X86
#define PTOISA_INT_BEST(name, map)                                                                 \
    if (ptoisa_has_avx2()) {                                                                       \
        ptoisa_map_lines(ptoisa_map_int_##name##_avx2, map, 8);                                    \
        return;                                                                                    \
    }
#else
#define PTOISA_INT_BEST(name, map)
#endif

#define PTOISA_DEFINE_INT_LOOP(L, set, SET, name, result)                                          \
    PTOISA_FN void ptoisa_map_int_##name(const ptoisa_map *map) {                                  \
        PTOISA_INT_BEST(name, map)                                                                 \
        ptoisa_map_lines(ptoisa_map_int_##name##_c, map, 4);                                       \
    }
// clang-format off
PTOISA_INT_MAPS(PTOISA_DEFINE_INT_LOOP, 4, c, )
// clang-format on

// One element at a time.
#define PTOISA_DEFINE_INT_SLOW(type, name, result)                                                 \
    PTOISA_FN void ptoisa_map_##type##_##name(const ptoisa_map *map) {                             \
        for (uint32_t r = 0; r < map->rows; r++) {                                                 \
            uint32_t *d = (uint32_t *)map->d + r * map->d_pitch;                                   \
            const uint32_t *a = (const uint32_t *)map->a + r * map->a_pitch;                       \
            const uint32_t *b = (const uint32_t *)map->b + r * map->b_pitch;                       \
            for (size_t i = 0; i < map->cols; i++) {                                               \
                uint32_t x = a[i], y = b[map->is_scalar ? 0 : i];                                  \
                (void)y;                                                                           \
                d[i] = result;                                                                     \
            }                                                                                      \
        }                                                                                          \
    }

#define PTOISA_DEFINE_INTS_SLOW(type, is_unsigned)                                                 \
    PTOISA_DEFINE_INT_SLOW(type, DIV, ptoisa_div_int(x, y, is_unsigned))                           \
    PTOISA_DEFINE_INT_SLOW(type, DIV_BY, ptoisa_div_int(y, x, is_unsigned))                        \
    PTOISA_DEFINE_INT_SLOW(type, RECIP, ptoisa_div_int(1, x, is_unsigned))                         \
    PTOISA_DEFINE_INT_SLOW(type, REM, ptoisa_rem_int(x, y, is_unsigned, false))                    \
    PTOISA_DEFINE_INT_SLOW(type, FMOD, ptoisa_rem_int(x, y, is_unsigned, true))                    \
    PTOISA_DEFINE_INT_SLOW(type, POW, ptoisa_pow_int(x, y, is_unsigned))

// clang-format off
PTOISA_DEFINE_INTS_SLOW(i32, false)
PTOISA_DEFINE_INTS_SLOW(u32, true)
// clang-format on

// -- other types, through 32 bits -----------------------------------------------------------------

// The types in which narrow types are computed.
typedef union ptoisa_piece {
    float f32[PTOISA_PIECE];
    uint32_t u32[PTOISA_PIECE];
} ptoisa_piece;

// Widens n elements, at most PTOISA_PIECE; words are copied.
PTOISA_FN void ptoisa_widen(ptoisa_dtype dtype, ptoisa_piece *d, const void *s, size_t n) {
    if (!ptoisa_words_of(dtype, d, s, n, false)) {
        memcpy(d, s, n * sizeof d->u32[0]);
    }
}

PTOISA_FN void ptoisa_narrow(ptoisa_dtype dtype, void *d, const ptoisa_piece *s, size_t n) {
    switch (dtype) {
    case PTOISA_F16: ptoisa_f16s_from_f32(d, s, n); return;
    case PTOISA_BF16: ptoisa_bf16s_from_f32(d, s, n); return;
    case PTOISA_I8:
    case PTOISA_U8: ptoisa_low8_from_i32(d, s, n); return;
    case PTOISA_I16:
    case PTOISA_U16: ptoisa_low16_from_i32(d, s, n); return;
    default: memcpy(d, s, n * 4); return;
    }
}

// -- the loops of each operation ------------------------------------------------------------------

PTOISA_FN void ptoisa_map_none(const ptoisa_map *map) {
    (void)map;
}

#define PTOISA_DEFINE_LOOPS(name, f32, i32, u32)                                                   \
    PTOISA_FN ptoisa_map_op ptoisa_loops_##name(ptoisa_word word, const ptoisa_map *map) {         \
        if (map != NULL && word == PTOISA_WORD_F32) {                                              \
            f32(map);                                                                              \
        } else if (map != NULL) {                                                                  \
            word == PTOISA_WORD_I32 ? i32(map) : u32(map);                                         \
        }                                                                                          \
        return PTOISA_MAP_##name;                                                                  \
    }
#define PTOISA_WORD_LOOPS(name)                                                                    \
    PTOISA_DEFINE_LOOPS(name, ptoisa_map_f32_##name, ptoisa_map_int_##name, ptoisa_map_int_##name)
#define PTOISA_SLOW_LOOPS(name)                                                                    \
    PTOISA_DEFINE_LOOPS(name, ptoisa_map_f32_##name, ptoisa_map_i32_##name, ptoisa_map_u32_##name)
#define PTOISA_FLOAT_LOOPS(name)                                                                   \
    PTOISA_DEFINE_LOOPS(name, ptoisa_map_f32_##name, ptoisa_map_none, ptoisa_map_none)
#define PTOISA_INT_LOOPS(name)                                                                     \
    PTOISA_DEFINE_LOOPS(name, ptoisa_map_none, ptoisa_map_int_##name, ptoisa_map_int_##name)

// clang-format off
#define PTOISA_WORD_OPS(OP) OP(ADD) OP(SUB) OP(MUL) OP(ADD_ADD) OP(SUB_ADD) OP(ABS) OP(NEG) OP(RELU)
#define PTOISA_SLOW_OPS(OP) OP(DIV) OP(DIV_BY) OP(RECIP) OP(REM) OP(FMOD) OP(POW)
#define PTOISA_FLOAT_OPS(OP)                                                                       \
    OP(EXPDIF) OP(LEAKY) OP(MUL_ADD) OP(MUL_ADD_RELU) OP(SUB_RELU)                                 \
    OP(EXP) OP(LOG) OP(SQRT) OP(RSQRT)
#define PTOISA_INT_OPS(OP) OP(AND) OP(OR) OP(XOR) OP(NOT) OP(SHL) OP(COPY)

PTOISA_WORD_OPS(PTOISA_WORD_LOOPS)
PTOISA_SLOW_OPS(PTOISA_SLOW_LOOPS)
PTOISA_FLOAT_OPS(PTOISA_FLOAT_LOOPS)
PTOISA_INT_OPS(PTOISA_INT_LOOPS)
PTOISA_DEFINE_LOOPS(MAX, ptoisa_map_f32_MAX, ptoisa_map_int_MAX, ptoisa_map_int_MAX_U)
PTOISA_DEFINE_LOOPS(MIN, ptoisa_map_f32_MIN, ptoisa_map_int_MIN, ptoisa_map_int_MIN_U)
PTOISA_DEFINE_LOOPS(SHR, ptoisa_map_none, ptoisa_map_int_SHR, ptoisa_map_int_SHR_U)
// clang-format on

// -- all types ------------------------------------------------------------------------------------

// Maps words: f32, i32, u32, or what narrower types were widened to.
PTOISA_INLINE void ptoisa_map_words(ptoisa_loops *loops, ptoisa_dtype dtype,
                                    const ptoisa_map *map) {
    loops(ptoisa_dtype_is_float(dtype) ? PTOISA_WORD_F32
          : dtype >= PTOISA_U8         ? PTOISA_WORD_U32
                                       : PTOISA_WORD_I32,
          map);
}

// The same with a, b, c and d in any type; a in one of its own.
PTOISA_FN void ptoisa_map_pieces(ptoisa_loops *loops, ptoisa_dtype dtype, ptoisa_dtype a_dtype,
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
            ptoisa_map_words(loops, dtype, &piece);
            ptoisa_narrow(dtype, d_row + at * size, &d, n);
        }
    }
}

// Maps operands of one type; a may be of another that fits in 32 bits as well.
PTOISA_FN void ptoisa_map_run(ptoisa_loops *loops, ptoisa_dtype dtype, ptoisa_dtype a_dtype,
                              ptoisa_map map) {
    bool is_b_in_line = map.b == NULL || map.b_pitch == (map.is_scalar ? 0 : map.cols);
    if (map.d_pitch == map.cols && map.a_pitch == map.cols && is_b_in_line &&
        (map.c == NULL || map.c_pitch == map.cols)) {
        map.cols *= map.rows;
        map.rows = map.rows > 0;
    }
    if (ptoisa_dtype_size(dtype) != 4 || a_dtype != dtype) {
        ptoisa_map_pieces(loops, dtype, a_dtype, &map);
        return;
    }
    if (map.b == NULL) {
        map.b = map.a, map.b_pitch = map.a_pitch, map.is_scalar = false;
    }
    if (map.c == NULL) {
        map.c = map.a, map.c_pitch = map.a_pitch;
    }
    ptoisa_map_words(loops, dtype, &map);
}

#endif
