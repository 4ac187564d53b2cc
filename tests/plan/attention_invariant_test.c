// Attention plans that are really run: a plain kernel in float attends over the units of a plan, parts
// are merged by ptowsp_merge_partials, and the numbers of each sequence are compared. In INVARIANT
// mode their bits are those of the sequence alone on one lane, with any neighbours, in any batch, on
// any lanes, by any way of running. In BALANCED mode they are those of double precision within the
// bounds of its roundings, and do not depend on the way of running either.

#include "attention_sample.h"
#include "lane_modes.h"

#define DIM_MAX     24
#define POOL_MAX    6
#define BATCH_MAX   12
#define KV_MAX      900
#define QUERY_MAX   40
#define THREADS_MAX 12
#define WAY_COUNT   7
#define ULP         0x1p-24

// -- sequences and their numbers ------------------------------------------------------------------

// A sequence: queries[token][query head][dim], keys and values[token][head][dim].
typedef struct sequence {
    int32_t kv, query_count;
    float *queries, *keys, *values;
} sequence;

// What one sequence gives: rows[token][query head][dim + 1], the last is the log-sum-exp.
typedef struct result {
    float *rows;
    size_t count;
} result;

typedef struct setting {
    ptowsp_attention_config config;
    reference_rules rules;
    uint32_t dim;
    sequence pool[POOL_MAX];
} setting;

static float *random_floats(uint64_t *random, size_t count, double scale) {
    float *numbers = (float *)test_alloc(count, sizeof(float));
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (float)(scale * (2 * random_unit(random) - 1));
    }
    return numbers;
}

static void setting_make(setting *s, uint64_t *random, ptowsp_attention_mode mode) {
    memset(s, 0, sizeof *s);
    ptowsp_attention_config *config = &s->config;
    config->mode = mode;
    config->kv_head_count = test_random_u32(random, 1, 3);
    config->group = test_random_u32(random, 1, 5);
    config->lane_count = 1;
    config->is_causal = random_one_in(random, 2);
    config->window = random_one_in(random, 2) ? 0 : (uint32_t)random_scaled(random, 9);
    config->page_size = UINT32_C(1) << test_random_in(random, 0, 5);
    config->chunk = config->page_size * test_random_u32(random, 1, 8);
    config->chunk += config->chunk < 16 ? 16 * config->page_size : 0;
    config->tile_rows = test_random_u32(random, 1, 40);
    s->rules = reference_rules_of(config);
    s->dim = test_random_u32(random, 1, DIM_MAX);
    for (uint32_t i = 0; i < POOL_MAX; i++) {
        sequence *one = &s->pool[i];
        one->kv = (int32_t)test_random_in(random, 0, random_one_in(random, 3) ? 60 : KV_MAX);
        uint64_t kind = test_random(random) % 4;  // mostly decode, and prefill
        one->query_count = kind < 2    ? 1
                           : kind == 2 ? (int32_t)test_random_in(random, 0, 6)
                                       : (int32_t)test_random_in(random, 1, QUERY_MAX);
        one->query_count = one->query_count < one->kv ? one->query_count : one->kv;
        size_t kv = (size_t)one->kv * config->kv_head_count * s->dim;
        size_t rows = (size_t)one->query_count * config->kv_head_count * config->group;
        one->queries = random_floats(random, rows * s->dim, 3);
        one->keys = random_floats(random, kv, 1);
        one->values = random_floats(random, kv, 1);
    }
}

// -- the kernel -----------------------------------------------------------------------------------

typedef struct run {
    const setting *s;
    const ptowsp_attention_plan *plan;
    const sequence *sequences[BATCH_MAX];
    result results[BATCH_MAX];
    ptowsp_attention_scratch scratch;
} run;

static float *run_row(const run *r, const ptowsp_work *work, uint32_t row) {
    size_t heads = (size_t)(r->s->rules.kv_head_count * r->s->rules.group);
    size_t token = work->reserved * r->s->rules.tile_tokens + row / r->s->rules.group;
    size_t head = work->params[1] * r->s->rules.group + row % r->s->rules.group;
    return r->results[work->params[0]].rows + (token * heads + head) * (r->s->dim + 1);
}

static uint32_t run_rows(const run *r, const ptowsp_work *work) {
    uint64_t first = work->reserved * r->s->rules.tile_tokens;
    uint64_t end = first + r->s->rules.tile_tokens;
    uint64_t count = (uint64_t)r->sequences[work->params[0]]->query_count;
    return (uint32_t)(((end < count ? end : count) - first) * r->s->rules.group);
}

// One row over the KV tokens [from, to): the state and acc[dim], summed in the order of tokens.
static void attend_row(const run *r, const ptowsp_work *work, uint32_t row, uint64_t from,
                       uint64_t to, ptowsp_partial *state, float *acc) {
    const sequence *one = r->sequences[work->params[0]];
    const reference_rules *rules = &r->s->rules;
    size_t dim = r->s->dim, heads = (size_t)rules->kv_head_count, head = work->params[1];
    size_t token = work->reserved * rules->tile_tokens + row / rules->group;
    const float *q =
        one->queries + ((token * heads + head) * rules->group + row % rules->group) * dim;
    float scores[KV_MAX];
    state->m = -INFINITY;
    for (uint64_t t = from; t < to; t++) {
        const float *k = one->keys + (t * heads + head) * dim;
        float dot = 0;
        for (size_t d = 0; d < dim; d++) {
            dot += q[d] * k[d];
        }
        scores[t - from] = dot;
        state->m = dot > state->m ? dot : state->m;
    }
    state->l = 0;
    memset(acc, 0, dim * sizeof(float));
    for (uint64_t t = from; t < to; t++) {
        const float *v = one->values + (t * heads + head) * dim;
        float p = expf(scores[t - from] - state->m);
        state->l += p;
        for (size_t d = 0; d < dim; d++) {
            acc[d] += p * v[d];
        }
    }
}

static void attend(const ptowsp_work *work, uint32_t lane, void *user) {
    const run *r = (const run *)user;
    const sequence *one = r->sequences[work->params[0]];
    assert_true(ptowsp_work_is_valid(work));
    lane_delay((uint64_t)(work - r->plan->units), lane % 2 == 0);
    for (uint32_t row = 0; row < run_rows(r, work); row++) {
        uint64_t begin, end, from = ptowsp_work_kv_start(work), to = ptowsp_work_kv_end(work);
        uint64_t token = work->reserved * r->s->rules.tile_tokens + row / r->s->rules.group;
        reference_sees(&r->s->rules, (uint64_t)one->kv, (uint64_t)one->query_count, token, &begin,
                       &end);
        from = from < begin ? begin : from;
        to = to < end ? to : end;
        ptowsp_partial state;
        float acc[DIM_MAX];
        attend_row(r, work, row, from, from < to ? to : from, &state, acc);
        if (ptowsp_work_is_whole(work)) {
            float *out = run_row(r, work, row);
            out[r->s->dim] = ptowsp_merge_finish(&state, acc, r->s->dim, out);
        } else {
            uint32_t slot = ptowsp_work_slot(work);
            ptowsp_attention_states(&r->scratch, slot)[row] = state;
            memcpy(ptowsp_attention_accs(&r->scratch, slot) + (size_t)row * r->s->dim, acc,
                   r->s->dim * sizeof(float));
        }
    }
}

static void merge(const ptowsp_work *work, uint32_t lane, void *user) {
    const run *r = (const run *)user;
    (void)lane;
    assert_true(ptowsp_work_is_valid(work));
    uint32_t slot = ptowsp_work_slot_first(work), count = ptowsp_work_slot_count(work);
    for (uint32_t row = 0; row < run_rows(r, work); row++) {
        float *out = run_row(r, work, row), again[DIM_MAX];
        out[r->s->dim] = ptowsp_merge_partials(ptowsp_attention_states(&r->scratch, slot) + row,
                                               ptowsp_attention_accs(&r->scratch, slot) +
                                                   (size_t)row * r->s->dim,
                                               count, r->scratch.rows, r->s->dim, out);
        float lse = ptowsp_attention_merge_row(&r->scratch, work, row, again);
        assert_memory_equal(&lse, &out[r->s->dim], sizeof(float));
        assert_memory_equal(again, out, r->s->dim * sizeof(float));
    }
}

// -- ways of running ------------------------------------------------------------------------------

typedef struct worker {
    const ptowsp_attention_plan *plan;
    const ptowsp_attention_job *job;
    run *r;
    uint32_t number, count;
    bool is_merging;
} worker;

// Every count-th lane, by the lists of the plan.
static void *worker_lanes(void *arg) {
    const worker *w = (const worker *)arg;
    for (uint32_t lane = w->number; lane < w->plan->lane_count; lane += w->count) {
        uint32_t count;
        const ptowsp_work *work = w->is_merging
                                      ? ptowsp_attention_lane_merges(w->plan, lane, &count)
                                      : ptowsp_attention_lane_units(w->plan, lane, &count);
        for (uint32_t i = 0; i < count; i++) {
            if (ptowsp_work_is_valid(&work[i])) {
                (w->is_merging ? merge : attend)(&work[i], lane, w->r);
            }
        }
    }
    return NULL;
}

static void *worker_job(void *arg) {
    const worker *w = (const worker *)arg;
    ptowsp_attention_run_worker(w->job, w->number, w->count);
    return NULL;
}

static void on_threads(void *(*fn)(void *), worker w) {
    pthread_t threads[THREADS_MAX];
    worker workers[THREADS_MAX];
    for (uint32_t i = 0; i < w.count; i++) {
        workers[i] = w;
        workers[i].number = i;
        if (i > 0) {
            assert_int_equal(pthread_create(&threads[i], NULL, fn, &workers[i]), 0);
        }
    }
    fn(&workers[0]);
    for (uint32_t i = 1; i < w.count; i++) {
        pthread_join(threads[i], NULL);
    }
}

// A run leaves its counters at zero: it is run twice, and the second run counts.
static void run_job(run *r, int way, uint32_t threads, ptowsp_context *context) {
    static const ptowsp_work_fn table[1] = {attend};
    size_t size = (size_t)ptowsp_attention_progress_size(r->plan);
    uint32_t *progress = (uint32_t *)test_alloc(size + 1, sizeof(uint32_t));
    progress[size] = 0xabcdef01u;
    const ptowsp_attention_job job = {.plan = r->plan,
                                      .table = table,
                                      .table_count = 1,
                                      .merge = merge,
                                      .user = r,
                                      .progress = progress,
                                      .is_stealing = way % 2 == 0};

    uint64_t index = 0;
    assert_ok(ptowsp_attention_job_check(&job, &index));
    for (int i = 0; i < 2; i++) {
        worker w = {r->plan, &job, r, 0, threads, false};
        switch (way) {
        case 1:
        case 2: assert_ok(ptowsp_attention_run_serial(&job, &index)); break;
        case 3:
        case 4: on_threads(worker_job, w); break;
        default: assert_ok(ptowsp_attention_run(context, &job)); break;
        }
        for (size_t j = 0; j < size; j++) {
            assert_int_equal(progress[j], 0);
        }
    }
    assert_true(progress[size] == 0xabcdef01u);
}

// Runs the plan of a batch in one of the ways: by lists, then as a job, with stealing if even.
static void run_plan(run *r, int way, uint32_t threads, ptowsp_context *context) {
    size_t rows = (size_t)r->plan->slot_count * r->plan->slot_rows;
    r->scratch.states = (ptowsp_partial *)test_alloc(rows, sizeof(ptowsp_partial));
    r->scratch.accs = (float *)test_alloc(rows * r->s->dim, sizeof(float));
    memset(r->scratch.states, 0xff, rows * sizeof(ptowsp_partial));  // not a number
    memset(r->scratch.accs, 0xff, rows * r->s->dim * sizeof(float));
    r->scratch.rows = r->plan->slot_rows;
    r->scratch.dim = r->s->dim;
    if (way == 0) {
        worker w = {r->plan, NULL, r, 0, threads, false};
        on_threads(worker_lanes, w);
        w.is_merging = true;
        on_threads(worker_lanes, w);
    } else {
        run_job(r, way, threads, context);
    }
}

static result result_make(const setting *s, const sequence *one) {
    result made;
    made.count =
        (size_t)one->query_count * (size_t)(s->rules.kv_head_count * s->rules.group) * (s->dim + 1);
    made.rows = (float *)test_alloc(made.count, sizeof(float));
    memset(made.rows, 0xff, made.count * sizeof(float));
    return made;
}

// Plans the sequences of the pool with these numbers, and runs the plan.
static void run_batch(const setting *s, const uint32_t *numbers, uint32_t count,
                      const ptowsp_attention_config *config, int way, uint32_t threads,
                      ptowsp_context *context, run *r) {
    int32_t kv[BATCH_MAX], queries[BATCH_MAX];
    memset(r, 0, sizeof *r);
    r->s = s;
    for (uint32_t i = 0; i < count; i++) {
        r->sequences[i] = &s->pool[numbers[i]];
        kv[i] = r->sequences[i]->kv;
        queries[i] = r->sequences[i]->query_count;
        r->results[i] = result_make(s, r->sequences[i]);
    }
    const ptowsp_attention_batch batch = {kv, queries, count};
    ptowsp_attention_sizes sizes;
    assert_ok(ptowsp_attention_size(&batch, config, &sizes, NULL));
    plan_buffer b = plan_buffer_of(&sizes, 0, true);
    assert_ok(ptowsp_attention_generate(&batch, config, &b.plan, NULL));
    r->plan = &b.plan;
    run_plan(r, way, threads, context);
    plan_buffer_free(&b);
}

// Any sequences of the pool, in any order, some of them twice; any lanes.
static uint32_t any_batch(uint64_t *random, uint32_t *numbers, ptowsp_attention_config *config,
                          uint32_t *speeds) {
    uint32_t count = test_random_u32(random, 1, BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = (uint32_t)(test_random(random) % POOL_MAX);
    }
    config->lane_count = test_random_u32(random, 1, 24);
    config->lane_speeds = random_one_in(random, 3) ? speeds : NULL;
    for (uint32_t i = 0; i < config->lane_count; i++) {
        speeds[i] = test_random_u32(random, i > 0 ? 0 : 1, 3);
    }
    return count;
}

// -- bits -----------------------------------------------------------------------------------------

TEST(attention__bits_do_not_depend_on_neighbours_batch_lanes_or_threads) {
    uint64_t random = test_seed(), split = 0;
    for (int round = 0; TEST_ROUNDS(round, 25); round++) {
        setting s;
        ptowsp_context *context = context_of_mode((size_t)round % MODE_COUNT);
        setting_make(&s, &random, PTOWSP_ATTENTION_INVARIANT);
        run alone[POOL_MAX], r;
        for (uint32_t i = 0; i < POOL_MAX; i++) {
            run_batch(&s, &i, 1, &s.config, 0, 1, context, &alone[i]);
        }
        for (int other = 0; other < 2 * WAY_COUNT; other++) {
            uint32_t numbers[BATCH_MAX], speeds[24];
            ptowsp_attention_config config = s.config;
            uint32_t count = any_batch(&random, numbers, &config, speeds);
            uint32_t threads = (uint32_t)(round + other) % THREADS_MAX + 1;
            run_batch(&s, numbers, count, &config, other % WAY_COUNT, threads, context, &r);
            for (uint32_t i = 0; i < count; i++) {
                const result *expected = &alone[numbers[i]].results[0];
                assert_memory_equal(r.results[i].rows, expected->rows,
                                    expected->count * sizeof(float));
                split += (uint64_t)s.pool[numbers[i]].kv > s.rules.chunk;
            }
        }
        test_release();
        ptowsp_context_destroy(context);
    }
    assert_met(split > 100);
}

// -- numbers --------------------------------------------------------------------------------------

// One row in double precision, and how far a float result may be from it.
static void row_in_double(const setting *s, const sequence *one, size_t token, size_t query_head,
                          double *out, double *bounds) {
    size_t dim = s->dim, heads = (size_t)s->rules.kv_head_count;
    size_t head = query_head / (size_t)s->rules.group;
    const float *q = one->queries + (token * heads * (size_t)s->rules.group + query_head) * dim;
    double scores[KV_MAX], m = -INFINITY, least = INFINITY, size = 0, l = 0, acc[DIM_MAX] = {0};
    double magnitude[DIM_MAX] = {0};
    uint64_t begin, end;
    reference_sees(&s->rules, (uint64_t)one->kv, (uint64_t)one->query_count, token, &begin, &end);
    for (uint64_t t = begin; t < end; t++) {
        double dot = 0, terms = 0;
        for (size_t d = 0; d < dim; d++) {
            double term = (double)q[d] * (double)one->keys[(t * heads + head) * dim + d];
            dot += term;
            terms += fabs(term);
        }
        scores[t] = dot;
        m = dot > m ? dot : m;
        least = dot < least ? dot : least;
        size = terms > size ? terms : size;
    }
    for (uint64_t t = begin; t < end; t++) {
        double p = exp(scores[t] - m);
        l += p;
        for (size_t d = 0; d < dim; d++) {
            double v = (double)one->values[(t * heads + head) * dim + d];
            acc[d] += p * v;
            magnitude[d] += p * fabs(v);
        }
    }
    // Of a weight: two scores with dim roundings each, exp, sums over the tokens, merges.
    double rounding = ULP * (2 * (double)dim * size + (m - least) + (double)(end - begin) + 60);
    for (size_t d = 0; d < dim; d++) {
        out[d] = acc[d] / l;
        bounds[d] = 2 * rounding * magnitude[d] / l;
    }
    out[dim] = m + log(l);
    bounds[dim] = rounding + 4 * ULP * fabs(out[dim]);
}

static void require_numbers(const setting *s, const sequence *one, const result *got) {
    size_t heads = (size_t)(s->rules.kv_head_count * s->rules.group);
    for (size_t token = 0; token < (size_t)one->query_count; token++) {
        for (size_t head = 0; head < heads; head++) {
            double expected[DIM_MAX + 1], bounds[DIM_MAX + 1];
            row_in_double(s, one, token, head, expected, bounds);
            const float *row = got->rows + (token * heads + head) * (s->dim + 1);
            for (size_t d = 0; d <= s->dim; d++) {
                if (!(fabs((double)row[d] - expected[d]) <= bounds[d])) {
                    fail_msg("token %zu of %d, head %zu, dim %zu: %.9g, not %.9g +- %.3g", token,
                             one->query_count, head, d, (double)row[d], expected[d], bounds[d]);
                }
            }
        }
    }
}

TEST(attention__numbers_are_those_of_double_precision) {
    uint64_t random = test_seed() + 1;
    for (int round = 0; TEST_ROUNDS(round, 60); round++) {
        setting s;
        ptowsp_context *context = context_of_mode((size_t)round % MODE_COUNT);
        setting_make(&s, &random,
                     round % 4 ? PTOWSP_ATTENTION_BALANCED : PTOWSP_ATTENTION_INVARIANT);
        uint32_t numbers[BATCH_MAX], speeds[24];
        ptowsp_attention_config config = s.config;
        uint32_t count = any_batch(&random, numbers, &config, speeds);
        run first, r;
        for (int way = 0; way < WAY_COUNT; way++) {
            uint32_t threads = test_random_u32(&random, 1, THREADS_MAX);
            run_batch(&s, numbers, count, &config, way, threads, context, way ? &r : &first);
            for (uint32_t i = 0; i < count; i++) {
                if (way == 0) {
                    require_numbers(&s, first.sequences[i], &first.results[i]);
                } else {
                    assert_memory_equal(r.results[i].rows, first.results[i].rows,
                                        first.results[i].count * sizeof(float));
                }
            }
        }
        test_release();
        ptowsp_context_destroy(context);
    }
}

// A window of two tokens on both sides of a chunk's end. A whole chunk costs 2^24 * 2^30 of the least
// cost, which is 2^10 of the grid: 2^64.
TEST(attention__chunks_may_cost_more_than_all_that_is_seen) {
    const int32_t lengths[] = {(1 << 24) + 1};
    const ptowsp_attention_batch batch = {lengths, NULL, 1};
    ptowsp_attention_config c = {.kv_head_count = 1,
                                 .lane_count = 2,
                                 .mode = PTOWSP_ATTENTION_INVARIANT,
                                 .window = 2,
                                 .chunk = 1 << 24,
                                 .grain = 1,
                                 .cost.per_token = 1 << 30,
                                 .cost.per_merged_row = 1};
    ptowsp_work units[2], merges[1];
    uint32_t unit_begin[3], merge_begin[3];
    ptowsp_attention_plan plan = {
        .units = units, .merges = merges, .unit_begin = unit_begin, .merge_begin = merge_begin};
    plan.unit_capacity = plan.slot_capacity = 2;
    plan.merge_capacity = 1;
    assert_ok(ptowsp_attention_generate(&batch, &c, &plan, NULL));
    assert_int_equal(unit_begin[1], 1);
    assert_int_equal(units[0].params[2], (1 << 24) - 1);
    assert_int_equal(units[0].params[3], 1);
    assert_int_equal(units[1].params[3], 1);
    assert_ok(ptowsp_attention_check(&batch, &c, &plan, NULL));
}
