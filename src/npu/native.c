// aicore/kernels/*.cpp of kernels that are C functions: their source, and for each kernel a function that
// a core calls. The source is in an anonymous namespace inside a namespace of the file, so that its
// names hide names of headers. Kernels with one source text share a file.
//
// A source's #include lines go before the namespace. A text without line ends, as the preprocessor
// makes it (PTOWSP_SOURCE), is broken into lines: after { } and ; outside of parentheses,
// initialisers, strings and characters.

#include "kernels.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define NPU_SOURCE_MAX (64u << 20)  // bytes of a file

// -- reading --------------------------------------------------------------------------------------

static bool npu_read_stream(npu_emitter *emitter, uint32_t kernel, const char *name,
                            const char *path, FILE *file, npu_text *out) {
    char block[4096];
    size_t size;
    while ((size = fread(block, 1, sizeof block, file)) > 0 && out->size < NPU_SOURCE_MAX) {
        npu_write(out, block, size);
    }
    if (ferror(file)) {
        return npu_fail(emitter, PTOWSP_SYSTEM_FAILED, kernel, "kernel %s: its source %s: %s", name,
                        path, strerror(errno));
    }
    if (out->size >= NPU_SOURCE_MAX || (out->size && strlen(out->data) != out->size)) {
        return npu_fail(emitter, PTOWSP_UNSUPPORTED, kernel, "kernel %s: its source %s is no text",
                        name, path);
    }
    return true;
}

NPU_INTERNAL FILE *npu_open_source(const char *path) {
    struct stat about;
    if (stat(path, &about) == 0 && S_ISFIFO(about.st_mode)) {
        errno = ESPIPE;
        return NULL;
    }
    return fopen(path, "rb");
}

NPU_INTERNAL bool npu_read_file(npu_emitter *emitter, uint32_t kernel, const char *path,
                                npu_text *out) {
    const ptowsp_kernel_info *info = &emitter->tables->kernels[kernel];
    FILE *file = npu_open_source(path);
    if (!file) {
        return npu_fail(emitter, PTOWSP_SYSTEM_FAILED, kernel, "kernel %s: its source %s: %s",
                        info->name, path,
                        errno == ESPIPE ? "it is a FIFO, not a file" : strerror(errno));
    }
    bool is_read = npu_read_stream(emitter, kernel, info->name, path, file, out);
    fclose(file);
    return is_read;
}

// The source's text, ended by a line end if it has any.
static bool npu_read_source(npu_emitter *emitter, uint32_t kernel, npu_text *out) {
    const ptowsp_kernel_info *info = &emitter->tables->kernels[kernel];
    if (info->source.text) {
        npu_print(out, "%s", info->source.text);
    } else {
        if (!npu_read_file(emitter, kernel, info->source.file, out)) {
            return false;
        }
    }
    if (out->data && memchr(out->data, '\n', out->size) && out->data[out->size - 1] != '\n') {
        npu_print(out, "\n");
    }
    return out->is_out_of_memory ? npu_out_of_memory(emitter) : true;
}

static const char *npu_source_fn(const ptowsp_kernel_info *info) {
    return info->source.fn ? info->source.fn : info->name;
}

// -- breaking into lines --------------------------------------------------------------------------

NPU_INTERNAL bool npu_lex(npu_lexer *lexer, char c, char next) {
    if (lexer->is_line_comment || lexer->is_block_comment) {
        lexer->is_line_comment = lexer->is_line_comment && c != '\n';
        if (lexer->is_block_comment && c == '/' && lexer->last == '*') {
            lexer->is_block_comment = false;
        }
        lexer->last = lexer->last == '\0' && c == '*' ? ' ' : c;  // the star of "/*" ends nothing
        return false;
    }
    if (lexer->quote) {
        bool is_end = c == lexer->quote && !lexer->is_escaped;
        lexer->is_escaped = c == '\\' && !lexer->is_escaped;
        lexer->quote = is_end ? '\0' : lexer->quote;
        return false;
    }
    if (c == '/' && (next == '/' || next == '*')) {
        lexer->is_line_comment = next == '/';
        lexer->is_block_comment = next == '*';
        lexer->last = '\0';
        return false;
    }
    // A quote after a digit separates digits: 1'000.
    bool is_separator = c == '\'' && lexer->last >= '0' && lexer->last <= '9';
    if (c == '"' || (c == '\'' && !is_separator)) {
        lexer->quote = c;
        lexer->is_escaped = false;
    }
    return true;
}

NPU_INTERNAL const char *npu_directive(const npu_lexer *lexer, const char *line) {
    const char *at = line + strspn(line, " \t");
    return *at == '#' && !lexer->quote && !lexer->is_block_comment ? at + 1 + strspn(at + 1, " \t")
                                                                   : NULL;
}

NPU_INTERNAL void npu_lex_line(npu_lexer *lexer, const char *line, size_t length) {
    for (size_t i = 0; i < length + (line[length] == '\n'); i++) {
        if (npu_lex(lexer, line[i], i + 1 < length ? line[i + 1] : '\0') && line[i] != ' ') {
            lexer->last = line[i];
        }
    }
}

// Takes a character that counts: opens and closes brackets.
static void npu_lex_nesting(npu_lexer *lexer, char c) {
    if (c == '(') {
        lexer->parens++;
    } else if (c == ')') {
        lexer->parens -= lexer->parens > 0;
    } else if (c == '{') {
        bool is_value = lexer->last == '=' || lexer->last == ',' || lexer->last == '(';
        lexer->initialisers += lexer->initialisers > 0 || is_value;
        lexer->braces++;
    } else if (c == '}') {
        lexer->braces -= lexer->braces > 0;
        lexer->initialisers -= lexer->initialisers > 0;
    }
}

// Writes a line of at most 100 characters with its indent, or several, broken at spaces outside of
// quotes.
static void npu_print_line(npu_text *out, uint32_t indent, const char *line, size_t length) {
    uint32_t margin = indent;
    while (length > 0) {
        size_t room = margin < 60 ? 100 - margin : 40, end = length, space = 0;
        npu_lexer lexer;
        memset(&lexer, 0, sizeof lexer);
        for (size_t i = 0; i < length && (i < room || space == 0); i++) {
            bool counts = npu_lex(&lexer, line[i], i + 1 < length ? line[i + 1] : '\0');
            space = counts && line[i] == ' ' && i > 0 ? i : space;
            lexer.last = line[i];
        }
        if (length > room && space > 0) {
            end = space;
        }
        npu_print(out, "%*s%.*s\n", (int)margin, "", (int)end, line);
        line += end;
        length -= end;
        for (; length > 0 && *line == ' '; length--) {
            line++;
        }
        margin = indent + 4;
    }
}

// Breaks a text without line ends.
static void npu_print_lines(npu_text *out, const char *text) {
    npu_lexer lexer;
    memset(&lexer, 0, sizeof lexer);
    const char *start = text;
    uint32_t indent = 0;
    for (const char *at = text; *at; at++) {
        if (start == at && *at == ' ') {
            start++;
            continue;
        }
        if (!npu_lex(&lexer, *at, at[1])) {
            continue;
        }
        bool was_value = lexer.initialisers > 0;
        npu_lex_nesting(&lexer, *at);
        lexer.last = *at != ' ' ? *at : lexer.last;
        bool is_end = (*at == ';' || *at == '{' || *at == '}') && lexer.parens == 0 &&
                      lexer.initialisers == 0 && !was_value;
        const char *next = at + 1;
        while (*next == ' ') {
            next++;
        }
        // "};", "} else" and "} while" stay together.
        bool is_joined =
            *at == '}' && (*next == ';' || *next == ',' || *next == ')' ||
                           strncmp(next, "else", 4) == 0 || strncmp(next, "while (", 7) == 0);
        if (*at == '}' && is_end && start == at) {
            indent = 4 * lexer.braces;
        }
        if (is_end && !is_joined) {
            npu_print_line(out, indent, start, (size_t)(at + 1 - start));
            bool is_between = lexer.braces == 0 && *at == '}' && *next;
            npu_print(out, "%s", is_between ? "\n" : "");
            start = at + 1;
            indent = 4 * lexer.braces;
        }
    }
    npu_print_line(out, indent, start, strlen(start));
}

// -- files ----------------------------------------------------------------------------------------

// Writes a source's #include lines (`is_include`), or all other lines, with empty lines in the
// places of the #include lines.
static void npu_print_source(npu_text *out, const char *text, bool is_include) {
    npu_lexer lexer;
    memset(&lexer, 0, sizeof lexer);
    while (*text) {
        const char *end = strchr(text, '\n');
        size_t length = end ? (size_t)(end - text) : strlen(text);
        const char *word = npu_directive(&lexer, text);
        if ((word && strncmp(word, "include", 7) == 0) == is_include) {
            npu_write(out, text, length);
            npu_write(out, "\n", 1);
        }
        npu_lex_line(&lexer, text, length);
        text += length + (end != NULL);
    }
}

static void npu_print_entry(npu_emitter *emitter, uint32_t kernel, npu_text *out) {
    const ptowsp_kernel_info *info = &emitter->tables->kernels[kernel];
    npu_text call = {NULL, 0, 0, false};
    npu_print_cpp(&call, "::wsp::run_native(wsp_here, '%s', %s, %s, ", info->name,
                  npu_source_fn(info), info->has_cost ? info->source.cost : "nullptr");
    npu_print_u64(&call, info->cycles);
    npu_print(&call, ");");
    npu_print(out,
              "\nextern \"C\" PTOWSP_AICORE void wsp_kernel_%s(PTOWSP_GM wsp_task *wsp_here) {\n",
              npu_name(emitter, NPU_KERNEL, kernel));
    npu_append_wrapped(out, 4, &call);
    npu_print(out, "}\n");
}

// Do two kernels have the same source?
static bool npu_is_same_source(const ptowsp_kernel_source *a, const ptowsp_kernel_source *b) {
    if (a->text || b->text) {
        return a->text && b->text && strcmp(a->text, b->text) == 0;
    }
    return a->file && b->file && strcmp(a->file, b->file) == 0;
}

static void npu_print_native(npu_emitter *emitter, uint32_t kernel, const npu_text *source,
                             const bool *is_here, npu_text *out) {
    const char *home = npu_name(emitter, NPU_KERNEL, kernel);
    bool is_first = true;
    npu_print(out, "// ");
    for (uint32_t i = kernel; i < emitter->tables->kernel_count; i++) {
        if (is_here[i]) {
            npu_print(out, "%s", is_first ? "Kernel " : ", ");
            npu_print_comment(out, emitter->tables->kernels[i].name);
            is_first = false;
        }
    }
    npu_print(out, ": C functions as their program has them.\n\n"
                   "#include \"wsp_native.h\"\n\n"
                   "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n");
    const char *text = source->data ? source->data : "";
    bool has_lines = strchr(text, '\n') != NULL;
    if (has_lines) {
        npu_print_source(out, text, true);
    }
    npu_print(out,
              "\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n\n"
              "namespace v_%s {\nnamespace {\n\n",
              home);
    if (has_lines) {
        npu_print_source(out, text, false);
    } else {
        npu_print_lines(out, text);
    }
    npu_print(out, "\n}  // namespace\n");
    for (uint32_t i = kernel; i < emitter->tables->kernel_count; i++) {
        if (is_here[i]) {
            npu_print_entry(emitter, i, out);
        }
    }
    npu_print(out, "\n}  // namespace v_%s\n", home);
}

NPU_INTERNAL void npu_native_emit(npu_emitter *emitter, uint32_t kernel) {
    npu_text source = {NULL, 0, 0, false}, text = {NULL, 0, 0, false};
    bool *is_here = NULL;
    uint32_t capacity = 0;
    if (!NPU_ROOM(is_here, capacity, emitter->tables->kernel_count)) {
        npu_out_of_memory(emitter);
        return;
    }
    const ptowsp_kernel_info *first = &emitter->tables->kernels[kernel];
    for (uint32_t i = kernel; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        is_here[i] = info->is_used && !info->is_tile_kernel && !info->pto &&
                     npu_is_same_source(&first->source, &info->source);
    }
    if (npu_read_source(emitter, kernel, &source)) {
        npu_print_native(emitter, kernel, &source, is_here, &text);
        uint32_t file = npu_add_file(emitter, &text, "aicore/kernels/%s.cpp",
                                     npu_name(emitter, NPU_KERNEL, kernel));
        for (uint32_t i = kernel; i < emitter->tables->kernel_count; i++) {
            emitter->kernel_files[i] = is_here[i] ? 1 + file : emitter->kernel_files[i];
        }
    }
    npu_text_free(&source);
    npu_resize(is_here, 0);
}
