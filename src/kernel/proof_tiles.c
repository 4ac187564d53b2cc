// The proof's view of memory: the accesses of each instruction, and whether their places are legal.
//
//      tile       one that the device takes: whole boxes, rows or columns of 32 bytes, aligned
//      view       inside its root, and a root inside its memory
//      read       of a root that was written before, and was not scratch since
//      life       of a root: from its first to its last use in the list. Two that overlap in time are
//                 apart in bytes
//
//      UB   |  a  |        |  c  |        roots come to live one after another: each is compared
//           |     |   b    |     |        with those that live then, and drops those that do not
//           +-----+--------+-----+--> instructions
//
// A tile is checked where it is used first: nothing of it changes later.

#include "proof_state.h"

#include <inttypes.h>

// How messages call a tile.
static uint32_t pwsp_proof_tile_of(const pwsp_proof *proof, uint32_t tile) {
    return proof->tile_origins && tile < proof->list->tile_count ? proof->tile_origins[tile] : tile;
}

static bool pwsp_proof_refuse_tile(const pwsp_proof *proof, uint32_t tile, uint32_t insn,
                                   const char *what) {
    const pwsp_list_tile *t = &proof->list->tiles[tile];
    return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, insn),
                          "verify: tile %" PRIu32 " (%" PRIu32 " x %" PRIu32
                          " %s in %s) of instruction %" PRIu32 " (%s) %s",
                          pwsp_proof_tile_of(proof, tile), t->rows, t->cols,
                          ptoisa_dtype_name((ptoisa_dtype)t->dtype),
                          ptoisa_memory_name((ptoisa_memory)t->memory),
                          pwsp_proof_insn_of(proof, insn), pwsp_proof_name(proof, insn), what);
}

// Is it one that the device takes?
static bool pwsp_proof_check_shape(const pwsp_proof *proof, uint32_t tile, uint32_t insn) {
    const pwsp_list_tile *t = &proof->list->tiles[tile];
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)t->dtype);
    if (size == 0 || t->memory >= PTOISA_MEMORY_COUNT || t->layout >= PTOISA_LAYOUT_COUNT ||
        t->rows == 0 || t->cols == 0) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "is no tile");
    }
    if (t->valid_rows.max > t->rows || t->valid_cols.max > t->cols) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "may be valid beyond what is allocated");
    }
    if (t->layout == PTOISA_ROW_MAJOR && (uint64_t)t->cols * size % 32 != 0) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "has rows that are no multiple of 32");
    }
    if (t->layout == PTOISA_COL_MAJOR && (uint64_t)t->rows * size % 32 != 0) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "has columns that are no multiple of 32");
    }
    ptoisa_tile shape = ptoisa_tile_make(NULL, (ptoisa_dtype)t->dtype, (ptoisa_memory)t->memory,
                                         (ptoisa_layout)t->layout, t->rows, t->cols);
    if (t->rows % ptoisa_box_rows(&shape) != 0 || t->cols % ptoisa_box_cols(&shape) != 0) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "has boxes that are not whole");
    }
    return true;
}

// Is it where it may be, in its root and in its memory? Then that is noted, of its root as well.
static bool pwsp_proof_check_address(const pwsp_proof *proof, uint32_t tile, uint32_t insn) {
    const pwsp_list *list = proof->list;
    const pwsp_list_tile *t = &list->tiles[tile];
    if (t->root == 0 || t->root >= list->tile_count || list->tiles[t->root].root != t->root ||
        (t->root == tile && t->offset != 0)) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "has no root");
    }
    const pwsp_list_tile *root = &list->tiles[t->root];
    if (t->root != tile && !pwsp_proof_check_shape(proof, t->root, insn)) {
        return false;
    }
    uint64_t bytes = pwsp_list_tile_bytes(t), begin = (uint64_t)root->address + t->offset;
    uint64_t end = root->address + (t->root == tile ? bytes : pwsp_list_tile_bytes(root));
    if (root->memory != t->memory || begin + bytes > end) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "is a view that leaves its root");
    }
    if (root->address % 32 != 0 || begin % 32 != 0) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "is at an address that is not aligned");
    }
    if (end > proof->machine->memory_size[t->memory]) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "ends beyond its memory");
    }
    if (end > list->used[t->memory]) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "ends beyond what is said to be used");
    }
    pwsp_proof_access *of_root = &proof->tiles[t->root].access, *of = &proof->tiles[tile].access;
    of_root->begin = root->address;
    of_root->end = (uint32_t)end;
    of->begin = (uint32_t)begin;
    of->end = (uint32_t)(begin + bytes);
    of_root->memory = of->memory = t->memory;
    return true;
}

// Is an instruction one of this list's?
static bool pwsp_proof_check_insn(const pwsp_proof *proof, const pwsp_insn *insn, uint32_t i) {
    bool is_mixed = proof->list->is_mixed, has_side = insn->side != PWSP_SIDE_ANY;
    bool is_insn = insn->op != PTOISA_NOP && insn->op < PTOISA_OP_COUNT;
    return (has_side == is_mixed && insn->side <= PWSP_SIDE_VECTOR &&
            (is_insn || (is_mixed && pwsp_insn_is_fifo(insn)))) ||
           pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
                          "verify: instruction %" PRIu32 " is none", pwsp_proof_insn_of(proof, i));
}

// Is a tile one that instruction i may use? Not asked again of one that an instruction of its side uses.
static bool pwsp_proof_check_operand(const pwsp_proof *proof, uint32_t tile, uint32_t i) {
    const pwsp_list *list = proof->list;
    if (tile >= list->tile_count) {
        return pwsp_list_fail(
            proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
            "verify: instruction %" PRIu32 " (%s) uses tile %" PRIu32 " of %" PRIu64,
            pwsp_proof_insn_of(proof, i), pwsp_proof_name(proof, i), tile, list->tile_count);
    }
    bool is_vector = list->insns[i].side == PWSP_SIDE_VECTOR;
    if (list->is_mixed && is_vector != (list->tiles[tile].memory == PTOISA_VEC)) {
        return pwsp_proof_refuse_tile(proof, tile, i, "is the other core's");
    }
    pwsp_proof_checked *of = &proof->tiles[tile];
    if (!pwsp_proof_check_shape(proof, tile, i) || !pwsp_proof_check_address(proof, tile, i)) {
        return false;
    }
    of->root = list->tiles[tile].root;
    of->checked_for = (uint8_t)(list->insns[i].side + 1);
    return true;
}

// Adds the access to global memory of an instruction.
static void pwsp_proof_add_param(const pwsp_proof *proof, const pwsp_insn *insn,
                                 pwsp_proof_access *access) {
    access->begin = insn->param;
    access->end = insn->param + 1u;
    access->memory = PTOISA_MEMORY_COUNT;
    access->row = insn->row;
    access->is_shared = proof->is_split && insn->side == PWSP_SIDE_VECTOR && !insn->row_loop;
    access->is_write = pwsp_proof_is_store(insn);
}

// Checks the tiles of instruction i, and adds its accesses.
static bool pwsp_proof_add_accesses(pwsp_proof *proof, const pwsp_insn *insn, uint32_t i) {
    pwsp_proof_access *access = &proof->accesses[proof->access_count];
    pwsp_insn_tiles tiles;
    pwsp_insn_find_tiles(insn, &tiles);
    for (uint32_t k = 0; k < tiles.count; k++, access++) {
        const uint32_t tile = tiles.at[k];
        bool is_checked =
            tile < proof->list->tile_count && proof->tiles[tile].checked_for == insn->side + 1;
        if (!is_checked && !pwsp_proof_check_operand(proof, tile, i)) {
            return false;
        }
        pwsp_proof_checked *root = &proof->tiles[proof->tiles[tile].root];
        *access = proof->tiles[tile].access;
        access->is_write = k >= tiles.read_count;
        if (access->is_write) {
            root->is_written = k + 1 < tiles.count || !insn->tmp;  // scratch is not
        } else if (!root->is_written && !proof->unread) {
            proof->unread = tile;
            proof->unread_at = i;
        }
        if (!root->first) {
            root->first = i + 1;
            proof->born[proof->born_count++] = proof->tiles[tile].root;
        }
        root->last = i + 1;
    }
    if (insn->param) {
        pwsp_proof_add_param(proof, insn, access++);
    }
    proof->access_count = (uint32_t)(access - proof->accesses);
    return true;
}

PWSP_INTERNAL bool pwsp_proof_check_tiles(pwsp_proof *proof, pwsp_arena *arena, uint32_t i) {
    const pwsp_insn *insn = &proof->list->insns[i];
    proof->starts[i + 1] = proof->access_count;
    if (!pwsp_proof_check_insn(proof, insn, i)) {
        return false;
    }
    if (pwsp_insn_is_sync(insn)) {
        return true;
    }
    if (proof->access_count + PWSP_INSN_TILE_MAX >= proof->access_capacity) {
        bool has_room = PWSP_EXTEND(arena, proof->accesses, proof->access_capacity,
                                    proof->access_count + PWSP_INSN_TILE_MAX + 1ull);
        if (!has_room) {
            return pwsp_proof_out_of_memory(proof);
        }
    }
    if (!pwsp_proof_add_accesses(proof, insn, i)) {
        return false;
    }
    proof->starts[i + 1] = proof->access_count;
    proof->pipes[i] = (uint8_t)pwsp_insn_pipe(proof->list, insn);
    return true;
}

static bool pwsp_proof_refuse_life(const pwsp_proof *proof, uint32_t i, uint32_t root,
                                   uint32_t other) {
    ptoisa_memory memory = (ptoisa_memory)proof->list->tiles[root].memory;
    return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
                          "verify: tile %" PRIu32 " overlaps tile %" PRIu32
                          " in %s while both live, at instruction %" PRIu32 " (%s)",
                          pwsp_proof_tile_of(proof, root), pwsp_proof_tile_of(proof, other),
                          ptoisa_memory_name(memory), pwsp_proof_insn_of(proof, i),
                          pwsp_proof_name(proof, i));
}

PWSP_INTERNAL bool pwsp_proof_check_lives(const pwsp_proof *proof, uint32_t *live) {
    uint32_t live_count = 0;
    if (proof->unread) {
        return pwsp_proof_refuse_tile(proof, proof->unread, proof->unread_at,
                                      "is read before it is written");
    }
    for (uint32_t k = 0; k < proof->born_count; k++) {
        const pwsp_proof_checked *root = &proof->tiles[proof->born[k]];
        uint32_t i = root->first - 1, kept = 0;
        for (uint32_t l = 0; l < live_count; l++) {
            const pwsp_proof_checked *other = &proof->tiles[live[l]];
            if (other->last <= i) {
                continue;
            }
            live[kept++] = live[l];
            if (other->access.memory == root->access.memory &&
                root->access.begin < other->access.end && other->access.begin < root->access.end) {
                return pwsp_proof_refuse_life(proof, i, proof->born[k], live[l]);
            }
        }
        live[kept] = proof->born[k];
        live_count = kept + 1;
    }
    return true;
}
