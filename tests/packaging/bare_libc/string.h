#ifndef BARE_STRING_H
#define BARE_STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
void *memchr(const void *in, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t size);
char *strchr(const char *in, int c);
char *strrchr(const char *in, int c);
char *strpbrk(const char *in, const char *set);
char *strstr(const char *in, const char *what);
size_t strlen(const char *of);
#endif
