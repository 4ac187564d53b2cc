// Read access to the tile kernels of a program: tiles, instructions and checks in public types.

#include "../base/arena.h"
#include "compiled.h"
#include "description.h"

#define PWSP_READ_OPCODE(name, unit)                                                               \
    PTOWSP_STATIC_ASSERT((int)PTOWSP_OP_##name == (int)PTOISA_##name, "opcodes");
PTOISA_OPS(PWSP_READ_OPCODE)
#undef PWSP_READ_OPCODE
PTOWSP_STATIC_ASSERT((int)PTOWSP_OP_LOOP == (int)PWSP_INSN_LOOP, "opcodes");
PTOWSP_STATIC_ASSERT((int)PTOWSP_OP_TPOP == (int)PWSP_INSN_TPOP, "opcodes");
PTOWSP_STATIC_ASSERT((int)PTOWSP_OP_COUNT == (int)PWSP_INSN_OP_COUNT, "opcodes");

PTOWSP_STATIC_ASSERT((int)PTOWSP_FORM_BINARY == (int)PWSP_VARIANT_BINARY, "forms");
PTOWSP_STATIC_ASSERT((int)PTOWSP_FORM_INPLACE == (int)PWSP_VARIANT_INPLACE, "forms");
PTOWSP_STATIC_ASSERT((int)PTOWSP_FORM_DESCENDING == (int)PWSP_VARIANT_DESCENDING, "forms");
PTOWSP_STATIC_ASSERT((int)PTOWSP_SIDE_VECTOR == (int)PWSP_SIDE_VECTOR, "sides");
PTOWSP_STATIC_ASSERT((int)PTOWSP_LAYOUT_COUNT == (int)PTOISA_LAYOUT_COUNT, "layouts");
PTOWSP_STATIC_ASSERT((int)PTOWSP_PIPE_COUNT == (int)PTOISA_PIPE_ALL, "pipes");
PTOWSP_STATIC_ASSERT((int)PTOWSP_FAMILY_A5 == (int)PTOISA_A5, "families");

static ptowsp_extent pwsp_read_extent(const pwsp_valid *valid) {
    ptowsp_extent extent;
    extent.param = valid->param ? valid->param - 1u : PTOWSP_NO_PARAM;
    extent.axis = valid->axis;
    extent.shift = valid->shift;
    extent.mul = valid->mul;
    extent.add = valid->add;
    extent.max = valid->max;
    extent.loop = valid->param ? valid->loop : 0;
    return extent;
}

static ptowsp_tile_object pwsp_read_object(const pwsp_tile_code *code, uint32_t tile) {
    const pwsp_list_tile *from = &code->tiles[tile];
    ptowsp_tile_object object;
    object.dtype = (ptowsp_dtype)from->dtype;
    object.memory = (ptowsp_memory)from->memory;
    object.layout = (ptowsp_layout)from->layout;
    object.pad = from->pad;
    object.rows = from->rows;
    object.cols = from->cols;
    object.own_rows = from->own_rows;
    object.valid_rows = pwsp_read_extent(&from->valid_rows);
    object.valid_cols = pwsp_read_extent(&from->valid_cols);
    object.address = code->tiles[from->root].address + from->offset;
    object.root = from->root;
    object.loop = code->tiles[from->root].loop;
    object.step = object.loop ? (uint32_t)pwsp_list_root_step(&code->tiles[from->root]) : 0;
    object.places = pwsp_list_root_places(&code->tiles[from->root]);
    object.is_late = from->is_late;
    return object;
}

// The mode as users write it: rounding to nearest has one number there.
static uint32_t pwsp_read_mode(const pwsp_insn *insn) {
    if (insn->op != PTOISA_TCVT) {
        return insn->mode;
    }
    switch ((ptoisa_round)insn->mode) {
    case PTOISA_CAST_ROUND: return PTOWSP_ROUND_AWAY;
    case PTOISA_CAST_FLOOR: return PTOWSP_ROUND_FLOOR;
    case PTOISA_CAST_CEIL: return PTOWSP_ROUND_CEIL;
    case PTOISA_CAST_TRUNC: return PTOWSP_ROUND_TRUNC;
    default: return PTOWSP_ROUND_NEAREST;  // no kernel asks for odd
    }
}

static ptowsp_insn_info pwsp_read_insn(const pwsp_tile_code *code, uint32_t i) {
    const pwsp_insn *from = &code->insns[i];
    ptowsp_insn_info info;
    memset(&info, 0, sizeof info);
    info.op = (ptowsp_opcode)from->op;
    info.side = (ptowsp_side)from->side;
    info.fifo = pwsp_insn_is_fifo(from) ? from->mode : 0;
    info.pipe = pwsp_tile_code_insn(code, i, NULL).pipe;
    info.form = (ptowsp_form)from->variant;
    info.mode = pwsp_insn_is_fifo(from) ? 0 : pwsp_read_mode(from);
    info.src_pipe = (ptowsp_pipe)from->src_pipe;
    info.dst_pipe = (ptowsp_pipe)from->dst_pipe;
    info.event = from->event;
    info.is_dst_read = from->is_dst_read;
    info.is_implied = from->is_implied;
    info.param = from->param ? from->param - 1u : PTOWSP_NO_PARAM;
    for (uint32_t j = 0; j < PWSP_INSN_DST_MAX; j++) {
        info.dst[j] = from->dst[j];
    }
    for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX; j++) {
        info.src[j] = from->src[j];
    }
    info.tmp = from->tmp;
    info.row = from->row;
    info.col = from->col;
    info.scalar_param = from->scalar.param ? from->scalar.param - 1u : PTOWSP_NO_PARAM;
    info.cols_of = from->scalar.cols_of;
    info.scalar = from->scalar.value;
    info.loop = from->loop;
    info.begins = from->begins;
    info.phase = from->phase;
    info.row_loop = from->row_loop;
    info.col_loop = from->col_loop;
    return info;
}

static ptowsp_size_check pwsp_read_check(const pwsp_tile_check *from) {
    ptowsp_size_check check;
    check.a = pwsp_read_extent(&from->a);
    check.b = pwsp_read_extent(&from->b);
    check.operation = pwsp_kop_name((pwsp_kop_kind)from->kind);
    check.axis = from->axis;
    return check;
}

static ptowsp_loop_bound pwsp_read_bound(const pwsp_list_bound *from) {
    ptowsp_loop_bound bound;
    bound.scalar = from->kind == PWSP_BOUND_SCALAR ? from->param : PTOWSP_NO_PARAM;
    bound.tile = from->kind == PWSP_BOUND_SIZE ? from->param : PTOWSP_NO_PARAM;
    bound.axis = from->axis;
    bound.value = from->value;
    return bound;
}

static ptowsp_loop_info pwsp_read_loop(const pwsp_code_loop *from) {
    ptowsp_loop_info info;
    info.begin = pwsp_read_bound(&from->of.begin);
    info.end = pwsp_read_bound(&from->of.end);
    info.step = from->of.step;
    info.parent = from->of.parent;
    info.insn_count = from->insn_count;
    info.preload = from->of.preload;
    info.late_of = from->of.late_of;
    return info;
}

static void pwsp_read_facts(const pwsp_tile_code *code, ptowsp_kernel_info *info) {
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

PWSP_INTERNAL bool pwsp_tile_code_read(const pwsp_tile_code *code, pwsp_arena *arena,
                                       ptowsp_kernel_info *info) {
    ptowsp_insn_info *insns = PWSP_ARENA_ARRAY(arena, ptowsp_insn_info, code->insn_count);
    ptowsp_tile_object *objects = PWSP_ARENA_ARRAY(arena, ptowsp_tile_object, code->tile_count);
    ptowsp_size_check *checks = PWSP_ARENA_ARRAY(arena, ptowsp_size_check, code->check_count);
    ptowsp_loop_info *loops = PWSP_ARENA_ARRAY(arena, ptowsp_loop_info, code->loop_count + 1u);
    if (!insns || !objects || !checks || !loops) {
        return false;
    }
    for (uint32_t i = 0; i < code->insn_count; i++) {
        insns[i] = pwsp_read_insn(code, i);
    }
    for (uint32_t i = 1; i < code->tile_count; i++) {
        objects[i] = pwsp_read_object(code, i);
    }
    for (uint32_t i = 0; i < code->check_count; i++) {
        checks[i] = pwsp_read_check(&code->checks[i]);
    }
    for (uint32_t i = 1; i <= code->loop_count; i++) {
        loops[i] = pwsp_read_loop(&code->loops[i]);
    }
    info->insns = insns;
    info->objects = objects;
    info->checks = checks;
    info->loops = loops;
    pwsp_read_facts(code, info);
    return true;
}
