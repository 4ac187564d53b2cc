// The rules of types, walked: for every instruction that has some, a kernel of it in each type and
// for each machine, which is made, goes through f32, or is refused. What is expected stands here,
// from PTO-ISA's documentation and static assertions; the table itself is src/kernel/legal.h.

#include "src/kernel/legal.h"
#include "src/kernel/compiled.h"
#include "src/workload/module.h"

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
    ptowsp_alloc_desc desc = {.dtype = dtype,
                              .rows = rows,
                              .cols = cols,
                              .layout =
                                  cols == 1 ? PTOWSP_LAYOUT_COL_MAJOR : PTOWSP_LAYOUT_ROW_MAJOR};
    return ptowsp_tile_alloc(k, &desc);
}

static void build(ptowsp_body *k, const rule *r, ptowsp_dtype dtype, bool is_param) {
    int64_t rows = r->shape == COL_REDUCE ? 1 : 32, cols = r->shape == ROW_REDUCE ? 1 : 64;
    ptowsp_instruction_desc desc = {.name = r->name,
                                    .src[0] = ptowsp_tile_in(k, "x", dtype, 32, 64)};
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
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_machine machine = is_a5 ? ptowsp_machine_950pr() : ptowsp_machine_910b();
    ptowsp_body_desc desc = {.name = "k"};
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

TEST(legal__every_instruction_takes_the_types_of_its_machine) {
    TEST_GRID(int, i, RULE_COUNT, d, DTYPE_COUNT) {
        check(&rules[i], dtypes[d], false, false);
        check(&rules[i], dtypes[d], true, false);
        if (rules[i].shape == SCALAR) {
            check(&rules[i], dtypes[d], false, true);
            check(&rules[i], dtypes[d], true, true);
        }
    }
}

// Every row of the table is one of the above.
TEST(legal__every_row_of_the_table_is_tested) {
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

TEST(legal__sizes_of_factors_and_products_go_together) {
    static const ptowsp_dtype factors[] = {PTOWSP_I8, PTOWSP_F16, PTOWSP_BF16, PTOWSP_F32};
    static const int64_t sizes[][3] = {{1, 1, 1},    {16, 32, 16},   {17, 33, 17},
                                       {40, 48, 24}, {16, 1024, 64}, {129, 40, 33}};
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t *size = sizes[i / 4];
        ptowsp_context *context = test_context(NULL);
        ptowsp_module *m = test_module(context, NULL);
        ptowsp_body_desc desc = {.name = "k"};
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

// -- forms ----------------------------------------------------------------------------------------

// What an instruction is given here, and what must hold of its list: `tiles` has a letter for each
// destination and source, as in the table; `sizes` R rows, C columns, M masks, G gathers, W whole runs, P products;
// `scratch` L like the source, T transposed, B 32 bytes, Q as many rows as are whole 8s (A2/A3);
// `effect` A apart, S spoilt (both A2/A3). '-' is none.
typedef struct form {
    const char *name, *tiles;
    char sizes, scratch, effect;
} form;

static const form forms[] = {
    {"TLOAD", "R:", '4', '-', '-'},
    {"TSTORE", ":R", '4', '-', '-'},
    {"TTRANS", "R:R", '-', 'T', '-'},
    {"TROWSUM", "C:R", 'R', 'L', '-'},
    {"TROWMAX", "C:R", '-', 'L', '-'},
    {"TROWMIN", "C:R", '-', 'L', '-'},
    {"TROWPROD", "C:R", '-', 'L', '-'},
    {"TROWARGMAX", "C:R", '-', 'L', '-'},
    {"TROWARGMIN", "C:R", '-', 'L', '-'},
    {"TCOLSUM", "R:R", 'C', '-', '-'},
    {"TCOLMAX", "R:R", 'C', '-', '-'},
    {"TCOLMIN", "R:R", 'C', '-', '-'},
    {"TCOLPROD", "R:R", 'C', '-', '-'},
    {"TRSQRT", "R:R", '-', '-', 'A'},
    {"TRECIP", "R:R", '-', '-', 'A'},
    {"TANDS", "R:R", '-', '-', 'A'},
    {"TORS", "R:R", '-', '-', 'A'},
    {"TCMP", "R:R,R", 'M', '-', '-'},
    {"TCMPS", "R:R", 'M', '-', '-'},
    {"TSEL", "R:R,R,R", 'M', 'B', '-'},
    {"TSELS", "R:R,R", 'M', 'B', '-'},
    {"TGATHERMASK", "R:R", 'G', '-', '-'},
    {"TSORT32", "R:R,R", 'W', '-', '-'},
    {"TQUANT", "R:R,C", '-', 'Q', 'S'},
    {"TMATMUL", "A:L,Q", 'P', '-', '-'},
    {"TMATMUL_ACC", "A:A,L,Q", 'P', '-', '-'},
    {"TMATMUL_BIAS", "A:L,Q,B", 'P', '-', '-'},
    {"TGEMV", "A:L,Q", 'P', '-', '-'},
    {"TGEMV_ACC", "A:A,L,Q", 'P', '-', '-'},
    {"TGEMV_BIAS", "A:L,Q,B", 'P', '-', '-'},
};
enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

// Which step is one too far.
typedef enum too_far { NOTHING, DST, SIZE, SCRATCH } too_far;

// With the valid sizes of `like`, if it is given.
static ptowsp_value place_like(ptowsp_body *k, ptowsp_memory memory, ptowsp_layout layout,
                               ptowsp_dtype dtype, int64_t rows, int64_t cols, ptowsp_value like) {
    ptowsp_alloc_desc desc = {.memory = memory,
                              .layout = layout,
                              .dtype = dtype,
                              .rows = rows,
                              .cols = cols,
                              .like = like};
    return ptowsp_tile_alloc(k, &desc);
}

static ptowsp_value place(ptowsp_body *k, ptowsp_memory memory, ptowsp_layout layout,
                          ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    static const ptowsp_value none = {NULL, 0};
    return place_like(k, memory, layout, dtype, rows, cols, none);
}

static void tell(ptowsp_body *k, const char *name, ptowsp_value dst, ptowsp_value src) {
    ptowsp_instruction_desc desc = {.name = name, .dst[0] = dst, .src[0] = src};
    ptowsp_instruction(k, &desc);
}

// 16 x 16 by 16 x 32; the result one box too wide, or in UB.
static void build_product(ptowsp_body *k, const form *f, too_far which, bool is_a5) {
    bool is_acc = strstr(f->name, "ACC"), is_bias = strstr(f->name, "BIAS");
    bool is_row = f->name[1] == 'G';
    const ptowsp_dtype f32 = PTOWSP_F32;
    const ptowsp_layout nz = PTOWSP_LAYOUT_NZ, zn = PTOWSP_LAYOUT_ZN;
    int64_t rows = is_row ? 1 : 16;
    ptowsp_value of_a = ptowsp_tile_in(k, "a", f32, is_row ? 1 : 16, 16);
    ptowsp_value of_c = ptowsp_tile_in(k, "like", f32, is_row ? 1 : 16, 32);
    ptowsp_value a1 = place_like(k, PTOWSP_MEMORY_L1, nz, f32, 16, 16, of_a);
    ptowsp_value b1 = place(k, PTOWSP_MEMORY_L1, nz, f32, 16, 32);
    ptowsp_value a =
        place_like(k, PTOWSP_MEMORY_L0A, is_a5 ? nz : PTOWSP_LAYOUT_ZZ, f32, 16, 16, of_a);
    ptowsp_value b = place(k, PTOWSP_MEMORY_L0B, zn, f32, 16, 32);
    tell(k, "TLOAD", a1, of_a);
    tell(k, "TLOAD", b1, ptowsp_tile_in(k, "b", f32, 16, 32));
    tell(k, "TMOV", a, a1);
    tell(k, "TMOV", b, b1);
    ptowsp_instruction_desc desc = {.name = f->name};
    desc.dst[0] =
        which == DST ? place(k, PTOWSP_MEMORY_UB, PTOWSP_LAYOUT_ROW_MAJOR, f32, 16, 32)
                     : place_like(k, PTOWSP_MEMORY_L0C, nz, f32, which == SIZE ? 32 : 16, 32, of_c);
    uint32_t at = 0;
    if (is_acc) {
        desc.src[at++] = desc.dst[0];
        ptowsp_instruction_desc first = desc;
        first.name = is_row ? "TGEMV" : "TMATMUL";
        first.src[0] = a;
        first.src[1] = b;
        ptowsp_instruction(k, &first);
    }
    desc.src[at++] = a;
    desc.src[at++] = b;
    if (is_bias) {
        ptowsp_value row = place(k, PTOWSP_MEMORY_L1, PTOWSP_LAYOUT_ROW_MAJOR, f32, 1, 32);
        desc.src[at] = place(k, PTOWSP_MEMORY_BIAS, PTOWSP_LAYOUT_ROW_MAJOR, f32, 1, 32);
        tell(k, "TLOAD", row, ptowsp_tile_in(k, "bias", f32, 1, 32));
        tell(k, "TMOV", desc.src[at], row);
    }
    ptowsp_instruction(k, &desc);
    tell(k, "TSTORE", ptowsp_tile_out(k, "c", f32, rows, 32), desc.dst[0]);
}

// Of 3 x 24 elements, cut off where masks are: rows and columns fit nothing.
static void build_form(ptowsp_body *k, const form *f, too_far which) {
    ptowsp_dtype dtype = f->name[1] == 'A' || f->name[1] == 'O' ? PTOWSP_I32 : PTOWSP_F32;
    int64_t rows = f->sizes == '4' ? (which == SIZE ? 4096 : 4095) : 3;
    int64_t cols = f->sizes == '4' ? 8 : 24;
    ptowsp_value x = ptowsp_tile_in(k, "x", dtype, rows, cols);
    ptowsp_tile_store(ptowsp_tile_out(k, "any", PTOWSP_F32, 1, 8),  // kernels store something
                      ptowsp_tile_full(k, PTOWSP_F32, 1, 8, 0));
    if (f->sizes == '4' && f->name[1] == 'L') {
        ptowsp_value d = alloc(k, dtype, rows, cols);
        tell(k, "TLOAD",
             which == DST ? place(k, PTOWSP_MEMORY_L0A, PTOWSP_LAYOUT_ZZ, dtype, 16, 16) : d, x);
        return;
    }
    if (f->sizes == '4') {
        ptowsp_instruction_desc fill = {.name = "TEXPANDS", .scalar = ptowsp_tile_const(k, 1)};
        fill.dst[0] = which == DST ? place(k, PTOWSP_MEMORY_L0A, PTOWSP_LAYOUT_ZZ, dtype, 16, 16)
                                   : alloc(k, dtype, rows, cols);
        ptowsp_instruction(k, &fill);
        tell(k, "TSTORE", ptowsp_tile_out(k, "z", dtype, rows, cols), fill.dst[0]);
        return;
    }
    ptowsp_instruction_desc desc = {.name = f->name};
    bool is_column = f->tiles[0] == 'C', is_cut = f->sizes == 'C';
    bool is_select = f->name[1] == 'S' && f->sizes == 'M', is_compare = f->name[1] == 'C';
    ptowsp_dtype to = f->effect == 'S'                ? PTOWSP_I8
                      : strstr(f->name, "ARG")        ? PTOWSP_U32
                      : is_compare && f->sizes == 'M' ? PTOWSP_U8
                                                      : dtype;
    int64_t to_rows = f->scratch == 'T' ? 24 : is_cut ? 1 : 3;
    int64_t to_cols = f->scratch == 'T'  ? 8
                      : to == PTOWSP_U8  ? (which == SIZE ? 32 : 64)
                      : f->sizes == 'G'  ? 16
                      : f->sizes == 'W'  ? (which == SIZE ? 48 : 64)
                      : f->effect == 'S' ? 32
                      : is_cut           ? (which == SIZE ? 16 : 32)
                                         : 24;
    to_rows = is_cut && which == SIZE ? 3 : to_rows;
    ptowsp_value mask = is_select ? ptowsp_tile_compare(x, PTOWSP_LT, ptowsp_tile_const(k, 1)) : x;
    if (which == SIZE && f->sizes == 'M') {  // 264 columns have 33 bytes of bits
        x = ptowsp_tile_in(k, "wide", dtype, 3, 264);
        to_cols = is_select ? 264 : to_cols;
    }
    desc.dst[0] = which == DST       ? place(k, PTOWSP_MEMORY_L1, PTOWSP_LAYOUT_NZ, to, 32, 32)
                  : is_column        ? alloc(k, to, 8, 1)
                  : f->effect == 'A' ? alloc(k, to, 3, 24)
                                     : alloc(k, to, to_rows, to_cols);
    if (is_column && which != DST) {  // 3 x 1, in as many rows as there have to be
        ptowsp_alloc_desc column = {.dtype = to,
                                    .layout = PTOWSP_LAYOUT_COL_MAJOR,
                                    .like = ptowsp_tile_in(k, "like", PTOWSP_F32, 3, 1)};
        desc.dst[0] = ptowsp_tile_alloc(k, &column);
    }
    bool is_part = (is_cut || is_select) && which == NOTHING;
    if ((is_part || f->sizes == 'G' || f->effect == 'S') && which != DST) {
        ptowsp_alloc_desc part;  // 12 of 16 columns, 24 of 32, or as many as a task has
        memset(&part, 0, sizeof part);
        part.dtype = to;
        part.rows = to_rows;
        part.cols = to_cols;
        part.like = ptowsp_tile_in(k, "like", PTOWSP_F32, to_rows, f->sizes == 'G' ? 12 : 24);
        desc.dst[0] = ptowsp_tile_alloc(k, &part);
    }
    desc.src[0] = x;
    uint32_t at = 1;
    if (is_select) {
        desc.src[0] = mask;
        desc.src[at++] = x;
    }
    if (!strcmp(f->name, "TCMP") || !strcmp(f->name, "TSEL")) {
        desc.src[at++] = ptowsp_tile_in(k, "y", dtype, 3, which == SIZE ? 264 : 24);
    }
    if (f->sizes == 'W') {
        desc.src[at++] = ptowsp_tile_in(k, "index", PTOWSP_U32, 3, 24);
    }
    if (f->effect == 'S') {
        desc.src[at++] = ptowsp_tile_in(k, "scale", PTOWSP_F32, 3, 1);
    }
    if (!strcmp(f->name, "TCMPS") || !strcmp(f->name, "TSELS") || !strcmp(f->name, "TANDS") ||
        !strcmp(f->name, "TORS")) {
        desc.scalar = ptowsp_tile_const(k, 1);
    }
    if (f->effect == 'A' && which == NOTHING) {  // in place
        tell(k, "TMOV", desc.dst[0], x);
        desc.src[0] = desc.dst[0];
    }
    if (f->scratch == 'L' || f->scratch == 'T') {
        desc.tmp = which == SCRATCH ? desc.tmp : alloc(k, dtype, 1, 8);  // too small
    }
    ptowsp_instruction(k, &desc);
    if (to != PTOWSP_U8 && !is_column && which == NOTHING && f->scratch != 'T' && f->sizes != 'G' &&
        f->sizes != 'W' && !is_cut && f->effect != 'S') {
        ptowsp_tile_store(ptowsp_tile_out(k, "z", to, 3, 24), desc.dst[0]);
    }
    if (f->effect == 'S') {  // the source is needed later
        ptowsp_tile_store(ptowsp_tile_out(k, "kept", dtype, 3, 24), ptowsp_tile_neg(x));
    }
}

static char letter(const pwsp_list_tile *t) {
    static const char letters[] = "R?LQAB?";
    return t->memory == PTOISA_VEC && t->layout == PTOISA_COL_MAJOR ? 'C' : letters[t->memory];
}

static bool is_all(const pwsp_valid *valid, uint32_t size) {
    return valid->param == 0 && valid->max == size;
}

static void check_insn(const form *f, const pwsp_tile_code *code, const pwsp_insn *insn,
                       bool is_a2a3) {
    const pwsp_list_tile *tiles = code->tiles, *d = &tiles[insn->dst[0]], *s = &tiles[insn->src[0]];
    const pwsp_list_tile *tmp = &tiles[insn->tmp];
    char text[16] = "";
    size_t n = 0;
    for (int i = 0; i < 1 && insn->dst[i]; i++) {
        text[n++] = letter(&tiles[insn->dst[i]]);
    }
    text[n++] = ':';
    for (int i = 0; i < 4 && insn->src[i]; i++) {
        n += i > 0;
        text[n - 1] = i > 0 ? ',' : text[n - 1];
        text[n++] = letter(&tiles[insn->src[i]]);
    }
    assert_string_equal(text, f->tiles);
    uint32_t from = f->tiles[2] == 'A';
    switch (f->sizes) {
    case '4': assert_true((insn->dst[0] ? d : s)->rows <= 4095); break;
    case 'R': assert_int_equal(d->rows, s->rows); break;
    case 'C': assert_int_equal(d->cols, s->cols); break;
    case 'M':
        for (int i = 0; i < 4; i++) {
            const pwsp_list_tile *t = &tiles[i < 3 ? insn->src[i] : insn->dst[0]];
            bool is_mask = (i == 3) == (f->name[1] == 'C') && (i == 3 || i == 0);
            bool is_there = i == 3 || insn->src[i];
            uint32_t all = (f->name[1] == 'C' ? s : d)->cols;
            assert_true(!is_there || is_all(&t->valid_cols, is_mask ? all / 8 : all));
            assert_true(!is_there || is_mask || t->cols == all);
        }
        break;
    case 'G':
        assert_true(is_all(&d->valid_cols, d->cols) && is_all(&s->valid_cols, 2 * d->cols));
        assert_true(s->cols >= 2 * d->cols);
        break;
    case 'W':
        assert_true(is_all(&s->valid_cols, 32) && is_all(&tiles[insn->src[1]].valid_cols, 32));
        assert_true(is_all(&d->valid_cols, 64));
        break;
    case 'P':
        assert_int_equal(tiles[insn->src[from]].rows, d->rows);
        assert_int_equal(tiles[insn->src[from]].cols, tiles[insn->src[from + 1]].rows);
        assert_int_equal(tiles[insn->src[from + 1]].cols, d->cols);
        break;
    default: break;
    }
    uint64_t bytes = insn->tmp ? pwsp_list_tile_bytes(tmp) : 0;
    assert_true(bytes >= (f->scratch == 'L'              ? pwsp_list_tile_bytes(s)
                          : f->scratch == 'T'            ? 24 * 16 * 4
                          : f->scratch == 'B'            ? 32
                          : f->scratch == 'Q' && is_a2a3 ? 8 * 24 * 4
                                                         : 0));
    if (f->effect == 'A' && is_a2a3) {
        assert_int_not_equal(d->root, s->root);
    }
    if (f->effect == 'S') {
        assert_int_equal(insn->dst[1], is_a2a3 ? insn->src[0] : 0);
        for (const pwsp_insn *i = insn + 1; i < code->insns + code->insn_count && is_a2a3; i++) {
            assert_true(!i->src[0] || tiles[i->src[0]].root != s->root);
        }
    }
}

// A refusal names the kernel, the operation, the instruction, a type, the machine and the rule.
static void check_refusal(const form *f, too_far which, const ptowsp_machine *machine,
                          const ptowsp_error *error) {
    const char *name = f->sizes != 'P' ? f->name : f->name[1] == 'G' ? "TGEMV" : "TMATMUL";
    const char *broken = which == SCRATCH  ? "operands"
                         : which == DST    ? "places"
                         : f->sizes == '4' ? "rows in UB"
                         : f->sizes == 'C' ? "column sums"
                         : f->sizes == 'M' ? "masks"
                         : f->sizes == 'W' ? "runs"
                                           : "factors";
    static const char *const types[] = {"f32", "i32", "u32", "i8", "u8"};
    char start[96], end[64], on[80];
    bool is_typed = false;
    snprintf(start, sizeof start, "module: kernel k: instruction: %s", name);
    snprintf(end, sizeof end, "rule: %s)", broken);
    for (int i = 0; i < 5; i++) {
        snprintf(on, sizeof on, "%s on %s", types[i], machine->name);
        is_typed = is_typed || strstr(error->text, on);
        snprintf(on, sizeof on, " of %s: on %s", types[i], machine->name);
        is_typed = is_typed || strstr(error->text, on);
    }
    size_t length = strlen(error->text), tail = strlen(end);
    if (error->status != PTOWSP_UNSUPPORTED || !is_typed || length < tail ||
        strncmp(error->text, start, strlen(start)) != 0 ||
        strcmp(error->text + length - tail, end) != 0) {
        fail_msg("%s, %d too far: %d %s", f->name, which, error->status, error->text);
    }
}

static void check_form(const form *f, too_far which, bool is_a5) {
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_machine machine = is_a5 ? ptowsp_machine_950pr() : ptowsp_machine_910b();
    ptowsp_body_desc desc = {.name = "k", .machine = &machine};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    if (f->sizes == 'P') {
        build_product(k, f, which, is_a5);
    } else {
        build_form(k, f, which);
    }
    ptowsp_kernel kernel = ptowsp_kernel_end(k);
    ptowsp_error error = ptowsp_module_error(m);
    if (which != NOTHING) {
        check_refusal(f, which, &machine, &error);
    } else if (error.status != PTOWSP_OK) {
        fail_msg("%s: %s", f->name, error.text);
    } else {
        const pwsp_tile_code *code = PWSP_KERNEL(m, kernel.id)->code;
        uint32_t count = 0;
        for (uint32_t i = 0; i < code->insn_count; i++) {
            if (!strcmp(ptoisa_op_name((ptoisa_op)code->insns[i].op), f->name)) {
                check_insn(f, code, &code->insns[i], !is_a5);
                count++;
            }
        }
        assert_true(count > 0);
    }
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

TEST(legal__every_instruction_has_its_form) {
    for (int i = 0; i < FORM_COUNT; i++) {
        const form *f = &forms[i];
        for (int is_a5 = 0; is_a5 < 2; is_a5++) {
            check_form(f, NOTHING, is_a5);
            check_form(f, DST, is_a5);
            // Row sums and mask gathers of any sizes are made legal.
            if (f->sizes != '-' && f->sizes != 'R' && f->sizes != 'G') {
                check_form(f, SIZE, is_a5);
            }
            if (f->scratch == 'L' || f->scratch == 'T') {
                check_form(f, SCRATCH, is_a5);
            }
        }
    }
    for (int op = 0; op < PTOISA_OP_COUNT; op++) {
        const pwsp_legal_form *row = pwsp_legal_form_of((ptoisa_op)op);
        bool is_found = false;
        for (int i = 0; i < FORM_COUNT; i++) {
            is_found = is_found || !strcmp(forms[i].name, ptoisa_op_name((ptoisa_op)op));
        }
        assert_int_equal(is_found, row != NULL);
    }
}
