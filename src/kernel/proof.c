// The proof: at any speeds of a core's pipes, the list has the effect of its sequential order.
//
// The proof uses nothing from the passes that made the list. One walk over a plain list checks
// tiles, addresses and lifetimes (proof_tiles.c), whose faults are reported first, and flags, FIFOs
// and the order of accesses (proof_order.c).
//
// Loops are unrolled, and the plain lists are proved: every loop 0 to 4 times, of more than two
// loops every pair of them (the others 2 times). This suffices for any number of iterations:
//
//      - Iterations of one parity are alike: same bytes, same events. What can
//        begin while u of iteration i is under way depends only on the parity of i and on what
//        follows. Iterations 0 and 1 stand for all.
//      - x of iteration i + d conflicts with u of i if and only if x of i + d - 2 does, for d > 2;
//        and a pipe begins that one first. So d up to 2 stands for all: iterations 0 to 3.
//      - What can begin is not changed by what comes later in the list. So a longer loop adds
//        nothing but iterations in front of the code behind it, which 3 and 4 show in both parities.
//        An instruction three iterations from the end is done before the one of its pipe two iterations
//        later ends; A2/A3's vector pipe has a barrier in between, or the shorter distance shows it.
//
// The bounds of a loop inside another do not depend on that: it runs equally often each time. So the
// iterations of an inner loop in all runs are a sequence as above, with parities as in its first run.
// A loop in whose first iteration a sum begins runs at least once, as its bounds say.
//
// A loop that preloads p iterations runs turns, and some turns lack a phase (preload.h). With tiles of
// p + 1 places, turns repeat with the least common multiple of 2 and p + 1, and conflicts reach p + 1
// turns ahead. So it is unrolled 0 times up to the sum of both and one more.

#include "proof_state.h"

#include "split.h"
#include "unroll.h"

#include <inttypes.h>

// Bytes that an instruction and a tile need, as a rule.
#define PWSP_PROOF_ROOM      128
#define PWSP_PROOF_TILE_ROOM 48

PWSP_INTERNAL bool pwsp_proof_out_of_memory(const pwsp_proof *proof) {
    return pwsp_list_fail(proof->fault, PTOWSP_OUT_OF_MEMORY, 0, "verify: out of memory");
}

// Makes room and goes through all checks.
static bool pwsp_proof_run(pwsp_proof *proof, pwsp_arena *arena) {
    size_t count = (size_t)proof->count + 1, tile_count = (size_t)proof->list->tile_count + 1;
    bool has_room =
        pwsp_arena_begin(arena, count * PWSP_PROOF_ROOM + tile_count * PWSP_PROOF_TILE_ROOM);
    uint32_t *room =
        has_room
            ? (uint32_t *)pwsp_arena_take(arena, (2 * count + 2 * tile_count) * sizeof *room, 8)
            : NULL;
    if (!room) {
        return pwsp_proof_out_of_memory(proof);
    }
    proof->before = room;
    proof->starts = room + count;
    proof->starts[0] = 0;
    proof->born = room + 2 * count;
    proof->tiles =
        (pwsp_proof_checked *)pwsp_arena_alloc(arena, tile_count * sizeof *proof->tiles, 8);
    proof->pipes = (uint8_t *)pwsp_arena_take(arena, count, 1);
    if (!proof->tiles || !proof->pipes) {
        return pwsp_proof_out_of_memory(proof);
    }
    return pwsp_proof_check_order(proof, arena, proof->born + tile_count);
}

// Proves a plain list: a whole one, or an unrolled one.
static bool pwsp_proof_list(const pwsp_list *whole, const ptoisa_machine *machine,
                            const pwsp_unrolled *from, pwsp_arena *arena, pwsp_list_fault *fault) {
    const pwsp_list *list = from ? &from->list : whole;
    pwsp_proof proof;
    memset(&proof, 0, sizeof proof);
    proof.list = list;
    proof.machine = machine;
    proof.fault = fault;
    proof.count = (uint32_t)list->insn_count;
    proof.is_split = whole->split_tile != 0;
    proof.split_rows = pwsp_list_split_rows(whole);
    proof.origins = from ? from->origins : NULL;
    proof.tile_origins = from ? from->tile_origins : NULL;
    return pwsp_proof_run(&proof, arena);
}

// Proves a list with each loop run as often as counts say.
static bool pwsp_proof_counts(const pwsp_list *list, const ptoisa_machine *machine,
                              const uint32_t *counts, pwsp_unrolled *unrolled, pwsp_arena *arena,
                              pwsp_list_fault *fault) {
    return pwsp_unroll(list, counts, unrolled)
               ? pwsp_proof_list(list, machine, unrolled, arena, fault)
               : pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "verify: out of memory");
}

// How many numbers of iterations of a loop are proved: of one that does not preload, 0 to 4.
static uint32_t pwsp_proof_iterations(const pwsp_list_loop *loop) {
    uint32_t places = loop->preload + 1;
    return (places % 2 ? 2 * places : places) + places + 2;
}

// Proves a list with loops, in the memory of one plain list and of the arena.
static bool pwsp_proof_loops(const pwsp_list *list, const ptoisa_machine *machine,
                             pwsp_unrolled *unrolled, pwsp_arena *arena, pwsp_list_fault *fault) {
    uint32_t count = list->loop_count, running = 0;
    while (list->loops[count].late_of) {
        count--;
    }
    for (uint64_t i = 0; i < list->insn_count; i++) {
        uint32_t begins = list->insns[i].begins, of = list->loops[begins].late_of;
        running |= 1u << (of ? of : begins);
    }
    for (uint32_t a = 1; a <= count; a++) {
        for (uint32_t b = count == 1 ? 1 : a + 1; b <= count; b++) {
            uint32_t most = pwsp_proof_iterations(&list->loops[a]);
            for (uint32_t n = 0; n < most * pwsp_proof_iterations(&list->loops[b]); n++) {
                uint32_t counts[PTOWSP_LOOP_MAX + 1];
                for (uint32_t loop = 0; loop <= count; loop++) {
                    counts[loop] = 2;
                }
                counts[b] = n / most;
                counts[a] = n % most;
                if (a == b && n >= most) {
                    break;
                }
                if ((counts[a] == 0 && (running >> a & 1)) ||
                    (counts[b] == 0 && (running >> b & 1))) {
                    continue;
                }
                if (!pwsp_proof_counts(list, machine, counts, unrolled, arena, fault)) {
                    return false;
                }
            }
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_list_verify(const pwsp_list *list, const ptoisa_machine *machine,
                                    pwsp_list_fault *fault) {
    if (list->insn_count > 1u << 30 || list->tile_count > 1u << 30) {
        return pwsp_list_fail(fault, PTOWSP_LIMIT_EXCEEDED, 0,
                              "verify: %" PRIu64 " instructions and %" PRIu64 " tiles",
                              list->insn_count, list->tile_count);
    }
    uint32_t at = 0;
    if (list->split_tile && !(list->is_mixed && pwsp_list_is_by_row(list, list->split_tile, &at))) {
        return pwsp_list_fail(
            fault, PTOWSP_INVALID_PARAMS, at,
            "verify: instruction %" PRIu32 " (%s) does not let two vector cores share its rows", at,
            at < list->insn_count ? pwsp_insn_name(&list->insns[at]) : "none");
    }
    pwsp_arena arena;
    pwsp_arena_init(&arena, &list->arena.memory);
    bool is_good;
    if (list->loop_count) {
        pwsp_unrolled unrolled;
        pwsp_unroll_init(&unrolled, list->arena.memory);
        is_good = pwsp_unroll_check(list, fault) &&
                  pwsp_proof_loops(list, machine, &unrolled, &arena, fault);
        pwsp_unroll_free(&unrolled);
    } else {
        is_good = pwsp_proof_list(list, machine, NULL, &arena, fault);
    }
    pwsp_arena_free(&arena);
    return is_good;
}
