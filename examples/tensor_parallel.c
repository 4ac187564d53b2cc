// A block of a Llama-like transformer over 1, 2 and 4 ranks. Heads and hidden columns are spread over
// them, as the tensors say; so s is a partial sum on each rank, and the library adds it up by an
// all-reduce where it is read, twice a block:
//
//      n = norm(x)     q, k, v = n wq, n wk, n wv       columns of the rank: its heads
//      a = attend(q, k, v)                              its heads
//      s = a wo        h = x + s                        rows of wo
//      n = norm(h)     g = silu(n wg) * (n wu)          columns of the rank
//      s = g wd        y = h + s                        rows of wd
//
// The tokens are cut into blocks, so that one block computes while the sums of another are on their
// way. Sums are cut into 4 pieces, added as ((0 + 1) + (2 + 3)); a rank adds those that it has, and
// recursive doubling the rest. So 1, 2 and 4 ranks have the same bits. They are compared with one rank
// in double precision.
//
// Simulated is the time of this rank, with the rates of the product and of the links as measured
// here, if each rank had a core of its own.

#include "ptowsp.h"

#include "common/command.h"
#include "common/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 128, HEADS = 8, HEAD = DIM / HEADS, HIDDEN = 256, BLOCK = 32, PIECES = 4 };

static const char help[] =
    "usage: tensor_parallel [options]\n"
    "\n"
    "  --ranks N    processes: 1, 2 or 4, default each of them\n"
    "  --blocks N   of 32 tokens, default 4\n"
    "  --lanes N    threads of a rank, default 1\n"
    "  --draw FILE  a picture of all ranks by the clock: SVG, or for a name that\n"
    "               ends in .pftrace or .json of Perfetto or Chrome\n"
    "  --simulated FILE  the same of the simulation of all ranks together\n";

typedef struct options {
    uint64_t ranks, blocks, lanes;
    const char *draw, *simulated;
} options;

// -- kernels --------------------------------------------------------------------------------------

static double ns_per_mac = 0.5;  // measured

static const float *row_of(const ptowsp_task *t, uint32_t tile, int64_t row) {
    return (const float *)t->tiles[tile].data + row * t->tiles[tile].row_stride;
}

static float *out_row(const ptowsp_task *t, uint32_t tile, int64_t row) {
    return (float *)t->tiles[tile].data + row * t->tiles[tile].row_stride;
}

static ptowsp_cycles cycles_of(double macs) {
    return (ptowsp_cycles)(macs * ns_per_mac) + 1;
}

// out = in w, the inner size in `pieces` pieces that are added in pairs.
static void product(const ptowsp_task *t, int64_t row, int64_t from, int64_t to, float *out,
                    int64_t pieces) {
    const int64_t cols = ptowsp_task_cols(t, 2);
    if (pieces > 1) {
        float other[HIDDEN];
        const int64_t middle = from + (to - from) / 2;
        product(t, row, from, middle, out, pieces / 2);
        product(t, row, middle, to, other, pieces / 2);
        for (int64_t c = 0; c < cols; c++) {
            out[c] += other[c];
        }
        return;
    }
    memset(out, 0, (size_t)cols * sizeof *out);
    for (int64_t k = from; k < to; k++) {
        const float x = row_of(t, 0, row)[k], *w = row_of(t, 1, k);
        for (int64_t c = 0; c < cols; c++) {
            out[c] += x * w[c];
        }
    }
}

static ptowsp_cycles matmul_fn(const ptowsp_task *t, void *user) {
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(t, 2); r++) {
        product(t, r, 0, ptowsp_task_cols(t, 0), out_row(t, 2, r),
                (int64_t)ptowsp_task_scalar(t, 0));
    }
    return 0;
}

static ptowsp_cycles matmul_cost(const ptowsp_task *t, void *user) {
    (void)user;
    return cycles_of((double)(ptowsp_task_rows(t, 2) * ptowsp_task_cols(t, 0)) *
                     (double)ptowsp_task_cols(t, 2));
}

static ptowsp_cycles small_cost(const ptowsp_task *t, void *user) {
    (void)user;
    return cycles_of(2.0 * (double)(ptowsp_task_rows(t, 0) * ptowsp_task_cols(t, 0)));
}

static ptowsp_cycles norm_fn(const ptowsp_task *t, void *user) {
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(t, 0); r++) {
        float sum = 0;
        for (int64_t c = 0; c < DIM; c++) {
            sum += row_of(t, 0, r)[c] * row_of(t, 0, r)[c];
        }
        const float scale = 1 / sqrtf(sum / DIM + 1e-5f);
        for (int64_t c = 0; c < DIM; c++) {
            out_row(t, 1, r)[c] = row_of(t, 0, r)[c] * scale;
        }
    }
    return 0;
}

static ptowsp_cycles add_fn(const ptowsp_task *t, void *user) {
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(t, 0); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(t, 0); c++) {
            out_row(t, 2, r)[c] = row_of(t, 0, r)[c] + row_of(t, 1, r)[c];
        }
    }
    return 0;
}

static ptowsp_cycles gate_fn(const ptowsp_task *t, void *user) {
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(t, 0); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(t, 0); c++) {
            const float g = row_of(t, 0, r)[c];
            out_row(t, 2, r)[c] = g / (1 + expf(-g)) * row_of(t, 1, r)[c];
        }
    }
    return 0;
}

// The heads of this rank, each token over all tokens up to it; axis 0 is the first token.
static ptowsp_cycles attend_fn(const ptowsp_task *t, void *user) {
    (void)user;
    const int64_t first = ptowsp_task_axis(t, 0), heads = ptowsp_task_cols(t, 0) / HEAD;
    for (int64_t r = 0; r < ptowsp_task_rows(t, 0); r++) {
        for (int64_t h = 0; h < heads; h++) {
            const float *q = row_of(t, 0, r) + h * HEAD;
            float sum = 0, acc[HEAD] = {0};
            for (int64_t k = 0; k <= first + r; k++) {
                float score = 0;
                for (int64_t d = 0; d < HEAD; d++) {
                    score += q[d] * row_of(t, 1, k)[h * HEAD + d];
                }
                const float weight = expf(score * 0.25f);
                sum += weight;
                for (int64_t d = 0; d < HEAD; d++) {
                    acc[d] += weight * row_of(t, 2, k)[h * HEAD + d];
                }
            }
            for (int64_t d = 0; d < HEAD; d++) {
                out_row(t, 3, r)[h * HEAD + d] = acc[d] / sum;
            }
        }
    }
    return 0;
}

static ptowsp_cycles attend_cost(const ptowsp_task *t, void *user) {
    (void)user;
    const double tokens = (double)(ptowsp_task_axis(t, 0) + BLOCK / 2);
    return cycles_of(2.5 * tokens * (double)(ptowsp_task_rows(t, 0) * ptowsp_task_cols(t, 0)));
}

enum { NORM, MATMUL, ATTEND, ADD, GATE, SUM, KERNELS };  // SUM is placed
static const char *const kernel_names[KERNELS] = {"norm", "matmul", "attend",
                                                  "add",  "gate",   "all_reduce.tp.f32"};

static void make_kernels(ptowsp_module *m, ptowsp_kernel kernels[KERNELS]) {
    static const ptowsp_kernel_fn fns[] = {norm_fn, matmul_fn, attend_fn, add_fn, gate_fn};
    static const ptowsp_kernel_fn costs[] = {small_cost, matmul_cost, attend_cost, small_cost,
                                             small_cost};
    static const char *const rules[] = {"m. m.", "*mk *kn mn", "mh .h .h mh", "+mn +mn mn",
                                        "mn mn mn"};
    static const char *const tiles[] = {"a", "b", "c", "d"};
    static const uint32_t ins[] = {1, 2, 3, 2, 2};
    for (int i = 0; i < SUM; i++) {
        ptowsp_kernel_desc desc = {.name = kernel_names[i], .fn = fns[i], .cost = costs[i]};
        for (uint32_t k = 0; k <= ins[i]; k++) {
            const ptowsp_tile_param param = {.name = tiles[k],
                                             .direction = k == ins[i] ? PTOWSP_OUT : PTOWSP_IN,
                                             .dtype = PTOWSP_F32,
                                             .rows = PTOWSP_DYNAMIC,
                                             .cols = PTOWSP_DYNAMIC};
            desc.tiles[k] = param;
        }
        if (i == MATMUL) {
            const ptowsp_scalar_param pieces = {.name = "pieces", .type = PTOWSP_TYPE_U64};
            desc.scalars[0] = pieces;
            desc.unit = PTOWSP_UNIT_CUBE;
        }
        desc.axis_count = i == ATTEND;
        kernels[i] = ptowsp_kernel_make(m, &desc);
        ptowsp_kernel_rule(m, kernels[i], rules[i]);
    }
}

// -- the workload ---------------------------------------------------------------------------------

// Tensors: name, rows and columns, of the whole; 0 rows: the tokens. How they are spread over ranks.
#define ALL                                                                                        \
    { .kind = PTOWSP_REPLICATED }
#define ROWS                                                                                       \
    { .kind = PTOWSP_SHARDED, .dim = 0 }
#define COLS                                                                                       \
    { .kind = PTOWSP_SHARDED, .dim = 1 }
#define TERM                                                                                       \
    { .kind = PTOWSP_PARTIAL_SUM }
#define TENSORS(TENSOR)                                                                            \
    TENSOR(X, "x", 0, DIM, ALL)                                                                    \
    TENSOR(N, "n", 0, DIM, ALL)                                                                    \
    TENSOR(Q, "q", 0, DIM, COLS)                                                                   \
    TENSOR(K, "k", 0, DIM, COLS)                                                                   \
    TENSOR(V, "v", 0, DIM, COLS)                                                                   \
    TENSOR(A, "a", 0, DIM, COLS)                                                                   \
    TENSOR(S, "s", 0, DIM, TERM)                                                                   \
    TENSOR(H, "h", 0, DIM, ALL)                                                                    \
    TENSOR(G, "g", 0, HIDDEN, COLS)                                                                \
    TENSOR(U, "u", 0, HIDDEN, COLS)                                                                \
    TENSOR(Y, "y", 0, DIM, ALL)                                                                    \
    TENSOR(WQ, "wq", DIM, DIM, COLS)                                                               \
    TENSOR(WK, "wk", DIM, DIM, COLS)                                                               \
    TENSOR(WV, "wv", DIM, DIM, COLS)                                                               \
    TENSOR(WO, "wo", DIM, DIM, ROWS)                                                               \
    TENSOR(WG, "wg", DIM, HIDDEN, COLS)                                                            \
    TENSOR(WU, "wu", DIM, HIDDEN, COLS)                                                            \
    TENSOR(WD, "wd", HIDDEN, DIM, ROWS)

#define TENSOR_ENUM(id, name, rows, cols, spread) id,
enum { TENSORS(TENSOR_ENUM) TENSOR_COUNT };
#undef TENSOR_ENUM

typedef struct tensor {
    const char *name;
    ptowsp_spread spread;
    int64_t rows, cols;  // of this rank's part
    float *data;
    ptowsp_tensor id;
} tensor;

typedef struct block {
    world *w;
    const options *o;
    ptowsp_module *m;
    ptowsp_mesh mesh;
    ptowsp_kernel kernels[KERNELS];
    tensor tensors[TENSOR_COUNT];
} block;

// A task on blocks of tokens, at the loop's variable, or on whole tensors: weights, and the keys and
// values of all tokens.
static void task(block *b, int kernel, ptowsp_expr token, const int *on, const bool *is_whole,
                 uint32_t count, uint64_t pieces) {
    ptowsp_task_desc desc = {.kernel = b->kernels[kernel]};
    for (uint32_t i = 0; i < count; i++) {
        desc.views[i].tensor = b->tensors[on[i]].id;
        if (!is_whole || !is_whole[i]) {
            desc.views[i].row = token;
            desc.views[i].rows = BLOCK;
        }
    }
    if (kernel == ATTEND) {
        desc.axes[0] = token;
    }
    if (kernel == MATMUL) {
        desc.scalars[0] = ptowsp_u64(b->m, pieces);
    }
    ptowsp_task_make(b->m, &desc);
}

static void matmul(block *b, ptowsp_expr token, int in, int w, int out, uint64_t pieces) {
    const int on[] = {in, w, out};
    const bool is_whole[] = {false, true, false};
    task(b, MATMUL, token, on, is_whole, 3, pieces);
}

static void on(block *b, int kernel, ptowsp_expr token, int x, int y, int z) {
    const int tensors[] = {x, y, z};
    task(b, kernel, token, tensors, NULL, z >= 0 ? 3 : 2, 0);
}

static ptowsp_expr first_token(block *b, ptowsp_expr i) {
    return ptowsp_mul(i, ptowsp_i64(b->m, BLOCK));
}

static void build(block *b) {
    ptowsp_module *m = b->m;
    const uint64_t pieces = PIECES / b->w->rank_count;
    const ptowsp_axis blocks = ptowsp_axis_dense(m, "blocks", (int64_t)b->o->blocks);
    const int64_t tokens = (int64_t)b->o->blocks * BLOCK;
#define TENSOR_ROW(id, name, rows, cols, spread)                                                   \
    {name, spread, rows ? rows : tokens, cols, NULL, {0}},
    const tensor rows[] = {TENSORS(TENSOR_ROW)};
#undef TENSOR_ROW
    const ptowsp_mesh mesh = {.axis_count = 1, .names = {"tp"}, .sizes = {b->w->rank_count}};
    b->mesh = mesh;
    ptowsp_module_mesh(m, &mesh, PTOWSP_ALGORITHM_DOUBLING);
    make_kernels(m, b->kernels);
    for (int i = 0; i < TENSOR_COUNT; i++) {
        tensor *t = &b->tensors[i];
        const ptowsp_tensor_desc desc = {.name = rows[i].name,
                                         .dtype = PTOWSP_F32,
                                         .rank = 2,
                                         .shape = {rows[i].rows, rows[i].cols}};
        *t = rows[i];
        t->id = ptowsp_tensor_make(m, &desc);
        ptowsp_tensor_spread(m, t->id, &t->spread);
    }
    PTOWSP_WORKLOAD(m, "block") {
        PTOWSP_COMBINE(m) {  // all order follows from data
            PTOWSP_PARALLEL(m, i, blocks) {
                const ptowsp_expr at = first_token(b, i);
                PTOWSP_COMBINE(m) {
                    on(b, NORM, at, X, N, -1);
                    matmul(b, at, N, WQ, Q, 1);
                    matmul(b, at, N, WK, K, 1);
                    matmul(b, at, N, WV, V, 1);
                }
            }
            PTOWSP_PARALLEL(m, i, blocks) {
                const ptowsp_expr at = first_token(b, i);
                const int tensors[] = {Q, K, V, A};
                const bool is_whole[] = {false, true, true, false};
                PTOWSP_COMBINE(m) {
                    task(b, ATTEND, at, tensors, is_whole, 4, 0);
                    matmul(b, at, A, WO, S, pieces);
                }
            }
            PTOWSP_PARALLEL(m, i, blocks) {
                const ptowsp_expr at = first_token(b, i);
                PTOWSP_COMBINE(m) {
                    on(b, ADD, at, X, S, H);
                    on(b, NORM, at, H, N, -1);
                    matmul(b, at, N, WG, G, 1);
                    matmul(b, at, N, WU, U, 1);
                    on(b, GATE, at, G, U, G);
                    matmul(b, at, G, WD, S, pieces);
                }
            }
            PTOWSP_PARALLEL(m, i, blocks) {
                on(b, ADD, first_token(b, i), H, S, Y);
            }
        }
    }
}

// -- data -----------------------------------------------------------------------------------------

// Element (row, col) of a whole tensor.
static double element(int id, int64_t row, int64_t col) {
    uint64_t x = (uint64_t)id * 1000003 + (uint64_t)row * 4099 + (uint64_t)col;
    x = (x ^ (x >> 13)) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    return ((double)(x % 2001) - 1000) / 1000 * (id == X ? 1 : 0.1);
}

static void fill(block *b) {
    for (int i = 0; i < TENSOR_COUNT; i++) {
        tensor *t = &b->tensors[i];
        ptowsp_mesh_layout layout;
        ptowsp_mesh_layout_part part;
        command_check(b->w->context, ptowsp_tensor_layout(b->m, t->id, &layout));
        command_check(b->w->context, ptowsp_mesh_layout_part_of(b->w->context, &b->mesh, &layout,
                                                                b->w->rank, &part));
        t->rows = part.sizes[0];
        t->cols = part.sizes[1];
        t->data = command_allocate((uint64_t)(t->rows * t->cols), sizeof(float));
        for (int64_t r = 0; (i == X || i >= WQ) && r < t->rows; r++) {
            for (int64_t c = 0; c < t->cols; c++) {
                t->data[r * t->cols + c] =
                    (float)element(i, part.offsets[0] + r, part.offsets[1] + c);
            }
        }
    }
}

// -- one rank in double precision -----------------------------------------------------------------

static double *times(const double *x, int64_t tokens, int64_t inner, int w, int64_t cols) {
    double *out = command_allocate((uint64_t)(tokens * cols), sizeof *out);
    for (int64_t r = 0; r < tokens; r++) {
        for (int64_t k = 0; k < inner; k++) {
            for (int64_t c = 0; c < cols; c++) {
                out[r * cols + c] += x[r * inner + k] * (double)(float)element(w, k, c);
            }
        }
    }
    return out;
}

static double *normed(const double *x, int64_t tokens) {
    double *out = command_allocate((uint64_t)(tokens * DIM), sizeof *out);
    for (int64_t r = 0; r < tokens; r++) {
        double sum = 0;
        for (int64_t c = 0; c < DIM; c++) {
            sum += x[r * DIM + c] * x[r * DIM + c];
        }
        for (int64_t c = 0; c < DIM; c++) {
            out[r * DIM + c] = x[r * DIM + c] / sqrt(sum / DIM + 1e-5);
        }
    }
    return out;
}

static double *attended(const double *q, const double *k, const double *v, int64_t tokens) {
    double *out = command_allocate((uint64_t)(tokens * DIM), sizeof *out);
    for (int64_t r = 0; r < tokens; r++) {
        for (int64_t h = 0; h < HEADS; h++) {
            double sum = 0;
            for (int64_t t = 0; t <= r; t++) {
                double score = 0;
                for (int64_t d = h * HEAD; d < (h + 1) * HEAD; d++) {
                    score += q[r * DIM + d] * k[t * DIM + d];
                }
                const double weight = exp(score * 0.25);
                sum += weight;
                for (int64_t d = h * HEAD; d < (h + 1) * HEAD; d++) {
                    out[r * DIM + d] += weight * v[t * DIM + d];
                }
            }
            for (int64_t d = h * HEAD; d < (h + 1) * HEAD; d++) {
                out[r * DIM + d] /= sum;
            }
        }
    }
    return out;
}

// The largest difference to it, relative to the largest result.
static double error_of(const float *y, int64_t tokens) {
    double *x = command_allocate((uint64_t)(tokens * DIM), sizeof *x);
    for (int64_t e = 0; e < tokens * DIM; e++) {
        x[e] = (double)(float)element(X, e / DIM, e % DIM);
    }
    double *n = normed(x, tokens);
    double *q = times(n, tokens, DIM, WQ, DIM), *k = times(n, tokens, DIM, WK, DIM);
    double *v = times(n, tokens, DIM, WV, DIM), *a = attended(q, k, v, tokens);
    double *h = times(a, tokens, DIM, WO, DIM);
    for (int64_t e = 0; e < tokens * DIM; e++) {
        h[e] += x[e];
    }
    double *n2 = normed(h, tokens), *g = times(n2, tokens, DIM, WG, HIDDEN);
    double *u = times(n2, tokens, DIM, WU, HIDDEN);
    for (int64_t e = 0; e < tokens * HIDDEN; e++) {
        g[e] = g[e] / (1 + exp(-g[e])) * u[e];
    }
    double *d = times(g, tokens, HIDDEN, WD, DIM), worst = 0, largest = 0;
    for (int64_t e = 0; e < tokens * DIM; e++) {
        const double due = h[e] + d[e];
        worst = fmax(worst, fabs((double)y[e] - due));
        largest = fmax(largest, fabs(due));
    }
    double *const all[] = {x, n, q, k, v, a, h, n2, g, u, d};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
    return worst / largest;
}

// -- a rank ---------------------------------------------------------------------------------------

// Measures the product alone, on this core.
static void measure_product(block *b) {
    enum { RUNS = 20 };
    uint64_t args[] = {
        BLOCK, DIM, DIM, (uint64_t)b->tensors[WG].cols, BLOCK, (uint64_t)b->tensors[WG].cols, 1};
    ptowsp_tile tiles[3] = {
        {.data = b->tensors[X].data, .row_stride = DIM, .col_stride = 1},
        {.data = b->tensors[WG].data, .row_stride = b->tensors[WG].cols, .col_stride = 1},
        {.data = b->tensors[G].data, .row_stride = b->tensors[G].cols, .col_stride = 1}};
    const ptowsp_task t = {
        .args = args, .arg_count = 7, .axis_arg_count = 6, .tile_count = 3, .tiles = tiles};
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        const uint64_t begin = ptowsp_clock_ns();
        matmul_fn(&t, NULL);
        const uint64_t took = ptowsp_clock_ns() - begin;
        best = took < best ? took : best;
    }
    const double own = (double)best / (double)(BLOCK * DIM * b->tensors[WG].cols);
    double *all = command_allocate(b->w->rank_count, sizeof *all);
    world_gather(b->w, &own, all, sizeof own);
    ns_per_mac = all[0];
    free(all);
}

static int tensor_parallel(world *w, void *user) {
    const options *o = (const options *)user;
    block b = {.w = w, .o = o};
    command_check(w->context, ptowsp_module_create(w->context, NULL, &b.m));
    build(&b);
    fill(&b);
    measure_product(&b);
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
                                      .lane_count = (uint32_t)o->lanes};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    command_check(w->context, ptowsp_program_create(w->context, b.m, &desc, &program));
    command_check(w->context, ptowsp_run_create(w->context, program, &run));
    for (int i = 0; i < TENSOR_COUNT; i++) {
        const ptowsp_buffer buffer = {.data = b.tensors[i].data};
        command_check(w->context, ptowsp_run_bind_tensor(run, b.tensors[i].name, &buffer));
    }
    const world_picture picture = {o->draw, o->simulated, "tensor_parallel", kernel_names, KERNELS};
    const world_times times = world_execute(w, run, (uint32_t)o->lanes, &picture);
    const tensor *y = &b.tensors[Y];
    const uint64_t bits =
        ptowsp_hash(PTOWSP_HASH_START, y->data, (uint64_t)(y->rows * y->cols) * sizeof(float));
    const double error = error_of(y->data, y->rows);
    const bool is_same = world_largest(w, bits) == bits, is_good = is_same && error < 1e-4;
    if (w->rank == 0) {
        printf("%u rank%s  simulated %8.1f us  measured %8.1f us  bits %016llx  error %.1e: %s\n",
               w->rank_count, w->rank_count == 1 ? " " : "s", (double)times.simulated_ns / 1000,
               (double)times.measured_ns / 1000, (unsigned long long)bits, error,
               is_good ? "good" : "WRONG");
    }
    for (int i = 0; i < TENSOR_COUNT; i++) {
        free(b.tensors[i].data);
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(b.m);
    return is_good ? 0 : 1;
}

int main(int argc, char **argv) {
    options o = {0, 4, 1, NULL, NULL};
    const command_option numbers[] = {{"--ranks", &o.ranks, NULL, 1, 4},
                                      {"--blocks", &o.blocks, NULL, 1, 64},
                                      {"--lanes", &o.lanes, NULL, 1, 8}};
    const command_text texts[] = {{"--draw", &o.draw}, {"--simulated", &o.simulated}};
    command_parse_texts(argc, argv, help, numbers, 3, texts, 2);
    o.ranks = world_size() ? world_size() : o.ranks;
    if (o.ranks == 3 || o.ranks > 4) {
        command_fail("%u ranks: there are 1, 2 or 4", (unsigned)o.ranks);
    }
    int code = 0;
    for (uint32_t p = 1; p <= 4; p *= 2) {
        if (o.ranks == 0 || o.ranks == p) {
            code |= world_run(p, (uint32_t)o.lanes, tensor_parallel, &o);
        }
    }
    command_flush();
    return code;
}
