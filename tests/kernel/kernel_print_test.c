// Tile kernels as text with the cycles of a cost model. In the unit model they are in
// cases/kernel_lowering.case.

#include "test.h"

// The kernel as text with the cycles of a model.
static const char *print(ptowsp_module *m, ptowsp_kernel kernel, const ptowsp_cost *cost) {
    static char text[8192];
    text[0] = 0;
    ptowsp_kernel_print(m, kernel, cost, TEST_TEXT(text));
    return text;
}

// Chunks 8, 16 and 24 of 32 rows: a load of 7 cycles takes 21 in all, a product of 10 takes 30, a store
// of 5 takes 15. Flags take nothing.
static ptowsp_cycles user_cycles(const ptowsp_insn *insn, void *user) {
    (void)user;
    return strcmp(insn->name, "TLOAD") == 0    ? 7
           : strcmp(insn->name, "TMULS") == 0  ? 10
           : strcmp(insn->name, "TSTORE") == 0 ? 5
                                               : 0;
}

// The cycles of a pipe's instructions add up to all that it is busy. A barrier of all pipes, whose pipe
// is none, counts on the scalar pipe.
static void require_busy(ptowsp_module *m, ptowsp_kernel kernel, const ptowsp_cost *cost) {
    const char *text = print(m, kernel, cost);
    ptowsp_kernel_stats stats;
    assert_ok(ptowsp_kernel_measure(m, kernel, cost, &stats));
    char total[64];
    snprintf(total, sizeof total, ": %llu until the last has ended\n",
             (unsigned long long)stats.cycles);
    assert_non_null(strstr(text, total));
    ptowsp_cycles busy[PTOWSP_PIPE_COUNT] = {0};
    for (const char *line = text; (line = strchr(line, '\n')); line++) {
        unsigned i;
        char name[32], pipe[8];
        unsigned long long cycles;
        if (sscanf(line + 1, " %u %31s %7s %llu ", &i, name, pipe, &cycles) == 4) {
            for (int p = 0; p < PTOWSP_PIPE_COUNT; p++) {
                const char *of = strcmp(pipe, "none") == 0 ? "S" : pipe;
                busy[p] += strcmp(of, ptowsp_pipe_name((ptowsp_pipe)p)) == 0 ? cycles : 0;
            }
        }
    }
    assert_memory_equal(busy, stats.busy_cycles, sizeof busy);
}

TEST(print__cycles_of_a_model) {
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    const ptowsp_body_desc desc = {.name = "chunks"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 32, 8);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 32, 8);
    ptowsp_value first = ptowsp_tile_const(k, 8), end = ptowsp_tile_const(k, 32), none = {0};
    PTOWSP_TILE_LOOP(k, i, first, end, 8) {
        ptowsp_value part = ptowsp_tile_slice_at(x, i, none, 8, 8);
        ptowsp_tile_store_at(y, i, none, ptowsp_tile_mul(part, ptowsp_tile_const(k, 2)));
    }
    ptowsp_kernel kernel = ptowsp_kernel_end(k);
    assert_string_equal(ptowsp_module_error(m).text, "");
    static const ptowsp_model models[] = {PTOWSP_MODEL_UNIT, PTOWSP_MODEL_A2A3, PTOWSP_MODEL_A5,
                                          PTOWSP_MODEL_910B, PTOWSP_MODEL_950PR};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        require_busy(m, kernel, &(ptowsp_cost){.model = models[i]});
    }
    const ptowsp_cost user = {.model = PTOWSP_MODEL_USER, .fn = user_cycles};
    require_busy(m, kernel, &user);
    static const char *const lines[] = {
        "cycles of model USER in all iterations: ", "  TLOAD            MTE2       21  ",
        "  TMULS            V          30  ", "  TSTORE           MTE3       15  "};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_non_null(strstr(print(m, kernel, &user), lines[i]));
    }
    const ptowsp_cost empty = {.model = PTOWSP_MODEL_USER};  // a model without its function
    assert_string_equal(print(m, kernel, &empty), "");
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}
