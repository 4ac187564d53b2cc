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
// Two register tiles do the work: scores of 4 tokens for up to HEADS_MAX rows, and sums over tokens of
// 4 vectors for up to HEADS_MAX rows. Loops over a tile are unrolled completely.

// scores[h][0..3] = queries[h] . rows[0..3], for `heads` rows.
TARGET FORCE_INLINE void NAME(score_tile)(const char *const *rows, const float *queries, uint32_t heads,
                                          uint32_t dim, bool is_f16, float *scores) {
    V sums[HEADS_MAX][4];
    UNROLL for (uint32_t h = 0; h < heads; h++) {
        UNROLL for (uint32_t t = 0; t < 4; t++) {
            sums[h][t] = SET(0.0f);
        }
    }
    for (uint32_t d = 0; d < dim; d += W) {
        V k[4];
        UNROLL for (uint32_t t = 0; t < 4; t++) {
            k[t] = is_f16 ? LOAD_F16(rows[t] + d * 2) : LOAD((const float *)(const void *)rows[t] + d);
        }
        UNROLL for (uint32_t h = 0; h < heads; h++) {
            V q = LOAD(queries + h * dim + d);
            UNROLL for (uint32_t t = 0; t < 4; t++) {
                sums[h][t] = FMA(q, k[t], sums[h][t]);
            }
        }
    }
    UNROLL for (uint32_t h = 0; h < heads; h++) {
        REDUCE4(scores + h * DECODE_BLOCK, sums[h][0], sums[h][1], sums[h][2], sums[h][3]);
    }
}

// accs[h][d] = accs[h][d] * factors[h] + sum over tokens of weights[h][t] * V[t][d], for `vectors`
// vectors from d on.
TARGET FORCE_INLINE void NAME(value_tile)(const char *const *rows, size_t v_offset, uint32_t count,
                                          const float *weights, const float *factors, uint32_t heads,
                                          uint32_t dim, uint32_t d, uint32_t vectors, bool is_f16,
                                          float *accs) {
    V sums[HEADS_MAX][4];
    UNROLL for (uint32_t h = 0; h < heads; h++) {
        UNROLL for (uint32_t i = 0; i < vectors; i++) {
            sums[h][i] = MUL(LOAD(accs + h * dim + d + i * W), SET(factors[h]));
        }
    }
    for (uint32_t t = 0; t < count; t++) {
        const char *row = rows[t] + v_offset;
        V v[4];
        UNROLL for (uint32_t i = 0; i < vectors; i++) {
            uint32_t at = d + i * W;
            v[i] = is_f16 ? LOAD_F16(row + at * 2) : LOAD((const float *)(const void *)row + at);
        }
        UNROLL for (uint32_t h = 0; h < heads; h++) {
            V weight = SET(weights[h * DECODE_BLOCK + t]);
            UNROLL for (uint32_t i = 0; i < vectors; i++) {
                sums[h][i] = FMA(weight, v[i], sums[h][i]);
            }
        }
    }
    UNROLL for (uint32_t h = 0; h < heads; h++) {
        UNROLL for (uint32_t i = 0; i < vectors; i++) {
            STORE(accs + h * dim + d + i * W, sums[h][i]);
        }
    }
}

// Turns the scores of one row into weights, updates its state, and returns what its sums so far are
// to be multiplied by. Scores behind count are -INFINITY.
TARGET FORCE_INLINE float NAME(softmax_step)(float *scores, uint32_t count, ptowsp_partial *state) {
    V top = LOAD(scores);
    for (uint32_t t = W; t < count; t += W) {
        top = MAX(top, LOAD(scores + t));
    }
    float m = REDUCE_MAX(top);
    m = m > state->m ? m : state->m;
    V sum = SET(0.0f), shift = SET(-m);
    for (uint32_t t = 0; t < count; t += W) {
        V weight = EXP(ADD(LOAD(scores + t), shift));
        STORE(scores + t, weight);
        sum = ADD(sum, weight);
    }
    float factor = state->m == m ? 1.0f : expf(state->m - m);  // 0 in the first block
    state->l = state->l * factor + REDUCE_ADD(sum);
    state->m = m;
    return factor;
}

// One block of up to DECODE_BLOCK tokens, for `heads` rows. rows[] is padded to a multiple of four.
TARGET FORCE_INLINE void NAME(block)(const char *const *rows, size_t v_offset, uint32_t count,
                                     const float *queries, uint32_t heads, uint32_t dim, bool is_f16,
                                     ptowsp_partial *states, float *accs) {
    float scores[HEADS_MAX * DECODE_BLOCK];
    float factors[HEADS_MAX];
    for (uint32_t t = 0; t < count; t += 4) {
        NAME(score_tile)(rows + t, queries, heads, dim, is_f16, scores + t);
    }
    for (uint32_t h = 0; h < heads; h++) {
        for (uint32_t t = count; t < DECODE_BLOCK && t < count + 16; t++) {
            scores[h * DECODE_BLOCK + t] = -INFINITY;
        }
        factors[h] = NAME(softmax_step)(scores + h * DECODE_BLOCK, count, &states[h]);
    }
    uint32_t d = 0;
    for (; d + 4 * W <= dim; d += 4 * W) {
        NAME(value_tile)(rows, v_offset, count, scores, factors, heads, dim, d, 4, is_f16, accs);
    }
    for (; d < dim; d += W) {
        NAME(value_tile)(rows, v_offset, count, scores, factors, heads, dim, d, 1, is_f16, accs);
    }
}

// All rows of the group over one block; the tile's number of heads and the type become constants.
TARGET FORCE_INLINE void NAME(group_block)(const char *const *rows, size_t v_offset, uint32_t count,
                                           const float *queries, uint32_t group, uint32_t dim,
                                           bool is_f16, ptowsp_partial *states, float *accs) {
    uint32_t h = 0;
    for (; h + HEADS_MAX <= group; h += HEADS_MAX) {
        NAME(block)(rows, v_offset, count, queries + h * dim, HEADS_MAX, dim, is_f16, states + h,
                    accs + h * dim);
    }
    for (; h < group; h++) {
        NAME(block)(rows, v_offset, count, queries + h * dim, 1, dim, is_f16, states + h,
                    accs + h * dim);
    }
}

TARGET static void NAME(f32)(const char *const *rows, size_t v_offset, uint32_t count,
                             const float *queries, uint32_t group, uint32_t dim,
                             ptowsp_partial *states, float *accs) {
    NAME(group_block)(rows, v_offset, count, queries, group, dim, false, states, accs);
}

TARGET static void NAME(f16)(const char *const *rows, size_t v_offset, uint32_t count,
                             const float *queries, uint32_t group, uint32_t dim,
                             ptowsp_partial *states, float *accs) {
    NAME(group_block)(rows, v_offset, count, queries, group, dim, true, states, accs);
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
