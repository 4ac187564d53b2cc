// Emitted trees of programs over plans do what the library does: units and merges of all lanes, and
// of each lane; processes for the lanes of a plan; units of chunk plans; plans with descriptors that
// are not valid, empty ones, and those that are refused; plans that are made of lengths, which a tree
// does on its AICPU. See npu_equal.h for how it is run.

#include "npu_trees.h"

enum { UNIT_MAX = 24, LANE_MAX = 5, SLOT_MAX = 24, REQUESTS = 4, TOKENS = 40, TIERS = 3 };

// -- kernels --------------------------------------------------------------------------------------

PTOWSP_SOURCE(
    plan_source,

    // A fold, so that order matters.
    static ptowsp_cycles plan_unit(const ptowsp_task *task, void *user) {
        const int64_t *kv = (const int64_t *)task->tiles[0].data;
        int64_t *out = (int64_t *)task->tiles[1].data;
        uint64_t sum = ptowsp_task_scalar(task, 1) + (uint64_t)ptowsp_task_rows(task, 0);
        (void)user;
        for (uint64_t i = 0; i < ptowsp_task_scalar(task, 0); i++) {
            sum = sum * 31 + (uint64_t)kv[i] + 7;
        }
        *out = (int64_t)(sum + (uint64_t)*out * 3);
        return 1 + (ptowsp_cycles)ptowsp_task_scalar(task, 0);
    }

    static ptowsp_cycles plan_merge(const ptowsp_task *task, void *user) {
        const int64_t *states = (const int64_t *)task->tiles[0].data;
        int64_t *out = (int64_t *)task->tiles[1].data;
        uint64_t sum = ptowsp_task_scalar(task, 1);
        (void)user;
        for (uint64_t i = 0; i < ptowsp_task_scalar(task, 0); i++) {
            sum = sum * 37 + (uint64_t)states[i];
        }
        *out = (int64_t)sum;
        return 10 + (ptowsp_cycles)ptowsp_task_scalar(task, 0);
    })

// -- programs -------------------------------------------------------------------------------------

typedef enum which { FLAT, BY_LANE, PROCESSES, WORK } which;

typedef struct subject {
    npu_tree t;
    ptowsp_attention_plan plan;
    ptowsp_work unit_items[UNIT_MAX], merge_items[UNIT_MAX];
    uint32_t unit_begin[LANE_MAX + 1], merge_begin[LANE_MAX + 1];
    int64_t kv_data[REQUESTS * TOKENS], state_data[SLOT_MAX], out_data[REQUESTS];
    int64_t kv_begin[REQUESTS];
} subject;

#define KERNEL "(axes 0, in in i64 ? x 1, inout out i64 1 x 1, length i64, salt i64) vector\n"

// The task of a unit, by blanks before it: a kernel for each tier, parts to their slots or elsewhere.
#define UNIT_TASK(kernel, out)                                                                     \
    "task " kernel "() in = \"kv cache\" at (kv_begin[kv.request[u]] + kv.kv_start[u], 0)"         \
    " up to max(kv.kv_len[u], 1) rows of edge x 1 out = " out " length = kv.token_count[u]"        \
    " salt = kv.expert[u] * 100 + (kv.tile[u] + u)\n"
#define UNIT_OF_TIER(in, tier, kernel, part)                                                       \
    in "when kv.tier[u] == " tier "\n" in "  when (kv.flags[u] & 3) == 3\n" in                     \
       "    " UNIT_TASK(kernel, "out at (kv.request[u], 0)") in "  otherwise\n" in                 \
                                                                "    " UNIT_TASK(kernel, part)
#define UNIT(in, part)                                                                             \
    UNIT_OF_TIER(in, "0", "small", part)                                                           \
    UNIT_OF_TIER(in, "1", "middle", part)                                                          \
    UNIT_OF_TIER(in, "2", "large", part)
#define SLOT "kv.slot at (kv.slot[u], 0)"
#define MERGE                                                                                      \
    "task merge() in = kv.slot at (kv.merges.slot_first[x], 0)"                                    \
    " up to kv.merges.slot_count[x] rows of edge x 1 out = out at (kv.merges.request[x], 0)"       \
    " length = kv.merges.slot_count[x] salt = x\n"

// A tensor has the name of a field: fields of a plan do not get into its way.
static const char declarations[] = "module plans slots 8\n"
                                   "axis kv plan\n"
                                   "%s"
                                   "array kv_begin i64\n"
                                   "tensor \"kv cache\" i64 [?, 1] global\n"
                                   "tensor kv.slot i64 [?, 1] global\n"
                                   "tensor out i64 [?, 1] global\n"
                                   "kernel small" KERNEL "kernel middle" KERNEL
                                   "kernel large" KERNEL "kernel merge" KERNEL "workload main\n";

// clang-format off
static const char *const statements[] = {
    [FLAT] =
        "  parallel u in kv\n"
        UNIT("    ", SLOT)
        "  parallel x in merges of kv\n"
        "    " MERGE,
    [BY_LANE] =
        "  parallel lane in lanes of kv\n"
        "    for_each u in kv[lane]\n"
        UNIT("      ", SLOT)
        "  for_each lane in lanes of kv\n"
        "    for_each x in merges of kv[lane]\n"
        "      " MERGE
        "    slot_set 2 = lane + slot_i64[2]\n",
    [PROCESSES] =
        "  pipeline attention\n"
        "    channel done depth 2 latency 3\n"
        "    process attend replicas lane in lanes of kv produces done\n"
        "      for_each u in kv[lane]\n"
        UNIT("        ", SLOT)
        "        send done(u64(kv.lane[u]))\n"
        "    process merge consumes done\n"
        "      consume token from done\n"
        "        slot_set 0 = token\n"
        "      for_each x in merges of kv\n"
        "        " MERGE,
    [WORK] =
        "  parallel u in kv\n"
        UNIT("    ", "out at (kv.request[u], 0)")
        "  slot_set 1 = size(kv)\n"};
// clang-format on

static void subject_make(subject *s, which kind, const char *directives) {
    static const char *const names[] = {"small", "middle", "large", "merge"};
    ptowsp_parse_kernel kernels[4] = {0};
    for (int i = 0; i < 4; i++) {
        kernels[i].name = names[i];
        kernels[i].fn = i < 3 ? plan_unit : plan_merge;
        kernels[i].source.text = plan_source;
        kernels[i].source.fn = i < 3 ? "plan_unit" : "plan_merge";
    }
    const char *head = textf(
        declarations, kind == WORK ? "" : "axis kv plan, its merges\naxis kv plan, its lanes\n");
    npu_tree_make(&s->t, textf("%s%s", head, statements[kind]), directives, kernels, 4);
}

static const char three_lanes[] = "  dispatch plan over 3 lanes\n  window stall at 5 tasks\n";

// -- plans ----------------------------------------------------------------------------------------

// A random plan that is none of a batch: any units and merges, some of them not valid, in any lanes.
static void lanes_random(uint32_t *begin, uint32_t lanes, uint32_t count, uint64_t *random) {
    begin[0] = 0;
    for (uint32_t i = 1; i <= lanes; i++) {
        begin[i] = i == lanes ? count
                              : (uint32_t)test_random_in(random, begin[i - 1],
                                                         (begin[i - 1] + count + 1) / 2);
        begin[i] = begin[i] > count ? count : begin[i];
    }
}

static void plan_random(subject *s, uint64_t *random) {
    uint32_t units = (uint32_t)test_random_in(random, 0, UNIT_MAX);
    uint32_t merges = (uint32_t)test_random_in(random, 0, 6);
    uint32_t lanes = (uint32_t)test_random_in(random, 1, LANE_MAX);
    for (uint32_t i = 0; i < units; i++) {
        uint32_t start = (uint32_t)test_random_in(random, 0, TOKENS - 1);
        uint32_t length = (uint32_t)test_random_in(random, 0, TOKENS - start);
        uint8_t flags = (uint8_t)test_random_in(random, 0, 3);
        flags |= test_random_in(random, 0, 4) ? 0 : PTOWSP_WORK_INVALID;
        uint32_t slot =
            flags == 3 ? PTOWSP_NO_SLOT : (uint32_t)test_random_in(random, 0, SLOT_MAX - 1);
        ptowsp_work unit = {slot,
                            (uint8_t)test_random_in(random, 0, TIERS - 1),
                            flags,
                            (uint16_t)test_random_in(random, 0, 9),
                            {(uint32_t)test_random_in(random, 0, REQUESTS - 1),
                             (uint32_t)test_random_in(random, 0, 7), start, length}};
        s->unit_items[i] = unit;
    }
    for (uint32_t i = 0; i < merges; i++) {
        uint32_t first = (uint32_t)test_random_in(random, 0, SLOT_MAX - 4);
        uint8_t flags = test_random_in(random, 0, 4) ? 0 : PTOWSP_WORK_INVALID;
        ptowsp_work merge = {i,
                             0,
                             flags,
                             0,
                             {(uint32_t)test_random_in(random, 0, REQUESTS - 1), 0, first,
                              (uint32_t)test_random_in(random, 1, 4)}};
        s->merge_items[i] = merge;
    }
    lanes_random(s->unit_begin, lanes, units, random);
    lanes_random(s->merge_begin, lanes, merges, random);
    s->plan = (ptowsp_attention_plan){.units = s->unit_items,
                                      .merges = s->merge_items,
                                      .unit_begin = s->unit_begin,
                                      .merge_begin = s->merge_begin,
                                      .unit_capacity = UNIT_MAX,
                                      .merge_capacity = UNIT_MAX,
                                      .unit_count = units,
                                      .merge_count = merges,
                                      .lane_count = lanes};
    if (merges == 0) {  // as MoE plans are bound
        s->plan.merges = NULL;
        s->plan.merge_begin = NULL;
        s->plan.merge_capacity = 0;
    }
}

static void bind_memory(subject *s) {
    for (int i = 0; i < REQUESTS; i++) {
        s->kv_begin[i] = i * TOKENS;
    }
    for (int i = 0; i < REQUESTS * TOKENS; i++) {
        s->kv_data[i] = i * 17 % 101 - 50;
    }
    ptowsp_buffer buffer = {.data = s->kv_data, .rank = 2, .shape = {REQUESTS * TOKENS, 1}};
    assert_ok(ptowsp_run_bind_array(s->t.run, "kv_begin", PTOWSP_I64, s->kv_begin, REQUESTS));
    assert_ok(ptowsp_run_bind_tensor(s->t.run, "kv cache", &buffer));
    buffer.data = s->state_data;
    buffer.shape[0] = SLOT_MAX;
    assert_ok(ptowsp_run_bind_tensor(s->t.run, "kv.slot", &buffer));
    buffer.data = s->out_data;
    buffer.shape[0] = REQUESTS;
    assert_ok(ptowsp_run_bind_tensor(s->t.run, "out", &buffer));
}

// Runs what is bound in the library and in the tree.
static void compare(subject *s, uint64_t random, const char *status) {
    const npu_block blocks[] = {{.data = s->kv_data, .size = sizeof s->kv_data},
                                {.data = s->state_data, .size = sizeof s->state_data},
                                {.data = s->out_data, .size = sizeof s->out_data}};
    npu_tree_run(&s->t, random, blocks, 3, status);
}

static void bind_plan(const subject *s) {
    if (ptowsp_run_bind_plan(s->t.run, "kv", &s->plan) != PTOWSP_OK) {
        NPU_FAIL("%s", ptowsp_context_error(s->t.context).text);
    }
}

static void compare_random(subject *s, uint64_t seed) {
    bind_memory(s);
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t random = seed + i;
        plan_random(s, &random);
        bind_plan(s);
        compare(s, random, "OK");
    }
}

// -- tests ----------------------------------------------------------------------------------------

static void npu_plan__trees_loop_over_the_same_units(void **state) {
    which kind = *(const which *)*state;
    static subject s;
    npu_doing("plans, kind", (unsigned long long)kind);
    subject_make(&s, kind, three_lanes);
    if (s.t.npu) {
        compare_random(&s, test_seed());
    }
    npu_tree_free(&s.t);
}

static void npu_plan__trees_refuse_what_the_library_refuses(void **state) {
    (void)state;
    static subject s;
    uint64_t random = 3;
    npu_doing("plans, errors", 0);
    subject_make(&s, BY_LANE, "");
    if (s.t.npu) {
        bind_memory(&s);
        compare(&s, 1, "UNBOUND");
        do {
            plan_random(&s, &random);
        } while (s.plan.unit_count < 4 || s.plan.lane_count < 2);
        bind_plan(&s);
        s.unit_begin[1] = s.plan.unit_count + 1;
        compare(&s, 2, "INVALID_PARAMS");
        s.unit_begin[1] = 0;
        s.unit_begin[0] = 1;
        compare(&s, 3, "INVALID_PARAMS");
        s.unit_begin[0] = 0;
        s.unit_items[s.plan.unit_count - 1].params[0] = REQUESTS;  // no kv_begin
        s.unit_items[s.plan.unit_count - 1].flags = 0;
        compare(&s, 4, "INVALID_PARAMS");
        s.unit_items[s.plan.unit_count - 1].params[0] = 0;
        s.merge_items[0] = (ptowsp_work){0, 0, 0, 0, {0, 0, 0, 0}};  // no slots: no rows
        s.plan.merges = s.merge_items;
        s.plan.merge_begin = s.merge_begin;
        s.plan.merge_count = s.plan.merge_capacity = 1;
        for (uint32_t i = 0; i <= s.plan.lane_count; i++) {
            s.merge_begin[i] = i > 0;
        }
        bind_plan(&s);
        compare(&s, 5, "INVALID_PARAMS");
    }
    npu_tree_free(&s.t);
}

static void npu_plan__trees_take_units_of_chunk_plans(void **state) {
    (void)state;
    static subject s;
    npu_doing("plans, work", 0);
    subject_make(&s, WORK, "");
    if (s.t.npu) {
        bind_memory(&s);
        for (uint64_t i = 0; i < 6; i++) {
            uint64_t random = i;
            plan_random(&s, &random);
            assert_ok(ptowsp_run_bind_work(s.t.run, "kv", s.unit_items, s.plan.unit_count));
            compare(&s, random, "OK");
        }
    }
    npu_tree_free(&s.t);
}

// -- batches --------------------------------------------------------------------------------------

static const ptowsp_tier batch_tiers[TIERS] = {{0, 1, 10}, {1, 11, 25}, {2, 26, TOKENS}};

typedef struct batch_of {
    int32_t lengths[REQUESTS], queries[REQUESTS];
    uint32_t speeds[LANE_MAX];
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_sizes capacity;
} batch_of;

static void bind_batch(const subject *s, const batch_of *b, bool has_capacity) {
    if (ptowsp_run_bind_batch(s->t.run, "kv", &b->batch, &b->config,
                              has_capacity ? &b->capacity : NULL) != PTOWSP_OK) {
        NPU_FAIL("%s", ptowsp_context_error(s->t.context).text);
    }
}

static void lengths_random(batch_of *b, uint64_t *random) {
    for (int i = 0; i < REQUESTS; i++) {
        b->lengths[i] = (int32_t)test_random_in(random, 0, TOKENS);
        b->lengths[i] = test_random_in(random, 0, 4) ? b->lengths[i] : 0;
        b->queries[i] = (int32_t)test_random_in(random, 0, 3);
        b->queries[i] = b->queries[i] < b->lengths[i] ? b->queries[i] : b->lengths[i];
    }
}

// With at most SLOT_MAX slots: lanes - 1 splits, or 5 chunks of each of 4 sequences.
static void batch_random(batch_of *b, uint64_t *random) {
    const ptowsp_attention_limits limits = {
        .sequence_count_max = REQUESTS, .kv_length_max = TOKENS, .query_length_max = 3};
    memset(b, 0, sizeof *b);
    lengths_random(b, random);
    for (int i = 0; i < LANE_MAX; i++) {
        b->speeds[i] = (uint32_t)test_random_in(random, i > 0 ? 0 : 1, 4);
    }
    b->batch.kv_lengths = b->lengths;
    b->batch.query_lengths = test_random_in(random, 0, 1) ? b->queries : NULL;
    b->batch.sequence_count = (uint32_t)test_random_in(random, 1, REQUESTS);
    ptowsp_attention_config *c = &b->config;
    c->mode = test_random_in(random, 0, 2) ? PTOWSP_ATTENTION_BALANCED : PTOWSP_ATTENTION_INVARIANT;
    c->kv_head_count = c->mode == PTOWSP_ATTENTION_BALANCED ? 2 : 1;
    c->chunk = 8;
    c->lane_count = (uint32_t)test_random_in(random, 1, LANE_MAX);
    c->lane_speeds = test_random_in(random, 0, 1) ? b->speeds : NULL;
    c->is_causal = test_random_in(random, 0, 1) != 0;
    c->window = test_random_in(random, 0, 2) ? 0 : 17;
    c->cost.per_token = 1.0;
    c->cost.per_merged_row = test_random_in(random, 0, 1) ? 0.5 : 0.0;
    c->tiers = batch_tiers;
    c->tier_count = TIERS;
    assert_ok(ptowsp_attention_bound(c, &limits, &b->capacity, NULL));
    assert_true(b->capacity.slot_count <= SLOT_MAX);
}

// Each batch is planned by the library once, and on the AICPU of the tree for each way to run it;
// then the lengths change, and it is not bound again.
static void npu_plan__trees_plan_batches_on_the_aicpu(void **state) {
    which kind = *(const which *)*state;
    static subject s;
    static batch_of b;
    npu_doing("plans, batches, kind", (unsigned long long)kind);
    subject_make(&s, kind, three_lanes);
    if (s.t.npu) {
        bind_memory(&s);
        uint64_t tasks = 0;
        for (uint64_t i = 0; i < 12; i++) {
            uint64_t random = test_seed() + i;
            batch_random(&b, &random);
            bind_batch(&s, &b, i % 2);
            compare(&s, random, "OK");
            tasks += ptowsp_run_result(s.t.run)->task_count;
            lengths_random(&b, &random);
            compare(&s, random, "OK");
            tasks += ptowsp_run_result(s.t.run)->task_count;
        }
        assert_true(tasks > 24 * 4);
        // On paper: 40 tokens of one head are 4 units of 10, and a merge; two of 20 are 4 as well,
        // and two merges; four of 10 are whole. The plan of before is another one.
        static const int32_t lengths[3][REQUESTS] = {{40}, {20, 0, 20}, {10, 10, 10, 10}};
        static const uint64_t expected[3] = {5, 6, 4};
        uint64_t other = 5;
        plan_random(&s, &other);
        bind_plan(&s);
        compare(&s, 5, "OK");
        memset(&b, 0, sizeof b);
        b.batch.kv_lengths = b.lengths;
        b.batch.sequence_count = REQUESTS;
        b.config.kv_head_count = 1;
        b.config.lane_count = 4;
        b.config.cost.per_token = 1.0;
        bind_batch(&s, &b, false);
        for (int i = 0; i < 3; i++) {
            memcpy(b.lengths, lengths[i], sizeof b.lengths);
            compare(&s, (uint64_t)i, "OK");
            assert_int_equal(ptowsp_run_result(s.t.run)->task_count,
                             kind == WORK ? 4 : expected[i]);  // or without the merges
        }
    }
    npu_tree_free(&s.t);
}

static void npu_plan__trees_fail_as_the_library_where_no_plan_can_be_made(void **state) {
    (void)state;
    static subject s;
    static batch_of b;
    uint64_t random = 7;
    npu_doing("plans, batches that cannot be", 0);
    subject_make(&s, BY_LANE, "");
    if (s.t.npu) {
        bind_memory(&s);
        do {
            batch_random(&b, &random);
        } while (b.batch.query_lengths || b.config.mode != PTOWSP_ATTENTION_BALANCED ||
                 b.batch.sequence_count < 3);
        bind_batch(&s, &b, true);
        b.lengths[2] = -3;
        compare(&s, 1, "INVALID_PARAMS");
        b.lengths[2] = TOKENS + 1;
        compare(&s, 2, "UNSUPPORTED_SIZE");
        b.lengths[0] = b.lengths[1] = b.lengths[2] = TOKENS;
        compare(&s, 3, "OK");
        b.capacity.unit_count = 5;  // of 6 tiles
        bind_batch(&s, &b, true);
        compare(&s, 4, "BUFFER_OVERFLOW");
        bind_batch(&s, &b, false);
        compare(&s, 5, "OK");
    }
    npu_tree_free(&s.t);
}

int main(void) {
    static which kinds[] = {FLAT, BY_LANE, PROCESSES, WORK};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(npu_plan__trees_loop_over_the_same_units, &kinds[0]),
        cmocka_unit_test_prestate(npu_plan__trees_loop_over_the_same_units, &kinds[1]),
        cmocka_unit_test_prestate(npu_plan__trees_loop_over_the_same_units, &kinds[2]),
        cmocka_unit_test_prestate(npu_plan__trees_loop_over_the_same_units, &kinds[3]),
        cmocka_unit_test_prestate(npu_plan__trees_plan_batches_on_the_aicpu, &kinds[0]),
        cmocka_unit_test_prestate(npu_plan__trees_plan_batches_on_the_aicpu, &kinds[1]),
        cmocka_unit_test_prestate(npu_plan__trees_plan_batches_on_the_aicpu, &kinds[2]),
        cmocka_unit_test_prestate(npu_plan__trees_plan_batches_on_the_aicpu, &kinds[3]),
        cmocka_unit_test(npu_plan__trees_fail_as_the_library_where_no_plan_can_be_made),
        cmocka_unit_test(npu_plan__trees_refuse_what_the_library_refuses),
        cmocka_unit_test(npu_plan__trees_take_units_of_chunk_plans),
    };
    return npu_run_tests("npu_plan", tests, COUNT_OF(tests));
}
