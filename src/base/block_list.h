// Blocks: memory that dies together, piece by piece. Each allocation is a block of its own in a list,
// may grow, and may be given back before the others.
//
//      first <-> [links, size | items ... ] <-> [links, size | items ... ] <-> ...
//
// What lives as long as all that it is made of owns blocks, and hands their memory to its parts. So
// parts have neither to be freed nor to be asked for their sizes.

#ifndef PWSP_BLOCK_LIST_H
#define PWSP_BLOCK_LIST_H

#include "base.h"

typedef struct pwsp_memory_block {
    PWSP_ALIGNAS(16) struct pwsp_memory_block *next;
    struct pwsp_memory_block *previous;
    size_t size;  // this header included
} pwsp_memory_block;

typedef struct pwsp_blocks {
    pwsp_memory under;  // where blocks come from
    pwsp_memory_block *first;
    size_t bytes;  // of all blocks
} pwsp_blocks;

// Memory of blocks, which must not be moved from now on. As all memory of a context, it belongs to one
// thread at a time.
PWSP_INTERNAL pwsp_memory pwsp_blocks_begin(pwsp_blocks *blocks, const pwsp_memory *under);

// Gives all blocks back. Blocks that are zero have none.
PWSP_INTERNAL void pwsp_blocks_free(pwsp_blocks *blocks);

#endif
