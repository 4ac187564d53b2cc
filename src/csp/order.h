// How processes of a program move: one op at a time, or in the order of time, or in any.

#ifndef PWSP_ORDER_H
#define PWSP_ORDER_H

#include "pipeline.h"

typedef enum pwsp_resumed {
    PWSP_RESUMED_FAILED,
    PWSP_RESUMED_LATER,  // it is ready
    PWSP_RESUMED_STAYS   // it waits or has ended
} pwsp_resumed;

// A process, which the expander is in, does its next op that is not pure control. *next is its
// place, and then the place where it continues.
PWSP_INTERNAL pwsp_resumed pwsp_pipelines_step(pwsp_pipelines *pipelines, pwsp_process *process,
                                               uint32_t *next);

// Runs the processes of the pipeline until none can move: in the order of time, or in any order,
// which takes one producer and one consumer for each channel, and no kernels that see data. False
// with an error in the expander.
PWSP_INTERNAL bool pwsp_pipelines_walk(pwsp_pipelines *pipelines);

// Prepares all ops for this, once. False when memory is out.
PWSP_INTERNAL bool pwsp_pipelines_prepare(pwsp_pipelines *pipelines);

#endif
