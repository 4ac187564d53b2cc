// Whether the two vector cores of a block can share the rows of a mixed list's vector half.

#ifndef PWSP_SPLIT_H
#define PWSP_SPLIT_H

#include "list.h"

// Can two cores share the rows of the vector half, `rows` in all its tiles? Each row of what an
// instruction writes then follows from that row of what it reads, at the same place of its root. A
// parameter that is stored to is used with the same first row everywhere. Else *out_insn is the first
// instruction that is against it.
PWSP_INTERNAL bool pwsp_list_is_by_row(const pwsp_list *list, const pwsp_valid *rows,
                                       uint32_t *out_insn);

#endif
