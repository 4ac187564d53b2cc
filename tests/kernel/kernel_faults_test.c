// Mistakes of callers that texts of tile kernels cannot make, and what is said about them: values that are
// none or of others, numbers that no text has, kernels that are not ended. The mistakes of texts are in
// cases/kernel_faults.case, those of tasks in cases/tile_kernels.case.

#include "test.h"

// A kernel with some parameters, begun. Its body keeps its first error, hands it to the module when it
// ends, and everything after the error does nothing.
typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_body *k;
    ptowsp_value x, y, v, i;  // f32 8 x 16; the same; f32 1 x 16; i32 8 x 16
    ptowsp_value o, io, s;    // f32 8 x 16, out and inout; a scalar of f32
} fixture;

static const ptowsp_value none = {NULL, 0};

static void begin(fixture *f) {
    memset(f, 0, sizeof *f);
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f->memory};
    f->context = test_context(&desc);
    f->m = test_module(f->context, NULL);
    ptowsp_body_desc body = {.name = "k"};
    f->k = ptowsp_kernel_begin(f->m, &body);
    f->x = ptowsp_tile_in(f->k, "x", PTOWSP_F32, 8, 16);
    f->y = ptowsp_tile_in(f->k, "y", PTOWSP_F32, 8, 16);
    f->v = ptowsp_tile_in(f->k, "v", PTOWSP_F32, 1, 16);
    f->i = ptowsp_tile_in(f->k, "i", PTOWSP_I32, 8, 16);
    f->o = ptowsp_tile_out(f->k, "o", PTOWSP_F32, 8, 16);
    f->io = ptowsp_tile_inout(f->k, "io", PTOWSP_F32, 8, 16);
    f->s = ptowsp_tile_scalar(f->k, "s", PTOWSP_F32);
    assert_int_not_equal(f->s.id, 0);
}

static void finish(fixture *f) {
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
    assert_int_equal(f->memory.live_blocks, 0);
}

// The module has this error, and keeps it.
static void expect_module(fixture *f, ptowsp_status status, const char *text) {
    ptowsp_error error = ptowsp_module_error(f->m);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, status);
    ptowsp_body_desc desc = {.name = "other"};
    assert_null(ptowsp_kernel_begin(f->m, &desc));
    assert_string_equal(ptowsp_module_error(f->m).text, text);
    ptowsp_program *program = NULL;
    assert_int_equal(ptowsp_program_create(f->context, f->m, NULL, &program), status);
    assert_null(program);
    finish(f);
}

// The last call gave no value; the body's error is that. Everything else is quiet from now on.
static void expect(fixture *f, ptowsp_value value, ptowsp_status status, const char *text) {
    char all[320];
    snprintf(all, sizeof all, "module: kernel k: %s", text);
    assert_int_equal(value.id, 0);
    assert_null(value.body);
    assert_int_equal(ptowsp_tile_add(f->x, f->y).id, 0);
    assert_int_equal(ptowsp_tile_exp(value).id, 0);
    assert_int_equal(ptowsp_tile_const(f->k, 1).id, 0);
    assert_int_equal(ptowsp_tile_in(f->k, "z", PTOWSP_F32, 1, 1).id, 0);
    ptowsp_tile_store(f->o, f->x);
    ptowsp_instruction(f->k, NULL);
    assert_ok(ptowsp_module_error(f->m).status);  // not yet
    ptowsp_kernel kernel = ptowsp_kernel_end(f->k);
    assert_int_equal(kernel.id, 0);
    assert_int_equal(ptowsp_kernel_insn_count(f->m, kernel), 0);
    expect_module(f, status, all);
}

// A fault of operations: built in a fresh fixture, with this text.
#define FAULT(status, text, call)                                                                  \
    do {                                                                                           \
        fixture fault, *f = &fault;                                                                \
        begin(f);                                                                                  \
        ptowsp_value last = (call);                                                                \
        expect(f, last, PTOWSP_##status, text);                                                    \
    } while (0)

// Of ptowsp_tile_<call>, by status; of one that has no value; of any other expression.
#define INVALID(text, call)       FAULT(INVALID_PARAMS, text, ptowsp_tile_##call)
#define UNSUPPORTED(text, call)   FAULT(UNSUPPORTED, text, ptowsp_tile_##call)
#define VOID(call)                ((call), none)
#define INVALID_STORE(text, call) FAULT(INVALID_PARAMS, text, VOID(ptowsp_tile_##call))
#define REFUSED(text, value)      FAULT(INVALID_PARAMS, text, value)

// Ends a kernel that stores x to both of the fixture's outputs.
static ptowsp_kernel good_end(fixture *f) {
    ptowsp_tile_store(f->o, f->x);
    ptowsp_tile_store(f->io, f->x);
    return ptowsp_kernel_end(f->k);
}

// -- operands -------------------------------------------------------------------------------------

static ptowsp_value number(fixture *f, double x) {
    return ptowsp_tile_const(f->k, x);
}

static ptowsp_value open_loop(fixture *f) {
    return ptowsp_tile_loop_begin(f->k, number(f, 0), number(f, 4), 1);
}

TEST(faults__operands_that_are_none_are_refused) {
    ptowsp_value lost = none;
    INVALID("add: operand 2 is no value", add(f->x, none));
    INVALID("add: operand 1 is no value", add(none, f->x));
    INVALID("exp: operand 1 is no value", exp((ptowsp_value){f->k, 0}));
    REFUSED("mul: operand 2 is no value",
            (lost = f->x, lost.id = 4000, ptowsp_tile_mul(f->x, lost)));
    INVALID("loop: operand 1 is no value", loop_begin(f->k, none, number(f, 1), 1));
    INVALID_STORE("store: operand 1 is no value", store(none, f->x));
    INVALID_STORE("store: operand 2 is no value", store(f->o, none));
}

// Enumerations and sizes beyond what texts can say.
TEST(faults__numbers_that_are_none_are_refused) {
    INVALID("slice: 1 x 1 from (-1, 0) of 8 x 16", slice(f->x, -1, 0, 1, 1));
    INVALID("slice: 1 x 1 from (0, -1) of 8 x 16", slice(f->x, 0, -1, 1, 1));
    INVALID("slice: 9223372036854775807 x 1 from (9223372036854775807, 0) of 8 x 16",
            slice(f->x, INT64_MAX, 0, INT64_MAX, 1));
    UNSUPPORTED("cvt: TCVT has no f32 to none",
                cvt(f->x, (ptowsp_dtype)1000, PTOWSP_ROUND_NEAREST));
    INVALID("cvt: 5 is no rounding", cvt(f->x, PTOWSP_I32, (ptowsp_round)5));
    INVALID("compare: 6 is no comparison", compare(f->x, (ptowsp_compare)6, f->y));
    UNSUPPORTED("full: none is no type of tiles", full(f->k, PTOWSP_DTYPE_NONE, 1, 1, 0));
    REFUSED("preload: -1 iterations, not 1 to 8", VOID(ptowsp_tile_preload(open_loop(f), -1)));
    INVALID_STORE("loop_end: no loop is open", loop_end(f->k));
}

// Values of another kernel, of one that has ended, and of none.
TEST(faults__values_of_other_bodies_are_refused) {
    fixture f;
    begin(&f);
    ptowsp_body_desc desc = {.name = "second"};
    ptowsp_body *second = ptowsp_kernel_begin(f.m, &desc);
    ptowsp_value x = ptowsp_tile_in(second, "x", PTOWSP_F32, 8, 16);
    ptowsp_value sum = ptowsp_tile_add(f.x, x);
    expect(&f, sum, PTOWSP_INVALID_PARAMS, "add: operand 2 is a value of kernel second");

    begin(&f);
    ptowsp_tile_store(f.o, f.x);
    ptowsp_tile_store(f.io, f.x);
    assert_int_not_equal(ptowsp_kernel_end(f.k).id, 0);
    assert_int_equal(ptowsp_tile_exp(f.x).id, 0);  // ended: nothing happens
    assert_int_equal(ptowsp_tile_in(f.k, "late", PTOWSP_F32, 1, 1).id, 0);
    assert_int_equal(ptowsp_kernel_end(f.k).id, 0);
    assert_ok(ptowsp_module_error(f.m).status);
    memset(&desc, 0, sizeof desc);
    desc.name = "second";
    second = ptowsp_kernel_begin(f.m, &desc);
    ptowsp_value z = ptowsp_tile_in(second, "z", PTOWSP_F32, 8, 16);
    assert_int_equal(ptowsp_tile_add(z, f.x).id, 0);
    assert_int_equal(ptowsp_kernel_end(second).id, 0);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel second: add: operand 2 is a value of kernel k");

    // Without any body.
    assert_int_equal(ptowsp_tile_add(none, none).id, 0);
    assert_int_equal(ptowsp_tile_const(NULL, 1).id, 0);
    assert_int_equal(ptowsp_tile_in(NULL, "x", PTOWSP_F32, 1, 1).id, 0);
    assert_int_equal(ptowsp_tile_scalar(NULL, "x", PTOWSP_F32).id, 0);
    assert_int_equal(ptowsp_tile_full(NULL, PTOWSP_F32, 1, 1, 0).id, 0);
    assert_int_equal(ptowsp_tile_alloc(NULL, NULL).id, 0);
    ptowsp_tile_store(none, none);
    ptowsp_instruction(NULL, NULL);
    assert_int_equal(ptowsp_kernel_end(NULL).id, 0);
    assert_null(ptowsp_kernel_begin(NULL, NULL));
}

// -- parameters -----------------------------------------------------------------------------------

TEST(faults__wrong_parameters_are_refused) {
    INVALID("parameter: tile z is 0 x 16; sizes are 1 to 16384", in(f->k, "z", PTOWSP_F32, 0, 16));
    INVALID("parameter: tile z is 1 x 16385; sizes are 1 to 16384",
            in(f->k, "z", PTOWSP_F32, 1, 16385));
    INVALID("parameter: tile z is 1 x 0; sizes are 1 to 16384", in(f->k, "z", PTOWSP_F32, 1, 0));
    INVALID("parameter: tile z is 16385 x 1; sizes are 1 to 16384",
            in(f->k, "z", PTOWSP_F32, 16385, 1));
    INVALID("parameter: tile z is -1 x 16; sizes are 1 to 16384",
            in(f->k, "z", PTOWSP_F32, PTOWSP_DYNAMIC, 16));
    UNSUPPORTED("parameter: tile z is f64, which no instruction loads",
                in(f->k, "z", PTOWSP_F64, 1, 16));
    UNSUPPORTED("parameter: tile z is i64, which no instruction loads",
                in(f->k, "z", PTOWSP_I64, 1, 16));
    UNSUPPORTED("parameter: tile z is bool, which no instruction loads",
                in(f->k, "z", PTOWSP_BOOL, 1, 16));
    UNSUPPORTED("parameter: tile z is none, which no instruction loads",
                in(f->k, "z", (ptowsp_dtype)999, 1, 16));
    INVALID("parameter: two are called x", in(f->k, "x", PTOWSP_F32, 1, 16));
    INVALID("parameter: two are called s", in(f->k, "s", PTOWSP_F32, 1, 16));
    INVALID("parameter: two are called x", scalar(f->k, "x", PTOWSP_F32));
    INVALID("parameter: its name has 0 characters", in(f->k, "", PTOWSP_F32, 1, 16));
    INVALID("parameter: its name has 0 characters", in(f->k, NULL, PTOWSP_F32, 1, 16));
    INVALID("parameter: its name has 64 characters",
            in(f->k, "0123456789012345678901234567890123456789012345678901234567890123", PTOWSP_F32,
               1, 1));
    UNSUPPORTED("parameter: scalar t is i32, not bool, i64, u64, f32 or f64",
                scalar(f->k, "t", PTOWSP_I32));
    fixture f;
    begin(&f);
    char name[8];
    ptowsp_value value = none;
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "t%d", i);
        value = ptowsp_tile_in(f.k, name, PTOWSP_F32, 1, 1);
    }
    expect(&f, value, PTOWSP_LIMIT_EXCEEDED, "parameter: t6 is one tile more than 12");
    begin(&f);
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "t%d", i);
        value = ptowsp_tile_scalar(f.k, name, PTOWSP_F32);
    }
    expect(&f, value, PTOWSP_LIMIT_EXCEEDED, "parameter: t7 is one scalar more than 8");
}

TEST(faults__stores_that_are_wrong_or_missing_are_refused) {
    FAULT(UNSUPPORTED, "store_add: q is bf16",
          VOID(ptowsp_tile_store_add(ptowsp_tile_out(f->k, "q", PTOWSP_BF16, 8, 16), f->x)));
    fixture f;
    begin(&f);
    open_loop(&f);
    good_end(&f);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel k: store: o is stored as a whole in a loop; see "
                  "ptowsp_tile_store_at");
    begin(&f);
    ptowsp_tile_store(f.o, f.x);
    ptowsp_tile_store(f.io, f.x);
    open_loop(&f);
    ptowsp_kernel_end(f.k);
    expect_module(&f, PTOWSP_INVALID_PARAMS, "module: kernel k: loop: loop 1 is not ended");
}

#define ALLOC(...) ptowsp_tile_alloc(f->k, &(ptowsp_alloc_desc){__VA_ARGS__})

TEST(faults__descriptions_of_tiles_and_instructions_are_refused) {
    INVALID("alloc: desc is NULL", alloc(f->k, NULL));
    FAULT(UNSUPPORTED, "alloc: none is no type of tiles",
          ALLOC(.dtype = (ptowsp_dtype)77, .rows = 8, .cols = 16));
    REFUSED("alloc: no such memory or layout",
            ALLOC(.memory = (ptowsp_memory)PTOWSP_MEMORY_COUNT, .dtype = PTOWSP_F32));
    REFUSED("alloc: no such memory or layout",
            ALLOC(.layout = (ptowsp_layout)77, .dtype = PTOWSP_F32));
    REFUSED("instruction: there is no instruction without a name",
            VOID(ptowsp_instruction(f->k, NULL)));
    REFUSED("instruction: there is no instruction without a name",
            VOID(ptowsp_instruction(f->k, &(ptowsp_instruction_desc){.mode = 0})));
}

// -- beginning and ending -------------------------------------------------------------------------

TEST(misuse__wrong_descriptions_are_refused) {
    const ptowsp_machine b = ptowsp_machine_910b(), pr = ptowsp_machine_950pr();
    ptowsp_machine no_family = b, no_clock = pr, no_name = b;
    no_family.family = (ptowsp_family)2;
    no_clock.clock_mhz = 0;
    memcpy(no_name.name, "a\nb", 4);
    const char odd[] =
        "module: kernel odd: its machine has no such family, no clock, a memory of more "
        "than 64 MiB, or a name with quotes or bytes that are not printable";
    const char no_word[] =
        "module: the name of this kernel is not 1 to 63 printable ASCII characters "
        "without quotes and backslash";
    const struct {
        ptowsp_body_desc desc;
        const char *text;
    } cases[] = {
        {{.name = NULL}, "module: the name of this kernel is NULL"},
        {{.name = ""}, no_word},
        {{.name = "wide", .axis_count = 9},
         "module: kernel wide: 9 axis arguments are more than 8"},
        {{.name = "odd", .machine = &no_family}, odd},
        {{.name = "odd", .machine = &no_clock}, odd},
        {{.name = "odd", .machine = &no_name}, odd},
    };
    fixture f;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin(&f);
        assert_null(ptowsp_kernel_begin(f.m, &cases[i].desc));
        expect_module(&f, PTOWSP_INVALID_PARAMS, cases[i].text);
    }
    begin(&f);
    assert_null(ptowsp_kernel_begin(f.m, NULL));
    expect_module(&f, PTOWSP_INVALID_PARAMS, "module: kernel: desc is NULL");
}

TEST(misuse__two_kernels_of_one_name_are_refused) {
    fixture f;
    begin(&f);
    ptowsp_body *first = f.k;
    ptowsp_body_desc desc = {.name = "k"};
    // The name is taken when the kernel ends, or already when the other one begins.
    f.k = ptowsp_kernel_begin(f.m, &desc);
    if (f.k) {
        ptowsp_value x = ptowsp_tile_in(f.k, "x", PTOWSP_F32, 1, 8);
        ptowsp_tile_store(ptowsp_tile_out(f.k, "y", PTOWSP_F32, 1, 8), x);
        assert_int_not_equal(ptowsp_kernel_end(f.k).id, 0);
    }
    f.k = first;
    assert_int_equal(good_end(&f).id, 0);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel k: there is a kernel of this name already");
}

TEST(misuse__a_kernel_that_never_ends) {
    fixture f;
    begin(&f);
    ptowsp_tile_exp(f.x);
    PTOWSP_WORKLOAD(f.m, "w") {
    }
    ptowsp_program *program = NULL;
    assert_invalid(ptowsp_program_create(f.context, f.m, NULL, &program));
    assert_null(program);
    test_error_is(f.context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "module: kernel k has not been ended");
    finish(&f);  // what it holds is freed with the module
}

TEST(misuse__a_kernel_without_tiles_is_refused) {
    fixture f;
    begin(&f);
    ptowsp_body_desc desc = {.name = "empty"};
    ptowsp_body *body = ptowsp_kernel_begin(f.m, &desc);
    ptowsp_tile_scalar(body, "s", PTOWSP_I64);
    assert_int_equal(ptowsp_kernel_end(body).id, 0);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel empty: parameter: kernel empty has no tile parameter");
}

TEST(misuse__too_many_operations_are_refused) {
    fixture f;
    begin(&f);
    ptowsp_value x = f.x;
    for (int i = 0; i < PTOWSP_BODY_OP_MAX && x.id; i++) {
        x = ptowsp_tile_neg(x);
    }
    expect(&f, x, PTOWSP_LIMIT_EXCEEDED, "neg: more than 10000 operations");
}
