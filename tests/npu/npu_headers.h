// Headers that all emitted trees include, precompiled by make: most of what a tree takes to compile
// without optimisation is reading these. They are included before a tree's own files (-include), in
// which they then add nothing. Those of kernels are not here, as they differ from machine to machine.

#ifndef PTOWSP_NPU_HEADERS_H
#define PTOWSP_NPU_HEADERS_H

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

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "wsp_abi.h"
#include "wsp_list.h"
#include "wsp_native.h"
#include "wsp_runner.h"

#endif
