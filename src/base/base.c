// Statuses, memory and hashing, for every other room.
//
// Memory goes through one hook that is told both sizes, so a caller can account for every byte
// without block headers.

#include "base.h"

#include <stdlib.h>

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

PWSP_INTERNAL bool pwsp_memory_array(const pwsp_memory *memory, void *array, uint64_t count,
                                     size_t item_size) {
    const bool has_any = count > 0 && count <= SIZE_MAX / 2 / item_size;
    void *items = has_any ? pwsp_memory_alloc(memory, (size_t)count * item_size) : NULL;
    memcpy(array, &items, sizeof items);
    return items || count == 0;
}

// Makes an array larger: to `grown` items.
static bool pwsp_memory_extend(const pwsp_memory *memory, void *array, uint64_t *capacity,
                               uint64_t grown, size_t item_size) {
    if (grown > SIZE_MAX / 2 / item_size) {
        return false;
    }
    size_t old_size = (size_t)*capacity * item_size, new_size = (size_t)grown * item_size;
    void *moved = memory->resize(memory->user, pwsp_array_items(array), old_size, new_size);
    if (!moved) {
        return false;
    }
    memset((char *)moved + old_size, 0, new_size - old_size);
    memcpy(array, &moved, sizeof moved);
    *capacity = grown;
    return true;
}

PWSP_INTERNAL bool pwsp_memory_grow(const pwsp_memory *memory, void *array, uint64_t *capacity,
                                    uint64_t needed, size_t item_size) {
    uint64_t first = item_size > 128 ? 4 : 16;
    uint64_t grown = pwsp_max_u64(pwsp_max_u64(needed, first), *capacity * 2);
    grown = PWSP_TIGHT(*capacity, 1024) ? needed : grown;
    return needed <= *capacity || pwsp_memory_extend(memory, array, capacity, grown, item_size);
}

PWSP_INTERNAL bool pwsp_memory_grow_little(const pwsp_memory *memory, void *array,
                                           uint64_t *capacity, uint64_t needed, size_t item_size) {
    uint64_t step = *capacity < 128 ? *capacity : *capacity / (*capacity < 4096 ? 8 : 16);
    uint64_t grown = pwsp_max_u64(pwsp_max_u64(needed, 16), *capacity + step);
    grown = PWSP_TIGHT(*capacity, 1024) ? needed : grown;
    return needed <= *capacity || pwsp_memory_extend(memory, array, capacity, grown, item_size);
}

PWSP_INTERNAL bool pwsp_memory_room(const pwsp_memory *memory, void *array, uint64_t *capacity,
                                    uint64_t needed, size_t item_size) {
    if (needed <= *capacity) {
        return true;
    }
    pwsp_memory_free(memory, pwsp_array_items(array), (size_t)*capacity * item_size);
    const bool is_good = pwsp_memory_array(memory, array, needed, item_size);
    *capacity = is_good ? needed : 0;
    return is_good;
}

uint64_t ptowsp_hash(uint64_t start, const void *data, size_t size) {
    if (!data) {
        return start;
    }
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t hash = start;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}
