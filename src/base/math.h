// Elementary functions in plain arithmetic, without libm.

#ifndef PWSP_MATH_H
#define PWSP_MATH_H

#include "base.h"

// e^x, within one unit in the last place of float; 0 below about -104, infinity above about 88.7;
// NaN for NaN.
PWSP_INTERNAL float pwsp_exp(float x);

// The same of each number, in place.
PWSP_INTERNAL void pwsp_exp_each(float *x, uint32_t count);

// Natural logarithm, within one unit in the last place of float; -infinity for 0, NaN below 0.
PWSP_INTERNAL float pwsp_log(float x);

PWSP_INLINE float pwsp_infinity(void) {
    const uint32_t bits = 0x7f800000;
    float infinity;
    memcpy(&infinity, &bits, sizeof infinity);
    return infinity;
}

#endif
