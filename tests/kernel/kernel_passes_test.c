// The passes over the operations of a body, by what they leave of them, and how many instructions products
// become. What kernels are lowered to is in cases/kernel_lowering.case.

#include "src/kernel/passes.h"

#include "test.h"

typedef struct kernel {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_body *k;
} kernel;

static void begin_as(kernel *k, bool is_fused, const ptowsp_machine *machine) {
    const ptowsp_body_desc desc = {.name = "k", .is_fused = is_fused, .machine = machine};
    k->context = test_context(NULL);
    k->m = test_module(k->context, NULL);
    k->k = ptowsp_kernel_begin(k->m, &desc);
}

static void finish(kernel *k) {
    ptowsp_module_destroy(k->m);
    ptowsp_context_destroy(k->context);
}

#define KERNEL_TEST(name) TEST_MADE(name, kernel, k, begin_as(k, false, NULL), finish(k))

static ptowsp_value in(kernel *k, const char *name, int64_t rows, int64_t cols) {
    return ptowsp_tile_in(k->k, name, PTOWSP_F32, rows, cols);
}

// Stores the value, of rows x cols, and ends the kernel.
static ptowsp_kernel end(kernel *k, int64_t rows, int64_t cols, ptowsp_value value) {
    ptowsp_tile_store(ptowsp_tile_out(k->k, "out", PTOWSP_F32, rows, cols), value);
    ptowsp_kernel made = ptowsp_kernel_end(k->k);
    assert_string_equal(ptowsp_module_error(k->m).text, "");
    return made;
}

#define C(x) ptowsp_tile_const(k->k, x)

// -- products -------------------------------------------------------------------------------------

// (a b) c; the first product is converted for the second one unless it is f32.
static ptowsp_kernel build_chain(kernel *k, ptowsp_dtype dtype) {
    ptowsp_value a = ptowsp_tile_in(k->k, "a", dtype, 8, 16);
    ptowsp_value b = ptowsp_tile_in(k->k, "b", dtype, 16, 4);
    ptowsp_value c = ptowsp_tile_in(k->k, "c", dtype, 4, 2), product = ptowsp_tile_matmul(a, b);
    if (dtype != PTOWSP_F32) {
        product = ptowsp_tile_cvt(product, dtype, PTOWSP_ROUND_NEAREST);
    }
    return end(k, 8, 2, ptowsp_tile_matmul(product, c));
}

// f32 does not go from L0C to L1 on A2/A3: two moves, of which one counts. What is converted for the next
// product takes one way, and narrows on it, in a fused kernel. All go to L0 four times. A move between the
// cores of a 910B is a TPUSH (and a TPOP).
TEST(lower__products_that_are_factors) {
    static const struct {
        ptowsp_dtype dtype;
        bool is_fused, is_a5;
        uint32_t moves, conversions;
    } rows[] = {
        {PTOWSP_F16, false, false, 6, 1}, {PTOWSP_F16, false, true, 6, 1},
        {PTOWSP_F16, true, false, 5, 0},  {PTOWSP_F16, true, true, 5, 0},
        {PTOWSP_F32, false, false, 6, 0}, {PTOWSP_F32, false, true, 5, 0},
    };
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        kernel k;
        uint32_t moves = 0, conversions = 0;
        begin_as(&k, rows[i].is_fused, rows[i].is_a5 ? &a5 : NULL);
        const ptowsp_kernel id = build_chain(&k, rows[i].dtype);
        for (uint32_t n = 0; n < ptowsp_kernel_insn_count(k.m, id); n++) {
            const char *name = ptowsp_kernel_insn_at(k.m, id, n, NULL).name;
            moves += !strcmp(name, "TMOV") || !strcmp(name, "TPUSH");
            conversions += !strcmp(name, "TCVT");
        }
        assert_int_equal(moves, rows[i].moves);
        assert_int_equal(conversions, rows[i].conversions);
        finish(&k);
    }
}

// A product too deep for L0 is counted as one: 16 x 2000 x 16.
KERNEL_TEST(lower__a_deep_product_counts_as_one) {
    const ptowsp_kernel id =
        end(k, 16, 16, ptowsp_tile_matmul(in(k, "a", 16, 2000), in(k, "b", 2000, 16)));
    uint64_t cycles = 0, products = 0, parts = 0, moves = 0;
    for (uint32_t i = 0; i < ptowsp_kernel_insn_count(k->m, id); i++) {
        ptowsp_insn insn = ptowsp_kernel_insn_at(k->m, id, i, &cycles);
        bool is_product = strncmp(insn.name, "TMATMUL", 7) == 0;
        products += is_product ? cycles : 0;
        parts += is_product;
        moves += strcmp(insn.name, "TEXTRACT") == 0 ? cycles : 0;
    }
    assert_int_equal(products, 16 * 2000 * 16);
    assert_true(parts > 1);
    assert_int_equal(moves, 0);
}

// -- passes ---------------------------------------------------------------------------------------

static const pwsp_kop *op_at(const kernel *k, ptowsp_value value) {
    return &k->k->ops[value.id];
}

KERNEL_TEST(canonicalise__puts_scalars_and_vectors_right) {
    ptowsp_value x = in(k, "x", 8, 16), v = in(k, "v", 1, 16), one = C(1);
    ptowsp_value a = ptowsp_tile_add(one, x), b = ptowsp_tile_mul(v, a);
    ptowsp_value c = ptowsp_tile_sub(one, b), d = ptowsp_tile_max(c, one);
    pwsp_pass_canonicalise(k->k);
    assert_int_equal(op_at(k, a)->src[0], x.id);
    assert_int_equal(op_at(k, a)->src[1], one.id);
    assert_int_equal(op_at(k, b)->src[0], a.id);
    assert_int_equal(op_at(k, b)->src[1], v.id);
    assert_int_equal(op_at(k, c)->src[0], one.id);  // not commutative
    assert_int_equal(op_at(k, d)->src[0], c.id);
    end(k, 8, 16, d);
}

// Constants are folded in double, and only they: x * 1 and x + 0 stay, as PTO-WSP counts them.
KERNEL_TEST(fold__constants_alone_are_folded) {
    ptowsp_value x = in(k, "x", 8, 16);
    ptowsp_value a = ptowsp_tile_add(C(1), C(2)), b = ptowsp_tile_div(a, C(4));
    ptowsp_value c = ptowsp_tile_max(ptowsp_tile_sub(b, C(1)), ptowsp_tile_mul(C(-2), C(0.5)));
    ptowsp_value d = ptowsp_tile_min(c, C(7));
    ptowsp_value y = ptowsp_tile_mul(ptowsp_tile_add(x, d), C(1));
    pwsp_pass_canonicalise(k->k);
    pwsp_pass_fold(k->k);
    assert_int_equal(op_at(k, d)->kind, PWSP_KOP_CONST);
    assert_true(op_at(k, d)->value == -0.25);  // (1 + 2) / 4 - 1
    end(k, 8, 16, y);
}

KERNEL_TEST(drop_dead__keeps_what_is_stored) {
    ptowsp_value x = in(k, "x", 8, 16), y = in(k, "y", 16, 8);
    ptowsp_tile_exp(ptowsp_tile_matmul(x, y));
    ptowsp_value kept = ptowsp_tile_abs(x), dead = ptowsp_tile_sqrt(kept);
    ptowsp_value deader = ptowsp_tile_add(dead, dead);
    ptowsp_tile_store(ptowsp_tile_out(k->k, "kept", PTOWSP_F32, 8, 16), kept);
    uint32_t uses[16] = {0};
    assert_true(k->k->op_count <= 16);
    pwsp_pass_drop_dead(k->k, uses);
    assert_true(op_at(k, dead)->is_dead && op_at(k, deader)->is_dead);
    assert_false(op_at(k, kept)->is_dead);
    assert_int_equal(pwsp_body_use_count(k->k, kept.id), 1);
    assert_int_equal(pwsp_body_use_count(k->k, y.id), 0);
}
