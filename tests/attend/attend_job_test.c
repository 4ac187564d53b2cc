// Jobs of attention: workers one after another in the same memory, in any order, and on threads; prefix plans,
// which have the bits of flat ones; and everything that is refused, with its text.

#include "attend_levels.h"

#include "plan_text.h"

// Four requests: decode, a prompt, decode, a verification.
enum { REQUESTS = 4, KV_HEADS = 2, STRIDE = 64 };

static const int32_t kv_lengths[REQUESTS] = {600, 90, 300, 33};
static const int32_t query_lengths[REQUESTS] = {1, 40, 1, 5};

typedef struct step_job {
    scene *c;
    made_job made;
    ptowsp_attend_job *job;
    uint32_t *pages;  // [request][STRIDE]
} step_job;

static step_job *job_make(uint32_t lane_count, bool is_invariant, bool shares_merges,
                          bool has_sinks, bool has_slopes, uint64_t *random) {
    step_job *j = (step_job *)test_alloc(1, sizeof *j);
    scene *c = j->c = (scene *)test_alloc(1, sizeof *c);
    const ptowsp_attention_config config = {.kv_head_count = KV_HEADS,
                                            .group = 3,
                                            .lane_count = lane_count,
                                            .is_causal = true,
                                            .page_size = 16,
                                            .mode = is_invariant ? PTOWSP_ATTENTION_INVARIANT
                                                                 : PTOWSP_ATTENTION_BALANCED,
                                            .chunk = is_invariant ? 64 : 0,
                                            .shares_merges = shares_merges};
    c->s.config = config;
    c->s.batch.query_lengths = c->s.queries;
    c->s.batch.sequence_count = REQUESTS;
    memcpy(c->s.kv, kv_lengths, sizeof kv_lengths);
    memcpy(c->s.queries, query_lengths, sizeof query_lengths);
    c->layout = LAYOUT_SLOTS;
    c->key_dim = c->value_dim = 32;
    c->has_sinks = has_sinks;
    c->has_slopes = has_slopes;
    scene_make(c, test_random(random));
    j->pages = (uint32_t *)test_alloc((size_t)REQUESTS * STRIDE, sizeof *j->pages);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        const uint32_t first = c->page_starts[i];
        memcpy(j->pages + (size_t)i * STRIDE, c->pages + first,
               (c->page_starts[i + 1] - first) * sizeof *j->pages);
    }
    c->step.pages = j->pages;
    c->step.page_starts = NULL;
    c->step.page_stride = STRIDE;
    make_job(c, &c->step, false, &j->made);
    j->job = &j->made.job;
    return j;
}

// On seven lanes, with nothing special.
static step_job *job_plain(void) {
    uint64_t random = 1;
    return job_make(7, false, false, false, false, &random);
}

// As so many workers, in random order.
static void run_in_turns(const ptowsp_attend_job *job, uint32_t worker_count, uint64_t *random) {
    uint32_t order[WORKERS_MAX];
    for (uint32_t i = 0; i < worker_count; i++) {
        const uint32_t k = test_random_u32(random, 0, i);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        assert_ok(ptowsp_attend_run_worker(job, order[i], worker_count, NULL));
    }
}

TEST(attend_job__runs_follow_one_another_in_the_same_memory) {
    uint64_t random = test_seed(), parts = 0;
    for (uint32_t i = 0; TEST_ROUNDS(i, 8); i++) {
        step_job *j = job_make(test_random_u32(&random, 1, 12), i % 2, i % 4 > 1, i % 4 < 2,
                               i % 3 == 0, &random);
        parts += j->made.plan.slot_count;
        run_in_turns(j->job, 1, &random);
        check_values(j->c);
        const float *outputs = j->c->outputs, *lse = j->c->lse;
        for (uint32_t k = 0; k < 6; k++) {
            scene_outputs(j->c);
            j->job->is_stealing = k % 2;
            if (k < 4) {
                run_in_turns(j->job, test_random_u32(&random, 1, WORKERS_MAX), &random);
            } else {
                run_on_threads(j->job);
            }
            same_outputs(j->c, outputs, lse);
        }
        test_release();
    }
    assert_met(parts > 50);
}

TEST(attend_job__runs_on_the_lanes_of_a_context) {
    ptowsp_context *context = test_lanes(3);
    step_job *j = job_plain();
    for (int i = 0; i < 2; i++) {
        scene_outputs(j->c);
        assert_ok(ptowsp_attend_run(context, j->job));
        check_values(j->c);
    }
    const float *queries = j->c->step.queries;
    j->c->step.queries = NULL;
    test_refused(context, ptowsp_attend_run(context, j->job), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "attend: the step's queries, outputs or pages are NULL");
    j->c->step.queries = queries;
    j->job->memory.workers[0] = 2;  // as if two workers ran it
    test_refused(context, ptowsp_attend_run(context, j->job), PTOWSP_BUSY, PTOWSP_NO_INDEX,
                 "attend: a run of 2 workers has not ended, and this is one of 3");
    j->job->memory.workers[0] = 0;
    test_release();
    ptowsp_context_destroy(context);
}

TEST(attend_job__prefix_plans_have_the_bits_of_flat_plans) {
    uint64_t random = test_seed();
    for (uint32_t i = 0; i < 8; i++) {
        levels_of at = {{0}};
        at.at[PREFIX] = at.at[MODE] = at.at[QUERIES] = at.at[GROUP] = at.at[HEADS] = 1;
        at.at[CAUSAL] = at.at[LANES] = 1;
        at.at[DIMS] = at.at[PAGE] = 2;
        at.at[SINKS] = i % 2;
        at.at[SLOPES] = i / 2 % 2;
        at.at[MASK] = i / 4 ? 2 : 0;
        scene *c = levels_make(&at, true, &random);
        const float *outputs = c->outputs, *lse = c->lse;
        const made_job made = run(c, c->step, true, WORKERS_SEVEN, false);
        assert_true(made.prefix.shared_count > 0 && made.prefix.join_count > 0);
        scene_outputs(c);
        run(c, c->step, false, WORKERS_TWO, false);
        same_outputs(c, outputs, lse);
        test_release();
    }
}

// -- what is refused ------------------------------------------------------------------------------

// A prefix plan counts query tokens in the order of requests, so no other order is computed.
TEST(attend_job__query_starts_that_are_not_those_of_a_prefix_plan_are_refused) {
    uint64_t random = 1;
    levels_of at = {{0}};
    at.at[PREFIX] = at.at[MODE] = at.at[QUERIES] = 1;
    scene *c = levels_make(&at, true, &random);
    ptowsp_attend_step step = c->step;
    made_job made;
    make_job(c, &step, true, &made);
    assert_true(c->query_starts[0] == 0 && c->query_starts[1] > 0);
    assert_ok(ptowsp_attend_check(&made.job, NULL));
    c->query_starts[0] = 5;
    ptowsp_plan_info info;
    fault_is(ptowsp_attend_check(&made.job, &info), PTOWSP_INVALID_PARAMS, &info,
             "attend: the queries of request 0 begin at 5, and those of the prefix plan at 0");
    test_release();
}

static void expect_refused(step_job *j, bool is_run, ptowsp_status status, const char *text) {
    ptowsp_plan_info info;
    fault_is(ptowsp_attend_check(j->job, &info), status, &info, text);
    if (is_run) {
        fault_is(ptowsp_attend_run_worker(j->job, 0, 1, &info), status, &info, text);
    }
    test_release();
}

// A job with a change is refused when it is checked and when it runs (AND_RUN), or when it is checked alone
// (CHECKED), where that takes time that grows with the batch.
#define REFUSED(change, is_run, status, text)                                                      \
    do {                                                                                           \
        step_job *j = job_plain();                                                                 \
        ptowsp_attend_cache *kv = &j->c->kv;                                                       \
        ptowsp_attend_step *step = &j->c->step;                                                    \
        ptowsp_attention_config *config = &j->c->s.config;                                         \
        ptowsp_attention_plan *plan = &j->made.plan;                                               \
        ptowsp_attend_memory *memory = &j->job->memory;                                            \
        (void)kv, (void)step, (void)config, (void)plan, (void)memory;                              \
        change;                                                                                    \
        expect_refused(j, is_run, status, "attend: " text);                                        \
    } while (0)

enum { CHECKED, AND_RUN };

TEST(attend_job__each_fault_has_a_text) {
    const ptowsp_status invalid = PTOWSP_INVALID_PARAMS, small = PTOWSP_BUFFER_OVERFLOW;
    static const uint32_t one_start[REQUESTS] = {0, 0, 0, 40}, starts[REQUESTS] = {40, 40, 40, 33};
    static const uint32_t mask[1] = {0};
    ptowsp_prefix_plan other;
    REFUSED(j->job->cache = NULL, AND_RUN, invalid, "the job, its cache or its step is NULL");
    REFUSED(step->plan = NULL, AND_RUN, invalid,
            "the step's batch, lengths, config or plan is NULL");
    REFUSED(step->pages = NULL, AND_RUN, invalid, "the step's queries, outputs or pages are NULL");
    REFUSED(kv->values = NULL, AND_RUN, invalid,
            "the cache's keys or values, or the scales of I8, are NULL");
    REFUSED((kv->type = PTOWSP_ATTEND_I8, kv->key_scales = NULL), AND_RUN, invalid,
            "the cache's keys or values, or the scales of I8, are NULL");
    REFUSED(memset(memory, 0, sizeof *memory), AND_RUN, invalid, "the job's memory was not placed");
    REFUSED(kv->type = (ptowsp_attend_type)77, AND_RUN, invalid,
            "the cache has the unknown type 77");
    REFUSED(kv->key_dim = 20, AND_RUN, invalid,
            "key_dim is 20, not a multiple of 8 from it to 576");
    REFUSED(kv->value_dim = 592, AND_RUN, invalid,
            "value_dim is 592, not a multiple of 8 from it to 576");
    REFUSED((kv->type = PTOWSP_ATTEND_Q8_0, kv->key_dim = 48), AND_RUN, invalid,
            "key_dim is 48, not a multiple of 32 from it to 576");
    REFUSED((kv->type = PTOWSP_ATTEND_Q4_0, kv->value_strides.token = 80), AND_RUN, invalid,
            "a stride is 80 elements, not a multiple of a block's 32");
    REFUSED(config->group = 4, AND_RUN, invalid, "the plan has a group of 3, the config of 4");
    REFUSED(config->tile_rows = 1, AND_RUN, invalid,
            "the plan has tiles of 21 tokens, the config of 1");
    REFUSED(config->lane_count = 6, AND_RUN, invalid, "the plan has 7 lanes, the config 6");
    REFUSED(kv->page_size = 10, AND_RUN, invalid,
            "the cache's pages of 10 tokens do not divide the config's of 16");
    REFUSED(step->prefix = &other, AND_RUN, invalid, "the step's plan is not its prefix plan's");
    REFUSED(step->query_starts = NULL, CHECKED, invalid,
            "request 1 has 40 query tokens, and no query_starts");
    REFUSED((memory->slot_capacity = 12, plan->slot_count = 99), AND_RUN, small,
            "the plan has 99 slots, and the job's memory 12");
    REFUSED((memory->scratch.rows = 62, plan->slot_rows = 63), AND_RUN, small,
            "slots have 63 rows, and those of the job's memory 62");
    REFUSED(kv->value_dim = 48, AND_RUN, invalid, "value_dim is 48, and the job's memory has 32");
    REFUSED((memory->progress_capacity = 261, plan->merge_count = plan->merge_capacity = 6),
            AND_RUN, small, "progress has 262 elements, and the job's memory 261");
    REFUSED((step->mask = mask, step->mask_starts = one_start, step->mask_stride = 19), CHECKED,
            invalid, "the mask of request 3 begins or ends at 40 of its 33 tokens");
    REFUSED((step->mask = mask, step->mask_starts = starts, step->mask_stride = 9), CHECKED,
            invalid, "the mask of request 0 begins or ends at 328 of its 600 tokens");
    REFUSED((j->pages[0] = 0, j->pages[STRIDE] = 38, kv->page_size = 0,
             kv->key_strides.page = kv->value_strides.page = 0),
            CHECKED, invalid,
            "request 1 begins at row 38 without pages, and a page stride of the cache is 0");
    REFUSED((j->pages[0] = 0, j->pages[STRIDE] = 38, kv->page_size = 0, kv->type = PTOWSP_ATTEND_I8,
             kv->scale_strides.page = 0),
            CHECKED, invalid,
            "request 1 begins at row 38 without pages, and a page stride of the cache is 0");
    step_job *j = job_plain();
    ptowsp_plan_info info;
    j->made.plan.units[0].params[0] = 77;
    fault_is(ptowsp_attend_check(j->job, &info), invalid, &info,
             "plan: unit 0 has the value 77 where 0 belongs");
    test_release();
}

TEST(attend_job__sizes_are_checked) {
    const ptowsp_attend_limits good = {{5, 2, 4, 12, 3, 0}, 0, 32, 4};
    ptowsp_attend_memory memory;
    ptowsp_plan_info info;
    static uint64_t block[2048];
    uint64_t bytes;
    // 16 bytes and 4 for each worker; progress of 128 bytes for each lane and one more, and 4 for a
    // merge; 4 slots of 12 rows, each with 2 + 32 floats.
    assert_ok(ptowsp_attend_size(&good, &bytes, &info));
    assert_int_equal(bytes, 16 + 16 + (4 * 128 + 8) + 4 * 12 * (2 + 32) * 4);
    assert_ok(ptowsp_attend_place(&good, block, bytes, &memory, &info));
    assert_ptr_equal((char *)block + bytes, memory.scratch.accs + 4 * 12 * 32);
    fault_is(ptowsp_attend_place(&good, block, bytes - 1, &memory, &info), PTOWSP_BUFFER_OVERFLOW,
             &info, "attend: the block has 7079 bytes of the 7080 that are needed");
    fault_is(ptowsp_attend_place(&good, (char *)block + 4, bytes, &memory, &info),
             PTOWSP_INVALID_PARAMS, &info, "attend: the block is not aligned to 8 bytes");
    fault_is(ptowsp_attend_place(&good, NULL, bytes, &memory, &info), PTOWSP_INVALID_PARAMS, &info,
             "attend: the limits, the block or the result is NULL");
    static const struct {
        ptowsp_attend_limits limits;
        ptowsp_status status;
        const char *text;
    } bad[] = {
        {{{5, 2, 4, 12, 3, 0}, 0, 0, 4},
         PTOWSP_INVALID_PARAMS,
         "attend: value_dim is 0, not a multiple of 8 from it to 576"},
        {{{5, 2, 4, 12, 3, 0}, 0, 32, 65537},
         PTOWSP_INVALID_PARAMS,
         "attend: 65537 workers are not in 1 to 65536"},
        {{{5, 2, UINT32_MAX, UINT32_MAX, 3, 0}, 0, 32, 4},
         PTOWSP_LIMIT_EXCEEDED,
         "attend: the limits need more bytes than 63 bits count"},
        {{{5, UINT64_C(1) << 32, 4, 12, 3, 0}, 0, 32, 4},
         PTOWSP_LIMIT_EXCEEDED,
         "attend: the limits need more bytes than 63 bits count"},
        {{{5, 2, 4, 12, 3, 0}, UINT64_MAX, 32, 4},
         PTOWSP_LIMIT_EXCEEDED,
         "attend: the limits need more bytes than 63 bits count"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bytes = 1;
        fault_is(ptowsp_attend_size(&bad[i].limits, &bytes, &info), bad[i].status, &info,
                 bad[i].text);
        assert_int_equal(bytes, 0);
    }
}

TEST(attend_job__mistakes_of_workers_are_refused) {
    uint64_t random = 1;
    ptowsp_plan_info info;
    step_job *j = job_plain();
    ptowsp_attend_job *job = j->job;
    fault_is(ptowsp_attend_run_worker(job, 0, 0, &info), PTOWSP_INVALID_PARAMS, &info,
             "attend: 0 workers are not in 1 to 9");
    fault_is(ptowsp_attend_run_worker(job, 0, 10, &info), PTOWSP_INVALID_PARAMS, &info,
             "attend: 10 workers are not in 1 to 9");
    fault_is(ptowsp_attend_run_worker(job, 3, 3, &info), PTOWSP_INVALID_PARAMS, &info,
             "attend: worker 3 is not below 3");
    scene_outputs(j->c);
    assert_ok(ptowsp_attend_run_worker(job, 1, 3, &info));
    fault_is(ptowsp_attend_run_worker(job, 1, 3, &info), PTOWSP_BUSY, &info,
             "attend: worker 1 is in a run that has not ended");
    fault_is(ptowsp_attend_run_worker(job, 0, 2, &info), PTOWSP_BUSY, &info,
             "attend: a run of 3 workers has not ended, and this is one of 2");
    ptowsp_attend_job copy = *job;  // shares the memory
    fault_is(ptowsp_attend_run_worker(&copy, 1, 3, &info), PTOWSP_BUSY, &info,
             "attend: worker 1 is in a run that has not ended");
    assert_ok(ptowsp_attend_run_worker(job, 2, 3, &info));
    assert_ok(ptowsp_attend_run_worker(job, 0, 3, &info));
    check_values(j->c);  // nothing was done twice, and all of it
    scene_outputs(j->c);
    run_in_turns(job, 2, &random);
    check_values(j->c);
    j->made.plan.units[3].params[1] = KV_HEADS;
    fault_is(ptowsp_attend_run_worker(job, 0, 1, &info), PTOWSP_INVALID_PARAMS, &info,
             "attend: unit 3 of the plan is not of the step");
    j->made.plan.units[3].params[1] = 0;
    assert_ok(ptowsp_attend_run_worker(job, 0, 1, &info));
    test_release();
}

TEST(attend_job__kernels_refuse_what_is_not_of_the_step) {
    step_job *j = job_plain();
    scene *s = j->c;
    const ptowsp_attend_job *job = j->job;
    const ptowsp_attention_plan *plan = &j->made.plan;
    ptowsp_work work = plan->units[0];
    work.params[0] = REQUESTS;
    assert_invalid(ptowsp_attend_work(job, &work));
    work = plan->units[0];
    work.work_id = plan->slot_count;
    assert_invalid(ptowsp_attend_work(job, &work));
    work.work_id = PTOWSP_NO_SLOT;
    work.reserved = 40;
    assert_invalid(ptowsp_attend_work(job, &work));
    work = plan->merges[0];
    work.params[3] = plan->slot_count + 1;
    assert_invalid(ptowsp_attend_merge(job, &work));
    assert_invalid(ptowsp_attend_join(job, &work));
    ptowsp_attend_unit unit = {1, 0, 39, 2, 0, 90, NULL, 0};  // request 1 has 40 query tokens
    assert_invalid(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    unit.query_count = 1;
    assert_ok(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    unit.tokens = s->query_starts;  // all see all of the KV, so there is no window
    assert_ok(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    s->s.config.window = 5;
    assert_invalid(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    s->s.config.window = 0;
    unit.tokens = NULL;
    unit.request = REQUESTS;
    assert_invalid(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    assert_invalid(ptowsp_attend_convert(s->cache[0], PTOWSP_ATTEND_Q8_0, 33, s->outputs));
    assert_int_equal(ptowsp_attend_bytes(PTOWSP_ATTEND_Q8_0, 64), 68);
    assert_int_equal(ptowsp_attend_bytes(PTOWSP_ATTEND_Q4_0, 64), 36);
    assert_int_equal(ptowsp_attend_bytes(PTOWSP_ATTEND_Q4_0, 65), 0);
    // SIZE_MAX is one less than a power of two: 4 * (SIZE_MAX / 4) is 3 less.
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_F32, SIZE_MAX / 4) == SIZE_MAX - 3);
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_F32, SIZE_MAX / 4 + 1) == SIZE_MAX);
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_F32, SIZE_MAX) == SIZE_MAX);
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_F16, SIZE_MAX / 2) == SIZE_MAX - 1);
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_F16, SIZE_MAX / 2 + 1) == SIZE_MAX);
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_I8, SIZE_MAX) == SIZE_MAX);
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_Q8_0, SIZE_MAX / 34 * 32) == SIZE_MAX / 34 * 34);
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_Q8_0, (SIZE_MAX / 34 + 1) * 32) == SIZE_MAX);
    assert_true(ptowsp_attend_bytes(PTOWSP_ATTEND_Q4_0, SIZE_MAX - 31) == (SIZE_MAX / 32) * 18);
    assert_invalid(ptowsp_attend_convert(s->cache[0], (ptowsp_attend_type)9, 1, s->outputs));
    test_release();
}
