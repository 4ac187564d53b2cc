// What building a pipeline refuses that no script can say (tests/cases/pipelines_built.case has the others):
// descriptions and lists that are NULL, names of several lines; and the symbol of latencies, bound.

#include "build_script.h"

static const char prelude[] = "module decode slots 4\n"
                              "axis tiles dynamic\n"
                              "axis four 4\n"
                              "kernel work(axes 1) vector, 1 cycles, time only\n";

#define BUILD_TEST(name) TEST_MADE(name, script, s, script_make(s, prelude), script_free(s))

#define PIPE "workload main; pipeline p; channel a; event e; "

BUILD_TEST(pipeline_build__null_is_refused) {
    script_run(s, "workload main");
    ptowsp_pipeline_begin(s->m, "p", NULL, 1);
    refused(s, "main: pipeline p: after 1 nodes, which are NULL");
    script_run(s, PIPE);
    ptowsp_channel_make(s->m, NULL);
    refused(s, "main/pipeline p: channel: desc is NULL");
    script_run(s, PIPE "process run; produces a");
    ptowsp_send_task_make(s->m, (ptowsp_channel){1}, NULL);
    refused(s, "main/pipeline p/process run: task: desc is NULL");
    script_run(s, PIPE "replicate w four '\n'");
    assert_true(ptowsp_channel_make(s->m, NULL).id == 0);
    ptowsp_pipeline_begin(NULL, "p", NULL, 0);  // as everywhere, no module is a failed one
    ptowsp_process_begin(NULL, "p");
    ptowsp_close_make(NULL, (ptowsp_channel){1});
    refused(s, "main/pipeline p: the name of this process is not 1 to 63 printable ASCII "
               "characters without quotes and backslash");
}

BUILD_TEST(pipeline_build__the_symbol_of_latencies_is_bound_where_it_is_used) {
    for (int is_used = 0; is_used < 2; is_used++) {  // by an expression of the user's
        script_run(s, "symbol __pto_wsp_channel_latency_cycles; " PIPE
                      "process put; produces a; consumes e; send a 1; wait e; end; "
                      "process get; consumes a; produces e; consume t a; end; record e; end 3; "
                      "workload around");
        script_run(s, is_used ? "slot_set 0 symbol:__pto_wsp_channel_latency_cycles; end" : "end");
        ptowsp_program *program = test_program(s->context, s->m, NULL);
        ptowsp_run *run = test_run_of(s->context, program);
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        assert_int_equal(ptowsp_run_execute(run, &options), is_used ? PTOWSP_UNBOUND : PTOWSP_OK);
        assert_ok(ptowsp_run_bind_symbol(run, PTOWSP_CHANNEL_LATENCY_SYMBOL, 9));
        assert_ok(ptowsp_run_execute(run, &options));
        test_destroy(run, program, NULL, NULL);
        script_begin(s);
    }
}
