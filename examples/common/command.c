// Numbers are read strictly: the whole text is digits, and in range.

#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *command_name = "example";  // of the program, for error lines

void command_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", command_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

void command_flush(void) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        command_fail("cannot write the output");
    }
}

static void command_read_number(const command_option *option, const char *text) {
    char *end = NULL;
    errno = 0;
    bool starts = text && text[0] >= '0' && text[0] <= '9';
    if (option->whole) {
        unsigned long long value = starts ? strtoull(text, &end, 10) : 0;
        if (starts && !*end && !errno && option->low <= value && value <= option->high) {
            *option->whole = value;
            return;
        }
    } else {
        double value = starts ? strtod(text, &end) : 0.0;
        if (starts && !*end && !errno && value >= (double)option->low &&
            value <= (double)option->high) {
            *option->real = value;
            return;
        }
    }
    command_fail("%s takes a %snumber from %llu to %llu, not '%s'", option->flag,
                 option->whole ? "whole " : "", (unsigned long long)option->low,
                 (unsigned long long)option->high, text ? text : "");
}

static bool command_read_text(const command_text *texts, size_t text_count, const char *flag,
                              const char *text) {
    for (size_t i = 0; i < text_count; i++) {
        if (strcmp(flag, texts[i].flag) == 0) {
            if (!text || !text[0]) {
                command_fail("%s takes a text", flag);
            }
            *texts[i].text = text;
            return true;
        }
    }
    return false;
}

static bool command_read_flag(const command_options *options, const char *flag) {
    for (size_t i = 0; i < options->flag_count; i++) {
        if (strcmp(flag, options->flags[i].flag) == 0) {
            *options->flags[i].is_set = true;
            return true;
        }
    }
    return false;
}

void command_begin(int argc, char **argv) {
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    command_name = slash ? slash + 1 : argc > 0 ? argv[0] : command_name;
}

void command_parse_all(int argc, char **argv, const char *help, const command_options *options) {
    command_begin(argc, argv);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            command_flush();
            exit(0);
        }
        if (command_read_flag(options, argv[i])) {
            continue;
        }
        const char *flag = argv[i], *value = i + 1 < argc ? argv[++i] : NULL;
        if (command_read_text(options->texts, options->text_count, flag, value)) {
            continue;
        }
        size_t k = 0;
        while (k < options->number_count && strcmp(flag, options->numbers[k].flag) != 0) {
            k++;
        }
        if (k == options->number_count) {
            command_fail("unknown option '%s'; see --help", flag);
        }
        command_read_number(&options->numbers[k], value);
    }
}

void command_parse_texts(int argc, char **argv, const char *help, const command_option *options,
                         size_t option_count, const command_text *texts, size_t text_count) {
    command_options all = {options, option_count, texts, text_count, NULL, 0};
    command_parse_all(argc, argv, help, &all);
}

void command_parse(int argc, char **argv, const char *help, const command_option *options,
                   size_t option_count) {
    command_parse_texts(argc, argv, help, options, option_count, NULL, 0);
}

void *command_allocate(uint64_t count, size_t size) {
    void *memory = count <= SIZE_MAX / size ? calloc(count ? (size_t)count : 1, size) : NULL;
    if (!memory) {
        command_fail("out of memory for %llu x %zu bytes", (unsigned long long)count, size);
    }
    return memory;
}

void command_check(const ptowsp_context *context, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        command_fail("%s",
                     context ? ptowsp_context_error(context).text : ptowsp_status_text(status));
    }
}
