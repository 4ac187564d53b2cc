// The clock of emitted trees takes the time that the cases say: the test of the cases, with each
// execution on one thread repeated beside the clock.

#include "test.h"

#include "npu_clock_mirror.h"

#include "cases/cases_test.c"
