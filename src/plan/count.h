// Sums over the lengths of a batch. Planning spends its time in these passes.

#ifndef PWSP_COUNT_H
#define PWSP_COUNT_H

#include "../base/base.h"

// The result of one pass over lengths.
typedef struct pwsp_lengths_facts {
    int32_t min;           // INT32_MAX without lengths
    int32_t max;           // INT32_MIN without lengths
    int32_t positive_min;  // smallest length above 0; INT32_MAX without one
    uint64_t positive_count;
    uint64_t total;  // sum of the lengths; meaningful when min >= 0
} pwsp_lengths_facts;

PWSP_INTERNAL pwsp_lengths_facts pwsp_lengths_scan(const PTOWSP_GM int32_t *lengths,
                                                   uint64_t count);

// Division of numbers below 2^31 by a constant d: n / d = (n * multiplier) >> shift.
typedef struct pwsp_divisor {
    uint32_t multiplier;
    uint32_t shift;
} pwsp_divisor;

PWSP_INTERNAL pwsp_divisor pwsp_divisor_make(uint32_t d);

PWSP_INLINE uint32_t pwsp_divide(uint32_t n, pwsp_divisor divisor) {
    return (uint32_t)(((uint64_t)n * divisor.multiplier) >> divisor.shift);
}

// Division of any number by a constant, where there are products of 128 bits. The factor is less than 1
// below 2^64 / by, so the estimate is at most 1 too small. *out_rest is n % by.
typedef struct pwsp_wide_divisor {
    uint64_t by, factor;
} pwsp_wide_divisor;

PWSP_INLINE pwsp_wide_divisor pwsp_wide_divisor_make(uint64_t by) {
    PTOWSP_ASSERT(by > 0);
    const pwsp_wide_divisor divisor = {by, UINT64_MAX / by};
    return divisor;
}

PWSP_INLINE uint64_t pwsp_wide_divide(uint64_t n, const pwsp_wide_divisor *divisor,
                                      uint64_t *out_rest) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 product;
    const uint64_t estimate = (uint64_t)((product)n * divisor->factor >> 64);
    const uint64_t rest = n - estimate * divisor->by;
    const bool is_more = rest >= divisor->by;
    *out_rest = is_more ? rest - divisor->by : rest;
    return estimate + is_more;
#else
    *out_rest = n % divisor->by;
    return n / divisor->by;
#endif
}

// The sum of ceil(length / chunk). Requires lengths that are not negative, positive_count of them
// above 0, and chunk > 0.
PWSP_INTERNAL uint64_t pwsp_lengths_units(const PTOWSP_GM int32_t *lengths, uint64_t count,
                                          uint64_t positive_count, uint32_t chunk);

// The portable code alone, for tests and for the tails of vector code. The quotients are what units
// are made of: the sum of floor((max(length, 1) - 1) / divisor).
PWSP_INTERNAL pwsp_lengths_facts pwsp_lengths_scan_scalar(const PTOWSP_GM int32_t *lengths,
                                                          uint64_t count);
PWSP_INTERNAL uint64_t pwsp_lengths_quotients_scalar(const PTOWSP_GM int32_t *lengths,
                                                     uint64_t count, pwsp_divisor divisor);

#endif
