// One task of a kernel, measured on the shim: a PTO-ISA source that executes the instructions of a tile
// kernel takes the cycles that the library has for that one, pipe by pipe, under every model and with
// times of one's own; what does not go together is refused.

#include "npu_cache.h"
#include "npu_fixture.h"
#include "npu_texts.h"

#include "facts.h"

#include <math.h>

enum { M = 64, K = 128, N = 64, SLOTS = 2 * M * N };

typedef enum which { SOFTMAX, GEMM, GEMM_EXP, KIND_COUNT } which;

static const char *const own_names[] = {"softmax_own", "gemm_own", "gemm_exp_own"};
static const char *const tile_names[] = {"softmax_tiles", "gemm_tiles", "gemm_exp_tiles"};

typedef struct program {
    npu_fixture f;
    ptowsp_family family;
    ptowsp_npu *npu;
} program;

static float x[M * K], y[M * K], c[M * N], slots[SLOTS];
static uint16_t a[M * K], b[K * N];

// -- the kernels, as tile operations and as sources -----------------------------------------------

static void program_begin(program *p, ptowsp_family family) {
    ptowsp_pto_source softmax = {.include_dirs[0] = "tests/npu/own",
                                 .entry = "softmax",
                                 .family = family,
                                 .args = {{PTOWSP_PTO_DATA, 0, 0},
                                          {PTOWSP_PTO_DATA, 1, 0},
                                          {PTOWSP_PTO_ROWS, 1, 0},
                                          {PTOWSP_PTO_COLS, 1, 0},
                                          {PTOWSP_PTO_ROW_STRIDE, 1, 0}}};
    const ptowsp_pto_source gemm = {.file = "tests/npu/own/gemm.hpp",
                                    .entry = "gemm",
                                    .family = family,
                                    .args = {{PTOWSP_PTO_DATA, 0, 0},
                                             {PTOWSP_PTO_DATA, 1, 0},
                                             {PTOWSP_PTO_DATA, 2, 0},
                                             {PTOWSP_PTO_ROWS, 1, 0},
                                             {PTOWSP_PTO_COLS, 1, 0},
                                             {PTOWSP_PTO_COLS, 2, 0}}};
    const ptowsp_pto_source gemm_exp = {
        .text = "#define GEMM_IS_MIXED\n#include \"gemm.hpp\"\n// gemm_exp\n",
        .include_dirs[0] = "tests/npu/own",
        .entry = "gemm_exp",
        .family = family,
        .is_mixed = true,
        .args = {{PTOWSP_PTO_NUMBER, 0, 0},  // flags between cores
                 {PTOWSP_PTO_DATA, 3, 0},
                 {PTOWSP_PTO_DATA, 0, 0},
                 {PTOWSP_PTO_DATA, 1, 0},
                 {PTOWSP_PTO_DATA, 2, 0},
                 {PTOWSP_PTO_ROWS, 1, 0},
                 {PTOWSP_PTO_COLS, 1, 0},
                 {PTOWSP_PTO_COLS, 2, 0}}};
    // Sets a flag that nobody waits for.
    const ptowsp_pto_source broken = {
        .text = "#include <pto/pto-inst.hpp>\n"
                "void broken(float *, float *) { set_flag(PIPE_V, PIPE_MTE3, EVENT_ID3); }\n",
        .family = family};
    if (family == PTOWSP_FAMILY_A2A3) {
        softmax.file = "tests/npu/own/softmax.cpp";
    } else {
        softmax.text = "#define SOFTMAX_IS_A5\n#include \"softmax.cpp\"\n";
    }
    const ptowsp_parse_kernel kernels[] = {NPU_SCALE_KERNEL("native"),
                                           {.name = "softmax_own", .pto = &softmax},
                                           {.name = "gemm_own", .pto = &gemm},
                                           {.name = "gemm_exp_own", .pto = &gemm_exp},
                                           {.name = "broken", .pto = &broken}};
    const ptowsp_npu_build_desc desc = {npu_cache, NULL,
                                        npu_cache_options_for(family == PTOWSP_FAMILY_A5)};
    memset(p, 0, sizeof *p);
    p->family = family;
    npu_fixture_begin(&p->f);
    npu_parse(&p->f, npu_module(family == PTOWSP_FAMILY_A5 ? "measured_a5" : "measured"), kernels,
              5);
    npu_fixture_compile(&p->f, NULL);
    test_ok(p->f.context, ptowsp_npu_build(p->f.context, p->f.program, &desc, &p->npu));
}

static void program_end(program *p) {
    ptowsp_npu_destroy(p->npu);
    npu_fixture_free(&p->f);
}

// -- tasks ----------------------------------------------------------------------------------------

typedef struct task {
    uint64_t args[8];
    ptowsp_tile tiles[4];
    ptowsp_task of;
} task;

// A task with all rows and columns, in the order of the kernel's parameters.
static void task_begin(task *t, which kind, bool is_own) {
    const uint64_t softmax[] = {M, K, M, K}, gemm[] = {M, N, M, K, K, N, 1, SLOTS};
    const ptowsp_tile softmax_tiles[] = {{y, K, 1}, {x, K, 1}};
    const ptowsp_tile gemm_tiles[] = {{c, N, 1}, {a, K, 1}, {b, N, 1}, {slots, SLOTS, 1}};
    memset(t, 0, sizeof *t);
    t->of.tile_count = kind == SOFTMAX ? 2 : kind == GEMM_EXP && is_own ? 4 : 3;
    t->of.arg_count = t->of.axis_arg_count = 2 * t->of.tile_count;
    memcpy(t->args, kind == SOFTMAX ? softmax : gemm, 8 * t->of.arg_count);
    memcpy(t->tiles, kind == SOFTMAX ? softmax_tiles : gemm_tiles,
           t->of.tile_count * sizeof t->tiles[0]);
    t->of.args = t->args;
    t->of.tiles = t->tiles;
}

// n / 64 as f16, for n of 32 to 63: 2^-1 to 2^0 in steps that f16 has.
static uint16_t half_of(uint32_t n) {
    return (uint16_t)(0x3800 | (n - 32) << 5);
}

static void data_fill(void) {
    uint32_t state = 3;
    for (int i = 0; i < M * K; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / (1 << 22);
        a[i] = half_of(32 + (state >> 20) % 32);
        b[i] = half_of(32 + (state >> 12) % 32);
    }
}

// Both outputs against double precision.
static void data_check(which kind) {
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < (kind == SOFTMAX ? K : N); j++) {
            double wanted = 0, sum = 0;
            if (kind == SOFTMAX) {
                for (int n = 0; n < K; n++) {
                    sum += exp((double)x[i * K + n]);
                }
                wanted = exp((double)x[i * K + j]) / sum;
                assert_true(fabs(y[i * K + j] - wanted) <= 1e-6 * wanted);
                continue;
            }
            for (int n = 0; n < K; n++) {
                wanted +=
                    (32 + (a[i * K + n] >> 5 & 31)) / 64.0 * (32 + (b[n * N + j] >> 5 & 31)) / 64.0;
            }
            wanted = kind == GEMM ? wanted : exp(wanted);
            const float got = c[i * N + j];
            assert_true(got == wanted || fabs(got - wanted) <= 1e-5 * wanted ||
                        (isinf(got) && wanted > 3.4e38));
        }
    }
}

// -- what is measured -----------------------------------------------------------------------------

static ptowsp_kernel_stats measured(program *p, const char *kernel, which kind, bool is_own,
                                    const ptowsp_cost *cost) {
    ptowsp_kernel_stats stats;
    task t;
    task_begin(&t, kind, is_own);
    memset(&stats, 0xff, sizeof stats);
    memset(kind == SOFTMAX ? y : c, 0xff, kind == SOFTMAX ? sizeof y : sizeof c);
    test_ok(p->f.context, ptowsp_npu_measure(p->npu, kernel, &t.of, cost, &stats));
    data_check(kind);
    for (int i = 0; i < PTOWSP_MEMORY_COUNT; i++) {
        assert_int_equal(stats.memory_bytes[i], 0);
    }
    assert_int_equal(stats.insn_count, 0);
    return stats;
}

// The unit model does not count what a half takes out of a FIFO where the library made that: 64 x 64
// elements on MTE2. It counts it in a source.
static void stats_check(const ptowsp_kernel_stats *is, const ptowsp_kernel_stats *wanted,
                        ptowsp_cycles popped) {
    assert_true(wanted->cycles > 0);
    assert_int_equal(is->cycles, wanted->cycles + popped);
    for (int i = 0; i < PTOWSP_PIPE_COUNT; i++) {
        assert_int_equal(is->busy_cycles[i],
                         wanted->busy_cycles[i] + (i == PTOWSP_PIPE_MTE2 ? popped : 0));
    }
}

static void measured_under(program *p, const ptowsp_cost *cost) {
    const int kinds = p->family == PTOWSP_FAMILY_A5 ? GEMM_EXP : KIND_COUNT;
    for (int i = 0; i < kinds; i++) {
        ptowsp_kernel_stats wanted;
        const ptowsp_kernel kernel = {3 + 2 * (uint32_t)i};  // as the text has them
        assert_ok(ptowsp_kernel_measure(p->f.m, kernel, cost, &wanted));
        ptowsp_kernel_stats tiles = measured(p, tile_names[i], (which)i, false, cost);
        ptowsp_kernel_stats own = measured(p, own_names[i], (which)i, true, cost);
        bool is_unit = !cost || cost->model == PTOWSP_MODEL_UNIT;
        stats_check(&tiles, &wanted, 0);
        stats_check(&own, &wanted, i == GEMM_EXP && is_unit ? M * N : 0);
    }
}

SUITE_AROUND(npu_cache_begin, npu_cache_end)

TEST(measure__a_source_takes_the_cycles_of_the_tile_kernel_that_does_the_same) {
    data_fill();
    for (int family = 0; family < 2; family++) {
        program p;
        program_begin(&p, (ptowsp_family)family);
        measured_under(&p, NULL);
        for (int model = 0; model <= PTOWSP_MODEL_950PR; model++) {
            ptowsp_cost cost = {.model = (ptowsp_model)model};
            if (model == PTOWSP_MODEL_USER) {
                continue;
            }
            measured_under(&p, &cost);
            ptowsp_core_timing timing = ptowsp_core_timing_of(cost.model);
            if (timing.clock_mhz) {  // of one's own: another clock, another rate, a mechanism less
                timing.clock_mhz = 1500;
                timing.paths[PTOWSP_PATH_GM_TO_UB].rate *= 2;
                timing.paths[PTOWSP_PATH_GM_TO_L1].latency += 1000;
                timing.without ^= 1u << PTOWSP_MECHANISM_BURSTS;
                cost.timing = &timing;
                measured_under(&p, &cost);
                cost.timing = NULL;
                measured_under(&p, &cost);  // as before: nothing is left of it
            }
        }
        program_end(&p);
    }
}

// A task at an edge: fewer rows and columns are loaded, computed and stored, in less time.
TEST(measure__valid_sizes_are_those_of_the_task) {
    program p;
    data_fill();
    program_begin(&p, PTOWSP_FAMILY_A2A3);
    const ptowsp_cost cost = {PTOWSP_MODEL_UNIT, NULL, NULL, NULL};
    for (int is_own = 0; is_own < 2; is_own++) {
        ptowsp_kernel_stats stats;
        task t;
        task_begin(&t, SOFTMAX, is_own);
        t.args[0] = t.args[2] = 5;
        t.args[1] = t.args[3] = 32;
        y[5 * K] = -1;
        assert_ok(
            ptowsp_npu_measure(p.npu, is_own ? own_names[0] : tile_names[0], &t.of, &cost, &stats));
        // Load, difference, exp, quotient and store of 5 x 32; maximum and sum of 5 rows.
        assert_int_equal(stats.cycles, 5 * 5 * 32 + 2 * 5);
        assert_true(y[5 * K] == -1);
    }
    program_end(&p);
}

// -- what is refused ------------------------------------------------------------------------------

static ptowsp_cycles one_cycle(const ptowsp_insn *insn, void *user) {
    (void)insn;
    (void)user;
    return 1;
}

static struct {
    program p;
    task t;
    ptowsp_cost cost;
    ptowsp_core_timing timing;
    uint32_t kernel;
    bool has_task, has_stats, has_args, has_tiles, has_data, has_fn, has_timing;
} fact;

static void begin(void) {
    task_begin(&fact.t, SOFTMAX, true);
    memset(&fact.cost, 0, sizeof fact.cost);
    fact.timing = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    fact.kernel = 0;
    fact.has_task = fact.has_stats = fact.has_args = fact.has_tiles = fact.has_data = true;
    fact.has_fn = fact.has_timing = false;
}

static const facts_field *fields(void) {
    FACTS_RETURN(
        FACTS_OF("kernel", fact.kernel, 4, 1), FACTS_OF("tile_count", fact.t.of.tile_count, 4, 1),
        FACTS_OF("user_axis_count", fact.t.of.user_axis_count, 4, 1),
        FACTS_OF("arg_count", fact.t.of.arg_count, 4, 1),
        FACTS_OF("axis_arg_count", fact.t.of.axis_arg_count, 4, 1),
        FACTS_OF("args", fact.t.args[0], 8, 4), FACTS_OF("model", fact.cost.model, 4, 1),
        FACTS_OF("clock_mhz", fact.timing.clock_mhz, 4, 1),
        FACTS_OF("has_task", fact.has_task, 1, 1), FACTS_OF("has_stats", fact.has_stats, 1, 1),
        FACTS_OF("has_args", fact.has_args, 1, 1), FACTS_OF("has_tiles", fact.has_tiles, 1, 1),
        FACTS_OF("has_data", fact.has_data, 1, 1), FACTS_OF("has_fn", fact.has_fn, 1, 1),
        FACTS_OF("has_timing", fact.has_timing, 1, 1));
}

static ptowsp_status measure(void) {
    static const char *const names[] = {"softmax_own", "softmax_tiles", "native",
                                        "broken",      "other",         NULL};
    ptowsp_kernel_stats stats;
    fact.t.of.args = fact.has_args ? fact.t.args : NULL;
    fact.t.of.tiles = fact.has_tiles ? fact.t.tiles : NULL;
    fact.t.tiles[1].data = fact.has_data ? x : NULL;
    fact.cost.fn = fact.has_fn ? one_cycle : NULL;
    fact.cost.timing = fact.has_timing ? &fact.timing : NULL;
    return ptowsp_npu_measure(fact.p.npu, names[fact.kernel], fact.has_task ? &fact.t.of : NULL,
                              &fact.cost, fact.has_stats ? &stats : NULL);
}

static const char *error(uint64_t *out_index) {
    const ptowsp_error said = ptowsp_context_error(fact.p.f.context);
    *out_index = said.index;
    return said.text;
}

TEST(measure__what_does_not_go_together_is_refused) {
    static const facts_call calls[] = {{"measure", measure}, {NULL, NULL}};
    facts all = {"tests/npu/measures.facts", begin, fields, calls, error, NULL, 0};
    data_fill();
    program_begin(&fact.p, PTOWSP_FAMILY_A2A3);
    facts_run(&all);
    program_end(&fact.p);
}

CONTEXT_TEST(cost__is_checked_as_functions_that_take_one_do) {
    ptowsp_cost cost = {0};
    assert_ok(ptowsp_cost_check(context, NULL));
    for (int model = 0; model <= PTOWSP_MODEL_950PR; model++) {
        cost.model = (ptowsp_model)model;
        assert_int_equal(ptowsp_cost_check(context, &cost),
                         model == PTOWSP_MODEL_USER ? PTOWSP_INVALID_PARAMS : PTOWSP_OK);
    }
    ptowsp_core_timing timing = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    cost.timing = &timing;
    test_invalid(context, ptowsp_cost_check(context, &cost),
                 "cost: timing: family 0 does not belong to cost model 5");
}
