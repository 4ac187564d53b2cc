// The scenes of another test of kernels, as emitted C++ against the library. That test is included. Of
// the kernels that it makes, one in KEEP_EVERY and KEEP_MAX at most for each machine, or a share of these
// (test_share), are run, kept and compared (npu_kernel_compare.h).
//
//      #define KEEP_EVERY 7
//      #define KEEP_MAX   60
//      #include "npu_scenes.h"
//      #include "kernel/kernel_ops_test.c"
//      #include "npu_scenes_main.h"

#ifndef NPU_SCENES_H
#define NPU_SCENES_H

#include <stdbool.h>

struct kt;
static bool scenes_want(const struct kt *t);
static bool scenes_keep(const struct kt *t);
#define KT_RUNS(t)  scenes_want(t)
#define KT_KEEPS(t) scenes_keep(t)

#endif
