#ifndef BARE_STDLIB_H
#define BARE_STDLIB_H
#include <stddef.h>
void *malloc(size_t size);
void *realloc(void *memory, size_t size);
void free(void *memory);
unsigned long long strtoull(const char *from, char **end, int base);
#endif
