// Tokens of a module's text: words, names in quotes, numbers, signs, and the ends of lines. Any
// byte may occur; one that is not part of a token is an error that shows it.

#include "../base/text.h"
#include "parse.h"

PWSP_INTERNAL bool pwsp_parse_fail_at(pwsp_parser *p, uint64_t column, const char *format, ...) {
    if (!p->is_failed) {
        PWSP_TEXT_FORMAT_INTO(p->error, format);
        p->column = column;
        p->is_failed = true;
        p->status = PTOWSP_INVALID_PARAMS;
    }
    return false;
}

PWSP_INTERNAL bool pwsp_parse_no_memory(pwsp_parser *p) {
    pwsp_parse_fail(p, "out of memory");
    p->status = PTOWSP_OUT_OF_MEMORY;
    return false;
}

PWSP_INTERNAL bool pwsp_parse_built(pwsp_parser *p, uint64_t line, uint64_t column) {
    if (p->is_failed || p->module->status == PTOWSP_OK) {
        return !p->is_failed;
    }
    p->line = line;
    pwsp_parse_fail_at(p, column, "%s", p->module->text);
    p->status = p->module->status;
    return false;
}

// -- tokens ---------------------------------------------------------------------------------------

static bool pwsp_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool pwsp_lex_bad(pwsp_parser *p, char c) {
    p->token = PWSP_TOKEN_LINE_END;
    if (c >= ' ' && c < 0x7f) {
        return pwsp_parse_fail(p, "the character %c begins nothing", c);
    }
    return pwsp_parse_fail(p, "the byte 0x%02x is in no text of a module", (unsigned)(uint8_t)c);
}

static void pwsp_lex_name(pwsp_parser *p, bool is_quoted) {
    const char *begin = p->text + p->at;
    const size_t left = p->length - p->at;
    size_t length = 0;
    for (; length < left && length <= PTOWSP_NAME_MAX; length++) {
        char c = begin[length];
        if (is_quoted ? c == '"' || c < ' ' || c >= 0x7f : !pwsp_name_is_word_part(c)) {
            break;
        }
    }
    if (length > PTOWSP_NAME_MAX) {
        p->token = PWSP_TOKEN_LINE_END;
        pwsp_parse_fail(p, "a name of more than %d characters", PTOWSP_NAME_MAX);
        return;
    }
    memcpy(p->word, begin, length);
    p->word[length] = '\0';
    p->at += length;
    p->token = is_quoted ? PWSP_TOKEN_NAME : PWSP_TOKEN_WORD;
    if (is_quoted && (p->at == p->length || p->text[p->at] != '"')) {
        p->token = PWSP_TOKEN_LINE_END;
        pwsp_parse_fail(p, "this quote is not closed on its line");
    } else if (is_quoted) {
        p->at++;
    }
}

// Skips the fraction and the exponent of a number.
static bool pwsp_lex_fraction(pwsp_parser *p) {
    const size_t begin = p->at;
    if (p->at < p->length && p->text[p->at] == '.') {
        for (p->at++; p->at < p->length && pwsp_is_digit(p->text[p->at]); p->at++) {
        }
    }
    if (p->at < p->length && p->text[p->at] == 'e') {
        p->at++;
        p->at += p->at < p->length && (p->text[p->at] == '-' || p->text[p->at] == '+');
        for (; p->at < p->length && pwsp_is_digit(p->text[p->at]); p->at++) {
        }
    }
    return p->at > begin;
}

static void pwsp_lex_number(pwsp_parser *p) {
    const char *text = p->text;
    const size_t end = p->length;
    size_t at = p->at;
    uint64_t number = 0;
    p->token = PWSP_TOKEN_NUMBER;
    for (; at < end && pwsp_is_digit(text[at]); at++) {
        uint64_t digit = (uint64_t)(text[at] - '0');
        if (number > UINT64_MAX / 10 || number * 10 > UINT64_MAX - digit) {
            p->token = PWSP_TOKEN_LINE_END;
            pwsp_parse_fail(p, "this number is more than 2^64 - 1");
            return;
        }
        number = number * 10 + digit;
    }
    p->number = number;
    p->at = at;
    if (p->has_reals && pwsp_lex_fraction(p)) {
        p->token = PWSP_TOKEN_REAL;
    } else if (p->at < p->length && p->text[p->at] == 'u') {
        p->token = PWSP_TOKEN_UNSIGNED;
        p->at++;
    }
    if (p->at < p->length && pwsp_name_is_word_part(p->text[p->at])) {
        p->token = PWSP_TOKEN_LINE_END;
        pwsp_parse_fail(p, "a number goes on with %c", p->text[p->at]);
    }
}

// The length of the sign that begins with `c` and may continue with `next`; 0 if it is not a sign.
static size_t pwsp_sign_length(char c, char next) {
    switch (c) {
    case '<':
    case '>': return next == c || next == '=' ? 2 : 1;
    case '=':
    case '!': return next == '=' ? 2 : 1;
    case '&':
    case '|': return next == c ? 2 : 1;
    default: return c && strchr("()[],?:+-*/%^~", c) ? 1 : 0;
    }
}

PWSP_INTERNAL void pwsp_parse_next(pwsp_parser *p) {
    PTOWSP_ASSERT(!p->is_failed);
    p->word[0] = '\0';
    const char *text = p->text;
    const size_t end = p->length;
    size_t at = p->at;
    while (at < end && text[at] == ' ') {
        at++;
    }
    p->at = at;
    p->column = at - p->line_start + 1;
    char c = at < end ? text[at] : '\n';
    bool is_return = c == '\r' && (at + 1 == end || text[at + 1] == '\n');
    if (c == '\n' || c == '#' || is_return) {
        p->token = PWSP_TOKEN_LINE_END;
        return;
    }
    if (pwsp_is_digit(c)) {
        pwsp_lex_number(p);
    } else if (pwsp_name_is_word_part(c)) {
        pwsp_lex_name(p, false);
    } else if (c == '"') {
        p->at++;
        pwsp_lex_name(p, true);
    } else {
        size_t length = pwsp_sign_length(c, at + 1 < end ? text[at + 1] : '\0');
        if (length > 0) {
            p->word[0] = c;
            p->word[1] = length > 1 ? text[at + 1] : '\0';
            p->word[2] = '\0';
            p->at += length;
            p->token = PWSP_TOKEN_SIGN;
            return;
        }
        pwsp_lex_bad(p, c);
    }
}

// -- expecting them -------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_parse_is(const pwsp_parser *p, const char *word) {
    return p->word[0] == word[0] && strcmp(p->word, word) == 0 &&
           (p->token == PWSP_TOKEN_WORD || p->token == PWSP_TOKEN_SIGN);
}

PWSP_INTERNAL bool pwsp_parse_try(pwsp_parser *p, const char *word) {
    if (!pwsp_parse_is(p, word)) {
        return false;
    }
    pwsp_parse_next(p);
    return true;
}

PWSP_INTERNAL bool pwsp_parse_expect(pwsp_parser *p, const char *word) {
    return pwsp_parse_try(p, word) || pwsp_parse_fail(p, "%s is missing here", word);
}

PWSP_INTERNAL bool pwsp_parse_name(pwsp_parser *p, const char *what, char *out_name) {
    if (p->token != PWSP_TOKEN_WORD && p->token != PWSP_TOKEN_NAME) {
        return pwsp_parse_fail(p, "the name of %s is missing here", what);
    }
    memcpy(out_name, p->word, strlen(p->word) + 1);
    pwsp_parse_next(p);
    return true;
}

PWSP_INTERNAL bool pwsp_parse_kept_name(pwsp_parser *p, pwsp_arena *arena, const char *what,
                                        const char **out_name) {
    char name[PTOWSP_NAME_MAX + 1];
    *out_name = pwsp_parse_name(p, what, name) ? pwsp_arena_copy(arena, name) : NULL;
    return *out_name || (!p->is_failed && pwsp_parse_no_memory(p));
}

PWSP_INTERNAL bool pwsp_parse_number(pwsp_parser *p, uint64_t max, uint64_t *out_number) {
    if (p->token != PWSP_TOKEN_NUMBER) {
        return pwsp_parse_fail(p, "a number is missing here");
    }
    if (p->number > max) {
        return pwsp_parse_fail(p, "this number is too large here");
    }
    *out_number = p->number;
    pwsp_parse_next(p);
    return true;
}

// -- labels ---------------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_parse_label_find(const pwsp_parse_labels *labels, uint64_t label) {
    uint64_t at = 0;
    PWSP_BISECT(at, labels->count, labels->items[middle].label < label)
    return at < labels->count && labels->items[at].label == label ? labels->items[at].id : 0;
}

PWSP_INTERNAL uint64_t pwsp_parse_label_last(const pwsp_parse_labels *labels) {
    return labels->count ? labels->items[labels->count - 1].label : 0;
}

PWSP_INTERNAL bool pwsp_parse_label_add(pwsp_parser *p, pwsp_parse_labels *labels, uint64_t label,
                                        uint32_t id) {
    const pwsp_memory *memory = &p->module->context->memory;
    if (!PWSP_GROW(memory, labels->items, labels->capacity, labels->count + 1)) {
        return pwsp_parse_no_memory(p);
    }
    labels->items[labels->count].label = label;
    labels->items[labels->count++].id = id;
    return true;
}
