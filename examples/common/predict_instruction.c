// Cycles of single instructions on the measured machines: a row becomes tiles, and the instruction
// runs alone on a core of the shim that does not compute. The published kernels have tiles whose valid
// sizes are dynamic, so these are.

#include "predict.h"

#include "ptoisa_shim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool refuse(char reason[PREDICT_REASON_MAX], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(reason, PREDICT_REASON_MAX, format, args);
    va_end(args);
    return false;
}

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

// "f16>f32": the types of source and destination; "f32": both.
static bool types_of(const char *text, ptoisa_dtype *src, ptoisa_dtype *dst) {
    char first[PREDICT_TEXT_MAX];
    snprintf(first, sizeof first, "%s", text);
    char *arrow = strchr(first, '>');
    const char *second = arrow ? arrow + 1 : first;
    if (arrow) {
        *arrow = '\0';
    }
    *src = *dst = PTOISA_DTYPE_NONE;
    for (int i = 1; i < PTOISA_DTYPE_COUNT; i++) {
        const char *name = ptoisa_dtype_name((ptoisa_dtype)i);
        *src = strcmp(first, name) == 0 ? (ptoisa_dtype)i : *src;
        *dst = strcmp(second, name) == 0 ? (ptoisa_dtype)i : *dst;
    }
    return *src != PTOISA_DTYPE_NONE && *dst != PTOISA_DTYPE_NONE;
}

static ptoisa_op op_of(const char *name) {
    for (int op = 1; op < PTOISA_OP_COUNT; op++) {
        if (strcmp(name, ptoisa_op_name((ptoisa_op)op)) == 0) {
            return (ptoisa_op)op;
        }
    }
    return PTOISA_NOP;
}

// Loads in these rows were counted by a simulator that issues them and has no bandwidth:
//
//     outer x (8 + 2 x bursts + bytes of a burst)
//     8 + 2 x bursts + blocks of 32 bytes of a burst      layout NC1HWC0
//
// They say nothing about a device, so this is the simulator's count, not the machine's time.
static bool load_cycles(const predict_instruction *row, uint32_t size, double *out_cycles,
                        char reason[PREDICT_REASON_MAX]) {
    unsigned outer, shape[5], n, c1, h, w;
    char order[3];
    if (sscanf(row->params, "outer=%u %2s shape=%ux%ux%ux%ux%u", &outer, order, &shape[0],
               &shape[1], &shape[2], &shape[3], &shape[4]) == 7 &&
        (strcmp(order, "nd") == 0 || strcmp(order, "dn") == 0)) {
        bool is_by_column = order[0] == 'd';
        double bursts = shape[is_by_column ? 4 : 3], length = shape[is_by_column ? 3 : 4];
        *out_cycles = outer * (PTOISA_FITTED_SETUP + PTOISA_FITTED_BURST * bursts + length * size);
        return true;
    }
    if (strcmp(row->variant, "NC1HWC0") == 0 &&
        sscanf(row->params, "conv N=%u C1=%u H=%u W=%u", &n, &c1, &h, &w) == 4) {
        double bursts = (double)n * c1;
        *out_cycles = PTOISA_FITTED_SETUP + PTOISA_FITTED_BURST * bursts + (double)h * w;
        return true;
    }
    return refuse(reason, "loads of this form were not measured: %s", row->params);
}

// The tiles of an instruction: `full` has the row's sizes.
typedef struct operands {
    ptoisa_tile dst, src0, src1;
} operands;

static operands operands_of(ptoisa_op op, ptoisa_tile full, ptoisa_dtype dst) {
    operands all = {full, full, full};
    ptoisa_tile column = ptoisa_tile_make(NULL, (ptoisa_dtype)full.dtype, PTOISA_VEC,
                                          PTOISA_COL_MAJOR, full.rows, 1);
    all.dst.dtype = (uint8_t)dst;
    column.valid_rows = full.valid_rows;
    if (op >= PTOISA_TROWSUM && op <= PTOISA_TROWARGMIN) {
        all.dst = column;
    } else if (op >= PTOISA_TCOLARGMAX && op <= PTOISA_TCOLPROD && op != PTOISA_TPAIRREDUCESUM) {
        all.dst.rows = all.dst.valid_rows = 1;
    } else if (op == PTOISA_TROWEXPAND) {
        all.src0 = column;
    } else if (op >= PTOISA_TROWEXPANDADD && op <= PTOISA_TROWEXPANDEXPDIF) {
        all.src1 = column;
    } else if (op >= PTOISA_TCOLEXPAND && op <= PTOISA_TCOLEXPANDEXPDIF) {
        ptoisa_tile *row = op == PTOISA_TCOLEXPAND ? &all.src0 : &all.src1;
        row->rows = row->valid_rows = 1;
    } else if (op == PTOISA_TTRANS) {
        all.dst.rows = full.cols;
        all.dst.cols = full.rows;
        all.dst.valid_rows = full.valid_cols;
        all.dst.valid_cols = full.valid_rows;
    } else if (op == PTOISA_TSEL || op == PTOISA_TCMP || op == PTOISA_TCMPS) {
        ptoisa_tile *mask = op == PTOISA_TSEL ? &all.src0 : &all.dst;
        *mask = ptoisa_tile_vec(NULL, PTOISA_U8, full.rows, (full.cols + 255) / 256 * 32);
        mask->valid_rows = full.valid_rows;
        mask->valid_cols = (full.valid_cols + 7) / 8;
    }
    return all;
}

static bool is_known_move(const predict_instruction *row) {
    const char *to = strchr(row->params, '>');
    return starts_with(row->params, "Vec") && to && starts_with(to + 1, "Vec");
}

bool predict_cycles(const predict_instruction *row, double *out_cycles,
                    char reason[PREDICT_REASON_MAX]) {
    const ptoisa_op op = op_of(row->name);
    bool is_a5 = strcmp(row->machine, "A5") == 0;
    ptoisa_dtype src, dst;
    if (!is_a5 && strcmp(row->machine, "A2A3") != 0) {
        return refuse(reason, "there is no machine %s", row->machine);
    }
    if (op == PTOISA_NOP) {
        return refuse(reason, "there is no instruction %s", row->name);
    }
    if (!types_of(row->dtype, &src, &dst)) {
        return refuse(reason, "element types %s are not supported", row->dtype);
    }
    if (op == PTOISA_TLOAD) {
        return load_cycles(row, ptoisa_dtype_size(dst), out_cycles, reason);
    }
    if (row->valid_rows == 0 || row->valid_cols == 0 || row->rows < row->valid_rows ||
        row->cols < row->valid_cols) {
        return refuse(reason, "%u x %u valid elements of %u x %u", row->valid_rows, row->valid_cols,
                      row->rows, row->cols);
    }
    if (op == PTOISA_TMOV && !is_known_move(row)) {
        return refuse(reason, "moves of this form were not measured: %s", row->params);
    }
    ptoisa_tile full = ptoisa_tile_vec(NULL, src, row->rows, row->cols);
    full = ptoisa_tile_valid(full, row->valid_rows, row->valid_cols);
    operands all = operands_of(op, full, dst);
    if (op == PTOISA_TMATMUL || ptoisa_pipe_of(op, &all.dst, &all.src0) != PTOISA_PIPE_V) {
        return refuse(reason, "%s was not measured alone", row->name);
    }
    bool is_detailed =
        strcmp(row->params, "high_precision") == 0 || strcmp(row->variant, "binary") == 0;
    ptoisa_core core;
    ptoisa_core_init(&core, is_a5 ? PTOISA_MODEL_950PR : PTOISA_MODEL_910B, NULL);
    core.is_dry = true;
    ptoisa_issue_as(&core, op, &all.dst, &all.src0, &all.src1, is_detailed);
    *out_cycles = (double)ptoisa_cycles(&core);
    return true;
}
