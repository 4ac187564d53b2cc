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
    for (int which = 0; which < 12; which++) {
        add(&b, which < 4 ? lp_cache : lp_random, which, test_random(&seed), is_a5);
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

// Kernel `name` of a module: 16 x 16 products of products, in three iterations.
static ptowsp_kernel weigh_make(ptowsp_module *m, const char *name, int64_t ahead) {
    enum { SIDE = 16 };
    ptowsp_body_desc desc = {.name = name};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, SIDE, SIDE);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, SIDE, SIDE), sum = x;
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, SIDE, SIDE, 0);
    PTOWSP_TILE_LOOP(k, at, ptowsp_tile_const(k, 0), ptowsp_tile_const(k, 3), 1) {
        if (ahead) {
            ptowsp_tile_preload(at, ahead);
        }
        sum = ptowsp_tile_carry(zero);
        ptowsp_value part = ptowsp_tile_matmul(ptowsp_tile_exp(ptowsp_tile_matmul(x, x)), x);
        ptowsp_tile_next(sum, ptowsp_tile_add(sum, part));
    }
    ptowsp_tile_store(y, sum);
    return ptowsp_kernel_end(k);
}

// Keeps the text of the file of FIFOs.
static ptowsp_status keep_fifos(void *user, const char *path, const char *text, size_t size) {
    if (strstr(path, "wsp_fifos.h")) {
        snprintf((char *)user, 512, "%.*s", (int)size, text);
    }
    return PTOWSP_OK;
}

// A tree's FIFOs have as many slots as its kernels need, if they all need as many.
TEST(emitted_trees__have_the_slots_of_their_kernels) {
    static const int64_t ahead[][2] = {{0, 0}, {2, 2}, {2, 1}, {2, 0}};
    for (int i = 0; i < 4; i++) {
        ptowsp_context *context;
        ptowsp_module *m;
        ptowsp_program *program;
        char text[512] = "";
        ptowsp_tensor_desc tensor = {.name = "t", .dtype = PTOWSP_F32, .rank = 2};
        tensor.shape[0] = tensor.shape[1] = 16;
        assert_int_equal(ptowsp_context_create(NULL, &context), PTOWSP_OK);
        assert_int_equal(ptowsp_module_create(context, NULL, &m), PTOWSP_OK);
        ptowsp_task_desc task;
        memset(&task, 0, sizeof task);
        task.views[0].tensor = task.views[1].tensor = ptowsp_tensor_make(m, &tensor);
        ptowsp_kernel kernels[] = {weigh_make(m, "one", ahead[i][0]),
                                   weigh_make(m, "two", ahead[i][1])};
        PTOWSP_WORKLOAD(m, "main") {
            PTOWSP_SEQUENCE(m) {
                for (int j = 0; j < 2; j++) {
                    task.kernel = kernels[j];
                    ptowsp_task_make(m, &task);
                }
            }
        }
        assert_int_equal(ptowsp_program_create(context, m, NULL, &program), PTOWSP_OK);
        ptowsp_status status = ptowsp_npu_emit_files(context, program, keep_fifos, text);
        assert_int_equal(status, i < 2 ? PTOWSP_OK : PTOWSP_UNSUPPORTED);
        assert_int_equal(strstr(text, "#define WSP_FIFO_SLOT_COUNT 6u\n") != NULL, i == 1);
        if (i > 1) {
            assert_non_null(strstr(ptowsp_context_error(context).text,
                                   i == 2 ? "kernel two has FIFOs of 4 slots, kernel one of 6"
                                          : "kernel two has FIFOs of 2 slots, kernel one of 6"));
        }
        if (i == 1) {  // PTO Runtime has FIFOs of two slots
            ptowsp_npu_desc desc = {.directory = "/tmp/ptowsp_npu_loop_test_is_never_written",
                                    .runtime = PTOWSP_NPU_SIMPLER};
            assert_int_equal(ptowsp_npu_emit(context, program, &desc), PTOWSP_UNSUPPORTED);
            assert_non_null(strstr(ptowsp_context_error(context).text,
                                   "no kernel one for PTO Runtime: it preloads"));
        }
        ptowsp_program_destroy(program);
        ptowsp_module_destroy(m);
        ptowsp_context_destroy(context);
    }
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
