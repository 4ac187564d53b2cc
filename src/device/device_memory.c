// Pieces of device memory. Bisection finds an address in `order`, which is sorted by address. A new
// piece moves the 4-byte entries after it: some 10 us with a hundred thousand pieces. Freed pieces
// are remembered for a while, so that error texts can name them.

#include "device_memory.h"

#include "../base/text.h"
#include "../data/names.h"

#include <inttypes.h>

#define PWSP_LEAKS_NAMED 3

// The number of pieces that begin at or below an address.
static uint32_t pwsp_piece_rank(const pwsp_device_memory *memory, const void *address) {
    uint64_t rank = 0;
    PWSP_BISECT(rank, memory->piece_count,
                (uintptr_t)memory->pieces[memory->order[middle]].begin <= (uintptr_t)address)
    return (uint32_t)rank;
}

// The piece that contains an address, or NULL.
static pwsp_piece *pwsp_piece_at(const pwsp_device_memory *memory, const void *address) {
    uint32_t rank = pwsp_piece_rank(memory, address);
    pwsp_piece *piece = rank > 0 ? &memory->pieces[memory->order[rank - 1]] : NULL;
    return piece && (uintptr_t)address - (uintptr_t)piece->begin < piece->size ? piece : NULL;
}

// The latest freed piece that contained an address, or NULL.
static const pwsp_freed *pwsp_freed_at(const pwsp_device_memory *memory, const void *address) {
    for (uint32_t i = 1; i <= PWSP_FREED_MAX; i++) {
        const pwsp_freed *freed =
            &memory->freed[(memory->freed_next + PWSP_FREED_MAX - i) % PWSP_FREED_MAX];
        if (freed->begin && (uintptr_t)address - (uintptr_t)freed->begin < freed->size) {
            return freed;
        }
    }
    return NULL;
}

// -- allocating -----------------------------------------------------------------------------------

// Makes room for another piece. False when memory is out.
static bool pwsp_piece_reserve(pwsp_device_memory *memory) {
    const pwsp_memory *host = &(*memory->context)->memory;
    void *pieces = memory->pieces, *order = memory->order;
    uint64_t count = memory->piece_count + UINT64_C(1);
    bool has_room = count < UINT32_MAX && pwsp_memory_grow(host, &pieces, &memory->piece_capacity,
                                                           count, sizeof(pwsp_piece));
    memory->pieces = (pwsp_piece *)pieces;
    has_room = has_room &&
               pwsp_memory_grow(host, &order, &memory->order_capacity, count, sizeof(uint32_t));
    memory->order = (uint32_t *)order;
    return has_room;
}

// Bytes of the allocator's block: the piece, plus the worst alignment loss.
static bool pwsp_piece_block_size(uint64_t size, size_t *out_size) {
    *out_size = (size_t)size + PTOWSP_DEVICE_ALIGNMENT - 1;
    return size <= SIZE_MAX / 2 - PTOWSP_DEVICE_ALIGNMENT;
}

PWSP_INTERNAL ptowsp_status pwsp_device_memory_alloc(pwsp_device_memory *memory, const char *name,
                                                     uint64_t size, void **out_memory) {
    ptowsp_context *context = *memory->context;
    if (!name) {
        name = "memory";
    }
    if (!out_memory || !pwsp_name_is_valid(name) || size == 0) {
        return PWSP_REFUSE(context, "device: %s",
                           !out_memory ? "out_memory is NULL"
                           : size == 0 ? "a piece of 0 bytes"
                                       : "a piece has a bad name");
    }
    if (size > memory->limit - memory->used) {
        return PWSP_NO_MEMORY(context,
                              "device: '%s' asks for %" PRIu64 " bytes, but %" PRIu64 " of %" PRIu64
                              " are used",
                              name, size, memory->used, memory->limit);
    }
    size_t block_size;
    uint8_t *block = NULL;
    if (pwsp_piece_block_size(size, &block_size) && pwsp_piece_reserve(memory)) {
        const pwsp_memory *host = &context->memory;
        block = (uint8_t *)host->resize(host->user, NULL, 0, block_size);
    }
    if (!block) {
        return PWSP_NO_MEMORY(
            context, "device: the host has no memory for '%s' of %" PRIu64 " bytes", name, size);
    }
    uint32_t slot = memory->free_slot ? memory->free_slot - 1 : memory->slot_count++;
    pwsp_piece *piece = &memory->pieces[slot];
    memory->free_slot = memory->free_slot ? (uint32_t)piece->number : 0;
    uint32_t low_bits = (uint32_t)((uintptr_t)block % PTOWSP_DEVICE_ALIGNMENT);
    piece->offset = low_bits ? PTOWSP_DEVICE_ALIGNMENT - low_bits : 0;
    piece->begin = block + piece->offset;
    piece->size = size;
    piece->number = ++memory->number;
    memcpy(piece->name, name, strlen(name) + 1);
    uint32_t rank = pwsp_piece_rank(memory, piece->begin);
    memmove(memory->order + rank + 1, memory->order + rank,
            (memory->piece_count - rank) * sizeof *memory->order);
    memory->order[rank] = slot;
    memory->piece_count++;
    memory->used += size;
    memory->used_max = pwsp_max_u64(memory->used_max, memory->used);
    *out_memory = piece->begin;
    return PTOWSP_OK;
}

// -- freeing --------------------------------------------------------------------------------------

static void pwsp_piece_give_back(pwsp_device_memory *memory, const pwsp_piece *piece) {
    size_t block_size;
    pwsp_piece_block_size(piece->size, &block_size);
    pwsp_memory_free(&(*memory->context)->memory, piece->begin - piece->offset, block_size);
}

static ptowsp_status pwsp_piece_refuse_free(const pwsp_device_memory *memory, const void *address) {
    ptowsp_context *context = *memory->context;
    const pwsp_piece *piece = pwsp_piece_at(memory, address);
    const pwsp_freed *freed = pwsp_freed_at(memory, address);
    if (piece) {
        return PWSP_REFUSE(context, "device: free of an address %" PRIu64 " bytes into '%s'",
                           (uint64_t)((uintptr_t)address - (uintptr_t)piece->begin), piece->name);
    }
    return freed ? PWSP_REFUSE(context,
                               "device: free of '%s' (%" PRIu64 " bytes), which has been freed",
                               freed->name, freed->size)
                 : PWSP_REFUSE(context, "device: free of what is not memory of the device");
}

PWSP_INTERNAL ptowsp_status pwsp_device_memory_free(pwsp_device_memory *memory, void *address) {
    if (!address) {
        return PTOWSP_OK;
    }
    pwsp_piece *piece = pwsp_piece_at(memory, address);
    if (!piece || piece->begin != address) {
        return pwsp_piece_refuse_free(memory, address);
    }
    pwsp_freed *freed = &memory->freed[memory->freed_next];
    memory->freed_next = (memory->freed_next + 1) % PWSP_FREED_MAX;
    freed->begin = piece->begin;
    freed->size = piece->size;
    memcpy(freed->name, piece->name, sizeof freed->name);
    uint32_t rank = pwsp_piece_rank(memory, address) - 1, slot = memory->order[rank];
    pwsp_piece_give_back(memory, piece);
    memory->piece_count--;
    memmove(memory->order + rank, memory->order + rank + 1,
            (memory->piece_count - rank) * sizeof *memory->order);
    memory->used -= piece->size;
    piece->size = 0;
    piece->number = memory->free_slot;
    memory->free_slot = slot + 1;
    return PTOWSP_OK;
}

// -- checks ---------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_device_memory_check(const pwsp_device_memory *memory,
                                                     const void *address, uint64_t size,
                                                     const char *what) {
    PTOWSP_ASSERT(size > 0);
    const pwsp_piece *piece = pwsp_piece_at(memory, address);
    if (!piece) {
        const pwsp_freed *freed = pwsp_freed_at(memory, address);
        return PWSP_REFUSE(*memory->context,
                           "device: %s of %" PRIu64 " bytes is at no memory of the device%s%s%s",
                           what, size, freed ? ": '" : "", freed ? freed->name : "",
                           freed ? "' has been freed" : "");
    }
    uint64_t at = (uintptr_t)address - (uintptr_t)piece->begin;
    if (size > piece->size - at) {
        return PWSP_REFUSE(*memory->context,
                           "device: %s of %" PRIu64 " bytes at %" PRIu64 " of '%s' (%" PRIu64
                           " bytes) goes %" PRIu64 " beyond its end",
                           what, size, at, piece->name, piece->size, size - (piece->size - at));
    }
    return PTOWSP_OK;
}

// The allocated piece with the lowest number above `number`.
static const pwsp_piece *pwsp_piece_after(const pwsp_device_memory *memory, uint64_t number) {
    const pwsp_piece *oldest = NULL;
    for (uint32_t i = 0; i < memory->slot_count; i++) {
        const pwsp_piece *piece = &memory->pieces[i];
        if (piece->size > 0 && piece->number > number &&
            (!oldest || piece->number < oldest->number)) {
            oldest = piece;
        }
    }
    return oldest;
}

PWSP_INTERNAL ptowsp_status pwsp_device_memory_end(pwsp_device_memory *memory) {
    ptowsp_status status = PTOWSP_OK;
    if (memory->piece_count > 0) {
        char list[PWSP_LEAKS_NAMED * (PTOWSP_NAME_MAX + 40) + 8];
        ptowsp_output_buffer buffer = {list, sizeof list, 0};
        ptowsp_output text = ptowsp_output_to_buffer(&buffer);
        uint32_t named = pwsp_min_u64(memory->piece_count, PWSP_LEAKS_NAMED) & UINT32_MAX;
        uint64_t number = 0;
        for (uint32_t i = 0; i < named; i++) {
            const pwsp_piece *piece = pwsp_piece_after(memory, number);
            pwsp_text_format(text, "%s'%s' (%" PRIu64 ")", i ? ", " : "", piece->name, piece->size);
            number = piece->number;
        }
        status = pwsp_fail(*memory->context, PTOWSP_LEAKED, memory->piece_count,
                           "device: closed with %u pieces of %" PRIu64 " bytes not freed: %s%s",
                           (unsigned)memory->piece_count, memory->used, list,
                           named < memory->piece_count ? ", ..." : "");
    }
    for (uint32_t i = 0; i < memory->piece_count; i++) {
        pwsp_piece_give_back(memory, &memory->pieces[memory->order[i]]);
    }
    const pwsp_memory *host = &(*memory->context)->memory;
    pwsp_memory_free(host, memory->pieces, (size_t)memory->piece_capacity * sizeof(pwsp_piece));
    pwsp_memory_free(host, memory->order, (size_t)memory->order_capacity * sizeof(uint32_t));
    return status;
}
