// The memory of a device: pieces from the context's allocator, up to a limit.

#ifndef PWSP_DEVICE_MEMORY_H
#define PWSP_DEVICE_MEMORY_H

#include "../base/context.h"

// An allocated piece; or a free slot: size is 0 and number is the next free slot + 1.
typedef struct pwsp_piece {
    uint8_t *begin;  // aligned to PTOWSP_DEVICE_ALIGNMENT
    uint64_t size;
    uint64_t number;  // counts allocations, from 1
    uint32_t offset;  // from the allocator's block to begin
    char name[PTOWSP_NAME_MAX + 1];
} pwsp_piece;

#define PWSP_FREED_MAX 64

typedef struct pwsp_freed {
    const uint8_t *begin;  // NULL: none
    uint64_t size;
    char name[PTOWSP_NAME_MAX + 1];
} pwsp_freed;

typedef struct pwsp_device_memory {
    ptowsp_context **context;  // where the device keeps its own
    pwsp_piece *pieces;        // in any order
    uint32_t *order;           // indices of pieces, by address
    uint64_t piece_capacity, order_capacity;
    uint32_t piece_count, slot_count;  // allocated; ever used
    uint32_t free_slot;                // index + 1 of a slot, or 0
    uint64_t limit, used, used_max;    // bytes
    uint64_t number;
    pwsp_freed freed[PWSP_FREED_MAX];  // the last ones; a ring
    uint32_t freed_next;
} pwsp_device_memory;

PWSP_INTERNAL ptowsp_status pwsp_device_memory_alloc(pwsp_device_memory *memory, const char *name,
                                                     uint64_t size, void **out_memory);
PWSP_INTERNAL ptowsp_status pwsp_device_memory_free(pwsp_device_memory *memory, void *address);

// Checks that size > 0 bytes from address lie within one piece. `what` names them in the error ("a
// copy in").
PWSP_INTERNAL ptowsp_status pwsp_device_memory_check(const pwsp_device_memory *memory,
                                                     const void *address, uint64_t size,
                                                     const char *what);

// Frees all pieces; LEAKED if there were any.
PWSP_INTERNAL ptowsp_status pwsp_device_memory_end(pwsp_device_memory *memory);

#endif
