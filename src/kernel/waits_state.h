// The state of the pass that places waits, which three files share: spans and what instructions
// access (waits_spans.c), flags and barriers (waits.c), and iterations of loops (waits_loops.c).

#ifndef PWSP_WAITS_STATE_H
#define PWSP_WAITS_STATE_H

#include "waits.h"

// The events of a loop's body: the first ones are for its flags, singly or in pairs, the rest for
// the tokens to later iterations (waits_loops.c).
#define PWSP_WAITS_BODY_EVENTS 5
#define PWSP_WAITS_BODY_PAIRED 4
#define PWSP_WAITS_NONE        UINT32_MAX

// Numbers of all pipes, filled up so that compilers compare several at a time; the last is 0.
#define PWSP_WAITS_ROW 8

typedef struct pwsp_waits_span {
    uint32_t begin;                  // it ends where the next begins; UINT32_MAX: it is the last
    uint32_t write, write_pipe;      // the tick of the last write, or 0, and its pipe
    uint32_t reads[PWSP_WAITS_ROW];  // since the write: the last tick of each pipe, or 0
} pwsp_waits_span;

// An op to be put into the list, before instruction `slot`. Those that belong to the instruction
// before it (early) come first.
typedef struct pwsp_waits_op {
    uint32_t slot;
    bool is_early;
    uint8_t op, src, dst, event;
    uint8_t loop;   // with which the event rotates, or 0
    uint8_t level;  // the loop in whose body it is, or 0
    uint8_t side;   // pwsp_side
} pwsp_waits_op;

// Where a tile or parameter is: memories follow one another, then parameters, with one number each.
typedef struct pwsp_waits_place {
    uint32_t begin, end;
    uint32_t span;    // the one that began there when it was last looked for
    uint32_t second;  // of a rotating tile: its other place; 0: it has one
} pwsp_waits_place;

// Constraints from one iteration to a later one, of a pair of pipes: from after a source to before
// a target. Each step needs a token of its own to be as exact as that; of two steps the later one
// has the later source and the later target. Places are in units of half slots: see
// pwsp_waits_rebuild.
#define PWSP_WAITS_STEPS 4

typedef struct pwsp_waits_step {
    uint32_t set_at, wait_at;
} pwsp_waits_step;

typedef struct pwsp_waits_token {
    uint32_t count;
    pwsp_waits_step steps[PWSP_WAITS_STEPS + 1];  // the last one only while they are merged
} pwsp_waits_token;

// A loop that is open, as it was when it began.
typedef struct pwsp_waits_open {
    uint32_t loop, insn;  // and its LOOP
    uint64_t first_op;
    uint8_t rotating;  // the pipes that fill roots that rotate with it, as bits
    uint32_t stream_count[PTOISA_PIPE_COUNT];
    uint32_t known[PTOISA_PIPE_COUNT][PWSP_WAITS_ROW];
} pwsp_waits_open;

// Flags from one pipe to another.
typedef struct pwsp_waits_pair {
    uint32_t waited[PTOISA_EVENT_COUNT];  // the tick of each event's last wait
    uint32_t last_set;                    // the pair's last set, in ops
    uint32_t last_slot;                   // where its wait is
    bool has_last;
    uint8_t owners[PTOISA_EVENT_COUNT];  // the loop of the nest that uses the event; 0: none
} pwsp_waits_pair;

typedef struct pwsp_waits {
    pwsp_list *list;  // in its arena is all that is in pointers here
    bool is_out_of_memory;
    bool has_slow_vector;     // A2/A3
    pwsp_waits_place *where;  // [tile], [tile_count + parameter + 1], and second places
    pwsp_waits_op *ops;       // of both cores
    uint64_t op_count, op_capacity;
    uint8_t *pipes;    // [insn]; PTOISA_PIPE_ALL: a mark, or the other core's
    uint8_t *loop_of;  // [insn] the innermost loop that it is in, or 0
    uint32_t loop_first[PTOWSP_LOOP_MAX + 1], loop_last[PTOWSP_LOOP_MAX + 1];  // LOOP and END
    uint32_t crowded;  // the outermost loops for whose nests there are too few events, as bits
    bool is_crowded;   // another one was found
    uint32_t *ticks;   // [insn] when it is done
    uint32_t (*clocks)[PWSP_WAITS_ROW];  // [insn] carried by its pipe's flags after it
    uint32_t *stream_room;
    pwsp_waits_span *spans;
    uint64_t span_count, span_capacity;
    // Of the core in hand.
    pwsp_side side;
    uint64_t first_op;
    uint32_t *streams[PTOISA_PIPE_COUNT];  // each pipe's instructions, and how many so far
    uint32_t stream_count[PTOISA_PIPE_COUNT];
    uint32_t tick;
    uint32_t end[PTOISA_PIPE_COUNT];  // each pipe's last tick
    uint32_t known[PTOISA_PIPE_COUNT][PWSP_WAITS_ROW];
    uint8_t pair_of[PTOISA_PIPE_COUNT][PTOISA_PIPE_COUNT];  // in pairs, + 1; 0: none yet
    uint8_t pair_count;
    uint32_t loop;     // the innermost open loop whose iterations overlap, or 0
    uint8_t rotating;  // as that loop says
    uint32_t depth;    // how many such loops are open
    // The last members, not set before: the open loops, the knowledge at the ends of others,
    pwsp_waits_open opens[PTOWSP_LOOP_DEPTH_MAX];
    uint32_t closed[PTOWSP_LOOP_MAX + 1][PTOISA_PIPE_COUNT][PWSP_WAITS_ROW];
    // of the pairs in use, and [distance - 1] of the loop that ends.
    pwsp_waits_pair pairs[PTOISA_PIPE_COUNT * PTOISA_PIPE_COUNT];
    pwsp_waits_token tokens[2][PTOISA_PIPE_COUNT][PTOISA_PIPE_COUNT];
} pwsp_waits;

// Does an instruction write global memory?
PWSP_INLINE bool pwsp_waits_is_store(const pwsp_insn *insn) {
    return insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER;
}

// -- waits_spans.c --------------------------------------------------------------------------------

// Is an instruction the other core's?
PWSP_INLINE bool pwsp_waits_is_others(const pwsp_waits *w, const pwsp_insn *insn) {
    return insn->side != w->side && !pwsp_insn_is_mark(insn);
}

// Raises each number of a row to another row's. Both are below 2^31, so signed comparison works,
// which all machines have.
PWSP_INLINE void pwsp_waits_raise(uint32_t *PWSP_RESTRICT row, const uint32_t *PWSP_RESTRICT to) {
    int32_t *a = (int32_t *)row;
    const int32_t *b = (const int32_t *)to;
    for (int q = 0; q < PWSP_WAITS_ROW; q++) {
        a[q] = a[q] > b[q] ? a[q] : b[q];
    }
}

// Is a number of a row above another row's?
PWSP_INLINE bool pwsp_waits_is_any_above(const uint32_t *row, const uint32_t *of) {
    uint32_t above = 0;
    for (int q = 0; q < PWSP_WAITS_ROW; q++) {
        above |= (uint32_t)((int32_t)row[q] > (int32_t)of[q]);
    }
    return above != 0;
}

// Has the loop that begins or ends at an instruction none of this core's?
PWSP_INTERNAL bool pwsp_waits_is_others_loop(const pwsp_waits *w, uint32_t i);

// Finds where tiles and parameters are. False when memory is out.
PWSP_INTERNAL bool pwsp_waits_find_places(pwsp_waits *w, const ptoisa_machine *machine);

// Lists the accesses of an instruction, as indices of `where`, parameters included.
PWSP_INTERNAL void pwsp_waits_find_accesses(const pwsp_waits *w, const pwsp_insn *insn,
                                            pwsp_insn_tiles *out);

// Finds what instruction i accesses, and the last tick of each pipe that it depends on. False when memory
// is out.
PWSP_INTERNAL bool pwsp_waits_find_needs(pwsp_waits *w, uint32_t i, pwsp_insn_tiles *accesses,
                                         uint32_t *needs);

// Records the accesses of an instruction of a pipe, which is done at a tick. False when memory is
// out.
PWSP_INTERNAL bool pwsp_waits_note(pwsp_waits *w, const pwsp_insn_tiles *accesses, uint32_t pipe,
                                   uint32_t tick);

// -- waits.c --------------------------------------------------------------------------------------

// Makes room for another op. False when memory is out.
PWSP_INTERNAL bool pwsp_waits_extend(pwsp_waits *w);

// Puts an op before an instruction. Returns its place in w->ops, or NONE when memory is out.
PWSP_INLINE uint32_t pwsp_waits_add(pwsp_waits *w, ptoisa_op op, uint32_t src, uint32_t dst,
                                    uint32_t event, uint32_t slot, bool is_early) {
    if (w->op_count == w->op_capacity && !pwsp_waits_extend(w)) {
        return PWSP_WAITS_NONE;
    }
    pwsp_waits_op *added = &w->ops[w->op_count];
    added->slot = slot;
    added->is_early = is_early;
    added->op = (uint8_t)op;
    added->src = (uint8_t)src;
    added->dst = (uint8_t)dst;
    added->event = (uint8_t)event;
    added->loop = 0;
    added->level = (uint8_t)w->loop;
    added->side = (uint8_t)w->side;
    return (uint32_t)w->op_count++;
}

// Notes that the open nest has too few events.
PWSP_INLINE void pwsp_waits_crowd(pwsp_waits *w) {
    PTOWSP_ASSERT(w->depth > 0);
    w->is_crowded = true;
    w->crowded |= 1u << w->opens[0].loop;
}

// Makes all pipes wait for each other, before instruction i.
PWSP_INTERNAL void pwsp_waits_barrier_all(pwsp_waits *w, uint32_t i);

// The flags from one pipe to another.
PWSP_INTERNAL pwsp_waits_pair *pwsp_waits_pair_of(pwsp_waits *w, uint32_t src, uint32_t dst);

// Orders what pipe dst does from before instruction i on after the instructions of other pipes that
// it needs and does not know of.
PWSP_INTERNAL void pwsp_waits_order_all(pwsp_waits *w, uint32_t *needs, uint32_t dst, uint32_t i);

// -- waits_loops.c --------------------------------------------------------------------------------

// The beginning or end of a loop.
PWSP_INTERNAL bool pwsp_waits_mark(pwsp_waits *w, uint32_t i);

#endif  // PWSP_WAITS_STATE_H
