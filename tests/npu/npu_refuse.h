// The emitter's memory with a hook: the n-th allocation is refused. Stands before other headers, as the
// emitter is compiled in.

#ifndef PTOWSP_NPU_REFUSE_H
#define PTOWSP_NPU_REFUSE_H

#include <stddef.h>

static void *refuse_resize(void *ptr, size_t size);
#define PTOWSP_NPU_RESIZE(ptr, size) refuse_resize(ptr, size)
#include "src/npu/npu_text.c"

static struct { size_t live, allocations, refuse_at; } hooks;

static void *refuse_resize(void *ptr, size_t size) {
    if (size == 0) {
        hooks.live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (++hooks.allocations == hooks.refuse_at) {
        return NULL;
    }
    hooks.live += ptr == NULL;
    return realloc(ptr, size);
}

#endif
