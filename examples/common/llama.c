// Sizes that the tokens have are bound, all others declared. llama.h says what is computed.

#include "llama.h"

#include "command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKENS_MAX = LLAMA_TOKENS_MAX,
    TILE = LLAMA_TILE,
    DIM = LLAMA_DIM,
    HEADS = LLAMA_HEADS,
    HEAD_DIM = DIM / HEADS,
    HIDDEN = LLAMA_HIDDEN
};

// -- kernels --------------------------------------------------------------------------------------

static ptowsp_body *begin(ptowsp_module *m, const char *name) {
    return ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name});
}

static ptowsp_value in(ptowsp_body *k, const char *name, int64_t rows, int64_t cols) {
    return ptowsp_tile_in(k, name, PTOWSP_F32, rows, cols);
}

static ptowsp_value out(ptowsp_body *k, const char *name, int64_t cols) {
    return ptowsp_tile_out(k, name, PTOWSP_F32, TILE, cols);
}

static ptowsp_kernel norm_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "norm");
    ptowsp_value x = in(k, "x", TILE, DIM), gamma = in(k, "gamma", 1, DIM), y = out(k, "y", DIM);
    ptowsp_value mean = ptowsp_tile_rowmean(ptowsp_tile_mul(x, x));
    ptowsp_value scale =
        ptowsp_tile_rsqrt(ptowsp_tile_add(mean, ptowsp_tile_const(k, LLAMA_EPSILON)));
    ptowsp_tile_store(y, ptowsp_tile_mul(ptowsp_tile_mul(x, scale), gamma));
    return ptowsp_kernel_end(k);
}

ptowsp_kernel llama_project_make(ptowsp_module *m, const char *name, int64_t rows) {
    ptowsp_body *k = begin(m, name);
    ptowsp_value x = in(k, "x", rows, DIM), w = in(k, "w", DIM, DIM);
    ptowsp_tile_store(ptowsp_tile_out(k, "y", PTOWSP_F32, rows, DIM), ptowsp_tile_matmul(x, w));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel attend_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "attend");
    ptowsp_value q = in(k, "q", TILE, HEAD_DIM), keys = in(k, "k", HEAD_DIM, TOKENS_MAX);
    ptowsp_value values = in(k, "v", TOKENS_MAX, HEAD_DIM), mask = in(k, "mask", TILE, TOKENS_MAX);
    ptowsp_value scale = ptowsp_tile_const(k, 1.0 / sqrt(HEAD_DIM));
    ptowsp_value scores = ptowsp_tile_mul(ptowsp_tile_matmul(q, keys), scale);
    scores = ptowsp_tile_add(scores, mask);
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(scores, ptowsp_tile_rowmax(scores)));
    ptowsp_value weights = ptowsp_tile_div(e, ptowsp_tile_rowsum(e));
    ptowsp_tile_store(out(k, "a", HEAD_DIM), ptowsp_tile_matmul(weights, values));
    return ptowsp_kernel_end(k);
}

// x w + residual, for w of `depth` rows.
static ptowsp_kernel add_make(ptowsp_module *m, const char *name, int64_t depth) {
    ptowsp_body *k = begin(m, name);
    ptowsp_value x = in(k, "x", TILE, depth), w = in(k, "w", depth, DIM);
    ptowsp_value residual = in(k, "residual", TILE, DIM);
    ptowsp_tile_store(out(k, "y", DIM), ptowsp_tile_add(residual, ptowsp_tile_matmul(x, w)));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel gate_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "gate");
    ptowsp_value x = in(k, "x", TILE, DIM);
    ptowsp_value wg = in(k, "wg", DIM, HIDDEN), wu = in(k, "wu", DIM, HIDDEN);
    ptowsp_value gate = ptowsp_tile_silu(ptowsp_tile_matmul(x, wg));
    ptowsp_tile_store(out(k, "y", HIDDEN), ptowsp_tile_mul(gate, ptowsp_tile_matmul(x, wu)));
    return ptowsp_kernel_end(k);
}

llama_kernels llama_kernels_make(ptowsp_module *m) {
    return (llama_kernels){.norm = norm_make(m),
                           .project = llama_project_make(m, "project", TILE),
                           .output = add_make(m, "output", DIM),
                           .gate = gate_make(m),
                           .down = add_make(m, "down", HIDDEN)};
}

// -- the workload ---------------------------------------------------------------------------------

static void task_make(ptowsp_module *m, ptowsp_kernel kernel, const ptowsp_view *views,
                      uint32_t view_count) {
    ptowsp_task_desc task = {.kernel = kernel};
    memcpy(task.views, views, view_count * sizeof *views);
    ptowsp_task_make(m, &task);
}

#define TASK(kernel, ...)                                                                          \
    task_make(m, kernel, (const ptowsp_view[]){__VA_ARGS__},                                       \
              sizeof((const ptowsp_view[]){__VA_ARGS__}) / sizeof(ptowsp_view))

static void workload_make(ptowsp_module *m, const llama *b) {
    ptowsp_axis tiles = ptowsp_axis_dynamic(m, "tiles");
    ptowsp_axis heads = ptowsp_axis_dense(m, "heads", HEADS);
    ptowsp_expr zero = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "block") {
        PTOWSP_COMBINE(m) {
            PTOWSP_PARALLEL(m, i, tiles) {
                ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE));
                setup_matrix *const weights[] = {b->wq, b->wk, b->wv};
                setup_matrix *const results[] = {b->q, b->k, b->v};
                TASK(b->kernels.norm, setup_view(b->x, row, zero),
                     setup_view(b->gamma1, zero, zero), setup_view(b->n, row, zero));
                for (int p = 0; p < 3; p++) {
                    TASK(b->kernels.project, setup_view(b->n, row, zero),
                         setup_view(weights[p], zero, zero), setup_view(results[p], row, zero));
                }
            }
            PTOWSP_PARALLEL(m, i, tiles) {
                ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE));
                PTOWSP_PARALLEL(m, head, heads) {
                    ptowsp_expr col = ptowsp_mul(head, ptowsp_i64(m, HEAD_DIM));
                    TASK(b->attend, setup_view(b->q, row, col), setup_view(b->k_t, col, zero),
                         setup_view(b->v, zero, col), setup_view(b->mask, row, zero),
                         setup_view(b->a, row, col));
                }
                TASK(b->kernels.output, setup_view(b->a, row, zero), setup_view(b->wo, zero, zero),
                     setup_view(b->x, row, zero), setup_view(b->h, row, zero));
                TASK(b->kernels.norm, setup_view(b->h, row, zero),
                     setup_view(b->gamma2, zero, zero), setup_view(b->n2, row, zero));
                TASK(b->kernels.gate, setup_view(b->n2, row, zero), setup_view(b->wg, zero, zero),
                     setup_view(b->wu, zero, zero), setup_view(b->g, row, zero));
                TASK(b->kernels.down, setup_view(b->g, row, zero), setup_view(b->wd, zero, zero),
                     setup_view(b->h, row, zero), setup_view(b->y, row, zero));
            }
        }
    }
}

// -- reference ------------------------------------------------------------------------------------

static double *real(int64_t rows, int64_t cols) {
    return (double *)command_allocate((uint64_t)(rows * cols), sizeof(double));
}

// out = x w, for x of so many tokens.
static void reference_product(int64_t tokens, const double *x, const setup_matrix *w,
                              double *result) {
    for (int64_t r = 0; r < tokens; r++) {
        for (int64_t c = 0; c < w->cols; c++) {
            double sum = 0.0;
            for (int64_t i = 0; i < w->rows; i++) {
                sum += x[r * w->rows + i] * setup_get(w, i, c);
            }
            result[r * w->cols + c] = sum;
        }
    }
}

static void reference_norm(int64_t tokens, const double *x, const setup_matrix *gamma,
                           double *result) {
    for (int64_t r = 0; r < tokens; r++) {
        double squares = 0.0;
        for (int64_t c = 0; c < DIM; c++) {
            squares += x[r * DIM + c] * x[r * DIM + c];
        }
        for (int64_t c = 0; c < DIM; c++) {
            double scale = setup_get(gamma, 0, c) / sqrt(squares / DIM + LLAMA_EPSILON);
            result[r * DIM + c] = x[r * DIM + c] * scale;
        }
    }
}

static void reference_attention(int64_t tokens, const double *q, const double *k, const double *v,
                                double *result) {
    for (int64_t r = 0; r < tokens; r++) {
        for (int64_t col = 0; col < DIM; col += HEAD_DIM) {
            double scores[TOKENS_MAX], sum = 0.0;
            for (int64_t t = 0; t <= r; t++) {
                scores[t] = 0.0;
                for (int64_t d = col; d < col + HEAD_DIM; d++) {
                    scores[t] += q[r * DIM + d] * k[t * DIM + d] / sqrt(HEAD_DIM);
                }
                scores[t] = exp(scores[t]);
                sum += scores[t];
            }
            for (int64_t d = col; d < col + HEAD_DIM; d++) {
                result[r * DIM + d] = 0.0;
                for (int64_t t = 0; t <= r; t++) {
                    result[r * DIM + d] += scores[t] / sum * v[t * DIM + d];
                }
            }
        }
    }
}

static void reference(const llama *b) {
    const int64_t tokens = b->token_count;
    double *x = real(tokens, DIM), *n = real(tokens, DIM), *a = real(tokens, DIM);
    double *q = real(tokens, DIM), *k = real(tokens, DIM), *v = real(tokens, DIM);
    double *g = real(tokens, HIDDEN), *u = real(tokens, HIDDEN);
    for (int64_t i = 0; i < tokens * DIM; i++) {
        x[i] = setup_get(b->x, i / DIM, i % DIM);
    }
    reference_norm(tokens, x, b->gamma1, n);
    reference_product(tokens, n, b->wq, q);
    reference_product(tokens, n, b->wk, k);
    reference_product(tokens, n, b->wv, v);
    reference_attention(tokens, q, k, v, a);
    reference_product(tokens, a, b->wo, n);
    for (int64_t i = 0; i < tokens * DIM; i++) {
        x[i] += n[i];
    }
    reference_norm(tokens, x, b->gamma2, n);
    reference_product(tokens, n, b->wg, g);
    reference_product(tokens, n, b->wu, u);
    for (int64_t i = 0; i < tokens * HIDDEN; i++) {
        g[i] = g[i] / (1.0 + exp(-g[i])) * u[i];
    }
    reference_product(tokens, g, b->wd, b->wanted);
    for (int64_t i = 0; i < tokens * DIM; i++) {
        b->wanted[i] += x[i];
    }
    double *const all[] = {x, n, a, q, k, v, g, u};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

// -- data, and running ----------------------------------------------------------------------------

#define LLAMA_KEEP(name, rows, cols)  // a weight has one size

void llama_fill(llama *b, setup *s, int64_t token_count) {
    b->token_count = token_count;
#define LLAMA_RESIZE(name, cols) setup_resize(b->name, token_count, cols);
    LLAMA_MATRICES(LLAMA_KEEP, LLAMA_RESIZE)
#undef LLAMA_RESIZE
    setup_resize(b->mask, token_count, token_count);
    setup_resize(b->k_t, DIM, token_count);
    setup_fill_random(s, b->x, -2.0, 2.0);
    setup_fill_random(s, b->gamma1, 0.5, 1.5);
    setup_fill_random(s, b->gamma2, 0.5, 1.5);
    const setup_matrix *const weights[] = {b->wq, b->wk, b->wv, b->wo, b->wg, b->wu, b->wd};
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        double high = sqrt(3.0 / (double)weights[i]->rows);  // products keep their variance
        setup_fill_random(s, weights[i], -high, high);
    }
    for (int64_t r = 0; r < token_count; r++) {
        for (int64_t c = 0; c < token_count; c++) {
            setup_set(b->mask, r, c, c <= r ? 0.0 : -1e30);
        }
    }
    reference(b);
}

static void prepare(void *user) {
    const llama *b = (const llama *)user;
    const setup_matrix *const written[] = {b->n, b->q, b->k, b->v, b->a, b->h, b->n2, b->g, b->y};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        setup_fill(written[i], NAN);
    }
}

static bool check(void *user) {
    llama *b = (llama *)user;
    double error = setup_error(b->y, b->wanted);
    b->error = error <= b->error ? b->error : error;  // keeps a NaN
    return error <= LLAMA_ALLOWED;
}

static void bind(void *user, ptowsp_run *run) {
    const llama *b = (const llama *)user;
    ptowsp_run_bind_size(run, "tiles", (b->token_count + TILE - 1) / TILE);
}

void llama_make(llama *b, setup *s) {
    ptowsp_module *m = s->module;
    memset(b, 0, sizeof *b);
    b->wanted = real(TOKENS_MAX, DIM);
#define LLAMA_WEIGHT(name, rows, cols)                                                             \
    b->name = setup_matrix_make(s, #name, PTOWSP_F32, rows, cols);
#define LLAMA_TOKENS(name, cols)                                                                   \
    b->name = setup_dynamic_make(s, #name, PTOWSP_F32, TOKENS_MAX, cols, true, false);
    LLAMA_MATRICES(LLAMA_WEIGHT, LLAMA_TOKENS)
#undef LLAMA_WEIGHT
#undef LLAMA_TOKENS
    b->mask = setup_dynamic_make(s, "mask", PTOWSP_F32, TOKENS_MAX, TOKENS_MAX, true, true);
    b->k_t = setup_transpose_make(s, "k_t", b->k);
    b->kernels = llama_kernels_make(m);
    b->attend = attend_make(m);
    workload_make(m, b);
    s->bind = bind;
    s->prepare = prepare;
    s->check = check;
    s->user = b;
}

void llama_destroy(llama *b) {
    free(b->wanted);
}
