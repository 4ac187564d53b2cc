// Labels of tasks: "attend request=3 head=1".
//
// Axis values are named by the variables in the tree, as a kernel's axes have no names.

#include "label.h"

#include <inttypes.h>

// The task of a node of the tree with as many axis values and scalars. NULL: the program has none.
static const pwsp_task_op *pwsp_label_op(const ptowsp_program *program,
                                         const ptowsp_task_trace *task) {
    for (uint32_t i = 0; i < program->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(program, i);
        if ((op->kind == PWSP_OP_TASK || op->kind == PWSP_OP_LISTED) &&
            op->node == task->record->node) {
            const pwsp_task_op *found = &program->tasks.items[op->at];
            bool is_alike =
                found->axis_count == task->axis_count && found->scalar_count == task->scalar_count;
            return is_alike ? found : NULL;
        }
    }
    return NULL;
}

static const pwsp_kernel_info *pwsp_label_kernel(const ptowsp_program *program,
                                                 const pwsp_task_op *op) {
    return &program->kernels.items[op->kernel];
}

static const ptowsp_expr_info *pwsp_label_expr(const ptowsp_program *program,
                                               const pwsp_task_op *op, uint32_t i) {
    const uint32_t expr = program->codes.items[op->first_code + i].expr;
    PTOWSP_ASSERT(expr);  // a task has a value for each
    return &program->exprs.items[expr];
}

// The name of an axis value or, from axis_count on, of a scalar. Without a name of its own it is
// made in `room`.
static const char *pwsp_label_name(const ptowsp_program *program, const pwsp_task_op *op,
                                   uint32_t i, char *room) {
    if (i >= op->axis_count) {
        return pwsp_label_kernel(program, op)->scalars[i - op->axis_count].name;
    }
    const ptowsp_expr_info *expr = pwsp_label_expr(program, op, i);
    if (expr->kind == PTOWSP_EXPR_VARIABLE) {
        return program->variables.items[expr->id].name;
    }
    if (expr->kind == PTOWSP_EXPR_ARRAY) {  // a plan's field is "plan.field"
        const char *name = program->arrays.items[expr->id].name;
        const char *dot = strrchr(name, '.');
        return dot ? dot + 1 : name;
    }
    memcpy(room, "axis", 4);
    room[4 + pwsp_label_u64(i, room + 4)] = '\0';
    return room;
}

PWSP_INTERNAL size_t pwsp_label_u64(uint64_t value, char *room) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memcpy(room, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

PWSP_INTERNAL void pwsp_label_part_make(const ptowsp_program *program, const pwsp_task_op *op,
                                        uint32_t i, pwsp_label_part *out_part) {
    ptowsp_type type = i >= op->axis_count
                           ? pwsp_label_kernel(program, op)->scalars[i - op->axis_count].type
                           : PTOWSP_TYPE_I64;
    out_part->name = pwsp_label_name(program, op, i, out_part->room);
    out_part->name_length = (uint32_t)strlen(out_part->name);
    out_part->is_signed = type == PTOWSP_TYPE_I64;
}

PWSP_INTERNAL size_t pwsp_label_value(const pwsp_label_part *part, uint64_t value, char *room) {
    size_t length = 0;
    if (part->is_signed && (int64_t)value < 0) {
        room[length++] = '-';
        value = 0 - value;
    }
    length += pwsp_label_u64(value, room + length);
    room[length] = '\0';
    return length;
}

void ptowsp_run_print_task(const ptowsp_run *run, const ptowsp_task_trace *task,
                           ptowsp_output output) {
    if (!task || !task->record || (task->axis_count + task->scalar_count > 0 && !task->args)) {
        return;
    }
    const ptowsp_program *program = pwsp_run_result(run)->program;
    const pwsp_task_op *op = pwsp_label_op(program, task);
    if (!op) {
        pwsp_text_format(output, "task %" PRIu64, task->index);
        return;
    }
    pwsp_text_format(output, "%s", pwsp_label_kernel(program, op)->name);
    for (uint32_t i = 0; i < task->axis_count + task->scalar_count; i++) {
        pwsp_label_part part;
        char value[24];
        pwsp_label_part_make(program, op, i, &part);
        pwsp_label_value(&part, task->args[i], value);
        pwsp_text_format(output, " %s=%s", part.name, value);
    }
}
