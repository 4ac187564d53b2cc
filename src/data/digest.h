// Hashes of elements: of their bits as numbers, so that they depend neither on the byte order of the
// machine nor on where in memory elements lie.

#ifndef PWSP_DIGEST_H
#define PWSP_DIGEST_H

#include "../base/base.h"

// Goes on from a hash with `count` elements of 1, 2, 4 or 8 bytes, `stride` bytes from one to the
// next.
PWSP_INTERNAL uint64_t pwsp_digest(uint64_t hash, const void *data, uint64_t count, uint32_t size,
                                   int64_t stride);

#endif
