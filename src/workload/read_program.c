// Read access to a compiled program, in public types: declarations, tables, schedule.

#include "../base/text.h"
#include "read.h"
#include "schedule.h"

static uint32_t pwsp_read_index(uint32_t i, uint64_t count) {
    PTOWSP_ASSERT(i < count);
    (void)count;
    return i;
}

#define PWSP_READ(p, table, i) (&(p)->table.items[pwsp_read_index(i, (p)->table.count)])

PTOWSP_STATIC_ASSERT((int)PTOWSP_AXIS_PLAN_LANES == (int)PWSP_AXIS_PLAN_LANES, "axes");
PTOWSP_STATIC_ASSERT((int)PTOWSP_SCOPE_SEQUENTIAL == (int)PWSP_SCOPE_SEQUENTIAL, "scopes");
PTOWSP_STATIC_ASSERT((int)PTOWSP_VIEW_LEAD_MAX == (int)PWSP_TENSOR_LEAD_MAX, "views");

// Tables of a module that nothing was added to have no entry 0 either.
static uint32_t pwsp_read_count(uint64_t count) {
    return count ? (uint32_t)count : 1;
}

// -- declarations ---------------------------------------------------------------------------------

const char *ptowsp_program_name(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return program->name;
}

uint32_t ptowsp_program_slot_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return program->slot_count;
}

ptowsp_expr_info ptowsp_program_expr_at(const ptowsp_program *program, uint32_t expr) {
    PTOWSP_ASSERT(program);
    return *PWSP_READ(program, exprs, expr);
}

uint32_t ptowsp_program_axis_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return pwsp_read_count(program->axes.count);
}

ptowsp_axis_info ptowsp_program_axis_at(const ptowsp_program *program, uint32_t axis) {
    PTOWSP_ASSERT(program);
    const pwsp_axis_info *from = PWSP_READ(program, axes, axis);
    ptowsp_axis_info info;
    memset(&info, 0, sizeof info);
    if (from->declared == axis) {
        info.name = from->name;
        info.kind = (ptowsp_axis_kind)from->kind;
        info.size = from->size;
        info.array = from->array;
        info.is_used = program->axis_is_used[axis];
    }
    return info;
}

uint32_t ptowsp_program_array_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return pwsp_read_count(program->arrays.count);
}

ptowsp_array_info ptowsp_program_array_at(const ptowsp_program *program, uint32_t array) {
    PTOWSP_ASSERT(program);
    const pwsp_array_info *from = PWSP_READ(program, arrays, array);
    ptowsp_array_info info = {from->name,       from->dtype,
                              from->is_lengths, program->array_is_used[array],
                              from->plan_axis,  from->field};
    return info;
}

uint32_t ptowsp_program_symbol_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return pwsp_read_count(program->symbols.count);
}

ptowsp_symbol_info ptowsp_program_symbol_at(const ptowsp_program *program, uint32_t symbol) {
    PTOWSP_ASSERT(program);
    const pwsp_symbol_info *from = PWSP_READ(program, symbols, symbol);
    ptowsp_symbol_info info = {from->name, program->symbol_is_used[symbol]};
    return info;
}

uint32_t ptowsp_program_tensor_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return pwsp_read_count(program->tensors.count);
}

ptowsp_tensor_info ptowsp_program_tensor_at(const ptowsp_program *program, uint32_t tensor) {
    PTOWSP_ASSERT(program);
    ptowsp_tensor_info info = {*PWSP_READ(program, tensors, tensor),
                               program->tensor_is_used[tensor], program->tensor_is_written[tensor],
                               program->tensor_is_loaded[tensor],
                               program->tensor_is_transient[tensor]};
    return info;
}

uint32_t ptowsp_program_transient_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return (uint32_t)program->transients.count;
}

ptowsp_transient_info ptowsp_program_transient_at(const ptowsp_program *program, uint32_t i) {
    PTOWSP_ASSERT(program);
    const pwsp_transient *from = PWSP_READ(program, transients, i);
    ptowsp_transient_info info = {from->tensor, {0}, from->first_lifetime, from->lifetime_count};
    uint32_t rank = program->tensors.items[from->tensor].rank;
    for (uint32_t j = 0; j < rank; j++) {
        info.sizes[j] = ptowsp_program_value_at(program, from->first_code + j);
    }
    return info;
}

uint32_t ptowsp_program_point_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return (uint32_t)program->points.count;
}

void ptowsp_program_lifetime_at(const ptowsp_program *program, uint32_t i, uint32_t *out_first,
                                uint32_t *out_last) {
    PTOWSP_ASSERT(program);
    const pwsp_lifetime *lifetime = PWSP_READ(program, lifetimes, i);
    if (out_first && out_last) {
        *out_first = lifetime->first;
        *out_last = lifetime->last;
    }
}

uint32_t ptowsp_program_variable_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return pwsp_read_count(program->variables.count);
}

ptowsp_variable_info ptowsp_program_variable_at(const ptowsp_program *program, uint32_t variable) {
    PTOWSP_ASSERT(program);
    const pwsp_variable_info *from = PWSP_READ(program, variables, variable);
    ptowsp_variable_info info = {from->name, from->type};
    return info;
}

// -- statements -----------------------------------------------------------------------------------

uint32_t ptowsp_program_statement_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return (uint32_t)program->statements.count;
}

ptowsp_statement ptowsp_program_statement_at(const ptowsp_program *program, uint32_t i) {
    PTOWSP_ASSERT(program);
    return PWSP_READ(program, statements, i)->said;
}

uint32_t ptowsp_program_value_at(const ptowsp_program *program, uint32_t i) {
    PTOWSP_ASSERT(program);
    return PWSP_READ(program, codes, i)->expr;
}

uint32_t ptowsp_program_param_at(const ptowsp_program *program, uint32_t i) {
    PTOWSP_ASSERT(program);
    return PWSP_READ(program, params, i)->cell - program->first_variable;
}

static ptowsp_view_info pwsp_read_view(const pwsp_tile_view *from) {
    ptowsp_view_info info;
    memset(&info, 0, sizeof info);
    info.tensor = from->tensor;
    info.lead_count = from->lead;
    for (uint32_t i = 0; i < from->lead; i++) {
        info.lead[i] = from->index[i].expr;
    }
    info.row = from->row.expr;
    info.col = from->col.expr;
    info.rows = from->rows;
    info.cols = from->cols;
    info.row_count = from->row_count.expr;
    info.col_count = from->col_count.expr;
    info.is_read = (from->access & PWSP_TILE_READ) != 0;
    info.is_written = (from->access & PWSP_TILE_WRITTEN) != 0;
    return info;
}

// The task of a TASK or PIPELINE.
static const pwsp_task_op *pwsp_read_task(const ptowsp_program *program, uint32_t statement) {
    const pwsp_statement *from = PWSP_READ(program, statements, statement);
    PTOWSP_ASSERT(from->said.kind == PTOWSP_STATEMENT_TASK ||
                  from->said.kind == PTOWSP_STATEMENT_PIPELINE);
    return from->said.kind == PTOWSP_STATEMENT_TASK ? &program->tasks.items[from->at]
                                                    : &program->pipelines.items[from->at].task;
}

ptowsp_task_info ptowsp_program_task_at(const ptowsp_program *program, uint32_t statement) {
    PTOWSP_ASSERT(program);
    const pwsp_task_op *from = pwsp_read_task(program, statement);
    ptowsp_task_info info;
    memset(&info, 0, sizeof info);
    info.kernel = from->kernel;
    info.axis_count = from->axis_count;
    info.tile_count = from->view_count;
    info.scalar_count = from->scalar_count;
    for (uint32_t i = 0; i < from->axis_count; i++) {
        info.axes[i] = ptowsp_program_value_at(program, from->first_code + i);
    }
    for (uint32_t i = 0; i < from->scalar_count; i++) {
        info.scalars[i] = ptowsp_program_value_at(program, from->first_code + from->axis_count + i);
    }
    info.dispatch_key = from->dispatch.expr;
    info.priority_key = from->priority.expr;
    info.stream_key = from->stream.expr;
    info.first_in = from->first_in;
    info.in_count = from->in_count;
    info.first_out = from->first_out;
    info.out_count = from->out_count;
    return info;
}

ptowsp_view_info ptowsp_program_view_at(const ptowsp_program *program, uint32_t statement,
                                        uint32_t i) {
    PTOWSP_ASSERT(program);
    const pwsp_task_op *from = pwsp_read_task(program, statement);
    PTOWSP_ASSERT(i < from->view_count);
    return pwsp_read_view(&program->views.items[from->first_view + i]);
}

uint32_t ptowsp_program_edge_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return program->edge_count;
}

uint32_t ptowsp_program_edge_at(const ptowsp_program *program, uint32_t i) {
    PTOWSP_ASSERT(program);
    return *PWSP_READ(program, edges, i);
}

ptowsp_load_info ptowsp_program_load_at(const ptowsp_program *program, uint32_t statement) {
    PTOWSP_ASSERT(program);
    const pwsp_statement *said = PWSP_READ(program, statements, statement);
    PTOWSP_ASSERT(said->said.kind == PTOWSP_STATEMENT_SLOT_LOAD);
    const pwsp_slot_op *from = &program->slot_ops.items[said->at];
    ptowsp_load_info info = {pwsp_read_view(&from->view), from->row.expr, from->col.expr};
    return info;
}

// -- pipelines ------------------------------------------------------------------------------------

uint32_t ptowsp_program_channel_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return (uint32_t)program->channels.count;
}

ptowsp_channel_info ptowsp_program_channel_at(const ptowsp_program *program, uint32_t channel) {
    PTOWSP_ASSERT(program);
    const pwsp_channel_op *from = PWSP_READ(program, channels, channel);
    ptowsp_channel_info info = {
        from->name,    from->depth, from->latency, from->depth_code.expr, from->latency_code.expr,
        from->is_event};
    return info;
}

ptowsp_port_info ptowsp_program_port_at(const ptowsp_program *program, uint32_t i) {
    PTOWSP_ASSERT(program);
    const pwsp_port *from = PWSP_READ(program, ports, i);
    ptowsp_port_info info = {from->channel, from->is_produced, from->is_closed_early};
    return info;
}

uint32_t ptowsp_program_latency_symbol(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return program->pipelines.count ? program->latency_symbol : 0;
}

// -- schedules ------------------------------------------------------------------------------------

ptowsp_schedule ptowsp_program_schedule(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return program->schedule;
}

uint32_t ptowsp_program_lane_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return program->lane_count - program->has_link;
}

bool ptowsp_program_is_priority_signed(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return program->is_priority_signed;
}

void ptowsp_program_print_schedule(const ptowsp_program *program, ptowsp_text text) {
    PTOWSP_ASSERT(program);
    pwsp_text_write(text, program->schedule_text, strlen(program->schedule_text));
}

ptowsp_status ptowsp_program_check(ptowsp_context *context, const ptowsp_program *program,
                                   ptowsp_target target) {
    PTOWSP_ASSERT(context);
    if (!program) {
        return pwsp_fail_null(context, "program");
    }
    ptowsp_status status =
        pwsp_schedule_check_target(context, &program->schedule, program->has_streams, target);
    for (uint32_t i = 1; status == PTOWSP_OK && i < program->kernels.count; i++) {
        const pwsp_kernel_info *kernel = &program->kernels.items[i];
        if (program->kernel_is_used[i] && kernel->unit == PTOWSP_UNIT_LINK) {
            status = pwsp_schedule_check_collective(context, kernel->name, target);
        }
    }
    for (uint32_t i = 1; status == PTOWSP_OK && i < program->tensors.count; i++) {
        if (program->tensor_is_used[i]) {
            status = pwsp_schedule_check_tensor(context, &program->tensors.items[i], target);
        }
    }
    return status;
}

// -- kernels --------------------------------------------------------------------------------------

uint32_t ptowsp_program_kernel_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return pwsp_read_count(program->kernels.count);
}

ptowsp_kernel_info ptowsp_program_kernel_at(const ptowsp_program *program, uint32_t kernel) {
    PTOWSP_ASSERT(program);
    const pwsp_kernel_info *from = PWSP_READ(program, kernels, kernel);
    ptowsp_kernel_info info;
    memset(&info, 0, sizeof info);
    info.name = from->name;
    info.is_used = program->kernel_is_used[kernel];
    info.is_tile_kernel = from->code != NULL;
    info.unit = from->unit;
    info.axis_count = from->axis_count;
    info.tile_count = from->tile_count;
    info.scalar_count = from->scalar_count;
    for (uint32_t i = 0; i < from->tile_count; i++) {
        const pwsp_tile_info *tile = &from->tiles[i];
        ptowsp_tile_param param = {tile->name, tile->direction, tile->dtype, tile->rows,
                                   tile->cols};
        info.tiles[i] = param;
    }
    for (uint32_t i = 0; i < from->scalar_count; i++) {
        info.scalars[i] = from->scalars[i];
    }
    info.has_fn = from->fn != NULL;
    info.has_cost = from->cost != NULL;
    info.cycles = from->cycles;
    info.source = from->source;
    info.pto = from->pto;
    if (from->code) {
        pwsp_read_tiles(from->code, &info);
    }
    return info;
}
