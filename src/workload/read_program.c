// Read access to a compiled program: its tables in public types, made when a reader first asks.
//
// Expressions, statements and lists of edges are kept in public types from the start, as compiling makes
// them. The others are copied here, into the arena of the program, because runs need more of them
// than a reader does, in another form.

#include "../base/text.h"
#include "read.h"
#include "schedule.h"

PTOWSP_STATIC_ASSERT((int)PTOWSP_AXIS_PLAN_LANES == (int)PWSP_AXIS_PLAN_LANES, "axes");
PTOWSP_STATIC_ASSERT((int)PTOWSP_SCOPE_SEQUENTIAL == (int)PWSP_SCOPE_SEQUENTIAL, "scopes");
PTOWSP_STATIC_ASSERT((int)PTOWSP_VIEW_LEAD_MAX == (int)PWSP_TENSOR_LEAD_MAX, "views");

const char *ptowsp_opcode_name(ptowsp_opcode op) {
    switch (op) {
#define PWSP_READ_OPCODE_NAME(name)                                                                \
    case PTOWSP_OP_##name: return #name;
        PTOWSP_OPCODES(PWSP_READ_OPCODE_NAME)
#undef PWSP_READ_OPCODE_NAME
    default: return "NONE";
    }
}

// Tables of a module that nothing was added to have no entry 0 either.
static uint32_t pwsp_read_count(uint64_t count) {
    return count ? (uint32_t)count : 1;
}

// Begins a function that copies a table: `items` for its entries, which go to `table` and `count` of t.
#define PWSP_READ(type, table, counter, number)                                                    \
    const uint32_t count = number;                                                                 \
    type *items = PWSP_ARENA_ARRAY(arena, type, count);                                            \
    t->table = items;                                                                              \
    t->counter = count;                                                                            \
    if (!items) {                                                                                  \
        return false;                                                                              \
    }

// The function of a table of the same name, whose entries from `first` on are copied field by field:
// `from` is the program's entry i.
#define PWSP_READ_TABLE(table, type, counter, number, first, from_type, ...)                       \
    static bool pwsp_read_##table(const ptowsp_program *p, pwsp_arena *arena,                      \
                                  ptowsp_program_tables *t) {                                      \
        PWSP_READ(type, table, counter, (uint32_t)(number))                                        \
        for (uint32_t i = first; i < count; i++) {                                                 \
            const from_type *from = &p->table.items[i];                                            \
            const type info = {__VA_ARGS__};                                                       \
            items[i] = info;                                                                       \
        }                                                                                          \
        return true;                                                                               \
    }

// -- declarations ---------------------------------------------------------------------------------

static bool pwsp_read_axes(const ptowsp_program *p, pwsp_arena *arena, ptowsp_program_tables *t) {
    PWSP_READ(ptowsp_axis_info, axes, axis_count, pwsp_read_count(p->axes.count))
    for (uint32_t i = 1; i < count; i++) {
        const pwsp_axis_info *from = &p->axes.items[i];
        if (from->declared == i) {
            const ptowsp_axis_info info = {from->name, (ptowsp_axis_kind)from->kind, from->size,
                                           from->array, p->axis_is_used[i]};
            items[i] = info;
        }
    }
    return true;
}

PWSP_READ_TABLE(arrays, ptowsp_array_info, array_count, pwsp_read_count(p->arrays.count), 1,
                pwsp_array_info, from->name, from->dtype, from->is_lengths, p->array_is_used[i],
                from->plan_axis, from->field)
PWSP_READ_TABLE(symbols, ptowsp_symbol_info, symbol_count, pwsp_read_count(p->symbols.count), 1,
                pwsp_symbol_info, from->name, p->symbol_is_used[i])
PWSP_READ_TABLE(tensors, ptowsp_tensor_info, tensor_count, pwsp_read_count(p->tensors.count), 1,
                ptowsp_tensor_desc, *from, p->tensor_is_used[i], p->tensor_is_written[i],
                p->tensor_is_loaded[i], p->tensor_is_transient[i])
PWSP_READ_TABLE(variables, ptowsp_variable_info, variable_count,
                pwsp_read_count(p->variables.count), 1, pwsp_variable_info, from->name, from->type)

static bool pwsp_read_kernels(const ptowsp_program *p, pwsp_arena *arena,
                              ptowsp_program_tables *t) {
    PWSP_READ(ptowsp_kernel_info, kernels, kernel_count, pwsp_read_count(p->kernels.count))
    for (uint32_t i = 1; i < count; i++) {
        const pwsp_kernel_info *from = &p->kernels.items[i];
        ptowsp_kernel_info *info = &items[i];
        info->name = from->name;
        info->is_used = p->kernel_is_used[i];
        info->is_tile_kernel = from->code != NULL;
        info->unit = from->unit;
        info->axis_count = from->axis_count;
        info->tile_count = from->tile_count;
        info->scalar_count = from->scalar_count;
        info->tiles = from->tiles;
        info->scalars = from->scalars;
        info->has_fn = from->fn != NULL;
        info->has_cost = from->cost != NULL;
        info->cycles = from->cycles;
        info->source = from->source;
        info->pto = from->pto;
        if (from->code && !pwsp_tile_code_read(from->code, arena, info)) {
            return false;
        }
    }
    return true;
}

// -- statements -----------------------------------------------------------------------------------

// The lists of values, of parameters, and of edges.
static bool pwsp_read_lists(const ptowsp_program *p, pwsp_arena *arena, ptowsp_program_tables *t) {
    uint32_t *values = PWSP_ARENA_ARRAY(arena, uint32_t, p->codes.count);
    uint32_t *params = PWSP_ARENA_ARRAY(arena, uint32_t, p->params.count);
    if (!values || !params) {
        return false;
    }
    for (uint64_t i = 0; i < p->codes.count; i++) {
        values[i] = p->codes.items[i].expr;
    }
    for (uint64_t i = 0; i < p->params.count; i++) {
        params[i] = p->params.items[i].cell - p->first_variable;
    }
    t->values = values;
    t->params = params;
    t->edges = p->edges.items;
    t->edge_count = p->edge_count;
    return true;
}

static void pwsp_read_view(const pwsp_tile_view *from, ptowsp_view_info *info) {
    info->tensor = from->tensor;
    info->lead_count = from->lead;
    for (uint32_t i = 0; i < from->lead; i++) {
        info->lead[i] = from->index[i].expr;
    }
    info->row = from->row.expr;
    info->col = from->col.expr;
    info->rows = from->rows;
    info->cols = from->cols;
    info->row_count = from->row_count.expr;
    info->col_count = from->col_count.expr;
    info->is_read = (from->access & PWSP_TILE_READ) != 0;
    info->is_written = (from->access & PWSP_TILE_WRITTEN) != 0;
}

// Tasks, then pipelines.
static bool pwsp_read_tasks(const ptowsp_program *p, pwsp_arena *arena, ptowsp_program_tables *t) {
    PWSP_READ(ptowsp_task_info, tasks, task_count, (uint32_t)(p->tasks.count + p->pipelines.count))
    ptowsp_view_info *views = PWSP_ARENA_ARRAY(arena, ptowsp_view_info, p->views.count);
    for (uint64_t i = 0; views && i < p->views.count; i++) {
        pwsp_read_view(&p->views.items[i], &views[i]);
    }
    for (uint32_t i = 0; views && i < count; i++) {
        const pwsp_task_op *from =
            i < p->tasks.count ? &p->tasks.items[i] : &p->pipelines.items[i - p->tasks.count].task;
        ptowsp_task_info *info = &items[i];
        info->kernel = from->kernel;
        info->axis_count = from->axis_count;
        info->tile_count = from->view_count;
        info->scalar_count = from->scalar_count;
        info->axes = t->values + from->first_code;
        info->scalars = info->axes + from->axis_count;
        info->tiles = views + from->first_view;
        info->dispatch_key = from->dispatch.expr;
        info->priority_key = from->priority.expr;
        info->stream_key = from->stream.expr;
        info->in = from->in_count ? t->edges + from->first_in : NULL;
        info->in_count = from->in_count;
        info->out = from->out_count ? t->edges + from->first_out : NULL;
        info->out_count = from->out_count;
    }
    // The views of a list's tasks are not statements': see ptowsp_task_info.
    for (uint64_t i = 0; views && i < p->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(p, i);
        if (op->kind == PWSP_OP_LISTED) {
            items[op->at].tile_count = 0;
            items[op->at].tiles = NULL;
        }
    }
    return views != NULL;
}

static bool pwsp_read_loads(const ptowsp_program *p, pwsp_arena *arena, ptowsp_program_tables *t) {
    PWSP_READ(ptowsp_load_info, loads, load_count, (uint32_t)p->slot_ops.count)
    for (uint32_t i = 0; i < count; i++) {
        const pwsp_slot_op *from = &p->slot_ops.items[i];
        pwsp_read_view(&from->view, &items[i].view);
        items[i].row = from->row.expr;
        items[i].col = from->col.expr;
    }
    return true;
}

PWSP_READ_TABLE(transients, ptowsp_transient_info, transient_count, p->transients.count, 0,
                pwsp_transient, from->tensor, t->values + from->first_code, from->first_lifetime,
                from->lifetime_count)
PWSP_READ_TABLE(lifetimes, ptowsp_lifetime_info, lifetime_count, p->lifetimes.count, 0,
                pwsp_lifetime, from->first, from->last)
PWSP_READ_TABLE(channels, ptowsp_channel_info, channel_count, p->channels.count, 0, pwsp_channel_op,
                from->name, from->depth, from->latency, from->depth_code.expr,
                from->latency_code.expr, from->is_event)
PWSP_READ_TABLE(ports, ptowsp_port_info, port_count, p->ports.count, 0, pwsp_port, from->channel,
                from->is_produced, from->is_closed_early)

// -- all ------------------------------------------------------------------------------------------

static bool pwsp_read_tables(const ptowsp_program *p, pwsp_arena *arena, ptowsp_program_tables *t) {
    t->name = p->name;
    t->schedule = p->schedule;
    t->is_priority_signed = p->is_priority_signed;
    t->has_streams = p->has_streams;
    t->lane_count = ptowsp_program_lane_count(p);
    t->slot_count = p->slot_count;
    t->latency_symbol = p->pipelines.count ? p->latency_symbol : 0;
    t->point_count = (uint32_t)p->points.count;
    t->pipeline_count = (uint32_t)p->pipelines.count;
    t->scope_depth = p->scope_depth;
    t->expr_count = (uint32_t)p->exprs.count;
    t->exprs = p->exprs.items;
    t->statement_count = (uint32_t)p->statements.count;
    t->statements = p->statements.items;
    return pwsp_read_axes(p, arena, t) && pwsp_read_arrays(p, arena, t) &&
           pwsp_read_symbols(p, arena, t) && pwsp_read_tensors(p, arena, t) &&
           pwsp_read_variables(p, arena, t) && pwsp_read_kernels(p, arena, t) &&
           pwsp_read_lists(p, arena, t) && pwsp_read_tasks(p, arena, t) &&
           pwsp_read_loads(p, arena, t) && pwsp_read_transients(p, arena, t) &&
           pwsp_read_lifetimes(p, arena, t) && pwsp_read_channels(p, arena, t) &&
           pwsp_read_ports(p, arena, t);
}

const ptowsp_program_tables *ptowsp_program_read(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    if (!program->read) {
        pwsp_arena *arena = &program->self->arena;
        const pwsp_arena_mark mark = pwsp_arena_here(arena);
        ptowsp_program_tables *tables = PWSP_ARENA_ARRAY(arena, ptowsp_program_tables, 1);
        if (tables && pwsp_read_tables(program, arena, tables)) {
            program->self->read = tables;
        } else {
            pwsp_arena_back(arena, mark);
        }
    }
    return program->read;
}

uint32_t ptowsp_program_lane_count(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    return program->lane_count - program->has_link;
}

void ptowsp_program_print_schedule(const ptowsp_program *program, ptowsp_output output) {
    PTOWSP_ASSERT(program);
    pwsp_text_write(output, program->schedule_text, strlen(program->schedule_text));
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
