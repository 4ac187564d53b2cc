// A step may have 65,536 descriptors, so vector code writes them. It works in two stages, on
// PWSP_CUTS sequences at a time:
//
//      cut     how many pieces, how long, which tier: the same arithmetic for every sequence, with
//              AVX-512 for sixteen at once
//      write   the descriptors of each sequence, head by head; with AVX-512 eight at once

#include "generate.h"

#include "../base/cpu.h"
#include "generate_cuts.h"

// The first tier that covers the length; there is one.
static uint32_t pwsp_cut_tier(const pwsp_emit_desc *desc, int32_t length) {
    const ptowsp_tier *tier = desc->tiers;
    while (length < tier->length_min || tier->length_max < length) {
        tier++;
    }
    return tier->id;
}

// Cuts `count` sequences.
static void pwsp_cut_portable(const pwsp_emit_state *state, const PTOWSP_GM int32_t *lengths,
                              uint32_t count, pwsp_cuts *cuts) {
    const uint32_t align = state->desc->align;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = (uint32_t)lengths[i];
        cuts->piece_count[i] = 0;
        if (length == 0) {
            continue;
        }
        uint32_t n = pwsp_divide(length - 1, state->by_chunk) + 1;
        uint32_t piece = state->desc->chunk, longer_from = n;
        if (state->desc->chunks == PTOWSP_CHUNKS_BALANCED) {
            uint32_t units = pwsp_divide(length - 1, state->by_align) + 1;
            piece = units / n * align;
            longer_from = n - units % n;
        }
        uint32_t longer = n - 1 > longer_from ? n - 1 - longer_from : 0;  // before the last piece
        cuts->piece_count[i] = n;
        cuts->length[i] = piece;
        cuts->longer_from[i] = longer_from;
        cuts->last_length[i] = length - (n - 1) * piece - longer * align;
        cuts->tier[i] = pwsp_cut_tier(state->desc, lengths[i]);
    }
}

static void pwsp_write_portable(const pwsp_emit_state *state, const pwsp_cuts *cuts, uint32_t count,
                                uint32_t request, pwsp_emit_cursor *cursor) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t work_count = (uint64_t)cuts->piece_count[i] * state->desc->kv_head_count;
        if (work_count > 0) {
            pwsp_emit_plain(state, cuts, i, request + i, cursor->work_id, cursor->work);
            cursor->work += work_count;
            cursor->room -= work_count;
            cursor->work_id += (uint32_t)work_count;
        }
    }
}

static void pwsp_emit_portable(const pwsp_emit_state *state, uint32_t request, uint32_t count,
                               pwsp_emit_cursor *cursor) {
    pwsp_cuts cuts;
    pwsp_cut_portable(state, state->desc->lengths + request, count, &cuts);
    pwsp_write_portable(state, &cuts, count, request, cursor);
}

PWSP_INTERNAL void pwsp_emit(const pwsp_emit_desc *desc, uint32_t first, uint32_t end,
                             uint32_t first_work_id, PTOWSP_GM ptowsp_work *work,
                             uint64_t work_count) {
    const pwsp_emit_state state = {desc, pwsp_divisor_make(desc->chunk),
                                   pwsp_divisor_make(desc->align)};
    pwsp_emit_cursor cursor = {work, work_count, first_work_id};
    uint32_t count;
    for (uint32_t request = first; request < end; request += count) {
        count = (uint32_t)pwsp_min_u64(PWSP_CUTS, end - request);
#if PWSP_X86
        if (pwsp_cpu_has_avx512()) {
            pwsp_emit_avx512(&state, request, count, &cursor);
            continue;
        }
#endif
        pwsp_emit_portable(&state, request, count, &cursor);
    }
    PTOWSP_ASSERT(cursor.room == 0);
}
