// Plans of every kind that programs bind, with each array that may be NULL or empty so, at all that
// reads what is bound: runs on a lane, on lanes, of time, of a device, of a saved program;
// fingerprints, exports, reports, decisions; emitted trees, recordings, and trees that check
// themselves with those.
//
// Each unit adds its length times its sequence's (or expert's) number + 1 to one element, each merge
// adds 1 to another: sums that do not depend on how a batch is cut.

#include "npu_cache.h"
#include "npu_fixture.h"
#include "npu_texts.h"

#include <sys/wait.h>

enum { LANES = 2, UNIT_MAX = 64, SLOTS = 64 };

PTOWSP_SOURCE(
    optional_source,

    static ptowsp_cycles add(const ptowsp_task *task, void *user) {
        (void)user;
        *(int64_t *)task->tiles[0].data += (int64_t)ptowsp_task_scalar(task, 0);
        return 1;
    })

// -- programs -------------------------------------------------------------------------------------

typedef struct subject {
    npu_fixture f;
    bool has_lanes;  // and merges, which work has not
    ptowsp_run *run, *loaded_run;
    ptowsp_program *loaded;
    ptowsp_npu *npu;
    char runner[1024];  // the tree's command
    char recording[160];
    int64_t sums[2];
} subject;

static const ptowsp_parse_kernel add_kernel = {
    .name = "add", .fn = add, .source = {.text = optional_source, .fn = "add"}};

static void good(const subject *s, ptowsp_status status) {
    test_ok(s->f.context, status);
}

static void saved_and_loaded(subject *s) {
    static char text[16384];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    const ptowsp_parse_desc desc = {.kernels = &add_kernel, .kernel_count = 1};
    good(s, ptowsp_program_save(s->f.context, s->f.m, NULL, ptowsp_output_to_buffer(&buffer)));
    good(s, ptowsp_program_load(s->f.context, text, buffer.length, &desc, &s->loaded, NULL));
    assert_ok(ptowsp_run_create(s->f.context, s->loaded, &s->loaded_run));
}

static void command(const char *format, ...) {
    char line[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (system(line) != 0) {
        fail_msg("%s", line);
    }
}

// The tree's library, and its command line linked to that, whose files are the same for both programs.
static void tree_make(subject *s) {
    static bool is_compiled;
    const char *named = getenv("CXX"), *compiler = named && *named ? named : "c++";
    char tree[128];
    snprintf(tree, sizeof tree, "%s/tree", s->f.directory);
    const ptowsp_npu_desc emit = {tree, true, true, PTOWSP_NPU_OWN, 0, 0, NULL};
    good(s, ptowsp_npu_emit(s->f.context, s->f.program, &emit));
    s->npu = npu_cache_build(s->f.context, s->f.program);
    for (int i = 0; i < 2 && !is_compiled; i++) {
        command("cd %s && %s -std=c++17 -O0 -pthread -Iinclude -Iaicpu -Ihost -c %s -o %s/main%d.o",
                tree, compiler, i ? "aicpu/wsp_core.cpp" : "host/main.cpp", npu_cache, i);
    }
    is_compiled = true;
    snprintf(s->runner, sizeof s->runner, "%s/run", s->f.directory);
    command("%s -pthread %s/main0.o %s/main1.o %s/libwsp_tree.so -Wl,-rpath,%s -o %s", compiler,
            npu_cache, npu_cache, ptowsp_npu_directory(s->npu), ptowsp_npu_directory(s->npu),
            s->runner);
}

static void subject_make(subject *s, bool has_lanes) {
    memset(s, 0, sizeof *s);
    npu_fixture_begin(&s->f);
    ptowsp_context_destroy(s->f.context);
    const ptowsp_context_desc context = {.threads = PTOWSP_THREADS_OWN, .lane_count = LANES};
    assert_ok(ptowsp_context_create(&context, &s->f.context));
    s->has_lanes = has_lanes;
    npu_parse(&s->f, npu_module(has_lanes ? "lanes" : "work_units"), &add_kernel, 1);
    npu_fixture_compile(&s->f, NULL);
    assert_ok(ptowsp_run_create(s->f.context, s->f.program, &s->run));
    saved_and_loaded(s);
    tree_make(s);
    snprintf(s->recording, sizeof s->recording, "%s/recording", s->f.directory);
}

static void subject_free(subject *s) {
    ptowsp_npu_destroy(s->npu);
    ptowsp_run_destroy(s->loaded_run);
    ptowsp_run_destroy(s->run);
    ptowsp_program_destroy(s->loaded);
    npu_fixture_free(&s->f);
}

// -- plans ----------------------------------------------------------------------------------------

// What is bound, and the sums that come of it.
typedef struct plan {
    const char *name;
    ptowsp_attention_plan bound;  // without lanes: work
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_sizes sizes;
    bool is_batch, has_capacity;
    int64_t units, merges;
} plan;

static ptowsp_work unit_items[UNIT_MAX], merge_items[UNIT_MAX];
static uint32_t unit_begin[LANES + 1], merge_begin[LANES + 1];
static double lane_costs[LANES];
static const int32_t kv_lengths[3] = {30, 4, 7}, query_lengths[3] = {1, 2, 1};
static const uint32_t lane_speeds[LANES] = {1, 3};
static const ptowsp_tier tiers[2] = {{0, 1, 10}, {1, 11, 40}};
static const uint32_t expert_counts[3] = {5, 0, 9}, expert_offsets[4] = {0, 5, 5, 14};

// The arrays of a plan that is made by hand. Without lists of lanes it is work.
enum { UNITS = 1, MERGES = 2, MERGE_LISTS = 4, COSTS = 8, LISTS = 16 };

// Units of lengths 10, 20 and 4 of sequences 0, 0 and 1: 10 + 20 + 2 * 4 = 38. A merge.
static void by_hand(plan *p, uint32_t arrays) {
    const ptowsp_work units[3] = {{0, 0, PTOWSP_WORK_FIRST, 0, {0, 0, 0, 10}},
                                  {1, 0, PTOWSP_WORK_LAST, 0, {0, 0, 10, 20}},
                                  {PTOWSP_NO_SLOT, 0, 3, 0, {1, 0, 0, 4}}};
    const ptowsp_work merge = {0, 0, 0, 0, {0, 0, 0, 2}};
    const bool has_units = arrays & UNITS, has_merges = arrays & MERGES;
    const uint32_t begin[LANES + 1] = {0, has_units ? 2 : 0, has_units ? 3 : 0};
    memcpy(unit_items, units, sizeof units);
    merge_items[0] = merge;
    memcpy(unit_begin, begin, sizeof begin);
    merge_begin[0] = 0;
    merge_begin[1] = merge_begin[2] = has_merges ? 1 : 0;
    p->bound = (ptowsp_attention_plan){.units = has_units ? unit_items : NULL,
                                       .merges = has_merges ? merge_items : NULL,
                                       .unit_begin = unit_begin,
                                       .merge_begin = arrays & MERGE_LISTS ? merge_begin : NULL,
                                       .lane_costs = arrays & COSTS ? lane_costs : NULL,
                                       .unit_capacity = has_units ? 3 : 0,
                                       .merge_capacity = has_merges ? 1 : 0,
                                       .unit_count = has_units ? 3 : 0,
                                       .merge_count = has_merges ? 1 : 0,
                                       .slot_count = 2,
                                       .lane_count = arrays & LISTS ? LANES : 0};
    p->units = has_units ? 38 : 0;
    p->merges = has_merges ? 1 : 0;
}

// 5 tokens of expert 0 and 9 of expert 2: 5 + 3 * 9 = 32.
static void moe_of(plan *p, const uint32_t *counts, const uint32_t *offsets, bool has_costs) {
    const ptowsp_moe_config config = {.expert_count = 3, .lane_count = LANES, .unit_tokens = 4};
    ptowsp_moe_plan made = {.units = unit_items,
                            .unit_begin = unit_begin,
                            .lane_costs = has_costs ? lane_costs : NULL,
                            .unit_capacity = UNIT_MAX};
    assert_ok(ptowsp_moe_generate(&(ptowsp_moe_batch){.counts = counts, .offsets = offsets},
                                  &config, &made, NULL));
    p->bound = ptowsp_moe_plan_units(&made);
    assert_null(p->bound.merge_begin);
    p->units = 5 + 3 * 9;
}
static void moe(plan *p) {
    moe_of(p, expert_counts, expert_offsets, true);
}
static void moe_without_costs(plan *p) {
    moe_of(p, expert_counts, expert_offsets, false);
}
static void moe_without_tokens(plan *p) {
    static const uint32_t zeros[4];
    moe_of(p, zeros, zeros, false);
    p->units = 0;
}

// The attention part of a prefix plan, whose units have segments in place of sequences: three
// requests of 8, 8 and 6 tokens that share the first 4. A shared segment is read once.
static void prefix(plan *p) {
    static const uint64_t block_begin[4] = {0, 1, 2, 3};
    static const uint64_t blocks[3] = {7, 7, 7};
    static const int32_t lengths[3] = {8, 8, 6};
    static uint64_t tree_block[4096], block[4096];
    const ptowsp_prefix_batch batch = {.attention = {lengths, NULL, 3},
                                       .block_ids = blocks,
                                       .block_begin = block_begin,
                                       .block_tokens = 4};
    const ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = LANES};
    const ptowsp_prefix_limits limits = {.request_count_max = 3, .block_count_max = 3};
    ptowsp_prefix_tree tree;
    ptowsp_prefix_sizes sizes;
    ptowsp_prefix_plan made;
    assert_ok(ptowsp_prefix_tree_place(&limits, tree_block, sizeof tree_block, &tree));
    assert_ok(ptowsp_prefix_build(&batch, &tree, NULL));
    assert_ok(ptowsp_prefix_size(&batch.attention, &config, &tree, &sizes, NULL));
    assert_ok(ptowsp_prefix_place(&sizes, block, sizeof block, &made));
    assert_ok(ptowsp_prefix_generate(&batch.attention, &config, &tree, &made, NULL));
    p->bound = made.attention;
    for (uint32_t i = 0; i < made.segment_count; i++) {
        p->units += (int64_t)(i + 1) * (made.segments[i].kv_end - made.segments[i].kv_begin);
    }
    p->merges = made.attention.merge_count;
}

// Sequences of 30, 4 and 7 tokens: 30 + 2 * 4 + 3 * 7 = 59, however they are cut.
static void batch_of(plan *p, bool has_all) {
    p->is_batch = true;
    p->batch.kv_lengths = kv_lengths;
    p->batch.sequence_count = 3;
    p->config.kv_head_count = 1;
    p->config.lane_count = LANES;
    p->units = 59;
    if (has_all) {
        const ptowsp_attention_limits limits = {
            .sequence_count_max = 3, .kv_length_max = 40, .query_length_max = 2};
        p->batch.query_lengths = query_lengths;
        p->config.lane_speeds = lane_speeds;
        p->config.tiers = tiers;
        p->config.tier_count = 2;
        p->has_capacity = true;
        assert_ok(ptowsp_attention_bound(&p->config, &limits, &p->sizes, NULL));
    }
    // Merges are what the planner says: it is not what is tested here.
    static uint64_t block[4096];
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan made;
    assert_ok(ptowsp_attention_size(&p->batch, &p->config, &sizes, NULL));
    assert_ok(ptowsp_attention_place(&sizes, block, sizeof block, &made));
    assert_ok(ptowsp_attention_generate(&p->batch, &p->config, &made, NULL));
    p->merges = made.merge_count;
}
static void batch(plan *p) {
    batch_of(p, true);
}
static void batch_of_lengths(plan *p) {
    batch_of(p, false);
}
static void batch_of_nothing(plan *p) {
    p->is_batch = true;
    p->config.kv_head_count = 1;
    p->config.lane_count = LANES;
}

static const struct {
    const char *name;
    uint32_t arrays;  // by hand, or
    void (*make)(plan *p);
} plans[] = {{"whole", UNITS | MERGES | MERGE_LISTS | COSTS | LISTS, NULL},
             {"without costs", UNITS | MERGES | MERGE_LISTS | LISTS, NULL},
             {"without merges", UNITS | MERGE_LISTS | COSTS | LISTS, NULL},
             {"without lists of merges", UNITS | COSTS | LISTS, NULL},
             {"without units", MERGE_LISTS | COSTS | LISTS, NULL},
             {"without anything", LISTS, NULL},
             {"moe", 0, moe},
             {"moe without costs", 0, moe_without_costs},
             {"moe without tokens", 0, moe_without_tokens},
             {"prefix", 0, prefix},
             {"batch", 0, batch},
             {"batch of lengths", 0, batch_of_lengths},
             {"batch of nothing", 0, batch_of_nothing},
             {"work", UNITS | MERGE_LISTS | COSTS, NULL},
             {"no work", MERGE_LISTS | COSTS, NULL}};

static void bind(subject *s, ptowsp_run *run, const plan *p) {
    ptowsp_buffer buffer = {.data = s->sums, .rank = 2, .shape = {2, 1}};
    memset(s->sums, 0, sizeof s->sums);
    const ptowsp_status status =
        p->is_batch ? ptowsp_run_bind_batch(run, "kv", &p->batch, &p->config,
                                            p->has_capacity ? &p->sizes : NULL)
        : p->bound.lane_count
            ? ptowsp_run_bind_plan(run, "kv", &p->bound)
            : ptowsp_run_bind_work(run, "kv", p->bound.units, p->bound.unit_count);
    good(s, status);
    assert_ok(ptowsp_run_bind_tensor(run, "sums", &buffer));
}

// -- readers --------------------------------------------------------------------------------------

static void check_sums(const subject *s, const plan *p, ptowsp_status status) {
    good(s, status);
    if (s->sums[0] != p->units || s->sums[1] != p->merges) {
        fail_msg("plan %s: %d and %d, not %d and %d", p->name, (int)s->sums[0], (int)s->sums[1],
                 (int)p->units, (int)p->merges);
    }
}

static void executed(subject *s, const plan *p) {
    bind(s, s->run, p);
    check_sums(s, p, ptowsp_run_execute(s->run, NULL));
}

static void executed_on_lanes(subject *s, const plan *p) {
    const ptowsp_run_options options = {.lane_count = LANES};
    bind(s, s->run, p);
    check_sums(s, p, ptowsp_run_execute(s->run, &options));
}

static void timed(subject *s, const plan *p) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const plan none = {.name = p->name};
    bind(s, s->run, p);
    check_sums(s, &none, ptowsp_run_execute(s->run, &options));
}

static void on_a_device(subject *s, const plan *p) {
    const ptowsp_device_desc desc = {.scheduler_count = 1, .vector_count = 2, .cube_count = 1};
    ptowsp_device *device;
    void *memory = NULL;
    bind(s, s->run, p);
    good(s, ptowsp_device_open(s->f.context, &desc, &device));
    good(s, ptowsp_device_alloc(device, "sums", sizeof s->sums, &memory));
    memset(memory, 0, sizeof s->sums);
    ptowsp_buffer buffer = {.data = memory, .rank = 2, .shape = {2, 1}};
    good(s, ptowsp_run_bind_tensor(s->run, "sums", &buffer));
    const ptowsp_status status = ptowsp_device_run(device, s->run, NULL);
    memcpy(s->sums, memory, sizeof s->sums);
    check_sums(s, p, status);
    bind(s, s->run, p);
    ptowsp_device_free(device, memory);
    good(s, ptowsp_device_close(device));
}

static void loaded(subject *s, const plan *p) {
    bind(s, s->loaded_run, p);
    check_sums(s, p, ptowsp_run_execute(s->loaded_run, NULL));
}

// Before and after, and of a run that expects it.
static void fingerprinted(subject *s, const plan *p) {
    ptowsp_fingerprint before, after;
    bind(s, s->run, p);
    assert_ok(ptowsp_run_fingerprint(s->run, &before));
    const ptowsp_fingerprint expected = {.bindings = before.bindings};
    assert_ok(ptowsp_run_expect(s->run, &expected));
    check_sums(s, p, ptowsp_run_execute(s->run, NULL));
    assert_ok(ptowsp_run_expect(s->run, NULL));
    assert_ok(ptowsp_run_fingerprint(s->run, &after));
    assert_true(before.bindings == after.bindings && after.bindings != 0);
}

static bool count_bytes(void *user, const void *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
    return true;
}

static bool count_decision(void *user, const ptowsp_decision *decision) {
    (void)decision;
    ++*(size_t *)user;
    return true;
}

static void reported(subject *s, const plan *p) {
    const ptowsp_run_options options = {.record_tasks = true};
    size_t size = 0, count = 0;
    const ptowsp_output output = {count_bytes, &size};
    bind(s, s->run, p);
    check_sums(s, p, ptowsp_run_execute(s->run, &options));
    for (int format = PTOWSP_EXPORT_PERFETTO; format <= PTOWSP_EXPORT_USAGE_CSV; format++) {
        good(s, ptowsp_run_export(s->run, (ptowsp_export_format)format, NULL, output));
    }
    for (int format = PTOWSP_REPORT_TEXT; format <= PTOWSP_REPORT_HTML; format++) {
        good(s, ptowsp_run_report(s->run, (ptowsp_report_format)format, NULL, NULL, 0, output));
    }
    ptowsp_run_print(s->run, output);
    assert_true(ptowsp_run_decisions(s->run, count_decision, &count));
    assert_true(size > 0 && count > 0);
}

// The plan itself, as its functions and readers of appendix A see it.
static void looked_at(subject *s, const plan *p) {
    ptowsp_attention_plan bound;
    size_t size = 0;
    const ptowsp_output text = {count_bytes, &size};
    uint32_t axis = 1, units = 0, merges = 0;
    bind(s, s->run, p);
    assert_ok(ptowsp_run_execute(s->run, NULL));
    assert_true(ptowsp_run_bound_plan(s->run, axis, &bound));
    for (uint32_t lane = 0; lane < bound.lane_count; lane++) {
        uint32_t count;
        ptowsp_attention_lane_units(&bound, lane, &count);
        units += count;
        ptowsp_attention_lane_merges(&bound, lane, &count);
        merges += count;
    }
    if (bound.lane_count) {
        assert_int_equal(units, bound.unit_count);
        assert_int_equal(merges, p->merges);
        ptowsp_attention_print(&bound, text);
        assert_true(size > 0);
    }
}

static void emitted(subject *s, const plan *p) {
    bind(s, s->run, p);
    check_sums(s, p, ptowsp_npu_execute(s->npu, s->run, NULL, NULL, 0, NULL));
}

// A recording of the run, with which the tree checks itself.
static void replayed(subject *s, const plan *p) {
    npu_remove_all(s->recording);
    bind(s, s->run, p);
    check_sums(s, p, ptowsp_npu_record(s->f.context, s->run, NULL, s->recording));
    command("%s --check %s > %s/said 2>&1 || { cat %s/said; exit 1; }", s->runner, s->recording,
            s->f.directory, s->f.directory);
}

// -- tests ----------------------------------------------------------------------------------------

static void check_plans(bool has_lanes) {
    static void (*const readers[])(subject *, const plan *) = {
        executed,      executed_on_lanes, timed,     on_a_device, loaded,
        fingerprinted, reported,          looked_at, emitted,     replayed};
    static subject s;
    subject_make(&s, has_lanes);
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        for (size_t k = 0; k < COUNT_OF(readers); k++) {
            plan p = {.name = plans[i].name};
            if (plans[i].make) {
                plans[i].make(&p);
            } else {
                by_hand(&p, plans[i].arrays);
            }
            if (has_lanes == (p.is_batch || p.bound.lane_count > 0)) {
                readers[k](&s, &p);
            }
        }
    }
    subject_free(&s);
}

SUITE_AROUND(npu_cache_begin, npu_cache_end)

TEST(npu_optional__plans_with_lanes_may_leave_out_arrays_everywhere) {
    check_plans(true);
}

TEST(npu_optional__work_may_be_no_units_everywhere) {
    check_plans(false);
}
