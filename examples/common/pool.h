// Memory for a KV cache.

#ifndef POOL_H
#define POOL_H

#include <stddef.h>

// Memory, zeroed, on huge pages where the system has them: a paged cache touches pages at random, and
// with small ones every page misses the TLB. NULL when there is none. Freed by free().
void *pool_allocate(size_t size);

#endif
