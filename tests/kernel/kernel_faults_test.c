// Every mistake that can be made with tile kernels, and what is said about it: the operation's name
// and the numbers. Mistakes of tasks are in cases/tile_kernels.case.

#include "test.h"

#include <math.h>

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

static void begin_with(fixture *f, const ptowsp_machine *machine) {
    memset(f, 0, sizeof *f);
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f->memory};
    f->context = test_context(&desc);
    f->m = test_module(f->context, NULL);
    ptowsp_body_desc body = {.name = "k", .machine = machine};
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

static void begin(fixture *f) {
    begin_with(f, NULL);
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

// Of ptowsp_tile_<call>, by status.
#define INVALID(text, call)     FAULT(INVALID_PARAMS, text, ptowsp_tile_##call)
#define UNSUPPORTED(text, call) FAULT(UNSUPPORTED, text, ptowsp_tile_##call)
#define TOO_MUCH(text, call)    FAULT(LIMIT_EXCEEDED, text, ptowsp_tile_##call)

#define VOID(call) ((call), none)

// Of a call that has no value, and of any other expression.
#define INVALID_STORE(text, call) FAULT(INVALID_PARAMS, text, VOID(ptowsp_tile_##call))
#define REFUSED(text, value)      FAULT(INVALID_PARAMS, text, value)

// Ends a kernel that stores x to both of the fixture's outputs.
static ptowsp_kernel good_end(fixture *f) {
    ptowsp_tile_store(f->o, f->x);
    ptowsp_tile_store(f->io, f->x);
    return ptowsp_kernel_end(f->k);
}

#define PARAM(name, dtype, rows, cols) ptowsp_tile_in(f->k, name, dtype, rows, cols)

// -- operands -------------------------------------------------------------------------------------

TEST(faults__wrong_operands_are_refused) {
    INVALID("add: operand 2 is no value", add(f->x, none));
    INVALID("add: operand 1 is no value", add(none, f->x));
    ptowsp_value lost = none;
    REFUSED("mul: operand 2 is no value",
            (lost = f->x, lost.id = 4000, ptowsp_tile_mul(f->x, lost)));
    INVALID("add: o is an out parameter and cannot be read", add(f->x, f->o));
    INVALID("exp: o is an out parameter and cannot be read", exp(f->o));
    INVALID("matmul: o is an out parameter and cannot be read", matmul(f->o, f->x));
    INVALID("load: o is an out parameter and cannot be read", load(f->o));
    INVALID("slice: o is an out parameter and cannot be read", slice(f->o, 0, 0, 1, 1));
    INVALID("exp: operand 1 is a scalar, not a tile", exp(f->s));
    INVALID("rowsum: operand 1 is a scalar, not a tile", rowsum(ptowsp_tile_const(f->k, 1)));
    INVALID("matmul: operand 2 is a scalar, not a tile", matmul(f->x, f->s));
    INVALID("transpose: operand 1 is a scalar, not a tile", transpose(f->s));
    INVALID("compare: operand 1 is a scalar, not a tile", compare(f->s, PTOWSP_LT, f->x));
    INVALID_STORE("store: operand 2 is a scalar, not a tile", store(f->o, f->s));
    INVALID("add: neither operand is a tile", add(f->s, f->s));
    INVALID("mul: neither operand is a tile", mul(ptowsp_tile_const(f->k, 1), f->s));
    UNSUPPORTED("sub: its left operand is a scalar parameter", sub(f->s, f->x));
    UNSUPPORTED("div: its left operand is a scalar parameter", div(f->s, f->x));
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

TEST(faults__wrong_stores_are_refused) {
    INVALID_STORE("store: x is an in parameter", store(f->x, f->y));
    REFUSED("store: o is stored twice",
            (ptowsp_tile_store(f->o, f->x), VOID(ptowsp_tile_store(f->o, f->y))));
    REFUSED("store_add: o is stored twice",
            (ptowsp_tile_store(f->o, f->x), VOID(ptowsp_tile_store_add(f->o, f->y))));
    REFUSED("store_at: o is stored twice",
            (ptowsp_tile_store(f->o, f->x), VOID(ptowsp_tile_store_at(f->o, none, none, f->v))));
    REFUSED("store: o is stored twice",
            (ptowsp_tile_store_at(f->o, none, none, f->v), VOID(ptowsp_tile_store(f->o, f->x))));
    INVALID_STORE("store: its destination is no parameter", store(ptowsp_tile_exp(f->x), f->y));
    INVALID_STORE("store: 1 x 16 into o of 8 x 16", store(f->o, f->v));
    INVALID_STORE("store: i32 into o of f32", store(f->o, f->i));
    INVALID_STORE("store: operand 1 is no value", store(none, f->x));
    INVALID_STORE("store: operand 2 is no value", store(f->o, none));
    INVALID_STORE("store: operand 2 is a mask",
                  store(f->o, ptowsp_tile_compare(f->x, PTOWSP_LT, f->y)));
    INVALID_STORE("store: f16 into o of f32",
                  store(f->o, ptowsp_tile_cvt(f->x, PTOWSP_F16, PTOWSP_ROUND_NEAREST)));
    fixture f;
    begin(&f);
    ptowsp_value q = ptowsp_tile_out(f.k, "q", PTOWSP_BF16, 8, 16);
    ptowsp_tile_store_add(q, f.x);
    expect(&f, none, PTOWSP_UNSUPPORTED, "store_add: q is bf16");
    begin(&f);
    ptowsp_tile_store(f.o, f.x);
    assert_int_equal(ptowsp_kernel_end(f.k).id, 0);
    expect_module(&f, PTOWSP_INVALID_PARAMS, "module: kernel k: store: nothing is stored to io");
}

// -- shapes and types -----------------------------------------------------------------------------

static ptowsp_value half_of(fixture *f) {
    return ptowsp_tile_cvt(f->x, PTOWSP_F16, PTOWSP_ROUND_NEAREST);
}

static ptowsp_value byte_of(fixture *f) {
    return ptowsp_tile_in(f->k, "byte", PTOWSP_I8, 8, 16);
}

// What loads where it stands may not stand behind the store.
TEST(faults__loads_after_stores_are_refused) {
    REFUSED("load: io is loaded after it was stored",
            (ptowsp_tile_store(f->io, f->x), ptowsp_tile_load(f->io)));
    REFUSED("slice: io is loaded after it was stored",
            (ptowsp_tile_store_add(f->io, f->x), ptowsp_tile_slice(f->io, 0, 0, 1, 1)));
    REFUSED(
        "matmul: io is loaded after it was stored",
        (ptowsp_tile_store(f->io, f->x), ptowsp_tile_matmul(f->io, ptowsp_tile_transpose(f->x))));
}

TEST(faults__wrong_shapes_and_types_are_refused) {
    INVALID("add: 8 x 16 and 3 x 16", add(f->x, PARAM("z", PTOWSP_F32, 3, 16)));
    INVALID("sub: 1 x 16 and 8 x 16: only the second operand may be a vector", sub(f->v, f->x));
    INVALID("add: 8 x 16 and 16 x 8", add(f->x, PARAM("z", PTOWSP_F32, 16, 8)));
    INVALID("max: f32 and i32; ptowsp_tile_cvt makes operand 2 f32", max(f->x, f->i));
    INVALID("add: f32 and f16; ptowsp_tile_cvt makes operand 2 f32", add(f->x, half_of(f)));
    INVALID("div: f16 and f32; ptowsp_tile_cvt makes operand 1 f32", div(half_of(f), f->x));
    INVALID("sub: i32 and f16; ptowsp_tile_cvt makes operand 1 f16", sub(f->i, half_of(f)));
    INVALID("min: f16 and i16; ptowsp_tile_cvt makes operand 2 f16",
            min(half_of(f), PARAM("s16", PTOWSP_I16, 8, 16)));
    INVALID("mul: i16 and i32; ptowsp_tile_cvt makes operand 2 i16",
            mul(PARAM("s16", PTOWSP_I16, 8, 16), f->i));
    INVALID("add: bf16 and f32; ptowsp_tile_cvt makes operand 1 f32",
            add(PARAM("b16", PTOWSP_BF16, 8, 16), f->x));
    INVALID("mul: bf16 and i32; ptowsp_tile_cvt makes both f32",
            mul(PARAM("b16", PTOWSP_BF16, 8, 16), f->i));
    INVALID("max: f16 and bf16; ptowsp_tile_cvt makes both f32",
            max(half_of(f), PARAM("b16", PTOWSP_BF16, 8, 16)));
    INVALID("sub: i16 and bf16; ptowsp_tile_cvt makes both f32",
            sub(PARAM("s16", PTOWSP_I16, 8, 16), PARAM("b16", PTOWSP_BF16, 8, 16)));
    FAULT(UNSUPPORTED, "add: operand 1 is i8, which it does not take",
          (byte_of(f), ptowsp_tile_add(f->x, f->x),
           ptowsp_tile_add(PARAM("b", PTOWSP_I8, 8, 16), f->x)));
    UNSUPPORTED("min: operand 2 is u32, which it does not take",
                min(f->x, PARAM("b", PTOWSP_U32, 8, 16)));
    UNSUPPORTED("exp: operand 1 is i32, which it does not take", exp(f->i));
    UNSUPPORTED("abs: operand 1 is i32, which it does not take", abs(f->i));
    UNSUPPORTED("rowmean: operand 1 is i32, which it does not take", rowmean(f->i));
    UNSUPPORTED("colsum: operand 1 is i8, which it does not take", colsum(byte_of(f)));
    INVALID("row_broadcast: 1 x 16 is no vector of 8 values", row_broadcast(f->x, f->v));
    INVALID("col_broadcast: 8 x 16 is no vector of 16 values", col_broadcast(f->x, f->y));
    INVALID("matmul: 8 x 16 times 8 x 16: 16 columns on the left, 8 rows on the right",
            matmul(f->x, f->y));
    INVALID("matmul: f32 and f16", matmul(f->x, ptowsp_tile_transpose(half_of(f))));
    UNSUPPORTED("matmul: operand 1 is i32, which it does not take", matmul(f->i, f->i));
    TOO_MUCH("matmul: m 4096, k 1, n 16; they are 1 to 4095",
             matmul(PARAM("a", PTOWSP_F32, 4096, 1), f->v));
    TOO_MUCH("matmul: m 1, k 4096, n 1; they are 1 to 4095",
             matmul(PARAM("a", PTOWSP_F32, 1, 4096), PARAM("b", PTOWSP_F32, 4096, 1)));
    INVALID("matmul_acc: acc is 8 x 16, not 8 x 8",
            matmul_acc(f->x, f->x, ptowsp_tile_transpose(f->y)));
    INVALID("matmul_bias: bias is 1 x 16, not 1 x 8",
            matmul_bias(f->x, ptowsp_tile_transpose(f->y), f->v));
    UNSUPPORTED("matmul_bias: operand 3 is i32, which it does not take",
                matmul_bias(f->x, ptowsp_tile_transpose(f->y), f->i));
    INVALID("slice: 8 x 16 from (0, 1) of 8 x 16", slice(f->x, 0, 1, 8, 16));
    INVALID("slice: 0 x 1 from (0, 0) of 8 x 16", slice(f->x, 0, 0, 0, 1));
    INVALID("slice: 1 x 1 from (-1, 0) of 8 x 16", slice(f->x, -1, 0, 1, 1));
    INVALID("slice: 9223372036854775807 x 1 from (9223372036854775807, 0) of 8 x 16",
            slice(f->x, INT64_MAX, 0, INT64_MAX, 1));
    INVALID("load: its operand is no parameter", load(ptowsp_tile_exp(f->x)));
    UNSUPPORTED("cvt: TCVT has no f32 to i8", cvt(f->x, PTOWSP_I8, PTOWSP_ROUND_NEAREST));
    UNSUPPORTED("cvt: TCVT has no f32 to none",
                cvt(f->x, (ptowsp_dtype)1000, PTOWSP_ROUND_NEAREST));
    INVALID("cvt: 5 is no rounding", cvt(f->x, PTOWSP_I32, (ptowsp_round)5));
    INVALID("quantize: 1 x 16 is no vector of 8 values", quantize(f->x, f->v));
    UNSUPPORTED("quantize: operand 1 is i32, which it does not take", quantize(f->i, f->v));
    UNSUPPORTED("dequantize: operand 1 is f32, which it does not take",
                dequantize(f->x, f->v, f->v));
    UNSUPPORTED("full: bool is no type of tiles", full(f->k, PTOWSP_BOOL, 1, 1, 0));
    UNSUPPORTED("full: i64 is no type of tiles", full(f->k, PTOWSP_I64, 1, 1, 0));
    INVALID("full: 0 x 1; sizes are 1 to 16384", full(f->k, PTOWSP_F32, 0, 1, 0));
    UNSUPPORTED("iota: f32 is not i16, u16, i32 or u32", iota(f->k, PTOWSP_F32, 8, 0));
    INVALID("iota: 1 x 16385; sizes are 1 to 16384", iota(f->k, PTOWSP_I32, 16385, 0));
}

static ptowsp_value mask_of(fixture *f) {
    return ptowsp_tile_compare(f->x, PTOWSP_GT, f->y);
}

static ptowsp_value pairs_as(fixture *f, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    return ptowsp_tile_sort32(PARAM("scores", dtype, rows, cols),
                              ptowsp_tile_iota(f->k, PTOWSP_U32, cols, 0));
}

static ptowsp_value pairs_of(fixture *f, int64_t rows, int64_t cols) {
    return pairs_as(f, PTOWSP_F32, rows, cols);
}

// An instruction with this mode.
static ptowsp_value mode_of(fixture *f, const char *name, uint32_t mode) {
    ptowsp_instruction_desc desc = {.name = name, .mode = mode};
    ptowsp_instruction(f->k, &desc);
    return none;
}

TEST(faults__wrong_modes_are_refused) {
    REFUSED("TCVT: it has no mode 5", mode_of(f, "TCVT", 5));
    REFUSED("TABS: it has no mode 256", mode_of(f, "TABS", 256));
}

TEST(faults__wrong_picking_are_refused) {
    INVALID("compare: 6 is no comparison", compare(f->x, (ptowsp_compare)6, f->y));
    UNSUPPORTED("compare: i32 is compared with EQ only", compare(f->i, PTOWSP_LT, f->i));
    INVALID("compare: 8 x 16 f32 and 1 x 16 f32", compare(f->x, PTOWSP_LT, f->v));
    INVALID("select: operand 1 is no mask", select(f->x, f->x, f->y));
    INVALID("select: a mask of 8 x 16 for 1 x 16", select(mask_of(f), f->v, f->v));
    INVALID("select: 8 x 16 f32 and 8 x 16 i32", select(mask_of(f), f->x, f->i));
    INVALID("add: operand 1 is a mask", add(mask_of(f), f->x));
    INVALID("transpose: operand 1 is a mask", transpose(mask_of(f)));
    UNSUPPORTED("sort32: operand 1 is i32, which it does not take", sort32(f->i, f->i));
    INVALID("sort32: 8 x 16 scores and 1 x 32 indices",
            sort32(f->x, ptowsp_tile_iota(f->k, PTOWSP_U32, 32, 0)));
    FAULT(LIMIT_EXCEEDED, "sort32: 8193 scores in a row; of f32 8192 at most",
          pairs_of(f, 1, 8193));
    FAULT(LIMIT_EXCEEDED, "sort32: 4097 scores in a row; of f16 4096 at most",
          pairs_as(f, PTOWSP_F16, 1, 4097));
    FAULT(UNSUPPORTED, "sort32: operand 1 is bf16, which it does not take",
          pairs_as(f, PTOWSP_BF16, 1, 32));
    FAULT(UNSUPPORTED, "sort32: rows of one score", pairs_of(f, 8, 1));
    INVALID("merge_sort: its operand is not sorted pairs", merge_sort(f->v, 32));
    UNSUPPORTED("merge_sort: 2 rows; TMRGSORT merges one", merge_sort(pairs_of(f, 2, 128), 32));
    INVALID("merge_sort: 128 pairs in runs of 48, which are whole multiples of 32",
            merge_sort(pairs_of(f, 1, 128), 48));
    INVALID("merge_sort: 128 pairs in runs of 0, which are whole multiples of 32",
            merge_sort(pairs_of(f, 1, 128), 0));
    // A pair of f16 takes four columns.
    UNSUPPORTED("merge_sort: 2 rows; TMRGSORT merges one",
                merge_sort(pairs_as(f, PTOWSP_F16, 2, 128), 32));
    INVALID("merge_sort: 128 pairs in runs of 48, which are whole multiples of 32",
            merge_sort(pairs_as(f, PTOWSP_F16, 1, 128), 48));
    INVALID("merge_sort: 1 runs; it merges 2, 3, or a multiple of 4",
            merge_sort(pairs_as(f, PTOWSP_F16, 1, 128), 128));
    INVALID("topk_values: the first 33 of 32", topk_values(pairs_as(f, PTOWSP_F16, 1, 32), 33));
    INVALID("topk_indices: its operand is not sorted pairs",
            topk_indices(PARAM("half", PTOWSP_F16, 1, 128), 3));
    INVALID("merge_sort: 5 runs; it merges 2, 3, or a multiple of 4",
            merge_sort(pairs_of(f, 1, 160), 32));
    INVALID("merge_sort: 1 runs; it merges 2, 3, or a multiple of 4",
            merge_sort(pairs_of(f, 1, 128), 128));
    INVALID("topk_values: the first 0 of 32", topk_values(pairs_of(f, 1, 32), 0));
    INVALID("topk_indices: the first 33 of 32", topk_indices(pairs_of(f, 1, 32), 33));
    INVALID("topk_values: its operand is not sorted pairs", topk_values(f->x, 3));
    UNSUPPORTED("gather: rows of 12 f32 are no whole blocks of 32 bytes",
                gather(PARAM("z", PTOWSP_F32, 2, 12), f->i));
    UNSUPPORTED("gather: operand 2 is f32, which it does not take", gather(f->x, f->y));
    UNSUPPORTED("gather: operand 1 is i8, which it does not take", gather(byte_of(f), f->i));
    UNSUPPORTED(
        "interleave: TINTERLEAVE of f32: 910B (A2/A3) has no such instruction (rule: element "
        "types)",
        interleave(f->x, f->y));
    INVALID("interleave: 8 x 16 f32 and 8 x 16 i32", interleave(f->x, f->i));
    INVALID("deinterleave: part 2 of 16 columns", deinterleave(f->x, 2));
    INVALID("deinterleave: part 0 of 15 columns", deinterleave(PARAM("z", PTOWSP_F32, 8, 15), 0));
}

// Interleaves x with itself and takes the first half, so many times: valid columns are those of the
// parameter, times a power of two.
static ptowsp_value doubled(fixture *f, int count) {
    ptowsp_value x = f->x;
    for (int i = 0; i < count; i++) {
        x = ptowsp_tile_slice(ptowsp_tile_interleave(x, x), 0, 0, 8, 16);
    }
    return x;
}

TEST(faults__wrong_interleaving_are_refused) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    fixture f;
    begin_with(&f, &a5);
    ptowsp_value z = ptowsp_tile_in(f.k, "z", PTOWSP_F32, 8, 9000);
    expect(&f, ptowsp_tile_interleave(z, z), PTOWSP_LIMIT_EXCEEDED, "interleave: 2 x 9000 columns");
    begin_with(&f, &a5);
    z = ptowsp_tile_in(f.k, "z", PTOWSP_F32, 8, 12);
    expect(&f, ptowsp_tile_interleave(z, z), PTOWSP_UNSUPPORTED,
           "interleave: rows of 12 f32 are no whole blocks of 32 bytes");
    begin_with(&f, &a5);
    ptowsp_value even = ptowsp_tile_deinterleave(f.x, 0);
    expect(&f, ptowsp_tile_interleave(even, even), PTOWSP_UNSUPPORTED,
           "interleave: x has every second column of what a task may have in part");
    begin_with(&f, &a5);
    assert_int_not_equal(doubled(&f, 14).id, 0);  // 2^14
    expect(&f, doubled(&f, 15), PTOWSP_LIMIT_EXCEEDED,
           "interleave: the columns of a tail were doubled too often");
}

// Where one of several sizes or types is wrong, and all others are right.
TEST(faults__each_wrong_size_and_type_is_refused_by_itself) {
    const ptowsp_dtype f32 = PTOWSP_F32;
    INVALID("exp: operand 1 is no value", exp((ptowsp_value){f->k, 0}));
    UNSUPPORTED("full: none is no type of tiles", full(f->k, PTOWSP_DTYPE_NONE, 1, 1, 0));
    INVALID("full: 1 x 0; sizes are 1 to 16384", full(f->k, f32, 1, 0, 0));
    INVALID("full: 16385 x 1; sizes are 1 to 16384", full(f->k, f32, 16385, 1, 0));
    INVALID("parameter: tile z is 1 x 0; sizes are 1 to 16384", in(f->k, "z", f32, 1, 0));
    INVALID("parameter: tile z is 16385 x 1; sizes are 1 to 16384", in(f->k, "z", f32, 16385, 1));
    INVALID("slice: 1 x 1 from (0, -1) of 8 x 16", slice(f->x, 0, -1, 1, 1));
    INVALID("slice: 1 x 0 from (0, 0) of 8 x 16", slice(f->x, 0, 0, 1, 0));
    INVALID("slice_at: operand 1 is a scalar, not a tile", slice_at(f->s, none, none, 1, 1));
    INVALID("slice_at: 0 x 16 of 8 x 16", slice_at(f->x, none, none, 0, 16));
    INVALID("slice_at: 8 x 17 of 8 x 16", slice_at(f->x, none, none, 8, 17));
    INVALID_STORE("store_at: 8 x 32 into o of 8 x 16",
                  store_at(f->o, none, none, ptowsp_tile_full(f->k, f32, 8, 32, 0)));
    INVALID_STORE("store: 8 x 32 into o of 8 x 16",
                  store(f->o, ptowsp_tile_full(f->k, f32, 8, 32, 0)));
    TOO_MUCH("matmul: m 8, k 16, n 4096; they are 1 to 4095",
             matmul(f->x, ptowsp_tile_full(f->k, f32, 16, 4096, 0)));
    INVALID("matmul_acc: acc is 4 x 16, not 8 x 16",
            matmul_acc(ptowsp_tile_full(f->k, f32, 4, 16, 0), f->x,
                       ptowsp_tile_full(f->k, f32, 16, 16, 0)));
    UNSUPPORTED("quantize: rows of one element",
                quantize(ptowsp_tile_full(f->k, f32, 8, 1, 0), f->v));
    INVALID("interleave: 8 x 16 f32 and 4 x 16 f32",
            interleave(f->x, ptowsp_tile_full(f->k, f32, 4, 16, 0)));
    INVALID("interleave: 8 x 16 f32 and 8 x 8 f32",
            interleave(f->x, ptowsp_tile_full(f->k, f32, 8, 8, 0)));
    INVALID("interleave: operand 2 is a scalar, not a tile", interleave(f->x, f->s));
    INVALID("compare: 8 x 16 f32 and 8 x 8 f32",
            compare(f->x, PTOWSP_LT, ptowsp_tile_full(f->k, f32, 8, 8, 0)));
    INVALID("compare: 8 x 16 f32 and 8 x 16 i32", compare(f->x, PTOWSP_LT, f->i));
    INVALID("select: a mask of 8 x 16 for 8 x 8",
            select(ptowsp_tile_compare(f->x, PTOWSP_LT, f->y), ptowsp_tile_full(f->k, f32, 8, 8, 0),
                   f->y));
    INVALID("select: 8 x 16 f32 and 4 x 16 f32",
            select(ptowsp_tile_compare(f->x, PTOWSP_LT, f->y), f->x,
                   ptowsp_tile_full(f->k, f32, 4, 16, 0)));
    INVALID("select: 8 x 16 f32 and 8 x 8 f32", select(ptowsp_tile_compare(f->x, PTOWSP_LT, f->y),
                                                       f->x, ptowsp_tile_full(f->k, f32, 8, 8, 0)));
    INVALID("sort32: 8 x 16 scores and 2 x 16 indices",
            sort32(f->x, ptowsp_tile_full(f->k, PTOWSP_U32, 2, 16, 0)));
    INVALID("merge_sort: 96 pairs in runs of 64, which are whole multiples of 32",
            merge_sort(ptowsp_tile_sort32(ptowsp_tile_full(f->k, f32, 1, 96, 0),
                                          ptowsp_tile_iota(f->k, PTOWSP_U32, 96, 0)),
                       64));
    INVALID("alloc: 8 x 8 for a value of 8 x 16",
            alloc(f->k, (&(ptowsp_alloc_desc){.dtype = f32, .cols = 8, .like = f->x})));
    REFUSED("instruction: there is no instruction without a name",
            VOID(ptowsp_instruction(f->k, NULL)));
    static const struct {
        ptowsp_dtype from, to;
        const char *text;
    } pairs[] = {
        {PTOWSP_U16, PTOWSP_F32, "cvt: TCVT has no u16 to f32"},
        {PTOWSP_U32, PTOWSP_F32, "cvt: TCVT has no u32 to f32"},
        {PTOWSP_I32, PTOWSP_BF16, "cvt: TCVT has no i32 to bf16"},
        {PTOWSP_I16, PTOWSP_I32, "cvt: TCVT has no i16 to i32"},
        {PTOWSP_BF16, PTOWSP_F16, "cvt: TCVT has no bf16 to f16"},
        {PTOWSP_I8, PTOWSP_F32, "cvt: TCVT has no i8 to f32"},
    };
    for (uint32_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        fixture f;
        begin(&f);
        ptowsp_value from = ptowsp_tile_full(f.k, pairs[i].from, 1, 32, 0);
        expect(&f, ptowsp_tile_cvt(from, pairs[i].to, PTOWSP_ROUND_NEAREST), PTOWSP_UNSUPPORTED,
               pairs[i].text);
    }
}

// -- loops ----------------------------------------------------------------------------------------

static ptowsp_value number(fixture *f, double x) {
    return ptowsp_tile_const(f->k, x);
}

static ptowsp_value open_loop(fixture *f) {
    return ptowsp_tile_loop_begin(f->k, number(f, 0), number(f, 4), 1);
}

TEST(loop__refuses_bounds_that_are_none) {
    INVALID("loop: operand 1 is no value", loop_begin(f->k, none, number(f, 1), 1));
    INVALID("loop: its end is no constant, scalar of i64 or u64, or size of a tile",
            loop_begin(f->k, number(f, 0), f->x, 1));
    INVALID("loop: its end is no constant, scalar of i64 or u64, or size of a tile",
            loop_begin(f->k, number(f, 0), f->s, 1));
    INVALID("loop: its begin is -1, not a whole number from 0 to 2^30",
            loop_begin(f->k, number(f, -1), number(f, 1), 1));
    INVALID("loop: its end is 1.5, not a whole number from 0 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, 1.5), 1));
    INVALID("loop: its end is 1073741825, not a whole number from 0 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, 0x1p30 + 1), 1));
    INVALID("loop: its end is nan, not a whole number from 0 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, NAN), 1));
    INVALID("loop: its step is 0; steps are 1 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, 1), 0));
    INVALID("loop: its step is 1073741825; steps are 1 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, 1), (1 << 30) + 1));
    INVALID("size: its operand is no parameter", rows(f->s));
    INVALID("size: its operand is no parameter", cols(ptowsp_tile_exp(f->x)));
    INVALID_STORE("loop_end: no loop is open", loop_end(f->k));
}

static ptowsp_value preload(fixture *f, int64_t iterations, int times) {
    ptowsp_value index = open_loop(f);
    for (int i = 0; i < times; i++) {
        ptowsp_tile_preload(index, iterations);
    }
    return none;
}

static ptowsp_value preload_outer(fixture *f) {
    ptowsp_value index = open_loop(f);
    open_loop(f);
    ptowsp_tile_preload(index, 1);
    return none;
}

TEST(loop__refuses_preloads_that_are_none) {
    INVALID_STORE("preload: its operand is no index of the innermost loop", preload(f->x, 1));
    REFUSED("preload: its operand is no index of the innermost loop", preload_outer(f));
    REFUSED("preload: 0 iterations, not 1 to 8", preload(f, 0, 1));
    REFUSED("preload: 9 iterations, not 1 to 8", preload(f, 9, 1));
    REFUSED("preload: -1 iterations, not 1 to 8", preload(f, -1, 1));
    REFUSED("preload: loop 1 preloads 8 already", preload(f, 8, 2));
}

static ptowsp_value too_many(fixture *f, int count, bool is_nested) {
    ptowsp_value last = none;
    for (int i = 0; i < count; i++) {
        last = open_loop(f);
        if (!is_nested) {
            ptowsp_tile_loop_end(f->k);
        }
    }
    return last;
}

static ptowsp_value carries(fixture *f, int count) {
    ptowsp_value last = none;
    open_loop(f);
    for (int i = 0; i < count; i++) {
        last = ptowsp_tile_carry(f->v);
    }
    return last;
}

TEST(loop__refuses_more_than_its_limits) {
    FAULT(LIMIT_EXCEEDED, "loop: more than 8 in a kernel", too_many(f, PTOWSP_LOOP_MAX + 1, false));
    FAULT(LIMIT_EXCEEDED, "loop: more than 4 inside each other",
          too_many(f, PTOWSP_LOOP_DEPTH_MAX + 1, true));
    FAULT(LIMIT_EXCEEDED, "carry: more than 32 in loop 1", carries(f, PTOWSP_LOOP_CARRY_MAX + 1));
    fixture f;
    begin(&f);
    assert_int_not_equal(too_many(&f, PTOWSP_LOOP_MAX, false).id, 0);
    assert_int_not_equal(good_end(&f).id, 0);
    finish(&f);
    begin(&f);
    ptowsp_value carried[PTOWSP_LOOP_CARRY_MAX];
    open_loop(&f);
    open_loop(&f);
    for (int i = 0; i < PTOWSP_LOOP_CARRY_MAX; i++) {  // all move on by one place, in a circle
        carried[i] = ptowsp_tile_carry(f.v);
    }
    for (int i = 0; i < PTOWSP_LOOP_CARRY_MAX; i++) {
        ptowsp_tile_next(carried[i], carried[(i + 1) % PTOWSP_LOOP_CARRY_MAX]);
    }
    ptowsp_tile_loop_end(f.k);
    ptowsp_tile_loop_end(f.k);
    assert_int_not_equal(good_end(&f).id, 0);
    finish(&f);
}

static ptowsp_value after(fixture *f, int which) {
    ptowsp_value x = f->x, index = open_loop(f), c = none;
    ptowsp_value made = ptowsp_tile_exp(x);
    switch (which) {
    case 0: ptowsp_tile_loop_end(f->k); return ptowsp_tile_exp(made);
    case 1: ptowsp_tile_loop_end(f->k); return ptowsp_tile_slice_at(x, index, none, 1, 16);
    case 2: ptowsp_tile_carry(x); return VOID(ptowsp_tile_loop_end(f->k));
    case 3: return ptowsp_tile_carry(made);
    case 4: return VOID(ptowsp_tile_next(made, x));
    case 5:
        c = ptowsp_tile_carry(x);
        ptowsp_tile_next(c, made);
        return VOID(ptowsp_tile_next(c, made));
    case 6:
        c = ptowsp_tile_carry(x);
        open_loop(f);
        return VOID(ptowsp_tile_next(c, made));
    case 7: return VOID(ptowsp_tile_next(ptowsp_tile_carry(x), f->v));
    case 8: return VOID(ptowsp_tile_next(ptowsp_tile_carry(x), f->i));
    case 9: return VOID(ptowsp_tile_store(f->o, x));
    case 10: return ptowsp_tile_add(x, index);
    case 11: return ptowsp_tile_carry(f->s);
    default: return ptowsp_tile_carry(f->o);
    }
}

static ptowsp_value pairs(fixture *f, bool is_next) {
    ptowsp_value scores = PARAM("scores", PTOWSP_F32, 1, 32),
                 index = PARAM("at", PTOWSP_U32, 1, 32);
    ptowsp_value wide = PARAM("wide", PTOWSP_F32, 1, 64);
    ptowsp_value sorted = ptowsp_tile_sort32(scores, index);
    open_loop(f);
    return is_next ? VOID(ptowsp_tile_next(ptowsp_tile_carry(wide), sorted))
                   : ptowsp_tile_carry(sorted);
}

static ptowsp_value tile_of_instructions(fixture *f, bool is_next) {
    ptowsp_alloc_desc desc = {.dtype = PTOWSP_F32, .like = f->x};
    ptowsp_value t = ptowsp_tile_alloc(f->k, &desc);
    open_loop(f);
    return is_next ? VOID(ptowsp_tile_next(ptowsp_tile_carry(f->x), t)) : ptowsp_tile_carry(t);
}

TEST(loop__refuses_values_where_they_are_not) {
    REFUSED("exp: operand 1 is a value of loop 1, which has ended", after(f, 0));
    REFUSED("slice_at: operand 2 is a value of loop 1, which has ended", after(f, 1));
    REFUSED("loop_end: a carried value of loop 1 has no next value", after(f, 2));
    REFUSED("carry: its initial value is made in loop 1", after(f, 3));
    REFUSED("next: operand 1 is no carried value", after(f, 4));
    REFUSED("next: it has a next value already", after(f, 5));
    REFUSED("next: it is of loop 1, not of the innermost one", after(f, 6));
    REFUSED("next: 1 x 16 f32 after 8 x 16 f32", after(f, 7));
    REFUSED("next: 8 x 16 i32 after 8 x 16 f32", after(f, 8));
    REFUSED("store: o is stored as a whole in a loop; see ptowsp_tile_store_at", after(f, 9));
    REFUSED("add: operand 2 is no value", after(f, 10));
    REFUSED("carry: operand 1 is a scalar, not a tile", after(f, 11));
    REFUSED("carry: o is an out parameter and cannot be read", after(f, 12));
    INVALID("carry: no loop is open", carry(f->x));
    FAULT(UNSUPPORTED, "carry: sorted pairs", pairs(f, false));
    FAULT(UNSUPPORTED, "next: sorted pairs", pairs(f, true));
    FAULT(UNSUPPORTED, "carry: a tile that instructions write", tile_of_instructions(f, false));
    FAULT(UNSUPPORTED, "next: a tile that instructions write", tile_of_instructions(f, true));
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

TEST(loop__refuses_windows_that_do_not_fit) {
    INVALID("slice_at: its operand is no parameter",
            slice_at(ptowsp_tile_exp(f->x), none, none, 1, 1));
    INVALID("slice_at: 9 x 16 of 8 x 16", slice_at(f->x, none, none, 9, 16));
    INVALID("slice_at: 1 x 0 of 8 x 16", slice_at(f->x, none, none, 1, 0));
    INVALID("slice_at: it begins at 1; there is room for 0 to 0",
            slice_at(f->x, number(f, 1), none, 8, 16));
    INVALID("slice_at: it begins at 0.5; there is room for 0 to 15",
            slice_at(f->x, none, number(f, 0.5), 8, 1));
    INVALID("slice_at: operand 2 is no constant or index of a loop",
            slice_at(f->x, f->y, none, 8, 1));
    INVALID_STORE("store_at: 8 x 16 into small of 4 x 16",
                  store_at(ptowsp_tile_out(f->k, "small", PTOWSP_F32, 4, 16), none, none, f->x));
    INVALID_STORE("store_at: it begins at 8; there is room for 0 to 7",
                  store_at(f->o, number(f, 8), none, f->v));
    INVALID_STORE("store_at: x is an in parameter", store_at(f->x, none, none, f->v));
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

// -- what does not fit ----------------------------------------------------------------------------

// The error of a kernel that stores `value`.
static void expect_end(fixture *f, ptowsp_value value, ptowsp_status status, const char *text) {
    assert_int_not_equal(value.id, 0);
    ptowsp_tile_store(ptowsp_tile_out(f->k, "out", PTOWSP_F32, 128, 128), value);
    char all[320];
    snprintf(all, sizeof all, "module: kernel k: %s", text);
    assert_int_equal(good_end(f).id, 0);
    expect_module(f, status, all);
}

TEST(misuse__tiles_that_do_not_fit) {
    fixture fault, *f = &fault;
    begin(f);  // 64 KiB each: the third one does not fit into 184
    ptowsp_value a = PARAM("a", PTOWSP_F32, 128, 128), b = PARAM("b", PTOWSP_F32, 128, 128);
    ptowsp_value c = PARAM("c", PTOWSP_F32, 128, 128);
    expect_end(
        f, ptowsp_tile_add(ptowsp_tile_add(a, b), c), PTOWSP_LIMIT_EXCEEDED,
        "c: memory: tile 4 (128 x 128 f32) needs 65536 bytes of UB at instruction 3 (TLOAD), where "
        "131584 of 188416 are in use (f32 on 910B; rule: memories)");
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    begin_with(f, &a5);  // 248 KiB hold it
    a = PARAM("a", PTOWSP_F32, 128, 128), b = PARAM("b", PTOWSP_F32, 128, 128);
    c = PARAM("c", PTOWSP_F32, 128, 128);
    ptowsp_tile_store(ptowsp_tile_out(f->k, "out", PTOWSP_F32, 128, 128),
                      ptowsp_tile_add(ptowsp_tile_add(a, b), c));
    assert_int_not_equal(good_end(f).id, 0);
    finish(f);
    begin(f);  // factors of L1
    expect_end(
        f, ptowsp_tile_matmul(PARAM("a", PTOWSP_F32, 128, 600), PARAM("b", PTOWSP_F32, 600, 128)),
        PTOWSP_LIMIT_EXCEEDED,
        "matmul: memory: tile 3 (608 x 128 f32) needs 311296 bytes of L1 at instruction 2 (TLOAD), "
        "where "
        "311296 of 524288 are in use (f32 on 910B; rule: memories)");
}

// What crosses between a mixed kernel's halves has to fit where it is popped: 128 x 256 f32 are 128 KiB
// of UB, beside the 512 bytes of x; 64 x 512 f32 are 128 KiB of L1, beside the 448 of a right factor.
// The slots themselves are in global memory, and flags are the same four for any number of tiles.
TEST(misuse__fifos_beyond_ub_and_l1_are_refused) {
    fixture fault, *f = &fault;
    begin(f);
    ptowsp_value score =
        ptowsp_tile_matmul(PARAM("a", PTOWSP_F16, 128, 64), PARAM("b", PTOWSP_F16, 64, 256));
    expect_end(f, ptowsp_tile_slice(ptowsp_tile_add(ptowsp_tile_exp(score), score), 0, 0, 128, 128),
               PTOWSP_LIMIT_EXCEEDED,
               "exp: memory: tile 8 (128 x 256 f32) needs 131072 bytes of UB at instruction 8 "
               "(TEXP), where 131584 of 188416 are in use (f32 on 910B; rule: memories)");
    begin(f);
    ptowsp_value left = ptowsp_tile_exp(PARAM("a", PTOWSP_F32, 64, 512));
    ptowsp_tile_store(ptowsp_tile_out(f->k, "out", PTOWSP_F32, 64, 224),
                      ptowsp_tile_matmul(left, PARAM("b", PTOWSP_F32, 512, 224)));
    assert_int_equal(good_end(f).id, 0);
    expect_module(
        f, PTOWSP_LIMIT_EXCEEDED,
        "module: kernel k: matmul: memory: tile 3 (64 x 512 f32) needs 131072 bytes of L1 "
        "at instruction 5 (TPOP), where 458752 of 524288 are in use (f32 on 910B; rule: "
        "memories)");
}

// -- instructions ---------------------------------------------------------------------------------

static ptowsp_value alloc(fixture *f, ptowsp_alloc_desc desc) {
    return ptowsp_tile_alloc(f->k, &desc);
}

#define ALLOC(...) alloc(f, (ptowsp_alloc_desc){__VA_ARGS__})

static ptowsp_value tell(fixture *f, const char *name, ptowsp_value dst, ptowsp_value src0,
                         ptowsp_value src1, ptowsp_value tmp, ptowsp_value scalar) {
    ptowsp_instruction_desc desc = {
        .name = name, .dst[0] = dst, .src[0] = src0, .src[1] = src1, .tmp = tmp, .scalar = scalar};
    ptowsp_instruction(f->k, &desc);
    return none;
}

#define T ALLOC(.dtype = PTOWSP_F32, .rows = 8, .cols = 16)

TEST(misuse__wrong_alloc_are_refused) {
    INVALID("alloc: desc is NULL", alloc(f->k, NULL));
    REFUSED("alloc: 0 x 0; sizes are 1 to 16384", ALLOC(.dtype = PTOWSP_F32));
    REFUSED("alloc: 8 x 16385; sizes are 1 to 16384",
            ALLOC(.dtype = PTOWSP_F32, .rows = 8, .cols = 16385));
    FAULT(UNSUPPORTED, "alloc: bool is no type of tiles",
          ALLOC(.dtype = PTOWSP_BOOL, .rows = 8, .cols = 16));
    FAULT(UNSUPPORTED, "alloc: none is no type of tiles",
          ALLOC(.dtype = (ptowsp_dtype)77, .rows = 8, .cols = 16));
    REFUSED("alloc: no such memory or layout",
            ALLOC(.memory = (ptowsp_memory)PTOWSP_MEMORY_COUNT, .dtype = PTOWSP_F32));
    REFUSED("alloc: no such memory or layout",
            ALLOC(.layout = (ptowsp_layout)77, .dtype = PTOWSP_F32));
    REFUSED("alloc: 4 x 16 for a value of 8 x 16",
            ALLOC(.dtype = PTOWSP_F32, .rows = 4, .like = f->x));
    REFUSED("alloc: `like` is no tile", ALLOC(.dtype = PTOWSP_F32, .rows = 4, .like = f->s));
}

TEST(misuse__wrong_instructions_are_refused) {
    REFUSED("instruction: there is no instruction without a name",
            tell(f, NULL, none, none, none, none, none));
    REFUSED("instruction: there is no instruction TFOO",
            tell(f, "TFOO", T, f->x, none, none, none));
    REFUSED("instruction: there is no instruction tadd",
            tell(f, "tadd", T, f->x, f->y, none, none));
    REFUSED("instruction: there is no instruction SET_FLAG",
            tell(f, "SET_FLAG", none, none, none, none, none));
    REFUSED("instruction: there is no instruction PIPE_BARRIER",
            tell(f, "PIPE_BARRIER", none, none, none, none, none));
    REFUSED("TADD: operand 1 is no value", tell(f, "TADD", none, f->x, f->y, none, none));
    REFUSED("TADD: operand 2 is no value", tell(f, "TADD", T, f->x, none, none, none));
    REFUSED("TEXP: it has 1 sources", tell(f, "TEXP", T, f->x, f->y, none, none));
    REFUSED("TADD: its destination was not made by ptowsp_tile_alloc",
            tell(f, "TADD", f->x, f->x, f->y, none, none));
    REFUSED("TADD: its destination was not made by ptowsp_tile_alloc",
            tell(f, "TADD", ptowsp_tile_exp(f->x), f->x, f->y, none, none));
    REFUSED("TADD: o is an out parameter and cannot be read",
            tell(f, "TADD", T, f->x, f->o, none, none));
    REFUSED("TADD: operand 2 is not a tile", tell(f, "TADD", T, f->x, f->s, none, none));
    REFUSED("TADD: it has no scratch tile", tell(f, "TADD", T, f->x, f->y, T, none));
    REFUSED("TADD: it has no scalar", tell(f, "TADD", T, f->x, f->y, none, f->s));
    REFUSED("TADDS: its scalar is a tile", tell(f, "TADDS", T, f->x, none, none, f->y));
    REFUSED("TADDS: operand 2 is no value", tell(f, "TADDS", T, f->x, none, none, none));
    REFUSED("TLOAD: its source is no tile parameter", tell(f, "TLOAD", T, T, none, none, none));
    REFUSED("TSTORE: its destination is no tile parameter",
            tell(f, "TSTORE", T, T, none, none, none));
    REFUSED("TSTORE: x is an in parameter", tell(f, "TSTORE", f->x, T, none, none, none));
    REFUSED("TLOAD: o is an out parameter and cannot be read",
            tell(f, "TLOAD", T, f->o, none, none, none));
}

// Instructions whose operands the device does not take, though they have been written before: found when
// the kernel ends.
TEST(misuse__wrong_operands_of_instructions_are_refused) {
    static const ptowsp_alloc_desc tile = {.dtype = PTOWSP_F32, .rows = 8, .cols = 16};
    static const ptowsp_alloc_desc column = {
        .dtype = PTOWSP_F32, .layout = PTOWSP_LAYOUT_COL_MAJOR, .rows = 8, .cols = 1};
    static const ptowsp_alloc_desc columns = {
        .dtype = PTOWSP_F32, .layout = PTOWSP_LAYOUT_COL_MAJOR, .rows = 8, .cols = 16};
    const struct {
        const char *name;
        ptowsp_alloc_desc dst, src;
        ptowsp_status status;
        const char *text;
    } cases[] = {
        {"TEXP",
         {.dtype = PTOWSP_F32, .rows = 8, .cols = 12},
         tile,
         PTOWSP_INVALID_PARAMS,
         "verify: tile 2 (8 x 12 f32 in UB) of instruction 4 (TEXP) has rows that are no multiple "
         "of "
         "32 (f32 on 910B; rule: tiles)"},
        {"TEXP",
         {.dtype = PTOWSP_F16, .rows = 8, .cols = 16},
         tile,
         PTOWSP_UNSUPPORTED,
         "TEXP: src0 is f32, which it does not take (f32 on 910B; rule: operands)"},
        {"TEXP",
         {.dtype = PTOWSP_F32, .rows = 9, .cols = 16},
         tile,
         PTOWSP_UNSUPPORTED,
         "TEXP: src0 has 8 x 16 valid elements, and 9 x 16 are read (f32 on 910B; rule: operands)"},
        {"TEXP", tile, columns, PTOWSP_UNSUPPORTED,
         "TEXP: src0 is not row-major (f32 on 910B; rule: operands)"},
        {"TEXP",
         {PTOWSP_MEMORY_L0C, PTOWSP_F32, PTOWSP_LAYOUT_NZ, .rows = 16, .cols = 16},
         tile,
         PTOWSP_UNSUPPORTED,
         "TEXP: dst is in L0C, not in UB (f32 on 910B; rule: operands)"},
        {"TROWSUM", column, tile, PTOWSP_UNSUPPORTED,
         "TROWSUM: there is no scratch tile (f32 on 910B; rule: operands)"},
        {"TTRANS",
         {.dtype = PTOWSP_F32, .rows = 16, .cols = 8},
         tile,
         PTOWSP_UNSUPPORTED,
         "TTRANS: t is missing (f32 on 910B; rule: operands)"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fixture fault, *f = &fault;
        begin(f);
        ptowsp_value dst = alloc(f, cases[i].dst), src = alloc(f, cases[i].src);
        tell(f, "TEXPANDS", src, none, none, none, ptowsp_tile_const(f->k, 1));
        tell(f, cases[i].name, dst, src, none, none, none);
        char text[320];
        snprintf(text, sizeof text, "module: kernel k: instruction: %s", cases[i].text);
        assert_int_equal(good_end(f).id, 0);
        expect_module(f, cases[i].status, text);
    }
}

// What is read must have been written.
TEST(misuse__reading_what_was_not_written) {
    fixture fault, *f = &fault;
    begin(f);
    ptowsp_value d = T, s = T;
    tell(f, "TEXP", d, s, none, none, none);
    assert_int_equal(good_end(f).id, 0);
    expect_module(
        f, PTOWSP_INVALID_PARAMS,
        "module: kernel k: instruction: verify: tile 3 (8 x 16 f32 in UB) of instruction 2 "
        "(TEXP) is read before it is written (f32 on 910B; rule: tiles)");
}
