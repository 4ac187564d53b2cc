// Positions: the KV tokens that a query token sees, and the tiles made of them.
//
// Queries and KV tokens of a sequence stand on one line, each at equal distances:
//
//      KV        kv_first            + kv_stride       + kv_stride ...
//      queries              query_first    + query_stride ...
//      sees                 [position - before, position + after]
//
// so a query sees a range of KV tokens, and both of its ends only grow from query to query. A
// tile is the range from the first begin to the last end. Sinks are a range of their own, at the
// beginning, until the window reaches them.
//
// A tile with a gap after its sinks is planned as if they lay directly in front of its window:
//
//      tokens       [0, sinks)      gap      [begin + sinks, end)
//      the tile               [begin, begin + sinks)[begin + sinks, end)
//
// so costs, cuts and shares know nothing of gaps, and only the first piece is written otherwise. In
// INVARIANT mode the sinks are that piece, with a gap or without one.

#include "attention.h"

#define PWSP_POSITION_ALL (INT64_C(1) << 33)  // beyond all distances of positions

// The line of a sequence.
typedef struct pwsp_position_line {
    int64_t query_first, query_stride, kv_first, kv_stride, before, after;
    uint32_t kv, sinks;
} pwsp_position_line;

static int64_t pwsp_position_of(const PTOWSP_GM int32_t *array, uint32_t sequence,
                                int64_t standard) {
    return array ? array[sequence] : standard;
}

static int64_t pwsp_position_reach(const PTOWSP_GM uint32_t *array, uint32_t sequence,
                                   int64_t standard) {
    if (!array) {
        return standard;
    }
    return array[sequence] <= INT32_MAX ? (int64_t)array[sequence] : PWSP_POSITION_ALL;
}

// Strides that were not checked are 1 at least.
static int64_t pwsp_position_stride(const PTOWSP_GM int32_t *array, uint32_t sequence) {
    const int64_t stride = pwsp_position_of(array, sequence, 1);
    return stride > 0 ? stride : 1;
}

// Strides, and positions of KV, are nothing without the positions of queries.
PWSP_INTERNAL const ptowsp_attention_positions *pwsp_positions_of(
    const ptowsp_attention_config *config) {
    const ptowsp_attention_positions *p = config->positions;
    return p && (p->query_first || p->before || p->after || p->sinks) ? p : NULL;
}

static pwsp_position_line pwsp_position_line_of(const ptowsp_attention_config *config, int64_t kv,
                                                int64_t queries, uint32_t sequence) {
    const uint32_t window = config->window <= INT32_MAX ? config->window : 0;
    const int64_t before = window > 0 ? (int64_t)window - 1 : PWSP_POSITION_ALL;
    const int64_t after = config->is_causal ? 0 : PWSP_POSITION_ALL;
    const ptowsp_attention_positions *p = pwsp_positions_of(config);
    pwsp_position_line line = {kv - queries, 1, 0, 1, before, after, (uint32_t)kv, 0};
    if (p) {
        const int64_t sinks = pwsp_position_of(p->sinks, sequence, 0);
        line.query_first = pwsp_position_of(p->query_first, sequence, kv - queries);
        line.query_stride = pwsp_position_stride(p->query_stride, sequence);
        line.kv_first = pwsp_position_of(p->kv_first, sequence, 0);
        line.kv_stride = pwsp_position_stride(p->kv_stride, sequence);
        line.before = pwsp_position_reach(p->before, sequence, before);
        line.after = pwsp_position_reach(p->after, sequence, after);
        line.sinks = sinks > 0 ? (uint32_t)sinks : 0;
    }
    return line;
}

// -- tokens seen ----------------------------------------------------------------------------------

// The KV tokens that stand in front of a position.
static uint32_t pwsp_position_count(const pwsp_position_line *line, int64_t position) {
    const int64_t distance = position - line->kv_first;
    if (distance <= 0) {
        return 0;
    }
    if (distance >= line->kv * line->kv_stride) {
        return line->kv;
    }
    return (uint32_t)(line->kv_stride == 1 ? distance : (distance - 1) / line->kv_stride + 1);
}

// The KV tokens from the begin of the window of query token `first` to its end for query token `last`,
// and the sinks, if they lie apart: then the first sees all of them, as its window begins after them.
static ptowsp_attention_seen pwsp_position_see(const pwsp_position_line *line, uint32_t first,
                                               uint32_t last) {
    const int64_t from = line->query_first + first * line->query_stride;
    const int64_t to = line->query_first + last * line->query_stride;
    ptowsp_attention_seen seen;
    seen.begin = pwsp_position_count(line, from - line->before);
    seen.end = pwsp_position_count(line, to + line->after + 1);
    seen.sinks = line->sinks < seen.end ? line->sinks : seen.end;
    if (seen.begin <= seen.sinks) {
        seen.begin = seen.sinks = 0;
    }
    PTOWSP_ASSERT(seen.sinks <= seen.begin && seen.begin <= seen.end);
    return seen;
}

ptowsp_attention_seen ptowsp_attention_see(const ptowsp_attention_batch *batch,
                                           const ptowsp_attention_config *config, uint32_t sequence,
                                           uint32_t query) {
    const ptowsp_attention_seen none = {0, 0, 0};
    if (!batch || !config || !batch->kv_lengths || sequence >= batch->sequence_count) {
        return none;
    }
    const ptowsp_attention_positions *p = pwsp_positions_of(config);
    if (p && sequence >= p->sequence_count) {
        return none;
    }
    const int64_t kv = batch->kv_lengths[sequence];
    const int64_t queries = batch->query_lengths ? batch->query_lengths[sequence] : 1;
    if (kv <= 0 || query >= queries) {
        return none;
    }
    const pwsp_position_line line = pwsp_position_line_of(config, kv, queries, sequence);
    return pwsp_position_see(&line, query, query);
}

PWSP_INTERNAL pwsp_position_place pwsp_position_place_of(const ptowsp_attention_batch *batch,
                                                         const ptowsp_attention_config *config,
                                                         uint32_t sequence, uint32_t query) {
    const int64_t queries = batch->query_lengths ? batch->query_lengths[sequence] : 1;
    const pwsp_position_line line =
        pwsp_position_line_of(config, batch->kv_lengths[sequence], queries, sequence);
    const int64_t position = line.query_first + query * line.query_stride;
    const pwsp_position_place place = {(double)(position - line.kv_first) / (double)line.kv_stride,
                                       (float)line.kv_stride};
    return place;
}

// -- tiles ----------------------------------------------------------------------------------------

// A tile that sees nothing is planned as one sink without a cost: it has one piece.
static void pwsp_tile_empty(pwsp_query_tile *tile) {
    tile->begin = 0;
    tile->end = tile->sinks = 1;
    tile->rate = 0;
    tile->is_empty = true;
}

PWSP_INTERNAL pwsp_query_tile pwsp_position_tile_at(const pwsp_attention *a, uint32_t sequence,
                                                    uint32_t index) {
    const uint32_t queries = pwsp_query_length(a, sequence), before = index * a->tile_tokens;
    const uint32_t left = queries - before, tokens = left < a->tile_tokens ? left : a->tile_tokens;
    const pwsp_position_line line =
        pwsp_position_line_of(&a->config, a->kv_lengths[sequence], queries, sequence);
    const ptowsp_attention_seen seen = pwsp_position_see(&line, before, before + tokens - 1);
    uint64_t sinks = seen.sinks, begin = seen.begin, end = seen.end;
    if (begin == end) {  // the window is empty
        begin = 0;
        end = sinks;
        sinks = 0;
    }
    if (pwsp_attention_cuts_chunks(a)) {
        const bool has_cut = line.sinks > 0 && line.before < PWSP_POSITION_ALL;
        const uint64_t cut = has_cut ? pwsp_ceil_div_u64(line.sinks, a->grain) * a->grain : 0;
        sinks = pwsp_min_u64(cut, end);
        begin = pwsp_max_u64(begin / a->grain * a->grain, sinks);
    }
    pwsp_query_tile tile;
    tile.rows = tokens * a->config.group;
    tile.is_slotted = false;
    tile.is_empty = false;
    tile.begin = (uint32_t)(begin - sinks);
    tile.end = (uint32_t)end;
    tile.sinks = (uint32_t)sinks;
    tile.rate = pwsp_tile_rate(a, tile.rows);
    if (end == 0) {
        pwsp_tile_empty(&tile);
    }
    PTOWSP_ASSERT(tokens > 0 && tile.begin < tile.end);
    return tile;
}

// -- checks ---------------------------------------------------------------------------------------

// Arrays that are nothing without the positions of queries; else a fault of a combination.
PWSP_INTERNAL ptowsp_status pwsp_positions_configure(ptowsp_attention_config *config,
                                                     ptowsp_plan_info *info) {
    const ptowsp_attention_positions *p = config->positions;
    if (!p) {
        return PTOWSP_OK;
    }
    const bool are_there[3] = {p->query_stride != NULL, p->kv_first != NULL, p->kv_stride != NULL};
    for (uint32_t i = 0; i < 3 && !p->query_first; i++) {
        if (are_there[i]) {
            return PWSP_PLAN_FAIL(info, POSITIONS_ALONE, i + 1, 0);
        }
    }
    if (p->after && config->is_causal) {
        return PWSP_PLAN_FAIL(info, POSITIONS_AFTER, 0, 0);
    }
    config->positions = pwsp_positions_of(config);
    return PTOWSP_OK;
}

// Checks `count` positions of a sequence: of its queries, or of its KV.
static ptowsp_status pwsp_positions_line_check(const PTOWSP_GM int32_t *firsts,
                                               const PTOWSP_GM int32_t *strides, bool is_kv,
                                               int64_t count, uint32_t sequence,
                                               ptowsp_plan_info *info) {
    const int64_t first = pwsp_position_of(firsts, sequence, 0);
    const int64_t stride = pwsp_position_of(strides, sequence, 1);
    if (first < 0) {
        return pwsp_plan_fail(info, is_kv ? PTOWSP_FAULT_KV_FIRST : PTOWSP_FAULT_QUERY_FIRST,
                              sequence, first, 0);
    }
    if (stride < 1) {
        return pwsp_plan_fail(info, is_kv ? PTOWSP_FAULT_KV_STRIDE : PTOWSP_FAULT_QUERY_STRIDE,
                              sequence, stride, 1);
    }
    const int64_t last = first + (count - 1) * stride;
    return last <= INT32_MAX
               ? PTOWSP_OK
               : pwsp_plan_fail(info, is_kv ? PTOWSP_FAULT_KV_LARGE : PTOWSP_FAULT_QUERY_LARGE,
                                sequence, last, INT32_MAX);
}

PWSP_INTERNAL ptowsp_status pwsp_positions_check(const pwsp_attention *a, uint32_t sequence,
                                                 ptowsp_plan_info *info) {
    const ptowsp_attention_positions *p = a->config.positions;
    const int64_t kv = a->kv_lengths[sequence], queries = pwsp_query_length(a, sequence);
    const int64_t sinks = pwsp_position_of(p->sinks, sequence, 0);
    ptowsp_status status =
        pwsp_positions_line_check(p->query_first, p->query_stride, false, queries, sequence, info);
    if (status == PTOWSP_OK) {
        status = pwsp_positions_line_check(p->kv_first, p->kv_stride, true, kv, sequence, info);
    }
    if (status == PTOWSP_OK && (sinks < 0 || sinks > kv)) {
        status = pwsp_plan_fail(info, PTOWSP_FAULT_SINKS_RANGE, sequence, sinks, kv);
    }
    return status;
}

PWSP_INTERNAL ptowsp_status pwsp_positions_count_check(const ptowsp_attention_config *config,
                                                       const ptowsp_attention_batch *batch,
                                                       ptowsp_plan_info *info) {
    const ptowsp_attention_positions *p = pwsp_positions_of(config);
    return !p || p->sequence_count >= batch->sequence_count
               ? PTOWSP_OK
               : PWSP_PLAN_FAIL(info, POSITIONS_COUNT, p->sequence_count, batch->sequence_count);
}
