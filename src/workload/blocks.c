// Blocks: which expressions of an innermost loop can be evaluated for many iterations at once.
//
// In an innermost loop only three things change: its variable, the slots set in it, and the
// arguments of its tasks. An expression over the variable and over invariants can be computed
// ahead. Its instructions become steps over columns, and those whose operands do not change leave
// the loop:
//
//      for i in n:  task(key = (lengths[b] + 3) * i)
//
//          READ t0 = lengths[b]       hoist:  READ h0 = lengths[b]        once, over cells
//          ADD  t0 = t0, 3                    ADD  h1 = h0, 3
//                                     fill:   column 2 = h1
//          MUL  t0 = t0, i            step:   MUL  column 3 = column 2, column 0 (i)
//
// None of this is visible. Cells stay as they are, and an expression under a condition may be
// computed in vain. If a read is outside its array, which only the iteration that needs it may
// report, the loop continues without columns to the end of the block. Code with skips (see code.c)
// is left alone, and so are programs with pipelines, whose processes interrupt each other.

#include "compile.h"

// Columns of a loop; those used share the first two levels of the cache.
#define PWSP_BLOCK_COLUMNS_MAX 192

// Where the value of a temporary is: in a column, or, as it does not change, in a cell.
typedef struct pwsp_block_value {
    uint32_t at;
    bool varies;
} pwsp_block_value;

typedef struct pwsp_blocker {
    pwsp_compiler *c;
    ptowsp_program *program;
    const pwsp_loop *loop;
    uint32_t first_op, end_op;  // of the loop's body
    pwsp_loop_block block;
    uint32_t temp_count;                        // one more than the last of these that has a column
    uint32_t temp_columns[PWSP_CODE_TEMP_MAX];  // by temporary; 0: none yet
    pwsp_block_value temps[PWSP_CODE_TEMP_MAX];
} pwsp_blocker;

static bool pwsp_blocker_column(pwsp_blocker *b, uint32_t *out_column) {
    *out_column = b->block.column_count++;
    return b->block.column_count <= PWSP_BLOCK_COLUMNS_MAX;
}

// Is a cell set in the loop's body, other than as its variable?
static bool pwsp_blocker_is_set(const pwsp_blocker *b, uint32_t cell) {
    const ptowsp_program *p = b->program;
    if (cell >= p->first_arg && cell < p->first_arg + p->arg_count) {
        return true;
    }
    bool is_slot = cell >= p->first_slot && cell < p->first_slot + p->slot_count;
    for (uint32_t i = b->first_op; is_slot && i < b->end_op; i++) {
        const pwsp_op *op = PWSP_OP_AT(p, i);
        if ((op->kind == PWSP_OP_SLOT_SET || op->kind == PWSP_OP_SLOT_LOAD) &&
            p->slot_ops.items[op->at].cell == cell) {
            return true;
        }
    }
    return false;
}

// Where an operand is. False when it is not known ahead.
static bool pwsp_blocker_operand(const pwsp_blocker *b, uint32_t cell, pwsp_block_value *out) {
    const ptowsp_program *p = b->program;
    if (cell >= p->first_temp && cell < p->first_temp + PWSP_CODE_TEMP_MAX) {
        *out = b->temps[cell - p->first_temp];
        return true;
    }
    bool is_entry = b->loop->axis_kind == PWSP_AXIS_SPARSE && cell == b->loop->entry;
    out->varies = cell == b->loop->cell || is_entry;
    out->at = out->varies ? is_entry : cell;
    return !pwsp_blocker_is_set(b, cell);
}

// The column of an operand; an invariant is broadcast into one.
static bool pwsp_blocker_fill(pwsp_blocker *b, pwsp_block_value value, uint32_t *out_column) {
    pwsp_compiler *c = b->c;
    *out_column = value.at;
    if (value.varies) {
        return true;
    }
    for (uint32_t i = 0; i < b->block.fill_count; i++) {
        const pwsp_loop_fill *fill = &b->program->fills.items[b->block.first_fill + i];
        if (fill->cell == value.at) {
            *out_column = fill->column;
            return true;
        }
    }
    uint32_t index;
    pwsp_loop_fill *fill = pwsp_blocker_column(b, out_column) ? PWSP_ADD(c, fills, &index) : NULL;
    if (fill) {
        fill->cell = value.at;
        fill->column = *out_column;
        b->block.fill_count++;
    }
    return fill != NULL;
}

// An instruction all of whose operands are in cells that do not change.
static bool pwsp_blocker_hoist(pwsp_blocker *b, const pwsp_instruction *from,
                               const pwsp_block_value *operands) {
    pwsp_compiler *c = b->c;
    pwsp_block_value *out = &b->temps[from->out - b->program->first_temp];
    out->varies = false;
    out->at = operands[0].at;
    if (from->opcode == PWSP_OPCODE_MOVE) {
        return true;
    }
    uint32_t index;
    pwsp_instruction *hoist = PWSP_ADD(c, hoists, &index);
    if (!hoist) {
        return false;
    }
    *hoist = *from;
    hoist->a = operands[0].at;
    hoist->b = operands[1].at;
    hoist->c = from->opcode == PWSP_OPCODE_READ ? from->c : operands[2].at;
    hoist->out = out->at = b->program->cell_count + b->block.hoist_count++;
    return true;
}

// An instruction over columns; the last one of an expression has a column of its own.
static bool pwsp_blocker_step(pwsp_blocker *b, const pwsp_instruction *from,
                              const pwsp_block_value *operands, uint32_t count, bool is_last) {
    pwsp_compiler *c = b->c;
    const uint32_t temp = from->out - b->program->first_temp;
    uint32_t columns[3] = {0, 0, 0}, index, result = b->temp_columns[temp];
    for (uint32_t i = 0; i < count; i++) {
        if (!pwsp_blocker_fill(b, operands[i], &columns[i])) {
            return false;
        }
    }
    if ((is_last || !result) && !pwsp_blocker_column(b, &result)) {
        return false;
    }
    pwsp_instruction *step = PWSP_ADD(c, steps, &index);
    if (!step) {
        return false;
    }
    b->block.step_count++;
    b->temp_columns[temp] = is_last ? b->temp_columns[temp] : result;
    b->temp_count = b->temp_count > temp ? b->temp_count : temp + 1;
    b->temps[temp].varies = true;
    b->temps[temp].at = result;
    step->opcode = from->opcode;
    step->out = result;
    step->a = columns[0];
    step->b = columns[1];
    step->c = from->opcode == PWSP_OPCODE_READ ? from->c : columns[2];
    return true;
}

static bool pwsp_blocker_instructions(pwsp_blocker *b, pwsp_code *code) {
    for (uint32_t i = code->begin; i < code->end; i++) {
        const pwsp_instruction *at = &b->program->instructions.items[i];
        if (at->opcode > PWSP_OPCODE_READ) {
            return false;  // a skip
        }
        const uint32_t cells[3] = {at->a, at->b, at->c};
        const uint32_t count = pwsp_opcode_operands((pwsp_opcode)at->opcode);
        pwsp_block_value operands[3] = {{0, false}, {0, false}, {0, false}};
        bool varies = false;
        for (uint32_t j = 0; j < count; j++) {
            if (!pwsp_blocker_operand(b, cells[j], &operands[j])) {
                return false;
            }
            varies = varies || operands[j].varies;
        }
        if (!(varies ? pwsp_blocker_step(b, at, operands, count, i + 1 == code->end)
                     : pwsp_blocker_hoist(b, at, operands))) {
            return false;
        }
    }
    const pwsp_block_value *value = &b->temps[code->cell - b->program->first_temp];
    uint32_t column;
    if (!pwsp_blocker_fill(b, *value, &column)) {
        return false;
    }
    code->column = column;
    return true;
}

// An expression: as a whole, or, if it cannot be, not at all.
static bool pwsp_blocker_code(void *user, pwsp_code *code) {
    pwsp_blocker *b = (pwsp_blocker *)user;
    if (code->begin == code->end) {
        return false;
    }
    const pwsp_loop_block before = b->block;
    if (!pwsp_blocker_instructions(b, code)) {
        b->block = before;
        b->program->hoists.count = before.first_hoist + before.hoist_count;
        b->program->fills.count = before.first_fill + before.fill_count;
        b->program->steps.count = before.first_step + before.step_count;
        for (uint32_t i = 0; i < b->temp_count; i++) {
            b->temp_columns[i] = b->temp_columns[i] < before.column_count ? b->temp_columns[i] : 0;
        }
    }
    return false;
}

static void pwsp_blocker_op(pwsp_blocker *b, const pwsp_op *op) {
    if (op->kind == PWSP_OP_BRANCH || op->kind == PWSP_OP_SLOT_SET || op->kind == PWSP_OP_TASK) {
        pwsp_op_codes(b->program, op, pwsp_blocker_code, b);
    }
}

// Is a loop innermost, and does nothing in it leave it?
static bool pwsp_blocker_is_innermost(const ptowsp_program *p, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const pwsp_op_kind kind = PWSP_OP_AT(p, i)->kind;
        if (kind == PWSP_OP_LOOP || kind == PWSP_OP_CALL) {
            return false;
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_compiler_blocks(pwsp_compiler *c) {
    ptowsp_program *p = c->program;
    uint32_t hoist_max = 0;
    PWSP_ZERO(pwsp_blocker, b);
    b.c = c;
    b.program = p;
    for (uint32_t i = 0; p->pipelines.count == 0 && i < p->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(p, i);
        if (op->kind != PWSP_OP_LOOP || !pwsp_blocker_is_innermost(p, i + 1, op->target - 1)) {
            continue;
        }
        pwsp_loop *loop = &p->loops.items[op->at];
        memset(b.temp_columns, 0, b.temp_count * sizeof b.temp_columns[0]);
        memset(&b.block, 0, sizeof b.block);
        b.temp_count = 0;
        b.loop = loop;
        b.first_op = i + 1;
        b.end_op = op->target - 1;
        b.block.first_hoist = (uint32_t)p->hoists.count;
        b.block.first_fill = (uint32_t)p->fills.count;
        b.block.first_step = (uint32_t)p->steps.count;
        b.block.column_count = 2;
        for (uint32_t j = b.first_op; j < b.end_op; j++) {
            pwsp_blocker_op(&b, PWSP_OP_AT(p, j));
        }
        if (!pwsp_module_is_good(c->module)) {
            return false;
        }
        if (b.block.column_count == 2) {
            continue;
        }
        pwsp_loop_block *block = PWSP_ADD(c, blocks, &loop->block);
        if (!block) {
            return false;
        }
        *block = b.block;
        loop->block++;
        hoist_max = hoist_max > block->hoist_count ? hoist_max : block->hoist_count;
        p->column_count =
            p->column_count > block->column_count ? p->column_count : block->column_count;
    }
    p->cell_count += hoist_max;
    return true;
}
