// A decode step of a Llama-like model: layers one after another, a token for each of a batch of
// sequences whose KV caches have their own lengths. In a layer, on tiles of 32 sequences:
//
//      n = rmsnorm(x)     q, k, v = n wq, n wk, n wv                       for each tile
//      cache[length] = k, v     a = softmax(q cache_k' / 4) cache_v        for each sequence and head
//      h = x + a wo       x = h + (silu(n2 wg) * (n2 wu)) wd               for each tile
//
// Three things come together here:
//
//      transient tensors    n, q, ..., g are handed from task to task, and bound by nobody: the run
//                           places them in one block, where they share memory by lifetime
//      choices              the projections have a kernel for up to 16 rows and one for 32, and each
//                           task takes the one that fits the batch
//      the plan of memory   its peak is known before the step runs; compared with memory for each
//                           tensor, allocated and freed around each step
//
// Results are compared with double precision, and must be the same to the bit either way. A saved
// program that is loaded has the same fingerprints.

#include "ptowsp.h"

#include "common/command.h"
#include "common/llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAYERS = 4,
    BATCH_MAX = 24,
    CONTEXT = LLAMA_TOKENS_MAX,
    DIM = LLAMA_DIM,
    HIDDEN = LLAMA_HIDDEN,
    HEADS = LLAMA_HEADS,
    HEAD_DIM = DIM / HEADS,
    TILE = LLAMA_TILE,
    SMALL = 16,
    STEPS = 200  // that are timed
};

#define ALLOWED 1e-5

// What a layer hands on: name, columns.
#define TRANSIENTS(TENSOR)                                                                         \
    TENSOR(n, DIM)                                                                                 \
    TENSOR(q, DIM)                                                                                 \
    TENSOR(k, DIM) TENSOR(v, DIM) TENSOR(a, DIM) TENSOR(h, DIM) TENSOR(n2, DIM) TENSOR(g, HIDDEN)

typedef struct model {
    setup s;
    bool is_transient;
    setup_matrix *x, *gamma1, *gamma2, *wq, *wk, *wv, *wo, *wg, *wu, *wd, *cache_k, *cache_v;
    setup_matrix *cache_k_t;
#define TENSOR_FIELD(name, cols) ptowsp_tensor name;
    TRANSIENTS(TENSOR_FIELD)
#undef TENSOR_FIELD
    llama_kernels kernels;
    ptowsp_kernel small, project, append, attend;  // project: a choice
    ptowsp_axis batch;
    ptowsp_program *program;
    ptowsp_run *run;
} model;

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

static void kernels_make(model *d) {
    ptowsp_module *m = d->s.module;
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

static ptowsp_tensor tensor_make(model *d, const char *name, int64_t cols) {
    ptowsp_module *m = d->s.module;
    const ptowsp_tensor_desc desc = {
        .name = name, .dtype = PTOWSP_F32, .rank = 2, .shape = {PTOWSP_DYNAMIC, cols}};
    ptowsp_expr sizes[2] = {ptowsp_axis_size(m, d->batch)};
    return d->is_transient ? ptowsp_tensor_transient(m, &desc, sizes)
                           : ptowsp_tensor_make(m, &desc);
}

// Rows from `row` on, at most `count`; row and count none: all of the tensor.
static ptowsp_view rows_of(ptowsp_tensor tensor, ptowsp_expr row, ptowsp_expr col,
                           ptowsp_expr count) {
    return (ptowsp_view){.tensor = tensor, .row = row, .col = col, .row_count = count};
}

static ptowsp_view weight_of(const setup_matrix *weight, ptowsp_expr layer) {
    const ptowsp_expr none = {NULL, 0};
    return setup_stack_view(weight, layer, none, none);
}

#define TASK(chosen, ...)                                                                          \
    do {                                                                                           \
        const ptowsp_view views[] = {__VA_ARGS__};                                                 \
        ptowsp_task_desc task = {.kernel = chosen};                                                \
        memcpy(task.views, views, sizeof views);                                                   \
        ptowsp_task_make(m, &task);                                                                \
    } while (0)

static void sequences_make(model *d, ptowsp_expr layer) {
    ptowsp_module *m = d->s.module;
    const ptowsp_expr none = {NULL, 0}, one = ptowsp_i64(m, 1);
    PTOWSP_PARALLEL(m, i, d->batch) {
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

static void workload_make(model *d) {
    ptowsp_module *m = d->s.module;
    ptowsp_axis tiles = ptowsp_axis_dynamic(m, "tiles");
    const ptowsp_expr none = {NULL, 0};
    PTOWSP_WORKLOAD(m, "decode") {
        PTOWSP_FOR_EACH(m, layer, ptowsp_axis_dense(m, "layers", LAYERS)) {
            const ptowsp_tensor inputs[] = {d->q, d->k, d->v};
            const setup_matrix *const weights[] = {d->wq, d->wk, d->wv};
            PTOWSP_PARALLEL(m, i, tiles) {
                ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE));
                ptowsp_expr left = ptowsp_sub(ptowsp_axis_size(m, d->batch), row);
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

// -- saved programs ---------------------------------------------------------------------------------

static void write_text(void *user, const char *text, size_t length) {
    fwrite(text, 1, length, (FILE *)user);
}

static void save(const model *d, const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) {
        command_fail("%s cannot be written", path);
    }
    const ptowsp_text text = {write_text, file};
    command_check(d->s.context, ptowsp_program_save(d->s.context, d->s.module, NULL, text));
    bool is_written = !ferror(file);
    if (fclose(file) != 0 || !is_written) {
        command_fail("%s cannot be written", path);
    }
}

// The kernels are in it.
static ptowsp_program *load(const model *d, const char *path) {
    enum { BYTES_MAX = 1 << 20 };
    char *data = (char *)command_allocate(BYTES_MAX, 1);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(data, 1, BYTES_MAX, file) : 0;
    if (!file || ferror(file)) {
        command_fail("%s cannot be read", path);
    }
    fclose(file);
    ptowsp_program *program;
    ptowsp_status status = ptowsp_program_load(d->s.context, data, size, NULL, &program, NULL);
    if (status != PTOWSP_OK) {
        command_fail("%s: %s", path, ptowsp_context_error(d->s.context).text);
    }
    free(data);
    return program;
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
static void reference(const model *d, int64_t i, int32_t length, double *x) {
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

static setup_matrix *weight_make(model *d, const char *name, int64_t rows, int64_t cols) {
    setup_matrix *w = setup_stack_make(&d->s, name, PTOWSP_F32, LAYERS, rows, cols);
    double high = sqrt(3.0 / (double)rows);  // products keep their variance
    setup_fill_random(&d->s, w, rows == 1 ? 0.5 : -high, rows == 1 ? 1.5 : high);
    return w;
}

// With a path, the program is the one that was saved there.
static void model_make(model *d, bool is_transient, const char *path, uint64_t thread_count) {
    memset(d, 0, sizeof *d);
    setup_create_threads(&d->s, thread_count);
    d->is_transient = is_transient;
    d->batch = ptowsp_axis_dynamic(d->s.module, "batch");
    d->x = setup_dynamic_make(&d->s, "x", PTOWSP_F32, BATCH_MAX, DIM, true, false);
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
    d->cache_k = setup_stack_make(&d->s, "cache_k", PTOWSP_F32, caches, CONTEXT, DIM);
    d->cache_v = setup_stack_make(&d->s, "cache_v", PTOWSP_F32, caches, CONTEXT, DIM);
    d->cache_k_t = setup_transpose_make(&d->s, "cache_k_t", d->cache_k);
    setup_fill_random(&d->s, d->cache_k, -1.0, 1.0);
    setup_fill_random(&d->s, d->cache_v, -1.0, 1.0);
#define TENSOR_MAKE(name, cols) d->name = tensor_make(d, #name, cols);
    TRANSIENTS(TENSOR_MAKE)
#undef TENSOR_MAKE
    kernels_make(d);
    workload_make(d);
    const ptowsp_context *context = d->s.context;
    if (path) {
        d->program = load(d, path);
    } else {
        command_check(context, ptowsp_program_create(d->s.context, d->s.module, NULL, &d->program));
    }
    command_check(context, ptowsp_run_create(d->s.context, d->program, &d->run));
}

static void model_destroy(model *d) {
    ptowsp_run_destroy(d->run);
    ptowsp_program_destroy(d->program);
    setup_destroy(&d->s);
}

static void model_bind(model *d, int64_t batch, const int32_t *lengths) {
    setup_resize(d->x, batch, DIM);
    setup_bind(&d->s, d->run);
    command_check(d->s.context, ptowsp_run_bind_size(d->run, "batch", batch));
    command_check(d->s.context, ptowsp_run_bind_size(d->run, "tiles", (batch + TILE - 1) / TILE));
    command_check(d->s.context,
                  ptowsp_run_bind_array(d->run, "lengths", PTOWSP_I32, lengths, (uint64_t)batch));
}

// A step from fresh tokens. With memory for each tensor, that is allocated and freed here. Returns
// nanoseconds.
static uint64_t step(model *d, int64_t batch, const float *tokens) {
    static const char *const names[] = {
#define TENSOR_NAME(name, cols) #name,
        TRANSIENTS(TENSOR_NAME)
#undef TENSOR_NAME
    };
    static const int64_t cols[] = {
#define TENSOR_COLS(name, cols) cols,
        TRANSIENTS(TENSOR_COLS)
#undef TENSOR_COLS
    };
    enum { COUNT = sizeof cols / sizeof cols[0] };
    void *data[COUNT] = {NULL};
    const ptowsp_run_options options = {
        .lane_count = d->s.thread_count > 1 ? (uint32_t)d->s.thread_count : 0};
    memcpy(d->x->data, tokens, (size_t)(batch * DIM) * sizeof *tokens);
    const uint64_t begin = ptowsp_clock_ns();
    for (int i = 0; i < COUNT && !d->is_transient; i++) {
        data[i] = malloc((size_t)(batch * cols[i]) * sizeof(float));
        ptowsp_buffer buffer = {.data = data[i], .rank = 2, .shape = {batch, cols[i]}};
        command_check(d->s.context, ptowsp_run_bind_tensor(d->run, names[i], &buffer));
    }
    command_check(d->s.context, ptowsp_run_execute(d->run, &options));
    for (int i = 0; i < COUNT; i++) {
        free(data[i]);
    }
    return ptowsp_clock_ns() - begin;
}

static int compare_u64(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// -- the comparison ---------------------------------------------------------------------------------

static bool write_file(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, (FILE *)user) == size;
}

static void draw(const model *d, const char *path) {
    FILE *file = fopen(path, "wb");
    ptowsp_output output = {write_file, file};
    if (!file) {
        command_fail("%s cannot be written", path);
    }
    command_check(d->s.context,
                  ptowsp_run_export_transients(d->run, PTOWSP_EXPORT_SVG, NULL, output));
    fclose(file);
}

// A batch with both ways of memory; returns whether results are right, and the same.
static bool compare(model *planned, model *alone, int64_t batch, bool is_timed) {
    static float tokens[BATCH_MAX * DIM];
    static double wanted[BATCH_MAX * DIM];
    static uint64_t times[2][STEPS];
    int32_t lengths[BATCH_MAX];
    for (int64_t i = 0; i < batch; i++) {
        lengths[i] = (int32_t)(i * 37 % (CONTEXT - 1));
    }
    for (int64_t i = 0; i < batch * DIM; i++) {
        tokens[i] = (float)(i * 97 % 256) / 128.0f - 1.0f;
        wanted[i] = (double)tokens[i];
    }
    for (int64_t i = 0; i < batch; i++) {
        reference(planned, i, lengths[i], wanted + i * DIM);
    }
    model_bind(planned, batch, lengths);
    model_bind(alone, batch, lengths);
    ptowsp_transient_sizes sizes;
    command_check(planned->s.context, ptowsp_run_size_transients(planned->run, &sizes));
    step(planned, batch, tokens);
    ptowsp_fingerprint found;
    command_check(planned->s.context, ptowsp_run_fingerprint(planned->run, &found));
    double error = setup_error(planned->x, wanted);
    step(alone, batch, tokens);
    bool is_same =
        memcmp(planned->x->data, alone->x->data, (size_t)(batch * DIM) * sizeof(float)) == 0;
    printf("  batch %2d  %6d bytes in one block (at least %6d), %6d each alone; error %.1e: %s\n",
           (int)batch, (int)sizes.peak, (int)sizes.low, (int)sizes.sum, error,
           is_same && error < ALLOWED ? "good" : "WRONG");
    printf("            program %016llx, results %016llx\n", (unsigned long long)found.program,
           (unsigned long long)found.results);
    for (int i = 0; i < STEPS && is_timed; i++) {
        times[0][i] = step(planned, batch, tokens);
        times[1][i] = step(alone, batch, tokens);
    }
    if (is_timed) {
        qsort(times[0], STEPS, sizeof times[0][0], compare_u64);
        qsort(times[1], STEPS, sizeof times[1][0], compare_u64);
        printf("  a step takes %.1f us, and %.1f us with memory for each tensor (medians of %d)\n",
               (double)times[0][STEPS / 2] / 1000.0, (double)times[1][STEPS / 2] / 1000.0, STEPS);
    }
    return is_same && error < ALLOWED;
}

static const char help_text[] =
    "Decodes a token for each of 24, 16 and 1 requests, with the memory of transients shared and "
    "not.\n"
    "  --threads N    lanes that run kernels, 1 to 64 (1); what is printed is the same for all\n"
    "  --time         measure steps\n"
    "  --memory FILE  draw the block of memory of the largest batch as SVG\n"
    "  --save FILE    save the program\n"
    "  --load FILE    run a saved program\n";

int main(int argc, char **argv) {
    uint64_t thread_count = 1;
    const char *memory_path = NULL, *save_path = NULL, *load_path = NULL;
    bool is_timed = false;
    const command_option numbers[] = {{"--threads", &thread_count, NULL, 1, 64}};
    const command_text texts[] = {
        {"--memory", &memory_path}, {"--save", &save_path}, {"--load", &load_path}};
    const command_flag flags[] = {{"--time", &is_timed}};
    const command_options options = {numbers, 1, texts, sizeof texts / sizeof *texts, flags, 1};
    command_parse_all(argc, argv, help_text, &options);
    model planned, alone;
    model_make(&planned, true, load_path, thread_count);
    model_make(&alone, false, NULL, thread_count);
    if (save_path) {
        save(&planned, save_path);
    }
    printf("a decode step of %d layers, %d wide, %d heads, %d hidden\n", LAYERS, DIM, HEADS,
           HIDDEN);
    const ptowsp_text out = {write_text, stdout};
    ptowsp_kernel_explain(planned.s.module, planned.project, NULL, out);
    bool is_good = compare(&planned, &alone, BATCH_MAX, is_timed);
    if (memory_path) {
        draw(&planned, memory_path);
    }
    is_good = compare(&planned, &alone, SMALL, is_timed) && is_good;
    is_good = compare(&planned, &alone, 1, is_timed) && is_good;
    model_destroy(&planned);
    model_destroy(&alone);
    return is_good ? 0 : 1;
}
