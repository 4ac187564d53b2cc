// Building trees and keeping them: what is found in the cache and what is not, several processes at
// once, interrupted and broken builds, directories that are refused, compilers that fail. The
// compiler is one that only pretends, and says what it was told; it is real in
// npu_execute_test.c.

#include "src/npu/npu_build.h"

#include "npu_build_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

// Lines of the compiler's calls with a text in them; forgets them.
static uint32_t calls(const build *b, const char *text) {
    uint32_t count = 0;
    char *all = (char *)(uintptr_t)textf("%s", read_file(b->fake, "calls"));
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n")) {
        count += strstr(line, text) != NULL;
    }
    return count;
}

static void forget_calls(const build *b) {
    write_file(b->fake, "calls", "");
}

// Builds, and looks whether it was there.
static void builds(build *b, bool is_cached) {
    test_ok(b->f.context, try_build(b));
    assert_int_equal(ptowsp_npu_was_cached(b->npu), is_cached);
}

// Fails with SYSTEM_FAILED and a text that has all these parts, and leaves no temporaries.
static void fails(build *b, const char *first, const char *second) {
    assert_int_equal(try_build(b), PTOWSP_SYSTEM_FAILED);
    assert_null(b->npu);
    const char *text = ptowsp_context_error(b->f.context).text;
    if (strncmp(text, "npu: ", 5) != 0 || !strstr(text, first) || !strstr(text, second)) {
        fail_msg("'%s' has no '%s' or no '%s'", text, first, second);
    }
}

static mode_t mode_of(const char *path) {
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_mode & 0777;
}

// -- keys -----------------------------------------------------------------------------------------

BUILD_TEST(cache__a_tree_is_compiled_once) {
    builds(b, false);
    assert_int_equal(calls(b, "-shared"), 1);
    assert_true(calls(b, " -c ") >= 5);
    char directory[256];
    snprintf(directory, sizeof directory, "%s", ptowsp_npu_directory(b->npu));
    assert_ptr_equal(strstr(directory, b->cache), directory);
    assert_int_equal(strlen(directory), strlen(b->cache) + 1 + 32);
    assert_true(is_there(directory, "tree/aicpu/expand.cpp"));
    assert_non_null(strstr(read_file(directory, "compile.log"), "-O7 -g -Iinclude"));
    assert_non_null(strstr(read_file(directory, "key"), "pretended 1.0"));
    assert_int_equal(npu_entries(b->cache), 2);  // the entry, and objects

    forget_calls(b);
    builds(b, true);
    assert_string_equal(ptowsp_npu_directory(b->npu), directory);
    assert_int_equal(calls(b, "--version"), 1);
    assert_int_equal(calls(b, ""), 1);
}

BUILD_TEST(cache__another_program_compiler_or_options_make_another_entry) {
    builds(b, false);
    b->desc.options = "-O7";
    builds(b, false);
    b->desc.options = "  -O7   -g ";  // the same words as at first
    builds(b, true);
    write_file(b->fake, "version", "pretended 1.1\n");
    builds(b, false);
    write_file(b->fake, "version", "pretended 1.0\n");
    builds(b, true);
    b->desc.compiler = textf("env %s", b->compiler);
    builds(b, false);
    b->desc.compiler = b->compiler;

    npu_program_free(&b->f);
    npu_names_of other = npu_plain_names;
    other.loop = "i";
    npu_program_make(&b->f, &other, NPU_SCALE_TEXT);
    builds(b, false);
    npu_program_free(&b->f);
    npu_program_make(&b->f, &npu_plain_names, NPU_SCALE_TEXT "// changed\n");
    builds(b, false);
    npu_program_free(&b->f);
    npu_program_make(&b->f, &npu_plain_names, NPU_SCALE_TEXT);
    builds(b, true);
}

static const char *processors(const build *b, const char *text) {
    static char said[4096];
    npu_text out = {NULL, 0, 0, false};
    const char *path = textf("%s/cpuinfo", b->f.directory);
    write_file(b->f.directory, "cpuinfo", text);
    assert_true(npu_print_processors(&out, path));
    snprintf(said, sizeof said, "%s", out.data ? out.data : "");
    npu_text_free(&out);
    return said;
}

// A cache may lie on a disk that several machines share.
BUILD_TEST(cache__options_that_say_native_have_the_processor_in_the_key) {
    assert_string_equal(processors(b, "processor\t: 0\nmodel\t\t: 6\ncpu MHz\t\t: 2000\n"
                                      "flags\t\t: fpu avx\n\nprocessor\t: 1\nmodel\t\t: 6\n"
                                      "cpu MHz\t\t: 1000\nflags\t\t: fpu avx\n\n"),
                        "model\t\t: 6\nflags\t\t: fpu avx\n");
    assert_string_equal(processors(b, "Features\t: a b\nCPU part\t: 0xd40\n\n"
                                      "Features\t: a b\nCPU part\t: 0xd03"),
                        "Features\t: a b\nCPU part\t: 0xd40\n"
                        "Features\t: a b\nCPU part\t: 0xd03\n");
    assert_string_equal(processors(b, ""), "");
    npu_text here = {NULL, 0, 0, false};
    struct utsname machine;
    assert_true(uname(&machine) >= 0);
    if (!npu_print_processors(&here, "/proc/cpuinfo")) {
        npu_print(&here, "on %s\n", machine.nodename);
    }
    assert_true(here.size > 0);
    static const char *const options[] = {"-O7", "-O7 -march=native", "-mtune=native -O7",
                                          "-O7 -Dwhat=natives", "-O7 -march=x86-64-v3"};
    for (int i = 0; i < 5; i++) {
        b->desc.options = options[i];
        builds(b, false);
        const char *key = read_file(ptowsp_npu_directory(b->npu), "key");
        assert_int_equal(strstr(key, here.data) != NULL, i == 1 || i == 2);
    }
    char native[256];
    snprintf(native, sizeof native, "env %s -mcpu=native", b->compiler);
    b->desc.compiler = native;
    builds(b, false);
    assert_non_null(strstr(read_file(ptowsp_npu_directory(b->npu), "key"), here.data));
    npu_text_free(&here);
}

BUILD_TEST(cache__files_that_programs_share_are_compiled_once_for_all) {
    builds(b, false);
    uint32_t all = calls(b, " -c ");
    npu_program_free(&b->f);
    npu_names_of other = npu_plain_names;
    other.loop = "i";
    npu_program_make(&b->f, &other, NPU_SCALE_TEXT);
    forget_calls(b);
    builds(b, false);
    uint32_t own = calls(b, " -c ");
    assert_true(own >= 1 && own + 4 <= all);
    assert_int_equal(calls(b, "expand.cpp"), 1);
    assert_int_equal(calls(b, " -c host/"), 0);
    assert_int_equal(calls(b, " -c aicore/kernels/"), 0);  // the same kernel
    b->desc.options = "-O6";                               // but not with other options
    forget_calls(b);
    builds(b, false);
    assert_int_equal(calls(b, " -c "), all);
}

// -- several at once, and interrupted -------------------------------------------------------------

static pid_t build_elsewhere(build *b) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        test_exit(try_build(b) == PTOWSP_OK && !ptowsp_npu_was_cached(b->npu) ? 0 : 1);
    }
    return child;
}

// Until a compiler of a process is at work.
static void wait_for_compiler(const build *b, pid_t process) {
    const char *name = textf("started.%ld", (long)process);
    const struct timespec short_while = {0, 5000000};
    for (int i = 0; i < 4000 && !is_there(b->fake, name); i++) {
        nanosleep(&short_while, NULL);
    }
    assert_true(is_there(b->fake, name));
}

BUILD_TEST(cache__two_processes_may_build_the_same_at_once) {
    mode(b, "slow");
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = build_elsewhere(b);
    }
    for (int i = 0; i < 2; i++) {
        wait_for_compiler(b, children[i]);
    }
    write_file(b->fake, "go", "");
    for (int i = 0; i < 2; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(npu_entries(b->cache), 2);
    builds(b, true);
}

// Sets the times of temporaries back.
static void age_temporaries(const char *path, time_t seconds) {
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        if (strncmp(entry->d_name, "tmp.", 4) == 0) {
            const struct timespec then = {time(NULL) - seconds, 0}, times[2] = {then, then};
            assert_int_equal(utimensat(AT_FDCWD, textf("%s/%s", path, entry->d_name), times, 0), 0);
        }
    }
    closedir(directory);
}

BUILD_TEST(cache__an_interrupted_build_leaves_no_entry) {
    mode(b, "slow");
    pid_t child = build_elsewhere(b);
    wait_for_compiler(b, child);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1),
                     0);  // its compilers become children of the test
    assert_int_equal(kill(child, SIGKILL), 0);
    write_file(b->fake, "go", "");
    while (wait(NULL) > 0) {
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    mode(b, "work");
    assert_int_equal(entries_like(b->cache, "tmp."), 1);
    builds(b, false);
    builds(b, true);
    assert_int_equal(entries_like(b->cache, "tmp."), 1);  // it might still be at work

    b->desc.options = "-O6";
    age_temporaries(b->cache, 3500);
    builds(b, false);
    assert_int_equal(entries_like(b->cache, "tmp."), 1);
    b->desc.options = "-O5";
    age_temporaries(b->cache, 3700);
    builds(b, false);
    assert_int_equal(entries_like(b->cache, "tmp."), 0);
}

// What looks like a temporary, and is not one of a build, is somebody else's.
BUILD_TEST(cache__only_its_own_temporaries_are_removed) {
    static const char *const names[] = {"tmp.12.345", "tmp.data", "tmp.1",  "tmp.1.2x",
                                        "tmp..7",     "tmp.8.9",  "tmp.3.4"};
    const char *path;
    assert_int_equal(mkdir(b->cache, 0700), 0);
    for (int i = 0; i < 6; i++) {
        path = textf("%s/%s", b->cache, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        write_file(path, "mine", "some data\n");
        if (i > 0 && i < 5) {
            write_file(path, ".ptowsp", "ptowsp\n");
        }
    }
    path = textf("%s/tmp.6.6", b->cache);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(path, ".ptowsp", "ptowsp\n");  // this one is of a build
    write_file(path, "libwsp_tree.so", "");
    age_temporaries(b->cache, 3700);
    write_file(b->f.directory, ".ptowsp", "ptowsp\n");
    path = textf("%s/%s", b->cache, names[6]);
    assert_int_equal(symlink("..", path), 0);
    const struct timespec then = {time(NULL) - 3700, 0}, times[2] = {then, then};
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
    builds(b, false);
    for (int i = 0; i < 6; i++) {
        path = textf("%s/mine", names[i]);
        assert_true(is_there(b->cache, path));
    }
    assert_true(is_there(b->cache, names[6]));
    assert_true(is_there(b->f.directory, ".ptowsp"));
    assert_false(is_there(b->cache, "tmp.6.6"));
}

// -- broken entries -------------------------------------------------------------------------------

static void remove_in(const char *directory, const char *name) {
    npu_remove_all(textf("%s/%s", directory, name));
}

BUILD_TEST(cache__broken_entries_are_built_again) {
    builds(b, false);
    const char *entry = textf("%s", ptowsp_npu_directory(b->npu));
    const char *const names[] = {"complete", "libwsp_tree.so"};
    const char *const texts[] = {NULL, "", "nonsense"};  // gone; a disk was full; overwritten
    for (int i = 0; i < 6; i++) {
        ptowsp_npu_destroy(b->npu);  // a library that is in use must not change
        b->npu = NULL;
        if (texts[i / 2]) {
            write_file(entry, names[i % 2], texts[i / 2]);
        } else {
            remove_in(entry, names[i % 2]);
        }
        builds(b, false);
        builds(b, true);
    }
    remove_in(b->cache, entry + strlen(b->cache) + 1);
    write_file(b->cache, entry + strlen(b->cache) + 1, "no directory");
    builds(b, false);
    builds(b, true);
    remove_in(entry, "complete");
    remove_in(entry, "libwsp_tree.so");
    remove_in(entry, "tree");
    remove_in(b->cache, "objects");
    builds(b, false);
    builds(b, true);
    assert_int_equal(npu_entries(b->cache), 2);
}

// Some object in the cache: its directory, and its name.
static void find_object(const build *b, char objects[256], char name[64]) {
    snprintf(objects, 256, "%s/objects", b->cache);
    DIR *directory = opendir(objects);
    assert_non_null(directory);
    name[0] = '\0';
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        size_t length = strlen(entry->d_name);
        if (length > 2 && length < 60 && strcmp(entry->d_name + length - 2, ".o") == 0) {
            strcpy(name, entry->d_name);
        }
    }
    closedir(directory);
    assert_true(name[0] != '\0');
}

// Only it is compiled, beside the files that the program has for itself, and nothing is linked with
// it as it was.
BUILD_TEST(cache__damaged_objects_are_compiled_again) {
    builds(b, false);
    char objects[256], name[64], sum[64];
    find_object(b, objects, name);
    snprintf(sum, sizeof sum, "%.*s.sum", (int)strlen(name) - 2, name);
    uint32_t own = 0;
    for (int i = 0; i < 6; i++) {
        switch (i) {
        case 1: write_file(objects, name, "damaged\n"); break;
        case 2: write_file(objects, name, ""); break;
        case 3: remove_in(objects, name); break;
        case 4: write_file(objects, sum, ""); break;
        case 5: remove_in(objects, sum); break;
        default: break;
        }
        remove_in(ptowsp_npu_directory(b->npu), "complete");
        forget_calls(b);
        builds(b, false);
        own = i == 0 ? calls(b, " -c ") : own;
        assert_int_equal(calls(b, "-shared"), 1);
        assert_int_equal(calls(b, " -c "), own + (i > 0));
        assert_true(is_there(objects, name) && is_there(objects, sum));
    }
}

BUILD_TEST(cache__objects_that_cannot_be_linked_are_compiled_again) {
    builds(b, false);
    uint32_t all = calls(b, " -c ");
    char objects[256], name[64], hash[NPU_HASH_SIZE];
    find_object(b, objects, name);
    write_file(objects, name, "damaged");
    npu_hash("damaged", 7, hash);  // as if it had been made so
    strcpy(strrchr(name, '.'), ".sum");
    write_file(objects, name, hash);
    remove_in(ptowsp_npu_directory(b->npu), "complete");
    forget_calls(b);
    builds(b, false);
    assert_int_equal(calls(b, "-shared"), 2);
    assert_true(calls(b, " -c ") > all);
    builds(b, true);
}

// -- the directory --------------------------------------------------------------------------------

BUILD_TEST(cache__its_directory_is_made_for_the_owner_alone) {
    char deep[256];
    snprintf(deep, sizeof deep, "%s/a/b c/d/", b->f.directory);
    b->desc.cache_directory = deep;
    builds(b, false);
    deep[strlen(deep) - 1] = '\0';
    assert_int_equal(mode_of(deep), 0700);
    assert_int_equal(mode_of(ptowsp_npu_directory(b->npu)), 0700);
    assert_ptr_equal(strstr(ptowsp_npu_directory(b->npu), deep), ptowsp_npu_directory(b->npu));

    char here[1024];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(b->f.directory), 0);
    b->desc.cache_directory = "a/b c/d";  // relative: the same
    b->desc.compiler = "fake/c++";
    builds(b, true);
    assert_int_equal(chdir(here), 0);
}

BUILD_TEST(cache__its_default_is_the_users_cache) {
    char home[256];
    char *kept[4];
    environment(kept, false);
    snprintf(home, sizeof home, "%s/home", b->f.directory);
    const char *cache = textf("%s/xdg", b->f.directory);
    b->desc.cache_directory = NULL;
    b->desc.compiler = NULL;
    setenv("CXX", b->compiler, 1);
    setenv("HOME", home, 1);
    setenv("XDG_CACHE_HOME", cache, 1);
    builds(b, false);
    assert_true(is_there(cache, "ptowsp/objects"));
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    builds(b, false);
    assert_true(is_there(home, ".cache/ptowsp/objects"));
    unsetenv("XDG_CACHE_HOME");
    builds(b, true);
    unsetenv("HOME");
    fails(b, "no cache directory", "neither XDG_CACHE_HOME nor HOME");
    environment(kept, true);
}

BUILD_TEST(cache__directories_that_others_can_write_to_are_refused) {
    assert_int_equal(mkdir(b->cache, 0755), 0);
    assert_int_equal(chmod(b->cache, 0775), 0);
    fails(b, b->cache, "is writable for others, so its contents cannot be trusted (chmod go-w)");
    assert_int_equal(chmod(b->cache, 0757), 0);
    fails(b, b->cache, "is writable for others");
    assert_int_equal(npu_entries(b->cache), 0);
    assert_int_equal(chmod(b->cache, 0755), 0);  // reading does no harm
    builds(b, false);
    if (geteuid() == 0) {
        assert_int_equal(chown(b->cache, 12345, 12345), 0);
        fails(b, b->cache, "belongs to another user");
        assert_int_equal(chown(b->cache, 0, 0), 0);
    }
}

// Whoever owns a link can lead it elsewhere at any time.
BUILD_TEST(cache__links_of_others_are_refused) {
    assert_int_equal(mkdir(b->cache, 0700), 0);
    const char *path = textf("%s/link", b->f.directory);
    assert_int_equal(symlink(b->cache, path), 0);
    b->desc.cache_directory = path;
    builds(b, false);
    if (geteuid() == 0) {
        assert_int_equal(lchown(path, 12345, 12345), 0);
        fails(b, path, "is a link of another user, so its target cannot be trusted");
        path = textf("%s/link/", b->f.directory);
        fails(b, "is a link of another user", "");
    }
}

// A directory on the way to the cache that others can write to: they could put another one there.
BUILD_TEST(cache__is_not_where_others_can_exchange_it) {
    char link[220];
    const char *open_at = textf("%s/open", b->f.directory);
    const char *below = textf("%s/mine/cache", open_at);
    snprintf(link, sizeof link, "%s/link", b->f.directory);
    assert_int_equal(mkdir(open_at, 0755), 0);
    assert_int_equal(chmod(open_at, 0777), 0);
    b->desc.cache_directory = below;
    fails(b, "can be exchanged by others: ", "/open on the way to it is writable for others");
    assert_int_equal(chmod(open_at, 0775), 0);
    fails(b, "can be exchanged by others: ", "is writable for others");
    assert_int_equal(npu_entries(below), 0);
    // Behind a link of ours it is the same; and a link on the way.
    assert_int_equal(symlink(below, link), 0);
    b->desc.cache_directory = link;
    fails(b, "can be exchanged by others: ", "/open on the way to it");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("open/mine", link), 0);
    below = textf("%s/cache", link);
    b->desc.cache_directory = below;
    fails(b, "can be exchanged by others: ", "/open on the way to it");
    assert_int_equal(chmod(open_at, 01777), 0);  // as /tmp
    builds(b, false);
    if (geteuid() == 0) {
        assert_int_equal(lchown(link, 12345, 12345), 0);
        fails(b, "can be exchanged by others: ", "/link on the way to it belongs to another user");
        assert_int_equal(lchown(link, 0, 0), 0);
        assert_int_equal(chown(open_at, 12345, 12345), 0);
        fails(b, "/open on the way to it belongs to another user", "");
        assert_int_equal(chown(open_at, 0, 0), 0);
    }
    builds(b, true);
}

// What compilers read of the environment, and where one word ends, is in the key.
BUILD_TEST(cache__the_environment_of_the_compiler_makes_another_entry) {
    builds(b, false);
    const uint32_t first = (uint32_t)npu_entries(b->cache);
    assert_int_equal(setenv("CPATH", "/somewhere", 1), 0);
    builds(b, false);
    builds(b, true);
    assert_int_equal(setenv("CPATH", "/elsewhere", 1), 0);
    builds(b, false);
    assert_int_equal(unsetenv("CPATH"), 0);
    builds(b, true);
    assert_int_equal(npu_entries(b->cache), first + 2);
    // "c++ one" is a file, or a compiler with an option.
    const char *file = textf("%s one", b->compiler);
    b->desc.compiler = file;
    builds(b, false);
    write_program(b->fake, "c++ one", fake.compiler, fake.compiler_size);
    assert_int_equal(chmod(file, 0755), 0);
    builds(b, false);
    assert_int_equal(npu_entries(b->cache), first + 4);
}

// With the rights of another user the environment would choose what is run with them.
BUILD_TEST(build__is_refused_with_the_rights_of_others) {
    if (geteuid() == 0) {
        assert_int_equal(setegid(12345), 0);
        assert_int_equal(try_build(b), PTOWSP_UNSUPPORTED);
        assert_int_equal(setegid(getgid()), 0);
        test_error_is(b->f.context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                      "npu: nothing is built with the rights of another user or group "
                      "(set-user-ID)");
    }
    builds(b, false);
}

// Nothing of a path, a name or an option is a command, whatever is in it.
BUILD_TEST(build__takes_hostile_paths_and_options_as_they_are) {
    char mark[300];
    snprintf(mark, sizeof mark, "%s/mark", b->f.directory);
    b->desc.cache_directory = textf("%s/a b\n$(touch mark);`touch mark`'\"*", b->f.directory);
    b->desc.options = "-DX=\"$(touch"
                      " mark)\" ;touch mark `touch mark` | & \\ 'a";
    builds(b, false);
    builds(b, true);
    assert_false(is_there(b->f.directory, "mark"));
    mode(b, "fail");
    b->desc.options = "-O2 %s%n%d\n";
    fails(b, "no semicolon", "a b $(touch mark)");
    assert_null(strchr(ptowsp_context_error(b->f.context).text, '\n'));
}

// -- compilers ------------------------------------------------------------------------------------

BUILD_TEST(compiler__that_is_missing_is_named) {
    b->desc.compiler = "no-such-compiler";
    fails(b, "there is no compiler no-such-compiler", "CXX");
    b->desc.compiler = "/no/such/compiler -m64";
    fails(b, "there is no compiler /no/such/compiler", "");
    b->desc.compiler = b->f.directory;
    fails(b, "the compiler", "does not work");
    b->desc.compiler = "false";
    fails(b, "the compiler false does not work", "exits with 1");
    b->desc.compiler = b->compiler;
    mode(b, "mute");
    fails(b, "does not work: asked for its --version", "exits with 1");
    assert_int_equal(entries_like(b->cache, "tmp."), 0);
}

// The log of a failure, whose path is in the error's text.
static const char *log_of(const build *b) {
    const char *text = ptowsp_context_error(b->f.context).text, *at = strstr(text, "(all of it: ");
    assert_non_null(at);
    char name[64];
    at = strstr(at, b->cache);
    assert_non_null(at);
    snprintf(name, sizeof name, "%.36s", at + strlen(b->cache) + 1);
    return read_file(b->cache, name);
}

BUILD_TEST(compiler__errors_are_shown_and_all_it_said_is_kept) {
    mode(b, "fail");
    fails(b, "the compiler failed: a.cpp:2:3: error: no semicolon (all of it: ", ".log)");
    assert_non_null(strstr(log_of(b), "a.cpp:1: note: at work\na.cpp:2:3: error: no semicolon\n"));
    assert_non_null(strstr(log_of(b), "-std=c++17"));
    assert_int_equal(npu_entries(b->cache), 2);  // the log, and objects
    mode(b, "silent");
    fails(b, "the compiler failed: it says nothing", "");
    mode(b, "die");
    fails(b, "the compiler was killed: it says nothing", "");
    mode(b, "work");
    builds(b, false);
    assert_int_equal(npu_entries(b->cache), 2);  // the entry, and objects
}

BUILD_TEST(compiler__what_it_makes_must_be_a_tree) {
    write_file(b->fake, "stub.so", "no library\n");
    fails(b, "what was built cannot be loaded: ", "libwsp_tree.so");
    write_file(b->fake, "stub.c", "int other;\n");
    run_cc("-shared -fPIC %s/stub.c -o %s/stub.so", b->fake, b->fake);
    fails(b, "what was built cannot be loaded: it has no wsp_runner_create", "");
    assert_int_equal(npu_entries(b->cache), 1);
}

BUILD_TEST(compiler__works_for_callers_that_ignore_their_children) {
    struct sigaction before;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    assert_int_equal(sigaction(SIGCHLD, &ignore, &before), 0);
    ptowsp_status status = try_build(b);
    mode(b, "fail");
    b->desc.options = "-O6";
    ptowsp_npu *first = b->npu;
    b->npu = NULL;
    ptowsp_status failed = try_build(b);
    assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
    ptowsp_npu_destroy(first);
    assert_int_equal(status, PTOWSP_OK);
    assert_int_equal(failed, PTOWSP_SYSTEM_FAILED);
}

BUILD_TEST(compiler__is_heard_by_callers_that_have_closed_their_standard_files) {
    mode(b, "fail");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 3; i++) {
            close(i);
        }
        ptowsp_status status = try_build(b);
        const char *text = ptowsp_context_error(b->f.context).text;
        test_exit(status == PTOWSP_SYSTEM_FAILED && strstr(text, "error: no semicolon") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(calls(b, "-shared"), 0);
}

BUILD_TEST(build__refuses_what_cannot_be_emitted) {
    test_invalid(b->f.context, ptowsp_npu_build(b->f.context, NULL, &b->desc, &b->npu),
                 "npu: program is NULL");
    test_invalid(b->f.context, ptowsp_npu_build(b->f.context, b->f.program, &b->desc, NULL),
                 "npu: out_npu is NULL");
    test_invalid(b->f.context, ptowsp_npu_build_run(b->f.context, NULL, &b->desc, NULL, NULL),
                 "npu: run is NULL");
    npu_program_free(&b->f);
    npu_program_make(&b->f, &npu_plain_names, NULL);  // a kernel without source
    assert_int_equal(try_build(b), PTOWSP_UNSUPPORTED);
    assert_null(b->npu);
    assert_non_null(strstr(ptowsp_context_error(b->f.context).text, "kernel scale has no source"));
    assert_false(is_there(b->f.directory, "cache"));
}
