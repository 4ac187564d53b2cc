// Chains on the CPU, as programs of the library. A product is a tile kernel, with a task for each 64 x 64 tile
// of its result that walks over the inner size; sums and relu up to the next product are one, too. Programs
// are kept by shapes; data is bound for each run. A number that is added is a row of equal numbers.

#include "chain_device.h"

#include "ptowsp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 64, PROGRAM_MAX = 64, SEGMENT_OPS = PTOWSP_TASK_TILE_MAX - 2 };

typedef struct program {
    chain_op ops[CHAIN_OP_MAX];  // kinds and shapes
    uint32_t op_count;
    ptowsp_program *compiled;
    ptowsp_run *run;
    float *rows[CHAIN_OP_MAX];  // of numbers that are added
} program;

struct chain_cpu {
    ptowsp_context *context;
    program programs[PROGRAM_MAX];
    uint32_t program_count;
};

chain_cpu *chain_cpu_create(void) {
    chain_cpu *cpu = (chain_cpu *)calloc(1, sizeof *cpu);
    if (cpu && ptowsp_context_create(NULL, &cpu->context)) {
        free(cpu);
        return NULL;
    }
    return cpu;
}

static void program_release(program *p) {
    ptowsp_run_destroy(p->run);
    ptowsp_program_destroy(p->compiled);
    for (uint32_t i = 0; i < CHAIN_OP_MAX; i++) {
        free(p->rows[i]);
    }
}

static void programs_release(chain_cpu *cpu) {
    for (uint32_t i = 0; i < cpu->program_count; i++) {
        program_release(&cpu->programs[i]);
    }
    cpu->program_count = 0;
}

void chain_cpu_destroy(chain_cpu *cpu) {
    if (cpu) {
        programs_release(cpu);
        ptowsp_context_destroy(cpu->context);
        free(cpu);
    }
}

// -- a program ------------------------------------------------------------------------------------

// A chain that is being built. The next segment reads `source`.
typedef struct build {
    ptowsp_module *module;
    const chain_op *ops;
    uint32_t op_count;
    ptowsp_tensor source;
    uint32_t rows, cols;  // of it
} build;

// The tensor of an operation: "x3" is of operation 3.
static ptowsp_tensor tensor_make(const build *b, uint32_t at, uint32_t rows, uint32_t cols) {
    char name[24];
    snprintf(name, sizeof name, "x%u", (unsigned)at);
    const ptowsp_tensor_desc desc = {
        .name = name, .dtype = PTOWSP_F32, .rank = 2, .shape = {rows, cols}};
    return at < b->op_count ? ptowsp_tensor_make(b->module, &desc)
                            : ptowsp_tensor_transient(b->module, &desc, NULL);
}

static ptowsp_axis tiles_of(const build *b, const char *kind, uint32_t at, uint32_t size) {
    char name[24];
    snprintf(name, sizeof name, "%s%u", kind, (unsigned)at);
    return ptowsp_axis_dense(b->module, name, (size + TILE - 1) / TILE);
}

// The sum over the inner size, in slices.
static ptowsp_value product_make(ptowsp_body *k, ptowsp_value left, ptowsp_value right) {
    ptowsp_value none = {0}, sum = none;
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, TILE, TILE, 0);
    PTOWSP_TILE_LOOP(k, at, ptowsp_tile_const(k, 0), ptowsp_tile_cols(left), TILE) {
        ptowsp_value a = ptowsp_tile_slice_at(left, none, at, TILE, TILE);
        ptowsp_value b = ptowsp_tile_slice_at(right, at, none, TILE, TILE);
        sum = ptowsp_tile_carry(zero);
        ptowsp_tile_next(sum, ptowsp_tile_matmul_acc(sum, a, b));
    }
    return sum;
}

// Sums and relu from `first` on, to a value; their operands become views of the task.
static ptowsp_value elements_make(build *b, ptowsp_body *k, uint32_t first, uint32_t last,
                                  ptowsp_value value, ptowsp_expr row, ptowsp_expr col,
                                  ptowsp_view *views) {
    for (uint32_t at = first; at < last; at++) {
        if (b->ops[at].kind == CHAIN_RELU) {
            value = ptowsp_tile_relu(value);
            continue;
        }
        char name[24];
        snprintf(name, sizeof name, "add%u", (unsigned)at);
        const bool is_row = b->ops[at].rows == 1;
        ptowsp_value x = ptowsp_tile_in(k, name, PTOWSP_F32, is_row ? 1 : TILE, TILE);
        value = ptowsp_tile_add(value, is_row ? ptowsp_tile_col_broadcast(value, x) : x);
        views->tensor = tensor_make(b, at, is_row ? 1 : b->rows, b->cols);
        views->col = col;
        if (!is_row) {
            views->row = row;
        }
        views++;
    }
    return value;
}

// Operations [first, last), a product or sums and relu, as one kernel and its loop. They read b->source, and
// write the output if they are the last, else a tensor in between.
static void segment_make(build *b, uint32_t first, uint32_t last) {
    ptowsp_module *m = b->module;
    const bool is_product = b->ops[first].kind == CHAIN_MATMUL;
    const uint32_t depth = b->cols;
    const bool is_end = last == b->op_count - 1;
    b->cols = is_product ? b->ops[first].cols : b->cols;
    char name[24];
    snprintf(name, sizeof name, "kernel%u", (unsigned)first);
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name});
    const ptowsp_axis down = tiles_of(b, "down", first, b->rows);
    const ptowsp_axis across = tiles_of(b, "across", first, b->cols);
    PTOWSP_PARALLEL(m, i, down) {
        PTOWSP_PARALLEL(m, j, across) {
            const ptowsp_expr row = ptowsp_mul(i, ptowsp_i64(m, TILE));
            const ptowsp_expr col = ptowsp_mul(j, ptowsp_i64(m, TILE));
            ptowsp_task_desc task = {.views[0] = {.tensor = b->source, .row = row}};
            ptowsp_value value =
                ptowsp_tile_in(k, "source", PTOWSP_F32, TILE, is_product ? depth : TILE);
            if (is_product) {
                value = product_make(k, value, ptowsp_tile_in(k, "right", PTOWSP_F32, depth, TILE));
                task.views[1] =
                    (ptowsp_view){.tensor = tensor_make(b, first, depth, b->cols), .col = col};
            } else {
                task.views[0].col = col;
                value = elements_make(b, k, first, last, value, row, col, &task.views[1]);
            }
            ptowsp_tile_store(ptowsp_tile_out(k, "out", PTOWSP_F32, TILE, TILE), value);
            uint32_t count = 0;
            while (task.views[count].tensor.id) {
                count++;
            }
            b->source = tensor_make(b, is_end ? last : last + CHAIN_OP_MAX, b->rows, b->cols);
            task.views[count] = (ptowsp_view){.tensor = b->source, .row = row, .col = col};
            task.kernel = ptowsp_kernel_end(k);
            ptowsp_task_make(m, &task);
        }
    }
}

static ptowsp_status program_make(chain_cpu *cpu, program *p) {
    ptowsp_module *m;
    ptowsp_status status = ptowsp_module_create(cpu->context, NULL, &m);
    if (status) {
        return status;
    }
    build b = {.module = m,
               .ops = p->ops,
               .op_count = p->op_count,
               .rows = p->ops[0].rows,
               .cols = p->ops[0].cols};
    b.source = tensor_make(&b, 0, b.rows, b.cols);
    PTOWSP_WORKLOAD(m, "chain") {
        for (uint32_t first = 1, last; first < b.op_count - 1; first = last) {
            last = first + 1;
            while (b.ops[first].kind != CHAIN_MATMUL && last < b.op_count - 1 &&
                   b.ops[last].kind != CHAIN_MATMUL && last - first < SEGMENT_OPS) {
                last++;
            }
            segment_make(&b, first, last);
        }
    }
    status = ptowsp_program_create(cpu->context, m, NULL, &p->compiled);
    ptowsp_module_destroy(m);
    return status ? status : ptowsp_run_create(cpu->context, p->compiled, &p->run);
}

// -- runs -----------------------------------------------------------------------------------------

static bool is_number(const chain_op *op, uint32_t cols) {
    return op->kind == CHAIN_ADD && op->rows == 1 && op->cols == 1 && cols > 1;
}

// The program of a chain's shapes. NULL, and the text of an error in the context.
static program *program_find(chain_cpu *cpu, const chain_op *ops, uint32_t op_count) {
    for (uint32_t i = 0; i < cpu->program_count; i++) {
        program *p = &cpu->programs[i];
        uint32_t same = p->op_count == op_count ? 0 : op_count + 1;
        while (same < op_count && p->ops[same].kind == ops[same].kind &&
               (ops[same].kind == CHAIN_RELU ||
                (p->ops[same].rows == ops[same].rows && p->ops[same].cols == ops[same].cols))) {
            same++;
        }
        if (same == op_count) {
            return p;
        }
    }
    if (cpu->program_count == PROGRAM_MAX) {
        programs_release(cpu);
    }
    program *p = &cpu->programs[cpu->program_count];
    memset(p, 0, sizeof *p);
    memcpy(p->ops, ops, op_count * sizeof *ops);
    p->op_count = op_count;
    bool is_made = program_make(cpu, p) == PTOWSP_OK;
    uint32_t cols = ops[0].cols;
    for (uint32_t i = 0; i < op_count && is_made; i++) {
        cols = ops[i].kind == CHAIN_MATMUL ? ops[i].cols : cols;
        if (is_number(&ops[i], cols)) {
            p->rows[i] = (float *)malloc(cols * sizeof(float));
            is_made = p->rows[i] != NULL;
        }
    }
    if (!is_made) {
        program_release(p);
        return NULL;
    }
    cpu->program_count++;
    return p;
}

// A chain of an input and an output alone.
static const char *copy_run(const chain_op *ops) {
    memmove(ops[1].data, ops[0].data, (size_t)ops[0].rows * ops[0].cols * sizeof(float));
    return NULL;
}

const char *chain_cpu_run(chain_cpu *cpu, const chain_op *ops, uint32_t op_count) {
    if (op_count == 2) {
        return copy_run(ops);
    }
    program *p = program_find(cpu, ops, op_count);
    if (!p) {
        return ptowsp_context_error(cpu->context).text;
    }
    ptowsp_status status = PTOWSP_OK;
    uint32_t cols = ops[0].cols;
    for (uint32_t i = 0; i < op_count && !status; i++) {
        cols = ops[i].kind == CHAIN_MATMUL ? ops[i].cols : cols;
        if (ops[i].kind == CHAIN_RELU) {
            continue;
        }
        for (uint32_t c = 0; p->rows[i] && c < cols; c++) {
            p->rows[i][c] = ops[i].data[0];
        }
        const ptowsp_buffer buffer = {.data = p->rows[i] ? p->rows[i] : ops[i].data};
        char name[24];
        snprintf(name, sizeof name, "x%u", (unsigned)i);
        status = ptowsp_run_bind_tensor(p->run, name, &buffer);
    }
    status = status ? status : ptowsp_run_execute(p->run, NULL);
    return status ? ptowsp_context_error(cpu->context).text : NULL;
}
