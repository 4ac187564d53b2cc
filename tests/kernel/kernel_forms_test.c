// Instructions whose tiles are not as machines want them, and are made so: allocated larger or
// smaller than others, of another type, needed after the instruction has spoilt them. What each gives
// is computed here by a plain loop. And the places that no instruction of a form takes.

#include "kernel_indexing_reference.h"

static const ptowsp_value none = {NULL, 0};

// A tile of this allocation with the valid sizes of `like`.
static kt_value made(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols, ptowsp_layout layout,
                     kt_value like) {
    ptowsp_alloc_desc desc = {
        .dtype = dtype, .layout = layout, .rows = rows, .cols = cols, .like = like.v};
    kt_value d = kt_value_make(t, ptowsp_tile_alloc(t->k, &desc), dtype, rows, cols);
    d.valid_rows = like.valid_rows;
    d.valid_cols = like.valid_cols;
    d.is_row_tail = like.is_row_tail;
    d.is_col_tail = like.is_col_tail;
    return d;
}

// Stores a tile of instructions, as far as a value of rows x cols would be.
static void keep(kt *t, kt_value d, int64_t rows, int64_t cols) {
    bool is_whole = d.rows == rows && d.cols == cols;
    kt_keep(t, is_whole ? d : kt_slice(t, d, 0, 0, rows, cols));
}

static void tell(kt *t, const char *name, kt_value dst, ptowsp_value src0, ptowsp_value src1,
                 ptowsp_value scalar, ptowsp_value tmp) {
    ptowsp_instruction_desc desc = {.name = name,
                                    .dst[0] = dst.v,
                                    .src[0] = src0,
                                    .src[1] = src1,
                                    .scalar = scalar,
                                    .tmp = tmp};
    ptowsp_instruction(t->k, &desc);
}

// A tile that is allocated larger than its value, with what x holds.
static kt_value wide_copy(kt *t, kt_value x, int64_t rows, int64_t cols) {
    kt_value d = made(t, x.dtype, rows, cols, PTOWSP_LAYOUT_ROW_MAJOR, x);
    tell(t, "TADDS", d, x.v, none, ptowsp_tile_const(t->k, 0), none);
    KT_EACH(d, r, c) {
        d.x[KT_AT(d, r, c)] = x.x[KT_AT(x, r, c)];
    }
    return d;
}

// A row of maxima that is allocated wider than what it is of: bytes, which only A5 has.
static void scene_wide_row(kt *t, int which) {
    ptowsp_dtype dtype = which ? PTOWSP_F32 : PTOWSP_I8;
    kt_value x = kt_in(t, dtype, 8, 32), row = kt_in(t, dtype, 1, 32);
    kt_value d = made(t, dtype, 1, 64, PTOWSP_LAYOUT_ROW_MAJOR, row);
    tell(t, "TCOLMAX", d, x.v, none, none, none);
    for (int64_t c = 0; c < d.valid_cols; c++) {
        d.x[c] = x.x[c];
        for (int64_t r = 1; r < x.valid_rows; r++) {
            d.x[c] = fmax(d.x[c], x.x[KT_AT(x, r, c)]);
        }
    }
    keep(t, d, 1, 32);
    t->refusal = which || t->config.machine ? NULL : "TCOLMAX: i8 is not for 910B (A2/A3)";
}

// Sums of rows: of a tile that is allocated with more rows than the column, or with fewer; of one row.
static void scene_rows(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_F32, which == 2 ? 1 : 8, 16);
    kt_value s = wide_copy(t, x, which == 0 ? 16 : x.rows, 16), tmp = wide_copy(t, x, 16, 16);
    kt_value column = kt_in(t, PTOWSP_F32, x.rows, 1);
    kt_value d = made(t, PTOWSP_F32, which == 0 ? 8 : 16, 1, PTOWSP_LAYOUT_COL_MAJOR, column);
    tell(t, "TROWSUM", d, s.v, none, none, tmp.v);
    TEST_GRID(int64_t, r, d.valid_rows, c, x.valid_cols) {
        d.x[r] += x.x[KT_AT(x, r, c)];
    }
    keep(t, d, x.rows, 1);
}

// A2/A3 scales the source of TQUANT in place, and here that is added to afterwards.
static void scene_spoilt(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_F32, 8, 32), s = wide_copy(t, x, 8, 32);
    kt_value scale = kt_cvt(t, kt_in(t, PTOWSP_F32, 8, 1), PTOWSP_F32, PTOWSP_ROUND_NEAREST);
    kt_value d = made(t, PTOWSP_I8, 8, 32, PTOWSP_LAYOUT_ROW_MAJOR, x);
    tell(t, "TQUANT", d, s.v, scale.v, none, none);
    KT_EACH(d, r, c) {
        d.x[KT_AT(d, r, c)] =
            kt_to_integer(PTOWSP_I8, x.x[KT_AT(x, r, c)] * scale.x[r], PTOWSP_ROUND_NEAREST);
    }
    if (which) {
        tell(t, "TAXPY", s, x.v, none, ptowsp_tile_const(t->k, 2), none);
        KT_EACH(s, r, c) {
            s.x[KT_AT(s, r, c)] *= 3;
        }
        kt_keep(t, s);
    }
    kt_keep(t, d);
}

// 1 / sqrt(4), where A2/A3 has no place for it.
static void scene_in_place(kt *t, int which) {
    kt_value like = kt_in(t, PTOWSP_F32, 8, 16);
    kt_value d = made(t, PTOWSP_F32, 8, 16, PTOWSP_LAYOUT_ROW_MAJOR, like);
    tell(t, "TEXPANDS", d, none, none, ptowsp_tile_const(t->k, 4), none);
    tell(t, which ? "TRECIP" : "TRSQRT", d, d.v, none, none, none);
    KT_EACH(d, r, c) {
        d.x[KT_AT(d, r, c)] = which ? 0.25 : 0.5;
    }
    kt_keep(t, d);
}

// bf16 arithmetic through f32, with a result that is allocated larger, or with sums in f32.
static void scene_bf16(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_BF16, 8, 16), y = kt_in(t, PTOWSP_BF16, 8, 16);
    if (which == 0) {
        kt_value d = made(t, PTOWSP_BF16, 16, 32, PTOWSP_LAYOUT_ROW_MAJOR, x);
        tell(t, "TADD", d, x.v, y.v, none, none);
        KT_EACH(d, r, c) {
            d.x[KT_AT(d, r, c)] = x.x[KT_AT(x, r, c)] + y.x[KT_AT(y, r, c)];
        }
        keep(t, d, 8, 16);
        return;
    }
    kt_value column = kt_in(t, PTOWSP_F32, 8, 1), d = column;
    d = made(t, PTOWSP_F32, 8, 1, PTOWSP_LAYOUT_COL_MAJOR, column);
    kt_value tmp = made(t, PTOWSP_BF16, 8, 16, PTOWSP_LAYOUT_ROW_MAJOR, x);
    tell(t, "TROWSUM", d, x.v, none, none, tmp.v);
    TEST_GRID(int64_t, r, d.valid_rows, c, x.valid_cols) {
        d.x[r] += x.x[KT_AT(x, r, c)];
    }
    kt_keep(t, d);
    t->refusal = t->config.machine ? "TROWSUM: " : NULL;  // A5 has bf16, and then no other result
}

TEST(forms__are_made_legal_and_compute_as_the_reference) {
    static const kt_row rows[] = {
        {"rows of maxima are wider than what they are of", scene_wide_row, 2, true, -9, 9,
         .runs = 2},
        {"columns of sums have other rows than what they are of", scene_rows, 3, true, -9, 9,
         .runs = 2},
        {"what is spoilt is copied if it is needed", scene_spoilt, 2, true, -9, 9, .runs = 2},
        {"what cannot be in place is copied", scene_in_place, 2, true, -9, 9, .runs = 2},
        {"bf16 goes through f32, into tiles of other sizes and types", scene_bf16, 2, true, -9, 9,
         .runs = 2},
    };
    kt_play_rows(rows, COUNT_OF(rows));
}
