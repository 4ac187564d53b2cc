// The ground floor: compiler differences, checked sizes, memory.
//
// Private names begin with pwsp_ and PWSP_. A function that other files of src/ call is
// PWSP_INTERNAL: static in ptowsp.c, hidden when each file is compiled alone.

#ifndef PWSP_BASE_H
#define PWSP_BASE_H

#include "../../ptowsp.h"

#include <string.h>

#if !defined(__GNUC__) && !defined(__clang__)
#error "ptowsp needs gcc, clang or a compiler that has their builtins"
#endif
// Results have the same bits everywhere; of a NaN, that it is one. gcc names each part of -ffast-math that
// is on; clang names all of it together, and infinities.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) ||           \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "ptowsp needs exact floats: compile its implementation without -ffast-math or parts of it"
#endif

#ifndef PTOWSP_ASSERT
#include <assert.h>
#define PTOWSP_ASSERT(condition) assert(condition)
#endif

#if defined(PTOWSP_C)
#define PWSP_INTERNAL static PWSP_UNUSED
#else
#define PWSP_INTERNAL extern __attribute__((visibility("hidden")))
#endif

// Whether there is POSIX. Parts do without: there the clock is the wall's, and nothing is asked of the
// system.
#if defined(_WIN32)
#define PWSP_POSIX 0
#else
#define PWSP_POSIX 1
#endif

#define PWSP_RESTRICT       __restrict__
#define PWSP_LIKELY(x)      __builtin_expect(!!(x), 1)
#define PWSP_UNLIKELY(x)    __builtin_expect(!!(x), 0)
#define PWSP_PREFETCH(at)   __builtin_prefetch(at)
#define PWSP_PRINTF(at, va) __attribute__((format(printf, at, va)))
#define PWSP_INLINE         static inline PWSP_UNUSED
#define PWSP_FORCE_INLINE   static inline __attribute__((always_inline, unused))
#define PWSP_NOINLINE       __attribute__((noinline))
#define PWSP_COLD           __attribute__((noinline, cold))

// Conditions that never, or always, hold; the reason stands beside them. Debug builds assert it,
// others take the safe branch anyway. In builds for coverage they are constants, so that
// unreachable branches disappear (tests/coverage.awk counts them).
#if defined(PTOWSP_COVERAGE)
#define PWSP_NEVER(condition)  0
#define PWSP_ALWAYS(condition) 1
#else
#define PWSP_NEVER(condition)  (!pwsp_always(!(condition)))
#define PWSP_ALWAYS(condition) pwsp_always(condition)

PWSP_INLINE bool pwsp_always(bool condition) {
    PTOWSP_ASSERT(condition);
    return condition;
}
#endif

// At the start of a function: products and sums are rounded apart, as gcc does in ISO C, so that one
// source gives the same bits here and in an emitted tree. clang would fuse them where it can.
#if defined(__clang__)
#define PWSP_ROUND_APART _Pragma("clang fp contract(off)")
#else
#define PWSP_ROUND_APART
#endif

// Declares an object all of whose bytes are zero. C++ has no {0} where an enum comes first.
#define PWSP_ZERO(type, name)                                                                      \
    type name;                                                                                     \
    memset(&name, 0, sizeof name)

// Moves `low` on to the first index below `high` for which is_before, said of `middle`, is false, or to
// `high`. It is false for all later ones, too.
#define PWSP_BISECT(low, high, is_before)                                                          \
    for (uint64_t end_ = (high), middle; (low) < end_;) {                                          \
        middle = (low) + (end_ - (low)) / 2;                                                       \
        if (is_before) {                                                                           \
            (low) = middle + 1;                                                                    \
        } else {                                                                                   \
            end_ = middle;                                                                         \
        }                                                                                          \
    }

PWSP_INLINE uint64_t pwsp_min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

PWSP_INLINE uint64_t pwsp_max_u64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// a + b, or UINT64_MAX where that does not fit.
PWSP_INLINE uint64_t pwsp_sum_u64(uint64_t a, uint64_t b) {
    return a + pwsp_min_u64(b, UINT64_MAX - a);
}

// a / b, rounded up, without overflow.
PWSP_INLINE uint64_t pwsp_ceil_div_u64(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

// a * b / c, rounded down, for b <= c: the result fits. Products beyond 64 bits are divided bit by bit.
PWSP_INLINE uint64_t pwsp_mul_div_u64(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t product, rest = 0, result = 0;
    PTOWSP_ASSERT(b <= c && c > 0);
    if (PWSP_LIKELY(!__builtin_mul_overflow(a, b, &product))) {
        return product / c;
    }
    for (uint32_t bit = 64; bit-- > 0;) {  // rest < c: a's bits so far, times b, modulo c
        const bool is_twice = rest >= c - rest;
        rest = is_twice ? rest - (c - rest) : rest + rest;
        result = result + result + is_twice;
        if (a >> bit & 1) {
            const bool is_over = rest >= c - b;
            rest = is_over ? rest - (c - b) : rest + b;
            result += is_over;
        }
    }
    return result;
}

// The same, rounded up.
PWSP_INLINE uint64_t pwsp_mul_div_up_u64(uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t result = pwsp_mul_div_u64(a, b, c);
    return result +
           (result * c != a * b);  // the difference is less than c, so it does not wrap to 0
}

// a % b, faster where both have 32 bits.
PWSP_INLINE uint32_t pwsp_modulo(uint64_t a, uint32_t b) {
    return a < b ? (uint32_t)a : a <= UINT32_MAX ? (uint32_t)a % b : (uint32_t)(a % b);
}

PWSP_INLINE uint64_t pwsp_mix64(uint64_t z) {  // the finalizer of SplitMix64
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// Goes on from a hash with a number: numbers, not their bytes, so that it is the same everywhere.
PWSP_INLINE uint64_t pwsp_hash_number(uint64_t hash, uint64_t number) {
    return pwsp_mix64((hash ^ number) + UINT64_C(0x9e3779b97f4a7c15));
}

// The index of an error for a value that may be negative.
PWSP_INLINE uint64_t pwsp_error_index(int64_t value) {
    return value < 0 ? PTOWSP_NEGATIVE_INDEX : (uint64_t)value;
}

// Stores a * b and says whether it fits 64 bits. A check by division would take ten times as long.
PWSP_INLINE bool pwsp_mul_fits(uint64_t a, uint64_t b, uint64_t *out_product) {
    return !__builtin_mul_overflow(a, b, out_product);
}

// In builds that have it, tests that refuse allocations may leave no room to spare
// (tests/support/vectors.c): a small array grows to the exact size, and each allocation of a small
// arena has its own block. So every request reaches the hook that may refuse it, not only those that
// make an array grow.
#if defined(PTOWSP_TIGHT)
extern bool pwsp_is_tight;
#define PWSP_TIGHT(size, limit) (pwsp_is_tight && (size) < (limit))
#else
#define PWSP_TIGHT(size, limit) false
#endif

// The texts of a table of the header whose rows have a name and a text, and count from 0.
#define PWSP_TABLE_TEXT(name, text) text,

// A function from the values of such a table to their texts, and `none` for other numbers. Texts are
// arrays of characters: a library has no writable globals.
#define PWSP_TEXTS(function, type, TABLE, none)                                                    \
    const char *function(type value) {                                                             \
        static const char texts[][64] = {TABLE(PWSP_TABLE_TEXT)};                                  \
        return (uint32_t)value < sizeof texts / sizeof texts[0] ? texts[value] : none;             \
    }

// Where memory comes from: the context's hook, with its default filled in.
typedef struct pwsp_memory {
    ptowsp_resize_fn resize;
    void *user;
} pwsp_memory;

PWSP_INTERNAL pwsp_memory pwsp_memory_make(ptowsp_resize_fn resize, void *user);

// Allocates size > 0 zeroed bytes, or returns NULL. Alignment is malloc's.
PWSP_INTERNAL void *pwsp_memory_alloc(const pwsp_memory *memory, size_t size);

// The same, for memory that the caller fills: not zeroed.
PWSP_INTERNAL void *pwsp_memory_take(const pwsp_memory *memory, size_t size);
PWSP_INTERNAL void pwsp_memory_free(const pwsp_memory *memory, void *ptr, size_t size);

// -- arrays ---------------------------------------------------------------------------------------
//
// The macros take a pointer of any type and how many items it has room for; functions take the address
// of the pointer. All are false when memory is out or sizes would overflow.

// Makes an array of `count` zeroed items; NULL of none, and where false.
#define PWSP_ALLOC(memory, array, count) pwsp_memory_array(memory, &(array), count, sizeof *(array))
#define PWSP_FREE(memory, array, count)                                                            \
    pwsp_memory_free(memory, array, (size_t)(count) * sizeof *(array))

// Makes room for `needed` items in an array that grows by doubling, from 16 (of items of more than
// 128 bytes, from 4); new items are zeroed. Nothing has changed if false.
#define PWSP_GROW(memory, array, capacity, needed)                                                 \
    pwsp_memory_grow(memory, &(array), &(capacity), needed, sizeof *(array))

// The same for many large items: grows by an eighth or less from 128 items on.
#define PWSP_GROW_LITTLE(memory, array, capacity, needed)                                          \
    pwsp_memory_grow_little(memory, &(array), &(capacity), needed, sizeof *(array))

// Makes room for at least `needed` items in an array that keeps nothing when it grows: then all is
// zeroed, and as large as needed. The array is empty where false.
#define PWSP_ROOM(memory, array, capacity, needed)                                                 \
    pwsp_memory_room(memory, &(array), &(capacity), needed, sizeof *(array))

// An object with several arrays has a table of them, #define PWSP_THING_ARRAYS(ARRAY) with a row
// ARRAY(thing->items, thing->item_capacity) for each. These rows make and free them all, with
// `memory` and `is_good` of the function that they stand in.
#define PWSP_ARRAY_ALLOC(array, count) is_good = is_good && PWSP_ALLOC(memory, array, count);
#define PWSP_ARRAY_FREE(array, count)  PWSP_FREE(memory, array, count);

// The array at an address: copied, as pointers of different types must not alias.
PWSP_INLINE void *pwsp_array_items(const void *array) {
    void *items;
    memcpy(&items, array, sizeof items);
    return items;
}

PWSP_INTERNAL bool pwsp_memory_array(const pwsp_memory *memory, void *array, uint64_t count,
                                     size_t item_size);
PWSP_INTERNAL bool pwsp_memory_grow(const pwsp_memory *memory, void *array, uint64_t *capacity,
                                    uint64_t needed, size_t item_size);
PWSP_INTERNAL bool pwsp_memory_grow_little(const pwsp_memory *memory, void *array,
                                           uint64_t *capacity, uint64_t needed, size_t item_size);
PWSP_INTERNAL bool pwsp_memory_room(const pwsp_memory *memory, void *array, uint64_t *capacity,
                                    uint64_t needed, size_t item_size);

#endif
