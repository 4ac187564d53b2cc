// Collectives, worked out as the manual has them: what each member gives and gets, bit for bit, sums in
// the documented order. Elements depend on rank and place alone, so each rank knows those of all.

#ifndef PTOWSP_COLLECTIVE_REFERENCE_H
#define PTOWSP_COLLECTIVE_REFERENCE_H

#include "test.h"

#include <math.h>

enum { P_MAX = 7, COUNT_MAX = 200 };

static const ptowsp_collective_kind collective_kinds[] = {
    PTOWSP_ALL_REDUCE, PTOWSP_REDUCE_SCATTER, PTOWSP_ALL_GATHER, PTOWSP_ALL_TO_ALL,
    PTOWSP_BROADCAST,  PTOWSP_SEND,           PTOWSP_SLICE};

static inline bool collective_has(ptowsp_collective_kind kind, ptowsp_algorithm algorithm) {
    return kind == PTOWSP_SEND || kind == PTOWSP_SLICE ? algorithm == PTOWSP_ALGORITHM_DIRECT
           : kind == PTOWSP_ALL_TO_ALL
               ? algorithm == PTOWSP_ALGORITHM_DIRECT || algorithm == PTOWSP_ALGORITHM_RING
               : true;
}

// Element e of rank r, as a double that all types hold.
static inline double collective_value_of(const ptowsp_collective *c, uint32_t r, uint64_t e) {
    uint64_t seed = r * UINT64_C(1000003) + e * 97 + c->count * 13 + c->members;
    const double unit = (double)(test_random(&seed) % 2001) - 1000;
    switch (c->dtype) {
    case PTOWSP_I8: return (double)((int)unit % 100);
    case PTOWSP_U32:
    case PTOWSP_U64: return fabs(unit) * 4000000;
    case PTOWSP_I32: return unit * 2000000;
    case PTOWSP_F16: return ptowsp_f32_from_f16(test_half_of(PTOWSP_F16, unit / 7));
    case PTOWSP_BF16: return ptowsp_f32_from_bf16(test_half_of(PTOWSP_BF16, unit / 7));
    case PTOWSP_F32: return (float)(unit / 7);
    default: return unit;
    }
}

static inline double collective_combine(const ptowsp_collective *c, double a, double b) {
    if (c->reduction != PTOWSP_REDUCTION_SUM) {
        return c->reduction == PTOWSP_REDUCTION_MAX ? (a > b ? a : b) : (a < b ? a : b);
    }
    switch (c->dtype) {
    case PTOWSP_F32: return (float)a + (float)b;
    case PTOWSP_F16:
        return ptowsp_f32_from_f16(test_half_of(PTOWSP_F16, (double)((float)a + (float)b)));
    case PTOWSP_BF16:
        return ptowsp_f32_from_bf16(test_half_of(PTOWSP_BF16, (double)((float)a + (float)b)));
    case PTOWSP_I32: return (int32_t)(uint32_t)(int64_t)(a + b);
    case PTOWSP_U32: return (uint32_t)(int64_t)(a + b);
    case PTOWSP_I8: return (int8_t)(uint8_t)(int64_t)(a + b);
    default: return a + b;
    }
}

static inline uint64_t collective_part_at(const ptowsp_collective *c, uint32_t i) {
    uint64_t at = 0;
    for (uint32_t k = 0; k < i; k++) {
        at += c->count / c->members + (k < c->count % c->members);
    }
    return at;
}

static inline uint32_t collective_part_of(const ptowsp_collective *c, uint64_t e) {
    uint32_t part = 0;
    while (e >= collective_part_at(c, part + 1)) {
        part++;
    }
    return part;
}

static inline double collective_tree(const ptowsp_collective *c, const double *x, uint32_t n) {
    return n == 1 ? x[0]
                  : collective_combine(c, collective_tree(c, x, n / 2),
                                       collective_tree(c, x + n / 2, n / 2));
}

// The documented order.
static inline double collective_reduced(const ptowsp_collective *c, uint64_t e) {
    const uint32_t p = c->members, part = collective_part_of(c, e),
                   m = c->node_size ? c->node_size : 1;
    double x[P_MAX], y[P_MAX], sum = 0;
    for (uint32_t r = 0; r < p; r++) {
        x[r] = collective_value_of(c, r, e);
    }
    if (c->algorithm == PTOWSP_ALGORITHM_DIRECT || c->algorithm == PTOWSP_ALGORITHM_RING) {
        const uint32_t first = c->algorithm == PTOWSP_ALGORITHM_RING ? part + 1 : 0;
        sum = x[first % p];
        for (uint32_t k = 1; k < p; k++) {
            sum = collective_combine(c, sum, x[(first + k) % p]);
        }
        return sum;
    }
    if (c->algorithm == PTOWSP_ALGORITHM_HIERARCHICAL) {
        for (uint32_t q = 0; q < p / m; q++) {
            y[q] = x[q * m + (part + 1) % m];
            for (uint32_t k = 2; k <= m; k++) {
                y[q] = collective_combine(c, y[q], x[q * m + (part + k) % m]);
            }
        }
        sum = y[(part / m + 1) % (p / m)];
        for (uint32_t k = 2; k <= p / m; k++) {
            sum = collective_combine(c, sum, y[(part / m + k) % (p / m)]);
        }
        return sum;
    }
    uint32_t q = 1;
    while (2 * q <= p) {
        q *= 2;
    }
    for (uint32_t v = 0; v < q; v++) {
        y[v] = v < p - q ? collective_combine(c, x[2 * v], x[2 * v + 1]) : x[v + p - q];
    }
    if (c->kind == PTOWSP_ALL_REDUCE) {
        return collective_tree(c, y, q);
    }
    for (uint32_t half = q / 2; half > 0; half /= 2) {
        for (uint32_t v = 0; v < half; v++) {
            y[v] = collective_combine(c, y[v], y[v + half]);
        }
    }
    return y[0];
}

// What a member has and must get, as doubles.
static inline void collective_expect(const ptowsp_collective *c, uint32_t me, double *in,
                                     uint64_t *in_count, double *out, uint64_t *out_count) {
    const uint64_t begin = collective_part_at(c, me), end = collective_part_at(c, me + 1);
    uint64_t ins = 0, outs = 0;
    const bool is_gather = c->kind == PTOWSP_ALL_GATHER, is_whole = c->kind == PTOWSP_ALL_REDUCE;
    const bool has_root = c->kind == PTOWSP_BROADCAST || c->kind == PTOWSP_SEND;
    for (uint64_t e = is_gather ? begin : 0; e < (is_gather ? end : c->count); e++) {
        if (!has_root || me == c->root) {
            in[ins++] = collective_value_of(c, me, e);
        }
    }
    switch (c->kind) {
    case PTOWSP_ALL_REDUCE:
    case PTOWSP_REDUCE_SCATTER:
        for (uint64_t e = is_whole ? 0 : begin; e < (is_whole ? c->count : end); e++) {
            out[outs++] = collective_reduced(c, e);
        }
        break;
    case PTOWSP_ALL_GATHER:
        for (uint64_t e = 0; e < c->count; e++) {
            out[outs++] = collective_value_of(c, collective_part_of(c, e), e);
        }
        break;
    case PTOWSP_ALL_TO_ALL:
        if (c->counts) {
            for (uint32_t d = 0; d < c->members; d++) {
                for (uint64_t k = 0; k < c->counts[me * c->members + d]; k++) {
                    in[ins++] = collective_value_of(c, me * 100 + d, k);
                }
            }
        }
        for (uint32_t s = 0; s < c->members; s++) {
            for (uint64_t k = 0; c->counts && k < c->counts[s * c->members + me]; k++) {
                out[outs++] = collective_value_of(c, s * 100 + me, k);
            }
            for (uint64_t e = begin; !c->counts && e < end; e++) {
                out[outs++] = collective_value_of(c, s, e);
            }
        }
        break;
    case PTOWSP_SLICE:
        for (uint64_t e = begin; e < end; e++) {
            out[outs++] = collective_value_of(c, me, e);
        }
        break;
    default:
        for (uint64_t e = 0; (c->kind == PTOWSP_BROADCAST || me == c->target) && e < c->count;
             e++) {
            out[outs++] = collective_value_of(c, c->root, e);
        }
    }
    *in_count = ins;
    *out_count = outs;
}

// Runs a collective on this rank, in one call or by polling. Says whether what came out is right, and
// nothing behind it is written.
static inline ptowsp_status collective_run(ptowsp_ranks *ranks, const ptowsp_collective *c,
                                           bool is_polled, bool *out_is_right) {
    static const size_t room = 16 * COUNT_MAX;
    double *in = (double *)malloc(2 * room * sizeof *in), *out = in + room;
    char *data = (char *)malloc(4 * room * 8), *made = data + room * 8, *due = made + room * 8;
    const uint32_t stride = c->stride ? c->stride : 1, size = ptowsp_dtype_size(c->dtype);
    uint64_t in_count = 0, out_count = 0;
    collective_expect(c, (ptowsp_ranks_rank(ranks) - c->first) / stride, in, &in_count, out,
                      &out_count);
    ptowsp_convert(data, c->dtype, in, PTOWSP_F64, in_count);
    ptowsp_convert(due, c->dtype, out, PTOWSP_F64, out_count);
    memset(made, 0x5a, room * 8);
    const bool in_place = c->kind == PTOWSP_ALL_REDUCE && c->count % 2;
    if (in_place) {
        memcpy(made, data, in_count * size);
    }
    ptowsp_status status = PTOWSP_OK;
    if (is_polled) {
        status = ptowsp_ranks_start(ranks, c, in_place ? made : data, made);
        for (bool is_done = false; status == PTOWSP_OK && !is_done; sched_yield()) {
            status = ptowsp_ranks_poll(ranks, &is_done);
        }
    } else {
        status = ptowsp_ranks_run(ranks, c, in_place ? made : data, made);
    }
    *out_is_right = status == PTOWSP_OK && memcmp(made, due, out_count * size) == 0 &&
                    made[out_count * size] == 0x5a;
    free(in);
    free(data);
    return status;
}

#endif
