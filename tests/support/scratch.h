// Where tests make directories for what they write, build and run: in memory, where a disk's file system
// takes longer to make and remove trees of files than the emitter takes to print them, if there is room
// and files may be run there; else in /tmp.

#ifndef PTOWSP_SCRATCH_H
#define PTOWSP_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static inline bool scratch_can_run(const char *directory) {
    struct statvfs about;
    char path[] = "/dev/shm/ptowsp-XXXXXX";
    const int file = statvfs(directory, &about) == 0 &&
                             (uint64_t)about.f_bavail * about.f_frsize >= UINT64_C(4) << 30
                         ? mkstemp(path)
                         : -1;
    const bool can_run = file >= 0 && fchmod(file, 0700) == 0 && access(path, X_OK) == 0;
    if (file >= 0) {
        unlink(path);
        close(file);
    }
    return can_run;
}

static inline const char *scratch_root(void) {
    static const char *root;
    root = root ? root : scratch_can_run("/dev/shm") ? "/dev/shm" : "/tmp";
    return root;
}

#endif
