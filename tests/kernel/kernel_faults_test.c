// Every mistake that can be made with the operations of tile kernels, and what is said about it:
// the operation's name and the numbers.

#include "kernel_faults.h"

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
    REFUSED("instruction: there is no instruction TWRONG", mode_of(f, "TWRONG", 0));
    REFUSED("instruction: there is no instruction without a name", mode_of(f, NULL, 0));
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
