// Runs programs by their argument vectors, without a shell. Only processes started here are waited
// for, by their ids, so the caller's own children are left alone.

#include "npu_build.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

NPU_INTERNAL void npu_argument(npu_text *arguments, const char *format, ...) {
    va_list args;
    va_start(args, format);
    npu_vprint(arguments, format, args);
    va_end(args);
    npu_write(arguments, "", 1);
}

NPU_INTERNAL void npu_argument_words(npu_text *arguments, const char *words) {
    while (*words) {
        size_t length = strcspn(words, " ");
        if (length) {
            npu_write(arguments, words, length);
            npu_write(arguments, "", 1);
        }
        words += length + (words[length] != '\0');
    }
}

NPU_INTERNAL void npu_print_arguments(npu_text *text, const npu_text *arguments) {
    for (size_t i = 0; i < arguments->size; i += strlen(arguments->data + i) + 1) {
        npu_print(text, "%s%s", i ? " " : "", arguments->data + i);
    }
    npu_print(text, "\n");
}

// In the child: only calls that are allowed after fork, because other threads may have held locks.
static void npu_process_become(char **arguments, const char *directory, int input, int output) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_DFL);  // a compiler waits for its own children, and would inherit SIG_IGN
    if (chdir(directory) == 0 && dup2(input, 0) >= 0 && dup2(output, 1) >= 0 &&
        dup2(output, 2) >= 0) {
        execvp(arguments[0], arguments);
    }
    _exit(errno == ENOENT || errno == ENOTDIR ? NPU_EXIT_NOT_FOUND : NPU_EXIT_NOT_RUN);
}

// Opens a file with a descriptor above the three standard ones, which the caller may have closed.
static int npu_process_open(const char *path, int flags) {
    int file = open(path, flags | O_CLOEXEC, 0600);
    if (file < 0 || file > 2) {
        return file;
    }
    int moved = fcntl(file, F_DUPFD_CLOEXEC, 3);
    close(file);
    return moved;
}

NPU_INTERNAL int npu_process_start(const npu_text *arguments, const char *directory,
                                   const char *output, pid_t *out_process) {
    size_t count = 0, next = 0;
    for (size_t i = 0; i < arguments->size; i++) {
        count += arguments->data[i] == '\0';
    }
    char **vector = (char **)npu_resize(NULL, (count + 1) * sizeof *vector);
    if (!vector || arguments->is_out_of_memory) {
        npu_resize(vector, 0);
        return ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        vector[i] = arguments->data + next;
        next += strlen(vector[i]) + 1;
    }
    vector[count] = NULL;
    int error = 0, null = npu_process_open("/dev/null", O_RDONLY);
    int file = npu_process_open(output, O_WRONLY | O_CREAT | O_TRUNC);
    if (null < 0 || file < 0) {
        error = errno;
    } else {
        *out_process = fork();
        if (*out_process == 0) {
            npu_process_become(vector, directory, null, file);
        }
        error = *out_process < 0 ? errno : 0;
    }
    if (null >= 0) {
        close(null);
    }
    if (file >= 0) {
        close(file);
    }
    npu_resize(vector, 0);
    return error;
}

NPU_INTERNAL int npu_process_wait(pid_t process) {
    int state;
    while (waitpid(process, &state, 0) < 0) {
        if (errno != EINTR) {
            return 0;  // the caller ignores SIGCHLD, so the status is lost: the output will tell
        }
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}
