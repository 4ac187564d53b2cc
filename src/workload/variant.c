// Choices: a kernel with several variants; each task takes the first that fits.
//
// A choice is sorted once, when it is declared: by priority, then by cost, then by name. A task of
// it becomes tasks of its variants, under conditions, so that all that follows (checks, time, trees)
// sees branches and ordinary tasks:
//
//      task choose                when task.rows <= 16
//                          ->       task small
//                                 otherwise
//                                   task large
//
// Variants that do not fit the task's tensors, and conditions that are constant, leave no trace.

#include "build.h"

#include "../base/text.h"

#include <inttypes.h>

#define PWSP_COST_UNKNOWN UINT64_MAX

// The relation of a variant to a task.
typedef enum pwsp_verdict {
    PWSP_VERDICT_DTYPE,  // a tensor has another data type than its parameter
    PWSP_VERDICT_SIZE,   // a view has other sizes
    PWSP_VERDICT_NEVER,  // its condition is false
    PWSP_VERDICT_IF,     // it depends on values that are not known yet
    PWSP_VERDICT_ALWAYS,
    PWSP_VERDICT_ERROR
} pwsp_verdict;

// -- declaring ------------------------------------------------------------------------------------

// What tasks of a variant cost, as far as it is known.
static uint64_t pwsp_variant_cost(const ptowsp_module *module, const ptowsp_variant *variant,
                                  const ptowsp_cost *cost) {
    const pwsp_kernel_info *kernel = PWSP_KERNEL(module, variant->kernel.id);
    uint64_t cycles = variant->cost ? variant->cost : kernel->cycles;
    cycles = cycles ? cycles : pwsp_kernel_tile_cycles(module, variant->kernel, cost);
    return cycles ? cycles : PWSP_COST_UNKNOWN;
}

// Takes a variant the same arguments as the first one? Data types and sizes of tiles may differ.
static bool pwsp_variant_is_alike(const pwsp_kernel_info *a, const pwsp_kernel_info *b) {
    bool is_alike = a->axis_count == b->axis_count && a->tile_count == b->tile_count &&
                    a->scalar_count == b->scalar_count;
    for (uint32_t i = 0; is_alike && i < a->tile_count; i++) {
        is_alike = a->tiles[i].direction == b->tiles[i].direction;
    }
    for (uint32_t i = 0; is_alike && i < a->scalar_count; i++) {
        is_alike = a->scalars[i].type == b->scalars[i].type;
    }
    return is_alike;
}

// Checks variant i and fills in the module's record of it; false with an error.
static bool pwsp_variant_make(ptowsp_module *module, const ptowsp_choice_desc *desc, uint32_t i,
                              pwsp_variant_info *out) {
    const ptowsp_variant *variant = &desc->variants[i];
    const pwsp_kernel_info *kernel =
        variant->kernel.id < module->kernels.count ? PWSP_KERNEL(module, variant->kernel.id) : NULL;
    out->kernel = variant->kernel.id;
    out->priority = variant->priority;
    if (!kernel || kernel->variant_count || kernel->unit == PTOWSP_UNIT_LINK) {
        return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, i, "choice %s: variant %u is %s",
                                desc->name, i,
                                !kernel                 ? "no kernel of this module"
                                : kernel->variant_count ? "itself a choice"
                                                        : "a collective");
    }
    if (!pwsp_variant_is_alike(PWSP_KERNEL(module, desc->variants[0].kernel.id), kernel)) {
        return pwsp_module_fail(
            module, PTOWSP_INVALID_PARAMS, i, "choice %s: %s takes other arguments than %s",
            desc->name, kernel->name, PWSP_KERNEL(module, desc->variants[0].kernel.id)->name);
    }
    for (uint32_t j = 0; j < i; j++) {
        if (desc->variants[j].kernel.id == variant->kernel.id) {
            return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, i,
                                    "choice %s: %s is there twice", desc->name, kernel->name);
        }
    }
    out->cost = pwsp_variant_cost(module, variant, desc->cost);
    out->condition = variant->condition.id;
    if ((variant->condition.id || variant->condition.module) &&
        (variant->condition.module != module ||
         ptowsp_expr_type(variant->condition) != PTOWSP_TYPE_BOOL)) {
        return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, i,
                                "choice %s: the condition of %s is not bool, or of another module",
                                desc->name, kernel->name);
    }
    return true;
}

// Is a asked before b?
static bool pwsp_variant_is_before(const ptowsp_module *module, const pwsp_variant_info *a,
                                   const pwsp_variant_info *b) {
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    if (a->cost != b->cost) {
        return a->cost < b->cost;
    }
    return strcmp(PWSP_KERNEL(module, a->kernel)->name, PWSP_KERNEL(module, b->kernel)->name) < 0;
}

ptowsp_kernel ptowsp_kernel_choice(ptowsp_module *module, const ptowsp_choice_desc *desc) {
    ptowsp_kernel choice = {0};
    pwsp_variant_info variants[PTOWSP_VARIANT_MAX];
    uint32_t count = 0;
    if (!pwsp_module_is_good(module)) {
        return choice;
    }
    const char *name = desc ? pwsp_module_name(module, "choice", desc->name) : NULL;
    while (name && count < PTOWSP_VARIANT_MAX && desc->variants[count].kernel.id) {
        count++;
    }
    if (!name || count == 0) {
        PWSP_MODULE_REFUSE(module, desc ? "choice %s: it has no variants" : "choice: desc is NULL",
                           name ? name : "");
        return choice;
    }
    for (uint32_t i = 0; i < count; i++) {
        pwsp_variant_info made;
        if (!pwsp_variant_make(module, desc, i, &made)) {
            return choice;
        }
        uint32_t at = i;
        for (; at > 0 && pwsp_variant_is_before(module, &made, &variants[at - 1]); at--) {
            variants[at] = variants[at - 1];
        }
        variants[at] = made;
    }
    const pwsp_kernel_info *first = PWSP_KERNEL(module, variants[0].kernel);
    PWSP_ZERO(pwsp_kernel_info, info);
    info.name = name;
    info.tiles = first->tiles;
    info.scalars = first->scalars;
    info.axis_count = first->axis_count;
    info.tile_count = first->tile_count;
    info.scalar_count = first->scalar_count;
    info.unit = first->unit;
    info.variant_count = count;
    info.variants = PWSP_MODULE_COPY(module, pwsp_variant_info, variants, count);
    choice.id = info.variants ? pwsp_kernel_register(module, &info) : 0;
    return choice;
}

// -- choosing -------------------------------------------------------------------------------------

// The rows or columns of a task: the view's, at most their limit; else the limit, the parameter's or
// the tensor's. A limit beyond the parameter's size counts as it is, so that conditions can tell.
static ptowsp_expr pwsp_variant_size(ptowsp_module *module, const ptowsp_view *view, bool is_row,
                                     int64_t param) {
    const ptowsp_tensor_desc *tensor = view->tensor.id && view->tensor.id < module->tensors.count
                                           ? PWSP_TENSOR(module, view->tensor.id)
                                           : NULL;
    uint32_t from_end = is_row ? 2 : 1;
    int64_t given = is_row ? view->rows : view->cols;
    ptowsp_expr limit = is_row ? view->row_count : view->col_count;
    if (limit.id) {
        return given ? ptowsp_min(ptowsp_i64(module, given), limit) : limit;
    }
    int64_t extent = 1;
    if (!tensor) {
        extent = PTOWSP_DYNAMIC;
    } else if (tensor->rank >= from_end) {
        extent = tensor->shape[tensor->rank - from_end];
    }
    int64_t size = given ? given : param != PTOWSP_DYNAMIC ? param : extent;
    // Up to the edge of a tensor whose size is bound:
    return ptowsp_i64(module, size == PTOWSP_DYNAMIC ? INT64_MAX : size);
}

// The arguments of a task, in the order of ptowsp_task: axes, sizes of tiles, scalars, all i64.
static uint32_t pwsp_variant_args(ptowsp_module *module, const pwsp_kernel_info *kernel,
                                  const ptowsp_task_desc *desc, ptowsp_expr *args) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernel->axis_count; i++) {
        args[count++] = desc->axes[i];
    }
    for (uint32_t i = 0; i < kernel->tile_count; i++) {
        args[count++] = pwsp_variant_size(module, &desc->views[i], true, kernel->tiles[i].rows);
        args[count++] = pwsp_variant_size(module, &desc->views[i], false, kernel->tiles[i].cols);
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        args[count++] = kernel->scalars[i].type == PTOWSP_TYPE_I64
                            ? desc->scalars[i]
                            : ptowsp_cast(desc->scalars[i], PTOWSP_TYPE_I64);
    }
    return count;
}

static bool pwsp_variant_has_size(int64_t given, int64_t param) {
    return given == 0 || param == PTOWSP_DYNAMIC || given == param;
}

// The relation of a variant to a task; *out_condition gets the remaining condition.
static pwsp_verdict pwsp_variant_judge(ptowsp_module *module, const pwsp_variant_info *variant,
                                       const ptowsp_task_desc *desc, ptowsp_expr *out_condition) {
    const pwsp_kernel_info *kernel = PWSP_KERNEL(module, variant->kernel);
    ptowsp_expr args[PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
    for (uint32_t i = 0; i < kernel->tile_count; i++) {
        uint32_t tensor = desc->views[i].tensor.id;
        if (tensor == 0 || tensor >= module->tensors.count) {
            break;  // the task will say so
        }
        if (PWSP_TENSOR(module, tensor)->dtype != kernel->tiles[i].dtype) {
            return PWSP_VERDICT_DTYPE;
        }
        if (!pwsp_variant_has_size(desc->views[i].rows, kernel->tiles[i].rows) ||
            !pwsp_variant_has_size(desc->views[i].cols, kernel->tiles[i].cols)) {
            return PWSP_VERDICT_SIZE;
        }
    }
    if (variant->condition == 0) {
        return PWSP_VERDICT_ALWAYS;
    }
    uint32_t count = pwsp_variant_args(module, kernel, desc, args);
    for (uint32_t i = 0; i < count; i++) {
        if (!pwsp_module_use(module, args[i], PTOWSP_TYPE_I64, "an argument")) {
            return PWSP_VERDICT_ERROR;
        }
    }
    out_condition->module = module;
    out_condition->id = pwsp_expr_with_args(module, variant->condition, args, count);
    if (out_condition->id == 0) {
        return PWSP_VERDICT_ERROR;
    }
    const pwsp_expr_node *node = &module->exprs.nodes[out_condition->id];
    return node->op != PWSP_EXPR_CONST ? PWSP_VERDICT_IF
           : node->value               ? PWSP_VERDICT_ALWAYS
                                       : PWSP_VERDICT_NEVER;
}

// Adds the task of a variant, linked after the earlier ones.
static void pwsp_variant_task(ptowsp_module *module, const ptowsp_task_desc *desc, uint32_t kernel,
                              ptowsp_node *first, uint32_t *last) {
    ptowsp_task_desc task = *desc;
    task.kernel.id = kernel;
    ptowsp_node node = ptowsp_task_make(module, &task);
    if (node.id && *last) {
        PWSP_NODE(module, *last)->variant = node.id;
    }
    *first = first->id ? *first : node;
    *last = node.id;
}

PWSP_INTERNAL ptowsp_node pwsp_task_choose(ptowsp_module *module, const ptowsp_task_desc *desc) {
    const pwsp_kernel_info choice = *PWSP_KERNEL(module, desc->kernel.id);
    ptowsp_node first = {0};
    uint32_t last = 0, opened = 0;
    bool is_sure = false;
    for (uint32_t i = 0; i < choice.variant_count && !is_sure && pwsp_module_is_good(module); i++) {
        ptowsp_expr condition = {NULL, 0};
        module->task_kernel = choice.variants[i].kernel;  // for the place of errors
        pwsp_verdict verdict = pwsp_variant_judge(module, &choice.variants[i], desc, &condition);
        module->task_kernel = 0;
        if (verdict < PWSP_VERDICT_IF || verdict == PWSP_VERDICT_ERROR) {
            continue;
        }
        if (last) {
            ptowsp_otherwise_begin(module);
            opened++;
        }
        is_sure = verdict == PWSP_VERDICT_ALWAYS;
        if (!is_sure) {
            ptowsp_when_begin(module, condition);
        }
        pwsp_variant_task(module, desc, choice.variants[i].kernel, &first, &last);
        if (!is_sure) {
            ptowsp_scope_end(module);
        }
    }
    if (!is_sure && pwsp_module_is_good(module)) {
        PWSP_MODULE_REFUSE(module, "choice %s: %s (ptowsp_kernel_explain says more)", choice.name,
                           last ? "no variant is left where the conditions of all are false"
                                : "no variant fits this task");
    }
    for (; opened > 0 && pwsp_module_is_good(module); opened--) {
        ptowsp_scope_end(module);
    }
    if (!pwsp_module_is_good(module)) {
        first.id = 0;
    }
    return first;
}

// -- explaining -----------------------------------------------------------------------------------

static const char *pwsp_verdict_text(pwsp_verdict verdict, bool is_sure) {
    switch (verdict) {
    case PWSP_VERDICT_DTYPE: return "another data type";
    case PWSP_VERDICT_SIZE: return "another size of tile";
    case PWSP_VERDICT_NEVER: return "its condition is false";
    case PWSP_VERDICT_IF: return is_sure ? "not reached" : "taken if ";
    case PWSP_VERDICT_ALWAYS: return is_sure ? "not reached" : "taken";
    case PWSP_VERDICT_ERROR: break;
    }
    return "wrong";
}

static void pwsp_explain_variant(ptowsp_module *module, const pwsp_variant_info *variant,
                                 const ptowsp_task_desc *task, bool *is_sure, ptowsp_output text) {
    const pwsp_kernel_info *kernel = PWSP_KERNEL(module, variant->kernel);
    ptowsp_expr condition = {module, variant->condition};
    pwsp_verdict verdict = variant->condition ? PWSP_VERDICT_IF : PWSP_VERDICT_ALWAYS;
    pwsp_text_format(text, "  %-20s priority %" PRId32 ", cost ", kernel->name, variant->priority);
    if (variant->cost == PWSP_COST_UNKNOWN) {
        pwsp_text_format(text, "unknown");
    } else {
        pwsp_text_format(text, "%" PRIu64, variant->cost);
    }
    ptowsp_kernel handle = {variant->kernel};
    pwsp_kernel_print_memory(module, handle, text);
    if (task) {
        verdict = pwsp_variant_judge(module, variant, task, &condition);
    }
    pwsp_text_format(text, ": %s", pwsp_verdict_text(verdict, *is_sure));
    if (verdict == PWSP_VERDICT_IF && !*is_sure) {
        ptowsp_expr_print(condition, text);
    }
    pwsp_text_format(text, "\n");
    *is_sure = *is_sure || verdict == PWSP_VERDICT_ALWAYS;
}

void ptowsp_kernel_explain(ptowsp_module *module, ptowsp_kernel kernel,
                           const ptowsp_task_desc *task, ptowsp_output output) {
    const pwsp_kernel_info *info =
        pwsp_module_is_good(module) && kernel.id && kernel.id < module->kernels.count
            ? PWSP_KERNEL(module, kernel.id)
            : NULL;
    if (!info) {
        return;
    }
    bool is_sure = false;
    const pwsp_kernel_info choice = *info;
    pwsp_text_format(output, "%s: %s\n", choice.name,
                     choice.variant_count ? "variants in the order in which they are asked"
                                          : "a kernel, without variants");
    for (uint32_t i = 0; i < choice.variant_count; i++) {
        pwsp_explain_variant(module, &choice.variants[i], task, &is_sure, output);
    }
    if (choice.variant_count && !is_sure) {
        pwsp_text_format(output, "  otherwise            no variant: an error\n");
    }
}
