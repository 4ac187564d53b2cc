// Hostile texts of modules and of schedules: each row is a text with one fault, and the status and the
// whole text of the error, whose place is line:column. Every sentence that a parser can say stands here
// (src/text/lexer.c, parse_*.c); what the builder refuses is in workload_faults_test.c, bodies of tile
// kernels in read_kernel_test.c.
//
// Each row is also cut off at every byte, which must end in an error or a module, under a sanitizer.

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

// -- tokens ---------------------------------------------------------------------------------------

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
        ROW("module m\naxis \"n\n", "2:6: this quote is not closed on its line"),
        ROW("module m\naxis \"n", "2:6: this quote is not closed on its line"),
        ROW("module m\naxis \"\001\" 3\n", "2:6: this quote is not closed on its line"),
        ROW("module " LONG_NAME "\n", "1:8: a name of more than 63 characters"),
        ROW("module \"" LONG_NAME "\"\n", "1:8: a name of more than 63 characters"),
        ROW("module m\naxis n 18446744073709551616\n", "2:8: this number is more than 2^64 - 1"),
        ROW("module m\naxis n 184467440737095516150\n", "2:8: this number is more than 2^64 - 1"),
        ROW("module m\naxis n 3x\n", "2:8: a number goes on with x"),
        ROW("module m\naxis n 3ux\n", "2:8: a number goes on with x"),
        ROW("module m\naxis n 3u\n", "2:8: a number is missing here"),
        ROW("module m\naxis n 0.5\n", "2:8: a number goes on with ."),
        ROW("module m\naxis n 9223372036854775808\n", "2:8: this number is too large here"),
    };
    EXPECT_ALL(rows, false);
}

// -- lines and declarations -----------------------------------------------------------------------

TEST(parse_faults__faults_in_declarations_are_refused) {
    static const row rows[] = {
        ROW("axis n 3\n", "1:1: module is missing here"),
        ROW("module\n", "1:7: the name of the module is missing here"),
        ROW("module m x\n", "1:10: the line goes on behind what it says"),
        ROW("module m slots\n", "1:15: a number is missing here"),
        ROW("module m\nmodule m\n", "2:1: no declaration begins like this"),
        ROW("module m\nprogram w\n", "2:1: no declaration begins like this"),
        ROW("module m\nschedule\n", "2:1: no declaration begins like this"),
        ROW("module m\n  when true\n",
            "2:3: 2 spaces before a line that may have 0 at most, in twos"),
        ROW("module m\naxis\n", "2:5: the name of an axis is missing here"),
        ROW("module m\naxis n\n", "2:7: a number is missing here"),
        ROW("module m\naxis n 3 4\n", "2:10: the line goes on behind what it says"),
        ROW("module m\naxis n ragged i31\n", "2:15: a data type is missing here"),
        ROW("module m\naxis n plan, lanes\n", "2:14: its is missing here"),
        ROW("module m\naxis n plan, its units\n", "2:18: merges is missing here"),
        ROW("module m\nsymbol 3\n", "2:8: the name of a symbol is missing here"),
        ROW("module m\narray f32\n", "2:10: a data type is missing here"),
        ROW("module m\narray\n", "2:6: the name of an array is missing here"),
        ROW("module m\ntensor\n", "2:7: the name of a tensor is missing here"),
        ROW("module m\ntensor t f31 [] global\n", "2:10: a data type is missing here"),
        ROW("module m\ntensor t f32 1\n", "2:14: [ is missing here"),
        ROW("module m\ntensor t f32 [1 2]\n", "2:17: , is missing here"),
        ROW("module m\ntensor t f32 [1] hbm\n",
            "2:18: a location is missing here: global, l2, ub or l1"),
        ROW("module m\ntensor t f32 [1,1,1,1,1,1,1,1,1] l1\n", "2:31: more than 8 dimensions"),
        ROW("module m\nsymbol s\ntensor t f32 [s] l1\n",
            "3:20: a size by an expression is for transient tensors"),
        ROW("module m\ntensor t f32 [)] l1\n", "2:15: an expression is missing here"),
    };
    EXPECT_ALL(rows, false);
}

#define SCALARS "s u64, s u64, s u64, s u64, s u64, s u64, s u64, s u64"
#define TILES   "in t f32 1 x 1, in t f32 1 x 1, in t f32 1 x 1, in t f32 1 x 1"

TEST(parse_faults__faults_in_kernels_are_refused) {
    static const row rows[] = {
        ROW("module m\nkernel\n", "2:7: the name of a kernel is missing here"),
        ROW("module m\nkernel k axes 0\n", "2:10: ( is missing here"),
        ROW("module m\nkernel k(0)\n", "2:10: axes is missing here"),
        ROW("module m\nkernel k(axes x)\n", "2:15: a number is missing here"),
        ROW("module m\nkernel k(axes 4294967296) cube\n", "2:15: this number is too large here"),
        ROW("module m\nkernel k(axes 0 cube\n", "2:17: ) is missing here"),
        ROW("module m\nkernel k(axes 0, in)\n", "2:20: the name of a parameter is missing here"),
        ROW("module m\nkernel k(axes 0, in t f1)\n", "2:23: a data type is missing here"),
        ROW("module m\nkernel k(axes 0, in t f32 y)\n", "2:27: a number is missing here"),
        ROW("module m\nkernel k(axes 0, in t f32 1 y)\n", "2:29: x is missing here"),
        ROW("module m\nkernel k(axes 0, 3)\n", "2:18: the name of a parameter is missing here"),
        ROW("module m\nkernel k(axes 0, s f32)\n",
            "2:20: a type is missing here: bool, i64 or u64"),
        ROW("module m\nkernel k(axes 0, " SCALARS ", s u64) cube\n", "2:74: more than 8 scalars"),
        ROW("module m\nkernel k(axes 0, " TILES ", " TILES ", " TILES ", in t f32 1 x 1) cube\n",
            "2:213: more than 12 tiles"),
        ROW("module m\nkernel k(axes 0) fast\n",
            "2:18: a unit is missing here: vector, cube, mix or link"),
        ROW("module m\nkernel k(axes 0) cube 3\n", "2:23: the line goes on behind what it says"),
        ROW("module m\nkernel k(axes 0) cube, fast\n", "2:24: a number is missing here"),
        ROW("module m\nkernel k(axes 0) cube, 9 tasks\n", "2:26: cycles is missing here"),
        ROW("module m\nkernel k(axes 0) cube, time\n", "2:28: only is missing here"),
        ROW("module m\nkernel k(axes 0) cube, cycles by the\n", "2:34: a is missing here"),
        ROW("module m\nkernel k(axes 0) cube, a PTO - source\n", "2:32: ISA is missing here"),
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
        ROW("module m\nkernel k(axes 0, in t f32 1 x 8) cube, 1 instructions\n   %1 = parameter "
            "t\n",
            "3:4: spaces before a line come in twos"),
    };
    EXPECT_ALL(rows, false);
}

#define REDUCE "module m\nkernel k(axes 0, in s f32 ? x ?, out d f32 ? x ?) link"

TEST(parse_faults__faults_in_collectives_are_refused) {
    static const row rows[] = {
        ROW(REDUCE "\n", "2:55: , is missing here"),
        ROW(REDUCE ", gather\n", "2:57: a collective is missing here: all_reduce, reduce_scatter, "
                                 "all_gather, all_to_all, "
                                 "broadcast, send or slice"),
        ROW(REDUCE ", all_reduce, fast\n", "2:69: a collective has no such option: sum, max, min, "
                                           "by, members, stride, counts, in, out"),
        ROW(REDUCE ", all_reduce, by tree\n",
            "2:72: an algorithm is missing here: direct, doubling, hierarchical or ring"),
        ROW(REDUCE ", all_reduce, members x\n", "2:77: a number is missing here"),
        ROW(REDUCE ", all_reduce, stride 4294967296\n", "2:76: this number is too large here"),
        ROW(REDUCE ", all_to_all, counts 3\n", "2:76: the name of an array is missing here"),
        ROW(REDUCE ", all_reduce sum\n", "2:68: the line goes on behind what it says"),
        ROW("module m\nkernel k(axes 3, in s f32 ? x ?) link, all_reduce, sum\n",
            "2:1: kernel k: all_reduce has other parameters"),
    };
    EXPECT_ALL(rows, false);
}

// -- workloads ------------------------------------------------------------------------------------

#define HEAD                                                                                       \
    "module m\naxis n 3\nsymbol s\narray a i32\ntensor t f32 [2, 8] l2\n"                          \
    "kernel k(axes 1, in x f32 1 x 8, y u64) cube, 1 cycles, time only\n"                          \
    "axis p plan\naxis p plan, its lanes\nworkload w\n"

TEST(parse_faults__faults_in_statements_are_refused) {
    static const row rows[] = {
        ROW("module m\nworkload\n", "2:9: the name of a workload is missing here"),
        ROW("module m\nworkload w(\n", "2:12: the name of a parameter is missing here"),
        ROW("module m\nworkload w(x)\n", "2:13: a type is missing here: bool, i64 or u64"),
        ROW("module m\nworkload w(x u64\n", "2:17: ) is missing here"),
        ROW(HEAD "   when true\n", "10:4: 3 spaces before a line that may have 2 at most, in twos"),
        ROW(HEAD "    when true\n",
            "10:5: 4 spaces before a line that may have 2 at most, in twos"),
        ROW(HEAD "  fork\n", "10:3: no statement begins like this"),
        ROW(HEAD "  parallel 3 in n\n", "10:12: the name of a variable is missing here"),
        ROW(HEAD "  parallel i of n\n", "10:14: in is missing here"),
        ROW(HEAD "  parallel i in\n", "10:16: the name of an axis is missing here"),
        ROW(HEAD "  parallel i in z\n", "10:17: there is no axis z of this kind"),
        ROW(HEAD "  parallel i in lanes of n3\n", "10:17: there is no axis n3 of this kind"),
        ROW(HEAD "  parallel i in lanes of\n", "10:25: the name of a plan is missing here"),
        ROW(HEAD "  for_each i in n[0\n", "10:20: ] is missing here"),
        ROW(HEAD "  task z()\n", "10:8: there is no kernel z"),
        ROW(HEAD "  task 3()\n", "10:8: the name of a kernel is missing here"),
        ROW(HEAD "  task k\n", "10:9: ( is missing here"),
        ROW(HEAD "  task k(1 2)\n", "10:12: , is missing here"),
        ROW(HEAD "  task k(1,1,1,1,1,1,1,1,1)\n", "10:26: more than 8 arguments"),
        ROW(HEAD "  task k(1) y = 1u\n", "10:13: the argument x is missing here"),
        ROW(HEAD "  task k(1) x = t y 1u\n", "10:21: = is missing here"),
        ROW(HEAD "  task k(1) x t\n", "10:15: = is missing here"),
        ROW(HEAD "  task k(1) x = 3\n", "10:17: the name of a tensor is missing here"),
        ROW(HEAD "  task k(1) x = z\n", "10:17: there is no tensor z"),
        ROW(HEAD "  task k(1) x = s y = 1u\n", "10:17: there is no tensor s"),
        ROW(HEAD "  task k(1) x = t[0,0,0,0,0,0,0]\n", "10:31: more than 6 indices"),
        ROW(HEAD "  task k(1) x = t[0\n", "10:20: ] is missing here"),
        ROW(HEAD "  task k(1) x = t at 3\n", "10:22: ( is missing here"),
        ROW(HEAD "  task k(1) x = t at (1)\n", "10:24: , is missing here"),
        ROW(HEAD "  task k(1) x = t at (1, 2\n", "10:27: ) is missing here"),
        ROW(HEAD "  task k(1) x = t up 1 rows\n", "10:22: to is missing here"),
        ROW(HEAD "  task k(1) x = t up to 1 cells\n", "10:27: columns is missing here"),
        ROW(HEAD "  task k(1) x = t of 1\n", "10:23: x is missing here"),
        ROW(HEAD "  task k(1) x = t of ? x 2\n", "10:22: a number is missing here"),
        ROW(HEAD "  task k(1) x = t of 2147483648 x 2\n", "10:22: this number is too large here"),
        ROW(HEAD "  task k(1) x = t y = 1u after 3\n", "10:32: node is missing here"),
        ROW(HEAD "  task k(1) x = t y = 1u after node 3\n", "10:38: there is no node 3 above"),
        ROW(HEAD "  task k(1) x = t y = 1u as 3\n", "10:29: node is missing here"),
        ROW(HEAD "  task k(1) x = t y = 1u as node 2\n  task k(1) x = t y = 1u as node 2\n",
            "11:35: numbers of nodes ascend; the last was 2"),
        ROW(HEAD "  task k(1) x = t y = 1u as node 0\n",
            "10:35: numbers of nodes ascend; the last was 0"),
        ROW(HEAD "  task k(1) x = t y = 1u as node 1\n"
                 "  task k(1) x = t y = 1u after node 1, node 1, node 1, node 1, node 1, node 1, "
                 "node 1, node 1, node 1\n",
            "11:96: after more than 8 nodes"),
        ROW(HEAD
            "  task k(1) x = t y = 1u tag a = 1u tag b = 1u tag c = 1u tag d = 1u tag e = 1u\n",
            "10:74: more than 4 tags"),
        ROW(HEAD "  task k(1) x = t y = 1u tag\n", "10:29: the name of a tag is missing here"),
        ROW(HEAD "  task k(1) x = t y = 1u tag a 1u\n", "10:32: = is missing here"),
        ROW(HEAD "  call\n", "10:7: the name of a workload is missing here"),
        ROW(HEAD "  call v(0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0)\n", "10:42: more than 16 arguments"),
        ROW(HEAD "  slot_set x = 1\n", "10:12: a number is missing here"),
        ROW(HEAD "  slot_set 1 1\n", "10:14: = is missing here"),
        ROW(HEAD "  slot_set 4294967296 = 1\n", "10:12: this number is too large here"),
        ROW(HEAD "  slot_load 1 = t element 3\n", "10:27: ( is missing here"),
    };
    EXPECT_ALL(rows, false);
}

#define PIPE HEAD "  pipeline q\n    channel c depth 1 latency 0\n"

TEST(parse_faults__faults_in_pipelines_are_refused) {
    static const row rows[] = {
        ROW(HEAD "  pipeline\n", "10:11: the name of a pipeline is missing here"),
        ROW(HEAD "  pipeline q\n    channel\n", "11:12: the name of a channel is missing here"),
        ROW(HEAD "  pipeline q\n    event 3\n", "11:11: the name of an event is missing here"),
        ROW(HEAD "  pipeline q\n    channel c latency 1\n", "11:15: depth is missing here"),
        ROW(HEAD "  pipeline q\n    channel c depth 1\n", "11:22: latency is missing here"),
        ROW(HEAD "  pipeline q\n    channel c depth 4294967296 latency 1\n",
            "11:21: this number is too large here"),
        ROW(PIPE "    process\n", "12:12: the name of a process is missing here"),
        ROW(PIPE "    process a replicas 3\n", "12:24: the name of a variable is missing here"),
        ROW(PIPE "    process a replicas i of n\n", "12:26: in is missing here"),
        ROW(PIPE "    process a replicas i in z\n", "12:29: there is no axis z of this kind"),
        ROW(PIPE "    process a consumes\n",
            "12:23: the name of a channel or event is missing here"),
        ROW(PIPE "    process a produces z\n", "12:24: there is no channel or event z"),
        ROW(PIPE "    process a produces c\n      send z(1)\n",
            "13:12: there is no channel or event z"),
        ROW(PIPE "    process a produces c\n      send c 1\n", "13:14: ( is missing here"),
        ROW(PIPE "    process a produces c\n      send c(1\n", "13:15: ) is missing here"),
        ROW(PIPE "    process a consumes c\n      consume x c\n", "13:17: from is missing here"),
        ROW(PIPE "    process a consumes c\n      receive 3\n",
            "13:15: the name of a variable is missing here"),
    };
    EXPECT_ALL(rows, false);
}

TEST(parse_faults__faults_in_expressions_are_refused) {
    static const row rows[] = {
        ROW(HEAD "  when true &&\n", "10:15: an expression is missing here"),
        ROW(HEAD "  when )\n", "10:8: an expression is missing here"),
        ROW(HEAD "  when x\n", "10:9: there is no variable or symbol x here"),
        ROW(HEAD "  parallel s in n\n    when s > 1u\n",
            "11:12: s is both a symbol and a variable here; rename one"),
        ROW(HEAD "  when f(1)\n", "10:9: there is no function f"),
        ROW(HEAD "  when z[1]\n", "10:12: there is no array z"),
        ROW(HEAD "  when z.nothing[1]\n", "10:20: there is no array z.nothing"),
        ROW(HEAD "  parallel u in p\n    when z.kv_len[u] > 1u\n",
            "11:22: z.kv_len is no field here, but p.kv_len would be"),
        ROW(HEAD "  when s[1]\n", "10:12: s is no array"),
        ROW(HEAD "  when a[1\n", "10:11: ] is missing here"),
        ROW(HEAD "  when (true\n", "10:13: ) is missing here"),
        ROW(HEAD "  when min(1 2) > 1\n", "10:14: , is missing here"),
        ROW(HEAD "  when min(1, 2\n", "10:16: ) is missing here"),
        ROW(HEAD "  when true ? 1\n", "10:16: : is missing here"),
        ROW(HEAD "  when slot_u64(1)\n", "10:16: [ is missing here"),
        ROW(HEAD "  when slot_u64[x]\n", "10:17: a number is missing here"),
        ROW(HEAD "  when slot_u64[1\n", "10:18: ] is missing here"),
        ROW(HEAD "  when size(z) > 1\n", "10:13: there is no axis z of this kind"),
        ROW(HEAD "  when size(p) > 1\n", "10:14: the size of plan p may be that of several axes"),
        ROW(HEAD "  when entry(z) > 1\n", "10:15: there is no variable z here"),
        ROW(HEAD "  when entry(3) > 1\n", "10:14: the name of a variable is missing here"),
        ROW(HEAD "  when 9223372036854775808 > 1\n",
            "10:8: this number is outside of i64; write u behind it for u64"),
        ROW(HEAD "  when -9223372036854775809 > 1\n",
            "10:9: this number is outside of i64; write u behind it for u64"),
    };
    EXPECT_ALL(rows, false);
}

// What the builder refuses has the place of its statement, or of its expression.
TEST(parse_faults__what_the_builder_refuses) {
    static const row rows[] = {
        ROW("module m\naxis n 3\naxis n 4\n",
            "3:1: m: axis n: the name is already that of an axis"),
        ROW("module m\nkernel k(axes 9) cube, 9 cycles, time only\n",
            "2:1: m: kernel k: 9 axis arguments are more than 8"),
        ROW(HEAD "  otherwise\n", "10:3: w: an otherwise that does not follow a when"),
        ROW(HEAD "  when 1\n", "10:3: w: the condition of a when is i64, not bool"),
        ROW(HEAD "  when 1 + true\n",
            "10:10: w: add: it does not take (i64, bool); cast one of them"),
        ROW(HEAD "  when z.kv_len[1]\n", "10:8: w: loop_field: it is not the variable of a loop"),
        ROW(HEAD "  slot_set 256 = 1\n", "10:3: w: slot_set: slot 256, but there are 256"),
        ROW(HEAD "  parallel i in n\n    parallel i in n[5]\n",
            "11:19: w/parallel i: axis n: only ragged and sparse axes, units and merges of plans "
            "have rows"),
    };
    EXPECT_ALL(rows, false);
}

// -- schedules ------------------------------------------------------------------------------------

#define DO HEAD "program w\nschedule\n"

TEST(parse_faults__faults_in_schedules_are_refused) {
    static const row rows[] = {
        ROW(HEAD "program\n", "10:8: the name of a workload is missing here"),
        ROW(HEAD "program w\nschedule fast\n", "11:10: the line goes on behind what it says"),
        ROW(DO "    issue depth first\n",
            "12:5: 4 spaces before a line that may have 0 at most, in twos"),
        ROW(DO "  speed 3\n", "12:3: no directive of a schedule begins like this"),
        ROW(DO "  issue sideways\n", "12:9: there is no such issue"),
        ROW(DO "  dispatch sideways\n", "12:12: there is no such dispatch"),
        ROW(DO "  dispatch hash 3\n", "12:17: over is missing here"),
        ROW(DO "  dispatch hash of over 3 lanes\n",
            "12:25: there is no variable or symbol over here"),
        ROW(DO "  dispatch hash over x\n", "12:22: a number is missing here"),
        ROW(DO "  dispatch hash over 2 cube\n", "12:24: vector is missing here"),
        ROW(DO "  dispatch hash over 2 vector or\n", "12:31: and is missing here"),
        ROW(DO "  dispatch hash over 2 vector and x\n", "12:35: a number is missing here"),
        ROW(DO "  dispatch hash over 2 vector and 1\n", "12:36: cube is missing here"),
        ROW(DO "  dispatch hash over 2 vector and 1 cube\n", "12:41: lanes is missing here"),
        ROW(DO "  pool 3\n", "12:8: the name of a pool is missing here"),
        ROW(DO "  pool a\n", "12:9: of is missing here"),
        ROW(DO "  pool a of 3\n", "12:14: lanes is missing here"),
        ROW(DO "  pool a of 3 lanes depth x\n", "12:27: a number is missing here"),
        ROW(DO "  pool a of 3 lanes for 3\n", "12:25: the name of a kernel is missing here"),
        ROW(DO SIXTEEN("  pool a of 3 lanes\n") "  pool a of 3 lanes\n",
            "28:8: more than 16 pools"),
        ROW(DO "  pool a of 1 lanes for " SIXTEEN("k, k, k, k, ") "k\n",
            "12:217: more than 64 kernels"),
        ROW(DO "  window wide at 3 tasks\n", "12:10: there is no such window"),
        ROW(DO "  window stall 3\n", "12:16: at is missing here"),
        ROW(DO "  window stall at x\n", "12:19: a number is missing here"),
        ROW(DO "  window stall at 4\n", "12:20: tasks is missing here"),
        ROW(DO "  release never\n", "12:11: there is no such release"),
        ROW(DO "  depth sea of 3\n", "12:9: there is no such depth"),
        ROW(DO "  ring gold\n", "12:8: there is no such ring"),
        // What numbers without a word are printed as, which index arrays.
        ROW(DO "  ring ?\n", "12:8: there is no such ring"),
        ROW(DO "  depth ? of 3\n", "12:9: there is no such depth"),
        ROW(DO "  issue ?\n", "12:9: there is no such issue"),
        ROW(DO "  dependencies ?\n", "12:16: there is no such dependencies"),
        ROW(DO "  dependencies sideways\n", "12:16: there is no such dependencies"),
        ROW(DO "  hazards sideways\n", "12:11: there is no such hazards"),
        ROW(DO "  ready sideways\n", "12:9: there is no such ready"),
        ROW(DO "  start sideways\n", "12:9: there is no such start"),
        ROW(DO "  streams x\n", "12:11: a number is missing here"),
        ROW(DO "  streams 3 by\n", "12:15: an expression is missing here"),
        ROW(DO "  timing sideways\n", "12:10: there is no such timing"),
    };
    EXPECT_ALL(rows, true);
}

TEST(parse_faults__null_is_refused) {
    ptowsp_module *module;
    ptowsp_text_place place = {7, 7};
    ptowsp_context *context = test_context(NULL);
    assert_int_equal(ptowsp_module_parse(context, NULL, 1, NULL, &module, &place),
                     PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "parse: text or out_module is NULL");
    assert_true(place.line == 0 && place.column == 0);
    assert_int_equal(ptowsp_module_parse(context, "module m", 8, NULL, NULL, NULL),
                     PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "parse: text or out_module is NULL");
    ptowsp_context_destroy(context);
}
