// The machines that are built in: Ascend 910B (A2/A3) and 950PR (A5).

#ifndef PTOISA_MACHINE_H
#define PTOISA_MACHINE_H

#include "isa.h"

// UB is 192 KiB on A2/A3, of which row-expands use the last 8 as scratch.
PTOISA_FN const ptoisa_machine *ptoisa_machine_910b(void) {
    static const ptoisa_machine machine = {
        "910B", PTOISA_A2A3,
        1850,   {184 << 10, 512 << 10, 64 << 10, 64 << 10, 128 << 10, 1 << 10, 2 << 10},
        100.9,  188.46,
        135,    32,
        70,     128,
        441,    220.5,
        32,     1024};
    return &machine;
}

PTOISA_FN const ptoisa_machine *ptoisa_machine_950pr(void) {
    static const ptoisa_machine machine = {
        "950PR", PTOISA_A5,
        1650,    {256 << 10, 512 << 10, 64 << 10, 64 << 10, 256 << 10, 4 << 10, 4 << 10},
        100.9,   188.46,
        135,     32,
        70,      128,
        441,     220.5,
        32,      1024};
    return &machine;
}

#endif
