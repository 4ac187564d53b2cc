// Digests of elements (src/data/digest.h) by their rule, written once more for numbers: so neither the
// machine's byte order, nor a stride, nor the place in memory counts; each bit and each position does.

#include "src/data/digest.h"

#include "test.h"

// The rule, one word after another, from elements as numbers.
static uint64_t digest_slowly(uint64_t hash, const uint64_t *elements, uint64_t count,
                              uint32_t size) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15), per_word = 8 / size;
    uint64_t words[64], word_count = (count + per_word - 1) / per_word;
    uint64_t whole = count / per_word, lanes[4];
    assert_true(word_count <= 64);
    memset(words, 0, sizeof words);
    for (uint64_t i = 0; i < count; i++) {
        words[i / per_word] += elements[i] << (8 * size * (i % per_word));
    }
#define MIX(number)                                                                                \
    do {                                                                                           \
        uint64_t z = (hash ^ (number)) + golden;                                                   \
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);                                        \
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);                                        \
        hash = z ^ (z >> 31);                                                                      \
    } while (0)
    MIX(count);
    uint64_t in_lanes = whole / 4 * 4;
    for (uint64_t k = 0; in_lanes && k < 4; k++) {
        lanes[k] = hash + k;
        for (uint64_t i = k; i < in_lanes; i += 4) {
            lanes[k] = (lanes[k] ^ words[i]) * golden;
            lanes[k] ^= lanes[k] >> 29;
        }
    }
    for (uint64_t k = 0; in_lanes && k < 4; k++) {
        MIX(lanes[k]);
    }
    for (uint64_t i = in_lanes; i < word_count; i++) {
        MIX(words[i]);
    }
    return hash;
#undef MIX
}

TEST(digest__follows_its_rule_for_elements_as_numbers) {
    uint64_t seed = test_seed();
    for (uint64_t round = 0; round < test_rounds(400); round++) {
        uint64_t random = seed + round;
        uint32_t size = 1u << test_random_in(&random, 0, 3);
        uint64_t count = (uint64_t)test_random_in(&random, 0, 60), start = test_random(&random);
        int64_t step = test_random_in(&random, -2, 2);  // elements; 0 repeats one
        uint64_t elements[64], mask = UINT64_MAX >> (64 - 8 * size);
        char bytes[64 * 8 * 4];
        memset(bytes, 0xa5, sizeof bytes);
        int64_t first = step < 0 ? 120 : 0;
        for (uint64_t i = 0; i < count; i++) {
            elements[i] = (step ? test_random(&random) : start) & mask;
            uint8_t u8 = (uint8_t)elements[i];
            uint16_t u16 = (uint16_t)elements[i];
            uint32_t u32 = (uint32_t)elements[i];
            char *at = bytes + (first + (int64_t)i * step) * (int64_t)size;
            const void *from = size == 1   ? (const void *)&u8
                               : size == 2 ? (const void *)&u16
                               : size == 4 ? (const void *)&u32
                                           : (const void *)&elements[i];
            memcpy(at, from, size);
        }
        uint64_t found =
            pwsp_digest(start, bytes + first * (int64_t)size, count, size, step * (int64_t)size);
        assert_int_equal(found, digest_slowly(start, elements, count, size));
    }
}

// Any bit of any element changes it, and so does an element more or another start. 200 bytes: every size
// has words in lanes, words behind them and, but for 8 bytes, a rest.
TEST(digest__every_bit_counts) {
    uint64_t random = test_seed();
    for (uint32_t size = 1; size <= 8; size *= 2) {
        char bytes[208];
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (char)test_random(&random);
        }
        const uint64_t count = size == 8 ? 25 : 200 / size - 1;
        const uint64_t plain = pwsp_digest(7, bytes, count, size, size);
        for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
            bool is_equal = pwsp_digest(7, bytes, count, size, size) == plain;
            assert_int_equal(is_equal, bit / 8 >= count * size);
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        }
        assert_true(pwsp_digest(7, bytes, count, size, size) == plain);
        assert_true(pwsp_digest(8, bytes, count, size, size) != plain);
        memset(bytes, 0, sizeof bytes);  // zeros are told apart by their number alone
        for (uint64_t more = 0; more < count; more++) {
            assert_true(pwsp_digest(7, bytes, more, size, size) !=
                        pwsp_digest(7, bytes, more + 1, size, size));
        }
    }
}
