// The measured machines: Ascend 910B (A2/A3) and 950PR (A5).
//
// Unlike the machines of machine.h, whose rates are public and whose transfers have no latency,
// these were fitted to published measurements, by tools/fit; timing_fitted.h has its numbers and the
// rows of each. A rate that nobody measured is the public one:
//
//     910B     1,800 MHz (910B2, B3; 910C): a GEMM of 128 x 256 x 64 a step then takes 510 cycles a
//              step, of 512 blocks. 910B1 has 1,850 and 910B4 1,500: copy, and set clock_mhz.
//              To and from global memory: GiB/s of machine.h at 1,800 MHz, but memory to L1 by the
//              public 110 bytes a cycle of a core alone. On chip: bytes a cycle of machine.h.
//     950PR    1,650 MHz. Measured are vector instructions, which have fits of their own
//              (cost_timed.h), and L1 to L0 of GEMM. No row has transposing loads: they are as
//              fast as others. Memory to L1 is the public 100 bytes a cycle of a core alone.
//              Latencies and FIX are 910B's, other rates are machine.h's.
//              Mechanisms of 910B's vector unit are off: the rows do not show them on A5.
//
// These are times of a core that has memory to itself. Cores that share memory are slower by
// ptowsp_shared_memory_of: the rates of L2 and HBM are other constants. Launches, dispatch and links are
// not here either.

#ifndef PTOISA_TIMING_H
#define PTOISA_TIMING_H

#include "isa.h"
#include "timing_fitted.h"

#define PTOISA_TIMING_CYCLES_MAX (1u << 20)  // latency, setup, burst
#define PTOISA_TIMING_MHZ_MAX    (1u << 17)

// clang-format off
PTOISA_FN const ptoisa_timing *ptoisa_timing_910b(void) {
    static const ptoisa_timing timing = {
        "910B", PTOISA_A2A3, 1800, 1800, 1u << PTOISA_MECHANISM_REGISTERS,
        PTOISA_FITTED_TRANSPOSED,
        {{PTOISA_FITTED_LOAD_LATENCY, PTOISA_FITTED_SETUP, PTOISA_FITTED_BURST, 6019},  // GM -> UB
         {PTOISA_FITTED_L1_LATENCY, PTOISA_FITTED_SETUP, 0, 11000},                     //    -> L1
         {PTOISA_FITTED_STORE_LATENCY, PTOISA_FITTED_SETUP, PTOISA_FITTED_BURST, 11242},  // UB -> GM
         {0, 0, 0, 11242},                             //    -> L1
         {0, PTOISA_FITTED_CALL, 0, 3200},             //    -> UB
         {PTOISA_FITTED_STORE_LATENCY, 0, 0, 1909},    // L1 -> GM
         {0, PTOISA_FITTED_L0_SETUP, 0, 25600},        //    -> L0A
         {0, PTOISA_FITTED_L0_SETUP, 0, 12800},        //    -> L0B
         {0, 0, 0, 1857},                              //    -> other
         {0, 0, 0, PTOISA_FITTED_FIX_RATE},            // L0C -> GM
         {0, 0, 0, 7429},                              //     -> L1
         {0, 0, 0, 25600}}};                           //     -> UB
    return &timing;
}

PTOISA_FN const ptoisa_timing *ptoisa_timing_950pr(void) {
    static const ptoisa_timing timing = {
        "950PR", PTOISA_A5, 1650, 1650,
        1u << PTOISA_MECHANISM_BLOCKS | 1u << PTOISA_MECHANISM_ROWS | 1u << PTOISA_MECHANISM_ENDS |
        1u << PTOISA_MECHANISM_COLUMNS | 1u << PTOISA_MECHANISM_GROUPS,
        PTOISA_FITTED_A5_L0B_RATE,
        {{PTOISA_FITTED_LOAD_LATENCY, PTOISA_FITTED_SETUP, PTOISA_FITTED_BURST, 5324},
         {PTOISA_FITTED_L1_LATENCY, PTOISA_FITTED_SETUP, 0, 10000},
         {PTOISA_FITTED_STORE_LATENCY, PTOISA_FITTED_SETUP, PTOISA_FITTED_BURST, 9944},
         {0, 0, 0, 9944},
         {0, PTOISA_FITTED_CALL, 0, 59433},
         {PTOISA_FITTED_STORE_LATENCY, 0, 0, 1689},
         {0, PTOISA_FITTED_L0_SETUP, 0, 25600},
         {0, PTOISA_FITTED_L0_SETUP, 0, PTOISA_FITTED_A5_L0B_RATE},
         {0, 0, 0, 1857},
         {0, 0, 0, PTOISA_FITTED_FIX_RATE},
         {0, 0, 0, 7429},
         {0, 0, 0, 25600}}};
    return &timing;
}
// clang-format on

// The times that a model uses: `own` if there are any; NULL for models that are not measured.
PTOISA_FN const ptoisa_timing *ptoisa_timing_of(ptoisa_model model, const ptoisa_timing *own) {
    switch (model) {
    case PTOISA_MODEL_910B: return own != NULL ? own : ptoisa_timing_910b();
    case PTOISA_MODEL_950PR: return own != NULL ? own : ptoisa_timing_950pr();
    default: return NULL;
    }
}

// Does the instruction's machine have a mechanism? The ideal models have none.
PTOISA_INLINE bool ptoisa_has(const ptoisa_issue_info *info, ptoisa_mechanism mechanism) {
    return info->timing != NULL && !(info->timing->without >> mechanism & 1);
}

#endif
