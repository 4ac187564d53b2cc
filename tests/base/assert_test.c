// Broken preconditions of the interface are assertions, where breaking them would otherwise show up
// later and somewhere else. Each is broken in a process of its own.

#include "test.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*breaking)(ptowsp_context *context);

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

static void some_module(ptowsp_context *context, ptowsp_module **out_module) {
    if (ptowsp_module_create(context, NULL, out_module) != PTOWSP_OK) {
        _exit(1);
    }
}

static void destroys_the_context_first(ptowsp_context *context) {
    ptowsp_module *module;
    some_module(context, &module);
    ptowsp_context_destroy(context);
}

static void destroys_the_context_between(ptowsp_context *context) {
    ptowsp_module *first, *second;
    some_module(context, &first);
    some_module(context, &second);
    ptowsp_module_destroy(first);
    ptowsp_context_destroy(context);
}

static void destroys_the_context_last(ptowsp_context *context) {
    const ptowsp_module_desc bad = {"\n", 0};
    ptowsp_module *first, *second;
    some_module(context, &first);
    ptowsp_module_create(context, &bad, &second);  // refused: it does not count
    ptowsp_module_destroy(first);
    ptowsp_module_destroy(NULL);
    ptowsp_context_destroy(context);
}

// A program with one task, whose kernel needs nothing.
static ptowsp_program *some_program(ptowsp_context *context) {
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_kernel_desc kernel = {0};
    ptowsp_task_desc task = {0};
    some_module(context, &module);
    kernel.name = "k";
    kernel.cycles = 1;
    task.kernel = ptowsp_kernel_make(module, &kernel);
    PTOWSP_WORKLOAD(module, "w") {
        ptowsp_task_make(module, &task);
    }
    if (ptowsp_program_create(context, module, NULL, &program) != PTOWSP_OK) {
        _exit(1);
    }
    ptowsp_module_destroy(module);
    return program;
}

static ptowsp_run *some_run(ptowsp_context *context, const ptowsp_program *program) {
    ptowsp_run *run;
    if (ptowsp_run_create(context, program, &run) != PTOWSP_OK) {
        _exit(1);
    }
    return run;
}

static void leaves_a_program(ptowsp_context *context) {
    some_program(context);
    ptowsp_context_destroy(context);
}

// The program is of another context, which is there still.
static void leaves_a_run(ptowsp_context *context) {
    ptowsp_context *other;
    if (ptowsp_context_create(NULL, &other) != PTOWSP_OK) {
        _exit(1);
    }
    some_run(other, some_program(context));
    ptowsp_context_destroy(other);
}

static void leaves_a_graph(ptowsp_context *context) {
    ptowsp_graph *graph;
    if (ptowsp_graph_create(context, NULL, &graph) != PTOWSP_OK) {
        _exit(1);
    }
    ptowsp_context_destroy(context);
}

static void leaves_a_device(ptowsp_context *context) {
    ptowsp_device *device;
    if (ptowsp_device_open(context, NULL, &device) != PTOWSP_OK) {
        _exit(1);
    }
    ptowsp_context_destroy(context);
}

static void leaves_descriptors(ptowsp_context *context) {
    ptowsp_work *work;
    if (ptowsp_work_create(context, 1, &work) != PTOWSP_OK) {
        _exit(1);
    }
    ptowsp_context_destroy(context);
}

static void destroys_a_program_before_its_run(ptowsp_context *context) {
    ptowsp_program *program = some_program(context);
    some_run(context, program);
    ptowsp_program_destroy(program);
}

static void destroys_all_in_order(ptowsp_context *context) {
    ptowsp_program *program = some_program(context);
    ptowsp_run *first = some_run(context, program), *second = some_run(context, program);
    ptowsp_graph *graph;
    ptowsp_device *device;
    ptowsp_work *work;
    if (ptowsp_graph_create(context, NULL, &graph) != PTOWSP_OK ||
        ptowsp_device_open(context, NULL, &device) != PTOWSP_OK ||
        ptowsp_work_create(context, 1, &work) != PTOWSP_OK) {
        _exit(1);
    }
    ptowsp_run_destroy(first);
    ptowsp_work_destroy(context, work);
    ptowsp_run_destroy(second);
    ptowsp_graph_destroy(graph);
    ptowsp_program_destroy(program);
    if (ptowsp_device_close(device) != PTOWSP_OK) {
        _exit(1);
    }
    ptowsp_context_destroy(context);
}

static const ptowsp_partial whole_state = {0.0f, 1.0f};

static void merges_no_numbers(ptowsp_context *context) {
    ptowsp_partial state;
    (void)context;
    // Without numbers there is nothing to point at.
    ptowsp_merge_clear(&state, NULL, 0);
    ptowsp_merge_add(&state, NULL, &whole_state, NULL, 0);
    ptowsp_merge_add(&state, NULL, &whole_state, NULL, 0);
    if (ptowsp_merge_finish(&state, NULL, 0, NULL) <= 0.69f ||
        ptowsp_merge_partials(&whole_state, NULL, 1, 1, 0, NULL) != 0.0f ||
        ptowsp_merge_partials(NULL, NULL, 0, 0, 0, NULL) != -INFINITY) {
        abort();
    }
}

static void merges_parts_without_numbers(ptowsp_context *context) {
    float out[1];
    (void)context;
    ptowsp_merge_partials(&whole_state, NULL, 1, 1, 1, out);
}

static void merges_into_nothing(ptowsp_context *context) {
    const float acc[1] = {1};
    (void)context;
    ptowsp_merge_partials(&whole_state, acc, 1, 1, 1, NULL);
}

static void merges_no_states(ptowsp_context *context) {
    (void)context;
    ptowsp_merge_partials(NULL, NULL, 1, 1, 0, NULL);
}

static void adds_a_part_without_numbers(ptowsp_context *context) {
    ptowsp_partial state = whole_state;
    float acc[1] = {1};
    (void)context;
    ptowsp_merge_add(&state, acc, &whole_state, NULL, 1);
}

static void finishes_into_nothing(ptowsp_context *context) {
    const float acc[1] = {1};
    (void)context;
    ptowsp_merge_finish(&whole_state, acc, 1, NULL);
}

static void prints_into_a_buffer_without_data(ptowsp_context *context) {
    ptowsp_output_buffer buffer = {NULL, 8, 0};
    (void)context;
    ptowsp_output_to_buffer(&buffer);
}

static void prints_into_nothing(ptowsp_context *context) {
    const ptowsp_output nothing = {NULL, NULL};
    (void)context;
    ptowsp_capability_print(nothing);
}

static void explains_into_nothing(ptowsp_context *context) {
    const ptowsp_output nothing = {NULL, NULL};
    (void)context;
    ptowsp_plan_info info = {0};
    ptowsp_plan_explain(&info, nothing);
}

// A job without units, for as many workers as there may be.
static void runs_worker(uint32_t worker, uint32_t worker_count) {
    static uint32_t unit_begin[2], progress[256];
    ptowsp_attention_job job = {0};
    ptowsp_attention_plan plan = {.lane_count = 1, .unit_begin = unit_begin};
    job.plan = &plan;
    job.progress = progress;
    if (ptowsp_attention_progress_size(&plan) > 256 ||
        ptowsp_attention_job_check(&job, NULL) != PTOWSP_OK) {
        _exit(1);
    }
    ptowsp_attention_run_worker(&job, worker, worker_count);
}

static void runs_the_last_worker(ptowsp_context *context) {
    (void)context;
    runs_worker(2, 3);
}

static void runs_a_worker_behind_the_last(ptowsp_context *context) {
    (void)context;
    runs_worker(3, 3);
}

static void runs_a_worker_of_none(ptowsp_context *context) {
    (void)context;
    runs_worker(0, 0);
}

#if defined(NDEBUG)
enum { HAS_ASSERTIONS = 0 };
#else
enum { HAS_ASSERTIONS = 1 };
#endif

TEST(assert__a_context_is_destroyed_after_its_modules) {
    assert_false(is_aborted(destroys_the_context_last));
    if (HAS_ASSERTIONS) {
        assert_true(is_aborted(destroys_the_context_first));
        assert_true(is_aborted(destroys_the_context_between));
    }
}

TEST(assert__a_context_is_destroyed_after_all_that_was_made_from_it) {
    const breaking faults[] = {leaves_a_program,   leaves_a_run,
                               leaves_a_graph,     leaves_a_device,
                               leaves_descriptors, destroys_a_program_before_its_run};
    ptowsp_context *context = test_context(NULL);
    destroys_all_in_order(context);
    for (size_t i = 0; HAS_ASSERTIONS && i < COUNT_OF(faults); i++) {
        if (!is_aborted(faults[i])) {
            fail_msg("fault %zu is not found", i);
        }
    }
}

TEST(assert__merging_without_memory_does_nothing) {
    const breaking faults[] = {merges_parts_without_numbers, merges_into_nothing, merges_no_states,
                               adds_a_part_without_numbers, finishes_into_nothing};
    assert_false(is_aborted(merges_no_numbers));
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        if (is_aborted(faults[i])) {
            fail_msg("fault %zu aborts", i);
        }
    }
}

TEST(assert__a_text_sink_without_a_function_drops_text) {
    assert_false(is_aborted(prints_into_nothing));
    assert_false(is_aborted(explains_into_nothing));
    assert_false(is_aborted(prints_into_a_buffer_without_data));
}

TEST(assert__a_worker_is_one_of_its_count) {
    assert_false(is_aborted(runs_the_last_worker));
    if (HAS_ASSERTIONS) {
        assert_true(is_aborted(runs_a_worker_behind_the_last));
        assert_true(is_aborted(runs_a_worker_of_none));
    }
}
