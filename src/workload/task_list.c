// Lists of tasks: making them, and compiling them.
//
// A list is a node with a child for each kernel that it uses. So everything that is the same for all
// tasks of a kernel (its place in texts, its lanes, its keys) is compiled like a task of the tree:
//
//      list                      0  reset edges           each entry has an explicit edge of its own
//        listed load             1  list            -> 4
//        listed add              2    listed load         where records and keys find their task
//                                3    listed add
//                                4  next of list          an event each time, as task_list_walk.c has them
//
// The arrays stay with the user. A program adds a number for each entry and each edge: the list of
// edges that arrivals point into (program.h).

#include "../data/digest.h"
#include "build.h"
#include "compile.h"

#include <inttypes.h>

#define PWSP_TASK_LIST_EDGE_MAX INT32_MAX

// -- checks ---------------------------------------------------------------------------------------

static bool pwsp_task_list_refuse(ptowsp_module *module, uint64_t index, const char *what,
                                  const char *why) {
    return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, index, "list: %s %" PRIu64 " %s", what,
                            index, why);
}

// Checks one of the arrays: are they there, and as long as they have to be?
static bool pwsp_task_list_check_array(ptowsp_module *module, const char *name, const void *array,
                                       uint64_t count, uint64_t needed) {
    if (count == needed && (array || count == 0)) {
        return true;
    }
    pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, count,
                     array || count == 0 ? "list: %s has %" PRIu64
                                           " elements; the kernels of its tasks take %" PRIu64
                                         : "list: %s is NULL, with %" PRIu64
                                           " elements of %" PRIu64,
                     name, count, needed);
    return false;
}

static bool pwsp_task_list_check_head(ptowsp_module *module, const ptowsp_task_list *list) {
    const char *null = !list                                    ? "list"
                       : !list->kernels                         ? "kernels"
                       : list->edge_count && !list->edges       ? "edges"
                       : list->edge_count && !list->edge_begins ? "edge_begins"
                       : list->scope_count && !list->scopes     ? "scopes"
                                                                : NULL;
    if (null) {
        PWSP_MODULE_REFUSE(module, "list: %s is NULL", null);
    } else if (list->task_count == 0) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, 0, "list: it has no tasks");
    } else if (list->task_count > PTOWSP_LIST_TASK_MAX ||
               list->edge_count > PWSP_TASK_LIST_EDGE_MAX) {
        pwsp_module_fail(module, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "list: %u tasks and %" PRIu64 " edges; at most %u and %d",
                         list->task_count, list->edge_count, PTOWSP_LIST_TASK_MAX,
                         PWSP_TASK_LIST_EDGE_MAX);
    } else if (module->mesh || (module->open && pwsp_node_process(module, module->open))) {
        pwsp_module_fail(module, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                         module->mesh
                             ? "list: the module has a mesh, over which only tasks of loops "
                               "are placed"
                             : "list: a list of tasks in a process of a pipeline");
    }
    return pwsp_module_is_good(module);
}

// Counts the arguments of kernels, and sums the cycles.
static bool pwsp_task_list_check_tasks(ptowsp_module *module, const ptowsp_task_list *list) {
    uint64_t axes = 0, views = 0, scalars = 0, cycles = 0;
    for (uint32_t i = 0; i < list->task_count; i++) {
        const uint32_t id = list->kernels[i].id;
        if (id == 0) {
            continue;
        }
        if (id >= module->kernels.count) {
            return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, i,
                                    "list: task %u: there is no kernel %u", i, id);
        }
        const pwsp_kernel_info *kernel = PWSP_KERNEL(module, id);
        if (kernel->variant_count || kernel->unit == PTOWSP_UNIT_LINK) {
            return pwsp_task_list_refuse(module, i, "task",
                                         kernel->variant_count
                                             ? "is of a choice; name one of its kernels"
                                             : "is a collective");
        }
        axes += kernel->axis_count;
        views += kernel->tile_count;
        scalars += kernel->scalar_count;
        if (list->cycles && list->cycles[i] > PTOWSP_CYCLES_MAX - cycles) {
            return pwsp_task_list_refuse(module, i, "task",
                                         "and those before it take more than 2^63 - 1 cycles");
        }
        cycles += list->cycles ? list->cycles[i] : 0;
    }
    return pwsp_task_list_check_array(module, "axes", list->axes, list->axis_count, axes) &&
           pwsp_task_list_check_array(module, "views", list->views, list->view_count, views) &&
           pwsp_task_list_check_array(module, "scalars", list->scalars, list->scalar_count,
                                      scalars);
}

// Why a view of a tensor of the module does not suit a parameter, or NULL. Its place is checked when
// memory is bound.
static const char *pwsp_task_list_view_wrong(const ptowsp_module *module,
                                             const ptowsp_list_view *view,
                                             const ptowsp_tile_param *tile) {
    const uint32_t id = view->tensor.id;
    if (PWSP_TENSOR(module, id)->dtype != tile->dtype) {
        return "has a view of another data type than its parameter";
    }
    if (pwsp_module_transient(module, id)) {
        return "has a view of a transient tensor, which only tasks of loops use";
    }
    const bool is_rows = tile->rows == PTOWSP_DYNAMIC || !view->rows || view->rows == tile->rows;
    const bool is_cols = tile->cols == PTOWSP_DYNAMIC || !view->cols || view->cols == tile->cols;
    if (!is_rows || !is_cols || view->rows > INT32_MAX || view->cols > INT32_MAX) {
        return "has a view of another size than its parameter";
    }
    return view->row < 0 || view->col < 0 || view->matrix < 0 ? "has a view that begins before 0"
                                                              : NULL;
}

static bool pwsp_task_list_check_views(ptowsp_module *module, const ptowsp_task_list *list) {
    const ptowsp_list_view *view = list->views;
    for (uint32_t i = 0; i < list->task_count; i++) {
        const uint32_t id = list->kernels[i].id;
        const uint32_t count = id ? PWSP_KERNEL(module, id)->tile_count : 0;
        for (uint32_t k = 0; k < count; k++, view++) {
            const uint32_t tensor = view->tensor.id;
            if (tensor == 0 || tensor >= module->tensors.count) {
                return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, i,
                                        "list: task %u: there is no tensor %u", i, tensor);
            }
            const char *wrong =
                pwsp_task_list_view_wrong(module, view, &PWSP_KERNEL(module, id)->tiles[k]);
            if (wrong) {
                return pwsp_task_list_refuse(module, i, "task", wrong);
            }
            module->viewed = tensor > module->viewed ? tensor : module->viewed;
        }
    }
    return true;
}

static bool pwsp_task_list_check_edges(ptowsp_module *module, const ptowsp_task_list *list) {
    uint64_t begin = 0;
    if (!list->edge_begins) {
        return true;
    }
    if (list->edge_begins[0] != 0 || list->edge_begins[list->task_count] != list->edge_count) {
        return pwsp_task_list_refuse(module, list->edge_begins[0] ? 0 : list->task_count,
                                     "edge_begins",
                                     "is not 0 at the start and edge_count at the end");
    }
    for (uint32_t i = 0; i < list->task_count; i++) {
        const uint64_t end = list->edge_begins[i + 1];
        if (end < begin || end > list->edge_count) {
            return pwsp_task_list_refuse(module, i + UINT64_C(1), "edge_begins",
                                         "is below the one before, or over edge_count");
        }
        for (; begin < end; begin++) {
            if (list->edges[begin] >= i) {
                return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, begin,
                                        "list: edge %" PRIu64
                                        " lets task %u wait for task %u, which %s",
                                        begin, i, list->edges[begin],
                                        list->edges[begin] >= list->task_count ? "is not there"
                                        : list->edges[begin] == i              ? "is itself"
                                                                               : "comes after it");
            }
        }
    }
    return true;
}

// Finds the depth of scopes, that around all included.
static bool pwsp_task_list_check_scopes(ptowsp_module *module, const ptowsp_task_list *list,
                                        uint32_t *out_depth) {
    uint64_t ends[PTOWSP_MODULE_NEST_MAX + 1];
    uint32_t depth = 0, first = 0;
    ends[depth++] = list->task_count;
    *out_depth = 1;
    for (uint32_t i = 0; i < list->scope_count; i++) {
        const ptowsp_list_scope *scope = &list->scopes[i];
        const uint64_t end = scope->first + (uint64_t)scope->count;
        if (scope->count == 0 || scope->first < first || end > list->task_count) {
            return pwsp_task_list_refuse(module, i, "scope",
                                         scope->count == 0      ? "is empty"
                                         : scope->first < first ? "begins before the one before it"
                                                                : "reaches beyond the last task");
        }
        first = scope->first;
        while (ends[depth - 1] <= first) {
            depth--;
        }
        if (end > ends[depth - 1]) {
            return pwsp_task_list_refuse(module, i, "scope", "overlaps one that it is not in");
        }
        if (depth > PTOWSP_MODULE_NEST_MAX) {
            return pwsp_module_fail(module, PTOWSP_LIMIT_EXCEEDED, i,
                                    "list: more than %d scopes in one another",
                                    PTOWSP_MODULE_NEST_MAX);
        }
        ends[depth++] = end;
        *out_depth = depth > *out_depth ? depth : *out_depth;
    }
    return true;
}

// -- making ---------------------------------------------------------------------------------------

// The node of a kernel's tasks. Their values are known task by task; as expressions they are 0.
static bool pwsp_task_list_add_kernel(ptowsp_module *module, uint32_t id) {
    const pwsp_kernel_info *kernel = PWSP_KERNEL(module, id);
    const uint32_t zero = ptowsp_i64(module, 0).id;
    uint32_t zeros[PTOWSP_TASK_AXIS_MAX + PTOWSP_TASK_SCALAR_MAX];
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        zeros[i] = zero;
    }
    PWSP_ZERO(pwsp_task_info, info);
    info.kernel = id;
    info.axes =
        PWSP_MODULE_COPY(module, uint32_t, zeros, kernel->axis_count + kernel->scalar_count);
    info.scalars = info.axes;
    const pwsp_task_info *copy = PWSP_MODULE_COPY(module, pwsp_task_info, &info, 1);
    const uint32_t node = pwsp_node_add(module, PWSP_NODE_LISTED);
    if (node) {
        PWSP_NODE(module, node)->task = copy;
    }
    return node != 0;
}

void ptowsp_task_list_make(ptowsp_module *module, const ptowsp_task_list *list) {
    pwsp_task_list_info info;
    if (!pwsp_module_is_good(module) || !pwsp_task_list_check_head(module, list) ||
        !pwsp_task_list_check_tasks(module, list) || !pwsp_task_list_check_views(module, list) ||
        !pwsp_task_list_check_edges(module, list) ||
        !pwsp_task_list_check_scopes(module, list, &info.scope_depth)) {
        return;
    }
    info.given = *list;
    const pwsp_task_list_info *copy = PWSP_MODULE_COPY(module, pwsp_task_list_info, &info, 1);
    const uint32_t node = pwsp_node_add(module, PWSP_NODE_LIST);
    bool *is_used = NULL;
    if (node == 0) {
        return;
    }
    PWSP_NODE(module, node)->list = copy;
    if (!PWSP_ALLOC(&module->memory, is_used, module->kernels.count)) {
        pwsp_module_no_memory(module);
        return;
    }
    const uint32_t around = module->open;
    module->open = node;
    for (uint32_t i = 0; i < list->task_count; i++) {
        const uint32_t kernel = list->kernels[i].id;
        if (kernel && !is_used[kernel]) {
            is_used[kernel] = true;
            if (!pwsp_task_list_add_kernel(module, kernel)) {
                break;
            }
        }
    }
    module->open = around;
    PWSP_FREE(&module->memory, is_used, module->kernels.count);
}

static uint64_t pwsp_task_list_hash_array(uint64_t hash, const void *array, uint64_t count,
                                          uint32_t size) {
    return array ? pwsp_digest(hash, array, count, size, size) : hash;
}

PWSP_INTERNAL uint64_t pwsp_task_list_hash(const ptowsp_task_list *list) {
    uint64_t hash = pwsp_hash_number(PTOWSP_HASH_START, list->task_count);
    for (uint32_t i = 0; i < list->task_count; i++) {
        hash = pwsp_hash_number(hash, list->kernels[i].id);
    }
    for (uint64_t i = 0; i < list->view_count; i++) {
        const ptowsp_list_view *view = &list->views[i];
        const uint64_t parts[6] = {view->tensor.id,     view->rows,
                                   view->cols,          (uint64_t)view->row,
                                   (uint64_t)view->col, (uint64_t)view->matrix};
        hash = pwsp_task_list_hash_array(hash, parts, 6, sizeof parts[0]);
    }
    for (uint32_t i = 0; i < list->scope_count; i++) {
        hash = pwsp_hash_number(hash, list->scopes[i].first);
        hash = pwsp_hash_number(hash,
                                2 * (uint64_t)list->scopes[i].count + list->scopes[i].is_parallel);
    }
    const uint64_t begins = list->edge_begins ? list->task_count + UINT64_C(1) : 0;
    hash = pwsp_task_list_hash_array(hash, list->cycles, list->task_count, 8);
    hash = pwsp_task_list_hash_array(hash, list->axes, list->axis_count, 8);
    hash = pwsp_task_list_hash_array(hash, list->scalars, list->scalar_count, 8);
    hash = pwsp_task_list_hash_array(hash, list->edge_begins, begins, 8);
    return pwsp_task_list_hash_array(hash, list->edges, list->edge_count, 4);
}

// -- compiling ------------------------------------------------------------------------------------

// The list's part of the program's edges, and the reset of its own.
static bool pwsp_task_list_compile_edges(pwsp_compiler *c, uint32_t id, pwsp_task_list_op *list) {
    ptowsp_program *p = c->program;
    const uint64_t count = list->given.task_count, edge_count = list->given.edge_count;
    const uint64_t first = p->edges.count;
    const uint32_t first_edge = p->edge_count;
    if (first + count + edge_count >= UINT32_MAX || first_edge + count >= UINT32_MAX) {
        return pwsp_module_fail_at(c->module, id, PTOWSP_LIMIT_EXCEEDED,
                                   "the lists of the program have 2^32 tasks and edges");
    }
    if (!PWSP_GROW(&p->memory, p->edges.items, p->edges.capacity, first + count + edge_count)) {
        return pwsp_module_no_memory(c->module);
    }
    uint32_t *edges = p->edges.items + first;
    for (uint32_t i = 0; i < count; i++) {
        edges[i] = first_edge + i;
    }
    for (uint64_t i = 0; i < edge_count; i++) {
        edges[count + i] = first_edge + list->given.edges[i];
    }
    list->first_own = (uint32_t)first;
    p->edges.count = first + count + edge_count;
    p->edge_count = first_edge + (uint32_t)count;
    const pwsp_range reset = {(uint32_t)first, (uint32_t)count};
    return pwsp_compiler_reset(c, reset, id);
}

PWSP_INTERNAL bool pwsp_compiler_list(pwsp_compiler *c, uint32_t id) {
    const ptowsp_module *m = c->module;
    ptowsp_program *p = c->program;
    PWSP_ZERO(pwsp_task_list_op, made);
    PTOWSP_ASSERT(!c->is_in_process);
    made.given = PWSP_NODE(m, id)->list->given;
    made.has_edges = made.given.edge_begins &&
                     (p->schedule.dependencies &
                      (PTOWSP_DEPENDENCIES_STRUCTURE | PTOWSP_DEPENDENCIES_EXPLICIT)) != 0;
    uint32_t *ops = PWSP_ARENA_ARRAY(&p->arena, uint32_t, m->kernels.count);
    made.ops = ops;
    if (!ops) {
        pwsp_module_no_memory(c->module);
    }
    uint32_t index;
    pwsp_task_list_op *list = ops ? PWSP_ADD(c, lists, &index) : NULL;
    if (!list || (made.has_edges && !pwsp_task_list_compile_edges(c, id, &made))) {
        return false;
    }
    ptowsp_statement statement = pwsp_statement(PTOWSP_STATEMENT_LIST, id);
    statement.count = made.given.task_count;
    uint32_t said, op = pwsp_compiler_here(c);
    if (!pwsp_compiler_op(c, PWSP_OP_LIST, index, 0, id) ||
        !PWSP_ADD_ITEM(c, statements, &said, statement)) {
        return false;
    }
    for (uint32_t child = PWSP_NODE(m, id)->first; child; child = PWSP_NODE(m, child)->next) {
        ops[PWSP_NODE(m, child)->task->kernel] = pwsp_compiler_here(c);
        if (!pwsp_compiler_task(c, child)) {
            return false;
        }
        p->tasks.items[p->tasks.count - 1].has_cycles = made.given.cycles != NULL;
    }
    p->lists.items[index] = made;
    const ptowsp_list_view *view = made.given.views;
    for (uint32_t i = 0; i < made.given.task_count; i++) {
        const uint32_t used = made.given.kernels[i].id;
        const pwsp_kernel_info *kernel = used ? PWSP_KERNEL(m, used) : NULL;
        for (uint32_t k = 0; kernel && k < kernel->tile_count; k++, view++) {
            p->tensor_is_used[view->tensor.id] = true;
            p->tensor_is_written[view->tensor.id] =
                p->tensor_is_written[view->tensor.id] || kernel->tiles[k].direction != PTOWSP_IN;
        }
    }
    pwsp_compiler_land(c, op);
    return pwsp_compiler_op(c, PWSP_OP_LIST_NEXT, index, 0, id);
}
