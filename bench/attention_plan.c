// Attention plans, beside what else balances a decode step: times, and how well. Quality is the
// largest cost of a lane over the mean, in the cost of the plan, with all that splits cost.
//
//      tile scheduler   the rule of FlashMLA's scheduler metadata: each lane gets the same payload of
//                       blocks and of a fixed overhead per request, in a contiguous walk over
//                       (sequence, head). It gives begin and end of each lane, and no units
//      greedy heap      the longest tile first, to the lane with the least cost; no splits

#include "bench.h"

#include "common/lengths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lane_share {
    uint32_t begin, begin_block, end, end_block;  // request, block; end_block 0: none of `end`
} lane_share;

// Whole units of one sequence in a lane, or one part: what its first unit holds, and how many follow.
typedef struct unit_row {
    uint64_t words[3];
    uint32_t lane, count;  // 0: a part
} unit_row;

typedef struct attention_bench {
    int32_t *lengths, *queries;
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_plan plan;
    void *block;
    ptowsp_work *copy;
    uint64_t bytes;
    // The cut, as it is known: rows of units, and what else the plan has.
    unit_row *rows;
    uint32_t row_count;
    ptowsp_attention_plan known;
    void *known_block;
    // The others.
    lane_share *shares;
    uint32_t *order, *heap;
    double *loads;
    uint32_t step;
} attention_bench;

enum { OVERHEAD_BLOCKS = 5, BLOCK = 16, PLAN_ROUNDS = 41 };

static void attention_plan_once(void *user) {
    attention_bench *b = (attention_bench *)user;
    require(ptowsp_attention_generate(&b->batch, &b->config, &b->plan, NULL) == PTOWSP_OK, "plan");
    bench_keep(b->plan.units);
}

static void attention_copy(void *user) {
    attention_bench *b = (attention_bench *)user;
    memcpy(b->copy, b->plan.units, b->plan.unit_count * sizeof *b->copy);
    bench_keep(b->copy);
}

// Keeps the plan as rows of units, and its lists.
static void attention_cut_keep(attention_bench *b) {
    const ptowsp_work *units = b->plan.units;
    uint32_t lane = 0;
    b->row_count = 0;
    for (uint32_t i = 0; i < b->plan.unit_count; i++) {
        const bool is_whole = ptowsp_work_is_whole(&units[i]);
        unit_row *row = b->row_count > 0 ? &b->rows[b->row_count - 1] : NULL;
        for (; i >= b->plan.unit_begin[lane + 1]; row = NULL) {
            lane++;
        }
        if (is_whole && row && row->count > 0 && units[i].params[0] == units[i - 1].params[0]) {
            row->count++;
            continue;
        }
        row = &b->rows[b->row_count++];
        memcpy(row->words, &units[i], sizeof row->words);
        row->lane = lane;
        row->count = is_whole;
    }
    memcpy(b->known_block, b->block, b->bytes);
}

// What a plan cannot do without: its units and lists are written, from a cut that is known. Rows are
// written by eights, as far as that is less than one by one.
static void attention_cut_write(void *user) {
    typedef uint64_t pair __attribute__((vector_size(16)));
    attention_bench *b = (attention_bench *)user;
    const bool is_wide = b->config.kv_head_count > 2;
    const uint64_t head = UINT64_C(1) << 32;
    char *unit = (char *)b->plan.units, *begin = unit;
    uint32_t lane = 0;
    for (uint32_t r = 0; r <= b->row_count; r++) {
        const unit_row *row = &b->rows[r];
        for (const uint32_t to = r < b->row_count ? row->lane : b->config.lane_count; lane < to;) {
            b->plan.lane_costs[lane] = b->known.lane_costs[lane];
            lane++;
            b->plan.unit_begin[lane] = (uint32_t)((unit - begin) / (ptrdiff_t)sizeof(ptowsp_work));
            b->plan.merge_begin[lane] = b->known.merge_begin[lane];
        }
        if (r == b->row_count || row->count == 0 || !is_wide) {
            uint64_t words[3] = {row->words[0], row->words[1], row->words[2]};
            const uint32_t count = r == b->row_count ? 0 : row->count > 0 ? row->count : 1;
            for (uint32_t i = 0; i < count; i++, words[1] += head) {
                memcpy(unit, words, sizeof words);
                unit += sizeof words;
            }
            continue;
        }
        pair first = {row->words[0], row->words[1]}, third = {row->words[1] + head, row->words[2]};
        const pair second = {row->words[2], row->words[0]};
        const pair step = {0, 2 * head}, step_third = {2 * head, 0};
        for (uint32_t i = 0; i < row->count; i += 8) {
#pragma GCC unroll 4
            for (uint32_t k = 0; k < 4; k++) {
                memcpy(unit + 24 * i + 48 * k, &first, 16);
                memcpy(unit + 24 * i + 48 * k + 16, &second, 16);
                memcpy(unit + 24 * i + 48 * k + 32, &third, 16);
                first += step;
                third += step_third;
            }
        }
        unit += row->count * sizeof(ptowsp_work);
    }
    for (uint32_t i = 0; i < b->plan.merge_count; i++) {
        b->plan.merges[i] = b->known.merges[i];
    }
    bench_keep(b->plan.units);
}

// -- the others -----------------------------------------------------------------------------------

static uint32_t blocks_of(const attention_bench *b, uint32_t request) {
    const uint32_t heads = b->config.kv_head_count;
    return ((uint32_t)b->lengths[request / heads] + BLOCK - 1) / BLOCK;
}

static void tile_scheduler(void *user) {
    attention_bench *b = (attention_bench *)user;
    const uint32_t heads = b->config.kv_head_count, lanes = b->config.lane_count;
    const uint32_t requests = b->batch.sequence_count * heads;
    uint64_t total = 0;
    for (uint32_t s = 0; s < b->batch.sequence_count; s++) {
        total += (uint64_t)heads * (blocks_of(b, s * heads) + OVERHEAD_BLOCKS);
    }
    const uint64_t payload = (total + lanes - 1) / lanes + OVERHEAD_BLOCKS;
    uint32_t request = 0, block = 0;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        lane_share share = {request, block, request, block};
        uint64_t room = payload;
        while (request < requests) {
            const uint32_t left = blocks_of(b, request) - block;
            if (room >= (uint64_t)left + OVERHEAD_BLOCKS) {
                room -= (uint64_t)left + OVERHEAD_BLOCKS;
                request++;
                block = 0;
            } else {
                if (room > OVERHEAD_BLOCKS) {
                    block += (uint32_t)(room - OVERHEAD_BLOCKS);
                }
                break;
            }
        }
        share.end = request;
        share.end_block = block;
        b->shares[lane] = share;
    }
    bench_keep(b->shares);
}

static const attention_bench *sorted_bench;

static int compare_lengths(const void *x, const void *y) {
    const int32_t a = sorted_bench->lengths[*(const uint32_t *)x];
    const int32_t c = sorted_bench->lengths[*(const uint32_t *)y];
    return (a < c) - (a > c);
}

static double tile_cost(const attention_bench *b, uint32_t sequence) {
    const double group = b->config.group;
    return 64 + b->lengths[sequence] * (1 + group / 64);
}

static void greedy_heap(void *user) {
    attention_bench *b = (attention_bench *)user;
    const uint32_t lanes = b->config.lane_count;
    for (uint32_t i = 0; i < b->batch.sequence_count; i++) {
        b->order[i] = i;
    }
    sorted_bench = b;
    qsort(b->order, b->batch.sequence_count, sizeof *b->order, compare_lengths);
    for (uint32_t l = 0; l < lanes; l++) {
        b->heap[l] = l;
        b->loads[l] = 0;
    }
    for (uint32_t i = 0; i < b->batch.sequence_count; i++) {
        for (uint32_t h = 0; h < b->config.kv_head_count; h++) {
            const uint32_t lane = b->heap[0];
            b->loads[lane] += tile_cost(b, b->order[i]);
            uint32_t at = 0;
            for (;;) {  // down the heap
                uint32_t child = 2 * at + 1;
                if (child >= lanes) {
                    break;
                }
                if (child + 1 < lanes && b->loads[b->heap[child + 1]] < b->loads[b->heap[child]]) {
                    child++;
                }
                if (b->loads[b->heap[child]] >= b->loads[lane]) {
                    break;
                }
                b->heap[at] = b->heap[child];
                at = child;
            }
            b->heap[at] = lane;
        }
    }
    bench_keep(b->loads);
}

static double ratio_of_loads(const attention_bench *b) {
    double max = 0, sum = 0;
    for (uint32_t l = 0; l < b->config.lane_count; l++) {
        max = b->loads[l] > max ? b->loads[l] : max;
        sum += b->loads[l];
    }
    return max / (sum / b->config.lane_count);
}

// The loads that the shares of the tile scheduler make; the merge goes to the lane of the first part.
static double shares_ratio(attention_bench *b, uint32_t *out_extra, uint32_t *out_slots) {
    const double group = b->config.group, rate = 1 + group / 64;
    const uint32_t heads = b->config.kv_head_count;
    *out_extra = *out_slots = 0;
    uint32_t merge_lane = 0;
    for (uint32_t l = 0; l < b->config.lane_count; l++) {
        const lane_share *s = &b->shares[l];
        b->loads[l] = 0;
        for (uint32_t r = s->begin; r < b->batch.sequence_count * heads && r <= s->end; r++) {
            const int64_t length = b->lengths[r / heads];
            int64_t from = r == s->begin ? (int64_t)s->begin_block * BLOCK : 0;
            int64_t end = r == s->end ? (int64_t)s->end_block * BLOCK : length;
            end = end < length ? end : length;
            if (end <= from) {
                continue;
            }
            b->loads[l] += 64 + (double)(end - from) * rate;
            if (from > 0 || end < length) {
                merge_lane = from == 0 ? l : merge_lane;
                b->loads[merge_lane] += group;
                *out_slots += 1;
                *out_extra += from > 0;
            }
        }
    }
    return ratio_of_loads(b);
}

// -- rows -----------------------------------------------------------------------------------------

static void attention_report(const char *name, const char *what, const char *unit, double value,
                             const char *other, double other_value, double ratio,
                             const char *budget, bool is_met) {
    char title[64];
    snprintf(title, sizeof title, "%s, %s", name, what);
    const bench_row row = {title, unit,   value,          other, other_value,
                           ratio, budget, budget[0] != 0, is_met};
    report(row);
}

static void attention_others(attention_bench *b, const char *name, double own_us) {
    const double ratio = b->plan.cost_max / b->plan.cost_mean;
    bench_times t = measure(attention_plan_once, tile_scheduler, b, 5, PLAN_ROUNDS);
    uint32_t extra, slots;
    attention_report(name, "time", "us", own_us, "tile scheduler", t.other_ns / 1e3, t.ratio, "",
                     false);
    const double theirs = shares_ratio(b, &extra, &slots);
    attention_report(name, "largest / mean", "", ratio, "tile scheduler", theirs, ratio / theirs,
                     "", false);
    attention_report(name, "extra units", "", b->plan.unit_count - b->plan.tile_count,
                     "tile scheduler", extra,
                     (b->plan.unit_count - b->plan.tile_count) / (extra + 1e-9), "", false);
    attention_report(name, "slots", "", b->plan.slot_count, "tile scheduler", slots,
                     b->plan.slot_count / (slots + 1e-9), "", false);
    t = measure(attention_plan_once, greedy_heap, b, 1, 11);
    attention_report(name, "time", "us", t.own_ns / 1e3, "greedy heap", t.other_ns / 1e3, t.ratio,
                     "", false);
    const double greedy = ratio_of_loads(b);
    attention_report(name, "largest / mean", "", ratio, "greedy heap", greedy, ratio / greedy, "",
                     false);
}

// The time of planning beside memcpy of the units; of decode steps beside that of writing alone, too.
static void attention_time_report(attention_bench *b, const char *name, bench_times t,
                                  const char *budget, bool is_met) {
    char title[64];
    snprintf(title, sizeof title, "%s, time", name);
    const bench_row row = {
        title,  "us",           t.own_ns / 1e3, "memcpy of the units", t.other_ns / 1e3, t.ratio,
        budget, budget[0] != 0, is_met};
    if (b->batch.query_lengths) {
        report(row);
        return;
    }
    attention_plan_once(b);
    attention_cut_keep(b);
    memset(b->plan.units, 0, b->plan.unit_count * sizeof *b->plan.units);
    attention_cut_write(b);
    const ptowsp_attention_plan *plan = &b->plan, *known = &b->known;
    const size_t lanes = b->config.lane_count;
    require(memcmp(plan->units, known->units, plan->unit_count * sizeof *plan->units) == 0 &&
                memcmp(plan->merges, known->merges, plan->merge_count * sizeof *plan->merges) ==
                    0 &&
                memcmp(plan->unit_begin, known->unit_begin, (lanes + 1) * 4) == 0 &&
                memcmp(plan->merge_begin, known->merge_begin, (lanes + 1) * 4) == 0 &&
                memcmp(plan->lane_costs, known->lane_costs, lanes * sizeof(double)) == 0,
            "a known cut is another plan");
    const bench_times alone = measure(attention_cut_write, attention_plan_once, b, 5, PLAN_ROUNDS);
    const bench_limit limit = {"units and lists of a known cut", alone.own_ns / 1e3, alone.ratio};
    report_beside_limit(row, limit);
}

// `extra_us` more than memcpy is the budget, if not 0; `most` that of the quality.
static void attention_case(attention_bench *b, const char *name, double extra_us,
                           const char *budget, double most, const char *most_text) {
    ptowsp_attention_sizes sizes;
    require(ptowsp_attention_size(&b->batch, &b->config, &sizes, NULL) == PTOWSP_OK, "size");
    // Room for any plan of such a batch.
    sizes.unit_count += b->config.lane_count;
    sizes.merge_count = b->config.lane_count;
    sizes.slot_count = 2 * b->config.lane_count;
    b->bytes = 24 * (sizes.unit_count + sizes.merge_count) + 16 * (b->config.lane_count + 1);
    b->block = calloc(1, b->bytes);
    b->copy = (ptowsp_work *)calloc(sizes.unit_count, sizeof *b->copy);
    b->shares = (lane_share *)calloc(b->config.lane_count, sizeof *b->shares);
    b->order = (uint32_t *)calloc(b->batch.sequence_count, sizeof *b->order);
    b->heap = (uint32_t *)calloc(b->config.lane_count, sizeof *b->heap);
    b->loads = (double *)calloc(b->config.lane_count, sizeof *b->loads);
    b->rows = (unit_row *)calloc(sizes.unit_count + 1, sizeof *b->rows);
    b->known_block = calloc(1, b->bytes);
    require(b->rows && b->known_block, "memory");
    require(b->block && b->copy && b->shares && b->order && b->heap && b->loads, "memory");
    require(ptowsp_attention_place(&sizes, b->block, b->bytes, &b->plan) == PTOWSP_OK, "place");
    require(ptowsp_attention_place(&sizes, b->known_block, b->bytes, &b->known) == PTOWSP_OK,
            "place");

    bench_times t = measure(attention_plan_once, attention_copy, b, 5, PLAN_ROUNDS);
    const double own_us = t.own_ns / 1e3;
    attention_time_report(b, name, t, budget, t.own_ns - t.other_ns <= extra_us * 1e3);
    attention_report(name, "largest / mean", "", b->plan.cost_max / b->plan.cost_mean, "none", 1,
                     b->plan.cost_max / b->plan.cost_mean, most_text,
                     b->plan.cost_max / b->plan.cost_mean <= most);
    if (!b->batch.query_lengths) {
        attention_others(b, name, own_us);
    }
    free(b->block);
    free(b->known_block);
    free(b->rows);
    free(b->copy);
    free(b->shares);
    free(b->order);
    free(b->heap);
    free(b->loads);
}

void bench_attention_plan(void) {
    enum { MOST = 10000 };
    attention_bench b;
    memset(&b, 0, sizeof b);
    b.lengths = (int32_t *)calloc(MOST, sizeof *b.lengths);
    b.queries = (int32_t *)calloc(MOST, sizeof *b.queries);
    require(b.lengths && b.queries, "memory");
    lengths_generate(1, MOST, b.lengths);
    b.batch.kv_lengths = b.lengths;
    b.config.page_size = BLOCK;
    b.config.lane_count = 264;
    b.config.kv_head_count = 8;
    b.config.group = 4;
    b.batch.sequence_count = 256;
    attention_case(&b, "attention plan, 256 x 8", 2, "2 us + memcpy", 1.003, "1.003");
    b.batch.sequence_count = MOST;
    attention_case(&b, "attention plan, 10,000 x 8", 25, "25 us + memcpy", 1.001, "1.001");
    b.batch.sequence_count = 4096;
    b.config.kv_head_count = 1;
    b.config.group = 128;
    attention_case(&b, "attention plan, 4,096 x 1 MLA", 0, "", 1.003, "1.003");
    b.batch.sequence_count = 64;
    b.batch.query_lengths = b.queries;
    b.config.kv_head_count = 8;
    b.config.group = 4;
    b.config.is_causal = true;
    for (uint32_t i = 0; i < 64; i++) {
        b.lengths[i] = b.queries[i] = 8192;
    }
    attention_case(&b, "attention plan, prefill 64 x 8,192", 0, "", 1.003, "1.003");
    // One rank of two, which has every second token.
    int32_t *rank = (int32_t *)calloc(64, sizeof *rank),
            *ranks = (int32_t *)calloc(64, sizeof *ranks);
    require(rank && ranks, "memory");
    for (uint32_t i = 0; i < 64; i++) {
        ranks[i] = 2;
    }
    const ptowsp_attention_positions positions = {64, rank, ranks, rank, ranks, NULL, NULL, NULL};
    b.config.positions = &positions;
    attention_case(&b, "attention plan, the same by positions", 0, "", 1.003, "1.003");
    free(rank);
    free(ranks);
    free(b.lengths);
    free(b.queries);
}
