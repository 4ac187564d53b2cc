// A tree whose tasks loop over ranges of their own lengths, on several AICPU threads and under each
// model, beside ptowsp_run_execute.

#include "npu_cache.h"
#include "npu_fixture.h"

enum { TASKS = 7, GROUP = 8, DIM = 16, CACHE = 64 };

typedef struct fixture {
    npu_fixture f;
    ptowsp_run *run;
    ptowsp_npu *npu;
    int32_t lengths[TASKS];
    float q[TASKS * GROUP * DIM], k[TASKS * CACHE * DIM], v[TASKS * CACHE * DIM];
    float out[TASKS * GROUP * DIM];
} fixture;

// out = the sum over tokens t < length of exp(q k_t) v_t.
static const char module[] =
    "module loops slots 8\n"
    "axis tasks 7\n"
    "array lengths i32\n"
    "tensor q f32 [56, 16] global\n"
    "tensor k f32 [16, 448] global\n"
    "tensor v f32 [448, 16] global\n"
    "tensor out f32 [56, 16] global\n"
    "kernel weigh(axes 0, in q f32 8 x 16, in k f32 16 x 64, in v f32 64 x 16, out out f32 8 x 16,"
    " length i64) mix, 90 instructions\n"
    "  machine \"910B\"\n"
    "  %1 = parameter q\n"
    "  %2 = parameter k\n"
    "  %3 = parameter v\n"
    "  %4 = parameter out\n"
    "  %5 = scalar length : i64\n"
    "  %6 = full 0 : f32 8 x 16\n"
    "  %7 = const 0\n"
    "  %8 = loop %7, %5, 16\n"
    "    %9 = carry %6 : f32 8 x 16\n"
    "    %10 = slice %2 at (0, %8) : f32 16 x 16\n"
    "    %11 = matmul %1, %10 : f32 8 x 16\n"
    "    %12 = slice %3 at (%8, 0) : f32 16 x 16\n"
    "    %13 = exp %11 : f32 8 x 16\n"
    "    %14 = matmul %13, %12 : f32 8 x 16\n"
    "    %15 = add %9, %14 : f32 8 x 16\n"
    "    next %9, %15\n"
    "  store %4, %9\n"
    "workload w\n"
    "  parallel i in tasks\n"
    "    task weigh() q = q at (i * 8, 0) k = k at (0, i * 64) v = v at (i * 64, 0)"
    " out = out at (i * 8, 0) length = lengths[i]\n";

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
    npu_parse(&t->f, module, NULL, 0);
    npu_fixture_compile(&t->f, NULL);
    assert_int_equal(ptowsp_run_create(t->f.context, t->f.program, &t->run), PTOWSP_OK);
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
