// The processors that this process may use, and small files in which the system describes itself.

#ifndef PWSP_PROCESSORS_H
#define PWSP_PROCESSORS_H

#include "base.h"

// Reads the beginning of a file, whose path is formatted, as a string; empty if it fails. Returns 0
// or an errno value.
PWSP_INTERNAL int pwsp_system_read(char *text, size_t size, const char *format, ...)
    PWSP_PRINTF(3, 4);

// Whole processors in the smallest quota of the cgroups of this process, at least 1; UINT64_MAX
// without a quota. `root` precedes all paths: "" but in tests.
PWSP_INTERNAL uint64_t pwsp_quota_count(const char *root);

#endif
