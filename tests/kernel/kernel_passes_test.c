// What becomes of a body: the passes over its operations, and the instructions that they are
// lowered to, whose cycles in the unit model are worked out here on paper by PTO-WSP's rules. Flags
// and barriers are left out, and what costs nothing as PTO-WSP does not count it.

#include "src/kernel/passes.h"

#include "test.h"

typedef struct kernel {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_body *k;
    ptowsp_kernel id;
    char text[2048];
} kernel;

static kernel begin_as(bool is_fused, const ptowsp_machine *machine) {
    kernel k = {0};
    assert_ok(ptowsp_context_create(NULL, &k.context));
    assert_ok(ptowsp_module_create(k.context, NULL, &k.m));
    ptowsp_body_desc desc = {.name = "k", .is_fused = is_fused, .machine = machine};
    k.k = ptowsp_kernel_begin(k.m, &desc);
    return k;
}

static kernel begin(void) {
    return begin_as(false, NULL);
}

static void finish(kernel *k) {
    ptowsp_module_destroy(k->m);
    ptowsp_context_destroy(k->context);
}

static ptowsp_value in(kernel *k, const char *name, int64_t rows, int64_t cols) {
    return ptowsp_tile_in(k->k, name, PTOWSP_F32, rows, cols);
}

static ptowsp_value in_as(kernel *k, const char *name, ptowsp_dtype dtype, int64_t rows,
                          int64_t cols) {
    return ptowsp_tile_in(k->k, name, dtype, rows, cols);
}

// Stores to an out parameter of this shape.
static void keep_as(kernel *k, const char *name, ptowsp_dtype dtype, int64_t rows, int64_t cols,
                    ptowsp_value value) {
    ptowsp_tile_store(ptowsp_tile_out(k->k, name, dtype, rows, cols), value);
}

static void keep(kernel *k, int64_t rows, int64_t cols, ptowsp_value value) {
    keep_as(k, "out", PTOWSP_F32, rows, cols, value);
}

// Ends the kernel; its instructions that count, as "TLOAD 128, TEXP 128, ...".
static void expect(kernel *k, const char *text) {
    k->id = ptowsp_kernel_end(k->k);
    assert_string_equal(ptowsp_module_error(k->m).text, "");
    size_t at = 0;
    uint64_t sum = 0, cycles;
    k->text[0] = 0;
    for (uint32_t i = 0; i < ptowsp_kernel_insn_count(k->m, k->id); i++) {
        ptowsp_insn insn = ptowsp_kernel_insn_at(k->m, k->id, i, &cycles);
        if (cycles > 0) {
            at += (size_t)snprintf(k->text + at, sizeof k->text - at, "%s%s %u", at ? ", " : "",
                                   insn.name, (unsigned)cycles);
        }
        sum += cycles;
    }
    assert_string_equal(k->text, text);
    ptowsp_kernel_stats stats;
    assert_ok(ptowsp_kernel_measure(k->m, k->id, NULL, &stats));
    assert_int_equal(stats.cycles, sum);
    finish(k);
}

#define C(x) ptowsp_tile_const(k.k, x)

// -- PTO-WSP's rules ------------------------------------------------------------------------------

// 1. One TLOAD for each parameter that is an operand; stored ones do not count.
TEST(lower__a_parameter_is_loaded_once) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 8, 16), y = in(&k, "y", 8, 16);
    in(&k, "unused", 8, 16);
    ptowsp_value sum = ptowsp_tile_add(x, y), difference = ptowsp_tile_sub(x, y);
    keep(&k, 8, 16, ptowsp_tile_mul(sum, difference));
    expect(&k, "TLOAD 128, TLOAD 128, TADD 128, TSUB 128, TMUL 128, TSTORE 128");
    k = begin();  // a store's source counts
    x = in(&k, "x", 8, 16);
    keep(&k, 8, 16, x);
    expect(&k, "TLOAD 128, TSTORE 128");
}

// 2. One more for each load; none for the parameter if only loads read it.
TEST(lower__loads_are_counted_each_time) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 8, 16);
    keep(&k, 8, 16, ptowsp_tile_add(ptowsp_tile_load(x), ptowsp_tile_load(x)));
    expect(&k, "TLOAD 128, TLOAD 128, TADD 128, TSTORE 128");
    k = begin();
    x = in(&k, "x", 8, 16);
    keep(&k, 8, 16, ptowsp_tile_add(ptowsp_tile_load(x), x));
    expect(&k, "TLOAD 128, TLOAD 128, TADD 128, TSTORE 128");
}

// 3. m 8, k 16, n 4: factors 128 and 64, product 512, result 32.
TEST(lower__matmul_loads_its_factors_each_time) {
    kernel k = begin();
    ptowsp_value a = in(&k, "a", 8, 16), b = in(&k, "b", 16, 4);
    keep(&k, 8, 4, ptowsp_tile_matmul(a, b));
    expect(&k, "TLOAD 128, TLOAD 64, TMATMUL 512, TSTORE 32");
    k = begin();  // what other than matmul and store reads goes to UB
    a = in(&k, "a", 8, 16), b = in(&k, "b", 16, 4);
    keep(&k, 8, 4, ptowsp_tile_exp(ptowsp_tile_matmul(a, b)));
    expect(&k, "TLOAD 128, TLOAD 64, TMATMUL 512, TPUSH 32, TEXP 32, TSTORE 32");
    k = begin();  // a value is moved; a parameter that is also read in UB is loaded there besides
    a = in(&k, "a", 8, 16), b = in(&k, "b", 16, 4);
    keep(&k, 8, 4, ptowsp_tile_matmul(ptowsp_tile_exp(a), b));
    keep_as(&k, "out2", PTOWSP_F32, 8, 4, ptowsp_tile_matmul(a, b));
    expect(&k, "TLOAD 128, TEXP 128, TPUSH 128, TLOAD 64, TMATMUL 512, TSTORE 32, TLOAD 128, "
               "TLOAD 64, TMATMUL 512, TSTORE 32");
    k = begin();  // product of a product: moved from L0C
    a = in(&k, "a", 8, 16), b = in(&k, "b", 16, 4);
    ptowsp_value c = in(&k, "c", 4, 2);
    keep(&k, 8, 2, ptowsp_tile_matmul(ptowsp_tile_matmul(a, b), c));
    expect(&k, "TLOAD 128, TLOAD 64, TMATMUL 512, TPUSH 32, TLOAD 8, TMATMUL 64, TSTORE 16");
}

// f32 does not go from L0C to L1 on A2/A3: two moves, of which one counts. One that is converted for
// the next product takes one way, and narrows on it, in a fused kernel.
static void build_chain(kernel *k, ptowsp_dtype dtype) {
    ptowsp_value a = in_as(k, "a", dtype, 8, 16), b = in_as(k, "b", dtype, 16, 4);
    ptowsp_value c = in_as(k, "c", dtype, 4, 2), product = ptowsp_tile_matmul(a, b);
    if (dtype != PTOWSP_F32) {
        product = ptowsp_tile_cvt(product, dtype, PTOWSP_ROUND_NEAREST);
    }
    keep(k, 8, 2, ptowsp_tile_matmul(product, c));
}

// A move between the cores of a 910B is a TPUSH (and a TPOP).
static bool is_move(const char *name) {
    return strcmp(name, "TMOV") == 0 || strcmp(name, "TPUSH") == 0;
}

TEST(lower__products_that_are_factors) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    for (int i = 0; i < 4; i++) {
        kernel k = begin_as(i / 2 != 0, i % 2 ? &a5 : NULL);
        build_chain(&k, PTOWSP_F16);
        ptowsp_kernel id = k.id = ptowsp_kernel_end(k.k);
        assert_string_equal(ptowsp_module_error(k.m).text, "");
        uint32_t moves = 0, conversions = 0;
        for (uint32_t n = 0; n < ptowsp_kernel_insn_count(k.m, id); n++) {
            const char *name = ptowsp_kernel_insn_at(k.m, id, n, NULL).name;
            moves += is_move(name);
            conversions += !strcmp(name, "TCVT");
        }
        // To L0 four times.
        assert_int_equal(moves, i / 2 ? 5 : 6);
        assert_int_equal(conversions, i / 2 ? 0 : 1);
        finish(&k);
        k = begin_as(false, i % 2 ? &a5 : NULL);
        build_chain(&k, PTOWSP_F32);
        id = ptowsp_kernel_end(k.k);
        moves = 0;
        for (uint32_t n = 0; n < ptowsp_kernel_insn_count(k.m, id); n++) {
            moves += is_move(ptowsp_kernel_insn_at(k.m, id, n, NULL).name);
        }
        assert_int_equal(moves, i % 2 ? 5 : 6);
        finish(&k);
    }
}

// 4. A narrowing store has a TCVT.
TEST(lower__a_narrowing_store_converts) {
    kernel k = begin();
    keep_as(&k, "out", PTOWSP_F16, 8, 16, ptowsp_tile_exp(in(&k, "x", 8, 16)));
    expect(&k, "TLOAD 128, TEXP 128, TCVT 128, TSTORE 128");
    k = begin();
    keep_as(&k, "out", PTOWSP_BF16, 8, 4,
            ptowsp_tile_matmul(in(&k, "a", 8, 16), in(&k, "b", 16, 4)));
    expect(&k, "TLOAD 128, TLOAD 64, TMATMUL 512, TCVT 32, TSTORE 32");
}

// 5. The form of a binary operation follows from its right operand.
TEST(lower__binary_forms_become_the_instructions_of_paper) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 8, 16);
    ptowsp_value scalar = ptowsp_tile_scalar(k.k, "s", PTOWSP_I64);
    keep(&k, 8, 16, ptowsp_tile_div(ptowsp_tile_max(ptowsp_tile_sub(x, C(1)), scalar), C(2)));
    expect(&k, "TLOAD 128, TSUBS 128, TMAXS 128, TDIVS 128, TSTORE 128");
    k = begin();
    x = in(&k, "x", 8, 16);
    keep(&k, 8, 16, ptowsp_tile_div(ptowsp_tile_mul(x, in(&k, "r", 8, 1)), in(&k, "q", 1, 8)));
    expect(&k, "TLOAD 128, TLOAD 8, TLOAD 8, TROWEXPANDMUL 128, TROWEXPANDDIV 128, TSTORE 128");
    k = begin();
    x = in(&k, "x", 8, 16);
    keep(&k, 8, 16, ptowsp_tile_min(ptowsp_tile_sub(x, in(&k, "r", 1, 16)), in(&k, "q", 16, 1)));
    expect(&k, "TLOAD 128, TLOAD 16, TLOAD 16, TCOLEXPANDSUB 128, TCOLEXPANDMIN 128, TSTORE 128");
    k = begin();  // on a square tile a vector is a value per row
    x = in(&k, "x", 16, 16);
    keep(&k, 16, 16, ptowsp_tile_add(x, in(&k, "r", 1, 16)));
    expect(&k, "TLOAD 256, TLOAD 16, TROWEXPANDADD 256, TSTORE 256");
}

// 6. rowmean is two instructions; a sum of f16 in f32 is converted uncounted.
TEST(lower__reductions_become_the_instructions_of_paper) {
    kernel k = begin();
    keep(&k, 8, 1, ptowsp_tile_rowmean(in(&k, "x", 8, 16)));
    expect(&k, "TLOAD 128, TROWSUM 8, TDIVS 8, TSTORE 8");
    k = begin();
    keep_as(&k, "out", PTOWSP_F16, 8, 1, ptowsp_tile_rowmax(in_as(&k, "x", PTOWSP_F16, 8, 16)));
    expect(&k, "TLOAD 128, TROWMAX 8, TSTORE 8");
    k = begin();
    keep(&k, 8, 1, ptowsp_tile_rowsum_f32(in_as(&k, "x", PTOWSP_F16, 8, 16)));
    expect(&k, "TLOAD 128, TROWSUM 8, TSTORE 8");
    k = begin();
    keep(&k, 1, 16, ptowsp_tile_colsum(in(&k, "x", 8, 16)));
    expect(&k, "TLOAD 128, TCOLSUM 16, TSTORE 16");
}

// x / rowsum(x) of f16, 6 x 16: four instructions and 3 x 96 + 6 cycles, as in PTO-WSP, and no
// conversion on any machine.
TEST(lower__f16_keeps_its_type_along_rows) {
    const ptowsp_machine machines[] = {ptowsp_machine_910b(), ptowsp_machine_950pr()};
    for (int i = 0; i < 2; i++) {
        kernel k = begin_as(false, &machines[i]);
        ptowsp_value x = in_as(&k, "x", PTOWSP_F16, 6, 16);
        keep_as(&k, "out", PTOWSP_F16, 6, 16, ptowsp_tile_div(x, ptowsp_tile_rowsum(x)));
        k.id = ptowsp_kernel_end(k.k);
        assert_string_equal(ptowsp_module_error(k.m).text, "");
        ptowsp_kernel_stats stats;
        assert_ok(ptowsp_kernel_measure(k.m, k.id, NULL, &stats));
        assert_int_equal(stats.cycles, 294);
        for (uint32_t j = 0; j < ptowsp_kernel_insn_count(k.m, k.id); j++) {
            assert_string_not_equal(ptowsp_kernel_insn_at(k.m, k.id, j, NULL).name, "TCVT");
        }
        finish(&k);
        k = begin_as(false, &machines[i]);
        x = in_as(&k, "x", PTOWSP_F16, 6, 16);
        keep_as(&k, "out", PTOWSP_F16, 6, 16, ptowsp_tile_div(x, ptowsp_tile_rowsum(x)));
        expect(&k, "TLOAD 96, TROWSUM 6, TROWEXPANDDIV 96, TSTORE 96");
    }
}

// softmax of r x c: 5 r c + 2 r.
TEST(lower__softmax_becomes_the_instructions_of_paper) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 32, 128);
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(x, ptowsp_tile_rowmax(x)));
    keep(&k, 32, 128, ptowsp_tile_div(e, ptowsp_tile_rowsum(e)));
    expect(&k, "TLOAD 4096, TROWMAX 32, TROWEXPANDSUB 4096, TEXP 4096, TROWSUM 32, "
               "TROWEXPANDDIV 4096, TSTORE 4096");  // 5 x 4096 + 2 x 32
}

// Sorting is 5 for each score; indices, constants and picking are free. PTO-WSP
// does not merge.
TEST(lower__sorting_becomes_the_instructions_of_paper) {
    kernel k = begin();
    ptowsp_value pairs =
        ptowsp_tile_sort32(in(&k, "x", 1, 128), ptowsp_tile_iota(k.k, PTOWSP_U32, 128, 0));
    pairs = ptowsp_tile_merge_sort(pairs, 32);
    keep_as(&k, "values", PTOWSP_F32, 1, 8, ptowsp_tile_topk_values(pairs, 8));
    keep_as(&k, "indices", PTOWSP_U32, 1, 8, ptowsp_tile_topk_indices(pairs, 8));
    expect(&k, "TLOAD 128, TSORT32 640, TMRGSORT 256, TSTORE 8, TSTORE 8");
    // f16: merging counts elements, and a pair has four.
    k = begin();
    pairs = ptowsp_tile_sort32(in_as(&k, "x", PTOWSP_F16, 1, 128),
                               ptowsp_tile_iota(k.k, PTOWSP_U32, 128, 0));
    pairs = ptowsp_tile_merge_sort(pairs, 32);
    keep_as(&k, "values", PTOWSP_F16, 1, 8, ptowsp_tile_topk_values(pairs, 8));
    keep_as(&k, "indices", PTOWSP_U32, 1, 8, ptowsp_tile_topk_indices(pairs, 8));
    expect(&k, "TLOAD 128, TSORT32 640, TMRGSORT 512, TSTORE 8, TSTORE 8");
}

// A product too deep for L0 is counted as one: 16 x 2000 x 16.
TEST(lower__a_deep_product_counts_as_one) {
    kernel k = begin();
    keep(&k, 16, 16, ptowsp_tile_matmul(in(&k, "a", 16, 2000), in(&k, "b", 2000, 16)));
    k.id = ptowsp_kernel_end(k.k);
    uint64_t cycles = 0, products = 0, parts = 0, moves = 0;
    for (uint32_t i = 0; i < ptowsp_kernel_insn_count(k.m, k.id); i++) {
        ptowsp_insn insn = ptowsp_kernel_insn_at(k.m, k.id, i, &cycles);
        bool is_product = strncmp(insn.name, "TMATMUL", 7) == 0;
        products += is_product ? cycles : 0;
        parts += is_product;
        moves += strcmp(insn.name, "TEXTRACT") == 0 ? cycles : 0;
    }
    assert_int_equal(products, 16 * 2000 * 16);
    assert_true(parts > 1);
    assert_int_equal(moves, 0);
    finish(&k);
}

// -- passes ---------------------------------------------------------------------------------------

static const pwsp_kop *op_at(const kernel *k, ptowsp_value value) {
    return &k->k->ops[value.id];
}

TEST(canonicalise__puts_scalars_and_vectors_right) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 8, 16), v = in(&k, "v", 1, 16), one = C(1);
    ptowsp_value a = ptowsp_tile_add(one, x), b = ptowsp_tile_mul(v, a);
    ptowsp_value c = ptowsp_tile_sub(one, b), d = ptowsp_tile_max(c, one);
    pwsp_pass_canonicalise(k.k);
    assert_int_equal(op_at(&k, a)->src[0], x.id);
    assert_int_equal(op_at(&k, a)->src[1], one.id);
    assert_int_equal(op_at(&k, b)->src[0], a.id);
    assert_int_equal(op_at(&k, b)->src[1], v.id);
    assert_int_equal(op_at(&k, c)->src[0], one.id);  // not commutative
    assert_int_equal(op_at(&k, d)->src[0], c.id);
    keep(&k, 8, 16, d);
    expect(&k,
           "TLOAD 128, TLOAD 16, TADDS 128, TCOLEXPANDMUL 128, TMULS 128, TADDS 128, TMAXS 128, "
           "TSTORE 128");
}

TEST(canonicalise__takes_away_what_undoes_itself) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 8, 16);
    ptowsp_value same = ptowsp_tile_cvt(x, PTOWSP_F32, PTOWSP_ROUND_TRUNC);
    ptowsp_value back = ptowsp_tile_transpose(ptowsp_tile_transpose(same));
    keep(&k, 8, 16, ptowsp_tile_neg(ptowsp_tile_neg(ptowsp_tile_neg(back))));
    expect(&k, "TLOAD 128, TNEG 128, TSTORE 128");
    k = begin();  // what lies between is still there for others
    x = in(&k, "x", 8, 16);
    ptowsp_value once = ptowsp_tile_neg(x);
    keep(&k, 8, 16, ptowsp_tile_add(ptowsp_tile_neg(once), once));
    expect(&k, "TLOAD 128, TNEG 128, TADD 128, TSTORE 128");
}

// Constants are folded in double, and only they: x * 1 and x + 0 stay, as PTO-WSP counts them.
TEST(fold__constants_alone_are_folded) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 8, 16);
    ptowsp_value a = ptowsp_tile_add(C(1), C(2)), b = ptowsp_tile_div(a, C(4));
    ptowsp_value c = ptowsp_tile_max(ptowsp_tile_sub(b, C(1)), ptowsp_tile_mul(C(-2), C(0.5)));
    ptowsp_value d = ptowsp_tile_min(c, C(7));
    ptowsp_value y = ptowsp_tile_mul(ptowsp_tile_add(x, d), C(1));
    pwsp_pass_canonicalise(k.k);
    pwsp_pass_fold(k.k);
    assert_int_equal(op_at(&k, d)->kind, PWSP_KOP_CONST);
    assert_true(op_at(&k, d)->value == -0.25);  // (1 + 2) / 4 - 1
    keep(&k, 8, 16, y);
    expect(&k, "TLOAD 128, TADDS 128, TMULS 128, TSTORE 128");
}

TEST(drop_dead__keeps_what_is_stored) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 8, 16), y = in(&k, "y", 16, 8);
    ptowsp_tile_exp(ptowsp_tile_matmul(x, y));
    ptowsp_value kept = ptowsp_tile_abs(x), dead = ptowsp_tile_sqrt(kept);
    ptowsp_value deader = ptowsp_tile_add(dead, dead);
    keep(&k, 8, 16, kept);
    uint32_t uses[16] = {0};
    assert_true(k.k->op_count <= 16);
    pwsp_pass_drop_dead(k.k, uses);
    assert_true(op_at(&k, dead)->is_dead && op_at(&k, deader)->is_dead);
    assert_false(op_at(&k, kept)->is_dead);
    assert_int_equal(pwsp_body_use_count(k.k, kept.id), 1);
    assert_int_equal(pwsp_body_use_count(k.k, y.id), 0);
    expect(&k, "TLOAD 128, TABS 128, TSTORE 128");
}

// The body of each: relu(a b + bias) stored as f16.
static void build_layer(kernel *k, ptowsp_dtype dtype) {
    ptowsp_value product = ptowsp_tile_matmul(in(k, "a", 8, 16), in(k, "b", 16, 4));
    ptowsp_value sum = ptowsp_tile_add(product, in(k, "bias", 1, 4));
    keep_as(k, "out", dtype, 8, 4, ptowsp_tile_relu(sum));
}

TEST(fuse__joins_what_one_instruction_does) {
    kernel k = begin();
    build_layer(&k, PTOWSP_F16);
    expect(&k, "TLOAD 4, TLOAD 128, TLOAD 64, TMATMUL 512, TPUSH 32, TCOLEXPANDADD 32, TRELU 32, "
               "TCVT 32, TSTORE 32");
    k = begin_as(true, NULL);
    build_layer(&k, PTOWSP_F16);
    expect(&k, "TLOAD 128, TLOAD 64, TLOAD 4, TMATMUL_BIAS 512, TSTORE 32");
    k = begin_as(true, NULL);  // bias + product is the same
    ptowsp_value product = ptowsp_tile_matmul(in(&k, "a", 8, 16), in(&k, "b", 16, 4));
    keep(&k, 8, 4, ptowsp_tile_add(in(&k, "bias", 1, 4), product));
    expect(&k, "TLOAD 128, TLOAD 64, TLOAD 4, TMATMUL_BIAS 512, TSTORE 32");
    k = begin_as(true, NULL);
    keep_as(&k, "out", PTOWSP_BF16, 8, 4,
            ptowsp_tile_matmul(in(&k, "a", 8, 16), in(&k, "b", 16, 4)));
    expect(&k, "TLOAD 128, TLOAD 64, TMATMUL 512, TSTORE 32");
}

// A product that something else reads, a column of biases, a square product, a bias longer than the
// table: all stay.
TEST(fuse__leaves_what_it_cannot_join) {
    kernel k = begin_as(true, NULL);
    ptowsp_value product = ptowsp_tile_matmul(in(&k, "a", 8, 16), in(&k, "b", 16, 4));
    keep(&k, 8, 4, ptowsp_tile_add(product, in(&k, "bias", 1, 4)));
    keep_as(&k, "out2", PTOWSP_F32, 8, 4, product);
    expect(&k, "TLOAD 4, TLOAD 128, TLOAD 64, TMATMUL 512, TPUSH 32, TCOLEXPANDADD 32, TSTORE 32, "
               "TSTORE 32");
    k = begin_as(true, NULL);
    product = ptowsp_tile_matmul(in(&k, "a", 8, 16), in(&k, "b", 16, 4));
    keep(&k, 8, 4, ptowsp_tile_add(product, in(&k, "bias", 4, 1)));
    expect(&k, "TLOAD 4, TLOAD 128, TLOAD 64, TMATMUL 512, TPUSH 32, TCOLEXPANDADD 32, TSTORE 32");
    k = begin_as(true, NULL);
    product = ptowsp_tile_matmul(in(&k, "a", 8, 16), in(&k, "b", 16, 8));
    keep(&k, 8, 8, ptowsp_tile_add(product, in(&k, "bias", 1, 8)));
    expect(&k,
           "TLOAD 8, TLOAD 128, TLOAD 128, TMATMUL 1024, TPUSH 64, TROWEXPANDADD 64, TSTORE 64");
    k = begin_as(true, NULL);  // 1 KiB holds 256
    product = ptowsp_tile_matmul(in(&k, "a", 8, 2), in(&k, "b", 2, 257));
    keep(&k, 8, 257, ptowsp_tile_add(product, in(&k, "bias", 1, 257)));
    expect(&k, "TLOAD 257, TLOAD 16, TLOAD 514, TMATMUL 4112, TPUSH 2056, TCOLEXPANDADD 2056, "
               "TSTORE 2056");
    k = begin_as(true, NULL);  // a factor that is stored to before the sum: the product stays ahead
    ptowsp_value a = ptowsp_tile_inout(k.k, "a", PTOWSP_F32, 8, 16);
    product = ptowsp_tile_matmul(a, in(&k, "b", 16, 4));
    ptowsp_tile_store(a, in(&k, "c", 8, 16));
    keep(&k, 8, 4, ptowsp_tile_add(product, in(&k, "bias", 1, 4)));
    expect(&k, "TLOAD 128, TLOAD 4, TLOAD 128, TLOAD 64, TMATMUL 512, TPUSH 32, TSTORE 128, "
               "TCOLEXPANDADD 32, TSTORE 32");
    k = begin_as(true, NULL);  // relu of what is read elsewhere
    product = ptowsp_tile_relu(ptowsp_tile_matmul(in(&k, "a", 8, 16), in(&k, "b", 16, 4)));
    keep(&k, 8, 4, product);
    keep_as(&k, "out2", PTOWSP_F32, 8, 4, product);
    expect(&k, "TLOAD 128, TLOAD 64, TMATMUL 512, TPUSH 32, TRELU 32, TSTORE 32, TSTORE 32");
}

// -- memory and machines --------------------------------------------------------------------------

static uint32_t ub_bytes(kernel *k) {
    ptowsp_kernel_stats stats;
    k->id = ptowsp_kernel_end(k->k);
    assert_ok(ptowsp_kernel_measure(k->m, k->id, NULL, &stats));
    finish(k);
    return stats.memory_bytes[PTOWSP_MEMORY_UB];
}

// An operand that is not needed any more lends its memory to the result.
TEST(lower__results_take_the_place_of_dead_operands) {
    kernel k = begin();
    ptowsp_value x = in(&k, "x", 32, 128);
    keep(&k, 32, 128, ptowsp_tile_exp(ptowsp_tile_abs(ptowsp_tile_mul(x, C(3)))));
    assert_int_equal(ub_bytes(&k), 16384);
    k = begin();  // not while it is needed
    x = in(&k, "x", 32, 128);
    keep(&k, 32, 128, ptowsp_tile_add(ptowsp_tile_exp(x), x));
    assert_int_equal(ub_bytes(&k), 2 * 16384);
    k = begin();  // rsqrt does not write over its source
    x = in(&k, "x", 32, 128);
    keep(&k, 32, 128, ptowsp_tile_rsqrt(x));
    assert_int_equal(ub_bytes(&k), 2 * 16384);
}

// Both machines count the same in the unit model; A5 has more memory.
TEST(lower__machines_differ_in_memory_only) {
    ptowsp_machine machine = ptowsp_machine_950pr();
    kernel k = begin_as(false, &machine);
    keep(&k, 8, 4, ptowsp_tile_exp(ptowsp_tile_matmul(in(&k, "a", 8, 16), in(&k, "b", 16, 4))));
    expect(&k, "TLOAD 128, TLOAD 64, TMATMUL 512, TMOV 32, TEXP 32, TSTORE 32");
    machine.memory_bytes[PTOWSP_MEMORY_UB] = 1024;  // a machine of one's own
    k = begin_as(false, &machine);
    keep(&k, 32, 8, in(&k, "x", 32, 8));
    assert_int_equal(ub_bytes(&k), 1024);
}
