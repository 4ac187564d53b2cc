// Schedule search: small cases on paper and what is refused, as facts (support/facts.h); whole spaces beside brute
// force through the public interface, budgets, several at once.

#include "facts.h"

#include <sched.h>

enum { TASKS_MAX = 64, SPACE_MAX = 2 * 5 * 3 * 4 * 3 };

// Independent tasks with given cycles; with chains, task i comes after task i - chains.
typedef struct tasks {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_expr key, priority;
    test_memory memory;
    int64_t count;
    uint32_t lane_count;  // of the context; 0: without threads
    uint64_t bind_count;  // atomic
    ptowsp_status bind_status;
} tasks;

static ptowsp_cycles task_cycles[TASKS_MAX];
static int32_t task_priorities[TASKS_MAX];
static float cells[TASKS_MAX];

static ptowsp_cycles cost_of(const ptowsp_task *task, void *user) {
    (void)user;
    return task_cycles[ptowsp_task_axis(task, 0)];
}

// Tasks i and j share a tile, and so an order, if i % chains == j % chains.
static void tasks_make(tasks *t, int64_t count, int64_t chains, bool has_cost) {
    ptowsp_context_desc desc = {.resize = test_resize,
                                .resize_user = &t->memory,
                                .threads =
                                    t->lane_count ? PTOWSP_THREADS_OWN : PTOWSP_THREADS_SERIAL,
                                .lane_count = t->lane_count};
    char text[600];
    const ptowsp_parse_kernel work = {
        .name = "work", .fn = cost_of, .cost = has_cost ? cost_of : NULL};
    const ptowsp_parse_desc attached = {&work, 1, 0};
    snprintf(text, sizeof text,
             "module some_tasks slots 8\naxis count dynamic\narray priority i32\n"
             "tensor cells f32 [%d, 1] global\n"
             "kernel work(axes 1, inout cell f32 1 x 1) vector%s\n"
             "workload tasks\n  parallel i in count\n"
             "    task work(i) cell = cells at (i %% %lld, 0)\n",
             TASKS_MAX, has_cost ? ", cycles by a cost function" : "", (long long)chains);
    t->count = count;
    t->context = test_context(&desc);
    test_ok(t->context,
            ptowsp_module_parse(t->context, text, strlen(text), &attached, &t->m, NULL));
    t->key = ptowsp_task_variable(t->m, "i");
    t->priority = ptowsp_array_at(t->m, "priority", PTOWSP_I32, t->key);
}

static void tasks_free(tasks *t) {
    test_destroy(NULL, NULL, t->m, t->context);
    assert_int_equal(t->memory.live_blocks, 0);
}

// On a context of so many lanes, or without threads.
static void tasks_begin(tasks *t, uint32_t lane_count, int64_t count, int64_t chains) {
    memset(t, 0, sizeof *t);
    t->lane_count = lane_count;
    tasks_make(t, count, chains, true);
}

#define SEARCH_TEST(name, lanes, count, chains)                                                    \
    TEST_MADE(name, tasks, t, tasks_begin(t, lanes, count, chains), tasks_free(t))

static ptowsp_status tasks_bind(void *user, ptowsp_run *run) {
    tasks *t = (tasks *)user;
    ptowsp_buffer buffer = {.data = cells};
    __atomic_fetch_add(&t->bind_count, 1, __ATOMIC_RELAXED);
    ptowsp_status status = t->bind_status;
    status = status ? status : ptowsp_run_bind_size(run, "count", t->count);
    status = status ? status : ptowsp_run_bind_tensor(run, "cells", &buffer);
    return status ? status
                  : ptowsp_run_bind_array(run, "priority", PTOWSP_I32, task_priorities, TASKS_MAX);
}

static ptowsp_search_desc desc_of(tasks *t) {
    ptowsp_search_desc desc = {.base.dispatch_key = t->key,
                               .base.priority_key = t->priority,
                               .bind = tasks_bind,
                               .user = t};
    return desc;
}

static void search_is_good(tasks *t, const ptowsp_search_desc *desc, ptowsp_search_result *results,
                           uint32_t capacity, ptowsp_search_summary *summary) {
    test_ok(t->context, ptowsp_schedule_search(t->context, t->m, desc, results, capacity, summary));
}

// -- brute force ----------------------------------------------------------------------------------

typedef struct brute {
    ptowsp_search_result results[SPACE_MAX];  // ranked
    uint64_t makespans[SPACE_MAX];            // by place; UINT64_MAX: refused
    uint32_t count;
    uint64_t refused;
} brute;

static int brute_compare(const void *a, const void *b) {
    const ptowsp_search_result *x = (const ptowsp_search_result *)a;
    const ptowsp_search_result *y = (const ptowsp_search_result *)b;
    uint64_t left[3] = {x->makespan_cycles, x->schedule.lane_count, x->place};
    uint64_t right[3] = {y->makespan_cycles, y->schedule.lane_count, y->place};
    for (int i = 0; i < 3; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    return 0;
}

static const ptowsp_issue all_issues[] = {PTOWSP_ISSUE_DATAFLOW, PTOWSP_ISSUE_IN_ORDER};
static const ptowsp_dispatch all_dispatches[] = {
    PTOWSP_DISPATCH_ROUND_ROBIN, PTOWSP_DISPATCH_WORK_STEALING, PTOWSP_DISPATCH_AFFINITY,
    PTOWSP_DISPATCH_HASH, PTOWSP_DISPATCH_PLAN};
static const ptowsp_ready all_orders[] = {PTOWSP_READY_FIFO, PTOWSP_READY_WORK_STEALING,
                                          PTOWSP_READY_PRIORITY};

static void brute_add(brute *b, tasks *t, const ptowsp_schedule *schedule, uint64_t place) {
    ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    b->makespans[place] = UINT64_MAX;
    if (ptowsp_schedule_check(t->m, schedule, PTOWSP_TARGET_CPU_SIM) != PTOWSP_OK) {
        b->refused++;
        return;
    }
    ptowsp_program *program = test_program(t->context, t->m, &desc);
    ptowsp_run *run = test_run_of(t->context, program);
    assert_ok(tasks_bind(t, run));
    assert_ok(ptowsp_run_execute(run, &options));
    ptowsp_search_result *result = &b->results[b->count++];
    memset(result, 0, sizeof *result);
    result->schedule = *schedule;
    result->makespan_cycles = ptowsp_run_result(run)->makespan_cycles;
    result->place = place;
    b->makespans[place] = result->makespan_cycles;
    test_destroy(run, program, NULL, NULL);
}

static void brute_make(brute *b, tasks *t, const uint32_t *windows, const uint32_t *lanes) {
    uint64_t place = 0;
    b->count = 0;
    b->refused = 0;
    for (int i = 0; i < 2 * 5 * 3 * 4 * 3; i++, place++) {
        ptowsp_schedule s = {.lane_count = lanes[i % 3],
                             .window = windows[i / 3 % 4],
                             .ready = all_orders[i / 12 % 3],
                             .dispatch = all_dispatches[i / 36 % 5],
                             .issue = all_issues[i / 180],
                             .dependencies = PTOWSP_DEPENDENCIES_HYBRID};
        if (s.dispatch >= PTOWSP_DISPATCH_AFFINITY && s.dispatch != PTOWSP_DISPATCH_WORK_STEALING) {
            s.dispatch_key = t->key;
        }
        if (s.ready == PTOWSP_READY_PRIORITY) {
            s.priority_key = t->priority;
        }
        brute_add(b, t, &s, place);
    }
    qsort(b->results, b->count, sizeof b->results[0], brute_compare);
}

// What a search with a smaller budget finds: of the space, ranked, and the same each time.
static void check_budget(const brute *b, tasks *t, ptowsp_search_desc *desc, uint64_t budget) {
    static ptowsp_search_result results[SPACE_MAX], again[SPACE_MAX];
    ptowsp_search_summary summary, second;
    desc->evaluation_max = budget;
    t->bind_count = 0;
    search_is_good(t, desc, results, SPACE_MAX, &summary);
    assert_int_equal(summary.evaluation_count, budget < b->count ? budget : b->count);
    assert_int_equal(t->bind_count, summary.evaluation_count);
    assert_int_equal(summary.result_count, summary.evaluation_count);
    assert_true(results[0].makespan_cycles >= b->results[0].makespan_cycles);
    for (uint32_t i = 0; i < summary.result_count; i++) {
        assert_int_equal(results[i].makespan_cycles, b->makespans[results[i].place]);
        assert_true(i == 0 || brute_compare(&results[i - 1], &results[i]) < 0);
        assert_true(results[i].bounds.largest_cycles <= results[i].makespan_cycles);
    }
    uint32_t few = summary.result_count < 3 ? summary.result_count : 3;
    search_is_good(t, desc, again, few, &second);
    assert_int_equal(second.result_count, few);
    for (uint32_t i = 0; i < few; i++) {
        assert_int_equal(again[i].place, results[i].place);
        assert_memory_equal(again[i].idle_cycles, results[i].idle_cycles,
                            sizeof again[i].idle_cycles);
    }
}

TEST(search__agrees_with_brute_force) {
    static brute b;
    uint64_t seed = test_seed();
    for (unsigned i = 0; TEST_ROUNDS(i, 60); i++) {
        uint64_t random = seed + i;
        tasks t = {.lane_count = i % 3 ? 4 : 0};
        int64_t count = test_random_in(&random, 1, 24);
        uint32_t windows[4] = {0, 1, 2, 6}, lanes[3] = {3, 2, 5};
        for (int k = 0; k < TASKS_MAX; k++) {
            task_cycles[k] = (ptowsp_cycles)test_random_in(&random, 0, k % 5 == 0 ? 100 : 20);
            task_priorities[k] = (int32_t)task_cycles[k];
        }
        tasks_make(&t, count, test_random_in(&random, 1, TASKS_MAX), true);
        brute_make(&b, &t, windows, lanes);
        ptowsp_search_desc desc = desc_of(&t);
        desc.issues = all_issues, desc.issue_count = 2;
        desc.dispatches = all_dispatches, desc.dispatch_count = 5;
        desc.orders = all_orders, desc.order_count = 3;
        desc.windows = windows, desc.window_count = 4;
        desc.lane_counts = lanes, desc.lane_count_count = 3;
        desc.has_path = i % 2 == 0;
        desc.at_once = i % 5;
        desc.evaluation_max = SPACE_MAX;
        static ptowsp_search_result results[SPACE_MAX];
        ptowsp_search_summary summary;
        search_is_good(&t, &desc, results, SPACE_MAX, &summary);
        assert_true(summary.is_complete);
        assert_int_equal(summary.space_count, SPACE_MAX);
        assert_int_equal(summary.refused_count, b.refused);
        assert_int_equal(summary.result_count, b.count);
        for (uint32_t k = 0; k < b.count; k++) {
            assert_int_equal(results[k].place, b.results[k].place);
            assert_int_equal(results[k].makespan_cycles, b.results[k].makespan_cycles);
            assert_int_equal(results[k].schedule.lane_count, b.results[k].schedule.lane_count);
            assert_int_equal(results[k].schedule.dispatch, b.results[k].schedule.dispatch);
        }
        check_budget(&b, &t, &desc, 1);
        check_budget(&b, &t, &desc, (uint64_t)test_random_in(&random, 2, 40));
        check_budget(&b, &t, &desc, 250);
        tasks_free(&t);
    }
}

// -- several at once ------------------------------------------------------------------------------

// A search with its outcome.
typedef struct found {
    ptowsp_status status;
    ptowsp_search_summary summary;
    ptowsp_search_result results[SPACE_MAX];
    char text[512];  // of the error, if there is one
} found;

static void find(tasks *t, ptowsp_search_desc desc, uint32_t at_once, found *f) {
    memset(f, 0, sizeof *f);
    desc.at_once = at_once;
    f->status = ptowsp_schedule_search(t->context, t->m, &desc, f->results, SPACE_MAX, &f->summary);
    if (f->status != PTOWSP_OK) {
        snprintf(f->text, sizeof f->text, "%s", ptowsp_context_error(t->context).text);
    }
}

static void found_are_equal(const found *a, const found *b) {
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->text, b->text);
    assert_memory_equal(&a->summary, &b->summary, sizeof a->summary);
    for (uint32_t i = 0; i < a->summary.result_count; i++) {
        const ptowsp_search_result *x = &a->results[i], *y = &b->results[i];
        assert_int_equal(x->place, y->place);
        assert_int_equal(x->status, y->status);
        assert_int_equal(x->makespan_cycles, y->makespan_cycles);
        assert_int_equal(x->in_flight_max, y->in_flight_max);
        assert_int_equal(x->lane_count, y->lane_count);
        assert_int_equal(x->schedule.dispatch, y->schedule.dispatch);
        assert_int_equal(x->schedule.window, y->schedule.window);
        assert_memory_equal(x->idle_cycles, y->idle_cycles, sizeof x->idle_cycles);
        assert_int_equal(x->bounds.has_path, y->bounds.has_path);
        assert_int_equal(x->bounds.path_cycles, y->bounds.path_cycles);
        assert_int_equal(x->bounds.largest_cycles, y->bounds.largest_cycles);
    }
}

// One after another, on two and on four lanes, and on more than there are.
static void check_at_once(tasks *t, const ptowsp_search_desc *desc) {
    static found one, many;
    static const uint32_t counts[] = {0, 2, 4, 2000};
    find(t, *desc, 1, &one);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        find(t, *desc, counts[i], &many);
        found_are_equal(&one, &many);
    }
}

SEARCH_TEST(search__finds_the_same_on_any_number_of_lanes, 4, 20, 7) {
    const uint32_t windows[] = {0, 1, 2, 6}, lanes[] = {3, 2, 5};
    for (int i = 0; i < TASKS_MAX; i++) {
        task_cycles[i] = (ptowsp_cycles)(i * 37 % 23);
        task_priorities[i] = i % 5;
    }
    ptowsp_search_desc desc = desc_of(t), good;
    desc.issues = all_issues, desc.issue_count = 2;
    desc.windows = windows, desc.window_count = 4;
    desc.lane_counts = lanes, desc.lane_count_count = 3;
    good = desc;
    for (uint64_t budget = 1; budget < 400; budget = 2 * budget + 1) {
        desc.evaluation_max = budget;
        desc.has_path = budget % 4 == 3;
        check_at_once(t, &desc);
    }
    desc.base.start = PTOWSP_START_THRESHOLD, desc.base.start_threshold = 3;
    check_at_once(t, &desc);  // with windows of 1 and 2 all are stuck
    desc.windows = windows + 1, desc.window_count = 2;
    check_at_once(t, &desc);  // and nothing is left
    desc = good;
    desc.bind = NULL;
    check_at_once(t, &desc);  // an error that ends it
    desc = good;
    desc.workload = "other";
    check_at_once(t, &desc);  // all are refused
    t->bind_status = PTOWSP_SYSTEM_FAILED;
    desc = good;
    check_at_once(t, &desc);
}

// Lanes of the context that execute: the first one waits in `bind` until the other has executed the
// schedule behind it and has come to the third, and cancels the search then.
typedef struct ender {
    tasks *t;
    uint32_t has_come, is_cancelled;  // atomic
    bool is_late;
} ender;

static bool wait_for(const uint32_t *flag) {
    for (uint64_t start = ptowsp_clock_ns(); ptowsp_clock_ns() - start < UINT64_C(20000000000);) {
        if (__atomic_load_n(flag, __ATOMIC_SEQ_CST)) {
            return true;
        }
        sched_yield();
    }
    return false;
}

static ptowsp_status ender_bind(void *user, ptowsp_run *run) {
    ender *e = (ender *)user;
    const uint32_t lanes = ptowsp_program_lane_count(ptowsp_run_program(run));
    if (lanes == 2) {
        e->is_late = !wait_for(&e->has_come);
        ptowsp_schedule_search_cancel(e->t->context);
        __atomic_store_n(&e->is_cancelled, 1u, __ATOMIC_SEQ_CST);
    } else if (lanes == 4) {
        __atomic_store_n(&e->has_come, 1u, __ATOMIC_SEQ_CST);
        wait_for(&e->is_cancelled);
    }
    return tasks_bind(e->t, run);
}

SEARCH_TEST(search__ranks_what_had_ended_behind_what_had_not, 2, 6, TASKS_MAX) {
    static const ptowsp_dispatch dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    static const ptowsp_ready order = PTOWSP_READY_FIFO;
    static const uint32_t lanes[] = {1, 2, 3, 4};
    for (int i = 0; i < TASKS_MAX; i++) {
        task_cycles[i] = 10;
    }
    ender e = {t, 0, 0, false};
    ptowsp_search_desc desc = desc_of(t);
    ptowsp_search_result results[4];
    ptowsp_search_summary summary;
    desc.dispatches = &dispatch, desc.dispatch_count = 1;
    desc.orders = &order, desc.order_count = 1;
    desc.lane_counts = lanes, desc.lane_count_count = 4;
    desc.at_once = 2;
    desc.bind = ender_bind;
    desc.user = &e;
    assert_int_equal(ptowsp_schedule_search(t->context, t->m, &desc, results, 4, &summary),
                     PTOWSP_CANCELLED);
    assert_false(e.is_late);
    assert_string_equal(ptowsp_context_error(t->context).text,
                        "search: cancelled; 2 of 4 schedules executed");
    assert_true(summary.is_cut && !summary.is_complete);
    assert_int_equal(summary.evaluation_count, 2);
    assert_int_equal(summary.result_count, 2);
    assert_int_equal(results[0].schedule.lane_count, 3);
    assert_int_equal(results[0].makespan_cycles, 20);
    assert_int_equal(results[1].schedule.lane_count, 1);
    assert_int_equal(results[1].makespan_cycles, 60);
}

typedef struct inner_search {
    tasks *t;
    ptowsp_status status;
    bool has_run;
} inner_search;

static void search_inside(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)begin, (void)end, (void)lane;
    inner_search *inner = (inner_search *)user;
    ptowsp_search_result result;
    ptowsp_search_summary summary;
    ptowsp_search_desc desc = desc_of(inner->t);
    desc.at_once = 2;
    inner->status =
        ptowsp_schedule_search(inner->t->context, inner->t->m, &desc, &result, 1, &summary);
    inner->has_run = summary.evaluation_count > 0;
}

SEARCH_TEST(search__on_lanes_is_refused_inside_a_job, 2, 4, TASKS_MAX) {
    inner_search inner = {t, PTOWSP_OK, true};
    assert_ok(ptowsp_parallel_for(t->context, 1, 1, search_inside, &inner));
    assert_int_equal(inner.status, PTOWSP_BUSY);
    assert_false(inner.has_run);
}

// -- what goes wrong ------------------------------------------------------------------------------

SEARCH_TEST(search__refuses_spaces_that_are_large, 0, 4, TASKS_MAX) {
    const uint32_t many[2048] = {1};
    ptowsp_search_result result;
    ptowsp_search_summary summary;
    ptowsp_search_desc desc = desc_of(t);
    desc.lane_counts = desc.windows = many, desc.lane_count_count = desc.window_count = 2048;
    test_refused(t->context, ptowsp_schedule_search(t->context, t->m, &desc, &result, 1, &summary),
                 PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                 "search: a space of more than 1048576 schedules");
    desc = desc_of(t);
    assert_invalid(ptowsp_schedule_search(t->context, t->m, &desc, &result, 0, &summary));
}

// Kernels without a cost cannot be timed under any schedule.
TEST(search__fails_where_kernels_have_no_cost) {
    tasks none = {0};
    ptowsp_search_result result;
    ptowsp_search_summary summary;
    tasks_make(&none, 4, TASKS_MAX, false);
    const ptowsp_search_desc desc = desc_of(&none);
    assert_int_equal(ptowsp_schedule_search(none.context, none.m, &desc, &result, 1, &summary),
                     PTOWSP_UNSUPPORTED);
    assert_int_equal(summary.failed_count, summary.evaluation_count);
    tasks_free(&none);
}

// Refuses each allocation in turn. Which one the n-th is depends on the lanes, but it is always told.
static void refuse_all(uint32_t lane_count, uint32_t at_once) {
    ptowsp_search_result results[8];
    ptowsp_search_summary summary;
    tasks t = {.lane_count = lane_count};
    tasks_make(&t, 4, 2, true);
    ptowsp_search_desc desc = desc_of(&t);
    desc.has_path = true;
    desc.evaluation_max = at_once > 1 ? 6 : 2;
    desc.at_once = at_once;
    ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
    size_t before = t.memory.live_bytes, n = 1;
    for (; status != PTOWSP_OK; n++) {
        t.memory.allocations = 0;
        t.memory.refuse_at = n;
        status = ptowsp_schedule_search(t.context, t.m, &desc, results, 8, &summary);
        assert_true(status == PTOWSP_OK || status == PTOWSP_OUT_OF_MEMORY);
        assert_int_equal(t.memory.live_bytes, before);
        if (status != PTOWSP_OK) {
            assert_int_equal(ptowsp_context_error(t.context).status, PTOWSP_OUT_OF_MEMORY);
        }
    }
    assert_true(n > 20 * at_once);
    tasks_free(&t);
}

TEST(search__frees_all_when_memory_is_out) {
    refuse_all(0, 1);
    refuse_all(4, 4);
}

// -- facts ----------------------------------------------------------------------------------------

// Four tasks whose priorities are their cycles. Lists are given with their counts.
static tasks four;
static uint32_t cycles[4], dispatches[4], orders[4], windows[4], lane_counts[4];
static ptowsp_search_desc desc;
static bool has_key, has_priority, has_plan, has_bind, has_results;
static ptowsp_search_result found_results[40];
static ptowsp_search_summary summary;

static void begin(void) {
    if (four.context) {
        tasks_free(&four);
    }
    tasks_begin(&four, 0, 4, TASKS_MAX);
    desc = (ptowsp_search_desc){.workload = NULL};
    has_key = has_priority = has_bind = has_results = true;
    has_plan = false;
    memset(cycles, 0, sizeof cycles);
}

static ptowsp_status call_search(void) {
    ptowsp_search_desc given = desc;
    const ptowsp_expr none = {NULL, 0};
    if (has_plan) {
        ptowsp_axis_plan(four.m, "plan");
    }
    given.base.dispatch_key = has_key ? four.key : none;
    given.base.priority_key = has_priority ? four.priority : none;
    given.dispatches = desc.dispatch_count > 0 ? (const ptowsp_dispatch *)dispatches : NULL;
    given.orders = desc.order_count > 0 ? (const ptowsp_ready *)orders : NULL;
    given.windows = desc.window_count > 0 ? windows : NULL;
    given.lane_counts = desc.lane_count_count > 0 ? lane_counts : NULL;
    given.bind = has_bind ? tasks_bind : NULL;
    given.user = &four;
    for (int i = 0; i < 4; i++) {
        task_cycles[i] = cycles[i];
        task_priorities[i] = (int32_t)cycles[i];
    }
    four.bind_count = 0;
    const ptowsp_status status =
        ptowsp_schedule_search(four.context, four.m, &given, has_results ? found_results : NULL,
                               COUNT_OF(found_results), &summary);
    const uint64_t bound = summary.evaluation_count + (four.bind_status != PTOWSP_OK);
    assert_int_equal(four.bind_count, has_bind ? bound : 0);
    return status;
}

static ptowsp_status call_print(void) {
    ptowsp_search_print(found_results, &summary, facts_output());
    return PTOWSP_OK;
}

static ptowsp_status call_end_early(void) {
    summary.is_cut = true;
    return PTOWSP_OK;
}

static ptowsp_status call_other_workload(void) {
    desc.workload = "other";
    return PTOWSP_OK;
}

static ptowsp_status call_other_key(void) {
    four.key = ptowsp_task_variable(four.m, "nowhere");
    return PTOWSP_OK;
}

static const facts_call calls[] = {
    {"search", call_search},       {"print", call_print},
    {"end_early", call_end_early}, {"other_workload", call_other_workload},
    {"other_key", call_other_key}, {NULL, NULL}};

static const char *error(uint64_t *out_index) {
    const char *text = facts_error(ptowsp_context_error(four.context), out_index);
    return text[0] ? text : "(no text)";
}

// An error that is not of a schedule ends the search; else all have failed, or were refused.
static void nothing_is_found(void) {
    const uint64_t count = summary.evaluation_count;
    assert_true(count <= 1 || summary.failed_count == count);
    assert_true(count > 0 || four.bind_status != PTOWSP_OK ||
                summary.refused_count == summary.space_count);
}

static const facts_field *fields(void) {
    static uint64_t first_work, nothing_left[40];
    const uint32_t count = summary.result_count;
    first_work = found_results[0].bounds.work_cycles[0];
    for (uint32_t i = 0; i < count && i < 40; i++) {
        nothing_left[i] = found_results[i].idle_cycles[PTOWSP_STALL_NONE];
    }
#define RESULT(name, member) FACTS_OF(name, found_results->member, sizeof *found_results, count)
    FACTS_RETURN(
        NAMED("printed", facts_printed), FIELDS(cycles, 4), FIELDS(dispatches, 4),
        FIELDS(orders, 4), FIELDS(windows, 4), FIELDS(lane_counts, 4), FIELD(has_key),
        FIELD(has_priority), FIELD(has_plan), FIELD(has_bind), FIELD(has_results),
        FIELD(four.bind_status), FIELD(desc.target), FIELD(desc.issue_count),
        FIELD(desc.dispatch_count), FIELD(desc.order_count), FIELD(desc.window_count),
        FIELD(desc.lane_count_count), FIELD(desc.evaluation_max), FIELD(desc.has_path),
        FIELD(desc.base.start), FIELD(desc.base.start_threshold), FIELD(desc.base.pools),
        FIELD(desc.base.window), FIELD(desc.base.window_policy), FIELD(desc.base.dependencies),
        FIELD(summary.space_count), FIELD(summary.refused_count), FIELD(summary.evaluation_count),
        FIELD(summary.failed_count), FIELD(summary.result_count), FIELD(summary.is_complete),
        FIELD(first_work), FIELDS(nothing_left, count), RESULT("makespan", makespan_cycles),
        RESULT("place", place), RESULT("status", status), RESULT("lanes", schedule.lane_count),
        RESULT("order", schedule.ready), RESULT("dispatch", schedule.dispatch),
        RESULT("window", schedule.window), RESULT("dependencies", schedule.dependencies),
        RESULT("path", bounds.path_cycles), RESULT("largest", bounds.largest_cycles),
        RESULT("has_path", bounds.has_path), RESULT("in_flight", in_flight_max),
        RESULT("dispatch_key", schedule.dispatch_key.module));
}

TEST(search__facts_hold) {
    facts all = {"tests/search/search.facts", begin, fields, calls, error, nothing_is_found, 0};
    facts_run(&all);
    tasks_free(&four);
}
