// Children of fork(): they have none of their parent's threads, and locks may be held that nobody will
// release. Each kind of object that has threads is forked while it is idle and, where it can be, while
// it executes; the child uses it, as far as section 3 of ptowsp.h allows, and frees it. A child that
// hangs is ended by a signal, and fails the test.
//
// The locks of threads are held by the test at the fork, as any of them may be.

#define _DEFAULT_SOURCE  // usleep

#include "src/base/pool.c"

#include "src/device/device.h"
#include "src/base/start.h"
#include "fork.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#if defined(UNDER_TSAN)
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "die_after_fork=0";  // the default is to end a child that starts threads
}
#endif

enum { LANES = 3, ITEMS = 64 };

static bool is_error(const ptowsp_context *context, const char *text) {
    const ptowsp_error error = ptowsp_context_error(context);
    return error.status == PTOWSP_SYSTEM_FAILED && strcmp(error.text, text) == 0;
}

// -- transports -----------------------------------------------------------------------------------

static void leave_hub(void *user) {
    ptowsp_transport *transport = (ptowsp_transport *)user;
    transport->close(transport->user, true);
}

TEST(fork__a_child_does_not_end_its_parents_rank) {
    const ptowsp_hub_desc desc = {2, 64, true};
    ptowsp_hub *hub;
    ptowsp_context *context = test_context(NULL);
    assert_ok(ptowsp_hub_create(context, &desc, &hub));
    ptowsp_transport a = ptowsp_hub_transport(hub, 0), b = ptowsp_hub_transport(hub, 1);
    test_in_child(leave_hub, &a, 0);
    int sent = 5, received = 0;
    uint64_t tag = 0, size = 0;
    bool is_done = false;
    assert_ok(b.receive(b.user, 0, &received, sizeof received));
    assert_ok(b.test(b.user, 0, false, &is_done, &tag, &size));
    assert_false(is_done);
    assert_ok(a.send(a.user, 1, 7, &sent, sizeof sent));
    assert_ok(a.test(a.user, 1, true, &is_done, &tag, &size));
    assert_ok(b.test(b.user, 0, false, &is_done, &tag, &size));
    assert_true(is_done && received == 5 && tag == 7 && size == sizeof sent);
    a.close(a.user, false);
    b.close(b.user, false);
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

#if PWSP_HAS_THREADS

// Holds locks at the fork, and releases them in the parent alone.
static void in_child_locked(void (*fn)(void *user), void *user, pwsp_mutex *const *locks,
                            size_t lock_count) {
    for (size_t i = 0; i < lock_count; i++) {
        pwsp_mutex_lock(locks[i]);
    }
    test_in_child(fn, user, 0);
    for (size_t i = lock_count; i > 0; i--) {
        pwsp_mutex_unlock(locks[i - 1]);
    }
}

// -- pools ----------------------------------------------------------------------------------------

typedef struct job {
    uint32_t counts[ITEMS];  // each is written by one lane
    uint32_t others;         // atomic: items of other lanes than 0
} job;

static void count_items(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    job *j = (job *)user;
    for (uint64_t i = begin; i < end; i++) {
        j->counts[i]++;
        usleep(20);
    }
    __atomic_fetch_add(&j->others, lane > 0, __ATOMIC_RELAXED);
}

// Runs jobs until a thread comes, and a few more: all items, once.
static void use_lanes(ptowsp_context *context) {
    job j = {0};
    uint32_t count = 0;
    while (count < 3 || (j.others == 0 && ptowsp_context_lane_count(context) > 1)) {
        CHILD_CHECK(ptowsp_parallel_for(context, ITEMS, 1, count_items, &j) == PTOWSP_OK);
        count++;
    }
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHILD_CHECK(j.counts[i] == count);
    }
}

static bool are_awake;  // as if no thread had slept at the fork

static void destroy_context(void *user) {
    ptowsp_context_destroy((ptowsp_context *)user);
}

static void use_and_destroy_context(void *user) {
    pwsp_pool *pool = ((ptowsp_context *)user)->pool;
    if (are_awake && !pwsp_sleeper_is_here(&pool->done)) {
        pool->wake.count = 0;
        pool->wake.first = NULL;
    }
    use_lanes((ptowsp_context *)user);
    destroy_context(user);
}

static void fork_twice(void *user) {
    use_lanes((ptowsp_context *)user);
    const pid_t child = test_fork();
    CHILD_CHECK(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        use_and_destroy_context(user);
        test_exit(0);
    }
    int status = -1;
    CHILD_CHECK(waitpid(child, &status, 0) == child && status == 0);
    use_and_destroy_context(user);
}

TEST(fork__a_child_starts_the_threads_of_an_idle_context_again) {
    static void (*const uses[])(void *) = {destroy_context, use_and_destroy_context, fork_twice};
    for (uint32_t lane_count = 1; lane_count <= LANES; lane_count++) {
        for (size_t i = 0; i < COUNT_OF(uses); i++) {
            // As it is; all asleep; and their locks held; awake.
            for (int how = 0; how < 4; how++) {
                ptowsp_context *context = test_lanes(lane_count);
                pwsp_pool *pool = context->pool;
                use_lanes(context);
                are_awake = how == 3;
                while (how > 0 && pwsp_load_seq_cst(&pool->wake.count) != pool->started_count) {
                    usleep(100);
                }
                pwsp_mutex *const locks[] = {&pool->wake.mutex, &pool->done.mutex};
                in_child_locked(uses[i], context, locks, how == 2 ? COUNT_OF(locks) : 0);
                use_lanes(context);
                ptowsp_context_destroy(context);
            }
        }
    }
}

// -- started executions ---------------------------------------------------------------------------

// Tasks wait while they are held.
typedef struct things {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_graph *graph;
    ptowsp_device *device;
    uint32_t place;             // where the run is started
    uint32_t is_held, entered;  // atomic
} things;

enum { ON_ONE, ON_LANES, ON_DEVICE, PLACES };

static ptowsp_cycles kernel(const ptowsp_task *task, void *user) {
    things *t = (things *)user;
    (void)task;
    __atomic_fetch_add(&t->entered, 1u, __ATOMIC_RELAXED);
    while (__atomic_load_n(&t->is_held, __ATOMIC_ACQUIRE)) {
        usleep(50);
    }
    return 1;
}

static ptowsp_status task(void *user, uint64_t index, uint32_t lane) {
    (void)index;
    (void)lane;
    return kernel(NULL, user) == 1 ? PTOWSP_OK : PTOWSP_KERNEL_FAILED;
}

static ptowsp_graph *graph_of(things *t) {
    ptowsp_graph *graph;
    const ptowsp_graph_task_desc desc = {.fn = task, .user = t};
    assert_ok(ptowsp_graph_create(t->context, NULL, &graph));
    for (int i = 0; i < 8; i++) {
        assert_ok(ptowsp_graph_task_make(graph, &desc, NULL));
    }
    return graph;
}

static void make_run(things *t) {
    const ptowsp_kernel_desc desc = {.name = "k", .fn = kernel, .user = t};
    assert_ok(ptowsp_module_create(t->context, NULL, &t->module));
    const ptowsp_task_desc one = {.kernel = ptowsp_kernel_make(t->module, &desc)};
    PTOWSP_WORKLOAD(t->module, "w") {
        for (int i = 0; i < 8; i++) {
            ptowsp_task_make(t->module, &one);
        }
    }
    assert_ok(ptowsp_program_create(t->context, t->module, NULL, &t->program));
    assert_ok(ptowsp_run_create(t->context, t->program, &t->run));
}

static ptowsp_status start_run(things *t) {
    ptowsp_run_options options = {.lane_count = t->place == ON_LANES ? LANES : 1};
    return t->place == ON_DEVICE ? ptowsp_device_start(t->device, t->run, NULL)
                                 : ptowsp_run_start(t->run, &options);
}

static void begin(things *t, uint32_t place) {
    *t = (things){.context = test_lanes(LANES), .place = place};
    if (place == ON_DEVICE) {
        const ptowsp_device_desc desc = {.vector_count = 2};
        assert_ok(ptowsp_device_open(t->context, &desc, &t->device));
    }
    make_run(t);
    t->graph = graph_of(t);
}

static void end(things *t) {
    ptowsp_graph_destroy(t->graph);
    test_destroy(t->run, t->program, t->module, NULL);
    ptowsp_device_close(t->device);
    ptowsp_context_destroy(t->context);
}

static void await_entered(things *t) {
    while (__atomic_load_n(&t->entered, __ATOMIC_RELAXED) == 0) {
        usleep(50);
    }
}

static void hold(things *t, bool is_held) {
    __atomic_store_n(&t->is_held, is_held, __ATOMIC_RELEASE);
}

// What is idle is started again, on threads that are made in the child.
static void start_again(void *user) {
    things *t = (things *)user;
    for (int round = 0; round < 2; round++) {
        t->entered = 0;
        if (t->place != ON_DEVICE) {
            CHILD_CHECK(start_run(t) == PTOWSP_OK);
            CHILD_CHECK(ptowsp_run_wait(t->run) == PTOWSP_OK && t->entered == 8);
        }
        CHILD_CHECK(ptowsp_graph_start(t->graph) == PTOWSP_OK);
        CHILD_CHECK(ptowsp_graph_wait(t->graph) == PTOWSP_OK);
        CHILD_CHECK(t->entered == (t->place == ON_DEVICE ? 8 : 16));
    }
    end(t);
}

static void only_end(void *user) {
    end((things *)user);
}

TEST(fork__a_child_starts_idle_runs_and_graphs_again) {
    for (uint32_t place = 0; place < PLACES; place++) {
        for (int how = 0; how < 4; how++) {
            things t;
            begin(&t, place);
            assert_ok(start_run(&t));
            assert_ok(ptowsp_run_wait(t.run));
            assert_ok(ptowsp_graph_start(t.graph));
            assert_ok(ptowsp_graph_wait(t.graph));
            pwsp_mutex *const locks[] = {&t.run->start->asked.mutex, &t.run->start->done.mutex};
            in_child_locked(how % 2 ? start_again : only_end, &t, locks,
                            how >= 2 ? COUNT_OF(locks) : 0);
            end(&t);
        }
    }
}

// In the parent it executes; here nobody does.
static void check_lost_run(things *t) {
    static const char *const text =
        "run: the parent of this process executes it; here it can only be destroyed";
    hold(t, false);
    for (int i = 0; i < 2; i++) {
        CHILD_CHECK(ptowsp_run_poll(t->run) == PTOWSP_SYSTEM_FAILED && is_error(t->context, text));
        CHILD_CHECK(ptowsp_run_wait(t->run) == PTOWSP_SYSTEM_FAILED && is_error(t->context, text));
        CHILD_CHECK(start_run(t) == PTOWSP_BUSY);
        CHILD_CHECK(ptowsp_run_execute(t->run, NULL) == PTOWSP_BUSY);
    }
}

static void lose_run(void *user) {
    things *t = (things *)user;
    check_lost_run(t);
    ptowsp_run_destroy(t->run);
    CHILD_CHECK(ptowsp_run_create(t->context, t->program, &t->run) == PTOWSP_OK);
    use_lanes(t->context);  // it is not busy any more
    if (t->place == ON_DEVICE) {
        CHILD_CHECK(start_run(t) == PTOWSP_SYSTEM_FAILED);
        CHILD_CHECK(ptowsp_device_close(t->device) == PTOWSP_OK);
        CHILD_CHECK(ptowsp_device_open(t->context, NULL, &t->device) == PTOWSP_OK);
    }
    t->entered = 0;
    CHILD_CHECK(start_run(t) == PTOWSP_OK);
    CHILD_CHECK(ptowsp_run_wait(t->run) == PTOWSP_OK && t->entered == 8);
    end(t);
}

TEST(fork__a_child_can_only_destroy_a_run_that_executes) {
    for (uint32_t place = 0; place < PLACES; place++) {
        for (int how = 0; how < 2; how++) {
            things t;
            begin(&t, place);
            hold(&t, true);
            assert_ok(start_run(&t));
            await_entered(&t);
            test_in_child(how ? lose_run : only_end, &t, 0);
            hold(&t, false);
            assert_ok(ptowsp_run_wait(t.run));
            end(&t);
        }
    }
}

static void lose_graph(void *user) {
    static const char *const text =
        "graph: the parent of this process executes it; here it can only be destroyed";
    things *t = (things *)user;
    hold(t, false);
    for (int i = 0; i < 2; i++) {
        CHILD_CHECK(ptowsp_graph_poll(t->graph) == PTOWSP_SYSTEM_FAILED &&
                    is_error(t->context, text));
        CHILD_CHECK(ptowsp_graph_wait(t->graph) == PTOWSP_SYSTEM_FAILED &&
                    is_error(t->context, text));
        CHILD_CHECK(ptowsp_graph_start(t->graph) == PTOWSP_BUSY);
        CHILD_CHECK(ptowsp_graph_run(t->graph) == PTOWSP_BUSY);
    }
    ptowsp_graph_destroy(t->graph);
    use_lanes(t->context);
    t->graph = graph_of(t);
    t->entered = 0;
    CHILD_CHECK(ptowsp_graph_start(t->graph) == PTOWSP_OK);
    CHILD_CHECK(ptowsp_graph_wait(t->graph) == PTOWSP_OK && t->entered == 8);
    end(t);
}

TEST(fork__a_child_can_only_destroy_a_graph_that_executes) {
    for (int how = 0; how < 2; how++) {
        things t;
        begin(&t, ON_ONE);
        hold(&t, true);
        assert_ok(ptowsp_graph_start(t.graph));
        await_entered(&t);
        pwsp_mutex *const lock = &t.graph->engine.sleepers.mutex;
        in_child_locked(how ? lose_graph : only_end, &t, &lock, 1);
        hold(&t, false);
        assert_ok(ptowsp_graph_wait(t.graph));
        end(&t);
    }
}

// An execution that has ended by the fork is there in the child, too.
static void wait_for_both(void *user) {
    things *t = (things *)user;
    CHILD_CHECK(ptowsp_run_wait(t->run) == PTOWSP_OK);
    CHILD_CHECK(ptowsp_graph_start(t->graph) == PTOWSP_OK);
    CHILD_CHECK(ptowsp_graph_wait(t->graph) == PTOWSP_OK);
    end(t);
}

TEST(fork__a_child_has_the_results_of_what_has_ended) {
    for (uint32_t place = 0; place < PLACES; place++) {
        things t;
        begin(&t, place);
        assert_ok(start_run(&t));
        while (pwsp_load_seq_cst(&t.run->start->state) != PWSP_START_DONE) {
            usleep(50);
        }
        test_in_child(wait_for_both, &t, 0);
        assert_ok(ptowsp_run_wait(t.run));
        end(&t);
    }
}

// -- devices --------------------------------------------------------------------------------------

static void use_device(void *user) {
    static const char *const text = "device: its threads are in the parent of this process: close "
                                    "it and open another";
    things *t = (things *)user;
    void *memory;
    ptowsp_run_options options = {.lane_count = 1};
    CHILD_CHECK(ptowsp_device_alloc(t->device, "x", 64, &memory) == PTOWSP_SYSTEM_FAILED);
    CHILD_CHECK(is_error(t->context, text));
    CHILD_CHECK(ptowsp_device_run_graph(t->device, t->graph) == PTOWSP_SYSTEM_FAILED);
    CHILD_CHECK(ptowsp_device_run(t->device, t->run, &options) == PTOWSP_SYSTEM_FAILED);
    CHILD_CHECK(ptowsp_device_start(t->device, t->run, &options) == PTOWSP_SYSTEM_FAILED);
    CHILD_CHECK(is_error(t->context, text));
    CHILD_CHECK(ptowsp_device_close(t->device) == PTOWSP_OK);
    CHILD_CHECK(ptowsp_device_open(t->context, NULL, &t->device) == PTOWSP_OK);
    CHILD_CHECK(ptowsp_device_run_graph(t->device, t->graph) == PTOWSP_OK);
    CHILD_CHECK(ptowsp_device_run(t->device, t->run, &options) == PTOWSP_OK);
    end(t);
}

TEST(fork__a_child_closes_its_parents_device_and_opens_another) {
    for (int how = 0; how < 4; how++) {
        things t;
        begin(&t, ON_DEVICE);
        pwsp_mutex *const locks[] = {&t.device->cores.mutex, &t.device->cores.host.mutex,
                                     &t.device->cores.cores[0].own.mutex,
                                     &t.device->cores.aicpus[0].own.mutex};
        in_child_locked(how % 2 ? use_device : only_end, &t, locks, how >= 2 ? COUNT_OF(locks) : 0);
        assert_ok(ptowsp_device_run_graph(t.device, t.graph));
        end(&t);
    }
}

#endif
