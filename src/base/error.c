// Formats an error's line of text, and cuts it off at PWSP_ERROR_TEXT_MAX.

#include "error.h"

PWSP_INTERNAL ptowsp_status pwsp_error_set(pwsp_error *error, ptowsp_status status, uint64_t index,
                                           const char *format, ...) {
    PWSP_TEXT_FORMAT_INTO(error->text, format);
    error->status = status;
    error->index = index;
    return status;
}
