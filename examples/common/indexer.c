// The check computes scores in double, and asks that what was chosen is among the best, up to what sums in
// f32 may change; y is then compared with attention in double over the tokens that were chosen.

#include "indexer.h"

#include "command.h"

#include <math.h>
#include <string.h>

enum {
    CONTEXT = INDEXER_CONTEXT,
    INDEX_HEADS = INDEXER_INDEX_HEADS,
    INDEX_DIM = INDEXER_INDEX_DIM,
    HEADS = INDEXER_HEADS,
    DIM = INDEXER_DIM,
    BEST = INDEXER_BEST,
    SLOT = 0
};

#define NO_SCORE -1e30

// -- kernels --------------------------------------------------------------------------------------

static ptowsp_kernel clear_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "clear"});
    ptowsp_tile_store(ptowsp_tile_out(k, "scores", PTOWSP_F32, 1, CONTEXT),
                      ptowsp_tile_full(k, PTOWSP_F32, 1, CONTEXT, NO_SCORE));
    return ptowsp_kernel_end(k);
}

// As many tokens as the views of keys and scores say.
static ptowsp_kernel score_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "score"});
    ptowsp_value q = ptowsp_tile_in(k, "q", PTOWSP_F32, INDEX_HEADS, INDEX_DIM);
    ptowsp_value w = ptowsp_tile_in(k, "w", PTOWSP_F32, INDEX_HEADS, 1);
    ptowsp_value keys = ptowsp_tile_in(k, "keys", PTOWSP_F32, INDEX_DIM, CONTEXT);
    ptowsp_value heads = ptowsp_tile_relu(ptowsp_tile_matmul(q, keys));
    ptowsp_tile_store(ptowsp_tile_out(k, "scores", PTOWSP_F32, 1, CONTEXT),
                      ptowsp_tile_colsum(ptowsp_tile_mul(heads, w)));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel choose_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "choose"});
    ptowsp_value scores = ptowsp_tile_in(k, "scores", PTOWSP_F32, 1, CONTEXT);
    ptowsp_value pairs = ptowsp_tile_sort32(scores, ptowsp_tile_iota(k, PTOWSP_U32, CONTEXT, 0));
    for (int64_t run = 32; run < CONTEXT; run *= 4) {
        pairs = ptowsp_tile_merge_sort(pairs, run);
    }
    ptowsp_tile_store(ptowsp_tile_out(k, "chosen", PTOWSP_U32, 1, BEST),
                      ptowsp_tile_topk_indices(pairs, BEST));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel fetch_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "fetch"});
    ptowsp_value row = ptowsp_tile_in(k, "kv", PTOWSP_F32, 1, DIM);
    ptowsp_tile_store(ptowsp_tile_out(k, "row", PTOWSP_F32, 1, DIM), row);
    return ptowsp_kernel_end(k);
}

// All heads over as many rows as their view says.
static ptowsp_kernel attend_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "attend"});
    ptowsp_value q = ptowsp_tile_in(k, "q", PTOWSP_F32, HEADS, DIM);
    ptowsp_value rows = ptowsp_tile_in(k, "rows", PTOWSP_F32, BEST, DIM);
    ptowsp_value scores = ptowsp_tile_mul(ptowsp_tile_matmul(q, ptowsp_tile_transpose(rows)),
                                          ptowsp_tile_const(k, 1.0 / sqrt(DIM)));
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(scores, ptowsp_tile_rowmax(scores)));
    ptowsp_value weights = ptowsp_tile_div(e, ptowsp_tile_rowsum(e));
    ptowsp_tile_store(ptowsp_tile_out(k, "y", PTOWSP_F32, HEADS, DIM),
                      ptowsp_tile_matmul(weights, rows));
    return ptowsp_kernel_end(k);
}

// -- the workload ---------------------------------------------------------------------------------

static ptowsp_tensor transient_make(ptowsp_module *m, const char *name, ptowsp_axis requests,
                                    int64_t rows, int64_t cols) {
    const ptowsp_tensor_desc desc = {
        .name = name, .dtype = PTOWSP_F32, .rank = 3, .shape = {PTOWSP_DYNAMIC, rows, cols}};
    const ptowsp_expr sizes[3] = {ptowsp_axis_size(m, requests)};
    return ptowsp_tensor_transient(m, &desc, sizes);
}

static void choosing_make(ptowsp_module *m, const indexer *x, ptowsp_axis requests) {
    const ptowsp_expr none = {0};
    PTOWSP_PARALLEL(m, r, requests) {
        const ptowsp_view scores = {.tensor = x->scores, .index = {r}};
        ptowsp_view keys = setup_stack_view(x->index_k_t, r, none, none), valid = scores;
        keys.col_count = valid.col_count = ptowsp_array_at(m, "lengths", PTOWSP_I32, r);
        PTOWSP_SEQUENCE(m) {
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = x->clear, .views = {scores}});
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = x->score,
                                       .views = {setup_stack_view(x->index_q, r, none, none),
                                                 setup_stack_view(x->index_w, r, none, none), keys,
                                                 valid}});
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = x->choose,
                                       .views = {scores, setup_view(x->chosen, r, none)}});
        }
    }
}

static void workload_make(ptowsp_module *m, const indexer *x, ptowsp_axis requests) {
    const ptowsp_expr none = {0}, zero = ptowsp_i64(m, 0);
    ptowsp_axis counts = ptowsp_axis_ragged(m, "counts");
    PTOWSP_WORKLOAD(m, "sparse") {
        choosing_make(m, x, requests);
        PTOWSP_PARALLEL(m, r, requests) {
            PTOWSP_PARALLEL(m, i, ptowsp_axis_row(m, counts, r)) {
                ptowsp_view chosen = setup_view(x->chosen, r, i);
                ptowsp_slot_load_make(m, SLOT, &chosen, zero, zero);
                ptowsp_expr token = ptowsp_slot(m, SLOT, PTOWSP_TYPE_I64);
                ptowsp_view to = {.tensor = x->rows, .index = {r}, .row = i};
                ptowsp_task_make(
                    m, &(ptowsp_task_desc){.kernel = x->fetch,
                                           .views = {setup_stack_view(x->kv, r, token, none), to}});
            }
        }
        PTOWSP_PARALLEL(m, r, requests) {
            ptowsp_view rows = {.tensor = x->rows, .index = {r}};
            rows.row_count = ptowsp_array_at(m, "counts", PTOWSP_I32, r);
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = x->attend,
                                       .views = {setup_stack_view(x->q, r, none, none), rows,
                                                 setup_stack_view(x->y, r, none, none)}});
        }
    }
}

// -- the check ------------------------------------------------------------------------------------

static double score_of(const indexer *x, int64_t r, int64_t token) {
    double score = 0.0;
    for (int64_t j = r * INDEX_HEADS; j < (r + 1) * INDEX_HEADS; j++) {
        double product = 0.0;
        for (int64_t d = 0; d < INDEX_DIM; d++) {
            product += setup_get(x->index_q, j, d) * setup_get(x->index_k, r * CONTEXT + token, d);
        }
        score += setup_get(x->index_w, j, 0) * (product > 0.0 ? product : 0.0);
    }
    return score;
}

// How many of the chosen tokens are none, chosen twice, or below the `count` best by more than a tie.
static int64_t wrong_choices(const indexer *x, int64_t r) {
    double scores[CONTEXT], last = INFINITY;
    bool is_chosen[CONTEXT] = {false};
    int64_t count = x->counts[r], wrong = 0;
    for (int64_t t = 0; t < x->lengths[r]; t++) {
        scores[t] = score_of(x, r, t);
    }
    for (int64_t t = 0; t < x->lengths[r]; t++) {  // the lowest score with fewer above
        int64_t above = 0;
        for (int64_t u = 0; u < x->lengths[r]; u++) {
            above += scores[u] > scores[t];
        }
        last = above < count && scores[t] < last ? scores[t] : last;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t token = (int64_t)setup_get(x->chosen, r, i);
        if (token >= x->lengths[r] || is_chosen[token] || scores[token] < last - INDEXER_TIE) {
            wrong++;
        } else {
            is_chosen[token] = true;
        }
    }
    return wrong;
}

static double error_of(const indexer *x, int64_t r, int64_t h) {
    double weights[BEST], sum = 0.0, most = 0.0, error = 0.0;
    for (int64_t i = 0; i < x->counts[r]; i++) {
        int64_t row = r * CONTEXT + (int64_t)setup_get(x->chosen, r, i);
        double product = 0.0;
        for (int64_t d = 0; d < DIM; d++) {
            product += setup_get(x->q, r * HEADS + h, d) * setup_get(x->kv, row, d);
        }
        weights[i] = exp(product / sqrt(DIM));
        sum += weights[i];
    }
    for (int64_t d = 0; d < DIM; d++) {
        double wanted = 0.0;
        for (int64_t i = 0; i < x->counts[r]; i++) {
            int64_t row = r * CONTEXT + (int64_t)setup_get(x->chosen, r, i);
            wanted += weights[i] / sum * setup_get(x->kv, row, d);
        }
        double off = fabs(setup_get(x->y, r * HEADS + h, d) - wanted);
        most = fabs(wanted) > most ? fabs(wanted) : most;
        error = off <= error ? error : off;  // keeps a NaN
    }
    return error / most;
}

static bool check(void *user) {
    indexer *x = (indexer *)user;
    int64_t wrong = 0;
    for (int64_t r = 0; r < x->requests; r++) {
        int64_t wrong_here = wrong_choices(x, r);
        wrong += wrong_here;
        for (int64_t h = 0; h < HEADS && wrong_here == 0; h++) {
            double error = error_of(x, r, h);
            x->error = error <= x->error ? x->error : error;
        }
    }
    x->wrong += wrong;
    return wrong == 0 && x->error <= INDEXER_ALLOWED;
}

// -- data -----------------------------------------------------------------------------------------

static void prepare(void *user) {
    const indexer *x = (const indexer *)user;
    setup_fill(x->chosen, 1e9);
    setup_fill(x->y, NAN);
}

// What cannot be bound is named by the execution.
static void bind(void *user, ptowsp_run *run) {
    const indexer *x = (const indexer *)user;
    uint64_t count = (uint64_t)x->requests;
    ptowsp_run_bind_size(run, "requests", x->requests);
    ptowsp_run_bind_array(run, "lengths", PTOWSP_I32, x->lengths, count);
    ptowsp_run_bind_array(run, "counts", PTOWSP_I32, x->counts, count);
}

void indexer_fill(indexer *x, setup *s, const int32_t *lengths, int64_t requests) {
    x->requests = requests;
    for (int64_t r = 0; r < requests; r++) {
        x->lengths[r] = lengths[r];
        x->counts[r] = lengths[r] < BEST ? lengths[r] : BEST;
    }
    setup_fill_random(s, x->index_q, -1.0, 1.0);
    setup_fill_random(s, x->index_w, 0.0, 1.0);
    setup_fill_random(s, x->index_k, -1.0, 1.0);
    setup_fill_random(s, x->q, -1.0, 1.0);
    setup_fill_random(s, x->kv, -1.0, 1.0);
}

void indexer_make(indexer *x, setup *s) {
    enum { REQUESTS = INDEXER_REQUESTS_MAX };
    ptowsp_module *m = s->module;
    memset(x, 0, sizeof *x);
    ptowsp_axis requests = ptowsp_axis_dynamic(m, "requests");
    x->index_q = setup_stack_make(s, "index_q", PTOWSP_F32, REQUESTS, INDEX_HEADS, INDEX_DIM);
    x->index_w = setup_stack_make(s, "index_w", PTOWSP_F32, REQUESTS, INDEX_HEADS, 1);
    x->index_k = setup_stack_make(s, "index_k", PTOWSP_F32, REQUESTS, CONTEXT, INDEX_DIM);
    x->index_k_t = setup_transpose_make(s, "index_k_t", x->index_k);
    x->q = setup_stack_make(s, "q", PTOWSP_F32, REQUESTS, HEADS, DIM);
    x->kv = setup_stack_make(s, "kv", PTOWSP_F32, REQUESTS, CONTEXT, DIM);
    x->chosen = setup_matrix_make(s, "chosen", PTOWSP_U32, REQUESTS, BEST);
    x->y = setup_stack_make(s, "y", PTOWSP_F32, REQUESTS, HEADS, DIM);
    x->scores = transient_make(m, "scores", requests, 1, CONTEXT);
    x->rows = transient_make(m, "rows", requests, BEST, DIM);
    x->clear = clear_make(m);
    x->score = score_make(m);
    x->choose = choose_make(m);
    x->fetch = fetch_make(m);
    x->attend = attend_make(m);
    workload_make(m, x, requests);
    s->bind = bind;
    s->prepare = prepare;
    s->check = check;
    s->user = x;
}
