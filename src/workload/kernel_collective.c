// Kernels whose tasks communicate: their parameters, which follow from the kind of the collective.
//
// Such a kernel has no function. Its unit is PTOWSP_UNIT_LINK, by which all that follows knows it:
// time gives its tasks a lane of their own, and executors hand them to exec/communicate.
//
//      kind             tiles            scalars
//      all_reduce       inout data; is_apart: in in, out out
//      broadcast        inout data       root
//      send             inout data       root, target
//      the others       in in, out out

#include "module.h"

#include "../ranks/ranks.h"

#include <inttypes.h>

// Which kinds cut a tile into parts, by bits.
#define PWSP_CUTS_IN  (1u << PTOWSP_REDUCE_SCATTER | 1u << PTOWSP_ALL_TO_ALL | 1u << PTOWSP_SLICE)
#define PWSP_CUTS_OUT (1u << PTOWSP_ALL_GATHER | 1u << PTOWSP_ALL_TO_ALL)

// Columns are cut where the kind cuts that tile, and not by counts; only ALL_REDUCE has a choice of
// tiles. Fails otherwise.
static void pwsp_collective_check_tiles(ptowsp_module *module, const ptowsp_collective_desc *desc) {
    const uint32_t kind = 1u << desc->kind;
    if ((desc->in_columns && (!(kind & PWSP_CUTS_IN) || desc->counts)) ||
        (desc->out_columns && (!(kind & PWSP_CUTS_OUT) || desc->counts))) {
        PWSP_MODULE_REFUSE(module, "kernel %s: %s%s does not cut the columns of %s", desc->name,
                           desc->counts ? "ragged " : "", ptowsp_collective_name(desc->kind),
                           desc->in_columns && (!(kind & PWSP_CUTS_IN) || desc->counts) ? "in"
                                                                                        : "out");
    } else if (desc->is_apart && desc->kind != PTOWSP_ALL_REDUCE) {
        PWSP_MODULE_REFUSE(module, "kernel %s: is_apart is of all_reduce, not of %s", desc->name,
                           ptowsp_collective_name(desc->kind));
    }
}

// Checks everything that does not depend on a run; false with an error.
static bool pwsp_collective_check_desc(ptowsp_module *module, const ptowsp_collective_desc *desc) {
    PWSP_ZERO(ptowsp_collective, c);
    c.kind = desc->kind;
    c.algorithm = desc->algorithm;
    c.reduction = desc->reduction;
    c.dtype = desc->dtype;
    c.members = desc->members ? desc->members : 1;
    c.stride = desc->stride;
    if (pwsp_collective_check(module->context, &c) != PTOWSP_OK) {
        const ptowsp_error error = ptowsp_context_error(module->context);
        pwsp_module_fail(module, error.status, error.index, "kernel %s: %s", desc->name,
                         error.text);
    } else if (desc->counts && desc->kind != PTOWSP_ALL_TO_ALL) {
        PWSP_MODULE_REFUSE(module, "kernel %s: counts are of all_to_all, not of %s", desc->name,
                           ptowsp_collective_name(desc->kind));
    } else {
        pwsp_collective_check_tiles(module, desc);
    }
    return pwsp_module_is_good(module);
}

static void pwsp_collective_params(const ptowsp_collective_desc *desc, ptowsp_kernel_desc *params) {
    const bool has_target = desc->kind == PTOWSP_SEND;
    const bool has_root = has_target || desc->kind == PTOWSP_BROADCAST;
    const ptowsp_tile_param data = {"data", PTOWSP_INOUT, desc->dtype, PTOWSP_DYNAMIC,
                                    PTOWSP_DYNAMIC};
    const ptowsp_tile_param in = {"in", PTOWSP_IN, desc->dtype, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    const ptowsp_tile_param out = {"out", PTOWSP_OUT, desc->dtype, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    const ptowsp_scalar_param root = {"root", PTOWSP_TYPE_I64};
    const ptowsp_scalar_param target = {"target", PTOWSP_TYPE_I64};
    memset(params, 0, sizeof *params);
    params->name = desc->name;
    if (has_root || (desc->kind == PTOWSP_ALL_REDUCE && !desc->is_apart)) {
        params->tiles[0] = data;
    } else {
        params->tiles[0] = in;
        params->tiles[1] = out;
    }
    if (has_root) {
        params->scalars[0] = root;
    }
    if (has_target) {
        params->scalars[1] = target;
    }
}

ptowsp_kernel ptowsp_kernel_collective(ptowsp_module *module, const ptowsp_collective_desc *desc) {
    ptowsp_kernel kernel = {0};
    if (!pwsp_module_takes(module, desc, "kernel")) {
        return kernel;
    }
    PWSP_ZERO(pwsp_kernel_info, info);
    ptowsp_kernel_desc params;
    info.name = pwsp_module_name(module, "kernel", desc->name);
    if (!info.name || !pwsp_collective_check_desc(module, desc)) {
        return kernel;
    }
    pwsp_collective_params(desc, &params);
    info.unit = PTOWSP_UNIT_LINK;
    info.collective.kind = desc->kind;
    info.collective.algorithm = desc->algorithm;
    info.collective.reduction = desc->reduction;
    info.collective.members = desc->members;
    info.collective.stride = desc->stride;
    info.collective.in_columns = desc->in_columns;
    info.collective.out_columns = desc->out_columns;
    info.collective.counts = desc->counts ? pwsp_module_array(module, desc->counts, PTOWSP_I64) : 0;
    if (pwsp_module_is_good(module) && pwsp_kernel_copy_params(module, &params, &info)) {
        kernel.id = pwsp_kernel_register(module, &info);
    }
    return kernel;
}

// -- text -----------------------------------------------------------------------------------------

PWSP_INTERNAL const char *pwsp_reduction_name(ptowsp_reduction reduction) {
    static const char names[][4] = {PTOWSP_REDUCTIONS(PWSP_TABLE_TEXT)};
    return (uint32_t)reduction <= PTOWSP_REDUCTION_MIN ? names[reduction] : "?";
}

PWSP_INTERNAL void pwsp_collective_info_print(const ptowsp_module *module,
                                              const pwsp_collective_info *info,
                                              ptowsp_output text) {
    pwsp_text_format(text, ", %s", ptowsp_collective_name(info->kind));
    if (info->reduction != PTOWSP_REDUCTION_SUM) {
        pwsp_text_format(text, ", %s", pwsp_reduction_name(info->reduction));
    }
    if (info->algorithm != PTOWSP_ALGORITHM_AUTO) {
        pwsp_text_format(text, ", by %s", ptowsp_algorithm_name(info->algorithm));
    }
    if (info->members) {
        pwsp_text_format(text, ", members %" PRIu32, info->members);
    }
    if (info->stride) {
        pwsp_text_format(text, ", stride %" PRIu32, info->stride);
    }
    if (info->counts) {
        pwsp_text_format(text, ", counts %s",
                         pwsp_quoted(PWSP_ARRAY(module, info->counts)->name).text);
    }
    pwsp_text_format(text, "%s%s", info->in_columns ? ", in columns" : "",
                     info->out_columns ? ", out columns" : "");
}
