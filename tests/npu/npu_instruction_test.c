// Instructions as they are (kernel_instruction_test.c) as emitted C++ against the library.

#define _POSIX_C_SOURCE 200809L

#define KEEP_EVERY 5
#define KEEP_MAX   80
#include "npu_scenes.h"

#include "kernel/kernel_instruction_test.c"

#include "npu_scenes_main.h"
