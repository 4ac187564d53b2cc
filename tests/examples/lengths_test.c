// The examples' lengths: the generator against the statistics of its distribution, and the trace
// readers by facts: small traces and what is refused.

#include "facts.h"

#include "examples/common/lengths.c"

static int compare_lengths(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

// Quantiles of lognormal(6.9, 1.3): e^6.9 = 992, e^(6.9 + 1.2816 * 1.3) = 5,250 and
// e^(6.9 + 2.3263 * 1.3) = 20,420.
TEST(lengths__have_the_quantiles_of_the_lognormal) {
    enum { COUNT = 200000 };
    int32_t *lengths = (int32_t *)malloc(COUNT * sizeof *lengths);
    lengths_generate(1, COUNT, lengths);
    qsort(lengths, COUNT, sizeof *lengths, compare_lengths);
    assert_in_range(lengths[0], 1, 50);
    assert_in_range(lengths[COUNT / 2], 970, 1015);
    assert_in_range(lengths[COUNT / 10 * 9], 5100, 5400);
    assert_in_range(lengths[COUNT / 100 * 99], 19600, 21300);
    assert_in_range(lengths[COUNT - 1], 100000, 131072);
    free(lengths);
}

TEST(lengths__depend_on_the_seed_alone) {
    int32_t a[100], b[100], other[100];
    lengths_generate(5, 100, a);
    lengths_generate(5, 100, b);
    lengths_generate(6, 100, other);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, other, sizeof a);
}

// -- traces ---------------------------------------------------------------------------------------

static trace given;
static facts_text text;
static char complaint[300];
static uint32_t batch_max, live;
static int32_t lengths[3];
static double at_seconds, token_seconds, end;

static ptowsp_status parse(void) {
    trace_free(&given);
    complaint[0] = '\0';
    if (!trace_parse("test", text.data, text.size, &given, complaint, sizeof complaint)) {
        memset(&given, 0, sizeof given);
        return PTOWSP_INVALID_PARAMS;
    }
    return PTOWSP_OK;
}

static ptowsp_status take_first(void) {
    live = trace_first(&given, batch_max, lengths);
    return PTOWSP_OK;
}

static ptowsp_status take_live(void) {
    memset(lengths, 0, sizeof lengths);
    live = trace_live(&given, at_seconds, token_seconds, batch_max, lengths);
    return PTOWSP_OK;
}

static ptowsp_status find_end(void) {
    end = trace_end(&given, token_seconds);
    return PTOWSP_OK;
}

static void begin(void) {
    memset(lengths, 0, sizeof lengths);
}

static const char *complaint_of(uint64_t *out_index) {
    *out_index = PTOWSP_NO_INDEX;
    return complaint;
}

#define REQUESTS(name, member) FACTS_OF(name, requests->member, sizeof *requests, given.count)

static const facts_field *fields(void) {
    static trace_request none;
    trace_request *requests = given.count ? given.requests : &none;
    FACTS_RETURN(FIELD(text), FACTS_OF("format", given.format, sizeof given.format, 1),
                 FACTS_OF("count", given.count, 8, 1), REQUESTS("seconds", arrival_seconds),
                 REQUESTS("input", input_tokens), REQUESTS("output", output_tokens),
                 REQUESTS("id_counts", id_count), REQUESTS("id_begins", id_begin),
                 FACTS_OF("ids", *given.ids, 8, given.id_count), FIELD(batch_max), FIELD(live),
                 FIELDS(lengths, 3), FIELD(at_seconds), FIELD(token_seconds), FIELD(end));
}

TEST(trace__facts_hold) {
    static const facts_call calls[] = {{"parse", parse},
                                       {"take_first", take_first},
                                       {"take_live", take_live},
                                       {"find_end", find_end},
                                       {NULL, NULL}};
    facts all = {"tests/examples/traces.facts", begin, fields, calls, complaint_of, NULL, 0};
    facts_run(&all);
    trace_free(&given);
}
