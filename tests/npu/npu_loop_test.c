// Kernels with loops as emitted C++ against the library (npu_kernel_compare.h).

#define _POSIX_C_SOURCE 200809L

#include "kernel_loop.h"
#include "kernel_reference.h"
#include "npu_kernel_compare.h"

static void add(batch *b, lp_scene scene, int which, uint64_t seed, bool is_a5) {
    static ptowsp_machine a5;
    a5 = ptowsp_machine_950pr();
    kt_config config = kt_any(seed);
    config.is_partial = seed % 2 != 0;
    config.strides = (kt_strides)(seed / 2 % 4);
    config.machine = is_a5 ? &a5 : NULL;
    config.low = -1;
    config.high = 1;
    kt t = kt_begin(config);
    scene(&t, true, which);
    lp_lower(&t);
    batch_add(b, &t);
}

// No loop, but rows that two vector cores share: a product, and its rows by themselves.
static void shared_rows(kt *t, bool is_looped, int which) {
    (void)is_looped;
    kt_value a = kt_in(t, PTOWSP_F16, 20 + which, 24), b = kt_in(t, PTOWSP_F16, 24, 40);
    kt_value x = kt_matmul(t, a, b);
    if (which > 1) {
        x = kt_unary(t, KT_UNARY_exp, kt_sub(t, x, kt_rowmax(t, x)));
    }
    kt_keep(t, which > 2 ? kt_rowsum(t, x) : kt_mul(t, x, x));
}

// A factor of which every element is one: a chunk of the other must be whole, or the task is refused.
static void whole_chunks(kt *t, bool is_looped, int which) {
    int64_t n = 2 + which, depth = which % 2 ? n * LP_CHUNK : lp_valid(t, n);
    kt_value b = lp_in(t, PTOWSP_F32, n * LP_CHUNK, 24, depth, 24);
    ptowsp_value out = lp_out(t, PTOWSP_F32, 16, 24, 16, 24);
    ptowsp_value zero = ptowsp_tile_full(t->k, PTOWSP_F32, 16, 24, 0);
    ptowsp_value twos = ptowsp_tile_full(t->k, PTOWSP_F32, 16, LP_CHUNK, 2);
    lp l = lp_begin_as(t, is_looped, 0, depth, LP_CHUNK, lp_none, ptowsp_tile_rows(b.v));
    while (lp_more(&l)) {
        ptowsp_value sum = lp_carry(&l, 0, zero);
        lp_next(&l, 0, sum,
                ptowsp_tile_matmul_acc(sum, twos, lp_chunk(&l, NULL, b.v, LP_CHUNK, 24)));
    }
    ptowsp_tile_store(out, lp_result(&l, 0, zero));
}

// A value for two places of a parameter, and the first of them again.
static void stored_again(kt *t, bool is_looped, int which) {
    (void)is_looped;
    ptowsp_value out = lp_out(t, PTOWSP_F32, 32, 24, which ? 29 : 32, which ? 23 : 24);
    ptowsp_value zero = lp_const(t, 0), three = ptowsp_tile_full(t->k, PTOWSP_F32, 16, 24, 3);
    ptowsp_tile_store_at(out, zero, zero, three);
    ptowsp_tile_store_at(out, lp_const(t, 16), zero, three);
    ptowsp_tile_store_at(out, zero, zero, three);
}

static void play(bool is_a5) {
    static batch b;
    uint64_t seed = test_seed() + is_a5;
    b.is_a5 = is_a5;
    for (int which = 0; which < 5; which++) {
        add(&b, lp_matmul, which, test_random(&seed), is_a5);
        add(&b, lp_rows, which, test_random(&seed), is_a5);
        add(&b, lp_attention, which, test_random(&seed), is_a5);
        add(&b, lp_nested, (int)(test_random(&seed) % 16), test_random(&seed), is_a5);
    }
    add(&b, lp_gemm, 8, test_random(&seed), is_a5);
    for (int which = 0; which < 8; which++) {
        add(&b, lp_panels, which, test_random(&seed), is_a5);
    }
    for (int which = 0; which < 4; which++) {
        add(&b, lp_cache, which, test_random(&seed), is_a5);
    }
    for (int which = 0; which < 2; which++) {
        add(&b, whole_chunks, which, test_random(&seed), is_a5);
        add(&b, stored_again, which, test_random(&seed), is_a5);
    }
    uint32_t first = b.count;
    for (int which = 0; which < 4; which++) {
        add(&b, shared_rows, which, test_random(&seed), is_a5);
    }
    for (uint32_t i = first; i < b.count; i++) {
        ptowsp_kernel_info info = ptowsp_program_read(kt_compile(&b.kernels[i]))->kernels[1];
        assert_int_equal(info.is_split, !is_a5);
    }
    batch_play(&b, "");
}

TEST(emitted_loops__are_those_of_the_library_on_a2a3) {
    play(false);
}

TEST(emitted_loops__are_those_of_the_library_on_a5) {
    play(true);
}

// Loops that begin two iterations ahead, whose FIFOs have six slots.
TEST(emitted_loops__that_preload_are_those_of_the_library) {
    static batch b;
    uint64_t seed = test_seed() + 2;
    lp_preload = 2;
    for (int which = 0; which < 5; which++) {
        add(&b, lp_attention, which, test_random(&seed), false);
    }
    lp_preload = 0;
    batch_play(&b, "-DWSP_FIFO_SLOT_COUNT=6u");
}

// -- data as a device moves it --------------------------------------------------------------------

static kt_value in_as(kt *t, kt_strides strides, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    t->config.strides = strides;
    return kt_in(t, dtype, rows, cols);
}

static void keep_as(kt *t, kt_strides strides, kt_value value) {
    t->config.strides = strides;
    kt_keep(t, value);
}

// A right factor that is stored by columns, whole or cut along k; one that is loaded by parts.
static void strict_right(kt *t, int which) {
    ptowsp_dtype dtype = which % 2 ? PTOWSP_F16 : PTOWSP_F32;
    int64_t k = which < 4 ? 24 : 1100;
    kt_value a = in_as(t, KT_PITCH, dtype, 20, k);
    kt_value b = in_as(t, which / 2 % 2 ? KT_PITCH : KT_TRANSPOSED, dtype, k, 40);
    keep_as(t, KT_PITCH, kt_matmul(t, a, b));
}

// Columns of wide matrices, and rows of one element.
static void strict_column(kt *t, int which) {
    static const ptowsp_dtype dtypes[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_I32, PTOWSP_I16};
    ptowsp_dtype dtype = dtypes[which % 4];
    kt_value x = in_as(t, KT_PITCH, dtype, 20, 24);
    kt_value v = in_as(t, which / 4 ? KT_TRANSPOSED : KT_PITCH, dtype, 20, 1);
    keep_as(t, KT_PITCH, kt_add(t, x, v));
    keep_as(t, KT_PITCH, kt_add(t, v, v));
    keep_as(t, KT_TRANSPOSED, kt_max(t, v, v));
}

// Products that have nothing to sum where a task has at most 8 columns.
static void strict_empty(kt *t, int which) {
    ptowsp_dtype dtype = which % 2 ? PTOWSP_F16 : PTOWSP_F32;
    kt_value a = in_as(t, KT_PITCH, dtype, 20, 24), b = in_as(t, KT_TRANSPOSED, dtype, 24, 40);
    kt_value x = kt_slice(t, a, 0, 8, 20, 16), y = kt_slice(t, b, 8, 0, 16, 40);
    keep_as(t, KT_PITCH,
            which / 2 ? kt_matmul_bias(t, x, y, in_as(t, KT_PITCH, PTOWSP_F32, 1, 40))
                      : kt_matmul(t, x, y));
}

static void strict_add(batch *b, void (*scene)(kt *t, int which), int which, uint64_t *seed) {
    kt_config config = kt_any(test_random(seed));
    config.is_partial = which % 3 == 0;
    config.is_integer = true;
    config.low = -9;
    config.high = 9;
    kt t = kt_begin(config);
    scene(&t, which);
    kt_lower(&t);
    batch_add(b, &t);
}

TEST(emitted_kernels__move_data_as_a_device_does) {
    static batch b;
    uint64_t seed = test_seed() + 7;
    for (int which = 0; which < 8; which++) {
        strict_add(&b, strict_right, which, &seed);
        strict_add(&b, strict_column, which, &seed);
        strict_add(&b, strict_empty, which % 4, &seed);
    }
    compare_is_strict = true;
    batch_play(&b, "-DWSP_HAS_STRIDES=0");
    compare_is_strict = false;
}
