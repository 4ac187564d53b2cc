// Flash attention as the kernel of a block: 128 queries of a head of 128 and any number of keys.

#ifndef ATTENTION_CORE_H
#define ATTENTION_CORE_H

#include "ptowsp.h"

// The queries are two groups, which take turns on the vector cores. Chunks of 256 keys: of a group
// that are 32 x 256 scores on each of two vector cores, 32 KiB of UB.
enum { ATTENTION_CORE_GROUPS = 2, ATTENTION_CORE_ROWS = 64, ATTENTION_CORE_HEAD = 128 };

typedef struct attention_core {
    int64_t keys;     // at most
    int64_t chunk;    // keys of an iteration; 0: 256
    int64_t preload;  // chunks that the cube core is ahead; 0: none
} attention_core;

// A kernel with tile parameters q0, q1, k, v in f16 and out0, out1 in f32. k and v are [keys][head].
ptowsp_kernel attention_core_make(ptowsp_module *m, const char *name, const attention_core *a);

#endif
