// What fuzz targets share: reading decisions from bytes, and giving up loudly. Bytes that are used up
// read as 0, so every input is a case, and a short one a small case.

#ifndef FUZZ_BYTES_H
#define FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s, line %d: %s\n", __FILE__, __LINE__, #condition);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct bytes {
    const uint8_t *data;
    size_t size;
} bytes;

// A number of so many bytes, at most 8, the first one highest.
static inline uint64_t take(bytes *in, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count && in->size > 0; i++, in->data++, in->size--) {
        value = value << 8 | *in->data;
    }
    return value;
}

// Below `end`, which is at most 256.
static inline uint32_t take_below(bytes *in, uint32_t end) {
    return (uint32_t)take(in, 1) % end;
}

// Mostly a small number, sometimes any.
static inline uint32_t take_number(bytes *in) {
    uint32_t kind = (uint32_t)take(in, 1);
    switch (kind % 8) {
    case 0: return 0;
    case 1: return (uint32_t)take(in, 4);
    case 2: return (uint32_t)take(in, 2);
    case 3: return UINT32_C(1) << kind / 8;
    default: return (uint32_t)take(in, 1);
    }
}

#endif
