// Shapes, types, products and stores (kernel_shape_test.c) as emitted C++ against the library.

#define _POSIX_C_SOURCE 200809L

#define KEEP_EVERY 17
#define KEEP_MAX   60
#include "npu_scenes.h"

#include "kernel/kernel_shape_test.c"

#include "npu_scenes_main.h"
