// Random programs over meshes of ranks: tensors that are spread, operations with rules, and the
// relayouts that the library places. A plan has for each rank what it must hold in the end, bit by
// bit, from a slow model of all ranks: relayouts element by element in the documented order of sums,
// operations over what a rank has. The model in turn is compared with one rank in double precision.
//
// Used by ranks that are threads (layout_random_test.c) and by processes of MPI
// (tests/ranks/mpi/layout_programs_mpi.c).

#ifndef LAYOUT_PROGRAMS_H
#define LAYOUT_PROGRAMS_H

#include "ptowsp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAN_RANKS = 16, PLAN_TENSORS = 12, PLAN_INPUTS = 4, PLAN_OPS = 12, PLAN_SIZE = 24 };

typedef float plan_matrix[PLAN_SIZE]
                         [PLAN_SIZE];  // of the whole; a rank's part is where it is there
typedef double plan_exact[PLAN_SIZE][PLAN_SIZE];

// What a kernel computes; the rule is the one that it is given.
typedef enum plan_kind {
    PLAN_MATMUL,      // c = a b
    PLAN_TRANSPOSED,  // c = a b'
    PLAN_ADD,
    PLAN_TIMES,  // by element
    PLAN_LARGER,
    PLAN_HALF,
    PLAN_NEXT_COL,    // x plus half of the column behind, round and round
    PLAN_NEXT_ROW,    // the same of rows
    PLAN_ACCUMULATE,  // c += a
    PLAN_TURN,        // c = a'
    PLAN_KIND_COUNT
} plan_kind;

static const struct {
    const char *name, *rule;  // no rule: all of all tiles
    uint32_t operands;        // then comes the result
} plan_kinds[PLAN_KIND_COUNT] = {{"matmul", "*mk *kn mn", 2},  {"transposed", "*mk *nk mn", 2},
                                 {"add", "+mn +mn mn", 2},     {"times", "*mn *mn mn", 2},
                                 {"larger", "^mn ^mn mn", 2},  {"half", "*mn mn", 1},
                                 {"next_col", "m. m.", 1},     {"next_row", ".n .n", 1},
                                 {"accumulate", "+mn +mn", 1}, {"turn", NULL, 1}};

typedef struct plan_tensor {
    int64_t shape[2];
    ptowsp_spread spreads[PTOWSP_MESH_AXIS_MAX];
    bool is_transient;
} plan_tensor;

typedef struct plan_op {
    plan_kind kind;
    uint32_t on[3];
    bool is_blocks;  // in a loop over halves of the rows
} plan_op;

typedef struct plan {
    ptowsp_mesh mesh;
    ptowsp_algorithm algorithm;
    uint32_t rank_count, tensor_count, op_count;
    plan_tensor tensors[PLAN_TENSORS];
    plan_op ops[PLAN_OPS];
    bool is_combined;
    uint32_t relayout_count;  // that operands need, if each is done anew
    plan_matrix begin[PLAN_RANKS][PLAN_INPUTS];
    plan_matrix end[PLAN_RANKS][PLAN_TENSORS];
    plan_exact exact[PLAN_TENSORS], sizes[PLAN_TENSORS];  // sizes: of all that was added up
} plan;

static uint32_t plan_below(uint64_t *seed, uint32_t limit) {
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = *seed;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((x ^ (x >> 31)) % limit);
}

// -- layouts --------------------------------------------------------------------------------------

static ptowsp_mesh_layout plan_layout(const int64_t *shape, const ptowsp_spread *spreads) {
    ptowsp_mesh_layout layout = {.name = "t", .element_bytes = sizeof(float), .rank = 2};
    memcpy(layout.shape, shape, 2 * sizeof *shape);
    memcpy(layout.spreads, spreads, sizeof layout.spreads);
    return layout;
}

static ptowsp_mesh_layout plan_layout_of(const plan *p, uint32_t tensor) {
    return plan_layout(p->tensors[tensor].shape, p->tensors[tensor].spreads);
}

static ptowsp_mesh_layout_part plan_part(const plan *p, const ptowsp_mesh_layout *layout,
                                         uint32_t rank) {
    ptowsp_mesh_layout_part part = {0};
    if (ptowsp_mesh_layout_part_of(NULL, &p->mesh, layout, rank, &part) != PTOWSP_OK) {
        abort();
    }
    return part;
}

static bool plan_has(const ptowsp_mesh_layout_part *part, int64_t row, int64_t col) {
    return row >= part->offsets[0] && row < part->offsets[0] + part->sizes[0] &&
           col >= part->offsets[1] && col < part->offsets[1] + part->sizes[1];
}

// The word of a tile in a rule: its mark, and the letters of rows and columns.
static void plan_word(const char *rule, uint32_t tile, char *out_mark, char out_dims[2]) {
    for (uint32_t i = 0; rule && i < tile; i++) {
        rule = strchr(rule, ' ') + 1;
    }
    *out_mark = rule && strchr("+*^", *rule) ? *rule++ : '\0';
    out_dims[0] = rule ? rule[0] : '.';
    out_dims[1] = rule ? rule[1] : '.';
}

// What an axis of the mesh may do at an operation: the lines of the table in the header, each tried
// for itself. `need` gets the operands' spreads; false if the line is not for this result.
static bool plan_line(const plan *p, const plan_op *op, uint32_t axis, uint32_t line,
                      ptowsp_spread *need) {
    const char *rule = plan_kinds[op->kind].rule;
    const uint32_t count = plan_kinds[op->kind].operands;
    char mark, dims[2], result[2];
    plan_word(rule, count, &mark, result);
    const ptowsp_spread out = p->tensors[op->on[count]].spreads[axis];
    const bool is_read = op->kind == PLAN_ACCUMULATE;  // the result, which has '+'
    memset(need, 0, count * sizeof *need);
    if (line == 0) {  // replicated
        return out.kind == PTOWSP_REPLICATED;
    }
    if (line == 1) {  // by a letter
        const char letter = out.kind == PTOWSP_SHARDED ? result[out.dim] : '.';
        for (uint32_t i = 0; i < count; i++) {
            plan_word(rule, i, &mark, dims);
            for (uint32_t d = 0; d < 2 && letter != '.'; d++) {
                if (dims[d] == letter) {
                    need[i].kind = PTOWSP_SHARDED;
                    need[i].dim = d;
                }
            }
        }
        return letter != '.';
    }
    if (line == 2 || line == 3) {  // by k, or one factor: the first operand that says so
        for (uint32_t i = 0; i < count && out.kind == PTOWSP_PARTIAL_SUM; i++) {
            const ptowsp_spread have = p->tensors[op->on[i]].spreads[axis];
            plan_word(rule, i, &mark, dims);
            const char letter = have.kind == PTOWSP_SHARDED ? dims[have.dim] : '.';
            if (letter == 'k') {
                for (uint32_t j = 0; j < count; j++) {
                    plan_word(rule, j, &mark, dims);
                    need[j].kind = PTOWSP_SHARDED;
                    need[j].dim = dims[1] == 'k';
                }
                return line == 2;
            }
            if (have.kind == PTOWSP_PARTIAL_SUM && mark == '*') {
                need[i].kind = PTOWSP_PARTIAL_SUM;
                return line == 3;
            }
        }
        return false;
    }
    if (line == 4) {  // terms
        for (uint32_t i = 0; i < count; i++) {
            plan_word(rule, i, &mark, dims);
            need[i].kind = PTOWSP_PARTIAL_SUM;
            if (mark != '+') {
                return false;
            }
        }
        return out.kind == PTOWSP_PARTIAL_SUM;
    }
    bool is_partial = false;  // operands of a maximum
    for (uint32_t i = 0; i < count; i++) {
        plan_word(rule, i, &mark, dims);
        const bool is_max = p->tensors[op->on[i]].spreads[axis].kind == PTOWSP_PARTIAL_MAX;
        need[i].kind = mark == '^' && is_max ? PTOWSP_PARTIAL_MAX : PTOWSP_REPLICATED;
        is_partial = is_partial || need[i].kind == PTOWSP_PARTIAL_MAX;
    }
    return out.kind == PTOWSP_PARTIAL_MAX && is_partial && !is_read;
}

// The layouts that the operands need; false if there are none, or they cannot be made.
static bool plan_needs(const plan *p, const plan_op *op, ptowsp_mesh_layout *need) {
    const uint32_t count = plan_kinds[op->kind].operands;
    for (uint32_t i = 0; i < count; i++) {
        need[i] = plan_layout_of(p, op->on[i]);
        memset(need[i].spreads, 0, sizeof need[i].spreads);
    }
    for (uint32_t axis = 0; axis < p->mesh.axis_count; axis++) {
        ptowsp_spread spreads[3];
        uint32_t line = 0;
        while (line < 6 && !plan_line(p, op, axis, line, spreads)) {
            line++;
        }
        for (uint32_t i = 0; line < 6 && i < count; i++) {
            need[i].spreads[axis] = spreads[i];
        }
        if (line == 6) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_mesh_layout have = plan_layout_of(p, op->on[i]);
        ptowsp_relayout relayout;
        if (ptowsp_mesh_layout_relayout(NULL, &p->mesh, &have, &need[i], &relayout) != PTOWSP_OK) {
            return false;
        }
    }
    return true;
}

// -- the slow model of all ranks ------------------------------------------------------------------

// Of members of a line, in order; the orders of the header.
static float plan_reduced(const plan *p, const ptowsp_relayout_step *step, const float *x,
                          uint32_t count) {
    if (step->before.kind == PTOWSP_PARTIAL_MAX) {
        float most = x[0];
        for (uint32_t i = 1; i < count; i++) {
            most = x[i] > most ? x[i] : most;
        }
        return most;
    }
    if (p->algorithm == PTOWSP_ALGORITHM_DOUBLING && count == 4) {
        const bool is_all = step->kind == PTOWSP_RELAYOUT_ALL_REDUCE;
        const float left = x[0] + x[is_all ? 1 : 2];  // rounded: each sum is a message
        const float right = x[is_all ? 2 : 1] + x[3];
        return left + right;
    }
    float sum = x[0];
    for (uint32_t i = 1; i < count; i++) {
        sum += x[i];
    }
    return sum;
}

// One step: each element of what a rank will have comes from the members of its line.
static void plan_step(const plan *p, const ptowsp_relayout_step *step, ptowsp_mesh_layout *now,
                      plan_matrix *data) {
    static plan_matrix made[PLAN_RANKS];
    ptowsp_mesh_layout then = *now;
    then.spreads[step->axis] = step->after;
    uint32_t stride = 1;
    for (uint32_t a = step->axis + 1; a < p->mesh.axis_count; a++) {
        stride *= p->mesh.sizes[a];
    }
    const uint32_t members = p->mesh.sizes[step->axis];
    for (uint32_t rank = 0; rank < p->rank_count; rank++) {
        const ptowsp_mesh_layout_part part = plan_part(p, &then, rank);
        const uint32_t first = rank - rank / stride % members * stride;
        for (int64_t r = 0; r < PLAN_SIZE; r++) {
            for (int64_t c = 0; c < PLAN_SIZE; c++) {
                float x[PLAN_RANKS];
                uint32_t count = 0;
                for (uint32_t m = 0; m < members && plan_has(&part, r, c); m++) {
                    const ptowsp_mesh_layout_part old = plan_part(p, now, first + m * stride);
                    if (plan_has(&old, r, c)) {
                        x[count++] = data[first + m * stride][r][c];
                    }
                }
                const bool is_partial = step->before.kind == PTOWSP_PARTIAL_SUM ||
                                        step->before.kind == PTOWSP_PARTIAL_MAX;
                made[rank][r][c] = count == 0   ? 0
                                   : is_partial ? plan_reduced(p, step, x, count)
                                                : x[0];
            }
        }
    }
    memcpy(data, made, p->rank_count * sizeof *data);
    *now = then;
}

// Brings an operand to what is needed.
static void plan_bring(plan *p, uint32_t tensor, const ptowsp_mesh_layout *need,
                       plan_matrix *data) {
    ptowsp_mesh_layout now = plan_layout_of(p, tensor);
    ptowsp_relayout relayout;
    for (uint32_t rank = 0; rank < p->rank_count; rank++) {
        memcpy(data[rank], p->end[rank][tensor], sizeof data[rank]);
    }
    if (ptowsp_mesh_layout_relayout(NULL, &p->mesh, &now, need, &relayout) != PTOWSP_OK) {
        abort();
    }
    for (uint32_t i = 0; i < relayout.step_count; i++) {
        plan_step(p, &relayout.steps[i], &now, data);
    }
    p->relayout_count += relayout.step_count > 0;
}

// An element of a result, over [k_begin, k_end) of what is summed over; the same in both precisions.
#define PLAN_ELEMENT(name, real, matrix)                                                           \
    static real name(plan_kind kind, const matrix a, const matrix b, real old, int64_t r,          \
                     int64_t c, int64_t rows, int64_t cols, int64_t k_begin, int64_t k_end) {      \
        real sum = 0;                                                                              \
        switch (kind) {                                                                            \
        case PLAN_MATMUL:                                                                          \
        case PLAN_TRANSPOSED:                                                                      \
            for (int64_t k = k_begin; k < k_end; k++) {                                            \
                const real y = kind == PLAN_MATMUL ? b[k][c] : b[c][k];                            \
                const real product = a[r][k] * y;                                                  \
                sum += product;                                                                    \
            }                                                                                      \
            return sum;                                                                            \
        case PLAN_ADD: return a[r][c] + b[r][c];                                                   \
        case PLAN_TIMES: return a[r][c] * b[r][c];                                                 \
        case PLAN_LARGER: return a[r][c] > b[r][c] ? a[r][c] : b[r][c];                            \
        case PLAN_HALF: return a[r][c] / 2;                                                        \
        case PLAN_NEXT_COL: return a[r][c] + a[r][(c + 1) % cols] / 2;                             \
        case PLAN_NEXT_ROW: return a[r][c] + a[(r + 1) % rows][c] / 2;                             \
        case PLAN_ACCUMULATE: return old + a[r][c];                                                \
        default: return a[c][r];                                                                   \
        }                                                                                          \
    }
PLAN_ELEMENT(plan_element, float, plan_matrix)
PLAN_ELEMENT(plan_exact_element, double, plan_exact)
#undef PLAN_ELEMENT

static void plan_model(plan *p, const plan_op *op) {
    static plan_matrix in[2][PLAN_RANKS], made;
    const uint32_t count = plan_kinds[op->kind].operands, out = op->on[count];
    const ptowsp_mesh_layout layout = plan_layout_of(p, out);
    ptowsp_mesh_layout need[3];
    if (!plan_needs(p, op, need)) {
        abort();
    }
    for (uint32_t i = 0; i < count; i++) {
        plan_bring(p, op->on[i], &need[i], in[i]);
    }
    const int64_t *shape = p->tensors[out].shape;
    for (uint32_t rank = 0; rank < p->rank_count; rank++) {
        const ptowsp_mesh_layout_part part = plan_part(p, &layout, rank);
        const ptowsp_mesh_layout_part left = plan_part(p, &need[0], rank);
        memset(made, 0, sizeof made);
        for (int64_t r = 0; r < shape[0]; r++) {
            for (int64_t c = 0; c < shape[1]; c++) {
                if (plan_has(&part, r, c)) {
                    made[r][c] = plan_element(op->kind, (const float(*)[PLAN_SIZE])in[0][rank],
                                              (const float(*)[PLAN_SIZE])in[1][rank],
                                              p->end[rank][out][r][c], r, c, shape[0], shape[1],
                                              left.offsets[1], left.offsets[1] + left.sizes[1]);
                }
            }
        }
        memcpy(p->end[rank][out], made, sizeof made);
    }
}

// One rank in double precision; sizes are what it would be without signs.
static void plan_refer(plan *p, const plan_op *op) {
    static plan_exact made, size;
    const uint32_t count = plan_kinds[op->kind].operands, out = op->on[count];
    const uint32_t a = op->on[0], b = op->on[count - 1];
    const int64_t *shape = p->tensors[out].shape, inner = p->tensors[a].shape[1];
    memset(made, 0, sizeof made);
    memset(size, 0, sizeof size);
    for (int64_t r = 0; r < shape[0]; r++) {
        for (int64_t c = 0; c < shape[1]; c++) {
            made[r][c] =
                plan_exact_element(op->kind, (const double(*)[PLAN_SIZE])p->exact[a],
                                   (const double(*)[PLAN_SIZE])p->exact[b], p->exact[out][r][c], r,
                                   c, shape[0], shape[1], 0, inner);
            // The larger of two may be either.
            size[r][c] = plan_exact_element(
                op->kind == PLAN_LARGER ? PLAN_ADD : op->kind,
                (const double(*)[PLAN_SIZE])p->sizes[a], (const double(*)[PLAN_SIZE])p->sizes[b],
                p->sizes[out][r][c], r, c, shape[0], shape[1], 0, inner);
        }
    }
    memcpy(p->exact[out], made, sizeof made);
    memcpy(p->sizes[out], size, sizeof size);
}

// The whole of a tensor of which all ranks hold parts: one element.
static double plan_whole(const plan *p, uint32_t tensor, int64_t r, int64_t c) {
    const ptowsp_mesh_layout layout = plan_layout_of(p, tensor);
    double whole = 0;
    bool is_first = true;
    for (uint32_t rank = 0; rank < p->rank_count; rank++) {
        const ptowsp_mesh_layout_part part = plan_part(p, &layout, rank);
        bool counts = plan_has(&part, r, c), is_max = false;
        for (uint32_t a = 0; a < p->mesh.axis_count; a++) {
            const ptowsp_spread_kind kind = layout.spreads[a].kind;
            is_max = is_max || kind == PTOWSP_PARTIAL_MAX;
            counts = counts &&
                     (kind != PTOWSP_REPLICATED || ptowsp_mesh_coordinate(&p->mesh, rank, a) == 0);
        }
        const double x = p->end[rank][tensor][r][c];
        if (counts) {
            whole = is_first ? x : !is_max ? whole + x : x > whole ? x : whole;
            is_first = false;
        }
    }
    return whole;
}

// Is the model what one rank has, but for rounding?
static bool plan_is_exact(const plan *p) {
    for (uint32_t t = 0; t < p->tensor_count; t++) {
        for (int64_t r = 0; r < p->tensors[t].shape[0]; r++) {
            for (int64_t c = 0; c < p->tensors[t].shape[1]; c++) {
                if (!(fabs(plan_whole(p, t, r, c) - p->exact[t][r][c]) <=
                      1e-4 * p->sizes[t][r][c] + 1e-30)) {
                    return false;
                }
            }
        }
    }
    return true;
}

// -- plans ----------------------------------------------------------------------------------------

static void plan_random_spreads(const plan *p, uint64_t *seed, const int64_t *shape,
                                ptowsp_spread *out) {
    for (;;) {
        memset(out, 0, PTOWSP_MESH_AXIS_MAX * sizeof *out);
        for (uint32_t a = 0; a < p->mesh.axis_count; a++) {
            static const ptowsp_spread_kind kinds[] = {PTOWSP_REPLICATED,  PTOWSP_SHARDED,
                                                       PTOWSP_SHARDED,     PTOWSP_SHARDED,
                                                       PTOWSP_PARTIAL_SUM, PTOWSP_PARTIAL_MAX};
            out[a].kind = kinds[plan_below(seed, 6)];
            out[a].dim = out[a].kind == PTOWSP_SHARDED ? plan_below(seed, 2) : 0;
        }
        const ptowsp_mesh_layout layout = plan_layout(shape, out);
        if (ptowsp_mesh_layout_check(NULL, &p->mesh, &layout) == PTOWSP_OK) {
            return;
        }
    }
}

// Inputs: random numbers in what each rank holds, which are the same where they are the same piece.
static void plan_input(plan *p, uint64_t *seed, uint32_t tensor) {
    const ptowsp_mesh_layout layout = plan_layout_of(p, tensor);
    const uint64_t base = *seed + plan_below(seed, 1000000);
    for (uint32_t rank = 0; rank < p->rank_count; rank++) {
        const ptowsp_mesh_layout_part part = plan_part(p, &layout, rank);
        uint64_t which = 0;
        for (uint32_t a = 0; a < p->mesh.axis_count; a++) {
            const ptowsp_spread_kind kind = layout.spreads[a].kind;
            const bool is_own = kind == PTOWSP_PARTIAL_SUM || kind == PTOWSP_PARTIAL_MAX;
            which = which * 8 + (is_own ? 1 + ptowsp_mesh_coordinate(&p->mesh, rank, a) : 0);
        }
        for (int64_t r = 0; r < layout.shape[0]; r++) {
            for (int64_t c = 0; c < layout.shape[1]; c++) {
                uint64_t own = base + (which * 100 + (uint64_t)r) * 100 + (uint64_t)c;
                const float x = (float)plan_below(&own, 2001) / 1000 - 1;
                p->begin[rank][tensor][r][c] = plan_has(&part, r, c) ? x : 0;
            }
        }
        memcpy(p->end[rank][tensor], p->begin[rank][tensor], sizeof(plan_matrix));
    }
    for (int64_t r = 0; r < layout.shape[0]; r++) {
        for (int64_t c = 0; c < layout.shape[1]; c++) {
            p->exact[tensor][r][c] = plan_whole(p, tensor, r, c);
            p->sizes[tensor][r][c] = 4;  // of up to 16 summands of at most 1, once rounded each
        }
    }
}

static bool plan_is_input(uint32_t tensor) {
    return tensor < PLAN_INPUTS;
}

// Tensors for an operation that exist already, with shapes that fit; the shape of its result.
static bool plan_choose(const plan *p, uint64_t *seed, plan_op *op, int64_t *shape) {
    op->kind = (plan_kind)plan_below(seed, PLAN_KIND_COUNT);
    op->on[0] = plan_below(seed, p->tensor_count);
    op->on[1] = plan_below(seed, p->tensor_count);
    const int64_t *a = p->tensors[op->on[0]].shape, *b = p->tensors[op->on[1]].shape;
    shape[0] = a[0];
    shape[1] = a[1];
    switch (op->kind) {
    case PLAN_MATMUL: shape[1] = b[1]; return a[1] == b[0];
    case PLAN_TRANSPOSED: shape[1] = b[0]; return a[1] == b[1];
    case PLAN_ADD:
    case PLAN_TIMES:
    case PLAN_LARGER: return a[0] == b[0] && a[1] == b[1];
    case PLAN_TURN:
        shape[0] = a[1];
        shape[1] = a[0];
        return true;
    default: return true;
    }
}

// Can it be a loop over halves of the rows: is no dimension of rows cut anew?
static bool plan_may_loop(const plan *p, const plan_op *op) {
    const uint32_t count = plan_kinds[op->kind].operands;
    const ptowsp_mesh_layout out = plan_layout_of(p, op->on[count]);
    ptowsp_mesh_layout need[3];
    bool may = op->kind != PLAN_NEXT_ROW && op->kind != PLAN_TURN && plan_needs(p, op, need) &&
               plan_part(p, &out, 0).sizes[0] % 2 == 0;
    for (uint32_t i = 0; may && i < count; i++) {
        const ptowsp_mesh_layout have = plan_layout_of(p, op->on[i]);
        ptowsp_relayout relayout;
        const bool is_right = i == 1 && (op->kind == PLAN_MATMUL || op->kind == PLAN_TRANSPOSED);
        ptowsp_mesh_layout_relayout(NULL, &p->mesh, &have, &need[i], &relayout);
        for (uint32_t s = 0; s < relayout.step_count && !is_right; s++) {
            const ptowsp_relayout_step *step = &relayout.steps[s];
            may = may && !(step->before.kind == PTOWSP_SHARDED && step->before.dim == 0) &&
                  !(step->after.kind == PTOWSP_SHARDED && step->after.dim == 0);
        }
    }
    return may;
}

// Adds an operation: into a new tensor, or into one that is there.
static bool plan_add(plan *p, uint64_t *seed) {
    plan_op *op = &p->ops[p->op_count];
    int64_t shape[2];
    ptowsp_mesh_layout need[3];
    if (!plan_choose(p, seed, op, shape)) {
        return false;
    }
    const uint32_t count = plan_kinds[op->kind].operands;
    uint32_t out = p->tensor_count;
    if (op->kind == PLAN_ACCUMULATE || out == PLAN_TENSORS || plan_below(seed, 4) == 0) {
        out = plan_below(seed, p->tensor_count);
        if (plan_is_input(out) || out == op->on[0] || (count > 1 && out == op->on[1]) ||
            p->tensors[out].shape[0] != shape[0] || p->tensors[out].shape[1] != shape[1]) {
            return false;
        }
        op->on[count] = out;
        if (!plan_needs(p, op, need)) {
            return false;
        }
    } else {
        op->on[count] = out;
        memcpy(p->tensors[out].shape, shape, sizeof shape);
        uint32_t tries = 0;
        do {
            plan_random_spreads(p, seed, shape, p->tensors[out].spreads);
        } while (!plan_needs(p, op, need) && ++tries < 40);
        if (tries == 40) {
            return false;
        }
        p->tensors[out].is_transient = plan_below(seed, 3) == 0;
        p->tensor_count++;
    }
    op->is_blocks = plan_below(seed, 3) == 0 && plan_may_loop(p, op);
    p->op_count++;
    plan_model(p, op);
    plan_refer(p, op);
    return true;
}

static void plan_make(plan *p, uint64_t seed, const ptowsp_mesh *mesh) {
    static const int64_t sizes[] = {12, 16, 24};
    memset(p, 0, sizeof *p);
    p->mesh = *mesh;
    p->rank_count = 1;
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        p->rank_count *= mesh->sizes[a];
    }
    p->algorithm = plan_below(&seed, 2) ? PTOWSP_ALGORITHM_DIRECT : PTOWSP_ALGORITHM_DOUBLING;
    p->is_combined = plan_below(&seed, 2) == 0;
    const int64_t dims[2] = {sizes[plan_below(&seed, 3)], sizes[plan_below(&seed, 3)]};
    for (; p->tensor_count < PLAN_INPUTS; p->tensor_count++) {
        plan_tensor *t = &p->tensors[p->tensor_count];
        t->shape[0] = dims[plan_below(&seed, 2)];
        t->shape[1] = dims[plan_below(&seed, 2)];
        plan_random_spreads(p, &seed, t->shape, t->spreads);
        plan_input(p, &seed, p->tensor_count);
    }
    const uint32_t op_count = 1 + plan_below(&seed, PLAN_OPS);
    for (uint32_t tries = 0; p->op_count < op_count && tries < 200; tries++) {
        plan_add(p, &seed);
    }
}

// -- a rank ---------------------------------------------------------------------------------------

static float *plan_cell(const ptowsp_task *task, uint32_t tile, int64_t row, int64_t col) {
    const ptowsp_tile *t = &task->tiles[tile];
    return (float *)t->data + row * t->row_stride + col * t->col_stride;
}

static ptowsp_cycles plan_kernel(const ptowsp_task *task, void *user) {
    const plan_kind kind = (plan_kind)((uintptr_t)user - 1);
    const uint32_t out = task->tile_count - 1;
    const int64_t rows = ptowsp_task_rows(task, out), cols = ptowsp_task_cols(task, out);
    plan_matrix a, b;
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    for (uint32_t i = 0; i < out; i++) {
        for (int64_t r = 0; r < ptowsp_task_rows(task, i); r++) {
            for (int64_t c = 0; c < ptowsp_task_cols(task, i); c++) {
                (i ? b : a)[r][c] = *plan_cell(task, i, r, c);
            }
        }
    }
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            float *cell = plan_cell(task, out, r, c);
            *cell = plan_element(kind, (const float(*)[PLAN_SIZE])a, (const float(*)[PLAN_SIZE])b,
                                 *cell, r, c, rows, cols, 0, ptowsp_task_cols(task, 0));
        }
    }
    return 1;
}

static void plan_kernels(ptowsp_module *m, ptowsp_kernel *kernels) {
    static const char names[3][2] = {"a", "b", "c"};
    for (uint32_t i = 0; i < PLAN_KIND_COUNT; i++) {
        ptowsp_kernel_desc desc = {
            .name = plan_kinds[i].name, .fn = plan_kernel, .user = (void *)(uintptr_t)(i + 1)};
        for (uint32_t t = 0; t <= plan_kinds[i].operands; t++) {
            const bool is_last = t == plan_kinds[i].operands;
            desc.tiles[t].name = names[t];
            desc.tiles[t].direction = !is_last               ? PTOWSP_IN
                                      : i == PLAN_ACCUMULATE ? PTOWSP_INOUT
                                                             : PTOWSP_OUT;
            desc.tiles[t].dtype = PTOWSP_F32;
            desc.tiles[t].rows = desc.tiles[t].cols = PTOWSP_DYNAMIC;
        }
        kernels[i] = ptowsp_kernel_make(m, &desc);
        if (plan_kinds[i].rule) {
            ptowsp_kernel_rule(m, kernels[i], plan_kinds[i].rule);
        }
    }
}

static void plan_task(const plan *p, ptowsp_module *m, const plan_op *op, ptowsp_kernel kernel,
                      const ptowsp_tensor *tensors, ptowsp_axis halves) {
    const uint32_t count = plan_kinds[op->kind].operands;
    const ptowsp_mesh_layout out = plan_layout_of(p, op->on[count]);
    const int64_t half = plan_part(p, &out, 0).sizes[0] / 2;
    ptowsp_task_desc task = {.kernel = kernel};
    ptowsp_expr row = {NULL, 0};
    if (op->is_blocks) {
        row = ptowsp_mul(ptowsp_parallel_begin(m, "half", halves), ptowsp_i64(m, half));
    }
    for (uint32_t i = 0; i <= count; i++) {
        const bool is_right = i == 1 && (op->kind == PLAN_MATMUL || op->kind == PLAN_TRANSPOSED);
        task.views[i].tensor = tensors[op->on[i]];
        if (op->is_blocks && !is_right) {
            task.views[i].row = row;
            task.views[i].rows = half;
        }
    }
    ptowsp_task_make(m, &task);
    if (op->is_blocks) {
        ptowsp_scope_end(m);
    }
}

static ptowsp_module *plan_module(const plan *p, ptowsp_context *context) {
    ptowsp_module *m = NULL;
    ptowsp_kernel kernels[PLAN_KIND_COUNT];
    ptowsp_tensor tensors[PLAN_TENSORS];
    if (ptowsp_module_create(context, NULL, &m) != PTOWSP_OK) {
        return NULL;
    }
    ptowsp_module_mesh(m, &p->mesh, p->algorithm);
    plan_kernels(m, kernels);
    for (uint32_t i = 0; i < p->tensor_count; i++) {
        const char name[2] = {(char)('a' + i), '\0'};
        ptowsp_tensor_desc desc = {.name = name, .dtype = PTOWSP_F32, .rank = 2};
        memcpy(desc.shape, p->tensors[i].shape, sizeof p->tensors[i].shape);
        tensors[i] = p->tensors[i].is_transient ? ptowsp_tensor_transient(m, &desc, NULL)
                                                : ptowsp_tensor_make(m, &desc);
        ptowsp_tensor_spread(m, tensors[i], p->tensors[i].spreads);
    }
    const ptowsp_axis halves = ptowsp_axis_dense(m, "halves", 2);
    ptowsp_workload_begin(m, "program");
    if (p->is_combined) {
        ptowsp_combine_begin(m);
    }
    for (uint32_t i = 0; i < p->op_count; i++) {
        plan_task(p, m, &p->ops[i], kernels[p->ops[i].kind], tensors, halves);
    }
    if (p->is_combined) {
        ptowsp_scope_end(m);
    }
    ptowsp_scope_end(m);
    return m;
}

// Copies between a part and its place in the whole.
static void plan_move(const ptowsp_mesh_layout_part *part, float *own, plan_matrix whole,
                      bool is_out) {
    for (int64_t r = 0; r < part->sizes[0]; r++) {
        for (int64_t c = 0; c < part->sizes[1]; c++) {
            float *x = &own[r * part->sizes[1] + c];
            float *y = &whole[part->offsets[0] + r][part->offsets[1] + c];
            *(is_out ? y : x) = *(is_out ? x : y);
        }
    }
}

// Runs the program as one rank; false with what went wrong.
static bool plan_run(const plan *p, ptowsp_context *context, ptowsp_ranks *ranks, char *why,
                     size_t size) {
    const uint32_t rank = ptowsp_ranks_rank(ranks);
    float *own = (float *)calloc(PLAN_TENSORS, sizeof(plan_matrix));
    ptowsp_module *m = plan_module(p, context);
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    ptowsp_run_ranks bound = {.ranks = ranks};
    bool is_good = own && m && ptowsp_program_create(context, m, NULL, &program) == PTOWSP_OK &&
                   ptowsp_run_create(context, program, &run) == PTOWSP_OK &&
                   ptowsp_run_bind_ranks(run, &bound) == PTOWSP_OK;
    for (uint32_t i = 0; is_good && i < p->tensor_count; i++) {
        const char name[2] = {(char)('a' + i), '\0'};
        const ptowsp_mesh_layout layout = plan_layout_of(p, i);
        const ptowsp_mesh_layout_part part = plan_part(p, &layout, rank);
        ptowsp_buffer buffer = {.data = own + i * (sizeof(plan_matrix) / sizeof *own),
                                .size = part.bytes};
        plan_matrix whole;
        memset(whole, 0, sizeof whole);
        if (i < PLAN_INPUTS) {
            memcpy(whole, p->begin[rank][i], sizeof whole);
        }
        plan_move(&part, (float *)buffer.data, whole, false);
        is_good =
            p->tensors[i].is_transient || ptowsp_run_bind_tensor(run, name, &buffer) == PTOWSP_OK;
    }
    is_good = is_good && ptowsp_run_execute(run, NULL) == PTOWSP_OK;
    snprintf(why, size, "%s", is_good ? "" : ptowsp_context_error(context).text);
    for (uint32_t i = 0; is_good && i < p->tensor_count; i++) {
        const ptowsp_mesh_layout layout = plan_layout_of(p, i);
        const ptowsp_mesh_layout_part part = plan_part(p, &layout, rank);
        plan_matrix whole;
        memset(whole, 0, sizeof whole);
        plan_move(&part, own + i * (sizeof(plan_matrix) / sizeof *own), whole, true);
        if (!p->tensors[i].is_transient && memcmp(whole, p->end[rank][i], sizeof whole) != 0) {
            snprintf(why, size, "rank %u: tensor %c has other bits", rank, (char)('a' + i));
            is_good = false;
        }
    }
    test_destroy(run, program, m, NULL);
    free(own);
    return is_good;
}

#endif
