// What decides which tokens are sent: searching the orders of a pipeline evaluates just that, through
// choices, arrays, slots that are loaded, rows of axes and calls. How many tokens there are is counted
// on paper for each binding; one more than the receiver takes gets the pipeline stuck.

#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t t[2][4][4], flag[2], lengths[2];
} fixture;

static const char text[] = "module m slots 4\n"
                           "axis n 2\n"
                           "axis kv ragged i32\n"
                           "array flag i32\n"
                           "tensor t i32 [2, 4, 4] global\n"
                           "kernel w(axes 1) vector, 3 cycles, time only\n"
                           "workload part(a i64)\n"
                           "  task w(a)\n"
                           "workload main\n"
                           "  slot_set 2 = 2u\n"
                           "  slot_set 3 = 1u\n"
                           "  slot_load 1 = t[slot_i64[3]] at (slot_i64[2], slot_i64[3]) up to "
                           "slot_i64[2] rows of edge x 2 "
                           "element (0, slot_i64[3] - 1)\n"
                           "  pipeline p\n"
                           "    channel c depth 0 latency 0\n"
                           "    process a produces c\n"
                           "      for_each i in n\n"
                           "        for_each j in kv[i]\n"
                           "          when (i > 0 ? 1 : slot_i64[1]) == 1\n"
                           "            when i == 0 || flag[j] == 1\n"
                           "              send c(j + i64(flag[0]))\n"
                           "      call part(i64(flag[1]))\n"
                           "    process b consumes c\n"
                           "      for_each k in n\n"
                           "        receive x from c\n"
                           "          task w(x)\n";

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    *state = &f;
    if (ptowsp_context_create(NULL, &f.context) != PTOWSP_OK ||
        ptowsp_module_parse(f.context, text, sizeof text - 1, NULL, &f.module, NULL) != PTOWSP_OK ||
        ptowsp_program_create(f.context, f.module, NULL, &f.program) != PTOWSP_OK ||
        ptowsp_run_create(f.context, f.program, &f.run) != PTOWSP_OK) {
        print_error("%s\n", ptowsp_context_error(f.context).text);
        return 1;
    }
    ptowsp_buffer buffer = {.data = f.t};
    return ptowsp_run_bind_tensor(f.run, "t", &buffer) != PTOWSP_OK ||
           ptowsp_run_bind_array(f.run, "flag", PTOWSP_I32, f.flag, 2) != PTOWSP_OK;
}

static int teardown(void **state) {
    fixture *f = (fixture *)*state;
    test_destroy(f->run, f->program, f->module, f->context);
    return 0;
}

TEST_F(control__decides_how_many_tokens_there_are) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    // Tokens: of row 0, its length if the loaded element is 1; of row 1, those of its elements whose
    // flag is 1. Two are received, and nothing else takes one.
    static const struct {
        int32_t loaded, flag[2], lengths[2];
        uint32_t tokens;
    } cases[] = {{1, {1, 1}, {1, 2}, 3}, {1, {1, 0}, {1, 2}, 2}, {0, {1, 1}, {1, 2}, 2},
                 {0, {1, 1}, {5, 2}, 2}, {1, {0, 0}, {2, 2}, 2}, {1, {0, 0}, {3, 2}, 3},
                 {1, {1, 1}, {1, 1}, 2}, {1, {0, 1}, {1, 2}, 2}, {1, {0, 1}, {2, 2}, 3}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f->t[1][2][1] = cases[i].loaded;
        memcpy(f->flag, cases[i].flag, sizeof f->flag);
        memcpy(f->lengths, cases[i].lengths, sizeof f->lengths);
        assert_ok(ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I32, f->lengths, 2));
        const ptowsp_status expected = cases[i].tokens > 2 ? PTOWSP_STUCK : PTOWSP_OK;
        ptowsp_explore_stats stats;
        if (ptowsp_run_explore(f->run, NULL, &stats) != expected) {
            fail_msg("case %u: %s", i, ptowsp_context_error(f->context).text);
        }
        // With times it is the same.
        assert_int_equal(ptowsp_run_execute(f->run, &options), expected);
    }
}
