// fork() of a process that has threads. A sanitizer that is no newer than clang 15 keeps locks of its own
// while a thread starts, ends or allocates, and a child that is forked then waits for them for ever; so
// under a sanitizer `test_fork` waits until every other thread sleeps.

#ifndef PTOWSP_TESTS_FORK_H
#define PTOWSP_TESTS_FORK_H

#include "lane_fixture.h"  // LANE_IS_CHECKED

#include <dirent.h>
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

#endif
