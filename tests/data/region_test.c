// Regions and layouts: do strided tiles meet, is one in the other, what do they span.
//
// Expected values: sets of bytes, marked one by one, for small random regions of all kinds and anywhere
// in the address space; pairs of elements in 128 bits for large ones; counting for the number theory.
// Drawings and numbers worked out by hand are in region_facts_test.c.

#include "src/data/region.c"

#include "test.h"
#include "wide.h"

static pwsp_region tile(uint64_t base, uint32_t rows, int64_t row_stride, uint32_t cols,
                        int64_t col_stride, uint32_t size) {
    pwsp_region region = {base, row_stride, col_stride, rows, cols, size};
    return region;
}

// Overlap does not depend on the order.
static bool meet(pwsp_region a, pwsp_region b) {
    bool result = pwsp_region_overlaps(&a, &b);
    assert_true(pwsp_region_overlaps(&b, &a) == result);
    return result;
}

static bool holds(pwsp_region outer, pwsp_region inner) {
    bool result = pwsp_region_contains(&outer, &inner);
    if (result) {
        assert_true(meet(outer, inner));
    }
    return result;
}

static void span_is(pwsp_region region, uint64_t low, uint64_t high) {
    uint64_t l = 0, h = 0;
    pwsp_region_span(&region, &l, &h);
    assert_true(l == low);
    assert_true(h == high);
}

// -- by hand --------------------------------------------------------------------------------------

TEST(region__strides_may_be_negative_swapped_or_zero) {
    // 3 rows of 4 f32 in rows of 32 bytes: 0..15, 32..47, 64..79 from 1000.
    const pwsp_region forms[6] = {tile(1000, 3, 32, 4, 4, 4),  tile(1064, 3, -32, 4, 4, 4),
                                  tile(1012, 3, 32, 4, -4, 4), tile(1076, 3, -32, 4, -4, 4),
                                  tile(1000, 4, 4, 3, 32, 4),  tile(1076, 4, -4, 3, -32, 4)};
    for (int i = 0; i < 6; i++) {
        span_is(forms[i], 1000, 1080);
        for (int j = 0; j < 6; j++) {
            assert_true(meet(forms[i], forms[j]));
            assert_true(holds(forms[i], forms[j]));
            pwsp_region moved = forms[j];
            moved.base += 16;
            assert_false(meet(forms[i], moved));
            moved.base -= 1;
            assert_true(meet(forms[i], moved));
            moved.base -= 31;
            assert_false(meet(forms[i], moved));
        }
    }
}

// -- sets of bytes --------------------------------------------------------------------------------

#define ARENA_BYTES 4096

// Marks the bytes of a region, relative to origin.
static void mark(const pwsp_region *region, uint64_t origin, unsigned char *bytes) {
    memset(bytes, 0, ARENA_BYTES);
    for (uint32_t r = 0; r < region->rows; r++) {
        for (uint32_t c = 0; c < region->cols; c++) {
            uint64_t at = region->base - origin + (uint64_t)region->row_stride * r +
                          (uint64_t)region->col_stride * c;
            for (uint32_t i = 0; i < region->size; i++) {
                assert_true(at + i < ARENA_BYTES);
                bytes[at + i] = 1;
            }
        }
    }
}

// Kinds of random regions. Each has at most 9 rows and columns, with strides of at most 100.
enum { ANY, DENSE_ROWS, COLUMN_MAJOR, SAME_STRIDES, LARGE_COPRIME, INTERLEAVED, ONE_ROW, KINDS };

static pwsp_region random_region(uint64_t *random, int kind, const pwsp_region *other) {
    static const int64_t primes[8] = {13, 17, 29, 37, 53, 71, 89, 97};
    // One statement for each draw, as the order of arguments is up to the compiler.
    pwsp_region region = tile(0, 1, 0, 1, 0, 1);
    region.rows = test_random_u32(random, 1, 9);
    region.cols = test_random_u32(random, 1, 9);
    region.row_stride = test_random_in(random, -100, 100);
    region.col_stride = test_random_in(random, -30, 30);
    region.size = UINT32_C(1) << test_random_in(random, 0, 3);
    int64_t dense = (int64_t)(region.size * region.cols);
    switch (kind) {
    case DENSE_ROWS:
        region.col_stride = region.size;
        region.row_stride = test_random_in(random, 0, 3) == 0 ? region.row_stride
                                                              : test_random_in(random, dense, 100);
        break;
    case COLUMN_MAJOR:
        region.row_stride = region.size;
        region.col_stride = region.size * test_random_in(random, region.rows, 10);
        break;
    case SAME_STRIDES:
        region.row_stride = other->row_stride;
        region.col_stride = other->col_stride;
        region.size = other->size;
        break;
    case LARGE_COPRIME:
        region.row_stride = primes[test_random_in(random, 0, 7)];
        region.col_stride = primes[test_random_in(random, 0, 7)];
        region.size = test_random_u32(random, 1, 2);
        break;
    case INTERLEAVED:
        region.col_stride = (int64_t)region.size * 2;
        region.row_stride = (int64_t)region.size * 2 * test_random_in(random, 0, 6);
        break;
    case ONE_ROW:
        region.rows = 1;
        region.col_stride = test_random_in(random, -60, 60);
        break;
    default: region.size = test_random_u32(random, 1, 9);
    }
    return region;
}

// From the base of a region to a random element.
static uint64_t random_element(uint64_t *random, const pwsp_region *region) {
    uint64_t row = test_random(random) % region->rows, col = test_random(random) % region->cols;
    return (uint64_t)region->row_stride * row + (uint64_t)region->col_stride * col;
}

TEST(region__agrees_with_sets_of_bytes) {
    static unsigned char a_bytes[ARENA_BYTES], b_bytes[ARENA_BYTES];
    static const uint64_t origins[5] = {0, 1 << 20, UINT64_MAX - ARENA_BYTES + 1,
                                        UINT64_MAX - ARENA_BYTES / 2, UINT64_C(1) << 63};
    uint64_t random = test_seed();
    int met = 0, apart = 0, contained = 0, missed = 0;
    for (int round = 0; TEST_ROUNDS(round, 60000); round++) {
        uint64_t origin = origins[test_random_in(&random, 0, 4)];
        pwsp_region none = tile(0, 1, 0, 1, 0, 1);
        int a_kind = (int)test_random_in(&random, 0, KINDS - 1);
        int b_kind = (int)test_random_in(&random, 0, KINDS - 1);
        pwsp_region a = random_region(&random, a_kind == SAME_STRIDES ? ANY : a_kind, &none);
        pwsp_region b = random_region(&random, b_kind, &a);
        a.base = origin + (uint64_t)test_random_in(&random, 1500, 1600);
        b.base = origin + (uint64_t)test_random_in(&random, 1300, 1800);
        if (test_random_in(&random, 0, 3) == 0) {  // often an element of a begins b
            b.base = a.base + random_element(&random, &a);
            b.rows = b.rows > 3 ? 2 : b.rows;
            b.cols = b.cols > 3 ? 2 : b.cols;
        }
        mark(&a, origin, a_bytes);
        mark(&b, origin, b_bytes);
        bool common = false, inside = true, a_gaps = false;
        uint64_t low = ARENA_BYTES, high = 0;
        for (uint64_t i = 0; i < ARENA_BYTES; i++) {
            common = common || (a_bytes[i] && b_bytes[i]);
            inside = inside && (a_bytes[i] || !b_bytes[i]);
            low = a_bytes[i] && i < low ? i : low;
            high = a_bytes[i] ? i + 1 : high;
        }
        for (uint64_t i = low; i < high; i++) {
            a_gaps = a_gaps || !a_bytes[i];
        }
        span_is(a, origin + low, origin + high);
        bool overlaps = meet(a, b), contains = pwsp_region_contains(&a, &b);
        bool dense = a.col_stride == (int64_t)a.size && b.col_stride == (int64_t)b.size &&
                     a.row_stride == b.row_stride && a.row_stride >= (int64_t)(a.size * a.cols);
        if (overlaps != common || (contains && !inside) ||
            (inside && !contains && (dense || !a_gaps))) {
            fail_msg("round %d: rows %u %u cols %u %u size %u %u strides %lld %lld %lld %lld "
                     "distance %lld overlaps %d, %d contains %d, %d",
                     round, a.rows, b.rows, a.cols, b.cols, a.size, b.size, (long long)a.row_stride,
                     (long long)b.row_stride, (long long)a.col_stride, (long long)b.col_stride,
                     (long long)(b.base - a.base), overlaps, common, contains, inside);
        }
        met += common;
        apart += !common;
        contained += contains;
        missed += inside && !contains;
    }
    print_message("%d meet, %d do not; %d contained, %d more not recognised\n", met, apart,
                  contained, missed);
    assert_met(met > 10000 && apart > 10000 && contained > 2000);
}

// -- large numbers --------------------------------------------------------------------------------

enum { SIDE_MAX = 7 };

// Where a tile's elements begin, in any order.
static uint32_t elements_of(const pwsp_region *r, wide begins[SIDE_MAX * SIDE_MAX]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->rows; i++) {
        const wide offset = wide_mul(wide_of_u64(i), wide_of_i64(r->row_stride));
        const wide row = wide_add(wide_of_u64(r->base), offset);
        for (uint32_t j = 0; j < r->cols; j++) {
            const wide col = wide_mul(wide_of_u64(j), wide_of_i64(r->col_stride));
            begins[count++] = wide_add(row, col);
        }
    }
    return count;
}

// Whether two elements meet, pair by pair.
static bool elements_meet(const pwsp_region *a, const pwsp_region *b) {
    wide x[SIDE_MAX * SIDE_MAX], y[SIDE_MAX * SIDE_MAX];
    const uint32_t x_count = elements_of(a, x), y_count = elements_of(b, y);
    for (uint32_t i = 0; i < x_count; i++) {
        const wide end = wide_add(x[i], wide_of_u64(a->size));
        for (uint32_t j = 0; j < y_count; j++) {
            if (wide_compare(x[i], wide_add(y[j], wide_of_u64(b->size))) < 0 &&
                wide_compare(y[j], end) < 0) {
                return true;
            }
        }
    }
    return false;
}

static int64_t random_stride(uint64_t *random) {
    int64_t stride = (int64_t)(test_random(random) >> test_random_in(random, 6, 60));
    return test_random_in(random, 0, 2) == 0 ? -stride : stride;
}

TEST(region__agrees_with_pairs_of_elements_for_large_strides) {
    uint64_t random = test_seed();
    int met = 0, rounds = 0;
    for (; TEST_ROUNDS(rounds, 20000); rounds++) {
        pwsp_region region[2];
        for (int i = 0; i < 2; i++) {
            // At most 6 * 2^58 on either side of the middle of the address space, and twice.
            region[i] = tile(UINT64_C(1) << 63, 1, 0, 1, 0, 1);
            region[i].rows = test_random_u32(&random, 1, SIDE_MAX);
            region[i].cols = test_random_u32(&random, 1, SIDE_MAX);
            region[i].row_stride = random_stride(&random);
            region[i].col_stride = random_stride(&random);
            region[i].size = test_random_u32(&random, 1, 1 << 16);
        }
        // Move b so that two elements nearly meet.
        pwsp_region *a = &region[0], *b = &region[1];
        if (test_random_in(&random, 0, 2) == 0) {
            b->row_stride = a->row_stride;
        }
        b->base += random_element(&random, a);
        b->base -= random_element(&random, b);
        if (test_random_in(&random, 0, 1) == 0) {
            b->base += a->size + (uint64_t)test_random_in(&random, -1, 1);
        } else {
            b->base -= b->size + (uint64_t)test_random_in(&random, -1, 1);
        }
        bool expected = elements_meet(a, b);
        met += expected;
        assert_true(meet(*a, *b) == expected);
    }
    print_message("%d of %d meet\n", met, rounds);
    assert_true(met > rounds / 4 && met < rounds * 3 / 4);
}

TEST(region__first_hit_is_the_least) {
    for (uint64_t m = 2; m <= 26; m++) {
        for (uint64_t a = 0; a < m; a++) {
            for (uint64_t low = 1; low < m; low++) {
                for (uint64_t high = low; high < m; high++) {
                    uint64_t expected = 0, x = 0, y = 0;
                    while (expected < m && (a * expected % m < low || a * expected % m > high)) {
                        expected++;
                    }
                    bool found = pwsp_first_hit(a, m, low, high, &x, &y);
                    assert_true(found == (expected < m));
                    if (found) {
                        assert_true(x == expected);
                        assert_true(y == a * x / m);
                    }
                }
            }
        }
    }
}

// a * x - m * y
static wide rest_of(uint64_t a, uint64_t x, uint64_t m, uint64_t y) {
    return wide_sub(wide_mul(wide_of_u64(a), wide_of_u64(x)),
                    wide_mul(wide_of_u64(m), wide_of_u64(y)));
}

TEST(region__first_hit_has_no_overflow) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 20000); round++) {
        uint64_t m = (test_random(&random) >> test_random_in(&random, 1, 20)) | 8;
        uint64_t a = test_random(&random) % m, goal = 1 + test_random(&random) % (m - 1), x, y;
        uint64_t slack = test_random(&random) >> test_random_in(&random, 30, 63);
        uint64_t high = m - 1 - goal < slack ? m - 1 : goal + slack;
        if (!pwsp_first_hit(a, m, goal, high, &x, &y)) {
            continue;
        }
        const wide hit = rest_of(a, x, m, y);
        assert_true(x < m && hit.high == 0 && goal <= hit.low && hit.low <= high);
    }
    // Remainders of Fibonacci numbers fall slowest: F(90) and F(89), the largest below 2^62.
    uint64_t a = 1, m = 1, x = 0, y = 0;
    while (m < UINT64_C(2000000000000000000)) {
        uint64_t next = a + m;
        a = m;
        m = next;
    }
    assert_true(pwsp_first_hit(a, m, m - 1, m - 1, &x, &y));
    assert_int_equal(wide_compare(rest_of(a, x, m, y), wide_of_u64(m - 1)), 0);
}

// -- layouts --------------------------------------------------------------------------------------

TEST(layout__agrees_with_counting) {
    uint64_t random = test_seed();
    int injective = 0;
    for (int round = 0; TEST_ROUNDS(round, 20000); round++) {
        static unsigned char seen[2048];
        int64_t shape[4] = {1, 1, 1, 1}, strides[4] = {0, 0, 0, 0}, low = 0, high = 0;
        uint32_t rank = test_random_u32(&random, 0, 4);
        for (uint32_t i = 0; i < rank; i++) {
            shape[i] = test_random_in(&random, test_random_in(&random, 0, 9) > 0, 4);
            strides[i] = test_random_in(&random, -40, 40);
        }
        int64_t lowest = INT64_MAX, highest = INT64_MIN;
        bool repeats = false;
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < shape[0] * shape[1] * shape[2] * shape[3]; i++) {
            int64_t at = i % shape[0] * strides[0] + i / shape[0] % shape[1] * strides[1] +
                         i / (shape[0] * shape[1]) % shape[2] * strides[2] +
                         i / (shape[0] * shape[1] * shape[2]) * strides[3];
            lowest = at < lowest ? at : lowest;
            highest = at > highest ? at : highest;
            repeats = repeats || seen[1024 + at];
            seen[1024 + at] = 1;
        }
        assert_true(pwsp_layout_span(rank, shape, strides, &low, &high));
        assert_true(low == (lowest == INT64_MAX ? 0 : lowest));
        assert_true(high == (lowest == INT64_MAX ? -1 : highest));
        if (pwsp_layout_is_injective(rank, shape, strides)) {
            assert_false(repeats);
            injective++;
        }
    }
    assert_met(injective > 5000);
}
