// Declaring kernels: parameters, unit, cycles, and source.

#include "module.h"

#include <inttypes.h>

static void pwsp_kernel_check_tile(ptowsp_module *module, const char *kernel,
                                   const ptowsp_tile_param *tile) {
    const char *name = tile->name;
    if ((uint32_t)tile->direction < PTOWSP_IN || (uint32_t)tile->direction > PTOWSP_INOUT) {
        PWSP_MODULE_REFUSE(module, "kernel %s: tile %s has no direction (in, out or inout)", kernel,
                           name);
    } else if (ptowsp_dtype_size(tile->dtype) == 0) {
        PWSP_MODULE_REFUSE(module, "kernel %s: tile %s has no data type", kernel, name);
    } else if ((tile->rows < 1 && tile->rows != PTOWSP_DYNAMIC) ||
               (tile->cols < 1 && tile->cols != PTOWSP_DYNAMIC) || tile->rows > INT32_MAX ||
               tile->cols > INT32_MAX) {
        PWSP_MODULE_REFUSE(module, "kernel %s: tile %s is %" PRId64 " x %" PRId64, kernel, name,
                           tile->rows, tile->cols);
    }
}

static void pwsp_kernel_check(ptowsp_module *module, const ptowsp_kernel_desc *desc) {
    const char *name = desc->name ? desc->name : "";
    if (!desc->fn && !desc->cost && desc->cycles == 0 && !desc->pto) {
        PWSP_MODULE_REFUSE(module, "kernel %s: it has neither fn nor cost nor cycles", name);
    } else if (desc->cycles > PTOWSP_CYCLES_MAX) {
        PWSP_MODULE_REFUSE(module, "kernel %s: %" PRIu64 " cycles are more than 2^63 - 1", name,
                           desc->cycles);
    } else if (desc->bytes > PTOWSP_TASK_BYTES_MAX && desc->bytes != PTOWSP_TILE_BYTES) {
        PWSP_MODULE_REFUSE(module, "kernel %s: %" PRIu64 " bytes are more than 2^46", name,
                           desc->bytes);
    } else if (desc->axis_count > PTOWSP_TASK_AXIS_MAX) {
        PWSP_MODULE_REFUSE(module, "kernel %s: %u axis arguments are more than %d", name,
                           desc->axis_count, PTOWSP_TASK_AXIS_MAX);
    } else if ((uint32_t)desc->unit >= PTOWSP_UNIT_COUNT) {
        PWSP_MODULE_REFUSE(module, "kernel %s: %d is no execution unit", name, (int)desc->unit);
    }
    for (uint32_t i = 0; i < PTOWSP_TASK_TILE_MAX && desc->tiles[i].name; i++) {
        pwsp_kernel_check_tile(module, name, &desc->tiles[i]);
    }
    for (uint32_t i = 0; i < PTOWSP_TASK_SCALAR_MAX && desc->scalars[i].name; i++) {
        if ((uint32_t)desc->scalars[i].type < PTOWSP_TYPE_BOOL ||
            (uint32_t)desc->scalars[i].type > PTOWSP_TYPE_U64) {
            PWSP_MODULE_REFUSE(module, "kernel %s: scalar %s has no type", name,
                               desc->scalars[i].name);
        }
    }
}

bool pwsp_kernel_copy_params(ptowsp_module *module, const ptowsp_kernel_desc *desc,
                             pwsp_kernel_info *info) {
    ptowsp_tile_param tiles[PTOWSP_TASK_TILE_MAX];
    ptowsp_scalar_param scalars[PTOWSP_TASK_SCALAR_MAX];
    const char *names[PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < PTOWSP_TASK_TILE_MAX && desc->tiles[i].name; i++) {
        const ptowsp_tile_param *tile = &desc->tiles[i];
        names[count] = pwsp_module_name(module, "tile parameter", tile->name);
        ptowsp_tile_param copy = {names[count++], tile->direction, tile->dtype, tile->rows,
                                  tile->cols};
        tiles[info->tile_count++] = copy;
    }
    for (uint32_t i = 0; i < PTOWSP_TASK_SCALAR_MAX && desc->scalars[i].name; i++) {
        names[count] = pwsp_module_name(module, "scalar parameter", desc->scalars[i].name);
        ptowsp_scalar_param copy = {names[count++], desc->scalars[i].type};
        scalars[info->scalar_count++] = copy;
    }
    for (uint32_t i = 0; pwsp_module_is_good(module) && i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(names[i], names[j]) == 0) {
                PWSP_MODULE_REFUSE(module, "kernel %s: two parameters are called %s", desc->name,
                                   names[i]);
            }
        }
    }
    info->tiles = PWSP_MODULE_COPY(module, ptowsp_tile_param, tiles, info->tile_count);
    info->scalars = PWSP_MODULE_COPY(module, ptowsp_scalar_param, scalars, info->scalar_count);
    return pwsp_module_is_good(module);
}

uint32_t pwsp_kernel_register(ptowsp_module *module, const pwsp_kernel_info *info) {
    const pwsp_name *found = pwsp_names_find(&module->kernel_names, info->name);
    if (found) {
        return PWSP_MODULE_REFUSE(module, "kernel %s: %s", info->name,
                                  strcmp(found->text, info->name) == 0
                                      ? "there is a kernel of this name already"
                                      : "its name has the hash of another kernel's");
    }
    uint32_t id = PWSP_MODULE_ADD(module, module->kernels);
    if (id) {
        *PWSP_KERNEL(module, id) = *info;  // first, as a failed module can be printed
    }
    if (id && !pwsp_names_add(&module->kernel_names, &module->memory, info->name, 0, id)) {
        PWSP_KERNEL(module, id)->code = NULL;
        id = pwsp_module_no_memory(module);
    }
    return id;
}

// -- source ---------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_name_is_identifier(const char *name) {
    for (size_t i = 0; name[i] != '\0'; i++) {
        char c = name[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return name[0] != '\0';
}

// Copies the text of a source, or shares an equal text of another kernel; NULL with an error.
static const char *pwsp_kernel_copy_source(ptowsp_module *module, const char *text,
                                           pwsp_kernel_info *info) {
    const pwsp_name *found = pwsp_names_find(&module->sources, text);
    info->sourced = module->kernels.count ? (uint32_t)module->kernels.count : 1;  // its id to be
    if (found && strcmp(found->text, text) == 0) {
        info->sourced = found->index;
        return found->text;
    }
    const char *copy = PWSP_MODULE_COPY(module, char, text, strlen(text) + 1);
    if (copy && !found &&
        !pwsp_names_add(&module->sources, &module->memory, copy, 0, info->sourced)) {
        pwsp_module_no_memory(module);
    }
    return copy;
}

// Checks and copies a source; false with an error.
static bool pwsp_kernel_set_source(ptowsp_module *module, const ptowsp_kernel_source *source,
                                   pwsp_kernel_info *info) {
    bool is_any = source->text || source->file;
    if (!is_any && !source->fn && !source->cost) {
        return true;
    }
    const char *fn = source->fn ? source->fn : info->name;
    if (source->text && source->file) {
        PWSP_MODULE_REFUSE(module, "kernel %s: its source is both a text and a file", info->name);
    } else if (!is_any) {
        PWSP_MODULE_REFUSE(module, "kernel %s: its source has names, but neither text nor file",
                           info->name);
    } else if (!pwsp_name_is_identifier(fn)) {
        PWSP_MODULE_REFUSE(module, "kernel %s: fn of its source, %s, is no identifier of C",
                           info->name, pwsp_name_is_valid(fn) ? fn : "as it is");
    } else if (source->cost && !pwsp_name_is_identifier(source->cost)) {
        PWSP_MODULE_REFUSE(module, "kernel %s: cost of its source, %s, is no identifier of C",
                           info->name,
                           pwsp_name_is_valid(source->cost) ? source->cost : "as it is");
    }
    if (!pwsp_module_is_good(module)) {
        return false;
    }
    info->source.text = source->text ? pwsp_kernel_copy_source(module, source->text, info) : NULL;
    info->source.file = source->file ? pwsp_kernel_copy_source(module, source->file, info) : NULL;
    info->source.fn = fn == info->name ? fn : PWSP_MODULE_COPY(module, char, fn, strlen(fn) + 1);
    if (source->cost) {
        info->source.cost = PWSP_MODULE_COPY(module, char, source->cost, strlen(source->cost) + 1);
    }
    return pwsp_module_is_good(module);
}

ptowsp_kernel ptowsp_kernel_make(ptowsp_module *module, const ptowsp_kernel_desc *desc) {
    ptowsp_kernel kernel = {0};
    if (!pwsp_module_takes(module, desc, "kernel")) {
        return kernel;
    }
    PWSP_ZERO(pwsp_kernel_info, info);
    info.name = pwsp_module_name(module, "kernel", desc->name);
    if (!info.name || !pwsp_kernel_copy_params(module, desc, &info)) {
        return kernel;
    }
    pwsp_kernel_check(module, desc);
    if (!pwsp_module_is_good(module) || !pwsp_kernel_set_source(module, &desc->source, &info)) {
        return kernel;
    }
    info.axis_count = desc->axis_count;
    info.unit = desc->unit;
    if (desc->pto && !pwsp_kernel_set_pto(module, desc, &info)) {
        return kernel;
    }
    info.unit = info.pto && info.pto->is_mixed ? PTOWSP_UNIT_MIX : info.unit;
    info.fn = desc->fn;
    info.cost = desc->cost;
    info.cycles = desc->cycles;
    info.bytes = desc->bytes;
    info.user = desc->user;
    kernel.id = pwsp_kernel_register(module, &info);
    return kernel;
}
