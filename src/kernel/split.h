// Whether the two vector cores of a block can share the rows of a mixed list's vector half.

#ifndef PWSP_SPLIT_H
#define PWSP_SPLIT_H

#include "list.h"

// Can two cores share the rows of the vector half, each half of the valid ones of `tile`? Each row of
// what an instruction writes then follows from that row of what it reads, at the same place of its
// root; or, of columns that are seen as rows, each element from that element. So it does not matter
// how many rows of a tile are valid, only that all are cut at the same one. Else *out_insn is the
// first instruction that is against it. (That the two cores do not meet in global memory is found by
// the proof.)
PWSP_INTERNAL bool pwsp_list_is_by_row(const pwsp_list *list, uint32_t tile, uint32_t *out_insn);

// The tile whose rows two cores share, where a parameter that is stored to is used with the same first
// row everywhere: of those whose valid rows depend on the task the first, else
// the first that has always the same. 0: they cannot.
PWSP_INTERNAL uint32_t pwsp_list_split(const pwsp_list *list);

#endif
