// Rules of instructions: the element types that each takes on each family of machines.
//
// The list that lowering makes is right for the library. A device takes less: its headers refuse
// types with a static assertion. PWSP_LEGAL is the table of these rules, a row for an instruction,
// and two things are done by it:
//
//      legalise      rewrites an instruction whose type the machine lacks through f32: TCVT of its
//                    sources, the instruction, TCVT of the result. The bits are the same: bf16
//                    arithmetic is f32 arithmetic that is rounded once, and so is i16 division
//                    (the quotient of two i16 is nearer to no other integer than 2^-15 relative)
//      refuse        fails where the table has no way, and names instruction, type and machine
//
// Both happen when a kernel is made, for its machine. So one list is run, counted and emitted.
//
// Columns of the table: the instruction; the types that A2/A3 (910B) takes; those that A2/A3
// reaches through f32; the types that A5 (950PR) takes. The source of a row is the comment above
// it: ptoisa n.m is a section of the notes on PTO-ISA, checked n a rule of the rules confirmed
// against its headers, [hdr] a static assertion that was seen, [read] documentation alone.
// Instructions without a row are checked by the instruction itself (../isa).

#ifndef PWSP_LEGAL_H
#define PWSP_LEGAL_H

#include "body.h"

#define PWSP_LEGAL_F   PTOISA_SET_FLOAT
#define PWSP_LEGAL_BIN PTOISA_SET_BIN
#define PWSP_LEGAL_BF  PTOISA_SET(PTOISA_BF16)
#define PWSP_LEGAL_DIV (PTOISA_SET(PTOISA_BF16) | PTOISA_SET(PTOISA_I16))
#define PWSP_LEGAL_F5  (PWSP_LEGAL_F | PWSP_LEGAL_BF)
#define PWSP_LEGAL_BIN5                                                                            \
    (PWSP_LEGAL_BIN | PWSP_LEGAL_BF | PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_U8) |              \
     PTOISA_SET(PTOISA_U16) | PTOISA_SET(PTOISA_U32))

// clang-format off
#define PWSP_LEGAL(ROW) /* op, A2/A3, through f32, A5 */                                           \
    /* ptoisa 5.2: BIN; no bf16: checked 1 [hdr]. */                                               \
    ROW(TADD, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                      \
    ROW(TSUB, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                      \
    ROW(TMUL, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                      \
    ROW(TMAX, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                      \
    ROW(TMIN, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                      \
    ROW(TADDS, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                     \
    ROW(TSUBS, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                     \
    ROW(TMULS, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                     \
    ROW(TMAXS, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                     \
    ROW(TMINS, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                     \
    /* checked 2 [hdr]: quotients of two tiles half and float, A5 adds integers; else BIN. */      \
    ROW(TDIV, PWSP_LEGAL_F, PWSP_LEGAL_DIV, PWSP_LEGAL_BIN5)                                       \
    ROW(TROWEXPANDDIV, PWSP_LEGAL_F, PWSP_LEGAL_DIV, PWSP_LEGAL_BIN5)                              \
    ROW(TCOLEXPANDDIV, PWSP_LEGAL_F, PWSP_LEGAL_DIV, PWSP_LEGAL_BIN5)                              \
    ROW(TDIVS, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                     \
    ROW(TSDIV, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                     \
    /* ptoisa 5.3: BIN; no bf16: checked 1 [hdr]; EXPDIF half and float [read]. */                 \
    ROW(TROWEXPANDADD, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TROWEXPANDSUB, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TROWEXPANDMUL, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TROWEXPANDMAX, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TROWEXPANDMIN, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TROWEXPANDEXPDIF, PWSP_LEGAL_F, PWSP_LEGAL_BF, PWSP_LEGAL_F5)                              \
    ROW(TCOLEXPANDADD, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TCOLEXPANDSUB, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TCOLEXPANDMUL, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TCOLEXPANDMAX, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TCOLEXPANDMIN, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                             \
    ROW(TCOLEXPANDEXPDIF, PWSP_LEGAL_F, PWSP_LEGAL_BF, PWSP_LEGAL_F5)                              \
    /* ptoisa 5.3: BIN; checked 1 and 7: the result has the source's type [hdr]. */                \
    ROW(TROWSUM, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                   \
    ROW(TROWMAX, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                   \
    ROW(TROWMIN, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                   \
    ROW(TROWPROD, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                  \
    ROW(TCOLSUM, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                   \
    ROW(TCOLMAX, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                   \
    ROW(TCOLMIN, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                   \
    ROW(TCOLPROD, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                  \
    /* ptoisa 5.2: half and float; TNEG is BIN, TRELU has i32 as well [read]. */                   \
    ROW(TEXP, PWSP_LEGAL_F, PWSP_LEGAL_BF, PWSP_LEGAL_F5)                                          \
    ROW(TLOG, PWSP_LEGAL_F, PWSP_LEGAL_BF, PWSP_LEGAL_F5)                                          \
    ROW(TSQRT, PWSP_LEGAL_F, PWSP_LEGAL_BF, PWSP_LEGAL_F5)                                         \
    ROW(TRSQRT, PWSP_LEGAL_F, PWSP_LEGAL_BF, PWSP_LEGAL_F5)                                        \
    ROW(TABS, PWSP_LEGAL_F, PWSP_LEGAL_BF, PWSP_LEGAL_F5)                                          \
    ROW(TNEG, PWSP_LEGAL_BIN, PWSP_LEGAL_BF, PWSP_LEGAL_BIN5)                                      \
    ROW(TRELU, PWSP_LEGAL_F | PTOISA_SET(PTOISA_I32), PWSP_LEGAL_BF,                               \
        PWSP_LEGAL_F5 | PTOISA_SET(PTOISA_I32))
// clang-format on

typedef struct pwsp_legal_row {
    uint8_t op;            // ptoisa_op
    uint32_t dtypes[2];    // sets, by ptoisa_family
    uint32_t through_f32;  // on A2/A3
} pwsp_legal_row;

// The row of an instruction; NULL if it has none.
PWSP_INTERNAL const pwsp_legal_row *pwsp_legal_row_of(ptoisa_op op);

// Makes the list legal for the body's machine; false with a fault that names instruction, type and
// machine, or when memory is out.
PWSP_INTERNAL bool pwsp_legalise(ptowsp_body *body, pwsp_list *list, pwsp_list_fault *fault);

#endif
