#define _DEFAULT_SOURCE  // madvise

#include "pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *pool_allocate(size_t size) {
    const size_t huge = (size_t)2 << 20;
    if (size > SIZE_MAX - huge) {
        return NULL;
    }
    size = (size + huge - 1) / huge * huge;
    void *pool = aligned_alloc(huge, size);
    if (pool) {
#if defined(MADV_HUGEPAGE)
        madvise(pool, size, MADV_HUGEPAGE);  // a wish: without it, it is only slower
#endif
        memset(pool, 0, size);
    }
    return pool;
}
