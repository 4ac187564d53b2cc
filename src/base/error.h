// An error on its way to its caller: status, index, and one line of text.

#ifndef PWSP_ERROR_H
#define PWSP_ERROR_H

#include "text.h"

typedef struct pwsp_error {
    ptowsp_status status;
    uint64_t index;  // of the offending element, or PTOWSP_NO_INDEX
    char text[PWSP_ERROR_TEXT_MAX];
} pwsp_error;

// Fills in an error with a printf text, and returns its status.
PWSP_INTERNAL ptowsp_status pwsp_error_set(pwsp_error *error, ptowsp_status status, uint64_t index,
                                           const char *format, ...) PWSP_PRINTF(4, 5);

// The commonest error: a user's mistake that concerns no index.
#define PWSP_ERROR_REFUSE(error, ...)                                                              \
    pwsp_error_set(error, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, __VA_ARGS__)

#endif
