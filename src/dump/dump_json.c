// A reader of JSON: the caller asks for the value that it expects next, and passes over the others.
//
//      begin(OBJECT); while (next(key)) { key is "id" ? u64() : skip() }
//
// The text is read through a window of a file, or is in memory as a whole; no tree is made of it. The
// first fault stays, with its place; after it every next is false, so that all loops end.

#include "dump.h"

#define DUMP_WINDOW     65536u
#define DUMP_JSON_DEPTH 64u

DUMP_INTERNAL void dump_json_open(dump_json *json, const char *text, size_t size) {
    memset(json, 0, sizeof *json);
    json->begin = json->at = text;
    json->end = text + size;
    if (size >= 2 && (unsigned char)text[0] == 0x1f && (unsigned char)text[1] == 0x8b) {
        dump_json_fail(json, "is compressed (gzip): unpack it first");
    }
}

// Reads the next piece of a file. False at its end.
static bool dump_json_fill(dump_json *json) {
    if (json->file) {
        json->offset += (uint64_t)(json->end - json->begin);
        const size_t size = fread(json->window, 1, DUMP_WINDOW, json->file);
        json->at = json->window;
        json->end = json->window + size;
    }
    return json->at < json->end;
}

DUMP_INTERNAL bool dump_json_open_file(dump_json *json, FILE *file) {
    char *window = (char *)dump_resize(NULL, DUMP_WINDOW);
    if (window) {
        dump_json_open(json, window, fread(window, 1, DUMP_WINDOW, file));
        json->window = window;
        json->file = file;
    }
    return window != NULL;
}

DUMP_INTERNAL void dump_json_close(dump_json *json) {
    if (json->file) {
        fclose(json->file);
        dump_resize(json->window, 0);
    }
}

DUMP_INTERNAL bool dump_json_fail(dump_json *json, const char *wrong) {
    json->wrong = json->wrong ? json->wrong : wrong;
    return false;
}

// The next character, or -1 at the end and after a fault.
static int dump_json_char(dump_json *json) {
    return !json->wrong && (json->at < json->end || dump_json_fill(json)) ? (unsigned char)*json->at
                                                                          : -1;
}

static int dump_json_solid(dump_json *json) {
    int c = dump_json_char(json);
    while (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        json->at++;
        c = dump_json_char(json);
    }
    return c;
}

static bool dump_json_take(dump_json *json, char c, const char *wrong) {
    if (dump_json_solid(json) != c) {
        return dump_json_fail(json, wrong);
    }
    json->at++;
    return true;
}

DUMP_INTERNAL dump_json_kind dump_json_peek(dump_json *json) {
    const int c = dump_json_solid(json);
    return c == '{'                             ? DUMP_JSON_OBJECT
           : c == '['                           ? DUMP_JSON_ARRAY
           : c == '"'                           ? DUMP_JSON_STRING
           : c == '-' || (c >= '0' && c <= '9') ? DUMP_JSON_NUMBER
                                                : DUMP_JSON_OTHER;
}

DUMP_INTERNAL bool dump_json_begin(dump_json *json, dump_json_kind kind) {
    const bool is_object = kind == DUMP_JSON_OBJECT;
    if (!dump_json_take(json, is_object ? '{' : '[',
                        is_object ? "an object is expected" : "an array is expected")) {
        return false;
    }
    json->is_first = true;
    return ++json->depth <= DUMP_JSON_DEPTH ? true : dump_json_fail(json, "values nest too deeply");
}

DUMP_INTERNAL bool dump_json_next(dump_json *json, char *key) {
    const int c = dump_json_solid(json);
    if (c == (key ? '}' : ']')) {
        json->at++;
        json->depth--;
        json->is_first = false;
        return false;
    }
    if (!json->is_first && !dump_json_take(json, ',', "a comma or the end of a list is expected")) {
        return false;
    }
    json->is_first = false;
    return key ? dump_json_string(json, key) && dump_json_take(json, ':', "a colon is expected")
               : !json->wrong && (c >= 0 || dump_json_fail(json, "the text ends too early"));
}

// An escape after its backslash. Characters beyond ASCII become a question mark, as names of the
// runtime have none.
static int dump_json_escape(dump_json *json) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t",
                      digits[] = "0123456789abcdef";
    const int c = dump_json_char(json);
    const char *at = c > 0 ? strchr(from, c) : NULL;
    json->at += c >= 0;
    if (!at && c != 'u') {
        dump_json_fail(json, "an escape is wrong");
    }
    unsigned code = 0;
    for (int i = 0; i < 4 && c == 'u'; i++) {
        const int digit = dump_json_char(json);
        const char *value = digit > 0x20 ? strchr(digits, digit | 0x20) : NULL;
        if (!value) {
            dump_json_fail(json, "an escape is wrong");
            return '?';
        }
        code = 16 * code + (unsigned)(value - digits);
        json->at++;
    }
    return at ? to[at - from] : code > 0 && code < 0x80 ? (int)code : '?';
}

DUMP_INTERNAL bool dump_json_string(dump_json *json, char *text) {
    size_t length = 0;
    text[0] = '\0';
    if (!dump_json_take(json, '"', "a string is expected")) {
        return false;
    }
    for (;;) {
        int c = dump_json_char(json);
        text[length] = '\0';
        if (c < 0x20) {
            return dump_json_fail(json, "a string does not end");
        }
        json->at++;
        if (c == '"') {
            return true;
        }
        c = c == '\\' ? dump_json_escape(json) : c;
        if (length < DUMP_JSON_TEXT - 1) {
            text[length++] = (char)c;
        }
    }
}

// Digits and what else a number may have, to be judged by the caller.
static bool dump_json_number(dump_json *json, char *text) {
    size_t length = 0;
    int c = dump_json_solid(json);
    while (c > 0 && strchr("+-.0123456789eE", c)) {
        if (length < DUMP_JSON_TEXT - 1) {
            text[length++] = (char)c;
        }
        json->at++;
        c = dump_json_char(json);
    }
    text[length] = '\0';
    return length > 0 ? true : dump_json_fail(json, "a number is expected");
}

static void dump_json_word(dump_json *json) {
    const int first = dump_json_solid(json);
    const char *at = first == 't' ? "true" : first == 'f' ? "false" : "null";
    for (; *at && dump_json_char(json) == *at; at++) {
        json->at++;
    }
    if (*at) {
        dump_json_fail(json, "a value is expected");
    }
}

// Recursion ends at DUMP_JSON_DEPTH.
DUMP_INTERNAL void dump_json_skip(dump_json *json) {
    char text[DUMP_JSON_TEXT];
    const dump_json_kind kind = dump_json_peek(json);
    switch (kind) {
    case DUMP_JSON_OBJECT:
    case DUMP_JSON_ARRAY:
        dump_json_begin(json, kind);
        while (dump_json_next(json, kind == DUMP_JSON_OBJECT ? text : NULL)) {
            dump_json_skip(json);
        }
        break;
    case DUMP_JSON_STRING: dump_json_string(json, text); break;
    case DUMP_JSON_NUMBER: dump_json_number(json, text); break;
    default: dump_json_word(json);
    }
}

// [-]digits, which fit into 64 bits. Returns the text of an error, or NULL.
static const char *dump_json_digits(const char *text, bool *out_negative, uint64_t *out_size) {
    *out_size = 0;
    *out_negative = text[0] == '-';
    const char *at = text + *out_negative;
    for (; *at >= '0' && *at <= '9'; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (*out_size > (UINT64_MAX - digit) / 10) {
            return "a number is beyond 64 bits";
        }
        *out_size = 10 * *out_size + digit;
    }
    return *at == '\0' && at > text + *out_negative ? NULL : "a whole number is expected";
}

static bool dump_json_integer(dump_json *json, bool *out_negative, uint64_t *out_size) {
    char text[DUMP_JSON_TEXT];
    *out_size = 0;
    if (!(dump_json_peek(json) == DUMP_JSON_STRING ? dump_json_string(json, text)
                                                   : dump_json_number(json, text))) {
        return false;
    }
    const char *wrong = dump_json_digits(text, out_negative, out_size);
    return !wrong || dump_json_fail(json, wrong);
}

DUMP_INTERNAL uint64_t dump_json_u64(dump_json *json) {
    bool is_negative = false;
    uint64_t size = 0;
    const bool is_good =
        dump_json_integer(json, &is_negative, &size) &&
        (!is_negative || size == 0 || dump_json_fail(json, "a number is negative that cannot be"));
    return is_good ? size : 0;
}

DUMP_INTERNAL uint64_t dump_json_u64_if(dump_json *json) {
    char text[DUMP_JSON_TEXT];
    bool is_negative;
    uint64_t size;
    const dump_json_kind kind = dump_json_peek(json);
    if (kind != DUMP_JSON_NUMBER && kind != DUMP_JSON_STRING) {
        dump_json_skip(json);
        return 0;
    }
    return (kind == DUMP_JSON_STRING ? dump_json_string(json, text)
                                     : dump_json_number(json, text)) &&
                   !dump_json_digits(text, &is_negative, &size) && !is_negative
               ? size
               : 0;
}

DUMP_INTERNAL int64_t dump_json_i64(dump_json *json) {
    bool is_negative = false;
    uint64_t size = 0;
    if (dump_json_integer(json, &is_negative, &size) && size > (uint64_t)INT64_MAX) {
        dump_json_fail(json, "a number is beyond 63 bits");
        return 0;
    }
    return is_negative ? -(int64_t)size : (int64_t)size;
}

DUMP_INTERNAL bool dump_json_is_done(dump_json *json) {
    return dump_json_solid(json) < 0 ? !json->wrong
                                     : dump_json_fail(json, "the text goes on after its end");
}
