// Planning, by hand: the rule for the chunk, how sequences are cut, the order of descriptors,
// counts and bounds, that is, section 6 of the header where nothing is wrong. Expected values are
// worked out on paper, and the paper is in the comments; the bound is also held against all
// batches, or many random ones, within limits. plan_random_test.c has the rest of what is random,
// and plan_faults_test.c what is refused.

#include "plan_reference.h"

// -- numbers from paper: the chunk ----------------------------------------------------------------

static uint32_t chunk_of(const int32_t *lengths, uint32_t count, uint32_t heads,
                         const ptowsp_plan_config *config) {
    ptowsp_batch batch = {lengths, count, heads};
    ptowsp_plan_info info = info_with_rubbish();
    uint32_t chunk = 0, again = 0;
    assert_ok(ptowsp_plan_chunk_size(&batch, config, &chunk, &info));
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_ok(ptowsp_plan_chunk_size(&batch, config, &again, NULL));
    assert_int_equal(chunk, again);
    return chunk;
}

TEST(plan__picks_the_smallest_chunk_whose_units_fit) {
    const int32_t one[] = {1000}, two[] = {1000, 500};
    ptowsp_plan_config config = {.chunk_min = 1, .chunk_max = 1000, .max_work_units = 10};
    assert_int_equal(chunk_of(one, 1, 1, &config), 100);  // ceil(1000/100) = 10, ceil(1000/99) = 11
    assert_int_equal(chunk_of(one, 1, 2, &config), 200);  // 5 per head
    assert_int_equal(chunk_of(one, 1, 3, &config), 334);  // 3 per head: 1000/334 < 3, 1000/333 > 3
    assert_int_equal(chunk_of(one, 1, 10, &config), 1000);
    config.max_work_units = 9;
    assert_int_equal(chunk_of(one, 1, 1, &config), 112);  // 1000/112 = 8.93, 1000/111 = 9.009
    config.max_work_units = 3;
    assert_int_equal(chunk_of(two, 2, 1, &config), 500);  // 2 + 1; with 499 it is 3 + 2
    config.max_work_units = 2;
    assert_int_equal(chunk_of(two, 2, 1, &config), 1000);
    config.max_work_units = 1000;
    assert_int_equal(chunk_of(one, 1, 1, &config), 1);
    config.max_work_units = 999;
    assert_int_equal(chunk_of(one, 1, 1, &config), 2);
    config.chunk_min = 300;
    assert_int_equal(chunk_of(one, 1, 1, &config), 300);  // not below chunk_min
}

TEST(plan__picks_chunk_max_when_no_chunk_fits) {
    const int32_t lengths[] = {1000, 0, 1};
    ptowsp_plan_config config = {.chunk_min = 1, .chunk_max = 100, .max_work_units = 11};
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 100);  // 10 + 0 + 1 fit
    config.max_work_units = 10;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 100);
    config.max_work_units = 1;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 100);
    assert_int_equal(chunk_of(lengths, 3, UINT32_MAX, &config), 100);
    config.chunk_min = config.chunk_max = 7;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 7);
}

TEST(plan__picks_among_multiples_of_align) {
    const int32_t lengths[] = {1000};
    ptowsp_plan_config config = {
        .chunk_min = 1, .chunk_max = 1000, .max_work_units = 10, .align = 16};
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 112);  // 100 would do, 112 = 7 * 16
    config.align = 100;
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 100);
    config.align = 16;
    config.chunk_max = 100;
    config.max_work_units = 9;
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 96);  // none fits: the largest in range
    config.max_work_units = 1000;
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 16);
    config.chunk_min = 17;
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 32);
    config.chunk_min = 96;
    config.chunk_max = 111;  // only 96
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 96);
}

TEST(plan__an_empty_step_gets_the_smallest_chunk) {
    const int32_t zeros[] = {0, 0, 0};
    ptowsp_plan_config config = {0};
    assert_int_equal(chunk_of(NULL, 0, 1, NULL), 256);
    assert_int_equal(chunk_of(NULL, 0, 1, &config), 256);
    assert_int_equal(chunk_of(zeros, 3, 8, &config), 256);
    assert_int_equal(chunk_of(zeros, 0, 8, &config), 256);
    config.align = 100;
    assert_int_equal(chunk_of(zeros, 3, UINT32_MAX, &config), 300);
    config.chunk_min = 1;
    assert_int_equal(chunk_of(zeros, 3, 1, &config), 100);
    config.align = 1;
    assert_int_equal(chunk_of(zeros, 3, 1, &config), 1);
}

TEST(plan__null_and_zero_configs_are_the_defaults) {
    const ptowsp_plan_config zero = {0};
    const ptowsp_plan_config *configs[] = {NULL, &zero};
    int32_t lengths[256];
    for (int i = 0; i < 256; i++) {
        lengths[i] = 131072;
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(chunk_of(lengths, 1, 1, configs[i]), 256);    // 512 units
        assert_int_equal(chunk_of(lengths, 128, 1, configs[i]), 256);  // 65536 units
        assert_int_equal(chunk_of(lengths, 256, 1, configs[i]), 512);  // 256 pieces each
        assert_int_equal(chunk_of(lengths, 256, 2, configs[i]), 1024);
        assert_int_equal(chunk_of(lengths, 255, 1, configs[i]),
                         511);  // 257 pieces: 131072/511 = 256.5
        assert_int_equal(chunk_of(lengths, 256, 8, configs[i]), 4096);     // fits exactly
        assert_int_equal(chunk_of(lengths, 256, 1000, configs[i]), 4096);  // does not
        const int32_t pair[] = {512};
        assert_int_equal(chunk_of(pair, 1, 65536, configs[i]), 512);   // 65536 units
        assert_int_equal(chunk_of(pair, 1, 65537, configs[i]), 4096);  // none fits
    }
}

TEST(plan__a_chunk_limit_alone_moves_the_other_one_out_of_its_way) {
    const int32_t lengths[] = {131072};
    ptowsp_plan_config config = {0};
    config.chunk_max = 100;  // below the default of chunk_min: the range is 100 .. 100
    assert_int_equal(chunk_of(lengths, 0, 1, &config), 100);
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 100);
    assert_int_equal(chunk_of(lengths, 1, 65536, &config), 100);
    config.chunk_max = 255;
    assert_int_equal(chunk_of(lengths, 0, 1, &config), 255);
    config.chunk_max = 300;  // 256 .. 300
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 256);
    assert_int_equal(chunk_of(lengths, 1, 65536, &config), 300);
    config.chunk_max = 0;
    config.chunk_min = 5000;  // above the default of chunk_max: 5000 .. 5000
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 5000);
    assert_int_equal(chunk_of(lengths, 1, 65536, &config), 5000);
    config.chunk_min = 4097;
    assert_int_equal(chunk_of(lengths, 1, 65536, &config), 4097);
    config.chunk_min = 4000;  // 4000 .. 4096
    assert_int_equal(chunk_of(lengths, 1, 1, &config), 4000);
    assert_int_equal(chunk_of(lengths, 1, 65536, &config), 4096);
    config.chunk_min = UINT32_MAX;
    assert_int_equal(chunk_of(lengths, 1, 1, &config), UINT32_MAX);
}

// -- numbers from paper: the descriptors ----------------------------------------------------------

// Plans one sequence with one head and compares the lengths of its pieces.
static void assert_pieces(int32_t length, uint32_t chunk, const ptowsp_plan_config *config,
                          const uint32_t *sizes, uint32_t count) {
    ptowsp_batch batch = {&length, 1, 1};
    ptowsp_plan_info info = info_with_rubbish();
    guarded buffer = guarded_make(count, 1);
    assert_ok(ptowsp_plan_generate(&batch, config, chunk, buffer.work, count, &info));
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_true(info.work_count == count);
    uint32_t start = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(ptowsp_work_kv_start(&buffer.work[i]), start);
        assert_int_equal(ptowsp_work_kv_len(&buffer.work[i]), sizes[i]);
        start += sizes[i];
    }
    assert_int_equal(start, length);
    guarded_free(&buffer);
}

#define PIECES(length, chunk, config, ...)                                                         \
    assert_pieces(length, chunk, config, (const uint32_t[]){__VA_ARGS__},                          \
                  (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

TEST(plan__balanced_pieces_differ_by_at_most_one_token) {
    ptowsp_plan_config config = {0};
    PIECES(10, 4, NULL, 3, 3, 4);
    PIECES(11, 4, NULL, 3, 4, 4);
    PIECES(12, 4, &config, 4, 4, 4);
    PIECES(13, 4, &config, 3, 3, 3, 4);
    PIECES(1, 4, NULL, 1);
    PIECES(4, 4, NULL, 4);
    PIECES(5, 4, NULL, 2, 3);
    PIECES(3, 1, NULL, 1, 1, 1);
    PIECES(17000, 4096, NULL, 3400, 3400, 3400, 3400, 3400);
    PIECES(131072, UINT32_MAX, NULL, 131072);
}

TEST(plan__fixed_pieces_are_a_chunk_long_but_the_last) {
    ptowsp_plan_config config = {.chunks = PTOWSP_CHUNKS_FIXED};
    PIECES(10, 4, &config, 4, 4, 2);
    PIECES(11, 4, &config, 4, 4, 3);
    PIECES(12, 4, &config, 4, 4, 4);
    PIECES(13, 4, &config, 4, 4, 4, 1);
    PIECES(1, 4, &config, 1);
    PIECES(3, 1, &config, 1, 1, 1);
    PIECES(131072, UINT32_MAX, &config, 131072);
    config.align = 16;
    PIECES(100, 32, &config, 32, 32, 32, 4);
    PIECES(96, 32, &config, 32, 32, 32);
}

TEST(plan__aligned_pieces_start_at_multiples_of_align) {
    ptowsp_plan_config config = {.align = 16};
    PIECES(100, 32, &config, 16, 32, 32, 20);  // 7 units in 4 pieces: 1 2 2 2
    PIECES(100, 48, &config, 32, 32, 36);      // 7 in 3: 2 2 3
    PIECES(96, 32, &config, 32, 32, 32);
    PIECES(97, 96, &config, 48, 49);   // 7 in 2: 3 4
    PIECES(113, 64, &config, 64, 49);  // 8 in 2: 4 4, and the last ends early
    PIECES(1, 16, &config, 1);
    config.align = 4;
    PIECES(7, 4, &config, 4, 3);
    config.align = 128;
    PIECES(1024, 384, &config, 256, 384, 384);  // 8 in 3: 2 3 3
    PIECES(1023, 384, &config, 256, 384, 383);
}

TEST(plan__descriptors_come_by_sequence_then_head_then_chunk) {
    const int32_t lengths[] = {5, 0, 1025, 4097};
    const ptowsp_batch batch = {lengths, 4, 2};
    const ptowsp_work expected[] = {
        {0, 0, 3, 0, {0, 0, 0, 5}},       {1, 0, 3, 0, {0, 1, 0, 5}},
        {2, 1, 1, 0, {2, 0, 0, 512}},     {3, 1, 2, 0, {2, 0, 512, 513}},
        {4, 1, 1, 0, {2, 1, 0, 512}},     {5, 1, 2, 0, {2, 1, 512, 513}},
        {6, 2, 1, 0, {3, 0, 0, 819}},     {7, 2, 0, 0, {3, 0, 819, 819}},
        {8, 2, 0, 0, {3, 0, 1638, 819}},  {9, 2, 0, 0, {3, 0, 2457, 820}},
        {10, 2, 2, 0, {3, 0, 3277, 820}}, {11, 2, 1, 0, {3, 1, 0, 819}},
        {12, 2, 0, 0, {3, 1, 819, 819}},  {13, 2, 0, 0, {3, 1, 1638, 819}},
        {14, 2, 0, 0, {3, 1, 2457, 820}}, {15, 2, 2, 0, {3, 1, 3277, 820}},
    };
    guarded buffer = guarded_make(16, 0);
    ptowsp_plan_info info = info_with_rubbish();
    assert_ok(ptowsp_plan_generate(&batch, NULL, 1024, buffer.work, 16, &info));
    assert_true(info.work_count == 16);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_same_work(buffer.work, expected, 16);
    guarded_free(&buffer);
}

TEST(plan__the_first_tier_that_covers_the_whole_sequence_wins) {
    // Misordered, overlapping, ids repeated, a gap from 301 to 400, and a tier below zero.
    const ptowsp_tier tiers[] = {
        {9, 200, 300}, {200, -5, 250}, {9, 401, 401}, {255, 402, INT32_MAX}};
    const int32_t lengths[] = {200, 250, 300, 199, 1, 0, 401, 402, INT32_MAX};
    const uint8_t ids[] = {9, 9, 9, 200, 200, 9, 255, 255};
    const ptowsp_batch batch = {lengths, 9, 1};
    ptowsp_plan_config config = {.tiers = tiers, .tier_count = 4};
    guarded buffer = guarded_make(8, 0);
    assert_ok(ptowsp_plan_generate(&batch, &config, INT32_MAX, buffer.work, 8, NULL));
    for (int i = 0; i < 8; i++) {
        assert_int_equal(buffer.work[i].tier, ids[i]);
        assert_int_equal(buffer.work[i].flags, PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST);
    }
    guarded_free(&buffer);
}

TEST(plan__empty_and_all_zero_batches_have_no_work) {
    const int32_t zeros[300] = {0};
    const uint32_t counts[] = {0, 1, 7, 300};
    ptowsp_context *context = serial_context();
    for (int i = 0; i < 4; i++) {
        for (int with_buffer = 0; with_buffer < 2; with_buffer++) {
            ptowsp_batch batch = {counts[i] ? zeros : NULL, counts[i], 8};
            guarded buffer = guarded_make(2, 0);
            ptowsp_work *work = with_buffer ? buffer.work : NULL;
            plan_call call = plan_call_of(&batch, NULL, work, 0);
            call.first_work_id = 5;
            for (int function = TOTAL_WORK; function <= GENERATE_PARALLEL; function *= 2) {
                ptowsp_plan_info info = info_with_rubbish();
                assert_ok(plan_call_run(&call, function, context, &info));
                assert_true(info.work_count == 0 && info.fault == PTOWSP_FAULT_NONE);
            }
            guarded_assert_untouched(&buffer);
            guarded_free(&buffer);
        }
    }
    ptowsp_context_destroy(context);
}

// -- numbers from paper: counts -------------------------------------------------------------------

static uint64_t total_of(const int32_t *lengths, uint32_t count, uint32_t heads, uint32_t chunk) {
    ptowsp_batch batch = {lengths, count, heads};
    ptowsp_plan_config config = {.tiers = any_length, .tier_count = 1};
    ptowsp_plan_info info = info_with_rubbish();
    assert_ok(ptowsp_plan_total_work(&batch, &config, chunk, &info));
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    return info.work_count;
}

TEST(plan__total_work_is_heads_times_the_sum_of_pieces) {
    const int32_t lengths[] = {350, 17000, 0, 1024, 1025};
    assert_true(total_of(lengths, 5, 1, 1024) == 1 + 17 + 0 + 1 + 2);
    assert_true(total_of(lengths, 5, 8, 1024) == 8 * 21);
    assert_true(total_of(lengths, 5, 1, 1) == 350 + 17000 + 1024 + 1025);
    assert_true(total_of(lengths, 5, 3, UINT32_MAX) == 3 * 4);
    assert_true(total_of(lengths, 2, 1, 17000) == 2);
    assert_true(total_of(lengths, 2, 1, 16999) == 3);
}

TEST(plan__counts_use_63_bits) {
    const int32_t lengths[] = {INT32_MAX, INT32_MAX, 1};
    assert_true(total_of(lengths, 2, 1, 1) == UINT64_C(4294967294));
    assert_true(total_of(lengths, 1, 3, 1) == UINT64_C(6442450941));
    assert_true(total_of(lengths, 3, 1u << 31, 1) == (UINT64_C(1) << 63) - (UINT64_C(1) << 31));
    // 2^63 - 1 = 7^2 73 127 337 92737 649657 = (7^2 73 649657) (127 337 92737), the last that fits:
    // 2323823089 heads, and 3969050863 tokens = 2^31 - 1 + 1821567216
    const int32_t most[] = {INT32_MAX, 1821567216};
    assert_true(total_of(most, 2, 2323823089u, 1) == INT64_MAX);
}

// The range of chunks is the rule's, not a limit on chunks of the caller's own; a range without any
// multiple of align is no fault of theirs either.
TEST(plan__chunks_of_the_callers_own_may_lie_outside_the_range) {
    ptowsp_plan_config config = {.chunk_min = 20, .chunk_max = 30, .align = 8};
    PIECES(20, 8, &config, 8, 8, 4);
    PIECES(100, 96, &config, 48, 52);  // 13 units in 2: 6 7
    PIECES(100, 4000000000u, &config, 100);
    config.chunk_max = 23;
    PIECES(100, 24, &config, 16, 16, 24, 24, 20);  // 13 units in 5: 2 2 3 3 3
    PIECES(100, 96, &config, 48, 52);
    config.align = 5000;
    PIECES(100, 5000, &config, 100);
}

// Chunks, lengths and alignments so large that sums of two do not fit 32 bits.
TEST(plan__extreme_chunks_and_alignments_do_not_wrap) {
    ptowsp_plan_config config = {.tiers = any_length, .tier_count = 1};
    PIECES(INT32_MAX, UINT32_MAX, &config, INT32_MAX);
    PIECES(INT32_MAX, INT32_MAX, &config, INT32_MAX);
    PIECES(INT32_MAX, INT32_MAX - 1, &config, 1073741823, 1073741824);
    PIECES(INT32_MAX, 1u << 30, &config, 1073741823, 1073741824);
    config.chunk_max = UINT32_MAX;  // so that a multiple of align is in range
    config.align = UINT32_MAX;
    PIECES(INT32_MAX, UINT32_MAX, &config, INT32_MAX);
    PIECES(1, UINT32_MAX, &config, 1);
    config.align = 1u << 31;
    PIECES(INT32_MAX, 1u << 31, &config, INT32_MAX);
    config.align = 1u << 30;
    PIECES(INT32_MAX, 1u << 30, &config, 1073741824, 1073741823);
    PIECES(INT32_MAX, 3u << 30, &config, INT32_MAX);
    config.align = 1500000000;  // twice that is past 2^31: 2 units in 2 pieces
    PIECES(INT32_MAX, 1500000000, &config, 1500000000, 647483647);
    config.chunks = PTOWSP_CHUNKS_FIXED;
    PIECES(INT32_MAX, 1500000000, &config, 1500000000, 647483647);
    config.align = 1;
    PIECES(INT32_MAX, UINT32_MAX, &config, INT32_MAX);
    PIECES(INT32_MAX, INT32_MAX - 1, &config, INT32_MAX - 1, 1);

    const int32_t lengths[] = {INT32_MAX, INT32_MAX, INT32_MAX};
    config.chunk_min = UINT32_MAX - 1;
    config.chunk_max = UINT32_MAX;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), UINT32_MAX - 1);
    config.max_work_units = 1;  // nothing fits
    assert_int_equal(chunk_of(lengths, 3, 1, &config), UINT32_MAX);
    config.chunk_min = 1;
    config.align = UINT32_MAX;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), UINT32_MAX);
    config.align = config.chunk_max =
        1;  // 3 (2^31 - 1) (2^32 - 1) units, past 2^64: the rule holds
    assert_int_equal(chunk_of(lengths, 3, UINT32_MAX, &config), 1);
    config.chunk_max = UINT32_MAX;
    config.max_work_units = UINT32_MAX;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 2);  // 3 * 2^30 units; with 1 past 2^32
    assert_int_equal(chunk_of(lengths, 1, UINT32_MAX, &config), INT32_MAX);
}

// -- ids ------------------------------------------------------------------------------------------

TEST(plan__ranges_take_ids_up_to_the_last_one) {
    const int32_t lengths[] = {100, 3, 1};
    const ptowsp_batch batch = {lengths, 3, 1};
    const uint64_t ids = UINT64_C(1) << 32;
    guarded buffer = guarded_make(4, 0);
    assert_ok(ptowsp_plan_generate_range(&batch, NULL, 1, 1, 2, ids - 4, buffer.work, 4, NULL));
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(buffer.work[i].work_id, UINT32_MAX - 3 + i);
        assert_int_equal(buffer.work[i].params[0], i < 3 ? 1 : 2);
    }
    guarded_free(&buffer);

    // No work needs no ids: behind the last one there is room for empty sequences.
    const int32_t zeros[] = {0, 0};
    const ptowsp_batch empty = {zeros, 2, 1};
    assert_ok(ptowsp_plan_generate_range(&empty, NULL, 1, 0, 2, ids, NULL, 0, NULL));
}

// -- the bound ------------------------------------------------------------------------------------

static uint64_t bound_of(const ptowsp_plan_config *config, const ptowsp_plan_limits *limits) {
    uint64_t count = 77, again = 77;
    ptowsp_plan_info info = info_with_rubbish();
    assert_ok(ptowsp_plan_work_bound(config, limits, &count, &info));
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_true(info.work_count == 0 && info.index == NONE && info.value == 0 && info.limit == 0);
    assert_ok(ptowsp_plan_work_bound(config, limits, &again, NULL));
    assert_true(count == again);
    return count;
}

// The numbers are the largest that any batch has. The header promises no less; that the bound is no
// more either is seen to here, so that buffers do not grow unnoticed.
TEST(plan__work_bound_has_the_values_from_paper) {
    const struct {
        ptowsp_plan_limits limits;
        uint64_t count;
    } cases[] = {
        {{100, 1, 131072, 0}, 51200},  // 100 * 512 units with chunk 256 fit 65536
        // 8 * 100 * 512 do not, 8 * 100 * 32 with chunk 4096 do: in between, as many as fit.
        {{100, 8, 131072, 0}, 65536},
        {{100, 7, 131072, 0}, 65534},    // 7 heads * 9362 is the last below 65536
        {{100, 32, 131072, 0}, 102400},  // 32 * 100 * 32: more than fit, at the largest chunk
        // 2^20 tokens: one each for 100 sequences, the other 1048476 buy 255 more chunks of 4096.
        {{100, 256, 131072, 1048576}, 256 * 355},
        {{100, 2, 131072, 60}, 120},      // 60 sequences of one token
        {{100, 1, INT32_MAX, 0}, 51200},  // longer than 131072 is never planned
        {{100, 3, 131072, 1}, 3},
        {{0, 8, 1000, 0}, 0},
        {{8, 8, 0, 0}, 0},
        {{8, 65537, 1, 0}, 8 * 65537},  // more heads than work units
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(bound_of(NULL, &cases[i].limits), cases[i].count);
    }
    // The longest length that has a tier counts, wherever the tier is: 600 tokens, 3 chunks of 256.
    const ptowsp_tier tiers[] = {{0, 1, 100}, {1, 101, 600}, {2, -5, 200}};
    const ptowsp_plan_config misordered = {.tiers = tiers, .tier_count = 3};
    const ptowsp_plan_limits ten = {10, 1, 5000, 0};
    assert_int_equal(bound_of(&misordered, &ten), 30);
    // Chunks are multiples of align: 300 and 4050 bound the range, not 256 and 4096.
    const ptowsp_plan_config pages = {.align = 150};
    const ptowsp_plan_limits one = {1, 1, 4096, 0}, many = {1, 65536, 4096, 0};
    assert_int_equal(bound_of(&pages, &one), 14);          // 4096 / 300 = 13.7
    assert_int_equal(bound_of(&pages, &many), 2 * 65536);  // 4096 / 4050 > 1
}

// One unit per token: 2^63 - 1 = 2323823089 * 3969050863 units are the last that are counted.
TEST(plan__work_bound_counts_with_63_bits) {
    const ptowsp_plan_config config = {
        .chunk_min = 1, .chunk_max = 1, .tiers = any_length, .tier_count = 1};
    const ptowsp_plan_limits last = {2, 2323823089u, INT32_MAX, 3969050863u};
    assert_true(bound_of(&config, &last) == INT64_MAX);
    const ptowsp_plan_limits no_tokens = {2, 1u << 31, INT32_MAX, 0};
    assert_true(bound_of(&config, &no_tokens) == (UINT64_C(1) << 63) - (UINT64_C(1) << 32));
    const ptowsp_plan_limits past[] = {
        {3, 1u << 31, INT32_MAX, UINT64_C(1) << 32},          // 2^63
        {2, 2323823090u, INT32_MAX, 3969050863u},             // one head more
        {3, UINT32_MAX, INT32_MAX, (UINT64_C(1) << 32) + 2},  // 2^64 + 2^32 - 2
        {UINT32_MAX, UINT32_MAX, INT32_MAX, 0},
        {UINT32_MAX, UINT32_MAX, INT32_MAX, UINT64_MAX},
    };
    const fault_case expected = {PTOWSP_FAULT_TOTAL_OVERFLOW, NONE, 0, 0,
                                 "the number of work units exceeds 63 bits"};
    for (size_t i = 0; i < COUNT_OF(past); i++) {
        plan_call call = plan_call_of(NULL, &config, NULL, 0);
        call.limits = &past[i];
        refuse(&call, WORK_BOUND, &expected);
    }
}

// The count of the chunk that is picked for a batch.
static uint64_t picked_count(const ptowsp_batch *batch, const ptowsp_plan_config *config) {
    uint32_t chunk = 0;
    assert_ok(ptowsp_plan_chunk_size(batch, config, &chunk, NULL));
    return reference_total(batch, chunk);
}

// The largest count of all batches within limits of at most three sequences, all of them tried.
static uint64_t largest_count(const ptowsp_plan_config *config, const ptowsp_plan_limits *limits,
                              int32_t length_max) {
    uint64_t most = 0;
    int32_t l[3];
    for (l[0] = 0; l[0] <= length_max; l[0]++) {
        for (l[1] = 0; l[1] <= (limits->sequence_count_max > 1 ? l[0] : 0); l[1]++) {
            for (l[2] = 0; l[2] <= (limits->sequence_count_max > 2 ? l[1] : 0); l[2]++) {
                uint64_t tokens = (uint64_t)l[0] + (uint64_t)l[1] + (uint64_t)l[2];
                if (limits->token_count_max == 0 || tokens <= limits->token_count_max) {
                    ptowsp_batch batch = {l, limits->sequence_count_max, limits->kv_head_count};
                    uint64_t count = picked_count(&batch, config);
                    most = count > most ? count : most;
                }
            }
        }
    }
    return most;
}

// Every batch within small limits is tried, with a config that makes the chunk matter. With a limit
// on tokens the bound may be too large; without one it is what the worst batch has.
TEST(plan__work_bound_holds_for_all_batches_within_small_limits) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 3000); round++) {
        const ptowsp_tier tier[] = {{0, 1, (int32_t)test_random_in(&random, 1, 9)}};
        ptowsp_plan_config config = {.chunk_min = test_random_u32(&random, 1, 5)};
        config.chunk_max = config.chunk_min + test_random_u32(&random, 2, 6);
        config.max_work_units = test_random_u32(&random, 1, 30);
        config.align = test_random_u32(&random, 0, 3);
        ptowsp_plan_limits limits = {test_random_u32(&random, 1, 3), test_random_u32(&random, 1, 3),
                                     (int32_t)test_random_in(&random, 1, 9),
                                     (uint64_t)test_random_in(&random, 1, 25)};
        int32_t length_max = limits.length_max;
        if (round % 3 == 0) {
            config.tiers = tier;
            config.tier_count = 1;
            length_max = length_max < tier[0].length_max ? length_max : tier[0].length_max;
        }
        assert_true(bound_of(&config, &limits) >= largest_count(&config, &limits, length_max));
        limits.token_count_max = 0;
        assert_int_equal(bound_of(&config, &limits), largest_count(&config, &limits, length_max));
    }
}

// Lengths within the limits: as many tokens as there are, in few or in many sequences.
static void bounded_lengths(const ptowsp_plan_limits *limits, uint64_t *random, int32_t *lengths,
                            uint32_t count) {
    uint64_t left = limits->token_count_max ? limits->token_count_max : UINT64_MAX;
    int64_t shape = test_random_in(random, 0, 4);
    for (uint32_t i = 0; i < count; i++) {
        int64_t length = shape == 0   ? limits->length_max
                         : shape == 1 ? 1
                         : shape == 2 ? test_random_in(random, 0, limits->length_max)
                         : shape == 3 ? random_scaled(random, 17)
                                      : random_scaled(random, 10);
        length = length > limits->length_max ? limits->length_max : length;
        lengths[i] = (uint64_t)length > left ? (int32_t)left : (int32_t)length;
        left -= (uint64_t)lengths[i];
    }
}

TEST(plan__work_bound_is_never_exceeded) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 3000); round++) {
        ptowsp_plan_config config = {.chunk_min = (uint32_t)random_scaled(&random, 10)};
        config.chunk_max = config.chunk_min + (uint32_t)random_scaled(&random, 12);
        config.max_work_units = round % 4 ? (uint32_t)random_scaled(&random, 16) : 0;
        config.align = test_random_u32(&random, 0, config.chunk_max - config.chunk_min);
        ptowsp_plan_limits limits = {test_random_u32(&random, 0, 200),
                                     test_random_u32(&random, 1, 40),
                                     (int32_t)test_random_in(&random, 0, 131072), 0};
        limits.token_count_max = round % 3 ? (uint64_t)random_scaled(&random, 24) : 0;
        uint64_t bound = bound_of(&config, &limits);
        for (int i = 0; i < 8; i++) {
            int32_t lengths[200];
            uint32_t count = i == 0 ? limits.sequence_count_max
                                    : test_random_u32(&random, 0, limits.sequence_count_max);
            bounded_lengths(&limits, &random, lengths, count);
            ptowsp_batch batch = {lengths, count, limits.kv_head_count};
            assert_true(picked_count(&batch, &config) <= bound);
        }
    }
}

// -- what lies behind -----------------------------------------------------------------------------

// A buffer has room for the largest step; the units of an earlier one stay behind those of this,
// whatever writes them: nothing, sizes below those of vectors, one lane or several.
TEST(plan__leaves_slots_behind_its_units_as_they_are) {
    enum { LENGTHS = 40, CAPACITY = LENGTHS * 9 * 3 + 70 };
    static ptowsp_work work[CAPACITY], old[CAPACITY];
    int32_t lengths[LENGTHS];
    uint64_t random = test_seed();
    ptowsp_context *context = test_context(NULL);
    memset(old, 0xa5, sizeof old);
    for (uint32_t sample = 0; sample < 3000; sample++) {
        uint32_t count = test_random_u32(&random, 0, LENGTHS);
        ptowsp_batch batch = {lengths, count, test_random_u32(&random, 1, 3)};
        ptowsp_plan_config config = {.chunks =
                                         sample % 2 ? PTOWSP_CHUNKS_FIXED : PTOWSP_CHUNKS_BALANCED};
        for (uint32_t i = 0; i < count; i++) {
            lengths[i] = (int32_t)test_random_in(&random, 0, 9 * 64);
        }
        ptowsp_plan_info info;
        ptowsp_status status;
        memcpy(work, old, sizeof work);
        if (sample % 3 == 0) {
            status = ptowsp_plan_generate(&batch, &config, 64, work, CAPACITY, &info);
        } else if (sample % 3 == 1) {
            status =
                ptowsp_plan_generate_range(&batch, &config, 64, 0, count, 0, work, CAPACITY, &info);
        } else {
            status =
                ptowsp_plan_generate_parallel(context, &batch, &config, 64, work, CAPACITY, &info);
        }
        assert_ok(status);
        assert_true(info.work_count <= CAPACITY - 70);
        size_t behind = (CAPACITY - info.work_count) * sizeof work[0];
        assert_memory_equal(work + info.work_count, old, behind);
    }
    ptowsp_context_destroy(context);
}

TEST(plan__plans_say_when_they_exceed_their_units) {
    const int32_t lengths[] = {1000};
    const ptowsp_batch batch = {lengths, 1, 1};
    ptowsp_plan_config config = {.chunk_min = 1, .chunk_max = 100};
    ptowsp_work work[16];
    ptowsp_plan_info info;
    for (uint32_t units = 9; units <= 10; units++) {
        uint32_t chunk;
        config.max_work_units = units;
        assert_ok(ptowsp_plan_chunk_size(&batch, &config, &chunk, &info));
        assert_int_equal(chunk, 100);
        assert_int_equal(info.is_over, units < 10);
        assert_ok(ptowsp_plan_total_work(&batch, &config, chunk, &info));
        assert_int_equal(info.is_over, units < 10);
        assert_ok(ptowsp_plan_generate(&batch, &config, chunk, work, 16, &info));
        assert_int_equal(info.is_over, units < 10);
    }
    assert_false(ptowsp_plan_is_invariant(NULL));
    assert_false(ptowsp_plan_is_invariant(&config));
    config.chunks = PTOWSP_CHUNKS_FIXED;
    assert_false(ptowsp_plan_is_invariant(&config));
    config.chunk_min = 100;
    assert_true(ptowsp_plan_is_invariant(&config));
    config.chunk_min = 97;  // in pages of 50 only 100 is left
    config.align = 50;
    assert_true(ptowsp_plan_is_invariant(&config));
}
