// Building operations: operands, and the result they describe.

#include "builder.h"

#include <inttypes.h>

pwsp_builder pwsp_builder_begin(ptowsp_body *body, pwsp_kop_kind kind) {
    pwsp_builder b;
    memset(&b, 0, sizeof b);
    b.body = pwsp_body_is_good(body) ? body : NULL;
    b.name = pwsp_kop_name(kind);
    b.op.kind = (uint8_t)kind;
    return b;
}

const pwsp_kop *pwsp_builder_value(pwsp_builder *b, ptowsp_value value) {
    if (!b->body) {
        return NULL;
    }
    uint32_t number = ++b->src_count;
    if (!value.body || value.id == 0) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "operand %u is no value", number);
        return NULL;
    }
    if (value.body != b->body) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "operand %u is a value of kernel %s", number,
                          value.body->name);
        return NULL;
    }
    if (value.id >= b->body->op_count) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "operand %u is no value", number);
        return NULL;
    }
    if (!pwsp_body_is_visible(b->body, &b->body->ops[value.id], b->body->loop)) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS,
                          "operand %u is a value of loop %u, which has ended", number,
                          b->body->ops[value.id].loop);
        return NULL;
    }
    if (number <= PWSP_KOP_SRC_MAX) {
        b->op.src[number - 1] = value.id;
    }
    return &b->body->ops[value.id];
}

bool pwsp_builder_check(pwsp_builder *b, const pwsp_kop *op, uint32_t dtypes) {
    uint32_t number = b->src_count;
    if (op->kind == PWSP_KOP_PARAM) {
        const pwsp_body_param *param = &b->body->tiles[op->param - 1];
        if (param->direction == PTOWSP_OUT) {
            PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%s is an out parameter and cannot be read",
                              param->name);
            return false;
        }
    }
    // These read global memory at their position; all others read the values loaded on entry.
    bool is_late = b->op.kind == PWSP_KOP_LOAD || b->op.kind == PWSP_KOP_SLICE ||
                   (b->op.kind >= PWSP_KOP_MATMUL && b->op.kind <= PWSP_KOP_MATMUL_BIAS);
    if (is_late && op->kind == PWSP_KOP_PARAM && b->body->tiles[op->param - 1].is_stored) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%s is loaded after it was stored",
                          b->body->tiles[op->param - 1].name);
        return false;
    }
    if (op->is_mask) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "operand %u is a mask", number);
        return false;
    }
    if (!(dtypes >> op->dtype & 1)) {
        PWSP_BUILDER_FAIL(b, PTOWSP_UNSUPPORTED, "operand %u is %s, which it does not take", number,
                          ptowsp_dtype_name((ptowsp_dtype)op->dtype));
        return false;
    }
    return true;
}

const pwsp_kop *pwsp_builder_tile(pwsp_builder *b, ptowsp_value value, uint32_t dtypes) {
    const pwsp_kop *op = pwsp_builder_value(b, value);
    if (op && op->rows == 0) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "operand %u is %s, not a tile", b->src_count,
                          op->kind == PWSP_KOP_STORE ? "nothing" : "a scalar");
        return NULL;
    }
    return op && pwsp_builder_check(b, op, dtypes) ? op : NULL;
}

bool pwsp_builder_match(pwsp_builder *b, const pwsp_kop *left, const pwsp_kop *right) {
    const bool is_same =
        left->rows == right->rows && left->cols == right->cols && left->dtype == right->dtype;
    if (!is_same) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%u x %u %s and %u x %u %s", left->rows,
                          left->cols, ptowsp_dtype_name((ptowsp_dtype)left->dtype), right->rows,
                          right->cols, ptowsp_dtype_name((ptowsp_dtype)right->dtype));
    }
    return is_same;
}

void pwsp_builder_shape(pwsp_builder *b, const pwsp_kop *like, uint8_t dtype) {
    b->op.rows = like->rows;
    b->op.cols = like->cols;
    b->op.valid_rows = like->valid_rows;
    b->op.valid_cols = like->valid_cols;
    b->op.dtype = dtype;
}

void pwsp_builder_make(pwsp_builder *b, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    if (!b->body) {
        return;
    }
    if (rows < 1 || cols < 1 || rows > PTOWSP_TILE_SIZE_MAX || cols > PTOWSP_TILE_SIZE_MAX) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%" PRId64 " x %" PRId64 "; sizes are 1 to %d",
                          rows, cols, PTOWSP_TILE_SIZE_MAX);
        return;
    }
    b->op.dtype = (uint8_t)dtype;
    b->op.rows = (uint32_t)rows;
    b->op.cols = (uint32_t)cols;
    b->op.valid_rows = pwsp_valid_full(b->op.rows);
    b->op.valid_cols = pwsp_valid_full(b->op.cols);
}

void pwsp_builder_narrow(pwsp_builder *b, const pwsp_kop *other) {
    if (b->op.valid_rows.param == 0) {
        b->op.valid_rows = other->valid_rows;
    }
    if (b->op.valid_cols.param == 0) {
        b->op.valid_cols = other->valid_cols;
    }
}

void pwsp_builder_widen(pwsp_builder *b, uint32_t times) {
    pwsp_valid *valid = &b->op.valid_cols;
    if (valid->param && valid->shift) {  // half of an odd number, doubled, is not that number
        PWSP_BUILDER_FAIL(b, PTOWSP_UNSUPPORTED,
                          "x has every second column of what a task may have in part");
        return;
    }
    if (valid->mul >= PTOWSP_TILE_SIZE_MAX) {
        PWSP_BUILDER_FAIL(b, PTOWSP_LIMIT_EXCEEDED, "the columns of a tail were doubled too often");
        return;
    }
    b->op.cols *= times;
    valid->max *= times;
    valid->mul *= (int32_t)times;
    valid->add *= (int32_t)times;
}

ptowsp_value pwsp_builder_end(pwsp_builder *b) {
    ptowsp_value none = {NULL, 0};
    return b->body ? pwsp_body_add(b->body, &b->op) : none;
}
