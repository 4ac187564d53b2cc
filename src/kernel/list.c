// Lists of instructions: growing them, and properties of a single instruction.

#include "list.h"

#include <stdarg.h>
#include <stdio.h>

void pwsp_list_init(pwsp_list *list, pwsp_memory memory) {
    memset(list, 0, sizeof *list);
    pwsp_arena_init(&list->arena, &memory);
}

PWSP_INTERNAL void pwsp_list_reset(pwsp_list *list) {
    pwsp_arena_reset(&list->arena);
    list->insns = NULL;
    list->tiles = NULL;
    list->insn_count = list->insn_capacity = list->tile_count = list->tile_capacity = 0;
}

void pwsp_list_free(pwsp_list *list) {
    pwsp_list_reset(list);
    pwsp_arena_free(&list->arena);
}

// Makes room for so many tiles; false when memory is out.
static bool pwsp_list_reserve_tiles(pwsp_list *list, uint64_t count) {
    return PWSP_EXTEND(&list->arena, list->tiles, list->tile_capacity, count);
}

bool pwsp_list_begin(pwsp_list *list) {
    bool is_new = list->tile_capacity == 0;
    bool has_room = pwsp_list_reserve_tiles(list, 1);
    if (has_room && is_new) {
        memset(&list->tiles[0], 0, sizeof list->tiles[0]);
    }
    return has_room;
}

// Makes room for so many instructions; false when memory is out.
static bool pwsp_list_reserve(pwsp_list *list, uint64_t count) {
    return PWSP_EXTEND(&list->arena, list->insns, list->insn_capacity, count);
}

PWSP_INTERNAL bool pwsp_list_renew(pwsp_list *list, uint64_t insn_count) {
    list->insns = NULL;
    list->insn_count = list->insn_capacity = 0;
    return pwsp_list_reserve(list, PWSP_TIGHT(0, 1) ? 0 : insn_count + insn_count / 4 + 8);
}

// Room for the next instruction; NULL when memory is out.
static pwsp_insn *pwsp_list_next(pwsp_list *list) {
    bool has_room =
        list->insn_count < list->insn_capacity || pwsp_list_reserve(list, list->insn_count + 1);
    return has_room ? &list->insns[list->insn_count++] : NULL;
}

PWSP_INTERNAL pwsp_insn *pwsp_list_append(pwsp_list *list, const pwsp_insn *insn) {
    pwsp_insn *appended = pwsp_list_next(list);
    if (appended) {
        *appended = *insn;
    }
    return appended;
}

pwsp_insn *pwsp_list_add(pwsp_list *list, ptoisa_op op) {
    pwsp_insn *added = pwsp_list_next(list);
    if (added) {
        memset(added, 0, sizeof *added);
        added->op = (uint8_t)op;
    }
    return added;
}

uint32_t pwsp_list_add_tile(pwsp_list *list) {
    uint64_t index = list->tile_count ? list->tile_count : 1;
    if (!pwsp_list_reserve_tiles(list, index + 1)) {
        return 0;
    }
    memset(&list->tiles[list->tile_count], 0,
           (size_t)(index + 1 - list->tile_count) * sizeof list->tiles[0]);
    list->tile_count = index + 1;
    list->tiles[index].root = (uint32_t)index;
    return (uint32_t)index;
}

bool pwsp_list_fail(pwsp_list_fault *fault, ptowsp_status status, uint32_t insn, const char *format,
                    ...) {
    fault->status = status;
    fault->insn = insn;
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    return false;
}

bool pwsp_loop_is_within(const pwsp_list_loop *loops, uint32_t loop, uint32_t of) {
    while (loop > of) {  // an outer loop has a lower number
        loop = loops[loop].parent;
    }
    return loop == of;
}

ptoisa_pipe pwsp_insn_pipe(const pwsp_list *list, const pwsp_insn *insn) {
    if (insn->op == PWSP_INSN_TPOP) {
        return PTOISA_PIPE_MTE2;
    }
    if (insn->op == PWSP_INSN_TPUSH) {
        bool is_vector = list->tiles[insn->src[0]].memory == PTOISA_VEC;
        return is_vector ? PTOISA_PIPE_MTE3 : PTOISA_PIPE_FIX;
    }
    ptoisa_tile dst, src;  // only their memories are looked at
    dst.memory = insn->dst[0] ? list->tiles[insn->dst[0]].memory : (uint8_t)PTOISA_VEC;
    src.memory = insn->src[0] ? list->tiles[insn->src[0]].memory : (uint8_t)PTOISA_VEC;
    return ptoisa_pipe_of((ptoisa_op)insn->op, &dst, &src);
}
