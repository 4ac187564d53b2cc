// The processors that a process may use: by its affinity, in children that set theirs; and by quotas, in
// trees of files as /proc and /sys/fs/cgroup have them. What is expected is counted by hand.

#define _GNU_SOURCE  // sched_setaffinity, nftw

#include "src/base/processors.h"

#include "fork.h"

#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>

#define NO_QUOTA UINT64_MAX

typedef struct file {
    const char *path, *text;  // below the root; its directories are made
} file;

enum { FILE_MAX = 5 };

typedef struct quota_case {
    uint64_t expected;
    file files[FILE_MAX];
} quota_case;

static const quota_case cases[] = {
    {NO_QUOTA, {{0}}},
    // Version 2: the own cgroup, as containers see it.
    {4, {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "400000 100000\n"}}},
    {2,
     {{"proc/self/cgroup", "0::/b\n"},
      {"sys/fs/cgroup/cpu.max", "150000 50000\n"},
      {"sys/fs/cgroup/a/cpu.max", "50000 50000\n"},  // not on the way
      {"sys/fs/cgroup/b/cpu.max", "100000 50000\n"}}},
    {NO_QUOTA, {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "max 100000\n"}}},
    // Rounded down, but not to none.
    {1, {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "199999 100000\n"}}},
    {1, {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "1000 100000\n"}}},
    // The smallest on the way to the root; a directory that is not there has none.
    {3,
     {{"proc/self/cgroup", "0::/a/b/c\n"},
      {"sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n"},
      {"sys/fs/cgroup/a/b/cpu.max", "700000 100000\n"},
      {"sys/fs/cgroup/a/cpu.max", "300000 100000\n"}}},
    {5, {{"proc/self/cgroup", "0::/host/path"}, {"sys/fs/cgroup/cpu.max", "500000 100000"}}},
    // Version 1: the line of the controller; others have names that begin or end alike.
    {6,
     {{"proc/self/cgroup", "12:cpuset:/s\n4:cpu,cpuacct:/d/e\n3:xcpu,cpux:/x\n1:name=systemd:/\n"},
      {"sys/fs/cgroup/cpu/d/e/cpu.cfs_quota_us", "600000\n"},
      {"sys/fs/cgroup/cpu/d/e/cpu.cfs_period_us", "100000\n"},
      {"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n"},
      {"sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"}}},
    {2,
     {{"proc/self/cgroup", "4:cpuacct,cpu:/docker/1\n0::/other\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "20000\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "10000\n"}}},
    {NO_QUOTA, {{"proc/self/cgroup", "1:cpu:/\n"}, {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"}}},
    // Texts that are no quota.
    {NO_QUOTA, {{"proc/self/cgroup", "\n:\n::\nx\n0:cpu\n"}, {"sys/fs/cgroup/cpu.max", "4\n"}}},
    {NO_QUOTA, {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "100000 0\n"}}},
};

static char root[64];

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *at) {
    (void)about;
    (void)kind;
    (void)at;
    return remove(path);
}

static void write_file(const file *f) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, f->path);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_true(fputs(f->text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

TEST(processors__the_smallest_quota_counts_in_both_versions) {
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(root, sizeof root, "/tmp/ptowsp_processors_XXXXXX");
        assert_non_null(mkdtemp(root));
        for (int k = 0; k < FILE_MAX && cases[i].files[k].path; k++) {
            write_file(&cases[i].files[k]);
        }
        const uint64_t count = pwsp_quota_count(root);
        if (count != cases[i].expected) {
            fail_msg("case %zu: %llu", i, (unsigned long long)count);
        }
        assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    }
}

// In a child: as many as the first processors of this process's affinity.
static void use_processors(void *user) {
    const uint32_t count = *(const uint32_t *)user;
    cpu_set_t all, some;
    CPU_ZERO(&some);
    CHILD_CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    for (uint32_t i = 0, taken = 0; i < CPU_SETSIZE && taken < count; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &some);
            taken++;
        }
    }
    CHILD_CHECK(sched_setaffinity(0, sizeof some, &some) == 0);
    const uint64_t quota = pwsp_quota_count("");
    const uint32_t expected = quota < count ? (uint32_t)quota : count;
    CHILD_CHECK(ptowsp_processor_count() == expected);
#if !defined(PTOWSP_NO_THREADS)
    const ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN};
    ptowsp_context *context;
    CHILD_CHECK(ptowsp_context_create(&desc, &context) == PTOWSP_OK);
    CHILD_CHECK(ptowsp_context_lane_count(context) == expected);
    ptowsp_context_destroy(context);
#endif
}

TEST(processors__own_threads_are_as_many_as_the_affinity_allows) {
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    const uint32_t most = CPU_COUNT(&all) < 4 ? (uint32_t)CPU_COUNT(&all) : 4;
    for (uint32_t count = 1; count <= most; count++) {
        test_in_child(use_processors, &count, 0);
    }
}
