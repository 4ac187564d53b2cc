// The device side of decode attention by a plan: CUDA C++ without host code.
//
// A grid has a block of 128 threads for each lane. A block reads its list of units from the plan's arrays
// in device memory, computes them in order, and writes whole rows or partial states (section 8 of the
// manual). The part of a tile that arrives last merges the tile: blocks count the KV tokens of a sequence
// and head that are done, so no block waits for another and no barrier spans the grid.
//
// A unit. Each of the four warps takes 8 tokens at a time, 32 tokens of the block further on. The two
// halves of a warp have alternate tokens; a thread has 8 of the 128 dimensions of a row, one load of 16
// bytes. So a half-warp reads rows of 256 adjacent bytes.
//
//      scores    each thread multiplies 8 dimensions by the same ones of all query heads; sums over 16 threads
//                are folded so that afterwards each thread has the scores of one head alone
//      softmax   online, in base 2, once for 8 tokens; weights go back to all threads by shuffles
//      values    each thread adds up its 8 dimensions for all heads in f32
//
// At the end the states of two halves and four warps merge through shared memory.
//
// Requires dim 128; kv_start of units that is a multiple of 8, so that the 8 tokens of a warp are of one
// page; pages of a power of two of at least 8 tokens.

#ifndef DECODE_KERNEL_H
#define DECODE_KERNEL_H

#include "ptowsp.h"

#include <cstdint>

enum {
    DECODE_DIM = 128,
    DECODE_THREADS = 128,
    DECODE_WARPS = DECODE_THREADS / 32,
    DECODE_PAIRS = 4,  // of tokens that a warp takes at a time
    DECODE_WARP_TOKENS = 2 * DECODE_PAIRS,
    DECODE_STEP = DECODE_WARPS * DECODE_WARP_TOKENS
};

// When a block ran: by the clock of all SMs, which is coarse, and by its own, which is exact.
struct decode_clock {
    unsigned long long begin_ns, begin_cycles, end_cycles;
};

// A step, as the kernel takes it. All pointers are to device memory.
struct decode_step {
    const ptowsp_work *units, *merges;
    const uint32_t *unit_begin;  // [lane_count + 1]
    const uint32_t
        *counts;     // units, merges: they change from plan to plan, a captured launch does not
    uint32_t *next;  // NULL: lanes have lists. Otherwise blocks draw units; 0 between launches
    uint32_t *tokens_done;   // [sequence][head], 0 between launches
    const int32_t *lengths;  // [sequence] KV tokens
    const int32_t *pages,
        *page_starts;         // page t / page_size of sequence i is pages[page_starts[i] + ...]
    const uint16_t *queries;  // [sequence][head][group][dim]
    const uint16_t *keys, *values;    // [page][token][head][dim]
    float *out;                       // [sequence][head][group][dim]
    float *lse;                       // [sequence][head][group]; NULL: not written
    ptowsp_partial *states;           // [slot][group]
    float *accs;                      // [slot][group][dim]
    decode_clock *clocks;             // [block]; NULL: not written
    uint32_t head_count, page_shift;  // pages of 1 << page_shift tokens
    float scale;                      // of scores
};

// -- numbers --------------------------------------------------------------------------------------

struct decode_f16 {
    static __device__ float2 pair(uint32_t bits) {
        return decode_pair_f16(bits);
    }
};
struct decode_bf16 {
    static __device__ float2 pair(uint32_t bits) {
        return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
    }
};

template <class Type> __device__ void decode_widen(const uint4 &bits, float *out) {
    const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 pair = Type::pair(words[i]);
        out[2 * i] = pair.x;
        out[2 * i + 1] = pair.y;
    }
}

// -- a warp's tokens ------------------------------------------------------------------------------

constexpr uint32_t decode_all = 0xffffffffu;
constexpr float decode_log2e = 1.44269504088896341f, decode_ln2 = 0.693147180559945309f;

// A thread's place: dimensions 8 * column to 8 * column + 7, of tokens that are half modulo 2. After a
// fold its scores are of query head `head`.
template <int Group> struct decode_place {
    uint32_t warp, half, column, head;
    __device__ decode_place() {
        const uint32_t lane = threadIdx.x % 32;
        warp = threadIdx.x / 32;
        half = lane / 16;
        column = lane % 16;
        head = column / (16 / Group);
    }
    // The thread of this half-warp that has the scores of a head.
    __device__ uint32_t owner(int of_head) const {
        return half * 16 + uint32_t(of_head) * (16 / Group);
    }
};

// Sums of `part` over the 16 threads of a half-warp: this thread gets the sum of its head. In each of the
// first steps a thread sends half of its heads and keeps the other half.
template <int Group> __device__ float decode_fold(float (&part)[Group], uint32_t column) {
    uint32_t distance = 8;
#pragma unroll
    for (int kept = Group / 2; kept >= 1; kept /= 2, distance /= 2) {
        const bool is_upper = (column & distance) != 0;
#pragma unroll
        for (int i = 0; i < kept; i++) {
            const float sent = is_upper ? part[i] : part[i + kept];
            const float mine = is_upper ? part[i + kept] : part[i];
            part[i] = mine + __shfl_xor_sync(decode_all, sent, int(distance));
        }
    }
    float sum = part[0];
    for (; distance >= 1; distance /= 2) {
        sum += __shfl_xor_sync(decode_all, sum, int(distance));
    }
    return sum;
}

// A thread's state of its tokens: the largest score and the sum of weights of its head, and its
// dimensions of the weighted values of all heads. Scores are in units of ln 2.
template <int Group> struct decode_state {
    float m, l;
    float acc[Group][8];
};

// Rows of up to 8 tokens of keys or values that a thread has loaded.
struct decode_rows {
    uint4 pair[DECODE_PAIRS];
};

// Where a row of a token begins: the warp's tokens are of one page.
__device__ inline uint64_t decode_offset(const decode_step &step, uint32_t head, uint32_t token,
                                         uint32_t page) {
    const uint64_t slot =
        (uint64_t(page) << step.page_shift) + (token & ((1u << step.page_shift) - 1));
    return (slot * step.head_count + head) * DECODE_DIM;
}

// Loads the rows of tokens first + half, first + half + 2, ... that are before end; others are zeros.
__device__ inline void decode_load(const decode_step &step, const uint16_t *base, uint32_t head,
                                   uint32_t first, uint32_t end, uint32_t page, uint32_t half,
                                   uint32_t column, decode_rows *rows) {
#pragma unroll
    for (int i = 0; i < DECODE_PAIRS; i++) {
        const uint32_t token = first + 2 * uint32_t(i) + half;
        rows->pair[i] = make_uint4(0, 0, 0, 0);
        if (token < end) {
            const uint16_t *row = base + decode_offset(step, head, token, page) + column * 8;
            rows->pair[i] = *reinterpret_cast<const uint4 *>(row);
        }
    }
}

// Adds up to 8 tokens to a thread's state; tokens from end on have no weight.
template <class Type, int Group>
__device__ void decode_tokens(const decode_place<Group> &place, const float (&query)[Group][8],
                              const decode_rows &keys, const decode_rows &values, uint32_t first,
                              uint32_t end, decode_state<Group> *state) {
    float scores[DECODE_PAIRS], top = state->m;
#pragma unroll
    for (int i = 0; i < DECODE_PAIRS; i++) {
        float key[8], part[Group];
        decode_widen<Type>(keys.pair[i], key);
#pragma unroll
        for (int g = 0; g < Group; g++) {
            part[g] = 0.0f;
#pragma unroll
            for (int d = 0; d < 8; d++) {
                part[g] += query[g][d] * key[d];
            }
        }
        scores[i] = decode_fold<Group>(part, place.column);
        scores[i] = first + 2 * uint32_t(i) + place.half < end ? scores[i] : -INFINITY;
        top = fmaxf(top, scores[i]);
    }
    top = fmaxf(top, __shfl_xor_sync(decode_all, top, 16));
    const float base = top == -INFINITY ? 0.0f : top;  // no token yet: all weights are 0
    const float rescale = exp2f(state->m - base);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < DECODE_PAIRS; i++) {
        scores[i] = exp2f(scores[i] - base);
        sum += scores[i];
    }
    state->m = top;
    state->l = state->l * rescale + sum;
#pragma unroll
    for (int g = 0; g < Group; g++) {
        const float factor = __shfl_sync(decode_all, rescale, int(place.owner(g)));
#pragma unroll
        for (int d = 0; d < 8; d++) {
            state->acc[g][d] *= factor;
        }
    }
#pragma unroll
    for (int i = 0; i < DECODE_PAIRS; i++) {
        float value[8];
        decode_widen<Type>(values.pair[i], value);
#pragma unroll
        for (int g = 0; g < Group; g++) {
            const float weight = __shfl_sync(decode_all, scores[i], int(place.owner(g)));
#pragma unroll
            for (int d = 0; d < 8; d++) {
                state->acc[g][d] += weight * value[d];
            }
        }
    }
}

// -- a block --------------------------------------------------------------------------------------

// Memory that the threads of a block share.
template <int Group> struct decode_shared {
    float m[DECODE_WARPS][Group], l[DECODE_WARPS][Group];
    float acc[DECODE_WARPS][Group][DECODE_DIM];
    uint32_t unit;   // the one drawn
    uint32_t merge;  // of the tile that this block ends
    bool is_last;
};

// All of a unit's tokens, to states of warps in shared memory.
template <class Type, int Group>
__device__ void decode_unit_states(const decode_step &step, const ptowsp_work &unit,
                                   decode_shared<Group> *shared) {
    const decode_place<Group> place;
    const uint32_t sequence = unit.params[0], head = unit.params[1];
    const uint32_t begin = unit.params[2], end = begin + unit.params[3];
    const int32_t *pages = step.pages + step.page_starts[sequence];
    float query[Group][8];
    decode_state<Group> state;
    state.m = -INFINITY;
    state.l = 0.0f;
#pragma unroll
    for (int g = 0; g < Group; g++) {
        const uint64_t row = (uint64_t(sequence) * step.head_count + head) * Group + uint32_t(g);
        const uint16_t *from = step.queries + row * DECODE_DIM + place.column * 8;
        decode_widen<Type>(*reinterpret_cast<const uint4 *>(from), query[g]);
#pragma unroll
        for (int d = 0; d < 8; d++) {
            query[g][d] *= step.scale * decode_log2e;
            state.acc[g][d] = 0.0f;
        }
    }
    // Keys of the next tokens are loaded while these are computed, and page numbers one step earlier.
    uint32_t first = begin + place.warp * DECODE_WARP_TOKENS;
    decode_rows keys, next_keys, values;
    uint32_t page = first < end ? uint32_t(pages[first >> step.page_shift]) : 0;
    decode_load(step, step.keys, head, first, end, page, place.half, place.column, &keys);
    for (; first < end; first += DECODE_STEP) {
        const uint32_t next = first + DECODE_STEP;
        const uint32_t next_page = next < end ? uint32_t(pages[next >> step.page_shift]) : 0;
        decode_load(step, step.values, head, first, end, page, place.half, place.column, &values);
        decode_load(step, step.keys, head, next, end, next_page, place.half, place.column,
                    &next_keys);
        decode_tokens<Type, Group>(place, query, keys, values, first, end, &state);
        keys = next_keys;
        page = next_page;
    }
    // The halves of a warp have the same m; l and acc add up.
    state.l += __shfl_xor_sync(decode_all, state.l, 16);
#pragma unroll
    for (int g = 0; g < Group; g++) {
#pragma unroll
        for (int d = 0; d < 8; d++) {
            const float sum = state.acc[g][d] + __shfl_xor_sync(decode_all, state.acc[g][d], 16);
            if (place.half == 0) {
                shared->acc[place.warp][g][place.column * 8 + uint32_t(d)] = sum;
            }
        }
    }
    if (place.half == 0 && place.column % (16 / Group) == 0) {
        shared->m[place.warp][place.head] = state.m;
        shared->l[place.warp][place.head] = state.l;
    }
}

// Merges the states of warps. Thread d has dimension d.
template <int Group>
__device__ void decode_unit_merge(const decode_shared<Group> &shared, int g, float *out_m,
                                  float *out_l, float *out_acc) {
    float m = -INFINITY, l = 0.0f, acc = 0.0f;
#pragma unroll
    for (int w = 0; w < DECODE_WARPS; w++) {
        m = fmaxf(m, shared.m[w][g]);
    }
    const float base = m == -INFINITY ? 0.0f : m;
#pragma unroll
    for (int w = 0; w < DECODE_WARPS; w++) {
        const float weight = exp2f(shared.m[w][g] - base);
        l += weight * shared.l[w][g];
        acc += weight * shared.acc[w][g][threadIdx.x];
    }
    *out_m = m * decode_ln2;  // of natural exponents from here on
    *out_l = l;
    *out_acc = acc;
}

template <int Group>
__device__ void decode_finish(const decode_step &step, const ptowsp_work &work, int g, float m,
                              float l, float acc) {
    const uint64_t row =
        (uint64_t(work.params[0]) * step.head_count + work.params[1]) * Group + uint32_t(g);
    step.out[row * DECODE_DIM + threadIdx.x] = l > 0.0f ? acc / l : 0.0f;
    if (step.lse && threadIdx.x == 0) {
        step.lse[row] = m + logf(l);
    }
}

// The merge whose slots begin at or before `slot`: merges are in the order of their slots.
__device__ inline uint32_t decode_find_merge(const decode_step &step, uint32_t slot) {
    uint32_t low = 0, high = step.counts[1];
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (step.merges[middle].params[2] <= slot) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Merges all slots of a tile. States of other blocks are read from L2: a line of this SM's L1 may have
// been read before its neighbours in it were written.
template <int Group>
__device__ void decode_merge(const decode_step &step, const ptowsp_work &merge) {
    const uint32_t first = merge.params[2], count = merge.params[3];
    for (int g = 0; g < Group; g++) {
        float m = -INFINITY, l = 0.0f, acc = 0.0f;
        for (uint32_t i = 0; i < count; i++) {
            m = fmaxf(m, __ldcg(&step.states[uint64_t(first + i) * Group + uint32_t(g)].m));
        }
        const float base = m == -INFINITY ? 0.0f : m;
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t row = uint64_t(first + i) * Group + uint32_t(g);
            const float weight = expf(__ldcg(&step.states[row].m) - base);
            l += weight * __ldcg(&step.states[row].l);
            acc += weight * __ldcg(&step.accs[row * DECODE_DIM + threadIdx.x]);
        }
        decode_finish<Group>(step, merge, g, m, l, acc);
    }
}

// Counts a part whose state is written, and merges its tile if all tokens of the sequence are done.
template <int Group>
__device__ void decode_count(const decode_step &step, const ptowsp_work &unit,
                             decode_shared<Group> *shared) {
    __threadfence();  // this thread's part of the state, before the count
    __syncthreads();
    if (threadIdx.x == 0) {
        const uint32_t length = uint32_t(step.lengths[unit.params[0]]);
        uint32_t *done =
            &step.tokens_done[uint64_t(unit.params[0]) * step.head_count + unit.params[1]];
        shared->is_last = atomicAdd(done, unit.params[3]) + unit.params[3] == length;
        if (shared->is_last) {
            *done = 0;  // nobody else counts here again in this launch
            shared->merge = decode_find_merge(step, unit.work_id);
        }
    }
    __syncthreads();
    if (shared->is_last) {
        __threadfence();  // the count, before the states that it speaks of
        decode_merge<Group>(step, step.merges[shared->merge]);
    }
}

template <class Type, int Group>
__device__ void decode_unit(const decode_step &step, const ptowsp_work &unit,
                            decode_shared<Group> *shared) {
    if (unit.flags & PTOWSP_WORK_INVALID) {
        return;
    }
    decode_unit_states<Type, Group>(step, unit, shared);
    __syncthreads();
    const bool is_whole = unit.work_id == PTOWSP_NO_SLOT;
    for (int g = 0; g < Group; g++) {
        float m, l, acc;
        decode_unit_merge<Group>(*shared, g, &m, &l, &acc);
        if (is_whole) {
            decode_finish<Group>(step, unit, g, m, l, acc);
            continue;
        }
        const uint64_t row = uint64_t(unit.work_id) * Group + uint32_t(g);
        step.accs[row * DECODE_DIM + threadIdx.x] = acc;
        if (threadIdx.x == 0) {
            step.states[row].m = m;
            step.states[row].l = l;
        }
    }
    if (is_whole) {
        __syncthreads();  // the next unit writes `shared` again
    } else {
        decode_count<Group>(step, unit, shared);
    }
}

// The units of a lane's list, or those that a block draws. The draw wraps to 0 with the last block's last
// one: all blocks together draw every unit and, each of them, once beyond.
template <class Type, int Group>
__global__ void __launch_bounds__(DECODE_THREADS, 2) decode_lanes(const decode_step step) {
    __shared__ decode_shared<Group> shared;
    if (step.clocks && threadIdx.x == 0) {
        step.clocks[blockIdx.x].begin_ns = decode_global_ns();
        step.clocks[blockIdx.x].begin_cycles = decode_cycles();
    }
    if (!step.next) {
        for (uint32_t i = step.unit_begin[blockIdx.x]; i < step.unit_begin[blockIdx.x + 1]; i++) {
            decode_unit<Type, Group>(step, step.units[i], &shared);
        }
    } else {
        const uint32_t count = step.counts[0];
        for (;;) {
            if (threadIdx.x == 0) {
                shared.unit = atomicInc(step.next, count + gridDim.x - 1);
            }
            __syncthreads();
            const uint32_t i = shared.unit;
            __syncthreads();
            if (i >= count) {
                break;
            }
            decode_unit<Type, Group>(step, step.units[i], &shared);
        }
    }
    if (step.clocks && threadIdx.x == 0) {
        step.clocks[blockIdx.x].end_cycles = decode_cycles();
    }
}

#endif
