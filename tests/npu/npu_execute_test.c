// Running built trees from the program that has built them, with a real compiler, beside
// ptowsp_run_execute: outputs, cycles and slots; what is bound changes without a rebuild. Errors are in
// npu_error_test.c.

#include "npu_cache.h"
#include "npu_fixture.h"
#include "npu_texts.h"

enum { ROWS_MAX = 64, COLS = 8 };

// clang-format off
PTOWSP_SOURCE(kernels_source,

static ptowsp_cycles scale(const ptowsp_task *task, void *user) {
    const ptowsp_tile *x = &task->tiles[0];
    int64_t rows = ptowsp_task_rows(task, 0);
    int64_t cols = ptowsp_task_cols(task, 0);
    (void)user;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            ((int32_t *)x->data)[r * x->row_stride + c] *= (int32_t)ptowsp_task_scalar(task, 0);
        }
    }
    return 10 + (ptowsp_cycles)(rows * cols);
}

static ptowsp_cycles refuse(const ptowsp_task *task, void *user) {
    (void)user;
    return ptowsp_task_axis(task, 0) == 3 ? ptowsp_task_fail(PTOWSP_UNSUPPORTED_SIZE) : 5;
}
)
// clang-format on

typedef struct fixture {
    npu_fixture f;
    ptowsp_run *run;
    ptowsp_npu *npu;
    int32_t x[ROWS_MAX * COLS], before[ROWS_MAX * COLS];
    int32_t lengths[ROWS_MAX / 4];
    int64_t batch;
} fixture;

static void bind(fixture *t, int64_t batch, uint64_t factor, uint64_t limit, uint64_t slot) {
    ptowsp_buffer buffer = {.data = t->x, .rank = 2, .shape[0] = batch * 4, .shape[1] = COLS};
    t->batch = batch;
    for (int32_t i = 0; i < batch * 4 * COLS; i++) {
        t->before[i] = (int32_t)(i % 5 + 1 + (int32_t)slot);
    }
    for (int32_t i = 0; i < batch; i++) {
        t->lengths[i] = (i * 3 + (int32_t)slot) % 4;
    }
    assert_ok(ptowsp_run_bind_size(t->run, "batch", batch));
    assert_ok(ptowsp_run_bind_symbol(t->run, "factor", factor));
    assert_ok(ptowsp_run_bind_symbol(t->run, "limit", limit));
    assert_ok(ptowsp_run_bind_lengths(t->run, "times", PTOWSP_I32, t->lengths, (uint64_t)batch));
    assert_ok(ptowsp_run_bind_slot(t->run, 0, slot));
    assert_ok(ptowsp_run_bind_tensor(t->run, "x", &buffer));
}

static void make(fixture *t, const char *kernel, ptowsp_kernel_fn fn) {
    const ptowsp_parse_kernel attached = {.name = kernel, .fn = fn, .source.text = kernels_source};
    const char *text = textf(npu_module("work"), kernel, kernel, kernel, kernel);
    memset(t, 0, sizeof *t);
    npu_fixture_begin(&t->f);
    npu_parse(&t->f, text, &attached, 1);
    npu_fixture_compile(&t->f, NULL);
    assert_ok(ptowsp_run_create(t->f.context, t->f.program, &t->run));
    t->npu = npu_cache_build(t->f.context, t->f.program);
}

static void destroy(fixture *t) {
    ptowsp_npu_destroy(t->npu);
    ptowsp_run_destroy(t->run);
    npu_fixture_free(&t->f);
}

// Each task ran once, between two times; one after another on a core.
static void check_spans(const ptowsp_span *spans, uint64_t count, uint64_t before, uint64_t after) {
    for (uint64_t i = 0; i < 64; i++) {
        if (i >= count) {
            assert_int_equal(spans[i].end, 0);
            continue;
        }
        assert_true(before <= spans[i].begin && spans[i].begin <= spans[i].end);
        assert_true(spans[i].end <= after && spans[i].kind == 1 && spans[i].lane < 16);
        for (uint64_t j = 0; j < i; j++) {
            assert_true(spans[j].lane != spans[i].lane || spans[j].end <= spans[i].begin ||
                        spans[i].end <= spans[j].begin);
        }
    }
}

// Runs here and as the tree does, with several numbers of threads and rings; all must be equal.
static void is_equal(fixture *t) {
    int32_t wanted[ROWS_MAX * COLS];
    uint64_t slots[3];
    memcpy(t->x, t->before, sizeof t->x);
    assert_ok(ptowsp_run_execute(t->run, NULL));
    memcpy(wanted, t->x, sizeof wanted);
    const ptowsp_run_stats *stats = ptowsp_run_result(t->run);
    for (uint32_t i = 0; i < 8; i++) {
        ptowsp_npu_result result;
        ptowsp_npu_options options = {
            .aicpu_count = i % 4 + 1, .ring_size = i < 4 ? 2 : 0, .core_count = i % 3};
        ptowsp_span spans[64] = {0};
        options.spans = spans;
        options.span_capacity = 64;
        uint64_t before = ptowsp_clock_ns();
        memcpy(t->x, t->before, sizeof t->x);
        test_ok(t->f.context, ptowsp_npu_execute(t->npu, t->run, &options, slots, 3, &result));
        check_spans(spans, result.task_count, before, ptowsp_clock_ns());
        assert_memory_equal(t->x, wanted, sizeof wanted);
        assert_true(result.makespan_cycles == stats->makespan_cycles);
        assert_true(result.task_count == stats->task_count);
        assert_true(result.in_flight_max >= 1 && (i >= 4 || result.in_flight_max <= 2));
        for (uint32_t slot = 0; slot < 2; slot++) {
            assert_true(slots[slot] == ptowsp_run_slot(t->run, slot));
        }
        assert_true(slots[2] == 0);  // there is none
    }
}

SUITE_AROUND(npu_cache_begin, npu_cache_end)

TEST(execute__gives_what_the_library_gives_and_changes_need_no_rebuild) {
    fixture t;
    make(&t, "scale", scale);
    bind(&t, 5, 3, 2, 1);
    is_equal(&t);
    // On paper: tile 0 begins with 2, its length is 1 <= 2: 6; times slot 1, which is 6: 36; then
    // once by 0 + slot 0, which is 1.
    assert_int_equal(t.x[0], 36);
    bind(&t, 16, 2, 0, 2);
    is_equal(&t);
    bind(&t, 1, 7, 100, 3);
    is_equal(&t);
    const char *directory = textf("%s", ptowsp_npu_directory(t.npu));
    ptowsp_npu_destroy(t.npu);
    t.npu = npu_cache_build(t.f.context, t.f.program);
    assert_true(ptowsp_npu_was_cached(t.npu));
    assert_string_equal(ptowsp_npu_directory(t.npu), directory);
    is_equal(&t);
    destroy(&t);
}

TEST(execute__trees_run_side_by_side) {
    fixture one, other;
    make(&one, "scale", scale);
    make(&other, "refuse", refuse);
    bind(&one, 4, 2, 3, 1);
    bind(&other, 3, 2, 3, 1);
    assert_string_not_equal(ptowsp_npu_directory(one.npu), ptowsp_npu_directory(other.npu));
    for (int i = 0; i < 2; i++) {
        is_equal(&one);
        is_equal(&other);
    }
    ptowsp_npu *again = npu_cache_build(one.f.context, one.f.program);  // the same library, twice
    ptowsp_npu_destroy(one.npu);
    one.npu = again;
    is_equal(&one);
    destroy(&one);
    is_equal(&other);
    destroy(&other);
}

TEST(execute__checks_its_options_and_the_run) {
    fixture t, other;
    make(&t, "scale", scale);
    make(&other, "refuse", refuse);
    bind(&t, 2, 2, 2, 1);
    bind(&other, 2, 2, 2, 1);
    const ptowsp_core_timing timing = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    const ptowsp_npu_options wrong[] = {
        {.cost = {.model = PTOWSP_MODEL_910B, .timing = &timing}},
        {17, 0, 0, {.model = PTOWSP_MODEL_UNIT}, NULL, 0, PTOWSP_DRIVER_AICPU},
        {0, 73, 0, {.model = PTOWSP_MODEL_UNIT}, NULL, 0, PTOWSP_DRIVER_AICPU},
        {0, 0, UINT32_MAX, {.model = PTOWSP_MODEL_UNIT}, NULL, 0, PTOWSP_DRIVER_AICPU},
        {0, 0, 0, {.model = PTOWSP_MODEL_USER}, NULL, 0, PTOWSP_DRIVER_AICPU},
        {0, 0, 0, {.model = (ptowsp_model)77}, NULL, 0, PTOWSP_DRIVER_AICPU},
        {2, 0, 0, {.model = PTOWSP_MODEL_UNIT}, NULL, 0, PTOWSP_DRIVER_HOST},
        {0, 0, 0, {.model = PTOWSP_MODEL_UNIT}, NULL, 0, (ptowsp_npu_driver)2},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        memcpy(t.x, t.before, sizeof t.x);
        assert_invalid(ptowsp_npu_execute(t.npu, t.run, &wrong[i], NULL, 0, NULL));
        assert_memory_equal(t.x, t.before, sizeof t.x);
    }
    test_invalid(t.f.context, ptowsp_npu_execute(t.npu, other.run, NULL, NULL, 0, NULL),
                 "npu: the run is of another program than was built");
    assert_invalid(ptowsp_npu_execute(t.npu, NULL, NULL, NULL, 0, NULL));
    const ptowsp_npu_options most = {
        16, 72, 65536, {.model = PTOWSP_MODEL_A5}, NULL, 0, PTOWSP_DRIVER_AICPU};
    assert_ok(ptowsp_npu_execute(t.npu, t.run, &most, NULL, 0, NULL));
    destroy(&t);
    destroy(&other);
}

TEST(execute__build_run_does_it_all) {
    fixture t;
    make(&t, "scale", scale);
    bind(&t, 5, 3, 2, 1);
    const ptowsp_npu_build_desc desc = {npu_cache, NULL, npu_cache_options()};
    ptowsp_npu_result result;
    memcpy(t.x, t.before, sizeof t.x);
    assert_ok(ptowsp_npu_build_run(t.f.context, t.run, &desc, NULL, &result));
    assert_int_equal(t.x[0], 36);
    memcpy(t.x, t.before, sizeof t.x);
    assert_ok(ptowsp_run_execute(t.run, NULL));
    assert_true(result.makespan_cycles == ptowsp_run_result(t.run)->makespan_cycles);
    destroy(&t);
}
