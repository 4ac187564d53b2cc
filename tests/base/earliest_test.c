// The tournaments of lanes, against looking at all of them.

#include "src/base/block_list.h"
#include "src/base/earliest.h"
#include "test.h"

enum { COUNT_MAX = 70, ROUNDS = 2000 };

static uint32_t first_of_all(const uint64_t *times, uint32_t count) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < count; i++) {
        first = times[i] < times[first] ? i : first;
    }
    return first;
}

TEST(earliest__takes_the_lowest_of_those_that_are_first) {
    const pwsp_memory heap = pwsp_memory_make(NULL, NULL);
    pwsp_blocks blocks;
    const pwsp_memory memory = pwsp_blocks_begin(&blocks, &heap);
    uint64_t random = 1;
    for (uint32_t count = 1; count <= COUNT_MAX; count++) {
        uint64_t times[COUNT_MAX] = {0};
        pwsp_earliest earliest;
        assert_true(pwsp_earliest_init(&earliest, &memory, count));
        pwsp_earliest_clear(&earliest, 0);
        assert_int_equal(pwsp_earliest_lane(&earliest), 0);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            uint32_t i = (uint32_t)(random >> 33) % count;
            // few values, so that many are equal; and the largest that there is
            times[i] = random >> 61 ? times[i] + (random >> 60) % 3 : PTOWSP_CYCLES_MAX;
            times[i] = times[i] > PTOWSP_CYCLES_MAX ? 0 : times[i];
            pwsp_earliest_set(&earliest, i, times[i]);
            assert_int_equal(pwsp_earliest_lane(&earliest), first_of_all(times, count));
        }
        pwsp_earliest_clear(&earliest, PTOWSP_CYCLES_MAX);
        assert_int_equal(pwsp_earliest_lane(&earliest), 0);
        pwsp_earliest_set(&earliest, count - 1, 1);
        assert_int_equal(pwsp_earliest_lane(&earliest), count - 1);
        pwsp_blocks_free(&blocks);
    }
}

// Ends near each other, equal, beyond what a player can tell from base, before base, and the last
// one there is.
TEST(earliest__takes_the_lowest_of_those_that_have_a_time) {
    const pwsp_memory heap = pwsp_memory_make(NULL, NULL);
    pwsp_blocks blocks;
    const pwsp_memory memory = pwsp_blocks_begin(&blocks, &heap);
    uint64_t random = 2;
    for (uint32_t count = 1; count <= COUNT_MAX; count++) {
        uint64_t times[COUNT_MAX];
        uint32_t running = 0;
        pwsp_earliest ends;
        assert_true(pwsp_earliest_init(&ends, &memory, count));
        memset(times, 0xff, sizeof times);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            uint32_t i = (uint32_t)(random >> 33) % count;
            if (times[i] == UINT64_MAX && random >> 63) {
                times[i] = (random >> 59 & 3) + (random >> 61 & 1 ? UINT64_C(1) << 62 : 0);
                times[i] = random >> 55 & 15 ? times[i] : PTOWSP_CYCLES_MAX;
                pwsp_earliest_set(&ends, i, times[i]);
                running++;
            } else if (running) {
                i = first_of_all(times, count);
                assert_int_equal(pwsp_earliest_lane(&ends), i);
                pwsp_earliest_set(&ends, i, PWSP_EARLIEST_NONE);
                times[i] = UINT64_MAX;
                running--;
            }
            assert_true(pwsp_earliest_time(&ends) == times[first_of_all(times, count)]);
        }
        pwsp_earliest_clear(&ends, PWSP_EARLIEST_NONE);
        assert_true(pwsp_earliest_time(&ends) == UINT64_MAX);
        pwsp_blocks_free(&blocks);
    }
}
