// PTO-ISA on the CPU: moves, shapes, conversions, against double loops over single elements.
//
// References: the layouts' formulas as the documentation has them, long double with libm's rounding
// for conversions, and counts of faults for what must be refused.

#include "ptoisa_shim.h"
#include "tests/support/suite.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTES_MAX (1 << 19)

static uint64_t seed_of_run(void) {
    const char *text = getenv("PTOWSP_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20261121;
    print_message("seed %llu (set PTOWSP_SEED to change it)\n", (unsigned long long)seed);
    return seed;
}

// SplitMix64 (Steele, Lea and Flood 2014).
static uint64_t next(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t next_in(uint64_t *state, uint32_t low, uint32_t high) {
    return low + (uint32_t)(next(state) % (high - low + 1));
}

static char last_fault[PTOISA_FAULT_TEXT_MAX];
static int fault_count;

static void on_fault(ptoisa_core *core, const char *text) {
    (void)core;
    snprintf(last_fault, sizeof last_fault, "%s", text);
    fault_count++;
}

typedef struct fixture {
    ptoisa_core core, a5;
    uint8_t *a, *b, *c, *expected;
    uint64_t random;
} fixture;

static int setup(void **state) {
    fixture *f = (fixture *)malloc(sizeof *f);
    ptoisa_core_init(&f->core, PTOISA_MODEL_UNIT, NULL);
    ptoisa_core_init(&f->a5, PTOISA_MODEL_UNIT, ptoisa_machine_950pr());
    f->core.on_fault = f->a5.on_fault = on_fault;
    f->a = (uint8_t *)aligned_alloc(64, BYTES_MAX);
    f->b = (uint8_t *)aligned_alloc(64, BYTES_MAX);
    f->c = (uint8_t *)aligned_alloc(64, BYTES_MAX);
    f->expected = (uint8_t *)aligned_alloc(64, BYTES_MAX);
    f->random = seed_of_run();
    fault_count = 0;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = (fixture *)*state;
    free(f->a);
    free(f->b);
    free(f->c);
    free(f->expected);
    free(f);
    return 0;
}

static void randomise(fixture *f, uint8_t *bytes) {
    for (size_t i = 0; i < BYTES_MAX; i += 8) {
        uint64_t x = next(&f->random);
        memcpy(bytes + i, &x, 8);
    }
}

static void expect_no_fault(void) {
    if (fault_count) {
        fail_msg("fault: %s", last_fault);
    }
}

static void expect_fault(const char *part) {
    if (!PTOISA_CHECKED_DEFAULT) {
        return;
    }
    if (fault_count != 1 || !strstr(last_fault, part)) {
        fail_msg("%d faults, the last \"%s\", not one with \"%s\"", fault_count, last_fault, part);
    }
    fault_count = 0;
}

// -- a reference ----------------------------------------------------------------------------------

// Where element (r, c) is, by the documented formulas.
static uint64_t place(const ptoisa_tile *t, uint32_t r, uint32_t c) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)t->dtype), rows = t->rows, cols = t->cols;
    bool is_col = t->layout == PTOISA_ZN || t->layout == PTOISA_NN;
    uint32_t ir = is_col ? 32 / size : 16, ic = is_col ? 16 : 32 / size;
    if (t->memory == PTOISA_ACC) {
        ir = ic = 16;
    }
    uint32_t br = r / ir, bc = c / ic, r1 = r % ir, c1 = c % ic, numel = ir * ic;
    switch (t->layout) {
    case PTOISA_ROW_MAJOR: return r * cols + c;
    case PTOISA_COL_MAJOR: return c * rows + r;
    case PTOISA_NZ: return bc * rows * ic + br * numel + r1 * ic + c1;
    case PTOISA_ZN: return br * cols * ir + bc * numel + c1 * ir + r1;
    case PTOISA_ZZ: return br * cols * ir + bc * numel + r1 * ic + c1;
    default: return bc * rows * ic + br * numel + c1 * ir + r1;
    }
}

static uint8_t *element(const ptoisa_tile *t, uint32_t r, uint32_t c) {
    return (uint8_t *)t->data + place(t, r, c) * ptoisa_dtype_size((ptoisa_dtype)t->dtype);
}

// Puts the bits of a number of so many bytes, in the machine's byte order.
static void put_bits(uint8_t *at, uint64_t bits, uint32_t size) {
    const uint16_t low = (uint16_t)bits;
    const uint32_t word = (uint32_t)bits;
    const uint8_t byte = (uint8_t)bits;
    memcpy(at,
           size == 1   ? (const void *)&byte
           : size == 2 ? (const void *)&low
           : size == 4 ? (const void *)&word
                       : (const void *)&bits,
           size);
}

static uint8_t *cell(const ptoisa_global *g, uint32_t r, uint32_t c) {
    int64_t size = ptoisa_dtype_size((ptoisa_dtype)g->dtype);
    return (uint8_t *)g->data + (ptoisa_global_row(g, r) + c * g->stride[4]) * size;
}

static void expect_same(fixture *f, const uint8_t *bytes, const char *what, const ptoisa_tile *t) {
    if (memcmp(bytes, f->expected, BYTES_MAX) != 0) {
        size_t i = 0;
        while (bytes[i] == f->expected[i]) {
            i++;
        }
        fail_msg("%s: byte %zu; %s of layout %d, memory %d, %u x %u of %u x %u", what, i,
                 ptoisa_dtype_name((ptoisa_dtype)t->dtype), t->layout, t->memory, t->valid_rows,
                 t->valid_cols, t->rows, t->cols);
    }
}

// A tile of random size, of a layout and memory.
static ptoisa_tile random_tile(fixture *f, void *data, ptoisa_dtype dtype, ptoisa_memory memory,
                               ptoisa_layout layout) {
    uint32_t size = ptoisa_dtype_size(dtype), unit = 32 / size;
    ptoisa_tile t = ptoisa_tile_make(data, dtype, memory, layout, 1, 1);
    uint32_t row_unit = layout == PTOISA_COL_MAJOR ? unit : ptoisa_box_rows(&t);
    uint32_t col_unit = layout == PTOISA_ROW_MAJOR ? unit : ptoisa_box_cols(&t);
    t.rows = row_unit * next_in(&f->random, 1, 80 / row_unit + 1);
    t.cols = col_unit * next_in(&f->random, 1, 160 / col_unit + 1);
    bool is_full = next_in(&f->random, 0, 2) == 0;
    t.valid_rows = is_full ? t.rows : next_in(&f->random, 1, t.rows);
    t.valid_cols = is_full ? t.cols : next_in(&f->random, 1, t.cols);
    return t;
}

// A window for a tile, with rows, columns or both apart, in pieces or not.
static ptoisa_global random_window(fixture *f, void *data, ptoisa_dtype dtype, uint32_t rows,
                                   uint32_t cols, bool in_pieces) {
    ptoisa_global g = ptoisa_global_make(data, dtype, rows, cols, 0, 0);
    uint32_t apart = next_in(&f->random, 1, 2) == 1 ? 1 : next_in(&f->random, 1, 3);
    if (next_in(&f->random, 0, 1)) {
        g.stride[4] = apart;
        g.stride[3] = apart * cols + next_in(&f->random, 0, 9);
    } else {
        g.stride[3] = apart;
        g.stride[4] = apart * rows + next_in(&f->random, 0, 9);
    }
    if (in_pieces && rows % 2 == 0) {
        g.shape[3] = rows / 2;
        g.shape[1] = 2;
        g.stride[1] = g.shape[3] * g.stride[3];
        if (g.stride[4] == 1) {
            g.stride[1] += 5;
        }
    }
    return g;
}

static const ptoisa_dtype dtypes[4] = {PTOISA_U8, PTOISA_F16, PTOISA_F32, PTOISA_I64};

// -- moves ----------------------------------------------------------------------------------------

TEST_F(tload__puts_any_window_into_any_layout_and_pads) {
    randomise(f, f->a);
    for (int round = 0; round < 400; round++) {
        ptoisa_layout layout = (ptoisa_layout)next_in(&f->random, 0, PTOISA_NN);
        ptoisa_dtype dtype = dtypes[next_in(&f->random, 0, layout < PTOISA_NZ ? 3 : 2)];
        ptoisa_memory memory = (ptoisa_memory)next_in(&f->random, 0, 1);
        ptoisa_tile d = random_tile(f, f->b, dtype, memory, layout);
        d.pad = (uint8_t)next_in(&f->random, 0, 3);
        ptoisa_global g = random_window(f, f->a, dtype, d.valid_rows, d.valid_cols,
                                        layout < PTOISA_NZ && next_in(&f->random, 0, 1));
        uint32_t size = ptoisa_dtype_size(dtype);
        memset(f->b, 0xaa, BYTES_MAX);
        memset(f->expected, 0xaa, BYTES_MAX);
        ptoisa_tile e = d;
        e.data = f->expected;
        uint64_t most[5] = {0, 0xff, 0x7c00, 0x7f800000, INT64_MAX};
        uint64_t least[5] = {0, 0, 0xfc00, 0xff800000, (uint64_t)INT64_MIN};
        int kind = size == 1 ? 1 : size == 2 ? 2 : size == 4 ? 3 : 4;
        uint64_t pad = d.pad == PTOISA_PAD_MAX   ? most[kind]
                       : d.pad == PTOISA_PAD_MIN ? least[kind]
                                                 : 0;
        for (uint32_t r = 0; r < d.rows; r++) {
            for (uint32_t c = 0; c < d.cols; c++) {
                if (r < d.valid_rows && c < d.valid_cols) {
                    memcpy(element(&e, r, c), cell(&g, r, c), size);
                } else {
                    put_bits(element(&e, r, c), pad, size);
                }
            }
        }
        ptoisa_tload(&f->core, &d, &g);
        expect_no_fault();
        expect_same(f, f->b, "TLOAD", &d);
    }
}

TEST_F(tstore__writes_the_valid_region_only) {
    randomise(f, f->a);
    for (int round = 0; round < 400; round++) {
        ptoisa_layout layout = (ptoisa_layout)next_in(&f->random, 0, PTOISA_NN);
        ptoisa_dtype dtype = dtypes[next_in(&f->random, 0, layout < PTOISA_NZ ? 3 : 2)];
        ptoisa_tile s = random_tile(f, f->a, dtype, PTOISA_VEC, layout);
        ptoisa_global g = random_window(f, f->b, dtype, s.valid_rows, s.valid_cols, true);
        memset(f->b, 0xaa, BYTES_MAX);
        memset(f->expected, 0xaa, BYTES_MAX);
        ptoisa_global e = g;
        e.data = f->expected;
        for (uint32_t r = 0; r < s.valid_rows; r++) {
            for (uint32_t c = 0; c < s.valid_cols; c++) {
                memcpy(cell(&e, r, c), element(&s, r, c), ptoisa_dtype_size(dtype));
            }
        }
        ptoisa_tstore(&f->core, &g, &s);
        expect_no_fault();
        expect_same(f, f->b, "TSTORE", &s);
    }
}

TEST_F(tmov__changes_layouts) {
    randomise(f, f->a);
    for (int round = 0; round < 400; round++) {
        bool is_left = next_in(&f->random, 0, 1);
        ptoisa_dtype dtype = is_left                     ? PTOISA_F32
                             : next_in(&f->random, 0, 1) ? PTOISA_F16
                                                         : PTOISA_I8;
        ptoisa_tile s = random_tile(f, f->a, dtype, PTOISA_MAT, PTOISA_NZ);
        s.rows = (s.rows + 31) / 32 * 32;
        s.cols = (s.cols + 31) / 32 * 32;
        s.layout = next_in(&f->random, 0, 1) ? PTOISA_NZ : PTOISA_ZN;
        ptoisa_tile d = s;
        d.data = f->b;
        d.memory = is_left ? PTOISA_LEFT : PTOISA_RIGHT;
        d.layout = is_left ? PTOISA_ZZ : PTOISA_ZN;
        memset(f->b, 0xaa, BYTES_MAX);
        uint32_t row = next_in(&f->random, 0, s.rows / 32 - 1) * 32;
        uint32_t col = next_in(&f->random, 0, s.cols / 32 - 1) * 32;
        bool is_part = next_in(&f->random, 0, 1);
        if (is_part) {
            s.valid_rows = s.rows;
            s.valid_cols = s.cols;
            d.rows -= row;
            d.cols -= col;
            d.valid_rows = next_in(&f->random, 1, d.rows);
            d.valid_cols = next_in(&f->random, 1, d.cols);
            ptoisa_textract(&f->core, &d, &s, row, col);
        } else {
            row = col = 0;
            ptoisa_tmov(&f->core, &d, &s);
        }
        expect_no_fault();
        for (uint32_t r = 0; r < d.valid_rows; r++) {
            for (uint32_t c = 0; c < d.valid_cols; c++) {
                assert_memory_equal(element(&d, r, c), element(&s, row + r, col + c),
                                    ptoisa_dtype_size(dtype));
            }
        }
    }
}

TEST_F(fixpipe__converts_on_the_way_out) {
    for (int round = 0; round < 200; round++) {
        bool is_int = next_in(&f->random, 0, 3) == 0;
        ptoisa_tile s =
            random_tile(f, f->a, is_int ? PTOISA_I32 : PTOISA_F32, PTOISA_ACC, PTOISA_NZ);
        uint32_t rows = s.valid_rows, cols = s.valid_cols;
        for (uint32_t i = 0; i < s.rows * s.cols; i++) {
            int32_t x = (int32_t)next_in(&f->random, 0, 20000) - 10000;
            float y = (float)x / 64;
            memcpy((uint8_t *)s.data + 4 * i, is_int ? (void *)&x : (void *)&y, 4);
        }
        bool relu = next_in(&f->random, 0, 1), has_scale = next_in(&f->random, 0, 1);
        bool by_column = has_scale && next_in(&f->random, 0, 1);
        ptoisa_dtype plain[3] = {PTOISA_F32, PTOISA_F16, PTOISA_BF16};
        ptoisa_dtype small[3] = {PTOISA_I8, PTOISA_U8, PTOISA_F16};
        ptoisa_dtype to = is_int ? PTOISA_I32 : plain[next_in(&f->random, 0, 2)];
        to = has_scale ? small[next_in(&f->random, 0, is_int ? 2 : 1)] : to;
        ptoisa_global g = random_window(f, f->b, to, rows, cols, true);
        ptoisa_tile fp =
            ptoisa_tile_make(f->c, PTOISA_U64, PTOISA_SCALING, PTOISA_ROW_MAJOR, 1, 256);
        for (uint32_t c = 0; c < 256; c++) {
            float x = by_column ? (float)next_in(&f->random, 1, 64) / 32 : 0.75f;
            uint32_t bits;
            memcpy(&bits, &x, 4);
            ((uint64_t *)fp.data)[c] = bits | UINT64_C(0xdead) << 32;
        }
        if (by_column) {
            ptoisa_tstore_fp(&f->core, &g, &s, &fp, relu);
        } else if (has_scale) {
            ptoisa_tstore_quant(&f->core, &g, &s, 0.75f, relu);
        } else if (relu) {
            ptoisa_tstore_relu(&f->core, &g, &s);
        } else {
            ptoisa_tstore(&f->core, &g, &s);
        }
        expect_no_fault();
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                double x = ptoisa_get_at(element(&s, r, c), (ptoisa_dtype)s.dtype, 0);
                x = relu && x < 0 ? 0 : x;
                if (has_scale) {
                    uint32_t bits = (uint32_t)((uint64_t *)fp.data)[c];
                    float scale;
                    memcpy(&scale, &bits, 4);
                    x = (float)x * scale;
                }
                if (to == PTOISA_I8 || to == PTOISA_U8) {
                    double low = to == PTOISA_I8 ? -128 : 0, high = to == PTOISA_I8 ? 127 : 255;
                    x = fmin(fmax(rint(x), low), high);
                } else if (to == PTOISA_F16) {
                    x = ptoisa_f32_from_f16(ptoisa_f16_from_f32((float)x));
                } else if (to == PTOISA_BF16) {
                    x = ptoisa_f32_from_bf16(ptoisa_bf16_from_f32((float)x));
                }
                assert_true(ptoisa_get_at(cell(&g, r, c), to, 0) == x);
            }
        }
    }
}

TEST_F(tstore_add__adds_and_tinsert_places) {
    const ptoisa_dtype types[6] = {PTOISA_F32, PTOISA_F16, PTOISA_BF16,
                                   PTOISA_I32, PTOISA_I16, PTOISA_I8};
    for (int i = 0; i < 6; i++) {
        ptoisa_tile d = ptoisa_tile_valid(ptoisa_tile_vec(f->a, types[i], 5, 32), 5, 30);
        ptoisa_texpands(&f->core, &d, 3);
        ptoisa_tile zero = ptoisa_tile_vec(f->b, types[i], 5, 96);
        ptoisa_texpands(&f->core, &zero, 7);
        ptoisa_global g = ptoisa_global_make(f->b, types[i], 5, 30, 96, 3);
        ptoisa_tstore_add(&f->core, &g, &d);
        ptoisa_tstore_add(&f->core, &g, &d);
        for (uint32_t at = 0; at < 5 * 96; at++) {
            bool is_hit = at % 96 % 3 == 0 && at % 96 / 3 < 30;
            assert_true(ptoisa_get_at(f->b, types[i], at) == (is_hit ? 13 : 7));
        }
    }
    randomise(f, f->a);
    ptoisa_tile acc = ptoisa_tile_make(f->a, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, 32, 48);
    for (uint32_t i = 0; i < 32 * 48; i++) {
        float x = (float)i;
        memcpy(f->a + 4 * i, &x, 4);
    }
    acc.valid_rows = 20;
    acc.valid_cols = 33;
    ptoisa_tile mat = ptoisa_tile_make(f->b, PTOISA_F16, PTOISA_MAT, PTOISA_NZ, 64, 96);
    memset(f->b, 0, BYTES_MAX);
    ptoisa_tinsert(&f->core, &mat, &acc, 16, 32);
    expect_no_fault();
    for (uint32_t r = 0; r < 64; r++) {
        for (uint32_t c = 0; c < 96; c++) {
            bool is_in = r >= 16 && r < 36 && c >= 32 && c < 65;
            float x = is_in ? (float)ptoisa_get(&acc, r - 16, c - 32) : 0;
            assert_true(ptoisa_get(&mat, r, c) == x);
        }
    }
    // A bias row of halves widens on its way into the bias table.
    ptoisa_tile row = ptoisa_tile_make(f->b, PTOISA_F16, PTOISA_MAT, PTOISA_ROW_MAJOR, 1, 48);
    ptoisa_tile bias = ptoisa_tile_make(f->c, PTOISA_F32, PTOISA_BIAS, PTOISA_ROW_MAJOR, 1, 48);
    ptoisa_tmov(&f->core, &bias, &row);
    expect_no_fault();
    for (uint32_t c = 0; c < 48; c++) {
        assert_true(ptoisa_get(&bias, 0, c) == ptoisa_get(&row, 0, c));
    }
}

// -- shapes ---------------------------------------------------------------------------------------

TEST_F(shapes__match_double_loops) {
    randomise(f, f->a);
    for (int round = 0; round < 200; round++) {
        ptoisa_dtype dtype = dtypes[next_in(&f->random, 0, 2)];
        uint32_t size = ptoisa_dtype_size(dtype);
        ptoisa_tile s = random_tile(f, f->a, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR);
        ptoisa_tile d = ptoisa_tile_vec(f->b, dtype, s.valid_cols, (s.valid_rows + 31) / 32 * 32);
        ptoisa_tile t = ptoisa_tile_vec(f->c, dtype, d.rows, d.cols);
        ptoisa_ttrans(&f->core, &d, &s, &t);
        expect_no_fault();
        for (uint32_t r = 0; r < s.valid_rows; r++) {
            for (uint32_t c = 0; c < s.valid_cols; c++) {
                assert_memory_equal(element(&d, c, r), element(&s, r, c), size);
            }
        }
        d = ptoisa_tile_vec(f->b, dtype, s.rows + 3, s.cols + 32);
        d.pad = PTOISA_PAD_MAX;
        ptoisa_tfillpad_expand(&f->core, &d, &s);
        expect_no_fault();
        uint8_t pad[8];
        put_bits(pad, size == 1 ? 0xff : size == 2 ? 0x7c00 : 0x7f800000, size);
        for (uint32_t r = 0; r < d.rows; r++) {
            for (uint32_t c = 0; c < d.cols; c++) {
                bool is_valid = r < s.valid_rows && c < s.valid_cols;
                assert_memory_equal(element(&d, r, c), is_valid ? element(&s, r, c) : pad, size);
            }
        }
        ptoisa_tile s1 = s;
        s1.valid_cols = next_in(&f->random, 0, s.cols);
        d.cols = (s.valid_cols + s1.valid_cols + 31) / 32 * 32;
        d.valid_rows = s.valid_rows;
        d.valid_cols = s.valid_cols + s1.valid_cols;
        ptoisa_tconcat(&f->core, &d, &s, &s1);
        expect_no_fault();
        for (uint32_t r = 0; r < d.valid_rows; r++) {
            for (uint32_t c = 0; c < d.valid_cols; c++) {
                uint32_t from = c < s.valid_cols ? c : c - s.valid_cols;
                assert_memory_equal(element(&d, r, c), element(&s, r, from), size);
            }
        }
    }
}

TEST_F(interleave__is_undone_by_deinterleave) {
    for (uint32_t n = 1; n < 70; n++) {
        uint32_t cols = (n + 15) / 16 * 16, bytes = 3 * cols * 2;
        ptoisa_tile all[6];
        for (int i = 0; i < 6; i++) {
            uint8_t *at = (i < 2 ? f->a : i < 4 ? f->b : f->c) + (i % 2 ? 4096 : 0);
            assert_true(bytes <= 4096);
            all[i] = ptoisa_tile_valid(ptoisa_tile_vec(at, PTOISA_I16, 3, cols), 3, n);
        }
        randomise(f, f->a);
        ptoisa_tinterleave(&f->a5, &all[2], &all[3], &all[0], &all[1]);
        ptoisa_tdeinterleave(&f->a5, &all[4], &all[5], &all[2], &all[3]);
        expect_no_fault();
        for (uint32_t r = 0; r < 3; r++) {
            for (uint32_t i = 0; i < 2 * n; i++) {
                double x = ptoisa_get(&all[i % 2], r, i / 2);
                assert_true(ptoisa_get(&all[2 + (i >= n)], r, i % n) == x);
                assert_true(ptoisa_get(&all[4 + i % 2], r, i / 2) == x);
            }
        }
    }
}

TEST_F(ramps_triangles_and_views) {
    ptoisa_tile d = ptoisa_tile_valid(ptoisa_tile_vec(f->a, PTOISA_I16, 1, 64), 1, 50);
    ptoisa_tci(&f->core, &d, 32760, false);
    assert_true(ptoisa_get(&d, 0, 7) == 32767 && ptoisa_get(&d, 0, 8) == -32768);
    ptoisa_tci(&f->core, &d, 10, true);
    assert_true(ptoisa_get(&d, 0, 49) == -39);
    for (int diagonal = -12; diagonal <= 12; diagonal++) {
        for (int upper = 0; upper < 2; upper++) {
            ptoisa_tile t = ptoisa_tile_valid(ptoisa_tile_vec(f->a, PTOISA_F16, 9, 16), 9, 11);
            ptoisa_ttri(&f->core, &t, upper, diagonal);
            expect_no_fault();
            for (int r = 0; r < 9; r++) {
                for (int c = 0; c < 11; c++) {
                    bool is_one = upper ? c - r >= diagonal : c - r <= diagonal;
                    assert_true(ptoisa_get(&t, (uint32_t)r, (uint32_t)c) == is_one);
                }
            }
        }
    }
    ptoisa_tile whole = ptoisa_tile_vec(f->a, PTOISA_F32, 8, 32);
    ptoisa_tile part = ptoisa_tsubview(&whole, 2, 8, 4, 16);
    assert_ptr_equal(part.data, f->a + (2 * 32 + 8) * 4);
    assert_int_equal(part.cols, 32);
    ptoisa_tile shape = ptoisa_tile_vec(NULL, PTOISA_F16, 1, 512);
    assert_ptr_equal(ptoisa_treshape(&shape, &whole).data, f->a);
}

// -- conversions ----------------------------------------------------------------------------------

static long double rounded(long double x, ptoisa_round mode) {
    long double low = floorl(x), rest = x - low;
    switch (mode) {
    case PTOISA_CAST_ROUND: return roundl(x);
    case PTOISA_CAST_FLOOR: return low;
    case PTOISA_CAST_CEIL: return ceill(x);
    case PTOISA_CAST_TRUNC: return truncl(x);
    case PTOISA_CAST_ODD: return rest == 0 ? x : fmodl(low, 2) != 0 ? low : low + 1;
    default: return rintl(x);
    }
}

// x rounded to so many bits of fraction with a least exponent, as the mode says.
static long double rounded_float(long double x, int bits, int exponent_min, ptoisa_round mode) {
    if (x == 0 || !isfinite(x)) {
        return x;
    }
    int exponent = ilogbl(x);
    exponent = exponent < exponent_min ? exponent_min : exponent;
    return ldexpl(rounded(ldexpl(x, bits - exponent), mode), exponent - bits);
}

static long double number(const void *data, ptoisa_dtype dtype, uint32_t i) {
    if (dtype == PTOISA_I64) {
        int64_t x;
        memcpy(&x, (const uint8_t *)data + 8 * i, 8);
        return x;
    }
    return ptoisa_get_at(data, dtype, i);
}

static long double converted(long double x, ptoisa_dtype to, ptoisa_dtype from, ptoisa_round mode,
                             bool wraps) {
    static const int bits[14] = {0, 10, 7, 23, 0, 8, 16, 32, 64, 8, 16, 32, 64, 0};
    if (to <= PTOISA_F32) {
        if (to == from) {
            return isfinite(x) ? rounded(x, mode) : x;
        }
        mode = to == PTOISA_F16 ? PTOISA_CAST_RINT : mode;
        long double y = rounded_float(x, bits[to], to == PTOISA_F16 ? -14 : -126, mode);
        long double top = to == PTOISA_F16 ? 65504 : ldexpl(2 - ldexpl(1, -bits[to]), 127);
        return fabsl(y) > top ? copysignl(INFINITY, y) : y;
    }
    if (isnan(x) || (wraps && isinf(x))) {
        return 0;
    }
    bool is_signed = to <= PTOISA_I64;
    long double span = ldexpl(1, bits[to]), low = is_signed ? -span / 2 : 0;
    long double high = low + span - 1;
    x = isinf(x) ? x : rounded(x, mode);
    if (wraps) {
        x = fmodl(x, span);
        x = x < low ? x + span : x > high ? x - span : x;
        return x;
    }
    return x < low ? low : x > high ? high : x;
}

TEST_F(tcvt__rounds_saturates_and_wraps) {
    const ptoisa_dtype all[11] = {PTOISA_F16, PTOISA_BF16, PTOISA_F32, PTOISA_I8,
                                  PTOISA_I16, PTOISA_I32,  PTOISA_I64, PTOISA_U8,
                                  PTOISA_U16, PTOISA_U32,  PTOISA_U64};
    int pairs = 0, pairs_a5 = 0;
    for (int i = 0; i < 121; i++) {
        ptoisa_dtype to = all[i / 11], from = all[i % 11];
        ptoisa_cvt_kind kind = ptoisa_cvt_kind_of(to, from);
        pairs += kind == PTOISA_CVT_ANY || kind == PTOISA_CVT_WRAP;
        pairs_a5 += kind == PTOISA_CVT_A5;
        // The reference holds no integer of 64 bits where long double is a double (armhf).
        const bool is_in_reference =
            LDBL_MANT_DIG >= 64 || (ptoisa_dtype_size(to) < 8 && ptoisa_dtype_size(from) < 8);
        if (kind == PTOISA_CVT_NONE || !is_in_reference) {
            continue;
        }
        uint32_t rows = 3, cols = 320, valid = 300, size = ptoisa_dtype_size(from);
        ptoisa_tile s = ptoisa_tile_vec(f->a, from, rows, cols);
        ptoisa_tile d = ptoisa_tile_vec(f->b, to, rows, cols);
        for (int mode = 0; mode < 14; mode++) {
            ptoisa_round round = (ptoisa_round)(mode % 7);
            bool saturate = mode >= 7;
            randomise(f, f->a);
            for (uint32_t at = 0; at < rows * cols; at++) {
                // Every bit pattern, and in between numbers near those that round and overflow.
                static const double near[10] = {0,     0.5,   127,   128,  255,
                                                32767, 65504, 65520, 2048, 3};
                double x = near[next_in(&f->random, 0, 9)];
                x += ((double)next_in(&f->random, 0, 64) - 32) / 16;
                x = next_in(&f->random, 0, 1) ? x : -x;
                if (from <= PTOISA_F32 && at % 2) {
                    uint64_t bits = ptoisa_bits_of(x, from);
                    ptoisa_put_bits(f->a + at * size, bits, size);
                }
            }
            float big[6] = {0x1p31f, -0x1p31f, 0x1.8002p38f, INFINITY, NAN, -0x1.fffffep46f};
            if (from == PTOISA_F32) {
                memcpy(f->a, big, sizeof big);
            }
            d.valid_cols = s.valid_cols = mode % 3 ? valid : cols;
            memset(f->b, 0xaa, BYTES_MAX);
            ptoisa_tcvt(&f->a5, &d, &s, round, saturate);
            expect_no_fault();
            for (uint32_t r = 0; r < rows; r++) {
                for (uint32_t c = 0; c < d.valid_cols; c++) {
                    long double x = number(f->a, from, r * cols + c);
                    long double got = number(f->b, to, r * cols + c);
                    bool wraps = kind == PTOISA_CVT_WRAP && !saturate;
                    long double want = converted(x, to, from, round, wraps);
                    if (got != want && !(isnan(got) && isnan(want))) {
                        fail_msg(
                            "%s to %s, mode %d, saturate %d: %.20Lg becomes %.20Lg, not %.20Lg",
                            ptoisa_dtype_name(from), ptoisa_dtype_name(to), round, saturate, x, got,
                            want);
                    }
                }
                for (uint32_t c = d.valid_cols; c < cols; c++) {
                    assert_int_equal(element(&d, r, c)[0], 0xaa);
                }
            }
        }
    }
    assert_int_equal(pairs, 6 + 5 + 2 + 2 + 4 + 2 + 2);
    assert_int_equal(pairs_a5, 4 + 4 + 2);
}

TEST_F(tcvt__half_and_bfloat_are_exact_for_all_bits) {
    const ptoisa_dtype types[2] = {PTOISA_F16, PTOISA_BF16};
    for (int i = 0; i < 2; i++) {
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint16_t half = (uint16_t)bits;
            memcpy(f->a + 2 * bits, &half, 2);
        }
        ptoisa_tile s = ptoisa_tile_vec(f->a, types[i], 64, 1024);
        ptoisa_tile d = ptoisa_tile_vec(f->b, PTOISA_F32, 64, 1024);
        ptoisa_tile back = ptoisa_tile_vec(f->c, types[i], 64, 1024);
        ptoisa_tcvt(&f->core, &d, &s, PTOISA_CAST_NONE, false);
        ptoisa_tcvt(&f->core, &back, &d, PTOISA_CAST_RINT, false);
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint32_t got = ((uint16_t *)f->c)[bits], infinity = i ? 0x7f80 : 0x7c00;
            bool is_nan = (bits & 0x7fff) > infinity;
            assert_int_equal(got, is_nan ? bits | (i ? 0x40 : 0x200) : bits);
        }
    }
}

TEST_F(tcvt__in_place_narrows_and_keeps_width) {
    const ptoisa_dtype types[3] = {PTOISA_F16, PTOISA_I32, PTOISA_I16};
    for (int i = 0; i < 3; i++) {
        for (uint32_t at = 0; at < 4 * 640; at++) {
            ((float *)f->a)[at] = ((float *)f->b)[at] = (float)next_in(&f->random, 0, 9999) / 8;
        }
        ptoisa_tile s = ptoisa_tile_valid(ptoisa_tile_vec(f->a, PTOISA_F32, 4, 640), 4, 613);
        ptoisa_tile far = ptoisa_tile_valid(ptoisa_tile_vec(f->c, types[i], 4, 640), 4, 613);
        ptoisa_tile near = far;
        near.data = f->b;
        ptoisa_tile from = s;
        from.data = f->b;
        ptoisa_tcvt(&f->core, &far, &s, PTOISA_CAST_FLOOR, true);
        ptoisa_tcvt(&f->core, &near, &from, PTOISA_CAST_FLOOR, true);
        expect_no_fault();
        for (uint32_t r = 0; r < 4; r++) {
            assert_memory_equal(element(&far, r, 0), element(&near, r, 0),
                                613 * ptoisa_dtype_size(types[i]));
        }
    }
    ptoisa_tile half = ptoisa_tile_vec(f->a, PTOISA_F16, 4, 64);
    ptoisa_tile word = ptoisa_tile_vec(f->a, PTOISA_F32, 4, 64);
    ptoisa_tcvt(&f->core, &word, &half, PTOISA_CAST_NONE, false);
    expect_fault("d is at the address of s, and its elements are larger");
}

TEST_F(quantising__follows_its_formulas) {
    for (int round = 0; round < 40; round++) {
        ptoisa_tile s = random_tile(f, f->a, PTOISA_F32, PTOISA_VEC, PTOISA_ROW_MAJOR);
        ptoisa_tile d = s;
        d.data = f->b;
        d.cols = (s.cols + 31) / 32 * 32;
        d.dtype = PTOISA_I8;
        bool is_col = next_in(&f->random, 0, 1);
        uint32_t rows = (s.rows + 7) / 8 * 8;
        ptoisa_layout layout = is_col ? PTOISA_COL_MAJOR : PTOISA_ROW_MAJOR;
        ptoisa_tile scale =
            ptoisa_tile_make(f->c, PTOISA_F32, PTOISA_VEC, layout, rows, is_col ? 1 : 8);
        scale.valid_cols = 1;
        ptoisa_tile offset = scale;
        offset.data = f->expected;
        for (uint32_t i = 0; i < s.rows * s.cols; i++) {
            ((float *)f->a)[i] = ((float)next_in(&f->random, 0, 4000) - 2000) / 16;
        }
        for (uint32_t i = 0; i < rows * 8; i++) {
            ((float *)f->c)[i] = (float)next_in(&f->random, 1, 300) / 100;
            ((float *)f->expected)[i] = (float)next_in(&f->random, 0, 1000) / 7;
        }
        for (int form = 0; form < 2; form++) {
            if (form == 0) {
                ptoisa_tquant_sym(&f->core, &d, &s, &scale);
            } else {
                d.dtype = PTOISA_U8;
                ptoisa_tquant_asym(&f->core, &d, &s, &scale, &offset);
            }
            expect_no_fault();
            for (uint32_t r = 0; r < s.valid_rows; r++) {
                for (uint32_t c = 0; c < s.valid_cols; c++) {
                    volatile float x =
                        (float)ptoisa_get(&s, r, c) * (float)ptoisa_get(&scale, r, 0);
                    x += form ? (float)ptoisa_get(&offset, r, 0) : 0;
                    double want = fmin(fmax(rint(x), form ? 0 : -128), form ? 255 : 127);
                    assert_true(ptoisa_get(&d, r, c) == want);
                }
            }
        }
        d.dtype = PTOISA_I8;
        ptoisa_tdequant(&f->core, &s, &d, &scale, &offset);
        expect_no_fault();
        for (uint32_t r = 0; r < s.valid_rows; r++) {
            for (uint32_t c = 0; c < s.valid_cols; c++) {
                volatile float x = (float)ptoisa_get(&d, r, c) - (float)ptoisa_get(&offset, r, 0);
                x *= (float)ptoisa_get(&scale, r, 0);
                assert_true(ptoisa_get(&s, r, c) == x);
            }
        }
    }
}

// -- what is refused ------------------------------------------------------------------------------

TEST_F(checks__name_the_operand_and_its_numbers) {
    ptoisa_core *core = &f->core, *a5 = &f->a5;
    ptoisa_tile vec = ptoisa_tile_vec(f->a, PTOISA_F32, 16, 16);
    ptoisa_tile other = ptoisa_tile_vec(f->b, PTOISA_F32, 16, 16);
    ptoisa_global g = ptoisa_global_make(f->c, PTOISA_F32, 16, 15, 16, 1);
    ptoisa_tload(core, &vec, &g);
    expect_fault("TLOAD: g has 16 x 15 elements, d 16 x 16 valid ones");
    g.shape[4] = 16;
    g.shape[2] = 0;
    ptoisa_tstore(core, &g, &vec);
    expect_fault("TSTORE: g has shape 0 in dimension 2");
    g.shape[2] = 1;
    g.dtype = PTOISA_F16;
    ptoisa_tload(core, &vec, &g);
    expect_fault("TLOAD: g is f16, d is f32");
    ptoisa_tile tall = ptoisa_tile_valid(ptoisa_tile_vec(f->a, PTOISA_F32, 4096, 8), 16, 8);
    g = ptoisa_global_make(f->c, PTOISA_F32, 16, 8, 8, 1);
    ptoisa_tload(core, &tall, &g);
    expect_fault("d has 4096 rows, more than 4095");
    ptoisa_tile mat = ptoisa_tile_make(f->a, PTOISA_F32, PTOISA_MAT, PTOISA_NZ, 16, 16);
    ptoisa_tile left = ptoisa_tile_make(f->b, PTOISA_F32, PTOISA_LEFT, PTOISA_NZ, 16, 16);
    ptoisa_tmov(core, &left, &mat);
    expect_fault("TMOV: d is in L0A of 910B and not ZZ");
    ptoisa_tmov(core, &vec, &mat);
    expect_fault("there is no way from L1 (s) to UB (d)");
    ptoisa_tile acc = ptoisa_tile_make(f->a, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, 16, 16);
    ptoisa_tmov(core, &other, &acc);
    expect_fault("the way from L0C to UB is not on 910B, only on A5");
    ptoisa_tmov(a5, &other, &acc);
    expect_no_fault();
    left.layout = PTOISA_ZZ;
    ptoisa_textract(core, &left, &mat, 0, 8);
    expect_fault("TEXTRACT: 16 x 16 elements from (0, 8) do not lie in s of 16 x 16");
    ptoisa_tile bias = ptoisa_tile_make(f->b, PTOISA_F32, PTOISA_BIAS, PTOISA_ROW_MAJOR, 1, 24);
    ptoisa_tile row = ptoisa_tile_make(f->a, PTOISA_F32, PTOISA_MAT, PTOISA_ROW_MAJOR, 1, 24);
    ptoisa_tmov(core, &bias, &row);
    expect_fault("d has 24 x 4 bytes, which 64 does not divide");
    g = ptoisa_global_make(f->c, PTOISA_I8, 16, 16, 16, 1);
    ptoisa_tstore(core, &g, &acc);
    expect_fault("f32 out of L0C does not become i8");
    ptoisa_tile t = ptoisa_tile_vec(f->c, PTOISA_F32, 1, 8);
    ptoisa_ttrans(core, &other, &vec, &t);
    expect_fault("TTRANS: t has 32 bytes, less than 1024");
    ptoisa_tfillpad(core, &other, &vec);
    expect_fault("TFILLPAD: d's pad value is Null");
    other.pad = PTOISA_PAD_ZERO;
    ptoisa_tfillpad_inplace(core, &other, &vec);
    expect_fault("in place");
    ptoisa_tile bytes = ptoisa_tile_vec(f->b, PTOISA_U8, 16, 32);
    ptoisa_texpands(core, &bytes, 256);
    expect_fault("256 is no u8");
    bytes.valid_cols = 16;
    ptoisa_tcvt(core, &bytes, &vec, PTOISA_CAST_RINT, false);
    expect_fault("s is f32, which becomes u8 (d) only on A5");
    ptoisa_tinterleave(core, &vec, &vec, &vec, &vec);
    expect_fault("only on A5");
    ptoisa_tile scale = ptoisa_tile_vec(f->c, PTOISA_F32, 16, 8);
    bytes.dtype = PTOISA_I8;
    ptoisa_tquant_sym(core, &bytes, &vec, &scale);
    expect_fault("scale is no column: it has 8 valid columns of 8");
}

TEST_F(empty_regions_and_dry_cores_compute_nothing) {
    memset(f->b, 0xaa, BYTES_MAX);
    ptoisa_tile s = ptoisa_tile_valid(ptoisa_tile_vec(f->a, PTOISA_F32, 8, 8), 0, 0);
    ptoisa_tile d = s;
    d.data = f->b;
    ptoisa_tile half = ptoisa_tile_valid(ptoisa_tile_vec(f->b, PTOISA_F16, 8, 16), 0, 0);
    ptoisa_tile scale = ptoisa_tile_make(f->c, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, 8, 1);
    ptoisa_tile bytes = ptoisa_tile_valid(ptoisa_tile_vec(f->b, PTOISA_I8, 8, 32), 0, 0);
    ptoisa_tmov(&f->core, &d, &s);
    ptoisa_tcvt(&f->core, &half, &s, PTOISA_CAST_NONE, false);
    ptoisa_ttrans(&f->core, &d, &s, &s);
    ptoisa_texpands(&f->core, &d, 1);
    ptoisa_tconcat(&f->core, &d, &s, &s);
    ptoisa_tci(&f->core, &d, 0, false);
    ptoisa_ttri(&f->core, &d, false, 0);
    ptoisa_tquant_sym(&f->core, &bytes, &s, &scale);
    expect_no_fault();
    for (uint32_t i = 0; i < 4096; i++) {
        assert_int_equal(f->b[i], 0xaa);
    }
    assert_int_equal(ptoisa_cycles(&f->core), 0);
    f->core.is_dry = true;
    ptoisa_tile none = ptoisa_tile_vec(NULL, PTOISA_F32, 8, 16);
    ptoisa_global g = ptoisa_global_make(NULL, PTOISA_F32, 8, 16, 16, 1);
    ptoisa_tload(&f->core, &none, &g);
    ptoisa_tstore(&f->core, &g, &none);
    expect_no_fault();
    assert_int_equal(ptoisa_cycles(&f->core), 256);
}
