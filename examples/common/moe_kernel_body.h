// The inner loops of moe_kernel.c, once for each instruction set. Included with
//
//      MOE_NAME(x), MOE_TARGET     names and the attribute of its functions
//      MOE_LANES                   elements of a vector
//      MOE_COLUMNS(tokens)         columns of a tile, at most MOE_TILE_COLUMNS
//      moe_v and MOE_ZERO, MOE_LOAD, MOE_FMA, MOE_MUL, MOE_HALVES, MOE_I8, MOE_SUM
//      MOE_SCALE(at)               the half at `at` in all lanes
//
// The sums of a tile, the inputs of its tokens and one vector of weights are in registers: 6 columns of 4
// tokens are 24, 4 and 1. Each vector of weights is used for all tokens, each vector of inputs for all
// columns.

// Adds vectors of weights, `at` elements from where rows are, to the sums of all tokens.
MOE_TARGET MOE_INLINE static inline void MOE_NAME(add)(
    moe_v sums[MOE_TILE_COLUMNS][MOE_TILE_TOKENS], const moe_v *weights, size_t columns,
    const float *const *inputs, size_t tokens, size_t at) {
    moe_v in[MOE_TILE_TOKENS];
    MOE_UNROLL for (size_t t = 0; t < tokens; t++) {
        in[t] = MOE_LOAD(inputs[t] + at);
    }
    MOE_UNROLL for (size_t c = 0; c < columns; c++) {
        MOE_UNROLL for (size_t t = 0; t < tokens; t++) {
            sums[c][t] = MOE_FMA(weights[c], in[t], sums[c][t]);
        }
    }
}

// A tile: `count` columns from `first` on are written, numbers of columns and tokens are known where this
// is inlined. Rows repeat the last one; `ahead` bytes further on the next tile has its rows.
MOE_TARGET MOE_INLINE static inline void MOE_NAME(tile)(moe_type type, const moe_group *g,
                                                        const unsigned char *first, size_t ahead,
                                                        size_t count, size_t columns,
                                                        const float *const *inputs, size_t tokens,
                                                        float *const *outputs) {
    moe_v sums[MOE_TILE_COLUMNS][MOE_TILE_TOKENS], weights[MOE_TILE_COLUMNS];
    const unsigned char *rows[MOE_TILE_COLUMNS];
    MOE_UNROLL for (size_t c = 0; c < columns; c++) {
        rows[c] = first + (c < count ? c : count - 1) * g->row_bytes;
        MOE_UNROLL for (size_t t = 0; t < tokens; t++) {
            sums[c][t] = MOE_ZERO;
        }
    }
    for (size_t k = 0, at = 0; k < g->depth; k += 32, at += type == MOE_F16 ? 64 : 34) {
        MOE_UNROLL for (size_t c = 0; c < columns; c++) {
            MOE_ASK(rows[c] + ahead + at);
        }
        MOE_UNROLL for (size_t i = 0; i < 32; i += MOE_LANES) {
            MOE_UNROLL for (size_t c = 0; c < columns; c++) {
                weights[c] = type == MOE_F16
                                 ? MOE_HALVES(rows[c] + at + 2 * i)
                                 : MOE_MUL(MOE_SCALE(rows[c] + at), MOE_I8(rows[c] + at + 2 + i));
            }
            MOE_NAME(add)(sums, weights, columns, inputs, tokens, k + i);
        }
    }
    for (size_t c = 0; c < count; c++) {
        for (size_t t = 0; t < tokens; t++) {
            outputs[t][c] = MOE_SUM(sums[c][t]);
        }
    }
}

// All columns of a group for a number of tokens.
#define MOE_GROUP(tokens)                                                                          \
    MOE_TARGET static void MOE_NAME(group_##tokens)(                                               \
        const moe_group *g, const float *const *inputs, float *const *outputs) {                   \
        float *out[MOE_TILE_TOKENS];                                                               \
        for (size_t column = g->begin, count; column < g->end; column += count) {                  \
            const unsigned char *first = g->weights + column * g->row_bytes;                       \
            const size_t left = g->end - column;                                                   \
            count = left < MOE_COLUMNS(tokens) ? left : MOE_COLUMNS(tokens);                       \
            const size_t ahead = left >= 2 * count ? count * g->row_bytes : 0;                     \
            for (size_t t = 0; t < (tokens); t++) {                                                \
                out[t] = outputs[t] + column;                                                      \
            }                                                                                      \
            if (g->type == MOE_F16) {                                                              \
                MOE_NAME(tile)                                                                     \
                (MOE_F16, g, first, ahead, count, MOE_COLUMNS(tokens), inputs, tokens, out);       \
            } else {                                                                               \
                MOE_NAME(tile)                                                                     \
                (MOE_Q8_0, g, first, ahead, count, MOE_COLUMNS(tokens), inputs, tokens, out);      \
            }                                                                                      \
        }                                                                                          \
    }
MOE_GROUP(1)
MOE_GROUP(2)
MOE_GROUP(4)
#undef MOE_GROUP

// Returns how many of the tokens were taken: 4, 2 or 1.
static uint32_t MOE_NAME(group)(const moe_group *g, const float *const *inputs,
                                float *const *outputs, uint32_t count) {
    if (count >= 4) {
        MOE_NAME(group_4)(g, inputs, outputs);
        return 4;
    }
    if (count >= 2) {
        MOE_NAME(group_2)(g, inputs, outputs);
        return 2;
    }
    MOE_NAME(group_1)(g, inputs, outputs);
    return 1;
}

#undef MOE_NAME
#undef MOE_TARGET
#undef MOE_LANES
#undef MOE_COLUMNS
#undef moe_v
#undef MOE_ZERO
#undef MOE_LOAD
#undef MOE_FMA
#undef MOE_MUL
#undef MOE_SCALE
#undef MOE_HALVES
#undef MOE_I8
#undef MOE_SUM
