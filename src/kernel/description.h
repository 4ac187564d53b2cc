// Machine descriptions: the public one, and the part of it that instructions use.

#ifndef PWSP_DESCRIPTION_H
#define PWSP_DESCRIPTION_H

#include "../base/base.h"
#include "../isa/machine.h"
#include "../isa/timing.h"

PTOWSP_STATIC_ASSERT((int)PTOWSP_PATH_COUNT == (int)PTOISA_PATH_COUNT, "paths");
PTOWSP_STATIC_ASSERT((int)PTOWSP_MEMORY_COUNT == (int)PTOISA_MEMORY_COUNT, "memories");
PTOWSP_STATIC_ASSERT((int)PTOWSP_PIPE_COUNT == (int)PTOISA_PIPE_COUNT, "pipes");

#define PWSP_MECHANISM_IS_SAME(name)                                                               \
    PTOWSP_STATIC_ASSERT((int)PTOWSP_MECHANISM_##name == (int)PTOISA_MECHANISM_##name, "names");
PTOWSP_MECHANISMS(PWSP_MECHANISM_IS_SAME)
#undef PWSP_MECHANISM_IS_SAME
PTOWSP_STATIC_ASSERT((int)PTOWSP_MECHANISM_COUNT == (int)PTOISA_MECHANISM_COUNT, "mechanisms");

#define PWSP_MEMORY_BYTES_MAX (64u << 20)  // of one memory of a core; real ones are 512 KiB

// What instructions know of a machine, in the public type; the rest is zero.
PWSP_INTERNAL ptowsp_machine pwsp_machine_from_isa(const ptoisa_machine *isa);

// False if it is not valid: an unknown family, no clock, a memory that is too large, a name that
// texts cannot have.
#define PWSP_MACHINE_RULE                                                                          \
    "its machine has no such family, no clock, a memory of more than 64 MiB, or a name with "      \
    "quotes "                                                                                      \
    "or bytes that are not printable"
PWSP_INTERNAL bool pwsp_machine_to_isa(const ptowsp_machine *machine, ptoisa_machine *out_isa);

// The same times in the type that instructions use. They have been checked (data/cost_model.h).
PWSP_INTERNAL ptoisa_timing pwsp_timing_to_isa(const ptowsp_core_timing *timing);

#endif
