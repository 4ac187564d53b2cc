// The wall clock of tasks: what runs record of it, beside what their kernels have seen.

#include "device_fixture.h"

// Requests with a task each, and one behind it; then a pipeline of two processes.
enum { REQUESTS = 40, TILES = 9, TASK_COUNT = 2 * REQUESTS + 2 * TILES, BUSY_NS = 3000 };

typedef struct seen {
    uint64_t begin, end;
    uint32_t lane, count;
} seen;

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    seen seen[TASK_COUNT];
} fixture;

static ptowsp_cycles spend(const ptowsp_task *task, void *user) {
    seen *s = &((fixture *)user)->seen[task->index];
    s->begin = ptowsp_clock_ns();
    s->lane = task->lane;
    while (ptowsp_clock_ns() - s->begin < BUSY_NS) {
    }
    s->end = ptowsp_clock_ns();
    s->count++;
    return 10;
}

static void make(fixture *f, bool has_cost, const ptowsp_schedule *schedule) {
    const ptowsp_module_desc module = {"wall", 8};
    const ptowsp_context_desc context = {.threads = PTOWSP_THREADS_OWN, .lane_count = 3};
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(&context, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, &module, &f->m), PTOWSP_OK);
    ptowsp_kernel_desc desc;
    ptowsp_task_desc first, last;
    memset(&desc, 0, sizeof desc);
    memset(&first, 0, sizeof first);
    memset(&last, 0, sizeof last);
    desc.axis_count = 1;
    desc.fn = spend;
    desc.user = f;
    desc.cycles = has_cost ? 10 : 0;  // known before it runs
    desc.name = "first";
    first.kernel = ptowsp_kernel_make(f->m, &desc);
    desc.name = "last";
    last.kernel = ptowsp_kernel_make(f->m, &desc);
    PTOWSP_WORKLOAD(f->m, "step") {
        PTOWSP_SEQUENCE(f->m) {
            PTOWSP_PARALLEL(f->m, request, ptowsp_axis_dense(f->m, "requests", REQUESTS)) {
                PTOWSP_SEQUENCE(f->m) {
                    first.axes[0] = last.axes[0] = request;
                    ptowsp_task_make(f->m, &first);
                    ptowsp_task_make(f->m, &last);
                }
            }
            PTOWSP_PIPELINE(f->m, "stages") {
                ptowsp_channel_desc channel = {"tiles", 2, 0, {NULL, 0}, {NULL, 0}};
                ptowsp_channel c = ptowsp_channel_make(f->m, &channel);
                PTOWSP_PROCESS(f->m, "load") {
                    ptowsp_produces(f->m, c);
                    PTOWSP_FOR_EACH(f->m, tile, ptowsp_axis_dense(f->m, "count", TILES)) {
                        first.axes[0] = tile;
                        ptowsp_send_task(f->m, c, &first);
                    }
                }
                PTOWSP_PROCESS(f->m, "compute") {
                    ptowsp_consumes(f->m, c);
                    PTOWSP_CONSUME(f->m, token, c) {
                        last.axes[0] = token;
                        ptowsp_task_make(f->m, &last);
                    }
                }
            }
        }
    }
    const ptowsp_program_desc program = {NULL, schedule};
    if (ptowsp_program_create(f->context, f->m, &program, &f->program) != PTOWSP_OK ||
        ptowsp_run_create(f->context, f->program, &f->run) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

static void destroy(fixture *f) {
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
}

static void record(const fixture *f, uint64_t every, bool has_clock) {
    const ptowsp_record_options options = {PTOWSP_RECORD_TASKS, 0, 0, every, has_clock};
    assert_int_equal(ptowsp_run_record(f->run, &options), PTOWSP_OK);
}

// Two clocks tell the times, and rounding is coarser than a tick.
enum { SLACK_NS = 2000 };

// Records against what kernels have seen between two times of the clock.
static void check(const fixture *f, uint64_t every, uint64_t before, uint64_t after) {
    assert_int_equal(ptowsp_run_trace_count(f->run), (TASK_COUNT + every - 1) / every);
    for (uint64_t i = 0; i < ptowsp_run_trace_count(f->run); i++) {
        const ptowsp_task_trace task = ptowsp_run_trace_at(f->run, i);
        const ptowsp_task_record *clock = ptowsp_run_clock_at(f->run, i);
        const seen *s = &f->seen[task.index];
        assert_int_equal(s->count, 1);
        assert_non_null(clock);
        assert_int_equal(clock->lane, s->lane);
        assert_int_equal(clock->kernel, task.record->kernel);
        assert_int_equal(clock->node, task.record->node);
        assert_true(clock->ready <= clock->start);
        // The kernel ran inside; the record counts from some time after `before`.
        assert_true(clock->start <= s->begin - before + SLACK_NS);
        assert_true(clock->end + (after - before) + SLACK_NS >= s->end - before);
        assert_true(clock->end - clock->start + SLACK_NS >= s->end - s->begin);
        assert_true(clock->end <= after - before + SLACK_NS);
        for (uint64_t j = 0; j < i; j++) {  // one after another on a lane
            const ptowsp_task_record *other = ptowsp_run_clock_at(f->run, j);
            assert_true(other->lane != clock->lane || other->end <= clock->start ||
                        clock->end <= other->start);
        }
        if (every == 1 && i < 2 * REQUESTS && i % 2 == 1) {  // behind its first one
            assert_true(ptowsp_run_clock_at(f->run, i - 1)->end <= clock->ready);
        }
    }
}

static void wall__tells_when_and_where_kernels_ran(void **state) {
    (void)state;
    static fixture f;
    for (uint32_t kind = 0; kind < 12; kind++) {
        ptowsp_schedule schedule;
        ptowsp_run_options options;
        memset(&schedule, 0, sizeof schedule);
        memset(&options, 0, sizeof options);
        schedule.lane_count = 2;
        schedule.dispatch = kind % 2 ? PTOWSP_DISPATCH_WORK_STEALING : PTOWSP_DISPATCH_DEFAULT;
        schedule.ready = PTOWSP_READY_FIFO;
        make(&f, kind / 2 % 2, &schedule);
        uint64_t every = kind % 4 == 3 ? 3 : 1;
        options.lane_count = kind / 4 + 1;
        for (int again = 0; again < 2; again++) {
            memset(f.seen, 0, sizeof f.seen);
            record(&f, every, true);
            uint64_t before = ptowsp_clock_ns();
            if (ptowsp_run_execute(f.run, &options) != PTOWSP_OK) {
                fail_msg("%s", ptowsp_context_error(f.context).text);
            }
            check(&f, every, before, ptowsp_clock_ns());
        }
        record(&f, 1, false);
        assert_int_equal(ptowsp_run_execute(f.run, &options), PTOWSP_OK);
        assert_null(ptowsp_run_clock_at(f.run, 0));
        record(&f, 1, true);
        options.mode = PTOWSP_RUN_TIME_ONLY;
        ptowsp_status status = ptowsp_run_execute(f.run, &options);
        assert_int_equal(status, kind / 2 % 2 ? PTOWSP_OK : PTOWSP_UNSUPPORTED);  // without cycles
        if (status == PTOWSP_OK) {
            assert_null(ptowsp_run_clock_at(f.run, 0));
        }
        destroy(&f);
    }
}

static void wall__tells_which_core_of_a_device(void **state) {
    (void)state;
    static fixture f;
    make(&f, true, NULL);
    ptowsp_device *device;
    const ptowsp_device_desc desc = {.vector_count = 3};
    if (ptowsp_device_open(f.context, &desc, &device) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f.context).text);
    }
    record(&f, 1, true);
    uint64_t before = ptowsp_clock_ns();
    assert_int_equal(ptowsp_device_run(device, f.run, NULL), PTOWSP_OK);
    check(&f, 1, before, ptowsp_clock_ns());
    assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
    destroy(&f);
}

static ptowsp_cycles fail_third(const ptowsp_task *task, void *user) {
    (void)user;
    return task->index == 2 ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : 1;
}

static void wall__of_tasks_that_did_not_run_is_none(void **state) {
    (void)state;
    const ptowsp_context_desc context_desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = 2};
    const ptowsp_record_options wrong = {PTOWSP_RECORD_TOTALS, 0, 0, 0, true};
    fixture f;
    memset(&f, 0, sizeof f);
    assert_int_equal(ptowsp_context_create(&context_desc, &f.context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f.context, NULL, &f.m), PTOWSP_OK);
    ptowsp_kernel_desc desc = {.name = "k", .fn = fail_third};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(f.m, &desc)};
    PTOWSP_WORKLOAD(f.m, "w") {
        PTOWSP_FOR_EACH(f.m, i, ptowsp_axis_dense(f.m, "n", 5)) {
            ptowsp_task_make(f.m, &task);
        }
    }
    assert_int_equal(ptowsp_program_create(f.context, f.m, NULL, &f.program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(f.context, f.program, &f.run), PTOWSP_OK);
    assert_int_equal(ptowsp_run_record(f.run, &wrong), PTOWSP_INVALID_PARAMS);
    test_error_is(f.context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "run: the wall clock is recorded of tasks (PTOWSP_RECORD_TASKS)");
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        const ptowsp_run_options options = {.lane_count = lanes};
        record(&f, 1, true);
        assert_int_equal(ptowsp_run_execute(f.run, &options), PTOWSP_KERNEL_FAILED);
        assert_int_equal(ptowsp_run_trace_count(f.run), 2);
        for (uint64_t i = 0; i < 2; i++) {
            assert_true(ptowsp_run_clock_at(f.run, i)->lane < lanes);
        }
    }
    destroy(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wall__tells_when_and_where_kernels_ran),
        cmocka_unit_test(wall__tells_which_core_of_a_device),
        cmocka_unit_test(wall__of_tasks_that_did_not_run_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
