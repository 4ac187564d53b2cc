// Memory of tile kernels: any allocation may fail, from the first operation through lowering and
// compiling to running; running again allocates nothing; programs outlive their module.

#include "kernel_named.h"

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    float data[4][32 * 32];
} fixture;

static const char *const names[] = {"a", "b", "bias", "out"};

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
        const char *text = kernel_named("memory", kernel_no_words);
        status = ptowsp_module_parse(f->context, text, strlen(text), NULL, &f->m, NULL);
    }
    if (status == PTOWSP_OK) {
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
