// What the emitter writes with: escapes, numbers, hashes and identifiers; and writes that are short or
// interrupted, and others who write beside. The emitter is compiled in, with hooks. Where memory or the
// disk is full: npu_memory_test.c, npu_disk_test.c.

#define _POSIX_C_SOURCE 200809L

#include <stdbool.h>
#include <stddef.h>

// A hook: the first write writes a part, or is interrupted.
static long failing_write(int fd, const void *data, size_t size);
#define PTOWSP_NPU_WRITE(fd, data, size) failing_write(fd, data, size)
#include "npu_refuse.h"

#include <fcntl.h>
#include <sys/stat.h>

// Another user acts just before the new directory of a tree is opened.
static int raced_openat(int parent, const char *name, int flags, mode_t mode);
#define openat_(parent, name, flags, mode, ...) raced_openat(parent, name, flags, mode)
#define openat(...)                             openat_(__VA_ARGS__, 0, 0)
#include "src/npu/tree.c"
#undef openat

#include "src/npu/kernels.h"

#include "npu_fixture.h"
#include "npu_texts.h"

static struct {
    bool fails;
    int error;  // of the next write; 0: it writes one byte
} next_write;

static struct {
    const char *link;  // the new directory becomes a link to this one
    bool is_opened;    // or all may write to it
} race;

static int raced_openat(int parent, const char *name, int flags, mode_t mode) {
    if (strncmp(name, ".ptowsp-", 8) == 0 && race.link) {
        assert_int_equal(unlinkat(parent, name, AT_REMOVEDIR), 0);
        assert_int_equal(symlinkat(race.link, parent, name), 0);
    } else if (strncmp(name, ".ptowsp-", 8) == 0 && race.is_opened) {
        assert_int_equal(fchmodat(parent, name, 0777, 0), 0);
    }
    return openat(parent, name, flags, mode);
}

static long failing_write(int fd, const void *data, size_t size) {
    if (next_write.fails) {
        next_write.fails = false;
        errno = next_write.error;
        return next_write.error ? -1 : (long)write(fd, data, 1);
    }
    return (long)write(fd, data, size);
}

// -- text -----------------------------------------------------------------------------------------

typedef void (*print_fn)(npu_text *text, const char *string);

static void prints(print_fn print, const char *string, const char *expected) {
    npu_text text = {NULL, 0, 0, false};
    print(&text, string);
    npu_write(&text, "", 0);
    assert_string_equal(text.data, expected);
    npu_text_free(&text);
}

static void print_string(npu_text *text, const char *string) {
    npu_print_cpp(text, "'%s'", string);
}

TEST(text__string_literals_hold_any_bytes) {
    prints(print_string, "", "\"\"");
    prints(print_string, "plain", "\"plain\"");
    prints(print_string, "a\"b\\c", "\"a\\\"b\\\\c\"");
    prints(print_string, "line\nend", "\"line\\nend\"");
    prints(print_string,
           "\x01"
           "1\x7f\xff",
           "\"\\0011\\177\\377\"");
    prints(print_string,
           "?"
           "?/ ?"
           "??",
           "\"?\\?/ ?\\?\\?\"");
}

TEST(text__comments_stay_on_their_line) {
    prints(npu_print_comment, "a/parallel b/task c", "a/parallel b/task c");
    prints(npu_print_comment, "ends with \\", "ends with ?");
    prints(npu_print_comment,
           "trigraph ?"
           "?/",
           "trigraph ?/");
    prints(npu_print_comment, "two\nlines", "two?lines");
    prints(npu_print_comment, "*/ /* \xe4", "*? /? ?");
    prints(npu_print_comment, "\\\n\\\n", "?");
}

static void json_string(npu_text *text, const char *string) {
    npu_print_json(text, "'%s'", string);
}

TEST(text__json_strings_hold_any_bytes) {
    prints(json_string,
           "a\"b\\c?"
           "?/",
           "\"a\\\"b\\\\c?"
           "?/\"");
    prints(json_string, "\n\x01\x7f", "\"\\u000a\\u0001\\u007f\"");
}

TEST(text__json_has_numbers_of_any_size) {
    npu_text text = {NULL, 0, 0, false};
    npu_print_json(&text, "{'a': [%d, %u, %ld], 'b': %lld, 'c': %llu}", -7, 4294967295u, 0L,
                   (long long)INT64_MIN, (unsigned long long)UINT64_MAX);
    npu_write(&text, "", 0);
    assert_string_equal(text.data, "{\"a\": [-7, 4294967295, 0], \"b\": -9223372036854775808, "
                                   "\"c\": 18446744073709551615}");
    npu_text_free(&text);
}

TEST(text__grows_to_any_length) {
    npu_text text = {NULL, 0, 0, false};
    size_t expected = 0;
    for (int i = 0; i < 3000; i++) {
        npu_print(&text, "%*d;", i % 700 + 1, i % 10);
        expected += (size_t)(i % 700) + 2;
    }
    assert_int_equal(text.size, expected);
    assert_int_equal(strlen(text.data), expected);
    assert_string_equal(text.data + text.size - 3, " 9;");
    npu_text_free(&text);
}

// A hundred columns with what stands before; what goes on stands four columns further in. A word that
// has no blank in it stays whole.
TEST(text__statements_are_broken_at_blanks) {
    char word[121], statement[400], expected[400];
    memset(word, 'w', 120);
    word[120] = '\0';
    const struct {
        uint32_t indent;
        const char *statement, *expected;
    } cases[] = {
        {4, "f(%.90s, b);", "    f(%.90s,\n        b);\n"},    // 4 + 97 are 101
        {4, "f(%.89s, b);", "    f(%.89s, b);\n"},             // and one less
        {4, "f(%.120s);", "    f(%.120s);\n"},                 // one word, and the last
        {4, "f(%.120s, b);", "    f(%.120s,\n        b);\n"},  // it ends behind the line
        {0, "a b %.97s", "a b\n    %.97s\n"},
        {0, "", "\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        npu_text text = {NULL, 0, 0, false};
        snprintf(statement, sizeof statement, cases[i].statement, word);
        snprintf(expected, sizeof expected, cases[i].expected, word);
        npu_print_wrapped(&text, cases[i].indent, statement);
        assert_string_equal(text.data, expected);
        npu_text_free(&text);
    }
}

TEST(text__numbers_are_literals) {
    npu_text text = {NULL, 0, 0, false};
    npu_print_i64(&text, INT64_MIN);
    npu_print_i64(&text, -7);
    npu_print_u64(&text, INT64_MAX);
    npu_print_u64(&text, UINT64_MAX);
    assert_string_equal(text.data, "INT64_MIN-7922337203685477580718446744073709551615u");
    npu_text_free(&text);
}

// Values of MurmurHash3_x64_128 with seed 0 that others have published.
TEST(hash__is_murmur3) {
    char hash[NPU_HASH_SIZE];
    npu_hash("", 0, hash);
    assert_string_equal(hash, "00000000000000000000000000000000");
    npu_hash("hello", 5, hash);
    assert_string_equal(hash, "cbd8a7b341bd9b025b1e906a48ae1d19");
    const char fox[] = "The quick brown fox jumps over the lazy dog";
    npu_hash(fox, sizeof fox - 1, hash);
    assert_string_equal(hash, "e34bbc7bbc071b6c7a433ca9c49a9347");
}

// -- identifiers ----------------------------------------------------------------------------------

static void is_mangled_to(const char *name, const char *expected) {
    char out[NPU_NAME_MAX + 3];
    npu_mangle(name, out);
    assert_string_equal(out, expected);
}

TEST(names__become_identifiers_with_the_prefix_of_users) {
    is_mangled_to("batch", "v_batch");
    is_mangled_to("kv len (tokens)", "v_kv_len_tokens");
    is_mangled_to("2nd", "v_2nd");
    is_mangled_to("--", "v_x");
    is_mangled_to("?"
                  "?/",
                  "v_x");
    is_mangled_to("a__b_", "v_a_b");
    is_mangled_to("_Hidden", "v_Hidden");
    is_mangled_to("class", "v_class");
    is_mangled_to("wsp_task", "v_wsp_task");
    is_mangled_to("v_x", "v_v_x");
    is_mangled_to("0123456789012345678901234567890123456789x",
                  "v_0123456789012345678901234567890123456789");
    is_mangled_to("abcdefghijabcdefghijabcdefghijabcdefghi-jabcdefghij",
                  "v_abcdefghijabcdefghijabcdefghijabcdefghi");
}

// A module with clashes of all kinds; its names, in the order of the tables. Axes do not meet workloads.
TEST(names__that_clash_get_numbers_in_the_order_of_the_tables) {
    npu_fixture f;
    npu_fixture_begin(&f);
    const ptowsp_parse_kernel kernels[] = {NPU_SCALE_KERNEL("Mul"), NPU_SCALE_KERNEL("mul"),
                                           NPU_SCALE_KERNEL("for"), NPU_SCALE_KERNEL("for "),
                                           NPU_SCALE_KERNEL("step")};
    npu_parse(&f, npu_module("clashes"), kernels, 5);
    npu_fixture_compile(&f, NULL);
    npu_emitter emitter = {
        .context = f.context, .program = f.program, .tables = ptowsp_program_read(f.program)};
    npu_names_make(&emitter);
    assert_int_equal(emitter.status, PTOWSP_OK);
    assert_string_equal(npu_name(&emitter, NPU_AXIS, 1), "a_b");
    assert_string_equal(npu_name(&emitter, NPU_AXIS, 2), "a_b_2");
    assert_string_equal(npu_name(&emitter, NPU_AXIS, 3), "a_b_3");
    assert_string_equal(npu_name(&emitter, NPU_AXIS, 4), "rows");
    assert_string_equal(npu_name(&emitter, NPU_ARRAY, 1), "rows");
    assert_string_equal(npu_name(&emitter, NPU_KERNEL, 1), "Mul");
    assert_string_equal(npu_name(&emitter, NPU_KERNEL, 2), "mul_2");
    assert_string_equal(npu_name(&emitter, NPU_KERNEL, 3), "for");
    assert_string_equal(npu_name(&emitter, NPU_KERNEL, 4), "for_2");
    assert_string_equal(npu_user_name(&emitter, NPU_WORKLOAD, 0), "v_a_b");
    const char *expected[] = {"v_i", "v_i_2", "v_i", "v_a_b_2"};
    uint32_t seen = 0;
    for (uint32_t i = 0; i < emitter.tables->statement_count; i++) {
        ptowsp_statement statement = ptowsp_program_read(f.program)->statements[i];
        if (statement.kind == PTOWSP_STATEMENT_LOOP) {
            assert_string_equal(npu_user_name(&emitter, NPU_VARIABLE, statement.variable),
                                expected[seen]);
            seen++;
        }
    }
    assert_int_equal(seen, 4);
    npu_names_free(&emitter.names);
    npu_fixture_free(&f);
    assert_int_equal(hooks.live, 0);
}

// Any names: every identifier is one, and differs from the others of its kind.
TEST(names__of_any_characters_are_identifiers_and_differ) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 30); round++) {
        npu_fixture f;
        npu_fixture_begin(&f);
        npu_module_make(&f, "any");
        for (int i = 0; i < 200; i++) {
            char name[PTOWSP_NAME_MAX + 1];
            uint64_t letters = test_random(&random) % 2 ? 3 : 94;
            size_t length = (size_t)test_random_in(&random, 1, PTOWSP_NAME_MAX);
            for (size_t k = 0; k < length; k++) {
                int letter = (int)(test_random(&random) % letters);
                name[k] = (char)(letters == 3 ? "AB-"[letter] : '!' + letter);
                name[k] = strchr("\"'\\`", name[k]) ? 'x' : name[k];
            }
            name[length] = '\0';
            ptowsp_axis_dynamic(f.m, name);
        }
        PTOWSP_WORKLOAD(f.m, "w") {
            ptowsp_slot_set_make(f.m, 0, ptowsp_i64(f.m, 1));
        }
        if (ptowsp_module_error(f.m).status == PTOWSP_OK) {
            npu_fixture_compile(&f, NULL);
            npu_emitter emitter = {.program = f.program, .tables = ptowsp_program_read(f.program)};
            npu_names_make(&emitter);
            uint32_t count = ptowsp_program_read(f.program)->axis_count;
            for (uint32_t i = 1; i < count; i++) {
                const char *name = npu_user_name(&emitter, NPU_AXIS, i);
                assert_true(strncmp(name, "v_", 2) == 0 && !strstr(name, "__"));
                assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789_"),
                                 strlen(name));
                for (uint32_t k = 1; k < i; k++) {
                    assert_string_not_equal(name, npu_user_name(&emitter, NPU_AXIS, k));
                }
            }
            npu_names_free(&emitter.names);
        }
        npu_fixture_free(&f);
    }
}

// -- faults ---------------------------------------------------------------------------------------

#define NPU_FIXTURE_TEST(name)                                                                     \
    TEST_MADE(name, npu_fixture, f, npu_fixture_make(f), npu_fixture_free(f))

NPU_FIXTURE_TEST(emit__goes_on_after_short_and_interrupted_writes) {
    for (int error = 0; error < 2; error++) {
        const char *path = textf("%s/tree%d", f->directory, error);
        const char *file = textf("%s/aicpu/program.h", path);
        const ptowsp_npu_desc desc = {path, false, false, PTOWSP_NPU_OWN, 0, 0, NULL};
        next_write.fails = true;
        next_write.error = error ? EINTR : 0;
        assert_ok(ptowsp_npu_emit(f->context, f->program, &desc));
        static const char start[] =
            "// What program decode is made of, by index in the tables of pr";
        assert_memory_equal(text_of(file), start, sizeof start - 1);
    }
}

// Where others can write beside the tree, they must not lead what is written elsewhere.
NPU_FIXTURE_TEST(emit__writes_into_the_directory_that_it_has_made) {
    char victim[200];
    snprintf(victim, sizeof victim, "%s/victim", f->directory);
    const char *tree = textf("%s/raced", f->directory);
    assert_int_equal(mkdir(victim, 0700), 0);
    const ptowsp_npu_desc desc = {tree, false, false, PTOWSP_NPU_OWN, 0, 0, NULL};
    race.link = victim;
    assert_int_equal(ptowsp_npu_emit(f->context, f->program, &desc), PTOWSP_SYSTEM_FAILED);
    assert_non_null(
        strstr(ptowsp_context_error(f->context).text, "cannot open a directory beside"));
    race.link = NULL;
    race.is_opened = true;
    assert_int_equal(ptowsp_npu_emit(f->context, f->program, &desc), PTOWSP_SYSTEM_FAILED);
    race.is_opened = false;
    assert_int_equal(npu_entries(victim), 0);
    assert_int_equal(npu_entries(f->directory), 1);  // nothing but the victim is left
    assert_ok(ptowsp_npu_emit(f->context, f->program, &desc));
}
