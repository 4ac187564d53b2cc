// Rails: decisions step by step on paper, defaults and limits as facts (support/facts.h); rules that hold whatever
// is called.

#include "facts.h"

typedef enum call { SAMPLE, TICK, PROPOSE, FAIL } call;

// `arg`: the value of a sample, or the variant that is proposed.
static ptowsp_status rails_call(ptowsp_rails *rails, call what, uint64_t time, uint64_t arg,
                                ptowsp_rails_decision *d) {
    return what == SAMPLE    ? ptowsp_rails_sample(rails, time, arg, d)
           : what == TICK    ? ptowsp_rails_tick(rails, time, d)
           : what == PROPOSE ? ptowsp_rails_propose(rails, time, (uint32_t)arg, d)
                             : ptowsp_rails_fail(rails, time, d);
}

// -- facts ----------------------------------------------------------------------------------------

static ptowsp_rails_desc desc;
static ptowsp_rails rails;

static void begin(void) {
    memset(&desc, 0, sizeof desc);
}

// TIME
static ptowsp_status call_init(void) {
    char *end;
    const uint64_t time = strtoull(facts_words, &end, 10);
    assert_true(end != facts_words && *end == '\0');
    return ptowsp_rails_init(&desc, time, &rails);
}

// CALL TIME [ARG]: DECISION; refused, it changes nothing.
static ptowsp_status call_rails(void) {
    static const char *const names[] = {"sample", "tick", "propose", "fail"};
    const ptowsp_rails before = rails;
    unsigned long long time = 0, arg = 0;
    char name[20] = "", text[300];
    int length = 0;
    call what = SAMPLE;
    sscanf(facts_words, "%19s %llu%n %llu%n", name, &time, &length, &arg, &length);
    while (what <= FAIL && strcmp(names[what], name) != 0) {
        what++;
    }
    if (what > FAIL || strncmp(facts_words + length, ": ", 2) != 0) {
        fail_msg("%s is no call", facts_words);
    }
    ptowsp_rails_decision d;
    const ptowsp_status status = rails_call(&rails, what, time, arg, &d);
    if (status != PTOWSP_OK) {
        assert_memory_equal(&rails, &before, sizeof rails);
        assert_string_equal(facts_words + length, ": -");
        return status;
    }
    ptowsp_rails_print(&d, NULL, TEST_TEXT(text));
    text[strcspn(text, "\n")] = '\0';
    assert_string_equal(strchr(text, ' ') + 1, facts_words + length + 2);
    assert_true(d.time == time && d.from == before.current);
    assert_int_equal(rails.current, d.action == PTOWSP_RAILS_REFUSE ? d.from : d.to);
    return status;
}

static const char *error(uint64_t *out_index) {
    *out_index = PTOWSP_NO_INDEX;
    return "the call";  // there is no text
}

static const facts_field *fields(void) {
    FACTS_RETURN(FIELD(desc.variant_count), FIELD(desc.baseline), FIELD(desc.window_count),
                 FIELD(desc.skip_count), FIELD(desc.regression_permille), FIELD(desc.gain_permille),
                 FIELD(desc.dwell_time), FIELD(desc.cooldown_time), FIELD(desc.trial_time_max),
                 FIELD(desc.explore_time), FIELD(rails.desc.window_count),
                 FIELD(rails.desc.regression_permille));
}

TEST(rails__facts_hold) {
    static const facts_call calls[] = {{"init ", call_init}, {"", call_rails}, {NULL, NULL}};
    facts all = {"tests/tune/rails.facts", begin, fields, calls, error, NULL, 0};
    facts_run(&all);
}

TEST(rails__refuses_what_is_missing) {
    ptowsp_rails_decision d;
    desc = (ptowsp_rails_desc){.variant_count = 2};
    assert_invalid(ptowsp_rails_init(NULL, 0, &rails));
    assert_invalid(ptowsp_rails_init(&desc, 0, NULL));
    assert_ok(ptowsp_rails_init(&desc, 0, &rails));
    assert_invalid(ptowsp_rails_sample(&rails, 1450, 5, NULL));
    assert_invalid(ptowsp_rails_sample(NULL, 1450, 5, &d));
    assert_invalid(ptowsp_rails_propose(NULL, 1450, 0, &d));
}

// Random calls: variants that are cooling are not tried, dwelling is kept to, a trial ends in one of
// its ways, and a copy decides as the original.
TEST(rails__keeps_its_rules_whatever_is_called) {
    uint64_t random = test_seed(), tries = 0, promotions = 0;
    for (int round = 0; TEST_ROUNDS(round, 200); round++) {
        ptowsp_rails copy;
        uint64_t cool[8] = {0}, changed = 0, time = 0;
        desc = (ptowsp_rails_desc){.variant_count = (uint32_t)test_random_in(&random, 1, 8)};
        desc.baseline = (uint32_t)(test_random(&random) % desc.variant_count);
        desc.window_count = (uint32_t)test_random_in(&random, 1, 4);
        desc.skip_count = (uint32_t)test_random_in(&random, 0, 2);
        desc.dwell_time = test_random(&random) % 30;
        desc.cooldown_time = test_random(&random) % 200;
        desc.trial_time_max = test_random(&random) % 2 ? desc.dwell_time + 20 : 0;
        desc.explore_time = test_random(&random) % 2 ? 50 : 0;
        assert_ok(ptowsp_rails_init(&desc, 0, &rails));
        for (int i = 0; i < 400; i++) {
            uint64_t kind = test_random(&random) % 20;
            ptowsp_rails_decision d, again;
            const call what = kind < 15 ? SAMPLE : kind < 17 ? TICK : kind < 19 ? PROPOSE : FAIL;
            time += test_random(&random) % 5;
            const uint64_t arg = what == PROPOSE ? test_random(&random) % desc.variant_count
                                                 : 100 + test_random(&random) % 12;
            bool was_trial = rails.current != rails.safe;
            uint32_t safe = rails.safe;
            copy = rails;
            assert_ok(rails_call(&rails, what, time, arg, &d));
            assert_ok(rails_call(&copy, what, time, arg, &again));
            assert_memory_equal(&d, &again, sizeof d);
            assert_memory_equal(&rails, &copy, sizeof rails);
            switch (d.action) {
            case PTOWSP_RAILS_TRY:
                assert_true(!was_trial && d.to != safe && rails.safe == safe);
                assert_true(time >= cool[d.to]);
                assert_true(tries == 0 || changed == 0 || time - changed >= desc.dwell_time);
                tries++;
                break;
            case PTOWSP_RAILS_PROMOTE:
                assert_true(was_trial && rails.safe == rails.current);
                assert_true(time - changed >= desc.dwell_time);
                promotions++;
                break;
            case PTOWSP_RAILS_ROLL_BACK:
                assert_true(was_trial && d.to == safe);
                cool[d.from] = time + desc.cooldown_time;
                break;
            case PTOWSP_RAILS_KEEP:
            case PTOWSP_RAILS_REFUSE:
            default: assert_int_equal(rails.current != rails.safe, was_trial); continue;
            }
            changed = time;
        }
    }
    assert_met(tries > 100 && promotions > 20);
}

TEST(rails__prints_decisions) {
    static const char *const names[] = {"flash", "plain", "split"};
    const ptowsp_rails_decision decisions[] = {
        {PTOWSP_RAILS_ROLL_BACK, PTOWSP_REASON_REGRESSION, 2, 0, 4200, 131, 100, 105, 9200},
        {PTOWSP_RAILS_KEEP, PTOWSP_REASON_NONE, 1, 1, 7, 0, 0, 0, 0},
        {PTOWSP_RAILS_REFUSE, PTOWSP_REASON_COOLING, 1, 2, 8, 0, 0, 0, 90},
        {PTOWSP_RAILS_TRY, PTOWSP_REASON_EXPLORING, 0, 1, 9, 0, 100, 0, 0}};
    char data[512];
    ptowsp_output_buffer buffer = {data, sizeof data, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    for (int i = 0; i < 4; i++) {
        ptowsp_rails_print(&decisions[i], i ? names : NULL, text);
    }
    assert_string_equal(data, "4200: roll back 2 -> 0: a window is worse than the limit "
                              "(window 131, reference 100, limit 105, not before 9200)\n"
                              "7: keep plain\n"
                              "8: refuse split: it was rolled back recently (not before 90)\n"
                              "9: try flash -> plain: time to explore (reference 100)\n");
    assert_string_equal(ptowsp_rails_reason_text(PTOWSP_REASON_COUNT), "unknown");
    assert_string_equal(ptowsp_rails_reason_text(PTOWSP_REASON_TIMEOUT),
                        "the trial was not decided in time");
}
