// The attention kernel, once per instruction set: decode_attention.c includes this file with
//
//      NAME(x)             x with the variant's suffix
//      TARGET              the function attribute that allows the instructions
//      V, W                a vector of W floats
//      HEADS_MAX           query rows that a register tile has room for: 4, 2 or 1
//      LOAD STORE SET FMA MUL ADD MAX
//      LOAD_F16(p)         W halves as floats
//      REDUCE4(p, a, b, c, d)   p[0..3] = the sums of the lanes of a, b, c, d
//      REDUCE_MAX(a), REDUCE_ADD(a)
//      EXP(a)              e^a for a <= 0
//
// Two register tiles do the work: scores of 4 tokens for up to HEADS_MAX rows, and sums over tokens
// of 4 vectors for up to HEADS_MAX rows. Loops over a tile are unrolled completely. The loops
// around each tile are functions of their own, not inlined: inside one large function gcc 12 runs
// out of registers and spills in the innermost loops.

// Asks for a row of the next block, a cache line at a time.
FORCE_INLINE void NAME(prefetch)(const char *row, size_t size) {
    for (size_t at = 0; at < size; at += 64) {
        PREFETCH(row + at);
    }
}

// scores[h][0..3] = queries[h] . rows[0..3], for `heads` rows.
TARGET FORCE_INLINE void NAME(score_tile)(const char *const *rows, const char *const *next,
                                          const float *queries, size_t heads, size_t dim,
                                          bool is_f16, float *scores) {
    V sums[HEADS_MAX][4];
    UNROLL for (size_t h = 0; h < heads; h++) {
        UNROLL for (size_t t = 0; t < 4; t++) {
            sums[h][t] = SET(0.0f);
        }
    }
    for (size_t t = 0; t < 4; t++) {
        NAME(prefetch)(next[t], dim * (is_f16 ? 2 : 4));
    }
    for (size_t d = 0; d < dim; d += W) {
        V k[4];
        UNROLL for (size_t t = 0; t < 4; t++) {
            k[t] =
                is_f16 ? LOAD_F16(rows[t] + d * 2) : LOAD((const float *)(const void *)rows[t] + d);
        }
        UNROLL for (size_t h = 0; h < heads; h++) {
            V q = LOAD(queries + h * dim + d);
            UNROLL for (size_t t = 0; t < 4; t++) {
                sums[h][t] = FMA(q, k[t], sums[h][t]);
            }
        }
    }
    UNROLL for (size_t h = 0; h < heads; h++) {
        REDUCE4(scores + h * DECODE_BLOCK, sums[h][0], sums[h][1], sums[h][2], sums[h][3]);
    }
}

// accs[h][d] = accs[h][d] * factors[h] + sum over tokens of weights[h][t] * V[t][d], for `vectors`
// vectors from d on.
TARGET FORCE_INLINE void NAME(value_tile)(const char *const *rows, const char *const *next,
                                          size_t v_offset, size_t count, const float *weights,
                                          const float *factors, size_t heads, size_t dim, size_t d,
                                          size_t vectors, bool is_f16, float *accs) {
    V sums[HEADS_MAX][4];
    UNROLL for (size_t h = 0; h < heads; h++) {
        UNROLL for (size_t i = 0; i < vectors; i++) {
            sums[h][i] = MUL(LOAD(accs + h * dim + d + i * W), SET(factors[h]));
        }
    }
    for (size_t t = 0; t < count; t++) {
        const char *row = rows[t] + v_offset;
        size_t element = is_f16 ? 2 : 4;
        NAME(prefetch)(next[t] + v_offset + d * element, vectors * W * element);
        V v[4];
        UNROLL for (size_t i = 0; i < vectors; i++) {
            size_t at = d + i * W;
            v[i] = is_f16 ? LOAD_F16(row + at * 2) : LOAD((const float *)(const void *)row + at);
        }
        UNROLL for (size_t h = 0; h < heads; h++) {
            V weight = SET(weights[h * DECODE_BLOCK + t]);
            UNROLL for (size_t i = 0; i < vectors; i++) {
                sums[h][i] = FMA(weight, v[i], sums[h][i]);
            }
        }
    }
    UNROLL for (size_t h = 0; h < heads; h++) {
        UNROLL for (size_t i = 0; i < vectors; i++) {
            STORE(accs + h * dim + d + i * W, sums[h][i]);
        }
    }
}

// Turns the scores of one row into weights, updates its state, and returns what its sums so far are
// to be multiplied by. Scores behind count are -INFINITY.
TARGET FORCE_INLINE float NAME(softmax_step)(float *scores, size_t count, ptowsp_partial *state) {
    V top = LOAD(scores);
    for (size_t t = W; t < count; t += W) {
        top = MAX(top, LOAD(scores + t));
    }
    float m = REDUCE_MAX(top);
    m = m > state->m ? m : state->m;
    V sum = SET(0.0f), shift = SET(-m);
    for (size_t t = 0; t < count; t += W) {
        V weight = EXP(ADD(LOAD(scores + t), shift));
        STORE(scores + t, weight);
        sum = ADD(sum, weight);
    }
    float factor = state->m == m ? 1.0f : expf(state->m - m);  // 0 in the first block
    state->l = state->l * factor + REDUCE_ADD(sum);
    state->m = m;
    return factor;
}

// The loops around the tiles, with the number of rows and the type as constants.
#define LOOPS(suffix, heads, is_f16)                                                               \
    TARGET NOINLINE static void NAME(scores_##suffix)(                                             \
        const char *const *rows, const char *const *next, size_t count, const float *queries,      \
        size_t dim, float *scores) {                                                               \
        for (size_t t = 0; t < count; t += 4) {                                                    \
            NAME(score_tile)(rows + t, next + t, queries, heads, dim, is_f16, scores + t);         \
        }                                                                                          \
    }                                                                                              \
    TARGET NOINLINE static void NAME(values_##suffix)(                                             \
        const char *const *rows, const char *const *next, size_t v_offset, size_t count,           \
        const float *weights, const float *factors, size_t dim, float *accs) {                     \
        size_t d = 0;                                                                              \
        for (; d + 4 * W <= dim; d += 4 * W) {                                                     \
            NAME(value_tile)                                                                       \
            (rows, next, v_offset, count, weights, factors, heads, dim, d, 4, is_f16, accs);       \
        }                                                                                          \
        for (; d < dim; d += W) {                                                                  \
            NAME(value_tile)                                                                       \
            (rows, next, v_offset, count, weights, factors, heads, dim, d, 1, is_f16, accs);       \
        }                                                                                          \
    }

LOOPS(many_f16, HEADS_MAX, true)
LOOPS(many_f32, HEADS_MAX, false)
LOOPS(one_f16, 1, true)
LOOPS(one_f32, 1, false)
#undef LOOPS

// One block of up to DECODE_BLOCK tokens, for HEADS_MAX rows or for one. rows[] and next[] are
// padded to a multiple of four.
TARGET static void NAME(block)(const char *const *rows, const char *const *next, size_t v_offset,
                               size_t count, const float *queries, size_t heads, size_t dim,
                               bool is_f16, ptowsp_partial *states, float *accs) {
    float scores[HEADS_MAX * DECODE_BLOCK], factors[HEADS_MAX];
    bool is_one = heads == 1;
    if (is_f16) {
        (is_one ? NAME(scores_one_f16) : NAME(scores_many_f16))(rows, next, count, queries, dim,
                                                                scores);
    } else {
        (is_one ? NAME(scores_one_f32) : NAME(scores_many_f32))(rows, next, count, queries, dim,
                                                                scores);
    }
    for (size_t h = 0; h < heads; h++) {
        for (size_t t = count; t < DECODE_BLOCK && t < count + 16; t++) {
            scores[h * DECODE_BLOCK + t] = -INFINITY;
        }
        factors[h] = NAME(softmax_step)(scores + h * DECODE_BLOCK, count, &states[h]);
    }
    if (is_f16) {
        (is_one ? NAME(values_one_f16) : NAME(values_many_f16))(rows, next, v_offset, count, scores,
                                                                factors, dim, accs);
    } else {
        (is_one ? NAME(values_one_f32) : NAME(values_many_f32))(rows, next, v_offset, count, scores,
                                                                factors, dim, accs);
    }
}

// All rows of the group over one block.
TARGET static void NAME(group)(const char *const *rows, const char *const *next, size_t v_offset,
                               size_t count, const float *queries, size_t group, size_t dim,
                               bool is_f16, ptowsp_partial *states, float *accs) {
    for (size_t h = 0; h < group;) {
        size_t heads = group - h >= HEADS_MAX ? HEADS_MAX : 1;
        // The rows of the next block are asked for once, not again for each tile of heads.
        NAME(block)
        (rows, h == 0 ? next : rows, v_offset, count, queries + h * dim, heads, dim, is_f16,
         states + h, accs + h * dim);
        h += heads;
    }
}

#undef NAME
#undef TARGET
#undef V
#undef W
#undef HEADS_MAX
#undef LOAD
#undef LOAD_F16
#undef STORE
#undef SET
#undef FMA
#undef MUL
#undef ADD
#undef MAX
#undef REDUCE4
#undef REDUCE_MAX
#undef REDUCE_ADD
#undef EXP
