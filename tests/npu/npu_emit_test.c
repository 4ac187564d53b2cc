// Trees as files: what is in them, that it is the same each time, and that a directory has all of a
// tree or what was there before.

#include "npu_fixture.h"

#include <sys/resource.h>
#include <signal.h>
#include <stdarg.h>

// All files of an emission, one after another.
typedef struct collected {
    char *text;
    size_t size, capacity;
    uint32_t file_count, stop_at;  // the callback fails for this file, from 1; 0: for none
    const char *directory;         // files are compared with those there; or NULL
    char paths[64][64];
} collected;

static void collect_bytes(collected *c, const void *data, size_t size) {
    if (c->size + size > c->capacity) {
        c->capacity = 2 * (c->size + size);
        c->text = (char *)realloc(c->text, c->capacity);
        assert_non_null(c->text);
    }
    memcpy(c->text + c->size, data, size);
    c->size += size;
}

static void compare_with_disk(const char *directory, const char *path, const char *text,
                              size_t size) {
    char full[256];
    snprintf(full, sizeof full, "%.128s/%.100s", directory, path);
    FILE *in = fopen(full, "rb");
    if (!in) {
        fail_msg("%s is missing", full);
        return;
    }
    char *data = (char *)malloc(size + 2);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, size + 1, in), size);
    assert_memory_equal(data, text, size);
    free(data);
    fclose(in);
}

static ptowsp_status collect(void *user, const char *path, const char *text, size_t size) {
    collected *c = (collected *)user;
    assert_int_equal(text[size], 0);
    assert_true(c->file_count < 64 && strlen(path) < sizeof c->paths[0]);
    memcpy(c->paths[c->file_count++], path, strlen(path) + 1);
    collect_bytes(c, path, strlen(path) + 1);
    collect_bytes(c, text, size);
    if (c->directory) {
        compare_with_disk(c->directory, path, text, size);
    }
    return c->file_count == c->stop_at ? PTOWSP_CANCELLED : PTOWSP_OK;
}

// The text of a file; it lives as long as the collection.
static const char *find(const collected *c, const char *path) {
    size_t length = strlen(path) + 1;
    for (size_t i = 0; i + length < c->size; i++) {
        if ((i == 0 || c->text[i - 1] == '\n') && memcmp(c->text + i, path, length) == 0) {
            return c->text + i + length;
        }
    }
    fail_msg("there is no %s", path);
    return "";
}

static void emit_all(const npu_fixture *f, collected *c) {
    memset(c, 0, sizeof *c);
    assert_int_equal(ptowsp_npu_emit_files(f->context, f->program, collect, c), PTOWSP_OK);
    collect_bytes(c, "", 1);
}

static const char *in_directory(const npu_fixture *f, const char *name, char path[160]) {
    snprintf(path, 160, "%.63s/%.90s", f->directory, name);
    return path;
}

static ptowsp_status emit_to(const npu_fixture *f, const char *path, bool is_replacing) {
    const ptowsp_npu_desc desc = {path, is_replacing, false, PTOWSP_NPU_OWN, 0, 0, NULL};
    return ptowsp_npu_emit(f->context, f->program, &desc);
}

static void write_file(const char *path, const char *text) {
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

// -- contents -------------------------------------------------------------------------------------

TEST(emit__one_program_gives_one_text) {
    npu_fixture f, g;
    npu_fixture_make(&f);
    npu_fixture_make(&g);
    collected first, second, other;
    emit_all(&f, &first);
    emit_all(&f, &second);
    emit_all(&g, &other);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.text, second.text, first.size);
    assert_int_equal(first.size, other.size);
    assert_memory_equal(first.text, other.text, first.size);
    free(first.text);
    free(second.text);
    free(other.text);
    npu_fixture_free(&f);
    npu_fixture_free(&g);
}

#define NPU_FIXTURE_TEST(name)                                                                     \
    TEST_MADE(name, npu_fixture, f, npu_fixture_make(f), npu_fixture_free(f))

NPU_FIXTURE_TEST(emit__any_change_of_a_source_is_another_hash) {
    collected first, second;
    emit_all(f, &first);
    npu_program_free(f);
    npu_names_of names = npu_plain_names;
    names.symbol = "faktor";
    npu_program_make(f, &names, NPU_SCALE_TEXT);
    emit_all(f, &second);
    const char *before = strstr(find(&first, "manifest.json"), "\"hash\": ");
    const char *after = strstr(find(&second, "manifest.json"), "\"hash\": ");
    assert_true(before && after);
    assert_memory_not_equal(before, after, 42);
    // The one in the program is the one in the manifest.
    char hash[64];
    snprintf(hash, sizeof hash, "    \"%.32s\",  // hash\n", before + strlen("\"hash\": \""));
    assert_non_null(strstr(find(&first, "aicpu/program.cpp"), hash));
    free(first.text);
    free(second.text);
}

// The program's own files are small; the runtime says that it is generated, and under which licence.
NPU_FIXTURE_TEST(emit__what_is_not_the_programs_is_generated) {
    static const char *const own[] = {"README.md",          "LICENSE",          "Makefile",
                                      "CMakeLists.txt",     "manifest.json",    "aicpu/program.h",
                                      "aicpu/program.cpp",  "aicpu/expand.cpp", "aicore/kernels/*",
                                      "aicore/dispatch.cpp"};
    collected c;
    emit_all(f, &c);
    uint32_t line_count = 0;
    for (uint32_t i = 0; i < c.file_count; i++) {
        const char *text = find(&c, c.paths[i]), *header = "include/ptowsp.h";
        bool is_own = false;
        for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
            const char *star = strchr(own[k], '*');
            is_own |= star ? strncmp(c.paths[i], own[k], (size_t)(star - own[k])) == 0
                           : strcmp(c.paths[i], own[k]) == 0;
        }
        for (const char *at = text; is_own && *at; at++) {
            line_count += *at == '\n';
        }
        if (!is_own && strcmp(c.paths[i], header) != 0) {
            assert_memory_equal(text, "// Generated by tools/amalgamate.sh", 35);
            const char *licence = strstr(text, "MIT licence, see LICENSE.");
            assert_true(licence && licence - text < 500);
        }
    }
    assert_in_range(line_count, 300, 850);
    free(c.text);
}

NPU_FIXTURE_TEST(emit__tables_say_what_the_program_has) {
    collected c;
    emit_all(f, &c);
    const char *text = find(&c, "aicpu/program.cpp");
    assert_non_null(strstr(text, "    {\"batch\", PTOWSP_AXIS_DYNAMIC, 0, 0, 1},\n"));
    assert_non_null(strstr(text, "    {\"kv_len\", PTOWSP_I32, 0, 1},\n"));
    assert_non_null(strstr(text, "    {\"factor\", 1},\n"));
    assert_non_null(strstr(text, "    {\"x\", PTOWSP_F32, 2, {PTOWSP_DYNAMIC, 8}, 1, 1, 0, 0},\n"));
    assert_non_null(strstr(text, "    {\"scale\", PTOWSP_UNIT_VECTOR, 1, 1, 1, {\"data\"}},\n"));
    assert_non_null(strstr(text, "    \"decode/parallel b/when/task scale\",\n"));
    assert_non_null(strstr(text, "        PTOWSP_ISSUE_DATAFLOW,\n"));
    const char *header = find(&c, "aicpu/program.h");
    assert_non_null(strstr(header, "    AXIS_batch = 1,\n"));
    assert_non_null(strstr(header, "    KERNEL_scale = 1,\n"));
    find(&c, "include/ptowsp.h");
    find(&c, "shim/ptoisa_shim.h");
    find(&c, "LICENSE");
    const char *readme = find(&c, "README.md");
    assert_non_null(strstr(readme, "| kv\\_len | array of i32 |\n"));
    assert_non_null(strstr(readme, "issue dataflow"));
    // Files for pipelines are in trees of programs that have some.
    for (uint32_t i = 0; i < c.file_count; i++) {
        assert_null(strstr(c.paths[i], "pipeline"));
    }
    free(c.text);
}

// A value of JSON from here; behind it, or NULL if it is none.
static const char *json(const char *at) {
    at += strspn(at, " \n");
    if (*at == '{' || *at == '[') {
        char end = *at == '{' ? '}' : ']';
        at += 1 + strspn(at + 1, " \n");
        while (*at != end) {
            if (end == '}') {
                at = *at == '"' ? json(at) : NULL;
                if (!at || *at != ':') {
                    return NULL;
                }
                at++;
            }
            at = json(at);
            if (!at) {
                return NULL;
            }
            at += strspn(at, " \n");
            if (*at != end && *at != ',') {
                return NULL;
            }
            bool is_comma = *at == ',';
            at += is_comma;
            at += strspn(at, " \n");
            if (is_comma && *at == end) {
                return NULL;
            }
        }
        return at + 1;
    }
    if (*at == '"') {
        for (at++; *at && *at != '"'; at++) {
            if (*at == '\\') {
                at++;
            }
        }
        return *at ? at + 1 : NULL;
    }
    size_t length = strspn(at, "-0123456789");
    const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        length = strncmp(at, words[i], strlen(words[i])) == 0 ? strlen(words[i]) : length;
    }
    return length ? at + length : NULL;
}

NPU_FIXTURE_TEST(emit__manifest_is_json_with_the_schedules_support) {
    collected c;
    emit_all(f, &c);
    const char *text = find(&c, "manifest.json");
    const char *end = json(text);
    assert_non_null(end);
    assert_string_equal(end, "\n");
    assert_ptr_equal(strstr(text, "{\n  \"format\": \"ptowsp tree\",\n  \"abi\": 6,\n"), text);
    assert_non_null(strstr(text, "\n  \"drivers\": [\"aicpu\", \"host\"],\n"));
    assert_non_null(strstr(text, "{\"directive\": \"issue\", \"value\": \"dataflow\", "
                                 "\"support\": \"enforced\"}"));
    assert_non_null(strstr(text, "{\"directive\": \"dispatch\", \"value\": \"round robin\", "
                                 "\"support\": \"enforced\"}"));
    assert_non_null(strstr(text, "{\"directive\": \"hazards\", \"value\": \"war\", "));
    assert_non_null(strstr(text, "{\"directive\": \"streams\", \"value\": \"none\", "));
    assert_non_null(strstr(text, "\"name\": \"scale\", \"kind\": \"native\", \"unit\": \"vector\", "
                                 "\"used\": true"));
    free(c.text);
}

// Words, macros, what could be a trigraph or the end of a comment, and names that are one when what
// cannot be in an identifier is gone. Modules refuse quotes, backslashes, line ends, and what is not
// ASCII, before anything is emitted.
TEST(emit__names_cannot_break_out) {
    const npu_names_of cases[] = {
        {"class", "class", "for", "int", "class-", "while", "NULL", "namespace"},
        {"?"
         "?/",
         "?"
         "?/",
         "*/", "//", "/*", "#include <x>", "%s%n%d",
         "?"
         "?'"},
        {"main", "main", "run", "i64", "task", "scope", "Run", "linux"},
        {"a b", "a b", "a_b", "a-b", "a+b", "a*b", "a:b", "A B"},
        {"x", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk",
         "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghij1",
         "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghij2",
         "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghij3",
         "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghij4",
         "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghij5", "y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        npu_fixture f;
        npu_fixture_begin(&f);
        npu_names_of names = cases[i];
        names.kernel = i == 1 ? "?"
                                "?-"
                              : names.kernel;  // quotes are refused
        npu_program_make(&f, &names, NPU_SCALE_TEXT);
        collected c;
        emit_all(&f, &c);
        const char *const generated[] = {"aicpu/program.h", "aicpu/program.cpp",
                                         "aicpu/expand.cpp"};
        for (size_t k = 0; k < 3; k++) {
            // To its end, where the path of the next file begins.
            const char *text = find(&c, generated[k]);
            for (const char *at = text; *at; at++) {
                assert_false(at[0] == '?' && at[1] == '?');
                assert_false(at[0] == '\\' && at[1] == '\n');
            }
        }
        const char *manifest = json(find(&c, "manifest.json"));
        assert_non_null(manifest);
        free(c.text);
        npu_fixture_free(&f);
    }
}

// -- what is refused ------------------------------------------------------------------------------

NPU_FIXTURE_TEST(emit__needs_a_program_a_directory_and_a_callback) {
    const char *const no_directory = "emit: there is no directory to write to";
    assert_int_equal(ptowsp_npu_emit(f->context, f->program, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, no_directory);
    assert_int_equal(emit_to(f, NULL, false), PTOWSP_INVALID_PARAMS);
    assert_int_equal(emit_to(f, "", false), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, no_directory);
    char path[160];
    const ptowsp_npu_desc desc = {
        in_directory(f, "tree", path), false, false, PTOWSP_NPU_OWN, 0, 0, NULL};
    assert_int_equal(ptowsp_npu_emit(f->context, NULL, &desc), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "emit: program is NULL");
    assert_int_equal(ptowsp_npu_emit_files(f->context, f->program, NULL, NULL),
                     PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "emit: file is NULL");
    const char *const nameless[] = {"/", "//", ".", "..", "/tmp/.", "/tmp/.."};
    for (size_t i = 0; i < sizeof nameless / sizeof nameless[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "emit: a tree needs a name of its own, and \"%s\" has none",
                 nameless[i]);
        assert_int_equal(emit_to(f, nameless[i], true), PTOWSP_INVALID_PARAMS);
        test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
    }
    assert_int_equal(npu_entries(f->directory), 0);
}

NPU_FIXTURE_TEST(emit__a_callback_may_stop_it) {
    collected c = {.stop_at = 2};
    assert_int_equal(ptowsp_npu_emit_files(f->context, f->program, collect, &c), PTOWSP_CANCELLED);
    assert_int_equal(c.file_count, 2);
    char text[128];
    snprintf(text, sizeof text, "emit: the callback returned CANCELLED for %s", c.paths[1]);
    test_error_is(f->context, PTOWSP_CANCELLED, 1, text);
    free(c.text);
}

#define BEGUN_TEST(name) TEST_MADE(name, npu_fixture, f, npu_fixture_begin(f), npu_fixture_free(f))

BEGUN_TEST(emit__kernels_need_their_source) {
    char path[160];
    npu_program_make(f, &npu_plain_names, NULL);
    assert_int_equal(emit_to(f, in_directory(f, "tree", path), false), PTOWSP_UNSUPPORTED);
    test_error_is(f->context, PTOWSP_UNSUPPORTED, 1,
                  "emit: kernel scale has no source (ptowsp_kernel_source), which a tree needs");
    assert_int_equal(npu_entries(f->directory), 0);
    npu_program_free(f);
    const ptowsp_parse_kernel kernel = {
        .name = "scale", .fn = npu_scale, .cost = npu_scale, .source.text = NPU_SCALE_TEXT};
    npu_parse(f,
              "module m\n"
              "kernel scale(axes 0) vector, cycles by a cost function\n"
              "workload w\n"
              "  task scale()\n",
              &kernel, 1);
    npu_fixture_compile(f, NULL);
    assert_int_equal(emit_to(f, path, false), PTOWSP_UNSUPPORTED);
    test_error_is(f->context, PTOWSP_UNSUPPORTED, 1,
                  "emit: kernel scale has a cost function, which its source does not name");
    assert_int_equal(npu_entries(f->directory), 0);
}

// The program of a text, in which %s and so on are the arguments.
static void text_make(npu_fixture *f, const char *format, ...) {
    char text[2000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    npu_fixture_begin(f);
    npu_parse(f, text, NULL, 0);
    npu_fixture_compile(f, NULL);
}

// z = exp(a * b) * c: one way to the vector core, and one back.
static const char mixed[] = "module m\n"
                            "tensor a f32 [16, 16] global\n"
                            "tensor b f32 [16, 40] global\n"
                            "tensor c f32 [40, 8] global\n"
                            "tensor z f32 [16, 8] global\n"
                            "kernel attend(axes 0, in a f32 16 x 16, in b f32 16 x 40,"
                            " in c f32 40 x 8, out z f32 16 x 8) mix, 41 instructions\n"
                            "  machine \"%s\"\n"
                            "  %%1 = parameter a\n"
                            "  %%2 = parameter b\n"
                            "  %%3 = parameter c\n"
                            "  %%4 = parameter z\n"
                            "  %%5 = matmul %%1, %%2 : f32 16 x 40\n"
                            "  %%6 = exp %%5 : f32 16 x 40\n"
                            "  %%7 = matmul %%6, %%3 : f32 16 x 8\n"
                            "  store %%4, %%7\n"
                            "workload w\n"
                            "  task attend() a = a b = b c = c z = z\n";

// Columns of bytes, of a transient or a bound tensor: filled, then the first one is widened.
static const char columns[] = "module m\n"
                              "tensor bytes i8 [32, %1$d] global%2$s\n"
                              "tensor halves f16 [32, %1$d] global\n"
                              "kernel fill(axes 0, in in f16 32 x %1$d, out out i8 32 x %1$d)"
                              " vector, 9 instructions\n"
                              "  machine \"910B\"\n"
                              "  %%1 = parameter in\n"
                              "  %%2 = parameter out\n"
                              "  %%3 = cvt %%1 : i8 32 x %1$d\n"
                              "  store %%2, %%3\n"
                              "kernel widen(axes 0, in in i8 32 x 1, out out f16 32 x 1)"
                              " vector, 9 instructions\n"
                              "  machine \"910B\"\n"
                              "  %%1 = parameter in\n"
                              "  %%2 = parameter out\n"
                              "  %%3 = cvt %%1 : f16 32 x 1\n"
                              "  store %%2, %%3\n"
                              "workload w\n"
                              "  task fill() in = halves out = bytes\n"
                              "  task widen() in = bytes out = halves\n";

TEST(emit__columns_that_a_device_cannot_move_are_refused_where_they_are_known) {
    // A transient tensor of rows with one element has dense columns; bound ones have any strides.
    for (int i = 0; i < 3; i++) {
        npu_fixture f;
        text_make(&f, columns, i == 1 ? 1 : 4, i < 2 ? " transient" : "");
        char path[160];
        ptowsp_status status = emit_to(&f, in_directory(&f, "tree", path), false);
        if (i == 0) {
            test_error_is(
                f.context, PTOWSP_UNSUPPORTED, 2,
                "emit: kernel widen: parameter in is moved by columns of i8, and a device "
                "cannot, as transient tensor bytes lies by rows (rule: windows; "
                "is_for_host: for threads and simulators)");
            assert_int_equal(npu_entries(f.directory), 0);
        } else {
            assert_int_equal(status, PTOWSP_OK);
        }
        const ptowsp_npu_desc desc = {path, true, true, PTOWSP_NPU_OWN, 0, 0, NULL};
        assert_int_equal(ptowsp_npu_emit(f.context, f.program, &desc), PTOWSP_OK);
        collected c;
        emit_all(&f, &c);
        assert_non_null(
            strstr(find(&c, "aicore/kernels/widen.cpp"), "WSP_REQUIRE_COLUMNS(task, 0);"));
        assert_non_null(
            strstr(find(&c, "README.md"), "ends the run with UNSUPPORTED if one cannot"));
        free(c.text);
        npu_fixture_free(&f);
    }
}

// TADDC and TADDSC: for simulators and threads alone; TSUBC is for devices, too.
TEST(emit__instructions_of_the_simulator_alone_are_refused_for_devices) {
    static const struct {
        const char *name, *operands, *instead;
    } cases[] = {{"TADDC", "(%1, %1, %1)", "TADD"},
                 {"TADDSC", "(%1, %1) scalar %3", "TADDS"},
                 {"TSUBC", "(%1, %1, %1)", NULL}};
    for (int i = 0; i < 3; i++) {
        npu_fixture f;
        char path[160], text[256];
        text_make(&f,
                  "module carries\n"
                  "tensor x f32 [?, 16] global\n"
                  "kernel sum(axes 0, inout x f32 8 x 16) vector, 9 instructions\n"
                  "  machine \"910B\"\n"
                  "  %%1 = parameter x\n"
                  "  %%2 = alloc UB row_major : f32 8 x 16\n"
                  "  %%3 = const 3\n"
                  "  instruction %s (%%2) %s\n"
                  "  store %%1, %%2\n"
                  "workload w\n"
                  "  task sum() x = x\n",
                  cases[i].name, cases[i].operands);
        const ptowsp_status status = emit_to(&f, in_directory(&f, "tree", path), false);
        if (cases[i].instead) {
            snprintf(text, sizeof text,
                     "emit: kernel sum: PTO-ISA has %s in its CPU simulator alone: use %s and TADD "
                     "(is_for_host: for threads and simulators)",
                     cases[i].name, cases[i].instead);
            test_error_is(f.context, PTOWSP_UNSUPPORTED, 1, text);
        } else {
            assert_int_equal(status, PTOWSP_OK);
        }
        const ptowsp_npu_desc host = {path, true, true, PTOWSP_NPU_OWN, 0, 0, NULL};
        assert_int_equal(ptowsp_npu_emit(f.context, f.program, &host), PTOWSP_OK);
        npu_fixture_free(&f);
    }
}

TEST(emit__kernels_for_both_cores_are_for_devices_where_they_have_halves) {
    for (int i = 0; i < 2; i++) {
        npu_fixture f;
        text_make(&f, mixed, i ? "950PR" : "910B");
        char path[160];
        ptowsp_status status = emit_to(&f, in_directory(&f, "tree", path), false);
        if (i == 0) {
            assert_int_equal(status, PTOWSP_OK);
        } else {
            test_error_is(f.context, PTOWSP_UNSUPPORTED, 1,
                          "emit: kernel attend works on cube and vector cores at once: kernels of "
                          "950PR are not cut into a half for each (rule: direct FIFOs; "
                          "is_for_host: for threads and simulators)");
            assert_int_equal(npu_entries(f.directory), 0);
        }
        const ptowsp_npu_desc desc = {path, true, true, PTOWSP_NPU_OWN, 0, 0, NULL};
        assert_int_equal(ptowsp_npu_emit(f.context, f.program, &desc), PTOWSP_OK);
        ptowsp_kernel_info info = ptowsp_program_read(f.program)->kernels[1];
        assert_int_equal(info.is_mixed, i == 0);
        char order[64] = "";
        for (uint32_t at = 0; at < info.insn_count; at++) {
            ptowsp_insn_info insn = ptowsp_program_read(f.program)->kernels[1].insns[at];
            bool is_push = insn.op == PTOWSP_OP_TPUSH;
            assert_int_equal(insn.side != PTOWSP_SIDE_ANY, info.is_mixed);
            if (is_push || insn.op == PTOWSP_OP_TPOP) {
                size_t length = strlen(order);
                snprintf(order + length, sizeof order - length, "%s%s%u ", is_push ? "push" : "pop",
                         insn.side == PTOWSP_SIDE_CUBE ? " cube " : " vector ", insn.fifo);
            }
        }
        assert_string_equal(order, i ? "" : "push cube 0 pop vector 0 push vector 1 pop cube 1 ");
        for (int fifo = 0; fifo < 2; fifo++) {  // 16 x 40 f32, both ways
            assert_int_equal(info.fifos[fifo].slot_bytes, i ? 0 : 2560);
            assert_int_equal(info.fifos[fifo].slot_count, i ? 0 : 2);
            assert_int_equal(info.fifos[fifo].flag, i ? 0 : 2 * fifo);
        }
        // Its source says so, and has a function for each half, with its own parts alone.
        static const char *const said[] = {
            "//      to_vector  cube -> vector   2 slots of 2560 bytes, flags 0 and 1\n"
            "//      to_cube    vector -> cube   2 slots of 2560 bytes, flags 2 and 3\n",
            "//      cube:    TLOAD TLOAD TMOV TMOV TMATMUL TPUSH(to_vector)",
            "//      vector:  TPOP(to_vector) TEXP TPUSH(to_cube)\n",
            "// The two vector cores of a block share the rows of the vector half.\n",
            "using ToVector = wsp::Fifo<0, true, 2560, 2, TileSplitAxis::TILE_UP_DOWN>;\n"
            "using ToCube = wsp::Fifo<2, false, 2560, 2, TileSplitAxis::TILE_UP_DOWN>;\n",
            "#if WSP_HAS_CUBE\n",
            "AICORE inline void cube(__gm__ wsp_task *task, wsp::Pipes &pipes) {\n",
            "TMATMUL(acc_1, left_1, right_1);\n",
            "    to_vector.push<40>(acc_1);\n",
            "TSTORE(v_z_gm, acc_2);\n",
            "}\n\n#endif\n",
            "#if WSP_HAS_VECTOR\n",
            "AICORE inline void vector(__gm__ wsp_task *task, wsp::Pipes &pipes) {\n",
            "    const wsp::Share mine = wsp::share(v_a_rows);",
            "to_vector.pop<40>(t1)",
            "    to_cube.push<40>(t",
            "}\n\n#endif\n",
            "extern \"C\" AICORE void wsp_kernel_attend(__gm__ wsp_task *task WSP_BLOCK_PARAM) {\n",
            "    WSP_HALVES(task, v_attend::cube, v_attend::vector);\n}\n",
        };
        collected c;
        emit_all(&f, &c);
        const char *at = find(&c, "aicore/kernels/attend.cpp");
        for (uint32_t s = 0; s < sizeof said / sizeof said[0] && info.is_mixed; s++) {
            const char *next = strstr(at, said[s]);
            if (!next) {
                fail_msg("there is no %s", said[s]);
            }
            at = next;
        }
        assert_true(info.is_mixed || (!strstr(at, "void cube(") && !strstr(at, "wsp::Fifo")));
        free(c.text);
        npu_fixture_free(&f);
    }
}

// Two factors of 256 KiB fill L1. A task may have none of the columns that are multiplied: a device
// then takes zeros of 128 rows of 32 bytes, for which there is no room.
TEST(emit__empty_products_need_room_for_zeros) {
    npu_fixture f;
    char path[160];
    text_make(&f, "module m\n"
                  "tensor a f16 [128, 1032] global\n"
                  "tensor b f16 [1032, 128] global\n"
                  "tensor z f32 [128, 128] global\n"
                  "kernel gemm(axes 0, in a f16 128 x 1032, in b f16 1032 x 128,"
                  " out z f32 128 x 128) cube, 65 instructions\n"
                  "  machine \"910B\"\n"
                  "  %%1 = parameter a\n"
                  "  %%2 = parameter b\n"
                  "  %%3 = parameter z\n"
                  "  %%4 = slice %%2 at (8, 0) : f16 1024 x 128\n"
                  "  %%5 = slice %%1 at (0, 8) : f16 128 x 1024\n"
                  "  %%6 = matmul %%5, %%4 : f32 128 x 128\n"
                  "  store %%3, %%6\n"
                  "workload w\n"
                  "  task gemm() a = a b = b z = z\n");
    assert_int_equal(emit_to(&f, in_directory(&f, "tree", path), false), PTOWSP_UNSUPPORTED);
    test_error_is(f.context, PTOWSP_UNSUPPORTED, 1,
                  "emit: kernel gemm: matmul of f16: a sum may be empty, for which 910B wants 4096 "
                  "bytes of zeros in L1, and 524288 of 524288 are in use (rule: empty products)");
    npu_fixture_free(&f);
}

// Of each table, the last entry that a tree can have, and one more; entry 0 is none. The first statement is
// a workload, the last one its end.
TEST(emit__programs_over_a_limit_are_refused) {
    static const struct {
        const char *what, *line, *end;
        uint32_t count, table;  // lines; entries that this makes, or 0: they are not too many
    } cases[] = {
        {"tensors", "tensor n%u f32 [] global\n", "workload w\n  slot_set 0 = 1\n", 65534, 0},
        {"tensors", "tensor n%u f32 [] global\n", "workload w\n  slot_set 0 = 1\n", 65535, 65536},
        {"axes", "axis n%u dynamic\n", "workload w\n  slot_set 0 = 1\n", 65535, 65536},
        {"arrays", "array n%u i32\n", "workload w\n  slot_set 0 = 1\n", 65535, 65536},
        {"symbols", "symbol n%u\n", "workload w\n  slot_set 0 = 1\n", 65535, 65536},
        {"statements", "  slot_set 0 = %u\n", "", 65536, 65538},
    };
    static char module[65536 * 32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        npu_fixture f;
        char text[100];
        size_t at =
            (size_t)sprintf(module, "module m slots 8\n%s", *cases[i].end ? "" : "workload w\n");
        for (unsigned k = 0; k < cases[i].count; k++) {
            at += (size_t)sprintf(module + at, cases[i].line, k);
        }
        strcpy(module + at, cases[i].end);
        npu_fixture_begin(&f);
        npu_parse(&f, module, NULL, 0);
        npu_fixture_compile(&f, NULL);
        collected c = {0};
        const ptowsp_status status = ptowsp_npu_emit_files(f.context, f.program, collect, &c);
        assert_int_equal(status, cases[i].table ? PTOWSP_LIMIT_EXCEEDED : PTOWSP_OK);
        assert_int_equal(c.file_count == 0, cases[i].table > 0);
        if (cases[i].table) {
            snprintf(text, sizeof text, "emit: the program has %u %s; a tree has at most 65535",
                     (unsigned)cases[i].table, cases[i].what);
            test_error_is(f.context, PTOWSP_LIMIT_EXCEEDED, cases[i].table, text);
        }
        free(c.text);
        npu_fixture_free(&f);
    }
}

// -- directories ----------------------------------------------------------------------------------

static void compare_tree(const npu_fixture *f, const char *path) {
    collected c = {.directory = path};
    assert_int_equal(ptowsp_npu_emit_files(f->context, f->program, collect, &c), PTOWSP_OK);
    free(c.text);
}

NPU_FIXTURE_TEST(emit__writes_what_the_callback_gets) {
    char path[160], slashes[170], back[512];
    in_directory(f, "tree", path);
    assert_int_equal(emit_to(f, path, false), PTOWSP_OK);
    compare_tree(f, path);
    assert_int_equal(npu_entries(f->directory), 1);
    // A slash at the end; and a path from here.
    snprintf(slashes, sizeof slashes, "%.150s2//", path);
    assert_int_equal(emit_to(f, slashes, true), PTOWSP_OK);
    compare_tree(f, slashes);
    assert_non_null(getcwd(back, sizeof back));
    assert_int_equal(chdir(f->directory), 0);
    assert_int_equal(emit_to(f, "here", false), PTOWSP_OK);
    compare_tree(f, "here");
    assert_int_equal(emit_to(f, "here/inside", false), PTOWSP_OK);
    assert_int_equal(chdir(back), 0);
    assert_int_equal(npu_entries(f->directory), 3);
}

NPU_FIXTURE_TEST(emit__permissions_are_those_of_the_umask) {
    const mode_t masks[] = {022, 077, 002};
    mode_t before = umask(0);
    for (size_t i = 0; i < 3; i++) {
        char path[160], file[200];
        snprintf(path, sizeof path, "%.63s/tree%u", f->directory, (unsigned)i);
        snprintf(file, sizeof file, "%.160s/manifest.json", path);
        umask(masks[i]);
        assert_int_equal(emit_to(f, path, false), PTOWSP_OK);
        struct stat about;
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_mode & 0777, 0755 & ~masks[i]);
        assert_int_equal(stat(file, &about), 0);
        assert_int_equal(about.st_mode & 0777, 0644 & ~masks[i]);
    }
    umask(before);
}

static void is_kept(const npu_fixture *f, const char *path, const char *why) {
    char text[400];
    snprintf(text, sizeof text, "emit: %.160s %s", path, why);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
}

#define NOT_REPLACING "exists, and is not to be replaced"
#define NOT_OURS                                                                                   \
    "is not replaced, as it is neither an emitted tree (it has no manifest.json of one) nor an "   \
    "empty directory"

NPU_FIXTURE_TEST(emit__what_exists_is_kept_unless_it_is_to_be_replaced) {
    char empty[160], file[160], link[160], broken[160];
    assert_int_equal(mkdir(in_directory(f, "empty", empty), 0755), 0);
    write_file(in_directory(f, "file", file), "mine");
    assert_int_equal(symlink("empty", in_directory(f, "link", link)), 0);
    assert_int_equal(symlink("nowhere", in_directory(f, "broken", broken)), 0);
    const char *const paths[] = {empty, file, link, broken};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(emit_to(f, paths[i], false), PTOWSP_INVALID_PARAMS);
        is_kept(f, paths[i], NOT_REPLACING);
    }
    // Links and files are not replaced at all.
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(emit_to(f, paths[i], true), PTOWSP_INVALID_PARAMS);
        is_kept(f, paths[i], NOT_OURS);
    }
    assert_int_equal(npu_entries(f->directory), 4);
    assert_int_equal(npu_entries(empty), 0);
    assert_int_equal(emit_to(f, empty, true), PTOWSP_OK);
    compare_tree(f, empty);
    assert_int_equal(npu_entries(f->directory), 4);
}

NPU_FIXTURE_TEST(emit__only_trees_and_empty_directories_are_replaced) {
    char mine[160], file[200];
    in_directory(f, "mine", mine);
    assert_int_equal(mkdir(mine, 0755), 0);
    snprintf(file, sizeof file, "%.160s/thesis.txt", mine);
    write_file(file, "all my work");
    assert_int_equal(emit_to(f, mine, true), PTOWSP_INVALID_PARAMS);
    is_kept(f, mine, NOT_OURS);
    // Another program's manifest does not make it a tree, nor does an empty one.
    snprintf(file, sizeof file, "%.160s/manifest.json", mine);
    write_file(file, "{\"name\": \"web app\"}");
    assert_int_equal(emit_to(f, mine, true), PTOWSP_INVALID_PARAMS);
    is_kept(f, mine, NOT_OURS);
    write_file(file, "");
    assert_int_equal(emit_to(f, mine, true), PTOWSP_INVALID_PARAMS);
    assert_int_equal(npu_entries(mine), 2);
    assert_int_equal(npu_entries(f->directory), 1);
}

// All of the old tree goes, with what was built in it; another program takes its place.
NPU_FIXTURE_TEST(emit__a_tree_is_replaced_as_a_whole) {
    char path[160], file[200], inside[200];
    in_directory(f, "tree", path);
    assert_int_equal(emit_to(f, path, false), PTOWSP_OK);
    uint32_t count = npu_entries(path);
    snprintf(inside, sizeof inside, "%.160s/build", path);
    assert_int_equal(mkdir(inside, 0755), 0);
    snprintf(file, sizeof file, "%.160s/build/a.o", path);
    write_file(file, "x");
    snprintf(file, sizeof file, "%.160s/build/link", path);
    assert_int_equal(symlink("/tmp", file), 0);  // what it points to stays
    npu_program_free(f);
    npu_names_of names = npu_plain_names;
    names.module = "other";
    npu_program_make(f, &names, NPU_SCALE_TEXT);
    assert_int_equal(emit_to(f, path, true), PTOWSP_OK);
    compare_tree(f, path);
    assert_int_equal(npu_entries(path), count);
    assert_int_equal(npu_entries(f->directory), 1);
}

static void cannot(const npu_fixture *f, const char *start, const char *path, const char *why) {
    char text[600];
    snprintf(text, sizeof text, "emit: %s %.300s: %s", start, path, why);
    test_error_is(f->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, text);
}

NPU_FIXTURE_TEST(emit__a_parent_must_be_there) {
    char parent[160], path[200];
    in_directory(f, "missing", parent);
    snprintf(path, sizeof path, "%.160s/tree", parent);
    assert_int_equal(emit_to(f, path, true), PTOWSP_SYSTEM_FAILED);
    cannot(f, "cannot open directory", parent, "No such file or directory");
    write_file(parent, "a file");
    assert_int_equal(emit_to(f, path, true), PTOWSP_SYSTEM_FAILED);
    cannot(f, "cannot open directory", parent, "Not a directory");
    assert_int_equal(npu_entries(f->directory), 1);
}

NPU_FIXTURE_TEST(emit__a_parent_must_be_writable) {
    char parent[160], path[200];
    in_directory(f, "locked", parent);
    snprintf(path, sizeof path, "%.160s/tree", parent);
    assert_int_equal(mkdir(parent, 0555), 0);
    assert_int_equal(chmod(parent, 0555) || chmod(f->directory, 0755), 0);  // whatever the umask is
    bool is_root = geteuid() == 0;  // who may write everywhere
    assert_int_equal(is_root ? seteuid(65534) : 0, 0);
    assert_int_equal(emit_to(f, path, false), PTOWSP_SYSTEM_FAILED);
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    cannot(f, "cannot create a directory beside", path, "Permission denied");
    assert_int_equal(npu_entries(parent), 0);
}

NPU_FIXTURE_TEST(emit__a_name_may_be_too_long_for_the_system) {
    char path[512];
    snprintf(path, sizeof path, "%.63s/%0300d", f->directory, 1);
    assert_int_equal(emit_to(f, path, false), PTOWSP_SYSTEM_FAILED);
    const char *text = ptowsp_context_error(f->context).text;
    const char *end = "0001: File name too long";
    assert_string_equal(text + strlen(text) - strlen(end), end);
    assert_int_equal(npu_entries(f->directory), 0);
}

// The limit on the size of a file stands in for a disk that is full, at several sizes.
NPU_FIXTURE_TEST(emit__a_full_disk_leaves_nothing) {
    char path[160];
    in_directory(f, "tree", path);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const rlim_t sizes[] = {0, 100, 1000, 10000, 100000, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct rlimit limit = {sizes[i], before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        ptowsp_status status = emit_to(f, path, false);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, PTOWSP_SYSTEM_FAILED);
        const char *text = ptowsp_context_error(f->context).text;
        const char *end = ": File too large";
        assert_string_equal(text + strlen(text) - strlen(end), end);
        assert_int_equal(npu_entries(f->directory), 0);
    }
    signal(SIGXFSZ, handler);
    assert_int_equal(emit_to(f, path, false), PTOWSP_OK);
}

// Every name that a new directory of this process could have is taken: 10000 of them.
NPU_FIXTURE_TEST(emit__needs_a_name_beside_the_tree) {
    char path[160], name[300];
    in_directory(f, "tree", path);
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "%s/.ptowsp-%ld-%d", f->directory, (long)getpid(), i);
        assert_int_equal(mkdir(name, 0700), 0);
    }
    assert_int_equal(emit_to(f, path, false), PTOWSP_SYSTEM_FAILED);
    snprintf(name, sizeof name, "emit: cannot create a directory beside %s: File exists", path);
    assert_string_equal(ptowsp_context_error(f->context).text, name);
    snprintf(name, sizeof name, "%s/.ptowsp-%ld-9999", f->directory, (long)getpid());
    assert_int_equal(rmdir(name), 0);
    assert_int_equal(emit_to(f, path, false), PTOWSP_OK);
}
