// Sources of kernels on their way into a tree: PTO-ISA sources with their headers, directives and
// arguments, and C functions. What is emitted is read as text here, and what is refused by name; what
// sources compute is tested where they are compiled (npu_own_test.c, npu_native_test.c).

#include "npu_files.h"
#include "npu_fixture.h"

typedef struct source {
    npu_fixture f;
    ptowsp_pto_source pto;
    ptowsp_kernel_desc desc;
    const char *text;  // of the file that is wanted, if it was emitted
    char inside[120];
} source;

static ptowsp_cycles nothing(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

static void write_file(const char *directory, const char *name, const char *text, size_t size) {
    char path[1600];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void add_file(const source *s, const char *name, const char *text) {
    write_file(s->f.directory, name, text, strlen(text));
}

static const char *path_of(source *s, const char *name) {
    snprintf(s->inside, sizeof s->inside, "%s/%s", s->f.directory, name);
    return s->inside;
}

// Kernel add with two tiles, of f64 and u64, an axis and three scalars.
static void source_begin(source *s) {
    memset(s, 0, sizeof *s);
    npu_fixture_begin(&s->f);
    npu_module_make(&s->f, "sources");
    s->desc.name = "add";
    s->desc.axis_count = 1;
    const ptowsp_tile_param x = {"x", PTOWSP_INOUT, PTOWSP_F64, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    const ptowsp_tile_param y = {"y", PTOWSP_IN, PTOWSP_U64, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    const ptowsp_tile_param z = {"z", PTOWSP_IN, PTOWSP_I64, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    s->desc.tiles[0] = x;
    s->desc.tiles[1] = y;
    s->desc.tiles[2] = z;
    const ptowsp_scalar_param scalars[] = {
        {"b", PTOWSP_TYPE_BOOL}, {"i", PTOWSP_TYPE_I64}, {"u", PTOWSP_TYPE_U64}};
    memcpy(s->desc.scalars, scalars, sizeof scalars);
    s->desc.pto = &s->pto;
}

static void task_of(const source *s, ptowsp_kernel kernel, const ptowsp_tensor *tensors) {
    ptowsp_task_desc task = {.kernel = kernel, .axes[0] = ptowsp_i64(s->f.m, 3)};
    for (int i = 0; i < 3; i++) {
        task.views[i].tensor = tensors[i];
    }
    task.scalars[0] = ptowsp_bool(s->f.m, true);
    task.scalars[1] = ptowsp_i64(s->f.m, -1);
    task.scalars[2] = ptowsp_u64(s->f.m, 1);
    ptowsp_task_make(s->f.m, &task);
}

// Compiles a task of the kernel, and one of another if that has a name.
static void source_compile(source *s, const ptowsp_kernel_desc *other) {
    ptowsp_tensor tensors[3];
    for (int i = 0; i < 3; i++) {
        ptowsp_tensor_desc tensor = {
            .name = s->desc.tiles[i].name, .dtype = s->desc.tiles[i].dtype, .rank = 2};
        tensor.shape[0] = tensor.shape[1] = 8;
        tensors[i] = ptowsp_tensor_make(s->f.m, &tensor);
    }
    ptowsp_kernel kernel = ptowsp_kernel_make(s->f.m, &s->desc);
    PTOWSP_WORKLOAD(s->f.m, "w") {
        task_of(s, kernel, tensors);
        if (other) {
            task_of(s, ptowsp_kernel_make(s->f.m, other), tensors);
        }
    }
    npu_fixture_compile(&s->f, NULL);
}

static void source_emit(source *s, const char *path) {
    source_compile(s, NULL);
    s->text = npu_files_of(s->f.context, s->f.program, path);
}

static void source_end(source *s) {
    npu_fixture_free(&s->f);
}

static void has(const source *s, const char *wanted) {
    if (!strstr(s->text, wanted)) {
        fputs(s->text, stderr);
        fail_msg("there is no %s", wanted);
    }
}

static void lacks(const source *s, const char *unwanted) {
    if (strstr(s->text, unwanted)) {
        fputs(s->text, stderr);
        fail_msg("there is %s", unwanted);
    }
}

// Emitting it fails, with this text; %s of it is the directory of the test.
static void is_refused(source *s, ptowsp_status status, const char *format) {
    char text[1600];
    snprintf(text, sizeof text, format, s->f.directory);
    source_compile(s, NULL);
    assert_int_equal(npu_files_try(s->f.context, s->f.program), status);
    test_error_is(s->f.context, status, 1, text);
    source_end(s);
}

// -- arguments ------------------------------------------------------------------------------------

// Each kind of argument, and the types of C++ that its tile or scalar has.
TEST(source__arguments_have_the_types_of_the_task) {
    const ptowsp_pto_arg args[] = {
        {PTOWSP_PTO_DATA, 0, 0},          {PTOWSP_PTO_DATA, 1, 0},   {PTOWSP_PTO_DATA, 2, 0},
        {PTOWSP_PTO_ROWS, 1, 0},          {PTOWSP_PTO_COLS, 1, 0},   {PTOWSP_PTO_ROW_STRIDE, 1, 0},
        {PTOWSP_PTO_COL_STRIDE, 2, 0},    {PTOWSP_PTO_AXIS, 0, 0},   {PTOWSP_PTO_SCALAR, 0, 0},
        {PTOWSP_PTO_SCALAR, 1, 0},        {PTOWSP_PTO_SCALAR, 2, 0}, {PTOWSP_PTO_NUMBER, 0, -5},
        {PTOWSP_PTO_NUMBER, 0, INT64_MIN}};
    static const char *const wanted[] = {"wsp::element<double>(&task->tiles[0], 0, 0)",
                                         "wsp::element<uint64_t>(&task->tiles[1], 0, 0)",
                                         "wsp::element<int64_t>(&task->tiles[2], 0, 0)",
                                         "wsp::rows(task, 1)",
                                         "wsp::cols(task, 1)",
                                         "task->tiles[1].row_stride",
                                         "task->tiles[2].col_stride",
                                         "static_cast<int64_t>(task->args[0])",
                                         "wsp::scalar_bits(task, 0) != 0",
                                         "static_cast<int64_t>(wsp::scalar_bits(task, 1))",
                                         "wsp::scalar_bits(task, 2)",
                                         "INT64_C(-5)",
                                         "INT64_MIN"};
    source s;
    source_begin(&s);
    s.pto.text = "void add() {}\n";
    memcpy(s.pto.args, args, sizeof args);
    source_emit(&s, "aicore/kernels/add.cpp");
    const char *at = strstr(s.text, "    add(");
    assert_non_null(at);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const char *next = strstr(at, wanted[i]);
        if (!next) {
            fail_msg("no %s in %s", wanted[i], at);
        }
        at = next + strlen(wanted[i]);
        assert_true(*at == ',' || strncmp(at, ");\n", 3) == 0);
    }
    source_end(&s);
}

// As many as there can be, and a block that is an argument: only the shim can be told.
TEST(source__blocks_of_a_task_are_for_the_shim_alone) {
    static const char error[] = "#error \"the block of this kernel is an argument of its task";
    for (int which = 0; which < 3; which++) {
        source s;
        source_begin(&s);
        s.pto.text = "void add() {}\n";
        for (int i = 0; i < PTOWSP_PTO_ARG_MAX; i++) {
            const ptowsp_pto_arg arg = {PTOWSP_PTO_NUMBER, 0, 100 + i};
            s.pto.args[i] = arg;
        }
        const ptowsp_pto_arg axis = {PTOWSP_PTO_AXIS, 0, 0}, five = {PTOWSP_PTO_NUMBER, 0, 5};
        s.pto.block = which == 1 ? axis : five;
        s.pto.block_count = which == 2 ? axis : five;
        source_emit(&s, "aicore/kernels/add.cpp");
        has(&s, "INT64_C(131));\n");
        if (which == 0) {
            has(&s, "#define get_block_idx() (5)\n#define get_block_num() (5)\n");
            lacks(&s, error);
        } else {
            has(&s, error);
        }
        source_end(&s);
    }
}

// -- headers --------------------------------------------------------------------------------------

#define SOURCE_TEST(name) TEST_MADE(name, source, s, source_begin(s), source_end(s))

// Headers that two files include come once; those of PTO-ISA, in angles, and that are nowhere stay lines.
SOURCE_TEST(source__headers_that_are_found_come_along_once) {
    add_file(s, "one.hpp", "#include \"two.hpp\"\n");
    add_file(s, "two.hpp", "#pragma once\nint two;\n");
    assert_int_equal(mkdir(path_of(s, "dir"), 0755), 0);
    assert_int_equal(mkdir(path_of(s, "dir/three.hpp"), 0755), 0);  // a directory is no header
    add_file(s, "dir/deep.hpp", "int deep;\n");
    char dir[100], here[100];
    snprintf(here, sizeof here, "%s", s->f.directory);
    snprintf(dir, sizeof dir, "%s/dir", s->f.directory);
    s->pto.include_dirs[0] = dir;
    s->pto.include_dirs[1] = here;
    s->pto.text = "#include \"one.hpp\"\n#include \"two.hpp\"\n#include \"deep.hpp\"\n"
                  "#include \"three.hpp\"\n#include \"pto/pto-inst.hpp\"\n#include <cstdint>\n"
                  "#include MACRO\nvoid add() {}";
    source_emit(s, "aicore/kernels/add.cpp");
    assert_int_equal(npu_files_below("aicore/sources/"), 4);
    has(s, "\n#include \"three.hpp\"\n#include \"pto/pto-inst.hpp\"\n#include <cstdint>\n"
           "#include MACRO\n");
    lacks(s, "#include \"two.hpp\"");
    lacks(s, "#include \"deep.hpp\"");
    has(s, "  aicore/sources/add/two.hpp\n");
    has(s, "  aicore/sources/add/deep.hpp\n");
}

// Eight directories may be given, and the last one is looked into.
SOURCE_TEST(source__all_directories_are_searched) {
    char here[100];
    snprintf(here, sizeof here, "%s", s->f.directory);
    for (int i = 0; i < PTOWSP_PTO_INCLUDE_MAX; i++) {
        s->pto.include_dirs[i] = i + 1 < PTOWSP_PTO_INCLUDE_MAX ? "/nowhere" : here;
    }
    add_file(s, "one.hpp", "int one;\n");
    s->pto.text = "#include \"one.hpp\"\n#include \"none.hpp\"\nvoid add() {}\n";
    source_emit(s, "aicore/sources/add/one.hpp");
    assert_string_equal(s->text, "int one;\n");
}

// Conditions go with the lines that they are around, all their lines; what is in comments and strings is
// no directive. "/*/" only opens a comment.
SOURCE_TEST(source__directives_are_read_as_the_preprocessor_does) {
    s->pto.text =
        "#if defined(A) && \\\n    defined(B)\n#  include <b.h>\n#elif C\n#\tinclude <c.h>\n"
        "#else\n#define OTHER\n#endif\n"
        "/*\n#include <never1.h>\n*/\n"
        "/*/\n#include <never2.h>\n*/\n"
        "// a quote ' and \" here\n"
        "const char *text = \"a\\\"\\\n#include <never3.h>\\\n\";\n"
        "const int n = 1'000;\n#include <g.h>\n"
        "void add() {}\n";
    source_emit(s, "aicore/kernels/add.cpp");
    has(s, "\n#if defined(A) && \\\n    defined(B)\n#  include <b.h>\n#elif C\n#\tinclude <c.h>\n"
           "#else\n#endif\n#include <g.h>\n");
    lacks(s, "never");
    lacks(s, "OTHER");
}

TEST(source__headers_outside_are_refused) {
    source s;
    char text[200], here[100];
    source_begin(&s);
    snprintf(here, sizeof here, "%s", "/");
    s.pto.include_dirs[0] = here;
    snprintf(text, sizeof text, "#include \"%s/one.hpp\"\nvoid add() {}\n", s.f.directory);
    s.pto.text = text;
    add_file(&s, "one.hpp", "int one;\n");
    is_refused(&s, PTOWSP_UNSUPPORTED,
               "emit: kernel add: its source includes %s/one.hpp, outside of its directories");
}

// A source of 256 files, and one more.
TEST(source__too_many_headers_are_refused) {
    for (int over = 0; over < 2; over++) {
        source s;
        char here[100], *text = (char *)calloc(1, 256 * 40), *at = text;
        assert_non_null(text);
        source_begin(&s);
        snprintf(here, sizeof here, "%s", s.f.directory);
        s.pto.include_dirs[0] = here;
        for (int i = 0; i < 255 + over; i++) {
            char name[16];
            snprintf(name, sizeof name, "h%d.hpp", i);
            add_file(&s, name, "int one;\n");
            at += sprintf(at, "#include \"%s\"\n", name);
        }
        sprintf(at, "void add() {}\n");
        s.pto.text = text;
        if (over) {
            is_refused(&s, PTOWSP_LIMIT_EXCEEDED,
                       "emit: kernel add: its source includes more than 256 files");
        } else {
            source_emit(&s, "aicore/kernels/add.cpp");
            assert_int_equal(npu_files_below("aicore/sources/"), 256);
            source_end(&s);
        }
        free(text);
    }
}

// "aicore/sources/add/" and the name of a header are at most 1023 characters.
TEST(source__paths_of_headers_have_a_limit) {
    enum { LIMIT = 1023, START = sizeof "aicore/sources/add/" - 1, EACH = 200 };
    for (int over = 0; over < 3; over++) {
        source s;
        char name[1400] = "", path[1600], text[1600], wanted[1600], back[512];
        source_begin(&s);
        assert_non_null(getcwd(back, sizeof back));
        assert_int_equal(chdir(s.f.directory), 0);
        size_t length = LIMIT - START + (over == 2 ? 300 : (size_t)over);
        for (size_t i = 0; i < length; i++) {
            name[i] = i % EACH == EACH - 1 && i + 1 < length ? '/' : 'h';
            if (name[i] == '/') {
                name[i] = '\0';
                assert_int_equal(mkdir(name, 0755), 0);
                name[i] = '/';
            }
        }
        write_file(".", name, "int one;\n", 9);
        snprintf(text, sizeof text, "#include \"%s\"\nvoid add() {}\n", name);
        snprintf(path, sizeof path, "aicore/sources/add/%s", name);
        s.pto.include_dirs[0] = ".";
        s.pto.text = text;
        source_compile(&s, NULL);
        const ptowsp_status status = npu_files_try(s.f.context, s.f.program);
        assert_int_equal(chdir(back), 0);
        if (over == 1) {
            snprintf(wanted, sizeof wanted, "emit: kernel add: the path of %s is too long", name);
            assert_int_equal(status, PTOWSP_LIMIT_EXCEEDED);
            assert_memory_equal(ptowsp_context_error(s.f.context).text, wanted, 400);
        } else {  // a name that no path can have is not found, and stays a line
            assert_int_equal(status, PTOWSP_OK);
            assert_int_equal(npu_files_below("aicore/sources/"), over ? 1 : 2);
        }
        snprintf(wanted, sizeof wanted, "rm -rf '%s'", s.f.directory);  // paths are long here
        assert_int_equal(system(wanted), 0);
        source_end(&s);
    }
}

// -- entries --------------------------------------------------------------------------------------

// A part of a longer name is none, nor is one in a comment.
TEST(source__an_entry_is_a_whole_name) {
    static const char *const texts[] = {"void add_x();", "void addX();",       "void addx();",
                                        "void add0();",  "void xadd();",       "/* add */",
                                        "/*/ add */",    "char a[] = \"add\";"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        source s;
        source_begin(&s);
        s.pto.text = texts[i];
        is_refused(&s, PTOWSP_UNSUPPORTED, "emit: kernel add: its PTO-ISA source has no entry add");
    }
    static const char *const good[] = {"void add() {}", "int x;void(add)();", "template <> add[]"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        source s;
        source_begin(&s);
        s.pto.text = good[i];
        source_emit(&s, "aicore/sources/add/add.hpp");
        assert_string_equal(s.text, good[i]);
        source_end(&s);
    }
}

TEST(source__costs_of_pto_sources_are_refused) {
    source s;
    source_begin(&s);
    s.pto.text = "void add() {}\n";
    s.desc.cost = nothing;
    is_refused(&s, PTOWSP_UNSUPPORTED,
               "emit: kernel add: a PTO-ISA source with a cost function cannot be emitted, as a "
               "tree does not have the function (give cycles, or neither)");
}

// -- files that are no text -----------------------------------------------------------------------

TEST(source__files_that_are_no_text_are_refused) {
    for (int which = 0; which < 2; which++) {
        source s;
        source_begin(&s);
        assert_int_equal(mkdir(path_of(&s, "a"), 0755), 0);
        write_file(s.f.directory, "b", "void add()\0{}\n", 14);
        char path[120];
        snprintf(path, sizeof path, "%s/%c", s.f.directory, 'a' + which);
        s.pto.file = path;
        is_refused(&s, which ? PTOWSP_UNSUPPORTED : PTOWSP_SYSTEM_FAILED,
                   which ? "emit: kernel add: its source %s/b is no text"
                         : "emit: kernel add: its source %s/a: Is a directory");
    }
}

// Opening one would wait for a writer; of a header, too.
TEST(source__fifos_are_refused) {
    for (int which = 0; which < 2; which++) {
        source s;
        source_begin(&s);
        char path[120];
        snprintf(path, sizeof path, "%s/fifo", s.f.directory);
        assert_int_equal(mkfifo(path, 0600), 0);
        s.desc.pto = which ? s.desc.pto : NULL;
        s.desc.fn = which ? s.desc.fn : nothing;
        s.desc.source.file = which ? NULL : path;
        s.pto.file = path;
        is_refused(&s, PTOWSP_SYSTEM_FAILED,
                   "emit: kernel add: its source %s/fifo: it is a FIFO, not a file");
    }
}

// A file of 64 MiB is more than a source; without blocks on the disk, it is all zeros.
TEST(source__files_without_end_are_refused) {
    source s;
    source_begin(&s);
    s.desc.pto = NULL;
    s.desc.fn = nothing;
    add_file(&s, "large.c", "");
    char path[120];
    snprintf(path, sizeof path, "%s/large.c", s.f.directory);
    assert_int_equal(truncate(path, (64 << 20) + 1), 0);
    s.desc.source.file = path;
    is_refused(&s, PTOWSP_UNSUPPORTED, "emit: kernel add: its source %s/large.c is no text");
}

// -- C functions ----------------------------------------------------------------------------------

TEST(source__costs_of_functions_need_a_source) {
    source s;
    source_begin(&s);
    s.desc.pto = NULL;
    s.desc.fn = s.desc.cost = nothing;
    s.desc.source.text = "static ptowsp_cycles add(const ptowsp_task *, void *) { return 1; }\n";
    is_refused(&s, PTOWSP_UNSUPPORTED,
               "emit: kernel add has a cost function, which its source does not name");
    source_begin(&s);
    s.desc.pto = NULL;  // for runs that measure time
    s.desc.cycles = 5;
    s.desc.source.text = "int x;\n";
    is_refused(&s, PTOWSP_UNSUPPORTED, "emit: kernel add: no source, as it has no function");
}

// A source with line ends keeps them; includes go before its namespace, and what is in a comment of
// several lines or in a string stays where it is.
SOURCE_TEST(source__lines_of_functions_are_kept) {
    s->desc.pto = NULL;
    s->desc.fn = nothing;
    s->desc.source.text = "# include <stddef.h>\n/*\n#include <none.h>\n*/\n"
                          "static const char *text = \"\\\n#include <none.h>\\\n\";\n"
                          "static ptowsp_cycles add(const ptowsp_task *t, void *u) { return 1; }";
    source_emit(s, "aicore/kernels/add.cpp");
    const char *space = strstr(s->text, "namespace {");
    assert_non_null(space);
    assert_true(strstr(s->text, "# include <stddef.h>\n") < space);
    assert_true(strstr(s->text, "/*\n#include <none.h>\n*/\n") > space);
    assert_true(strstr(s->text, "\"\\\n#include <none.h>\\\n\";\n") > space);
    has(s, "{ return 1; }\n\n}  // namespace\n");
    has(s, "::wsp::run_native(wsp_here, \"add\", add, nullptr, 0);");  // fn is the kernel's name
}

// A text without line ends is broken, but not in initialisers of arguments, nor behind a digit's
// separator.
SOURCE_TEST(source__text_is_broken_outside_of_values) {
    s->desc.pto = NULL;
    s->desc.fn = nothing;
    s->desc.source.text = "static int n = 1'000; static int sum(pair p) { return p.a; } "
                          "static int m() { return sum({1, 2}) + f(g{1}); } struct s { int a; }; "
                          "static ptowsp_cycles add(const ptowsp_task *t, void *u) { return 1; }";
    source_emit(s, "aicore/kernels/add.cpp");
    has(s, "static int n = 1'000;\nstatic int sum(pair p) {\n    return p.a;\n}\n\n"
           "static int m() {\n    return sum({1, 2}) + f(g{1});\n}\n\n"
           "struct s {\n    int a;\n};\nstatic ptowsp_cycles add(");
}

// A file and a text are two sources, even of the same bytes; two kernels of one file share it.
TEST(source__kernels_of_one_file_share_it) {
    for (int which = 0; which < 3; which++) {
        source s;
        char path[120];
        source_begin(&s);
        s.desc.pto = NULL;
        s.desc.fn = nothing;
        static const char text[] =
            "static ptowsp_cycles add(const ptowsp_task *t, void *u) { return 1; }\n";
        add_file(&s, "add.c", text);
        snprintf(path, sizeof path, "%s/add.c", s.f.directory);
        s.desc.source.file = path;
        s.desc.source.fn = "add";
        ptowsp_kernel_desc other = s.desc;
        other.name = "other";
        if (which > 0) {
            other.source.file = NULL;
            other.source.text = text;
        }
        if (which == 2) {
            const ptowsp_kernel_desc first = s.desc;
            s.desc = other;
            other = first;
        }
        source_compile(&s, &other);
        snprintf(path, sizeof path, "aicore/kernels/%s.cpp", s.desc.name);
        s.text = npu_files_of(s.f.context, s.f.program, path);
        assert_int_equal(strstr(s.text, "wsp_kernel_add(") && strstr(s.text, "wsp_kernel_other("),
                         which == 0);
        source_end(&s);
    }
}

// A name of C has no limit: a word that is longer than a line is not broken.
TEST(source__words_may_be_longer_than_a_line) {
    char name[151], text[320], wanted[240];
    memset(name, 'f', sizeof name);
    name[sizeof name - 1] = '\0';
    for (int is_pto = 0; is_pto < 2; is_pto++) {
        source s;
        source_begin(&s);
        if (is_pto) {
            snprintf(text, sizeof text, "void %s() {}\n", name);
            s.pto.text = text;
            s.pto.entry = name;
            snprintf(wanted, sizeof wanted,
                     "\n    %s(wsp::element<double>(&task->tiles[0],\n        0, 0),", name);
        } else {
            snprintf(text, sizeof text,
                     "static ptowsp_cycles %s(const ptowsp_task *t, void *u) { return 1; }\n",
                     name);
            s.desc.pto = NULL;
            s.desc.fn = nothing;
            s.desc.source.text = text;
            s.desc.source.fn = name;
            snprintf(wanted, sizeof wanted, " \"add\",\n        %s,\n        nullptr, 0);\n", name);
        }
        source_emit(&s, "aicore/kernels/add.cpp");
        has(&s, wanted);
        source_end(&s);
    }
}
