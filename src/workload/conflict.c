// Conflicts: tiles that all iterations of a parallel loop write.
//
//      parallel i in n
//        task fill(i)  x[0]          its view does not read i: the iterations run one after another
//
// Only certain conflicts are reported. A view that reads the loop's variable may be a different tile
// in each iteration, and so may a view that reads slots, if the body sets any. Tasks under a condition,
// or in a loop that depends on the variable, may run in a single iteration. A transient tensor is no
// exception: iterations share its memory, also under a ring of bytes.

#include "program.h"

typedef struct pwsp_conflicts {
    const ptowsp_program *program;
    const pwsp_loop *loop;
    bool has_slots;  // the body may change slots
} pwsp_conflicts;

static bool pwsp_conflicts_varies(void *user, uint32_t cell) {
    const pwsp_conflicts *c = (const pwsp_conflicts *)user;
    const ptowsp_program *p = c->program;
    return cell == c->loop->cell || cell == c->loop->entry ||
           (c->has_slots && cell >= p->first_slot && cell < p->first_slot + p->slot_count);
}

// May an expression have another value in another iteration?
static bool pwsp_conflicts_reads(void *user, pwsp_code *code) {
    return pwsp_code_reads(((const pwsp_conflicts *)user)->program, code, pwsp_conflicts_varies,
                           user);
}

// Is there an op of that kind in a loop's body?
static bool pwsp_conflicts_has(const ptowsp_program *p, uint32_t loop, pwsp_op_kind kind) {
    for (uint32_t i = loop + 1; i < PWSP_OP_AT(p, loop)->target; i++) {
        if (PWSP_OP_AT(p, i)->kind == kind) {
            return true;
        }
    }
    return false;
}

// The op that follows a region which may not run in every iteration, or a pipeline; 0: the next op.
static uint32_t pwsp_conflicts_skip(pwsp_conflicts *c, const pwsp_op *op) {
    pwsp_loop *inner = op->kind == PWSP_OP_LOOP ? &c->program->loops.items[op->at] : NULL;
    bool is_walked = inner && (!inner->is_row || !pwsp_conflicts_reads(c, &inner->row));
    return is_walked ? 0 : pwsp_op_end(c->program, op);
}

static bool pwsp_conflicts_loop(const ptowsp_program *p, uint32_t loop,
                                bool (*visit)(void *user, const pwsp_conflict *conflict),
                                void *user) {
    const pwsp_op *at = PWSP_OP_AT(p, loop);
    pwsp_conflicts c = {p, &p->loops.items[at->at], false};
    c.has_slots = pwsp_conflicts_has(p, loop, PWSP_OP_SLOT_SET) ||
                  pwsp_conflicts_has(p, loop, PWSP_OP_SLOT_LOAD) ||
                  pwsp_conflicts_has(p, loop, PWSP_OP_CALL);
    for (uint32_t i = loop + 1, skip; i < at->target; i = skip ? skip : i + 1) {
        const pwsp_op *op = PWSP_OP_AT(p, i);
        const pwsp_task_op *task = op->kind == PWSP_OP_TASK       ? &p->tasks.items[op->at]
                                   : op->kind == PWSP_OP_PIPELINE ? &p->pipelines.items[op->at].task
                                                                  : NULL;
        skip = pwsp_conflicts_skip(&c, op);
        for (uint32_t k = 0; task && k < task->view_count; k++) {
            pwsp_tile_view *view = &p->views.items[task->first_view + k];
            const pwsp_conflict conflict = {at, op, view};
            if (view->access & PWSP_TILE_WRITTEN &&
                !pwsp_view_codes(view, pwsp_conflicts_reads, &c) && !visit(user, &conflict)) {
                return false;
            }
        }
    }
    return true;
}

// Loops over the rows of arrays have numbers of iterations that differ.
static bool pwsp_conflicts_has_two(const pwsp_loop *loop, const uint64_t *cells) {
    const bool has_size =
        !loop->is_row && loop->axis_kind != PWSP_AXIS_RAGGED && loop->axis_kind != PWSP_AXIS_SPARSE;
    return loop->is_parallel && (!has_size || cells[loop->size] > 1);
}

PWSP_INTERNAL bool pwsp_program_visit_conflicts(
    const ptowsp_program *program, const uint64_t *cells,
    bool (*visit)(void *user, const pwsp_conflict *conflict), void *user) {
    for (uint32_t i = 0; i < program->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(program, i);
        if (op->kind == PWSP_OP_LOOP &&
            pwsp_conflicts_has_two(&program->loops.items[op->at], cells) &&
            !pwsp_conflicts_loop(program, i, visit, user)) {
            return false;
        }
    }
    return true;
}

PWSP_INTERNAL const char *pwsp_conflict_effect(const ptowsp_program *program,
                                               const pwsp_conflict *conflict) {
    const ptowsp_schedule *schedule = &program->schedule;
    const uint32_t by_data = PTOWSP_DEPENDENCIES_EXACT | PTOWSP_DEPENDENCIES_OVERLAP;
    const uint32_t met = conflict->view->access & PWSP_TILE_READ
                             ? PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW
                             : PTOWSP_HAZARD_WAW;
    return (schedule->dependencies & by_data) && (schedule->hazards & met)
               ? "one after another"
               : "in no order, as the schedule leaves this dependency out";
}
