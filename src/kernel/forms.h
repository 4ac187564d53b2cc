// The forms of instructions: how many tiles each writes and reads, and which function does it.
//
// Most instructions have one of a few forms; each of the others has its own case in the table and
// in the executor. One list serves both.

#ifndef PWSP_FORMS_H
#define PWSP_FORMS_H

#include "list.h"

// clang-format off
#define PWSP_INSNS_UNARY(INSN) /* op, function: (dst, src) */                                      \
    INSN(TEXP, texp) INSN(TLOG, tlog) INSN(TSQRT, tsqrt) INSN(TRSQRT, trsqrt)                      \
    INSN(TRECIP, trecip) INSN(TABS, tabs) INSN(TNEG, tneg) INSN(TRELU, trelu) INSN(TNOT, tnot)     \
    INSN(TCOLMAX, tcolmax) INSN(TCOLMIN, tcolmin) INSN(TCOLPROD, tcolprod)                         \
    INSN(TPAIRREDUCESUM, tpairreducesum)                                                           \
    INSN(TROWEXPAND, trowexpand) INSN(TCOLEXPAND, tcolexpand) INSN(TMOV, tmov)
#define PWSP_INSNS_BINARY(INSN) /* (dst, src, src) */                                              \
    INSN(TADD, tadd) INSN(TSUB, tsub) INSN(TMUL, tmul) INSN(TDIV, tdiv)                            \
    INSN(TMAX, tmax) INSN(TMIN, tmin) INSN(TAND, tand) INSN(TOR, tor)                              \
    INSN(TSHL, tshl) INSN(TSHR, tshr) INSN(TPARTADD, tpartadd) INSN(TPARTMUL, tpartmul)            \
    INSN(TPARTMAX, tpartmax) INSN(TPARTMIN, tpartmin) INSN(TSUBRELU, tsubrelu)                     \
    INSN(TROWEXPANDADD, trowexpandadd) INSN(TROWEXPANDSUB, trowexpandsub)                          \
    INSN(TROWEXPANDMUL, trowexpandmul) INSN(TROWEXPANDDIV, trowexpanddiv)                          \
    INSN(TROWEXPANDMAX, trowexpandmax) INSN(TROWEXPANDMIN, trowexpandmin)                          \
    INSN(TROWEXPANDEXPDIF, trowexpandexpdif)                                                       \
    INSN(TCOLEXPANDADD, tcolexpandadd) INSN(TCOLEXPANDSUB, tcolexpandsub)                          \
    INSN(TCOLEXPANDMUL, tcolexpandmul) INSN(TCOLEXPANDDIV, tcolexpanddiv)                          \
    INSN(TCOLEXPANDMAX, tcolexpandmax) INSN(TCOLEXPANDMIN, tcolexpandmin)                          \
    INSN(TCOLEXPANDEXPDIF, tcolexpandexpdif)                                                       \
    INSN(TCONCAT, tconcat) INSN(TSORT32, tsort32) INSN(TSCATTER, tscatter)                         \
    INSN(TMATMUL, tmatmul) INSN(TGEMV, tgemv) INSN(TGATHERB, tgatherb)
#define PWSP_INSNS_UPDATE(INSN) /* (dst, src, src), and dst is read */                             \
    INSN(TFUSEDMULADD, tfusedmuladd) INSN(TMULADDDST, tmuladddst)                                  \
    INSN(TFUSEDMULADDRELU, tfusedmuladdrelu)
#define PWSP_INSNS_TERNARY(INSN) /* (dst, src, src, src) */                                        \
    INSN(TADDC, taddc) INSN(TSUBC, tsubc) INSN(TDEQUANT, tdequant)                                 \
    INSN(TMATMUL_ACC, tmatmul_acc) INSN(TMATMUL_BIAS, tmatmul_bias)                                \
    INSN(TGEMV_ACC, tgemv_acc) INSN(TGEMV_BIAS, tgemv_bias)
#define PWSP_INSNS_SCALAR(INSN) /* (dst, src, scalar) */                                           \
    INSN(TADDS, tadds) INSN(TSUBS, tsubs) INSN(TMULS, tmuls) INSN(TDIVS, tdivs)                    \
    INSN(TMAXS, tmaxs) INSN(TMINS, tmins) INSN(TANDS, tands) INSN(TORS, tors)                      \
    INSN(TSHLS, tshls) INSN(TSHRS, tshrs) INSN(TREMS, trems) INSN(TFMODS, tfmods)                  \
    INSN(TPOWS, tpows) INSN(TLRELU, tlrelu)
#define PWSP_INSNS_TMP(INSN) /* (dst, src, tmp) */                                                 \
    INSN(TROWSUM, trowsum) INSN(TROWMAX, trowmax) INSN(TROWMIN, trowmin)                           \
    INSN(TROWPROD, trowprod) INSN(TROWARGMAX, trowargmax) INSN(TROWARGMIN, trowargmin)             \
    INSN(TCOLARGMAX, tcolargmax) INSN(TCOLARGMIN, tcolargmin) INSN(TTRANS, ttrans)
#define PWSP_INSNS_BINARY_TMP(INSN) /* (dst, src, src, tmp) */                                     \
    INSN(TXOR, txor) INSN(TREM, trem) INSN(TFMOD, tfmod) INSN(TPOW, tpow)                          \
    INSN(TGATHER, tgather) INSN(TPRELU, tprelu)
// clang-format on

typedef struct pwsp_form {
    uint8_t dst_count, src_count;
    bool has_tmp, has_scalar;
    bool is_dst_read;  // dst[0]
    bool is_global;    // src[0] of a load, dst[0] of a store is global memory
} pwsp_form;

// Does an instruction read its first destination?
PWSP_INTERNAL bool pwsp_op_reads_dst(ptoisa_op op);

// The form of an instruction; no destination: it is not for kernels to write.
PWSP_INTERNAL pwsp_form pwsp_form_of(ptoisa_op op);

#endif
