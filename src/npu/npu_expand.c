// aicpu/expand.cpp: the statements of a program as C++, in terms of wsp_expand.h. Workloads are
// functions, loops are loops, scopes are objects that live as long as a block:
//
//      parallel b over batch     {
//          when kv_len[b] <= 2048    Scope scope_2(run, PARALLEL);
//              task attend           for (i64 v_b = 0; v_b < run.size(AXIS_batch) && run.good(); v_b++) {
//                                        if (run.array_i64(ARRAY_kv_len, v_b) <= 2048) {
//                                            Task task(run, KERNEL_attend, 4);
//                                            ...
//
// Names. Variables, channels and workloads have theirs from npu_names.c, which makes them differ where
// they meet. Other names cannot meet these: r_load is the run of process load, e_c the end of the loop of
// c; parts and scopes have numbers.
//
// Statements come as a list, so one pass over them prints the file; open blocks are on a stack.
// Blocks with very many statements are split into functions, because compilers take minutes for
// large ones. The file walks the program exactly as the library does (src/workload/expand.c): rows are
// evaluated once, when a loop begins, and arguments of calls before the callee.

#include "npu_expand.h"

#include <stdio.h>

#define NPU_FUNCTION_MAX 200u  // approximate number of statements in one function

// -- words ----------------------------------------------------------------------------------------

NPU_INTERNAL const char *npu_type(ptowsp_type type) {
    return type == PTOWSP_TYPE_I64 ? "i64" : type == PTOWSP_TYPE_U64 ? "u64" : "bool";
}

NPU_INTERNAL const char *npu_access(const ptowsp_view_info *view) {
    return view->is_read && view->is_written ? "READ_WRITE" : view->is_written ? "WRITE" : "READ";
}

NPU_INTERNAL void npu_edges(npu_expand *x, const char *call, const uint32_t *edges,
                            uint32_t count) {
    if (count == 0) {
        return;
    }
    npu_add(x, "%s({", call);
    for (uint32_t i = 0; i < count; i++) {
        npu_add(x, "%s%u", i ? ", " : "", edges[i]);
    }
    npu_line(x, "});");
}

NPU_INTERNAL void npu_before_exprs(npu_expand *x, uint32_t node, const uint32_t *exprs,
                                   uint32_t count) {
    bool reads = false;
    x->part_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        npu_prepare_expr(x, exprs[i]);
        reads = reads || npu_expr_has(x, exprs[i], PTOWSP_EXPR_ARRAY);
    }
    if (reads) {
        npu_place_comment(x, node);
        npu_line(x, "%s.at(%u);", x->walker, npu_place(x->emitter, node));
    }
}

NPU_INTERNAL uint32_t npu_view_exprs(const ptowsp_view_info *view,
                                     uint32_t exprs[NPU_VIEW_EXPR_MAX]) {
    const uint32_t rest[] = {view->row, view->col, view->row_count, view->col_count};
    memcpy(exprs, view->lead, view->lead_count * sizeof exprs[0]);
    memcpy(exprs + view->lead_count, rest, sizeof rest);
    return view->lead_count + 4;
}

static void npu_scope(npu_expand *x, ptowsp_scope scope) {
    npu_line(x, "Scope scope_%u(%s, %s);", x->depth, x->walker,
             scope == PTOWSP_SCOPE_PARALLEL ? "PARALLEL" : "SEQUENTIAL");
}

// -- loops ----------------------------------------------------------------------------------------

NPU_INTERNAL void npu_add_variable(npu_expand *x, uint32_t variable) {
    npu_add(x, "%s", npu_user_name(x->emitter, NPU_VARIABLE, variable));
}

NPU_INTERNAL void npu_add_counted_for(npu_expand *x, uint32_t variable, uint32_t axis) {
    const ptowsp_axis_info *info = &x->tables->axes[axis];
    const char *name = npu_user_name(x->emitter, NPU_VARIABLE, variable);
    npu_add(x, "for (i64 %s = 0; %s < ", name, name);
    if (info->kind == PTOWSP_AXIS_DENSE) {
        npu_print_i64(&x->line, info->size);
    } else {
        npu_add(x, "%s.size(AXIS_%s)", x->walker, npu_name(x->emitter, NPU_AXIS, axis));
    }
    npu_add(x, " && %s.good(); %s++) ", x->walker, name);
}

// ", b, 5": the row of a loop, and its place; nothing of a loop over all rows.
static void npu_add_row(npu_expand *x, const ptowsp_statement *s) {
    if (s->row) {
        npu_add(x, ", ");
        npu_add_expr(x, s->row, NPU_LITERAL_PLAIN);
        npu_add(x, ", %u", npu_place(x->emitter, s->node));
    }
}

// for (i64 v_c = 0, e_c = run.length(ARRAY_chunks, v_b, 5); v_c < e_c && run.good(); v_c++)
static void npu_add_ragged_for(npu_expand *x, const ptowsp_statement *s, uint32_t array) {
    const char *name = npu_name(x->emitter, NPU_VARIABLE, s->variable);
    npu_add(x, "for (i64 v_%s = 0, e_%s = %s.length%s(ARRAY_%s", name, name, x->walker,
            s->row ? "" : "_sum", npu_name(x->emitter, NPU_ARRAY, array));
    npu_add_row(x, s);
    npu_add(x, "); v_%s < e_%s && %s.good(); v_%s++) ", name, name, x->walker, name);
}

// for (const Entry &v_e : run.entries(AXIS_routes, v_t, 5)), for (const i64 &v_u : run.units(AXIS_kv))
static void npu_add_items_for(npu_expand *x, const ptowsp_statement *s, const char *type,
                              const char *items) {
    npu_add(x, "for (const %s &", type);
    npu_add_variable(x, s->variable);
    npu_add(x, " : %s.%s(AXIS_%s", x->walker, items, npu_name(x->emitter, NPU_AXIS, s->axis));
    npu_add_row(x, s);
    npu_add(x, ")) ");
}

static void npu_loop(npu_expand *x, const ptowsp_statement *s) {
    const ptowsp_axis_info *axis = &x->tables->axes[s->axis];
    npu_before_exprs(x, s->node, &s->row, 1);
    if (s->scope) {
        npu_open(x);
        npu_scope(x, s->scope);
    }
    x->is_entry[s->variable] = axis->kind == PTOWSP_AXIS_SPARSE;
    if (axis->kind == PTOWSP_AXIS_SPARSE) {
        npu_add_items_for(x, s, "Entry", "entries");
    } else if (axis->kind == PTOWSP_AXIS_RAGGED) {
        npu_add_ragged_for(x, s, axis->array);
    } else if (axis->kind == PTOWSP_AXIS_PLAN || axis->kind == PTOWSP_AXIS_PLAN_MERGES) {
        npu_add_items_for(x, s, "i64", "units");
    } else {
        npu_add_counted_for(x, s->variable, s->axis);
    }
    npu_open(x);
}

// -- conditions -----------------------------------------------------------------------------------

// "slot compare value", of a bool "slot != 0", around tasks alone: a target may evaluate it later than
// the loops. NULL: it has another form, and nothing is set.
static const char *npu_slot_condition(const npu_expand *x, uint32_t i, uint32_t *out_slot,
                                      uint32_t *out_value) {
    static const char words[][4] = {"EQ", "NE", "LT", "LE", "GT", "GE"};  // as PTOWSP_EXPR_EQ ...
    static const char swapped[][4] = {"EQ", "NE", "GT", "GE", "LT", "LE"};
    const ptowsp_statement *all = x->tables->statements, *s = &all[i];
    const ptowsp_expr_info *exprs = x->tables->exprs, *e = &exprs[s->value];
    const bool is_not = e->kind == PTOWSP_EXPR_NOT;
    const bool is_first = exprs[e->a].kind == PTOWSP_EXPR_SLOT;
    const ptowsp_expr_info *slot = &exprs[is_first ? e->a : e->b],
                           *flag = is_not ? &exprs[e->a] : e;
    bool are_tasks = all[s->end].kind == PTOWSP_STATEMENT_END && s->end > i + 1;
    for (uint32_t k = i + 1; are_tasks && k < s->end; k++) {
        are_tasks = all[k].kind == PTOWSP_STATEMENT_TASK;
    }
    if (are_tasks && flag->kind == PTOWSP_EXPR_SLOT) {
        *out_slot = flag->id;
        *out_value = 0;
        return is_not ? "EQ" : "NE";
    }
    if (!are_tasks || e->kind < PTOWSP_EXPR_EQ || e->kind > PTOWSP_EXPR_GE ||
        slot->kind != PTOWSP_EXPR_SLOT || slot->type != PTOWSP_TYPE_I64) {
        return NULL;
    }
    *out_slot = slot->id;
    *out_value = is_first ? e->b : e->a;
    return is_first ? words[e->kind - PTOWSP_EXPR_EQ] : swapped[e->kind - PTOWSP_EXPR_EQ];
}

// if (kv_len[b] <= 2048), or if (const When when{run, 2, GT, 0})
static void npu_when(npu_expand *x, uint32_t i, const ptowsp_statement *s) {
    uint32_t slot = 0, value = s->value;
    const char *compare = npu_slot_condition(x, i, &slot, &value);
    npu_before_exprs(x, s->node, &value, 1);
    npu_add(x, "if (");
    if (compare) {
        npu_add(x, "const When when{%s, %u, %s, ", x->walker, slot, compare);
    }
    npu_add_expr(x, value, NPU_LITERAL_PLAIN);
    npu_add(x, "%s) ", compare ? "}" : "");
    npu_open(x);
}

// -- tasks and slots ------------------------------------------------------------------------------

// ", 64", or ", {64, kv_len[u]}"
static void npu_add_extent(npu_expand *x, int64_t size, uint32_t limit) {
    npu_add(x, limit ? ", {" : ", ");
    npu_print_i64(&x->line, size);
    if (limit) {
        npu_add(x, ", ");
        npu_add_expr(x, limit, NPU_LITERAL_TYPED);
        npu_add(x, "}");
    }
}

// TENSOR_x, READ, {b}, 0, 64, 0, 64
static void npu_add_view(npu_expand *x, const ptowsp_view_info *view, const char *access) {
    npu_add(x, "TENSOR_%s, %s{", npu_name(x->emitter, NPU_TENSOR, view->tensor), access);
    npu_add_exprs(x, view->lead, view->lead_count, NPU_LITERAL_PLAIN);
    npu_add(x, "}, ");
    npu_add_expr(x, view->row, NPU_LITERAL_PLAIN);
    npu_add_extent(x, view->rows, view->row_count);
    npu_add(x, ", ");
    npu_add_expr(x, view->col, NPU_LITERAL_PLAIN);
    npu_add_extent(x, view->cols, view->col_count);
}

// task.word(expr);
static void npu_task_word(npu_expand *x, const char *word, uint32_t expr, npu_literal literal) {
    npu_prepare_expr(x, expr);
    npu_add(x, "task.%s(", word);
    npu_add_expr(x, expr, literal);
    npu_line(x, ");");
}

static void npu_task_lines(npu_expand *x, const ptowsp_statement *s) {
    const ptowsp_task_info *task = &x->tables->tasks[s->task];
    const uint32_t keys[] = {task->dispatch_key, task->priority_key, task->stream_key};
    static const char key_words[][12] = {"dispatch", "priority", "stream"};
    x->part_count = 0;
    npu_line(x, "Task task(%s, KERNEL_%s, %u);", x->walker,
             npu_name(x->emitter, NPU_KERNEL, task->kernel), npu_place(x->emitter, s->node));
    for (uint32_t j = 0; j < task->axis_count; j++) {
        npu_task_word(x, "axis", task->axes[j], NPU_LITERAL_PLAIN);
    }
    for (uint32_t j = 0; j < task->tile_count; j++) {
        uint32_t exprs[NPU_VIEW_EXPR_MAX], count = npu_view_exprs(&task->tiles[j], exprs);
        char access[16];
        snprintf(access, sizeof access, "%s, ", npu_access(&task->tiles[j]));
        for (uint32_t k = 0; k < count; k++) {
            npu_prepare_expr(x, exprs[k]);
        }
        npu_add(x, "task.tile(");
        npu_add_view(x, &task->tiles[j], access);
        npu_line(x, ");");
    }
    for (uint32_t j = 0; j < task->scalar_count; j++) {
        npu_task_word(x, "scalar", task->scalars[j], NPU_LITERAL_TYPED);
    }
    for (uint32_t j = 0; j < 3; j++) {
        if (keys[j]) {
            npu_task_word(x, key_words[j], keys[j], NPU_LITERAL_TYPED);
        }
    }
    npu_edges(x, "task.after", task->in, task->in_count);
    npu_edges(x, "task.before", task->out, task->out_count);
    npu_line(x, "task.submit();");
}

// A task has its own block, unless it is the only statement of the enclosing block.
static void npu_task(npu_expand *x, uint32_t i, const ptowsp_statement *s) {
    bool is_alone = x->tables->statements[i - 1].end == i + 1;
    npu_place_comment(x, s->node);
    if (!is_alone) {
        npu_open(x);
    }
    npu_task_lines(x, s);
    if (!is_alone) {
        npu_close(x, "");
    }
}

static void npu_slot_set(npu_expand *x, const ptowsp_statement *s) {
    npu_before_exprs(x, s->node, &s->value, 1);
    npu_add(x, "%s.set_slot(%u, ", x->walker, s->slot);
    npu_add_expr(x, s->value, NPU_LITERAL_TYPED);
    npu_line(x, ");");
}

static void npu_slot_load(npu_expand *x, const ptowsp_statement *s) {
    const ptowsp_load_info *load = &x->tables->loads[s->load];
    uint32_t exprs[NPU_VIEW_EXPR_MAX + 2], count = npu_view_exprs(&load->view, exprs);
    const uint32_t element[] = {load->row, load->col};
    memcpy(exprs + count, element, sizeof element);
    npu_before_exprs(x, s->node, exprs, count + 2);
    npu_add(x, "%s.load_slot(%u, %u, ", x->walker, npu_place(x->emitter, s->node), s->slot);
    npu_add_view(x, &load->view, "");
    npu_add(x, ", ");
    npu_add_exprs(x, element, 2, NPU_LITERAL_PLAIN);
    npu_line(x, ");");
}

static void npu_reset(npu_expand *x, const ptowsp_statement *s) {
    char call[sizeof x->walker + 8];
    snprintf(call, sizeof call, "%s.reset", x->walker);
    npu_edges(x, call, x->tables->edges + s->first, s->count);
}

static void npu_call(npu_expand *x, const ptowsp_statement *s) {
    const uint32_t *args = x->tables->values + s->first;
    npu_before_exprs(x, s->node, args, s->count);
    if (s->scope) {
        npu_open(x);
        npu_scope(x, s->scope);
    }
    npu_add(x, "%s(%s%s", npu_user_name(x->emitter, NPU_WORKLOAD, s->target), x->walker,
            s->count ? ", " : "");
    npu_add_exprs(x, args, s->count, NPU_LITERAL_PLAIN);
    npu_line(x, ");");
    if (s->scope) {
        npu_close(x, "");
    }
}

// -- workloads ------------------------------------------------------------------------------------

// void v_attend(Run &run, i64 v_b, bool v_is_last)
static void npu_add_signature(npu_expand *x, uint32_t i, const ptowsp_statement *s) {
    npu_add(x, "void %s(Run &run", npu_user_name(x->emitter, NPU_WORKLOAD, i));
    for (uint32_t j = 0; j < s->count; j++) {
        uint32_t variable = x->tables->params[s->first + j];
        npu_add(x, ", %s ", npu_type(x->tables->variables[variable].type));
        npu_add_variable(x, variable);
    }
    npu_add(x, ")");
}

static void npu_workload(npu_expand *x, uint32_t i, const ptowsp_statement *s) {
    npu_end_line(x);
    npu_add(x, "workload ");
    npu_print_comment(&x->line, s->name);
    npu_end_comment(x);
    npu_add_signature(x, i, s);
    npu_add(x, " ");
    npu_open(x);
}

// -- all ------------------------------------------------------------------------------------------

// Does a statement contain others, up to its end?
static bool npu_is_block(ptowsp_statement_kind kind) {
    return kind == PTOWSP_STATEMENT_WORKLOAD || kind == PTOWSP_STATEMENT_SCOPE ||
           kind == PTOWSP_STATEMENT_LOOP || kind == PTOWSP_STATEMENT_WHEN ||
           kind == PTOWSP_STATEMENT_PIPELINE || kind == PTOWSP_STATEMENT_PROCESS ||
           kind == PTOWSP_STATEMENT_CONSUME || kind == PTOWSP_STATEMENT_RECEIVE;
}

static uint32_t npu_statement_end(const npu_expand *x, uint32_t i) {
    const ptowsp_statement *s = &x->tables->statements[i];
    if (!npu_is_block(s->kind)) {
        return i;
    }
    const ptowsp_statement *end = &x->tables->statements[s->end];
    return end->kind == PTOWSP_STATEMENT_OTHERWISE ? end->end : s->end;
}

// Is the block of statements [begin, end) so large that it must be split?
static bool npu_block_is_large(const npu_expand *x, uint32_t begin, uint32_t end) {
    const ptowsp_statement *s = &x->tables->statements[begin - 1];
    return end - begin > NPU_FUNCTION_MAX && s->kind != PTOWSP_STATEMENT_PIPELINE;
}

static void npu_function_end(npu_expand *x, npu_block *block) {
    if (block->weight) {
        npu_close(x, ";");
        npu_line(x, "part_%u();", block->function);
        block->weight = 0;
    }
}

// Before statement i of a split block: opens a function for it, if it does not fit into the open
// one. A large statement is itself split, and leaves little.
static void npu_function_step(npu_expand *x, npu_block *block, uint32_t i) {
    uint32_t size = npu_statement_end(x, i) + 1 - i;
    uint32_t weight = size <= NPU_FUNCTION_MAX ? size : 2 + 2 * (size / NPU_FUNCTION_MAX);
    if (block->weight + weight > NPU_FUNCTION_MAX) {
        npu_function_end(x, block);
    }
    if (!block->weight) {
        block->function = ++x->function_count;
        npu_add(x, "const auto part_%u = [&]() __attribute__((noinline)) ", block->function);
        npu_open(x);
    }
    block->weight += weight;
}

static void npu_block_begin(npu_expand *x, uint32_t i, const ptowsp_statement *s) {
    if (!NPU_ROOM(x->blocks, x->block_capacity, (uint64_t)x->block_count + 1)) {
        x->is_out_of_memory = true;
    } else {
        npu_block *block = &x->blocks[x->block_count++];
        memset(block, 0, sizeof *block);
        block->is_split = npu_block_is_large(x, i + 1, s->end);
    }
}

static void npu_end(npu_expand *x, const ptowsp_statement *end) {
    const ptowsp_statement *begin = &x->tables->statements[end->begin];
    if (x->block_count > 0) {
        npu_function_end(x, &x->blocks[x->block_count - 1]);
    }
    if (begin->kind == PTOWSP_STATEMENT_PIPELINE || begin->kind == PTOWSP_STATEMENT_PROCESS) {
        npu_pipeline_end(x, begin);
    } else {
        npu_close(x, "");
    }
    if (begin->kind == PTOWSP_STATEMENT_LOOP && begin->scope) {
        npu_close(x, "");
    }
    x->block_count -= x->block_count > 0;
}

static void npu_otherwise(npu_expand *x, uint32_t i, const ptowsp_statement *s) {
    if (x->block_count > 0) {
        npu_block *block = &x->blocks[x->block_count - 1];
        npu_function_end(x, block);
        block->is_split = npu_block_is_large(x, i + 1, s->end);
    }
    x->depth--;
    npu_add(x, "} else ");
    npu_open(x);
}

static void npu_statement(npu_expand *x, uint32_t i) {
    const ptowsp_statement *s = &x->tables->statements[i];
    if (s->kind != PTOWSP_STATEMENT_END && s->kind != PTOWSP_STATEMENT_OTHERWISE &&
        x->block_count > 0 && x->blocks[x->block_count - 1].is_split) {
        npu_function_step(x, &x->blocks[x->block_count - 1], i);
    }
    if (npu_is_block(s->kind)) {
        npu_block_begin(x, i, s);
    }
    switch (s->kind) {
    case PTOWSP_STATEMENT_WORKLOAD: npu_workload(x, i, s); break;
    case PTOWSP_STATEMENT_SCOPE:
        npu_open(x);
        if (s->scope) {
            npu_scope(x, s->scope);
        }
        break;
    case PTOWSP_STATEMENT_LOOP: npu_loop(x, s); break;
    case PTOWSP_STATEMENT_WHEN: npu_when(x, i, s); break;
    case PTOWSP_STATEMENT_OTHERWISE: npu_otherwise(x, i, s); break;
    case PTOWSP_STATEMENT_CALL: npu_call(x, s); break;
    case PTOWSP_STATEMENT_TASK: npu_task(x, i, s); break;
    case PTOWSP_STATEMENT_SLOT_SET: npu_slot_set(x, s); break;
    case PTOWSP_STATEMENT_SLOT_LOAD: npu_slot_load(x, s); break;
    case PTOWSP_STATEMENT_RESET: npu_reset(x, s); break;
    case PTOWSP_STATEMENT_END: npu_end(x, s); break;
    default: npu_pipeline_statement(x, i, s); break;
    }
}

// All workloads but the first, which has no caller.
static void npu_prototypes(npu_expand *x) {
    const ptowsp_statement *all = x->tables->statements;
    const uint32_t second = all[0].end + 1, count = x->tables->statement_count;
    if (second < count) {
        npu_end_line(x);
    }
    for (uint32_t i = second; i < count; i = all[i].end + 1) {
        PTOWSP_ASSERT(all[i].kind == PTOWSP_STATEMENT_WORKLOAD);
        npu_add_signature(x, i, &all[i]);
        npu_line(x, ";");
    }
}

// The requirements of the program's replicas, before any task: bound sizes are not 0.
static void npu_check_replicas(npu_expand *x) {
    for (uint32_t i = 0; i < x->tables->statement_count; i++) {
        const ptowsp_statement *s = &x->tables->statements[i];
        if (s->kind == PTOWSP_STATEMENT_PROCESS && s->axis &&
            x->tables->axes[s->axis].kind != PTOWSP_AXIS_DENSE) {
            npu_print(x->out, "    run.check_replicas(AXIS_%s, %u);\n",
                      npu_name(x->emitter, NPU_AXIS, s->axis), npu_place(x->emitter, s->node));
        }
    }
}

// The sizes of transient tensors, which read bound sizes, symbols and arrays.
static void npu_sizes(npu_expand *x) {
    uint32_t count = x->tables->transient_count;
    npu_add(x, "void wsp_sizes(wsp::Run &run, wsp::Sizes &sizes) ");
    npu_open(x);
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_transient_info *transient = &x->tables->transients[i];
        ptowsp_tensor_desc desc = x->tables->tensors[transient->tensor].desc;
        npu_print_comment(&x->line, desc.name);
        npu_end_comment(x);
        x->part_count = 0;
        for (uint32_t k = 0; k < desc.rank; k++) {
            npu_prepare_expr(x, transient->sizes[k]);
        }
        npu_add(x, "sizes.add({");
        for (uint32_t k = 0; k < desc.rank; k++) {
            npu_add(x, "%s", k ? ", " : "");
            if (transient->sizes[k]) {
                npu_add_expr(x, transient->sizes[k], NPU_LITERAL_TYPED);
            } else {
                npu_print_i64(&x->line, desc.shape[k]);
            }
        }
        npu_line(x, "});");
    }
    npu_close(x, "");
}

static void npu_expand_file(npu_expand *x) {
    npu_add(x, "The tasks of module ");
    npu_print_comment(&x->line, x->tables->name);
    npu_add(x, ", in program order, from the sizes, symbols, arrays and slots of the moment.");
    npu_end_comment(x);
    npu_print(x->out,
              "\n#include \"program.h\"\n#include \"wsp_expand.h\"\n%s\n"
              "// Not all parameters and variables are used.\n"
              "#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
              "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
              "\nnamespace {\n\nusing namespace wsp;\n",
              x->tables->pipeline_count ? "#include \"wsp_pipeline.h\"\n" : "");
    npu_prototypes(x);
    for (uint32_t i = 0; i < x->tables->statement_count; i++) {
        npu_statement(x, i);
    }
    npu_print(x->out, "\n}  // namespace\n\nvoid wsp_expand(wsp::Run &run) {\n");
    npu_check_replicas(x);
    npu_print(x->out, "    %s(run);\n}\n", npu_user_name(x->emitter, NPU_WORKLOAD, 0));
    if (x->tables->transient_count) {
        npu_print(x->out, "\n");
        npu_sizes(x);
    }
}

// Makes the tables, in one block. False when memory is out.
static bool npu_expand_tables(npu_expand *x) {
    const ptowsp_program_tables *t = x->tables;
    const size_t size = (size_t)t->variable_count + t->tensor_count + t->statement_count;
    x->is_entry = (uint8_t *)npu_resize(NULL, size + 1);
    if (!x->is_entry) {
        return false;
    }
    memset(x->is_entry, 0, size + 1);
    x->tensors = x->is_entry + t->variable_count;
    x->seen = x->tensors + t->tensor_count;
    return true;
}

NPU_INTERNAL void npu_expand_emit(npu_emitter *emitter, npu_text *out) {
    npu_expand x;
    memset(&x, 0, sizeof x);
    x.emitter = emitter;
    x.tables = emitter->tables;
    x.out = out;
    snprintf(x.walker, sizeof x.walker, NPU_WALKER);
    if (npu_expand_tables(&x)) {
        npu_expand_file(&x);
    } else {
        x.is_out_of_memory = true;
    }
    out->is_out_of_memory = out->is_out_of_memory || x.is_out_of_memory ||
                            x.line.is_out_of_memory || x.place.is_out_of_memory;
    npu_text_free(&x.line);
    npu_text_free(&x.place);
    npu_resize(x.is_entry, 0);
    npu_resize(x.blocks, 0);
    npu_resize(x.parts, 0);
}
