// What stands behind kernels of cases that are C functions: `function KERNEL NAME` in a file of cases
// names one of these. A kernel's own cycles, if its declaration has some, count instead of what the
// function returns.

#ifndef CASE_FUNCTIONS_H
#define CASE_FUNCTIONS_H

#include "test.h"

#include <math.h>

#define FOR_TILE(task, tile)                                                                       \
    for (int64_t r = 0; r < ptowsp_task_rows(task, tile); r++)                                     \
        for (int64_t c = 0; c < ptowsp_task_cols(task, tile); c++)

// Also the text of them, for emitted trees. case_burn (d, cnt) counts itself, and takes d cycles.
// case_topk (scores, indices) gives those of the 8 largest scores, the lower index first among
// equals; 4 cycles more for each of the scores that it claims to be padded to.
PTOWSP_SOURCE(
    case_source,

    static inline void *element_at(const ptowsp_task *task, uint32_t tile, int64_t row,
                                   int64_t col) {
        const ptowsp_tile *t = &task->tiles[tile];
        return (char *)t->data + 4 * (row * t->row_stride + col * t->col_stride);
    }

    static inline float *f32_at(const ptowsp_task *task, uint32_t tile, int64_t row, int64_t col) {
        return (float *)element_at(task, tile, row, col);
    }

    static inline int32_t *i32_of(const ptowsp_task *task, uint32_t tile) {
        return (int32_t *)element_at(task, tile, 0, 0);
    }

    static inline ptowsp_cycles case_is_positive(const ptowsp_task *task, void *user) {
        (void)user;
        *i32_of(task, 1) = *f32_at(task, 0, 0, 0) > 0;
        return 1;
    }

    static inline ptowsp_cycles case_store_7(const ptowsp_task *task, void *user) {
        (void)user;
        *i32_of(task, 0) = 7;
        return 1;
    }

    static inline ptowsp_cycles case_store_3(const ptowsp_task *task, void *user) {
        (void)user;
        *i32_of(task, 0) = 3;
        return 1;
    }

    static inline ptowsp_cycles case_burn(const ptowsp_task *task, void *user) {
        (void)user;
        *i32_of(task, 1) += 1;
        return (ptowsp_cycles)*i32_of(task, 0);
    }

    static inline ptowsp_cycles case_topk(const ptowsp_task *task, void *user) {
        (void)user;
        bool is_taken[32] = {false};
        for (int64_t k = 0; k < ptowsp_task_cols(task, 1); k++) {
            int32_t best = -1;
            for (int32_t i = 0; i < 32; i++) {
                if (!is_taken[i] &&
                    (best < 0 || *f32_at(task, 0, 0, i) > *f32_at(task, 0, 0, best))) {
                    best = i;
                }
            }
            is_taken[best] = true;
            *(int32_t *)element_at(task, 1, 0, k) = best;
        }
        uint64_t pad_to = ptowsp_task_scalar(task, 0);
        return 32 + 5 * 32 + (pad_to > 32 ? pad_to / 32 * 128 : 0);
    })

static inline ptowsp_cycles case_copy_tile(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 1) {
        *f32_at(task, 1, r, c) = *f32_at(task, 0, r, c);
    }
    return 1;  // not taken: these kernels have constant cycles
}

static inline ptowsp_cycles case_square(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 1) {
        float x = *f32_at(task, 0, r, c);
        *f32_at(task, 1, r, c) = x * x;
    }
    return 1;
}

static inline ptowsp_cycles case_add_tiles(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 2) {
        *f32_at(task, 2, r, c) = *f32_at(task, 0, r, c) + *f32_at(task, 1, r, c);
    }
    return 1;
}

static inline ptowsp_cycles case_matmul(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 2) {
        float sum = 0;
        for (int64_t k = 0; k < ptowsp_task_cols(task, 0); k++) {
            sum += *f32_at(task, 0, r, k) * *f32_at(task, 1, k, c);
        }
        *f32_at(task, 2, r, c) = sum;
    }
    return 1;
}

// q, k_t, v, out: softmax(q k_t / sqrt(8)) v.
static inline ptowsp_cycles case_attention(const ptowsp_task *task, void *user) {
    (void)user;
    int64_t rows = ptowsp_task_rows(task, 0), dim = ptowsp_task_cols(task, 0);
    int64_t kv_len = ptowsp_task_cols(task, 1);
    for (int64_t r = 0; r < rows; r++) {
        float weights[16], most = -INFINITY, sum = 0;
        for (int64_t k = 0; k < kv_len; k++) {
            float score = 0;
            for (int64_t i = 0; i < dim; i++) {
                score += *f32_at(task, 0, r, i) * *f32_at(task, 1, i, k);
            }
            weights[k] = score * 0.35355339059327373f;
            most = fmaxf(most, weights[k]);
        }
        for (int64_t k = 0; k < kv_len; k++) {
            weights[k] = expf(weights[k] - most);
            sum += weights[k];
        }
        for (int64_t c = 0; c < ptowsp_task_cols(task, 3); c++) {
            float out = 0;
            for (int64_t k = 0; k < kv_len; k++) {
                out += weights[k] / sum * *f32_at(task, 2, k, c);
            }
            *f32_at(task, 3, r, c) = out;
        }
    }
    return 1;
}

static inline ptowsp_cycles case_rmsnorm(const ptowsp_task *task, void *user) {
    (void)user;
    int64_t cols = ptowsp_task_cols(task, 0);
    for (int64_t r = 0; r < ptowsp_task_rows(task, 0); r++) {
        float squares = 0;
        for (int64_t c = 0; c < cols; c++) {
            squares += *f32_at(task, 0, r, c) * *f32_at(task, 0, r, c);
        }
        float scale = 1 / sqrtf(squares / (float)cols + 1e-6f);
        for (int64_t c = 0; c < cols; c++) {
            *f32_at(task, 1, r, c) = *f32_at(task, 0, r, c) * scale;
        }
    }
    return 1;
}

// x, w1, w2, out: max(x w1, 0) w2.
static inline ptowsp_cycles case_mlp(const ptowsp_task *task, void *user) {
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(task, 0); r++) {
        float hidden[16];
        int64_t hidden_count = ptowsp_task_cols(task, 1);
        for (int64_t h = 0; h < hidden_count; h++) {
            float sum = 0;
            for (int64_t k = 0; k < ptowsp_task_cols(task, 0); k++) {
                sum += *f32_at(task, 0, r, k) * *f32_at(task, 1, k, h);
            }
            hidden[h] = fmaxf(sum, 0);
        }
        for (int64_t c = 0; c < ptowsp_task_cols(task, 3); c++) {
            float sum = 0;
            for (int64_t h = 0; h < hidden_count; h++) {
                sum += hidden[h] * *f32_at(task, 2, h, c);
            }
            *f32_at(task, 3, r, c) = sum;
        }
    }
    return 1;
}

// e0, e1, g, out: e0 g + e1 (1 - g), with one g for each row.
static inline ptowsp_cycles case_mix(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 3) {
        float gate = *f32_at(task, 2, r, 0);
        *f32_at(task, 3, r, c) =
            *f32_at(task, 0, r, c) * gate + *f32_at(task, 1, r, c) * (1 - gate);
    }
    return 1;
}

static inline ptowsp_cycles case_increment(const ptowsp_task *task, void *user) {
    (void)user;
    *i32_of(task, 0) += 1;
    return 1;
}

// Nothing but their time, an axis argument.
static inline ptowsp_cycles case_cycles_0(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

static inline ptowsp_cycles case_cycles_1(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 1);
}

// Ones in all tiles. Its time is an axis argument, of kernels that have one.
static inline ptowsp_cycles case_fill_1(const ptowsp_task *task, void *user) {
    (void)user;
    for (uint32_t t = 0; t < task->tile_count; t++) {
        FOR_TILE(task, t) {
            *(int32_t *)element_at(task, t, r, c) = 1;
        }
    }
    return task->user_axis_count > 0 ? (ptowsp_cycles)ptowsp_task_axis(task, 0) : 1;
}

// Axis argument 0 in the first element.
static inline ptowsp_cycles case_put(const ptowsp_task *task, void *user) {
    (void)user;
    *i32_of(task, 0) = (int32_t)ptowsp_task_axis(task, 0);
    return (ptowsp_cycles)ptowsp_task_axis(task, 1);
}

// Rows of the first tile, each times its number from 1 on, summed into the second. Its time is an axis argument.
static inline ptowsp_cycles case_weigh(const ptowsp_task *task, void *user) {
    int32_t sum = 0;
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(task, 0); r++) {
        sum += (int32_t)(r + 1) * *(int32_t *)element_at(task, 0, r, 0);
    }
    *i32_of(task, 1) = sum;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

// What `calls` says of it is its first element.
static inline ptowsp_cycles case_see(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 1);
}

// Its scalars in the first elements, of 64 bits each.
static inline ptowsp_cycles case_scalars(const ptowsp_task *task, void *user) {
    (void)user;
    for (uint32_t i = 0; i < task->arg_count - task->axis_arg_count; i++) {
        ((uint64_t *)task->tiles[0].data)[i] = ptowsp_task_scalar(task, i);
    }
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

typedef struct case_function {
    const char *name;
    ptowsp_kernel_fn fn;
    const char *source;     // its name in case_source, if it is there
    ptowsp_kernel_fn cost;  // where a declaration has "by a cost function"; NULL: case_cost
} case_function;

static const case_function case_functions[] = {
    {"copy", case_copy_tile, NULL, NULL},
    {"square", case_square, NULL, NULL},
    {"add", case_add_tiles, NULL, NULL},
    {"matmul", case_matmul, NULL, NULL},
    {"attention", case_attention, NULL, NULL},
    {"rmsnorm", case_rmsnorm, NULL, NULL},
    {"mlp", case_mlp, NULL, NULL},
    {"mix", case_mix, NULL, NULL},
    {"increment", case_increment, NULL, NULL},
    {"is_positive", case_is_positive, "case_is_positive", NULL},
    {"store_7", case_store_7, "case_store_7", NULL},
    {"store_3", case_store_3, "case_store_3", NULL},
    {"burn", case_burn, "case_burn", NULL},
    {"topk", case_topk, "case_topk", NULL},
    {"cycles_0", case_cycles_0, NULL, case_cycles_0},
    {"cycles_1", case_cycles_1, NULL, case_cycles_1},
    {"fill_1", case_fill_1, NULL, case_cycles_0},
    {"put", case_put, NULL, case_cycles_1},
    {"see", case_see, NULL, case_cycles_1},
    {"scalars", case_scalars, NULL, NULL},
    {"weigh", case_weigh, NULL, case_cycles_0},
};

#endif
