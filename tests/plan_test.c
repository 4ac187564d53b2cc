// Planning: section 7 of the header. Expected values are worked out on paper, or come from the
// reference below: the rules of the header as plain loops, with a linear search for the chunk. It
// shares nothing with the library but the types. Random batches are compared with it byte for byte.
// Buffers stand between guard bytes, and refused calls must leave all of a buffer as it was.

#include "test.h"

// -- buffers between guards -----------------------------------------------------------------------

#define GUARD_BYTES 64u
#define PATTERN     0x5a

typedef struct guarded {
    unsigned char *block;
    size_t block_size;
    ptowsp_work *work;
    uint64_t capacity;
} guarded;

// Room for `capacity` descriptors, aligned to 8 bytes and, as `shift` wants it, to no more.
static guarded guarded_make(uint64_t capacity, uint64_t shift) {
    guarded buffer;
    size_t before = GUARD_BYTES + (size_t)(shift % 8) * 8;
    buffer.capacity = capacity;
    buffer.block_size = before + (size_t)capacity * sizeof(ptowsp_work) + GUARD_BYTES;
    buffer.block = (unsigned char *)malloc(buffer.block_size);
    assert_non_null(buffer.block);
    memset(buffer.block, PATTERN, buffer.block_size);
    buffer.work = (ptowsp_work *)(void *)(buffer.block + before);
    return buffer;
}

static void assert_pattern(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != PATTERN) {
            fail_msg("byte %zu of %zu that must not change was written", i, count);
        }
    }
}

static void guarded_assert_guards(const guarded *buffer) {
    const unsigned char *begin = (const unsigned char *)buffer->work;
    assert_pattern(buffer->block, (size_t)(begin - buffer->block));
    assert_pattern(begin + buffer->capacity * sizeof(ptowsp_work), GUARD_BYTES);
}

static void guarded_assert_untouched(const guarded *buffer) {
    assert_pattern(buffer->block, buffer->block_size);
}

static void guarded_free(guarded *buffer) {
    free(buffer->block);
}

// -- the reference --------------------------------------------------------------------------------

static const ptowsp_tier reference_tiers[] = {
    {0, 1, 1024}, {1, 1025, 4096}, {2, 4097, 16384}, {3, 16385, 131072}};
static const ptowsp_tier any_length[] = {{7, 1, INT32_MAX}};

// The config with the defaults that the comments on its members promise.
static ptowsp_plan_config reference_config(const ptowsp_plan_config *config) {
    ptowsp_plan_config full = {0};
    if (config) {
        full = *config;
    }
    if (full.chunk_min == 0) {
        full.chunk_min = full.chunk_max != 0 && full.chunk_max < 256 ? full.chunk_max : 256;
    }
    if (full.chunk_max == 0) {
        full.chunk_max = full.chunk_min > 4096 ? full.chunk_min : 4096;
    }
    full.max_work_units = full.max_work_units ? full.max_work_units : 65536;
    full.align = full.align ? full.align : 1;
    if (!full.tiers) {
        full.tiers = reference_tiers;
        full.tier_count = 4;
    }
    return full;
}

static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

static uint64_t reference_total(const ptowsp_batch *batch, uint64_t chunk) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        total += batch->head_count * ceil_div((uint64_t)batch->lengths[i], chunk);
    }
    return total;
}

// The smallest multiple of align in the range whose units fit, or the largest multiple.
static uint32_t reference_chunk(const ptowsp_batch *batch, const ptowsp_plan_config *full) {
    uint64_t picked = 0;
    uint64_t first = ceil_div(full->chunk_min, full->align) * full->align;
    for (uint64_t chunk = first; chunk <= full->chunk_max; chunk += full->align) {
        picked = chunk;
        if (reference_total(batch, chunk) <= full->max_work_units) {
            break;
        }
    }
    return (uint32_t)picked;
}

// Whether `chunk` obeys the rule, for ranges too long to search: units never grow with the chunk.
// So this one has to fit, or be the last, and the one before must not, or be none.
static bool reference_chunk_is(const ptowsp_batch *batch, const ptowsp_plan_config *full,
                               uint64_t chunk) {
    bool in_range = full->chunk_min <= chunk && chunk <= full->chunk_max;
    if (!in_range || chunk % full->align != 0) {
        return false;
    }
    bool is_first = chunk < (uint64_t)full->chunk_min + full->align;
    bool is_last = chunk + full->align > full->chunk_max;
    return (is_last || reference_total(batch, chunk) <= full->max_work_units) &&
           (is_first || reference_total(batch, chunk - full->align) > full->max_work_units);
}

static int32_t reference_tier(const ptowsp_plan_config *full, int32_t length) {
    for (uint32_t i = 0; i < full->tier_count; i++) {
        if (full->tiers[i].length_min <= length && length <= full->tiers[i].length_max) {
            return full->tiers[i].id;
        }
    }
    return -1;
}

// The first sequence that makes a batch invalid, or sequence_count.
static uint32_t reference_bad_sequence(const ptowsp_batch *batch, const ptowsp_plan_config *full) {
    uint32_t i = 0;
    while (i < batch->sequence_count &&
           (batch->lengths[i] == 0 ||
            (batch->lengths[i] > 0 && reference_tier(full, batch->lengths[i]) >= 0))) {
        i++;
    }
    return i;
}

// The descriptors of all heads of one sequence.
static uint64_t reference_sequence(const ptowsp_batch *batch, const ptowsp_plan_config *full,
                                   uint32_t chunk, uint32_t sequence, uint64_t id,
                                   ptowsp_work *work) {
    uint64_t length = (uint64_t)batch->lengths[sequence];
    uint64_t pieces = ceil_div(length, chunk);
    uint64_t units = ceil_div(length, full->align);
    uint64_t count = 0;
    for (uint32_t head = 0; head < batch->head_count; head++) {
        uint64_t start = 0;
        for (uint64_t i = 0; i < pieces; i++) {
            bool is_longer = i >= pieces - units % pieces;  // the longer ones come last
            uint64_t size = full->chunks == PTOWSP_CHUNKS_FIXED
                                ? chunk
                                : (units / pieces + is_longer) * full->align;
            if (start + size > length) {
                size = length - start;
            }
            ptowsp_work *one = &work[count];
            memset(one, 0, sizeof *one);
            one->work_id = (uint32_t)(id + count);
            one->tier = (uint8_t)reference_tier(full, batch->lengths[sequence]);
            one->flags = (uint8_t)((i == 0 ? 1 : 0) | (i + 1 == pieces ? 2 : 0));
            one->params[0] = sequence;
            one->params[1] = head;
            one->params[2] = (uint32_t)start;
            one->params[3] = (uint32_t)size;
            start += size;
            count++;
        }
        assert_true(start == length);
    }
    return count;
}

static uint64_t reference_generate(const ptowsp_batch *batch, const ptowsp_plan_config *full,
                                   uint32_t chunk, ptowsp_work *work) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        count += reference_sequence(batch, full, chunk, i, count, work + count);
    }
    return count;
}

static void assert_same_work(const ptowsp_work *got, const ptowsp_work *expected, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (memcmp(&got[i], &expected[i], sizeof got[i]) != 0) {
            char text[2][128];
            ptowsp_text_buffer buffers[2] = {{text[0], 128, 0}, {text[1], 128, 0}};
            ptowsp_work_print(&got[i], ptowsp_text_to_buffer(&buffers[0]));
            ptowsp_work_print(&expected[i], ptowsp_text_to_buffer(&buffers[1]));
            fail_msg("work %llu of %llu is %s, not %s", (unsigned long long)i,
                     (unsigned long long)count, text[0], text[1]);
        }
    }
}

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

// 1 to 2^bits, every order of magnitude equally likely.
static int64_t random_scaled(uint64_t *random, int64_t bits) {
    return test_random_in(random, 1, INT64_C(1) << test_random_in(random, 0, bits));
}

// Tiers in any order, with overlaps and gaps; mostly something at the end covers all.
static void sample_tiers(sample *s) {
    if (test_random_in(&s->random, 0, 2) == 0) {
        return;  // the standard ones
    }
    uint32_t count = (uint32_t)test_random_in(&s->random, 1, SAMPLE_TIERS_MAX - 1);
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

static void sample_make(sample *s, uint64_t seed, uint64_t number) {
    s->random = seed + number * 1000003;
    sample_config(s);
    uint32_t count =
        (uint32_t)test_random_in(&s->random, 0, test_random(&s->random) % 4 ? 40 : 300);
    s->lengths = (int32_t *)malloc(count ? count * sizeof(int32_t) : 1);
    assert_non_null(s->lengths);
    uint64_t shape = test_random(&s->random) % 16;  // 11 and up: a mix
    for (uint32_t i = 0; i < count; i++) {
        s->lengths[i] = sample_length(s, shape < 11 ? shape : test_random(&s->random) % 11);
    }
    if (count > 0 && test_random(&s->random) % 32 == 0) {
        s->lengths[test_random(&s->random) % count] = (int32_t)-random_scaled(&s->random, 31);
    }
    s->batch.lengths = s->lengths;
    s->batch.sequence_count = count;
    s->batch.head_count = (uint32_t)test_random_in(&s->random, 1, 40);
    // The limit: any, or exactly at, or one below, what some chunk of the range needs.
    uint64_t limit = (uint64_t)random_scaled(&s->random, 32);
    if (test_random(&s->random) % 4 != 0 && reference_bad_sequence(&s->batch, &s->full) == count) {
        uint64_t chunk = s->full.chunk_min + (uint64_t)random_scaled(&s->random, 14) - 1;
        limit = reference_total(&s->batch, chunk) - test_random(&s->random) % 2;
    }
    s->config.max_work_units = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
    s->full = reference_config(&s->config);
}

static void sample_free(sample *s) {
    free(s->lengths);
}

// Any chunk that generation takes: mostly one that keeps the plan short enough to be written out.
static uint32_t sample_any_chunk(sample *s) {
    uint64_t multiple = (uint64_t)random_scaled(&s->random, 31);
    uint64_t chunk = ceil_div(multiple, s->full.align) * s->full.align;
    return (uint32_t)chunk;
}

// -- contexts -------------------------------------------------------------------------------------

static ptowsp_context *serial_context(void) {
    ptowsp_context *context = NULL;
    assert_int_equal(ptowsp_context_create(NULL, &context), PTOWSP_OK);
    return context;
}

// An executor that counts how often it is asked.
static void run_and_count(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    ++*(uint32_t *)user;
    test_run_lanes_backwards(NULL, lane_count, lane, job);
}

static ptowsp_context *user_context(uint32_t lane_count, uint32_t *run_count) {
    ptowsp_context_desc desc = {0};
    desc.threads = PTOWSP_THREADS_USER;
    desc.lane_count = lane_count;
    desc.run_lanes = run_and_count;
    desc.run_lanes_user = run_count;
    ptowsp_context *context = NULL;
    assert_int_equal(ptowsp_context_create(&desc, &context), PTOWSP_OK);
    return context;
}

// -- faults ---------------------------------------------------------------------------------------

#define NONE PTOWSP_NO_INDEX

// What a refused call must report; text is without the leading "plan: ".
typedef struct fault_case {
    ptowsp_plan_fault fault;
    ptowsp_status status;
    uint64_t index;
    int64_t value;
    const char *text;
    uint64_t work_count;  // 0 but for buffers that are too small
} fault_case;

static fault_case fault_of(ptowsp_plan_fault fault, ptowsp_status status, uint64_t index,
                           int64_t value, const char *text) {
    uint64_t work_count = fault == PTOWSP_FAULT_BUFFER_SMALL ? (uint64_t)value : 0;
    fault_case expected = {fault, status, index, value, text, work_count};
    return expected;
}

static void assert_fault(const ptowsp_plan_info *info, const fault_case *expected) {
    char text[160], expected_text[160];
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    ptowsp_plan_explain(info, ptowsp_text_to_buffer(&buffer));
    snprintf(expected_text, sizeof expected_text, "plan: %s", expected->text);
    assert_string_equal(text, expected_text);
    assert_int_equal(info->fault, expected->fault);
    assert_true(info->index == expected->index);
    assert_true(info->value == expected->value);
    assert_true(info->work_count == expected->work_count);
}

static ptowsp_plan_info info_with_rubbish(void) {
    ptowsp_plan_info info;
    memset(&info, 0x77, sizeof info);
    return info;
}

static void refuse_chunk_size(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                              const fault_case *expected) {
    ptowsp_plan_info info = info_with_rubbish();
    uint32_t chunk = 77;
    assert_int_equal(ptowsp_plan_chunk_size(batch, config, &chunk, &info), expected->status);
    assert_int_equal(chunk, 0);
    assert_fault(&info, expected);
    chunk = 77;
    assert_int_equal(ptowsp_plan_chunk_size(batch, config, &chunk, NULL), expected->status);
    assert_int_equal(chunk, 0);
}

static void refuse_total_work(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                              uint32_t chunk, const fault_case *expected) {
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_total_work(batch, config, chunk, &info), expected->status);
    assert_fault(&info, expected);
    assert_int_equal(ptowsp_plan_total_work(batch, config, chunk, NULL), expected->status);
}

// Parallel generation puts the text into the context's error too. The index there has a test of its
// own.
static void refuse_parallel(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                            uint32_t chunk, ptowsp_work *work, uint64_t capacity,
                            const fault_case *expected) {
    char text[160];
    snprintf(text, sizeof text, "plan: %s", expected->text);
    for (int with_info = 0; with_info < 2; with_info++) {
        ptowsp_context *context = serial_context();
        ptowsp_plan_info info = info_with_rubbish();
        assert_int_equal(ptowsp_plan_generate_parallel(context, batch, config, chunk, work,
                                                       capacity, with_info ? &info : NULL),
                         expected->status);
        if (with_info) {
            assert_fault(&info, expected);
        }
        ptowsp_error error = ptowsp_context_error(context);
        assert_int_equal(error.status, expected->status);
        assert_string_equal(error.text, text);
        ptowsp_context_destroy(context);
    }
}

// Every function that writes descriptors refuses, with a buffer that claims `capacity` but of which
// not a byte may change.
static void refuse_generate(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                            uint32_t chunk, uint64_t capacity, const fault_case *expected) {
    guarded buffer = guarded_make(8, 0);
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_generate(batch, config, chunk, buffer.work, capacity, &info),
                     expected->status);
    assert_fault(&info, expected);
    assert_int_equal(ptowsp_plan_generate(batch, config, chunk, buffer.work, capacity, NULL),
                     expected->status);

    info = info_with_rubbish();
    uint32_t count = batch ? batch->sequence_count : 0;
    assert_int_equal(
        ptowsp_plan_generate_range(batch, config, chunk, 0, count, 0, buffer.work, capacity, &info),
        expected->status);
    assert_fault(&info, expected);
    assert_int_equal(
        ptowsp_plan_generate_range(batch, config, chunk, 0, count, 0, buffer.work, capacity, NULL),
        expected->status);

    refuse_parallel(batch, config, chunk, buffer.work, capacity, expected);
    guarded_assert_untouched(&buffer);
    guarded_free(&buffer);
}

// For what is wrong with the batch, the tiers or the chunk: everything but the capacity.
static void refuse_all(const ptowsp_batch *batch, const ptowsp_plan_config *config, uint32_t chunk,
                       const fault_case *expected) {
    refuse_total_work(batch, config, chunk, expected);
    refuse_generate(batch, config, chunk, 8, expected);
}

// -- numbers from paper: the chunk ----------------------------------------------------------------

static uint32_t chunk_of(const int32_t *lengths, uint32_t count, uint32_t heads,
                         const ptowsp_plan_config *config) {
    ptowsp_batch batch = {lengths, count, heads};
    ptowsp_plan_info info = info_with_rubbish();
    uint32_t chunk = 0, again = 0;
    assert_int_equal(ptowsp_plan_chunk_size(&batch, config, &chunk, &info), PTOWSP_OK);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_int_equal(ptowsp_plan_chunk_size(&batch, config, &again, NULL), PTOWSP_OK);
    assert_int_equal(chunk, again);
    return chunk;
}

static void plan__picks_the_smallest_chunk_whose_units_fit(void **state) {
    (void)state;
    const int32_t one[] = {1000}, two[] = {1000, 500};
    ptowsp_plan_config config = {0};
    config.chunk_min = 1;
    config.chunk_max = 1000;
    config.max_work_units = 10;
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

static void plan__picks_chunk_max_when_no_chunk_fits(void **state) {
    (void)state;
    const int32_t lengths[] = {1000, 0, 1};
    ptowsp_plan_config config = {0};
    config.chunk_min = 1;
    config.chunk_max = 100;
    config.max_work_units = 11;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 100);  // 10 + 0 + 1 fit
    config.max_work_units = 10;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 100);
    config.max_work_units = 1;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 100);
    assert_int_equal(chunk_of(lengths, 3, UINT32_MAX, &config), 100);
    config.chunk_min = config.chunk_max = 7;
    assert_int_equal(chunk_of(lengths, 3, 1, &config), 7);
}

static void plan__picks_among_multiples_of_align(void **state) {
    (void)state;
    const int32_t lengths[] = {1000};
    ptowsp_plan_config config = {0};
    config.chunk_min = 1;
    config.chunk_max = 1000;
    config.max_work_units = 10;
    config.align = 16;
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

static void plan__an_empty_step_gets_the_smallest_chunk(void **state) {
    (void)state;
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

static void plan__null_and_zero_configs_are_the_defaults(void **state) {
    (void)state;
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

static void plan__a_chunk_limit_alone_moves_the_other_one_out_of_its_way(void **state) {
    (void)state;
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
    assert_int_equal(ptowsp_plan_generate(&batch, config, chunk, buffer.work, count, &info),
                     PTOWSP_OK);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_true(info.work_count == count);
    uint32_t start = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(ptowsp_work_kv_start(&buffer.work[i]), start);
        assert_int_equal(ptowsp_work_kv_len(&buffer.work[i]), sizes[i]);
        start += sizes[i];
    }
    assert_int_equal(start, length);
    guarded_assert_guards(&buffer);
    guarded_free(&buffer);
}

#define PIECES(length, chunk, config, ...)                                                         \
    assert_pieces(length, chunk, config, (const uint32_t[]){__VA_ARGS__},                          \
                  (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static void plan__balanced_pieces_differ_by_at_most_one_token(void **state) {
    (void)state;
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

static void plan__fixed_pieces_are_a_chunk_long_but_the_last(void **state) {
    (void)state;
    ptowsp_plan_config config = {0};
    config.chunks = PTOWSP_CHUNKS_FIXED;
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

static void plan__aligned_pieces_start_at_multiples_of_align(void **state) {
    (void)state;
    ptowsp_plan_config config = {0};
    config.align = 16;
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

static void plan__descriptors_come_by_sequence_then_head_then_chunk(void **state) {
    (void)state;
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
    assert_int_equal(ptowsp_plan_generate(&batch, NULL, 1024, buffer.work, 16, &info), PTOWSP_OK);
    assert_true(info.work_count == 16);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_same_work(buffer.work, expected, 16);
    guarded_assert_guards(&buffer);
    guarded_free(&buffer);
}

static void plan__the_first_tier_that_covers_the_whole_sequence_wins(void **state) {
    (void)state;
    // Misordered, overlapping, ids repeated, a gap from 301 to 400, and a tier below zero.
    const ptowsp_tier tiers[] = {
        {9, 200, 300}, {200, -5, 250}, {9, 401, 401}, {255, 402, INT32_MAX}};
    const int32_t lengths[] = {200, 250, 300, 199, 1, 0, 401, 402, INT32_MAX};
    const uint8_t ids[] = {9, 9, 9, 200, 200, 9, 255, 255};
    const ptowsp_batch batch = {lengths, 9, 1};
    ptowsp_plan_config config = {0};
    config.tiers = tiers;
    config.tier_count = 4;
    guarded buffer = guarded_make(8, 0);
    assert_int_equal(ptowsp_plan_generate(&batch, &config, INT32_MAX, buffer.work, 8, NULL),
                     PTOWSP_OK);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(buffer.work[i].tier, ids[i]);
        assert_int_equal(buffer.work[i].flags, PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST);
    }
    guarded_assert_guards(&buffer);
    guarded_free(&buffer);
}

static void plan__empty_and_all_zero_batches_have_no_work(void **state) {
    (void)state;
    const int32_t zeros[300] = {0};
    const uint32_t counts[] = {0, 1, 7, 300};
    ptowsp_context *context = serial_context();
    for (int i = 0; i < 4; i++) {
        for (int with_buffer = 0; with_buffer < 2; with_buffer++) {
            ptowsp_batch batch = {counts[i] ? zeros : NULL, counts[i], 8};
            guarded buffer = guarded_make(2, 0);
            ptowsp_work *work = with_buffer ? buffer.work : NULL;
            ptowsp_plan_info info = info_with_rubbish();
            assert_int_equal(ptowsp_plan_total_work(&batch, NULL, 1, &info), PTOWSP_OK);
            assert_true(info.work_count == 0 && info.fault == PTOWSP_FAULT_NONE);
            info = info_with_rubbish();
            assert_int_equal(ptowsp_plan_generate(&batch, NULL, 1, work, 0, &info), PTOWSP_OK);
            assert_true(info.work_count == 0 && info.fault == PTOWSP_FAULT_NONE);
            info = info_with_rubbish();
            assert_int_equal(
                ptowsp_plan_generate_range(&batch, NULL, 1, 0, counts[i], 5, work, 0, &info),
                PTOWSP_OK);
            assert_true(info.work_count == 0 && info.fault == PTOWSP_FAULT_NONE);
            info = info_with_rubbish();
            assert_int_equal(
                ptowsp_plan_generate_parallel(context, &batch, NULL, 1, work, 0, &info), PTOWSP_OK);
            assert_true(info.work_count == 0 && info.fault == PTOWSP_FAULT_NONE);
            guarded_assert_untouched(&buffer);
            guarded_free(&buffer);
        }
    }
    ptowsp_context_destroy(context);
}

// -- numbers from paper: counts -------------------------------------------------------------------

static uint64_t total_of(const int32_t *lengths, uint32_t count, uint32_t heads, uint32_t chunk) {
    ptowsp_batch batch = {lengths, count, heads};
    ptowsp_plan_config config = {0};
    config.tiers = any_length;
    config.tier_count = 1;
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_total_work(&batch, &config, chunk, &info), PTOWSP_OK);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    return info.work_count;
}

static void plan__total_work_is_heads_times_the_sum_of_pieces(void **state) {
    (void)state;
    const int32_t lengths[] = {350, 17000, 0, 1024, 1025};
    assert_true(total_of(lengths, 5, 1, 1024) == 1 + 17 + 0 + 1 + 2);
    assert_true(total_of(lengths, 5, 8, 1024) == 8 * 21);
    assert_true(total_of(lengths, 5, 1, 1) == 350 + 17000 + 1024 + 1025);
    assert_true(total_of(lengths, 5, 3, UINT32_MAX) == 3 * 4);
    assert_true(total_of(lengths, 2, 1, 17000) == 2);
    assert_true(total_of(lengths, 2, 1, 16999) == 3);
}

static void plan__counts_use_all_64_bits(void **state) {
    (void)state;
    const int32_t lengths[] = {INT32_MAX, INT32_MAX, 3};
    assert_true(total_of(lengths, 2, 1, 1) == UINT64_C(4294967294));
    assert_true(total_of(lengths, 1, 3, 1) == UINT64_C(6442450941));
    // (2^31 + 2) (2^32 - 1) = 2^63 + 2^33 - 2^31 - 2
    const int32_t past_63[] = {INT32_MAX, 3};
    assert_true(total_of(past_63, 2, UINT32_MAX, 1) ==
                (UINT64_C(1) << 63) + (UINT64_C(1) << 33) - (UINT64_C(1) << 31) - 2);
    // (2 (2^31 - 1) + 3) (2^32 - 1) = (2^32 + 1) (2^32 - 1) = 2^64 - 1, the last that fits
    assert_true(total_of(lengths, 3, UINT32_MAX, 1) == UINT64_MAX);
}

// Chunks, lengths and alignments so large that sums of two do not fit 32 bits.
static void plan__extreme_chunks_and_alignments_do_not_wrap(void **state) {
    (void)state;
    ptowsp_plan_config config = {0};
    config.tiers = any_length;
    config.tier_count = 1;
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

// -- against the reference ------------------------------------------------------------------------

static void check_chunk(sample *s, uint32_t *out_chunk) {
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_chunk_size(&s->batch, &s->config, out_chunk, &info), PTOWSP_OK);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_true(reference_chunk_is(&s->batch, &s->full, *out_chunk));
    uint64_t candidates = (s->full.chunk_max - s->full.chunk_min) / s->full.align + 1;
    if (candidates * s->batch.sequence_count < 50000) {
        assert_int_equal(*out_chunk, reference_chunk(&s->batch, &s->full));
    }
}

// Counts, and generates where that is not too long; the capacity is what is needed, or more.
static void check_generate(sample *s, uint32_t chunk) {
    ptowsp_plan_info info = info_with_rubbish();
    uint64_t total = reference_total(&s->batch, chunk);
    assert_int_equal(ptowsp_plan_total_work(&s->batch, &s->config, chunk, &info), PTOWSP_OK);
    assert_true(info.work_count == total);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);

    bool fits = total <= 20000;
    uint64_t spare = test_random(&s->random) % 4 ? 0 : test_random(&s->random) % 3;
    guarded buffer = guarded_make(fits ? total + spare : 10, test_random(&s->random));
    ptowsp_status status =
        ptowsp_plan_generate(&s->batch, &s->config, chunk, buffer.work, buffer.capacity, &info);
    if (fits) {
        ptowsp_work *expected = (ptowsp_work *)malloc(total ? total * sizeof *expected : 1);
        assert_non_null(expected);
        assert_int_equal(status, PTOWSP_OK);
        assert_true(info.work_count == total && info.fault == PTOWSP_FAULT_NONE);
        assert_true(reference_generate(&s->batch, &s->full, chunk, expected) == total);
        assert_same_work(buffer.work, expected, total);
        guarded_assert_guards(&buffer);
        free(expected);
    } else if (total <= UINT64_C(1) << 32) {
        assert_int_equal(status, PTOWSP_BUFFER_OVERFLOW);
        assert_true(info.work_count == total && info.fault == PTOWSP_FAULT_BUFFER_SMALL);
        guarded_assert_untouched(&buffer);
    } else {
        assert_int_equal(status, PTOWSP_LIMIT_EXCEEDED);
        assert_true(info.work_count == 0 && info.fault == PTOWSP_FAULT_IDS_EXHAUSTED);
        guarded_assert_untouched(&buffer);
    }
    guarded_free(&buffer);
}

// A batch with a bad length: all functions name the first.
static void check_bad_batch(sample *s, uint32_t bad) {
    bool is_negative = s->lengths[bad] < 0;
    char text[128];
    snprintf(text, sizeof text,
             is_negative ? "sequence %u has the negative length %d"
                         : "sequence %u has length %d, which no tier covers",
             bad, s->lengths[bad]);
    fault_case expected = fault_of(
        is_negative ? PTOWSP_FAULT_LENGTH_NEGATIVE : PTOWSP_FAULT_LENGTH_UNCOVERED,
        is_negative ? PTOWSP_INVALID_PARAMS : PTOWSP_UNSUPPORTED_SIZE, bad, s->lengths[bad], text);
    refuse_chunk_size(&s->batch, &s->config, &expected);
    refuse_all(&s->batch, &s->config, s->full.align, &expected);
}

static void plan__agrees_with_the_slow_reference(void **state) {
    (void)state;
    uint64_t seed = test_seed();
    uint32_t good_count = 0, bad_count = 0;
    for (uint64_t number = 0; number < 30000; number++) {
        sample s;
        sample_make(&s, seed, number);
        uint32_t bad = reference_bad_sequence(&s.batch, &s.full);
        if (bad < s.batch.sequence_count) {
            check_bad_batch(&s, bad);
            bad_count++;
        } else {
            uint32_t chunk = 0;
            check_chunk(&s, &chunk);
            check_generate(&s, chunk);
            check_generate(&s, sample_any_chunk(&s));  // in the config's range or not
            good_count++;
        }
        sample_free(&s);
    }
    assert_true(good_count > 20000 && bad_count > 500);  // the samples are what they should be
}

// Division tricks fail next to multiples: k * chunk - 1, k * chunk, k * chunk + 1 for all sizes.
static void plan__counts_are_exact_next_to_multiples_of_the_chunk(void **state) {
    (void)state;
    uint64_t random = test_seed();
    ptowsp_plan_config config = {0};
    config.tiers = any_length;
    config.tier_count = 1;
    int32_t lengths[67];
    for (int round = 0; round < 50000; round++) {
        uint32_t chunk = (uint32_t)random_scaled(&random, 31);
        uint32_t count = (uint32_t)test_random_in(&random, 1, 67);
        for (uint32_t i = 0; i < count; i++) {
            int64_t pieces = random_scaled(&random, 31);
            int64_t length = chunk * pieces + test_random_in(&random, -1, 1);
            if (length > INT32_MAX || length < 0) {
                length = INT32_MAX / chunk * (int64_t)chunk + test_random_in(&random, -1, 0);
            }
            lengths[i] = (int32_t)length;
        }
        ptowsp_batch batch = {lengths, count, 1};
        uint64_t total = reference_total(&batch, chunk);
        assert_true(total_of(lengths, count, 1, chunk) == total);
        if (total <= UINT32_MAX && total > 1) {
            config.chunk_min = 1 + chunk / 2;
            config.chunk_max = chunk < UINT32_MAX / 2 ? 2 * chunk : UINT32_MAX;
            config.max_work_units = (uint32_t)(total - (uint64_t)test_random_in(&random, 0, 1));
            ptowsp_plan_config full = reference_config(&config);
            uint32_t picked = chunk_of(lengths, count, 1, &config);
            assert_true(reference_chunk_is(&batch, &full, picked));
        }
    }
}

// What the header promises of pieces, checked without a reference.
static void plan__covers_every_token_exactly_once(void **state) {
    (void)state;
    uint64_t random = test_seed();
    for (int round = 0; round < 20000; round++) {
        int32_t length = (int32_t)random_scaled(&random, 17);
        ptowsp_plan_config config = {0};
        config.align = (uint32_t)random_scaled(&random, 8);
        config.chunks = round % 2 ? PTOWSP_CHUNKS_FIXED : PTOWSP_CHUNKS_BALANCED;
        uint32_t chunk = config.align * (uint32_t)random_scaled(&random, 12);
        uint64_t count = ceil_div((uint64_t)length, chunk);
        if (count > 2000) {
            continue;
        }
        ptowsp_batch batch = {&length, 1, 1};
        guarded buffer = guarded_make(count, 0);
        assert_int_equal(ptowsp_plan_generate(&batch, &config, chunk, buffer.work, count, NULL),
                         PTOWSP_OK);
        uint32_t next = 0, shortest = UINT32_MAX, longest = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint32_t size = ptowsp_work_kv_len(&buffer.work[i]);
            assert_int_equal(ptowsp_work_kv_start(&buffer.work[i]), next);
            assert_int_equal(next % config.align, 0);
            assert_true(0 < size && size <= chunk);
            assert_int_equal(ptowsp_work_is_first(&buffer.work[i]), i == 0);
            assert_int_equal(ptowsp_work_is_last(&buffer.work[i]), i + 1 == count);
            shortest = size < shortest ? size : shortest;
            longest = size > longest ? size : longest;
            next += size;
        }
        assert_int_equal(next, length);
        assert_true(round % 2 || longest - shortest <= config.align);
        guarded_assert_guards(&buffer);
        guarded_free(&buffer);
    }
}

static void plan__fixed_boundaries_do_not_depend_on_the_rest_of_the_batch(void **state) {
    (void)state;
    uint64_t random = test_seed();
    ptowsp_plan_config config = {0};
    config.chunks = PTOWSP_CHUNKS_FIXED;
    for (int round = 0; round < 300; round++) {
        int32_t lengths[20];
        for (int i = 0; i < 20; i++) {
            lengths[i] = (int32_t)random_scaled(&random, 13);
        }
        uint32_t mine = (uint32_t)test_random_in(&random, 0, 19);
        const ptowsp_batch all = {lengths, 20, 2}, alone = {&lengths[mine], 1, 2};
        const uint32_t chunk = (uint32_t)test_random_in(&random, 50, 300);
        static ptowsp_work work[8000], work_alone[400];
        ptowsp_plan_info info, info_alone;
        assert_int_equal(ptowsp_plan_generate(&all, &config, chunk, work, 8000, &info), PTOWSP_OK);
        assert_int_equal(ptowsp_plan_generate(&alone, &config, chunk, work_alone, 400, &info_alone),
                         PTOWSP_OK);
        uint64_t found = 0;
        for (uint64_t i = 0; i < info.work_count; i++) {
            if (ptowsp_work_request(&work[i]) == mine) {
                assert_memory_equal(&work[i].params[1], &work_alone[found].params[1], 12);
                found++;
            }
        }
        assert_true(found == info_alone.work_count);
    }
}

// -- ranges ---------------------------------------------------------------------------------------

// Cuts the batch at random places and writes each part on its own, into exactly its room.
static void check_ranges(sample *s, uint32_t chunk, const ptowsp_work *whole, uint64_t total) {
    uint32_t first = 0;
    uint64_t id = 0;
    while (first < s->batch.sequence_count) {
        uint32_t left = s->batch.sequence_count - first;
        uint32_t count = (uint32_t)test_random_in(&s->random, 0, left < 20 ? left : 20);
        ptowsp_batch part = {s->lengths + first, count, s->batch.head_count};
        uint64_t part_total = reference_total(&part, chunk);
        ptowsp_plan_info info = info_with_rubbish();
        guarded buffer = guarded_make(part_total, test_random(&s->random));
        if (part_total > 0) {
            assert_int_equal(ptowsp_plan_generate_range(&s->batch, &s->config, chunk, first, count,
                                                        id, buffer.work, part_total - 1, &info),
                             PTOWSP_BUFFER_OVERFLOW);
            assert_true(info.work_count == part_total);
            guarded_assert_untouched(&buffer);
        }
        assert_int_equal(ptowsp_plan_generate_range(&s->batch, &s->config, chunk, first, count, id,
                                                    buffer.work, part_total, &info),
                         PTOWSP_OK);
        assert_true(info.work_count == part_total && info.fault == PTOWSP_FAULT_NONE);
        assert_same_work(buffer.work, whole + id, part_total);
        guarded_assert_guards(&buffer);
        guarded_free(&buffer);
        first += count;
        id += part_total;
    }
    assert_true(id == total);
}

static void plan__consecutive_ranges_make_the_whole_plan(void **state) {
    (void)state;
    uint64_t seed = test_seed() + 1;
    uint32_t compared = 0;
    for (uint64_t number = 0; number < 5000; number++) {
        sample s;
        sample_make(&s, seed, number);
        uint32_t chunk = sample_any_chunk(&s);
        bool is_good = reference_bad_sequence(&s.batch, &s.full) == s.batch.sequence_count;
        uint64_t total = is_good ? reference_total(&s.batch, chunk) : UINT64_MAX;
        if (total <= 20000) {
            ptowsp_work *whole = (ptowsp_work *)malloc(total ? total * sizeof *whole : 1);
            assert_non_null(whole);
            assert_int_equal(ptowsp_plan_generate(&s.batch, &s.config, chunk, whole, total, NULL),
                             PTOWSP_OK);
            check_ranges(&s, chunk, whole, total);
            free(whole);
            compared++;
        }
        sample_free(&s);
    }
    assert_true(compared > 1500);
}

static void plan__ranges_take_ids_up_to_the_last_one(void **state) {
    (void)state;
    const int32_t lengths[] = {100, 3, 1};
    const ptowsp_batch batch = {lengths, 3, 1};
    const uint64_t ids = UINT64_C(1) << 32;
    guarded buffer = guarded_make(4, 0);
    assert_int_equal(
        ptowsp_plan_generate_range(&batch, NULL, 1, 1, 2, ids - 4, buffer.work, 4, NULL),
        PTOWSP_OK);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(buffer.work[i].work_id, UINT32_MAX - 3 + i);
        assert_int_equal(buffer.work[i].params[0], i < 3 ? 1 : 2);
    }
    guarded_assert_guards(&buffer);
    guarded_free(&buffer);

    buffer = guarded_make(4, 0);
    ptowsp_plan_info info = info_with_rubbish();
    const uint64_t past[] = {ids - 3, ids, UINT64_MAX};  // the last: not even 64 bits hold the sum
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            ptowsp_plan_generate_range(&batch, NULL, 1, 1, 2, past[i], buffer.work, 4, &info),
            PTOWSP_LIMIT_EXCEEDED);
        assert_true(info.work_count == 0);
    }
    guarded_assert_untouched(&buffer);
    assert_int_equal(
        ptowsp_plan_generate_range(&batch, NULL, 1, 1, 2, ids - 3, buffer.work, 4, &info),
        PTOWSP_LIMIT_EXCEEDED);
    const fault_case expected =
        fault_of(PTOWSP_FAULT_IDS_EXHAUSTED, PTOWSP_LIMIT_EXCEEDED, NONE, (int64_t)ids + 1,
                 "4294967297 work units exceed the 2^32 work ids");
    assert_fault(&info, &expected);
    guarded_free(&buffer);
}

// -- every fault ----------------------------------------------------------------------------------

static const int32_t small_lengths[] = {3, 0, 7, 1, 4};  // 15 units with chunk 1
static const ptowsp_batch small_batch = {small_lengths, 5, 1};

static void plan__explains_the_absence_of_a_fault(void **state) {
    (void)state;
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_total_work(&small_batch, NULL, 2, &info), PTOWSP_OK);
    char text[64];
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    ptowsp_plan_explain(&info, ptowsp_text_to_buffer(&buffer));
    assert_string_equal(text, "plan: no fault");
    assert_true(info.work_count == 2 + 0 + 4 + 1 + 2);
}

static void plan__refuses_a_missing_batch(void **state) {
    (void)state;
    const fault_case expected =
        fault_of(PTOWSP_FAULT_BATCH_NULL, PTOWSP_INVALID_PARAMS, NONE, 0, "batch is NULL");
    refuse_chunk_size(NULL, NULL, &expected);
    refuse_all(NULL, NULL, 1, &expected);
}

static void plan__refuses_missing_lengths(void **state) {
    (void)state;
    const fault_case expected =
        fault_of(PTOWSP_FAULT_LENGTHS_NULL, PTOWSP_INVALID_PARAMS, NONE, 4000000000,
                 "lengths is NULL with sequence_count 4000000000");
    const ptowsp_batch batch = {NULL, 4000000000u, 1};
    refuse_chunk_size(&batch, NULL, &expected);
    refuse_all(&batch, NULL, 1, &expected);
}

static void plan__refuses_a_batch_without_heads(void **state) {
    (void)state;
    const fault_case expected =
        fault_of(PTOWSP_FAULT_HEADS_ZERO, PTOWSP_INVALID_PARAMS, NONE, 0, "head_count is 0");
    const ptowsp_batch batch = {small_lengths, 5, 0}, zeroed = {NULL, 0, 0};
    refuse_chunk_size(&batch, NULL, &expected);
    refuse_all(&batch, NULL, 1, &expected);
    refuse_chunk_size(&zeroed, NULL, &expected);  // "at least 1", also for an empty step
    refuse_all(&zeroed, NULL, 1, &expected);
}

static void plan__refuses_an_unknown_way_to_cut(void **state) {
    (void)state;
    ptowsp_plan_config config = {0};
    config.chunks = (ptowsp_chunks)2;
    fault_case expected = fault_of(PTOWSP_FAULT_CHUNKS_UNKNOWN, PTOWSP_INVALID_PARAMS, NONE, 2,
                                   "config.chunks has the unknown value 2");
    refuse_chunk_size(&small_batch, &config, &expected);
    refuse_all(&small_batch, &config, 1, &expected);
    config.chunks = PTOWSP_CHUNKS_FORCE_INT;
    expected.value = INT32_MAX;
    expected.text = "config.chunks has the unknown value 2147483647";
    refuse_chunk_size(&small_batch, &config, &expected);
    refuse_all(&small_batch, &config, 1, &expected);
}

static void plan__refuses_reversed_chunk_limits(void **state) {
    (void)state;
    ptowsp_plan_config config = {0};
    config.chunk_min = UINT32_MAX;
    config.chunk_max = 4000000000u;
    const fault_case expected =
        fault_of(PTOWSP_FAULT_CHUNK_ORDER, PTOWSP_INVALID_PARAMS, 4000000000, UINT32_MAX,
                 "chunk_min 4294967295 is greater than chunk_max 4000000000");
    refuse_chunk_size(&small_batch, &config, &expected);
    config.chunk_min = 8;
    config.chunk_max = 7;
    const fault_case by_one = fault_of(PTOWSP_FAULT_CHUNK_ORDER, PTOWSP_INVALID_PARAMS, 7, 8,
                                       "chunk_min 8 is greater than chunk_max 7");
    refuse_chunk_size(&small_batch, &config, &by_one);
}

static void plan__refuses_a_chunk_range_without_a_multiple_of_align(void **state) {
    (void)state;
    // {chunk_min, chunk_max, align}; the last two would wrap in 32 bits.
    const uint32_t ranges[][3] = {{17, 31, 16},
                                  {1, 15, 16},
                                  {0, 0, 4097},
                                  {0, 4096, UINT32_MAX},
                                  {UINT32_MAX - 1, UINT32_MAX, 1u << 31},
                                  {(1u << 31) + 1, UINT32_MAX, 1u << 31}};
    for (int i = 0; i < 6; i++) {
        ptowsp_plan_config config = {0};
        config.chunk_min = ranges[i][0];
        config.chunk_max = ranges[i][1];
        config.align = ranges[i][2];
        char text[80];
        snprintf(text, sizeof text, "no multiple of align %u is in chunk_min to chunk_max",
                 config.align);
        const fault_case expected =
            fault_of(PTOWSP_FAULT_CHUNK_ALIGN, PTOWSP_INVALID_PARAMS, NONE, config.align, text);
        refuse_chunk_size(&small_batch, &config, &expected);
    }
}

static void plan__refuses_chunks_that_are_no_multiple_of_align(void **state) {
    (void)state;
    const uint32_t pairs[][2] = {{0, 1},   {0, 16},         {8, 16},
                                 {17, 16}, {UINT32_MAX, 2}, {1, UINT32_MAX}};
    const ptowsp_batch empty = {NULL, 0, 1};
    for (int i = 0; i < 6; i++) {
        ptowsp_plan_config config = {0};
        config.chunk_max = UINT32_MAX;
        config.align = pairs[i][1];
        char text[80];
        snprintf(text, sizeof text, "chunk %u is not a positive multiple of align %u", pairs[i][0],
                 pairs[i][1]);
        const fault_case expected = fault_of(PTOWSP_FAULT_CHUNK_INVALID, PTOWSP_INVALID_PARAMS,
                                             pairs[i][1], pairs[i][0], text);
        refuse_all(&small_batch, &config, pairs[i][0], &expected);
        refuse_all(&empty, &config, pairs[i][0], &expected);
        if (pairs[i][1] == 1) {  // the default of align
            refuse_all(&small_batch, NULL, 0, &expected);
        }
    }
}

static void plan__refuses_tiers_without_an_array_or_a_count(void **state) {
    (void)state;
    ptowsp_plan_config config = {0};
    config.tier_count = 3;
    const fault_case missing = fault_of(PTOWSP_FAULT_TIERS_NULL, PTOWSP_INVALID_PARAMS, NONE, 3,
                                        "tiers is NULL with tier_count 3");
    refuse_chunk_size(&small_batch, &config, &missing);
    refuse_all(&small_batch, &config, 1, &missing);
    config.tiers = any_length;
    config.tier_count = 0;
    const fault_case empty = fault_of(PTOWSP_FAULT_TIERS_EMPTY, PTOWSP_INVALID_PARAMS, NONE, 0,
                                      "tiers is given with tier_count 0");
    refuse_chunk_size(&small_batch, &config, &empty);
    refuse_all(&small_batch, &config, 1, &empty);
}

static void plan__refuses_the_first_reversed_tier(void **state) {
    (void)state;
    const ptowsp_tier tiers[] = {{0, 1, 100}, {1, 101, 101}, {2, 5, 4}, {3, INT32_MAX, INT32_MIN}};
    ptowsp_plan_config config = {0};
    config.tiers = tiers;
    config.tier_count = 4;
    const fault_case third = fault_of(PTOWSP_FAULT_TIER_ORDER, PTOWSP_INVALID_PARAMS, 2, 5,
                                      "tier at 2 has length_min 5 above its length_max");
    refuse_chunk_size(&small_batch, &config, &third);
    refuse_all(&small_batch, &config, 1, &third);
    config.tiers = tiers + 3;
    config.tier_count = 1;
    const fault_case only = fault_of(PTOWSP_FAULT_TIER_ORDER, PTOWSP_INVALID_PARAMS, 0, INT32_MAX,
                                     "tier at 0 has length_min 2147483647 above its length_max");
    refuse_chunk_size(&small_batch, &config, &only);
    refuse_all(&small_batch, &config, 1, &only);
}

static void plan__refuses_negative_lengths(void **state) {
    (void)state;
    const ptowsp_tier below_zero[] = {{0, INT32_MIN, INT32_MAX}};
    int32_t lengths[300] = {0};
    ptowsp_plan_config config = {0};
    config.tiers = below_zero;  // a tier that covers it does not make it valid
    config.tier_count = 1;
    for (uint32_t at = 0; at < 300; at += 13) {
        const ptowsp_batch batch = {lengths, 300, 1};
        lengths[at] = at % 2 ? INT32_MIN : -1;
        char text[80];
        snprintf(text, sizeof text, "sequence %u has the negative length %d", at, lengths[at]);
        const fault_case expected =
            fault_of(PTOWSP_FAULT_LENGTH_NEGATIVE, PTOWSP_INVALID_PARAMS, at, lengths[at], text);
        refuse_chunk_size(&batch, &config, &expected);
        refuse_chunk_size(&batch, NULL, &expected);
        refuse_all(&batch, &config, 1, &expected);
        refuse_all(&batch, NULL, 1, &expected);
        lengths[at] = 0;
    }
}

static void plan__refuses_lengths_that_no_tier_covers(void **state) {
    (void)state;
    const ptowsp_tier gap[] = {{0, 11, INT32_MAX}, {1, 1, 9}};
    int32_t lengths[300] = {0};
    ptowsp_plan_config config = {0};
    config.tiers = gap;
    config.tier_count = 2;
    for (uint32_t at = 0; at < 300; at += 13) {
        const ptowsp_batch batch = {lengths, 300, 1};
        const int32_t uncovered[] = {131073, INT32_MAX, 10};
        for (int i = 0; i < 3; i++) {
            lengths[at] = uncovered[i];
            char text[80];
            snprintf(text, sizeof text, "sequence %u has length %d, which no tier covers", at,
                     lengths[at]);
            const fault_case expected = fault_of(PTOWSP_FAULT_LENGTH_UNCOVERED,
                                                 PTOWSP_UNSUPPORTED_SIZE, at, lengths[at], text);
            const ptowsp_plan_config *refusing = i < 2 ? NULL : &config;
            refuse_chunk_size(&batch, refusing, &expected);
            refuse_all(&batch, refusing, 1, &expected);
        }
        lengths[at] = 0;
    }
    lengths[299] = 131072;  // the last length that the standard tiers cover
    assert_int_equal(chunk_of(lengths, 300, 1, NULL), 256);
    lengths[299] = 9;
    assert_int_equal(chunk_of(lengths, 300, 1, &config), 256);
}

static void plan__names_the_lowest_of_several_bad_sequences(void **state) {
    (void)state;
    int32_t lengths[100];
    const ptowsp_batch batch = {lengths, 100, UINT32_MAX};
    uint64_t random = test_seed();
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 100; i++) {
            lengths[i] = 131072;
        }
        uint32_t low = (uint32_t)test_random_in(&random, 0, 98);
        uint32_t high = (uint32_t)test_random_in(&random, low + 1, 99);
        lengths[low] = -7;
        lengths[high] = 131073;
        fault_case expected =
            fault_of(PTOWSP_FAULT_LENGTH_NEGATIVE, PTOWSP_INVALID_PARAMS, low, -7, NULL);
        char text[80];
        snprintf(text, sizeof text, "sequence %u has the negative length -7", low);
        if (round % 2) {
            lengths[low] = 131073;
            lengths[high] = -7;
            expected.fault = PTOWSP_FAULT_LENGTH_UNCOVERED;
            expected.status = PTOWSP_UNSUPPORTED_SIZE;
            expected.value = 131073;
            snprintf(text, sizeof text, "sequence %u has length 131073, which no tier covers", low);
        }
        expected.text = text;
        refuse_chunk_size(&batch, NULL, &expected);
        refuse_all(&batch, NULL, 1, &expected);
    }
}

static void plan__refuses_totals_past_64_bits(void **state) {
    (void)state;
    // (2^32 + 2) (2^32 - 1) = 2^64 + 2^32 - 2; one token less is the largest total there is.
    const int32_t lengths[] = {INT32_MAX, INT32_MAX, 4},
                  most[] = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    const ptowsp_batch batches[] = {{lengths, 3, UINT32_MAX}, {most, 6, UINT32_MAX}};
    ptowsp_plan_config config = {0};
    config.tiers = any_length;
    config.tier_count = 1;
    const fault_case expected = fault_of(PTOWSP_FAULT_TOTAL_OVERFLOW, PTOWSP_LIMIT_EXCEEDED, NONE,
                                         0, "the number of work units exceeds 64 bits");
    for (int i = 0; i < 2; i++) {
        refuse_all(&batches[i], &config, 1, &expected);
        refuse_generate(&batches[i], &config, 1, UINT64_MAX, &expected);
    }
}

static void plan__refuses_more_than_all_work_ids(void **state) {
    (void)state;
    // 2^32 + 1 = 641 * 6700417 (Euler).
    const int32_t length[] = {641};
    const ptowsp_batch batch = {length, 1, 6700417};
    fault_case expected = fault_of(PTOWSP_FAULT_IDS_EXHAUSTED, PTOWSP_LIMIT_EXCEEDED, NONE,
                                   4294967297, "4294967297 work units exceed the 2^32 work ids");
    refuse_generate(&batch, NULL, 1, UINT64_MAX, &expected);
    refuse_generate(&batch, NULL, 1, 8, &expected);  // no buffer would do

    // 2^32 are the most: only the buffer is too small.
    const int32_t most_length[] = {65536};
    const ptowsp_batch most = {most_length, 1, 65536};
    const fault_case small =
        fault_of(PTOWSP_FAULT_BUFFER_SMALL, PTOWSP_BUFFER_OVERFLOW, 8, 4294967296,
                 "4294967296 work units do not fit the buffer, which holds 8");
    refuse_generate(&most, NULL, 1, 8, &small);
}

// info.value has 63 bits; a count that needs 64 must not come out negative.
static void plan__refuses_more_work_ids_than_63_bits_count(void **state) {
    (void)state;
    const int32_t lengths[] = {INT32_MAX, 3};
    const ptowsp_batch batch = {lengths, 2, UINT32_MAX};
    ptowsp_plan_config config = {0};
    config.tiers = any_length;
    config.tier_count = 1;
    ptowsp_work work[1];
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_generate(&batch, &config, 1, work, 1, &info),
                     PTOWSP_LIMIT_EXCEEDED);
    assert_int_equal(info.fault, PTOWSP_FAULT_IDS_EXHAUSTED);
    char text[128];
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    ptowsp_plan_explain(&info, ptowsp_text_to_buffer(&buffer));
    assert_null(strchr(text, '-'));
    assert_true(info.value > 0);
}

static void plan__refuses_a_buffer_that_is_one_too_small(void **state) {
    (void)state;
    fault_case expected = fault_of(PTOWSP_FAULT_BUFFER_SMALL, PTOWSP_BUFFER_OVERFLOW, 7, 8,
                                   "8 work units do not fit the buffer, which holds 7");
    // 3 0 7 1 4 with chunk 3: 1 + 0 + 3 + 1 + 2 = 7; with heads 2 it is 14
    const ptowsp_batch eight = {small_lengths, 3, 2};  // 1 + 0 + 3, twice
    refuse_generate(&eight, NULL, 3, 7, &expected);
    expected.index = 0;
    expected.text = "8 work units do not fit the buffer, which holds 0";
    refuse_generate(&eight, NULL, 3, 0, &expected);
    guarded buffer = guarded_make(8, 0);
    assert_int_equal(ptowsp_plan_generate(&eight, NULL, 3, buffer.work, 8, NULL), PTOWSP_OK);
    guarded_assert_guards(&buffer);
    guarded_free(&buffer);

    // Without a buffer this asks for the size.
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_generate(&eight, NULL, 3, NULL, 0, &info), PTOWSP_BUFFER_OVERFLOW);
    assert_fault(&info, &expected);
    info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_generate_range(&eight, NULL, 3, 0, 3, 0, NULL, 0, &info),
                     PTOWSP_BUFFER_OVERFLOW);
    assert_fault(&info, &expected);
}

static void plan__refuses_a_missing_buffer(void **state) {
    (void)state;
    ptowsp_plan_info info = info_with_rubbish();
    const fault_case expected = fault_of(PTOWSP_FAULT_WORK_NULL, PTOWSP_INVALID_PARAMS, NONE, 100,
                                         "work is NULL with capacity 100");
    assert_int_equal(ptowsp_plan_generate(&small_batch, NULL, 1, NULL, 100, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_fault(&info, &expected);
    assert_int_equal(ptowsp_plan_generate(&small_batch, NULL, 1, NULL, 100, NULL),
                     PTOWSP_INVALID_PARAMS);
    info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_generate_range(&small_batch, NULL, 1, 0, 5, 0, NULL, 100, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_fault(&info, &expected);
    refuse_parallel(&small_batch, NULL, 1, NULL, 100, &expected);

    // A capacity of more than 63 bits must not come out negative.
    assert_int_equal(ptowsp_plan_generate(&small_batch, NULL, 1, NULL, UINT64_MAX, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(info.fault, PTOWSP_FAULT_WORK_NULL);
    assert_true(info.value > 0);
}

static void plan__refuses_a_missing_output(void **state) {
    (void)state;
    const fault_case expected = fault_of(PTOWSP_FAULT_OUT_NULL, PTOWSP_INVALID_PARAMS, NONE, 0,
                                         "the output pointer is NULL");
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_chunk_size(&small_batch, NULL, NULL, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_fault(&info, &expected);
    assert_int_equal(ptowsp_plan_chunk_size(&small_batch, NULL, NULL, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_plan_total_work(&small_batch, NULL, 1, NULL), PTOWSP_OK);
}

static void plan__refuses_ranges_outside_the_batch(void **state) {
    (void)state;
    const uint32_t ranges[][2] = {
        {5, 1}, {0, 6}, {3, 3}, {6, 1}, {1, UINT32_MAX}, {UINT32_MAX, 1}, {UINT32_MAX, UINT32_MAX}};
    guarded buffer = guarded_make(20, 0);
    for (int i = 0; i < 7; i++) {
        char text[96];
        snprintf(text, sizeof text, "sequences from %u, %u of them, lie outside the batch",
                 ranges[i][0], ranges[i][1]);
        const fault_case expected =
            fault_of(PTOWSP_FAULT_RANGE, PTOWSP_INVALID_PARAMS, ranges[i][0], ranges[i][1], text);
        ptowsp_plan_info info = info_with_rubbish();
        assert_int_equal(ptowsp_plan_generate_range(&small_batch, NULL, 1, ranges[i][0],
                                                    ranges[i][1], 0, buffer.work, 20, &info),
                         PTOWSP_INVALID_PARAMS);
        assert_fault(&info, &expected);
    }
    guarded_assert_untouched(&buffer);
    assert_int_equal(
        ptowsp_plan_generate_range(&small_batch, NULL, 1, 5, 0, 0, buffer.work, 20, NULL),
        PTOWSP_OK);  // nothing, at the end
    guarded_free(&buffer);
}

static void plan__range_faults_name_the_sequence_of_the_batch(void **state) {
    (void)state;
    const int32_t lengths[] = {1, 1, 1, -4, 1};
    const ptowsp_batch batch = {lengths, 5, 1};
    guarded buffer = guarded_make(5, 0);
    const fault_case expected = fault_of(PTOWSP_FAULT_LENGTH_NEGATIVE, PTOWSP_INVALID_PARAMS, 3, -4,
                                         "sequence 3 has the negative length -4");
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_generate_range(&batch, NULL, 1, 2, 2, 0, buffer.work, 5, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_fault(&info, &expected);
    guarded_assert_untouched(&buffer);
    guarded_free(&buffer);
}

// -- the bound ------------------------------------------------------------------------------------

static uint64_t bound_of(const ptowsp_plan_config *config, const ptowsp_plan_limits *limits) {
    uint64_t count = 77;
    assert_int_equal(ptowsp_plan_work_bound(config, limits, &count), PTOWSP_OK);
    return count;
}

static void plan__work_bound_has_the_values_from_paper(void **state) {
    (void)state;
    ptowsp_plan_limits limits = {100, 1, 131072, 0};
    // 100 * 512 units with chunk 256 fit 65536.
    assert_true(bound_of(NULL, &limits) == 51200);
    // 8 * 100 * 512 do not, 8 * 100 * 32 with chunk 4096 do: in between, as many as fit, 8 * 8192.
    limits.head_count = 8;
    assert_true(bound_of(NULL, &limits) == 65536);
    limits.head_count = 32;  // 32 * 100 * 32: more than fit, at the largest chunk
    assert_true(bound_of(NULL, &limits) == 102400);
    // 2^20 tokens: one each for 100 sequences, the other 1048476 buy 255 more chunks of 4096.
    limits.token_count_max = 1048576;
    limits.head_count = 256;
    assert_true(bound_of(NULL, &limits) == 256 * 355);
    limits.token_count_max = 60;  // 60 sequences of one token
    limits.head_count = 2;
    assert_true(bound_of(NULL, &limits) == 120);
    const ptowsp_plan_limits none[] = {{0, 8, 1000, 0}, {8, 8, 0, 0}};
    assert_true(bound_of(NULL, &none[0]) == 0);
    assert_true(bound_of(NULL, &none[1]) == 0);
}

// The count of the chunk that is picked for a batch.
static uint64_t picked_count(const ptowsp_batch *batch, const ptowsp_plan_config *config) {
    uint32_t chunk = 0;
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_plan_chunk_size(batch, config, &chunk, NULL), PTOWSP_OK);
    assert_int_equal(ptowsp_plan_total_work(batch, config, chunk, &info), PTOWSP_OK);
    assert_true(info.work_count == reference_total(batch, chunk));
    return info.work_count;
}

// Small limits, and a config that makes the chunk matter within them.
static ptowsp_plan_limits random_limits(uint64_t *random, ptowsp_plan_config *config) {
    memset(config, 0, sizeof *config);
    config->chunk_min = (uint32_t)test_random_in(random, 1, 5);
    config->chunk_max = config->chunk_min + (uint32_t)test_random_in(random, 2, 6);
    config->max_work_units = (uint32_t)test_random_in(random, 1, 30);
    config->align = (uint32_t)test_random_in(random, 0, 3);
    ptowsp_plan_limits limits = {
        (uint32_t)test_random_in(random, 1, 3), (uint32_t)test_random_in(random, 1, 3),
        (int32_t)test_random_in(random, 1, 9), (uint64_t)test_random_in(random, 0, 25)};
    return limits;
}

// The largest count of all batches within limits of at most three sequences, all of them tried.
static uint64_t largest_count(const ptowsp_plan_config *config, const ptowsp_plan_limits *limits) {
    uint64_t most = 0;
    int32_t l[3];
    for (l[0] = 0; l[0] <= limits->length_max; l[0]++) {
        for (l[1] = 0; l[1] <= (limits->sequence_count_max > 1 ? l[0] : 0); l[1]++) {
            for (l[2] = 0; l[2] <= (limits->sequence_count_max > 2 ? l[1] : 0); l[2]++) {
                uint64_t tokens = (uint64_t)l[0] + (uint64_t)l[1] + (uint64_t)l[2];
                if (limits->token_count_max == 0 || tokens <= limits->token_count_max) {
                    ptowsp_batch batch = {l, limits->sequence_count_max, limits->head_count};
                    uint64_t count = picked_count(&batch, config);
                    most = count > most ? count : most;
                }
            }
        }
    }
    return most;
}

static void plan__work_bound_holds_for_all_batches_within_small_limits(void **state) {
    (void)state;
    uint64_t random = test_seed();
    for (int round = 0; round < 1500; round++) {
        ptowsp_plan_config config;
        ptowsp_plan_limits limits = random_limits(&random, &config);
        assert_true(bound_of(&config, &limits) >= largest_count(&config, &limits));
    }
}

// The header's "largest number of any batch": not only a bound, but one that some batch reaches.
static void plan__work_bound_is_the_largest_count_there_is(void **state) {
    (void)state;
    const ptowsp_plan_limits paper = {100, 7, 131072, 0};  // 7 heads * 9362 is the last below 65536
    assert_true(bound_of(NULL, &paper) == 65534);
    uint64_t random = test_seed();
    for (int round = 0; round < 1500; round++) {
        ptowsp_plan_config config;
        ptowsp_plan_limits limits = random_limits(&random, &config);
        assert_true(bound_of(&config, &limits) == largest_count(&config, &limits));
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

static void plan__work_bound_is_never_exceeded(void **state) {
    (void)state;
    uint64_t random = test_seed();
    for (int round = 0; round < 3000; round++) {
        ptowsp_plan_config config = {0};
        config.chunk_min = (uint32_t)random_scaled(&random, 10);
        config.chunk_max = config.chunk_min + (uint32_t)random_scaled(&random, 12);
        config.max_work_units = round % 4 ? (uint32_t)random_scaled(&random, 16) : 0;
        config.align = (uint32_t)test_random_in(&random, 0, config.chunk_max - config.chunk_min);
        ptowsp_plan_limits limits = {(uint32_t)test_random_in(&random, 0, 200),
                                     (uint32_t)test_random_in(&random, 1, 40),
                                     (int32_t)test_random_in(&random, 0, 131072), 0};
        limits.token_count_max = round % 3 ? (uint64_t)random_scaled(&random, 24) : 0;
        uint64_t bound = bound_of(&config, &limits);
        for (int i = 0; i < 8; i++) {
            int32_t lengths[200];
            uint32_t count = i == 0
                                 ? limits.sequence_count_max
                                 : (uint32_t)test_random_in(&random, 0, limits.sequence_count_max);
            bounded_lengths(&limits, &random, lengths, count);
            ptowsp_batch batch = {lengths, count, limits.head_count};
            assert_true(picked_count(&batch, &config) <= bound);
        }
    }
}

static void refuse_bound(const ptowsp_plan_config *config, const ptowsp_plan_limits *limits,
                         ptowsp_status expected) {
    uint64_t count = 77;
    assert_int_equal(ptowsp_plan_work_bound(config, limits, &count), expected);
    assert_true(count == 0);
}

static void plan__work_bound_refuses_bad_parameters(void **state) {
    (void)state;
    const ptowsp_plan_limits limits = {100, 8, 1000, 0}, negative = {100, 8, -1, 0};
    refuse_bound(NULL, NULL, PTOWSP_INVALID_PARAMS);
    refuse_bound(NULL, &negative, PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_plan_work_bound(NULL, &limits, NULL), PTOWSP_INVALID_PARAMS);
    const ptowsp_tier reversed[] = {{0, 1, 0}};
    ptowsp_plan_config configs[6];
    memset(configs, 0, sizeof configs);
    configs[0].chunk_min = 5000;
    configs[0].chunk_max = 4999;
    configs[1].align = 4097;
    configs[2].chunks = (ptowsp_chunks)9;
    configs[3].tier_count = 1;
    configs[4].tiers = any_length;
    configs[5].tiers = reversed;
    configs[5].tier_count = 1;
    for (int i = 0; i < 6; i++) {
        refuse_bound(&configs[i], &limits, PTOWSP_INVALID_PARAMS);
    }
}

static void plan__work_bound_refuses_what_64_bits_cannot_count(void **state) {
    (void)state;
    ptowsp_plan_config config = {0};
    config.tiers = any_length;
    config.tier_count = 1;
    config.chunk_max = config.chunk_min = 1;
    const ptowsp_plan_limits limits = {UINT32_MAX, UINT32_MAX, INT32_MAX, 0};
    refuse_bound(&config, &limits, PTOWSP_LIMIT_EXCEEDED);
    // One chunk per token: (2^32 + 2) (2^32 - 1) units are past 2^64.
    const ptowsp_plan_limits past = {3, UINT32_MAX, INT32_MAX, (UINT64_C(1) << 32) + 2};
    refuse_bound(&config, &past, PTOWSP_LIMIT_EXCEEDED);
    const ptowsp_plan_limits below = {3, UINT32_MAX, INT32_MAX, UINT64_C(1) << 32};
    assert_true(bound_of(&config, &below) == UINT64_MAX - UINT32_MAX);
}

// (2^32 + 1) (2^32 - 1) = 2^64 - 1 units: total_work counts them, so the bound has to.
static void plan__work_bound_reaches_the_last_64_bit_count(void **state) {
    (void)state;
    ptowsp_plan_config config = {0};
    config.tiers = any_length;
    config.tier_count = 1;
    config.chunk_max = config.chunk_min = 1;
    const ptowsp_plan_limits limits = {3, UINT32_MAX, INT32_MAX, (UINT64_C(1) << 32) + 1};
    uint64_t count = 0;
    assert_int_equal(ptowsp_plan_work_bound(&config, &limits, &count), PTOWSP_OK);
    assert_true(count == UINT64_MAX);
}

// -- vector code ----------------------------------------------------------------------------------

// What one machine never chooses is called here directly, as far as it can run it.
static void check_vector_code(const int32_t *lengths, uint64_t count, uint32_t chunk) {
    int32_t min = INT32_MAX, max = INT32_MIN, positive_min = INT32_MAX;
    uint64_t positive_count = 0, total = 0, quotients = 0;
    for (uint64_t i = 0; i < count; i++) {
        min = lengths[i] < min ? lengths[i] : min;
        max = lengths[i] > max ? lengths[i] : max;
        if (lengths[i] > 0) {
            positive_min = lengths[i] < positive_min ? lengths[i] : positive_min;
            positive_count++;
            total += (uint64_t)lengths[i];
            quotients += ((uint64_t)lengths[i] - 1) / chunk;
        }
    }
    pwsp_divisor divisor = pwsp_divisor_make(chunk);
    pwsp_lengths_facts facts[4] = {pwsp_lengths_scan(lengths, count),
                                   pwsp_lengths_scan_scalar(lengths, count)};
    uint64_t sums[4] = {pwsp_lengths_units(lengths, count, 0, chunk),
                        pwsp_lengths_quotients_scalar(lengths, count, divisor)};
    int ways = 2;
#if PWSP_X86
    if (pwsp_cpu_has_avx2()) {
        facts[ways] = pwsp_lengths_scan_avx2(lengths, count);
        sums[ways++] = pwsp_lengths_quotients_avx2(lengths, count, divisor);
    }
    if (pwsp_cpu_has_avx512()) {
        facts[ways] = pwsp_lengths_scan_avx512(lengths, count);
        sums[ways++] = pwsp_lengths_quotients_avx512(lengths, count, divisor);
    }
#endif
    for (int way = 0; way < ways; way++) {
        assert_int_equal(facts[way].min, min);
        assert_int_equal(facts[way].max, max);
        assert_int_equal(facts[way].positive_min, positive_min);
        assert_true(facts[way].positive_count == positive_count);
        if (min >= 0) {
            assert_true(facts[way].total == total);
            assert_true(sums[way] == quotients);
        }
    }
}

static void plan__all_vector_code_counts_alike(void **state) {
    (void)state;
    uint64_t random = test_seed();
    for (int round = 0; round < 20000; round++) {
        uint32_t count = (uint32_t)test_random_in(&random, 0, 70);
        int64_t bits = test_random_in(&random, 0, 31);
        int32_t *lengths = (int32_t *)malloc(count ? count * sizeof *lengths : 1);
        assert_non_null(lengths);
        for (uint32_t i = 0; i < count; i++) {
            lengths[i] = (int32_t)(random_scaled(&random, bits) - 1);
            if (round % 5 == 0 && test_random(&random) % 32 == 0) {
                lengths[i] = -lengths[i] - 1;
            }
        }
        uint32_t chunk = round % 3 ? (uint32_t)random_scaled(&random, 31)
                                   : (uint32_t)test_random_in(&random, 1, UINT32_MAX);
        check_vector_code(lengths, count, chunk);
        free(lengths);
    }
}

// -- parallel -------------------------------------------------------------------------------------

// Plans that are long in different ways; all but the first have more than 50,000 descriptors.
static uint32_t parallel_batch(int shape, int32_t *lengths, uint32_t *heads, uint64_t *random) {
    uint32_t count = 0;
    *heads = 1;
    switch (shape) {
    case 0:
        count = 100;
        for (uint32_t i = 0; i < count; i++) {
            lengths[i] = (int32_t)test_random_in(random, 0, 4000);
        }
        break;
    case 1:  // many sequences of all sizes
        count = 5000;
        *heads = 3;
        for (uint32_t i = 0; i < count; i++) {
            lengths[i] = (int32_t)(random_scaled(random, 12) - 1);
        }
        break;
    case 2:  // one sequence has it all, in the middle of nothing
        count = 3001;
        *heads = 7;
        memset(lengths, 0, count * sizeof *lengths);
        lengths[1500] = 1310720;
        break;
    case 3:  // one head after another of one sequence
        count = 1;
        *heads = 40000;
        lengths[0] = 200;
        break;
    default:  // one unit each
        count = 5000;
        *heads = 16;
        for (uint32_t i = 0; i < count; i++) {
            lengths[i] = (int32_t)test_random_in(random, 0, 3);
        }
        break;
    }
    return count;
}

// Compares with serial generation, on this context, over all shapes.
static void check_parallel(ptowsp_context *context) {
    static int32_t lengths[5000];
    uint64_t random = 1;
    for (int shape = 0; shape < 5; shape++) {
        ptowsp_batch batch = {lengths, 0, 0};
        batch.sequence_count = parallel_batch(shape, lengths, &batch.head_count, &random);
        ptowsp_plan_config config = {0};
        config.tiers = any_length;
        config.tier_count = 1;
        config.align = 4;
        uint32_t chunk = 100;
        for (int fixed = 0; fixed < 2; fixed++) {
            config.chunks = fixed ? PTOWSP_CHUNKS_FIXED : PTOWSP_CHUNKS_BALANCED;
            uint64_t total = reference_total(&batch, chunk);
            assert_int_equal(total > 50000, shape > 0 && shape < 5 ? 1 : 0);
            guarded serial = guarded_make(total, 0),
                    parallel = guarded_make(total, test_random(&random));
            ptowsp_plan_info info = info_with_rubbish();
            assert_int_equal(ptowsp_plan_generate(&batch, &config, chunk, serial.work, total, NULL),
                             PTOWSP_OK);
            assert_int_equal(ptowsp_plan_generate_parallel(context, &batch, &config, chunk,
                                                           parallel.work, total, &info),
                             PTOWSP_OK);
            assert_true(info.work_count == total && info.fault == PTOWSP_FAULT_NONE);
            assert_same_work(parallel.work, serial.work, total);
            guarded_assert_guards(&parallel);
            guarded_free(&serial);
            guarded_free(&parallel);
        }
    }
    ptowsp_error error = ptowsp_context_error(context);
    assert_int_equal(error.status, PTOWSP_OK);
}

static void plan__parallel_generation_equals_serial_on_own_threads(void **state) {
    (void)state;
#ifdef PTOWSP_NO_THREADS
    skip();
#endif
    const uint32_t lane_counts[] = {1, 2, 3, 4, 8};
    for (int i = 0; i < 5; i++) {
        ptowsp_context_desc desc = {0};
        desc.threads = PTOWSP_THREADS_OWN;
        desc.lane_count = lane_counts[i];
        ptowsp_context *context = NULL;
        assert_int_equal(ptowsp_context_create(&desc, &context), PTOWSP_OK);
        for (int round = 0; round < 3; round++) {
            check_parallel(context);
        }
        ptowsp_context_destroy(context);
    }
}

static void plan__parallel_generation_equals_serial_without_threads(void **state) {
    (void)state;
    ptowsp_context *context = serial_context();
    check_parallel(context);
    ptowsp_context_destroy(context);
}

static void plan__parallel_generation_equals_serial_on_the_users_lanes(void **state) {
    (void)state;
    const uint32_t lane_counts[] = {1, 2, 5, 64};
    for (int i = 0; i < 4; i++) {
        uint32_t run_count = 0;
        ptowsp_context *context = user_context(lane_counts[i], &run_count);
        check_parallel(context);
        if (lane_counts[i] > 1) {
            assert_true(run_count >= 8);  // four long plans, two ways
        }
        ptowsp_context_destroy(context);
    }
}

static void plan__short_plans_stay_on_one_lane(void **state) {
    (void)state;
    const int32_t lengths[] = {100, 4096, 0, 17};
    const ptowsp_batch batch = {lengths, 4, 8};
    uint32_t run_count = 0;
    ptowsp_context *context = user_context(4, &run_count);
    ptowsp_work work[64];
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(ptowsp_plan_generate_parallel(context, &batch, NULL, 1024, work, 64, &info),
                     PTOWSP_OK);
    assert_true(info.work_count == 8 * (1 + 4 + 1));
    assert_int_equal(run_count, 0);
    ptowsp_context_destroy(context);
}

static void plan__long_parallel_plans_are_refused_untouched(void **state) {
    (void)state;
    static int32_t lengths[5000];
    for (int i = 0; i < 5000; i++) {
        lengths[i] = 1300;
    }
    uint32_t run_count = 0;
    ptowsp_context *context = user_context(4, &run_count);
    const ptowsp_batch batch = {lengths, 5000, 2};
    const uint64_t total = 5000 * 2 * 13;
    guarded buffer = guarded_make(total, 0);
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(
        ptowsp_plan_generate_parallel(context, &batch, NULL, 100, buffer.work, total - 1, &info),
        PTOWSP_BUFFER_OVERFLOW);
    assert_true(info.work_count == total);
    lengths[4999] = 200000;
    lengths[4000] = -1;
    assert_int_equal(
        ptowsp_plan_generate_parallel(context, &batch, NULL, 100, buffer.work, total, &info),
        PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, 4000,
                  "plan: sequence 4000 has the negative length -1");
    lengths[4000] = 1;
    assert_int_equal(
        ptowsp_plan_generate_parallel(context, &batch, NULL, 100, buffer.work, total, NULL),
        PTOWSP_UNSUPPORTED_SIZE);
    test_error_is(context, PTOWSP_UNSUPPORTED_SIZE, 4999,
                  "plan: sequence 4999 has length 200000, which no tier covers");
    guarded_assert_untouched(&buffer);
    lengths[4999] = 1300;
    assert_int_equal(
        ptowsp_plan_generate_parallel(context, &batch, NULL, 100, buffer.work, total, NULL),
        PTOWSP_OK);
    test_error_is(context, PTOWSP_UNSUPPORTED_SIZE, 4999,  // success does not clear it
                  "plan: sequence 4999 has length 200000, which no tier covers");
    guarded_free(&buffer);
    ptowsp_context_destroy(context);
}

// The index of a context's error is that of an offending element, or PTOWSP_NO_INDEX (section 2):
// not some number that a text needs.
static void plan__context_errors_have_the_index_of_an_element_or_none(void **state) {
    (void)state;
    const int32_t bad_lengths[] = {1, 200000};
    const ptowsp_batch bad = {bad_lengths, 2, 1};
    const ptowsp_tier reversed[] = {{0, 1, 9}, {1, 9, 1}};
    ptowsp_plan_config tiers = {0}, pages = {0};
    tiers.tiers = reversed;
    tiers.tier_count = 2;
    pages.align = 16;
    const struct {
        const ptowsp_batch *batch;
        const ptowsp_plan_config *config;
        uint32_t chunk;
        uint64_t index;
    } cases[] = {{&bad, NULL, 1, 1},
                 {&small_batch, &tiers, 1, 1},
                 {NULL, NULL, 1, NONE},
                 {&small_batch, &pages, 17, NONE},  // CHUNK_INVALID: info.index is align
                 {&small_batch, NULL, 1, NONE}};    // BUFFER_SMALL: info.index is the capacity
    for (int i = 0; i < 5; i++) {
        ptowsp_context *context = serial_context();
        ptowsp_work work[3];
        assert_int_not_equal(ptowsp_plan_generate_parallel(context, cases[i].batch, cases[i].config,
                                                           cases[i].chunk, work, 3, NULL),
                             PTOWSP_OK);
        ptowsp_error error = ptowsp_context_error(context);
        ptowsp_context_destroy(context);
        assert_true(error.index == cases[i].index);
    }
}

typedef struct nested_job {
    ptowsp_context *context;
    ptowsp_status status;  // of the nested parallel-for
} nested_job;

static void do_nothing(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)begin, (void)end, (void)lane;
}

static void plan_inside_a_job(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    nested_job *job = (nested_job *)user;
    ptowsp_work work[20];
    (void)begin, (void)end, (void)lane;
    ptowsp_plan_generate_parallel(job->context, &small_batch, NULL, 1, work, 20, NULL);
    job->status = ptowsp_parallel_for(job->context, 1, 1, do_nothing, NULL);
}

// A context is busy until its job is done (section 3), whatever the job calls.
static void plan__planning_inside_a_job_does_not_end_the_job(void **state) {
    (void)state;
    ptowsp_context *context = serial_context();
    nested_job job = {context, PTOWSP_OK};
    assert_int_equal(ptowsp_parallel_for(context, 1, 1, plan_inside_a_job, &job), PTOWSP_OK);
    ptowsp_context_destroy(context);
    assert_int_equal(job.status, PTOWSP_BUSY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan__picks_the_smallest_chunk_whose_units_fit),
        cmocka_unit_test(plan__picks_chunk_max_when_no_chunk_fits),
        cmocka_unit_test(plan__picks_among_multiples_of_align),
        cmocka_unit_test(plan__an_empty_step_gets_the_smallest_chunk),
        cmocka_unit_test(plan__null_and_zero_configs_are_the_defaults),
        cmocka_unit_test(plan__a_chunk_limit_alone_moves_the_other_one_out_of_its_way),
        cmocka_unit_test(plan__balanced_pieces_differ_by_at_most_one_token),
        cmocka_unit_test(plan__fixed_pieces_are_a_chunk_long_but_the_last),
        cmocka_unit_test(plan__aligned_pieces_start_at_multiples_of_align),
        cmocka_unit_test(plan__descriptors_come_by_sequence_then_head_then_chunk),
        cmocka_unit_test(plan__the_first_tier_that_covers_the_whole_sequence_wins),
        cmocka_unit_test(plan__empty_and_all_zero_batches_have_no_work),
        cmocka_unit_test(plan__total_work_is_heads_times_the_sum_of_pieces),
        cmocka_unit_test(plan__counts_use_all_64_bits),
        cmocka_unit_test(plan__extreme_chunks_and_alignments_do_not_wrap),
        cmocka_unit_test(plan__agrees_with_the_slow_reference),
        cmocka_unit_test(plan__counts_are_exact_next_to_multiples_of_the_chunk),
        cmocka_unit_test(plan__covers_every_token_exactly_once),
        cmocka_unit_test(plan__fixed_boundaries_do_not_depend_on_the_rest_of_the_batch),
        cmocka_unit_test(plan__consecutive_ranges_make_the_whole_plan),
        cmocka_unit_test(plan__ranges_take_ids_up_to_the_last_one),
        cmocka_unit_test(plan__explains_the_absence_of_a_fault),
        cmocka_unit_test(plan__refuses_a_missing_batch),
        cmocka_unit_test(plan__refuses_missing_lengths),
        cmocka_unit_test(plan__refuses_a_batch_without_heads),
        cmocka_unit_test(plan__refuses_an_unknown_way_to_cut),
        cmocka_unit_test(plan__refuses_reversed_chunk_limits),
        cmocka_unit_test(plan__refuses_a_chunk_range_without_a_multiple_of_align),
        cmocka_unit_test(plan__refuses_chunks_that_are_no_multiple_of_align),
        cmocka_unit_test(plan__refuses_tiers_without_an_array_or_a_count),
        cmocka_unit_test(plan__refuses_the_first_reversed_tier),
        cmocka_unit_test(plan__refuses_negative_lengths),
        cmocka_unit_test(plan__refuses_lengths_that_no_tier_covers),
        cmocka_unit_test(plan__names_the_lowest_of_several_bad_sequences),
        cmocka_unit_test(plan__refuses_totals_past_64_bits),
        cmocka_unit_test(plan__refuses_more_than_all_work_ids),
        cmocka_unit_test(plan__refuses_more_work_ids_than_63_bits_count),
        cmocka_unit_test(plan__refuses_a_buffer_that_is_one_too_small),
        cmocka_unit_test(plan__refuses_a_missing_buffer),
        cmocka_unit_test(plan__refuses_a_missing_output),
        cmocka_unit_test(plan__refuses_ranges_outside_the_batch),
        cmocka_unit_test(plan__range_faults_name_the_sequence_of_the_batch),
        cmocka_unit_test(plan__work_bound_has_the_values_from_paper),
        cmocka_unit_test(plan__work_bound_holds_for_all_batches_within_small_limits),
        cmocka_unit_test(plan__work_bound_is_the_largest_count_there_is),
        cmocka_unit_test(plan__work_bound_is_never_exceeded),
        cmocka_unit_test(plan__work_bound_refuses_bad_parameters),
        cmocka_unit_test(plan__work_bound_refuses_what_64_bits_cannot_count),
        cmocka_unit_test(plan__work_bound_reaches_the_last_64_bit_count),
        cmocka_unit_test(plan__all_vector_code_counts_alike),
        cmocka_unit_test(plan__parallel_generation_equals_serial_on_own_threads),
        cmocka_unit_test(plan__parallel_generation_equals_serial_without_threads),
        cmocka_unit_test(plan__parallel_generation_equals_serial_on_the_users_lanes),
        cmocka_unit_test(plan__short_plans_stay_on_one_lane),
        cmocka_unit_test(plan__long_parallel_plans_are_refused_untouched),
        cmocka_unit_test(plan__context_errors_have_the_index_of_an_element_or_none),
        cmocka_unit_test(plan__planning_inside_a_job_does_not_end_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
