// The clock of emitted trees takes the time that PTO-WSP v9's simulator took: the test of its cases,
// with each execution repeated beside the clock.

#include "test.h"

#include "npu_clock_mirror.h"

#include "oracle_test.c"
