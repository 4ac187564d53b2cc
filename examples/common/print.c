#include "print.h"

#include <stdbool.h>

const char *print_grouped(uint64_t value) {
    static char buffers[8][32];
    static unsigned turn;
    char digits[32], *out = buffers[turn++ % 8];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *print_fixed(double value, int digits) {
    static char buffers[8][48];
    static unsigned turn;
    char *out = buffers[turn++ % 8];
    snprintf(out, sizeof buffers[0], "%.*f", digits, value);
    return out;
}

// Bytes of the UTF-8 character at `text` (RFC 3629), 1 for a byte that begins none.
static int print_utf8_length(const unsigned char *text) {
    int length = text[0] < 0xc2   ? 1
                 : text[0] < 0xe0 ? 2
                 : text[0] < 0xf0 ? 3
                 : text[0] < 0xf5 ? 4
                                  : 1;
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 1;
        }
    }
    bool is_long = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool is_high = (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return is_long || is_high ? 1 : length;
}

// Copies a character that is not ASCII, or a question mark for a byte that is no UTF-8. Returns the
// bytes.
static int print_character(FILE *to, const char *text) {
    int length = print_utf8_length((const unsigned char *)text);
    if (length == 1) {
        putc('?', to);
    } else {
        fwrite(text, 1, (size_t)length, to);
    }
    return length;
}

void print_json(FILE *to, const char *text) {
    putc('"', to);
    while (*text) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x80) {
            text += print_character(to, text);
            continue;
        }
        if (c == '"' || c == '\\') {
            fprintf(to, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(to, "\\u%04x", c);
        } else {
            putc(c, to);
        }
        text++;
    }
    putc('"', to);
}

void print_xml(FILE *to, const char *text) {
    while (*text) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x80) {
            text += print_character(to, text);
            continue;
        }
        switch (c) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: putc(c < 0x20 ? '?' : c, to);
        }
        text++;
    }
}
