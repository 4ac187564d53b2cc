// What communicators refuse, and the texts: each with one rank, or none at all, since nothing is sent.
// arguments_test.c has what collectives and times refuse.

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

static ptowsp_collective sum_of(uint64_t count) {
    ptowsp_collective c = {.kind = PTOWSP_ALL_REDUCE,
                           .algorithm = PTOWSP_ALGORITHM_RING,
                           .dtype = PTOWSP_F32,
                           .count = count,
                           .members = 4};
    return c;
}

static ptowsp_links links_of(uint64_t latency_ps, uint64_t bytes_per_us) {
    const ptowsp_link link = {latency_ps, bytes_per_us, PTOWSP_LINK_PORT};
    ptowsp_links links = {0};
    links.inside = links.between = link;
    return links;
}

// -- times ----------------------------------------------------------------------------------------

// A part of 2^56 floats takes 2^58 us over a byte a microsecond, 2^78 ps; and six latencies of 2^63 ps.
CONTEXT_TEST(ranks_faults__times_beyond_64_bits_are_refused) {
    ptowsp_collective c = sum_of(UINT64_C(1) << 58);
    ptowsp_links links = links_of(0, 1);
    ptowsp_collective_cost cost;
    test_refused(context, ptowsp_collective_time(context, &c, &links, &cost), PTOWSP_LIMIT_EXCEEDED,
                 PTOWSP_NO_INDEX, "ranks: all_reduce: its time does not fit 64 bits");
    c = sum_of(8);
    links = links_of(UINT64_C(1) << 63, 0);
    test_refused(context, ptowsp_collective_time(context, &c, &links, &cost), PTOWSP_LIMIT_EXCEEDED,
                 PTOWSP_NO_INDEX, "ranks: all_reduce: its time does not fit 64 bits");
}

// -- communicators --------------------------------------------------------------------------------

CONTEXT_TEST(ranks_faults__communicators_need_a_transport_and_a_rank) {
    static const char incomplete[] =
        "ranks: a communicator needs a description, all of a transport, and a place to go";
    ptowsp_hub *hub = test_hub(context, 1, 0);
    ptowsp_ranks *ranks = (ptowsp_ranks *)context;  // anything: it is cleared
    ptowsp_ranks_desc desc;
    ptowsp_ranks_desc good = {.rank_count = 1, .transport = ptowsp_hub_transport(hub, 0)};
#define REFUSED(change, index, text)                                                               \
    desc = good;                                                                                   \
    change;                                                                                        \
    test_refused(context, ptowsp_ranks_create(context, &desc, &ranks), PTOWSP_INVALID_PARAMS,      \
                 index, text);                                                                     \
    assert_null(ranks)
    REFUSED(desc.transport.send = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.transport.receive = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.transport.test = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.transport.cancel = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.transport.close = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.rank_count = 0, 0, "ranks: no rank 0 of 0; there are 1 to 16384");
    REFUSED(desc.rank = 1, 1, "ranks: no rank 1 of 1; there are 1 to 16384");
    REFUSED((desc.rank = 7, desc.rank_count = 16385), 7,
            "ranks: no rank 7 of 16385; there are 1 to 16384");
    REFUSED(desc.links.inside.sharing = (ptowsp_link_sharing)99, PTOWSP_NO_INDEX,
            "ranks: links are shared in an unknown way");
#undef REFUSED
    test_invalid(context, ptowsp_ranks_create(context, NULL, &ranks), incomplete);
    test_invalid(context, ptowsp_ranks_create(context, &good, NULL), incomplete);
    ptowsp_hub_destroy(hub);
}

CONTEXT_TEST(ranks_faults__collectives_need_members_and_apart_memory) {
    ptowsp_hub *hub = test_hub(context, 1, 0);
    ptowsp_ranks *ranks = NULL;
    float in[16] = {0}, out[8];
    bool is_done = false;
    ptowsp_ranks_desc desc = {.rank_count = 1, .transport = ptowsp_hub_transport(hub, 0)};
    assert_ok(ptowsp_ranks_create(context, &desc, &ranks));
    ptowsp_collective good = sum_of(8), c;
    good.members = 1;
#define REFUSED(change, from, to, index, text)                                                     \
    c = good;                                                                                      \
    change;                                                                                        \
    assert_invalid(ptowsp_ranks_run(ranks, &c, from, to));                                         \
    test_error_is(context, PTOWSP_INVALID_PARAMS, index, text)
    const char *const no_member =
        "ranks: all_reduce: rank 0 of 1 is not a member, or members are not ranks";
    REFUSED(c.first = 1, in, out, 0, no_member);
    REFUSED(c.members = 2, in, out, 0, no_member);
    REFUSED(c.members = 0, in, out, PTOWSP_NO_INDEX, "ranks: all_reduce: no members");
    REFUSED(c.reduction = (ptowsp_reduction)9, in, out, PTOWSP_NO_INDEX,
            "ranks: kind 0, algorithm 4, reduction 9: there is no such value");
    REFUSED(c.algorithm = (ptowsp_algorithm)9, in, out, PTOWSP_NO_INDEX,
            "ranks: kind 0, algorithm 9, reduction 0: there is no such value");
    REFUSED(c.members = 1, NULL, out, PTOWSP_NO_INDEX, "ranks: all_reduce: in is NULL");
    REFUSED(c.members = 1, in, NULL, PTOWSP_NO_INDEX, "ranks: all_reduce: out is NULL");
    REFUSED(c.members = 1, in, in + 7, PTOWSP_NO_INDEX, "ranks: all_reduce: in and out overlap");
    REFUSED(c.members = 1, in + 7, in, PTOWSP_NO_INDEX, "ranks: all_reduce: in and out overlap");
    REFUSED(c.kind = PTOWSP_ALL_GATHER, in, in, PTOWSP_NO_INDEX,
            "ranks: all_gather: in and out overlap");
#undef REFUSED
    assert_ok(ptowsp_ranks_run(ranks, &good, in, in + 8));  // side by side
    assert_ok(ptowsp_ranks_run(ranks, &good, in, in));
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
