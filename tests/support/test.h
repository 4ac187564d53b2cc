// Shared by all test files: the library, cmocka, seeded random numbers, and allocators that count
// and refuse.
//
// Tests are linked to an archive of the files of src/, compiled one by one. A test of private
// functions (pwsp_...) includes the header of their room; one that needs the statics of a file, or
// a hook in it, includes that file.

#ifndef PTOWSP_TEST_H
#define PTOWSP_TEST_H

#include "ptowsp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/suite.h"

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#if defined(PTOWSP_COVERAGE)
int __llvm_profile_write_file(void);
#endif
#ifdef __cplusplus
}
#endif

// Ends a process that a test has forked, and keeps what coverage has counted in it.
static inline void test_exit(int status) {
#if defined(PTOWSP_COVERAGE)
    __llvm_profile_write_file();
#endif
    _exit(status);
}

// The seed of all property tests: PTOWSP_SEED from the environment, else a fixed one. Printed, so
// that a failure can be repeated.
static inline uint64_t test_seed(void) {
    const char *text = getenv("PTOWSP_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20261121;
    print_message("seed %llu (set PTOWSP_SEED to change it)\n", (unsigned long long)seed);
    return seed;
}

// A call that must succeed, and one of wrong arguments.
#define assert_ok(call)      assert_int_equal(call, PTOWSP_OK)
#define assert_invalid(call) assert_int_equal(call, PTOWSP_INVALID_PARAMS)

// Rounds of random tests: PTOWSP_SCALE from the environment is a percentage of those in the source,
// which are what every change passes. A release passes 300.
static inline uint64_t test_percent(void) {
    static uint64_t percent;
    if (!percent) {
        const char *text = getenv("PTOWSP_SCALE");
        uint64_t given = text ? strtoull(text, NULL, 10) : 100;
        percent = given ? given : 1;
    }
    return percent;
}

static inline uint64_t test_rounds(uint64_t count) {
    uint64_t rounds = count * test_percent() / 100;
    return rounds ? rounds : 1;
}

#define TEST_ROUNDS(i, count) ((i) < (__typeof__(i))test_rounds(count))

// How many of `count` cases that are alike and slow: a third, and all of them at a scale of 300.
static inline uint64_t test_share(uint64_t count) {
    uint64_t share = count * test_percent() / 300;
    return share == 0 ? 1 : share < count ? share : count;
}

// What the rounds together must have met, which fewer of them need not.
#define assert_met(condition) assert_true(test_percent() < 100 || (condition))

// Do arrays and arenas have no room to spare (vectors.c)? Then every request may be refused, and sizes
// are others.
#if defined(PTOWSP_TIGHT)
extern bool pwsp_is_tight;
#define test_is_tight() pwsp_is_tight
#else
#define test_is_tight() false
#endif

// A double as f16 or bf16, rounded once.
static inline uint16_t test_half_of(ptowsp_dtype dtype, double value) {
    uint16_t half = 0;
    assert_int_equal(ptowsp_convert(&half, dtype, &value, PTOWSP_F64, 1), PTOWSP_OK);
    return half;
}

// SplitMix64 (Steele, Lea and Flood 2014).
static inline uint64_t test_splitmix(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// What random generators decide by. Fuzz targets put bytes in its place (tests/fuzz/choices.h).
#ifndef TEST_RANDOM
#define TEST_RANDOM test_splitmix
#endif

static inline uint64_t test_random(uint64_t *state) {
    return TEST_RANDOM(state);
}

// Uniform in [low, high].
static inline int64_t test_random_in(uint64_t *state, int64_t low, int64_t high) {
    return low + (int64_t)(test_random(state) % ((uint64_t)(high - low) + 1));
}

static inline uint32_t test_random_u32(uint64_t *state, int64_t low, int64_t high) {
    return (uint32_t)test_random_in(state, low, high);
}

// Memory of a test, until it is released: each block of exactly its size, so that a sanitizer sees what
// lies outside. All bytes are 0.
static struct {
    void **blocks;
    size_t count;
} test_held;

static inline void *test_alloc(size_t count, size_t size) {
    void *blocks = realloc(test_held.blocks, (test_held.count + 1) * sizeof *test_held.blocks);
    void *memory = calloc(count > 0 ? count : 1, size);
    assert_true(blocks && memory);
    test_held.blocks = (void **)blocks;
    test_held.blocks[test_held.count++] = memory;
    return memory;
}

// All of it, or what has come since there were `count` blocks.
static inline void test_release_to(size_t count) {
    while (test_held.count > count) {
        free(test_held.blocks[--test_held.count]);
    }
}

static inline void test_release(void) {
    test_release_to(0);
    free(test_held.blocks);
    test_held.blocks = NULL;
}

// An allocator that checks the sizes it is told, counts what is live, and can refuse one
// allocation.
typedef struct test_memory {
    size_t live_bytes;
    size_t live_blocks;
    size_t allocations;  // so far, refused ones included
    size_t refuse_at;    // the allocation with this number (from 1) is refused; 0 refuses none
} test_memory;

typedef union test_block {
    size_t size;
    max_align_t align;
} test_block;

static inline void *test_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    test_memory *memory = (test_memory *)user;
    test_block *block = ptr ? (test_block *)ptr - 1 : NULL;
    assert_int_equal(old_size, block ? block->size : 0);
    if (new_size == 0) {
        if (block) {
            memory->live_bytes -= old_size;
            memory->live_blocks--;
            free(block);
        }
        return NULL;
    }
    if (++memory->allocations == memory->refuse_at) {
        return NULL;
    }
    test_block *moved = (test_block *)malloc(sizeof(test_block) + new_size);
    assert_non_null(moved);
    const size_t kept = old_size < new_size ? old_size : new_size, fresh = new_size - kept;
    memset((char *)(moved + 1) + kept, 0xa5, fresh < 1 << 20 ? fresh : 1 << 20);  // it is not zero
    moved->size = new_size;
    if (block) {
        memcpy(moved + 1, block + 1, kept);
        free(block);
    } else {
        memory->live_blocks++;
    }
    memory->live_bytes += new_size - old_size;
    return moved + 1;
}

// Asserts that a context's last error is this one, with exactly this text.
static inline void test_error_is(const ptowsp_context *context, ptowsp_status status,
                                 uint64_t index, const char *text) {
    ptowsp_error error = ptowsp_context_error(context);
    assert_int_equal(error.status, status);
    assert_true(error.index == index);
    assert_string_equal(error.text, text);
}

// Asserts that a call is refused, and that the context says so.
#define test_refused(context, call, refusal, index, text)                                          \
    (assert_int_equal(call, refusal), test_error_is(context, refusal, index, text))

// The same for arguments that are wrong, none of which has an index.
#define test_invalid(context, call, text)                                                          \
    test_refused(context, call, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text)

// An output into an array of characters.
#define TEST_TEXT(array) ptowsp_output_to_buffer(&(ptowsp_output_buffer){array, sizeof(array), 0})

// What a test needs: without it the test fails, with the text of the error.
#define test_ok(context, call)                                                                     \
    do {                                                                                           \
        if ((call) != PTOWSP_OK) {                                                                 \
            fail_msg("%s", ptowsp_context_error(context).text);                                    \
        }                                                                                          \
    } while (0)

#define test_fails(context, call, status, said)                                                    \
    (assert_int_equal(call, status), assert_string_equal(ptowsp_context_error(context).text, said))

// Asserts that the last failure of a context is a call while something ran.
static inline void test_was_busy(const ptowsp_context *context) {
    test_error_is(context, PTOWSP_BUSY, PTOWSP_NO_INDEX,
                  "busy: the context, or the object of the call, is running something");
}

// Objects that a test needs: without them it fails.
static inline ptowsp_context *test_context(const ptowsp_context_desc *desc) {
    ptowsp_context *context = NULL;
    assert_int_equal(ptowsp_context_create(desc, &context), PTOWSP_OK);
    return context;
}

static inline ptowsp_module *test_module(ptowsp_context *context, const ptowsp_module_desc *desc) {
    ptowsp_module *m = NULL;
    assert_int_equal(ptowsp_module_create(context, desc, &m), PTOWSP_OK);
    return m;
}

static inline ptowsp_program *test_program(ptowsp_context *context, ptowsp_module *m,
                                           const ptowsp_program_desc *desc) {
    ptowsp_program *program = NULL;
    assert_int_equal(ptowsp_program_create(context, m, desc, &program), PTOWSP_OK);
    return program;
}

static inline ptowsp_run *test_run_of(ptowsp_context *context, const ptowsp_program *program) {
    ptowsp_run *run = NULL;
    assert_int_equal(ptowsp_run_create(context, program, &run), PTOWSP_OK);
    return run;
}

// The run of a module's text: with the module and the program, or the test fails with the error's text.
static inline ptowsp_run *test_run_text(ptowsp_context *context, const char *text,
                                        const ptowsp_parse_desc *attached,
                                        const ptowsp_program_desc *desc, ptowsp_module **m,
                                        ptowsp_program **program) {
    ptowsp_run *run = NULL;
    if (ptowsp_module_parse(context, text, strlen(text), attached, m, NULL) != PTOWSP_OK ||
        ptowsp_program_create(context, *m, desc, program) != PTOWSP_OK ||
        ptowsp_run_create(context, *program, &run) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(context).text);
    }
    return run;
}

// The cycles of a task are its first argument.
static inline ptowsp_cycles test_first_arg(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

// Binds a tensor to memory that is as dense as it.
static inline void test_bind(ptowsp_run *run, const char *name, void *data) {
    ptowsp_buffer buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.data = data;
    assert_int_equal(ptowsp_run_bind_tensor(run, name, &buffer), PTOWSP_OK);
}

// A hub of ranks in this process.
static inline ptowsp_hub *test_hub(ptowsp_context *context, uint32_t rank_count,
                                   uint32_t ring_bytes) {
    const ptowsp_hub_desc desc = {rank_count, ring_bytes, false};
    ptowsp_hub *hub = NULL;
    assert_int_equal(ptowsp_hub_create(context, &desc, &hub), PTOWSP_OK);
    return hub;
}

// Runs each of an array of jobs in a thread of its own, and returns when all have ended.
static inline void test_threads(void *(*fn)(void *job), void *jobs, size_t job_size,
                                uint32_t count) {
    pthread_t *threads = (pthread_t *)malloc(count * sizeof *threads);
    assert_non_null(threads);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, fn, (char *)jobs + i * job_size), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    free(threads);
}

// Executes a run in time alone; on so many lanes.
static inline ptowsp_status test_time(ptowsp_run *run) {
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.mode = PTOWSP_RUN_TIME_ONLY;
    return ptowsp_run_execute(run, &options);
}

static inline ptowsp_status test_execute(ptowsp_run *run, uint32_t lane_count) {
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.lane_count = lane_count;
    return ptowsp_run_execute(run, &options);
}

// A context whose memory is counted.
static inline ptowsp_context *test_counted(test_memory *memory) {
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(memory, 0, sizeof *memory);
    desc.resize = test_resize;
    desc.resize_user = memory;
    return test_context(&desc);
}

// In the order in which one uses the other; any of them may be NULL.
static inline void test_destroy(ptowsp_run *run, ptowsp_program *program, ptowsp_module *m,
                                ptowsp_context *context) {
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// A test with a context.
#define CONTEXT_TEST(name)                                                                         \
    static void name##_of(ptowsp_context *context);                                                \
    TEST(name) {                                                                                   \
        ptowsp_context *context = test_context(NULL);                                              \
        name##_of(context);                                                                        \
        ptowsp_context_destroy(context);                                                           \
    }                                                                                              \
    static void name##_of(ptowsp_context *context)

// Once for each allocation, n, of which there are more than `least`: the body has it refused, and sets
// has_more, as test_was_refused says.
#define EACH_REFUSED(n, least)                                                                     \
    for (size_t n = 1, has_more = 1; has_more || (assert_true(n - 1 > (least)), false); n++)

// The n-th allocation from now on is refused.
static inline void test_refuse(test_memory *memory, size_t n) {
    memory->refuse_at = memory->allocations + n;
}

// Was it refused, as the status says? From now on none is.
static inline bool test_was_refused(test_memory *memory, ptowsp_status status) {
    const bool was_refused = memory->allocations >= memory->refuse_at;
    assert_int_equal(status, was_refused ? PTOWSP_OUT_OF_MEMORY : PTOWSP_OK);
    memory->refuse_at = 0;
    return was_refused;
}

// An executor for PTOWSP_THREADS_USER: runs the lanes one after another, the last first.
static inline void test_run_lanes_backwards(void *user, uint32_t lane_count, ptowsp_lane_fn lane,
                                            void *job) {
    (void)user;
    while (lane_count > 0) {
        lane(job, --lane_count);
    }
}

typedef struct test_lane_call {
    ptowsp_lane_fn lane_fn;
    void *job;
    uint32_t lane;
} test_lane_call;

static inline void *test_lane_call_main(void *arg) {
    test_lane_call *call = (test_lane_call *)arg;
    call->lane_fn(call->job, call->lane);
    return NULL;
}

// An executor with a thread for each lane but the first, started anew for each job.
static inline void test_run_lanes_on_threads(void *user, uint32_t lane_count, ptowsp_lane_fn lane,
                                             void *job) {
    (void)user;
    pthread_t threads[PTOWSP_LANE_COUNT_MAX];
    test_lane_call calls[PTOWSP_LANE_COUNT_MAX];
    bool started[PTOWSP_LANE_COUNT_MAX];
    for (uint32_t i = 1; i < lane_count; i++) {
        test_lane_call call = {lane, job, i};
        calls[i] = call;
        started[i] = pthread_create(&threads[i], NULL, test_lane_call_main, &calls[i]) == 0;
    }
    lane(job, 0);
    for (uint32_t i = 1; i < lane_count; i++) {
        if (started[i]) {
            pthread_join(threads[i], NULL);
        } else {
            lane(job, i);
        }
    }
}

// A context of threads: the library's own or, in builds without threads, the test's.
static inline ptowsp_context_desc test_lanes_desc(uint32_t lane_count) {
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.threads = lane_count == 1 ? PTOWSP_THREADS_SERIAL : PTOWSP_THREADS_OWN;
#ifdef PTOWSP_NO_THREADS
    if (lane_count > 1) {
        desc.threads = PTOWSP_THREADS_USER;
        desc.run_lanes = test_run_lanes_on_threads;
    }
#endif
    desc.lane_count = lane_count;
    return desc;
}

static inline ptowsp_context *test_lanes(uint32_t lane_count) {
    const ptowsp_context_desc desc = test_lanes_desc(lane_count);
    return test_context(&desc);
}

#endif
