// Operations (kernel_ops_test.c) as emitted C++ against the library.

#define _POSIX_C_SOURCE 200809L

#define KEEP_EVERY 61
#define KEEP_MAX   50
#include "npu_scenes.h"

#include "kernel/kernel_ops_test.c"

#include "npu_scenes_main.h"
