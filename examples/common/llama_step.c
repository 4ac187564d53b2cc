// The cache is read as it was before a step, and the row of its own token from what the step computes: so
// the reference is right for every repetition of a step.

#include "llama_step.h"

#include <math.h>
#include <string.h>

enum {
    LAYERS = LLAMA_STEP_LAYERS,
    BATCH_MAX = LLAMA_STEP_BATCH_MAX,
    CONTEXT = LLAMA_TOKENS_MAX,
    DIM = LLAMA_DIM,
    HIDDEN = LLAMA_HIDDEN,
    HEADS = LLAMA_HEADS,
    HEAD_DIM = DIM / HEADS,
    TILE = LLAMA_TILE,
    SMALL = LLAMA_STEP_SMALL
};

// -- kernels ----------------------------------------------------------------------------------------

// Writes a row to the cache.
static ptowsp_kernel append_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "append"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 1, DIM);
    ptowsp_tile_store(ptowsp_tile_out(k, "y", PTOWSP_F32, 1, DIM), x);
    return ptowsp_kernel_end(k);
}

// A query of a head over as many tokens as the views of k and v say.
static ptowsp_kernel attend_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "attend"});
    ptowsp_value q = ptowsp_tile_in(k, "q", PTOWSP_F32, 1, HEAD_DIM);
    ptowsp_value keys = ptowsp_tile_in(k, "k", PTOWSP_F32, HEAD_DIM, CONTEXT);
    ptowsp_value values = ptowsp_tile_in(k, "v", PTOWSP_F32, CONTEXT, HEAD_DIM);
    ptowsp_value scale = ptowsp_tile_const(k, 1.0 / sqrt(HEAD_DIM));
    ptowsp_value scores = ptowsp_tile_mul(ptowsp_tile_matmul(q, keys), scale);
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(scores, ptowsp_tile_rowmax(scores)));
    ptowsp_value weights = ptowsp_tile_div(e, ptowsp_tile_rowsum(e));
    ptowsp_tile_store(ptowsp_tile_out(k, "a", PTOWSP_F32, 1, HEAD_DIM),
                      ptowsp_tile_matmul(weights, values));
    return ptowsp_kernel_end(k);
}

static void kernels_make(llama_step *d) {
    ptowsp_module *m = d->s->module;
    d->kernels = llama_kernels_make(m);
    d->small = llama_project_make(m, "project_small", SMALL);
    d->append = append_make(m);
    d->attend = attend_make(m);
    // The rows of x are argument 0, as the kernels have no axis arguments.
    ptowsp_choice_desc choice = {
        .name = "projection",
        .variants = {{.kernel = d->small,
                      .condition = ptowsp_le(ptowsp_task_arg(m, 0), ptowsp_i64(m, SMALL))},
                     {.kernel = d->kernels.project}}};
    d->project = ptowsp_kernel_choice(m, &choice);
}

// -- the workload -----------------------------------------------------------------------------------

static ptowsp_tensor tensor_make(llama_step *d, const char *name, int64_t cols) {
    ptowsp_module *m = d->s->module;
    const ptowsp_tensor_desc desc = {
        .name = name, .dtype = PTOWSP_F32, .rank = 2, .shape = {PTOWSP_DYNAMIC, cols}};
    ptowsp_expr sizes[2] = {ptowsp_axis_size(m, d->batch_axis)};
    return d->is_transient ? ptowsp_tensor_transient(m, &desc, sizes)
                           : ptowsp_tensor_make(m, &desc);
}

// Rows from `row` on, at most `count`; row and count none: all of the tensor.
static ptowsp_view rows_of(ptowsp_tensor tensor, ptowsp_expr row, ptowsp_expr col,
                           ptowsp_expr count) {
    return (ptowsp_view){.tensor = tensor, .row = row, .col = col, .row_count = count};
}

static ptowsp_view weight_of(const setup_matrix *weight, ptowsp_expr layer) {
    const ptowsp_expr none = {0};
    return setup_stack_view(weight, layer, none, none);
}

#define TASK(chosen, ...)                                                                          \
    do {                                                                                           \
        const ptowsp_view views[] = {__VA_ARGS__};                                                 \
        ptowsp_task_desc task = {.kernel = chosen};                                                \
        memcpy(task.views, views, sizeof views);                                                   \
        ptowsp_task_make(m, &task);                                                                \
    } while (0)

static void sequences_make(llama_step *d, ptowsp_expr layer) {
    ptowsp_module *m = d->s->module;
    const ptowsp_expr none = {0}, one = ptowsp_i64(m, 1);
    PTOWSP_PARALLEL(m, i, d->batch_axis) {
        ptowsp_expr length = ptowsp_array_at(m, "lengths", PTOWSP_I32, i);
        ptowsp_expr cache = ptowsp_add(ptowsp_mul(layer, ptowsp_i64(m, BATCH_MAX)), i);
        PTOWSP_SEQUENCE(m) {
            TASK(d->append, rows_of(d->k, i, none, none),
                 setup_stack_view(d->cache_k, cache, length, none));
            TASK(d->append, rows_of(d->v, i, none, none),
                 setup_stack_view(d->cache_v, cache, length, none));
            PTOWSP_PARALLEL(m, head, ptowsp_axis_dense(m, "heads", HEADS)) {
                ptowsp_expr col = ptowsp_mul(head, ptowsp_i64(m, HEAD_DIM));
                ptowsp_view keys = setup_stack_view(d->cache_k_t, cache, col, none);
                ptowsp_view values = setup_stack_view(d->cache_v, cache, none, col);
                keys.col_count = values.row_count = ptowsp_add(length, one);
                TASK(d->attend, rows_of(d->q, i, col, none), keys, values,
                     rows_of(d->a, i, col, none));
            }
        }
    }
}

static void workload_make(llama_step *d) {
    ptowsp_module *m = d->s->module;
    ptowsp_axis tiles = ptowsp_axis_dynamic(m, "tiles");
    const ptowsp_expr none = {0};
    PTOWSP_WORKLOAD(m, "decode") {
        PTOWSP_FOR_EACH(m, layer, ptowsp_axis_dense(m, "layers", LAYERS)) {
            const ptowsp_tensor inputs[] = {d->q, d->k, d->v};
            const setup_matrix *const weights[] = {d->wq, d->wk, d->wv};
            PTOWSP_PARALLEL(m, i, tiles) {
                ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE));
                ptowsp_expr left = ptowsp_sub(ptowsp_axis_size(m, d->batch_axis), row);
                PTOWSP_SEQUENCE(m) {
                    TASK(d->kernels.norm, rows_of(d->x->id, row, none, none),
                         weight_of(d->gamma1, layer), rows_of(d->n, row, none, none));
                    for (int p = 0; p < 3; p++) {
                        TASK(d->project, rows_of(d->n, row, none, left),
                             weight_of(weights[p], layer), rows_of(inputs[p], row, none, left));
                    }
                }
            }
            sequences_make(d, layer);
            PTOWSP_PARALLEL(m, j, tiles) {
                ptowsp_expr row = ptowsp_mul(j, ptowsp_i64(m, TILE));
                PTOWSP_SEQUENCE(m) {
                    TASK(d->kernels.output, rows_of(d->a, row, none, none), weight_of(d->wo, layer),
                         rows_of(d->x->id, row, none, none), rows_of(d->h, row, none, none));
                    TASK(d->kernels.norm, rows_of(d->h, row, none, none),
                         weight_of(d->gamma2, layer), rows_of(d->n2, row, none, none));
                    TASK(d->kernels.gate, rows_of(d->n2, row, none, none), weight_of(d->wg, layer),
                         weight_of(d->wu, layer), rows_of(d->g, row, none, none));
                    TASK(d->kernels.down, rows_of(d->g, row, none, none), weight_of(d->wd, layer),
                         rows_of(d->h, row, none, none), rows_of(d->x->id, row, none, none));
                }
            }
        }
    }
}

// -- reference --------------------------------------------------------------------------------------

static void normed(const double *x, const setup_matrix *gamma, int64_t layer, double *out) {
    double squares = 0.0;
    for (int c = 0; c < DIM; c++) {
        squares += x[c] * x[c];
    }
    for (int c = 0; c < DIM; c++) {
        out[c] = x[c] / sqrt(squares / DIM + LLAMA_EPSILON) * setup_get(gamma, layer, c);
    }
}

// out = x w, for the layer's w.
static void product(const double *x, const setup_matrix *w, int64_t layer, double *out) {
    for (int64_t c = 0; c < w->cols; c++) {
        out[c] = 0.0;
        for (int64_t i = 0; i < w->rows; i++) {
            out[c] += x[i] * setup_get(w, layer * w->rows + i, c);
        }
    }
}

// A token of sequence i through all layers, over the caches as they are before the step.
static void reference(const llama_step *d, int64_t i, int32_t length, double *x) {
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        double n[DIM], q[DIM], k[DIM], v[DIM], a[DIM], g[HIDDEN], u[HIDDEN];
        const int64_t cache = (layer * BATCH_MAX + i) * CONTEXT;
        normed(x, d->gamma1, layer, n);
        product(n, d->wq, layer, q);
        product(n, d->wk, layer, k);
        product(n, d->wv, layer, v);
        for (int head = 0; head < DIM; head += HEAD_DIM) {
            double scores[CONTEXT], sum = 0.0;
            for (int32_t t = 0; t <= length; t++) {
                scores[t] = 0.0;
                for (int c = head; c < head + HEAD_DIM; c++) {
                    double key = t < length ? setup_get(d->cache_k, cache + t, c) : k[c];
                    scores[t] += q[c] * key / sqrt(HEAD_DIM);
                }
                sum += exp(scores[t]);
            }
            for (int c = head; c < head + HEAD_DIM; c++) {
                a[c] = 0.0;
                for (int32_t t = 0; t <= length; t++) {
                    double value = t < length ? setup_get(d->cache_v, cache + t, c) : v[c];
                    a[c] += exp(scores[t]) / sum * value;
                }
            }
        }
        product(a, d->wo, layer, n);
        for (int c = 0; c < DIM; c++) {
            x[c] += n[c];
        }
        normed(x, d->gamma2, layer, n);
        product(n, d->wg, layer, g);
        product(n, d->wu, layer, u);
        for (int c = 0; c < HIDDEN; c++) {
            g[c] = g[c] / (1.0 + exp(-g[c])) * u[c];
        }
        product(g, d->wd, layer, n);
        for (int c = 0; c < DIM; c++) {
            x[c] += n[c];
        }
    }
}

// -- data -------------------------------------------------------------------------------------------

static setup_matrix *weight_make(llama_step *d, const char *name, int64_t rows, int64_t cols) {
    setup_matrix *w = setup_stack_make(d->s, name, PTOWSP_F32, LAYERS, rows, cols);
    double high = sqrt(3.0 / (double)rows);  // products keep their variance
    setup_fill_random(d->s, w, rows == 1 ? 0.5 : -high, rows == 1 ? 1.5 : high);
    return w;
}

static void prepare(void *user) {
    const llama_step *d = (const llama_step *)user;
    memcpy(d->x->data, d->tokens, (size_t)(d->batch * DIM) * sizeof *d->tokens);
}

static bool check(void *user) {
    llama_step *d = (llama_step *)user;
    double error = setup_error(d->x, d->wanted);
    d->error = error <= d->error ? d->error : error;  // keeps a NaN
    return error <= LLAMA_STEP_ALLOWED;
}

// What cannot be bound is named by the execution.
static void bind(void *user, ptowsp_run *run) {
    const llama_step *d = (const llama_step *)user;
    ptowsp_run_bind_size(run, "batch", d->batch);
    ptowsp_run_bind_size(run, "tiles", (d->batch + TILE - 1) / TILE);
    ptowsp_run_bind_array(run, "lengths", PTOWSP_I32, d->lengths, (uint64_t)d->batch);
}

void llama_step_fill(llama_step *d, int64_t batch) {
    d->batch = batch;
    for (int64_t i = 0; i < batch; i++) {
        d->lengths[i] = (int32_t)(i * 37 % (CONTEXT - 1));
    }
    for (int64_t i = 0; i < batch * DIM; i++) {
        d->tokens[i] = (float)(i * 97 % 256) / 128.0f - 1.0f;
        d->wanted[i] = (double)d->tokens[i];
    }
    for (int64_t i = 0; i < batch; i++) {
        reference(d, i, d->lengths[i], d->wanted + i * DIM);
    }
    setup_resize(d->x, batch, DIM);
}

void llama_step_make(llama_step *d, setup *s, bool is_transient) {
    memset(d, 0, sizeof *d);
    d->s = s;
    d->is_transient = is_transient;
    d->batch_axis = ptowsp_axis_dynamic(d->s->module, "batch");
    d->x = setup_dynamic_make(d->s, "x", PTOWSP_F32, BATCH_MAX, DIM, true, false);
    d->gamma1 = weight_make(d, "gamma1", 1, DIM);
    d->gamma2 = weight_make(d, "gamma2", 1, DIM);
    d->wq = weight_make(d, "wq", DIM, DIM);
    d->wk = weight_make(d, "wk", DIM, DIM);
    d->wv = weight_make(d, "wv", DIM, DIM);
    d->wo = weight_make(d, "wo", DIM, DIM);
    d->wg = weight_make(d, "wg", DIM, HIDDEN);
    d->wu = weight_make(d, "wu", DIM, HIDDEN);
    d->wd = weight_make(d, "wd", HIDDEN, DIM);
    const int64_t caches = (int64_t)LAYERS * BATCH_MAX;
    d->cache_k = setup_stack_make(d->s, "cache_k", PTOWSP_F32, caches, CONTEXT, DIM);
    d->cache_v = setup_stack_make(d->s, "cache_v", PTOWSP_F32, caches, CONTEXT, DIM);
    d->cache_k_t = setup_transpose_make(d->s, "cache_k_t", d->cache_k);
    setup_fill_random(d->s, d->cache_k, -1.0, 1.0);
    setup_fill_random(d->s, d->cache_v, -1.0, 1.0);
#define TENSOR_MAKE(name, cols) d->name = tensor_make(d, #name, cols);
    LLAMA_STEP_TENSORS(TENSOR_MAKE)
#undef TENSOR_MAKE
    kernels_make(d);
    workload_make(d);
    s->bind = bind;
    s->prepare = prepare;
    s->check = check;
    s->user = d;
}
