// The parts of an inserted relayout step: the transient tensor that it writes, the kernel, the
// task. All steps to one layout of a tensor in a workload share a tensor, and equal steps of a
// module share a kernel, whose name describes it.

#include "place.h"

#include "../base/text.h"

#include <inttypes.h>

// A size of a part in another layout, as an expression.
static ptowsp_expr pwsp_target_size(ptowsp_module *m, uint32_t expr, int64_t pieces,
                                    int64_t new_pieces) {
    ptowsp_expr size = {m, expr};
    size = pieces == 1 ? size : ptowsp_mul(size, ptowsp_i64(m, pieces));
    return new_pieces == 1 ? size : ptowsp_div(size, ptowsp_i64(m, new_pieces));
}

static uint32_t pwsp_target_make(pwsp_placer *p, uint32_t source, const ptowsp_spread *axes) {
    ptowsp_module *m = p->module;
    const ptowsp_mesh_layout layout = pwsp_tensor_layout(m, source);
    const pwsp_transient_info *transient = pwsp_module_transient(m, source);
    char name[PTOWSP_NAME_MAX + 1];
    ptowsp_expr sizes[PTOWSP_TENSOR_RANK_MAX];
    ptowsp_tensor_desc desc = *PWSP_TENSOR(m, source);
    memset(sizes, 0, sizeof sizes);
    for (uint32_t d = 0; d < desc.rank; d++) {
        desc.shape[d] = layout.shape[d];
        if (layout.shape[d] < 0) {
            sizes[d] =
                pwsp_target_size(m, transient->sizes[d], pwsp_spread_pieces(m, layout.spreads, d),
                                 pwsp_spread_pieces(m, axes, d));
        }
    }
    for (uint32_t i = 1;; i++) {
        pwsp_text_into(name, sizeof name, "%.50s.%" PRIu32, layout.name, i);
        if (!pwsp_names_find(&m->bindables, name)) {
            break;
        }
    }
    desc.name = name;
    desc.location = PTOWSP_LOCATION_GLOBAL;
    const ptowsp_tensor tensor = ptowsp_tensor_transient(m, &desc, sizes);
    ptowsp_tensor_spread(m, tensor, axes);
    return pwsp_module_is_good(m) ? tensor.id : 0;
}

PWSP_INTERNAL uint32_t pwsp_target_of(pwsp_placer *p, uint32_t source, const ptowsp_spread *axes) {
    for (uint32_t i = p->tensors[source].target; i > 0;) {
        const pwsp_target *target = &p->targets.items[i];
        bool is_same = true;
        for (uint32_t a = 0; a < p->mesh->axis_count; a++) {
            is_same = is_same && target->axes[a].kind == axes[a].kind &&
                      (axes[a].kind != PTOWSP_SHARDED || target->axes[a].dim == axes[a].dim);
        }
        if (is_same) {
            return target->tensor;
        }
        i = target->earlier;
    }
    const uint32_t tensor = pwsp_target_make(p, source, axes);
    const uint32_t id = tensor ? PWSP_MODULE_ADD(p->module, p->targets) : 0;
    if (id) {
        pwsp_target *target = &p->targets.items[id];
        target->tensor = tensor;
        target->earlier = p->tensors[source].target;
        memcpy(target->axes, axes, sizeof target->axes);
        p->tensors[source].target = id;
    }
    return id ? tensor : 0;
}

// The collective of a step, without its name.
static ptowsp_collective_desc pwsp_step_collective(const pwsp_placer *p,
                                                   const ptowsp_relayout_step *step,
                                                   const ptowsp_tensor_desc *tensor) {
    static const struct {
        ptowsp_collective_kind kind;
        bool in, out;  // is this tile cut?
    } kinds[] = {{PTOWSP_SLICE, true, false},
                 {PTOWSP_REDUCE_SCATTER, true, false},
                 {PTOWSP_ALL_TO_ALL, true, true},
                 {PTOWSP_ALL_REDUCE, false, false},
                 {PTOWSP_ALL_GATHER, false, true}};
    PWSP_ZERO(ptowsp_collective_desc, desc);
    desc.kind = kinds[step->kind].kind;
    desc.is_apart = desc.kind == PTOWSP_ALL_REDUCE;
    const bool reduces = desc.is_apart || desc.kind == PTOWSP_REDUCE_SCATTER;
    desc.algorithm = reduces ? p->module->mesh->algorithm : PTOWSP_ALGORITHM_AUTO;
    desc.reduction =
        step->before.kind == PTOWSP_PARTIAL_MAX ? PTOWSP_REDUCTION_MAX : PTOWSP_REDUCTION_SUM;
    desc.dtype = tensor->dtype;
    desc.members = p->mesh->sizes[step->axis];
    desc.stride = 1;
    for (uint32_t a = step->axis + 1; a < p->mesh->axis_count; a++) {
        desc.stride *= p->mesh->sizes[a];
    }
    desc.in_columns = kinds[step->kind].in && step->after.dim + 1 == tensor->rank;
    desc.out_columns = kinds[step->kind].out && step->before.dim + 1 == tensor->rank;
    return desc;
}

static bool pwsp_kernel_is_collective(const pwsp_kernel_info *kernel,
                                      const ptowsp_collective_desc *desc) {
    const pwsp_collective_info *c = &kernel->collective;
    return kernel->unit == PTOWSP_UNIT_LINK && c->kind == desc->kind && c->counts == 0 &&
           c->algorithm == desc->algorithm && c->reduction == desc->reduction &&
           kernel->tiles[0].dtype == desc->dtype && kernel->tile_count == 2 &&
           c->members == desc->members && c->stride == desc->stride &&
           c->in_columns == desc->in_columns && c->out_columns == desc->out_columns;
}

PWSP_INTERNAL uint32_t pwsp_step_kernel(const pwsp_placer *p, const ptowsp_relayout_step *step,
                                        const ptowsp_tensor_desc *tensor) {
    ptowsp_module *m = p->module;
    ptowsp_collective_desc desc = pwsp_step_collective(p, step, tensor);
    static const char ways[][12] = {"", ".columns", ".to_columns", ".to_rows"};
    const uint32_t way = desc.kind == PTOWSP_ALL_TO_ALL        ? 2u + desc.out_columns
                         : desc.in_columns || desc.out_columns ? 1
                                                               : 0;
    for (uint32_t i = 1;; i++) {
        char name[PTOWSP_NAME_MAX + 1];
        ptowsp_output_buffer buffer = {name, sizeof name, 0};
        ptowsp_output text = ptowsp_output_to_buffer(&buffer);
        pwsp_text_format(text, "%s.%.16s.%s%s%s", ptowsp_collective_name(desc.kind),
                         p->mesh->names[step->axis], ptowsp_dtype_name(desc.dtype),
                         desc.reduction == PTOWSP_REDUCTION_MAX ? ".max" : "", ways[way]);
        if (i > 1) {  // a kernel of yours, or of an axis that begins alike
            pwsp_text_format(text, ".%" PRIu32, i);
        }
        const pwsp_name *found = pwsp_names_find(&m->kernel_names, name);
        if (found && pwsp_kernel_is_collective(PWSP_KERNEL(m, found->index), &desc)) {
            return found->index;
        }
        if (!found) {
            desc.name = name;
            return ptowsp_kernel_collective(m, &desc).id;
        }
    }
}

PWSP_INTERNAL bool pwsp_step_place(pwsp_placer *p, uint32_t before, uint32_t kernel,
                                   const pwsp_view_info *view, uint32_t from, uint32_t to) {
    pwsp_view_info views[2] = {*view, *view};
    views[0].tensor = from;
    views[1].tensor = to;
    PWSP_ZERO(pwsp_task_info, task);
    task.kernel = kernel;
    task.views = PWSP_MODULE_COPY(p->module, pwsp_view_info, views, 2);
    const pwsp_task_info *copy = PWSP_MODULE_COPY(p->module, pwsp_task_info, &task, 1);
    const uint32_t id = PWSP_MODULE_ADD(p->module, p->inserts);
    if (id) {
        const pwsp_insert insert = {before, copy};
        p->inserts.items[id] = insert;
    }
    return id != 0;
}
