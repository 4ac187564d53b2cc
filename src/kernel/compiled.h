// A finished tile kernel: its list of instructions, the conditions on a task, and its execution.
//
// Code is immutable and one block of memory. A module and the programs compiled from it share it;
// references are counted.

#ifndef PWSP_COMPILED_H
#define PWSP_COMPILED_H

#include "../data/cost_model.h"
#include "../data/demand.h"
#include "body.h"

#include "../isa/fifo.h"

// Two sizes that a task must have alike; where only b depends on the task, b is to be at least a.
typedef struct pwsp_tile_check {
    pwsp_valid a, b;
    uint8_t kind;  // the operation's
    uint8_t axis;  // 0 rows, 1 columns, for messages
} pwsp_tile_check;

// A loop of finished code.
typedef struct pwsp_code_loop {
    pwsp_list_loop of;
    uint32_t first, last;        // its instructions LOOP and END; of a late one 0
    uint32_t insn_count;         // executed by each turn, without inner loops
    uint32_t tiles, tile_count;  // what changes with its index: where in loop_tiles, how many
} pwsp_code_loop;

typedef struct pwsp_tile_code {
    uint32_t reference_count;  // atomic
    char name[PTOWSP_NAME_MAX + 1];
    pwsp_memory memory;
    size_t size;
    const pwsp_insn *insns;
    const pwsp_list_tile *tiles;
    const pwsp_tile_check *checks;
    const pwsp_code_loop *loops;  // from 1
    const uint32_t *loop_tiles;
    uint32_t insn_count, tile_count, check_count, loop_count;
    uint32_t param_count, scalar_count;
    uint8_t param_dtypes[PTOWSP_TASK_TILE_MAX];
    uint32_t param_rows[PTOWSP_TASK_TILE_MAX], param_cols[PTOWSP_TASK_TILE_MAX];
    uint8_t scalar_dtypes[PTOWSP_TASK_SCALAR_MAX];
    uint32_t used[PTOISA_MEMORY_COUNT];
    ptoisa_machine machine;
    bool is_cube;         // it has matrix products
    bool is_mixed;        // it has a cube and a vector half
    uint32_t split_tile;  // both vector cores have rows of it: list.h
    pwsp_list_fifo fifos[PWSP_FIFO_COUNT];
} pwsp_tile_code;

// Makes code of a body: passes, lowering, memory, waits. With assertions the result is proved, and always if
// it is mixed, as then the proof decides how it is cut. NULL with a fault.
PWSP_INTERNAL pwsp_tile_code *pwsp_tile_code_create(ptowsp_body *body, pwsp_list_fault *fault);

// Proves code, as pwsp_list_verify does. False with a fault.
PWSP_INTERNAL bool pwsp_tile_code_prove(const pwsp_tile_code *code, pwsp_list_fault *fault);

PWSP_INTERNAL const pwsp_tile_code *pwsp_tile_code_retain(const pwsp_tile_code *code);

// NULL is ignored.
PWSP_INTERNAL void pwsp_tile_code_release(const pwsp_tile_code *code);

// Bytes; 0 for NULL.
PWSP_INTERNAL size_t pwsp_tile_code_size(const pwsp_tile_code *code);

// A hash of what code does on which machine, the same everywhere: not of its name.
PWSP_INTERNAL uint64_t pwsp_tile_code_hash(const pwsp_tile_code *code);

// -- running --------------------------------------------------------------------------------------

// The most cycles that a user's model may say of one instruction: with all of them a kernel stays
// below PTOWSP_CYCLES_MAX.
#define PWSP_INSN_CYCLES_MAX (PTOWSP_CYCLES_MAX >> 20)

// The state that runs code: a core, its memories, and the tiles of the kernel as this task sees
// them. Each running thread has one; it fits all kernels that it was reserved for.
typedef struct pwsp_core_fifo {
    ptoisa_fifo of;
    uint8_t *slots;
    uint32_t size;  // bytes of all slots
} pwsp_core_fifo;

// The vector cores of a mixed kernel, whose core is the cube core. The first vector core's tiles
// are among the cube core's. The second one has only tiles in UB, if the two share rows.
typedef struct pwsp_tile_block {
    ptoisa_core vectors[2];
    uint32_t turn;       // which of the two executes
    uint32_t cut;        // the first has the rows below
    ptoisa_tile *tiles;  // of the second, by the same numbers
    uint64_t tile_capacity;
    uint8_t *ub;  // of the second, as allocated
    uint32_t ub_size;
    pwsp_core_fifo fifos[PWSP_FIFO_COUNT];
} pwsp_tile_block;

typedef struct pwsp_tile_core {
    pwsp_memory memory;
    ptoisa_core core;
    pwsp_tile_block *block;  // once there are mixed kernels
    ptoisa_tile *tiles;
    uint64_t tile_capacity;
    uint8_t *blocks[PTOISA_MEMORY_COUNT];       // as allocated
    uint32_t block_size[PTOISA_MEMORY_COUNT];   // bytes
    const ptowsp_cost *cost;                    // the user's, for PTOWSP_MODEL_USER
    ptoisa_timing timing;                       // the user's
    ptoisa_traffic *traffic;                    // is counted there; NULL: it is not
    uint64_t read_bytes[PTOWSP_TASK_TILE_MAX];  // of traffic: by tile parameter
    ptowsp_cycles *spent;  // [insn_count] gets the cycles of each instruction; NULL: it does not
    const char *asked;     // the instruction asked for, if the core runs another: TPUSH, TPOP
    uint64_t excess;       // what that model said of an instruction, if too much; else 0
    int64_t index[PTOWSP_LOOP_MAX + 1];  // of the loops that run
    int64_t end[PTOWSP_LOOP_MAX + 1];
    uint64_t iteration[PTOWSP_LOOP_MAX + 1];
    uint32_t idle;   // phases without an iteration in this turn, as bits; never bit 0
    char text[256];  // why the last task was refused
} pwsp_tile_core;

// Makes room for a kernel, or only for its tiles, without memories (to count); false when memory is
// out.
PWSP_INTERNAL bool pwsp_tile_core_reserve(pwsp_tile_core *core, const pwsp_tile_code *code);
PWSP_INTERNAL bool pwsp_tile_core_reserve_tiles(pwsp_tile_core *core, const pwsp_tile_code *code);

// Do the task's valid sizes go together? False with core->text.
PWSP_INTERNAL bool pwsp_tile_core_check(pwsp_tile_core *core, const pwsp_tile_code *code,
                                        const ptowsp_task *task);

// Runs a task, or only counts it; its cycles in *out_cycles. False with core->text if the task's
// valid sizes do not go together, or the user's model says too much.
PWSP_INTERNAL bool pwsp_tile_core_run(pwsp_tile_core *core, const pwsp_tile_code *code,
                                      const ptowsp_task *task, bool is_dry,
                                      ptowsp_cycles *out_cycles);

// Measures the traffic of a task that takes so many cycles. False with core->text, as above.
PWSP_INTERNAL bool pwsp_tile_core_demand(pwsp_tile_core *core, const pwsp_tile_code *code,
                                         const ptowsp_task *task, pwsp_demand *out_demand);

// Counts a task with full tiles. *out_stats gets all but the number of instructions. False if the
// user's model says too much, or loops execute too many instructions.
PWSP_INTERNAL bool pwsp_tile_code_measure(const pwsp_tile_code *code, const ptowsp_cost *cost,
                                          pwsp_tile_core *core, ptowsp_kernel_stats *out_stats);

// Checks the operands of every instruction with full tiles, as the device would, on one core that has
// room for tiles alone. *out_insn is the one that on_fault is called for.
PWSP_INTERNAL void pwsp_tile_core_check_all(pwsp_tile_core *core, const pwsp_tile_code *code,
                                            ptoisa_fault_fn on_fault, void *user,
                                            uint32_t *out_insn);

// One instruction with full tiles, and its cycles in the unit model.
PWSP_INTERNAL ptowsp_insn pwsp_tile_code_insn(const pwsp_tile_code *code, uint32_t i,
                                              ptowsp_cycles *out_unit_cycles);

// How often a loop runs in a task; NULL is a task with full tiles, where each scalar bound is one
// step more than its other bound.
PWSP_INTERNAL uint64_t pwsp_tile_code_iterations(const pwsp_tile_code *code, uint32_t loop,
                                                 const ptowsp_task *task, int64_t *out_begin);

// Fills in what readers of a program ask of code, in tables of the arena. False when memory is out.
PWSP_INTERNAL bool pwsp_tile_code_read(const pwsp_tile_code *code, pwsp_arena *arena,
                                       ptowsp_kernel_info *info);

// Writes a body and the code made of it as text, with core->spent and all `cycles` of a core that has
// measured it; NULL: with the cycles of the unit model, each instruction once.
PWSP_INTERNAL void pwsp_body_print(const ptowsp_body *body, const pwsp_tile_code *code,
                                   const pwsp_tile_core *core, ptowsp_cycles cycles,
                                   ptowsp_output text);

// Executes one instruction on the core; its tiles are in core->tiles. Global memory belongs to
// task, which may be NULL on a dry core.
PWSP_INTERNAL void pwsp_tile_core_insn(pwsp_tile_core *core, const pwsp_tile_code *code,
                                       const pwsp_insn *insn, const ptowsp_task *task);

#endif
