// How long an instruction takes, and on which pipe.
//
// The unit model counts elements. The models of A2/A3 and A5 go by the pipe: a transfer takes the
// bytes of its valid region at the rate of its path, a matrix product counts blocks, scalar
// instructions and flags take a cycle, and the rest is the vector unit's (cost_a2a3.h and
// cost_a5.h, which state their accuracy). They are ideal: transfers have no latency, and rates that
// are right for some 16 KiB in long rows. Measured machines are in cost_timed.h; the
// function of each model is in cost_models.h.

#ifndef PTOISA_COST_H
#define PTOISA_COST_H

#include "cost_a2a3.h"
#include "cost_a5.h"

// The pipe of an instruction. dst or src are NULL where it is global memory.
PTOISA_FN ptoisa_pipe ptoisa_pipe_of(ptoisa_op op, const ptoisa_tile *dst, const ptoisa_tile *src) {
    switch (op) {
    case PTOISA_TLOAD:
    case PTOISA_MGATHER: return PTOISA_PIPE_MTE2;
    case PTOISA_TSTORE: return src->memory == PTOISA_ACC ? PTOISA_PIPE_FIX : PTOISA_PIPE_MTE3;
    case PTOISA_MSCATTER: return PTOISA_PIPE_MTE3;
    case PTOISA_TMOV:
    case PTOISA_TEXTRACT:
    case PTOISA_TINSERT:
        if (src->memory == PTOISA_ACC || dst->memory == PTOISA_SCALING) {
            return PTOISA_PIPE_FIX;
        }
        if (src->memory == PTOISA_MAT) {
            return PTOISA_PIPE_MTE1;
        }
        return dst->memory == PTOISA_MAT ? PTOISA_PIPE_MTE3 : PTOISA_PIPE_V;
    case PTOISA_TEXPANDS:
    case PTOISA_TFILLPAD: return dst->memory == PTOISA_MAT ? PTOISA_PIPE_MTE2 : PTOISA_PIPE_V;
    case PTOISA_TMATMUL:
    case PTOISA_TMATMUL_ACC:
    case PTOISA_TMATMUL_BIAS:
    case PTOISA_TGEMV:
    case PTOISA_TGEMV_ACC:
    case PTOISA_TGEMV_BIAS: return PTOISA_PIPE_M;
    case PTOISA_TCI:
    case PTOISA_SET_FLAG:
    case PTOISA_WAIT_FLAG:
    case PTOISA_PIPE_BARRIER: return PTOISA_PIPE_S;
    default: return PTOISA_PIPE_V;
    }
}

typedef enum ptoisa_unit_class {
    PTOISA_UNIT_ZERO,
    PTOISA_UNIT_DST,
    PTOISA_UNIT_SRC,
    PTOISA_UNIT_SORT,
    PTOISA_UNIT_MOVE,
    PTOISA_UNIT_MATMUL
} ptoisa_unit_class;

PTOISA_INLINE uint64_t ptoisa_valid_count(const ptoisa_tile *tile) {
    return (uint64_t)tile->valid_rows * tile->valid_cols;
}

// Cycles in the unit model: PTO-WSP's rule, of valid sizes.
PTOISA_FN uint64_t ptoisa_cost_unit(ptoisa_op op, const ptoisa_tile *dst, const ptoisa_tile *src0,
                                    const ptoisa_tile *src1) {
    static const uint8_t classes[PTOISA_OP_COUNT] = {PTOISA_UNIT_ZERO,
#define PTOISA_OP_UNIT(name, unit) PTOISA_UNIT_##unit,
                                                     PTOISA_OPS(PTOISA_OP_UNIT)
#undef PTOISA_OP_UNIT
    };
    (void)src1;
    switch ((ptoisa_unit_class)classes[op]) {
    case PTOISA_UNIT_ZERO: return 0;
    case PTOISA_UNIT_DST: return ptoisa_valid_count(dst);
    case PTOISA_UNIT_SRC: return ptoisa_valid_count(src0);
    case PTOISA_UNIT_SORT: return 5 * ptoisa_valid_count(src0);
    case PTOISA_UNIT_MOVE:
        return src0->memory == PTOISA_MAT && dst->memory > PTOISA_MAT ? 0 : ptoisa_valid_count(dst);
    case PTOISA_UNIT_MATMUL: break;
    }
    return ptoisa_valid_count(dst) * src0->valid_cols;
}

// -- transfers ------------------------------------------------------------------------------------

PTOISA_FN ptoisa_path ptoisa_path_of_move(ptoisa_memory src, ptoisa_memory dst) {
    switch (src) {
    case PTOISA_VEC: return dst == PTOISA_VEC ? PTOISA_UB_TO_UB : PTOISA_UB_TO_L1;
    case PTOISA_ACC: return dst == PTOISA_VEC ? PTOISA_L0C_TO_UB : PTOISA_L0C_TO_L1;
    default: break;
    }
    return dst == PTOISA_LEFT    ? PTOISA_L1_TO_L0A
           : dst == PTOISA_RIGHT ? PTOISA_L1_TO_L0B
                                 : PTOISA_L1_TO_OTHER;
}

// The path of a transfer; PTOISA_PATH_COUNT for other instructions.
PTOISA_FN ptoisa_path ptoisa_path_of(ptoisa_op op, const ptoisa_tile *dst, const ptoisa_tile *src) {
    switch (op) {
    case PTOISA_TLOAD:
    case PTOISA_MGATHER: return dst->memory == PTOISA_MAT ? PTOISA_GM_TO_L1 : PTOISA_GM_TO_UB;
    case PTOISA_TSTORE:
    case PTOISA_MSCATTER:
        return src->memory == PTOISA_ACC   ? PTOISA_L0C_TO_GM
               : src->memory == PTOISA_MAT ? PTOISA_L1_TO_GM
                                           : PTOISA_UB_TO_GM;
    case PTOISA_TMOV:
    case PTOISA_TEXTRACT:
    case PTOISA_TINSERT:
        return ptoisa_path_of_move((ptoisa_memory)src->memory, (ptoisa_memory)dst->memory);
    case PTOISA_TEXPANDS:
    case PTOISA_TFILLPAD: return dst->memory == PTOISA_MAT ? PTOISA_L1_TO_OTHER : PTOISA_PATH_COUNT;
    default: return PTOISA_PATH_COUNT;
    }
}

// cycles = bytes / 2^30 / (rate / 100) * clock, in integers: 10^6 * 100 / 2^30 = 390625 / 2^22.
// Rounded down, as the public model does (16 KiB from GM to UB: 279.8 are 279), but not to nothing.
PTOISA_FN uint64_t ptoisa_cost_bytes(const ptoisa_machine *machine, ptoisa_path path,
                                     uint64_t bytes) {
    uint64_t rate = machine->rate[path];
    for (int i = 0; rate == 0 && i < PTOISA_PATH_COUNT; i++) {
        for (int j = 0; j < PTOISA_PATH_COUNT; j++) {
            uint64_t other = machine->rate[j];
            rate = other != 0 && (rate == 0 || other < rate) ? other : rate;
        }
    }
    if (rate == 0 || bytes == 0) {
        return 0;
    }
    uint64_t cycles = bytes * machine->clock_mhz * 390625 / (rate << 22);
    return cycles > 0 ? cycles : 1;
}

// Bytes moved, as they leave the source: an f32 that is stored as f16 counts 4.
PTOISA_FN uint64_t ptoisa_transfer_bytes(const ptoisa_issue_info *info) {
    bool is_from_tile = info->op == PTOISA_TSTORE || info->op == PTOISA_MSCATTER ||
                        info->op == PTOISA_TMOV || info->op == PTOISA_TEXTRACT ||
                        info->op == PTOISA_TINSERT;
    bool is_src_count = is_from_tile && info->op != PTOISA_TMOV && info->op != PTOISA_TEXTRACT;
    const ptoisa_tile *tile = is_from_tile ? info->src0 : info->dst;
    return ptoisa_valid_count(is_src_count ? info->src0 : info->dst) *
           ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
}

// -- cycles of a device ---------------------------------------------------------------------------

#define PTOISA_MATMUL_START 6

// Blocks of 16 rows, 32 bytes of K and 16 columns, a cycle each; two of fp32.
PTOISA_FN uint64_t ptoisa_cost_matmul(const ptoisa_issue_info *info) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)info->src0->dtype);
    uint64_t m = ptoisa_parts(info->dst->valid_rows, 16);
    uint64_t n = ptoisa_parts(info->dst->valid_cols, 16);
    uint64_t k = ptoisa_parts((uint64_t)info->src0->valid_cols * size, 32);
    uint64_t blocks = m * n * k;
    return blocks == 0 ? 0
                       : PTOISA_MATMUL_START + blocks * (info->src0->dtype == PTOISA_F32 ? 2 : 1);
}

// `vector`: the cycles of a vector instruction.
PTOISA_FN uint64_t ptoisa_cost_device(const ptoisa_issue_info *info,
                                      uint64_t (*vector)(const ptoisa_issue_info *info)) {
    switch (info->op) {
    case PTOISA_SET_FLAG:
    case PTOISA_WAIT_FLAG:
    case PTOISA_PIPE_BARRIER: return 1;
    case PTOISA_TCI: return ptoisa_valid_count(info->dst);  // the scalar unit writes each
    default: break;
    }
    if (info->pipe == PTOISA_PIPE_M) {
        return ptoisa_cost_matmul(info);
    }
    ptoisa_path path = ptoisa_path_of(info->op, info->dst, info->src0);
    uint64_t transfer = path == PTOISA_PATH_COUNT
                            ? 0
                            : ptoisa_cost_bytes(info->machine, path, ptoisa_transfer_bytes(info));
    if (info->pipe != PTOISA_PIPE_V) {
        return transfer;
    }
    // A copy in UB is a vector instruction, which is slower than the path.
    uint64_t cycles = vector(info);
    return cycles > transfer ? cycles : transfer;
}

#endif
