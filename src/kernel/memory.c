// Addresses of tiles: roots whose lives do not overlap share bytes.
//
//      address                                   A root lives from the first instruction that uses
//         |      +---------+                     it to the last, both included. Roots live at once
//         |      |    c    |                     must not overlap in this picture; the lowest
//         |  +---+--+   +--+----+                ceiling is wanted. That is dynamic storage
//         |  |   a  |   |   b   |                allocation, which is NP-hard (Garey and Johnson
//         +--+------+---+-------+---> time       1979, SR2), so there are heuristics:
//
// Roots are placed one after another, each into the smallest gap that holds it between those that
// are placed and live with it, or above them all. Tensor compilers place large ones first
// (Pisarchyk and Lee 2020, "greedy by size"). The order of birth wins where roots die in the order
// of their birth, and where sizes are equal: then it reaches the largest sum that is live at once,
// which is a lower bound. The first order that reaches this bound ends the search; otherwise the
// lowest ceiling wins, and the earlier order among equals. Nothing depends on hashes or addresses.
//
// Memories are apart from each other, so each is planned alone. Sizes and addresses count blocks of
// 32 bytes here. A tree over roots in order of birth finds the placed roots that live together with
// a given one. Its nodes hold the latest death of those that are placed:
//
//      latest            29                     live with [20, 24]: born up to 24, so among the
//                  12          29               first three leaves; of these, whose node says
//                9    12    29     -            20 or later: one path down
//      born      0     4    17    26
//
// (Leaves have PWSP_PLACING_LEAF roots each, which are looked at one after another.)
//
// Loops. A root that is made before a loop and used in it lives to the loop's end, as each
// iteration uses it; one that is made in it and used after it lives from its beginning. A root that
// rotates keeps its two places while the loop runs. Other roots of a body share bytes as outside
// loops: flags keep iterations apart.
//
// A source of an instruction never shares bytes with its destination, even if the source dies
// there: instructions write before they have read everything.

#include "memory.h"

#include "../base/heap.h"

#include <inttypes.h>

#define PWSP_PLACING_ORDER_COUNT 3

// A root that some instruction uses.
typedef struct pwsp_placing_root {
    uint32_t tile;
    uint32_t first, last;  // instructions
    uint32_t size;         // in blocks
    uint32_t address;      // in blocks: the candidate
    uint32_t best;         // the address in the lowest placement so far
    uint32_t end;          // last + 1 if it has been placed, else 0
} pwsp_placing_root;

#define PWSP_PLACING_LEAF 16u

typedef struct pwsp_placing {
    pwsp_list *list;
    const ptoisa_machine *machine;
    pwsp_list_fault *fault;
    const uint32_t *early;  // [tile] or NULL: pwsp_list_place_early
    uint32_t *root_of;      // [tile] its index in roots + 1; of roots that are used
    uint32_t loop_first[PTOWSP_LOOP_MAX + 1], loop_last[PTOWSP_LOOP_MAX + 1];  // instructions
    pwsp_placing_root *roots;                                                  // in order of birth
    uint32_t root_count;
    uint32_t peak[PTOISA_MEMORY_COUNT];  // blocks live at once, the most
    uint32_t used[PTOISA_MEMORY_COUNT];  // blocks below the ceiling of the best placement
    // Of the memory that is being planned.
    pwsp_placing_root *room;  // its roots, in order of birth
    uint32_t room_count;
    uint32_t leaf_count;  // of the tree: a power of two
    uint32_t *latest;     // [1] is the top of the tree: last + 1 of those placed, or 0
    uint64_t *keys;       // room for sorting
    uint32_t key_count;
} pwsp_placing;

// -- lives ----------------------------------------------------------------------------------------

static void pwsp_placing_name_tile(const pwsp_list *list, uint32_t tile, char *out_text,
                                   size_t size) {
    const pwsp_list_tile *t = &list->tiles[tile];
    snprintf(out_text, size, "tile %" PRIu32 " (%" PRIu32 " x %" PRIu32 " %s)", tile, t->rows,
             t->cols, ptoisa_dtype_name((ptoisa_dtype)t->dtype));
}

// A root does not fit; `live` bytes of its memory are taken when it is born.
static bool pwsp_placing_refuse(pwsp_placing *p, uint32_t tile, uint32_t insn, uint64_t live,
                                const char *why) {
    const pwsp_list_tile *t = &p->list->tiles[tile];
    char name[96];
    pwsp_placing_name_tile(p->list, tile, name, sizeof name);
    return pwsp_list_fail(
        p->fault, PTOWSP_LIMIT_EXCEEDED, insn,
        "memory: %s needs %" PRIu64 " bytes of %s at instruction %" PRIu32 " (%s), where %" PRIu64
        " of %" PRIu32 " are in use%s",
        name, pwsp_list_root_bytes(t), ptoisa_memory_name((ptoisa_memory)t->memory), insn,
        pwsp_insn_name(&p->list->insns[insn]), live, p->machine->memory_size[t->memory], why);
}

// Notes that instruction i uses a tile.
static void pwsp_placing_use(pwsp_placing *p, uint32_t tile, uint32_t i) {
    PTOWSP_ASSERT(tile < p->list->tile_count);
    uint32_t root = p->list->tiles[tile].root;
    uint32_t number = p->root_of[root];
    if (!number) {
        p->roots[p->root_count].tile = root;
        p->roots[p->root_count].first = i;
        p->root_of[root] = number = ++p->root_count;
    }
    p->roots[number - 1].last = i;
}

// Notes every root at its first use, which puts them in order of birth, and its last use. Of those
// that an instruction uses first, sources are born before destinations.
static void pwsp_placing_find_lives(pwsp_placing *p) {
    const pwsp_list *list = p->list;
    for (uint32_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        if (insn->op == PWSP_INSN_LOOP) {
            p->loop_first[insn->loop] = i;
        } else if (insn->op == PWSP_INSN_END) {
            p->loop_last[insn->loop] = i;
        }
        pwsp_insn_tiles tiles;
        pwsp_insn_find_tiles(insn, &tiles);
        for (uint32_t k = 0; k < tiles.count; k++) {
            pwsp_placing_use(p, tiles.at[k], i);
        }
    }
}

// Extends lives over the loops that they overlap, inner loops first, and puts roots in order of
// birth again. False when memory is out.
static bool pwsp_placing_extend_lives(pwsp_placing *p) {
    const pwsp_list *list = p->list;
    uint32_t count = p->root_count;
    for (uint32_t i = 0; i < count; i++) {
        pwsp_placing_root *root = &p->roots[i];
        for (uint32_t loop = list->loop_count; loop > 0; loop--) {
            uint32_t first = p->loop_first[loop], last = p->loop_last[loop];
            bool is_used_in = root->last > first && root->first < last;
            bool is_rotating = list->tiles[root->tile].loop == loop;
            if (is_used_in && (is_rotating || root->first < first) && root->last < last) {
                root->last = last;
            }
            if (is_used_in && (is_rotating || root->last > last) && root->first > first) {
                root->first = first;
            }
        }
        uint32_t early = p->early ? p->early[root->tile] : 0;
        root->first = early && early < root->first ? early : root->first;
    }
    uint64_t *keys = (uint64_t *)pwsp_arena_alloc(&p->list->arena, (count + 1) * sizeof *keys, 8);
    size_t size = (count + 1) * sizeof *p->roots;
    pwsp_placing_root *roots = (pwsp_placing_root *)pwsp_arena_alloc(&p->list->arena, size, 8);
    if (!keys || !roots) {
        return pwsp_list_fail(p->fault, PTOWSP_OUT_OF_MEMORY, 0, "memory: out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = (uint64_t)p->roots[i].first << 32 | i;
    }
    pwsp_sort_u64(NULL, keys, count);
    for (uint32_t i = 0; i < count; i++) {
        roots[i] = p->roots[(uint32_t)keys[i]];
        p->root_of[roots[i].tile] = i + 1;
    }
    p->roots = roots;
    return true;
}

// Finds how much is live at once, and refuses a list that no placement could fit.
static bool pwsp_placing_find_peaks(pwsp_placing *p) {
    const pwsp_list *list = p->list;
    uint64_t live[PTOISA_MEMORY_COUNT] = {0};
    // Roots by the instruction at which they die: the first of each, and the next one; + 1.
    size_t count = (size_t)list->insn_count + 1;
    uint32_t *dying =
        (uint32_t *)pwsp_arena_alloc(&p->list->arena, (count + p->root_count) * sizeof *dying, 8);
    if (!dying) {
        return pwsp_list_fail(p->fault, PTOWSP_OUT_OF_MEMORY, 0, "memory: out of memory");
    }
    uint32_t *next = dying + count, born = 0;
    for (uint32_t i = 0; i < p->root_count; i++) {
        next[i] = dying[p->roots[i].last];
        dying[p->roots[i].last] = i + 1;
    }
    for (uint32_t i = 0; i < list->insn_count; i++) {
        for (; born < p->root_count && p->roots[born].first == i; born++) {
            pwsp_placing_root *root = &p->roots[born];
            const pwsp_list_tile *t = &list->tiles[root->tile];
            uint64_t blocks = pwsp_ceil_div_u64(pwsp_list_root_bytes(t), PWSP_TILE_ALIGN);
            uint64_t capacity = p->machine->memory_size[t->memory] / PWSP_TILE_ALIGN;
            if (blocks > capacity || live[t->memory] + blocks > capacity) {
                return pwsp_placing_refuse(p, root->tile, i, live[t->memory] * PWSP_TILE_ALIGN, "");
            }
            root->size = (uint32_t)blocks;
            live[t->memory] += blocks;
            p->peak[t->memory] = (uint32_t)pwsp_max_u64(p->peak[t->memory], live[t->memory]);
        }
        for (uint32_t r = dying[i]; r; r = next[r - 1]) {
            live[list->tiles[p->roots[r - 1].tile].memory] -= p->roots[r - 1].size;
        }
    }
    return true;
}

// -- placing --------------------------------------------------------------------------------------

// Says in the tree that root i has been placed.
static void pwsp_placing_note(pwsp_placing *p, uint32_t i) {
    uint32_t end = p->room[i].end = p->room[i].last + 1;
    for (uint32_t at = p->leaf_count + i / PWSP_PLACING_LEAF; at > 0; at /= 2) {
        p->latest[at] = p->latest[at] > end ? p->latest[at] : end;
    }
}

// Collects, as address << 32 | index, those under a node that are placed, born up to instruction `last`,
// and not dead before `first`. The node covers roots [low, low + width).
static void pwsp_placing_collect(pwsp_placing *p, uint32_t node, uint32_t low, uint32_t width,
                                 uint32_t first, uint32_t last) {
    if (low >= p->room_count || p->latest[node] <= first || p->room[low].first > last) {
        return;
    }
    if (width > PWSP_PLACING_LEAF) {
        pwsp_placing_collect(p, 2 * node, low, width / 2, first, last);
        pwsp_placing_collect(p, 2 * node + 1, low + width / 2, width / 2, first, last);
        return;
    }
    const pwsp_placing_root *root = &p->room[low];
    const pwsp_placing_root *end = p->room + pwsp_min_u64(low + width, p->room_count);
    for (; root < end && root->first <= last; root++) {
        if (root->end > first) {
            p->keys[p->key_count++] = (uint64_t)root->address << 32 | (uint64_t)(root - p->room);
        }
    }
}

// Places a root into the smallest gap that holds it, else on top, and returns where it ends.
static uint32_t pwsp_placing_place(pwsp_placing *p, uint32_t i) {
    pwsp_placing_root *root = &p->room[i];
    p->key_count = 0;
    pwsp_placing_collect(p, 1, 0, p->leaf_count * PWSP_PLACING_LEAF, root->first, root->last);
    pwsp_sort_u64(NULL, p->keys, p->key_count);
    uint32_t top = 0, best = UINT32_MAX, best_gap = UINT32_MAX;
    for (uint32_t k = 0; k < p->key_count; k++) {
        const pwsp_placing_root *other = &p->room[(uint32_t)p->keys[k]];
        if (other->address > top && other->address - top >= root->size &&
            other->address - top < best_gap) {
            best = top;
            best_gap = other->address - top;
        }
        uint32_t end = other->address + other->size;
        top = end > top ? end : top;
    }
    root->address = best == UINT32_MAX ? top : best;
    pwsp_placing_note(p, i);
    return root->address + root->size;
}

// The sort key: smaller is earlier.
static uint32_t pwsp_placing_rank(const pwsp_placing_root *root, uint32_t order) {
    switch (order) {
    case 0: return UINT32_MAX - root->size;
    case 1: return 0;  // by birth
    default: return UINT32_MAX - (root->last - root->first);
    }
}

// Places all roots of the room in an order, and returns the ceiling.
static uint32_t pwsp_placing_try(pwsp_placing *p, uint32_t order, uint64_t *sequence) {
    for (uint32_t i = 0; i < p->room_count; i++) {
        sequence[i] = (uint64_t)pwsp_placing_rank(&p->room[i], order) << 32 | i;
        p->room[i].end = 0;
    }
    if (order != 1) {
        pwsp_sort_u64(NULL, sequence, p->room_count);
    }
    memset(p->latest, 0, 2 * (size_t)p->leaf_count * sizeof p->latest[0]);
    uint32_t ceiling = 0;
    for (uint32_t i = 0; i < p->room_count; i++) {
        uint32_t end = pwsp_placing_place(p, (uint32_t)sequence[i]);
        ceiling = end > ceiling ? end : ceiling;
    }
    return ceiling;
}

// No order fits the memory though at no time too much is live: names the first root that does not.
static bool pwsp_placing_refuse_gaps(pwsp_placing *p, uint32_t capacity) {
    uint32_t i = 0;
    while (p->room[i].best + p->room[i].size <= capacity) {
        i++;
    }
    uint64_t live = 0;
    for (uint32_t k = 0; k < p->room_count; k++) {
        bool is_live = p->room[k].first <= p->room[i].first && p->room[k].last >= p->room[i].first;
        live += k != i && is_live ? p->room[k].size : 0;
    }
    return pwsp_placing_refuse(p, p->room[i].tile, p->room[i].first, live * PWSP_TILE_ALIGN,
                               " and what is free is in pieces");
}

// Plans one memory, whose roots are p->room.
static bool pwsp_placing_plan(pwsp_placing *p, ptoisa_memory memory, uint64_t *sequence) {
    p->leaf_count = 1;
    while (p->leaf_count * PWSP_PLACING_LEAF < p->room_count) {
        p->leaf_count *= 2;
    }
    uint32_t lowest = UINT32_MAX;
    for (uint32_t order = 0; order < PWSP_PLACING_ORDER_COUNT && lowest > p->peak[memory];
         order++) {
        uint32_t ceiling = pwsp_placing_try(p, order, sequence);
        if (ceiling >= lowest) {
            continue;
        }
        lowest = ceiling;
        for (uint32_t i = 0; i < p->room_count; i++) {
            p->room[i].best = p->room[i].address;
        }
    }
    p->used[memory] = lowest;
    uint32_t capacity = p->machine->memory_size[memory] / PWSP_TILE_ALIGN;
    return lowest <= capacity || pwsp_placing_refuse_gaps(p, capacity);
}

// Gathers the roots of each memory, keeping their order, and plans them.
static bool pwsp_placing_plan_all(pwsp_placing *p) {
    size_t count = p->root_count;
    pwsp_arena *arena = &p->list->arena;
    pwsp_placing_root *rooms =
        (pwsp_placing_root *)pwsp_arena_take(arena, count * sizeof *rooms, 8);
    p->latest = (uint32_t *)pwsp_arena_take(arena, 4 * count * sizeof *p->latest, 8);
    p->keys = (uint64_t *)pwsp_arena_take(arena, 2 * count * sizeof *p->keys, 8);
    if (!rooms || !p->latest || !p->keys) {
        return pwsp_list_fail(p->fault, PTOWSP_OUT_OF_MEMORY, 0, "memory: out of memory");
    }
    uint32_t counts[PTOISA_MEMORY_COUNT] = {0};
    pwsp_placing_root *ends[PTOISA_MEMORY_COUNT];
    for (uint32_t i = 0; i < count; i++) {
        counts[p->list->tiles[p->roots[i].tile].memory]++;
    }
    for (uint32_t memory = 0, begin = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        ends[memory] = rooms + begin;
        begin += counts[memory];
    }
    for (uint32_t i = 0; i < count; i++) {
        *ends[p->list->tiles[p->roots[i].tile].memory]++ = p->roots[i];
    }
    for (uint32_t memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        p->room_count = counts[memory];
        p->room = ends[memory] - counts[memory];
        if (p->room_count && p->peak[memory] &&
            !pwsp_placing_plan(p, (ptoisa_memory)memory, p->keys + count)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        p->roots[p->root_of[rooms[i].tile] - 1].best = rooms[i].best;
    }
    return true;
}

// Writes the addresses into the list.
static void pwsp_placing_commit(const pwsp_placing *p) {
    for (uint32_t tile = 1; tile < p->list->tile_count; tile++) {
        pwsp_list_tile *t = &p->list->tiles[tile];
        if (t->root != tile) {
            continue;
        }
        t->address = 0;
        t->first = UINT32_MAX;
        t->last = 0;
        if (p->root_of[tile]) {
            const pwsp_placing_root *root = &p->roots[p->root_of[tile] - 1];
            t->address = root->best * PWSP_TILE_ALIGN;
            t->first = root->first;
            t->last = root->last;
        }
    }
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        p->list->used[memory] = p->used[memory] * PWSP_TILE_ALIGN;
    }
}

PWSP_INTERNAL bool pwsp_list_place(pwsp_list *list, const ptoisa_machine *machine,
                                   pwsp_list_fault *fault) {
    return pwsp_list_place_early(list, machine, NULL, fault);
}

PWSP_INTERNAL bool pwsp_list_place_early(pwsp_list *list, const ptoisa_machine *machine,
                                         const uint32_t *early, pwsp_list_fault *fault) {
    if (list->insn_count >= UINT32_MAX || list->tile_count >= UINT32_MAX / 8) {
        return pwsp_list_fail(fault, PTOWSP_LIMIT_EXCEEDED, 0,
                              "memory: %" PRIu64 " instructions and %" PRIu64 " tiles",
                              list->insn_count, list->tile_count);
    }
    pwsp_placing p;
    memset(&p, 0, sizeof p);
    p.list = list;
    p.machine = machine;
    p.fault = fault;
    p.early = early;
    const pwsp_arena_mark mark = pwsp_arena_here(&list->arena);
    size_t count = (size_t)list->tile_count + 1;
    p.root_of = (uint32_t *)pwsp_arena_alloc(&list->arena, count * sizeof *p.root_of, 8);
    p.roots = (pwsp_placing_root *)pwsp_arena_alloc(&list->arena, count * sizeof *p.roots, 8);
    bool is_good = true;
    if (!p.root_of || !p.roots) {
        is_good = pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "memory: out of memory");
    } else {
        pwsp_placing_find_lives(&p);
        is_good = (list->loop_count == 0 || pwsp_placing_extend_lives(&p)) &&
                  pwsp_placing_find_peaks(&p) && pwsp_placing_plan_all(&p);
    }
    if (is_good) {
        pwsp_placing_commit(&p);
    }
    pwsp_arena_back(&list->arena, mark);
    return is_good;
}
