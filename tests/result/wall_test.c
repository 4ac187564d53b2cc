// The wall clock of tasks: what runs record of it, beside what their kernels have seen.

#include "src/base/wall.h"
#include "device_fixture.h"
#include "tests/plan/attention_fixture.h"
#include "written.h"

// Requests with a task each, and one behind it; then a pipeline of two processes.
enum { REQUESTS = 40, TILES = 9, TASK_COUNT = 2 * REQUESTS + 2 * TILES, BUSY_NS = 40000 };

typedef struct seen {
    uint64_t begin, end;
    uint32_t lane, count;
} seen;

typedef struct walled {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    seen seen[TASK_COUNT];
    test_memory memory;
} walled;

static ptowsp_cycles spend(const ptowsp_task *task, void *user) {
    seen *s = &((walled *)user)->seen[task->index];
    s->begin = ptowsp_clock_ns();
    s->lane = task->lane;
    while (ptowsp_clock_ns() - s->begin < BUSY_NS) {
    }
    s->end = ptowsp_clock_ns();
    s->count++;
    return 10;
}

// Cycles are known before a kernel runs, or not.
#define STEP(cycles)                                                                               \
    "module wall slots 8\naxis requests 40\naxis count 9\nkernel first(axes 1) vector" cycles      \
    "\nkernel last(axes 1) vector" cycles "\nworkload step\n  parallel request in requests\n"      \
    "    sequence\n      task first(request)\n      task last(request)\n"                          \
    "  pipeline stages\n    channel tiles depth 2 latency 0\n"                                     \
    "    process load produces tiles\n      for_each tile in count\n"                              \
    "        task first(tile)\n        send tiles(tile)\n"                                         \
    "    process compute consumes tiles\n      consume token from tiles\n"                         \
    "        task last(token)\n"

static void make(walled *f, bool has_cost, const ptowsp_schedule *schedule) {
    const char *text = has_cost ? STEP(", 10 cycles") : STEP("");
    memset(f, 0, sizeof *f);
    const ptowsp_context_desc context = {.threads = PTOWSP_THREADS_OWN,
                                         .lane_count = 3,
                                         .resize = test_resize,
                                         .resize_user = &f->memory};
    const ptowsp_parse_kernel kernels[2] = {{.name = "first", .fn = spend, .user = f},
                                            {.name = "last", .fn = spend, .user = f}};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 2};
    const ptowsp_program_desc program = {NULL, schedule};
    f->context = test_context(&context);
    f->run = test_run_text(f->context, text, &attached, &program, &f->m, &f->program);
}

static void destroy(walled *f) {
    test_destroy(f->run, f->program, f->m, f->context);
    assert_int_equal(f->memory.live_blocks, 0);
}

static void record(const walled *f, uint64_t every, bool has_clock) {
    const ptowsp_record_options options = {PTOWSP_RECORD_TASKS, 0, 0, every, has_clock};
    assert_ok(ptowsp_run_record(f->run, &options));
}

// Two clocks tell the times, and rounding is coarser than a tick.
enum { SLACK_NS = 20000 };

// Records against what kernels have seen between two times of the clock.
static void check(const walled *f, uint64_t every, uint64_t before, uint64_t after) {
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

TEST(wall__tells_when_and_where_kernels_ran) {
    static walled f;
    for (uint32_t kind = 0; kind < 12; kind++) {
        ptowsp_run_options options = {0};
        ptowsp_schedule schedule = {.lane_count = 2,
                                    .dispatch = kind % 2 ? PTOWSP_DISPATCH_WORK_STEALING
                                                         : PTOWSP_DISPATCH_DEFAULT,
                                    .ready = PTOWSP_READY_FIFO};
        make(&f, kind / 2 % 2, &schedule);
        uint64_t every = kind % 4 == 3 ? 3 : 1;
        options.lane_count = kind / 4 + 1;
        for (int again = 0; again < 2; again++) {
            memset(f.seen, 0, sizeof f.seen);
            record(&f, every, true);
            uint64_t before = ptowsp_clock_ns();
            test_ok(f.context, ptowsp_run_execute(f.run, &options));
            check(&f, every, before, ptowsp_clock_ns());
        }
        record(&f, 1, false);
        assert_ok(ptowsp_run_execute(f.run, &options));
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

// Reads a CSV back: a line is index,...,"lane L",ready,issue,start,end,...
static uint32_t csv_lines(ptowsp_span *out_spans, uint64_t capacity) {
    uint32_t count = 0;
    for (const char *line = strchr(written.text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        unsigned long long index = 0, ready = 0, issue = 0, start = 0, end = 0;
        unsigned lane = 0;
        const char *track = strstr(line, "\"lane ");
        if (track && track < strchr(line, '\n')) {
            assert_int_equal(sscanf(line, "%llu", &index), 1);
            assert_int_equal(sscanf(track, "\"lane %u\",%llu,%llu,%llu,%llu", &lane, &ready, &issue,
                                    &start, &end),
                             5);
            assert_true(index < capacity);
            const ptowsp_span span = {start, end, lane, 0};
            out_spans[index] = span;
            count++;
        }
    }
    return count;
}

TEST(wall__tells_which_core_of_a_device) {
    static walled f;
    make(&f, true, NULL);
    ptowsp_device *device = device_of(f.context, 1, 3, 0);
    record(&f, 1, true);
    uint64_t before = ptowsp_clock_ns();
    assert_ok(ptowsp_device_run(device, f.run, NULL));
    check(&f, 1, before, ptowsp_clock_ns());
    ptowsp_span read[TASK_COUNT];
    const ptowsp_export_options options = {.time = PTOWSP_TIME_WALL};
    assert_ok(ptowsp_run_export(f.run, PTOWSP_EXPORT_CSV, &options, written_output()));
    assert_int_equal(csv_lines(read, TASK_COUNT), TASK_COUNT);
    for (uint64_t i = 0; i < TASK_COUNT; i++) {
        const ptowsp_task_record *clock = ptowsp_run_clock_at(f.run, i);
        assert_true(read[i].begin == clock->start && read[i].end == clock->end);
        assert_int_equal(read[i].lane, clock->lane);
    }
    assert_ok(ptowsp_device_close(device));
    destroy(&f);
}

static ptowsp_cycles fail_third(const ptowsp_task *task, void *user) {
    (void)user;
    return task->index == 2 ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : 1;
}

TEST(wall__of_tasks_that_did_not_run_is_none) {
    const ptowsp_record_options wrong = {PTOWSP_RECORD_TOTALS, 0, 0, 0, true};
    static const char text[] = "module m\naxis n 5\nkernel k(axes 0) vector\nworkload w\n"
                               "  for_each i in n\n    task k()\n";
    const ptowsp_parse_kernel kernel = {.name = "k", .fn = fail_third};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    walled f = {.context = test_lanes(2)};
    f.run = test_run_text(f.context, text, &attached, NULL, &f.m, &f.program);
    test_invalid(f.context, ptowsp_run_record(f.run, &wrong),
                 "run: the wall clock is recorded of tasks (PTOWSP_RECORD_TASKS)");
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        record(&f, 1, true);
        assert_int_equal(test_execute(f.run, lanes), PTOWSP_KERNEL_FAILED);
        assert_int_equal(ptowsp_run_trace_count(f.run), 2);
        for (uint64_t i = 0; i < 2; i++) {
            assert_true(ptowsp_run_clock_at(f.run, i)->lane < lanes);
        }
    }
    destroy(&f);
}

// Executes and exports, with one allocation refused from here on; 0: none. OUT_OF_MEMORY if it was.
static bool survives(walled *f, size_t refused) {
    const ptowsp_export_options both = {.time = PTOWSP_TIME_BOTH};
    const ptowsp_span spans[] = {{3, 4, 1, 0}, {1, 2, 1, 0}};
    static const char *const names[] = {"name"};
    const ptowsp_span_set set = {"title", spans, 2, names, 1, NULL, NULL, 0, NULL, NULL, 0, false};
    f->memory.refuse_at = refused ? f->memory.allocations + refused : 0;
    ptowsp_status status = test_execute(f->run, 2);
    if (status == PTOWSP_OK) {
        status = ptowsp_run_export(f->run, PTOWSP_EXPORT_PERFETTO, &both, written_output());
    }
    if (status == PTOWSP_OK) {
        status = ptowsp_spans_export(f->context, &set, PTOWSP_EXPORT_SVG, NULL, written_output());
    }
    assert_true(status == PTOWSP_OK || status == PTOWSP_OUT_OF_MEMORY);
    f->memory.refuse_at = 0;
    return status == PTOWSP_OK;
}

TEST(wall__every_refused_allocation_is_told) {
    static walled f;
    size_t refused = 1;
    for (bool is_over = false; !is_over; refused++) {
        make(&f, true, NULL);
        record(&f, 1, true);
        is_over = survives(&f, refused);
        assert_true(is_over || survives(&f, 0));  // and can be repeated
        destroy(&f);
    }
    assert_in_range(refused, 20, 1000);
}

// -- graphs ---------------------------------------------------------------------------------------

// A chain of two tasks before a range, and one that fails with one behind it.
enum { NODES = 5, ITEMS = 6 };

static ptowsp_status node_spend(void *user, uint64_t task, uint32_t lane) {
    seen *s = &((seen *)user)[task];
    s->begin = ptowsp_clock_ns();
    s->lane = lane;
    while (ptowsp_clock_ns() - s->begin < BUSY_NS) {
    }
    s->end = ptowsp_clock_ns();
    return task == 3 ? PTOWSP_KERNEL_FAILED : PTOWSP_OK;
}

static ptowsp_status node_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    seen *s = &((seen *)user)[NODES + begin];
    (void)end;
    return node_spend(s, 0, lane);
}

static void check_nodes(const ptowsp_span *spans, const seen *saw) {
    for (int i = 0; i < NODES; i++) {
        uint64_t begin = UINT64_MAX, end = 0;
        for (int k = 0; i == 2 && k < ITEMS; k++) {
            if (saw[NODES + k].end == 0) {
                continue;  // in a range that begins before it
            }
            begin = saw[NODES + k].begin < begin ? saw[NODES + k].begin : begin;
            end = saw[NODES + k].end > end ? saw[NODES + k].end : end;
        }
        begin = i == 2 ? begin : saw[i].begin;
        end = i == 2 ? end : saw[i].end;
        if (i == 4) {  // behind the one that failed
            assert_int_equal(spans[i].end, 0);
            continue;
        }
        if (!(spans[i].begin <= begin + SLACK_NS && spans[i].end + SLACK_NS >= end)) {
            fail_msg("task %d ran from %llu to %llu, with a span from %lld to %lld", i,
                     (unsigned long long)begin, (unsigned long long)end, (long long)spans[i].begin,
                     (long long)spans[i].end);
        }
        assert_true(begin - spans[i].begin < 1000000000 || spans[i].begin > begin);
        assert_int_equal(spans[i].kind, i == 1 ? PTOWSP_UNIT_CUBE : PTOWSP_UNIT_VECTOR);
        if (i != 2) {
            assert_int_equal(spans[i].lane, saw[i].lane);
        }
    }
    assert_true(spans[0].end <= spans[1].begin && spans[1].end <= spans[2].begin);
}

// The picture of a graph's spans, read back: times from the earliest on.
static void check_picture(ptowsp_context *context, const ptowsp_span *spans) {
    static const char *const names[] = {"vector", "cube"};
    const ptowsp_span_set set = {"graph", spans, NODES, names, 2, NULL,
                                 NULL,    0,     NULL,  NULL,  0, false};
    ptowsp_span read[NODES];
    uint64_t first = UINT64_MAX;
    assert_ok(ptowsp_spans_export(context, &set, PTOWSP_EXPORT_CSV, NULL, written_output()));
    assert_int_equal(csv_lines(read, NODES), NODES - 1);  // but the one that was skipped
    for (int i = 0; i < NODES - 1; i++) {
        first = spans[i].begin < first ? spans[i].begin : first;
    }
    for (int i = 0; i < NODES - 1; i++) {
        assert_true(read[i].begin == spans[i].begin - first && read[i].end == spans[i].end - first);
        assert_int_equal(read[i].lane, spans[i].lane);
    }
}

TEST(wall__clock_of_graphs_is_recorded) {
    ptowsp_graph *graph;
    seen saw[NODES + ITEMS];
    ptowsp_span spans[NODES + 1];
    ptowsp_context *context = test_lanes(3);
    for (uint32_t cubes = 0; cubes < 2; cubes++) {  // with queues of units, too
        const ptowsp_graph_desc desc = {.cube_lane_count = cubes};
        assert_ok(ptowsp_graph_create(context, &desc, &graph));
        static const uint64_t edges[][2] = {{0, 1}, {1, 2}, {3, 4}};
        const ptowsp_graph_task_desc tasks[NODES] = {
            {.fn = node_spend, .user = saw},
            {.fn = node_spend, .user = saw, .unit = PTOWSP_UNIT_CUBE},
            {.range = node_range, .user = saw, .item_count = ITEMS, .grain = 1},
            {.fn = node_spend, .user = saw},
            {.fn = node_spend, .user = saw}};
        graph_tasks(graph, tasks, NODES);
        graph_edges(graph, edges, 3);
        test_invalid(context, ptowsp_graph_record(graph, NULL, 3),
                     "graph: spans is NULL, with a capacity");
        for (int round = 0; round < 20; round++) {
            memset(spans, 0x55, sizeof spans);
            memset(saw, 0, sizeof saw);
            assert_ok(ptowsp_graph_record(graph, spans, NODES + 1));
            assert_int_equal(ptowsp_graph_run(graph), PTOWSP_KERNEL_FAILED);
            check_nodes(spans, saw);
            assert_int_equal(spans[NODES].kind, 0x55555555);  // there is no such task
            check_picture(context, spans);
        }
        memset(saw, 0, sizeof saw);
        ptowsp_device *device = device_of(context, 1, 2, 1);
        assert_int_equal(ptowsp_device_run_graph(device, graph), PTOWSP_KERNEL_FAILED);
        check_nodes(spans, saw);
        check_picture(context, spans);
        assert_ok(ptowsp_device_close(device));
        memset(spans, 0x55, sizeof spans);
        assert_ok(ptowsp_graph_record(graph, spans, 1));
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_KERNEL_FAILED);
        assert_true(spans[0].end > spans[0].begin && spans[1].kind == 0x55555555);
        assert_ok(ptowsp_graph_record(graph, NULL, 0));
        memset(spans, 0x55, sizeof spans);
        assert_int_equal(ptowsp_graph_run(graph), PTOWSP_KERNEL_FAILED);
        assert_int_equal(spans[0].kind, 0x55555555);
        ptowsp_graph_destroy(graph);
    }
    ptowsp_context_destroy(context);
}

// -- plans ----------------------------------------------------------------------------------------

enum { SEQUENCES = 6, PLAN_UNITS = 64 };

typedef struct plan_seen {
    const ptowsp_attention_plan *plan;
    seen units[PLAN_UNITS], merges[PLAN_UNITS];
} plan_seen;

static void unit_spend(const ptowsp_work *work, uint32_t lane, void *user) {
    plan_seen *p = (plan_seen *)user;
    bool is_merge = work >= p->plan->merges && work < p->plan->merges + p->plan->merge_count;
    seen *s = is_merge ? &p->merges[work - p->plan->merges] : &p->units[work - p->plan->units];
    s->begin = ptowsp_clock_ns();
    s->lane = lane;
    s->end = ptowsp_clock_ns();
    s->count++;
}

static void check_span(const ptowsp_span *span, const seen *s, uint32_t kind) {
    assert_int_equal(s->count, 1);
    assert_true(span->begin <= s->begin && s->end <= span->end);
    assert_int_equal(span->lane, s->lane);
    assert_int_equal(span->kind, kind);
}

TEST(wall__clock_of_plans_is_recorded) {
    static const int32_t lengths[SEQUENCES] = {9000, 100, 0, 300, 5000, 40};
    ptowsp_attention_batch batch = {.kv_lengths = lengths, .sequence_count = SEQUENCES};
    ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = 4};
    static uint32_t progress[1024];
    static ptowsp_span spans[2 * PLAN_UNITS];
    static plan_seen saw;
    const ptowsp_work_fn table[] = {unit_spend};
    ptowsp_attention_plan plan = plan_make(&batch, &config);
    assert_in_range(plan.unit_count + plan.merge_count, 2, PLAN_UNITS);
    assert_true(ptowsp_attention_progress_size(&plan) <= 1024);
    assert_true(plan.merge_count > 0);
    ptowsp_context *context = test_lanes(2);
    saw.plan = &plan;
    for (int how = 0; how < 4; how++) {
        ptowsp_attention_job job = {.plan = &plan,
                                    .table = table,
                                    .table_count = 1,
                                    .merge = unit_spend,
                                    .user = &saw,
                                    .progress = progress,
                                    .is_stealing = how % 2,
                                    .spans = spans};
        memset(saw.units, 0, sizeof saw.units + sizeof saw.merges);
        memset(spans, 0, sizeof spans);
        assert_ok(how < 2 ? ptowsp_attention_run_serial(&job, NULL)
                          : ptowsp_attention_run(context, &job));
        for (uint32_t i = 0; i < plan.unit_count; i++) {
            check_span(&spans[i], &saw.units[i], 0);
        }
        for (uint32_t i = 0; i < plan.merge_count; i++) {
            check_span(&spans[plan.unit_count + i], &saw.merges[i], 1);
        }
    }
    plan_free(&plan);
    ptowsp_context_destroy(context);
}

// Ticks from 1000 to 3000 took 500 ns: 4 each. What was marked before the begin is there at 0; a clock
// that has not moved tells nothing.
TEST(wall__ticks_become_nanoseconds) {
    const pwsp_wall wall = {{1000, 3000}, {70, 570}}, still = {{1000, 1000}, {70, 70}};
    assert_int_equal(pwsp_wall_since(&wall, 1000), 0);
    assert_int_equal(pwsp_wall_since(&wall, 1400), 100);
    assert_int_equal(pwsp_wall_since(&wall, 3000), 500);
    assert_int_equal(pwsp_wall_since(&wall, 999), 0);
    assert_int_equal(pwsp_wall_since(&still, 1400), 0);
}
