// Attention by tile kernels with an online softmax (Milakov and Gimelshein 2018; Dao et al. 2022):
// queries meet one chunk of 64 keys and values at a time. What is known so far of each row is kept
// in tensors: the largest score m, the sum l of e^(score - m), and acc, the same sum weighted with
// values. So the chunks of a tile of queries run one after another, and all else beside them:
//
//      prefill     a sequence of 200 tokens, 2 heads, 64 queries to a tile; under the causal mask a
//                  tile takes the chunks before it whole and its own with a mask
//      decode      one token of each of 3 requests with 300, 64 and 129 tokens in the cache; the 8
//                  query heads that share a KV head are the rows of a tile. One task does a request:
//                  a loop over its chunks carries m, l and acc, and loads the next chunk meanwhile;
//                  of the last one only part is there
//
// In prefill the first chunk needs no state, the others correct it by e^(m before - m now), and a
// last kernel divides acc by l.
//
//      attention --queries N --keys N
//
// is one head of 128 in f16 as it is done by hand on a 910B: a block of a cube core and two vector
// cores for each 128 queries, and all of its work is one kernel, whose cube core is two chunks of keys
// ahead (attention_core.h). It prints the predicted time of that kernel, then of PTO-ISA's own
// schedule (predict_attention.c) beside the published time of sizes that have been measured.

#include "ptowsp.h"

#include "common/attention_core.h"
#include "common/command.h"
#include "common/emit.h"
#include "common/predict_attention.h"
#include "common/published.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DIM = 64,
    CHUNK = 64,
    SEQUENCE = 200,
    HEADS = 2,
    REQUESTS = 3,
    GROUP = 8,         // query heads of a KV head
    CACHE_CHUNKS = 5,  // of a request, at most
    CACHE = CACHE_CHUNKS * CHUNK,
    LANES = 8
};

#define ALLOWED 2e-6
#define LOWEST  -1e30  // of scores that do not count: e^(it - m) is 0

// -- kernels --------------------------------------------------------------------------------------

// What is masked: nothing; or what a tile of a matrix says, to be added.
typedef enum masking { MASK_NOTHING, MASK_TILE, MASK_COUNT } masking;

// One chunk. Tiles: q, k, v, m, l, acc, and the mask if there is one.
static ptowsp_kernel step_make(ptowsp_module *m, const char *name, int64_t rows, bool is_first,
                               masking mask) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name});
    ptowsp_value query = ptowsp_tile_in(k, "q", PTOWSP_F32, rows, DIM);
    ptowsp_value keys = ptowsp_tile_in(k, "k", PTOWSP_F32, DIM, CHUNK);
    ptowsp_value values = ptowsp_tile_in(k, "v", PTOWSP_F32, CHUNK, DIM);
    ptowsp_value state[3];
    const char *const names[3] = {"m", "l", "acc"};
    for (int i = 0; i < 3; i++) {
        int64_t cols = i == 2 ? DIM : 1;
        state[i] = is_first ? ptowsp_tile_out(k, names[i], PTOWSP_F32, rows, cols)
                            : ptowsp_tile_inout(k, names[i], PTOWSP_F32, rows, cols);
    }
    ptowsp_value scores =
        ptowsp_tile_mul(ptowsp_tile_matmul(query, keys), ptowsp_tile_const(k, 1.0 / sqrt(DIM)));
    if (mask == MASK_TILE) {
        scores = ptowsp_tile_add(scores, ptowsp_tile_in(k, "mask", PTOWSP_F32, rows, CHUNK));
    }
    ptowsp_value most = ptowsp_tile_rowmax(scores);
    most = is_first ? most : ptowsp_tile_max(state[0], most);
    ptowsp_value weights = ptowsp_tile_exp(ptowsp_tile_sub(scores, most));
    ptowsp_value sum = ptowsp_tile_rowsum(weights), acc = ptowsp_tile_matmul(weights, values);
    if (!is_first) {
        ptowsp_value fix = ptowsp_tile_exp(ptowsp_tile_sub(state[0], most));
        sum = ptowsp_tile_add(ptowsp_tile_mul(state[1], fix), sum);
        acc = ptowsp_tile_add(ptowsp_tile_mul(state[2], fix), acc);
    }
    ptowsp_tile_store(state[0], most);
    ptowsp_tile_store(state[1], sum);
    ptowsp_tile_store(state[2], acc);
    return ptowsp_kernel_end(k);
}

// All chunks of a request whose cache holds `length` tokens.
static ptowsp_kernel decode_kernel_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "decode"});
    ptowsp_value query = ptowsp_tile_in(k, "q", PTOWSP_F32, GROUP, DIM);
    ptowsp_value keys = ptowsp_tile_in(k, "k", PTOWSP_F32, DIM, CACHE);
    ptowsp_value values = ptowsp_tile_in(k, "v", PTOWSP_F32, CACHE, DIM);
    ptowsp_value out = ptowsp_tile_out(k, "out", PTOWSP_F32, GROUP, DIM);
    ptowsp_value length = ptowsp_tile_scalar(k, "length", PTOWSP_I64);
    ptowsp_value lowest = ptowsp_tile_full(k, PTOWSP_F32, GROUP, 1, LOWEST);
    ptowsp_value nothing = ptowsp_tile_full(k, PTOWSP_F32, GROUP, 1, 0);
    ptowsp_value zeros = ptowsp_tile_full(k, PTOWSP_F32, GROUP, DIM, 0);
    ptowsp_value none = {0}, most = none, sum = none, acc = none;
    PTOWSP_TILE_LOOP(k, key, ptowsp_tile_const(k, 0), length, CHUNK) {
        most = ptowsp_tile_carry(lowest);
        sum = ptowsp_tile_carry(nothing);
        acc = ptowsp_tile_carry(zeros);
        ptowsp_value scores = ptowsp_tile_mul(
            ptowsp_tile_matmul(query, ptowsp_tile_slice_at(keys, none, key, DIM, CHUNK)),
            ptowsp_tile_const(k, 1.0 / sqrt(DIM)));
        ptowsp_value now = ptowsp_tile_max(most, ptowsp_tile_rowmax(scores));
        ptowsp_value weights = ptowsp_tile_exp(ptowsp_tile_sub(scores, now));
        ptowsp_value fix = ptowsp_tile_exp(ptowsp_tile_sub(most, now));
        ptowsp_value part =
            ptowsp_tile_matmul(weights, ptowsp_tile_slice_at(values, key, none, CHUNK, DIM));
        ptowsp_tile_next(most, now);
        ptowsp_tile_next(sum,
                         ptowsp_tile_add(ptowsp_tile_mul(sum, fix), ptowsp_tile_rowsum(weights)));
        ptowsp_tile_next(acc, ptowsp_tile_add(ptowsp_tile_mul(acc, fix), part));
    }
    ptowsp_tile_store(out, ptowsp_tile_div(acc, sum));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel finish_make(ptowsp_module *m, const char *name, int64_t rows) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name});
    ptowsp_value sum = ptowsp_tile_in(k, "l", PTOWSP_F32, rows, 1);
    ptowsp_value acc = ptowsp_tile_in(k, "acc", PTOWSP_F32, rows, DIM);
    ptowsp_value out = ptowsp_tile_out(k, "out", PTOWSP_F32, rows, DIM);
    ptowsp_tile_store(out, ptowsp_tile_div(acc, sum));
    return ptowsp_kernel_end(k);
}

// -- workloads ------------------------------------------------------------------------------------

typedef struct attention {
    setup_matrix *q, *k, *k_t, *v, *mask, *m, *l, *acc, *out;
    ptowsp_kernel steps[2][MASK_COUNT];  // [is not the first chunk][masking]
    ptowsp_kernel finish, decode;
    double *wanted;
    double error;
} attention;

static void matrices_make(setup *s, attention *a, const char *prefix, int64_t count, int64_t rows,
                          int64_t tokens, bool has_state) {
    static char names[2][8][32];  // live as long as the matrices
    static int used;
    static const char *const parts[8] = {"q", "k", "k_t", "v", "m", "l", "acc", "out"};
    for (int i = 0; i < 8; i++) {
        snprintf(names[used][i], sizeof names[used][i], "%s_%s", prefix, parts[i]);
    }
    a->q = setup_stack_make(s, names[used][0], PTOWSP_F32, count, rows, DIM);
    a->k = setup_stack_make(s, names[used][1], PTOWSP_F32, count, tokens, DIM);
    a->k_t = setup_transpose_make(s, names[used][2], a->k);
    a->v = setup_stack_make(s, names[used][3], PTOWSP_F32, count, tokens, DIM);
    if (has_state) {
        a->m = setup_stack_make(s, names[used][4], PTOWSP_F32, count, rows, 1);
        a->l = setup_stack_make(s, names[used][5], PTOWSP_F32, count, rows, 1);
        a->acc = setup_stack_make(s, names[used][6], PTOWSP_F32, count, rows, DIM);
    }
    a->out = setup_stack_make(s, names[used][7], PTOWSP_F32, count, rows, DIM);
    a->wanted = (double *)command_allocate((uint64_t)(count * rows * DIM), sizeof(double));
    used++;
    setup_fill_random(s, a->q, -2.0, 2.0);
    setup_fill_random(s, a->k, -2.0, 2.0);
    setup_fill_random(s, a->v, -1.0, 1.0);
}

// The keys from `key` on for the queries from `row` on, of matrix `index` of the stacks.
typedef struct place {
    ptowsp_expr index, row, key;
} place;

static void step_task(ptowsp_module *m, const attention *a, const place *at, bool is_first,
                      masking mask) {
    ptowsp_expr zero = ptowsp_i64(m, 0), index = at->index, row = at->row;
    ptowsp_task_desc task = {.kernel = a->steps[!is_first][mask],
                             .views = {setup_stack_view(a->q, index, row, zero),
                                       setup_stack_view(a->k_t, index, zero, at->key),
                                       setup_stack_view(a->v, index, at->key, zero),
                                       setup_stack_view(a->m, index, row, zero),
                                       setup_stack_view(a->l, index, row, zero),
                                       setup_stack_view(a->acc, index, row, zero)}};
    if (mask == MASK_TILE) {
        task.views[6] = setup_view(a->mask, row, at->key);
    }
    ptowsp_task_make(m, &task);
}

static void finish_task(ptowsp_module *m, const attention *a, ptowsp_expr index, ptowsp_expr row) {
    ptowsp_expr zero = ptowsp_i64(m, 0);
    ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = a->finish,
                                            .views = {setup_stack_view(a->l, index, row, zero),
                                                      setup_stack_view(a->acc, index, row, zero),
                                                      setup_stack_view(a->out, index, row, zero)}});
}

// One chunk, by one of four kernels: the first or not, to be masked or not.
static void step_make_task(ptowsp_module *m, const attention *a, const place *at,
                           ptowsp_expr is_first, ptowsp_expr is_masked, masking mask) {
    PTOWSP_WHEN(m, is_first) {
        PTOWSP_WHEN(m, is_masked) {
            step_task(m, a, at, true, mask);
        }
        PTOWSP_OTHERWISE(m) {
            step_task(m, a, at, true, MASK_NOTHING);
        }
    }
    PTOWSP_OTHERWISE(m) {
        PTOWSP_WHEN(m, is_masked) {
            step_task(m, a, at, false, mask);
        }
        PTOWSP_OTHERWISE(m) {
            step_task(m, a, at, false, MASK_NOTHING);
        }
    }
}

static void prefill_make(ptowsp_module *m, const attention *a) {
    ptowsp_axis heads = ptowsp_axis_dense(m, "heads", HEADS);
    ptowsp_axis tiles = ptowsp_axis_dense(m, "tiles", (SEQUENCE + CHUNK - 1) / CHUNK);
    ptowsp_axis before = ptowsp_axis_dense(m, "before", (SEQUENCE + CHUNK - 1) / CHUNK);
    ptowsp_expr chunk = ptowsp_i64(m, CHUNK), zero = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "prefill") {
        PTOWSP_PARALLEL(m, h, heads) {
            PTOWSP_PARALLEL(m, t, tiles) {
                PTOWSP_SEQUENCE(m) {
                    PTOWSP_FOR_EACH(m, c, before) {
                        PTOWSP_WHEN(m, ptowsp_le(c, t)) {
                            place at = {h, ptowsp_mul(t, chunk), ptowsp_mul(c, chunk)};
                            step_make_task(m, a, &at, ptowsp_eq(c, zero), ptowsp_eq(c, t),
                                           MASK_TILE);
                        }
                    }
                    finish_task(m, a, h, ptowsp_mul(t, chunk));
                }
            }
        }
    }
}

static void decode_make(ptowsp_module *m, const attention *a) {
    ptowsp_axis requests = ptowsp_axis_dense(m, "requests", REQUESTS);
    ptowsp_expr zero = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "decode") {
        PTOWSP_PARALLEL(m, r, requests) {
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = a->decode,
                                       .views = {setup_stack_view(a->q, r, zero, zero),
                                                 setup_stack_view(a->k_t, r, zero, zero),
                                                 setup_stack_view(a->v, r, zero, zero),
                                                 setup_stack_view(a->out, r, zero, zero)},
                                       .scalars = {ptowsp_array_at(m, "lengths", PTOWSP_I32, r)}});
        }
    }
}

// -- reference ------------------------------------------------------------------------------------

// One row: the softmax of its scores with the first key_count keys, times their values.
static void reference_row(const attention *a, int64_t index, int64_t row, int64_t key_count) {
    int64_t q_row = index * a->q->rows + row, kv_row = index * a->k->rows;
    double scores[SEQUENCE > CACHE ? SEQUENCE : CACHE], most = -INFINITY, sum = 0.0;
    double *out = a->wanted + q_row * DIM;
    for (int64_t i = 0; i < key_count; i++) {
        scores[i] = 0.0;
        for (int64_t d = 0; d < DIM; d++) {
            scores[i] += setup_get(a->q, q_row, d) * setup_get(a->k, kv_row + i, d) / sqrt(DIM);
        }
        most = fmax(most, scores[i]);
    }
    for (int64_t i = 0; i < key_count; i++) {
        scores[i] = exp(scores[i] - most);
        sum += scores[i];
    }
    for (int64_t d = 0; d < DIM; d++) {
        out[d] = 0.0;
        for (int64_t i = 0; i < key_count; i++) {
            out[d] += scores[i] / sum * setup_get(a->v, kv_row + i, d);
        }
    }
}

// -- running --------------------------------------------------------------------------------------

static const int32_t lengths[REQUESTS] = {300, 64, 129};

static void decode_bind(void *user, ptowsp_run *run) {
    (void)user;
    if (ptowsp_run_bind_array(run, "lengths", PTOWSP_I32, lengths, REQUESTS)) {
        command_fail("cannot bind the lengths");
    }
}

static void prepare(void *user) {  // whatever state there is at the beginning, it is not used
    const attention *a = (const attention *)user;
    const setup_matrix *const written[] = {a->m, a->l, a->acc, a->out};
    for (int i = 0; i < 4; i++) {
        if (written[i]) {
            setup_fill(written[i], NAN);
        }
    }
}

static bool check(void *user) {
    attention *a = (attention *)user;
    a->error = setup_error(a->out, a->wanted);
    return a->error <= ALLOWED;
}

static bool run(setup *s, const char *name, attention *a) {
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = LANES};
    s->prepare = prepare;
    s->check = check;
    s->user = a;
    if (a->decode.id == 0) {  // whose cycles depend on the request
        setup_print_kernel(s, "next", a->steps[1][MASK_NOTHING]);
    }
    bool is_good = setup_run(s, name, &schedule);
    is_good &= setup_report(a->out, a->error, ALLOWED);
    free(a->wanted);
    return is_good;
}

static bool prefill(setup *s) {
    attention a = {.mask = setup_matrix_make(s, "mask", PTOWSP_F32, SEQUENCE, SEQUENCE)};
    matrices_make(s, &a, "prefill", HEADS, SEQUENCE, SEQUENCE, true);
    for (int64_t i = 0; i < SEQUENCE * SEQUENCE; i++) {
        setup_set(a.mask, i / SEQUENCE, i % SEQUENCE, i % SEQUENCE <= i / SEQUENCE ? 0.0 : LOWEST);
    }
    for (int64_t i = 0; i < HEADS * SEQUENCE; i++) {
        reference_row(&a, i / SEQUENCE, i % SEQUENCE, i % SEQUENCE + 1);
    }
    a.steps[0][MASK_NOTHING] = step_make(s->module, "prefill_first", CHUNK, true, MASK_NOTHING);
    a.steps[0][MASK_TILE] = step_make(s->module, "prefill_first_masked", CHUNK, true, MASK_TILE);
    a.steps[1][MASK_NOTHING] = step_make(s->module, "prefill_next", CHUNK, false, MASK_NOTHING);
    a.steps[1][MASK_TILE] = step_make(s->module, "prefill_next_masked", CHUNK, false, MASK_TILE);
    a.finish = finish_make(s->module, "prefill_finish", CHUNK);
    prefill_make(s->module, &a);
    printf("prefill of %d tokens, %d heads of %d, causal, in tiles of %d\n", SEQUENCE, HEADS, DIM,
           CHUNK);
    return run(s, "prefill", &a);
}

static bool decode(setup *s) {
    attention a = {.mask = NULL};
    matrices_make(s, &a, "decode", REQUESTS, GROUP, CACHE, false);
    for (int64_t i = 0; i < REQUESTS * GROUP; i++) {
        reference_row(&a, i / GROUP, i % GROUP, lengths[i / GROUP]);
    }
    a.decode = decode_kernel_make(s->module);
    decode_make(s->module, &a);
    s->bind = decode_bind;
    printf("decode of %d requests with %d, %d and %d tokens, %d heads of %d, in chunks of %d\n",
           REQUESTS, (int)lengths[0], (int)lengths[1], (int)lengths[2], GROUP, DIM, CHUNK);
    return run(s, "decode", &a);
}

// -- one head on all cores ------------------------------------------------------------------------

enum { SIZE_MOST = 131072, WORK_MAX_CHECKED = 1 << 20, CHUNKS_AHEAD = 2 };

#define WHOLE_ALLOWED 2e-3  // probabilities are rounded to f16

typedef struct whole {
    setup_matrix *q, *k, *v, *out;
    double *wanted;
    double error;
} whole;

static void whole_reference(const whole *w) {
    enum { HEAD = ATTENTION_CORE_HEAD };
    double *scores = (double *)command_allocate((uint64_t)w->k->rows, sizeof *scores);
    for (int64_t row = 0; row < w->q->rows; row++) {
        double most = -INFINITY, sum = 0.0;
        for (int64_t i = 0; i < w->k->rows; i++) {
            scores[i] = 0.0;
            for (int64_t d = 0; d < HEAD; d++) {
                scores[i] += setup_get(w->q, row, d) * setup_get(w->k, i, d) / sqrt(HEAD);
            }
            most = fmax(most, scores[i]);
        }
        for (int64_t i = 0; i < w->k->rows; i++) {
            double weight = exp(scores[i] - most);
            sum += weight;
            for (int64_t d = 0; d < HEAD; d++) {
                w->wanted[row * HEAD + d] += weight * setup_get(w->v, i, d);
            }
        }
        for (int64_t d = 0; d < HEAD; d++) {
            w->wanted[row * HEAD + d] /= sum;
        }
    }
    free(scores);
}

static void whole_prepare(void *user) {
    setup_fill(((const whole *)user)->out, NAN);
}

static bool whole_check(void *user) {
    whole *w = (whole *)user;
    double error = setup_error(w->out, w->wanted);
    w->error = error <= w->error ? w->error : error;  // keeps a NaN
    return error <= WHOLE_ALLOWED;
}

static void whole_make(ptowsp_module *m, const whole *w, ptowsp_kernel kernel) {
    int64_t rows = ATTENTION_CORE_GROUPS * ATTENTION_CORE_ROWS;
    ptowsp_expr zero = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "whole") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "blocks", w->q->rows / rows)) {
            ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, rows));
            ptowsp_expr next = ptowsp_add(row, ptowsp_i64(m, ATTENTION_CORE_ROWS));
            ptowsp_task_make(
                m, &(ptowsp_task_desc){
                       .kernel = kernel,
                       .views = {setup_view(w->q, row, zero), setup_view(w->q, next, zero),
                                 setup_view(w->k, zero, zero), setup_view(w->v, zero, zero),
                                 setup_view(w->out, row, zero), setup_view(w->out, next, zero)}});
        }
    }
}

// The line about PTO-ISA's schedule, which is of whole tiles.
static void whole_print(uint64_t queries, uint64_t keys) {
    char shape[64];
    predict_times times;
    if (keys % ATTENTION_ROWS) {
        return;
    }
    predict_attention(queries, keys, &times);
    snprintf(shape, sizeof shape, "S0=%d S1=%d ", (int)queries, (int)keys);
    double published = published_us("flash_attention_jit", shape);
    printf("  by hand   %.1f us", times.us);
    if (published > 0) {
        printf("; published %.1f us, ratio %.2f", published, times.us / published);
    }
    printf("\n");
}

static bool all_queries(setup *s, int64_t queries, int64_t keys) {
    const attention_core core = {.keys = keys, .preload = CHUNKS_AHEAD};
    ptowsp_kernel kernel = attention_core_make(s->module, "block", &core);
    whole w = {.q = setup_matrix_make(s, "q", PTOWSP_F16, queries, ATTENTION_CORE_HEAD),
               .k = setup_matrix_make(s, "k", PTOWSP_F16, keys, ATTENTION_CORE_HEAD),
               .v = setup_matrix_make(s, "v", PTOWSP_F16, keys, ATTENTION_CORE_HEAD),
               .out = setup_matrix_make(s, "out", PTOWSP_F32, queries, ATTENTION_CORE_HEAD)};
    whole_make(s->module, &w, kernel);
    ptowsp_schedule schedule = {.lane_count = ATTENTION_CORES};
    bool is_good = true;
    printf("attention of %d queries to %d keys, a head of %d in f16, %d queries of a block\n",
           (int)queries, (int)keys, ATTENTION_CORE_HEAD,
           ATTENTION_CORE_GROUPS * ATTENTION_CORE_ROWS);
    setup_print_kernel(s, "block", kernel);
    if (queries * keys <= WORK_MAX_CHECKED) {
        w.wanted =
            (double *)command_allocate((uint64_t)(queries * ATTENTION_CORE_HEAD), sizeof(double));
        setup_fill_random(s, w.q, -2.0, 2.0);
        setup_fill_random(s, w.k, -2.0, 2.0);
        setup_fill_random(s, w.v, -1.0, 1.0);
        whole_reference(&w);
        s->prepare = whole_prepare;
        s->check = whole_check;
        s->user = &w;
        is_good = setup_run(s, "whole", &schedule);
        is_good &= setup_report(w.out, w.error, WHOLE_ALLOWED);
        free(w.wanted);
    } else {
        printf("  (values are computed and checked up to %d scores)\n", WORK_MAX_CHECKED);
    }
    published_print(s, &schedule, 0, "flash_attention_jit", "");
    whole_print((uint64_t)queries, (uint64_t)keys);
    return is_good;
}

static const char help_text[] =
    "Attention by tile kernels, compared with double precision.\n"
    "  --queries N   of one head of 128, in whole 128s; with --keys: its time on a 910B\n"
    "  --keys N      that each query attends to\n"
    "  --threads N   lanes that run kernels, 1 to 64 (1); what is printed is the same for all\n"
    "  --emit DIR    also writes, builds and runs the trees\n"
    "  --cache DIR, --compiler NAME, --options TEXT   of the trees\n";

int main(int argc, char **argv) {
    setup s;
    uint64_t queries = 0, keys = 0;
    const command_option more[] = {{"--queries", &queries, NULL, 1, SIZE_MOST},
                                   {"--keys", &keys, NULL, 1, SIZE_MOST}};
    emit_create_with(&s, argc, argv, help_text, more, 2);
    if ((queries == 0) != (keys == 0)) {
        command_fail("--queries and --keys go together");
    }
    if (queries % ATTENTION_ROWS) {
        command_fail("--queries %d: not whole blocks of %d", (int)queries, ATTENTION_ROWS);
    }
    if (queries) {
        bool is_right = all_queries(&s, (int64_t)queries, (int64_t)keys);
        setup_destroy(&s);
        return is_right ? 0 : 1;
    }
    bool is_good = prefill(&s);
    is_good &= decode(&s);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}
