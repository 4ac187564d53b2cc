// Numbers as text and back: against the C library's printf and strtod in the C locale, against exact
// decimal fractions of slow arithmetic on digits, and against values that are known.

#include "src/base/number.h"

#include "number_bits.h"
#include "test.h"

#include <float.h>
#include <math.h>

// -- random numbers -------------------------------------------------------------------------------

// Of all bits, near 1, subnormal, short decimals, and short binary fractions, which have ties.
static double draw(uint64_t *state) {
    const uint64_t bits = test_random(state), sign = bits & UINT64_C(1) << 63;
    const uint64_t fraction = bits >> 12;
    switch (test_random(state) % 6) {
    case 0: return f64_of(sign | (1000 + test_random(state) % 80) << 52 | fraction);
    case 1: return f64_of(sign | fraction >> test_random(state) % 52);
    case 2: return (double)(int64_t)(bits % 2000001) / 1000.0 - 1000.0;
    case 3: return (double)(int64_t)(bits % 65536) / 256.0;
    case 4: return (double)f32_of((uint32_t)bits);
    default: return f64_of(bits);
    }
}

static void assert_same(double a, double b) {
    assert_true(a != a ? b != b : memcmp(&a, &b, sizeof a) == 0);
}

// Reads with both widths as the C library does.
static void check_read(const char *text) {
    double number = 0;
    assert_true(pwsp_number_read(text, strlen(text), false, &number));
    assert_same(number, strtod(text, NULL));
    assert_true(pwsp_number_read(text, strlen(text), true, &number));
    assert_same(number, (double)strtof(text, NULL));
}

TEST(number__is_printed_as_by_printf) {
    uint64_t seed = test_seed();
    char expected[512];
    for (int i = 0; TEST_ROUNDS(i, 1000000); i++) {
        const double number = draw(&seed);
        const int digits = (int)(test_random(&seed) % 22);
        const char style = "fge"[test_random(&seed) % 3];
        const char *format = style == 'f' ? "%.*f" : style == 'g' ? "%.*g" : "%.*e";
        snprintf(expected, sizeof expected, format, digits, number);
        assert_string_equal(pwsp_number_format(number, style, digits).text, expected);
        if (number - number == 0) {
            check_read(expected);
        }
    }
}

TEST(number__is_read_as_by_strtod) {
    uint64_t seed = test_seed() + 1;
    char text[1000];
    for (int i = 0; TEST_ROUNDS(i, 1000000); i++) {
        const uint32_t count = 1 + (uint32_t)(test_random(&seed) % (i % 64 ? 22 : 800));
        const uint32_t point = (uint32_t)(test_random(&seed) % (count + 1));
        size_t length = (size_t)sprintf(text, "%s", test_random(&seed) % 2 ? "-" : "");
        for (uint32_t k = 0; k < count; k++) {
            if (k == point) {
                text[length++] = '.';
            }
            text[length++] = (char)('0' + test_random(&seed) % 10);
        }
        const int range = i % 3 ? 20 : 400;
        sprintf(text + length, "e%+d", (int)test_random_in(&seed, -range, range));
        check_read(text);
    }
}

TEST(number__shortest_reads_back_and_none_is_shorter) {
    uint64_t seed = test_seed() + 2;
    char text[64];
    for (int i = 0; TEST_ROUNDS(i, 200000); i++) {
        const bool is_f32 = i % 2;
        const double drawn = draw(&seed), number = is_f32 ? (double)(float)drawn : drawn;
        if (number - number != 0) {
            continue;
        }
        const pwsp_number_text shortest = pwsp_shortest(number, is_f32);
        int digits = is_f32 ? 1 : 15;
        for (;; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, number);
            if ((is_f32 ? (double)strtof(text, NULL) : strtod(text, NULL)) == number) {
                break;
            }
        }
        assert_string_equal(shortest.text, text);
    }
}

// -- ties -----------------------------------------------------------------------------------------

// The digit strings of %.1100f have room for the sum of two: half of the sum, with a digit more.
static void middle_of(double low, double high, char *out) {
    static char a[1600], b[1600];
    const int length = snprintf(a, sizeof a, "%01500.1100f", low);
    assert_int_equal(snprintf(b, sizeof b, "%01500.1100f", high), length);
    int carry = 0;
    for (int i = length - 1; i >= 0; i--) {
        if (a[i] != '.') {
            carry += a[i] - '0' + b[i] - '0';
            out[i] = (char)(carry % 10);
            carry /= 10;
        } else {
            out[i] = '.';
        }
    }
    assert_int_equal(carry, 0);
    for (int i = 0; i < length; i++) {
        if (out[i] != '.') {
            const int digit = 10 * carry + out[i];
            out[i] = (char)('0' + digit / 2);
            carry = digit % 2;
        }
    }
    assert_int_equal(carry, 0);
    out[length] = '\0';
}

// Numbers beside each other, by bits: what is in the middle of two is read as the even one, with any
// digit after it as the larger one, and without its last digit as the smaller one.
static void check_tie(uint64_t bits, bool is_f32) {
    static char text[1700];
    const double low = is_f32 ? (double)f32_of((uint32_t)bits) : f64_of(bits);
    const double high = is_f32 ? (double)f32_of((uint32_t)bits + 1) : f64_of(bits + 1);
    double number = 0;
    middle_of(low, high, text);
    const size_t length = strlen(text);
    assert_true(pwsp_number_read(text, length, is_f32, &number));
    assert_same(number, bits % 2 ? high : low);
    strcpy(text + length, "00000000000000000001");
    assert_true(pwsp_number_read(text, length + 20, is_f32, &number));
    assert_same(number, high);
    size_t end = length;
    while (text[end - 1] == '0') {
        end--;
    }
    if (text[end - 1] != '.') {
        assert_true(pwsp_number_read(text, end - 1, is_f32, &number));
        assert_same(number, low);
    }
}

TEST(number__in_the_middle_is_read_as_the_even_one) {
    uint64_t seed = test_seed() + 3;
    for (int i = 0; TEST_ROUNDS(i, 1000); i++) {
        const uint64_t fraction = test_random(&seed) >> 12;
        const uint64_t exponent = i % 2 ? 0 : test_random(&seed) % 2046;
        check_tie(exponent << 52 | fraction, false);
        check_tie((test_random(&seed) % 254) << 23 | (uint32_t)(fraction >> 29), true);
    }
    for (uint64_t exponent = 0; exponent < 2046; exponent += 31) {
        check_tie(exponent << 52, false);
        check_tie((exponent << 52) + (UINT64_C(1) << 52) - 1, false);
    }
}

// -- known values ---------------------------------------------------------------------------------

static void reads(const char *text, bool is_f32, double expected) {
    double number = 1;
    assert_true(pwsp_number_read(text, strlen(text), is_f32, &number));
    assert_same(number, expected);
}

TEST(number__of_known_values_has_the_shortest_text) {
    assert_string_equal(pwsp_shortest(0.1, false).text, "0.1");
    assert_string_equal(pwsp_shortest((double)0.1f, true).text, "0.1");
    assert_string_equal(pwsp_shortest(-0.0, false).text, "-0");
    assert_string_equal(pwsp_shortest(1e23, false).text, "1e+23");
    assert_string_equal(pwsp_shortest(0.1 + 0.2, false).text, "0.30000000000000004");
    assert_string_equal(pwsp_shortest(5e-324, false).text, "4.94065645841247e-324");
    assert_string_equal(pwsp_shortest((double)f32_of(1), true).text, "1e-45");
    assert_string_equal(pwsp_shortest(DBL_MAX, false).text, "1.7976931348623157e+308");
    assert_string_equal(pwsp_fixed(0.125, 2).text, "0.12");  // a tie
    assert_string_equal(pwsp_fixed(0.375, 2).text, "0.38");
    assert_string_equal(pwsp_fixed(999.96, 1).text, "1000.0");
    assert_string_equal(pwsp_fixed(-0.04, 1).text, "-0.0");
    assert_string_equal(pwsp_general(999999.5, 6).text, "1e+06");
    assert_string_equal(pwsp_general(0.0001, 6).text, "0.0001");
    assert_string_equal(pwsp_general(0.00001, 6).text, "1e-05");
    assert_string_equal(pwsp_general((double)INFINITY, 6).text, "inf");
    assert_string_equal(pwsp_general((double)-INFINITY, 6).text, "-inf");
    assert_string_equal(pwsp_general(f64_of(UINT64_C(0x7ff8000000000000)), 6).text, "nan");
    reads("9007199254740993", false, 9007199254740992.0);  // 2^53 + 1
    reads("2.4703282292062327e-324", false, 0.0);          // below 2^-1075
    reads("2.4703282292062328e-324", false, 5e-324);
    reads("-1e99999999999999999999999", false, -(double)INFINITY);
    reads("0e99999999999999999999999", false, 0.0);
    reads("1e-99999999999999999999999", true, 0.0);
    reads("3.4028235677973367e38", true, (double)INFINITY);  // FLT_MAX and half
    reads("3.4028235677973366e38", true, (double)FLT_MAX);
}

TEST(number__is_all_of_its_text) {
    static const char good[][8] = {"1", ".5", "1.", "+2", "-0", "1e5", "1E-5", "00.1"};
    static const char bad[][8] = {"",     "-",   ".",   "e5", "1e", "1e+", "0x10", "1,5",
                                  "1..2", "inf", "nan", " 1", "1 ", "--1", "1e5.", "1.2.3"};
    double number;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(pwsp_number_read(good[i], strlen(good[i]), false, &number));
        assert_same(number, strtod(good[i], NULL));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(pwsp_number_read(bad[i], strlen(bad[i]), false, &number));
    }
    assert_true(pwsp_number_read("12,5", 2, false, &number));
    assert_same(number, 12.0);
}
