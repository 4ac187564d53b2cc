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
//      TRANSPOSE(x)     the W / 4 vectors x[] as a matrix of quads, transposed
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

// pack_keys: PART_TOKENS rows, packed. load_values: `count` rows as floats, out[t][dim].
#define CONVERT(suffix, LOAD_ELEMENTS, element)                                                    \
    TARGET NOINLINE static void NAME(pack_keys_##suffix)(                                          \
        const char *const *rows, const attention_ahead *ahead, size_t dim, float *out) {           \
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
                float *to = out + at * dim + n * W;                                                \
                for (size_t d = 0; d < dim; d += W, to += W * W) {                                 \
                    V x[QUADS];                                                                    \
                    UNROLL for (size_t q = 0; q < QUADS; q++) {                                    \
                        x[q] = LOAD_ELEMENTS(from[q] + d * (element));                             \
                    }                                                                              \
                    TRANSPOSE(x);                                                                  \
                    UNROLL for (size_t k = 0; k < QUADS; k++) {                                    \
                        STORE(to + 4 * k * W, x[k]);                                               \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    TARGET NOINLINE static void NAME(load_values_##suffix)(const char *const *rows, size_t count,  \
                                                           size_t dim, float *out) {               \
        for (size_t t = 0; t < count; t++, out += dim) {                                           \
            const char *row = rows[t];                                                             \
            for (size_t d = 0; d < dim; d += 16) {                                                 \
                UNROLL for (size_t i = 0; i < 16; i += W) {                                        \
                    STORE(out + d + i, LOAD_ELEMENTS(row + (d + i) * (element)));                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#define LOAD_F32(p) LOAD((const float *)(const void *)(p))
CONVERT(f32, LOAD_F32, 4)
CONVERT(f16, LOAD_F16, 2)
CONVERT(bf16, LOAD_BF16, 2)
CONVERT(i8, LOAD_I8, 1)
#undef LOAD_F32
#undef CONVERT

// scores[r][t] = queries[r] . keys[t] for `row_count` rows and PART_TOKENS packed tokens. Asks for a
// cache line with each step.
TARGET FORCE_INLINE void NAME(score_rows)(const float *const *queries, const float *keys,
                                          const attention_ahead *ahead, size_t dim,
                                          size_t row_count, float *scores) {
    const float *rows[SCORE_ROWS];
    const char *const *ahead_row = ahead->rows, *const *ahead_end = ahead->rows + ahead->first;
    size_t ahead_at = 0;
    for (size_t r = 0; r < row_count; r++) {
        rows[r] = queries[r];
    }
    for (size_t t = 0; t < PART_TOKENS; t += W) {
        V sums[SCORE_ROWS][4];
        UNROLL for (size_t r = 0; r < row_count; r++) {
            UNROLL for (size_t n = 0; n < 4; n++) {
                sums[r][n] = SET(0.0f);
            }
        }
        for (size_t d = 0; d < dim; d += 4, keys += 4 * W) {
            V k[4];
            UNROLL for (size_t n = 0; n < 4; n++) {
                k[n] = LOAD(keys + n * W);
            }
            if (ahead_row != ahead_end) {
                PREFETCH(*ahead_row + ahead_at);
                ahead_at += 64;
                if (ahead_at >= ahead->size) {
                    ahead_at = 0;
                    ahead_row++;
                }
            }
            UNROLL for (size_t r = 0; r < row_count; r++) {
                V q = SET_QUAD(rows[r] + d);
                UNROLL for (size_t n = 0; n < 4; n++) {
                    sums[r][n] = FMA(q, k[n], sums[r][n]);
                }
            }
        }
        UNROLL for (size_t r = 0; r < row_count; r++) {
            STORE(scores + r * ATTENTION_BLOCK + t,
                  REDUCE4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]));
        }
    }
}

// accs[r][d] = accs[r][d] * factors[r] + sum over tokens of weights[r][t] * rows[t][d], for
// `vectors` vectors from d on. Asks for as much of the rows ahead.
TARGET FORCE_INLINE void NAME(value_tile)(const float *const *rows, size_t count,
                                          const attention_ahead *ahead, const float *weights,
                                          const float *factors, size_t row_count, size_t d,
                                          size_t vectors, float *const *accs) {
    V sums[TILE_ROWS][8];
    size_t ahead_first = d * ahead->element, ahead_end = (d + vectors * W) * ahead->element;
    ahead_end = ahead_end < ahead->size ? ahead_end : ahead->size;
    UNROLL for (size_t r = 0; r < row_count; r++) {
        UNROLL for (size_t i = 0; i < vectors; i++) {
            sums[r][i] = MUL(LOAD(accs[r] + d + i * W), SET(factors[r]));
        }
    }
    for (size_t t = 0; t < count; t++) {
        const float *row = rows[t] + d;
        for (size_t i = ahead_first; i < ahead_end; i += 64) {
            PREFETCH(ahead->rows[t] + i);
        }
        V v[8];
        UNROLL for (size_t i = 0; i < vectors; i++) {
            v[i] = LOAD(row + i * W);
        }
        UNROLL for (size_t r = 0; r < row_count; r++) {
            V weight = SET(weights[r * ATTENTION_BLOCK + t]);
            UNROLL for (size_t i = 0; i < vectors; i++) {
                sums[r][i] = FMA(weight, v[i], sums[r][i]);
            }
        }
    }
    UNROLL for (size_t r = 0; r < row_count; r++) {
        UNROLL for (size_t i = 0; i < vectors; i++) {
            STORE(accs[r] + d + i * W, sums[r][i]);
        }
    }
}

#define VALUE_LOOP(row_count, vectors)                                                             \
    for (; (vectors) * (row_count) <= VALUE_VECTORS && d + (vectors)*W <= dim; d += (vectors)*W) { \
        NAME(value_tile)(rows, count, ahead, weights, factors, row_count, d, vectors, accs);       \
    }

#define VALUES(row_count)                                                                          \
    TARGET NOINLINE static void NAME(values_##row_count)(                                          \
        const float *const *rows, size_t count, const attention_ahead *ahead,                      \
        const float *weights, const float *factors, size_t dim, float *const *accs) {              \
        size_t d = 0;                                                                              \
        VALUE_LOOP(row_count, 8)                                                                   \
        VALUE_LOOP(row_count, 4)                                                                   \
        VALUE_LOOP(row_count, 2)                                                                   \
        VALUE_LOOP(row_count, 1)                                                                   \
    }
VALUES(1)
VALUES(2)
VALUES(3)
VALUES(4)
VALUES(5)
VALUES(6)
#undef VALUES
#undef VALUE_LOOP

#define SCORES(row_count)                                                                          \
    TARGET NOINLINE static void NAME(scores_##row_count)(                                          \
        const float *const *queries, const float *keys, const attention_ahead *ahead, size_t dim,  \
        float *scores) {                                                                           \
        NAME(score_rows)(queries, keys, ahead, dim, row_count, scores);                            \
    }
SCORES(1)
SCORES(2)
#if SCORE_ROWS > 2
SCORES(3)
SCORES(4)
SCORES(5)
SCORES(6)
#endif
#undef SCORES

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
TARGET NOINLINE static float NAME(softmax)(const attention_scoring *how, float *products,
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

// row[d] /= l
TARGET NOINLINE static void NAME(divide)(float *row, size_t dim, float l) {
    for (size_t d = 0; d < dim; d += W) {
        STORE(row + d, DIV(LOAD(row + d), SET(l)));
    }
}

static const attention_variant NAME(variant) = {
    VARIANT_NAME,
    SCORE_ROWS,
    {NAME(pack_keys_f32), NAME(pack_keys_f16), NAME(pack_keys_bf16), NAME(pack_keys_i8)},
    {NAME(load_values_f32), NAME(load_values_f16), NAME(load_values_bf16), NAME(load_values_i8)},
#if SCORE_ROWS > 2
    {NULL, NAME(scores_1), NAME(scores_2), NAME(scores_3), NAME(scores_4), NAME(scores_5),
     NAME(scores_6)},
#else
    {NULL, NAME(scores_1), NAME(scores_2), NULL, NULL, NULL, NULL},
#endif
    {NULL, NAME(values_1), NAME(values_2), NAME(values_3), NAME(values_4), NAME(values_5),
     NAME(values_6)},
    NAME(softmax),
    NAME(divide),
};

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
#undef TRANSPOSE
#undef REDUCE4
#undef FOLD_MAX
#undef FOLD_ADD
#undef EXP
