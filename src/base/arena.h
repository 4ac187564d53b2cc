// Arenas: memory that dies together. Blocks double from PWSP_ARENA_BLOCK_MIN; nothing moves. Reset keeps
// the blocks, so asking for the same again allocates nothing.

#ifndef PWSP_ARENA_H
#define PWSP_ARENA_H

#include "base.h"

#define PWSP_ARENA_BLOCK_MIN 4096

typedef struct pwsp_arena_block pwsp_arena_block;

typedef struct pwsp_arena {
    pwsp_memory memory;
    pwsp_arena_block *first;    // oldest
    pwsp_arena_block *current;  // allocation takes from here; later blocks are empty
    size_t allocated;           // bytes in all blocks, for statistics and tests
    size_t step;                // of blocks after the first, if it was begun; 0: they double
} pwsp_arena;

// How far an arena has been used.
typedef struct pwsp_arena_mark {
    pwsp_arena_block *block;  // NULL: it had none
    size_t used;
} pwsp_arena_mark;

PWSP_INTERNAL void pwsp_arena_init(pwsp_arena *arena, const pwsp_memory *memory);

// Empties an arena, whose first block gets room for so many bytes: one that is smaller is given
// back. False when memory is out. Use it if the total is known in advance: further blocks have a
// quarter of that.
PWSP_INTERNAL bool pwsp_arena_begin(pwsp_arena *arena, size_t size);

// Returns size zeroed bytes aligned to a power of two, or NULL when memory is out. Size 0 is valid.
PWSP_INTERNAL void *pwsp_arena_alloc(pwsp_arena *arena, size_t size, size_t align);

// So many zeroed items of a type, or NULL when memory is out.
#define PWSP_ARENA_ARRAY(arena, type, count)                                                       \
    ((type *)pwsp_arena_alloc(arena, sizeof(type) * (size_t)(count), sizeof(uint64_t)))

// The same, for memory that the caller fills: not zeroed.
PWSP_INTERNAL void *pwsp_arena_take(pwsp_arena *arena, size_t size, size_t align);

// Makes room for `needed` items, aligned to 8, in an array of the arena that grows by doubling. New
// items are not zeroed, and the old array stays in the arena. False, and nothing changed, when
// memory is out or sizes would overflow. The array is a pointer of any type, as in base.h.
#define PWSP_EXTEND(arena, array, capacity, needed)                                                \
    pwsp_arena_extend(arena, &(array), &(capacity), needed, sizeof *(array))
PWSP_INTERNAL bool pwsp_arena_extend(pwsp_arena *arena, void *array, uint64_t *capacity,
                                     uint64_t needed, size_t item_size);

// Copies a terminated string into the arena; NULL when memory is out.
PWSP_INTERNAL const char *pwsp_arena_copy(pwsp_arena *arena, const char *text);

// Memory that comes from the arena, for what wants a pwsp_memory: to free it does nothing.
PWSP_INTERNAL pwsp_memory pwsp_arena_memory(pwsp_arena *arena);

// Returning to a mark gives back everything taken since; the blocks are kept.
PWSP_INTERNAL pwsp_arena_mark pwsp_arena_here(const pwsp_arena *arena);
PWSP_INTERNAL void pwsp_arena_back(pwsp_arena *arena, pwsp_arena_mark mark);

PWSP_INTERNAL void pwsp_arena_reset(pwsp_arena *arena);
PWSP_INTERNAL void pwsp_arena_free(pwsp_arena *arena);

#endif
