// The rules of types, walked: for every instruction that has some, a kernel of it in each type and
// for each machine, which is made, goes through f32, or is refused. What is expected stands here,
// from PTO-ISA's documentation and static assertions; the table itself is src/kernel/legal.h.

#include "../src/kernel/legal.h"
#include "../src/kernel/compiled.h"
#include "../src/workload/module.h"

#include "test.h"

typedef enum shape { BINARY, SCALAR, ROW, COL, ROW_REDUCE, COL_REDUCE, UNARY } shape;

typedef struct rule {
    const char *name;
    shape shape;
    const char *types, *wide, *a5;  // on 910B; there through f32; on 950PR
} rule;

#define BIN  "f16 f32 i16 i32 "
#define FULL "f16 bf16 f32 i8 i16 i32 u8 u16 u32 "
#define HALF "f16 f32 "

static const rule rules[] = {
    {"TADD", BINARY, BIN, "bf16 ", FULL},
    {"TSUB", BINARY, BIN, "bf16 ", FULL},
    {"TMUL", BINARY, BIN, "bf16 ", FULL},
    {"TMAX", BINARY, BIN, "bf16 ", FULL},
    {"TMIN", BINARY, BIN, "bf16 ", FULL},
    {"TDIV", BINARY, HALF, "bf16 i16 ", FULL},
    {"TADDS", SCALAR, BIN, "bf16 ", FULL},
    {"TSUBS", SCALAR, BIN, "bf16 ", FULL},
    {"TMULS", SCALAR, BIN, "bf16 ", FULL},
    {"TMAXS", SCALAR, BIN, "bf16 ", FULL},
    {"TMINS", SCALAR, BIN, "bf16 ", FULL},
    {"TDIVS", SCALAR, BIN, "bf16 ", FULL},
    {"TSDIV", SCALAR, BIN, "bf16 ", FULL},
    {"TROWEXPANDADD", ROW, BIN, "bf16 ", FULL},
    {"TROWEXPANDSUB", ROW, BIN, "bf16 ", FULL},
    {"TROWEXPANDMUL", ROW, BIN, "bf16 ", FULL},
    {"TROWEXPANDDIV", ROW, HALF, "bf16 i16 ", FULL},
    {"TROWEXPANDMAX", ROW, BIN, "bf16 ", FULL},
    {"TROWEXPANDMIN", ROW, BIN, "bf16 ", FULL},
    {"TROWEXPANDEXPDIF", ROW, HALF, "bf16 ", "f16 bf16 f32 "},
    {"TCOLEXPANDADD", COL, BIN, "bf16 ", FULL},
    {"TCOLEXPANDSUB", COL, BIN, "bf16 ", FULL},
    {"TCOLEXPANDMUL", COL, BIN, "bf16 ", FULL},
    {"TCOLEXPANDDIV", COL, HALF, "bf16 i16 ", FULL},
    {"TCOLEXPANDMAX", COL, BIN, "bf16 ", FULL},
    {"TCOLEXPANDMIN", COL, BIN, "bf16 ", FULL},
    {"TCOLEXPANDEXPDIF", COL, HALF, "bf16 ", "f16 bf16 f32 "},
    {"TROWSUM", ROW_REDUCE, BIN, "bf16 ", FULL},
    {"TROWMAX", ROW_REDUCE, BIN, "bf16 ", FULL},
    {"TROWMIN", ROW_REDUCE, BIN, "bf16 ", FULL},
    {"TROWPROD", ROW_REDUCE, BIN, "bf16 ", FULL},
    {"TCOLSUM", COL_REDUCE, BIN, "bf16 ", FULL},
    {"TCOLMAX", COL_REDUCE, BIN, "bf16 ", FULL},
    {"TCOLMIN", COL_REDUCE, BIN, "bf16 ", FULL},
    {"TCOLPROD", COL_REDUCE, BIN, "bf16 ", FULL},
    {"TEXP", UNARY, HALF, "bf16 ", "f16 bf16 f32 "},
    {"TLOG", UNARY, HALF, "bf16 ", "f16 bf16 f32 "},
    {"TSQRT", UNARY, HALF, "bf16 ", "f16 bf16 f32 "},
    {"TRSQRT", UNARY, HALF, "bf16 ", "f16 bf16 f32 "},
    {"TABS", UNARY, HALF, "bf16 ", "f16 bf16 f32 "},
    {"TNEG", UNARY, BIN, "bf16 ", FULL},
    {"TRELU", UNARY, "f16 f32 i32 ", "bf16 ", "f16 bf16 f32 i32 "},
};
enum { RULE_COUNT = sizeof rules / sizeof rules[0] };

static const ptowsp_dtype dtypes[] = {PTOWSP_F16, PTOWSP_BF16, PTOWSP_F32, PTOWSP_I8, PTOWSP_I16,
                                      PTOWSP_I32, PTOWSP_U8,   PTOWSP_U16, PTOWSP_U32};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

// A set is words with a space behind each.
static bool has(const char *set, ptowsp_dtype dtype) {
    char word[16];
    snprintf(word, sizeof word, "%s ", ptowsp_dtype_name(dtype));
    for (const char *at = strstr(set, word); at; at = strstr(at + 1, word)) {
        if (at == set || at[-1] == ' ') {
            return true;
        }
    }
    return false;
}

static ptowsp_value alloc(ptowsp_body *k, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    ptowsp_alloc_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.dtype = dtype;
    desc.rows = rows;
    desc.cols = cols;
    desc.layout = cols == 1 ? PTOWSP_LAYOUT_COL_MAJOR : PTOWSP_LAYOUT_ROW_MAJOR;
    return ptowsp_tile_alloc(k, &desc);
}

static void build(ptowsp_body *k, const rule *r, ptowsp_dtype dtype, bool is_param) {
    int64_t rows = r->shape == COL_REDUCE ? 1 : 32, cols = r->shape == ROW_REDUCE ? 1 : 64;
    ptowsp_instruction_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = r->name;
    desc.src[0] = ptowsp_tile_in(k, "x", dtype, 32, 64);
    desc.dst[0] = alloc(k, dtype, rows, cols);
    if (r->shape == BINARY || r->shape == ROW || r->shape == COL) {
        desc.src[1] =
            ptowsp_tile_in(k, "y", dtype, r->shape == COL ? 1 : 32, r->shape == ROW ? 1 : 64);
    } else if (r->shape == SCALAR) {
        desc.scalar = is_param ? ptowsp_tile_scalar(k, "s", PTOWSP_F64) : ptowsp_tile_const(k, 3);
    } else if (r->shape == ROW_REDUCE) {
        desc.tmp = alloc(k, dtype, 32, 64);
    }
    ptowsp_instruction(k, &desc);
    ptowsp_tile_store(ptowsp_tile_out(k, "z", dtype, rows, cols), desc.dst[0]);
}

static uint32_t count_of(ptowsp_module *m, ptowsp_kernel kernel, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < ptowsp_kernel_insn_count(m, kernel); i++) {
        count += !strcmp(ptowsp_kernel_insn_at(m, kernel, i, NULL).name, name);
    }
    return count;
}

static void check(const rule *r, ptowsp_dtype dtype, bool is_a5, bool is_param) {
    ptowsp_context *context;
    ptowsp_module *m;
    assert_int_equal(ptowsp_context_create(NULL, &context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(context, NULL, &m), PTOWSP_OK);
    ptowsp_machine machine = is_a5 ? ptowsp_machine_950pr() : ptowsp_machine_910b();
    ptowsp_body_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "k";
    desc.machine = is_a5 ? &machine : NULL;  // 910B is the default
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    build(k, r, dtype, is_param);
    ptowsp_kernel kernel = ptowsp_kernel_end(k);
    ptowsp_error error = ptowsp_module_error(m);
    bool is_wide = !is_a5 && has(r->wide, dtype), is_there = has(is_a5 ? r->a5 : r->types, dtype);
    if (is_wide || is_there) {
        if (error.status != PTOWSP_OK) {
            fail_msg("%s of %s: %s", r->name, ptowsp_dtype_name(dtype), error.text);
        }
        assert_int_equal(count_of(m, kernel, "TCVT") > 0, is_wide);
    } else {
        char text[160], machine_text[64];
        snprintf(machine_text, sizeof machine_text, "%s (%s)", machine.name,
                 is_a5 ? "A5" : "A2/A3");
        snprintf(text, sizeof text,
                 "module: kernel k: instruction: %s: %s is not for %s, which has ", r->name,
                 ptowsp_dtype_name(dtype), machine_text);
        assert_int_equal(error.status, PTOWSP_UNSUPPORTED);
        if (strncmp(error.text, text, strlen(text)) != 0) {
            fail_msg("%s, not %s", error.text, text);
        }
    }
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

static void legal__every_instruction_takes_the_types_of_its_machine(void **state) {
    (void)state;
    for (int i = 0; i < RULE_COUNT; i++) {
        for (int d = 0; d < DTYPE_COUNT; d++) {
            check(&rules[i], dtypes[d], false, false);
            check(&rules[i], dtypes[d], true, false);
            if (rules[i].shape == SCALAR) {
                check(&rules[i], dtypes[d], false, true);
                check(&rules[i], dtypes[d], true, true);
            }
        }
    }
}

// Every row of the table is one of the above.
static void legal__every_row_of_the_table_is_tested(void **state) {
    (void)state;
    int count = 0;
    for (int op = 0; op < PTOISA_OP_COUNT; op++) {
        const pwsp_legal_row *row = pwsp_legal_row_of((ptoisa_op)op);
        bool is_found = false;
        for (int i = 0; i < RULE_COUNT; i++) {
            is_found = is_found || !strcmp(rules[i].name, ptoisa_op_name((ptoisa_op)op));
        }
        assert_int_equal(is_found, row != NULL);
        count += row != NULL;
    }
    assert_int_equal(count, RULE_COUNT);
}

// i32 is refused with what the machine has; a kernel that never needs the quotient is made.
static void legal__refusals_name_kernel_operation_type_and_machine(void **state) {
    (void)state;
    for (int is_dead = 0; is_dead < 2; is_dead++) {
        ptowsp_context *context;
        ptowsp_module *m;
        assert_int_equal(ptowsp_context_create(NULL, &context), PTOWSP_OK);
        assert_int_equal(ptowsp_module_create(context, NULL, &m), PTOWSP_OK);
        ptowsp_body_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.name = "ratio";
        ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
        ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_I32, 8, 8);
        ptowsp_value y = ptowsp_tile_div(x, ptowsp_tile_in(k, "y", PTOWSP_I32, 8, 1));
        ptowsp_tile_store(ptowsp_tile_out(k, "z", PTOWSP_I32, 8, 8), is_dead ? x : y);
        ptowsp_kernel_end(k);
        assert_string_equal(ptowsp_module_error(m).text,
                            is_dead
                                ? ""
                                : "module: kernel ratio: div: TROWEXPANDDIV: i32 is not for 910B "
                                  "(A2/A3), which has f16, bf16, f32, i16");
        ptowsp_module_destroy(m);
        ptowsp_context_destroy(context);
    }
}

// TMATMUL, static: Left.Rows == Acc.Rows, Left.Cols == Right.Rows, Right.Cols == Acc.Cols.
static void check_product(const pwsp_tile_code *code, uint32_t *count) {
    for (uint32_t i = 0; i < code->insn_count; i++) {
        const pwsp_insn *insn = &code->insns[i];
        if (insn->op == PTOISA_TMATMUL || insn->op == PTOISA_TMATMUL_ACC) {
            uint32_t from = insn->op == PTOISA_TMATMUL_ACC;
            const pwsp_list_tile *acc = &code->tiles[insn->dst[0]],
                                 *left = &code->tiles[insn->src[from]],
                                 *right = &code->tiles[insn->src[from + 1]];
            assert_int_equal(left->rows, acc->rows);
            assert_int_equal(left->cols, right->rows);
            assert_int_equal(right->cols, acc->cols);
            assert_int_equal(left->rows, (acc->valid_rows.max + 15) / 16 * 16);
            *count += 1;
        }
    }
}

static void legal__sizes_of_factors_and_products_go_together(void **state) {
    (void)state;
    static const ptowsp_dtype factors[] = {PTOWSP_I8, PTOWSP_F16, PTOWSP_BF16, PTOWSP_F32};
    static const int64_t sizes[][3] = {{1, 1, 1},    {16, 32, 16},   {17, 33, 17},
                                       {40, 48, 24}, {16, 1024, 64}, {129, 40, 33}};
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t *size = sizes[i / 4];
        ptowsp_context *context;
        ptowsp_module *m;
        assert_int_equal(ptowsp_context_create(NULL, &context), PTOWSP_OK);
        assert_int_equal(ptowsp_module_create(context, NULL, &m), PTOWSP_OK);
        ptowsp_body_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.name = "k";
        ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
        ptowsp_value a = ptowsp_tile_in(k, "a", factors[i % 4], size[0], size[1]);
        ptowsp_value b = ptowsp_tile_in(k, "b", factors[i % 4], size[1], size[2]);
        ptowsp_dtype dtype = i % 4 == 0 ? PTOWSP_I32 : PTOWSP_F32;
        ptowsp_tile_store(ptowsp_tile_out(k, "c", dtype, size[0], size[2]),
                          ptowsp_tile_matmul(a, b));
        ptowsp_kernel kernel = ptowsp_kernel_end(k);
        assert_string_equal(ptowsp_module_error(m).text, "");
        uint32_t count = 0;
        check_product(PWSP_KERNEL(m, kernel.id)->code, &count);
        assert_true(count >= 1);
        ptowsp_module_destroy(m);
        ptowsp_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legal__every_instruction_takes_the_types_of_its_machine),
        cmocka_unit_test(legal__every_row_of_the_table_is_tested),
        cmocka_unit_test(legal__sizes_of_factors_and_products_go_together),
        cmocka_unit_test(legal__refusals_name_kernel_operation_type_and_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
