// Which vector code this build has and this machine can run.
//
// Hot loops exist as portable C and as variants for x86-64 (AVX2, AVX-512), compiled by function
// attribute so that a plain -O2 build has them all, and for arm64, where NEON is always there. The
// choice is made at each call from the compiler's own table of the processor's features: a load and
// a test, and no state of ours. PTOWSP_NO_SIMD leaves the portable code only.
//
// As in src/base/cpu.h, which these files cannot include: the shim is complete in itself.

#ifndef PTOISA_SIMD_H
#define PTOISA_SIMD_H

#include "isa.h"

#if !defined(PTOWSP_NO_SIMD) && defined(__x86_64__)
#define PTOISA_X86 1
#include <immintrin.h>
#define PTOISA_AVX2   __attribute__((target("avx2,fma,f16c")))
#define PTOISA_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))

// Many AVX-512 operations are written in their masked forms with these full masks, which costs
// nothing: gcc 12 warns of uninitialised values inside the plain ones when it compiles C++.
#define PTOISA_ALL_8  ((__mmask8)0xff)
#define PTOISA_ALL_16 ((__mmask16)0xffff)
#else
#define PTOISA_X86 0
#endif

#if !defined(PTOWSP_NO_SIMD) && defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PTOISA_NEON 1
#include <arm_neon.h>
#else
#define PTOISA_NEON 0
#endif

#if PTOISA_X86
// Half-precision conversions (F16C) are not asked for: clang 14 cannot, and every processor that
// has AVX2 and FMA has them.
PTOISA_INLINE bool ptoisa_has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

PTOISA_INLINE bool ptoisa_has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           ptoisa_has_avx2();
}

// Besides AVX-512: products of bytes, four at a time.
PTOISA_INLINE bool ptoisa_has_vnni(void) {
    return __builtin_cpu_supports("avx512vnni");
}

// Besides both: products of bf16, two at a time. gcc 9 does not know the name, nor all of its
// assemblers the instruction.
#if defined(__clang__) || __GNUC__ >= 10
#define PTOISA_KNOWS_BF16 1
#else
#define PTOISA_KNOWS_BF16 0
#endif

PTOISA_INLINE bool ptoisa_has_bf16(void) {
#if PTOISA_KNOWS_BF16
    return __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}
#else
PTOISA_INLINE bool ptoisa_has_avx2(void) {
    return false;
}

PTOISA_INLINE bool ptoisa_has_avx512(void) {
    return false;
}
#endif

#endif
