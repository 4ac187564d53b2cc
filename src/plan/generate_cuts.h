// How sequences are cut, and where their descriptors go: between cutting and writing, plain or by
// vectors.

#ifndef PWSP_GENERATE_CUTS_H
#define PWSP_GENERATE_CUTS_H

#include "generate.h"

#define PWSP_CUTS 256  // numbers are bytes

// How sequences are cut: pieces of `length` tokens, those from `longer_from` on `align` longer, and
// the last one `last_length`, whatever is left. A sequence of length 0 has no pieces. Vector code has
// their numbers, too, and reads sixteen sequences from any one on.
typedef struct pwsp_cuts {
    uint32_t piece_count[PWSP_CUTS + 16];
    uint32_t length[PWSP_CUTS + 16];
    uint32_t longer_from[PWSP_CUTS + 16];
    uint32_t last_length[PWSP_CUTS + 16];
    uint32_t tier[PWSP_CUTS + 16];
    uint32_t request[PWSP_CUTS + 16];
} pwsp_cuts;

// Shared by all sequences.
typedef struct pwsp_emit_state {
    const pwsp_emit_desc *desc;
    pwsp_divisor by_chunk;
    pwsp_divisor by_align;
} pwsp_emit_state;

// Where the next sequence goes.
typedef struct pwsp_emit_cursor {
    PTOWSP_GM ptowsp_work *work;
    uint64_t room;  // descriptors from work to the end of the range
    uint32_t work_id;
} pwsp_emit_cursor;

// Writes sequence i of `cuts`, descriptor by descriptor.
PWSP_INLINE void pwsp_emit_plain(const pwsp_emit_state *state, const pwsp_cuts *cuts, uint32_t i,
                                 uint32_t request, uint32_t work_id, PTOWSP_GM ptowsp_work *work) {
    const uint32_t n = cuts->piece_count[i], longer_from = cuts->longer_from[i];
    const uint8_t tier = (uint8_t)cuts->tier[i];
    for (uint32_t head = 0; head < state->desc->kv_head_count; head++) {
        uint32_t start = 0;
        for (uint32_t c = 0; c < n; c++) {
            uint32_t length = cuts->length[i] + (c >= longer_from ? state->desc->align : 0);
            work[c] = ptowsp_work_of(work_id++, tier, 0, request, head, start, length);
            start += length;
        }
        work[n - 1].params[3] = cuts->last_length[i];
        work[n - 1].flags = PTOWSP_WORK_LAST;
        work[0].flags |= PTOWSP_WORK_FIRST;
        work += n;
    }
}

#if PWSP_X86
// Cuts and writes `count` sequences, at most PWSP_CUTS, from `request` on: with AVX-512.
PWSP_INTERNAL void pwsp_emit_avx512(const pwsp_emit_state *state, uint32_t request, uint32_t count,
                                    pwsp_emit_cursor *cursor);
#endif

#endif
