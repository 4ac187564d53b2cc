// Hostile texts as facts (support/facts.h): modules that no case can hold, without a first line
// that declares the module, with bytes and ends of lines of their own, and with kernels that are
// attached; and saved programs. A text that is refused is also cut off at every byte, which must
// end in an error or a module, under a sanitizer. All other sentences that a parser can say stand
// in tests/cases/syntax.case.

#include "src/text/parse.h"

#include "facts.h"
#include "support/files.h"

static ptowsp_context *of_texts;
static facts_text text, from, to;
static ptowsp_text_place place;
static bool has_schedule;  // a module is read as one of a saved program

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 1;
}

// What texts may attach: a function, and a builder that makes another kernel than the text says.
static ptowsp_kernel make_other(ptowsp_module *module, void *user) {
    (void)user;
    const ptowsp_kernel_desc desc = {.name = "other", .axis_count = 2, .cycles = 1};
    return ptowsp_kernel_make(module, &desc);
}

static ptowsp_kernel make_none(ptowsp_module *module, void *user) {
    (void)module, (void)user;
    return (ptowsp_kernel){0};
}

static ptowsp_kernel make_wrong(ptowsp_module *module, void *user) {
    (void)user;
    const ptowsp_kernel_desc desc = {.cycles = 1};
    return ptowsp_kernel_make(module, &desc);
}

static ptowsp_status parse_as(const char *data, size_t size, uint32_t kernel_count) {
    static const ptowsp_parse_kernel kernels[] = {{.name = "plain", .fn = one_cycle},
                                                  {.name = "other", .make = make_other},
                                                  {.name = "none", .make = make_none},
                                                  {.name = "wrong", .make = make_wrong}};
    const ptowsp_parse_desc attached = {kernels, kernel_count, 0};
    pwsp_parse_saved saved;
    ptowsp_module *module = NULL;
    memset(&saved, 0, sizeof saved);
    place = (ptowsp_text_place){7, 7};
    const ptowsp_status status =
        has_schedule ? pwsp_parse_text(of_texts, data, size, 1, &attached, &saved, &module, &place)
                     : ptowsp_module_parse(of_texts, data, size, &attached, &module, &place);
    assert_true((status == PTOWSP_OK) == (module != NULL));
    ptowsp_module_destroy(module);
    return status;
}

static ptowsp_status parse(void) {
    return parse_as(text.data, text.size, 4);
}

static ptowsp_status load(void) {
    ptowsp_program *program = NULL;
    place = (ptowsp_text_place){7, 7};
    const ptowsp_status status =
        ptowsp_program_load(of_texts, text.data, text.size, NULL, &program, &place);
    assert_true((status == PTOWSP_OK) == (program != NULL));
    ptowsp_program_destroy(program);
    return status;
}

// The program of saved.txt with a good first line, in which `from` is replaced.
static ptowsp_status load_changed(void) {
    static char body[2048], changed[2048], sealed[2200];
    const char *at = strstr(file_text("tests/text/saved.txt", body, sizeof body), from.data);
    assert_non_null(at);
    const size_t length = (size_t)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - body),
                                           body, to.data, at + from.size);
    const uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, changed, length);
    const int size = snprintf(sealed, sizeof sealed, "ptowsp program 1, %zu bytes, %016llx\n%s",
                              length, (unsigned long long)hash, changed);
    text = facts_text_of(sealed, (size_t)size);
    return load();
}

static void begin(void) {
    has_schedule = false;
}

// The error; where it has a place, the text begins with that.
static const char *error(uint64_t *out_index) {
    const ptowsp_error e = ptowsp_context_error(of_texts);
    if (e.index != PTOWSP_NO_INDEX) {
        char where[64];
        snprintf(where, sizeof where, "%llu:%llu: ", (unsigned long long)place.line,
                 (unsigned long long)place.column);
        assert_true(e.index == place.line && strstr(e.text, where));
    } else {
        assert_true(place.line == 0 && place.column == 0);
    }
    return facts_error(e, out_index);
}

static void cut_off(void) {
    const ptowsp_text_place found = place;
    for (size_t size = 0; size < text.size && !strstr(text.data, "ptowsp program"); size++) {
        char *cut = (char *)malloc(size ? size : 1);  // of just this size
        assert_non_null(cut);
        memcpy(cut, text.data, size);
        parse_as(cut, size, 0);
        free(cut);
    }
    place = found;
}

static const facts_field *fields(void) {
    FACTS_RETURN(FIELD(text), FIELD(from), FIELD(to), FIELD(has_schedule));
}

TEST(text_facts__hold) {
    static const facts_call calls[] = {
        {"parse", parse}, {"load", load}, {"load_changed", load_changed}, {NULL, NULL}};
    facts all = {"tests/text/texts.facts", begin, fields, calls, error, cut_off, 0};
    of_texts = test_context(NULL);
    facts_run(&all);
    ptowsp_context_destroy(of_texts);
}

CONTEXT_TEST(parse__null_is_refused) {
    ptowsp_module *module;
    ptowsp_text_place where = {7, 7};
    test_invalid(context, ptowsp_module_parse(context, NULL, 1, NULL, &module, &where),
                 "parse: text or out_module is NULL");
    assert_true(where.line == 0 && where.column == 0);
    test_invalid(context, ptowsp_module_parse(context, "module m", 8, NULL, NULL, NULL),
                 "parse: text or out_module is NULL");
}
