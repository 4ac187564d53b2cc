// Everything that building a pipeline refuses, with the exact text as the user reads it, and what
// its limits let through.

#include "build_script.h"

static const char prelude[] = "module decode slots 4\n"
                              "axis tiles dynamic\n"
                              "axis four 4\n"
                              "axis empty 0\n"
                              "axis kv ragged\n"
                              "axis pages sparse\n"
                              "kernel work(axes 1) vector, 1 cycles, time only\n"
                              "kernel plain(axes 0) vector, 1 cycles, time only\n";

#define BUILD_TEST(name) TEST_MADE(name, script, s, script_make(s, prelude), script_free(s))

// In workload main, pipeline p with a channel and an event.
#define PIPE "workload main; pipeline p; channel a; event e; "

// A process of it.
#define PUT PIPE "process put; "
#define RUN PIPE "process run; "

#define UNPRINTABLE "is not 1 to 63 printable ASCII characters without quotes and backslash"
#define BETWEEN                                                                                    \
    "main/pipeline p: a statement between processes; a pipeline has channels and processes in it," \
    " and nothing else"

// A pipeline without a fault.
#define GOOD                                                                                       \
    PIPE "process put; produces a; consumes e; send a 1; wait e; end; "                            \
         "process get; consumes a; produces e; consume t a; end; record e; end 3"

static void compiles(script *s) {
    compiled(s, NULL);
    script_begin(s);
}

static void not_compiled(script *s, ptowsp_status status, const char *text) {
    not_compiled_as(s, NULL, status, text);
    script_begin(s);
}

// A script without a fault, whose last call gives something if it has a value.
static void runs(script *s, const char *calls, bool has_value) {
    script_run(s, calls);
    assert_string_equal(ptowsp_module_error(s->m).text, "");
    assert_true((s->last != 0) == has_value);
}

// -- pipelines ------------------------------------------------------------------------------------

BUILD_TEST(pipeline_build__pipelines_stand_in_workloads_and_not_in_processes) {
    static const script_fault faults[] = {
        FAULT("pipeline p", "decode: pipeline p: a statement outside any workload"),
        FAULT("workload main; pipeline 'a \"'", "main: the name of this pipeline " UNPRINTABLE),
        FAULT(PIPE "pipeline q", BETWEEN),
        FAULT(PUT "for_each i tiles; pipeline q",
              "main/pipeline p/process put/for_each i: pipeline q: it cannot stand in process put"),
    };
    EXPECT_FAULTS(s, faults);
    runs(s, "workload main; pipeline p", true);
    script_run(s, "pipeline ''");
    assert_int_equal(s->last, 0);
}

BUILD_TEST(pipeline_build__nothing_else_stands_in_a_pipeline) {
    static const script_fault faults[] = {
        FAULT(PIPE "task work 7", BETWEEN),
        FAULT(PIPE "slot_set 0 1", BETWEEN),
        FAULT(PIPE "when true", BETWEEN),
        FAULT(PIPE "combine", BETWEEN),
        FAULT(PIPE "parallel i tiles", BETWEEN),
        FAULT(PIPE "call other", BETWEEN),
        FAULT(PUT "end; sequence", BETWEEN),
        FAULT(PIPE "otherwise", "main/pipeline p: an otherwise that does not follow a when"),
    };
    EXPECT_FAULTS(s, faults);
}

// Nodes are numbered from 1, the workload.
BUILD_TEST(pipeline_build__what_a_pipeline_is_after) {
    static const script_fault faults[] = {
        FAULT("workload main; task work 7; pipeline q after 2 2 2 2 2 2 2 2 2",
              "main: pipeline q: after 9 nodes, which are too many"),
        FAULT_AT("workload main; pipeline p after 0", 0,
                 "main: after node 0, which is no task or pipeline of this workload"),
        FAULT_AT("workload other; task work 7; end; workload main; pipeline p after 2", 2,
                 "main: after node 2, which is no task or pipeline of this workload"),
        FAULT_AT("workload main; pipeline p; process put; task work 7; end 2; pipeline q after 4",
                 4,
                 "main: after node 4, which is in process put; outside of it one can only be after "
                 "the pipeline"),
    };
    runs(s,
         "workload main; task work 0; task work 1; task work 2; task work 3; task work 4; task "
         "work 5; task work 6; task work 7; pipeline p after 2 3 4 5 6 7 8 9",
         true);
    script_begin(s);
    EXPECT_FAULTS(s, faults);
    script_run(s, "workload main");
    ptowsp_pipeline_begin(s->m, "p", NULL, 1);
    refused(s, "main: pipeline p: after 1 nodes, which are NULL");
}

BUILD_TEST(pipeline_build__what_tasks_are_after) {
    static const script_fault faults[] = {
        FAULT_AT("workload main; task work 7; pipeline p; process put; task work 7; end 2; "
                 "pipeline q; process put; task work 7 after 5",
                 5,
                 "main/pipeline q/process put/task work: after node 5, which is in process put; "
                 "outside of it one can only be after the pipeline"),
        FAULT_AT("workload main; task work 7; pipeline p; process put; task work 7 after 2", 2,
                 "main/pipeline p/process put/task work: after node 2, which is not in process "
                 "put; what a process does is after its own tasks only"),
        FAULT_AT("workload main; task work 7; pipeline p; process put; task work 7; end 2; "
                 "task work 7 after 5",
                 5,
                 "main/task work: after node 5, which is in process put; outside of it one can "
                 "only be after the pipeline"),
        FAULT_AT("workload main; task work 7; pipeline p; process put; task work 7 after 3", 3,
                 "main/pipeline p/process put/task work: after node 3, which is not in process "
                 "put; what a process does is after its own tasks only"),
    };
    EXPECT_FAULTS(s, faults);
    // After its own task, also from a loop; and after a pipeline.
    runs(s,
         "workload main; task work 7; pipeline p; process put; task work 7; for_each i tiles; "
         "task work 7 after 5",
         true);
    runs(s, "end 3; task work 7 after 3", true);
    assert_int_equal(s->last, 8);
    runs(s, "pipeline q after 3", true);
}

// -- processes ------------------------------------------------------------------------------------

BUILD_TEST(pipeline_build__processes_stand_in_pipelines) {
    static const script_fault faults[] = {
        FAULT("process put", "decode: process put: processes stand directly in a pipeline"),
        FAULT("workload main; replicate w four put",
              "main: process put: processes stand directly in a pipeline"),
        FAULT(PUT "process get",
              "main/pipeline p/process put: process get: processes stand directly in a pipeline"),
        FAULT(PIPE "process ''", "main/pipeline p: the name of this process " UNPRINTABLE),
        FAULT(PUT "end; replicate w four put",
              "main/pipeline p: process put: the pipeline has a process of this name already"),
    };
    EXPECT_FAULTS(s, faults);
}

BUILD_TEST(pipeline_build__replicas_are_of_a_dense_or_dynamic_axis) {
    static const script_fault faults[] = {
        FAULT(PIPE "replicate w #0 put", "main/pipeline p: process put: there is no axis 0"),
        FAULT(PIPE "replicate w #99 put", "main/pipeline p: process put: there is no axis 99"),
        FAULT(PIPE "replicate w kv put",
              "main/pipeline p: process put: axis kv is ragged; replicas are of a dense or dynamic "
              "one, or of the lanes of a plan"),
        FAULT(PIPE "replicate w pages put",
              "main/pipeline p: process put: axis pages is sparse; replicas are of a dense or "
              "dynamic one, or of the lanes of a plan"),
        FAULT(PIPE "replicate w empty put",
              "main/pipeline p: process put: the size of axis empty is 0; there is at least one "
              "replica"),
        FAULT(PIPE "replicate w\\ four put",
              "main/pipeline p: the name of this variable " UNPRINTABLE),
        FAULT(PIPE "replicate w four '\n'",
              "main/pipeline p: the name of this process " UNPRINTABLE),
        FAULT("workload main; parallel w tiles; pipeline p; replicate w four put",
              "main/parallel w/pipeline p: process put: a scope around has a variable w already"),
    };
    EXPECT_FAULTS(s, faults);
}

// -- channels -------------------------------------------------------------------------------------

BUILD_TEST(pipeline_build__channels_come_first_in_a_pipeline) {
    static const script_fault faults[] = {
        FAULT("channel a", "decode: channel a: channels and events stand directly in a pipeline"),
        FAULT("workload main; event e",
              "main: event e: channels and events stand directly in a pipeline"),
        FAULT(PUT "channel b",
              "main/pipeline p/process put: channel b: channels and events stand directly in a "
              "pipeline"),
        FAULT(PUT "end; channel b",
              "main/pipeline p: channel b: it comes after process put; channels and events come "
              "first in a pipeline"),
        FAULT(PIPE "channel a",
              "main/pipeline p: channel a: the pipeline has a channel of this name already"),
        FAULT(PIPE "event a",
              "main/pipeline p: event a: the pipeline has a channel of this name already"),
        FAULT(PIPE "channel e",
              "main/pipeline p: channel e: the pipeline has an event of this name already"),
        FAULT(PIPE "channel NULL", "main/pipeline p: the name of this channel is NULL"),
        FAULT(PIPE "channel ''", "main/pipeline p: the name of this channel " UNPRINTABLE),
        FAULT(PIPE "event ''", "main/pipeline p: the name of this event " UNPRINTABLE),
    };
    EXPECT_FAULTS(s, faults);
    script_run(s, PIPE);
    ptowsp_channel_make(s->m, NULL);
    refused(s, "main/pipeline p: channel: desc is NULL");
}

// Makes a channel in pipeline p, which is refused.
static void channel_refused(script *s, ptowsp_channel_desc desc, ptowsp_status status,
                            uint64_t index, const char *text) {
    assert_int_equal(ptowsp_channel_make(s->m, &desc).id, 0);
    refused_as(s, status, index, text);
    script_run(s, PIPE);
}

BUILD_TEST(pipeline_build__depth_and_latency_have_limits) {
    const uint64_t no = PTOWSP_NO_INDEX, negative = PTOWSP_NEGATIVE_INDEX;
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    script_run(s, PIPE);
    ptowsp_channel_desc good = {.name = "b",
                                .depth = PTOWSP_CHANNEL_DEPTH_MAX,
                                .latency = PTOWSP_CYCLES_MAX,
                                .depth_at_start = ptowsp_u64(s->m, 3),
                                .latency_at_start = ptowsp_symbol(s->m, "delay")};
    assert_true(ptowsp_channel_make(s->m, &good).id != 0);
    channel_refused(s, (ptowsp_channel_desc){.name = "c", .depth = PTOWSP_CHANNEL_DEPTH_MAX + 1},
                    PTOWSP_LIMIT_EXCEEDED, 1048577,
                    "main/pipeline p: channel c: depth 1048577 is more than 1048576");
    channel_refused(s, (ptowsp_channel_desc){.name = "c", .latency = (ptowsp_cycles)-5}, bad,
                    negative, "main/pipeline p: channel c: latency -5");
    channel_refused(s, (ptowsp_channel_desc){.name = "c", .latency = PTOWSP_CYCLES_MAX + 1}, bad,
                    negative, "main/pipeline p: channel c: latency -9223372036854775808");
    good.depth_at_start = ptowsp_u64(s->m, 3);
    good.latency_at_start = ptowsp_axis_size(s->m, (ptowsp_axis){1});
    channel_refused(s, good, bad, no,
                    "main/pipeline p: channel b: its latency at start is i64, not u64");
    ptowsp_channel_desc c = {.name = "c", .depth_at_start = ptowsp_i64(s->m, 1)};
    channel_refused(s, c, bad, no,
                    "main/pipeline p: channel c: its depth at start is i64, not u64");
    c.depth_at_start = ptowsp_u64(s->other, 1);
    channel_refused(
        s, c, bad, no,
        "main/pipeline p: channel c: its depth at start is no expression of this module");
    script_begin(s);
    script_run(s, "workload main");
    PTOWSP_FOR_EACH(s->m, i, (ptowsp_axis){1}) {
        c.depth_at_start = ptowsp_cast(i, PTOWSP_TYPE_U64);
    }
    script_run(s, "pipeline p");
    channel_refused(s, c, bad, no,
                    "main/pipeline p: channel c: its depth at start: variable i belongs to a "
                    "scope that is not around");
}

BUILD_TEST(pipeline_build__the_symbol_of_latencies_is_there_with_a_pipeline) {
    static const script_fault faults[] = {
        FAULT("dynamic __pto_wsp_channel_latency_cycles; workload main; pipeline p",
              "main: symbol __pto_wsp_channel_latency_cycles: the name is already that of an axis"),
        FAULT(GOOD "; axis __pto_wsp_channel_latency_cycles 1",
              "decode: axis __pto_wsp_channel_latency_cycles: the name is already that of a "
              "symbol"),
    };
    EXPECT_FAULTS(s, faults);
    for (int is_used = 0; is_used < 2; is_used++) {  // by an expression of the user's
        script_run(s, "symbol __pto_wsp_channel_latency_cycles; " GOOD "; workload around");
        script_run(s, is_used ? "slot_set 0 symbol:__pto_wsp_channel_latency_cycles; end" : "end");
        ptowsp_program *program = test_program(s->context, s->m, NULL);
        ptowsp_run *run = test_run_of(s->context, program);
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        assert_int_equal(ptowsp_run_execute(run, &options), is_used ? PTOWSP_UNBOUND : PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_symbol(run, PTOWSP_CHANNEL_LATENCY_SYMBOL, 9), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(run, &options), PTOWSP_OK);
        test_destroy(run, program, NULL, NULL);
        script_begin(s);
    }
}

// -- ports ----------------------------------------------------------------------------------------

BUILD_TEST(pipeline_build__a_process_declares_before_its_statements) {
    static const script_fault faults[] = {
        FAULT("consumes #0", "decode: consumes: not directly in a process"),
        FAULT(PIPE "produces a", "main/pipeline p: produces: not directly in a process"),
        FAULT(PUT "combine; produces a",
              "main/pipeline p/process put/combine: produces: not directly in a process"),
        FAULT(PUT "consumes #0", "main/pipeline p/process put: consumes: there is no channel 0"),
        FAULT(PUT "produces #99", "main/pipeline p/process put: produces: there is no channel 99"),
        FAULT(PUT "end 2; pipeline q; process put; consumes a",
              "main/pipeline q/process put: consumes: channel a is of another pipeline, p"),
        FAULT(PUT "produces a; consumes a; produces a",  // both with one channel is fine
              "main/pipeline p/process put: produces: channel a is declared twice"),
        FAULT(PUT "consumes e; consumes e",
              "main/pipeline p/process put: consumes: event e is declared twice"),
        FAULT(PUT "produces a; send a 1; consumes e",
              "main/pipeline p/process put: consumes: event e is declared after a statement; what "
              "a process consumes and produces comes first"),
    };
    EXPECT_FAULTS(s, faults);
}

// The operations on channels: what stands before the channel and after it, and the operation's name.
static const struct {
    const char *before, *after, *name;
    bool is_event, is_consumed;
} operations[] = {
    {"consume t", "", "consume t", false, true},
    {"receive t", "", "receive t", false, true},
    {"wait", "", "wait", true, true},
    {"send", " 1", "send", false, false},
    {"send_task", " work 7", "send_task", false, false},
    {"record", "", "record", true, false},
    {"close", "", "close", false, false},
};

enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void operate(script *s, int which, const char *channel) {
    char calls[200];
    snprintf(calls, sizeof calls, "%s %s%s", operations[which].before, channel,
             operations[which].after);
    script_run(s, calls);
}

BUILD_TEST(pipeline_build__operations_are_on_channels_that_the_process_declares) {
    for (int which = 0; which < OPERATIONS; which++) {
        bool is_consumed = operations[which].is_consumed;
        const char *verb = is_consumed ? "consumes" : "produces";
        const char *other = is_consumed ? "produces" : "consumes";
        const char *own = operations[which].is_event ? "e" : "a";
        const char *called = operations[which].is_event ? "event e" : "channel a";
        char call[200];
        const struct {
            const char *calls, *channel, *where, *what;
        } wrong[] = {
            {"", "#1", "decode", "not in a process"},
            {PIPE, own, "main/pipeline p", "not in a process"},
            {RUN, "#3", "main/pipeline p/process run", "there is no channel 3"},
            {RUN "end 2; pipeline q; channel a; process run",
             operations[which].is_event ? "#2" : "#1", "main/pipeline q/process run",
             "%s is of another pipeline, p"},
            {call, own, "main/pipeline p/process run/for_each i",
             "%s is not one that process run %s; call ptowsp_%s first"},
        };
        snprintf(call, sizeof call, RUN "%s %s; for_each i tiles", other, own);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            char text[300];
            int length =
                snprintf(text, sizeof text, "%s: %s: ", wrong[i].where, operations[which].name);
            snprintf(text + length, sizeof text - (size_t)length, wrong[i].what, called, verb,
                     verb);
            script_run(s, wrong[i].calls);
            operate(s, which, wrong[i].channel);
            refused(s, text);
        }
        snprintf(call, sizeof call, RUN "%s %s", verb, own);
        script_run(s, call);
        operate(s, which, own);
        assert_string_equal(ptowsp_module_error(s->m).text, "");
        script_begin(s);
    }
}

BUILD_TEST(pipeline_build__events_are_recorded_and_channels_are_sent_to) {
    for (int which = 0; which < OPERATIONS - 1; which++) {
        bool is_event = operations[which].is_event;
        char text[200];
        snprintf(text, sizeof text, "main/pipeline p/process run: %s: %s", operations[which].name,
                 is_event ? "a is no event; send to it, or receive from it"
                          : "e is an event; record it, or wait for it");
        script_run(s, RUN);
        operate(s, which, is_event ? "a" : "e");
        refused(s, text);
    }
    runs(s, RUN "produces a; produces e; close a; close e; close e", false);  // both may be closed
}

BUILD_TEST(pipeline_build__tokens_and_their_names) {
    static const script_fault faults[] = {
        FAULT(PIPE "replicate w four run; consumes a; consume w a",
              "main/pipeline p/process run: consume w: a scope around has a variable of this name"),
        FAULT(RUN "consumes a; consume t a; receive t a",
              "main/pipeline p/process run/consume t: receive t: a scope around has a variable of "
              "this name"),
        FAULT(RUN "consumes a; receive '' a",
              "main/pipeline p/process run: the name of this variable " UNPRINTABLE),
        FAULT(RUN "consumes a; produces a; receive t a; end; send a t",
              "main/pipeline p/process run: the token of a send: variable t belongs to a scope "
              "that is not around"),
        FAULT(RUN "produces a; send a true; send a 1u; send a none",  // of any type
              "main/pipeline p/process run: the token of a send is no expression"),
        FAULT(RUN "produces a; send_task a plain",
              "main/pipeline p/process run: send_task: kernel plain has no axis argument that "
              "would be the token; make the task, then send another"),
    };
    EXPECT_FAULTS(s, faults);
    script_run(s, RUN "produces a");
    ptowsp_send_task_make(s->m, (ptowsp_channel){1}, NULL);
    refused(s, "main/pipeline p/process run: task: desc is NULL");
    runs(s, RUN "consumes a; produces a; receive t a", true);
    assert_int_equal(ptowsp_expr_type((ptowsp_expr){s->m, s->last}), PTOWSP_TYPE_I64);
    script_begin(s);
    runs(s, RUN "produces a; send_task a work 7", true);  // main 1, p 2, run 3
    assert_int_equal(s->last, 4);                         // the task's node
}

// -- compiling ------------------------------------------------------------------------------------

BUILD_TEST(pipeline_build__a_good_pipeline_compiles) {
    script_run(s, GOOD);
    compiles(s);
    // Without channels.
    script_run(s, "workload main; pipeline p; process alone; task work 7; end 2; "
                  "pipeline q; process idle; end 3");
    compiles(s);
}

// What the only process of a pipeline does with a channel or an event: declare, use.
BUILD_TEST(pipeline_build__a_channel_has_both_ends) {
    static const char *const uses[2][2] = {{"receive t c; end; ", "send_task c work 7; "},
                                           {"wait c; ", "record c; "}};
    static const struct {
        bool consumes, produces, receives, sends;
        const char *texts[2];
    } cases[] = {
        {false,
         false,
         false,
         false,
         {"channel c: no process consumes it, so that senders would wait for ever",
          "event c: no process consumes it, so that processes that record it would wait for ever"}},
        {false,
         true,
         false,
         true,
         {"channel c: no process consumes it, so that senders would wait for ever",
          "event c: no process consumes it, so that processes that record it would wait for ever"}},
        {true,
         false,
         true,
         false,
         {"channel c: no process produces it, so that receivers would wait for ever",
          "event c: no process produces it, so that processes that wait for it would wait for "
          "ever"}},
        {true,
         true,
         false,
         true,
         {"channel c: no process receives from it, so that senders would wait for ever",
          "event c: no process waits for it, so that processes that record it would wait for "
          "ever"}},
        {true,
         true,
         true,
         false,
         {"channel c: no process sends to it, so that receivers would wait in vain",
          "event c: no process records it, so that processes that wait for it would wait for "
          "ever"}},
        {true, true, true, true, {NULL, NULL}},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        bool is_event = i % 2;
        char calls[300], text[300];
        snprintf(calls, sizeof calls, "workload main; pipeline p; %s c; process run; %s%s%s%send 3",
                 is_event ? "event" : "channel", cases[i / 2].consumes ? "consumes c; " : "",
                 cases[i / 2].produces ? "produces c; " : "",
                 cases[i / 2].receives ? uses[is_event][0] : "",
                 cases[i / 2].sends ? uses[is_event][1] : "");
        script_run(s, calls);
        if (cases[i / 2].texts[0]) {
            snprintf(text, sizeof text, "main/pipeline p: %s", cases[i / 2].texts[is_event]);
            not_compiled(s, PTOWSP_STUCK, text);
        } else {
            compiles(s);
        }
        script_run(s, calls);
        script_run(s, "workload other; end");  // main is not reached
        compiles(s);
    }
}

BUILD_TEST(pipeline_build__pipelines_have_processes) {
    script_run(s, "workload main; pipeline p; channel a; end 2");
    not_compiled(s, PTOWSP_INVALID_PARAMS, "main/pipeline p: it has no processes");
    script_run(s, "workload main; pipeline p; process put");
    not_compiled(s, PTOWSP_INVALID_PARAMS,
                 "main/pipeline p/process put: this scope is still open; was it left by break or "
                 "return?");
}

// A process that calls a workload.
#define CALLER(name, callee)                                                                       \
    "workload " name "; pipeline p; process put; for_each i tiles; call " callee "; end 4; "

BUILD_TEST(pipeline_build__processes_call_no_pipelines) {
    script_run(s, "workload inner; pipeline q; process get; end 3; " CALLER("main", "inner"));
    not_compiled(s, PTOWSP_INVALID_PARAMS,
                 "main/pipeline p/process put/for_each i/call inner: process put calls a workload "
                 "with pipeline q in it, or in what it calls; there are none inside processes");
    script_run(s, CALLER("inner", "leaf") "workload leaf; task work 7; end; "
                                          "workload middle; call leaf; call inner; end; "
                                          // From outside first.
                                          "workload main; call middle; pipeline q; process get; "
                                          "call leaf; call middle; end 3");
    not_compiled(s, PTOWSP_INVALID_PARAMS,
                 "main/pipeline q/process get/call middle: process get calls a workload with "
                 "pipeline p in it, or in what it calls; there are none inside processes");
    script_run(s, CALLER("main", "leaf") "workload leaf; task work 7; end; "
                                         "workload both; call leaf; call main; call main; end");
    compiles(s);
}

BUILD_TEST(pipeline_build__processes_have_a_limit) {
    static const struct {
        int64_t replicas;
        bool has_more;
        const char *text;  // NULL: it compiles
    } cases[] = {
        {PTOWSP_PROCESS_MAX - 1, false, NULL},
        {PTOWSP_PROCESS_MAX - 1, true, "main/pipeline q/process get"},
        {PTOWSP_PROCESS_MAX, false, "main/pipeline q/process some"},
        {INT64_MAX, false, "main/pipeline p/process put"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char calls[300];
        snprintf(calls, sizeof calls,
                 "axis many %lld; workload main; pipeline p; replicate w many put; end 2; "
                 "pipeline q; replicate w tiles some; end; %s end 2",  // one at least
                 (long long)cases[i].replicas, cases[i].has_more ? "process get; end;" : "");
        script_run(s, calls);
        if (cases[i].text) {
            snprintf(calls, sizeof calls,
                     "%s: more than 1048576 processes in the program, each replica counted",
                     cases[i].text);
            not_compiled(s, PTOWSP_LIMIT_EXCEEDED, calls);
        } else {
            compiles(s);
        }
    }
}

BUILD_TEST(pipeline_build__a_module_with_an_error_stays_as_it_is) {
    static const char first[] = "main/pipeline p/process put: the name of this axis " UNPRINTABLE;
    static const char *const later[] = {"consumes e",          "process ''", "replicate w four r",
                                        "pipeline q",          "channel b",  "event d",
                                        "replicate w empty rs"};
    script_run(s, PUT "produces a; axis '' 1");
    assert_string_equal(ptowsp_module_error(s->m).text, first);
    for (int which = 0; which < OPERATIONS; which++) {
        operate(s, which, "a");
    }
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        script_run(s, later[i]);
        assert_int_equal(s->last, 0);
    }
    assert_true(ptowsp_channel_make(s->m, NULL).id == 0);
    ptowsp_pipeline_begin(NULL, "p", NULL, 0);  // as everywhere, no module is a failed one
    ptowsp_process_begin(NULL, "p");
    ptowsp_close_make(NULL, (ptowsp_channel){1});
    refused(s, first);
}
