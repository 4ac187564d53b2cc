// A root rotates if it is filled from elsewhere at the beginning of its life in an iteration:
//
//      MTE2     TLOAD, TPOP into L1, UB             next iteration's, while this one computes
//      MTE1     TMOV or TEXTRACT into L0A, L0B     next panel's, while this one is multiplied
//
// and if the body of one innermost loop has all its uses. What computes gains nothing from a second
// place: its pipe is busy with one iteration at a time. Memories are planned apart from each other,
// so each is tried alone, the others without bounds: if its tiles do not fit with two places, none of
// them rotates. (Now and then they fit with two places alone, as no plan is the best: memory.c.)
//
// In a list that preloads, UB holds tiles of two phases. If two places for each root do not fit, roots
// keep one place that no other tile of the loop shares. So they can be filled while others are in use.
//
// Then such roots alternate, if that fits. Each lives from where the one before it of its size is
// first used: so it can be filled while that one is read, as the pieces of a panel are. Roots that
// are stored from UB alternate as well: one is computed while the other is stored. So do sums in L0C of
// loops that preload.
//
//      L0A   | k 0 |     | k 2 |     | k 0 |          four pieces of k in an iteration, in two
//                  | k 1 |     | k 3 |     | k 1 |    places
//            +-----------------------+---------> time

#include "rotate.h"

#include "../base/heap.h"
#include "memory.h"

typedef struct pwsp_rotating {
    uint32_t first;     // instruction that uses it
    uint8_t loop;       // the loop of all uses so far; 0: none
    bool is_filled;     // its first use fills it
    bool is_emptied;    // its last one stores it
    bool is_elsewhere;  // it has uses outside of the loop
} pwsp_rotating;

// Notes a use of a tile in the body of `loop` (0: of none, or of one that has others in it).
static void pwsp_rotate_use(const pwsp_list *list, pwsp_rotating *roots, uint32_t tile,
                            uint32_t loop, bool is_filling, bool is_emptying, uint32_t i) {
    if (tile) {
        pwsp_rotating *root = &roots[list->tiles[tile].root];
        bool is_first = root->loop == 0 && !root->is_elsewhere;
        root->is_filled = is_first ? is_filling : root->is_filled;
        root->first = is_first ? i : root->first;
        root->is_emptied = is_emptying;
        root->is_elsewhere = root->is_elsewhere || loop == 0 || (!is_first && root->loop != loop);
        root->loop = (uint8_t)loop;
    }
}

// Finds the loops without others in them, as bits.
static uint32_t pwsp_rotate_innermost(const pwsp_list *list) {
    uint32_t innermost = 0;
    for (uint32_t loop = 1; loop <= list->loop_count; loop++) {
        if (list->loops[loop].late_of == 0) {
            innermost |= 1u << loop;
            innermost &= ~(1u << list->loops[loop].parent);
        }
    }
    return innermost;
}

static void pwsp_rotate_find(const pwsp_list *list, pwsp_rotating *roots) {
    uint32_t innermost = pwsp_rotate_innermost(list), loop = 0;
    for (uint32_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        if (pwsp_insn_is_mark(insn)) {
            loop = insn->op == PWSP_INSN_LOOP ? insn->loop : list->loops[insn->loop].parent;
            continue;
        }
        uint32_t in = innermost >> loop & 1 ? loop : 0;
        ptoisa_pipe pipe = pwsp_insn_pipe(list, insn);
        bool is_filling =
            (insn->op == PTOISA_TLOAD || insn->op == PWSP_INSN_TPOP || pipe == PTOISA_PIPE_MTE1) &&
            !insn->is_dst_read;
        bool is_emptying = pipe == PTOISA_PIPE_MTE3 || (insn->phase && pipe == PTOISA_PIPE_FIX);
        for (uint32_t k = 0; k < PWSP_INSN_SRC_MAX; k++) {
            pwsp_rotate_use(list, roots, insn->src[k], in, false, is_emptying, i);
        }
        for (uint32_t k = 0; k < PWSP_INSN_DST_MAX; k++) {
            pwsp_rotate_use(list, roots, insn->dst[k], in, is_filling, false, i);
        }
        pwsp_rotate_use(list, roots, insn->tmp, in, false, false, i);
    }
}

// Lets the roots of the memories, as bits, rotate, and no others; of the memories `kept` they keep one
// place.
static void pwsp_rotate_set(pwsp_list *list, const pwsp_rotating *roots, uint32_t memories,
                            uint32_t kept) {
    for (uint64_t i = 1; i < list->tile_count; i++) {
        pwsp_list_tile *tile = &list->tiles[i];
        bool is_rotating = tile->root == i && roots[i].is_filled && !roots[i].is_elsewhere &&
                           ((memories | kept) >> tile->memory & 1);
        tile->places = tile->places > 1 ? tile->places : is_rotating && (kept >> tile->memory & 1);
        tile->loop = is_rotating || tile->places ? roots[i].loop : 0;
    }
}

// Roots that alternate: those that are filled, or else those that are emptied.
typedef enum pwsp_rotate_kind { PWSP_ROTATE_FILLED, PWSP_ROTATE_EMPTIED } pwsp_rotate_kind;

// How many sizes of roots alternate at a time; further sizes take their places in turn.
#define PWSP_ROTATE_SIZES 8

// Roots in the order of their first uses.
static void pwsp_rotate_sort(const pwsp_list *list, const pwsp_rotating *roots, uint64_t *order) {
    for (uint32_t i = 0; i < list->tile_count; i++) {
        order[i] = (uint64_t)roots[i].first << 32 | i;
    }
    pwsp_sort_u64(NULL, order, list->tile_count);
}

// Lets the roots of a memory alternate, or not: early[tile] is where each lives from, or 0. Returns
// whether any does.
static bool pwsp_rotate_alternate(const pwsp_list *list, const pwsp_rotating *roots,
                                  const uint64_t *order, uint32_t memory, pwsp_rotate_kind kind,
                                  bool is_on, uint32_t *early) {
    uint32_t last[PWSP_ROTATE_SIZES] = {0}, turn = 0;
    bool is_any = false;
    for (uint32_t k = 0; k < list->tile_count; k++) {
        const uint32_t i = (uint32_t)order[k];
        const pwsp_list_tile *tile = &list->tiles[i];
        const pwsp_rotating *root = &roots[i];
        bool is_kind =
            kind == PWSP_ROTATE_FILLED ? root->is_filled : root->is_emptied && !root->is_filled;
        if (tile->root != i || tile->memory != memory || !is_kind || root->is_elsewhere) {
            continue;
        }
        uint32_t at = 0;
        while (at < PWSP_ROTATE_SIZES &&
               !(last[at] && roots[last[at]].loop == root->loop &&
                 pwsp_list_tile_bytes(&list->tiles[last[at]]) == pwsp_list_tile_bytes(tile))) {
            at++;
        }
        bool is_after = at < PWSP_ROTATE_SIZES;
        early[i] = is_on && is_after ? roots[last[at]].first : 0;
        is_any = is_any || early[i];
        last[is_after ? at : turn++ % PWSP_ROTATE_SIZES] = i;
    }
    return is_any;
}

// Does the list fit a memory, the others without bounds? False with a fault if memory is out.
static bool pwsp_rotate_try(pwsp_list *list, const ptoisa_machine *machine, uint32_t memory,
                            const uint32_t *early, bool *out_fits, pwsp_list_fault *fault) {
    pwsp_list_fault refused;
    memset(&refused, 0, sizeof refused);
    ptoisa_machine alone = *machine;
    for (uint32_t other = 0; other < PTOISA_MEMORY_COUNT; other++) {
        alone.memory_size[other] = other == memory ? machine->memory_size[memory] : INT32_MAX;
    }
    *out_fits = pwsp_list_place_early(list, &alone, early, &refused);
    if (!*out_fits && refused.status != PTOWSP_LIMIT_EXCEEDED) {
        *fault = refused;
        return false;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_list_place_loops(pwsp_list *list, const ptoisa_machine *machine,
                                         pwsp_list_fault *fault) {
    if (list->loop_count == 0) {
        return pwsp_list_place(list, machine, fault);
    }
    size_t size = (size_t)list->tile_count * sizeof(pwsp_rotating);
    pwsp_rotating *roots = (pwsp_rotating *)pwsp_arena_alloc(&list->arena, size, 8);
    if (!roots) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "memory: out of memory");
    }
    uint32_t *early =
        (uint32_t *)pwsp_arena_alloc(&list->arena, (size_t)list->tile_count * sizeof *early, 8);
    if (!early) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "memory: out of memory");
    }
    uint64_t *order = PWSP_ARENA_ARRAY(&list->arena, uint64_t, list->tile_count);
    if (!order) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "memory: out of memory");
    }
    pwsp_rotate_find(list, roots);
    pwsp_rotate_sort(list, roots, order);
    uint32_t memories = 0, kept = 0;
    for (uint32_t at = 0; at < PTOISA_MEMORY_COUNT; at++) {
        bool fits;
        pwsp_rotate_set(list, roots, 1u << at, 0);
        if (!pwsp_rotate_try(list, machine, at, NULL, &fits, fault)) {
            return false;
        }
        memories |= fits ? 1u << at : 0;
        if (!fits && at == PTOISA_VEC && list->loops[list->loop_count].late_of) {
            pwsp_rotate_set(list, roots, 0, 1u << at);
            if (!pwsp_rotate_try(list, machine, at, NULL, &fits, fault)) {
                return false;
            }
            kept = fits ? 1u << at : 0;
        }
        pwsp_rotate_set(list, roots, memories & 1u << at, kept & 1u << at);
        for (uint32_t kind = fits; kind <= PWSP_ROTATE_EMPTIED; kind++) {
            if (!pwsp_rotate_alternate(list, roots, order, at, (pwsp_rotate_kind)kind, true,
                                       early)) {
                continue;
            }
            if (!pwsp_rotate_try(list, machine, at, early, &fits, fault)) {
                return false;
            }
            if (!fits) {
                pwsp_rotate_alternate(list, roots, order, at, (pwsp_rotate_kind)kind, false, early);
            }
        }
    }
    pwsp_rotate_set(list, roots, memories, kept);
    bool is_placed = pwsp_list_place_early(list, machine, early, fault);
    for (uint64_t i = 1; i < list->tile_count; i++) {
        pwsp_list_tile *tile = &list->tiles[i];
        tile->loop = tile->places == 1 ? 0 : tile->loop;
        tile->places = tile->places == 1 ? 0 : tile->places;
    }
    return is_placed;
}
