// A kernel as the device sees it: a straight list of instructions over tiles.
//
// Lowering appends instructions and tiles. Later passes fill in the addresses of tiles and put
// flags and barriers between instructions. Then the list is final: this one list is verified, run,
// costed, printed and emitted.
//
//      lower      insns, tiles without addresses
//      cut        which core runs what, and FIFOs where tiles go from one core to another
//      memory     tiles[i].address: in its memory, shared by tiles that do not live together
//      waits      SET_FLAG, WAIT_FLAG and PIPE_BARRIER between the instructions
//      proof      verifies the result without looking at how it was made
//
// Loops. The list stays flat: LOOP and END instructions enclose a body, which runs as often as the
// bounds of the loop say (pwsp_list_loop). A size or an address in global memory may depend on the index
// of a loop around it. A root may rotate: in iterations of odd number it is pwsp_list_root_step
// bytes further, so that two iterations can be under way. A flag may rotate as well: it takes
// `event` and the one after it in turn.
//
// Mixed lists. On A2/A3 matrix products run on a cube core and all else on vector cores, and tiles
// go between them through FIFOs in global memory. Such a list has two halves, in one order that both
// follow: an instruction is of the core that it names, LOOP and END are of both, and pipes and flags
// are each core's own. TPUSH puts a tile into the next slot of a FIFO once that is free; TPOP takes
// it out again, once it is there. The order of the list is one in which both can run.
//
// Split lists. A block has two vector cores. Where all that the vector half does is row by row, these
// share the rows: the first has those below ceil(rows / 2) of every tile, the second the rest, each in
// its own UB, at the same addresses; `rows` are the valid ones of one tile (split_tile), whatever the
// others have. Columns that are seen as a row are shared by element. Else the first does everything,
// and the second only takes part in filling and freeing slots. Both follow the order of the list.
//
// Preloads. A loop may begin iterations ahead (preload.h). Its body then runs additional turns, and
// each instruction names its phase: the loop itself, or a loop without a body for late iterations.
//
// Index 0 means no tile. A tile may be a view of another one (its root): the same bytes with
// another shape, or a part of them. Only roots have storage. Sizes that depend on a task's place in
// its tensor are extents: linear in a valid size of a parameter, and limited to the allocated size.

#ifndef PWSP_LIST_H
#define PWSP_LIST_H

#include "../base/arena.h"
#include "../isa/core.h"

// How many valid rows or columns: clamp((mul * size + add) >> shift, 0, max), where `size` is the
// valid size of a parameter; of a loop it is the remainder from the index to the loop's end.
// Without a parameter it is max.
typedef struct pwsp_valid {
    uint16_t param;  // tile parameter + 1, or 0: always max
    uint8_t axis;    // 0 rows, 1 columns, of the parameter
    uint8_t shift;
    uint8_t loop;  // 0: none
    int32_t mul, add;
    uint32_t max;
} pwsp_valid;

PWSP_INLINE bool pwsp_valid_is_equal(const pwsp_valid *a, const pwsp_valid *b) {
    if (a->param == 0 || b->param == 0) {
        return a->param == b->param && a->max == b->max;
    }
    return a->param == b->param && a->axis == b->axis && a->shift == b->shift &&
           a->loop == b->loop && a->mul == b->mul && a->add == b->add && a->max == b->max;
}

typedef struct pwsp_list_tile {
    uint8_t dtype;        // ptoisa_dtype
    uint8_t memory;       // ptoisa_memory
    uint8_t layout;       // ptoisa_layout
    uint8_t pad;          // ptoisa_pad
    uint8_t loop;         // of a root: the loop in which it rotates; 0: it does not
    uint8_t places;       // of a root that rotates: how many it has; 0: two
    bool is_late;         // of a view: it is used in a later turn than its root is written in
    uint32_t rows, cols;  // allocated
    uint32_t own_rows;    // rows that each of two cores has room for; 0: all
    pwsp_valid valid_rows, valid_cols;
    uint32_t root;     // the tile whose bytes these are; itself, if it has storage
    uint32_t offset;   // of its first byte in its root's
    uint32_t address;  // of a root in its memory, a multiple of 32; set by memory
    // Of a root: the instructions that use it first and last; set by memory. While the list is
    // being lowered, last is the last operation that needs it.
    uint32_t first, last;
    uint32_t value;  // the value of the kernel it holds, for messages; 0: scratch
} pwsp_list_tile;

#define PWSP_INSN_DST_MAX 2
#define PWSP_INSN_SRC_MAX 4

// The kind of a scalar operand.
typedef struct pwsp_list_scalar {
    uint32_t param;    // scalar parameter + 1, or 0
    uint32_t cols_of;  // the valid columns of this tile, or 0
    double value;      // the constant, if neither
} pwsp_list_scalar;

// Instructions that PTO-ISA does not have: the begin and end of a loop's body.
#define PWSP_INSN_LOOP     PTOISA_OP_COUNT
#define PWSP_INSN_END      (PTOISA_OP_COUNT + 1)
#define PWSP_INSN_TPUSH    (PTOISA_OP_COUNT + 2)
#define PWSP_INSN_TPOP     (PTOISA_OP_COUNT + 3)
#define PWSP_INSN_OP_COUNT (PTOISA_OP_COUNT + 4)

// The core of an instruction: none in lists that are not mixed, and of LOOP and END.
typedef enum pwsp_side { PWSP_SIDE_ANY = 0, PWSP_SIDE_CUBE, PWSP_SIDE_VECTOR } pwsp_side;

// A FIFO of a mixed list: the mode of TPUSH and TPOP. A slot has the valid elements of a tile, row
// after row, with the tile's largest number of valid columns as pitch.
#define PWSP_FIFO_TO_VECTOR 0
#define PWSP_FIFO_TO_CUBE   1
#define PWSP_FIFO_COUNT     2
#define PWSP_FIFO_SLOTS     2  // of a list that does not preload
#define PWSP_FIFO_SLOTS_MAX 32
#define PWSP_FIFO_SLOT_MAX  (192u << 10)  // bytes, in the memory that a device has for each block

typedef struct pwsp_list_fifo {
    uint32_t slot_bytes;  // 0: no such FIFO
    uint8_t slots;
    uint8_t flag;  // the first of its two flags between the cores
} pwsp_list_fifo;

typedef struct pwsp_insn {
    uint8_t op;                         // ptoisa_op, or PWSP_INSN_LOOP, PWSP_INSN_END
    uint8_t variant;                    // which form of it: pwsp_variant
    uint8_t mode;                       // ptoisa_round, ptoisa_compare or ptoisa_pattern
    uint8_t src_pipe, dst_pipe, event;  // of flags; a barrier is for src_pipe (or PTOISA_PIPE_ALL)
    bool is_dst_read;                   // dst[0] is read as well
    bool is_implied;                    // PTO-WSP does it uncounted: no cycles in the unit model
    uint8_t loop;  // LOOP, END: which; of a flag: the loop with which its event rotates
    uint8_t side;  // pwsp_side
    // TMATMUL_ACC: in the first iteration of this loop, which runs at least once, it is a TMATMUL.
    uint8_t begins;
    uint8_t row_loop, col_loop;  // TLOAD, TSTORE: whose index is added to row and col; 0: none
    uint8_t phase;               // in a loop that preloads: the loop, or its late loop; else 0
    uint16_t param;  // TLOAD, TSTORE, MGATHER, MSCATTER: the tile parameter in global memory + 1
    // Written, and read. tmp is scratch: written, and of no meaning afterwards.
    uint32_t dst[PWSP_INSN_DST_MAX], src[PWSP_INSN_SRC_MAX], tmp;
    uint32_t row, col;  // TEXTRACT, TINSERT, TSUBVIEW; block length of TMRGSORT; offsets of TLOAD
    pwsp_list_scalar scalar;
    uint32_t value;  // the operation of the kernel it comes from, for messages; 0: none
} pwsp_insn;

typedef enum pwsp_variant {
    PWSP_VARIANT_PLAIN = 0,
    PWSP_VARIANT_RELU,   // TSTORE through ReluPreMode
    PWSP_VARIANT_ADD,    // TSTORE, atomic add
    PWSP_VARIANT_QUANT,  // TSTORE with a scale
    PWSP_VARIANT_QUANT_RELU,
    PWSP_VARIANT_DESCENDING,  // TCI
    PWSP_VARIANT_UPPER,       // TTRI
    PWSP_VARIANT_SATURATE,    // TCVT
    PWSP_VARIANT_ASYMMETRIC,  // TQUANT
    PWSP_VARIANT_INPLACE,     // TFILLPAD
    PWSP_VARIANT_EXPAND,      // TFILLPAD
    PWSP_VARIANT_LISTS,       // TMRGSORT of separate lists
    PWSP_VARIANT_BINARY       // TCOLSUM as a tree
} pwsp_variant;

// A bound of a loop.
typedef enum pwsp_bound_kind {
    PWSP_BOUND_CONST = 0,
    PWSP_BOUND_SCALAR,  // a scalar parameter, i64 or u64
    PWSP_BOUND_SIZE     // the valid rows or columns of a tile parameter
} pwsp_bound_kind;

typedef struct pwsp_list_bound {
    uint8_t kind;    // pwsp_bound_kind
    uint8_t axis;    // of SIZE: 0 rows, 1 columns
    uint16_t param;  // of SCALAR, SIZE, from 0
    int64_t value;   // of CONST
} pwsp_list_bound;

// for (index = begin; index < end; index += step).
typedef struct pwsp_list_loop {
    pwsp_list_bound begin, end;
    int64_t step;
    uint32_t parent;   // the loop around it; 0: none. Its number is lower
    uint32_t preload;  // iterations that it begins ahead (preload.h)
    uint32_t late_of;  // of a number for late iterations: their loop; else 0
} pwsp_list_loop;

// What passes need while they run comes from the arena as well, so it dies with the list.
typedef struct pwsp_list {
    pwsp_arena arena;                           // of all that is in pointers here
    pwsp_list_loop loops[PTOWSP_LOOP_MAX + 1];  // from 1
    uint32_t loop_count;                        // without number 0
    bool is_mixed;
    uint32_t split_tile;  // both vector cores have rows, each half of this tile's; 0: they have not
    pwsp_list_fifo fifos[PWSP_FIFO_COUNT];
    pwsp_insn *insns;
    uint64_t insn_count, insn_capacity;
    pwsp_list_tile *tiles;               // from 1
    uint64_t tile_count, tile_capacity;  // the count includes tile 0, once there is any
    uint32_t
        used[PTOISA_MEMORY_COUNT];  // bytes of each memory, the most at any time; set by memory
} pwsp_list;

// Why a pass refused. Text is one line: what, which tile or instruction, how much, where.
typedef struct pwsp_list_fault {
    ptowsp_status status;
    uint32_t insn;
    char text[384];
} pwsp_list_fault;

PWSP_INTERNAL void pwsp_list_init(pwsp_list *list, pwsp_memory memory);
PWSP_INTERNAL void pwsp_list_free(pwsp_list *list);

// Empties a list, and keeps the blocks of its arena.
PWSP_INTERNAL void pwsp_list_reset(pwsp_list *list);

// Makes sure that there is a tile 0, which stands for none; false when memory is out.
PWSP_INTERNAL bool pwsp_list_begin(pwsp_list *list);

// Empties a list of its instructions and makes room for so many, and some more; false when memory is
// out. Those that it had stay where they are.
PWSP_INTERNAL bool pwsp_list_renew(pwsp_list *list, uint64_t insn_count);

// Appends a copy of an instruction, which is not this list's; NULL when memory is out.
PWSP_INTERNAL pwsp_insn *pwsp_list_append(pwsp_list *list, const pwsp_insn *insn);

// Appends a zeroed instruction or tile; NULL (or 0) when memory is out.
PWSP_INTERNAL pwsp_insn *pwsp_list_add(pwsp_list *list, ptoisa_op op);
PWSP_INTERNAL uint32_t pwsp_list_add_tile(pwsp_list *list);

// Records a fault and returns false.
PWSP_INTERNAL bool pwsp_list_fail(pwsp_list_fault *fault, ptowsp_status status, uint32_t insn,
                                  const char *format, ...) PWSP_PRINTF(4, 5);

// Bytes of a tile, all of its allocation on a core.
PWSP_INLINE uint64_t pwsp_list_tile_bytes(const pwsp_list_tile *tile) {
    uint64_t own = tile->own_rows;  // of a column viewed as a row: elements
    uint64_t elements =
        own ? (tile->rows == 1 ? own : own * tile->cols) : (uint64_t)tile->rows * tile->cols;
    return elements * ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
}

// How many places a root has, how far apart they are, and the bytes that it takes of its memory.
PWSP_INLINE uint32_t pwsp_list_root_places(const pwsp_list_tile *root) {
    return root->loop == 0 ? 1 : root->places ? root->places : 2;
}

PWSP_INLINE uint64_t pwsp_list_root_step(const pwsp_list_tile *root) {
    return (pwsp_list_tile_bytes(root) + 31) / 32 * 32;
}

PWSP_INLINE uint64_t pwsp_list_root_bytes(const pwsp_list_tile *root) {
    return root->loop ? pwsp_list_root_places(root) * pwsp_list_root_step(root)
                      : pwsp_list_tile_bytes(root);
}

// The place that a tile of a rotating root has in a turn of the loop.
PWSP_INLINE uint32_t pwsp_list_place_at(const pwsp_list_tile *tile, const pwsp_list_tile *root,
                                        uint64_t turn) {
    return (uint32_t)((turn + tile->is_late) % pwsp_list_root_places(root));
}

// The turns of a loop with so many iterations. Late instructions need a preload more.
PWSP_INLINE uint64_t pwsp_loop_turns(const pwsp_list_loop *loop, uint64_t count) {
    return count ? count + loop->preload : 0;
}

// Does a loop run at least once in every task? Parameters have at least one row and column.
PWSP_INLINE bool pwsp_loop_runs(const pwsp_list_loop *loop) {
    return loop->begin.kind == PWSP_BOUND_CONST &&
           (loop->end.kind == PWSP_BOUND_SIZE
                ? loop->begin.value == 0
                : loop->end.kind == PWSP_BOUND_CONST && loop->begin.value < loop->end.value);
}

// Is a loop equal to another one, or inside it? Everything is inside 0, which means no loop.
PWSP_INTERNAL bool pwsp_loop_is_within(const pwsp_list_loop *loops, uint32_t loop, uint32_t of);

// Is an instruction LOOP or END?
PWSP_INLINE bool pwsp_insn_is_mark(const pwsp_insn *insn) {
    return insn->op == PWSP_INSN_LOOP || insn->op == PWSP_INSN_END;
}

// Is it a flag or a barrier, which has no operands?
PWSP_INLINE bool pwsp_insn_is_sync(const pwsp_insn *insn) {
    return insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG ||
           insn->op == PTOISA_PIPE_BARRIER;
}

PWSP_INLINE bool pwsp_insn_is_fifo(const pwsp_insn *insn) {
    return insn->op == PWSP_INSN_TPUSH || insn->op == PWSP_INSN_TPOP;
}

// An instruction's tiles: those that it reads, then those that it writes, its scratch last. There is
// room for one more.
#define PWSP_INSN_TILE_MAX (PWSP_INSN_SRC_MAX + 1 + PWSP_INSN_DST_MAX + 1 + 1)

typedef struct pwsp_insn_tiles {
    uint32_t at[PWSP_INSN_TILE_MAX];
    uint32_t read_count, count;
} pwsp_insn_tiles;

PTOWSP_STATIC_ASSERT(PWSP_INSN_SRC_MAX == 4 && PWSP_INSN_DST_MAX == 2, "find_tiles has them all");

PWSP_INLINE void pwsp_insn_find_tiles(const pwsp_insn *insn, pwsp_insn_tiles *out) {
    uint32_t count = 0, again = insn->is_dst_read ? insn->dst[0] : 0;
#define PWSP_INSN_TILE(tile) (out->at[count] = (tile), count += (tile) != 0)
    PWSP_INSN_TILE(insn->src[0]);
    PWSP_INSN_TILE(insn->src[1]);
    PWSP_INSN_TILE(insn->src[2]);
    PWSP_INSN_TILE(insn->src[3]);
    PWSP_INSN_TILE(again);
    out->read_count = count;
    PWSP_INSN_TILE(insn->dst[0]);
    PWSP_INSN_TILE(insn->dst[1]);
    PWSP_INSN_TILE(insn->tmp);
#undef PWSP_INSN_TILE
    out->count = count;
}

PWSP_INLINE const char *pwsp_insn_name(const pwsp_insn *insn) {
    return insn->op == PWSP_INSN_LOOP    ? "LOOP"
           : insn->op == PWSP_INSN_END   ? "END"
           : insn->op == PWSP_INSN_TPUSH ? "TPUSH"
           : insn->op == PWSP_INSN_TPOP  ? "TPOP"
                                         : ptoisa_op_name((ptoisa_op)insn->op);
}

// The most rows that two vector cores share; 0: they share none.
PWSP_INLINE uint32_t pwsp_list_split_rows(const pwsp_list *list) {
    return list->split_tile ? list->tiles[list->split_tile].valid_rows.max : 0;
}

// The bytes of a slot that a tile needs: its rows, and where vector cores share them as many for
// the second one as the first has at most, which PTO-ISA takes for half of the tile.
PWSP_INLINE uint64_t pwsp_list_slot_bytes(const pwsp_list_tile *tile, uint32_t split_rows) {
    uint64_t rows = tile->valid_rows.max, first = ((uint64_t)split_rows + 1) / 2;
    if (split_rows && rows > 1) {
        first = first < rows - 1 ? first : rows - 1;
        rows = rows > 2 * first ? rows : 2 * first;
    }
    return rows * tile->valid_cols.max * ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
}

// Where a tile begins in its memory, once memory has been planned.
PWSP_INLINE uint32_t pwsp_list_tile_address(const pwsp_list *list, uint32_t tile) {
    return list->tiles[list->tiles[tile].root].address + list->tiles[tile].offset;
}

// The pipe that runs an instruction.
PWSP_INTERNAL ptoisa_pipe pwsp_insn_pipe(const pwsp_list *list, const pwsp_insn *insn);

#endif
