// What communicators refuse at the wrong time, processes that are gone, and hubs without memory. collectives.facts has
// what arguments are refused for.

#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <unistd.h>

// What /proc says is said here, for hubs of processes.
__attribute__((unused)) static int test_open(const char *path, int flags);
__attribute__((unused)) static ssize_t test_read(int file, void *data, size_t size);
#define open test_open
#define read test_read

#include "src/base/processors.c"
#include "src/ranks/hub.c"
#include "src/ranks/ranks.h"

#undef open
#undef read

#include "test.h"

// -- communicators --------------------------------------------------------------------------------

CONTEXT_TEST(ranks_faults__communicators_do_one_thing_at_a_time_and_none_behind_a_failure) {
    ptowsp_hub *hub = test_hub(context, 1, 0);
    ptowsp_ranks *ranks = NULL;
    float in[8] = {0}, out[8];
    bool is_done = false;
    ptowsp_ranks_desc desc = {.rank_count = 1, .transport = ptowsp_hub_transport(hub, 0)};
    assert_ok(ptowsp_ranks_create(context, &desc, &ranks));
    const ptowsp_collective good = {
        .algorithm = PTOWSP_ALGORITHM_RING, .dtype = PTOWSP_F32, .count = 8, .members = 1};
    test_invalid(context, ptowsp_ranks_poll(ranks, NULL), "ranks: poll: no place for the answer");
    assert_ok(ptowsp_ranks_poll(ranks, &is_done));  // nothing was started
    assert_true(is_done);
    // One at a time; and none behind a failure.
    assert_ok(ptowsp_ranks_start(ranks, &good, in, out));
    assert_int_equal(ptowsp_ranks_start(ranks, &good, in, out), PTOWSP_BUSY);
    assert_ok(ptowsp_ranks_wait(ranks));
    pwsp_ranks_give_up(ranks);
    for (int i = 0; i < 2; i++) {
        is_done = false;
        test_refused(
            context,
            i ? ptowsp_ranks_start(ranks, &good, in, out) : ptowsp_ranks_poll(ranks, &is_done),
            PTOWSP_RANK_FAILED, PTOWSP_NO_INDEX, "ranks: this communicator has failed before");
        assert_true(i || is_done);
    }
    ptowsp_ranks_destroy(ranks);
    ptowsp_hub_destroy(hub);
}

// -- hubs -----------------------------------------------------------------------------------------

static struct {
    const char *stat;  // of process 7; NULL: open fails, or read does
    int wrong;
    bool is_read, has_own;
} proc;

static int test_open(const char *path, int flags) {
    const bool is_other = strcmp(path, "/proc/7/stat") == 0;
    if (is_other ? !proc.stat && !proc.is_read : !proc.has_own) {
        errno = proc.wrong;
        return -1;
    }
    return open(is_other ? "/dev/null" : "/dev/zero", flags);
}

static ssize_t test_read(int file, void *data, size_t size) {
    char byte;
    if (read(file, &byte, 1) == 1) {  // this process
        memcpy(data, "1 (me) R 1", 11);
        return 10;
    }
    if (!proc.stat) {
        errno = proc.wrong;
        return -1;
    }
    const size_t length = strlen(proc.stat) < size ? strlen(proc.stat) : size;
    memcpy(data, proc.stat, length);
    return (ssize_t)length;
}

// The 20th number of /proc/PID/stat is that of the threads: of a process whose main thread has ended, a
// zombie, others may still run.
TEST(ranks_faults__a_process_is_gone_when_proc_says_so) {
#define FIELDS "1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 "
    static const struct {
        const char *stat;
        int wrong;
        bool is_read, has_own, is_gone;
    } cases[] = {{"7 (a) S " FIELDS "1 0 99", 0, true, true, false},
                 {"7 (a) Z " FIELDS "1 0 99", 0, true, true, true},
                 {"7 (a) X " FIELDS "1 0 99", 0, true, true, true},
                 {"7 (a) Z " FIELDS "3 0 99", 0, true, true, false},
                 {"7 (a) b) Z 1 (c) Z " FIELDS "1 0 99", 0, true, true, true},
                 {"7 (a) Z) S " FIELDS "1 0 99", 0, true, true, false},
                 {"7 (a) Z 1 1 1", 0, true, true, false},
                 {"7 (a)Z " FIELDS "1 0 99", 0, true, true, false},
                 {"7 a Z " FIELDS "1 0 99", 0, true, true, false},
                 {"", 0, true, true, false},
                 {NULL, ENOENT, false, true, true},
                 {NULL, ENOENT, false, false, false},  // there is no /proc
                 {NULL, ESRCH, true, true, true},      // gone between the two
                 {NULL, EACCES, false, true, false},
                 {NULL, EIO, true, true, false}};
#undef FIELDS
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        proc.stat = cases[i].stat;
        proc.wrong = cases[i].wrong;
        proc.is_read = cases[i].is_read;
        proc.has_own = cases[i].has_own;
        errno = 0;
        if (pwsp_hub_is_gone(7) != cases[i].is_gone) {
            fail_msg("case %d: %s", (int)i,
                     cases[i].stat ? cases[i].stat : strerror(cases[i].wrong));
        }
    }
}

// 256 ranks with rings of 2^30 bytes: 2^46 bytes, and a word for each.
TEST(ranks_faults__hubs_say_what_memory_there_is_not) {
    test_memory memory;
    ptowsp_context *context = test_counted(&memory);
    const ptowsp_hub_desc small = {2, 64, false}, large = {256, 1 << 30, true};
    ptowsp_hub *hub = NULL;
    for (size_t n = 1; n <= 2; n++) {
        memory.refuse_at = memory.allocations + n;
        assert_int_equal(ptowsp_hub_create(context, &small, &hub), PTOWSP_OUT_OF_MEMORY);
        assert_null(hub);
        assert_non_null(strstr(ptowsp_context_error(context).text, "ranks: hub: no memory of "));
    }
    memory.refuse_at = 0;
    const ptowsp_status status = ptowsp_hub_create(context, &large, &hub);
    if (status == PTOWSP_OK) {
        ptowsp_hub_destroy(hub);  // of pages that nobody has touched
    } else {
        const size_t size = sizeof(pwsp_hub_board) + 65536 * (sizeof(pwsp_hub_ring) + (1u << 30));
        char text[128];
        snprintf(text, sizeof text, "ranks: hub: no memory of %llu bytes",
                 (unsigned long long)size);
        test_error_is(context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, text);
    }
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
}
