// Modules from their text: what is printed is read again and is the same (errors: texts.facts);
// no bytes and no refused allocation do harm.

#include "workload_sample.h"

#include "support/files.h"

enum { TEXT_MAX = 1 << 20 };

static char printed[TEXT_MAX], again[TEXT_MAX];

static size_t print_module(const ptowsp_module *module, char *text) {
    ptowsp_output_buffer buffer = {text, TEXT_MAX, 0};
    ptowsp_module_print(module, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length < TEXT_MAX);
    return buffer.length;
}

// What has been printed is read, and printed the same.
static void reads_again(ptowsp_context *context, size_t length) {
    ptowsp_module *read;
    test_ok(context, ptowsp_module_parse(context, printed, length, NULL, &read, NULL));
    print_module(read, again);
    assert_string_equal(again, printed);
    ptowsp_module_destroy(read);
}

static ptowsp_cycles no_work(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

// Kernels k0, k1, ... of random programs, with functions.
static ptowsp_parse_kernel attached[16];

static ptowsp_parse_desc attach(void) {
    static const char *const names[16] = {"k0", "k1", "k2",  "k3",  "k4",  "k5",  "k6",  "k7",
                                          "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15"};
    for (int i = 0; i < 16; i++) {
        attached[i].name = names[i];
        attached[i].fn = no_work;
        attached[i].cost = no_work;
    }
    const ptowsp_parse_desc desc = {attached, 16, 0};
    return desc;
}

static void print_program(ptowsp_context *context, ptowsp_module *module, char *text) {
    ptowsp_program *program;
    ptowsp_status status = ptowsp_program_create(context, module, NULL, &program);
    ptowsp_output_buffer buffer = {text, TEXT_MAX, 0};
    ptowsp_output sink = ptowsp_output_to_buffer(&buffer);
    if (status == PTOWSP_OK) {
        ptowsp_program_print(program, sink);
        ptowsp_program_destroy(program);
    } else {
        snprintf(text, TEXT_MAX, "%s", ptowsp_context_error(context).text);
    }
    assert_true(buffer.length < TEXT_MAX);
}

TEST(parse__gives_the_module_and_the_program_that_were_printed) {
    const uint64_t seed = test_seed();
    const ptowsp_parse_desc desc = attach();
    for (unsigned i = 0; i < test_rounds(200); i++) {
        sample *s = sample_make(seed, i);
        ptowsp_module *read;
        size_t length = print_module(s->module.module, printed);
        test_ok(s->context, ptowsp_module_parse(s->context, printed, length, &desc, &read, NULL));
        print_module(read, again);
        assert_string_equal(again, printed);
        print_program(s->context, s->module.module, printed);
        print_program(s->context, read, again);
        assert_string_equal(again, printed);
        ptowsp_module_destroy(read);
        sample_free(s);
    }
}

// -- by hand --------------------------------------------------------------------------------------

// Any name may be a word of the grammar: "@a" to "@w" are names, of which one at a time is such a
// word, in quotes here, and as the library prints it afterwards.
static char sample_text[4096], name_text[4096], word_text[1024];  // a word in each line

static int read_texts(void **state) {
    (void)state;
    file_text("tests/text/sample.txt", sample_text, sizeof sample_text);
    file_text("tests/text/names.txt", name_text, sizeof name_text);
    file_text("tests/text/words.txt", word_text, sizeof word_text);
    return word_text[0] == '\0';
}

SUITE_AROUND(read_texts, NULL)

enum { NAME_COUNT = 23 };

static size_t write_names(char *text, int chosen, const char *word) {
    size_t length = 0;
    for (const char *at = name_text; *at; at++) {
        const int name = *at == '@' ? *++at - 'a' : NAME_COUNT;
        length += (size_t)(name == NAME_COUNT ? sprintf(text + length, "%c", *at)
                           : name == chosen   ? sprintf(text + length, "\"%s\"", word)
                                              : sprintf(text + length, "name_%d", name));
    }
    return length;
}

CONTEXT_TEST(parse__takes_words_of_the_grammar_as_names) {
    for (const char *word = strtok(word_text, "\n"); word; word = strtok(NULL, "\n")) {
        for (int name = 0; name < NAME_COUNT; name++) {
            ptowsp_module *module;
            const size_t length = write_names(printed, name, word);
            test_ok(context, ptowsp_module_parse(context, printed, length, NULL, &module, NULL));
            reads_again(context, print_module(module, printed));
            ptowsp_module_destroy(module);
        }
    }
}

// Each operation is printed with a parenthesis and an operator at most, and 2 x 200 levels are read.
CONTEXT_TEST(parse__reads_expressions_as_deep_as_they_are_built) {
    for (int kind = 0; kind < 6; kind++) {
        ptowsp_module *module;
        assert_ok(ptowsp_module_create(context, NULL, &module));
        ptowsp_workload_begin(module, "w");
        ptowsp_expr v = ptowsp_parallel_begin(module, "i", ptowsp_axis_dense(module, "n", 3)),
                    is = ptowsp_lt(v, ptowsp_i64(module, 1)), e = v;
        for (int depth = 1; depth < PTOWSP_EXPR_DEPTH_MAX; depth++) {
            e = kind == 0   ? ptowsp_neg(e)
                : kind == 1 ? ptowsp_sub(v, e)
                : kind == 2 ? ptowsp_select(is, v, e)
                : kind == 3 ? ptowsp_min(e, v)
                : kind == 4 ? ptowsp_array_at(module, "a", PTOWSP_I64, e)
                            : ptowsp_neg(ptowsp_sub(v, e));
            depth += kind == 5;
        }
        ptowsp_slot_set_make(module, 0, e);
        ptowsp_scope_end(module);
        ptowsp_scope_end(module);
        reads_again(context, print_module(module, printed));
        ptowsp_module_destroy(module);
    }
}

// The limit of the manual: 408 parentheses.
CONTEXT_TEST(parse__reads_408_parentheses_in_one_another) {
    for (size_t count = 408; count <= 409; count++) {
        ptowsp_module *module;
        size_t length = (size_t)snprintf(printed, TEXT_MAX, "module m\nworkload w\n  when ");
        memset(printed + length, '(', count);
        memcpy(printed + length + count, "true", 4);
        memset(printed + length + count + 4, ')', count);
        length += 2 * count + 4;
        const ptowsp_status wanted = count == 408 ? PTOWSP_OK : PTOWSP_INVALID_PARAMS;
        assert_int_equal(ptowsp_module_parse(context, printed, length, NULL, &module, NULL),
                         wanted);
        ptowsp_module_destroy(module);
    }
}

CONTEXT_TEST(parse__refuses_deep_nesting) {
    static const char *const deep[] = {"(", "!", "min(", "true ? ", "~"};
    for (int i = 0; i < 5; i++) {
        size_t length = (size_t)snprintf(printed, TEXT_MAX, "module m\nworkload w\n  when ");
        while (length < TEXT_MAX - 16) {
            length += (size_t)snprintf(printed + length, 16, "%s", deep[i]);
        }
        ptowsp_module *module;
        assert_invalid(ptowsp_module_parse(context, printed, length, NULL, &module, NULL));
        assert_non_null(strstr(ptowsp_context_error(context).text, "levels"));
    }
}

TEST(parse__survives_any_refused_allocation_and_any_mutation) {
    uint64_t random = test_seed(), good = 0;
    test_memory memory = {0};
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
    ptowsp_module *module;
    ptowsp_context *context = test_context(&desc);
    size_t length = strlen(sample_text);
    EACH_REFUSED(n, 10) {
        test_refuse(&memory, n);
        has_more = test_was_refused(
            &memory, ptowsp_module_parse(context, sample_text, length, NULL, &module, NULL));
        assert_true(has_more == (module == NULL));
        assert_true(!has_more || strstr(ptowsp_context_error(context).text, "out of memory"));
    }
    print_module(module, printed);
    assert_string_equal(printed, sample_text);  // it is written as prints are
    ptowsp_module_destroy(module);
    for (uint64_t i = 0; i < test_rounds(20000); i++) {
        memcpy(printed, sample_text, length);
        for (int64_t j = test_random_in(&random, 1, 4); j > 0; j--) {
            size_t at = (size_t)test_random_in(&random, 0, (int64_t)length - 1);
            size_t from = (size_t)test_random_in(&random, 0, (int64_t)length - 1);
            uint64_t how = test_random(&random) % 3;
            printed[at] = how == 0 ? (char)test_random(&random) : sample_text[from];
        }
        if (ptowsp_module_parse(context, printed, length, NULL, &module, NULL) == PTOWSP_OK) {
            good++;
            reads_again(context, print_module(module, printed));
            ptowsp_module_destroy(module);
        }
    }
    assert_true(good > 0);
    ptowsp_context_destroy(context);
}
