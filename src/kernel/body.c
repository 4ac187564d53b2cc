// Bodies: creating and ending them, parameters, the first error.

#include "body.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *pwsp_kop_name(pwsp_kop_kind kind) {
#define PWSP_KOP_NAME(name, text, form, make) text,
    static const char names[][32] = {"none", PWSP_KOPS(PWSP_KOP_NAME)};
#undef PWSP_KOP_NAME
    return names[kind < PWSP_KOP_COUNT ? kind : PWSP_KOP_NONE];
}

const char *pwsp_kop_form(pwsp_kop_kind kind) {
#define PWSP_KOP_FORM(name, text, form, make) form,
    static const char forms[][32] = {"", PWSP_KOPS(PWSP_KOP_FORM)};
#undef PWSP_KOP_FORM
    return forms[kind < PWSP_KOP_COUNT ? kind : PWSP_KOP_NONE];
}

const char *pwsp_compare_text(uint32_t mode) {
    switch ((ptoisa_compare)mode) {
    case PTOISA_EQ: return "==";
    case PTOISA_NE: return "!=";
    case PTOISA_LT: return "<";
    case PTOISA_LE: return "<=";
    case PTOISA_GT: return ">";
    default: PTOWSP_ASSERT(mode == PTOISA_GE); return ">=";
    }
}

const char *pwsp_round_text(uint32_t mode) {
    switch ((ptoisa_round)mode) {
    case PTOISA_CAST_ROUND: return "away";
    case PTOISA_CAST_FLOOR: return "floor";
    case PTOISA_CAST_CEIL: return "ceil";
    case PTOISA_CAST_TRUNC: return "trunc";
    default: PTOWSP_ASSERT(mode == PTOISA_CAST_RINT); return "nearest";  // no kernel has others
    }
}

const pwsp_kop *pwsp_body_built(const ptowsp_body *body, uint32_t op) {
    uint32_t low = 0, high = body->change_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (body->changes[middle].op < op) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < body->change_count && body->changes[low].op == op ? &body->changes[low].was
                                                                   : &body->ops[op];
}

void pwsp_body_free(ptowsp_body *body) {
    if (body) {
        pwsp_memory memory = body->memory;
        PWSP_FREE(&memory, body->ops, body->op_capacity);
        PWSP_FREE(&memory, body->insns, body->insn_capacity);
        PWSP_FREE(&memory, body->changes, body->change_count);
        if (body->asked) {
            PWSP_FREE(&memory, body->asked, body->insn_count);
        }
        PWSP_FREE(&memory, body, 1);
    }
}

ptowsp_value pwsp_body_fail(ptowsp_body *body, ptowsp_status status, const char *op,
                            const char *format, ...) {
    ptowsp_value none = {NULL, 0};
    if (pwsp_body_is_good(body)) {
        body->status = status;
        int at = snprintf(body->text, sizeof body->text, "%s: ", op);
        va_list args;
        va_start(args, format);
        vsnprintf(body->text + at, sizeof body->text - (size_t)at, format, args);
        va_end(args);
    }
    return none;
}

ptowsp_value pwsp_body_add(ptowsp_body *body, const pwsp_kop *op) {
    ptowsp_value value = {NULL, 0};
    PTOWSP_ASSERT(pwsp_body_is_good(body));
    if (body->op_count > PTOWSP_BODY_OP_MAX) {
        return pwsp_body_fail(body, PTOWSP_LIMIT_EXCEEDED, pwsp_kop_name((pwsp_kop_kind)op->kind),
                              "more than %d operations", PTOWSP_BODY_OP_MAX);
    }
    uint64_t index = body->op_count ? body->op_count : 1;
    if (!PWSP_GROW(&body->memory, body->ops, body->op_capacity, index + 1)) {
        return pwsp_body_fail(body, PTOWSP_OUT_OF_MEMORY, pwsp_kop_name((pwsp_kop_kind)op->kind),
                              "out of memory");
    }
    if (index == 1) {
        memset(&body->ops[0], 0, sizeof body->ops[0]);
    }
    body->ops[index] = *op;
    body->ops[index].loop = (uint8_t)body->loop;
    body->op_count = index + 1;
    value.body = body;
    value.id = (uint32_t)index;
    return value;
}

// -- parameters -----------------------------------------------------------------------------------

// Checks and keeps a parameter's name; false with the body's error.
static bool pwsp_body_name(ptowsp_body *body, pwsp_body_param *param, const char *name) {
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > PTOWSP_NAME_MAX) {
        pwsp_body_fail(body, PTOWSP_INVALID_PARAMS, "parameter", "its name has %zu characters",
                       length);
        return false;
    }
    memcpy(param->name, name, length + 1);
    const pwsp_body_param *tiles = body->tiles, *scalars = body->scalars;
    for (uint32_t i = 0; i < body->tile_count + body->scalar_count; i++) {
        const pwsp_body_param *other =
            i < body->tile_count ? &tiles[i] : &scalars[i - body->tile_count];
        if (strcmp(other->name, name) == 0) {
            pwsp_body_fail(body, PTOWSP_INVALID_PARAMS, "parameter", "two are called %s", name);
            return false;
        }
    }
    return true;
}

// The element types that instructions load and store.
static bool pwsp_body_takes(ptowsp_dtype dtype) {
    return dtype != PTOWSP_F64 && dtype != PTOWSP_BOOL && ptowsp_dtype_size(dtype) > 0 &&
           ptowsp_dtype_size(dtype) <= 4;
}

static ptowsp_value pwsp_body_tile(ptowsp_body *body, const char *name, ptowsp_direction direction,
                                   ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    ptowsp_value none = {NULL, 0};
    if (!pwsp_body_is_good(body)) {
        return none;
    }
    if (body->tile_count == PTOWSP_TASK_TILE_MAX) {
        return pwsp_body_fail(body, PTOWSP_LIMIT_EXCEEDED, "parameter",
                              "%s is one tile more than %d", name ? name : "",
                              PTOWSP_TASK_TILE_MAX);
    }
    pwsp_body_param *param = &body->tiles[body->tile_count];
    memset(param, 0, sizeof *param);
    if (!pwsp_body_name(body, param, name)) {
        return none;
    }
    if (!pwsp_body_takes(dtype)) {
        return pwsp_body_fail(body, PTOWSP_UNSUPPORTED, "parameter",
                              "tile %s is %s, which no "
                              "instruction loads",
                              name, ptowsp_dtype_name(dtype));
    }
    if (rows < 1 || cols < 1 || rows > PTOWSP_TILE_SIZE_MAX || cols > PTOWSP_TILE_SIZE_MAX) {
        return pwsp_body_fail(body, PTOWSP_INVALID_PARAMS, "parameter",
                              "tile %s is %" PRId64 " x %" PRId64 "; sizes are 1 to %d", name, rows,
                              cols, PTOWSP_TILE_SIZE_MAX);
    }
    pwsp_kop op;
    memset(&op, 0, sizeof op);
    op.kind = PWSP_KOP_PARAM;
    op.dtype = (uint8_t)dtype;
    op.rows = (uint32_t)rows;
    op.cols = (uint32_t)cols;
    op.param = body->tile_count + 1;
    op.valid_rows = pwsp_valid_full(op.rows);
    op.valid_rows.param = (uint16_t)op.param;
    op.valid_rows.mul = 1;
    op.valid_cols = op.valid_rows;
    op.valid_cols.max = op.cols;
    op.valid_cols.axis = 1;
    ptowsp_value value = pwsp_body_add(body, &op);
    if (value.id) {
        param->direction = direction;
        param->dtype = dtype;
        param->rows = op.rows;
        param->cols = op.cols;
        param->value = value.id;
        body->tile_count++;
    }
    return value;
}

ptowsp_value ptowsp_tile_in(ptowsp_body *body, const char *name, ptowsp_dtype dtype, int64_t rows,
                            int64_t cols) {
    return pwsp_body_tile(body, name, PTOWSP_IN, dtype, rows, cols);
}

ptowsp_value ptowsp_tile_out(ptowsp_body *body, const char *name, ptowsp_dtype dtype, int64_t rows,
                             int64_t cols) {
    return pwsp_body_tile(body, name, PTOWSP_OUT, dtype, rows, cols);
}

ptowsp_value ptowsp_tile_inout(ptowsp_body *body, const char *name, ptowsp_dtype dtype,
                               int64_t rows, int64_t cols) {
    return pwsp_body_tile(body, name, PTOWSP_INOUT, dtype, rows, cols);
}

ptowsp_value ptowsp_tile_scalar(ptowsp_body *body, const char *name, ptowsp_dtype dtype) {
    ptowsp_value none = {NULL, 0};
    if (!pwsp_body_is_good(body)) {
        return none;
    }
    if (body->scalar_count == PTOWSP_TASK_SCALAR_MAX) {
        return pwsp_body_fail(body, PTOWSP_LIMIT_EXCEEDED, "parameter",
                              "%s is one scalar more than %d", name ? name : "",
                              PTOWSP_TASK_SCALAR_MAX);
    }
    pwsp_body_param *param = &body->scalars[body->scalar_count];
    memset(param, 0, sizeof *param);
    if (!pwsp_body_name(body, param, name)) {
        return none;
    }
    if (dtype != PTOWSP_F32 && dtype != PTOWSP_F64 && dtype != PTOWSP_I64 && dtype != PTOWSP_U64 &&
        dtype != PTOWSP_BOOL) {
        return pwsp_body_fail(body, PTOWSP_UNSUPPORTED, "parameter",
                              "scalar %s is %s, not bool, i64, u64, f32 or f64", name,
                              ptowsp_dtype_name(dtype));
    }
    pwsp_kop op;
    memset(&op, 0, sizeof op);
    op.kind = PWSP_KOP_SCALAR;
    op.dtype = (uint8_t)dtype;
    op.param = body->scalar_count + 1;
    ptowsp_value value = pwsp_body_add(body, &op);
    if (value.id) {
        param->dtype = dtype;
        param->value = value.id;
        body->scalar_count++;
    }
    return value;
}
