// POSIX files, and flock, which is not of POSIX but on every system that the library knows. Locks of
// fcntl would not do: they are a process's, so threads would not exclude each other, and closing any
// descriptor of the file would drop them.
//
// A file is replaced by rename. A process may wait for the lock of the old file, which nobody will
// ever read again. So after locking, the file must be the one that the path names; if it is not, the
// process opens the path again. While it is open its number cannot be given to another file.
//
// The lock is asked for, not waited for, as a process that is stopped or hangs may have it for ever.
// Those of this library have it for some microseconds, or while they compact.
//
// In header mode it is too late for feature-test macros: what strict C11 hides is declared here as
// POSIX defines it. 32-bit systems need -D_FILE_OFFSET_BITS=64 for files of long numbers.

#include "tuning_file.h"

#include "../base/sleeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#if !defined(__cplusplus)  // where they are never hidden
extern int fsync(int file);
extern ssize_t readlink(const char *path, char *buffer, size_t size);
#endif

// Without O_CLOEXEC, which strict C11 may hide, a program that another thread starts in between
// inherits the descriptor: it is of a file that it could open itself.
static void pwsp_file_close_on_exec(int file) {
    fcntl(file, F_SETFD, FD_CLOEXEC);
}

static int pwsp_file_identify(int file, pwsp_file_id *out_id) {
    struct stat status;
    memset(out_id, 0, sizeof *out_id);
    if (fstat(file, &status) != 0) {
        return errno;
    }
    out_id->is_device = S_ISCHR(status.st_mode);
    if (!S_ISREG(status.st_mode) && !out_id->is_device) {
        return S_ISDIR(status.st_mode) ? EISDIR : ENOTSUP;
    }
    out_id->device = (uint64_t)status.st_dev;
    out_id->number = (uint64_t)status.st_ino;
    out_id->size = out_id->is_device || status.st_size < 0 ? 0 : (uint64_t)status.st_size;
    out_id->link_count = (uint64_t)status.st_nlink;
    out_id->mode = (uint32_t)status.st_mode & 0777u;
    return 0;
}

static bool pwsp_file_is_at(const pwsp_file_id *id, const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && (uint64_t)status.st_dev == id->device &&
           (uint64_t)status.st_ino == id->number;
}

#if !defined(PWSP_FILE_LOCK_NS)  // tests/tune/tune_disk_test.c has less
#define PWSP_FILE_LOCK_NS UINT64_C(10000000000)
#endif
#define PWSP_FILE_NAP_NS UINT64_C(20000)  // the first time, then longer and longer

static int pwsp_file_flock(int file, int how) {
    const uint64_t begin = ptowsp_clock_ns();
    while (flock(file, how | LOCK_NB) != 0) {
        const uint64_t taken = ptowsp_clock_ns() - begin;
        if (errno != EINTR && errno != EWOULDBLOCK) {
            return errno;
        }
        if (taken >= PWSP_FILE_LOCK_NS) {
            return ETIMEDOUT;
        }
        pwsp_nap(pwsp_min_u64(PWSP_FILE_NAP_NS + taken / 16, PWSP_FILE_LOCK_NS - taken));
    }
    return 0;
}

// One attempt; EAGAIN: the file was replaced while this waited.
static int pwsp_file_try_lock(const char *path, bool is_to_write, int *out_file,
                              pwsp_file_id *out_id) {
    // O_NONBLOCK: opening a FIFO would wait for its other end. Files do not know it.
    int flags = (is_to_write ? O_RDWR | O_APPEND | O_CREAT : O_RDONLY) | O_NONBLOCK | O_NOCTTY;
    int file = open(path, flags, 0666);
    if (file < 0) {
        return errno;
    }
    pwsp_file_close_on_exec(file);
    int wrong = pwsp_file_identify(file, out_id);
    if (!wrong && !out_id->is_device) {
        wrong = pwsp_file_flock(file, is_to_write ? LOCK_EX : LOCK_SH);
    }
    if (!wrong) {
        wrong = pwsp_file_identify(file, out_id);  // its size, now that nobody writes
    }
    if (!wrong && !pwsp_file_is_at(out_id, path)) {
        wrong = EAGAIN;
    }
    if (wrong) {
        pwsp_file_unlock(file);
        pwsp_file_close(file);
        return wrong;
    }
    *out_file = file;
    return 0;
}

PWSP_INTERNAL int pwsp_file_lock(const char *path, bool is_to_write, int *out_file,
                                 pwsp_file_id *out_id) {
    int wrong;
    do {
        wrong = pwsp_file_try_lock(path, is_to_write, out_file, out_id);
    } while (wrong == EAGAIN);
    return wrong;
}

PWSP_INTERNAL void pwsp_file_unlock(int file) {
    flock(file, LOCK_UN);
}

PWSP_INTERNAL void pwsp_file_close(int file) {
    PTOWSP_ASSERT(file >= 0);
    close(file);
}

PWSP_INTERNAL int pwsp_file_read(int file, uint64_t offset, void *data, size_t size,
                                 size_t *out_count) {
    *out_count = 0;
    if (lseek(file, (off_t)offset, SEEK_SET) < 0) {
        return errno;
    }
    while (*out_count < size) {
        ssize_t got = read(file, (char *)data + *out_count, size - *out_count);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        *out_count += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

PWSP_INTERNAL int pwsp_file_append(int file, const void *data, size_t size) {
    const char *bytes = (const char *)data;
    while (size > 0) {
        ssize_t taken = write(file, bytes, size);
        if (taken < 0 && errno != EINTR) {
            return errno;
        }
        size_t count = taken > 0 ? (size_t)taken : 0;
        PTOWSP_ASSERT(count <= size);
        bytes += count;
        size -= count;
    }
    return 0;
}

PWSP_INTERNAL int pwsp_file_make(const char *path, uint32_t mode, int *out_file) {
    if (unlink(path) != 0 && errno != ENOENT) {
        return errno;
    }
    int file = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL, 0600);
    if (file < 0) {
        return errno;
    }
    pwsp_file_close_on_exec(file);
    if (chmod(path, (mode_t)mode) != 0) {
        int wrong = errno;
        close(file);
        unlink(path);
        return wrong;
    }
    *out_file = file;
    return 0;
}

PWSP_INTERNAL int pwsp_file_replace(int file, const char *made, const char *path) {
    return fsync(file) != 0 || rename(made, path) != 0 ? errno : 0;
}

PWSP_INTERNAL void pwsp_file_remove(const char *path) {
    unlink(path);
}

PWSP_INTERNAL bool pwsp_file_is_link(const char *path) {
    char first;
    return readlink(path, &first, 1) >= 0;
}
