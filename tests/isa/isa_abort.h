// Runs what has to end its process by abort() in a process of its own.

#ifndef ISA_ABORT_H
#define ISA_ABORT_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(PTOWSP_COVERAGE)
#ifdef __cplusplus
extern "C"
#endif
    int
    __llvm_profile_write_file(void);

// abort() keeps no counts; when this returns, it ends the process.
static inline void isa_keep_counts(int number) {
    (void)number;
    __llvm_profile_write_file();
}
#endif

// Expects fn to abort, once it has written the text to stderr.
static inline void isa_expect_abort(void (*fn)(void), const char *want) {
    int ends[2];
    char got[256];
    size_t length = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
#if defined(PTOWSP_COVERAGE)
        signal(SIGABRT, isa_keep_counts);
#else
        signal(SIGABRT, SIG_DFL);  // not the test program's
#endif
        fn();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t n; length + 1 < sizeof got &&
                    (n = read(ends[0], got + length, sizeof got - 1 - length)) > 0;) {
        length += (size_t)n;
    }
    got[length] = 0;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_string_equal(got, want);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

#endif
