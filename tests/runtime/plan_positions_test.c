// Plans with positions that are bound to programs: a plan is refused if a unit has KV beside kv_start and
// kv_len, and is right otherwise. Then the tasks of its units, with what kernels hide, have every pair of
// a query and a KV token that it sees once, by a list of all pairs. Batches have none of the arrays: see
// plan_batch.facts.

#include "positions_sample.h"
#include "tests/plan/attention_fixture.h"

#include <stdio.h>

enum { KV_MAX = 60, QUERY_MAX = 9, HEADS = 3, FIELDS = 5 };

typedef struct fixture {
    positions_sample s;
    uint32_t tile_tokens;
    uint32_t counts[POSITIONS_SEQUENCES][HEADS][QUERY_MAX][KV_MAX];
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
} fixture;

static uint32_t queries_of(const positions_sample *s, uint32_t i) {
    return s->batch.query_lengths ? (uint32_t)s->queries[i] : 1;
}

// A kernel that hides, from each query token of its tile, the tokens that it does not see.
static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    uint32_t v[FIELDS];
    for (uint32_t i = 0; i < FIELDS; i++) {
        v[i] = (uint32_t)ptowsp_task_scalar(task, i);
    }
    const uint32_t request = v[0], head = v[1], first = v[2] * f->tile_tokens;
    const uint32_t queries = queries_of(&f->s, request);
    for (uint32_t j = first; j < first + f->tile_tokens && j < queries; j++) {
        for (uint32_t t = v[3]; t < v[3] + v[4]; t++) {
            f->counts[request][head][j][t] += positions_sees(&f->s, request, j, t);
        }
    }
    return 1;
}

// A program whose tasks are the units of the plan "kv".
static void fixture_make(fixture *f) {
    static const char text[] =
        "module decode\naxis kv plan\n"
        "kernel note(axes 0, request i64, head i64, tile i64, start i64, count i64) vector, 1 "
        "cycles\n"
        "workload main\n  for_each u in kv\n    task note() request = kv.request[u] "
        "head = kv.head[u] tile = kv.tile[u] start = kv.kv_start[u] count = kv.kv_len[u]\n";
    const ptowsp_parse_kernel kernel = {.name = "note", .fn = note, .user = f};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    memset(f, 0, sizeof *f);
    f->context = test_context(NULL);
    f->run = test_run_text(f->context, text, &attached, NULL, &f->m, &f->program);
}

static void check_counts(const fixture *f) {
    for (uint32_t i = 0; i < f->s.batch.sequence_count; i++) {
        for (uint32_t head = 0; head < f->s.config.kv_head_count; head++) {
            for (uint32_t j = 0; j < queries_of(&f->s, i); j++) {
                for (uint32_t t = 0; t < (uint32_t)f->s.kv[i]; t++) {
                    assert_int_equal(f->counts[i][head][j][t], positions_sees(&f->s, i, j, t));
                }
            }
        }
    }
}

// The first unit that has KV beside kv_start and kv_len, or none at all.
static uint32_t first_beside(const ptowsp_attention_plan *plan) {
    uint32_t i = 0;
    while (i < plan->unit_count && !(plan->units[i].flags & PTOWSP_WORK_POSITIONS)) {
        i++;
    }
    return i;
}

static void check_refused(const fixture *f, const ptowsp_attention_plan *plan, uint32_t unit) {
    char text[160];
    snprintf(text, sizeof text,
             "bind: unit %u of plan kv has %s, which programs do not do (positions)", unit,
             plan->units[unit].params[3] > 0 ? "sinks apart" : "no KV");
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, unit, text);
}

TEST(plan_positions__bound_plans_have_every_pair_once_or_are_refused) {
    enum { ARRAYS = 7 };
    static fixture f;
    uint64_t state = test_seed();
    uint32_t bound[ARRAYS] = {0}, refused = 0;
    fixture_make(&f);
    for (uint32_t round = 0; TEST_ROUNDS(round, 1500); round++) {
        positions_make(&f.s, KV_MAX, QUERY_MAX, &state);
        f.s.config.shares_merges = false;  // which are refused for themselves
        memset(f.counts, 0, sizeof f.counts);
        ptowsp_attention_plan plan = plan_make(&f.s.batch, &f.s.config);
        const uint32_t beside = first_beside(&plan);
        f.tile_tokens = plan.tile_tokens;
        const bool is_work = test_random(&state) % 2;  // the same units, without merges
        const ptowsp_status status =
            is_work ? ptowsp_run_bind_work(f.run, "kv", plan.units, plan.unit_count)
                    : ptowsp_run_bind_plan(f.run, "kv", &plan);
        if (beside < plan.unit_count) {
            assert_invalid(status);
            check_refused(&f, &plan, beside);
            refused++;
        } else {
            const ptowsp_attention_positions *p = &f.s.positions;
            const void *arrays[ARRAYS] = {p->query_first, p->query_stride, p->kv_first,
                                          p->kv_stride,   p->before,       p->after,
                                          p->sinks};
            assert_ok(status);
            assert_ok(ptowsp_run_execute(f.run, NULL));
            check_counts(&f);
            for (uint32_t i = 0; i < ARRAYS; i++) {
                bound[i] += arrays[i] != NULL;
            }
        }
        free(plan.units);
    }
    for (uint32_t i = 0; i < ARRAYS; i++) {
        assert_met(bound[i] > 20);
    }
    assert_met(refused > 20);
    test_destroy(f.run, f.program, f.m, f.context);
}

// A structure without arrays is as none, also if it has some, or is gone, when the run executes.
TEST(plan_positions__a_structure_without_arrays_is_not_kept) {
    static fixture f;
    fixture_make(&f);
    memset(&f.s, 0, sizeof f.s);
    f.s.kv[0] = 40;
    f.s.batch.kv_lengths = f.s.kv;
    f.s.batch.sequence_count = f.s.config.kv_head_count = f.s.config.lane_count = f.tile_tokens = 1;
    f.s.config.positions = &f.s.positions;
    assert_ok(ptowsp_run_bind_batch(f.run, "kv", &f.s.batch, &f.s.config, NULL));
    f.s.before[0] = 3;
    f.s.positions.before = f.s.before;
    f.s.positions.sequence_count = 1;
    assert_ok(ptowsp_run_execute(f.run, NULL));
    memset(&f.s.positions, 0, sizeof f.s.positions);
    ptowsp_attention_plan plan;
    assert_true(ptowsp_run_bound_plan(f.run, 1, &plan));
    assert_int_equal(plan.unit_count, 1);
    assert_int_equal(ptowsp_work_kv_start(&plan.units[0]), 0);
    assert_int_equal(ptowsp_work_kv_len(&plan.units[0]), 40);
    test_destroy(f.run, f.program, f.m, f.context);
}
