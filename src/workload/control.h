// The values that decide the sends and receives of pipelines.

#ifndef PWSP_CONTROL_H
#define PWSP_CONTROL_H

#include "program.h"

// All zero: nothing yet.
typedef struct pwsp_control {
    const ptowsp_program *program;
    pwsp_memory memory;
    size_t size;
    uint8_t *ops;       // by op: 1 if it can be left out, for pwsp_expander.unknown
    uint8_t *cells;     // by cell: decides
    uint8_t *channels;  // by channel: its tokens decide
    uint32_t *next;     // by op, and one more: the next op that matters to channels
    bool has_changed;
} pwsp_control;

// False when memory is out; pwsp_control_free may be called in any case.
PWSP_INTERNAL bool pwsp_control_find(pwsp_control *control, const pwsp_memory *memory,
                                     const ptowsp_program *program);
PWSP_INTERNAL void pwsp_control_free(pwsp_control *control);

#endif
