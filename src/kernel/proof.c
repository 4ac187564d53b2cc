// The proof: hold up one instruction and see what can run.
//
// The proof shares neither code nor method with the passes that placed tiles and flags: no clocks,
// no spans, no transitivity. It asks the machine itself whether x always comes after u: suppose
// that u begins and never ends, that everything before u in the list is done, and that all else is
// as fast as possible. Can x begin?
//
//      MTE2   load a ......................   u, held up
//      V                wait |                waits for a's flag: stops here
//      MTE3   store c   set  store d   wait | runs on up to V's next flag; each of its accesses is
//                                             compared with u's
//
// Pipes, flags and barriers form a marked graph: a step that can be taken never disables another.
// So one run finds everything that can begin while u is held up, whatever the order in which pipes
// are tried. Two instructions are in order if and only if that run does not begin the second. Such
// a run is short in practice, because pipes depend on each other: about as long as the instructions
// of the list overlap. Every access is held up once and compared with all that began, so all pairs
// are covered; a wait is held up if its event is set again, which must not happen meanwhile.
//
// These can go on while u is held up:
//
//      of u's pipe                nothing; but on A2/A3's vector pipe, where instructions may begin
//                                 before the one ahead has ended, all but barriers, and no flag is
//                                 set
//      of other pipes             all up to a wait for a flag that was not set
//      barrier of all pipes       nothing of any pipe of its core
//
// In a mixed list each core has pipes of its own. The n-th TPOP of a FIFO can begin if the n-th TPUSH
// has ended, and that one if the TPOP of `slots` before it has: edges of the graph, as those of
// flags. A barrier of all pipes is passed once all of its core's pipes have come there. What devices
// do beyond that (a push waits for several pops at once) only delays: the order of the list still
// lets both cores reach their ends.
//
// There are three cores: both vector cores follow the vector half. What the cube core pops, both have
// pushed, and what it pushes has room once both have popped. If the list is split, each accesses a UB of
// its own and its rows of global memory: those of two accesses with one and the same first row, outside
// of loops over rows, are apart where they are of different vector cores; all others are not. Else the
// second core only pushes and pops. Both are alike, so it suffices to hold up the first, while the
// second goes on.
//
// Sets come before their waits in the list, which is checked first. So the order of the list lets
// every pipe reach its end, and there can be no deadlock.
//
// Loops are unrolled, and the plain lists are proved: every loop 0 to 4 times, of more than two
// loops every pair of them (the others 2 times). This suffices for any number of iterations:
//
//      - All iterations of one parity are alike: same bytes, same events. When u of iteration i is
//        held up, all before it is done, so what can run behind it depends only on the parity of i
//        and on what follows. Iterations 0 and 1 stand for all.
//      - x of iteration i + d conflicts with u of i if and only if x of i + d - 2 does, for d > 2;
//        and a pipe begins that one first. So d up to 2 stands for all: iterations 0 to 3.
//      - What can begin is not changed by what comes later in the list. So a longer loop adds
//        nothing but iterations in front of the code behind it, which 3 and 4 show in both parities.
//        An instruction three iterations from the end is done before that of its pipe two iterations
//        later ends; A2/A3's vector pipe has a barrier in between, or the shorter distance shows it.
//
// The bounds of a loop inside another do not depend on that: it runs equally often each time.

#include "proof.h"

#include "split.h"
#include "unroll.h"

#include <inttypes.h>

// An instruction's bytes: of a memory, or of parameters, one each.
typedef struct pwsp_proof_access {
    uint64_t begin, end;
    uint32_t memory;  // ptoisa_memory, or PTOISA_MEMORY_COUNT: global memory
    uint32_t row;     // of a parameter, where it begins
    bool is_write;
    bool is_shared;  // a vector core has its part of the rows from there on
} pwsp_proof_access;

#define PWSP_PROOF_NONE UINT32_MAX

// The cube core, or the only one, and the two vector cores.
#define PWSP_PROOF_CORES 3

typedef struct pwsp_proof {
    const pwsp_list *list;
    const ptoisa_machine *machine;
    pwsp_list_fault *fault;
    uint32_t count;  // of instructions
    uint8_t *pipes;  // [insn] whose stream it is in; PTOISA_PIPE_ALL: in all
    uint32_t *next;  // [insn] the next one of its pipe; count: none
    // [insn] of a wait: its set; of a TPOP: its TPUSH; of a TPUSH: the TPOP that frees its slot, or
    // NONE.
    uint32_t *partner;
    uint32_t *resets;  // [insn] of a wait: the next set of its event, or NONE
    // [core][insn] of a set, TPUSH, TPOP: the last run in which it was done
    uint32_t *seen[PWSP_PROOF_CORES];
    uint32_t *starts;              // [insn] its first access
    pwsp_proof_access *accesses;   // of all instructions
    uint32_t *first, *last;        // [tile] of roots: instructions + 1
    const uint32_t *origins;       // [insn] of an unrolled list: as the user knows them, or NULL
    const uint32_t *tile_origins;  // [tile]
    bool is_split;                 // both vector cores have rows: so many together at most
    uint32_t split_rows;
} pwsp_proof;

// How messages call an instruction and a tile.
static uint32_t pwsp_proof_insn_of(const pwsp_proof *proof, uint32_t i) {
    return proof->origins ? proof->origins[i] : i;
}

static uint32_t pwsp_proof_tile_of(const pwsp_proof *proof, uint32_t tile) {
    return proof->tile_origins && tile < proof->list->tile_count ? proof->tile_origins[tile] : tile;
}

static bool pwsp_proof_is_sync(const pwsp_insn *insn) {
    return insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG ||
           insn->op == PTOISA_PIPE_BARRIER;
}

static const char *pwsp_proof_name(const pwsp_proof *proof, uint32_t i) {
    return pwsp_insn_name(&proof->list->insns[i]);
}

// Pipes of both halves: those of the cube core, or of the only one, come first.
#define PWSP_PROOF_STREAMS (2 * PTOISA_PIPE_COUNT)

// The half of an instruction, and the first core that follows it.
static uint32_t pwsp_proof_core_of(const pwsp_proof *proof, uint32_t i) {
    return proof->list->insns[i].side == PWSP_SIDE_VECTOR;
}

static uint32_t pwsp_proof_stream_of(const pwsp_proof *proof, uint32_t i) {
    return pwsp_proof_core_of(proof, i) * PTOISA_PIPE_COUNT + proof->pipes[i];
}

// -- tiles ----------------------------------------------------------------------------------------

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

// Is a tile one that the device takes?
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

// Is it where it may be, in its root and in its memory?
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
    uint64_t root_bytes = pwsp_list_tile_bytes(root), begin = (uint64_t)root->address + t->offset;
    if (root->memory != t->memory || t->offset + pwsp_list_tile_bytes(t) > root_bytes) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "is a view that leaves its root");
    }
    if (root->address % 32 != 0 || begin % 32 != 0) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "is at an address that is not aligned");
    }
    if (root->address + root_bytes > proof->machine->memory_size[t->memory]) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "ends beyond its memory");
    }
    if (root->address + root_bytes > list->used[t->memory]) {
        return pwsp_proof_refuse_tile(proof, tile, insn, "ends beyond what is said to be used");
    }
    return true;
}

// An instruction's tiles: those that it reads, then those that it writes, then its scratch.
#define PWSP_PROOF_OPERANDS (PWSP_INSN_SRC_MAX + 1 + PWSP_INSN_DST_MAX + 1)

static uint32_t pwsp_proof_operand(const pwsp_insn *insn, uint32_t k, bool *out_is_write) {
    *out_is_write = k > PWSP_INSN_SRC_MAX;
    if (k < PWSP_INSN_SRC_MAX) {
        return insn->src[k];
    }
    if (k == PWSP_INSN_SRC_MAX) {
        return insn->is_dst_read ? insn->dst[0] : 0;
    }
    k -= PWSP_INSN_SRC_MAX + 1;
    return k < PWSP_INSN_DST_MAX ? insn->dst[k] : insn->tmp;
}

// Checks all tiles of all instructions, and counts accesses.
static bool pwsp_proof_check_tiles(pwsp_proof *proof, uint64_t *out_access_count) {
    const pwsp_list *list = proof->list;
    *out_access_count = 0;
    for (uint32_t i = 0; i < proof->count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        bool is_side = list->is_mixed
                           ? insn->side == PWSP_SIDE_CUBE || insn->side == PWSP_SIDE_VECTOR
                           : insn->side == PWSP_SIDE_ANY;
        bool is_insn = insn->op != PTOISA_NOP && insn->op < PTOISA_OP_COUNT;
        if (!is_side || !(is_insn || (list->is_mixed && pwsp_insn_is_fifo(insn)))) {
            return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
                                  "verify: instruction %" PRIu32 " is none",
                                  pwsp_proof_insn_of(proof, i));
        }
        for (uint32_t k = 0; k < PWSP_PROOF_OPERANDS && !pwsp_proof_is_sync(insn); k++) {
            bool is_write;
            uint32_t tile = pwsp_proof_operand(insn, k, &is_write);
            if (tile >= list->tile_count && tile > 0) {
                return pwsp_list_fail(
                    proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
                    "verify: instruction %" PRIu32 " (%s) uses tile %" PRIu32 " of %" PRIu64,
                    pwsp_proof_insn_of(proof, i), pwsp_proof_name(proof, i), tile,
                    list->tile_count);
            }
            bool is_vector = insn->side == PWSP_SIDE_VECTOR;
            if (tile && list->is_mixed && is_vector != (list->tiles[tile].memory == PTOISA_VEC)) {
                return pwsp_proof_refuse_tile(proof, tile, i, "is the other core's");
            }
            if (tile && (!pwsp_proof_check_shape(proof, tile, i) ||
                         !pwsp_proof_check_address(proof, tile, i))) {
                return false;
            }
            *out_access_count += tile ? 1 : 0;
        }
        *out_access_count += insn->param ? 1 : 0;
    }
    return true;
}

// Finds all accesses and when roots live; what is read must have been written, and not used as
// scratch since.
static bool pwsp_proof_find_accesses(pwsp_proof *proof, bool *is_written) {
    const pwsp_list *list = proof->list;
    uint32_t count = 0;
    for (uint32_t i = 0; i < proof->count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        proof->starts[i] = count;
        for (uint32_t k = 0; k < PWSP_PROOF_OPERANDS && !pwsp_proof_is_sync(insn); k++) {
            bool is_write;
            uint32_t tile = pwsp_proof_operand(insn, k, &is_write);
            if (!tile) {
                continue;
            }
            const pwsp_list_tile *t = &list->tiles[tile];
            if (!is_write && !is_written[t->root]) {
                return pwsp_proof_refuse_tile(proof, tile, i, "is read before it is written");
            }
            if (is_write) {
                is_written[t->root] = k + 1 < PWSP_PROOF_OPERANDS;
            }
            pwsp_proof_access *access = &proof->accesses[count++];
            access->begin = pwsp_list_tile_address(list, tile);
            access->end = access->begin + pwsp_list_tile_bytes(t);
            access->memory = t->memory;
            access->is_write = is_write;
            if (!proof->first[t->root]) {
                proof->first[t->root] = i + 1;
            }
            proof->last[t->root] = i + 1;
        }
        if (insn->param && !pwsp_proof_is_sync(insn)) {
            pwsp_proof_access *access = &proof->accesses[count++];
            access->begin = insn->param;
            access->end = access->begin + 1;
            access->memory = PTOISA_MEMORY_COUNT;
            access->row = insn->row;
            access->is_shared =
                proof->is_split && insn->side == PWSP_SIDE_VECTOR && !insn->row_loop;
            access->is_write = insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER;
        }
    }
    proof->starts[proof->count] = count;
    return true;
}

// Are the bytes of roots that live at once apart? Roots come to live one after another; each is
// compared with all that live then. `live` is room for as many as there are tiles.
static bool pwsp_proof_check_lives(const pwsp_proof *proof, uint32_t *live) {
    const pwsp_list *list = proof->list;
    uint32_t live_count = 0;
    for (uint32_t i = 0; i < proof->count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < live_count; k++) {
            if (proof->last[live[k]] > i) {
                live[kept++] = live[k];
            }
        }
        live_count = kept;
        for (uint32_t k = 0; k < PWSP_PROOF_OPERANDS && !pwsp_proof_is_sync(insn); k++) {
            bool is_write, is_new = true;
            uint32_t tile = pwsp_proof_operand(insn, k, &is_write);
            uint32_t root = tile ? list->tiles[tile].root : 0;
            if (!tile || proof->first[root] != i + 1) {
                continue;
            }
            uint64_t begin = list->tiles[root].address;
            uint64_t end = begin + pwsp_list_tile_bytes(&list->tiles[root]);
            for (uint32_t l = 0; l < live_count; l++) {
                const pwsp_list_tile *other = &list->tiles[live[l]];
                is_new = is_new && live[l] != root;
                if (live[l] != root && other->memory == list->tiles[root].memory &&
                    begin < other->address + pwsp_list_tile_bytes(other) && other->address < end) {
                    return pwsp_list_fail(
                        proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
                        "verify: tile %" PRIu32 " overlaps tile %" PRIu32
                        " in %s while both live, at instruction %" PRIu32 " (%s)",
                        pwsp_proof_tile_of(proof, root), pwsp_proof_tile_of(proof, live[l]),
                        ptoisa_memory_name((ptoisa_memory)other->memory),
                        pwsp_proof_insn_of(proof, i), pwsp_proof_name(proof, i));
                }
            }
            if (is_new) {
                live[live_count++] = root;
            }
        }
    }
    return true;
}

// -- flags ----------------------------------------------------------------------------------------

static bool pwsp_proof_refuse_flag(const pwsp_proof *proof, uint32_t i, const char *what) {
    const pwsp_insn *insn = &proof->list->insns[i];
    return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, i),
                          "verify: instruction %" PRIu32 " (%s %s to %s, event %u) %s",
                          pwsp_proof_insn_of(proof, i), pwsp_proof_name(proof, i),
                          ptoisa_pipe_name((ptoisa_pipe)insn->src_pipe),
                          ptoisa_pipe_name((ptoisa_pipe)insn->dst_pipe), insn->event, what);
}

// Finds the stream of each instruction, and its partner if it is a flag's.
static bool pwsp_proof_match_flags(pwsp_proof *proof) {
    uint32_t set[PWSP_PROOF_STREAMS][PTOISA_PIPE_COUNT][PTOISA_EVENT_COUNT];
    uint32_t waited[PWSP_PROOF_STREAMS][PTOISA_PIPE_COUNT][PTOISA_EVENT_COUNT];
    memset(set, 0xff, sizeof set);
    memset(waited, 0xff, sizeof waited);
    for (uint32_t i = 0; i < proof->count; i++) {
        const pwsp_insn *insn = &proof->list->insns[i];
        uint32_t src = insn->src_pipe, dst = insn->dst_pipe, event = insn->event;
        if (insn->op == PTOISA_PIPE_BARRIER) {
            if (src > PTOISA_PIPE_ALL) {
                return pwsp_proof_refuse_flag(proof, i, "is for no pipe");
            }
            proof->pipes[i] = (uint8_t)src;
            continue;
        }
        if (!pwsp_proof_is_sync(insn)) {
            proof->pipes[i] = (uint8_t)pwsp_insn_pipe(proof->list, insn);
            continue;
        }
        if (src >= PTOISA_PIPE_COUNT || dst >= PTOISA_PIPE_COUNT || src == dst ||
            event >= PTOISA_EVENT_COUNT) {
            return pwsp_proof_refuse_flag(proof, i, "is no flag");
        }
        uint32_t from = pwsp_proof_core_of(proof, i) * PTOISA_PIPE_COUNT + src;
        bool is_set = set[from][dst][event] != PWSP_PROOF_NONE;
        proof->resets[i] = PWSP_PROOF_NONE;
        if (insn->op == PTOISA_SET_FLAG) {
            if (is_set) {
                return pwsp_proof_refuse_flag(proof, i, "is set already");
            }
            proof->pipes[i] = (uint8_t)src;
            if (waited[from][dst][event] != PWSP_PROOF_NONE) {
                proof->resets[waited[from][dst][event]] = i;
            }
            set[from][dst][event] = i;
        } else {
            if (!is_set) {
                return pwsp_proof_refuse_flag(proof, i, "is not set before");
            }
            proof->pipes[i] = (uint8_t)dst;
            proof->partner[i] = set[from][dst][event];
            waited[from][dst][event] = i;
            set[from][dst][event] = PWSP_PROOF_NONE;
        }
    }
    for (uint32_t i = 0; i < sizeof set / sizeof set[0][0][0]; i++) {
        uint32_t left = (&set[0][0][0])[i];
        if (left != PWSP_PROOF_NONE) {
            return pwsp_proof_refuse_flag(proof, left, "is never waited for");
        }
    }
    return true;
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
    if (fifo->slots == 0 || fifo->slots > PWSP_FIFO_SLOTS || fifo->flag > 14) {
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

// Finds the partners of TPUSH and TPOP: in the list's order each finds its slot filled or free.
static bool pwsp_proof_match_fifos(pwsp_proof *proof) {
    const pwsp_list *list = proof->list;
    uint32_t pushed[PWSP_FIFO_COUNT] = {0}, popped[PWSP_FIFO_COUNT] = {0};
    uint32_t pushes[PWSP_FIFO_COUNT][PWSP_FIFO_SLOTS], pops[PWSP_FIFO_COUNT][PWSP_FIFO_SLOTS];
    uint32_t ends[2] = {PWSP_PROOF_NONE, PWSP_PROOF_NONE};
    memset(pops, 0xff, sizeof pops);
    for (uint32_t i = 0; i < proof->count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        ends[pwsp_proof_core_of(proof, i)] = i;
        if (!pwsp_insn_is_fifo(insn)) {
            continue;
        }
        if (!pwsp_proof_check_fifo(proof, i)) {
            return false;
        }
        uint32_t f = insn->mode, slots = list->fifos[f].slots;
        if (insn->op == PWSP_INSN_TPUSH) {
            if (pushed[f] - popped[f] == slots) {
                return pwsp_proof_refuse_fifo(proof, i, "finds no free slot");
            }
            proof->partner[i] = pops[f][pushed[f] % slots];
            pushes[f][pushed[f]++ % slots] = i;
            continue;
        }
        if (pushed[f] == popped[f]) {
            return pwsp_proof_refuse_fifo(proof, i, "finds nothing in it");
        }
        uint32_t push = pushes[f][popped[f] % slots];
        if (!pwsp_proof_is_same_slot(&list->tiles[list->insns[push].src[0]],
                                     &list->tiles[insn->dst[0]])) {
            return pwsp_proof_refuse_fifo(proof, i, "finds another tile than it takes");
        }
        proof->partner[i] = push;
        pops[f][popped[f]++ % slots] = i;
    }
    for (uint32_t f = 0; f < PWSP_FIFO_COUNT; f++) {
        if (pushed[f] != popped[f]) {
            return pwsp_proof_refuse_fifo(proof, pushes[f][(pushed[f] - 1) % PWSP_FIFO_SLOTS],
                                          "is never taken out");
        }
    }
    for (uint32_t core = 0; core < 2 && list->is_mixed; core++) {
        if (ends[core] != PWSP_PROOF_NONE && proof->pipes[ends[core]] != PTOISA_PIPE_ALL) {
            return pwsp_list_fail(
                proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, ends[core]),
                "verify: the %s half does not end with a barrier", core ? "vector" : "cube");
        }
    }
    return true;
}

// -- order ----------------------------------------------------------------------------------------

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

// Do two instructions, on these cores, touch the same bytes, one of them writing?
static const pwsp_proof_access *pwsp_proof_conflict(const pwsp_proof *proof, uint32_t u, uint32_t x,
                                                    uint32_t x_core) {
    uint32_t u_core = pwsp_proof_core_of(proof, u);
    for (uint32_t a = proof->starts[u]; a < proof->starts[u + 1]; a++) {
        for (uint32_t b = proof->starts[x]; b < proof->starts[x + 1]; b++) {
            const pwsp_proof_access *p = &proof->accesses[a], *q = &proof->accesses[b];
            if (p->memory == q->memory && p->begin < q->end && q->begin < p->end &&
                (p->is_write || q->is_write) && !pwsp_proof_is_apart(p, q, u_core, x_core)) {
                return p;
            }
        }
    }
    return NULL;
}

static bool pwsp_proof_refuse_order(const pwsp_proof *proof, uint32_t u, uint32_t x,
                                    uint32_t x_core, const pwsp_proof_access *access) {
    char what[96];
    if (pwsp_proof_core_of(proof, u) == 1 && x_core == 2) {
        return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, x),
                              "verify: instruction %" PRIu32 " (%s) of one vector core and %" PRIu32
                              " (%s) of the other may meet in rows of tile parameter %" PRIu64,
                              pwsp_proof_insn_of(proof, x), pwsp_proof_name(proof, x),
                              pwsp_proof_insn_of(proof, u), pwsp_proof_name(proof, u),
                              access->begin - 1);
    }
    if (pwsp_proof_core_of(proof, u) != pwsp_proof_core_of(proof, x)) {
        return pwsp_list_fail(proof->fault, PTOWSP_UNSUPPORTED, pwsp_proof_insn_of(proof, x),
                              "instruction %" PRIu32 " (%s) and %" PRIu32
                              " (%s) are of different cores, and no FIFO orders what they do to "
                              "tile parameter %" PRIu64,
                              pwsp_proof_insn_of(proof, x), pwsp_proof_name(proof, x),
                              pwsp_proof_insn_of(proof, u), pwsp_proof_name(proof, u),
                              access->begin - 1);
    }
    if (access->memory == PTOISA_MEMORY_COUNT) {
        snprintf(what, sizeof what, "tile parameter %" PRIu64, access->begin - 1);
    } else {
        snprintf(what, sizeof what, "bytes %" PRIu64 " to %" PRIu64 " of %s", access->begin,
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

// Has an instruction of the other half been done, on all cores of it, while u is held up?
static bool pwsp_proof_has_partner(const pwsp_proof *proof, uint32_t u, uint32_t x) {
    uint32_t other = proof->partner[x];
    if (other == PWSP_PROOF_NONE || other < u) {
        return true;
    }
    uint32_t core = pwsp_proof_core_of(proof, other);
    return proof->seen[core][other] == u + 1 && (core == 0 || proof->seen[2][other] == u + 1);
}

// What a pipe does next while u is held up.
typedef struct pwsp_proof_step {
    uint32_t u, core, limit;  // up to there
    bool is_slow;             // u's pipe, which does not wait for the ends of its instructions
} pwsp_proof_step;

// Lets a core begin instruction x. False with a fault; *out_stops: it cannot begin.
static bool pwsp_proof_begin(const pwsp_proof *proof, const pwsp_proof_step *step, uint32_t x,
                             bool *out_stops) {
    const pwsp_insn *insn = &proof->list->insns[x];
    uint32_t u = step->u, *seen = proof->seen[step->core];
    bool is_fifo = pwsp_insn_is_fifo(insn);
    if (step->core == 2 && !proof->is_split && !is_fifo) {
        return true;
    }
    if (insn->op == PTOISA_WAIT_FLAG) {
        uint32_t set = proof->partner[x];
        *out_stops = set > u && seen[set] != u + 1;
        return true;
    }
    if (insn->op == PTOISA_SET_FLAG) {
        bool is_again = step->core == pwsp_proof_core_of(proof, u) &&
                        proof->list->insns[u].op == PTOISA_WAIT_FLAG && proof->resets[u] == x;
        seen[x] = step->is_slow ? seen[x] : u + 1;
        return !is_again || pwsp_proof_refuse_flag(proof, x, "may be set before its last wait");
    }
    if (insn->op == PTOISA_PIPE_BARRIER) {
        return true;
    }
    if (is_fifo && !pwsp_proof_has_partner(proof, u, x)) {
        *out_stops = true;
        return true;
    }
    seen[x] = is_fifo ? u + 1 : seen[x];
    bool is_idle = step->core == 2 && !proof->is_split;
    const pwsp_proof_access *access = is_idle ? NULL : pwsp_proof_conflict(proof, u, x, step->core);
    return !access || pwsp_proof_refuse_order(proof, u, x, step->core, access);
}

// Lets a pipe run from instruction *at as far as it can. Sets *out_moved if it did anything.
static bool pwsp_proof_run_pipe(const pwsp_proof *proof, const pwsp_proof_step *step, uint32_t *at,
                                bool *out_moved) {
    uint32_t x = *at;
    bool is_good = true, stops = false;
    while (x < step->limit && is_good) {
        if (step->is_slow && proof->list->insns[x].op == PTOISA_PIPE_BARRIER) {
            x = step->limit;
            break;
        }
        is_good = pwsp_proof_begin(proof, step, x, &stops);
        if (stops) {
            break;
        }
        *out_moved = true;
        x = proof->next[x];
    }
    *at = x;
    return is_good;
}

// Passes the barrier of all pipes of a core if they have come there. False: they have not, or there
// is none.
static bool pwsp_proof_pass_barrier(const pwsp_proof *proof, const uint32_t *at, uint32_t *limit) {
    for (uint32_t p = 0; p < PTOISA_PIPE_COUNT; p++) {
        if (at[p] < *limit) {
            return false;
        }
    }
    bool is_barrier = *limit < proof->count;
    *limit = is_barrier ? proof->next[*limit] : *limit;
    return is_barrier;
}

// Holds up instruction u, on the first of the cores that execute it. firsts: of each stream, the first
// instruction behind u; limits: of each half, the first barrier of all pipes behind u, or the end of the
// list.
static bool pwsp_proof_hold(const pwsp_proof *proof, uint32_t u, const uint32_t *firsts,
                            const uint32_t *limits) {
    uint32_t at[PWSP_PROOF_CORES][PTOISA_PIPE_COUNT], limit_of[PWSP_PROOF_CORES];
    uint32_t pipe = proof->pipes[u], core = pwsp_proof_core_of(proof, u), limit = limits[core];
    uint32_t core_count = proof->list->is_mixed ? PWSP_PROOF_CORES : 1;
    for (uint32_t c = 0; c < core_count; c++) {
        uint32_t half = c > 0;
        memcpy(at[c], firsts + half * PTOISA_PIPE_COUNT, sizeof at[c]);
        limit_of[c] = limits[half];
    }
    const pwsp_insn *insn = &proof->list->insns[u];
    bool is_wait = insn->op == PTOISA_WAIT_FLAG;
    bool is_slow = proof->machine->family == PTOISA_A2A3 && pipe == PTOISA_PIPE_V && !is_wait;
    if (!is_slow) {
        at[core][pipe] = limit;
    }
    if (core == 1) {
        at[2][pipe] = u;  // the second vector core goes on
    }
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (uint32_t c = 0; c < core_count; c++) {
            for (uint32_t p = 0; p < PTOISA_PIPE_COUNT; p++) {
                pwsp_proof_step step = {u, c, limit_of[c], is_slow && c == core && p == pipe};
                if (at[c][p] < limit_of[c] &&
                    !pwsp_proof_run_pipe(proof, &step, &at[c][p], &has_moved)) {
                    return false;
                }
            }
            has_moved =
                has_moved || (c != core && pwsp_proof_pass_barrier(proof, at[c], &limit_of[c]));
        }
    }
    bool is_store = insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER;
    if (is_store && limit == proof->count && at[core][PTOISA_PIPE_S] >= limit) {
        return pwsp_list_fail(proof->fault, PTOWSP_INVALID_PARAMS, pwsp_proof_insn_of(proof, u),
                              "verify: S may end before instruction %" PRIu32
                              " (%s on %s) has stored",
                              pwsp_proof_insn_of(proof, u), pwsp_proof_name(proof, u),
                              ptoisa_pipe_name((ptoisa_pipe)pipe));
    }
    return true;
}

// Holds up each instruction that touches memory, and each wait whose event is set again. From the
// last to the first, so that what comes behind is known.
static bool pwsp_proof_check_order(pwsp_proof *proof) {
    uint32_t firsts[PWSP_PROOF_STREAMS], limits[2] = {proof->count, proof->count};
    for (int s = 0; s < PWSP_PROOF_STREAMS; s++) {
        firsts[s] = proof->count;
    }
    for (uint32_t u = proof->count; u-- > 0;) {
        uint32_t pipe = proof->pipes[u];
        const pwsp_insn *insn = &proof->list->insns[u];
        if (pipe == PTOISA_PIPE_ALL) {
            uint32_t *limit = &limits[pwsp_proof_core_of(proof, u)];
            proof->next[u] = *limit;
            *limit = u;
            continue;
        }
        bool is_reset = insn->op == PTOISA_WAIT_FLAG && proof->resets[u] != PWSP_PROOF_NONE;
        uint32_t stream = pwsp_proof_stream_of(proof, u);
        proof->next[u] = firsts[stream];
        if ((is_reset || !pwsp_proof_is_sync(insn)) && !pwsp_proof_hold(proof, u, firsts, limits)) {
            return false;
        }
        firsts[stream] = u;
    }
    return true;
}

static bool pwsp_proof_out_of_memory(const pwsp_proof *proof) {
    return pwsp_list_fail(proof->fault, PTOWSP_OUT_OF_MEMORY, 0, "verify: out of memory");
}

// Makes room and goes through all checks.
static bool pwsp_proof_run(pwsp_proof *proof, pwsp_arena *arena) {
    uint64_t access_count;
    if (!pwsp_proof_check_tiles(proof, &access_count)) {
        return false;
    }
    size_t count = (size_t)proof->count + 1, tile_count = (size_t)proof->list->tile_count + 1;
    uint32_t *room = (uint32_t *)pwsp_arena_alloc(
        arena, (7 * count + 3 * tile_count) * sizeof *room, sizeof *room);
    proof->accesses = (pwsp_proof_access *)pwsp_arena_alloc(
        arena, (size_t)access_count * sizeof *proof->accesses, sizeof(uint64_t));
    proof->pipes = (uint8_t *)pwsp_arena_alloc(arena, count, 1);
    bool *is_written = (bool *)pwsp_arena_alloc(arena, tile_count, 1);
    if (!room || !proof->accesses || !proof->pipes || !is_written) {
        return pwsp_proof_out_of_memory(proof);
    }
    proof->next = room;
    proof->partner = room + count;
    proof->resets = room + 2 * count;
    proof->starts = room + 3 * count;
    for (uint32_t core = 0; core < PWSP_PROOF_CORES; core++) {
        proof->seen[core] = room + (4 + core) * count;
    }
    proof->first = room + 7 * count;
    proof->last = proof->first + tile_count;
    return pwsp_proof_find_accesses(proof, is_written) &&
           pwsp_proof_check_lives(proof, proof->last + tile_count) &&
           pwsp_proof_match_flags(proof) && pwsp_proof_match_fifos(proof) &&
           pwsp_proof_check_order(proof);
}

// Proves a plain list: a whole one, or what is unrolled of it.
static bool pwsp_proof_list(const pwsp_list *whole, const ptoisa_machine *machine,
                            const pwsp_unrolled *from, pwsp_list_fault *fault) {
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
    pwsp_arena arena;
    pwsp_arena_init(&arena, &list->memory);
    bool is_good = pwsp_proof_run(&proof, &arena);
    pwsp_arena_free(&arena);
    return is_good;
}

// Proves a list with each loop run as often as counts say.
static bool pwsp_proof_counts(const pwsp_list *list, const ptoisa_machine *machine,
                              const uint32_t *counts, pwsp_list_fault *fault) {
    pwsp_unrolled unrolled;
    bool is_good = pwsp_unroll(list, counts, &unrolled) ||
                   pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "verify: out of memory");
    is_good = is_good && pwsp_proof_list(list, machine, &unrolled, fault);
    pwsp_unroll_free(&unrolled);
    return is_good;
}

#define PWSP_PROOF_ITERATIONS 5  // 0 to 4

static bool pwsp_proof_loops(const pwsp_list *list, const ptoisa_machine *machine,
                             pwsp_list_fault *fault) {
    if (!pwsp_unroll_check(list, fault)) {
        return false;
    }
    uint32_t count = list->loop_count;
    for (uint32_t a = 1; a <= count; a++) {
        for (uint32_t b = count == 1 ? 1 : a + 1; b <= count; b++) {
            for (uint32_t n = 0; n < PWSP_PROOF_ITERATIONS * PWSP_PROOF_ITERATIONS; n++) {
                uint32_t counts[PTOWSP_LOOP_MAX + 1];
                for (uint32_t loop = 0; loop <= count; loop++) {
                    counts[loop] = 2;
                }
                counts[b] = n / PWSP_PROOF_ITERATIONS;
                counts[a] = n % PWSP_PROOF_ITERATIONS;
                if (a == b && n >= PWSP_PROOF_ITERATIONS) {
                    break;
                }
                if (!pwsp_proof_counts(list, machine, counts, fault)) {
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
    return list->loop_count ? pwsp_proof_loops(list, machine, fault)
                            : pwsp_proof_list(list, machine, NULL, fault);
}
