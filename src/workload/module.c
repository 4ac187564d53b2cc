// Modules: names, declarations, and the first error.
//
// A module is a set of tables that only grow. The calls that fill them keep the first error and
// then do nothing. Ids are indices into the tables; 0 means none. A failed call returns the zero
// id, which later calls accept without another error, because the module has its error already.
//
// Sizes, symbols, arrays, sparse axes and tensors share one table of names, because they share the
// bind functions of a run and the symbol table of a device. Kernels and workloads have tables of
// their own.

#include "module.h"

#include "../base/text.h"

#include <inttypes.h>

// -- errors ---------------------------------------------------------------------------------------

// Words and forms of nodes, by their kind.
static const struct {
    char word[12], form[8];
} pwsp_statement_rows[] = {{"", ""},
                           {"", ""},
#define PWSP_STATEMENT_ROW(kind, word, form, make) {word, form},
                           PWSP_STATEMENTS(PWSP_STATEMENT_ROW)
#undef PWSP_STATEMENT_ROW
};

PWSP_INTERNAL const char *pwsp_statement_form(pwsp_node_kind kind) {
    return pwsp_statement_rows[kind].form;
}

PWSP_INTERNAL void pwsp_module_print_step(const ptowsp_module *module, uint32_t id,
                                          ptowsp_output text) {
    const pwsp_node *node = PWSP_NODE(module, id);
    const char *name = node->variable  ? PWSP_VARIABLE(module, node->variable)->name
                       : node->channel ? PWSP_CHANNEL(module, node->channel)->name
                                       : NULL;
    PTOWSP_ASSERT(node->kind != PWSP_NODE_NONE);
    switch (node->kind) {
    case PWSP_NODE_WORKLOAD: pwsp_text_put(text, pwsp_quoted(node->name).text); return;
    case PWSP_NODE_LISTED:
    case PWSP_NODE_TASK: name = PWSP_KERNEL(module, node->task->kernel)->name; break;
    case PWSP_NODE_CALL: name = node->call->name; break;
    case PWSP_NODE_PIPELINE:
    case PWSP_NODE_PROCESS: name = node->name; break;
    default: break;
    }
    pwsp_text_put(text, pwsp_statement_rows[node->kind].word);
    if (node->kind == PWSP_NODE_SLOT_SET || node->kind == PWSP_NODE_SLOT_LOAD) {
        pwsp_text_format(text, " %u", node->slot);
    } else if (name) {
        pwsp_text_format(text, " %s", pwsp_quoted(name).text);
    }
}

PWSP_INTERNAL void pwsp_print_path(const void *owner, pwsp_print_step print_step,
                                   const uint32_t *path, uint32_t count, ptowsp_output text) {
    uint32_t shown = 0;
    for (size_t length = 0; shown < count; shown++) {
        ptowsp_output_buffer step = {NULL, 0, 0};
        print_step(owner, path[shown], ptowsp_output_to_buffer(&step));
        length += step.length + 1;
        if (shown > 0 && length > PWSP_PLACE_TEXT_MAX) {
            print_step(owner, path[count - 1], text);
            pwsp_text_format(text, "/%s", shown + 1 < count ? ".../" : "");
            break;
        }
    }
    for (uint32_t i = shown; i > 0; i--) {
        print_step(owner, path[i - 1], text);
        pwsp_text_format(text, "%s", i > 1 ? "/" : "");
    }
}

static void pwsp_module_print_step_of(const void *module, uint32_t node, ptowsp_output text) {
    pwsp_module_print_step((const ptowsp_module *)module, node, text);
}

static void pwsp_module_print_place(const ptowsp_module *module, uint32_t node,
                                    ptowsp_output text) {
    uint32_t path[PTOWSP_MODULE_NEST_MAX + 2];
    uint32_t count = 0;
    for (uint32_t at = node; at; at = PWSP_NODE(module, at)->parent) {
        path[count++] = at;
    }
    pwsp_print_path(module, pwsp_module_print_step_of, path, count, text);
}

static void pwsp_module_set_error(ptowsp_module *module, uint32_t place, ptowsp_status status,
                                  uint64_t index, const char *format, va_list args) {
    if (module->status != PTOWSP_OK) {
        return;
    }
    ptowsp_output_buffer buffer = {module->text, sizeof module->text, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    if (place) {
        pwsp_module_print_place(module, place, text);
        if (module->task_kernel) {
            pwsp_text_format(text, "/task %s", PWSP_KERNEL(module, module->task_kernel)->name);
        }
    } else {
        pwsp_text_format(text, "%s", module->name);
    }
    pwsp_text_format(text, ": ");
    pwsp_text_vformat(text, format, args);
    module->status = status;
    module->index = index;
}

PWSP_INTERNAL uint32_t pwsp_module_fail(ptowsp_module *module, ptowsp_status status, uint64_t index,
                                        const char *format, ...) {
    va_list args;
    va_start(args, format);
    pwsp_module_set_error(module, module->open, status, index, format, args);
    va_end(args);
    return 0;
}

PWSP_INTERNAL uint32_t pwsp_module_fail_at(ptowsp_module *module, uint32_t node,
                                           ptowsp_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    pwsp_module_set_error(module, node, status, PTOWSP_NO_INDEX, format, args);
    va_end(args);
    return 0;
}

PWSP_INTERNAL bool pwsp_module_takes(ptowsp_module *module, const void *desc, const char *what) {
    if (pwsp_module_is_good(module) && !desc) {
        PWSP_MODULE_REFUSE(module, "%s: desc is NULL", what);
    }
    return pwsp_module_is_good(module);
}

PWSP_INTERNAL uint32_t pwsp_module_no_memory(ptowsp_module *module) {
    return pwsp_module_fail(module, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "out of memory");
}

ptowsp_error ptowsp_module_error(const ptowsp_module *module) {
    PTOWSP_ASSERT(module);
    ptowsp_error error = {module->status, module->index, module->text};
    return error;
}

// -- tables and names -----------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_module_add(ptowsp_module *module, void *items, uint64_t *count,
                                       uint64_t *capacity, size_t item_size) {
    uint64_t id = *count ? *count : 1;
    if (!pwsp_module_is_good(module)) {
        return 0;
    }
    if (id >= UINT32_MAX ||
        !pwsp_memory_grow(&module->memory, items, capacity, id + 1, item_size)) {
        return pwsp_module_no_memory(module);
    }
    *count = id + 1;
    return (uint32_t)id;
}

PWSP_INTERNAL void *pwsp_module_copy(ptowsp_module *module, const void *data, size_t size) {
    if (!pwsp_module_is_good(module)) {
        return NULL;
    }
    void *copy = pwsp_arena_take(&module->arena, size, sizeof(uint64_t));
    if (!copy) {
        pwsp_module_no_memory(module);
        return NULL;
    }
    return size > 0 ? memcpy(copy, data, size) : copy;
}

PWSP_INTERNAL const char *pwsp_module_name(ptowsp_module *module, const char *what,
                                           const char *name) {
    if (!pwsp_module_is_good(module)) {
        return NULL;
    }
    if (!name) {
        PWSP_MODULE_REFUSE(module, "the name of this %s is NULL", what);
        return NULL;
    }
    if (!pwsp_name_is_valid(name)) {
        PWSP_MODULE_REFUSE(module,
                           "the name of this %s is not 1 to %d printable ASCII characters without "
                           "quotes and backslash",
                           what, PTOWSP_NAME_MAX);
        return NULL;
    }
    const char *copy = pwsp_arena_copy(&module->arena, name);
    if (!copy) {
        pwsp_module_no_memory(module);
    }
    return copy;
}

PWSP_INTERNAL const pwsp_name *pwsp_module_find(ptowsp_module *module, const char *name) {
    const pwsp_name *found = pwsp_names_find(&module->bindables, name);
    if (found && strcmp(found->text, name) != 0) {
        PWSP_MODULE_REFUSE(module, "the names %s and %s have the same hash; rename one",
                           found->text, name);
        return NULL;
    }
    return found;
}

PWSP_INTERNAL uint32_t pwsp_module_axis(const ptowsp_module *module, const char *name,
                                        pwsp_axis_kind plan) {
    const pwsp_name *found = pwsp_names_get(&module->bindables, name);
    if (!found || found->kind == PWSP_BIND_SYMBOL || found->kind == PWSP_BIND_TENSOR) {
        return 0;
    }
    uint32_t id = found->kind == PWSP_BIND_ARRAY ? PWSP_ARRAY(module, found->index)->ragged_axis
                                                 : found->index;
    while (id &&
           (PWSP_AXIS(module, id)->kind < PWSP_AXIS_PLAN ? plan != PWSP_AXIS_PLAN
                                                         : PWSP_AXIS(module, id)->kind != plan)) {
        id = PWSP_AXIS(module, id)->next;
    }
    return id;
}

// The kind of a named thing, "an axis". Lengths are an axis in the words of the module.
static const char *pwsp_bindable_text(const ptowsp_module *module, const pwsp_name *name) {
    switch ((pwsp_bindable)name->kind) {
    case PWSP_BIND_NOTHING:
    case PWSP_BIND_SIZE:
    case PWSP_BIND_CSR:
    case PWSP_BIND_PLAN: return "an axis";
    case PWSP_BIND_SYMBOL: return "a symbol";
    case PWSP_BIND_ARRAY:
        return PWSP_ARRAY(module, name->index)->is_lengths ? "an axis" : "an array";
    default: PTOWSP_ASSERT(name->kind == PWSP_BIND_TENSOR); return "a tensor";
    }
}

PWSP_INTERNAL const char *pwsp_module_bindable(ptowsp_module *module, const char *what,
                                               const char *name, pwsp_bindable kind,
                                               uint32_t index) {
    const char *copy = pwsp_module_name(module, what, name);
    const pwsp_name *found = copy ? pwsp_module_find(module, name) : NULL;
    if (found) {
        PWSP_MODULE_REFUSE(module, "%s %s: the name is already that of %s", what, name,
                           pwsp_bindable_text(module, found));
    }
    if (!pwsp_module_is_good(module)) {
        return NULL;
    }
    if (!pwsp_names_add(&module->bindables, &module->memory, copy, (uint32_t)kind, index)) {
        pwsp_module_no_memory(module);
        return NULL;
    }
    return copy;
}

// -- modules --------------------------------------------------------------------------------------

ptowsp_status ptowsp_module_create(ptowsp_context *context, const ptowsp_module_desc *desc,
                                   ptowsp_module **out_module) {
    PTOWSP_ASSERT(context);
    if (!out_module) {
        return PWSP_REFUSE(context, "module: out_module is NULL");
    }
    *out_module = NULL;
    const char *name = desc && desc->name ? desc->name : PWSP_MODULE_UNNAMED;
    uint32_t slot_count = desc && desc->slot_count ? desc->slot_count : PTOWSP_SLOT_COUNT;
    if (!pwsp_name_is_valid(name)) {
        return PWSP_REFUSE(context,
                           "module: its name is not 1 to %d printable ASCII characters without "
                           "quotes and backslash",
                           PTOWSP_NAME_MAX);
    }
    if (slot_count > PTOWSP_SLOT_COUNT_MAX) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, slot_count,
                         "module %s: %u slots are more than %d", name, slot_count,
                         PTOWSP_SLOT_COUNT_MAX);
    }
    ptowsp_module *module =
        (ptowsp_module *)pwsp_memory_alloc(&context->memory, sizeof(ptowsp_module));
    if (module) {
        module->context = context;
        pwsp_context_own(context);
        module->slot_count = slot_count;
        module->index = PTOWSP_NO_INDEX;
        module->memory = pwsp_blocks_begin(&module->blocks, &context->memory);
        pwsp_arena_init(&module->arena, &module->memory);
        module->name = pwsp_arena_copy(&module->arena, name);
    }
    if (!module || !module->name) {
        ptowsp_module_destroy(module);
        return PWSP_NO_MEMORY(context, "module: out of memory");
    }
    *out_module = module;
    return PTOWSP_OK;
}

void ptowsp_module_destroy(ptowsp_module *module) {
    if (!module) {
        return;
    }
    pwsp_context_disown(module->context);
    for (uint32_t i = 1; i < module->kernels.count; i++) {
        pwsp_tile_code_release(PWSP_KERNEL(module, i)->code);
    }
    while (module->bodies) {
        ptowsp_body *next = module->bodies->next;
        pwsp_body_free(module->bodies);
        module->bodies = next;
    }
    pwsp_blocks_free(&module->blocks);
    PWSP_FREE(&module->context->memory, module, 1);
}

// -- axes -----------------------------------------------------------------------------------------

static ptowsp_axis pwsp_axis_id(uint32_t id) {
    ptowsp_axis axis = {id};
    return axis;
}

static ptowsp_axis pwsp_axis_make(ptowsp_module *module, const char *name, pwsp_axis_kind kind,
                                  pwsp_bindable bindable, int64_t size) {
    uint32_t id = pwsp_module_is_good(module) ? PWSP_MODULE_ADD(module, module->axes) : 0;
    const char *copy = id ? pwsp_module_bindable(module, "axis", name, bindable, id) : NULL;
    if (!copy) {
        return pwsp_axis_id(0);
    }
    pwsp_axis_info info = {copy, kind, id, 0, 0, size, 0};
    *PWSP_AXIS(module, id) = info;
    return pwsp_axis_id(id);
}

ptowsp_axis ptowsp_axis_dense(ptowsp_module *module, const char *name, int64_t size) {
    ptowsp_axis axis = pwsp_axis_make(module, name, PWSP_AXIS_DENSE, PWSP_BIND_NOTHING, size);
    if (axis.id && size < 0) {
        axis.id = PWSP_MODULE_REFUSE(module, "axis %s: its size is %" PRId64, name, size);
    }
    return axis;
}

ptowsp_axis ptowsp_axis_dynamic(ptowsp_module *module, const char *name) {
    return pwsp_axis_make(module, name, PWSP_AXIS_DYNAMIC, PWSP_BIND_SIZE, 0);
}

ptowsp_axis ptowsp_axis_sparse(ptowsp_module *module, const char *name) {
    return pwsp_axis_make(module, name, PWSP_AXIS_SPARSE, PWSP_BIND_CSR, 0);
}

// A ragged axis is its array of lengths, which an expression may have named before.
ptowsp_axis ptowsp_axis_ragged(ptowsp_module *module, const char *name) {
    if (!pwsp_module_is_good(module)) {
        return pwsp_axis_id(0);
    }
    const char *copy = pwsp_module_name(module, "axis", name);
    const pwsp_name *found = copy ? pwsp_module_find(module, name) : NULL;
    uint32_t array = found && found->kind == PWSP_BIND_ARRAY ? found->index : 0;
    if (array && !PWSP_ARRAY(module, array)->is_lengths) {
        ptowsp_dtype dtype = PWSP_ARRAY(module, array)->dtype;
        if (dtype != PTOWSP_I32 && dtype != PTOWSP_I64 && dtype != PTOWSP_U32 &&
            dtype != PTOWSP_U64) {
            PWSP_MODULE_REFUSE(module,
                               "axis %s: its lengths are read as %s; they are i32, i64, u32 or u64",
                               name, ptowsp_dtype_name(dtype));
        }
    } else {
        array = PWSP_MODULE_ADD(module, module->arrays);
        copy = array ? pwsp_module_bindable(module, "axis", name, PWSP_BIND_ARRAY, array) : NULL;
    }
    uint32_t id = PWSP_MODULE_ADD(module, module->axes);
    if (id) {
        PWSP_ARRAY(module, array)->name = copy;
        PWSP_ARRAY(module, array)->is_lengths = true;
        PWSP_ARRAY(module, array)->ragged_axis = id;
        pwsp_axis_info info = {copy, PWSP_AXIS_RAGGED, id, 0, array, 0, 0};
        *PWSP_AXIS(module, id) = info;
    }
    return pwsp_axis_id(id);
}

ptowsp_axis ptowsp_axis_row(ptowsp_module *module, ptowsp_axis axis, ptowsp_expr row) {
    if (!pwsp_module_is_good(module)) {
        return pwsp_axis_id(0);
    }
    if (axis.id == 0 || axis.id >= module->axes.count) {
        return pwsp_axis_id(PWSP_MODULE_REFUSE(module, "axis_row: there is no axis %u", axis.id));
    }
    pwsp_axis_info info = *PWSP_AXIS(module, axis.id);
    if (info.kind < PWSP_AXIS_RAGGED || info.kind == PWSP_AXIS_PLAN_LANES || info.row) {
        return pwsp_axis_id(PWSP_MODULE_REFUSE(
            module, "axis %s: only ragged and sparse axes, units and merges of plans have rows%s",
            info.name, info.row ? ", and this is one already" : ""));
    }
    info.row = pwsp_module_use(module, row, PTOWSP_TYPE_I64, "the row of an axis");
    uint32_t id = info.row ? PWSP_MODULE_ADD(module, module->axes) : 0;
    if (id) {
        *PWSP_AXIS(module, id) = info;
    }
    return pwsp_axis_id(id);
}

// -- tensors --------------------------------------------------------------------------------------

ptowsp_tensor ptowsp_tensor_make(ptowsp_module *module, const ptowsp_tensor_desc *desc) {
    ptowsp_tensor tensor = {0};
    if (!pwsp_module_takes(module, desc, "tensor")) {
        return tensor;
    }
    const char *name = desc->name ? desc->name : "";
    if (!pwsp_name_is_valid(name)) {
        pwsp_module_name(module, "tensor", name);  // fails
    } else if (ptowsp_dtype_size(desc->dtype) == 0) {
        PWSP_MODULE_REFUSE(module, "tensor %s: %d is no data type", name, (int)desc->dtype);
    } else if (desc->rank > PTOWSP_TENSOR_RANK_MAX) {
        PWSP_MODULE_REFUSE(module, "tensor %s: rank %u is more than %d", name, desc->rank,
                           PTOWSP_TENSOR_RANK_MAX);
    } else if ((uint32_t)desc->location > PTOWSP_LOCATION_L1) {
        PWSP_MODULE_REFUSE(module, "tensor %s: %d is no location", name, (int)desc->location);
    }
    for (uint32_t i = 0; pwsp_module_is_good(module) && i < desc->rank; i++) {
        if (desc->shape[i] < PTOWSP_DYNAMIC) {
            pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, i,
                             "tensor %s: size %" PRId64 " of dimension %u", name, desc->shape[i],
                             i);
        }
    }
    uint32_t id = PWSP_MODULE_ADD(module, module->tensors);
    const char *copy =
        id ? pwsp_module_bindable(module, "tensor", name, PWSP_BIND_TENSOR, id) : NULL;
    if (copy) {
        *PWSP_TENSOR(module, id) = *desc;
        PWSP_TENSOR(module, id)->name = copy;
        tensor.id = id;
    }
    return tensor;
}

// Checks the sizes of a transient tensor; false with an error.
static bool pwsp_transient_sizes(ptowsp_module *module, const ptowsp_tensor_desc *desc,
                                 const ptowsp_expr *sizes, uint32_t *out_sizes) {
    for (uint32_t i = 0; i < desc->rank; i++) {
        bool is_given = sizes && sizes[i].id;
        if (is_given != (desc->shape[i] == PTOWSP_DYNAMIC)) {
            return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, i,
                                    is_given
                                        ? "transient tensor %s: dimension %u has a size and an "
                                          "expression"
                                        : "transient tensor %s: the size of dimension %u needs an "
                                          "expression",
                                    desc->name, i);
        }
        char what[PTOWSP_NAME_MAX + 48];
        pwsp_text_into(what, sizeof what, "transient tensor %s: the size", desc->name);
        out_sizes[i] = is_given ? pwsp_module_use(module, sizes[i], PTOWSP_TYPE_I64, what) : 0;
    }
    return pwsp_module_is_good(module);
}

ptowsp_tensor ptowsp_tensor_transient(ptowsp_module *module, const ptowsp_tensor_desc *desc,
                                      const ptowsp_expr *sizes) {
    ptowsp_tensor none = {0}, tensor = ptowsp_tensor_make(module, desc);
    PWSP_ZERO(pwsp_transient_info, made);
    made.tensor = tensor.id;
    if (tensor.id == 0 || !pwsp_transient_sizes(module, desc, sizes, made.sizes)) {
        return none;
    }
    uint32_t id = PWSP_MODULE_ADD(module, module->transients);
    if (id) {
        module->transients.items[id] = made;
    }
    return id ? tensor : none;
}

PWSP_INTERNAL const pwsp_transient_info *pwsp_module_transient(const ptowsp_module *module,
                                                               uint32_t tensor) {
    uint64_t at = 1;
    PWSP_BISECT(at, module->transients.count, module->transients.items[middle].tensor < tensor)
    const bool is_there =
        at < module->transients.count && module->transients.items[at].tensor == tensor;
    return is_there ? &module->transients.items[at] : NULL;
}
