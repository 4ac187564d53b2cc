// Advice about deadlocks, applied: what the error says is done to the program, which then completes. What it
// says of credits, of streams and of events is in tests/cases/orders.case.

#include "support/fixture.h"

enum { RING_MAX = 6 };

// Processes p0, p1 ... in a ring: p(i) takes from c(i - 1), works, sends to c(i). Of two shapes: by a number
// of receives, or to the end of the stream. `needs` tokens are taken at a time by p0 before it sends as many.
typedef struct ring {
    int count, rounds, needs;
    bool is_loop[RING_MAX];
    int depths[RING_MAX], primed[RING_MAX];
} ring;

static void ring_write(const ring *r, char *text, size_t size) {
    size_t at =
        (size_t)snprintf(text, size,
                         "module m\naxis n %d\naxis one 1\naxis needs %d\n"
                         "kernel k(axes 1) vector, 5 cycles, time only\nworkload w\n  pipeline p\n",
                         r->rounds, r->needs);
    for (int i = 0; i < r->count; i++) {
        at += (size_t)snprintf(text + at, size - at, "    channel c%d depth %d latency 1\n", i,
                               r->depths[i]);
    }
    for (int i = 0; i < r->count; i++) {
        const int from = (i + r->count - 1) % r->count;
        at += (size_t)snprintf(text + at, size - at, "    process p%d consumes c%d produces c%d\n",
                               i, from, i);
        for (int k = 0; k < r->primed[i]; k++) {
            at += (size_t)snprintf(text + at, size - at, "      send c%d(7)\n", i);
        }
        if (r->is_loop[i]) {
            at += (size_t)snprintf(
                text + at, size - at,
                "      consume t from c%d\n        task k(t)\n        send c%d(t)\n", from, i);
        } else if (i == 0) {
            at += (size_t)snprintf(text + at, size - at,
                                   "      for_each j in n\n        for_each l in needs\n"
                                   "          receive t from c%d\n            task k(t)\n"
                                   "        for_each l in needs\n          send c%d(j)\n",
                                   from, i);
        } else {
            at += (size_t)snprintf(text + at, size - at,
                                   "      for_each j in n\n        for_each l in needs\n"
                                   "          receive t from c%d\n            task k(t)\n"
                                   "            send c%d(t)\n",
                                   from, i);
        }
    }
    assert_true(at < size);
}

static ptowsp_status ring_run(fixture *f, const ring *r) {
    static char text[8000];
    ring_write(r, text, sizeof text);
    fixture_clear(f);
    program_make(f, text, NULL, NULL);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_status status = ptowsp_run_execute(f->run, &options);
    if (status != PTOWSP_OK && status != PTOWSP_STUCK) {
        fail_msg("%s\n%s", ptowsp_context_error(f->context).text, text);
    }
    return status;
}

// What the advice says: which process sends how many tokens to which channel, and how deep that has to be.
static void ring_apply(const fixture *f, ring *r) {
    const char *text = ptowsp_context_error(f->context).text;
    const char *advice = strstr(text, "no token was ever sent to channel c");
    int channel = 0, process = 0, least = 0, most = 0;
    const bool is_first = advice != NULL;
    if (is_first) {
        assert_true(
            sscanf(advice,
                   "no token was ever sent to channel c%d: p%d has to send %d to %d before it "
                   "first receives",
                   &channel, &process, &least, &most) >= 3);
    } else {
        advice = strstr(text, "the tokens of channel c");
        if (!advice ||
            sscanf(advice,
                   "the tokens of channel c%d are too few: p%d has to send %d more before it "
                   "first receives",
                   &channel, &process, &least) != 3) {
            fail_msg("%s", text);
        }
    }
    assert_int_equal(channel, process);
    assert_int_equal(least, 1);
    assert_int_equal(r->primed[process] == 0, is_first);
    if (is_first) {
        assert_int_equal(most, r->depths[channel] > 1 ? r->depths[channel] : 0);
    }
    r->primed[process] += least;
    if (strstr(text, "the channel needs a depth of 1")) {
        assert_int_equal(r->depths[channel], 0);
        r->depths[channel] = 1;
    }
}

// Rings of all shapes where one process at least counts: the advice once for each token that is needed.
TEST_F(advice__rings_that_follow_it_complete) {
    uint64_t random = test_seed();
    for (int round = 0; round < 400; round++) {
        ring r = {.count = 1 + (int)(test_random(&random) % RING_MAX)};
        r.rounds = 1 + (int)(test_random(&random) % 5);
        r.needs = round % 3 ? 1 : 1 + (int)(test_random(&random) % 3);
        for (int i = 0; i < r.count; i++) {
            r.depths[i] = r.needs > 1 ? 3 : (int)(test_random(&random) % 4);
            r.is_loop[i] = i > 0 && test_random(&random) % 2;
        }
        assert_int_equal(ring_run(f, &r), PTOWSP_STUCK);
        int steps = 0;
        do {
            assert_true(steps++ < r.needs);
            ring_apply(f, &r);
        } while (ring_run(f, &r) != PTOWSP_OK);
    }
}
