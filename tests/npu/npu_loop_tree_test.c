// A tree whose tasks loop over ranges of their own lengths, on several AICPU threads and under each
// model, beside ptowsp_run_execute.

#include "npu_cache.h"
#include "npu_fixture.h"

enum { TASKS = 7, GROUP = 8, DIM = 16, CACHE = 64, CHUNK = 16 };

typedef struct fixture {
    npu_fixture f;
    ptowsp_run *run;
    ptowsp_npu *npu;
    int32_t lengths[TASKS];
    float q[TASKS * GROUP * DIM], k[TASKS * CACHE * DIM], v[TASKS * CACHE * DIM];
    float out[TASKS * GROUP * DIM];
} fixture;

// out = the sum over tokens t < length of exp(q k_t) v_t.
static ptowsp_kernel kernel_make(const fixture *t) {
    ptowsp_body_desc desc = {.name = "weigh"};
    ptowsp_body *k = ptowsp_kernel_begin(t->f.m, &desc);
    ptowsp_value query = ptowsp_tile_in(k, "q", PTOWSP_F32, GROUP, DIM);
    ptowsp_value keys = ptowsp_tile_in(k, "k", PTOWSP_F32, DIM, CACHE);
    ptowsp_value values = ptowsp_tile_in(k, "v", PTOWSP_F32, CACHE, DIM);
    ptowsp_value out = ptowsp_tile_out(k, "out", PTOWSP_F32, GROUP, DIM);
    ptowsp_value length = ptowsp_tile_scalar(k, "length", PTOWSP_I64);
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, GROUP, DIM, 0);
    ptowsp_value none = {NULL, 0}, sum = none;
    PTOWSP_TILE_LOOP(k, i, ptowsp_tile_const(k, 0), length, CHUNK) {
        sum = ptowsp_tile_carry(zero);
        ptowsp_value scores =
            ptowsp_tile_matmul(query, ptowsp_tile_slice_at(keys, none, i, DIM, CHUNK));
        ptowsp_value part = ptowsp_tile_matmul(ptowsp_tile_exp(scores),
                                               ptowsp_tile_slice_at(values, i, none, CHUNK, DIM));
        ptowsp_tile_next(sum, ptowsp_tile_add(sum, part));
    }
    ptowsp_tile_store(out, sum);
    return ptowsp_kernel_end(k);
}

static ptowsp_tensor tensor_make(const fixture *t, const char *name, int64_t rows, int64_t cols) {
    ptowsp_tensor_desc desc = {
        .name = name, .dtype = PTOWSP_F32, .rank = 2, .shape[0] = rows, .shape[1] = cols};
    return ptowsp_tensor_make(t->f.m, &desc);
}

static ptowsp_view view_of(const fixture *t, ptowsp_tensor tensor, ptowsp_expr i, int64_t rows,
                           int64_t cols) {
    ptowsp_view view = {.tensor = tensor, .row = ptowsp_mul(i, ptowsp_i64(t->f.m, rows))};
    view.col = ptowsp_mul(i, ptowsp_i64(t->f.m, cols));
    return view;
}

static void bind(fixture *t) {
    static const char *const names[] = {"q", "k", "v", "out"};
    float *data[] = {t->q, t->k, t->v, t->out};
    for (int i = 0; i < 4; i++) {
        ptowsp_buffer buffer = {.data = data[i],
                                .rank = 2,
                                .shape[0] = i == 1 ? DIM : TASKS * (i == 2 ? CACHE : GROUP),
                                .shape[1] = i == 1 ? TASKS * CACHE : DIM};
        assert_int_equal(ptowsp_run_bind_tensor(t->run, names[i], &buffer), PTOWSP_OK);
    }
    assert_int_equal(ptowsp_run_bind_array(t->run, "lengths", PTOWSP_I32, t->lengths, TASKS),
                     PTOWSP_OK);
}

static void make(fixture *t) {
    memset(t, 0, sizeof *t);
    npu_fixture_begin(&t->f);
    npu_module_make(&t->f, "loops");
    ptowsp_task_desc task = {.kernel = kernel_make(t)};
    ptowsp_tensor q = tensor_make(t, "q", TASKS * GROUP, DIM);
    ptowsp_tensor k = tensor_make(t, "k", DIM, TASKS * CACHE);
    ptowsp_tensor v = tensor_make(t, "v", TASKS * CACHE, DIM);
    ptowsp_tensor out = tensor_make(t, "out", TASKS * GROUP, DIM);
    ptowsp_axis tasks = ptowsp_axis_dense(t->f.m, "tasks", TASKS);
    PTOWSP_WORKLOAD(t->f.m, "w") {
        PTOWSP_PARALLEL(t->f.m, i, tasks) {
            task.views[0] = view_of(t, q, i, GROUP, 0);
            task.views[1] = view_of(t, k, i, 0, CACHE);
            task.views[2] = view_of(t, v, i, CACHE, 0);
            task.views[3] = view_of(t, out, i, GROUP, 0);
            task.scalars[0] = ptowsp_array_at(t->f.m, "lengths", PTOWSP_I32, i);
            ptowsp_task_make(t->f.m, &task);
        }
    }
    npu_fixture_compile(&t->f, NULL);
    assert_int_equal(ptowsp_run_create(t->f.context, t->f.program, &t->run), PTOWSP_OK);
    const ptowsp_npu_build_desc desc = {npu_cache, NULL, npu_cache_options()};
    if (ptowsp_npu_build(t->f.context, t->f.program, &desc, &t->npu) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(t->f.context).text);
    }
    uint64_t random = test_seed();
    for (int i = 0; i < TASKS * CACHE * DIM; i++) {
        t->k[i] = (float)test_random_in(&random, -8, 8) / 16;
        t->v[i] = (float)test_random_in(&random, -8, 8) / 16;
        t->q[i % (TASKS * GROUP * DIM)] = (float)test_random_in(&random, -8, 8) / 16;
    }
    bind(t);
}

SUITE_AROUND(npu_cache_begin, npu_cache_end)

TEST(tree__loops_as_often_as_each_task_says) {
    static fixture t;
    make(&t);
    // None, one, a part of one, all; the cache is longer than any but the last.
    static const int32_t lengths[TASKS] = {0, 16, 1, 33, 15, 48, 64};
    memcpy(t.lengths, lengths, sizeof lengths);
    for (int model = PTOWSP_MODEL_UNIT; model <= PTOWSP_MODEL_A2A3; model++) {
        ptowsp_run_options how = {.cost.model = (ptowsp_model)model};
        float wanted[TASKS * GROUP * DIM];
        assert_int_equal(ptowsp_run_execute(t.run, &how), PTOWSP_OK);
        memcpy(wanted, t.out, sizeof wanted);
        ptowsp_cycles cycles = ptowsp_run_result(t.run)->makespan_cycles;
        for (uint32_t i = 0; i < 4; i++) {
            ptowsp_npu_result result;
            ptowsp_npu_options options = {
                .aicpu_count = i + 1, .core_count = i % 3, .cost.model = (ptowsp_model)model};
            memset(t.out, 0xff, sizeof t.out);
            if (ptowsp_npu_execute(t.npu, t.run, &options, NULL, 0, &result) != PTOWSP_OK) {
                fail_msg("%s", ptowsp_context_error(t.f.context).text);
            }
            assert_memory_equal(t.out, wanted, sizeof wanted);
            assert_true(result.makespan_cycles == cycles);
        }
    }
    for (int i = 0; i < GROUP * DIM; i++) {
        assert_true(t.out[i] == 0);  // a request without tokens
    }
    t.lengths[3] = -1;
    ptowsp_npu_result result;
    assert_int_equal(ptowsp_run_execute(t.run, NULL), PTOWSP_INVALID_PARAMS);
    assert_non_null(
        strstr(ptowsp_context_error(t.f.context).text, "kernel weigh: loop 1 goes from 0 to -1"));
    assert_int_equal(ptowsp_npu_execute(t.npu, t.run, NULL, NULL, 0, &result),
                     PTOWSP_INVALID_PARAMS);
    assert_non_null(strstr(ptowsp_context_error(t.f.context).text,
                           "loop 1: its bounds are out of order, or it runs too often"));
    ptowsp_npu_destroy(t.npu);
    ptowsp_run_destroy(t.run);
    npu_fixture_free(&t.f);
}
