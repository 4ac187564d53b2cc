// Broken preconditions of the interface are assertions, where breaking them would otherwise show up
// later and somewhere else. Each is broken in a process of its own.

#include "test.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(NDEBUG)
enum { FOUND = false };
#else
enum { FOUND = true };
#endif

typedef void (*breaking)(ptowsp_context *context);

// Contexts are destroyed after all that was made from them, programs after their runs; a worker is
// one of its count. What breaks that is FOUND.
#define BREAKS(name, aborts)                                                                       \
    static void name(ptowsp_context *context);                                                     \
    TEST(assert__##name) {                                                                         \
        assert_int_equal(is_aborted(name), aborts);                                                \
    }                                                                                              \
    static void name(__attribute__((unused)) ptowsp_context *context)

static void must(ptowsp_status status) {
    if (status != PTOWSP_OK) {
        _exit(1);
    }
}

// Runs a function in a child, and says whether that was aborted.
static bool is_aborted(breaking breaks) {
    ptowsp_context *context = test_context(NULL);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);  // cmocka's handler would take the child for a test
        signal(SIGSEGV, SIG_DFL);
        close(STDERR_FILENO);  // what the assertion says
        breaks(context);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    ptowsp_context_destroy(context);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

BREAKS(destroys_the_context_first, FOUND) {
    ptowsp_module *module;
    must(ptowsp_module_create(context, NULL, &module));
    ptowsp_context_destroy(context);
}

BREAKS(destroys_the_context_between, FOUND) {
    ptowsp_module *first, *second;
    must(ptowsp_module_create(context, NULL, &first));
    must(ptowsp_module_create(context, NULL, &second));
    ptowsp_module_destroy(first);
    ptowsp_context_destroy(context);
}

BREAKS(destroys_the_context_last, false) {
    const ptowsp_module_desc bad = {"\n", 0};
    ptowsp_module *first, *second;
    must(ptowsp_module_create(context, NULL, &first));
    ptowsp_module_create(context, &bad, &second);  // refused: it does not count
    ptowsp_module_destroy(first);
    ptowsp_module_destroy(NULL);
    ptowsp_context_destroy(context);
}

// A program with one task, whose kernel needs nothing.
static ptowsp_program *some_program(ptowsp_context *context) {
    static const char text[] =
        "module m\nkernel k(axes 0) vector, 1 cycles, time only\nworkload w\n  task k()\n";
    ptowsp_module *module;
    ptowsp_program *program;
    must(ptowsp_module_parse(context, text, strlen(text), NULL, &module, NULL));
    must(ptowsp_program_create(context, module, NULL, &program));
    ptowsp_module_destroy(module);
    return program;
}

static ptowsp_run *some_run(ptowsp_context *context, const ptowsp_program *program) {
    ptowsp_run *run;
    must(ptowsp_run_create(context, program, &run));
    return run;
}

BREAKS(leaves_a_program, FOUND) {
    some_program(context);
    ptowsp_context_destroy(context);
}

// The program is of another context, which is there still.
BREAKS(leaves_a_run, FOUND) {
    ptowsp_context *other;
    must(ptowsp_context_create(NULL, &other));
    some_run(other, some_program(context));
    ptowsp_context_destroy(other);
}

BREAKS(leaves_a_graph, FOUND) {
    ptowsp_graph *graph;
    must(ptowsp_graph_create(context, NULL, &graph));
    ptowsp_context_destroy(context);
}

BREAKS(leaves_a_device, FOUND) {
    ptowsp_device *device;
    must(ptowsp_device_open(context, NULL, &device));
    ptowsp_context_destroy(context);
}

BREAKS(leaves_descriptors, FOUND) {
    ptowsp_work *work;
    must(ptowsp_work_create(context, 1, &work));
    ptowsp_context_destroy(context);
}

BREAKS(destroys_a_program_before_its_run, FOUND) {
    ptowsp_program *program = some_program(context);
    some_run(context, program);
    ptowsp_program_destroy(program);
}

BREAKS(destroys_all_in_order, false) {
    ptowsp_program *program = some_program(context);
    ptowsp_run *first = some_run(context, program), *second = some_run(context, program);
    ptowsp_graph *graph;
    ptowsp_device *device;
    ptowsp_work *work;
    must(ptowsp_graph_create(context, NULL, &graph));
    must(ptowsp_device_open(context, NULL, &device));
    must(ptowsp_work_create(context, 1, &work));
    ptowsp_run_destroy(first);
    ptowsp_work_destroy(context, work);
    ptowsp_run_destroy(second);
    ptowsp_graph_destroy(graph);
    ptowsp_program_destroy(program);
    must(ptowsp_device_close(device));
    ptowsp_context_destroy(context);
}

static const ptowsp_partial whole_state = {0.0f, 1.0f};

// What has no memory, or no function, does nothing.
BREAKS(merges_and_prints_without_memory, false) {
    const float numbers[1] = {1};
    float out[1];
    ptowsp_partial state = whole_state;
    // Without numbers there is nothing to point at.
    ptowsp_merge_clear(&state, NULL, 0);
    ptowsp_merge_add(&state, NULL, &whole_state, NULL, 0);
    ptowsp_merge_add(&state, NULL, &whole_state, NULL, 0);
    if (ptowsp_merge_finish(&state, NULL, 0, NULL) <= 0.69f ||
        ptowsp_merge_partials(&whole_state, NULL, 1, 1, 0, NULL) != 0.0f ||
        ptowsp_merge_partials(NULL, NULL, 0, 0, 0, NULL) != -INFINITY) {
        abort();
    }
    ptowsp_merge_partials(&whole_state, NULL, 1, 1, 1, out);
    ptowsp_merge_partials(&whole_state, numbers, 1, 1, 1, NULL);
    ptowsp_merge_partials(NULL, NULL, 1, 1, 0, NULL);
    ptowsp_merge_add(&state, out, &whole_state, NULL, 1);
    ptowsp_merge_finish(&whole_state, numbers, 1, NULL);
    ptowsp_output_buffer buffer = {NULL, 8, 0};
    const ptowsp_output nothing = {NULL, NULL};
    const ptowsp_plan_info info = {0};
    ptowsp_output_to_buffer(&buffer);
    ptowsp_capability_print(nothing);
    ptowsp_plan_explain(&info, nothing);
}

// A job without units, for as many workers as there may be.
static void runs_worker(uint32_t worker, uint32_t worker_count) {
    static uint32_t unit_begin[2], progress[256];
    const ptowsp_attention_plan plan = {.lane_count = 1, .unit_begin = unit_begin};
    const ptowsp_attention_job job = {.plan = &plan, .progress = progress};
    must(ptowsp_attention_job_check(&job, NULL));
    if (ptowsp_attention_progress_size(&plan) > COUNT_OF(progress)) {
        _exit(1);
    }
    ptowsp_attention_run_worker(&job, worker, worker_count);
}

BREAKS(runs_the_last_worker, false) {
    runs_worker(2, 3);
}

BREAKS(runs_a_worker_behind_the_last, FOUND) {
    runs_worker(3, 3);
}

BREAKS(runs_a_worker_of_none, FOUND) {
    runs_worker(0, 0);
}
