// Corners where two parts of the library meet: ends far apart in one window, failures in the middle
// of a batch, keys that may not be evaluated, results after an execution that did not begin.

#include "src/exec/run.h"

#include "support/fixture.h"

static uint64_t call_count;  // of the kernel `count`

static ptowsp_cycles first_arg(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

static ptowsp_cycles count_calls(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    call_count++;
    return 1;
}

static ptowsp_cycles store(const ptowsp_task *task, void *user) {
    *(int64_t *)task->tiles[0].data = *(const int64_t *)user;
    return 1;
}

// `work` takes as many cycles as its first argument says, its second one is for keys; `store` stores 2, `break`
// stores -5.
static void parse(fixture *f, const char *text) {
    static int64_t two = 2, minus_five = -5;
    const ptowsp_parse_kernel kernels[] = {
        {.name = "work", .fn = first_arg, .cost = first_arg},
        {.name = "count", .fn = count_calls},
        {.name = "store", .fn = store, .user = &two},
        {.name = "break", .fn = store, .user = &minus_five},
    };
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 4};
    fixture_clear(f);
    if (ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->module, NULL)) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

// Compiles with a schedule; nothing is bound yet.
static void compile(fixture *f, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    program_make(f, NULL, NULL, &desc);
    call_count = 0;
}

static ptowsp_status execute(fixture *f, ptowsp_run_mode mode, bool record_tasks) {
    const ptowsp_run_options options = {.mode = mode, .record_tasks = record_tasks};
    return ptowsp_run_execute(f->run, &options);
}

static void executes(fixture *f, ptowsp_run_mode mode) {
    assert_int_equal(execute(f, mode, false), PTOWSP_OK);
}

static ptowsp_schedule lanes(uint32_t lane_count) {
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN, .lane_count = lane_count};
    return schedule;
}

#define WORK "kernel work(axes 2) vector, cycles by a cost function\n"

// -- ends far apart -------------------------------------------------------------------------------

// One lane is busy almost for ever; on another one task after another takes 5 cycles. The window of
// two has room for the next one whenever the short one before has ended.
TEST_F(window__a_task_that_ends_long_before_all_others_leaves_first) {
    parse(f, "module m\n" WORK "workload main\n  combine\n    task work(9223372036854775707, 0)\n"
             "    task work(5, 1)\n    task work(5, 1)\n    task work(5, 1)\n");
    const uint32_t lane_counts[] = {2, 3, 24, 65536};
    for (uint32_t i = 0; i < 20; i++) {
        const bool chooses = i >= 16;  // where lanes choose, time moves from end to end
        ptowsp_schedule schedule = lanes(lane_counts[i % 4]);
        schedule.window = 2;
        schedule.dispatch = chooses ? PTOWSP_DISPATCH_WORK_STEALING : PTOWSP_DISPATCH_AFFINITY;
        if (!chooses) {
            schedule.dispatch_key = ptowsp_task_arg(f->module, 1);
            schedule.issue = i & 8 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        }
        compile(f, &schedule);
        assert_int_equal(execute(f, PTOWSP_RUN_EXECUTE, !chooses && i & 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_lanes(f->run)[1].end_cycles, 15);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, INT64_MAX - 100);
        if (!chooses) {
            assert_int_equal(ptowsp_run_result(f->run)->stall_cycles[PTOWSP_STALL_WINDOW], 10);
        }
    }
}

// -- batches --------------------------------------------------------------------------------------

// Time ends in the middle of a loop of plain tasks: results are those of the tasks before, however
// they were issued.
TEST_F(batch__results_after_time_ends_are_those_of_one_by_one) {
    parse(f, "module m\naxis n 10\n" WORK "workload main\n  parallel i in n\n"
             "    task work(i == 7 ? 9223372036854775807 : 10, i)\n");
    ptowsp_schedule schedule = lanes(2);
    schedule.window = 4;
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    compile(f, &schedule);
    for (int is_one_by_one = 1; is_one_by_one >= 0; is_one_by_one--) {
        assert_int_equal(execute(f, PTOWSP_RUN_TIME_ONLY, is_one_by_one), PTOWSP_LIMIT_EXCEEDED);
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

// A key reads an array at a computed index. That it is outside is known only once the index is
// there, but before the kernel of that task is called.
TEST_F(batch__a_key_outside_its_array_is_told_before_the_kernel) {
    parse(f, "module m slots 1\naxis n 8\narray place i64\ntensor x i64 [] global\n"
             "kernel store(axes 0, out out i64 1 x 1) vector\nkernel count(axes 1) vector\n"
             "workload main\n  task store() out = x\n  slot_load 0 = x\n"
             "  for_each i in n\n    task count(i)\n");
    // For the store, element 1 * 0, as it has no axis arguments but rows; then 0 * 2, 1 * 2, ...
    ptowsp_schedule schedule = lanes(4);
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    schedule.issue = PTOWSP_ISSUE_IN_ORDER;
    schedule.dispatch_key = ptowsp_array_at(
        f->module, "place", PTOWSP_I64,
        ptowsp_mul(ptowsp_task_arg(f->module, 0), ptowsp_slot(f->module, 0, PTOWSP_TYPE_I64)));
    compile(f, &schedule);
    int64_t value = 0;
    const int64_t place[6] = {0, 1, 2, 3, 0, 1};
    test_bind(f->run, "x", &value);
    assert_int_equal(ptowsp_run_bind_array(f->run, "place", PTOWSP_I64, place, 6), PTOWSP_OK);
    for (int is_one_by_one = 1; is_one_by_one >= 0; is_one_by_one--) {
        call_count = 0;
        const ptowsp_status status = execute(f, PTOWSP_RUN_EXECUTE, is_one_by_one);
        fixture_refused(f, status, PTOWSP_INVALID_PARAMS,
                        "a key of the schedule reads array place at 6; it has 6 elements");
        fixture_refused(f, status, PTOWSP_INVALID_PARAMS, "(i = 3)");
        assert_int_equal(call_count, 3);
        assert_int_equal(ptowsp_run_result(f->run)->task_count, 4);  // the store, and i < 3
    }
}

// A tag's value reads an array outside wherever the tag `has` is 0; the key asks for it elsewhere
// only.
TEST_F(key__a_guarded_tag_is_not_evaluated_without_need) {
    parse(f, "module m\naxis n 4\narray places u64\n" WORK "workload main\n  parallel i in n\n"
             "    task work(1, i) tag has = u64(i < 2) tag place = places[i]\n");
    ptowsp_schedule schedule = lanes(3);
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    schedule.dispatch_key =
        ptowsp_select(ptowsp_cast(ptowsp_task_tag(f->module, "has"), PTOWSP_TYPE_BOOL),
                      ptowsp_task_tag(f->module, "place"), ptowsp_u64(f->module, 0));
    compile(f, &schedule);
    const uint64_t places[2] = {2, 1};
    assert_int_equal(ptowsp_run_bind_array(f->run, "places", PTOWSP_U64, places, 2), PTOWSP_OK);
    executes(f, PTOWSP_RUN_EXECUTE);
    assert_int_equal(ptowsp_run_lanes(f->run)[0].task_count, 2);
    assert_int_equal(ptowsp_run_lanes(f->run)[1].task_count, 1);
    assert_int_equal(ptowsp_run_lanes(f->run)[2].task_count, 1);
}

// -- bindings -------------------------------------------------------------------------------------

TEST_F(run__forgets_its_results_when_it_fails_to_begin) {
    parse(f, "module m\naxis lengths ragged\ntensor x i64 [] global\n"
             "kernel store(axes 0, out out i64 1 x 1) vector, 1 cycles\n"
             "workload main\n  parallel i in lengths\n    task store() out = x\n");
    compile(f, NULL);
    int64_t value;
    int32_t length = 3;
    test_bind(f->run, "x", &value);
    assert_int_equal(ptowsp_run_bind_lengths(f->run, "lengths", PTOWSP_I32, &length, 1), PTOWSP_OK);
    executes(f, PTOWSP_RUN_EXECUTE);
    assert_int_equal(ptowsp_run_result(f->run)->region_max, 1);
    length = -1;
    assert_int_equal(execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 0);
    assert_int_equal(ptowsp_run_result(f->run)->region_max, 0);
}

TEST_F(bind__a_csr_is_refused_for_what_is_wrong_with_it) {
    parse(f, "module m\naxis route sparse\nworkload main\n  select i in route\n");
    compile(f, NULL);
    const int32_t indptr[2] = {0, 0};
    ptowsp_csr csr = {PTOWSP_I32, indptr, NULL, UINT64_MAX, 0};
    fixture_refused(f, ptowsp_run_bind_csr(f->run, "route", NULL), PTOWSP_INVALID_PARAMS,
                    "the csr of axis route is NULL");
    fixture_refused(f, ptowsp_run_bind_csr(f->run, "route", &csr), PTOWSP_INVALID_PARAMS,
                    "axis route has 18446744073709551615 rows");
    csr.row_count = 1;
    csr.dtype = PTOWSP_I16;
    fixture_refused(f, ptowsp_run_bind_csr(f->run, "route", &csr), PTOWSP_INVALID_PARAMS,
                    "arrays of axis route are i16; they are i32, i64, u32 or u64");
    csr.dtype = PTOWSP_I32;
    assert_int_equal(ptowsp_run_bind_csr(f->run, "route", &csr), PTOWSP_OK);
}

// Two tensors that are only imagined, one of 8 TiB: nothing that is written to one is in the other,
// wherever it lies, and whichever way it runs.
TEST_F(time_only__tensors_without_data_are_apart_however_large) {
    parse(f, "module m\naxis n 8\ntensor x i64 [?, ?] global\ntensor y i64 [?, ?] global\n"
             "kernel store(axes 0, out out i64 1 x 1) vector, 1 cycles\n"
             "workload main\n  combine\n    task store() out = y\n    parallel i in n\n"
             "      task store() out = x at (i * 131072, 0)\n");
    ptowsp_schedule schedule = lanes(9);
    compile(f, &schedule);
    ptowsp_buffer buffer = {.rank = 2, .shape[0] = 1 << 20, .shape[1] = 1 << 20};
    for (int64_t sign = -1; sign <= 1; sign += 2) {
        buffer.strides[0] = sign * (1 << 20);
        buffer.strides[1] = sign;
        assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_tensor(f->run, "y", &buffer), PTOWSP_OK);
        executes(f, PTOWSP_RUN_TIME_ONLY);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 1);
    }
    buffer.shape[0] = buffer.shape[1] = 2;  // almost 2^62 bytes each
    buffer.strides[0] = -(INT64_C(1) << 58) + 2;
    buffer.strides[1] = (INT64_C(1) << 58) - 2;
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "y", &buffer), PTOWSP_OK);
    fixture_refused(f, execute(f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_LIMIT_EXCEEDED,
                    "tensors without data, up to y, span more than 2^62 bytes");
}

// A kernel writes lengths and row pointers, which is forbidden; it must not be a hang or a read
// outside of arrays.
TEST_F(run__arrays_that_a_kernel_has_broken_are_an_error) {
    for (uint32_t is_sparse = 0; is_sparse < 2; is_sparse++) {
        char text[400];
        snprintf(text, sizeof text,
                 "module m\naxis rows %s\ntensor x i64 [] global\n"
                 "kernel break(axes 0, out out i64 1 x 1) vector\nkernel count(axes 0) vector\n"
                 "workload main\n  task break() out = x\n  for_each i in rows[0]\n"
                 "    task count()\n",
                 is_sparse ? "sparse" : "ragged i64");
        parse(f, text);
        ptowsp_schedule schedule = lanes(1);
        schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
        compile(f, &schedule);
        int64_t indptr[2] = {0, 1};
        const int64_t indices[1] = {0};
        const ptowsp_csr csr = {PTOWSP_I64, indptr, indices, 1, 1};
        test_bind(f->run, "x", is_sparse ? &indptr[1] : &indptr[0]);
        assert_int_equal(is_sparse ? ptowsp_run_bind_csr(f->run, "rows", &csr)
                                   : ptowsp_run_bind_lengths(f->run, "rows", PTOWSP_I64, indptr, 1),
                         PTOWSP_OK);
        fixture_refused(f, execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_INVALID_PARAMS,
                        "row 0 of axis rows was changed during the run, and is malformed now");
        assert_int_equal(call_count, 0);
    }
}

// Tensors in one buffer, in any order: those that share bytes wait for each other, the others do
// not. Groups by pairs of spans are the reference.
TEST_F(deps__groups_are_those_of_comparing_all_pairs) {
    uint64_t seed = test_seed();
    enum { COUNT = 24 };
    static char memory[4096];
    char text[4096] = "module m slots 24\n", *at = text + strlen(text);
    for (uint32_t i = 0; i < COUNT; i++) {
        at += sprintf(at, "tensor t%u u8 [?] global\n", i);
    }
    at += sprintf(at, "workload main\n");
    for (uint32_t i = 0; i < COUNT; i++) {
        at += sprintf(at, "  slot_load %u = t%u\n", i, i);
    }
    parse(f, text);
    compile(f, NULL);
    for (uint32_t round = 0; TEST_ROUNDS(round, 500); round++) {
        uint64_t low[COUNT + 1], high[COUNT + 1];
        uint32_t group[COUNT + 1];
        for (uint32_t i = 1; i <= COUNT; i++) {
            ptowsp_buffer buffer = {.data = memory + test_random_in(&seed, 0, 2000), .rank = 1};
            buffer.shape[0] = test_random_in(&seed, 0, 1 << test_random_in(&seed, 0, 9));
            char name[16];
            snprintf(name, sizeof name, "t%u", i - 1);
            assert_int_equal(ptowsp_run_bind_tensor(f->run, name, &buffer), PTOWSP_OK);
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
        pwsp_deps_begin(&f->run->time.sim.deps, &f->run->timed, f->run->bindings.tensors);
        for (uint32_t i = 1; i <= COUNT; i++) {
            uint32_t members = 0;
            for (uint32_t j = 1; j <= COUNT; j++) {
                members += group[j] == group[i];
            }
            assert_int_equal(f->run->time.sim.deps.tensors[i].group, group[i]);
            assert_int_equal(f->run->time.sim.deps.tensors[i].is_plain, members == 1);
        }
    }
}

#define TEN_ROWS                                                                                   \
    "module m slots 2\ntensor x i32 [10, 1] global\n"                                              \
    "kernel count(axes 0, inout x i32 1 x 1) vector\n"

// A workload that is called once for sure, and once if computed data say so: the sure call is
// checked before any kernel is called.
TEST_F(known__a_sure_call_is_checked_although_another_depends_on_data) {
    for (int good = 0; good < 2; good++) {
        char text[400];
        snprintf(text, sizeof text,
                 TEN_ROWS "workload touch(row i64)\n  task count() x = x at (row, 0)\n"
                          "workload main\n  call touch(1)\n  slot_load 0 = x\n"
                          "  when slot_bool[0]\n    call touch(1)\n  call touch(%s)\n",
                 good ? "9" : "99");
        parse(f, text);
        compile(f, NULL);
        int32_t data[10] = {0};
        test_bind(f->run, "x", data);
        assert_int_equal(execute(f, PTOWSP_RUN_EXECUTE, false),
                         good ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
        assert_true(call_count == (good ? 2 : 0));
    }
}

// A slot that is set under a condition on computed data is unknown before, although its value is a
// constant: walking without kernels must not take the one from before for it.
TEST_F(known__a_slot_set_under_a_computed_condition_is_unknown) {
    parse(f, TEN_ROWS "workload main\n  task count() x = x\n  slot_load 0 = x\n"
                      "  when slot_bool[0]\n    slot_set 1 = 3\n"
                      "  task count() x = x at (slot_i64[1], 0)\n");
    compile(f, NULL);
    int32_t data[10] = {1};  // the condition holds
    test_bind(f->run, "x", data);
    assert_int_equal(ptowsp_run_bind_slot(f->run, 1, 99), PTOWSP_OK);  // a row that there is not
    executes(f, PTOWSP_RUN_EXECUTE);
    assert_true(call_count == 2);
    data[0] = 0;  // it does not: the second task is told off, after the first has run
    assert_int_equal(execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_INVALID_PARAMS);
    assert_true(call_count == 3);
}

// Three tensors, each in memory of its own or packed row by row into one: the same times, and (as
// the map of regions tells them apart by blocks of memory) in time that does not grow with the
// square.
static uint64_t layers_of(fixture *f, bool is_packed, ptowsp_cycles *out_makespan) {
    enum { ROWS = 16384, COLS = 16 };
    static int32_t memory[3 * ROWS * COLS];
    parse(f, "module m\naxis tiles 4096\ntensor q i32 [16384, 16] global\n"
             "tensor k i32 [16384, 16] global\ntensor v i32 [16384, 16] global\n"
             "kernel step(axes 0, in in i32 4 x 16, out out i32 4 x 16) vector, 10 cycles, "
             "time only\nworkload main\n  parallel t in tiles\n"
             "    task step() in = q at (t * 4, 0) out = k at (t * 4, 0)\n"
             "    task step() in = k at (t * 4, 0) out = v at (t * 4, 0)\n");
    const ptowsp_schedule schedule = lanes(7);
    compile(f, &schedule);
    for (int i = 0; i < 3; i++) {
        static const char names[3][2] = {"q", "k", "v"};
        ptowsp_buffer buffer = {.data = memory + (is_packed ? i * COLS : i * ROWS * COLS),
                                .strides[0] = is_packed ? 3 * COLS : COLS,
                                .strides[1] = 1};
        assert_int_equal(ptowsp_run_bind_tensor(f->run, names[i], &buffer), PTOWSP_OK);
    }
    executes(f, PTOWSP_RUN_TIME_ONLY);
    uint64_t begin = ptowsp_clock_ns();
    executes(f, PTOWSP_RUN_TIME_ONLY);
    uint64_t took = ptowsp_clock_ns() - begin;
    *out_makespan = ptowsp_run_result(f->run)->makespan_cycles;
    return took;
}

TEST_F(deps__packed_tensors_are_told_apart) {
    ptowsp_cycles apart, packed;
    uint64_t apart_ns = layers_of(f, false, &apart), packed_ns = layers_of(f, true, &packed);
    assert_true(apart == packed);
    // One list of all would take some thousand times as long as apart; blocks take about twice.
    print_message("8,192 tasks: %llu us apart, %llu us packed\n",
                  (unsigned long long)apart_ns / 1000, (unsigned long long)packed_ns / 1000);
}
