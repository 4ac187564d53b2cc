// The proof's view of time: which instructions have surely ended when another one begins.
//
// A core's pipes are chains, and a core that waits joins two of them: for a flag, for a slot of a
// FIFO, at a barrier. A step that can be taken never disables another (a marked graph), so the
// constraints are a partial order, independent of the speeds of pipes. Along a chain, all
// instructions up to some place have ended, so one number per pipe is all that an instruction knows
// of it:
//
//      MTE2   0 load a   1 set 0 ->          5 load b      knows nothing of V: must not touch what 4 does
//      V                 2 wait <- 0  4 add                knows MTE2 up to 1: 0 has ended
//
//      set, TPUSH, TPOP     keep what their pipe knows, and that they have ended
//      wait                 learns what its set kept
//      TPOP                 what its TPUSH kept
//      TPUSH                the clock of the TPOP that emptied its slot
//      barrier of all       each of the core's pipes learns what any of them knows, and that all have ended
//
// A2/A3's vector pipe begins instructions before the one ahead has ended. So it knows its own
// progress only up to its last barrier, or as reported back by another pipe; a flag is set once all
// earlier instructions have ended.
//
// Then three things must hold, of every instruction:
//
//      - of earlier ones in the list that access the same bytes, one of both writing, it knows that they
//        have ended. Only those that it does not know of are looked at: they are few, as pipes depend on
//        each other. So is each pair that can be under way together;
//      - a set knows that the wait for its event before it has ended;
//      - S, at its end, knows of every store to global memory.
//
// Sets come before their waits in the list, TPUSH before TPOP, and a TPUSH after the TPOP that
// frees its slot, which is checked as well, as PTO-ISA frees slots: a half of a FIFO at a time, or both
// of two. So the order of the list lets every pipe reach its end, and a deadlock is impossible.
//
// Cores. In a mixed list the cube core follows one half, and both vector cores follow the other.
// The cube core pops what both have pushed, and its pushes have room once both have popped. Both
// vector cores are alike, so one suffices: a clock has entries for its own pipes, the other vector
// core's and the cube core's. Seen from the other vector core the first two swap, and the cube core
// knows the same of both. In a split list, each accesses its own UB and its own rows of global
// memory: two accesses with the same first row, outside loops over rows, are disjoint; all others
// must be ordered, in both directions. Otherwise the second core only pushes and pops, and
// everything learned through it is learned from the first core, which waits for more. So it is left
// out.
//
// The passes that placed flags keep such numbers too (waits.c), with code of their own. What both could
// have wrong the tests would see: their judge has no clocks, and runs lists on pipes of random speeds.

#include "proof_state.h"

#include <inttypes.h>
#include <stdio.h>

// -- flags ----------------------------------------------------------------------------------------

static bool pwsp_proof_refuse_flag(const pwsp_proof *proof, uint32_t i, const char *what) {
    const pwsp_insn *insn = &proof->list->insns[i];
    return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
                          "verify: instruction %" PRIu32 " (%s %s to %s, event %u) %s",
                          pwsp_proof_insn_of(proof, i), pwsp_proof_name(proof, i),
                          ptoisa_pipe_name((ptoisa_pipe)insn->src_pipe),
                          ptoisa_pipe_name((ptoisa_pipe)insn->dst_pipe), insn->event, what);
}

// -- FIFOs ----------------------------------------------------------------------------------------

static bool pwsp_proof_refuse_fifo(const pwsp_proof *proof, uint32_t i, const char *what) {
    const pwsp_insn *insn = &proof->list->insns[i];
    return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
                          "verify: instruction %" PRIu32 " (%s, FIFO %u) %s",
                          pwsp_proof_insn_of(proof, i), pwsp_proof_name(proof, i), insn->mode,
                          what);
}

// Is TPUSH or TPOP on the core that it is for, and its tile one for the slots?
static bool pwsp_proof_check_fifo(const pwsp_proof *proof, uint32_t i) {
    const pwsp_list *list = proof->list;
    const pwsp_insn *insn = &list->insns[i];
    bool is_push = insn->op == PWSP_INSN_TPUSH;
    uint32_t tile = is_push ? insn->src[0] : insn->dst[0];
    if (insn->mode >= PWSP_FIFO_COUNT || !list->fifos[insn->mode].slot_bytes || !tile) {
        return pwsp_proof_refuse_fifo(proof, i, "is of no FIFO");
    }
    const pwsp_list_fifo *fifo = &list->fifos[insn->mode];
    if (fifo->slots == 0 || fifo->slots > PWSP_FIFO_SLOTS_MAX || fifo->flag > 14) {
        return pwsp_proof_refuse_fifo(proof, i, "has too many slots or flags, or none");
    }
    bool is_vector = is_push != (insn->mode == PWSP_FIFO_TO_VECTOR);
    if (is_vector != (insn->side == PWSP_SIDE_VECTOR)) {
        return pwsp_proof_refuse_fifo(proof, i, "is at the wrong end");
    }
    return pwsp_list_slot_bytes(&list->tiles[tile], proof->split_rows) <= fifo->slot_bytes ||
           pwsp_proof_refuse_fifo(proof, i, "has a tile beyond its slot");
}

static bool pwsp_proof_is_same_slot(const pwsp_list_tile *a, const pwsp_list_tile *b) {
    return a->dtype == b->dtype && pwsp_valid_is_equal(&a->valid_rows, &b->valid_rows) &&
           pwsp_valid_is_equal(&a->valid_cols, &b->valid_cols);
}

// -- order ----------------------------------------------------------------------------------------

// An event: the set that was not waited for yet, and the last wait, as instructions + 1; and which clock
// its sets keep.
typedef struct pwsp_proof_event {
    uint32_t set, wait, clock;
} pwsp_proof_event;

// From one pipe to another one of a core.
#define PWSP_PROOF_PAIRS (PWSP_PROOF_HALVES * PTOISA_PIPE_COUNT * PTOISA_PIPE_COUNT)

// A FIFO, and of each slot the last TPUSH, and which clocks that and the last TPOP kept.
typedef struct pwsp_proof_fifo {
    uint32_t pushed, popped;
    uint32_t pushes[PWSP_FIFO_SLOTS_MAX];
    uint32_t push_clocks[PWSP_FIFO_SLOTS_MAX], pop_clocks[PWSP_FIFO_SLOTS_MAX];  // 0: none yet
} pwsp_proof_fifo;

// The walk over the list: the knowledge and the accesses of each pipe of both halves.
typedef struct pwsp_proof_walk {
    pwsp_proof *proof;  // its pipes of flags and barriers are found here
    pwsp_arena *arena;
    pwsp_proof_clock *clocks;  // from 1: of sets, TPUSH, TPOP, until they are learned from
    uint64_t clock_capacity;
    uint32_t clock_count;
    bool has_slow_vector;             // A2/A3
    uint32_t open_count;              // events that are set
    uint32_t end[PWSP_PROOF_HALVES];  // the last instruction, + 1
    pwsp_proof_fifo fifos[PWSP_FIFO_COUNT];
    pwsp_proof_clock known[PWSP_PROOF_HALVES][PTOISA_PIPE_COUNT];
    uint32_t last[PWSP_PROOF_HALVES][PWSP_PROOF_ROW];       // access to memory, + 1
    uint32_t stored[PWSP_PROOF_HALVES][PTOISA_PIPE_COUNT];  // to global memory, + 1
    uint8_t row_of[PWSP_PROOF_PAIRS];                       // in events, + 1; 0: none yet
    uint32_t row_count;
    // The last member: not set before.
    pwsp_proof_event events[PWSP_PROOF_PAIRS][PTOISA_EVENT_COUNT];
} pwsp_proof_walk;

// There are less than 2^31 instructions, so numbers are compared with signs, which all machines can.
static void pwsp_proof_learn(pwsp_proof_clock *PWSP_RESTRICT to,
                             const pwsp_proof_clock *PWSP_RESTRICT from) {
    int32_t *a = (int32_t *)&to->ended[0][0];
    const int32_t *b = (const int32_t *)&from->ended[0][0];
    for (uint32_t i = 0; i < PWSP_PROOF_CORES * PWSP_PROOF_ROW; i++) {
        a[i] = a[i] > b[i] ? a[i] : b[i];
    }
}

// The cube core knows the same of both vector cores.
static void pwsp_proof_level(pwsp_proof_clock *clock) {
    for (uint32_t p = 0; p < PTOISA_PIPE_COUNT; p++) {
        uint32_t *a = &clock->ended[1][p], *b = &clock->ended[2][p];
        *a = *b = *a > *b ? *a : *b;
    }
}

// Saves the knowledge of a pipe after its instruction x, in a clock that others learn from. False
// when memory is out.
static bool pwsp_proof_keep(pwsp_proof_walk *walk, uint32_t x, uint32_t half, uint32_t pipe,
                            uint32_t *number) {
    if (*number == 0) {
        *number = ++walk->clock_count;
        if (*number >= walk->clock_capacity &&
            !PWSP_EXTEND(walk->arena, walk->clocks, walk->clock_capacity, *number + 1ull)) {
            return pwsp_proof_out_of_memory(walk->proof);
        }
    }
    walk->clocks[*number] = walk->known[half][pipe];
    walk->clocks[*number].ended[half][pipe] = x + 1;
    return true;
}

// All pipes of a core wait for each other.
static void pwsp_proof_meet(pwsp_proof_walk *walk, uint32_t x, uint32_t half) {
    pwsp_proof_clock *known = walk->known[half];
    for (uint32_t p = 1; p < PTOISA_PIPE_COUNT; p++) {
        pwsp_proof_learn(&known[0], &known[p]);
    }
    for (uint32_t p = 0; p < PTOISA_PIPE_COUNT; p++) {
        known[0].ended[half][p] = x + 1;
    }
    for (uint32_t p = 1; p < PTOISA_PIPE_COUNT; p++) {
        known[p] = known[0];
    }
}

// Are two accesses apart that two cores make? Each has memories of its own.
static bool pwsp_proof_is_apart(const pwsp_proof_access *p, const pwsp_proof_access *q,
                                uint32_t p_core, uint32_t q_core) {
    if (p_core == q_core) {
        return false;
    }
    bool is_of_both_vector = p_core > 0 && q_core > 0;
    return p->memory != PTOISA_MEMORY_COUNT ||
           (is_of_both_vector && p->is_shared && q->is_shared && p->row == q->row);
}

static bool pwsp_proof_refuse_order(const pwsp_proof *proof, uint32_t u, uint32_t x,
                                    uint32_t x_core, const pwsp_proof_access *access) {
    char what[96];
    if (pwsp_proof_half_of(proof, u) == 1 && x_core == 2) {
        return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, x),
                              "verify: instruction %" PRIu32 " (%s) of one vector core and %" PRIu32
                              " (%s) of the other may meet in rows of tile parameter %" PRIu32,
                              pwsp_proof_insn_of(proof, x), pwsp_proof_name(proof, x),
                              pwsp_proof_insn_of(proof, u), pwsp_proof_name(proof, u),
                              access->begin - 1);
    }
    if (pwsp_proof_half_of(proof, u) != pwsp_proof_half_of(proof, x)) {
        return pwsp_list_fail(proof->fault, PTOWSP_UNSUPPORTED, pwsp_proof_insn_of(proof, x),
                              "instruction %" PRIu32 " (%s) and %" PRIu32
                              " (%s) are of different cores, and no FIFO orders what they do to "
                              "tile parameter %" PRIu32,
                              pwsp_proof_insn_of(proof, x), pwsp_proof_name(proof, x),
                              pwsp_proof_insn_of(proof, u), pwsp_proof_name(proof, u),
                              access->begin - 1);
    }
    if (access->memory == PTOISA_MEMORY_COUNT) {
        snprintf(what, sizeof what, "tile parameter %" PRIu32, access->begin - 1);
    } else {
        snprintf(what, sizeof what, "bytes %" PRIu32 " to %" PRIu32 " of %s", access->begin,
                 access->end, ptoisa_memory_name((ptoisa_memory)access->memory));
    }
    return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, x),
                          "verify: instruction %" PRIu32 " (%s on %s) may begin before %" PRIu32
                          " (%s on %s) is done with %s",
                          pwsp_proof_insn_of(proof, x), pwsp_proof_name(proof, x),
                          ptoisa_pipe_name((ptoisa_pipe)proof->pipes[x]),
                          pwsp_proof_insn_of(proof, u), pwsp_proof_name(proof, u),
                          ptoisa_pipe_name((ptoisa_pipe)proof->pipes[u]), what);
}

// Do instruction x and the one before `end`, or one before that in its stream from index `begin` on,
// touch the same bytes, one of them writing? x is on x_core, and they are on u_core.
static bool pwsp_proof_is_ordered(const pwsp_proof *proof, uint32_t begin, uint32_t end,
                                  uint32_t u_core, uint32_t x, uint32_t x_core) {
    const pwsp_proof_access *accesses = proof->accesses;
    for (; end > begin; end = proof->before[end - 1]) {
        uint32_t u = end - 1;
        for (uint32_t a = proof->starts[u]; a < proof->starts[u + 1]; a++) {
            for (uint32_t b = proof->starts[x]; b < proof->starts[x + 1]; b++) {
                const pwsp_proof_access *p = &accesses[a], *q = &accesses[b];
                if (p->memory == q->memory && p->begin < q->end && q->begin < p->end &&
                    (p->is_write || q->is_write) && !pwsp_proof_is_apart(p, q, u_core, x_core)) {
                    return pwsp_proof_refuse_order(proof, u, x, x_core, p);
                }
            }
        }
    }
    return true;
}

// May any pipe have accesses under way that the clock does not know to have ended?
static bool pwsp_proof_is_any_open(const uint32_t *last, const uint32_t *ended) {
    uint32_t open = 0;
    for (uint32_t p = 0; p < PWSP_PROOF_ROW; p++) {
        open |= (uint32_t)((int32_t)last[p] > (int32_t)ended[p]);
    }
    return open != 0;
}

// Compares the accesses of instruction x with those that may be under way: of its core, and global
// memory with other cores. A pipe that is not slow begins x when all before it have ended.
static bool pwsp_proof_check_accesses(pwsp_proof_walk *walk, uint32_t x, uint32_t half,
                                      uint32_t pipe) {
    const pwsp_proof *proof = walk->proof;
    pwsp_proof_clock *clock = &walk->known[half][pipe];
    if (proof->starts[x] == proof->starts[x + 1]) {
        return true;
    }
    if (!(walk->has_slow_vector && pipe == PTOISA_PIPE_V)) {
        clock->ended[half][pipe] = x;
    }
    bool is_global = proof->accesses[proof->starts[x + 1] - 1].memory == PTOISA_MEMORY_COUNT;
    uint32_t begin = is_global ? 0 : half, end = is_global ? PWSP_PROOF_HALVES : half + 1;
    for (uint32_t of = begin; of < end; of++) {
        if (!pwsp_proof_is_any_open(walk->last[of], clock->ended[of])) {
            continue;
        }
        for (uint32_t p = 0; p < PTOISA_PIPE_COUNT; p++) {
            if (walk->last[of][p] > clock->ended[of][p] &&
                !pwsp_proof_is_ordered(proof, clock->ended[of][p], walk->last[of][p], of, x,
                                       half)) {
                return false;
            }
        }
    }
    proof->before[x] = walk->last[half][pipe];
    walk->last[half][pipe] = x + 1;
    for (uint32_t p = 0; p < PTOISA_PIPE_COUNT && is_global && half == 1 && proof->is_split; p++) {
        if (!pwsp_proof_is_ordered(proof, clock->ended[2][p], walk->last[1][p], 1, x, 2)) {
            return false;
        }
    }
    return true;
}

// The events of a pair of pipes.
static pwsp_proof_event *pwsp_proof_events_of(pwsp_proof_walk *walk, uint32_t half, uint32_t src,
                                              uint32_t dst) {
    uint8_t *row = &walk->row_of[(half * PTOISA_PIPE_COUNT + src) * PTOISA_PIPE_COUNT + dst];
    if (*row == 0) {
        memset(walk->events[walk->row_count], 0, sizeof walk->events[0]);
        *row = (uint8_t)++walk->row_count;
    }
    return walk->events[*row - 1];
}

// A set finds its event free, as its last wait is known to have ended; a wait finds it set.
static bool pwsp_proof_step_flag(pwsp_proof_walk *walk, uint32_t x, uint32_t half) {
    const pwsp_proof *proof = walk->proof;
    const pwsp_insn *insn = &proof->list->insns[x];
    uint32_t src = insn->src_pipe, dst = insn->dst_pipe;
    bool is_set = insn->op == PTOISA_SET_FLAG;
    if (src >= PTOISA_PIPE_COUNT || dst >= PTOISA_PIPE_COUNT || src == dst ||
        insn->event >= PTOISA_EVENT_COUNT) {
        return pwsp_proof_refuse_flag(proof, x, "is no flag");
    }
    pwsp_proof_event *event = &pwsp_proof_events_of(walk, half, src, dst)[insn->event];
    if (is_set == (event->set != 0)) {
        return pwsp_proof_refuse_flag(proof, x, is_set ? "is set already" : "is not set before");
    }
    proof->pipes[x] = (uint8_t)(is_set ? src : dst);
    if (!is_set) {
        pwsp_proof_learn(&walk->known[half][dst], &walk->clocks[event->clock]);
        event->set = 0;
        event->wait = x + 1;
        walk->open_count--;
        return true;
    }
    if (event->wait > walk->known[half][src].ended[half][dst]) {
        return pwsp_proof_refuse_flag(proof, x, "may be set before its last wait");
    }
    event->set = x + 1;
    walk->open_count++;
    return pwsp_proof_keep(walk, x, half, src, &event->clock);
}

// How many tiles must have been taken out before a push: PTO-ISA frees slots in halves of a FIFO, or
// all of two.
static uint32_t pwsp_proof_pops_before(uint32_t push, uint32_t slots) {
    uint32_t period = slots <= 2 ? slots : slots / 2;
    return push < slots ? 0 : (push - slots) / period * period + period;
}

// A TPUSH finds a free slot, and a TPOP one that is filled with its tile.
static bool pwsp_proof_step_fifo(pwsp_proof_walk *walk, uint32_t x, uint32_t half, uint32_t pipe) {
    const pwsp_proof *proof = walk->proof;
    const pwsp_list *list = proof->list;
    const pwsp_insn *insn = &list->insns[x];
    if (!pwsp_proof_check_fifo(proof, x)) {
        return false;
    }
    pwsp_proof_fifo *fifo = &walk->fifos[insn->mode];
    bool is_push = insn->op == PWSP_INSN_TPUSH;
    uint32_t slots = list->fifos[insn->mode].slots;
    if (is_push ? fifo->popped < pwsp_proof_pops_before(fifo->pushed, slots)
                : fifo->popped == fifo->pushed) {
        return pwsp_proof_refuse_fifo(proof, x,
                                      is_push ? "finds no free slot" : "finds nothing in it");
    }
    uint32_t slot = (is_push ? fifo->pushed++ : fifo->popped++) % slots;
    if (!is_push && !pwsp_proof_is_same_slot(&list->tiles[list->insns[fifo->pushes[slot]].src[0]],
                                             &list->tiles[insn->dst[0]])) {
        return pwsp_proof_refuse_fifo(proof, x, "finds another tile than it takes");
    }
    uint32_t from = is_push ? fifo->pop_clocks[slot] : fifo->push_clocks[slot];
    if (from) {
        pwsp_proof_clock *clock = &walk->known[half][pipe];
        pwsp_proof_learn(clock, &walk->clocks[from]);
        if (half == 0) {
            pwsp_proof_level(clock);
        }
    }
    fifo->pushes[slot] = is_push ? x : fifo->pushes[slot];
    return pwsp_proof_keep(walk, x, half, pipe,
                           is_push ? &fifo->push_clocks[slot] : &fifo->pop_clocks[slot]);
}

// Takes the next instruction of the list.
static bool pwsp_proof_step(pwsp_proof_walk *walk, uint32_t x) {
    const pwsp_proof *proof = walk->proof;
    const pwsp_insn *insn = &proof->list->insns[x];
    uint32_t half = pwsp_proof_half_of(proof, x);
    walk->end[half] = x + 1;
    if (insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG) {
        return pwsp_proof_step_flag(walk, x, half);
    }
    if (insn->op == PTOISA_PIPE_BARRIER) {
        if (insn->src_pipe > PTOISA_PIPE_ALL) {
            return pwsp_proof_refuse_flag(proof, x, "is for no pipe");
        }
        proof->pipes[x] = insn->src_pipe;
        if (insn->src_pipe == PTOISA_PIPE_ALL) {
            pwsp_proof_meet(walk, x, half);
        } else {
            walk->known[half][insn->src_pipe].ended[half][insn->src_pipe] = x;
        }
        return true;
    }
    uint32_t pipe = proof->pipes[x];
    if (pwsp_insn_is_fifo(insn) && !pwsp_proof_step_fifo(walk, x, half, pipe)) {
        return false;
    }
    walk->stored[half][pipe] = pwsp_proof_is_store(insn) ? x + 1 : walk->stored[half][pipe];
    return pwsp_proof_check_accesses(walk, x, half, pipe);
}

// At the end no event is set, no FIFO has anything in it, and both halves end with a barrier.
static bool pwsp_proof_check_end(const pwsp_proof_walk *walk) {
    const pwsp_proof *proof = walk->proof;
    for (uint32_t pair = 0; pair < PWSP_PROOF_PAIRS && walk->open_count; pair++) {
        for (uint32_t event = 0; event < PTOISA_EVENT_COUNT && walk->row_of[pair]; event++) {
            uint32_t set = walk->events[walk->row_of[pair] - 1][event].set;
            if (set) {
                return pwsp_proof_refuse_flag(proof, set - 1, "is never waited for");
            }
        }
    }
    for (uint32_t f = 0; f < PWSP_FIFO_COUNT; f++) {
        const pwsp_proof_fifo *fifo = &walk->fifos[f];
        if (fifo->pushed != fifo->popped) {
            uint32_t slot = (fifo->pushed - 1) % proof->list->fifos[f].slots;
            return pwsp_proof_refuse_fifo(proof, fifo->pushes[slot], "is never taken out");
        }
    }
    for (uint32_t half = 0; half < PWSP_PROOF_HALVES && proof->list->is_mixed; half++) {
        if (walk->end[half] && proof->pipes[walk->end[half] - 1] != PTOISA_PIPE_ALL) {
            uint32_t i = pwsp_proof_insn_of(proof, walk->end[half] - 1);
            return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, i,
                                  "verify: the %s half does not end with a barrier",
                                  half ? "vector" : "cube");
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_proof_check_order(pwsp_proof *proof, pwsp_arena *arena, uint32_t *live) {
    pwsp_proof_walk walk;
    bool is_good = true;
    memset(&walk, 0, offsetof(pwsp_proof_walk, events));
    walk.proof = proof;
    walk.arena = arena;
    walk.has_slow_vector = proof->machine->family == PTOISA_A2A3;
    for (uint32_t x = 0; x < proof->count; x++) {  // faults of tiles are reported first
        if (!pwsp_proof_check_tiles(proof, arena, x)) {
            return false;
        }
        is_good = is_good && pwsp_proof_step(&walk, x);
    }
    if (!pwsp_proof_check_lives(proof, live) || !is_good || !pwsp_proof_check_end(&walk)) {
        return false;
    }
    uint32_t open = 0;  // the last store, + 1, that its S does not know of
    for (uint32_t half = 0; half < PWSP_PROOF_HALVES; half++) {
        const pwsp_proof_clock *clock = &walk.known[half][PTOISA_PIPE_S];
        for (uint32_t p = 0; p < PTOISA_PIPE_COUNT; p++) {
            uint32_t store = walk.stored[half][p];
            open = store > clock->ended[half][p] && store > open ? store : open;
        }
    }
    return !open ||
           pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, open - 1),
                          "verify: S may end before instruction %" PRIu32 " (%s on %s) has stored",
                          pwsp_proof_insn_of(proof, open - 1), pwsp_proof_name(proof, open - 1),
                          ptoisa_pipe_name((ptoisa_pipe)proof->pipes[open - 1]));
}
