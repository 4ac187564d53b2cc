// The hash of a kernel, which tuning records know it by. That of a tile kernel is its code's; other
// kernels have names, parameters and sources, in this order.

#include "module.h"

static uint64_t pwsp_kernel_hash_text(uint64_t hash, const char *text) {
    return text ? ptowsp_hash(hash, text, strlen(text) + 1) : pwsp_mix64(hash);
}

static uint64_t pwsp_kernel_hash_arg(uint64_t hash, const ptowsp_pto_arg *arg) {
    hash = pwsp_hash_number(hash, (uint64_t)arg->value);
    hash = pwsp_hash_number(hash, arg->index);
    return pwsp_hash_number(hash, (uint64_t)arg->number);
}

static uint64_t pwsp_kernel_hash_pto(uint64_t hash, const ptowsp_pto_source *pto) {
    hash = pwsp_kernel_hash_text(hash, pto->text);
    hash = pwsp_kernel_hash_text(hash, pto->file);
    hash = pwsp_kernel_hash_text(hash, pto->entry);
    for (uint32_t i = 0; i < PTOWSP_PTO_ARG_MAX; i++) {
        hash = pwsp_kernel_hash_arg(hash, &pto->args[i]);
    }
    hash = pwsp_kernel_hash_arg(hash, &pto->block);
    hash = pwsp_kernel_hash_arg(hash, &pto->block_count);
    hash = pwsp_hash_number(hash, (uint64_t)pto->family);
    return pwsp_hash_number(hash, (uint64_t)pto->is_mixed + 2 * (uint64_t)pto->is_as_simulator);
}

PWSP_INTERNAL uint64_t pwsp_kernel_info_hash(const pwsp_kernel_info *info) {
    if (info->code) {
        return pwsp_tile_code_hash(info->code);
    }
    uint64_t hash = pwsp_kernel_hash_text(PTOWSP_HASH_START, info->name);
    hash = pwsp_hash_number(hash, info->axis_count);
    hash = pwsp_hash_number(hash, (uint64_t)info->unit);
    hash = pwsp_hash_number(hash, info->tile_count);
    for (uint32_t i = 0; i < info->tile_count; i++) {
        const ptowsp_tile_param *tile = &info->tiles[i];
        hash = pwsp_hash_number(hash, (uint64_t)tile->direction);
        hash = pwsp_hash_number(hash, (uint64_t)tile->dtype);
        hash = pwsp_hash_number(hash, (uint64_t)tile->rows);
        hash = pwsp_hash_number(hash, (uint64_t)tile->cols);
    }
    for (uint32_t i = 0; i < info->scalar_count; i++) {
        hash = pwsp_hash_number(hash, (uint64_t)info->scalars[i].type);
    }
    hash = pwsp_kernel_hash_text(hash, info->source.text);
    hash = pwsp_kernel_hash_text(hash, info->source.file);
    hash = pwsp_kernel_hash_text(hash, info->source.fn);
    if (info->unit == PTOWSP_UNIT_LINK) {
        const pwsp_collective_info *c = &info->collective;
        hash = pwsp_hash_number(hash, (uint64_t)c->kind);
        hash = pwsp_hash_number(hash, (uint64_t)c->algorithm);
        hash = pwsp_hash_number(hash, (uint64_t)c->reduction);
        hash = pwsp_hash_number(hash, c->members);
        hash = pwsp_hash_number(hash, c->stride);
        hash = pwsp_hash_number(hash, c->counts != 0);
        hash = pwsp_hash_number(hash, (uint64_t)c->in_columns * 2 + c->out_columns);
    }
    return info->pto ? pwsp_kernel_hash_pto(hash, info->pto) : hash;
}

uint64_t ptowsp_kernel_hash(const ptowsp_module *module, ptowsp_kernel kernel) {
    bool is_known = module && kernel.id && kernel.id < module->kernels.count;
    return is_known ? pwsp_kernel_info_hash(PWSP_KERNEL(module, kernel.id)) : 0;
}
