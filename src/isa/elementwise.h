// Element-wise instructions.
//
// All compute over the valid region of the destination; the sources are row-major tiles of its
// element type in UB, valid at least there, and may be the destination itself unless said below.
//
//  - f16 and bf16 are computed in f32 and rounded to nearest even once, at the end. A fused
//    instruction (TAXPY, TMULADDDST, TFUSEDMULADD and with RELU) rounds its product and sum once.
//  - Integers wrap. x / 0 and x % 0 are 0. A shift by the width or more leaves 0, or the sign.
//  - Any NaN makes TMAX and TMIN a NaN; TRELU of a NaN is a NaN, of -0 it is -0. exp, log, sqrt,
//    reciprocals and powers of special values are C's. TREM has the sign of the divisor,
//    TFMOD the dividend's.
//  - A scalar is converted to the tiles' element type first: floats to nearest even, integers
//    towards zero, then they wrap.
//
// Element types: A2/A3's and, for all machines, A5's additions: 8, 16 and 32-bit integers of both
// signs and bf16. No 64-bit integers.
//
// 64 x 64 f32 on an AVX-512 machine (EPYC 9004, gcc 12 -O2), a whole call with its checks, medians:
// TADD 0.44 us (its three tiles are more than the first-level cache; in place 0.21), TADDS 0.22,
// TDIV 0.46, TSQRT 0.72, TRSQRT 1.14, TEXP 0.71, TLOG 1.4; with AVX2 TEXP 1.3. f16: TADD 0.85, TEXP
// 1.15. An empty call is 0.03 us, and half of that without checks. Portable C alone: 1 to 5 us,
// TSQRT 20, TEXP 62, for its multiply-adds are emulated.

#ifndef PTOISA_ELEMENTWISE_H
#define PTOISA_ELEMENTWISE_H

#include "core.h"
#include "map.h"

#define PTOISA_SET_MAP_FLOAT                                                                       \
    (PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_BF16) | PTOISA_SET(PTOISA_F32))
#define PTOISA_SET_MAP_SIGNED                                                                      \
    (PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_I16) | PTOISA_SET(PTOISA_I32))
#define PTOISA_SET_MAP_INT                                                                         \
    (PTOISA_SET_MAP_SIGNED | PTOISA_SET(PTOISA_U8) | PTOISA_SET(PTOISA_U16) |                      \
     PTOISA_SET(PTOISA_U32))
#define PTOISA_SET_MAP (PTOISA_SET_MAP_FLOAT | PTOISA_SET_MAP_INT)

// -- checks ---------------------------------------------------------------------------------------

// Is the tile row-major in UB, of a set of types, valid at least for rows x cols?
PTOISA_FN bool ptoisa_check_rows(ptoisa_core *core, ptoisa_op op, const char *which,
                                 const ptoisa_tile *tile, uint32_t dtypes, uint32_t rows,
                                 uint32_t cols) {
    if (!ptoisa_check_operand(core, op, which, tile, dtypes, PTOISA_VEC, rows, cols)) {
        return false;
    }
    if (tile->layout != PTOISA_ROW_MAJOR) {
        return ptoisa_fault(core, op, "%s is not row-major", which);
    }
    return true;
}

// The destination, and up to three sources of its type (NULL: none).
PTOISA_FN bool ptoisa_check_maps(ptoisa_core *core, ptoisa_op op, uint32_t dtypes,
                                 const ptoisa_tile *d, const ptoisa_tile *s0, const ptoisa_tile *s1,
                                 const ptoisa_tile *s2) {
    uint32_t same = PTOISA_SET(d->dtype), rows = d->valid_rows, cols = d->valid_cols;
    return ptoisa_check_rows(core, op, "dst", d, dtypes, rows, cols) &&
           ptoisa_check_rows(core, op, "src0", s0, same, rows, cols) &&
           (s1 == NULL || s1 == d || ptoisa_check_rows(core, op, "src1", s1, same, rows, cols)) &&
           (s2 == NULL || s2 == d || ptoisa_check_rows(core, op, "src2", s2, same, rows, cols));
}

// The scratch that the device needs: any tile in UB.
PTOISA_FN bool ptoisa_check_scratch(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *tmp) {
    if (tmp == NULL) {
        return ptoisa_fault(core, op, "there is no scratch tile");
    }
    if (!ptoisa_check_tile(core, op, "tmp", tmp)) {
        return false;
    }
    return tmp->memory == PTOISA_VEC || ptoisa_fault(core, op, "tmp is not in UB");
}

// On A2/A3 some instructions cannot work in place.
PTOISA_FN bool ptoisa_check_apart(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                  const ptoisa_tile *s) {
    if (core->machine->family != PTOISA_A2A3 || core->is_as_simulator || d->data == NULL ||
        s->data == NULL) {
        return true;
    }
    uintptr_t d_at = (uintptr_t)d->data, s_at = (uintptr_t)s->data;
    if (d_at < s_at + ptoisa_tile_bytes(s) && s_at < d_at + ptoisa_tile_bytes(d)) {
        return ptoisa_fault(core, op, "dst must not be src on A2/A3");
    }
    return true;
}

// -- common to all instructions -------------------------------------------------------------------

// Maps tiles over d's valid region, once they are checked; s1 and s2 may be NULL.
PTOISA_FN void ptoisa_map_tiles(ptoisa_loops *loops, const ptoisa_tile *d, const ptoisa_tile *s0,
                                const ptoisa_tile *s1, const ptoisa_tile *s2) {
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = d->data, map.d_pitch = d->cols;
    map.a = s0->data, map.a_pitch = s0->cols;
    if (s1) {
        map.b = s1->data, map.b_pitch = s1->cols;
    }
    if (s2) {
        map.c = s2->data, map.c_pitch = s2->cols;
    }
    map.rows = d->valid_rows;
    map.cols = d->valid_cols;
    ptoisa_map_run(loops, (ptoisa_dtype)d->dtype, (ptoisa_dtype)s0->dtype, map);
}

PTOISA_FN void ptoisa_elementwise(ptoisa_core *core, ptoisa_op op, ptoisa_loops *loops,
                                  uint32_t dtypes, const ptoisa_tile *d, const ptoisa_tile *s0,
                                  const ptoisa_tile *s1, const ptoisa_tile *s2) {
    if (PTOISA_CHECKED && !ptoisa_check_maps(core, op, dtypes, d, s0, s1, s2)) {
        return;
    }
    ptoisa_issue(core, op, d, s0, s1);
    if (!core->is_dry) {
        ptoisa_map_tiles(loops, d, s0, s1, s2);
    }
}

// x in an element type. f16 and bf16 go through f32 made odd where it is inexact, so that rounding
// again is right.
PTOISA_FN uint32_t ptoisa_scalar_bits(ptoisa_dtype dtype, double x) {
    if (!ptoisa_dtype_is_float(dtype)) {
        bool is_in_range = x > -0x1p63 && x < 0x1p63;
        int64_t value = is_in_range ? (int64_t)x : x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
        return (uint32_t)(uint64_t)value;
    }
    float rounded = (float)x;
    uint32_t bits = ptoisa_bits_from_f32(rounded);
    if (dtype == PTOISA_F32) {
        return bits;
    }
    bool is_below = (double)ptoisa_abs_c(rounded) < (x < 0 ? -x : x);
    if ((double)rounded != x && x == x && !(bits & 1)) {
        rounded = ptoisa_f32_from_bits(is_below ? bits + 1 : bits - 1);
    }
    return dtype == PTOISA_F16 ? ptoisa_f16_from_f32(rounded) : ptoisa_bf16_from_f32(rounded);
}

// The scalar as an array of one element, wherever its bytes are in a word.
typedef union ptoisa_scalar {
    uint32_t u32;
    uint16_t u16;
    uint8_t u8;
    float f32;
} ptoisa_scalar;

PTOISA_INLINE ptoisa_scalar ptoisa_scalar_of(ptoisa_dtype dtype, double x) {
    ptoisa_scalar scalar;
    scalar.u32 = 0;
    uint32_t bits = ptoisa_scalar_bits(dtype, x), size = ptoisa_dtype_size(dtype);
    if (size == 4) {
        scalar.u32 = bits;
    } else if (size == 2) {
        scalar.u16 = (uint16_t)bits;
    } else {
        scalar.u8 = (uint8_t)bits;
    }
    return scalar;
}

// Maps a tile, a scalar and perhaps another tile, once they are checked.
PTOISA_FN void ptoisa_map_scalar(ptoisa_loops *loops, const ptoisa_tile *d, const ptoisa_tile *s,
                                 double x, const ptoisa_tile *s2) {
    ptoisa_scalar scalar = ptoisa_scalar_of((ptoisa_dtype)s->dtype, x);
    if (d->dtype != s->dtype) {  // TAXPY into f32: x is of the source's type
        scalar.f32 = s->dtype == PTOISA_F16 ? ptoisa_f32_from_f16(scalar.u16)
                                            : ptoisa_f32_from_bf16(scalar.u16);
    }
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = d->data, map.d_pitch = d->cols;
    map.a = s->data, map.a_pitch = s->cols;
    map.b = &scalar, map.is_scalar = true;
    if (s2) {
        map.c = s2->data, map.c_pitch = s2->cols;
    }
    map.rows = d->valid_rows;
    map.cols = d->valid_cols;
    ptoisa_map_run(loops, (ptoisa_dtype)d->dtype, (ptoisa_dtype)s->dtype, map);
}

PTOISA_FN void ptoisa_elementwise_scalar(ptoisa_core *core, ptoisa_op op, ptoisa_loops *loops,
                                         uint32_t dtypes, const ptoisa_tile *d,
                                         const ptoisa_tile *s, double x, const ptoisa_tile *s2) {
    if (PTOISA_CHECKED && !ptoisa_check_maps(core, op, dtypes, d, s, s2, NULL)) {
        return;
    }
    ptoisa_issue(core, op, d, s, s2);
    if (!core->is_dry) {
        ptoisa_map_scalar(loops, d, s, x, s2);
    }
}

// -- tile and tile --------------------------------------------------------------------------------

#define PTOISA_DEFINE_BINARY(function, op, map_op, dtypes)                                         \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s0, const ptoisa_tile *s1) {               \
        ptoisa_elementwise(core, PTOISA_##op, &ptoisa_loops_##map_op, dtypes, d, s0, s1, NULL);    \
    }

PTOISA_DEFINE_BINARY(tadd, TADD, ADD, PTOISA_SET_MAP)
PTOISA_DEFINE_BINARY(tsub, TSUB, SUB, PTOISA_SET_MAP)
PTOISA_DEFINE_BINARY(tmul, TMUL, MUL, PTOISA_SET_MAP)
PTOISA_DEFINE_BINARY(tdiv, TDIV, DIV, PTOISA_SET_MAP)
PTOISA_DEFINE_BINARY(tmax, TMAX, MAX, PTOISA_SET_MAP)
PTOISA_DEFINE_BINARY(tmin, TMIN, MIN, PTOISA_SET_MAP)
PTOISA_DEFINE_BINARY(tand, TAND, AND, PTOISA_SET_MAP_INT)
PTOISA_DEFINE_BINARY(tor, TOR, OR, PTOISA_SET_MAP_INT)
PTOISA_DEFINE_BINARY(tshl, TSHL, SHL, PTOISA_SET_MAP_INT)
PTOISA_DEFINE_BINARY(tshr, TSHR, SHR, PTOISA_SET_MAP_INT)
PTOISA_DEFINE_BINARY(tsubrelu, TSUBRELU, SUB_RELU, PTOISA_SET_MAP_FLOAT)

// These have a scratch tile on the device; is_needed: on every machine, so that t cannot be NULL.
#define PTOISA_DEFINE_BINARY_SCRATCH(function, op, map_op, dtypes, is_needed)                      \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s0, const ptoisa_tile *s1,                 \
                                     const ptoisa_tile *t) {                                       \
        if (!PTOISA_CHECKED || (t == NULL && !(is_needed)) ||                                      \
            ptoisa_check_scratch(core, PTOISA_##op, t)) {                                          \
            ptoisa_elementwise(core, PTOISA_##op, &ptoisa_loops_##map_op, dtypes, d, s0, s1,       \
                               NULL);                                                              \
        }                                                                                          \
    }

PTOISA_DEFINE_BINARY_SCRATCH(txor, TXOR, XOR, PTOISA_SET_MAP_INT, true)
PTOISA_DEFINE_BINARY_SCRATCH(trem, TREM, REM, PTOISA_SET_MAP, true)
PTOISA_DEFINE_BINARY_SCRATCH(tfmod, TFMOD, FMOD, PTOISA_SET_MAP, false)
PTOISA_DEFINE_BINARY_SCRATCH(tpow, TPOW, POW, PTOISA_SET_MAP, false)

// -- tile and scalar ------------------------------------------------------------------------------

#define PTOISA_DEFINE_SCALAR(function, op, map_op, dtypes)                                         \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s, double x) {                             \
        ptoisa_elementwise_scalar(core, PTOISA_##op, &ptoisa_loops_##map_op, dtypes, d, s, x,      \
                                  NULL);                                                           \
    }

PTOISA_DEFINE_SCALAR(tadds, TADDS, ADD, PTOISA_SET_MAP)
PTOISA_DEFINE_SCALAR(tsubs, TSUBS, SUB, PTOISA_SET_MAP)
PTOISA_DEFINE_SCALAR(tmuls, TMULS, MUL, PTOISA_SET_MAP)
PTOISA_DEFINE_SCALAR(tdivs, TDIVS, DIV, PTOISA_SET_MAP)
PTOISA_DEFINE_SCALAR(tmaxs, TMAXS, MAX, PTOISA_SET_MAP)
PTOISA_DEFINE_SCALAR(tmins, TMINS, MIN, PTOISA_SET_MAP)
PTOISA_DEFINE_SCALAR(tshls, TSHLS, SHL, PTOISA_SET_MAP_INT)
PTOISA_DEFINE_SCALAR(tshrs, TSHRS, SHR, PTOISA_SET_MAP_INT)
PTOISA_DEFINE_SCALAR(trems, TREMS, REM, PTOISA_SET_MAP)
PTOISA_DEFINE_SCALAR(tfmods, TFMODS, FMOD, PTOISA_SET_MAP)
PTOISA_DEFINE_SCALAR(tpows, TPOWS, POW, PTOISA_SET_MAP)

#define PTOISA_SET_SIMULATED (PTOISA_SET(PTOISA_I16) | PTOISA_SET(PTOISA_I32))

// Is this an instruction on integers that the core takes only as the simulator does?
PTOISA_INLINE bool ptoisa_is_simulated(const ptoisa_core *core, const ptoisa_tile *d) {
    return core->is_as_simulator && PTOISA_SET_SIMULATED >> d->dtype & 1;
}

// d = s > 0 ? s : slope * s with the slope an integer, of a tile or x; or the logarithm, cut off.
PTOISA_FN void ptoisa_simulated(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                const ptoisa_tile *s, const ptoisa_tile *slope, double x) {
    if (PTOISA_CHECKED && !ptoisa_check_maps(core, op, PTOISA_SET_SIMULATED, d, s, slope, NULL)) {
        return;
    }
    ptoisa_issue(core, op, d, s, slope);
    const ptoisa_dtype dtype = (ptoisa_dtype)d->dtype;
    const uint32_t count = core->is_dry ? 0 : d->valid_rows * d->valid_cols;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t r = i / d->valid_cols, c = i % d->valid_cols;
        double value = ptoisa_get(s, r, c);
        uint64_t by = slope ? (uint64_t)(int64_t)ptoisa_get(slope, r, c)
                            : (uint64_t)(int64_t)(int32_t)ptoisa_scalar_bits(dtype, x);
        uint64_t result = (uint64_t)(int64_t)value;
        if (op == PTOISA_TLOG) {
            result = value > 0 ? (uint64_t)ptoisa_log_c((float)value) : (uint64_t)1 << 31;
            result = value <= 0 && dtype == PTOISA_I16 ? 0x8000 : result;
        } else if (value <= 0) {
            result *= by;
        }
        ptoisa_scalar word;
        word.u32 = (uint32_t)result;
        uint16_t half = (uint16_t)result;
        memcpy((uint8_t *)d->data + ptoisa_offset(d, r, c) * ptoisa_dtype_size(dtype),
               dtype == PTOISA_I16 ? (const void *)&half : (const void *)&word.u32,
               ptoisa_dtype_size(dtype));
    }
}

// d = s > 0 ? s : x * s.
PTOISA_FN void ptoisa_tlrelu(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                             double x) {
    if (ptoisa_is_simulated(core, d)) {
        ptoisa_simulated(core, PTOISA_TLRELU, d, s, NULL, x);
        return;
    }
    ptoisa_elementwise_scalar(core, PTOISA_TLRELU, &ptoisa_loops_LEAKY, PTOISA_SET_MAP_FLOAT, d, s,
                              x, NULL);
}

// d = x / s, TDIVS with its operands the other way.
PTOISA_FN void ptoisa_tsdiv(ptoisa_core *core, const ptoisa_tile *d, double x,
                            const ptoisa_tile *s) {
    ptoisa_elementwise_scalar(core, PTOISA_TSDIV, &ptoisa_loops_DIV_BY, PTOISA_SET_MAP, d, s, x,
                              NULL);
}

#define PTOISA_DEFINE_SCALAR_APART(function, op, map_op)                                           \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s, double x) {                             \
        if (!PTOISA_CHECKED || ptoisa_check_apart(core, PTOISA_##op, d, s)) {                      \
            ptoisa_elementwise_scalar(core, PTOISA_##op, &ptoisa_loops_##map_op,                   \
                                      PTOISA_SET_MAP_INT, d, s, x, NULL);                          \
        }                                                                                          \
    }

PTOISA_DEFINE_SCALAR_APART(tands, TANDS, AND)
PTOISA_DEFINE_SCALAR_APART(tors, TORS, OR)

PTOISA_FN void ptoisa_txors(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s, double x,
                            const ptoisa_tile *t) {
    if (!PTOISA_CHECKED || ptoisa_check_scratch(core, PTOISA_TXORS, t)) {
        ptoisa_elementwise_scalar(core, PTOISA_TXORS, &ptoisa_loops_XOR, PTOISA_SET_MAP_INT, d, s,
                                  x, NULL);
    }
}

// d += x * s; s may also be f16 or bf16 where d is f32.
PTOISA_FN void ptoisa_taxpy(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                            double x) {
    if (PTOISA_CHECKED) {
        uint32_t rows = d->valid_rows, cols = d->valid_cols;
        uint32_t types = d->dtype == PTOISA_F32 ? PTOISA_SET_MAP_FLOAT : PTOISA_SET(d->dtype);
        if (!ptoisa_check_rows(core, PTOISA_TAXPY, "dst", d, PTOISA_SET_MAP_FLOAT, rows, cols) ||
            !ptoisa_check_rows(core, PTOISA_TAXPY, "src0", s, types, rows, cols)) {
            return;
        }
    }
    ptoisa_issue(core, PTOISA_TAXPY, d, s, NULL);
    if (!core->is_dry) {
        ptoisa_map_scalar(&ptoisa_loops_MUL_ADD, d, s, x, d);
    }
}

// -- one tile -------------------------------------------------------------------------------------

#define PTOISA_DEFINE_UNARY(function, op, map_op, dtypes)                                          \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s) {                                       \
        ptoisa_elementwise(core, PTOISA_##op, &ptoisa_loops_##map_op, dtypes, d, s, NULL, NULL);   \
    }

PTOISA_DEFINE_UNARY(texp, TEXP, EXP, PTOISA_SET_MAP_FLOAT)
PTOISA_DEFINE_UNARY(tsqrt, TSQRT, SQRT, PTOISA_SET_MAP_FLOAT)
PTOISA_DEFINE_UNARY(tabs, TABS, ABS, PTOISA_SET_MAP_FLOAT | PTOISA_SET_MAP_SIGNED)
PTOISA_DEFINE_UNARY(tneg, TNEG, NEG, PTOISA_SET_MAP)
PTOISA_DEFINE_UNARY(trelu, TRELU, RELU, PTOISA_SET_MAP_FLOAT | PTOISA_SET_MAP_SIGNED)
PTOISA_DEFINE_UNARY(tnot, TNOT, NOT, PTOISA_SET_MAP_INT)

PTOISA_FN void ptoisa_tlog(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s) {
    if (ptoisa_is_simulated(core, d)) {
        ptoisa_simulated(core, PTOISA_TLOG, d, s, NULL, 0);
        return;
    }
    ptoisa_elementwise(core, PTOISA_TLOG, &ptoisa_loops_LOG, PTOISA_SET_MAP_FLOAT, d, s, NULL,
                       NULL);
}

#define PTOISA_DEFINE_UNARY_APART(function, op, map_op, dtypes)                                    \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s) {                                       \
        if (!PTOISA_CHECKED || ptoisa_check_apart(core, PTOISA_##op, d, s)) {                      \
            ptoisa_elementwise(core, PTOISA_##op, &ptoisa_loops_##map_op, dtypes, d, s, NULL,      \
                               NULL);                                                              \
        }                                                                                          \
    }

PTOISA_DEFINE_UNARY_APART(trsqrt, TRSQRT, RSQRT, PTOISA_SET_MAP_FLOAT)
PTOISA_DEFINE_UNARY_APART(trecip, TRECIP, RECIP, PTOISA_SET_MAP)

// -- three operands -------------------------------------------------------------------------------

// d = s > 0 ? s : slope * s.
PTOISA_FN void ptoisa_tprelu(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                             const ptoisa_tile *slope, const ptoisa_tile *t) {
    if (PTOISA_CHECKED && !ptoisa_check_scratch(core, PTOISA_TPRELU, t)) {
        return;
    }
    if (ptoisa_is_simulated(core, d)) {
        ptoisa_simulated(core, PTOISA_TPRELU, d, s, slope, 0);
    } else {
        ptoisa_elementwise(core, PTOISA_TPRELU, &ptoisa_loops_LEAKY, PTOISA_SET_MAP_FLOAT, d, s,
                           slope, NULL);
    }
}

// d = (s0 + s1) + s2 and d = (s0 - s1) + s2, and the same with a scalar for s1.
PTOISA_FN void ptoisa_taddc(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                            const ptoisa_tile *s1, const ptoisa_tile *s2) {
    ptoisa_elementwise(core, PTOISA_TADDC, &ptoisa_loops_ADD_ADD, PTOISA_SET_MAP, d, s0, s1, s2);
}

PTOISA_FN void ptoisa_tsubc(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                            const ptoisa_tile *s1, const ptoisa_tile *s2) {
    ptoisa_elementwise(core, PTOISA_TSUBC, &ptoisa_loops_SUB_ADD, PTOISA_SET_MAP, d, s0, s1, s2);
}

PTOISA_FN void ptoisa_taddsc(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                             double x, const ptoisa_tile *s1) {
    ptoisa_elementwise_scalar(core, PTOISA_TADDSC, &ptoisa_loops_ADD_ADD, PTOISA_SET_MAP, d, s0, x,
                              s1);
}

PTOISA_FN void ptoisa_tsubsc(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                             double x, const ptoisa_tile *s1) {
    ptoisa_elementwise_scalar(core, PTOISA_TSUBSC, &ptoisa_loops_SUB_ADD, PTOISA_SET_MAP, d, s0, x,
                              s1);
}

// d = s0 * d + s1; the same, negative results 0; d = d + s0 * s1.
#define PTOISA_DEFINE_FUSED(function, op, map_op, y, z)                                            \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s0, const ptoisa_tile *s1) {               \
        if (PTOISA_CHECKED &&                                                                      \
            !ptoisa_check_maps(core, PTOISA_##op, PTOISA_SET_MAP_FLOAT, d, s0, s1, NULL)) {        \
            return;                                                                                \
        }                                                                                          \
        ptoisa_issue(core, PTOISA_##op, d, s0, s1);                                                \
        if (!core->is_dry) {                                                                       \
            ptoisa_map_tiles(&ptoisa_loops_##map_op, d, s0, y, z);                                 \
        }                                                                                          \
    }

PTOISA_DEFINE_FUSED(tfusedmuladd, TFUSEDMULADD, MUL_ADD, d, s1)
PTOISA_DEFINE_FUSED(tfusedmuladdrelu, TFUSEDMULADDRELU, MUL_ADD_RELU, d, s1)
PTOISA_DEFINE_FUSED(tmuladddst, TMULADDDST, MUL_ADD, s1, d)

// -- sources of different valid regions -----------------------------------------------------------

// Copies the part of d's valid region from (row, col) on from s, which is valid there.
PTOISA_FN void ptoisa_part_copy(const ptoisa_tile *d, const ptoisa_tile *s, uint32_t row,
                                uint32_t rows, uint32_t col) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    for (uint32_t r = row; r < rows && col < d->valid_cols; r++) {
        memmove((uint8_t *)d->data + ptoisa_offset(d, r, col) * size,
                (const uint8_t *)s->data + ptoisa_offset(s, r, col) * size,
                (size_t)(d->valid_cols - col) * size);
    }
}

// Where both sources are valid: the operation; elsewhere the one that is. One must be valid in all
// of d's region, and the other must not reach beyond.
PTOISA_FN void ptoisa_part(ptoisa_core *core, ptoisa_op op, ptoisa_loops *loops,
                           const ptoisa_tile *d, const ptoisa_tile *s0, const ptoisa_tile *s1) {
    bool is_s0_whole = s0->valid_rows == d->valid_rows && s0->valid_cols == d->valid_cols;
    const ptoisa_tile *whole = is_s0_whole ? s0 : s1, *part = is_s0_whole ? s1 : s0;
    if (PTOISA_CHECKED) {
        uint32_t same = PTOISA_SET(d->dtype);
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET_MAP, 0, 0) ||
            !ptoisa_check_rows(core, op, "src0", s0, same, 0, 0) ||
            !ptoisa_check_rows(core, op, "src1", s1, same, 0, 0)) {
            return;
        }
        if (whole->valid_rows != d->valid_rows || whole->valid_cols != d->valid_cols ||
            part->valid_rows > d->valid_rows || part->valid_cols > d->valid_cols) {
            ptoisa_fault(core, op,
                         "%u x %u and %u x %u valid elements, and dst has %u x %u: one must be "
                         "valid in all of dst, the other in a part",
                         s0->valid_rows, s0->valid_cols, s1->valid_rows, s1->valid_cols,
                         d->valid_rows, d->valid_cols);
            return;
        }
    }
    ptoisa_issue(core, op, d, s0, s1);
    if (core->is_dry) {
        return;
    }
    uint32_t rows = ptoisa_least(part->valid_rows, d->valid_rows);
    uint32_t cols = ptoisa_least(part->valid_cols, d->valid_cols);
    ptoisa_tile both = ptoisa_tile_valid(*d, rows, cols);
    ptoisa_map_tiles(loops, &both, s0, s1, NULL);
    ptoisa_part_copy(d, whole, 0, rows, cols);
    ptoisa_part_copy(d, whole, rows, d->valid_rows, 0);
}

#define PTOISA_DEFINE_PART(function, op, map_op)                                                   \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s0, const ptoisa_tile *s1) {               \
        ptoisa_part(core, PTOISA_##op, &ptoisa_loops_##map_op, d, s0, s1);                         \
    }

PTOISA_DEFINE_PART(tpartadd, TPARTADD, ADD)
PTOISA_DEFINE_PART(tpartmul, TPARTMUL, MUL)
PTOISA_DEFINE_PART(tpartmax, TPARTMAX, MAX)
PTOISA_DEFINE_PART(tpartmin, TPARTMIN, MIN)

#endif
