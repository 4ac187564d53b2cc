// Random programs of all kinds, with faults, for as long as one likes: `make soak`.
//
//      SOAK_SECONDS=3600     how long
//      SOAK_FIRST=1          the seed of the first case; each case has the next one
//      SOAK_SEED=n           only the case of this seed, in this process: to repeat one
//      SOAK_COUNT=1          so many from it on
//      SOAK_PATIENCE=120     seconds until a case that does not end is stuck
//
// Cases run in a process of their own, which the other one watches: if it dies, or is stuck, the seed is
// printed. It begins anew after some hundred cases, so that a sanitizer looks for leaks. What was done
// is printed at the end.
//
// watch.h says when a case is stuck.

#define _GNU_SOURCE  // MAP_ANONYMOUS
#include "soak.h"
#include "watch.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CASES_OF_A_PROCESS = 400 };

soak_state *soak_now;

static const char *const kind_names[] = {
#define SOAK_NAME(name) #name,
    SOAK_KINDS(SOAK_NAME)};
static const char *const fault_names[] = {SOAK_FAULTS(SOAK_NAME)};
static void (*const runners[])(uint64_t seed) = {
#define SOAK_RUNNER(name) soak_run_##name,
    SOAK_KINDS(SOAK_RUNNER)};

// -- faults ---------------------------------------------------------------------------------------

static uint64_t threads_until, threads_end, writes_until, writes_end;  // atomic countdowns

void soak_count(soak_fault fault, bool has_ended) {
    soak_now->injected[fault]++;
    soak_now->ended[fault] += has_ended;
}

void *soak_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    soak_memory *memory = (soak_memory *)user;
    if (new_size == 0) {
        if (ptr) {
            __atomic_fetch_sub(&memory->live_blocks, 1, __ATOMIC_RELAXED);
            __atomic_fetch_sub(&memory->live_bytes, old_size, __ATOMIC_RELAXED);
        }
        free(ptr);
        return NULL;
    }
    const uint64_t number = __atomic_fetch_add(&memory->allocations, 1, __ATOMIC_RELAXED);
    if (number >= __atomic_load_n(&memory->refuse_from, __ATOMIC_RELAXED) &&
        number < __atomic_load_n(&memory->refuse_end, __ATOMIC_RELAXED)) {
        return NULL;
    }
    void *moved = realloc(ptr, new_size);
    assert_non_null(moved);
    if (!ptr) {
        memset(moved, 0xa5, new_size);  // memory is not zero
        __atomic_fetch_add(&memory->live_blocks, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&memory->live_bytes, new_size - old_size, __ATOMIC_RELAXED);
    return moved;
}

void soak_refuse_memory(soak_memory *memory, uint64_t *random, uint64_t after_max) {
    const uint64_t from =
        memory->allocations + (uint64_t)test_random_in(random, 0, (int64_t)after_max);
    memory->refuse_from = from;
    memory->refuse_end = test_random(random) % 2 ? from + 1 : UINT64_MAX;
}

void soak_allow_memory(soak_memory *memory) {
    memory->refuse_from = memory->refuse_end = 0;
}

void soak_refuse_threads(uint64_t *random) {
    const uint64_t after = test_random(random) % 3;
    __atomic_store_n(&threads_end, after + 1 + test_random(random) % 8, __ATOMIC_RELAXED);
    __atomic_store_n(&threads_until, after, __ATOMIC_RELAXED);
}

void soak_refuse_writes(uint64_t *random, uint64_t after_max) {
    const uint64_t after = (uint64_t)test_random_in(random, 0, (int64_t)after_max);
    __atomic_store_n(&writes_end, UINT64_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&writes_until, after, __ATOMIC_RELAXED);
}

void soak_allow_all(void) {
    __atomic_store_n(&threads_end, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&writes_end, 0, __ATOMIC_RELAXED);
}

// Counts one more; true if it is to be refused.
static bool is_refused(uint64_t *until, uint64_t *end) {
    if (__atomic_load_n(end, __ATOMIC_RELAXED) == 0) {
        return false;
    }
    if (__atomic_load_n(until, __ATOMIC_RELAXED) > 0) {
        __atomic_fetch_sub(until, 1, __ATOMIC_RELAXED);
        return false;
    }
    return true;
}

// The linker takes these for the calls of the library (--wrap).
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *user) {
    return is_refused(&threads_until, &threads_end) ? EAGAIN
                                                    : __real_pthread_create(thread, attr, fn, user);
}

ssize_t __real_write(int file, const void *data, size_t size);
ssize_t __wrap_write(int file, const void *data, size_t size);
ssize_t __wrap_write(int file, const void *data, size_t size) {
    if (is_refused(&writes_until, &writes_end)) {
        errno = ENOSPC;
        return -1;
    }
    return __real_write(file, data, size);
}

// It has threads, or a status that says why not, and then nothing.
static void make_badly(const ptowsp_context_desc *desc, soak_memory *memory, uint64_t *random) {
    ptowsp_context *context = NULL;
    const bool is_memory = test_random(random) % 2;
    if (is_memory) {
        soak_refuse_memory(memory, random, 3);
    } else {
        soak_refuse_threads(random);
    }
    const ptowsp_status status = ptowsp_context_create(desc, &context);
    soak_allow_memory(memory);
    soak_allow_all();
    assert_true(status == PTOWSP_OK ||
                status == (is_memory ? PTOWSP_OUT_OF_MEMORY : PTOWSP_SYSTEM_FAILED));
    assert_true((status == PTOWSP_OK) == (context != NULL));
    soak_count(is_memory ? SOAK_BY_memory : SOAK_BY_thread, status != PTOWSP_OK);
    if (context) {
        ptowsp_context_destroy(context);
    }
    assert_int_equal(memory->live_blocks, 0);
}

ptowsp_context *soak_context(soak_memory *memory, uint32_t lane_count, uint64_t *random) {
    ptowsp_context_desc desc = test_lanes_desc(lane_count);
    ptowsp_context *context = NULL;
    memset(memory, 0, sizeof *memory);
    desc.resize = soak_resize;
    desc.resize_user = memory;
    if (test_random(random) % 4 == 0) {
        make_badly(&desc, memory, random);
    }
    assert_ok(ptowsp_context_create(&desc, &context));
    return context;
}

void soak_context_end(ptowsp_context *context, soak_memory *memory) {
    ptowsp_context_destroy(context);
    assert_int_equal(memory->live_blocks, 0);
    assert_int_equal(memory->live_bytes, 0);
}

// -- cases ----------------------------------------------------------------------------------------

static uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static soak_kind kind_of(uint64_t seed) {
    // Trees of emissions are some fifty files: one in 64 cases.
    static const soak_kind others[] = {SOAK_program, SOAK_program,  SOAK_program, SOAK_pipeline,
                                       SOAK_graph,   SOAK_pipeline, SOAK_graph,   SOAK_saved,
                                       SOAK_device,  SOAK_device,   SOAK_ranks,   SOAK_ranks,
                                       SOAK_plan,    SOAK_plan,     SOAK_records};
    static const uint64_t other_count = COUNT_OF(others);
    uint64_t state = seed;
    const uint64_t number = test_splitmix(&state);
    return number % 64 == 0 ? SOAK_emission : others[number / 64 % other_count];
}

static void run_case(uint64_t seed) {
    const soak_kind kind = kind_of(seed);
    __atomic_store_n(&soak_now->seed, seed, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&soak_now->cases, 1, __ATOMIC_SEQ_CST);
    runners[kind](seed);
    soak_allow_all();
    soak_now->done[kind]++;
}

// Runs cases in this process until the time is over.
static void run_cases(uint64_t first, uint64_t count, time_t end) {
    for (uint64_t i = 0; i < count && time(NULL) < end; i++) {
        run_case(first + i);
    }
}

// -- all of them ------------------------------------------------------------------------------------

static void print_counts(uint64_t seconds) {
    printf("soak: %llu cases in %llu s:", (unsigned long long)soak_now->cases,
           (unsigned long long)seconds);
    for (int i = 0; i < SOAK_KIND_COUNT; i++) {
        printf(" %s %llu%s", kind_names[i], (unsigned long long)soak_now->done[i],
               i + 1 < SOAK_KIND_COUNT ? "," : "\n");
    }
    printf("      runs with a fault (of which it ended):");
    for (int i = 0; i < SOAK_FAULT_COUNT; i++) {
        printf(" %s %llu (%llu)%s", fault_names[i], (unsigned long long)soak_now->injected[i],
               (unsigned long long)soak_now->ended[i], i + 1 < SOAK_FAULT_COUNT ? "," : "\n");
    }
}

int main(void) {
    const time_t begun = time(NULL), end = begun + (time_t)number_of("SOAK_SECONDS", 3600);
    soak_now = (soak_state *)mmap(NULL, sizeof *soak_now, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (soak_now == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    setenv("CMOCKA_TEST_ABORT", "1", 1);  // a failed assertion ends the process
    if (getenv("SOAK_SEED")) {
        run_cases(number_of("SOAK_SEED", 0), number_of("SOAK_COUNT", 1), end);
        print_counts((uint64_t)(time(NULL) - begun));
        return 0;
    }
    const uint64_t patience = number_of("SOAK_PATIENCE", 120) * (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t first = number_of("SOAK_FIRST", 1);
    for (; time(NULL) < end; first += CASES_OF_A_PROCESS) {
        fflush(NULL);
        const uint64_t before = soak_now->cases;
        pid_t process = fork();
        if (process == 0) {
            run_cases(first, CASES_OF_A_PROCESS, end);
            exit(0);
        }
        const int status =
            process > 0 ? soak_wait(process, &soak_now->cases, patience, soak_print_threads) : -1;
        if (status != 0) {
            printf("soak: failed in the case of SOAK_SEED=%llu, which repeats it, or later (leaks: "
                   "SOAK_SEED=%llu SOAK_COUNT=%llu)\n",
                   (unsigned long long)soak_now->seed, (unsigned long long)first,
                   (unsigned long long)(soak_now->cases - before));
            print_counts((uint64_t)(time(NULL) - begun));
            return 1;
        }
    }
    print_counts((uint64_t)(time(NULL) - begun));
    return 0;
}
