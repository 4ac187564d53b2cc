// The lines of aicpu/expand.cpp. A statement is built as one long line and broken when it ends: at
// a space outside of strings, in as few brackets as possible, preferably after ; and , and then as
// far to the right as it fits.

#include "npu_expand.h"

#define NPU_INDENT   4u   // columns
#define NPU_LINE_MIN 48u  // minimum width of a line at any depth

NPU_INTERNAL void npu_add(npu_expand *x, const char *format, ...) {
    va_list args;
    va_start(args, format);
    npu_vprint(&x->line, format, args);
    va_end(args);
}

NPU_INTERNAL void npu_line(npu_expand *x, const char *format, ...) {
    va_list args;
    va_start(args, format);
    npu_vprint(&x->line, format, args);
    va_end(args);
    npu_end_line(x);
}

// The place to break `text`, which is longer than `width`: the size of its first line. At least
// half of the line is used, if possible; if nothing fits, the first break is taken.
static size_t npu_line_break(const char *text, size_t size, size_t width) {
    size_t best = 0, early = 0;
    uint32_t depth = 0, best_cost = UINT32_MAX;
    bool is_string = false;
    for (size_t i = 0; i < size; i++) {
        if (is_string) {
            i += text[i] == '\\';
            is_string = text[i] != '"';
            continue;
        }
        is_string = text[i] == '"';
        depth += text[i] == '(' || text[i] == '[' || text[i] == '{';
        depth -= depth > 0 && (text[i] == ')' || text[i] == ']' || text[i] == '}');
        if (text[i] != ' ' || i == 0) {
            continue;
        }
        if (i > width) {
            return best ? best : early ? early : i;
        }
        uint32_t cost = 4 * depth + (text[i - 1] == ';' ? 0 : text[i - 1] == ',' ? 1 : 2);
        early = i;
        if (i >= width / 2 && cost <= best_cost) {
            best = i;
            best_cost = cost;
        }
    }
    return best ? best : early ? early : size;
}

// The last word that fits.
static size_t npu_comment_break(const char *text, size_t size, size_t width) {
    size_t best = 0;
    for (size_t i = 1; i < size && (i <= width || !best); i++) {
        best = text[i] == ' ' ? i : best;
    }
    return best ? best : size;
}

// Writes text of lines, each with its indent; of a statement, all but the first are indented
// further.
static void npu_write_broken(npu_expand *x, const char *text, size_t size, bool is_comment) {
    const char *prefix = is_comment ? "// " : "";
    uint32_t indent = NPU_INDENT * x->depth;
    do {
        size_t used = indent + strlen(prefix);
        size_t width = used + NPU_LINE_MIN > NPU_LINE_MAX ? NPU_LINE_MIN : NPU_LINE_MAX - used;
        size_t first = size <= width ? size
                       : is_comment  ? npu_comment_break(text, size, width)
                                     : npu_line_break(text, size, width);
        npu_print(x->out, "%*s%s", (int)indent, "", prefix);
        npu_write(x->out, text, first);
        npu_write(x->out, "\n", 1);
        if (first < size) {
            first++;  // the space
            indent = NPU_INDENT * (x->depth + (is_comment ? 0 : 2));
        }
        text += first;
        size -= first;
    } while (size > 0);
}

NPU_INTERNAL void npu_end_line(npu_expand *x) {
    if (x->line.size == 0) {
        npu_write(x->out, "\n", 1);
        return;
    }
    npu_write_broken(x, x->line.data, x->line.size, false);
    x->line.size = 0;
}

NPU_INTERNAL void npu_end_comment(npu_expand *x) {
    npu_write_broken(x, x->line.data ? x->line.data : "", x->line.size, true);
    x->line.size = 0;
}

NPU_INTERNAL void npu_open(npu_expand *x) {
    npu_add(x, "{");
    npu_end_line(x);
    x->depth++;
}

NPU_INTERNAL void npu_close(npu_expand *x, const char *behind) {
    x->depth--;
    npu_add(x, "}%s", behind);
    npu_end_line(x);
}

NPU_INTERNAL void npu_place_comment(npu_expand *x, uint32_t node) {
    x->place.size = 0;
    ptowsp_program_print_place(x->emitter->program, node, npu_text_sink(&x->place));
    npu_print_comment(&x->line, x->place.data ? x->place.data : "");
    npu_end_comment(x);
}
