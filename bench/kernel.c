// Tile kernels as tasks of a program, and making one. Their limit is what their instructions take by
// themselves: the same ones, called one after the other on tiles that are there already.

#include "bench.h"

#include "ptoisa_shim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    float *memory;                  // of the instructions by themselves
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

// -- their instructions by themselves -------------------------------------------------------------

enum { MEMORY_TILES = 8, TILE_MAX = 16 * 512 };

static ptoisa_tile tile_of(const task_bench *b, uint32_t at, ptoisa_memory memory,
                           ptoisa_layout layout, uint32_t rows, uint32_t cols) {
    return ptoisa_tile_make(b->memory + (size_t)at * TILE_MAX, PTOISA_F32, memory, layout, rows,
                            cols);
}

// The parts of three inputs and an output that a task has.
static void globals_of(const task_bench *b, uint32_t task, ptoisa_global *globals) {
    for (uint32_t t = 0; t <= b->input_count; t++) {
        float *data = t == b->input_count ? b->plain_result : b->data[t];
        globals[t] = ptoisa_global_make(data + (size_t)task * b->rows * b->cols, PTOISA_F32,
                                        b->rows, b->cols, b->cols, 1);
    }
}

static void run_rmsnorm_insns(void *user) {
    const task_bench *b = (const task_bench *)user;
    const ptoisa_tile x = tile_of(b, 0, PTOISA_VEC, PTOISA_ROW_MAJOR, 16, 512);
    const ptoisa_tile squares = tile_of(b, 1, PTOISA_VEC, PTOISA_ROW_MAJOR, 16, 512);
    const ptoisa_tile scratch = tile_of(b, 2, PTOISA_VEC, PTOISA_ROW_MAJOR, 16, 512);
    const ptoisa_tile sum = tile_of(b, 3, PTOISA_VEC, PTOISA_COL_MAJOR, 16, 1);
    const ptoisa_tile mean = tile_of(b, 3, PTOISA_VEC, PTOISA_ROW_MAJOR, 1, 16);
    const ptoisa_tile scale = tile_of(b, 1, PTOISA_VEC, PTOISA_COL_MAJOR, 16, 1);
    const ptoisa_tile scale_row = tile_of(b, 1, PTOISA_VEC, PTOISA_ROW_MAJOR, 1, 16);
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    for (uint32_t i = 0; i < TASK_COUNT; i++) {
        ptoisa_global at[4];
        globals_of(b, i, at);
        ptoisa_tload(&core, &x, &at[0]);
        ptoisa_tmul(&core, &squares, &x, &x);
        ptoisa_trowsum(&core, &sum, &squares, &scratch);
        ptoisa_tdivs(&core, &mean, &mean, 512.0);
        ptoisa_tadds(&core, &mean, &mean, 1e-5);
        ptoisa_trsqrt(&core, &scale_row, &mean);
        ptoisa_trowexpandmul(&core, &x, &x, &scale);
        ptoisa_tstore(&core, &at[1], &x);
    }
}

// Both pushes and pops move a tile through memory of 64 x 64.
static void run_attention_insns(void *user) {
    const task_bench *b = (const task_bench *)user;
    const ptoisa_tile l1 = tile_of(b, 0, PTOISA_MAT, PTOISA_NZ, 64, 64);
    const ptoisa_tile l1_other = tile_of(b, 1, PTOISA_MAT, PTOISA_NZ, 64, 64);
    const ptoisa_tile left = tile_of(b, 2, PTOISA_LEFT, PTOISA_ZZ, 64, 64);
    const ptoisa_tile right = tile_of(b, 3, PTOISA_RIGHT, PTOISA_ZN, 64, 64);
    const ptoisa_tile out = tile_of(b, 4, PTOISA_ACC, PTOISA_NZ, 64, 64);
    const ptoisa_tile x = tile_of(b, 5, PTOISA_VEC, PTOISA_ROW_MAJOR, 64, 64);
    const ptoisa_tile scratch = tile_of(b, 6, PTOISA_VEC, PTOISA_ROW_MAJOR, 64, 64);
    const ptoisa_tile row = tile_of(b, 7, PTOISA_VEC, PTOISA_COL_MAJOR, 64, 1);
    const ptoisa_global slot =
        ptoisa_global_make(b->memory + (size_t)MEMORY_TILES * TILE_MAX, PTOISA_F32, 64, 64, 64, 1);
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    for (uint32_t i = 0; i < TASK_COUNT; i++) {
        ptoisa_global at[4];
        globals_of(b, i, at);
        ptoisa_tload(&core, &l1, &at[0]);
        ptoisa_tload(&core, &l1_other, &at[1]);
        ptoisa_tmov(&core, &left, &l1);
        ptoisa_tmov(&core, &right, &l1_other);
        ptoisa_tmatmul(&core, &out, &left, &right);
        ptoisa_tstore(&core, &slot, &out);
        ptoisa_tload(&core, &x, &slot);
        ptoisa_tmuls(&core, &x, &x, 0.125);
        ptoisa_trowmax(&core, &row, &x, &scratch);
        ptoisa_trowexpandsub(&core, &x, &x, &row);
        ptoisa_texp(&core, &x, &x);
        ptoisa_trowsum(&core, &row, &x, &scratch);
        ptoisa_trowexpanddiv(&core, &x, &x, &row);
        ptoisa_tstore(&core, &slot, &x);
        ptoisa_tload(&core, &l1_other, &at[2]);
        ptoisa_tload(&core, &l1, &slot);
        ptoisa_tmov(&core, &left, &l1);
        ptoisa_tmov(&core, &right, &l1_other);
        ptoisa_tmatmul(&core, &out, &left, &right);
        ptoisa_tstore(&core, &at[3], &out);
    }
}

// -- rows -----------------------------------------------------------------------------------------

typedef struct task_case {
    const char *name;
    uint32_t rows, cols, input_count;
    ptowsp_kernel (*make)(ptowsp_module *module);
    bench_fn plain, insns;
} task_case;

static const task_case task_cases[] = {
    {"rmsnorm 16x512 f32, a task", 16, 512, 1, make_rmsnorm, run_rmsnorm_plain, run_rmsnorm_insns},
    {"attention 64x64x64 f32, a task", 64, 64, 3, make_attention, run_attention_plain,
     run_attention_insns},
};

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

// Requires that what tasks computed is what loops or instructions did.
static void compare_tasks(task_bench *b, bench_fn fn, size_t count, const char *name) {
    memset(b->plain_result, 0, count * sizeof(float));
    fn(b);
    for (size_t i = 0; i < count; i++) {
        float wanted = b->plain_result[i];
        require(fabsf(b->data[b->input_count][i] - wanted) <= 1e-4f * fmaxf(fabsf(wanted), 1.0f),
                name);
    }
}

static void bench_tasks(const task_case *task) {
    const bench_case of = {task->name,
                           "us/task",
                           TASK_COUNT,
                           1,
                           21,
                           run_tasks,
                           "plain loops",
                           task->plain,
                           "its instructions by themselves",
                           task->insns,
                           BUDGET_LIMIT,
                           1.2};
    task_bench b;
    memset(&b, 0, sizeof b);
    b.rows = task->rows;
    b.cols = task->cols;
    b.input_count = task->input_count;
    const size_t count = (size_t)TASK_COUNT * b.rows * b.cols;
    for (uint32_t t = 0; t <= b.input_count; t++) {
        b.data[t] = (float *)bench_allocate(count * sizeof(float));
        for (size_t i = 0; i < count; i++) {
            b.data[t][i] = (float)((int)((i * (37 + 2 * t)) % 61) - 30) / 16.0f;
        }
    }
    b.plain_result = (float *)bench_allocate(count * sizeof(float));
    b.memory = (float *)bench_allocate((MEMORY_TILES + 1) * TILE_MAX * sizeof(float));
    require(ptowsp_context_create(NULL, &b.context) == PTOWSP_OK &&
                ptowsp_module_create(b.context, NULL, &b.module) == PTOWSP_OK,
            "no memory");
    build_tasks(&b, task->make(b.module));
    run_tasks(&b);
    compare_tasks(&b, task->plain, count, task->name);
    compare_tasks(&b, task->insns, count, task->name);
    bench_measure(&of, &b);
    ptowsp_run_destroy(b.run);
    ptowsp_program_destroy(b.program);
    ptowsp_module_destroy(b.module);
    ptowsp_context_destroy(b.context);
    for (uint32_t i = 0; i <= b.input_count; i++) {
        free(b.data[i]);
    }
    free(b.plain_result);
    free(b.memory);
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
    static const bench_case of = {"a module with the attention kernel, made",
                                  "us",
                                  1.0,
                                  20,
                                  21,
                                  run_make,
                                  "an empty module",
                                  run_make_nothing,
                                  NULL,
                                  NULL,
                                  BUDGET_VALUE,
                                  5.0};
    bench_measure(&of, context);
    ptowsp_context_destroy(context);
}

void bench_kernel(void) {
    bench_insns();
    for (size_t i = 0; i < sizeof task_cases / sizeof *task_cases; i++) {
        bench_tasks(&task_cases[i]);
    }
    bench_make();
}
