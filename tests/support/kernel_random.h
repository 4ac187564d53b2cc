// Random tile kernels: 5 to 40 operations over random shapes and types, each computed by the
// interpreter of kernel_reference.h while it is built. Values are used again at random, long after
// they were made: an operand that lends its memory too early shows.
//
// One half of the kernels has tensors of small integers and only operations that are exact on them:
// every element must have the very bits. The other half takes all operations, within bounds.
//
// Some kernels have loops, and some of these a loop in them. A body has 2 to 6 operations over
// carried values, values from outside, and parts of parameters at the indices of its loops, which are
// loaded, stored, or both (random_window). A loop runs never, once, twice, or often. It is built in
// its first iteration; in the others the same operations are computed only.

#ifndef PTOWSP_KERNEL_RANDOM_H
#define PTOWSP_KERNEL_RANDOM_H

#include "kernel_random_ops.h"

// -- loops ----------------------------------------------------------------------------------------

enum { RANDOM_CARRIED = 3, RANDOM_LOOPS = 6, RANDOM_WINDOWS = 2, RANDOM_PARAMS_LEFT = 5 };

// rows x cols of a parameter, from the index of a loop or from 0: [0] by row, [1] by column.
typedef struct random_window {
    kt_param *of;                         // NULL: there is none
    bool is_loaded, is_stored, is_twice;  // something else is stored there first
    int64_t sizes[2];
    const struct random_loop *by[2];
} random_window;

typedef struct random_loop {
    struct random_loop *parent, *inner;
    int64_t begin, count, step, at;  // at: the iteration in hand
    int64_t inner_at;                // before which step of the body the inner loop is
    ptowsp_value first, end, index;
    kt_value state[RANDOM_CARRIED];  // what the next iteration gets
    kt_value built[RANDOM_CARRIED];  // the carried values, as they are built
    uint32_t carried;
    kt_value outer[2];
    random_window windows[RANDOM_WINDOWS];
    pool *body;
} random_loop;

// Without a kernel, operations are computed only.
static inline kt_value without_kernel(kt_value value) {
    value.v.body = NULL;
    value.v.id = 0;
    return value;
}

// Where a window begins in this iteration. Of a loop that never runs, at 0.
static inline int64_t window_at(const random_window *w, int axis) {
    const random_loop *l = w->by[axis];
    return l && l->count ? l->begin + l->at * l->step : 0;
}

// What is in the window now.
static inline kt_value window_load(kt *t, const random_window *w) {
    ptowsp_value none = {NULL, 0}, v = none;
    const kt_value *of = &w->of->stored;
    if (t->k) {
        v = ptowsp_tile_slice_at(of->v, w->by[0] ? w->by[0]->index : none,
                                 w->by[1] ? w->by[1]->index : none, w->sizes[0], w->sizes[1]);
    }
    kt_value part = kt_value_part(t, v, of->dtype, w->sizes[0], w->sizes[1],
                                  w->by[0] ? w->sizes[0] : of->valid_rows,
                                  w->by[1] ? w->sizes[1] : of->valid_cols, true, true);
    int64_t row = window_at(w, 0), col = window_at(w, 1);
    KT_EACH(part, r, c) {
        kt_copy(&part, KT_AT(part, r, c), of, KT_AT(*of, row + r, col + c));
    }
    return part;
}

// The last value of the body that goes there, or one that is made for it.
static inline kt_value window_value(kt *t, const random_window *w, const pool *body) {
    const kt_value *of = &w->of->stored;
    for (uint32_t k = body->count; k-- > 0;) {
        const kt_value *value = &body->values[k];
        if (!value->is_mask && value->dtype == of->dtype && value->rows == w->sizes[0] &&
            value->cols == w->sizes[1] &&
            value->valid_rows == (w->by[0] ? w->sizes[0] : of->valid_rows) &&
            value->valid_cols == (w->by[1] ? w->sizes[1] : of->valid_cols)) {
            // What is loaded and stored again and again gets no larger than this.
            return w->is_loaded && is_bin(value->dtype)
                       ? kt_min(t, kt_max(t, *value, kt_const(t, -32)), kt_const(t, 32))
                       : *value;
        }
    }
    return kt_full(t, of->dtype, w->sizes[0], w->sizes[1], 3);
}

static inline void window_store(kt *t, const random_window *w, kt_value value, bool is_run) {
    ptowsp_value none = {NULL, 0};
    kt_value *of = &w->of->stored;
    if (t->k) {
        ptowsp_tile_store_at(of->v, w->by[0] ? w->by[0]->index : none,
                             w->by[1] ? w->by[1]->index : none, value.v);
    }
    int64_t row = window_at(w, 0), col = window_at(w, 1);
    for (int64_t r = 0; is_run && r < value.valid_rows && row + r < of->valid_rows; r++) {
        for (int64_t c = 0; c < value.valid_cols && col + c < of->valid_cols; c++) {
            kt_copy(of, KT_AT(*of, row + r, col + c), &value, KT_AT(value, r, c));
        }
    }
    w->of->is_stored = true;
}

// -- what a loop is, before it begins ---------------------------------------------------------------

// A parameter whose parts a loop loads (IN), stores (OUT), or loads and stores again (INOUT).
static inline void window_plan(kt *t, pool *p, random_loop *l, random_window *w,
                               ptowsp_direction direction) {
    int64_t total[2], valid[2];
    if (t->param_count + RANDOM_PARAMS_LEFT > PTOWSP_TASK_TILE_MAX) {
        return;
    }
    uint64_t way = test_random(&t->state) % 8;
    const random_loop *around = l->parent;  // one of those that there are
    if (around && around->parent && test_random(&t->state) % 2) {
        around = around->parent;
    }
    w->by[0] = way == 0 ? NULL : around && (way == 1 || way == 4) ? around : l;
    w->by[1] = way == 0 || way == 2 || way == 4 ? l : around && way == 3 ? around : NULL;
    w->is_loaded = direction != PTOWSP_OUT;
    w->is_stored = direction != PTOWSP_IN;
    w->is_twice = test_random(&t->state) % 4 == 0;
    for (int axis = 0; axis < 2; axis++) {
        const random_loop *by = w->by[axis];
        if (by) {  // as far as it steps, or less
            w->sizes[axis] =
                test_random(&t->state) % 4 ? by->step : test_random_in(&t->state, 1, by->step);
            total[axis] = valid[axis] = by->begin + by->step * (by->count ? by->count : 1);
        } else {
            w->sizes[axis] = total[axis] = p->dims[test_random(&t->state) % 3];
            valid[axis] = kt_valid_of(t, total[axis]);
        }
    }
    ptowsp_dtype dtype = pool_any(t, p)->dtype;
    dtype = w->sizes[1] == 1 && total[1] > 1 && !is_bin(dtype) ? PTOWSP_F32 : dtype;
    w->of = kt_param_make(t, direction, dtype, total[0], total[1], valid[0], valid[1]);
    w->of->stored = w->of->value;  // what nobody stores to stays
}

// A constant or a scalar.
static inline ptowsp_value bound_plan(kt *t, int64_t at) {
    if (test_random(&t->state) % 3 == 0 && t->scalar_count + 1 < PTOWSP_TASK_SCALAR_MAX) {
        return kt_scalar(t, test_random(&t->state) % 2 ? PTOWSP_I64 : PTOWSP_U64, (double)at).v;
    }
    return ptowsp_tile_const(t->k, (double)at);
}

static inline random_loop *loop_plan(kt *t, pool *p, random_loop *parent) {
    random_loop *l = (random_loop *)kt_alloc(t, sizeof *l);
    t->loops++;
    l->parent = parent;
    bool is_long = test_random(&t->state) % 8 == 0;
    int64_t few = parent && parent->parent ? 2 : 3;
    l->count = test_random_in(&t->state, is_long ? 4 : 0, !is_long ? few : parent ? 5 : 16);
    l->step = is_long ? test_random_in(&t->state, 1, 8) : p->dims[test_random(&t->state) % 3];
    l->begin = test_random(&t->state) % 4 ? 0 : test_random_in(&t->state, 1, 9);
    l->body = (pool *)kt_alloc(t, sizeof *l->body);
    l->body->is_exact = p->is_exact;
    l->body->is_body = l->body->is_first = true;
    memcpy(l->body->dims, p->dims, sizeof l->body->dims);
    static const ptowsp_direction directions[] = {PTOWSP_IN, PTOWSP_IN, PTOWSP_INOUT};
    if (test_random(&t->state) % 4) {
        window_plan(t, p, l, &l->windows[0], directions[test_random(&t->state) % 3]);
    }
    if (test_random(&t->state) % 2) {
        window_plan(t, p, l, &l->windows[1], PTOWSP_OUT);
    }
    int64_t end = l->begin + l->count * l->step;
    l->first = bound_plan(t, l->begin);
    l->end = bound_plan(t, end);
    for (int i = 0; i < RANDOM_WINDOWS; i++) {
        const random_window *w = &l->windows[i];
        if (w->of && w->by[0] == l && w->of->valid_rows == end && test_random(&t->state) % 2) {
            l->end = ptowsp_tile_rows(w->of->value.v);
        }
        if (w->of && w->by[1] == l && w->of->valid_cols == end && test_random(&t->state) % 2) {
            l->end = ptowsp_tile_cols(w->of->value.v);
        }
    }
    bool is_deep = parent && parent->parent;
    if (!is_deep && t->loops < RANDOM_LOOPS && test_random(&t->state) % 3 == 0) {
        l->inner = loop_plan(t, p, l);
        l->inner_at = test_random_in(&t->state, 0, 3);
    }
    return l;
}

// -- iterations -------------------------------------------------------------------------------------

static inline void loop_run(kt *t, pool *p, random_loop *l, bool is_run);

// What a carried value becomes: the last that goes, or what it was; or the last carried one that goes, so that
// some change places. Over many iterations numbers would grow beyond all bounds, so they are kept small.
static inline kt_value next_of(kt *t, const random_loop *l, uint32_t c) {
    kt_value next = l->body->values[c];
    bool changes_places = test_random(&t->state) % 3 == 0;
    for (uint32_t k = changes_places ? 0 : l->carried;
         k < (changes_places ? l->carried : l->body->count); k++) {
        const kt_value *value = &l->body->values[k];
        if (!value->is_mask && value->dtype == next.dtype && value->rows == next.rows &&
            value->cols == next.cols && is_same_tail(value, &next)) {
            next = *value;
        }
    }
    bool is_long = false;
    for (const random_loop *of = l; of; of = of->parent) {
        is_long = is_long || of->count > 3 || (of->parent && of->parent->parent);
    }
    if (is_long && is_bin(next.dtype)) {
        next = kt_min(t, kt_max(t, next, kt_const(t, -32)), kt_const(t, 32));
    }
    return next;
}

// One iteration: the first builds the body. `is_run`: it is executed, too.
static inline void random_body(kt *t, random_loop *l, bool is_run) {
    pool *body = l->body;
    body->count = body->asked = 0;
    for (uint32_t c = 0; c < l->carried; c++) {
        kt_value value = l->state[c];
        value.v = l->built[c].v;
        body->values[body->count++] = t->k ? value : without_kernel(value);
    }
    for (int o = 0; o < 2; o++) {
        body->values[body->count++] = t->k ? l->outer[o] : without_kernel(l->outer[o]);
    }
    for (int i = 0; i < RANDOM_WINDOWS; i++) {
        const random_window *w = &l->windows[i];
        if (w->of && w->is_loaded) {
            body->values[body->count++] = window_load(t, w);
        }
    }
    int64_t steps = test_random_in(&t->state, 2, 6);
    for (int64_t n = 0; n < steps; n++) {
        if (l->inner && n == (l->inner_at < steps ? l->inner_at : steps - 1)) {
            loop_run(t, body, l->inner, is_run);
        }
        add_any(t, body);
    }
    for (int i = 0; i < RANDOM_WINDOWS; i++) {
        const random_window *w = &l->windows[i];
        if (w->of && w->is_stored && w->is_twice) {
            window_store(t, w, kt_full(t, w->of->dtype, w->sizes[0], w->sizes[1], 5), is_run);
        }
        if (w->of && w->is_stored) {
            window_store(t, w, window_value(t, w, body), is_run);
        }
    }
    kt_value next[RANDOM_CARRIED];
    for (uint32_t c = 0; c < l->carried; c++) {
        next[c] = next_of(t, l, c);
        if (t->k) {
            ptowsp_tile_next(l->built[c].v, next[c].v);
        }
    }
    for (uint32_t c = 0; c < l->carried && l->count; c++) {
        l->state[c] = next[c];
    }
    body->is_first = false;
}

// Each iteration draws the same numbers. Where they are not of the state alone, this says so.
#ifndef RANDOM_IS_REPEATED
#define RANDOM_IS_REPEATED(is_repeated) ((void)0)
#endif

static inline void loop_run(kt *t, pool *p, random_loop *l, bool is_run) {
    int64_t carried = test_random_in(&t->state, 1, RANDOM_CARRIED);
    l->carried = 0;
    for (int64_t i = 0; i < carried; i++) {
        kt_value initial = *pool_any(t, p);
        if (!initial.is_mask) {
            l->state[l->carried++] = initial;
        }
    }
    l->outer[0] = *pool_any(t, p);
    l->outer[1] = *pool_any(t, p);
    ptowsp_body *k = t->k;
    ptowsp_value none = {NULL, 0};
    l->index = k ? ptowsp_tile_loop_begin(k, l->first, l->end, l->step) : none;
    for (uint32_t i = 0; i < l->carried; i++) {
        l->built[i] = l->state[i];
        l->built[i].v = k ? ptowsp_tile_carry(l->state[i].v) : none;
    }
    uint64_t state = t->state;
    if (!l->parent) {
        RANDOM_IS_REPEATED(true);
    }
    for (l->at = 0; l->at < l->count || l->at == 0; l->at++) {
        t->state = state;
        random_body(t, l, is_run && l->count > 0);
        if (t->k) {
            ptowsp_tile_loop_end(k);
        }
        t->k = NULL;
    }
    if (!l->parent) {
        RANDOM_IS_REPEATED(false);
    }
    t->k = k;
    for (uint32_t i = 0; i < l->carried; i++) {
        kt_value result = l->state[i];
        result.v = l->built[i].v;
        pool_add(p, result);
    }
}

static inline void add_loop(kt *t, pool *p) {
    if (t->loops < RANDOM_LOOPS) {
        loop_run(t, p, loop_plan(t, p, NULL), true);
    }
}

// -- kernels --------------------------------------------------------------------------------------

// Begins a random kernel, and stores what was made last, and something earlier.
static inline kt random_kernel_begin(kt_config config, bool is_exact) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F32, PTOWSP_F16, PTOWSP_BF16,
                                         PTOWSP_I32, PTOWSP_I16, PTOWSP_I8};
    kt t = kt_begin(config);
    pool *p = (pool *)kt_alloc(&t, sizeof(pool));
    p->is_exact = is_exact;
    for (int i = 0; i < 3; i++) {
        p->dims[i] = test_random_in(&t.state, 1, 3) == 1 ? test_random_in(&t.state, 1, 40)
                                                         : 8 * test_random_in(&t.state, 1, 5);
    }
    ptowsp_dtype main = types[test_random(&t.state) % 7];
    for (int64_t i = test_random_in(&t.state, 1, 5); i > 0; i--) {
        ptowsp_dtype dtype = test_random(&t.state) % 3 ? main : types[test_random(&t.state) % 7];
        int64_t rows = p->dims[test_random(&t.state) % 3],
                cols = p->dims[test_random(&t.state) % 3];
        rows = test_random(&t.state) % 6 ? rows : 1;
        cols = test_random(&t.state) % 6 ? cols : 1;
        p->values[p->count++] = kt_in(&t, dtype, rows, cols);
    }
    for (int64_t i = test_random_in(&t.state, 5, 40); i > 0; i--) {
        add_any(&t, p);
    }
    kt_keep(&t, p->values[p->count - 1]);
    for (int i = 0; i < 3; i++) {
        kt_keep(&t, *pool_any(&t, p));
    }
    return t;
}

// What the configuration of a random kernel is: by its seed.
static inline kt_config random_config(uint64_t seed, bool is_exact, const ptowsp_machine *a5) {
    kt_config config = kt_any(seed);
    config.strides = (kt_strides)(config.seed % 4);
    config.is_partial = config.seed / 4 % 2 != 0;
    config.is_fused = config.seed / 8 % 2 != 0;
    config.machine = config.seed / 16 % 4 == 0 ? a5 : NULL;
    config.is_integer = is_exact;
    config.low = is_exact ? -6 : -2;
    config.high = is_exact ? 6 : 2;
    return config;
}

#endif
