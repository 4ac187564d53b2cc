// How long an instruction takes on a measured machine (timing.h), mechanism by mechanism. Each has a
// row in PTOISA_MECHANISMS and can be switched off.
//
//     transfers      setup + burst * rows + bytes / rate on the pipe, and a latency that core.h hides
//                    where the pipe has more queued. L0C is drained by bytes of the destination.
//     matrices       a block a cycle, as in cost.h, and the start only where the pipe ran empty
//     A2/A3 vectors  the recipes of cost_a2a3.h with fitted starts and ends, moves by blocks of 32
//                    bytes, column reductions row by row, merges by the length of their runs
//     A5 vectors     loops over registers, below
//
// An A5 instruction whose rows lie together is one loop. Rows apart: the first takes as long as
// it would alone; each further row takes a cycle for each register and `wait`, or longer at `rate`.
// A row of a single register needs no loop: all rows are one loop then.
//
//     one loop             a * registers + b
//     rows apart           a * registers + b + (rows - 1) * max(registers + wait, rate * registers)
//
// Conversions from f32 to 16 bits count two registers of f32 as one. Conversions from 16 bits to f32
// in one loop take fewer cycles the larger they are, until they take as many as bf16 to f16.

#ifndef PTOISA_COST_TIMED_H
#define PTOISA_COST_TIMED_H

#include "cost.h"

// -- transfers ------------------------------------------------------------------------------------

PTOISA_INLINE bool ptoisa_path_is_global(ptoisa_path path) {
    return path <= PTOISA_UB_TO_GM || path == PTOISA_L1_TO_GM || path == PTOISA_L0C_TO_GM;
}

// Cycles of global memory, which does not follow the clock of the cores.
PTOISA_FN uint64_t ptoisa_timed_clock(const ptoisa_issue_info *info, ptoisa_path path,
                                      uint64_t cycles) {
    const ptoisa_timing *timing = info->timing;
    bool is_fixed = ptoisa_has(info, PTOISA_MECHANISM_CLOCK) && ptoisa_path_is_global(path);
    return is_fixed ? cycles * timing->clock_mhz / timing->memory_mhz : cycles;
}

// Does a move from L1 transpose fractals? L0B has them by columns.
PTOISA_INLINE bool ptoisa_move_is_turning(const ptoisa_issue_info *info, ptoisa_path path) {
    return path == PTOISA_L1_TO_L0B &&
           (info->src0->layout == PTOISA_NZ || info->src0->layout == PTOISA_ZZ);
}

// Cycles of a transfer on its pipe. `bytes` are as they leave the source.
PTOISA_FN uint64_t ptoisa_timed_transfer(const ptoisa_issue_info *info, ptoisa_path path,
                                         uint64_t bytes) {
    const ptoisa_path_timing *of = &info->timing->path[path];
    const ptoisa_tile *tile = info->dst != NULL ? info->dst : info->src0;
    if (bytes == 0) {
        return 0;
    }
    uint64_t rate = of->rate, cycles = 0;
    if (path == PTOISA_L0C_TO_GM && ptoisa_has(info, PTOISA_MECHANISM_FIX)) {
        uint64_t size = ptoisa_dtype_size((ptoisa_dtype)info->src0->dtype);
        bytes = info->detail == 0 ? bytes : bytes / size * info->detail;
    } else if (path == PTOISA_L0C_TO_GM) {
        return ptoisa_cost_bytes(info->machine, path, bytes);
    }
    bool is_to_l0 = path == PTOISA_L1_TO_L0A || path == PTOISA_L1_TO_L0B;
    if (is_to_l0 && ptoisa_has(info, PTOISA_MECHANISM_TRANSPOSE)) {
        cycles += of->setup;
        rate = ptoisa_move_is_turning(info, path) ? info->timing->transposed_rate : rate;
    } else if (!is_to_l0 && ptoisa_has(info, PTOISA_MECHANISM_BURSTS)) {
        bool is_col_major = tile->layout == PTOISA_COL_MAJOR;
        cycles +=
            of->setup + (uint64_t)of->burst * (is_col_major ? tile->valid_cols : tile->valid_rows);
    }
    uint64_t moving = bytes * 100 / rate;
    return ptoisa_timed_clock(info, path, cycles + (moving > 0 ? moving : 1));
}

// Cycles from when a transfer leaves its pipe until its data is there; 0 for other instructions.
PTOISA_FN uint64_t ptoisa_timed_latency(const ptoisa_issue_info *info) {
    if (info->pipe < PTOISA_PIPE_MTE1 || info->pipe > PTOISA_PIPE_FIX ||
        !ptoisa_has(info, PTOISA_MECHANISM_LATENCY)) {
        return 0;
    }
    const ptoisa_tile *moved = info->dst != NULL ? info->dst : info->src0;
    ptoisa_path path =
        moved == NULL ? PTOISA_PATH_COUNT : ptoisa_path_of(info->op, info->dst, info->src0);
    if (path == PTOISA_PATH_COUNT || ptoisa_valid_count(moved) == 0) {
        return 0;
    }
    return ptoisa_timed_clock(info, path, info->timing->path[path].latency);
}

// -- the vector unit of A2/A3 ---------------------------------------------------------------------

// A move inside UB: 32 bytes a cycle and a call; a call for each row if rows lie apart. Layouts do
// not count: bytes are moved as they are.
PTOISA_FN uint64_t ptoisa_timed_blocks(const ptoisa_issue_info *info, const ptoisa_tile *tile) {
    uint64_t size = ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    uint64_t rows = tile->valid_rows, line = tile->valid_cols * size;
    if (rows == 0 || line == 0) {
        return 0;
    }
    bool is_whole = tile->cols == tile->valid_cols;
    uint64_t calls = is_whole ? 1 : rows;
    return calls * (ptoisa_parts(is_whole ? rows * line : line, 32) +
                    info->timing->path[PTOISA_UB_TO_UB].setup);
}

PTOISA_FN bool ptoisa_op_is_block_move(ptoisa_op op) {
    return op == PTOISA_TMOV || op == PTOISA_TEXTRACT || op == PTOISA_TINSERT ||
           op == PTOISA_TCONCAT;
}

// Columns one row after another: each waits for the one before. A binary sum does not, and has a
// reading. A single row is copied.
PTOISA_FN bool ptoisa_is_by_columns(const ptoisa_issue_info *info) {
    return info->op == PTOISA_TCOLMAX || info->op == PTOISA_TCOLMIN ||
           info->op == PTOISA_TCOLPROD ||
           (info->op == PTOISA_TCOLSUM && (info->detail == 0 || info->src0->valid_rows == 1));
}

PTOISA_FN uint64_t ptoisa_timed_columns(const ptoisa_issue_info *info) {
    const ptoisa_tile *tile = info->src0;
    uint64_t line = (uint64_t)tile->valid_cols * ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    if (tile->valid_rows == 0 || line == 0) {
        return 0;
    }
    uint64_t copy = ptoisa_parts(line, 32) + info->timing->path[PTOISA_UB_TO_UB].setup + 1;
    uint64_t row = PTOISA_FITTED_COLUMN + 200 * ptoisa_parts(line, PTOISA_REPEAT_BYTES);
    return copy + ((tile->valid_rows - 1) * row + 50) / 100;
}

// Reductions of 8,192 f32 by rows, the slices of scores that flash attention reduces. PTO-ISA has
// special code for 64 x 128, 32 x 256, 16 x 512 and 8 x 1024: it reduces blocks of 8 elements, twice,
// and the remainder of a row in one or two more steps. Each step waits for the previous one. The
// constants are public: vcgadd 14, 1, 24; vcgmax 14, 1, 17.
//
// Two assumptions. Only TROWSUM is documented to have this code; the published times of flash attention
// suggest that TROWMAX has it too. And PTO-ISA requires static sizes; full tiles count as static here.
PTOISA_FN bool ptoisa_is_in_groups(const ptoisa_issue_info *info) {
    const ptoisa_tile *tile = info->src0;
    bool is_reduced =
        info->op == PTOISA_TROWSUM || info->op == PTOISA_TROWMAX || info->op == PTOISA_TROWMIN;
    return is_reduced && tile->dtype == PTOISA_F32 && tile->cols == tile->valid_cols &&
           tile->valid_cols % 128 == 0 && tile->valid_cols <= 1024 &&
           (uint64_t)tile->valid_rows * tile->valid_cols == 8192;
}

PTOISA_FN uint64_t ptoisa_timed_groups(const ptoisa_issue_info *info) {
    uint64_t ends = info->op == PTOISA_TROWSUM ? 14 + 24 : 14 + 17;
    uint32_t cols = info->src0->valid_cols;
    uint64_t left = cols == 256 || cols == 1024 ? 2 : 1;
    return 8192 / 64 + 8192 / 8 / 64 + 2 * ends + 1 + left * (8192 / 64 / 64 + ends + 1);
}

// Cycles of an instruction on the vector pipe.
PTOISA_FN uint64_t ptoisa_timed_vector(const ptoisa_issue_info *info) {
    if (ptoisa_has(info, PTOISA_MECHANISM_GROUPS) && ptoisa_is_in_groups(info)) {
        return ptoisa_timed_groups(info);
    }
    if (ptoisa_has(info, PTOISA_MECHANISM_BLOCKS) && ptoisa_op_is_block_move(info->op)) {
        return ptoisa_timed_blocks(info, info->op == PTOISA_TINSERT ? info->src0 : info->dst);
    }
    if (ptoisa_has(info, PTOISA_MECHANISM_COLUMNS) && ptoisa_is_by_columns(info)) {
        return ptoisa_timed_columns(info);
    }
    return ptoisa_cost_vector(info);
}

// -- the vector unit of A5 ------------------------------------------------------------------------

// The measured conversion of the same widths: to narrower elements, to f32, or else.
PTOISA_FN ptoisa_a5_fit ptoisa_timed_fit_of_cast(const ptoisa_issue_info *info) {
    ptoisa_dtype dst = (ptoisa_dtype)info->dst->dtype, src = (ptoisa_dtype)info->src0->dtype;
    uint32_t to = ptoisa_dtype_size(dst), from = ptoisa_dtype_size(src);
    return from == 4 && to < 4   ? PTOISA_A5_NARROW
           : to == 4 && from < 4 ? PTOISA_A5_WIDEN
                                 : PTOISA_A5_BF16_TO_F16;
}

// The measured loop of an instruction. Those that were not measured are one register instruction
// too: two operands as TADD, one as TNEG, one and a scalar as TMINS, conversions by their widths.
PTOISA_FN ptoisa_a5_fit ptoisa_timed_fit_of(const ptoisa_issue_info *info, uint64_t registers) {
    bool is_b32 = info->dst && ptoisa_dtype_size((ptoisa_dtype)info->dst->dtype) == 4;
    switch (info->op) {
    case PTOISA_TMAX:
    case PTOISA_TMIN:
    case PTOISA_TAND:
    case PTOISA_TOR: return PTOISA_A5_ADD;
    case PTOISA_TADDS:
    case PTOISA_TSUBS:
    case PTOISA_TMULS:
    case PTOISA_TMAXS: return PTOISA_A5_MINS;
    case PTOISA_TABS:
    case PTOISA_TRELU:
    case PTOISA_TNOT: return PTOISA_A5_NEG;
    case PTOISA_TCVT: return ptoisa_timed_fit_of_cast(info);
    case PTOISA_TRECIP:
        if (info->detail != 0) {
            return is_b32 ? PTOISA_A5_RECIP_HIGH_F32 : PTOISA_A5_RECIP_HIGH_F16;
        }
        break;
    default: break;
    }
    return ptoisa_a5_fit_of(info, registers);
}

typedef struct ptoisa_register_loop {
    int32_t a, b, rate, wait;  // in 1/10000 of a cycle
} ptoisa_register_loop;

PTOISA_FN ptoisa_register_loop ptoisa_register_loop_of(ptoisa_a5_fit fit) {
    ptoisa_register_loop loop = {0, 0, 0, 0};
    switch (fit) {
#define PTOISA_REGISTER_LOOP(name, a_, b_, rate_, wait_)                                           \
    case PTOISA_A5_##name:                                                                         \
        loop.a = a_;                                                                               \
        loop.b = b_;                                                                               \
        loop.rate = rate_;                                                                         \
        loop.wait = wait_;                                                                         \
        break;
        PTOISA_FITTED_REGISTERS(PTOISA_REGISTER_LOOP)
#undef PTOISA_REGISTER_LOOP
    default: break;
    }
    return loop;
}

PTOISA_INLINE int64_t ptoisa_most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// One loop over registers, in 1/10000 of a cycle.
PTOISA_FN int64_t ptoisa_timed_loop(ptoisa_a5_fit fit, int64_t registers) {
    ptoisa_register_loop loop = ptoisa_register_loop_of(fit);
    int64_t cycles = loop.a * registers + loop.b;
    return fit == PTOISA_A5_WIDEN
               ? ptoisa_most(cycles, ptoisa_timed_loop(PTOISA_A5_BF16_TO_F16, registers))
               : cycles;
}

// Cycles of an instruction on the vector pipe.
PTOISA_FN uint64_t ptoisa_timed_registers(const ptoisa_issue_info *info) {
    if (!ptoisa_has(info, PTOISA_MECHANISM_REGISTERS)) {
        return ptoisa_cost_vector_a5(info);
    }
    if (ptoisa_timed_fit_of(info, 0) == PTOISA_A5_NONE) {
        return ptoisa_timed_vector(info);
    }
    bool is_cast = info->op == PTOISA_TCVT;
    ptoisa_extent extent = ptoisa_extent_of(info, is_cast ? PTOISA_OVER_WIDE : PTOISA_OVER_DST);
    if (extent.lines == 0 || extent.line_bytes == 0) {
        return 0;
    }
    int64_t lines = (int64_t)extent.lines;
    // Registers that a row counts, and how many of 256 bytes such a one is.
    bool is_apart = lines > 1;
    int64_t width = is_apart && ptoisa_timed_fit_of(info, 0) == PTOISA_A5_NARROW ? 2 : 1;
    int64_t units = (int64_t)ptoisa_parts(extent.line_bytes, (uint64_t)width * PTOISA_REPEAT_BYTES);
    ptoisa_a5_fit fit = ptoisa_timed_fit_of(info, (uint64_t)units);
    int64_t cycles;
    if (units == 1 || !is_apart) {
        cycles = ptoisa_timed_loop(fit, lines * units * width);
    } else {
        ptoisa_register_loop loop = ptoisa_register_loop_of(fit);
        if (fit == PTOISA_A5_SELECT_B32_EVEN) {  // masks are shared in one loop alone
            loop = ptoisa_register_loop_of(PTOISA_A5_SELECT_B32_ODD);
        }
        int64_t row = ptoisa_most(units * PTOISA_CYCLE + loop.wait, loop.rate * units);
        // The first row of a conversion to f32 does not fall.
        ptoisa_a5_fit first = fit == PTOISA_A5_WIDEN ? PTOISA_A5_BF16_TO_F16 : fit;
        cycles = ptoisa_timed_loop(first, units * width) + (lines - 1) * row;
    }
    return (uint64_t)(cycles + PTOISA_CYCLE / 2) / PTOISA_CYCLE;
}

// -- any instruction ------------------------------------------------------------------------------

// Cycles on the instruction's pipe.
PTOISA_FN uint64_t ptoisa_cost_timed(const ptoisa_issue_info *info) {
    bool is_sync = info->dst == NULL && info->src0 == NULL;
    if (info->pipe == PTOISA_PIPE_V && !is_sync) {
        return info->timing->family == PTOISA_A5 ? ptoisa_timed_registers(info)
                                                 : ptoisa_timed_vector(info);
    }
    ptoisa_path path =
        is_sync ? PTOISA_PATH_COUNT : ptoisa_path_of(info->op, info->dst, info->src0);
    if (path != PTOISA_PATH_COUNT) {
        return ptoisa_timed_transfer(info, path, ptoisa_transfer_bytes(info));
    }
    uint64_t cycles = ptoisa_cost_device(info, ptoisa_cost_vector);
    bool is_hidden = !is_sync && info->pipe == PTOISA_PIPE_M && !info->is_pipe_idle && cycles > 0 &&
                     ptoisa_has(info, PTOISA_MECHANISM_ENDS);
    return is_hidden ? cycles - PTOISA_MATMUL_START : cycles;
}

#endif
