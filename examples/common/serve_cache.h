// The KV cache of a serving engine, as counts of pages. A page belongs to one sequence, or to a block
// of TRACE_BLOCK_TOKENS tokens that sequences with the same prefix share:
//
//      free pages | pages of sequences | blocks in use | blocks kept in case somebody wants them
//
//      free + own + used * block_pages + kept * block_pages = capacity           always
//
// Blocks that nobody uses are kept, and evicted when pages are needed, the one that was left first
// before others.

#ifndef SERVE_CACHE_H
#define SERVE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct serve_block {
    uint32_t users;       // sequences
    uint32_t prev, next;  // in the list of kept blocks
    bool is_here;
} serve_block;

typedef struct serve_cache {
    uint64_t capacity, free, own;  // pages
    uint64_t used, kept;           // blocks
    uint64_t evictions;            // of blocks
    uint32_t block_pages;
    uint32_t block_count;
    serve_block *blocks;  // [block_count + 1]; the last one is the head of the list
} serve_cache;

// block_pages 0: no block is ever shared.
void serve_cache_make(serve_cache *c, uint64_t capacity, uint32_t block_pages,
                      uint32_t block_count);
void serve_cache_free(serve_cache *c);

// Takes pages for a sequence, evicting kept blocks if it must; false, and nothing happens, if `spare`
// more than these cannot be had.
bool serve_cache_take(serve_cache *c, uint64_t pages, uint64_t spare);
void serve_cache_give(serve_cache *c, uint64_t pages);

// Uses a block; false if it is not here.
bool serve_cache_use(serve_cache *c, uint32_t block);

// A sequence has computed a block on pages of its own: they become the block's, or, if somebody else
// has been first, are free. Either way the sequence uses the block.
void serve_cache_share(serve_cache *c, uint32_t block);

// The sequence leaves a block. Leave the last block of a prefix first: it is of no use without those
// before it, and so goes first.
void serve_cache_leave(serve_cache *c, uint32_t block);

// Pages that sequences use.
uint64_t serve_cache_used_pages(const serve_cache *c);

#endif
