// What the examples need to be programs: options, an error line, memory, and errors of the library.

#ifndef COMMAND_H
#define COMMAND_H

#include "ptowsp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An option that takes a number, "--name 12". Whole numbers have `whole`, others `real`.
typedef struct command_option {
    const char *flag;
    uint64_t *whole;
    double *real;
    uint64_t low, high;
} command_option;

// One that takes a text, "--name text".
typedef struct command_text {
    const char *flag;
    const char **text;
} command_text;

// One that is there or not, "--name".
typedef struct command_flag {
    const char *flag;
    bool *is_set;
} command_flag;

// All options of a program.
typedef struct command_options {
    const command_option *numbers;
    size_t number_count;
    const command_text *texts;
    size_t text_count;
    const command_flag *flags;
    size_t flag_count;
} command_options;

// Says what error lines begin with. Only programs that read their options themselves call it.
void command_begin(int argc, char **argv);

// Reads options; --help writes the text and exits with 0. Anything wrong exits with 2.
void command_parse_all(int argc, char **argv, const char *help, const command_options *options);
void command_parse(int argc, char **argv, const char *help, const command_option *options,
                   size_t option_count);
void command_parse_texts(int argc, char **argv, const char *help, const command_option *options,
                         size_t option_count, const command_text *texts, size_t text_count);

// Writes a line to stderr, beginning with the name of the program, and exits with 2.
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2), noreturn))
#endif
void command_fail(const char *format, ...);

// Zeroed memory for count elements, or exits with 2.
void *command_allocate(uint64_t count, size_t size);

// Exits with 2 and the context's error unless the status is OK.
void command_check(const ptowsp_context *context, ptowsp_status status);

// Exits with 2 when what was printed could not be written, as on a full disk.
void command_flush(void);

#endif
