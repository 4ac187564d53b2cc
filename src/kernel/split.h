// Whether the two vector cores of a block can share the rows of a mixed list's vector half.

#ifndef PWSP_SPLIT_H
#define PWSP_SPLIT_H

#include "list.h"

// Can two cores share the rows of the vector half, each half of the valid ones of `tile`? Then each
// row that an instruction writes depends only on that row of its inputs, at the same place of the
// root; for columns viewed as rows, each element only on that element. So the number of valid rows
// does not matter, only that all tiles are cut at the same row. Otherwise *out_insn is the first
// instruction that prevents it. (The proof checks that the two cores do not overlap in global
// memory.)
PWSP_INTERNAL bool pwsp_list_is_by_row(const pwsp_list *list, uint32_t tile, uint32_t *out_insn);

// The tile whose rows two cores share, where a parameter that is stored to is used with the same first
// row everywhere: of those whose valid rows depend on the task the first, else
// the first that has always the same. 0: they cannot.
PWSP_INTERNAL uint32_t pwsp_list_split(const pwsp_list *list);

// Plans UB for the rows of one vector core of a split list instead of all rows. The rows are then cut at
// half of their largest number, whatever a task has: the split tile becomes a tile of constant size.
// Each core gets a multiple of 32 rows, so that columns of any type are aligned. False when memory is
// out.
PWSP_INTERNAL bool pwsp_list_split_memory(pwsp_list *list);

#endif
