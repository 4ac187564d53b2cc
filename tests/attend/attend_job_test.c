// Jobs of attention: workers one after another in the same memory, in any order, and on threads; and everything that
// is refused, with its text. Prefix plans have the bits of flat ones in attend_pairs_test.c.

#include "attend_levels.h"

#include "facts.h"
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

TEST(attend_job__refusals_are_errors_of_the_context) {
    ptowsp_context *context = test_lanes(3);
    step_job *j = job_plain();
    j->job->memory.workers[0] = 2;  // as if two workers ran it
    test_refused(context, ptowsp_attend_run(context, j->job), PTOWSP_BUSY, PTOWSP_NO_INDEX,
                 "attend: a run of 2 workers has not ended, and this is one of 3");
    j->job->memory.workers[0] = 0;
    j->c->step.queries = NULL;
    test_invalid(context, ptowsp_attend_run(context, j->job),
                 "attend: the step's queries, outputs or pages are NULL");
    j = job_plain();
    j->made.plan.units[3].params[1] = KV_HEADS;
    test_refused(context, ptowsp_attend_run(context, j->job), PTOWSP_INVALID_PARAMS, 3,
                 "attend: unit 3 of the plan is not of the step");
    test_release();
    ptowsp_context_destroy(context);
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
    ptowsp_work work = made.prefix.attention.units[0];
    work.params[0] = made.prefix.segment_count;
    assert_invalid(ptowsp_attend_work(&made.job, &work));
    test_release();
}

// Jobs and limits as facts: a case begins with the plain job.
static step_job *plain;
static ptowsp_plan_info fault;
static ptowsp_prefix_plan other_prefix;
static ptowsp_attend_limits limits;
static ptowsp_attend_memory placed;
static _Alignas(8) char block[16384];
static uint64_t bytes;
static uint32_t block_begin, worker, worker_count;

static void begin(void) {
    test_release();
    plain = job_plain();
    limits = (ptowsp_attend_limits){{5, 2, 4, 12, 3, 0}, 0, 32, 4};
    block_begin = 0, worker = 0, worker_count = 1;
}

static ptowsp_status call_check(void) {
    return ptowsp_attend_check(plain->job, &fault);
}

static ptowsp_status call_run(void) {
    return ptowsp_attend_run_worker(plain->job, worker, worker_count, &fault);
}

static ptowsp_status call_size(void) {
    const ptowsp_status status = ptowsp_attend_size(&limits, &bytes, &fault);
    assert_true(status == PTOWSP_OK || bytes == 0);
    return status;
}

static ptowsp_status call_place(void) {
    return ptowsp_attend_place(&limits, block_begin == UINT32_MAX ? NULL : block + block_begin,
                               bytes, &placed, &fault);
}

static ptowsp_status call_forget_memory(void) {
    memset(&plain->job->memory, 0, sizeof plain->job->memory);
    return PTOWSP_OK;
}

static ptowsp_status call_take_prefix(void) {
    plain->c->step.prefix = &other_prefix;
    return PTOWSP_OK;
}

static ptowsp_status call_take_mask(void) {
    plain->c->step.mask = plain->c->query_starts;
    plain->c->step.mask_starts = plain->c->mask_starts;
    return PTOWSP_OK;
}

static const char *fault_text(uint64_t *out_index) {
    static char text[200];
    ptowsp_plan_explain(&fault, TEST_TEXT(text));
    *out_index = PTOWSP_NO_INDEX;  // the texts have them
    assert_true(strncmp(text, "attend: ", 8) == 0 || strncmp(text, "plan: ", 6) == 0);
    return text[0] == 'a' ? text + 8 : text;
}

static const facts_call calls[] = {{"check", call_check},
                                   {"run", call_run},
                                   {"size", call_size},
                                   {"place", call_place},
                                   {"forget_memory", call_forget_memory},
                                   {"take_prefix", call_take_prefix},
                                   {"take_mask", call_take_mask},
                                   {NULL, NULL}};

static const facts_field *fields(void) {
    static bool fills_block;
    ptowsp_attend_job *job = plain->job;
    ptowsp_attend_cache *kv = &plain->c->kv;
    ptowsp_attend_step *step = &plain->c->step;
    ptowsp_attention_config *config = &plain->c->s.config;
    ptowsp_attention_plan *plan = &plain->made.plan;
    ptowsp_attend_memory *memory = &job->memory;
    uint32_t *mask_starts = plain->c->mask_starts, *pages = plain->pages;
    fills_block = placed.scratch.accs &&
                  (char *)placed.scratch.accs + sizeof(float[4 * 12 * 32]) == block + bytes;
    FACTS_RETURN(
        FIELD(job->cache), FIELD(step->plan), FIELD(step->pages), FIELD(step->query_starts),
        FIELD(step->mask_stride), FIELD(kv->values), FIELD(kv->type), FIELD(kv->key_scales),
        FIELD(kv->key_dim), FIELD(kv->value_dim), FIELD(kv->page_size), FIELD(kv->key_strides.page),
        FIELD(kv->value_strides.page), FIELD(kv->value_strides.token),
        FIELD(kv->scale_strides.page), FIELD(config->group), FIELD(config->tile_rows),
        FIELD(config->lane_count), FIELD(memory->slot_capacity), FIELD(memory->scratch.rows),
        FIELD(memory->progress_capacity), FIELD(plan->slot_count), FIELD(plan->slot_rows),
        FIELD(plan->merge_count), FIELD(plan->merge_capacity), FIELDS(mask_starts, REQUESTS),
        FIELDS(pages, REQUESTS * STRIDE), MEMBER(plan->units, params[0], plan->unit_count),
        MEMBER(plan->units, params[1], plan->unit_count), FIELD(limits.plan.merge_count),
        FIELD(limits.plan.slot_count), FIELD(limits.plan.slot_rows), FIELD(limits.join_count),
        FIELD(limits.value_dim), FIELD(limits.worker_count), FIELD(bytes), FIELD(block_begin),
        FIELD(fills_block), FIELD(worker), FIELD(worker_count));
}

TEST(attend_job__facts_hold) {
    facts all = {"tests/attend/jobs.facts", begin, fields, calls, fault_text, NULL, 0};
    facts_run(&all);
    test_release();
}

TEST(attend_job__mistakes_of_workers_are_refused) {
    uint64_t random = 1;
    ptowsp_plan_info info;
    step_job *j = job_plain();
    ptowsp_attend_job *job = j->job;
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
    work = plan->merges[0];
    work.flags |= PTOWSP_WORK_ROWS;
    work.work_id = UINT32_C(65535) << 16;  // more rows than any tile of the plan has
    assert_invalid(ptowsp_attend_merge(job, &work));
    s->kv.value_dim = 20;
    assert_invalid(ptowsp_attend_work(job, &plan->units[0]));
    assert_invalid(ptowsp_attend_join(job, &work));
    s->kv.value_dim = 32;
    ptowsp_attend_unit unit = {1, 0, 39, 2, 0, 90, NULL, 0};  // request 1 has 40 query tokens
    assert_invalid(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    unit.query_count = 1;
    assert_ok(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    unit.tokens = s->query_starts;  // all see all of the KV, so there is no window
    assert_ok(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    s->step.slopes = s->queries;  // depend on positions, which only a prefix plan has for tokens
    assert_invalid(ptowsp_attend_compute(&s->kv, &s->step, &unit, NULL, NULL));
    s->step.slopes = NULL;
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
