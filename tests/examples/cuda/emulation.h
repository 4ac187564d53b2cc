// CUDA blocks on one CPU thread: enough of the language for examples/cuda/decode_kernel.h. Each CUDA
// thread is a fiber. It runs until it meets others, in __syncthreads or a shuffle, and goes on when all of
// its block or warp have come. Blocks run one after another, in an order that the test chooses; the
// __shared__ memory of a kernel is one static object, which a block finds full of NaN.

#ifndef CUDA_EMULATION_H
#define CUDA_EMULATION_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)

struct uint4 {
    uint32_t x, y, z, w;
};
struct float2 {
    float x, y;
};
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
    return {x, y, z, w};
}
inline float2 make_float2(float x, float y) {
    return {x, y};
}

namespace emulation {

struct index {
    uint32_t x;
};

// Threads that meet: the generation they are in, and how many have come to it.
struct meeting {
    uint32_t generation = 0, arrived = 0;
    uint32_t values[2][32];
};

struct fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool is_done = false;
};

inline std::vector<fiber> fibers;
inline ucontext_t scheduler;
inline std::vector<meeting> warps;
inline meeting block;
inline std::function<void()> body;
inline index thread_index, block_index, grid_size;
inline uint32_t meetings;

inline void yield() {
    const uint32_t me = thread_index.x;
    swapcontext(&fibers[me].context, &scheduler);
}

inline uint32_t meet(meeting *at, uint32_t size) {
    const uint32_t generation = at->generation;
    meetings++;
    if (++at->arrived == size) {
        at->arrived = 0;
        at->generation++;
    }
    while (at->generation == generation) {
        yield();
    }
    return generation;
}

inline uint32_t shuffle(uint32_t value, uint32_t source) {
    meeting *warp = &warps[thread_index.x / 32];
    // Nobody is two generations on before all have read this one.
    uint32_t *values = warp->values[warp->generation % 2];
    values[thread_index.x % 32] = value;
    meet(warp, 32);
    return values[source % 32];
}

inline float shuffle(float value, uint32_t source) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits = shuffle(bits, source);
    std::memcpy(&value, &bits, 4);
    return value;
}

inline void enter() {
    body();
    fibers[thread_index.x].is_done = true;
    yield();
}

// Runs one block of a kernel. False: threads wait for one another forever.
inline bool run_block(uint32_t block_number, uint32_t blocks, uint32_t threads,
                      std::function<void()> kernel) {
    constexpr size_t stack_bytes = 256 * 1024;
    body = std::move(kernel);
    block_index.x = block_number;
    grid_size.x = blocks;
    fibers.resize(threads);
    warps.assign(threads / 32, meeting());
    block = meeting();
    for (fiber &f : fibers) {
        f.stack.resize(stack_bytes);
        f.is_done = false;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data();
        f.context.uc_stack.ss_size = stack_bytes;
        f.context.uc_link = nullptr;
        makecontext(&f.context, enter, 0);
    }
    for (uint32_t left = threads; left > 0;) {
        const uint32_t before = meetings, left_before = left;
        for (uint32_t i = 0; i < threads; i++) {
            if (!fibers[i].is_done) {
                thread_index.x = i;
                swapcontext(&scheduler, &fibers[i].context);
                left -= fibers[i].is_done;
            }
        }
        if (meetings == before && left == left_before) {
            return false;
        }
    }
    return true;
}

}  // namespace emulation

#define threadIdx emulation::thread_index
#define blockIdx  emulation::block_index
#define gridDim   emulation::grid_size

inline void __syncthreads() {
    emulation::meet(&emulation::block, uint32_t(emulation::fibers.size()));
}
inline void __threadfence() {
}
inline float __shfl_xor_sync(uint32_t, float value, int mask) {
    return emulation::shuffle(value, threadIdx.x ^ uint32_t(mask));
}
inline float __shfl_sync(uint32_t, float value, int source) {
    return emulation::shuffle(value, uint32_t(source));
}
inline uint32_t atomicAdd(uint32_t *at, uint32_t value) {
    const uint32_t old = *at;
    *at += value;
    return old;
}
inline uint32_t atomicInc(uint32_t *at, uint32_t limit) {
    const uint32_t old = *at;
    *at = old >= limit ? 0 : old + 1;
    return old;
}
template <class T> T __ldcg(const T *from) {
    return *from;
}
inline float __uint_as_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

// What decode.cu defines for the kernel.
inline float half_to_float(uint32_t half) {
    const uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u,
                   fraction = half & 0x3ffu;
    const float size = exponent ? std::ldexp(float(fraction + 1024u), int(exponent) - 25)
                                : std::ldexp(float(fraction), -24);
    return sign ? -size : size;
}
inline float2 decode_pair_f16(uint32_t bits) {
    return make_float2(half_to_float(bits & 0xffffu), half_to_float(bits >> 16));
}
inline unsigned long long decode_global_ns() {
    return 1;
}
inline unsigned long long decode_cycles() {
    return emulation::meetings;
}

#endif
