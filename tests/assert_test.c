// Broken preconditions of the interface are assertions, where breaking them would otherwise show up
// later and somewhere else. Each is broken in a process of its own.

#include "test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*breaking)(ptowsp_context *context);

// Runs a function in a child, and says whether that was aborted.
static bool is_aborted(breaking breaks) {
    ptowsp_context *context;
    assert_int_equal(ptowsp_context_create(NULL, &context), PTOWSP_OK);
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

static void prints_into_nothing(ptowsp_context *context) {
    const ptowsp_text nothing = {NULL, NULL};
    (void)context;
    ptowsp_capability_print(nothing);
}

static void explains_into_nothing(ptowsp_context *context) {
    const ptowsp_text nothing = {NULL, NULL};
    ptowsp_plan_info info;
    (void)context;
    memset(&info, 0, sizeof info);
    ptowsp_plan_explain(&info, nothing);
}

// A job without units, for as many workers as there may be.
static void runs_worker(uint32_t worker, uint32_t worker_count) {
    static uint32_t unit_begin[2], progress[256];
    ptowsp_attention_plan plan;
    ptowsp_attention_job job;
    memset(&plan, 0, sizeof plan);
    memset(&job, 0, sizeof job);
    plan.lane_count = 1;
    plan.unit_begin = unit_begin;
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

static void assert__a_context_is_destroyed_after_its_modules(void **state) {
    (void)state;
    assert_false(is_aborted(destroys_the_context_last));
    if (HAS_ASSERTIONS) {
        assert_true(is_aborted(destroys_the_context_first));
        assert_true(is_aborted(destroys_the_context_between));
    }
}

static void assert__a_text_sink_has_a_function(void **state) {
    (void)state;
    if (HAS_ASSERTIONS) {
        assert_true(is_aborted(prints_into_nothing));
        assert_true(is_aborted(explains_into_nothing));
    }
}

static void assert__a_worker_is_one_of_its_count(void **state) {
    (void)state;
    assert_false(is_aborted(runs_the_last_worker));
    if (HAS_ASSERTIONS) {
        assert_true(is_aborted(runs_a_worker_behind_the_last));
        assert_true(is_aborted(runs_a_worker_of_none));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(assert__a_context_is_destroyed_after_its_modules),
        cmocka_unit_test(assert__a_text_sink_has_a_function),
        cmocka_unit_test(assert__a_worker_is_one_of_its_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
