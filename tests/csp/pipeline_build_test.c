// Everything that building a pipeline refuses, with the exact text as the user reads it, and what
// its limits let through.

#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_axis tiles, four, none_of_it, kv, pages;  // dynamic, dense 4, dense 0, ragged, sparse
    ptowsp_kernel work, plain;                       // (axis), ()
} fixture;

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

static void fixture_make_module(fixture *f) {
    const ptowsp_module_desc desc = {"decode", 4};
    assert_int_equal(ptowsp_module_create(f->context, &desc, &f->m), PTOWSP_OK);
    f->tiles = ptowsp_axis_dynamic(f->m, "tiles");
    f->four = ptowsp_axis_dense(f->m, "four", 4);
    f->none_of_it = ptowsp_axis_dense(f->m, "empty", 0);
    f->kv = ptowsp_axis_ragged(f->m, "kv");
    f->pages = ptowsp_axis_sparse(f->m, "pages");
    ptowsp_kernel_desc kernel = {.name = "work", .axis_count = 1, .fn = one_cycle};
    f->work = ptowsp_kernel_make(f->m, &kernel);
    kernel.name = "plain";
    kernel.axis_count = 0;
    f->plain = ptowsp_kernel_make(f->m, &kernel);
    assert_string_equal(ptowsp_module_error(f->m).text, "");
}

static void fixture_make(fixture *f) {
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    fixture_make_module(f);
}

static void fixture_free(fixture *f) {
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
}

static bool sink(void *user, const void *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
    return true;
}

// Asserts that the module has failed like this, that it can be printed but not compiled; and begins
// a new one.
static void refused_as(fixture *f, ptowsp_status status, uint64_t index, const char *text) {
    ptowsp_error error = ptowsp_module_error(f->m);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, status);
    assert_true(error.index == index);
    size_t printed = 0;
    const ptowsp_output count = {sink, &printed};
    ptowsp_module_print(f->m, count);
    assert_true(printed > 0);
    ptowsp_program *program;
    assert_int_equal(ptowsp_program_create(f->context, f->m, NULL, &program), status);
    assert_null(program);
    test_error_is(f->context, status, index, text);
    ptowsp_module_destroy(f->m);
    fixture_make_module(f);
}

static void refused(fixture *f, const char *text) {
    refused_as(f, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
}

static ptowsp_expr number(const fixture *f, int64_t value) {
    return ptowsp_i64(f->m, value);
}

static ptowsp_channel_desc channel_desc(const char *name) {
    ptowsp_channel_desc desc = {.name = name, .depth = 1};
    return desc;
}

static ptowsp_channel channel(const fixture *f, const char *name) {
    const ptowsp_channel_desc desc = channel_desc(name);
    return ptowsp_channel_make(f->m, &desc);
}

static ptowsp_task_desc work_desc(const fixture *f, ptowsp_kernel kernel) {
    ptowsp_task_desc desc = {.kernel = kernel};
    if (kernel.id == f->work.id) {
        desc.axes[0] = number(f, 7);
    }
    return desc;
}

static ptowsp_node work_after(const fixture *f, ptowsp_node after) {
    ptowsp_task_desc desc = work_desc(f, f->work);
    desc.after[0] = after;
    return ptowsp_task_make(f->m, &desc);
}

static ptowsp_node work(const fixture *f) {
    const ptowsp_node none = {0};
    return work_after(f, none);
}

static void end(const fixture *f, int count) {
    for (int i = 0; i < count; i++) {
        ptowsp_scope_end(f->m);
    }
}

// Begins workload main and pipeline p, with channels a and e (an event).
static void begin_pipeline(const fixture *f, ptowsp_channel *a, ptowsp_channel *e) {
    ptowsp_workload_begin(f->m, "main");
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    *a = channel(f, "a");
    *e = ptowsp_event_make(f->m, "e");
}

// A pipeline without a fault: put sends to a and waits for e, get receives and records.
static void build_good(const fixture *f) {
    ptowsp_channel a, e;
    begin_pipeline(f, &a, &e);
    PTOWSP_PROCESS(f->m, "put") {
        ptowsp_produces(f->m, a);
        ptowsp_consumes(f->m, e);
        ptowsp_send_make(f->m, a, number(f, 1));
        ptowsp_wait_make(f->m, e);
    }
    PTOWSP_PROCESS(f->m, "get") {
        ptowsp_consumes(f->m, a);
        ptowsp_produces(f->m, e);
        PTOWSP_CONSUME(f->m, t, a) {
            (void)t;
        }
        ptowsp_record_make(f->m, e);
    }
    end(f, 2);
}

static void compiles(fixture *f) {
    ptowsp_program *program;
    if (ptowsp_program_create(f->context, f->m, NULL, &program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(f->m);
    fixture_make_module(f);
}

// -- pipelines ------------------------------------------------------------------------------------

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

FIXTURE_TEST(pipeline_build__pipelines_stand_in_workloads_and_not_in_processes) {
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    refused(f, "decode: pipeline p: a statement outside any workload");
    ptowsp_workload_begin(f->m, "main");
    ptowsp_pipeline_begin(f->m, "a \"", NULL, 0);
    refused(f, "main: the name of this pipeline is not 1 to 63 printable ASCII characters without "
               "quotes and backslash");
    ptowsp_channel a, e;
    begin_pipeline(f, &a, &e);
    ptowsp_pipeline_begin(f->m, "q", NULL, 0);
    refused(f, "main/pipeline p: a statement between processes; a pipeline has channels and "
               "processes in it, and nothing else");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_for_each_begin(f->m, "i", f->tiles);
    ptowsp_pipeline_begin(f->m, "q", NULL, 0);
    refused(f, "main/pipeline p/process put/for_each i: pipeline q: it cannot stand in process "
               "put");
    ptowsp_workload_begin(f->m, "main");
    assert_true(ptowsp_pipeline_begin(f->m, "p", NULL, 0).id != 0);
    assert_true(ptowsp_pipeline_begin(f->m, "", NULL, 0).id == 0);
}

FIXTURE_TEST(pipeline_build__nothing_else_stands_in_a_pipeline) {
    for (int which = 0; which < 7; which++) {
        ptowsp_channel a, e;
        begin_pipeline(f, &a, &e);
        switch (which) {
        case 0: work(f); break;
        case 1: ptowsp_slot_set_make(f->m, 0, number(f, 1)); break;
        case 2: ptowsp_when_begin(f->m, ptowsp_bool(f->m, true)); break;
        case 3: ptowsp_combine_begin(f->m); break;
        case 4: ptowsp_parallel_begin(f->m, "i", f->tiles); break;
        case 5: ptowsp_call_make(f->m, "other", NULL, 0); break;
        default:
            ptowsp_process_begin(f->m, "put");
            ptowsp_scope_end(f->m);
            ptowsp_sequence_begin(f->m);
            break;
        }
        refused(f, "main/pipeline p: a statement between processes; a pipeline has channels and "
                   "processes in it, and nothing else");
    }
    ptowsp_channel a, e;
    begin_pipeline(f, &a, &e);
    ptowsp_otherwise_begin(f->m);
    refused(f, "main/pipeline p: an otherwise that does not follow a when");
}

FIXTURE_TEST(pipeline_build__what_a_pipeline_is_after) {
    ptowsp_node after[PTOWSP_TASK_AFTER_MAX + 1] = {0};
    ptowsp_workload_begin(f->m, "main");
    for (int i = 0; i <= PTOWSP_TASK_AFTER_MAX; i++) {
        after[i] = work(f);
    }
    assert_true(ptowsp_pipeline_begin(f->m, "p", after, PTOWSP_TASK_AFTER_MAX).id != 0);
    ptowsp_process_begin(f->m, "put");
    end(f, 2);
    ptowsp_pipeline_begin(f->m, "q", after, PTOWSP_TASK_AFTER_MAX + 1);
    refused(f, "main: pipeline q: after 9 nodes, which are too many");
    ptowsp_workload_begin(f->m, "main");
    ptowsp_pipeline_begin(f->m, "p", NULL, 1);
    refused(f, "main: pipeline p: after 1 nodes, which are NULL");
    ptowsp_workload_begin(f->m, "main");
    after[0].id = 0;
    ptowsp_pipeline_begin(f->m, "p", after, 1);
    refused_as(f, PTOWSP_INVALID_PARAMS, 0,
               "main: after node 0, which is no task or pipeline of this workload");
    PTOWSP_WORKLOAD(f->m, "other") {
        after[0] = work(f);
    }
    ptowsp_workload_begin(f->m, "main");
    ptowsp_pipeline_begin(f->m, "p", after, 1);
    refused_as(f, PTOWSP_INVALID_PARAMS, 2,
               "main: after node 2, which is no task or pipeline of this workload");
    ptowsp_workload_begin(f->m, "main");  // node 1
    PTOWSP_PIPELINE(f->m, "p") {          // 2
        PTOWSP_PROCESS(f->m, "put") {     // 3
            after[0] = work(f);           // 4
        }
    }
    ptowsp_pipeline_begin(f->m, "q", after, 1);
    refused_as(f, PTOWSP_INVALID_PARAMS, 4,
               "main: after node 4, which is in process put; outside of it one can only be after "
               "the pipeline");
}

FIXTURE_TEST(pipeline_build__what_tasks_are_after) {
    ptowsp_node outside = {0}, inside = {0}, pipeline = {0};
    ptowsp_workload_begin(f->m, "main");                   // node 1
    outside = work(f);                                     // 2
    pipeline = ptowsp_pipeline_begin(f->m, "p", NULL, 0);  // 3
    ptowsp_process_begin(f->m, "put");                     // 4
    inside = work(f);                                      // 5
    ptowsp_for_each_begin(f->m, "i", f->tiles);            // 6
    assert_true(work_after(f, inside).id != 0);            // 7
    end(f, 3);                                             // its own task
    assert_true(work_after(f, pipeline).id == 8);          // a pipeline
    ptowsp_pipeline_begin(f->m, "q", &pipeline, 1);        // 9
    ptowsp_process_begin(f->m, "put");                     // 10
    assert_string_equal(ptowsp_module_error(f->m).text, "");
    work_after(f, inside);
    refused_as(f, PTOWSP_INVALID_PARAMS, 5,
               "main/pipeline q/process put/task work: after node 5, which is in process put; "
               "outside of it one can only be after the pipeline");
    ptowsp_workload_begin(f->m, "main");
    work(f);
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    ptowsp_process_begin(f->m, "put");
    work_after(f, outside);
    refused_as(f, PTOWSP_INVALID_PARAMS, 2,
               "main/pipeline p/process put/task work: after node 2, which is not in process put; "
               "what a process does is after its own tasks only");
    ptowsp_workload_begin(f->m, "main");
    work(f);
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    ptowsp_process_begin(f->m, "put");
    work(f);
    end(f, 2);
    work_after(f, inside);
    refused_as(f, PTOWSP_INVALID_PARAMS, 5,
               "main/task work: after node 5, which is in process put; outside of it one can only "
               "be after the pipeline");
    ptowsp_workload_begin(f->m, "main");
    work(f);
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    ptowsp_process_begin(f->m, "put");
    work_after(f, pipeline);  // its own
    refused_as(f, PTOWSP_INVALID_PARAMS, 3,
               "main/pipeline p/process put/task work: after node 3, which is not in process put; "
               "what a process does is after its own tasks only");
}

// -- processes ------------------------------------------------------------------------------------

FIXTURE_TEST(pipeline_build__processes_stand_in_pipelines) {
    ptowsp_channel a, e;
    ptowsp_process_begin(f->m, "put");
    refused(f, "decode: process put: processes stand directly in a pipeline");
    ptowsp_workload_begin(f->m, "main");
    ptowsp_replicate_begin(f->m, "w", f->four, "put");
    refused(f, "main: process put: processes stand directly in a pipeline");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_process_begin(f->m, "get");
    refused(f, "main/pipeline p/process put: process get: processes stand directly in a pipeline");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "");
    refused(f, "main/pipeline p: the name of this process is not 1 to 63 printable ASCII "
               "characters without quotes and backslash");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_scope_end(f->m);
    ptowsp_replicate_begin(f->m, "w", f->four, "put");
    refused(f, "main/pipeline p: process put: the pipeline has a process of this name already");
}

FIXTURE_TEST(pipeline_build__replicas_are_of_a_dense_or_dynamic_axis) {
    const ptowsp_axis none = {0}, unknown = {99};
    ptowsp_channel a, e;
    const struct {
        ptowsp_axis axis;
        const char *text;
    } cases[] = {
        {none, "main/pipeline p: process put: there is no axis 0"},
        {unknown, "main/pipeline p: process put: there is no axis 99"},
        {f->kv, "main/pipeline p: process put: axis kv is ragged; replicas are of a dense or "
                "dynamic one, or of the lanes of a plan"},
        {f->pages, "main/pipeline p: process put: axis pages is sparse; replicas are of a dense or "
                   "dynamic one, or of the lanes of a plan"},
        {f->none_of_it, "main/pipeline p: process put: the size of axis empty is 0; there is at "
                        "least one replica"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_pipeline(f, &a, &e);
        assert_true(ptowsp_replicate_begin(f->m, "w", cases[i].axis, "put").id == 0);
        refused(f, cases[i].text);
    }
    begin_pipeline(f, &a, &e);
    ptowsp_replicate_begin(f->m, "w\\", f->four, "put");
    refused(f, "main/pipeline p: the name of this variable is not 1 to 63 printable ASCII "
               "characters without quotes and backslash");
    begin_pipeline(f, &a, &e);
    ptowsp_replicate_begin(f->m, "w", f->four, "\n");
    refused(f, "main/pipeline p: the name of this process is not 1 to 63 printable ASCII "
               "characters without quotes and backslash");
    ptowsp_workload_begin(f->m, "main");
    ptowsp_parallel_begin(f->m, "w", f->tiles);
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    ptowsp_replicate_begin(f->m, "w", f->four, "put");
    refused(f, "main/parallel w/pipeline p: process put: a scope around has a variable w already");
}

// -- channels -------------------------------------------------------------------------------------

FIXTURE_TEST(pipeline_build__channels_come_first_in_a_pipeline) {
    ptowsp_channel a, e;
    channel(f, "a");
    refused(f, "decode: channel a: channels and events stand directly in a pipeline");
    ptowsp_workload_begin(f->m, "main");
    ptowsp_event_make(f->m, "e");
    refused(f, "main: event e: channels and events stand directly in a pipeline");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    channel(f, "b");
    refused(f, "main/pipeline p/process put: channel b: channels and events stand directly in a "
               "pipeline");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_scope_end(f->m);
    channel(f, "b");
    refused(f, "main/pipeline p: channel b: it comes after process put; channels and events come "
               "first in a pipeline");
    begin_pipeline(f, &a, &e);
    channel(f, "a");
    refused(f, "main/pipeline p: channel a: the pipeline has a channel of this name already");
    begin_pipeline(f, &a, &e);
    ptowsp_event_make(f->m, "a");
    refused(f, "main/pipeline p: event a: the pipeline has a channel of this name already");
    begin_pipeline(f, &a, &e);
    channel(f, "e");
    refused(f, "main/pipeline p: channel e: the pipeline has an event of this name already");
    begin_pipeline(f, &a, &e);
    ptowsp_channel_make(f->m, NULL);
    refused(f, "main/pipeline p: channel: desc is NULL");
    begin_pipeline(f, &a, &e);
    channel(f, NULL);
    refused(f, "main/pipeline p: the name of this channel is NULL");
    begin_pipeline(f, &a, &e);
    channel(f, "");
    refused(f, "main/pipeline p: the name of this channel is not 1 to 63 printable ASCII "
               "characters without quotes and backslash");
    begin_pipeline(f, &a, &e);
    ptowsp_event_make(f->m, "");
    refused(f, "main/pipeline p: the name of this event is not 1 to 63 printable ASCII "
               "characters without quotes and backslash");
}

FIXTURE_TEST(pipeline_build__depth_and_latency_have_limits) {
    ptowsp_channel a, e;
    begin_pipeline(f, &a, &e);
    ptowsp_channel_desc desc = channel_desc("b");
    desc.depth = PTOWSP_CHANNEL_DEPTH_MAX;
    desc.latency = PTOWSP_CYCLES_MAX;
    desc.depth_at_start = ptowsp_u64(f->m, 3);
    desc.latency_at_start = ptowsp_axis_size(f->m, f->tiles);
    assert_true(ptowsp_channel_make(f->m, &desc).id == 0);
    refused(f, "main/pipeline p: channel b: its latency at start is i64, not u64");
    begin_pipeline(f, &a, &e);
    desc.depth_at_start = ptowsp_u64(f->m, 3);
    desc.latency_at_start = ptowsp_symbol(f->m, "delay");
    assert_true(ptowsp_channel_make(f->m, &desc).id != 0);
    desc = channel_desc("c");
    desc.depth = PTOWSP_CHANNEL_DEPTH_MAX + 1;
    ptowsp_channel_make(f->m, &desc);
    refused_as(f, PTOWSP_LIMIT_EXCEEDED, 1048577,
               "main/pipeline p: channel c: depth 1048577 is more than 1048576");
    begin_pipeline(f, &a, &e);
    desc.depth = 0;
    desc.latency = (ptowsp_cycles)-5;
    ptowsp_channel_make(f->m, &desc);
    refused_as(f, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
               "main/pipeline p: channel c: latency -5");
    begin_pipeline(f, &a, &e);
    desc.latency = PTOWSP_CYCLES_MAX + 1;
    ptowsp_channel_make(f->m, &desc);
    refused_as(f, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
               "main/pipeline p: channel c: latency -9223372036854775808");
    begin_pipeline(f, &a, &e);
    desc = channel_desc("c");
    desc.depth_at_start = number(f, 1);
    ptowsp_channel_make(f->m, &desc);
    refused(f, "main/pipeline p: channel c: its depth at start is i64, not u64");
    ptowsp_module *other = test_module(f->context, NULL);
    begin_pipeline(f, &a, &e);
    desc.depth_at_start = ptowsp_u64(other, 1);
    ptowsp_channel_make(f->m, &desc);
    refused(f, "main/pipeline p: channel c: its depth at start is no expression of this module");
    ptowsp_module_destroy(other);
    ptowsp_workload_begin(f->m, "main");
    PTOWSP_FOR_EACH(f->m, i, f->tiles) {
        desc.depth_at_start = ptowsp_cast(i, PTOWSP_TYPE_U64);
    }
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    ptowsp_channel_make(f->m, &desc);
    refused(f, "main/pipeline p: channel c: its depth at start: variable i belongs to a scope "
               "that is not around");
}

FIXTURE_TEST(pipeline_build__the_symbol_of_latencies_is_there_with_a_pipeline) {
    ptowsp_axis_dynamic(f->m, PTOWSP_CHANNEL_LATENCY_SYMBOL);
    ptowsp_workload_begin(f->m, "main");
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    refused(f, "main: symbol __pto_wsp_channel_latency_cycles: the name is already that of an "
               "axis");
    build_good(f);
    ptowsp_axis_dense(f->m, PTOWSP_CHANNEL_LATENCY_SYMBOL, 1);
    refused(f, "decode: axis __pto_wsp_channel_latency_cycles: the name is already that of a "
               "symbol");
    for (int is_used = 0; is_used < 2; is_used++) {  // by an expression of the user's
        ptowsp_symbol(f->m, PTOWSP_CHANNEL_LATENCY_SYMBOL);
        build_good(f);
        PTOWSP_WORKLOAD(f->m, "around") {
            if (is_used) {
                ptowsp_slot_set_make(f->m, 0, ptowsp_symbol(f->m, PTOWSP_CHANNEL_LATENCY_SYMBOL));
            }
        }
        ptowsp_program *program = test_program(f->context, f->m, NULL);
        ptowsp_run *run = test_run_of(f->context, program);
        assert_int_equal(ptowsp_run_execute(run, NULL), is_used ? PTOWSP_UNBOUND : PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_symbol(run, PTOWSP_CHANNEL_LATENCY_SYMBOL, 9), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(run, NULL), PTOWSP_OK);
        test_destroy(run, program, f->m, NULL);
        fixture_make_module(f);
    }
}

// -- ports ----------------------------------------------------------------------------------------

FIXTURE_TEST(pipeline_build__a_process_declares_before_its_statements) {
    ptowsp_channel a, e, old, unknown = {99};
    const ptowsp_channel none = {0};
    ptowsp_consumes(f->m, none);
    refused(f, "decode: consumes: not directly in a process");
    begin_pipeline(f, &a, &e);
    ptowsp_produces(f->m, a);
    refused(f, "main/pipeline p: produces: not directly in a process");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_combine_begin(f->m);
    ptowsp_produces(f->m, a);
    refused(f, "main/pipeline p/process put/combine: produces: not directly in a process");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_consumes(f->m, none);
    refused(f, "main/pipeline p/process put: consumes: there is no channel 0");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_produces(f->m, unknown);
    refused(f, "main/pipeline p/process put: produces: there is no channel 99");
    begin_pipeline(f, &old, &e);
    ptowsp_process_begin(f->m, "put");
    end(f, 2);
    ptowsp_pipeline_begin(f->m, "q", NULL, 0);
    ptowsp_process_begin(f->m, "put");
    ptowsp_consumes(f->m, old);
    refused(f, "main/pipeline q/process put: consumes: channel a is of another pipeline, p");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_produces(f->m, a);
    ptowsp_consumes(f->m, a);  // both with one channel is fine
    ptowsp_produces(f->m, a);
    refused(f, "main/pipeline p/process put: produces: channel a is declared twice");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_consumes(f->m, e);
    ptowsp_consumes(f->m, e);
    refused(f, "main/pipeline p/process put: consumes: event e is declared twice");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_produces(f->m, a);
    ptowsp_send_make(f->m, a, number(f, 1));
    ptowsp_consumes(f->m, e);
    refused(f, "main/pipeline p/process put: consumes: event e is declared after a statement; "
               "what a process consumes and produces comes first");
}

// The operations on channels, each with what it does to channel c.
static void operate(const fixture *f, int which, ptowsp_channel c) {
    const ptowsp_task_desc desc = work_desc(f, f->work);
    switch (which) {
    case 0: ptowsp_consume_begin(f->m, "t", c); break;
    case 1: ptowsp_receive_begin(f->m, "t", c); break;
    case 2: ptowsp_wait_make(f->m, c); break;
    case 3: ptowsp_send_make(f->m, c, number(f, 1)); break;
    case 4: ptowsp_send_task_make(f->m, c, &desc); break;
    case 5: ptowsp_record_make(f->m, c); break;
    default: ptowsp_close_make(f->m, c); break;
    }
}

FIXTURE_TEST(pipeline_build__operations_are_on_channels_that_the_process_declares) {
    char text[300];
    static const char *const names[] = {"consume t", "receive t", "wait", "send",
                                        "send_task", "record",    "close"};
    for (int which = 0; which < 7; which++) {
        bool is_event = which == 2 || which == 5, is_consumed = which < 3;
        ptowsp_channel a, e, old, old_e;
        operate(f, which, (ptowsp_channel){1});
        snprintf(text, sizeof text, "decode: %s: not in a process", names[which]);
        refused(f, text);
        begin_pipeline(f, &a, &e);
        operate(f, which, is_event ? e : a);
        snprintf(text, sizeof text, "main/pipeline p: %s: not in a process", names[which]);
        refused(f, text);
        begin_pipeline(f, &a, &e);
        ptowsp_process_begin(f->m, "run");
        operate(f, which, (ptowsp_channel){3});
        snprintf(text, sizeof text, "main/pipeline p/process run: %s: there is no channel 3",
                 names[which]);
        refused(f, text);
        begin_pipeline(f, &old, &old_e);
        ptowsp_process_begin(f->m, "run");
        end(f, 2);
        ptowsp_pipeline_begin(f->m, "q", NULL, 0);
        channel(f, "a");
        ptowsp_process_begin(f->m, "run");
        operate(f, which, is_event ? old_e : old);
        snprintf(text, sizeof text, "main/pipeline q/process run: %s: %s is of another pipeline, p",
                 names[which], is_event ? "event e" : "channel a");
        refused(f, text);
        begin_pipeline(f, &a, &e);
        ptowsp_process_begin(f->m, "run");
        (is_consumed ? ptowsp_produces : ptowsp_consumes)(f->m, is_event ? e : a);  // the other one
        ptowsp_for_each_begin(f->m, "i", f->tiles);
        operate(f, which, is_event ? e : a);
        snprintf(text, sizeof text,
                 "main/pipeline p/process run/for_each i: %s: %s is not one that process run %s; "
                 "call ptowsp_%s first",
                 names[which], is_event ? "event e" : "channel a",
                 is_consumed ? "consumes" : "produces", is_consumed ? "consumes" : "produces");
        refused(f, text);
        begin_pipeline(f, &a, &e);
        ptowsp_process_begin(f->m, "run");
        (is_consumed ? ptowsp_consumes : ptowsp_produces)(f->m, is_event ? e : a);
        operate(f, which, is_event ? e : a);
        assert_string_equal(ptowsp_module_error(f->m).text, "");
        ptowsp_module_destroy(f->m);
        fixture_make_module(f);
    }
}

FIXTURE_TEST(pipeline_build__events_are_recorded_and_channels_are_sent_to) {
    static const char *const texts[] = {
        "main/pipeline p/process run: consume t: e is an event; record it, or wait for it",
        "main/pipeline p/process run: receive t: e is an event; record it, or wait for it",
        "main/pipeline p/process run: wait: a is no event; send to it, or receive from it",
        "main/pipeline p/process run: send: e is an event; record it, or wait for it",
        "main/pipeline p/process run: send_task: e is an event; record it, or wait for it",
        "main/pipeline p/process run: record: a is no event; send to it, or receive from it",
    };
    for (int which = 0; which < 6; which++) {
        ptowsp_channel a, e;
        begin_pipeline(f, &a, &e);
        ptowsp_process_begin(f->m, "run");
        operate(f, which, which == 2 || which == 5 ? a : e);
        refused(f, texts[which]);
    }
    ptowsp_channel a, e;  // both may be closed
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "run");
    ptowsp_produces(f->m, a);
    ptowsp_produces(f->m, e);
    ptowsp_close_make(f->m, a);
    ptowsp_close_make(f->m, e);
    ptowsp_close_make(f->m, e);
    assert_string_equal(ptowsp_module_error(f->m).text, "");
}

FIXTURE_TEST(pipeline_build__tokens_and_their_names) {
    ptowsp_channel a, e;
    begin_pipeline(f, &a, &e);
    ptowsp_replicate_begin(f->m, "w", f->four, "run");
    ptowsp_consumes(f->m, a);
    ptowsp_consume_begin(f->m, "w", a);
    refused(f, "main/pipeline p/process run: consume w: a scope around has a variable of this "
               "name");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "run");
    ptowsp_consumes(f->m, a);
    ptowsp_consume_begin(f->m, "t", a);
    ptowsp_receive_begin(f->m, "t", a);
    refused(f, "main/pipeline p/process run/consume t: receive t: a scope around has a variable "
               "of this name");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "run");
    ptowsp_consumes(f->m, a);
    ptowsp_receive_begin(f->m, "", a);
    refused(f, "main/pipeline p/process run: the name of this variable is not 1 to 63 printable "
               "ASCII characters without quotes and backslash");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "run");
    ptowsp_consumes(f->m, a);
    ptowsp_produces(f->m, a);
    ptowsp_expr token = ptowsp_receive_begin(f->m, "t", a);
    assert_int_equal(ptowsp_expr_type(token), PTOWSP_TYPE_I64);
    ptowsp_scope_end(f->m);
    ptowsp_send_make(f->m, a, token);
    refused(f, "main/pipeline p/process run: the token of a send: variable t belongs to a scope "
               "that is not around");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "run");
    ptowsp_produces(f->m, a);
    const ptowsp_expr none = {NULL, 0};
    ptowsp_send_make(f->m, a, ptowsp_bool(f->m, true));  // of any type
    ptowsp_send_make(f->m, a, ptowsp_u64(f->m, 1));
    ptowsp_send_make(f->m, a, none);
    refused(f, "main/pipeline p/process run: the token of a send is no expression");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "run");
    ptowsp_produces(f->m, a);
    const ptowsp_task_desc plain = work_desc(f, f->plain);
    ptowsp_send_task_make(f->m, a, &plain);
    refused(f, "main/pipeline p/process run: send_task: kernel plain has no axis argument that "
               "would be the token; make the task, then send another");
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "run");
    ptowsp_produces(f->m, a);
    ptowsp_send_task_make(f->m, a, NULL);
    refused(f, "main/pipeline p/process run: task: desc is NULL");
    begin_pipeline(f, &a, &e);          // main 1, p 2
    ptowsp_process_begin(f->m, "run");  // 3
    ptowsp_produces(f->m, a);
    const ptowsp_task_desc desc = work_desc(f, f->work);
    assert_int_equal(ptowsp_send_task_make(f->m, a, &desc).id, 4);  // the task's node
}

// -- compiling ------------------------------------------------------------------------------------

// Compiles and asserts that it is refused; the module is as good as before.
static void not_compiled(fixture *f, ptowsp_status status, const char *text) {
    ptowsp_program *program;
    assert_string_equal(ptowsp_module_error(f->m).text, "");
    assert_int_equal(ptowsp_program_create(f->context, f->m, NULL, &program), status);
    assert_null(program);
    test_error_is(f->context, status, PTOWSP_NO_INDEX, text);
    assert_int_equal(ptowsp_module_error(f->m).status, PTOWSP_OK);
    ptowsp_module_destroy(f->m);
    fixture_make_module(f);
}

FIXTURE_TEST(pipeline_build__a_good_pipeline_compiles) {
    build_good(f);
    compiles(f);
    PTOWSP_WORKLOAD(f->m, "main") {  // without channels
        PTOWSP_PIPELINE(f->m, "p") {
            PTOWSP_PROCESS(f->m, "alone") {
                work(f);
            }
        }
        PTOWSP_PIPELINE(f->m, "q") {
            PTOWSP_PROCESS(f->m, "idle") {
            }
        }
    }
    compiles(f);
}

// What the only process of a pipeline does with a channel or an event: declare, use.
static void build_halves(const fixture *f, bool is_event, bool consumes, bool produces,
                         bool receives, bool sends) {
    ptowsp_workload_begin(f->m, "main");
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    ptowsp_channel c = is_event ? ptowsp_event_make(f->m, "c") : channel(f, "c");
    ptowsp_process_begin(f->m, "run");
    if (consumes) {
        ptowsp_consumes(f->m, c);
    }
    if (produces) {
        ptowsp_produces(f->m, c);
    }
    if (receives && is_event) {
        ptowsp_wait_make(f->m, c);
    } else if (receives) {
        ptowsp_receive_begin(f->m, "t", c);
        ptowsp_scope_end(f->m);
    }
    if (sends) {
        operate(f, is_event ? 5 : 4, c);
    }
    end(f, 3);
}

FIXTURE_TEST(pipeline_build__a_channel_has_both_ends) {
    static const char *const texts[2][4] = {
        {"main/pipeline p: channel c: no process consumes it, so that senders would wait for ever",
         "main/pipeline p: channel c: no process produces it, so that receivers would wait for "
         "ever",
         "main/pipeline p: channel c: no process receives from it, so that senders would wait for "
         "ever",
         "main/pipeline p: channel c: no process sends to it, so that receivers would wait in "
         "vain"},
        {"main/pipeline p: event c: no process consumes it, so that processes that record it would "
         "wait for ever",
         "main/pipeline p: event c: no process produces it, so that processes that wait for it "
         "would wait for ever",
         "main/pipeline p: event c: no process waits for it, so that processes that record it "
         "would wait for ever",
         "main/pipeline p: event c: no process records it, so that processes that wait for it "
         "would wait for ever"}};
    for (int is_event = 0; is_event < 2; is_event++) {
        build_halves(f, is_event, false, false, false, false);
        not_compiled(f, PTOWSP_STUCK, texts[is_event][0]);
        build_halves(f, is_event, false, true, false, true);
        not_compiled(f, PTOWSP_STUCK, texts[is_event][0]);
        build_halves(f, is_event, true, false, true, false);
        not_compiled(f, PTOWSP_STUCK, texts[is_event][1]);
        build_halves(f, is_event, true, true, false, true);
        not_compiled(f, PTOWSP_STUCK, texts[is_event][2]);
        build_halves(f, is_event, true, true, true, false);
        not_compiled(f, PTOWSP_STUCK, texts[is_event][3]);
        build_halves(f, is_event, true, true, true, true);
        compiles(f);
        build_halves(f, is_event, false, false, false, false);  // not reached
        PTOWSP_WORKLOAD(f->m, "other") {
        }
        compiles(f);
    }
}

FIXTURE_TEST(pipeline_build__pipelines_have_processes) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            channel(f, "a");
        }
    }
    not_compiled(f, PTOWSP_INVALID_PARAMS, "main/pipeline p: it has no processes");
    ptowsp_workload_begin(f->m, "main");
    ptowsp_pipeline_begin(f->m, "p", NULL, 0);
    ptowsp_process_begin(f->m, "put");
    not_compiled(f, PTOWSP_INVALID_PARAMS,
                 "main/pipeline p/process put: this scope is still open; was it left by break or "
                 "return?");
}

// Workload `name` with a process that calls another.
static void build_caller(const fixture *f, const char *name, const char *callee) {
    PTOWSP_WORKLOAD(f->m, name) {
        PTOWSP_PIPELINE(f->m, "p") {
            PTOWSP_PROCESS(f->m, "put") {
                PTOWSP_FOR_EACH(f->m, i, f->tiles) {
                    (void)i;
                    ptowsp_call_make(f->m, callee, NULL, 0);
                }
            }
        }
    }
}

FIXTURE_TEST(pipeline_build__processes_call_no_pipelines) {
    PTOWSP_WORKLOAD(f->m, "inner") {
        PTOWSP_PIPELINE(f->m, "q") {
            PTOWSP_PROCESS(f->m, "get") {
            }
        }
    }
    build_caller(f, "main", "inner");
    not_compiled(f, PTOWSP_INVALID_PARAMS,
                 "main/pipeline p/process put/for_each i/call inner: process put calls a workload "
                 "with pipeline q in it, or in what it calls; there are none inside processes");
    build_caller(f, "inner", "leaf");  // has pipeline p
    PTOWSP_WORKLOAD(f->m, "leaf") {
        work(f);
    }
    PTOWSP_WORKLOAD(f->m, "middle") {
        ptowsp_call_make(f->m, "leaf", NULL, 0);
        ptowsp_call_make(f->m, "inner", NULL, 0);
    }
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_call_make(f->m, "middle", NULL, 0);  // from outside first
        PTOWSP_PIPELINE(f->m, "q") {
            PTOWSP_PROCESS(f->m, "get") {
                ptowsp_call_make(f->m, "leaf", NULL, 0);
                ptowsp_call_make(f->m, "middle", NULL, 0);
            }
        }
    }
    not_compiled(f, PTOWSP_INVALID_PARAMS,
                 "main/pipeline q/process get/call middle: process get calls a workload with "
                 "pipeline p in it, or in what it calls; there are none inside processes");
    build_caller(f, "main", "leaf");
    PTOWSP_WORKLOAD(f->m, "leaf") {
        work(f);
    }
    PTOWSP_WORKLOAD(f->m, "both") {
        ptowsp_call_make(f->m, "leaf", NULL, 0);
        ptowsp_call_make(f->m, "main", NULL, 0);
        ptowsp_call_make(f->m, "main", NULL, 0);
    }
    compiles(f);
}

static void build_processes(const fixture *f, int64_t replicas, bool has_more) {
    ptowsp_axis many = ptowsp_axis_dense(f->m, "many", replicas);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            PTOWSP_REPLICATE(f->m, w, many, "put") {
                (void)w;
            }
        }
        PTOWSP_PIPELINE(f->m, "q") {
            PTOWSP_REPLICATE(f->m, w, f->tiles, "some") {  // one at least
                (void)w;
            }
            if (has_more) {
                ptowsp_process_begin(f->m, "get");
                ptowsp_scope_end(f->m);
            }
        }
    }
}

FIXTURE_TEST(pipeline_build__processes_have_a_limit) {
    build_processes(f, PTOWSP_PROCESS_MAX - 1, false);
    compiles(f);
    build_processes(f, PTOWSP_PROCESS_MAX - 1, true);
    not_compiled(f, PTOWSP_LIMIT_EXCEEDED,
                 "main/pipeline q/process get: more than 1048576 processes in the program, each "
                 "replica counted");
    build_processes(f, PTOWSP_PROCESS_MAX, false);
    not_compiled(f, PTOWSP_LIMIT_EXCEEDED,
                 "main/pipeline q/process some: more than 1048576 processes in the program, each "
                 "replica counted");
    build_processes(f, INT64_MAX, false);
    not_compiled(f, PTOWSP_LIMIT_EXCEEDED,
                 "main/pipeline p/process put: more than 1048576 processes in the program, each "
                 "replica counted");
}

FIXTURE_TEST(pipeline_build__a_module_with_an_error_stays_as_it_is) {
    ptowsp_channel a, e;
    begin_pipeline(f, &a, &e);
    ptowsp_process_begin(f->m, "put");
    ptowsp_produces(f->m, a);
    ptowsp_axis_dense(f->m, "", 1);
    const char *first = "main/pipeline p/process put: the name of this axis is not 1 to 63 "
                        "printable ASCII characters without quotes and backslash";
    assert_string_equal(ptowsp_module_error(f->m).text, first);
    for (int which = 0; which < 7; which++) {
        operate(f, which, a);
    }
    ptowsp_consumes(f->m, e);
    ptowsp_process_begin(f->m, "");
    assert_true(ptowsp_replicate_begin(f->m, "w", f->four, "r").id == 0);
    assert_true(ptowsp_pipeline_begin(f->m, "q", NULL, 0).id == 0);
    assert_true(channel(f, "b").id == 0);
    assert_true(ptowsp_channel_make(f->m, NULL).id == 0);
    assert_true(ptowsp_event_make(f->m, "d").id == 0);
    ptowsp_pipeline_begin(NULL, "p", NULL, 0);  // as everywhere, no module is a failed one
    ptowsp_process_begin(NULL, "p");
    ptowsp_close_make(NULL, a);
    refused(f, first);
}
