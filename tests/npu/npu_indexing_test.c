// Comparisons, sorts, gathers and quantising (kernel_indexing_test.c) as emitted C++ against the library.

#define _POSIX_C_SOURCE 200809L

#define KEEP_EVERY 13
#define KEEP_MAX   50
#include "npu_scenes.h"

#include "kernel/kernel_indexing_test.c"

#include "npu_scenes_main.h"
