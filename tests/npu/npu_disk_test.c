// A disk that fails: emitting, replacing and building trees, with each call of the system refused in
// turn, the first, the second, and so on until one run makes all of its calls.
//
// The functions here stand before those of the C library, which the linker finds behind the test.
// Of one refused call the state must be whole: the new tree, or what was there before, and an error
// that has the system's words. After a disk that refuses from some call on, nothing is promised but an
// error, no crash, and that the next run on a good disk does its work.

#define _GNU_SOURCE  // RTLD_NEXT

#include "npu_build_fixture.h"
#include "npu_files.h"
#include "real.h"

#include <fcntl.h>

static struct {
    bool is_on, is_for_good;  // refuses; all calls from one on
    bool is_in_child;         // only calls of children
    pid_t process;
    const char *only;       // these functions; NULL: all
    const char *only_path;  // of fopen; NULL: any
    uint64_t calls, refused_at;
    const char *refused;  // the function of the first refused call
    uint64_t closed_again;
} disk;

// Is it among names with blanks between them?
static bool is_among(const char *names, const char *name) {
    const size_t length = strlen(name);
    for (const char *found = strstr(names, name); found; found = strstr(found + 1, name)) {
        if ((found == names || found[-1] == ' ') && strchr(" ", found[length])) {
            return true;
        }
    }
    return false;
}

static bool disk_refuses(const char *name) {
    if (!disk.is_on || disk.is_in_child != (getpid() != disk.process) ||
        (disk.only && !is_among(disk.only, name))) {
        return false;
    }
    disk.calls++;
    if (disk.calls != disk.refused_at && !(disk.is_for_good && disk.calls > disk.refused_at)) {
        return false;
    }
    disk.refused = disk.refused ? disk.refused : name;
    errno = EIO;
    return true;
}

// A function of the system, and what it returns when it is refused.
#define CALL(type, name, params, args, refusal)                                                    \
    type name params {                                                                             \
        REAL(name);                                                                                \
        return disk_refuses(#name) ? refusal : real args;                                          \
    }

CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
CALL(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), -1)
CALL(int, rename, (const char *from, const char *to), (from, to), -1)
CALL(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), -1)
CALL(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), -1)
CALL(int, fsync, (int fd), (fd), -1)
CALL(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), -1)
CALL(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size), -1)
CALL(ssize_t, readlink, (const char *path, char *data, size_t size), (path, data, size), -1)
CALL(int, stat, (const char *path, struct stat *out), (path, out), -1)
CALL(int, lstat, (const char *path, struct stat *out), (path, out), -1)
CALL(int, fstat, (int fd, struct stat *out), (fd, out), -1)
CALL(int, fstatat, (int fd, const char *path, struct stat *out, int flags), (fd, path, out, flags),
     -1)

FILE *fopen(const char *path, const char *mode) {
    REAL(fopen);
    const bool is_meant = !disk.only_path || strcmp(disk.only_path, path) == 0;
    return is_meant && disk_refuses("fopen") ? NULL : real(path, mode);
}

CALL(DIR *, opendir, (const char *path), (path), NULL)
CALL(DIR *, fdopendir, (int fd), (fd), NULL)

CALL(pid_t, fork, (void), (), -1)
CALL(int, chdir, (const char *path), (path), -1)
CALL(int, dup2, (int from, int to), (from, to), -1)

#if defined(PTOWSP_COVERAGE)
// What a child has counted is lost where it becomes another program, or ends without its exit.
int execvp(const char *path, char *const args[]) {
    REAL(execvp);
    __llvm_profile_write_file();
    return real(path, args);
}

void _exit(int status) {
    __typeof__(&_exit) real;
    void *found = dlsym(RTLD_NEXT, "_exit");
    memcpy(&real, &found, sizeof real);
    __llvm_profile_write_file();
    real(status);
    abort();
}
#endif

// Never refused, but a file that is closed twice may be another thread's.
int close(int fd) {
    REAL(close);
    const int result = real(fd);
    disk.closed_again += result != 0 && errno == EBADF;
    return result;
}

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
    REAL(open);
    return disk_refuses("open") ? -1 : real(path, flags, mode);
}

int openat(int fd, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
    REAL(openat);
    return disk_refuses("openat") ? -1 : real(fd, path, flags, mode);
}

static bool disk_refused_one_of(const char *names) {
    return disk.refused && is_among(names, disk.refused);
}

static void disk_begin(uint64_t refused_at, bool is_for_good) {
    disk.calls = 0;
    disk.process = getpid();
    disk.refused_at = refused_at;
    disk.is_for_good = is_for_good;
    disk.refused = NULL;
    disk.is_on = true;
}

// Whether the call was made, and so refused.
static bool disk_end(void) {
    disk.is_on = false;
    return disk.refused != NULL;
}

// -- trees ----------------------------------------------------------------------------------------

typedef struct trees {
    npu_fixture f;
    char path[128];
    uint32_t file_count;
} trees;

static void trees_make(trees *t) {
    memset(t, 0, sizeof *t);
    npu_fixture_make(&t->f);
    snprintf(t->path, sizeof t->path, "%s/tree", t->f.directory);
    const ptowsp_npu_desc desc = {t->path, false, true, PTOWSP_NPU_OWN, 0, 0, NULL};
    assert_ok(ptowsp_npu_emit(t->f.context, t->f.program, &desc));
    t->file_count = files_below(t->path);
    assert_true(t->file_count > 20);
}

// There is nothing, or a tree to be replaced, with a file more. As it is after most errors.
static void trees_reset(trees *t, bool has_tree) {
    const uint32_t beside = npu_entries(t->f.directory);
    const bool is_whole = is_there(t->path, "older") && files_below(t->path) == t->file_count + 1;
    if (has_tree ? is_whole && beside == 1 : beside == 0) {
        return;
    }
    npu_remove_all(t->f.directory);
    assert_int_equal(mkdir(t->f.directory, 0755), 0);
    if (has_tree) {
        const ptowsp_npu_desc desc = {t->path, false, true, PTOWSP_NPU_OWN, 0, 0, NULL};
        assert_ok(ptowsp_npu_emit(t->f.context, t->f.program, &desc));
        write_file(t->path, "older", "a file of the tree that was there\n");
    }
}

// Whether an error has this part; says what it has otherwise.
static bool says(const ptowsp_context *context, const char *part) {
    const char *text = ptowsp_context_error(context).text;
    const bool has_part = strstr(text, part) != NULL;
    if (!has_part) {
        print_message("call %llu, %s: %s\n", (unsigned long long)disk.refused_at,
                      disk.refused ? disk.refused : "none", text);
    }
    return has_part;
}

static void check_whole(const trees *t, bool was_there, ptowsp_status status) {
    const ptowsp_context *context = t->f.context;
    const bool is_new = is_there(t->path, "manifest.json") && !is_there(t->path, "older");
    const uint32_t count = files_below(t->path), beside = npu_entries(t->f.directory);
    assert_true(!disk_refused_one_of("write") ||
                (status == PTOWSP_SYSTEM_FAILED && says(context, "emit: cannot write /")));
    if (is_new && was_there && status != PTOWSP_OK) {
        assert_int_equal(status, PTOWSP_SYSTEM_FAILED);
        assert_true(says(context, "is replaced, but the tree that was there cannot be removed"));
        assert_true(count == t->file_count && beside == 2);
    } else if (status == PTOWSP_OK) {
        assert_true(is_new && count == t->file_count && beside == 1);
    } else {
        // What cannot be looked into is not replaced.
        assert_true(status == PTOWSP_SYSTEM_FAILED ? says(context, strerror(EIO))
                                                   : was_there && status == PTOWSP_INVALID_PARAMS &&
                                                         says(context, "is not replaced"));
        assert_int_equal(count, was_there ? t->file_count + 1 : 0);
        assert_int_equal(beside, was_there ? 1 : 0);
    }
}

static void emit_refused(trees *t, bool was_there, bool is_for_good) {
    uint64_t n = 1, ended = 0;
    for (bool is_refused = true; is_refused; n++) {
        const ptowsp_npu_desc desc = {t->path, was_there, true, PTOWSP_NPU_OWN, 0, 0, NULL};
        trees_reset(t, was_there);
        disk_begin(n, is_for_good);
        const ptowsp_status status = ptowsp_npu_emit(t->f.context, t->f.program, &desc);
        is_refused = disk_end();
        ended += status != PTOWSP_OK;
        if (is_for_good) {
            assert_true(status != PTOWSP_OK || !is_refused || disk_refused_one_of("unlinkat"));
        } else {
            check_whole(t, was_there, status);
        }
    }
    print_message("%llu calls, %llu of them end it\n", (unsigned long long)n - 2,
                  (unsigned long long)ended);
    assert_true(ended > t->file_count);
}

#define TREES_TEST(name) TEST_MADE(name, trees, t, trees_make(t), npu_fixture_free(&t->f))

TREES_TEST(disk__a_refused_call_leaves_the_new_tree_or_nothing) {
    emit_refused(t, false, false);
}

TREES_TEST(disk__a_refused_call_leaves_the_new_tree_or_the_old_one) {
    emit_refused(t, true, false);
}

TREES_TEST(disk__that_refuses_from_then_on_is_an_error) {
    emit_refused(t, true, true);
}

// -- builds ---------------------------------------------------------------------------------------

// Builds with a refused call after another, then without one. An entry that is there is found, and
// where it is not, most of the calls are made to write and compile, and a part of them is refused if
// rounds are few: every fifth, and those of functions that are seldom called.
static void build_refused(build *b, bool is_found, bool is_for_good) {
    const uint64_t step = is_found || disk.only || test_percent() >= 100 ? 1 : 5;
    uint64_t n = 1, ended = 0;
    for (bool is_refused = true; is_refused; n += step) {
        if (!is_found) {
            npu_remove_all(b->cache);
        }
        const uint32_t before = entries_like(b->cache, "tmp.");
        disk_begin(n, is_for_good);
        const ptowsp_status status = try_build(b);
        is_refused = disk_end();
        assert_true((status == PTOWSP_OK) == (b->npu != NULL));
        if (status != PTOWSP_OK) {
            assert_int_equal(status, PTOWSP_SYSTEM_FAILED);
            assert_true(ptowsp_context_error(b->f.context).text[0] != '\0');
            // What a compiler has made is looked at; if that fails, it is as if nothing were there.
            assert_true(is_for_good || disk_refused_one_of("stat") ||
                        says(b->f.context, strerror(EIO)));
            ended++;
        }
        // What could not be removed has the mark of a temporary, and is removed when it is old.
        const bool is_removal = disk_refused_one_of("unlinkat fstatat openat fdopendir");
        assert_true(is_for_good || entries_like(b->cache, "tmp.") <= before + is_removal);
        assert_ok(try_build(b));
    }
    print_message("up to call %llu, %llu end it\n", (unsigned long long)(n - 1 - step),
                  (unsigned long long)ended);
    assert_true(ended > 0);
}

BUILD_TEST(disk__a_refused_call_while_an_entry_is_found) {
    // Behind a link, which is read as well.
    char link[160];
    snprintf(link, sizeof link, "%s/link", b->f.directory);
    assert_int_equal(symlink("cache", link), 0);
    assert_int_equal(mkdir(b->cache, 0700), 0);
    b->desc.cache_directory = link;
    assert_ok(try_build(b));
    build_refused(b, true, false);
}

// What the processor is, is part of the key where options say native; without its description, the
// machine's name.
BUILD_TEST(disk__without_a_processors_description_the_machine_has_a_name) {
    b->desc.options = "-O0 -march=native";
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        disk.only_path = is_refused ? "/proc/cpuinfo" : NULL;
        for (int time = 0; time < 2; time++) {  // it is found again
            disk.only = "fopen";
            disk_begin((uint64_t)is_refused, false);
            assert_ok(try_build(b));
            assert_int_equal(disk_end(), is_refused);
            disk.only = NULL;
            assert_int_equal(ptowsp_npu_was_cached(b->npu), time);
        }
    }
    disk.only_path = NULL;
}

BUILD_TEST(disk__a_refused_call_while_an_entry_is_made) {
    build_refused(b, false, false);
    if (test_percent() < 100) {
        disk.only = "mkdir rename fopen";
        build_refused(b, false, false);
        disk.only = NULL;
    }
}

// Where the child cannot go to the tree, or has no files, the compiler is not run. It counts its calls
// on its own: chdir is the first, dup2 the next three.
BUILD_TEST(disk__a_child_that_cannot_begin_is_told) {
    for (uint64_t n = 0; n < 5; n++) {
        char text[300];
        disk.is_in_child = true;
        disk_begin(n, false);
        const ptowsp_status status = try_build(b);
        disk_end();
        disk.is_in_child = false;
        if (n == 0) {
            assert_int_equal(status, PTOWSP_OK);
        } else {
            assert_int_equal(status, PTOWSP_SYSTEM_FAILED);
            snprintf(
                text, sizeof text,
                "npu: the compiler %s does not work: asked for its --version, it exits with 126",
                b->compiler);
            test_error_is(b->f.context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, text);
        }
    }
}

// Files that would be standard ones are moved, when the caller has closed those.
BUILD_TEST(disk__no_file_is_closed_twice) {
    const int input = dup(0);
    assert_true(input > 2);
    close(0);
    disk.closed_again = 0;
    const ptowsp_status status = try_build(b);
    const uint64_t closed_again = disk.closed_again;
    assert_int_equal(dup2(input, 0), 0);
    close(input);
    assert_int_equal(status, PTOWSP_OK);
    assert_int_equal(closed_again, 0);
}
