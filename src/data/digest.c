// Elements are taken eight bytes at a time, the first one lowest. Four such words are mixed side by
// side, as a multiplication takes longer than the next one has to wait.

#include "digest.h"

#define PWSP_DIGEST_LANES 4u

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PWSP_DIGEST_IS_PLAIN(size, stride) ((stride) == (int64_t)(size))
#else
#define PWSP_DIGEST_IS_PLAIN(size, stride) ((void)(size), (void)(stride), false)
#endif

static uint64_t pwsp_digest_element(const char *at, uint32_t size) {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (size) {
    case 1: memcpy(&u8, at, 1); return u8;
    case 2: memcpy(&u16, at, 2); return u16;
    case 4: memcpy(&u32, at, 4); return u32;
    default: memcpy(&u64, at, 8); return u64;
    }
}

// The word that `count` elements make.
static uint64_t pwsp_digest_word(const char *at, uint64_t count, uint32_t size, int64_t stride) {
    uint64_t word = 0;
    for (uint64_t i = 0; i < count; i++) {
        word |= pwsp_digest_element(at + (int64_t)i * stride, size) << (8 * size * i);
    }
    return word;
}

PWSP_INLINE uint64_t pwsp_digest_mix(uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return lane ^ (lane >> 29);
}

// Mixes words while there are enough for all lanes; returns how many. is_plain is a constant, so that
// words in memory are read as they are.
PWSP_FORCE_INLINE uint64_t pwsp_digest_lanes(uint64_t *hash, const char *at, uint64_t word_count,
                                             uint32_t size, int64_t stride, bool is_plain) {
    uint64_t lanes[PWSP_DIGEST_LANES], i = 0;
    const int64_t step = is_plain ? 8 : 8 / size * stride;
    for (uint32_t k = 0; k < PWSP_DIGEST_LANES; k++) {
        lanes[k] = *hash + k;
    }
    for (; i + PWSP_DIGEST_LANES <= word_count; i += PWSP_DIGEST_LANES) {
        for (uint32_t k = 0; k < PWSP_DIGEST_LANES; k++, at += step) {
            uint64_t word;
            if (is_plain) {
                memcpy(&word, at, 8);
            } else {
                word = pwsp_digest_word(at, 8 / size, size, stride);
            }
            lanes[k] = pwsp_digest_mix(lanes[k], word);
        }
    }
    for (uint32_t k = 0; k < PWSP_DIGEST_LANES; k++) {
        *hash = pwsp_hash_number(*hash, lanes[k]);
    }
    return i;
}

PWSP_INTERNAL uint64_t pwsp_digest(uint64_t hash, const void *data, uint64_t count, uint32_t size,
                                   int64_t stride) {
    PTOWSP_ASSERT(size == 1 || size == 2 || size == 4 || size == 8);
    const char *at = (const char *)data;
    const uint64_t per_word = 8 / size, word_count = count / per_word;
    const int64_t step = (int64_t)per_word * stride;
    uint64_t i = 0;
    hash = pwsp_hash_number(hash, count);
    if (word_count >= PWSP_DIGEST_LANES) {
        i = PWSP_DIGEST_IS_PLAIN(size, stride)
                ? pwsp_digest_lanes(&hash, at, word_count, size, stride, true)
                : pwsp_digest_lanes(&hash, at, word_count, size, stride, false);
    }
    for (; i < word_count; i++) {
        const char *word = at + (int64_t)i * step;
        hash = pwsp_hash_number(hash, pwsp_digest_word(word, per_word, size, stride));
    }
    const char *rest = at + (int64_t)word_count * step;
    uint64_t left = count - word_count * per_word;
    return left ? pwsp_hash_number(hash, pwsp_digest_word(rest, left, size, stride)) : hash;
}
