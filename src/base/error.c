// Formats an error's line of text, and cuts it off at PWSP_ERROR_TEXT_MAX.

#include "error.h"

PWSP_INTERNAL ptowsp_status pwsp_error_set(pwsp_error *error, ptowsp_status status, uint64_t index,
                                           const char *format, ...) {
    ptowsp_text_buffer buffer = {error->text, sizeof error->text, 0};
    va_list args;
    va_start(args, format);
    pwsp_text_vformat(ptowsp_text_to_buffer(&buffer), format, args);
    va_end(args);
    error->status = status;
    error->index = index;
    return status;
}
