// The constants of the measured machines, by tools/fit: do not edit. Cycles of A2/A3 are of
// 1,800 MHz, rates are bytes in 100 cycles. cost_timed.h and timing.h use them.

#ifndef PTOISA_TIMING_FITTED_H
#define PTOISA_TIMING_FITTED_H

// clang-format off
// 4 rows of GEMM and convolution: the share of FIX, bytes of the destination
#define PTOISA_FITTED_FIX_RATE 7236
// 2 rows of convolution, share of MTE2, less bytes at the rates of L2 and HBM
#define PTOISA_FITTED_L1_LATENCY 55
// the large convolution, share of MTE1
#define PTOISA_FITTED_L0_SETUP 13
// the small convolution, share of MTE1: a further row of its map in a block
#define PTOISA_FITTED_MAP_ROW 30
// the large convolution, its time less its cube's share: a panel of a map
#define PTOISA_FITTED_MAP_WAIT 84
// 2 rows of GEMM, share of MTE1
#define PTOISA_FITTED_TRANSPOSED 10576
// the GEMM that L2 holds, share of MTE2: all 24 cores
#define PTOISA_FITTED_L2_RATE 222013
// the large GEMM of fp8, share of MTE2: all 32 cores
#define PTOISA_FITTED_A5_L2_RATE 297556
// an all-reduce of two ranks: bytes a microsecond from one to the other
#define PTOISA_FITTED_A5_PAIR 32096
// 2 rows of GEMM of fp8, share of MTE1
#define PTOISA_FITTED_A5_L0B_RATE 13230
// 2 rows of top-k, share of MTE2
#define PTOISA_FITTED_LOAD_LATENCY 1285
// 2 rows of top-k, share of MTE3
#define PTOISA_FITTED_STORE_LATENCY 526
// 6 rows of TLOAD, of a simulator that issues
#define PTOISA_FITTED_SETUP 8
// the same
#define PTOISA_FITTED_BURST 2
// 2 rows of top-k, share of V: 1/100 cycle a pair in runs of more than 32
#define PTOISA_FITTED_MERGE 158
// 16 rows of TMOV: cycles of a call
#define PTOISA_FITTED_CALL 5
// 1 row of TCOLMAX: 1/100 cycle a row, without its repeats
#define PTOISA_FITTED_COLUMN 3887
// 1 row of TSEL: cycles a row
#define PTOISA_FITTED_SELECT 8

// Head and tail together of vector instructions: kind, of floats, of integers.
#define PTOISA_FITTED_ENDS(E)                                             \
    E(ADD, 32, 23)     /* 1 rows of floats, 1 of integers: TADD */        \
    E(SUB, 25, 4)      /* 1 rows of floats, 1 of integers: TSUB */        \
    E(MUL, 40, 24)     /* 1 rows of floats, 1 of integers: TMUL */        \
    E(DIV, 32, 32)     /* 1 rows of floats, 0 of integers: TDIV */        \
    E(ADDS, 25, 8)     /* 3 rows of floats, 1 of integers: TADDS */       \
    E(MULS, 26, 8)     /* 3 rows of floats, 1 of integers: TMULS */       \
    E(MINS, 23, 4)     /* 1 rows of floats, 1 of integers: TMINS */       \
    E(ABS, 4, 4)       /* 1 rows of floats, 0 of integers: TABS */        \
    E(EXP, 31, 31)     /* 3 rows of floats, 0 of integers: TEXP */        \
    E(SQRT, 32, 32)    /* 1 rows of floats, 0 of integers: TSQRT */       \
    E(CONVERT, 29, 29) /* 1 rows of floats, 0 of integers: TCVT */        \
    E(DUP, 12, 12)     /* 2 rows: TDIVS, TSDIV, less DIV and a barrier */

// Loops over registers of A5: a, b, rate and wait of cost_timed.h, in 1/10000 of a cycle. Rows of
// one loop + of two.
#define PTOISA_FITTED_REGISTERS(F)                                        \
    F(ADD, 12189, 548265, 19587, 50696)                /* 12 + 16 rows */ \
    F(MUL, 11765, 560143, 19459, 50605)                /* 6 + 8 rows */   \
    F(MINS, 10686, 529818, 14069, 50941)               /* 7 + 8 rows */   \
    F(NEG, 10681, 549859, 14014, 50938)                /* 7 + 8 rows */   \
    F(EXP_F32, 19510, 625543, 19853, 47710)            /* 6 + 8 rows */   \
    F(EXP_F16, 37143, 658501, 40001, 50696)            /* 4 + 2 rows */   \
    F(SQRT_F32, 19510, 635542, 19853, 47710)           /* 6 + 8 rows */   \
    F(SQRT_F16, 37138, 668536, 40001, 50696)           /* 4 + 2 rows */   \
    F(DIVS_F32, 18679, 645555, 20351, 48487)           /* 12 + 16 rows */ \
    F(DIVS_F16, 36521, 672366, 40027, 50696)           /* 11 + 4 rows */  \
    F(RSQRT_F32, 40286, 754336, 40099, 50696)          /* 6 + 8 rows */   \
    F(RSQRT_F16, 80613, 811110, 80031, 50696)          /* 4 + 2 rows */   \
    F(RECIP_HIGH_F32, 3433907, 565934, 3472500, 50696) /* 5 + 6 rows */   \
    F(RECIP_HIGH_F16, 1692141, 405130, 1691150, 50696) /* 4 + 2 rows */   \
    F(SELECT_B16, 22388, 520574, 20555, 63457)         /* 3 + 3 rows */   \
    F(SELECT_B32_EVEN, 22375, 522500, 0, 0)            /* 1 row */        \
    F(SELECT_B32_ODD, 77500, 522500, 79597, 50696)     /* 3 + 2 rows */   \
    F(BF16_TO_F16, 12051, 531609, 14199, 52471)        /* 4 + 2 rows */   \
    F(NARROW, 12945, 523384, 23308, 65438)             /* 8 + 4 rows */   \
    F(WIDEN, -17565, 823608, 14199, 52471)             /* 8 + 4 rows */

// clang-format on

#endif
