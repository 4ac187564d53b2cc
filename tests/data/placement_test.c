// Placing items with lifetimes in one block (src/data/placement.h): on paper, and against first fit done
// point by point over a table of which item is alive when.

#include "src/data/placement.h"

#include "test.h"

enum { ITEMS = 40, POINTS = 30 };

typedef struct sample {
    uint32_t count, lifetime_count;
    pwsp_placed items[ITEMS];
    pwsp_lifetime lifetimes[3 * ITEMS];
    bool is_alive[ITEMS][POINTS];
} sample;

static pwsp_placement find(sample *s) {
    static uint32_t order[2 * ITEMS];
    static uint64_t offsets[ITEMS], alive[POINTS + 1];
    return pwsp_placement_find(s->items, s->count, s->lifetimes, POINTS, order, offsets, alive);
}

static void add_lifetime(sample *s, uint32_t first, uint32_t last) {
    s->lifetimes[s->lifetime_count].first = first;
    s->lifetimes[s->lifetime_count++].last = last;
    s->items[s->count].lifetime_count++;
    for (uint32_t p = first; p <= last; p++) {
        s->is_alive[s->count][p] = true;
    }
}

static void add_item(sample *s, uint64_t bytes) {
    memset(&s->items[s->count], 0, sizeof s->items[0]);
    s->items[s->count].bytes = bytes;
    s->items[s->count].offset = 12345;
    s->items[s->count].first_lifetime = s->lifetime_count;
}

// -- the rule, slowly -----------------------------------------------------------------------------

static bool takes_memory(const sample *s, uint32_t i) {
    return s->items[i].bytes > 0 && s->items[i].lifetime_count > 0;
}

static bool meet(const sample *s, uint32_t a, uint32_t b) {
    for (uint32_t p = 0; p < POINTS; p++) {
        if (s->is_alive[a][p] && s->is_alive[b][p]) {
            return true;
        }
    }
    return false;
}

static bool fits(const sample *s, const bool *is_placed, const uint64_t *offsets, uint32_t i,
                 uint64_t offset) {
    for (uint32_t j = 0; j < s->count; j++) {
        if (is_placed[j] && meet(s, i, j) && offset < offsets[j] + s->items[j].bytes &&
            offsets[j] < offset + s->items[i].bytes) {
            return false;
        }
    }
    return true;
}

static bool is_before(const sample *s, bool by_time, uint32_t a, uint32_t b) {
    const uint32_t x = s->lifetimes[s->items[a].first_lifetime].first;
    const uint32_t y = s->lifetimes[s->items[b].first_lifetime].first;
    if (by_time && x != y) {
        return x < y;
    }
    return s->items[a].bytes != s->items[b].bytes ? s->items[a].bytes > s->items[b].bytes : a < b;
}

// Places one item after the other, each at the first multiple of 64 bytes; returns the peak.
static uint64_t place_slowly(const sample *s, bool by_time, uint64_t *offsets) {
    bool is_placed[ITEMS] = {false};
    uint64_t peak = 0;
    for (;;) {
        uint32_t next = ITEMS;
        for (uint32_t i = 0; i < s->count; i++) {
            if (takes_memory(s, i) && !is_placed[i] &&
                (next == ITEMS || is_before(s, by_time, i, next))) {
                next = i;
            }
        }
        if (next == ITEMS) {
            return peak;
        }
        uint64_t offset = 0;
        while (!fits(s, is_placed, offsets, next, offset)) {
            offset += 64;
        }
        offsets[next] = offset;
        is_placed[next] = true;
        peak = offset + s->items[next].bytes > peak ? offset + s->items[next].bytes : peak;
    }
}

// -- tests ----------------------------------------------------------------------------------------

// By size, d would lie beside a, above b: 0 to 192, 192 to 320, and c at 0. In the order of time the
// peak is the same, so the first one stays.
TEST(placement__is_the_one_on_paper) {
    static const struct {
        uint64_t bytes;
        uint32_t first, last;
        uint64_t offset;
    } rows[] = {
        {192, 0, 4, 0},    // the largest
        {128, 3, 9, 192},  // alive with it
        {64, 5, 7, 0},     // below the second one, where the first one has ended
        {128, 8, 9, 0},    // and again
        {0, 0, 9, 0},      // without bytes
    };
    sample s = {0};
    for (uint32_t i = 0; i < 5; i++) {
        add_item(&s, rows[i].bytes);
        add_lifetime(&s, rows[i].first, rows[i].last);
        s.count++;
    }
    const pwsp_placement found = find(&s);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(s.items[i].offset, rows[i].offset);
    }
    assert_int_equal(found.peak, 320);
    assert_int_equal(found.sum, 512);
    assert_int_equal(found.bound, 320);  // at points 3 and 4
    assert_int_equal(found.point, 3);
}

static void random_sample(sample *s, uint64_t *random) {
    memset(s, 0, sizeof *s);
    for (uint32_t count = test_random_u32(random, 0, ITEMS); s->count < count;) {
        add_item(s, (uint64_t)test_random_in(random, 0, 20) * 64);
        uint32_t first = test_random_u32(random, 0, POINTS - 1);
        for (int64_t j = test_random_in(random, 0, 3); j > 0 && first < POINTS; j--) {
            const uint32_t end = first + 6 < POINTS ? first + 6 : POINTS - 1;
            const uint32_t last = test_random_u32(random, first, end);
            add_lifetime(s, first, last);
            first = last + test_random_u32(random, 1, 4);
        }
        s->count++;
    }
}

TEST(placement__is_first_fit_in_the_better_of_two_orders) {
    uint64_t random = test_seed(), by_time = 0, by_size = 0;
    for (int round = 0; TEST_ROUNDS(round, 2000); round++) {
        static sample s;
        uint64_t offsets[2][ITEMS] = {{0}}, sum = 0, bound = 0;
        uint32_t point = 0;
        random_sample(&s, &random);
        const uint64_t peaks[2] = {place_slowly(&s, false, offsets[0]),
                                   place_slowly(&s, true, offsets[1])};
        const int better = peaks[1] < peaks[0];
        const pwsp_placement found = find(&s);
        for (uint32_t i = 0; i < s.count; i++) {
            assert_int_equal(s.items[i].offset, offsets[better][i]);
            sum += takes_memory(&s, i) ? s.items[i].bytes : 0;
        }
        for (uint32_t p = 0; p < POINTS; p++) {
            uint64_t bytes = 0;
            for (uint32_t i = 0; i < s.count; i++) {
                bytes += s.is_alive[i][p] ? s.items[i].bytes : 0;
            }
            point = bytes > bound ? p : point;
            bound = bytes > bound ? bytes : bound;
        }
        assert_int_equal(found.peak, peaks[better]);
        assert_int_equal(found.sum, sum);
        assert_int_equal(found.bound, bound);
        assert_int_equal(found.point, point);
        by_time += better == 1;
        by_size += peaks[0] < peaks[1];
    }
    assert_met(by_time > 20 && by_size > 20);
}
