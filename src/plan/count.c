// Two passes over lengths, each as portable C, AVX2, AVX-512 and NEON; all give the same integers.
//
// Division by the chunk is the whole cost of counting units. It is done by a multiplication
// (Granlund and Montgomery 1994): for n < 2^31 and l = ceil(log2 d),
//
//      m = ceil(2^(31+l) / d) < 2^32      n / d = (n * m) >> (31 + l)
//
// exactly, since m * d exceeds 2^(31+l) by less than d <= 2^l, and that times n stays below
// 2^(31+l). ceil(len / d) is floor((len - 1) / d) + 1 for len > 0 and 0 for len = 0; as max(len, 1)
// - 1 is 0 for len = 0, the sum needs no branch: it is the sum of floor((max(len, 1) - 1) / d),
// plus the number of positive lengths, which the scan has found. Vector code multiplies even and
// odd lanes apart, as products have 64 bits.

#include "count.h"

#include "../base/cpu.h"

PWSP_INTERNAL pwsp_divisor pwsp_divisor_make(uint32_t d) {
    PTOWSP_ASSERT(d > 0);
    uint32_t l = 0;
    while (l < 32 && (UINT64_C(1) << l) < d) {
        l++;
    }
    uint64_t multiplier = pwsp_ceil_div_u64(UINT64_C(1) << (31 + l), d);
    PTOWSP_ASSERT(multiplier <= UINT32_MAX);
    pwsp_divisor divisor = {(uint32_t)multiplier, 31 + l};
    return divisor;
}

static pwsp_lengths_facts pwsp_facts_none(void) {
    pwsp_lengths_facts none = {INT32_MAX, INT32_MIN, INT32_MAX, 0, 0};
    return none;
}

static pwsp_lengths_facts pwsp_facts_join(pwsp_lengths_facts a, pwsp_lengths_facts b) {
    a.min = a.min < b.min ? a.min : b.min;
    a.max = a.max > b.max ? a.max : b.max;
    a.positive_min = a.positive_min < b.positive_min ? a.positive_min : b.positive_min;
    a.positive_count += b.positive_count;
    a.total += b.total;
    return a;
}

// The lengths that a vector loop leaves over. NULL stays NULL: adding 0 to it is undefined in C.
PWSP_INLINE const PTOWSP_GM int32_t *pwsp_tail(const PTOWSP_GM int32_t *lengths, uint64_t whole) {
    return whole ? lengths + whole : lengths;
}

PWSP_INTERNAL pwsp_lengths_facts pwsp_lengths_scan_scalar(const PTOWSP_GM int32_t *lengths,
                                                          uint64_t count) {
    pwsp_lengths_facts facts = pwsp_facts_none();
    for (uint64_t i = 0; i < count; i++) {
        int32_t length = lengths[i];
        pwsp_lengths_facts one = {length, length, length > 0 ? length : INT32_MAX, length > 0,
                                  (uint32_t)length};
        facts = pwsp_facts_join(facts, one);
    }
    return facts;
}

PWSP_INTERNAL uint64_t pwsp_lengths_quotients_scalar(const PTOWSP_GM int32_t *lengths,
                                                     uint64_t count, pwsp_divisor divisor) {
    uint64_t quotients = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t length = (uint32_t)lengths[i];
        quotients += pwsp_divide(length - (length > 0), divisor);
    }
    return quotients;
}

#if PWSP_X86

// Joins the minima and maxima that the lanes of a vector have found.
static pwsp_lengths_facts pwsp_facts_join_lanes(pwsp_lengths_facts facts, const int32_t *min,
                                                const int32_t *max, const int32_t *positive_min,
                                                uint32_t lane_count) {
    for (uint32_t i = 0; i < lane_count; i++) {
        pwsp_lengths_facts lane = {min[i], max[i], positive_min[i], 0, 0};
        facts = pwsp_facts_join(facts, lane);
    }
    return facts;
}

// Lanes past the end read as 0, and the scan does not count them.

PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_high_half_avx512(__m512i x) {
    return _mm512_maskz_srli_epi64(PWSP_ALL_8, x, 32);
}

PWSP_AVX512 PWSP_FORCE_INLINE __mmask16 pwsp_valid_avx512(uint64_t left) {
    return _cvtu32_mask16(left >= 16 ? 0xffff : (1u << left) - 1);
}

PWSP_AVX512 static uint64_t pwsp_sum_avx512(__m512i a, __m512i b) {
    uint64_t lanes[8], sum = 0;
    a = _mm512_add_epi64(a, b);
    memcpy(lanes, &a, sizeof lanes);
    for (uint32_t i = 0; i < 8; i++) {
        sum += lanes[i];
    }
    return sum;
}

PWSP_AVX512 static pwsp_lengths_facts pwsp_lengths_scan_avx512(const PTOWSP_GM int32_t *lengths,
                                                               uint64_t count) {
    const __m512i none = _mm512_set1_epi32(INT32_MAX), zero = _mm512_setzero_si512();
    const __m512i low_half = _mm512_set1_epi64(0xffffffff);
    __m512i min = none, max = _mm512_set1_epi32(INT32_MIN), positive_min = none;
    __m512i total_even = zero, total_odd = zero;
    uint64_t positive_count = 0;
    for (uint64_t i = 0; i < count; i += 16) {
        __mmask16 valid = pwsp_valid_avx512(count - i);
        __m512i x = _mm512_maskz_loadu_epi32(valid, lengths + i);
        min = _mm512_mask_min_epi32(min, valid, min, x);
        max = _mm512_mask_max_epi32(max, valid, max, x);
        __mmask16 positive = _mm512_cmpgt_epi32_mask(x, zero);
        positive_min = _mm512_mask_min_epi32(positive_min, positive, positive_min, x);
        positive_count += (uint64_t)__builtin_popcount(positive);
        total_even = _mm512_add_epi64(total_even, _mm512_and_si512(x, low_half));
        total_odd = _mm512_add_epi64(total_odd, pwsp_high_half_avx512(x));
    }
    int32_t lanes[3][16];
    memcpy(lanes[0], &min, sizeof min);
    memcpy(lanes[1], &max, sizeof max);
    memcpy(lanes[2], &positive_min, sizeof positive_min);
    pwsp_lengths_facts facts =
        pwsp_facts_join_lanes(pwsp_facts_none(), lanes[0], lanes[1], lanes[2], 16);
    facts.positive_count = positive_count;
    facts.total = pwsp_sum_avx512(total_even, total_odd);
    return facts;
}

PWSP_AVX512 static uint64_t pwsp_lengths_quotients_avx512(const PTOWSP_GM int32_t *lengths,
                                                          uint64_t count, pwsp_divisor divisor) {
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i multiplier = _mm512_set1_epi64((int64_t)divisor.multiplier);
    const __m128i shift = _mm_cvtsi32_si128((int)divisor.shift);
    __m512i even = _mm512_setzero_si512(), odd = even;
    for (uint64_t i = 0; i < count; i += 16) {
        __m512i x = _mm512_maskz_loadu_epi32(pwsp_valid_avx512(count - i), lengths + i);
        __m512i n = _mm512_sub_epi32(_mm512_maskz_max_epi32(0xffff, x, one), one);
        __m512i even_product = _mm512_maskz_mul_epu32(PWSP_ALL_8, n, multiplier);
        __m512i odd_product =
            _mm512_maskz_mul_epu32(PWSP_ALL_8, pwsp_high_half_avx512(n), multiplier);
        even = _mm512_add_epi64(even, _mm512_maskz_srl_epi64(PWSP_ALL_8, even_product, shift));
        odd = _mm512_add_epi64(odd, _mm512_maskz_srl_epi64(PWSP_ALL_8, odd_product, shift));
    }
    return pwsp_sum_avx512(even, odd);
}

PWSP_AVX2 static uint64_t pwsp_sum_avx2(__m256i x) {
    uint64_t lanes[4];
    memcpy(lanes, &x, sizeof lanes);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

PWSP_AVX2 static pwsp_lengths_facts pwsp_lengths_scan_avx2(const PTOWSP_GM int32_t *lengths,
                                                           uint64_t count) {
    const __m256i none = _mm256_set1_epi32(INT32_MAX), zero = _mm256_setzero_si256();
    const __m256i low_half = _mm256_set1_epi64x(0xffffffff);
    __m256i min = none, max = _mm256_set1_epi32(INT32_MIN), positive_min = none;
    __m256i total_even = zero, total_odd = zero;
    uint64_t positive_count = 0, whole = count & ~UINT64_C(7);
    for (uint64_t i = 0; i < whole; i += 8) {
        __m256i x;
        memcpy(&x, lengths + i, sizeof x);
        min = _mm256_min_epi32(min, x);
        max = _mm256_max_epi32(max, x);
        __m256i positive = _mm256_cmpgt_epi32(x, zero);
        positive_min = _mm256_min_epi32(positive_min, _mm256_blendv_epi8(none, x, positive));
        int bits = _mm256_movemask_epi8(positive);
        positive_count += (uint64_t)__builtin_popcount((unsigned)bits) / 4;
        total_even = _mm256_add_epi64(total_even, _mm256_and_si256(x, low_half));
        total_odd = _mm256_add_epi64(total_odd, _mm256_srli_epi64(x, 32));
    }
    pwsp_lengths_facts facts = pwsp_lengths_scan_scalar(pwsp_tail(lengths, whole), count - whole);
    int32_t lanes[3][8];
    memcpy(lanes[0], &min, sizeof min);
    memcpy(lanes[1], &max, sizeof max);
    memcpy(lanes[2], &positive_min, sizeof positive_min);
    facts = pwsp_facts_join_lanes(facts, lanes[0], lanes[1], lanes[2], 8);
    facts.positive_count += positive_count;
    facts.total += pwsp_sum_avx2(_mm256_add_epi64(total_even, total_odd));
    return facts;
}

PWSP_AVX2 static uint64_t pwsp_lengths_quotients_avx2(const PTOWSP_GM int32_t *lengths,
                                                      uint64_t count, pwsp_divisor divisor) {
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i multiplier = _mm256_set1_epi64x((int64_t)divisor.multiplier);
    const __m128i shift = _mm_cvtsi32_si128((int)divisor.shift);
    __m256i even = _mm256_setzero_si256(), odd = even;
    uint64_t whole = count & ~UINT64_C(7);
    for (uint64_t i = 0; i < whole; i += 8) {
        __m256i x;
        memcpy(&x, lengths + i, sizeof x);
        __m256i n = _mm256_sub_epi32(_mm256_max_epi32(x, one), one);
        __m256i even_product = _mm256_mul_epu32(n, multiplier);
        __m256i odd_product = _mm256_mul_epu32(_mm256_srli_epi64(n, 32), multiplier);
        even = _mm256_add_epi64(even, _mm256_srl_epi64(even_product, shift));
        odd = _mm256_add_epi64(odd, _mm256_srl_epi64(odd_product, shift));
    }
    return pwsp_sum_avx2(_mm256_add_epi64(even, odd)) +
           pwsp_lengths_quotients_scalar(pwsp_tail(lengths, whole), count - whole, divisor);
}

#elif PWSP_NEON

static pwsp_lengths_facts pwsp_lengths_scan_neon(const PTOWSP_GM int32_t *lengths, uint64_t count) {
    const int32x4_t none = vdupq_n_s32(INT32_MAX);
    int32x4_t min = none, max = vdupq_n_s32(INT32_MIN), positive_min = none;
    uint64x2_t total = vdupq_n_u64(0), positive_count = total;
    uint64_t whole = count & ~UINT64_C(3);
    for (uint64_t i = 0; i < whole; i += 4) {
        int32x4_t x = vld1q_s32(lengths + i);
        min = vminq_s32(min, x);
        max = vmaxq_s32(max, x);
        uint32x4_t positive = vcgtq_s32(x, vdupq_n_s32(0));
        positive_min = vminq_s32(positive_min, vbslq_s32(positive, x, none));
        positive_count = vpadalq_u32(positive_count, vshrq_n_u32(positive, 31));
        total = vpadalq_u32(total, vreinterpretq_u32_s32(x));
    }
    pwsp_lengths_facts facts = {vminvq_s32(min), vmaxvq_s32(max), vminvq_s32(positive_min),
                                vaddvq_u64(positive_count), vaddvq_u64(total)};
    return pwsp_facts_join(facts,
                           pwsp_lengths_scan_scalar(pwsp_tail(lengths, whole), count - whole));
}

static uint64_t pwsp_lengths_quotients_neon(const PTOWSP_GM int32_t *lengths, uint64_t count,
                                            pwsp_divisor divisor) {
    const uint32x4_t one = vdupq_n_u32(1);
    const uint32x2_t multiplier = vdup_n_u32(divisor.multiplier);
    const int64x2_t shift = vdupq_n_s64(-(int64_t)divisor.shift);
    uint64x2_t low = vdupq_n_u64(0), high = low;
    uint64_t whole = count & ~UINT64_C(3);
    for (uint64_t i = 0; i < whole; i += 4) {
        uint32x4_t x = vreinterpretq_u32_s32(vld1q_s32(lengths + i));
        uint32x4_t n = vsubq_u32(x, vminq_u32(x, one));
        low = vaddq_u64(low, vshlq_u64(vmull_u32(vget_low_u32(n), multiplier), shift));
        high = vaddq_u64(high, vshlq_u64(vmull_u32(vget_high_u32(n), multiplier), shift));
    }
    return vaddvq_u64(low) + vaddvq_u64(high) +
           pwsp_lengths_quotients_scalar(pwsp_tail(lengths, whole), count - whole, divisor);
}

#endif

PWSP_INTERNAL pwsp_lengths_facts pwsp_lengths_scan(const PTOWSP_GM int32_t *lengths,
                                                   uint64_t count) {
#if PWSP_X86
    if (pwsp_cpu_has_avx512()) {
        return pwsp_lengths_scan_avx512(lengths, count);
    }
    if (pwsp_cpu_has_avx2()) {
        return pwsp_lengths_scan_avx2(lengths, count);
    }
    return pwsp_lengths_scan_scalar(lengths, count);
#elif PWSP_NEON
    return pwsp_lengths_scan_neon(lengths, count);
#else
    return pwsp_lengths_scan_scalar(lengths, count);
#endif
}

static uint64_t pwsp_lengths_quotients(const PTOWSP_GM int32_t *lengths, uint64_t count,
                                       pwsp_divisor divisor) {
#if PWSP_X86
    if (pwsp_cpu_has_avx512()) {
        return pwsp_lengths_quotients_avx512(lengths, count, divisor);
    }
    if (pwsp_cpu_has_avx2()) {
        return pwsp_lengths_quotients_avx2(lengths, count, divisor);
    }
    return pwsp_lengths_quotients_scalar(lengths, count, divisor);
#elif PWSP_NEON
    return pwsp_lengths_quotients_neon(lengths, count, divisor);
#else
    return pwsp_lengths_quotients_scalar(lengths, count, divisor);
#endif
}

PWSP_INTERNAL uint64_t pwsp_lengths_units(const PTOWSP_GM int32_t *lengths, uint64_t count,
                                          uint64_t positive_count, uint32_t chunk) {
    return pwsp_lengths_quotients(lengths, count, pwsp_divisor_make(chunk)) + positive_count;
}
