// A step may have 65,536 descriptors, so vector code writes them. It works in two stages, on
// PWSP_CUTS sequences at a time:
//
//      cut     how many pieces, how long, which tier: the same arithmetic for every sequence, with
//              AVX-512 for sixteen at once
//      write   the descriptors of each sequence, head by head; with AVX-512 eight at once
//
// Eight descriptors are 48 words of 32 bits, three vectors. A block of eight is computed in
// registers, field by field, and then interleaved. There is no branch on the number of pieces n: n
// follows no pattern, so each such branch is mispredicted and costs as much as twenty descriptors.
//
//      word         0         1           2         3       4          5
//                   work_id   tier,flags  request   head    kv_start   kv_len
//
//      n <= 8    a block is 8 / n whole heads; the next block adds a constant to work_id and head.
//                The next block overwrites all that a block writes beyond its heads. Near the end
//                of a range, where no block follows, plain code writes
//      n > 8     a block is pieces 0 to 7, 8 to 15, ... of a head, the last one n - 8 to n - 1; the
//                same block of the next head adds n to work_id and 1 to head
//
// With one head a sequence may have one descriptor, and a block of its own would be mostly waste. So
// blocks go across sequences: of a group of sixteen, whose fields are in registers, each descriptor of
// a block of sixteen takes its sequence's. Which one that is stands in an array of bytes, where each
// sequence has written its number 64 times from its first descriptor on, and the next over that.
//
// Measured on a Zen 5, 256 sequences of 8 heads, gcc 12: 0.32 us per 1,000 descriptors, three plain
// loops 1.63, memcpy of the bytes 0.18. With 1 head, on a Zen 4, by chunk, instead of a block for each
// sequence: 5 descriptors to a sequence 1.18 instead of 1.39, three 1.96 (2.29), one 3.69 (5.54). Of
// these a fifth is cutting, and a fifth writing the bytes; shuffles are most of the rest.

#include "generate.h"

#include "../base/cpu.h"

#define PWSP_CUTS 64

// How sequences are cut: pieces of `length` tokens, those from `longer_from` on `align` longer, and
// the last one `last_length`, whatever is left. A sequence of length 0 has no pieces.
typedef struct pwsp_cuts {
    uint32_t piece_count[PWSP_CUTS];
    uint32_t length[PWSP_CUTS];
    uint32_t longer_from[PWSP_CUTS];
    uint32_t last_length[PWSP_CUTS];
    uint32_t tier[PWSP_CUTS];
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

// Writes sequence i of `cuts`, descriptor by descriptor.
static void pwsp_emit_plain(const pwsp_emit_state *state, const pwsp_cuts *cuts, uint32_t i,
                            uint32_t request, uint32_t work_id, PTOWSP_GM ptowsp_work *work) {
    const uint32_t n = cuts->piece_count[i], longer_from = cuts->longer_from[i];
    const uint8_t tier = (uint8_t)cuts->tier[i];
    for (uint32_t head = 0; head < state->desc->head_count; head++) {
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

static void pwsp_write_portable(const pwsp_emit_state *state, const pwsp_cuts *cuts, uint32_t count,
                                uint32_t request, pwsp_emit_cursor *cursor) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t work_count = (uint64_t)cuts->piece_count[i] * state->desc->head_count;
        if (work_count > 0) {
            pwsp_emit_plain(state, cuts, i, request + i, cursor->work_id, cursor->work);
            cursor->work += work_count;
            cursor->room -= work_count;
            cursor->work_id += (uint32_t)work_count;
        }
    }
}

#if PWSP_X86

// Which piece and head each of the eight descriptors of a block has, for n pieces per head.
typedef struct pwsp_block_layout {
    uint32_t piece[8];
    uint32_t head[8];
    uint32_t head_count;  // whole heads in a block
} pwsp_block_layout;

static const pwsp_block_layout pwsp_block_layouts[9] = {
    {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 0, 0, 0, 0, 0, 0}, 1},  // n = 0, and n > 8: part of a head
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
#define PWSP_TAKE(field, descriptor) ((field)*8 + (descriptor))
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
    __m512i a, b, c;
} pwsp_block;

PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_join_avx512(__m256i low, __m256i high) {
    return _mm512_maskz_inserti64x4(PWSP_ALL_8, _mm512_castsi256_si512(low), high, 1);
}

// The lower or upper eight words. By memory: gcc 12 warns of its own header's ways of doing it in
// C++.
PWSP_AVX512 PWSP_FORCE_INLINE __m256i pwsp_half_avx512(__m512i x, uint32_t upper) {
    __m256i halves[2];
    memcpy(halves, &x, sizeof halves);
    return halves[upper];
}

PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_interleave_avx512(const uint32_t *take_words,
                                                             const uint32_t *put_words,
                                                             __m512i id_tag, __m512i request_head,
                                                             __m512i start_length) {
    __m512i take, put;
    memcpy(&take, take_words, sizeof take);
    memcpy(&put, put_words, sizeof put);
    __m512i fields = _mm512_permutex2var_epi32(id_tag, take, request_head);
    return _mm512_permutex2var_epi32(fields, put, start_length);
}

// Computes the block of sequence i that begins with piece c0 of head 0.
PWSP_AVX512 PWSP_FORCE_INLINE pwsp_block pwsp_block_make(const pwsp_cuts *cuts, uint32_t i,
                                                         uint32_t align_tokens, uint32_t request,
                                                         uint32_t work_id, uint32_t c0,
                                                         const pwsp_block_layout *layout) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i piece = _mm256_set1_epi32((int)cuts->length[i]);
    const __m256i align = _mm256_set1_epi32((int)align_tokens);
    const __m256i longer_from = _mm256_set1_epi32((int)cuts->longer_from[i]);
    __m256i c, head;
    memcpy(&c, layout->piece, sizeof c);
    memcpy(&head, layout->head, sizeof head);
    c = _mm256_add_epi32(c, _mm256_set1_epi32((int)c0));

    __m256i longer = _mm256_max_epi32(_mm256_sub_epi32(c, longer_from), zero);
    __m256i start =
        _mm256_add_epi32(_mm256_mullo_epi32(c, piece), _mm256_mullo_epi32(longer, align));
    __mmask8 is_longer = _mm256_cmpge_epi32_mask(c, longer_from);
    __m256i last = _mm256_set1_epi32((int)cuts->piece_count[i] - 1);
    __mmask8 is_last = _mm256_cmpeq_epi32_mask(c, last);
    __mmask8 is_first = _mm256_cmpeq_epi32_mask(c, zero);
    __m256i length = _mm256_mask_add_epi32(piece, is_longer, piece, align);
    length = _mm256_mask_set1_epi32(length, is_last, (int)cuts->last_length[i]);

    __m256i tag = _mm256_set1_epi32((int)cuts->tier[i]);
    tag = _mm256_mask_or_epi32(tag, is_first, tag, _mm256_set1_epi32(PTOWSP_WORK_FIRST << 8));
    tag = _mm256_mask_or_epi32(tag, is_last, tag, _mm256_set1_epi32(PTOWSP_WORK_LAST << 8));
    __m256i id = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                  _mm256_set1_epi32((int)(work_id + c0)));

    __m512i id_tag = pwsp_join_avx512(id, tag);
    __m512i request_head = pwsp_join_avx512(_mm256_set1_epi32((int)request), head);
    __m512i start_length = pwsp_join_avx512(start, length);
    pwsp_block block = {pwsp_interleave_avx512(pwsp_take_words[0], pwsp_put_words[0], id_tag,
                                               request_head, start_length),
                        pwsp_interleave_avx512(pwsp_take_words[1], pwsp_put_words[1], id_tag,
                                               request_head, start_length),
                        pwsp_interleave_avx512(pwsp_take_words[2], pwsp_put_words[2], id_tag,
                                               request_head, start_length)};
    return block;
}

// Stores a block for heads 0, step, 2 * step, ... below head_count; `ids` work ids lie between.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_block_store(pwsp_block block, uint32_t head_count,
                                                    uint32_t step, uint32_t ids,
                                                    PTOWSP_GM ptowsp_work *work) {
    const __m512i heads = _mm512_set1_epi32((int)step);
    const __m512i next_0 = _mm512_mask_set1_epi32(_mm512_maskz_mov_epi32(PWSP_HEAD_WORDS_0, heads),
                                                  PWSP_ID_WORDS_0, (int)ids);
    const __m512i next_1 = _mm512_mask_set1_epi32(_mm512_maskz_mov_epi32(PWSP_HEAD_WORDS_1, heads),
                                                  PWSP_ID_WORDS_1, (int)ids);
    const __m512i next_2 = _mm512_mask_set1_epi32(_mm512_maskz_mov_epi32(PWSP_HEAD_WORDS_2, heads),
                                                  PWSP_ID_WORDS_2, (int)ids);
    __m512i a = block.a, b = block.b, c = block.c;
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

// Writes a sequence of more than eight pieces, which needs no room behind it.
PWSP_AVX512 static void pwsp_write_long_avx512(const pwsp_emit_state *state, const pwsp_cuts *cuts,
                                               uint32_t i, uint32_t request, uint32_t work_id,
                                               PTOWSP_GM ptowsp_work *work) {
    const uint32_t n = cuts->piece_count[i], blocks = (n + 7) / 8;
    for (uint32_t k = 0; k < blocks; k++) {
        uint32_t c0 = k + 1 < blocks ? k * 8 : n - 8;
        pwsp_block block = pwsp_block_make(cuts, i, state->desc->align, request, work_id, c0,
                                           &pwsp_block_layouts[0]);
        pwsp_block_store(block, state->desc->head_count, 1, n, work + c0);
    }
}

// -- one head: blocks across sequences ------------------------------------------------------------

enum { PWSP_GROUP = 16, PWSP_GROUP_MAX = 1024 };  // sequences, and descriptors of them

// The fields of a group of sequences, and where the descriptors of each begin.
typedef struct pwsp_group {
    __m512i begin, piece_count, length, longer_from, last_length, tier;
} pwsp_group;

// Of 16 descriptors: two halves of eight, as 8-byte pairs (id tag), (request head), (start length).
typedef struct pwsp_pairs {
    __m512i id_tag[2], request_head[2], start_length[2];
} pwsp_pairs;

// Unpacking 4-byte fields gives pairs 0 to 7 and 8 to 15 if they are in this order.
static const uint32_t pwsp_group_order[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};

// Which pair comes where in the three vectors of eight descriptors: of id_tag from 0, of request_head
// from 8, and at the places of the mask of start_length.
static const uint64_t pwsp_group_pairs[3][8] = {
    {0, 8, 0, 1, 9, 1, 2, 10}, {2, 3, 11, 3, 4, 12, 4, 5}, {13, 5, 6, 14, 6, 7, 15, 7}};
static const uint8_t pwsp_group_masks[3] = {0x24, 0x49, 0x92};

// The descriptors from `first` on of a group, of which each has the number of its sequence.
PWSP_AVX512 PWSP_FORCE_INLINE pwsp_pairs pwsp_group_make(const pwsp_group *group,
                                                         const uint8_t *numbers, uint32_t first,
                                                         uint32_t align_tokens, uint32_t request,
                                                         uint32_t work_id) {
    const __m512i zero = _mm512_setzero_si512(), align = _mm512_set1_epi32((int)align_tokens);
    __m512i order, sequence;
    __m128i bytes;
    memcpy(&order, pwsp_group_order, sizeof order);
    memcpy(&bytes, numbers + first, sizeof bytes);
    sequence = _mm512_maskz_cvtepu8_epi32(0xffff, bytes);
    sequence = _mm512_maskz_permutexvar_epi32(0xffff, order, sequence);
#define PWSP_OF(field) _mm512_maskz_permutexvar_epi32(0xffff, sequence, group->field)
    const __m512i at = _mm512_add_epi32(order, _mm512_set1_epi32((int)first));
    const __m512i c = _mm512_sub_epi32(at, PWSP_OF(begin));
    const __m512i piece = PWSP_OF(length), longer_from = PWSP_OF(longer_from);
    const __m512i last = _mm512_sub_epi32(PWSP_OF(piece_count), _mm512_set1_epi32(1));
    const __m512i longer = _mm512_maskz_max_epi32(0xffff, _mm512_sub_epi32(c, longer_from), zero);
    const __m512i start =
        _mm512_add_epi32(_mm512_mullo_epi32(c, piece), _mm512_mullo_epi32(longer, align));
    const __mmask16 is_last = _mm512_cmpeq_epi32_mask(c, last);
    __m512i length =
        _mm512_mask_add_epi32(piece, _mm512_cmpge_epi32_mask(c, longer_from), piece, align);
    length = _mm512_mask_mov_epi32(length, is_last, PWSP_OF(last_length));
    __m512i tag = PWSP_OF(tier);
    tag = _mm512_mask_or_epi32(tag, _mm512_cmpeq_epi32_mask(c, zero), tag,
                               _mm512_set1_epi32(PTOWSP_WORK_FIRST << 8));
    tag = _mm512_mask_or_epi32(tag, is_last, tag, _mm512_set1_epi32(PTOWSP_WORK_LAST << 8));
#undef PWSP_OF
    const __m512i id = _mm512_add_epi32(at, _mm512_set1_epi32((int)work_id));
    const __m512i requests = _mm512_add_epi32(sequence, _mm512_set1_epi32((int)request));
    const pwsp_pairs pairs = {{_mm512_maskz_unpacklo_epi32(0xffff, id, tag),
                               _mm512_maskz_unpackhi_epi32(0xffff, id, tag)},
                              {_mm512_maskz_unpacklo_epi32(0xffff, requests, zero),
                               _mm512_maskz_unpackhi_epi32(0xffff, requests, zero)},
                              {_mm512_maskz_unpacklo_epi32(0xffff, start, length),
                               _mm512_maskz_unpackhi_epi32(0xffff, start, length)}};
    return pairs;
}

// Vector `part` of the three of eight descriptors.
PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_group_words(const pwsp_pairs *pairs, uint32_t half,
                                                       uint32_t part) {
    __m512i take;
    memcpy(&take, pwsp_group_pairs[part], sizeof take);
    return _mm512_mask_permutexvar_epi64(
        _mm512_permutex2var_epi64(pairs->id_tag[half], take, pairs->request_head[half]),
        pwsp_group_masks[part], take, pairs->start_length[half]);
}

// Stores 16 descriptors.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_group_store(const pwsp_pairs *pairs, char *bytes) {
    // Written out, and none of them in an array: gcc 12 would copy them by way of the stack.
    const __m512i a = pwsp_group_words(pairs, 0, 0), b = pwsp_group_words(pairs, 0, 1),
                  c = pwsp_group_words(pairs, 0, 2), d = pwsp_group_words(pairs, 1, 0),
                  e = pwsp_group_words(pairs, 1, 1), f = pwsp_group_words(pairs, 1, 2);
    memcpy(bytes, &a, 64);
    memcpy(bytes + 64, &b, 64);
    memcpy(bytes + 128, &c, 64);
    memcpy(bytes + 192, &d, 64);
    memcpy(bytes + 256, &e, 64);
    memcpy(bytes + 320, &f, 64);
}

// The numbers of a group of sequences of the cuts, where each has them; begins[i] is where.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_group_number(const uint32_t *piece_counts,
                                                     const uint32_t *begins, uint8_t *numbers) {
    for (uint32_t i = 0; i < PWSP_GROUP; i++) {
        const uint32_t n = piece_counts[i];
        for (uint32_t c = 0; c < n + PWSP_GROUP; c += 64) {  // as far as a block may reach
            memset(numbers + begins[i] + c, (int)i, 64);
        }
    }
}

// Writes the `total` descriptors of a group, whose cuts are from `first` on; those past the end have
// no pieces.
PWSP_AVX512 static void pwsp_group_write(const pwsp_emit_state *state, const pwsp_cuts *cuts,
                                         uint32_t first, uint32_t request, uint32_t total,
                                         const uint32_t *begins, const uint8_t *numbers,
                                         pwsp_emit_cursor *cursor) {
    pwsp_group group;
    memcpy(&group.begin, begins, sizeof group.begin);
    memcpy(&group.piece_count, cuts->piece_count + first, sizeof group.piece_count);
    memcpy(&group.length, cuts->length + first, sizeof group.length);
    memcpy(&group.longer_from, cuts->longer_from + first, sizeof group.longer_from);
    memcpy(&group.last_length, cuts->last_length + first, sizeof group.last_length);
    memcpy(&group.tier, cuts->tier + first, sizeof group.tier);
    const uint32_t align = state->desc->align, work_id = cursor->work_id;
    uint32_t at = 0;
    for (; at < total && at + PWSP_GROUP <= cursor->room; at += PWSP_GROUP) {
        const pwsp_pairs pairs = pwsp_group_make(&group, numbers, at, align, request, work_id);
        pwsp_group_store(&pairs, (char *)(cursor->work + at));
    }
    if (at < total) {  // no room for 16
        char bytes[PWSP_GROUP * sizeof *cursor->work];
        const pwsp_pairs pairs = pwsp_group_make(&group, numbers, at, align, request, work_id);
        pwsp_group_store(&pairs, bytes);
        memcpy((void *)(cursor->work + at), bytes,
               (size_t)(cursor->room - at) * sizeof *cursor->work);
    }
    cursor->work += total;
    cursor->room -= total;
    cursor->work_id += total;
}

// Sequences [first, end) of the cuts; request is that of the cuts' first one.
PWSP_AVX512 static void pwsp_write_avx512(const pwsp_emit_state *state, const pwsp_cuts *cuts,
                                          uint32_t first, uint32_t end, uint32_t request,
                                          pwsp_emit_cursor *cursor) {
    const uint32_t head_count = state->desc->head_count, align = state->desc->align;
    PTOWSP_GM ptowsp_work *work = cursor->work;
    uint64_t room = cursor->room;
    uint32_t work_id = cursor->work_id;
    for (uint32_t i = first; i < end; i++) {
        const uint32_t n = cuts->piece_count[i];
        const uint64_t work_count = (uint64_t)n * head_count;
        if (n > 8) {
            pwsp_write_long_avx512(state, cuts, i, request + i, work_id, work);
        } else if (PWSP_LIKELY(room >= work_count + 8)) {
            const pwsp_block_layout *layout = &pwsp_block_layouts[n];
            pwsp_block block = pwsp_block_make(cuts, i, align, request + i, work_id, 0, layout);
            pwsp_block_store(block, head_count, layout->head_count, layout->head_count * n, work);
        } else if (n > 0) {
            pwsp_emit_plain(state, cuts, i, request + i, work_id, work);
        }
        work += work_count;
        room -= work_count;
        work_id += (uint32_t)work_count;
    }
    cursor->work = work;
    cursor->room = room;
    cursor->work_id = work_id;
}

// The same for one head. All numbers are written before the first is read: a load of bytes that
// several stores have written waits until these are in the cache.
PWSP_AVX512 static void pwsp_write_one_head_avx512(const pwsp_emit_state *state,
                                                   const pwsp_cuts *cuts, uint32_t count,
                                                   uint32_t request, pwsp_emit_cursor *cursor) {
    uint8_t numbers[PWSP_CUTS / PWSP_GROUP][PWSP_GROUP_MAX + 2 * 64];
    uint32_t begins[PWSP_CUTS];
    uint64_t totals[PWSP_CUTS / PWSP_GROUP];
    for (uint32_t first = 0, g = 0; first < count; first += PWSP_GROUP, g++) {
        totals[g] = 0;
        for (uint32_t i = first; i < first + PWSP_GROUP; i++) {
            begins[i] = (uint32_t)totals[g];
            totals[g] += cuts->piece_count[i];
        }
        if (totals[g] <= PWSP_GROUP_MAX) {
            pwsp_group_number(cuts->piece_count + first, begins + first, numbers[g]);
        }
    }
    for (uint32_t first = 0, g = 0; first < count; first += PWSP_GROUP, g++) {
        const uint32_t end = count - first < PWSP_GROUP ? count : first + PWSP_GROUP;
        if (totals[g] <= PWSP_GROUP_MAX) {
            pwsp_group_write(state, cuts, first, request + first, (uint32_t)totals[g],
                             begins + first, numbers[g], cursor);
        } else {
            pwsp_write_avx512(state, cuts, first, end, request, cursor);
        }
    }
}

// floor(x / divisor) of each lane, below 2^31.
PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_divide_avx512(__m512i x, pwsp_divisor divisor) {
    const __m512i multiplier = _mm512_set1_epi64((int64_t)divisor.multiplier);
    const __m128i shift = _mm_cvtsi32_si128((int)divisor.shift);
    __m512i odd = _mm512_maskz_srli_epi64(PWSP_ALL_8, x, 32);
    x = _mm512_maskz_srl_epi64(PWSP_ALL_8, _mm512_maskz_mul_epu32(PWSP_ALL_8, x, multiplier),
                               shift);
    odd = _mm512_maskz_mul_epu32(PWSP_ALL_8, odd, multiplier);
    odd = _mm512_maskz_srl_epi64(PWSP_ALL_8, odd, shift);
    return _mm512_mask_blend_epi32(0xaaaa, x, _mm512_maskz_slli_epi64(PWSP_ALL_8, odd, 32));
}

// floor(a / b) of eight lanes. In double precision: for a < 2^32 a quotient that is not whole is
// further from the next whole number than rounding can move it.
PWSP_AVX512 PWSP_FORCE_INLINE __m256i pwsp_quotient_avx512(__m256i a, __m256i b) {
    __m512d quotient = _mm512_maskz_div_pd(PWSP_ALL_8, _mm512_maskz_cvtepu32_pd(PWSP_ALL_8, a),
                                           _mm512_maskz_cvtepu32_pd(PWSP_ALL_8, b));
    return _mm512_maskz_cvttpd_epu32(PWSP_ALL_8, quotient);
}

// As pwsp_cut_portable. Lanes past the end, and empty sequences, are cut as if of length 1, and
// then given no pieces.
PWSP_AVX512 static void pwsp_cut_avx512(const pwsp_emit_state *state,
                                        const PTOWSP_GM int32_t *lengths, uint32_t count,
                                        pwsp_cuts *cuts) {
    const pwsp_emit_desc *desc = state->desc;
    const __m512i one = _mm512_set1_epi32(1), zero = _mm512_setzero_si512();
    const __m512i align = _mm512_set1_epi32((int)desc->align);
    for (uint32_t i = 0; i < count; i += 16) {
        __mmask16 valid = _cvtu32_mask16(count - i >= 16 ? 0xffff : (1u << (count - i)) - 1);
        __m512i given = _mm512_maskz_loadu_epi32(valid, lengths + i);
        __mmask16 positive = _mm512_cmpgt_epi32_mask(given, zero);
        __m512i x = _mm512_mask_mov_epi32(one, positive, given);
        __m512i x_less = _mm512_sub_epi32(x, one);
        __m512i n = _mm512_add_epi32(pwsp_divide_avx512(x_less, state->by_chunk), one);
        __m512i piece = _mm512_set1_epi32((int)desc->chunk), longer_from = n;
        if (desc->chunks == PTOWSP_CHUNKS_BALANCED) {
            __m512i units = _mm512_add_epi32(pwsp_divide_avx512(x_less, state->by_align), one);
            __m512i each = pwsp_join_avx512(
                pwsp_quotient_avx512(pwsp_half_avx512(units, 0), pwsp_half_avx512(n, 0)),
                pwsp_quotient_avx512(pwsp_half_avx512(units, 1), pwsp_half_avx512(n, 1)));
            piece = _mm512_mullo_epi32(each, align);
            __m512i rest = _mm512_sub_epi32(units, _mm512_mullo_epi32(each, n));
            longer_from = _mm512_sub_epi32(n, rest);
        }
        __m512i before = _mm512_sub_epi32(n, one);
        __m512i longer =
            _mm512_maskz_max_epi32(0xffff, _mm512_sub_epi32(before, longer_from), zero);
        __m512i start =
            _mm512_add_epi32(_mm512_mullo_epi32(before, piece), _mm512_mullo_epi32(longer, align));
        __m512i last_length = _mm512_sub_epi32(x, start), tier = zero;
        for (uint32_t t = desc->tier_count; t-- > 0;) {  // so that the first one wins
            __mmask16 covers =
                _mm512_cmpge_epi32_mask(x, _mm512_set1_epi32(desc->tiers[t].length_min));
            covers = _mm512_mask_cmple_epi32_mask(covers, x,
                                                  _mm512_set1_epi32(desc->tiers[t].length_max));
            tier = _mm512_mask_set1_epi32(tier, covers, desc->tiers[t].id);
        }
        n = _mm512_maskz_mov_epi32(positive, n);
        memcpy(cuts->piece_count + i, &n, sizeof n);
        memcpy(cuts->length + i, &piece, sizeof piece);
        memcpy(cuts->longer_from + i, &longer_from, sizeof longer_from);
        memcpy(cuts->last_length + i, &last_length, sizeof last_length);
        memcpy(cuts->tier + i, &tier, sizeof tier);
    }
}

#endif

PWSP_INTERNAL void pwsp_emit(const pwsp_emit_desc *desc, uint32_t first, uint32_t end,
                             uint32_t first_work_id, PTOWSP_GM ptowsp_work *work,
                             uint64_t work_count) {
    const pwsp_emit_state state = {desc, pwsp_divisor_make(desc->chunk),
                                   pwsp_divisor_make(desc->align)};
    pwsp_emit_cursor cursor = {work, work_count, first_work_id};
    pwsp_cuts cuts;
    for (uint32_t request = first; request < end;) {
        uint32_t count = (uint32_t)pwsp_min_u64(PWSP_CUTS, end - request);
#if PWSP_X86
        if (pwsp_cpu_has_avx512()) {
            pwsp_cut_avx512(&state, desc->lengths + request, count, &cuts);
            if (desc->head_count == 1) {
                pwsp_write_one_head_avx512(&state, &cuts, count, request, &cursor);
            } else {
                pwsp_write_avx512(&state, &cuts, 0, count, request, &cursor);
            }
            request += count;
            continue;
        }
#endif
        pwsp_cut_portable(&state, desc->lengths + request, count, &cuts);
        pwsp_write_portable(&state, &cuts, count, request, &cursor);
        request += count;
    }
    PTOWSP_ASSERT(cursor.room == 0);
}
