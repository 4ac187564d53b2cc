// Rails: decisions step by step on paper, defaults and limits, rules that hold whatever is called.

#include "test.h"

typedef enum call { SAMPLE, TICK, PROPOSE, FAIL } call;

// A call, and the decision that it must bring; `window` is what was judged or became the reference.
typedef struct step {
    call call;
    uint64_t time, arg;
    ptowsp_rails_action action;
    ptowsp_rails_reason reason;
    uint32_t to;
    uint64_t window, reference, limit, until;
} step;

static ptowsp_status rails_call(ptowsp_rails *rails, const step *s, ptowsp_rails_decision *d) {
    switch (s->call) {
    case SAMPLE: return ptowsp_rails_sample(rails, s->time, s->arg, d);
    case TICK: return ptowsp_rails_tick(rails, s->time, d);
    case PROPOSE: return ptowsp_rails_propose(rails, s->time, (uint32_t)s->arg, d);
    case FAIL: break;
    }
    return ptowsp_rails_fail(rails, s->time, d);
}

static void rails_play(ptowsp_rails *rails, const step *steps, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const step *s = &steps[i];
        uint32_t from = rails->current;
        ptowsp_rails_decision d;
        assert_ok(rails_call(rails, s, &d));
        if (d.action != s->action || d.reason != s->reason || d.to != s->to ||
            d.window != s->window || d.reference != s->reference || d.limit != s->limit ||
            d.until != s->until) {
            char data[256];
            ptowsp_output_buffer buffer = {data, sizeof data, 0};
            ptowsp_rails_print(&d, NULL, ptowsp_output_to_buffer(&buffer));
            fail_msg("step %u decides %s", (unsigned)i, data);
        }
        assert_int_equal(d.from, from);
        assert_true(d.time == s->time);
        assert_int_equal(rails->current, d.action == PTOWSP_RAILS_REFUSE ? from : d.to);
    }
}

#define KEEP      PTOWSP_RAILS_KEEP
#define TRY       PTOWSP_RAILS_TRY
#define PROMOTE   PTOWSP_RAILS_PROMOTE
#define ROLL_BACK PTOWSP_RAILS_ROLL_BACK
#define REFUSE    PTOWSP_RAILS_REFUSE
#define R(name)   PTOWSP_REASON_##name

TEST(rails__follows_proposals_step_by_step) {
    ptowsp_rails rails;
    ptowsp_rails_desc desc = {0};
    desc.variant_count = 3, desc.window_count = 3, desc.skip_count = 1;
    desc.regression_permille = 50, desc.gain_permille = 20;
    desc.dwell_time = 100, desc.cooldown_time = 500, desc.trial_time_max = 300;
    static const step steps[] = {
        {PROPOSE, 5, 1, REFUSE, R(NO_REFERENCE), 1, 0, 0, 0, 0},
        {SAMPLE, 10, 102, KEEP, R(NONE), 0, 0, 0, 0, 0},
        {SAMPLE, 20, 100, KEEP, R(NONE), 0, 0, 0, 0, 0},
        {SAMPLE, 30, 98, KEEP, R(NONE), 0, 100, 0, 0, 0},  // the first window: 98 100 102
        {PROPOSE, 31, 0, REFUSE, R(SAME), 0, 0, 0, 0, 0},
        {PROPOSE, 40, 1, TRY, R(PROPOSED), 1, 0, 100, 0, 0},
        {PROPOSE, 45, 2, REFUSE, R(ON_TRIAL), 2, 0, 0, 0, 0},
        {SAMPLE, 50, 999, KEEP, R(NONE), 1, 0, 0, 0, 0},  // left out
        {SAMPLE, 60, 105, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {SAMPLE, 70, 105, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {SAMPLE, 80, 106, KEEP, R(NONE), 1, 105, 100, 105, 0},  // at the limit
        {SAMPLE, 90, 106, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {SAMPLE, 100, 107, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {SAMPLE, 110, 104, ROLL_BACK, R(REGRESSION), 0, 106, 100, 105, 610},
        {PROPOSE, 120, 1, REFUSE, R(COOLING), 1, 0, 0, 0, 610},
        {PROPOSE, 120, 2, REFUSE, R(DWELLING), 2, 0, 0, 0, 210},
        {PROPOSE, 209, 2, REFUSE, R(DWELLING), 2, 0, 0, 0, 210},
        {PROPOSE, 210, 2, TRY, R(PROPOSED), 2, 0, 100, 0, 0},
        {SAMPLE, 220, 1, KEEP, R(NONE), 2, 0, 0, 0, 0},  // left out
        {SAMPLE, 230, 97, KEEP, R(NONE), 2, 0, 0, 0, 0},
        {SAMPLE, 240, 99, KEEP, R(NONE), 2, 0, 0, 0, 0},
        {SAMPLE, 309, 99, KEEP, R(NONE), 2, 99, 100, 105, 0},  // too young: 99
        {SAMPLE, 309, 97, KEEP, R(NONE), 2, 0, 0, 0, 0},
        {SAMPLE, 309, 98, KEEP, R(NONE), 2, 0, 0, 0, 0},
        {SAMPLE, 310, 98, PROMOTE, R(GAIN), 2, 98, 100, 98, 0},  // 2 per cent, as asked
        {FAIL, 330, 0, KEEP, R(NO_FALLBACK), 2, 0, 0, 0, 0},
        {PROPOSE, 409, 0, REFUSE, R(DWELLING), 0, 0, 0, 0, 410},
        {PROPOSE, 410, 0, TRY, R(PROPOSED), 0, 0, 98, 0, 0},
        {TICK, 709, 0, KEEP, R(NONE), 0, 0, 0, 0, 0},
        {TICK, 710, 0, ROLL_BACK, R(TIMEOUT), 2, 0, 0, 0, 1210},
        {PROPOSE, 810, 1, TRY, R(PROPOSED), 1, 0, 98, 0, 0},  // cool since 610
        {FAIL, 820, 0, ROLL_BACK, R(FAILED), 2, 0, 0, 0, 1320},
        {PROPOSE, 1319, 1, REFUSE, R(COOLING), 1, 0, 0, 0, 1320},
        {PROPOSE, 1320, 1, TRY, R(PROPOSED), 1, 0, 98, 0, 0},
        {SAMPLE, 1330, 1, KEEP, R(NONE), 1, 0, 0, 0, 0},  // left out
        {SAMPLE, 1420, 97, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {SAMPLE, 1430, 97, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {SAMPLE, 1440, 97, ROLL_BACK, R(NO_GAIN), 2, 97, 98, 96, 1940},  // 96.04 were asked
    };
    assert_ok(ptowsp_rails_init(&desc, 0, &rails));
    rails_play(&rails, steps, sizeof steps / sizeof steps[0]);
    // What is wrong changes nothing.
    ptowsp_rails before = rails;
    ptowsp_rails_decision d;
    assert_invalid(ptowsp_rails_sample(&rails, 1439, 5, &d));
    assert_invalid(ptowsp_rails_sample(&rails, 1450, 0, &d));
    assert_invalid(ptowsp_rails_sample(&rails, 1450, PTOWSP_RAILS_VALUE_MAX + 1, &d));
    assert_invalid(ptowsp_rails_sample(&rails, 1450, 5, NULL));
    assert_invalid(ptowsp_rails_sample(NULL, 1450, 5, &d));
    assert_invalid(ptowsp_rails_tick(&rails, 1439, &d));
    assert_invalid(ptowsp_rails_propose(&rails, 1450, 3, &d));
    assert_invalid(ptowsp_rails_propose(NULL, 1450, 0, &d));
    assert_invalid(ptowsp_rails_fail(&rails, 1439, &d));
    assert_memory_equal(&rails, &before, sizeof rails);
}

TEST(rails__explores_variants_in_turn) {
    ptowsp_rails rails;
    ptowsp_rails_desc desc = {0};
    desc.variant_count = 3, desc.baseline = 1, desc.window_count = 1;
    desc.explore_time = 100, desc.dwell_time = 10, desc.cooldown_time = 1000;
    static const step steps[] = {
        {TICK, 40, 0, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {SAMPLE, 50, 200, KEEP, R(NONE), 1, 200, 0, 0, 0},
        {TICK, 99, 0, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {TICK, 100, 0, TRY, R(EXPLORING), 2, 0, 200, 0, 0},
        {SAMPLE, 110, 190, PROMOTE, R(GAIN), 2, 190, 200, 200, 0},
        {SAMPLE, 209, 190, KEEP, R(NONE), 2, 190, 190, 0, 0},
        {SAMPLE, 210, 180, TRY, R(EXPLORING), 0, 180, 180, 0, 0},
        {SAMPLE, 215, 189, KEEP, R(NONE), 0, 189, 180, 189, 0},
        {SAMPLE, 220, 181, ROLL_BACK, R(NO_GAIN), 2, 181, 180, 180, 1220},
        {TICK, 320, 0, TRY, R(EXPLORING), 1, 0, 180, 0, 0},
        {SAMPLE, 330, 180, PROMOTE, R(GAIN), 1, 180, 180, 180, 0},  // no worse
        {TICK, 430, 0, TRY, R(EXPLORING), 2, 0, 180, 0, 0},
        {SAMPLE, 435, 190, ROLL_BACK, R(REGRESSION), 1, 190, 180, 189, 1435},  // at once
        {TICK, 535, 0, KEEP, R(NONE), 1, 0, 0, 0, 0},  // 0 and 2 are cooling
        {TICK, 1219, 0, KEEP, R(NONE), 1, 0, 0, 0, 0},
        {TICK, 1220, 0, TRY, R(EXPLORING), 0, 0, 180, 0, 0},
    };
    assert_ok(ptowsp_rails_init(&desc, 0, &rails));
    rails_play(&rails, steps, sizeof steps / sizeof steps[0]);
}

TEST(rails__has_defaults_and_limits) {
    ptowsp_rails_desc bad;
    ptowsp_rails rails;
    ptowsp_rails_decision d;
    ptowsp_rails_desc desc = {0};
    desc.variant_count = PTOWSP_RAILS_VARIANT_MAX, desc.baseline = 31;
    desc.regression_permille = 10000, desc.gain_permille = 1000;
    desc.window_count = PTOWSP_RAILS_WINDOW_MAX;
    assert_ok(ptowsp_rails_init(&desc, 7, &rails));
    bad = desc, bad.variant_count = 33;
    assert_invalid(ptowsp_rails_init(&bad, 0, &rails));
    bad.variant_count = 0;
    assert_invalid(ptowsp_rails_init(&bad, 0, &rails));
    bad = desc, bad.baseline = 32;
    assert_invalid(ptowsp_rails_init(&bad, 0, &rails));
    bad = desc, bad.window_count = 64;
    assert_invalid(ptowsp_rails_init(&bad, 0, &rails));
    bad = desc, bad.regression_permille = 10001;
    assert_invalid(ptowsp_rails_init(&bad, 0, &rails));
    bad = desc, bad.gain_permille = 1001;
    assert_invalid(ptowsp_rails_init(&bad, 0, &rails));
    bad = desc, bad.dwell_time = 9, bad.trial_time_max = 8;
    assert_invalid(ptowsp_rails_init(&bad, 0, &rails));
    assert_invalid(ptowsp_rails_init(NULL, 0, &rails));
    assert_invalid(ptowsp_rails_init(&desc, 0, NULL));
    // The greatest values: 2^50 and 11 times as much as a limit.
    desc.window_count = 1, desc.cooldown_time = UINT64_MAX;
    assert_ok(ptowsp_rails_init(&desc, 7, &rails));
    assert_ok(ptowsp_rails_sample(&rails, 7, PTOWSP_RAILS_VALUE_MAX, &d));
    assert_ok(ptowsp_rails_propose(&rails, 8, 30, &d));
    assert_ok(ptowsp_rails_sample(&rails, 9, PTOWSP_RAILS_VALUE_MAX, &d));
    assert_int_equal(d.reason, PTOWSP_REASON_NO_GAIN);  // all of it is asked
    assert_true(d.until == UINT64_MAX && d.limit == 0);
    memset(&desc, 0, sizeof desc);
    desc.variant_count = 2;
    assert_ok(ptowsp_rails_init(&desc, 0, &rails));
    assert_int_equal(rails.desc.window_count, 9);
    assert_int_equal(rails.desc.regression_permille, 50);
}

// Random calls: variants that are cooling are not tried, dwelling is kept to, a trial ends in one of
// its ways, and a copy decides as the original.
TEST(rails__keeps_its_rules_whatever_is_called) {
    uint64_t random = test_seed(), tries = 0, promotions = 0;
    for (int round = 0; TEST_ROUNDS(round, 200); round++) {
        ptowsp_rails rails, copy;
        uint64_t cool[8] = {0}, changed = 0, time = 0;
        ptowsp_rails_desc desc = {.variant_count = (uint32_t)test_random_in(&random, 1, 8)};
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
            step s = {.call = kind < 15 ? SAMPLE : kind < 17 ? TICK : kind < 19 ? PROPOSE : FAIL};
            s.time = time += test_random(&random) % 5;
            s.arg = s.call == PROPOSE ? test_random(&random) % desc.variant_count
                                      : 100 + test_random(&random) % 12;
            bool was_trial = rails.current != rails.safe;
            uint32_t safe = rails.safe;
            copy = rails;
            assert_ok(rails_call(&rails, &s, &d));
            assert_ok(rails_call(&copy, &s, &again));
            assert_memory_equal(&d, &again, sizeof d);
            assert_memory_equal(&rails, &copy, sizeof rails);
            switch (d.action) {
            case TRY:
                assert_true(!was_trial && d.to != safe && rails.safe == safe);
                assert_true(time >= cool[d.to]);
                assert_true(tries == 0 || changed == 0 || time - changed >= desc.dwell_time);
                tries++;
                break;
            case PROMOTE:
                assert_true(was_trial && rails.safe == rails.current);
                assert_true(time - changed >= desc.dwell_time);
                promotions++;
                break;
            case ROLL_BACK:
                assert_true(was_trial && d.to == safe);
                cool[d.from] = time + desc.cooldown_time;
                break;
            case KEEP:
            case REFUSE:
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
        {ROLL_BACK, R(REGRESSION), 2, 0, 4200, 131, 100, 105, 9200},
        {KEEP, R(NONE), 1, 1, 7, 0, 0, 0, 0},
        {REFUSE, R(COOLING), 1, 2, 8, 0, 0, 0, 90},
        {TRY, R(EXPLORING), 0, 1, 9, 0, 100, 0, 0}};
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
