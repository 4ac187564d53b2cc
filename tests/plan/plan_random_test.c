// Planning, at random: batches of every shape are planned and compared byte for byte with the slow
// reference of plan_reference.h, as a whole and range by range. Buffers are exactly as long as they must
// be and stand between guard bytes, since vector code writes eight descriptors at a time.

#include "plan_reference.h"

// -- random batches -------------------------------------------------------------------------------

#define SAMPLE_TIERS_MAX 40

typedef struct sample {
    uint64_t random;
    ptowsp_tier tiers[SAMPLE_TIERS_MAX];
    ptowsp_plan_config config;  // as given to the library
    ptowsp_plan_config full;    // as the reference understands it
    ptowsp_batch batch;
    int32_t *lengths;  // a block of exactly their size, so that a sanitizer sees reads behind it
} sample;

// Tiers in any order, with overlaps and gaps; mostly something at the end covers all.
static void sample_tiers(sample *s) {
    if (test_random_in(&s->random, 0, 2) == 0) {
        return;  // the standard ones
    }
    uint32_t count = test_random_u32(&s->random, 1, SAMPLE_TIERS_MAX - 1);
    for (uint32_t i = 0; i < count; i++) {
        int64_t low = test_random_in(&s->random, 0, 9) ? random_scaled(&s->random, 30) : INT32_MIN;
        int64_t high = low + random_scaled(&s->random, 30) - 1;
        s->tiers[i].id = (uint8_t)test_random_in(&s->random, 0, 255);
        s->tiers[i].length_min = (int32_t)low;
        s->tiers[i].length_max = (int32_t)high;
    }
    if (test_random_in(&s->random, 0, 7) != 0) {
        s->tiers[count].id = (uint8_t)test_random_in(&s->random, 0, 255);
        s->tiers[count].length_min = (int32_t)test_random_in(&s->random, 0, 1);
        s->tiers[count++].length_max = INT32_MAX;
    }
    s->config.tiers = s->tiers;
    s->config.tier_count = count;
}

// Chunk range, align, mode: such that some multiple of align is in the range.
static void sample_config(sample *s) {
    do {
        memset(&s->config, 0, sizeof s->config);
        uint64_t shape = test_random(&s->random);
        s->config.align = shape % 3 ? 0 : (uint32_t)random_scaled(&s->random, 7);
        s->config.chunk_min = shape % 5 == 0 ? 0 : (uint32_t)random_scaled(&s->random, 12);
        if (shape % 7 == 0) {
            s->config.chunk_min = shape % 2 ? 1 : (uint32_t)(random_scaled(&s->random, 32) - 1);
        }
        if (shape % 11 != 0) {
            uint64_t chunk_max = s->config.chunk_min + (uint64_t)random_scaled(&s->random, 32) - 1;
            s->config.chunk_max = chunk_max > UINT32_MAX ? UINT32_MAX : (uint32_t)chunk_max;
        }
        s->full = reference_config(&s->config);
    } while (s->full.chunk_min > s->full.chunk_max ||
             ceil_div(s->full.chunk_min, s->full.align) > s->full.chunk_max / s->full.align);
    s->config.chunks = test_random(&s->random) % 2 ? PTOWSP_CHUNKS_FIXED : PTOWSP_CHUNKS_BALANCED;
    sample_tiers(s);
    s->full = reference_config(&s->config);
}

static int32_t sample_length(sample *s, uint64_t shape) {
    int64_t limit = s->config.tiers ? INT32_MAX : 131072;
    int64_t length = 0;
    const ptowsp_tier *edge = &s->full.tiers[test_random(&s->random) % s->full.tier_count];
    switch (shape) {
    case 0: length = 0; break;
    case 1: length = 1; break;
    case 2: length = random_scaled(&s->random, 17); break;
    case 3: length = test_random_in(&s->random, 1, 5000); break;
    case 4: length = test_random_in(&s->random, 1, limit); break;
    case 5: length = edge->length_min + test_random_in(&s->random, -1, 1); break;
    case 6: length = edge->length_max + test_random_in(&s->random, -1, 1); break;
    case 7: length = s->full.chunk_min * random_scaled(&s->random, 8); break;
    case 8: length = s->full.chunk_max * random_scaled(&s->random, 4) + 1; break;
    case 9: length = INT32_MAX; break;
    default: length = s->full.align * random_scaled(&s->random, 12) - 1; break;
    }
    bool is_rare = test_random(&s->random) % 4096 == 0;  // let it be a length that is refused
    bool is_valid = 0 <= length && length <= limit;
    return is_valid || (is_rare && length <= INT32_MAX && length >= INT32_MIN)
               ? (int32_t)length
               : (int32_t)random_scaled(&s->random, 12);
}

// One head, which is written differently, as often as any other number.
static uint32_t sample_heads(sample *s) {
    return test_random(&s->random) % 2 ? 1 : test_random_u32(&s->random, 1, 40);
}

static void sample_make(sample *s, uint64_t seed, uint64_t number) {
    s->random = seed + number * 1000003;
    sample_config(s);
    uint32_t count = test_random_u32(&s->random, 0, test_random(&s->random) % 4 ? 40 : 300);
    s->lengths = (int32_t *)test_alloc(count, sizeof(int32_t));
    uint64_t shape = test_random(&s->random) % 16;  // 11 and up: a mix
    for (uint32_t i = 0; i < count; i++) {
        s->lengths[i] = sample_length(s, shape < 11 ? shape : test_random(&s->random) % 11);
    }
    for (uint64_t bad = test_random(&s->random) % 64; count > 0 && bad < 3; bad++) {  // up to three
        s->lengths[test_random(&s->random) % count] =
            bad % 2 ? (int32_t)-random_scaled(&s->random, 31) : INT32_MAX;
    }
    s->batch.lengths = s->lengths;
    s->batch.sequence_count = count;
    s->batch.kv_head_count = sample_heads(s);
    // The limit: any, or exactly at, or one below, what some chunk of the range needs.
    uint64_t limit = (uint64_t)random_scaled(&s->random, 32);
    if (test_random(&s->random) % 4 != 0 && reference_bad_sequence(&s->batch, &s->full) == count) {
        uint64_t chunk = s->full.chunk_min + (uint64_t)random_scaled(&s->random, 14) - 1;
        limit = reference_total(&s->batch, chunk) - test_random(&s->random) % 2;
    }
    s->config.max_work_units = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
    s->full = reference_config(&s->config);
}

// Any chunk that generation takes: mostly one that keeps the plan short enough to be written out.
static uint32_t sample_any_chunk(sample *s) {
    uint64_t multiple = (uint64_t)random_scaled(&s->random, 31);
    uint64_t chunk = ceil_div(multiple, s->full.align) * s->full.align;
    return (uint32_t)chunk;
}

// -- against the reference ------------------------------------------------------------------------

static void check_chunk(sample *s, uint32_t *out_chunk) {
    ptowsp_plan_info info = info_with_rubbish();
    assert_ok(ptowsp_plan_chunk_size(&s->batch, &s->config, out_chunk, &info));
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_true(reference_chunk_is(&s->batch, &s->full, *out_chunk));
    uint64_t candidates = (s->full.chunk_max - s->full.chunk_min) / s->full.align + 1;
    if (candidates * s->batch.sequence_count < 50000) {
        assert_int_equal(*out_chunk, reference_chunk(&s->batch, &s->full));
    }
}

#define WRITTEN_MAX 20000  // longer plans are only counted, where a test does not say otherwise

// Counts, and generates where that is not too long; the capacity is what is needed, or more.
static void check_generate(sample *s, uint32_t chunk, uint64_t written_max) {
    ptowsp_plan_info info = info_with_rubbish();
    uint64_t total = reference_total(&s->batch, chunk);
    assert_ok(ptowsp_plan_total_work(&s->batch, &s->config, chunk, &info));
    assert_true(info.work_count == total);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    if (total <= written_max) {
        uint64_t spare = test_random(&s->random) % 4 ? 0 : test_random(&s->random) % 70;
        guarded buffer = guarded_make(total + spare, test_random(&s->random));
        ptowsp_work *expected = (ptowsp_work *)test_alloc(total, sizeof *expected);
        info = info_with_rubbish();
        assert_ok(ptowsp_plan_generate(&s->batch, &s->config, chunk, buffer.work, buffer.capacity,
                                       &info));
        assert_true(info.work_count == total && info.fault == PTOWSP_FAULT_NONE);
        assert_true(reference_generate(&s->batch, &s->full, chunk, expected) == total);
        assert_same_work(buffer.work, expected, total);
        assert_pattern((unsigned char *)(buffer.work + total), spare * sizeof(ptowsp_work));
        guarded_free(&buffer);
    } else {
        const int64_t ids = INT64_C(1) << 32, count = (int64_t)total;
        const fault_case small = {PTOWSP_FAULT_BUFFER_SMALL, NONE, count, 8, NULL};
        const fault_case many = {PTOWSP_FAULT_IDS_EXHAUSTED, NONE, count, ids, NULL};
        plan_call call = plan_call_of(&s->batch, &s->config, NULL, 8);
        call.chunk = chunk;
        refuse_untouched(call, WRITERS, count <= ids ? &small : &many);
    }
}

// A batch with a bad length: all functions name the first.
static void check_bad_batch(sample *s, uint32_t bad) {
    bool is_negative = s->lengths[bad] < 0;
    const fault_case expected = {is_negative ? PTOWSP_FAULT_LENGTH_NEGATIVE
                                             : PTOWSP_FAULT_LENGTH_UNCOVERED,
                                 bad, s->lengths[bad], 0, NULL};
    plan_call call = plan_call_of(&s->batch, &s->config, NULL, 8);
    call.chunk = s->full.align;
    refuse_untouched(call, TAKE_BATCH, &expected);
}

TEST(plan__agrees_with_the_slow_reference) {
    uint64_t seed = test_seed();
    uint32_t good_count = 0, bad_count = 0;
    for (uint64_t number = 0; TEST_ROUNDS(number, 30000); number++) {
        sample s;
        sample_make(&s, seed, number);
        uint32_t bad = reference_bad_sequence(&s.batch, &s.full);
        if (bad < s.batch.sequence_count) {
            check_bad_batch(&s, bad);
            bad_count++;
        } else {
            uint32_t chunk = 0;
            check_chunk(&s, &chunk);
            check_generate(&s, chunk, WRITTEN_MAX);
            check_generate(&s, sample_any_chunk(&s), WRITTEN_MAX);  // in the config's range or not
            good_count++;
        }
        test_release();
    }
    assert_met(good_count > 20000 && bad_count > 500);  // the samples are what they should be
}

// Division tricks fail next to multiples: k * chunk - 1, k * chunk, k * chunk + 1 for all sizes.
TEST(plan__counts_are_exact_next_to_multiples_of_the_chunk) {
    uint64_t random = test_seed();
    ptowsp_plan_config config = {.tiers = any_length, .tier_count = 1};
    int32_t lengths[67];
    for (int round = 0; TEST_ROUNDS(round, 50000); round++) {
        uint32_t chunk = (uint32_t)random_scaled(&random, 31), picked = 0;
        ptowsp_batch batch = {lengths, test_random_u32(&random, 1, 67), 1};
        for (uint32_t i = 0; i < batch.sequence_count; i++) {
            int64_t pieces = random_scaled(&random, 31);
            int64_t length = chunk * pieces + test_random_in(&random, -1, 1);
            if (length > INT32_MAX || length < 0) {
                length = INT32_MAX / chunk * (int64_t)chunk + test_random_in(&random, -1, 0);
            }
            lengths[i] = (int32_t)length;
        }
        uint64_t total = reference_total(&batch, chunk);
        config.chunk_min = 1 + chunk / 2;
        config.chunk_max = chunk < UINT32_MAX / 2 ? 2 * chunk : UINT32_MAX;
        uint64_t limit = total > 1 ? total - (uint64_t)test_random_in(&random, 0, 1) : 1;
        config.max_work_units = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
        ptowsp_plan_config full = reference_config(&config);
        ptowsp_plan_info info;
        assert_ok(ptowsp_plan_total_work(&batch, &config, chunk, &info));
        assert_true(info.work_count == total);
        assert_ok(ptowsp_plan_chunk_size(&batch, &config, &picked, NULL));
        assert_true(reference_chunk_is(&batch, &full, picked));
    }
}

// -- ranges ---------------------------------------------------------------------------------------

// Cuts the batch at random places and writes each part on its own, into exactly its room.
static void check_ranges(sample *s, uint32_t chunk) {
    uint64_t id = 0;
    for (uint32_t first = 0, count = 0; first < s->batch.sequence_count; first += count) {
        uint32_t left = s->batch.sequence_count - first;
        count = test_random_u32(&s->random, 0, left < 150 ? left : 150);
        ptowsp_batch part = {s->lengths + first, count, s->batch.kv_head_count};
        uint64_t total = reference_total(&part, chunk), expected_count = 0;
        ptowsp_work *expected = (ptowsp_work *)test_alloc(total, sizeof *expected);
        for (uint32_t i = first; i < first + count; i++) {
            expected_count += reference_sequence(&s->batch, &s->full, chunk, i, id + expected_count,
                                                 expected + expected_count);
        }
        ptowsp_plan_info info = info_with_rubbish();
        guarded buffer = guarded_make(total, test_random(&s->random));
        if (total > 0) {
            assert_int_equal(ptowsp_plan_generate_range(&s->batch, &s->config, chunk, first, count,
                                                        id, buffer.work, total - 1, &info),
                             PTOWSP_BUFFER_OVERFLOW);
            assert_true(info.work_count == total);
            guarded_assert_untouched(&buffer);
        }
        assert_ok(ptowsp_plan_generate_range(&s->batch, &s->config, chunk, first, count, id,
                                             buffer.work, total, &info));
        assert_true(info.work_count == total && info.fault == PTOWSP_FAULT_NONE);
        assert_same_work(buffer.work, expected, total);
        guarded_free(&buffer);
        id += total;
    }
    assert_true(id == reference_total(&s->batch, chunk));
}

TEST(plan__consecutive_ranges_make_the_whole_plan) {
    uint64_t seed = test_seed() + 1;
    uint32_t compared = 0;
    for (uint64_t number = 0; TEST_ROUNDS(number, 5000); number++) {
        sample s;
        sample_make(&s, seed, number);
        uint32_t chunk = sample_any_chunk(&s);
        if (reference_bad_sequence(&s.batch, &s.full) == s.batch.sequence_count &&
            reference_total(&s.batch, chunk) <= WRITTEN_MAX) {
            check_ranges(&s, chunk);
            compared++;
        }
        test_release();
    }
    assert_met(compared > 1500);
}

// -- sequences of few pieces ----------------------------------------------------------------------

// 1 to 20 tiers that overlap, and one after another cover all lengths up to the longest.
static void few_pieces_tiers(sample *s, uint32_t count, int32_t longest) {
    uint32_t all = test_random_u32(&s->random, 0, count - 1);
    for (uint32_t i = 0; i < count; i++) {
        int64_t low = i == all ? 1 : test_random_in(&s->random, 0, longest);
        int64_t high = i == all ? longest : test_random_in(&s->random, low, longest);
        s->tiers[i].id = (uint8_t)test_random_in(&s->random, 0, 255);
        s->tiers[i].length_min = (int32_t)low;
        s->tiers[i].length_max = (int32_t)high;
    }
    s->config.tiers = s->tiers;
    s->config.tier_count = count;
}

// Sequences of 0 to 20 pieces, the last of each number but 0 with each number of heads, and all numbers of
// tiers; with pages or without, cut in both ways, at random.
static uint32_t few_pieces_make(sample *s, uint64_t seed, uint64_t number) {
    static const uint32_t counts[][2] = {{1, 3},     {4, 20},    {63, 66},
                                         {126, 130}, {250, 260}, {1, 400}};
    memset(s, 0, sizeof *s);
    s->random = seed + number * 1000003;
    const uint32_t n = (uint32_t)number;
    uint32_t align = test_random(&s->random) % 2 ? test_random_u32(&s->random, 2, 64) : 1;
    uint32_t chunk = align * (uint32_t)random_scaled(&s->random, 8);
    const uint32_t *range = counts[test_random(&s->random) % 6];
    uint32_t count = test_random_u32(&s->random, range[0], range[1]);
    s->config.align = align;
    s->config.chunks = test_random(&s->random) % 2 ? PTOWSP_CHUNKS_FIXED : PTOWSP_CHUNKS_BALANCED;
    few_pieces_tiers(s, 1 + n / 3 % 20, (int32_t)(20 * chunk));
    s->full = reference_config(&s->config);
    s->lengths = (int32_t *)test_alloc(count, sizeof *s->lengths);
    for (uint32_t i = 0; i < count; i++) {
        int64_t pieces = i + 1 < count ? test_random_in(&s->random, 0, 20) : 1 + n / 40 % 20;
        int64_t length = pieces * chunk - (int64_t)(test_random(&s->random) % chunk);
        s->lengths[i] = length > 0 ? (int32_t)length : 0;
    }
    s->batch.lengths = s->lengths;
    s->batch.sequence_count = count;
    s->batch.kv_head_count = 1 + n % 40;
    return chunk;
}

// Few pieces are the usual case, and have a way of their own of being written for each number from
// 1 to 8. Parts end at any of them, exactly where their buffer does.
TEST(plan__writes_every_number_of_pieces_and_heads) {
    uint64_t seed = test_seed() + 2;
    for (uint64_t number = 0; TEST_ROUNDS(number, 800); number++) {
        sample s;
        uint32_t chunk = few_pieces_make(&s, seed, number);
        check_generate(&s, chunk, UINT64_MAX);
        check_ranges(&s, chunk);
        test_release();
    }
}
