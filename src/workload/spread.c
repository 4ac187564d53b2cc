// The mesh of a module, how its tensors are spread over it, and the rules of its kernels. What
// follows from these is in place.c.
//
// A tensor is declared with its whole shape; once it is spread, it has the shape of a rank's part,
// which is the same on all ranks. So nothing else knows of the whole.

#include "module.h"

#include "../base/text.h"

#include <inttypes.h>

// Turns the error of a layout function into the module's error.
static void pwsp_spread_fail(ptowsp_module *module) {
    const ptowsp_error error = ptowsp_context_error(module->context);
    pwsp_module_fail(module, error.status, error.index, "%s", error.text);
}

void ptowsp_module_mesh(ptowsp_module *module, const ptowsp_mesh *mesh,
                        ptowsp_algorithm algorithm) {
    if (!pwsp_module_is_good(module)) {
        return;
    }
    PWSP_ZERO(pwsp_mesh_info, made);
    if (module->mesh || module->nodes.count) {
        PWSP_MODULE_REFUSE(module, "mesh: %s",
                           module->mesh ? "there is one already"
                                        : "it comes before the first workload");
    } else if (ptowsp_mesh_check(module->context, mesh, &made.rank_count) != PTOWSP_OK) {
        pwsp_spread_fail(module);
    } else if ((uint32_t)algorithm > PTOWSP_ALGORITHM_RING) {
        PWSP_MODULE_REFUSE(module, "mesh: %d is no algorithm", (int)algorithm);
    } else if (made.rank_count > PTOWSP_RANK_COUNT_MAX) {
        pwsp_module_fail(module, PTOWSP_LIMIT_EXCEEDED, made.rank_count,
                         "mesh: %" PRIu32 " ranks; programs run on at most %d", made.rank_count,
                         PTOWSP_RANK_COUNT_MAX);
    }
    made.algorithm = algorithm;
    for (uint32_t i = 0; pwsp_module_is_good(module) && i < mesh->axis_count; i++) {
        made.mesh.names[i] = pwsp_module_name(module, "axis of a mesh", mesh->names[i]);
        made.mesh.sizes[i] = mesh->sizes[i];
        made.mesh.axis_count = i + 1;
    }
    if (pwsp_module_is_good(module)) {
        module->mesh = PWSP_MODULE_COPY(module, pwsp_mesh_info, &made, 1);
    }
}

// -- tensors --------------------------------------------------------------------------------------

PWSP_INTERNAL int64_t pwsp_spread_pieces(const ptowsp_module *module, const ptowsp_spread *axes,
                                         uint32_t dim) {
    int64_t pieces = 1;
    for (uint32_t a = 0; a < module->mesh->mesh.axis_count; a++) {
        const bool is_cut = axes[a].kind == PTOWSP_SHARDED && axes[a].dim == dim;
        pieces *= is_cut ? (int64_t)module->mesh->mesh.sizes[a] : 1;
    }
    return pieces;
}

// The whole shape of a tensor that has the shape of a part.
PWSP_INTERNAL ptowsp_mesh_layout pwsp_tensor_layout(const ptowsp_module *module, uint32_t tensor) {
    const ptowsp_tensor_desc *desc = PWSP_TENSOR(module, tensor);
    PWSP_ZERO(ptowsp_mesh_layout, layout);
    layout.name = desc->name;
    layout.element_bytes = ptowsp_dtype_size(desc->dtype);
    layout.rank = desc->rank;
    if (module->mesh && tensor < module->spreads.count) {
        const pwsp_spread_info *info = &module->spreads.items[tensor];
        memcpy(layout.spreads, info->axes, sizeof layout.spreads);
    }
    for (uint32_t d = 0; d < desc->rank; d++) {
        const int64_t pieces = module->mesh ? pwsp_spread_pieces(module, layout.spreads, d) : 1;
        layout.shape[d] = desc->shape[d] < 0 ? desc->shape[d] : desc->shape[d] * pieces;
    }
    return layout;
}

ptowsp_status ptowsp_tensor_layout(const ptowsp_module *module, ptowsp_tensor tensor,
                                   ptowsp_mesh_layout *out_layout) {
    if (!module) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (tensor.id == 0 || tensor.id >= module->tensors.count || !out_layout) {
        return pwsp_fail(module->context, PTOWSP_INVALID_PARAMS, tensor.id,
                         "layout: there is no tensor %u, or out_layout is NULL", tensor.id);
    }
    *out_layout = pwsp_tensor_layout(module, tensor.id);
    return PTOWSP_OK;
}

// Has a statement a view of the tensor?
static bool pwsp_tensor_is_viewed(const ptowsp_module *module, uint32_t tensor) {
    for (uint32_t id = 1; tensor <= module->viewed && id < module->nodes.count; id++) {
        const pwsp_node *node = PWSP_NODE(module, id);
        if (node->view && node->view->tensor == tensor) {
            return true;
        }
        const uint32_t count =
            node->kind == PWSP_NODE_TASK ? PWSP_KERNEL(module, node->task->kernel)->tile_count : 0;
        for (uint32_t i = 0; i < count; i++) {
            if (node->task->views[i].tensor == tensor) {
                return true;
            }
        }
    }
    return false;
}

// Checks a tensor with its shape as the whole; false with an error.
static bool pwsp_spread_check(ptowsp_module *module, uint32_t tensor, const ptowsp_spread *axes) {
    const char *name = PWSP_TENSOR(module, tensor)->name;
    ptowsp_mesh_layout layout = pwsp_tensor_layout(module, tensor);
    memcpy(layout.spreads, axes, module->mesh->mesh.axis_count * sizeof *axes);
    for (uint32_t d = 0; d < layout.rank; d++) {
        // Dynamic sizes are bound for parts, and any size is valid.
        layout.shape[d] =
            layout.shape[d] < 0 ? pwsp_spread_pieces(module, axes, d) : layout.shape[d];
    }
    for (uint32_t a = 0; a < module->mesh->mesh.axis_count; a++) {
        if (axes[a].kind == PTOWSP_SHARDED && axes[a].cuts) {
            pwsp_module_fail(module, PTOWSP_UNSUPPORTED, a,
                             "tensor %s: dimension %u is cut at given places by axis '%s'; tensors "
                             "of modules have equal pieces",
                             name, axes[a].dim, module->mesh->mesh.names[a]);
            return false;
        }
    }
    if (ptowsp_mesh_layout_check(module->context, &module->mesh->mesh, &layout) != PTOWSP_OK) {
        pwsp_spread_fail(module);
    }
    return pwsp_module_is_good(module);
}

void ptowsp_tensor_spread(ptowsp_module *module, ptowsp_tensor tensor,
                          const ptowsp_spread *spreads) {
    if (!pwsp_module_is_good(module)) {
        return;
    }
    if (tensor.id == 0 || tensor.id >= module->tensors.count || !spreads) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, tensor.id,
                         "spread: there is no tensor %u, or no spreads", tensor.id);
        return;
    }
    const char *name = PWSP_TENSOR(module, tensor.id)->name;
    if (!module->mesh) {
        PWSP_MODULE_REFUSE(module, "tensor %s: it is spread, and the module has no mesh", name);
        return;
    }
    if ((tensor.id < module->spreads.count && module->spreads.items[tensor.id].is_given) ||
        pwsp_tensor_is_viewed(module, tensor.id)) {
        PWSP_MODULE_REFUSE(module, "tensor %s: a tensor is spread once, and before it is used",
                           name);
        return;
    }
    if (!pwsp_spread_check(module, tensor.id, spreads)) {
        return;
    }
    while (module->spreads.count <= tensor.id) {
        if (!PWSP_MODULE_ADD(module, module->spreads)) {
            return;
        }
    }
    pwsp_spread_info *info = &module->spreads.items[tensor.id];
    memcpy(info->axes, spreads, module->mesh->mesh.axis_count * sizeof *spreads);
    info->is_given = true;
    ptowsp_tensor_desc *desc = PWSP_TENSOR(module, tensor.id);
    for (uint32_t d = 0; d < desc->rank; d++) {
        desc->shape[d] = desc->shape[d] < 0
                             ? desc->shape[d]
                             : desc->shape[d] / pwsp_spread_pieces(module, info->axes, d);
    }
}

// -- kernels --------------------------------------------------------------------------------------

void ptowsp_kernel_rule(ptowsp_module *module, ptowsp_kernel kernel, const char *rule) {
    if (!pwsp_module_is_good(module)) {
        return;
    }
    if (kernel.id == 0 || kernel.id >= module->kernels.count || !rule) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, kernel.id,
                         "rule: there is no kernel %u, or no rule", kernel.id);
        return;
    }
    pwsp_kernel_info *info = PWSP_KERNEL(module, kernel.id);
    pwsp_rule read;
    const char *why = pwsp_name_is_valid(rule) ? pwsp_rule_read(rule, &read)
                                               : "it is empty, too long or not printable";
    char count[64];
    if (!why && info->unit == PTOWSP_UNIT_LINK) {
        why = "a collective has none";
    } else if (!why && info->variant_count) {
        why = "a choice has those of its variants";
    } else if (!why && info->rule) {
        why = "there is one already";
    } else if (!why && read.count != info->tile_count) {
        pwsp_text_into(count, sizeof count, "it has %u words, and the kernel %u tiles", read.count,
                       info->tile_count);
        why = count;
    }
    if (why) {
        PWSP_MODULE_REFUSE(module, "rule of kernel %s: %s", info->name, why);
        return;
    }
    info->rule = PWSP_MODULE_COPY(module, char, rule, strlen(rule) + 1);
}

// -- text -----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_mesh_print(const ptowsp_module *module, ptowsp_output text) {
    const pwsp_mesh_info *info = module->mesh;
    for (uint32_t a = 0; info && a < info->mesh.axis_count; a++) {
        pwsp_text_format(text, "%s%s %" PRIu32, a ? ", " : "mesh ",
                         pwsp_quoted(info->mesh.names[a]).text, info->mesh.sizes[a]);
    }
    if (info) {
        const bool is_auto = info->algorithm == PTOWSP_ALGORITHM_AUTO;
        pwsp_text_format(text, "%s%s\n", is_auto ? "" : " by ",
                         is_auto ? "" : ptowsp_algorithm_name(info->algorithm));
    }
}

PWSP_INTERNAL void pwsp_spreads_print(const ptowsp_module *module, uint32_t tensor,
                                      ptowsp_output text) {
    const ptowsp_mesh_layout layout = pwsp_tensor_layout(module, tensor);
    uint32_t shown = 0;
    for (uint32_t a = 0; module->mesh && a < module->mesh->mesh.axis_count; a++) {
        const ptowsp_spread *spread = &layout.spreads[a];
        if (spread->kind == PTOWSP_REPLICATED) {
            continue;
        }
        pwsp_text_format(text, "%s%s", shown++ ? ", " : " spread ",
                         pwsp_quoted(module->mesh->mesh.names[a]).text);
        if (spread->kind == PTOWSP_SHARDED) {
            pwsp_text_format(text, " dim %" PRIu32, spread->dim);
        } else {
            pwsp_text_format(text, "%s", spread->kind == PTOWSP_PARTIAL_SUM ? " sum" : " max");
        }
    }
}
