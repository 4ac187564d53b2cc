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
    float weights[PWSP_MERGE_PARTS];
    const float *rows[PWSP_MERGE_PARTS];
} pwsp_merge_parts;

// sum[d] += weights[0] * rows[0][d] + weights[1] * rows[1][d] + ...
#if !defined(PTOWSP_NO_SIMD)

typedef float pwsp_floats __attribute__((vector_size(64), aligned(4), may_alias));

PWSP_FORCE_INLINE void pwsp_merge_sum_body(const pwsp_merge_parts *parts, uint32_t dim,
                                           float *PWSP_RESTRICT sum) {
    PWSP_ROUND_APART;
    uint32_t d = 0;
    for (; d + 32 <= dim; d += 32) {
        pwsp_floats *strip = (pwsp_floats *)(void *)(sum + d);
        pwsp_floats low = strip[0], high = strip[1];
        for (uint32_t i = 0; i < parts->count; i++) {
            const pwsp_floats *row = (const pwsp_floats *)(const void *)(parts->rows[i] + d);
            low += parts->weights[i] * row[0];
            high += parts->weights[i] * row[1];
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

#else

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

#endif

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
    state->m = -pwsp_infinity();
    state->l = 0.0f;
    if (dim > 0) {  // acc may be NULL
        memset(acc, 0, dim * sizeof *acc);
    }
}

void ptowsp_merge_add(ptowsp_partial *state, float *acc, const ptowsp_partial *part,
                      const float *part_acc, uint32_t dim) {
    PWSP_ROUND_APART;
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
    if (pwsp_partial_is_empty(state)) {
        if (dim > 0) {
            memset(out, 0, dim * sizeof *out);
        }
        return -pwsp_infinity();
    }
    for (uint32_t d = 0; d < dim; d++) {
        out[d] = acc[d] / state->l;
    }
    return state->m + pwsp_log(state->l);
}

float ptowsp_merge_partials(const ptowsp_partial *states, const float *accs, uint32_t part_count,
                            size_t stride, uint32_t dim, float *out) {
    PWSP_ROUND_APART;
    ptowsp_partial whole;
    ptowsp_merge_clear(&whole, out, dim);
    for (uint32_t i = 0; i < part_count; i++) {
        float m = states[i * stride].m;
        whole.m = m > whole.m || m != m ? m : whole.m;
    }
    if (pwsp_partial_is_empty(&whole)) {
        return -pwsp_infinity();
    }
    pwsp_merge_parts parts;
    parts.count = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        const ptowsp_partial *part = &states[i * stride];
        if (!pwsp_partial_is_empty(part)) {
            float weight = pwsp_exp(part->m - whole.m);
            whole.l += weight * part->l;
            parts.weights[parts.count] = weight;
            parts.rows[parts.count++] = dim > 0 ? accs + i * stride * dim : accs;
        }
        if (parts.count == PWSP_MERGE_PARTS || i + 1 == part_count) {
            pwsp_merge_sum(&parts, dim, out);
            parts.count = 0;
        }
    }
    return ptowsp_merge_finish(&whole, out, dim, out);
}

float ptowsp_attention_merge_row(const ptowsp_attention_scratch *scratch,
                                 const PTOWSP_GM ptowsp_work *merge, uint32_t row, float *out) {
    PTOWSP_ASSERT(row < scratch->rows);
    const uint32_t first = ptowsp_work_slot_first(merge);
    const ptowsp_partial *states = ptowsp_attention_states(scratch, first) + row;
    const float *accs = ptowsp_attention_accs(scratch, first) + (size_t)row * scratch->dim;
    return ptowsp_merge_partials(states, accs, ptowsp_work_slot_count(merge), scratch->rows,
                                 scratch->dim, out);
}
