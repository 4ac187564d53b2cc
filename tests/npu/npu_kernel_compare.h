// Emitted kernels against the library: the same bytes, the same cycles, the same refusals.
//
// A batch is a number of kernels of kernel_fixture.h, all for one machine, which are compiled in one
// go, and run on full and on cut-off tiles, in every model of cycles.

#ifndef NPU_KERNEL_COMPARE_H
#define NPU_KERNEL_COMPARE_H

#include "kernel_fixture.h"
#include "npu_kernel_fixture.h"

// -- one task on both -----------------------------------------------------------------------------

typedef struct outcome {
    ptowsp_status status;
    uint32_t fault;  // of the tree
    uint64_t cycles;
    uint8_t *bytes[PTOWSP_TASK_TILE_MAX];
} outcome;

// A task of the kernel: how many valid rows and columns each parameter has.
typedef struct sizes {
    int64_t rows[PTOWSP_TASK_TILE_MAX], cols[PTOWSP_TASK_TILE_MAX];
} sizes;

static inline size_t param_bytes(const kt_param *p) {
    return p->count * ptowsp_dtype_size(p->dtype);
}

static inline outcome outcome_begin(const kt *t) {
    outcome out = {0};
    for (uint32_t i = 0; i < t->param_count; i++) {
        out.bytes[i] = (uint8_t *)test_alloc(1, param_bytes(&t->params[i]));
        memcpy(out.bytes[i], t->params[i].block, param_bytes(&t->params[i]));
    }
    return out;
}

static inline outcome run_library(kt *t, const ptowsp_program *program, const sizes *at,
                                  ptowsp_model model) {
    outcome out = outcome_begin(t);
    ptowsp_run *run = test_run_of(t->context, program);
    for (uint32_t i = 0; i < t->param_count; i++) {
        const kt_param *p = &t->params[i];
        ptowsp_buffer buffer = kt_buffer(p);
        buffer.data = out.bytes[i] + (size_t)p->origin * ptowsp_dtype_size(p->dtype);
        buffer.shape[0] = p->row + at->rows[i];
        buffer.shape[1] = p->col + at->cols[i];
        assert_ok(ptowsp_run_bind_tensor(run, p->name, &buffer));
    }
    ptowsp_run_options options = {.cost.model = model};
    out.status = ptowsp_run_execute(run, &options);
    out.cycles = out.status == PTOWSP_OK ? ptowsp_run_result(run)->makespan_cycles : 0;
    ptowsp_run_destroy(run);
    return out;
}

static inline outcome run_emitted(const kt *t, npu_run_fn run, const sizes *at,
                                  ptowsp_model model) {
    outcome out = outcome_begin(t);
    wsp_task task;
    memset(&task, 0xee, sizeof task);
    task.kernel = 1;
    task.axis_count = 0;
    task.tile_count = t->param_count;
    task.scalar_count = t->scalar_count;
    task.model = (uint32_t)model;
    for (uint32_t i = 0; i < t->param_count; i++) {
        const kt_param *p = &t->params[i];
        task.args[2 * i] = (uint64_t)at->rows[i];
        task.args[2 * i + 1] = (uint64_t)at->cols[i];
        task.tiles[i].data =
            (uint64_t)(uintptr_t)(out.bytes[i] + kt_element(p, 0, 0) * ptowsp_dtype_size(p->dtype));
        task.tiles[i].row_stride = p->row_stride;
        task.tiles[i].col_stride = p->col_stride;
    }
    memcpy(task.args + 2 * t->param_count, t->scalars, sizeof t->scalars);
    run(&task);
    out.status = (ptowsp_status)task.status;
    out.cycles = task.cycles;
    out.fault = task.fault;
    return out;
}

// Is the tree compiled to move data as a device does? Then it takes other cycles, and may find that a
// task's tensors cannot be moved.
static bool compare_is_strict;

// Has a task a tensor whose elements lie together neither in rows nor in columns?
static inline bool is_scattered(const kt *t, const sizes *at) {
    for (uint32_t i = 0; i < t->param_count; i++) {
        const kt_param *p = &t->params[i];
        if (p->row_stride != 1 && p->col_stride != 1 && at->rows[i] > 1 && at->cols[i] > 1) {
            return true;
        }
    }
    return false;
}

// Runs a task on both, and compares; returns whether it was refused.
static inline bool compare(kt *t, const ptowsp_program *program, npu_run_fn run, npu_text_fn text,
                           const sizes *at, ptowsp_model model) {
    const size_t held = test_held.count;
    const outcome want = run_library(t, program, at, model), got = run_emitted(t, run, at, model);
    if (compare_is_strict && want.status == PTOWSP_OK && is_scattered(t, at)) {
        assert_int_equal(got.status, PTOWSP_UNSUPPORTED);
        test_release_to(held);
        return true;
    }
    if (want.status != got.status || (!compare_is_strict && want.cycles != got.cycles)) {
        kt_complain(t);
        fail_msg("model %d: status %d, %llu cycles, not %d, %llu: %s", model, got.status,
                 (unsigned long long)got.cycles, want.status, (unsigned long long)want.cycles,
                 text(1, got.fault));
    }
    for (uint32_t i = 0; i < t->param_count; i++) {
        if (memcmp(want.bytes[i], got.bytes[i], param_bytes(&t->params[i])) != 0) {
            kt_complain(t);
            fail_msg("model %d: the bytes of %s differ", model, t->params[i].name);
        }
    }
    assert_int_equal(want.status == PTOWSP_OK, got.fault == 0);
    assert_int_equal(want.status == PTOWSP_OK, text(1, got.fault)[0] == '\0');
    test_release_to(held);
    return want.status != PTOWSP_OK;
}

// -- many kernels ---------------------------------------------------------------------------------

// The sizes of the kernel's first task, or smaller ones: the same for all axes of one size, or
// (`is_wild`) any, which checks refuse as a rule.
static inline sizes pick_sizes(kt *t, bool is_first, bool is_wild) {
    sizes at;
    int64_t valid[KT_SIZE_MAX];
    for (uint32_t i = 0; i < t->size_count; i++) {
        valid[i] = test_random_in(&t->state, 1, t->valid[i]);
    }
    for (uint32_t i = 0; i < t->param_count; i++) {
        const kt_param *p = &t->params[i];
        at.rows[i] = p->valid_rows;
        at.cols[i] = p->valid_cols;
        for (uint32_t j = 0; !is_first && j < t->size_count; j++) {
            at.rows[i] = p->rows == t->sizes[j] && valid[j] < at.rows[i] ? valid[j] : at.rows[i];
            at.cols[i] = p->cols == t->sizes[j] && valid[j] < at.cols[i] ? valid[j] : at.cols[i];
        }
        if (is_wild) {
            at.rows[i] = test_random_in(&t->state, 1, p->valid_rows);
            at.cols[i] = test_random_in(&t->state, 1, p->valid_cols);
        }
    }
    return at;
}

enum { BATCH_MAX = 256, TASKS = 5 };

typedef struct batch {
    kt kernels[BATCH_MAX];
    uint32_t count;
    bool is_a5;
} batch;

static inline void batch_add(batch *b, const kt *t) {
    assert_in_range(b->count, 0, BATCH_MAX - 1);
    b->kernels[b->count++] = *t;
}

// Do its sizes have to be those it was made with? Indices into global memory are made for them.
static inline bool has_indices(const ptowsp_program *program) {
    for (uint32_t i = 0; i < ptowsp_program_read(program)->kernels[1].insn_count; i++) {
        const ptowsp_opcode op = ptowsp_program_read(program)->kernels[1].insns[i].op;
        if (op == PTOWSP_OP_MGATHER || op == PTOWSP_OP_MSCATTER || op == PTOWSP_OP_TSCATTER) {
            return true;
        }
    }
    return false;
}

// Compiles a batch, compares, and frees its kernels.
static inline void batch_play(batch *b, const char *options) {
    ptowsp_program *programs[BATCH_MAX];
    npu_object o = npu_object_begin();
    uint64_t insns = 0, refused = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        kt *t = &b->kernels[i];
        programs[i] = kt_compile(t);
        insns += ptowsp_program_read(programs[i])->kernels[1].insn_count;
        npu_object_add(&o, t->context, programs[i], b->is_a5);
    }
    npu_object_build(&o, options);
    for (uint32_t i = 0; i < b->count; i++) {
        kt *t = &b->kernels[i];
        int tasks = has_indices(programs[i]) ? 1 : TASKS;
        for (int task = 0; task < tasks; task++) {
            sizes at = pick_sizes(t, task == 0, task == TASKS - 1);
            for (int model = PTOWSP_MODEL_UNIT; model <= PTOWSP_MODEL_A5; model++) {
                refused += compare(t, programs[i], npu_object_run(&o, i), npu_object_text(&o, i),
                                   &at, (ptowsp_model)model);
            }
        }
        kt_free(t);
    }
    print_message("%u kernels of %llu instructions, %llu of %u runs refused by both\n", b->count,
                  (unsigned long long)insns, (unsigned long long)refused, b->count * TASKS * 3);
    b->count = 0;
    npu_object_end(&o);
}

#endif
