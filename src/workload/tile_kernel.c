// Tile kernels in a module: beginning, ending, measuring and printing them.

#include "program.h"

#include "../base/block_list.h"
#include "../base/text.h"
#include "../kernel/description.h"

ptowsp_body *ptowsp_kernel_begin(ptowsp_module *module, const ptowsp_body_desc *desc) {
    if (!pwsp_module_takes(module, desc, "kernel")) {
        return NULL;
    }
    const char *name = pwsp_module_name(module, "kernel", desc->name);
    if (!name) {
        return NULL;
    }
    ptoisa_machine machine = *ptoisa_machine_910b();
    if (desc->axis_count > PTOWSP_TASK_AXIS_MAX) {
        PWSP_MODULE_REFUSE(module, "kernel %s: %u axis arguments are more than %d", name,
                           desc->axis_count, PTOWSP_TASK_AXIS_MAX);
        return NULL;
    }
    if (desc->machine && !pwsp_machine_to_isa(desc->machine, &machine)) {
        PWSP_MODULE_REFUSE(module, "kernel %s: %s", name, PWSP_MACHINE_RULE);
        return NULL;
    }
    pwsp_memory memory = module->context->memory;
    ptowsp_body *body = (ptowsp_body *)pwsp_memory_take(&memory, sizeof(ptowsp_body));
    if (!body) {
        pwsp_module_no_memory(module);
        return NULL;
    }
    memset(body, 0, offsetof(ptowsp_body, tiles));
    body->module = module;
    body->memory = memory;
    memcpy(body->name, name, strlen(name) + 1);
    body->axis_count = desc->axis_count;
    body->machine = machine;
    body->is_fused = desc->is_fused;
    body->is_open = true;
    body->next = module->bodies;
    module->bodies = body;
    return body;
}

// Is every out and inout parameter stored to? False with the body's error.
static bool pwsp_body_is_stored(ptowsp_body *body) {
    bool is_any = false;
    for (uint32_t i = 0; i < body->tile_count; i++) {
        const pwsp_body_param *tile = &body->tiles[i];
        if (tile->direction != PTOWSP_IN && !tile->is_stored) {
            pwsp_body_fail(body, PTOWSP_INVALID_PARAMS, "store", "nothing is stored to %s",
                           tile->name);
        }
        is_any = is_any || tile->is_stored;
    }
    if (body->loop) {
        pwsp_body_fail(body, PTOWSP_INVALID_PARAMS, "loop", "loop %u is not ended", body->loop);
    } else if (body->tile_count == 0) {
        pwsp_body_fail(body, PTOWSP_INVALID_PARAMS, "parameter", "kernel %s has no tile parameter",
                       body->name);
    } else if (!is_any) {
        pwsp_body_fail(body, PTOWSP_INVALID_PARAMS, "store", "nothing is stored");
    }
    return body->status == PTOWSP_OK;
}

// Fills in the module's record of a kernel, as a description would.
static bool pwsp_body_info(ptowsp_module *module, const ptowsp_body *body,
                           const pwsp_tile_code *code, pwsp_kernel_info *info) {
    PWSP_ZERO(ptowsp_kernel_desc, desc);
    desc.name = body->name;
    for (uint32_t i = 0; i < body->tile_count; i++) {
        const pwsp_body_param *tile = &body->tiles[i];
        ptowsp_tile_param param = {tile->name, tile->direction, tile->dtype, tile->rows,
                                   tile->cols};
        desc.tiles[i] = param;
    }
    for (uint32_t i = 0; i < body->scalar_count; i++) {
        const pwsp_body_param *scalar = &body->scalars[i];
        ptowsp_type type = scalar->dtype == PTOWSP_BOOL  ? PTOWSP_TYPE_BOOL
                           : scalar->dtype == PTOWSP_I64 ? PTOWSP_TYPE_I64
                                                         : PTOWSP_TYPE_U64;
        ptowsp_scalar_param param = {scalar->name, type};
        desc.scalars[i] = param;
    }
    memset(info, 0, sizeof *info);
    info->name = pwsp_module_name(module, "kernel", body->name);
    info->axis_count = body->axis_count;
    bool is_cube = code->is_cube || code->used[PTOWSP_MEMORY_L1] || code->used[PTOWSP_MEMORY_L0C];
    info->unit = !is_cube                       ? PTOWSP_UNIT_VECTOR
                 : code->used[PTOWSP_MEMORY_UB] ? PTOWSP_UNIT_MIX
                                                : PTOWSP_UNIT_CUBE;
    info->code = code;
    info->body = body;
    return info->name && pwsp_kernel_copy_params(module, &desc, info);
}

ptowsp_kernel ptowsp_kernel_end(ptowsp_body *body) {
    ptowsp_kernel kernel = {0};
    if (!body || !body->is_open) {
        return kernel;
    }
    ptowsp_module *module = body->module;
    bool is_stored = pwsp_body_is_stored(body);
    body->is_open = false;
    if (!pwsp_module_is_good(module)) {
        return kernel;
    }
    if (!is_stored) {
        pwsp_module_fail(module, body->status, PTOWSP_NO_INDEX, "kernel %s: %s", body->name,
                         body->text);
        return kernel;
    }
    pwsp_list_fault fault;
    pwsp_tile_code *code = pwsp_tile_code_create(body, &fault);
    if (!code) {
        pwsp_module_fail(module, fault.status, PTOWSP_NO_INDEX, "kernel %s: %s", body->name,
                         fault.text);
        return kernel;
    }
    pwsp_kernel_info info;
    if (pwsp_body_info(module, body, code, &info)) {
        kernel.id = pwsp_kernel_register(module, &info);
    }
    if (kernel.id == 0) {
        pwsp_tile_code_release(code);
    }
    return kernel;
}

// -- questions ------------------------------------------------------------------------------------

static const pwsp_kernel_info *pwsp_kernel_find(const ptowsp_module *module, ptowsp_kernel kernel) {
    if (!module || kernel.id == 0 || kernel.id >= module->kernels.count) {
        return NULL;
    }
    const pwsp_kernel_info *info = PWSP_KERNEL(module, kernel.id);
    return info->code ? info : NULL;
}

// Measures a tile kernel, and prints it with its cycles if `output` is not NULL; a failure has no text.
static ptowsp_status pwsp_kernel_measure(const ptowsp_module *module, const pwsp_kernel_info *info,
                                         const ptowsp_cost *cost, const ptowsp_output *output,
                                         ptowsp_kernel_stats *out_stats) {
    PWSP_ZERO(pwsp_tile_core, core);
    pwsp_blocks blocks;
    ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
    const size_t size = info->code->insn_count * sizeof *core.spent;
    core.memory = pwsp_blocks_begin(&blocks, &module->context->memory);
    if (output && (core.spent = (ptowsp_cycles *)pwsp_memory_alloc(&core.memory, size))) {
        memset(core.spent, 0, size);
    }
    if (pwsp_tile_core_reserve_tiles(&core, info->code) && (core.spent || !output)) {
        memset(out_stats, 0, sizeof *out_stats);
        bool is_counted = pwsp_tile_code_measure(info->code, cost, &core, out_stats);
        out_stats->insn_count = info->code->insn_count;
        status = is_counted ? PTOWSP_OK : PTOWSP_LIMIT_EXCEEDED;
    }
    if (status == PTOWSP_OK && output) {
        pwsp_body_print(info->body, info->code, &core, out_stats->cycles, *output);
    }
    pwsp_blocks_free(&blocks);
    return status;
}

ptowsp_status ptowsp_cost_check(ptowsp_context *context, const ptowsp_cost *cost) {
    char text[PWSP_COST_TEXT_MAX];
    return !cost || pwsp_cost_check(cost, text)
               ? PTOWSP_OK
               : pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "cost: %s", text);
}

ptowsp_status ptowsp_kernel_measure(const ptowsp_module *module, ptowsp_kernel kernel,
                                    const ptowsp_cost *cost, ptowsp_kernel_stats *out_stats) {
    if (!module) {
        return PTOWSP_INVALID_PARAMS;
    }
    const pwsp_kernel_info *info = pwsp_kernel_find(module, kernel);
    if (!info) {  // the text is the kernel's failure, if it has failed
        return pwsp_fail(module->context, PTOWSP_INVALID_PARAMS, kernel.id,
                         "measure: there is no tile kernel %u%s%s", kernel.id,
                         module->status == PTOWSP_OK ? "" : ": ", module->text);
    }
    char text[PWSP_COST_TEXT_MAX] = "out_stats is NULL";
    if (!out_stats || (cost && !pwsp_cost_check(cost, text))) {
        return PWSP_REFUSE(module->context, "measure: %s", text);
    }
    const ptowsp_status status = pwsp_kernel_measure(module, info, cost, NULL, out_stats);
    return status == PTOWSP_OK
               ? status
               : pwsp_fail(module->context, status, kernel.id, "measure: kernel %s: %s", info->name,
                           status == PTOWSP_OUT_OF_MEMORY ? "out of memory"
                                                          : "too many cycles or instructions");
}

uint32_t ptowsp_kernel_insn_count(const ptowsp_module *module, ptowsp_kernel kernel) {
    const pwsp_kernel_info *info = pwsp_kernel_find(module, kernel);
    return info ? info->code->insn_count : 0;
}

ptowsp_insn ptowsp_kernel_insn_at(const ptowsp_module *module, ptowsp_kernel kernel, uint32_t i,
                                  ptowsp_cycles *out_unit_cycles) {
    const pwsp_kernel_info *info = pwsp_kernel_find(module, kernel);
    PWSP_ZERO(ptowsp_insn, insn);
    insn.name = "none";
    if (info && i < info->code->insn_count) {
        insn = pwsp_tile_code_insn(info->code, i, out_unit_cycles);
    } else if (out_unit_cycles) {
        *out_unit_cycles = 0;
    }
    return insn;
}

void ptowsp_kernel_print(const ptowsp_module *module, ptowsp_kernel kernel, const ptowsp_cost *cost,
                         ptowsp_output output) {
    const pwsp_kernel_info *info = pwsp_kernel_find(module, kernel);
    ptowsp_kernel_stats stats;
    char text[PWSP_COST_TEXT_MAX];
    if (info && !cost) {
        pwsp_body_print(info->body, info->code, NULL, 0, output);
    } else if (info && pwsp_cost_check(cost, text)) {
        pwsp_kernel_measure(module, info, cost, &output, &stats);
    }
}

// -- for choices ----------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_cycles pwsp_kernel_tile_cycles(const ptowsp_module *module,
                                                    ptowsp_kernel kernel, const ptowsp_cost *cost) {
    const pwsp_kernel_info *info = PWSP_KERNEL(module, kernel.id);
    ptowsp_kernel_stats stats;
    return info->code && pwsp_kernel_measure(module, info, cost, NULL, &stats) == PTOWSP_OK
               ? stats.cycles
               : 0;
}

PWSP_INTERNAL void pwsp_kernel_print_memory(const ptowsp_module *module, ptowsp_kernel kernel,
                                            ptowsp_output text) {
    const pwsp_kernel_info *info = PWSP_KERNEL(module, kernel.id);
    ptowsp_kernel_stats stats;
    if (!info->code || pwsp_kernel_measure(module, info, NULL, NULL, &stats) != PTOWSP_OK) {
        return;
    }
    pwsp_text_format(text, ", %s", ptowsp_unit_name(info->unit));
    for (uint32_t i = 0; i < PTOWSP_MEMORY_COUNT; i++) {
        if (stats.memory_bytes[i]) {
            pwsp_text_format(text, ", %s %u bytes", ptowsp_memory_name((ptowsp_memory)i),
                             stats.memory_bytes[i]);
        }
    }
}

ptowsp_status ptowsp_program_prove(ptowsp_context *context, const ptowsp_program *program) {
    PTOWSP_ASSERT(context);
    if (!program) {
        return pwsp_fail_null(context, "prove: program");
    }
    for (uint32_t i = 0; i < program->kernels.count; i++) {
        const pwsp_kernel_info *kernel = &program->kernels.items[i];
        pwsp_list_fault fault;
        if (kernel->code && !pwsp_tile_code_prove(kernel->code, &fault)) {
            return pwsp_fail(context, fault.status, i, "prove: kernel %s: %s", kernel->code->name,
                             fault.text);
        }
    }
    return PTOWSP_OK;
}
