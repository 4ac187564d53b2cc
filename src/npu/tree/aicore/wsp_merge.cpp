// Compiles ptowsp_merge_... for kernels that are C functions: see ptowsp.h, section 8.

#include "wsp_native.h"

#include <string.h>

// Products and sums are rounded apart by an option that trees are compiled with: -ffp-contract=off.
#define PTOWSP_ASSERT(condition) ((void)0)
#define PWSP_INTERNAL            PTOWSP_AICORE static PWSP_UNUSED
#define PWSP_INLINE              PTOWSP_AICORE static inline PWSP_UNUSED
#define PWSP_FORCE_INLINE        PTOWSP_AICORE static inline __attribute__((always_inline, unused))
#define PWSP_RESTRICT            __restrict__
#define PWSP_ROUND_APART

#define WSP_CORE_MERGE
#include "wsp_core.h"
