// The inner loops of attention, once per instruction set: attention_simd.h includes this file with
//
//      NAME(x)          x with the variant's suffix
//      TARGET           the function attribute that allows the instructions
//      V, W             a vector of W floats: W / 4 quads of 4
//      SCORE_ROWS       rows that a tile of scores has room for, up to TILE_ROWS
//      VALUE_VECTORS    sums that a tile of values has room for
//      LOAD STORE SET FMA MUL ADD SUB DIV MAX FIRST COPYSIGN(magnitude, sign)
//      LOAD_F16 LOAD_BF16 LOAD_I8     W elements as floats
//      SET_QUAD(p)      p[0..3] in every quad
//      PACK_16_F32 PACK_16_HALF PACK_16_I8   optional: see PACK_QUADS
//      REDUCE4(a, b, c, d)   quad q of the result: the sums of quad q of a, b, c and d,
//                            each as (x0 + x2) + (x1 + x3)
//      FOLD_MAX(a), FOLD_ADD(a)   of all lanes; sums by halves
//      EXP(a)           e^a for a <= 0, 0 below EXP_LOWEST, NaN for NaN
//
// Keys are packed for groups of W tokens. A vector has 4 dimensions of W / 4 tokens, and vector n has
// tokens n, n + 4, n + 8, ...: then REDUCE4 gives the scores of W tokens in order.
//
//      packed[token / W][dim / 4][n][quad][4]
//
// A score is the sum of four sums, one for each dimension modulo 4, for every number of rows and
// every W. Values are summed token by token. So the shape of a tile never changes a row's bits.
//
// Loops over a tile are unrolled completely. The loops around each tile are functions of their own,
// not inlined: inside one large function gcc 12 runs out of registers and spills.

#define QUADS (W / 4)

// Packs the keys of PART_TOKENS rows as they are.
#define PACK(suffix, PACK_16, bytes)                                                               \
    TARGET NOINLINE static void NAME(pack_##suffix)(                                               \
        const char *const *rows, const attention_ahead *ahead, size_t dim, char *out) {            \
        for (size_t at = 0; at < PART_TOKENS; at += W) {                                           \
            for (size_t n = 0; n < 4; n++) {                                                       \
                const char *from[QUADS];                                                           \
                UNROLL for (size_t q = 0; q < QUADS; q++) {                                        \
                    from[q] = rows[at + n + 4 * q];                                                \
                    size_t turn = at + n * QUADS + q;                                              \
                    for (size_t i = 0; turn >= ahead->first && i < ahead->size; i += 64) {         \
                        PREFETCH(ahead->rows[turn] + i);                                           \
                    }                                                                              \
                }                                                                                  \
                char *to = out + (at * dim + n * W) * (bytes);                                     \
                for (size_t d = 0; d < dim; d += 16, to += 16 * W * (bytes)) {                     \
                    PACK_16(from, d *(bytes), bytes, to);                                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

// 16 dimensions of W / 4 rows: quad by quad, four vectors that lie 4 * W elements apart.
#define PACK_QUADS(from, at, bytes, to)                                                            \
    UNROLL for (size_t u = 0; u < 4; u++) {                                                        \
        UNROLL for (size_t q = 0; q < QUADS; q++) {                                                \
            memcpy((to) + (4 * u * W + 4 * q) * (bytes), (from)[q] + (at) + 4 * u * (bytes),       \
                   4 * (bytes));                                                                   \
        }                                                                                          \
    }

#if !defined(PACK_16_F32)
#define PACK_16_F32  PACK_QUADS
#define PACK_16_HALF PACK_QUADS
#define PACK_16_I8   PACK_QUADS
#endif
PACK(f32, PACK_16_F32, 4)
PACK(half, PACK_16_HALF, 2)
PACK(i8, PACK_16_I8, 1)
#undef PACK
#undef PACK_QUADS
#undef PACK_16_F32
#undef PACK_16_HALF
#undef PACK_16_I8

// The loops over elements, for each type. Tiles of scores and values take `row_count` rows, a
// constant.
//
//      convert   to floats, a multiple of 16
//      score     scores[r][t] = queries[r] . keys[t] for PART_TOKENS packed tokens; asks for a cache
//                line with each step
//      value     accs[r][d] = accs[r][d] * factors[r] + sum over tokens of weights[r][t] *
//                rows[t][d], for `vectors` vectors from d on; asks for as much of the rows ahead
#define ELEMENTS(suffix, LOAD_ELEMENTS, bytes)                                                     \
    TARGET NOINLINE static void NAME(convert_##suffix)(const char *from, size_t count,             \
                                                       float *to) {                                \
        for (size_t at = 0; at < count; at += 16) {                                                \
            UNROLL for (size_t i = 0; i < 16; i += W) {                                            \
                STORE(to + at + i, LOAD_ELEMENTS(from + (at + i) * (bytes)));                      \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    TARGET FORCE_INLINE void NAME(score_##suffix)(const float *const *queries, const char *keys,   \
                                                  const attention_ahead *ahead, size_t dim,        \
                                                  size_t row_count, float *scores) {               \
        const float *rows[SCORE_ROWS];                                                             \
        const char *const *ahead_row = ahead->rows, *const *ahead_end = ahead_row + ahead->first;  \
        size_t ahead_at = 0;                                                                       \
        for (size_t r = 0; r < row_count; r++) {                                                   \
            rows[r] = queries[r];                                                                  \
        }                                                                                          \
        for (size_t t = 0; t < PART_TOKENS; t += W) {                                              \
            V sums[SCORE_ROWS][4];                                                                 \
            UNROLL for (size_t r = 0; r < row_count; r++) {                                        \
                UNROLL for (size_t n = 0; n < 4; n++) {                                            \
                    sums[r][n] = SET(0.0f);                                                        \
                }                                                                                  \
            }                                                                                      \
            for (size_t d = 0; d < dim; d += 4, keys += 4 * W * (bytes)) {                         \
                V k[4];                                                                            \
                UNROLL for (size_t n = 0; n < 4; n++) {                                            \
                    k[n] = LOAD_ELEMENTS(keys + n * W * (bytes));                                  \
                }                                                                                  \
                if (ahead_row != ahead_end) {                                                      \
                    PREFETCH(*ahead_row + ahead_at);                                               \
                    ahead_at += 64;                                                                \
                    if (ahead_at >= ahead->size) {                                                 \
                        ahead_at = 0;                                                              \
                        ahead_row++;                                                               \
                    }                                                                              \
                }                                                                                  \
                UNROLL for (size_t r = 0; r < row_count; r++) {                                    \
                    V q = SET_QUAD(rows[r] + d);                                                   \
                    UNROLL for (size_t n = 0; n < 4; n++) {                                        \
                        sums[r][n] = FMA(q, k[n], sums[r][n]);                                     \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            UNROLL for (size_t r = 0; r < row_count; r++) {                                        \
                STORE(scores + r * ATTENTION_BLOCK + t,                                            \
                      REDUCE4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]));                    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    TARGET FORCE_INLINE void NAME(value_##suffix)(                                                 \
        const char *const *rows, size_t count, const attention_ahead *ahead, const float *weights, \
        const float *factors, size_t row_count, size_t d, size_t vectors, float *const *accs) {    \
        V sums[TILE_ROWS][8];                                                                      \
        size_t ahead_first = d * ahead->element, ahead_end = (d + vectors * W) * ahead->element;   \
        ahead_end = ahead_end < ahead->size ? ahead_end : ahead->size;                             \
        UNROLL for (size_t r = 0; r < row_count; r++) {                                            \
            UNROLL for (size_t i = 0; i < vectors; i++) {                                          \
                sums[r][i] = MUL(LOAD(accs[r] + d + i * W), SET(factors[r]));                      \
            }                                                                                      \
        }                                                                                          \
        for (size_t t = 0; t < count; t++) {                                                       \
            const char *row = rows[t] + d * (bytes);                                               \
            for (size_t i = ahead_first; i < ahead_end; i += 64) {                                 \
                PREFETCH(ahead->rows[t] + i);                                                      \
            }                                                                                      \
            V v[8];                                                                                \
            UNROLL for (size_t i = 0; i < vectors; i++) {                                          \
                v[i] = LOAD_ELEMENTS(row + i * W * (bytes));                                       \
            }                                                                                      \
            UNROLL for (size_t r = 0; r < row_count; r++) {                                        \
                V weight = SET(weights[r * ATTENTION_BLOCK + t]);                                  \
                UNROLL for (size_t i = 0; i < vectors; i++) {                                      \
                    sums[r][i] = FMA(weight, v[i], sums[r][i]);                                    \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (size_t r = 0; r < row_count; r++) {                                            \
            UNROLL for (size_t i = 0; i < vectors; i++) {                                          \
                STORE(accs[r] + d + i * W, sums[r][i]);                                            \
            }                                                                                      \
        }                                                                                          \
    }

#define LOAD_F32(p) LOAD((const float *)(const void *)(p))
ELEMENTS(f32, LOAD_F32, 4)
ELEMENTS(f16, LOAD_F16, 2)
ELEMENTS(bf16, LOAD_BF16, 2)
ELEMENTS(i8, LOAD_I8, 1)
#undef LOAD_F32
#undef ELEMENTS

#define SCORES(row_count, suffix)                                                                  \
    TARGET NOINLINE static void NAME(scores_##suffix##_##row_count)(                               \
        const float *const *queries, const char *keys, const attention_ahead *ahead, size_t dim,   \
        float *scores) {                                                                           \
        NAME(score_##suffix)(queries, keys, ahead, dim, row_count, scores);                        \
    }

#define VALUE_LOOP(row_count, suffix, vectors)                                                     \
    for (; (vectors) * (row_count) <= VALUE_VECTORS && d + (vectors)*W <= dim; d += (vectors)*W) { \
        NAME(value_##suffix)                                                                       \
        (rows, count, ahead, weights, factors, row_count, d, vectors, accs);                       \
    }

#define VALUES(row_count, suffix)                                                                  \
    TARGET NOINLINE static void NAME(values_##suffix##_##row_count)(                               \
        const char *const *rows, size_t count, const attention_ahead *ahead, const float *weights, \
        const float *factors, size_t dim, float *const *accs) {                                    \
        size_t d = 0;                                                                              \
        VALUE_LOOP(row_count, suffix, 8)                                                           \
        VALUE_LOOP(row_count, suffix, 4)                                                           \
        VALUE_LOOP(row_count, suffix, 2)                                                           \
        VALUE_LOOP(row_count, suffix, 1)                                                           \
    }

#if SCORE_ROWS > 2
#define SCORES_3_TO_6(suffix)                                                                      \
    SCORES(3, suffix) SCORES(4, suffix) SCORES(5, suffix) SCORES(6, suffix)
#define SCORE_TABLE(suffix)                                                                        \
    {                                                                                              \
        NULL, NAME(scores_##suffix##_1), NAME(scores_##suffix##_2), NAME(scores_##suffix##_3),     \
            NAME(scores_##suffix##_4), NAME(scores_##suffix##_5), NAME(scores_##suffix##_6)        \
    }
#else
#define SCORES_3_TO_6(suffix)
#define SCORE_TABLE(suffix)                                                                        \
    { NULL, NAME(scores_##suffix##_1), NAME(scores_##suffix##_2), NULL, NULL, NULL, NULL }
#endif
#define VALUE_TABLE(suffix)                                                                        \
    {                                                                                              \
        NULL, NAME(values_##suffix##_1), NAME(values_##suffix##_2), NAME(values_##suffix##_3),     \
            NAME(values_##suffix##_4), NAME(values_##suffix##_5), NAME(values_##suffix##_6)        \
    }
#define TILES(suffix)                                                                              \
    SCORES(1, suffix)                                                                              \
    SCORES(2, suffix)                                                                              \
    SCORES_3_TO_6(suffix)                                                                          \
    VALUES(1, suffix)                                                                              \
    VALUES(2, suffix)                                                                              \
    VALUES(3, suffix)                                                                              \
    VALUES(4, suffix)                                                                              \
    VALUES(5, suffix)                                                                              \
    VALUES(6, suffix)
TILES(f32)
TILES(f16)
TILES(bf16)
TILES(i8)
#undef SCORES
#undef SCORES_3_TO_6
#undef VALUES
#undef VALUE_LOOP
#undef TILES

// cap * tanh(x / cap), by tanh |y| = (1 - e^-2|y|) / (1 + e^-2|y|). The absolute error is a few
// 1e-7 of cap.
TARGET FORCE_INLINE V NAME(soft_cap)(V x, V cap, V two_over_cap) {
    V y = MUL(x, two_over_cap), one = SET(1.0f);
    V power = EXP(SUB(SET(0.0f), MAX(y, SUB(SET(0.0f), y))));
    V tanh = DIV(SUB(one, power), ADD(one, power));
    return COPYSIGN(MUL(cap, tanh), y);
}

// Products of one row as scores, in place, where there is a cap, or where the row sees only tokens
// [low, high) of the block.
TARGET NOINLINE static void NAME(cap_and_mask)(const attention_scoring *how, float *scores,
                                               size_t low, size_t high) {
    V scale = SET(how->scale), cap = SET(how->cap), two_over_cap = SET(2.0f / how->cap);
    for (size_t t = 0; t < ATTENTION_BLOCK; t += W) {
        V x = MUL(LOAD(scores + t), scale);
        x = how->key_scales ? MUL(x, LOAD(how->key_scales + t)) : x;
        x = how->cap > 0.0f ? NAME(soft_cap)(x, cap, two_over_cap) : x;
        STORE(scores + t, x);
    }
    for (size_t t = 0; t < low; t++) {
        scores[t] = -INFINITY;
    }
    for (size_t t = high; t < ATTENTION_BLOCK; t++) {
        scores[t] = -INFINITY;
    }
}

// Turns products of one row into weights, updates the row's state, and returns what its sums so far
// are to be multiplied by. Weights are summed in 16 sums, for every W.
TARGET FORCE_INLINE float NAME(softmax_row)(const attention_scoring *how, float *products,
                                            size_t low, size_t high, ptowsp_partial *state) {
    V x[ATTENTION_BLOCK / W], sums[16 / W];
    if (how->cap > 0.0f || high - low < ATTENTION_BLOCK) {
        NAME(cap_and_mask)(how, products, low, high);
        UNROLL for (size_t i = 0; i < ATTENTION_BLOCK / W; i++) {
            x[i] = LOAD(products + i * W);
        }
    } else if (how->key_scales) {
        UNROLL for (size_t i = 0; i < ATTENTION_BLOCK / W; i++) {
            x[i] = MUL(LOAD(products + i * W), SET(how->scale));
            x[i] = MUL(x[i], LOAD(how->key_scales + i * W));
        }
    } else {
        UNROLL for (size_t i = 0; i < ATTENTION_BLOCK / W; i++) {
            x[i] = MUL(LOAD(products + i * W), SET(how->scale));
        }
    }
    V top = x[0];
    UNROLL for (size_t i = 1; i < ATTENTION_BLOCK / W; i++) {
        top = MAX(top, x[i]);
    }
    float m = FOLD_MAX(top);
    m = m <= state->m ? state->m : m;  // of two NaN remains
    V shift = SET(m == -INFINITY ? 0.0f : m);
    UNROLL for (size_t i = 0; i < ATTENTION_BLOCK / W; i++) {
        x[i] = EXP(SUB(x[i], shift));
    }
    UNROLL for (size_t i = 0; i < 16 / W; i++) {
        sums[i] = ADD(ADD(x[i], x[i + 16 / W]), ADD(x[i + 32 / W], x[i + 48 / W]));
    }
    if (how->value_scales) {
        UNROLL for (size_t i = 0; i < ATTENTION_BLOCK / W; i++) {
            x[i] = MUL(x[i], LOAD(how->value_scales + i * W));
        }
    }
    UNROLL for (size_t i = 0; i < ATTENTION_BLOCK / W; i++) {
        STORE(products + i * W, x[i]);
    }
    for (size_t half = 8 / W; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            sums[i] = ADD(sums[i], sums[i + half]);
        }
    }
    float factor = state->m == m ? 1.0f : FIRST(EXP(SET(state->m - m)));  // 0 in the first block
    state->l = FIRST(FMA(SET(state->l), SET(factor), SET(FOLD_ADD(sums[0]))));
    state->m = state->l == state->l ? m : state->l;  // else NaN could look like an empty state
    return factor;
}

// The same for rows that follow each other and see the same tokens. Rows are independent, so that the
// processor overlaps them.
TARGET NOINLINE static void NAME(softmax)(const attention_scoring *how, float *products, size_t low,
                                          size_t high, size_t row_count, ptowsp_partial *states,
                                          float *factors) {
    for (size_t r = 0; r < row_count; r++) {
        factors[r] = NAME(softmax_row)(how, products + r * ATTENTION_BLOCK, low, high, &states[r]);
    }
}

// row[d] /= l
TARGET NOINLINE static void NAME(divide)(float *row, size_t dim, float l) {
    for (size_t d = 0; d < dim; d += W) {
        STORE(row + d, DIV(LOAD(row + d), SET(l)));
    }
}

static const attention_variant NAME(variant) = {
    VARIANT_NAME,
    SCORE_ROWS,
    {NAME(pack_f32), NAME(pack_half), NAME(pack_half), NAME(pack_i8)},
    {NAME(convert_f32), NAME(convert_f16), NAME(convert_bf16), NAME(convert_i8)},
    {SCORE_TABLE(f32), SCORE_TABLE(f16), SCORE_TABLE(bf16), SCORE_TABLE(i8)},
    {VALUE_TABLE(f32), VALUE_TABLE(f16), VALUE_TABLE(bf16), VALUE_TABLE(i8)},
    NAME(softmax),
    NAME(divide),
};

#undef SCORE_TABLE
#undef VALUE_TABLE
#undef QUADS
#undef NAME
#undef VARIANT_NAME
#undef TARGET
#undef V
#undef W
#undef SCORE_ROWS
#undef VALUE_VECTORS
#undef LOAD
#undef LOAD_F16
#undef LOAD_BF16
#undef LOAD_I8
#undef STORE
#undef SET
#undef SET_QUAD
#undef FMA
#undef MUL
#undef ADD
#undef SUB
#undef DIV
#undef MAX
#undef FIRST
#undef COPYSIGN
#undef REDUCE4
#undef FOLD_MAX
#undef FOLD_ADD
#undef EXP
