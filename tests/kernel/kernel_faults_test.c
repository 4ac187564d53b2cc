// Every mistake that can be made with the operations of tile kernels, and what is said about it:
// the operation's name and the numbers.

#include "kernel_faults.h"

// -- operands -------------------------------------------------------------------------------------

TEST(faults__wrong_operands_are_refused) {
    FAULT(INVALID_PARAMS, "add: operand 2 is no value", ptowsp_tile_add(f->x, none));
    FAULT(INVALID_PARAMS, "add: operand 1 is no value", ptowsp_tile_add(none, f->x));
    ptowsp_value lost = none;
    FAULT(INVALID_PARAMS, "mul: operand 2 is no value",
          (lost = f->x, lost.id = 4000, ptowsp_tile_mul(f->x, lost)));
    FAULT(INVALID_PARAMS, "add: o is an out parameter and cannot be read",
          ptowsp_tile_add(f->x, f->o));
    FAULT(INVALID_PARAMS, "exp: o is an out parameter and cannot be read", ptowsp_tile_exp(f->o));
    FAULT(INVALID_PARAMS, "matmul: o is an out parameter and cannot be read",
          ptowsp_tile_matmul(f->o, f->x));
    FAULT(INVALID_PARAMS, "load: o is an out parameter and cannot be read", ptowsp_tile_load(f->o));
    FAULT(INVALID_PARAMS, "slice: o is an out parameter and cannot be read",
          ptowsp_tile_slice(f->o, 0, 0, 1, 1));
    FAULT(INVALID_PARAMS, "exp: operand 1 is a scalar, not a tile", ptowsp_tile_exp(f->s));
    FAULT(INVALID_PARAMS, "rowsum: operand 1 is a scalar, not a tile",
          ptowsp_tile_rowsum(ptowsp_tile_const(f->k, 1)));
    FAULT(INVALID_PARAMS, "matmul: operand 2 is a scalar, not a tile",
          ptowsp_tile_matmul(f->x, f->s));
    FAULT(INVALID_PARAMS, "transpose: operand 1 is a scalar, not a tile",
          ptowsp_tile_transpose(f->s));
    FAULT(INVALID_PARAMS, "compare: operand 1 is a scalar, not a tile",
          ptowsp_tile_compare(f->s, PTOWSP_LT, f->x));
    FAULT(INVALID_PARAMS, "store: operand 2 is a scalar, not a tile",
          VOID(ptowsp_tile_store(f->o, f->s)));
    FAULT(INVALID_PARAMS, "add: neither operand is a tile", ptowsp_tile_add(f->s, f->s));
    FAULT(INVALID_PARAMS, "mul: neither operand is a tile",
          ptowsp_tile_mul(ptowsp_tile_const(f->k, 1), f->s));
    FAULT(UNSUPPORTED, "sub: its left operand is a scalar parameter", ptowsp_tile_sub(f->s, f->x));
    FAULT(UNSUPPORTED, "div: its left operand is a scalar parameter", ptowsp_tile_div(f->s, f->x));
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
    assert_int_equal(ptowsp_module_error(f.m).status, PTOWSP_OK);
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
    FAULT(INVALID_PARAMS, "parameter: tile z is 0 x 16; sizes are 1 to 16384",
          PARAM("z", PTOWSP_F32, 0, 16));
    FAULT(INVALID_PARAMS, "parameter: tile z is 1 x 16385; sizes are 1 to 16384",
          PARAM("z", PTOWSP_F32, 1, 16385));
    FAULT(INVALID_PARAMS, "parameter: tile z is -1 x 16; sizes are 1 to 16384",
          PARAM("z", PTOWSP_F32, PTOWSP_DYNAMIC, 16));
    FAULT(UNSUPPORTED, "parameter: tile z is f64, which no instruction loads",
          PARAM("z", PTOWSP_F64, 1, 16));
    FAULT(UNSUPPORTED, "parameter: tile z is i64, which no instruction loads",
          PARAM("z", PTOWSP_I64, 1, 16));
    FAULT(UNSUPPORTED, "parameter: tile z is bool, which no instruction loads",
          PARAM("z", PTOWSP_BOOL, 1, 16));
    FAULT(UNSUPPORTED, "parameter: tile z is none, which no instruction loads",
          PARAM("z", (ptowsp_dtype)999, 1, 16));
    FAULT(INVALID_PARAMS, "parameter: two are called x", PARAM("x", PTOWSP_F32, 1, 16));
    FAULT(INVALID_PARAMS, "parameter: two are called s", PARAM("s", PTOWSP_F32, 1, 16));
    FAULT(INVALID_PARAMS, "parameter: two are called x", ptowsp_tile_scalar(f->k, "x", PTOWSP_F32));
    FAULT(INVALID_PARAMS, "parameter: its name has 0 characters", PARAM("", PTOWSP_F32, 1, 16));
    FAULT(INVALID_PARAMS, "parameter: its name has 0 characters", PARAM(NULL, PTOWSP_F32, 1, 16));
    FAULT(INVALID_PARAMS, "parameter: its name has 64 characters",
          PARAM("0123456789012345678901234567890123456789012345678901234567890123", PTOWSP_F32, 1,
                1));
    FAULT(UNSUPPORTED, "parameter: scalar t is i32, not bool, i64, u64, f32 or f64",
          ptowsp_tile_scalar(f->k, "t", PTOWSP_I32));
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
    FAULT(INVALID_PARAMS, "store: x is an in parameter", VOID(ptowsp_tile_store(f->x, f->y)));
    FAULT(INVALID_PARAMS, "store: o is stored twice",
          (ptowsp_tile_store(f->o, f->x), VOID(ptowsp_tile_store(f->o, f->y))));
    FAULT(INVALID_PARAMS, "store_add: o is stored twice",
          (ptowsp_tile_store(f->o, f->x), VOID(ptowsp_tile_store_add(f->o, f->y))));
    FAULT(INVALID_PARAMS, "store_at: o is stored twice",
          (ptowsp_tile_store(f->o, f->x), VOID(ptowsp_tile_store_at(f->o, none, none, f->v))));
    FAULT(INVALID_PARAMS, "store: o is stored twice",
          (ptowsp_tile_store_at(f->o, none, none, f->v), VOID(ptowsp_tile_store(f->o, f->x))));
    FAULT(INVALID_PARAMS, "store: its destination is no parameter",
          VOID(ptowsp_tile_store(ptowsp_tile_exp(f->x), f->y)));
    FAULT(INVALID_PARAMS, "store: 1 x 16 into o of 8 x 16", VOID(ptowsp_tile_store(f->o, f->v)));
    FAULT(INVALID_PARAMS, "store: i32 into o of f32", VOID(ptowsp_tile_store(f->o, f->i)));
    FAULT(INVALID_PARAMS, "store: operand 1 is no value", VOID(ptowsp_tile_store(none, f->x)));
    FAULT(INVALID_PARAMS, "store: operand 2 is no value", VOID(ptowsp_tile_store(f->o, none)));
    FAULT(INVALID_PARAMS, "store: operand 2 is a mask",
          VOID(ptowsp_tile_store(f->o, ptowsp_tile_compare(f->x, PTOWSP_LT, f->y))));
    FAULT(INVALID_PARAMS, "store: f16 into o of f32",
          VOID(ptowsp_tile_store(f->o, ptowsp_tile_cvt(f->x, PTOWSP_F16, PTOWSP_ROUND_NEAREST))));
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
    FAULT(INVALID_PARAMS, "load: io is loaded after it was stored",
          (ptowsp_tile_store(f->io, f->x), ptowsp_tile_load(f->io)));
    FAULT(INVALID_PARAMS, "slice: io is loaded after it was stored",
          (ptowsp_tile_store_add(f->io, f->x), ptowsp_tile_slice(f->io, 0, 0, 1, 1)));
    FAULT(INVALID_PARAMS, "matmul: io is loaded after it was stored",
          (ptowsp_tile_store(f->io, f->x), ptowsp_tile_matmul(f->io, ptowsp_tile_transpose(f->x))));
}

TEST(faults__wrong_shapes_and_types_are_refused) {
    FAULT(INVALID_PARAMS, "add: 8 x 16 and 3 x 16",
          ptowsp_tile_add(f->x, PARAM("z", PTOWSP_F32, 3, 16)));
    FAULT(INVALID_PARAMS, "sub: 1 x 16 and 8 x 16: only the second operand may be a vector",
          ptowsp_tile_sub(f->v, f->x));
    FAULT(INVALID_PARAMS, "add: 8 x 16 and 16 x 8",
          ptowsp_tile_add(f->x, PARAM("z", PTOWSP_F32, 16, 8)));
    FAULT(INVALID_PARAMS, "max: f32 and i32; ptowsp_tile_cvt makes operand 2 f32",
          ptowsp_tile_max(f->x, f->i));
    FAULT(INVALID_PARAMS, "add: f32 and f16; ptowsp_tile_cvt makes operand 2 f32",
          ptowsp_tile_add(f->x, half_of(f)));
    FAULT(INVALID_PARAMS, "div: f16 and f32; ptowsp_tile_cvt makes operand 1 f32",
          ptowsp_tile_div(half_of(f), f->x));
    FAULT(INVALID_PARAMS, "sub: i32 and f16; ptowsp_tile_cvt makes operand 1 f16",
          ptowsp_tile_sub(f->i, half_of(f)));
    FAULT(INVALID_PARAMS, "min: f16 and i16; ptowsp_tile_cvt makes operand 2 f16",
          ptowsp_tile_min(half_of(f), PARAM("s16", PTOWSP_I16, 8, 16)));
    FAULT(INVALID_PARAMS, "mul: i16 and i32; ptowsp_tile_cvt makes operand 2 i16",
          ptowsp_tile_mul(PARAM("s16", PTOWSP_I16, 8, 16), f->i));
    FAULT(INVALID_PARAMS, "add: bf16 and f32; ptowsp_tile_cvt makes operand 1 f32",
          ptowsp_tile_add(PARAM("b16", PTOWSP_BF16, 8, 16), f->x));
    FAULT(INVALID_PARAMS, "mul: bf16 and i32; ptowsp_tile_cvt makes both f32",
          ptowsp_tile_mul(PARAM("b16", PTOWSP_BF16, 8, 16), f->i));
    FAULT(INVALID_PARAMS, "max: f16 and bf16; ptowsp_tile_cvt makes both f32",
          ptowsp_tile_max(half_of(f), PARAM("b16", PTOWSP_BF16, 8, 16)));
    FAULT(INVALID_PARAMS, "sub: i16 and bf16; ptowsp_tile_cvt makes both f32",
          ptowsp_tile_sub(PARAM("s16", PTOWSP_I16, 8, 16), PARAM("b16", PTOWSP_BF16, 8, 16)));
    FAULT(UNSUPPORTED, "add: operand 1 is i8, which it does not take",
          (byte_of(f), ptowsp_tile_add(f->x, f->x),
           ptowsp_tile_add(PARAM("b", PTOWSP_I8, 8, 16), f->x)));
    FAULT(UNSUPPORTED, "min: operand 2 is u32, which it does not take",
          ptowsp_tile_min(f->x, PARAM("b", PTOWSP_U32, 8, 16)));
    FAULT(UNSUPPORTED, "exp: operand 1 is i32, which it does not take", ptowsp_tile_exp(f->i));
    FAULT(UNSUPPORTED, "abs: operand 1 is i32, which it does not take", ptowsp_tile_abs(f->i));
    FAULT(UNSUPPORTED, "rowmean: operand 1 is i32, which it does not take",
          ptowsp_tile_rowmean(f->i));
    FAULT(UNSUPPORTED, "colsum: operand 1 is i8, which it does not take",
          ptowsp_tile_colsum(byte_of(f)));
    FAULT(INVALID_PARAMS, "row_broadcast: 1 x 16 is no vector of 8 values",
          ptowsp_tile_row_broadcast(f->x, f->v));
    FAULT(INVALID_PARAMS, "col_broadcast: 8 x 16 is no vector of 16 values",
          ptowsp_tile_col_broadcast(f->x, f->y));
    FAULT(INVALID_PARAMS,
          "matmul: 8 x 16 times 8 x 16: 16 columns on the left, 8 rows on the right",
          ptowsp_tile_matmul(f->x, f->y));
    FAULT(INVALID_PARAMS, "matmul: f32 and f16",
          ptowsp_tile_matmul(f->x, ptowsp_tile_transpose(half_of(f))));
    FAULT(UNSUPPORTED, "matmul: operand 1 is i32, which it does not take",
          ptowsp_tile_matmul(f->i, f->i));
    FAULT(LIMIT_EXCEEDED, "matmul: m 4096, k 1, n 16; they are 1 to 4095",
          ptowsp_tile_matmul(PARAM("a", PTOWSP_F32, 4096, 1), f->v));
    FAULT(LIMIT_EXCEEDED, "matmul: m 1, k 4096, n 1; they are 1 to 4095",
          ptowsp_tile_matmul(PARAM("a", PTOWSP_F32, 1, 4096), PARAM("b", PTOWSP_F32, 4096, 1)));
    FAULT(INVALID_PARAMS, "matmul_acc: acc is 8 x 16, not 8 x 8",
          ptowsp_tile_matmul_acc(f->x, f->x, ptowsp_tile_transpose(f->y)));
    FAULT(INVALID_PARAMS, "matmul_bias: bias is 1 x 16, not 1 x 8",
          ptowsp_tile_matmul_bias(f->x, ptowsp_tile_transpose(f->y), f->v));
    FAULT(UNSUPPORTED, "matmul_bias: operand 3 is i32, which it does not take",
          ptowsp_tile_matmul_bias(f->x, ptowsp_tile_transpose(f->y), f->i));
    FAULT(INVALID_PARAMS, "slice: 8 x 16 from (0, 1) of 8 x 16",
          ptowsp_tile_slice(f->x, 0, 1, 8, 16));
    FAULT(INVALID_PARAMS, "slice: 0 x 1 from (0, 0) of 8 x 16",
          ptowsp_tile_slice(f->x, 0, 0, 0, 1));
    FAULT(INVALID_PARAMS, "slice: 1 x 1 from (-1, 0) of 8 x 16",
          ptowsp_tile_slice(f->x, -1, 0, 1, 1));
    FAULT(INVALID_PARAMS, "slice: 9223372036854775807 x 1 from (9223372036854775807, 0) of 8 x 16",
          ptowsp_tile_slice(f->x, INT64_MAX, 0, INT64_MAX, 1));
    FAULT(INVALID_PARAMS, "load: its operand is no parameter",
          ptowsp_tile_load(ptowsp_tile_exp(f->x)));
    FAULT(UNSUPPORTED, "cvt: TCVT has no f32 to i8",
          ptowsp_tile_cvt(f->x, PTOWSP_I8, PTOWSP_ROUND_NEAREST));
    FAULT(UNSUPPORTED, "cvt: TCVT has no f32 to none",
          ptowsp_tile_cvt(f->x, (ptowsp_dtype)1000, PTOWSP_ROUND_NEAREST));
    FAULT(INVALID_PARAMS, "cvt: 5 is no rounding",
          ptowsp_tile_cvt(f->x, PTOWSP_I32, (ptowsp_round)5));
    FAULT(INVALID_PARAMS, "quantize: 1 x 16 is no vector of 8 values",
          ptowsp_tile_quantize(f->x, f->v));
    FAULT(UNSUPPORTED, "quantize: operand 1 is i32, which it does not take",
          ptowsp_tile_quantize(f->i, f->v));
    FAULT(UNSUPPORTED, "dequantize: operand 1 is f32, which it does not take",
          ptowsp_tile_dequantize(f->x, f->v, f->v));
    FAULT(UNSUPPORTED, "full: bool is no type of tiles",
          ptowsp_tile_full(f->k, PTOWSP_BOOL, 1, 1, 0));
    FAULT(UNSUPPORTED, "full: i64 is no type of tiles",
          ptowsp_tile_full(f->k, PTOWSP_I64, 1, 1, 0));
    FAULT(INVALID_PARAMS, "full: 0 x 1; sizes are 1 to 16384",
          ptowsp_tile_full(f->k, PTOWSP_F32, 0, 1, 0));
    FAULT(UNSUPPORTED, "iota: f32 is not i16, u16, i32 or u32",
          ptowsp_tile_iota(f->k, PTOWSP_F32, 8, 0));
    FAULT(INVALID_PARAMS, "iota: 1 x 16385; sizes are 1 to 16384",
          ptowsp_tile_iota(f->k, PTOWSP_I32, 16385, 0));
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
    FAULT(INVALID_PARAMS, "TCVT: it has no mode 5", mode_of(f, "TCVT", 5));
    FAULT(INVALID_PARAMS, "TABS: it has no mode 256", mode_of(f, "TABS", 256));
    FAULT(INVALID_PARAMS, "instruction: there is no instruction TWRONG", mode_of(f, "TWRONG", 0));
    FAULT(INVALID_PARAMS, "instruction: there is no instruction without a name",
          mode_of(f, NULL, 0));
}

TEST(faults__wrong_picking_are_refused) {
    FAULT(INVALID_PARAMS, "compare: 6 is no comparison",
          ptowsp_tile_compare(f->x, (ptowsp_compare)6, f->y));
    FAULT(UNSUPPORTED, "compare: i32 is compared with EQ only",
          ptowsp_tile_compare(f->i, PTOWSP_LT, f->i));
    FAULT(INVALID_PARAMS, "compare: 8 x 16 f32 and 1 x 16 f32",
          ptowsp_tile_compare(f->x, PTOWSP_LT, f->v));
    FAULT(INVALID_PARAMS, "select: operand 1 is no mask", ptowsp_tile_select(f->x, f->x, f->y));
    FAULT(INVALID_PARAMS, "select: a mask of 8 x 16 for 1 x 16",
          ptowsp_tile_select(mask_of(f), f->v, f->v));
    FAULT(INVALID_PARAMS, "select: 8 x 16 f32 and 8 x 16 i32",
          ptowsp_tile_select(mask_of(f), f->x, f->i));
    FAULT(INVALID_PARAMS, "add: operand 1 is a mask", ptowsp_tile_add(mask_of(f), f->x));
    FAULT(INVALID_PARAMS, "transpose: operand 1 is a mask", ptowsp_tile_transpose(mask_of(f)));
    FAULT(UNSUPPORTED, "sort32: operand 1 is i32, which it does not take",
          ptowsp_tile_sort32(f->i, f->i));
    FAULT(INVALID_PARAMS, "sort32: 8 x 16 scores and 1 x 32 indices",
          ptowsp_tile_sort32(f->x, ptowsp_tile_iota(f->k, PTOWSP_U32, 32, 0)));
    FAULT(LIMIT_EXCEEDED, "sort32: 8193 scores in a row; of f32 8192 at most",
          pairs_of(f, 1, 8193));
    FAULT(LIMIT_EXCEEDED, "sort32: 4097 scores in a row; of f16 4096 at most",
          pairs_as(f, PTOWSP_F16, 1, 4097));
    FAULT(UNSUPPORTED, "sort32: operand 1 is bf16, which it does not take",
          pairs_as(f, PTOWSP_BF16, 1, 32));
    FAULT(UNSUPPORTED, "sort32: rows of one score", pairs_of(f, 8, 1));
    FAULT(INVALID_PARAMS, "merge_sort: its operand is not sorted pairs",
          ptowsp_tile_merge_sort(f->v, 32));
    FAULT(UNSUPPORTED, "merge_sort: 2 rows; TMRGSORT merges one",
          ptowsp_tile_merge_sort(pairs_of(f, 2, 128), 32));
    FAULT(INVALID_PARAMS, "merge_sort: 128 pairs in runs of 48, which are whole multiples of 32",
          ptowsp_tile_merge_sort(pairs_of(f, 1, 128), 48));
    FAULT(INVALID_PARAMS, "merge_sort: 128 pairs in runs of 0, which are whole multiples of 32",
          ptowsp_tile_merge_sort(pairs_of(f, 1, 128), 0));
    // A pair of f16 takes four columns.
    FAULT(UNSUPPORTED, "merge_sort: 2 rows; TMRGSORT merges one",
          ptowsp_tile_merge_sort(pairs_as(f, PTOWSP_F16, 2, 128), 32));
    FAULT(INVALID_PARAMS, "merge_sort: 128 pairs in runs of 48, which are whole multiples of 32",
          ptowsp_tile_merge_sort(pairs_as(f, PTOWSP_F16, 1, 128), 48));
    FAULT(INVALID_PARAMS, "merge_sort: 1 runs; it merges 2, 3, or a multiple of 4",
          ptowsp_tile_merge_sort(pairs_as(f, PTOWSP_F16, 1, 128), 128));
    FAULT(INVALID_PARAMS, "topk_values: the first 33 of 32",
          ptowsp_tile_topk_values(pairs_as(f, PTOWSP_F16, 1, 32), 33));
    FAULT(INVALID_PARAMS, "topk_indices: its operand is not sorted pairs",
          ptowsp_tile_topk_indices(PARAM("half", PTOWSP_F16, 1, 128), 3));
    FAULT(INVALID_PARAMS, "merge_sort: 5 runs; it merges 2, 3, or a multiple of 4",
          ptowsp_tile_merge_sort(pairs_of(f, 1, 160), 32));
    FAULT(INVALID_PARAMS, "merge_sort: 1 runs; it merges 2, 3, or a multiple of 4",
          ptowsp_tile_merge_sort(pairs_of(f, 1, 128), 128));
    FAULT(INVALID_PARAMS, "topk_values: the first 0 of 32",
          ptowsp_tile_topk_values(pairs_of(f, 1, 32), 0));
    FAULT(INVALID_PARAMS, "topk_indices: the first 33 of 32",
          ptowsp_tile_topk_indices(pairs_of(f, 1, 32), 33));
    FAULT(INVALID_PARAMS, "topk_values: its operand is not sorted pairs",
          ptowsp_tile_topk_values(f->x, 3));
    FAULT(UNSUPPORTED, "gather: rows of 12 f32 are no whole blocks of 32 bytes",
          ptowsp_tile_gather(PARAM("z", PTOWSP_F32, 2, 12), f->i));
    FAULT(UNSUPPORTED, "gather: operand 2 is f32, which it does not take",
          ptowsp_tile_gather(f->x, f->y));
    FAULT(UNSUPPORTED, "gather: operand 1 is i8, which it does not take",
          ptowsp_tile_gather(byte_of(f), f->i));
    FAULT(UNSUPPORTED,
          "interleave: TINTERLEAVE of f32: 910B (A2/A3) has no such instruction (rule: element "
          "types)",
          ptowsp_tile_interleave(f->x, f->y));
    FAULT(INVALID_PARAMS, "interleave: 8 x 16 f32 and 8 x 16 i32",
          ptowsp_tile_interleave(f->x, f->i));
    FAULT(INVALID_PARAMS, "deinterleave: part 2 of 16 columns", ptowsp_tile_deinterleave(f->x, 2));
    FAULT(INVALID_PARAMS, "deinterleave: part 0 of 15 columns",
          ptowsp_tile_deinterleave(PARAM("z", PTOWSP_F32, 8, 15), 0));
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
    FAULT(INVALID_PARAMS, "exp: operand 1 is no value", ptowsp_tile_exp((ptowsp_value){f->k, 0}));
    FAULT(UNSUPPORTED, "full: none is no type of tiles",
          ptowsp_tile_full(f->k, PTOWSP_DTYPE_NONE, 1, 1, 0));
    FAULT(INVALID_PARAMS, "full: 1 x 0; sizes are 1 to 16384",
          ptowsp_tile_full(f->k, f32, 1, 0, 0));
    FAULT(INVALID_PARAMS, "full: 16385 x 1; sizes are 1 to 16384",
          ptowsp_tile_full(f->k, f32, 16385, 1, 0));
    FAULT(INVALID_PARAMS, "parameter: tile z is 1 x 0; sizes are 1 to 16384",
          PARAM("z", f32, 1, 0));
    FAULT(INVALID_PARAMS, "parameter: tile z is 16385 x 1; sizes are 1 to 16384",
          PARAM("z", f32, 16385, 1));
    FAULT(INVALID_PARAMS, "slice: 1 x 1 from (0, -1) of 8 x 16",
          ptowsp_tile_slice(f->x, 0, -1, 1, 1));
    FAULT(INVALID_PARAMS, "slice: 1 x 0 from (0, 0) of 8 x 16",
          ptowsp_tile_slice(f->x, 0, 0, 1, 0));
    FAULT(INVALID_PARAMS, "slice_at: operand 1 is a scalar, not a tile",
          ptowsp_tile_slice_at(f->s, none, none, 1, 1));
    FAULT(INVALID_PARAMS, "slice_at: 0 x 16 of 8 x 16",
          ptowsp_tile_slice_at(f->x, none, none, 0, 16));
    FAULT(INVALID_PARAMS, "slice_at: 8 x 17 of 8 x 16",
          ptowsp_tile_slice_at(f->x, none, none, 8, 17));
    FAULT(INVALID_PARAMS, "store_at: 8 x 32 into o of 8 x 16",
          VOID(ptowsp_tile_store_at(f->o, none, none, ptowsp_tile_full(f->k, f32, 8, 32, 0))));
    FAULT(INVALID_PARAMS, "store: 8 x 32 into o of 8 x 16",
          VOID(ptowsp_tile_store(f->o, ptowsp_tile_full(f->k, f32, 8, 32, 0))));
    FAULT(LIMIT_EXCEEDED, "matmul: m 8, k 16, n 4096; they are 1 to 4095",
          ptowsp_tile_matmul(f->x, ptowsp_tile_full(f->k, f32, 16, 4096, 0)));
    FAULT(INVALID_PARAMS, "matmul_acc: acc is 4 x 16, not 8 x 16",
          ptowsp_tile_matmul_acc(ptowsp_tile_full(f->k, f32, 4, 16, 0), f->x,
                                 ptowsp_tile_full(f->k, f32, 16, 16, 0)));
    FAULT(UNSUPPORTED, "quantize: rows of one element",
          ptowsp_tile_quantize(ptowsp_tile_full(f->k, f32, 8, 1, 0), f->v));
    FAULT(INVALID_PARAMS, "interleave: 8 x 16 f32 and 4 x 16 f32",
          ptowsp_tile_interleave(f->x, ptowsp_tile_full(f->k, f32, 4, 16, 0)));
    FAULT(INVALID_PARAMS, "interleave: 8 x 16 f32 and 8 x 8 f32",
          ptowsp_tile_interleave(f->x, ptowsp_tile_full(f->k, f32, 8, 8, 0)));
    FAULT(INVALID_PARAMS, "interleave: operand 2 is a scalar, not a tile",
          ptowsp_tile_interleave(f->x, f->s));
    FAULT(INVALID_PARAMS, "compare: 8 x 16 f32 and 8 x 8 f32",
          ptowsp_tile_compare(f->x, PTOWSP_LT, ptowsp_tile_full(f->k, f32, 8, 8, 0)));
    FAULT(INVALID_PARAMS, "compare: 8 x 16 f32 and 8 x 16 i32",
          ptowsp_tile_compare(f->x, PTOWSP_LT, f->i));
    FAULT(INVALID_PARAMS, "select: a mask of 8 x 16 for 8 x 8",
          ptowsp_tile_select(ptowsp_tile_compare(f->x, PTOWSP_LT, f->y),
                             ptowsp_tile_full(f->k, f32, 8, 8, 0), f->y));
    FAULT(INVALID_PARAMS, "select: 8 x 16 f32 and 4 x 16 f32",
          ptowsp_tile_select(ptowsp_tile_compare(f->x, PTOWSP_LT, f->y), f->x,
                             ptowsp_tile_full(f->k, f32, 4, 16, 0)));
    FAULT(INVALID_PARAMS, "select: 8 x 16 f32 and 8 x 8 f32",
          ptowsp_tile_select(ptowsp_tile_compare(f->x, PTOWSP_LT, f->y), f->x,
                             ptowsp_tile_full(f->k, f32, 8, 8, 0)));
    FAULT(INVALID_PARAMS, "sort32: 8 x 16 scores and 2 x 16 indices",
          ptowsp_tile_sort32(f->x, ptowsp_tile_full(f->k, PTOWSP_U32, 2, 16, 0)));
    FAULT(INVALID_PARAMS, "merge_sort: 96 pairs in runs of 64, which are whole multiples of 32",
          ptowsp_tile_merge_sort(ptowsp_tile_sort32(ptowsp_tile_full(f->k, f32, 1, 96, 0),
                                                    ptowsp_tile_iota(f->k, PTOWSP_U32, 96, 0)),
                                 64));
    FAULT(INVALID_PARAMS, "alloc: 8 x 8 for a value of 8 x 16",
          ptowsp_tile_alloc(f->k, (&(ptowsp_alloc_desc){.dtype = f32, .cols = 8, .like = f->x})));
    FAULT(INVALID_PARAMS, "instruction: there is no instruction without a name",
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
