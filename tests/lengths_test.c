// The examples' lengths: the generator against the statistics of its distribution, the trace
// readers against small traces written here. What they refuse is tested through the example, by
// decode_batch_test.sh, and by the fuzzer.

#include "test.h"

#include "../examples/common/lengths.c"

#define AZURE_HEADER "TIMESTAMP,ContextTokens,GeneratedTokens\n"

static trace parse(const char *text) {
    char error[200] = "";
    trace result;
    if (!trace_parse("test", text, strlen(text), &result, error, sizeof error)) {
        fail_msg("%s", error);
    }
    return result;
}

static int compare_lengths(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

// Quantiles of lognormal(6.9, 1.3): e^6.9 = 992, e^(6.9 + 1.2816 * 1.3) = 5,250 and
// e^(6.9 + 2.3263 * 1.3) = 20,420.
static void lengths__have_the_quantiles_of_the_lognormal(void **unused) {
    (void)unused;
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

static void lengths__depend_on_the_seed_alone(void **unused) {
    (void)unused;
    int32_t a[100], b[100], other[100];
    lengths_generate(5, 100, a);
    lengths_generate(5, 100, b);
    lengths_generate(6, 100, other);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, other, sizeof a);
}

static void trace__reads_azure_lines_with_or_without_a_last_newline(void **unused) {
    (void)unused;
    trace t = parse(AZURE_HEADER "2023-11-16 18:15:46.6805900,374,44\r\n"
                                 "2023-11-16 18:15:50.9951690,396,109\n"
                                 "2023-11-17 00:00:00,879,55");
    assert_int_equal(t.count, 3);
    assert_string_equal(t.format, "Azure CSV");
    assert_int_equal(t.requests[0].input_tokens, 374);
    assert_int_equal(t.requests[1].output_tokens, 109);
    assert_true(t.requests[0].arrival_seconds == 0.0);
    assert_true(fabs(t.requests[1].arrival_seconds - 4.314579) < 1e-6);
    assert_true(fabs(t.requests[2].arrival_seconds - (5 * 3600 + 44 * 60 + 13.31941)) < 1e-5);
    trace_free(&t);
}

// 2024 was a leap year, 2100 will not be one.
static void trace__knows_the_calendar(void **unused) {
    (void)unused;
    trace t = parse(AZURE_HEADER "2024-02-28 00:00:00,1,1\n2024-03-01 00:00:00,1,1\n");
    assert_true(t.requests[1].arrival_seconds == 2 * 86400.0);
    trace_free(&t);
    t = parse(AZURE_HEADER "2100-02-28 00:00:00,1,1\n2100-03-01 00:00:00,1,1\n");
    assert_true(t.requests[1].arrival_seconds == 86400.0);
    trace_free(&t);
}

static void trace__reads_mooncake_members_in_any_order(void **unused) {
    (void)unused;
    trace t =
        parse("{\"timestamp\": 500, \"input_length\": 6758, \"output_length\": 500, "
              "\"hash_ids\": [0, 1, 2]}\n"
              "{\"hash_ids\":[],\"output_length\":9,\"input_length\":130,\"timestamp\":2500}\n");
    assert_int_equal(t.count, 2);
    assert_string_equal(t.format, "Mooncake JSONL");
    assert_int_equal(t.requests[0].input_tokens, 6758);
    assert_int_equal(t.requests[1].output_tokens, 9);
    assert_true(t.requests[1].arrival_seconds == 2.0);
    trace_free(&t);
}

// At one token every 0.5 s: A (10 tokens in, 4 out) lives for [0, 2), B (20 in, 2 out) for [1, 2),
// and C (30 in, 0 out) never.
static void trace__live_requests_have_their_input_and_the_tokens_so_far(void **unused) {
    (void)unused;
    trace t = parse("{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 4}\n"
                    "{\"timestamp\": 1000, \"input_length\": 20, \"output_length\": 2}\n"
                    "{\"timestamp\": 1000, \"input_length\": 30, \"output_length\": 0}\n");
    int32_t lengths[3] = {0, 0, 0};
    assert_int_equal(trace_first(&t, 2, lengths), 2);
    assert_int_equal(lengths[1], 20);
    assert_int_equal(trace_live(&t, 0.0, 0.5, 3, lengths), 1);
    assert_int_equal(lengths[0], 10);
    assert_int_equal(trace_live(&t, 1.75, 0.5, 3, lengths), 2);
    assert_int_equal(lengths[0], 13);
    assert_int_equal(lengths[1], 21);
    assert_int_equal(trace_live(&t, 1.75, 0.5, 1, lengths), 1);
    assert_int_equal(trace_live(&t, 2.0, 0.5, 3, lengths), 0);
    trace_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths__have_the_quantiles_of_the_lognormal),
        cmocka_unit_test(lengths__depend_on_the_seed_alone),
        cmocka_unit_test(trace__reads_azure_lines_with_or_without_a_last_newline),
        cmocka_unit_test(trace__knows_the_calendar),
        cmocka_unit_test(trace__reads_mooncake_members_in_any_order),
        cmocka_unit_test(trace__live_requests_have_their_input_and_the_tokens_so_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
