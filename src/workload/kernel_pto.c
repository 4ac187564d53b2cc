// Kernels that are PTO-ISA sources: their texts or files, entries and the entries' arguments.
//
// The library neither reads nor compiles such a source. It checks that the arguments exist, fills
// in the defaults, and keeps all of it for the emitter.

#include "module.h"

#include <stdio.h>

// Does a kernel have this argument? `what` is it called in the error?
static bool pwsp_pto_check_arg(ptowsp_module *module, const pwsp_kernel_info *info,
                               const ptowsp_pto_arg *arg, const char *what) {
    uint32_t count = 0;
    const char *kind = "";
    switch (arg->value) {
    case PTOWSP_PTO_DATA:
    case PTOWSP_PTO_ROWS:
    case PTOWSP_PTO_COLS:
    case PTOWSP_PTO_ROW_STRIDE:
    case PTOWSP_PTO_COL_STRIDE:
        count = info->tile_count;
        kind = "tiles";
        break;
    case PTOWSP_PTO_AXIS:
        count = info->axis_count;
        kind = "axis arguments";
        break;
    case PTOWSP_PTO_SCALAR:
        count = info->scalar_count;
        kind = "scalars";
        break;
    case PTOWSP_PTO_NUMBER: return true;
    default:
        return PWSP_MODULE_REFUSE(module,
                                  "kernel %s: %s of its PTO-ISA source: %d is no kind of argument",
                                  info->name, what, (int)arg->value);
    }
    if (arg->index >= count) {
        return PWSP_MODULE_REFUSE(module, "kernel %s: %s of its PTO-ISA source: number %u of %u %s",
                                  info->name, what, arg->index, count, kind);
    }
    return true;
}

static bool pwsp_pto_check_args(ptowsp_module *module, const pwsp_kernel_info *info,
                                const ptowsp_pto_source *pto) {
    const ptowsp_pto_arg *blocks[2] = {&pto->block, &pto->block_count};
    for (uint32_t i = 0; i < PTOWSP_PTO_ARG_MAX && pto->args[i].value != PTOWSP_PTO_NONE; i++) {
        char what[32];
        snprintf(what, sizeof what, "argument %u", i);
        if (!pwsp_pto_check_arg(module, info, &pto->args[i], what)) {
            return false;
        }
    }
    for (int i = 0; i < 2; i++) {
        const char *what = i == 0 ? "block" : "block_count";
        bool is_number = blocks[i]->value == PTOWSP_PTO_NONE ||
                         blocks[i]->value == PTOWSP_PTO_AXIS ||
                         blocks[i]->value == PTOWSP_PTO_SCALAR ||
                         (blocks[i]->value == PTOWSP_PTO_NUMBER && blocks[i]->number >= i &&
                          blocks[i]->number <= INT32_MAX);
        if (!is_number) {
            return PWSP_MODULE_REFUSE(
                module, "kernel %s: %s of its PTO-ISA source is no axis, scalar or number",
                info->name, what);
        }
        if (blocks[i]->value != PTOWSP_PTO_NONE &&
            !pwsp_pto_check_arg(module, info, blocks[i], what)) {
            return false;
        }
    }
    return true;
}

static bool pwsp_pto_check(ptowsp_module *module, const pwsp_kernel_info *info,
                           const ptowsp_kernel_source *source, const ptowsp_pto_source *pto) {
    const char *wrong = NULL;
    if (!pto->text == !pto->file) {
        wrong = pto->text ? "its PTO-ISA source is both a text and a file"
                          : "its PTO-ISA source has neither text nor file";
    } else if (source->text || source->file) {
        wrong = "it has a source and a PTO-ISA source";
    } else if ((uint32_t)pto->family > PTOWSP_FAMILY_A5) {
        wrong = "its PTO-ISA source is for no family of machines";
    } else if (pto->is_mixed && info->unit == PTOWSP_UNIT_CUBE) {
        wrong = "its PTO-ISA source is mixed, and its unit is not mix";
    } else if (!pto->is_mixed && info->unit == PTOWSP_UNIT_MIX) {
        wrong = "its unit is mix, and its PTO-ISA source is not mixed";
    } else if (!pwsp_name_is_identifier(pto->entry ? pto->entry : info->name)) {
        wrong = "the entry of its PTO-ISA source is no identifier of C";
    }
    if (wrong) {
        return PWSP_MODULE_REFUSE(module, "kernel %s: %s", info->name, wrong);
    }
    return pwsp_pto_check_args(module, info, pto);
}

// The data of all tiles, then all scalars: PTOWSP_PTO_ARG_MAX is as many at least.
static void pwsp_pto_default_args(const pwsp_kernel_info *info, ptowsp_pto_source *pto) {
    PTOWSP_ASSERT(info->tile_count + info->scalar_count <= PTOWSP_PTO_ARG_MAX);
    for (uint32_t i = 0; i < info->tile_count + info->scalar_count; i++) {
        bool is_tile = i < info->tile_count;
        pto->args[i].value = is_tile ? PTOWSP_PTO_DATA : PTOWSP_PTO_SCALAR;
        pto->args[i].index = is_tile ? i : i - info->tile_count;
    }
}

PTOWSP_STATIC_ASSERT(PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX <= PTOWSP_PTO_ARG_MAX,
                     "the default arguments of an entry");

PWSP_INTERNAL bool pwsp_pto_copy(pwsp_arena *arena, const ptowsp_pto_source *from,
                                 const ptowsp_pto_source **out_copy) {
    ptowsp_pto_source *to = PWSP_ARENA_ARRAY(arena, ptowsp_pto_source, 1);
    if (!to) {
        return false;
    }
    *to = *from;
    const char **texts[3 + PTOWSP_PTO_INCLUDE_MAX] = {&to->text, &to->file, &to->entry};
    for (uint32_t i = 0; i < PTOWSP_PTO_INCLUDE_MAX; i++) {
        texts[3 + i] = &to->include_dirs[i];
    }
    for (uint32_t i = 0; i < 3 + PTOWSP_PTO_INCLUDE_MAX; i++) {
        if (*texts[i]) {
            *texts[i] = pwsp_arena_copy(arena, *texts[i]);
            if (!*texts[i]) {
                return false;
            }
        }
    }
    *out_copy = to;
    return true;
}

PWSP_INTERNAL bool pwsp_kernel_set_pto(ptowsp_module *module, const ptowsp_kernel_desc *desc,
                                       pwsp_kernel_info *info) {
    if (!pwsp_pto_check(module, info, &desc->source, desc->pto)) {
        return false;
    }
    ptowsp_pto_source pto = *desc->pto;
    pto.entry = pto.entry ? pto.entry : info->name;
    if (pto.args[0].value == PTOWSP_PTO_NONE) {
        pwsp_pto_default_args(info, &pto);
    }
    if (pto.block_count.value == PTOWSP_PTO_NONE) {
        pto.block_count.value = PTOWSP_PTO_NUMBER;
        pto.block_count.number = 1;
    }
    if (pto.block.value == PTOWSP_PTO_NONE) {
        pto.block.value = PTOWSP_PTO_NUMBER;
    }
    return pwsp_pto_copy(&module->arena, &pto, &info->pto) || pwsp_module_no_memory(module);
}
