// Tasks stand in a parallel scope; what waits for what follows from the tiles they share.
// deepseek.h says what is computed.

#include "deepseek.h"

#include "command.h"
#include "lengths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DS_T = DEEPSEEK_TOKENS,
    DS_D = DEEPSEEK_DIM,
    DS_H = DEEPSEEK_HEADS,
    DS_L = DEEPSEEK_LATENT,
    DS_R = DEEPSEEK_ROPE / 2,  // pairs of numbers that are rotated
    DS_K = DEEPSEEK_LATENT + DEEPSEEK_ROPE,
    DS_P = DEEPSEEK_PAGE,
    DS_U = DEEPSEEK_TOKENS * DEEPSEEK_PAGES_MAX,  // pages, so units and slots
    DS_E = DEEPSEEK_EXPERTS,
    DS_X = DEEPSEEK_TOP_K,
    DS_F = DEEPSEEK_HIDDEN,
    GROUPS = 8,
    GROUPS_CHOSEN = 4,
    OF_GROUP = DS_E / GROUPS,
    TILE = 16,         // tokens
    PART = DS_K / 4,   // columns of a product, which fit L0
    ROUTED = DS_E / 4  // likewise, of the router
};

#define EPSILON     1e-6
#define SCALE       0.07216878364870322  // 1 / sqrt(128 + 64), the sizes before absorbing
#define GATES_TOTAL 2.5

// -- kernels --------------------------------------------------------------------------------------

typedef struct kernels {
    ptowsp_kernel norm, project, rope, append, score, soften, weigh, take, join, finish, output;
    ptowsp_kernel add_norm, route, sigmoid, gather, up, gate, down, combine;
} kernels;

static ptowsp_body *begin(ptowsp_module *m, const char *name) {
    return ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name});
}

static ptowsp_value in(ptowsp_body *k, const char *name, int64_t rows, int64_t cols) {
    return ptowsp_tile_in(k, name, PTOWSP_F32, rows, cols);
}

static ptowsp_value out(ptowsp_body *k, const char *name, int64_t rows, int64_t cols) {
    return ptowsp_tile_out(k, name, PTOWSP_F32, rows, cols);
}

static ptowsp_value inout(ptowsp_body *k, const char *name, int64_t rows, int64_t cols) {
    return ptowsp_tile_inout(k, name, PTOWSP_F32, rows, cols);
}

static ptowsp_value normed(ptowsp_body *k, ptowsp_value x, ptowsp_value gamma) {
    ptowsp_value mean = ptowsp_tile_rowmean(ptowsp_tile_mul(x, x));
    ptowsp_value scale = ptowsp_tile_rsqrt(ptowsp_tile_add(mean, ptowsp_tile_const(k, EPSILON)));
    return ptowsp_tile_mul(ptowsp_tile_mul(x, scale), gamma);
}

static ptowsp_kernel norm_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "norm");
    ptowsp_value x = in(k, "x", TILE, DS_D), gamma = in(k, "gamma", 1, DS_D);
    ptowsp_tile_store(out(k, "n", TILE, DS_D), normed(k, x, gamma));
    return ptowsp_kernel_end(k);
}

// x + the sum of what heads add to it, and its norm.
static ptowsp_kernel add_norm_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "add_norm");
    ptowsp_value x = in(k, "x", TILE, DS_D), o = in(k, "o", TILE, DS_H * DS_D);
    ptowsp_value gamma = in(k, "gamma", 1, DS_D), h = out(k, "h", TILE, DS_D), sum = x;
    for (int64_t head = 0; head < DS_H; head++) {
        sum = ptowsp_tile_add(sum, ptowsp_tile_slice(o, 0, head * DS_D, TILE, DS_D));
    }
    ptowsp_tile_store(h, sum);
    ptowsp_tile_store(out(k, "n", TILE, DS_D), normed(k, sum, gamma));
    return ptowsp_kernel_end(k);
}

// y = x w, in steps of so many rows of w, of which one at a time has to fit L0.
static ptowsp_kernel product_make(ptowsp_module *m, const char *name, int64_t rows, int64_t depth,
                                  int64_t cols, int64_t step) {
    ptowsp_body *k = begin(m, name);
    ptowsp_value x = in(k, "x", rows, depth), w = in(k, "w", depth, cols), sum = {0};
    for (int64_t i = 0; i < depth; i += step) {
        ptowsp_value left = ptowsp_tile_slice(x, 0, i, rows, step);
        ptowsp_value right = ptowsp_tile_slice(w, i, 0, step, cols);
        sum = i == 0 ? ptowsp_tile_matmul(left, right) : ptowsp_tile_matmul_acc(sum, left, right);
    }
    ptowsp_tile_store(out(k, "y", rows, cols), sum);
    return ptowsp_kernel_end(k);
}

// Stores a and b, rotated by angles that are one for each column.
static void rotate(ptowsp_value a, ptowsp_value b, ptowsp_value cosine, ptowsp_value sine,
                   ptowsp_value to_a, ptowsp_value to_b) {
    ptowsp_value left = ptowsp_tile_mul(a, cosine), right = ptowsp_tile_mul(b, cosine);
    ptowsp_tile_store(to_a, ptowsp_tile_sub(left, ptowsp_tile_mul(b, sine)));
    ptowsp_tile_store(to_b, ptowsp_tile_add(right, ptowsp_tile_mul(a, sine)));
}

static ptowsp_kernel rope_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "rope");
    ptowsp_value cosine = in(k, "cosine", 1, DS_R), sine = in(k, "sine", 1, DS_R);
    ptowsp_value a = inout(k, "a", DS_H, DS_R), b = inout(k, "b", DS_H, DS_R);
    rotate(a, b, cosine, sine, a, b);
    return ptowsp_kernel_end(k);
}

// A token's row of the cache.
static ptowsp_kernel append_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "append");
    ptowsp_value cosine = in(k, "cosine", 1, DS_R), sine = in(k, "sine", 1, DS_R);
    ptowsp_value c = in(k, "c", 1, DS_L), a = in(k, "a", 1, DS_R), b = in(k, "b", 1, DS_R);
    ptowsp_value gamma = in(k, "gamma", 1, DS_L), to = out(k, "row", 1, DS_L);
    ptowsp_value to_a = out(k, "row_a", 1, DS_R), to_b = out(k, "row_b", 1, DS_R);
    ptowsp_tile_store(to, normed(k, c, gamma));
    rotate(a, b, cosine, sine, to_a, to_b);
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel soften_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "soften");
    ptowsp_value s = in(k, "s", DS_H, DS_P), p = out(k, "p", DS_H, DS_P);
    ptowsp_value most = out(k, "m", DS_H, 1), sum = out(k, "l", DS_H, 1);
    ptowsp_value scaled = ptowsp_tile_mul(s, ptowsp_tile_const(k, SCALE));
    ptowsp_value max = ptowsp_tile_rowmax(scaled);
    ptowsp_value weights = ptowsp_tile_exp(ptowsp_tile_sub(scaled, max));
    ptowsp_tile_store(p, weights);
    ptowsp_tile_store(most, max);
    ptowsp_tile_store(sum, ptowsp_tile_rowsum(weights));
    return ptowsp_kernel_end(k);
}

// The state of a row: what it was computed with, for two parts.
static ptowsp_kernel join_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "join");
    ptowsp_value max = in(k, "part_m", DS_H, 1), sum = in(k, "part_l", DS_H, 1);
    ptowsp_value acc = in(k, "part_acc", DS_H, DS_L), to_max = inout(k, "m", DS_H, 1);
    ptowsp_value to_sum = inout(k, "l", DS_H, 1), to_acc = inout(k, "acc", DS_H, DS_L);
    ptowsp_value now = ptowsp_tile_max(to_max, max);
    ptowsp_value old = ptowsp_tile_exp(ptowsp_tile_sub(to_max, now));
    ptowsp_value part = ptowsp_tile_exp(ptowsp_tile_sub(max, now));
    ptowsp_tile_store(to_max, now);
    ptowsp_tile_store(to_sum,
                      ptowsp_tile_add(ptowsp_tile_mul(to_sum, old), ptowsp_tile_mul(sum, part)));
    ptowsp_tile_store(to_acc,
                      ptowsp_tile_add(ptowsp_tile_mul(to_acc, old), ptowsp_tile_mul(acc, part)));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel take_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "take");
    ptowsp_value max = in(k, "part_m", DS_H, 1), sum = in(k, "part_l", DS_H, 1);
    ptowsp_value acc = in(k, "part_acc", DS_H, DS_L);
    ptowsp_tile_store(out(k, "m", DS_H, 1), max);
    ptowsp_tile_store(out(k, "l", DS_H, 1), sum);
    ptowsp_tile_store(out(k, "acc", DS_H, DS_L), acc);
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel finish_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "finish");
    ptowsp_value sum = in(k, "l", DS_H, 1), acc = in(k, "acc", DS_H, DS_L);
    ptowsp_tile_store(out(k, "a", DS_H, DS_L), ptowsp_tile_div(acc, sum));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel sigmoid_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "sigmoid");
    ptowsp_value x = in(k, "logits", TILE, DS_E);
    ptowsp_tile_store(out(k, "scores", TILE, DS_E), ptowsp_tile_sigmoid(x));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel gather_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "gather");
    ptowsp_value x = in(k, "token", 1, DS_D);
    ptowsp_tile_store(out(k, "row", 1, DS_D), x);
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel up_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "up");
    ptowsp_value x = in(k, "x", TILE, DS_D), wg = in(k, "wg", DS_D, DS_F);
    ptowsp_value wu = in(k, "wu", DS_D, DS_F), g = out(k, "g", TILE, DS_F);
    ptowsp_value u = out(k, "u", TILE, DS_F);
    ptowsp_tile_store(g, ptowsp_tile_matmul(x, wg));
    ptowsp_tile_store(u, ptowsp_tile_matmul(x, wu));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel gate_make(ptowsp_module *m) {
    ptowsp_body *k = begin(m, "gate");
    ptowsp_value g = in(k, "g", TILE, DS_F), u = in(k, "u", TILE, DS_F);
    ptowsp_tile_store(out(k, "f", TILE, DS_F), ptowsp_tile_mul(ptowsp_tile_silu(g), u));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel combine_make(ptowsp_module *m) {
    static const char *const parts[DS_X] = {"part0", "part1", "part2", "part3",
                                            "part4", "part5", "part6", "part7"};
    static const char *const gates[DS_X] = {"gate0", "gate1", "gate2", "gate3",
                                            "gate4", "gate5", "gate6", "gate7"};
    ptowsp_body *k = begin(m, "combine");
    ptowsp_value h = in(k, "h", 1, DS_D), shared = in(k, "shared", 1, DS_D), part[DS_X];
    for (int i = 0; i < DS_X; i++) {
        part[i] = in(k, parts[i], 1, DS_D);
    }
    ptowsp_value y = out(k, "y", 1, DS_D), sum = ptowsp_tile_add(h, shared);
    for (int i = 0; i < DS_X; i++) {
        ptowsp_value gate = ptowsp_tile_scalar(k, gates[i], PTOWSP_F32);
        sum = ptowsp_tile_add(sum, ptowsp_tile_mul(part[i], gate));
    }
    ptowsp_tile_store(y, sum);
    return ptowsp_kernel_end(k);
}

static kernels kernels_make(ptowsp_module *m) {
    const kernels k = {
        .norm = norm_make(m),
        .project = product_make(m, "project", TILE, DS_D, PART, DS_D),
        .rope = rope_make(m),
        .append = append_make(m),
        .score = product_make(m, "score", DS_H, DS_K, DS_P, PART),
        .soften = soften_make(m),
        .weigh = product_make(m, "weigh", DS_H, DS_P, DS_L / 4, DS_P),
        .take = take_make(m),
        .join = join_make(m),
        .finish = finish_make(m),
        .output = product_make(m, "output", TILE, DS_L, DS_D, DS_L / 4),
        .add_norm = add_norm_make(m),
        .route = product_make(m, "route", TILE, DS_D, ROUTED, DS_D),
        .sigmoid = sigmoid_make(m),
        .gather = gather_make(m),
        .up = up_make(m),
        .gate = gate_make(m),
        .down = product_make(m, "down", TILE, DS_F, DS_D, DS_F),
        .combine = combine_make(m),
    };
    return k;
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

static const ptowsp_expr nil;  // 0 in views

static ptowsp_expr number(ptowsp_module *m, int64_t value) {
    return ptowsp_i64(m, value);
}

static ptowsp_expr times(ptowsp_expr x, int64_t value) {
    return ptowsp_mul(x, ptowsp_i64(x.module, value));
}

static ptowsp_expr plus(ptowsp_expr x, int64_t value) {
    return ptowsp_add(x, ptowsp_i64(x.module, value));
}

// The first row in the cache of the page that has token `kv` of a request.
static ptowsp_expr page_row(ptowsp_module *m, ptowsp_expr request, ptowsp_expr kv) {
    ptowsp_expr page = ptowsp_div(kv, number(m, DS_P));
    ptowsp_expr at = ptowsp_add(times(request, DEEPSEEK_PAGES_MAX), page);
    return times(ptowsp_array_at(m, "pages", PTOWSP_I32, at), DS_P);
}

// Queries and cache, of tiles of tokens, then token by token.
static void projections_make(ptowsp_module *m, const deepseek *b, const kernels *k) {
    ptowsp_axis tiles = ptowsp_axis_dense(m, "tiles", DS_T / TILE);
    ptowsp_axis tokens = ptowsp_axis_dense(m, "tokens", DS_T);
    PTOWSP_PARALLEL(m, i, tiles) {
        ptowsp_expr row = times(i, TILE);
        TASK(k->norm, setup_view(b->x, row, nil), setup_view(b->gamma1, nil, nil),
             setup_view(b->n, row, nil));
        PTOWSP_PARALLEL(m, part, ptowsp_axis_dense(m, "q_parts", DS_H * DS_K / PART)) {
            ptowsp_expr col = times(part, PART);
            TASK(k->project, setup_view(b->n, row, nil), setup_view(b->wq, nil, col),
                 setup_view(b->q_flat, row, col));
        }
        PTOWSP_PARALLEL(m, part, ptowsp_axis_dense(m, "c_parts", DS_K / PART)) {
            ptowsp_expr col = times(part, PART);
            TASK(k->project, setup_view(b->n, row, nil), setup_view(b->wc, nil, col),
                 setup_view(b->c, row, col));
        }
    }
    PTOWSP_PARALLEL(m, t, tokens) {
        ptowsp_expr a = number(m, DS_L), second = number(m, DS_L + DS_R);
        ptowsp_expr last = plus(ptowsp_array_at(m, "lengths", PTOWSP_I32, t), -1);
        ptowsp_expr row = ptowsp_add(page_row(m, t, last), ptowsp_rem(last, number(m, DS_P)));
        TASK(k->rope, setup_view(b->cosines, t, nil), setup_view(b->sines, t, nil),
             setup_stack_view(b->q, t, nil, a), setup_stack_view(b->q, t, nil, second));
        TASK(k->append, setup_view(b->cosines, t, nil), setup_view(b->sines, t, nil),
             setup_view(b->c, t, nil), setup_view(b->c, t, a), setup_view(b->c, t, second),
             setup_view(b->gamma_c, nil, nil), setup_view(b->cache, row, nil),
             setup_view(b->cache, row, a), setup_view(b->cache, row, second));
    }
}

// Units write their states to slots behind those of requests, unless they are whole.
static void attention_make(ptowsp_module *m, const deepseek *b, const kernels *k) {
    ptowsp_axis units = ptowsp_axis_plan(m, "kv"), merges = ptowsp_axis_plan_merges(m, "kv");
    PTOWSP_PARALLEL(m, unit, units) {
        ptowsp_expr request = ptowsp_loop_field(unit, PTOWSP_PLAN_REQUEST);
        ptowsp_expr kv = ptowsp_loop_field(unit, PTOWSP_PLAN_KV_LEN);
        ptowsp_expr row = page_row(m, request, ptowsp_loop_field(unit, PTOWSP_PLAN_KV_START));
        ptowsp_expr slot = plus(ptowsp_loop_field(unit, PTOWSP_PLAN_SLOT), DS_T);
        ptowsp_expr at =
            ptowsp_select(ptowsp_loop_field(unit, PTOWSP_PLAN_IS_WHOLE), request, slot);
        ptowsp_view keys = setup_view(b->cache_t, nil, row);
        ptowsp_view s = setup_stack_view(b->s, unit, nil, nil);
        ptowsp_view p = setup_stack_view(b->p, unit, nil, nil);
        keys.col_count = s.col_count = p.col_count = kv;
        TASK(k->score, setup_stack_view(b->q, request, nil, nil), keys, s);
        TASK(k->soften, s, p, setup_stack_view(b->m, at, nil, nil),
             setup_stack_view(b->l, at, nil, nil));
        PTOWSP_PARALLEL(m, part, ptowsp_axis_dense(m, "v_parts", 4)) {
            ptowsp_expr col = times(part, DS_L / 4);
            ptowsp_view values = setup_view(b->cache, row, col);
            values.row_count = kv;
            TASK(k->weigh, p, values, setup_stack_view(b->acc, at, nil, col));
        }
    }
    PTOWSP_PARALLEL(m, merge, merges) {
        ptowsp_expr to = ptowsp_loop_field(merge, PTOWSP_PLAN_REQUEST);
        ptowsp_expr first = plus(ptowsp_loop_field(merge, PTOWSP_PLAN_SLOT_FIRST), DS_T);
        ptowsp_expr count = ptowsp_loop_field(merge, PTOWSP_PLAN_SLOT_COUNT);
        TASK(k->take, setup_stack_view(b->m, first, nil, nil),
             setup_stack_view(b->l, first, nil, nil), setup_stack_view(b->acc, first, nil, nil),
             setup_stack_view(b->m, to, nil, nil), setup_stack_view(b->l, to, nil, nil),
             setup_stack_view(b->acc, to, nil, nil));
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "more_slots", DEEPSEEK_PAGES_MAX - 1)) {
            PTOWSP_WHEN(m, ptowsp_lt(plus(i, 1), count)) {
                ptowsp_expr slot = plus(ptowsp_add(first, i), 1);
                TASK(k->join, setup_stack_view(b->m, slot, nil, nil),
                     setup_stack_view(b->l, slot, nil, nil),
                     setup_stack_view(b->acc, slot, nil, nil), setup_stack_view(b->m, to, nil, nil),
                     setup_stack_view(b->l, to, nil, nil), setup_stack_view(b->acc, to, nil, nil));
            }
        }
    }
    PTOWSP_PARALLEL(m, t, ptowsp_axis_dense(m, "finished", DS_T)) {
        TASK(k->finish, setup_stack_view(b->l, t, nil, nil), setup_stack_view(b->acc, t, nil, nil),
             setup_stack_view(b->a, t, nil, nil));
    }
}

static void router_make(ptowsp_module *m, const deepseek *b, const kernels *k) {
    PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "router_tiles", DS_T / TILE)) {
        ptowsp_expr row = times(i, TILE);
        PTOWSP_PARALLEL(m, head, ptowsp_axis_dense(m, "o_heads", DS_H)) {
            ptowsp_expr value = times(head, DS_L);
            TASK(k->output, setup_view(b->a_flat, row, value), setup_view(b->wo, value, nil),
                 setup_view(b->o, row, times(head, DS_D)));
        }
        TASK(k->add_norm, setup_view(b->x, row, nil), setup_view(b->o, row, nil),
             setup_view(b->gamma2, nil, nil), setup_view(b->h, row, nil),
             setup_view(b->n2, row, nil));
        PTOWSP_PARALLEL(m, part, ptowsp_axis_dense(m, "r_parts", DS_E / ROUTED)) {
            ptowsp_expr col = times(part, ROUTED);
            TASK(k->route, setup_view(b->n2, row, nil), setup_view(b->wr, nil, col),
                 setup_view(b->logits, row, col));
        }
        TASK(k->sigmoid, setup_view(b->logits, row, nil), setup_view(b->scores, row, nil));
    }
}

// Applies an expert to `count` tokens (none: a tile) of x from x_row on; its rows begin at `row`.
static void expert_make(ptowsp_module *m, const deepseek *b, const kernels *k, ptowsp_expr expert,
                        const setup_matrix *x, ptowsp_expr x_row, ptowsp_expr row,
                        ptowsp_expr count) {
    const setup_matrix *const of[5] = {x, b->g, b->u, b->f, b->made};
    ptowsp_view views[5];
    for (int i = 0; i < 5; i++) {
        views[i] = setup_view(of[i], i == 0 ? x_row : row, nil);
        views[i].row_count = count;
    }
    TASK(k->up, views[0], setup_stack_view(b->wg, expert, nil, nil),
         setup_stack_view(b->wu, expert, nil, nil), views[1], views[2]);
    TASK(k->gate, views[1], views[2], views[3]);
    TASK(k->down, views[3], setup_stack_view(b->wd, expert, nil, nil), views[4]);
}

static void experts_make(ptowsp_module *m, const deepseek *b, const kernels *k) {
    PTOWSP_PARALLEL(m, row, ptowsp_axis_dense(m, "sorted_rows", DS_T * DS_X)) {
        ptowsp_expr pair =
            ptowsp_cast(ptowsp_array_at(m, "pairs", PTOWSP_U32, row), PTOWSP_TYPE_I64);
        TASK(k->gather, setup_view(b->n2, ptowsp_div(pair, number(m, DS_X)), nil),
             setup_view(b->sorted, row, nil));
    }
    PTOWSP_PARALLEL(m, unit, ptowsp_axis_plan(m, "experts")) {
        ptowsp_expr row = ptowsp_loop_field(unit, PTOWSP_PLAN_TOKEN_START);
        expert_make(m, b, k, ptowsp_loop_field(unit, PTOWSP_PLAN_EXPERT), b->sorted, row, row,
                    ptowsp_loop_field(unit, PTOWSP_PLAN_TOKEN_COUNT));
    }
    PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "shared_tiles", DS_T / TILE)) {
        ptowsp_expr row = times(i, TILE);
        expert_make(m, b, k, number(m, DS_E), b->n2, row, plus(row, DS_T * DS_X), nil);
    }
    PTOWSP_PARALLEL(m, t, ptowsp_axis_dense(m, "combined", DS_T)) {
        ptowsp_task_desc task = {
            .kernel = k->combine,
            .views = {setup_view(b->h, t, nil), setup_view(b->made, plus(t, DS_T * DS_X), nil)}};
        for (int i = 0; i < DS_X; i++) {
            ptowsp_expr pair = plus(times(t, DS_X), i);
            ptowsp_expr row = ptowsp_array_at(m, "rows", PTOWSP_U32, pair);
            task.views[2 + i] = setup_view(b->made, ptowsp_cast(row, PTOWSP_TYPE_I64), nil);
            task.scalars[i] = ptowsp_array_at(m, "gates", PTOWSP_U32, pair);
        }
        task.views[2 + DS_X] = setup_view(b->y, t, nil);
        ptowsp_task_make(m, &task);
    }
}

static void workload_make(ptowsp_module *m, const deepseek *b) {
    const kernels k = kernels_make(m);
    PTOWSP_WORKLOAD(m, "block") {
        PTOWSP_WHEN(m, ptowsp_eq(ptowsp_symbol(m, "phase"), ptowsp_u64(m, 0))) {
            PTOWSP_COMBINE(m) {
                projections_make(m, b, &k);
                attention_make(m, b, &k);
                router_make(m, b, &k);
            }
        }
        PTOWSP_OTHERWISE(m) {
            PTOWSP_COMBINE(m) {
                experts_make(m, b, &k);
            }
        }
    }
}

// -- routing --------------------------------------------------------------------------------------

// The index of the largest of values[0] to values[count - 1], which is lost.
static int largest_take(double *values, int count) {
    int best = 0;
    for (int i = 1; i < count; i++) {
        best = values[i] > values[best] ? i : best;
    }
    values[best] = -INFINITY;
    return best;
}

// The experts of a token by its scores, with their gates.
static void experts_choose(const double *scores, const double *bias, int32_t *ids, double *gates) {
    double biased[DS_E], best[DS_E], groups[GROUPS], sum = 0.0;
    bool is_chosen[GROUPS] = {false};
    for (int e = 0; e < DS_E; e++) {
        biased[e] = best[e] = scores[e] + bias[e];
    }
    for (int g = 0; g < GROUPS; g++) {
        double *of_group = best + g * OF_GROUP;
        groups[g] = biased[g * OF_GROUP + largest_take(of_group, OF_GROUP)];
        groups[g] += biased[g * OF_GROUP + largest_take(of_group, OF_GROUP)];
    }
    for (int i = 0; i < GROUPS_CHOSEN; i++) {
        is_chosen[largest_take(groups, GROUPS)] = true;
    }
    for (int e = 0; e < DS_E; e++) {
        biased[e] = is_chosen[e / OF_GROUP] ? biased[e] : -INFINITY;
    }
    for (int i = 0; i < DS_X; i++) {
        ids[i] = largest_take(biased, DS_E);
        sum += scores[ids[i]];
    }
    for (int i = 0; i < DS_X; i++) {
        gates[i] = scores[ids[i]] / sum * GATES_TOTAL;
    }
}

void deepseek_route(deepseek *b, setup *s) {
    for (int64_t t = 0; t < DS_T; t++) {
        double scores[DS_E], gates[DS_X];
        for (int64_t e = 0; e < DS_E; e++) {
            scores[e] = setup_get(b->scores, t, e);
        }
        experts_choose(scores, b->bias, b->ids + t * DS_X, gates);
        for (int64_t i = 0; i < DS_X; i++) {
            const float gate = (float)gates[i];
            memcpy(&b->gates[t * DS_X + i], &gate, sizeof gate);
        }
    }
    const ptowsp_moe_routes routes = {
        .ids = b->ids, .token_count = DS_T, .top_k = DS_X, .expert_count = DS_E};
    ptowsp_moe_order order = {.counts = b->counts,
                              .offsets = b->offsets,
                              .pairs = b->pairs,
                              .rows = b->rows,
                              .row_capacity = DS_T * DS_X};
    const ptowsp_moe_config config = {
        .expert_count = DS_E, .lane_count = b->lane_count, .unit_tokens = TILE};
    const ptowsp_moe_batch batch = {.counts = b->counts, .offsets = b->offsets};
    command_check(s->context, ptowsp_moe_sort(&routes, &order, NULL));
    command_check(s->context, ptowsp_moe_generate(&batch, &config, &b->experts, NULL));
    b->phase = 1;
}

// -- reference ------------------------------------------------------------------------------------

static double *real(int64_t rows, int64_t cols) {
    return (double *)command_allocate((uint64_t)(rows * cols), sizeof(double));
}

// result = x w, where w are `depth` rows of a matrix or stack from `row` on.
static void reference_product(const double *x, int64_t depth, const setup_matrix *w, int64_t row,
                              double *result) {
    const float *weights = (const float *)w->data + row * w->cols;
    for (int64_t c = 0; c < w->cols; c++) {
        double sum = 0.0;
        for (int64_t i = 0; i < depth; i++) {
            sum += x[i] * (double)weights[i * w->cols + c];
        }
        result[c] = sum;
    }
}

static void reference_norm(double *x, int64_t count, const setup_matrix *gamma, double *result) {
    double squares = 0.0;
    for (int64_t i = 0; i < count; i++) {
        squares += x[i] * x[i];
    }
    for (int64_t i = 0; i < count; i++) {
        result[i] = x[i] * setup_get(gamma, 0, i) / sqrt(squares / (double)count + EPSILON);
    }
}

static void reference_rope(const deepseek *b, int64_t token, double *x) {
    for (int64_t i = 0; i < DS_R; i++) {
        const double left = x[i], right = x[i + DS_R];
        const double c = setup_get(b->cosines, token, i), s = setup_get(b->sines, token, i);
        x[i] = left * c - right * s;
        x[i + DS_R] = right * c + left * s;
    }
}

// One head: result[LATENT] of q[K] and the token's rows of the cache, of which the last is its own.
static void reference_head(int64_t length, const double *rows, const double *q, double *result) {
    double scores[DEEPSEEK_PAGES_MAX * DS_P], most = -INFINITY, sum = 0.0;
    for (int64_t i = 0; i < length; i++) {
        scores[i] = 0.0;
        for (int64_t d = 0; d < DS_K; d++) {
            scores[i] += q[d] * rows[i * DS_K + d] * SCALE;
        }
        most = fmax(most, scores[i]);
    }
    for (int64_t i = 0; i < length; i++) {
        scores[i] = exp(scores[i] - most);
        sum += scores[i];
    }
    memset(result, 0, DS_L * sizeof *result);
    for (int64_t i = 0; i < length; i++) {
        for (int64_t d = 0; d < DS_L; d++) {
            result[d] += scores[i] / sum * rows[i * DS_K + d];
        }
    }
}

// Adds gate * expert(x) to y.
static void reference_expert(const deepseek *b, int64_t expert, const double *x, double gate,
                             double *y) {
    double g[DS_F], u[DS_F], made[DS_D];
    reference_product(x, DS_D, b->wg, expert * DS_D, g);
    reference_product(x, DS_D, b->wu, expert * DS_D, u);
    for (int64_t i = 0; i < DS_F; i++) {
        g[i] = g[i] / (1.0 + exp(-g[i])) * u[i];
    }
    reference_product(g, DS_F, b->wd, expert * DS_F, made);
    for (int64_t i = 0; i < DS_D; i++) {
        y[i] += gate * made[i];
    }
}

static void reference_token(deepseek *b, int64_t t) {
    double x[DS_D], n[DS_D], o[DS_D], scores[DS_E], gates[DS_X];
    const int64_t length = b->lengths[t];
    double *q = real(DS_H, DS_K), *a = real(DS_H, DS_L), *rows = real(length, DS_K);
    double *own = rows + (length - 1) * DS_K;
    for (int64_t i = 0; i + 1 < length; i++) {
        const int64_t page = b->pages[t * DEEPSEEK_PAGES_MAX + i / DS_P];
        for (int64_t d = 0; d < DS_K; d++) {
            rows[i * DS_K + d] = setup_get(b->cache, page * DS_P + i % DS_P, d);
        }
    }
    for (int64_t i = 0; i < DS_D; i++) {
        x[i] = setup_get(b->x, t, i);
    }
    reference_norm(x, DS_D, b->gamma1, n);
    reference_product(n, DS_D, b->wq, 0, q);
    reference_product(n, DS_D, b->wc, 0, own);
    reference_norm(own, DS_L, b->gamma_c, own);
    reference_rope(b, t, own + DS_L);
    for (int64_t head = 0; head < DS_H; head++) {
        reference_rope(b, t, q + head * DS_K + DS_L);
        reference_head(length, rows, q + head * DS_K, a + head * DS_L);
    }
    reference_product(a, DS_H * DS_L, b->wo, 0, o);
    for (int64_t i = 0; i < DS_D; i++) {
        x[i] += o[i];
    }
    reference_norm(x, DS_D, b->gamma2, n);
    reference_product(n, DS_D, b->wr, 0, scores);
    for (int64_t e = 0; e < DS_E; e++) {
        scores[e] = 1.0 / (1.0 + exp(-scores[e]));
    }
    experts_choose(scores, b->bias, b->wanted_ids + t * DS_X, gates);
    reference_expert(b, DS_E, n, 1.0, x);
    for (int64_t i = 0; i < DS_X; i++) {
        reference_expert(b, b->wanted_ids[t * DS_X + i], n, gates[i], x);
    }
    memcpy(b->wanted + t * DS_D, x, sizeof x);
    free(q);
    free(a);
    free(rows);
}

// -- data -----------------------------------------------------------------------------------------

// Pages in any order, and what a request's token is rotated by.
static void lengths_make(deepseek *b, setup *s) {
    int32_t pages[DS_U];
    for (int32_t i = 0; i < DS_U; i++) {  // shuffled from the inside
        const int32_t j = (int32_t)(lengths_random(&s->random) % (uint64_t)(i + 1));
        pages[i] = pages[j];
        pages[j] = i;
    }
    memcpy(b->pages, pages, sizeof pages);
    for (int64_t t = 0; t < DS_T; t++) {
        const uint64_t most = DEEPSEEK_PAGES_MAX * DS_P;
        b->lengths[t] = t == 0 ? 1 : 1 + (int32_t)(lengths_random(&s->random) % most);
        for (int64_t i = 0; i < DS_R; i++) {
            const double angle = (b->lengths[t] - 1) * pow(10000.0, -(double)i / (double)DS_R);
            setup_set(b->cosines, t, i, cos(angle));
            setup_set(b->sines, t, i, sin(angle));
        }
    }
}

static void plan_make(deepseek *b, setup *s) {
    const ptowsp_attention_batch batch = {.kv_lengths = b->lengths, .sequence_count = DS_T};
    const ptowsp_attention_config config = {.kv_head_count = 1,
                                            .group = DS_H,
                                            .lane_count = b->lane_count,
                                            .mode = PTOWSP_ATTENTION_INVARIANT,
                                            .page_size = DS_P,
                                            .chunk = DS_P};
    ptowsp_attention_sizes sizes;
    command_check(s->context, ptowsp_attention_size(&batch, &config, &sizes, NULL));
    free(b->plan_block);
    b->plan_block = command_allocate(sizes.block_bytes, 1);
    command_check(s->context,
                  ptowsp_attention_place(&sizes, b->plan_block, sizes.block_bytes, &b->plan));
    command_check(s->context, ptowsp_attention_generate(&batch, &config, &b->plan, NULL));
}

void deepseek_fill(deepseek *b, setup *s) {
    const setup_matrix *const weights[] = {b->wq, b->wc, b->wo, b->wr, b->wg, b->wu, b->wd};
    const setup_matrix *const gammas[] = {b->gamma1, b->gamma2, b->gamma_c};
    const setup_matrix *const written[] = {
        b->n, b->q,  b->c, b->s, b->p, b->m,      b->l,      b->acc,    b->a,    b->o,
        b->h, b->n2, b->g, b->u, b->f, b->logits, b->scores, b->sorted, b->made, b->y};
    setup_fill_random(s, b->x, -2.0, 2.0);
    setup_fill_random(s, b->cache, -1.5, 1.5);
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        const double high = sqrt(3.0 / (double)weights[i]->rows);  // products keep their variance
        setup_fill_random(s, weights[i], -high, high);
    }
    for (size_t i = 0; i < sizeof gammas / sizeof gammas[0]; i++) {
        setup_fill_random(s, gammas[i], 0.5, 1.5);
    }
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        setup_fill(written[i], NAN);
    }
    for (int64_t e = 0; e < DS_E; e++) {
        b->bias[e] = 0.1 * lengths_random_unit(&s->random);
    }
    lengths_make(b, s);
    plan_make(b, s);
    for (int64_t t = 0; t < DS_T; t++) {
        reference_token(b, t);
    }
    b->experts.unit_count = 0;
    b->experts.lane_count = b->lane_count;
    memset(b->unit_begin, 0, (b->lane_count + 1) * sizeof *b->unit_begin);
    b->phase = 0;
}

bool deepseek_check(deepseek *b) {
    b->error = setup_error(b->y, b->wanted);
    b->has_same_experts = memcmp(b->ids, b->wanted_ids, sizeof b->ids) == 0;
    return b->error <= DEEPSEEK_ALLOWED && b->has_same_experts;
}

static void bind(void *user, ptowsp_run *run) {
    const deepseek *b = (const deepseek *)user;
    const ptowsp_attention_plan experts = ptowsp_moe_plan_units(&b->experts);
    if (ptowsp_run_bind_symbol(run, "phase", b->phase) ||
        ptowsp_run_bind_plan(run, "kv", &b->plan) ||
        ptowsp_run_bind_plan(run, "experts", &experts) ||
        ptowsp_run_bind_array(run, "lengths", PTOWSP_I32, b->lengths, DS_T) ||
        ptowsp_run_bind_array(run, "pages", PTOWSP_I32, b->pages, DS_U) ||
        ptowsp_run_bind_array(run, "pairs", PTOWSP_U32, b->pairs, DS_T * DS_X) ||
        ptowsp_run_bind_array(run, "rows", PTOWSP_U32, b->rows, DS_T * DS_X) ||
        ptowsp_run_bind_array(run, "gates", PTOWSP_U32, b->gates, DS_T * DS_X)) {
        command_fail("cannot bind plans and arrays");
    }
}

void deepseek_make(deepseek *b, setup *s, uint32_t lane_count) {
    memset(b, 0, sizeof *b);
    b->lane_count = lane_count;
#define DEEPSEEK_MATRIX(name, rows, cols)                                                          \
    b->name = setup_matrix_make(s, #name, PTOWSP_F32, rows, cols);
#define DEEPSEEK_STACK(name, count, rows, cols)                                                    \
    b->name = setup_stack_make(s, #name, PTOWSP_F32, count, rows, cols);
    DEEPSEEK_MATRICES(DEEPSEEK_MATRIX, DEEPSEEK_STACK)
#undef DEEPSEEK_MATRIX
#undef DEEPSEEK_STACK
    b->q_flat = setup_flat_make(s, "q_flat", b->q);
    b->a_flat = setup_flat_make(s, "a_flat", b->a);
    b->cache_t = setup_transpose_make(s, "cache_t", b->cache);
    b->unit_begin = (uint32_t *)command_allocate(lane_count + 1, sizeof *b->unit_begin);
    b->experts.units = b->units;
    b->experts.unit_begin = b->unit_begin;
    b->experts.unit_capacity = DS_T * DS_X;
    b->wanted = real(DS_T, DS_D);
    b->wanted_ids = (int32_t *)command_allocate(DS_T * DS_X, sizeof *b->wanted_ids);
    workload_make(s->module, b);
    s->bind = bind;
    s->user = b;
}

void deepseek_destroy(deepseek *b) {
    free(b->wanted);
    free(b->wanted_ids);
    free(b->unit_begin);
    free(b->plan_block);
}
