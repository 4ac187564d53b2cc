// Workloads that were run on PTO-WSP v9's simulator, rebuilt through the public API with C
// functions for kernels: how long they take is what v9 says, so that here the rules of time alone
// are tested. oracle_kernel_test.c has the same, and more, with tile kernels. What is checked is in
// oracle_run.h; oracle_cases.h has the tables, written by oracle_cases.py.

#include "oracle_tables.h"

// -- kernels --------------------------------------------------------------------------------------

static ptowsp_cycles oracle_copy(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 1) {
        *f32_at(task, 1, r, c) = *f32_at(task, 0, r, c);
    }
    return 1;  // not taken: these kernels have constant cycles
}

static ptowsp_cycles oracle_square(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 1) {
        float x = *f32_at(task, 0, r, c);
        *f32_at(task, 1, r, c) = x * x;
    }
    return 1;
}

static ptowsp_cycles oracle_add(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 2) {
        *f32_at(task, 2, r, c) = *f32_at(task, 0, r, c) + *f32_at(task, 1, r, c);
    }
    return 1;
}

static ptowsp_cycles oracle_matmul(const ptowsp_task *task, void *user) {
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
static ptowsp_cycles oracle_attention(const ptowsp_task *task, void *user) {
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

static ptowsp_cycles oracle_rmsnorm(const ptowsp_task *task, void *user) {
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
static ptowsp_cycles oracle_mlp(const ptowsp_task *task, void *user) {
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
static ptowsp_cycles oracle_moe_mix(const ptowsp_task *task, void *user) {
    (void)user;
    FOR_TILE(task, 3) {
        float gate = *f32_at(task, 2, r, 0);
        *f32_at(task, 3, r, c) =
            *f32_at(task, 0, r, c) * gate + *f32_at(task, 1, r, c) * (1 - gate);
    }
    return 1;
}

static ptowsp_cycles oracle_mark(const ptowsp_task *task, void *user) {
    (void)user;
    *i32_of(task, 0) += 1;
    return 1;
}

#include "oracle_cases.h"

#include "oracle_run.h"

// Constant cycles, or what the function returns.
static ptowsp_kernel make_kernel(oracle *o, uint32_t k) {
    return make_c_kernel(o, k, NULL);
}

int main(void) {
    return run_cases(false);
}
