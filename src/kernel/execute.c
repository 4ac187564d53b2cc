// Running tile kernels: PTO-ISA's functions execute the list of instructions on this CPU.
//
// The cores of a mixed kernel take turns: each instruction is executed by its core, one of the vector
// half by the first vector core and then by the second. Each has clocks, flags and a UB of its own. Of a
// list that is split each has its part of the rows of every tile; of others the second vector core only
// fills and frees slots.
//
// A task sets every tile's valid sizes from its own, then the instructions run in the list's order,
// which is one of the orders that the waits allow. Their functions charge the core, so running and
// counting give the same cycles: counting is running on a dry core.

#include "forms.h"
#include "tile_core.h"

#include "description.h"

#include "../isa/compare.h"
#include "../isa/convert.h"
#include "../isa/elementwise.h"
#include "../isa/broadcast.h"
#include "../isa/gather.h"
#include "../isa/matmul.h"
#include "../isa/move.h"
#include "../isa/reduce.h"
#include "../isa/sort.h"

#include <inttypes.h>
#include <stdio.h>
// -- instructions ---------------------------------------------------------------------------------

// The core that executes an instruction, and its tiles.
static ptoisa_core *pwsp_core_of(pwsp_tile_core *core, const pwsp_insn *insn) {
    return insn->side == PWSP_SIDE_VECTOR ? &core->block->vectors[core->block->turn] : &core->core;
}

static bool pwsp_core_is_second(const pwsp_tile_core *core, const pwsp_insn *insn) {
    return insn->side == PWSP_SIDE_VECTOR && core->block->turn == 1;
}

static const ptoisa_tile *pwsp_core_tiles(const pwsp_tile_core *core, const pwsp_insn *insn) {
    return pwsp_core_is_second(core, insn) ? core->block->tiles : core->tiles;
}

// The number that a scalar operand is.
static double pwsp_insn_scalar(const pwsp_tile_core *core, const pwsp_tile_code *code,
                               const pwsp_insn *insn, const ptowsp_task *task) {
    const pwsp_list_scalar *scalar = &insn->scalar;
    if (scalar->cols_of) {
        return core->tiles[scalar->cols_of].valid_cols;
    }
    if (!scalar->param) {
        return scalar->value;
    }
    uint64_t bits = task ? ptowsp_task_scalar(task, scalar->param - 1) : 0;
    switch (code->scalar_dtypes[scalar->param - 1]) {
    case PTOWSP_F32: return ptoisa_f32_from_bits((uint32_t)bits);
    case PTOWSP_F64: {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    case PTOWSP_I64: return (double)(int64_t)bits;
    default: return (double)bits;
    }
}

// Where the part of a parameter that an instruction moves begins.
static int64_t pwsp_insn_row(const pwsp_tile_core *core, const pwsp_insn *insn) {
    uint32_t above = pwsp_core_is_second(core, insn) ? core->block->cut : 0;
    return insn->row + (insn->row_loop ? core->index[insn->row_loop] : 0) + above;
}

static int64_t pwsp_insn_col(const pwsp_tile_core *core, const pwsp_insn *insn) {
    return insn->col + (insn->col_loop ? core->index[insn->col_loop] : 0);
}

// The part of a parameter that a load or store moves: the valid elements of a tile.
static ptoisa_global pwsp_insn_global(const pwsp_tile_core *core, const pwsp_tile_code *code,
                                      const pwsp_insn *insn, const ptowsp_task *task,
                                      const ptoisa_tile *tile) {
    uint32_t param = insn->param - 1u;
    ptoisa_dtype dtype = (ptoisa_dtype)code->param_dtypes[param];
    ptoisa_global global = ptoisa_global_make(NULL, dtype, tile->valid_rows, tile->valid_cols,
                                              code->param_cols[param], 1);
    if (task) {
        const ptowsp_tile *at = &task->tiles[param];
        int64_t row = pwsp_insn_row(core, insn), col = pwsp_insn_col(core, insn);
        int64_t offset = row * at->row_stride + col * at->col_stride;
        global.stride[3] = at->row_stride;
        global.stride[4] = at->col_stride;
        if (at->data) {
            global.data = (char *)at->data + offset * (int64_t)ptoisa_dtype_size(dtype);
        }
    }
    return global;
}

// The valid rows and columns of the parameter from the instruction's (row, col) on.
static ptoisa_tile pwsp_insn_rest(const pwsp_tile_core *core, const pwsp_tile_code *code,
                                  const pwsp_insn *insn, const ptowsp_task *task) {
    ptoisa_tile rest;
    memset(&rest, 0, sizeof rest);
    uint32_t param = insn->param - 1u;
    int64_t rows = task ? ptowsp_task_rows(task, param) : code->param_rows[param];
    int64_t cols = task ? ptowsp_task_cols(task, param) : code->param_cols[param];
    rows = pwsp_core_left(core, insn->row_loop, rows) - insn->row;
    cols = pwsp_core_left(core, insn->col_loop, cols) - insn->col;
    rest.valid_rows = rows > 0 ? (uint32_t)rows : 0;
    rest.valid_cols = cols > 0 ? (uint32_t)cols : 0;
    if (code->split_tile && insn->side == PWSP_SIDE_VECTOR) {
        rest.valid_rows = pwsp_block_part(core->block, rest.valid_rows, core->block->turn);
    }
    return rest;
}

// The tile, with its valid sizes limited to the parameter's: a tile that does not depend on the
// task may be larger than the task's loads and stores.
static ptoisa_tile pwsp_insn_clip(const pwsp_tile_core *core, const pwsp_tile_code *code,
                                  const pwsp_insn *insn, const ptowsp_task *task,
                                  ptoisa_tile tile) {
    ptoisa_tile rest = pwsp_insn_rest(core, code, insn, task);
    tile.valid_rows = tile.valid_rows < rest.valid_rows ? tile.valid_rows : rest.valid_rows;
    tile.valid_cols = tile.valid_cols < rest.valid_cols ? tile.valid_cols : rest.valid_cols;
    return tile;
}

static void pwsp_insn_load(pwsp_tile_core *core, const pwsp_tile_code *code, const pwsp_insn *insn,
                           const ptowsp_task *task, const ptoisa_tile *d) {
    ptoisa_tile dst = pwsp_insn_clip(core, code, insn, task, *d);
    ptoisa_global global = pwsp_insn_global(core, code, insn, task, &dst);
    const uint64_t before = core->traffic ? core->traffic->bytes : 0;
    ptoisa_tload(pwsp_core_of(core, insn), &dst, &global);
    if (core->traffic) {
        core->read_bytes[insn->param - 1u] += core->traffic->bytes - before;
    }
}

// MGATHER and MSCATTER: whole rows between a tile and a parameter.
static void pwsp_insn_table(pwsp_tile_core *core, const pwsp_tile_code *code, const pwsp_insn *insn,
                            const ptowsp_task *task, const ptoisa_tile *tile,
                            const ptoisa_tile *index) {
    ptoisa_tile rest = pwsp_insn_rest(core, code, insn, task), rows = *tile;
    ptoisa_global table = pwsp_insn_global(core, code, insn, task, &rest);
    rows.valid_cols = rows.valid_cols < rest.valid_cols ? rows.valid_cols : rest.valid_cols;
    if (insn->op == PTOISA_MGATHER) {
        ptoisa_mgather(pwsp_core_of(core, insn), &rows, &table, index);
    } else {
        ptoisa_mscatter(pwsp_core_of(core, insn), &table, &rows, index);
    }
}

static void pwsp_insn_store(pwsp_tile_core *core, const pwsp_tile_code *code, const pwsp_insn *insn,
                            const ptowsp_task *task, const ptoisa_tile *s) {
    ptoisa_tile src = pwsp_insn_clip(core, code, insn, task, *s);
    ptoisa_global global = pwsp_insn_global(core, code, insn, task, &src);
    ptoisa_core *on = pwsp_core_of(core, insn);
    switch ((pwsp_variant)insn->variant) {
    case PWSP_VARIANT_ADD: ptoisa_tstore_add(on, &global, &src); break;
    case PWSP_VARIANT_RELU: ptoisa_tstore_relu(on, &global, &src); break;
    default: ptoisa_tstore(on, &global, &src); break;
    }
}

static void pwsp_insn_merge(ptoisa_core *core, const pwsp_insn *insn, const ptoisa_tile *d,
                            const ptoisa_tile *const *s, const ptoisa_tile *tmp) {
    if (insn->variant != PWSP_VARIANT_LISTS) {
        ptoisa_tmrgsort(core, d, s[0], insn->col);
        return;
    }
    uint16_t executed[4];
    uint32_t count = 0;
    while (count < PWSP_INSN_SRC_MAX && insn->src[count]) {
        count++;
    }
    ptoisa_tmrgsort_lists(core, d, tmp, s, count, executed, false);
}

// TPUSH and TPOP: a store to a slot that is free, a load from one that is filled. The order of a
// list guarantees that. In a split list each vector core moves its own rows, the second core's
// after the first's; otherwise the second core moves nothing.
static void pwsp_core_fifo_insn(pwsp_tile_core *tile_core, const pwsp_tile_code *code,
                                const pwsp_insn *insn) {
    bool is_push = insn->op == PWSP_INSN_TPUSH, is_second = pwsp_core_is_second(tile_core, insn);
    uint32_t of = is_push ? insn->src[0] : insn->dst[0], sub = is_second ? 1 : 0;
    ptoisa_fifo *fifo = &tile_core->block->fifos[insn->mode].of;
    ptoisa_core *core = pwsp_core_of(tile_core, insn);
    ptoisa_split split = code->split_tile ? PTOISA_UP_DOWN : PTOISA_NO_SPLIT;
    bool is_idle = is_second && !code->split_tile;
    ptoisa_tile tile;
    memset(&tile, 0, sizeof tile);
    if (!is_idle) {
        tile = pwsp_core_tiles(tile_core, insn)[of];
    }
    // What says where the part begins: as many rows as are above it.
    uint32_t rows = is_second && tile.valid_rows > 0 ? tile_core->block->cut : tile.valid_rows;
    ptoisa_global slot = ptoisa_global_make(NULL, (ptoisa_dtype)code->tiles[of].dtype, rows,
                                            tile.valid_cols, code->tiles[of].valid_cols.max, 1);
    bool is_there = is_push ? ptoisa_fifo_alloc(core, fifo, sub, split, &slot)
                            : ptoisa_fifo_acquire(core, fifo, sub, split, &slot);
    if (PWSP_NEVER(!is_there)) {  // the proof has counted slots
        return;
    }
    slot.shape[3] = tile.valid_rows;
    tile_core->asked = pwsp_insn_name(insn);
    if (is_push) {
        if (!is_idle) {
            ptoisa_tstore(core, &slot, &tile);
        }
        ptoisa_fifo_commit(core, fifo, sub);
    } else {
        if (!is_idle) {
            ptoisa_tload(core, &tile, &slot);
        }
        ptoisa_fifo_release(core, fifo, sub);
    }
    tile_core->asked = NULL;
}

// Flags and barriers, which are half of a list and have no tiles to be found. False: another one.
static bool pwsp_core_sync_insn(const pwsp_tile_core *tile_core, ptoisa_core *core,
                                const pwsp_insn *insn) {
    const ptoisa_pipe src = (ptoisa_pipe)insn->src_pipe, dst = (ptoisa_pipe)insn->dst_pipe;
    const uint32_t event = insn->event + (uint32_t)(tile_core->iteration[insn->loop] & 1);
    switch (insn->op) {
    case PTOISA_SET_FLAG: ptoisa_set_flag(core, src, dst, event); return true;
    case PTOISA_WAIT_FLAG: ptoisa_wait_flag(core, src, dst, event); return true;
    case PTOISA_PIPE_BARRIER: ptoisa_pipe_barrier(core, src); return true;
    default: return false;
    }
}

// One core executes an instruction. A switch over all of them, and longer than others for it.
static void pwsp_tile_core_insn_on(pwsp_tile_core *tile_core, const pwsp_tile_code *code,
                                   const pwsp_insn *insn, const ptowsp_task *task) {
    if (pwsp_insn_is_fifo(insn)) {
        pwsp_core_fifo_insn(tile_core, code, insn);
        return;
    }
    ptoisa_core *core = pwsp_core_of(tile_core, insn);
    if (pwsp_core_sync_insn(tile_core, core, insn)) {
        return;
    }
    const ptoisa_tile *tiles = pwsp_core_tiles(tile_core, insn);
    const ptoisa_tile *d = &tiles[insn->dst[0]], *d1 = &tiles[insn->dst[1]];
    const ptoisa_tile *s[PWSP_INSN_SRC_MAX];
    for (int i = 0; i < PWSP_INSN_SRC_MAX; i++) {
        s[i] = &tiles[insn->src[i]];
    }
    const ptoisa_tile *tmp = insn->tmp ? &tiles[insn->tmp] : NULL;
    double x = pwsp_insn_scalar(tile_core, code, insn, task);
    // clang-format off
#define PWSP_CASE_UNARY(name, function)      case PTOISA_##name: ptoisa_##function(core, d, s[0]); break;
#define PWSP_CASE_BINARY(name, function)     case PTOISA_##name: ptoisa_##function(core, d, s[0], s[1]); break;
#define PWSP_CASE_TERNARY(name, function)    case PTOISA_##name: ptoisa_##function(core, d, s[0], s[1], s[2]); break;
#define PWSP_CASE_SCALAR(name, function)     case PTOISA_##name: ptoisa_##function(core, d, s[0], x); break;
#define PWSP_CASE_TMP(name, function)        case PTOISA_##name: ptoisa_##function(core, d, s[0], tmp); break;
#define PWSP_CASE_BINARY_TMP(name, function) case PTOISA_##name: ptoisa_##function(core, d, s[0], s[1], tmp); break;
    // clang-format on
    switch ((ptoisa_op)insn->op) {
        PWSP_INSNS_UNARY(PWSP_CASE_UNARY)
        PWSP_INSNS_BINARY(PWSP_CASE_BINARY)
        PWSP_INSNS_UPDATE(PWSP_CASE_BINARY)
        PWSP_INSNS_TERNARY(PWSP_CASE_TERNARY)
        PWSP_INSNS_SCALAR(PWSP_CASE_SCALAR)
        PWSP_INSNS_TMP(PWSP_CASE_TMP)
        PWSP_INSNS_BINARY_TMP(PWSP_CASE_BINARY_TMP)
    case PTOISA_TLOAD: pwsp_insn_load(tile_core, code, insn, task, d); break;
    case PTOISA_TSTORE: pwsp_insn_store(tile_core, code, insn, task, s[0]); break;
    case PTOISA_MGATHER: pwsp_insn_table(tile_core, code, insn, task, d, s[0]); break;
    case PTOISA_MSCATTER: pwsp_insn_table(tile_core, code, insn, task, s[0], s[1]); break;
    case PTOISA_TEXTRACT: ptoisa_textract(core, d, s[0], insn->row, insn->col); break;
    case PTOISA_TINSERT: ptoisa_tinsert(core, d, s[0], insn->row, insn->col); break;
    case PTOISA_TCVT:
        ptoisa_tcvt(core, d, s[0], (ptoisa_round)insn->mode,
                    insn->variant == PWSP_VARIANT_SATURATE);
        break;
    case PTOISA_TEXPANDS: ptoisa_texpands(core, d, x); break;
    case PTOISA_TFILLPAD:
        if (insn->variant == PWSP_VARIANT_EXPAND) {
            ptoisa_tfillpad_expand(core, d, s[0]);
        } else {
            ptoisa_tfillpad(core, d, s[0]);
        }
        break;
    case PTOISA_TCI: ptoisa_tci(core, d, x, insn->variant == PWSP_VARIANT_DESCENDING); break;
    case PTOISA_TTRI:
        ptoisa_ttri(core, d, insn->variant == PWSP_VARIANT_UPPER, (int32_t)insn->col);
        break;
    case PTOISA_TINTERLEAVE: ptoisa_tinterleave(core, d, d1, s[0], s[1]); break;
    case PTOISA_TDEINTERLEAVE: ptoisa_tdeinterleave(core, d, d1, s[0], s[1]); break;
    case PTOISA_TSDIV: ptoisa_tsdiv(core, d, x, s[0]); break;
    case PTOISA_TAXPY: ptoisa_taxpy(core, d, s[0], x); break;
    case PTOISA_TXORS: ptoisa_txors(core, d, s[0], x, tmp); break;
    case PTOISA_TADDSC: ptoisa_taddsc(core, d, s[0], x, s[1]); break;
    case PTOISA_TSUBSC: ptoisa_tsubsc(core, d, s[0], x, s[1]); break;
    case PTOISA_TCOLSUM: ptoisa_tcolsum(core, d, s[0], tmp, tmp != NULL); break;
    case PTOISA_TCMP: ptoisa_tcmp(core, d, s[0], s[1], (ptoisa_compare)insn->mode); break;
    case PTOISA_TCMPS: ptoisa_tcmps(core, d, s[0], x, (ptoisa_compare)insn->mode); break;
    case PTOISA_TSEL: ptoisa_tsel(core, d, s[0], s[1], s[2], tmp); break;
    case PTOISA_TSELS: ptoisa_tsels(core, d, s[0], s[1], tmp, x); break;
    case PTOISA_TMRGSORT: pwsp_insn_merge(core, insn, d, s, tmp); break;
    case PTOISA_TGATHERMASK: ptoisa_tgather_mask(core, d, s[0], (ptoisa_pattern)insn->mode); break;
    case PTOISA_TQUANT:
        if (tmp) {
            ptoisa_tquant_sym_scratch(core, d, s[0], s[1], tmp);
        } else {
            ptoisa_tquant_sym(core, d, s[0], s[1]);
        }
        break;
    default: PTOWSP_ASSERT(0 && "flags and barriers are done above"); break;
    }
#undef PWSP_CASE_UNARY
#undef PWSP_CASE_BINARY
#undef PWSP_CASE_TERNARY
#undef PWSP_CASE_SCALAR
#undef PWSP_CASE_TMP
#undef PWSP_CASE_BINARY_TMP
}

void pwsp_tile_core_insn(pwsp_tile_core *tile_core, const pwsp_tile_code *code,
                         const pwsp_insn *insn, const ptowsp_task *task) {
    pwsp_tile_core_insn_on(tile_core, code, insn, task);
    if (insn->side == PWSP_SIDE_VECTOR && (code->split_tile || pwsp_insn_is_fifo(insn))) {
        tile_core->block->turn = 1;
        pwsp_tile_core_insn_on(tile_core, code, insn, task);
        tile_core->block->turn = 0;
    }
}

// -- tasks ----------------------------------------------------------------------------------------

// The result of a product over an empty sum: zero, or the bias in every row. Further panels add
// nothing.
static void pwsp_tile_core_empty(pwsp_tile_core *core, const pwsp_insn *insn) {
    const ptoisa_tile *d = &core->tiles[insn->dst[0]], *bias = &core->tiles[insn->src[2]];
    if (insn->op == PTOISA_TMATMUL_ACC || !d->data) {
        return;
    }
    memset(d->data, 0, (size_t)ptoisa_tile_bytes(d));
    for (uint32_t r = 0; insn->op == PTOISA_TMATMUL_BIAS && r < d->valid_rows; r++) {
        for (uint32_t c = 0; c < d->valid_cols; c++) {  // f32 or i32, both
            memcpy((uint8_t *)d->data + 4 * ptoisa_offset(d, r, c),
                   (const uint8_t *)bias->data + 4 * ptoisa_offset(bias, 0, c), 4);
        }
    }
}

// Is the instruction a product with nothing to sum, or without a result?
static bool pwsp_insn_is_empty(const pwsp_tile_core *core, const pwsp_insn *insn) {
    if (insn->op != PTOISA_TMATMUL && insn->op != PTOISA_TMATMUL_ACC &&
        insn->op != PTOISA_TMATMUL_BIAS) {
        return false;
    }
    const ptoisa_tile *d = &core->tiles[insn->dst[0]];
    uint32_t left = insn->src[insn->op == PTOISA_TMATMUL_ACC ? 1 : 0];
    return d->valid_rows == 0 || d->valid_cols == 0 || core->tiles[left].valid_cols == 0;
}

// A sum that begins, as the product that it is.
static pwsp_insn pwsp_insn_beginning(const pwsp_insn *insn) {
    pwsp_insn product = *insn;
    product.op = PTOISA_TMATMUL;
    product.src[0] = insn->src[1];
    product.src[1] = insn->src[2];
    product.src[2] = 0;
    return product;
}

// The cores that execute code: the cube core, or the only one, and vector cores.
static uint32_t pwsp_tile_core_cores(pwsp_tile_core *core, const pwsp_tile_code *code,
                                     ptoisa_core *cores[3]) {
    cores[0] = &core->core;
    if (!code->is_mixed) {
        return 1;
    }
    cores[1] = &core->block->vectors[0];
    cores[2] = &core->block->vectors[1];
    return 3;
}

// Executes an instruction that the unit model does not count.
static void pwsp_tile_core_uncounted(pwsp_tile_core *core, const pwsp_tile_code *code,
                                     const pwsp_insn *insn, const ptowsp_task *task) {
    ptoisa_core *cores[3];
    uint32_t count = pwsp_tile_core_cores(core, code, cores);
    uint64_t sums[3], busy[3][PTOISA_PIPE_COUNT];
    for (uint32_t i = 0; i < count; i++) {
        sums[i] = cores[i]->sum;
        memcpy(busy[i], cores[i]->busy, sizeof busy[i]);
    }
    pwsp_tile_core_insn(core, code, insn, task);
    for (uint32_t i = 0; i < count; i++) {
        cores[i]->sum = sums[i];
        memcpy(cores[i]->busy, busy[i], sizeof busy[i]);
    }
}

// Executes instruction i, and counts its cycles: of one vector core where there are two.
static void pwsp_tile_core_counted(pwsp_tile_core *core, const pwsp_tile_code *code,
                                   const pwsp_insn *insn, const ptowsp_task *task, uint32_t i) {
    const ptoisa_core *vector = code->is_mixed ? &core->block->vectors[0] : NULL;
    const uint64_t before = core->core.sum + (vector ? vector->sum : 0);
    pwsp_tile_core_insn(core, code, insn, task);
    core->spent[i] += core->core.sum + (vector ? vector->sum : 0) - before;
}

static void pwsp_tile_core_loop(pwsp_tile_core *core, const pwsp_tile_code *code,
                                const ptowsp_task *task, uint32_t loop);

// Executes instructions [begin, end), and the loops among them.
static void pwsp_tile_core_walk(pwsp_tile_core *core, const pwsp_tile_code *code,
                                const ptowsp_task *task, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; i++) {
        const pwsp_insn *insn = &code->insns[i];
        pwsp_insn beginning;
        if (core->idle >> insn->phase & 1) {
            continue;
        }
        if (insn->op == PWSP_INSN_LOOP) {
            pwsp_tile_core_loop(core, code, task, insn->loop);
            i = code->loops[insn->loop].last;
            continue;
        }
        if (insn->begins && core->iteration[insn->begins] == 0) {
            beginning = pwsp_insn_beginning(insn);
            insn = &beginning;
        }
        if (pwsp_insn_is_empty(core, insn)) {
            pwsp_tile_core_empty(core, insn);
            continue;
        }
        if (insn->is_implied && ptoisa_time_of(core->core.model) == PTOISA_TIME_SUM) {
            pwsp_tile_core_uncounted(core, code, insn, task);
        } else if (core->spent) {
            pwsp_tile_core_counted(core, code, insn, task, i);
        } else {
            pwsp_tile_core_insn(core, code, insn, task);
        }
    }
}

// Selects the phases of a loop that have an iteration in turn n. The late phase lags by the preload.
static void pwsp_tile_core_phase(pwsp_tile_core *core, const pwsp_tile_code *code,
                                 const ptowsp_task *task, uint32_t loop, uint64_t n,
                                 uint64_t count) {
    const pwsp_list_loop *of = &code->loops[loop].of;
    uint32_t late = 1;
    while (code->loops[late].of.late_of != loop) {
        late++;
    }
    core->idle = n < count ? 0 : 1u << loop;
    if (n < of->preload) {
        core->idle |= 1u << late;
        return;
    }
    int64_t begin;
    pwsp_loop_bounds(code, loop, task, &begin, &core->end[late]);
    core->index[late] = begin + (int64_t)(n - of->preload) * of->step;
    pwsp_tile_core_iterate(core, code, task, late, n - of->preload);
}

static void pwsp_tile_core_loop(pwsp_tile_core *core, const pwsp_tile_code *code,
                                const ptowsp_task *task, uint32_t loop) {
    const pwsp_code_loop *of = &code->loops[loop];
    int64_t begin;
    uint64_t count = pwsp_tile_code_iterations(code, loop, task, &begin);
    uint64_t turns = pwsp_loop_turns(&of->of, count);
    pwsp_loop_bounds(code, loop, task, &begin, &core->end[loop]);
    for (uint64_t n = 0; n < turns; n++) {
        if (n < count) {
            core->index[loop] = begin + (int64_t)n * of->of.step;
        }
        pwsp_tile_core_iterate(core, code, task, loop, n);
        if (of->of.preload) {
            pwsp_tile_core_phase(core, code, task, loop, n, count);
        }
        pwsp_tile_core_walk(core, code, task, of->first + 1, of->last);
    }
    core->idle = 0;
    pwsp_tile_core_leave(core, code, loop, turns);
}

// An instruction of the user's model, in the public type.
static uint64_t pwsp_tile_core_ask(const ptoisa_issue_info *info, void *user) {
    pwsp_tile_core *core = (pwsp_tile_core *)user;
    const ptoisa_tile *of = info->dst ? info->dst : info->src0;
    ptowsp_insn insn;
    memset(&insn, 0, sizeof insn);
    insn.name = core->asked ? core->asked : ptoisa_op_name(info->op);
    insn.pipe = (ptowsp_pipe)info->pipe;
    if (of) {
        insn.memory = (ptowsp_memory)of->memory;
        insn.dtype = (ptowsp_dtype)of->dtype;
        insn.rows = of->valid_rows;
        insn.cols = of->valid_cols;
    }
    insn.depth = info->pipe == PTOISA_PIPE_M && info->src0 ? info->src0->valid_cols : 0;
    uint64_t cycles = core->cost->fn(&insn, core->cost->user);
    if (cycles > PWSP_INSN_CYCLES_MAX) {
        core->excess = cycles;
        return 0;
    }
    return cycles;
}

#define PWSP_MODEL_IS_SAME(name, text)                                                             \
    PTOWSP_STATIC_ASSERT((int)PTOWSP_MODEL_##name == (int)PTOISA_MODEL_##name, "models");
PTOWSP_MODELS(PWSP_MODEL_IS_SAME)
#undef PWSP_MODEL_IS_SAME
#define PWSP_MODEL_ONE(name, text) +1
PTOWSP_STATIC_ASSERT(0 PTOWSP_MODELS(PWSP_MODEL_ONE) == (int)PTOISA_MODEL_COUNT, "models");
#undef PWSP_MODEL_ONE

// Sets the core to a model.
static void pwsp_tile_core_begin(pwsp_tile_core *core, const pwsp_tile_code *code,
                                 const ptowsp_cost *cost, bool is_dry) {
    ptoisa_model model = cost ? (ptoisa_model)cost->model : PTOISA_MODEL_UNIT;
    ptoisa_core_init(&core->core, model, &code->machine);
    core->core.is_checked = false;
    core->core.is_dry = is_dry;
    core->core.traffic = core->traffic;
    core->cost = cost;
    for (uint32_t loop = 0; loop <= code->loop_count; loop++) {
        core->index[loop] = 0;
        core->iteration[loop] = 0;
        core->end[loop] = INT64_MAX;
    }
    core->excess = 0;
    core->idle = 0;
    if (model == PTOISA_MODEL_USER) {
        core->core.cost = pwsp_tile_core_ask;
        core->core.cost_user = core;
    }
    if (cost && cost->timing) {
        core->timing = pwsp_timing_to_isa(cost->timing);
        core->core.timing = &core->timing;
    }
    if (code->is_mixed && core->block) {
        core->block->vectors[0] = core->block->vectors[1] = core->core;
        core->block->turn = core->block->cut = 0;
        for (int i = 0; i < PWSP_FIFO_COUNT; i++) {
            const pwsp_list_fifo *of = &code->fifos[i];
            if (of->slot_bytes) {
                ptoisa_direction direction = i == PWSP_FIFO_TO_VECTOR ? PTOISA_C2V : PTOISA_V2C;
                ptoisa_fifo_init(&core->core, &core->block->fifos[i].of, direction, of->flag,
                                 of->slot_bytes, of->slots,
                                 is_dry ? NULL : core->block->fifos[i].slots, 0);
            }
        }
    }
}

// When the last core is done; in the unit model, the sum of all cores' cycles.
static uint64_t pwsp_tile_core_cycles(pwsp_tile_core *core, const pwsp_tile_code *code) {
    ptoisa_core *cores[3];
    uint32_t count = pwsp_tile_core_cores(core, code, cores);
    return ptoisa_block_cycles((const ptoisa_core *const *)cores, count);
}

bool pwsp_tile_core_run(pwsp_tile_core *core, const pwsp_tile_code *code, const ptowsp_task *task,
                        bool is_dry, ptowsp_cycles *out_cycles) {
    if (!pwsp_tile_core_check(core, code, task)) {
        return false;
    }
    pwsp_tile_core_begin(core, code, core->cost, is_dry);
    pwsp_tile_core_cut(core, code, task);
    pwsp_tile_core_place(core, code, task, is_dry);
    pwsp_tile_core_walk(core, code, task, 0, code->insn_count);
    *out_cycles = pwsp_tile_core_cycles(core, code);
    if (core->excess) {
        snprintf(core->text, sizeof core->text, "its cost function says %" PRIu64 " cycles",
                 core->excess);
    }
    return core->excess == 0;
}

bool pwsp_tile_code_measure(const pwsp_tile_code *code, const ptowsp_cost *cost,
                            pwsp_tile_core *core, ptowsp_kernel_stats *out_stats) {
    pwsp_tile_core_begin(core, code, cost, true);
    if (code->loop_count && !pwsp_tile_core_check_loops(core, code, NULL)) {
        return false;
    }
    pwsp_tile_core_cut(core, code, NULL);
    pwsp_tile_core_place(core, code, NULL, true);
    pwsp_tile_core_walk(core, code, NULL, 0, code->insn_count);
    out_stats->cycles = pwsp_tile_core_cycles(core, code);
    for (int i = 0; i < PTOWSP_PIPE_COUNT; i++) {
        out_stats->busy_cycles[i] = core->core.busy[i];
        if (code->is_mixed) {
            uint64_t first = core->block->vectors[0].busy[i],
                     second = core->block->vectors[1].busy[i];
            bool is_sum = ptoisa_time_of(core->core.model) == PTOISA_TIME_SUM;
            out_stats->busy_cycles[i] += is_sum ? first + second : first > second ? first : second;
        }
    }
    for (int i = 0; i < PTOWSP_MEMORY_COUNT; i++) {
        out_stats->memory_bytes[i] = code->used[i];
    }
    return core->excess == 0;
}

// Does an instruction move a tile between the cube and the vector core, as A5 does? The tile is not
// padded alike on both.
static bool pwsp_insn_is_crossing(const pwsp_tile_code *code, const pwsp_insn *insn) {
    if (insn->op != PTOISA_TMOV || code->machine.family == PTOISA_A2A3) {
        return false;
    }
    uint8_t from = code->tiles[insn->src[0]].memory, to = code->tiles[insn->dst[0]].memory;
    return (from == PTOISA_ACC && to == PTOISA_VEC) || (from == PTOISA_VEC && to == PTOISA_MAT);
}

// Checks what moves between a slot and a tile. That there is a slot, and how large, is proved.
static void pwsp_tile_core_check_fifo(pwsp_tile_core *core, const pwsp_tile_code *code,
                                      const pwsp_insn *insn) {
    bool is_push = insn->op == PWSP_INSN_TPUSH;
    uint32_t of = is_push ? insn->src[0] : insn->dst[0];
    const ptoisa_tile *tile = &core->tiles[of];
    ptoisa_global slot = ptoisa_global_make(NULL, (ptoisa_dtype)tile->dtype, tile->valid_rows,
                                            tile->valid_cols, code->tiles[of].valid_cols.max, 1);
    if (is_push) {
        ptoisa_tstore(&core->core, &slot, tile);
    } else {
        ptoisa_tload(&core->core, tile, &slot);
    }
}

void pwsp_tile_core_check_all(pwsp_tile_core *core, const pwsp_tile_code *code,
                              ptoisa_fault_fn on_fault, void *user, uint32_t *out_insn) {
    pwsp_tile_core_begin(core, code, NULL, true);
    core->core.is_only_checked = true;  // the proof has seen each tile
    core->core.on_fault = on_fault;
    core->core.fault_user = user;
    pwsp_tile_core_place(core, code, NULL, true);
    for (uint32_t i = 0; i < code->insn_count; i++) {
        if (pwsp_insn_is_mark(&code->insns[i]) || pwsp_insn_is_sync(&code->insns[i])) {
            continue;  // no operands; and flags are proved
        }
        pwsp_insn insn = code->insns[i];
        insn.side = PWSP_SIDE_ANY;  // on one core: the rules of all are the same
        core->core.is_checked = !pwsp_insn_is_crossing(code, &insn);
        *out_insn = i;
        if (pwsp_insn_is_fifo(&insn)) {
            pwsp_tile_core_check_fifo(core, code, &insn);
        } else {
            pwsp_tile_core_insn_on(core, code, &insn, NULL);
        }
    }
}
