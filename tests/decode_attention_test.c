// The attention kernel of the examples: every variant that this machine runs, against plain softmax
// in double precision over the same (rounded) KV; and the f16 conversions, against their
// definition.

#include "test.h"

#include "../examples/common/decode_attention.c"
#include "../examples/common/lengths.h"

#define TOLERANCE 2e-5  // of the largest magnitude in a row

typedef struct attention_case {
    decode_kv kv;
    uint32_t pages[64];
    uint32_t page_count;
    uint32_t start, count, group;
    double magnitude;  // of the queries
} attention_case;

static float test_value(uint64_t *state) {
    return (float)test_random_in(state, -1000000, 1000000) / 1000000.0f;
}

// An element by the layout's definition, pool[page][kv_head][K or V][slot][dim].
static double kv_value(const attention_case *c, uint32_t kv_head, uint32_t is_v, uint32_t token,
                       uint32_t d) {
    const decode_kv *kv = &c->kv;
    size_t at = c->pages[token / kv->page_size];
    at = at * kv->kv_head_count + kv_head;
    at = at * 2 + is_v;
    at = at * kv->page_size + token % kv->page_size;
    at = at * kv->dim + d;
    return kv->type == DECODE_KV_F32
               ? (double)((const float *)kv->pool)[at]
               : (double)decode_f32_from_f16(((const uint16_t *)kv->pool)[at]);
}

// One row in double precision; returns the log-sum-exp.
static double reference_row(const attention_case *c, uint32_t kv_head, const float *query,
                            double *out) {
    double scores[4096], top = -INFINITY, total = 0.0;
    memset(out, 0, c->kv.dim * sizeof *out);
    for (uint32_t t = 0; t < c->count; t++) {
        scores[t] = 0.0;
        for (uint32_t d = 0; d < c->kv.dim; d++) {
            scores[t] += (double)query[d] * kv_value(c, kv_head, 0, c->start + t, d);
        }
        top = fmax(top, scores[t]);
    }
    for (uint32_t t = 0; t < c->count; t++) {
        double weight = exp(scores[t] - top);
        total += weight;
        for (uint32_t d = 0; d < c->kv.dim; d++) {
            out[d] += weight * kv_value(c, kv_head, 1, c->start + t, d);
        }
    }
    for (uint32_t d = 0; d < c->kv.dim; d++) {
        out[d] /= total;
    }
    return top + log(total);
}

static void check_rows(const attention_case *c, uint32_t kv_head, const float *queries,
                       const ptowsp_partial *states, const float *accs) {
    float *out = (float *)malloc(c->kv.dim * sizeof *out);
    double *exact = (double *)malloc(c->kv.dim * sizeof *exact);
    for (uint32_t g = 0; g < c->group; g++) {
        double lse = reference_row(c, kv_head, queries + g * c->kv.dim, exact);
        float own_lse = ptowsp_merge_finish(&states[g], accs + g * c->kv.dim, c->kv.dim, out);
        double largest = 0.0;
        for (uint32_t d = 0; d < c->kv.dim; d++) {
            largest = fmax(largest, fabs(exact[d]));
        }
        for (uint32_t d = 0; d < c->kv.dim; d++) {
            assert_true(fabs(exact[d] - (double)out[d]) <= TOLERANCE * largest);
        }
        assert_true(fabs(lse - (double)own_lse) <= 1e-5 * fmax(1.0, fabs(lse)));
    }
    free(out);
    free(exact);
}

// Runs a case through one variant, block by block as decode_attention does.
static void run_variant(const attention_case *c, uint32_t kv_head, const float *queries,
                        decode_group_fn group, ptowsp_partial *states, float *accs) {
    size_t v_offset = (size_t)c->kv.page_size * c->kv.dim * decode_kv_element_size(c->kv.type);
    for (uint32_t g = 0; g < c->group; g++) {
        ptowsp_merge_clear(&states[g], accs + g * c->kv.dim, c->kv.dim);
    }
    for (uint32_t done = 0; done < c->count;) {
        const char *rows[DECODE_BLOCK];
        uint32_t block =
            decode_find_rows(&c->kv, c->pages, kv_head, c->start + done, c->count - done, rows);
        group(rows, rows, v_offset, block, queries, c->group, c->kv.dim,
              c->kv.type == DECODE_KV_F16, states, accs);
        done += block;
    }
}

static attention_case random_case(uint64_t *state) {
    attention_case c;
    memset(&c, 0, sizeof c);
    c.kv.type = test_random(state) % 2 ? DECODE_KV_F16 : DECODE_KV_F32;
    c.kv.page_size = (uint32_t)test_random_in(state, 1, 40);
    c.kv.kv_head_count = (uint32_t)test_random_in(state, 1, 3);
    c.kv.dim = 16 * (uint32_t)test_random_in(state, 1, test_random(state) % 8 ? 10 : 32);
    c.page_count = (uint32_t)test_random_in(state, 1, 64);
    c.group = (uint32_t)test_random_in(state, 1, 9);
    uint32_t tokens = c.page_count * c.kv.page_size;
    c.start = (uint32_t)test_random_in(state, 0, tokens - 1);
    c.count = (uint32_t)test_random_in(state, 1, tokens - c.start);
    c.magnitude = test_random(state) % 4 ? 1.0 : 30.0;
    for (uint32_t i = 0; i < c.page_count; i++) {
        c.pages[i] = (uint32_t)test_random_in(state, 0, c.page_count - 1);
    }
    return c;
}

static void run_case(attention_case *c, uint64_t *state) {
    size_t element = decode_kv_element_size(c->kv.type);
    size_t count = (size_t)c->page_count * c->kv.kv_head_count * 2 * c->kv.page_size * c->kv.dim;
    char *pool = (char *)malloc(count * element);  // of exact size: reading past it is seen by ASan
    float *queries = (float *)malloc(c->group * c->kv.dim * sizeof *queries);
    float *accs = (float *)malloc(c->group * c->kv.dim * sizeof *accs);
    ptowsp_partial states[9];
    for (size_t i = 0; i < count; i++) {
        float value = test_value(state);
        uint16_t half = decode_f16_from_f32(value);
        memcpy(pool + i * element, element == 2 ? (void *)&half : (void *)&value, element);
    }
    for (uint32_t i = 0; i < c->group * c->kv.dim; i++) {
        queries[i] = test_value(state) * (float)c->magnitude / sqrtf((float)c->kv.dim);
    }
    c->kv.pool = pool;
    uint32_t kv_head = (uint32_t)test_random_in(state, 0, c->kv.kv_head_count - 1);
    decode_attention(&c->kv, c->pages, kv_head, c->start, c->count, queries, c->group, states,
                     accs);
    check_rows(c, kv_head, queries, states, accs);
#if !DECODE_NEON
    run_variant(c, kv_head, queries, decode_portable_group, states, accs);
    check_rows(c, kv_head, queries, states, accs);
#endif
#if DECODE_X86
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        run_variant(c, kv_head, queries, decode_avx2_group, states, accs);
        check_rows(c, kv_head, queries, states, accs);
    }
#endif
    free(pool);
    free(queries);
    free(accs);
}

static void decode_attention__agrees_with_double_precision_in_every_variant(void **unused) {
    (void)unused;
    uint64_t state = test_seed();
    for (int i = 0; i < 300; i++) {
        attention_case c = random_case(&state);
        run_case(&c, &state);
    }
}

static void decode_attention__of_one_token_is_its_value_row(void **unused) {
    (void)unused;
    float pool[2][16];
    for (int d = 0; d < 16; d++) {
        pool[0][d] = 1.0f;
        pool[1][d] = (float)d;
    }
    decode_kv kv = {pool, DECODE_KV_F32, 1, 1, 16};
    float query[16] = {3.0f}, acc[16];
    uint32_t page = 0;
    ptowsp_partial state;
    decode_attention(&kv, &page, 0, 0, 1, query, 1, &state, acc);
    assert_true(state.m == 3.0f && state.l == 1.0f);
    for (int d = 0; d < 16; d++) {
        assert_true(acc[d] == (float)d);
    }
}

static void f16__every_half_survives_the_way_to_float_and_back(void **unused) {
    (void)unused;
    for (uint32_t half = 0; half < 65536; half++) {
        float value = decode_f32_from_f16((uint16_t)half);
        uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3ff;
        if (exponent == 31 && fraction != 0) {
            assert_true(value != value);
            continue;
        }
        double exact = exponent == 0    ? ldexp((double)fraction, -24)
                       : exponent == 31 ? INFINITY
                                        : ldexp(1024.0 + fraction, (int)exponent - 25);
        assert_true((double)value == (half & 0x8000 ? -exact : exact));
        assert_int_equal(decode_f16_from_f32(value), half);
    }
    assert_true((decode_f16_from_f32(NAN) & 0x7fff) > 0x7c00);
}

// Between two neighbouring halves: the nearer one, and the even one of two that are equally near.
static void f16__rounds_to_the_nearest_and_to_even(void **unused) {
    (void)unused;
    for (uint32_t half = 0; half < 0x7bff; half++) {
        double low = (double)decode_f32_from_f16((uint16_t)half);
        double high = (double)decode_f32_from_f16((uint16_t)(half + 1));
        float middle = (float)((low + high) / 2.0);  // exact: one bit more
        uint32_t even = half % 2 == 0 ? half : half + 1;
        assert_int_equal(decode_f16_from_f32(middle), even);
        assert_int_equal(decode_f16_from_f32(-middle), even | 0x8000);
        assert_int_equal(decode_f16_from_f32(nextafterf(middle, 0.0f)), half);
        assert_int_equal(decode_f16_from_f32(nextafterf(middle, INFINITY)), half + 1);
    }
    assert_int_equal(decode_f16_from_f32(65519.996f), 0x7bff);  // the largest half is 65504
    assert_int_equal(decode_f16_from_f32(65520.0f), 0x7c00);
    assert_int_equal(decode_f16_from_f32(3e38f), 0x7c00);
    assert_int_equal(decode_f16_from_f32(1e-30f), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_attention__agrees_with_double_precision_in_every_variant),
        cmocka_unit_test(decode_attention__of_one_token_is_its_value_row),
        cmocka_unit_test(f16__every_half_survives_the_way_to_float_and_back),
        cmocka_unit_test(f16__rounds_to_the_nearest_and_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
