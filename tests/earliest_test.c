// The tournament of lanes, against looking at all of them.

#include "../src/time/earliest.h"
#include "test.h"

enum { COUNT_MAX = 70, ROUNDS = 2000 };

static uint32_t first_of_all(const uint64_t *times, uint32_t count) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < count; i++) {
        first = times[i] < times[first] ? i : first;
    }
    return first;
}

static void earliest__takes_the_lowest_of_those_that_are_first(void **state) {
    (void)state;
    pwsp_memory memory = pwsp_memory_make(NULL, NULL);
    uint64_t random = 1;
    for (uint32_t count = 1; count <= COUNT_MAX; count++) {
        uint64_t times[COUNT_MAX] = {0};
        pwsp_earliest earliest;
        assert_true(pwsp_earliest_init(&earliest, &memory, count));
        pwsp_earliest_clear(&earliest, 0);
        assert_int_equal(pwsp_earliest_first(&earliest), 0);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            uint32_t i = (uint32_t)(random >> 33) % count;
            // few values, so that many are equal; and the largest that there is
            times[i] = random >> 61 ? times[i] + (random >> 60) % 3 : PTOWSP_CYCLES_MAX;
            times[i] = times[i] > PTOWSP_CYCLES_MAX ? 0 : times[i];
            pwsp_earliest_set(&earliest, i, times[i]);
            assert_int_equal(pwsp_earliest_first(&earliest), first_of_all(times, count));
        }
        pwsp_earliest_clear(&earliest, PTOWSP_CYCLES_MAX);
        assert_int_equal(pwsp_earliest_first(&earliest), 0);
        pwsp_earliest_set(&earliest, count - 1, 1);
        assert_int_equal(pwsp_earliest_first(&earliest), count - 1);
        pwsp_earliest_free(&earliest, &memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(earliest__takes_the_lowest_of_those_that_are_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
