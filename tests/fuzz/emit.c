// A libFuzzer target: bytes are the names of a program with a task, a tile kernel and a pipeline. The
// module refuses a name, or the program is emitted, and then names change nothing but names: the
// tokens of every C++ file are those of the program with plain names, where an identifier is an
// identifier, whatever it is called, and a string a string. Trigraphs, lines that are continued and
// characters that are not ASCII are nowhere. The manifest is one value of JSON.

#include "bytes.h"

#include "../../ptowsp.h"

#include <ctype.h>
#include <string.h>

enum { NAME_COUNT = 18, NAME_MAX = 80, TOKEN_MAX = 1 << 20, FILE_MAX = 64 };

// The shape of an emission: a character or keyword for each token of each C++ file.
typedef struct shape {
    char *tokens;
    size_t count;
    uint32_t file_count;
} shape;

static ptowsp_cycles scale(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 7;
}

// -- the program ----------------------------------------------------------------------------------

// "@a" to "@r" are names, in quotes.
static const char program_text[] =
    "module @r\naxis @b dynamic\nsymbol @h\narray @q i32\ntensor @a f32 [?, 8] global\n"
    "kernel @c(axes 1, inout @d f32 8 x 8, @e u64) vector\n"
    "kernel @n(axes 0, in @o f32 8 x 8, out @p f32 8 x 8) vector, 9 instructions\n"
    "  machine \"910B\"\n  %1 = parameter @o\n  %2 = parameter @p\n"
    "  %3 = exp %1 : f32 8 x 8\n  store %2, %3\n"
    "workload @f\n  for_each @g in @b\n    when @q[@g] <= 9\n"
    "      task @c(@g) @d = @a at (@g * 8, 0) @e = @h\n"
    "  pipeline @i\n    channel @j depth 2 latency 0\n    process @k produces @j\n"
    "      for_each @l in @b\n        task @c(@l) @d = @a at (0, 0) @e = 1u\n"
    "        send @j(@l)\n    process @m consumes @j\n      consume token from @j\n"
    "        task @c(token) @d = @a at (0, 0) @e = 1u\n  task @n() @o = @a @p = @a at (8, 0)\n";

// The program with these names, or NULL if they are refused. Those that would end their quotes or
// their line are given to a function.
static ptowsp_program *make(ptowsp_context *context, ptowsp_module **m, const char *const *n) {
    static char text[1 << 14];
    const ptowsp_parse_kernel native = {
        .name = n[2],
        .fn = scale,
        .source = {.text = "#include \"ptowsp.h\"\n"
                           "static ptowsp_cycles scale(const ptowsp_task *t, void *user) {\n"
                           "    (void)t;\n    (void)user;\n    return 7;\n}\n",
                   .fn = "scale"}};
    const ptowsp_parse_desc attached = {&native, 1, 0};
    ptowsp_program *program = NULL;
    size_t length = 0;
    for (uint32_t i = 0; i < NAME_COUNT; i++) {
        const ptowsp_module_desc desc = {n[i], 0};
        if (strpbrk(n[i], "\"\n")) {
            REQUIRE(ptowsp_module_create(context, &desc, m) != PTOWSP_OK);
            return NULL;
        }
    }
    for (const char *at = program_text; *at; at++) {
        const char *name = *at == '@' ? n[*++at - 'a'] : NULL;
        length += (size_t)(name ? sprintf(text + length, "\"%s\"", name)
                                : sprintf(text + length, "%c", *at));
    }
    return ptowsp_module_parse(context, text, length, &attached, m, NULL) == PTOWSP_OK &&
                   ptowsp_program_create(context, *m, NULL, &program) == PTOWSP_OK
               ? program
               : NULL;
}

// -- tokens ---------------------------------------------------------------------------------------

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// Words that mean something by themselves: a name must never come out as one.
static bool is_keyword(const char *word, size_t length) {
    static const char *const all[] = {
        "alignas",  "auto",     "bool",     "break",   "case",     "char",      "class",
        "const",    "continue", "default",  "delete",  "do",       "double",    "else",
        "enum",     "explicit", "extern",   "false",   "float",    "for",       "friend",
        "goto",     "if",       "inline",   "int",     "long",     "namespace", "new",
        "noexcept", "nullptr",  "operator", "private", "public",   "return",    "short",
        "signed",   "sizeof",   "static",   "struct",  "switch",   "template",  "this",
        "true",     "typedef",  "typename", "union",   "unsigned", "using",     "virtual",
        "void",     "volatile", "while",    "and",     "or",       "not",       "xor",
        "compl",    "bitand",   "bitor",    "concept", "requires", "co_await",  "export"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strlen(all[i]) == length && memcmp(all[i], word, length) == 0) {
            return true;
        }
    }
    return false;
}

static void put(shape *s, const char *text, size_t length) {
    REQUIRE(s->count + length + 1 < TOKEN_MAX);
    memcpy(s->tokens + s->count, text, length);
    s->count += length;
    s->tokens[s->count++] = ' ';
}

// Past the end of a string or character, which is on its line.
static size_t literal_end(const char *text, size_t at) {
    const char quote = text[at++];
    while (text[at] != quote) {
        REQUIRE(text[at] != 0 && text[at] != '\n');
        at += text[at] == '\\' ? 2 : 1;
    }
    return at + 1;
}

static void add_tokens(shape *s, const char *text) {
    for (size_t at = 0; text[at];) {
        const size_t begin = at;
        if (text[at] == '/' && text[at + 1] == '/') {
            at += strcspn(text + at, "\n");
        } else if (text[at] == '/' && text[at + 1] == '*') {
            const char *end = strstr(text + at + 2, "*/");
            REQUIRE(end);
            at = (size_t)(end - text) + 2;
        } else if (text[at] == '"' || text[at] == '\'') {
            at = literal_end(text, at);
            put(s, text + begin, 1);
        } else if (isdigit((unsigned char)text[at])) {
            for (at++; is_word(text[at]) || text[at] == '.' || text[at] == '\''; at++) {
            }
            put(s, "0", 1);
        } else if (is_word(text[at])) {
            for (at++; is_word(text[at]); at++) {
            }
            const bool is_key = is_keyword(text + begin, at - begin);
            put(s, is_key ? text + begin : "I", is_key ? at - begin : 1);
        } else {
            at++;
            if (!isspace((unsigned char)text[begin])) {
                put(s, text + begin, 1);
            }
        }
    }
    put(s, "\n", 1);
}

// -- JSON -----------------------------------------------------------------------------------------

static const char *json_space(const char *at) {
    return at + strspn(at, " \n\t");
}

// Past the value at `at`.
static const char *json_value(const char *at, int depth) {
    at = json_space(at);
    REQUIRE(depth < 32);
    if (*at == '"') {
        for (at++; *at != '"'; at += *at == '\\' ? 2 : 1) {
            REQUIRE((unsigned char)*at >= ' ');
            REQUIRE(*at != '\\' || (at[1] && strchr("\"\\/bfnrtu", at[1])));
        }
        return at + 1;
    }
    if (*at == '{' || *at == '[') {
        const char end = *at == '{' ? '}' : ']';
        for (at = json_space(at + 1); *at != end;) {
            if (end == '}') {
                REQUIRE(*at == '"');
                at = json_space(json_value(at, depth + 1));
                REQUIRE(*at == ':');
                at++;
            }
            at = json_space(json_value(at, depth + 1));
            REQUIRE(*at == end || *at == ',');
            at = *at == ',' ? json_space(at + 1) : at;
        }
        return at + 1;
    }
    const size_t length = strspn(at, "-+.0123456789eEtrufalsn");
    REQUIRE(length > 0);
    return at + length;
}

// -- emitting -------------------------------------------------------------------------------------

static bool ends_with(const char *path, const char *end) {
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

// Paths name files of the tree: no way out of it, and nothing that a shell or make would read.
static ptowsp_status take_file(void *user, const char *path, const char *text, size_t size) {
    shape *s = (shape *)user;
    REQUIRE(path[0] != '/' && !strstr(path, ".."));
    for (const char *at = path; *at; at++) {
        REQUIRE(is_word(*at) || strchr("./-", *at));
    }
    // What is the same in every tree, and large.
    if (strncmp(path, "shim/", 5) == 0 || strcmp(path, "include/ptowsp.h") == 0 ||
        strcmp(path, "include/wsp_core.h") == 0) {
        return PTOWSP_OK;
    }
    REQUIRE(strlen(text) == size);
    for (size_t i = 0; i < size; i++) {
        REQUIRE(text[i] == '\n' || text[i] == '\t' || (text[i] >= ' ' && text[i] < 127));
    }
    if (ends_with(path, ".cpp") || ends_with(path, ".h")) {
        REQUIRE(!strstr(text, "?\?") && !strstr(text, "\\\n#"));
        s->file_count++;
        add_tokens(s, text);
    } else if (ends_with(path, ".json")) {
        REQUIRE(*json_space(json_value(text, 0)) == 0);
    }
    return PTOWSP_OK;
}

// Emits with these names; false if they are refused, with a text.
static bool emit(const char *const *n, shape *s) {
    ptowsp_context *context;
    ptowsp_module *m = NULL;
    s->count = 0;
    s->file_count = 0;
    REQUIRE(ptowsp_context_create(NULL, &context) == PTOWSP_OK);
    ptowsp_program *program = make(context, &m, n);
    const bool is_made = program != NULL;
    if (is_made) {
        REQUIRE(ptowsp_npu_emit_files(context, program, take_file, s) == PTOWSP_OK);
    } else {
        REQUIRE(ptowsp_context_error(context).status < 0);
        REQUIRE(strlen(ptowsp_context_error(context).text) > 0);
    }
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    return is_made;
}

// -- names ----------------------------------------------------------------------------------------

// Names differ, which modules ask for; a byte says whether a name is a plain one, a word that could
// do harm, or bytes of the input.
static void take_names(bytes *in, const char **n) {
    static const char *const harmful[] = {
        "class", "*/",      "//",       "/*",    "%s%n", "?\?/",    "main",     "I64",
        "$(x)",  "`x`",     "a b",      "a-b",   "a+b",  "#define", "__LINE__", "NULL",
        "..",    "../../x", "wsp",      "linux", "unix", "std",     "R(x",      "L'a'",
        "run",   "task",    "co_await", "and",   "true", "1",       "0x1p3",    "_A"};
    static char texts[NAME_COUNT][NAME_MAX + 1];
    for (uint32_t i = 0; i < NAME_COUNT; i++) {
        const uint32_t kind = (uint32_t)take(in, 1);
        char *text = texts[i];
        snprintf(text, sizeof texts[i], "name%u", i);
        if (kind >= 128 && in->size > 0) {
            const size_t length = kind % 64 + kind % 3 * 8;
            memset(text, 0, sizeof texts[i]);
            for (size_t k = 0; k < length && in->size > 0; k++) {
                text[k] = (char)take(in, 1);
            }
        } else if (kind > 0) {
            snprintf(text, sizeof texts[i], "%s", harmful[kind % 32]);
        }
        n[i] = text;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static shape plain, hostile, again;
    const char *names[NAME_COUNT];
    bytes in = {data, size}, none = {data, 0};
    if (!plain.tokens) {
        plain.tokens = (char *)malloc(TOKEN_MAX);
        hostile.tokens = (char *)malloc(TOKEN_MAX);
        again.tokens = (char *)malloc(TOKEN_MAX);
        REQUIRE(plain.tokens && hostile.tokens && again.tokens);
        take_names(&none, names);
        REQUIRE(emit(names, &plain));
    }
    take_names(&in, names);
    if (emit(names, &hostile)) {
        REQUIRE(hostile.file_count == plain.file_count);
        for (size_t i = 0; i < hostile.count || i < plain.count; i++) {
            if (hostile.tokens[i] != plain.tokens[i]) {
                const size_t from = i > 60 ? i - 60 : 0;
                fprintf(stderr, "%.120s\n-- is not --\n%.120s\n", hostile.tokens + from,
                        plain.tokens + from);
                abort();
            }
        }
        REQUIRE(hostile.count == plain.count);
        REQUIRE(emit(names, &again) && again.count == hostile.count);
    }
    return 0;
}
