// Unrolling, for the proof: nothing here is shared with the passes that made the list.
//
// A tile belongs to the innermost loop that has all uses of its root. Each iteration of that loop
// gets a copy of it, at its place in this iteration, so that the proof sees a root live from its
// first to its last use in one iteration. All other tiles stay unchanged.

#include "unroll.h"

#include <inttypes.h>

typedef struct pwsp_unrolling {
    const pwsp_list *list;
    pwsp_unrolled *out;
    const uint32_t *counts;
    uint32_t *scopes;  // [tile] of roots: the loop with all uses; UINT32_MAX: not used
    uint32_t *copies;  // [tile] in the plain list
    uint32_t *kept;    // [place][tile] of roots with more than two places: the last copy there
    uint32_t iterations[PTOWSP_LOOP_MAX + 1];
} pwsp_unrolling;

#define PWSP_UNROLL_OPERANDS (PWSP_INSN_SRC_MAX + PWSP_INSN_DST_MAX + 1)

static uint32_t *pwsp_unroll_operand(pwsp_insn *insn, uint32_t k) {
    if (k < PWSP_INSN_SRC_MAX) {
        return &insn->src[k];
    }
    k -= PWSP_INSN_SRC_MAX;
    return k < PWSP_INSN_DST_MAX ? &insn->dst[k] : &insn->tmp;
}

// The innermost loop around both.
static uint32_t pwsp_unroll_around(const pwsp_list *list, uint32_t a, uint32_t b) {
    while (!pwsp_loop_is_within(list->loops, b, a)) {
        a = list->loops[a].parent;
    }
    return a;
}

static bool pwsp_unroll_is_flag(const pwsp_insn *insn) {
    return insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG;
}

// Finds the loop of each root.
static void pwsp_unroll_find_scopes(const pwsp_list *list, uint32_t *scopes) {
    uint32_t loop = 0;
    for (uint64_t i = 0; i < list->tile_count; i++) {
        scopes[i] = UINT32_MAX;
    }
    for (uint64_t i = 0; i < list->insn_count; i++) {
        pwsp_insn insn = list->insns[i];
        if (pwsp_insn_is_mark(&insn)) {
            loop = insn.op == PWSP_INSN_LOOP ? insn.loop : list->loops[insn.loop].parent;
            continue;
        }
        for (uint32_t k = 0; k < PWSP_UNROLL_OPERANDS; k++) {
            uint32_t tile = *pwsp_unroll_operand(&insn, k);
            uint32_t root = tile && tile < list->tile_count ? list->tiles[tile].root : 0;
            if (root && root < list->tile_count) {
                scopes[root] = scopes[root] == UINT32_MAX
                                   ? loop
                                   : pwsp_unroll_around(list, scopes[root], loop);
            }
        }
    }
}

// The loop whose turns an instruction of a phase is in.
static uint32_t pwsp_unroll_turning(const pwsp_list *list, uint32_t phase) {
    uint32_t of = phase <= list->loop_count ? list->loops[phase].late_of : 0;
    return of ? of : phase;
}

static bool pwsp_unroll_begins(const pwsp_list *list, const pwsp_insn *insn, uint32_t loop,
                               uint32_t begun) {
    uint32_t of = pwsp_unroll_turning(list, insn->begins);
    return insn->op == PTOISA_TMATMUL_ACC && of <= begun &&
           pwsp_loop_is_within(list->loops, loop, of) && pwsp_loop_runs(&list->loops[of]);
}

// Is the phase of an instruction one of its loop? Only loops that preload have phases.
static bool pwsp_unroll_check_phase(const pwsp_list *list, const pwsp_insn *insn, uint32_t i,
                                    uint32_t loop, pwsp_list_fault *fault) {
    bool is_sync = pwsp_insn_is_mark(insn) || pwsp_insn_is_sync(insn);
    uint32_t of = pwsp_unroll_turning(list, insn->phase);
    bool is_preloading = list->loops[loop].preload != 0;
    bool is_good = is_sync || !is_preloading ? insn->phase == 0
                                             : insn->phase <= list->loop_count && of == loop;
    return is_good || pwsp_list_fail(fault, PTOWSP_INVALID_PARAMS, i,
                                     "verify: instruction %" PRIu32 " (%s) is of phase %u in loop "
                                     "%" PRIu32,
                                     i, pwsp_insn_name(insn), insn->phase, loop);
}

static bool pwsp_unroll_check_marks(const pwsp_list *list, pwsp_list_fault *fault) {
    uint32_t loop = 0, begun = 0;
    for (uint32_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        if (!pwsp_unroll_check_phase(list, insn, i, loop, fault)) {
            return false;
        }
        if (insn->op == PWSP_INSN_LOOP) {
            if (insn->loop != ++begun || begun > list->loop_count || list->loops[begun].late_of ||
                list->loops[begun].parent != loop) {
                return pwsp_list_fail(fault, PTOWSP_INVALID_PARAMS, i,
                                      "verify: instruction %" PRIu32 " (LOOP) is not in turn", i);
            }
            loop = begun;
        } else if (insn->op == PWSP_INSN_END) {
            if (loop == 0 || insn->loop != loop) {
                return pwsp_list_fail(fault, PTOWSP_INVALID_PARAMS, i,
                                      "verify: instruction %" PRIu32 " (END) is not in turn", i);
            }
            loop = list->loops[loop].parent;
        } else if (insn->loop && !(pwsp_unroll_is_flag(insn) &&
                                   pwsp_loop_is_within(list->loops, loop, insn->loop))) {
            return pwsp_list_fail(fault, PTOWSP_INVALID_PARAMS, i,
                                  "verify: instruction %" PRIu32 " rotates outside of its loop", i);
        } else if (insn->begins && !pwsp_unroll_begins(list, insn, loop, begun)) {
            return pwsp_list_fail(fault, PTOWSP_INVALID_PARAMS, i,
                                  "verify: instruction %" PRIu32
                                  " begins a sum in a loop that is not around it or may not run",
                                  i);
        }
    }
    while (begun < list->loop_count && list->loops[begun + 1].late_of) {
        begun++;
    }
    return (loop == 0 && begun == list->loop_count) ||
           pwsp_list_fail(fault, PTOWSP_INVALID_PARAMS, 0, "verify: a loop is not closed");
}

PWSP_INTERNAL bool pwsp_unroll_check(const pwsp_list *list, pwsp_list_fault *fault) {
    if (!pwsp_unroll_check_marks(list, fault)) {
        return false;
    }
    pwsp_memory memory = list->arena.memory;
    uint32_t *scopes;
    if (!PWSP_ALLOC(&memory, scopes, list->tile_count + UINT64_C(1))) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "verify: out of memory");
    }
    pwsp_unroll_find_scopes(list, scopes);
    bool is_good = true;
    for (uint32_t i = 1; i < list->tile_count && is_good; i++) {
        if (list->tiles[i].root == i && list->tiles[i].loop && scopes[i] != UINT32_MAX &&
            scopes[i] != list->tiles[i].loop) {
            is_good = pwsp_list_fail(fault, PTOWSP_INVALID_PARAMS, 0,
                                     "verify: tile %" PRIu32 " rotates in loop %u, and is used in "
                                     "loop %" PRIu32,
                                     i, list->tiles[i].loop, scopes[i]);
        }
    }
    PWSP_FREE(&memory, scopes, list->tile_count + UINT64_C(1));
    return is_good;
}

// -- the plain list -------------------------------------------------------------------------------

// A late size becomes the early size of the same iteration, for comparisons.
static void pwsp_unroll_whole_loop(const pwsp_unrolling *u, pwsp_valid *valid) {
    valid->loop = (uint8_t)pwsp_unroll_turning(u->list, valid->loop);
}

// Appends a copy of a tile; 0 when memory is out. A view goes with its root.
static uint32_t pwsp_unroll_copy(pwsp_unrolling *u, uint32_t tile) {
    pwsp_unrolled *out = u->out;
    uint32_t copy = pwsp_list_add_tile(&out->list);
    bool has_room = copy && PWSP_GROW(&out->list.arena.memory, out->tile_origins,
                                      out->tile_origin_capacity, copy + 1ull);
    if (!has_room) {
        return 0;
    }
    out->tile_origins[copy] = tile;
    pwsp_list_tile *to = &out->list.tiles[copy];
    *to = u->list->tiles[tile];
    pwsp_unroll_whole_loop(u, &to->valid_rows);
    pwsp_unroll_whole_loop(u, &to->valid_cols);
    if (to->root == tile) {
        uint32_t at = pwsp_list_place_at(to, to, u->iterations[to->loop]);
        to->root = copy;
        to->address += at * (uint32_t)pwsp_list_root_step(to);
        if (to->places) {
            u->kept[(size_t)at * u->list->tile_count + tile] = copy;
        }
        to->loop = to->places = 0;
    } else if (to->is_late && to->root < u->list->tile_count) {  // of an earlier turn
        const pwsp_list_tile *root = &u->list->tiles[to->root];
        uint32_t at = pwsp_list_place_at(to, root, u->iterations[root->loop]);
        to->root = root->places ? u->kept[(size_t)at * u->list->tile_count + to->root] : 0;
        to->is_late = false;
    } else if (to->root < u->list->tile_count && u->copies[to->root]) {
        to->root = u->copies[to->root];
    } else {
        to->root = 0;  // which is refused
    }
    u->copies[tile] = copy;
    return copy;
}

// New copies of all tiles of a loop: roots before their views.
static bool pwsp_unroll_copy_scope(pwsp_unrolling *u, uint32_t loop) {
    for (int is_view = 0; is_view < 2; is_view++) {
        for (uint32_t tile = 1; tile < u->list->tile_count; tile++) {
            uint32_t root = u->list->tiles[tile].root;
            uint32_t scope = root < u->list->tile_count ? u->scopes[root] : 0;
            scope = scope == UINT32_MAX ? 0 : scope;
            if (scope == loop && (root != tile) == is_view && !pwsp_unroll_copy(u, tile)) {
                return false;
            }
        }
    }
    return true;
}

static bool pwsp_unroll_insn(pwsp_unrolling *u, uint32_t i) {
    pwsp_unrolled *out = u->out;
    pwsp_insn *insn = pwsp_list_add(&out->list, PTOISA_NOP);
    bool has_room = insn && PWSP_GROW(&out->list.arena.memory, out->origins, out->origin_capacity,
                                      out->list.insn_count);
    if (!has_room) {
        return false;
    }
    out->origins[out->list.insn_count - 1] = i;
    *insn = u->list->insns[i];
    for (uint32_t k = 0; k < PWSP_UNROLL_OPERANDS; k++) {
        uint32_t *tile = pwsp_unroll_operand(insn, k);
        if (*tile) {  // beyond the list: refused where it is
            *tile = *tile < u->list->tile_count ? u->copies[*tile] : UINT32_MAX;
        }
    }
    if (insn->loop) {
        insn->event = (uint8_t)(insn->event + u->iterations[insn->loop] % 2);
        insn->loop = 0;
    }
    uint32_t begins = pwsp_unroll_turning(u->list, insn->begins);
    uint32_t first = begins == insn->begins ? 0 : u->list->loops[begins].preload;
    if (insn->begins && u->iterations[begins] == first) {
        insn->op = PTOISA_TMATMUL;
        insn->src[0] = insn->src[1];
        insn->src[1] = insn->src[2];
        insn->src[2] = 0;
    }
    insn->begins = insn->phase = 0;
    return true;
}

// Appends instructions from *at up to the end of the loop, or of the list, `count` times.
static bool pwsp_unroll_body(pwsp_unrolling *u, uint32_t begin, uint32_t loop, uint32_t *out_end) {
    const pwsp_list *list = u->list;
    uint32_t at = begin, depth = 0;
    for (; at < list->insn_count; at++) {  // where it ends, even if it never runs
        depth += list->insns[at].op == PWSP_INSN_LOOP;
        if (list->insns[at].op == PWSP_INSN_END && depth-- == 0) {
            break;
        }
    }
    *out_end = at;
    uint64_t turns = loop ? pwsp_loop_turns(&list->loops[loop], u->counts[loop]) : 1;
    for (uint32_t n = 0; n < turns; n++) {
        u->iterations[loop] = n;
        if (!pwsp_unroll_copy_scope(u, loop)) {
            return false;
        }
        for (at = begin; at < *out_end; at++) {
            const pwsp_insn *insn = &list->insns[at];
            bool is_early = insn->phase == loop;
            if (insn->phase && (is_early ? n >= u->counts[loop] : n < list->loops[loop].preload)) {
                continue;
            }
            if (insn->op == PWSP_INSN_LOOP ? !pwsp_unroll_body(u, at + 1, insn->loop, &at)
                                           : !pwsp_unroll_insn(u, at)) {
                return false;
            }
        }
    }
    return true;
}

// How many instructions the plain list has.
static uint64_t pwsp_unroll_count(const pwsp_list *list, const uint32_t *counts) {
    uint64_t runs[PTOWSP_LOOP_MAX + 1], count = 0;
    uint32_t loop = 0;
    runs[0] = 1;
    // No instruction is in a number for late iterations, which come last.
    for (uint32_t of = 1; of <= list->loop_count && !list->loops[of].late_of; of++) {
        runs[of] = runs[list->loops[of].parent] * pwsp_loop_turns(&list->loops[of], counts[of]);
    }
    for (uint64_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        bool is_mark = pwsp_insn_is_mark(insn);
        loop = !is_mark                     ? loop
               : insn->op == PWSP_INSN_LOOP ? insn->loop
                                            : list->loops[insn->loop].parent;
        count += is_mark ? 0 : runs[loop];
    }
    return count;
}

// The most places that a root has of more than two.
static uint32_t pwsp_unroll_kept(const pwsp_list *list) {
    uint32_t most = 0;
    for (uint64_t i = 1; i < list->tile_count; i++) {
        const pwsp_list_tile *tile = &list->tiles[i];
        most = tile->places > most ? tile->places : most;
    }
    return most;
}

PWSP_INTERNAL void pwsp_unroll_init(pwsp_unrolled *unrolled, pwsp_memory memory) {
    memset(unrolled, 0, sizeof *unrolled);
    pwsp_list_init(&unrolled->list, memory);
}

PWSP_INTERNAL bool pwsp_unroll(const pwsp_list *list, const uint32_t *counts,
                               pwsp_unrolled *unrolled) {
    pwsp_list *plain = &unrolled->list;
    pwsp_list_reset(plain);
    memcpy(plain->used, list->used, sizeof list->used);
    memcpy(plain->fifos, list->fifos, sizeof list->fifos);
    plain->is_mixed = list->is_mixed;
    pwsp_unrolling u;
    memset(&u, 0, sizeof u);
    u.list = list;
    u.out = unrolled;
    u.counts = counts;
    size_t count = (size_t)list->tile_count + 1;
    size_t kept = pwsp_unroll_kept(list);
    u.scopes =
        (uint32_t *)pwsp_arena_alloc(&plain->arena, (2 + kept) * count * sizeof *u.scopes, 8);
    if (!u.scopes) {
        return false;
    }
    u.copies = u.scopes + count;
    u.kept = u.copies + count;
    pwsp_unroll_find_scopes(list, u.scopes);
    uint32_t end;
    return pwsp_list_begin(plain) && pwsp_list_renew(plain, pwsp_unroll_count(list, counts)) &&
           pwsp_unroll_body(&u, 0, 0, &end);
}

PWSP_INTERNAL void pwsp_unroll_free(pwsp_unrolled *unrolled) {
    pwsp_memory memory = unrolled->list.arena.memory;
    PWSP_FREE(&memory, unrolled->origins, unrolled->origin_capacity);
    PWSP_FREE(&memory, unrolled->tile_origins, unrolled->tile_origin_capacity);
    pwsp_list_free(&unrolled->list);
}
