// Headers that emitted trees include, precompiled by make: most of what a tree takes to compile without
// optimisation is reading these. They are included before a tree's own files (-include), in which they
// then add nothing. Kernels are for one machine: headers_a5.h, which make writes, is this for A5.
// What the runtime alone includes is left out: with strings, mutexes and functions in the headers, the
// compiler instantiates templates of theirs in every file, which takes as long as all else.
//
// The functions of the shim are compiled once, from this file with NPU_HEADERS_BODIES, and linked to
// trees (libshim.a); elsewhere they are only declared.

#ifndef PTOWSP_NPU_HEADERS_H
#define PTOWSP_NPU_HEADERS_H

#ifdef NPU_HEADERS_BODIES
#define PTOISA_INLINE __attribute__((unused))
#else
#define PTOISA_INLINE extern inline __attribute__((gnu_inline, unused))
#define PTOWSP_NO_SIMD  // of the shim's functions, whose bodies are elsewhere
#endif
#define PTOISA_FN PTOISA_INLINE

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>

#include "wsp_kernel.h"

#include "wsp_abi.h"
#include "wsp_list.h"
#include "wsp_native.h"

#undef PTOWSP_NO_SIMD

#endif
