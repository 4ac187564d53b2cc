// Blocks: see block_list.h.

#include "block_list.h"

// Where the links point to a block: it may have moved.
static void pwsp_block_enter(pwsp_blocks *blocks, pwsp_memory_block *block) {
    *(block->previous ? &block->previous->next : &blocks->first) = block;
    if (block->next) {
        block->next->previous = block;
    }
}

static void pwsp_block_leave(pwsp_blocks *blocks, pwsp_memory_block *block) {
    *(block->previous ? &block->previous->next : &blocks->first) = block->next;
    if (block->next) {
        block->next->previous = block->previous;
    }
}

static void *pwsp_blocks_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    pwsp_blocks *blocks = (pwsp_blocks *)user;
    const pwsp_memory *under = &blocks->under;
    pwsp_memory_block *block = ptr ? (pwsp_memory_block *)ptr - 1 : NULL;
    const size_t size = block ? block->size : 0;
    PTOWSP_ASSERT(size == (block ? old_size + sizeof *block : 0));
    (void)old_size;
    if (new_size == 0 || new_size > SIZE_MAX - sizeof *block) {
        if (block && new_size == 0) {
            pwsp_block_leave(blocks, block);
            blocks->bytes -= size;
            under->resize(under->user, block, size, 0);
        }
        return NULL;
    }
    const size_t needed = new_size + sizeof *block;
    pwsp_memory_block *made = (pwsp_memory_block *)under->resize(under->user, block, size, needed);
    if (!made) {
        return NULL;
    }
    if (!block) {
        made->previous = NULL;
        made->next = blocks->first;
    }
    made->size = needed;
    blocks->bytes += needed - size;
    pwsp_block_enter(blocks, made);
    return made + 1;
}

PWSP_INTERNAL pwsp_memory pwsp_blocks_begin(pwsp_blocks *blocks, const pwsp_memory *under) {
    blocks->under = *under;
    blocks->first = NULL;
    blocks->bytes = 0;
    return pwsp_memory_make(pwsp_blocks_resize, blocks);
}

PWSP_INTERNAL void pwsp_blocks_free(pwsp_blocks *blocks) {
    while (blocks->first) {
        pwsp_memory_block *block = blocks->first;
        blocks->first = block->next;
        pwsp_memory_free(&blocks->under, block, block->size);
    }
    blocks->bytes = 0;
}
