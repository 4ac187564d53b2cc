// Attention plans that are taken on from step to step, at random: sequences grow, end and come, and
// after each step the plan must be one of the new batch. A plan that was kept is judged by the slow
// reference, and one that was made anew is compared with that of ptowsp_attention_generate.

#include "attention_sample.h"

#define SEQUENCE_MAX 24
#define STEP_MAX     12

// A service: at most SEQUENCE_MAX sequences, some of which have not come yet or have ended.
typedef struct service {
    sample s;
    uint32_t changed[SEQUENCE_MAX];
    uint32_t changed_count;
    bool has_grown, has_ended;
} service;

typedef struct tally {
    uint64_t steps, kept, forced, refused;
    // What planning anew would really have saved, beyond what was predicted: with small pieces and
    // lanes alike, where plans are as even as can be; and with any configuration.
    uint64_t gap_count[2], gap_above[2];
    double gap_sum[2], gap_max[2];
} tally;

static void service_make(service *v, uint64_t seed, uint64_t number) {
    sample *s = &v->s;
    memset(v, 0, sizeof *v);
    sample_make(s, seed, number);
    sample_free(s);
    s->config.head_count = s->config.head_count % 5 + 1;
    s->config.chunk = s->config.chunk ? s->config.chunk + (256 / (uint32_t)s->rules.page_size + 1) *
                                                              (uint32_t)s->rules.page_size
                                      : 0;
    s->rules = reference_rules_of(&s->config);
    s->kv = (int32_t *)malloc(SEQUENCE_MAX * sizeof(int32_t));
    s->queries = (int32_t *)malloc(SEQUENCE_MAX * sizeof(int32_t));
    assert_true(s->kv && s->queries);
    for (uint32_t i = 0; i < SEQUENCE_MAX; i++) {
        s->kv[i] = random_one_in(&s->random, 5) ? 0 : (int32_t)random_scaled(&s->random, 12);
        s->queries[i] = s->kv[i] == 0 ? 0 : (int32_t)test_random_in(&s->random, 0, 3);
        s->queries[i] = s->queries[i] < s->kv[i] ? s->queries[i] : s->kv[i];
    }
    s->batch.kv_lengths = s->kv;
    s->batch.query_lengths = random_one_in(&s->random, 2) ? s->queries : NULL;
    s->batch.sequence_count = (uint32_t)test_random_in(&s->random, 1, SEQUENCE_MAX);
    if (!s->batch.query_lengths) {
        free(s->queries);
        s->queries = NULL;
    }
}

static void service_change(service *v, uint32_t i) {
    if (v->changed_count == 0 || v->changed[v->changed_count - 1] != i) {
        v->changed[v->changed_count++] = i;
    }
}

// One step: which sequences grow, end, come, or have other queries.
static void service_step(service *v) {
    sample *s = &v->s;
    uint64_t *random = &s->random;
    v->changed_count = 0;
    v->has_grown = v->has_ended = false;
    uint64_t growth = test_random(random) % 8, calm = test_random(random) % 3;
    uint32_t before = s->batch.sequence_count;
    if (before < SEQUENCE_MAX && random_one_in(random, 12)) {
        s->batch.sequence_count += (uint32_t)test_random_in(random, 1, SEQUENCE_MAX - before);
    }
    for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
        bool is_other = i >= before || (calm == 2 && random_one_in(random, 20));
        if (is_other || (s->kv[i] == 0 && calm == 2 && random_one_in(random, 4))) {
            s->kv[i] = (int32_t)random_scaled(random, 12);
            if (s->queries) {
                int32_t queries = (int32_t)test_random_in(random, 0, 20);
                s->queries[i] = queries < s->kv[i] ? queries : s->kv[i];
            }
            service_change(v, i);
        } else if (calm >= 1 && s->kv[i] > 0 && random_one_in(random, 20)) {
            s->kv[i] = 0;
            if (s->queries) {
                s->queries[i] = 0;
            }
            v->has_ended = true;
        } else if (s->kv[i] > 0) {
            int32_t more = growth < 4    ? 1
                           : growth == 4 ? 0
                           : growth == 5 ? (int32_t)test_random_in(random, 0, 3)
                           : growth == 6 ? (int32_t)random_scaled(random, 7)
                                         : (int32_t)test_random_in(random, 0, 1) * 100;
            s->kv[i] += more;
            v->has_grown = v->has_grown || more > 0;
        }
    }
    v->s.rules = reference_rules_of(&s->config);
}

// Nothing but growth that the old cut serves: no reason to plan anew, at any gain.
static bool service_must_keep(const service *v, double gain_max) {
    return v->changed_count == 0 && !v->s.rules.is_invariant && v->s.rules.window == 0 &&
           !v->s.queries && isinf(gain_max);
}

static void require_kept(service *v, const plan_buffer *b, const plan_buffer *before,
                         const ptowsp_attention_change *change, double gain_max, tally *t) {
    const ptowsp_attention_plan *plan = &b->plan, *old = &before->plan;
    double cost = 0, fresh_cost = 0, allowed = gain_max == 0 ? 0.1 : gain_max;
    require_good(&v->s, plan, REFERENCE_KEPT, &cost);
    require(&v->s, change->gain >= 0 && change->gain <= 1, "gain is no share");
    require(&v->s, change->gain <= allowed * 1.001, "kept beyond gain_max");
    require(&v->s, v->changed_count == 0, "kept, with sequences that changed");
    require(&v->s, plan->unit_count == old->unit_count && plan->merge_count == old->merge_count,
            "kept, with other counts");
    size_t ranges = ((size_t)plan->lane_count + 1) * sizeof(uint32_t);
    require(&v->s,
            memcmp(plan->unit_begin, old->unit_begin, ranges) == 0 &&
                memcmp(plan->merge_begin, old->merge_begin, ranges) == 0,
            "kept, with other ranges");
    bool has_invalid = false;
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        const ptowsp_work *x = &plan->units[i], *y = &old->units[i];
        has_invalid = has_invalid || !ptowsp_work_is_valid(x);
        require(&v->s,
                !ptowsp_work_is_valid(x) ||
                    (x->params[0] == y->params[0] && x->params[1] == y->params[1] &&
                     x->reserved == y->reserved && x->work_id == y->work_id),
                "kept, with another unit");
    }
    ptowsp_attention_arrays none = {NULL, NULL, NULL, NULL};
    require(&v->s,
            ptowsp_attention_export(plan, &none) ==
                (has_invalid ? PTOWSP_INVALID_PARAMS : PTOWSP_OK),
            "export of a plan that was kept");
    ptowsp_attention_sizes sizes;
    if (size_of(&v->s, &sizes)) {
        plan_buffer fresh = plan_buffer_of(&sizes, 0, true);
        assert_int_equal(ptowsp_attention_generate(&v->s.batch, &v->s.config, &fresh.plan, NULL),
                         PTOWSP_OK);
        fresh_cost = fresh.plan.cost_max;
        double gap = cost > 0 ? 1 - fresh_cost / cost - change->gain : 0;
        int any = v->s.config.lane_speeds || v->s.rules.is_invariant || v->s.rules.piece_min > 64;
        gap = gap > 0 ? gap : 0;
        t->gap_count[any]++;
        t->gap_above[any] += gap > 0.05;
        t->gap_sum[any] += gap;
        t->gap_max[any] = gap > t->gap_max[any] ? gap : t->gap_max[any];
        plan_buffer_free(&fresh);
    }
    t->kept++;
}

static void require_new(service *v, const plan_buffer *b, const ptowsp_attention_change *change,
                        double gain_max) {
    require(&v->s, change->gain == 0, "new, with a gain");
    require(&v->s, !service_must_keep(v, gain_max), "planned anew without a reason");
    ptowsp_attention_sizes sizes;
    require(&v->s, size_of(&v->s, &sizes), "updated, but not to be planned");
    plan_buffer fresh = plan_buffer_of(&sizes, 0, true);
    assert_int_equal(ptowsp_attention_generate(&v->s.batch, &v->s.config, &fresh.plan, NULL),
                     PTOWSP_OK);
    require(&v->s, same_plan(&b->plan, &fresh.plan), "another plan than that of generate");
    require_good(&v->s, &b->plan, REFERENCE_FRESH, NULL);
    plan_buffer_free(&fresh);
}

// The update fails: the plan is as before, and it fails for what generate would fail for.
static void require_refused(service *v, plan_buffer *b, const plan_buffer *before,
                            ptowsp_status status) {
    plan_buffer_assert_same(b, before);
    ptowsp_attention_sizes sizes;
    bool is_planned = size_of(&v->s, &sizes);
    require(&v->s,
            status == PTOWSP_BUFFER_OVERFLOW || (status == PTOWSP_LIMIT_EXCEEDED && !is_planned),
            "an update is refused");
    require(&v->s,
            !is_planned || sizes.unit_count > b->plan.unit_capacity ||
                sizes.merge_count > b->plan.merge_capacity ||
                sizes.slot_count > b->plan.slot_capacity,
            "an update does not fit, and a new plan does");
}

static plan_buffer service_plan(service *v, bool *out_good) {
    ptowsp_attention_sizes sizes;
    *out_good = size_of(&v->s, &sizes);
    uint64_t spare = random_one_in(&v->s.random, 4) ? 0 : 3000;
    plan_buffer b = plan_buffer_make(*out_good ? sizes.unit_count + spare : 0,
                                     *out_good ? sizes.merge_count + spare : 0,
                                     *out_good ? sizes.slot_count + spare : 0,
                                     v->s.config.lane_count, !random_one_in(&v->s.random, 8));
    if (*out_good) {
        assert_int_equal(ptowsp_attention_generate(&v->s.batch, &v->s.config, &b.plan, NULL),
                         PTOWSP_OK);
    }
    return b;
}

// What an update refuses whatever the plan: sequences out of order, or not of the batch.
static void require_bad_lists(service *v, plan_buffer *b) {
    uint32_t count = v->s.batch.sequence_count;
    const uint32_t beyond[1] = {count}, twice[2] = {1, 0};
    ptowsp_attention_change change;
    plan_buffer before = plan_buffer_copy(b);
    require(&v->s,
            ptowsp_attention_update(&v->s.batch, &v->s.config, beyond, 1, 0, &b->plan, &change,
                                    NULL) == PTOWSP_INVALID_PARAMS,
            "a changed sequence that is not of the batch is taken");
    require(&v->s,
            count < 2 || ptowsp_attention_update(&v->s.batch, &v->s.config, twice, 2, 0, &b->plan,
                                                 &change, NULL) == PTOWSP_INVALID_PARAMS,
            "changed sequences in descending order are taken");
    require(&v->s,
            ptowsp_attention_update(&v->s.batch, &v->s.config, NULL, 1, 0, &b->plan, &change,
                                    NULL) == PTOWSP_INVALID_PARAMS,
            "changed NULL is taken");
    plan_buffer_assert_same(b, &before);
    plan_buffer_free(&before);
}

static void service_run(service *v, tally *t) {
    const double gains[] = {0, 0.02, 0.1, 0.5, INFINITY, INFINITY};
    bool is_good;
    plan_buffer b = service_plan(v, &is_good);
    for (int step = 0; is_good && step < STEP_MAX; step++) {
        double gain_max = gains[test_random(&v->s.random) % 6];
        service_step(v);
        plan_buffer before = plan_buffer_copy(&b);
        ptowsp_attention_change change;
        memset(&change, 0x77, sizeof change);
        change.is_new = false;
        ptowsp_plan_info info;
        memset(&info, 0x77, sizeof info);
        ptowsp_status status =
            ptowsp_attention_update(&v->s.batch, &v->s.config, v->changed_count ? v->changed : NULL,
                                    v->changed_count, gain_max, &b.plan, &change, &info);
        plan_buffer_assert_guards(&b);
        require(&v->s, (status == PTOWSP_OK) == (info.fault == PTOWSP_FAULT_NONE),
                "status and fault disagree");
        t->steps++;
        require(&v->s, status != PTOWSP_OK || info.work_count == b.plan.unit_count,
                "the info has another number of units");
        if (status != PTOWSP_OK) {
            require_refused(v, &b, &before, status);
            t->refused++;
            plan_buffer_free(&b);
            b = service_plan(v, &is_good);
        } else if (change.is_new) {
            require_new(v, &b, &change, gain_max);
        } else {
            require_kept(v, &b, &before, &change, gain_max, t);
            t->forced += service_must_keep(v, gain_max);
        }
        plan_buffer_free(&before);
    }
    if (is_good) {
        require_bad_lists(v, &b);
    }
    plan_buffer_free(&b);
}

static void attention__updates_give_plans_of_the_new_batch(void **state) {
    (void)state;
    uint64_t seed = test_seed() + 3;
    tally t;
    memset(&t, 0, sizeof t);
    for (uint64_t number = 0; TEST_ROUNDS(number, 1500); number++) {
        service v;
        service_make(&v, seed, number);
        service_run(&v, &t);
        sample_free(&v.s);
    }
    print_message("%llu steps: %llu kept, %llu of them without a choice, %llu did not fit\n",
                  (unsigned long long)t.steps, (unsigned long long)t.kept,
                  (unsigned long long)t.forced, (unsigned long long)t.refused);
    for (int any = 0; any < 2; any++) {
        double count = (double)t.gap_count[any];
        print_message("saving beyond the predicted, %s: mean %.2f %%, above 5 %%: %.2f %% of the "
                      "steps, largest %.1f %%\n",
                      any ? "other" : "fine pieces on equal lanes", 100 * t.gap_sum[any] / count,
                      100 * (double)t.gap_above[any] / count, 100 * t.gap_max[any]);
        assert_true(t.gap_sum[any] <= 0.002 * count);
        assert_true((double)t.gap_above[any] <= 0.01 * count);
    }
    assert_met(t.kept * 5 > t.steps && t.forced > 0);
}

// Lengths that shrank, and were not said to: refused, or planned; never a plan of another batch.
static void attention__updates_never_leave_the_plan_of_another_batch(void **state) {
    (void)state;
    uint64_t seed = test_seed() + 4;
    for (uint64_t number = 0; TEST_ROUNDS(number, 1000); number++) {
        service v;
        service_make(&v, seed, number);
        bool is_good;
        plan_buffer b = service_plan(&v, &is_good), before = plan_buffer_copy(&b);
        sample *s = &v.s;
        for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
            if (s->kv[i] > 0 && random_one_in(&s->random, 3)) {
                s->kv[i] = (int32_t)test_random_in(&s->random, s->queries ? s->queries[i] : 1,
                                                   2 * s->kv[i]);
            }
            if (s->queries && random_one_in(&s->random, 6)) {
                s->queries[i] = (int32_t)test_random_in(&s->random, 0, s->kv[i] < 9 ? s->kv[i] : 9);
            }
        }
        ptowsp_attention_change change;
        memset(&change, 0, sizeof change);
        ptowsp_status status = is_good ? ptowsp_attention_update(&s->batch, &s->config, NULL, 0,
                                                                 0.1, &b.plan, &change, NULL)
                                       : PTOWSP_INVALID_PARAMS;
        if (status == PTOWSP_OK) {
            require_good(s, &b.plan, change.is_new ? REFERENCE_FRESH : REFERENCE_KEPT, NULL);
        } else {
            plan_buffer_assert_same(&b, &before);
        }
        plan_buffer_free(&b);
        plan_buffer_free(&before);
        sample_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention__updates_give_plans_of_the_new_batch),
        cmocka_unit_test(attention__updates_never_leave_the_plan_of_another_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
