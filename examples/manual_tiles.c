// Section 24 of the manual: operations on tiles, each in a kernel of its own, beside the same in
// double precision; and a kernel's instructions with their cycles on a 910B.

#include "common/manual.h"

#include <math.h>
#include <string.h>

enum { SIZE = 16 };

// What an operation makes of element (i, j) of x and y, both SIZE x SIZE.
typedef double reference(const float *x, const float *y, int i, int j);
typedef ptowsp_value operation(ptowsp_value x, ptowsp_value y);

#define AT(tile, i, j) ((double)(tile)[(i)*SIZE + (j)])
#define UNARY(name, function, expected)                                                            \
    static ptowsp_value name##_tile(ptowsp_value x, ptowsp_value y) {                              \
        (void)y;                                                                                   \
        return function(x);                                                                        \
    }                                                                                              \
    static double name##_expected(const float *x, const float *y, int i, int j) {                  \
        const double v = AT(x, i, j);                                                              \
        (void)y;                                                                                   \
        return expected;                                                                           \
    }

UNARY(sqrt, ptowsp_tile_sqrt, sqrt(v))
UNARY(recip, ptowsp_tile_recip, 1 / v)
UNARY(log, ptowsp_tile_log, log(v))
UNARY(tanh, ptowsp_tile_tanh, tanh(v))
UNARY(sin, ptowsp_tile_sin, sin(v))
UNARY(cos, ptowsp_tile_cos, cos(v))
UNARY(neg, ptowsp_tile_neg, -v)
UNARY(gelu, ptowsp_tile_gelu, v / 2 * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))))

static ptowsp_value min_tile(ptowsp_value x, ptowsp_value y) {
    return ptowsp_tile_min(x, y);
}
static double min_expected(const float *x, const float *y, int i, int j) {
    return fmin(AT(x, i, j), AT(y, i, j));
}

// The least of a row, in each column of a tile.
static ptowsp_value rowmin_tile(ptowsp_value x, ptowsp_value y) {
    return ptowsp_tile_row_broadcast(y, ptowsp_tile_rowmin(x));
}
static double rowmin_expected(const float *x, const float *y, int i, int j) {
    double least = INFINITY;
    for (int k = 0; k < SIZE; k++) {
        least = fmin(least, AT(x, i, k));
    }
    return (void)y, (void)j, least;
}

static ptowsp_value rowsum_tile(ptowsp_value x, ptowsp_value y) {
    const ptowsp_value half = ptowsp_tile_cvt(x, PTOWSP_F16, PTOWSP_ROUND_NEAREST);
    return ptowsp_tile_row_broadcast(y, ptowsp_tile_rowsum_f32(half));  // of f16, summed in f32
}
static double rowsum_expected(const float *x, const float *y, int i, int j) {
    double sum = 0;
    for (int k = 0; k < SIZE; k++) {
        sum += AT(x, i, k);
    }
    return (void)y, (void)j, sum;
}

// The range of a column, in each row of a tile.
static ptowsp_value range_tile(ptowsp_value x, ptowsp_value y) {
    return ptowsp_tile_sub(ptowsp_tile_col_broadcast(y, ptowsp_tile_colmax(x)),
                           ptowsp_tile_col_broadcast(y, ptowsp_tile_colmin(x)));
}
static double range_expected(const float *x, const float *y, int i, int j) {
    double most = -INFINITY, least = INFINITY;
    for (int k = 0; k < SIZE; k++) {
        most = fmax(most, AT(x, k, j));
        least = fmin(least, AT(x, k, j));
    }
    return (void)y, (void)i, most - least;
}

static ptowsp_value select_tile(ptowsp_value x, ptowsp_value y) {
    return ptowsp_tile_select(ptowsp_tile_compare(x, PTOWSP_GT, y), x, y);
}
static double select_expected(const float *x, const float *y, int i, int j) {
    return fmax(AT(x, i, j), AT(y, i, j));
}

static ptowsp_value gather_tile(ptowsp_value x, ptowsp_value y) {  // row 0, in each row
    const ptowsp_value columns = ptowsp_tile_iota(x.body, PTOWSP_I32, SIZE, 0);
    return ptowsp_tile_col_broadcast(y, ptowsp_tile_gather(x, columns));
}
static double gather_expected(const float *x, const float *y, int i, int j) {
    return (void)y, (void)i, AT(x, 0, j);
}

static ptowsp_value weave_tile(ptowsp_value x, ptowsp_value y) {  // both halves, column by column
    (void)y;
    return ptowsp_tile_interleave(ptowsp_tile_slice(x, 0, 0, SIZE, SIZE / 2),
                                  ptowsp_tile_slice(x, 0, SIZE / 2, SIZE, SIZE / 2));
}
static double weave_expected(const float *x, const float *y, int i, int j) {
    return (void)y, AT(x, i, j / 2 + j % 2 * SIZE / 2);
}

static ptowsp_value odd_tile(ptowsp_value x, ptowsp_value y) {  // the sum of the odd columns
    return ptowsp_tile_row_broadcast(y, ptowsp_tile_rowsum(ptowsp_tile_deinterleave(x, 1)));
}
static double odd_expected(const float *x, const float *y, int i, int j) {
    double sum = 0;
    for (int k = 1; k < SIZE; k += 2) {
        sum += AT(x, i, k);
    }
    return (void)y, (void)j, sum;
}

static ptowsp_value quantized_tile(ptowsp_value x, ptowsp_value y) {  // in steps of 1 / 8, as x is
    const ptowsp_value inverse = ptowsp_tile_full(x.body, PTOWSP_F32, SIZE, 1, 8);
    const ptowsp_value step = ptowsp_tile_full(x.body, PTOWSP_F32, SIZE, 1, 0.125);
    const ptowsp_value zero = ptowsp_tile_full(x.body, PTOWSP_F32, SIZE, 1, 0);
    return (void)y, ptowsp_tile_dequantize(ptowsp_tile_quantize(x, inverse), step, zero);
}
static double quantized_expected(const float *x, const float *y, int i, int j) {
    return (void)y, AT(x, i, j);
}

static ptowsp_value matmul_tile(ptowsp_value x, ptowsp_value y) {
    return ptowsp_tile_matmul_bias(x, y, ptowsp_tile_slice(y, 0, 0, 1, SIZE));
}
static double matmul_expected(const float *x, const float *y, int i, int j) {
    double sum = AT(y, 0, j);
    for (int k = 0; k < SIZE; k++) {
        sum += AT(x, i, k) * AT(y, k, j);
    }
    return sum;
}

static ptowsp_value again_tile(ptowsp_value x, ptowsp_value y) {  // a load that is counted twice
    return ptowsp_tile_add(ptowsp_tile_mul(x, y), ptowsp_tile_load(x));
}
static double again_expected(const float *x, const float *y, int i, int j) {
    return AT(x, i, j) * AT(y, i, j) + AT(x, i, j);
}

// -- running one ----------------------------------------------------------------------------------

// Makes z += operation(x, y) from z = 0, or z = operation(x, y), by one task.
static void compute(ptowsp_context *context, ptowsp_module *m, ptowsp_kernel kernel, float *x,
                    float *y, float *z) {
    static const char *const names[] = {"x", "y", "z"};
    float *const memory[] = {x, y, z};
    ptowsp_task_desc task = {.kernel = kernel};
    ptowsp_program *program;
    ptowsp_run *run;
    for (int i = 0; i < 3; i++) {
        const ptowsp_tensor_desc desc = {
            .name = names[i], .dtype = PTOWSP_F32, .rank = 2, .shape = {SIZE, SIZE}};
        task.views[i].tensor = ptowsp_tensor_make(m, &desc);
    }
    PTOWSP_WORKLOAD(m, "one") ptowsp_task_make(m, &task);
    if (ptowsp_program_create(context, m, NULL, &program) ||
        ptowsp_program_prove(context, program) || ptowsp_run_create(context, program, &run)) {
        manual_check(false, ptowsp_context_error(context).text);
        return;
    }
    for (int i = 0; i < 3; i++) {
        const ptowsp_buffer buffer = {
            .data = memory[i], .dtype = PTOWSP_F32, .rank = 2, .shape = {SIZE, SIZE}};
        manual_check(!ptowsp_run_bind_tensor(run, names[i], &buffer), names[i]);
    }
    manual_check(!ptowsp_run_execute(run, NULL), ptowsp_context_error(context).text);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}

static void operation_check(ptowsp_context *context, const char *name, operation *build,
                            reference *expected) {
    static float x[SIZE * SIZE], y[SIZE * SIZE], z[SIZE * SIZE];
    ptowsp_module *m;
    if (ptowsp_module_create(context, NULL, &m)) {
        return;
    }
    const ptowsp_machine machine = ptowsp_machine_950pr();
    const ptowsp_body_desc desc = {.name = name, .machine = &machine};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    const ptowsp_value a = ptowsp_tile_in(k, "x", PTOWSP_F32, SIZE, SIZE);
    const ptowsp_value b = ptowsp_tile_in(k, "y", PTOWSP_F32, SIZE, SIZE);
    const ptowsp_value c = ptowsp_tile_inout(k, "z", PTOWSP_F32, SIZE, SIZE);
    ptowsp_tile_store_add(c, build(a, b));
    const ptowsp_kernel kernel = ptowsp_kernel_end(k);
    for (int i = 0; i < SIZE * SIZE; i++) {
        x[i] = (float)(1 + i * 7 % 32) / 8;
        y[i] = (float)(1 + i * 5 % 16) / 4;
        z[i] = 0;
    }
    compute(context, m, kernel, x, y, z);
    int wrong = 0;
    for (int i = 0; i < SIZE * SIZE; i++) {
        const double want = expected(x, y, i / SIZE, i % SIZE);
        wrong += !(fabs(z[i] - want) <= 1e-5 * fmax(1, fabs(want)));
    }
    manual_check(wrong == 0, name);
    ptowsp_module_destroy(m);
}

// -- instructions ---------------------------------------------------------------------------------

// y = x + 1, by an instruction of its own choice, and its text on a 910B.
static void instructions_show(ptowsp_context *context) {
    ptowsp_module *m;
    if (ptowsp_module_create(context, NULL, &m)) {
        return;
    }
    const ptowsp_body_desc desc = {.name = "increment"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    const ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, SIZE, SIZE);
    const ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, SIZE, SIZE);
    const ptowsp_alloc_desc room = {.dtype = PTOWSP_F32, .rows = SIZE, .cols = SIZE};
    const ptowsp_value sum = ptowsp_tile_alloc(k, &room);
    ptowsp_instruction(
        k, &(ptowsp_instruction_desc){
               .name = "TADDS", .dst = {sum}, .src = {x}, .scalar = ptowsp_tile_const(k, 1)});
    ptowsp_tile_store(y, sum);
    const ptowsp_kernel kernel = ptowsp_kernel_end(k);
    const ptowsp_cost cost = {.model = PTOWSP_MODEL_910B};
    ptowsp_kernel_print(m, kernel, &cost, manual_output());
    ptowsp_kernel_stats unit;
    ptowsp_cycles sum_of_all = 0, cycles;
    bool has_add = false;
    manual_check(!ptowsp_kernel_measure(m, kernel, NULL, &unit),
                 ptowsp_context_error(context).text);
    for (uint32_t i = 0; i < ptowsp_kernel_insn_count(m, kernel); i++) {
        const ptowsp_insn insn = ptowsp_kernel_insn_at(m, kernel, i, &cycles);
        sum_of_all += cycles;
        has_add |= strcmp(insn.name, ptowsp_opcode_name(PTOWSP_OP_TADDS)) == 0 &&
                   strcmp(ptowsp_memory_name(insn.memory), "UB") == 0;
    }
    manual_check(sum_of_all == unit.cycles && has_add, "instructions one by one");
    manual_check(ptowsp_kernel_hash(m, kernel) != 0, "a hash for tuning records");
    ptowsp_module_destroy(m);
}

int main(void) {
    ptowsp_context *context;
    if (ptowsp_context_create(NULL, &context)) {
        return 1;
    }
#define CHECK(name) operation_check(context, #name, name##_tile, name##_expected);
    CHECK(sqrt)
    CHECK(recip)
    CHECK(log)
    CHECK(tanh)
    CHECK(sin)
    CHECK(cos)
    CHECK(neg)
    CHECK(gelu)
    CHECK(min)
    CHECK(rowmin)
    CHECK(rowsum)
    CHECK(range)
    CHECK(select)
    CHECK(gather)
    CHECK(weave)
    CHECK(odd)
    CHECK(quantized)
    CHECK(matmul)
    CHECK(again)
#undef CHECK
    instructions_show(context);
    ptowsp_context_destroy(context);
    return manual_end();
}
