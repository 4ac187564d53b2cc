// What the programs share that show the functions of a section of the manual: manual_*.c.

#ifndef MANUAL_H
#define MANUAL_H

#include "ptowsp.h"

#include <stdbool.h>
#include <stdio.h>

static int manual_wrong;

// Says so if a result is wrong; manual_end then returns 1.
static inline void manual_check(bool is_right, const char *what) {
    if (!is_right) {
        printf("WRONG: %s\n", what);
        manual_wrong = 1;
    }
}

static inline ptowsp_output manual_output(void) {
    return ptowsp_output_to_file(stdout);
}

static inline int manual_end(void) {
    puts(manual_wrong ? "results are WRONG" : "all results are right");
    return manual_wrong;
}

#endif
