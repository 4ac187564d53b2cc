// Descriptors are written at about the speed of memory, because a step may have 65,536 of them.
//
// With AVX-512, eight descriptors are 48 words of 32 bits, three vectors. A block of eight is computed
// in registers, field by field, and then interleaved; there is no branch on the number of chunks n,
// which follows no pattern, so that each would be mispredicted.
//
//      word         0         1           2         3       4          5
//                   work_id   tier,flags  request   head    kv_start   kv_len
//
//      n <= 8    a block is 8 / n whole heads; the next block adds a constant to work_id and head. What
//                a block writes beyond its heads is overwritten by the next, so near the end of a range
//                the plain code writes instead
//      n > 8     a block is chunks 0 to 7, 8 to 15, ... of a head, the last one n - 8 to n - 1; the
//                same block of the next head adds n to work_id and 1 to head
//
// Measured on a Zen 5 at 256 sequences and 8 heads: 0.35 us per 1,000 descriptors, plain code 0.8.

#include "emit.h"

#include "../base/cpu.h"

// How one sequence is cut: pieces of `length` tokens, the last `longer_count` of them `align` longer,
// and the very last cut off at the end of the sequence.
typedef struct pwsp_cut {
    uint32_t piece_count;
    uint32_t length;
    uint32_t longer_from;  // index of the first longer piece
} pwsp_cut;

typedef struct pwsp_emit_state {
    const pwsp_emit_desc *desc;
    pwsp_divisor by_chunk;
    pwsp_divisor by_align;
} pwsp_emit_state;

PWSP_FORCE_INLINE pwsp_cut pwsp_emit_cut(const pwsp_emit_state *state, uint32_t length) {
    PTOWSP_ASSERT(length > 0);
    uint32_t piece_count = pwsp_divide(length - 1, state->by_chunk) + 1;
    if (state->desc->chunks == PTOWSP_CHUNKS_FIXED) {
        pwsp_cut fixed = {piece_count, state->desc->chunk, piece_count};
        return fixed;
    }
    uint32_t unit_count = pwsp_divide(length - 1, state->by_align) + 1;
    uint32_t units = unit_count / piece_count;
    pwsp_cut balanced = {piece_count, units * state->desc->align,
                         piece_count - (unit_count - units * piece_count)};
    return balanced;
}

// The first tier that covers the length; there is one. Written without early exit: the tiers of a
// batch follow each other at random, and a misprediction costs more than four comparisons.
PWSP_FORCE_INLINE uint8_t pwsp_emit_tier(const pwsp_emit_desc *desc, int32_t length) {
    uint8_t id = 0;
    for (uint32_t i = desc->tier_count; i-- > 0;) {
        const ptowsp_tier *tier = &desc->tiers[i];
        bool covers = (tier->length_min <= length) & (length <= tier->length_max);
        id = covers ? tier->id : id;
    }
    return id;
}

// Everything about one sequence.
typedef struct pwsp_emit_sequence {
    uint32_t work_id;  // of its first unit
    uint32_t request;
    uint32_t length;
    uint32_t head_count;
    uint32_t align;
    uint32_t last_length;  // of the last piece
    uint8_t tier;
    pwsp_cut cut;
} pwsp_emit_sequence;

// Where piece c begins.
PWSP_FORCE_INLINE uint32_t pwsp_cut_start(const pwsp_cut *cut, uint32_t align, uint32_t c) {
    return c * cut->length + (c > cut->longer_from ? (c - cut->longer_from) * align : 0);
}

// Writes a sequence descriptor by descriptor.
static void pwsp_emit_plain(const pwsp_emit_sequence *sequence, PTOWSP_GM ptowsp_work *work) {
    const pwsp_cut *cut = &sequence->cut;
    uint32_t work_id = sequence->work_id;
    for (uint32_t head = 0; head < sequence->head_count; head++) {
        uint32_t start = 0;
        for (uint32_t c = 0; c < cut->piece_count; c++) {
            bool is_last = c + 1 == cut->piece_count;
            uint32_t flags = (c == 0 ? PTOWSP_WORK_FIRST : 0) | (is_last ? PTOWSP_WORK_LAST : 0);
            uint32_t length = cut->length + (c >= cut->longer_from ? sequence->align : 0);
            length = is_last ? sequence->last_length : length;
            *work++ = ptowsp_work_of(work_id++, sequence->tier, (uint8_t)flags, sequence->request,
                                     head, start, length);
            start += length;
        }
    }
}

// The state of a range while it is written.
typedef struct pwsp_emit_cursor {
    PTOWSP_GM ptowsp_work *work;      // where the next sequence goes
    PTOWSP_GM ptowsp_work *work_end;  // of the range
    uint32_t work_id;
} pwsp_emit_cursor;

// Finds out all about a sequence of length > 0.
PWSP_FORCE_INLINE pwsp_emit_sequence pwsp_emit_sequence_make(const pwsp_emit_state *state,
                                                             uint32_t request, uint32_t work_id) {
    const pwsp_emit_desc *desc = state->desc;
    pwsp_emit_sequence sequence;
    sequence.work_id = work_id;
    sequence.request = request;
    sequence.length = (uint32_t)desc->lengths[request];
    sequence.head_count = desc->head_count;
    sequence.align = desc->align;
    sequence.tier = pwsp_emit_tier(desc, (int32_t)sequence.length);
    sequence.cut = pwsp_emit_cut(state, sequence.length);
    sequence.last_length = sequence.length - pwsp_cut_start(&sequence.cut, desc->align,
                                                            sequence.cut.piece_count - 1);
    return sequence;
}

#if PWSP_X86

// Which chunk and head each of the eight descriptors of a block has, for n chunks per head.
typedef struct pwsp_block_layout {
    uint32_t chunk[8];
    uint32_t head[8];
    uint32_t head_count;  // whole heads in a block
} pwsp_block_layout;

static const pwsp_block_layout pwsp_block_layouts[9] = {
    {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 0, 0, 0, 0, 0, 0}, 1},  // n > 8: part of a head
    {{0, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6, 7}, 8},
    {{0, 1, 0, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 2, 2, 3, 3}, 4},
    {{0, 1, 2, 0, 1, 2, 0, 1}, {0, 0, 0, 1, 1, 1, 2, 2}, 2},
    {{0, 1, 2, 3, 0, 1, 2, 3}, {0, 0, 0, 0, 1, 1, 1, 1}, 2},
    {{0, 1, 2, 3, 4, 0, 1, 2}, {0, 0, 0, 0, 0, 1, 1, 1}, 1},
    {{0, 1, 2, 3, 4, 5, 0, 1}, {0, 0, 0, 0, 0, 0, 1, 1}, 1},
    {{0, 1, 2, 3, 4, 5, 6, 0}, {0, 0, 0, 0, 0, 0, 0, 1}, 1},
    {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 0, 0, 0, 0, 0, 0}, 1},
};

// Word i of a block comes from descriptor i / 6; fields 0 to 3 lie in two vectors (id tag | request
// head) that are interleaved first, fields 4 and 5 (start length) are put in after that, where the
// index is 16 or more.
#define PWSP_TAKE(field, descriptor) ((field) * 8 + (descriptor))
#define PWSP_PUT(field, descriptor)  (16 + ((field)-4) * 8 + (descriptor))
static const uint32_t pwsp_take_words[3][16] = {
    {PWSP_TAKE(0, 0), PWSP_TAKE(1, 0), PWSP_TAKE(2, 0), PWSP_TAKE(3, 0), 0, 0, PWSP_TAKE(0, 1),
     PWSP_TAKE(1, 1), PWSP_TAKE(2, 1), PWSP_TAKE(3, 1), 0, 0, PWSP_TAKE(0, 2), PWSP_TAKE(1, 2),
     PWSP_TAKE(2, 2), PWSP_TAKE(3, 2)},
    {0, 0, PWSP_TAKE(0, 3), PWSP_TAKE(1, 3), PWSP_TAKE(2, 3), PWSP_TAKE(3, 3), 0, 0,
     PWSP_TAKE(0, 4), PWSP_TAKE(1, 4), PWSP_TAKE(2, 4), PWSP_TAKE(3, 4), 0, 0, PWSP_TAKE(0, 5),
     PWSP_TAKE(1, 5)},
    {PWSP_TAKE(2, 5), PWSP_TAKE(3, 5), 0, 0, PWSP_TAKE(0, 6), PWSP_TAKE(1, 6), PWSP_TAKE(2, 6),
     PWSP_TAKE(3, 6), 0, 0, PWSP_TAKE(0, 7), PWSP_TAKE(1, 7), PWSP_TAKE(2, 7), PWSP_TAKE(3, 7), 0,
     0},
};
static const uint32_t pwsp_put_words[3][16] = {
    {0, 1, 2, 3, PWSP_PUT(4, 0), PWSP_PUT(5, 0), 6, 7, 8, 9, PWSP_PUT(4, 1), PWSP_PUT(5, 1), 12, 13,
     14, 15},
    {PWSP_PUT(4, 2), PWSP_PUT(5, 2), 2, 3, 4, 5, PWSP_PUT(4, 3), PWSP_PUT(5, 3), 8, 9, 10, 11,
     PWSP_PUT(4, 4), PWSP_PUT(5, 4), 14, 15},
    {0, 1, PWSP_PUT(4, 5), PWSP_PUT(5, 5), 4, 5, 6, 7, PWSP_PUT(4, 6), PWSP_PUT(5, 6), 10, 11, 12,
     13, PWSP_PUT(4, 7), PWSP_PUT(5, 7)},
};

// Where work_id and head lie in the three vectors.
#define PWSP_ID_WORDS_0   0x1041
#define PWSP_ID_WORDS_1   0x4104
#define PWSP_ID_WORDS_2   0x0410
#define PWSP_HEAD_WORDS_0 0x8208
#define PWSP_HEAD_WORDS_1 0x0820
#define PWSP_HEAD_WORDS_2 0x2082

typedef struct pwsp_block {
    __m512i words[3];
} pwsp_block;

PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_join_avx512(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// Computes the block that begins with chunk c0 of head 0.
PWSP_AVX512 PWSP_FORCE_INLINE pwsp_block pwsp_block_make(const pwsp_emit_sequence *sequence, uint32_t c0,
                                                   const pwsp_block_layout *layout) {
    const pwsp_cut *cut = &sequence->cut;
    const __m256i zero = _mm256_setzero_si256();
    const __m256i piece = _mm256_set1_epi32((int)cut->length);
    const __m256i align = _mm256_set1_epi32((int)sequence->align);
    const __m256i longer_from = _mm256_set1_epi32((int)cut->longer_from);
    __m256i c, head;
    memcpy(&c, layout->chunk, sizeof c);
    memcpy(&head, layout->head, sizeof head);
    c = _mm256_add_epi32(c, _mm256_set1_epi32((int)c0));

    __m256i longer = _mm256_max_epi32(_mm256_sub_epi32(c, longer_from), zero);
    __m256i start = _mm256_add_epi32(_mm256_mullo_epi32(c, piece), _mm256_mullo_epi32(longer, align));
    __mmask8 is_longer = _mm256_cmpge_epi32_mask(c, longer_from);
    __mmask8 is_last = _mm256_cmpeq_epi32_mask(c, _mm256_set1_epi32((int)cut->piece_count - 1));
    __mmask8 is_first = _mm256_cmpeq_epi32_mask(c, zero);
    __m256i length = _mm256_mask_add_epi32(piece, is_longer, piece, align);
    length = _mm256_mask_set1_epi32(length, is_last, (int)sequence->last_length);

    __m256i tag = _mm256_set1_epi32(sequence->tier);
    tag = _mm256_mask_or_epi32(tag, is_first, tag, _mm256_set1_epi32(PTOWSP_WORK_FIRST << 8));
    tag = _mm256_mask_or_epi32(tag, is_last, tag, _mm256_set1_epi32(PTOWSP_WORK_LAST << 8));
    __m256i id = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                  _mm256_set1_epi32((int)(sequence->work_id + c0)));
    __m256i request = _mm256_set1_epi32((int)sequence->request);

    __m512i id_tag = pwsp_join_avx512(id, tag), request_head = pwsp_join_avx512(request, head);
    __m512i start_length = pwsp_join_avx512(start, length);
    pwsp_block block;
    for (uint32_t i = 0; i < 3; i++) {
        __m512i take, put;
        memcpy(&take, pwsp_take_words[i], sizeof take);
        memcpy(&put, pwsp_put_words[i], sizeof put);
        __m512i fields = _mm512_permutex2var_epi32(id_tag, take, request_head);
        block.words[i] = _mm512_permutex2var_epi32(fields, put, start_length);
    }
    return block;
}

// Stores a block for heads 0, step, 2 * step, ... below head_count; `ids` work ids lie between.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_block_store(pwsp_block block, uint32_t head_count, uint32_t step,
                                              uint32_t ids, PTOWSP_GM ptowsp_work *work) {
    const __m512i heads = _mm512_set1_epi32((int)step);
    const __m512i next_0 = _mm512_mask_set1_epi32(
        _mm512_maskz_mov_epi32(PWSP_HEAD_WORDS_0, heads), PWSP_ID_WORDS_0, (int)ids);
    const __m512i next_1 = _mm512_mask_set1_epi32(
        _mm512_maskz_mov_epi32(PWSP_HEAD_WORDS_1, heads), PWSP_ID_WORDS_1, (int)ids);
    const __m512i next_2 = _mm512_mask_set1_epi32(
        _mm512_maskz_mov_epi32(PWSP_HEAD_WORDS_2, heads), PWSP_ID_WORDS_2, (int)ids);
    __m512i a = block.words[0], b = block.words[1], c = block.words[2];
    for (uint64_t head = 0; head < head_count; head += step) {
        char *bytes = (char *)work;
        memcpy(bytes, &a, 64);
        memcpy(bytes + 64, &b, 64);
        memcpy(bytes + 128, &c, 64);
        a = _mm512_add_epi32(a, next_0);
        b = _mm512_add_epi32(b, next_1);
        c = _mm512_add_epi32(c, next_2);
        work += ids;
    }
}

PWSP_AVX512 static void pwsp_emit_avx512(const pwsp_emit_state *state, uint32_t first, uint32_t end,
                                         pwsp_emit_cursor *cursor) {
    const uint32_t head_count = state->desc->head_count;
    PTOWSP_GM ptowsp_work *work = cursor->work;
    uint32_t work_id = cursor->work_id;
    for (uint32_t request = first; request < end; request++) {
        if (state->desc->lengths[request] == 0) {
            continue;
        }
        const pwsp_emit_sequence sequence = pwsp_emit_sequence_make(state, request, work_id);
        const uint32_t n = sequence.cut.piece_count;
        const uint64_t count = (uint64_t)n * head_count;
        if (n > 8) {
            for (uint32_t c0 = 0; c0 < n; c0 = c0 + 8 < n - 8 || c0 == n - 8 ? c0 + 8 : n - 8) {
                pwsp_block_store(pwsp_block_make(&sequence, c0, &pwsp_block_layouts[0]), head_count,
                                 1, n, work + c0);
            }
        } else if ((uint64_t)(cursor->work_end - work) >= count + 8) {
            const pwsp_block_layout *layout = &pwsp_block_layouts[n];
            pwsp_block_store(pwsp_block_make(&sequence, 0, layout), head_count, layout->head_count,
                             layout->head_count * n, work);
        } else {
            pwsp_emit_plain(&sequence, work);
        }
        work += count;
        work_id += (uint32_t)count;
    }
    cursor->work = work;
}

#endif

static void pwsp_emit_portable(const pwsp_emit_state *state, uint32_t first, uint32_t end,
                               pwsp_emit_cursor *cursor) {
    for (uint32_t request = first; request < end; request++) {
        if (state->desc->lengths[request] != 0) {
            const pwsp_emit_sequence sequence =
                pwsp_emit_sequence_make(state, request, cursor->work_id);
            uint64_t count = (uint64_t)sequence.cut.piece_count * sequence.head_count;
            pwsp_emit_plain(&sequence, cursor->work);
            cursor->work += count;
            cursor->work_id += (uint32_t)count;
        }
    }
}

PWSP_INTERNAL void pwsp_emit(const pwsp_emit_desc *desc, uint32_t first, uint32_t end,
                             uint32_t first_work_id, PTOWSP_GM ptowsp_work *work,
                             uint64_t work_count) {
    const pwsp_emit_state state = {desc, pwsp_divisor_make(desc->chunk),
                                   pwsp_divisor_make(desc->align)};
    pwsp_emit_cursor cursor = {work, work + work_count, first_work_id};
#if PWSP_X86
    if (pwsp_cpu_has_avx512()) {
        pwsp_emit_avx512(&state, first, end, &cursor);
        PTOWSP_ASSERT(cursor.work == cursor.work_end);
        return;
    }
#endif
    pwsp_emit_portable(&state, first, end, &cursor);
    PTOWSP_ASSERT(cursor.work == cursor.work_end);
}
