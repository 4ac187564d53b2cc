// Reading programs: the instructions of their tile kernels.

#include "read.h"

#include "../base/context.h"
#include "../kernel/description.h"

PWSP_INTERNAL void pwsp_read_tiles(const pwsp_tile_code *code, ptowsp_kernel_info *info) {
    info->insn_count = code->insn_count;
    info->tile_object_count = code->tile_count;
    info->check_count = code->check_count;
    info->loop_count = code->loop_count;
    for (uint32_t i = 0; i < code->scalar_count; i++) {
        info->scalar_dtypes[i] = code->scalar_dtypes[i];
    }
    for (uint32_t i = 0; i < PTOWSP_MEMORY_COUNT; i++) {
        info->memory_bytes[i] = code->used[i];
    }
    info->family = (ptowsp_family)code->machine.family;
    info->machine = pwsp_machine_from_isa(&code->machine);
    info->has_products = code->is_cube;
    info->is_mixed = code->is_mixed;
    info->is_split = code->split_tile != 0;
    info->split_tile = code->split_tile;
    for (uint32_t i = 0; i < PWSP_FIFO_COUNT && code->is_mixed; i++) {
        info->fifos[i].slot_bytes = code->fifos[i].slot_bytes;
        info->fifos[i].slot_count = code->fifos[i].slots;
        info->fifos[i].flag = code->fifos[i].flag;
    }
}

static const pwsp_tile_code *pwsp_read_code(const ptowsp_program *program, uint32_t kernel) {
    PTOWSP_ASSERT(kernel < program->kernels.count);
    const pwsp_tile_code *code = program->kernels.items[kernel].code;
    PTOWSP_ASSERT(code);
    return code;
}

ptowsp_tile_object ptowsp_program_tile_at(const ptowsp_program *program, uint32_t kernel,
                                          uint32_t i) {
    PTOWSP_ASSERT(program);
    return pwsp_tile_code_object(pwsp_read_code(program, kernel), i);
}

ptowsp_insn_info ptowsp_program_insn_at(const ptowsp_program *program, uint32_t kernel,
                                        uint32_t i) {
    PTOWSP_ASSERT(program);
    return pwsp_tile_code_insn_info(pwsp_read_code(program, kernel), i);
}

ptowsp_size_check ptowsp_program_size_check_at(const ptowsp_program *program, uint32_t kernel,
                                               uint32_t i) {
    PTOWSP_ASSERT(program);
    return pwsp_tile_code_size_check(pwsp_read_code(program, kernel), i);
}

ptowsp_loop_info ptowsp_program_loop_at(const ptowsp_program *program, uint32_t kernel,
                                        uint32_t loop) {
    PTOWSP_ASSERT(program);
    return pwsp_tile_code_loop_info(pwsp_read_code(program, kernel), loop);
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
