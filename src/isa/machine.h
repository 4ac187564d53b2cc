// The machines that are built in: Ascend 910B (A2/A3) and 950PR (A5).
//
// Rates are for one core, in 1/100 GiB/s, in the order of ptoisa_path. They hold for a core that
// runs alone. When all cores load at once, the share of global memory's bandwidth is 32 bytes per
// cycle and core on 910B and 27 on 950PR; it depends on the other cores, which a core does not
// know.
//
// 910B: the table of PTO-ISA's public cost data, at its clock of 1.85 GHz (CANN's platform file
// says 1.80). The table lacks two paths. A2/A3 has no UB -> L1; here it is as UB -> GM, whose pipe
// it would use. L0C -> UB is 256 bytes per cycle, from the platform's data.
//
// 950PR: no such table has been published. The rates follow from the platforms' bytes per cycle and
// core, at 1.65 GHz:
//
//     L1 -> L0A, L0B     256 bytes per cycle, as listed                       393.39 GiB/s
//     L0C -> UB          not listed: 256 bytes per cycle, as 910B             393.39
//     to and from GM     910B's bytes per cycle * 100 / 110, the two machines' rates of reading L2,
//                        through which all of it goes: GiB/s of 910B * 1.65 / 1.85 * 100 / 110
//     all others         910B's bytes per cycle: GiB/s of 910B * 1.65 / 1.85

#ifndef PTOISA_MACHINE_H
#define PTOISA_MACHINE_H

#include "isa.h"

// clang-format off

// UB is 192 KiB on A2/A3; row-expands use the last 8 KiB as scratch.
PTOISA_FN const ptoisa_machine *ptoisa_machine_910b(void) {
    static const ptoisa_machine machine = {
        "910B", PTOISA_A2A3, 1850,
        {184 << 10, 512 << 10, 64 << 10, 64 << 10, 128 << 10, 1 << 10, 2 << 10},
        {10090, 13500,               // GM -> UB, L1
         18846, 18846, 102400,       // UB -> GM, L1, UB
         3200, 44100, 22050, 3200,   // L1 -> GM, L0A, L0B, other
         7000, 12800, 44107}};       // L0C -> GM, L1, UB
    return &machine;
}

PTOISA_FN const ptoisa_machine *ptoisa_machine_950pr(void) {
    static const ptoisa_machine machine = {
        "950PR", PTOISA_A5, 1650,
        {256 << 10, 512 << 10, 64 << 10, 64 << 10, 256 << 10, 4 << 10, 4 << 10},
        {8181, 10946,                // GM -> UB, L1
         15281, 15281, 91330,        // UB -> GM, L1, UB
         2595, 39339, 39339, 2854,   // L1 -> GM, L0A, L0B, other
         5676, 11416, 39339}};       // L0C -> GM, L1, UB
    return &machine;
}
// clang-format on

#endif
