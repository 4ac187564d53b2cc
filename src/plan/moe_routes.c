// Routes as routers make them.
//
// A pattern is a probability for each expert to be among a token's; together they are top_k,
// and at most 1 each. Systematic sampling (Madow 1949) draws with exactly these: experts lie in a
// row, each as long as its probability, and a token takes those in which the points u, u + 1, ...
// fall, for a random u below 1:
//
//      experts   |  0  |0.9     |  2 |  3     |   4  |      of lengths that are together 3
//      points        u        u + 1        u + 2            0, 2 and 4
//
// As no expert is longer than 1, none is taken twice. Lengths are integers of 2^32 to a whole one, so
// results are the same on every machine. The order of experts decides which of them go together: for
// SPREAD, equal lengths make points fall far apart.

#include "moe.h"

#define PWSP_MOE_ONE       (UINT64_C(1) << 32)
#define PWSP_MOE_HOT_SHARE 4  // the hot get all but one in so many
#define PWSP_MOE_SKEW      4.0

typedef struct pwsp_moe_router {
    const ptowsp_moe_traffic *t;
    uint32_t rank_experts;
    double skew;
    uint64_t *ends;  // [expert_count + 1] sums of lengths; the last is top_k
    uint64_t random;
} pwsp_moe_router;

static uint64_t pwsp_moe_random(pwsp_moe_router *r) {
    r->random += UINT64_C(0x9e3779b97f4a7c15);
    return pwsp_mix64(r->random);
}

// Below n, as good as uniform.
static uint32_t pwsp_moe_random_below(pwsp_moe_router *r, uint32_t n) {
    return (uint32_t)((pwsp_moe_random(r) >> 32) * n >> 32);
}

// -- lengths --------------------------------------------------------------------------------------

// Gives experts [begin, begin + count), around the end, `share` together, and the rest of top_k to
// the others; the hot ones have at most 1 each, and the others, too.
static void pwsp_moe_lengths_set(const pwsp_moe_router *r, uint32_t begin, uint32_t count,
                                 uint64_t share) {
    const uint32_t experts = r->t->expert_count, others = experts - count;
    const uint64_t all = (uint64_t)r->t->top_k * PWSP_MOE_ONE;
    share = pwsp_min_u64(share, count * PWSP_MOE_ONE);
    share = pwsp_max_u64(share, all - pwsp_min_u64(all, others * PWSP_MOE_ONE));
    uint64_t end = 0;
    for (uint32_t e = 0, hot = 0, cold = 0; e < experts; e++) {
        // The sum of the first n of equal parts is rounded, so that all sums are exact.
        const bool is_hot = (e + experts - begin) % experts < count;
        hot += is_hot, cold += !is_hot;
        end = (count > 0 ? share / count * hot + share % count * hot / count : 0) +
              (others > 0 ? (all - share) / others * cold + (all - share) % others * cold / others
                          : 0);
        r->ends[e] = end;
    }
    PTOWSP_ASSERT(end == all);
}

// The busiest of weights 1 / (i + a), relative to the mean.
static double pwsp_moe_skew_of(uint32_t experts, double a) {
    PWSP_ROUND_APART
    double sum = 0.0;
    for (uint32_t i = 0; i < experts; i++) {
        sum += 1.0 / (i + a);
    }
    return experts / (a * sum);
}

// Lengths by falling weight; ends[] is in the order of weights.
static void pwsp_moe_lengths_skewed(const pwsp_moe_router *r) {
    PWSP_ROUND_APART
    const uint32_t experts = r->t->expert_count;
    double low = 1e-6, high = 2e-6;  // of a: the skew falls
    while (high < 1e12 && pwsp_moe_skew_of(experts, high) > r->skew) {
        low = high;
        high *= 2.0;
    }
    for (uint32_t i = 0; i < 50; i++) {
        const double middle = low + (high - low) / 2.0;
        if (pwsp_moe_skew_of(experts, middle) > r->skew) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const uint64_t all = (uint64_t)r->t->top_k * PWSP_MOE_ONE;
    const double busiest = (double)all * r->skew / experts;
    double sum = 0.0;
    uint64_t before = 0;
    for (uint32_t i = 0; i < experts; i++) {
        sum += busiest * high / (i + high);
        const uint64_t end = pwsp_min_u64(pwsp_min_u64((uint64_t)sum, all), before + PWSP_MOE_ONE);
        r->ends[i] = before = end;
    }
    // What rounding left over goes to the last ones.
    r->ends[experts - 1] = all;
    for (uint32_t i = experts - 1; i-- > 0;) {
        const uint64_t after = r->ends[i + 1];
        r->ends[i] = pwsp_max_u64(r->ends[i], after - pwsp_min_u64(after, PWSP_MOE_ONE));
    }
}

static void pwsp_moe_lengths(const pwsp_moe_router *r) {
    const ptowsp_moe_traffic *t = r->t;
    const uint64_t all = (uint64_t)t->top_k * PWSP_MOE_ONE;
    const uint64_t hot_share = all - all / PWSP_MOE_HOT_SHARE;
    const uint32_t experts = t->expert_count;
    const uint32_t set = t->top_k > experts / 16 ? t->top_k : experts / 16;
    const uint32_t rank = (uint32_t)(pwsp_mix64(t->seed) % (experts / r->rank_experts));
    const uint64_t moved = (uint64_t)t->step * set;
    switch (t->pattern) {
    case PTOWSP_MOE_HOT_SET:
        pwsp_moe_lengths_set(r, pwsp_modulo(t->seed, experts), set, hot_share);
        break;
    case PTOWSP_MOE_ROTATING:
        pwsp_moe_lengths_set(r, (uint32_t)((t->seed % experts + moved) % experts), set, hot_share);
        break;
    case PTOWSP_MOE_HOT_RANK:
        pwsp_moe_lengths_set(r, rank * r->rank_experts, r->rank_experts, hot_share);
        break;
    case PTOWSP_MOE_ZERO_RANK:
        pwsp_moe_lengths_set(r, rank * r->rank_experts, r->rank_experts, 0);
        break;
    case PTOWSP_MOE_SKEWED: pwsp_moe_lengths_skewed(r); break;
    default: pwsp_moe_lengths_set(r, 0, 0, 0); break;
    }
}

// -- tokens ---------------------------------------------------------------------------------------

static void pwsp_moe_shuffle(pwsp_moe_router *r, int32_t *ids, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t j = pwsp_moe_random_below(r, i);
        const int32_t id = ids[i - 1];
        ids[i - 1] = ids[j];
        ids[j] = id;
    }
}

static void pwsp_moe_token_draw(pwsp_moe_router *r, int32_t *ids) {
    const uint32_t experts = r->t->expert_count, top_k = r->t->top_k;
    uint64_t point = pwsp_moe_random(r) >> 32;
    uint32_t low = 0;
    for (uint32_t k = 0; k < top_k; k++, point += PWSP_MOE_ONE) {
        uint32_t high = experts - 1;  // the first expert that ends after the point
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (r->ends[middle] > point) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        ids[k] = (int32_t)low;
        low++;
    }
    pwsp_moe_shuffle(r, ids, top_k);
}

// Experts in turn, by a stride that has no factor in common with their number, so that all are met.
static void pwsp_moe_tokens_balanced(pwsp_moe_router *r, int32_t *ids) {
    const ptowsp_moe_traffic *t = r->t;
    const uint32_t experts = t->expert_count;
    uint32_t stride = experts / 2 + pwsp_moe_random_below(r, experts), a, b;
    do {
        stride++;
        for (a = experts, b = stride % experts; b > 0;) {
            const uint32_t rest = a % b;
            a = b;
            b = rest;
        }
    } while (a != 1);
    uint64_t expert = pwsp_moe_random_below(r, experts);
    for (uint32_t token = 0; token < t->token_count; token++) {
        int32_t *of_token = ids + (size_t)token * t->top_k;
        for (uint32_t k = 0; k < t->top_k; k++) {
            of_token[k] = (int32_t)expert;
            expert = (expert + stride) % experts;
        }
        pwsp_moe_shuffle(r, of_token, t->top_k);
    }
}

static void pwsp_moe_tokens_drawn(pwsp_moe_router *r, int32_t *ids) {
    const ptowsp_moe_traffic *t = r->t;
    const uint32_t top_k = t->top_k;
    const uint32_t burst = t->token_count / 4;
    const uint32_t burst_begin = pwsp_moe_random_below(r, t->token_count - burst + 1);
    for (uint32_t token = 0; token < t->token_count; token++) {
        int32_t *of_token = ids + (size_t)token * top_k;
        if (t->pattern == PTOWSP_MOE_BURST && token > burst_begin && token < burst_begin + burst) {
            memcpy(of_token, of_token - top_k, top_k * sizeof *ids);
            continue;
        }
        pwsp_moe_token_draw(r, of_token);
        if (t->pattern == PTOWSP_MOE_RAGGED) {
            for (uint32_t k = pwsp_moe_random_below(r, top_k + 1); k < top_k; k++) {
                of_token[k] = -1;
            }
        }
    }
}

// Where the busy experts of SKEWED are: the positions of weights, permuted by a seeded bijection.
static void pwsp_moe_experts_scatter(const pwsp_moe_router *r, int32_t *ids) {
    const ptowsp_moe_traffic *t = r->t;
    const uint32_t experts = t->expert_count;
    uint64_t *order = r->ends;  // no longer needed
    pwsp_moe_router own = *r;
    own.random = t->seed ^ UINT64_C(0x5bd1e995);
    for (uint32_t i = 0; i < experts; i++) {  // shuffled from the inside
        const uint32_t j = pwsp_moe_random_below(&own, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    const size_t pairs = (size_t)t->token_count * t->top_k;
    for (size_t i = 0; i < pairs; i++) {
        ids[i] = (int32_t)order[ids[i]];
    }
}

// -- public ---------------------------------------------------------------------------------------

static ptowsp_status pwsp_moe_traffic_check(const ptowsp_moe_traffic *t, pwsp_moe_router *r,
                                            ptowsp_plan_info *info) {
    if (!t) {
        return pwsp_moe_null(info, PWSP_MOE_IN_TRAFFIC);
    }
    if ((uint32_t)t->pattern >= PTOWSP_MOE_PATTERN_COUNT) {
        return PWSP_PLAN_FAIL(info, PATTERN_UNKNOWN, (int64_t)t->pattern, 0);
    }
    if (!pwsp_moe_expert_count_is_valid(t->expert_count)) {
        return PWSP_PLAN_FAIL(info, EXPERTS_COUNT, t->expert_count, PTOWSP_MOE_EXPERT_MAX);
    }
    const uint32_t ranks = t->rank_count > 0 ? t->rank_count : 1;
    if (t->expert_count % ranks != 0) {
        return PWSP_PLAN_FAIL(info, RANKS_DIVIDE, t->expert_count, ranks);
    }
    r->rank_experts = t->expert_count / ranks;
    const uint32_t most =
        t->expert_count - (t->pattern == PTOWSP_MOE_ZERO_RANK ? r->rank_experts : 0);
    if (t->top_k == 0 || t->top_k > most) {
        return PWSP_PLAN_FAIL(info, TOP_K_RANGE, t->top_k, most);
    }
    const uint64_t pairs = (uint64_t)t->token_count * t->top_k;
    if (pairs > PWSP_MOE_ROW_MAX) {
        return PWSP_PLAN_FAIL(info, PAIRS_EXCEEDED, pwsp_info_value(pairs), PWSP_MOE_ROW_MAX);
    }
    const bool is_default = t->skew >= 0.0 && t->skew <= 0.0;
    const double skew_max = (double)t->expert_count / t->top_k;
    r->skew = is_default ? (PWSP_MOE_SKEW < skew_max ? PWSP_MOE_SKEW : skew_max) : t->skew;
    if (t->pattern == PTOWSP_MOE_SKEWED && !(r->skew >= 1.0 && r->skew <= skew_max)) {
        return PWSP_PLAN_FAIL(info, SKEW_RANGE, 0, 0);
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_moe_routes_generate(const ptowsp_moe_traffic *traffic, uint64_t *scratch,
                                         int32_t *out_ids, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_moe_router r;
    memset(&r, 0, sizeof r);
    ptowsp_status status = pwsp_moe_traffic_check(traffic, &r, info);
    if (status == PTOWSP_OK && !scratch) {
        status = pwsp_moe_null(info, PWSP_MOE_IN_SCRATCH);
    }
    if (status == PTOWSP_OK && !out_ids && traffic->token_count > 0) {
        status = PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_IDS, 0);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    r.t = traffic;
    r.ends = scratch;
    r.random = pwsp_mix64(traffic->seed ^ pwsp_mix64(traffic->step + UINT64_C(1)));
    if (traffic->pattern == PTOWSP_MOE_BALANCED) {
        pwsp_moe_tokens_balanced(&r, out_ids);
        return PTOWSP_OK;
    }
    pwsp_moe_lengths(&r);
    pwsp_moe_tokens_drawn(&r, out_ids);
    if (traffic->pattern == PTOWSP_MOE_SKEWED) {
        pwsp_moe_experts_scatter(&r, out_ids);
    }
    return PTOWSP_OK;
}
