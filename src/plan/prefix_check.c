// Proves a prefix plan, and prints it.
//
// First the segments: each position's lead, parent by parent, from the end of its KV to 0, and
// each has the position among its own. As the lengths of these ways add up to the positions of all
// segments, each position is in no other. So if the units have each segment's rows and KV once, which
// is the proof of attention plans, each row meets each KV token of its request once. A shared segment
// ends where neighbours still share, so its KV belongs to all its requests.

#include "prefix.h"

#include "../base/text.h"

typedef struct pwsp_prefix_proof {
    const pwsp_attention *a;
    const ptowsp_prefix_tree *tree;
    const ptowsp_prefix_plan *plan;
    const pwsp_prefix_scratch *s;
    ptowsp_plan_info *info;
} pwsp_prefix_proof;

// Compares pairs of actual and expected values.
static ptowsp_status pwsp_prefix_compare(const pwsp_prefix_proof *proof, ptowsp_plan_fault fault,
                                         uint64_t index, const uint64_t (*pairs)[2],
                                         uint32_t pair_count) {
    for (uint32_t i = 0; i < pair_count; i++) {
        if (pairs[i][0] != pairs[i][1]) {
            return pwsp_plan_fail(proof->info, fault, index, pwsp_info_value(pairs[i][0]),
                                  pwsp_info_value(pairs[i][1]));
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_prefix_at_most(const pwsp_prefix_proof *proof, ptowsp_plan_fault fault,
                                         uint64_t index, uint64_t value, uint64_t limit) {
    return value <= limit ? PTOWSP_OK
                          : pwsp_plan_fail(proof->info, fault, index, pwsp_info_value(value),
                                           pwsp_info_value(limit));
}

// The KV that a segment may end at: what neighbours share, or all of a request's.
static uint32_t pwsp_segment_limit(const pwsp_prefix_proof *proof, uint32_t first, uint32_t count) {
    uint32_t limit = (uint32_t)proof->a->kv_lengths[first];
    for (uint32_t p = first + 1; p < first + count; p++) {
        limit = proof->tree->common[p] < limit ? proof->tree->common[p] : limit;
    }
    return limit;
}

static ptowsp_status pwsp_segment_prove(const pwsp_prefix_proof *proof, uint32_t index) {
    const ptowsp_plan_fault fault = PTOWSP_FAULT_SEGMENT_WRONG;
    const ptowsp_prefix_segment *segment = &proof->plan->segments[index];
    const uint32_t requests = proof->tree->request_count;
    const bool has_parent = segment->parent != PTOWSP_NO_NODE;
    const uint32_t above = has_parent ? segment->parent : 0;
    ptowsp_status status = pwsp_prefix_at_most(proof, fault, index, above, index);
    if (status == PTOWSP_OK && has_parent && above == index) {
        status = pwsp_plan_fail(proof->info, fault, index, above, index);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_prefix_at_most(proof, fault, index, segment->first + (uint64_t)segment->count,
                                     requests);
    }
    if (status == PTOWSP_OK && segment->count == 0) {
        status = pwsp_plan_fail(proof->info, fault, index, 0, 1);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint32_t *begin = proof->s->token_begin;
    const uint32_t first = segment->first, count = segment->count;
    const uint32_t limit = pwsp_segment_limit(proof, first, count);
    const ptowsp_prefix_segment *parent = has_parent ? &proof->plan->segments[above] : NULL;
    const uint64_t pairs[6][2] = {
        {segment->request, proof->tree->order[first]},
        {segment->token_begin, begin[first]},
        {segment->token_count, begin[first + count] - begin[first]},
        {segment->kv_begin, parent ? parent->kv_end : 0},
        {count == 1 ? segment->kv_end : limit, limit},
        {segment->depth, parent ? pwsp_min_u64(parent->depth + UINT64_C(1), UINT16_MAX) : 0}};
    status = pwsp_prefix_compare(proof, fault, index, pairs, 6);
    if (status == PTOWSP_OK) {
        status = pwsp_prefix_at_most(proof, fault, index, segment->kv_end, limit);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_prefix_at_most(proof, fault, index, segment->kv_begin, segment->kv_end);
    }
    if (status == PTOWSP_OK && count > 1) {
        status = pwsp_prefix_at_most(
            proof, fault, index, pwsp_tiles_of(proof->a, segment->token_count), UINT16_MAX + 1u);
    }
    // A segment is whole if it is the only one of its requests. Its parent has come before.
    if (status == PTOWSP_OK && segment->is_whole && parent) {
        status = pwsp_plan_fail(proof->info, fault, index, 1, 0);
    }
    if (status == PTOWSP_OK && parent && parent->is_whole && segment->kv_begin < segment->kv_end &&
        segment->token_count > 0) {
        status = pwsp_plan_fail(proof->info, fault, segment->parent, 1, 0);
    }
    return status;
}

// Proves the segments, and that they are the ways of all positions and nothing else.
static ptowsp_status pwsp_segments_prove(const pwsp_prefix_proof *proof) {
    const ptowsp_prefix_plan *plan = proof->plan;
    const uint32_t *begin = proof->s->token_begin;
    uint64_t pairs_of_segments = 0, pairs_of_ways = 0;
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 0; i < plan->segment_count && status == PTOWSP_OK; i++) {
        status = pwsp_segment_prove(proof, i);
        pairs_of_segments += plan->segments[i].count;
    }
    for (uint32_t p = 0; p < plan->request_count && status == PTOWSP_OK; p++) {
        const ptowsp_prefix_request *request = &plan->requests[p];
        const uint64_t pairs[2][2] = {{request->request, proof->tree->order[p]},
                                      {request->token_begin, begin[p]}};
        status = pwsp_prefix_compare(proof, PTOWSP_FAULT_REQUEST_WRONG, p, pairs, 2);
        if (status == PTOWSP_OK && request->segment >= plan->segment_count) {
            status = pwsp_plan_fail(proof->info, PTOWSP_FAULT_REQUEST_WRONG, p, request->segment,
                                    plan->segment_count);
        }
        if (status != PTOWSP_OK) {
            break;
        }
        if (plan->segments[request->segment].count != 1) {
            return pwsp_plan_fail(proof->info, PTOWSP_FAULT_REQUEST_WRONG, p, request->segment,
                                  plan->segment_count);
        }
        for (uint32_t i = request->segment; i != PTOWSP_NO_NODE; i = plan->segments[i].parent) {
            const ptowsp_prefix_segment *segment = &plan->segments[i];
            if (p < segment->first || p - segment->first >= segment->count) {
                return pwsp_plan_fail(proof->info, PTOWSP_FAULT_SEGMENT_WRONG, i, segment->first,
                                      p);
            }
            pairs_of_ways++;
        }
    }
    if (status == PTOWSP_OK && pairs_of_ways != pairs_of_segments) {
        status = PWSP_PLAN_FAIL(proof->info, COUNT_WRONG, pwsp_info_value(pairs_of_segments),
                                pwsp_info_value(pairs_of_ways));
    }
    return status;
}

// Proves that tokens are the batch's: without query lengths one for each request.
static ptowsp_status pwsp_tokens_prove(const pwsp_prefix_proof *proof,
                                       const ptowsp_attention_batch *batch) {
    uint32_t *first = proof->s->order, next = 0;
    for (uint32_t r = 0; r < batch->sequence_count; r++) {
        first[r] = next;
        next += batch->query_lengths ? (uint32_t)batch->query_lengths[r] : 1;
    }
    const ptowsp_prefix_plan *plan = proof->plan;
    for (uint32_t p = 0; p < plan->request_count; p++) {
        const uint32_t begin = proof->s->token_begin[p], end = proof->s->token_begin[p + 1];
        for (uint32_t t = begin; t < end; t++) {
            const uint32_t token = first[proof->tree->order[p]] + (t - begin);
            if (plan->tokens[t] != token) {
                return pwsp_plan_fail(proof->info, PTOWSP_FAULT_REQUEST_WRONG, p, plan->tokens[t],
                                      token);
            }
        }
    }
    return PTOWSP_OK;
}

// The slots of all tiles of a position's segments that have tokens of it.
static uint64_t pwsp_join_parts(const ptowsp_prefix_plan *plan, uint32_t position, uint32_t head) {
    const ptowsp_prefix_request *request = &plan->requests[position];
    const uint32_t begin = request[0].token_begin, end = request[1].token_begin;
    const uint32_t tokens = plan->attention.tile_tokens;
    uint64_t parts = 0;
    for (uint32_t i = request->segment; i != PTOWSP_NO_NODE; i = plan->segments[i].parent) {
        const ptowsp_prefix_segment *segment = &plan->segments[i];
        if (segment->kv_begin < segment->kv_end) {
            const uint32_t last = (end - 1 - segment->token_begin) / tokens;
            for (uint32_t t = (begin - segment->token_begin) / tokens; t <= last; t++) {
                parts += ptowsp_work_slot_count(pwsp_segment_slots(plan, segment, head, t));
            }
        }
    }
    return parts;
}

// Proves that merges have the slots of segments where they say, and joins.
static ptowsp_status pwsp_joins_prove(const pwsp_prefix_proof *proof) {
    const ptowsp_prefix_plan *plan = proof->plan;
    const uint32_t heads = proof->a->config.kv_head_count;
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 0; i < plan->segment_count && status == PTOWSP_OK; i++) {
        const ptowsp_prefix_segment *segment = &plan->segments[i];
        const uint64_t entries = (uint64_t)pwsp_segment_tiles(plan, segment) * heads;
        if (segment->is_whole || entries == 0) {
            continue;
        }
        status = pwsp_prefix_at_most(proof, PTOWSP_FAULT_SEGMENT_WRONG, i,
                                     segment->merge_begin + entries, plan->attention.merge_count);
        if (status == PTOWSP_OK &&
            (plan->attention.merges[segment->merge_begin].params[0] != i ||
             plan->attention.merges[segment->merge_begin + entries - 1].params[0] != i)) {
            status = pwsp_plan_fail(proof->info, PTOWSP_FAULT_SEGMENT_WRONG, i,
                                    segment->merge_begin, plan->attention.merge_count);
        }
    }
    uint32_t join = 0;
    for (uint32_t p = 0; p < plan->request_count && status == PTOWSP_OK; p++) {
        const ptowsp_prefix_segment *last = &plan->segments[plan->requests[p].segment];
        const bool joins = last->token_count > 0 && last->parent != PTOWSP_NO_NODE &&
                           !plan->segments[last->parent].is_whole;
        const uint64_t pair[1][2] = {{plan->requests[p].join, joins ? join : PTOWSP_NO_NODE}};
        status = pwsp_prefix_compare(proof, PTOWSP_FAULT_REQUEST_WRONG, p, pair, 1);
        for (uint32_t head = 0; joins && head < heads && status == PTOWSP_OK; head++, join++) {
            if (join >= plan->join_count) {
                return pwsp_plan_fail(proof->info, PTOWSP_FAULT_JOIN_WRONG, join, 0, 1);
            }
            const PTOWSP_GM ptowsp_work *work = &plan->joins[join];
            const uint64_t pairs[6][2] = {{work->params[0], plan->requests[p].request},
                                          {work->params[1], head},
                                          {work->params[2], p},
                                          {work->params[3], pwsp_join_parts(plan, p, head)},
                                          {work->work_id, join},
                                          {work->flags, 0}};
            status = pwsp_prefix_compare(proof, PTOWSP_FAULT_JOIN_WRONG, join, pairs, 6);
        }
    }
    if (status == PTOWSP_OK && join != plan->join_count) {
        status = PWSP_PLAN_FAIL(proof->info, COUNT_WRONG, plan->join_count, join);
    }
    for (; status == PTOWSP_OK && join < plan->join_capacity; join++) {
        const uint64_t pair[1][2] = {{plan->joins[join].flags, PTOWSP_WORK_INVALID}};
        status = pwsp_prefix_compare(proof, PTOWSP_FAULT_JOIN_WRONG, join, pair, 1);
    }
    return status;
}

ptowsp_status ptowsp_prefix_check(const ptowsp_attention_batch *batch,
                                  const ptowsp_attention_config *config,
                                  const ptowsp_prefix_tree *tree, const ptowsp_prefix_plan *plan,
                                  ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_attention a;
    pwsp_prefix_scratch s;
    ptowsp_status status = pwsp_prefix_prepare(batch, config, tree, &a, &s, info);
    if (status == PTOWSP_OK) {
        status = pwsp_prefix_arrays_check(plan, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_plan_other_check(&a, &plan->attention, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const pwsp_prefix_proof proof = {&a, tree, plan, &s, info};
    const uint64_t counts[3][2] = {
        {plan->request_count, tree->request_count},
        {plan->token_count, s.token_begin[tree->request_count]},
        {plan->segment_count, plan->shared_count + (uint64_t)tree->request_count}};
    status = pwsp_prefix_compare(&proof, PTOWSP_FAULT_COUNT_WRONG, PTOWSP_NO_INDEX, counts, 3);
    const uint32_t at_most[4][2] = {{plan->segment_count, plan->segment_capacity},
                                    {plan->request_count, plan->request_capacity},
                                    {plan->token_count, plan->token_capacity},
                                    {plan->join_count, plan->join_capacity}};
    for (uint32_t i = 0; i < 4 && status == PTOWSP_OK; i++) {
        status = pwsp_prefix_at_most(&proof, PTOWSP_FAULT_COUNT_WRONG, PTOWSP_NO_INDEX,
                                     at_most[i][0], at_most[i][1]);
    }
    uint64_t reads;
    status = status == PTOWSP_OK ? pwsp_segments_prove(&proof) : status;
    status = status == PTOWSP_OK ? pwsp_tokens_prove(&proof, batch) : status;
    status = status == PTOWSP_OK
                 ? pwsp_prefix_count(&a, plan->segments, plan->segment_count, &reads, info)
                 : status;
    status = status == PTOWSP_OK ? pwsp_plan_prove(&a, &plan->attention, info) : status;
    return status == PTOWSP_OK ? pwsp_joins_prove(&proof) : status;
}

void ptowsp_prefix_print(const ptowsp_prefix_plan *plan, ptowsp_output output) {
    if (!plan) {
        return;
    }
    pwsp_text_format(output, "prefix plan: %u requests, %u shared segments, %u joins\n",
                     (unsigned)plan->request_count, (unsigned)plan->shared_count,
                     (unsigned)plan->join_count);
    pwsp_text_format(output, "kv tokens read: %llu, flat %llu",
                     (unsigned long long)plan->kv_token_reads,
                     (unsigned long long)plan->flat_kv_token_reads);
    if (plan->flat_kv_token_reads > 0) {
        pwsp_text_format(
            output, ", ratio %s",
            pwsp_fixed((double)plan->kv_token_reads / (double)plan->flat_kv_token_reads, 4).text);
    }
    pwsp_text_format(output, "\npredicted: cost %s, flat %s; time %s, flat %s\n",
                     pwsp_general(plan->cost, 6).text, pwsp_general(plan->flat_cost, 6).text,
                     pwsp_general(plan->time, 6).text, pwsp_general(plan->flat_time, 6).text);
    ptowsp_attention_print(&plan->attention, output);
}
