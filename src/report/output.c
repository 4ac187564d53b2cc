// Buffered output, and escapes.

#include "output.h"

#include "../base/json.h"
#include "label.h"

#include <inttypes.h>

PWSP_INTERNAL void pwsp_out_begin(pwsp_out *out, ptowsp_output sink) {
    out->sink = sink;
    out->has_failed = false;
    out->count = 0;
    out->sent = 0;
}

PWSP_INTERNAL void pwsp_out_flush(pwsp_out *out) {
    if (!out->has_failed && out->count) {
        if (out->sink.write(out->sink.user, out->buffer, out->count)) {
            out->sent += out->count;
        } else {
            out->has_failed = true;
        }
    }
    out->count = 0;
}

PWSP_INTERNAL ptowsp_status pwsp_out_end(pwsp_out *out, ptowsp_context *context, const char *what) {
    pwsp_out_flush(out);
    return out->has_failed
               ? pwsp_fail(context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                           "%s: the output failed after %" PRIu64 " bytes", what, out->sent)
               : PTOWSP_OK;
}

// More bytes than the buffer has room for.
PWSP_INTERNAL void pwsp_out_spill(pwsp_out *out, const void *data, size_t size) {
    const char *bytes = (const char *)data;
    while (size > 0 && !out->has_failed) {
        if (out->count == PWSP_OUT_BUFFER) {
            pwsp_out_flush(out);
        }
        size_t room = PWSP_OUT_BUFFER - out->count, part = size < room ? size : room;
        memcpy(out->buffer + out->count, bytes, part);
        out->count += part;
        bytes += part;
        size -= part;
    }
}

PWSP_INTERNAL void pwsp_out_u64(pwsp_out *out, uint64_t value) {
    char digits[20];
    pwsp_out_bytes(out, digits, pwsp_label_u64(value, digits));
}

static bool pwsp_out_write(void *user, const void *text, size_t length) {
    pwsp_out_utf8((pwsp_out *)user, (const char *)text, length);
    return true;
}

PWSP_INTERNAL ptowsp_output pwsp_out_sink(pwsp_out *out) {
    ptowsp_output text = {pwsp_out_write, out};
    return text;
}

PWSP_INTERNAL void pwsp_out_format(pwsp_out *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    pwsp_text_vformat(pwsp_out_sink(out), format, args);
    va_end(args);
}

// -- characters -----------------------------------------------------------------------------------

// The length of the UTF-8 character at the text's start, or 0 if it is not valid: no overlong
// forms, surrogates or code points above U+10FFFF (RFC 3629), nor U+FFFE and U+FFFF, which XML
// lacks.
static size_t pwsp_utf8_length(const unsigned char *text, size_t left) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    size_t length = first < 0x80         ? 1
                    : first >> 5 == 0x06 ? 2
                    : first >> 4 == 0x0e ? 3
                    : first >> 3 == 0x1e ? 4
                                         : 0;
    uint32_t code = length == 1 ? first : length ? first & (0x7fu >> length) : 0;
    for (size_t i = 1; i < length; i++) {
        if (i == left || text[i] >> 6 != 2) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3fu);
    }
    bool is_good = length && code >= least[length] && code <= 0x10ffff &&
                   !(code >= 0xd800 && code <= 0xdfff) && (code & ~1u) != 0xfffe;
    return is_good ? length : 0;
}

// The character at the text's start, or U+FFFD; returns how many bytes of the text it stands for.
static size_t pwsp_utf8_char(const char *text, size_t left, const char **out_char,
                             size_t *out_length) {
    size_t length = pwsp_utf8_length((const unsigned char *)text, left);
    *out_char = length ? text : "\xef\xbf\xbd";
    *out_length = length ? length : 3;
    return length ? length : 1;
}

PWSP_INTERNAL size_t pwsp_utf8_copy(char *room, size_t size, const char *text, size_t length) {
    size_t count = 0, char_length;
    const char *from;
    for (size_t i = 0; i < length; count += char_length) {
        i += pwsp_utf8_char(text + i, length - i, &from, &char_length);
        if (char_length >= size - count) {
            break;
        }
        memcpy(room + count, from, char_length);
    }
    room[count] = '\0';
    return count;
}

PWSP_INTERNAL bool pwsp_utf8_is_ascii(const char *text, size_t length) {
    unsigned char all = 0;
    for (size_t i = 0; i < length; i++) {
        all |= (unsigned char)text[i];
    }
    return all < 0x80;
}

// Writes a character that needs no escape, or U+FFFD; returns how far it got.
static size_t pwsp_out_char(pwsp_out *out, const char *text, size_t left) {
    const char *from;
    size_t char_length;
    const size_t length = pwsp_utf8_char(text, left, &from, &char_length);
    pwsp_out_bytes(out, from, char_length);
    return length;
}

PWSP_INTERNAL void pwsp_out_utf8(pwsp_out *out, const char *text, size_t length) {
    if (pwsp_utf8_is_ascii(text, length)) {
        pwsp_out_bytes(out, text, length);
        return;
    }
    for (size_t i = 0; i < length;) {
        i += pwsp_out_char(out, text + i, length - i);
    }
}

// -- escapes --------------------------------------------------------------------------------------

// Writes the ASCII text up to the first quote or control character, and where others are escaped as
// well, backslash (JSON, CSV) or &, < and > (XML); returns its length.
PWSP_INLINE size_t pwsp_out_plain(pwsp_out *out, const char *text, bool is_xml) {
    size_t length = 0;
    while (text[length] >= 0x20 && text[length] < 0x7f && text[length] != '"' &&
           (is_xml ? text[length] != '&' && text[length] != '<' && text[length] != '>'
                   : text[length] != '\\')) {
        length++;
    }
    pwsp_out_bytes(out, text, length);
    return length;
}

PWSP_INTERNAL void pwsp_out_json(pwsp_out *out, const char *text) {
    for (size_t i = pwsp_out_plain(out, text, false); text[i] != '\0';) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            char escaped[2] = {'\\', (char)c};
            pwsp_out_bytes(out, escaped, 2);
            i++;
        } else if (c < 0x20 || c == 0x7f) {
            pwsp_out_format(out, "\\u%04x", c);
            i++;
        } else {
            i += pwsp_out_char(out, text + i, SIZE_MAX);
        }
    }
}

static void pwsp_out_xml(pwsp_out *out, const char *text) {
    for (size_t i = pwsp_out_plain(out, text, true); text[i] != '\0';) {
        unsigned char c = (unsigned char)text[i];
        const char *escaped = c == '&'    ? "&amp;"
                              : c == '<'  ? "&lt;"
                              : c == '>'  ? "&gt;"
                              : c == '"'  ? "&quot;"
                              : c == '\t' ? "&#9;"
                              : c == '\n' ? "&#10;"
                              : c == '\r' ? "&#13;"
                              : c < 0x20  ? "\xef\xbf\xbd"
                                          : NULL;
        if (escaped) {
            pwsp_out_text(out, escaped);
            i++;
        } else {
            i += pwsp_out_char(out, text + i, SIZE_MAX);
        }
    }
}

static void pwsp_out_csv(pwsp_out *out, const char *text) {
    pwsp_out_text(out, "\"");
    for (size_t i = pwsp_out_plain(out, text, false); text[i] != '\0';) {
        if (text[i] == '"') {
            pwsp_out_text(out, "\"\"");
            i++;
        } else {
            i += pwsp_out_char(out, text + i, SIZE_MAX);
        }
    }
    pwsp_out_text(out, "\"");
}

// -- templates ------------------------------------------------------------------------------------

static void pwsp_template_write(void *user, const char *text, size_t length) {
    pwsp_out_bytes((pwsp_out *)user, text, length);
}

// A function that prints by a template, whose texts are escaped by `escape`.
#define PWSP_TEMPLATE(print, escape)                                                               \
    static void print##_escape(void *user, const char *text) {                                     \
        escape((pwsp_out *)user, text);                                                            \
    }                                                                                              \
    PWSP_INTERNAL void print(pwsp_out *out, const char *format, ...) {                             \
        const pwsp_json_sink sink = {pwsp_template_write, print##_escape, out};                    \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        pwsp_json_vprint(&sink, format, args);                                                     \
        va_end(args);                                                                              \
    }

PWSP_TEMPLATE(pwsp_json_print, pwsp_out_json)
PWSP_TEMPLATE(pwsp_xml_print, pwsp_out_xml)
PWSP_TEMPLATE(pwsp_csv_print, pwsp_out_csv)

// -- numbers --------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_grouped_text pwsp_grouped(uint64_t number) {
    pwsp_grouped_text out;
    char digits[24];
    uint32_t count = 0, at = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count > 0) {
        out.text[at++] = digits[--count];
        if (count > 0 && count % 3 == 0) {
            out.text[at++] = ',';
        }
    }
    out.text[at] = '\0';
    return out;
}
