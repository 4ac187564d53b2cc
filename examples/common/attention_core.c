// Operations are in an order in which a small one, on a value of each row, is beside a large one that
// does not need it: so it takes no barrier of its own.

#include "attention_core.h"

#include <math.h>
#include <stdio.h>

#define LOWEST -1e30

typedef struct group {
    ptowsp_value queries, out, most, sum, acc;
} group;

typedef struct constants {
    ptowsp_value scale, lowest, nothing, zeros;
} constants;

static void carry(group *g, const constants *c) {
    g->most = ptowsp_tile_carry(c->lowest);
    g->sum = ptowsp_tile_carry(c->nothing);
    g->acc = ptowsp_tile_carry(c->zeros);
}

static void chunk_add(group *g, ptowsp_value keys, ptowsp_value values, ptowsp_value scale) {
    ptowsp_value scores = ptowsp_tile_matmul(g->queries, keys);
    ptowsp_value now = ptowsp_tile_max(g->most, ptowsp_tile_rowmax(scores));
    ptowsp_value weights = ptowsp_tile_sub(scores, now), fix = ptowsp_tile_sub(g->most, now);
    weights = ptowsp_tile_mul(weights, scale);
    fix = ptowsp_tile_mul(fix, scale);
    weights = ptowsp_tile_exp(weights);
    fix = ptowsp_tile_exp(fix);
    ptowsp_value before = ptowsp_tile_mul(g->sum, fix);
    ptowsp_value narrow = ptowsp_tile_cvt(weights, PTOWSP_F16, PTOWSP_ROUND_NEAREST);
    ptowsp_value sum = ptowsp_tile_rowsum(weights);
    ptowsp_value part = ptowsp_tile_matmul(narrow, values);
    ptowsp_tile_next(g->most, now);
    ptowsp_tile_next(g->sum, ptowsp_tile_add(before, sum));
    ptowsp_tile_next(g->acc, ptowsp_tile_add(ptowsp_tile_mul(g->acc, fix), part));
}

ptowsp_kernel attention_core_make(ptowsp_module *m, const char *name, const attention_core *a) {
    enum { ROWS = ATTENTION_CORE_ROWS, HEAD = ATTENTION_CORE_HEAD };
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name, .is_fused = true});
    group groups[ATTENTION_CORE_GROUPS] = {{.queries = {0}}};
    char text[16];
    for (int i = 0; i < ATTENTION_CORE_GROUPS; i++) {
        snprintf(text, sizeof text, "q%d", i);
        groups[i].queries = ptowsp_tile_in(k, text, PTOWSP_F16, ROWS, HEAD);
    }
    ptowsp_value keys = ptowsp_tile_in(k, "k", PTOWSP_F16, a->keys, HEAD);
    ptowsp_value values = ptowsp_tile_in(k, "v", PTOWSP_F16, a->keys, HEAD);
    for (int i = 0; i < ATTENTION_CORE_GROUPS; i++) {
        snprintf(text, sizeof text, "out%d", i);
        groups[i].out = ptowsp_tile_out(k, text, PTOWSP_F32, ROWS, HEAD);
    }
    const constants c = {ptowsp_tile_const(k, 1.0 / sqrt(HEAD)),
                         ptowsp_tile_full(k, PTOWSP_F32, ROWS, 1, LOWEST),
                         ptowsp_tile_full(k, PTOWSP_F32, ROWS, 1, 0),
                         ptowsp_tile_full(k, PTOWSP_F32, ROWS, HEAD, 0)};
    int64_t chunk = a->chunk ? a->chunk : 256;
    chunk = chunk < a->keys ? chunk : a->keys;
    ptowsp_value none = {0};
    PTOWSP_TILE_LOOP(k, at, ptowsp_tile_const(k, 0), ptowsp_tile_rows(keys), chunk) {
        if (a->preload) {
            ptowsp_tile_preload(at, a->preload);
        }
        for (int i = 0; i < ATTENTION_CORE_GROUPS; i++) {
            carry(&groups[i], &c);
        }
        ptowsp_value key = ptowsp_tile_slice_at(keys, at, none, chunk, HEAD);
        ptowsp_value turned = ptowsp_tile_transpose(key);
        ptowsp_value value = ptowsp_tile_slice_at(values, at, none, chunk, HEAD);
        for (int i = 0; i < ATTENTION_CORE_GROUPS; i++) {
            chunk_add(&groups[i], turned, value, c.scale);
        }
    }
    for (int i = 0; i < ATTENTION_CORE_GROUPS; i++) {
        ptowsp_tile_store(groups[i].out, ptowsp_tile_div(groups[i].acc, groups[i].sum));
    }
    return ptowsp_kernel_end(k);
}
