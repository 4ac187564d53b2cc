// Merging of partial attention states.
//
// Expected values: softmax attention over the whole sequence, in double precision, from the scores
// and values that the parts were made of. Parts are made in double precision too and rounded to
// float once, so what is measured is the merge. Error bounds are first-order: u = 2^-24 for every
// rounding on the way, times the sum of absolute terms.

#include "src/plan/merge.c"

#include "test.h"

#include <math.h>

#define PART_COUNT_MAX 200
#define TOKEN_MAX      700
#define DIM_MAX        300

// A sequence, its parts, and what attention over all of it gives.
typedef struct sequence {
    uint32_t token_count, dim, part_count;
    float scores[TOKEN_MAX];
    float *values;                  // [token_count][dim]
    uint32_t ends[PART_COUNT_MAX];  // of parts, in tokens
    double expected[DIM_MAX];       // the result row
    double magnitude[DIM_MAX];      // the same with absolute values, for error bounds
    double lse;
} sequence;

typedef enum scores_kind {
    SCORES_WIDE,    // +-80: most weights vanish
    SCORES_NARROW,  // +-1: all weights matter
    SCORES_EQUAL,
    SCORES_VERY_NEGATIVE,  // around -10^30, where differences are huge
    SCORES_VERY_LARGE,
    SCORES_MASKED,  // half are -INFINITY, and so are whole parts
    SCORES_RISING,  // each part has a larger maximum than the one before
    SCORES_FALLING,
    SCORES_ALL_MASKED,
    SCORES_KIND_COUNT
} scores_kind;

static double random_unit(uint64_t *random) {
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

static float random_score(uint64_t *random, scores_kind kind, uint32_t i, uint32_t token_count) {
    double x = 2.0 * random_unit(random) - 1.0, place = (double)i / token_count;
    switch (kind) {
    case SCORES_WIDE: return (float)(80.0 * x);
    case SCORES_NARROW: return (float)x;
    case SCORES_EQUAL: return 3.25f;
    case SCORES_VERY_NEGATIVE: return (float)(-1e30 * (1.0 + 0.5 * x));
    case SCORES_VERY_LARGE: return (float)(1e30 * x);
    case SCORES_MASKED: return test_random_in(random, 0, 1) ? -INFINITY : (float)(10.0 * x);
    case SCORES_RISING: return (float)(160.0 * place - 80.0 + x);
    case SCORES_FALLING: return (float)(80.0 - 160.0 * place + x);
    case SCORES_ALL_MASKED: return -INFINITY;
    case SCORES_KIND_COUNT: break;
    }
    return 0.0f;
}

// Softmax attention over some tokens, from their largest score on: sums of values, of their magnitudes, of weights.
// That score is -INFINITY if none is seen.
typedef struct attended {
    float m;
    double sums[DIM_MAX], magnitudes[DIM_MAX], l;
} attended;

static void attend(const sequence *seq, uint32_t begin, uint32_t end, attended *out) {
    memset(out, 0, sizeof *out);
    out->m = -INFINITY;
    for (uint32_t i = begin; i < end; i++) {
        out->m = seq->scores[i] > out->m ? seq->scores[i] : out->m;
    }
    for (uint32_t i = begin; i < end && out->m > -INFINITY; i++) {
        const double weight = exp((double)seq->scores[i] - (double)out->m);
        out->l += weight;
        for (uint32_t d = 0; d < seq->dim; d++) {
            const double term = weight * (double)seq->values[(size_t)i * seq->dim + d];
            out->sums[d] += term;
            out->magnitudes[d] += fabs(term);
        }
    }
}

static void sequence_attend(sequence *seq) {
    static attended all;
    attend(seq, 0, seq->token_count, &all);
    const bool is_empty = all.m == -INFINITY;
    for (uint32_t d = 0; d < DIM_MAX; d++) {
        seq->expected[d] = is_empty ? 0 : all.sums[d] / all.l;
        seq->magnitude[d] = is_empty ? 0 : all.magnitudes[d] / all.l;
    }
    seq->lse = is_empty ? -(double)INFINITY : (double)all.m + log(all.l);
}

static void sequence_make(sequence *seq, uint64_t *random, scores_kind kind, uint32_t part_count,
                          uint32_t dim) {
    seq->part_count = part_count;
    seq->dim = dim;
    seq->token_count = test_random_u32(random, part_count, 2 * part_count + 100);
    assert_true(seq->token_count <= TOKEN_MAX && dim <= DIM_MAX && part_count <= PART_COUNT_MAX);
    seq->values = (float *)test_alloc((size_t)seq->token_count * dim, sizeof(float));
    for (uint32_t i = 0; i < seq->token_count; i++) {
        seq->scores[i] = random_score(random, kind, i, seq->token_count);
        for (uint32_t d = 0; d < dim; d++) {
            seq->values[(size_t)i * dim + d] = (float)(4.0 * random_unit(random) - 2.0);
        }
    }
    // Random cuts, sorted by counting; equal cuts make parts without tokens.
    uint32_t cuts[TOKEN_MAX + 1] = {0};
    for (uint32_t p = 1; p < part_count; p++) {
        cuts[test_random_in(random, 0, seq->token_count)]++;
    }
    uint32_t part = 0;
    for (uint32_t at = 0; at <= seq->token_count; at++) {
        while (cuts[at]-- > 0) {
            seq->ends[part++] = at;
        }
    }
    seq->ends[part] = seq->token_count;
    assert_int_equal(part, part_count - 1);
    if (kind == SCORES_MASKED) {  // whole parts, too
        for (uint32_t p = 0; p < part_count; p += 3) {
            for (uint32_t i = p ? seq->ends[p - 1] : 0; i < seq->ends[p]; i++) {
                seq->scores[i] = -INFINITY;
            }
        }
    }
    sequence_attend(seq);
}

// The state that a kernel leaves for one part. What an empty state holds besides m is garbage.
static void part_state(const sequence *seq, uint32_t part, ptowsp_partial *state, float *acc) {
    static attended some;
    attend(seq, part ? seq->ends[part - 1] : 0, seq->ends[part], &some);
    const bool is_empty = some.m == -INFINITY;
    *state = (ptowsp_partial){some.m, !is_empty ? (float)some.l : part % 2 ? NAN : 1e30f};
    for (uint32_t d = 0; d < seq->dim; d++) {
        acc[d] = !is_empty ? (float)some.sums[d] : d % 2 ? INFINITY : NAN;
    }
}

// Roundings that a term may go through: its own, the weight's two (an exp within an ulp), the
// product, one per sum and, when parts are added one by one, a rescaling per part; then the
// division's.
#define UNIT 0x1p-24

static double roundings(uint32_t part_count) {
    return 6.0 * part_count + 16.0;
}

static void expect_row(const sequence *seq, const float *out, float lse, double extra) {
    double bound = (roundings(seq->part_count) + extra) * UNIT;
    for (uint32_t d = 0; d < seq->dim; d++) {
        double error = fabs((double)out[d] - seq->expected[d]);
        if (!(error <= bound * seq->magnitude[d] + 1e-30)) {
            fail_msg("dim %u of %u, %u parts: %.9g, not %.9g", (unsigned)d, (unsigned)seq->dim,
                     (unsigned)seq->part_count, (double)out[d], seq->expected[d]);
        }
    }
    if (seq->lse == -INFINITY) {  // zeros
        assert_true(lse == -INFINITY);
        for (uint32_t d = 0; d < seq->dim; d++) {
            assert_true(out[d] == 0.0f && !signbit(out[d]));
        }
        return;
    }
    double error = fabs((double)lse - seq->lse);
    if (!(error <= bound + 4.0 * UNIT * (1.0 + fabs(seq->lse)))) {
        fail_msg("lse of %u parts: %.9g, not %.9g", (unsigned)seq->part_count, (double)lse,
                 seq->lse);
    }
}

static float *floats_make(size_t count) {
    float *floats = (float *)test_alloc(count, sizeof *floats);
    for (size_t i = 0; i < count; i++) {
        floats[i] = NAN;  // whoever reads before writing shows it
    }
    return floats;
}

// The states of all parts, and their rows.
static float *parts_make(const sequence *seq, ptowsp_partial *states) {
    float *accs = floats_make((size_t)seq->part_count * seq->dim);
    for (uint32_t p = 0; p < seq->part_count; p++) {
        part_state(seq, p, &states[p], &accs[(size_t)p * seq->dim]);
    }
    return accs;
}

// Adds the parts one by one to a cleared state.
static void merge_chain(const sequence *seq, const ptowsp_partial *states, const float *accs,
                        size_t stride, float *out, float *out_lse) {
    ptowsp_partial state = {NAN, NAN};
    float *acc = floats_make(seq->dim);
    ptowsp_merge_clear(&state, acc, seq->dim);
    for (uint32_t p = 0; p < seq->part_count; p++) {
        ptowsp_merge_add(&state, acc, &states[p * stride], &accs[p * stride * seq->dim], seq->dim);
    }
    *out_lse = ptowsp_merge_finish(&state, acc, seq->dim, out);
    float in_place_lse = ptowsp_merge_finish(&state, acc, seq->dim, acc);  // out may be acc
    assert_memory_equal(acc, out, seq->dim * sizeof *acc);
    assert_memory_equal(&in_place_lse, out_lse, sizeof in_place_lse);
}

// Lays out states[part][row] and accs[part][row][dim] for `stride` sequences of equal shape, merges
// each row in both ways, and compares with attention over the whole.
static void check_rows(uint64_t *random, scores_kind kind, uint32_t part_count, uint32_t dim,
                       uint32_t stride) {
    static sequence rows[4];
    assert_true(stride <= 4);
    ptowsp_partial *states =
        (ptowsp_partial *)test_alloc((size_t)part_count * stride, sizeof *states);
    float *accs = floats_make((size_t)part_count * stride * dim);
    for (uint32_t row = 0; row < stride; row++) {
        sequence_make(&rows[row], random, kind, part_count, dim);
        for (uint32_t p = 0; p < part_count; p++) {
            size_t at = (size_t)p * stride + row;
            part_state(&rows[row], p, &states[at], &accs[at * dim]);
        }
    }
    for (uint32_t i = 0; i < 2 * stride; i++) {  // at once, and one by one
        const uint32_t row = i / 2;
        const float *row_accs = accs + (size_t)row * dim;
        float *out[2] = {floats_make(dim), floats_make(dim)}, lse[2];
        for (int k = 0; k < 2; k++) {
            if (i % 2) {
                merge_chain(&rows[row], states + row, row_accs, stride, out[k], &lse[k]);
            } else {
                lse[k] =
                    ptowsp_merge_partials(states + row, row_accs, part_count, stride, dim, out[k]);
            }
        }
        expect_row(&rows[row], out[0], lse[0], 0.0);
        assert_memory_equal(out[0], out[1], dim * sizeof(float));  // identical bits
        assert_memory_equal(&lse[0], &lse[1], sizeof(float));
    }
    test_release();
}

// -- against whole attention ----------------------------------------------------------------------

TEST(merge__gives_whole_attention_for_every_part_count_dim_and_kind_of_scores) {
    uint64_t random = test_seed();
    for (uint32_t part_count = 1; part_count <= PART_COUNT_MAX; part_count++) {
        check_rows(&random, (scores_kind)(part_count % SCORES_KIND_COUNT), part_count,
                   test_random_u32(&random, 1, 130), test_random_u32(&random, 1, 4));
    }
    for (uint32_t dim = 1; dim <= DIM_MAX; dim++) {
        check_rows(&random, (scores_kind)(dim % SCORES_KIND_COUNT), test_random_u32(&random, 1, 20),
                   dim, test_random_u32(&random, 1, 4));
    }
    // Around the number of parts that are summed at once (64), too.
    const uint32_t part_counts[] = {1, 2, 3, 5, 17, 63, 64, 65, 127, 128, 129, 192, 193, 200};
    for (uint32_t i = 0; i < SCORES_KIND_COUNT * COUNT_OF(part_counts); i++) {
        for (uint32_t dim = 31; dim <= 64; dim += 11) {
            check_rows(&random, (scores_kind)(i % SCORES_KIND_COUNT),
                       part_counts[i / SCORES_KIND_COUNT], dim, 1 + i % 3);
        }
    }
}

// Parts of 65, 64 or 63 states that are not empty, with empty ones at the end and between.
TEST(merge__empty_parts_anywhere_change_no_bit) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 200); round++) {
        static sequence seq;
        uint32_t dim = test_random_u32(&random, 1, 70);
        sequence_make(&seq, &random, SCORES_NARROW, test_random_u32(&random, 1, 70), dim);
        ptowsp_partial packed[PART_COUNT_MAX], spread[3 * PART_COUNT_MAX];
        float *packed_accs = floats_make((size_t)PART_COUNT_MAX * dim);
        float *spread_accs = floats_make((size_t)3 * PART_COUNT_MAX * dim);
        uint32_t packed_count = 0, spread_count = 0;
        for (uint32_t p = 0; p < seq.part_count; p++) {
            float *acc = &packed_accs[(size_t)packed_count * dim];
            part_state(&seq, p, &packed[packed_count], acc);
            if (packed[packed_count].m == -INFINITY) {
                continue;
            }
            for (int64_t empty = test_random_in(&random, 0, 2); empty > 0; empty--) {
                spread[spread_count++] = (ptowsp_partial){-INFINITY, NAN};  // acc is NaN as made
            }
            spread[spread_count] = packed[packed_count++];
            memcpy(&spread_accs[(size_t)spread_count++ * dim], acc, dim * sizeof *acc);
        }
        spread[spread_count++] = (ptowsp_partial){-INFINITY, -1.0f};
        float *packed_out = floats_make(dim), *spread_out = floats_make(dim);
        float lse = ptowsp_merge_partials(packed, packed_accs, packed_count, 1, dim, packed_out);
        float spread_lse =
            ptowsp_merge_partials(spread, spread_accs, spread_count, 1, dim, spread_out);
        assert_memory_equal(&lse, &spread_lse, sizeof lse);
        assert_memory_equal(packed_out, spread_out, dim * sizeof *packed_out);
        test_release();
    }
}

TEST(merge__normalised_rows_with_their_lse_are_states) {
    uint64_t random = test_seed();
    const scores_kind kinds[] = {SCORES_WIDE, SCORES_NARROW, SCORES_EQUAL, SCORES_MASKED,
                                 SCORES_RISING};
    for (int round = 0; TEST_ROUNDS(round, 100); round++) {
        static sequence seq;
        uint32_t dim = test_random_u32(&random, 1, 150);
        sequence_make(&seq, &random, kinds[round % 5], test_random_u32(&random, 1, 90), dim);
        ptowsp_partial states[PART_COUNT_MAX];
        float *accs = parts_make(&seq, states);
        double lse_max = 0.0;
        for (uint32_t p = 0; p < seq.part_count; p++) {
            if (states[p].m > -INFINITY) {  // normalise, in double precision
                float *acc = &accs[(size_t)p * dim];
                double l = (double)states[p].l;
                for (uint32_t d = 0; d < dim; d++) {
                    acc[d] = (float)((double)acc[d] / l);
                }
                states[p].m = (float)((double)states[p].m + log(l));
                states[p].l = 1.0f;
                lse_max = fmax(lse_max, fabs((double)states[p].m));
            }
        }
        float *out = floats_make(dim);
        // The lse of each part is rounded, which moves its weight by |lse| u.
        float lse = ptowsp_merge_partials(states, accs, seq.part_count, 1, dim, out);
        expect_row(&seq, out, lse, 8.0 + 4.0 * lse_max);
        merge_chain(&seq, states, accs, 1, out, &lse);
        expect_row(&seq, out, lse, 8.0 + 4.0 * lse_max);
        test_release();
    }
}

// -- worked out by hand ---------------------------------------------------------------------------

#define LARGEST 3.4028235e38f

// One dimension; all at once, and one by one.
TEST(merge__gives_the_values_of_paper) {
    static const struct {
        uint32_t count;
        ptowsp_partial states[3];
        float accs[3];
        double out, lse, within;  // of out; it is exact where numbers are
    } rows[] = {
        // Scores 0 and 0 | 0: weights 1/3 each. l = 2 | 1, acc = 1 + 2 | 6, result (3 + 6) / 3, ln 3.
        {2, {{0.0f, 2.0f}, {0.0f, 1.0f}}, {3.0f, 6.0f}, 3.0, 1.0986122886681098, 4e-7},
        // The same with m = 5 and m = 5 - ln 2: the second part counts half. 6 / 2.5, 5 + ln 2.5.
        {2, {{5.0f, 2.0f}, {4.30685282f, 1.0f}}, {3.0f, 6.0f}, 2.4, 5.916290731874155, 2e-6},
        {1, {{-7.5f, 4.0f}}, {-8.0f}, -2.0, -6.113705638880109, 0},  // -7.5 + ln 4
        {0, {{0, 0}}, {0}, 0.0, -(double)INFINITY, 0},
        {3,
         {{-LARGEST, 1.0f}, {LARGEST, 2.0f}, {-LARGEST, 5.0f}},
         {100.0f, 6.0f, 100.0f},
         3.0,
         (double)LARGEST,
         0},
        // Both at the lower end: the difference is 0, the weights are equal.
        {2, {{-LARGEST, 1.0f}, {-LARGEST, 1.0f}}, {100.0f, 6.0f}, 53.0, -(double)LARGEST, 0},
    };
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        const size_t r = i / 2;
        const bool is_none = rows[r].count == 0;  // needs no arrays
        float out = NAN, acc = NAN, lse;
        if (i % 2 == 0) {
            lse = ptowsp_merge_partials(is_none ? NULL : rows[r].states,
                                        is_none ? NULL : rows[r].accs, rows[r].count, 1, 1, &out);
        } else {
            ptowsp_partial one = {NAN, NAN};
            ptowsp_merge_clear(&one, &acc, 1);
            for (uint32_t p = 0; p < rows[r].count; p++) {
                ptowsp_merge_add(&one, &acc, &rows[r].states[p], &rows[r].accs[p], 1);
            }
            lse = ptowsp_merge_finish(&one, &acc, 1, &out);
        }
        assert_true(fabs((double)out - rows[r].out) <= rows[r].within);
        assert_true((double)lse == rows[r].lse || fabs((double)lse - rows[r].lse) <= 2e-6);
    }
}

TEST(merge__empty_is_the_identity_on_both_sides) {
    const ptowsp_partial full = {2.5f, 3.0f}, empty = {-INFINITY, NAN};
    float row[5] = {1.0f, -2.0f, 0.5f, 1e30f, -0.0f},
          garbage[5] = {NAN, INFINITY, -INFINITY, 1.0f, NAN};
    ptowsp_partial merged_state = full;
    float acc[5];
    memcpy(acc, row, sizeof acc);
    ptowsp_merge_add(&merged_state, acc, &empty, garbage, 5);
    assert_memory_equal(&merged_state, &full, sizeof full);
    assert_memory_equal(acc, row, sizeof acc);
    merged_state = empty;
    memcpy(acc, garbage, sizeof acc);
    ptowsp_merge_add(&merged_state, acc, &full, row, 5);
    assert_memory_equal(&merged_state, &full, sizeof full);
    assert_memory_equal(acc, row, sizeof acc);
    ptowsp_partial both = empty;
    memcpy(acc, garbage, sizeof acc);
    ptowsp_merge_add(&both, acc, &empty, garbage, 5);
    assert_true(both.m == -INFINITY);
    assert_true(ptowsp_merge_finish(&both, acc, 5, acc) == -INFINITY);
    for (int d = 0; d < 5; d++) {
        assert_true(acc[d] == 0.0f);
    }
}

// A dim of 0 gives the log-sum-exp alone: ln(3 e^1 + 5 e^2) = 3.7099...; rows may be NULL.
TEST(merge__rows_of_no_dim_need_no_arrays) {
    const ptowsp_partial states[] = {{1.0f, 3.0f}, {-INFINITY, 0.0f}, {2.0f, 5.0f}};
    const double expected = log(3 * exp(1) + 5 * exp(2));
    float lse = ptowsp_merge_partials(states, NULL, 3, 1, 0, NULL);
    assert_true(fabs((double)lse - expected) < 1e-6);
    assert_true(ptowsp_merge_partials(states + 1, NULL, 1, 1, 0, NULL) == -INFINITY);
    ptowsp_partial whole;
    ptowsp_merge_clear(&whole, NULL, 0);
    assert_true(ptowsp_merge_finish(&whole, NULL, 0, NULL) == -INFINITY);
    for (int i = 0; i < 3; i++) {
        ptowsp_merge_add(&whole, NULL, &states[i], NULL, 0);
    }
    assert_true(fabs((double)ptowsp_merge_finish(&whole, NULL, 0, NULL) - expected) < 1e-6);
}

// -- NaN ------------------------------------------------------------------------------------------

typedef enum nan_place { NAN_IN_M, NAN_IN_L, NAN_IN_ACC, NAN_PLACE_COUNT } nan_place;

static void expect_nan(nan_place place, const float *out, float lse, uint32_t dim, uint32_t at,
                       bool alone) {
    assert_true((isnan(lse) != 0) == (place != NAN_IN_ACC));
    for (uint32_t d = 0; d < dim; d++) {
        if (place == NAN_IN_ACC) {
            assert_true((isnan(out[d]) != 0) == (d == at));  // in its own dimension and no other
        } else if (place == NAN_IN_L || !alone) {
            assert_true(isnan(out[d]));  // weights or their sum are NaN
        }  // else acc / l does not depend on m: the lse alone may show it
    }
}

TEST(merge__nan_in_a_state_shows_up) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 600); round++) {
        static sequence seq;
        uint32_t dim = test_random_u32(&random, 1, 80);
        uint32_t part_count = test_random_u32(&random, 1, 70);
        scores_kind kind = round % 2 ? SCORES_WIDE : SCORES_RISING;  // weights may be 0
        sequence_make(&seq, &random, kind, part_count, dim);
        ptowsp_partial states[PART_COUNT_MAX];
        float *accs = parts_make(&seq, states), *out = floats_make(dim);
        uint32_t part = test_random_u32(&random, 0, part_count - 1);
        while (states[part].m == -INFINITY) {  // there is one that is not empty
            part = (part + 1) % part_count;
        }
        uint32_t full_count = 0;
        for (uint32_t p = 0; p < part_count; p++) {
            full_count += states[p].m > -INFINITY;
        }
        uint32_t at = test_random_u32(&random, 0, dim - 1);
        nan_place place = (nan_place)(round % NAN_PLACE_COUNT);
        *(place == NAN_IN_M   ? &states[part].m
          : place == NAN_IN_L ? &states[part].l
                              : &accs[(size_t)part * dim + at]) = NAN;
        float lse = ptowsp_merge_partials(states, accs, part_count, 1, dim, out);
        expect_nan(place, out, lse, dim, at, full_count == 1);
        merge_chain(&seq, states, accs, 1, out, &lse);
        expect_nan(place, out, lse, dim, at, full_count == 1);
        test_release();
    }
}

// -- placement ------------------------------------------------------------------------------------

TEST(merge__bits_do_not_depend_on_where_arrays_lie) {
    uint64_t random = test_seed();
    static sequence seq;
    for (uint32_t dim = 1; dim <= 150; dim += 7) {
        sequence_make(&seq, &random, SCORES_NARROW, 70, dim);
        ptowsp_partial states[PART_COUNT_MAX];
        float *accs = parts_make(&seq, states), *expected = floats_make(dim);
        float lse = ptowsp_merge_partials(states, accs, 70, 1, dim, expected);
        // In floats: any alignment that floats have.
        for (size_t offset = 1; offset < 16; offset++) {
            float *moved = floats_make((size_t)70 * dim + offset), *out = floats_make(dim + offset);
            memcpy(moved + offset, accs, (size_t)70 * dim * sizeof *accs);
            float again = ptowsp_merge_partials(states, moved + offset, 70, 1, dim, out + offset);
            assert_memory_equal(out + offset, expected, dim * sizeof *out);
            assert_memory_equal(&again, &lse, sizeof lse);
            for (size_t i = 0; i < offset; i++) {
                assert_true(isnan(out[i]));  // nothing was written before the row
            }
        }
        test_release();
    }
}

// -- the weighted sum in all its variants ---------------------------------------------------------

typedef void (*sum_fn)(const pwsp_merge_parts *parts, uint32_t dim, float *sum);

static void sum_portable(const pwsp_merge_parts *parts, uint32_t dim, float *sum) {
    pwsp_merge_sum_body(parts, dim, sum);
}

TEST(merge__every_variant_of_the_sum_is_a_plain_sum) {
    uint64_t random = test_seed();
    sum_fn sums[4] = {pwsp_merge_sum, sum_portable};
    size_t sum_count = 2;
#if PWSP_X86
    if (pwsp_cpu_has_avx2()) {
        sums[sum_count++] = pwsp_merge_sum_avx2;
    }
    if (pwsp_cpu_has_avx512()) {
        sums[sum_count++] = pwsp_merge_sum_avx512;
    }
#endif
    print_message("%u variants\n", (unsigned)sum_count);
    for (uint32_t dim = 0; dim <= 140; dim++) {
        pwsp_merge_parts parts;
        parts.count = test_random_u32(&random, 0, PWSP_MERGE_PARTS);
        float *rows = floats_make((size_t)parts.count * dim), *start = floats_make(dim);
        for (size_t i = 0; i < (size_t)parts.count * dim; i++) {
            rows[i] = (float)(2.0 * random_unit(&random) - 1.0);
        }
        for (uint32_t p = 0; p < parts.count; p++) {
            parts.weights[p] = (float)random_unit(&random);
            parts.rows[p] = rows + (size_t)p * dim;
        }
        for (uint32_t d = 0; d < dim; d++) {
            start[d] = (float)(2.0 * random_unit(&random) - 1.0);
        }
        for (size_t v = 0; v < sum_count; v++) {
            float *sum = floats_make(dim);
            memcpy(sum, start, dim * sizeof *sum);
            sums[v](&parts, dim, sum);
            for (uint32_t d = 0; d < dim; d++) {
                double expected = (double)start[d], magnitude = fabs(expected);
                for (uint32_t p = 0; p < parts.count; p++) {
                    double term = (double)parts.weights[p] * (double)rows[(size_t)p * dim + d];
                    expected += term;
                    magnitude += fabs(term);
                }
                assert_true(fabs((double)sum[d] - expected) <=
                            (parts.count + 1) * UNIT * magnitude);
            }
        }
        test_release();
    }
}

// -- joins ----------------------------------------------------------------------------------------

enum { DEEP_MAX = 200, DEEP_DIM = 3 };

// A request below a chain of segments; every fifth has no KV, the others have one slot or two.
typedef struct deep_join {
    ptowsp_prefix_segment segments[DEEP_MAX];
    ptowsp_prefix_request requests[2];
    ptowsp_work merges[DEEP_MAX];
    ptowsp_partial states[2 * DEEP_MAX];
    float accs[2 * DEEP_MAX * DEEP_DIM];
    ptowsp_prefix_plan plan;
    uint32_t slot_count;
} deep_join;

static void deep_make(deep_join *j, uint32_t depth, uint64_t *random) {
    memset(j, 0, sizeof *j);
    for (uint32_t i = 0; i < depth; i++) {
        const uint32_t slots = 1 + i % 2;
        ptowsp_prefix_segment *s = &j->segments[i];
        s->parent = i > 0 ? i - 1 : PTOWSP_NO_NODE;
        s->token_count = s->count = 1;
        s->kv_end = i % 5 == 4 ? 0 : 16;
        s->merge_begin = i;
        if (s->kv_end > 0) {
            j->merges[i] = ptowsp_work_of(i, 0, 0, i, 0, j->slot_count, slots);
            j->slot_count += slots;
        }
    }
    for (uint32_t slot = 0; slot < j->slot_count; slot++) {
        j->states[slot].m = (float)test_random_in(random, 0, 20) - 10;
        j->states[slot].l = (float)test_random_in(random, 1, 8);
        for (uint32_t d = 0; d < DEEP_DIM; d++) {
            j->accs[slot * DEEP_DIM + d] = (float)test_random_in(random, 0, 100) - 50;
        }
    }
    j->requests[0].segment = depth - 1;
    j->requests[1].token_begin = 1;
    j->plan.attention.merges = j->merges;
    j->plan.attention.tile_tokens = j->plan.attention.group = 1;
    j->plan.segments = j->segments;
    j->plan.requests = j->requests;
}

// The sum of all slots, in double precision.
static void deep_expect(const deep_join *j, const float *out, float lse) {
    double sums[DEEP_DIM] = {0, 0, 0}, weight = 0, size = 0;
    for (uint32_t slot = 0; slot < j->slot_count; slot++) {
        const double w = exp((double)j->states[slot].m);
        weight += w * (double)j->states[slot].l;
        for (uint32_t d = 0; d < DEEP_DIM; d++) {
            sums[d] += w * (double)j->accs[slot * DEEP_DIM + d];
        }
        size += w * 50;
    }
    assert_true(fabs((double)lse - log(weight)) < 1e-5);
    for (uint32_t d = 0; d < DEEP_DIM; d++) {
        assert_true(fabs((double)out[d] - sums[d] / weight) <= 1e-5 * size / weight);
    }
}

// Chains that fit the table of segments, by one or not, and twice as long and more.
TEST(join__rows_have_all_segments_above_them) {
    static deep_join j;
    uint64_t random = test_seed();
    const uint32_t depths[] = {1, 2, 63, 64, 65, 66, 128, 129, DEEP_MAX};
    for (size_t i = 0; i < COUNT_OF(depths); i++) {
        deep_make(&j, depths[i], &random);
        const ptowsp_attention_scratch scratch = {j.states, j.accs, 1, DEEP_DIM};
        const ptowsp_work join = ptowsp_work_of(0, 0, 0, 0, 0, 0, depths[i]);
        float out[DEEP_DIM];
        deep_expect(&j, out, ptowsp_prefix_join_row(&j.plan, &scratch, &join, 0, out));
    }
}

TEST(join__rows_of_empty_slots_are_empty) {
    static deep_join j;
    uint64_t random = test_seed();
    deep_make(&j, 70, &random);
    for (uint32_t slot = 0; slot < j.slot_count; slot++) {
        j.states[slot].m = -INFINITY;
        j.states[slot].l = 0;
    }
    const ptowsp_attention_scratch scratch = {j.states, j.accs, 1, DEEP_DIM};
    const ptowsp_work join = ptowsp_work_of(0, 0, 0, 0, 0, 0, 70);
    float out[DEEP_DIM] = {1, NAN, 3};
    assert_true(ptowsp_prefix_join_row(&j.plan, &scratch, &join, 0, out) == -INFINITY);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0);
    // A dim of 0 gives the log-sum-exp alone, and needs no rows: ln(2 e^3).
    j.states[5].m = 3;
    j.states[5].l = 2;
    const ptowsp_attention_scratch none = {j.states, NULL, 1, 0};
    const float lse = ptowsp_prefix_join_row(&j.plan, &none, &join, 0, NULL);
    assert_true(fabs((double)lse - (3 + log(2))) < 1e-6);
}
