// Corners where two parts of the library meet: ends far apart in one window, failures in the middle
// of a batch, keys that may not be evaluated, results after an execution that did not begin.

#include "src/exec/run.h"

#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    uint64_t call_count;  // of the kernel `count`
} fixture;

static ptowsp_cycles first_arg(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

static ptowsp_cycles count_calls(const ptowsp_task *task, void *user) {
    (void)task;
    fixture *f = (fixture *)user;
    f->call_count++;
    return 1;
}

static void fixture_make(fixture *f) {
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, NULL, &f->m), PTOWSP_OK);
}

static void fixture_forget_run(fixture *f) {
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    f->run = NULL;
    f->program = NULL;
}

static void fixture_free(fixture *f) {
    fixture_forget_run(f);
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
}

// Compiles with a schedule; nothing is bound yet.
static void fixture_compile(fixture *f, const ptowsp_schedule *schedule) {
    fixture_forget_run(f);
    const ptowsp_program_desc desc = {NULL, schedule};
    if (ptowsp_program_create(f->context, f->m, &desc, &f->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
}

static ptowsp_status fixture_execute(fixture *f, ptowsp_run_mode mode, bool record_tasks) {
    const ptowsp_run_options options = {.mode = mode, .record_tasks = record_tasks};
    return ptowsp_run_execute(f->run, &options);
}

static void expect_text(const fixture *f, const char *part) {
    const char *text = ptowsp_context_error(f->context).text;
    if (!strstr(text, part)) {
        fail_msg("\"%s\" is not in \"%s\"", part, text);
    }
}

// A kernel that takes as many cycles as its first argument says and does nothing.
static ptowsp_kernel work_kernel(fixture *f) {
    ptowsp_kernel_desc desc = {.name = "work", .axis_count = 2, .fn = first_arg, .cost = first_arg};
    return ptowsp_kernel_make(f->m, &desc);
}

// A task of `cycles` and a second argument for keys.
static void work(fixture *f, ptowsp_kernel kernel, ptowsp_expr cycles, ptowsp_expr key) {
    ptowsp_task_desc desc = {.kernel = kernel, .axes[0] = cycles, .axes[1] = key};
    ptowsp_task_make(f->m, &desc);
}

static ptowsp_schedule lanes(uint32_t lane_count) {
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN, .lane_count = lane_count};
    return schedule;
}

// -- ends far apart -------------------------------------------------------------------------------

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

// One lane is busy almost for ever; on another one task after another takes 5 cycles. The window of
// two has room for the next one whenever the short one before has ended.
FIXTURE_TEST(window__a_task_that_ends_long_before_all_others_leaves_first) {
    const int64_t long_cycles = INT64_MAX - 100;
    ptowsp_kernel kernel = work_kernel(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            work(f, kernel, ptowsp_i64(f->m, long_cycles), ptowsp_i64(f->m, 0));
            for (int64_t i = 0; i < 3; i++) {
                work(f, kernel, ptowsp_i64(f->m, 5), ptowsp_i64(f->m, 1));
            }
        }
    }
    const uint32_t lane_counts[] = {2, 3, 24, 65536};
    for (uint32_t i = 0; i < 16; i++) {
        ptowsp_schedule schedule = lanes(lane_counts[i / 4]);
        schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
        schedule.dispatch_key = ptowsp_task_arg(f->m, 1);
        schedule.window = 2;
        schedule.issue = i & 1 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        fixture_compile(f, &schedule);
        bool is_recorded = i & 2;
        assert_int_equal(fixture_execute(f, PTOWSP_RUN_EXECUTE, is_recorded), PTOWSP_OK);
        assert_int_equal(ptowsp_run_lanes(f->run)[1].end_cycles, 15);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, long_cycles);
        assert_int_equal(ptowsp_run_result(f->run)->stall_cycles[PTOWSP_STALL_WINDOW], 10);
    }
    for (uint32_t i = 0; i < 4; i++) {  // where lanes choose, time moves from end to end
        ptowsp_schedule schedule = lanes(lane_counts[i]);
        schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
        schedule.window = 2;
        fixture_compile(f, &schedule);
        assert_int_equal(fixture_execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
        assert_int_equal(ptowsp_run_lanes(f->run)[1].end_cycles, 15);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, long_cycles);
    }
}

// -- batches --------------------------------------------------------------------------------------

// Time ends in the middle of a loop of plain tasks: results are those of the tasks before, however
// they were issued.
FIXTURE_TEST(batch__results_after_time_ends_are_those_of_one_by_one) {
    ptowsp_kernel kernel = work_kernel(f);
    ptowsp_axis axis = ptowsp_axis_dense(f->m, "n", 10);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, axis) {
            ptowsp_expr is_last = ptowsp_eq(i, ptowsp_i64(f->m, 7));
            ptowsp_expr cycles =
                ptowsp_select(is_last, ptowsp_i64(f->m, INT64_MAX), ptowsp_i64(f->m, 10));
            work(f, kernel, cycles, i);
        }
    }
    ptowsp_schedule schedule = lanes(2);
    schedule.window = 4;
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    fixture_compile(f, &schedule);
    for (uint32_t i = 0; i < 2; i++) {
        bool is_one_by_one = i == 0;
        assert_int_equal(fixture_execute(f, PTOWSP_RUN_TIME_ONLY, is_one_by_one),
                         PTOWSP_LIMIT_EXCEEDED);
        assert_int_equal(ptowsp_context_error(f->context).index, 7);
        const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
        assert_int_equal(stats->task_count, 7);  // lane 0: tasks 0, 2, 4, 6; lane 1: 1, 3, 5
        assert_int_equal(stats->makespan_cycles, 40);
        assert_int_equal(stats->busy_cycles, 70);
        assert_int_equal(stats->in_flight_max, 4);
        assert_int_equal(stats->stall_cycles[PTOWSP_STALL_WINDOW], 20);
        assert_int_equal(ptowsp_run_lanes(f->run)[1].task_count, 3);
        assert_int_equal(ptowsp_run_lanes(f->run)[1].busy_cycles, 30);
        assert_int_equal(ptowsp_run_lanes(f->run)[1].idle_cycles, 10);
        assert_int_equal(ptowsp_run_lanes(f->run)[1].end_cycles, 30);
    }
}

static ptowsp_cycles store_two(const ptowsp_task *task, void *user) {
    (void)user;
    *(int64_t *)task->tiles[0].data = 2;
    return 1;
}

// A key reads an array at a computed index. That it is outside is known only once the index is
// there, but before the kernel of that task is called.
FIXTURE_TEST(batch__a_key_outside_its_array_is_told_before_the_kernel) {
    ptowsp_kernel_desc desc = {.name = "store", .fn = store_two};
    ptowsp_tile_param tile = {"out", PTOWSP_OUT, PTOWSP_I64, 1, 1};
    desc.tiles[0] = tile;
    ptowsp_kernel store = ptowsp_kernel_make(f->m, &desc);
    memset(&desc, 0, sizeof desc);
    desc.name = "count";
    desc.axis_count = 1;
    desc.fn = count_calls;
    desc.user = f;
    ptowsp_kernel count = ptowsp_kernel_make(f->m, &desc);
    ptowsp_tensor_desc tensor = {.name = "x", .dtype = PTOWSP_I64};
    ptowsp_tensor x = ptowsp_tensor_make(f->m, &tensor);
    ptowsp_axis axis = ptowsp_axis_dense(f->m, "n", 8);
    const ptowsp_expr none = {NULL, 0};
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_desc task = {.kernel = store, .views[0].tensor = x};
        ptowsp_task_make(f->m, &task);
        ptowsp_slot_load_make(f->m, 0, &task.views[0], none, none);
        PTOWSP_FOR_EACH(f->m, i, axis) {
            memset(&task, 0, sizeof task);
            task.kernel = count;
            task.axes[0] = i;
            ptowsp_task_make(f->m, &task);
        }
    }
    // For the store, element 1 * 0, as it has no axis arguments but rows; then 0 * 2, 1 * 2, ...
    ptowsp_schedule schedule = lanes(4);
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    schedule.issue = PTOWSP_ISSUE_IN_ORDER;
    schedule.dispatch_key = ptowsp_array_at(
        f->m, "place", PTOWSP_I64,
        ptowsp_mul(ptowsp_task_arg(f->m, 0), ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64)));
    fixture_compile(f, &schedule);
    int64_t value = 0;
    const int64_t place[6] = {0, 1, 2, 3, 0, 1};
    test_bind(f->run, "x", &value);
    assert_int_equal(ptowsp_run_bind_array(f->run, "place", PTOWSP_I64, place, 6), PTOWSP_OK);
    for (uint32_t i = 0; i < 2; i++) {
        bool is_one_by_one = i == 0;
        f->call_count = 0;
        assert_int_equal(fixture_execute(f, PTOWSP_RUN_EXECUTE, is_one_by_one),
                         PTOWSP_INVALID_PARAMS);
        expect_text(f, "a key of the schedule reads array place at 6; it has 6 elements");
        expect_text(f, "(i = 3)");
        assert_int_equal(f->call_count, 3);
        assert_int_equal(ptowsp_run_result(f->run)->task_count, 4);  // the store, and i < 3
    }
}

// A tag's value reads an array outside wherever the tag `has` is 0; the key asks for it elsewhere
// only.
FIXTURE_TEST(key__a_guarded_tag_is_not_evaluated_without_need) {
    ptowsp_kernel kernel = work_kernel(f);
    ptowsp_axis axis = ptowsp_axis_dense(f->m, "n", 4);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, axis) {
            ptowsp_task_desc desc = {.kernel = kernel,
                                     .axes[0] = ptowsp_i64(f->m, 1),
                                     .axes[1] = i,
                                     .tags[0].name = "has"};
            desc.tags[0].value = ptowsp_cast(ptowsp_lt(i, ptowsp_i64(f->m, 2)), PTOWSP_TYPE_U64);
            desc.tags[1].name = "place";
            desc.tags[1].value = ptowsp_array_at(f->m, "places", PTOWSP_U64, i);
            ptowsp_task_make(f->m, &desc);
        }
    }
    ptowsp_schedule schedule = lanes(3);
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    schedule.dispatch_key =
        ptowsp_select(ptowsp_cast(ptowsp_task_tag(f->m, "has"), PTOWSP_TYPE_BOOL),
                      ptowsp_task_tag(f->m, "place"), ptowsp_u64(f->m, 0));
    fixture_compile(f, &schedule);
    const uint64_t places[2] = {2, 1};
    assert_int_equal(ptowsp_run_bind_array(f->run, "places", PTOWSP_U64, places, 2), PTOWSP_OK);
    assert_int_equal(fixture_execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
    assert_int_equal(ptowsp_run_lanes(f->run)[0].task_count, 2);
    assert_int_equal(ptowsp_run_lanes(f->run)[1].task_count, 1);
    assert_int_equal(ptowsp_run_lanes(f->run)[2].task_count, 1);
}

// -- bindings -------------------------------------------------------------------------------------

// The kernel that stores 2 into the tensor x, which is of 64-bit elements.
static ptowsp_kernel store_kernel(fixture *f, ptowsp_tensor *out_tensor, uint32_t rank) {
    ptowsp_tensor_desc tensor = {.name = "x", .dtype = PTOWSP_I64, .rank = rank};
    tensor.shape[0] = tensor.shape[1] = PTOWSP_DYNAMIC;
    *out_tensor = ptowsp_tensor_make(f->m, &tensor);
    ptowsp_kernel_desc desc = {.name = "store", .fn = store_two, .cycles = 1};
    ptowsp_tile_param tile = {"out", PTOWSP_OUT, PTOWSP_I64, 1, 1};
    desc.tiles[0] = tile;
    return ptowsp_kernel_make(f->m, &desc);
}

FIXTURE_TEST(run__forgets_its_results_when_it_fails_to_begin) {
    ptowsp_tensor x;
    ptowsp_task_desc task = {.kernel = store_kernel(f, &x, 0), .views[0].tensor = x};
    ptowsp_axis lengths = ptowsp_axis_ragged(f->m, "lengths");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, lengths) {
            ptowsp_task_make(f->m, &task);
        }
    }
    fixture_compile(f, NULL);
    int64_t value;
    int32_t length = 3;
    test_bind(f->run, "x", &value);
    assert_int_equal(ptowsp_run_bind_lengths(f->run, "lengths", PTOWSP_I32, &length, 1), PTOWSP_OK);
    assert_int_equal(fixture_execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
    assert_int_equal(ptowsp_run_result(f->run)->region_max, 1);
    length = -1;
    assert_int_equal(fixture_execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 0);
    assert_int_equal(ptowsp_run_result(f->run)->region_max, 0);
}

FIXTURE_TEST(bind__a_csr_is_refused_for_what_is_wrong_with_it) {
    ptowsp_axis axis = ptowsp_axis_sparse(f->m, "route");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_SELECT(f->m, i, axis) {
        }
    }
    fixture_compile(f, NULL);
    const int32_t indptr[2] = {0, 0};
    ptowsp_csr csr = {PTOWSP_I32, indptr, NULL, UINT64_MAX, 0};
    assert_int_equal(ptowsp_run_bind_csr(f->run, "route", NULL), PTOWSP_INVALID_PARAMS);
    expect_text(f, "the csr of axis route is NULL");
    assert_int_equal(ptowsp_run_bind_csr(f->run, "route", &csr), PTOWSP_INVALID_PARAMS);
    expect_text(f, "axis route has 18446744073709551615 rows");
    csr.row_count = 1;
    csr.dtype = PTOWSP_I16;
    assert_int_equal(ptowsp_run_bind_csr(f->run, "route", &csr), PTOWSP_INVALID_PARAMS);
    expect_text(f, "arrays of axis route are i16; they are i32, i64, u32 or u64");
    csr.dtype = PTOWSP_I32;
    assert_int_equal(ptowsp_run_bind_csr(f->run, "route", &csr), PTOWSP_OK);
}

// Two tensors that are only imagined, one of 8 TiB: nothing that is written to one is in the other,
// wherever it lies, and whichever way it runs.
FIXTURE_TEST(time_only__tensors_without_data_are_apart_however_large) {
    ptowsp_tensor x;
    ptowsp_task_desc task = {.kernel = store_kernel(f, &x, 2)};
    ptowsp_tensor_desc tensor = {.name = "y", .dtype = PTOWSP_I64, .rank = 2};
    tensor.shape[0] = tensor.shape[1] = PTOWSP_DYNAMIC;
    ptowsp_tensor y = ptowsp_tensor_make(f->m, &tensor);
    ptowsp_axis axis = ptowsp_axis_dense(f->m, "n", 8);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            task.views[0].tensor = y;
            ptowsp_task_make(f->m, &task);
            PTOWSP_PARALLEL(f->m, i, axis) {
                task.views[0].tensor = x;
                task.views[0].row = ptowsp_mul(i, ptowsp_i64(f->m, 1 << 17));
                ptowsp_task_make(f->m, &task);
            }
        }
    }
    ptowsp_schedule schedule = lanes(9);
    fixture_compile(f, &schedule);
    ptowsp_buffer buffer = {.rank = 2};
    buffer.shape[0] = buffer.shape[1] = 1 << 20;
    for (int64_t sign = -1; sign <= 1; sign += 2) {
        buffer.strides[0] = sign * (1 << 20);
        buffer.strides[1] = sign;
        assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_tensor(f->run, "y", &buffer), PTOWSP_OK);
        assert_int_equal(fixture_execute(f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_OK);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 1);
    }
    buffer.shape[0] = buffer.shape[1] = 2;  // almost 2^62 bytes each
    buffer.strides[0] = -(INT64_C(1) << 58) + 2;
    buffer.strides[1] = (INT64_C(1) << 58) - 2;
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "y", &buffer), PTOWSP_OK);
    assert_int_equal(fixture_execute(f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_LIMIT_EXCEEDED);
    expect_text(f, "tensors without data, up to y, span more than 2^62 bytes");
}

static ptowsp_cycles store_minus_five(const ptowsp_task *task, void *user) {
    (void)user;
    *(int64_t *)task->tiles[0].data = -5;
    return 1;
}

// A kernel writes lengths and row pointers, which is forbidden; it must not be a hang or a read
// outside of arrays.
TEST(run__arrays_that_a_kernel_has_broken_are_an_error) {
    for (uint32_t is_sparse = 0; is_sparse < 2; is_sparse++) {
        fixture f;
        fixture_make(&f);
        ptowsp_tensor_desc tensor = {.name = "x", .dtype = PTOWSP_I64};
        ptowsp_task_desc task = {.views[0].tensor = ptowsp_tensor_make(f.m, &tensor)};
        ptowsp_kernel_desc desc = {.name = "store", .fn = store_minus_five};
        ptowsp_tile_param tile = {"out", PTOWSP_OUT, PTOWSP_I64, 1, 1};
        desc.tiles[0] = tile;
        task.kernel = ptowsp_kernel_make(f.m, &desc);
        memset(&desc, 0, sizeof desc);
        desc.name = "count";
        desc.fn = count_calls;
        desc.user = &f;
        ptowsp_kernel count = ptowsp_kernel_make(f.m, &desc);
        ptowsp_axis axis =
            is_sparse ? ptowsp_axis_sparse(f.m, "rows") : ptowsp_axis_ragged(f.m, "rows");
        PTOWSP_WORKLOAD(f.m, "main") {
            ptowsp_task_make(f.m, &task);
            ptowsp_axis row = ptowsp_axis_row(f.m, axis, ptowsp_i64(f.m, 0));
            PTOWSP_FOR_EACH(f.m, i, row) {
                memset(&task, 0, sizeof task);
                task.kernel = count;
                ptowsp_task_make(f.m, &task);
            }
        }
        ptowsp_schedule schedule = lanes(1);
        schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
        fixture_compile(&f, &schedule);
        int64_t indptr[2] = {0, 1};
        const int64_t indices[1] = {0};
        const ptowsp_csr csr = {PTOWSP_I64, indptr, indices, 1, 1};
        test_bind(f.run, "x", is_sparse ? &indptr[1] : &indptr[0]);
        assert_int_equal(is_sparse ? ptowsp_run_bind_csr(f.run, "rows", &csr)
                                   : ptowsp_run_bind_lengths(f.run, "rows", PTOWSP_I64, indptr, 1),
                         PTOWSP_OK);
        assert_int_equal(fixture_execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_INVALID_PARAMS);
        expect_text(&f, "row 0 of axis rows was changed during the run, and is malformed now");
        assert_int_equal(f.call_count, 0);
        fixture_free(&f);
    }
}

// Tensors in one buffer, in any order: those that share bytes wait for each other, the others do
// not. Groups by pairs of spans are the reference.
TEST(deps__groups_are_those_of_comparing_all_pairs) {
    uint64_t seed = test_seed();
    fixture f;
    fixture_make(&f);
    enum { COUNT = 24 };
    static char memory[4096];
    PTOWSP_WORKLOAD(f.m, "main") {
        for (uint32_t i = 0; i < COUNT; i++) {
            char name[16];
            snprintf(name, sizeof name, "t%u", i);
            ptowsp_tensor_desc tensor = {
                .name = name, .dtype = PTOWSP_U8, .rank = 1, .shape[0] = PTOWSP_DYNAMIC};
            ptowsp_view view = {.tensor = ptowsp_tensor_make(f.m, &tensor)};
            const ptowsp_expr none = {NULL, 0};
            ptowsp_slot_load_make(f.m, i, &view, none, none);
        }
    }
    fixture_compile(&f, NULL);
    for (uint32_t round = 0; TEST_ROUNDS(round, 500); round++) {
        uint64_t low[COUNT + 1], high[COUNT + 1];
        uint32_t group[COUNT + 1];
        for (uint32_t i = 1; i <= COUNT; i++) {
            ptowsp_buffer buffer = {.data = memory + test_random_in(&seed, 0, 2000), .rank = 1};
            buffer.shape[0] = test_random_in(&seed, 0, 1 << test_random_in(&seed, 0, 9));
            char name[16];
            snprintf(name, sizeof name, "t%u", i - 1);
            assert_int_equal(ptowsp_run_bind_tensor(f.run, name, &buffer), PTOWSP_OK);
            low[i] = (uint64_t)(uintptr_t)buffer.data;
            high[i] = low[i] + (uint64_t)buffer.shape[0];
            group[i] = i;
        }
        for (uint32_t i = 1; i <= COUNT; i++) {
            for (uint32_t j = 1; j < i; j++) {
                bool is_empty = low[i] == high[i] || low[j] == high[j];
                uint32_t to = group[i] < group[j] ? group[i] : group[j];
                uint32_t from = group[i] + group[j] - to;
                for (uint32_t k = 1;
                     !is_empty && low[i] < high[j] && low[j] < high[i] && k <= COUNT; k++) {
                    group[k] = group[k] == from ? to : group[k];
                }
            }
        }
        pwsp_deps_begin(&f.run->time.sim.deps, &f.run->timed, f.run->bindings.tensors);
        for (uint32_t i = 1; i <= COUNT; i++) {
            uint32_t members = 0;
            for (uint32_t j = 1; j <= COUNT; j++) {
                members += group[j] == group[i];
            }
            assert_int_equal(f.run->time.sim.deps.tensors[i].group, group[i]);
            assert_int_equal(f.run->time.sim.deps.tensors[i].is_plain, members == 1);
        }
    }
    fixture_free(&f);
}

// A workload that is called once for sure, and once if computed data say so: the sure call is
// checked before any kernel is called.
TEST(known__a_sure_call_is_checked_although_another_depends_on_data) {
    static const int64_t rows[] = {99, 9};
    for (int good = 0; good < 2; good++) {
        fixture f;
        fixture_make(&f);
        ptowsp_tensor_desc tensor = {"x", PTOWSP_I32, 2, {10, 1}, PTOWSP_LOCATION_GLOBAL};
        ptowsp_kernel_desc kernel = {.name = "count",
                                     .tiles = {{"x", PTOWSP_INOUT, PTOWSP_I32, 1, 1}},
                                     .fn = count_calls,
                                     .user = &f};
        ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(f.m, &kernel)};
        ptowsp_view view = {.tensor = ptowsp_tensor_make(f.m, &tensor)};
        PTOWSP_WORKLOAD(f.m, "touch") {
            task.views[0].tensor = view.tensor;
            task.views[0].row = ptowsp_workload_param(f.m, "row", PTOWSP_TYPE_I64);
            ptowsp_task_make(f.m, &task);
        }
        PTOWSP_WORKLOAD(f.m, "main") {
            const ptowsp_expr one = ptowsp_i64(f.m, 1), row = ptowsp_i64(f.m, rows[good]);
            ptowsp_call_make(f.m, "touch", &one, 1);
            ptowsp_expr none = {NULL, 0};
            ptowsp_slot_load_make(f.m, 0, &view, none, none);
            PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
                ptowsp_call_make(f.m, "touch", &one, 1);
            }
            ptowsp_call_make(f.m, "touch", &row, 1);
        }
        fixture_compile(&f, NULL);
        int32_t data[10] = {0};
        const ptowsp_buffer buffer = {.data = data, .size = sizeof data};
        assert_int_equal(ptowsp_run_bind_tensor(f.run, "x", &buffer), PTOWSP_OK);
        ptowsp_status status = fixture_execute(&f, PTOWSP_RUN_EXECUTE, false);
        assert_int_equal(status, good ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
        assert_true(f.call_count == (good ? 2 : 0));
        fixture_free(&f);
    }
}

// A slot that is set under a condition on computed data is unknown before, although its value is a
// constant: walking without kernels must not take the one from before for it.
FIXTURE_TEST(known__a_slot_set_under_a_computed_condition_is_unknown) {
    ptowsp_tensor_desc tensor = {"x", PTOWSP_I32, 2, {10, 1}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_kernel_desc kernel = {.name = "count",
                                 .tiles = {{"x", PTOWSP_INOUT, PTOWSP_I32, 1, 1}},
                                 .fn = count_calls,
                                 .user = f};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(f->m, &kernel)};
    task.views[0].tensor = ptowsp_tensor_make(f->m, &tensor);
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &task);
        ptowsp_expr none = {NULL, 0};
        ptowsp_slot_load_make(f->m, 0, &task.views[0], none, none);
        PTOWSP_WHEN(f->m, ptowsp_slot(f->m, 0, PTOWSP_TYPE_BOOL)) {
            ptowsp_slot_set_make(f->m, 1, ptowsp_i64(f->m, 3));
        }
        task.views[0].row = ptowsp_slot(f->m, 1, PTOWSP_TYPE_I64);
        ptowsp_task_make(f->m, &task);
    }
    fixture_compile(f, NULL);
    int32_t data[10] = {1};  // the condition holds
    const ptowsp_buffer buffer = {.data = data, .size = sizeof data};
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_slot(f->run, 1, 99), PTOWSP_OK);  // a row that there is not
    assert_int_equal(fixture_execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
    assert_true(f->call_count == 2);
    data[0] = 0;  // it does not: the second task is told off, after the first has run
    assert_int_equal(fixture_execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_INVALID_PARAMS);
    assert_true(f->call_count == 3);
}

// Three tensors, each in memory of its own or packed row by row into one: the same times, and (as
// the map of regions tells them apart by blocks of memory) in time that does not grow with the
// square.
static uint64_t layers_of(bool is_packed, ptowsp_cycles *out_makespan) {
    enum { ROWS = 16384, COLS = 16 };
    static int32_t memory[3 * ROWS * COLS];
    fixture f;
    fixture_make(&f);
    static const char names[3][2] = {"q", "k", "v"};
    ptowsp_kernel_desc kernel = {
        .name = "step",
        .tiles = {{"in", PTOWSP_IN, PTOWSP_I32, 4, COLS}, {"out", PTOWSP_OUT, PTOWSP_I32, 4, COLS}},
        .cycles = 10};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(f.m, &kernel)};
    ptowsp_tensor tensors[3];
    for (int i = 0; i < 3; i++) {
        ptowsp_tensor_desc desc = {
            .name = names[i], .dtype = PTOWSP_I32, .rank = 2, .shape[0] = ROWS, .shape[1] = COLS};
        tensors[i] = ptowsp_tensor_make(f.m, &desc);
    }
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PARALLEL(f.m, t, ptowsp_axis_dense(f.m, "tiles", ROWS / 4)) {
            for (int i = 0; i < 2; i++) {  // q to k, k to v: of one tile after another
                task.views[0].tensor = tensors[i];
                task.views[1].tensor = tensors[i + 1];
                task.views[0].row = task.views[1].row = ptowsp_mul(t, ptowsp_i64(f.m, 4));
                ptowsp_task_make(f.m, &task);
            }
        }
    }
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN, .lane_count = 7};
    fixture_compile(&f, &schedule);
    for (int i = 0; i < 3; i++) {
        ptowsp_buffer buffer = {.data = memory + (is_packed ? i * COLS : i * ROWS * COLS),
                                .strides[0] = is_packed ? 3 * COLS : COLS,
                                .strides[1] = 1};
        assert_int_equal(ptowsp_run_bind_tensor(f.run, names[i], &buffer), PTOWSP_OK);
    }
    assert_int_equal(fixture_execute(&f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_OK);
    uint64_t begin = ptowsp_clock_ns();
    assert_int_equal(fixture_execute(&f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_OK);
    uint64_t took = ptowsp_clock_ns() - begin;
    *out_makespan = ptowsp_run_result(f.run)->makespan_cycles;
    fixture_free(&f);
    return took;
}

TEST(deps__packed_tensors_are_told_apart) {
    ptowsp_cycles apart, packed;
    uint64_t apart_ns = layers_of(false, &apart), packed_ns = layers_of(true, &packed);
    assert_true(apart == packed);
    // One list of all would take some thousand times as long as apart; blocks take about twice.
    print_message("8,192 tasks: %llu us apart, %llu us packed\n",
                  (unsigned long long)apart_ns / 1000, (unsigned long long)packed_ns / 1000);
}
