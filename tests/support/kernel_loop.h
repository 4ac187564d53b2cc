// Kernels that are written once and built twice: with loops, and unrolled by hand. Both are to give
// the very same bytes.
//
//      lp l = lp_begin(t, is_looped, begin, end, step);
//      while (lp_more(&l)) {                                 once, or for each iteration
//          ptowsp_value sum = lp_carry(&l, 0, initial);
//          lp_next(&l, 0, sum, ptowsp_tile_add(sum, lp_chunk(&l, x, rows, cols, true, false)));
//      }
//      ... lp_result(&l, 0, initial) ...

#ifndef PTOWSP_KERNEL_LOOP_H
#define PTOWSP_KERNEL_LOOP_H

#include "kernel_fixture.h"

#define LP_CARRIED 8

typedef struct lp {
    kt *t;
    bool is_looped, is_open, is_done;
    int64_t begin, end, step, at;
    ptowsp_value index;
    ptowsp_value state[LP_CARRIED];
} lp;

static const ptowsp_value lp_none = {NULL, 0};
static int64_t lp_preload;  // iterations that loops begin ahead; 0: none

static inline ptowsp_value lp_const(kt *t, int64_t x) {
    return ptowsp_tile_const(t->k, (double)x);
}

// begin and end as the task has them, and as the loop is told (id 0: constants).
static inline lp lp_begin_as(kt *t, bool is_looped, int64_t begin, int64_t end, int64_t step,
                             ptowsp_value from, ptowsp_value to) {
    lp l = {.t = t, .is_looped = is_looped};
    l.begin = l.at = begin;
    l.end = end;
    l.step = step;
    if (is_looped) {
        l.index = ptowsp_tile_loop_begin(t->k, from.id ? from : lp_const(t, begin),
                                         to.id ? to : lp_const(t, end), step);
        if (lp_preload) {
            ptowsp_tile_preload(l.index, lp_preload);
        }
    }
    return l;
}

static inline lp lp_begin(kt *t, bool is_looped, int64_t begin, int64_t end, int64_t step) {
    return lp_begin_as(t, is_looped, begin, end, step, lp_none, lp_none);
}

static inline bool lp_more(lp *l) {
    if (l->is_looped) {
        if (l->is_open) {
            ptowsp_tile_loop_end(l->t->k);
        }
        l->is_open = !l->is_open;
        return l->is_open;
    }
    l->at += l->is_open ? l->step : 0;
    l->is_open = true;
    return l->at < l->end;
}

static inline ptowsp_value lp_carry(lp *l, int i, ptowsp_value initial) {
    if (l->is_looped || l->state[i].id == 0) {
        l->state[i] = l->is_looped ? ptowsp_tile_carry(initial) : initial;
    }
    return l->state[i];
}

// All next values of an iteration are to be given after all carried ones have been read.
static inline void lp_next(lp *l, int i, ptowsp_value carried, ptowsp_value next) {
    if (l->is_looped) {
        ptowsp_tile_next(carried, next);
    } else {
        l->state[i] = next;
    }
}

static inline ptowsp_value lp_result(const lp *l, int i, ptowsp_value initial) {
    return l->state[i].id ? l->state[i] : initial;
}

// rows x cols of a parameter, at the loops' indices or at 0.
static inline ptowsp_value lp_chunk(const lp *by_row, const lp *by_col, ptowsp_value param,
                                    int64_t rows, int64_t cols) {
    const lp *l = by_row ? by_row : by_col;
    if (l->is_looped) {
        return ptowsp_tile_slice_at(param, by_row ? by_row->index : lp_none,
                                    by_col ? by_col->index : lp_none, rows, cols);
    }
    return ptowsp_tile_slice(param, by_row ? by_row->at : 0, by_col ? by_col->at : 0, rows, cols);
}

// Stores to a part of a parameter, at the loops' indices.
static inline void lp_store(const lp *by_row, const lp *by_col, ptowsp_value param,
                            ptowsp_value value) {
    kt *t = by_row->t;
    if (by_row->is_looped) {
        ptowsp_tile_store_at(param, by_row->index, by_col->index, value);
    } else {
        ptowsp_tile_store_at(param, lp_const(t, by_row->at), lp_const(t, by_col->at), value);
    }
}

// Ends a kernel. A loop's instructions are not counted once each, as kt_lower wants it.
static inline void lp_lower(kt *t) {
    t->kernel = ptowsp_kernel_end(t->k);
    if (ptowsp_module_error(t->m).status != PTOWSP_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)t->config.seed,
                 ptowsp_module_error(t->m).text);
    }
    KT_LOWERED(t);
}

typedef void (*lp_scene)(kt *t, bool is_looped, int which);

// Builds a scene both ways, runs both, compares all memory. Returns the looped one's cycles.
static inline ptowsp_cycles lp_play(lp_scene scene, int which, kt_config config) {
    kt both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = kt_begin(config);
        scene(&both[i], i == 1, which);
        lp_lower(&both[i]);
        if (getenv("SHOW") && i == 1) {
            kt_complain(&both[i]);
        }
        if (kt_execute(&both[i]) != PTOWSP_OK) {
            kt_complain(&both[i]);
            fail_msg("%s", ptowsp_context_error(both[i].context).text);
        }
    }
    assert_int_equal(both[0].param_count, both[1].param_count);
    for (uint32_t i = 0; i < both[0].param_count; i++) {
        const kt_param *a = &both[0].params[i], *b = &both[1].params[i];
        assert_int_equal(a->count, b->count);
        if (memcmp(a->block, b->block, a->count * ptowsp_dtype_size(a->dtype)) != 0) {
            kt_complain(&both[0]);
            kt_complain(&both[1]);
            fail_msg("which %d: %s differs", which, a->name);
        }
    }
    ptowsp_cycles cycles = both[1].cycles;
    kt_free(&both[0]);
    kt_free(&both[1]);
    return cycles;
}

// An out parameter of a value's size, in this task.
static inline ptowsp_value lp_out(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols,
                                  int64_t valid_rows, int64_t valid_cols) {
    return kt_param_make(t, PTOWSP_OUT, dtype, rows, cols, valid_rows, valid_cols)->value.v;
}

// -- scenes ---------------------------------------------------------------------------------------

enum { LP_CHUNK = 16 };

// How many rows of a parameter of n chunks a task has.
static inline int64_t lp_valid(kt *t, int64_t n) {
    return t->config.is_partial ? test_random_in(&t->state, 1, n * LP_CHUNK) : n * LP_CHUNK;
}

static inline kt_value lp_in(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols,
                             int64_t valid_rows, int64_t valid_cols) {
    return kt_param_make(t, PTOWSP_IN, dtype, rows, cols, valid_rows, valid_cols)->value;
}

// c = a b over chunks of the inner size, in L0C, with a bound that is the task's size.
static inline void lp_matmul(kt *t, bool is_looped, int which) {
    int64_t n = which ? which : 1, depth = which ? lp_valid(t, n) : n * LP_CHUNK;
    kt_value a = lp_in(t, PTOWSP_F16, 24, n * LP_CHUNK, 24, depth);
    kt_value b = lp_in(t, PTOWSP_F16, n * LP_CHUNK, 40, depth, 40);
    ptowsp_value out = lp_out(t, PTOWSP_F32, 24, 40, 24, 40);
    ptowsp_value zero = ptowsp_tile_full(t->k, PTOWSP_F32, 24, 40, 0);
    lp l = lp_begin_as(t, is_looped, 0, which ? depth : 0, LP_CHUNK, lp_none,
                       which ? ptowsp_tile_cols(a.v) : lp_none);
    while (lp_more(&l)) {
        ptowsp_value sum = lp_carry(&l, 0, zero);
        lp_next(&l, 0, sum,
                ptowsp_tile_matmul_acc(sum, lp_chunk(NULL, &l, a.v, 24, LP_CHUNK),
                                       lp_chunk(&l, NULL, b.v, LP_CHUNK, 40)));
    }
    ptowsp_tile_store(out, lp_result(&l, 0, zero));
}

// y[i] = exp(x[i]) by rows, and a sum over columns that goes on, and two values that change places.
static inline void lp_rows(kt *t, bool is_looped, int which) {
    int64_t n = which ? which : 1, rows = which ? lp_valid(t, n) : n * LP_CHUNK;
    kt_value x = lp_in(t, PTOWSP_F32, n * LP_CHUNK, 24, rows, 24);
    kt_value z = lp_in(t, PTOWSP_F32, 1, 24, 1, 24);
    ptowsp_value out = lp_out(t, PTOWSP_F32, 1, 24, 1, 24),
                 last = lp_out(t, PTOWSP_F32, 1, 24, 1, 24);
    ptowsp_value zero = ptowsp_tile_full(t->k, PTOWSP_F32, 1, 24, 0);
    lp l = lp_begin_as(t, is_looped, 0, which ? rows : 0, LP_CHUNK, lp_none,
                       which ? ptowsp_tile_rows(x.v) : lp_none);
    while (lp_more(&l)) {
        ptowsp_value sum = lp_carry(&l, 0, zero), a = lp_carry(&l, 1, z.v);
        ptowsp_value b = lp_carry(&l, 2, zero);
        ptowsp_value part = ptowsp_tile_exp(lp_chunk(&l, NULL, x.v, LP_CHUNK, 24));
        ptowsp_value next = ptowsp_tile_add(sum, ptowsp_tile_colsum(part));
        lp_next(&l, 0, sum, next);
        lp_next(&l, 1, a, b);
        lp_next(&l, 2, b, ptowsp_tile_add(a, next));
    }
    ptowsp_tile_store(out, ptowsp_tile_add(lp_result(&l, 0, zero), lp_result(&l, 1, z.v)));
    ptowsp_tile_store(last, lp_result(&l, 2, zero));
}

// Attention of some queries over chunks of keys and values, with an online softmax.
static inline void lp_attention(kt *t, bool is_looped, int which) {
    int64_t n = which ? which : 1, tokens = which ? lp_valid(t, n) : n * LP_CHUNK;
    enum { ROWS = 8, DIM = 32 };
    int64_t rows = t->config.is_partial ? test_random_in(&t->state, 1, ROWS) : ROWS;
    rows = which ? rows : ROWS;
    kt_value q = lp_in(t, PTOWSP_F32, ROWS, DIM, rows, DIM);
    kt_value keys = lp_in(t, PTOWSP_F32, DIM, n * LP_CHUNK, DIM, tokens);
    kt_value values = lp_in(t, PTOWSP_F32, n * LP_CHUNK, DIM, tokens, DIM);
    ptowsp_value out = lp_out(t, PTOWSP_F32, ROWS, DIM, rows, DIM);
    // With as many rows as there are queries.
    ptowsp_value nothing = ptowsp_tile_mul(q.v, ptowsp_tile_const(t->k, 0));
    ptowsp_value zero = ptowsp_tile_rowsum(nothing);
    ptowsp_value lowest = ptowsp_tile_sub(zero, ptowsp_tile_const(t->k, 1e30));
    lp l = lp_begin_as(t, is_looped, 0, which ? tokens : 0, LP_CHUNK, lp_none,
                       which ? ptowsp_tile_rows(values.v) : lp_none);
    while (lp_more(&l)) {
        ptowsp_value m = lp_carry(&l, 0, lowest), sum = lp_carry(&l, 1, zero);
        ptowsp_value acc = lp_carry(&l, 2, nothing);
        ptowsp_value s = ptowsp_tile_matmul(q.v, lp_chunk(NULL, &l, keys.v, DIM, LP_CHUNK));
        s = ptowsp_tile_mul(s, ptowsp_tile_const(t->k, 0.125));
        ptowsp_value most = ptowsp_tile_max(m, ptowsp_tile_rowmax(s));
        ptowsp_value p = ptowsp_tile_exp(ptowsp_tile_sub(s, most));
        ptowsp_value fix = ptowsp_tile_exp(ptowsp_tile_sub(m, most));
        ptowsp_value pv = ptowsp_tile_matmul(p, lp_chunk(&l, NULL, values.v, LP_CHUNK, DIM));
        lp_next(&l, 0, m, most);
        lp_next(&l, 1, sum, ptowsp_tile_add(ptowsp_tile_mul(sum, fix), ptowsp_tile_rowsum(p)));
        lp_next(&l, 2, acc, ptowsp_tile_add(ptowsp_tile_mul(acc, fix), pv));
    }
    ptowsp_value acc = lp_result(&l, 2, nothing);
    ptowsp_tile_store(out, which ? ptowsp_tile_div(acc, lp_result(&l, 1, zero)) : acc);
}

// A sum over chunks of z, again and again and halved in between: a loop in a loop.
static inline void lp_nested(kt *t, bool is_looped, int which) {
    int64_t n = which % 4, m = which / 4 % 4, rows = lp_valid(t, n ? n : 1);
    int64_t cols = lp_valid(t, m ? m : 1);
    kt_value x = lp_in(t, PTOWSP_F32, (n ? n : 1) * LP_CHUNK, 16, rows, 16);
    kt_value z = lp_in(t, PTOWSP_F32, 8, (m ? m : 1) * LP_CHUNK, 8, cols);
    ptowsp_value y = lp_out(t, PTOWSP_F32, (n ? n : 1) * LP_CHUNK, 16, rows, 16);
    ptowsp_value total = lp_out(t, PTOWSP_F32, 8, 1, 8, 1);
    ptowsp_value one = ptowsp_tile_full(t->k, PTOWSP_F32, 8, 1, 1);
    lp i = lp_begin(t, is_looped, 0, n ? rows : 0, LP_CHUNK);
    while (lp_more(&i)) {
        ptowsp_value over = lp_carry(&i, 0, one);
        lp j = lp_begin(t, is_looped, 0, m ? cols : 0, LP_CHUNK);
        while (lp_more(&j)) {
            ptowsp_value sum = lp_carry(&j, 0, over);
            ptowsp_value part = lp_chunk(NULL, &j, z.v, 8, LP_CHUNK);
            lp_next(&j, 0, sum, ptowsp_tile_add(sum, ptowsp_tile_rowsum(part)));
        }
        lp_next(&i, 0, over, ptowsp_tile_mul(lp_result(&j, 0, over), ptowsp_tile_const(t->k, 0.5)));
    }
    ptowsp_tile_store(total, lp_result(&i, 0, one));
    ptowsp_tile_store(y, ptowsp_tile_add(x.v, ptowsp_tile_const(t->k, 1)));
}

// c = a b, all of it: over chunks of rows, of columns, and of the inner size, which are halved again;
// with cut-off sizes; twice onto the same sum. The tiles are counted. Four loops, each in the one
// before.
static inline void lp_gemm(kt *t, bool is_looped, int which) {
    int64_t m = 1 + which % 3, n = 1 + which / 3 % 3, k = 2, half = LP_CHUNK / 2;
    int64_t rows = lp_valid(t, m), cols = lp_valid(t, n);
    kt_value a = lp_in(t, PTOWSP_F32, m * LP_CHUNK, k * LP_CHUNK, rows, k * LP_CHUNK);
    kt_value b = lp_in(t, PTOWSP_F32, k * LP_CHUNK, n * LP_CHUNK, k * LP_CHUNK, cols);
    ptowsp_value out = lp_out(t, PTOWSP_F32, a.rows, b.cols, rows, cols);
    ptowsp_value count = lp_out(t, PTOWSP_F32, LP_CHUNK, 1, LP_CHUNK, 1);
    ptowsp_value zero = ptowsp_tile_full(t->k, PTOWSP_F32, LP_CHUNK, LP_CHUNK, 0);
    ptowsp_value none_of = ptowsp_tile_full(t->k, PTOWSP_F32, LP_CHUNK, 1, 0);
    lp i = lp_begin(t, is_looped, 0, rows, LP_CHUNK);
    while (lp_more(&i)) {
        ptowsp_value before = lp_carry(&i, 0, none_of);
        lp j = lp_begin(t, is_looped, 0, cols, LP_CHUNK);
        while (lp_more(&j)) {
            ptowsp_value tiles = lp_carry(&j, 0, before);
            lp times = lp_begin(t, is_looped, 0, 2, 1);
            while (lp_more(&times)) {
                ptowsp_value twice = lp_carry(&times, 0, zero);
                lp l = lp_begin(t, is_looped, 0, k * LP_CHUNK, half);
                while (lp_more(&l)) {
                    ptowsp_value sum = lp_carry(&l, 0, twice);
                    lp_next(&l, 0, sum,
                            ptowsp_tile_add(
                                sum, ptowsp_tile_matmul(lp_chunk(&i, &l, a.v, LP_CHUNK, half),
                                                        lp_chunk(&l, &j, b.v, half, LP_CHUNK))));
                }
                lp_next(&times, 0, twice, lp_result(&l, 0, twice));
            }
            ptowsp_value sum = lp_result(&times, 0, zero);
            lp_next(&j, 0, tiles, ptowsp_tile_add(tiles, ptowsp_tile_const(t->k, 1)));
            lp_store(&i, &j, out, sum);
        }
        lp_next(&i, 0, before, lp_result(&j, 0, before));
    }
    ptowsp_tile_store(count, lp_result(&i, 0, none_of));
}

// A part of a panel along k: columns of the left one, rows of the right one.
static inline ptowsp_value lp_part(ptowsp_value panel, bool is_left, int64_t at, int64_t size) {
    return is_left ? ptowsp_tile_slice(panel, 0, at, LP_CHUNK, size)
                   : ptowsp_tile_slice(panel, at, 0, size, LP_CHUNK);
}

// c = a b as it is written by hand: loops over tiles of c around the one over k, panels of two
// pieces of k in L1. Bits of `which`: b is stored [n][k]; pieces are taken as slices; the left panel
// has all of k and is loaded once for all columns.
static inline void lp_panels(kt *t, bool is_looped, int which) {
    bool is_turned = which & 1, has_parts = which & 2, is_kept = which & 4;
    int64_t m = 2, n = 2 + which / 8, k = 3, panel = 2 * LP_CHUNK;
    int64_t rows = lp_valid(t, m), cols = lp_valid(t, n), depth = lp_valid(t, 2 * k);
    kt_value a = lp_in(t, PTOWSP_F16, m * LP_CHUNK, k * panel, rows, depth);
    kt_value b = is_turned ? lp_in(t, PTOWSP_F16, n * LP_CHUNK, k * panel, cols, depth)
                           : lp_in(t, PTOWSP_F16, k * panel, n * LP_CHUNK, depth, cols);
    ptowsp_value out = lp_out(t, PTOWSP_F32, m * LP_CHUNK, n * LP_CHUNK, rows, cols);
    ptowsp_value zero = ptowsp_tile_full(t->k, PTOWSP_F32, LP_CHUNK, LP_CHUNK, 0);
    lp i = lp_begin_as(t, is_looped, 0, rows, LP_CHUNK, lp_none, ptowsp_tile_rows(a.v));
    while (lp_more(&i)) {
        ptowsp_value kept = is_kept ? lp_chunk(&i, NULL, a.v, LP_CHUNK, k * panel) : lp_none;
        lp j = lp_begin_as(t, is_looped, 0, cols, LP_CHUNK, lp_none,
                           is_turned ? ptowsp_tile_rows(b.v) : ptowsp_tile_cols(b.v));
        while (lp_more(&j)) {
            if (is_kept) {
                ptowsp_value all =
                    is_turned ? ptowsp_tile_transpose(lp_chunk(&j, NULL, b.v, LP_CHUNK, k * panel))
                              : lp_chunk(NULL, &j, b.v, k * panel, LP_CHUNK);
                ptowsp_value sum = ptowsp_tile_matmul(lp_part(kept, true, 0, panel),
                                                      lp_part(all, false, 0, panel));
                for (int64_t at = panel; at < k * panel; at += panel) {
                    sum = ptowsp_tile_matmul_acc(sum, lp_part(kept, true, at, panel),
                                                 lp_part(all, false, at, panel));
                }
                lp_store(&i, &j, out, sum);
                continue;
            }
            lp l = lp_begin_as(t, is_looped, 0, depth, panel, lp_none, ptowsp_tile_cols(a.v));
            while (lp_more(&l)) {
                ptowsp_value sum = lp_carry(&l, 0, zero);
                ptowsp_value left = lp_chunk(&i, &l, a.v, LP_CHUNK, panel);
                ptowsp_value right =
                    is_turned ? ptowsp_tile_transpose(lp_chunk(&j, &l, b.v, LP_CHUNK, panel))
                              : lp_chunk(&l, &j, b.v, panel, LP_CHUNK);
                ptowsp_value next = sum;
                for (int64_t at = 0; has_parts && at < panel; at += LP_CHUNK) {
                    next = ptowsp_tile_matmul_acc(next, lp_part(left, true, at, LP_CHUNK),
                                                  lp_part(right, false, at, LP_CHUNK));
                }
                lp_next(&l, 0, sum, has_parts ? next : ptowsp_tile_matmul_acc(sum, left, right));
            }
            lp_store(&i, &j, out, lp_result(&l, 0, zero));
        }
    }
}

// Attention over as much of a cache as a scalar says: only as a loop, for the emitter.
static inline void lp_cache(kt *t, bool is_looped, int which) {
    (void)is_looped;
    enum { ROWS = 8, DIM = 16 };
    int64_t n = which % 4 + 1;
    kt_value q = lp_in(t, PTOWSP_F16, ROWS, DIM, ROWS, DIM);
    kt_value keys = lp_in(t, PTOWSP_F16, DIM, n * LP_CHUNK, DIM, n * LP_CHUNK);
    ptowsp_value out = lp_out(t, PTOWSP_F32, ROWS, 1, ROWS, 1);
    kt_value length = kt_scalar(t, which % 2 ? PTOWSP_I64 : PTOWSP_U64,
                                (double)test_random_in(&t->state, 0, n * LP_CHUNK + 5));
    ptowsp_value zero = ptowsp_tile_full(t->k, PTOWSP_F32, ROWS, 1, 0), sum = lp_none;
    PTOWSP_TILE_LOOP(t->k, i, lp_const(t, which % 3), length.v, LP_CHUNK) {
        sum = ptowsp_tile_carry(zero);
        ptowsp_value part = ptowsp_tile_slice_at(keys.v, lp_none, i, DIM, LP_CHUNK);
        ptowsp_value s = ptowsp_tile_exp(ptowsp_tile_matmul(q.v, part));
        ptowsp_tile_next(sum, ptowsp_tile_add(sum, ptowsp_tile_rowsum(s)));
    }
    ptowsp_tile_store(out, sum);
}

#endif
