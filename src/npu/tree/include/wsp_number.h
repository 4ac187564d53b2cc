// The numbers of a workload's expressions: i64 and u64, and bool. Their arithmetic follows section 16
// of ptowsp.h and never traps:
//
//      + - * and unary -   wrap around
//      x / 0 and x % 0     are 0; INT64_MIN / -1 is INT64_MIN, INT64_MIN % -1 is 0
//      / and % of i64      round towards zero
//      << >>               take the count modulo 64; >> of i64 keeps the sign
//
// C++ integers become numbers where they stand beside one (b + 1); numbers become C++ integers only
// when asked (b.value()). i64 and u64 do not mix: to_i64(x), to_u64(x) and to_bool(x) convert.

#ifndef WSP_NUMBER_H
#define WSP_NUMBER_H

#include <stdint.h>

#include <type_traits>

namespace wsp {

// T is int64_t or uint64_t. All computes in uint64_t, where nothing overflows, unless the sign matters;
// the way back keeps the bits.
template <typename T> class Number {
    static constexpr bool is_signed = std::is_signed<T>::value;
    using Long = typename std::conditional<is_signed, long, unsigned long>::type;
    using LongLong = typename std::conditional<is_signed, long long, unsigned long long>::type;

  public:
    constexpr Number() : value_(0) {
    }
    constexpr Number(int literal) : value_(static_cast<T>(literal)) {
    }
    constexpr Number(unsigned value) : value_(value) {
    }
    constexpr Number(Long value) : value_(static_cast<T>(value)) {
    }
    constexpr Number(LongLong value) : value_(static_cast<T>(value)) {
    }
    Number(bool) = delete;

    static constexpr Number of_bits(uint64_t bits) {
        return static_cast<T>(bits);
    }
    constexpr uint64_t bits() const {
        return static_cast<uint64_t>(value_);
    }
    constexpr T value() const {
        return value_;
    }

    constexpr Number &operator++() {
        return *this = of_bits(bits() + 1);
    }
    constexpr Number operator++(int) {
        const Number before = *this;
        ++*this;
        return before;
    }
    friend constexpr Number operator-(Number a) {
        return of_bits(0 - a.bits());
    }
    friend constexpr Number operator~(Number a) {
        return of_bits(~a.bits());
    }

#define WSP_OPERATOR(type, op, result)                                                             \
    friend constexpr type operator op(Number a, Number b) {                                        \
        return result;                                                                             \
    }
    WSP_OPERATOR(Number, +, of_bits(a.bits() + b.bits()))
    WSP_OPERATOR(Number, -, of_bits(a.bits() - b.bits()))
    WSP_OPERATOR(Number, *, of_bits(a.bits() * b.bits()))
    WSP_OPERATOR(Number, /,
                 b.bits() == 0      ? Number()
                 : b.is_minus_one() ? -a
                                    : Number(a.value_ / b.value_))
    WSP_OPERATOR(Number, %,
                 b.bits() == 0 || b.is_minus_one() ? Number() : Number(a.value_ % b.value_))
    WSP_OPERATOR(Number, &, of_bits(a.bits() & b.bits()))
    WSP_OPERATOR(Number, |, of_bits(a.bits() | b.bits()))
    WSP_OPERATOR(Number, ^, of_bits(a.bits() ^ b.bits()))
    WSP_OPERATOR(Number, <<, of_bits(a.bits() << (b.bits() & 63)))
    WSP_OPERATOR(Number, >>, Number(a.value_ >> (b.bits() & 63)))
    WSP_OPERATOR(bool, ==, a.value_ == b.value_)
    WSP_OPERATOR(bool, !=, a.value_ != b.value_)
    WSP_OPERATOR(bool, <, a.value_ < b.value_)
    WSP_OPERATOR(bool, <=, a.value_ <= b.value_)
    WSP_OPERATOR(bool, >, a.value_ > b.value_)
    WSP_OPERATOR(bool, >=, a.value_ >= b.value_)
#undef WSP_OPERATOR

    friend constexpr Number min(Number a, Number b) {
        return b < a ? b : a;
    }
    friend constexpr Number max(Number a, Number b) {
        return a < b ? b : a;
    }

  private:
    constexpr bool is_minus_one() const {
        return is_signed && bits() == UINT64_MAX;
    }
    T value_;
};

using i64 = Number<int64_t>;
using u64 = Number<uint64_t>;

// Between i64 and u64 the bits stay; a bool is 0 or 1; to_bool is "not 0".
template <typename T> constexpr i64 to_i64(Number<T> x) {
    return i64::of_bits(x.bits());
}
template <typename T> constexpr u64 to_u64(Number<T> x) {
    return x.bits();
}
template <typename T> constexpr bool to_bool(Number<T> x) {
    return x.bits() != 0;
}
constexpr i64 to_i64(bool x) {
    return x ? 1 : 0;
}
constexpr u64 to_u64(bool x) {
    return x ? 1 : 0;
}
constexpr bool to_bool(bool x) {
    return x;
}
// For C++ integers, choose: to_i64(i64(5)).
template <typename T> i64 to_i64(T x) = delete;
template <typename T> u64 to_u64(T x) = delete;
template <typename T> bool to_bool(T x) = delete;

}  // namespace wsp

#endif
