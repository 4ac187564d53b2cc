// The hash of sources: MurmurHash3, x64, 128 bits (Austin Appleby, public domain). A tree has a
// megabyte; FNV-1a would take longer for it than all other work together. The hash does not protect
// against a person who makes two trees collide on purpose.

#include "npu.h"

#include <stdio.h>

static uint64_t npu_rotate(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

// Eight bytes, the lowest first, in a form that compilers turn into one load.
static uint64_t npu_word(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
           (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
           (uint64_t)b[7] << 56;
}

// The remaining bytes, at most 8.
static uint64_t npu_word_of(const unsigned char *bytes, size_t count) {
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)bytes[i] << (8 * i);
    }
    return word;
}

static uint64_t npu_word_mixed_low(uint64_t word) {
    return npu_rotate(word * UINT64_C(0x87c37b91114253d5), 31) * UINT64_C(0x4cf5ad432745937f);
}

static uint64_t npu_word_mixed_high(uint64_t word) {
    return npu_rotate(word * UINT64_C(0x4cf5ad432745937f), 33) * UINT64_C(0x87c37b91114253d5);
}

static uint64_t npu_finish(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

NPU_INTERNAL void npu_hash(const void *data, size_t size, char hash[NPU_HASH_SIZE]) {
    const unsigned char *at = (const unsigned char *)data;
    uint64_t low = 0, high = 0;
    size_t left = size;
    for (; left >= 16; left -= 16, at += 16) {
        low ^= npu_word_mixed_low(npu_word(at));
        low = (npu_rotate(low, 27) + high) * 5 + 0x52dce729;
        high ^= npu_word_mixed_high(npu_word(at + 8));
        high = (npu_rotate(high, 31) + low) * 5 + 0x38495ab5;
    }
    high ^= npu_word_mixed_high(left > 8 ? npu_word_of(at + 8, left - 8) : 0);
    low ^= npu_word_mixed_low(left ? npu_word_of(at, left < 8 ? left : 8) : 0);
    low ^= size;
    high ^= size;
    low += high;
    high += low;
    low = npu_finish(low);
    high = npu_finish(high);
    low += high;
    high += low;
    snprintf(hash, NPU_HASH_SIZE, "%016llx%016llx", (unsigned long long)low,
             (unsigned long long)high);
}
