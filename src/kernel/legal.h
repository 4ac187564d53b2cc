// Rules of instructions: the element types that each takes on each family of machines, and the
// forms: the memories of its tiles, the relation of their allocated sizes, its scratch, the tiles
// it overwrites.
//
// The list that lowering makes is right for the library. A device takes less, and so does PTO-ISA's
// simulator: their headers refuse types and sizes with a static assertion. Two tables have these
// rules, PWSP_LEGAL the types and PWSP_LEGAL_FORMS the forms, with a row for an instruction, and two
// things are done by them:
//
//      legalise      types: rewrites an instruction whose type the machine lacks through f32: TCVT
//                    of its sources, the instruction, TCVT of the result. The bits are the same:
//                    bf16 arithmetic is f32 arithmetic that is rounded once, and so is i16 division
//                    (the quotient of two i16 is nearer to no other integer than 2^-15 relative)
//                    forms: takes other views of the same bytes, allocates more rows, adds scratch,
//                    and copies tiles that are too narrow or would be lost
//      refuse        fails where the tables have no way, and names instruction, what, and machine
//
// Both happen when a kernel is made, for its machine. So one list is run, counted and emitted.
//
// Columns of PWSP_LEGAL: the instruction; the types that A2/A3 (910B) takes; those that A2/A3
// reaches through f32; the types that A5 (950PR) takes. The source of a row is the comment above
// it: ptoisa n.m is a section of the notes on PTO-ISA, checked n a rule of the rules confirmed
// against its headers, [hdr] a static assertion that was seen, [read] documentation alone.
// Instructions without a row are checked by the instruction itself (../isa).

#ifndef PWSP_LEGAL_H
#define PWSP_LEGAL_H

#include "lower.h"

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

// Columns: the instruction; where its tiles are, destinations before the colon, each the places
// that it may have; the relation of allocated sizes; scratch; tiles it overwrites besides its
// result.
//
//      places    R row-major in UB, C one column in UB, M boxes in L1, m a row in L1, L L0A, Q L0B,
//                A L0C, B bias table, S fixpipe buffer
#define PWSP_LEGAL_FORMS(ROW) /* op, places, sizes, scratch, effect */                             \
    /* ptoisa 5.1. */                                                                              \
    ROW(TLOAD, "RCMm:", ROWS_4095, NONE, PLAIN)                                                    \
    ROW(TSTORE, ":RCMmA", ROWS_4095, NONE, PLAIN)                                                  \
    ROW(TTRANS, "R:R", ANY, TRANS, PLAIN)                                                          \
    /* ptoisa 5.3; checked 6: TROWSUM has src.Rows == dst.Rows in the simulator [ran]. */          \
    ROW(TROWSUM, "RC:R", ROWS, LIKE, PLAIN)                                                        \
    ROW(TROWMAX, "RC:R", ANY, LIKE, PLAIN)                                                         \
    ROW(TROWMIN, "RC:R", ANY, LIKE, PLAIN)                                                         \
    ROW(TROWPROD, "RC:R", ANY, LIKE, PLAIN)                                                        \
    ROW(TROWARGMAX, "RC:R", ANY, LIKE, PLAIN)                                                      \
    ROW(TROWARGMIN, "RC:R", ANY, LIKE, PLAIN)                                                      \
    /* ptoisa 6, checked 8: src.Cols == dst.Cols in the simulator [ran]. */                        \
    ROW(TCOLSUM, "R:R", COLS, NONE, PLAIN)                                                         \
    ROW(TCOLMAX, "R:R", COLS, NONE, PLAIN)                                                         \
    ROW(TCOLMIN, "R:R", COLS, NONE, PLAIN)                                                         \
    ROW(TCOLPROD, "R:R", COLS, NONE, PLAIN)                                                        \
    /* ptoisa 5.2: on A2/A3 the result is not where the source is. */                              \
    ROW(TRSQRT, "R:R", ANY, NONE, APART)                                                           \
    ROW(TRECIP, "R:R", ANY, NONE, APART)                                                           \
    ROW(TANDS, "R:R", ANY, NONE, APART)                                                            \
    ROW(TORS, "R:R", ANY, NONE, APART)                                                             \
    /* checked 12: simulator and device agree if all columns are valid, and the mask has a bit for \
       each [read]; scratch of 32 bytes compiles [hdr]. */                                         \
    ROW(TCMP, "R:R,R", MASK, NONE, PLAIN)                                                          \
    ROW(TCMPS, "R:R", MASK, NONE, PLAIN)                                                           \
    ROW(TSEL, "R:R,R,R", MASK, BYTES_32, PLAIN)                                                    \
    ROW(TSELS, "R:R,R", MASK, BYTES_32, PLAIN)                                                     \
    /* checked 13: what is picked of all rows lies together [read]. */                             \
    ROW(TGATHERMASK, "R:R", PACK, NONE, PLAIN)                                                     \
    /* ptoisa 5.4: without scratch validCol % 32 == 0 [read]. */                                   \
    ROW(TSORT32, "R:R,R", RUNS, NONE, PLAIN)                                                       \
    /* checked 14: A2/A3 takes scratch, and scales the source in place [hdr]. */                   \
    ROW(TQUANT, "R:R,C", ANY, QUANT, SPOILS)                                                       \
    /* ptoisa 5.5, checked 9: rows of Left and Acc, columns of Left and rows of Right, columns of  \
       Right and Acc are equal [ran]. */                                                           \
    ROW(TMATMUL, "A:L,Q", PRODUCT, NONE, PLAIN)                                                    \
    ROW(TMATMUL_ACC, "A:A,L,Q", PRODUCT, NONE, PLAIN)                                              \
    ROW(TMATMUL_BIAS, "A:L,Q,B", PRODUCT, NONE, PLAIN)                                             \
    ROW(TGEMV, "A:L,Q", PRODUCT, NONE, PLAIN)                                                      \
    ROW(TGEMV_ACC, "A:A,L,Q", PRODUCT, NONE, PLAIN)                                                \
    ROW(TGEMV_BIAS, "A:L,Q,B", PRODUCT, NONE, PLAIN)
// clang-format on

typedef enum pwsp_legal_sizes {
    PWSP_SIZES_ANY = 0,
    PWSP_SIZES_ROWS_4095,  // a tile in UB has at most 4095 rows
    PWSP_SIZES_PRODUCT,    // of factors and result
    // An instruction that lacks one of these gets it.
    PWSP_SIZES_ROWS,  // source and result are allocated with the same rows
    PWSP_SIZES_COLS,  // with the same columns
    PWSP_SIZES_MASK,  // all columns of tiles and a bit of the mask for each are valid
    PWSP_SIZES_PACK,  // all columns of the result are valid, and each row fills one
    PWSP_SIZES_RUNS   // whole runs of 32 are sorted, in every task
} pwsp_legal_sizes;

typedef enum pwsp_legal_scratch {
    PWSP_SCRATCH_NONE = 0,
    PWSP_SCRATCH_LIKE,      // the source's type and shape
    PWSP_SCRATCH_TRANS,     // the source's columns, each of its rows in whole 16s (bytes: 32s)
    PWSP_SCRATCH_BYTES_32,  // 32 bytes
    PWSP_SCRATCH_QUANT      // A2/A3: the source's shape, of whole 8 rows
} pwsp_legal_scratch;

typedef enum pwsp_legal_effect {
    PWSP_EFFECT_PLAIN = 0,
    PWSP_EFFECT_APART,  // A2/A3: the result is not where the source is
    PWSP_EFFECT_SPOILS  // A2/A3: the first source is lost
} pwsp_legal_effect;

typedef struct pwsp_legal_row {
    uint8_t op;            // ptoisa_op
    uint32_t dtypes[2];    // sets, by ptoisa_family
    uint32_t through_f32;  // on A2/A3
} pwsp_legal_row;

typedef struct pwsp_legal_form {
    uint8_t op;       // ptoisa_op
    char places[10];  // "R:R,C"
    uint8_t sizes;    // pwsp_legal_sizes
    uint8_t scratch;  // pwsp_legal_scratch
    uint8_t effect;   // pwsp_legal_effect
} pwsp_legal_form;

// The rows of an instruction; NULL if it has none.
PWSP_INTERNAL const pwsp_legal_row *pwsp_legal_row_of(ptoisa_op op);
PWSP_INTERNAL const pwsp_legal_form *pwsp_legal_form_of(ptoisa_op op);

// May an instruction need another form than it has? Else it is right as it is, or refused.
PWSP_INLINE bool pwsp_legal_may_change(const pwsp_legal_form *form) {
    return form && (form->sizes >= PWSP_SIZES_ROWS || form->scratch || form->effect);
}

// Makes the list legal for the body's machine; false with a fault that names instruction, type and
// machine, or when memory is out.
PWSP_INTERNAL bool pwsp_legalise(ptowsp_body *body, pwsp_list *list, pwsp_list_fault *fault);

// Do all instructions have their forms? False with a fault that names instruction, machine and rule.
PWSP_INTERNAL bool pwsp_legal_check_forms(const ptowsp_body *body, const pwsp_list *list,
                                          pwsp_list_fault *fault);

// Appends instruction `at` of the old list, in its form.
PWSP_INTERNAL void pwsp_legal_form_apply(pwsp_lowering *lw, const pwsp_insn *insns, uint64_t count,
                                         uint64_t at);

#endif
