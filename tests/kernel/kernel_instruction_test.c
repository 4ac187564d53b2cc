// Instructions as they are, one kernel for each form: how many tiles it reads and writes, whether
// it reads its destination, takes a scalar, a mode, an offset, scratch, global memory. What each
// does is computed here by a plain loop.

#include "kernel_indexing_reference.h"

// A tile for instructions to write, all of it valid.
static kt_value made_full(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    ptowsp_alloc_desc desc = {.dtype = dtype, .rows = rows, .cols = cols};
    return kt_value_make(t, ptowsp_tile_alloc(t->k, &desc), dtype, rows, cols);
}

// The same, with the valid sizes of `like`.
static kt_value made(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols, kt_value like) {
    ptowsp_alloc_desc desc = {.dtype = dtype, .rows = rows, .cols = cols, .like = like.v};
    kt_value d = kt_value_like(t, ptowsp_tile_alloc(t->k, &desc), dtype, &like);
    return d;
}

static kt_value made_like(kt *t, kt_value like) {
    return made(t, like.dtype, like.rows, like.cols, like);
}

// An instruction that writes d, and what else is to be said of it.
#define TELL(t, name_, d, ...)                                                                     \
    ptowsp_instruction((t)->k,                                                                     \
                       &(ptowsp_instruction_desc){.name = name_, .dst[0] = (d).v, __VA_ARGS__})

// Of rows of 32 bytes; valid sizes follow the run.
static kt_value tile(kt *t) {
    return kt_in(t, PTOWSP_F32, kt_pick_size(t), 8 * test_random_in(&t->state, 1, 6));
}

#define SET(d, expression)                                                                         \
    KT_EACH(d, at_row, at_col) {                                                                   \
        int64_t i = KT_AT(d, at_row, at_col);                                                      \
        kt_set(&d, i, expression, 0);                                                              \
    }

// (dst, src), (dst, src, src), (dst, src, src, src), (dst, src, scalar)
static void scene_plain(kt *t, int which) {
    kt_value x = tile(t), y = kt_in(t, PTOWSP_F32, x.rows, x.cols), d = made_like(t, x);
    switch (which) {
    case 0:
        TELL(t, "TABS", d, .src = {x.v});
        SET(d, fabs(x.x[i]))
        break;
    case 1:
        TELL(t, "TSUBRELU", d, .src = {x.v, y.v});
        SET(d, fmax(x.x[i] - y.x[i], 0))
        break;
    case 2:
        TELL(t, "TADDC", d, .src = {x.v, y.v, x.v});
        SET(d, kt_round(PTOWSP_F32, x.x[i] + y.x[i]) + x.x[i])
        break;
    case 3:
        TELL(t, "TLRELU", d, .src = {x.v}, .scalar = kt_const(t, 0.25).v);
        SET(d, x.x[i] > 0 ? x.x[i] : x.x[i] * 0.25)
        break;
    case 4:
        TELL(t, "TADDSC", d, .src = {x.v, y.v}, .scalar = kt_scalar(t, PTOWSP_F32, 3).v);
        SET(d, kt_round(PTOWSP_F32, x.x[i] + 3) + y.x[i])
        break;
    default:
        TELL(t, "TPRELU", d, .src = {x.v, y.v}, .tmp = made_full(t, PTOWSP_U8, x.rows, 32).v);
        SET(d, x.x[i] > 0 ? x.x[i] : x.x[i] * y.x[i])
        break;
    }
    kt_keep(t, d);
}

// Those that read what they write: x + 2 y, x y + z, x + y z.
static void scene_update(kt *t, int which) {
    kt_value x = tile(t), y = kt_in(t, PTOWSP_F32, x.rows, x.cols), d = made_like(t, x);
    TELL(t, "TMULS", d, .src = {x.v}, .scalar = kt_const(t, 2).v);
    if (which == 0) {
        TELL(t, "TAXPY", d, .src = {y.v}, .scalar = kt_const(t, 0.5).v);
        SET(d, 2 * x.x[i] + 0.5 * y.x[i])
    } else if (which == 1) {
        TELL(t, "TFUSEDMULADD", d, .src = {y.v, x.v});
        SET(d, y.x[i] * (2 * x.x[i]) + x.x[i])
    } else {
        TELL(t, "TMULADDDST", d, .src = {y.v, y.v});
        SET(d, 2 * x.x[i] + y.x[i] * y.x[i])
    }
    kt_keep(t, d);
}

// Written several times, read by operations between: each sees what was there.
static void scene_rewrite(kt *t, int which) {
    kt_value x = tile(t), d = made_like(t, x);
    TELL(t, "TADDS", d, .src = {x.v}, .scalar = kt_const(t, 1).v);
    SET(d, x.x[i] + 1)
    kt_value first = kt_neg(t, d);
    TELL(t, "TMUL", d, .src = {d.v, d.v});
    kt_value square = made_like(t, x);  // the same tile as d, seen later
    square.v = d.v;
    SET(square, d.x[i] * d.x[i])
    kt_keep(t, kt_add(t, first, square));
    kt_keep(t, kt_sub(t, square, first));
    (void)which;
}

// Made of nothing: a number, a ramp, a triangle.
static void scene_made(kt *t, int which) {
    bool is_other = which >= 3;  // counting down, the upper triangle
    which = which % 3;
    kt_value d = made_full(t, PTOWSP_I32, which == 1 ? 1 : 16, 24);
    if (which < 2) {
        TELL(t, which ? "TCI" : "TEXPANDS", d, .mode = is_other && which,
             .scalar = kt_const(t, -7).v);
        SET(d, which == 0 ? -7 : is_other ? -7 - (double)at_col : -7 + (double)at_col)
    } else {
        TELL(t, "TTRI", d, .mode = is_other, .col = 3);  // the diagonal
        SET(d, is_other ? at_col >= at_row + 3 : at_col <= at_row + 3)
    }
    kt_keep(t, d);
}

// With a mode: conversions, comparisons, every second column.
static void scene_mode(kt *t, int which) {
    kt_value x = tile(t), d = made(t, PTOWSP_I32, x.rows, x.cols, x);
    KT_EACH(d, r, col) {
        d.x[KT_AT(d, r, col)] =
            kt_to_integer(PTOWSP_I32, x.x[KT_AT(x, r, col)], (ptowsp_round)which);
    }
    TELL(t, "TCVT", d, .src = {x.v}, .mode = (uint32_t)which);
    kt_keep(t, d);
}

// A mask of bits, packed; what it selects.
static void scene_mask(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_F32, 16, 64), y = kt_in(t, PTOWSP_F32, 16, 64);
    // As many bytes are valid as a parameter of that size says: an eighth of the columns, so full.
    kt_value mask = made_full(t, PTOWSP_U8, 16, 32), d = made_like(t, x);
    kt_value tmp = made_full(t, PTOWSP_U8, 1, 32);
    const ptowsp_value none = {NULL, 0};
    TELL(t, which % 2 ? "TCMPS" : "TCMP", mask, .src = {x.v, which % 2 ? none : y.v},
         .mode = PTOWSP_GE, .scalar = which % 2 ? kt_const(t, 0.5).v : none);
    TELL(t, which / 2 ? "TSELS" : "TSEL", d, .src = {mask.v, x.v, which / 2 ? none : y.v},
         .scalar = which / 2 ? kt_const(t, -1).v : none, .tmp = tmp.v);
    SET(d, x.x[i] >= (which % 2 ? 0.5 : y.x[i]) ? x.x[i] : which / 2 ? -1 : y.x[i])
    kt_keep(t, d);
}

// A transpose of what is written again behind it is of what there was before.
static void scene_transposed(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_F32, which ? 24 : 1, which ? 1 : 24), d = made_like(t, x);
    TELL(t, "TADDS", d, .src = {x.v}, .scalar = kt_const(t, 1).v);
    SET(d, x.x[i] + 1)
    kt_value turned = kt_transpose(t, d);
    TELL(t, "TADDS", d, .src = {x.v}, .scalar = kt_const(t, 3).v);
    SET(d, x.x[i] + 3)
    kt_keep(t, turned);
    kt_keep(t, d);
}

// Rows and columns: the index of the largest, a sum from the top, a transpose, the row of the least,
// sums of neighbours, every second column.
static void scene_rows_and_columns(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_F32, 16, 32), tmp = made_like(t, x);
    ptowsp_instruction_desc c = {.name = "TROWARGMAX", .src[0] = x.v};
    kt_value d = x;
    if (which == 0) {
        ptowsp_alloc_desc desc = {.dtype = PTOWSP_I32,
                                  .layout = PTOWSP_LAYOUT_COL_MAJOR,
                                  .rows = 16,
                                  .cols = 1,
                                  .like = kt_rowmax(t, x).v};
        kt_value like = kt_rowmax(t, x);
        d = kt_value_like(t, ptowsp_tile_alloc(t->k, &desc), PTOWSP_I32, &like);
        c.tmp = tmp.v;
        for (int64_t r = 0; r < x.valid_rows; r++) {
            for (int64_t k = 1; k < x.valid_cols; k++) {
                d.x[r] =
                    x.x[KT_AT(x, r, k)] > x.x[KT_AT(x, r, (int64_t)d.x[r])] ? (double)k : d.x[r];
            }
        }
    } else if (which == 1) {
        kt_value like = kt_colmax(t, x);
        d = made(t, PTOWSP_F32, 1, 32, like);
        c.name = "TCOLSUM";
        for (int64_t k = 0; k < x.valid_cols; k++) {
            kt_reduce_set(&d, k, &x, KT_SUM, 0, k, false);
        }
    } else if (which == 2) {
        kt_value like = kt_transpose(t, x), scratch = made_full(t, PTOWSP_F32, 32, 16);
        d = made(t, PTOWSP_F32, 32, 16, like);
        c.name = "TTRANS";
        c.tmp = scratch.v;
        memcpy(d.x, like.x, 32 * 16 * sizeof(double));
    } else if (which == 3) {
        kt_value like = kt_colmax(t, x);
        d = made(t, PTOWSP_I32, 1, 32, like);
        c.name = "TCOLARGMIN";
        c.tmp = tmp.v;
        for (int64_t k = 0; k < x.valid_cols; k++) {
            d.x[k] = 0;
            for (int64_t r = 1; r < x.valid_rows; r++) {
                d.x[k] =
                    x.x[KT_AT(x, r, k)] < x.x[KT_AT(x, (int64_t)d.x[k], k)] ? (double)r : d.x[k];
            }
        }
    } else if (which == 4) {
        // The last of an odd number is alone; what is behind the sums stays.
        d = made_like(t, x);
        TELL(t, "TEXPANDS", d, .scalar = kt_const(t, 7).v);
        c.name = "TPAIRREDUCESUM";
        const int64_t sums = (x.valid_cols + 1) / 2;
        SET(d, at_col >= sums ? 7
               : 2 * at_col + 1 < x.valid_cols
                   ? x.x[KT_AT(x, at_row, 2 * at_col)] + x.x[KT_AT(x, at_row, 2 * at_col + 1)]
                   : x.x[KT_AT(x, at_row, 2 * at_col)])
    } else {
        d = made_full(t, PTOWSP_F32, 16, 16);
        c.name = "TGATHERMASK";
        c.mode = 1;  // P1010: every second of two
        KT_EACH(d, r, k) {
            d.x[KT_AT(d, r, k)] = x.x[KT_AT(x, r, 2 * k + 1)];
        }
    }
    c.dst[0] = d.v;
    ptowsp_instruction(t->k, &c);
    kt_keep(t, d);
}

// A part of a tile, from an offset; and of global memory.
static void scene_extract(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_F32, 20, 48);
    kt_value part = made_full(t, PTOWSP_F32, 8, 16);
    int64_t row = test_random_in(&t->state, 0, 12), col = 8 * test_random_in(&t->state, 0, 4);
    KT_EACH(part, r, k) {
        part.x[KT_AT(part, r, k)] = x.x[KT_AT(x, r + row, k + col)];
    }
    TELL(t, "TEXTRACT", part, .src = {x.v}, .row = (uint32_t)row, .col = (uint32_t)col);
    kt_keep(t, part);
    (void)which;
}

// TLOAD, TSTORE of one's own: a parameter, read and written.
static void scene_global(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_F32, 16, 24), d = made_like(t, x);
    kt_param *out = kt_param_make(t, which ? PTOWSP_INOUT : PTOWSP_OUT, PTOWSP_F32, 16, 24,
                                  x.valid_rows, x.valid_cols);
    TELL(t, "TLOAD", d, .src = {x.v});
    TELL(t, "TSTORE", out->value, .src = {d.v}, .mode = which != 0);
    memcpy(d.x, x.x, 16 * 24 * sizeof(double));
    out->stored = d;
    out->is_stored = true;
    out->is_added = which != 0;
}

// Rows of a table by index, and back.
static void scene_rows(kt *t, int which) {
    kt_value table = kt_in(t, PTOWSP_F32, 20, 24), index = kt_in(t, PTOWSP_I32, 1, 8);
    kt_value like = kt_in(t, PTOWSP_F32, 8, 24), d = made_like(t, like);
    for (int64_t i = 0; i < index.valid_cols; i++) {
        kt_fill(t, index, 0, i, (double)test_random_in(&t->state, 0, table.valid_rows - 1));
    }
    TELL(t, "MGATHER", d, .src = {table.v, index.v});
    KT_EACH(d, r, k) {
        d.x[KT_AT(d, r, k)] = table.x[KT_AT(table, (int64_t)index.x[r], k)];
    }
    kt_keep(t, d);
    (void)which;
}

// Back: rows of a tile go to rows of a table, which keeps its others. Indices are all different.
static void scene_scatter(kt *t, int which) {
    kt_value rows = kt_in(t, PTOWSP_F32, 8, 24), index = kt_in(t, PTOWSP_I32, 1, 8);
    kt_param *table = kt_param_make(t, PTOWSP_INOUT, PTOWSP_F32, 20, 24,
                                    t->config.is_partial ? 13 : 20, rows.valid_cols);
    kt_value d = made_full(t, PTOWSP_F32, 20, 24);
    memcpy(d.x, table->value.x, 20 * 24 * sizeof(double));
    d.valid_rows = table->valid_rows;
    d.valid_cols = table->valid_cols;
    for (int64_t i = 0; i < index.valid_cols; i++) {
        const int64_t row = (i * 5 + which) % 13;
        kt_fill(t, index, 0, i, (double)row);
        for (int64_t k = 0; k < rows.valid_cols && i < rows.valid_rows; k++) {
            d.x[KT_AT(d, row, k)] = rows.x[KT_AT(rows, i, k)];
        }
    }
    TELL(t, "MSCATTER", table->value, .src = {rows.v, index.v});
    table->stored = d;
    table->is_stored = true;
}

// Into a tile of threes, from an offset: it keeps what is around.
static void scene_insert(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_F32, 8, 16), d = made_full(t, PTOWSP_F32, 20, 48);
    int64_t row = test_random_in(&t->state, 0, 12), col = 8 * test_random_in(&t->state, 0, 4);
    SET(d, 3)
    KT_EACH(x, r, k) {
        d.x[KT_AT(d, r + row, k + col)] = x.x[KT_AT(x, r, k)];
    }
    TELL(t, "TEXPANDS", d, .scalar = kt_const(t, 3).v);
    TELL(t, "TINSERT", d, .src = {x.v}, .row = (uint32_t)row, .col = (uint32_t)col);
    kt_keep(t, d);
    t->refusal =
        t->config.machine ? NULL : "TINSERT: the way from UB to UB is not on 910B, only on A5";
    (void)which;
}

// Even columns of two tiles, side by side, and their odd ones.
static void scene_deinterleave(kt *t, int which) {
    kt_value x = made_full(t, PTOWSP_F32, 16, 32), y = made_full(t, PTOWSP_F32, 16, 32);
    kt_value even = made_full(t, PTOWSP_F32, 16, 32), odd = made_full(t, PTOWSP_F32, 16, 32);
    SET(x, at_col <= at_row + which)
    SET(y, 5)
    bool is_back = which == 3;
    KT_EACH(even, r, k) {
        const kt_value *side = (is_back ? k % 2 == 0 : k < 16) ? &x : &y;
        even.x[KT_AT(even, r, k)] = side->x[KT_AT(x, r, is_back ? k / 2 : 2 * k % 32)];
        odd.x[KT_AT(odd, r, k)] = side->x[KT_AT(x, r, is_back ? 16 + k / 2 : 2 * k % 32 + 1)];
    }
    TELL(t, "TTRI", x, .col = (uint32_t)which);
    TELL(t, "TEXPANDS", y, .scalar = kt_const(t, 5).v);
    TELL(t, is_back ? "TINTERLEAVE" : "TDEINTERLEAVE", even, .src = {x.v, y.v}, .dst[1] = odd.v);
    kt_keep(t, even);
    kt_keep(t, odd);
    t->refusal = t->config.machine ? NULL
                 : is_back         ? "TINTERLEAVE: the instruction is not on 910B, only on A5"
                                   : "TDEINTERLEAVE: the instruction is not on 910B, only on A5";
}

// With a scalar and scratch: bits.
static void scene_bits(kt *t, int which) {
    kt_value x = kt_in(t, PTOWSP_I16, 16, 32), d = made_like(t, x);
    SET(d, (double)((int64_t)x.x[i] ^ (5 + which)))
    TELL(t, "TXORS", d, .src = {x.v}, .scalar = kt_const(t, 5 + which).v,
         .tmp = made_full(t, PTOWSP_I16, 16, 32).v);
    kt_keep(t, d);
}

// A product by hand: global memory to L1 to L0 to L0C to UB.
static void scene_product(kt *t, int which) {
    kt_value a = kt_in(t, PTOWSP_F32, 16, 32), b = kt_in(t, PTOWSP_F32, 32, 48);
    bool is_a5 = t->config.machine != NULL;
    ptowsp_alloc_desc desc = {.dtype = PTOWSP_F32};
    const struct {
        ptowsp_memory memory;
        ptowsp_layout layout;
        int64_t rows, cols;
        ptowsp_value like;
    } tiles[] = {
        {PTOWSP_MEMORY_L1, PTOWSP_LAYOUT_NZ, 16, 32, a.v},
        {PTOWSP_MEMORY_L1, PTOWSP_LAYOUT_NZ, 32, 48, b.v},
        {PTOWSP_MEMORY_L0A, is_a5 ? PTOWSP_LAYOUT_NZ : PTOWSP_LAYOUT_ZZ, 16, 32, a.v},
        {PTOWSP_MEMORY_L0B, PTOWSP_LAYOUT_ZN, 32, 48, b.v},
    };
    kt_value made_tiles[4];
    for (int i = 0; i < 4; i++) {
        desc.memory = tiles[i].memory;
        desc.layout = tiles[i].layout;
        desc.rows = tiles[i].rows;
        desc.cols = tiles[i].cols;
        desc.like = tiles[i].like;
        made_tiles[i] = kt_value_make(t, ptowsp_tile_alloc(t->k, &desc), PTOWSP_F32, 1, 1);
        kt_value src = i == 0 ? a : i == 1 ? b : made_tiles[i - 2];
        TELL(t, i < 2 ? "TLOAD" : "TMOV", made_tiles[i], .src = {src.v});
    }
    // The result's valid sizes are those of a parameter of its shape.
    kt_value shape = kt_in(t, PTOWSP_F32, 16, 48);
    desc.memory = PTOWSP_MEMORY_L0C;
    desc.layout = PTOWSP_LAYOUT_NZ;
    desc.rows = 16;
    desc.cols = 48;
    desc.like = shape.v;
    kt_value acc = kt_value_like(t, ptowsp_tile_alloc(t->k, &desc), PTOWSP_F32, &shape);
    TELL(t, "TMATMUL", acc, .src = {made_tiles[2].v, made_tiles[3].v});
    KT_EACH(acc, r, k) {
        for (int64_t j = 0; j < a.valid_cols; j++) {
            acc.x[KT_AT(acc, r, k)] += a.x[KT_AT(a, r, j)] * b.x[KT_AT(b, j, k)];
        }
    }
    kt_param *out =
        kt_param_make(t, PTOWSP_OUT, PTOWSP_F32, 16, 48, shape.valid_rows, shape.valid_cols);
    TELL(t, "TSTORE", out->value, .src = {acc.v});
    out->stored = acc;
    out->is_stored = true;
    (void)which;
}

TEST(instruction__computes_as_the_reference) {
    static const kt_row rows[] = {
        {"of one to three sources", scene_plain, 6, .runs = 2},
        // Exact: one rounding or two are the same.
        {"that reads its destination", scene_update, 3, true, .runs = 2},
        {"writes its tile again", scene_rewrite, 1, true, .runs = 2},
        {"leaves a transpose as it was", scene_transposed, 1, true, .runs = 2},
        {"without sources", scene_made, 6, true, .runs = 2},
        {"with a mode", scene_mode, 5, .runs = 2},
        {"to rows by index", scene_scatter, 3, .runs = 2},
        {"into a part of a tile", scene_insert, 4, .runs = 2},
        {"with two results", scene_deinterleave, 4, true, .runs = 2},
        {"with a scalar and scratch", scene_bits, 3, true, .runs = 2},
        {"of rows and columns", scene_rows_and_columns, 4, true, .runs = 2},
        {"of global memory", scene_global, 2, .runs = 2},
        {"of rows of global memory", scene_rows, 1, .runs = 2},
        {"of the cube", scene_product, 1, true, .runs = 2},
    };
    kt_play_rows(rows, COUNT_OF(rows));
}

// Of full tiles alone: masks, pairs and every second column, and parts at many offsets.
TEST(instruction__of_full_tiles_computes_as_the_reference) {
    for (int i = 0; i < 26; i++) {
        kt t = kt_begin(kt_any(test_seed() + (uint64_t)i));
        if (i < 4) {
            scene_mask(&t, i);
        } else if (i < 6) {
            scene_rows_and_columns(&t, i);
        } else {
            scene_extract(&t, 0);
        }
        kt_end(&t);
    }
}
