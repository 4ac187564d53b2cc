#include "print.h"

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

void print_json(FILE *to, const char *text) {
    putc('"', to);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            fprintf(to, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(to, "\\u%04x", c);
        } else {
            putc(c, to);
        }
    }
    putc('"', to);
}

void print_xml(FILE *to, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: putc((unsigned char)*text < 0x20 ? '?' : *text, to);
        }
    }
}
