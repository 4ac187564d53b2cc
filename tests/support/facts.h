// Facts: tests as text, of functions that take structures of numbers. A file has cases; each sets fields of the
// objects of a suite, calls its functions, and says what comes of it:
//
//      case heads_that_do_not_go_together           # a comment
//        by size, generate, check
//        config.kv_head_count = 0
//        refused kv_head_count is 0
//        kv = 250 100 50; plan; plan.unit_count is 6
//
//      FIELD = NUMBER ...       sets a number, an array from its first element or that of FIELD[I] on, or NULL
//      FIELD is NUMBER ...      all of the elements, or those from FIELD[I] on, are these
//      FIELD within LOW HIGH    a number, the first one or that of FIELD[I], is between two others
//      FIELD near NUMBER        the same, and differs by 1e-9 of the number at most
//      FIELD = TEXT, is TEXT    the same of a text: "in quotes", or up to a ; or the end of the line, or the lines after
//                               it that are indented further, where = may be left out
//      FIELD has [N times] TEXT to the end of the line: it is in a text, once at least or so often
//      FIELD lacks TEXT         it is not
//      CALL [WORDS]             the call succeeds; some calls take words
//      by CALL, CALL            the calls that the next refusals of the case are of
//      refused [STATUS] [at INDEX] TEXT
//                               each of these calls fails with INVALID_PARAMS or this status, without an index or
//                               with this one, and with this text; then the case begins again
//      again                    so it does
//
// A file without cases, a case that says nothing, and a `by` that no refusal follows are errors.
//
// In a text \n, \xHH and \\ are the end of a line, a byte and a backslash; \e and a backslash at the end of a line are
// nothing. Numbers may have names. A suite has its objects in variables, and functions that begin a case and list the
// fields as they are now.

#ifndef FACTS_H
#define FACTS_H

#include "test.h"

typedef struct facts_field {
    const char *name;
    void *at;
    bool is_float, is_text;
    size_t size, count, stride;  // the size of a text is that of a pointer, or of facts_text
    const char *const *names;    // of 0, 1, ..., up to NULL; or NULL
} facts_field;

// A text in which zeros may be, with one behind it; until facts_run returns. `data` NULL: none.
typedef struct facts_text {
    const char *data;
    size_t size;
} facts_text;

typedef struct facts_call {
    const char *name;  // with a blank at its end it takes words; "" takes all that no other does
    ptowsp_status (*run)(void);
} facts_call;

// Of the call that runs.
__attribute__((unused)) static const char *facts_words;

typedef struct facts {
    const char *path;
    void (*begin)(void);
    const facts_field *(*fields)(void);  // up to one without a name
    const facts_call *calls;             // as well
    const char *(*error)(uint64_t *out_index);
    void (*refused)(void);  // what holds after each refusal; or NULL
    int line;
} facts;

// A number or pointer; `count` elements of an array; a member of as many structures.
#define FACTS_IS_FLOAT(x) _Generic((x), float : true, double : true, default : false)
#define FACTS_IS_TEXT(x)                                                                           \
    _Generic((x), char * : true, const char * : true, facts_text : true, default : false)
#define FACTS_AS(name, x, n, count, names)                                                         \
    {                                                                                              \
        name, (void *)(uintptr_t) & (x), FACTS_IS_FLOAT(x), FACTS_IS_TEXT(x), sizeof(x), count, n, \
            names                                                                                  \
    }
#define FACTS_OF(name, x, n, count) FACTS_AS(name, x, n, count, NULL)
#define FIELD(x)                    FACTS_OF(#x, x, sizeof(x), 1)
#define FIELD_NAMED(x, names)       FACTS_AS(#x, x, sizeof(x), 1, names)
#define NAMED(name, x)              FACTS_OF(name, x, sizeof(x), 1)
#define FIELDS(x, count)            FACTS_OF(#x, (x)[0], sizeof((x)[0]), count)
#define MEMBER(array, member, count)                                                               \
    FACTS_OF(#array "." #member, (array)->member, sizeof(*(array)), count)

// All fields, as they are now.
#define FACTS_RETURN(...)                                                                          \
    const facts_field now[] = {__VA_ARGS__, {.name = NULL}};                                       \
    static facts_field table[COUNT_OF(now)];                                                       \
    memcpy(table, now, sizeof now);                                                                \
    return table

// The text of a refusal without the word that each begins with. Only where room is missing are units counted.
static inline const char *facts_plan_error(const ptowsp_plan_info *info, uint64_t *out_index) {
#define FACTS_HAS_WORK(name, status, text) PTOWSP_##status == PTOWSP_BUFFER_OVERFLOW,
    static const bool has_work[] = {PTOWSP_PLAN_FAULTS(FACTS_HAS_WORK)};
#undef FACTS_HAS_WORK
    static char text[200];
    assert_true(info->work_count == 0 || has_work[info->fault]);
    ptowsp_plan_explain(info, TEST_TEXT(text));
    *out_index = info->index;
    assert_memory_equal(text, "plan: ", strlen("plan: "));
    return text + strlen("plan: ");
}

#define FACTS_FAIL(s, format, ...) fail_msg("%s:%d: " format, (s)->path, (s)->line, __VA_ARGS__)

// The text of an error, which stays when there is another one.
static inline const char *facts_error(ptowsp_error error, uint64_t *out_index) {
    static char text[1000];
    *out_index = error.index;
    snprintf(text, sizeof text, "%s", error.text);
    return text;
}

static inline facts_text facts_text_of(const char *data, size_t size) {
    char *copy = (char *)test_alloc(size + 1, 1);
    memcpy(copy, data, size);
    return (facts_text){copy, size};
}

// What the last call has printed: a field, where calls print into facts_output().
__attribute__((unused)) static const char *facts_printed;

static inline ptowsp_output facts_output(void) {
    static char text[8192];
    static ptowsp_output_buffer buffer;
    buffer = (ptowsp_output_buffer){text, sizeof text, 0};
    facts_printed = text;
    return ptowsp_output_to_buffer(&buffer);
}

// A text as it is meant, from how it is written.
static inline facts_text facts_unescape(const facts *s, const char *from) {
    char *text = (char *)test_alloc(strlen(from) + 1, 1), *out = text;
    for (; *from; from++) {
        unsigned byte = (unsigned char)*from;
        if (byte == '\\' && (*++from == 'e' || *from == '\n')) {
            continue;
        } else if (byte == '\\' && *from == 'x' && sscanf(from + 1, "%2x", &byte) == 1) {
            from += 2;
        } else if (byte == '\\' && (*from == 'n' || *from == '\\')) {
            byte = *from == 'n' ? '\n' : '\\';
        } else if (byte == '\\') {
            FACTS_FAIL(s, "there is no \\%c", *from);
        }
        *out++ = (char)byte;
    }
    return (facts_text){text, (size_t)(out - text)};
}

// What a text field has.
static inline facts_text facts_text_at(const facts_field *f, const void *at) {
    facts_text text = {NULL, 0};
    memcpy(&text, at, f->size);
    if (f->size == sizeof text.data && text.data) {
        text.size = strlen(text.data);
    }
    return text;
}

static inline bool facts_are_same(const facts_field *f, const void *a, const void *b) {
    const facts_text x = f->is_text ? facts_text_at(f, a) : (facts_text){a, f->size};
    const facts_text y = f->is_text ? facts_text_at(f, b) : (facts_text){b, f->size};
    return x.size == y.size && !x.data == !y.data &&
           (!x.data || memcmp(x.data, y.data, x.size) == 0);
}

// The value of a word in as many bytes as the field has: a number that fits, its name, a truth, a text or NULL.
static inline void facts_put(const facts *s, const facts_field *f, const char *word, void *out) {
    for (uint32_t i = 0; f->names && f->names[i]; i++) {
        if (strcmp(f->names[i], word) == 0) {
            memset(out, 0, f->size);
            memcpy(out, &i, f->size < sizeof i ? f->size : sizeof i);
            return;
        }
    }
    if (f->is_text) {
        facts_text text = {NULL, 0};
        if (strcmp(word, "NULL") != 0) {
            text = facts_unescape(s, word + (word[0] == '"'));
        }
        memcpy(out, &text, f->size);
        return;
    }
    const bool is_true = strcmp(word, "true") == 0;
    const bool is_none = strcmp(word, "false") == 0 || strcmp(word, "NULL") == 0;
    char *end = NULL;
    const double f64 = strtod(word, &end);
    uint64_t bits = is_true;
    if (!f->is_float && !is_true && !is_none) {
        bits = word[0] == '-' ? (uint64_t)strtoll(word, &end, 0) : strtoull(word, &end, 0);
    }
    const uint64_t above = f->size < 8 ? bits >> 8 * f->size : 0;
    const bool fits = above == 0 || (word[0] == '-' && above == UINT64_MAX >> 8 * f->size);
    if (!is_true && !is_none && (end == word || *end || !(f->is_float || fits))) {
        FACTS_FAIL(s, "%s is no value of %s", word, f->name);
    }
    const uint8_t u8 = (uint8_t)bits;
    const uint16_t u16 = (uint16_t)bits;
    const uint32_t u32 = (uint32_t)bits;
    const float f32 = (float)f64;
    memcpy(out,
           f->is_float    ? (f->size == 4 ? (const void *)&f32 : &f64)
           : f->size == 1 ? (const void *)&u8
           : f->size == 2 ? (const void *)&u16
           : f->size == 4 ? (const void *)&u32
                          : &bits,
           f->size);
}

static inline double facts_number(const facts_field *f) {
    assert_true(f->size == 4 || f->size == 8);
    return f->is_float    ? (f->size == 8 ? *(const double *)f->at : (double)*(const float *)f->at)
           : f->size == 8 ? (double)*(const uint64_t *)f->at
                          : *(const uint32_t *)f->at;
}

enum { FACTS_WORD = 400 };

// A word, or "what is in quotes", then with the first quote.
static inline bool facts_word(const char **at, char word[FACTS_WORD]) {
    *at += strspn(*at, " ,");
    const bool is_text = **at == '"';
    const size_t length = is_text ? 1 + strcspn(*at + 1, "\"") : strcspn(*at, " ,");
    assert_true(length < FACTS_WORD && (!is_text || (*at)[length]));
    snprintf(word, FACTS_WORD, "%.*s", (int)length, *at);
    *at += length + is_text;
    return length > 0;
}

// The field that a line begins with, and where its index is. Names have brackets, too.
static inline const facts_field *facts_find(const facts *s, const char *line, size_t *out_length) {
    const facts_field *f = s->fields();
    for (; f->name; f++) {
        *out_length = strlen(f->name);
        if (strncmp(line, f->name, *out_length) == 0 && strchr(" [", line[*out_length])) {
            return f;
        }
    }
    return NULL;
}

// FIELD has [N times] TEXT, FIELD lacks TEXT; false: it says something else of the field.
static inline bool facts_part(const facts *s, const facts_field *f, const char *at) {
    const bool is_there = strncmp(at, " has ", 5) == 0;
    if (!f->is_text || (!is_there && strncmp(at, " lacks ", 7) != 0)) {
        return false;
    }
    const char *all = facts_text_at(f, f->at).data, *part = at + (is_there ? 5 : 7);
    char *end;
    unsigned long expected = strtoul(part, &end, 10), count = 0;
    const bool is_counted = is_there && end > part && strncmp(end, " times ", 7) == 0;
    part = facts_unescape(s, is_counted ? end + 7 : part).data;
    if (!*part || !all) {
        FACTS_FAIL(s, "%s: %s", f->name, all ? "nothing is said" : "there is no text");
    }
    for (const char *found = all; found && (found = strstr(found, part)); found++) {
        count++;
    }
    if (is_counted ? count != expected : (count > 0) != is_there) {
        FACTS_FAIL(s, "\"%s\" is there %lu times in %s: %s", part, count, f->name, all);
    }
    return true;
}

// The lines that come next and are indented further, as a text.
static inline facts_text facts_block(facts *s, FILE *file, size_t indent) {
    char line[2000], *text = (char *)test_alloc(1, 1);
    size_t size = 0;
    long at = ftell(file);
    while (fgets(line, sizeof line, file) && strspn(line, " ") > indent) {
        const size_t length = strlen(line) - indent - 2;
        assert_non_null(strchr(line, '\n'));  // lines are read to their ends
        char *longer = (char *)test_alloc(size + length + 1, 1);
        memcpy(longer, text, size);
        memcpy(longer + size, line + indent + 2, length);
        text = longer;
        size += length;
        at = ftell(file);
        s->line++;
    }
    fseek(file, at, SEEK_SET);
    return size > 0 ? facts_unescape(s, text) : (facts_text){NULL, 0};
}

// FIELD = TEXT and FIELD is TEXT, without quotes or as lines; false: it says something else of the field.
static inline bool facts_text_line(facts *s, const facts_field *f, const char *at, FILE *file,
                                   size_t indent, bool *is_claim) {
    static const char *const verbs[] = {"", " =", " is"};
    char given[sizeof(facts_text)];
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        const size_t length = strlen(verbs[i]);
        const char *text = at + length;
        if (!f->is_text || strncmp(at, verbs[i], length) != 0 ||
            (*text && (i == 0 || f->count > 1 || text[0] != ' ' || text[1] == '"' ||
                       strcmp(text, " NULL") == 0))) {
            continue;
        }
        const facts_text from = *text ? facts_unescape(s, text + 1) : facts_block(s, file, indent);
        if (!from.data) {
            FACTS_FAIL(s, "%s: nothing is said", f->name);
        }
        memcpy(given, &from, f->size);
        *is_claim = i == 2;
        if (!*is_claim) {
            memcpy(f->at, given, f->size);
        } else if (!facts_are_same(f, f->at, given)) {
            FACTS_FAIL(s, "%s is not\n%s\nbut\n%s", f->name, from.data,
                       facts_text_at(f, f->at).data);
        }
        return true;
    }
    return false;
}

static inline void facts_line(const facts *s, const facts_field *f, const char *line,
                              const char *at) {
    char verb[FACTS_WORD], word[FACTS_WORD], given[sizeof(facts_text)];
    const bool has_index = *at == '[';
    int length = 0;
    size_t i = 0;
    if (has_index && (sscanf(at, "[%zu]%n", &i, &length) != 1 || at[length] != ' ')) {
        FACTS_FAIL(s, "%s: an index and a blank are missing", line);
    }
    at += length;
    facts_word(&at, verb);
    if (strcmp(verb, "within") == 0 || strcmp(verb, "near") == 0) {
        double low, high;
        facts_field one = *f;
        one.at = (char *)f->at + (i < f->count ? i : 0) * f->stride;
        const double number = facts_number(&one);
        const int count = sscanf(at, "%lf%n %lf%n", &low, &length, &high, &length);
        if (count != 1 + (verb[0] == 'w') || at[length]) {
            FACTS_FAIL(s, "%s: a number is missing, or there is one more", line);
        }
        if (verb[0] == 'n') {
            const double middle = low, slack = 1e-9 * (middle < 0 ? -middle : middle);
            low = middle - slack, high = middle + slack;
        }
        if (i >= f->count || !(low <= number && number <= high)) {
            FACTS_FAIL(s, "%s, but is %.17g", line, number);
        }
        return;
    }
    const bool is_set = strcmp(verb, "=") == 0;
    if (!*at) {
        FACTS_FAIL(s, "%s: nothing is said", line);
    }
    for (; facts_word(&at, word); i++) {
        char *element = (char *)f->at + i * f->stride;
        facts_put(s, f, word, given);
        if (i >= f->count ||
            (!is_set && (strcmp(verb, "is") != 0 || !facts_are_same(f, element, given)))) {
            FACTS_FAIL(s, "%s: element %u of %u is not %s%s%s", line, (unsigned)i,
                       (unsigned)f->count, word, f->is_text ? ": " : "",
                       f->is_text && i < f->count ? facts_text_at(f, element).data : "");
        }
        if (is_set) {
            memcpy(element, given, f->size);
        }
    }
    if (!is_set && !has_index && i != f->count) {
        FACTS_FAIL(s, "%s: there are %u", line, (unsigned)f->count);
    }
}

static inline ptowsp_status facts_call_of(const facts *s, const char *name) {
    for (const facts_call *call = s->calls; call->name; call++) {
        const size_t length = strlen(call->name);
        facts_words = name + length;
        if (strncmp(call->name, name, length) == 0 &&
            (length == 0 || call->name[length - 1] == ' ' || !*facts_words)) {
            const char *words = facts_words;
            const ptowsp_status status = call->run();
            if (facts_words != words && *facts_words) {  // it reads them one by one
                FACTS_FAIL(s, "%s: words are left: %s", name, facts_words);
            }
            return status;
        }
    }
    FACTS_FAIL(s, "there is no field or call %s", name);
    return PTOWSP_OK;
}

static inline void facts_refused(const facts *s, const char *calls, const char *at) {
    char word[FACTS_WORD], name[FACTS_WORD];
    const char *text = at, *status = "INVALID_PARAMS";
    uint64_t expected = PTOWSP_NO_INDEX, index;
    facts_word(&text, word);
    if (word[1] && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(word)) {
        status = word;
        at = text + 1;
    }
    if (strncmp(at, "at ", 3) == 0) {
        char *end;
        expected = strtoull(at + 3, &end, 10);
        at = end + 1;
    }
    if (!*calls) {
        FACTS_FAIL(s, "no calls are refused: %s", at);
    }
    for (; *calls; calls += strspn(calls, ", ")) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(calls, ","), calls);
        calls += strlen(name);
        const char *got = ptowsp_status_name(facts_call_of(s, name)), *said = s->error(&index);
        if (strcmp(got, status) != 0 || strcmp(said, at) != 0 || index != expected) {
            FACTS_FAIL(s, "%s: %s at %lld: %s", name, got, (long long)index, said);
        }
        if (s->refused) {
            s->refused();
        }
    }
    s->begin();
}

static inline void facts_run(facts *s) {
    char text[2000], calls[200] = "";
    bool has_case = false, has_claim = true;  // the case before
    bool is_asked = false;                    // who refuses: nothing has been refused since
    const size_t held = test_held.count;
    FILE *file = fopen(s->path, "r");
    assert_non_null(file);
    s->begin();
    for (s->line = 1; fgets(text, sizeof text, file); s->line++) {
        assert_non_null(strchr(text, '\n'));  // lines are read to their ends
        const size_t indent = strspn(text, " ");
        char *comment = strstr(text, "  #"), *at = text + indent, *next;
        *(comment ? comment : text + strcspn(text, "\n")) = '\0';
        for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; text[--end] = '\0') {
        }
        if (strncmp(at, "case ", 5) == 0) {
            if (!has_claim || is_asked) {
                FACTS_FAIL(s, "%s: the case before says nothing", at);
            }
            has_claim = false;
            has_case = true;
            calls[0] = '\0';
            facts_printed = NULL;
            s->begin();
            continue;
        } else if (strncmp(at, "refused ", 8) == 0) {
            facts_refused(s, calls, at + 8);
            has_claim = true;
            is_asked = false;
            continue;
        } else if (strncmp(at, "by ", 3) == 0) {
            if (is_asked) {
                FACTS_FAIL(s, "by %s: nothing is refused", calls);
            }
            assert_true((size_t)snprintf(calls, sizeof calls, "%s", at + 3) < sizeof calls);
            is_asked = true;
            continue;
        }
        for (; *at && *at != '#'; at = next) {
            size_t length;
            const facts_field *f = facts_find(s, at, &length);
            bool is_claim = true;
            if (f && facts_part(s, f, at + length)) {
                has_claim = true;
                break;
            }
            bool is_quoted = false;
            for (next = at; *next && (is_quoted || *next != ';'); next++) {
                is_quoted ^= *next == '"' && f && f->is_text;
            }
            next += *next ? (*next = '\0', 1 + strspn(next + 1, " ")) : 0;
            if (f && facts_text_line(s, f, at + length, file, indent, &is_claim)) {
                has_claim = has_claim || is_claim;
                continue;
            }
            has_claim = has_claim || !(strstr(at, " = ") || strcmp(at, "again") == 0);
            if (f) {
                facts_line(s, f, at, at + length);
            } else if (strcmp(at, "again") == 0) {
                facts_printed = NULL;
                s->begin();
            } else if (facts_call_of(s, at) != PTOWSP_OK) {
                uint64_t index;
                FACTS_FAIL(s, "%s: %s", at, s->error(&index));
            }
        }
    }
    fclose(file);
    test_release_to(held);
    assert_true(has_case && has_claim && !is_asked);
}

#endif
