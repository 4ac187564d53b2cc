// Reads files of cases: tests/cases/*.case, whose form tests/README.md describes. What a case says is
// kept as items, each a word and the rest of its text; case_run.h does what they say.

#ifndef CASE_FILE_H
#define CASE_FILE_H

#include "test.h"

#include <ctype.h>
#include <dirent.h>

typedef struct case_item {
    const char *modes;  // after `under`; NULL: all
    const char *word, *rest;
    int line;
} case_item;

// A list that grows. Files live as long as the process.
typedef struct case_items {
    case_item *items;
    size_t count;
} case_items;

typedef struct case_file {
    const char *path;
    case_items kernels;          // name, text of the declaration with its body
    case_items lowers;           // "lowers", KERNEL CYCLES: INSTRUCTION CYCLES, ...
    case_items modes;            // name, directives
    case_items floors;           // mode; the one that it is no sooner than
    case_items ways, functions;  // name, items; kernel, function
    case_items defines;          // name, text
    const char *from;
    bool has_trees, has_texts, has_scripts;
} case_file;

typedef struct case_text {
    case_file *file;
    const char *name, *module;
    case_items given;  // with all cases of the module
    case_items items;
    int line;
} case_text;

typedef struct case_list {
    case_text *cases;
    size_t count;
} case_list;

// -- text -----------------------------------------------------------------------------------------

// All memory of cases, in the order in which it was taken. What is taken for one case is given back
// when it ends.
typedef struct case_memory {
    void **blocks;
    size_t count;
} case_memory;

static case_memory case_all;

static inline void *case_alloc(size_t size) {
    case_all.blocks = (void **)realloc(case_all.blocks, (case_all.count + 1) * sizeof(void *));
    void *block = calloc(1, size ? size : 1);
    assert_true(case_all.blocks && block);
    return case_all.blocks[case_all.count++] = block;
}

// Gives back all but the first `count` blocks.
static inline void case_release(size_t count) {
    while (case_all.count > count) {
        free(case_all.blocks[--case_all.count]);
    }
}

static inline char *case_copy(const char *text, size_t length) {
    char *copy = (char *)case_alloc(length + 1);
    memcpy(copy, text, length);
    return copy;
}

// One text after the other.
static inline char *case_join(const char *a, const char *b, size_t length) {
    size_t first = strlen(a);
    char *both = (char *)case_alloc(first + length + 1);
    memcpy(both, a, first);
    memcpy(both + first, b, length);
    return both;
}

static inline char *case_line(const char *a, const char *b, size_t length) {
    return case_join(case_join(a, b, length), "\n", 1);
}

static inline const char *case_skip(const char *text) {
    return text + strspn(text, " ");
}

// The length of a line up to a comment at its end.
static inline size_t case_uncommented(const char *text, size_t length) {
    for (size_t i = 0; i + 2 < length; i++) {
        if (memcmp(text + i, " # ", 3) == 0) {
            return i;
        }
    }
    return length;
}

// The text without blanks at its ends.
static inline char *case_trimmed(const char *text, size_t length) {
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    while (length > 0 && strchr(" \n", text[length - 1])) {
        length--;
    }
    return case_copy(text, length);
}

static inline case_item *case_add(case_items *list, const char *word, const char *rest, int line) {
    case_item *items = (case_item *)case_alloc((list->count + 1) * sizeof *items);
    if (list->count > 0) {
        memcpy(items, list->items, list->count * sizeof *items);
    }
    case_item item = {NULL, word, rest, line};
    items[list->count] = item;
    list->items = items;
    return &items[list->count++];
}

static inline const case_item *case_find(const case_items *list, const char *word) {
    for (size_t i = list->count; i-- > 0;) {  // the last counts
        if (!strcmp(list->items[i].word, word)) {
            return &list->items[i];
        }
    }
    return NULL;
}

static inline bool case_begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

// The next name of a list, "in order, raw"; NULL after the last one.
static inline const char *case_next_name(const char **at) {
    if (!*at) {
        return NULL;
    }
    size_t length = strcspn(*at, ",");
    const char *name = case_trimmed(*at, length);
    *at = (*at)[length] ? *at + length + 1 : NULL;
    return name;
}

static inline bool case_lists(const char *list, const char *name) {
    for (const char *one, *at = list; (one = case_next_name(&at));) {
        if (!strcmp(one, name)) {
            return true;
        }
    }
    return false;
}

// -- items ----------------------------------------------------------------------------------------

// Words whose rest goes to the end of the line, as it may have semicolons.
static inline bool case_is_greedy(const char *word) {
    static const char *const greedy[] = {
        "schedule",   "from",        "fails",      "refused", "says",  "never",  "reports",
        "unreported", "unsupported", "has",        "lacks",   "shows", "listed", "unlisted",
        "build",      "more",        "uncompiled", "writes",  "omits", "said"};
    for (size_t i = 0; i < sizeof greedy / sizeof greedy[0]; i++) {
        if (!strcmp(word, greedy[i])) {
            return true;
        }
    }
    return false;
}

// Splits a line into items: [under MODES:] WORD REST; WORD REST ...
static inline void case_split(const case_file *file, case_items *out, const char *text, int line) {
    const char *modes = NULL, *at = case_skip(text);
    if (case_begins(at, "under ")) {
        const char *colon = strchr(at, ':');
        if (!colon) {
            fail_msg("%s:%d: a colon is missing after \"under\"", file->path, line);
        }
        modes = case_trimmed(at + 6, (size_t)(colon - at) - 6);
        at = colon + 1;
    }
    while (*(at = case_skip(at))) {
        size_t length = strcspn(at, " ;");
        char *word = case_copy(at, length);
        at += length;
        size_t rest = case_is_greedy(word) ? strlen(at) : strcspn(at, ";");
        if (length > 0) {
            case_add(out, word, case_trimmed(at, rest), line)->modes = modes;
        }
        at += rest + (at[rest] == ';');
    }
}

// -- files ----------------------------------------------------------------------------------------

typedef struct case_reader {
    case_list *list;
    case_file *file;
    const char *at;
    int line;      // of `at`
    char *module;  // being read
    case_items given;
} case_reader;

// The next line, in *out_text without its end; false at the end of the file.
static inline bool case_next(case_reader *r, const char **out_text, size_t *out_length) {
    if (!*r->at) {
        return false;
    }
    *out_text = r->at;
    *out_length = strcspn(r->at, "\n");
    r->at += *out_length + (r->at[*out_length] == '\n');
    r->line++;
    return true;
}

// The line, and those after it that are indented by more than `indent`, joined by blanks.
static inline char *case_logical(case_reader *r, const char *text, size_t length, size_t indent) {
    char *line = case_trimmed(text, case_uncommented(text, length));
    for (;;) {
        size_t next = strspn(r->at, " ");
        if (next <= indent || r->at[next] == '\n' || !r->at[next]) {
            return line;
        }
        const char *more;
        size_t more_length;
        case_next(r, &more, &more_length);
        char *trimmed = case_trimmed(more, case_uncommented(more, more_length));
        if (trimmed[0] != '#') {
            line = case_join(case_join(line, " ", 1), trimmed, strlen(trimmed));
        }
    }
}

// A declaration of a kernel with its body; `lowers` are put aside.
static inline char *case_kernel(case_reader *r, const char *text, size_t length,
                                case_items *lowers) {
    size_t name = strcspn(text + 7, "(");
    char *kernel = case_line("", text, length);
    while (case_begins(r->at, "  ") || case_begins(r->at, "rule ")) {
        const char *line;
        size_t line_length;
        case_next(r, &line, &line_length);
        if (case_begins(line, "  lowers ")) {
            int number = r->line;
            const char *all = case_logical(r, line + 8, line_length - 8, 2);
            case_add(lowers, "lowers",
                     case_join(case_join(case_copy(text + 7, name), " ", 1), all, strlen(all)),
                     number);
        } else {
            kernel = case_line(kernel, line, line_length);
        }
    }
    return kernel;
}

static inline void case_read_module(case_reader *r, const char *text, size_t length) {
    memset(&r->given, 0, sizeof r->given);
    r->module = case_line("", text, length);
    while (*r->at && !case_begins(r->at, "case ") && !case_begins(r->at, "module ")) {
        case_next(r, &text, &length);
        if (case_begins(text, "with ")) {
            case_split(r->file, &r->given, case_logical(r, text, length, 0), r->line);
        } else if (case_begins(text, "kernel ")) {
            char *kernel = case_kernel(r, text, length, &r->given);
            r->module = case_join(r->module, kernel, strlen(kernel));
        } else {
            r->module = case_line(r->module, text, length);
        }
    }
}

// Lines that are indented by at least 4, without these blanks.
static inline char *case_block(case_reader *r) {
    char *block = case_copy("", 0);
    const char *text;
    size_t length;
    while (case_begins(r->at, "    ")) {
        case_next(r, &text, &length);
        block = case_line(block, text + 4, length - 4);
    }
    return block;
}

// Whether the item is one word, before lines of a text (case_texts.h).
static inline bool case_is_block(const char *item, size_t length) {
    static const char *const words[] = {"given", "becomes", "prints", "compiles", "reads", "lists"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (length == strlen(words[i]) && case_begins(item, words[i])) {
            return true;
        }
    }
    return false;
}

static inline void case_read_case(case_reader *r, const char *text, size_t length) {
    case_list *list = r->list;
    case_text *cases = (case_text *)case_alloc((list->count + 1) * sizeof *cases);
    if (list->count > 0) {
        memcpy(cases, list->cases, list->count * sizeof *cases);
    }
    list->cases = cases;
    case_text *c = &cases[list->count++];
    c->file = r->file;
    c->name = case_trimmed(text + 5, length - 5);
    c->module = r->module;
    c->given = r->given;
    c->line = r->line;
    while (case_begins(r->at, "  ") || *r->at == '\n' || *r->at == '#') {
        case_next(r, &text, &length);
        const char *first = case_skip(text);
        int line = r->line;
        if (case_is_block(first, (size_t)(text + length - first))) {
            const char *word = case_copy(first, (size_t)(text + length - first));
            case_add(&c->items, word, case_block(r), line);
        } else if (first < text + length && *first != '#') {
            case_split(r->file, &c->items, case_logical(r, text, length, 2), line);
        }
    }
}

// NAME[: REST], with what follows the word before it.
static inline void case_read_named(case_reader *r, case_items *list, const char *text,
                                   const char *between) {
    const char *end = strstr(text, between);
    if (!end) {
        fail_msg("%s:%d: \"%s\" is missing", r->file->path, r->line, between);
    }
    case_add(list, case_trimmed(text, (size_t)(end - text)),
             case_trimmed(end + strlen(between), strlen(end) - strlen(between)), r->line);
}

// mode NAME[, no sooner than OTHER]: DIRECTIVES
static inline void case_read_mode(case_reader *r, const char *text) {
    static const char floor[] = ", no sooner than ";
    case_items *modes = &r->file->modes;
    case_read_named(r, modes, text, ":");
    case_item *mode = &modes->items[modes->count - 1];
    const char *tail = strstr(mode->word, floor);
    if (tail) {
        mode->word = case_trimmed(mode->word, (size_t)(tail - mode->word));
        case_add(&r->file->floors, mode->word, tail + strlen(floor), r->line);
    }
}

static inline void case_read_head(case_reader *r, const char *text, size_t length) {
    if (case_begins(text, "kernel ")) {
        char *kernel = case_kernel(r, text, length, &r->file->lowers);
        case_add(&r->file->kernels, case_copy(kernel + 7, strcspn(kernel + 7, "(")), kernel,
                 r->line);
        return;
    }
    char *line = case_logical(r, text, length, 0);
    if (case_begins(line, "from ")) {
        r->file->from = line + 5;
    } else if (!strcmp(line, "trees")) {
        r->file->has_trees = true;
    } else if (!strcmp(line, "texts")) {
        r->file->has_texts = true;
    } else if (!strcmp(line, "scripts")) {
        r->file->has_scripts = true;
    } else if (case_begins(line, "mode ")) {
        case_read_mode(r, line + 5);
    } else if (case_begins(line, "way ")) {
        case_read_named(r, &r->file->ways, line + 4, ":");
    } else if (case_begins(line, "define ")) {
        case_read_named(r, &r->file->defines, line + 7, " ");
    } else if (case_begins(line, "function ")) {
        case_read_named(r, &r->file->functions, line + 9, " ");
    } else if (line[0] && line[0] != '#') {
        fail_msg("%s:%d: nothing begins like this: %s", r->file->path, r->line, line);
    }
}

static inline char *case_contents(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail_msg("cannot open %s", path);
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = (char *)case_alloc(size + 1);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

// Adds all cases of a file.
static inline void case_read(case_list *list, const char *path) {
    const char *text;
    size_t length;
    case_reader r = {.list = list};
    r.file = (case_file *)case_alloc(sizeof *r.file);
    r.file->path = case_copy(path, strlen(path));
    r.at = case_contents(path);
    while (case_next(&r, &text, &length)) {
        if (case_begins(text, "module ")) {
            case_read_module(&r, text, length);
        } else if (case_begins(text, "case ")) {
            case_read_case(&r, text, length);
        } else {
            case_read_head(&r, text, length);
        }
    }
}

static inline int case_by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Reads all files of tests/cases, or those of the arguments.
static inline case_list case_read_all(int count, char **paths) {
    static const char folder[] = "tests/cases";
    case_list list = {NULL, 0};
    char *found[256];
    int found_count = 0;
    DIR *directory = count > 1 ? NULL : opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && !strcmp(dot, ".case") && found_count < 256) {
            char path[512];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            found[found_count++] = case_copy(path, strlen(path));
        }
    }
    if (directory) {
        closedir(directory);
    }
    qsort(found, (size_t)found_count, sizeof *found, case_by_name);
    for (int i = 0; i < found_count; i++) {
        case_read(&list, found[i]);
    }
    for (int i = 1; i < count; i++) {
        case_read(&list, paths[i]);
    }
    return list;
}

#endif
