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

namespace wsp {

// An operator of two numbers, and the comparisons of a class.
#define WSP_OPERATOR(type, op, result)                                                             \
    friend constexpr type operator op(type a, type b) {                                            \
        return result;                                                                             \
    }
#define WSP_COMPARE(type, op)                                                                      \
    friend constexpr bool operator op(type a, type b) {                                            \
        return a.value_ op b.value_;                                                               \
    }
#define WSP_COMPARISONS(type)                                                                      \
    WSP_COMPARE(type, ==)                                                                          \
    WSP_COMPARE(type, !=)                                                                          \
    WSP_COMPARE(type, <)                                                                           \
    WSP_COMPARE(type, <=)                                                                          \
    WSP_COMPARE(type, >)                                                                           \
    WSP_COMPARE(type, >=)

class u64 {
  public:
    constexpr u64() : value_(0) {
    }
    constexpr u64(int literal) : value_(static_cast<uint64_t>(literal)) {
    }
    constexpr u64(unsigned value) : value_(value) {
    }
    constexpr u64(unsigned long value) : value_(value) {
    }
    constexpr u64(unsigned long long value) : value_(value) {
    }
    u64(bool) = delete;

    constexpr uint64_t value() const {
        return value_;
    }

    constexpr u64 &operator++() {
        value_++;
        return *this;
    }
    constexpr u64 operator++(int) {
        return u64(value_++);
    }
    friend constexpr u64 operator-(u64 a) {
        return 0 - a.value_;
    }
    friend constexpr u64 operator~(u64 a) {
        return ~a.value_;
    }
    WSP_OPERATOR(u64, +, a.value_ + b.value_)
    WSP_OPERATOR(u64, -, a.value_ - b.value_)
    WSP_OPERATOR(u64, *, a.value_ *b.value_)
    WSP_OPERATOR(u64, /, b.value_ ? a.value_ / b.value_ : 0)
    WSP_OPERATOR(u64, %, b.value_ ? a.value_ % b.value_ : 0)
    WSP_OPERATOR(u64, &, a.value_ &b.value_)
    WSP_OPERATOR(u64, |, a.value_ | b.value_)
    WSP_OPERATOR(u64, ^, a.value_ ^ b.value_)
    WSP_OPERATOR(u64, <<, a.value_ << (b.value_ & 63))
    WSP_OPERATOR(u64, >>, a.value_ >> (b.value_ & 63))
    WSP_COMPARISONS(u64)

  private:
    uint64_t value_;
};

// Computes in uint64_t, where nothing overflows; the way back keeps the bits.
class i64 {
  public:
    constexpr i64() : value_(0) {
    }
    constexpr i64(int value) : value_(value) {
    }
    constexpr i64(unsigned value) : value_(value) {
    }
    constexpr i64(long value) : value_(value) {
    }
    constexpr i64(long long value) : value_(value) {
    }
    i64(bool) = delete;

    static constexpr i64 of_bits(uint64_t bits) {
        return static_cast<int64_t>(bits);
    }
    constexpr uint64_t bits() const {
        return static_cast<uint64_t>(value_);
    }
    constexpr int64_t value() const {
        return value_;
    }

    constexpr i64 &operator++() {
        return *this = of_bits(bits() + 1);
    }
    constexpr i64 operator++(int) {
        const i64 before = *this;
        ++*this;
        return before;
    }
    friend constexpr i64 operator-(i64 a) {
        return of_bits(0 - a.bits());
    }
    friend constexpr i64 operator~(i64 a) {
        return ~a.value_;
    }
    WSP_OPERATOR(i64, +, of_bits(a.bits() + b.bits()))
    WSP_OPERATOR(i64, -, of_bits(a.bits() - b.bits()))
    WSP_OPERATOR(i64, *, of_bits(a.bits() * b.bits()))
    WSP_OPERATOR(i64, /, b.value_ == 0 ? 0 : b.value_ == -1 ? (-a).value_ : a.value_ / b.value_)
    WSP_OPERATOR(i64, %, b.value_ == 0 || b.value_ == -1 ? 0 : a.value_ % b.value_)
    WSP_OPERATOR(i64, &, a.value_ &b.value_)
    WSP_OPERATOR(i64, |, a.value_ | b.value_)
    WSP_OPERATOR(i64, ^, a.value_ ^ b.value_)
    WSP_OPERATOR(i64, <<, of_bits(a.bits() << (b.bits() & 63)))
    WSP_OPERATOR(i64, >>, a.value_ >> (b.bits() & 63))
    WSP_COMPARISONS(i64)

  private:
    int64_t value_;
};

#undef WSP_OPERATOR
#undef WSP_COMPARE
#undef WSP_COMPARISONS

constexpr i64 min(i64 a, i64 b) {
    return b < a ? b : a;
}
constexpr u64 min(u64 a, u64 b) {
    return b < a ? b : a;
}
constexpr i64 max(i64 a, i64 b) {
    return a < b ? b : a;
}
constexpr u64 max(u64 a, u64 b) {
    return a < b ? b : a;
}

// Between i64 and u64 the bits stay; a bool is 0 or 1; to_bool is "not 0".
constexpr i64 to_i64(i64 x) {
    return x;
}
constexpr i64 to_i64(u64 x) {
    return i64::of_bits(x.value());
}
constexpr i64 to_i64(bool x) {
    return x ? 1 : 0;
}
constexpr u64 to_u64(i64 x) {
    return x.bits();
}
constexpr u64 to_u64(u64 x) {
    return x;
}
constexpr u64 to_u64(bool x) {
    return x ? 1 : 0;
}
constexpr bool to_bool(i64 x) {
    return x != 0;
}
constexpr bool to_bool(u64 x) {
    return x != 0;
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
