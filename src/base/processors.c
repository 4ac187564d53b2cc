// Two rules of the system leave a process some of the processors that are online.
//
//      affinity   a set of processors: taskset, cpusets of containers
//      quota      time per period, of all threads together. Threads above it are stopped until the
//                 period ends, which is some 100 ms.
//
// The quota of a cgroup holds for all cgroups in it, so the smallest on the way to the root counts. In
// a container /proc may have the host's path, whose directories are not visible there; the container's
// own quota is at the root then. A file that does not exist sets no limit.

#include "processors.h"

#include "text.h"

#if PWSP_POSIX
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define PWSP_CGROUP_PATH_MAX 4096

PWSP_INTERNAL int pwsp_system_read(char *text, size_t size, const char *format, ...) {
    char path[PWSP_CGROUP_PATH_MAX + 64];
    PWSP_TEXT_FORMAT_INTO(path, format);
    const int file = open(path, O_RDONLY);
    const ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    const int wrong = length < 0 ? errno : 0;
    if (file >= 0) {
        close(file);
    }
    text[length > 0 ? length : 0] = '\0';
    return wrong;
}

// Strict C11 hides this, and in header mode it is too late for feature-test macros.
#if defined(CPU_SETSIZE)
typedef cpu_set_t pwsp_cpu_set;
#elif defined(__linux__)
typedef unsigned long pwsp_cpu_set;
extern int sched_getaffinity(pid_t process, size_t size, pwsp_cpu_set *set);
#endif

// Processors of the affinity, or those that are online.
static uint64_t pwsp_affinity_count(void) {
    uint64_t count = 0;
#if defined(__linux__)
    unsigned long words[16384 / (8 * sizeof(unsigned long))];  // Linux has up to 8192 processors
    memset(words, 0, sizeof words);
    if (sched_getaffinity(0, sizeof words, (pwsp_cpu_set *)(void *)words) == 0) {
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            count += (uint64_t)__builtin_popcountl(words[i]);
        }
    }
#endif
    const long online = count ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    return count ? count : online < 1 ? 1 : (uint64_t)online;
}

// The quota of one cgroup: "QUOTA PERIOD" in version 2, two files in version 1; "max", or -1: none.
static uint64_t pwsp_quota_of(const char *root, const char *path, bool is_v2) {
    char text[64], *end;
    if (is_v2) {
        pwsp_system_read(text, sizeof text, "%s/sys/fs/cgroup%s/cpu.max", root, path);
    } else {
        pwsp_system_read(text, 32, "%s/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", root, path);
        pwsp_system_read(text + strlen(text), 32, "%s/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", root,
                         path);
    }
    const uint64_t quota = strtoull(text, &end, 10), period = strtoull(end, NULL, 10);
    return quota && period ? pwsp_max_u64(quota / period, 1) : UINT64_MAX;
}

PWSP_INTERNAL uint64_t pwsp_quota_count(const char *root) {
    char text[PWSP_CGROUP_PATH_MAX];
    uint64_t least = UINT64_MAX;
    pwsp_system_read(text, sizeof text, "%s/proc/self/cgroup", root);
    for (char *line = text, *next; line; line = next) {  // NUMBER:CONTROLLERS:PATH
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        const bool is_v2 = path && path == list + 1;
        bool is_cpu = is_v2;
        for (const char *at = list; path && at < path; at = strpbrk(at + 1, ",:")) {
            is_cpu |= strncmp(at + 1, "cpu", 3) == 0 && (at[4] == ',' || at[4] == ':');
        }
        for (char *end = is_cpu ? path + strlen(path) : NULL; end; end = strrchr(path + 1, '/')) {
            *end = '\0';
            least = pwsp_min_u64(least, pwsp_quota_of(root, path + 1, is_v2));
        }
    }
    return least;
}

uint32_t ptowsp_processor_count(void) {
    const uint64_t count = pwsp_min_u64(pwsp_affinity_count(), pwsp_quota_count(""));
    return (uint32_t)pwsp_min_u64(count, PTOWSP_LANE_COUNT_MAX);
}
#else
uint32_t ptowsp_processor_count(void) {
    return 1;  // unknown
}
#endif
