// Transposes, fills, joins, patterns and views: what an instruction puts where, element by element.

#include "isa_test.h"

enum { ROUNDS = 1500, SIDE = 70 };

#define SET(name) PTOISA_SET(PTOISA_##name)

static const uint32_t set_any =
    SET(F16) | SET(F32) | SET(I16) | SET(I32) | SET(BF16) | SET(I8) | SET(U8) | SET(U16) | SET(U32);

static double pad_value(ptoisa_pad pad, ptoisa_dtype dtype) {
    bool is_float = ref_is_float(dtype);
    switch (pad) {
    case PTOISA_PAD_MAX: return is_float ? (double)INFINITY : ref_greatest(dtype);
    case PTOISA_PAD_MIN: return is_float ? -(double)INFINITY : ref_least(dtype);
    default: return 0;
    }
}

BENCH_TEST(trans__swaps_rows_and_columns) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ptoisa_dtype dtype = test_dtype(bench, set_any);
        uint32_t rows = test_size(bench, SIDE), cols = test_size(bench, SIDE);
        test_begin(bench, PTOISA_A2A3, "TTRANS");
        test_tile *s = test_vec(bench, dtype, rows, cols),
                  *d = test_written(test_vec(bench, dtype, cols, rows));
        uint32_t across = (s->tile.rows + 31) / 32 * 32;
        test_tile *t = test_scratch(test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR,
                                                   s->tile.cols, across, s->tile.cols, across));
        test_run(bench);
        ptoisa_ttrans(&bench->core, &d->tile, &s->tile, &t->tile);
        TEST_GRID(uint32_t, r, cols, c, rows) {
            test_expect_bits(bench, d, r, c, ref_was_bits(s, c, r));
        }
        test_end(bench);
    }
}

BENCH_TEST(expands__fills_the_valid_region) {
    for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
        ptoisa_dtype dtype = test_dtype(bench, set_any);
        uint32_t rows = test_size(bench, 20), cols = test_size(bench, SIDE);
        test_begin(bench, PTOISA_A2A3, "TEXPANDS");
        test_tile *d = round % 5 == 0 ? test_column(bench, dtype, rows)
                       : round % 5 == 1
                           ? test_tile_make(bench, dtype, PTOISA_MAT, PTOISA_NZ, 32, 64, 32, 64)
                           : test_vec(bench, dtype, rows, cols);
        d->role = TEST_WRITTEN;
        double x = test_number(bench, dtype, TEST_ANY);
        test_run(bench);
        ptoisa_texpands(&bench->core, &d->tile, x);
        TEST_GRID(uint32_t, r, d->tile.valid_rows, c, d->tile.valid_cols) {
            test_expect(bench, d, r, c, x, 0);
        }
        test_end(bench);
    }
}

// Bits inside what the source has; the pad value elsewhere in the destination's valid region;
// around it the pad value too, or nothing.
static void expect_filled(const test_bench *bench, const test_tile *d, const test_tile *s,
                          uint32_t rows, uint32_t cols) {
    ptoisa_dtype dtype = (ptoisa_dtype)d->tile.dtype;
    uint64_t pad = ref_encode(dtype, pad_value((ptoisa_pad)d->tile.pad, dtype));
    TEST_GRID(uint32_t, r, d->tile.rows, c, d->tile.cols) {
        bool is_free = r >= d->tile.valid_rows || c >= d->tile.valid_cols;
        if (r < rows && c < cols) {
            test_expect_bits(bench, d, r, c, ref_was_bits(s, r, c));
        } else if (!is_free || ref_now_bits(d, r, c) != ref_was_bits(d, r, c)) {
            test_expect_bits(bench, d, r, c, pad);
        }
    }
}

BENCH_TEST(fillpad__fills_around_what_is_valid) {
    for (uint32_t round = 0; round < 3 * ROUNDS; round++) {
        static const char *const names[3] = {"TFILLPAD", "TFILLPAD_INPLACE", "TFILLPAD_EXPAND"};
        uint32_t form = round % 3, rows = test_size(bench, 20), cols = test_size(bench, SIDE);
        ptoisa_dtype dtype = test_dtype(bench, set_any);
        test_begin(bench, PTOISA_A2A3, names[form]);
        test_tile *s = test_vec(bench, dtype, rows, cols);
        uint32_t more = form == 2 ? 32 / ref_size(dtype) * test_in(bench, 0, 3) : 0;
        test_tile *d = form == 1
                           ? s
                           : test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR,
                                            s->tile.rows + (form == 2 ? test_in(bench, 0, 5) : 0),
                                            s->tile.cols + more, 1, 1);
        ptoisa_tile from = s->tile;
        d->role = TEST_CHECKED;
        d->tile.pad = (uint8_t)test_in(bench, PTOISA_PAD_ZERO, PTOISA_PAD_MIN);
        d->tile.valid_rows =
            test_chance(bench, 3) ? test_in(bench, rows, d->tile.rows) : d->tile.rows;
        d->tile.valid_cols =
            test_chance(bench, 3) ? test_in(bench, cols, d->tile.cols) : d->tile.cols;
        test_run(bench);
        switch (form) {
        case 0: ptoisa_tfillpad(&bench->core, &d->tile, &from); break;
        case 1: ptoisa_tfillpad_inplace(&bench->core, &d->tile, &from); break;
        default: ptoisa_tfillpad_expand(&bench->core, &d->tile, &from); break;
        }
        expect_filled(bench, d, s, rows, cols);
        test_end(bench);
    }
}

BENCH_TEST(fillpad__pads_equal_the_reference_in_every_type) {
    // By hand: bits of the pad values Zero, Max, Min.
    static const struct {
        ptoisa_dtype dtype;
        uint64_t pads[3];
    } cases[9] = {{PTOISA_F32, {0, 0x7f800000, 0xff800000}},
                  {PTOISA_F16, {0, 0x7c00, 0xfc00}},
                  {PTOISA_BF16, {0, 0x7f80, 0xff80}},
                  {PTOISA_I8, {0, 0x7f, 0x80}},
                  {PTOISA_I16, {0, 0x7fff, 0x8000}},
                  {PTOISA_I32, {0, 0x7fffffff, 0x80000000}},
                  {PTOISA_U8, {0, 0xff, 0}},
                  {PTOISA_U16, {0, 0xffff, 0}},
                  {PTOISA_U32, {0, 0xffffffff, 0}}};
    for (uint32_t i = 0; i < 27; i++) {
        test_begin(bench, PTOISA_A2A3, "TFILLPAD by hand");
        ptoisa_dtype dtype = cases[i / 3].dtype;
        test_tile *s = test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, 1, 64, 1, 63);
        test_tile *d =
            test_written(test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, 1, 64, 1, 64));
        d->tile.pad = (uint8_t)(PTOISA_PAD_ZERO + i % 3);
        test_run(bench);
        ptoisa_tfillpad(&bench->core, &d->tile, &s->tile);
        test_expect_bits(bench, d, 0, 62, ref_was_bits(s, 0, 62));
        test_expect_bits(bench, d, 0, 63, cases[i / 3].pads[i % 3]);
        test_end(bench);
    }
}

BENCH_TEST(concat__joins_columns) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ptoisa_dtype dtype = test_dtype(bench, set_any);
        uint32_t rows = test_size(bench, 20), left = test_size(bench, SIDE);
        uint32_t right = test_chance(bench, 8) ? 0 : test_size(bench, SIDE);
        test_begin(bench, PTOISA_A2A3, "TCONCAT");
        test_tile *a = test_vec(bench, dtype, rows, left);
        test_tile *b = test_vec(bench, dtype, rows, right ? right : 1);
        test_tile *d = test_written(test_vec(bench, dtype, rows, left + right));
        const ptoisa_tile joined = ptoisa_tile_valid(b->tile, rows, right);
        test_run(bench);
        ptoisa_tconcat(&bench->core, &d->tile, &a->tile, &joined);
        TEST_GRID(uint32_t, r, rows, c, left + right) {
            test_expect_bits(bench, d, r, c,
                             c < left ? ref_was_bits(a, r, c) : ref_was_bits(b, r, c - left));
        }
        test_end(bench);
    }
}

// Two tiles as one of 2n columns.
static uint64_t was_pair(const test_tile *a, const test_tile *b, uint32_t n, uint32_t r,
                         uint32_t c) {
    return c < n ? ref_was_bits(a, r, c) : ref_was_bits(b, r, c - n);
}

BENCH_TEST(interleave__and_back_is_the_same) {
    for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
        bool is_inverse = round % 2;
        ptoisa_dtype dtype = test_dtype(bench, set_any);
        uint32_t rows = test_size(bench, 20), n = test_size(bench, SIDE);
        test_begin(bench, PTOISA_A5, is_inverse ? "TDEINTERLEAVE" : "TINTERLEAVE");
        test_tile *a = test_vec(bench, dtype, rows, n), *b = test_vec(bench, dtype, rows, n);
        test_tile *d = test_written(test_vec(bench, dtype, rows, n)),
                  *e = test_written(test_vec(bench, dtype, rows, n));
        test_run(bench);
        (is_inverse ? ptoisa_tdeinterleave : ptoisa_tinterleave)(&bench->core, &d->tile, &e->tile,
                                                                 &a->tile, &b->tile);
        TEST_GRID(uint32_t, r, rows, c, n) {
            if (is_inverse) {
                test_expect_bits(bench, d, r, c, was_pair(a, b, n, r, 2 * c));
                test_expect_bits(bench, e, r, c, was_pair(a, b, n, r, 2 * c + 1));
            } else {
                test_expect_bits(bench, d, r, c, ref_was_bits(c % 2 ? b : a, r, c / 2));
                test_expect_bits(bench, e, r, c, ref_was_bits((n + c) % 2 ? b : a, r, (n + c) / 2));
            }
        }
        test_end(bench);
    }
}

BENCH_TEST(ci__counts_up_or_down) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ptoisa_dtype dtype = test_dtype(bench, SET(I16) | SET(I32) | SET(U16) | SET(U32));
        uint32_t cols = test_in(bench, 1, 300);
        bool is_descending = test_chance(bench, 2);
        test_begin(bench, PTOISA_A2A3, "TCI");
        test_tile *d = test_written(test_vec(bench, dtype, 1, cols));
        double start = test_in(bench, 300, 32767);  // I16 wraps
        start = ref_is_signed(dtype) && test_chance(bench, 2) ? -start : start;
        test_run(bench);
        ptoisa_tci(&bench->core, &d->tile, start, is_descending);
        for (uint32_t c = 0; c < cols; c++) {
            test_expect(bench, d, 0, c,
                        ref_wrap_whole(dtype, is_descending ? start - c : start + c), 0);
        }
        test_end(bench);
    }
}

BENCH_TEST(tri__is_one_on_one_side_of_the_diagonal) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ptoisa_dtype dtype =
            test_dtype(bench, SET(I16) | SET(I32) | SET(U16) | SET(U32) | SET(F16) | SET(F32));
        uint32_t rows = test_size(bench, 30), cols = test_size(bench, SIDE);
        bool is_upper = test_chance(bench, 2);
        int32_t diagonal = (int32_t)test_in(bench, 0, 60) - 30;
        diagonal = test_chance(bench, 3)    ? 0
                   : test_chance(bench, 40) ? (round % 2 ? INT32_MAX : INT32_MIN)
                                            : diagonal;
        test_begin(bench, PTOISA_A2A3, "TTRI");
        test_tile *d = test_written(test_vec(bench, dtype, rows, cols));
        test_run(bench);
        ptoisa_ttri(&bench->core, &d->tile, is_upper, diagonal);
        TEST_GRID(uint32_t, r, rows, c, cols) {
            int64_t right = (int64_t)c - (int64_t)r;
            bool is_one = is_upper ? right >= diagonal : right <= diagonal;
            test_expect(bench, d, r, c, is_one, 0);
        }
        test_end(bench);
    }
}

// A view moves nothing, charges nothing, and an instruction on it works on the elements it shows.
BENCH_TEST(subview__shows_a_part) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        test_begin(bench, PTOISA_A2A3, "TSUBVIEW");
        uint32_t cols = 8 * test_in(bench, 1, 6), rows = test_in(bench, 1, 8);
        test_tile *s =
            test_tile_make(bench, PTOISA_F32, PTOISA_VEC, PTOISA_ROW_MAJOR, rows, cols, rows, cols);
        uint32_t row = test_in(bench, 0, rows - 1), col = 8 * test_in(bench, 0, cols / 8 - 1);
        uint32_t view_rows = test_in(bench, 1, rows - row),
                 view_cols = test_in(bench, 1, cols - col);
        test_run(bench);
        ptoisa_tile view = ptoisa_tsubview(&s->tile, row, col, view_rows, view_cols);
        assert_int_equal(ptoisa_cycles(&bench->core), 0);
        assert_int_equal(view.valid_rows, view_rows);
        assert_int_equal(view.valid_cols, view_cols);
        TEST_GRID(uint32_t, r, view_rows, c, view_cols) {
            uint64_t bits = ref_get_bits(view.data, PTOISA_F32, ref_offset(&view, r, c));
            assert_true(bits == ref_was_bits(s, row + r, col + c));
        }
        s->role = TEST_CHECKED;
        ptoisa_texpands(&bench->core, &view, 7);
        TEST_GRID(uint32_t, r, rows, c, cols) {
            bool is_in = r - row < view_rows && c - col < view_cols;
            test_expect_bits(bench, s, r, c,
                             is_in ? ref_encode(PTOISA_F32, 7) : ref_was_bits(s, r, c));
        }
        test_end(bench);
    }
}

BENCH_TEST(reshape__is_another_view_of_the_same_bytes) {
    test_begin(bench, PTOISA_A2A3, "TRESHAPE");
    test_tile *s = test_tile_make(bench, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, 8, 1, 5, 1);
    ptoisa_tile shape = ptoisa_tile_vec(NULL, PTOISA_F32, 1, 8);
    shape.valid_cols = 5;
    ptoisa_tile row = ptoisa_treshape(&shape, &s->tile);
    assert_ptr_equal(row.data, s->tile.data);
    assert_int_equal(row.layout, PTOISA_ROW_MAJOR);
    assert_int_equal(row.rows, 1);
    assert_int_equal(row.cols, 8);
    assert_int_equal(row.valid_rows, 1);
    assert_int_equal(row.valid_cols, 5);
    test_run(bench);
    test_end(bench);
}
