// The products of experts of examples/common, beside double precision: all instruction sets that this
// machine has, both types, groups of all sizes, parts of columns, rows of padding; what is refused.

#include "test.h"

#include "examples/common/moe_kernel.c"

#include <math.h>

enum { EXPERTS = 4, COLUMNS_MAX = 40, DEPTH_MAX = 128, TOKENS = 24, TOP_K = 2, ROWS = 80 };

static double half_value(uint32_t half) {
    return (double)ptowsp_f32_from_f16((uint16_t)half);
}

TEST(moe_kernel__halves_are_exact) {
    for (uint32_t half = 0; half < 65536; half++) {
        const unsigned char bytes[2] = {(unsigned char)(half & 255), (unsigned char)(half >> 8)};
        const double expected = half_value(half), got = (double)half_at(bytes);
        assert_true(isnan(expected) ? isnan(got) : memcmp(&got, &expected, sizeof got) == 0);
    }
}

// Weights as bytes, and the values that they stand for.
typedef struct sample {
    moe_product product;
    unsigned char weights[EXPERTS * COLUMNS_MAX * DEPTH_MAX * 2];
    double values[EXPERTS * COLUMNS_MAX * DEPTH_MAX];
    float inputs[ROWS * DEPTH_MAX], outputs[ROWS * COLUMNS_MAX];
} sample;

static void half_random(unsigned char *at, uint64_t *random) {  // up to 2, of any sign
    at[0] = (unsigned char)test_random(random);
    at[1] = (unsigned char)(test_random(random) % 64 | (test_random(random) & 128));
}

static void sample_make(sample *s, uint64_t *random) {
    memset(s, 0, sizeof *s);
    moe_product *p = &s->product;
    p->type = test_random(random) % 2 ? MOE_F16 : MOE_Q8_0;
    p->expert_count = EXPERTS;
    p->column_count = test_random_u32(random, 1, COLUMNS_MAX);
    p->depth = 32 * test_random_u32(random, 1, DEPTH_MAX / 32);
    p->weights = s->weights, p->inputs = s->inputs, p->outputs = s->outputs;
    p->top_k = TOP_K, p->column_parts = 1;
    unsigned char *at = s->weights;
    const uint32_t count = EXPERTS * p->column_count * p->depth;
    double scale = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (p->type == MOE_F16) {
            half_random(at, random);
            s->values[i] = half_value((uint32_t)at[0] | (uint32_t)at[1] << 8);
            at += 2;
            continue;
        }
        if (i % 32 == 0) {
            half_random(at, random);
            scale = half_value((uint32_t)at[0] | (uint32_t)at[1] << 8);
            at += 2;
        }
        *at = (unsigned char)test_random(random);
        s->values[i] = scale * (*at < 128 ? *at : *at - 256);
        at++;
    }
    assert_int_equal((size_t)(at - s->weights),
                     EXPERTS * p->column_count * moe_row_bytes(p->type, p->depth));
    for (uint32_t i = 0; i < ROWS * p->depth; i++) {
        s->inputs[i] = (float)test_random_in(random, -1000, 1000) / 256;
    }
}

// The output of an expert's column for an input, in double precision.
static void require_output(const sample *s, uint32_t expert, uint32_t column, const float *input,
                           float output) {
    const moe_product *p = &s->product;
    const double *values = s->values + (expert * p->column_count + column) * p->depth;
    double sum = 0, size = 0;
    for (uint32_t k = 0; k < p->depth; k++) {
        sum += values[k] * (double)input[k];
        size += fabs(values[k] * (double)input[k]);
    }
    // Half an ulp for each of the sums and of the products with a scale, as if all were the largest.
    if (!(fabs((double)output - sum) <= size * (p->depth + 2.0) * 6e-8)) {
        fail_msg("column %u: %.9g is not %.9g", column, (double)output, sum);
    }
}

static uint32_t groups_here(moe_group_fn groups[3]) {
    print_message("moe_kernel: %s\n", moe_variant());
    uint32_t count = 0;
    groups[count++] = portable_group;
#if MOE_HAS_X86
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        groups[count++] = avx2_group;
    }
    if (__builtin_cpu_supports("avx512f")) {
        groups[count++] = avx512_group;
    }
#endif
    return count;
}

TEST(moe_kernel__groups_are_right_in_each_instruction_set) {
    uint64_t random = test_seed();
    static sample s;
    moe_group_fn groups[3];
    const uint32_t variants = groups_here(groups);
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        sample_make(&s, &random);
        const moe_product *p = &s.product;
        const uint32_t expert = (uint32_t)(test_random(&random) % EXPERTS);
        const uint32_t begin = test_random_u32(&random, 0, p->column_count);
        const size_t row = moe_row_bytes(p->type, p->depth);
        const moe_group g = {p->type, s.weights + expert * p->column_count * row,       row,
                             begin,   test_random_u32(&random, begin, p->column_count), p->depth};
        const uint32_t count = test_random_u32(&random, 1, 8);
        for (uint32_t v = 0; v < variants; v++) {
            memset(s.outputs, 0x5a, sizeof s.outputs);
            const float *inputs[8];
            float *outputs[8];
            for (uint32_t t = 0; t < count; t++) {
                inputs[t] = s.inputs + t * p->depth;
                outputs[t] = s.outputs + t * COLUMNS_MAX;
            }
            uint32_t done = 0;
            while (done < count) {
                done += groups[v](&g, inputs + done, outputs + done, count - done);
            }
            assert_int_equal(done, count);
            for (uint32_t t = 0; t < 8; t++) {
                for (uint32_t c = 0; c < COLUMNS_MAX; c++) {
                    uint32_t bits;
                    const float *at = s.outputs + t * COLUMNS_MAX + c;
                    memcpy(&bits, at, sizeof bits);
                    if (t < count && c >= g.begin && c < g.end) {
                        require_output(&s, expert, c, s.inputs + t * p->depth, *at);
                    } else {
                        assert_int_equal(bits, 0x5a5a5a5a);
                    }
                }
            }
        }
    }
}

TEST(moe_kernel__computes_the_units_of_a_plan) {
    uint64_t random = test_seed();
    static sample s;
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        sample_make(&s, &random);
        moe_product *p = &s.product;
        int32_t ids[TOKENS * TOP_K];
        for (uint32_t i = 0; i < TOKENS * TOP_K; i++) {
            ids[i] = (int32_t)test_random_in(&random, -1, EXPERTS - 1);
        }
        const uint32_t tokens = test_random_u32(&random, 0, TOKENS);
        const uint32_t block = test_random_u32(&random, 1, 5);
        const ptowsp_moe_routes routes = {ids, tokens, TOP_K, EXPERTS, block};
        uint32_t counts[EXPERTS], offsets[EXPERTS + 1], pairs[ROWS], rows[TOKENS * TOP_K];
        uint32_t begin[8];
        ptowsp_moe_order order = {.counts = counts,
                                  .offsets = offsets,
                                  .pairs = pairs,
                                  .rows = rows,
                                  .row_capacity = ROWS};
        assert_ok(ptowsp_moe_sort(&routes, &order, NULL));
        // Units of whole blocks, padding included: the kernel leaves it out.
        uint32_t padded[EXPERTS];
        for (uint32_t e = 0; e < EXPERTS; e++) {
            padded[e] = offsets[e + 1] - offsets[e];
        }
        ptowsp_moe_config config = {0};
        config.expert_count = EXPERTS, config.lane_count = test_random_u32(&random, 1, 7);
        config.block_rows = block, config.column_parts = test_random_u32(&random, 0, 6);
        static ptowsp_work units[ROWS * 6];
        ptowsp_moe_plan plan = {0};
        plan.units = units, plan.unit_begin = begin, plan.unit_capacity = ROWS * 6;
        assert_ok(ptowsp_moe_generate(&(ptowsp_moe_batch){.counts = padded, .offsets = offsets},
                                      &config, &plan, NULL));
        p->pairs = pairs, p->row_count = order.row_count, p->column_parts = plan.column_parts;
        if (test_random(&random) % 4 == 0) {
            p->pairs = NULL;  // inputs by row
        }
        assert_null(moe_product_check(p));
        memset(s.outputs, 0, sizeof s.outputs);
        for (uint32_t i = 0; i < plan.unit_count; i++) {
            assert_true(moe_compute(p, &units[i]));
        }
        for (uint32_t pair = 0; pair < tokens * TOP_K; pair++) {
            if (ids[pair] < 0) {
                continue;
            }
            const uint32_t row = rows[pair], token = p->pairs ? pair / TOP_K : row;
            for (uint32_t c = 0; c < p->column_count; c++) {
                require_output(&s, (uint32_t)ids[pair], c, s.inputs + token * p->depth,
                               s.outputs[row * p->column_count + c]);
            }
        }
    }
}

TEST(moe_kernel__refuses_what_is_wrong) {
    uint64_t random = test_seed();
    static sample s;
    sample_make(&s, &random);
    s.product.row_count = 4;
    const ptowsp_work good = ptowsp_work_of(0, 0, 0, 0, 0, 0, 1);
    assert_null(moe_product_check(&s.product));
    assert_true(moe_compute(&s.product, &good));
    moe_product p;
#define REFUSED(change, text)                                                                      \
    (p = s.product, change, assert_string_equal(moe_product_check(&p), text),                      \
     assert_false(moe_compute(&p, &good)))
    const uint32_t pairs[1] = {0};
    REFUSED(p.type = (moe_type)2, "the type of the weights is unknown");
    REFUSED(p.depth = 0, "depth is not a multiple of 32");
    REFUSED(p.depth = 33, "depth is not a multiple of 32");
    REFUSED(p.expert_count = 0, "there are no experts or no columns");
    REFUSED(p.column_count = 0, "there are no experts or no columns");
    REFUSED(p.weights = NULL, "weights, inputs or outputs are NULL");
    REFUSED(p.inputs = NULL, "weights, inputs or outputs are NULL");
    REFUSED(p.outputs = NULL, "weights, inputs or outputs are NULL");
    REFUSED((p.pairs = pairs, p.top_k = 0), "top_k is 0, and there are pairs");
    REFUSED(p.column_parts = 0, "column_parts is 0");
    assert_string_equal(moe_product_check(NULL), "the product is NULL");
    assert_false(moe_compute(NULL, &good));
    assert_false(moe_compute(&s.product, NULL));
    ptowsp_work unit = ptowsp_work_of(0, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 1);
    assert_false(moe_compute(&s.product, &unit));
    unit = ptowsp_work_of(0, 0, 0, 0, EXPERTS, 0, 1);
    assert_false(moe_compute(&s.product, &unit));
    unit = ptowsp_work_of(0, 0, 0, 0, 0, 4, 1);  // row 4 of 4
    assert_false(moe_compute(&s.product, &unit));
    unit = ptowsp_work_of(0, 0, 0, 0, 0, 1, UINT32_MAX);
    assert_false(moe_compute(&s.product, &unit));
    unit = good, unit.reserved = 1;  // part 1 of 1
    assert_false(moe_compute(&s.product, &unit));
}
