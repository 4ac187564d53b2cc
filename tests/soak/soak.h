// What the kinds of soak cases share: faults that are injected, and what was counted.
//
// A case is made from its seed, runs without a fault, then a few times with one, and after each of
// these once more without: a fault ends what it hits with its own status, or does not show at all;
// nothing leaks, nothing hangs, and what was hit works afterwards.

#ifndef SOAK_H
#define SOAK_H

#include "test.h"

#define SOAK_KINDS(KIND)                                                                           \
    KIND(program)                                                                                  \
    KIND(pipeline)                                                                                 \
    KIND(graph) KIND(device) KIND(ranks) KIND(saved) KIND(plan) KIND(emission) KIND(records)

#define SOAK_FAULTS(FAULT)                                                                         \
    FAULT(none) FAULT(memory) FAULT(thread) FAULT(kernel) FAULT(cancel) FAULT(disk) FAULT(death)

#define SOAK_ENUM_KIND(name)  SOAK_##name,
#define SOAK_ENUM_FAULT(name) SOAK_BY_##name,
typedef enum soak_kind { SOAK_KINDS(SOAK_ENUM_KIND) SOAK_KIND_COUNT } soak_kind;
typedef enum soak_fault { SOAK_FAULTS(SOAK_ENUM_FAULT) SOAK_FAULT_COUNT } soak_fault;

// Shared by the process that runs cases and the one that watches it.
typedef struct soak_state {
    uint64_t seed;   // of the case that runs
    uint64_t cases;  // atomic: begun so far
    uint64_t done[SOAK_KIND_COUNT];
    uint64_t injected[SOAK_FAULT_COUNT], ended[SOAK_FAULT_COUNT];  // runs; those that it ended
} soak_state;

extern soak_state *soak_now;

// Counts a run with a fault, and says whether the fault ended it.
void soak_count(soak_fault fault, bool has_ended);

// An allocator for all threads, which can refuse from one allocation to another, and counts.
typedef struct soak_memory {
    uint64_t allocations, refuse_from, refuse_end;  // atomic; refuses none if both are 0
    uint64_t live_blocks, live_bytes;
} soak_memory;

void *soak_resize(void *user, void *ptr, size_t old_size, size_t new_size);

// From now on: a few allocations, or all of them, are refused, after some that are not.
void soak_refuse_memory(soak_memory *memory, uint64_t *random, uint64_t after_max);
void soak_allow_memory(soak_memory *memory);

// The next threads do not start, or writes fail, after some that do.
void soak_refuse_threads(uint64_t *random);
void soak_refuse_writes(uint64_t *random, uint64_t after_max);
void soak_allow_all(void);

// A context with such memory and 1 to 8 own lanes; sometimes after one whose threads do not start, or
// which gets no memory.
ptowsp_context *soak_context(soak_memory *memory, uint32_t lane_count, uint64_t *random);
void soak_context_end(ptowsp_context *context, soak_memory *memory);

// A device of both units, opened after some that may not open; launches on it; and pieces of its memory,
// of which some are left.
ptowsp_device *soak_device(ptowsp_context *context, soak_memory *memory, uint64_t *random);
void soak_device_launches(ptowsp_context *context, ptowsp_device *device, uint64_t *random);
void soak_device_memory(ptowsp_device *device, soak_memory *memory, uint64_t *random,
                        uint64_t *out_left);

#define SOAK_DECLARE(name) void soak_run_##name(uint64_t seed);
SOAK_KINDS(SOAK_DECLARE)
#undef SOAK_DECLARE

#endif
