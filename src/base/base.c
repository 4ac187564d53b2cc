// Statuses, memory, arenas, hashing: what every other room stands on.
//
// Memory goes through one hook that is told both sizes, so that a caller can account for each byte
// without headers of his own. The arena is a list of blocks, newest first:
//
//      arena.blocks -> [block 16 KiB: used 9 KiB] -> [block 8 KiB: full] -> [block 4 KiB: full]
//
// Only the newest block is allocated from. The rest at the end of an older block is lost, at most
// one request's size per block; blocks double, so there are few of them.

#include "base.h"

#include <stdlib.h>

const char *ptowsp_status_name(ptowsp_status status) {
    switch (status) {
#define PWSP_STATUS_NAME(name, value, text)                                                        \
    case PTOWSP_##name: return #name;
        PTOWSP_STATUSES(PWSP_STATUS_NAME)
#undef PWSP_STATUS_NAME
    case PTOWSP_STATUS_FORCE_INT: break;
    }
    return "UNKNOWN";
}

const char *ptowsp_status_text(ptowsp_status status) {
    switch (status) {
#define PWSP_STATUS_TEXT(name, value, text)                                                        \
    case PTOWSP_##name: return text;
        PTOWSP_STATUSES(PWSP_STATUS_TEXT)
#undef PWSP_STATUS_TEXT
    case PTOWSP_STATUS_FORCE_INT: break;
    }
    return "no such status";
}

static void *pwsp_resize_default(void *user, void *ptr, size_t old_size, size_t new_size) {
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

PWSP_INTERNAL pwsp_memory pwsp_memory_make(ptowsp_resize_fn resize, void *user) {
    pwsp_memory memory = {resize ? resize : pwsp_resize_default, user};
    return memory;
}

PWSP_INTERNAL void *pwsp_memory_alloc(const pwsp_memory *memory, size_t size) {
    PTOWSP_ASSERT(size > 0);
    void *ptr = memory->resize(memory->user, NULL, 0, size);
    return ptr ? memset(ptr, 0, size) : NULL;
}

PWSP_INTERNAL void pwsp_memory_free(const pwsp_memory *memory, void *ptr, size_t size) {
    if (ptr) {
        memory->resize(memory->user, ptr, size, 0);
    }
}

struct pwsp_arena_block {
    pwsp_arena_block *older;
    size_t size;  // of the whole block, this header included
    size_t used;  // header included
};

PWSP_INTERNAL void pwsp_arena_init(pwsp_arena *arena, const pwsp_memory *memory) {
    arena->memory = *memory;
    arena->blocks = NULL;
    arena->allocated = 0;
}

// Takes size bytes from a block, or returns NULL when they do not fit.
static void *pwsp_arena_take(pwsp_arena_block *block, size_t size, size_t align) {
    uintptr_t start = (uintptr_t)block + block->used;
    size_t padding = (size_t)(0 - start) & (align - 1);
    size_t free_size = block->size - block->used;
    if (padding > free_size || size > free_size - padding) {
        return NULL;
    }
    void *ptr = (char *)block + block->used + padding;
    block->used += padding + size;
    return memset(ptr, 0, size);
}

PWSP_INTERNAL void *pwsp_arena_alloc(pwsp_arena *arena, size_t size, size_t align) {
    PTOWSP_ASSERT(align > 0 && (align & (align - 1)) == 0);
    void *ptr = arena->blocks ? pwsp_arena_take(arena->blocks, size, align) : NULL;
    if (ptr) {
        return ptr;
    }
    size_t overhead = sizeof(pwsp_arena_block) + align;
    if (size > SIZE_MAX / 2 - overhead) {
        return NULL;
    }
    size_t block_size = arena->blocks ? arena->blocks->size : PWSP_ARENA_BLOCK_MIN / 2;
    block_size = block_size <= SIZE_MAX / 2 ? block_size * 2 : block_size;
    if (block_size < size + overhead) {
        block_size = size + overhead;
    }
    pwsp_arena_block *block = (pwsp_arena_block *)pwsp_memory_alloc(&arena->memory, block_size);
    if (!block) {
        return NULL;
    }
    block->older = arena->blocks;
    block->size = block_size;
    block->used = sizeof(pwsp_arena_block);
    arena->blocks = block;
    arena->allocated += block_size;
    ptr = pwsp_arena_take(block, size, align);
    PTOWSP_ASSERT(ptr);
    return ptr;
}

static void pwsp_arena_free_from(pwsp_arena *arena, pwsp_arena_block *block) {
    while (block) {
        pwsp_arena_block *older = block->older;
        arena->allocated -= block->size;
        pwsp_memory_free(&arena->memory, block, block->size);
        block = older;
    }
}

PWSP_INTERNAL void pwsp_arena_reset(pwsp_arena *arena) {
    if (arena->blocks) {  // the newest is the largest
        pwsp_arena_free_from(arena, arena->blocks->older);
        arena->blocks->older = NULL;
        arena->blocks->used = sizeof(pwsp_arena_block);
    }
}

PWSP_INTERNAL void pwsp_arena_free(pwsp_arena *arena) {
    pwsp_arena_free_from(arena, arena->blocks);
    arena->blocks = NULL;
}

uint64_t ptowsp_hash(uint64_t start, const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t hash = start;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}
