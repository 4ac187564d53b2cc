// A compiled expression, as its users refer to it: a range of code.

#ifndef PWSP_CODE_RANGE_H
#define PWSP_CODE_RANGE_H

#include "../base/base.h"

// A compiled expression: run instructions [begin, end), then its value is in the cell. For a leaf
// there is nothing to run.
typedef struct pwsp_code {
    uint32_t begin, end, cell;
    uint32_t expr;  // what it was made of, as the owner of the code keeps it; 0: none
} pwsp_code;

#endif
