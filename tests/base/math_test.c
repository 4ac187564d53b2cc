// exp and log of src/base/math.h, against libm's in double precision.

#include "src/base/math.h"

#include "number_bits.h"
#include "test.h"

#include <math.h>

// Whether got is within one unit in the last place (of float, at exact) of exact.
static bool within_one_ulp(float got, double exact) {
    if (exact != exact) {
        return got != got;
    }
    if (isinf(exact)) {
        return isinf(got) && (got > 0) == (exact > 0);
    }
    int exponent;
    frexp(exact, &exponent);  // |exact| is in [2^(exponent - 1), 2^exponent)
    double ulp = ldexp(1.0, exponent - 24 > -149 ? exponent - 24 : -149);
    if (isinf(got)) {  // right where float's rounding overflows, 2^128, is within an ulp
        return (got > 0) == (exact > 0) && ldexp(1.0, 128) - fabs(exact) <= ulp;
    }
    return fabs((double)got - exact) <= ulp;
}

TEST(math__exp_is_within_one_ulp_over_all_floats) {
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 2003) {  // denormals and NaN included
        float x = f32_of((uint32_t)bits);
        if (!within_one_ulp(pwsp_exp(x), exp((double)x))) {
            fail_msg("exp(%a) = %a, not %a", (double)x, (double)pwsp_exp(x), exp((double)x));
        }
    }
}

TEST(math__exp_is_within_one_ulp_where_it_is_neither_0_nor_infinity) {
    for (int32_t i = -115 * 8192; i <= 95 * 8192; i++) {
        float x = (float)i / 8192.0f;
        if (!within_one_ulp(pwsp_exp(x), exp((double)x))) {
            fail_msg("exp(%a) = %a, not %a", (double)x, (double)pwsp_exp(x), exp((double)x));
        }
    }
    // Around the ends of the normal, denormal and finite range, float by float.
    const float ends[] = {-87.33654785f, -103.27892990f, -103.97208405f, 88.72283905f, 0.0f};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        float x = ends[i];
        for (int step = 0; step < 2000; step++) {
            x = nextafterf(x, -INFINITY);
        }
        for (int step = 0; step < 4000; step++) {
            assert_true(within_one_ulp(pwsp_exp(x), exp((double)x)));
            x = nextafterf(x, INFINITY);
        }
    }
}

TEST(math__exp_of_several_is_that_of_each) {
    float x[20], each[20];
    for (uint64_t bits = 0; bits <= UINT32_MAX - 20 * 977; bits += 2003) {
        const uint32_t count = (uint32_t)(bits % 21);
        for (uint32_t i = 0; i < count; i++) {  // where there are some in range, mostly all are
            x[i] = bits % 2 ? f32_of((uint32_t)bits + i * 977) : -(float)(bits % 7919 * i) / 1500;
            each[i] = x[i];
        }
        pwsp_exp_each(each, count);
        for (uint32_t i = 0; i < count; i++) {
            const float expected = pwsp_exp(x[i]);
            if (memcmp(&each[i], &expected, sizeof expected) != 0) {
                fail_msg("exp(%a) = %a among %u, %a alone", (double)x[i], (double)each[i], count,
                         (double)expected);
            }
        }
    }
}

TEST(math__exp_of_special_values_is_that_of_c) {
    assert_true(pwsp_exp(0.0f) == 1.0f);
    assert_true(pwsp_exp(-0.0f) == 1.0f);
    assert_true(pwsp_exp(INFINITY) == INFINITY);
    assert_true(pwsp_exp(-INFINITY) == 0.0f && !signbit(pwsp_exp(-INFINITY)));
    assert_true(pwsp_exp(3.4028235e38f) == INFINITY);
    assert_true(pwsp_exp(-3.4028235e38f) == 0.0f);
    assert_true(isnan(pwsp_exp(NAN)));
    assert_true(isnan(pwsp_exp(-NAN)));
    assert_true(pwsp_exp(f32_of(1)) == 1.0f);           // smallest denormal
    assert_true(pwsp_exp(f32_of(0x80000001)) == 1.0f);  // its negative
    assert_true(pwsp_exp(1.0f) == (float)2.71828182845904523536);
}

TEST(math__log_is_within_one_ulp_over_all_floats) {
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 2003) {
        float x = f32_of((uint32_t)bits);
        if (!within_one_ulp(pwsp_log(x), log((double)x))) {
            fail_msg("log(%a) = %a, not %a", (double)x, (double)pwsp_log(x), log((double)x));
        }
    }
    for (uint32_t bits = 0; bits < 20000; bits++) {  // the denormals next to zero
        float x = f32_of(bits);
        assert_true(within_one_ulp(pwsp_log(x), log((double)x)));
    }
}

TEST(math__log_is_within_one_ulp_near_one) {
    float x = 1.0f;  // where log is small and a careless sum would lose its digits
    for (int step = 0; step < 100000; step++) {
        assert_true(within_one_ulp(pwsp_log(x), log((double)x)));
        x = nextafterf(x, 0.0f);
    }
    x = 1.0f;
    for (int step = 0; step < 100000; step++) {
        assert_true(within_one_ulp(pwsp_log(x), log((double)x)));
        x = nextafterf(x, 2.0f);
    }
    for (int32_t i = 1; i <= 1 << 20; i++) {
        x = (float)i / 262144.0f;  // (0, 4]
        assert_true(within_one_ulp(pwsp_log(x), log((double)x)));
    }
    for (int32_t i = 1; i <= 100000; i++) {  // the sums of exponentials that merging takes it of
        assert_true(within_one_ulp(pwsp_log((float)i), log((double)i)));
    }
}

TEST(math__log_of_special_values_is_that_of_c) {
    assert_true(pwsp_log(1.0f) == 0.0f);
    assert_true(pwsp_log(0.0f) == -INFINITY);
    assert_true(pwsp_log(-0.0f) == -INFINITY);
    assert_true(pwsp_log(INFINITY) == INFINITY);
    assert_true(isnan(pwsp_log(-INFINITY)));
    assert_true(isnan(pwsp_log(-1.0f)));
    assert_true(isnan(pwsp_log(f32_of(0x80000001))));  // the negative closest to zero
    assert_true(isnan(pwsp_log(-3.4028235e38f)));
    assert_true(isnan(pwsp_log(NAN)));
    assert_true(isnan(pwsp_log(-NAN)));
}

TEST(math__infinity_is_infinite) {
    assert_true(isinf(pwsp_infinity()) && pwsp_infinity() > 0);
}
