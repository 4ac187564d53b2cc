// Comparisons, sorting, merging, gathering and scattering: the words in which they refuse, and columns that a
// mask takes of rows that are not whole. What they compute is in isa_compare_test.c and isa_sort_test.c.

#include "ptoisa_shim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/suite.h"

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
    ptoisa_tile half = ptoisa_tile_vec(NULL, PTOISA_F16, 1, 512);
    FAULT("TSORT32: d has 1 x 1024 valid elements, and 1 x 2048 are read",
          (x = ptoisa_tile_vec(NULL, PTOISA_F16, 1, 1024), ptoisa_tsort32(&core, &x, &half, &idx)));
    FAULT("TSORT32: d is f32, which it does not take", ptoisa_tsort32(&core, &d, &half, &idx));
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
