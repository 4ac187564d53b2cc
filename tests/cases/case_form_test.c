// The runner of cases refuses what it does not compare. Each row has a fault in a case or a file of
// cases, and the complaint; without the fault, which is the text beside it, the case passes.
//
// A case runs as in cases_test, in a process of its own that is given a file.

#define _POSIX_C_SOURCE 200809L

int cases_main(int count, char **paths);

#define main cases_main
#include "cases_test.c"
#undef main

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

typedef struct form_row {
    const char *head, *good;     // a line of the head, lines of the case
    const char *bad_head, *bad;  // NULL: as the good ones
    const char *complaint;
} form_row;

#define MODES "mode one: issue in order\nmode two, no sooner than one: issue in order"
// A kernel that is not a C function: three instructions on 4 elements each.
#define TILES                                                                                      \
    "define callee tile(3, 8) a = x\n"                                                             \
    "kernel tile(axes 2, inout a i32 2 x 2) vector, 0 instructions\n"                              \
    "  %1 = parameter a\n"                                                                         \
    "  %2 = add %1, %1\n"                                                                          \
    "  store %1, %2"
#define UNREAD(text) "this is not read: \"" text "\""

static const form_row rows[] = {
    // Texts are read to their ends.
    {"", "makespan 7", NULL, "makespan 7 and busy 999", UNREAD("and busy 999")},
    {"", "busy 7", NULL, "busy 7, count 9", UNREAD(", count 9")},
    {"", "lanes 2", NULL, "lanes 2 rubbish", UNREAD("rubbish")},
    {"", "on_lanes 2 7", NULL, "on_lanes 2 7 9", UNREAD("9")},
    {"", "stalled lane 0", NULL, "stalled lane 0 999", UNREAD("999")},
    {"", "path 0 1", NULL, "path 0 1 rubbish", UNREAD("rubbish")},
    {"", "slot 1 0", NULL, "slot 1 0, slot 2 9", UNREAD(", slot 2 9")},
    {"", "calls 3, 4", NULL, "calls 3, 4 rubbish", UNREAD("rubbish")},
    {"", "task 1: 3 7", NULL, "task 1 3 7", "\":\" is missing"},
    {"", "task 1: 3 7", NULL, "task 1:", "nothing is compared"},
    {"", "lane 0: tasks 2", NULL, "lane 0", "nothing is compared"},
    {"", "reports work / reads", NULL, "reports work /  / reads", "a part is empty"},
    {"", "count 2; unreported rubbish", NULL, "count 2; unreported", "nothing is compared"},
    {"", "writes csv: 1 times \"reads\"", NULL, "writes csv: 2 times \"reads\"",
     "is there 1 times"},
    {"", "writes run: 7 cycles", NULL, "writes run: 8 cycles", "is there 0 times"},
    {"", "omits run: 8 cycles", NULL, "omits run: 7 cycles", "is there 1 times"},
    {"", "writes csv: reads", NULL, "writes csv:", "nothing is compared"},
    {"", "writes csv: reads", NULL, "writes cvs: reads", "is an output"},
    {"", "writes csv: reads", NULL, "writes csv long: reads", "there is no option long"},
    {"", "sums x 0 0", NULL, "sums x", "a number is missing"},
    {"", "elements x 0*4", NULL, "elements x 0*", "tensor x does not have"},
    {"", "with tensor x = 2*4; elements x 2*4", NULL, "with tensor x 2*4; elements x 2*4",
     "\"=\" is missing"},
    {"", "with tensor x rule 0 1 5 0 1; elements x 1*4", NULL,
     "with tensor x rule 0 1 5 0 1 transposes; elements x 1*4", UNREAD("transposes")},
    {"", "with slot 1 5; slot 1 5", NULL, "with slot 1 5 6; slot 1 5", UNREAD("6")},
    // Words and modes are known.
    {"", "makespan 7", NULL, "makespan 7; rubbish 1", "nothing is expected with rubbish"},
    {MODES, "count 2\n  under one: makespan 7", NULL, "count 2\n  under no_such_mode: makespan 999",
     "there is no mode \"no_such_mode\""},
    {MODES, "count 2\n  under two: makespan 7", NULL, "count 2\n  under two: makespan 999",
     "makespan (0) is 7, not 999"},
    {MODES, "count 2\n  under one: makespan 7", NULL, "count 2\n  under one: makespan 8",
     "c, one, built: makespan (0) is 7, not 8"},
    {MODES, "count 2", "mode one: issue in order\nmode two, no sooner than three:", NULL,
     "there is no mode \"three\""},
    {MODES, "count 2\n  under one, two: busy 7", NULL, "count 2\n  under one busy 7",
     "a colon is missing after \"under\""},
    // Something is compared, everywhere.
    {"", "makespan 7", NULL, "with slot 1 5", "nothing is compared"},
    {MODES, "under one, two: makespan 7", NULL, "under one: makespan 7",
     "c, two, form: nothing is compared"},
    {"", "makespan 7\n  then; makespan 7", NULL, "makespan 7\n  then; with slot 1 5",
     "nothing is compared"},
    {"", "schedule hazards raw\n  count 2\n  schedule hazards war\n  count 2", NULL,
     "schedule hazards raw\n  count 2\n  schedule hazards war", "nothing is compared"},
    {"", "schedule window stall at 0 tasks\n  refused INVALID_PARAMS", NULL,
     "schedule window stall at 0 tasks\n  refused INVALID_PARAMS\n  makespan 999; no_such_word 1",
     "makespan is never compared: the program is refused"},
    // Arguments of tasks: all of them, also where no kernel is called.
    {"", "tasks work(3, 8): 0 0 3, reads(4, 9): 0 3 7", NULL,
     "tasks work(3): 0 0 3, reads(4, 9): 0 3 7", "axis arguments of task (0) is 2, not 1"},
    {"", "tasks work(3, 8): 0 0 3, reads(4, 9): 0 3 7", NULL,
     "tasks work(3, 8, 1, 1, 1, 3): 0 0 3, reads(4, 9): 0 3 7",
     "axis arguments of task (0) is 2, not 6"},
    {"", "tasks work(3, 8): 0 0 3, reads(4, 9): 0 3 7", NULL,
     "tasks work(3, 8): 0 0 3, reads(4, 7): 0 3 7", "an axis argument of task (1) is 9, not 7"},
    {"", "tasks work(3, 8): 0 0 3, reads(4, 9): 0 3 7", NULL,
     "tasks work(3, 8) x: 0 0 3, reads(4, 9): 0 3 7", UNREAD("x")},
    {TILES, "tasks tile(3, 8): 0 0 12, reads(4, 9): 0 12 16", NULL,
     "tasks tile(3, 7): 0 0 12, reads(4, 9): 0 12 16", "an axis argument of task (0) is 8, not 7"},
    {"", "records edges\n  edges_of 1: 1<0 structure", NULL,
     "records edges\n  edges_of 1: 1<0 lane", "not 1<0 lane"},
    {"", "makespan 7", NULL, "untouched", "calls of kernels (0) is 2, not 0"},
    {"", "count 2; transients sum 0", NULL, "count 2; transients rubbish 0",
     "there is no number rubbish"},
    {"", "count 2; transients sum 0", NULL, "count 2; lifetimes x 0-1", "not x 0-1"},
    {"", "count 2; transients sum 0", NULL, "count 2; block x: offset 0", "lives: a tensor"},
    // Several ranks.
    {"", "ranks 2; ends 7 7", NULL, "ranks 2; ends 7", "ranks (0) is 1, not 2"},
    {"", "ranks 2; ends 7 7", NULL, "ranks 2; ends 7 8", "end of rank (1) is 7, not 8"},
    {"", "ranks 2; rank 1: makespan 7", NULL, "ranks 2; rank 1: makespan 8",
     "makespan (0) is 7, not 8"},
    {"", "ranks 2; rank 1: makespan 7", NULL, "ranks 2; rank 1: rubbish 8",
     "nothing is expected with rubbish"},
    {"", "ranks 2; makespan 7", NULL, "ranks 2 x; makespan 7", "a number is missing"},
    {"", "ranks 2; makespan 7", NULL, "ranks 0; alone each; makespan 999", "there is no rank 0"},
    {"", "ranks 2; alone 1; makespan 7", NULL, "ranks 2; alone 2; makespan 7",
     "there is no rank 2"},
    {"", "ranks 2, 2000000 cycles a us\n  fails INVALID_PARAMS", NULL,
     "ranks 2, 2000000 cycles a us; makespan 999\n  fails INVALID_PARAMS",
     "results are never compared: the ranks fail"},
    {"", "ranks 2; rank 1: makespan 7", NULL, "ranks 2; rank 7: makespan 999",
     "rank 7 is never compared: it does not run"},
    {"", "ranks 2; alone 1; rank 1: makespan 7", NULL, "ranks 2; alone 1; rank 0: makespan 999",
     "rank 0 is never compared: it does not run"},
    {"", "makespan 7", NULL, "rank 1: makespan 999", "rank 1 is never compared: it does not run"},
    {"", "ranks 2; alone too; group makespan 7", NULL, "ranks 2; alone each; group makespan 999",
     "group is never compared: ranks do not run together"},
    {"", "ranks 2; group makespan 7", NULL, "group makespan 999",
     "group is never compared: ranks do not run together"},
    {"", "ranks 2; alone too; count 2; rank_waits", NULL,
     "ranks 2; alone each; count 2; rank_waits 9 for 9 9 9",
     "rank_waits is never compared: ranks do not run together"},
    {"", "elements x 0*4", NULL, "ranks 2; elements x 999*4",
     "elements is never compared: ranks are not executed"},
    {"", "calls 3, 4", NULL, "ranks 2; calls 999", "calls is never compared"},
    {"", "slot 1 0", NULL, "ranks 2; slot 1 999", "slot is never compared"},
    {"", "sums x 0 0", NULL, "ranks 2; sums x 999 999", "sums is never compared"},
    {"", "ranks 2; makespan 7", NULL, "ranks 2; makespan 7; untouched",
     "untouched is never compared"},
    {"", "ranks 2; makespan 7", NULL, "ranks 2; rank 1: slot 1 999", "slot is never compared"},
    {"", "ranks 2; alone each; makespan 7", NULL, "ranks 2; alone x; makespan 7", "not each"},
    {"", "ranks 2; group makespan 7, messages 0", NULL, "ranks 2; group makespan 7, rubbish 0",
     "there is no number rubbish"},
    {"", "ranks 2; count 2; rank_waits", NULL, "ranks 2; count 2; rank_waits 0 for 0 0 0",
     "waits for ranks (0) is 0"},
    {"", "ranks 2; links inside port 1 1; count 2", NULL, "ranks 2; links inside x 1 1; count 2",
     "is a way of sharing links"},
    // Targets that do not do something.
    {"",
     "schedule window stall at 2 tasks; depth pool of 2\n  unsupported ascend_npu schedule: "
     "target ascend_npu does not do depth pool",
     NULL,
     "schedule window stall at 2 tasks\n  unsupported ascend_npu schedule: target "
     "ascend_npu does not do depth pool",
     "status for a target"},
    // Data of one schedule is not that of the next.
    {"",
     "schedule hazards raw\n  with tensor x = 5*4; elements x 5*4\n"
     "  schedule hazards war\n  elements x 0*4",
     NULL,
     "schedule hazards raw\n  with tensor x = 5*4; elements x 5*4\n"
     "  schedule hazards war\n  elements x 5*4",
     "element 0 of x is 0, not 5"},
    // Exploring, and texts.
    {"", "count 2; explored OK", NULL, "count 2; explored STUCK", "status of exploring"},
    {"", "count 2; explored OK", NULL, "count 2; explored OK rubbish", "\"rubbish\" is not in"},
    {"texts", "given\n    when true\n  stays", NULL, "given\n    when true", "nothing is compared"},
    {"texts", "given\n    when true\n  stays", NULL, "schedule issue in order",
     "nothing is compared"},
    {"texts", "given\n    when true\n  stays", NULL, "has when\n  given\n    when true\n  stays",
     "nothing is given before has"},
    {"texts", "given\n    when true\n  stays", NULL, "refused INVALID_PARAMS",
     "nothing is given before refused"},
    {"texts", "given\n    when true\n  stays\n  given\n    when false\n  stays", NULL,
     "given\n    when true\n  given\n    when false\n  stays", "nothing is compared"},
    {"texts", "given\n    when true\n  stays", NULL,
     "given\n    when true && true\n  becomes\n    x", "not x"},
    {"texts", "given\n    when true\n  has when / true", NULL,
     "given\n    when true\n  has when / otherwise", "\"otherwise\" is not in"},
    {"texts", "given\n    when true\n  has when", NULL, "given\n    when true\n  has",
     "nothing is compared"},
    {"texts", "given\n    when true\n  lacks otherwise", NULL, "given\n    when true\n  lacks when",
     "\"when\" is still in"},
    {"texts", "given\n    when 1\n  refused INVALID_PARAMS", NULL,
     "given\n    when true\n  refused INVALID_PARAMS", "OK"},
    {"texts",
     "given\n    when 1\n  refused INVALID_PARAMS 8:3: main: the condition of a when is i64, not "
     "bool",
     NULL,
     "given\n    when 1\n  refused INVALID_PARAMS 8:4: main: the condition of a when is i64, not "
     "bool",
     "not 8:4:"},
    {"texts", "given\n    when true\n  stays", NULL, "given\n    when true\n  makespan 7",
     "nothing is expected with makespan"},
    // Calls of the builder.
    {"scripts", "build axis n 3\n  accepted", NULL, "build axis n 3", "nothing is compared"},
    {"scripts", "build axis n 3\n  accepted", NULL, "accepted",
     "nothing is expected with accepted"},
    {"scripts", "build axis n 3\n  accepted", NULL, "build axis n 3\n  makespan 7",
     "nothing is expected with makespan"},
    {"scripts", "build axis n 3\n  accepted", NULL, "build axis n -1\n  accepted", "is  m: axis n"},
    {"scripts", "build axis n 3\n  gives 1", NULL, "build axis n 3\n  gives 2", "is 1, not 2"},
    {"scripts", "build axis n -1\n  refused INVALID_PARAMS m: axis n: its size is -1", NULL,
     "build axis n 1\n  refused INVALID_PARAMS m: axis n: its size is -1", "a call is refused"},
    {"scripts", "build axis n -1\n  refused INVALID_PARAMS m: axis n: its size is -1", NULL,
     "build axis n -1\n  refused INVALID_PARAMS m: axis n: its size is -2", "its size is -2"},
    {"scripts", "build axis n 3\n  compiles", NULL, "build workload w\n  compiles", "a program"},
    {"scripts", "build axis n 3\n  compiles", NULL, "build axis n 3\n  uncompiled INVALID_PARAMS",
     "a program"},
};

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
    static char text[4096], output[16384];
    size_t failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const form_row *row = &rows[i];
        text_of(text, sizeof text, row->head, row->good);
        if (!passes(text, output, sizeof output)) {
            print_error("row %zu, this has to pass: %s\n%s", i, row->good, output);
            failed++;
        }
        const char *head = row->bad_head ? row->bad_head : row->head;
        text_of(text, sizeof text, head, row->bad ? row->bad : row->good);
        if (passes(text, output, sizeof output) || !strstr(output, row->complaint)) {
            print_error("row %zu: \"%s\" is not said of: %s\n%s", i, row->complaint, text, output);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}
