// Tile kernels: the hot instructions of the shim, each in turns with plain loops that do the same,
// compiled with the same flags; whole kernels as tasks of a program; and making a kernel. Before an
// instruction is timed its result is compared with that of the loops.

#include "bench.h"

#include "ptoisa_shim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- instructions ---------------------------------------------------------------------------------

enum { ELEMENTS = 128 * 128 };

// Operands of one instruction: tiles over arrays, and the same arrays for the loops, which are
// row-major. The tiles' own layouts do not matter to the loops: each side has its result.
typedef struct insn_bench {
    ptoisa_core core;
    ptoisa_tile d, a, b, tmp;
    ptoisa_global window;
    uint32_t rows, cols;
    PWSP_ALIGNAS(64) float result[ELEMENTS];
    PWSP_ALIGNAS(64) float left[ELEMENTS];
    PWSP_ALIGNAS(64) float right[ELEMENTS];
    PWSP_ALIGNAS(64) float scratch[ELEMENTS];
    PWSP_ALIGNAS(64) uint16_t left_half[ELEMENTS];
    PWSP_ALIGNAS(64) uint16_t right_half[ELEMENTS];
    float plain_left[ELEMENTS], plain_right[ELEMENTS], plain_result[ELEMENTS];
} insn_bench;

static insn_bench *begin(uint32_t rows, uint32_t cols) {
    insn_bench *b = (insn_bench *)aligned_alloc(64, (sizeof(insn_bench) + 63) / 64 * 64);
    require(b != NULL, "no memory");
    memset(b, 0, sizeof *b);
    ptoisa_core_init(&b->core, PTOISA_MODEL_UNIT, NULL);
    b->rows = rows;
    b->cols = cols;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        b->plain_left[i] = (float)((int)(i * 37 % 64) - 32) / 16.0f;
        b->plain_right[i] = (float)((int)(i * 29 % 128) - 64) / 32.0f;
    }
    memcpy(b->left, b->plain_left, sizeof b->left);
    memcpy(b->right, b->plain_right, sizeof b->right);
    b->d = ptoisa_tile_vec(b->result, PTOISA_F32, rows, cols);
    b->a = ptoisa_tile_vec(b->left, PTOISA_F32, rows, cols);
    b->b = ptoisa_tile_vec(b->right, PTOISA_F32, rows, cols);
    b->tmp = ptoisa_tile_vec(b->scratch, PTOISA_F32, rows, cols);
    return b;
}

// Runs both once, and requires the same results.
static void compare(insn_bench *b, bench_fn own, bench_fn other, const char *name) {
    own(b);
    other(b);
    for (uint32_t r = 0; r < b->d.valid_rows; r++) {
        for (uint32_t c = 0; c < b->d.valid_cols; c++) {
            double got = ptoisa_get(&b->d, r, c);
            double wanted = (double)b->plain_result[r * b->d.valid_cols + c];
            require(fabs(got - wanted) <= 1e-4 * fmax(fabs(wanted), 1.0), name);
        }
    }
}

// A row with a time in us, or if work is given, work / ns.
static void report_insn(insn_bench *b, bench_fn own, bench_fn other, const char *name,
                        const char *unit, double work, double budget, const char *budget_text) {
    compare(b, own, other, name);
    bench_times t = measure(own, other, b, 20, 41);
    double value = work > 0.0 ? work / t.own_ns : t.own_ns / 1000.0;
    double other_value = work > 0.0 ? work / t.other_ns : t.other_ns / 1000.0;
    bench_row row = {name,          unit,         value,
                     "plain loops", other_value,  work > 0.0 ? 1.0 / t.ratio : t.ratio,
                     budget_text,   budget > 0.0, work > 0.0 ? value >= budget : value <= budget};
    report(row);
    free(b);
}

static void run_matmul(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_tmatmul(&b->core, &b->d, &b->a, &b->b);
    bench_keep(b->result);
}

static void run_matmul_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t r = 0; r < 128; r++) {
        for (uint32_t c = 0; c < 128; c++) {
            float sum = 0.0f;
            for (uint32_t i = 0; i < 128; i++) {
                sum += b->plain_left[r * 128 + i] * b->plain_right[i * 128 + c];
            }
            b->plain_result[r * 128 + c] = sum;
        }
    }
    bench_keep(b->plain_result);
}

// The loops have their f16 operands as f32.
static void bench_matmul(bool is_half) {
    insn_bench *b = begin(128, 128);
    ptoisa_dtype dtype = is_half ? PTOISA_F16 : PTOISA_F32;
    void *left = is_half ? (void *)b->left_half : b->left;
    void *right = is_half ? (void *)b->right_half : b->right;
    b->a = ptoisa_tile_make(left, dtype, PTOISA_LEFT, PTOISA_ZZ, 128, 128);
    b->b = ptoisa_tile_make(right, dtype, PTOISA_RIGHT, PTOISA_ZN, 128, 128);
    b->d = ptoisa_tile_make(b->result, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, 128, 128);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        uint64_t at_left = ptoisa_offset(&b->a, i / 128, i % 128);
        uint64_t at_right = ptoisa_offset(&b->b, i / 128, i % 128);
        b->left[at_left] = b->plain_left[i];
        b->right[at_right] = b->plain_right[i];
        b->left_half[at_left] = ptowsp_f16_from_f32(b->plain_left[i]);
        b->right_half[at_right] = ptowsp_f16_from_f32(b->plain_right[i]);
    }
    const double operations = 2.0 * 128 * 128 * 128;
    if (is_half) {
        report_insn(b, run_matmul, run_matmul_plain, "matmul 128x128x128 f16", "GFLOP/s",
                    operations, 0.0, "");
    } else {
        report_insn(b, run_matmul, run_matmul_plain, "matmul 128x128x128 f32", "GFLOP/s",
                    operations, 160.0, "160 GFLOP/s");
    }
}

static void run_exp(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_texp(&b->core, &b->d, &b->a);
    bench_keep(b->result);
}

static void run_exp_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t i = 0; i < b->rows * b->cols; i++) {
        b->plain_result[i] = expf(b->plain_left[i]);
    }
    bench_keep(b->plain_result);
}

static void run_add(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_tadd(&b->core, &b->d, &b->a, &b->b);
    bench_keep(b->result);
}

static void run_add_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t i = 0; i < b->rows * b->cols; i++) {
        b->plain_result[i] = b->plain_left[i] + b->plain_right[i];
    }
    bench_keep(b->plain_result);
}

static void run_rowsum(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_trowsum(&b->core, &b->d, &b->a, &b->tmp);
    bench_keep(b->result);
}

static void run_rowsum_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t r = 0; r < b->rows; r++) {
        float sum = 0.0f;
        for (uint32_t c = 0; c < b->cols; c++) {
            sum += b->plain_left[r * b->cols + c];
        }
        b->plain_result[r] = sum;
    }
    bench_keep(b->plain_result);
}

static void run_rowmax(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_trowmax(&b->core, &b->d, &b->a, &b->tmp);
    bench_keep(b->result);
}

static void run_rowmax_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t r = 0; r < b->rows; r++) {
        float most = b->plain_left[r * b->cols];
        for (uint32_t c = 1; c < b->cols; c++) {
            float x = b->plain_left[r * b->cols + c];
            most = x > most ? x : most;
        }
        b->plain_result[r] = most;
    }
    bench_keep(b->plain_result);
}

// rows x 1, as instructions want it: column-major.
static insn_bench *begin_reduction(void) {
    insn_bench *b = begin(64, 128);
    b->d = ptoisa_tile_make(b->result, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, 64, 1);
    return b;
}

static void run_load(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_tload(&b->core, &b->d, &b->window);
    bench_keep(b->result);
}

static void run_load_plain(void *user) {  // to boxes of 16 rows x 8 columns
    insn_bench *b = (insn_bench *)user;
    for (uint32_t r = 0; r < 128; r++) {
        for (uint32_t c = 0; c < 128; c++) {
            b->scratch[c / 8 * 128 * 8 + r * 8 + c % 8] = b->plain_left[r * 128 + c];
        }
    }
    bench_keep(b->scratch);
}

// What is compared is row-major.
static void run_load_check(void *user) {
    insn_bench *b = (insn_bench *)user;
    memcpy(b->plain_result, b->plain_left, sizeof b->plain_left);
}

static void bench_load(void) {
    insn_bench *b = begin(128, 128);
    b->d = ptoisa_tile_make(b->result, PTOISA_F32, PTOISA_MAT, PTOISA_NZ, 128, 128);
    b->window = ptoisa_global_make(b->plain_left, PTOISA_F32, 128, 128, 128, 1);
    compare(b, run_load, run_load_check, "TLOAD");
    bench_times t = measure(run_load, run_load_plain, b, 20, 41);
    const double bytes = ELEMENTS * sizeof(float);
    bench_row row = {"TLOAD 128x128 f32 to boxes in L1",
                     "GB/s",
                     bytes / t.own_ns,
                     "plain loops",
                     bytes / t.other_ns,
                     1.0 / t.ratio,
                     "",
                     false,
                     false};
    report(row);
    free(b);
}

static void bench_instructions(void) {
    bench_matmul(false);
    bench_matmul(true);
    report_insn(begin(64, 64), run_exp, run_exp_plain, "exp 64x64 f32", "us", 0.0, 1.2, "1.2 us");
    report_insn(begin_reduction(), run_rowsum, run_rowsum_plain, "row sum 64x128 f32", "us", 0.0,
                0.4, "0.4 us");
    report_insn(begin_reduction(), run_rowmax, run_rowmax_plain, "row max 64x128 f32", "us", 0.0,
                0.4, "0.4 us");
    report_insn(begin(64, 64), run_add, run_add_plain, "add 64x64 f32", "GB/s",
                3.0 * 64 * 64 * sizeof(float), 0.0, "");
    bench_load();
}

// -- kernels as tasks -----------------------------------------------------------------------------

enum { TASK_COUNT = 64 };

// A kernel with three inputs of one size and an output, each TASK_COUNT times in memory.
typedef struct task_bench {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    uint32_t rows, cols, input_count;
    float *data[4], *plain_result;  // the last is the output
} task_bench;

static ptowsp_kernel make_rmsnorm(ptowsp_module *m) {
    ptowsp_body_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "rmsnorm";
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 16, 512);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 16, 512);
    ptowsp_value mean = ptowsp_tile_rowmean(ptowsp_tile_mul(x, x));
    ptowsp_value scale = ptowsp_tile_rsqrt(ptowsp_tile_add(mean, ptowsp_tile_const(k, 1e-5)));
    ptowsp_tile_store(y, ptowsp_tile_mul(x, scale));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel make_attention(ptowsp_module *m) {
    ptowsp_body_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "attention";
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value q = ptowsp_tile_in(k, "q", PTOWSP_F32, 64, 64);
    ptowsp_value k_t = ptowsp_tile_in(k, "k_t", PTOWSP_F32, 64, 64);
    ptowsp_value v = ptowsp_tile_in(k, "v", PTOWSP_F32, 64, 64);
    ptowsp_value out = ptowsp_tile_out(k, "out", PTOWSP_F32, 64, 64);
    ptowsp_value scores = ptowsp_tile_mul(ptowsp_tile_matmul(q, k_t), ptowsp_tile_const(k, 0.125));
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(scores, ptowsp_tile_rowmax(scores)));
    ptowsp_value weights = ptowsp_tile_div(e, ptowsp_tile_rowsum(e));
    ptowsp_tile_store(out, ptowsp_tile_matmul(weights, v));
    return ptowsp_kernel_end(k);
}

static void run_tasks(void *user) {
    task_bench *b = (task_bench *)user;
    require(ptowsp_run_execute(b->run, NULL) == PTOWSP_OK, ptowsp_context_error(b->context).text);
}

static void run_rmsnorm_plain(void *user) {
    task_bench *b = (task_bench *)user;
    for (uint32_t r = 0; r < TASK_COUNT * b->rows; r++) {
        const float *x = b->data[0] + r * b->cols;
        float squares = 0.0f;
        for (uint32_t c = 0; c < b->cols; c++) {
            squares += x[c] * x[c];
        }
        float scale = 1.0f / sqrtf(squares / (float)b->cols + 1e-5f);
        for (uint32_t c = 0; c < b->cols; c++) {
            b->plain_result[r * b->cols + c] = x[c] * scale;
        }
    }
    bench_keep(b->plain_result);
}

static void attend_plain(const float *q, const float *k_t, const float *v, float *out) {
    for (uint32_t r = 0; r < 64; r++) {
        float scores[64], most = -INFINITY, sum = 0.0f;
        for (uint32_t i = 0; i < 64; i++) {
            float score = 0.0f;
            for (uint32_t d = 0; d < 64; d++) {
                score += q[r * 64 + d] * k_t[d * 64 + i];
            }
            scores[i] = score * 0.125f;
            most = scores[i] > most ? scores[i] : most;
        }
        for (uint32_t i = 0; i < 64; i++) {
            scores[i] = expf(scores[i] - most);
            sum += scores[i];
        }
        for (uint32_t d = 0; d < 64; d++) {
            float acc = 0.0f;
            for (uint32_t i = 0; i < 64; i++) {
                acc += scores[i] * v[i * 64 + d];
            }
            out[r * 64 + d] = acc / sum;
        }
    }
}

static void run_attention_plain(void *user) {
    task_bench *b = (task_bench *)user;
    for (uint32_t i = 0; i < TASK_COUNT; i++) {
        size_t at = (size_t)i * 64 * 64;
        attend_plain(b->data[0] + at, b->data[1] + at, b->data[2] + at, b->plain_result + at);
    }
    bench_keep(b->plain_result);
}

static void build_tasks(task_bench *b, ptowsp_kernel kernel) {
    static const char *const names[4] = {"t0", "t1", "t2", "t3"};
    ptowsp_task_desc task;
    memset(&task, 0, sizeof task);
    task.kernel = kernel;
    ptowsp_axis axis = ptowsp_axis_dense(b->module, "n", TASK_COUNT);
    for (uint32_t t = 0; t <= b->input_count; t++) {
        ptowsp_tensor_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.name = names[t];
        desc.dtype = PTOWSP_F32;
        desc.rank = 3;
        desc.shape[0] = TASK_COUNT;
        desc.shape[1] = b->rows;
        desc.shape[2] = b->cols;
        task.views[t].tensor = ptowsp_tensor_make(b->module, &desc);
    }
    PTOWSP_WORKLOAD(b->module, "tasks") {
        PTOWSP_PARALLEL(b->module, i, axis) {
            for (uint32_t t = 0; t <= b->input_count; t++) {
                task.views[t].index[0] = i;
            }
            ptowsp_task_make(b->module, &task);
        }
    }
    require(ptowsp_program_create(b->context, b->module, NULL, &b->program) == PTOWSP_OK &&
                ptowsp_run_create(b->context, b->program, &b->run) == PTOWSP_OK,
            ptowsp_context_error(b->context).text);
    for (uint32_t t = 0; t <= b->input_count; t++) {
        ptowsp_buffer buffer;
        memset(&buffer, 0, sizeof buffer);
        buffer.data = b->data[t];
        require(ptowsp_run_bind_tensor(b->run, names[t], &buffer) == PTOWSP_OK,
                ptowsp_context_error(b->context).text);
    }
}

static void bench_tasks(const char *name, uint32_t rows, uint32_t cols, uint32_t input_count,
                        ptowsp_kernel (*make)(ptowsp_module *), bench_fn plain) {
    task_bench b;
    memset(&b, 0, sizeof b);
    b.rows = rows;
    b.cols = cols;
    b.input_count = input_count;
    size_t count = (size_t)TASK_COUNT * rows * cols;
    for (uint32_t t = 0; t <= input_count; t++) {
        b.data[t] = (float *)calloc(count, sizeof(float));
        require(b.data[t] != NULL, "no memory");
        for (size_t i = 0; i < count; i++) {
            b.data[t][i] = (float)((int)((i * (37 + 2 * t)) % 61) - 30) / 16.0f;
        }
    }
    b.plain_result = (float *)calloc(count, sizeof(float));
    require(b.plain_result != NULL, "no memory");
    require(ptowsp_context_create(NULL, &b.context) == PTOWSP_OK &&
                ptowsp_module_create(b.context, NULL, &b.module) == PTOWSP_OK,
            "no memory");
    build_tasks(&b, make(b.module));
    run_tasks(&b);
    plain(&b);
    for (size_t i = 0; i < count; i++) {
        float wanted = b.plain_result[i];
        require(fabsf(b.data[input_count][i] - wanted) <= 1e-4f * fmaxf(fabsf(wanted), 1.0f), name);
    }
    bench_times t = measure(run_tasks, plain, &b, 1, 21);
    bench_row row = {name,
                     "us/task",
                     t.own_ns / TASK_COUNT / 1000.0,
                     "plain loops",
                     t.other_ns / TASK_COUNT / 1000.0,
                     t.ratio,
                     "",
                     false,
                     false};
    report(row);
    ptowsp_run_destroy(b.run);
    ptowsp_program_destroy(b.program);
    ptowsp_module_destroy(b.module);
    ptowsp_context_destroy(b.context);
    for (uint32_t i = 0; i <= input_count; i++) {
        free(b.data[i]);
    }
    free(b.plain_result);
}

// -- making a kernel ------------------------------------------------------------------------------

static void make_module(ptowsp_context *context, bool has_kernel) {
    ptowsp_module *module;
    require(ptowsp_module_create(context, NULL, &module) == PTOWSP_OK, "no memory");
    if (has_kernel) {
        ptowsp_kernel kernel = make_attention(module);
        require(kernel.id != 0, ptowsp_module_error(module).text);
    }
    ptowsp_module_destroy(module);
}

static void run_make(void *user) {
    make_module((ptowsp_context *)user, true);
}

static void run_make_nothing(void *user) {
    make_module((ptowsp_context *)user, false);
}

static void bench_make(void) {
    ptowsp_context *context;
    require(ptowsp_context_create(NULL, &context) == PTOWSP_OK, "no memory");
    bench_times t = measure(run_make, run_make_nothing, context, 20, 21);
    bench_row row = {"a module with the attention kernel, made",
                     "us",
                     t.own_ns / 1000.0,
                     "an empty module",
                     t.other_ns / 1000.0,
                     t.ratio,
                     "",
                     false,
                     false};
    report(row);
    ptowsp_context_destroy(context);
}

void bench_kernel(void) {
    bench_instructions();
    bench_tasks("rmsnorm 16x512 f32, a task", 16, 512, 1, make_rmsnorm, run_rmsnorm_plain);
    bench_tasks("attention 64x64x64 f32, a task", 64, 64, 3, make_attention, run_attention_plain);
    bench_make();
}
