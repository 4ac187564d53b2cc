// The cycles of instructions on the vector unit of A5, whose vector instructions work on registers.
// Each tile instruction is a function of its own: it always pays its start and its end, and loops
// over registers of 256 bytes. So nothing depends on whether the pipe had run empty.
//
//     one loop, where rows lie together    a * registers + b
//     two loops, row by row                (a2 * registers of a row + b2) * rows + c2
//
// The fits are public. They were made from 676 points, with a median accuracy of 0.986. They go by
// the size of the element: the fit of fp32 for 4 bytes, the fit of fp16 for 1 and 2, and for 8, which was
// not measured. Integer adds cost as much as adds of floats: both are one register instruction.
//
// Instructions without a fit follow the rule of A2/A3, with this machine's own rates and memories:
// all moves and transfers, matrices, flags, and the vector instructions that are not listed below
// (above all reductions, expands, TMAX, TMAXS, TADDS, TMULS and TCVT to and from integers). Their
// cycles on A5 are unknown and may be far from these.

#ifndef PTOISA_COST_A5_H
#define PTOISA_COST_A5_H

#include "cost_a2a3.h"

// Name, a, b, a2, b2, c2, in 1/10000 of a cycle. Of f16 or bf16 to f32, the fit of one loop falls
// with the size (a = -1.7705, b = 82.44) and reaches 0: here it is the one of two loops, with the
// whole as one row. Of a select of 4 bytes, one mask serves two registers: with an odd number of
// them each goes alone (so it is read here: the source says only "even" and "odd").
// clang-format off
#define PTOISA_A5_FITS(F)                                                                          \
    F(NONE, 0, 0, 0, 0, 0)                                                                         \
    F(ADD, 12470, 550700, 18749, 28763, 443400)                                                    \
    F(MUL, 11941, 562900, 18708, 29124, 448400)                                                    \
    F(MINS, 10589, 531400, 11017, 45314, 496300)                                                   \
    F(NEG, 10589, 551400, 10953, 45653, 515100)                                                    \
    F(EXP_F32, 19671, 626600, 18549, 25442, 606000)                                                \
    F(EXP_F16, 37623, 659300, 39982, -1208, 641600)                                                \
    F(SQRT_F32, 19671, 636600, 18549, 25442, 616000)                                               \
    F(SQRT_F16, 37623, 669300, 39982, -1208, 651600)                                               \
    F(DIVS_F32, 19081, 645200, 18689, 24754, 629400)                                               \
    F(DIVS_F16, 35492, 687400, 39982, -1208, 651600)                                               \
    F(RSQRT_F32, 40295, 755700, 40000, 326, 764600)                                                \
    F(RSQRT_F16, 81066, 811000, 80112, 572, 807100)                                                \
    F(SELECT_B16, 20984, 524800, 24617, 14273, 486200)                                             \
    F(SELECT_B32_EVEN, 19337, 588500, 30869, 361100, 225100)                                       \
    F(SELECT_B32_ODD, 39143, 638900, 30869, 361100, 225100)                                        \
    F(NARROW, 13197, 523000, 22580, 10422, 551800)      /* f32 to f16, bf16 */                     \
    F(WIDEN, 12704, 535899, 12704, 19299, 516600)       /* f16, bf16 to f32 */                     \
    F(BF16_TO_F16, 12131, 532000, 12793, 18334, 518100)                                            \
    F(RECIP_HIGH_F32, 0, 0, 0, 0, 0)                    /* of measured machines alone */           \
    F(RECIP_HIGH_F16, 0, 0, 0, 0, 0)
// clang-format on

typedef enum ptoisa_a5_fit {
#define PTOISA_A5_FIT_ENUM(name, a, b, a2, b2, c2) PTOISA_A5_##name,
    PTOISA_A5_FITS(PTOISA_A5_FIT_ENUM)
#undef PTOISA_A5_FIT_ENUM
        PTOISA_A5_FIT_COUNT
} ptoisa_a5_fit;

PTOISA_FN ptoisa_a5_fit ptoisa_a5_fit_of_cast(ptoisa_dtype dst, ptoisa_dtype src) {
    bool is_dst_16 = dst == PTOISA_F16 || dst == PTOISA_BF16;
    bool is_src_16 = src == PTOISA_F16 || src == PTOISA_BF16;
    if (src == PTOISA_F32 && is_dst_16) {
        return PTOISA_A5_NARROW;
    }
    if (is_src_16 && dst == PTOISA_F32) {
        return PTOISA_A5_WIDEN;
    }
    return src == PTOISA_BF16 && dst == PTOISA_F16 ? PTOISA_A5_BF16_TO_F16 : PTOISA_A5_NONE;
}

PTOISA_FN ptoisa_a5_fit ptoisa_a5_fit_of(const ptoisa_issue_info *info, uint64_t registers) {
    bool is_b32 = info->dst && ptoisa_dtype_size((ptoisa_dtype)info->dst->dtype) == 4;
    switch (info->op) {
    case PTOISA_TADD:
    case PTOISA_TSUB: return PTOISA_A5_ADD;
    case PTOISA_TMUL: return PTOISA_A5_MUL;
    case PTOISA_TMINS: return PTOISA_A5_MINS;
    case PTOISA_TNEG: return PTOISA_A5_NEG;
    case PTOISA_TEXP: return is_b32 ? PTOISA_A5_EXP_F32 : PTOISA_A5_EXP_F16;
    case PTOISA_TSQRT: return is_b32 ? PTOISA_A5_SQRT_F32 : PTOISA_A5_SQRT_F16;
    case PTOISA_TDIVS:
    case PTOISA_TSDIV:
    case PTOISA_TRECIP: return is_b32 ? PTOISA_A5_DIVS_F32 : PTOISA_A5_DIVS_F16;
    case PTOISA_TRSQRT: return is_b32 ? PTOISA_A5_RSQRT_F32 : PTOISA_A5_RSQRT_F16;
    case PTOISA_TSEL:
        return !is_b32              ? PTOISA_A5_SELECT_B16
               : registers % 2 == 0 ? PTOISA_A5_SELECT_B32_EVEN
                                    : PTOISA_A5_SELECT_B32_ODD;
    case PTOISA_TCVT:
        return ptoisa_a5_fit_of_cast((ptoisa_dtype)info->dst->dtype,
                                     (ptoisa_dtype)info->src0->dtype);
    default: return PTOISA_A5_NONE;
    }
}

// Cycles of an instruction on the vector pipe.
PTOISA_FN uint64_t ptoisa_cost_vector_a5(const ptoisa_issue_info *info) {
    static const int32_t fits[PTOISA_A5_FIT_COUNT][5] = {
#define PTOISA_A5_FIT_ROW(name, a, b, a2, b2, c2) {a, b, a2, b2, c2},
        PTOISA_A5_FITS(PTOISA_A5_FIT_ROW)
#undef PTOISA_A5_FIT_ROW
    };
    if (ptoisa_a5_fit_of(info, 0) == PTOISA_A5_NONE) {
        return ptoisa_cost_vector(info);
    }
    bool is_cast = info->op == PTOISA_TCVT;
    ptoisa_extent extent = ptoisa_extent_of(info, is_cast ? PTOISA_OVER_WIDE : PTOISA_OVER_DST);
    if (extent.lines == 0 || extent.line_bytes == 0) {
        return 0;
    }
    int64_t lines = (int64_t)extent.lines;
    int64_t registers = (int64_t)ptoisa_parts(extent.line_bytes, PTOISA_REPEAT_BYTES);
    const int32_t *fit = fits[ptoisa_a5_fit_of(info, (uint64_t)registers)];
    int64_t cycles =
        lines == 1 ? fit[0] * registers + fit[1] : (fit[2] * registers + fit[3]) * lines + fit[4];
    return (uint64_t)(cycles + PTOISA_CYCLE / 2) / PTOISA_CYCLE;
}

#endif
