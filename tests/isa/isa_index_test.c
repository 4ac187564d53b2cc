// Comparisons and selections, sorting and merging, gathering and scattering: against plain loops.

#include "ptoisa_shim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed_state;

static uint64_t next_random(void) {
    uint64_t z = (seed_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t random_in(uint32_t low, uint32_t high) {
    return low + (uint32_t)(next_random() % (high - low + 1));
}

static char last_fault[PTOISA_FAULT_TEXT_MAX];

static void note_fault(ptoisa_core *core, const char *text) {
    (void)core;
    snprintf(last_fault, sizeof last_fault, "%s", text);
}

static ptoisa_core start(void) {
    const char *text = getenv("PTOWSP_SEED");
    seed_state = text ? strtoull(text, NULL, 0) : 20261121;
    print_message("seed %llu (set PTOWSP_SEED to change it)\n", (unsigned long long)seed_state);
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, ptoisa_machine_950pr());
    return core;
}

#define FAULT(text, call)                                                                          \
    do {                                                                                           \
        last_fault[0] = 0;                                                                         \
        call;                                                                                      \
        assert_string_equal(last_fault, text);                                                     \
    } while (0)

// A row-major tile valid for rows x cols, full of random bytes, with exactly its own memory.
static ptoisa_tile tile_new(ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    uint32_t step = 32 / ptoisa_dtype_size(dtype);
    uint32_t wide = (cols + step - 1) / step * step + step * random_in(0, 1);
    ptoisa_tile tile = ptoisa_tile_vec(NULL, dtype, rows + random_in(0, 2), wide ? wide : step);
    uint8_t *data = (uint8_t *)aligned_alloc(32, ptoisa_tile_bytes(&tile));
    assert_non_null(data);
    for (uint64_t i = 0; i < ptoisa_tile_bytes(&tile); i++) {
        data[i] = (uint8_t)next_random();
    }
    tile.data = data;
    return ptoisa_tile_valid(tile, rows, cols);
}

// Values that compare in every way: few of them, with zeros of both signs, infinities and NaN.
static void fill_values(const ptoisa_tile *tile) {
    static const float values[] = {0, -0.0f, 1, -1, 2, 65504, -3, INFINITY, -INFINITY, NAN, 1e-7f};
    for (uint64_t i = 0; i < (uint64_t)tile->rows * tile->cols; i++) {
        float x = values[random_in(0, 10)];
        switch ((ptoisa_dtype)tile->dtype) {
        case PTOISA_F32: ((float *)tile->data)[i] = x; break;
        case PTOISA_F16: ((uint16_t *)tile->data)[i] = ptoisa_f16_from_f32(x); break;
        case PTOISA_BF16: ((uint16_t *)tile->data)[i] = ptoisa_bf16_from_f32(x); break;
        case PTOISA_I8: ((int8_t *)tile->data)[i] = (int8_t)(random_in(0, 4) - 2); break;
        case PTOISA_U8: ((uint8_t *)tile->data)[i] = (uint8_t)random_in(0, 4); break;
        case PTOISA_I16: ((int16_t *)tile->data)[i] = (int16_t)(random_in(0, 4) - 2); break;
        case PTOISA_U16: ((uint16_t *)tile->data)[i] = (uint16_t)random_in(0, 4); break;
        case PTOISA_I32: ((int32_t *)tile->data)[i] = (int32_t)random_in(0, 4) - 2; break;
        case PTOISA_U32: ((uint32_t *)tile->data)[i] = 0xfffffffe + random_in(0, 4); break;
        default: fail();
        }
    }
}

static bool compared(double x, double y, ptoisa_compare compare) {
    switch (compare) {
    case PTOISA_EQ: return x == y;
    case PTOISA_NE: return x != y;
    case PTOISA_LT: return x < y;
    case PTOISA_LE: return x <= y;
    case PTOISA_GT: return x > y;
    case PTOISA_GE: return x >= y;
    }
    return false;
}

static const ptoisa_dtype all_types[] = {PTOISA_F16, PTOISA_BF16, PTOISA_F32, PTOISA_I8, PTOISA_I16,
                                         PTOISA_I32, PTOISA_U8,   PTOISA_U16, PTOISA_U32};

TEST(compare__masks_and_selections_of_all_types_modes_and_sizes) {
    ptoisa_core core = start();
    for (int n = 0; n < 3000; n++) {
        const ptoisa_dtype dtype = all_types[n % 9];
        const ptoisa_compare mode = (ptoisa_compare)(n / 9 % 6);
        const uint32_t rows = random_in(1, 4), cols = random_in(1, 70);
        const bool is_u32 = random_in(0, 1), with_scalar = random_in(0, 1);
        const uint32_t mask_cols = is_u32 ? (cols + 31) / 32 : (cols + 7) / 8;
        // A2/A3 takes fewer types and modes, unless it is as the simulator.
        const bool is_as_simulator = random_in(0, 1);
        core.machine = is_as_simulator ? ptoisa_machine_910b() : ptoisa_machine_950pr();
        core.is_as_simulator = is_as_simulator;
        ptoisa_tile s0 = tile_new(dtype, rows, cols), s1 = tile_new(dtype, rows, cols);
        ptoisa_tile mask = tile_new(is_u32 ? PTOISA_U32 : PTOISA_U8, rows, mask_cols);
        fill_values(&s0);
        fill_values(&s1);
        const size_t mask_bytes = ptoisa_tile_bytes(&mask);
        uint8_t *before = (uint8_t *)malloc(mask_bytes), *bits = (uint8_t *)mask.data;
        assert_non_null(before);
        memcpy(before, bits, mask_bytes);
        double x = ptoisa_get(&s1, 0, 0);
        if (with_scalar) {
            ptoisa_tcmps(&core, &mask, &s0, x, mode);
        } else {
            ptoisa_tcmp(&core, &mask, &s0, &s1, mode);
        }
        const uint32_t row_bytes = mask.cols * (is_u32 ? 4 : 1);
        for (uint32_t r = 0; r < mask.rows; r++) {
            for (uint32_t c = 0; c < row_bytes * 8; c++) {
                bool got = bits[r * row_bytes + c / 8] >> c % 8 & 1;
                bool want = false;
                if (r >= rows || c >= mask_cols * (is_u32 ? 32 : 8)) {
                    want = before[r * row_bytes + c / 8] >> c % 8 & 1;
                } else if (c < cols) {
                    double y = with_scalar ? x : ptoisa_get(&s1, r, c);
                    want = compared(ptoisa_get(&s0, r, c), y, mode);
                }
                assert_int_equal(got, want);
            }
        }
        if (ptoisa_dtype_size(dtype) > 1 || is_as_simulator) {
            ptoisa_tile d = tile_new(dtype, rows, cols), in_place = s0;
            const uint32_t size = ptoisa_dtype_size(dtype);
            const size_t bytes = ptoisa_tile_bytes(&d);
            uint8_t *old = (uint8_t *)malloc(bytes);
            assert_non_null(old);
            bool is_in_place = random_in(0, 1);
            const ptoisa_tile *to = is_in_place ? &in_place : &d;
            uint8_t *from = (uint8_t *)malloc(ptoisa_tile_bytes(&s0));
            assert_non_null(from);
            memcpy(from, s0.data, ptoisa_tile_bytes(&s0));
            memcpy(old, d.data, bytes);
            if (with_scalar) {
                ptoisa_tsels(&core, to, &mask, &s0, NULL, x);
            } else {
                ptoisa_tsel(&core, to, &mask, &s0, &s1, NULL);
            }
            for (uint32_t r = 0; r < to->rows; r++) {
                for (uint32_t c = 0; c < to->cols; c++) {
                    const uint8_t *got = (uint8_t *)to->data + ptoisa_offset(to, r, c) * size;
                    const uint8_t *want = from + ptoisa_offset(&s0, r, c) * size;
                    if (r >= rows || c >= cols) {
                        want = is_in_place ? want : old + ptoisa_offset(&d, r, c) * size;
                    } else if (!(bits[r * row_bytes + c / 8] >> c % 8 & 1)) {
                        want = (uint8_t *)s1.data +
                               (with_scalar ? 0 : ptoisa_offset(&s1, r, c)) * size;
                        if (with_scalar && x != x) {
                            assert_true(ptoisa_get(to, r, c) != ptoisa_get(to, r, c));
                            continue;
                        }
                    }
                    assert_memory_equal(got, want, size);
                }
            }
            free(d.data);
            free(old);
            free(from);
        }
        free(s0.data);
        free(s1.data);
        free(mask.data);
        free(before);
    }
}

TEST(compare__faults_say_what_is_wrong) {
    if (!PTOISA_CHECKED_DEFAULT) {
        skip();
    }
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    core.is_dry = true;
    core.on_fault = note_fault;
    ptoisa_tile s = ptoisa_tile_vec(NULL, PTOISA_I32, 4, 64), x;
    ptoisa_tile mask = ptoisa_tile_vec(NULL, PTOISA_U8, 4, 32);
    FAULT("", ptoisa_tcmp(&core, &mask, &s, &s, PTOISA_EQ));
    assert_int_equal(ptoisa_cycles(&core), 256);
    FAULT("TCMP: i32 has no comparison but EQ on A2/A3",
          ptoisa_tcmp(&core, &mask, &s, &s, PTOISA_LT));
    FAULT("TCMP: s0 is i16, which it does not take",
          (x = s, x.dtype = PTOISA_I16, ptoisa_tcmp(&core, &mask, &x, &x, PTOISA_EQ)));
    FAULT("", (x = s, x.dtype = PTOISA_I16, ptoisa_tcmps(&core, &mask, &x, 1, PTOISA_LT)));
    FAULT("TCMPS: mask has 4 x 7 valid elements, and 4 x 8 are read",
          (x = ptoisa_tile_valid(mask, 4, 7), ptoisa_tcmps(&core, &x, &s, 1, PTOISA_EQ)));
    FAULT("TSEL: s1 is f32, which it does not take",
          (x = s, x.dtype = PTOISA_F32, ptoisa_tsel(&core, &s, &mask, &s, &x, NULL)));
    FAULT("TSELS: mask is not row-major", (x = mask, x.rows = 32, x.layout = PTOISA_COL_MAJOR,
                                           ptoisa_tsels(&core, &s, &x, &s, NULL, 0)));
}

// -- sorting --------------------------------------------------------------------------------------

typedef struct pair {
    double value;
    uint32_t index, order;
    uint32_t bits;
} pair;

static int before_in_order(const void *a, const void *b) {
    const pair *x = (const pair *)a, *y = (const pair *)b;
    bool x_nan = x->value != x->value, y_nan = y->value != y->value;
    if (x_nan != y_nan) {
        return x_nan ? -1 : 1;
    }
    if (!x_nan && x->value != y->value) {
        return x->value > y->value ? -1 : 1;
    }
    return x->order < y->order ? -1 : 1;
}

static pair pair_at(const ptoisa_tile *tile, uint32_t r, uint32_t i) {
    const uint8_t *at = (uint8_t *)tile->data +
                        (uint64_t)r * tile->cols * ptoisa_dtype_size((ptoisa_dtype)tile->dtype) +
                        i * 8;
    pair p;
    p.bits = (uint32_t)ptoisa_get_bits(at, ptoisa_dtype_size((ptoisa_dtype)tile->dtype));
    assert_true(tile->dtype == PTOISA_F32 || (at[2] == 0 && at[3] == 0));
    memcpy(&p.index, at + 4, 4);
    p.value = tile->dtype == PTOISA_F16 ? ptoisa_f32_from_f16((uint16_t)p.bits)
                                        : ptoisa_f32_from_bits(p.bits);
    p.order = i;
    return p;
}

TEST(sort__runs_of_32_are_descending_stable_and_nan_first) {
    ptoisa_core core = start();
    for (int n = 0; n < 500; n++) {
        const ptoisa_dtype dtype = n % 2 ? PTOISA_F16 : PTOISA_F32;
        const uint32_t rows = random_in(1, 3), cols = random_in(0, 3) ? random_in(1, 100) : 96;
        const uint32_t wide = cols * (dtype == PTOISA_F16 ? 4 : 2);
        ptoisa_tile s = tile_new(dtype, rows, cols), idx = tile_new(PTOISA_U32, rows, cols);
        ptoisa_tile d = tile_new(dtype, rows, wide);
        if (n % 4 < 2) {
            fill_values(&s);
        }
        ptoisa_tsort32(&core, &d, &s, &idx);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c += 32) {
                uint32_t count = cols - c < 32 ? cols - c : 32;
                pair want[32];
                for (uint32_t i = 0; i < count; i++) {
                    want[i].value = ptoisa_get(&s, r, c + i);
                    want[i].index = ((uint32_t *)idx.data)[r * idx.cols + c + i];
                    want[i].order = i;
                    want[i].bits = dtype == PTOISA_F16 ? ((uint16_t *)s.data)[r * s.cols + c + i]
                                                       : ((uint32_t *)s.data)[r * s.cols + c + i];
                }
                qsort(want, count, sizeof *want, before_in_order);
                for (uint32_t i = 0; i < count; i++) {
                    pair got = pair_at(&d, r, c + i);
                    assert_int_equal(got.bits, want[i].bits);
                    assert_int_equal(got.index, want[i].index);
                }
            }
        }
        free(s.data);
        free(idx.data);
        free(d.data);
    }
}

// Fills a list with sorted pairs; indices count on from first.
static void fill_sorted(const ptoisa_tile *list, uint32_t from, uint32_t count, uint32_t first) {
    static const float values[] = {NAN, INFINITY, 5, 4, 3, 2, 1, 0, -0.0f, -1, -2, -INFINITY};
    pair pairs[512];
    for (uint32_t i = 0; i < count; i++) {
        pairs[i].value = values[random_in(0, 11)];
        pairs[i].order = i;
    }
    qsort(pairs, count, sizeof *pairs, before_in_order);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = first + i, bits = ptoisa_bits_from_f32((float)pairs[i].value);
        if (list->dtype == PTOISA_F16) {
            bits = ptoisa_f16_from_f32((float)pairs[i].value);
        }
        uint8_t *at = (uint8_t *)list->data + (from + i) * 8;
        memset(at, 0, 4);
        ptoisa_put_bits(at, bits, ptoisa_dtype_size((ptoisa_dtype)list->dtype));
        memcpy(at + 4, &index, 4);
    }
}

TEST(sort__four_runs_become_one) {
    ptoisa_core core = start();
    for (int n = 0; n < 100; n++) {
        const ptoisa_dtype dtype = n % 2 ? PTOISA_F16 : PTOISA_F32;
        const uint32_t per_pair = dtype == PTOISA_F16 ? 4 : 2,
                       run = 64 * random_in(1, 3) / per_pair;
        const uint32_t groups = random_in(1, 3), total = groups * 4 * run;
        ptoisa_tile s = tile_new(dtype, 1, total * per_pair),
                    d = tile_new(dtype, 1, total * per_pair);
        for (uint32_t i = 0; i < total; i += run) {
            fill_sorted(&s, i, run, i);
        }
        ptoisa_tmrgsort(&core, &d, &s, run * per_pair);
        for (uint32_t g = 0; g < groups; g++) {
            pair want[384];
            for (uint32_t i = 0; i < 4 * run; i++) {
                want[i] = pair_at(&s, 0, g * 4 * run + i);
            }
            qsort(want, 4 * run, sizeof *want, before_in_order);
            for (uint32_t i = 0; i < 4 * run; i++) {
                pair got = pair_at(&d, 0, g * 4 * run + i);
                assert_int_equal(got.index, want[i].index);
                assert_int_equal(got.bits, want[i].bits);
            }
        }
        free(s.data);
        free(d.data);
    }
}

TEST(sort__lists_are_merged_until_all_or_one_is_used_up) {
    ptoisa_core core = start();
    for (int n = 0; n < 400; n++) {
        const ptoisa_dtype dtype = n % 2 ? PTOISA_F16 : PTOISA_F32;
        const uint32_t per_pair = dtype == PTOISA_F16 ? 4 : 2, count = random_in(2, 4);
        const bool exhausted = random_in(0, 1);
        ptoisa_tile tiles[4];
        const ptoisa_tile *lists[4];
        pair want[256];
        uint32_t total = 0, lengths[4] = {0};
        for (uint32_t i = 0; i < count; i++) {
            lengths[i] = random_in(1, 50);
            tiles[i] = tile_new(dtype, 1, lengths[i] * per_pair);
            lists[i] = &tiles[i];
            fill_sorted(&tiles[i], 0, lengths[i], 1000 * i);
            for (uint32_t j = 0; j < lengths[i]; j++) {
                want[total] = pair_at(&tiles[i], 0, j);
                want[total].order = total;
                total++;
            }
        }
        ptoisa_tile d = tile_new(dtype, 1, total * per_pair);
        uint8_t *before = (uint8_t *)malloc(ptoisa_tile_bytes(&d));
        assert_non_null(before);
        memcpy(before, d.data, ptoisa_tile_bytes(&d));
        uint16_t executed[4] = {7, 7, 7, 7};
        ptoisa_tmrgsort_lists(&core, &d, NULL, lists, count, executed, exhausted);
        qsort(want, total, sizeof *want, before_in_order);
        uint32_t taken[4] = {0}, i = 0;
        while (i < total) {
            assert_int_equal(pair_at(&d, 0, i).index, want[i].index);
            uint32_t list = want[i++].index / 1000;
            if (++taken[list] == lengths[list] && exhausted) {
                break;
            }
        }
        for (uint32_t k = 0; k < 4; k++) {
            assert_int_equal(executed[k], taken[k]);
        }
        assert_memory_equal((uint8_t *)d.data + i * 8, before + i * 8,
                            ptoisa_tile_bytes(&d) - i * 8);
        for (uint32_t k = 0; k < count; k++) {
            free(tiles[k].data);
        }
        free(d.data);
        free(before);
    }
}

// The 256 best of scores: sort, merge, merge, gather by mask.
TEST(sort__top_k_of_256_scores) {
    ptoisa_core core = start();
    ptoisa_tile s = tile_new(PTOISA_F32, 1, 256), idx = tile_new(PTOISA_U32, 1, 256);
    ptoisa_tile runs = tile_new(PTOISA_F32, 1, 512), merged = tile_new(PTOISA_F32, 1, 512);
    ptoisa_tile all = tile_new(PTOISA_F32, 1, 512), indices = tile_new(PTOISA_U32, 1, 256);
    for (uint32_t i = 0; i < 256; i++) {
        ((float *)s.data)[i] = (float)(i * 77 % 256);
        ((uint32_t *)idx.data)[i] = i;
    }
    ptoisa_tsort32(&core, &runs, &s, &idx);
    ptoisa_tmrgsort(&core, &merged, &runs, 64);
    ptoisa_tile halves[2] = {merged, merged};
    halves[0].valid_cols = halves[1].valid_cols = 256;
    halves[1].data = (float *)merged.data + 256;
    const ptoisa_tile *lists[2] = {&halves[0], &halves[1]};
    uint16_t executed[4];
    ptoisa_tmrgsort_lists(&core, &all, NULL, lists, 2, executed, false);
    ptoisa_tile words = all;
    words.dtype = PTOISA_U32;
    ptoisa_tgather_mask(&core, &indices, &words, PTOISA_P1010);
    ptoisa_tgather_mask(&core, &s, &all, PTOISA_P0101);
    for (uint32_t i = 0; i < 256; i++) {
        assert_true(((float *)s.data)[i] == (float)(255 - i));
        assert_int_equal(((uint32_t *)indices.data)[i] * 77 % 256, 255 - i);
    }
    free(s.data);
    free(idx.data);
    free(runs.data);
    free(merged.data);
    free(all.data);
    free(indices.data);
}

TEST(sort__faults_say_what_is_wrong) {
    if (!PTOISA_CHECKED_DEFAULT) {
        skip();
    }
    ptoisa_core core = start();
    core.is_dry = true;
    core.on_fault = note_fault;
    ptoisa_tile s = ptoisa_tile_vec(NULL, PTOISA_F32, 1, 512), x;
    ptoisa_tile idx = ptoisa_tile_vec(NULL, PTOISA_U32, 1, 512);
    ptoisa_tile d = ptoisa_tile_vec(NULL, PTOISA_F32, 1, 1024);
    FAULT("", ptoisa_tsort32(&core, &d, &s, &idx));
    assert_int_equal(ptoisa_cycles(&core), 5 * 512);
    FAULT("TSORT32: d has 1 x 512 valid elements, and 1 x 1024 are read",
          ptoisa_tsort32(&core, &s, &s, &idx));
    FAULT("TMRGSORT: runs of 32 elements: no multiple of 64", ptoisa_tmrgsort(&core, &d, &s, 32));
    FAULT("TMRGSORT: 512 valid columns are not 1 to 255 groups of 768",
          ptoisa_tmrgsort(&core, &d, &s, 192));
    FAULT("TMRGSORT: s has 2 valid rows, not 1",
          (x = ptoisa_tile_vec(NULL, PTOISA_F32, 2, 512), ptoisa_tmrgsort(&core, &x, &x, 64)));
    const ptoisa_tile *lists[3] = {&s, &s, &s};
    uint16_t executed[4];
    FAULT("", ptoisa_tmrgsort_lists(&core, &d, NULL, lists, 2, executed, true));
    assert_int_equal(executed[1], 256);
    FAULT("TMRGSORT: d has 1024 valid columns for 1536 of the lists",
          ptoisa_tmrgsort_lists(&core, &d, NULL, lists, 3, executed, true));
    FAULT("TMRGSORT: 5 lists: 2 to 4 can be merged",
          ptoisa_tmrgsort_lists(&core, &d, NULL, lists, 5, executed, true));
}

// -- gathering ------------------------------------------------------------------------------------

// What is taken of all rows lies together; what is behind it stays.
TEST(gather__masks_pack_their_columns) {
    ptoisa_core core = start();
    static const uint32_t steps[] = {2, 2, 4, 4, 4, 4, 1}, firsts[] = {0, 1, 0, 1, 2, 3, 0};
    for (int n = 0; n < 300; n++) {
        const ptoisa_dtype dtype = n % 2 ? PTOISA_U16 : PTOISA_F32;
        const uint32_t size = ptoisa_dtype_size(dtype), p = (uint32_t)n % 7;
        const uint32_t rows = random_in(1, 3), cols = random_in(1, 40);
        ptoisa_tile s = tile_new(dtype, rows, cols * steps[p]), d = tile_new(dtype, rows, cols);
        d.valid_cols = d.cols;
        s.valid_cols = n % 3 ? s.valid_cols : random_in(1, s.valid_cols);
        uint8_t *want = (uint8_t *)malloc(ptoisa_tile_bytes(&d)), *at = want;
        memcpy(want, d.data, ptoisa_tile_bytes(&d));
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = firsts[p]; c < s.valid_cols; c += steps[p], at += size) {
                memcpy(at, (uint8_t *)s.data + ptoisa_offset(&s, r, c) * size, size);
            }
        }
        ptoisa_tgather_mask(&core, &d, &s, (ptoisa_pattern)p);
        assert_memory_equal(d.data, want, ptoisa_tile_bytes(&d));
        free(want);
        free(s.data);
        free(d.data);
    }
}

TEST(gather__indices_read_and_write_elements) {
    ptoisa_core core = start();
    static const ptoisa_dtype types[] = {PTOISA_F32, PTOISA_F16, PTOISA_U8};
    for (int n = 0; n < 300; n++) {
        const ptoisa_dtype dtype = types[n % 3];
        const uint32_t rows = random_in(1, 4), cols = random_in(1, 40);
        ptoisa_tile s = tile_new(dtype, 3, 50), d = tile_new(dtype, rows, cols);
        ptoisa_tile idx = tile_new(PTOISA_I32, rows, cols),
                    narrow = tile_new(PTOISA_U16, rows, cols);
        const uint32_t size = ptoisa_dtype_size(dtype);
        for (uint32_t i = 0; i < idx.rows * idx.cols; i++) {
            ((int32_t *)idx.data)[i] = (int32_t)random_in(0, s.rows * s.cols - 1);
        }
        for (uint32_t i = 0; i < narrow.rows * narrow.cols; i++) {
            ((uint16_t *)narrow.data)[i] = (uint16_t)random_in(0, s.rows * s.cols - 1);
        }
        if (size > 1) {
            ptoisa_tgather(&core, &d, &s, &idx, NULL);
            for (uint32_t r = 0; r < rows; r++) {
                for (uint32_t c = 0; c < cols; c++) {
                    uint32_t at = (uint32_t)ptoisa_get(&idx, r, c);
                    assert_memory_equal((uint8_t *)d.data + ptoisa_offset(&d, r, c) * size,
                                        (uint8_t *)s.data + at * size, size);
                }
            }
        }
        // Scatter d into s: the same by hand.
        const ptoisa_tile *where = size == 4 ? &idx : &narrow;
        const size_t bytes = ptoisa_tile_bytes(&s);
        uint8_t *want = (uint8_t *)malloc(bytes);
        assert_non_null(want);
        memcpy(want, s.data, bytes);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                memcpy(want + (uint32_t)ptoisa_get(where, r, c) * size,
                       (uint8_t *)d.data + ptoisa_offset(&d, r, c) * size, size);
            }
        }
        ptoisa_tscatter(&core, &s, &d, where);
        assert_memory_equal(s.data, want, bytes);
        free(want);
        free(s.data);
        free(d.data);
        free(idx.data);
        free(narrow.data);
    }
}

TEST(gather__rows_of_a_table_are_read_and_written) {
    ptoisa_core core = start();
    for (int n = 0; n < 200; n++) {
        int32_t table[20 * 48];
        for (uint32_t i = 0; i < 20 * 48; i++) {
            table[i] = (int32_t)next_random();
        }
        const uint32_t rows = random_in(1, 12), cols = random_in(1, 24);
        const int64_t step = random_in(1, 2);
        ptoisa_global global = ptoisa_global_make(table, PTOISA_I32, 20, 24, 48, step);
        ptoisa_tile d = tile_new(PTOISA_I32, rows, cols), idx = tile_new(PTOISA_U32, 1, rows);
        if (n % 2) {
            idx.rows = idx.cols;
            idx.valid_rows = rows;
            idx.cols = idx.valid_cols = 1;
            idx.layout = PTOISA_COL_MAJOR;
        }
        for (uint32_t i = 0; i < rows; i++) {
            ((uint32_t *)idx.data)[i] = random_in(0, 19);
        }
        ptoisa_mgather(&core, &d, &global, &idx);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                int64_t at = ((uint32_t *)idx.data)[r] * 48 + c * step;
                assert_int_equal(((int32_t *)d.data)[ptoisa_offset(&d, r, c)], table[at]);
                ((int32_t *)d.data)[ptoisa_offset(&d, r, c)] = (int32_t)next_random();
            }
        }
        int32_t want[20 * 48];
        memcpy(want, table, sizeof want);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                want[((uint32_t *)idx.data)[r] * 48 + c * step] =
                    ((int32_t *)d.data)[ptoisa_offset(&d, r, c)];
            }
        }
        ptoisa_mscatter(&core, &global, &d, &idx);
        assert_memory_equal(table, want, sizeof want);
        free(d.data);
        free(idx.data);
    }
}

TEST(gather__an_index_outside_faults_or_reads_zero_and_writes_nothing) {
    ptoisa_core core = start();
    core.on_fault = note_fault;
    ptoisa_tile s = ptoisa_tile_vec(aligned_alloc(32, 64), PTOISA_F32, 2, 8), d = s;
    ptoisa_tile idx = ptoisa_tile_vec(aligned_alloc(32, 64), PTOISA_I32, 2, 8);
    d.data = aligned_alloc(32, 64);
    assert_true(s.data && d.data && idx.data);
    for (int i = 0; i < 16; i++) {
        ((float *)s.data)[i] = (float)(i + 1);
        ((float *)d.data)[i] = -1;
        ((int32_t *)idx.data)[i] = i;
    }
    ((int32_t *)idx.data)[9] = 16;
    ((int32_t *)idx.data)[10] = -1;
    ptoisa_global table = ptoisa_global_make(s.data, PTOISA_F32, 2, 8, 8, 1);
    ptoisa_tile rows = ptoisa_tile_valid(idx, 1, 2);
    rows.data = (int32_t *)idx.data + 8;
    const bool is_checked = PTOISA_CHECKED_DEFAULT;
    FAULT(is_checked ? "TGATHER: idx at (1, 1) is 16, of 16" : "",
          ptoisa_tgather(&core, &d, &s, &idx, NULL));
    assert_true(((float *)d.data)[9] == (is_checked ? -1 : 0));
    assert_true(((float *)d.data)[8] == (is_checked ? -1 : 9));
    FAULT(is_checked ? "TSCATTER: idx at (1, 1) is 16, of 16" : "",
          ptoisa_tscatter(&core, &d, &s, &idx));
    assert_true(((float *)d.data)[10] == (is_checked ? -1 : 0));
    ((int32_t *)idx.data)[9] = -2;
    ((int32_t *)idx.data)[8] = 1;
    FAULT(is_checked ? "MGATHER: idx at (0, 1) is -2, of 2" : "",
          ptoisa_mgather(&core, &d, &table, &rows));
    assert_true(((float *)d.data)[7] == (is_checked ? -1 : 16));
    assert_true(((float *)d.data)[8] == (is_checked ? -1 : 0));
    FAULT(is_checked ? "MSCATTER: idx at (0, 1) is -2, of 2" : "",
          ptoisa_mscatter(&core, &table, &d, &rows));
    free(s.data);
    free(d.data);
    free(idx.data);
}
