#ifndef BARE_STDIO_H
#define BARE_STDIO_H
#include <stdarg.h>
#include <stddef.h>
typedef struct bare_file FILE;
size_t fwrite(const void *from, size_t size, size_t count, FILE *to);
int snprintf(char *to, size_t size, const char *format, ...);
int vsnprintf(char *to, size_t size, const char *format, va_list args);
#endif
