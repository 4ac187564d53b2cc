// Mistakes with tile kernels as wholes: beginning and ending them, instructions as they are, what
// does not fit.

#include "kernel_faults.h"

// -- beginning and ending -------------------------------------------------------------------------

static void begin_other(fixture *f, const char *name, uint32_t axis_count,
                        const ptowsp_machine *machine) {
    ptowsp_body_desc desc = {.name = name, .axis_count = axis_count, .machine = machine};
    assert_null(ptowsp_kernel_begin(f->m, &desc));
}

#define NO_NAME                                                                                    \
    "module: the name of this kernel is not 1 to 63 printable ASCII characters without quotes "    \
    "and "                                                                                         \
    "backslash"

TEST(misuse__wrong_descriptions_are_refused) {
    fixture f;
    begin(&f);
    assert_null(ptowsp_kernel_begin(f.m, NULL));
    expect_module(&f, PTOWSP_INVALID_PARAMS, "module: kernel: desc is NULL");
    begin(&f);
    begin_other(&f, NULL, 0, NULL);
    expect_module(&f, PTOWSP_INVALID_PARAMS, "module: the name of this kernel is NULL");
    begin(&f);
    begin_other(&f, "", 0, NULL);
    expect_module(&f, PTOWSP_INVALID_PARAMS, NO_NAME);
    begin(&f);
    begin_other(&f, "wide", 9, NULL);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel wide: 9 axis arguments are more than 8");
    begin(&f);
    ptowsp_machine machine = ptowsp_machine_910b();
    machine.family = (ptowsp_family)2;
    begin_other(&f, "odd", 0, &machine);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel odd: its machine has no such family, no clock, a memory of "
                  "more than 64 MiB, or a name with quotes or bytes that are not printable");
    begin(&f);
    machine = ptowsp_machine_950pr();
    machine.clock_mhz = 0;
    begin_other(&f, "odd", 0, &machine);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel odd: its machine has no such family, no clock, a memory of "
                  "more than 64 MiB, or a name with quotes or bytes that are not printable");
}

TEST(misuse__names_of_machines_can_be_in_texts) {
    fixture f;
    begin(&f);
    ptowsp_machine machine = ptowsp_machine_910b();
    memcpy(machine.name, "a\nb", 4);
    begin_other(&f, "odd", 0, &machine);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel odd: its machine has no such family, no clock, a memory of "
                  "more than 64 MiB, or a name with quotes or bytes that are not printable");
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
    assert_int_equal(ptowsp_program_create(f.context, f.m, NULL, &program), PTOWSP_INVALID_PARAMS);
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

static ptowsp_value alloc(fixture *f, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    ptowsp_alloc_desc desc = {.dtype = dtype, .rows = rows, .cols = cols};
    return ptowsp_tile_alloc(f->k, &desc);
}

static ptowsp_value alloc_as(fixture *f, ptowsp_alloc_desc desc) {
    return ptowsp_tile_alloc(f->k, &desc);
}

static ptowsp_value tell(fixture *f, const char *name, ptowsp_value dst, ptowsp_value src0,
                         ptowsp_value src1, ptowsp_value tmp, ptowsp_value scalar) {
    ptowsp_instruction_desc desc = {
        .name = name, .dst[0] = dst, .src[0] = src0, .src[1] = src1, .tmp = tmp, .scalar = scalar};
    ptowsp_instruction(f->k, &desc);
    return none;
}

#define T alloc(f, PTOWSP_F32, 8, 16)

TEST(misuse__wrong_alloc_are_refused) {
    const ptowsp_alloc_desc zero = {PTOWSP_MEMORY_UB, PTOWSP_F32, PTOWSP_LAYOUT_ROW_MAJOR, 0, 0,
                                    {NULL, 0}};
    INVALID("alloc: desc is NULL", alloc(f->k, NULL));
    REFUSED("alloc: 0 x 0; sizes are 1 to 16384", alloc_as(f, zero));
    FAULT(UNSUPPORTED, "alloc: bool is no type of tiles", alloc(f, PTOWSP_BOOL, 8, 16));
    FAULT(UNSUPPORTED, "alloc: none is no type of tiles", alloc(f, (ptowsp_dtype)77, 8, 16));
    REFUSED("alloc: 8 x 16385; sizes are 1 to 16384", alloc(f, PTOWSP_F32, 8, 16385));
    ptowsp_alloc_desc desc = zero;
    desc.memory = (ptowsp_memory)PTOWSP_MEMORY_COUNT;
    REFUSED("alloc: no such memory or layout", alloc_as(f, desc));
    desc = zero;
    desc.layout = (ptowsp_layout)77;
    REFUSED("alloc: no such memory or layout", alloc_as(f, desc));
    desc = zero;
    desc.rows = 4;
    REFUSED("alloc: 4 x 16 for a value of 8 x 16", (desc.like = f->x, alloc_as(f, desc)));
    REFUSED("alloc: `like` is no tile", (desc.like = f->s, alloc_as(f, desc)));
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

// An instruction whose operands the device does not take: found when the kernel ends. All its
// sources have been written before.
static void expect_refused(ptowsp_status status, const char *text, const char *name,
                           ptowsp_alloc_desc dst, ptowsp_alloc_desc src, bool has_tmp) {
    fixture fault, *f = &fault;
    begin(f);
    ptowsp_value d = alloc_as(f, dst), s = alloc_as(f, src), tmp = alloc(f, PTOWSP_F32, 8, 16);
    if (src.memory == PTOWSP_MEMORY_UB) {
        tell(f, "TEXPANDS", s, none, none, none, ptowsp_tile_const(f->k, 1));
    } else {
        tell(f, "TLOAD", s, f->x, none, none, none);
    }
    tell(f, name, d, s, none, has_tmp ? tmp : none, none);
    char all[320];
    snprintf(all, sizeof all, "module: kernel k: %s", text);
    assert_int_equal(good_end(f).id, 0);
    expect_module(f, status, all);
}

// On A5: twice the half of an odd number of columns is not that number.
TEST(misuse__columns_that_are_interleaved_again_are_refused) {
    fixture fault, *f = &fault;
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    begin_with(f, &a5);
    ptowsp_value half = ptowsp_tile_deinterleave(PARAM("pairs", PTOWSP_F32, 8, 32), 0);
    assert_int_not_equal(half.id, 0);
    expect(f, ptowsp_tile_interleave(half, half), PTOWSP_UNSUPPORTED,
           "interleave: x has every second column of what a task may have in part");
}

TEST(misuse__wrong_operands_of_instructions_are_refused) {
    const ptowsp_alloc_desc tile = {PTOWSP_MEMORY_UB, PTOWSP_F32, PTOWSP_LAYOUT_ROW_MAJOR, 8, 16,
                                    {NULL, 0}};
    ptowsp_alloc_desc d = tile, s = tile;
    d.cols = 12;  // rows of 48 bytes
    expect_refused(PTOWSP_INVALID_PARAMS,
                   "instruction: verify: tile 2 (8 x 12 f32 in UB) of instruction 4 (TEXP) has "
                   "rows that are no "
                   "multiple of 32 (f32 on 910B; rule: tiles)",
                   "TEXP", d, tile, false);
    d = tile;
    d.dtype = PTOWSP_F16;
    expect_refused(
        PTOWSP_UNSUPPORTED,
        "instruction: TEXP: src0 is f32, which it does not take (f32 on 910B; rule: operands)",
        "TEXP", d, tile, false);
    d = tile;
    d.rows = 9;
    expect_refused(PTOWSP_UNSUPPORTED,
                   "instruction: TEXP: src0 has 8 x 16 valid elements, and 9 x 16 are read (f32 on "
                   "910B; rule: operands)",
                   "TEXP", d, tile, false);
    s.layout = PTOWSP_LAYOUT_COL_MAJOR;
    expect_refused(PTOWSP_UNSUPPORTED,
                   "instruction: TEXP: src0 is not row-major (f32 on 910B; rule: operands)", "TEXP",
                   tile, s, false);
    d = tile;
    d.memory = PTOWSP_MEMORY_L0C;
    d.layout = PTOWSP_LAYOUT_NZ;
    d.rows = 16;
    expect_refused(PTOWSP_UNSUPPORTED,
                   "instruction: TEXP: dst is in L0C, not in UB (f32 on 910B; rule: operands)",
                   "TEXP", d, tile, false);
    d = tile;
    d.cols = 1;
    d.layout = PTOWSP_LAYOUT_COL_MAJOR;
    expect_refused(PTOWSP_UNSUPPORTED,
                   "instruction: TROWSUM: there is no scratch tile (f32 on 910B; rule: operands)",
                   "TROWSUM", d, tile, false);
    d = tile;
    d.rows = 16;
    d.cols = 8;
    expect_refused(PTOWSP_UNSUPPORTED,
                   "instruction: TTRANS: t is missing (f32 on 910B; rule: operands)", "TTRANS", d,
                   tile, false);
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
