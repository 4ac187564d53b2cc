// JSON by templates that look like the output, as with printf.
//
//      print(to, "{'name':'%s','tasks':%u}\n", name, count)      {"name":"say \"when\"","tasks":3}
//
// Each ' of the template becomes ", and texts are escaped, as the owner's sink does it. Conversions
// are printf's %s, %u and %d, also with l and ll, and %%, so compilers check the arguments. Depends
// on no other room: the emitter carries it as well.

#ifndef PWSP_JSON_H
#define PWSP_JSON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct pwsp_json_sink {
    void (*write)(void *user, const char *text, size_t length);
    void (*escape)(void *user, const char *text);  // the inside of a string
    void *user;
} pwsp_json_sink;

static inline __attribute__((unused)) void pwsp_json_number(const pwsp_json_sink *to,
                                                            unsigned long long value,
                                                            bool is_negative) {
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    if (is_negative) {
        digits[--at] = '-';
    }
    to->write(to->user, digits + at, sizeof digits - at);
}

static inline __attribute__((unused)) void pwsp_json_vprint(const pwsp_json_sink *to,
                                                            const char *format, va_list args) {
    while (*format) {
        const size_t plain = strcspn(format, "%'");
        to->write(to->user, format, plain);
        format += plain;
        if (*format == '\'') {
            to->write(to->user, "\"", 1);
            format++;
        } else if (*format == '%') {
            const size_t longs = strspn(++format, "l");
            const char conversion = format[longs];
            format += longs + 1;
            if (conversion == '%') {
                to->write(to->user, "%", 1);
            } else if (conversion == 's') {
                to->escape(to->user, va_arg(args, const char *));
            } else if (conversion == 'u') {
                pwsp_json_number(to,
                                 longs == 0   ? va_arg(args, unsigned)
                                 : longs == 1 ? va_arg(args, unsigned long)
                                              : va_arg(args, unsigned long long),
                                 false);
            } else {
                const long long value = longs == 0   ? va_arg(args, int)
                                        : longs == 1 ? va_arg(args, long)
                                                     : va_arg(args, long long);
                const unsigned long long size = (unsigned long long)value;
                pwsp_json_number(to, value < 0 ? 0 - size : size, value < 0);
            }
        }
    }
}

#endif
