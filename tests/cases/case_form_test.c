// The runner of cases refuses what it does not compare. Each row has a fault in a case or a file of
// cases, and the complaint; without the fault, which is the text beside it, the case passes.
//
// A case runs as in cases_test, in a process of its own that is given a file.

#define _POSIX_C_SOURCE 200809L

int cases_main(int count, char **paths);

#define main cases_main
#include "cases_test.c"
#undef main

#include "support/files.h"

#include <sys/wait.h>
#include <unistd.h>

// What stands before the case; %s is a line for the fault in the head of the file.
#define HEAD                                                                                       \
    "from paper\n"                                                                                 \
    "define callee work(3, 8)\n"                                                                   \
    "%s\n"                                                                                         \
    "function work cycles_0\n"                                                                     \
    "function reads cycles_0\n"                                                                    \
    "kernel work(axes 2) vector, cycles by a cost function\n"                                      \
    "kernel reads(axes 2, in tile i32 2 x 2) vector, cycles by a cost function\n"                  \
    "# rule: 18 Schedules: test\n"                                                                 \
    "module m\n"                                                                                   \
    "tensor x i32 [2, 2] global\n"                                                                 \
    "workload main\n"                                                                              \
    "  task $callee\n"                                                                             \
    "  task reads(4, 9) tile = x\n"                                                                \
    "case c\n"

enum { FORM_TEXT_MAX = 1024 };

typedef struct form_row {
    char head[FORM_TEXT_MAX], good[FORM_TEXT_MAX];     // a line of the head, lines of the case
    char bad_head[FORM_TEXT_MAX], bad[FORM_TEXT_MAX];  // as the good ones, if they are not said
    char complaint[FORM_TEXT_MAX];
} form_row;

// Reads the next row from a text; false at its end.
static bool next_row(const char **at, form_row *row) {
    const struct {
        const char *word;
        char *text;
    } fields[] = {{"head ", row->head},
                  {"good ", row->good},
                  {"bad head ", row->bad_head},
                  {"bad ", row->bad},
                  {"says ", row->complaint}};
    char *text = NULL;
    memset(row, 0, sizeof *row);
    while (**at && !row->complaint[0]) {
        const size_t length = strcspn(*at, "\n");
        const bool is_more = **at == '|';
        size_t f = 0, begin = 2;
        while (!is_more && f < COUNT_OF(fields) && !case_begins(*at, fields[f].word)) {
            f++;
        }
        if (!is_more && f < COUNT_OF(fields)) {
            text = fields[f].text;
            begin = strlen(fields[f].word);
        }
        if (is_more || f < COUNT_OF(fields)) {
            assert_true(text && strlen(text) + length < FORM_TEXT_MAX);
            sprintf(text + strlen(text), "%s%.*s", is_more ? "\n" : "", (int)(length - begin),
                    *at + begin);
        }
        *at += length + ((*at)[length] == '\n');
    }
    return row->complaint[0] != '\0';
}

// Runs a file in a process. Its output is then in `output`; false if it has failed.
static bool passes(const char *text, char *output, size_t size) {
    char path[] = "/tmp/ptowsp_case_form_XXXXXX", log[] = "/tmp/ptowsp_case_form_XXXXXX";
    int file = mkstemp(path), out = mkstemp(log), status = 0;
    assert_true(file >= 0 && out >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    fflush(stdout);
    fflush(stderr);
    pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0) {
        char name[] = "cases", *paths[] = {name, path, NULL};
        dup2(out, 1);
        dup2(out, 2);
        status = cases_main(2, paths);
        fflush(stdout);
        fflush(stderr);
        test_exit(status != 0);
    }
    waitpid(process, &status, 0);
    ssize_t length = pread(out, output, size - 1, 0);
    output[length > 0 ? length : 0] = '\0';
    close(file);
    close(out);
    remove(path);
    remove(log);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void text_of(char *text, size_t size, const char *head, const char *lines) {
    int length = snprintf(text, size, HEAD "  %s\n", head, lines);
    assert_true(length > 0 && (size_t)length < size);
}

TEST(case_form__the_runner_refuses_what_it_does_not_compare) {
    static char rows[1 << 15], text[4096], output[16384];
    static form_row form;
    const form_row *row = &form;
    size_t failed = 0, count = 0;
    for (const char *at = file_text("tests/cases/form.txt", rows, sizeof rows);
         next_row(&at, &form); count++) {
        text_of(text, sizeof text, row->head, row->good);
        if (!passes(text, output, sizeof output)) {
            print_error("this has to pass: %s\n%s", row->good, output);
            failed++;
        }
        text_of(text, sizeof text, row->bad_head[0] ? row->bad_head : row->head,
                row->bad[0] ? row->bad : row->good);
        if (passes(text, output, sizeof output) || !strstr(output, row->complaint)) {
            print_error("\"%s\" is not said of: %s\n%s", row->complaint, text, output);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
    assert_in_range(count, 105, 1000);  // none is left out unnoticed
}
