// Bodies of tile kernels in the text of a module: lines as words, for kernel/body_read.c, and the
// kernel that is made of them when the first line comes that is not further right than its own.

#include "../kernel/body_text.h"
#include "parse.h"

struct pwsp_parse_body {
    pwsp_body_reader reader;
    ptowsp_unit unit;
    uint64_t line, column;  // of the kernel's line
};

PWSP_INTERNAL bool pwsp_parse_body_begin(pwsp_parser *p, const ptowsp_kernel_desc *desc) {
    ptowsp_body_desc begun;
    memset(&begun, 0, sizeof begun);
    begun.name = desc->name;
    begun.axis_count = desc->axis_count;
    ptowsp_body *body = ptowsp_kernel_begin(p->module, &begun);
    if (!body) {
        return pwsp_parse_built(p, p->line, p->start);
    }
    if (!p->body) {
        p->body =
            (struct pwsp_parse_body *)pwsp_arena_alloc(&p->arena, sizeof *p->body, sizeof(void *));
    }
    if (!p->body) {
        return pwsp_parse_no_memory(p);
    }
    memset(p->body, 0, sizeof *p->body);
    p->body->reader.body = body;
    p->body->reader.head = *desc;
    p->body->reader.head.name = body->name;
    p->body->unit = desc->unit;
    p->body->line = p->line;
    p->body->column = p->start;
    p->is_in_body = true;
    return true;
}

// The words from the token to the end of the line, and one of END.
static bool pwsp_parse_line_words(pwsp_parser *p, pwsp_word *words) {
    uint32_t count = 0;
    for (; p->token != PWSP_TOKEN_LINE_END && count < PWSP_LINE_WORD_MAX; count++) {
        const bool is_quoted = p->token == PWSP_TOKEN_NAME;
        const size_t begin = p->line_start + (size_t)p->column - 1 + is_quoted;
        words[count].kind = p->token == PWSP_TOKEN_WORD     ? PWSP_WORD_NAME
                            : is_quoted                     ? PWSP_WORD_QUOTED
                            : p->token == PWSP_TOKEN_NUMBER ? PWSP_WORD_INT
                            : p->token == PWSP_TOKEN_REAL   ? PWSP_WORD_REAL
                                                            : PWSP_WORD_SIGN;
        words[count].text = p->text + begin;
        words[count].length = (uint32_t)(p->at - begin - is_quoted);
        words[count].number = p->number;
        words[count].column = p->column;
        pwsp_parse_next(p);
    }
    if (p->token != PWSP_TOKEN_LINE_END) {
        return pwsp_parse_fail(p, "more than %d words in a line", PWSP_LINE_WORD_MAX);
    }
    memset(&words[count], 0, sizeof words[count]);
    words[count].column = p->column;
    return !p->is_failed;
}

PWSP_INTERNAL bool pwsp_parse_body_line(pwsp_parser *p) {
    pwsp_word words[PWSP_LINE_WORD_MAX + 1];
    pwsp_body_reader *r = &p->body->reader;
    const uint64_t indent = p->start - 1;
    if (indent % 2 != 0 || indent > UINT32_MAX) {
        return pwsp_parse_fail(p, "spaces before a line come in twos");
    }
    p->has_reals = true;
    bool is_cut = pwsp_parse_line_words(p, words);
    p->has_reals = false;
    if (!is_cut || pwsp_body_read(r, (uint32_t)(indent / 2 - 1), words)) {
        return is_cut;
    }
    p->column = r->column;
    pwsp_parse_fail(p, "%s", r->error);
    p->status = r->status;
    return false;
}

PWSP_INTERNAL bool pwsp_parse_body_end(pwsp_parser *p) {
    struct pwsp_parse_body *body = p->body;
    if (!p->is_in_body) {
        return true;
    }
    p->is_in_body = false;
    pwsp_body_read_end(&body->reader);
    pwsp_body_reader_free(&body->reader);
    if (p->is_failed) {
        return false;
    }
    ptowsp_kernel made = ptowsp_kernel_end(body->reader.body);
    if (!pwsp_parse_built(p, body->line, body->column)) {
        return false;
    }
    const pwsp_kernel_info *kernel = PWSP_KERNEL(p->module, made.id);
    const bool is_like = pwsp_kernel_is_like(kernel, &body->reader.head);
    if (is_like && kernel->unit == body->unit) {
        return true;
    }
    p->line = body->line;
    p->column = body->column;
    return is_like ? pwsp_parse_fail(p, "kernel %s: it is for %s, not %s", kernel->name,
                                     ptowsp_unit_name(kernel->unit), ptowsp_unit_name(body->unit))
                   : pwsp_parse_fail(p, "kernel %s: its body has other parameters", kernel->name);
}
