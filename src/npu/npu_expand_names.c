// Names in aicpu/expand.cpp, and the locals of its functions.
//
// Things keep the names that npu_user_name gives them, unless the same name is already visible; then a
// number is appended. A function begins with locals for the sizes, symbols and arrays that it uses. So
// does a process for its arrays: read errors belong to the reader.

#include "npu_expand.h"

#include <stdio.h>

// -- names ----------------------------------------------------------------------------------------

NPU_INTERNAL void npu_close_names(npu_expand *x, uint32_t count) {
    npu_taken_drop(&x->names, count);
}

NPU_INTERNAL uint32_t npu_open_name_of(npu_expand *x, const char *base,
                                       char out_name[NPU_LOCAL_NAME_MAX]) {
    uint32_t suffix = 0;
    snprintf(out_name, NPU_LOCAL_NAME_MAX, "%s", base);
    while (npu_taken_has(&x->names, NPU_VARIABLE, out_name)) {
        suffix = suffix ? suffix + 1 : 2;
        snprintf(out_name, NPU_LOCAL_NAME_MAX, "%s_%u", base, suffix);
    }
    if (!npu_taken_add(&x->names, NPU_VARIABLE, out_name)) {
        x->is_out_of_memory = true;
    }
    return suffix;
}

static void npu_add_suffix(npu_expand *x, uint32_t suffix) {
    if (suffix) {
        npu_add(x, "_%u", suffix);
    }
}

NPU_INTERNAL void npu_add_variable(npu_expand *x, uint32_t variable) {
    npu_add(x, "%s", npu_user_name(x->emitter, NPU_VARIABLE, variable));
    npu_add_suffix(x, x->variable_suffixes[variable]);
}

NPU_INTERNAL void npu_add_entry(npu_expand *x, uint32_t variable) {
    npu_add(x, "%s_entry", npu_user_name(x->emitter, NPU_VARIABLE, variable));
    npu_add_suffix(x, x->entry_suffixes[variable]);
}

NPU_INTERNAL void npu_name_variable(npu_expand *x, uint32_t variable) {
    char name[NPU_LOCAL_NAME_MAX];
    x->variable_suffixes[variable] =
        npu_open_name_of(x, npu_user_name(x->emitter, NPU_VARIABLE, variable), name);
}

NPU_INTERNAL void npu_name_entry(npu_expand *x, uint32_t variable) {
    char base[NPU_LOCAL_NAME_MAX], name[NPU_LOCAL_NAME_MAX];
    snprintf(base, sizeof base, "%s_entry", npu_user_name(x->emitter, NPU_VARIABLE, variable));
    x->entry_suffixes[variable] = npu_open_name_of(x, base, name);
}

// -- locals ---------------------------------------------------------------------------------------

NPU_INTERNAL const char *npu_local_name(const npu_expand *x, npu_local_kind kind, uint32_t id) {
    const npu_locals *locals =
        x->is_in_process && kind >= NPU_LOCAL_ARRAY ? &x->process : &x->function;
    uint32_t item = locals->of[kind][id];
    return item ? locals->items[item - 1].name : "";  // out of memory
}

static void npu_collect(npu_expand *x, npu_locals *locals, npu_local_kind kind, uint32_t id) {
    if (locals->of[kind][id]) {
        return;
    }
    if (!NPU_ROOM(locals->items, locals->capacity, (uint64_t)locals->count + 1)) {
        x->is_out_of_memory = true;
    } else {
        npu_local *local = &locals->items[locals->count++];
        local->kind = kind;
        local->id = id;
        locals->of[kind][id] = locals->count;
    }
}

// The locals to collect: in a function all except arrays that processes read, in a process those arrays.
typedef struct npu_collector {
    npu_expand *x;
    npu_locals *locals;
    bool has_arrays, has_others;
} npu_collector;

static void npu_collect_expr(const npu_collector *c, uint32_t expr) {
    npu_expand *x = c->x;
    if (!expr) {
        return;
    }
    const ptowsp_expr_info *e = &x->tables->exprs[expr];
    if (e->kind == PTOWSP_EXPR_VARIABLE) {
        x->variable_uses[e->id] |= NPU_USES_VARIABLE;
    } else if (e->kind == PTOWSP_EXPR_ENTRY) {
        x->variable_uses[e->id] |= NPU_USES_ENTRY;
    } else if (e->kind == PTOWSP_EXPR_ARRAY && c->has_arrays) {
        npu_collect(x, c->locals, npu_array_local(e->type), e->id);
    } else if (e->kind == PTOWSP_EXPR_SYMBOL && c->has_others) {
        npu_collect(x, c->locals, NPU_LOCAL_SYMBOL, e->id);
    } else if (e->kind == PTOWSP_EXPR_SIZE && c->has_others) {
        npu_collect(x, c->locals, NPU_LOCAL_SIZE, e->id);
    }
    if (npu_expr_is_tautology(x, e)) {
        return;
    }
    npu_collect_expr(c, e->a);
    npu_collect_expr(c, e->b);
    npu_collect_expr(c, e->c);
}

NPU_INTERNAL bool npu_axis_is_counted(const npu_expand *x, uint32_t axis) {
    const ptowsp_axis_kind kind = x->tables->axes[axis].kind;
    return kind == PTOWSP_AXIS_DYNAMIC || kind == PTOWSP_AXIS_PLAN_LANES;
}

static void npu_collect_axis(const npu_collector *c, uint32_t axis) {
    if (axis && c->has_others && npu_axis_is_counted(c->x, axis)) {
        npu_collect(c->x, c->locals, NPU_LOCAL_SIZE, axis);
    }
}

static void npu_collect_exprs(const npu_collector *c, const uint32_t *exprs, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        npu_collect_expr(c, exprs[i]);
    }
}

static void npu_collect_view(const npu_collector *c, const ptowsp_view_info *view) {
    uint32_t exprs[NPU_VIEW_EXPR_MAX];
    npu_collect_exprs(c, exprs, npu_view_exprs(view, exprs));
}

static void npu_collect_task(const npu_collector *c, const ptowsp_task_info *task) {
    const uint32_t keys[] = {task->dispatch_key, task->priority_key, task->stream_key};
    npu_collect_exprs(c, task->axes, task->axis_count);
    for (uint32_t j = 0; j < task->tile_count; j++) {
        npu_collect_view(c, &task->tiles[j]);
    }
    npu_collect_exprs(c, task->scalars, task->scalar_count);
    npu_collect_exprs(c, keys, 3);
}

static void npu_collect_statement(const npu_collector *c, const ptowsp_statement *s) {
    const ptowsp_program_tables *t = c->x->tables;
    switch (s->kind) {
    case PTOWSP_STATEMENT_LOOP:
        npu_collect_axis(c, s->axis);
        npu_collect_expr(c, s->row);
        break;
    case PTOWSP_STATEMENT_PROCESS: npu_collect_axis(c, s->axis); break;
    case PTOWSP_STATEMENT_WHEN:
    case PTOWSP_STATEMENT_SLOT_SET:
    case PTOWSP_STATEMENT_SEND: npu_collect_expr(c, s->value); break;
    case PTOWSP_STATEMENT_CALL: npu_collect_exprs(c, t->values + s->first, s->count); break;
    case PTOWSP_STATEMENT_TASK: npu_collect_task(c, &t->tasks[s->task]); break;
    case PTOWSP_STATEMENT_SLOT_LOAD:
        npu_collect_view(c, &t->loads[s->load].view);
        npu_collect_expr(c, t->loads[s->load].row);
        npu_collect_expr(c, t->loads[s->load].col);
        break;
    case PTOWSP_STATEMENT_PIPELINE:
        for (uint32_t j = 0; j < s->count; j++) {
            npu_collect_expr(c, t->channels[s->first + j].depth_at_start);
            npu_collect_expr(c, t->channels[s->first + j].latency_at_start);
        }
        break;
    default: break;
    }
}

NPU_INTERNAL void npu_collect_values(npu_expand *x, const uint32_t *exprs, uint32_t count) {
    const npu_collector c = {x, &x->function, true, true};
    npu_collect_exprs(&c, exprs, count);
}

NPU_INTERNAL void npu_collect_function(npu_expand *x, uint32_t begin, uint32_t end) {
    npu_collector c = {x, &x->function, true, true};
    for (uint32_t i = begin; i < end; i++) {
        const ptowsp_statement *s = &x->tables->statements[i];
        npu_collect_statement(&c, s);
        if (s->kind == PTOWSP_STATEMENT_PROCESS) {
            c.has_arrays = false;
        } else if (s->kind == PTOWSP_STATEMENT_END) {
            const ptowsp_statement *of = &x->tables->statements[s->begin];
            c.has_arrays = c.has_arrays || of->kind == PTOWSP_STATEMENT_PROCESS;
        }
    }
}

NPU_INTERNAL void npu_collect_process(npu_expand *x, uint32_t begin, uint32_t end) {
    const npu_collector c = {x, &x->process, true, false};
    for (uint32_t i = begin; i < end; i++) {
        const ptowsp_statement *s = &x->tables->statements[i];
        npu_collect_statement(&c, s);
    }
}

static void npu_print_local(npu_expand *x, npu_local *local) {
    npu_kind kind = local->kind == NPU_LOCAL_SIZE     ? NPU_AXIS
                    : local->kind == NPU_LOCAL_SYMBOL ? NPU_SYMBOL
                                                      : NPU_ARRAY;
    const char *base = npu_name(x->emitter, kind, local->id);
    npu_open_name_of(x, npu_user_name(x->emitter, kind, local->id), local->name);
    switch (local->kind) {
    case NPU_LOCAL_SIZE:
        npu_add(x, "const i64 %s = %s.size(AXIS_%s);", local->name, x->walker, base);
        break;
    case NPU_LOCAL_SYMBOL:
        npu_add(x, "const u64 %s = %s.symbol(SYMBOL_%s);", local->name, x->walker, base);
        break;
    default:
        npu_add(x, "const Array<%s> %s(%s, ARRAY_%s);",
                local->kind == NPU_LOCAL_ARRAY       ? "i64"
                : local->kind == NPU_LOCAL_ARRAY_U64 ? "u64"
                                                     : "bool",
                local->name, x->walker, base);
        break;
    }
    npu_end_line(x);
}

NPU_INTERNAL void npu_print_locals(npu_expand *x, npu_locals *locals) {
    for (int group = NPU_LOCAL_SIZE; group <= NPU_LOCAL_ARRAY; group++) {
        for (uint32_t i = 0; i < locals->count; i++) {
            int kind = (int)locals->items[i].kind;
            if (kind == group || (kind > NPU_LOCAL_ARRAY && group == NPU_LOCAL_ARRAY)) {
                npu_print_local(x, &locals->items[i]);
            }
        }
    }
}

NPU_INTERNAL void npu_forget_locals(npu_locals *locals) {
    for (uint32_t i = 0; i < locals->count; i++) {
        locals->of[locals->items[i].kind][locals->items[i].id] = 0;
    }
    locals->count = 0;
}
