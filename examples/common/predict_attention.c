// The schedule of PTO-ISA's flash attention, on a cube core and a vector core of the shim that do not
// compute. Each block has 128 queries and walks over the keys in tiles of 512:
//
//     cube      scores of a tile, a product of 128 x 128 x 128 at a time, drained to a slot; four
//               tiles later the product of its probabilities and the values
//     vector    both cores have 64 rows, and take them in slices of 16 x 512: maximum, difference,
//               scale, exponential, to f16, sum. Then the output of an earlier tile is scaled and
//               added to
//
// Scores, probabilities and products have five slots each: four tiles ahead, and one.
//
// Tile kernels cannot slice what they pop (`attention --queries` has the nearest that they can), so
// this is instruction by instruction, as convolution is.
//
// What comes from the published rows: the tile of 512, which of 128, 256 and 512 is nearest to them;
// and the constants below. Nothing of the machine was fitted to them.

#include "predict_attention.h"

#include "ptoisa_shim.h"

#include <math.h>
#include <string.h>

enum { SIDE = 128, TILE = 512, AHEAD = 4, SLOTS = AHEAD + 1, SLICE = 16, OWN_ROWS = 64 };

// A host that launches in a loop does so every 19.3 us: 2 rows, of 1,024 keys. Longer kernels follow
// each other without a gap.
#define HOST_US 19.3

// Blocks share L2, of which scores, probabilities and products are written and read again. With u the
// part of its bandwidth that tiles would use if it were endless, they take (1 + u^4)^(1/4) times as
// long; filling and emptying the pipeline take as long as alone. 3 rows with 8 blocks: 1,765 bytes a
// cycle. The exponent is from 12.2 ns a key with 16 blocks.
#define L2_BYTES_A_CYCLE 1765.0

// A ring of slots: when each was filled, and when it was freed.
typedef struct ring {
    uint64_t full_at[SLOTS], free_at[SLOTS];
} ring;

typedef struct attention_order {
    ptoisa_core cube, vector;
    ring scores, weights, products;
    uint64_t panels, pieces, sums, keys;  // so far; and of all
} attention_order;

static ptoisa_tile ub_tile(ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    return ptoisa_tile_make(NULL, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, rows, cols);
}

static void hand_over(ptoisa_core *core, ptoisa_pipe from, ptoisa_pipe to, uint32_t event) {
    ptoisa_set_flag(core, from, to, event);
    ptoisa_wait_flag(core, from, to, event);
}

static uint64_t keys_of(const attention_order *s, uint64_t tile) {
    uint64_t left = s->keys - tile * TILE;
    return left < TILE ? left : TILE;
}

// -- the cube core --------------------------------------------------------------------------------

// A product of 128 x 128 x 128. The factors are loaded into one of two places in L1 (of scores, the
// queries are there), and go to one of two in L0.
static void multiply_factors(attention_order *s, bool is_scores, bool is_first) {
    ptoisa_core *core = &s->cube;
    uint32_t panel = (uint32_t)(s->panels++ % 2), piece = (uint32_t)(s->pieces++ % 2);
    ptoisa_tile left =
        ptoisa_tile_make(NULL, PTOISA_F16, PTOISA_MAT, PTOISA_NZ, SIDE, ATTENTION_HEAD);
    ptoisa_tile right = left, a, b, sum = left;
    right.layout = is_scores ? PTOISA_ZN : PTOISA_NZ;
    ptoisa_wait_flag(core, PTOISA_PIPE_MTE1, PTOISA_PIPE_MTE2, panel);
    if (!is_scores) {
        ptoisa_issue(core, PTOISA_TLOAD, &left, NULL, NULL);
    }
    ptoisa_issue(core, PTOISA_TLOAD, &right, NULL, NULL);
    hand_over(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_MTE1, panel);
    ptoisa_wait_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_MTE1, piece);
    a = left;
    b = right;
    a.memory = PTOISA_LEFT;
    a.layout = PTOISA_ZZ;
    b.memory = PTOISA_RIGHT;
    b.layout = PTOISA_ZN;
    ptoisa_issue(core, PTOISA_TEXTRACT, &a, &left, NULL);
    ptoisa_issue(core, PTOISA_TEXTRACT, &b, &right, NULL);
    ptoisa_set_flag(core, PTOISA_PIPE_MTE1, PTOISA_PIPE_MTE2, panel);
    hand_over(core, PTOISA_PIPE_MTE1, PTOISA_PIPE_M, piece);
    if (is_first) {
        ptoisa_wait_flag(core, PTOISA_PIPE_FIX, PTOISA_PIPE_M, (uint32_t)(s->sums % 2));
    }
    sum.memory = PTOISA_ACC;
    sum.dtype = PTOISA_F32;
    ptoisa_issue(core, is_first ? PTOISA_TMATMUL : PTOISA_TMATMUL_ACC, &sum, &a, &b);
    ptoisa_set_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_MTE1, piece);
}

// Drains a sum from one of two places in L0C.
static void drain(attention_order *s) {
    uint32_t at = (uint32_t)(s->sums++ % 2);
    ptoisa_tile sum = ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, SIDE, SIDE);
    hand_over(&s->cube, PTOISA_PIPE_M, PTOISA_PIPE_FIX, at);
    ptoisa_issue_as(&s->cube, PTOISA_TSTORE, NULL, &sum, NULL, ptoisa_dtype_size(PTOISA_F32));
    ptoisa_set_flag(&s->cube, PTOISA_PIPE_FIX, PTOISA_PIPE_M, at);
}

static void score(attention_order *s, uint64_t tile) {
    ptoisa_wait_until(&s->cube, PTOISA_PIPE_FIX, s->scores.free_at[tile % SLOTS]);
    for (uint64_t at = 0; at < keys_of(s, tile); at += SIDE) {
        multiply_factors(s, true, true);
        drain(s);
    }
    s->scores.full_at[tile % SLOTS] = s->cube.clock[PTOISA_PIPE_FIX];
}

static void weigh(attention_order *s, uint64_t tile) {
    ptoisa_wait_until(&s->cube, PTOISA_PIPE_MTE2, s->weights.full_at[tile % SLOTS]);
    for (uint64_t at = 0; at < keys_of(s, tile); at += SIDE) {
        multiply_factors(s, false, at == 0);
    }
    s->weights.free_at[tile % SLOTS] = s->cube.clock[PTOISA_PIPE_MTE2];
    ptoisa_wait_until(&s->cube, PTOISA_PIPE_FIX, s->products.free_at[tile % SLOTS]);
    drain(s);
    s->products.full_at[tile % SLOTS] = s->cube.clock[PTOISA_PIPE_FIX];
}

// -- a vector core --------------------------------------------------------------------------------

// Two instructions that do not need each other, of a slice and of its column, and a barrier.
static void step(attention_order *s, ptoisa_op op, ptoisa_tile *tile, ptoisa_tile *operand,
                 ptoisa_op small_op, ptoisa_tile *small) {
    ptoisa_issue(&s->vector, op, tile, tile, operand);
    if (small) {
        ptoisa_issue(&s->vector, small_op, small, small, small);
    }
    ptoisa_pipe_barrier(&s->vector, PTOISA_PIPE_V);
}

static void soften_slice(attention_order *s, uint32_t cols, uint32_t slot) {
    ptoisa_core *core = &s->vector;
    ptoisa_tile scores = ub_tile(PTOISA_F32, SLICE, cols),
                weights = ub_tile(PTOISA_F16, SLICE, cols);
    ptoisa_tile row = ub_tile(PTOISA_F32, 1, SLICE);
    ptoisa_tile column = ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, SLICE, 1);
    ptoisa_wait_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, slot);
    ptoisa_issue(core, PTOISA_TLOAD, &scores, NULL, NULL);
    hand_over(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, slot);
    ptoisa_issue(core, PTOISA_TROWMAX, &column, &scores, &scores);
    ptoisa_pipe_barrier(core, PTOISA_PIPE_V);
    step(s, PTOISA_TMAX, &row, &row, PTOISA_NOP, NULL);
    step(s, PTOISA_TROWEXPANDSUB, &scores, &column, PTOISA_TSUB, &row);
    step(s, PTOISA_TMULS, &scores, NULL, PTOISA_TMULS, &row);
    step(s, PTOISA_TEXP, &scores, NULL, PTOISA_TEXP, &row);
    ptoisa_wait_flag(core, PTOISA_PIPE_MTE3, PTOISA_PIPE_V, slot);
    ptoisa_issue(core, PTOISA_TMUL, &row, &row, &row);
    ptoisa_issue(core, PTOISA_TCVT, &weights, &scores, NULL);
    ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE3, slot);
    ptoisa_issue(core, PTOISA_TROWSUM, &column, &scores, &scores);
    ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, slot);
    ptoisa_pipe_barrier(core, PTOISA_PIPE_V);
    ptoisa_issue(core, PTOISA_TADD, &row, &row, &row);
    ptoisa_wait_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE3, slot);
    ptoisa_issue(core, PTOISA_TSTORE, NULL, &weights, NULL);
    ptoisa_set_flag(core, PTOISA_PIPE_MTE3, PTOISA_PIPE_V, slot);
}

static void soften(attention_order *s, uint64_t tile) {
    ptoisa_wait_until(&s->vector, PTOISA_PIPE_MTE2, s->scores.full_at[tile % SLOTS]);
    ptoisa_wait_until(&s->vector, PTOISA_PIPE_MTE3, s->weights.free_at[tile % SLOTS]);
    for (uint32_t slice = 0; slice < OWN_ROWS / SLICE; slice++) {
        soften_slice(s, (uint32_t)keys_of(s, tile), slice % 2);
    }
    s->scores.free_at[tile % SLOTS] = s->vector.clock[PTOISA_PIPE_MTE2];
    s->weights.full_at[tile % SLOTS] = s->vector.clock[PTOISA_PIPE_MTE3];
}

static void update(attention_order *s, uint64_t tile) {
    ptoisa_core *core = &s->vector;
    uint32_t slot = (uint32_t)(2 + tile % 2);
    ptoisa_tile output = ub_tile(PTOISA_F32, OWN_ROWS, ATTENTION_HEAD);
    ptoisa_tile column =
        ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, OWN_ROWS, 1);
    ptoisa_wait_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, slot);
    ptoisa_wait_until(core, PTOISA_PIPE_MTE2, s->products.full_at[tile % SLOTS]);
    ptoisa_issue(core, PTOISA_TLOAD, &output, NULL, NULL);
    s->products.free_at[tile % SLOTS] = core->clock[PTOISA_PIPE_MTE2];
    ptoisa_set_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, slot);
    if (tile > 0) {
        step(s, PTOISA_TROWEXPANDMUL, &output, &column, PTOISA_NOP, NULL);
    }
    ptoisa_wait_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, slot);
    if (tile > 0) {
        step(s, PTOISA_TADD, &output, &output, PTOISA_NOP, NULL);
    }
    ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, slot);
}

static void finish_block(attention_order *s) {
    ptoisa_tile output = ub_tile(PTOISA_F32, OWN_ROWS, ATTENTION_HEAD);
    ptoisa_tile column =
        ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, OWN_ROWS, 1);
    ptoisa_issue(&s->vector, PTOISA_TROWEXPANDDIV, &output, &output, &column);
    hand_over(&s->vector, PTOISA_PIPE_V, PTOISA_PIPE_MTE3, 2);
    ptoisa_issue(&s->vector, PTOISA_TSTORE, NULL, &output, NULL);
}

// -- a block --------------------------------------------------------------------------------------

static void begin_block(attention_order *s, uint64_t keys) {
    memset(s, 0, sizeof *s);
    s->keys = keys;
    ptoisa_core_init(&s->cube, PTOISA_MODEL_910B, NULL);
    s->cube.is_dry = true;
    s->vector = s->cube;
    for (uint32_t slot = 0; slot < 2; slot++) {
        ptoisa_set_flag(&s->cube, PTOISA_PIPE_MTE1, PTOISA_PIPE_MTE2, slot);
        ptoisa_set_flag(&s->cube, PTOISA_PIPE_M, PTOISA_PIPE_MTE1, slot);
        ptoisa_set_flag(&s->cube, PTOISA_PIPE_FIX, PTOISA_PIPE_M, slot);
        ptoisa_set_flag(&s->vector, PTOISA_PIPE_MTE3, PTOISA_PIPE_V, slot);
        ptoisa_set_flag(&s->vector, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, slot);
        ptoisa_set_flag(&s->vector, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, 2 + slot);
    }
    ptoisa_tile queries =
        ptoisa_tile_make(NULL, PTOISA_F16, PTOISA_MAT, PTOISA_NZ, SIDE, ATTENTION_HEAD);
    ptoisa_issue(&s->cube, PTOISA_TLOAD, &queries, NULL, NULL);
}

// Bytes that a tile moves to and from L2: keys and values once; scores and products in f32 and
// probabilities in f16, written and read.
#define TILE_BYTES (TILE * SIDE * (2.0 * 2 + 2 * 4 + 2 * 2) + SIDE * ATTENTION_HEAD * 2.0 * 4)

// Cycles of a block that has L2 for itself.
static double run_block(attention_order *s, uint64_t keys) {
    uint64_t tiles = (keys + TILE - 1) / TILE;
    begin_block(s, keys);
    for (uint64_t turn = 0; turn < tiles + AHEAD; turn++) {
        if (turn < tiles) {
            score(s, turn);
            soften(s, turn);
        }
        if (turn >= AHEAD) {
            weigh(s, turn - AHEAD);
            update(s, turn - AHEAD);
        }
    }
    finish_block(s);
    uint64_t of_cube = ptoisa_cycles(&s->cube), of_vector = ptoisa_cycles(&s->vector);
    return (double)(of_cube > of_vector ? of_cube : of_vector);
}

void predict_attention(uint64_t queries, uint64_t keys, predict_times *out) {
    enum { MANY = 32 };
    attention_order s;
    double tile = (run_block(&s, 2 * MANY * TILE) - run_block(&s, MANY * TILE)) / MANY;
    uint64_t blocks = queries / ATTENTION_ROWS;
    double together = (double)(blocks < ATTENTION_CORES ? blocks : ATTENTION_CORES);
    double used = TILE_BYTES / tile * together / L2_BYTES_A_CYCLE;
    double stretch = sqrt(sqrt(1 + used * used * used * used)) - 1;
    double waves = ceil((double)blocks / ATTENTION_CORES);
    double cycles = waves * (run_block(&s, keys) + stretch * tile * (double)keys / TILE);
    double clock = ptoisa_timing_of(PTOISA_MODEL_910B, NULL)->clock_mhz, us = cycles / clock;
    out->us = us > HOST_US ? us : HOST_US;
    double whole = out->us * clock / 100 / waves;
    out->cube = (double)s.cube.busy[PTOISA_PIPE_M] / whole;
    out->vector = (double)s.vector.busy[PTOISA_PIPE_V] / whole;
    out->mte1 = (double)s.cube.busy[PTOISA_PIPE_MTE1] / whole;
    out->mte2 = (double)s.cube.busy[PTOISA_PIPE_MTE2] / whole;
    out->store = (double)s.cube.busy[PTOISA_PIPE_FIX] / whole;
}
