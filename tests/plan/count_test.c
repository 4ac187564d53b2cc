// Counting over lengths (src/plan/count.c): the division by multiplication, and the two vector
// passes in every variant that this machine can run.
//
// Expected values come from plain division and from plain loops over 64-bit integers, written out
// here. Arrays lie at the end of malloc blocks of exact size, where the address sanitizer sees a
// read past the end, and in front of a page that cannot be read, where any build does.

#define _DEFAULT_SOURCE  // MAP_ANONYMOUS

#include "src/plan/count.c"

#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

// -- the divisor ----------------------------------------------------------------------------------

// Chunks worth trying: small ones, all powers of two and their neighbours, the largest.
static size_t chunks_make(uint32_t *chunks, uint64_t *random) {
    size_t count = 0;
    for (uint32_t chunk = 1; chunk <= 40; chunk++) {
        chunks[count++] = chunk;
    }
    for (uint32_t bit = 5; bit < 32; bit++) {
        chunks[count++] = (UINT32_C(1) << bit) - 1;
        chunks[count++] = UINT32_C(1) << bit;
        chunks[count++] = (UINT32_C(1) << bit) + 1;
    }
    chunks[count++] = UINT32_MAX - 1;
    chunks[count++] = UINT32_MAX;
    chunks[count++] = UINT32_C(0xaaaaaaab);
    for (int i = 0; i < 100; i++) {
        uint32_t chunk = (uint32_t)(test_random(random) >> test_random_in(random, 32, 63));
        chunks[count++] = chunk ? chunk : 1;
    }
    return count;
}

#define CHUNK_COUNT_MAX 256

static void check_divide(uint32_t n, uint32_t d, pwsp_divisor divisor) {
    if (pwsp_divide(n, divisor) != n / d) {
        fail_msg("%u / %u = %u, not %u", (unsigned)n, (unsigned)d,
                 (unsigned)pwsp_divide(n, divisor), (unsigned)(n / d));
    }
}

TEST(count__divide_is_plain_division_below_2_to_the_31) {
    uint64_t random = test_seed();
    uint32_t chunks[CHUNK_COUNT_MAX];
    size_t chunk_count = chunks_make(chunks, &random);
    assert_true(chunk_count <= CHUNK_COUNT_MAX);
    for (size_t i = 0; i < chunk_count; i++) {
        uint32_t d = chunks[i];
        pwsp_divisor divisor = pwsp_divisor_make(d);
        for (uint32_t n = 0; TEST_ROUNDS(n, 200); n++) {
            check_divide(n, d, divisor);
            check_divide((uint32_t)INT32_MAX - n, d, divisor);
        }
        for (int k = 0; k < 2000; k++) {
            check_divide(test_random_u32(&random, 0, INT32_MAX), d, divisor);
            check_divide((uint32_t)(test_random(&random) >> test_random_in(&random, 33, 63)), d,
                         divisor);
            // Around a multiple of d, where a rounded multiplier would go wrong first.
            uint64_t multiple = (uint64_t)test_random_in(&random, 0, INT32_MAX / d) * d;
            for (int64_t n = (int64_t)multiple - 1; n <= (int64_t)multiple + 1; n++) {
                if (0 <= n && n <= INT32_MAX) {
                    check_divide((uint32_t)n, d, divisor);
                }
            }
        }
        uint32_t last = (uint32_t)INT32_MAX / d * d;  // the last multiple of all
        check_divide(last, d, divisor);
        check_divide(last ? last - 1 : 0, d, divisor);
    }
}

TEST(count__divide_is_exact_for_every_small_pair) {
    for (uint32_t d = 1; d <= 1500; d++) {
        pwsp_divisor divisor = pwsp_divisor_make(d);
        for (uint32_t n = 0; n <= 3000; n++) {
            check_divide(n, d, divisor);
        }
    }
}

// Numbers beside multiples of divisors of all sizes, and the largest: there an estimate is too small.
TEST(count__wide_divide_is_plain_division) {
    uint64_t random = test_seed();
    for (int round = 0; round < 20000; round++) {
        uint64_t by = test_random(&random) >> test_random_in(&random, 0, 63);
        by = round < 64 ? UINT64_C(1) << round : by ? by : UINT64_MAX;
        const pwsp_wide_divisor divisor = pwsp_wide_divisor_make(by);
        const uint64_t multiple = test_random(&random) / by * by;
        const uint64_t numbers[] = {0,        by - 1,       by,         multiple - 1,
                                    multiple, multiple + 1, UINT64_MAX, UINT64_MAX / by * by};
        for (size_t i = 0; i < COUNT_OF(numbers); i++) {
            uint64_t rest;
            assert_true(pwsp_wide_divide(numbers[i], &divisor, &rest) == numbers[i] / by);
            assert_true(rest == numbers[i] % by);
        }
    }
}

// -- the variants ---------------------------------------------------------------------------------

typedef pwsp_lengths_facts (*scan_fn)(const int32_t *lengths, uint64_t count);
typedef uint64_t (*quotients_fn)(const int32_t *lengths, uint64_t count, pwsp_divisor divisor);

typedef struct variant {
    const char *name;
    scan_fn scan;
    quotients_fn quotients;
} variant;

#define VARIANT_COUNT_MAX 4

static variant variants[VARIANT_COUNT_MAX];
static size_t variant_count;

static int variants_make(void **state) {
    (void)state;
    variants[variant_count++] =
        (variant){"scalar", pwsp_lengths_scan_scalar, pwsp_lengths_quotients_scalar};
    variants[variant_count++] = (variant){"chosen", pwsp_lengths_scan, pwsp_lengths_quotients};
#if PWSP_X86
    if (pwsp_cpu_has_avx2()) {
        variants[variant_count++] =
            (variant){"avx2", pwsp_lengths_scan_avx2, pwsp_lengths_quotients_avx2};
    }
    if (pwsp_cpu_has_avx512()) {
        variants[variant_count++] =
            (variant){"avx512", pwsp_lengths_scan_avx512, pwsp_lengths_quotients_avx512};
    }
#elif PWSP_NEON
    variants[variant_count++] =
        (variant){"neon", pwsp_lengths_scan_neon, pwsp_lengths_quotients_neon};
#endif
    for (size_t i = 0; i < variant_count; i++) {
        print_message("variant %s\n", variants[i].name);
    }
    return 0;
}

SUITE_AROUND(variants_make, NULL)

static void check_scan(const variant *tested, const int32_t *lengths, uint64_t count) {
    pwsp_lengths_facts facts = tested->scan(lengths, count);
    int32_t min = INT32_MAX, max = INT32_MIN, positive_min = INT32_MAX;
    uint64_t positive_count = 0;
    int64_t total = 0;
    for (uint64_t i = 0; i < count; i++) {
        min = lengths[i] < min ? lengths[i] : min;
        max = lengths[i] > max ? lengths[i] : max;
        if (lengths[i] > 0) {
            positive_min = lengths[i] < positive_min ? lengths[i] : positive_min;
            positive_count++;
        }
        total += lengths[i];
    }
    if (facts.min != min || facts.max != max || facts.positive_min != positive_min ||
        facts.positive_count != positive_count || (min >= 0 && facts.total != (uint64_t)total)) {
        fail_msg("%s: scan of %llu lengths: min %d max %d positive min %d count %llu total %llu, "
                 "not %d %d %d %llu %lld",
                 tested->name, (unsigned long long)count, facts.min, facts.max, facts.positive_min,
                 (unsigned long long)facts.positive_count, (unsigned long long)facts.total, min,
                 max, positive_min, (unsigned long long)positive_count, (long long)total);
    }
    // "All give the same integers" (count.c), so also where the total means nothing.
    assert_true(facts.total == pwsp_lengths_scan_scalar(lengths, count).total);
}

static void check_quotients(const variant *tested, const int32_t *lengths, uint64_t count,
                            uint32_t chunk) {
    uint64_t expected = 0;
    for (uint64_t i = 0; i < count; i++) {
        expected += (uint32_t)(lengths[i] > 1 ? lengths[i] - 1 : 0) / chunk;
    }
    uint64_t sum = tested->quotients(lengths, count, pwsp_divisor_make(chunk));
    if (sum != expected) {
        fail_msg("%s: %llu lengths by %u: %llu, not %llu", tested->name, (unsigned long long)count,
                 (unsigned)chunk, (unsigned long long)sum, (unsigned long long)expected);
    }
}

static void check_units(const int32_t *lengths, uint64_t count, uint32_t chunk) {
    uint64_t expected = 0, positive_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        int64_t length = lengths[i];
        expected += (uint64_t)((length + chunk - 1) / chunk);
        positive_count += length > 0;
    }
    assert_true(pwsp_lengths_units(lengths, count, positive_count, chunk) == expected);
}

// An array of exactly this size, so that a sanitizer sees reads behind it.
static int32_t *lengths_make(uint64_t count) {
    return (int32_t *)test_alloc(count, sizeof(int32_t));
}

static void check_scans(const int32_t *lengths, uint64_t count) {
    for (size_t v = 0; v < variant_count; v++) {
        check_scan(&variants[v], lengths, count);
    }
}

// A length: the ends of the range, small ones, or any.
static int32_t length_random(uint64_t *random) {
    switch (test_random_in(random, 0, 7)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return INT32_MAX;
    case 3: return (int32_t)test_random_in(random, 0, 3);
    case 4: return (int32_t)(test_random(random) >> test_random_in(random, 33, 63));
    case 5: return 2;
    default: return (int32_t)test_random_in(random, 0, INT32_MAX);
    }
}

// Counts of lengths: all from 0 to 70, then around vector sizes and blocks, and some thousands.
static const uint64_t counts_large[] = {79,  80,  81,  127, 128,  129,  255,  256,
                                        257, 511, 512, 513, 1000, 4095, 4099, 20011};
#define COUNT_CASES (71 + COUNT_OF(counts_large))

static uint64_t count_case(size_t i) {
    return i <= 70 ? i : counts_large[i - 71];
}

// Lengths of any one magnitude, some of them negative, and their quotients by chunks of any.
TEST(count__all_variants_count_alike_at_every_magnitude) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 20000); round++) {
        const uint64_t count = (uint64_t)test_random_in(&random, 0, 70);
        const int64_t bits = test_random_in(&random, 0, 31);
        const uint32_t chunk = test_random_u32(
            &random, 1, INT64_C(1) << test_random_in(&random, 0, round % 3 ? 31 : 32));
        int32_t *lengths = lengths_make(count);
        for (uint64_t i = 0; i < count; i++) {
            const int64_t most = INT64_C(1) << test_random_in(&random, 0, bits);
            lengths[i] = (int32_t)(test_random_in(&random, 1, most) - 1);
            lengths[i] =
                round % 5 == 0 && test_random(&random) % 32 == 0 ? -lengths[i] - 1 : lengths[i];
        }
        check_scans(lengths, count);
        for (size_t v = 0; v < variant_count && round % 5; v++) {
            check_quotients(&variants[v], lengths, count, chunk ? chunk : UINT32_MAX);
        }
        test_release();
    }
}

TEST(count__scan_sees_one_odd_length_among_equal_ones_at_every_place) {
    const int32_t values[] = {INT32_MIN, INT32_MIN + 1, -5,       -1, 0, 1, 5,
                              7,         INT32_MAX - 1, INT32_MAX};
    const int32_t odd[] = {INT32_MIN, -1, 0, 1, 6, 8, INT32_MAX};
    for (uint64_t count = 0; count <= 70; count++) {
        int32_t *lengths = lengths_make(count);
        for (size_t v = 0; v < COUNT_OF(values); v++) {
            for (uint64_t i = 0; i < count; i++) {
                lengths[i] = values[v];
            }
            check_scans(lengths, count);
            for (uint64_t place = 0; place < count; place++) {
                for (size_t k = 0; k < COUNT_OF(odd); k++) {
                    lengths[place] = odd[k];
                    check_scans(lengths, count);
                }
                lengths[place] = values[v];
            }
        }
        test_release();
    }
}

TEST(count__scan_of_nothing_needs_no_array) {
    for (size_t v = 0; v < variant_count; v++) {
        pwsp_lengths_facts facts = variants[v].scan(NULL, 0);
        assert_true(facts.min == INT32_MAX && facts.max == INT32_MIN);
        assert_true(facts.positive_min == INT32_MAX);
        assert_true(facts.positive_count == 0 && facts.total == 0);
        assert_true(variants[v].quotients(NULL, 0, pwsp_divisor_make(5)) == 0);
    }
}

TEST(count__scans_quotients_and_units_are_those_of_plain_loops) {
    uint64_t random = test_seed();
    uint32_t chunks[CHUNK_COUNT_MAX];
    size_t chunk_count = chunks_make(chunks, &random);
    for (size_t c = 0; c < COUNT_CASES; c++) {
        uint64_t count = count_case(c);
        int32_t *lengths = lengths_make(count);
        for (size_t k = 0; k < chunk_count; k++) {
            if (count > 600 && k % 16) {
                continue;
            }
            for (uint64_t i = 0; i < count; i++) {
                lengths[i] = length_random(&random);
                if (i % 5 == 0) {  // at a multiple of the chunk and next to it
                    int64_t at = test_random_in(&random, 0, INT32_MAX / chunks[k]) * chunks[k] +
                                 test_random_in(&random, -1, 2);
                    lengths[i] = at < 0 ? 0 : at > INT32_MAX ? INT32_MAX : (int32_t)at;
                }
            }
            for (size_t v = 0; v < variant_count; v++) {
                check_scan(&variants[v], lengths, count);
                check_quotients(&variants[v], lengths, count, chunks[k]);
            }
            check_units(lengths, count, chunks[k]);
        }
        test_release();
    }
}

TEST(count__sums_beyond_32_bits_are_kept) {
    uint64_t count = 100003;
    int32_t *lengths = lengths_make(count);
    for (uint64_t i = 0; i < count; i++) {
        lengths[i] = INT32_MAX;
    }
    for (size_t v = 0; v < variant_count; v++) {
        assert_true(variants[v].scan(lengths, count).total == UINT64_C(214754807150941));
        uint64_t sum = variants[v].quotients(lengths, count, pwsp_divisor_make(1));
        assert_true(sum == UINT64_C(214754807050938));  // (2^31 - 2) * 100,003
    }
    assert_true(pwsp_lengths_units(lengths, count, count, 1) == UINT64_C(214754807150941));
    assert_true(pwsp_lengths_units(lengths, count, count, UINT32_MAX) == count);
    test_release();
}

TEST(count__nothing_is_read_outside_the_array) {
    uint64_t random = test_seed();
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages =
        (char *)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != (char *)MAP_FAILED);
    // The pages around the middle one cannot be read.
    int32_t *start = (int32_t *)(void *)(pages + page), *end = start + page / sizeof *end;
    assert_int_equal(mprotect(pages, page, PROT_NONE), 0);
    assert_int_equal(mprotect(end, page, PROT_NONE), 0);
    for (int32_t *at = start; at < end; at++) {
        *at = length_random(&random);
    }
    pwsp_divisor divisor = pwsp_divisor_make(3);
    for (uint64_t count = 0; count <= 300; count++) {
        for (size_t v = 0; v < variant_count; v++) {
            check_scan(&variants[v], end - count, count);
            check_quotients(&variants[v], end - count, count, 3);
            check_scan(&variants[v], start, count);
            assert_true(variants[v].quotients(start, count, divisor) ==
                        pwsp_lengths_quotients_scalar(start, count, divisor));
        }
    }
    assert_int_equal(munmap(pages, 3 * page), 0);
}
