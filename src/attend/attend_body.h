// The inner loops of attention, once per instruction set: each of attend_portable.c, attend_x86.c and
// attend_neon.c includes this file with these macros, which it undefines. ptowsp.c has a copy for each.
//
//      PWSP_V_NAME(x)      x with the variant's suffix
//      PWSP_V_HALF(x)      with 16 lanes: x of a set with 8
//      PWSP_V_TARGET       the function attribute that allows the instructions
//      PWSP_V              a vector of PWSP_V_LANES floats: PWSP_V_LANES / 4 quads of 4
//      PWSP_V_SCORE_ROWS, PWSP_V_VALUE_ROWS   rows of a tile of f32: PWSP_ATTEND_TILE or 2
//      PWSP_V_TYPE_ROWS    rows of tiles that load other types: PWSP_ATTEND_TYPED, at most as many as
//                          others have; 0: no such tiles
//      PWSP_V_VALUE_VECTORS                   sums that a tile of values has room for
//      PWSP_V_LOAD, STORE, SET, FMA, MUL, ADD, SUB, DIV, MAX, FIRST, COPYSIGN(magnitude, sign)
//      PWSP_V_LOAD_F16, LOAD_BF16, LOAD_I8    a vector of elements as floats
//      PWSP_V_SET_F16(p)                      the f16 at p in all lanes; 8 bytes are there
//      PWSP_V_STORE_QUAD(p, a)                the first four lanes
//      PWSP_V_SET_QUAD(p)                     p[0..3] in every quad
//      PWSP_V_PACK_16_F32, _HALF, _I8         optional: see PWSP_V_PACK_QUADS
//      PWSP_V_UNROLL       whether loops of the softmax are unrolled: PWSP_UNROLL or nothing
//      PWSP_V_REDUCE4(a, b, c, d)             quad q of the result: the sums of quad q of a, b, c
//                                             and d, each as (x0 + x2) + (x1 + x3)
//      PWSP_V_FOLD_MAX(a), FOLD_ADD(a)        of all lanes; sums by halves
//      PWSP_V_EXP(a)       e^a for a <= 0, 0 below PWSP_EXP_LOWEST, NaN for NaN
//
// Keys are packed for groups of as many tokens as a vector has lanes. A vector has 4 dimensions of
// lanes / 4 tokens, and vector n has tokens n, n + 4, n + 8, ...: then PWSP_V_REDUCE4 gives the scores
// of a group in order.
//
//      packed[token / lanes][dim / 4][n][quad][4]
//
// A score is the sum of four sums, one for each dimension modulo 4, for every number of rows and of
// lanes. Values are summed token by token. So the shape of a tile never changes a row's bits.
//
// Few rows have elements converted as tiles load them, many have them converted once, before. Products of
// a byte and a scale are exact, so that bits are the same.
//
// Loops over a tile are unrolled completely. The loops around each tile are functions of their own,
// not inlined: inside one large function gcc 12 runs out of registers and spills.

#define PWSP_V_QUADS (PWSP_V_LANES / 4)

// -- elements to floats ---------------------------------------------------------------------------

// The last 8 of an odd number of them: by vectors, or where these have 16 lanes, by halves of them,
// PWSP_V_HALF(x) of the set below. A lane is computed alone, so bits are the same.
#if PWSP_V_LANES == 16
#define PWSP_V_CONVERT_8(suffix, load, from, to, bytes) PWSP_V_HALF(row_##suffix)(from, 8, to);
#define PWSP_V_VALUE_8(suffix, row_count)                                                          \
    if (d < dim) {                                                                                 \
        PWSP_V_HALF(values_##suffix##_##row_count)                                                 \
        (rows, count, ahead, weights, factors, d, dim, accs);                                      \
    }
#define PWSP_V_DIVIDE_8(row, l) PWSP_V_HALF(divide)(row, 8, l)
#else
#define PWSP_V_CONVERT_8(suffix, load, from, to, bytes)                                            \
    PWSP_UNROLL for (size_t i = 0; i < 8; i += PWSP_V_LANES) {                                     \
        PWSP_V_STORE((to) + i, load((from) + i * (bytes)));                                        \
    }
#define PWSP_V_VALUE_8(suffix, row_count)
#define PWSP_V_DIVIDE_8(row, l) ((void)0)
#endif

// A row, and rows one after another.
#define PWSP_V_ROW(suffix, PWSP_V_LOAD_ELEMENTS, bytes)                                            \
    PWSP_V_TARGET PWSP_FORCE_INLINE void PWSP_V_NAME(row_##suffix)(const char *from, size_t count, \
                                                                   float *to) {                    \
        size_t at = 0;                                                                             \
        for (; at + 16 <= count; at += 16) {                                                       \
            PWSP_UNROLL for (size_t i = 0; i < 16; i += PWSP_V_LANES) {                            \
                PWSP_V_STORE(to + at + i, PWSP_V_LOAD_ELEMENTS(from + (at + i) * (bytes)));        \
            }                                                                                      \
        }                                                                                          \
        if (at < count) {                                                                          \
            PWSP_V_CONVERT_8(suffix, PWSP_V_LOAD_ELEMENTS, from + at * (bytes), to + at, bytes)    \
        }                                                                                          \
    }
#define PWSP_V_ROWS(suffix)                                                                        \
    PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(rows_##suffix)(                            \
        const char *const *rows, size_t row_count, size_t dim, float *to) {                        \
        for (size_t r = 0; r < row_count; r++) {                                                   \
            PWSP_V_NAME(row_##suffix)(rows[r], dim, to + r * dim);                                 \
        }                                                                                          \
    }

// A block: 32 bytes times the scale at `from`.
PWSP_V_TARGET PWSP_FORCE_INLINE void PWSP_V_NAME(block)(const char *from, const char *bytes,
                                                        float *to) {
    const PWSP_V scale = PWSP_V_SET_F16(from);
    PWSP_UNROLL for (size_t i = 0; i < 32; i += PWSP_V_LANES) {
        PWSP_V_STORE(to + i, PWSP_V_MUL(PWSP_V_LOAD_I8(bytes + i), scale));
    }
}

PWSP_V_TARGET PWSP_FORCE_INLINE void PWSP_V_NAME(row_q8_0)(const char *from, size_t count,
                                                           float *to) {
    for (size_t at = 0; at < count; at += 32, from += 34) {
        PWSP_V_NAME(block)(from, from + 2, to + at);
    }
}

PWSP_V_TARGET PWSP_FORCE_INLINE void PWSP_V_NAME(row_q4_0)(const char *from, size_t count,
                                                           float *to) {
    for (size_t at = 0; at < count; at += 32, from += 18) {
        char bytes[32];
        pwsp_attend_nibbles(from + 2, bytes);
        PWSP_V_NAME(block)(from, bytes, to + at);
    }
}

PWSP_V_ROW(f32, PWSP_V_LOAD_F32, 4)
PWSP_V_ROW(f16, PWSP_V_LOAD_F16, 2)
PWSP_V_ROW(bf16, PWSP_V_LOAD_BF16, 2)
PWSP_V_ROW(i8, PWSP_V_LOAD_I8, 1)
PWSP_V_ROWS(f32)
PWSP_V_ROWS(f16)
PWSP_V_ROWS(bf16)
PWSP_V_ROWS(i8)
PWSP_V_ROWS(q8_0)
PWSP_V_ROWS(q4_0)
#undef PWSP_V_ROW
#undef PWSP_V_ROWS

static void PWSP_V_NAME(convert)(ptowsp_attend_type type, const char *const *rows, size_t row_count,
                                 size_t dim, float *to) {
    switch (type) {
    case PTOWSP_ATTEND_F16: PWSP_V_NAME(rows_f16)(rows, row_count, dim, to); break;
    case PTOWSP_ATTEND_BF16: PWSP_V_NAME(rows_bf16)(rows, row_count, dim, to); break;
    case PTOWSP_ATTEND_I8: PWSP_V_NAME(rows_i8)(rows, row_count, dim, to); break;
    case PTOWSP_ATTEND_Q8_0: PWSP_V_NAME(rows_q8_0)(rows, row_count, dim, to); break;
    case PTOWSP_ATTEND_Q4_0: PWSP_V_NAME(rows_q4_0)(rows, row_count, dim, to); break;
    default: PWSP_V_NAME(rows_f32)(rows, row_count, dim, to); break;
    }
}

// -- packing --------------------------------------------------------------------------------------

// Packs the keys of PWSP_ATTEND_PART rows as they are. Dimension d is at byte offset(d) of a row.
#define PWSP_V_PACK(suffix, PWSP_V_PACK_16, bytes, offset)                                         \
    PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(pack_##suffix)(const char *const *rows,    \
                                                                       size_t dim, char *out) {    \
        for (size_t at = 0; at < PWSP_ATTEND_PART; at += PWSP_V_LANES) {                           \
            for (size_t n = 0; n < 4; n++) {                                                       \
                const char *from[PWSP_V_QUADS];                                                    \
                PWSP_UNROLL for (size_t q = 0; q < PWSP_V_QUADS; q++) {                            \
                    from[q] = rows[at + n + 4 * q];                                                \
                }                                                                                  \
                char *to = out + (at * dim + n * PWSP_V_LANES) * (bytes);                          \
                size_t d = 0;                                                                      \
                for (; d + 16 <= dim; d += 16, to += 16 * PWSP_V_LANES * (bytes)) {                \
                    PWSP_V_PACK_16(from, offset(d), bytes, to);                                    \
                }                                                                                  \
                if (d < dim) {                                                                     \
                    PWSP_V_PACK_SOME(from, offset(d), bytes, to, 2);                               \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

// Dimensions of PWSP_V_LANES / 4 rows, 4 * quads of them: quad by quad, vectors that lie 4 *
// PWSP_V_LANES elements apart.
#define PWSP_V_PACK_SOME(from, at, bytes, to, quads)                                               \
    PWSP_UNROLL for (size_t u = 0; u < (quads); u++) {                                             \
        PWSP_UNROLL for (size_t q = 0; q < PWSP_V_QUADS; q++) {                                    \
            memcpy((to) + (4 * u * PWSP_V_LANES + 4 * q) * (bytes),                                \
                   (from)[q] + (at) + 4 * u * (bytes), 4 * (bytes));                               \
        }                                                                                          \
    }
#define PWSP_V_PACK_QUADS(from, at, bytes, to) PWSP_V_PACK_SOME(from, at, bytes, to, 4)

#if !defined(PWSP_V_PACK_16_F32)
#define PWSP_V_PACK_16_F32  PWSP_V_PACK_QUADS
#define PWSP_V_PACK_16_HALF PWSP_V_PACK_QUADS
#define PWSP_V_PACK_16_I8   PWSP_V_PACK_QUADS
#endif
#define PWSP_V_AT_F32(d)  ((d)*4)
#define PWSP_V_AT_HALF(d) ((d)*2)
#define PWSP_V_AT_I8(d)   (d)
#define PWSP_V_AT_Q8_0(d) ((d) / 32 * 34 + 2 + (d) % 32)
PWSP_V_PACK(f32, PWSP_V_PACK_16_F32, 4, PWSP_V_AT_F32)
PWSP_V_PACK(half, PWSP_V_PACK_16_HALF, 2, PWSP_V_AT_HALF)
PWSP_V_PACK(i8, PWSP_V_PACK_16_I8, 1, PWSP_V_AT_I8)
PWSP_V_PACK(q8_0, PWSP_V_PACK_16_I8, 1, PWSP_V_AT_Q8_0)
#undef PWSP_V_AT_F32
#undef PWSP_V_AT_HALF
#undef PWSP_V_AT_I8
#undef PWSP_V_AT_Q8_0
#undef PWSP_V_PACK
#undef PWSP_V_PACK_QUADS
#undef PWSP_V_PACK_SOME
#undef PWSP_V_PACK_16_F32
#undef PWSP_V_PACK_16_HALF
#undef PWSP_V_PACK_16_I8

// The scales of packed rows of Q8_0, as scales[group][block][n][quad][4]: the four vectors of a group
// have the same for a block's 32 dimensions.
PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(pack_scales)(const char *const *rows,
                                                                 size_t dim, float *scales) {
    const size_t blocks = dim / 32;
    for (size_t t = 0; t < PWSP_ATTEND_PART; t++) {
        const size_t group = t / PWSP_V_LANES, n = t % 4, quad = t % PWSP_V_LANES / 4;
        float *scale = scales + (group * blocks * 4 + n) * PWSP_V_LANES + quad * 4;
        for (size_t b = 0; b < blocks; b++) {
            PWSP_V_STORE_QUAD(scale + b * 4 * PWSP_V_LANES, PWSP_V_SET_F16(rows[t] + b * 34));
        }
    }
}

// Packed bytes times them.
PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(scale_packed)(const char *bytes, size_t dim,
                                                                  const float *scales, float *to) {
    const size_t all = PWSP_ATTEND_PART / PWSP_V_LANES * (dim / 32);
    for (size_t i = 0; i < all; i++, scales += 4 * PWSP_V_LANES) {
        for (size_t step = 0; step < 8; step++) {
            PWSP_UNROLL for (size_t n = 0; n < 4; n++) {
                PWSP_V scale = PWSP_V_LOAD(scales + n * PWSP_V_LANES);
                PWSP_V_STORE(to, PWSP_V_MUL(PWSP_V_LOAD_I8(bytes), scale));
                bytes += PWSP_V_LANES;
                to += PWSP_V_LANES;
            }
        }
    }
}

static void PWSP_V_NAME(pack)(ptowsp_attend_type type, const char *const *rows, size_t dim,
                              char *out, float *scales) {
    switch (type) {
    case PTOWSP_ATTEND_F16:
    case PTOWSP_ATTEND_BF16: PWSP_V_NAME(pack_half)(rows, dim, out); break;
    case PTOWSP_ATTEND_I8: PWSP_V_NAME(pack_i8)(rows, dim, out); break;
    case PTOWSP_ATTEND_Q8_0:
        PWSP_V_NAME(pack_q8_0)(rows, dim, out);
        PWSP_V_NAME(pack_scales)(rows, dim, scales);
        break;
    default: PWSP_V_NAME(pack_f32)(rows, dim, out); break;
    }
}

// Packed elements, as floats.
static void PWSP_V_NAME(unpack)(ptowsp_attend_type type, const char *packed, const float *scales,
                                size_t dim, float *out) {
    if (type == PTOWSP_ATTEND_Q8_0) {
        PWSP_V_NAME(scale_packed)(packed, dim, scales, out);
    } else {
        PWSP_V_NAME(convert)(type, &packed, 1, PWSP_ATTEND_PART * dim, out);
    }
}

// -- tiles ----------------------------------------------------------------------------------------

PWSP_V_TILES(f32, 4, PWSP_V_BASE_F32, PWSP_V_KEY_F32, PWSP_V_VALUE_F32)
#if PWSP_V_TYPE_ROWS > 0
PWSP_V_TILES(f16, 2, PWSP_V_BASE_HALF, PWSP_V_KEY_F16, PWSP_V_VALUE_F16)
PWSP_V_TILES(bf16, 2, PWSP_V_BASE_HALF, PWSP_V_KEY_BF16, PWSP_V_VALUE_BF16)
PWSP_V_TILES(i8, 1, PWSP_V_BASE_I8, PWSP_V_KEY_I8, PWSP_V_VALUE_I8)
PWSP_V_TILES(q8_0, 1, PWSP_V_BASE_Q8_0, PWSP_V_KEY_Q8_0, PWSP_V_VALUE_Q8_0)
#endif

#define PWSP_V_SCORES(suffix, row_count)                                                           \
    PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(scores_##suffix##_##row_count)(            \
        const float *const *queries, const char *keys, const float *scales,                        \
        pwsp_attend_ahead *ahead, size_t dim, float *scores) {                                     \
        PWSP_V_NAME(score_##suffix)(queries, keys, scales, ahead, dim, row_count, scores);         \
    }

// Strips of so many vectors, where they fit. Those of 2 are for rows that have none of 4: else the last
// few vectors come one by one, which is slower, but compiles in a fifth less time.
#define PWSP_V_VALUE_LOOP(suffix, row_count, vectors, is_used)                                     \
    for (; (is_used) && (vectors) * (row_count) <= PWSP_V_VALUE_VECTORS &&                         \
           d + (vectors)*PWSP_V_LANES <= dim;                                                      \
         d += (vectors)*PWSP_V_LANES) {                                                            \
        PWSP_V_NAME(value_##suffix)                                                                \
        (rows, count, ahead, weights, factors, row_count, d, vectors, accs);                       \
    }

#define PWSP_V_VALUES(suffix, row_count)                                                           \
    PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(values_##suffix##_##row_count)(            \
        const char *const *rows, size_t count, pwsp_attend_ahead *ahead, const float *weights,     \
        const float *factors, size_t d, size_t dim, float *const *accs) {                          \
        PWSP_V_VALUE_LOOP(suffix, row_count, 8, (row_count) <= 2)                                  \
        PWSP_V_VALUE_LOOP(suffix, row_count, 4, true)                                              \
        PWSP_V_VALUE_LOOP(suffix, row_count, 2, 4 * (row_count) > PWSP_V_VALUE_VECTORS)            \
        PWSP_V_VALUE_LOOP(suffix, row_count, 1, PWSP_V_LANES < 16)                                 \
        PWSP_V_VALUE_8(suffix, row_count)                                                          \
    }

// EACH(suffix, 1), EACH(suffix, 2), ... up to the rows that a tile has.
#define PWSP_V_EACH_2(EACH, suffix) EACH(suffix, 1) EACH(suffix, 2)
#define PWSP_V_EACH_4(EACH, suffix) PWSP_V_EACH_2(EACH, suffix) EACH(suffix, 3) EACH(suffix, 4)
#define PWSP_V_EACH_6(EACH, suffix) PWSP_V_EACH_4(EACH, suffix) EACH(suffix, 5) EACH(suffix, 6)
#if PWSP_V_SCORE_ROWS > 2
#define PWSP_V_SCORE_EACH PWSP_V_EACH_6
#define PWSP_V_SCORE_TYPE PWSP_V_EACH_4
#else
#define PWSP_V_SCORE_EACH PWSP_V_EACH_2
#define PWSP_V_SCORE_TYPE PWSP_V_EACH_2
#endif
#if PWSP_V_VALUE_ROWS > 2
#define PWSP_V_VALUE_EACH PWSP_V_EACH_6
#else
#define PWSP_V_VALUE_EACH PWSP_V_EACH_2
#endif
PWSP_V_SCORE_EACH(PWSP_V_SCORES, f32)
PWSP_V_VALUE_EACH(PWSP_V_VALUES, f32)
#if PWSP_V_TYPE_ROWS > 0
PWSP_V_SCORE_TYPE(PWSP_V_SCORES, f16)
PWSP_V_SCORE_TYPE(PWSP_V_SCORES, bf16)
PWSP_V_SCORE_TYPE(PWSP_V_SCORES, i8)
PWSP_V_SCORE_TYPE(PWSP_V_SCORES, q8_0)
PWSP_V_EACH_4(PWSP_V_VALUES, f16)
PWSP_V_EACH_4(PWSP_V_VALUES, bf16)
PWSP_V_EACH_4(PWSP_V_VALUES, i8)
PWSP_V_EACH_4(PWSP_V_VALUES, q8_0)
#endif

// Switches, as tables of functions would be relocated.
#define PWSP_V_CASE_f32  (uint32_t)(PTOWSP_ATTEND_F32) * 8
#define PWSP_V_CASE_f16  (uint32_t)(PTOWSP_ATTEND_F16) * 8
#define PWSP_V_CASE_bf16 (uint32_t)(PTOWSP_ATTEND_BF16) * 8
#define PWSP_V_CASE_i8   (uint32_t)(PTOWSP_ATTEND_I8) * 8
#define PWSP_V_CASE_q8_0 (uint32_t)(PTOWSP_ATTEND_Q8_0) * 8
#define PWSP_V_SCORE_CASE(suffix, row_count)                                                       \
    case PWSP_V_CASE_##suffix + (row_count):                                                       \
        PWSP_V_NAME(scores_##suffix##_##row_count)(queries, keys, scales, ahead, dim, scores);     \
        break;
#define PWSP_V_VALUE_CASE(suffix, row_count)                                                       \
    case PWSP_V_CASE_##suffix + (row_count):                                                       \
        PWSP_V_NAME(values_##suffix##_##row_count)                                                 \
        (rows, count, ahead, weights, factors, 0, dim, accs);                                      \
        break;

static void PWSP_V_NAME(scores)(ptowsp_attend_type type, size_t row_count,
                                const float *const *queries, const char *keys, const float *scales,
                                pwsp_attend_ahead *ahead, size_t dim, float *scores) {
    switch ((uint32_t)type * 8 + row_count) {
        PWSP_V_SCORE_EACH(PWSP_V_SCORE_CASE, f32)
#if PWSP_V_TYPE_ROWS > 0
        PWSP_V_SCORE_TYPE(PWSP_V_SCORE_CASE, f16)
        PWSP_V_SCORE_TYPE(PWSP_V_SCORE_CASE, bf16)
        PWSP_V_SCORE_TYPE(PWSP_V_SCORE_CASE, i8)
        PWSP_V_SCORE_TYPE(PWSP_V_SCORE_CASE, q8_0)
#endif
    default: PTOWSP_ASSERT(false && "no such tile"); break;
    }
}

static void PWSP_V_NAME(values)(ptowsp_attend_type type, size_t row_count, const char *const *rows,
                                size_t count, pwsp_attend_ahead *ahead, const float *weights,
                                const float *factors, size_t dim, float *const *accs) {
    switch ((uint32_t)type * 8 + row_count) {
        PWSP_V_VALUE_EACH(PWSP_V_VALUE_CASE, f32)
#if PWSP_V_TYPE_ROWS > 0
        PWSP_V_EACH_4(PWSP_V_VALUE_CASE, f16)
        PWSP_V_EACH_4(PWSP_V_VALUE_CASE, bf16)
        PWSP_V_EACH_4(PWSP_V_VALUE_CASE, i8)
        PWSP_V_EACH_4(PWSP_V_VALUE_CASE, q8_0)
#endif
    default: PTOWSP_ASSERT(false && "no such tile"); break;
    }
}

// -- scores to weights ----------------------------------------------------------------------------

// cap * tanh(x / cap), of z = |x / cap| first. (1 - e^-2z) / (1 + e^-2z) is off by some 1e-7, too much
// where z is small. So it is held between two of the Taylor polynomials of tanh: up to z^7, which is
// below tanh for all z, and up to z^9, which is above; they differ by less than 4e-7 of tanh up to
// z = 0.25. Beyond 8 they might overflow.
PWSP_V_TARGET PWSP_FORCE_INLINE PWSP_V PWSP_V_NAME(soft_cap)(PWSP_V x, PWSP_V cap,
                                                             PWSP_V two_over_cap) {
    PWSP_V y = PWSP_V_MUL(x, two_over_cap), one = PWSP_V_SET(1.0f), zero = PWSP_V_SET(0.0f);
    PWSP_V minus = PWSP_V_SUB(zero, PWSP_V_MAX(y, PWSP_V_SUB(zero, y))), power = PWSP_V_EXP(minus);
    PWSP_V tanh = PWSP_V_DIV(PWSP_V_SUB(one, power), PWSP_V_ADD(one, power));
    PWSP_V z = PWSP_V_MUL(PWSP_V_MAX(minus, PWSP_V_SET(-16.0f)), PWSP_V_SET(-0.5f));
    PWSP_V square = PWSP_V_MUL(z, z), fourth = PWSP_V_MUL(square, square);
    PWSP_V ninth = PWSP_V_MUL(z, PWSP_V_MUL(fourth, fourth));
    PWSP_V low = PWSP_V_FMA(square, PWSP_V_SET(-17.0f / 315.0f), PWSP_V_SET(2.0f / 15.0f));
    low = PWSP_V_FMA(square, low, PWSP_V_SET(-1.0f / 3.0f));
    low = PWSP_V_MUL(z, PWSP_V_FMA(square, low, one));
    tanh = PWSP_V_SUB(zero, PWSP_V_MAX(low, tanh));  // NaN remains, as the second of two
    tanh = PWSP_V_MAX(PWSP_V_SUB(zero, PWSP_V_FMA(ninth, PWSP_V_SET(62.0f / 2835.0f), low)), tanh);
    return PWSP_V_COPYSIGN(PWSP_V_MUL(cap, tanh), y);  // of the other sign until here
}

// Products of one row as scores, in place: with a cap, a bias (or NULL), or where the row sees only
// tokens [low, high) of the block.
PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(score_row)(const pwsp_attend_scoring *how,
                                                               const pwsp_attend_bias *bias,
                                                               float *scores, size_t low,
                                                               size_t high) {
    PWSP_V scale = PWSP_V_SET(how->scale), cap = PWSP_V_SET(how->cap), zero = PWSP_V_SET(0.0f);
    PWSP_V two_over_cap = PWSP_V_SET(2.0f / how->cap);
    for (size_t t = 0; t < PWSP_ATTEND_BLOCK; t += PWSP_V_LANES) {
        PWSP_V x = PWSP_V_MUL(PWSP_V_LOAD(scores + t), scale);
        x = how->key_scales ? PWSP_V_MUL(x, PWSP_V_LOAD(how->key_scales + t)) : x;
        x = how->cap > 0.0f ? PWSP_V_NAME(soft_cap)(x, cap, two_over_cap) : x;
        if (bias) {
            PWSP_V count = PWSP_V_LOAD(pwsp_attend_counts + t);
            PWSP_V far = PWSP_V_SUB(count, PWSP_V_SET(bias->distance));
            far = PWSP_V_MAX(far, PWSP_V_SUB(zero, far));
            x = PWSP_V_FMA(PWSP_V_SET(-bias->slope), far, x);
        }
        PWSP_V_STORE(scores + t, x);
    }
    for (size_t t = low; bias && bias->seen != UINT64_MAX && t < high; t++) {
        scores[t] = bias->seen >> t & 1 ? scores[t] : -pwsp_infinity();
    }
    for (size_t t = 0; t < low; t++) {
        scores[t] = -pwsp_infinity();
    }
    for (size_t t = high; t < PWSP_ATTEND_BLOCK; t++) {
        scores[t] = -pwsp_infinity();
    }
}

// Turns products of one row into weights, updates the row's state, and returns what its sums so far
// are to be multiplied by. Weights are summed in 16 sums, for every PWSP_V_LANES.
PWSP_V_TARGET PWSP_FORCE_INLINE float PWSP_V_NAME(softmax_row)(const pwsp_attend_scoring *how,
                                                               const pwsp_attend_bias *bias,
                                                               float *products, size_t low,
                                                               size_t high, ptowsp_partial *state) {
    PWSP_V x[PWSP_ATTEND_BLOCK / PWSP_V_LANES], sums[16 / PWSP_V_LANES];
    if (how->cap > 0.0f || bias || high - low < PWSP_ATTEND_BLOCK) {
        PWSP_V_NAME(score_row)(how, bias, products, low, high);
        PWSP_V_UNROLL for (size_t i = 0; i < PWSP_ATTEND_BLOCK / PWSP_V_LANES; i++) {
            x[i] = PWSP_V_LOAD(products + i * PWSP_V_LANES);
        }
    } else if (how->key_scales) {
        PWSP_V_UNROLL for (size_t i = 0; i < PWSP_ATTEND_BLOCK / PWSP_V_LANES; i++) {
            x[i] = PWSP_V_MUL(PWSP_V_LOAD(products + i * PWSP_V_LANES), PWSP_V_SET(how->scale));
            x[i] = PWSP_V_MUL(x[i], PWSP_V_LOAD(how->key_scales + i * PWSP_V_LANES));
        }
    } else {
        PWSP_V_UNROLL for (size_t i = 0; i < PWSP_ATTEND_BLOCK / PWSP_V_LANES; i++) {
            x[i] = PWSP_V_MUL(PWSP_V_LOAD(products + i * PWSP_V_LANES), PWSP_V_SET(how->scale));
        }
    }
    PWSP_V top = x[0];
    PWSP_V_UNROLL for (size_t i = 1; i < PWSP_ATTEND_BLOCK / PWSP_V_LANES; i++) {
        top = PWSP_V_MAX(top, x[i]);
    }
    float m = PWSP_V_FOLD_MAX(top);
    m = m <= state->m ? state->m : m;  // of two NaN remains
    PWSP_V shift = PWSP_V_SET(m == -pwsp_infinity() ? 0.0f : m);
    PWSP_V_UNROLL for (size_t i = 0; i < PWSP_ATTEND_BLOCK / PWSP_V_LANES; i++) {
        x[i] = PWSP_V_EXP(PWSP_V_SUB(x[i], shift));
    }
    PWSP_V_UNROLL for (size_t i = 0; i < 16 / PWSP_V_LANES; i++) {
        sums[i] = PWSP_V_ADD(PWSP_V_ADD(x[i], x[i + 16 / PWSP_V_LANES]),
                             PWSP_V_ADD(x[i + 32 / PWSP_V_LANES], x[i + 48 / PWSP_V_LANES]));
    }
    if (how->value_scales) {
        PWSP_V_UNROLL for (size_t i = 0; i < PWSP_ATTEND_BLOCK / PWSP_V_LANES; i++) {
            x[i] = PWSP_V_MUL(x[i], PWSP_V_LOAD(how->value_scales + i * PWSP_V_LANES));
        }
    }
    PWSP_V_UNROLL for (size_t i = 0; i < PWSP_ATTEND_BLOCK / PWSP_V_LANES; i++) {
        PWSP_V_STORE(products + i * PWSP_V_LANES, x[i]);
    }
    for (size_t half = 8 / PWSP_V_LANES; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            sums[i] = PWSP_V_ADD(sums[i], sums[i + half]);
        }
    }
    float factor =
        state->m == m ? 1.0f
                      : PWSP_V_FIRST(PWSP_V_EXP(PWSP_V_SET(state->m - m)));  // 0 in the first block
    state->l = PWSP_V_FIRST(
        PWSP_V_FMA(PWSP_V_SET(state->l), PWSP_V_SET(factor), PWSP_V_SET(PWSP_V_FOLD_ADD(sums[0]))));
    state->m = state->l == state->l ? m : state->l;  // else NaN could look like an empty state
    return factor;
}

// The same for rows that follow each other and see the same tokens. Rows are independent, so that the
// processor overlaps them.
PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(softmax)(
    const pwsp_attend_scoring *how, const pwsp_attend_bias *biases, float *products, size_t low,
    size_t high, size_t row_count, ptowsp_partial *states, float *factors) {
    for (size_t r = 0; r < row_count; r++) {
        factors[r] =
            PWSP_V_NAME(softmax_row)(how, biases ? biases + r : NULL,
                                     products + r * PWSP_ATTEND_BLOCK, low, high, &states[r]);
    }
}

// row[d] /= l
PWSP_V_TARGET PWSP_NOINLINE static void PWSP_V_NAME(divide)(float *row, size_t dim, float l) {
    size_t d = 0;
    for (; d + PWSP_V_LANES <= dim; d += PWSP_V_LANES) {
        PWSP_V_STORE(row + d, PWSP_V_DIV(PWSP_V_LOAD(row + d), PWSP_V_SET(l)));
    }
    if (d < dim) {
        PWSP_V_DIVIDE_8(row + d, l);
    }
}

// Fills in a variant.
static void PWSP_V_NAME(fill)(const char *name, pwsp_attend_variant *out) {
    out->name = name;
    out->score_rows = PWSP_V_SCORE_ROWS;
    out->value_rows = PWSP_V_VALUE_ROWS;
    out->type_rows = PWSP_V_TYPE_ROWS;
    out->pack = PWSP_V_NAME(pack);
    out->unpack = PWSP_V_NAME(unpack);
    out->convert = PWSP_V_NAME(convert);
    out->scores = PWSP_V_NAME(scores);
    out->values = PWSP_V_NAME(values);
    out->softmax = PWSP_V_NAME(softmax);
    out->divide = PWSP_V_NAME(divide);
}

#undef PWSP_V_QUADS
#undef PWSP_V_CONVERT_8
#undef PWSP_V_VALUE_8
#undef PWSP_V_DIVIDE_8
#undef PWSP_V_HALF
#undef PWSP_V_SCORES
#undef PWSP_V_VALUE_LOOP
#undef PWSP_V_VALUES
#undef PWSP_V_EACH_2
#undef PWSP_V_EACH_4
#undef PWSP_V_EACH_6
#undef PWSP_V_SCORE_EACH
#undef PWSP_V_SCORE_TYPE
#undef PWSP_V_VALUE_EACH
#undef PWSP_V_CASE_f32
#undef PWSP_V_CASE_f16
#undef PWSP_V_CASE_bf16
#undef PWSP_V_CASE_i8
#undef PWSP_V_CASE_q8_0
#undef PWSP_V_SCORE_CASE
#undef PWSP_V_VALUE_CASE
#undef PWSP_V_NAME
#undef PWSP_V_TARGET
#undef PWSP_V_LANES
#undef PWSP_V_SCORE_ROWS
#undef PWSP_V_VALUE_ROWS
#undef PWSP_V_TYPE_ROWS
#undef PWSP_V_UNROLL
#undef PWSP_V_VALUE_VECTORS
#undef PWSP_V_LOAD
#undef PWSP_V_LOAD_F16
#undef PWSP_V_LOAD_BF16
#undef PWSP_V_LOAD_I8
#undef PWSP_V_STORE
#undef PWSP_V_SET
#undef PWSP_V_SET_QUAD
#undef PWSP_V_SET_F16
#undef PWSP_V_STORE_QUAD
#undef PWSP_V_FMA
#undef PWSP_V_MUL
#undef PWSP_V_ADD
#undef PWSP_V_SUB
#undef PWSP_V_DIV
#undef PWSP_V_MAX
#undef PWSP_V_FIRST
#undef PWSP_V_COPYSIGN
#undef PWSP_V_REDUCE4
#undef PWSP_V_FOLD_MAX
#undef PWSP_V_FOLD_ADD
#undef PWSP_V_EXP
#undef PWSP_V
