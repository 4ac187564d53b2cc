// Where trees are kept, what builds them, and how large they may be: paths that the system does not take,
// an environment that says nothing, compilers that say strange things, many kernels and many headers.

#include "npu_build_fixture.h"

static void fails(build *b, const char *text) {
    test_refused(b->f.context, try_build(b), PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, text);
}

// -- what the environment says --------------------------------------------------------------------

// Without a description, and with an empty one: c++ of the path, -O1, and the user's cache.
BUILD_TEST(cache__nothing_said_is_the_default) {
    char *kept[4];
    environment(kept, false);
    setenv("PATH", textf("%s:%s", b->fake, kept[1] ? kept[1] : "/usr/bin:/bin"), 1);
    setenv("HOME", b->f.directory, 1);
    unsetenv("XDG_CACHE_HOME");
    static const char *const compilers[] = {NULL, "", "  "};
    for (int i = 0; i < 3; i++) {
        const ptowsp_npu_build_desc empty = {"", "", NULL};
        unsetenv("CXX");
        if (compilers[i]) {
            setenv("CXX", compilers[i], 1);
        }
        test_ok(b->f.context, build_as(b, i % 2 ? &empty : NULL));
        assert_int_equal(ptowsp_npu_was_cached(b->npu), i > 0);
        assert_non_null(strstr(read_file(ptowsp_npu_directory(b->npu), "key"), "3 c++\n"));
        assert_non_null(strstr(read_file(ptowsp_npu_directory(b->npu), "key"), "3 -O1\n"));
    }
    // What all trees share is compiled for the eye, the rest to be fast.
    assert_non_null(strstr(read_file(b->fake, "calls"), "-O1 -Og"));
    setenv("HOME", "", 1);
    test_refused(b->f.context, build_as(b, NULL), PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                 "npu: no cache directory: neither XDG_CACHE_HOME nor HOME names one");
    environment(kept, true);
}

// -- paths ----------------------------------------------------------------------------------------

BUILD_TEST(cache__paths_that_cannot_be_made_are_named) {
    write_file(b->f.directory, "file", "");
    static const char *const below[] = {"file", "file/a", "file/a/b"};
    static const char *const whats[] = {"cannot use the cache", "cannot make the cache",
                                        "cannot make the cache"};
    for (int i = 0; i < 3; i++) {
        const char *path = textf("%s/%s", b->f.directory, below[i]);
        const char *text = textf("npu: %s %s: Not a directory", whats[i], path);
        b->desc.cache_directory = path;
        fails(b, text);
    }
}

// From a directory whose path is long, and from one that was removed, which no path leads to.
BUILD_TEST(cache__paths_from_here_need_a_here) {
    char here[1024];
    static char deep[1200];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(b->f.directory), 0);
    for (int i = 0; i < 4; i++) {
        char name[100] = "";
        memset(name, 'a' + i, 99);
        name[99] = '\0';
        assert_int_equal(mkdir(name, 0755), 0);
        assert_int_equal(chdir(name), 0);
    }
    b->desc.cache_directory = "cache";
    test_ok(b->f.context, try_build(b));
    assert_non_null(getcwd(deep, sizeof deep));
    assert_true(strlen(deep) > 400);
    assert_memory_equal(ptowsp_npu_directory(b->npu), deep, strlen(deep));
    assert_int_equal(mkdir("gone", 0755), 0);
    assert_int_equal(chdir("gone"), 0);
    assert_int_equal(rmdir("../gone"), 0);
    fails(b, "npu: cannot make the cache cache: No such file or directory");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(system(textf("rm -rf %s/aaaa*", b->f.directory)), 0);
}

// Slashes at its end do not make another one.
BUILD_TEST(cache__slashes_at_the_end_are_none) {
    test_ok(b->f.context, try_build(b));
    b->desc.cache_directory = textf("%s///", b->cache);
    test_ok(b->f.context, try_build(b));
    assert_true(ptowsp_npu_was_cached(b->npu));
}

// -- what compilers say ---------------------------------------------------------------------------

// A compiler that says these lines, and fails.
static void says(build *b, const char *lines) {
    write_file(b->fake, "lines", lines);
    write_file(
        b->fake, "c++",
        textf(
            "#!/bin/sh\ncase \"$*\" in *--version*) echo 1; exit;; esac\ncat '%s/lines'\nexit 1\n",
            b->fake));
}

BUILD_TEST(compiler__the_first_error_of_its_lines_is_told) {
    const struct {
        const char *lines, *told;
    } cases[] = {{"a note\n\nb.cpp:3: error: one\nc.cpp: error: two\n", "b.cpp:3: error: one"},
                 {"\n\nin function f:\nb.o: undefined reference to `g'\n",
                  "b.o: undefined reference to `g'"},
                 {"\nonly this", "only this"},
                 {"first\nsecond\n", "first"},
                 {"\n\n", "it says nothing"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        says(b, cases[i].lines);
        const char *wanted = textf("npu: the compiler failed: %s (all of it: ", cases[i].told);
        assert_int_equal(try_build(b), PTOWSP_SYSTEM_FAILED);
        assert_memory_equal(ptowsp_context_error(b->f.context).text, wanted, strlen(wanted));
    }
}

// What it leaves must be a file, with something in it.
TEST(compiler__its_output_must_be_a_file) {
    static const char *const makes[] = {": > \"$out\"", "mkdir \"$out\""};
    for (int i = 0; i < 2; i++) {
        build b;
        build_make(&b);
        write_file(b.fake, "c++",
                   textf("#!/bin/sh\ncase \"$*\" in *--version*) echo 1; exit;; esac\nout=\n"
                         "for arg in \"$@\"; do [ \"$out\" != next ] || out=$arg; "
                         "[ \"$arg\" != -o ] || out=next; done\n%s\n",
                         makes[i]));
        assert_int_equal(try_build(&b), PTOWSP_SYSTEM_FAILED);
        const char *told = "npu: the compiler failed: it says nothing (all of it: ";
        assert_memory_equal(ptowsp_context_error(b.f.context).text, told, strlen(told));
        assert_int_equal(entries_like(b.cache, "tmp."), 0);
        build_free(&b);
    }
}

// -- large programs -------------------------------------------------------------------------------

// C functions of different sources are compiled alone, tile kernels 16 at a time.
BUILD_TEST(large__kernels_are_compiled_in_groups) {
    enum { NATIVE = 34, TILED = 17 };
    static char names[NATIVE][8], sources[NATIVE][300], text[16384], tasks[8192];
    ptowsp_parse_kernel kernels[NATIVE] = {0};
    size_t size = (size_t)sprintf(text, "module large\ntensor x f32 [64, 8] global\n"), end = 0;
    for (int i = 0; i < NATIVE; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        snprintf(sources[i], sizeof sources[i], "// %d\n%s", i, NPU_SCALE_TEXT);
        const ptowsp_parse_kernel kernel = {
            .name = names[i], .fn = npu_scale, .source = {.text = sources[i], .fn = "scale"}};
        kernels[i] = kernel;
        size += (size_t)sprintf(text + size, "kernel k%d(axes 0, inout y f32 8 x 8) vector\n", i);
        end += (size_t)sprintf(tasks + end, "  task k%d() y = x\n", i);
    }
    for (int i = 0; i < TILED; i++) {
        size += (size_t)sprintf(text + size,
                                "kernel t%d(axes 0, inout y f32 8 x 8) vector, 9 instructions\n"
                                "  machine \"910B\"\n  %%1 = parameter y\n  %%2 = const %d\n"
                                "  %%3 = mul %%1, %%2 : f32 8 x 8\n  store %%1, %%3\n",
                                i, i + 3);
        end += (size_t)sprintf(tasks + end, "  task t%d() y = x\n", i);
    }
    snprintf(text + size, sizeof text - size, "workload main\n%s", tasks);
    npu_program_free(&b->f);
    npu_parse(&b->f, text, kernels, NATIVE);
    npu_fixture_compile(&b->f, NULL);
    test_ok(b->f.context, try_build(b));
    uint32_t native = 0, tiled = 0;
    for (const char *at = read_file(b->fake, "calls"); (at = strstr(at, " -c aicore/")); at++) {
        native += strncmp(at, " -c aicore/kernels/k", 20) == 0;
        tiled += strncmp(at, " -c aicore/kernels/t", 20) == 0;
    }
    assert_int_equal(native, NATIVE);
    // 16 of them before dispatch.cpp, and one behind.
    assert_int_equal(tiled, 1);
    assert_non_null(strstr(read_file(b->fake, "calls"), " -c aicore/dispatch.cpp"));
}

// Trees have some 25 headers of their own, and may have 64.
BUILD_TEST(large__too_many_headers_are_refused) {
    static char text[8192];
    char *at = text;
    npu_program_free(&b->f);
    for (int i = 0; i < 64; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%d.h", i);
        write_file(b->f.directory, name, "int one;\n");
        at += sprintf(at, "#include \"%s\"\n", name);
    }
    sprintf(at, "void own(float *) {}\n");
    ptowsp_pto_source pto = {.text = text, .include_dirs[0] = b->f.directory};
    const ptowsp_parse_kernel own = {.name = "own", .pto = &pto};
    npu_parse(&b->f,
              "module large\n"
              "tensor x f32 [8, 8] global\n"
              "kernel own(axes 0, inout data f32 8 x 8) vector, a PTO-ISA source\n"
              "workload main\n"
              "  task own() data = x\n",
              &own, 1);
    npu_fixture_compile(&b->f, NULL);
    test_refused(b->f.context, try_build(b), PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                 "npu: the tree has too many headers");
}
