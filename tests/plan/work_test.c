// Work descriptors and tiers: section 5 of the header. Expected values are written by hand, down to
// the bytes; the texts of errors, which the header does not give, are those of the library, read
// and found right. Memory is refused allocation by allocation, and all of it must come back.

#include "test.h"

// A test with a context over counted memory, all of which comes back.
#define MEMORY_TEST(name)                                                                          \
    static void name##_of(ptowsp_context *context, test_memory *memory);                           \
    TEST(name) {                                                                                   \
        test_memory memory = {0, 0, 0, 0};                                                         \
        const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};          \
        ptowsp_context *context = test_context(&desc);                                             \
        name##_of(context, &memory);                                                               \
        ptowsp_context_destroy(context);                                                           \
        assert_int_equal(memory.live_bytes, 0);                                                    \
        assert_int_equal(memory.live_blocks, 0);                                                   \
    }                                                                                              \
    static void name##_of(ptowsp_context *context, __attribute__((unused)) test_memory *memory)

// -- layout ---------------------------------------------------------------------------------------

TEST(work__has_24_bytes_in_the_documented_places) {
    assert_int_equal(sizeof(ptowsp_work), 24);
    assert_int_equal(_Alignof(ptowsp_work), 8);
    assert_int_equal(offsetof(ptowsp_work, work_id), 0);
    assert_int_equal(offsetof(ptowsp_work, tier), 4);
    assert_int_equal(offsetof(ptowsp_work, flags), 5);
    assert_int_equal(offsetof(ptowsp_work, reserved), 6);
    assert_int_equal(offsetof(ptowsp_work, params), 8);

    // Written byte by byte; every value reads the same in both byte orders.
    const unsigned char bytes[24] = {0x11, 0x11, 0x11, 0x11, 0x22, 0x33, 0x44, 0x44,
                                     0x55, 0x55, 0x55, 0x55, 0x66, 0x66, 0x66, 0x66,
                                     0x77, 0x77, 0x77, 0x77, 0x88, 0x88, 0x88, 0x88};
    ptowsp_work work;
    memcpy(&work, bytes, sizeof work);
    assert_int_equal(work.work_id, 0x11111111);
    assert_int_equal(work.tier, 0x22);
    assert_int_equal(work.flags, 0x33);
    assert_int_equal(work.reserved, 0x4444);
    assert_int_equal(work.params[0], 0x55555555);
    assert_int_equal(work.params[1], 0x66666666);
    assert_int_equal(work.params[2], 0x77777777);
    assert_int_equal(work.params[3], 0x88888888);
}

TEST(work__flags_have_the_documented_values) {
    assert_int_equal(PTOWSP_WORK_FIRST, 1);
    assert_int_equal(PTOWSP_WORK_LAST, 2);
    assert_int_equal(PTOWSP_WORK_INIT, 4);
    assert_int_equal(PTOWSP_WORK_POSITIONS, 16);
    for (unsigned flags = 0; flags < 256; flags++) {
        ptowsp_work work = {.flags = (uint8_t)flags};
        assert_int_equal(ptowsp_work_is_first(&work), flags % 2 == 1);
        assert_int_equal(ptowsp_work_is_last(&work), flags / 2 % 2 == 1);
    }
}

TEST(work__accessors_read_their_parameter) {
    const ptowsp_work work = {1, 2, 3, 9, {40, 50, 60, 70}};
    assert_int_equal(ptowsp_work_request(&work), 40);
    assert_int_equal(ptowsp_work_head(&work), 50);
    assert_int_equal(ptowsp_work_kv_start(&work), 60);
    assert_int_equal(ptowsp_work_kv_len(&work), 70);
    assert_int_equal(ptowsp_work_kv_end(&work), 130);
    assert_int_equal(ptowsp_work_batch(&work), 40);
    assert_int_equal(ptowsp_work_expert(&work), 50);
    assert_int_equal(ptowsp_work_token_start(&work), 60);
    assert_int_equal(ptowsp_work_token_count(&work), 70);
    assert_int_equal(ptowsp_work_tile(&work), 9);
    assert_int_equal(ptowsp_work_column_part(&work), 9);

    const ptowsp_work big = {0, 0, 0, 0, {UINT32_MAX, UINT32_MAX - 1, INT32_MAX, 0x80000000u}};
    assert_true(ptowsp_work_request(&big) == UINT32_MAX);
    assert_true(ptowsp_work_head(&big) == UINT32_MAX - 1);
    assert_true(ptowsp_work_kv_end(&big) == UINT32_MAX);
    assert_true(ptowsp_work_batch(&big) == UINT32_MAX);
    assert_true(ptowsp_work_expert(&big) == UINT32_MAX - 1);
    assert_true(ptowsp_work_token_start(&big) == INT32_MAX);
    assert_true(ptowsp_work_token_count(&big) == 0x80000000u);
}

TEST(work__of_fills_every_byte) {
    const ptowsp_work expected = {UINT32_MAX, 255, 7, 0, {1, 2, UINT32_MAX, 4}};
    ptowsp_work work = ptowsp_work_of(UINT32_MAX, 255, 7, 1, 2, UINT32_MAX, 4);
    assert_memory_equal(&work, &expected, sizeof work);
    work = ptowsp_work_of(0, 0, 0, 0, 0, 0, 0);
    const unsigned char zeros[24] = {0};
    assert_memory_equal(&work, zeros, sizeof work);
}

// -- print ----------------------------------------------------------------------------------------

static void assert_prints(ptowsp_work work, const char *expected) {
    char text[128];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_work_print(&work, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(text, expected);
    assert_int_equal(buffer.length, strlen(expected));
}

TEST(work__prints_as_one_line) {
    assert_prints(ptowsp_work_of(7, 1, PTOWSP_WORK_FIRST, 3, 0, 0, 1024),
                  "#7 tier 1 first (3, 0) [0, 1024)");
    assert_prints(ptowsp_work_of(8, 1, 0, 3, 0, 1024, 512), "#8 tier 1 (3, 0) [1024, 1536)");
    assert_prints(ptowsp_work_of(9, 0, PTOWSP_WORK_LAST, 3, 0, 1536, 1),
                  "#9 tier 0 last (3, 0) [1536, 1537)");
    assert_prints(ptowsp_work_of(0, 0, PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST, 0, 0, 0, 1),
                  "#0 tier 0 first last (0, 0) [0, 1)");
    assert_prints(
        ptowsp_work_of(UINT32_MAX, 255, 7, UINT32_MAX, UINT32_MAX - 1, 2147483648u, 4000000000u),
        "#4294967295 tier 255 first last init (4294967295, 4294967294) "
        "[2147483648, 6147483648)");
}

// -- create and destroy ---------------------------------------------------------------------------

MEMORY_TEST(work__is_created_zeroed_and_aligned) {
    size_t bytes_before = memory->live_bytes, blocks_before = memory->live_blocks;
    const uint64_t counts[] = {1, 2, 3, 7, 8, 100, 4096, 100003};
    ptowsp_work *work[8];
    for (int i = 0; i < 8; i++) {
        work[i] = NULL;
        assert_ok(ptowsp_work_create(context, counts[i], &work[i]));
        assert_non_null(work[i]);
        assert_int_equal((uintptr_t)work[i] % 64, 0);
        const unsigned char *bytes = (const unsigned char *)work[i];
        for (size_t byte = 0; byte < counts[i] * sizeof(ptowsp_work); byte++) {
            assert_int_equal(bytes[byte], 0);
        }
        memset(work[i], 0xff, counts[i] * sizeof(ptowsp_work));  // all of it is ours
    }
    for (int i = 0; i < 8; i++) {
        ptowsp_work_destroy(context, work[(i * 5 + 3) % 8]);  // in another order
    }
    ptowsp_work_destroy(context, NULL);
    assert_int_equal(memory->live_bytes, bytes_before);
    assert_int_equal(memory->live_blocks, blocks_before);
}

CONTEXT_TEST(work__comes_from_the_default_allocator_too) {
    for (uint64_t count = 1; count < 200; count++) {
        ptowsp_work *work = NULL;
        assert_ok(ptowsp_work_create(context, count, &work));
        assert_int_equal((uintptr_t)work % 64, 0);
        memset(work, 0xff, count * sizeof *work);
        ptowsp_work_destroy(context, work);
    }
    ptowsp_error error = ptowsp_context_error(context);
    assert_ok(error.status);
    assert_string_equal(error.text, "");
}

MEMORY_TEST(work__refuses_a_missing_output) {
    test_refused(context, ptowsp_work_create(context, 1, NULL), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "work_create: out_work is NULL");
}

// Counts that need more bytes than size_t holds must not wrap around to small ones: 24 of the second wrap to 8. Where
// memory is refused the last is never really allocated. The limit in the texts is that of 64-bit machines.
MEMORY_TEST(work__counts_out_of_range_and_missing_memory_are_reported) {
    const size_t bytes_before = memory->live_bytes;
    static const struct {
        uint64_t count;
        ptowsp_status status;
        const char *text;
    } rows[] = {
        {0, PTOWSP_INVALID_PARAMS, "count 0 is not in 1 to 384307168202282325"},
        {768614336404564651u, PTOWSP_INVALID_PARAMS,
         "count 768614336404564651 is not in 1 to 384307168202282325"},
        {UINT64_MAX, PTOWSP_INVALID_PARAMS,
         "count 18446744073709551615 is not in 1 to 384307168202282325"},
        {1, PTOWSP_OUT_OF_MEMORY, "no memory for 1 descriptors"},
        {12345, PTOWSP_OUT_OF_MEMORY, "no memory for 12345 descriptors"},
        {UINT64_C(1) << 40, PTOWSP_OUT_OF_MEMORY, "no memory for 1099511627776 descriptors"}};
    ptowsp_work local, *work = &local;
    char text[100] = "";
    for (size_t i = 0; i < COUNT_OF(rows) - (sizeof(size_t) != 8); i++, work = &local) {
        const size_t allocations = memory->allocations;
        memory->refuse_at = allocations + 1;
        assert_int_equal(ptowsp_work_create(context, rows[i].count, &work), rows[i].status);
        assert_null(work);
        assert_int_equal(memory->live_bytes, bytes_before);
        assert_int_equal(memory->allocations - allocations, i >= 3);
        snprintf(text, sizeof text, "work_create: %s", rows[i].text);
        if (sizeof(size_t) == 8 || i >= 3) {
            test_error_is(context, rows[i].status, PTOWSP_NO_INDEX, text);
        }
    }
    assert_ok(ptowsp_work_create(context, 12345, &work));  // the context is none the worse
    test_error_is(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, text);
    ptowsp_work_destroy(context, work);
}

// -- tiers ----------------------------------------------------------------------------------------

TEST(tier__first_match_in_order_wins) {
    // Neither sorted nor disjoint; 31 to 39 is a gap. Tiers behind the count are not seen.
    static const ptowsp_tier some[] = {
        {5, 10, 20}, {255, 1, 30}, {5, 40, 40}, {0, 15, 50}, {9, 31, 14}};
    static const ptowsp_tier edges[] = {{1, INT32_MAX, INT32_MAX}, {2, INT32_MIN, -1}, {3, 0, 0}};
    static const struct {
        const ptowsp_tier *tiers;
        uint32_t count;
        int32_t length, id;
    } rows[] = {{some, 3, 10, 5},         {some, 3, 20, 5},
                {some, 3, 9, 255},        {some, 3, 21, 255},
                {some, 3, 30, 255},       {some, 3, 1, 255},
                {some, 3, 31, -1},        {some, 3, 39, -1},
                {some, 3, 40, 5},         {some, 3, 41, -1},
                {some, 3, 0, -1},         {some, 4, 31, 0},
                {some, 4, 40, 5},         {some, 4, 51, -1},
                {some, 2, 40, -1},        {some, 0, 10, -1},
                {some + 4, 1, 20, -1},  // reversed: covers nothing
                {edges, 3, INT32_MAX, 1}, {edges, 3, INT32_MAX - 1, -1},
                {edges, 3, INT32_MIN, 2}, {edges, 3, -1, 2},
                {edges, 3, 0, 3},         {edges, 3, 1, -1}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(ptowsp_tier_find(rows[i].tiers, rows[i].count, rows[i].length),
                         rows[i].id);
    }
}

TEST(tier__standard_decode_tiers_are_the_documented_ones) {
    const int32_t expected[4][3] = {
        {0, 1, 1024}, {1, 1025, 4096}, {2, 4097, 16384}, {3, 16385, 131072}};
    assert_int_equal(PTOWSP_DECODE_TIER_COUNT, 4);
    const ptowsp_tier *tiers = ptowsp_decode_tiers();
#define LISTED_TIER(id, length_min, length_max) {id, length_min, length_max},
    const int32_t listed[][3] = {PTOWSP_DECODE_TIERS(LISTED_TIER)};
#undef LISTED_TIER
    assert_int_equal(sizeof listed, sizeof expected);
    assert_memory_equal(listed, expected, sizeof expected);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tiers[i].id, expected[i][0]);
        assert_int_equal(tiers[i].length_min, expected[i][1]);
        assert_int_equal(tiers[i].length_max, expected[i][2]);
    }
    const int32_t lengths[] = {-1, 0, 1, 1024, 1025, 4096, 4097, 16384, 16385, 131072, 131073};
    const int32_t ids[] = {-1, -1, 0, 0, 1, 1, 2, 2, 3, 3, -1};
    for (int i = 0; i < 11; i++) {
        assert_int_equal(ptowsp_tier_find(tiers, PTOWSP_DECODE_TIER_COUNT, lengths[i]), ids[i]);
    }
}
