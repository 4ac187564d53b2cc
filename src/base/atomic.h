// Atomic operations over the compiler's builtins, named by their memory order. <stdatomic.h> does
// not compile as C++17. Operands are 32- and 64-bit integers and pointers.

#ifndef PWSP_ATOMIC_H
#define PWSP_ATOMIC_H

#define pwsp_load_relaxed(ptr)         __atomic_load_n(ptr, __ATOMIC_RELAXED)
#define pwsp_load_acquire(ptr)         __atomic_load_n(ptr, __ATOMIC_ACQUIRE)
#define pwsp_load_seq_cst(ptr)         __atomic_load_n(ptr, __ATOMIC_SEQ_CST)
#define pwsp_store_relaxed(ptr, value) __atomic_store_n(ptr, value, __ATOMIC_RELAXED)
#define pwsp_store_release(ptr, value) __atomic_store_n(ptr, value, __ATOMIC_RELEASE)
#define pwsp_store_seq_cst(ptr, value) __atomic_store_n(ptr, value, __ATOMIC_SEQ_CST)

// These return the value from before.
#define pwsp_exchange_acquire(ptr, value)  __atomic_exchange_n(ptr, value, __ATOMIC_ACQUIRE)
#define pwsp_exchange_acq_rel(ptr, value)  __atomic_exchange_n(ptr, value, __ATOMIC_ACQ_REL)
#define pwsp_fetch_add_acq_rel(ptr, value) __atomic_fetch_add(ptr, value, __ATOMIC_ACQ_REL)
#define pwsp_fetch_sub_acq_rel(ptr, value) __atomic_fetch_sub(ptr, value, __ATOMIC_ACQ_REL)
#define pwsp_fetch_add_seq_cst(ptr, value) __atomic_fetch_add(ptr, value, __ATOMIC_SEQ_CST)
#define pwsp_fetch_sub_seq_cst(ptr, value) __atomic_fetch_sub(ptr, value, __ATOMIC_SEQ_CST)
#define pwsp_fetch_and_seq_cst(ptr, value) __atomic_fetch_and(ptr, value, __ATOMIC_SEQ_CST)
#define pwsp_fetch_or_seq_cst(ptr, value)  __atomic_fetch_or(ptr, value, __ATOMIC_SEQ_CST)

// Stores desired if *ptr is *expected and says so; else loads *ptr into *expected. May fail for no
// reason: call it in a loop.
#define pwsp_cas_acquire(ptr, expected, desired)                                                   \
    __atomic_compare_exchange_n(ptr, expected, desired, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
#define pwsp_cas_seq_cst(ptr, expected, desired)                                                   \
    __atomic_compare_exchange_n(ptr, expected, desired, true, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)
#define pwsp_cas_acq_rel(ptr, expected, desired)                                                   \
    __atomic_compare_exchange_n(ptr, expected, desired, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define pwsp_cas_relaxed(ptr, expected, desired)                                                   \
    __atomic_compare_exchange_n(ptr, expected, desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)

// Tells the processor that this is a loop that waits.
#if defined(__x86_64__) || defined(__i386__)
#define pwsp_pause() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define pwsp_pause() __asm__ __volatile__("isb" ::: "memory")
#else
#define pwsp_pause() ((void)0)
#endif

// Fetches a line that is about to be changed, from whatever processor has it. (gcc has the builtin fetch
// it for reading, which leaves the other's copy to be taken away later.)
#if defined(__x86_64__)
#define pwsp_fetch_line(ptr) __asm__ __volatile__("prefetchw %0" ::"m"(*(ptr)))
#else
#define pwsp_fetch_line(ptr) __builtin_prefetch(ptr, 1)
#endif

// What threads write often sits this far apart: two 64-byte lines, as neighbours are fetched in
// pairs.
#define PWSP_FALSE_SHARING 128

#endif
