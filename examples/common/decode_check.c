// The check: plain softmax attention in double precision, in two passes over the KV, from the
// layout's definition and apart from the kernel's addressing.

#include "command.h"
#include "decode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REFERENCE_ROWS = 32 };  // that share the reading of a request's KV

// Buffers of one thread.
typedef struct reference_lane {
    double *scores;  // [REFERENCE_ROWS][length_max]
    double queries[REFERENCE_ROWS][PTOWSP_ATTEND_DIM_MAX];
    double sums[REFERENCE_ROWS][PTOWSP_ATTEND_DIM_MAX];
    double errors[2];  // of the attention plan and of the chunk plan
} reference_lane;

typedef struct reference {
    decode_step *s;
    uint64_t *starts;  // [request + 1]: items before it; one item is REFERENCE_ROWS of a KV head
    reference_lane *lanes;
    uint64_t started_ns;
    int percent_shown;
    bool has_bar;  // stderr is a terminal; others get a line now and then
} reference;

// Rows of a request's KV head that are computed together.
typedef struct reference_rows {
    uint32_t request, kv_head;
    uint32_t first, count;  // row = query token * group + query head
} reference_rows;

// Converts a token's key or value to doubles. The pool is [page][kv_head][K or V][slot][dim], and
// under MLA [page][slot][dim], where a value is the first part of its key.
static void reference_token(const decode_step *s, const reference_rows *rows, bool is_value,
                            uint64_t token, double *out) {
    uint64_t page = s->pages[s->page_starts[rows->request] + token / s->o.page];
    uint64_t slot = token % s->o.page;
    uint64_t plane = (page * s->o.kv_heads + rows->kv_head) * 2 + is_value;
    uint64_t at =
        s->o.is_mla ? (page * s->o.page + slot) * 576 : (plane * s->o.page + slot) * s->o.dim;
    uint32_t dim = is_value ? s->value_dim : s->key_dim;
    double scale =
        s->o.type == PTOWSP_ATTEND_I8
            ? (double)s->scales[(page * s->o.kv_heads + rows->kv_head) * s->o.page + slot]
            : 1.0;
    for (uint32_t d = 0; d < dim; d++, at++) {
        switch (s->o.type) {
        case PTOWSP_ATTEND_F32: out[d] = (double)((const float *)s->pool)[at]; break;
        case PTOWSP_ATTEND_F16:
            out[d] = (double)ptowsp_f32_from_f16(((const uint16_t *)s->pool)[at]);
            break;
        case PTOWSP_ATTEND_BF16:
            out[d] = (double)ptowsp_f32_from_bf16(((const uint16_t *)s->pool)[at]);
            break;
        default: out[d] = (double)((const int8_t *)s->pool)[at] * scale; break;
        }
    }
}

static double reference_dot(const double *a, const double *b, uint32_t dim) {
    double sums[8] = {0};
    for (uint32_t d = 0; d < dim; d += 8) {
        for (uint32_t i = 0; i < 8; i++) {
            sums[i] += a[d + i] * b[d + i];
        }
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The end of the tokens that a row sees: under the causal mask the queries are the last tokens.
static uint32_t reference_end(const decode_step *s, const reference_rows *rows, uint32_t row) {
    uint32_t length = (uint32_t)s->kv_lengths[rows->request];
    uint32_t after = decode_query_length(s, rows->request) - 1 - (rows->first + row) / s->group;
    return s->o.is_prefill ? length - after : length;
}

static size_t reference_head(const decode_step *s, const reference_rows *rows, uint32_t row) {
    size_t token = decode_query_start(s, rows->request) + (size_t)(rows->first + row) / s->group;
    return token * s->o.heads + (size_t)rows->kv_head * s->group + (rows->first + row) % s->group;
}

// Scores of all rows, and then the sums that their softmax weighs, not divided yet. Rows see their
// tokens from the first on, so the last row sees most.
static void reference_compute(const decode_step *s, const reference_rows *rows,
                              reference_lane *lane, double *totals) {
    double values[PTOWSP_ATTEND_DIM_MAX], tops[REFERENCE_ROWS];
    uint32_t end = reference_end(s, rows, rows->count - 1), dim = s->key_dim;
    for (uint32_t r = 0; r < rows->count; r++) {
        const float *query = s->queries + reference_head(s, rows, r) * dim;
        for (uint32_t d = 0; d < dim; d++) {
            lane->queries[r][d] = (double)query[d];
        }
        memset(lane->sums[r], 0, sizeof lane->sums[r]);
        tops[r] = -INFINITY;
        totals[r] = 0.0;
    }
    for (uint32_t t = 0; t < end; t++) {
        reference_token(s, rows, false, t, values);
        for (uint32_t r = 0; r < rows->count; r++) {
            if (t < reference_end(s, rows, r)) {
                double score = reference_dot(lane->queries[r], values, dim) / sqrt((double)dim);
                lane->scores[(size_t)t * REFERENCE_ROWS + r] = score;
                tops[r] = score > tops[r] ? score : tops[r];
            }
        }
    }
    for (uint32_t t = 0; t < end; t++) {
        reference_token(s, rows, true, t, values);
        for (uint32_t r = 0; r < rows->count; r++) {
            if (t < reference_end(s, rows, r)) {
                double weight = exp(lane->scores[(size_t)t * REFERENCE_ROWS + r] - tops[r]);
                totals[r] += weight;
                for (uint32_t d = 0; d < s->value_dim; d++) {
                    lane->sums[r][d] += weight * values[d];
                }
            }
        }
    }
}

// The larger error; NaN is larger than all.
static double reference_worse(double a, double b) {
    return isnan(a) || a >= b ? a : b;
}

// The error of an output row, relative to the largest magnitude in it.
static double reference_error(const double *sum, double total, const float *output, uint32_t dim) {
    double largest = 0.0, difference = 0.0;
    for (uint32_t d = 0; d < dim; d++) {
        double exact = total > 0.0 ? sum[d] / total : 0.0;
        largest = fmax(largest, fabs(exact));
        difference = reference_worse(difference, fabs(exact - (double)output[d]));
    }
    return difference == 0.0 ? 0.0 : difference / largest;
}

static void reference_check(reference *r, const reference_rows *rows, reference_lane *lane) {
    const decode_step *s = r->s;
    double totals[REFERENCE_ROWS];
    reference_compute(s, rows, lane, totals);
    const decode_run *runs[2] = {&s->balanced, &s->chunks};
    for (uint32_t i = 0; i < (s->has_chunks ? 2u : 1u); i++) {
        for (uint32_t k = 0; k < rows->count; k++) {
            const float *output = runs[i]->outputs + reference_head(s, rows, k) * s->value_dim;
            double error = reference_error(lane->sums[k], totals[k], output, s->value_dim);
            lane->errors[i] = reference_worse(lane->errors[i], error);
        }
    }
}

// Shown once the check has taken a second, by lane 0, the main thread: a bar, or a line each 20 %.
static void reference_progress(reference *r, uint64_t done, uint64_t item_count) {
    enum { WIDTH = 40, LINE_PERCENT = 20 };
    int percent = (int)(done * 100 / item_count);
    percent -= r->has_bar ? 0 : percent % LINE_PERCENT;
    if (r->s->o.is_json || percent == 0 || percent == r->percent_shown ||
        ptowsp_clock_ns() - r->started_ns < UINT64_C(1000000000)) {
        return;
    }
    r->percent_shown = percent;
    if (r->has_bar) {
        int full = percent * WIDTH / 100;
        fprintf(stderr, "\rchecking [%.*s%*s] %3d %%", full,
                "########################################", WIDTH - full, "", percent);
    } else {
        fprintf(stderr, "checking: %d %%\n", percent);
    }
    fflush(stderr);
}

// Items of a KV head of a request.
static uint64_t reference_groups(const decode_step *s, uint32_t request) {
    return ((uint64_t)decode_query_length(s, request) * s->group + REFERENCE_ROWS - 1) /
           REFERENCE_ROWS;
}

static void reference_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    reference *r = (reference *)user;
    const decode_step *s = r->s;
    uint32_t request = 0;
    for (uint64_t item = begin; item < end; item++) {
        if (lane == 0) {
            reference_progress(r, item, r->starts[s->sequence_count]);
        }
        while (r->starts[request + 1] <= item) {
            request++;
        }
        uint64_t groups = reference_groups(s, request), at = item - r->starts[request];
        uint32_t row_count = decode_query_length(s, request) * s->group;
        uint32_t first = (uint32_t)(at % groups) * REFERENCE_ROWS, left = row_count - first;
        reference_rows rows = {request, (uint32_t)(at / groups), first,
                               left < REFERENCE_ROWS ? left : REFERENCE_ROWS};
        reference_check(r, &rows, &r->lanes[lane]);
    }
}

void decode_check(decode_step *s) {
    uint32_t lane_count = ptowsp_context_lane_count(s->context);
    reference r = {s, NULL, NULL, ptowsp_clock_ns(), -1, isatty(2) != 0};
    r.lanes = (reference_lane *)command_allocate(lane_count, sizeof *r.lanes);
    r.starts = (uint64_t *)command_allocate((uint64_t)s->sequence_count + 1, sizeof *r.starts);
    for (uint32_t i = 0; i < s->sequence_count; i++) {
        r.starts[i + 1] = r.starts[i] + reference_groups(s, i) * s->o.kv_heads;
    }
    for (uint32_t i = 0; i < lane_count; i++) {
        r.lanes[i].scores =
            (double *)command_allocate((uint64_t)s->length_max * REFERENCE_ROWS, sizeof(double));
    }
    command_check(s->context, ptowsp_parallel_for(s->context, r.starts[s->sequence_count], 1,
                                                  reference_range, &r));
    decode_run *runs[2] = {&s->balanced, &s->chunks};
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        for (uint32_t i = 0; i < 2; i++) {
            runs[i]->error = reference_worse(runs[i]->error, r.lanes[lane].errors[i]);
        }
        free(r.lanes[lane].scores);
    }
    if (r.has_bar && r.percent_shown >= 0) {
        fprintf(stderr, "\r%60s\r", "");
    }
    free(r.lanes);
    free(r.starts);
}
