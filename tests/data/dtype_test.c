// Data types: names, sizes and conversions.
//
// Expected values: the exact arithmetic of long double, with
// ldexp, floor and comparisons, as a slow reference for every pair of types. Where long double has
// less than 64 bits of precision (armhf), the pairs with integers of 64 bits are left to the patterns
// of conversion_facts_test.c.

#include "number_bits.h"
#include "test.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

#define DTYPE_FIRST PTOWSP_F16
#define DTYPE_LAST  PTOWSP_BOOL

// -- a reference ----------------------------------------------------------------------------------

typedef struct float_layout {
    int fraction, exponent;  // bits
} float_layout;

static bool is_float(ptowsp_dtype dtype) {
    return dtype >= PTOWSP_F16 && dtype <= PTOWSP_F64;
}

static bool is_signed(ptowsp_dtype dtype) {
    return dtype >= PTOWSP_I8 && dtype <= PTOWSP_I64;
}

static float_layout layout_of(ptowsp_dtype dtype) {
    static const float_layout layouts[4] = {{10, 5}, {7, 8}, {23, 8}, {52, 11}};
    return layouts[dtype - PTOWSP_F16];
}

static int bits_in(ptowsp_dtype dtype) {
    static const int bits[14] = {0, 16, 16, 32, 64, 8, 16, 32, 64, 8, 16, 32, 64, 8};
    return bits[dtype];
}

static uint64_t low_bits(uint64_t x, int count) {
    return count >= 64 ? x : x % (UINT64_C(1) << count);
}

static bool reference_is_nan(ptowsp_dtype dtype, uint64_t bits) {
    if (!is_float(dtype)) {
        return false;
    }
    float_layout layout = layout_of(dtype);
    return low_bits(bits, layout.fraction + layout.exponent) > low_bits(UINT64_MAX, layout.exponent)
                                                                   << layout.fraction;
}

// The value of an element that is not NaN.
static long double reference_value(ptowsp_dtype dtype, uint64_t bits) {
    if (dtype == PTOWSP_BOOL) {
        return bits == 0 ? 0.0L : 1.0L;
    }
    int width = bits_in(dtype);
    bool upper = (bits >> (width - 1)) == 1;
    if (!is_float(dtype)) {
        return (long double)bits - (is_signed(dtype) && upper ? ldexpl(1.0L, width) : 0.0L);
    }
    float_layout layout = layout_of(dtype);
    int bias = (1 << (layout.exponent - 1)) - 1;
    int exponent = (int)low_bits(bits >> layout.fraction, layout.exponent);
    long double fraction = ldexpl((long double)low_bits(bits, layout.fraction), -layout.fraction);
    long double value = exponent == 2 * bias + 1 ? (long double)INFINITY
                        : exponent == 0          ? ldexpl(fraction, 1 - bias)
                                                 : ldexpl(1.0L + fraction, exponent - bias);
    return upper ? -value : value;
}

// The pattern of the float nearest to a value, ties to even.
static uint64_t reference_float(ptowsp_dtype dtype, long double value) {
    float_layout layout = layout_of(dtype);
    int bias = (1 << (layout.exponent - 1)) - 1, exponent = 0;
    uint64_t sign = signbit(value) ? UINT64_C(1) << (layout.fraction + layout.exponent) : 0;
    uint64_t infinity = low_bits(UINT64_MAX, layout.exponent) << layout.fraction;
    long double x = fabsl(value);
    if (x == 0.0L || isinf(x)) {
        return sign + (x == 0.0L ? 0 : infinity);
    }
    frexpl(x, &exponent);  // x is in [2^(exponent - 1), 2^exponent)
    int unit = (exponent - 1 < 1 - bias ? 1 - bias : exponent - 1) - layout.fraction;
    long double units = ldexpl(x, -unit), whole = floorl(units), rest = units - whole;
    if (rest > 0.5L || (rest == 0.5L && fmodl(whole, 2.0L) == 1.0L)) {
        whole += 1.0L;
    }
    x = ldexpl(whole, unit);
    if (x >= ldexpl(1.0L, bias + 1)) {
        return sign + infinity;
    }
    if (x < ldexpl(1.0L, 1 - bias)) {
        return sign + (uint64_t)ldexpl(x, bias - 1 + layout.fraction);
    }
    long double mantissa = frexpl(x, &exponent);
    return sign + ((uint64_t)(exponent - 1 + bias) << layout.fraction) +
           (uint64_t)ldexpl(2.0L * mantissa - 1.0L, layout.fraction);
}

static uint64_t reference_nan(ptowsp_dtype out, ptowsp_dtype in, uint64_t bits) {
    float_layout from = layout_of(in), to = layout_of(out);
    uint64_t sign = bits >> (from.fraction + from.exponent);
    uint64_t fraction = low_bits(bits, from.fraction);
    if (to.fraction >= from.fraction) {
        fraction <<= to.fraction - from.fraction;
    } else {
        fraction >>= from.fraction - to.fraction;
    }
    if (to.fraction < from.fraction || to.exponent < from.exponent) {
        fraction |= UINT64_C(1) << (to.fraction - 1);  // narrowed: quiet
    }
    return (sign << (to.fraction + to.exponent)) +
           (low_bits(UINT64_MAX, to.exponent) << to.fraction) + fraction;
}

static uint64_t reference_convert(ptowsp_dtype out, ptowsp_dtype in, uint64_t bits) {
    bool is_nan = reference_is_nan(in, bits);
    long double value = is_nan ? 0.0L : reference_value(in, bits);
    if (out == PTOWSP_BOOL) {
        return is_nan || value != 0.0L;
    }
    if (is_float(out)) {
        return is_nan ? reference_nan(out, in, bits) : reference_float(out, value);
    }
    int width = bits_in(out);
    value = truncl(value);
    if (is_float(in)) {
        long double high = ldexpl(1.0L, is_signed(out) ? width - 1 : width) - 1.0L;
        long double low = is_signed(out) ? -high - 1.0L : 0.0L;
        value = value > high ? high : value < low ? low : value;
    }
    uint64_t magnitude = (uint64_t)fabsl(value);
    return low_bits(value < 0.0L ? ~magnitude + 1 : magnitude, width);
}

static void store(unsigned char *at, ptowsp_dtype dtype, uint64_t bits) {
    uint8_t u8 = (uint8_t)bits;
    uint16_t u16 = (uint16_t)bits;
    uint32_t u32 = (uint32_t)bits;
    switch (bits_in(dtype)) {
    case 8: memcpy(at, &u8, 1); break;
    case 16: memcpy(at, &u16, 2); break;
    case 32: memcpy(at, &u32, 4); break;
    default: memcpy(at, &bits, 8);
    }
}

static uint64_t load(const unsigned char *at, ptowsp_dtype dtype) {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (bits_in(dtype)) {
    case 8: memcpy(&u8, at, 1); return u8;
    case 16: memcpy(&u16, at, 2); return u16;
    case 32: memcpy(&u32, at, 4); return u32;
    default: memcpy(&u64, at, 8); return u64;
    }
}

static uint64_t convert(ptowsp_dtype out, ptowsp_dtype in, uint64_t bits) {
    unsigned char from[8], to[8];
    store(from, in, bits);
    assert_ok(ptowsp_convert(to, out, from, in, 1));
    return load(to, out);
}

// Whether the reference holds each value of the type.
static bool is_in_reference(ptowsp_dtype dtype) {
    return LDBL_MANT_DIG >= 64 || is_float(dtype) || bits_in(dtype) < 64;
}

static void converts_as_the_reference(ptowsp_dtype out, ptowsp_dtype in, uint64_t bits) {
    if (!is_in_reference(out) || !is_in_reference(in)) {
        return;
    }
    uint64_t actual = convert(out, in, bits), expected = reference_convert(out, in, bits);
    if (actual != expected) {
        fail_msg("%s of %s 0x%llx is 0x%llx, not 0x%llx", ptowsp_dtype_name(out),
                 ptowsp_dtype_name(in), (unsigned long long)bits, (unsigned long long)actual,
                 (unsigned long long)expected);
    }
}

// To all types; the reference has no bits of NaN of the same type.
static void converts_to_all(ptowsp_dtype in, uint64_t bits) {
    for (int out = DTYPE_FIRST; out <= (int)DTYPE_LAST; out++) {
        if (in != (ptowsp_dtype)out || !reference_is_nan(in, bits)) {
            converts_as_the_reference((ptowsp_dtype)out, in, bits);
        }
    }
}

// -- names and sizes ------------------------------------------------------------------------------

TEST(dtype__names_and_sizes_are_those_of_the_manual) {
    static const char names[14][5] = {"none", "f16", "bf16", "f32", "f64", "i8",  "i16",
                                      "i32",  "i64", "u8",   "u16", "u32", "u64", "bool"};
    for (int i = 0; i <= 13; i++) {
        assert_string_equal(ptowsp_dtype_name((ptowsp_dtype)i), names[i]);
        assert_int_equal(ptowsp_dtype_size((ptowsp_dtype)i), bits_in((ptowsp_dtype)i) / 8);
    }
    static const int others[3] = {14, 1000, 0x7fffffff};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(ptowsp_dtype_name((ptowsp_dtype)others[i]), "none");
        assert_int_equal(ptowsp_dtype_size((ptowsp_dtype)others[i]), 0);
    }
}

// -- f16 and bf16 ---------------------------------------------------------------------------------

// Their functions, the pattern of infinity, and the bit that makes a NaN quiet.
typedef struct half {
    ptowsp_dtype dtype;
    uint16_t (*narrow)(float);
    float (*widen)(uint16_t);
    uint32_t infinity, quiet;
} half;

static const half f16 = {PTOWSP_F16, ptowsp_f16_from_f32, ptowsp_f32_from_f16, 0x7c00, 0x200};
static const half bf16 = {PTOWSP_BF16, ptowsp_bf16_from_f32, ptowsp_f32_from_bf16, 0x7f80, 0x40};

// What comes of a float that a function returns: 32-bit x86 returns it in a register of the x87, which
// makes NaNs quiet.
static uint32_t returned(uint32_t bits) {
#if defined(__i386__)
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return is_nan ? bits | 0x400000 : bits;
#else
    return bits;
#endif
}

static void widens_and_returns(half h) {
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        const bool is_nan = reference_is_nan(h.dtype, bits);
        const uint32_t expected = (uint32_t)reference_convert(PTOWSP_F32, h.dtype, bits);
        const uint32_t back = is_nan ? bits | h.quiet : bits;
        assert_int_equal(bits_of_f32(h.widen((uint16_t)bits)), returned(expected));
        assert_int_equal(h.narrow(f32_of(expected)), back);
        assert_int_equal(test_half_of(h.dtype, f64_of(convert(PTOWSP_F64, h.dtype, bits))), back);
    }
}

TEST(f16__every_pattern_widens_exactly_and_returns) {
    widens_and_returns(f16);
}

TEST(bf16__every_pattern_widens_exactly_and_returns) {
    widens_and_returns(bf16);
}

// For all neighbours: the tie goes to the even one, what is next to it goes to its side. Also when
// next to it means so near that f32 could not tell, and through f32 half of them would go wrong.
static void rounds_at_boundaries(half h) {
    uint32_t wrong_through_f32 = 0;
    for (uint32_t bits = 0; bits < h.infinity; bits++) {
        const uint32_t even = bits + (bits & 1);
        const double low = (double)h.widen((uint16_t)bits);
        const double high = bits + 1 < h.infinity ? (double)h.widen((uint16_t)(bits + 1))
                                                  : ldexp(1, h.dtype == PTOWSP_F16 ? 16 : 128);
        const float tie = (float)((low + high) / 2), under = nextafterf(tie, 0.0f);
        const float over = nextafterf(tie, INFINITY);
        const double near_under = nextafter((double)tie, 0.0),
                     near_over = nextafter((double)tie, 1e300);
        assert_true(low < (double)tie && (double)tie < high);
        for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
            const float s = sign ? -1.0f : 1.0f;
            assert_int_equal(h.narrow(s * tie), even | sign);
            assert_int_equal(h.narrow(s * under), bits | sign);
            assert_int_equal(h.narrow(s * over), (bits + 1) | sign);
            assert_int_equal(test_half_of(h.dtype, (double)(s * tie)), even | sign);
            assert_int_equal(test_half_of(h.dtype, (double)s * near_under), bits | sign);
            assert_int_equal(test_half_of(h.dtype, (double)s * near_over), (bits + 1) | sign);
        }
        wrong_through_f32 += h.narrow((float)near_under) != bits;
        wrong_through_f32 += h.narrow((float)near_over) != bits + 1;
    }
    assert_int_equal(wrong_through_f32, h.infinity);
}

TEST(f16__every_boundary_is_where_it_should_be) {
    rounds_at_boundaries(f16);
}

TEST(bf16__every_boundary_is_where_it_should_be) {
    rounds_at_boundaries(bf16);
}

TEST(f16__and_bf16_agree_with_the_reference_over_all_of_f32) {
    // 1.3 million patterns, a prime apart, and all exponents with few fraction bits.
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 3301) {
        converts_as_the_reference(PTOWSP_F16, PTOWSP_F32, bits);
        converts_as_the_reference(PTOWSP_BF16, PTOWSP_F32, bits);
    }
    for (uint64_t high = 0; high <= 0xffff; high++) {
        static const uint64_t lows[5] = {0, 1, 0x7fff, 0x8000, 0x8001};
        for (int i = 0; i < 5; i++) {
            converts_as_the_reference(PTOWSP_BF16, PTOWSP_F32, high << 16 | lows[i]);
        }
    }
}

// -- all pairs ------------------------------------------------------------------------------------

TEST(convert__all_pairs_agree_with_the_reference_for_8_and_16_bits) {
    for (int in = DTYPE_FIRST; in <= (int)DTYPE_LAST; in++) {
        int width = bits_in((ptowsp_dtype)in);
        for (uint64_t bits = 0; width <= 16 && bits < UINT64_C(1) << width; bits++) {
            converts_to_all((ptowsp_dtype)in, bits);
            assert_true(in == PTOWSP_BOOL ||
                        convert((ptowsp_dtype)in, (ptowsp_dtype)in, bits) == bits);
        }
    }
}

// A pattern with a random number of leading bits random and the rest 0 or 1, sometimes next to it.
static uint64_t random_pattern(uint64_t *random, int width) {
    uint64_t bits = test_random(random);
    int cut = (int)test_random_in(random, 0, 63);
    switch (test_random_in(random, 0, 3)) {
    case 0: bits = bits >> cut << cut; break;
    case 1: bits >>= cut; break;
    case 2: bits |= (UINT64_C(1) << cut) - 1; break;
    default: break;
    }
    return low_bits(bits + (uint64_t)test_random_in(random, -1, 1), width);
}

TEST(convert__all_pairs_agree_with_the_reference_for_32_and_64_bits) {
    uint64_t random = test_seed();
    for (int in = DTYPE_FIRST; in <= (int)DTYPE_LAST; in++) {
        int width = bits_in((ptowsp_dtype)in);
        for (int round = 0; width >= 32 && round < 20000; round++) {
            uint64_t bits = random_pattern(&random, width);
            if (in == PTOWSP_F64 && round % 4 != 0) {  // exponents that the others have
                uint64_t exponent = (uint64_t)test_random_in(&random, 1023 - 160, 1023 + 130);
                bits = (bits & ~(UINT64_C(0x7ff) << 52)) | exponent << 52;
            }
            converts_to_all((ptowsp_dtype)in, bits);
        }
        // Around each power of two, as integers, and around each exponent, as floats.
        for (int power = 0; width >= 32 && power < width; power++) {
            for (int low = -1; low < power; low++) {
                for (uint64_t near = 0; near < 5; near++) {
                    uint64_t bits = (UINT64_C(1) << power) + near - 2;
                    bits = low_bits(bits + (low < 0 ? 0 : UINT64_C(1) << low), width);
                    converts_to_all((ptowsp_dtype)in, bits);
                }
            }
        }
    }
}

TEST(convert__agrees_with_the_compiler_on_f32_and_f64) {
    // qemu 7.2 rounds conversions of integers to f32 twice on ppc64el: to f64, which makes a tie of
    // this number, and from there to even.
    volatile uint64_t below = (UINT64_C(1) << 63) + (UINT64_C(3) << 39) - 1;
    if ((float)below != 0x1.000002p63f) {
        print_message("skipped: this machine rounds integers twice\n");
        skip();
    }
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 200000); round++) {
        uint64_t bits = random_pattern(&random, 64);
        double f64 = f64_of(round % 2 ? bits : (bits & ~(UINT64_C(0xf) << 59)) | UINT64_C(7) << 59);
        if (!isnan(f64) && fabs(f64) <= (double)FLT_MAX) {
            assert_int_equal(convert(PTOWSP_F32, PTOWSP_F64, bits_of_f64(f64)),
                             bits_of_f32((float)f64));
        }
        assert_int_equal(convert(PTOWSP_F32, PTOWSP_U64, bits), bits_of_f32((float)bits));
        assert_int_equal(convert(PTOWSP_F32, PTOWSP_I64, bits), bits_of_f32((float)(int64_t)bits));
        assert_true(convert(PTOWSP_F64, PTOWSP_U64, bits) == bits_of_f64((double)bits));
        assert_true(convert(PTOWSP_F64, PTOWSP_I64, bits) == bits_of_f64((double)(int64_t)bits));
    }
}

// -- arrays ---------------------------------------------------------------------------------------

TEST(convert__arrays_are_their_elements_at_any_alignment) {
    enum { COUNT_MAX = 41 };
    static unsigned char in[8 * COUNT_MAX + 16], out[8 * COUNT_MAX + 32];
    uint64_t random = test_seed();
    for (int from = DTYPE_FIRST; from <= (int)DTYPE_LAST; from++) {
        for (int to = DTYPE_FIRST; to <= (int)DTYPE_LAST; to++) {
            ptowsp_dtype in_dtype = (ptowsp_dtype)from, out_dtype = (ptowsp_dtype)to;
            uint32_t in_size = ptowsp_dtype_size(in_dtype), out_size = ptowsp_dtype_size(out_dtype);
            for (uint64_t count = 0; count <= COUNT_MAX; count++) {
                size_t in_at = (size_t)test_random_in(&random, 0, 8);
                size_t out_at = (size_t)test_random_in(&random, 1, 9),
                       end = out_at + count * out_size;
                for (size_t i = 0; i < sizeof in; i++) {
                    in[i] = (unsigned char)test_random(&random);
                }
                memset(out, 0xa5, sizeof out);
                assert_ok(ptowsp_convert(out + out_at, out_dtype, in + in_at, in_dtype, count));
                for (uint64_t i = 0; i < count; i++) {
                    uint64_t bits = load(in + in_at + i * in_size, in_dtype);
                    assert_true(load(out + out_at + i * out_size, out_dtype) ==
                                convert(out_dtype, in_dtype, bits));
                }
                for (size_t i = 0; i < sizeof out; i++) {
                    assert_true((i >= out_at && i < end) || out[i] == 0xa5);
                }
            }
        }
    }
}

TEST(convert__refuses_what_is_no_type_or_no_array) {
    const float in[2] = {1.0f, 2.0f};
    uint16_t out[2] = {7, 7};
    static const int no_types[4] = {0, 14, 99, 0x7fffffff};
    for (int i = 0; i < 4; i++) {
        ptowsp_dtype none = (ptowsp_dtype)no_types[i];
        for (uint64_t count = 0; count <= 2; count++) {
            assert_invalid(ptowsp_convert(out, none, in, PTOWSP_F32, count));
            assert_invalid(ptowsp_convert(out, PTOWSP_F16, in, none, count));
        }
        assert_invalid(ptowsp_convert(out, none, in, none, 1));
    }
    assert_invalid(ptowsp_convert(NULL, PTOWSP_F16, in, PTOWSP_F32, 1));
    assert_invalid(ptowsp_convert(out, PTOWSP_F16, NULL, PTOWSP_F32, 1));
    assert_invalid(ptowsp_convert(NULL, PTOWSP_F32, in, PTOWSP_F32, 1));
    assert_invalid(ptowsp_convert(out, PTOWSP_F32, NULL, PTOWSP_F32, 1));
    assert_true(out[0] == 7 && out[1] == 7);
    assert_ok(ptowsp_convert(NULL, PTOWSP_F16, NULL, PTOWSP_F32, 0));
    assert_ok(ptowsp_convert(NULL, PTOWSP_I8, NULL, PTOWSP_I8, 0));
    assert_ok(ptowsp_convert(out, PTOWSP_F16, in, PTOWSP_F32, 2));
    assert_true(out[0] == 0x3c00 && out[1] == 0x4000);
}

TEST(convert__is_the_same_in_every_rounding_mode) {
    enum { COUNT = 512 };
    static uint64_t in[COUNT], expected[COUNT], out[COUNT];
    static const int modes[3] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    uint64_t random = test_seed();
    for (int i = 0; i < COUNT; i++) {
        in[i] = random_pattern(&random, 64);
    }
    for (int from = DTYPE_FIRST; from <= (int)DTYPE_LAST; from++) {
        for (int to = DTYPE_FIRST; to <= (int)DTYPE_LAST; to++) {
            memset(expected, 0, sizeof expected);
            ptowsp_convert(expected, (ptowsp_dtype)to, in, (ptowsp_dtype)from, COUNT);
            for (int mode = 0; mode < 3; mode++) {
                memset(out, 0, sizeof out);
                assert_int_equal(fesetround(modes[mode]), 0);
                feclearexcept(FE_ALL_EXCEPT);
                ptowsp_convert(out, (ptowsp_dtype)to, in, (ptowsp_dtype)from, COUNT);
                int raised = fetestexcept(FE_ALL_EXCEPT);
                fesetround(FE_TONEAREST);
                assert_int_equal(raised, 0);
                assert_memory_equal(out, expected, sizeof out);
            }
        }
    }
}
