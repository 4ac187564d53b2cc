// Which vector code this build has and this machine can run.
//
// Hot loops exist as portable C and as variants for x86-64 (AVX2, AVX-512), compiled by function
// attribute so that a plain -O2 build has them all, and for arm64, where NEON is always there. Each
// call chooses by the compiler's own table of processor features: a load and a test. No state is
// kept. PTOWSP_NO_SIMD leaves the portable code only, and so do targets of MSVC, where clang's headers
// declare the instructions of the whole file, not of a function.

#ifndef PWSP_CPU_H
#define PWSP_CPU_H

#include "base.h"

#if !defined(PTOWSP_NO_SIMD) && defined(__x86_64__) && !defined(_MSC_VER)
#define PWSP_X86 1
#include <immintrin.h>
#define PWSP_AVX2   __attribute__((target("avx2,fma")))
#define PWSP_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))

// Many AVX-512 operations are written in their masked forms with this full mask, which costs
// nothing: gcc 12 warns of uninitialised values inside the plain ones when it compiles C++.
#define PWSP_ALL_8 ((__mmask8)0xff)
#else
#define PWSP_X86 0
#endif

#if !defined(PTOWSP_NO_SIMD) && defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PWSP_NEON 1
#include <arm_neon.h>
#else
#define PWSP_NEON 0
#endif

#if PWSP_X86
PWSP_INLINE bool pwsp_cpu_has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

PWSP_INLINE bool pwsp_cpu_has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           pwsp_cpu_has_avx2();
}
#endif

#endif
