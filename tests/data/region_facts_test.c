// Regions and layouts as facts (support/facts.h): drawings and numbers worked out by hand. What is random is in
// region_test.c.

#include "src/data/region.h"

#include "facts.h"

enum { RANK_MAX = 3, REGION = 6 };

static int64_t a[REGION], b[REGION], shape[RANK_MAX], strides[RANK_MAX];
static uint32_t rank;

static void begin(void) {
    for (int i = 0; i < REGION; i++) {
        a[i] = b[i] = i % 2;
    }
    rank = 0;
}

static pwsp_region region_of(const int64_t *of) {
    const pwsp_region region = {(uint64_t)of[0], of[2],           of[4],
                                (uint32_t)of[1], (uint32_t)of[3], (uint32_t)of[5]};
    return region;
}

// Overlap does not depend on the order, and what is inside overlaps.
static const facts_field *fields(void) {
    static bool meets, holds, equal, injective, has_span;
    static uint64_t low, high;
    static int64_t first, last;
    const pwsp_region one = region_of(a), other = region_of(b);
    meets = pwsp_region_overlaps(&one, &other);
    holds = pwsp_region_contains(&one, &other);
    equal = pwsp_region_equal(&one, &other);
    assert_int_equal(pwsp_region_overlaps(&other, &one), meets);
    assert_int_equal(pwsp_region_equal(&other, &one), equal);
    assert_true(meets || !holds);
    pwsp_region_span(&one, &low, &high);
    injective = pwsp_layout_is_injective(rank, rank ? shape : NULL, rank ? strides : NULL);
    first = last = 7;
    has_span = pwsp_layout_span(rank, rank ? shape : NULL, rank ? strides : NULL, &first, &last);
    FACTS_RETURN(FIELDS(a, REGION), FIELDS(b, REGION), FIELDS(shape, RANK_MAX),
                 FIELDS(strides, RANK_MAX), FIELD(rank), FIELD(meets), FIELD(holds), FIELD(equal),
                 FIELD(low), FIELD(high), FIELD(injective), FIELD(has_span), FIELD(first),
                 FIELD(last));
}

TEST(region_facts__hold) {
    const facts_call none = {NULL, NULL};
    facts all = {"tests/data/regions.facts", begin, fields, &none, NULL, NULL, 0};
    facts_run(&all);
}
