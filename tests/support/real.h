// A test that stands before functions of the C library, to refuse or count calls, gets at the library's
// own here. The includer defines _GNU_SOURCE before anything else.

#ifndef REAL_H
#define REAL_H

#include <dlfcn.h>
#include <string.h>
#include <sys/types.h>

// Where files have 64-bit offsets on a 32-bit machine, names such as fstat mean fstat64 in the library; its
// plain fstat fills another struct.
static inline void *real_at(const char *name, const char *name_of_64_bits) {
    void *found = sizeof(off_t) > sizeof(long) ? dlsym(RTLD_NEXT, name_of_64_bits) : NULL;
    return found ? found : dlsym(RTLD_NEXT, name);
}

// The C library's function of this name, as `real`.
#define REAL(name)                                                                                 \
    __typeof__(&name) real;                                                                        \
    void *found = real_at(#name, #name "64");                                                      \
    memcpy(&real, &found, sizeof real)

#endif
