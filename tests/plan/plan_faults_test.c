// Planning, refused: every fault in every function that can find it, with index, value, limit and
// text, and the order in which faults are found. Values at the ends of their types are in
// chunk_facts_test.c, lengths that tiers do not cover, and the first of several, in plan_random_test.c. Refused calls put out 0 and write nothing into their buffer. Faults, texts and
// their order are those of the list PTOWSP_PLAN_FAULTS in the header, copied here by hand; numbers are
// worked out on paper.

#include "plan_reference.h"

// -- every fault, and pairs of them ---------------------------------------------------------------

// All that a call needs, in one place, so that a mistake can be made in any of it.
typedef struct request {
    int32_t lengths[5];
    ptowsp_tier tier;
    ptowsp_batch batch;
    ptowsp_plan_config config;
    ptowsp_plan_limits limits;
    plan_call call;
} request;

// A request without a fault for any function: five units, no length above 2^31 - 2.
static void request_init(request *r, ptowsp_work *work) {
    const request good = {
        .lengths = {1, 1, 1, 1, 1},
        .tier = {7, 1, INT32_MAX - 1},
        .batch = {r->lengths, 5, 1},
        .config = {.chunk_min = 1, .chunk_max = 1, .tiers = &r->tier, .tier_count = 1},
        .limits = {4, 1, INT32_MAX - 1, 0}};
    *r = good;
    r->call = plan_call_of(&r->batch, &r->config, work, 8);
    r->call.limits = &r->limits;
}

// What a mistake changes. Two mistakes that change the same cannot be made together.
enum {
    IN_OUT = 1,
    IN_CHUNKS = 2,
    IN_RANGE_OF_CHUNKS = 4,
    IN_ALIGN = 8,
    IN_TIERS = 16,
    IN_CHUNK = 32,
    IN_HEADS = 64,
    IN_LENGTH_0 = 128,
    IN_LENGTH_1 = 256,
    IN_LENGTH_2 = 512,
    IN_LENGTHS = IN_LENGTH_0 | IN_LENGTH_1 | IN_LENGTH_2,
    IN_LENGTH_MAX = 1024,
    IN_RANGE = 2048,
    IN_IDS = 4096,
    IN_WORK = 8192,
    IN_CAPACITY = 16384
};

// In the order of the header's list: the fault, the functions that have to find it, what the mistake
// changes, what is reported when nothing else is wrong, and the mistake. The total is 3 (2^31 - 2) (2^32 - 1),
// and that of the bound 4 (2^31 - 2) (2^32 - 1).
#define MISTAKES(MISTAKE)                                                                          \
    MISTAKE(OUT_NULL, CHUNK_SIZE | WORK_BOUND, IN_OUT, NONE, 0, 0, "the output pointer is NULL",   \
            (r->call.is_out_null = true))                                                          \
    MISTAKE(CHUNKS_UNKNOWN, TAKE_CONFIG, IN_CHUNKS, NONE, 2, 0,                                    \
            "config.chunks has the unknown value 2", (r->config.chunks = (ptowsp_chunks)2))        \
    MISTAKE(CHUNK_ORDER, TAKE_CONFIG, IN_RANGE_OF_CHUNKS, NONE, 9, 8,                              \
            "chunk_min 9 is greater than chunk_max 8",                                             \
            (r->config.chunk_min = 9, r->config.chunk_max = 8))                                    \
    MISTAKE(TIERS_NULL, TAKE_CONFIG, IN_TIERS, NONE, 3, 0, "tiers is NULL with tier_count 3",      \
            (r->config.tiers = NULL, r->config.tier_count = 3))                                    \
    MISTAKE(TIERS_EMPTY, TAKE_CONFIG, IN_TIERS, NONE, 0, 0, "tiers is given with tier_count 0",    \
            (r->config.tier_count = 0))                                                            \
    MISTAKE(TIER_ORDER, TAKE_CONFIG, IN_TIERS, 0, 5, 4,                                            \
            "tier at 0 has length_min 5 above its length_max 4",                                   \
            (r->tier.length_min = 5, r->tier.length_max = 4))                                      \
    MISTAKE(CHUNK_ALIGN, CHUNK_SIZE | WORK_BOUND, IN_ALIGN, NONE, 2, 1,                            \
            "no multiple of align 2 is in chunk_min to chunk_max 1", (r->config.align = 2))        \
    MISTAKE(CHUNK_INVALID, TAKE_CHUNK, IN_CHUNK, NONE, 0, 1,                                       \
            "chunk 0 is not a positive multiple of align 1", (r->call.chunk = 0))                  \
    MISTAKE(BATCH_NULL, TAKE_BATCH, IN_HEADS | IN_LENGTHS, NONE, 0, 0, "batch is NULL",            \
            (r->call.batch = NULL))                                                                \
    MISTAKE(LIMITS_NULL, WORK_BOUND, IN_HEADS | IN_LENGTH_MAX, NONE, 0, 0, "limits is NULL",       \
            (r->call.limits = NULL))                                                               \
    MISTAKE(LENGTHS_NULL, TAKE_BATCH, IN_LENGTHS, NONE, 5, 0,                                      \
            "lengths is NULL with sequence_count 5", (r->batch.lengths = NULL))                    \
    MISTAKE(HEADS_ZERO, TAKE_CONFIG, IN_HEADS, NONE, 0, 0, "kv_head_count is 0",                   \
            (r->batch.kv_head_count = r->limits.kv_head_count = 0))                                \
    MISTAKE(LIMITS_LENGTH, WORK_BOUND, IN_LENGTH_MAX, NONE, -1, 0,                                 \
            "a largest length in limits is -1", (r->limits.length_max = -1))                       \
    MISTAKE(RANGE, GENERATE_RANGE, IN_RANGE, 0, 6, 5,                                              \
            "sequences from 0, 6 of them, lie outside the batch of 5", (r->call.count = 6))        \
    MISTAKE(LENGTH_NEGATIVE, TAKE_BATCH, IN_LENGTH_0, 0, -8, 0,                                    \
            "sequence 0 has the negative length -8", (r->lengths[0] = -8))                         \
    MISTAKE(LENGTH_UNCOVERED, TAKE_BATCH, IN_LENGTH_1, 1, INT32_MAX, 0,                            \
            "sequence 1 has length 2147483647, which no tier covers", (r->lengths[1] = INT32_MAX)) \
    MISTAKE(TOTAL_OVERFLOW, TAKE_CHUNK | WORK_BOUND, IN_HEADS | IN_LENGTH_2, NONE, 0, 0,           \
            "the number of work units exceeds 63 bits",                                            \
            (r->batch.kv_head_count = r->limits.kv_head_count = UINT32_MAX,                        \
             r->lengths[2] = r->lengths[3] = r->lengths[4] = INT32_MAX - 1))                       \
    MISTAKE(IDS_EXHAUSTED, GENERATE_RANGE, IN_IDS, NONE, 4294967297, 4294967296,                   \
            "4294967297 work units exceed the 4294967296 work ids",                                \
            (r->call.first_work_id = (UINT64_C(1) << 32) - 4))                                     \
    MISTAKE(WORK_NULL, WRITERS, IN_WORK, NONE, 8, 0, "work is NULL with capacity 8",               \
            (r->call.work = NULL))                                                                 \
    MISTAKE(BUFFER_SMALL, WRITERS, IN_CAPACITY, NONE, 5, 4,                                        \
            "5 work units do not fit the buffer, which holds 4", (r->call.capacity = 4))

typedef struct mistake {
    int functions, places;
    fault_case alone;
} mistake;

static const mistake mistakes[] = {
#define MISTAKE(fault, functions, places, index, value, limit, text, change)                       \
    {functions, places, {PTOWSP_FAULT_##fault, index, value, limit, text}},
    MISTAKES(MISTAKE)
#undef MISTAKE
};
enum { MISTAKE_COUNT = COUNT_OF(mistakes) };

// Makes the mistake in a request.
static void request_spoil(request *r, ptowsp_plan_fault fault) {
    switch ((int)fault) {
#define MISTAKE(fault, functions, places, index, value, limit, text, change)                       \
    case PTOWSP_FAULT_##fault: change; break;
        MISTAKES(MISTAKE)
#undef MISTAKE
    default: fail();
    }
}

TEST(plan__the_request_to_be_spoiled_is_good) {
    for (int function = 1; function < FUNCTION_END; function *= 2) {
        guarded buffer = guarded_make(8, 0);
        request r;
        request_init(&r, buffer.work);
        ptowsp_context *context = serial_context();
        ptowsp_plan_info info = info_with_rubbish();
        assert_ok(plan_call_run(&r.call, function, context, &info));
        assert_true(info.work_count == (function & TAKE_CHUNK ? 5 : 0));
        assert_true(info.index == NONE && info.value == 0 && info.limit == 0);
        char text[64];
        ptowsp_plan_explain(&info, TEST_TEXT(text));
        assert_string_equal(text, "plan: no fault");
        guarded_free(&buffer);
        ptowsp_context_destroy(context);
    }
}

TEST(plan__every_function_finds_its_faults_and_no_others) {
    // The table is complete; what follows in the header is of section 9.
    assert_int_equal(PTOWSP_FAULT_BUFFER_SMALL, MISTAKE_COUNT);
    for (int i = 0; i < MISTAKE_COUNT; i++) {
        assert_int_equal(mistakes[i].alone.fault, i + 1);  // and in the header's order
        guarded buffer = guarded_make(8, 0);
        request r;
        request_init(&r, buffer.work);
        request_spoil(&r, mistakes[i].alone.fault);
        refuse(&r.call, mistakes[i].functions, &mistakes[i].alone);
        guarded_assert_untouched(&buffer);
        guarded_free(&buffer);
    }
}

// A function that has nothing to do with a mistake does not mind it.
TEST(plan__ignores_what_it_does_not_take) {
    request r;
    guarded buffer = guarded_make(8, 0);
    const struct {
        ptowsp_plan_fault fault;
        int functions;
    } cases[] = {{PTOWSP_FAULT_BATCH_NULL, WORK_BOUND},
                 {PTOWSP_FAULT_LENGTHS_NULL, WORK_BOUND},
                 {PTOWSP_FAULT_LENGTH_NEGATIVE, WORK_BOUND},
                 {PTOWSP_FAULT_LENGTH_UNCOVERED, WORK_BOUND},
                 {PTOWSP_FAULT_CHUNK_INVALID, WORK_BOUND | CHUNK_SIZE},
                 {PTOWSP_FAULT_LIMITS_NULL, TAKE_BATCH},
                 {PTOWSP_FAULT_TOTAL_OVERFLOW, CHUNK_SIZE},  // nothing fits: the largest chunk
                 {PTOWSP_FAULT_WORK_NULL, TOTAL_WORK}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        request_init(&r, buffer.work);
        request_spoil(&r, cases[i].fault);
        ptowsp_context *context = serial_context();
        for (int function = 1; function < FUNCTION_END; function *= 2) {
            if ((cases[i].functions & function) != 0) {
                assert_ok(plan_call_run(&r.call, function, context, NULL));
            }
        }
        ptowsp_context_destroy(context);
    }
    guarded_free(&buffer);
}

// The order of the list is the order of the checks: of two mistakes in one call the earlier is
// reported. All pairs that one call can have are tried, so neighbours are among them.
TEST(plan__the_earlier_of_two_faults_is_reported) {
    int pair_count = 0;
    for (int i = 0; i < MISTAKE_COUNT; i++) {
        for (int j = i + 1; j < MISTAKE_COUNT; j++) {
            int functions = mistakes[i].functions & mistakes[j].functions;
            if (functions == 0 || (mistakes[i].places & mistakes[j].places) != 0) {
                continue;
            }
            guarded buffer = guarded_make(8, 0);
            request r;
            request_init(&r, buffer.work);
            request_spoil(&r, mistakes[j].alone.fault);
            request_spoil(&r, mistakes[i].alone.fault);
            fault_case expected = mistakes[i].alone;
            if (expected.fault == PTOWSP_FAULT_WORK_NULL) {
                expected.value = (int64_t)r.call.capacity;
                expected.text = NULL;
            }
            refuse(&r.call, functions, &expected);
            guarded_assert_untouched(&buffer);
            guarded_free(&buffer);
            pair_count++;
        }
    }
    assert_true(pair_count > 100);
}
