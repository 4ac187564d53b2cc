// The reader of facts (support/facts.h) refuses what it does not compare. Each row has a line of a case, and the
// complaint; NULL: the line holds.

#define _POSIX_C_SOURCE 200809L

#include "support/facts.h"

#include <sys/wait.h>
#include <unistd.h>

static uint32_t number, list[3];
static double ratio;
static const char *word;
static facts_text bytes;
static const char *const numerals[] = {"none", "one", NULL};

static ptowsp_status pass(void) {
    return PTOWSP_OK;
}

static ptowsp_status fail_it(void) {
    return PTOWSP_INVALID_PARAMS;
}

static ptowsp_status take(void) {
    return strcmp(facts_words, "two words") == 0 ? PTOWSP_OK : PTOWSP_INVALID_PARAMS;
}

static void begin(void) {
    number = 7;
    ratio = 1.5;
    word = "two words\n";
    bytes = facts_text_of("a\0b", 3);
    list[0] = list[1] = list[2] = 3;
}

static const facts_field *fields(void) {
    static const facts_field all[] = {FIELD_NAMED(number, numerals),
                                      FIELD(ratio),
                                      FIELDS(list, 3),
                                      FIELD(word),
                                      FIELD(bytes),
                                      {.name = NULL}};
    return all;
}

static const char *error(uint64_t *out_index) {
    *out_index = 5;
    return "it is wrong";
}

static char path[] = "/tmp/ptowsp_facts_XXXXXX";

static void read_facts(void **state) {
    static const facts_call calls[] = {
        {"pass", pass}, {"fail", fail_it}, {"take ", take}, {NULL, NULL}};
    facts s = {.path = path, .begin = begin, .fields = fields, .calls = calls, .error = error};
    (void)state;
    facts_run(&s);
}

static const struct {
    const char *line, *complaint;
} rows[] = {
    {"number is 7; number = 8; number is 8; again; number is 7; pass", NULL},
    {"list is 3 3 3; list[1] is 3; list[1] = 4 5; list is 3 4 5; ratio within 1 2", NULL},
    {"by fail, fail\n  refused at 5 it is wrong\n  number is 7", NULL},
    {"take two words\n  by take no, take none\n  refused at 5 it is wrong", NULL},
    {"number = one; number is 1; again; number = 0; number is none; list[1] is 3", NULL},
    {"word is \"two words\\n\"; word = \"\\x61b\"; word is ab; word has b", NULL},
    {"word has 3 times w; # not a comment", "\"w; # not a comment\" is there 0 times"},
    {"word has 2 times wo\n  word has two words\\n\n  word lacks three", NULL},
    {"word has 3 times wo", "\"wo\" is there 2 times"},
    {"word has 1 times two\n  word lacks three\n  word = NULL; word is NULL", NULL},
    {"word\n    a  # b\n      c; d\n  word is \"a  \\x23 b\\n  c\\x3b d\\n\"", NULL},
    {"word\n    a\n  word lacks a", "\"a\" is there 1 times in word: a"},
    {"word\n  number is 7", "word: nothing is said"},
    {"word is\n    two words\n  bytes is a\\x00b\\e; bytes is \"a\\x00b\"; number is 7", NULL},
    {"word\n    \\\\a\\x41\n    b\\n\\\n    c\n  word is \"\\\\aA\\nb\\nc\\n\"", NULL},
    {"bytes = a;b; b; word is \"\"", "there is no field or call b"},
    {"bytes = \"a;b\"; bytes has a;b\n  bytes = NULL; bytes is NULL; word is two\\x20words\\n",
     NULL},
    {"bytes is a", "bytes is not\na"},
    {"bytes is a\\x00c", "bytes is not\na"},
    {"word = a\\q", "there is no \\q"},
    {"word has three", "\"three\" is there 0 times in word: two words"},
    {"word = NULL; word lacks words", "there is no text"},
    {"word lacks words", "\"words\" is there 1 times"},
    {"word has 2 times ", "is there 0 times"},
    {"word is \"two words\"", "is not \"two words: two words\n"},
    {"word is two", "word is not\ntwo\nbut\ntwo words"},
    {"word = \"two", "(*at)[length]"},
    {"number = two", "two is no value of number"},
    {"number has one", "is not one"},
    {"number is 8", "element 0 of 1 is not 8"},
    {"number is 7 7", "element 1 of 1 is not 7"},
    {"number is seven", "seven is no value of number"},
    {"number = 7x", "7x is no value of number"},
    {"number was 7", "is not 7"},
    {"number", "nothing is said"},
    {"number =", "nothing is said"},
    {"list[1] is", "nothing is said"},
    {"list is 3 3", "there are 3"},
    {"list[2] = 1 2", "element 3 of 3 is not 2"},
    {"ratio within 2 3", "but is 1.5"},
    {"ratio within 1", "a number is missing"},
    {"list[2] = 5; list[2] within 5 6; list[2] near 5; ratio near 1.5000000001", NULL},
    {"list[1] within 1 2", "but is 3"},
    {"list[3] within 1 4", "but is 3"},
    {"ratio near 1.500001", "but is 1.5"},
    {"ratio near 1.5 2", "one more"},
    {"number = 4294967296", "4294967296 is no value of number"},
    {"number = 8", "has_claim"},
    {NULL, "has_case"},  // a file without cases
    {"number = 8\ncase d\n  pass", "the case before says nothing"},
    {"again", "has_claim"},
    {"pass\n  by fail", "!is_asked"},
    {"pass\n  by fail\n  by pass", "by fail: nothing is refused"},
    {"pass\n  by fail\ncase d\n  pass", "the case before says nothing"},
    {"nobody is 3", "there is no field or call nobody is 3"},
    {"pass now", "there is no field or call pass now"},
    {"fail", "it is wrong"},
    {"take", "there is no field or call take"},
    {"take three words", "it is wrong"},
    {"refused at 5 it is wrong", "no calls are refused"},
    {"by pass\n  refused at 5 it is wrong", "pass: OK"},
    {"by fail\n  refused it is wrong", "fail: INVALID_PARAMS at 5"},
    {"by fail\n  refused at 5 it is right", "fail: INVALID_PARAMS at 5"},
    {"by fail\n  refused STUCK at 5 it is wrong", "fail: INVALID_PARAMS at 5"},
};

TEST(facts_form__the_reader_refuses_what_it_does_not_compare) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_facts)};
    const int file = mkstemp(path);
    assert_true(file >= 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[200], output[2000];
        const char *line = rows[i].line ? rows[i].line : "";
        const int length =
            snprintf(text, sizeof text, rows[i].line ? "case c\n  %s\n" : "# %s\n", line);
        int status, out[2];
        assert_int_equal(ftruncate(file, 0) + pwrite(file, text, (size_t)length, 0), length);
        assert_int_equal(pipe(out), 0);
        fflush(NULL);
        const pid_t process = fork();
        if (process == 0) {
            dup2(out[1], 1);
            dup2(out[1], 2);
            status = cmocka_run_group_tests(tests, NULL, NULL);
            fflush(NULL);
            test_exit(status != 0);
        }
        close(out[1]);
        size_t end = 0;
        for (ssize_t n; (n = read(out[0], output + end, sizeof output - 1 - end)) > 0;) {
            end += (size_t)n;
        }
        output[end] = '\0';
        close(out[0]);
        waitpid(process, &status, 0);
        if ((status == 0) != (rows[i].complaint == NULL) ||
            (rows[i].complaint && !strstr(output, rows[i].complaint))) {
            fail_msg("\"%s\": %s", line, output);
        }
    }
    close(file);
    remove(path);
}
