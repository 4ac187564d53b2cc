// What building and compiling a workload refuses that no script can say (tests/cases/builder.case has the others):
// wrong descriptions, schedules and targets, limits, scopes that macros leave; status, index, and the exact text, as
// the user reads it.

#include "build_script.h"

static const char prelude[] = "module decode slots 4\n"
                              "axis heads 8\n"
                              "axis batch dynamic\n"
                              "axis kv ragged\n"
                              "axis pages sparse\n"
                              "tensor x i32 [4, 4] global\n"
                              "kernel work(axes 1) vector, 1 cycles, time only\n";

#define FAULTS_TEST(name) TEST_MADE(name, script, s, script_make(s, prelude), script_free(s))

#define MAIN "workload main; "

// -- declarations ---------------------------------------------------------------------------------

FAULTS_TEST(workload_faults__wrong_tensors_are_refused) {
    static const struct {
        ptowsp_tensor_desc desc;
        uint64_t index;
        const char *text;
    } wrong[] = {
        {{"t", PTOWSP_DTYPE_NONE, 0, {0}, 0}, PTOWSP_NO_INDEX, "tensor t: 0 is no data type"},
        {{"t", (ptowsp_dtype)14, 0, {0}, 0}, PTOWSP_NO_INDEX, "tensor t: 14 is no data type"},
        {{"t", PTOWSP_F32, 9, {0}, 0}, PTOWSP_NO_INDEX, "tensor t: rank 9 is more than 8"},
        {{"t", PTOWSP_F32, 3, {4, PTOWSP_DYNAMIC, -2}, 0}, 2, "tensor t: size -2 of dimension 2"},
        {{"t", PTOWSP_F32, 0, {0}, (ptowsp_location)4},
         PTOWSP_NO_INDEX,
         "tensor t: 4 is no location"},
        {{"x", PTOWSP_F32, 0, {0}, 0},
         PTOWSP_NO_INDEX,
         "tensor x: the name is already that of a tensor"},
        {{"list", PTOWSP_I32, 0, {0}, 0},
         PTOWSP_NO_INDEX,
         "tensor list: the name is already that of an array"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "decode: %s", wrong[i].text);
        script_run(s, "array list");
        assert_int_equal(ptowsp_tensor_make(s->m, &wrong[i].desc).id, 0);
        refused_as(s, PTOWSP_INVALID_PARAMS, wrong[i].index, text);
    }
    ptowsp_tensor_make(s->m, NULL);
    refused(s, "decode: tensor: desc is NULL");
}

FAULTS_TEST(workload_faults__wrong_kernels_are_refused) {
    static const struct {
        ptowsp_kernel_desc desc;
        const char *text;
    } wrong[] = {
        {{.name = "k"}, "k: it has neither fn nor cost nor cycles"},
        {{.name = "k", .cycles = PTOWSP_CYCLES_MAX + 1},
         "k: 9223372036854775808 cycles are more than 2^63 - 1"},
        {{.name = "k", .cycles = 1, .axis_count = 9}, "k: 9 axis arguments are more than 8"},
        {{.name = "k", .cycles = 1, .unit = PTOWSP_UNIT_COUNT}, "k: 3 is no execution unit"},
        {{.name = "k", .cycles = 1, .tiles = {{"t", PTOWSP_DIRECTION_NONE, PTOWSP_F32, 1, 1}}},
         "k: tile t has no direction (in, out or inout)"},
        {{.name = "k", .cycles = 1, .tiles = {{"t", (ptowsp_direction)99, PTOWSP_I32, 1, 1}}},
         "k: tile t has no direction (in, out or inout)"},
        {{.name = "k", .cycles = 1, .tiles = {{"t", PTOWSP_OUT, PTOWSP_DTYPE_NONE, 1, 1}}},
         "k: tile t has no data type"},
        {{.name = "k", .cycles = 1, .tiles = {{"t", PTOWSP_OUT, PTOWSP_F32, 0, 1}}},
         "k: tile t is 0 x 1"},
        {{.name = "k",
          .cycles = 1,
          .tiles = {{"t", PTOWSP_OUT, PTOWSP_F32, (int64_t)INT32_MAX + 1, 1}}},
         "k: tile t is 2147483648 x 1"},
        {{.name = "k",
          .cycles = 1,
          .tiles = {{"t", PTOWSP_OUT, PTOWSP_F32, 1, 1}},
          .scalars = {{"t", PTOWSP_TYPE_NONE}}},
         "k: two parameters are called t"},
        {{.name = "k", .cycles = 1, .scalars = {{"s", PTOWSP_TYPE_NONE}}},
         "k: scalar s has no type"},
        {{.name = "k", .cycles = 1, .scalars = {{"s", (ptowsp_type)99}}},
         "k: scalar s has no type"},
        {{.name = "work", .cycles = 1}, "work: there is a kernel of this name already"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "decode: kernel %s", wrong[i].text);
        assert_int_equal(ptowsp_kernel_make(s->m, &wrong[i].desc).id, 0);
        refused(s, text);
    }
    ptowsp_kernel_make(s->m, NULL);
    refused(s, "decode: kernel: desc is NULL");
}

// -- statements -----------------------------------------------------------------------------------

FAULTS_TEST(workload_faults__null_and_keys_are_refused) {
    script_run(s, MAIN);
    ptowsp_when_begin(s->m, ptowsp_lt(ptowsp_task_arg(s->m, 0), ptowsp_i64(s->m, 1)));
    refused(s, "main: the condition of a when: what belongs to a task has a value in the keys of "
               "schedules only");
    ptowsp_task_make(s->m, NULL);
    refused(s, "decode: task: desc is NULL");
    script_run(s, MAIN);
    ptowsp_call_make(s->m, "callee", NULL, 2);
    refused(s, "main: call callee: 2 arguments, which are NULL");
    script_run(s, MAIN);
    ptowsp_slot_load_make(s->m, 0, NULL, (ptowsp_expr){0}, (ptowsp_expr){0});
    refused(s, "main: slot_load: view is NULL");
    ptowsp_program *program;
    test_refused(s->context, ptowsp_program_create(s->context, NULL, NULL, &program),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "program: module or out_program is NULL");
    assert_invalid(ptowsp_program_create(s->context, s->m, NULL, NULL));
    script_run(s, MAIN "task work 1; end");
    const ptowsp_program_desc desc = {"ma\nin", NULL};
    not_compiled_as(s, &desc, PTOWSP_INVALID_PARAMS, "decode: there is no workload to begin with");
}

FAULTS_TEST(workload_faults__too_many_and_too_deep_are_refused) {
    char text[600] = "main/...";
    script_run(s, MAIN);
    for (int i = 1; i < PTOWSP_MODULE_NEST_MAX; i++) {
        ptowsp_combine_begin(s->m);
    }
    assert_ok(ptowsp_module_error(s->m).status);
    ptowsp_combine_begin(s->m);
    for (int i = 0; i < 160 / 8; i++) {  // of a long place the first and the last steps
        strcat(text, "/combine");
    }
    strcat(text, ": more than 64 scopes in one another");
    refused_as(s, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX, text);
    script_run(s, MAIN);
    ptowsp_expr zero = ptowsp_i64(s->m, 0);
    for (int i = 1; i < PTOWSP_MODULE_NODE_MAX; i++) {
        ptowsp_slot_set_make(s->m, 0, zero);
    }
    assert_ok(ptowsp_module_error(s->m).status);
    ptowsp_slot_set_make(s->m, 0, zero);
    refused_as(s, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX, "main: more than 1000000 nodes");
}

// -- compiling ------------------------------------------------------------------------------------

static void not_compiled(const script *s, const char *workload, const char *text) {
    const ptowsp_program_desc desc = {workload, NULL};
    not_compiled_as(s, &desc, PTOWSP_INVALID_PARAMS, text);
}

FAULTS_TEST(workload_faults__scopes_that_were_left) {
    PTOWSP_WORKLOAD(s->m, "main") {
        PTOWSP_PARALLEL(s->m, b, (ptowsp_axis){2}) {
            const ptowsp_task_desc task = {.kernel = {1}, .axes = {b}};
            ptowsp_task_make(s->m, &task);
            break;
        }
    }
    // The macro of the workload has closed the innermost scope, which was the loop.
    not_compiled(s, NULL, "main: this scope is still open; was it left by break or return?");
    script_run(s, "end");
    compiled(s, NULL);
    script_run(s, "workload second; sequence; when slot:0");
    not_compiled(s, "main",
                 "second/sequence/when: this scope is still open; was it left by break or return?");
}

FAULTS_TEST(workload_faults__calls_in_one_another) {
    script_run(s, "workload w0; task work 1; end");
    for (int i = 1; i < 66; i++) {  // each calls the one before
        char calls[64];
        snprintf(calls, sizeof calls, "workload w%d; call w%d; end", i, i - 1);
        script_run(s, calls);
    }
    const ptowsp_program_desc deepest = {"w64", NULL}, deeper = {"w65", NULL};
    compiled(s, &deepest);
    not_compiled_as(s, &deeper, PTOWSP_LIMIT_EXCEEDED,
                    "w1/call w0: more than 64 calls in one another");
}

FAULTS_TEST(workload_faults__keys_without_their_variable_are_refused) {
    script_run(s, MAIN "parallel i batch; task work i; end; task work 1; end");
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                .lane_count = 2,
                                .dispatch_key = ptowsp_task_variable(s->m, "i")};
    const ptowsp_program_desc desc = {"main", &schedule};
    not_compiled_as(s, &desc, PTOWSP_INVALID_PARAMS,
                    "main/task work: a key of the schedule reads variable i, which no loop around "
                    "it has");
    schedule.dispatch_key = script_expr_of(s, "i");
    not_compiled_as(s, &desc, PTOWSP_INVALID_PARAMS,
                    "main/task work: a key of the schedule reads variable i, whose loop is not "
                    "around it");
    schedule.dispatch_key = ptowsp_task_arg(s->m, 0);
    compiled(s, &desc);
}
// -- schedules ------------------------------------------------------------------------------------

static void schedule_refused(const script *s, const ptowsp_schedule *schedule, ptowsp_status status,
                             const char *text) {
    const ptowsp_program_desc desc = {"main", schedule};
    test_refused(s->context, ptowsp_schedule_check(s->m, schedule, PTOWSP_TARGET_CPU_SIM), status,
                 PTOWSP_NO_INDEX, text);
    not_compiled_as(s, &desc, status, text);
}

// Changes one field of a schedule with two lanes, and expects this to be refused.
#define REFUSED(field, given, status, text)                                                        \
    do {                                                                                           \
        ptowsp_schedule changed = good;                                                            \
        changed.field = (given);                                                                   \
        schedule_refused(s, &changed, PTOWSP_##status, "schedule: " text);                         \
    } while (0)

FAULTS_TEST(workload_faults__schedules_with_values_that_do_not_exist) {
    const ptowsp_schedule good = {.lane_count = 2};
    script_run(s, MAIN "task work 1; end");
    REFUSED(issue, (ptowsp_issue)2, INVALID_PARAMS, "issue 2 does not exist");
    REFUSED(dispatch, (ptowsp_dispatch)7, INVALID_PARAMS, "dispatch 7 does not exist");
    REFUSED(pools, (ptowsp_pools)3, INVALID_PARAMS, "pools 3 does not exist");
    REFUSED(window_policy, (ptowsp_window)4, INVALID_PARAMS, "window 4 does not exist");
    REFUSED(dependencies, 16 | 1, INVALID_PARAMS, "dependencies 16 does not exist");
    REFUSED(hazards, 8, INVALID_PARAMS, "hazards 8 does not exist");
    REFUSED(ready, (ptowsp_ready)3, INVALID_PARAMS, "ready 3 does not exist");
    REFUSED(start, (ptowsp_start)3, INVALID_PARAMS, "start 3 does not exist");
    REFUSED(timing, (ptowsp_timing)4, INVALID_PARAMS, "timing 4 does not exist");
    REFUSED(lane_count, PTOWSP_SCHEDULE_LANE_MAX + 1, LIMIT_EXCEEDED,
            "65537 lanes are more than 65536");
    REFUSED(stream_count, PTOWSP_SCHEDULE_STREAM_MAX + 1, LIMIT_EXCEEDED,
            "65537 streams are more than 65536");
    REFUSED(window, UINT32_C(0x80000000), LIMIT_EXCEEDED,
            "a window of 2147483648 tasks is more than 2147483647");
    compiled(s, NULL);
}

FAULTS_TEST(workload_faults__schedules_that_lack_or_need_not_something) {
    ptowsp_schedule good = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN};
    script_run(s, MAIN "task work 1; end");
    ptowsp_expr key = ptowsp_task_arg(s->m, 0);
    REFUSED(timing, PTOWSP_TIMING_IMMEDIATE, INVALID_PARAMS,
            "dispatch round robin: lane_count is 0");
    good.lane_count = 2;
    REFUSED(vector_lane_count, 1, INVALID_PARAMS,
            "lanes of units are given, but there is one pool");
    REFUSED(dispatch, PTOWSP_DISPATCH_HASH, INVALID_PARAMS,
            "dispatch by a key, but dispatch_key is missing");
    REFUSED(dispatch_key, key, INVALID_PARAMS, "dispatch_key is given, but dispatch takes none");
    REFUSED(window_policy, PTOWSP_WINDOW_ABORT, INVALID_PARAMS,
            "window_policy abort needs window: it is 0");
    REFUSED(window_policy, PTOWSP_WINDOW_STALL, INVALID_PARAMS,
            "window_policy stall needs window: it is 0");
    REFUSED(dispatch, PTOWSP_DISPATCH_AFFINITY, INVALID_PARAMS,
            "dispatch by a key, but dispatch_key is missing");
    REFUSED(ready, PTOWSP_READY_PRIORITY, INVALID_PARAMS,
            "ready by priority, but priority_key is missing");
    REFUSED(priority_key, key, INVALID_PARAMS,
            "priority_key is given, but ready is not by priority");
    REFUSED(start, PTOWSP_START_THRESHOLD, INVALID_PARAMS, "a start_threshold of 0 tasks");
    REFUSED(start_threshold, 5, INVALID_PARAMS,
            "start_threshold is given, but start is not threshold");
    REFUSED(stream_key, key, INVALID_PARAMS, "a stream_key over 0 streams");
    REFUSED(timing, PTOWSP_TIMING_BATCHED, INVALID_PARAMS, "timing batched with timing_count 0");
    REFUSED(timing_count, 3, INVALID_PARAMS, "timing_count is given, but timing is not batched");
    REFUSED(timing, PTOWSP_TIMING_RATE_LIMITED, INVALID_PARAMS, "timing_cycles is 0");
    REFUSED(timing_cycles, 3, INVALID_PARAMS, "timing_cycles is given, but timing is immediate");
    good.timing = PTOWSP_TIMING_RATE_LIMITED;
    REFUSED(timing_cycles, UINT64_C(1) << 33, LIMIT_EXCEEDED,
            "timing_cycles 8589934592 is more than 2^32");
    good.timing_cycles = 3;
    REFUSED(timing, PTOWSP_TIMING_INTERLEAVED, INVALID_PARAMS,
            "timing interleaved: set stream_key and stream_count");
    good.stream_count = 2;
    REFUSED(timing, PTOWSP_TIMING_INTERLEAVED, INVALID_PARAMS,
            "timing interleaved, but stream_key is missing");
    REFUSED(stream_key, ptowsp_task_arg(s->other, 0), INVALID_PARAMS,
            "a key is no expression of module decode");
    good = (ptowsp_schedule){.pools = PTOWSP_POOLS_BY_UNIT};
    REFUSED(lane_count, 0, INVALID_PARAMS,
            "dispatch round robin: vector_lane_count and cube_lane_count are 0");
    good.vector_lane_count = 1;
    REFUSED(lane_count, 2, INVALID_PARAMS, "lane_count 2 is given, but pools are by unit");
    compiled(s, NULL);
}

FAULTS_TEST(workload_faults__schedules_in_order_and_stuck_ones) {
    ptowsp_schedule good = {.issue = PTOWSP_ISSUE_IN_ORDER, .lane_count = 2};
    script_run(s, MAIN "task work 1; end");
    REFUSED(ready, PTOWSP_READY_WORK_STEALING, INVALID_PARAMS,
            "issue in order leaves lanes nothing to choose: ready must be fifo");
    REFUSED(start, PTOWSP_START_ALL_ISSUED, INVALID_PARAMS,
            "issue in order needs ends to go on: start must be at once");
    good.stream_count = 2;
    good.stream_key = ptowsp_task_arg(s->m, 0);
    good.timing_cycles = 1;
    REFUSED(timing, PTOWSP_TIMING_INTERLEAVED, INVALID_PARAMS,
            "issue in order has one clock: timing cannot be interleaved");
    good.timing = PTOWSP_TIMING_BATCHED;
    good.timing_count = 5;
    REFUSED(window, 4, STUCK,
            "a batch of 5 tasks never fits a window of 4: a larger window or a smaller "
            "timing_count would help");
}

// Pools: a cube task, but no cube lane.
FAULTS_TEST(workload_faults__a_unit_without_lanes_is_refused) {
    const ptowsp_kernel_desc desc = {.name = "matmul", .cycles = 1, .unit = PTOWSP_UNIT_CUBE};
    const ptowsp_task_desc cube = {.kernel = ptowsp_kernel_make(s->m, &desc)};
    PTOWSP_WORKLOAD(s->m, "main") {
        ptowsp_task_make(s->m, &cube);
    }
    ptowsp_schedule schedule = {.pools = PTOWSP_POOLS_BY_UNIT, .vector_lane_count = 2};
    const ptowsp_program_desc program = {"main", &schedule};
    not_compiled_as(s, &program, PTOWSP_INVALID_PARAMS,
                    "main/task matmul: its kernel needs a cube lane, and the schedule has none");
    schedule.cube_lane_count = 1;
    compiled(s, &program);
}

FAULTS_TEST(workload_faults__wrong_targets_are_refused) {
    assert_ok(ptowsp_schedule_check(s->m, NULL, PTOWSP_TARGET_THREADS));
    assert_ok(ptowsp_schedule_check(s->m, NULL, PTOWSP_TARGET_ASCEND_NPU));
    ptowsp_schedule schedule = {.start = PTOWSP_START_ALL_ISSUED};
    test_refused(s->context, ptowsp_schedule_check(s->m, &schedule, PTOWSP_TARGET_ASCEND_NPU),
                 PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "schedule: target ascend_npu does not do start all issued");
    test_refused(s->context, ptowsp_schedule_check(s->m, NULL, PTOWSP_TARGET_COUNT),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "schedule: there is no target 3");
    assert_string_equal(ptowsp_target_name(PTOWSP_TARGET_COUNT), "none");
    assert_string_equal(ptowsp_support_name((ptowsp_support)4), "none");
}

// Calls without a module, or after destroying nothing, do no harm.
TEST(workload_faults__null_is_accepted_where_the_header_says_so) {
    ptowsp_module_destroy(NULL);
    ptowsp_program_destroy(NULL);
    ptowsp_run_destroy(NULL);
    ptowsp_context_destroy(NULL);
}

// Ids beyond all that there is, in place of each thing that has them, and values beyond the last of an
// enumeration.
FAULTS_TEST(workload_faults__things_that_the_module_does_not_have) {
    const ptowsp_tensor x = {1}, tensor = {1000};
    const ptowsp_kernel work = {1}, kernel = {1000};
    ptowsp_mesh_layout layout;
    ptowsp_expr lost = {s->m, 100000};
    assert_int_equal(ptowsp_expr_type(lost), PTOWSP_TYPE_NONE);
    assert_int_equal(ptowsp_loop_entry(lost).id, 0);
    refused(s, "decode: loop_entry: it is not the variable of a loop over a sparse axis");
    lost.module = s->m;
    assert_int_equal(ptowsp_add(ptowsp_i64(s->m, 1), lost).id, 0);
    refused(s, "decode: add: an operand is no expression");
    ptowsp_tensor_spread(s->m, tensor, NULL);
    refused_as(s, PTOWSP_INVALID_PARAMS, 1000,
               "decode: spread: there is no tensor 1000, or no spreads");
    ptowsp_kernel_rule(s->m, kernel, "a -> a");
    refused_as(s, PTOWSP_INVALID_PARAMS, 1000, "decode: rule: there is no kernel 1000, or no rule");
    ptowsp_kernel_rule(s->m, work, NULL);
    refused_as(s, PTOWSP_INVALID_PARAMS, 1, "decode: rule: there is no kernel 1, or no rule");
    assert_invalid(ptowsp_tensor_layout(NULL, x, &layout));
    assert_invalid(ptowsp_tensor_layout(s->m, tensor, &layout));
    assert_invalid(ptowsp_tensor_layout(s->m, (ptowsp_tensor){0}, &layout));
    assert_invalid(ptowsp_tensor_layout(s->m, x, NULL));
}

// After the first error every call that builds something gives nothing, and changes nothing.
FAULTS_TEST(workload_faults__all_is_quiet_after_the_first) {
    ptowsp_body_desc body = {.name = "tiles"};
    ptowsp_body *k = ptowsp_kernel_begin(s->m, &body);
    script_run(s, "axis heads 1");
    const ptowsp_error first = ptowsp_module_error(s->m);
    assert_invalid(first.status);
    assert_int_equal(ptowsp_axis_size(s->m, (ptowsp_axis){1}).id, 0);
    assert_int_equal(ptowsp_loop_entry((ptowsp_expr){s->m, 1}).id, 0);
    assert_int_equal(ptowsp_kernel_collective(s->m, NULL).id, 0);
    assert_int_equal(ptowsp_axis_plan(s->m, "p").id, 0);
    assert_int_equal(ptowsp_axis_plan_lanes(s->m, "p").id, 0);
    ptowsp_module_mesh(s->m, NULL, 0);
    ptowsp_tensor_spread(s->m, (ptowsp_tensor){1}, NULL);
    ptowsp_kernel_rule(s->m, (ptowsp_kernel){1}, NULL);
    assert_int_equal(ptowsp_kernel_end(k).id, 0);
    script_run(s, "task work 1");
    assert_int_equal(s->last, 0);
    refused_as(s, first.status, first.index,
               "decode: axis heads: the name is already that of an axis");
}
