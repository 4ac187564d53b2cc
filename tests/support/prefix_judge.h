// What must hold of prefix trees and plans: trees against all pairs of requests; plans by counting
// what each row meets, and by running them beside plain softmax in double precision.

#ifndef PREFIX_JUDGE_H
#define PREFIX_JUDGE_H

#include "attention_judge.h"
#include "prefix_sample.h"

// -- trees ----------------------------------------------------------------------------------------

// Holds a tree against all pairs.
static inline void require_tree(const sample *s, const ptowsp_prefix_tree *t, uint32_t count) {
    require(s, t->request_count == count);
    uint32_t nodes = 0;
    bool has[REQUESTS] = {false};
    for (uint32_t p = 0; p < count; p++) {
        require(s, t->order[p] < s->count && !has[t->order[p]]);
        has[t->order[p]] = true;
        uint32_t least = UINT32_MAX;
        for (uint32_t e = p + 1; e < count; e++) {
            least = t->common[e] < least ? t->common[e] : least;
            const uint32_t shared = sample_shared(s, t->order[p], t->order[e]);
            require(s, t->is_ordered ? e > p + 1 || shared == least : shared == least);
            // [p, e] is a node if its neighbours share less.
            const uint32_t before = p > 0 ? t->common[p] : 0;
            const uint32_t after = e + 1 < count ? t->common[e + 1] : 0;
            const uint32_t above = before > after ? before : after;
            if (least <= above) {
                continue;
            }
            nodes++;
            uint32_t found = 0;
            for (uint32_t i = 0; i < t->node_count; i++) {
                const ptowsp_prefix_node *n = &t->nodes[i];
                found += n->first == p && n->count == e - p + 1 && n->kv_end == least &&
                         n->kv_begin == above;
            }
            require(s, found == 1);
        }
    }
    require(s, nodes == t->node_count);
    for (uint32_t i = 0; i < t->node_count; i++) {
        const ptowsp_prefix_node *n = &t->nodes[i];
        if (n->parent == PTOWSP_NO_NODE) {
            require(s, n->kv_begin == 0);
            continue;
        }
        const ptowsp_prefix_node *above = &t->nodes[n->parent];
        require(s, n->parent > i && above->kv_end == n->kv_begin && above->first <= n->first);
        require(s, above->first + above->count >= n->first + n->count);
    }
    for (uint32_t p = 0; p < count; p++) {
        uint32_t owner = PTOWSP_NO_NODE, end = 0;
        for (uint32_t i = 0; i < t->node_count; i++) {
            const ptowsp_prefix_node *n = &t->nodes[i];
            if (n->first <= p && p < n->first + n->count && n->kv_end > end) {
                owner = i;
                end = n->kv_end;
            }
        }
        require(s, t->owners[p] == owner);
    }
}

static inline bool trees_equal(const ptowsp_prefix_tree *a, const ptowsp_prefix_tree *b) {
    return a->request_count == b->request_count && a->node_count == b->node_count &&
           memcmp(a->common, b->common, a->request_count * sizeof *a->common) == 0 &&
           memcmp(a->nodes, b->nodes, a->node_count * sizeof *a->nodes) == 0;
}

static inline void build(sample *s) {
    ptowsp_plan_info info;
    require(s, ptowsp_prefix_build(&s->batch, &s->tree, &info) == PTOWSP_OK);
}

// -- plans, counted and run -----------------------------------------------------------------------

typedef struct plan_run {
    const sample *s;
    const ptowsp_prefix_plan *plan;  // NULL: a flat plan
    const ptowsp_attention_plan *attention;
    ptowsp_attention_scratch scratch;
    uint32_t first[REQUESTS];  // query tokens before each request
    uint8_t *met;              // [query token][head][kv token]
    float *out;                // [query token][head * group][DIM]
} plan_run;

enum { KV_MAX = BLOCKS * BLOCK_MAX + 4 * BLOCK_MAX };

static inline double hash_value(uint64_t key) {
    uint64_t state = key;
    test_splitmix(&state);
    return (double)(int64_t)(test_splitmix(&state) >> 11) / (double)(INT64_C(1) << 52) * 2 - 2;
}

// Keys and values depend on all ids up to a token's block, and in no block on the request.
static inline double kv_value(const sample *s, uint32_t r, uint32_t token, uint32_t head,
                              uint32_t d) {
    const uint64_t blocks = s->begin[r + 1] - s->begin[r], block = token / s->block_tokens;
    uint64_t path = 17;
    for (uint64_t i = 0; i <= block && i < blocks; i++) {
        path = (path + s->ids[s->begin[r] + i] + 1) * UINT64_C(0x9e3779b97f4a7c15);
    }
    const uint32_t q = sample_queries(s, r);
    if (block >= blocks || (q > 1 && token >= (uint32_t)s->kv[r] - q)) {
        path = path * 31 + r + 1;
    }
    return hash_value(path * 1000003 + token * 64 + head * 16 + d);
}

static inline double query_value(const sample *s, uint32_t token, uint32_t head, uint32_t d) {
    return hash_value(s->seed * 77 + token * 640 + head * 16 + d);
}

// The request and token of a query token of the batch.
static inline uint32_t request_of(const plan_run *run, uint32_t token, uint32_t *out_index) {
    uint32_t r = run->s->count - 1;
    while (run->first[r] > token || sample_queries(run->s, r) == 0) {
        r--;
    }
    *out_index = token - run->first[r];
    return r;
}

static inline uint32_t visible_end(const sample *s, uint32_t r, uint32_t index) {
    const uint32_t kv = (uint32_t)s->kv[r];
    return s->config.is_causal ? kv - sample_queries(s, r) + index + 1 : kv;
}

// A row over [begin, end) of the KV of request `from`.
static inline void row_compute(const plan_run *run, uint32_t token, uint32_t head, uint32_t g,
                               uint32_t from, uint32_t begin, uint32_t end, ptowsp_partial *state,
                               float *acc) {
    const sample *s = run->s;
    uint32_t index;
    const uint32_t r = request_of(run, token, &index), visible = visible_end(s, r, index);
    end = end < visible ? end : visible;
    double m = -INFINITY, l = 0, sum[DIM] = {0}, scores[KV_MAX];
    for (uint32_t t = begin; t < end; t++) {
        scores[t] = 0;
        for (uint32_t d = 0; d < DIM; d++) {
            scores[t] += query_value(s, token, head * s->config.group + g, d) *
                         kv_value(s, from, t, head, d);
        }
        m = scores[t] > m ? scores[t] : m;
    }
    for (uint32_t t = begin; t < end; t++) {
        const double weight = exp(scores[t] - m);
        l += weight;
        for (uint32_t d = 0; d < DIM; d++) {
            sum[d] += weight * kv_value(s, from, t, head, DIM + d);
        }
    }
    state->m = (float)m;
    state->l = (float)l;
    for (uint32_t d = 0; d < DIM; d++) {
        acc[d] = (float)sum[d];
    }
}

static inline float *out_row(const plan_run *run, uint32_t token, uint32_t head, uint32_t g) {
    const ptowsp_attention_config *c = &run->s->config;
    return run->out + ((size_t)token * c->kv_head_count * c->group + head * c->group + g) * DIM;
}

// The query tokens of a unit or merge, and the request whose KV is read.
static inline uint32_t unit_tokens(const plan_run *run, const ptowsp_work *unit, uint32_t *tokens,
                                   uint32_t *out_from) {
    uint32_t count;
    if (run->plan) {
        const uint32_t *list = ptowsp_prefix_unit_tokens(run->plan, unit, &count);
        memcpy(tokens, list, count * sizeof *tokens);
        *out_from = run->plan->segments[unit->params[0]].request;
        return count;
    }
    const uint32_t r = unit->params[0], most = run->attention->tile_tokens;
    const uint32_t before = unit->reserved * most, left = sample_queries(run->s, r) - before;
    count = left < most ? left : most;
    for (uint32_t i = 0; i < count; i++) {
        tokens[i] = run->first[r] + before + i;
    }
    *out_from = r;
    return count;
}

static inline void unit_kernel(const ptowsp_work *unit, uint32_t lane, void *user) {
    (void)lane;
    plan_run *run = (plan_run *)user;
    const sample *s = run->s;
    const uint32_t group = s->config.group, head = unit->params[1];
    uint32_t tokens[REQUESTS * QUERIES], from;
    const uint32_t count = unit_tokens(run, unit, tokens, &from);
    const uint32_t begin = unit->params[2], end = begin + unit->params[3];
    require(s, count * group <= run->attention->slot_rows);
    for (uint32_t row = 0; row < count * group; row++) {
        const uint32_t token = tokens[row / group];
        ptowsp_partial state;
        float acc[DIM];
        row_compute(run, token, head, row % group, from, begin, end, &state, acc);
        if (unit->work_id == PTOWSP_NO_SLOT) {
            ptowsp_merge_finish(&state, acc, DIM, out_row(run, token, head, row % group));
        } else {
            ptowsp_attention_states(&run->scratch, unit->work_id)[row] = state;
            memcpy(ptowsp_attention_accs(&run->scratch, unit->work_id) + row * DIM, acc,
                   sizeof acc);
        }
        for (uint32_t t = begin; t < end && run->met && row % group == 0; t++) {
            run->met[((size_t)token * s->config.kv_head_count + head) * KV_MAX + t]++;
        }
    }
}

static inline void merge_kernel(const ptowsp_work *merge, uint32_t lane, void *user) {
    (void)lane;
    plan_run *run = (plan_run *)user;
    const uint32_t group = run->s->config.group;
    uint32_t tokens[REQUESTS * QUERIES], from;
    const uint32_t count = unit_tokens(run, merge, tokens, &from);
    for (uint32_t row = 0; row < count * group; row++) {
        ptowsp_attention_merge_row(
            &run->scratch, merge, row,
            out_row(run, tokens[row / group], merge->params[1], row % group));
    }
}

static inline void join_kernel(const ptowsp_work *join, uint32_t lane, void *user) {
    (void)lane;
    plan_run *run = (plan_run *)user;
    const uint32_t group = run->s->config.group, r = join->params[0];
    for (uint32_t row = 0; row < sample_queries(run->s, r) * group; row++) {
        ptowsp_prefix_join_row(
            run->plan, &run->scratch, join, row,
            out_row(run, run->first[r] + row / group, join->params[1], row % group));
    }
}

static inline void run_make(plan_run *run, const sample *s, const ptowsp_attention_plan *attention,
                            const ptowsp_prefix_plan *plan) {
    *run = (plan_run){.s = s, .plan = plan, .attention = attention};
    uint32_t tokens = 0;
    for (uint32_t r = 0; r < s->count; r++) {
        run->first[r] = tokens;
        tokens += sample_queries(s, r);
    }
    const size_t rows = (size_t)attention->slot_count * attention->slot_rows;
    run->scratch.rows = attention->slot_rows;
    run->scratch.dim = DIM;
    run->scratch.states = (ptowsp_partial *)calloc(rows + 1, sizeof(ptowsp_partial));
    run->scratch.accs = (float *)calloc(rows + 1, DIM * sizeof(float));
    run->met = (uint8_t *)calloc(tokens + 1, (size_t)s->config.kv_head_count * KV_MAX);
    run->out = (float *)calloc((size_t)(tokens + 1) * s->config.kv_head_count * s->config.group,
                               DIM * sizeof(float));
}

static inline void run_free(plan_run *run) {
    free(run->scratch.states);
    free(run->scratch.accs);
    free(run->met);
    free(run->out);
}

// Ways to run a plan: on the calling thread, as two workers one after another, on threads.
enum { RUN_SERIAL, RUN_WORKERS, RUN_THREADS, RUN_WAYS };

// `threads` is the context that lends its lanes.
static inline void run_plan(plan_run *run, uint64_t way, ptowsp_context *threads) {
    const uint64_t size = run->plan ? ptowsp_prefix_progress_size(run->plan)
                                    : ptowsp_attention_progress_size(run->attention);
    uint32_t *progress = (uint32_t *)calloc((size_t)size, sizeof *progress);
    const ptowsp_work_fn table[1] = {unit_kernel};
    const ptowsp_attention_job job = {.plan = run->attention,
                                      .table = table,
                                      .table_count = 1,
                                      .merge = merge_kernel,
                                      .user = run,
                                      .progress = progress,
                                      .is_stealing = way != RUN_SERIAL,
                                      .prefix = run->plan,
                                      .join = join_kernel};
    uint64_t index;
    require(run->s, ptowsp_attention_job_check(&job, &index) == PTOWSP_OK);
    if (way == RUN_THREADS) {
        require(run->s, ptowsp_attention_run(threads, &job) == PTOWSP_OK);
    } else if (way == RUN_WORKERS) {
        ptowsp_attention_run_worker(&job, 1, 2);
        ptowsp_attention_run_worker(&job, 0, 2);
    } else {
        require(run->s, ptowsp_attention_run_serial(&job, &index) == PTOWSP_OK);
    }
    for (uint64_t i = 0; i < size; i++) {
        require(run->s, progress[i] == 0);
    }
    free(progress);
}

// Every row meets all that it sees once, and no token twice.
static inline void require_met(const plan_run *run) {
    const sample *s = run->s;
    for (uint32_t r = 0; r < s->count; r++) {
        for (uint32_t j = 0; j < sample_queries(s, r); j++) {
            for (uint32_t head = 0; head < s->config.kv_head_count; head++) {
                const uint8_t *met =
                    run->met +
                    ((size_t)(run->first[r] + j) * s->config.kv_head_count + head) * KV_MAX;
                for (uint32_t t = 0; t < KV_MAX; t++) {
                    require(s, met[t] <= (t < (uint32_t)s->kv[r]));
                    require(s, met[t] == 1 || t >= visible_end(s, r, j));
                }
            }
        }
    }
}

// Outputs against plain softmax in double precision, over the request's own KV.
static inline void require_outputs(const plan_run *run) {
    const sample *s = run->s;
    for (uint32_t r = 0; r < s->count; r++) {
        for (uint32_t j = 0; j < sample_queries(s, r) && s->kv[r] > 0; j++) {
            for (uint32_t h = 0; h < s->config.kv_head_count * s->config.group; h++) {
                const uint32_t head = h / s->config.group, token = run->first[r] + j;
                double l = 0, sum[DIM] = {0};
                for (uint32_t t = 0; t < visible_end(s, r, j); t++) {
                    double score = 0;
                    for (uint32_t d = 0; d < DIM; d++) {
                        score += query_value(s, token, h, d) * kv_value(s, r, t, head, d);
                    }
                    l += exp(score);
                    for (uint32_t d = 0; d < DIM; d++) {
                        sum[d] += exp(score) * kv_value(s, r, t, head, DIM + d);
                    }
                }
                const float *out = out_row(run, token, head, h % s->config.group);
                for (uint32_t d = 0; d < DIM; d++) {
                    require(s, fabs(out[d] - sum[d] / l) < 1e-5);
                }
            }
        }
    }
}

typedef struct planned {
    void *block;
    ptowsp_prefix_plan plan;
} planned;

// The bound is enough for the batch, whose limits are as tight as can be, or without totals.
static inline void require_bound(const sample *s, const ptowsp_prefix_sizes *sizes) {
    ptowsp_attention_limits limits = reference_limits(&s->batch.attention);
    for (int i = 0; i < 2; i++) {
        ptowsp_prefix_sizes most;
        require(s, ptowsp_prefix_bound(&s->config, &limits, &most, NULL) == PTOWSP_OK);
        require(s, reference_is_within(&sizes->attention, &most.attention));
        require(s, sizes->segment_count <= most.segment_count);
        require(s, sizes->request_count <= most.request_count);
        require(s, sizes->token_count <= most.token_count);
        require(s, sizes->join_count <= most.join_count);
        require(s, sizes->block_bytes <= most.block_bytes);
        limits.kv_token_count_max = limits.query_token_count_max = 0;
    }
}

static inline planned plan_make(sample *s) {
    planned p;
    ptowsp_plan_info info;
    ptowsp_prefix_sizes sizes;
    const ptowsp_attention_batch *batch = &s->batch.attention;
    require(s, ptowsp_prefix_size(batch, &s->config, &s->tree, &sizes, &info) == PTOWSP_OK);
    require_bound(s, &sizes);
    p.block = malloc((size_t)sizes.block_bytes + 8);
    require(s, ptowsp_prefix_place(&sizes, p.block, sizes.block_bytes, &p.plan) == PTOWSP_OK);
    require(s, ptowsp_prefix_generate(batch, &s->config, &s->tree, &p.plan, &info) == PTOWSP_OK);
    require(s, p.plan.attention.unit_count == sizes.attention.unit_count);
    require(s, p.plan.attention.merge_count == sizes.attention.merge_count);
    require(s, p.plan.attention.slot_count == sizes.attention.slot_count);
    require(s, p.plan.join_count == sizes.join_count);
    if (ptowsp_prefix_check(batch, &s->config, &s->tree, &p.plan, &info) != PTOWSP_OK) {
        char text[200];
        ptowsp_plan_explain(&info, TEST_TEXT(text));
        fail_msg("seed %llu: %s", (unsigned long long)s->seed, text);
    }
    return p;
}

// What the plan says of itself.
static inline void require_numbers(const sample *s, const ptowsp_prefix_plan *plan) {
    uint64_t reads, flat_reads;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < s->tree.node_count; i++) {
        chosen |= s->tree.nodes[i].is_shared << i;
    }
    const double cost = slow_choice(s, chosen, &reads), flat = slow_choice(s, 0, &flat_reads);
    require(s, plan->cost <= plan->flat_cost && plan->time <= plan->flat_time);
    require(s, fabs(plan->cost - cost) <= 1e-9 * cost);
    require(s, fabs(plan->flat_cost - flat) <= 1e-9 * flat);
    require(s, plan->kv_token_reads == reads * s->config.kv_head_count);
    require(s, plan->flat_kv_token_reads == flat_reads * s->config.kv_head_count);
    require(s, plan->attention.cost_max <= plan->time * (1 + 1e-9));
}

#endif
