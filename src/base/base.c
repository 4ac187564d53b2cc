// Statuses, memory, arenas and hashing, for every other room.
//
// Memory goes through one hook that is told both sizes, so a caller can account for every byte
// without block headers. An arena is a list of blocks, each at least twice as large as the one
// before:
//
//      first -> [4 KiB: full] -> [8 KiB: full] -> [16 KiB: used 9 KiB] -> [32 KiB: empty]
//                                                  current
//
// Allocations come from the current block only. When a request does not fit, the end of the block
// stays unused until the next reset. A reset makes the first block current and frees nothing.

#include "base.h"

#include <stdlib.h>

// In builds that have it, tests that refuse allocations may leave no room to spare (tests/vectors.c):
// a small array grows to what is needed, and all that a small arena hands out has a block of its own.
// So each request reaches the hook that may refuse it, and not only one that makes an array grow.
#if defined(PTOWSP_TIGHT)
extern bool pwsp_is_tight;
#define PWSP_TIGHT(size, limit) (pwsp_is_tight && (size) < (limit))
#else
#define PWSP_TIGHT(size, limit) false
#endif

const char *ptowsp_version(void) {
    return PTOWSP_VERSION;
}

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

PWSP_INTERNAL void *pwsp_memory_take(const pwsp_memory *memory, size_t size) {
    PTOWSP_ASSERT(size > 0);
    return memory->resize(memory->user, NULL, 0, size);
}

PWSP_INTERNAL void *pwsp_memory_alloc(const pwsp_memory *memory, size_t size) {
    void *ptr = pwsp_memory_take(memory, size);
    return ptr ? memset(ptr, 0, size) : NULL;
}

PWSP_INTERNAL void pwsp_memory_free(const pwsp_memory *memory, void *ptr, size_t size) {
    if (ptr) {
        memory->resize(memory->user, ptr, size, 0);
    }
}

// Makes an array larger: to `grown` items.
static bool pwsp_memory_extend(const pwsp_memory *memory, void **array, uint64_t *capacity,
                               uint64_t grown, size_t item_size) {
    if (grown > SIZE_MAX / 2 / item_size) {
        return false;
    }
    size_t old_size = (size_t)*capacity * item_size, new_size = (size_t)grown * item_size;
    void *moved = memory->resize(memory->user, *array, old_size, new_size);
    if (!moved) {
        return false;
    }
    memset((char *)moved + old_size, 0, new_size - old_size);
    *array = moved;
    *capacity = grown;
    return true;
}

PWSP_INTERNAL bool pwsp_memory_grow(const pwsp_memory *memory, void **array, uint64_t *capacity,
                                    uint64_t needed, size_t item_size) {
    uint64_t grown = pwsp_max_u64(pwsp_max_u64(needed, 16), *capacity * 2);
    grown = PWSP_TIGHT(*capacity, 1024) ? needed : grown;
    return needed <= *capacity || pwsp_memory_extend(memory, array, capacity, grown, item_size);
}

PWSP_INTERNAL bool pwsp_memory_grow_little(const pwsp_memory *memory, void **array,
                                           uint64_t *capacity, uint64_t needed, size_t item_size) {
    uint64_t step = *capacity < 128 ? *capacity : *capacity / (*capacity < 4096 ? 8 : 16);
    uint64_t grown = pwsp_max_u64(pwsp_max_u64(needed, 16), *capacity + step);
    grown = PWSP_TIGHT(*capacity, 1024) ? needed : grown;
    return needed <= *capacity || pwsp_memory_extend(memory, array, capacity, grown, item_size);
}

PWSP_INTERNAL bool pwsp_memory_room(const pwsp_memory *memory, void **array, uint64_t *capacity,
                                    uint64_t needed, size_t item_size) {
    if (needed <= *capacity) {
        return true;
    }
    pwsp_memory_free(memory, *array, (size_t)*capacity * item_size);
    *array = NULL;
    if (needed <= SIZE_MAX / 2 / item_size) {
        *array = pwsp_memory_alloc(memory, (size_t)needed * item_size);
    }
    *capacity = *array ? needed : 0;
    return *array != NULL;
}

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

// Adds a block behind the last, with room for size bytes; NULL when memory is out.
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

PWSP_INTERNAL void *pwsp_arena_take(pwsp_arena *arena, size_t size, size_t align) {
    PTOWSP_ASSERT(align > 0 && (align & (align - 1)) == 0);
    pwsp_arena_block *last = NULL;
    for (pwsp_arena_block *block = arena->current; block; block = block->next) {
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

PWSP_INTERNAL void *pwsp_arena_alloc(pwsp_arena *arena, size_t size, size_t align) {
    void *ptr = pwsp_arena_take(arena, size, align);
    return ptr ? memset(ptr, 0, size) : NULL;
}

PWSP_INTERNAL bool pwsp_arena_extend(pwsp_arena *arena, void **array, uint64_t *capacity,
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
        memcpy(items, *array, (size_t)*capacity * item_size);
    }
    *array = items;
    *capacity = grown;
    return true;
}

PWSP_INTERNAL const char *pwsp_arena_copy(pwsp_arena *arena, const char *text) {
    size_t size = strlen(text) + 1;
    void *copy = pwsp_arena_alloc(arena, size, 1);
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

uint64_t ptowsp_hash(uint64_t start, const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t hash = start;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}
