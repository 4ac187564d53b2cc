// The state of the proof, which three files share: tiles and what instructions access
// (proof_tiles.c), pipes, flags, FIFOs and the order of accesses (proof_order.c), and lists with loops
// (proof.c).

#ifndef PWSP_PROOF_STATE_H
#define PWSP_PROOF_STATE_H

#include "proof.h"

// An instruction's bytes: of a memory, or of parameters, one each.
typedef struct pwsp_proof_access {
    uint32_t begin, end;
    uint32_t row;    // of a parameter, where it begins
    uint8_t memory;  // ptoisa_memory, or PTOISA_MEMORY_COUNT: global memory
    bool is_write;
    bool is_shared;  // a vector core has its part of the rows from there on
} pwsp_proof_access;

// A tile that has been checked, as it is accessed; and of a root when it lives, and whether it has been
// written, and not used as scratch since.
typedef struct pwsp_proof_checked {
    pwsp_proof_access access;
    uint32_t root;
    uint32_t first, last;  // instructions + 1
    uint8_t checked_for;   // the side of an instruction that may use it, + 1; 0: none yet
    bool is_written;
} pwsp_proof_checked;

#define PWSP_PROOF_NONE UINT32_MAX

// The cube core, or the only one, and the two vector cores. The first two are the halves of a list.
#define PWSP_PROOF_CORES  3
#define PWSP_PROOF_HALVES 2

// A clock: for each pipe of each core, all instructions below that index have ended. A row is
// padded to 8, so that compilers compare several at a time; the padding has no meaning.
#define PWSP_PROOF_ROW 8

typedef struct pwsp_proof_clock {
    uint32_t ended[PWSP_PROOF_CORES][PWSP_PROOF_ROW];
} pwsp_proof_clock;

typedef struct pwsp_proof {
    const pwsp_list *list;
    const ptoisa_machine *machine;
    pwsp_list_fault *fault;
    uint32_t count;    // of instructions
    uint8_t *pipes;    // [insn] whose stream it is in; PTOISA_PIPE_ALL: in all
    uint32_t *before;  // [insn] the one before it in its stream that accesses memory, + 1
    uint32_t *starts;  // [insn] its first access
    pwsp_proof_access *accesses;  // of all instructions so far
    uint64_t access_capacity;
    uint32_t access_count;
    uint32_t unread, unread_at;    // the first tile that is read before it is written, and where
    pwsp_proof_checked *tiles;     // [tile]
    uint32_t *born;                // roots in the order of their first use
    uint32_t born_count;           // of those
    const uint32_t *origins;       // [insn] of an unrolled list: as the user knows them, or NULL
    const uint32_t *tile_origins;  // [tile]
    bool is_split;                 // both vector cores have rows: so many together at most
    uint32_t split_rows;
} pwsp_proof;

// How messages call an instruction.
PWSP_INLINE uint32_t pwsp_proof_insn_of(const pwsp_proof *proof, uint32_t i) {
    return proof->origins ? proof->origins[i] : i;
}

PWSP_INLINE const char *pwsp_proof_name(const pwsp_proof *proof, uint32_t i) {
    return pwsp_insn_name(&proof->list->insns[i]);
}

PWSP_INLINE bool pwsp_proof_is_store(const pwsp_insn *insn) {
    return insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER;
}

// The half of an instruction, and the first core that follows it.
PWSP_INLINE uint32_t pwsp_proof_half_of(const pwsp_proof *proof, uint32_t i) {
    return proof->list->insns[i].side == PWSP_SIDE_VECTOR;
}

// -- proof_tiles.c --------------------------------------------------------------------------------

// Checks instruction i and its tiles, finds its accesses and pipe, extends the lives of roots, and
// records reads of tiles that were not written before, or used as scratch since.
PWSP_INTERNAL bool pwsp_proof_check_tiles(pwsp_proof *proof, pwsp_arena *arena, uint32_t i);

// Was all that is read written before, and are the bytes of roots that live at once apart? `live` is
// room for a number of each root.
PWSP_INTERNAL bool pwsp_proof_check_lives(const pwsp_proof *proof, uint32_t *live);

// -- proof_order.c --------------------------------------------------------------------------------

// Walks over the list: checks tiles and lives, then flags, FIFOs, that accesses are in order, and all that
// is said of sets and of the last stores. `live` is as above.
PWSP_INTERNAL bool pwsp_proof_check_order(pwsp_proof *proof, pwsp_arena *arena, uint32_t *live);

PWSP_INTERNAL bool pwsp_proof_out_of_memory(const pwsp_proof *proof);

#endif  // PWSP_PROOF_STATE_H
