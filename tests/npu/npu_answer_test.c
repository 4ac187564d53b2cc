// What the library of a tree answers: each of its functions may fail, and the error is the one that it
// tells. It is a stub here, which does nothing else.

#include "npu_build_fixture.h"

// WSP_FAILS in the environment is the function that fails.
static const char answers[] =
    "#include \"ptowsp.h\"\n#include <stdlib.h>\n#include <string.h>\n"
    "static ptowsp_status is(const char *name) {\n"
    "    const char *fails = getenv(\"WSP_FAILS\");\n"
    "    return fails && strcmp(fails, name) == 0 ? PTOWSP_INVALID_PARAMS : PTOWSP_OK;\n}\n"
    "static const char *said(void) { return getenv(\"WSP_FAILS\"); }\n"
    "ptowsp_status wsp_runner_create(void **out) {\n"
    "    *out = out;\n"
    "    return is(\"create\") == PTOWSP_OK ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY;\n}\n"
    "void wsp_runner_destroy(void *r) { (void)r; }\n"
    "ptowsp_status wsp_runner_bind(void *r, const ptowsp_binding *b, uint64_t count) {\n"
    "#define KIND(kind, name_of) #kind,\n"
    "    static const char *const kinds[] = {PTOWSP_BIND_KINDS(KIND)};\n"
    "    (void)r;\n    return count == 1 ? is(kinds[b->kind]) : PTOWSP_STUCK;\n}\n"
    "ptowsp_status wsp_runner_run(void *r) { (void)r; return is(\"run\"); }\n"
    "ptowsp_status wsp_runner_measure(void *r) { (void)r; return is(\"measure\"); }\n"
    "uint64_t wsp_runner_slot(void *r, uint32_t i) { (void)r; return 100 + i; }\n"
    "ptowsp_error wsp_runner_error(void *r) {\n"
    "    ptowsp_error e = {PTOWSP_INVALID_PARAMS, 7, 0};\n    (void)r;\n    e.text = said();\n"
    "    return e;\n}\n";

typedef struct answer {
    build b;
    ptowsp_run *run;
    float x[64];
    int32_t lengths[4];
} answer;

static void answer_begin(answer *a) {
    memset(a, 0, sizeof *a);
    build_make(&a->b);
    write_file(a->b.fake, "stub.c", answers);
    run_cc("-I. -shared -fPIC %s/stub.c -o %s/stub.so", a->b.fake, a->b.fake);
    const npu_fixture *f = &a->b.f;
    test_ok(f->context, ptowsp_npu_build(f->context, f->program, &a->b.desc, &a->b.npu));
    ptowsp_buffer buffer = {.data = a->x, .rank = 2};
    buffer.shape[0] = buffer.shape[1] = 8;
    assert_ok(ptowsp_run_create(f->context, f->program, &a->run));
    assert_ok(ptowsp_run_bind_size(a->run, "batch", 1));
    assert_ok(ptowsp_run_bind_symbol(a->run, "factor", 1));
    assert_ok(ptowsp_run_bind_array(a->run, "kv_len", PTOWSP_I32, a->lengths, 4));
    assert_ok(ptowsp_run_bind_tensor(a->run, "x", &buffer));
}

static void answer_end(answer *a) {
    ptowsp_run_destroy(a->run);
    build_free(&a->b);
}

#define ANSWER_TEST(name) TEST_MADE(name, answer, a, answer_begin(a), answer_end(a))

ANSWER_TEST(answer__the_error_of_any_function_is_the_runs) {
    static const char names[][18] = {"SIZE", "ARRAY",      "SYMBOL", "TENSOR",
                                     "SLOT", "TRANSIENTS", "run"};
    const npu_fixture *f = &a->b.f;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        uint64_t slots[2] = {0, 0};
        ptowsp_npu_result result;
        assert_int_equal(setenv("WSP_FAILS", names[i], 1), 0);
        test_refused(f->context, ptowsp_npu_execute(a->b.npu, a->run, NULL, slots, 2, &result),
                     PTOWSP_INVALID_PARAMS, 7, names[i]);
        assert_true(slots[0] == 100 && slots[1] == 101);
    }
    assert_int_equal(setenv("WSP_FAILS", "create", 1), 0);
    test_refused(f->context, ptowsp_npu_execute(a->b.npu, a->run, NULL, NULL, 0, NULL),
                 PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "npu: no memory for running");
    assert_int_equal(unsetenv("WSP_FAILS"), 0);
    assert_ok(ptowsp_npu_execute(a->b.npu, a->run, NULL, NULL, 0, NULL));
}

static ptowsp_cycles one_cycle(const ptowsp_insn *insn, void *user) {
    (void)insn;
    (void)user;
    return 1;
}

ANSWER_TEST(answer__costs_of_the_user_are_refused) {
    for (int i = 0; i < 2; i++) {
        ptowsp_npu_options options = {.cost.fn = i ? one_cycle : NULL,
                                      .cost.model = i ? PTOWSP_MODEL_UNIT : PTOWSP_MODEL_USER};
        test_invalid(a->b.f.context, ptowsp_npu_execute(a->b.npu, a->run, &options, NULL, 0, NULL),
                     "npu: a tree has no cost model of the user");
    }
}

// What cannot be built is not run.
ANSWER_TEST(answer__a_build_that_fails_runs_nothing) {
    mode(&a->b, "fail");
    a->b.desc.options = "-O6";
    ptowsp_npu_result result;
    assert_int_equal(ptowsp_npu_build_run(a->b.f.context, a->run, &a->b.desc, NULL, &result),
                     PTOWSP_SYSTEM_FAILED);
    const char *told = "npu: the compiler failed: a.cpp:2:3: error: no semicolon";
    assert_memory_equal(ptowsp_context_error(a->b.f.context).text, told, strlen(told));
}
