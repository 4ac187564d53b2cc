#include "serve_cache.h"

#include "command.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void cache_check(const serve_cache *c) {
    assert(c->free + c->own + (c->used + c->kept) * c->block_pages == c->capacity);
    (void)c;
}

static void cache_unlink(serve_cache *c, uint32_t block) {
    serve_block *b = &c->blocks[block];
    c->blocks[b->prev].next = b->next;
    c->blocks[b->next].prev = b->prev;
    c->kept--;
}

// Behind those that were left before.
static void cache_link(serve_cache *c, uint32_t block) {
    uint32_t head = c->block_count, last = c->blocks[head].prev;
    c->blocks[block].prev = last;
    c->blocks[block].next = head;
    c->blocks[last].next = block;
    c->blocks[head].prev = block;
    c->kept++;
}

void serve_cache_make(serve_cache *c, uint64_t capacity, uint32_t block_pages,
                      uint32_t block_count) {
    memset(c, 0, sizeof *c);
    c->capacity = c->free = capacity;
    c->block_pages = block_pages;
    c->block_count = block_count;
    c->blocks = (serve_block *)command_allocate((uint64_t)block_count + 1, sizeof *c->blocks);
    c->blocks[block_count].prev = c->blocks[block_count].next = block_count;
}

void serve_cache_free(serve_cache *c) {
    free(c->blocks);
    memset(c, 0, sizeof *c);
}

bool serve_cache_take(serve_cache *c, uint64_t pages, uint64_t spare) {
    if (pages + spare > c->free + c->kept * c->block_pages) {
        return false;
    }
    while (pages > c->free) {
        uint32_t block = c->blocks[c->block_count].next;
        assert(c->blocks[block].is_here && c->blocks[block].users == 0);
        cache_unlink(c, block);
        c->blocks[block].is_here = false;
        c->free += c->block_pages;
        c->evictions++;
    }
    c->free -= pages;
    c->own += pages;
    cache_check(c);
    return true;
}

void serve_cache_give(serve_cache *c, uint64_t pages) {
    assert(pages <= c->own);
    c->own -= pages;
    c->free += pages;
}

bool serve_cache_use(serve_cache *c, uint32_t block) {
    serve_block *b = &c->blocks[block];
    if (!b->is_here) {
        return false;
    }
    if (b->users++ == 0) {
        cache_unlink(c, block);
        c->used++;
    }
    return true;
}

void serve_cache_share(serve_cache *c, uint32_t block) {
    serve_cache_give(c, c->block_pages);
    if (!serve_cache_use(c, block)) {
        c->free -= c->block_pages;
        c->blocks[block].is_here = true;
        c->blocks[block].users = 1;
        c->used++;
    }
    cache_check(c);
}

void serve_cache_leave(serve_cache *c, uint32_t block) {
    serve_block *b = &c->blocks[block];
    assert(b->is_here && b->users > 0);
    if (--b->users == 0) {
        c->used--;
        cache_link(c, block);
    }
    cache_check(c);
}

uint64_t serve_cache_used_pages(const serve_cache *c) {
    return c->own + c->used * c->block_pages;
}
