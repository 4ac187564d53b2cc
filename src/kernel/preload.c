// Cutting bodies into an early and a late phase.

#include "preload.h"

#include <inttypes.h>

// How the body of a loop uses a root.
typedef struct pwsp_preload_root {
    bool is_late;       // its last write so far is late
    bool is_free;       // ... depends on loads alone
    bool is_written;    // in the body
    bool is_carried;    // it is read before the body writes it
    bool is_elsewhere;  // it is used outside of the body
    bool is_reused;     // an early instruction writes it after a late one has used it
    bool has_users[2];  // early ones, late ones
    bool has_late;      // a late one so far
} pwsp_preload_root;

typedef struct pwsp_preload {
    pwsp_list *list;
    pwsp_list_fault *fault;
    uint32_t loop, late;   // and its late instructions' loop
    uint32_t first, last;  // LOOP and END
    pwsp_preload_root *roots;
    bool *is_late;     // [insn]
    bool *is_free;     // [insn] it depends on loads alone
    uint32_t *copies;  // [tile] what late instructions have in its place
} pwsp_preload;

static pwsp_preload_root *pwsp_preload_root_of(const pwsp_preload *p, uint32_t tile) {
    return &p->roots[p->list->tiles[tile].root];
}

// Reads come before writes, and scratch, which is written last, carries nothing.
static uint32_t pwsp_preload_tiles(const pwsp_insn *insn, pwsp_insn_tiles *tiles) {
    pwsp_insn_find_tiles(insn, tiles);
    return tiles->count - (insn->tmp != 0);
}

// Finds which roots the body and the rest of the list use.
static void pwsp_preload_find_roots(pwsp_preload *p) {
    for (uint32_t i = 0; i < p->list->insn_count; i++) {
        pwsp_insn_tiles tiles;
        uint32_t count = pwsp_preload_tiles(&p->list->insns[i], &tiles);
        bool is_inside = i > p->first && i < p->last;
        for (uint32_t k = 0; k < count; k++) {
            pwsp_preload_root *root = pwsp_preload_root_of(p, tiles.at[k]);
            bool is_read = k < tiles.read_count;
            root->is_elsewhere = root->is_elsewhere || !is_inside;
            root->is_carried = root->is_carried || (is_inside && is_read && !root->is_written);
            root->is_written = root->is_written || (is_inside && !is_read);
        }
    }
    for (uint64_t i = 1; i < p->list->tile_count; i++) {  // read in the body, never written there
        p->roots[i].is_carried = p->roots[i].is_carried && p->roots[i].is_written;
    }
}

// -- values -----------------------------------------------------------------------------------------

// Lowering reuses the bytes of values after their last use, so a carried tile may
// hold several values in an iteration. All but the carried value get tiles of their own: each from the
// instruction that writes all of the tile to the next one that does.

static uint32_t *pwsp_preload_operand(pwsp_insn *insn, uint32_t k) {
    if (k < PWSP_INSN_SRC_MAX) {
        return &insn->src[k];
    }
    k -= PWSP_INSN_SRC_MAX;
    return k < PWSP_INSN_DST_MAX    ? &insn->dst[k]
           : k == PWSP_INSN_DST_MAX ? &insn->tmp
                                    : &insn->scalar.cols_of;
}

#define PWSP_PRELOAD_OPERANDS (PWSP_INSN_SRC_MAX + PWSP_INSN_DST_MAX + 2)

// Does an instruction write all of a root?
static bool pwsp_preload_writes(const pwsp_list *list, const pwsp_insn *insn, uint32_t root) {
    const pwsp_list_tile *tile = &list->tiles[insn->dst[0]], *whole = &list->tiles[root];
    return insn->dst[0] && tile->root == root && !insn->is_dst_read && tile->offset == 0 &&
           pwsp_list_tile_bytes(tile) == pwsp_list_tile_bytes(whole);
}

// Lets the operands of an instruction that are tiles of a root be tiles of another one.
static bool pwsp_preload_rename(const pwsp_preload *p, uint32_t i, uint32_t root, uint32_t to,
                                bool has_sources, bool has_results) {
    pwsp_list *list = p->list;
    for (uint32_t k = 0; k < PWSP_PRELOAD_OPERANDS; k++) {
        uint32_t *operand = pwsp_preload_operand(&list->insns[i], k);
        bool is_result = k >= PWSP_INSN_SRC_MAX && k < PWSP_INSN_SRC_MAX + PWSP_INSN_DST_MAX;
        if (*operand == 0 || list->tiles[*operand].root != root ||
            !(is_result ? has_results : has_sources)) {
            continue;
        }
        uint32_t copy = pwsp_list_add_tile(list);
        if (!copy) {
            return false;
        }
        list->tiles[copy] = list->tiles[*operand];
        list->tiles[copy].root = to;
        *operand = copy;
    }
    return true;
}

// Gives values their own tiles. False when memory is out.
static bool pwsp_preload_separate(const pwsp_preload *p) {
    pwsp_list *list = p->list;
    for (uint32_t i = p->first + 1; i < p->last; i++) {
        uint32_t root = list->tiles[list->insns[i].dst[0]].root, next = i + 1;
        if (!pwsp_preload_writes(list, &list->insns[i], root) ||
            !(p->roots[root].is_carried || p->roots[root].is_reused)) {
            continue;
        }
        while (next < p->last && !pwsp_preload_writes(list, &list->insns[next], root)) {
            next++;
        }
        uint32_t to = next < p->last ? pwsp_list_add_tile(list) : root;
        if (to == root) {
            continue;  // the carried value
        }
        if (!to) {
            return false;
        }
        list->tiles[to] = list->tiles[root];
        list->tiles[to].root = to;
        for (uint32_t at = i; at <= next; at++) {
            if (!pwsp_preload_rename(p, at, root, to, at > i, at < next)) {
                return false;
            }
        }
    }
    return true;
}

// -- phases ---------------------------------------------------------------------------------------

// Is the TPUSH of a TPOP late? FIFOs keep the order, so the n-th TPOP of the body has the n-th TPUSH.
static bool pwsp_preload_push_is_late(const pwsp_preload *p, uint32_t pop) {
    uint32_t fifo = p->list->insns[pop].mode, skipped = 0;
    for (uint32_t i = p->first + 1; i < pop; i++) {
        const pwsp_insn *insn = &p->list->insns[i];
        skipped += insn->op == PWSP_INSN_TPOP && insn->mode == fifo;
    }
    for (uint32_t i = p->first + 1; i < pop; i++) {
        const pwsp_insn *insn = &p->list->insns[i];
        if (insn->op == PWSP_INSN_TPUSH && insn->mode == fifo && skipped-- == 0) {
            return p->is_late[i];
        }
    }
    return false;
}

// Finds instructions that read late results; true if there are new ones. A carried value is late if the
// previous walk found its writer late.
static bool pwsp_preload_walk(pwsp_preload *p) {
    bool has_changed = false;
    for (uint32_t i = p->first + 1; i < p->last; i++) {
        const pwsp_insn *insn = &p->list->insns[i];
        pwsp_insn_tiles tiles;
        uint32_t count = pwsp_preload_tiles(insn, &tiles);
        bool is_pop = insn->op == PWSP_INSN_TPOP;
        bool is_late =
            p->is_late[i] ||
            (is_pop && (insn->mode == PWSP_FIFO_TO_CUBE || pwsp_preload_push_is_late(p, i)));
        bool is_free = !is_pop && insn->op != PWSP_INSN_TPUSH;
        for (uint32_t k = 0; k < tiles.read_count; k++) {
            const pwsp_preload_root *root = pwsp_preload_root_of(p, tiles.at[k]);
            is_late = is_late || root->is_late;
            is_free = is_free && (!root->is_written || (root->is_free && !root->is_carried));
        }
        has_changed = has_changed || is_late != p->is_late[i];
        p->is_late[i] = is_late;
        p->is_free[i] = is_free && insn->side == PWSP_SIDE_CUBE;
        for (uint32_t k = tiles.read_count; k < count; k++) {
            pwsp_preload_root *root = pwsp_preload_root_of(p, tiles.at[k]);
            root->is_late = is_late;
            root->is_free = p->is_free[i];
        }
    }
    return has_changed;
}

// Loads and moves of loaded tiles are late if all of their readers are.
static void pwsp_preload_sink(pwsp_preload *p) {
    for (uint32_t i = p->last - 1; i > p->first; i--) {
        const pwsp_insn *insn = &p->list->insns[i];
        bool is_late = p->is_free[i] && insn->dst[0] != 0 && !p->is_late[i];
        for (uint32_t j = i + 1; j < p->last && is_late; j++) {
            pwsp_insn_tiles tiles;
            pwsp_insn_find_tiles(&p->list->insns[j], &tiles);
            for (uint32_t k = 0; k < tiles.read_count; k++) {
                bool is_read =
                    p->list->tiles[tiles.at[k]].root == p->list->tiles[insn->dst[0]].root;
                is_late = is_late && (!is_read || p->is_late[j]);
            }
        }
        p->is_late[i] = p->is_late[i] || is_late;
    }
}

static void pwsp_preload_find_phases(pwsp_preload *p) {
    pwsp_preload_find_roots(p);
    while (pwsp_preload_walk(p)) {
    }
    pwsp_preload_sink(p);
    for (uint32_t i = p->first + 1; i < p->last; i++) {
        pwsp_insn_tiles tiles;
        uint32_t count = pwsp_preload_tiles(&p->list->insns[i], &tiles);
        for (uint32_t k = 0; k < count; k++) {
            pwsp_preload_root *root = pwsp_preload_root_of(p, tiles.at[k]);
            root->has_users[p->is_late[i]] = true;
        }
    }
}

// Finds roots that early instructions write after late ones have used them: early ones will come first.
static bool pwsp_preload_find_reused(pwsp_preload *p) {
    bool is_any = false;
    for (uint32_t i = p->first + 1; i < p->last; i++) {
        pwsp_insn_tiles tiles;
        uint32_t count = pwsp_preload_tiles(&p->list->insns[i], &tiles);
        for (uint32_t k = p->is_late[i] ? 0 : tiles.read_count; k < count; k++) {
            pwsp_preload_root *root = pwsp_preload_root_of(p, tiles.at[k]);
            if (p->is_late[i]) {
                root->has_late = true;
            } else if (root->has_late) {
                root->is_reused = is_any = true;
            }
        }
    }
    return is_any;
}

// -- checks ---------------------------------------------------------------------------------------

static bool pwsp_preload_refuse(const pwsp_preload *p, uint32_t insn, const char *why) {
    return pwsp_list_fail(p->fault, PTOWSP_UNSUPPORTED, insn,
                          "loop %" PRIu32 " cannot preload %" PRIu32 " iterations: %s", p->loop,
                          p->list->loops[p->loop].preload, why);
}

// Do both phases use a tile that the body writes?
static bool pwsp_preload_is_crossing(const pwsp_preload_root *root) {
    return root->is_written && root->has_users[0] && root->has_users[1];
}

static bool pwsp_preload_check(const pwsp_preload *p) {
    bool has_early_push = false, has_late = false;
    for (uint32_t i = p->first + 1; i < p->last; i++) {
        const pwsp_insn *insn = &p->list->insns[i];
        if (pwsp_insn_is_mark(insn)) {
            return pwsp_preload_refuse(p, i, "it has another loop in it");
        }
        bool is_to_cube = insn->op == PWSP_INSN_TPUSH && insn->mode == PWSP_FIFO_TO_CUBE;
        has_early_push = has_early_push || (is_to_cube && !p->is_late[i]);
        has_late = has_late || p->is_late[i];
        if (is_to_cube && p->is_late[i]) {
            return pwsp_preload_refuse(
                p, i,
                "a tile that its vector half pushes to the cube half depends on a late product");
        }
        pwsp_insn_tiles tiles;
        uint32_t count = pwsp_preload_tiles(insn, &tiles);
        for (uint32_t k = 0; k < count; k++) {
            const pwsp_preload_root *root = pwsp_preload_root_of(p, tiles.at[k]);
            if (pwsp_preload_is_crossing(root) && (root->is_carried || root->is_elsewhere)) {
                return pwsp_preload_refuse(
                    p, i, "its early and its late half use the same carried value");
            }
        }
    }
    return (has_early_push && has_late) ||
           pwsp_preload_refuse(p, p->first,
                               "no product takes a tile that its vector half computes");
}

// -- the list -------------------------------------------------------------------------------------

// Makes sizes depend on the index of the late iteration instead of the loop's.
static void pwsp_preload_set_late(const pwsp_preload *p, pwsp_list_tile *tile) {
    tile->valid_rows.loop =
        tile->valid_rows.loop == p->loop ? (uint8_t)p->late : tile->valid_rows.loop;
    tile->valid_cols.loop =
        tile->valid_cols.loop == p->loop ? (uint8_t)p->late : tile->valid_cols.loop;
}

// The tile that late instructions use in place of one; 0 when memory is out.
static uint32_t pwsp_preload_copy(pwsp_preload *p, uint32_t tile) {
    pwsp_list *list = p->list;
    pwsp_preload_root *root = pwsp_preload_root_of(p, tile);
    bool is_crossing = pwsp_preload_is_crossing(root);
    if (!is_crossing && (root->is_written || (list->tiles[tile].valid_rows.loop != p->loop &&
                                              list->tiles[tile].valid_cols.loop != p->loop))) {
        pwsp_preload_set_late(p, &list->tiles[tile]);
        return tile;
    }
    if (p->copies[tile] == 0) {
        uint32_t copy = pwsp_list_add_tile(list);
        if (copy == 0) {
            return 0;
        }
        list->tiles[copy] = list->tiles[tile];
        list->tiles[copy].loop = list->tiles[copy].places = 0;
        list->tiles[copy].is_late = is_crossing;
        pwsp_preload_set_late(p, &list->tiles[copy]);
        p->copies[tile] = copy;
    }
    return p->copies[tile];
}

// Makes an instruction a late one; false when memory is out.
static bool pwsp_preload_move(pwsp_preload *p, pwsp_insn *insn) {
    for (uint32_t k = 0; k < PWSP_PRELOAD_OPERANDS; k++) {
        uint32_t *operand = pwsp_preload_operand(insn, k);
        if (*operand && !(*operand = pwsp_preload_copy(p, *operand))) {
            return false;
        }
    }
    insn->row_loop = insn->row_loop == p->loop ? (uint8_t)p->late : insn->row_loop;
    insn->col_loop = insn->col_loop == p->loop ? (uint8_t)p->late : insn->col_loop;
    insn->begins = insn->begins == p->loop ? (uint8_t)p->late : insn->begins;
    return true;
}

// Puts early instructions first, each of its phase. False when memory is out.
static bool pwsp_preload_order(pwsp_preload *p) {
    pwsp_list *list = p->list;
    uint32_t count = p->last - p->first - 1, at = p->first + 1;
    pwsp_insn *insns = (pwsp_insn *)pwsp_arena_take(&list->arena, count * sizeof *insns, 8);
    if (!insns) {
        return false;
    }
    memcpy(insns, &list->insns[p->first + 1], count * sizeof *insns);
    for (int phase = 0; phase < 2; phase++) {
        for (uint32_t i = 0; i < count; i++) {
            if (p->is_late[p->first + 1 + i] != phase) {
                continue;
            }
            if (phase && !pwsp_preload_move(p, &insns[i])) {
                return false;
            }
            insns[i].phase = (uint8_t)(phase ? p->late : p->loop);
            list->insns[at++] = insns[i];
        }
    }
    return true;
}

// Gives FIFOs their slots: both as many, as trees have them. False: these are too many.
static bool pwsp_preload_fill(const pwsp_preload *p) {
    pwsp_list *list = p->list;
    uint32_t pushes[PWSP_FIFO_COUNT] = {0, 0}, under_way = list->loops[p->loop].preload + 1;
    for (uint32_t i = p->first; i < p->last; i++) {
        const pwsp_insn *insn = &list->insns[i];
        pushes[insn->mode % PWSP_FIFO_COUNT] += insn->op == PWSP_INSN_TPUSH;
    }
    uint32_t most = 2 * pushes[PWSP_FIFO_TO_CUBE];
    most = most > pushes[PWSP_FIFO_TO_VECTOR] ? most : pushes[PWSP_FIFO_TO_VECTOR];
    if (most * under_way > PWSP_FIFO_SLOTS_MAX) {
        return pwsp_list_fail(p->fault, PTOWSP_LIMIT_EXCEEDED, p->first,
                              "loop %" PRIu32 " preloads %" PRIu32 " iterations of %" PRIu32
                              " tiles to the cube core, which takes %" PRIu32
                              " slots of a FIFO; there are %d",
                              p->loop, under_way - 1, pushes[PWSP_FIFO_TO_CUBE], most * under_way,
                              PWSP_FIFO_SLOTS_MAX);
    }
    for (uint32_t i = 0; i < PWSP_FIFO_COUNT; i++) {
        uint8_t *slots = &list->fifos[i].slots;
        *slots = *slots < most * under_way ? (uint8_t)(most * under_way) : *slots;
    }
    return true;
}

// Gives tiles that cross phases their places.
static void pwsp_preload_place(pwsp_preload *p) {
    pwsp_list *list = p->list;
    uint32_t places = list->loops[p->loop].preload + 1;
    for (uint64_t i = 1; i < list->tile_count; i++) {
        pwsp_list_tile *tile = &list->tiles[i];
        if (tile->root == i && pwsp_preload_is_crossing(&p->roots[i])) {
            tile->loop = (uint8_t)p->loop;
            tile->places = (uint8_t)places;
        }
    }
}

// Gives values their own tiles, and makes room for the state of roots. False when memory is out.
static bool pwsp_preload_renew(pwsp_preload *p) {
    pwsp_list *list = p->list;
    if (!pwsp_preload_separate(p)) {
        return false;
    }
    p->roots = PWSP_ARENA_ARRAY(&list->arena, pwsp_preload_root, list->tile_count);
    p->copies = PWSP_ARENA_ARRAY(&list->arena, uint32_t, list->tile_count);
    p->is_late = PWSP_ARENA_ARRAY(&list->arena, bool, 2 * list->insn_count);
    p->is_free = p->is_late ? p->is_late + list->insn_count : NULL;
    return p->roots && p->copies && p->is_late;
}

// Finds the body and makes room for the state of roots; false when memory is out.
static bool pwsp_preload_begin(pwsp_preload *p) {
    pwsp_list *list = p->list;
    while (list->insns[p->first].op != PWSP_INSN_LOOP || list->insns[p->first].loop != p->loop) {
        p->first++;
    }
    p->last = p->first;
    while (list->insns[p->last].op != PWSP_INSN_END || list->insns[p->last].loop != p->loop) {
        p->last++;
    }
    p->roots = PWSP_ARENA_ARRAY(&list->arena, pwsp_preload_root, list->tile_count);
    if (!p->roots) {
        return false;
    }
    pwsp_preload_find_roots(p);
    return pwsp_preload_renew(p);
}

static bool pwsp_preload_loop(pwsp_list *list, uint32_t loop, pwsp_list_fault *fault) {
    pwsp_preload p;
    memset(&p, 0, sizeof p);
    p.list = list;
    p.fault = fault;
    p.loop = loop;
    if (!pwsp_preload_begin(&p)) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
    }
    pwsp_preload_find_phases(&p);
    bool is_reused = pwsp_preload_find_reused(&p);
    if (is_reused) {
        if (!pwsp_preload_renew(&p)) {
            return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
        }
        pwsp_preload_find_phases(&p);
        is_reused = pwsp_preload_find_reused(&p);
    }
    if (!pwsp_preload_check(&p) || !pwsp_preload_fill(&p)) {
        return false;
    }
    if (is_reused) {
        return pwsp_preload_refuse(&p, p.first,
                                   "its early half changes a value that its late half has used");
    }
    if (list->loop_count == PTOWSP_LOOP_MAX) {
        return pwsp_list_fail(fault, PTOWSP_LIMIT_EXCEEDED, p.first,
                              "loop %" PRIu32 " preloads, and counts as two: more than %d loops",
                              loop, PTOWSP_LOOP_MAX);
    }
    p.late = ++list->loop_count;
    list->loops[p.late] = list->loops[loop];
    list->loops[p.late].parent = loop;
    list->loops[p.late].preload = 0;
    list->loops[p.late].late_of = loop;
    if (!pwsp_preload_order(&p)) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
    }
    pwsp_preload_place(&p);
    return true;
}

PWSP_INTERNAL bool pwsp_list_preload(pwsp_list *list, pwsp_list_fault *fault) {
    uint32_t count = list->loop_count;
    for (uint32_t loop = 1; loop <= count; loop++) {
        if (!list->is_mixed) {
            list->loops[loop].preload = 0;
        } else if (list->loops[loop].preload && !pwsp_preload_loop(list, loop, fault)) {
            return false;
        }
    }
    return true;
}
