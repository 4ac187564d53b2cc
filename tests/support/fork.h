// fork() of a process that has threads. A sanitizer that is no newer than clang 15 keeps locks of its own
// while a thread starts, ends or allocates, and a child that is forked then waits for them for ever; so
// under a sanitizer `test_fork` waits until every other thread sleeps.

#ifndef PTOWSP_TESTS_FORK_H
#define PTOWSP_TESTS_FORK_H

#include "lane_fixture.h"  // LANE_IS_CHECKED

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

// Threads of this process that run or could run, other than the one that asks.
static inline uint32_t fork_others_awake(void) {
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks)) {
        char path[300], line[300] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        const int id = atoi(entry->d_name);  // 0 of `..`, whose `stat` is that of the process
        FILE *file = id == 0 || id == getpid() ? NULL : fopen(path, "r");
        if (file) {
            const char *state = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
            count += state && state[2] != 'S';
            fclose(file);
        }
    }
    closedir(tasks);
    return count;
}

// For the main thread. Threads that compute all the time are waited for no longer than 2 seconds.
static inline pid_t test_fork(void) {
    fflush(NULL);
    for (uint32_t quiet = 0, i = 0; LANE_IS_CHECKED && quiet < 3 && i < 2000; i++) {
        quiet = fork_others_awake() ? 0 : quiet + 1;
        usleep(1000);
    }
    return fork();
}

enum { CHILD_FAILED = 1, CHILD_SECONDS = 60 };

// In a child cmocka's assertions would go on with the next test.
#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "in the child, line %d: %s\n", __LINE__, #condition);                  \
            test_exit(CHILD_FAILED);                                                               \
        }                                                                                          \
    } while (0)

// Runs a function in a child, which ends with 0 or, if that is given, with another status, which is
// returned. One that hangs is ended by a signal.
static inline int test_in_child(void (*fn)(void *user), void *user, int other) {
    const pid_t child = test_fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        fn(user);
        test_exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != other)) {
        fail_msg("the child %s %d", WIFSIGNALED(status) ? "hangs or crashes: signal" : "ends with",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    return WEXITSTATUS(status);
}

#endif
