// Limits: every kind of run meets the time limit, cancelling from another thread, cancelling by one of
// its own functions, and a limit of amounts (tokens, steps, added tasks). Each ends with its status
// and text, begins nothing more, and is used again, with results worked out on paper and no more
// memory than before.
//
// Nothing depends on how fast a machine is. Functions of a run wait until the limit must be over, or
// until the run has been cancelled, and then return; no other may begin. Where no function is called
// (explore), the run has no end of its own.

#include "device_fixture.h"

#include <sched.h>

enum { LANES = 3, CORES = 2, FEW = 20, CYCLES = 10, LIMIT_NS = 1000000, FOREVER = 1 << 30 };

typedef enum limit { NO_LIMIT, BY_TIME, FROM_OUTSIDE, FROM_INSIDE, BY_AMOUNT, LIMIT_COUNT } limit;

static const char *const limit_names[] = {"no limit", "time", "cancelled outside",
                                          "cancelled inside", "amount"};

// One kind of run, with what it is made of.
typedef struct bed {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_device *device;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_graph *graph;
    int64_t count;   // of the dynamic axis
    bool has_costs;  // no kernel runs: cost functions wait in their place
    limit limit;
    const struct kind *kind;
    uint32_t called;        // atomic: functions that have begun
    uint32_t cancel_at;     // the function that cancels, or in which another thread does
    uint32_t is_cancelled;  // atomic
    uint32_t has_ended;     // atomic
    ptowsp_search_result results[4];
    ptowsp_search_summary summary;
    ptowsp_explore_stats explored;
} bed;

// How a kind is made, run under its limit, and cancelled; and what it says. In texts a # stands for
// digits. NULL: it has no such limit.
typedef struct kind {
    const char *name;
    void (*make)(bed *b);
    ptowsp_status (*run)(bed *b);
    void (*cancel)(bed *b);
    void (*check)(const bed *b);  // after a run that has ended well
    uint32_t width;               // functions that may be under way at once; 0: none is called
    const char *texts[LIMIT_COUNT];
    const char *workload;  // of runs and searches
    int way;               // of running, of graphs
} kind;

// -- the functions of runs ------------------------------------------------------------------------

static void gate(bed *b) {
    const uint32_t called = __atomic_add_fetch(&b->called, 1, __ATOMIC_SEQ_CST);
    const uint64_t begin = ptowsp_clock_ns();
    switch (b->limit) {
    case BY_TIME:
        while (ptowsp_clock_ns() < begin + 2 * LIMIT_NS) {
        }
        break;
    case FROM_OUTSIDE:
    case FROM_INSIDE:
        if (b->limit == FROM_INSIDE && called == b->cancel_at) {
            b->kind->cancel(b);
            __atomic_store_n(&b->is_cancelled, 1u, __ATOMIC_SEQ_CST);
        }
        while (called >= b->cancel_at && !__atomic_load_n(&b->is_cancelled, __ATOMIC_SEQ_CST)) {
            sched_yield();
        }
        break;
    case NO_LIMIT:
    case BY_AMOUNT:
    case LIMIT_COUNT: break;
    }
}

static ptowsp_cycles work(const ptowsp_task *task, void *user) {
    (void)task;
    gate((bed *)user);
    return CYCLES;
}

static ptowsp_cycles cost(const ptowsp_task *task, void *user) {
    return ((const bed *)user)->has_costs ? work(task, user) : CYCLES;
}

static ptowsp_status graph_work(void *user, uint64_t task, uint32_t lane) {
    (void)task;
    (void)lane;
    gate((bed *)user);
    return PTOWSP_OK;
}

// -- another thread -------------------------------------------------------------------------------

// Cancels once so many functions have begun; where none does, again and again, as what is cancelled before the
// start is forgotten.
static void *cancel_main(void *arg) {
    bed *b = (bed *)arg;
    while (b->kind->width && __atomic_load_n(&b->called, __ATOMIC_SEQ_CST) < b->cancel_at) {
        sched_yield();
    }
    do {
        b->kind->cancel(b);
        __atomic_store_n(&b->is_cancelled, 1u, __ATOMIC_SEQ_CST);
        sched_yield();
    } while (!b->kind->width && !__atomic_load_n(&b->has_ended, __ATOMIC_SEQ_CST));
    return NULL;
}

static ptowsp_status run_limited(bed *b, limit what) {
    const bool has_other = what == FROM_OUTSIDE;
    pthread_t thread;
    b->limit = what;
    b->called = b->is_cancelled = b->has_ended = 0;
    b->count = what == NO_LIMIT || b->kind->width ? FEW : FOREVER;
    if (has_other) {
        assert_int_equal(pthread_create(&thread, NULL, cancel_main, b), 0);
    }
    const ptowsp_status status = b->kind->run(b);
    __atomic_store_n(&b->has_ended, 1u, __ATOMIC_SEQ_CST);
    if (has_other) {
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    return status;
}

static uint64_t time_limit(const bed *b) {
    return b->limit == BY_TIME ? LIMIT_NS : 0;
}

// -- programs -------------------------------------------------------------------------------------

// Workload tasks: `count` tasks one after another. Workload pipe: a process sends `count` tokens, and
// another runs a task for each.
static void make_module(bed *b) {
    static const char text[] =
        "module m\naxis many dynamic\nkernel work(axes 1) vector, cycles by a cost function\n"
        "workload tasks\n  for_each i in many\n    task work(i)\n"
        "workload pipe\n  pipeline p\n    channel to depth 2 latency 0\n"
        "    process from produces to\n      for_each i in many\n        send to(i)\n"
        "    process runs consumes to\n      consume token from to\n        task work(token)\n";
    const ptowsp_parse_kernel kernel = {.name = "work", .fn = work, .cost = cost, .user = b};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    assert_ok(ptowsp_module_parse(b->context, text, strlen(text), &attached, &b->module, NULL));
}

static void make_run(bed *b) {
    const ptowsp_program_desc desc = {b->kind->workload, NULL};
    make_module(b);
    test_ok(b->context, ptowsp_program_create(b->context, b->module, &desc, &b->program));
    assert_ok(ptowsp_run_create(b->context, b->program, &b->run));
}

static ptowsp_run_options options_of(const bed *b) {
    ptowsp_run_options options = {.time_limit_ns = time_limit(b),
                                  .token_limit = b->limit == BY_AMOUNT ? FEW - 1 : 0};
    assert_ok(ptowsp_run_bind_size(b->run, "many", b->count));
    return options;
}

// Ways of running; the first two are numbers of lanes.
enum { ON_ONE = 1, ON_LANES = LANES, ON_DEVICE, TIME_ONLY, WHAT_IF, STARTED = 16 };

static ptowsp_status run_in_its_way(bed *b) {
    const bool is_started = b->kind->way & STARTED;
    const int way = b->kind->way & ~STARTED;
    ptowsp_run_options options = options_of(b);
    ptowsp_what_if what_if = {.kernel = 1, .percent = 100};
    ptowsp_status status;
    options.mode = way == TIME_ONLY ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE;
    options.lane_count = way == ON_LANES || way == ON_ONE ? (uint32_t)way : 0;
    b->has_costs = way == TIME_ONLY || way == WHAT_IF;
    if (is_started) {
        assert_ok(way == ON_DEVICE ? ptowsp_device_start(b->device, b->run, &options)
                                   : ptowsp_run_start(b->run, &options));
        status = ptowsp_run_wait(b->run);
    } else if (way == WHAT_IF) {
        status = ptowsp_run_what_if(b->run, &options, &what_if);
        assert_true(status != PTOWSP_OK || what_if.makespan_cycles == FEW * CYCLES);
    } else {
        status = way == ON_DEVICE ? ptowsp_device_run(b->device, b->run, &options)
                                  : ptowsp_run_execute(b->run, &options);
    }
    b->has_costs = false;
    return status;
}

static void cancel_run(bed *b) {
    ptowsp_run_cancel(b->run);
}

// Tasks one after another, on any number of lanes.
static void check_run(const bed *b) {
    const ptowsp_run_stats *stats = ptowsp_run_result(b->run);
    assert_true(stats->makespan_cycles == FEW * CYCLES);
    assert_int_equal(b->called, FEW);
}

// -- exploring and searching ----------------------------------------------------------------------

static ptowsp_status run_explore(bed *b) {
    ptowsp_explore_options options = {.time_limit_ns = time_limit(b),
                                      .step_limit = b->limit == BY_AMOUNT ? 5 : UINT64_MAX,
                                      .state_limit = UINT32_MAX};
    assert_ok(ptowsp_run_bind_size(b->run, "many", b->count));
    return ptowsp_run_explore(b->run, &options, &b->explored);
}

// A send and a receive of each token, and the one that finds the channel closed.
static void check_explore(const bed *b) {
    assert_in_range(b->explored.step_count, 2 * FEW, 2 * FEW + 2);
}

static ptowsp_status bind_many(void *user, ptowsp_run *run) {
    return ptowsp_run_bind_size(run, "many", ((const bed *)user)->count);
}

static ptowsp_status search(bed *b) {
    const ptowsp_issue issues[] = {PTOWSP_ISSUE_IN_ORDER};
    const ptowsp_dispatch dispatches[] = {PTOWSP_DISPATCH_ROUND_ROBIN};
    const ptowsp_ready orders[] = {PTOWSP_READY_FIFO};
    const uint32_t lanes[] = {1, 2};
    ptowsp_search_desc desc = {.workload = b->kind->workload, .bind = bind_many, .user = b};
    desc.issues = issues, desc.issue_count = 1;
    desc.dispatches = dispatches, desc.dispatch_count = 1;
    desc.orders = orders, desc.order_count = 1;
    desc.lane_counts = lanes, desc.lane_count_count = 2;
    desc.time_limit_ns = time_limit(b);
    desc.token_limit = b->limit == BY_AMOUNT ? FEW - 1 : 0;
    b->has_costs = true;
    const ptowsp_status status =
        ptowsp_schedule_search(b->context, b->module, &desc, b->results, 4, &b->summary);
    b->has_costs = false;
    const bool is_cut = status == PTOWSP_CANCELLED || status == PTOWSP_TIMED_OUT;
    assert_true(b->summary.is_cut == is_cut && b->summary.is_complete != is_cut);
    assert_true(!is_cut || (b->summary.result_count == 0 && b->summary.evaluation_count == 0));
    return status;
}

static void cancel_search(bed *b) {
    ptowsp_schedule_search_cancel(b->context);
}

static void check_search(const bed *b) {
    assert_int_equal(b->summary.evaluation_count, 2);
    assert_int_equal(b->called, 2 * FEW);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(b->results[i].makespan_cycles == FEW * CYCLES);
        assert_int_equal(b->results[i].lane_count, i + 1);
    }
}

// -- graphs ---------------------------------------------------------------------------------------

enum { RUN, START, RUN_ON_DEVICE, CLASSED = 16, RANGE = 32 };

static ptowsp_status range_work(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    assert_true(end == begin + 1);
    return graph_work(user, begin, lane);
}

static void make_graph(bed *b) {
    const bool is_range = b->kind->way & RANGE, is_classed = b->kind->way & CLASSED;
    b->graph = graph_of(b->context);
    for (uint32_t i = 0; i < (is_range ? 1 : FEW); i++) {
        ptowsp_graph_task_desc task = {.fn = graph_work, .user = b};
        const ptowsp_graph_task_desc range = {
            .range = range_work, .user = b, .item_count = FEW, .grain = 1};
        task.priority = is_classed ? i % 3 : 0;
        graph_alike(b->graph, is_range ? range : task, 1);
    }
}

// Its one task adds all others: within the limit of amounts, one too many.
static ptowsp_status add_work(void *user, uint64_t task, uint32_t lane) {
    bed *b = (bed *)user;
    (void)lane;
    ptowsp_graph_task_desc tasks[FEW + 1] = {0};
    for (uint32_t i = 0; i <= FEW; i++) {
        tasks[i].fn = graph_work;
        tasks[i].user = b;
    }
    const ptowsp_graph_part part = {tasks, FEW + (b->limit == BY_AMOUNT), NULL, 0};
    return ptowsp_graph_add(b->graph, task, &part, NULL);
}

static void make_growing_graph(bed *b) {
    const ptowsp_graph_desc desc = {.added_task_max = FEW};
    const ptowsp_graph_task_desc task = {.fn = add_work, .user = b};
    assert_ok(ptowsp_graph_create(b->context, &desc, &b->graph));
    assert_ok(ptowsp_graph_task_make(b->graph, &task, NULL));
}

static ptowsp_status run_graph(bed *b) {
    const int way = b->kind->way & ~(CLASSED | RANGE);
    assert_ok(ptowsp_graph_limit(b->graph, time_limit(b)));
    if (way == START) {
        assert_ok(ptowsp_graph_start(b->graph));
        return ptowsp_graph_wait(b->graph);
    }
    return way == RUN_ON_DEVICE ? ptowsp_device_run_graph(b->device, b->graph)
                                : ptowsp_graph_run(b->graph);
}

static void cancel_graph(bed *b) {
    ptowsp_graph_cancel(b->graph);
}

static void check_graph(const bed *b) {
    const ptowsp_graph_stats stats = ptowsp_graph_result(b->graph);
    assert_int_equal(b->called, FEW);
    assert_true(stats.failed_count == 0 && stats.skipped_count == 0);
}

// -- launches -------------------------------------------------------------------------------------

static void make_nothing(bed *b) {
    (void)b;
}

static ptowsp_status launch(bed *b) {
    const ptowsp_kernel_fn kernels[] = {work};
    ptowsp_launch desc = {.kernels = kernels,
                          .kernel_count = 1,
                          .instance_count = FEW,
                          .user = b,
                          .time_limit_ns = time_limit(b)};
    return ptowsp_device_launch(b->device, &desc);
}

static void cancel_launch(bed *b) {
    ptowsp_device_cancel(b->device);
}

static void check_launch(const bed *b) {
    assert_int_equal(b->called, FEW);
}

// -- the table ------------------------------------------------------------------------------------

// Texts of each limit: the time, cancelled (from outside, and from inside), an amount or NULL.
#define TEXTS(late, cancelled, amount)                                                             \
    { NULL, late, cancelled, cancelled, amount }
#define TOKENS                                                                                     \
    "pipe/pipeline p/process from/for_each i/send to (i = #): channel to gets more than # "        \
    "tokens, "                                                                                     \
    "the limit of this execution"
#define STEPS                                                                                      \
    "run: not all orders of pipeline p have been explored, of # states and # steps at most; none " \
    "of those explored gets stuck"
#define FULL "graph: its tasks add more than added_task_max, 20, tasks or added_edge_max, 0, edges"

#define RUN_TEXTS(amount)                                                                          \
    TEXTS("run: its time limit is over; # tasks accounted for",                                    \
          "run: cancelled; # tasks accounted for", amount)
#define SEARCH_TEXTS(amount)                                                                       \
    TEXTS("search: its time limit is over; 0 of 2 schedules executed",                             \
          "search: cancelled; 0 of 2 schedules executed", amount)
#define GRAPH_TEXTS(amount)                                                                        \
    TEXTS("graph: its time limit is over; # of # tasks done",                                      \
          "graph: cancelled; # of # tasks done", amount)
#define LAUNCH_TEXTS                                                                               \
    TEXTS("device: a launch ended early: the run reached its time limit",                          \
          "device: a launch ended early: the run was cancelled", NULL)

#define EXPLORE_TEXTS                                                                              \
    {                                                                                              \
        NULL, "run: its time limit is over; none of the orders explored, in # steps, gets stuck",  \
            "run: cancelled; none of the orders explored, in # steps, gets stuck", NULL, STEPS     \
    }

#define PROGRAM(name, workload, way, width, amount)                                                \
    {                                                                                              \
        name, make_run, run_in_its_way, cancel_run, check_run, width, RUN_TEXTS(amount), workload, \
            way                                                                                    \
    }
#define SEARCH(name, workload, amount)                                                             \
    { name, make_module, search, cancel_search, check_search, 1, SEARCH_TEXTS(amount), workload, 0 }
#define GRAPH(name, make, way, width, amount)                                                      \
    { name, make, run_graph, cancel_graph, check_graph, width, GRAPH_TEXTS(amount), NULL, way }

static const kind kinds[] = {
    PROGRAM("tasks", "tasks", ON_ONE, 1, NULL),
    PROGRAM("tasks on lanes", "tasks", ON_LANES, LANES, NULL),
    PROGRAM("tasks on a device", "tasks", ON_DEVICE, CORES, NULL),
    PROGRAM("tasks, time only", "tasks", TIME_ONLY, 1, NULL),
    PROGRAM("tasks, what if", "tasks", WHAT_IF, 1, NULL),
    PROGRAM("tasks, started", "tasks", STARTED | ON_ONE, 1, NULL),
    PROGRAM("tasks, started on lanes", "tasks", STARTED | ON_LANES, LANES, NULL),
    PROGRAM("tasks, started on a device", "tasks", STARTED | ON_DEVICE, CORES, NULL),
    PROGRAM("pipeline", "pipe", ON_ONE, 1, TOKENS),
    PROGRAM("pipeline on lanes", "pipe", ON_LANES, LANES, TOKENS),
    PROGRAM("pipeline on a device", "pipe", ON_DEVICE, CORES, TOKENS),
    PROGRAM("pipeline, time only", "pipe", TIME_ONLY, 1, TOKENS),
    PROGRAM("pipeline, what if", "pipe", WHAT_IF, 1, TOKENS),
    PROGRAM("pipeline, started", "pipe", STARTED | ON_ONE, 1, TOKENS),
    PROGRAM("pipeline, started on lanes", "pipe", STARTED | ON_LANES, LANES, TOKENS),
    PROGRAM("pipeline, started on a device", "pipe", STARTED | ON_DEVICE, CORES, TOKENS),
    {"orders explored", make_run, run_explore, cancel_run, check_explore, 0, EXPLORE_TEXTS, "pipe",
     0},
    SEARCH("schedules searched", "tasks", NULL),
    SEARCH("schedules of a pipeline searched", "pipe", TOKENS),
    GRAPH("graph", make_graph, RUN, LANES, NULL),
    GRAPH("graph with priorities", make_graph, RUN | CLASSED, LANES, NULL),
    GRAPH("graph of a range", make_graph, RUN | RANGE, LANES, NULL),
    GRAPH("graph, started", make_graph, START, LANES, NULL),
    GRAPH("graph on a device", make_graph, RUN_ON_DEVICE, CORES, NULL),
    GRAPH("graph that grows", make_growing_graph, RUN, LANES, FULL),
    GRAPH("graph that grows, started", make_growing_graph, START, LANES, FULL),
    GRAPH("graph that grows on a device", make_growing_graph, RUN_ON_DEVICE, CORES, FULL),
    {"launch", make_nothing, launch, cancel_launch, check_launch, CORES, LAUNCH_TEXTS, NULL, 0},
};

// -- tests ----------------------------------------------------------------------------------------

static const ptowsp_status statuses[] = {PTOWSP_OK, PTOWSP_TIMED_OUT, PTOWSP_CANCELLED,
                                         PTOWSP_CANCELLED, PTOWSP_LIMIT_EXCEEDED};

static bool is_like(const char *text, const char *pattern) {
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*text++ != *pattern) {
                return false;
            }
            continue;
        }
        const size_t digits = strspn(text, "0123456789");
        if (digits == 0) {
            return false;
        }
        text += digits;
    }
    return *text == '\0';
}

static void bed_make(bed *b, const kind *k) {
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = LANES};
    memset(b, 0, sizeof *b);
    desc.resize = test_resize;
    desc.resize_user = &b->memory;
    b->kind = k;
    assert_ok(ptowsp_context_create(&desc, &b->context));
    b->device = device_of(b->context, 1, CORES, 0);
    k->make(b);
}

static void bed_free(bed *b) {
    ptowsp_graph_destroy(b->graph);
    assert_ok(ptowsp_device_close(b->device));
    test_destroy(b->run, b->program, b->module, b->context);
    assert_true(b->memory.live_blocks == 0 && b->memory.live_bytes == 0);
}

static void is_used_again(bed *b, limit after) {
    const ptowsp_status status = run_limited(b, NO_LIMIT);
    if (status != PTOWSP_OK) {
        fail_msg("%s after %s: %s", b->kind->name, limit_names[after],
                 ptowsp_context_error(b->context).text);
    }
    b->kind->check(b);
}

static void meets(bed *b, limit what) {
    const ptowsp_status status = run_limited(b, what), expected = statuses[what];
    const ptowsp_error error = ptowsp_context_error(b->context);
    const char *text = b->kind->texts[what];
    if (status != expected || error.status != expected || !is_like(error.text, text)) {
        fail_msg("%s, %s: %s, %s, not %s, %s", b->kind->name, limit_names[what],
                 ptowsp_status_name(status), error.text, ptowsp_status_name(expected), text);
    }
    // Each lane had begun at most one; what was done is counted.
    const uint32_t most = b->kind->width + (what == BY_TIME ? 0 : b->cancel_at - 1);
    const bool is_counted = b->run && b->kind->width == 1 && b->kind->run == run_in_its_way;
    if (what != BY_AMOUNT &&
        (b->called > most || (is_counted && ptowsp_run_result(b->run)->task_count != b->called))) {
        fail_msg("%s, %s: %u called, %llu done", b->kind->name, limit_names[what], b->called,
                 b->run ? (unsigned long long)ptowsp_run_result(b->run)->task_count : 0ull);
    }
}

// After two rounds all memory that a kind keeps has been taken: a third one keeps no more.
DEVICE_TEST(limits__are_met_by_every_kind_of_run_which_is_used_again) {
    uint32_t met = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        bed b;
        size_t live_bytes = 0;
        bed_make(&b, &kinds[i]);
        for (int round = 0; round < 3; round++) {
            for (limit what = BY_TIME; what < LIMIT_COUNT; what = (limit)(what + 1)) {
                if (kinds[i].texts[what]) {
                    b.cancel_at = 1 + 7 * (uint32_t)round;
                    meets(&b, what);
                    is_used_again(&b, what);
                    met++;
                }
            }
            if (round == 1) {
                live_bytes = b.memory.live_bytes;
            }
        }
        if (b.memory.live_bytes != live_bytes) {
            fail_msg("%s: %zu bytes, then %zu", kinds[i].name, live_bytes, b.memory.live_bytes);
        }
        bed_free(&b);
    }
    print_message("%u limits met by %zu kinds\n", met, COUNT_OF(kinds));
}

// Destroyed without having been used again.
DEVICE_TEST(limits__leave_nothing_behind) {
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        for (limit what = BY_TIME; what < LIMIT_COUNT; what = (limit)(what + 1)) {
            if (kinds[i].texts[what]) {
                bed b;
                bed_make(&b, &kinds[i]);
                b.cancel_at = 1;
                meets(&b, what);
                bed_free(&b);
            }
        }
    }
}

// What was cancelled before the start, and a limit that is not reached, change nothing.
DEVICE_TEST(limits__that_are_not_reached_change_nothing) {
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        bed b;
        bed_make(&b, &kinds[i]);
        kinds[i].cancel(&b);
        is_used_again(&b, NO_LIMIT);
        kinds[i].cancel(&b);
        is_used_again(&b, NO_LIMIT);
        bed_free(&b);
    }
}

// The first schedule is executed whole, and the second cancelled: the first is the result.
static ptowsp_status bind_and_cancel(void *user, ptowsp_run *run) {
    bed *b = (bed *)user;
    if (b->called == FEW) {
        ptowsp_schedule_search_cancel(b->context);
    }
    return bind_many(user, run);
}

DEVICE_TEST(limits__of_a_search_leave_the_schedules_executed_by_then) {
    static const char table[] =
        "1 of 2 schedules executed, 0 refused; ended early\n"
        "      makespan  / bound     idle  issue, dispatch, order, window, lanes; idle by reason\n"
        "           200    1.000    0.0 %";
    const uint32_t lanes[] = {1, 2};
    const ptowsp_dispatch dispatches[] = {PTOWSP_DISPATCH_ROUND_ROBIN};
    const ptowsp_ready orders[] = {PTOWSP_READY_FIFO};
    char out[1024];
    bed b;
    bed_make(&b, &kinds[0]);
    ptowsp_search_desc desc = {.workload = "tasks", .bind = bind_and_cancel, .user = &b};
    desc.lane_counts = lanes, desc.lane_count_count = 2;
    desc.dispatches = dispatches, desc.dispatch_count = 1;
    desc.orders = orders, desc.order_count = 1;
    b.has_costs = true;
    b.count = FEW;
    test_refused(b.context,
                 ptowsp_schedule_search(b.context, b.module, &desc, b.results, 4, &b.summary),
                 PTOWSP_CANCELLED, PTOWSP_NO_INDEX, "search: cancelled; 1 of 2 schedules executed");
    assert_int_equal(b.summary.result_count, 1);
    assert_true(b.results[0].makespan_cycles == FEW * CYCLES && b.results[0].lane_count == 1);
    ptowsp_search_print(b.results, &b.summary, TEST_TEXT(out));
    if (strncmp(out, table, sizeof table - 1) != 0) {
        fail_msg("%s", out);
    }
    bed_free(&b);
}
