// Hostile texts of modules that no case can hold: without a first line that declares the module, with bytes
// and ends of lines of their own, and for kernels that are attached to a text. Each row is a text with one
// fault, and the status and the whole text of the error, whose place is line:column; it is also cut off at
// every byte, which must end in an error or a module, under a sanitizer. All other sentences that a parser
// can say stand in tests/cases/syntax.case.

#include "src/text/parse.h"

#include "test.h"

typedef struct row {
    const char *text;
    size_t length;  // texts may have zeros in them
    const char *error;
    ptowsp_status status;
} row;

// The default is the status of nearly all.
#define ROW(text, error)                                                                           \
    { text, sizeof(text) - 1, error, PTOWSP_INVALID_PARAMS }

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

// What texts may attach: a function, and a builder that makes another kernel than the text says.
static ptowsp_kernel make_other(ptowsp_module *module, void *user) {
    (void)user;
    ptowsp_kernel_desc desc = {.name = "other", .axis_count = 2, .cycles = 1};
    return ptowsp_kernel_make(module, &desc);
}

static ptowsp_kernel make_none(ptowsp_module *module, void *user) {
    (void)module;
    (void)user;
    const ptowsp_kernel none = {0};
    return none;
}

// Says what is wrong with a row, if anything is.
static bool is_as_expected(ptowsp_context *context, const row *r, pwsp_parse_saved *saved) {
    ptowsp_parse_kernel kernels[3];
    const ptowsp_parse_desc attached = {kernels, 3, 0};
    ptowsp_module *module = NULL;
    ptowsp_text_place place = {0, 0};
    char where[64];
    memset(kernels, 0, sizeof kernels);
    kernels[0].name = "plain";
    kernels[0].fn = one_cycle;
    kernels[1].name = "other";
    kernels[1].make = make_other;
    kernels[2].name = "none";
    kernels[2].make = make_none;
    const ptowsp_status status =
        saved ? pwsp_parse_text(context, r->text, r->length, 1, &attached, saved, &module, &place)
              : ptowsp_module_parse(context, r->text, r->length, &attached, &module, &place);
    const ptowsp_error error = ptowsp_context_error(context);
    snprintf(where, sizeof where, "%llu:%llu: ", (unsigned long long)place.line,
             (unsigned long long)place.column);
    if (status == r->status && !module && strcmp(error.text, r->error) == 0 &&
        strncmp(error.text, where, strlen(where)) == 0 && error.index == place.line) {
        return true;
    }
    print_error("%s\ngives %d at %s\"%s\"\nfor \"%s\"\n", r->text, status, where, error.text,
                r->error);
    return false;
}

// All rows, and whatever is left of them when they end too early.
static void expect_all(const row *rows, size_t count, bool is_saved) {
    size_t wrong = 0;
    ptowsp_context *context = test_context(NULL);
    for (size_t i = 0; i < count; i++) {
        static pwsp_parse_saved saved;
        const ptowsp_parse_desc none = {NULL, 0, 0};
        memset(&saved, 0, sizeof saved);
        wrong += !is_as_expected(context, &rows[i], is_saved ? &saved : NULL);
        for (size_t length = 0; length < rows[i].length; length++) {
            ptowsp_module *module = NULL;
            char *cut = (char *)malloc(length ? length : 1);  // of just this size
            assert_non_null(cut);
            memcpy(cut, rows[i].text, length);
            memset(&saved, 0, sizeof saved);
            const ptowsp_status status = pwsp_parse_text(context, cut, length, 1, &none,
                                                         is_saved ? &saved : NULL, &module, NULL);
            assert_true((status == PTOWSP_OK) == (module != NULL));
            ptowsp_module_destroy(module);
            free(cut);
        }
    }
    assert_int_equal(wrong, 0);
    ptowsp_context_destroy(context);
}

#define EXPECT_ALL(rows, is_saved) expect_all(rows, sizeof rows / sizeof rows[0], is_saved)

#define SIXTEEN(x) x x x x x x x x x x x x x x x x
#define LONG_NAME  SIXTEEN("abcd")  // 64 characters

TEST(parse_faults__faults_in_tokens_are_refused) {
    static const row rows[] = {
        ROW("", "1:1: a text without a module"),
        ROW("# nothing\n\n", "3:1: a text without a module"),
        ROW("module m\n\taxis n 3\n", "2:1: the byte 0x09 is in no text of a module"),
        ROW("module m\naxis \0 3\n", "2:6: the byte 0x00 is in no text of a module"),
        ROW("module m\naxis \303\274 3\n", "2:6: the byte 0xc3 is in no text of a module"),
        ROW("module m\naxis n\r 3\n", "2:7: the byte 0x0d is in no text of a module"),
        ROW("module m\naxis n 3 $\n", "2:10: the character $ begins nothing"),
        ROW("module m\naxis n 3 ;", "2:10: the character ; begins nothing"),
        ROW("module m\naxis \"n", "2:6: this quote is not closed on its line"),
        ROW("module m\naxis \"\001\" 3\n", "2:6: this quote is not closed on its line"),
        ROW("module " LONG_NAME "\n", "1:8: a name of more than 63 characters"),
        ROW("module \"" LONG_NAME "\"\n", "1:8: a name of more than 63 characters"),
    };
    EXPECT_ALL(rows, false);
}

TEST(parse_faults__faults_in_first_lines_and_programs_are_refused) {
    static const row rows[] = {
        ROW("axis n 3\n", "1:1: module is missing here"),
        ROW("module\n", "1:7: the name of the module is missing here"),
        ROW("module m x\n", "1:10: the line goes on behind what it says"),
        ROW("module m slots\n", "1:15: a number is missing here"),
        ROW("module m\nprogram w\n", "2:1: no declaration begins like this"),
        ROW("module m\nschedule\n", "2:1: no declaration begins like this"),
    };
    static const row schedules[] = {
        ROW("module m\nworkload w\nprogram\n", "3:8: the name of a workload is missing here"),
        ROW("module m\nworkload w\nprogram w\nschedule fast\n",
            "4:10: the line goes on behind what it says"),
    };
    EXPECT_ALL(rows, false);
    EXPECT_ALL(schedules, true);
}

TEST(parse_faults__attached_kernels_that_do_not_fit_are_refused) {
    static const row rows[] = {
        ROW("module m\nkernel k(axes 0) vector\n", "2:1: kernel k: its function is not attached"),
        ROW("module m\nkernel k(axes 0) cube, 9 instructions\n",
            "2:1: kernel k: its tile kernel is not attached"),
        ROW("module m\nkernel k(axes 0) cube, a PTO - ISA source\n",
            "2:1: kernel k: its function is not attached"),
        ROW("module m\nkernel plain(axes 0) cube, cycles by a cost function\n",
            "2:1: kernel plain: its cost function is not attached"),
        ROW("module m\nkernel other(axes 1) vector\n",
            "2:1: kernel other: what is attached has other parameters"),
        ROW("module m\nkernel none(axes 1) vector\n",
            "2:1: kernel none: what is attached has other parameters"),
    };
    EXPECT_ALL(rows, false);
}

CONTEXT_TEST(parse_faults__null_is_refused) {
    ptowsp_module *module;
    ptowsp_text_place place = {7, 7};
    test_refused(context, ptowsp_module_parse(context, NULL, 1, NULL, &module, &place),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "parse: text or out_module is NULL");
    assert_true(place.line == 0 && place.column == 0);
    test_refused(context, ptowsp_module_parse(context, "module m", 8, NULL, NULL, NULL),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "parse: text or out_module is NULL");
}
