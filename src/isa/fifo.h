// FIFOs between the cube core of a block and its two vector cores: TALLOC, TPUSH, TPOP, TFREE.
//
// A block is one cube core and two vector cores (sub-blocks 0 and 1), each a ptoisa_core with its
// own clocks and memories. They meet in rings of slots in global memory, each in one direction:
//
//     cube core   --FIX-->  slot 0 | slot 1 | ..  --MTE2-->  vector cores    PTOISA_C2V
//     vector cores --MTE3-> slot 0 | slot 1 | ..  --MTE2-->  cube core       PTOISA_V2C
//
// A slot holds a whole tile, row-major, one row `pitch` elements after the other. The cube core
// fills or reads all of it, a vector core its half, which the split tells:
//
//     UP_DOWN          sub-block 1 begins at row R, R the rows that the vector core's tile has
//     LEFT_RIGHT       sub-block 1 begins at column C, C the columns of that tile; the pitch is 2 C
//     UP_DOWN_ODD      of 2 n + 1 valid rows sub-block 0 has n + 1, sub-block 1 the last n
//     LEFT_RIGHT_ODD   the same with columns; the pitch is 2 C
//     NO_SPLIT         both read all of it; sub-block 0 writes it, sub-block 1 only says so
//
// Valid sizes may be smaller: of 50 rows and vector tiles of 32, sub-block 1 has 18; of 20 it has
// none, and still has to push and pop.
//
// A push waits for a free slot as the public documentation says: the first slot_count wait for
// nothing; then every `period`-th waits until the slots of that whole period are free (period:
// slot_count up to 2, else slot_count / 2). A pop waits until its slot is full, from both vector
// cores if these fill it.
//
// In time a push is the TSTORE of its tile and a pop the TLOAD of its, in every model. The waits
// hold the pipe that moves, until the other core's pipe was done. The handshake itself takes no
// cycles: no public number of it is known. Both depend on the order of pushes and pops on each core
// alone, so cycles do not depend on the order in which the host runs the cores. In models that sum
// (unit) waits cost nothing, and a block takes the sum over its cores.
//
// On A5 the slots are in the memory of the core that pops: UB, or L1. So a push is a move from L0C
// to UB or from UB to L1, and a pop only waits; TALLOC has no address in global memory.
// The public documentation has three rules for pushed tiles, and no more (checked 4 [read]):
//
//     to the vector cores, split    types of 32 bits; by rows: an even number of valid rows; by
//                                   columns: valid columns in whole 32s
//     to the cube core              valid columns of whole 32 bytes
//
// When a device of A5 frees a slot, and what of it each vector core has, it does not say: here that is
// as on A2/A3. The bytes are at `gm` here, too.
//
// Two ways to use it. A host that runs the halves interleaved on one thread asks can_push and
// can_pop first: a push without a free slot and a pop without data are faults then.
// ptoisa_block_run (block.h) sets `wait`, and both wait.

#ifndef PTOISA_FIFO_H
#define PTOISA_FIFO_H

#include "move.h"

#define PTOISA_FIFO_SLOTS_MAX 32  // slots of a ring
#define PTOISA_FIFO_FLAGS     16  // flags between the cores of a block; a ring takes two

typedef enum ptoisa_direction { PTOISA_C2V = 1, PTOISA_V2C = 2 } ptoisa_direction;

typedef enum ptoisa_split {
    PTOISA_NO_SPLIT = 0,
    PTOISA_UP_DOWN,
    PTOISA_LEFT_RIGHT,
    PTOISA_UP_DOWN_ODD,
    PTOISA_LEFT_RIGHT_ODD,
    PTOISA_SPLIT_COUNT
} ptoisa_split;

// The contents of a slot. By address (TALLOC) they are unknown: without dtype.
typedef struct ptoisa_fifo_slot {
    uint64_t filled_at, freed_at;  // when the last that fills, reads it was done
    uint8_t dtype, split;
    uint32_t pitch;                         // elements from row to row
    uint32_t cut;                           // row or column where sub-block 1 wrote
    uint32_t valid_rows[2], valid_cols[2];  // that each has filled; the cube core is 0
} ptoisa_fifo_slot;

typedef struct ptoisa_fifo ptoisa_fifo;

// Called when a core cannot proceed; returns true when it can, false if it never will (after a
// fault).
typedef bool (*ptoisa_fifo_wait_fn)(ptoisa_fifo *fifo, ptoisa_core *core, uint32_t sub,
                                    bool is_push);

struct ptoisa_fifo {
    ptoisa_direction direction;
    uint32_t flag;        // this and the next are its flags
    uint32_t slot_bytes;  // of a whole tile
    uint32_t slot_count;
    uint8_t *gm;               // slot_count * slot_bytes; NULL if all cores are dry
    ptoisa_fifo_wait_fn wait;  // NULL: waiting is a fault
    void *wait_user;
    // ------------------------------------------------
    uint64_t allocated[2], pushed[2];  // tiles so far, by each that fills them; the cube core is 0
    uint64_t popped[2], freed[2];      // and by each that reads them
    ptoisa_fifo_slot slots[PTOISA_FIFO_SLOTS_MAX];
};

PTOISA_FN const char *ptoisa_split_name(ptoisa_split split) {
    switch (split) {
    case PTOISA_NO_SPLIT: return "NO_SPLIT";
    case PTOISA_UP_DOWN: return "UP_DOWN";
    case PTOISA_LEFT_RIGHT: return "LEFT_RIGHT";
    case PTOISA_UP_DOWN_ODD: return "UP_DOWN_ODD";
    case PTOISA_LEFT_RIGHT_ODD: return "LEFT_RIGHT_ODD";
    case PTOISA_SPLIT_COUNT: break;
    }
    return "no split";
}

PTOISA_INLINE const char *ptoisa_direction_name(ptoisa_direction direction) {
    return direction == PTOISA_C2V ? "cube to vector" : "vector to cube";
}

// Makes an empty ring over gm_bytes of global memory (0: enough, whatever is needed). Its slots are
// at gm; a pair of rings in both directions takes flags f and f + 2 and adjacent memory.
PTOISA_FN bool ptoisa_fifo_init(ptoisa_core *core, ptoisa_fifo *fifo, ptoisa_direction direction,
                                uint32_t flag, uint32_t slot_bytes, uint32_t slot_count, void *gm,
                                uint64_t gm_bytes) {
    memset(fifo, 0, sizeof *fifo);
    if (direction != PTOISA_C2V && direction != PTOISA_V2C) {
        return ptoisa_fault(core, PTOISA_NOP, "TPIPE: there is no direction %d", (int)direction);
    }
    if (flag >= PTOISA_FIFO_FLAGS - 1) {
        return ptoisa_fault(core, PTOISA_NOP, "TPIPE: flags %u and %u: there are %d", flag,
                            flag + 1, PTOISA_FIFO_FLAGS);
    }
    if (slot_count == 0 || slot_count > PTOISA_FIFO_SLOTS_MAX) {
        return ptoisa_fault(core, PTOISA_NOP, "TPIPE: %u slots, not 1 to %d", slot_count,
                            PTOISA_FIFO_SLOTS_MAX);
    }
    if (slot_bytes == 0 || slot_bytes % 32 != 0) {
        return ptoisa_fault(core, PTOISA_NOP, "TPIPE: slots of %u bytes, no multiple of 32",
                            slot_bytes);
    }
    uint64_t bytes = (uint64_t)slot_bytes * slot_count;
    if (gm_bytes != 0 && bytes > gm_bytes) {
        return ptoisa_fault(core, PTOISA_NOP,
                            "TPIPE: %u slots of %u bytes do not fit into %llu bytes", slot_count,
                            slot_bytes, (unsigned long long)gm_bytes);
    }
    fifo->direction = direction;
    fifo->flag = flag;
    fifo->slot_bytes = slot_bytes;
    fifo->slot_count = slot_count;
    fifo->gm = (uint8_t *)gm;
    return true;
}

// -- waiting --------------------------------------------------------------------------------------

// The counter that speaks for all cores that fill (read) a slot: two vector cores, or one cube core.
PTOISA_INLINE uint64_t ptoisa_fifo_of_both(const uint64_t *count, bool is_vector) {
    return is_vector && count[1] < count[0] ? count[1] : count[0];
}

PTOISA_INLINE uint64_t ptoisa_fifo_pushed(const ptoisa_fifo *fifo) {
    return ptoisa_fifo_of_both(fifo->pushed, fifo->direction == PTOISA_V2C);
}

PTOISA_INLINE uint64_t ptoisa_fifo_freed(const ptoisa_fifo *fifo) {
    return ptoisa_fifo_of_both(fifo->freed, fifo->direction == PTOISA_C2V);
}

// How many tiles must have been freed before the next push of sub-block `sub`. See above.
PTOISA_FN uint64_t ptoisa_fifo_needs(const ptoisa_fifo *fifo, uint32_t sub) {
    uint64_t next = fifo->allocated[sub];
    if (next < fifo->slot_count) {
        return 0;
    }
    uint64_t past = next - fifo->slot_count;
    uint32_t period = fifo->slot_count <= 2 ? fifo->slot_count : fifo->slot_count / 2;
    return past - past % period + period;
}

// Is there a slot for the next push (or TALLOC) of this core, data for its next pop? `sub` is the
// vector core, 0 or 1; 0 for the cube core.
PTOISA_FN bool ptoisa_fifo_can_push(const ptoisa_fifo *fifo, uint32_t sub) {
    return ptoisa_fifo_freed(fifo) >= ptoisa_fifo_needs(fifo, sub);
}

PTOISA_FN bool ptoisa_fifo_can_pop(const ptoisa_fifo *fifo, uint32_t sub) {
    return ptoisa_fifo_pushed(fifo) > fifo->popped[sub];
}

// Holds a pipe until another core's was done, as wait_flag does.
PTOISA_FN void ptoisa_fifo_hold(ptoisa_core *core, ptoisa_pipe pipe, uint64_t until) {
    if (ptoisa_time_of(core->model) != PTOISA_TIME_SUM) {
        ptoisa_wait_until(core, pipe, until);
    }
}

// The pipe that a push moves by.
PTOISA_INLINE ptoisa_pipe ptoisa_fifo_pipe(const ptoisa_fifo *fifo) {
    return fifo->direction == PTOISA_C2V ? PTOISA_PIPE_FIX : PTOISA_PIPE_MTE3;
}

// Waits for a free slot and takes it: NULL after a fault.
PTOISA_FN ptoisa_fifo_slot *ptoisa_fifo_begin_push(ptoisa_core *core, ptoisa_fifo *fifo,
                                                   uint32_t sub) {
    if (sub > (fifo->direction == PTOISA_V2C ? 1u : 0u)) {
        ptoisa_fault(core, PTOISA_NOP, "TPUSH: FIFO %u (%s) is not filled by core %u", fifo->flag,
                     ptoisa_direction_name(fifo->direction), sub);
        return NULL;
    }
    if (!ptoisa_fifo_can_push(fifo, sub)) {
        if (!fifo->wait) {
            ptoisa_fault(core, PTOISA_NOP,
                         "TPUSH: FIFO %u (%s) has no free slot for tile %llu: %llu were freed",
                         fifo->flag, ptoisa_direction_name(fifo->direction),
                         (unsigned long long)fifo->allocated[sub],
                         (unsigned long long)ptoisa_fifo_freed(fifo));
            return NULL;
        }
        if (!fifo->wait(fifo, core, sub, true)) {
            return NULL;
        }
    }
    uint64_t needs = ptoisa_fifo_needs(fifo, sub);
    if (needs > 0) {
        ptoisa_fifo_hold(core, ptoisa_fifo_pipe(fifo),
                         fifo->slots[(needs - 1) % fifo->slot_count].freed_at);
    }
    return &fifo->slots[fifo->allocated[sub]++ % fifo->slot_count];
}

// Says that the slot is full, as far as this core fills it.
PTOISA_FN void ptoisa_fifo_end_push(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub) {
    uint64_t tile = fifo->pushed[sub]++, at = core->clock[ptoisa_fifo_pipe(fifo)];
    ptoisa_fifo_slot *slot = &fifo->slots[tile % fifo->slot_count];
    bool is_first = fifo->direction == PTOISA_C2V || fifo->pushed[1 - sub] <= tile;
    slot->filled_at = is_first || at > slot->filled_at ? at : slot->filled_at;
}

// Waits for data: NULL after a fault.
PTOISA_FN ptoisa_fifo_slot *ptoisa_fifo_begin_pop(ptoisa_core *core, ptoisa_fifo *fifo,
                                                  uint32_t sub) {
    if (sub > (fifo->direction == PTOISA_C2V ? 1u : 0u)) {
        ptoisa_fault(core, PTOISA_NOP, "TPOP: FIFO %u (%s) is not read by core %u", fifo->flag,
                     ptoisa_direction_name(fifo->direction), sub);
        return NULL;
    }
    if (!ptoisa_fifo_can_pop(fifo, sub)) {
        if (!fifo->wait) {
            ptoisa_fault(core, PTOISA_NOP, "TPOP: FIFO %u (%s) is empty: tile %llu was not pushed",
                         fifo->flag, ptoisa_direction_name(fifo->direction),
                         (unsigned long long)fifo->popped[sub]);
            return NULL;
        }
        if (!fifo->wait(fifo, core, sub, false)) {
            return NULL;
        }
    }
    ptoisa_fifo_slot *slot = &fifo->slots[fifo->popped[sub]++ % fifo->slot_count];
    ptoisa_fifo_hold(core, PTOISA_PIPE_MTE2, slot->filled_at);
    return slot;
}

// Says that this core has read the slot.
PTOISA_FN void ptoisa_fifo_end_pop(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub) {
    uint64_t tile = fifo->freed[sub]++, at = core->clock[PTOISA_PIPE_MTE2];
    ptoisa_fifo_slot *slot = &fifo->slots[tile % fifo->slot_count];
    bool is_first = fifo->direction == PTOISA_V2C || fifo->freed[1 - sub] <= tile;
    slot->freed_at = is_first || at > slot->freed_at ? at : slot->freed_at;
}

// -- tiles ----------------------------------------------------------------------------------------

PTOISA_INLINE bool ptoisa_split_is_cols(ptoisa_split split) {
    return split == PTOISA_LEFT_RIGHT || split == PTOISA_LEFT_RIGHT_ODD;
}

PTOISA_INLINE bool ptoisa_split_is_odd(ptoisa_split split) {
    return split == PTOISA_UP_DOWN_ODD || split == PTOISA_LEFT_RIGHT_ODD;
}

// Elements from row to row in the slot of this tile: `is_half` if it is a vector core's.
PTOISA_INLINE uint32_t ptoisa_fifo_pitch(const ptoisa_tile *tile, ptoisa_split split,
                                         bool is_half) {
    return is_half && ptoisa_split_is_cols(split) ? 2 * tile->cols : tile->cols;
}

// The row or column where sub-block 1 begins, of a vector core's tile.
PTOISA_FN uint32_t ptoisa_fifo_cut(const ptoisa_tile *tile, ptoisa_split split, uint32_t sub) {
    switch (split) {
    case PTOISA_UP_DOWN: return tile->rows;
    case PTOISA_LEFT_RIGHT: return tile->cols;
    case PTOISA_UP_DOWN_ODD: return tile->valid_rows + sub;
    case PTOISA_LEFT_RIGHT_ODD: return tile->valid_cols + sub;
    case PTOISA_NO_SPLIT:
    case PTOISA_SPLIT_COUNT: break;
    }
    return 0;
}

// What sub-block `sub` has of `valid` rows (or columns) that are cut at `cut`.
PTOISA_INLINE uint32_t ptoisa_fifo_part(uint32_t valid, uint32_t cut, uint32_t sub) {
    uint32_t first = valid < cut ? valid : cut;
    return sub == 0 ? first : valid - first;
}

// Where the part of a tile is in slot `index`: a window of its valid size.
PTOISA_FN ptoisa_global ptoisa_fifo_window(const ptoisa_fifo *fifo, uint64_t index,
                                           ptoisa_dtype dtype, const ptoisa_tile *tile,
                                           uint32_t pitch, uint32_t row, uint32_t col) {
    uint8_t *data = NULL;
    if (fifo->gm) {
        data = fifo->gm + index % fifo->slot_count * fifo->slot_bytes +
               ((uint64_t)row * pitch + col) * ptoisa_dtype_size(dtype);
    }
    return ptoisa_global_make(data, dtype, tile->valid_rows, tile->valid_cols, pitch, 1);
}

// Is this a tile that the core which pushes or pops has, and does all of it fit into a slot?
PTOISA_FN bool ptoisa_check_fifo(ptoisa_core *core, const char *name, const ptoisa_fifo *fifo,
                                 const ptoisa_tile *tile, ptoisa_split split, ptoisa_dtype dtype,
                                 ptoisa_memory memory) {
    if ((uint32_t)split >= PTOISA_SPLIT_COUNT) {
        return ptoisa_fault(core, PTOISA_NOP, "%s: there is no split %d", name, (int)split);
    }
    if (tile->memory != memory) {
        return ptoisa_fault(core, PTOISA_NOP, "%s: FIFO %u (%s): a tile in %s, not in %s", name,
                            fifo->flag, ptoisa_direction_name(fifo->direction),
                            ptoisa_memory_name((ptoisa_memory)tile->memory),
                            ptoisa_memory_name(memory));
    }
    if (memory == PTOISA_MAT && tile->layout != PTOISA_NZ) {
        return ptoisa_fault(core, PTOISA_NOP, "%s: FIFO %u: a tile in L1 that is not NZ", name,
                            fifo->flag);
    }
    bool is_half = memory == PTOISA_VEC, is_cols = ptoisa_split_is_cols(split);
    uint64_t rows = tile->rows;
    if (is_half && split == PTOISA_UP_DOWN) {
        rows = 2 * rows;
    } else if (is_half && split == PTOISA_UP_DOWN_ODD && tile->valid_rows > 0) {
        rows = 2 * (uint64_t)tile->valid_rows - 1;  // of sub-block 0, which has one more
    } else if (!is_half && ptoisa_split_is_odd(split) &&
               (is_cols ? tile->valid_cols : tile->valid_rows) % 2 == 0) {
        return ptoisa_fault(core, PTOISA_NOP, "%s: FIFO %u: %u %s are not odd (%s)", name,
                            fifo->flag, is_cols ? tile->valid_cols : tile->valid_rows,
                            is_cols ? "columns" : "rows", ptoisa_split_name(split));
    }
    uint64_t bytes = rows * ptoisa_fifo_pitch(tile, split, is_half) * ptoisa_dtype_size(dtype);
    if (bytes > fifo->slot_bytes) {
        return ptoisa_fault(core, PTOISA_NOP, "%s: FIFO %u: a tile of %llu bytes, slots of %u",
                            name, fifo->flag, (unsigned long long)bytes, fifo->slot_bytes);
    }
    return true;
}

// Does the machine have its slots in UB and L1?
PTOISA_INLINE bool ptoisa_fifo_is_direct(const ptoisa_core *core) {
    return core->machine->family == PTOISA_A5;
}

// May a tile go to the other core's memory directly?
PTOISA_FN bool ptoisa_check_direct(ptoisa_core *core, const ptoisa_fifo *fifo,
                                   const ptoisa_tile *tile, ptoisa_split split,
                                   ptoisa_dtype dtype) {
    if (!ptoisa_fifo_is_direct(core) || core->is_as_simulator) {
        return true;
    }
    uint32_t size = ptoisa_dtype_size(dtype);
    if (fifo->direction == PTOISA_V2C) {
        return tile->valid_cols * size % 32 == 0 ||
               ptoisa_fault(core, PTOISA_NOP,
                            "TPUSH: FIFO %u: %u valid columns of %s are no whole 32 bytes, which "
                            "%s moves to L1",
                            fifo->flag, tile->valid_cols, ptoisa_dtype_name(dtype),
                            core->machine->name);
    }
    if (split == PTOISA_NO_SPLIT) {
        return true;
    }
    if (size != 4) {
        return ptoisa_fault(core, PTOISA_NOP, "TPUSH: FIFO %u: %s has not 32 bits, as %s splits it",
                            fifo->flag, ptoisa_dtype_name(dtype), core->machine->name);
    }
    bool is_cols = ptoisa_split_is_cols(split);
    uint32_t count = is_cols ? tile->valid_cols : tile->valid_rows, unit = is_cols ? 32 : 2;
    return count % unit == 0 ||
           ptoisa_fault(core, PTOISA_NOP,
                        "TPUSH: FIFO %u: %u valid %s are no %s, as %s splits them", fifo->flag,
                        count, is_cols ? "columns" : "rows", is_cols ? "whole 32s" : "even number",
                        core->machine->name);
}

// Records a core's part of a slot. It must match the other vector core's part.
PTOISA_FN bool ptoisa_fifo_note(ptoisa_core *core, ptoisa_fifo *fifo, ptoisa_fifo_slot *slot,
                                uint32_t sub, const ptoisa_tile *tile, ptoisa_split split,
                                ptoisa_dtype dtype) {
    bool is_half = fifo->direction == PTOISA_V2C;
    uint32_t pitch = ptoisa_fifo_pitch(tile, split, is_half);
    uint32_t cut = is_half ? ptoisa_fifo_cut(tile, split, sub) : 0;
    bool is_second = is_half && fifo->allocated[1 - sub] >= fifo->allocated[sub];
    if (is_second && slot->dtype != PTOISA_DTYPE_NONE &&
        (slot->dtype != dtype || slot->split != split || slot->pitch != pitch ||
         slot->cut != cut)) {
        return ptoisa_fault(core, PTOISA_NOP,
                            "TPUSH: FIFO %u: %s %s cut at %u of rows of %u, and the other vector "
                            "core's is %s %s at %u of %u",
                            fifo->flag, ptoisa_dtype_name(dtype), ptoisa_split_name(split), cut,
                            pitch, ptoisa_dtype_name((ptoisa_dtype)slot->dtype),
                            ptoisa_split_name((ptoisa_split)slot->split), slot->cut, slot->pitch);
    }
    slot->dtype = (uint8_t)dtype;
    slot->split = (uint8_t)split;
    slot->pitch = pitch;
    slot->cut = cut;
    slot->valid_rows[sub] = tile->valid_rows;
    slot->valid_cols[sub] = tile->valid_cols;
    return true;
}

// The conversion of a push out of L0C, as in TSTORE: ReLU, then a scale, for all or for each
// column, then the type of the slot.
typedef struct ptoisa_fifo_fixpipe {
    ptoisa_dtype dtype;  // PTOISA_DTYPE_NONE: the tile's own
    bool is_relu, is_scaled;
    float scale;
    const ptoisa_tile *fp;  // the low 32 bits of its cells are the scales of columns; NULL: `scale`
} ptoisa_fifo_fixpipe;

// Is the conversion of a pushed tile valid?
PTOISA_FN bool ptoisa_check_push(ptoisa_core *core, const ptoisa_fifo *fifo,
                                 const ptoisa_tile *tile, ptoisa_dtype dtype,
                                 const ptoisa_fifo_fixpipe *how) {
    bool is_changed = dtype != (ptoisa_dtype)tile->dtype || how->is_relu || how->is_scaled;
    if (is_changed && fifo->direction == PTOISA_V2C) {
        return ptoisa_fault(core, PTOISA_NOP,
                            "TPUSH: FIFO %u (vector to cube): tiles in UB are pushed as they are",
                            fifo->flag);
    }
    if (is_changed && !ptoisa_is_acc_pair(dtype, tile->dtype, how->is_scaled)) {
        return ptoisa_fault(core, PTOISA_NOP, "TPUSH: FIFO %u: %s does not become %s%s", fifo->flag,
                            ptoisa_dtype_name((ptoisa_dtype)tile->dtype), ptoisa_dtype_name(dtype),
                            how->is_scaled ? " by a scale" : "");
    }
    const ptoisa_tile *fp = how->is_scaled ? how->fp : NULL;
    if (fp && (fp->memory != PTOISA_SCALING || !(PTOISA_SET_64 >> fp->dtype & 1) ||
               fp->valid_cols < tile->valid_cols)) {
        return ptoisa_fault(core, PTOISA_NOP,
                            "TPUSH: FIFO %u: %u scales of %s in %s for %u columns", fifo->flag,
                            fp->valid_cols, ptoisa_dtype_name((ptoisa_dtype)fp->dtype),
                            ptoisa_memory_name((ptoisa_memory)fp->memory), tile->valid_cols);
    }
    return true;
}

// TPUSH: stores the valid part of the tile into the next slot. On the cube core (C2V) the tile is
// in L0C, all of it; on a vector core (V2C) in UB, its half.
PTOISA_FN void ptoisa_fifo_push_fixpipe(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub,
                                        const ptoisa_tile *tile, ptoisa_split split,
                                        const ptoisa_fifo_fixpipe *how) {
    bool is_half = fifo->direction == PTOISA_V2C;
    ptoisa_dtype dtype = how->dtype == PTOISA_DTYPE_NONE ? (ptoisa_dtype)tile->dtype : how->dtype;
    if (PTOISA_CHECKED && (!ptoisa_check_fifo(core, "TPUSH", fifo, tile, split, dtype,
                                              is_half ? PTOISA_VEC : PTOISA_ACC) ||
                           !ptoisa_check_push(core, fifo, tile, dtype, how) ||
                           !ptoisa_check_direct(core, fifo, tile, split, dtype))) {
        return;
    }
    ptoisa_fifo_slot *slot = ptoisa_fifo_begin_push(core, fifo, sub);
    if (!slot) {
        return;
    }
    // A mismatched push is not executed, but counts: otherwise the other core would wait for it.
    if (ptoisa_fifo_note(core, fifo, slot, sub, tile, split, dtype) && tile->valid_rows > 0 &&
        tile->valid_cols > 0 && !(split == PTOISA_NO_SPLIT && sub == 1)) {
        uint32_t from = sub == 1 ? slot->cut : 0;
        bool is_cols = ptoisa_split_is_cols(split);
        ptoisa_global g = ptoisa_fifo_window(fifo, fifo->allocated[sub] - 1, dtype, tile,
                                             slot->pitch, is_cols ? 0 : from, is_cols ? from : 0);
        const ptoisa_tile *fp = how->is_scaled ? how->fp : NULL;
        const ptoisa_fixpipe fixpipe = {how->is_relu, false, how->is_scaled, how->scale,
                                        fp ? (const ptoisa_any_u64 *)fp->data : NULL};
        if (!ptoisa_fifo_is_direct(core)) {
            ptoisa_store(core, &g, tile, &fixpipe, fp);
        } else if (!PTOISA_CHECKED || ptoisa_check_store(core, &g, tile, &fixpipe)) {
            ptoisa_tile to = *tile;
            to.memory = is_half ? PTOISA_MAT : PTOISA_VEC;
            to.dtype = (uint8_t)dtype;
            ptoisa_issue(core, PTOISA_TMOV, &to, tile, NULL);
            if (!core->is_dry) {
                ptoisa_store_bytes(&g, tile, &fixpipe);
            }
        }
    }
    ptoisa_fifo_end_push(core, fifo, sub);
}

PTOISA_FN void ptoisa_fifo_push(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub,
                                const ptoisa_tile *tile, ptoisa_split split) {
    const ptoisa_fifo_fixpipe as_it_is = {PTOISA_DTYPE_NONE, false, false, 0, NULL};
    ptoisa_fifo_push_fixpipe(core, fifo, sub, tile, split, &as_it_is);
}

// The whole valid size of a pushed tile. False if the two vector cores' halves leave a gap.
PTOISA_FN bool ptoisa_fifo_whole(const ptoisa_fifo *fifo, const ptoisa_fifo_slot *slot,
                                 uint32_t *rows, uint32_t *cols) {
    *rows = slot->valid_rows[0];
    *cols = slot->valid_cols[0];
    if (fifo->direction == PTOISA_C2V || slot->split == PTOISA_NO_SPLIT) {
        return true;
    }
    bool is_cols = ptoisa_split_is_cols((ptoisa_split)slot->split);
    uint32_t *along = is_cols ? cols : rows, across = is_cols ? *rows : *cols;
    uint32_t next = is_cols ? slot->valid_cols[1] : slot->valid_rows[1];
    uint32_t other = is_cols ? slot->valid_rows[1] : slot->valid_cols[1];
    bool is_whole = next == 0 || (*along == slot->cut && across == other);
    *along += next;
    return is_whole;
}

// Does the popped tile match the pushed one?
PTOISA_FN bool ptoisa_check_pop(ptoisa_core *core, const ptoisa_fifo *fifo,
                                const ptoisa_fifo_slot *slot, uint32_t sub, const ptoisa_tile *tile,
                                ptoisa_split split, uint32_t *cut) {
    bool is_half = fifo->direction == PTOISA_C2V, is_cols = ptoisa_split_is_cols(split);
    uint32_t rows, cols, pitch = ptoisa_fifo_pitch(tile, split, is_half);
    if (slot->dtype == PTOISA_DTYPE_NONE) {
        *cut = ptoisa_fifo_cut(tile, split, sub);
        return true;
    }
    if (slot->dtype != tile->dtype) {
        return ptoisa_fault(core, PTOISA_NOP, "TPOP: FIFO %u: %s was pushed, the tile is %s",
                            fifo->flag, ptoisa_dtype_name((ptoisa_dtype)slot->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)tile->dtype));
    }
    if (slot->split != split) {
        return ptoisa_fault(core, PTOISA_NOP, "TPOP: FIFO %u: pushed %s, popped %s", fifo->flag,
                            ptoisa_split_name((ptoisa_split)slot->split), ptoisa_split_name(split));
    }
    if (slot->pitch != pitch) {
        return ptoisa_fault(core, PTOISA_NOP, "TPOP: FIFO %u: pushed rows of %u, popped rows of %u",
                            fifo->flag, slot->pitch, pitch);
    }
    if (!ptoisa_fifo_whole(fifo, slot, &rows, &cols)) {
        return ptoisa_fault(core, PTOISA_NOP,
                            "TPOP: FIFO %u: the halves, %u x %u and %u x %u cut at %u, leave a gap",
                            fifo->flag, slot->valid_rows[0], slot->valid_cols[0],
                            slot->valid_rows[1], slot->valid_cols[1], slot->cut);
    }
    if (is_half && split != PTOISA_NO_SPLIT) {
        uint32_t *along = is_cols ? &cols : &rows;
        *cut = ptoisa_split_is_odd(split) ? *along / 2 + 1 : ptoisa_fifo_cut(tile, split, sub);
        *along = ptoisa_fifo_part(*along, *cut, sub);
    }
    if (tile->valid_rows > rows || tile->valid_cols > cols) {
        return ptoisa_fault(core, PTOISA_NOP,
                            "TPOP: FIFO %u: the tile has %u x %u valid elements, there are %u x %u",
                            fifo->flag, tile->valid_rows, tile->valid_cols, rows, cols);
    }
    return true;
}

// TPOP: loads the next slot into the valid part of the tile and frees the slot. On a vector core
// (C2V) the tile is in UB, its half; on the cube core (V2C) in L1, all of it, in boxes (NZ). The
// rest of the tile is padded as by TLOAD.
PTOISA_FN void ptoisa_fifo_pop(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub,
                               const ptoisa_tile *tile, ptoisa_split split) {
    bool is_half = fifo->direction == PTOISA_C2V;
    ptoisa_dtype dtype = (ptoisa_dtype)tile->dtype;
    if (PTOISA_CHECKED && !ptoisa_check_fifo(core, "TPOP", fifo, tile, split, dtype,
                                             is_half ? PTOISA_VEC : PTOISA_MAT)) {
        return;
    }
    ptoisa_fifo_slot *slot = ptoisa_fifo_begin_pop(core, fifo, sub);
    if (!slot) {
        return;
    }
    uint32_t cut = ptoisa_fifo_cut(tile, split, sub);
    if (!PTOISA_CHECKED || ptoisa_check_pop(core, fifo, slot, sub, tile, split, &cut)) {
        uint32_t from = is_half && sub == 1 ? cut : 0;
        bool is_cols = ptoisa_split_is_cols(split);
        ptoisa_global g = ptoisa_fifo_window(fifo, fifo->popped[sub] - 1, dtype, tile,
                                             ptoisa_fifo_pitch(tile, split, is_half),
                                             is_cols ? 0 : from, is_cols ? from : 0);
        bool is_empty = tile->valid_rows == 0 || tile->valid_cols == 0;
        if (is_empty && !core->is_dry) {
            ptoisa_pad_around(tile, 0, 0);
        } else if (!is_empty && !ptoisa_fifo_is_direct(core)) {
            ptoisa_tload(core, tile, &g);
        } else if (!is_empty && (!PTOISA_CHECKED || ptoisa_check_load(core, tile, &g)) &&
                   !core->is_dry) {
            ptoisa_load_bytes(tile, &g);
        }
    }
    ptoisa_fifo_end_pop(core, fifo, sub);
}

// -- addresses ------------------------------------------------------------------------------------

// Points a window at this core's part of a slot: `name` is the instruction. It has the part's
// shape; sub-block 1 begins that many rows or columns further, by the window's own strides.
PTOISA_FN bool ptoisa_fifo_point(ptoisa_core *core, const char *name, const ptoisa_fifo *fifo,
                                 uint64_t index, uint32_t sub, bool is_half, ptoisa_split split,
                                 ptoisa_global *g) {
    if (PTOISA_CHECKED && ptoisa_fifo_is_direct(core) && !core->is_as_simulator) {
        return ptoisa_fault(core, PTOISA_NOP,
                            "%s: FIFO %u: slots of %s are in UB and L1, and have no address in "
                            "global memory",
                            name, fifo->flag, core->machine->name);
    }
    bool is_cols = ptoisa_split_is_cols(split);
    int64_t size = ptoisa_dtype_size((ptoisa_dtype)g->dtype), offset = 0;
    if (is_half && sub == 1 && split != PTOISA_NO_SPLIT) {
        int64_t parts = is_cols ? g->shape[4] : ptoisa_global_rows(g);
        parts += ptoisa_split_is_odd(split) ? 1 : 0;
        offset = parts * (is_cols ? g->stride[4] : g->stride[3]) * size;
    }
    int64_t last = 0;
    for (int i = 0; i < 5; i++) {
        last += (g->shape[i] - 1) * g->stride[i];
    }
    if (PTOISA_CHECKED && offset + (last + 1) * size > fifo->slot_bytes) {
        return ptoisa_fault(core, PTOISA_NOP, "%s: FIFO %u: a window to byte %lld, slots of %u",
                            name, fifo->flag, (long long)(offset + (last + 1) * size),
                            fifo->slot_bytes);
    }
    g->data = fifo->gm ? fifo->gm + index % fifo->slot_count * fifo->slot_bytes + offset : NULL;
    return true;
}

// TALLOC: waits for a free slot and points g at it, for TSTOREs of parts; then TPUSH, here _commit.
PTOISA_FN bool ptoisa_fifo_alloc(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub,
                                 ptoisa_split split, ptoisa_global *g) {
    ptoisa_fifo_slot *slot = ptoisa_fifo_begin_push(core, fifo, sub);
    if (!slot) {
        return false;
    }
    slot->dtype = PTOISA_DTYPE_NONE;
    return ptoisa_fifo_point(core, "TALLOC", fifo, fifo->allocated[sub] - 1, sub,
                             fifo->direction == PTOISA_V2C, split, g);
}

// TPUSH of data stored by address.
PTOISA_FN void ptoisa_fifo_commit(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub) {
    if (sub > 1 || fifo->pushed[sub] == fifo->allocated[sub]) {
        ptoisa_fault(core, PTOISA_NOP, "TPUSH: FIFO %u: no slot was allocated (TALLOC)",
                     fifo->flag);
        return;
    }
    ptoisa_fifo_end_push(core, fifo, sub);
}

// TPOP by address: waits for data and points g at it, for TLOADs of parts; then TFREE.
PTOISA_FN bool ptoisa_fifo_acquire(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub,
                                   ptoisa_split split, ptoisa_global *g) {
    if (!ptoisa_fifo_begin_pop(core, fifo, sub)) {
        return false;
    }
    return ptoisa_fifo_point(core, "TPOP", fifo, fifo->popped[sub] - 1, sub,
                             fifo->direction == PTOISA_C2V, split, g);
}

// TFREE of a slot popped by address.
PTOISA_FN void ptoisa_fifo_release(ptoisa_core *core, ptoisa_fifo *fifo, uint32_t sub) {
    if (sub > 1 || fifo->freed[sub] == fifo->popped[sub]) {
        ptoisa_fault(core, PTOISA_NOP, "TFREE: FIFO %u: no slot was popped", fifo->flag);
        return;
    }
    ptoisa_fifo_end_pop(core, fifo, sub);
}

// -- blocks ---------------------------------------------------------------------------------------

// At a block's end: is everything that was pushed popped and free, by both vector cores?
PTOISA_FN bool ptoisa_fifo_finish(ptoisa_core *core, const ptoisa_fifo *fifo) {
    uint64_t pushed[2] = {fifo->pushed[0], fifo->pushed[fifo->direction == PTOISA_V2C]};
    uint64_t popped[2] = {fifo->popped[0], fifo->popped[fifo->direction == PTOISA_C2V]};
    for (int sub = 0; sub < 2; sub++) {
        if (fifo->allocated[sub] != fifo->pushed[sub]) {
            return ptoisa_fault(core, PTOISA_NOP, "FIFO %u: a slot was allocated and never pushed",
                                fifo->flag);
        }
        if (fifo->popped[sub] != fifo->freed[sub]) {
            return ptoisa_fault(core, PTOISA_NOP, "FIFO %u: a slot was popped and never freed",
                                fifo->flag);
        }
    }
    if (pushed[0] != pushed[1] || popped[0] != popped[1] || pushed[0] != popped[0]) {
        return ptoisa_fault(core, PTOISA_NOP,
                            "FIFO %u (%s): %llu and %llu tiles were pushed, %llu and %llu popped",
                            fifo->flag, ptoisa_direction_name(fifo->direction),
                            (unsigned long long)pushed[0], (unsigned long long)pushed[1],
                            (unsigned long long)popped[0], (unsigned long long)popped[1]);
    }
    return true;
}

// Cycles of a block of cores that began together: until the last is done; in models that sum, of
// all.
PTOISA_FN uint64_t ptoisa_block_cycles(const ptoisa_core *const *cores, uint32_t count) {
    uint64_t cycles = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t own = ptoisa_cycles(cores[i]);
        bool is_sum = ptoisa_time_of(cores[i]->model) == PTOISA_TIME_SUM;
        cycles = is_sum ? cycles + own : own > cycles ? own : cycles;
    }
    return cycles;
}

#endif
