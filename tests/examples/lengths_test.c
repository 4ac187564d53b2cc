// The examples' lengths: the generator against the statistics of its distribution, the trace
// readers against small traces written here. What they refuse is tested through the example, by
// decode_batch_test.sh, and by the fuzzer.

#include "test.h"

#include "examples/common/lengths.c"

#define AZURE_HEADER "TIMESTAMP,ContextTokens,GeneratedTokens\n"

static trace parse(const char *text) {
    char error[200] = "";
    trace result;
    if (!trace_parse("test", text, strlen(text), &result, error, sizeof error)) {
        fail_msg("%s", error);
    }
    return result;
}

// A request as it must be read.
typedef struct read_request {
    double seconds;
    int32_t input, output;
} read_request;

// Times of Azure's traces are differences of dates in seconds; those of the others are exact.
static trace parse_as(const char *text, const char *format, const read_request *expected,
                      size_t count) {
    const double allowed = strcmp(format, "Azure CSV") == 0 ? 1e-6 : 0;
    trace t = parse(text);
    assert_string_equal(t.format, format);
    assert_int_equal(t.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(fabs(t.requests[i].arrival_seconds - expected[i].seconds) <= allowed);
        assert_int_equal(t.requests[i].input_tokens, expected[i].input);
        assert_int_equal(t.requests[i].output_tokens, expected[i].output);
    }
    return t;
}

// Reads a text as requests of {seconds, input, output}.
#define READS(text, format, ...)                                                                   \
    parse_as(text, format, (const read_request[]){__VA_ARGS__},                                    \
             COUNT_OF(((const read_request[]){__VA_ARGS__})))

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

TEST(trace__reads_azure_lines_with_or_without_a_last_newline) {
    trace t = READS(AZURE_HEADER "2023-11-16 18:15:46.6805900,374,44\r\n"
                                 "2023-11-16 18:15:50.9951690,396,109\n"
                                 "2023-11-17 00:00:00,879,55",
                    "Azure CSV", {0, 374, 44}, {4.314579, 396, 109},
                    {5 * 3600 + 44 * 60 + 13.31941, 879, 55});
    assert_true(t.requests[0].arrival_seconds == 0.0);
    trace_free(&t);
}

// As in Azure's trace of 2024. Clocks that are ahead show the same moment as a later time.
TEST(trace__reads_azure_time_stamps_with_a_zone) {
    trace t = READS(AZURE_HEADER "2024-05-10 00:00:00.009930+00:00,2162,5\n"
                                 "2024-05-10 00:00:01.009930+00:00,2399,6\n"
                                 "2024-05-10 05:30:02.009930+05:30,76,15\n"
                                 "2024-05-09 20:00:03.009930-04:00,76,15\n"
                                 "2024-05-10 00:00:04Z,76,15\n",
                    "Azure CSV", {0, 2162, 5}, {1, 2399, 6}, {2, 76, 15}, {3, 76, 15},
                    {4 - 0.00993, 76, 15});
    trace_free(&t);
}

// 2024 was a leap year, 2100 will not be one.
TEST(trace__knows_the_calendar) {
    trace t = parse(AZURE_HEADER "2024-02-28 00:00:00,1,1\n2024-03-01 00:00:00,1,1\n");
    assert_true(t.requests[1].arrival_seconds == 2 * 86400.0);
    trace_free(&t);
    t = parse(AZURE_HEADER "2100-02-28 00:00:00,1,1\n2100-03-01 00:00:00,1,1\n");
    assert_true(t.requests[1].arrival_seconds == 86400.0);
    trace_free(&t);
}

TEST(trace__reads_mooncake_members_in_any_order) {
    trace t =
        READS("{\"timestamp\": 500, \"input_length\": 6758, \"output_length\": 500, "
              "\"hash_ids\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}\n"
              "{\"hash_ids\":[],\"output_length\":9,\"input_length\":130,\"timestamp\":2500}\n",
              "Mooncake JSONL", {0, 6758, 500}, {2, 130, 9});
    trace_free(&t);
}

// Ids are those of a line, in order, up to the first that is no whole number.
TEST(trace__keeps_the_block_ids_of_mooncake_lines) {
    trace t = parse("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, "
                    "\"hash_ids\": [7, 70e-1, 8.0]}\n"
                    "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n"
                    "{\"hash_ids\": [7, 1.5, 9], \"timestamp\": 0, \"input_length\": 1, "
                    "\"output_length\": 1}\n"
                    "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, "
                    "\"hash_ids\": [4611686018427387903, 4611686018427387904], \"x\": [3]}\n"
                    "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, "
                    "\"hash_ids\": [5, 10000000000000000000]}\n"
                    "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, "
                    "\"hash_ids\": [6, 1e19]}\n");
    static const size_t counts[] = {3, 0, 1, 1, 1, 1}, begins[] = {0, 3, 3, 4, 5, 6};
    static const int64_t ids[] = {7, 7, 8, 7, INT64_MAX / 2, 5, 6};
    assert_int_equal(t.count, 6);
    assert_int_equal(t.id_count, 7);
    assert_memory_equal(t.ids, ids, sizeof ids);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(t.requests[i].id_count, counts[i]);
        assert_int_equal(t.requests[i].id_begin, begins[i]);
    }
    trace_free(&t);
    t = parse(AZURE_HEADER "2023-11-16 18:15:46.6805900,374,44\n");
    assert_int_equal(t.requests[0].id_count, 0);
    trace_free(&t);
}

TEST(trace__reads_numbers_as_json_writes_them) {
    trace t =
        READS("{\"timestamp\": 0, \"input_length\": 1e3, \"output_length\": 1000.0}\n"
              "{\"timestamp\": 1.5E+3, \"input_length\": 12e0, \"output_length\": 700e-2, "
              "\"hash_ids\": [1e3, 7], \"y\": [-2.5, 0.25e-400, 1e999999999999], \"x\": -1.5}\n"
              "{\"timestamp\": 2e3, \"input_length\": 0.000021e6, "
              "\"output_length\": 0e99999999999999999999}\n"
              "{\"timestamp\": 92233720368547758, \"input_length\": 2.147483647e9, "
              "\"output_length\": 0.000e-7}\n",
              "Mooncake JSONL", {0, 1000, 1000}, {1.5, 12, 7}, {2, 21, 0},
              {92233720368547.758, INT32_MAX, 0});
    for (int i = 0; i < 4; i++) {
        assert_int_equal(t.requests[i].id_count, i == 1 ? 2 : 0);
    }
    assert_int_equal(t.id_count, 2);
    assert_true(t.ids[t.requests[1].id_begin] == 1000 && t.ids[1] == 7);
    trace_free(&t);
}

// Expects a trace of one line to be refused.
static void expect_refused(const char *line, const char *text) {
    char error[300] = "";
    trace result;
    assert_false(trace_parse("test", line, strlen(line), &result, error, sizeof error));
    assert_string_equal(error, text);
}

TEST(trace__refuses_numbers_that_are_not_whole_or_not_json) {
#define LINE(number) "{\"timestamp\": 0, \"output_length\": 1, \"input_length\": " number "}\n"
    expect_refused(LINE("1.5"), "test:1: input_length is not a whole number");
    expect_refused(LINE("15e-1"), "test:1: input_length is not a whole number");
    expect_refused(LINE("1e-1000000000000"), "test:1: input_length is not a whole number");
    expect_refused(LINE("2147483648"), "test:1: input_length is greater than 2147483647");
    expect_refused(LINE("2.147483648e9"), "test:1: input_length is greater than 2147483647");
    expect_refused(LINE("1e10"), "test:1: input_length is greater than 2147483647");
    expect_refused(LINE("1e1000000000000"), "test:1: input_length is greater than 2147483647");
    expect_refused(LINE("-1"), "test:1: input_length is negative");
    expect_refused(LINE("1."), "test:1: input_length is not a number");
    expect_refused(LINE(".5"), "test:1: input_length is not a number");
    expect_refused(LINE("1e"), "test:1: input_length is not a number");
    expect_refused(LINE("1e+"), "test:1: input_length is not a number");
    expect_refused(LINE("1e3x"), "test:1: the line is cut off");
#undef LINE
#define LINE(zone) AZURE_HEADER "2024-05-10 00:00:00" zone ",1,1\n"
    expect_refused(LINE("+0:00"), "test:2: TIMESTAMP has a zone that is not like +00:00");
    expect_refused(LINE("+00"), "test:2: TIMESTAMP has a zone that is not like +00:00");
    expect_refused(LINE("+00:0"), "test:2: TIMESTAMP has a zone that is not like +00:00");
    expect_refused(LINE("+24:00"), "test:2: the zone of TIMESTAMP is greater than 23");
    expect_refused(LINE("+"), "test:2: the zone of TIMESTAMP is not a number");
    expect_refused(LINE("z"), "test:2: ContextTokens is missing");
#undef LINE
}

#define BURST_HEADER "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"

// Times count from the first request. The newer form of the trace has more columns, in another order.
TEST(trace__reads_burstgpt_columns_by_name) {
    trace t = READS(BURST_HEADER "5,ChatGPT,472,18,490,Conversation log\n"
                                 "45.25,GPT-4,1087,0,1087,API log\r\n",
                    "BurstGPT CSV", {0, 472, 18}, {40.25, 1087, 0});
    assert_int_equal(t.id_count, 0);
    trace_free(&t);
    t = READS(
        "Timestamp,Session ID,Elapsed time,Model,Response tokens,\"Log, Type\",Request tokens\n"
        "1.5,,0.75,ChatGPT,7,\"a, b\",3\n"
        "1.75,-1,x,,9,,4\n",
        "BurstGPT CSV", {0, 3, 7}, {0.25, 4, 9});
    trace_free(&t);
    t = READS("GeneratedTokens,TIMESTAMP,ContextTokens\n44,2023-11-16 18:15:46.68,374\n",
              "Azure CSV", {0, 374, 44});
    trace_free(&t);
}

TEST(trace__refuses_columns_that_are_missing_doubled_or_too_many) {
#define NEITHER                                                                                    \
    "test:1: the first line is neither {...} nor a header with the columns TIMESTAMP, "            \
    "ContextTokens, GeneratedTokens or Timestamp, Request tokens, Response tokens, each once"
    expect_refused("Timestamp,Request tokens\n1,2\n", NEITHER);
    expect_refused("Timestamp,Request tokens,Response tokens,Timestamp\n1,2,3,4\n", NEITHER);
    expect_refused("Timestamp,Request tokens,\"Response tokens\n1,2,3\n", NEITHER);
    expect_refused(",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,Timestamp,Request tokens,Response tokens\n",
                   NEITHER);
#undef NEITHER
    expect_refused(BURST_HEADER "5,ChatGPT,472\n", "test:2: Response tokens is missing");
    expect_refused(BURST_HEADER "5,ChatGPT,472,18,490\n", "test:2: a column is missing");
    expect_refused(BURST_HEADER "5,ChatGPT,472,18,490,,\n",
                   "test:2: there is more than the 6 columns of the first line");
    expect_refused(BURST_HEADER "5,\"ChatGPT,472,18,490,\n", "test:2: a text in quotes is cut off");
    expect_refused(BURST_HEADER "-5,ChatGPT,1,1,2,\n", "test:2: Timestamp is negative");
    expect_refused(BURST_HEADER "soon,ChatGPT,1,1,2,\n", "test:2: Timestamp is not a number");
    expect_refused(BURST_HEADER "5s,ChatGPT,1,1,2,\n", "test:2: a column is missing");
    expect_refused(BURST_HEADER "9999999999,ChatGPT,1,1,2,\n",
                   "test:2: Timestamp is greater than 2147483647");
    expect_refused(BURST_HEADER "5,ChatGPT,1.5,1,2,\n", "test:2: Response tokens is missing");
    expect_refused(BURST_HEADER "5,ChatGPT,-1,1,2,\n", "test:2: Request tokens is negative");
}

// Blocks have 512 tokens: 1,024 are two of them, 1,025 three.
TEST(trace__refuses_block_ids_that_do_not_cover_the_input) {
#define LINE(length)                                                                               \
    "{\"timestamp\": 0, \"hash_ids\": [1, 2], \"output_length\": 1, \"input_length\": " length "}" \
    "\n"
    trace t = parse(LINE("1024"));
    assert_int_equal(t.requests[0].id_count, 2);
    trace_free(&t);
    expect_refused(LINE("1025"),
                   "test:1: hash_ids has blocks for 1024 of input_length's 1025 tokens");
    expect_refused(LINE("2147483647"),
                   "test:1: hash_ids has blocks for 1024 of input_length's 2147483647 tokens");
#undef LINE
}

// At one token every 0.5 s: A (10 tokens in, 4 out) lives for [0, 2), B (20 in, 2 out) for [1, 2),
// and C (30 in, 0 out) never.
TEST(trace__live_requests_have_their_input_and_the_tokens_so_far) {
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
    assert_true(trace_end(&t, 0.5) == 2.0);
    assert_true(trace_end(&t, 2.0) == 8.0);
    trace_free(&t);
}
