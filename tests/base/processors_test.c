// The processors that a process may use: by its affinity, in children that set theirs; and by quotas, in
// trees of files as /proc and /sys/fs/cgroup have them. What is expected is counted by hand.

#define _GNU_SOURCE  // sched_setaffinity, nftw

#include "src/base/processors.h"

#include "facts.h"
#include "files.h"
#include "fork.h"

#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>

static char root[64];

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *at) {
    (void)about;
    (void)kind;
    (void)at;
    return remove(path);
}

static void root_remove(void) {
    assert_true(root[0] == '\0' || nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
    root[0] = '\0';
}

static facts_text path, content;
static uint64_t quota;

// Writes a file below the root, and makes its directories.
static ptowsp_status write_it(void) {
    char name[256];
    snprintf(name, sizeof name, "%s/%s", root, path.data);
    for (char *slash = name + strlen(root); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(name, 0755);
        *slash = '/';
    }
    file_write(name, content.data, content.size);
    return PTOWSP_OK;
}

static ptowsp_status count(void) {
    quota = pwsp_quota_count(root);
    return PTOWSP_OK;
}

static void begin(void) {
    root_remove();
    snprintf(root, sizeof root, "/tmp/ptowsp_processors_XXXXXX");
    assert_non_null(mkdtemp(root));
}

static const facts_field *fields(void) {
    FACTS_RETURN(FIELD(path), FIELD(content), FIELD(quota));
}

TEST(processors__the_smallest_quota_counts_in_both_versions) {
    static const facts_call calls[] = {{"write", write_it}, {"count", count}, {NULL, NULL}};
    facts all = {"tests/base/quotas.facts", begin, fields, calls, NULL, NULL, 0};
    facts_run(&all);
    root_remove();
}

// In a child: as many as the first processors of this process's affinity.
static void use_processors(void *user) {
    const uint32_t wanted = *(const uint32_t *)user;
    cpu_set_t all, some;
    CPU_ZERO(&some);
    CHILD_CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    for (uint32_t i = 0, taken = 0; i < CPU_SETSIZE && taken < wanted; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &some);
            taken++;
        }
    }
    CHILD_CHECK(sched_setaffinity(0, sizeof some, &some) == 0);
    const uint64_t most = pwsp_quota_count("");
    const uint32_t expected = most < wanted ? (uint32_t)most : wanted;
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
    for (uint32_t wanted = 1; wanted <= most; wanted++) {
        test_in_child(use_processors, &wanted, 0);
    }
}
