// The parts of a program that exist for read access (appendix A of the header), made while
// compiling.

#ifndef PWSP_READ_H
#define PWSP_READ_H

#include "compile.h"

// Makes room; false with the module's error, as all of these.
PWSP_INTERNAL bool pwsp_read_begin(pwsp_compiler *c);

// Keeps an expression of the module, whose code has been compiled, with what only a key can refer
// to as it is for the task whose keys are being compiled.
PWSP_INTERNAL bool pwsp_read_expr(pwsp_compiler *c, uint32_t expr, uint32_t *out_expr);

#endif
