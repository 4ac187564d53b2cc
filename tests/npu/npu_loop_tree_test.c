// A tree whose tasks loop over ranges of their own lengths, on several AICPU threads and under each
// model, beside ptowsp_run_execute.

#include "npu_cache.h"
#include "npu_fixture.h"
#include "npu_texts.h"

enum { TASKS = 7, GROUP = 8, DIM = 16, CACHE = 64 };

typedef struct fixture {
    npu_fixture f;
    ptowsp_run *run;
    ptowsp_npu *npu;
    int32_t lengths[TASKS];
    float q[TASKS * GROUP * DIM], k[TASKS * CACHE * DIM], v[TASKS * CACHE * DIM];
    float out[TASKS * GROUP * DIM];
} fixture;

static void bind(fixture *t) {
    static const char *const names[] = {"q", "k", "v", "out"};
    float *data[] = {t->q, t->k, t->v, t->out};
    for (int i = 0; i < 4; i++) {
        ptowsp_buffer buffer = {.data = data[i],
                                .rank = 2,
                                .shape[0] = i == 1 ? DIM : TASKS * (i == 2 ? CACHE : GROUP),
                                .shape[1] = i == 1 ? TASKS * CACHE : DIM};
        assert_ok(ptowsp_run_bind_tensor(t->run, names[i], &buffer));
    }
    assert_ok(ptowsp_run_bind_array(t->run, "lengths", PTOWSP_I32, t->lengths, TASKS));
}

static void make(fixture *t) {
    memset(t, 0, sizeof *t);
    npu_fixture_begin(&t->f);
    npu_parse(&t->f, npu_module("loops"), NULL, 0);
    npu_fixture_compile(&t->f, NULL);
    assert_ok(ptowsp_run_create(t->f.context, t->f.program, &t->run));
    t->npu = npu_cache_build(t->f.context, t->f.program);
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
        assert_ok(ptowsp_run_execute(t.run, &how));
        memcpy(wanted, t.out, sizeof wanted);
        ptowsp_cycles cycles = ptowsp_run_result(t.run)->makespan_cycles;
        for (uint32_t i = 0; i < 4; i++) {
            ptowsp_npu_result result;
            ptowsp_npu_options options = {
                .aicpu_count = i + 1, .core_count = i % 3, .cost.model = (ptowsp_model)model};
            memset(t.out, 0xff, sizeof t.out);
            test_ok(t.f.context, ptowsp_npu_execute(t.npu, t.run, &options, NULL, 0, &result));
            assert_memory_equal(t.out, wanted, sizeof wanted);
            assert_true(result.makespan_cycles == cycles);
        }
    }
    for (int i = 0; i < GROUP * DIM; i++) {
        assert_true(t.out[i] == 0);  // a request without tokens
    }
    t.lengths[3] = -1;
    ptowsp_npu_result result;
    assert_invalid(ptowsp_run_execute(t.run, NULL));
    assert_non_null(
        strstr(ptowsp_context_error(t.f.context).text, "kernel weigh: loop 1 goes from 0 to -1"));
    assert_invalid(ptowsp_npu_execute(t.npu, t.run, NULL, NULL, 0, &result));
    assert_non_null(strstr(ptowsp_context_error(t.f.context).text,
                           "loop 1: its bounds are out of order, or it runs too often"));
    ptowsp_npu_destroy(t.npu);
    ptowsp_run_destroy(t.run);
    npu_fixture_free(&t.f);
}
