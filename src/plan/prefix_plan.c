// Prefix plans: from a tree to segments, which are planned as sequences are, and the joins of
// requests whose rows have parts in several of them.
//
// Everything up to the cut is in the scratch of the tree, so a plan that is too small is found before
// anything is written. The flat plan is counted and cut as well, from lengths in the order of the
// tree: its time is the other half of the decision, and it is the plan if the tree's is not better.
//
//      segments    A [0, 1024) requests 0 to 3      slots of A: entry (head, tile) of merges
//                  B [1024, 1100) request 0         slots of B: likewise
//      join        request 0: parts = slots of A + slots of B; row = its row in the tile of A, of B
//
// So nothing has to be written per request and level: a join finds its slots through the segments.

#include "attention_write.h"
#include "prefix.h"

// -- the batch ------------------------------------------------------------------------------------

// Faults that name a sequence name a position so far.
static void pwsp_prefix_rename(const ptowsp_prefix_tree *tree, ptowsp_plan_info *info) {
    switch (info->fault) {
    case PTOWSP_FAULT_LENGTH_NEGATIVE:
    case PTOWSP_FAULT_QUERY_NEGATIVE:
    case PTOWSP_FAULT_QUERY_LONG:
    case PTOWSP_FAULT_LENGTH_UNCOVERED:
    case PTOWSP_FAULT_TILES_EXCEEDED:
        PTOWSP_ASSERT(info->index < tree->request_count);
        info->index = tree->order[info->index];
        break;
    default: break;
    }
}

// Copies lengths into the order of the tree.
static ptowsp_status pwsp_prefix_gather(const ptowsp_attention_batch *batch,
                                        const ptowsp_prefix_tree *tree,
                                        const pwsp_prefix_scratch *s, ptowsp_plan_info *info) {
    if (!batch) {
        return PWSP_PLAN_FAIL(info, BATCH_NULL, 0, 0);
    }
    if (!batch->kv_lengths && batch->sequence_count > 0) {
        return PWSP_PLAN_FAIL(info, LENGTHS_NULL, batch->sequence_count, 0);
    }
    if (batch->sequence_count > tree->request_capacity) {
        return PWSP_PLAN_FAIL(info, TREE_FULL, batch->sequence_count, tree->request_capacity);
    }
    for (uint32_t p = 0; p < tree->request_count; p++) {
        const uint32_t request = tree->order[p];
        if (request >= batch->sequence_count) {
            return PWSP_PLAN_FAIL(info, REQUEST_RANGE, request, batch->sequence_count);
        }
        s->kv_lengths[p] = batch->kv_lengths[request];
        s->query_lengths[p] = batch->query_lengths ? batch->query_lengths[request] : 1;
    }
    return PTOWSP_OK;
}

// Numbers query tokens by position, and checks that positions have what they share.
static ptowsp_status pwsp_prefix_number(const ptowsp_prefix_tree *tree,
                                        const pwsp_prefix_scratch *s, ptowsp_plan_info *info) {
    uint64_t tokens = 0;
    uint32_t limit_before = 0;
    for (uint32_t p = 0; p < tree->request_count; p++) {
        const uint32_t limit = pwsp_prefix_limit(s->kv_lengths[p], s->query_lengths[p]);
        const uint32_t least = limit < limit_before ? limit : limit_before;
        if (p > 0 && tree->common[p] > least) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_TREE_OTHER, p, tree->common[p], least);
        }
        limit_before = limit;
        s->token_begin[p] = (uint32_t)tokens;
        tokens += (uint32_t)s->query_lengths[p];
        if (tokens > UINT32_MAX) {
            return PWSP_PLAN_FAIL(info, TOKENS_SMALL, pwsp_info_value(tokens), UINT32_MAX);
        }
    }
    s->token_begin[tree->request_count] = (uint32_t)tokens;
    return PTOWSP_OK;
}

// Refuses configurations of which prefix plans have no part.
static ptowsp_status pwsp_prefix_config_check(const ptowsp_attention_config *config,
                                              ptowsp_plan_info *info) {
    if (config->window > 0) {
        return PWSP_PLAN_FAIL(info, TREE_WINDOW, config->window, 0);
    }
    if (pwsp_positions_of(config)) {
        return PWSP_PLAN_FAIL(info, TREE_POSITIONS, 1, 0);
    }
    return config->shares_merges ? PWSP_PLAN_FAIL(info, TREE_SHARES, 1, 0) : PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_prefix_prepare(const ptowsp_attention_batch *batch,
                                                const ptowsp_attention_config *config,
                                                const ptowsp_prefix_tree *tree, pwsp_attention *a,
                                                pwsp_prefix_scratch *s, ptowsp_plan_info *info) {
    ptowsp_status status = pwsp_tree_check(tree, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    *s = pwsp_prefix_scratch_of(tree->request_capacity, tree->block_capacity, tree->scratch);
    status = pwsp_prefix_gather(batch, tree, s, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    const ptowsp_attention_batch ordered = {
        s->kv_lengths, batch->query_lengths ? s->query_lengths : NULL, tree->request_count};
    status = pwsp_attention_prepare(&ordered, config, a, info);
    if (status != PTOWSP_OK) {
        pwsp_prefix_rename(tree, info);
        return status;
    }
    status = pwsp_prefix_config_check(&a->config, info);
    return status == PTOWSP_OK ? pwsp_prefix_number(tree, s, info) : status;
}

// -- segments -------------------------------------------------------------------------------------

// Makes the segment of positions [first, first + count) up to kv_end, under `parent`.
PWSP_FORCE_INLINE void pwsp_segment_make(const ptowsp_prefix_tree *tree,
                                         const pwsp_prefix_scratch *s, uint32_t index,
                                         uint32_t parent, uint32_t first, uint32_t count,
                                         uint32_t kv_end) {
    ptowsp_prefix_segment *segment = &s->segments[index];
    ptowsp_prefix_segment *above = parent == PTOWSP_NO_NODE ? NULL : &s->segments[parent];
    segment->parent = parent;
    segment->request = tree->order[first];
    segment->first = first;
    segment->count = count;
    segment->token_begin = s->token_begin[first];
    segment->token_count = s->token_begin[first + count] - segment->token_begin;
    segment->kv_begin = above ? above->kv_end : 0;
    segment->kv_end = kv_end;
    segment->merge_begin = 0;
    segment->depth = 0;
    segment->is_whole = !above;
    PTOWSP_ASSERT(segment->kv_begin <= kv_end);
    if (above) {
        segment->depth = (uint16_t)(above->depth < UINT16_MAX ? above->depth + 1 : UINT16_MAX);
        if (segment->kv_begin < kv_end && segment->token_count > 0) {
            above->is_whole = false;
        }
    }
}

// Nodes are met in order of their first positions, those above first, so segments come before those
// below them.
PWSP_INTERNAL uint32_t pwsp_prefix_segments(const pwsp_attention *a, const ptowsp_prefix_tree *tree,
                                            const pwsp_prefix_scratch *s, bool is_flat) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < tree->request_count; p++) {
        s->node_first[p] = PTOWSP_NO_NODE;
    }
    for (uint32_t i = 0; i < tree->node_count && !is_flat; i++) {
        s->node_next[i] = s->node_first[tree->nodes[i].first];
        s->node_first[tree->nodes[i].first] = i;
    }
    for (uint32_t p = 0; p < tree->request_count; p++) {
        for (uint32_t i = s->node_first[p]; i != PTOWSP_NO_NODE; i = s->node_next[i]) {
            const ptowsp_prefix_node *node = &tree->nodes[i];
            uint32_t segment =
                node->parent == PTOWSP_NO_NODE ? PTOWSP_NO_NODE : s->costs[node->parent].segment;
            if (node->is_shared) {
                pwsp_segment_make(tree, s, count, segment, node->first, node->count,
                                  pwsp_prefix_round(a, node->kv_end));
                segment = count++;
            }
            s->costs[i].segment = segment;
        }
        const uint32_t owner = is_flat ? PTOWSP_NO_NODE : tree->owners[p];
        pwsp_segment_make(tree, s, count++,
                          owner == PTOWSP_NO_NODE ? PTOWSP_NO_NODE : s->costs[owner].segment, p, 1,
                          (uint32_t)s->kv_lengths[p]);
    }
    PTOWSP_ASSERT(count <= 2 * (uint64_t)tree->request_count);
    return count;
}

PWSP_INTERNAL ptowsp_status pwsp_prefix_count(pwsp_attention *a,
                                              const ptowsp_prefix_segment *segments, uint32_t count,
                                              uint64_t *out_reads, ptowsp_plan_info *info) {
    a->segments = segments;
    a->has_own_tiles = true;
    a->sequence_count = count;
    a->tile_count = a->unit_count = a->merge_count = a->slot_count = a->slotted_count = 0;
    a->total = a->tile_cost_max = a->slot_cost_max = 0;
    a->slot_rows = 0;
    uint64_t reads = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t tiles = pwsp_query_tiles(a, i);
        for (uint32_t t = 0; t < tiles; t++) {
            const pwsp_query_tile tile = pwsp_query_tile_at(a, i, t);
            pwsp_tile_count(a, &tile);
            reads += tile.end - tile.begin;
        }
    }
    *out_reads = pwsp_mul_u64(reads, a->config.kv_head_count);
    return pwsp_counts_check(a, info);
}

// -- deciding -------------------------------------------------------------------------------------

typedef struct pwsp_prefix_work {
    pwsp_attention a;  // of the plan that is chosen
    pwsp_prefix_scratch s;
    pwsp_attention_cut cut;
    uint32_t segment_count;
    uint64_t join_count;
    uint64_t reads, flat_reads;
    double cost, flat_cost, time, flat_time;
} pwsp_prefix_work;

static double pwsp_prefix_time(const pwsp_attention *a, const pwsp_attention_cut *cut) {
    return (double)cut->time * a->grid / (double)a->speed_max;
}

static uint64_t pwsp_flat_reads(const pwsp_attention *a) {
    uint64_t reads = 0;
    for (uint32_t p = 0; p < a->sequence_count; p++) {
        for (uint32_t i = 0, tiles = pwsp_query_tiles(a, p); i < tiles; i++) {
            const pwsp_query_tile tile = pwsp_query_tile_at(a, p, i);
            reads += tile.end - tile.begin;
        }
    }
    return pwsp_mul_u64(reads, a->config.kv_head_count);
}

// Whether the rows of a position are joined: if it has several segments. A segment that has others
// above is not whole, and one that has none is so if no others are below.
static bool pwsp_position_joins(const ptowsp_prefix_segment *segments, uint32_t segment) {
    const ptowsp_prefix_segment *last = &segments[segment];
    return last->token_count > 0 && last->parent != PTOWSP_NO_NODE &&
           !segments[last->parent].is_whole;
}

// Tries the tree. True if it is better than the flat plan.
static bool pwsp_prefix_try(pwsp_prefix_work *w, ptowsp_prefix_tree *tree) {
    pwsp_prefix_choose(&w->a, tree, &w->s);
    bool is_any = false;
    for (uint32_t i = 0; i < tree->node_count; i++) {
        is_any = is_any || tree->nodes[i].is_shared;
    }
    if (!is_any) {
        return false;
    }
    pwsp_attention a = w->a;
    ptowsp_plan_info info;
    uint64_t reads;
    const uint32_t count = pwsp_prefix_segments(&a, tree, &w->s, false);
    if (pwsp_prefix_count(&a, w->s.segments, count, &reads, &info) != PTOWSP_OK) {
        return false;  // more units than a plan has
    }
    PTOWSP_ASSERT(a.total < w->a.total);
    pwsp_attention_cut cut;
    pwsp_attention_cut_find(&a, NULL, &cut);
    if (cut.time > w->cut.time) {
        return false;
    }
    w->a = a;
    w->cut = cut;
    w->segment_count = count;
    w->reads = reads;
    for (uint32_t i = 0; i < count; i++) {
        w->join_count += w->s.segments[i].count == 1 && pwsp_position_joins(w->s.segments, i);
    }
    w->join_count *= a.config.kv_head_count;
    return true;
}

static ptowsp_status pwsp_prefix_decide(const ptowsp_attention_batch *batch,
                                        const ptowsp_attention_config *config,
                                        ptowsp_prefix_tree *tree, pwsp_prefix_work *w,
                                        ptowsp_plan_info *info) {
    memset(w, 0, sizeof *w);
    ptowsp_status status = pwsp_prefix_prepare(batch, config, tree, &w->a, &w->s, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_attention_cut_find(&w->a, NULL, &w->cut);
    w->flat_cost = (double)w->a.total * w->a.grid;
    w->flat_time = pwsp_prefix_time(&w->a, &w->cut);
    w->reads = w->flat_reads = pwsp_flat_reads(&w->a);
    if (!pwsp_prefix_try(w, tree)) {
        for (uint32_t i = 0; i < tree->node_count; i++) {
            tree->nodes[i].is_shared = 0;
        }
        w->segment_count = pwsp_prefix_segments(&w->a, tree, &w->s, true);
    }
    w->cost = (double)w->a.total * w->a.grid;
    w->time = pwsp_prefix_time(&w->a, &w->cut);
    PTOWSP_ASSERT(w->join_count <= UINT32_MAX);  // as many units as the flat plan has
    return PTOWSP_OK;
}

// -- sizes ----------------------------------------------------------------------------------------

static uint64_t pwsp_round_8(uint64_t bytes) {
    return (bytes + 7) & ~UINT64_C(7);
}

static uint64_t pwsp_prefix_bytes(const ptowsp_prefix_sizes *sizes) {
    const uint64_t segments = sizes->segment_count, requests = sizes->request_count;
    return pwsp_round_8(pwsp_sizes_bytes(&sizes->attention)) +
           sizes->join_count * sizeof(ptowsp_work) +
           pwsp_round_8(segments * sizeof(ptowsp_prefix_segment)) +
           (requests + 1) * sizeof(ptowsp_prefix_request) +
           pwsp_round_8(sizes->token_count * (uint64_t)sizeof(uint32_t));
}

ptowsp_status ptowsp_prefix_size(const ptowsp_attention_batch *batch,
                                 const ptowsp_attention_config *config, ptowsp_prefix_tree *tree,
                                 ptowsp_prefix_sizes *out_sizes, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_sizes) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_SIZES, 0);
    }
    memset(out_sizes, 0, sizeof *out_sizes);
    pwsp_prefix_work w;
    ptowsp_status status = pwsp_prefix_decide(batch, config, tree, &w, info);
    if (status == PTOWSP_OK && w.cut.unit_count > UINT32_MAX) {
        status =
            PWSP_PLAN_FAIL(info, UNITS_EXCEEDED, pwsp_info_value(w.cut.unit_count), UINT32_MAX);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    ptowsp_attention_sizes *sizes = &out_sizes->attention;
    sizes->unit_count = info->work_count = w.cut.unit_count;
    sizes->merge_count = w.cut.merge_count;
    sizes->slot_count = w.cut.slot_count;
    sizes->slot_rows = w.a.slot_rows;
    sizes->lane_count = w.a.config.lane_count;
    sizes->block_bytes = pwsp_sizes_bytes(sizes);
    out_sizes->segment_count = w.segment_count;
    out_sizes->request_count = tree->request_count;
    out_sizes->token_count = w.s.token_begin[tree->request_count];
    out_sizes->join_count = w.join_count;
    out_sizes->block_bytes = pwsp_prefix_bytes(out_sizes);
    return PTOWSP_OK;
}

// The most tiles of one head that shared segments have. Of n requests that share something, the i-th
// largest set has at most n - i + 1 of them: so many has a chain, where each node loses one request.
static uint64_t pwsp_shared_tiles_bound(uint64_t requests, uint64_t query_max, uint64_t tokens,
                                        uint64_t tile_tokens) {
    PTOWSP_ASSERT(query_max > 0);
    if (requests < 2) {
        return 0;
    }
    const uint64_t full = pwsp_min_u64(requests, tokens / query_max);  // that all have query_max
    const uint64_t pairs =
        full % 2 == 0 ? pwsp_mul_u64(full / 2, full + 1) : pwsp_mul_u64(full, (full + 1) / 2);
    uint64_t sum = pwsp_mul_u64(query_max, pairs > 0 ? pairs - 1 : 0);  // of nodes of 2 to `full`
    sum = pwsp_sum_u64(sum, pwsp_mul_u64(tokens, requests - full));
    // The last tile of each node may have one token.
    sum = pwsp_sum_u64(sum, pwsp_mul_u64(requests - 1, tile_tokens - 1));
    return sum / tile_tokens;
}

// In INVARIANT mode a chunk of a segment has at most as many tiles as in the flat plan, where each
// request has tiles of its own; so has a token of it, which bounds tiles in BALANCED mode.
ptowsp_status ptowsp_prefix_bound(const ptowsp_attention_config *config,
                                  const ptowsp_attention_limits *limits,
                                  ptowsp_prefix_sizes *out_sizes, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_sizes) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_SIZES, 0);
    }
    memset(out_sizes, 0, sizeof *out_sizes);
    ptowsp_attention_sizes flat, *sizes = &out_sizes->attention;
    ptowsp_status status = ptowsp_attention_bound(config, limits, &flat, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    status = pwsp_prefix_config_check(config, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_attention a;
    pwsp_attention_most most;
    status = pwsp_attention_configure(config, &a, info);
    PTOWSP_ASSERT(status == PTOWSP_OK);
    const uint64_t requests = limits->sequence_count_max, heads = config->kv_head_count;
    const uint64_t query_max =
        limits->query_length_max > 0 ? (uint32_t)limits->query_length_max : 1;
    uint64_t tokens = pwsp_min_u64(requests * query_max, UINT32_MAX);  // more are refused
    if (limits->query_token_count_max > 0) {
        tokens = pwsp_min_u64(tokens, limits->query_token_count_max);
    }
    const bool cuts_chunks = pwsp_attention_cuts_chunks(&a);
    a.chunk = cuts_chunks ? a.chunk : 1;
    status = pwsp_attention_limits(&a, limits, &most, info);
    PTOWSP_ASSERT(status == PTOWSP_OK);
    sizes->unit_count = flat.unit_count;
    if (!cuts_chunks) {
        const uint64_t shared = pwsp_shared_tiles_bound(requests, query_max, tokens, a.tile_tokens);
        const uint64_t tiles = pwsp_min_u64(pwsp_sum_u64(most.tiles, shared), most.pieces);
        const uint64_t flat_tiles = pwsp_mul_u64(most.tiles, heads);
        PTOWSP_ASSERT(flat.unit_count >= flat_tiles);
        sizes->unit_count = pwsp_sum_u64(flat.unit_count - flat_tiles, pwsp_mul_u64(tiles, heads));
    }
    const bool joins = most.cuts && requests > 1;
    sizes->merge_count = joins ? sizes->unit_count : flat.merge_count;
    sizes->slot_count = joins ? sizes->unit_count : flat.slot_count;
    sizes->slot_rows =
        most.tiles > 0 ? (uint32_t)pwsp_min_u64(tokens, a.tile_tokens) * a.config.group : 0;
    const uint64_t segments = requests > 0 ? 2 * requests - 1 : 0;
    if (segments > UINT32_MAX) {
        memset(out_sizes, 0, sizeof *out_sizes);
        return PWSP_PLAN_FAIL(info, SEGMENTS_SMALL, pwsp_info_value(segments), UINT32_MAX);
    }
    out_sizes->segment_count = (uint32_t)segments;
    out_sizes->request_count = limits->sequence_count_max;
    out_sizes->token_count = (uint32_t)tokens;
    out_sizes->join_count = joins ? pwsp_min_u64(requests * heads, UINT32_MAX) : 0;
    status = pwsp_sizes_complete(&a, sizes, info);
    if (status != PTOWSP_OK) {
        memset(out_sizes, 0, sizeof *out_sizes);
        return status;
    }
    out_sizes->block_bytes = pwsp_prefix_bytes(out_sizes);
    return PTOWSP_OK;
}

ptowsp_status ptowsp_prefix_place(const ptowsp_prefix_sizes *sizes, void *block,
                                  uint64_t block_bytes, ptowsp_prefix_plan *out_plan) {
    if (!sizes || !block || !out_plan) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (sizes->join_count > UINT32_MAX) {
        return PTOWSP_LIMIT_EXCEEDED;
    }
    ptowsp_attention_plan plan;
    ptowsp_status status = ptowsp_attention_place(&sizes->attention, block, block_bytes, &plan);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (block_bytes < pwsp_prefix_bytes(sizes)) {
        return PTOWSP_BUFFER_OVERFLOW;
    }
    memset(out_plan, 0, sizeof *out_plan);
    out_plan->attention = plan;
    char *at = (char *)block + pwsp_round_8(pwsp_sizes_bytes(&sizes->attention));
    out_plan->joins = (ptowsp_work *)(void *)at;
    at += sizes->join_count * sizeof(ptowsp_work);
    out_plan->segments = (ptowsp_prefix_segment *)(void *)at;
    at += pwsp_round_8(sizes->segment_count * (uint64_t)sizeof(ptowsp_prefix_segment));
    out_plan->requests = (ptowsp_prefix_request *)(void *)at;
    at += (sizes->request_count + UINT64_C(1)) * sizeof(ptowsp_prefix_request);
    out_plan->tokens = (uint32_t *)(void *)at;
    out_plan->segment_capacity = sizes->segment_count;
    out_plan->request_capacity = sizes->request_count;
    out_plan->token_capacity = sizes->token_count;
    out_plan->join_capacity = (uint32_t)sizes->join_count;
    return PTOWSP_OK;
}

// -- planning -------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_prefix_arrays_check(const ptowsp_prefix_plan *plan,
                                                     ptowsp_plan_info *info) {
    if (!plan) {
        return PWSP_PLAN_FAIL(info, PLAN_NULL, 0, 0);
    }
    const bool are_null[4] = {!plan->segments && plan->segment_capacity > 0, !plan->requests,
                              !plan->tokens && plan->token_capacity > 0,
                              !plan->joins && plan->join_capacity > 0};
    for (uint32_t i = 0; i < 4; i++) {
        if (are_null[i]) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_PREFIX_ARRAY, i, 0, 0);
        }
    }
    return pwsp_plan_arrays_check(&plan->attention, info);
}

static ptowsp_status pwsp_prefix_room_check(const pwsp_prefix_work *w, uint32_t requests,
                                            const ptowsp_prefix_plan *plan,
                                            ptowsp_plan_info *info) {
    const uint64_t needed[4] = {w->segment_count, requests, w->s.token_begin[requests],
                                w->join_count};
    const uint32_t capacities[4] = {plan->segment_capacity, plan->request_capacity,
                                    plan->token_capacity, plan->join_capacity};
    static const ptowsp_plan_fault faults[4] = {
        PTOWSP_FAULT_SEGMENTS_SMALL, PTOWSP_FAULT_REQUESTS_SMALL, PTOWSP_FAULT_TOKENS_SMALL,
        PTOWSP_FAULT_JOINS_SMALL};
    for (uint32_t i = 0; i < 4; i++) {
        if (needed[i] > capacities[i]) {
            return pwsp_plan_fail(info, faults[i], PTOWSP_NO_INDEX, (int64_t)needed[i],
                                  capacities[i]);
        }
    }
    return pwsp_cut_check(&w->a, &w->cut, &plan->attention, info);
}

// Writes requests and their tokens.
static void pwsp_prefix_write_requests(const ptowsp_attention_batch *batch,
                                       const ptowsp_prefix_tree *tree, const pwsp_prefix_work *w,
                                       ptowsp_prefix_plan *plan) {
    const uint32_t count = tree->request_count;
    uint32_t *first = w->s.order, next = 0;  // query tokens before each request of the batch
    for (uint32_t r = 0; r < batch->sequence_count && batch->query_lengths; r++) {
        first[r] = next;
        next += (uint32_t)batch->query_lengths[r];
    }
    for (uint32_t p = 0; p < count; p++) {
        const uint32_t request = tree->order[p], begin = w->s.token_begin[p];
        plan->requests[p].request = request;
        plan->requests[p].token_begin = begin;
        plan->requests[p].join = PTOWSP_NO_NODE;
        for (uint32_t t = begin; t < w->s.token_begin[p + 1]; t++) {
            plan->tokens[t] = (batch->query_lengths ? first[request] : request) + (t - begin);
        }
    }
    const ptowsp_prefix_request end = {PTOWSP_NO_NODE, PTOWSP_NO_NODE, w->s.token_begin[count],
                                       PTOWSP_NO_NODE};
    plan->requests[count] = end;
    uint32_t position = 0;
    for (uint32_t i = 0; i < w->segment_count; i++) {
        if (plan->segments[i].count == 1) {  // one for each position, in order
            plan->requests[position++].segment = i;
        }
    }
    PTOWSP_ASSERT(position == count);
}

// What the position before had, of a request whose own segment is one tile: as long as the segments
// above and their tiles are the same, so are the parts that come from there.
typedef struct pwsp_joins_before {
    const PTOWSP_GM ptowsp_work *joins, *slots;
    uint32_t parent;
    uint64_t token_end;  // where a tile above ends; 0: nothing is known
} pwsp_joins_before;

// Adds the slots of a segment to the parts of a request's joins, which are one for each head.
static void pwsp_joins_add(const ptowsp_prefix_plan *plan, const ptowsp_prefix_segment *segment,
                           const ptowsp_prefix_request *request, uint32_t heads,
                           PTOWSP_GM ptowsp_work *joins, uint64_t *token_end) {
    const uint32_t tiles = pwsp_segment_tiles(plan, segment), all = plan->attention.tile_tokens;
    if (tiles == 0) {
        return;
    }
    uint32_t first = 0, last = 0;
    if (tiles > 1) {
        first = (request[0].token_begin - segment->token_begin) / all;
        last = (request[1].token_begin - 1 - segment->token_begin) / all;
        const uint64_t end = segment->token_begin + (uint64_t)(first + 1) * all;
        *token_end = first == last ? pwsp_min_u64(*token_end, end) : 0;
    }
    const PTOWSP_GM ptowsp_work *slots = &plan->attention.merges[segment->merge_begin];
    PTOWSP_ASSERT(first <= last && last < tiles);
    for (uint32_t t = first; t <= last; t++) {
        const PTOWSP_GM ptowsp_work *slot = &slots[t];
        for (uint32_t head = 0; head < heads; head++, slot += tiles) {
            joins[head].params[3] += ptowsp_work_slot_count(slot);
        }
    }
}

// Writes the joins of a position, one for each head.
static void pwsp_position_write_joins(const ptowsp_prefix_plan *plan, uint32_t position,
                                      uint32_t heads, PTOWSP_GM ptowsp_work *joins,
                                      pwsp_joins_before *before) {
    const ptowsp_prefix_request *request = &plan->requests[position];
    const ptowsp_prefix_segment *segment = &plan->segments[request->segment];
    const uint32_t join = request->join;
    const bool is_one = pwsp_segment_tiles(plan, segment) == 1;
    const bool is_like =
        is_one && before->parent == segment->parent && request[1].token_begin <= before->token_end;
    const PTOWSP_GM ptowsp_work *slots = is_one ? pwsp_segment_slots(plan, segment, 0, 0) : NULL;
    for (uint32_t head = 0; head < heads; head++) {
        uint32_t parts = is_one ? ptowsp_work_slot_count(&slots[head]) : 0;
        if (is_like) {
            parts += before->joins[head].params[3] - ptowsp_work_slot_count(&before->slots[head]);
        }
        pwsp_write_words(&joins[head], pwsp_word_pair(join + head, 0),
                         pwsp_word_pair(request->request, head), pwsp_word_pair(position, parts));
    }
    before->joins = joins;
    before->slots = slots;
    if (is_like) {
        return;
    }
    before->parent = segment->parent;
    before->token_end = UINT64_MAX;
    for (uint32_t i = is_one ? segment->parent : request->segment; i != PTOWSP_NO_NODE;
         i = plan->segments[i].parent) {
        pwsp_joins_add(plan, &plan->segments[i], request, heads, joins, &before->token_end);
    }
    before->token_end = is_one ? before->token_end : 0;
}

// Writes joins, and where segments have their slots.
static void pwsp_prefix_write_joins(const pwsp_prefix_work *w, ptowsp_prefix_plan *plan) {
    const ptowsp_attention_plan *attention = &plan->attention;
    const uint32_t heads = w->a.config.kv_head_count;
    for (uint32_t i = 0, next = 0; i < plan->segment_count && w->join_count > 0; i++) {
        if (next == attention->merge_count || attention->merges[next].params[0] != i) {
            continue;
        }
        plan->segments[i].merge_begin = next;
        if (!plan->segments[i].is_whole) {
            next += heads * pwsp_segment_tiles(plan, &plan->segments[i]);
            continue;
        }
        while (next < attention->merge_count && attention->merges[next].params[0] == i) {
            next++;  // tiles that lanes split
        }
    }
    uint32_t join = 0;
    pwsp_joins_before before = {NULL, NULL, PTOWSP_NO_NODE, 0};
    for (uint32_t p = 0; p < plan->request_count && w->join_count > 0; p++) {
        ptowsp_prefix_request *request = &plan->requests[p];
        if (!pwsp_position_joins(plan->segments, request->segment)) {
            continue;
        }
        request->join = join;
        pwsp_position_write_joins(plan, p, heads, &plan->joins[join], &before);
        join += heads;
    }
    PTOWSP_ASSERT(join == w->join_count);
    for (uint32_t i = join; i < plan->join_capacity; i++) {
        plan->joins[i] = ptowsp_work_of(PTOWSP_NO_SLOT, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    }
    plan->join_count = join;
}

ptowsp_status ptowsp_prefix_generate(const ptowsp_attention_batch *batch,
                                     const ptowsp_attention_config *config,
                                     ptowsp_prefix_tree *tree, ptowsp_prefix_plan *plan,
                                     ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_prefix_work w;
    ptowsp_status status = pwsp_prefix_decide(batch, config, tree, &w, info);
    if (status == PTOWSP_OK) {
        status = pwsp_prefix_arrays_check(plan, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_prefix_room_check(&w, tree->request_count, plan, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_attention_cut_write(&w.a, &w.cut, &plan->attention);
    memcpy(plan->segments, w.s.segments, w.segment_count * sizeof *plan->segments);
    plan->segment_count = w.segment_count;
    plan->request_count = tree->request_count;
    plan->token_count = w.s.token_begin[tree->request_count];
    plan->shared_count = w.segment_count - tree->request_count;
    pwsp_prefix_write_requests(batch, tree, &w, plan);
    pwsp_prefix_write_joins(&w, plan);
    plan->kv_token_reads = w.reads, plan->flat_kv_token_reads = w.flat_reads;
    plan->cost = w.cost, plan->flat_cost = w.flat_cost;
    plan->time = w.time, plan->flat_time = w.flat_time;
    info->work_count = w.cut.unit_count;
    return PTOWSP_OK;
}
