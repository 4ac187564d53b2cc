// Formatted text into a sink, for everything that prints and for error texts. Formats are printf's,
// without %f, %e, %g and %a, which depend on the locale: number.h has pwsp_fixed and pwsp_general.

#ifndef PWSP_TEXT_H
#define PWSP_TEXT_H

#include "base.h"
#include "number.h"

#include <stdarg.h>

#define PWSP_ERROR_TEXT_MAX 512

// Limits of places and variables in error texts, so that the error itself fits after them.
#define PWSP_PLACE_TEXT_MAX     160
#define PWSP_VARIABLES_TEXT_MAX 120

// One piece of text is formatted at a time; longer pieces are cut off here.
#define PWSP_TEXT_PIECE_MAX 512

// Requires that the sink has a function.
PWSP_INTERNAL void pwsp_text_write(ptowsp_output text, const char *piece, size_t length);
PWSP_INTERNAL void pwsp_text_put(ptowsp_output text, const char *string);
PWSP_INTERNAL void pwsp_text_format(ptowsp_output text, const char *format, ...) PWSP_PRINTF(2, 3);
PWSP_INTERNAL void pwsp_text_vformat(ptowsp_output text, const char *format, va_list args)
    PWSP_PRINTF(2, 0);

// Formats into room of so many bytes, truncated to it and terminated.
PWSP_INTERNAL void pwsp_text_into(char *room, size_t size, const char *format, ...)
    PWSP_PRINTF(3, 4);

// Extends *hash by the written text; see ptowsp_hash.
PWSP_INTERNAL ptowsp_output pwsp_text_to_hash(uint64_t *hash);

// In a function with `format, ...`: formats them into an array of char, truncated to its size.
#define PWSP_TEXT_FORMAT_INTO(array, format)                                                       \
    do {                                                                                           \
        ptowsp_output_buffer buffer_ = {(array), sizeof(array), 0};                                \
        va_list args_;                                                                             \
        va_start(args_, format);                                                                   \
        pwsp_text_vformat(ptowsp_output_to_buffer(&buffer_), format, args_);                       \
        va_end(args_);                                                                             \
    } while (0)

#endif
