// The hash of a tile kernel's code: everything that determines its behaviour and time, field by
// field, independent of padding and byte order. Names do not count, except names of instructions.

#include "compiled.h"

static uint64_t pwsp_code_hash_numbers(uint64_t hash, const uint64_t *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        hash = pwsp_hash_number(hash, numbers[i]);
    }
    return hash;
}

#define PWSP_HASH_NUMBERS(hash, numbers)                                                           \
    pwsp_code_hash_numbers(hash, numbers, (uint32_t)(sizeof numbers / sizeof numbers[0]))

static uint64_t pwsp_code_hash_valid(uint64_t hash, const pwsp_valid *valid) {
    const uint64_t numbers[] = {valid->param, valid->axis,          valid->shift,
                                valid->loop,  (uint64_t)valid->mul, (uint64_t)valid->add,
                                valid->max};
    return PWSP_HASH_NUMBERS(hash, numbers);
}

static uint64_t pwsp_code_hash_tile(uint64_t hash, const pwsp_list_tile *tile) {
    const uint64_t numbers[] = {tile->dtype,  tile->memory, tile->layout, tile->pad,
                                tile->loop,   tile->rows,   tile->cols,   tile->root,
                                tile->offset, tile->address};
    const uint64_t phases[] = {tile->places, tile->is_late, tile->own_rows};
    hash = PWSP_HASH_NUMBERS(hash, numbers);
    if (tile->places || tile->is_late || tile->own_rows) {
        hash = PWSP_HASH_NUMBERS(hash, phases);
    }
    hash = pwsp_code_hash_valid(hash, &tile->valid_rows);
    return pwsp_code_hash_valid(hash, &tile->valid_cols);
}

static uint64_t pwsp_code_hash_insn(uint64_t hash, const pwsp_insn *insn) {
    const char *name = pwsp_insn_name(insn);
    uint64_t constant;
    memcpy(&constant, &insn->scalar.value, sizeof constant);
    const uint64_t numbers[] = {ptowsp_hash(PTOWSP_HASH_START, name, strlen(name)),
                                insn->variant,
                                insn->mode,
                                insn->src_pipe,
                                insn->dst_pipe,
                                insn->event,
                                insn->is_dst_read,
                                insn->is_implied,
                                insn->loop,
                                insn->side,
                                insn->row_loop,
                                insn->col_loop,
                                insn->param,
                                insn->dst[0],
                                insn->dst[1],
                                insn->src[0],
                                insn->src[1],
                                insn->src[2],
                                insn->src[3],
                                insn->tmp,
                                insn->row,
                                insn->col,
                                insn->scalar.param,
                                insn->scalar.cols_of,
                                constant};
    PTOWSP_STATIC_ASSERT(PWSP_INSN_DST_MAX == 2 && PWSP_INSN_SRC_MAX == 4, "all operands");
    hash = PWSP_HASH_NUMBERS(hash, numbers);
    hash = insn->phase ? pwsp_hash_number(hash, (uint64_t)insn->phase << 8) : hash;
    return insn->begins ? pwsp_hash_number(hash, insn->begins) : hash;
}

static uint64_t pwsp_code_hash_loop(uint64_t hash, const pwsp_list_loop *loop) {
    const pwsp_list_bound *begin = &loop->begin, *end = &loop->end;
    const uint64_t numbers[] = {
        begin->kind,  begin->axis,         begin->param, (uint64_t)begin->value,
        end->kind,    end->axis,           end->param,   (uint64_t)end->value,
        loop->parent, (uint64_t)loop->step};
    const uint64_t phases[] = {loop->preload, loop->late_of};
    hash = PWSP_HASH_NUMBERS(hash, numbers);
    return loop->preload || loop->late_of ? PWSP_HASH_NUMBERS(hash, phases) : hash;
}

PWSP_INTERNAL uint64_t pwsp_tile_code_hash(const pwsp_tile_code *code) {
    const char *machine = code->machine.name;
    const uint64_t head[] = {code->insn_count,  code->tile_count,   code->loop_count,
                             code->param_count, code->scalar_count, code->is_cube,
                             code->is_mixed,    code->split_tile};
    uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, machine, strlen(machine));
    hash = PWSP_HASH_NUMBERS(hash, head);
    for (uint32_t i = 0; i < PWSP_FIFO_COUNT; i++) {
        const pwsp_list_fifo *fifo = &code->fifos[i];
        const uint64_t numbers[] = {fifo->slot_bytes, fifo->slots, fifo->flag};
        hash = PWSP_HASH_NUMBERS(hash, numbers);
    }
    for (uint32_t i = 0; i < code->param_count; i++) {
        const uint64_t numbers[] = {code->param_dtypes[i], code->param_rows[i],
                                    code->param_cols[i]};
        hash = PWSP_HASH_NUMBERS(hash, numbers);
    }
    for (uint32_t i = 0; i < code->scalar_count; i++) {
        const uint64_t number[] = {code->scalar_dtypes[i]};
        hash = PWSP_HASH_NUMBERS(hash, number);
    }
    for (uint32_t i = 1; i <= code->loop_count; i++) {
        hash = pwsp_code_hash_loop(hash, &code->loops[i].of);
    }
    for (uint32_t i = 1; i < code->tile_count; i++) {
        hash = pwsp_code_hash_tile(hash, &code->tiles[i]);
    }
    for (uint32_t i = 0; i < code->insn_count; i++) {
        hash = pwsp_code_hash_insn(hash, &code->insns[i]);
    }
    return hash;
}
