// Loads, stores and moves between memories and layouts; transposes, fills, joins, patterns and views. What
// moves is compared bit by bit, and nothing else may change, in tiles or in global memory.

#include "isa_test.h"
#include "isa_window.h"

enum { ROUNDS = 600, SIDE = 70 };

#define SET(name) PTOISA_SET(PTOISA_##name)

static const uint32_t set_any =
    SET(F16) | SET(F32) | SET(I16) | SET(I32) | SET(BF16) | SET(I8) | SET(U8) | SET(U16) | SET(U32);
static const uint32_t set_64 = SET(I64) | SET(U64);

// A tile that is allocated in whole boxes (or rows of 32 bytes) around its valid sizes.
static test_tile *tile_in(test_bench *bench, ptoisa_dtype dtype, ptoisa_memory memory,
                          ptoisa_layout layout, uint32_t valid_rows, uint32_t valid_cols) {
    uint32_t block = 32 / ref_size(dtype), row_unit = 1, col_unit = 1;
    switch (layout) {
    case PTOISA_ROW_MAJOR: col_unit = block; break;
    case PTOISA_COL_MAJOR: row_unit = block; break;
    case PTOISA_NZ:
    case PTOISA_ZZ:
        row_unit = 16;
        col_unit = memory == PTOISA_ACC ? 16 : block;
        break;
    default:
        row_unit = memory == PTOISA_ACC ? 16 : block;
        col_unit = 16;
        break;
    }
    uint32_t rows = (valid_rows + row_unit - 1) / row_unit * row_unit;
    uint32_t cols = (valid_cols + col_unit - 1) / col_unit * col_unit;
    rows += rows == 0 || test_chance(bench, 3) ? row_unit : 0;
    cols += cols == 0 || test_chance(bench, 3) ? col_unit : 0;
    return test_tile_make(bench, dtype, memory, layout, rows, cols, valid_rows, valid_cols);
}

// The same place and sizes as another tile, in another memory and layout.
static test_tile *tile_like(test_bench *bench, const test_tile *s, ptoisa_dtype dtype,
                            ptoisa_memory memory, ptoisa_layout layout) {
    test_tile *t =
        test_written(test_tile_make(bench, dtype, memory, layout, s->tile.rows, s->tile.cols,
                                    s->tile.valid_rows, s->tile.valid_cols));
    return t;
}

// What a tile holds outside its valid region after a load or fill.
static double pad_value(ptoisa_pad pad, ptoisa_dtype dtype) {
    bool is_float = ref_is_float(dtype);
    switch (pad) {
    case PTOISA_PAD_MAX: return is_float ? (double)INFINITY : ref_greatest(dtype);
    case PTOISA_PAD_MIN: return is_float ? -(double)INFINITY : ref_least(dtype);
    default: return 0;
    }
}

static uint64_t pad_bits(ptoisa_pad pad, ptoisa_dtype dtype) {
    if (dtype == PTOISA_I64 && pad >= PTOISA_PAD_MAX) {
        return (uint64_t)INT64_MAX + (pad == PTOISA_PAD_MIN);
    }
    if (dtype == PTOISA_U64 && pad == PTOISA_PAD_MAX) {
        return UINT64_MAX;
    }
    return ref_encode(dtype, pad_value(pad, dtype));
}

// -- global memory --------------------------------------------------------------------------------

typedef struct place {
    ptoisa_memory memory;
    ptoisa_layout layout;
    bool is_transposed;  // the window
} place;

static const place load_places[6] = {
    {PTOISA_VEC, PTOISA_ROW_MAJOR, false}, {PTOISA_VEC, PTOISA_COL_MAJOR, true},
    {PTOISA_MAT, PTOISA_ROW_MAJOR, false}, {PTOISA_MAT, PTOISA_NZ, false},
    {PTOISA_MAT, PTOISA_ZN, true},         {PTOISA_VEC, PTOISA_ROW_MAJOR, false}};

// One that a kernel uses, or any layout in UB or L1 under a window of either kind, as the shim takes them.
static place place_of(test_bench *bench, uint32_t round, uint32_t count) {
    const place any = {test_chance(bench, 2) ? PTOISA_VEC : PTOISA_MAT,
                       (ptoisa_layout)test_in(bench, 0, PTOISA_NN), test_chance(bench, 2)};
    return round % 3 == 2 ? any : load_places[round % count];
}

ROUNDS_TEST(load__fills_the_whole_tile, 4 * ROUNDS) {
    const place chosen = place_of(bench, round, 6), *at = &chosen;
    bool is_boxed = at->layout >= PTOISA_NZ;
    ptoisa_dtype dtype = test_dtype(bench, is_boxed ? set_any : set_any | set_64);
    uint32_t rows = test_size(bench, 40), cols = test_size(bench, SIDE);
    test_begin(bench, PTOISA_A2A3, "TLOAD");
    test_window w = test_window_make(bench, dtype, rows, cols, is_boxed, at->is_transposed);
    test_tile *d = tile_in(bench, dtype, at->memory, at->layout, rows, cols);
    d->role = TEST_CHECKED;
    d->tile.pad = (uint8_t)test_in(bench, PTOISA_PAD_NULL, PTOISA_PAD_MIN);
    if (at->memory == PTOISA_MAT && round % 3 != 2) {
        d->tile.pad = (uint8_t)test_in(bench, PTOISA_PAD_NULL, PTOISA_PAD_ZERO);
    }
    test_run(bench);
    ptoisa_tload(&bench->core, &d->tile, &w.global);
    TEST_GRID(uint32_t, r, d->tile.rows, c, d->tile.cols) {
        bool is_valid = r < rows && c < cols;
        test_expect_bits(bench, d, r, c,
                         is_valid ? test_window_was(&w, r, c)
                                  : pad_bits((ptoisa_pad)d->tile.pad, dtype));
    }
}

// Stores a tile; how its elements convert is told by a function of the element's number.
typedef double (*convert_fn)(double x, double parameter, ptoisa_dtype to);

static double convert_plain(double x, double parameter, ptoisa_dtype to) {
    (void)parameter;
    return ref_round(to, x);
}

static double convert_relu(double x, double parameter, ptoisa_dtype to) {
    (void)parameter;
    return ref_round(to, x > 0 ? x : 0);
}

// A scale is positive, so it does not matter whether ReLU comes before.
static double convert_scaled(double x, double scale, ptoisa_dtype to) {
    return ref_is_float(to) ? ref_round(to, x * scale) : ref_clamp(to, nearbyint(x * scale));
}

static void expect_stored(const test_bench *bench, const test_window *w, const test_tile *s,
                          convert_fn convert, const double *scales, bool is_relu) {
    ptoisa_dtype to = (ptoisa_dtype)w->global.dtype;
    TEST_GRID(uint32_t, r, s->tile.valid_rows, c, s->tile.valid_cols) {
        double x = ref_was(s, r, c);
        double want = convert(is_relu && !(x > 0) ? 0 : x, scales ? scales[c] : 1, to);
        test_expect_value(bench, w->buffer, 0, test_window_at(w, r, c), want);
    }
}

ROUNDS_TEST(store__writes_the_valid_region, 3 * ROUNDS) {
    const place chosen = place_of(bench, round, 4), *at = &chosen;
    bool is_boxed = at->layout >= PTOISA_NZ;
    ptoisa_dtype dtype = test_dtype(bench, is_boxed ? set_any : set_any | set_64);
    uint32_t rows = test_size(bench, 40), cols = test_size(bench, SIDE);
    test_begin(bench, PTOISA_A2A3, "TSTORE");
    test_window w = test_window_make(bench, dtype, rows, cols, is_boxed, at->is_transposed);
    test_tile *s = tile_in(bench, dtype, at->memory, at->layout, rows, cols);
    w.buffer->role = TEST_CHECKED;
    test_run(bench);
    ptoisa_tstore(&bench->core, &w.global, &s->tile);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        test_expect_bits(bench, w.buffer, 0, test_window_at(&w, r, c), ref_was_bits(s, r, c));
    }
    test_window_rest_is_untouched(bench, &w);
}

static test_tile *accumulator(test_bench *bench, ptoisa_dtype dtype, uint32_t rows, uint32_t cols,
                              test_numbers numbers) {
    test_tile *s = tile_in(bench, dtype, PTOISA_ACC, PTOISA_NZ, rows, cols);
    test_fill(bench, s, numbers);
    return s;
}

ROUNDS_TEST(store__converts_accumulators, 2 * ROUNDS) {
    static const ptoisa_dtype to[4] = {PTOISA_F32, PTOISA_F16, PTOISA_BF16, PTOISA_I32};
    ptoisa_dtype dtype = to[round % 4];
    uint32_t rows = test_size(bench, 40), cols = test_size(bench, SIDE);
    bool is_relu = test_chance(bench, 2);
    test_begin(bench, PTOISA_A2A3, is_relu ? "TSTORE relu" : "TSTORE of Acc");
    // Numbers that f16 can hold, if not exactly: what is beyond is not defined.
    test_tile *s = accumulator(bench, dtype == PTOISA_I32 ? PTOISA_I32 : PTOISA_F32, rows, cols,
                               dtype == PTOISA_F16 || is_relu ? TEST_PLAIN : TEST_ANY);
    test_window w =
        test_window_make(bench, dtype, rows, cols, test_chance(bench, 2), test_chance(bench, 3));
    w.buffer->role = TEST_CHECKED;
    test_run(bench);
    (is_relu ? ptoisa_tstore_relu : ptoisa_tstore)(&bench->core, &w.global, &s->tile);
    expect_stored(bench, &w, s, is_relu ? convert_relu : convert_plain, NULL, is_relu);
    test_window_rest_is_untouched(bench, &w);
}

ROUNDS_TEST(store__adds, 2 * ROUNDS) {
    bool is_acc = round % 3 == 0;
    ptoisa_dtype dtype =
        is_acc ? (round % 2 ? PTOISA_F32 : PTOISA_I32)
               : test_dtype(bench, SET(F16) | SET(BF16) | SET(F32) | SET(I8) | SET(I16) | SET(I32));
    uint32_t rows = test_size(bench, 40), cols = test_size(bench, SIDE);
    test_begin(bench, PTOISA_A2A3, "TSTORE add");
    test_tile *s = is_acc ? accumulator(bench, dtype, rows, cols, TEST_ANY)
                          : tile_in(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, rows, cols);
    test_fill(bench, s, TEST_ANY);
    test_window w = test_window_make(bench, dtype, rows, cols, is_acc, test_chance(bench, 3));
    w.buffer->role = TEST_CHECKED;
    test_run(bench);
    ptoisa_tstore_add(&bench->core, &w.global, &s->tile);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        double old = ref_decode(dtype, test_window_was(&w, r, c));
        double want = ref_binary(PTOISA_TADD, dtype, old, ref_was(s, r, c));
        test_expect(bench, w.buffer, 0, test_window_at(&w, r, c), want, 0);
    }
    test_window_rest_is_untouched(bench, &w);
}

// -- between memories -----------------------------------------------------------------------------

typedef struct path {
    ptoisa_family family;
    ptoisa_memory from;
    ptoisa_layout from_layout;
    ptoisa_memory to;
    ptoisa_layout to_layout;
    ptoisa_dtype dtype, to_dtype;  // NONE: any
} path;

static const path move_paths[] = {
    {PTOISA_A2A3, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_VEC, PTOISA_ROW_MAJOR, 0, 0},
    {PTOISA_A2A3, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_VEC, PTOISA_COL_MAJOR, 0, 0},
    {PTOISA_A2A3, PTOISA_MAT, PTOISA_NZ, PTOISA_LEFT, PTOISA_ZZ, 0, 0},
    {PTOISA_A2A3, PTOISA_MAT, PTOISA_ZN, PTOISA_LEFT, PTOISA_ZZ, PTOISA_F32, 0},
    {PTOISA_A5, PTOISA_MAT, PTOISA_NZ, PTOISA_LEFT, PTOISA_NZ, 0, 0},
    {PTOISA_A2A3, PTOISA_MAT, PTOISA_ZN, PTOISA_RIGHT, PTOISA_ZN, 0, 0},
    {PTOISA_A2A3, PTOISA_MAT, PTOISA_NZ, PTOISA_RIGHT, PTOISA_ZN, 0, 0},
    {PTOISA_A2A3, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_BIAS, PTOISA_ROW_MAJOR, PTOISA_F32, 0},
    {PTOISA_A2A3, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_BIAS, PTOISA_ROW_MAJOR, PTOISA_I32, 0},
    {PTOISA_A2A3, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_BIAS, PTOISA_ROW_MAJOR, PTOISA_F16,
     PTOISA_F32},
    {PTOISA_A2A3, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_SCALING, PTOISA_ROW_MAJOR, PTOISA_U64, 0},
    {PTOISA_A2A3, PTOISA_ACC, PTOISA_NZ, PTOISA_MAT, PTOISA_NZ, PTOISA_F32, PTOISA_F16},
    {PTOISA_A2A3, PTOISA_ACC, PTOISA_NZ, PTOISA_MAT, PTOISA_NZ, PTOISA_F32, PTOISA_BF16},
    {PTOISA_A5, PTOISA_ACC, PTOISA_NZ, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_F32, 0},
    {PTOISA_A5, PTOISA_ACC, PTOISA_NZ, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_F32, PTOISA_F16},
    {PTOISA_A5, PTOISA_ACC, PTOISA_NZ, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_I32, 0},
    {PTOISA_A5, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_MAT, PTOISA_NZ, 0, 0},
    {PTOISA_A5, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_MAT, PTOISA_ROW_MAJOR, 0, 0},
};

// Element (r, c) of d is element (r, c) of s, moved by (row, col) and perhaps converted.
static void expect_moved(const test_bench *bench, const test_tile *d, uint32_t d_row,
                         uint32_t d_col, const test_tile *s, uint32_t s_row, uint32_t s_col,
                         uint32_t rows, uint32_t cols) {
    TEST_GRID(uint32_t, r, rows, c, cols) {
        if (d->tile.dtype == s->tile.dtype) {
            test_expect_bits(bench, d, d_row + r, d_col + c, ref_was_bits(s, s_row + r, s_col + c));
        } else {
            test_expect(bench, d, d_row + r, d_col + c, ref_was(s, s_row + r, s_col + c), 0);
        }
    }
}

ROUNDS_TEST(move__keeps_elements_and_changes_layouts, 60 * COUNT_OF(move_paths)) {
    const path *p = &move_paths[round % COUNT_OF(move_paths)];
    bool is_line = p->to == PTOISA_BIAS || p->to == PTOISA_SCALING;
    bool is_left = p->to == PTOISA_LEFT || p->to == PTOISA_RIGHT;
    uint32_t set = is_left ? SET(F16) | SET(BF16) | SET(F32) | SET(I8) : set_any;
    ptoisa_dtype dtype = p->dtype ? p->dtype : test_dtype(bench, set);
    uint32_t rows = is_line ? 1 : test_size(bench, 50), cols = test_size(bench, SIDE);
    test_begin(bench, p->family, "TMOV");
    test_tile *s;
    if (is_line) {
        uint32_t unit = 128 / ref_size(dtype);
        s = test_tile_make(bench, dtype, p->from, p->from_layout, 1,
                           (cols + unit - 1) / unit * unit, 1, cols);
    } else {
        // Sizes that are whole in either layout.
        uint32_t r = (rows + 31) / 32 * 32, c = (cols + 31) / 32 * 32;
        s = test_tile_make(bench, dtype, p->from, p->from_layout, r, c, rows, cols);
    }
    test_fill(bench, s, dtype == p->to_dtype || !p->to_dtype ? TEST_ANY : TEST_PLAIN);
    test_tile *d = tile_like(bench, s, p->to_dtype ? p->to_dtype : dtype, p->to, p->to_layout);
    test_run(bench);
    ptoisa_tmov(&bench->core, &d->tile, &s->tile);
    expect_moved(bench, d, 0, 0, s, 0, 0, rows, cols);
}

ROUNDS_TEST(extract__takes_a_panel, 2 * ROUNDS) {
    static const path paths[] = {
        {PTOISA_A2A3, PTOISA_MAT, PTOISA_NZ, PTOISA_LEFT, PTOISA_ZZ, 0, 0},
        {PTOISA_A5, PTOISA_MAT, PTOISA_NZ, PTOISA_LEFT, PTOISA_NZ, 0, 0},
        {PTOISA_A2A3, PTOISA_MAT, PTOISA_NZ, PTOISA_RIGHT, PTOISA_ZN, 0, 0},
        {PTOISA_A2A3, PTOISA_MAT, PTOISA_ZN, PTOISA_RIGHT, PTOISA_ZN, 0, 0},
        {PTOISA_A2A3, PTOISA_MAT, PTOISA_ZN, PTOISA_LEFT, PTOISA_ZZ, 0, 0},
        {PTOISA_A2A3, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_VEC, PTOISA_ROW_MAJOR, 0, 0}};
    const path *p = &paths[round % 6];
    ptoisa_dtype dtype = test_dtype(bench, SET(I8) | SET(F16) | SET(BF16) | SET(F32));
    uint32_t unit = 32, rows = unit * test_in(bench, 1, 3), cols = unit * test_in(bench, 1, 3);
    test_begin(bench, p->family, "TEXTRACT");
    test_tile *s = test_tile_make(bench, dtype, p->from, p->from_layout, rows, cols, rows, cols);
    uint32_t d_rows = unit * test_in(bench, 1, rows / unit);
    uint32_t d_cols = unit * test_in(bench, 1, cols / unit);
    uint32_t valid_rows = test_in(bench, 1, d_rows), valid_cols = test_in(bench, 1, d_cols);
    test_tile *d = test_written(
        test_tile_make(bench, dtype, p->to, p->to_layout, d_rows, d_cols, valid_rows, valid_cols));
    uint32_t row = 16 * test_in(bench, 0, (rows - d_rows) / 16);
    uint32_t col = 32 * test_in(bench, 0, (cols - d_cols) / 32);
    test_run(bench);
    ptoisa_textract(&bench->core, &d->tile, &s->tile, row, col);
    expect_moved(bench, d, 0, 0, s, row, col, valid_rows, valid_cols);
}

ROUNDS_TEST(insert__writes_a_panel, 2 * ROUNDS) {
    static const path paths[] = {
        {PTOISA_A2A3, PTOISA_ACC, PTOISA_NZ, PTOISA_MAT, PTOISA_NZ, PTOISA_F32, PTOISA_F16},
        {PTOISA_A2A3, PTOISA_ACC, PTOISA_NZ, PTOISA_MAT, PTOISA_NZ, PTOISA_F32, PTOISA_BF16},
        {PTOISA_A5, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_VEC, PTOISA_ROW_MAJOR, 0, 0},
        {PTOISA_A5, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_MAT, PTOISA_NZ, 0, 0},
        {PTOISA_A5, PTOISA_ACC, PTOISA_NZ, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_F32, PTOISA_F32}};
    const path *p = &paths[round % 5];
    ptoisa_dtype from = p->dtype ? p->dtype : test_dtype(bench, set_any);
    ptoisa_dtype to = p->to_dtype ? p->to_dtype : from;
    uint32_t rows = 32 * test_in(bench, 1, 3), cols = 32 * test_in(bench, 1, 3);
    test_begin(bench, p->family, "TINSERT");
    test_tile *d = test_tile_make(bench, to, p->to, p->to_layout, rows, cols, rows, cols);
    uint32_t s_rows = 32 * test_in(bench, 1, rows / 32);
    uint32_t s_cols = 32 * test_in(bench, 1, cols / 32);
    uint32_t valid_rows = test_in(bench, 1, s_rows), valid_cols = test_in(bench, 1, s_cols);
    test_tile *s = test_tile_make(bench, from, p->from, p->from_layout, s_rows, s_cols, valid_rows,
                                  valid_cols);
    test_fill(bench, s, from == to ? TEST_ANY : TEST_PLAIN);
    d->role = TEST_CHECKED;
    uint32_t row = 16 * test_in(bench, 0, (rows - s_rows) / 16);
    uint32_t col = 32 * test_in(bench, 0, (cols - s_cols) / 32);
    test_run(bench);
    ptoisa_tinsert(&bench->core, &d->tile, &s->tile, row, col);
    expect_moved(bench, d, row, col, s, 0, 0, valid_rows, valid_cols);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        if (r - row >= valid_rows || c - col >= valid_cols) {
            test_expect_bits(bench, d, r, c, ref_was_bits(d, r, c));
        }
    }
}

// TMOV, TEXTRACT, TINSERT and TSTORE, which may add, with a scale, or a scale for each column that is moved.
ROUNDS_TEST(quantise__moves_out_of_l0c, 6 * ROUNDS) {
    static const ptoisa_dtype from[5] = {PTOISA_F32, PTOISA_F32, PTOISA_I32, PTOISA_I32,
                                         PTOISA_I32};
    static const ptoisa_dtype to[5] = {PTOISA_I8, PTOISA_U8, PTOISA_I8, PTOISA_U8, PTOISA_F16};
    uint32_t which = round % 5, form = round / 5 % 5;  // mov, extract, insert, add, store
    bool is_relu = test_chance(bench, 2), is_fp = test_chance(bench, 2), is_vec = round % 7 == 0;
    if (form == 3 && to[which] == PTOISA_U8) {
        return;  // not added to
    }
    test_begin(bench, is_vec ? PTOISA_A5 : PTOISA_A2A3, "quantising");
    uint32_t rows = 32 * test_in(bench, 1, 3), cols = 32 * test_in(bench, 1, 3);
    uint32_t part_rows = 32 * test_in(bench, 1, rows / 32);
    uint32_t part_cols = 32 * test_in(bench, 1, cols / 32);
    uint32_t row = test_in(bench, 0, rows - part_rows), col = test_in(bench, 0, cols - part_cols);
    bool is_whole = form == 0 || form >= 3;
    uint32_t m = is_whole ? test_in(bench, 1, rows) : test_in(bench, 1, part_rows);
    uint32_t n = is_whole ? test_in(bench, 1, cols) : test_in(bench, 1, part_cols);
    row = is_whole ? 0 : row, col = is_whole ? 0 : col;
    bool is_s_small = form == 2;
    test_tile *s =
        test_tile_make(bench, from[which], PTOISA_ACC, PTOISA_NZ, is_s_small ? part_rows : rows,
                       is_s_small ? part_cols : cols, form == 1 ? rows : m, form == 1 ? cols : n);
    test_tile *d =
        test_tile_make(bench, to[which], is_vec ? PTOISA_VEC : PTOISA_MAT,
                       is_vec ? PTOISA_ROW_MAJOR : PTOISA_NZ, form == 1 ? part_rows : rows,
                       form == 1 ? part_cols : cols, form == 2 ? rows : m, form == 2 ? cols : n);
    test_tile *fp =
        test_tile_make(bench, PTOISA_U64, PTOISA_SCALING, PTOISA_ROW_MAJOR, 1, 96, 1, n);
    double scales[96];
    for (uint32_t c = 0; c < n; c++) {
        scales[c] =
            (double)(float)ldexp(1 + test_in(bench, 0, 7) * 0.125, (int)test_in(bench, 0, 5) - 3);
        scales[c] = is_fp ? scales[c] : scales[0];
        ref_put_bits(fp->tile.data, PTOISA_U64, c,
                     test_random(bench) << 32 | ref_encode(PTOISA_F32, scales[c]));
    }
    for (uint32_t i = 0; i < s->tile.valid_rows * s->tile.valid_cols; i++) {
        // Products with a scale of 4 bits are exact.
        test_put(s, i / s->tile.valid_cols, i % s->tile.valid_cols,
                 (double)test_in(bench, 0, 400) - 200);
    }
    test_window w = {0};
    if (form >= 3) {
        w = test_window_make(bench, to[which], m, n, test_chance(bench, 2), test_chance(bench, 3));
        w.buffer->role = TEST_CHECKED;
    }
    d->role = form == 0 || form == 1 ? TEST_WRITTEN : TEST_CHECKED;
    test_run(bench);
    ptoisa_core *core = &bench->core;
    const ptoisa_tile *dt = &d->tile, *st = &s->tile, *ft = &fp->tile;
    float scale = (float)scales[0];
    switch (2 * form + is_fp) {
    case 0: ptoisa_tmov_quant(core, dt, st, scale, is_relu); break;
    case 1: ptoisa_tmov_fp(core, dt, st, ft, is_relu); break;
    case 2: ptoisa_textract_quant(core, dt, st, scale, row, col, is_relu); break;
    case 3: ptoisa_textract_fp(core, dt, st, ft, row, col, is_relu); break;
    case 4: ptoisa_tinsert_quant(core, dt, st, scale, row, col, is_relu); break;
    case 5: ptoisa_tinsert_fp(core, dt, st, ft, row, col, is_relu); break;
    case 6: ptoisa_tstore_add_quant(core, &w.global, st, scale, is_relu); break;
    case 7: ptoisa_tstore_add_fp(core, &w.global, st, ft, is_relu); break;
    case 8: ptoisa_tstore_quant(core, &w.global, st, scale, is_relu); break;
    default: ptoisa_tstore_fp(core, &w.global, st, ft, is_relu); break;
    }
    for (uint32_t i = 0; i < m * n; i++) {
        uint32_t r = i / n, c = i % n;
        double x = form == 1 ? ref_was(s, row + r, col + c) : ref_was(s, r, c);
        double want = convert_scaled(is_relu && x < 0 ? 0 : x, scales[c], to[which]);
        if (form == 4) {
            test_expect_value(bench, w.buffer, 0, test_window_at(&w, r, c), want);
        } else if (form == 3) {
            double sum = ref_decode(to[which], test_window_was(&w, r, c)) + want;
            sum = to[which] == PTOISA_F16 ? sum : ref_wrap_whole(to[which], sum);
            test_expect_value(bench, w.buffer, 0, test_window_at(&w, r, c), sum);
        } else {
            test_expect_value(bench, d, form == 2 ? row + r : r, form == 2 ? col + c : c, want);
        }
    }
    for (uint32_t i = 0; form == 2 && i < rows * cols; i++) {
        uint32_t r = i / cols, c = i % cols;
        if (r - row >= m || c - col >= n) {
            test_expect_bits(bench, d, r, c, ref_was_bits(d, r, c));
        }
    }
    if (form >= 3) {
        test_window_rest_is_untouched(bench, &w);
    }
}

// -- shapes, fills, patterns and views ------------------------------------------------------------

ROUNDS_TEST(trans__swaps_rows_and_columns, 2 * ROUNDS) {
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
}

ROUNDS_TEST(expands__fills_the_valid_region, 2 * ROUNDS) {
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
}

// Bits inside what the source has; the pad value elsewhere in the destination's valid region;
// around it the pad value too, or nothing.
static void expect_filled(const test_bench *bench, const test_tile *d, const test_tile *s,
                          uint32_t rows, uint32_t cols) {
    ptoisa_dtype dtype = (ptoisa_dtype)d->tile.dtype;
    uint64_t pad = pad_bits((ptoisa_pad)d->tile.pad, dtype);
    TEST_GRID(uint32_t, r, d->tile.rows, c, d->tile.cols) {
        bool is_free = r >= d->tile.valid_rows || c >= d->tile.valid_cols;
        if (r < rows && c < cols) {
            test_expect_bits(bench, d, r, c, ref_was_bits(s, r, c));
        } else if (!is_free || ref_now_bits(d, r, c) != ref_was_bits(d, r, c)) {
            test_expect_bits(bench, d, r, c, pad);
        }
    }
}

ROUNDS_TEST(fillpad__fills_around_what_is_valid, 6 * ROUNDS) {
    static const char *const names[3] = {"TFILLPAD", "TFILLPAD_INPLACE", "TFILLPAD_EXPAND"};
    uint32_t form = round % 3, rows = test_size(bench, 20), cols = test_size(bench, SIDE);
    ptoisa_dtype dtype = test_dtype(bench, set_any);
    test_begin(bench, PTOISA_A2A3, names[form]);
    test_tile *s = test_vec(bench, dtype, rows, cols);
    uint32_t more = form == 2 ? 32 / ref_size(dtype) * test_in(bench, 0, 3) : 0;
    test_tile *d = form == 1 ? s
                             : test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR,
                                              s->tile.rows + (form == 2 ? test_in(bench, 0, 5) : 0),
                                              s->tile.cols + more, 1, 1);
    ptoisa_tile from = s->tile;
    d->role = TEST_CHECKED;
    d->tile.pad = (uint8_t)test_in(bench, PTOISA_PAD_ZERO, PTOISA_PAD_MIN);
    d->tile.valid_rows = test_chance(bench, 3) ? test_in(bench, rows, d->tile.rows) : d->tile.rows;
    d->tile.valid_cols = test_chance(bench, 3) ? test_in(bench, cols, d->tile.cols) : d->tile.cols;
    test_run(bench);
    switch (form) {
    case 0: ptoisa_tfillpad(&bench->core, &d->tile, &from); break;
    case 1: ptoisa_tfillpad_inplace(&bench->core, &d->tile, &from); break;
    default: ptoisa_tfillpad_expand(&bench->core, &d->tile, &from); break;
    }
    expect_filled(bench, d, s, rows, cols);
}

ROUNDS_TEST(concat__joins_columns, 2 * ROUNDS) {
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
}

// Two tiles as one of 2n columns.
static uint64_t was_pair(const test_tile *a, const test_tile *b, uint32_t n, uint32_t r,
                         uint32_t c) {
    return c < n ? ref_was_bits(a, r, c) : ref_was_bits(b, r, c - n);
}

ROUNDS_TEST(interleave__and_back_is_the_same, 2 * ROUNDS) {
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
}

ROUNDS_TEST(ci__counts_up_or_down, 2 * ROUNDS) {
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
        test_expect(bench, d, 0, c, ref_wrap_whole(dtype, is_descending ? start - c : start + c),
                    0);
    }
}

ROUNDS_TEST(tri__is_one_on_one_side_of_the_diagonal, 2 * ROUNDS) {
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
}

// A view moves nothing, charges nothing, and an instruction on it works on the elements it shows.
ROUNDS_TEST(subview__shows_a_part, 2 * ROUNDS) {
    test_begin(bench, PTOISA_A2A3, "TSUBVIEW");
    uint32_t cols = 8 * test_in(bench, 1, 6), rows = test_in(bench, 1, 8);
    test_tile *s = test_whole(bench, PTOISA_F32, rows, cols);
    uint32_t row = test_in(bench, 0, rows - 1), col = 8 * test_in(bench, 0, cols / 8 - 1);
    uint32_t view_rows = test_in(bench, 1, rows - row), view_cols = test_in(bench, 1, cols - col);
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
        test_expect_bits(bench, s, r, c, is_in ? ref_encode(PTOISA_F32, 7) : ref_was_bits(s, r, c));
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
