// The vocabulary of kernels: PTO-ISA's instructions, and a few additions.
//
// A kernel compiles unchanged in three ways:
//
//      default        shim/ptoisa_shim.h: any C++17 compiler; counts cycles, checks flags
//      WSP_PTO_ISA    PTO-ISA's CPU simulator, C++20: neither counts nor waits
//      WSP_ASCEND     PTO-ISA on the device, with CANN's compiler
//
// The first has run, in the tests of the generator. Code for the other two follows PTO-ISA's public
// headers and documents, and is marked so.
//
// Valid sizes may be 0 where a task is at the edge of a tensor. The shim's instructions accept that
// (and count it); PTO-ISA's do not: there an instruction without elements is left out (wsp::any).

#ifndef WSP_KERNEL_H
#define WSP_KERNEL_H

#include "wsp_halves.h"
#include "wsp_product.h"

#endif
