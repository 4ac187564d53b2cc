// What building and compiling a workload refuses that no script can say (tests/cases/builder.case has the others, and
// schedules.facts wrong descriptions): NULL, limits, scopes that macros leave; status, index, and the exact text, as
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

FAULTS_TEST(workload_faults__keys_without_their_loop_are_refused) {
    script_run(s, MAIN "parallel i batch; task work i; end; task work 1; end");
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                .lane_count = 2,
                                .dispatch_key = script_expr_of(s, "i")};
    const ptowsp_program_desc desc = {"main", &schedule};
    not_compiled_as(s, &desc, PTOWSP_INVALID_PARAMS,
                    "main/task work: a key of the schedule reads variable i, whose loop is not "
                    "around it");
    schedule.dispatch_key = ptowsp_task_arg(s->m, 0);
    compiled(s, &desc);
}

// Calls without a module, or after destroying nothing, do no harm.
TEST(workload_faults__null_and_nothing_are_accepted_where_the_header_says_so) {
    assert_string_equal(ptowsp_target_name(PTOWSP_TARGET_COUNT), "none");
    assert_string_equal(ptowsp_support_name((ptowsp_support)4), "none");
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
