// Sorting of 32 columns and merging of sorted runs, of which isa_kernels_test.cpp makes a top-k; gathers and
// scatters by mask, index and row of a table.
//
// A pair is 8 bytes: a value, and its index in the upper 4. Values fall, NaN stands before
// +infinity, and equal values keep their order.

#include "isa_test.h"
#include "isa_window.h"

enum { ROUNDS = 600, SIDE = 150, PAIRS_MAX = 4096 };

#define SET(name) PTOISA_SET(PTOISA_##name)

static const uint32_t set_float = SET(F16) | SET(F32);
static const uint32_t set_24 =
    SET(F16) | SET(F32) | SET(I16) | SET(I32) | SET(BF16) | SET(U16) | SET(U32);
static const uint32_t set_124 =
    SET(F16) | SET(F32) | SET(I16) | SET(I32) | SET(BF16) | SET(I8) | SET(U8) | SET(U16) | SET(U32);

// -- pairs ----------------------------------------------------------------------------------------

typedef struct pair {
    double value;
    uint32_t index;
} pair;

typedef struct pairs {
    pair at[PAIRS_MAX];
    uint32_t count;
} pairs;

// Does a value stand before another in a sorted list?
static bool is_before(double a, double b) {
    return isnan(a) ? !isnan(b) : !isnan(b) && a > b;
}

// Insertion sort: slow, stable.
static void pairs_sort(pair *at, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        pair one = at[i];
        uint32_t k = i;
        for (; k > 0 && is_before(one.value, at[k - 1].value); k--) {
            at[k] = at[k - 1];
        }
        at[k] = one;
    }
}

// Elements of a type that make a pair.
static uint32_t pair_elements(ptoisa_dtype dtype) {
    return 8 / ref_size(dtype);
}

static pair pair_in(const uint8_t *data, const test_tile *t, uint32_t r, uint32_t i) {
    ptoisa_dtype dtype = (ptoisa_dtype)t->tile.dtype;
    const uint8_t *row = data + (size_t)r * t->tile.cols * ref_size(dtype) + (size_t)i * 8;
    pair one = {ref_decode(dtype, ref_get_bits(row, dtype, 0)),
                (uint32_t)ref_get_bits(row, PTOISA_U32, 1)};
    return one;
}

static void pair_put(test_tile *t, uint32_t i, pair one) {
    ptoisa_dtype dtype = (ptoisa_dtype)t->tile.dtype;
    uint8_t *at = (uint8_t *)t->tile.data + (size_t)i * 8;
    ref_put_bits(at, dtype, 0, ref_encode(dtype, one.value));
    ref_put_bits(at, PTOISA_U32, 1, one.index);
}

static void expect_pair(const test_bench *bench, const test_tile *d, uint32_t r, uint32_t i,
                        pair want) {
    pair got = pair_in((const uint8_t *)d->tile.data, d, r, i);
    bool is_same = got.value == want.value || (isnan(got.value) && isnan(want.value));
    if (!is_same || got.index != want.index) {
        fail_msg("%s %s, round %llu: pair %u, %u is (%g, %u), expected (%g, %u); fault \"%s\"",
                 bench->what, ptoisa_dtype_name((ptoisa_dtype)d->tile.dtype),
                 (unsigned long long)bench->round, r, i, got.value, got.index, want.value,
                 want.index, bench->fault);
    }
}

// A value to sort: few distinct ones as often as not, some special.
static double value_of(test_bench *bench, ptoisa_dtype dtype, uint32_t kinds) {
    if (test_chance(bench, 12)) {
        return test_special(bench, dtype);
    }
    return kinds ? (double)test_in(bench, 0, kinds) - 2 : test_number(bench, dtype, TEST_PLAIN);
}

// -- sorting --------------------------------------------------------------------------------------

ROUNDS_TEST(sort__every_32_columns_fall, ROUNDS) {
    ptoisa_dtype dtype = test_dtype(bench, set_float);
    uint32_t rows = test_size(bench, 6), cols = 32 * test_in(bench, 1, 6);
    cols -= round % 4 ? 0 : test_in(bench, 0, 31);  // the last ones may be fewer
    uint32_t kinds = test_in(bench, 0, 5);
    test_begin(bench, PTOISA_A2A3, "TSORT32");
    test_tile *s = test_vec(bench, dtype, rows, cols);
    test_tile *index = test_vec(bench, PTOISA_U32, rows, cols);
    test_tile *d = test_written(test_vec(bench, dtype, rows, cols * pair_elements(dtype)));
    for (uint32_t i = 0; i < rows * cols; i++) {
        test_put(s, i / cols, i % cols, value_of(bench, dtype, kinds));
        test_put(index, i / cols, i % cols, (double)(uint32_t)test_random(bench));
    }
    test_run(bench);
    ptoisa_tsort32(&bench->core, &d->tile, &s->tile, &index->tile);
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t block = 0; block < cols; block += 32) {
            const uint32_t count = cols - block < 32 ? cols - block : 32;
            pair want[32];
            for (uint32_t c = 0; c < count; c++) {
                want[c].value = ref_was(s, r, block + c);
                want[c].index = (uint32_t)ref_was_bits(index, r, block + c);
            }
            pairs_sort(want, count);
            for (uint32_t c = 0; c < count; c++) {
                expect_pair(bench, d, r, block + c, want[c]);
            }
        }
    }
}

// Fills a row of a tile with runs of pairs that each fall.
static void fill_runs(test_bench *bench, test_tile *t, uint32_t run, uint32_t count, pairs *all) {
    ptoisa_dtype dtype = (ptoisa_dtype)t->tile.dtype;
    uint32_t kinds = test_in(bench, 0, 9);
    for (uint32_t i = 0; i < count; i++) {
        pair one = {ref_round(dtype, value_of(bench, dtype, kinds)), (uint32_t)test_random(bench)};
        all->at[all->count + i] = one;
    }
    for (uint32_t i = 0; i < count; i += run) {
        pairs_sort(all->at + all->count + i, run < count - i ? run : count - i);
    }
    for (uint32_t i = 0; i < count; i++) {
        pair_put(t, i, all->at[all->count + i]);
    }
    all->count += count;
}

ROUNDS_TEST(merge__groups_of_four_runs, ROUNDS) {
    static pairs all;
    ptoisa_dtype dtype = test_dtype(bench, set_float);
    uint32_t each = pair_elements(dtype);
    // A run is a multiple of 64 elements.
    uint32_t run = 64 / each * test_in(bench, 1, 3), groups = test_in(bench, 1, 4);
    uint32_t count = 4 * run * groups;
    test_begin(bench, PTOISA_A2A3, "TMRGSORT");
    test_tile *s = test_vec(bench, dtype, 1, count * each);
    test_tile *d = test_written(test_vec(bench, dtype, 1, count * each));
    all.count = 0;
    fill_runs(bench, s, run, count, &all);
    test_run(bench);
    ptoisa_tmrgsort(&bench->core, &d->tile, &s->tile, run * each);
    for (uint32_t i = 0; i < count; i += 4 * run) {
        pairs_sort(all.at + i, 4 * run);
    }
    for (uint32_t i = 0; i < count; i++) {
        expect_pair(bench, d, 0, i, all.at[i]);
    }
}

// Merges lists that follow each other in `all`, until all are empty or, if told so, one is. Returns
// how many pairs that makes.
static uint32_t merge_plainly(const pairs *all, uint32_t lists_count, const uint32_t counts[4],
                              bool exhausted, pairs *out, uint32_t taken[4]) {
    out->count = 0;
    memset(taken, 0, 4 * sizeof taken[0]);
    for (;;) {
        uint32_t best = 4, start = 0;
        double best_value = 0;
        for (uint32_t i = 0; i < lists_count; i++) {
            double value = all->at[start + (taken[i] < counts[i] ? taken[i] : 0)].value;
            if (taken[i] < counts[i] && (best == 4 || is_before(value, best_value))) {
                best = i;
                best_value = value;
                out->at[out->count] = all->at[start + taken[i]];
            }
            start += counts[i];
        }
        if (best == 4) {
            return out->count;
        }
        out->count++;
        taken[best]++;
        if (exhausted && taken[best] == counts[best]) {
            return out->count;
        }
    }
}

ROUNDS_TEST(merge__two_to_four_lists, 2 * ROUNDS) {
    static pairs all, want;
    uint32_t taken[4];
    ptoisa_dtype dtype = test_dtype(bench, set_float);
    uint32_t each = pair_elements(dtype), lists_count = test_in(bench, 2, 4), total = 0;
    uint32_t counts[4] = {0, 0, 0, 0};
    test_begin(bench, PTOISA_A2A3, "TMRGSORT of lists");
    const ptoisa_tile *lists[4];
    all.count = 0;
    for (uint32_t i = 0; i < lists_count; i++) {
        counts[i] = test_size(bench, 300);
        test_tile *s = test_vec(bench, dtype, 1, counts[i] * each);
        fill_runs(bench, s, counts[i], counts[i], &all);
        lists[i] = &s->tile;
        total += counts[i];
    }
    test_tile *d = test_written(test_vec(bench, dtype, 1, total * each));
    test_tile *t = test_scratch(test_vec(bench, dtype, 1, total * each));
    uint16_t executed[4] = {7, 7, 7, 7};
    test_run(bench);
    bool exhausted = test_chance(bench, 3);
    ptoisa_tmrgsort_lists(&bench->core, &d->tile, &t->tile, lists, lists_count, executed,
                          exhausted);
    uint32_t merged = merge_plainly(&all, lists_count, counts, exhausted, &want, taken);
    for (uint32_t i = 0; i < merged; i++) {
        expect_pair(bench, d, 0, i, want.at[i]);
    }
    for (uint32_t c = merged * each; c < total * each; c++) {
        test_expect_bits(bench, d, 0, c, ref_was_bits(d, 0, c));
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(executed[i], taken[i]);
    }
}

// -- gathers --------------------------------------------------------------------------------------

// What is taken of all rows lies together; what is behind it stays.
ROUNDS_TEST(gather__by_mask_equals_the_reference, ROUNDS) {
    static const ptoisa_pattern patterns[7] = {PTOISA_P0101, PTOISA_P1010, PTOISA_P0001,
                                               PTOISA_P0010, PTOISA_P0100, PTOISA_P1000,
                                               PTOISA_P1111};
    static const uint32_t firsts[7] = {0, 1, 0, 1, 2, 3, 0}, steps[7] = {2, 2, 4, 4, 4, 4, 1};
    const uint32_t which = round % 7, rows = test_size(bench, 12);
    ptoisa_dtype dtype = test_dtype(bench, set_24);
    const uint32_t block = 32 / ref_size(dtype), cols = block * test_in(bench, 1, 4);
    uint32_t from = cols * steps[which];
    from = test_chance(bench, 2) ? from : test_in(bench, 1, from);
    test_begin(bench, PTOISA_A2A3, "TGATHER by mask");
    test_tile *s = test_vec(bench, dtype, rows, from);
    test_tile *d = test_whole(bench, dtype, rows, cols);
    d->role = TEST_CHECKED;
    test_run(bench);
    ptoisa_tgather_mask(&bench->core, &d->tile, &s->tile, patterns[which]);
    uint32_t at = 0;
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = firsts[which]; c < from; c += steps[which], at++) {
            test_expect_bits(bench, d, at / cols, at % cols, ref_was_bits(s, r, c));
        }
    }
    for (; at < rows * cols; at++) {
        test_expect_bits(bench, d, at / cols, at % cols, ref_was_bits(d, at / cols, at % cols));
    }
}

// An index counts elements of the whole tile, row by row.
static uint64_t linear_bits(const test_tile *s, uint32_t index) {
    return ref_get_bits(s->before, (ptoisa_dtype)s->tile.dtype, index);
}

ROUNDS_TEST(gather__by_index_equals_the_reference, ROUNDS) {
    ptoisa_dtype dtype = test_dtype(bench, set_24);
    ptoisa_dtype word = round % 2 ? PTOISA_U32 : PTOISA_I32;
    uint32_t rows = test_size(bench, 12), cols = test_size(bench, SIDE);
    uint32_t s_rows = test_size(bench, 12), s_cols = test_size(bench, SIDE);
    test_begin(bench, PTOISA_A2A3, "TGATHER by index");
    uint32_t whole = 32 / ref_size(dtype);
    s_cols = (s_cols + whole - 1) / whole * whole;
    test_tile *s = test_whole(bench, dtype, s_rows, s_cols);
    test_tile *index = test_vec(bench, word, rows, cols);
    test_tile *t = test_scratch(test_tile_make(bench, word, PTOISA_VEC, PTOISA_ROW_MAJOR,
                                               index->tile.rows, index->tile.cols, rows, cols));
    test_tile *d = test_written(test_vec(bench, dtype, rows, cols));
    for (uint32_t i = 0; i < rows * cols; i++) {
        test_put(index, i / cols, i % cols, test_in(bench, 0, s_rows * s_cols - 1));
    }
    test_run(bench);
    ptoisa_tgather(&bench->core, &d->tile, &s->tile, &index->tile, &t->tile);
    for (uint32_t i = 0; i < rows * cols; i++) {
        uint32_t from = (uint32_t)ref_was(index, i / cols, i % cols);
        test_expect_bits(bench, d, i / cols, i % cols, linear_bits(s, from));
    }
}

// All elements go to places of their own: a permutation, of which a part is used; or to any, where the last
// one stays.
ROUNDS_TEST(scatter__by_index_equals_the_reference, ROUNDS) {
    ptoisa_dtype dtype = test_dtype(bench, set_124);
    ptoisa_dtype word = ref_size(dtype) == 4 ? (round % 2 ? PTOISA_I32 : PTOISA_U32)
                                             : (round % 2 ? PTOISA_I16 : PTOISA_U16);
    uint32_t block = 32 / ref_size(dtype);
    uint32_t d_rows = test_in(bench, 1, 8), d_cols = block * test_in(bench, 1, 4);
    uint32_t rows = test_in(bench, 1, d_rows), cols = test_in(bench, 1, d_cols);
    test_begin(bench, PTOISA_A2A3, "TSCATTER");
    test_tile *s = test_vec(bench, dtype, rows, cols), *index = test_vec(bench, word, rows, cols);
    test_tile *d = test_whole(bench, dtype, d_rows, d_cols);
    d->role = TEST_CHECKED;
    static uint32_t places[8 * 4 * 32], from[8 * 4 * 32];
    uint32_t size = d_rows * d_cols;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t k = test_in(bench, 0, i);
        places[i] = places[k];
        places[k] = i;
        from[i] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < rows * cols; i++) {
        places[i] = round % 4 == 3 ? test_in(bench, 0, size - 1) : places[i];
        test_put(index, i / cols, i % cols, places[i]);
        from[places[i]] = i;
    }
    test_run(bench);
    ptoisa_tscatter(&bench->core, &d->tile, &s->tile, &index->tile);
    for (uint32_t i = 0; i < size; i++) {
        uint64_t want = from[i] == UINT32_MAX ? linear_bits(d, i)
                                              : ref_was_bits(s, from[i] / cols, from[i] % cols);
        test_expect_bits(bench, d, i / d_cols, i % d_cols, want);
    }
}

ROUNDS_TEST(gather__rows_of_a_table_equal_the_reference, 2 * ROUNDS) {
    bool is_scatter = round % 2;
    ptoisa_dtype dtype = test_dtype(bench, set_124);
    ptoisa_dtype word = test_chance(bench, 2) ? PTOISA_U32 : PTOISA_I32;
    uint32_t table_rows = test_in(bench, 1, 60), cols = test_size(bench, SIDE);
    uint32_t rows = is_scatter ? test_in(bench, 1, table_rows) : test_size(bench, 40);
    test_begin(bench, PTOISA_A2A3, is_scatter ? "MSCATTER" : "MGATHER");
    test_window w = test_window_make(bench, dtype, table_rows, cols, true, false);
    test_tile *index = test_vec(bench, word, 1, rows);
    test_tile *t = test_vec(bench, dtype, rows, cols);
    uint32_t to[60];
    for (uint32_t i = 0; is_scatter && i < table_rows; i++) {
        uint32_t k = test_in(bench, 0, i);
        to[i] = to[k];
        to[k] = i;
    }
    for (uint32_t r = 0; r < rows; r++) {
        test_put(index, 0, r, is_scatter ? to[r] : test_in(bench, 0, table_rows - 1));
    }
    (is_scatter ? w.buffer : t)->role = is_scatter ? TEST_CHECKED : TEST_WRITTEN;
    test_run(bench);
    if (is_scatter) {
        ptoisa_mscatter(&bench->core, &w.global, &t->tile, &index->tile);
    } else {
        ptoisa_mgather(&bench->core, &t->tile, &w.global, &index->tile);
    }
    // Rows of the table that nothing was put into.
    bool is_hit[60] = {false};
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t row = (uint32_t)ref_was(index, 0, r);
        is_hit[row] = true;
        for (uint32_t c = 0; c < cols; c++) {
            if (is_scatter) {
                test_expect_bits(bench, w.buffer, 0, test_window_at(&w, row, c),
                                 ref_was_bits(t, r, c));
            } else {
                test_expect_bits(bench, t, r, c, test_window_was(&w, row, c));
            }
        }
    }
    for (uint32_t i = 0; is_scatter && i < table_rows * cols; i++) {
        if (!is_hit[i / cols]) {
            test_expect_bits(bench, w.buffer, 0, test_window_at(&w, i / cols, i % cols),
                             test_window_was(&w, i / cols, i % cols));
        }
    }
    if (is_scatter) {
        test_window_rest_is_untouched(bench, &w);
    }
}

// Elements or rows of a table, with indices that may be outside; into UB, rows also into L1.
ROUNDS_TEST(gather__places_outside_of_a_table_follow_their_mode, 2 * ROUNDS) {
    const ptoisa_outside outside = (ptoisa_outside)(round % 4);
    const bool is_elements = test_chance(bench, 2);
    ptoisa_dtype dtype = test_dtype(bench, set_124);
    ptoisa_dtype word = test_chance(bench, 2) ? PTOISA_U32 : PTOISA_I32;
    uint32_t table_rows = test_in(bench, 1, 20), table_cols = test_size(bench, SIDE);
    uint32_t rows = test_size(bench, 20), cols = is_elements ? test_size(bench, 30) : table_cols;
    test_begin(bench, PTOISA_A2A3, "MGATHER");
    test_window w = test_window_make(bench, dtype, table_rows, table_cols, false, false);
    test_tile *index =
        is_elements ? test_vec(bench, word, rows, cols) : test_column(bench, word, rows);
    uint32_t box = (cols + 31) / 32 * 32;
    test_tile *t = is_elements || test_chance(bench, 2)
                       ? test_vec(bench, dtype, rows, cols)
                       : test_tile_make(bench, dtype, PTOISA_MAT, PTOISA_NZ, (rows + 31) / 32 * 32,
                                        box, rows, cols);
    t->role = TEST_WRITTEN;
    int64_t size = is_elements ? (int64_t)table_rows * table_cols : table_rows;
    for (uint32_t i = 0; i < rows * index->tile.valid_cols; i++) {
        int64_t at = (int64_t)test_in(bench, 0, (uint32_t)size - 1);
        if (outside != PTOISA_OUTSIDE_FAULT && test_chance(bench, 2)) {
            at += size * (int64_t)test_in(bench, 0, 4) - (word == PTOISA_I32 ? 2 * size : 0);
        }
        test_put(index, i / index->tile.valid_cols, i % index->tile.valid_cols, (double)at);
    }
    test_run(bench);
    ptoisa_mgather_by(&bench->core, &t->tile, &w.global, &index->tile, is_elements, outside);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        int64_t at = (int64_t)ref_was(index, r, is_elements ? c : 0);
        bool is_zero = outside == PTOISA_OUTSIDE_ZERO && (at < 0 || at >= size);
        if (outside == PTOISA_OUTSIDE_CLAMP) {
            at = at < 0 ? 0 : at >= size ? size - 1 : at;
        } else {
            at = (at % size + size) % size;
        }
        uint32_t row = (uint32_t)(is_elements ? at / table_cols : at);
        uint32_t col = is_elements ? (uint32_t)(at % table_cols) : c;
        test_expect_bits(bench, t, r, c, is_zero ? 0 : test_window_was(&w, row, col));
    }
}

// Elements and rows that meet in a table: the last stays, or they are added or compared in order.
ROUNDS_TEST(scatter__places_that_meet, 2 * ROUNDS) {
    const ptoisa_scatter how = (ptoisa_scatter)(round % 4);
    const bool is_elements = test_chance(bench, 2);
    ptoisa_dtype dtype = test_dtype(bench, set_124);
    uint32_t table_rows = test_in(bench, 1, 6), table_cols = test_size(bench, 40);
    uint32_t rows = test_size(bench, 12), cols = is_elements ? test_size(bench, 30) : table_cols;
    test_begin(bench, PTOISA_A2A3, "MSCATTER");
    test_window w = test_window_make(bench, dtype, table_rows, table_cols, false, false);
    test_tile *index = is_elements ? test_vec(bench, PTOISA_U32, rows, cols)
                                   : test_column(bench, PTOISA_U32, rows);
    test_tile *t = test_vec(bench, dtype, rows, cols);
    test_fill(bench, t, TEST_PLAIN);
    uint32_t size = is_elements ? table_rows * table_cols : table_rows;
    for (uint32_t i = 0; i < rows * index->tile.valid_cols; i++) {
        test_put(index, i / index->tile.valid_cols, i % index->tile.valid_cols,
                 test_in(bench, 0, size - 1));
    }
    w.buffer->role = TEST_CHECKED;
    test_run(bench);
    ptoisa_mscatter_by(&bench->core, &w.global, &t->tile, &index->tile, is_elements, how);
    double *want = (double *)malloc(table_rows * table_cols * sizeof *want);
    assert_non_null(want);
    for (uint32_t i = 0; i < table_rows * table_cols; i++) {
        want[i] = ref_decode(dtype, test_window_was(&w, i / table_cols, i % table_cols));
    }
    static const ptoisa_op ops[4] = {PTOISA_NOP, PTOISA_TADD, PTOISA_TMAX, PTOISA_TMIN};
    for (uint32_t i = 0; i < rows * cols; i++) {
        uint32_t r = i / cols, c = i % cols;
        uint32_t at = (uint32_t)ref_was(index, r, is_elements ? c : 0);
        at = is_elements ? at : at * table_cols + c;
        double x = ref_was(t, r, c);
        want[at] = how == PTOISA_SCATTER_REPLACE
                       ? x
                       : ref_round(dtype, ref_binary(ops[how], dtype, want[at], x));
    }
    for (uint32_t i = 0; i < table_rows * table_cols; i++) {
        test_expect_value(bench, w.buffer, 0, test_window_at(&w, i / table_cols, i % table_cols),
                          want[i]);
    }
    free(want);
    test_window_rest_is_untouched(bench, &w);
}

// Blocks of 32 bytes from any byte on, the last of a row cut off.
ROUNDS_TEST(gather__blocks_by_their_byte, ROUNDS) {
    ptoisa_dtype dtype = test_dtype(bench, set_124);
    uint32_t size = ref_size(dtype), rows = test_size(bench, 10), cols = test_size(bench, 90);
    uint32_t blocks = (cols * size + 31) / 32;
    test_begin(bench, PTOISA_A2A3, "TGATHERB");
    test_tile *s = test_vec(bench, dtype, test_size(bench, 9), test_size(bench, 90));
    test_tile *offsets = test_vec(bench, PTOISA_U32, rows, blocks);
    test_tile *d = test_written(test_vec(bench, dtype, rows, cols));
    for (uint32_t i = 0; i < rows * blocks; i++) {
        test_put(offsets, i / blocks, i % blocks, test_in(bench, 0, (uint32_t)s->bytes - 32));
    }
    test_run(bench);
    ptoisa_tgatherb(&bench->core, &d->tile, &s->tile, &offsets->tile);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        uint32_t at = (uint32_t)ref_was(offsets, r, c * size / 32) + c * size % 32;
        test_expect_bits(bench, d, r, c, ref_get_bits(s->before + at, dtype, 0));
    }
}
