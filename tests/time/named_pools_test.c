// Schedules with named pools: searches, and memory that is refused. tests/cases/pools.case has lanes, depths, stealing
// and bounds, and schedules.facts texts and refusals. A task of each kernel takes as many cycles as its argument says.

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

#define FIXTURE_TEST(name)                                                                         \
    TEST_MADE(name, fixture, f, fixture_begin(f, HEAD, EIGHT, kernels, 1), fixture_end(f))

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

static const ptowsp_pool written[] = {
    {.name = "cores", .lane_count = 2},
    {.name = "the 2nd", .lane_count = 1, .depth = 3, .kernels = {"load", "mix it"}},
    {.name = "cubes", .lane_count = 2, .kernels = {"mul"}}};

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
