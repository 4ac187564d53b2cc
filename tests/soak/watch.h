// Watching the process that runs cases: it ends, or it is stuck.
//
// A case is stuck when for so long nobody runs, as all threads sleep, or when it has computed for so
// long: both are told by processor time. The clock on the wall alone tells nothing: beside 15 programs
// that compute on its processor, a case of 0.04 s took half a minute.
//
//      look      1   2   3   4   5   6   7        patience 3
//      cases     8   8   9   9   9   9   9
//      ticks     5   7   7   7   7   7   7
//      asleep    0   0   0   1   2   3   4        looks since ticks or cases moved: stuck at the seventh

#ifndef SOAK_WATCH_H
#define SOAK_WATCH_H

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// What is known of a process. Times are ticks, of which a second has sysconf(_SC_CLK_TCK).
typedef struct soak_watch {
    uint64_t patience;
    uint64_t cases;     // begun, as last seen
    uint64_t last;      // processor time, as last seen
    uint64_t spent;     // the most that was seen: it sinks when a rank has ended during a look
    uint64_t begun_at;  // spent when the case began
    uint64_t moved_at;  // the clock when it last ran, as far as is known
    bool has_looked;
} soak_watch;

// Takes in a look at a process: the clock, its processor time, the cases that it has begun. Returns
// whether it is stuck.
static inline bool soak_watch_look(soak_watch *watch, uint64_t clock, uint64_t ticks,
                                   uint64_t cases) {
    const bool is_new = !watch->has_looked || cases != watch->cases;
    watch->spent = ticks > watch->spent ? ticks : watch->spent;
    watch->moved_at = is_new || ticks != watch->last ? clock : watch->moved_at;
    watch->begun_at = is_new ? watch->spent : watch->begun_at;
    watch->last = ticks;
    watch->cases = cases;
    watch->has_looked = true;
    return clock - watch->moved_at > watch->patience ||
           watch->spent - watch->begun_at > watch->patience;
}

// The clock, in ticks.
static inline uint64_t soak_clock(void) {
    const uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second + (uint64_t)now.tv_nsec * second / 1000000000u;
}

// Adds the processor time of a process, as /proc/PID/stat has it, if it is this one or a child of it.
// Returns whether it is.
static inline bool soak_add_time(const char *name, pid_t process, uint64_t *ticks) {
    char path[64], text[1024];
    long parent;
    unsigned long own, system;
    long ended, ended_system;
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    FILE *file = fopen(path, "r");
    const size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    text[size] = '\0';
    const char *at = strrchr(text, ')');  // behind its name, which may have any characters
    const bool is_read =
        at && sscanf(at + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
                     &parent, &own, &system, &ended, &ended_system) == 5;
    if (!is_read || (atol(name) != process && parent != process)) {
        return false;
    }
    *ticks += own + system + (uint64_t)ended + (uint64_t)ended_system;
    return true;
}

// The processor time of a process and of ranks that it has forked; where that is not known, the clock's.
// (None so far is known: taken for the clock's, all that follows would be too little to be noticed.)
static inline uint64_t soak_time_of(pid_t process) {
    uint64_t ticks = 0;
    bool is_known = false;
    DIR *all = opendir("/proc");
    for (const struct dirent *one; all && (one = readdir(all)) != NULL;) {
        if (isdigit((unsigned char)one->d_name[0]) && soak_add_time(one->d_name, process, &ticks)) {
            is_known = true;
        }
    }
    if (all) {
        closedir(all);
    }
    return is_known ? ticks : soak_clock();
}

// Where the threads of a process are, if there is a debugger.
static inline void soak_print_threads(pid_t process) {
    char command[128];
    snprintf(command, sizeof command,
             "gdb -p %ld -batch -ex 'thread apply all backtrace' 2> /dev/null", (long)process);
    fflush(stdout);
    if (system(command) != 0) {
        printf("soak: there is no debugger that tells where its threads are\n");
    }
}

// Waits for a process, which counts the cases that it begins. Returns how it ended, 0 if well; -1 if it
// was stuck, and is ended.
static inline int soak_wait(pid_t process, const uint64_t *cases, uint64_t patience,
                            void (*print)(pid_t process)) {
    const uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK);
    const uint64_t pause_ticks = patience / 8 < second ? patience / 8 : second;  // between looks
    soak_watch watch = {0};
    uint64_t looked = 0;
    watch.patience = patience;
    for (;;) {
        int status;
        const struct timespec pause = {0, 20000000};
        if (waitpid(process, &status, WNOHANG) == process) {
            return status;
        }
        const uint64_t clock = soak_clock();
        if (!watch.has_looked || clock - looked >= pause_ticks) {
            looked = clock;
            if (soak_watch_look(&watch, clock, soak_time_of(process),
                                __atomic_load_n(cases, __ATOMIC_SEQ_CST))) {
                printf("soak: stuck, after %llu s of processor time\n",
                       (unsigned long long)((watch.spent - watch.begun_at) / second));
                print(process);
                kill(process, SIGABRT);
                kill(process, SIGCONT);
                waitpid(process, &status, 0);
                return -1;
            }
        }
        nanosleep(&pause, NULL);
    }
}

#endif
