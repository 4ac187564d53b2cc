// Plans of section 6 as facts (support/facts.h): the rule for the chunk, pieces, counts, bounds, and what is refused.
// Descriptors that are written are also held against the slow reference; a refused call writes nothing, says the same
// without an info, and on lanes in the error of the context.

#include "facts.h"
#include "plan_reference.h"

enum { LENGTHS = 8, TIERS = 4, UNITS = 32 };

static struct { bool lengths, tiers, work, batch, config, limits; } with;
static int32_t lengths[LENGTHS];
static ptowsp_tier tiers[TIERS];
static ptowsp_batch batch;
static ptowsp_plan_config config;
static ptowsp_plan_limits limits;
static plan_call call;
static guarded buffer;
static ptowsp_plan_info info;
static uint32_t chunk;
static uint64_t bound;
static ptowsp_work before[UNITS];  // what the buffer had

static void begin(void) {
    static const ptowsp_tier any = {7, 1, INT32_MAX};
    if (buffer.block) {
        guarded_free(&buffer);
    }
    buffer = guarded_make(UNITS, 1);
    with = (__typeof__(with)){true, false, true, true, true, true};
    memset(lengths, 0, sizeof lengths);
    memcpy(lengths, (const int32_t[]){3, 0, 7, 1, 4},
           5 * sizeof *lengths);  // 15 units with chunk 1
    for (int i = 0; i < TIERS; i++) {
        tiers[i] = any;
    }
    batch = (ptowsp_batch){.sequence_count = 5, .kv_head_count = 1};
    config = (ptowsp_plan_config){.tier_count = 0};
    limits = (ptowsp_plan_limits){4, 1, INT32_MAX, 0};
    call = plan_call_of(&batch, NULL, NULL, UNITS);
    info = info_with_rubbish();
}

static ptowsp_status run(int function) {
    ptowsp_context *context = serial_context();
    batch.lengths = with.lengths ? lengths : NULL;
    config.tiers = with.tiers ? tiers : NULL;
    call.batch = with.batch ? &batch : NULL;
    call.config = with.config ? &config : NULL;
    call.limits = with.limits ? &limits : NULL;
    call.work = with.work ? buffer.work : NULL;
    memcpy(before, buffer.work, sizeof before);
    info = info_with_rubbish();
    const ptowsp_status status = plan_call_run(&call, function, context, &info);
    if (status != PTOWSP_OK) {
        char text[200];
        ptowsp_plan_explain(&info, TEST_TEXT(text));
        if (function == GENERATE_PARALLEL) {
            test_error_is(context, status, info.index, text);
        }
        guarded_assert_untouched(&buffer);
        assert_true(info.work_count ==
                    (status == PTOWSP_BUFFER_OVERFLOW ? (uint64_t)info.value : 0));
    } else {
        assert_true(info.fault == PTOWSP_FAULT_NONE && info.index == NONE);
        assert_true(info.value == 0 && info.limit == 0);
    }
    assert_int_equal(plan_call_run(&call, function, context, NULL), status);
    if (status == PTOWSP_LIMIT_EXCEEDED) {  // no buffer would do
        plan_call larger = call;
        larger.work = buffer.work;
        larger.capacity = UINT64_MAX;
        assert_int_equal(plan_call_run(&larger, function, context, NULL), status);
        guarded_assert_untouched(&buffer);
    }
    ptowsp_context_destroy(context);
    return status;
}

// And what they put out.
static ptowsp_status call_chunk(void) {
    const ptowsp_status status = run(CHUNK_SIZE);
    ptowsp_plan_chunk_size(call.batch, call.config, &chunk, NULL);
    return status;
}

static ptowsp_status call_total(void) {
    return run(TOTAL_WORK);
}

static ptowsp_status call_bound(void) {
    const ptowsp_status status = run(WORK_BOUND);
    ptowsp_plan_work_bound(call.config, call.limits, &bound, NULL);
    return status;
}

// The part of the batch that is written has the descriptors of the reference.
static ptowsp_status written(ptowsp_status status, uint32_t first, uint32_t count, uint64_t id) {
    if (status == PTOWSP_OK) {
        const ptowsp_plan_config full = reference_config(call.config);
        ptowsp_work expected[UNITS];
        uint64_t at = 0;
        for (uint32_t i = first; i < first + count; i++) {
            at += reference_sequence(&batch, &full, call.chunk, i, id + at, expected + at);
        }
        assert_true(info.work_count == at && at <= UNITS);
        assert_same_work(buffer.work, expected, at);
        assert_memory_equal(buffer.work + at, before + at, (UNITS - at) * sizeof *expected);
        guarded_assert_guards(&buffer);
    }
    return status;
}

static ptowsp_status call_generate(void) {
    return written(run(GENERATE), 0, batch.sequence_count, 0);
}

static ptowsp_status call_parallel(void) {
    return written(run(GENERATE_PARALLEL), 0, batch.sequence_count, 0);
}

static ptowsp_status call_range(void) {
    return written(run(GENERATE_RANGE), call.first, call.count, call.first_work_id);
}

static const facts_call calls[] = {{"chunk_size", call_chunk},
                                   {"total", call_total},
                                   {"generate", call_generate},
                                   {"range", call_range},
                                   {"parallel", call_parallel},
                                   {"work_bound", call_bound},
                                   {NULL, NULL}};

static const char *error(uint64_t *out_index) {
    return facts_plan_error(&info, out_index);
}

static const facts_field *fields(void) {
    static bool is_invariant;
    const size_t units = info.work_count <= UNITS ? (size_t)info.work_count : 0;
    is_invariant = ptowsp_plan_is_invariant(with.config ? &config : NULL);
#define UNIT(name, member) FACTS_OF(name, buffer.work->member, sizeof *buffer.work, units)
    FACTS_RETURN(
        FIELD(with.lengths), FIELD(with.tiers), FIELD(with.work), FIELD(with.batch),
        FIELD(with.config), FIELD(with.limits), FIELDS(lengths, LENGTHS), MEMBER(tiers, id, TIERS),
        MEMBER(tiers, length_min, TIERS), MEMBER(tiers, length_max, TIERS),
        FIELD(batch.sequence_count), FIELD(batch.kv_head_count), FIELD(config.chunk_min),
        FIELD(config.chunk_max), FIELD(config.max_work_units), FIELD(config.align),
        FIELD(config.chunks), FIELD(config.tier_count), FIELD(limits.sequence_count_max),
        FIELD(limits.kv_head_count), FIELD(limits.length_max), FIELD(limits.token_count_max),
        FIELD(call.chunk), FIELD(call.first), FIELD(call.count), FIELD(call.first_work_id),
        FIELD(call.capacity), FIELD(call.is_out_null), FIELD(info.work_count), FIELD(info.is_over),
        FIELD(chunk), FIELD(bound), FIELD(is_invariant), UNIT("id", work_id), UNIT("tier", tier),
        UNIT("flags", flags), UNIT("request", params[0]), UNIT("head", params[1]),
        UNIT("start", params[2]), UNIT("length", params[3]));
}

TEST(chunk_facts__hold) {
    facts all = {"tests/plan/chunks.facts", begin, fields, calls, error, NULL, 0};
    facts_run(&all);
    guarded_free(&buffer);
}
