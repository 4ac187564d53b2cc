// Work descriptors and tiers: section 5 of the header. Expected values are written by hand, down to
// the bytes; the texts of errors, which the header does not give, are those of the library, read
// and found right. Memory is refused allocation by allocation, and all of it must come back.

#include "facts.h"

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

TEST(work__of_fills_every_byte) {
    const ptowsp_work expected = {UINT32_MAX, 255, 7, 0, {1, 2, UINT32_MAX, 4}};
    ptowsp_work work = ptowsp_work_of(UINT32_MAX, 255, 7, 1, 2, UINT32_MAX, 4);
    assert_memory_equal(&work, &expected, sizeof work);
    work = ptowsp_work_of(0, 0, 0, 0, 0, 0, 0);
    const unsigned char zeros[24] = {0};
    assert_memory_equal(&work, zeros, sizeof work);
}

TEST(work__flags_say_first_and_last) {
    for (uint32_t flags = 0; flags < 256; flags++) {
        const ptowsp_work work = {.flags = (uint8_t)flags};
        assert_int_equal(ptowsp_work_is_first(&work), flags & 1);
        assert_int_equal(ptowsp_work_is_last(&work), flags >> 1 & 1);
    }
}

// -- facts ----------------------------------------------------------------------------------------

static ptowsp_work unit;
static ptowsp_tier tiers[5];
static uint32_t tier_count;
static int32_t length;
static const ptowsp_tier *listed;

static void begin(void) {
    memset(&unit, 0, sizeof unit);
    listed = tiers;
}

// ID TIER FLAGS PARAM PARAM PARAM PARAM
static ptowsp_status call_work(void) {
    uint64_t v[7];
    char *at = (char *)(uintptr_t)facts_words;
    for (int i = 0; i < 7; i++) {
        v[i] = strtoull(at, &at, 10);
    }
    assert_int_equal(*at, '\0');
    unit = ptowsp_work_of((uint32_t)v[0], (uint8_t)v[1], (uint8_t)v[2], (uint32_t)v[3],
                          (uint32_t)v[4], (uint32_t)v[5], (uint32_t)v[6]);
    return PTOWSP_OK;
}

static ptowsp_status call_prints(void) {
    char text[128];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_work_print(&unit, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(text, facts_words);
    assert_int_equal(buffer.length, strlen(facts_words));
    return PTOWSP_OK;
}

static ptowsp_status call_decode_tiers(void) {
    listed = ptowsp_decode_tiers();
    tier_count = PTOWSP_DECODE_TIER_COUNT;
    return PTOWSP_OK;
}

// What accessors and the search for a tier say.
static const facts_field *fields(void) {
#define LISTED_TIER(id, length_min, length_max) id, length_min, length_max,
    static int32_t decode_tiers[] = {PTOWSP_DECODE_TIERS(LISTED_TIER)}, found;
    static uint32_t parts[13];
    const uint32_t said[13] = {
        ptowsp_work_request(&unit), ptowsp_work_head(&unit),        ptowsp_work_kv_start(&unit),
        ptowsp_work_kv_len(&unit),  ptowsp_work_kv_end(&unit),      ptowsp_work_batch(&unit),
        ptowsp_work_expert(&unit),  ptowsp_work_token_start(&unit), ptowsp_work_token_count(&unit),
        ptowsp_work_tile(&unit),    ptowsp_work_column_part(&unit), ptowsp_work_is_first(&unit),
        ptowsp_work_is_last(&unit)};
    memcpy(parts, said, sizeof parts);
    found = ptowsp_tier_find(listed, tier_count, length);
    FACTS_RETURN(FIELD(unit.reserved), FIELD(unit.flags), FIELDS(parts, 13), FIELD(tier_count),
                 MEMBER(tiers, id, 5), MEMBER(tiers, length_min, 5), MEMBER(tiers, length_max, 5),
                 FIELD(length), FIELD(found), FIELDS(decode_tiers, 12));
}

TEST(work__facts_hold) {
    static const facts_call calls[] = {{"work ", call_work},
                                       {"prints ", call_prints},
                                       {"decode", call_decode_tiers},
                                       {NULL, NULL}};
    facts all = {"tests/plan/work.facts", begin, fields, calls, NULL, NULL, 0};
    assert_int_equal(PTOWSP_WORK_FIRST, 1);
    assert_int_equal(PTOWSP_WORK_LAST, 2);
    assert_int_equal(PTOWSP_WORK_INIT, 4);
    assert_int_equal(PTOWSP_WORK_POSITIONS, 16);
    facts_run(&all);
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
