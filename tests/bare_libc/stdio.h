#ifndef BARE_STDIO_H
#define BARE_STDIO_H
#include <stdarg.h>
#include <stddef.h>
int snprintf(char *to, size_t size, const char *format, ...);
int vsnprintf(char *to, size_t size, const char *format, va_list args);
#endif
