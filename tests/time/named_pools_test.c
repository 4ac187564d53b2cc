// Schedules with named pools: bounds, searches, their text; every refusal. tests/cases/pools.case has lanes,
// depths and stealing. A task of each kernel takes as many cycles as its argument says.

#include "schedule_fixture.h"

#define BY_COST ", cycles by a cost function\n"
#define HEAD                                                                                       \
    "module m\naxis two 2\ntensor data i64 [8, 12] global\nkernel work(axes 1) vector" BY_COST     \
    "kernel load(axes 1) vector" BY_COST "kernel mul(axes 1) cube" BY_COST                         \
    "kernel \"mix it\"(axes 1) mix" BY_COST                                                        \
    "kernel sum(axes 0, inout data i64 ? x ?) link, all_reduce, by ring\nworkload w\n"

#define EIGHT                                                                                      \
    "  combine\n    task work(10)\n    task load(4)\n    task load(3)\n    task mul(5)\n"          \
    "    task work(2)\n    task mul(1)\n    task work(1)\n    task load(2)\n"

static const char *const kernels[] = {"work", "load", "mul", "mix it", NULL};

// Lanes 0 and 1, 2, 3 and 4.
static const ptowsp_pool three[] = {{.name = "cores", .lane_count = 2},
                                    {.name = "dma", .lane_count = 1, .kernels = {"load"}},
                                    {.name = "cubes", .lane_count = 2, .kernels = {"mul"}}};

static ptowsp_schedule on_pools(const ptowsp_pool *pools, uint32_t count) {
    ptowsp_schedule s = {.pools = PTOWSP_POOLS_NAMED, .named_pools = pools, .pool_count = count};
    return s;
}

// -- results --------------------------------------------------------------------------------------

#define FIXTURE_TEST(name)                                                                         \
    TEST_MADE(name, fixture, f, fixture_begin(f, HEAD, EIGHT, kernels, 1), fixture_end(f))

// 13 cycles on 2 lanes, 9 on 1, 6 on 2.
FIXTURE_TEST(pools__are_in_bounds_reports_and_pictures) {
    static const char *const names[] = {"cores", "dma", "cubes"};
    static const uint32_t lanes[] = {2, 1, 2};
    static const uint64_t work[] = {7, 9, 3};
    ptowsp_schedule s = on_pools(three, 3);
    run(f, &s);
    ptowsp_run_bounds bounds;
    assert_ok(ptowsp_run_find_bounds(f->run, &bounds));
    assert_int_equal(bounds.pool_count, 3);
    assert_int_equal(bounds.largest_cycles, 9);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(bounds.pool_names[i], names[i]);
        assert_int_equal(bounds.pool_lanes[i], lanes[i]);
        assert_int_equal(bounds.work_cycles[i], work[i]);
    }
    const char *const parts[] = {"dma work / lanes",
                                 "\"work\":[{\"pool\":\"cores\",\"lanes\":2,\"cycles\":7},"
                                 "{\"pool\":\"dma\",\"lanes\":1,\"cycles\":9},"
                                 "{\"pool\":\"cubes\",\"lanes\":2,\"cycles\":3}]",
                                 "cubes work / lanes"};
    report_has(f->run, parts, "lane 4");
}

FIXTURE_TEST(pools__are_kept_by_a_search) {
    static const ptowsp_dispatch dispatches[] = {PTOWSP_DISPATCH_ROUND_ROBIN,
                                                 PTOWSP_DISPATCH_WORK_STEALING};
    static const ptowsp_ready orders[] = {PTOWSP_READY_FIFO};
    static const uint32_t lane_count = 2;
    ptowsp_search_result results[4];
    ptowsp_search_summary summary;
    ptowsp_search_desc desc = {.base = on_pools(three, 3),
                               .dispatches = dispatches,
                               .dispatch_count = 2,
                               .orders = orders,
                               .order_count = 1};
    assert_ok(ptowsp_schedule_search(f->context, f->m, &desc, results, 4, &summary));
    assert_int_equal(summary.result_count, 2);
    assert_int_equal(results[0].makespan_cycles, 10);
    assert_int_equal(results[1].makespan_cycles, 11);
    assert_int_equal(results[0].bounds.pool_lanes[2], 2);
    assert_null(results[0].bounds.pool_names[2]);
    ptowsp_search_print(results, &summary, TEST_TEXT(f->text));
    assert_non_null(strstr(f->text, "5 lanes"));
    desc.lane_counts = &lane_count;
    desc.lane_count_count = 1;
    test_fails(f->context, ptowsp_schedule_search(f->context, f->m, &desc, results, 4, &summary),
               PTOWSP_INVALID_PARAMS, "search: lane_counts are of one pool, but pools are named");
}

// -- text -----------------------------------------------------------------------------------------

static const ptowsp_pool written[] = {
    {.name = "cores", .lane_count = 2},
    {.name = "the 2nd", .lane_count = 1, .depth = 3, .kernels = {"load", "mix it"}},
    {.name = "cubes", .lane_count = 2, .kernels = {"mul"}}};

#define POOLS_TEXT                                                                                 \
    "  pool cores of 2 lanes\n  pool \"the 2nd\" of 1 lanes depth 3 for load, \"mix it\"\n"        \
    "  pool cubes of 2 lanes for mul\n"

FIXTURE_TEST(pools__are_in_the_text_of_schedules_and_saved_programs) {
    ptowsp_schedule s = on_pools(written, 3);
    ptowsp_schedule_print(&s, TEST_TEXT(f->text));
    assert_string_equal(f->text,
                        "schedule\n  issue dataflow\n  dispatch round robin over pools\n" POOLS_TEXT
                        "  dependencies structure overlap\n");
    save_and_load(f, &s);
    ptowsp_schedule read = ptowsp_program_read(f->program)->schedule;
    assert_int_equal(read.pools, PTOWSP_POOLS_NAMED);
    assert_null(read.named_pools);
    assert_int_equal(read.pool_count, 0);
    char text[1000];
    ptowsp_program_print_schedule(f->program, TEST_TEXT(text));
    assert_non_null(strstr(text, POOLS_TEXT));
}

// Saved programs whose lines of pools are replaced by a hand, and the checksum with them.
static void expect_unreadable(fixture *f, const char *lines, const char *error) {
    static char text[6000];
    char head[80];
    snprintf(text, sizeof text, "%s%sprogram w\nschedule\n  dispatch round robin over pools\n%s",
             HEAD, EIGHT, lines);
    ptowsp_parse_desc attach = {.default_cycles = 1};
    snprintf(head, sizeof head, "ptowsp program 1, %zu bytes, %016llx\n", strlen(text),
             (unsigned long long)ptowsp_hash(PTOWSP_HASH_START, text, strlen(text)));
    snprintf(f->text, sizeof f->text, "%s%s", head, text);
    assert_invalid(
        ptowsp_program_load(f->context, f->text, strlen(f->text), &attach, &f->program, NULL));
    assert_non_null(strstr(ptowsp_context_error(f->context).text, error));
}

FIXTURE_TEST(pools__are_refused_in_texts) {
    char lines[4000] = "";
    expect_unreadable(f, "  pool a of 1 lanes for none\n", "pool a: module m has no kernel none");
    expect_unreadable(f, "  pool a of 1 cores\n", "lanes");
    expect_unreadable(f, "  pool a of 1 lanes for\n", "a kernel");
    expect_unreadable(f, "  pool a of 1 lanes depth\n", "number");
    expect_unreadable(f, "  pool 7 of 1 lanes\n", "a pool");
    for (int i = 0; i < 17; i++) {
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "  pool p%d of 1 lanes\n", i);
    }
    expect_unreadable(f, lines, "more than 16 pools");
    snprintf(lines, sizeof lines, "  pool p of 1 lanes for k");
    for (int i = 0; i < 64; i++) {
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines), ", k");
    }
    expect_unreadable(f, lines, "more than 64 kernels");
}

// -- refusals -------------------------------------------------------------------------------------

// tests/cases/pools.case has those that a text can say.
static void expect_refused(fixture *f, const ptowsp_schedule *s, ptowsp_status status,
                           const char *text) {
    char expected[300];
    snprintf(expected, sizeof expected, "schedule: %s", text);
    const ptowsp_program_desc desc = {NULL, s};
    assert_int_equal(ptowsp_schedule_check(f->m, s, PTOWSP_TARGET_CPU_SIM), status);
    assert_string_equal(ptowsp_context_error(f->context).text, expected);
    assert_int_equal(ptowsp_program_create(f->context, f->m, &desc, &f->program), status);
    assert_string_equal(ptowsp_context_error(f->context).text, expected);
    assert_null(f->program);
}

TEST(pools__that_are_wrong_are_refused_by_name) {
    static const struct {
        ptowsp_pool second;
        const char *text;
    } wrong[] = {
        {{.name = NULL, .lane_count = 1},
         "the name of pool 1 is not 1 to 63 printable ASCII characters without quotes and "
         "backslash"},
        {{.name = "a\"b", .lane_count = 1},
         "the name of pool 1 is not 1 to 63 printable ASCII characters without quotes and "
         "backslash"},
        {{.name = "dma", .lane_count = 1, .kernels = {"load", "lod"}},
         "pool dma: module m has no kernel lod"},
        {{.name = "dma", .lane_count = 1, .kernels = {"any"}},
         "pool dma: kernel any is a choice; its variants have names of their own"},
    };
    fixture f;
    fixture_begin(&f, HEAD, EIGHT, kernels, 1);
    const ptowsp_kernel load = {2};
    ptowsp_choice_desc choice = {.name = "any", .variants[0].kernel = load};
    (void)ptowsp_kernel_choice(f.m, &choice);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const ptowsp_pool pools[] = {{.name = "cores", .lane_count = 1, .kernels = {"mul"}},
                                     wrong[i].second};
        ptowsp_schedule s = on_pools(pools, 2);
        expect_refused(&f, &s, PTOWSP_INVALID_PARAMS, wrong[i].text);
    }
    fixture_end(&f);
}

FIXTURE_TEST(pools__beside_other_directives_are_refused) {
    ptowsp_schedule s;
#define REFUSED(change, text)                                                                      \
    s = on_pools(three, 3);                                                                        \
    change;                                                                                        \
    expect_refused(f, &s, PTOWSP_INVALID_PARAMS, text)
    REFUSED(s.pool_count = 0, "pools named, but named_pools or pool_count is missing");
    REFUSED(s.named_pools = NULL, "pools named, but named_pools or pool_count is missing");
    REFUSED(s.lane_count = 2, "lane_count 2 is given, but pools are named");
    REFUSED(s.vector_lane_count = 1, "lanes of units are given, but pools are named");
    REFUSED((s.pools = PTOWSP_POOLS_ONE, s.lane_count = 1),
            "named pools are given, but pools are one");
    REFUSED((s.pools = PTOWSP_POOLS_BY_UNIT, s.lane_count = 1),
            "named pools are given, but pools are by unit");
#undef REFUSED
    s = on_pools(three, 17);
    expect_refused(f, &s, PTOWSP_LIMIT_EXCEEDED, "17 pools are more than 16");
    s = on_pools(three, 3);
    test_fails(f->context, ptowsp_schedule_check(f->m, &s, PTOWSP_TARGET_ASCEND_NPU),
               PTOWSP_UNSUPPORTED, "schedule: target ascend_npu does not do pools named");
    s.lane_count = 0;
    run(f, &s);
    test_fails(f->context, ptowsp_program_check(f->context, f->program, PTOWSP_TARGET_ASCEND_NPU),
               PTOWSP_UNSUPPORTED, "schedule: target ascend_npu does not do pools named");
}

TEST(pools__survive_refused_allocations) {
    for (int k = 0; k < 4; k++) {
        ptowsp_schedule s = on_pools(written, 3);
        s.dispatch = k % 2 ? PTOWSP_DISPATCH_WORK_STEALING : PTOWSP_DISPATCH_ROUND_ROBIN;
        s.issue = k == 3 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        s.ready = k == 2 ? PTOWSP_READY_WORK_STEALING : PTOWSP_READY_FIFO;
        EACH_ALLOCATION_REFUSED(&s, fixture_begin(&f, HEAD, EIGHT, kernels, 1));
    }
}

FIXTURE_TEST(pools__survive_refused_allocations_when_they_are_loaded) {
    static char text[8000];
    ptowsp_schedule s = on_pools(written, 3);
    const ptowsp_program_desc desc = {NULL, &s};
    ptowsp_output_buffer saved = {text, sizeof text, 0};
    ptowsp_parse_desc attach = {.default_cycles = 1};
    assert_ok(ptowsp_program_save(f->context, f->m, &desc, ptowsp_output_to_buffer(&saved)));
    EACH_REFUSED(n, 0) {
        test_refuse(&f->memory, n);
        has_more = test_was_refused(&f->memory, ptowsp_program_load(f->context, text, saved.length,
                                                                    &attach, &f->program, NULL));
    }
}
