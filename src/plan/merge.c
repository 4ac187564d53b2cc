// The log-sum-exp merge of partial attention states.
//
// A whole row is merged in two steps: first the largest m of all parts, then
//
//      weight[i] = exp(m[i] - m)
//      out[d] = (sum of weight[i] * acc[i][d]) / (sum of weight[i] * l[i])
//
// in the order of the parts. So each acc is read once, no sum is ever rescaled, and every weight is
// at most 1. The row is summed in strips that stay in registers over up to PWSP_MERGE_PARTS parts.

#include "../base/cpu.h"
#include "../base/math.h"

#define PWSP_MERGE_PARTS 64

// Parts that are not empty, at most PWSP_MERGE_PARTS of them.
typedef struct pwsp_merge_parts {
    uint32_t count;
    bool is_added;  // parts before these are in the sum already
    float weights[PWSP_MERGE_PARTS];
    const float *rows[PWSP_MERGE_PARTS];
} pwsp_merge_parts;

// sum[d] += weights[0] * rows[0][d] + weights[1] * rows[1][d] + ...
#if !defined(PTOWSP_NO_SIMD)

typedef float pwsp_floats __attribute__((vector_size(64), aligned(4), may_alias));

// The same number in all places. (A float beside a vector would be converted to it, but is a double
// before that where FLT_EVAL_METHOD is not 0.)
#define PWSP_FLOATS_OF(x)                                                                          \
    { x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x }

PWSP_FORCE_INLINE void pwsp_merge_sum_body(const pwsp_merge_parts *parts, uint32_t dim,
                                           float *PWSP_RESTRICT sum) {
    PWSP_ROUND_APART;
    uint32_t d = 0;
    for (; d + 32 <= dim; d += 32) {
        pwsp_floats *strip = (pwsp_floats *)(void *)(sum + d);
        pwsp_floats low = strip[0], high = strip[1];
        for (uint32_t i = 0; i < parts->count; i++) {
            const pwsp_floats *row = (const pwsp_floats *)(const void *)(parts->rows[i] + d);
            const pwsp_floats weight = PWSP_FLOATS_OF(parts->weights[i]);
            low += weight * row[0];
            high += weight * row[1];
        }
        strip[0] = low;
        strip[1] = high;
    }
    for (; d < dim; d++) {
        for (uint32_t i = 0; i < parts->count; i++) {
            sum[d] += parts->weights[i] * parts->rows[i][d];
        }
    }
}

// out[d] = acc[d] / l
PWSP_FORCE_INLINE void pwsp_merge_divide_body(const float *acc, float l, uint32_t dim, float *out) {
    const pwsp_floats divisor = PWSP_FLOATS_OF(l);
    uint32_t d = 0;
    for (; d + 16 <= dim; d += 16) {
        *(pwsp_floats *)(void *)(out + d) = *(const pwsp_floats *)(const void *)(acc + d) / divisor;
    }
    for (; d < dim; d++) {
        out[d] = acc[d] / l;
    }
}

#else

PWSP_FORCE_INLINE void pwsp_merge_divide_body(const float *acc, float l, uint32_t dim, float *out) {
    for (uint32_t d = 0; d < dim; d++) {
        out[d] = acc[d] / l;
    }
}

PWSP_FORCE_INLINE void pwsp_merge_sum_body(const pwsp_merge_parts *parts, uint32_t dim,
                                           float *PWSP_RESTRICT sum) {
    PWSP_ROUND_APART;
    for (uint32_t i = 0; i < parts->count; i++) {
        for (uint32_t d = 0; d < dim; d++) {
            sum[d] += parts->weights[i] * parts->rows[i][d];
        }
    }
}

#endif

#if PWSP_X86

PWSP_AVX512 static void pwsp_merge_sum_avx512(const pwsp_merge_parts *parts, uint32_t dim,
                                              float *sum) {
    pwsp_merge_sum_body(parts, dim, sum);
}

PWSP_AVX2 static void pwsp_merge_sum_avx2(const pwsp_merge_parts *parts, uint32_t dim, float *sum) {
    pwsp_merge_sum_body(parts, dim, sum);
}

PWSP_AVX512 static void pwsp_merge_divide_avx512(const float *acc, float l, uint32_t dim,
                                                 float *out) {
    pwsp_merge_divide_body(acc, l, dim, out);
}

#endif

static void pwsp_merge_divide(const float *acc, float l, uint32_t dim, float *out) {
#if PWSP_X86
    if (pwsp_cpu_has_avx512()) {
        pwsp_merge_divide_avx512(acc, l, dim, out);
        return;
    }
#endif
    pwsp_merge_divide_body(acc, l, dim, out);
}

static void pwsp_merge_sum(const pwsp_merge_parts *parts, uint32_t dim, float *sum) {
#if PWSP_X86
    if (pwsp_cpu_has_avx512()) {
        pwsp_merge_sum_avx512(parts, dim, sum);
        return;
    }
    if (pwsp_cpu_has_avx2()) {
        pwsp_merge_sum_avx2(parts, dim, sum);
        return;
    }
#endif
    pwsp_merge_sum_body(parts, dim, sum);
}

static bool pwsp_partial_is_empty(const ptowsp_partial *state) {
    return state->m == -pwsp_infinity();
}

void ptowsp_merge_clear(ptowsp_partial *state, float *acc, uint32_t dim) {
    if (!state || (dim > 0 && !acc)) {
        return;
    }
    state->m = -pwsp_infinity();
    state->l = 0.0f;
    if (dim > 0) {  // acc may be NULL
        memset(acc, 0, dim * sizeof *acc);
    }
}

void ptowsp_merge_add(ptowsp_partial *state, float *acc, const ptowsp_partial *part,
                      const float *part_acc, uint32_t dim) {
    PWSP_ROUND_APART;
    if (!state || !part || (dim > 0 && (!acc || !part_acc))) {
        return;
    }
    if (pwsp_partial_is_empty(part)) {
        return;
    }
    if (pwsp_partial_is_empty(state)) {
        *state = *part;
        if (dim > 0) {
            memcpy(acc, part_acc, dim * sizeof *acc);
        }
        return;
    }
    float weight = 1.0f;
    if (part->m > state->m) {
        float factor = pwsp_exp(state->m - part->m);
        state->m = part->m;
        state->l *= factor;
        for (uint32_t d = 0; d < dim; d++) {
            acc[d] *= factor;
        }
    } else {
        weight = pwsp_exp(part->m - state->m);
    }
    state->l += weight * part->l;
    pwsp_merge_parts parts;
    parts.count = 1;
    parts.weights[0] = weight;
    parts.rows[0] = part_acc;
    pwsp_merge_sum(&parts, dim, acc);
}

float ptowsp_merge_finish(const ptowsp_partial *state, const float *acc, uint32_t dim, float *out) {
    if (!state || (dim > 0 && (!acc || !out))) {
        return 0;
    }
    if (pwsp_partial_is_empty(state)) {
        if (dim > 0) {
            memset(out, 0, dim * sizeof *out);
        }
        return -pwsp_infinity();
    }
    pwsp_merge_divide(acc, state->l, dim, out);
    return state->m + pwsp_log(state->l);
}

// A row comes in one or several runs of parts. First m is raised over all of them,
static void pwsp_merge_raise(ptowsp_partial *whole, const ptowsp_partial *states,
                             uint32_t part_count, size_t stride) {
    for (uint32_t i = 0; i < part_count; i++) {
        float m = states[i * stride].m;
        whole->m = m > whole->m || m != m ? m : whole->m;
    }
}

// then they are taken, and whenever there are many of them, added to out.
static void pwsp_merge_take(ptowsp_partial *whole, pwsp_merge_parts *parts,
                            const ptowsp_partial *states, const float *accs, uint32_t part_count,
                            size_t stride, uint32_t dim, float *out) {
    PWSP_ROUND_APART;
    float ls[PWSP_MERGE_PARTS];
    for (uint32_t i = 0; i < part_count;) {
        if (parts->count == PWSP_MERGE_PARTS) {
            pwsp_merge_sum(parts, dim, out);
            parts->count = 0;
            parts->is_added = true;
        }
        const uint32_t first = parts->count;
        for (; i < part_count && parts->count < PWSP_MERGE_PARTS; i++) {
            const ptowsp_partial *part = &states[i * stride];
            if (!pwsp_partial_is_empty(part)) {
                ls[parts->count] = part->l;
                parts->weights[parts->count] = part->m - whole->m;
                parts->rows[parts->count++] = dim > 0 ? accs + i * stride * dim : accs;
            }
        }
        pwsp_exp_each(parts->weights + first, parts->count - first);
        for (uint32_t k = first; k < parts->count; k++) {
            whole->l += parts->weights[k] * ls[k];
        }
    }
}

// Then the rest is added, and the row finished. A single part keeps its bits: a sum from 0 would make 0 of
// its -0.
static float pwsp_merge_end(const ptowsp_partial *whole, const pwsp_merge_parts *parts,
                            uint32_t dim, float *out) {
    if (parts->count == 1 && !parts->is_added) {
        return ptowsp_merge_finish(whole, parts->rows[0], dim, out);
    }
    pwsp_merge_sum(parts, dim, out);
    return ptowsp_merge_finish(whole, out, dim, out);
}

float ptowsp_merge_partials(const ptowsp_partial *states, const float *accs, uint32_t part_count,
                            size_t stride, uint32_t dim, float *out) {
    if ((part_count > 0 && !states) || (dim > 0 && (!out || (part_count > 0 && !accs)))) {
        return 0;
    }
    ptowsp_partial whole = {0.0f, 0.0f};
    ptowsp_merge_clear(&whole, out, dim);
    pwsp_merge_raise(&whole, states, part_count, stride);
    if (pwsp_partial_is_empty(&whole)) {
        return -pwsp_infinity();
    }
    pwsp_merge_parts parts;
    parts.count = 0;
    parts.is_added = false;
    pwsp_merge_take(&whole, &parts, states, accs, part_count, stride, dim, out);
    return pwsp_merge_end(&whole, &parts, dim, out);
}

// Has it all pointers that a row needs, and is there one for the result?
static bool pwsp_scratch_is_whole(const ptowsp_attention_scratch *scratch, const float *out) {
    return scratch && scratch->states && (scratch->dim == 0 || (scratch->accs && out));
}

float ptowsp_attention_merge_row(const ptowsp_attention_scratch *scratch,
                                 const PTOWSP_GM ptowsp_work *merge, uint32_t row, float *out) {
    if (!merge || !pwsp_scratch_is_whole(scratch, out)) {
        return 0;
    }
    PTOWSP_ASSERT(row < scratch->rows);
    uint32_t first = ptowsp_work_slot_first(merge);
    const ptowsp_partial *states = ptowsp_attention_states(scratch, first) + row;
    const float *accs = scratch->accs;  // may be NULL where dim is 0
    if (scratch->dim > 0) {
        accs = ptowsp_attention_accs(scratch, first) + (size_t)row * scratch->dim;
    }
    return ptowsp_merge_partials(states, accs, ptowsp_work_slot_count(merge), scratch->rows,
                                 scratch->dim, out);
}

// -- joins ----------------------------------------------------------------------------------------

// Segments of a row, by depth, that are looked up at a time.
#define PWSP_JOIN_SEGMENTS 64

// A run of parts of a row: the slots of a segment.
typedef struct pwsp_join_run {
    const ptowsp_partial *states;
    const float *accs;
    uint32_t count;
} pwsp_join_run;

// A row of a join.
typedef struct pwsp_join_query {
    const ptowsp_prefix_plan *plan;
    const ptowsp_attention_scratch *scratch;
    uint32_t position, head;
    uint32_t token;  // among the plan's tokens
    uint32_t group_row;
} pwsp_join_query;

// The slots of a segment that have the row.
static pwsp_join_run pwsp_join_run_of(const pwsp_join_query *query,
                                      const ptowsp_prefix_segment *segment) {
    const ptowsp_attention_plan *plan = &query->plan->attention;
    pwsp_join_run run = {NULL, NULL, 0};
    if (segment->kv_begin >= segment->kv_end) {
        return run;
    }
    const uint32_t token = query->token - segment->token_begin, tile = token / plan->tile_tokens;
    const uint32_t tiles = (segment->token_count - 1) / plan->tile_tokens + 1;
    const uint32_t entry = segment->merge_begin + query->head * tiles + tile;
    const uint32_t first = ptowsp_work_slot_first(&plan->merges[entry]);
    const uint32_t row = token % plan->tile_tokens * plan->group + query->group_row;
    PTOWSP_ASSERT(row < query->scratch->rows && !segment->is_whole);
    run.count = ptowsp_work_slot_count(&plan->merges[entry]);
    run.states = ptowsp_attention_states(query->scratch, first) + row;
    run.accs = query->scratch->accs;  // may be NULL where dim is 0
    if (query->scratch->dim > 0) {
        run.accs = ptowsp_attention_accs(query->scratch, first) + (size_t)row * query->scratch->dim;
    }
    return run;
}

// Finds the runs of the row from depth `depth` on, at most PWSP_JOIN_SEGMENTS, from the top.
static uint32_t pwsp_join_runs(const pwsp_join_query *query, uint32_t depth, uint32_t depth_max,
                               pwsp_join_run *runs) {
    const ptowsp_prefix_segment *segments = query->plan->segments;
    const uint32_t end =
        depth_max - depth < PWSP_JOIN_SEGMENTS ? depth_max + 1 : depth + PWSP_JOIN_SEGMENTS;
    uint32_t i = query->plan->requests[query->position].segment;
    for (uint32_t at = depth_max + 1; at > depth; at--, i = segments[i].parent) {
        if (at <= end) {
            runs[at - 1 - depth] = pwsp_join_run_of(query, &segments[i]);
        }
    }
    return end - depth;
}

float ptowsp_prefix_join_row(const ptowsp_prefix_plan *plan,
                             const ptowsp_attention_scratch *scratch,
                             const PTOWSP_GM ptowsp_work *join, uint32_t row, float *out) {
    if (!plan || !plan->requests || !plan->segments || !join ||
        !pwsp_scratch_is_whole(scratch, out)) {
        return 0;
    }
    PTOWSP_ASSERT(plan->attention.group > 0);
    const uint32_t group = plan->attention.group, position = join->params[2];
    const pwsp_join_query query = {plan,
                                   scratch,
                                   position,
                                   join->params[1],
                                   plan->requests[position].token_begin + row / group,
                                   row % group};
    PTOWSP_ASSERT(query.token < plan->requests[position + 1].token_begin);
    uint32_t depth_max = 0;
    const uint32_t last = plan->requests[position].segment;
    for (uint32_t i = plan->segments[last].parent; i != PTOWSP_NO_NODE;
         i = plan->segments[i].parent) {
        depth_max++;
    }
    pwsp_join_run runs[PWSP_JOIN_SEGMENTS];
    ptowsp_partial whole;
    pwsp_merge_parts parts;
    parts.count = 0;
    parts.is_added = false;
    ptowsp_merge_clear(&whole, out, scratch->dim);
    uint32_t count = 0;
    for (uint32_t depth = 0; depth <= depth_max; depth += count) {
        count = pwsp_join_runs(&query, depth, depth_max, runs);
        for (uint32_t i = 0; i < count; i++) {
            pwsp_merge_raise(&whole, runs[i].states, runs[i].count, scratch->rows);
        }
    }
    if (pwsp_partial_is_empty(&whole)) {
        return -pwsp_infinity();
    }
    for (uint32_t depth = 0; depth <= depth_max; depth += count) {
        if (depth_max >= PWSP_JOIN_SEGMENTS) {  // otherwise they are all there
            count = pwsp_join_runs(&query, depth, depth_max, runs);
        }
        for (uint32_t i = 0; i < count; i++) {
            pwsp_merge_take(&whole, &parts, runs[i].states, runs[i].accs, runs[i].count,
                            scratch->rows, scratch->dim, out);
        }
    }
    return pwsp_merge_end(&whole, &parts, scratch->dim, out);
}
