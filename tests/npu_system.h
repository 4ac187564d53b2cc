// System headers of emitted trees, precompiled by make: most of what a tree takes to compile without
// optimisation is reading these. They are included before a tree's own files (-include), in which
// they then add nothing.

#ifndef PTOWSP_NPU_SYSTEM_H
#define PTOWSP_NPU_SYSTEM_H

#include <algorithm>
#include <cinttypes>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#endif
