// Sorting the pairs of routes by expert: a counting sort, whose result is unique, as it is stable.
//
// Pairs are divided into slices of neighbouring tokens, one for each lane. Each slice counts its
// experts in a table of its own; a pair's rank is what its expert's counter was before. Sums over
// experts, and over the slices of an expert, make of the tables the first row of each expert in each
// slice:
//
//      counts     slice 0   2 0 1     first   slice 0   0 5 6
//                 slice 1   3 1 0             slice 1   2 5 7
//
//      row = first + rank
//
// Ranks are kept in `rows` of the order until then, so that pairs are written without counting again;
// without `rows` they are counted a second time. With AVX-512 the counters of one token's experts
// advance together, as these differ. Where a token has an expert twice a count gets lost: the sum of
// all counts shows it, and the slice is counted again one by one. 32,768 pairs of 256 experts take
// 0.57 of the time of a plain counting sort; a half of it is the scattered writing of pairs.
//
// Tables of few experts are on the stack; so all but ranks is checked before anything is written.
//
// The last counter of a table is of the ids that are no experts: dropped, or out of range.

#include "moe.h"

#include "../base/context.h"
#include "../base/cpu.h"

#define PWSP_MOE_TABLE_MAX 512  // experts of tables on the stack: 2 KiB

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
        return pwsp_moe_null(info, 0);
    }
    if (routes->top_k == 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_TOP_K_RANGE, PTOWSP_NO_INDEX, 0, UINT32_MAX);
    }
    if (!pwsp_moe_expert_count_is_valid(routes->expert_count)) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_EXPERTS_COUNT, PTOWSP_NO_INDEX,
                              routes->expert_count, PTOWSP_MOE_EXPERT_MAX);
    }
    const uint64_t pairs = (uint64_t)routes->token_count * routes->top_k;
    if (pairs > PWSP_MOE_ROW_MAX) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_PAIRS_EXCEEDED, PTOWSP_NO_INDEX,
                              pwsp_info_value(pairs), PWSP_MOE_ROW_MAX);
    }
    return routes->ids || pairs == 0 ? PTOWSP_OK : pwsp_moe_null(info, 1);
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
        return pwsp_plan_fail(info, PTOWSP_FAULT_OUT_NULL, PTOWSP_NO_INDEX, 0, 0);
    }
    const bool is_there[3] = {order->counts != NULL, order->offsets != NULL,
                              order->pairs || order->row_capacity == 0};
    for (uint32_t i = 0; i < 3; i++) {
        if (!is_there[i]) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_PLAN_ARRAY, i, 0, 0);
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
// Without optimisation gcc's gathers and scatters are macros, which convert masks.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

// Counts `count` ids of whole tokens with `width` experts each (at most 8, or 8 of them at a time),
// and writes their ranks. False if a count got lost, as a token has an expert twice.
PWSP_AVX512 static bool pwsp_moe_rank_avx512(const int32_t *ids, uint64_t count, uint32_t width,
                                             uint32_t experts, uint32_t *table, uint32_t *ranks) {
    const __mmask8 all = (__mmask8)((1u << width) - 1);
    const __m256i one = _mm256_set1_epi32(1), end = _mm256_set1_epi32((int)experts);
    uint64_t counted = 0;
    PTOWSP_ASSERT(0 < width && width <= 8 && count % width == 0);
    for (uint64_t i = 0; i < count; i += width) {
        const __m256i id = _mm256_maskz_loadu_epi32(all, ids + i);
        const __mmask8 used = _mm256_mask_cmplt_epu32_mask(all, id, end);
        const __m256i rank =
            _mm256_mmask_i32gather_epi32(_mm256_setzero_si256(), used, id, (const int *)table, 4);
        _mm256_mask_storeu_epi32(ranks + i, all, rank);
        _mm256_mask_i32scatter_epi32(table, used, id, _mm256_add_epi32(rank, one), 4);
        if (used != all) {
            table[experts] += width - (uint32_t)__builtin_popcount(used);
        }
    }
    for (uint32_t e = 0; e <= experts; e++) {
        counted += table[e];
    }
    PTOWSP_ASSERT(counted <= count);
    return counted == count;
}

// Makes rows of the ranks of pairs [begin, end), and writes the pairs. Rows are below 2^31.
PWSP_AVX512 static void pwsp_moe_rows_avx512(const pwsp_moe_sorter *s, const uint32_t *first,
                                             uint64_t begin, uint64_t end) {
    const __m512i experts = _mm512_set1_epi32((int)s->routes->expert_count);
    const __m512i steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint32_t *rows = s->order->rows;
    for (uint64_t i = begin; i < end; i += 16) {
        const __mmask16 all = (__mmask16)(end - i < 16 ? (1u << (end - i)) - 1 : 0xffff);
        const __m512i id = _mm512_maskz_loadu_epi32(all, s->routes->ids + i);
        const __mmask16 used = _mm512_mask_cmplt_epu32_mask(all, id, experts);
        const __m512i rank = _mm512_maskz_loadu_epi32(all, rows + i);
        const __m512i none = _mm512_set1_epi32((int)PTOWSP_MOE_NO_ROW);
        const __m512i at = _mm512_mask_i32gather_epi32(none, used, id, (const int *)first, 4);
        const __m512i row = _mm512_mask_add_epi32(none, used, at, rank);
        const __m512i pair = _mm512_add_epi32(_mm512_set1_epi32((int)(uint32_t)i), steps);
        _mm512_mask_storeu_epi32(rows + i, all, row);
        _mm512_mask_i32scatter_epi32(s->order->pairs, used, row, pair, 4);
    }
}

#pragma GCC diagnostic pop

// The experts of a token that are counted together; 0: one by one.
static uint32_t pwsp_moe_width(const ptowsp_moe_routes *routes) {
    const uint32_t k = routes->top_k;
    const uint32_t width = k <= 8 ? k : k % 8 == 0 ? 8 : 0;
    return width >= 4 && pwsp_cpu_has_avx512() ? width : 0;
}
#endif

static void pwsp_moe_slice_count(const pwsp_moe_sorter *s, uint32_t slice) {
    const PTOWSP_GM int32_t *ids = s->routes->ids;
    const uint32_t experts = s->routes->expert_count;
    const uint64_t begin = pwsp_moe_slice_begin(s, slice);
    const uint64_t end = pwsp_moe_slice_begin(s, slice + 1);
    PTOWSP_GM uint32_t *ranks = s->order->rows;
    uint32_t *table = pwsp_moe_table(s, slice);
    memset(table, 0, (experts + 1) * sizeof *table);
    if (!ranks) {
        for (uint64_t i = begin; i < end; i++) {
            table[pwsp_moe_slot_of(ids[i], experts)]++;
        }
        return;
    }
#if PWSP_X86
    const uint32_t width = pwsp_moe_width(s->routes);
    if (width > 0 && begin < end) {
        if (pwsp_moe_rank_avx512(ids + begin, end - begin, width, experts, table, ranks + begin)) {
            return;
        }
        memset(table, 0, (experts + 1) * sizeof *table);
    }
#endif
    for (uint64_t i = begin; i < end; i++) {
        ranks[i] = table[pwsp_moe_slot_of(ids[i], experts)]++;
    }
}

static void pwsp_moe_slice_write(const pwsp_moe_sorter *s, uint32_t slice) {
    const PTOWSP_GM int32_t *ids = s->routes->ids;
    const uint32_t experts = s->routes->expert_count;
    const uint64_t begin = pwsp_moe_slice_begin(s, slice);
    const uint64_t end = pwsp_moe_slice_begin(s, slice + 1);
    PTOWSP_GM uint32_t *pairs = s->order->pairs, *rows = s->order->rows;
    uint32_t *first = pwsp_moe_table(s, slice);
#if PWSP_X86
    if (rows && s->order->row_count <= INT32_MAX && pwsp_cpu_has_avx512()) {
        pwsp_moe_rows_avx512(s, first, begin, end);
        return;
    }
#endif
    for (uint64_t i = begin; i < end; i++) {
        uint32_t row = PTOWSP_MOE_NO_ROW;
        if (pwsp_moe_slot_of(ids[i], experts) < experts) {
            row = rows ? first[ids[i]] + rows[i] : first[ids[i]]++;
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
        return pwsp_plan_fail(info, PTOWSP_FAULT_PAIRS_EXCEEDED, PTOWSP_NO_INDEX,
                              pwsp_info_value(rows), PWSP_MOE_ROW_MAX);
    }
    if (rows > s->order->row_capacity) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_ROWS_SMALL, PTOWSP_NO_INDEX, (int64_t)rows,
                              s->order->row_capacity);
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

// Many experts: one slice, whose table is `offsets` of the order. Writing without `rows` uses it up,
// so it is made again from the counts.
static ptowsp_status pwsp_moe_sort_large(const ptowsp_moe_routes *routes, ptowsp_moe_order *order,
                                         ptowsp_plan_info *info) {
    const pwsp_moe_sorter s = pwsp_moe_sorter_of(routes, order);
    uint64_t dropped;
    pwsp_moe_slice_count(&s, 0);
    ptowsp_status status = pwsp_moe_counts_check(&s, &dropped, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_moe_offsets_write(&s, dropped);
    pwsp_moe_slice_write(&s, 0);
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
    uint64_t dropped;
    s.tables = table;
    pwsp_moe_slice_count(&s, 0);
    ptowsp_status status = pwsp_moe_counts_check(&s, &dropped, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_moe_offsets_write(&s, dropped);
    pwsp_moe_slice_write(&s, 0);
    return PTOWSP_OK;
}

uint64_t ptowsp_moe_row_bound(const ptowsp_moe_routes *routes) {
    PTOWSP_ASSERT(routes);
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

// The fault of the info as the context's last error.
static ptowsp_status pwsp_moe_context_fail(ptowsp_context *context, ptowsp_status status,
                                           const ptowsp_plan_info *info) {
    char line[160];
    ptowsp_text_buffer buffer = {line, sizeof line, 0};
    ptowsp_plan_explain(info, ptowsp_text_to_buffer(&buffer));
    return pwsp_fail(context, status, info->index, "%s", line);
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
        return pwsp_moe_context_fail(context, status, info);
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
        status = pwsp_moe_null(info, 2);
    }
    if (status != PTOWSP_OK) {
        return pwsp_moe_context_fail(context, status, info);
    }
    pwsp_moe_sorter s = pwsp_moe_sorter_of(routes, order);
    const uint64_t slices = pwsp_min_u64(ptowsp_context_lane_count(context),
                                         scratch_count / ((uint64_t)routes->expert_count + 1));
    if (slices < 2 || s.pair_count < PTOWSP_MOE_SORT_PARALLEL_MIN) {
        status = ptowsp_moe_sort(routes, order, info);
        return status == PTOWSP_OK ? status : pwsp_moe_context_fail(context, status, info);
    }
    s.slice_count = (uint32_t)slices;
    s.tables = scratch;
    return pwsp_moe_sort_slices(context, &s, info);
}
