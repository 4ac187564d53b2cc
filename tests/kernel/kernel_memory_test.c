// Memory of tile kernels: any allocation may fail, from the first operation through lowering and
// compiling to running; running again allocates nothing; programs outlive their module.

#include "test.h"

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    float data[4][32 * 32];
} fixture;

static const char *const names[] = {"a", "b", "bias", "out"};

// A kernel with products, functions, reductions, masks, a loop, a sort and instructions.
static ptowsp_kernel build_kernel(ptowsp_module *m, const char *name, bool is_fused) {
    ptowsp_body_desc desc = {.name = name, .is_fused = is_fused};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F32, 32, 32);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F32, 32, 32);
    ptowsp_value bias = ptowsp_tile_in(k, "bias", PTOWSP_F32, 1, 32);
    ptowsp_value out = ptowsp_tile_out(k, "out", PTOWSP_F32, 32, 32);
    ptowsp_value scale = ptowsp_tile_scalar(k, "scale", PTOWSP_F32);
    const ptowsp_value none = {NULL, 0};
    ptowsp_value x = ptowsp_tile_matmul_bias(a, b, bias);
    x = ptowsp_tile_gelu(ptowsp_tile_mul(ptowsp_tile_transpose(x), scale));
    ptowsp_value mask = ptowsp_tile_compare(x, PTOWSP_GT, a);
    x = ptowsp_tile_div(ptowsp_tile_select(mask, x, b), ptowsp_tile_rowmax(x));
    // A source that is copied: 10 of 20 columns fill rows of 16.
    x = ptowsp_tile_add(
        x, ptowsp_tile_rowsum(ptowsp_tile_deinterleave(ptowsp_tile_slice(x, 0, 0, 32, 20), 0)));
    PTOWSP_TILE_LOOP(k, i, ptowsp_tile_const(k, 0), ptowsp_tile_rows(a), 16) {
        ptowsp_value sum = ptowsp_tile_carry(x);
        ptowsp_tile_next(sum, ptowsp_tile_add(sum, ptowsp_tile_colsum(
                                                       ptowsp_tile_slice_at(a, i, none, 16, 32))));
        x = sum;
    }
    ptowsp_value pairs = ptowsp_tile_sort32(x, ptowsp_tile_iota(k, PTOWSP_U32, 32, 0));
    ptowsp_alloc_desc alloc = {.dtype = PTOWSP_F32, .like = x};
    ptowsp_value t = ptowsp_tile_alloc(k, &alloc);
    ptowsp_instruction_desc insn = {
        .name = "TMULS", .dst[0] = t, .src[0] = ptowsp_tile_topk_values(pairs, 32)};
    insn.scalar = ptowsp_tile_const(k, 2);
    ptowsp_instruction(k, &insn);
    ptowsp_tile_store(out, t);
    return ptowsp_kernel_end(k);
}

static void build(ptowsp_module *m) {
    ptowsp_kernel one = build_kernel(m, "one", false), two = build_kernel(m, "two", true);
    ptowsp_axis steps = ptowsp_axis_dense(m, "steps", 3);
    ptowsp_task_desc desc = {0};
    for (int i = 0; i < 4; i++) {
        ptowsp_tensor_desc tensor = {.name = names[i],
                                     .dtype = PTOWSP_F32,
                                     .rank = 2,
                                     .shape[0] = i == 2 ? 1 : 32,
                                     .shape[1] = 32};
        desc.views[i].tensor = ptowsp_tensor_make(m, &tensor);
    }
    desc.scalars[0] = ptowsp_u64(m, 0x3f800000);
    PTOWSP_WORKLOAD(m, "w") {
        PTOWSP_FOR_EACH(m, i, steps) {
            desc.kernel = one;
            ptowsp_task_make(m, &desc);
            desc.kernel = two;
            ptowsp_task_make(m, &desc);
        }
    }
}

static ptowsp_status execute(fixture *f) {
    for (int i = 0; i < 4; i++) {
        test_bind(f->run, names[i], f->data[i]);
    }
    return ptowsp_run_execute(f->run, NULL);
}

// Everything, until something fails.
static ptowsp_status attempt(fixture *f) {
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f->memory};
    f->context = NULL;
    f->m = NULL;
    f->program = NULL;
    f->run = NULL;
    ptowsp_status status = ptowsp_context_create(&desc, &f->context);
    if (status == PTOWSP_OK) {
        status = ptowsp_module_create(f->context, NULL, &f->m);
    }
    if (status == PTOWSP_OK) {
        build(f->m);
        status = ptowsp_program_create(f->context, f->m, NULL, &f->program);
    }
    if (status == PTOWSP_OK) {
        ptowsp_kernel_stats stats;
        ptowsp_kernel kernel = {1};
        status = ptowsp_kernel_measure(f->m, kernel, NULL, &stats);
    }
    if (status == PTOWSP_OK) {
        status = ptowsp_run_create(f->context, f->program, &f->run);
    }
    return status == PTOWSP_OK ? execute(f) : status;
}

static void finish(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
    assert_int_equal(f->memory.live_blocks, 0);
    assert_int_equal(f->memory.live_bytes, 0);
}

static fixture *make_fixture(void) {
    fixture *f = (fixture *)calloc(1, sizeof(fixture));
    assert_non_null(f);
    for (int i = 0; i < 32 * 32; i++) {
        f->data[0][i] = (float)(i % 13) / 13;
        f->data[1][i] = (float)(i % 7) / 7;
        f->data[2][i] = 0.5f;
    }
    return f;
}

TEST(memory__every_allocation_may_fail) {
    fixture *f = make_fixture();
    assert_ok(attempt(f));
    finish(f);
    size_t count = f->memory.allocations;
    float *want = (float *)malloc(sizeof f->data[3]);
    assert_non_null(want);
    memcpy(want, f->data[3], sizeof f->data[3]);
    for (size_t i = 1; i <= count; i++) {
        f->memory.allocations = 0;
        f->memory.refuse_at = i;
        assert_int_equal(attempt(f), PTOWSP_OUT_OF_MEMORY);
        finish(f);
    }
    f->memory.allocations = 0;
    f->memory.refuse_at = count + 1;
    assert_ok(attempt(f));
    assert_memory_equal(want, f->data[3], sizeof f->data[3]);
    finish(f);
    print_message("%zu allocations\n", count);
    free(want);
    free(f);
}

// Instructions of bf16 become several, and those that take part of the columns are given copies: lists
// become so much longer that the room for them has to grow. Others between and so many before them
// decide which instruction finds it full.
static ptowsp_body *build_longer(ptowsp_module *m, int before, bool is_half) {
    ptowsp_body_desc desc = {.name = "longer"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F32, 8, 32);
    ptowsp_value half = ptowsp_tile_in(k, "half", PTOWSP_BF16, 8, 32);
    ptowsp_value out = ptowsp_tile_out(k, "out", PTOWSP_F32, 8, 10);
    ptowsp_value half_out = ptowsp_tile_out(k, "half_out", PTOWSP_BF16, 8, 32);
    for (int i = 0; i < before; i++) {
        a = ptowsp_tile_abs(ptowsp_tile_neg(a));
    }
    ptowsp_value part = ptowsp_tile_slice(a, 0, 0, 8, 20);
    ptowsp_value sum = ptowsp_tile_deinterleave(part, 1);
    for (int i = 0; i < 40; i++) {
        half = is_half ? ptowsp_tile_add(half, half) : half;
        sum = ptowsp_tile_add(sum, is_half ? sum : ptowsp_tile_deinterleave(part, (uint32_t)i % 2));
    }
    ptowsp_tile_store(out, sum);
    ptowsp_tile_store(half_out, half);
    return k;
}

TEST(memory__lists_may_lack_memory_wherever_they_are_full) {
    for (int round = 0; round < 16; round++) {
        bool is_done = false;
        for (size_t n = 1; !is_done; n++) {
            fixture f = {0};
            ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f.memory};
            assert_ok(ptowsp_context_create(&desc, &f.context));
            assert_ok(ptowsp_module_create(f.context, NULL, &f.m));
            ptowsp_body *k = build_longer(f.m, round / 2, round % 2);
            f.memory.refuse_at = f.memory.allocations + n;
            ptowsp_kernel_end(k);
            const ptowsp_error error = ptowsp_module_error(f.m);
            is_done = f.memory.allocations < f.memory.refuse_at;
            assert_int_equal(error.status, is_done ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY);
            assert_true(is_done || strstr(error.text, "out of memory"));
            ptowsp_module_destroy(f.m);
            ptowsp_context_destroy(f.context);
            assert_int_equal(f.memory.live_blocks, 0);
        }
    }
}

TEST(memory__running_again_allocates_nothing) {
    fixture *f = make_fixture();
    assert_ok(attempt(f));
    size_t count = f->memory.allocations, bytes = f->memory.live_bytes;
    assert_ok(execute(f));
    ptowsp_run_options options = {0};
    for (int model = 0; model < 3; model++) {
        options.cost.model = (ptowsp_model)model;
        options.mode = PTOWSP_RUN_EXECUTE;
        assert_ok(ptowsp_run_execute(f->run, &options));
        options.mode = PTOWSP_RUN_TIME_ONLY;
        assert_ok(ptowsp_run_execute(f->run, &options));
    }
    assert_int_equal(f->memory.allocations, count);
    assert_int_equal(f->memory.live_bytes, bytes);
    finish(f);
    free(f);
}

// What a run says that it holds is what it holds: UB, L1 and L0 among it.
TEST(memory__a_run_counts_its_memories) {
    fixture *f = make_fixture();
    assert_ok(attempt(f));
    size_t with = f->memory.live_bytes, said = ptowsp_run_result(f->run)->memory_bytes;
    ptowsp_run_destroy(f->run);
    f->run = NULL;
    assert_int_equal(with - f->memory.live_bytes, said);
    finish(f);
    free(f);
}

TEST(memory__a_program_outlives_its_module) {
    fixture *f = make_fixture();
    assert_ok(attempt(f));
    float want = f->data[3][77];
    ptowsp_module_destroy(f->m);
    f->m = NULL;
    memset(f->data[3], 0, sizeof f->data[3]);
    assert_ok(execute(f));
    assert_true(f->data[3][77] == want && want != 0);
    ptowsp_run_destroy(f->run);
    assert_ok(ptowsp_run_create(f->context, f->program, &f->run));
    f->data[3][77] = 0;
    assert_ok(execute(f));
    assert_true(f->data[3][77] == want);
    finish(f);
    free(f);
}

// A kernel that was never ended, and one that failed, are freed with their module.
TEST(memory__bodies_die_with_their_module) {
    for (int which = 0; which < 2; which++) {
        fixture *f = make_fixture();
        assert_ok(attempt(f));
        ptowsp_body_desc desc = {.name = "late"};
        ptowsp_body *k = ptowsp_kernel_begin(f->m, &desc);
        ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 8);
        for (int i = 0; i < 300; i++) {
            x = ptowsp_tile_exp(x);
        }
        if (which) {
            assert_int_equal(ptowsp_kernel_end(k).id, 0);
            assert_string_equal(ptowsp_module_error(f->m).text,
                                "module: kernel late: store: nothing is stored");
        }
        finish(f);
        free(f);
    }
}
