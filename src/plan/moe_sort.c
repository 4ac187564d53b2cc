// Sorting the pairs of routes by expert: a counting sort, whose result is unique, as it is stable.
//
// Pairs are divided into slices of neighbouring tokens, some for each lane. Each slice counts its
// experts in a table of its own. Sums over experts, and over the slices of an expert, make of the
// tables the first row of each expert in each slice, where its pairs are written one after the other:
//
//      counts     slice 0   2 0 1     first   slice 0   0 5 6
//                 slice 1   3 1 0             slice 1   2 5 7
//
// With AVX-512, up to 256 experts, and `rows`, a slice without dropped pairs keeps the rank of each
// pair, what its expert's counter was before, in `rows`. Then the first rows are in registers, where
// 16 pairs find theirs at once, row = first + rank, and only `pairs` is written one by one. So a pair
// costs two scattered stores, to a counter and to `pairs`. At one a cycle these are 18 of the 26 us of
// 32,768 pairs on a Zen 4; with stores to counters and `rows` in both passes there are four, and 41 us.
//
// Tables of few experts are on the stack; so all but ranks is checked before anything is written.
//
// The last counter of a table is for ids that are not experts: dropped, or out of range.

#include "moe.h"

#include "../base/context.h"
#include "../base/cpu.h"

#define PWSP_MOE_TABLE_MAX    512  // experts of tables on the stack: 2 KiB
#define PWSP_MOE_LANE_SLICES  4    // slices per lane: one that wakes late takes fewer
#define PWSP_MOE_SLICE_TABLES 16   // pairs of a slice, at least, for each counter of its table

typedef struct pwsp_moe_sorter {
    const ptowsp_moe_routes *routes;
    ptowsp_moe_order *order;
    uint32_t block_rows;
    uint32_t slice_count;
    uint32_t *tables;  // [slice_count][expert_count + 1]
    uint64_t pair_count;
} pwsp_moe_sorter;

// -- checks ---------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_moe_routes_check(const ptowsp_moe_routes *routes,
                                                  ptowsp_plan_info *info) {
    if (!routes) {
        return pwsp_moe_null(info, PWSP_MOE_IN_ROUTES);
    }
    if (routes->top_k == 0) {
        return PWSP_PLAN_FAIL(info, TOP_K_RANGE, 0, UINT32_MAX);
    }
    if (!pwsp_moe_expert_count_is_valid(routes->expert_count)) {
        return PWSP_PLAN_FAIL(info, EXPERTS_COUNT, routes->expert_count, PTOWSP_MOE_EXPERT_MAX);
    }
    const uint64_t pairs = (uint64_t)routes->token_count * routes->top_k;
    if (pairs > PWSP_MOE_ROW_MAX) {
        return PWSP_PLAN_FAIL(info, PAIRS_EXCEEDED, pwsp_info_value(pairs), PWSP_MOE_ROW_MAX);
    }
    return routes->ids || pairs == 0 ? PTOWSP_OK : pwsp_moe_null(info, PWSP_MOE_IN_ROUTES_IDS);
}

PWSP_INTERNAL ptowsp_status pwsp_moe_ids_check(const ptowsp_moe_routes *routes,
                                               ptowsp_plan_info *info) {
    const uint64_t count = (uint64_t)routes->token_count * routes->top_k;
    const int64_t experts = routes->expert_count;
    for (uint64_t i = 0; i < count; i++) {
        if (PWSP_UNLIKELY(routes->ids[i] >= experts)) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_EXPERT_RANGE, i, routes->ids[i], experts);
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_moe_order_check(const ptowsp_moe_order *order, ptowsp_plan_info *info) {
    if (!order) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_ORDER, 0);
    }
    const bool is_there[3] = {order->counts != NULL, order->offsets != NULL,
                              order->pairs || order->row_capacity == 0};
    for (uint32_t i = 0; i < 3; i++) {
        if (!is_there[i]) {
            return pwsp_moe_null(info, (pwsp_moe_input)(PWSP_MOE_IN_ORDER_COUNTS + i));
        }
    }
    return PTOWSP_OK;
}

// -- slices ---------------------------------------------------------------------------------------

static uint32_t *pwsp_moe_table(const pwsp_moe_sorter *s, uint32_t slice) {
    return s->tables + (size_t)slice * (s->routes->expert_count + 1);
}

static uint64_t pwsp_moe_slice_begin(const pwsp_moe_sorter *s, uint32_t slice) {
    const ptowsp_moe_routes *routes = s->routes;
    return (uint64_t)routes->token_count * slice / s->slice_count * routes->top_k;
}

static uint32_t pwsp_moe_slot_of(int32_t id, uint32_t expert_count) {
    const uint32_t expert = (uint32_t)id;
    return expert < expert_count ? expert : expert_count;
}

#if PWSP_X86
#define PWSP_MOE_RANKED_MAX 256  // experts whose first rows fit into registers
#define PWSP_MOE_AHEAD      64   // pairs: rows are in memory when they are loaded one by one

// Inserts the rank of a pair, as element k, and counts it. Both take the counter from memory, which is
// one instruction less than a load for both.
#define PWSP_MOE_RANK(ranks, counter, k)                                                           \
    do {                                                                                           \
        uint32_t *at = (counter);                                                                  \
        (ranks) = _mm_insert_epi32(ranks, (int)*at, k);                                            \
        __asm__("" : "+m"(*at)); /* makes the compiler forget it */                                \
        ++*at;                                                                                     \
    } while (0)

// The ranks of four pairs.
PWSP_AVX512 static inline __m128i pwsp_moe_rank_4(const int32_t *ids, uint32_t *table) {
    uint64_t low, high;
    memcpy(&low, ids, sizeof low);
    memcpy(&high, ids + 2, sizeof high);
    __m128i ranks = _mm_setzero_si128();
    PWSP_MOE_RANK(ranks, table + (uint8_t)low, 0);
    PWSP_MOE_RANK(ranks, table + (uint8_t)(low >> 32), 1);
    PWSP_MOE_RANK(ranks, table + (uint8_t)high, 2);
    PWSP_MOE_RANK(ranks, table + (uint8_t)(high >> 32), 3);
    return ranks;
}

// Counts `count` ids, and writes the rank of each. False if one of them is not an expert.
PWSP_AVX512 static bool pwsp_moe_rank_avx512(const int32_t *ids, uint64_t count, uint32_t experts,
                                             uint32_t *counts, uint32_t *ranks) {
    uint32_t table[PWSP_MOE_RANKED_MAX] = {0};
    __m256i largest = _mm256_setzero_si256();
    uint64_t i = 0;
    PTOWSP_ASSERT(experts <= PWSP_MOE_RANKED_MAX);
    for (; i + 8 <= count; i += 8) {
        largest = _mm256_max_epu32(largest, _mm256_loadu_si256((const __m256i *)(ids + i)));
        _mm_storeu_si128((__m128i *)(ranks + i), pwsp_moe_rank_4(ids + i, table));
        _mm_storeu_si128((__m128i *)(ranks + i + 4), pwsp_moe_rank_4(ids + i + 4, table));
    }
    const __mmask8 rest = (__mmask8)((1u << (count - i)) - 1);
    largest = _mm256_max_epu32(largest, _mm256_maskz_loadu_epi32(rest, ids + i));
    if (_mm256_cmpge_epu32_mask(largest, _mm256_set1_epi32((int)experts)) != 0) {
        return false;
    }
    for (; i < count; i++) {
        ranks[i] = table[ids[i]]++;
    }
    memcpy(counts, table, experts * sizeof *counts);
    counts[experts] = 0;
    return true;
}

// What 64 experts have for ids, of each the last six bits.
PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_moe_find_64(const __m512i *first, __m512i id,
                                                       __mmask16 bit_5) {
    return _mm512_mask_blend_epi32(bit_5, _mm512_permutex2var_epi32(first[0], id, first[1]),
                                   _mm512_permutex2var_epi32(first[2], id, first[3]));
}

// Makes rows of the ranks of 16 pairs; first[16] are the first rows of 256 experts.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_moe_rows_16(const int32_t *ids, const __m512i *first,
                                                    uint32_t *rows) {
    const __m512i id = _mm512_loadu_si512(ids);
    const __mmask16 bit_5 = _mm512_test_epi32_mask(id, _mm512_set1_epi32(32));
    const __mmask16 bit_6 = _mm512_test_epi32_mask(id, _mm512_set1_epi32(64));
    const __mmask16 bit_7 = _mm512_test_epi32_mask(id, _mm512_set1_epi32(128));
    const __m512i low = _mm512_mask_blend_epi32(bit_6, pwsp_moe_find_64(first, id, bit_5),
                                                pwsp_moe_find_64(first + 4, id, bit_5));
    const __m512i high = _mm512_mask_blend_epi32(bit_6, pwsp_moe_find_64(first + 8, id, bit_5),
                                                 pwsp_moe_find_64(first + 12, id, bit_5));
    const __m512i base = _mm512_mask_blend_epi32(bit_7, low, high);
    _mm512_storeu_si512(rows, _mm512_add_epi32(base, _mm512_loadu_si512(rows)));
}

// Writes four pairs.
PWSP_FORCE_INLINE void pwsp_moe_pairs_4(const uint32_t *rows, uint32_t pair, uint32_t *pairs) {
    const uint32_t a = rows[pair], b = rows[pair + 1], c = rows[pair + 2], d = rows[pair + 3];
    pairs[a] = pair;
    pairs[b] = pair + 1;
    pairs[c] = pair + 2;
    pairs[d] = pair + 3;
}

// Makes rows of the ranks of pairs [begin, end), and writes the pairs.
PWSP_AVX512 static void pwsp_moe_rows_avx512(const pwsp_moe_sorter *s, const uint32_t *table,
                                             uint64_t begin, uint64_t end) {
    const int32_t *ids = s->routes->ids;
    uint32_t *pairs = s->order->pairs, *rows = s->order->rows;
    uint32_t padded[PWSP_MOE_RANKED_MAX] = {0};
    __m512i first[PWSP_MOE_RANKED_MAX / 16];
    memcpy(padded, table, s->routes->expert_count * sizeof *padded);
    for (uint32_t i = 0; i < PWSP_MOE_RANKED_MAX / 16; i++) {
        first[i] = _mm512_loadu_si512(padded + 16 * i);
    }
    const uint64_t whole = end - (end - begin) % 16;
    for (uint64_t at = begin, made = begin; at < whole; at += 16) {
        for (; made < whole && made < at + PWSP_MOE_AHEAD; made += 16) {
            pwsp_moe_rows_16(ids + made, first, rows + made);
        }
        pwsp_moe_pairs_4(rows, (uint32_t)at, pairs);
        pwsp_moe_pairs_4(rows, (uint32_t)at + 4, pairs);
        pwsp_moe_pairs_4(rows, (uint32_t)at + 8, pairs);
        pwsp_moe_pairs_4(rows, (uint32_t)at + 12, pairs);
    }
    for (uint64_t i = whole; i < end; i++) {
        rows[i] += padded[ids[i]];
        pairs[rows[i]] = (uint32_t)i;
    }
}

// Whether slices without dropped pairs keep ranks.
static bool pwsp_moe_is_ranked(const pwsp_moe_sorter *s) {
    return s->order->rows && s->routes->expert_count <= PWSP_MOE_RANKED_MAX &&
           pwsp_cpu_has_avx512();
}
#endif

static void pwsp_moe_slice_count(const pwsp_moe_sorter *s, uint32_t slice) {
    const PTOWSP_GM int32_t *ids = s->routes->ids;
    const uint32_t experts = s->routes->expert_count;
    const uint64_t begin = pwsp_moe_slice_begin(s, slice);
    const uint64_t end = pwsp_moe_slice_begin(s, slice + 1);
    uint32_t *table = pwsp_moe_table(s, slice);
#if PWSP_X86
    if (pwsp_moe_is_ranked(s) &&
        pwsp_moe_rank_avx512(ids + begin, end - begin, experts, table, s->order->rows + begin)) {
        return;
    }
#endif
    memset(table, 0, (experts + 1) * sizeof *table);
    for (uint64_t i = begin; i < end; i++) {
        table[pwsp_moe_slot_of(ids[i], experts)]++;
    }
}

static void pwsp_moe_slice_write(const pwsp_moe_sorter *s, uint32_t slice) {
    const PTOWSP_GM int32_t *ids = s->routes->ids;
    const uint32_t experts = s->routes->expert_count;
    const uint64_t begin = pwsp_moe_slice_begin(s, slice);
    const uint64_t end = pwsp_moe_slice_begin(s, slice + 1);
    PTOWSP_GM uint32_t *pairs = s->order->pairs, *rows = s->order->rows;
    uint32_t *next = pwsp_moe_table(s, slice);
#if PWSP_X86
    if (pwsp_moe_is_ranked(s) && next[experts] == 0) {
        pwsp_moe_rows_avx512(s, next, begin, end);
        return;
    }
#endif
    for (uint64_t i = begin; i < end; i++) {
        uint32_t row = PTOWSP_MOE_NO_ROW;
        if (pwsp_moe_slot_of(ids[i], experts) < experts) {
            row = next[ids[i]]++;
            PTOWSP_ASSERT(row < s->order->row_count);
            pairs[row] = (uint32_t)i;
        }
        if (rows) {
            rows[i] = row;
        }
    }
}

// -- between counting and writing -----------------------------------------------------------------

// Checks ids and capacity from the counts of all slices; rows is with padding.
static ptowsp_status pwsp_moe_counts_check(const pwsp_moe_sorter *s, uint64_t *out_dropped,
                                           ptowsp_plan_info *info) {
    const uint32_t experts = s->routes->expert_count;
    uint64_t rows = 0, dropped = 0;
    for (uint32_t slice = 0; slice < s->slice_count; slice++) {
        dropped += pwsp_moe_table(s, slice)[experts];
    }
    *out_dropped = dropped;
    ptowsp_status status = dropped > 0 ? pwsp_moe_ids_check(s->routes, info) : PTOWSP_OK;
    if (status != PTOWSP_OK) {
        return status;
    }
    if (s->block_rows == 1) {
        rows = s->pair_count - dropped;
    } else {
        for (uint32_t e = 0; e < experts; e++) {
            uint64_t count = 0;
            for (uint32_t slice = 0; slice < s->slice_count; slice++) {
                count += pwsp_moe_table(s, slice)[e];
            }
            rows += pwsp_ceil_div_u64(count, s->block_rows) * s->block_rows;
        }
    }
    if (rows > PWSP_MOE_ROW_MAX) {
        return PWSP_PLAN_FAIL(info, PAIRS_EXCEEDED, pwsp_info_value(rows), PWSP_MOE_ROW_MAX);
    }
    if (rows > s->order->row_capacity) {
        return PWSP_PLAN_FAIL(info, ROWS_SMALL, (int64_t)rows, s->order->row_capacity);
    }
    return PTOWSP_OK;
}

// Writes counts, offsets, padding and blocks; makes of each table the first rows of its pairs.
static void pwsp_moe_offsets_write(const pwsp_moe_sorter *s, uint64_t dropped) {
    ptowsp_moe_order *order = s->order;
    const uint32_t experts = s->routes->expert_count, block_rows = s->block_rows;
    uint32_t row = 0;
    for (uint32_t e = 0; e < experts; e++) {
        uint32_t next = row;
        for (uint32_t slice = 0; slice < s->slice_count; slice++) {
            uint32_t *table = pwsp_moe_table(s, slice);
            const uint32_t count = table[e];
            table[e] = next;
            next += count;
        }
        order->counts[e] = next - row;
        order->offsets[e] = row;
        if (block_rows > 1 && next > row) {
            const uint64_t blocks = pwsp_ceil_div_u64(next - row, block_rows);
            const uint32_t end = row + (uint32_t)(blocks * block_rows);
            for (; next < end; next++) {
                order->pairs[next] = PTOWSP_MOE_NO_ROW;
            }
        }
        if (order->block_experts) {
            for (uint32_t at = row; at < next; at += block_rows) {
                order->block_experts[at / block_rows] = (int32_t)e;
            }
        }
        row = next;
    }
    order->offsets[experts] = row;
    order->row_count = row;
    order->pair_count = (uint32_t)(s->pair_count - dropped);
    order->block_count = row / block_rows;
    const uint32_t capacity = order->block_experts ? order->row_capacity / block_rows : 0;
    for (uint32_t at = order->block_count; at < capacity; at++) {
        order->block_experts[at] = -1;
    }
    order->padding_share = row > 0 ? (double)(row - order->pair_count) / (double)row : 0.0;
}

// -- one lane -------------------------------------------------------------------------------------

static pwsp_moe_sorter pwsp_moe_sorter_of(const ptowsp_moe_routes *routes,
                                          ptowsp_moe_order *order) {
    const uint64_t pairs = (uint64_t)routes->token_count * routes->top_k;
    const uint32_t block_rows = routes->block_rows > 0 ? routes->block_rows : 1;
    pwsp_moe_sorter s = {routes, order, block_rows, 1, order->offsets, pairs};
    return s;
}

// Sorts all pairs as one slice.
static ptowsp_status pwsp_moe_sort_slice(const pwsp_moe_sorter *s, ptowsp_plan_info *info) {
    uint64_t dropped;
    pwsp_moe_slice_count(s, 0);
    const ptowsp_status status = pwsp_moe_counts_check(s, &dropped, info);
    if (status == PTOWSP_OK) {
        pwsp_moe_offsets_write(s, dropped);
        pwsp_moe_slice_write(s, 0);
    }
    return status;
}

// Many experts: one slice, whose table is `offsets` of the order. Writing uses it up, so it is made
// again from the counts.
static ptowsp_status pwsp_moe_sort_large(const ptowsp_moe_routes *routes, ptowsp_moe_order *order,
                                         ptowsp_plan_info *info) {
    const pwsp_moe_sorter s = pwsp_moe_sorter_of(routes, order);
    const ptowsp_status status = pwsp_moe_sort_slice(&s, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    uint32_t row = 0;
    for (uint32_t e = 0; e < routes->expert_count; e++) {
        order->offsets[e] = row;
        row += (uint32_t)(pwsp_ceil_div_u64(order->counts[e], s.block_rows) * s.block_rows);
    }
    PTOWSP_ASSERT(row == order->row_count);
    return PTOWSP_OK;
}

static ptowsp_status pwsp_moe_sort_small(const ptowsp_moe_routes *routes, ptowsp_moe_order *order,
                                         ptowsp_plan_info *info) {
    uint32_t table[PWSP_MOE_TABLE_MAX + 1];
    pwsp_moe_sorter s = pwsp_moe_sorter_of(routes, order);
    s.tables = table;
    return pwsp_moe_sort_slice(&s, info);
}

uint64_t ptowsp_moe_row_bound(const ptowsp_moe_routes *routes) {
    if (!routes) {
        return 0;
    }
    const uint64_t pairs = (uint64_t)routes->token_count * routes->top_k;
    const uint64_t padded = pwsp_min_u64(pairs, routes->expert_count);
    return pwsp_sum_u64(pairs, routes->block_rows > 1 ? padded * (routes->block_rows - 1) : 0);
}

ptowsp_status ptowsp_moe_sort(const ptowsp_moe_routes *routes, ptowsp_moe_order *order,
                              ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_moe_routes_check(routes, info);
    if (status == PTOWSP_OK) {
        status = pwsp_moe_order_check(order, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    return routes->expert_count <= PWSP_MOE_TABLE_MAX ? pwsp_moe_sort_small(routes, order, info)
                                                      : pwsp_moe_sort_large(routes, order, info);
}

// -- lanes ----------------------------------------------------------------------------------------

static void pwsp_moe_slices_count(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    const pwsp_moe_sorter *s = (const pwsp_moe_sorter *)user;
    (void)lane;
    for (uint64_t slice = begin; slice < end; slice++) {
        pwsp_moe_slice_count(s, (uint32_t)slice);
    }
}

static void pwsp_moe_slices_write(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    const pwsp_moe_sorter *s = (const pwsp_moe_sorter *)user;
    (void)lane;
    for (uint64_t slice = begin; slice < end; slice++) {
        pwsp_moe_slice_write(s, (uint32_t)slice);
    }
}

static ptowsp_status pwsp_moe_sort_slices(ptowsp_context *context, pwsp_moe_sorter *s,
                                          ptowsp_plan_info *info) {
    ptowsp_status status =
        ptowsp_parallel_for(context, s->slice_count, 1, pwsp_moe_slices_count, s);
    if (status != PTOWSP_OK) {
        return status;
    }
    uint64_t dropped;
    status = pwsp_moe_counts_check(s, &dropped, info);
    if (status != PTOWSP_OK) {
        return pwsp_plan_report(context, status, info);
    }
    pwsp_moe_offsets_write(s, dropped);
    return ptowsp_parallel_for(context, s->slice_count, 1, pwsp_moe_slices_write, s);
}

ptowsp_status ptowsp_moe_sort_parallel(ptowsp_context *context, const ptowsp_moe_routes *routes,
                                       ptowsp_moe_order *order, uint32_t *scratch,
                                       uint64_t scratch_count, ptowsp_plan_info *out_info) {
    PTOWSP_ASSERT(context);
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_moe_routes_check(routes, info);
    if (status == PTOWSP_OK) {
        status = pwsp_moe_order_check(order, info);
    }
    if (status == PTOWSP_OK && !scratch && scratch_count > 0) {
        status = pwsp_moe_null(info, PWSP_MOE_IN_SCRATCH);
    }
    if (status != PTOWSP_OK) {
        return pwsp_plan_report(context, status, info);
    }
    pwsp_moe_sorter s = pwsp_moe_sorter_of(routes, order);
    const uint64_t table = (uint64_t)routes->expert_count + 1;
    const uint64_t lanes = ptowsp_context_lane_count(context);
    const uint64_t few =
        pwsp_min_u64(PWSP_MOE_LANE_SLICES * lanes, s.pair_count / (PWSP_MOE_SLICE_TABLES * table));
    const uint64_t slices = pwsp_min_u64(pwsp_max_u64(lanes, few), scratch_count / table);
    if (slices < 2 || s.pair_count < PTOWSP_MOE_SORT_PARALLEL_MIN) {
        status = ptowsp_moe_sort(routes, order, info);
        return status == PTOWSP_OK ? status : pwsp_plan_report(context, status, info);
    }
    s.slice_count = (uint32_t)slices;
    s.tables = scratch;
    return pwsp_moe_sort_slices(context, &s, info);
}
