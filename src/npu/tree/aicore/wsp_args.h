// Arguments of a task: valid sizes, scalars as numbers, bounds of loops, and elements of tiles.

#ifndef WSP_ARGS_H
#define WSP_ARGS_H

#include "wsp_target.h"

// How a task is read, and how it fails: axis 0 is rows. A different runtime passes tasks in its own
// form, and defines these macros for it (wsp_simpler_kernel.h).
#ifndef WSP_TILE_SIZE
#define WSP_TILE_SIZE(task, tile, axis) ((task)->args[(task)->axis_count + 2 * (tile) + (axis)])
#define WSP_TILE_DATA(task, tile)       ((task)->tiles[tile].data)
#define WSP_TILE_STRIDE(task, tile, axis)                                                          \
    ((axis) ? (task)->tiles[tile].col_stride : (task)->tiles[tile].row_stride)
#define WSP_SCALAR(task, i) ((task)->args[(task)->axis_count + 2 * (task)->tile_count + (i)])
#define WSP_FAIL(task, code, number)                                                               \
    do {                                                                                           \
        (task)->status = (code);                                                                   \
        (task)->fault = (number);                                                                  \
    } while (0)
#endif

// A kernel ends before it touches any data, if a task's sizes do not match. `number` is the failed
// check: wsp_core_fault_text.
#define WSP_CHECK(task, number, condition)                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            WSP_FAIL(task, PTOWSP_INVALID_PARAMS, number);                                         \
            return;                                                                                \
        }                                                                                          \
    } while (0)

namespace wsp {

constexpr float INF = __builtin_inff();
constexpr float NOT_A_NUMBER = __builtin_nanf("");

// `fault` of a task whose kernel the shim rejects, for instance for a flag without a wait.
constexpr uint32_t FAULT_OF_SHIM = UINT32_MAX;

// The valid rows and columns of a tile parameter.
AICORE inline int rows(__gm__ const wsp_task *task, uint32_t tile) {
    return static_cast<int>(WSP_TILE_SIZE(task, tile, 0));
}

AICORE inline int cols(__gm__ const wsp_task *task, uint32_t tile) {
    return static_cast<int>(WSP_TILE_SIZE(task, tile, 1));
}

// The rows left of `whole` from `first` on, at most `most`.
AICORE inline int part(int whole, int first, int most) {
    int left = whole > first ? whole - first : 0;
    return left < most ? left : most;
}

AICORE inline int least(int a, int b) {
    return a < b ? a : b;
}

// (mul * whole + add) >> shift, between 0 and most.
AICORE inline int extent(int whole, int mul, int add, int shift, int most) {
    int64_t size = (static_cast<int64_t>(mul) * whole + add) >> shift;
    return size < 0 ? 0 : size > most ? most : static_cast<int>(size);
}

AICORE inline uint64_t scalar_bits(__gm__ const wsp_task *task, uint32_t i) {
    return WSP_SCALAR(task, i);
}

AICORE inline int64_t scalar_i64(__gm__ const wsp_task *task, uint32_t i) {
    return static_cast<int64_t>(scalar_bits(task, i));
}

AICORE inline uint64_t scalar_u64(__gm__ const wsp_task *task, uint32_t i) {
    return scalar_bits(task, i);
}

AICORE inline float scalar_f32(__gm__ const wsp_task *task, uint32_t i) {
    uint32_t bits = static_cast<uint32_t>(scalar_bits(task, i));
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

// The nearest float of a double, in integers: ties to even, beyond the range infinite.
AICORE inline uint32_t f32_bits_of_f64(uint64_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits >> 63) << 31;
    const int32_t exponent = static_cast<int32_t>(bits >> 52 & 0x7ff) - 1023 + 127;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff - 1023 + 127) {
        return sign | 0x7f800000u | (mantissa ? 0x400000u : 0u);
    } else if (exponent < -24) {
        return sign;
    }
    uint32_t drop = 29;
    uint64_t whole = static_cast<uint64_t>(exponent) << 52;
    if (exponent <= 0) {  // below the normal range: fewer bits, and none in front
        drop += static_cast<uint32_t>(1 - exponent);
        mantissa |= UINT64_C(1) << 52;
        whole = 0;
    }
    const uint64_t value = whole + mantissa, half = UINT64_C(1) << (drop - 1);
    const uint64_t kept = (value + half - 1 + (value >> drop & 1)) >> drop;
    return sign |
           (exponent >= 255 || kept >= 0x7f800000u ? 0x7f800000u : static_cast<uint32_t>(kept));
}

// A core of a device has no double: there it is the nearest float, by its bits.
#ifdef WSP_ASCEND
AICORE inline float scalar_f64(__gm__ const wsp_task *task, uint32_t i) {
    const uint32_t bits = f32_bits_of_f64(scalar_bits(task, i));
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
#else
inline double scalar_f64(const wsp_task *task, uint32_t i) {
    uint64_t bits = scalar_bits(task, i);
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
#endif

// -- loops ----------------------------------------------------------------------------------------

// The bounds of a loop, in a task: at most 2^30, in order, or it does not run and is not good.
struct Loop {
    int64_t begin, step;
    int end, count;
    bool is_good;
    AICORE int at(int turn) const {
        return static_cast<int>(begin + turn * step);
    }
    AICORE int turns(int preload) const {  // where so many iterations are begun ahead
        return count > 0 ? count + preload : 0;
    }
};

constexpr int64_t LOOP_END_MAX = INT64_C(1) << 30;

AICORE inline Loop loop(int64_t begin, int64_t end, int64_t step) {
    bool is_good = begin >= 0 && begin <= end && end <= LOOP_END_MAX;
    return Loop{begin, step, is_good ? static_cast<int>(end) : 0,
                is_good ? static_cast<int>((end - begin + step - 1) / step) : 0, is_good};
}

// An unsigned scalar as a bound.
AICORE inline int64_t bound(uint64_t bits) {
    return bits > static_cast<uint64_t>(LOOP_END_MAX) ? LOOP_END_MAX + 1
                                                      : static_cast<int64_t>(bits);
}

// The event of a flag that takes two in turn, and where a tile is that has two places, or more.
AICORE inline event_t event(int first, int turn) {
    return static_cast<event_t>(first + turn % 2);
}

AICORE inline uint32_t place(uint32_t first, uint32_t step, int turn) {
    return turn % 2 ? first + step : first;
}

AICORE inline uint32_t place(uint32_t first, uint32_t step, int turn, int places) {
    return first + static_cast<uint32_t>(turn % places) * step;
}

// A scalar as an element of a tile: floats to nearest, integers towards zero, which then wrap
// (wrapped), or end at their type's limits (saturated, and compared: for TCMPS and TSELS).
#if WSP_IS_SHIM

template <typename T> inline T of_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);  // the first bytes are the low ones
    return value;
}

template <typename T, typename N> inline T wrapped(N x) {
    return of_bits<T>(ptoisa_scalar_bits(pto::shim::dtype_of<T>(), static_cast<double>(x)));
}

template <typename T, typename N> inline T saturated(N x) {
    return of_bits<T>(ptoisa_bits_of(static_cast<double>(x), pto::shim::dtype_of<T>()));
}

template <typename T, typename N> inline T compared(N x) {
    ptoisa_dtype dtype = pto::shim::dtype_of<T>();
    return of_bits<T>(ptoisa_compared_of(dtype, static_cast<double>(x)).bits);
}

#else

template <typename T, typename N> AICORE inline T wrapped(N x) {
    return static_cast<T>(x);
}

template <typename T, typename N> AICORE inline T saturated(N x) {
    return static_cast<T>(x);
}

template <typename T, typename N> AICORE inline T compared(N x) {
    return static_cast<T>(x);
}

#endif

}  // namespace wsp

#endif
