// Tuning files on a disk that fails: each call of the system is refused in turn, and each is interrupted.
// An interrupted call is made again. A refused one is an error with the system's words; the file then has
// all its records, or those and the one that was added, and no line of it is damaged.
//
// The functions here stand before those of the C library, which the linker finds behind the test.

#define _GNU_SOURCE  // RTLD_NEXT

#include "test.h"

#include "real.h"

// A lock is waited for 50 ms here.
#define PWSP_FILE_LOCK_NS UINT64_C(50000000)
#include "src/tune/tuning_file.c"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static struct {
    bool is_on;
    int how;  // the errno of the call that fails
    uint64_t calls, refused_at;
    bool has_refused;
    const char *emptied;  // before the next read another program leaves nothing of this file
} disk;

static bool refuses(void) {
    if (!disk.is_on || ++disk.calls != disk.refused_at) {
        return false;
    }
    disk.has_refused = true;
    errno = disk.how;
    return true;
}

// A call that can be interrupted; others only fail.
static bool refuses_unless_interrupted(void) {
    return (!disk.is_on || disk.how != EINTR) && refuses();
}

#define CALL(type, name, refuse, params, args)                                                     \
    type name params {                                                                             \
        REAL(name);                                                                                \
        return refuse() ? -1 : real args;                                                          \
    }

CALL(ssize_t, write, refuses, (int fd, const void *data, size_t size), (fd, data, size))
CALL(int, fstat, refuses_unless_interrupted, (int fd, struct stat *out), (fd, out))
CALL(int, fsync, refuses_unless_interrupted, (int fd), (fd))
CALL(int, rename, refuses_unless_interrupted, (const char *from, const char *to), (from, to))
CALL(int, chmod, refuses_unless_interrupted, (const char *path, mode_t mode), (path, mode))
CALL(int, unlink, refuses_unless_interrupted, (const char *path), (path))

ssize_t read(int fd, void *data, size_t size) {
    REAL(read);
    if (disk.emptied) {
        assert_int_equal(truncate(disk.emptied, 0), 0);
        disk.emptied = NULL;
    }
    return refuses() ? -1 : real(fd, data, size);
}

// Unlocking a file that is open does not fail.
int flock(int fd, int how) {
    REAL(flock);
    return how != LOCK_UN && refuses() ? -1 : real(fd, how);
}

off_t lseek(int fd, off_t offset, int whence) {
    REAL(lseek);
    return refuses_unless_interrupted() ? (off_t)-1 : real(fd, offset, whence);
}

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
    REAL(open);
    return refuses_unless_interrupted() ? -1 : real(path, flags, mode);
}

// -- what is done ---------------------------------------------------------------------------------

enum { BEFORE = 5, KEEP = 2 };

static ptowsp_tuning_key key_of(uint64_t kernel) {
    ptowsp_tuning_key key = {.kernel = kernel, .machine = "here"};
    return key;
}

static char path[64];

// A file with records of one key, in one go.
static void write_file(ptowsp_context *context) {
    ptowsp_tuning *tuning;
    const ptowsp_tuning_key key = key_of(1);
    snprintf(path, sizeof path, "/tmp/ptowsp_tune_disk_%d", (int)getpid());
    unlink(path);
    assert_ok(ptowsp_tuning_create(context, path, &tuning));
    for (int i = 0; i < BEFORE; i++) {
        assert_ok(ptowsp_tuning_add(tuning, &key, 1 + i, "x"));
    }
    ptowsp_tuning_destroy(tuning);
}

// Opens, adds one, reads, compacts; the first error.
static ptowsp_status use(ptowsp_context *context, bool *has_added, bool *has_compacted) {
    ptowsp_tuning *tuning = NULL;
    const ptowsp_tuning_key key = key_of(2);
    ptowsp_status status = ptowsp_tuning_create(context, path, &tuning);
    status = status ? status : ptowsp_tuning_add(tuning, &key, 7, NULL);
    *has_added = status == PTOWSP_OK;
    status = status ? status : ptowsp_tuning_refresh(tuning);
    status = status ? status : ptowsp_tuning_compact(tuning, KEEP);
    *has_compacted = status == PTOWSP_OK;
    ptowsp_tuning_destroy(tuning);
    return status;
}

// The file as a good disk has it: nothing is damaged, nothing is lost.
static void check_file(ptowsp_context *context, bool has_added, bool has_compacted) {
    ptowsp_tuning *tuning;
    assert_ok(ptowsp_tuning_create(context, path, &tuning));
    const ptowsp_tuning_stats stats = ptowsp_tuning_count(tuning);
    const ptowsp_tuning_key first = key_of(1), second = key_of(2);
    ptowsp_tuning_value value;
    assert_int_equal(stats.damaged_count, 0);
    assert_int_equal(stats.tail_bytes, 0);
    assert_true(ptowsp_tuning_find(tuning, &first, &value));
    // Compacted, or not, where the last call failed: the new file was in place already, or is not.
    assert_true(value.count == KEEP || (!has_compacted && value.count == BEFORE));
    assert_true(value.newest == (double)BEFORE);
    const bool is_there = ptowsp_tuning_find(tuning, &second, &value);
    assert_true(is_there || !has_added);
    assert_true(!is_there || value.newest == 7);
    ptowsp_tuning_destroy(tuning);
}

CONTEXT_TEST(disk__may_refuse_or_interrupt_any_call) {
    static const int hows[3] = {EIO, ENOSPC, EINTR};
    for (int i = 0; i < 3; i++) {
        uint64_t errors = 0;
        for (uint64_t n = 1;; n++) {
            bool has_added, has_compacted;
            write_file(context);
            memset(&disk, 0, sizeof disk);
            disk.how = hows[i];
            disk.refused_at = n;
            disk.is_on = true;
            const ptowsp_status status = use(context, &has_added, &has_compacted);
            disk.is_on = false;
            if (hows[i] == EINTR || !disk.has_refused) {
                assert_ok(status);
            } else if (status != PTOWSP_OK) {
                errors++;
                assert_int_equal(status, PTOWSP_SYSTEM_FAILED);
                if (!strstr(ptowsp_context_error(context).text, strerror(hows[i]))) {
                    fail_msg("call %d: %s", (int)n, ptowsp_context_error(context).text);
                }
            }
            check_file(context, has_added, has_compacted);
            if (!disk.has_refused) {
                break;
            }
        }
        assert_true(hows[i] == EINTR ? errors == 0 : errors > 10);
    }
    unlink(path);
}

// The lock is advice: what does not ask for it may shorten the file between a look at its size and the read.
CONTEXT_TEST(disk__a_file_that_becomes_empty_while_it_is_read_has_no_records) {
    ptowsp_tuning *tuning;
    ptowsp_tuning_value value;
    const ptowsp_tuning_key key = key_of(1);
    write_file(context);
    memset(&disk, 0, sizeof disk);
    disk.emptied = path;
    assert_ok(ptowsp_tuning_create(context, path, &tuning));
    assert_null(disk.emptied);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ptowsp_tuning_count(tuning).record_count, 0);
        assert_int_equal(ptowsp_tuning_count(tuning).damaged_count, 0);
        assert_false(ptowsp_tuning_find(tuning, &key, &value));
        assert_ok(ptowsp_tuning_refresh(tuning));
    }
    assert_int_equal(ptowsp_tuning_count(tuning).tail_bytes, 0);
    assert_ok(ptowsp_tuning_add(tuning, &key, 3, NULL));
    assert_true(ptowsp_tuning_find(tuning, &key, &value));
    assert_true(value.count == 1 && value.newest == 3);
    ptowsp_tuning_destroy(tuning);
    unlink(path);
}

// -- locks that others have -----------------------------------------------------------------------

static int held;  // a descriptor whose lock another one does not get

static void *release_later(void *arg) {
    (void)arg;
    usleep(5000);
    flock(held, LOCK_UN);
    return NULL;
}

CONTEXT_TEST(disk__a_lock_that_another_has_is_waited_for_with_a_limit) {
    ptowsp_tuning *tuning, *second = NULL;
    const ptowsp_tuning_key key = key_of(1);
    char text[400];
    write_file(context);
    snprintf(text, sizeof text,
             "tuning: cannot open %s: another process has held its lock for 10 s: end that process "
             "(fuser names it), or use a copy of the file",
             path);
    memset(&disk, 0, sizeof disk);
    assert_ok(ptowsp_tuning_create(context, path, &tuning));
    held = open(path, O_RDWR);
    assert_true(held >= 0);
    assert_int_equal(flock(held, LOCK_SH), 0);  // readers read beside each other
    assert_ok(ptowsp_tuning_refresh(tuning));
    for (int how = 0; how < 2; how++) {
        assert_int_equal(flock(held, how ? LOCK_EX : LOCK_SH), 0);
        test_refused(context, ptowsp_tuning_add(tuning, &key, 1, NULL), PTOWSP_SYSTEM_FAILED,
                     PTOWSP_NO_INDEX, text);
        test_refused(context, ptowsp_tuning_compact(tuning, 0), PTOWSP_SYSTEM_FAILED,
                     PTOWSP_NO_INDEX, text);
    }
    test_refused(context, ptowsp_tuning_refresh(tuning), PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                 text);
    assert_int_equal(ptowsp_tuning_create(context, path, &second), PTOWSP_SYSTEM_FAILED);
    assert_null(second);
    assert_int_equal(ptowsp_tuning_count(tuning).record_count, BEFORE);  // as they were
    assert_int_equal(flock(held, LOCK_UN), 0);
    assert_ok(ptowsp_tuning_add(tuning, &key, 8, NULL));
    // Once it is released, the one that waits gets it. (Unless the thread comes too late, for which
    // the call is made again.)
    ptowsp_status status;
    do {
        pthread_t thread;
        assert_int_equal(flock(held, LOCK_EX), 0);
        assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
        status = ptowsp_tuning_add(tuning, &key, 9, NULL);
        pthread_join(thread, NULL);
    } while (status == PTOWSP_SYSTEM_FAILED);
    assert_ok(status);
    close(held);
    ptowsp_tuning_destroy(tuning);
    unlink(path);
}
