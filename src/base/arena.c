// Arenas: a list of blocks, each at least twice as large as the one before:
//
//      first -> [4 KiB: full] -> [8 KiB: full] -> [16 KiB: used 9 KiB] -> [32 KiB: empty]
//                                                  current
//
// Allocations come from the current block only. When a request does not fit, the end of the block
// stays unused until the next reset. A reset makes the first block current and frees nothing.

#include "arena.h"

struct pwsp_arena_block {
    pwsp_arena_block *next;
    size_t size;  // of the whole block, this header included
    size_t used;  // header included
};

PWSP_INTERNAL void pwsp_arena_init(pwsp_arena *arena, const pwsp_memory *memory) {
    arena->memory = *memory;
    arena->first = NULL;
    arena->current = NULL;
    arena->allocated = 0;
    arena->step = 0;
}

// Cuts size bytes off a block, or returns NULL when they do not fit.
static void *pwsp_arena_cut(pwsp_arena_block *block, size_t size, size_t align) {
    uintptr_t start = (uintptr_t)block + block->used;
    size_t padding = (size_t)(0 - start) & (align - 1);
    size_t free_size = block->size - block->used;
    if (padding > free_size || size > free_size - padding) {
        return NULL;
    }
    void *ptr = (char *)block + block->used + padding;
    block->used += padding + size;
    return ptr;
}

// Appends a block with room for size bytes; NULL when memory is out.
static pwsp_arena_block *pwsp_arena_grow(pwsp_arena *arena, pwsp_arena_block *last, size_t size,
                                         size_t align) {
    size_t overhead = sizeof(pwsp_arena_block) + align;
    if (size > SIZE_MAX / 4 - overhead) {
        return NULL;
    }
    size_t block_size = arena->step ? arena->step : last ? last->size * 2 : PWSP_ARENA_BLOCK_MIN;
    if (block_size < size + overhead || PWSP_TIGHT(arena->allocated, 1 << 20)) {
        block_size = size + overhead;
    }
    pwsp_arena_block *block = (pwsp_arena_block *)pwsp_memory_take(&arena->memory, block_size);
    if (!block) {
        return NULL;
    }
    block->next = NULL;
    block->size = block_size;
    block->used = sizeof(pwsp_arena_block);
    if (last) {
        last->next = block;
    } else {
        arena->first = block;
    }
    arena->allocated += block_size;
    return block;
}

PWSP_INTERNAL bool pwsp_arena_begin(pwsp_arena *arena, size_t size) {
    size = PWSP_TIGHT(0, 1) ? 0 : size;
    if (arena->first && arena->first->size - sizeof(pwsp_arena_block) >= size) {
        pwsp_arena_reset(arena);
        return true;
    }
    pwsp_arena_free(arena);
    arena->step = 0;
    arena->current = pwsp_arena_grow(arena, NULL, size, 8);
    if (!arena->current) {
        return false;
    }
    arena->step = size / 4 < PWSP_ARENA_BLOCK_MIN ? PWSP_ARENA_BLOCK_MIN : size / 4;
    return true;
}

// Takes from a later block, as the current one is too full, or from a new one.
static void *pwsp_arena_take_next(pwsp_arena *arena, size_t size, size_t align) {
    pwsp_arena_block *last = arena->current;
    for (pwsp_arena_block *block = last ? last->next : NULL; block; block = block->next) {
        void *ptr = pwsp_arena_cut(block, size, align);
        if (ptr) {
            arena->current = block;
            return ptr;
        }
        last = block;
    }
    pwsp_arena_block *block = pwsp_arena_grow(arena, last, size, align);
    if (!block) {
        return NULL;
    }
    arena->current = block;
    return pwsp_arena_cut(block, size, align);
}

PWSP_INTERNAL void *pwsp_arena_take(pwsp_arena *arena, size_t size, size_t align) {
    PTOWSP_ASSERT(align > 0 && (align & (align - 1)) == 0);
    void *ptr = arena->current ? pwsp_arena_cut(arena->current, size, align) : NULL;
    return ptr ? ptr : pwsp_arena_take_next(arena, size, align);
}

PWSP_INTERNAL void *pwsp_arena_alloc(pwsp_arena *arena, size_t size, size_t align) {
    void *ptr = pwsp_arena_take(arena, size, align);
    return ptr ? memset(ptr, 0, size) : NULL;
}

PWSP_INTERNAL bool pwsp_arena_extend(pwsp_arena *arena, void *array, uint64_t *capacity,
                                     uint64_t needed, size_t item_size) {
    uint64_t grown = pwsp_max_u64(pwsp_max_u64(needed, 16), *capacity * 2);
    grown = PWSP_TIGHT(*capacity, 1024) ? needed : grown;
    if (needed <= *capacity) {
        return true;
    }
    bool is_size = grown <= SIZE_MAX / 2 / item_size;
    void *items = is_size ? pwsp_arena_take(arena, (size_t)grown * item_size, 8) : NULL;
    if (!items) {
        return false;
    }
    if (*capacity) {
        memcpy(items, pwsp_array_items(array), (size_t)*capacity * item_size);
    }
    memcpy(array, &items, sizeof items);
    *capacity = grown;
    return true;
}

PWSP_INTERNAL const char *pwsp_arena_copy(pwsp_arena *arena, const char *text) {
    size_t size = strlen(text) + 1;
    void *copy = pwsp_arena_take(arena, size, 1);
    return copy ? (const char *)memcpy(copy, text, size) : NULL;
}

static void *pwsp_arena_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    void *moved = new_size ? pwsp_arena_take((pwsp_arena *)user, new_size, 16) : NULL;
    PTOWSP_ASSERT(!moved || old_size <= new_size);  // arrays only grow
    if (moved && ptr) {
        memcpy(moved, ptr, old_size);
    }
    return moved;
}

PWSP_INTERNAL pwsp_memory pwsp_arena_memory(pwsp_arena *arena) {
    return pwsp_memory_make(pwsp_arena_resize, arena);
}

PWSP_INTERNAL pwsp_arena_mark pwsp_arena_here(const pwsp_arena *arena) {
    const pwsp_arena_mark mark = {arena->current, arena->current ? arena->current->used : 0};
    return mark;
}

PWSP_INTERNAL void pwsp_arena_back(pwsp_arena *arena, pwsp_arena_mark mark) {
    pwsp_arena_block *block = mark.block ? mark.block->next : arena->first;
    for (; block; block = block->next) {
        block->used = sizeof(pwsp_arena_block);
    }
    if (mark.block) {
        mark.block->used = mark.used;
    }
    arena->current = mark.block ? mark.block : arena->first;
}

PWSP_INTERNAL void pwsp_arena_reset(pwsp_arena *arena) {
    const pwsp_arena_mark start = {NULL, 0};
    pwsp_arena_back(arena, start);
}

PWSP_INTERNAL void pwsp_arena_free(pwsp_arena *arena) {
    while (arena->first) {
        pwsp_arena_block *block = arena->first;
        arena->first = block->next;
        pwsp_memory_free(&arena->memory, block, block->size);
    }
    arena->current = NULL;
    arena->allocated = 0;
}
