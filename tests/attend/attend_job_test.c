// Jobs of attention: what workers compute together, against plain softmax in double precision, and the
// same bits for any of them; and everything that is refused, with its text.

#include "test.h"

#include <math.h>
#include <pthread.h>

enum { REQUESTS = 4, HEADS = 2, GROUP = 3, DIM = 32, ROWS = HEADS * GROUP, PAGE = 16 };
enum { TOKENS = 1100, QUERIES = 47, WORKERS = 9 };

// Four requests: decode, a prompt, decode, a verification.
static const int32_t kv_lengths[REQUESTS] = {600, 90, 300, 33};
static const int32_t query_lengths[REQUESTS] = {1, 40, 1, 5};
static const uint32_t query_starts[REQUESTS] = {0, 1, 41, 42};

typedef struct scene {
    float keys[TOKENS * HEADS * DIM], values[TOKENS * HEADS * DIM];  // [page][slot][head][dim]
    float queries[QUERIES * ROWS * DIM], outputs[QUERIES * ROWS * DIM], lse[QUERIES * ROWS];
    uint32_t pages[REQUESTS][64];
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_plan plan;
    ptowsp_attend_cache cache;
    ptowsp_attend_step step;
    ptowsp_attend_job job;
    void *block, *memory;
    float sinks[ROWS], slopes[ROWS];
} scene;

static float random_unit(uint64_t *state) {
    return (float)test_random_in(state, -1000000, 1000000) / 1000000.0f;
}

static void scene_data(scene *s, uint64_t *random) {
    for (size_t i = 0; i < TOKENS * HEADS * DIM; i++) {
        s->keys[i] = random_unit(random);
        s->values[i] = random_unit(random);
    }
    for (size_t i = 0; i < QUERIES * ROWS * DIM; i++) {
        s->queries[i] = 3.0f * random_unit(random);
    }
    for (uint32_t head = 0; head < ROWS; head++) {
        s->sinks[head] = 5.0f * random_unit(random);
        s->slopes[head] = 0.02f * (float)(head + 1);
    }
    for (uint32_t r = 0, page = 0; r < REQUESTS; r++) {
        for (int32_t t = 0; t < kv_lengths[r]; t += PAGE) {
            s->pages[r][t / PAGE] = page++;
        }
    }
}

static scene *scene_make_of(uint64_t *random, uint32_t lane_count, bool is_invariant,
                            bool shares_merges) {
    scene *s = (scene *)calloc(1, sizeof *s);
    assert_non_null(s);
    scene_data(s, random);
    const ptowsp_attention_batch batch = {kv_lengths, query_lengths, REQUESTS};
    const ptowsp_attend_strides strides = {PAGE * HEADS * DIM, HEADS * DIM, DIM};
    s->batch = batch;
    s->config.kv_head_count = HEADS;
    s->config.group = GROUP;
    s->config.lane_count = lane_count;
    s->config.is_causal = true;
    s->config.page_size = PAGE;
    s->config.mode = is_invariant ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    s->config.chunk = is_invariant ? 64 : 0;
    s->config.shares_merges = shares_merges;
    s->cache.keys = s->keys;
    s->cache.values = s->values;
    s->cache.key_strides = s->cache.value_strides = strides;
    s->cache.key_dim = s->cache.value_dim = DIM;
    s->cache.page_size = PAGE;
    s->step.batch = &s->batch;
    s->step.config = &s->config;
    s->step.plan = &s->plan;
    s->step.queries = s->queries;
    s->step.outputs = s->outputs;
    s->step.lse = s->lse;
    s->step.query_token_stride = s->step.output_token_stride = ROWS * DIM;
    s->step.query_head_stride = s->step.output_head_stride = DIM;
    s->step.lse_token_stride = ROWS;
    s->step.lse_head_stride = 1;
    s->step.query_starts = query_starts;
    s->step.pages = s->pages[0];
    s->step.page_stride = 64;
    ptowsp_attention_sizes sizes;
    assert_int_equal(ptowsp_attention_size(&s->batch, &s->config, &sizes, NULL), PTOWSP_OK);
    s->block = malloc((size_t)sizes.block_bytes);
    assert_int_equal(ptowsp_attention_place(&sizes, s->block, sizes.block_bytes, &s->plan),
                     PTOWSP_OK);
    assert_int_equal(ptowsp_attention_generate(&s->batch, &s->config, &s->plan, NULL), PTOWSP_OK);
    const ptowsp_attend_limits limits = {sizes, 0, DIM, WORKERS};
    uint64_t bytes;
    assert_int_equal(ptowsp_attend_size(&limits, &bytes, NULL), PTOWSP_OK);
    s->memory = malloc((size_t)bytes);
    assert_int_equal(ptowsp_attend_place(&limits, s->memory, bytes, &s->job.memory, NULL),
                     PTOWSP_OK);
    s->job.cache = &s->cache;
    s->job.step = &s->step;
    return s;
}

static scene *scene_make(uint64_t *random, uint32_t lane_count, bool is_invariant) {
    return scene_make_of(random, lane_count, is_invariant, false);
}

static void scene_free(scene *s) {
    free(s->block);
    free(s->memory);
    free(s);
}

// -- values ---------------------------------------------------------------------------------------

static const float *row_of(const scene *s, const float *from, uint32_t request, int32_t token,
                           uint32_t head) {
    const size_t page = s->pages[request][token / PAGE];
    return from + ((page * PAGE + (size_t)(token % PAGE)) * HEADS + head) * DIM;
}

// Compares a row with plain softmax in double precision.
static void check_row(const scene *s, uint32_t request, int32_t query, uint32_t head) {
    const size_t at = (query_starts[request] + (size_t)query) * ROWS + head;
    const int32_t seen = kv_lengths[request] - query_lengths[request] + query + 1;
    double scores[600], top = -INFINITY, total = 0.0, sum[DIM] = {0};
    for (int32_t t = 0; t < seen; t++) {
        const float *key = row_of(s, s->keys, request, t, head / GROUP);
        scores[t] = 0.0;
        for (int d = 0; d < DIM; d++) {
            scores[t] += (double)s->queries[at * DIM + (size_t)d] * (double)key[d];
        }
        scores[t] /= sqrt(DIM);
        scores[t] -= s->step.slopes ? (double)s->slopes[head] * (double)(seen - 1 - t) : 0.0;
        top = fmax(top, scores[t]);
    }
    if (s->step.sinks) {
        const double more = fmax(top, (double)s->sinks[head]);
        total = exp((double)s->sinks[head] - more);
        top = more;
    }
    for (int32_t t = 0; t < seen; t++) {
        const float *value = row_of(s, s->values, request, t, head / GROUP);
        const double weight = exp(scores[t] - top);
        total += weight;
        for (int d = 0; d < DIM; d++) {
            sum[d] += weight * (double)value[d];
        }
    }
    assert_true(fabs(top + log(total) - (double)s->lse[at]) < 1e-5);
    for (int d = 0; d < DIM; d++) {
        assert_true(fabs(sum[d] / total - (double)s->outputs[at * DIM + (size_t)d]) < 1e-5);
    }
}

static void check_all(const scene *s) {
    for (uint32_t r = 0; r < REQUESTS; r++) {
        for (int32_t q = 0; q < query_lengths[r]; q++) {
            for (uint32_t head = 0; head < ROWS; head++) {
                check_row(s, r, q, head);
            }
        }
    }
}

static void outputs_clear(scene *s) {
    memset(s->outputs, 0xff, sizeof s->outputs);
    memset(s->lse, 0xff, sizeof s->lse);
}

// As so many workers, in random order.
static void run_in_turns(scene *s, uint32_t worker_count, uint64_t *random) {
    uint32_t order[WORKERS];
    for (uint32_t i = 0; i < worker_count; i++) {
        const uint32_t k = (uint32_t)test_random_in(random, 0, i);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        assert_int_equal(ptowsp_attend_run_worker(&s->job, order[i], worker_count, NULL),
                         PTOWSP_OK);
    }
}

typedef struct thread {
    const ptowsp_attend_job *job;
    uint32_t worker, worker_count;
    ptowsp_status status;
} thread;

static void *thread_run(void *arg) {
    thread *t = (thread *)arg;
    t->status = ptowsp_attend_run_worker(t->job, t->worker, t->worker_count, NULL);
    return NULL;
}

static void run_on_threads(scene *s, uint32_t worker_count) {
    pthread_t ids[WORKERS];
    thread threads[WORKERS];
    for (uint32_t i = 0; i < worker_count; i++) {
        const thread one = {&s->job, i, worker_count, PTOWSP_OK};
        threads[i] = one;
        assert_int_equal(pthread_create(&ids[i], NULL, thread_run, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        assert_int_equal(pthread_join(ids[i], NULL), 0);
        assert_int_equal(threads[i].status, PTOWSP_OK);
    }
}

TEST(attend_job__workers_agree_with_double_precision_and_each_other) {
    uint64_t random = test_seed(), parts = 0;
    for (uint32_t i = 0; TEST_ROUNDS(i, 8); i++) {
        scene *s =
            scene_make_of(&random, (uint32_t)test_random_in(&random, 1, 12), i % 2, i % 4 > 1);
        float outputs[QUERIES * ROWS * DIM], lse[QUERIES * ROWS];
        s->step.sinks = i % 4 < 2 ? s->sinks : NULL;
        s->step.slopes = i % 3 == 0 ? s->slopes : NULL;
        parts += s->plan.slot_count;
        assert_int_equal(ptowsp_attend_check(&s->job, NULL), PTOWSP_OK);
        outputs_clear(s);
        run_in_turns(s, 1, &random);
        check_all(s);
        memcpy(outputs, s->outputs, sizeof outputs);
        memcpy(lse, s->lse, sizeof lse);
        for (uint32_t k = 0; k < 6; k++) {  // one run after another in the same memory
            const uint32_t count = (uint32_t)test_random_in(&random, 1, WORKERS);
            outputs_clear(s);
            s->job.is_stealing = k % 2;
            if (k < 4) {
                run_in_turns(s, count, &random);
            } else {
                run_on_threads(s, count);
            }
            assert_memory_equal(outputs, s->outputs, sizeof outputs);
            assert_memory_equal(lse, s->lse, sizeof lse);
        }
        scene_free(s);
    }
    assert_met(parts > 50);
}

TEST(attend_job__runs_on_the_lanes_of_a_context) {
    uint64_t random = 1;
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = 3};
    ptowsp_context *context = test_context(&desc);
    scene *s = scene_make(&random, 7, false);
    for (int i = 0; i < 2; i++) {
        outputs_clear(s);
        assert_int_equal(ptowsp_attend_run(context, &s->job), PTOWSP_OK);
        check_all(s);
    }
    s->step.queries = NULL;
    assert_int_equal(ptowsp_attend_run(context, &s->job), PTOWSP_INVALID_PARAMS);
    assert_string_equal(ptowsp_context_error(context).text,
                        "attend: the step's queries, outputs or pages are NULL");
    s->step.queries = s->queries;
    s->job.memory.workers[0] = 2;  // as if two workers ran it
    assert_int_equal(ptowsp_attend_run(context, &s->job), PTOWSP_BUSY);
    assert_string_equal(ptowsp_context_error(context).text,
                        "attend: a run of 2 workers has not ended, and this is one of 3");
    s->job.memory.workers[0] = 0;
    scene_free(s);
    ptowsp_context_destroy(context);
}

static void expect(ptowsp_status status, const ptowsp_plan_info *info, ptowsp_status wanted,
                   const char *text) {
    char line[256];
    ptowsp_output_buffer buffer = {line, sizeof line, 0};
    ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(line, text);
    assert_int_equal(status, wanted);
}

// -- prefix plans ---------------------------------------------------------------------------------

enum { TREE_REQUESTS = 5, TREE_KV = 500, TREE_BLOCK = 64, TREE_QUERIES = 2 };

typedef struct tree_scene {
    scene *s;  // its data and cache; of requests of the same length, whose first blocks are shared
    int32_t kv[TREE_REQUESTS], queries[TREE_REQUESTS];
    uint32_t starts[TREE_REQUESTS], pages[TREE_REQUESTS][64];
    uint64_t ids[TREE_REQUESTS * 7], begin[TREE_REQUESTS + 1];
} tree_scene;

// Of 7 blocks all requests share 3, and the first three of them 3 more. There are pages for these
// alone: those of a request's own KV come after them.
static void tree_make(tree_scene *t) {
    uint32_t page = 0;
    for (uint32_t r = 0; r < TREE_REQUESTS; r++) {
        t->kv[r] = TREE_KV;
        t->queries[r] = TREE_QUERIES;
        t->starts[r] = r * TREE_QUERIES;
        for (uint32_t i = 0; i < 7; i++) {
            t->ids[r * 7 + i] = i < 3 ? i : i < 6 && r < 3 ? 10 + i : 100 * (r + 1) + i;
        }
        t->begin[r + 1] = 7 * (r + 1);
        for (uint32_t p = 0; p * PAGE < TREE_KV; p++) {
            const bool is_shared = r > 0 && (p < 3 * 4 || (p < 6 * 4 && r < 3));
            t->pages[r][p] = is_shared ? t->pages[0][p] : page++ % (TOKENS / PAGE);
        }
    }
}

// Runs the step by its plan, in memory of its own, as three workers; outputs are copied.
static void tree_run(scene *s, const ptowsp_attention_sizes *sizes, uint64_t join_count,
                     float *outputs, float *lse) {
    const ptowsp_attend_limits limits = {*sizes, join_count, DIM, 3};
    uint64_t bytes, random = 1;
    assert_int_equal(ptowsp_attend_size(&limits, &bytes, NULL), PTOWSP_OK);
    void *memory = malloc((size_t)bytes);
    assert_int_equal(ptowsp_attend_place(&limits, memory, bytes, &s->job.memory, NULL), PTOWSP_OK);
    assert_int_equal(ptowsp_attend_check(&s->job, NULL), PTOWSP_OK);
    outputs_clear(s);
    run_in_turns(s, 3, &random);
    memcpy(outputs, s->outputs, TREE_REQUESTS * TREE_QUERIES * ROWS * DIM * sizeof(float));
    memcpy(lse, s->lse, TREE_REQUESTS * TREE_QUERIES * ROWS * sizeof(float));
    free(memory);
}

TEST(attend_job__prefix_plans_have_the_bits_of_flat_plans) {
    enum { FLOATS = TREE_REQUESTS * TREE_QUERIES * ROWS };
    uint64_t random = test_seed();
    tree_scene t = {scene_make(&random, 5, true), {0}, {0}, {0}, {{0}}, {0}, {0}};
    float flat[FLOATS * DIM], flat_lse[FLOATS], tree[FLOATS * DIM], tree_lse[FLOATS];
    scene *s = t.s;
    tree_make(&t);
    const ptowsp_prefix_batch batch = {
        {t.kv, t.queries, TREE_REQUESTS}, t.ids, t.begin, TREE_BLOCK};
    const ptowsp_prefix_limits limits = {TREE_REQUESTS, 7 * TREE_REQUESTS};
    ptowsp_attention_sizes sizes;
    ptowsp_prefix_sizes tree_sizes;
    ptowsp_attention_plan plan;
    ptowsp_prefix_plan prefix;
    ptowsp_prefix_tree trees;
    const uint64_t tree_bytes = ptowsp_prefix_tree_bytes(&limits);
    void *tree_block = malloc((size_t)tree_bytes);
    s->step.batch = &batch.attention;
    s->step.query_starts = t.starts;
    s->step.pages = t.pages[0];
    assert_int_equal(ptowsp_prefix_tree_place(&limits, tree_block, tree_bytes, &trees), PTOWSP_OK);
    assert_int_equal(ptowsp_prefix_build(&batch, &trees, NULL), PTOWSP_OK);
    assert_int_equal(ptowsp_prefix_size(&batch.attention, &s->config, &trees, &tree_sizes, NULL),
                     PTOWSP_OK);
    assert_int_equal(ptowsp_attention_size(&batch.attention, &s->config, &sizes, NULL), PTOWSP_OK);
    void *blocks[] = {malloc((size_t)sizes.block_bytes), malloc((size_t)tree_sizes.block_bytes)};
    assert_int_equal(ptowsp_attention_place(&sizes, blocks[0], sizes.block_bytes, &plan),
                     PTOWSP_OK);
    assert_int_equal(ptowsp_prefix_place(&tree_sizes, blocks[1], tree_sizes.block_bytes, &prefix),
                     PTOWSP_OK);
    assert_int_equal(ptowsp_attention_generate(&batch.attention, &s->config, &plan, NULL),
                     PTOWSP_OK);
    assert_int_equal(ptowsp_prefix_generate(&batch.attention, &s->config, &trees, &prefix, NULL),
                     PTOWSP_OK);
    assert_true(prefix.shared_count > 0 && prefix.join_count > 0);
    // Over the last 480 tokens, so in shared segments, too.
    uint32_t masks[TREE_REQUESTS * TREE_QUERIES * 15], mask_starts[TREE_REQUESTS];
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        masks[i] = (uint32_t)test_random(&random);
        mask_starts[i % TREE_REQUESTS] = TREE_KV - 480;
    }
    s->step.mask_stride = 15;
    s->step.mask_starts = mask_starts;
    for (uint32_t i = 0; i < 8; i++) {
        s->step.sinks = i % 2 ? s->sinks : NULL;
        s->step.slopes = i / 2 % 2 ? s->slopes : NULL;
        s->step.mask = i / 4 ? masks : NULL;
        s->step.plan = &plan;
        s->step.prefix = NULL;
        tree_run(s, &sizes, 0, flat, flat_lse);
        s->step.plan = &prefix.attention;
        s->step.prefix = &prefix;
        tree_run(s, &tree_sizes.attention, tree_sizes.join_count, tree, tree_lse);
        assert_memory_equal(flat, tree, sizeof flat);
        assert_memory_equal(flat_lse, tree_lse, sizeof flat_lse);
    }

    // A prefix plan counts query tokens in the order of requests, so no other order is computed.
    ptowsp_plan_info info;
    assert_true(t.queries[0] > 0 && t.starts[0] == 0);
    t.starts[0] = 5;
    expect(ptowsp_attend_check(&s->job, &info), &info, PTOWSP_INVALID_PARAMS,
           "attend: the queries of request 0 begin at 5, and those of the prefix plan at 0");
    free(blocks[0]);
    free(blocks[1]);
    free(tree_block);
    scene_free(s);
}

// -- what is refused ------------------------------------------------------------------------------

TEST(attend_job__each_fault_has_a_text) {
    uint64_t random = 1;
    static const struct {
        ptowsp_status status;
        const char *text;
    } wanted[] = {
        {PTOWSP_OK, ""},
        {PTOWSP_INVALID_PARAMS, "attend: the job, its cache or its step is NULL"},
        {PTOWSP_INVALID_PARAMS, "attend: the step's batch, lengths, config or plan is NULL"},
        {PTOWSP_INVALID_PARAMS, "attend: the step's queries, outputs or pages are NULL"},
        {PTOWSP_INVALID_PARAMS,
         "attend: the cache's keys or values, or the scales of I8, are NULL"},
        {PTOWSP_INVALID_PARAMS, "attend: the job's memory was not placed"},
        {PTOWSP_INVALID_PARAMS, "attend: the cache has the unknown type 77"},
        {PTOWSP_INVALID_PARAMS, "attend: key_dim is 20, not a multiple of 8 from it to 576"},
        {PTOWSP_INVALID_PARAMS, "attend: value_dim is 592, not a multiple of 8 from it to 576"},
        {PTOWSP_INVALID_PARAMS, "attend: the plan has a group of 3, the config of 4"},
        {PTOWSP_INVALID_PARAMS, "attend: the plan has tiles of 21 tokens, the config of 1"},
        {PTOWSP_INVALID_PARAMS, "attend: the plan has 7 lanes, the config 6"},
        {PTOWSP_INVALID_PARAMS,
         "attend: the cache's pages of 10 tokens do not divide the config's of 16"},
        {PTOWSP_INVALID_PARAMS, "attend: the step's plan is not its prefix plan's"},
        {PTOWSP_INVALID_PARAMS, "attend: request 1 has 40 query tokens, and no query_starts"},
        {PTOWSP_BUFFER_OVERFLOW, "attend: the plan has 99 slots, and the job's memory 12"},
        {PTOWSP_BUFFER_OVERFLOW, "attend: slots have 63 rows, and those of the job's memory 62"},
        {PTOWSP_INVALID_PARAMS, "attend: value_dim is 48, and the job's memory has 32"},
        {PTOWSP_BUFFER_OVERFLOW, "attend: progress has 262 elements, and the job's memory 261"},
        {PTOWSP_INVALID_PARAMS, "plan: unit 0 has the value 77 where 0 belongs"},
        {PTOWSP_INVALID_PARAMS,
         "attend: the cache's keys or values, or the scales of I8, are NULL"},
        {PTOWSP_INVALID_PARAMS, "attend: key_dim is 48, not a multiple of 32 from it to 576"},
        {PTOWSP_INVALID_PARAMS, "attend: a stride is 80 elements, not a multiple of a block's 32"},
        {PTOWSP_INVALID_PARAMS,
         "attend: the mask of request 3 begins or ends at 40 of its 33 tokens"},
        {PTOWSP_INVALID_PARAMS,
         "attend: the mask of request 0 begins or ends at 328 of its 600 tokens"},
        {PTOWSP_INVALID_PARAMS,
         "attend: request 1 begins at row 38 without pages, and a page stride of the cache is 0"},
        {PTOWSP_INVALID_PARAMS,
         "attend: request 1 begins at row 38 without pages, and a page stride of the cache is 0"},
    };
    static const uint32_t starts[2][REQUESTS] = {{0, 0, 0, 40}, {40, 40, 40, 33}};
    for (uint32_t i = 1; i < sizeof wanted / sizeof *wanted; i++) {
        scene *s = scene_make(&random, 7, false);
        ptowsp_prefix_plan other;
        ptowsp_plan_info info;
        ptowsp_attend_job *job = &s->job;
        switch (i) {
        case 1: job->cache = NULL; break;
        case 2: s->step.plan = NULL; break;
        case 3: s->step.pages = NULL; break;
        case 4: s->cache.values = NULL; break;
        case 5: memset(&job->memory, 0, sizeof job->memory); break;
        case 6: s->cache.type = (ptowsp_attend_type)77; break;
        case 7: s->cache.key_dim = 20; break;
        case 8: s->cache.value_dim = 592; break;
        case 9: s->config.group = 4; break;
        case 10: s->config.tile_rows = 1; break;
        case 11: s->config.lane_count = 6; break;
        case 12: s->cache.page_size = 10; break;
        case 13: s->step.prefix = &other; break;
        case 14: s->step.query_starts = NULL; break;
        case 15: job->memory.slot_capacity = 12, s->plan.slot_count = 99; break;
        case 16: job->memory.scratch.rows = 62, s->plan.slot_rows = 63; break;
        case 17: s->cache.value_dim = 48; break;
        case 18:
            job->memory.progress_capacity = 261;
            s->plan.merge_count = 6, s->plan.merge_capacity = 6;
            break;
        case 19: s->plan.units[0].params[0] = 77; break;
        case 20: s->cache.type = PTOWSP_ATTEND_I8; break;
        case 21: s->cache.type = PTOWSP_ATTEND_Q8_0, s->cache.key_dim = 48; break;
        case 22: s->cache.type = PTOWSP_ATTEND_Q4_0, s->cache.value_strides.token = 80; break;
        case 25:
            s->cache.page_size = 0;
            s->cache.key_strides.page = s->cache.value_strides.page = 0;
            break;
        case 26:
            s->cache.page_size = 0, s->cache.type = PTOWSP_ATTEND_I8;
            s->cache.key_scales = s->cache.value_scales = (const float *)s->cache.keys;
            s->cache.scale_strides.page = 0;
            break;
        default:
            s->step.mask = query_starts;
            s->step.mask_starts = starts[i - 23];
            s->step.mask_stride = i == 23 ? 19 : 9;
            break;
        }
        ptowsp_status status = ptowsp_attend_check(job, &info);
        expect(status, &info, wanted[i].status, wanted[i].text);
        if (i != 14 && i != 19 && i < 23) {  // these take time that grows with the batch
            status = ptowsp_attend_run_worker(job, 0, 1, &info);
            expect(status, &info, wanted[i].status, wanted[i].text);
        }
        scene_free(s);
    }
}

TEST(attend_job__sizes_are_checked) {
    const ptowsp_attend_limits good = {{5, 2, 4, 12, 3, 0}, 0, 32, 4};
    ptowsp_attend_memory memory;
    ptowsp_plan_info info;
    static uint64_t block[2048];
    uint64_t bytes;
    // 16 bytes and 4 for each worker; progress of 128 bytes for each lane and one more, and 4 for a
    // merge; 4 slots of 12 rows, each with 2 + 32 floats.
    assert_int_equal(ptowsp_attend_size(&good, &bytes, &info), PTOWSP_OK);
    assert_int_equal(bytes, 16 + 16 + (4 * 128 + 8) + 4 * 12 * (2 + 32) * 4);
    assert_int_equal(ptowsp_attend_place(&good, block, bytes, &memory, &info), PTOWSP_OK);
    assert_ptr_equal((char *)block + bytes, memory.scratch.accs + 4 * 12 * 32);
    expect(ptowsp_attend_place(&good, block, bytes - 1, &memory, &info), &info,
           PTOWSP_BUFFER_OVERFLOW, "attend: the block has 7079 bytes of the 7080 that are needed");
    expect(ptowsp_attend_place(&good, (char *)block + 4, bytes, &memory, &info), &info,
           PTOWSP_INVALID_PARAMS, "attend: the block is not aligned to 8 bytes");
    expect(ptowsp_attend_place(&good, NULL, bytes, &memory, &info), &info, PTOWSP_INVALID_PARAMS,
           "attend: the limits, the block or the result is NULL");
    for (uint32_t i = 0; i < 5; i++) {
        ptowsp_attend_limits bad = good;
        const char *text = "attend: the limits need more bytes than 63 bits count";
        switch (i) {
        case 0:
            bad.value_dim = 0;
            text = "attend: value_dim is 0, not a multiple of 8 from it to 576";
            break;
        case 1:
            bad.worker_count = 65537;
            text = "attend: 65537 workers are not in 1 to 65536";
            break;
        case 2: bad.plan.slot_count = UINT32_MAX, bad.plan.slot_rows = UINT32_MAX; break;
        case 3: bad.plan.merge_count = UINT64_C(1) << 32; break;
        default: bad.join_count = UINT64_MAX; break;
        }
        bytes = 1;
        expect(ptowsp_attend_size(&bad, &bytes, &info), &info,
               i < 2 ? PTOWSP_INVALID_PARAMS : PTOWSP_LIMIT_EXCEEDED, text);
        assert_int_equal(bytes, 0);
    }
}

TEST(attend_job__mistakes_of_workers_are_refused) {
    uint64_t random = 1;
    ptowsp_plan_info info;
    scene *s = scene_make(&random, 7, false);
    expect(ptowsp_attend_run_worker(&s->job, 0, 0, &info), &info, PTOWSP_INVALID_PARAMS,
           "attend: 0 workers are not in 1 to 9");
    expect(ptowsp_attend_run_worker(&s->job, 0, 10, &info), &info, PTOWSP_INVALID_PARAMS,
           "attend: 10 workers are not in 1 to 9");
    expect(ptowsp_attend_run_worker(&s->job, 3, 3, &info), &info, PTOWSP_INVALID_PARAMS,
           "attend: worker 3 is not below 3");
    outputs_clear(s);
    assert_int_equal(ptowsp_attend_run_worker(&s->job, 1, 3, &info), PTOWSP_OK);
    expect(ptowsp_attend_run_worker(&s->job, 1, 3, &info), &info, PTOWSP_BUSY,
           "attend: worker 1 is in a run that has not ended");
    expect(ptowsp_attend_run_worker(&s->job, 0, 2, &info), &info, PTOWSP_BUSY,
           "attend: a run of 3 workers has not ended, and this is one of 2");
    ptowsp_attend_job copy = s->job;  // shares the memory
    expect(ptowsp_attend_run_worker(&copy, 1, 3, &info), &info, PTOWSP_BUSY,
           "attend: worker 1 is in a run that has not ended");
    assert_int_equal(ptowsp_attend_run_worker(&s->job, 2, 3, &info), PTOWSP_OK);
    assert_int_equal(ptowsp_attend_run_worker(&s->job, 0, 3, &info), PTOWSP_OK);
    check_all(s);  // nothing was done twice, and all of it
    outputs_clear(s);
    run_in_turns(s, 2, &random);
    check_all(s);
    s->plan.units[3].params[1] = HEADS;
    expect(ptowsp_attend_run_worker(&s->job, 0, 1, &info), &info, PTOWSP_INVALID_PARAMS,
           "attend: unit 3 of the plan is not of the step");
    s->plan.units[3].params[1] = 0;
    assert_int_equal(ptowsp_attend_run_worker(&s->job, 0, 1, &info), PTOWSP_OK);
    scene_free(s);
}

TEST(attend_job__kernels_refuse_what_is_not_of_the_step) {
    uint64_t random = 1;
    scene *s = scene_make(&random, 7, false);
    ptowsp_work work = s->plan.units[0];
    work.params[0] = REQUESTS;
    assert_int_equal(ptowsp_attend_work(&s->job, &work), PTOWSP_INVALID_PARAMS);
    work = s->plan.units[0];
    work.work_id = s->plan.slot_count;
    assert_int_equal(ptowsp_attend_work(&s->job, &work), PTOWSP_INVALID_PARAMS);
    work.work_id = PTOWSP_NO_SLOT;
    work.reserved = 40;
    assert_int_equal(ptowsp_attend_work(&s->job, &work), PTOWSP_INVALID_PARAMS);
    work = s->plan.merges[0];
    work.params[3] = s->plan.slot_count + 1;
    assert_int_equal(ptowsp_attend_merge(&s->job, &work), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_attend_join(&s->job, &work), PTOWSP_INVALID_PARAMS);
    ptowsp_attend_unit unit = {1, 0, 39, 2, 0, 90, NULL, 0};  // request 1 has 40 query tokens
    assert_int_equal(ptowsp_attend_compute(&s->cache, &s->step, &unit, NULL, NULL),
                     PTOWSP_INVALID_PARAMS);
    unit.query_count = 1;
    assert_int_equal(ptowsp_attend_compute(&s->cache, &s->step, &unit, NULL, NULL), PTOWSP_OK);
    unit.tokens = query_starts;  // all see all of the KV, so there is no window
    assert_int_equal(ptowsp_attend_compute(&s->cache, &s->step, &unit, NULL, NULL), PTOWSP_OK);
    s->config.window = 5;
    assert_int_equal(ptowsp_attend_compute(&s->cache, &s->step, &unit, NULL, NULL),
                     PTOWSP_INVALID_PARAMS);
    s->config.window = 0;
    unit.tokens = NULL;
    unit.request = REQUESTS;
    assert_int_equal(ptowsp_attend_compute(&s->cache, &s->step, &unit, NULL, NULL),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_attend_convert(s->keys, PTOWSP_ATTEND_Q8_0, 33, s->outputs),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_attend_bytes(PTOWSP_ATTEND_Q8_0, 64), 68);
    assert_int_equal(ptowsp_attend_bytes(PTOWSP_ATTEND_Q4_0, 64), 36);
    assert_int_equal(ptowsp_attend_bytes(PTOWSP_ATTEND_Q4_0, 65), 0);
    assert_int_equal(ptowsp_attend_convert(s->keys, (ptowsp_attend_type)9, 1, s->outputs),
                     PTOWSP_INVALID_PARAMS);
    scene_free(s);
}
