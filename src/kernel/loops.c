// Loops in bodies: bounds, carried values, and windows at the index of a loop.
//
//      LOOP 1 (begin, end, step)         a value: the index
//        c = CARRY initial               in the loop: as it is when an iteration begins
//        x = SLICE a at (LOOP 1, 0)      a window of a parameter
//        y = MATMUL_ACC x, b, c
//        NEXT c, y                       its value when the iteration ends
//      END 1
//      STORE out c                       after the loop's last iteration
//
// The table of operations stays flat; an operation knows its loop. Values made in a loop are
// visible in it only. A carried value is also visible after the loop: CARRY is a phi of SSA, with
// one name for the value in the body and the result. A carried value keeps the valid sizes of
// `initial`; elements that the next value lacks are kept.
//
// The sizes of a window are the remainder of the parameter from the index, up to the loop's end
// (pwsp_valid). So everything computed from a window ends where either does, and the last chunk
// needs nothing else.

#include "builder.h"

#include <inttypes.h>

bool pwsp_body_is_visible(const ptowsp_body *body, const pwsp_kop *op, uint32_t loop) {
    return pwsp_loop_is_within(body->loops, loop, op->loop) ||
           (op->kind == PWSP_KOP_CARRY && body->loop_ends[op->loop] &&
            pwsp_loop_is_within(body->loops, loop, body->loops[op->loop].parent));
}

uint32_t pwsp_body_next(const ptowsp_body *body, uint32_t carry) {
    for (uint32_t i = carry + 1; i < body->op_count; i++) {
        if (body->ops[i].kind == PWSP_KOP_NEXT && body->ops[i].src[0] == carry) {
            return i;
        }
    }
    return 0;
}

// -- loops ----------------------------------------------------------------------------------------

// Takes a bound: a whole number, a scalar parameter of integers, or a size.
static pwsp_list_bound pwsp_builder_bound(pwsp_builder *b, ptowsp_value value) {
    pwsp_list_bound bound;
    memset(&bound, 0, sizeof bound);
    const pwsp_kop *op = pwsp_builder_value(b, value);
    if (!op) {
        return bound;
    }
    const char *which = b->src_count == 1 ? "begin" : "end";
    if (op->kind == PWSP_KOP_CONST) {
        bool is_small = op->value >= 0 && op->value <= 0x1p30;
        bound.value = is_small ? (int64_t)op->value : -1;
        if (!is_small || (double)bound.value != op->value) {
            PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS,
                              "its %s is %s, not a whole number from 0 to 2^30", which,
                              pwsp_shortest(op->value, false).text);
        }
    } else if (op->kind == PWSP_KOP_SCALAR &&
               (op->dtype == PTOWSP_I64 || op->dtype == PTOWSP_U64)) {
        bound.kind = PWSP_BOUND_SCALAR;
        bound.param = (uint16_t)(op->param - 1);
    } else if (op->kind == PWSP_KOP_SIZE) {
        bound.kind = PWSP_BOUND_SIZE;
        bound.axis = (uint8_t)op->col;
        bound.param = (uint16_t)(op->param - 1);
    } else {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS,
                          "its %s is no constant, scalar of i64 or u64, or size of a tile", which);
    }
    return bound;
}

ptowsp_value ptowsp_tile_loop_begin(ptowsp_body *body, ptowsp_value begin, ptowsp_value end,
                                    int64_t step) {
    ptowsp_value none = {NULL, 0};
    pwsp_builder b = pwsp_builder_begin(body, PWSP_KOP_LOOP);
    pwsp_list_loop loop;
    memset(&loop, 0, sizeof loop);
    loop.begin = pwsp_builder_bound(&b, begin);
    loop.end = pwsp_builder_bound(&b, end);
    loop.step = step;
    if (!b.body) {
        return none;
    }
    uint32_t depth = 1;
    for (uint32_t at = body->loop; at; at = body->loops[at].parent) {
        depth++;
    }
    if (step < 1 || step > 1 << 30) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "its step is %" PRId64 "; steps are 1 to 2^30",
                          step);
    } else if (body->loop_count == PTOWSP_LOOP_MAX) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_LIMIT_EXCEEDED, "more than %d in a kernel", PTOWSP_LOOP_MAX);
    } else if (depth > PTOWSP_LOOP_DEPTH_MAX) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_LIMIT_EXCEEDED, "more than %d inside each other",
                          PTOWSP_LOOP_DEPTH_MAX);
    }
    if (!b.body) {
        return none;
    }
    loop.parent = body->loop;
    uint32_t number = ++body->loop_count;
    body->loops[number] = loop;
    body->loop = number;
    b.op.dtype = PTOWSP_I64;
    b.op.value = (double)step;
    b.op.param = number;
    ptowsp_value index = pwsp_builder_end(&b);
    body->loop_begins[number] = index.id;
    return index;
}

void ptowsp_tile_loop_end(ptowsp_body *body) {
    pwsp_builder b = pwsp_builder_begin(body, PWSP_KOP_END);
    if (!b.body) {
        return;
    }
    if (body->loop == 0) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "no loop is open");
        return;
    }
    uint32_t loop = body->loop;
    for (uint32_t i = body->loop_begins[loop]; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        if (op->kind == PWSP_KOP_CARRY && op->loop == loop && !pwsp_body_next(body, i)) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS,
                              "a carried value of loop %u has no next value", loop);
            return;
        }
    }
    b.op.src[0] = body->loop_begins[loop];
    b.op.param = loop;
    body->loop_ends[loop] = pwsp_builder_end(&b).id;
    body->loop = body->loops[loop].parent;
}

void ptowsp_tile_preload(ptowsp_value index, int64_t iterations) {
    pwsp_builder b = pwsp_builder_begin(index.body, PWSP_KOP_PRELOAD);
    const pwsp_kop *op = pwsp_builder_value(&b, index);
    if (!op) {
        return;
    }
    pwsp_list_loop *loop = &b.body->loops[b.body->loop];
    if (op->kind != PWSP_KOP_LOOP || op->param != b.body->loop) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS,
                          "its operand is no index of the innermost loop");
    } else if (iterations < 1 || iterations > PTOWSP_PRELOAD_MAX) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%" PRId64 " iterations, not 1 to %d",
                          iterations, PTOWSP_PRELOAD_MAX);
    } else if (loop->preload) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "loop %u preloads %u already", b.body->loop,
                          loop->preload);
    } else {
        loop->preload = (uint32_t)iterations;
        b.op.col = (uint32_t)iterations;
    }
    pwsp_builder_end(&b);
}

// -- carried values -------------------------------------------------------------------------------

ptowsp_value ptowsp_tile_carry(ptowsp_value initial) {
    pwsp_builder b = pwsp_builder_begin(initial.body, PWSP_KOP_CARRY);
    const pwsp_kop *op = pwsp_builder_tile(&b, initial, PWSP_DTYPES_ANY);
    if (!op) {
        return pwsp_builder_end(&b);
    }
    uint32_t loop = b.body->loop, count = 0;
    for (uint32_t i = b.body->loop_begins[loop]; i < b.body->op_count && loop; i++) {
        count += b.body->ops[i].kind == PWSP_KOP_CARRY && b.body->ops[i].loop == loop;
    }
    if (loop == 0) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "no loop is open");
    } else if (op->loop == loop) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "its initial value is made in loop %u", loop);
    } else if (count == PTOWSP_LOOP_CARRY_MAX) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_LIMIT_EXCEEDED, "more than %d in loop %u",
                          PTOWSP_LOOP_CARRY_MAX, loop);
    } else if (op->is_pairs) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "sorted pairs");
    } else if (op->kind == PWSP_KOP_ALLOC) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "a tile that instructions write");
    } else {
        pwsp_builder_shape(&b, op, op->dtype);
        b.op.param = loop;
    }
    return pwsp_builder_end(&b);
}

void ptowsp_tile_next(ptowsp_value carried, ptowsp_value next) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(carried, next), PWSP_KOP_NEXT);
    const pwsp_kop *carry = pwsp_builder_value(&b, carried);
    const pwsp_kop *op = carry ? pwsp_builder_tile(&b, next, PWSP_DTYPES_ANY) : NULL;
    if (!op) {
        return;
    }
    if (carry->kind != PWSP_KOP_CARRY) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "operand 1 is no carried value");
    } else if (carry->loop != b.body->loop) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "it is of loop %u, not of the innermost one",
                          carry->loop);
    } else if (pwsp_body_next(b.body, carried.id)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "it has a next value already");
    } else if (op->kind == PWSP_KOP_ALLOC) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "a tile that instructions write");
    } else if (op->is_pairs) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "sorted pairs");
    } else if (op->dtype != carry->dtype || op->rows != carry->rows || op->cols != carry->cols) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%u x %u %s after %u x %u %s", op->rows,
                          op->cols, ptowsp_dtype_name((ptowsp_dtype)op->dtype), carry->rows,
                          carry->cols, ptowsp_dtype_name((ptowsp_dtype)carry->dtype));
    }
    pwsp_builder_end(&b);
}

// -- sizes and windows ----------------------------------------------------------------------------

static ptowsp_value pwsp_builder_size(ptowsp_value param, uint32_t axis) {
    pwsp_builder b = pwsp_builder_begin(param.body, PWSP_KOP_SIZE);
    const pwsp_kop *op = pwsp_builder_value(&b, param);
    if (op && op->kind != PWSP_KOP_PARAM) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "its operand is no parameter");
    } else if (op) {
        b.op.src[0] = 0;  // it is not read
        b.op.dtype = PTOWSP_I64;
        b.op.param = op->param;
        b.op.col = axis;
    }
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_rows(ptowsp_value param) {
    return pwsp_builder_size(param, 0);
}

ptowsp_value ptowsp_tile_cols(ptowsp_value param) {
    return pwsp_builder_size(param, 1);
}

bool pwsp_builder_offset(pwsp_builder *b, ptowsp_value at, uint32_t room, uint32_t *out_start,
                         uint8_t *out_loop) {
    *out_start = 0;
    *out_loop = 0;
    if (!at.body && at.id == 0) {
        return b->body != NULL;
    }
    const pwsp_kop *op = pwsp_builder_value(b, at);
    if (!op) {
        return false;
    }
    if (op->kind == PWSP_KOP_LOOP) {
        *out_loop = (uint8_t)op->param;
        return true;
    }
    if (op->kind != PWSP_KOP_CONST) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "operand %u is no constant or index of a loop",
                          b->src_count);
        return false;
    }
    if (!(op->value >= 0 && op->value <= room) || (double)(uint32_t)op->value != op->value) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "it begins at %s; there is room for 0 to %u",
                          pwsp_shortest(op->value, false).text, room);
        return false;
    }
    *out_start = (uint32_t)op->value;
    return true;
}

ptowsp_value ptowsp_tile_slice_at(ptowsp_value param, ptowsp_value row, ptowsp_value col,
                                  int64_t rows, int64_t cols) {
    pwsp_builder b = pwsp_builder_begin(param.body, PWSP_KOP_SLICE);
    b.name = "slice_at";
    const pwsp_kop *op = pwsp_builder_tile(&b, param, PWSP_DTYPES_ANY);
    if (!op) {
        return pwsp_builder_end(&b);
    }
    if (op->kind != PWSP_KOP_PARAM) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "its operand is no parameter");
    } else if (rows < 1 || cols < 1 || rows > op->rows || cols > op->cols) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%" PRId64 " x %" PRId64 " of %u x %u", rows,
                          cols, op->rows, op->cols);
    } else if (pwsp_builder_offset(&b, row, op->rows - (uint32_t)rows, &b.op.row, &b.op.row_loop) &&
               pwsp_builder_offset(&b, col, op->cols - (uint32_t)cols, &b.op.col, &b.op.col_loop)) {
        b.op.dtype = op->dtype;
        b.op.rows = (uint32_t)rows;
        b.op.cols = (uint32_t)cols;
        b.op.valid_rows = pwsp_valid_window(op->valid_rows, b.op.row, b.op.rows, b.op.row_loop);
        b.op.valid_cols = pwsp_valid_window(op->valid_cols, b.op.col, b.op.cols, b.op.col_loop);
    }
    b.op.src[1] = b.op.src[2] = 0;
    return pwsp_builder_end(&b);
}
