// The check goes through memory by its own formula, and knows nothing of strides that are bound.

#include "tensor_data.h"

#include "command.h"
#include "lengths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAYERS = TENSOR_DATA_LAYERS,
    HEADS = TENSOR_DATA_HEADS,
    DIM = TENSOR_DATA_DIM,
    TILE = TENSOR_DATA_TILE,
    TOKEN = LAYERS * HEADS * DIM,  // elements of the keys of a token
    KEYS_MAX = TENSOR_DATA_REQUESTS_MAX * 2 * TENSOR_DATA_PAIRS_MAX * TOKEN,
    POOLED_MAX = TENSOR_DATA_REQUESTS_MAX * TENSOR_DATA_PAIRS_MAX * TOKEN
};

static ptowsp_kernel kernel_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "pool"});
    ptowsp_value even = ptowsp_tile_in(k, "even", PTOWSP_F16, TILE, DIM);
    ptowsp_value odd = ptowsp_tile_in(k, "odd", PTOWSP_F16, TILE, DIM);
    ptowsp_value weight = ptowsp_tile_in(k, "weight", PTOWSP_F32, 1, DIM);
    ptowsp_value sum = ptowsp_tile_add(ptowsp_tile_cvt(even, PTOWSP_F32, PTOWSP_ROUND_NEAREST),
                                       ptowsp_tile_cvt(odd, PTOWSP_F32, PTOWSP_ROUND_NEAREST));
    ptowsp_tile_store(ptowsp_tile_out(k, "pooled", PTOWSP_F32, TILE, DIM),
                      ptowsp_tile_mul(sum, weight));
    return ptowsp_kernel_end(k);
}

static ptowsp_tensor declare(ptowsp_module *m, const char *name, ptowsp_dtype dtype) {
    const ptowsp_tensor_desc desc = {.name = name,
                                     .dtype = dtype,
                                     .rank = 5,
                                     .shape = {LAYERS, PTOWSP_DYNAMIC, HEADS, PTOWSP_DYNAMIC, DIM}};
    return ptowsp_tensor_make(m, &desc);
}

static void workload_make(ptowsp_module *m, const tensor_data *t) {
    const ptowsp_expr none = {0};
    ptowsp_axis requests = ptowsp_axis_dynamic(m, "requests");
    ptowsp_axis tiles = ptowsp_axis_dynamic(m, "tiles");
    PTOWSP_WORKLOAD(m, "pooled") {
        PTOWSP_PARALLEL(m, layer, ptowsp_axis_dense(m, "layers", LAYERS)) {
            PTOWSP_PARALLEL(m, r, requests) {
                PTOWSP_PARALLEL(m, head, ptowsp_axis_dense(m, "heads", HEADS)) {
                    PTOWSP_PARALLEL(m, i, tiles) {
                        ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE));
                        ptowsp_view view = {.index = {layer, r, head}, .row = row};
                        ptowsp_task_desc task = {.kernel = t->pool, .views = {view, view}};
                        task.views[0].tensor = t->even;
                        task.views[1].tensor = t->odd;
                        task.views[2] = setup_stack_view(t->weight, layer, head, none);
                        task.views[3] = view;
                        task.views[3].tensor = t->pooled_id;
                        ptowsp_task_make(m, &task);
                    }
                }
            }
        }
    }
}

static void bind_tensor(ptowsp_run *run, const char *name, void *data, const tensor_data *t,
                        const int64_t *strides) {
    ptowsp_buffer buffer = {
        .data = data, .rank = 5, .shape = {LAYERS, t->requests, HEADS, t->pairs, DIM}};
    memcpy(buffer.strides, strides, 5 * sizeof *strides);
    ptowsp_run_bind_tensor(run, name, &buffer);
}

// What cannot be bound is named by the execution.
static void bind(void *user, ptowsp_run *run) {
    const tensor_data *t = (const tensor_data *)user;
    const int64_t keys[] = {HEADS * DIM, 2 * t->pairs * TOKEN, DIM, 2 * TOKEN, 1};
    const int64_t head = DIM * t->pairs, request = HEADS * head;
    const int64_t pooled[] = {t->requests * request, request, head, 1, t->pairs};
    bind_tensor(run, "even", t->keys, t, keys);
    bind_tensor(run, "odd", t->keys + TOKEN, t, keys);
    bind_tensor(run, "pooled", t->pooled, t, pooled);
    ptowsp_run_bind_size(run, "requests", t->requests);
    ptowsp_run_bind_size(run, "tiles", (t->pairs + TILE - 1) / TILE);
}

int64_t tensor_data_count(const tensor_data *t) {
    return t->requests * t->pairs * TOKEN;
}

static void prepare(void *user) {
    const tensor_data *t = (const tensor_data *)user;
    for (int64_t i = 0; i < tensor_data_count(t); i++) {
        t->pooled[i] = NAN;
    }
}

static double key(const tensor_data *t, int64_t request, int64_t token, int64_t at) {
    return (double)ptowsp_f32_from_f16(t->keys[(request * 2 * t->pairs + token) * TOKEN + at]);
}

static bool check(void *user) {
    tensor_data *t = (tensor_data *)user;
    const float *at = t->pooled;
    for (int64_t i = 0; i < LAYERS * t->requests * HEADS * DIM; i++) {
        int64_t d = i % DIM, head = i / DIM % HEADS, request = i / DIM / HEADS % t->requests;
        int64_t layer = i / DIM / HEADS / t->requests, offset = (layer * HEADS + head) * DIM + d;
        double half = setup_get(t->weight, layer * HEADS + head, d);
        for (int64_t pair = 0; pair < t->pairs; pair++) {
            double wanted =
                half * (key(t, request, 2 * pair, offset) + key(t, request, 2 * pair + 1, offset));
            double error = fabs((double)*at++ - wanted);
            t->error = error <= t->error ? t->error : error;  // keeps a NaN
        }
    }
    return t->error <= TENSOR_DATA_ALLOWED;
}

void tensor_data_fill(tensor_data *t, setup *s, int64_t requests, int64_t pairs) {
    t->requests = requests;
    t->pairs = pairs;
    for (int64_t i = 0; i < 2 * tensor_data_count(t); i++) {
        t->keys[i] = ptowsp_f16_from_f32((float)(2.0 * lengths_random_unit(&s->random) - 1.0));
    }
    for (int64_t row = 0; row < LAYERS * HEADS; row++) {
        double weight = lengths_random_unit(&s->random);
        for (int64_t d = 0; d < DIM; d++) {
            setup_set(t->weight, row, d, weight / 2.0);
        }
    }
}

void tensor_data_make(tensor_data *t, setup *s) {
    memset(t, 0, sizeof *t);
    t->keys = (uint16_t *)command_allocate(KEYS_MAX, sizeof *t->keys);
    t->pooled = (float *)command_allocate(POOLED_MAX, sizeof *t->pooled);
    t->even = declare(s->module, "even", PTOWSP_F16);
    t->odd = declare(s->module, "odd", PTOWSP_F16);
    t->pooled_id = declare(s->module, "pooled", PTOWSP_F32);
    t->weight = setup_stack_make(s, "weight", PTOWSP_F32, LAYERS, HEADS, DIM);
    t->pool = kernel_make(s->module);
    workload_make(s->module, t);
    s->bind = bind;
    s->prepare = prepare;
    s->check = check;
    s->user = t;
}

void tensor_data_destroy(tensor_data *t) {
    free(t->keys);
    free(t->pooled);
}
