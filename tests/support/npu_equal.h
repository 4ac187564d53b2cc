// Programs in the library and as emitted trees: both run with the same bindings, and must leave the
// same bytes, slots, number of tasks and makespan, or the same error. A tree is built once and runs
// with few and many cores, AICPU threads and entries in its ring.
//
// Compiling takes nearly all the time, so tests are spread over processes. The environment says
//
//      NPU_EQUAL_COUNT      random programs of each kind
//      NPU_EQUAL_FIRST      the number of the first, to repeat one
//      NPU_EQUAL_JOBS       processes; default: as there are processors
//      NPU_EQUAL_COMPILER   default: as ptowsp_npu_build's
//      NPU_EQUAL_TREES      a directory: trees go there, for others to compile; nothing is run
//
// and what npu_cache.h has. What was built stays if a test has failed.

#ifndef PTOWSP_NPU_EQUAL_H
#define PTOWSP_NPU_EQUAL_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "npu_cache.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NPU_BLOCK_MAX = 12, NPU_SLOT_MAX = 8, NPU_JOB_MAX = 16, NPU_SECONDS_MAX = 300 };

// What has been seen, over all processes.
typedef struct npu_tally {
    uint64_t builds, reused;           // trees that were compiled, and found in the cache
    uint64_t bindings, runs;           // compared; runs of trees
    uint64_t tasks, most_tasks, full;  // of all trees; of one; runs in which the ring was full
    uint64_t errors, refused, skipped;
    uint64_t other_texts;  // errors that say the same in other words
} npu_tally;

typedef struct npu_state {
    char doing[160];  // for messages
    npu_tally tally;
} npu_state;

static npu_state npu_now;

static inline uint64_t npu_number_of(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static inline void npu_doing(const char *what, unsigned long long number) {
    snprintf(npu_now.doing, sizeof npu_now.doing, "%s %llu", what, number);
}

#define NPU_FAIL(...)                                                                              \
    do {                                                                                           \
        print_error("%s: ", npu_now.doing);                                                        \
        print_error(__VA_ARGS__);                                                                  \
        print_error("\n");                                                                         \
        fail();                                                                                    \
    } while (0)

// -- building -------------------------------------------------------------------------------------

static inline ptowsp_status npu_take_nothing(void *user, const char *path, const char *text,
                                             size_t size) {
    (void)path;
    (void)text;
    *(size_t *)user += size;
    return PTOWSP_OK;
}

// A program whose schedule a device does not do is refused, in the words of the check.
static inline void npu_check_refused(ptowsp_context *context, const ptowsp_program *program,
                                     const char *words) {
    char expected[256];
    size_t size = 0;
    snprintf(expected, sizeof expected, "%s", words);
    ptowsp_status status = ptowsp_npu_emit_files(context, program, npu_take_nothing, &size);
    const char *got = ptowsp_context_error(context).text;
    if (status != PTOWSP_UNSUPPORTED || size != 0) {
        NPU_FAIL("emitting gives %s and %zu bytes, though \"%s\"", ptowsp_status_name(status), size,
                 expected);
    }
    const char *detail = strstr(expected, ": ");
    if (!strstr(got, detail ? detail + 2 : expected)) {
        NPU_FAIL("refused as \"%s\", not as \"%s\"", got, expected);
    }
    npu_now.tally.refused++;
}

// Builds the tree, or writes it where it is wanted and returns NULL.
static inline ptowsp_npu *npu_tree_build(ptowsp_context *context, const ptowsp_program *program) {
    const char *trees = getenv("NPU_EQUAL_TREES");
    if (trees && *trees) {
        char path[512];
        size_t at = (size_t)snprintf(path, sizeof path, "%s/", trees);
        snprintf(path + at, sizeof path - at, "%s", npu_now.doing);
        for (char *c = path + at; *c; c++) {
            *c = *c == ' ' || *c == ',' || *c == '/' ? '_' : *c;
        }
        const ptowsp_npu_desc desc = {path, true, true, PTOWSP_NPU_OWN, 0, 0, NULL};
        if (ptowsp_npu_emit(context, program, &desc) != PTOWSP_OK) {
            NPU_FAIL("emit: %s", ptowsp_context_error(context).text);
        }
        return NULL;
    }
    const ptowsp_npu_build_desc desc = {npu_cache, getenv("NPU_EQUAL_COMPILER"),
                                        npu_cache_options()};
    ptowsp_npu *npu = NULL;
    if (ptowsp_npu_build(context, program, &desc, &npu) != PTOWSP_OK) {
        NPU_FAIL("build: %s", ptowsp_context_error(context).text);
    }
    npu_now.tally.reused += ptowsp_npu_was_cached(npu);
    npu_now.tally.builds += !ptowsp_npu_was_cached(npu);
    return npu;
}

// -- comparing ------------------------------------------------------------------------------------

typedef struct npu_block {
    void *data;
    size_t size;
    void *before, *after;
} npu_block;

// A run with all that is bound to it.
typedef struct npu_subject {
    ptowsp_context *context;
    ptowsp_run *run;
    ptowsp_npu *npu;
    ptowsp_model model;
    npu_block blocks[NPU_BLOCK_MAX];  // memory of tensors
    uint32_t block_count, slot_count;
    uint64_t random;  // which numbers of cores and threads are tried
    void (*explain)(void *user);
    void *user;
    // What the library did.
    ptowsp_status status;
    ptowsp_error error;
    char error_text[512];
    ptowsp_cycles makespan;
    uint64_t task_count, slots[NPU_SLOT_MAX];
} npu_subject;

static inline void npu_block_add(npu_subject *s, void *data, size_t size) {
    assert_true(s->block_count < NPU_BLOCK_MAX);
    npu_block block = {data, size, NULL, NULL};
    s->blocks[s->block_count++] = block;
}

static inline void *npu_copy(const void *data, size_t size) {
    void *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

static inline void npu_complain(const npu_subject *s, const ptowsp_npu_options *options,
                                const char *what, uint64_t got, uint64_t expected) {
    if (s->explain) {
        s->explain(s->user);
    }
    print_error("tree: %s\n", ptowsp_npu_directory(s->npu));
    NPU_FAIL("%s is %llu, not %llu, with %u AICPU threads, %u cores, a ring of %u; library: %s; "
             "last error: %s",
             what, (unsigned long long)got, (unsigned long long)expected, options->aicpu_count,
             options->core_count, options->ring_size, ptowsp_status_name(s->status),
             ptowsp_context_error(s->context).text);
}

// Runs in the library, and keeps what memory was like and has become.
static inline void npu_run_library(npu_subject *s) {
    ptowsp_run_options options = {.cost.model = s->model};
    for (uint32_t i = 0; i < s->block_count; i++) {
        s->blocks[i].before = npu_copy(s->blocks[i].data, s->blocks[i].size);
    }
    s->status = ptowsp_run_execute(s->run, &options);
    if (s->status != PTOWSP_OK) {
        s->error = ptowsp_context_error(s->context);
        snprintf(s->error_text, sizeof s->error_text, "%s", s->error.text);
    }
    s->makespan = ptowsp_run_result(s->run)->makespan_cycles;
    s->task_count = ptowsp_run_result(s->run)->task_count;
    for (uint32_t i = 0; i < s->slot_count; i++) {
        s->slots[i] = ptowsp_run_slot(s->run, i);
    }
    for (uint32_t i = 0; i < s->block_count; i++) {
        s->blocks[i].after = npu_copy(s->blocks[i].data, s->blocks[i].size);
    }
}

// Whether a text is another one without the variables at a place: "(b = 1, k = 0)".
static inline bool npu_says_the_same(const char *got, const char *expected) {
    while (*got || *expected) {
        size_t length = strncmp(expected, " (", 2) == 0 ? strcspn(expected, ")") : 0;
        if (*got == *expected && (length == 0 || strncmp(got, " (", 2) == 0)) {
            got++;
            expected++;
        } else if (length > 0 && memchr(expected, '=', length)) {
            expected += length + 1;
        } else {
            return false;
        }
    }
    return true;
}

static inline void npu_compare_error(const npu_subject *s, const ptowsp_npu_options *options) {
    ptowsp_error error = ptowsp_context_error(s->context);
    npu_now.tally.errors++;
    if (error.status != s->status || error.index != s->error.index) {
        print_error("the library said: %s\n", s->error_text);
        npu_complain(s, options, "the error's index", error.index, s->error.index);
    }
    if (!npu_says_the_same(error.text, s->error_text) && npu_now.tally.other_texts++ < 3) {
        print_message("%s: the library says \"%s\", the tree \"%s\"\n", npu_now.doing,
                      s->error_text, error.text);
    }
}

static inline void npu_compare(const npu_subject *s, const ptowsp_npu_options *options,
                               const uint64_t *slots, const ptowsp_npu_result *result) {
    if (result->task_count != s->task_count) {
        npu_complain(s, options, "the number of tasks", result->task_count, s->task_count);
    }
    for (uint32_t i = 0; i < s->block_count; i++) {
        const unsigned char *got = (const unsigned char *)s->blocks[i].data;
        const unsigned char *expected = (const unsigned char *)s->blocks[i].after;
        for (size_t k = 0; k < s->blocks[i].size; k++) {
            if (got[k] != expected[k]) {
                print_error("block %u, byte %zu: %u\n", (unsigned)i, k, (unsigned)got[k]);
                npu_complain(s, options, "a byte", got[k], expected[k]);
            }
        }
    }
    for (uint32_t i = 0; i < s->slot_count; i++) {
        if (slots[i] != s->slots[i]) {
            print_error("slot %u\n", (unsigned)i);
            npu_complain(s, options, "a slot", slots[i], s->slots[i]);
        }
    }
    if (result->makespan_cycles != s->makespan) {
        npu_complain(s, options, "the makespan", result->makespan_cycles, s->makespan);
    }
    if (options->ring_size && result->in_flight_max > options->ring_size) {
        npu_complain(s, options, "tasks in the ring", result->in_flight_max, options->ring_size);
    }
    npu_now.tally.runs++;
    npu_now.tally.full += result->in_flight_max == options->ring_size;
    npu_now.tally.tasks += result->task_count;
    if (result->task_count > npu_now.tally.most_tasks) {
        npu_now.tally.most_tasks = result->task_count;
    }
}

static inline void npu_run_tree(npu_subject *s, const ptowsp_npu_options *options) {
    uint64_t slots[NPU_SLOT_MAX];
    ptowsp_npu_result result;
    memset(slots, 0x5a, sizeof slots);
    memset(&result, 0x5a, sizeof result);
    for (uint32_t i = 0; i < s->block_count; i++) {
        if (s->blocks[i].size > 0) {
            memcpy(s->blocks[i].data, s->blocks[i].before, s->blocks[i].size);
        }
    }
    ptowsp_status status =
        ptowsp_npu_execute(s->npu, s->run, options, slots, s->slot_count, &result);
    if (status != s->status) {
        print_error("%s: %s\n", ptowsp_status_name(status), ptowsp_context_error(s->context).text);
        npu_complain(s, options, "the status", (uint64_t)status, (uint64_t)s->status);
    }
    if (status != PTOWSP_OK) {
        npu_compare_error(s, options);
        return;
    }
    npu_compare(s, options, slots, &result);
}

// Runs in the library and then the tree with different options. Memory is then as both have left
// it, unless they have failed.
static inline void npu_subject_check(npu_subject *s) {
    static const uint32_t rings[] = {1, 2, 7, 3, 16, 0, 9};
    npu_run_library(s);
    for (uint32_t i = 0; i < 7; i++) {
        ptowsp_npu_options options = {
            .aicpu_count = i < 4 ? i + 1 : (uint32_t)test_random_in(&s->random, 1, 4)};
        options.core_count = i < 3 ? i + 1 : (uint32_t)test_random_in(&s->random, 0, 3);
        options.ring_size = rings[i];
        options.cost.model = s->model;
        options.aicpu_count = i == 5 ? 0 : i == 6 ? 1 : options.aicpu_count;
        options.driver = i == 6 ? PTOWSP_DRIVER_HOST : PTOWSP_DRIVER_AICPU;
        npu_run_tree(s, &options);
    }
    npu_now.tally.bindings++;
    for (uint32_t i = 0; i < s->block_count; i++) {
        free(s->blocks[i].before);
        free(s->blocks[i].after);
    }
}

// -- processes ------------------------------------------------------------------------------------

static inline void npu_took_too_long(int number) {
    static const char words[] = ": it does not end\n";
    (void)number;
    (void)!write(2, npu_now.doing, strlen(npu_now.doing));
    (void)!write(2, words, sizeof words - 1);
    _exit(3);
}

static inline int npu_setup(void **state) {
    (void)state;
    alarm(NPU_SECONDS_MAX);
    return 0;
}

static inline uint32_t npu_job_count(void) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = npu_number_of("NPU_EQUAL_JOBS", processors > 1 ? (uint64_t)processors : 1);
    return (uint32_t)(count < 1 ? 1 : count > NPU_JOB_MAX ? NPU_JOB_MAX : count);
}

// In a process of its own: every count-th of the tests.
static inline int npu_job(const char *name, const struct CMUnitTest *tests, size_t test_count,
                          uint32_t job, uint32_t job_count, int out) {
    static struct CMUnitTest mine[4096];
    size_t count = 0;
    struct sigaction action = {.sa_handler = npu_took_too_long};
    sigaction(SIGALRM, &action, NULL);
    for (size_t i = job; i < test_count && count < 4096; i += job_count) {
        mine[count] = tests[i];
        mine[count].setup_func = npu_setup;
        mine[count++].teardown_func = NULL;
    }
    int failed = count ? _cmocka_run_group_tests(name, mine, count, NULL, NULL) : 0;
    bool is_told = write(out, &npu_now.tally, sizeof npu_now.tally) == sizeof npu_now.tally;
    return failed || !is_told;
}

static inline void npu_tally_add(npu_tally *all, const npu_tally *one) {
    uint64_t most = all->most_tasks > one->most_tasks ? all->most_tasks : one->most_tasks;
    uint64_t *a = (uint64_t *)all;
    const uint64_t *b = (const uint64_t *)one;
    for (size_t i = 0; i < sizeof *all / sizeof *a; i++) {
        a[i] += b[i];
    }
    all->most_tasks = most;
}

// Runs the tests in several processes; returns how many of those have failed. What they have seen
// is then in npu_now.tally.
static inline int npu_run_tests(const char *name, const struct CMUnitTest *tests, size_t count) {
    if (npu_cache_begin(NULL) != 0) {
        return 1;
    }
    uint32_t job_count = npu_job_count();
    int failed = 0, outs[NPU_JOB_MAX][2];
    pid_t processes[NPU_JOB_MAX];
    fflush(stdout);
    fflush(stderr);
    for (uint32_t j = 0; j < job_count; j++) {
        assert_int_equal(pipe(outs[j]), 0);
        processes[j] = fork();
        assert_true(processes[j] >= 0);
        if (processes[j] == 0) {
            int status = npu_job(name, tests, count, j, job_count, outs[j][1]);
            fflush(stdout);
            fflush(stderr);
            test_exit(status != 0);
        }
        close(outs[j][1]);
    }
    for (uint32_t j = 0; j < job_count; j++) {
        npu_tally tally;
        int status = 0;
        if (read(outs[j][0], &tally, sizeof tally) == (ssize_t)sizeof tally) {
            npu_tally_add(&npu_now.tally, &tally);
        }
        close(outs[j][0]);
        waitpid(processes[j], &status, 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    const npu_tally *t = &npu_now.tally;
    print_message("%s: %llu trees built, %llu found; %llu bindings, %llu runs of trees, %llu of "
                  "them with a full ring; %llu tasks, at most %llu; %llu errors alike (%llu in "
                  "other words); %llu refused, %llu skipped\n",
                  name, (unsigned long long)t->builds, (unsigned long long)t->reused,
                  (unsigned long long)t->bindings, (unsigned long long)t->runs,
                  (unsigned long long)t->full, (unsigned long long)t->tasks,
                  (unsigned long long)t->most_tasks, (unsigned long long)t->errors,
                  (unsigned long long)t->other_texts, (unsigned long long)t->refused,
                  (unsigned long long)t->skipped);
    if (failed == 0) {
        npu_cache_end(NULL);
    } else {
        print_message("what was built is in %s\n", npu_cache);
    }
    return failed;
}

#endif
