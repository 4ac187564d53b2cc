// The inner loops of moe_kernel.c, once for each instruction set. Included with
//
//      MOE_NAME(x), MOE_TARGET     names and the attribute of its functions
//      MOE_LANES, MOE_TOKENS       elements of a vector; tokens of a group, at most 8
//      moe_v and MOE_ZERO, MOE_LOAD, MOE_FMA, MOE_MUL, MOE_SET, MOE_HALVES, MOE_I8, MOE_SUM
//
// A group's sums are kept in registers: 2 columns x 8 tokens are 16 vectors, 2 x 4 are 8. Each vector
// of weights is used for all tokens, each vector of inputs for both columns.

// Adds lanes of weights a and b to the sums of all tokens, from element `at` on.
MOE_TARGET MOE_INLINE static inline void MOE_NAME(add)(moe_v sums[2][8], moe_v a, moe_v b,
                                                       const float *const *inputs, uint32_t tokens,
                                                       size_t at) {
    for (uint32_t t = 0; t < tokens; t++) {
        const moe_v input = MOE_LOAD(inputs[t] + at);
        sums[0][t] = MOE_FMA(a, input, sums[0][t]);
        sums[1][t] = MOE_FMA(b, input, sums[1][t]);
    }
}

// Two columns of weights, with a number of tokens that is known where this is inlined.
MOE_TARGET MOE_INLINE static inline void MOE_NAME(tile)(moe_type type, const unsigned char *first,
                                                        const unsigned char *second,
                                                        const float *const *inputs, uint32_t tokens,
                                                        uint32_t depth, float *const *outputs,
                                                        size_t column_step) {
    moe_v sums[2][8];
    for (uint32_t t = 0; t < tokens; t++) {
        sums[0][t] = sums[1][t] = MOE_ZERO;
    }
    if (type == MOE_F16) {
        for (size_t k = 0; k < depth; k += MOE_LANES) {
            MOE_NAME(add)
            (sums, MOE_HALVES(first + 2 * k), MOE_HALVES(second + 2 * k), inputs, tokens, k);
        }
    } else {
        for (size_t k = 0; k < depth; k += 32, first += 34, second += 34) {
            const moe_v a = MOE_SET(half_at(first)), b = MOE_SET(half_at(second));
            for (size_t i = 0; i < 32; i += MOE_LANES) {
                MOE_NAME(add)
                (sums, MOE_MUL(a, MOE_I8(first + 2 + i)), MOE_MUL(b, MOE_I8(second + 2 + i)),
                 inputs, tokens, k + i);
            }
        }
    }
    for (uint32_t t = 0; t < tokens; t++) {
        outputs[t][0] = MOE_SUM(sums[0][t]);
        if (column_step > 0) {
            outputs[t][column_step] = MOE_SUM(sums[1][t]);
        }
    }
}

// All columns of a group; returns how many of its tokens were taken: 8, 4, 2 or 1.
MOE_TARGET static uint32_t MOE_NAME(group)(const moe_group *g, const float *const *inputs,
                                           float *const *outputs, uint32_t count) {
    const uint32_t most = count < MOE_TOKENS ? count : MOE_TOKENS;
    const uint32_t taken = most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1;
    for (uint32_t column = g->begin; column < g->end; column += 2) {
        const bool is_pair =
            column + 1 < g->end;  // or the last one is computed twice, written once
        const unsigned char *first = g->weights + column * g->row_bytes;
        const unsigned char *second = first + (is_pair ? g->row_bytes : 0);
        float *out[8];
        for (uint32_t t = 0; t < taken; t++) {
            out[t] = outputs[t] + column;
        }
#define MOE_CASE(n)                                                                                \
    case n:                                                                                        \
        if (g->type == MOE_F16) {                                                                  \
            MOE_NAME(tile)(MOE_F16, first, second, inputs, n, g->depth, out, is_pair);             \
        } else {                                                                                   \
            MOE_NAME(tile)(MOE_Q8_0, first, second, inputs, n, g->depth, out, is_pair);            \
        }                                                                                          \
        break
        switch (taken) {
            MOE_CASE(8);
            MOE_CASE(4);
            MOE_CASE(2);
            MOE_CASE(1);
        default: break;
        }
#undef MOE_CASE
    }
    return taken;
}

#undef MOE_NAME
#undef MOE_TARGET
#undef MOE_LANES
#undef MOE_TOKENS
#undef moe_v
#undef MOE_ZERO
#undef MOE_LOAD
#undef MOE_FMA
#undef MOE_MUL
#undef MOE_SET
#undef MOE_HALVES
#undef MOE_I8
#undef MOE_SUM
