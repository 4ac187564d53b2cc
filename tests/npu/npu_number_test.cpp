// Numbers of emitted trees (wsp_number.h): every operator over values at the edges, held against
// what it means in 128 bits, and what must not compile, by asking whether it would. And a device's
// floats of doubles (wsp_kernel.h), held against this machine's.

#include "src/npu/tree/aicore/wsp_kernel.h"
#include "src/npu/tree/include/wsp_number.h"
#include "wide.h"

#include "test.h"

#include <type_traits>

using namespace wsp;

// clang-format off
static const uint64_t values[] = {
    0, 1, 2, 3, 7, 63, 64, 65, 128, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 6, UINT64_MAX - 62,
    UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, INT64_MAX, INT64_MAX - 1, UINT64_C(1) << 32,
    UINT64_C(0x123456789abcdef), UINT64_C(0xfedcba9876543210)};
// clang-format on

// -- in 128 bits ----------------------------------------------------------------------------------

// The bits of either kind of number, and the number that some bits are.
static uint64_t bits_of(i64 x) {
    return x.bits();
}
static uint64_t bits_of(u64 x) {
    return x.value();
}
static wide wide_of(i64 x) {
    return wide_of_i64(x.value());
}
static wide wide_of(u64 x) {
    return wide_of_u64(x.value());
}

template <typename T> static void check_pair(T a, T b) {
    const wide x = wide_of(a), y = wide_of(b);
    const unsigned count = static_cast<unsigned>(bits_of(b) % 64);
    const int order = wide_compare(x, y);
    const bool can_divide = bits_of(b) != 0;
    assert_true(bits_of(a + b) == wide_add(x, y).low);
    assert_true(bits_of(a - b) == wide_sub(x, y).low);
    assert_true(bits_of(a * b) == wide_mul(x, y).low);
    assert_true(bits_of(a / b) == (can_divide ? wide_div(x, y).low : 0));
    assert_true(bits_of(a % b) == (can_divide ? wide_rem(x, y).low : 0));
    assert_true(bits_of(a & b) == (bits_of(a) & bits_of(b)));
    assert_true(bits_of(a | b) == (bits_of(a) | bits_of(b)));
    assert_true(bits_of(a ^ b) == (bits_of(a) ^ bits_of(b)));
    assert_true(bits_of(a << b) == bits_of(a) << count);
    assert_true(bits_of(a >> b) == wide_shift_right(x, count).low);
    assert_true(bits_of(min(a, b)) == (order < 0 ? x : y).low);
    assert_true(bits_of(max(a, b)) == (order > 0 ? x : y).low);
    assert_true((a == b) == (order == 0) && (a != b) == (order != 0));
    assert_true((a < b) == (order < 0) && (a <= b) == (order <= 0));
    assert_true((a > b) == (order > 0) && (a >= b) == (order >= 0));
}

template <typename T> static void check_one(T a) {
    const wide x = wide_of(a);
    assert_true(bits_of(-a) == wide_neg(x).low);
    assert_true(bits_of(~a) == wide_sub(wide_neg(x), wide_of_u64(1)).low);
    assert_true(bits_of(to_i64(a)) == bits_of(a) && bits_of(to_u64(a)) == bits_of(a));
    assert_true(to_bool(a) == (bits_of(a) != 0));
    T up = a;
    assert_true(bits_of(up++) == bits_of(a) && bits_of(up) == wide_add(x, wide_of_u64(1)).low);
    assert_true(bits_of(++up) == wide_add(x, wide_of_u64(2)).low);
}

TEST(number__every_operator_is_that_of_128_bits_cut) {
    for (uint64_t a : values) {
        check_one(i64::of_bits(a));
        check_one(u64(a));
        for (uint64_t b : values) {
            check_pair(i64::of_bits(a), i64::of_bits(b));
            check_pair(u64(a), u64(b));
        }
    }
}

// -- on paper, when compiling ---------------------------------------------------------------------

static_assert(i64(INT64_MIN) / -1 == INT64_MIN && i64(INT64_MIN) % -1 == 0, "");
static_assert(i64(7) / 0 == 0 && i64(7) % 0 == 0 && u64(7) / 0u == 0u && u64(7) % 0u == 0u, "");
static_assert(i64(-7) / 2 == -3 && i64(-7) % 2 == -1, "");
static_assert(i64(INT64_MAX) + 1 == INT64_MIN && -i64(INT64_MIN) == INT64_MIN, "");
static_assert((i64(-8) >> 65) == -4 && (i64(-1) >> 63) == -1 && (1 << i64(-1)) == INT64_MIN, "");
static_assert(u64(0) - 1u == 18446744073709551615u && (u64(1) << 64u) == 1u, "");
static_assert(to_i64(true) == 1 && to_u64(false) == 0u && to_bool(i64(-2)), "");
static_assert(min(5, i64(3)) == 3 && max(u64(5), 7u) == 7u, "");
static_assert(i64().value() == 0 && u64().value() == 0, "");
static_assert(std::is_trivially_copyable<i64>::value && std::is_trivially_copyable<u64>::value, "");
static_assert(sizeof(i64) == 8 && sizeof(u64) == 8, "");

TEST(number__literals_stand_beside_numbers_and_alone) {
    const i64 b = 3;
    const u64 n = 5u;
    assert_true((b < 2048 ? b : 7) == 3);
    assert_true((b > 2048 ? b : 7) == 7);
    assert_true(b * 5000000000 + -1 == 14999999999);
    assert_true(2 - b == -1 && INT64_MIN + b == INT64_MIN + 3);
    assert_true(n * 4294967296u == 21474836480u && 7 % n == 2);
    i64 sum = 0;
    for (i64 i = 0, end = b; i < end; i++) {
        sum = sum + i;
    }
    assert_int_equal(sum.value(), 3);
}

TEST(number__conversions_keep_the_bits) {
    u64 sum;
    uint64_t expected = 0;
    for (uint64_t value : values) {
        const unsigned long long wide_value = value;  // uint64_t is another type on some machines
        const i64 number(static_cast<long long>(wide_value));
        assert_true(u64(wide_value).value() == value && number.bits() == value);
        assert_true(to_u64(number) == u64(value) && to_i64(u64(value)) == number);
        assert_true(to_u64(u64(value)).value() == value && to_i64(number).bits() == value);
        assert_true(to_bool(number) == (value != 0) && to_bool(u64(value)) == (value != 0));
        assert_true(to_bool(value != 0) == (value != 0));
        assert_true(to_i64(value != 0) == (value ? 1 : 0) &&
                    to_u64(value == 0) == (value ? 0u : 1u));
        sum = sum + u64(wide_value);
        expected += value;
    }
    assert_true(sum.value() == expected);
}

// -- what does not compile ------------------------------------------------------------------------

// clang-format off
#define ASKS(name, expression)                                                                     \
    template <typename A, typename B> static constexpr auto name(int)                              \
        -> decltype((expression), true) { return true; }                                           \
    template <typename A, typename B> static constexpr bool name(...) { return false; }
// clang-format on

template <typename T> T of();

ASKS(adds, of<A>() + of<B>())
ASKS(shifts, of<A>() << of<B>())
ASKS(compares, of<A>() == of<B>())
ASKS(chooses, true ? of<A>() : of<B>())
ASKS(finds_the_least, min(of<A>(), of<B>()))
ASKS(converts_to_i64, to_i64(of<A>()))

#define HAS_NONE(A, B)                                                                             \
    static_assert(!adds<A, B>(0) && !shifts<A, B>(0) && !compares<A, B>(0) && !chooses<A, B>(0) && \
                      !finds_the_least<A, B>(0),                                                   \
                  #A " and " #B)
#define HAS_ALL(A, B)                                                                              \
    static_assert(adds<A, B>(0) && shifts<A, B>(0) && compares<A, B>(0) && chooses<A, B>(0) &&     \
                      finds_the_least<A, B>(0),                                                    \
                  #A " and " #B)

HAS_ALL(i64, i64);
HAS_ALL(i64, int);
HAS_ALL(long, i64);
HAS_ALL(u64, u64);
HAS_ALL(u64, unsigned);
HAS_ALL(unsigned long, u64);
HAS_NONE(i64, u64);
HAS_NONE(u64, i64);
HAS_NONE(i64, unsigned long);
HAS_NONE(u64, long);
HAS_NONE(i64, double);
static_assert(!adds<i64, bool>(0) && !adds<u64, bool>(0) && !compares<i64, bool>(0), "");
static_assert(converts_to_i64<u64, int>(0) && converts_to_i64<bool, int>(0), "");
static_assert(!converts_to_i64<int, int>(0), "an int would be taken for a bool");
static_assert(!std::is_convertible<i64, int64_t>::value && !std::is_convertible<i64, bool>::value &&
                  !std::is_convertible<i64, u64>::value && !std::is_convertible<u64, i64>::value,
              "");

// Around every exponent and every tie, and random bits.
TEST(number__a_devices_float_is_the_nearest_one) {
    uint64_t random = 1;
    for (uint64_t i = 0; i < 2048 * 40; i++) {
        static const uint64_t ends[] = {0,          1,          0xfffffff,  0x10000000, 0x10000001,
                                        0x20000000, 0x2fffffff, 0x30000000, 0x30000001, 0x3fffffff};
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t exponent = i % 2048, way = i / 2048 % 4, end = ends[i / 2048 / 4];
        const uint64_t mask = (UINT64_C(1) << 52) - 1, middle = UINT64_C(1) << (exponent % 53);
        const uint64_t mantissa = (way == 0   ? end
                                   : way == 1 ? mask - end
                                   : way == 2 ? middle ^ end
                                              : random) &
                                  mask;
        const uint64_t bits = random >> 63 << 63 | exponent << 52 | mantissa;
        double number;
        memcpy(&number, &bits, sizeof number);
        const volatile float wanted = static_cast<float>(number);
        const float nearest = wanted;
        uint32_t wanted_bits;
        memcpy(&wanted_bits, &nearest, sizeof wanted_bits);
        const uint32_t got = wsp::f32_bits_of_f64(bits);
        if (number != number) {
            assert_true((got & 0x7fffffffu) > 0x7f800000u);
        } else {
            assert_int_equal(got, wanted_bits);
        }
    }
    assert_int_equal(wsp::f32_bits_of_f64(UINT64_C(0x7ff0000000000001)), 0x7fc00000);
}
