// Taint: the operations that depend on data that kernels compute.
//
// A slot that is loaded from a tensor which tasks write has no value before they have run. Neither
// has anything that depends on it: conditions, extents, indices, other slots set from it or under
// it. Passes over the program mark such operations as tainted, until nothing changes. The body of a
// receive is tainted as well, because only the run decides how often it runs, and with which token.
// Everything else can be checked beforehand, for the whole program, by walking it without kernels.

#include "program.h"

typedef struct pwsp_taint {
    const ptowsp_program *program;
    const bool *is_written;
    uint8_t *ops;     // by op: tainted
    uint8_t *called;  // by first op of a workload: a call under tainted control may run it
    uint8_t *cells;   // by cell: tainted
    bool has_changed;
} pwsp_taint;

static void pwsp_taint_mark(pwsp_taint *taint, uint8_t *mark) {
    taint->has_changed = taint->has_changed || !*mark;
    *mark = 1;
}

// Temporaries are never marked; cell 0 is always known.
static bool pwsp_taint_cell(void *user, uint32_t cell) {
    return ((const pwsp_taint *)user)->cells[cell] != 0;
}

static bool pwsp_taint_code(void *user, pwsp_code *code) {
    return pwsp_code_reads(((const pwsp_taint *)user)->program, code, pwsp_taint_cell, user);
}

// Does the op have a value that only the run knows, whatever its own operands are?
static bool pwsp_taint_begins(const ptowsp_program *p, const pwsp_op *op, const bool *is_written) {
    return op->kind == PWSP_OP_RECEIVE ||
           (op->kind == PWSP_OP_SLOT_LOAD && is_written[p->slot_ops.items[op->at].view.tensor]);
}

// One op inside a region that is run or not as `is_tainted` control decides, or (is_called) in a
// workload that a different call may run: then only its slots are tainted, as regions under tainted
// control are not walked.
static void pwsp_taint_op(pwsp_taint *taint, uint32_t i, bool is_tainted, bool is_called) {
    const ptowsp_program *p = taint->program;
    const pwsp_op *op = PWSP_OP_AT(p, i);
    is_tainted = is_tainted || pwsp_taint_begins(p, op, taint->is_written) ||
                 (op->kind != PWSP_OP_CALL && pwsp_op_codes(p, op, pwsp_taint_code, taint));
    switch (op->kind) {
    case PWSP_OP_SLOT_SET:
    case PWSP_OP_SLOT_LOAD: {
        const pwsp_slot_op *slot = &p->slot_ops.items[op->at];
        if (is_tainted || is_called) {
            pwsp_taint_mark(taint, &taint->cells[slot->cell]);
        }
        break;
    }
    case PWSP_OP_CALL: {
        const pwsp_call_op *call = &p->calls.items[op->at];
        for (uint32_t j = 0; j < call->arg_count; j++) {
            if (pwsp_taint_code(taint, &p->codes.items[call->first_code + j])) {
                pwsp_taint_mark(taint, &taint->cells[call->first_cell + j]);
            }
        }
        break;
    }
    case PWSP_OP_RECEIVE: {
        const pwsp_receive_op *receive = &p->receives.items[op->at];
        if (!receive->is_wait) {
            pwsp_taint_mark(taint, &taint->cells[receive->cell]);
        }
        break;
    }
    default: break;
    }
    if (is_tainted) {
        pwsp_taint_mark(taint, &taint->ops[i]);
    }
}

static void pwsp_taint_pass(pwsp_taint *taint) {
    const ptowsp_program *p = taint->program;
    uint32_t end = 0;  // ops before are under tainted control
    bool is_called = false;
    for (uint32_t i = 0; i < p->ops.count; i++) {
        if (i == 0 || PWSP_OP_AT(p, i - 1)->kind == PWSP_OP_RETURN) {
            is_called = taint->called[i] != 0;
        }
        bool is_under = i < end;
        pwsp_taint_op(taint, i, is_under, is_called);
        const uint32_t own_end = pwsp_op_end(p, PWSP_OP_AT(p, i));
        end = taint->ops[i] && own_end > end ? own_end : end;
        if (PWSP_OP_AT(p, i)->kind == PWSP_OP_CALL && (is_under || is_called)) {
            pwsp_taint_mark(taint, &taint->called[PWSP_OP_AT(p, i)->target]);
        }
    }
}

PWSP_INTERNAL bool pwsp_program_find_tainted(const ptowsp_program *program,
                                             const pwsp_memory *memory, const bool *is_written,
                                             uint8_t *out_tainted) {
    pwsp_taint taint = {program, is_written, out_tainted, NULL, NULL, false};
    size_t size = program->cell_count + (size_t)program->ops.count;
    memset(out_tainted, 0, (size_t)program->ops.count);
    for (uint32_t i = 0; i < program->ops.count && !taint.has_changed; i++) {
        taint.has_changed = pwsp_taint_begins(program, PWSP_OP_AT(program, i), is_written);
    }
    if (!taint.has_changed) {
        return true;  // as in most programs
    }
    if (!PWSP_ALLOC(memory, taint.cells, size)) {
        return false;
    }
    taint.called = taint.cells + program->cell_count;
    while (taint.has_changed) {
        taint.has_changed = false;
        pwsp_taint_pass(&taint);
    }
    PWSP_FREE(memory, taint.cells, size);
    return true;
}
