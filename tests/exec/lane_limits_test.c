// Programs on lanes at their limits: how far the walk runs ahead, in which order errors come when
// memory is missing or a pipeline is stuck, and what is asked of options.

#include "test.h"

#include <sched.h>

enum { TASKS = 3000 };  // more than there is room for from the start

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t data[TASKS];
    uint32_t has_ended[TASKS];  // atomic
    uint32_t is_far;            // atomic: a task began too early
    uint32_t call_count;        // atomic
    uint64_t window;
    uint64_t failing;  // tasks from this one on fail
} fixture;

static void run_forwards(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    (void)user;
    for (uint32_t i = 0; i < lane_count; i++) {
        lane(job, i);
    }
}

static void fixture_make(fixture *f, ptowsp_run_lanes_fn run_lanes) {
    memset(f, 0, sizeof *f);
    f->failing = UINT64_MAX;
    ptowsp_context_desc desc = {.resize = test_resize,
                                .resize_user = &f->memory,
                                .threads = PTOWSP_THREADS_USER,
                                .lane_count = 4,
                                .run_lanes = run_lanes};
    assert_ok(ptowsp_context_create(&desc, &f->context));
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
    assert_int_equal(f->memory.live_blocks, 0);
}

// A program of a text, with kernel k.
static void program_make(fixture *f, const char *text, ptowsp_kernel_fn fn, uint32_t window) {
    const ptowsp_parse_kernel kernel = {.name = "k", .fn = fn, .user = f};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    const ptowsp_schedule schedule = {.lane_count = 2, .window = window};
    const ptowsp_program_desc desc = {NULL, &schedule};
    f->window = window;
    f->run = test_run_text(f->context, text, &attached, &desc, &f->m, &f->program);
}

// A loop of tasks, each with the element `at`: one of its own, or the same.
#define LOOP(at)                                                                                   \
    "module m\naxis n 3000\ntensor x i32 [3000] global\n"                                          \
    "kernel k(axes 0, inout tile i32 1 x 1) vector\nworkload main\n  parallel i in n\n"            \
    "    task k() tile = x at ((0), " at ")\n"

static ptowsp_status execute(fixture *f, ptowsp_run_mode mode, uint32_t lane_count) {
    ptowsp_run_options options = {.mode = mode, .lane_count = lane_count};
    return ptowsp_run_execute(f->run, &options);
}

static void bind(fixture *f) {
    test_bind(f->run, "x", f->data);
}

// -- how far the walk runs ahead ------------------------------------------------------------------

// Each tenth task takes its time; none may begin while one that is a window before it runs.
static ptowsp_cycles watch_window(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    if (task->index >= f->window) {
        for (uint64_t i = 0; i <= task->index - f->window; i++) {
            if (!__atomic_load_n(&f->has_ended[i], __ATOMIC_ACQUIRE)) {
                __atomic_store_n(&f->is_far, 1u, __ATOMIC_RELAXED);
            }
        }
    }
    for (int i = 0; task->index % 10 == 0 && i < 200; i++) {
        sched_yield();
    }
    __atomic_store_n(&f->has_ended[task->index], 1u, __ATOMIC_RELEASE);
    return 1;
}

TEST(lane_limits__no_task_begins_a_window_before_the_oldest_has_ended) {
    static const uint32_t windows[] = {1, 2, 3, 5, 6, 9};
    for (int i = 0; i < 6; i++) {
        fixture f;
        fixture_make(&f, test_run_lanes_on_threads);
        program_make(&f, LOOP("i"), watch_window, windows[i]);
        bind(&f);
        assert_ok(execute(&f, PTOWSP_RUN_EXECUTE, 4));
        assert_int_equal(f.is_far, 0);
        fixture_free(&f);
    }
}

// -- errors ---------------------------------------------------------------------------------------

static ptowsp_cycles fail_late(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    __atomic_fetch_add(&f->call_count, 1u, __ATOMIC_RELAXED);
    return task->index >= f->failing ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : 1;
}

// All tasks from the third on fail, and each waits for the one before, so that all are issued first. Memory is refused at each allocation: if that is met while tasks
// are issued, those before it count, and of them the first that fails.
TEST(lane_limits__a_failure_comes_before_memory_that_is_missing_behind_it) {
    unsigned refused = 0, failed = 0;
    for (size_t at = 1;; at++) {
        fixture f;
        fixture_make(&f, run_forwards);
        program_make(&f, LOOP("(0)"), fail_late, 0);
        bind(&f);
        f.failing = 2;
        f.memory.refuse_at = f.memory.allocations + at;
        ptowsp_status status = execute(&f, PTOWSP_RUN_EXECUTE, 3);
        bool is_reached = f.memory.allocations >= f.memory.refuse_at;
        f.memory.refuse_at = 0;
        if (status == PTOWSP_OUT_OF_MEMORY) {
            refused++;
            assert_true(ptowsp_run_result(f.run)->task_count <= 2);  // perhaps for their time
        } else {
            assert_int_equal(status, PTOWSP_KERNEL_FAILED);
            assert_int_equal(ptowsp_context_error(f.context).index, 2);
            assert_int_equal(ptowsp_run_result(f.run)->task_count, 2);
            failed += is_reached;
        }
        f.failing = UINT64_MAX;
        assert_ok(execute(&f, PTOWSP_RUN_EXECUTE, 3));
        fixture_free(&f);
        if (!is_reached) {
            break;
        }
    }
    assert_true(refused > 0 && failed > 0);
}

TEST(lane_limits__time_alone_takes_no_notice_of_lanes) {
    fixture f;
    fixture_make(&f, run_forwards);
    program_make(&f, "module m\nkernel k(axes 0) vector, 7 cycles\nworkload main\n  task k()\n",
                 fail_late, 0);
    assert_invalid(execute(&f, PTOWSP_RUN_EXECUTE, 5));
    assert_ok(execute(&f, PTOWSP_RUN_TIME_ONLY, 5));
    assert_int_equal(f.call_count, 0);
    assert_int_equal(ptowsp_run_result(f.run)->makespan_cycles, 7);
    fixture_free(&f);
}
