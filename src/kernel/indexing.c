// The operations of tile kernels that look at single elements: compare, select, sort, gather. Also
// plain instructions, and the tiles that are made for them.

#include "builder.h"
#include "forms.h"

#include "../isa/sort.h"

#include <inttypes.h>

// -- masks ----------------------------------------------------------------------------------------

ptowsp_value ptowsp_tile_compare(ptowsp_value x, ptowsp_compare op, ptowsp_value y) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(x, y), PWSP_KOP_COMPARE);
    uint32_t dtypes = PTOISA_SET(PTOWSP_F16) | PTOISA_SET(PTOWSP_F32) | PTOISA_SET(PTOWSP_I32);
    const pwsp_kop *left = pwsp_builder_tile(&b, x, dtypes);
    const pwsp_kop *right = left ? pwsp_builder_value(&b, y) : NULL;
    if (!right) {
        return pwsp_builder_end(&b);
    }
    if ((uint32_t)op > PTOWSP_GE) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%d is no comparison", (int)op);
    } else if (left->dtype == PTOWSP_I32 && op != PTOWSP_EQ) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "i32 is compared with EQ only");
    } else if (!pwsp_kop_is_scalar(right) && pwsp_builder_check(&b, right, dtypes)) {
        pwsp_builder_match(&b, left, right);
    }
    pwsp_builder_shape(&b, left, PTOWSP_U8);
    b.op.is_mask = true;
    b.op.mode = (uint8_t)op;
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_select(ptowsp_value mask, ptowsp_value x, ptowsp_value y) {
    pwsp_builder b =
        pwsp_builder_begin(mask.body ? mask.body : pwsp_body_of(x, y), PWSP_KOP_SELECT);
    uint32_t dtypes = PTOISA_SET(PTOWSP_F16) | PTOISA_SET(PTOWSP_BF16) | PTOISA_SET(PTOWSP_F32) |
                      PTOISA_SET(PTOWSP_I16) | PTOISA_SET(PTOWSP_I32) | PTOISA_SET(PTOWSP_U16) |
                      PTOISA_SET(PTOWSP_U32);
    const pwsp_kop *bits = pwsp_builder_value(&b, mask);
    const pwsp_kop *left = bits ? pwsp_builder_tile(&b, x, dtypes) : NULL;
    const pwsp_kop *right = left ? pwsp_builder_value(&b, y) : NULL;
    if (!right) {
        return pwsp_builder_end(&b);
    }
    bool is_scalar = pwsp_kop_is_scalar(right);
    if (!bits->is_mask) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "operand 1 is no mask");
    } else if (bits->rows != left->rows || bits->cols != left->cols) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "a mask of %u x %u for %u x %u", bits->rows,
                          bits->cols, left->rows, left->cols);
    } else if (!is_scalar && pwsp_builder_check(&b, right, dtypes)) {
        pwsp_builder_match(&b, left, right);
    }
    pwsp_builder_shape(&b, left, left->dtype);
    if (!is_scalar) {
        pwsp_builder_narrow(&b, right);
    }
    return pwsp_builder_end(&b);
}

// -- sorting --------------------------------------------------------------------------------------

// Scores, and the pairs that a sort makes of them: a pair takes ptoisa_pair_elements of this type.
#define PWSP_DTYPES_SORT (PTOISA_SET(PTOWSP_F16) | PTOISA_SET(PTOWSP_F32))

ptowsp_value ptowsp_tile_sort32(ptowsp_value x, ptowsp_value index) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(x, index), PWSP_KOP_SORT32);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, PWSP_DTYPES_SORT);
    const pwsp_kop *at = pwsp_builder_tile(&b, index, PTOISA_SET(PTOWSP_U32));
    if (op && at) {
        uint32_t pair = ptoisa_pair_elements(op->dtype);
        if (at->cols != op->cols || (at->rows != 1 && at->rows != op->rows)) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%u x %u scores and %u x %u indices",
                              op->rows, op->cols, at->rows, at->cols);
        } else if (op->cols > PTOWSP_TILE_SIZE_MAX / pair) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_LIMIT_EXCEEDED, "%u scores in a row; of %s %u at most",
                              op->cols, ptowsp_dtype_name((ptowsp_dtype)op->dtype),
                              PTOWSP_TILE_SIZE_MAX / pair);
        } else if (op->cols == 1 && op->rows > 1) {  // which is not in rows here
            PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "rows of one score");
        }
        pwsp_builder_shape(&b, op, op->dtype);
        if (op->valid_cols.param && op->valid_cols.shift) {  // a multiple is not such a size
            b.op.valid_cols = pwsp_valid_full(op->cols);     // those that pad are valid, too
        }
        pwsp_builder_widen(&b, pair);
        b.op.is_pairs = true;
    }
    return pwsp_builder_end(&b);
}

// Takes an operand that a sort has made.
static const pwsp_kop *pwsp_builder_pairs(pwsp_builder *b, ptowsp_value pairs) {
    const pwsp_kop *op = pwsp_builder_tile(b, pairs, PWSP_DTYPES_SORT);
    if (op && !op->is_pairs) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "its operand is not sorted pairs");
        return NULL;
    }
    return op;
}

ptowsp_value ptowsp_tile_merge_sort(ptowsp_value pairs, int64_t run) {
    pwsp_builder b = pwsp_builder_begin(pairs.body, PWSP_KOP_MERGE_SORT);
    const pwsp_kop *op = pwsp_builder_pairs(&b, pairs);
    if (op) {
        int64_t count = op->cols / ptoisa_pair_elements(op->dtype);
        if (op->rows != 1) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "%u rows; TMRGSORT merges one", op->rows);
        } else if (run < 32 || run % 32 != 0 || count % run != 0) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS,
                              "%" PRId64 " pairs in runs of %" PRId64 ", which are whole multiples "
                              "of 32",
                              count, run);
        } else if (count / run < 2 || (count / run > 4 && count / run % 4 != 0)) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS,
                              "%" PRId64 " runs; it merges 2, 3, or a multiple of 4", count / run);
        }
        pwsp_builder_shape(&b, op, op->dtype);
        b.op.col = (uint32_t)run;
        b.op.is_pairs = true;
    }
    return pwsp_builder_end(&b);
}

static ptowsp_value pwsp_topk(ptowsp_value pairs, int64_t k, pwsp_kop_kind kind) {
    pwsp_builder b = pwsp_builder_begin(pairs.body, kind);
    const pwsp_kop *op = pwsp_builder_pairs(&b, pairs);
    if (op) {
        uint32_t count = op->cols / ptoisa_pair_elements(op->dtype);
        if (k < 1 || k > count) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "the first %" PRId64 " of %u", k, count);
        }
        b.op.dtype = kind == PWSP_KOP_TOPK_VALUES ? op->dtype : (uint8_t)PTOWSP_U32;
        b.op.rows = op->rows;
        b.op.cols = (uint32_t)k;
        b.op.valid_rows = op->valid_rows;
        b.op.valid_cols = pwsp_valid_full(b.op.cols);
    }
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_topk_values(ptowsp_value pairs, int64_t k) {
    return pwsp_topk(pairs, k, PWSP_KOP_TOPK_VALUES);
}

ptowsp_value ptowsp_tile_topk_indices(ptowsp_value pairs, int64_t k) {
    return pwsp_topk(pairs, k, PWSP_KOP_TOPK_INDICES);
}

ptowsp_value ptowsp_tile_gather(ptowsp_value x, ptowsp_value index) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(x, index), PWSP_KOP_GATHER);
    uint32_t dtypes = PTOISA_SET(PTOWSP_F16) | PTOISA_SET(PTOWSP_F32) | PTOISA_SET(PTOWSP_I16) |
                      PTOISA_SET(PTOWSP_I32) | PTOISA_SET(PTOWSP_U16) | PTOISA_SET(PTOWSP_U32);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, dtypes);
    const pwsp_kop *at =
        pwsp_builder_tile(&b, index, PTOISA_SET(PTOWSP_I32) | PTOISA_SET(PTOWSP_U32));
    if (op && at) {
        if (op->rows > 1 && op->cols * ptowsp_dtype_size((ptowsp_dtype)op->dtype) % 32 != 0) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED,
                              "rows of %u %s are no whole blocks of 32 bytes", op->cols,
                              ptowsp_dtype_name((ptowsp_dtype)op->dtype));
        }
        pwsp_builder_shape(&b, at, op->dtype);
    }
    return pwsp_builder_end(&b);
}

// -- instructions ---------------------------------------------------------------------------------

ptowsp_value ptowsp_tile_alloc(ptowsp_body *body, const ptowsp_alloc_desc *desc) {
    pwsp_builder b = pwsp_builder_begin(body, PWSP_KOP_ALLOC);
    if (b.body && !desc) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "desc is NULL");
    }
    const pwsp_kop *like = b.body && desc->like.body ? pwsp_builder_value(&b, desc->like) : NULL;
    if (!b.body) {
        return pwsp_builder_end(&b);
    }
    b.op.src[0] = 0;
    if (like && like->rows == 0) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "`like` is no tile");
        return pwsp_builder_end(&b);
    }
    if (ptowsp_dtype_size(desc->dtype) == 0 || desc->dtype == PTOWSP_BOOL) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "%s is no type of tiles",
                          ptowsp_dtype_name(desc->dtype));
    } else if ((uint32_t)desc->memory >= PTOWSP_MEMORY_COUNT ||
               (uint32_t)desc->layout >= PTOWSP_LAYOUT_COUNT) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "no such memory or layout");
    }
    pwsp_builder_make(&b, desc->dtype,
                      desc->rows ? desc->rows
                      : like     ? like->rows
                                 : 0,
                      desc->cols ? desc->cols
                      : like     ? like->cols
                                 : 0);
    if (b.body && like) {
        if (like->rows > b.op.rows || like->cols > b.op.cols) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%u x %u for a value of %u x %u",
                              b.op.rows, b.op.cols, like->rows, like->cols);
        }
        b.op.valid_rows = like->valid_rows;
        b.op.valid_cols = like->valid_cols;
    }
    b.op.row = desc->rows == 0;  // as many as fit, in whole blocks
    b.op.col = desc->cols == 0;
    b.op.memory = (uint8_t)desc->memory;
    b.op.layout = (uint8_t)desc->layout;
    return pwsp_builder_end(&b);
}

// The instruction of a name; NOP if it is unknown.
static ptoisa_op pwsp_op_find(const char *name) {
    for (int op = 1; name && op < PTOISA_OP_COUNT; op++) {
        if (strcmp(ptoisa_op_name((ptoisa_op)op), name) == 0) {
            return (ptoisa_op)op;
        }
    }
    return PTOISA_NOP;
}

// Takes the operands of an instruction: as many as its form has, and no more. Those that it writes
// are allocated tiles; the first of a load's sources or a store's destinations is a parameter.
static void pwsp_instruction_tiles(pwsp_builder *b, const ptowsp_value *values, uint32_t capacity,
                                   uint32_t count, bool is_dst, bool has_global, uint32_t *out) {
    for (uint32_t i = 0; i < capacity && b->body; i++) {
        if (i >= count) {
            if (values[i].id) {
                PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "it has %u %s", count,
                                  is_dst ? "destinations" : "sources");
            }
            continue;
        }
        b->src_count = i;
        const pwsp_kop *op = pwsp_builder_value(b, values[i]);
        bool is_global = has_global && i == 0;
        if (!op) {
            continue;
        }
        if (is_global && op->kind != PWSP_KOP_PARAM) {
            PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "its %s is no tile parameter",
                              is_dst ? "destination" : "source");
        } else if (is_dst && !is_global && op->kind != PWSP_KOP_ALLOC) {
            PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS,
                              "its destination was not made by ptowsp_tile_alloc");
        } else if (op->rows == 0) {
            PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "operand %u is not a tile", i + 1);
        } else if (!is_dst && !op->is_mask) {
            pwsp_builder_check(b, op, PWSP_DTYPES_ANY);
        }
        out[i] = values[i].id;
    }
}

// A parameter that an instruction stores to.
static void pwsp_instruction_store(pwsp_builder *b, uint32_t param) {
    pwsp_body_param *tile = &b->body->tiles[b->body->ops[param].param - 1];
    if (tile->direction == PTOWSP_IN) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%s is an in parameter", tile->name);
    }
    tile->is_stored = true;  // parts of it may be stored by several instructions
}

void ptowsp_instruction(ptowsp_body *body, const ptowsp_instruction_desc *desc) {
    pwsp_builder b = pwsp_builder_begin(body, PWSP_KOP_INSTRUCTION);
    if (!b.body) {
        return;
    }
    ptoisa_op op = desc ? pwsp_op_find(desc->name) : PTOISA_NOP;
    pwsp_form form = pwsp_form_of(op);
    if (form.dst_count == 0) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "there is no instruction %s",
                          desc && desc->name ? desc->name : "without a name");
        return;
    }
    b.name = ptoisa_op_name(op);
    if (desc->mode > (op == PTOISA_TCVT ? (uint32_t)PTOWSP_ROUND_TRUNC : UINT8_MAX)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "it has no mode %u", desc->mode);
        return;
    }
    bool is_store = op == PTOISA_TSTORE || op == PTOISA_MSCATTER;
    pwsp_body_insn insn;
    memset(&insn, 0, sizeof insn);
    insn.op = (uint8_t)op;
    insn.mode = (uint8_t)desc->mode;
    insn.row = desc->row;
    insn.col = desc->col;
    pwsp_instruction_tiles(&b, desc->dst, PWSP_INSN_DST_MAX, form.dst_count, true,
                           form.is_global && is_store, insn.dst);
    pwsp_instruction_tiles(&b, desc->src, PWSP_INSN_SRC_MAX, form.src_count, false,
                           form.is_global && !is_store, insn.src);
    if (b.body && desc->tmp.id && !form.has_tmp) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "it has no scratch tile");
    }
    pwsp_instruction_tiles(&b, &desc->tmp, 1, desc->tmp.id ? 1 : 0, true, false, &insn.tmp);
    if (b.body && desc->scalar.id && !form.has_scalar) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "it has no scalar");
    }
    if (b.body && is_store) {
        pwsp_instruction_store(&b, insn.dst[0]);
    }
    if (b.body && form.has_scalar) {
        const pwsp_kop *scalar = pwsp_builder_value(&b, desc->scalar);
        if (scalar && !pwsp_kop_is_scalar(scalar)) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "its scalar is a tile");
        }
        insn.scalar = desc->scalar.id;
    }
    if (!b.body) {
        return;
    }
    if (!PWSP_GROW(&b.body->memory, b.body->insns, b.body->insn_capacity, b.body->insn_count + 1)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_OUT_OF_MEMORY, "out of memory");
        return;
    }
    b.body->insns[b.body->insn_count++] = insn;
    memset(b.op.src, 0, sizeof b.op.src);
    b.op.param = (uint32_t)b.body->insn_count;
    pwsp_builder_end(&b);
}
