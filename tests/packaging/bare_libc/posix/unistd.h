#ifndef BARE_UNISTD_H
#define BARE_UNISTD_H
#include <stddef.h>
typedef int pid_t;
typedef long ssize_t;
#define _SC_NPROCESSORS_ONLN 58
pid_t getpid(void);
int close(int file);
ssize_t read(int file, void *to, size_t size);
long sysconf(int name);
#endif
