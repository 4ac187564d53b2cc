// What the tests of planning share: buffers between guard bytes, the slow reference, and calls that
// have to be refused.
//
// The reference is the rules of the header's section 6 as plain loops, with a linear search for the
// chunk. It shares nothing with the library but the types.

#ifndef PTOWSP_PLAN_REFERENCE_H
#define PTOWSP_PLAN_REFERENCE_H

#include "test.h"

#define NONE PTOWSP_NO_INDEX

// -- buffers between guards -----------------------------------------------------------------------

#define GUARD_BYTES 256u  // more than a block of eight descriptors
#define PATTERN     0x5a

typedef struct guarded {
    unsigned char *block;
    size_t block_size;
    ptowsp_work *work;
    uint64_t capacity;
} guarded;

// Room for `capacity` descriptors, aligned to 8 bytes and, as `shift` wants it, to no more.
static inline guarded guarded_make(uint64_t capacity, uint64_t shift) {
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

static inline void assert_pattern(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != PATTERN) {
            fail_msg("byte %zu of %zu that must not change was written", i, count);
        }
    }
}

static inline void guarded_assert_guards(const guarded *buffer) {
    const unsigned char *begin = (const unsigned char *)buffer->work;
    assert_pattern(buffer->block, (size_t)(begin - buffer->block));
    assert_pattern(begin + buffer->capacity * sizeof(ptowsp_work), GUARD_BYTES);
}

static inline void guarded_assert_untouched(const guarded *buffer) {
    assert_pattern(buffer->block, buffer->block_size);
}

// Frees a buffer whose guards are as they were.
static inline void guarded_free(guarded *buffer) {
    guarded_assert_guards(buffer);
    free(buffer->block);
}

// -- the reference --------------------------------------------------------------------------------

static const ptowsp_tier reference_tiers[] = {
    {0, 1, 1024}, {1, 1025, 4096}, {2, 4097, 16384}, {3, 16385, 131072}};
static const ptowsp_tier any_length[] = {{7, 1, INT32_MAX}};

// The config with the defaults that the comments on its members promise.
static inline ptowsp_plan_config reference_config(const ptowsp_plan_config *config) {
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

// 1 to 2^bits, every order of magnitude equally likely.
static inline int64_t random_scaled(uint64_t *random, int64_t bits) {
    return test_random_in(random, 1, INT64_C(1) << test_random_in(random, 0, bits));
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

static inline uint64_t reference_total(const ptowsp_batch *batch, uint64_t chunk) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        total += batch->kv_head_count * ceil_div((uint64_t)batch->lengths[i], chunk);
    }
    return total;
}

// The smallest multiple of align in the range whose units fit, or the largest multiple.
static inline uint32_t reference_chunk(const ptowsp_batch *batch, const ptowsp_plan_config *full) {
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
static inline bool reference_chunk_is(const ptowsp_batch *batch, const ptowsp_plan_config *full,
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

static inline int32_t reference_tier(const ptowsp_plan_config *full, int32_t length) {
    for (uint32_t i = 0; i < full->tier_count; i++) {
        if (full->tiers[i].length_min <= length && length <= full->tiers[i].length_max) {
            return full->tiers[i].id;
        }
    }
    return -1;
}

// The first sequence that makes a batch invalid, or sequence_count.
static inline uint32_t reference_bad_sequence(const ptowsp_batch *batch,
                                              const ptowsp_plan_config *full) {
    uint32_t i = 0;
    while (i < batch->sequence_count &&
           (batch->lengths[i] == 0 ||
            (batch->lengths[i] > 0 && reference_tier(full, batch->lengths[i]) >= 0))) {
        i++;
    }
    return i;
}

// The descriptors of all heads of one sequence, which depend on its length alone, and have what the header
// promises: every token once, boundaries at multiples of align, and balanced pieces of nearly one length.
static inline uint64_t reference_sequence(const ptowsp_batch *batch, const ptowsp_plan_config *full,
                                          uint32_t chunk, uint32_t sequence, uint64_t id,
                                          ptowsp_work *work) {
    uint64_t length = (uint64_t)batch->lengths[sequence];
    uint64_t pieces = ceil_div(length, chunk);
    uint64_t units = ceil_div(length, full->align);
    uint64_t count = 0;
    for (uint32_t head = 0; head < batch->kv_head_count; head++) {
        uint64_t start = 0, shortest = UINT64_MAX, longest = 0;
        for (uint64_t i = 0; i < pieces; i++) {
            bool is_longer = i >= pieces - units % pieces;  // the longer ones come last
            uint64_t size = full->chunks == PTOWSP_CHUNKS_FIXED
                                ? chunk
                                : (units / pieces + is_longer) * full->align;
            if (start + size > length) {
                size = length - start;
            }
            assert_true(0 < size && size <= chunk && start % full->align == 0);
            shortest = size < shortest ? size : shortest;
            longest = size > longest ? size : longest;
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
        assert_true(full->chunks == PTOWSP_CHUNKS_FIXED || pieces == 0 ||
                    longest - shortest <= full->align);
    }
    return count;
}

static inline uint64_t reference_generate(const ptowsp_batch *batch, const ptowsp_plan_config *full,
                                          uint32_t chunk, ptowsp_work *work) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        count += reference_sequence(batch, full, chunk, i, count, work + count);
    }
    return count;
}

static inline void assert_same_work(const ptowsp_work *got, const ptowsp_work *expected,
                                    uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (memcmp(&got[i], &expected[i], sizeof got[i]) != 0) {
            char text[2][128];
            ptowsp_output_buffer buffers[2] = {{text[0], 128, 0}, {text[1], 128, 0}};
            ptowsp_work_print(&got[i], ptowsp_output_to_buffer(&buffers[0]));
            ptowsp_work_print(&expected[i], ptowsp_output_to_buffer(&buffers[1]));
            fail_msg("work %llu of %llu is %s, not %s", (unsigned long long)i,
                     (unsigned long long)count, text[0], text[1]);
        }
    }
}

// -- calls ----------------------------------------------------------------------------------------

// The functions that plan, as bits, so that a test can name some.
enum {
    CHUNK_SIZE = 1,
    TOTAL_WORK = 2,
    GENERATE = 4,
    GENERATE_RANGE = 8,
    GENERATE_PARALLEL = 16,
    WORK_BOUND = 32,
    FUNCTION_END = 64,
    WRITERS = GENERATE | GENERATE_RANGE | GENERATE_PARALLEL,
    TAKE_CHUNK = WRITERS | TOTAL_WORK,
    TAKE_BATCH = TAKE_CHUNK | CHUNK_SIZE,
    TAKE_CONFIG = TAKE_BATCH | WORK_BOUND
};

// The arguments of any of them; each takes those that it has.
typedef struct plan_call {
    const ptowsp_batch *batch;
    const ptowsp_plan_config *config;
    const ptowsp_plan_limits *limits;
    uint32_t chunk;
    uint32_t first;  // of generate_range
    uint32_t count;
    uint64_t first_work_id;
    ptowsp_work *work;
    uint64_t capacity;
    bool is_out_null;  // no chunk or bound is asked for
} plan_call;

// Calls with a chunk of 1, for the whole batch, a buffer of which `capacity` is said, and limits
// that no batch exceeds.
static inline plan_call plan_call_of(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                                     ptowsp_work *work, uint64_t capacity) {
    static const ptowsp_plan_limits limits = {4, 1, INT32_MAX, 0};
    plan_call call = {batch, config, &limits,  1,    0, batch ? batch->sequence_count : 0,
                      0,     work,   capacity, false};
    return call;
}

static inline ptowsp_plan_info info_with_rubbish(void) {
    ptowsp_plan_info info;
    memset(&info, 0x77, sizeof info);
    return info;
}

// Makes the call. What it puts out besides the info must be 0 if it fails.
static inline ptowsp_status plan_call_run(const plan_call *call, int function,
                                          ptowsp_context *context, ptowsp_plan_info *info) {
    uint32_t chunk = 77;
    uint64_t bound = 77;
    ptowsp_status status = PTOWSP_OK;
    switch (function) {
    case CHUNK_SIZE:
        status = ptowsp_plan_chunk_size(call->batch, call->config,
                                        call->is_out_null ? NULL : &chunk, info);
        assert_true(status == PTOWSP_OK || call->is_out_null || chunk == 0);
        break;
    case TOTAL_WORK:
        status = ptowsp_plan_total_work(call->batch, call->config, call->chunk, info);
        break;
    case GENERATE:
        status = ptowsp_plan_generate(call->batch, call->config, call->chunk, call->work,
                                      call->capacity, info);
        break;
    case GENERATE_RANGE:
        status = ptowsp_plan_generate_range(call->batch, call->config, call->chunk, call->first,
                                            call->count, call->first_work_id, call->work,
                                            call->capacity, info);
        break;
    case GENERATE_PARALLEL:
        status = ptowsp_plan_generate_parallel(context, call->batch, call->config, call->chunk,
                                               call->work, call->capacity, info);
        break;
    default:
        assert_int_equal(function, WORK_BOUND);
        status = ptowsp_plan_work_bound(call->config, call->limits,
                                        call->is_out_null ? NULL : &bound, info);
        assert_true(status == PTOWSP_OK || call->is_out_null || bound == 0);
        break;
    }
    return status;
}

// -- faults ---------------------------------------------------------------------------------------

// What a refused call must report. The text is without the leading "plan: "; NULL is any.
typedef struct fault_case {
    ptowsp_plan_fault fault;
    uint64_t index;
    int64_t value;
    int64_t limit;
    const char *text;
} fault_case;

static inline ptowsp_status status_of_fault(ptowsp_plan_fault fault) {
    switch ((int)fault) {
    case PTOWSP_FAULT_NONE: return PTOWSP_OK;
    case PTOWSP_FAULT_LENGTH_UNCOVERED: return PTOWSP_UNSUPPORTED_SIZE;
    case PTOWSP_FAULT_TOTAL_OVERFLOW: return PTOWSP_LIMIT_EXCEEDED;
    case PTOWSP_FAULT_IDS_EXHAUSTED: return PTOWSP_LIMIT_EXCEEDED;
    case PTOWSP_FAULT_BUFFER_SMALL: return PTOWSP_BUFFER_OVERFLOW;
    default: return PTOWSP_INVALID_PARAMS;
    }
}

static inline void assert_fault(const ptowsp_plan_info *info, const fault_case *expected) {
    char text[160], expected_text[160];
    ptowsp_plan_explain(info, TEST_TEXT(text));
    if (expected->text) {
        snprintf(expected_text, sizeof expected_text, "plan: %s", expected->text);
        assert_string_equal(text, expected_text);
    }
    assert_int_equal(info->fault, expected->fault);
    assert_true(info->index == expected->index);
    assert_true(info->value == expected->value);
    assert_true(info->limit == expected->limit);
    bool is_small = expected->fault == PTOWSP_FAULT_BUFFER_SMALL;
    assert_true(info->work_count == (is_small ? (uint64_t)expected->value : 0));
}

static inline ptowsp_context *serial_context(void) {
    return test_context(NULL);
}

// Each of the functions refuses the call, with and without an info. Parallel generation says the
// same in the context's error.
static inline void refuse(const plan_call *call, int functions, const fault_case *expected) {
    ptowsp_status status = status_of_fault(expected->fault);
    for (int function = 1; function < FUNCTION_END; function *= 2) {
        ptowsp_plan_info info = info_with_rubbish();
        for (int without = 0; without < 2 && (functions & function) != 0; without++) {
            ptowsp_context *context = function == GENERATE_PARALLEL ? serial_context() : NULL;
            assert_int_equal(plan_call_run(call, function, context, without ? NULL : &info),
                             status);
            assert_fault(&info, expected);
            if (context) {
                char text[160];
                ptowsp_plan_explain(&info, TEST_TEXT(text));
                test_error_is(context, status, expected->index, text);
            }
            ptowsp_context_destroy(context);
        }
    }
}

// As refuse, with a buffer of which not a byte may change, whatever capacity it claims to have.
static inline void refuse_untouched(plan_call call, int functions, const fault_case *expected) {
    guarded buffer = guarded_make(8, 0);
    call.work = buffer.work;
    refuse(&call, functions, expected);
    guarded_assert_untouched(&buffer);
    guarded_free(&buffer);
}

#endif
