// Descriptors with AVX-512.
//
// Eight descriptors are 48 words of 32 bits, three vectors. A block of eight is computed in
// registers, field by field, and then interleaved. The code does not branch on the number of pieces n: n
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
// blocks go across sequences, if chunks are below 2^15: each sequence writes its number into a byte for
// each of its descriptors, and sixteen take their fields by these numbers, two fields in a word. As
// sequences without descriptors have been left out, they are of sixteen sequences at most. One
// permutation makes each vector of words; ids, which just count, lie in its index, kept by its mask.
//
// On a Zen 4, us per 1,000 descriptors of 256 sequences: 8 heads 0.53, 1 head 0.7, memcpy 0.42.

#include "../base/cpu.h"
#include "generate_cuts.h"

#if PWSP_X86

// Which piece and head each of the eight descriptors of a block has, for n pieces per head.
typedef struct pwsp_block_layout {
    uint32_t piece[8];
    uint32_t head[8];
    uint32_t kv_head_count;  // whole heads in a block
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

// Stores a block for heads 0, step, 2 * step, ... below kv_head_count; `ids` work ids lie between.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_block_store(pwsp_block block, uint32_t kv_head_count,
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
    for (uint64_t head = 0; head < kv_head_count; head += step) {
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

// Writes a sequence of more than eight pieces, which needs no room after it.
PWSP_AVX512 static void pwsp_write_long_avx512(const pwsp_emit_state *state, const pwsp_cuts *cuts,
                                               uint32_t i, uint32_t request, uint32_t work_id,
                                               PTOWSP_GM ptowsp_work *work) {
    const uint32_t n = cuts->piece_count[i], blocks = (n + 7) / 8;
    for (uint32_t k = 0; k < blocks; k++) {
        uint32_t c0 = k + 1 < blocks ? k * 8 : n - 8;
        pwsp_block block = pwsp_block_make(cuts, i, state->desc->align, request, work_id, c0,
                                           &pwsp_block_layouts[0]);
        pwsp_block_store(block, state->desc->kv_head_count, 1, n, work + c0);
    }
}

PWSP_AVX512 static void pwsp_write_avx512(const pwsp_emit_state *state, const pwsp_cuts *cuts,
                                          uint32_t count, pwsp_emit_cursor *cursor) {
    const uint32_t kv_head_count = state->desc->kv_head_count, align = state->desc->align;
    PTOWSP_GM ptowsp_work *work = cursor->work;
    uint64_t room = cursor->room;
    uint32_t work_id = cursor->work_id;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t n = cuts->piece_count[i], request = cuts->request[i];
        const uint64_t work_count = (uint64_t)n * kv_head_count;
        if (n > 8) {
            pwsp_write_long_avx512(state, cuts, i, request, work_id, work);
        } else if (PWSP_LIKELY(room >= work_count + 8)) {
            const pwsp_block_layout *layout = &pwsp_block_layouts[n];
            pwsp_block block = pwsp_block_make(cuts, i, align, request, work_id, 0, layout);
            pwsp_block_store(block, kv_head_count, layout->kv_head_count, layout->kv_head_count * n,
                             work);
        } else {
            pwsp_emit_plain(state, cuts, i, request, work_id, work);
        }
        work += work_count;
        room -= work_count;
        work_id += (uint32_t)work_count;
    }
    cursor->work = work;
    cursor->room = room;
    cursor->work_id = work_id;
}

// -- cutting ---------------------------------------------------------------------------------------

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

PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_load_avx512(const uint32_t *words) {
    __m512i x;
    memcpy(&x, words, sizeof x);
    return x;
}

// Divides sixteen numbers below 2^31 by b, in single precision: an inverse that is a little too small,
// by more than all roundings, gives quotients that are at most 1 too small after one round if they are
// below 2^19, and after two if they are not. It is an estimate within 2^-14, made better once.
PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_quotient_avx512(__m512i a, __m512i b, uint32_t rounds,
                                                           __m512i *out_rest) {
    const __m512 divisor = _mm512_maskz_cvtepi32_ps(0xffff, b);
    const __m512 estimated = _mm512_maskz_rcp14_ps(0xffff, divisor);
    const __m512 inverse = _mm512_mul_ps(
        estimated, _mm512_fnmadd_ps(divisor, estimated, _mm512_set1_ps(2.0f - 1.0f / (1 << 20))));
    __m512i quotient = _mm512_setzero_si512();
    for (uint32_t round = 0; round < rounds; round++) {
        const __m512 estimate = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, a), inverse);
        const __m512i more = _mm512_maskz_cvttps_epi32(0xffff, estimate);
        quotient = _mm512_add_epi32(quotient, more);
        a = _mm512_sub_epi32(a, _mm512_mullo_epi32(more, b));
    }
    const __mmask16 is_less = _mm512_cmpge_epi32_mask(a, b);
    *out_rest = _mm512_mask_sub_epi32(a, is_less, a, b);
    return _mm512_mask_add_epi32(quotient, is_less, quotient, _mm512_set1_epi32(1));
}

// The lengths above 0 of `count` sequences from `first` on, and which these are. Returns how many.
PWSP_AVX512 static uint32_t pwsp_read_avx512(const PTOWSP_GM int32_t *lengths, uint32_t first,
                                             uint32_t count, uint32_t *out_lengths,
                                             uint32_t *out_requests) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i += 16) {
        const __mmask16 valid = _cvtu32_mask16(count - i >= 16 ? 0xffff : (1u << (count - i)) - 1);
        const __m512i given = _mm512_maskz_loadu_epi32(valid, lengths + first + i);
        const __mmask16 positive = _mm512_cmpgt_epi32_mask(given, zero);
        __m512i x = given;
        __m512i request = _mm512_add_epi32(order, _mm512_set1_epi32((int)(first + i)));
        if (_cvtmask16_u32(positive) != 0xffff) {
            x = _mm512_maskz_compress_epi32(positive, x);
            request = _mm512_maskz_compress_epi32(positive, request);
        }
        memcpy(out_lengths + found, &x, sizeof x);
        memcpy(out_requests + found, &request, sizeof request);
        found += (uint32_t)__builtin_popcount(_cvtmask16_u32(positive));
    }
    return found;
}

// The last tier needs no look, as each length has one.
PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_tier_avx512(const pwsp_emit_desc *desc, __m512i x) {
    uint32_t t = desc->tier_count - 1;
    __m512i tier = _mm512_set1_epi32(desc->tiers[t].id);
    while (t-- > 0) {  // so that the first one wins
        __mmask16 covers = _mm512_cmpge_epi32_mask(x, _mm512_set1_epi32(desc->tiers[t].length_min));
        covers =
            _mm512_mask_cmple_epi32_mask(covers, x, _mm512_set1_epi32(desc->tiers[t].length_max));
        tier = _mm512_mask_set1_epi32(tier, covers, desc->tiers[t].id);
    }
    return tier;
}

// Sixteen sequences, as pwsp_cuts has them.
typedef struct pwsp_cut_lanes {
    __m512i piece_count, length, longer_from, last_length;
} pwsp_cut_lanes;

// As pwsp_cut_portable, of lengths above 0. Nothing reads how lanes past the end are cut; their lengths
// may be anything.
PWSP_AVX512 PWSP_FORCE_INLINE pwsp_cut_lanes pwsp_cut_avx512(const pwsp_emit_state *state,
                                                             __m512i lengths) {
    const pwsp_emit_desc *desc = state->desc;
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i align = _mm512_set1_epi32((int)desc->align);
    const __m512i x = _mm512_maskz_max_epi32(0xffff, lengths, one);
    const __m512i less = _mm512_sub_epi32(x, one);
    const __m512i n = _mm512_add_epi32(pwsp_divide_avx512(less, state->by_chunk), one);
    pwsp_cut_lanes cut = {n, _mm512_set1_epi32((int)desc->chunk), n, x};
    if (desc->chunks == PTOWSP_CHUNKS_FIXED) {
        const __m512i over = _mm512_mullo_epi32(_mm512_sub_epi32(n, one), cut.length);
        cut.last_length = _mm512_sub_epi32(x, over);
        return cut;
    }
    const uint32_t rounds = desc->chunk >> 19 < desc->align ? 1 : 2;  // units / n <= chunk / align
    __m512i units = x, rest;
    if (desc->align > 1) {
        units = _mm512_add_epi32(pwsp_divide_avx512(less, state->by_align), one);
    }
    cut.length = pwsp_quotient_avx512(units, n, rounds, &rest);
    cut.longer_from = _mm512_sub_epi32(n, rest);
    cut.last_length = _mm512_add_epi32(cut.length, _mm512_maskz_min_epi32(0xffff, rest, one));
    if (desc->align > 1) {
        const __m512i over = _mm512_sub_epi32(_mm512_mullo_epi32(units, align), x);
        cut.length = _mm512_mullo_epi32(cut.length, align);
        cut.last_length = _mm512_sub_epi32(_mm512_mullo_epi32(cut.last_length, align), over);
    }
    return cut;
}

// Cuts sequences into `cuts`. Returns how many have descriptors.
PWSP_AVX512 static uint32_t pwsp_cuts_avx512(const pwsp_emit_state *state, uint32_t request,
                                             uint32_t count, pwsp_cuts *cuts) {
    uint32_t lengths[PWSP_CUTS + 16];
    const uint32_t found =
        pwsp_read_avx512(state->desc->lengths, request, count, lengths, cuts->request);
    for (uint32_t i = 0; i < found; i += 16) {
        const __m512i x = pwsp_load_avx512(lengths + i);
        const pwsp_cut_lanes cut = pwsp_cut_avx512(state, x);
        const __m512i tier = pwsp_tier_avx512(state->desc, x);
        memcpy(cuts->piece_count + i, &cut.piece_count, 64);
        memcpy(cuts->length + i, &cut.length, 64);
        memcpy(cuts->longer_from + i, &cut.longer_from, 64);
        memcpy(cuts->last_length + i, &cut.last_length, 64);
        memcpy(cuts->tier + i, &tier, 64);
    }
    memset(cuts->piece_count + found, 0, 64);  // after the last
    return found;
}

// -- one head: blocks across sequences ------------------------------------------------------------

enum { PWSP_RUN_MAX = 64 * PWSP_CUTS };  // descriptors of the cuts

// Sequences, and which each descriptor is of. Numbers of descriptors and lengths of pieces are below
// 2^15, so two of them are one word, the first one the lower half.
typedef struct pwsp_run {
    uint32_t begin_switch[PWSP_CUTS + 16];  // its first descriptor, and its first that is longer
    uint32_t piece_align[PWSP_CUTS + 16];
    uint32_t tier_last[PWSP_CUTS + 16];  // and the length of the last piece
    const uint32_t *request;
    uint8_t of[PWSP_RUN_MAX + 32];  // the sequence of each descriptor; another after the last
} pwsp_run;

// Unpacking the words of two fields in this order gives the pairs of descriptors 0 to 7, and 8 to 15.
static const uint8_t pwsp_run_order[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};

// Where the words of eight descriptors come from: pairs (tag request) are words 0 to 15, and pairs
// (start length) 16 to 31. Numbers stand in the place of ids, zeros in the place of heads.
static const uint32_t pwsp_run_words[3][16] = {
    {0, 0, 1, 0, 16, 17, 1, 2, 3, 0, 18, 19, 2, 4, 5, 0},
    {20, 21, 3, 6, 7, 0, 22, 23, 4, 8, 9, 0, 24, 25, 5, 10},
    {11, 0, 26, 27, 6, 12, 13, 0, 28, 29, 7, 14, 15, 0, 30, 31}};

PWSP_AVX512 PWSP_FORCE_INLINE __m512i pwsp_of_avx512(const uint32_t *column, __m512i from) {
    return _mm512_maskz_permutexvar_epi32(0xffff, from, pwsp_load_avx512(column));
}

// Stores eight descriptors. Their ids lie in `words`, which become the next eight's.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_run_store(__m512i *words, __m512i tag_request,
                                                  __m512i start_length, char *bytes) {
#define PWSP_STORE(part, id_words, head_words)                                                     \
    do {                                                                                           \
        const __m512i x = _mm512_mask2_permutex2var_epi32(                                         \
            tag_request, words[part], (__mmask16) ~((id_words) | (head_words)), start_length);     \
        memcpy(bytes + 64 * (part), &x, 64);                                                       \
        words[part] = _mm512_add_epi32(words[part], _mm512_maskz_set1_epi32(id_words, 8));         \
    } while (0)
    PWSP_STORE(0, PWSP_ID_WORDS_0, PWSP_HEAD_WORDS_0);
    PWSP_STORE(1, PWSP_ID_WORDS_1, PWSP_HEAD_WORDS_1);
    PWSP_STORE(2, PWSP_ID_WORDS_2, PWSP_HEAD_WORDS_2);
#undef PWSP_STORE
}

// Sixteen descriptors, in the order above.
typedef struct pwsp_run_block {
    uint32_t first;     // all are of this sequence and the 15 after it:
    __m512i from;       // the number of it among these
    __mmask16 is_last;  // of its sequence
} pwsp_run_block;

PWSP_AVX512 PWSP_FORCE_INLINE pwsp_run_block pwsp_run_read(const pwsp_run *run, uint32_t at) {
    const uint8_t *number = run->of + at;
    __m128i own, next, order;
    memcpy(&own, number, sizeof own);
    memcpy(&next, number + 1, sizeof next);
    memcpy(&order, pwsp_run_order, sizeof order);
    const __m128i first = _mm_shuffle_epi8(own, _mm_setzero_si128());
    own = _mm_shuffle_epi8(own, order);
    const pwsp_run_block block = {number[0],
                                  _mm512_maskz_cvtepu8_epi32(0xffff, _mm_sub_epi8(own, first)),
                                  _mm_cmpneq_epi8_mask(own, _mm_shuffle_epi8(next, order))};
    return block;
}

// Stores 16 descriptors. Their numbers stand twice in each word.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_run_block_store(const pwsp_run *run, pwsp_run_block block,
                                                        __m512i numbers, __m512i align,
                                                        __m512i *words, char *bytes) {
    const __m512i zero = _mm512_setzero_si512(), low_half = _mm512_set1_epi32(0xffff);
    const __m512i high_half = _mm512_set1_epi32(1 << 16);  // as a factor
    // The piece, and how many before it are longer, if that is not below 0.
    const __m512i piece =
        _mm512_sub_epi16(numbers, pwsp_of_avx512(run->begin_switch + block.first, block.from));
    const __m512i piece_align = pwsp_of_avx512(run->piece_align + block.first, block.from);
    const __m512i start = _mm512_madd_epi16(_mm512_max_epi16(piece, zero), piece_align);
    const __m512i tier_last = pwsp_of_avx512(run->tier_last + block.first, block.from);
    const __mmask16 is_longer = _mm512_cmpge_epi32_mask(piece, zero);
    __m512i length = _mm512_and_si512(piece_align, low_half);
    length = _mm512_mask_add_epi32(length, is_longer, length, align);
    length = _mm512_mask_madd_epi16(length, block.is_last, tier_last, high_half);
    __m512i tag = _mm512_and_si512(tier_last, low_half);
    tag = _mm512_mask_or_epi32(tag, _mm512_testn_epi32_mask(piece, low_half), tag,
                               _mm512_set1_epi32(PTOWSP_WORK_FIRST << 8));
    tag = _mm512_mask_or_epi32(tag, block.is_last, tag, _mm512_set1_epi32(PTOWSP_WORK_LAST << 8));
    const __m512i request = pwsp_of_avx512(run->request + block.first, block.from);
    pwsp_run_store(words, _mm512_maskz_unpacklo_epi32(0xffff, tag, request),
                   _mm512_maskz_unpacklo_epi32(0xffff, start, length), bytes);
    pwsp_run_store(words, _mm512_maskz_unpackhi_epi32(0xffff, tag, request),
                   _mm512_maskz_unpackhi_epi32(0xffff, start, length), bytes + 192);
}

// Stores all `count` descriptors, in blocks of 16: the last block aside, where it has no room. A block
// is read while the one before is stored, as a long chain of operations begins with it.
PWSP_AVX512 static void pwsp_run_write(const pwsp_run *run, uint32_t align_tokens, uint32_t count,
                                       pwsp_emit_cursor *cursor) {
    const __m512i align = _mm512_set1_epi32((int)align_tokens);
    const int id = (int)cursor->work_id;
    __m512i words[3] = {_mm512_add_epi32(pwsp_load_avx512(pwsp_run_words[0]),
                                         _mm512_maskz_set1_epi32(PWSP_ID_WORDS_0, id)),
                        _mm512_add_epi32(pwsp_load_avx512(pwsp_run_words[1]),
                                         _mm512_maskz_set1_epi32(PWSP_ID_WORDS_1, id)),
                        _mm512_add_epi32(pwsp_load_avx512(pwsp_run_words[2]),
                                         _mm512_maskz_set1_epi32(PWSP_ID_WORDS_2, id))};
    __m128i order;
    memcpy(&order, pwsp_run_order, sizeof order);
    __m512i numbers = _mm512_maskz_cvtepu8_epi32(0xffff, order);
    numbers = _mm512_or_si512(numbers, _mm512_maskz_slli_epi32(0xffff, numbers, 16));
    char *bytes = (char *)cursor->work;
    const uint32_t whole = (count + 15) / 16 * 16 <= cursor->room ? count : count / 16 * 16;
    pwsp_run_block block = pwsp_run_read(run, 0);
    uint32_t at = 0;
    for (; at < whole; at += 16) {
        const pwsp_run_block next = pwsp_run_read(run, at + 16);
        pwsp_run_block_store(run, block, numbers, align, words, bytes);
        numbers = _mm512_add_epi16(numbers, _mm512_set1_epi16(16));
        bytes += 16 * sizeof(ptowsp_work);
        block = next;
    }
    if (at < count) {
        char spare[16 * sizeof(ptowsp_work)];
        pwsp_run_block_store(run, block, numbers, align, words, spare);
        memcpy(bytes, spare, (count - at) * sizeof(ptowsp_work));
    }
    cursor->work += count;
    cursor->room -= count;
    cursor->work_id += count;
}

PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_run_halves(__m512i low, __m512i high, uint32_t *out) {
    const __m512i x = _mm512_or_si512(low, _mm512_maskz_slli_epi32(0xffff, high, 16));
    memcpy(out, &x, sizeof x);
}

// Where the descriptors of each sequence begin: below 2^32, as they have ids. Returns how many there are,
// or PWSP_RUN_MAX + 1 for more.
PWSP_AVX512 PWSP_FORCE_INLINE uint32_t pwsp_run_begin(const pwsp_cuts *cuts, uint32_t count,
                                                      uint32_t align_tokens, uint32_t *begins,
                                                      pwsp_run *run) {
    const __m512i zero = _mm512_setzero_si512(), last = _mm512_set1_epi32(15);
    const __m512i align = _mm512_set1_epi32((int)align_tokens);
    __m512i before = zero;
    for (uint32_t i = 0; i < count; i += 16) {
        const __m512i n = pwsp_load_avx512(cuts->piece_count + i);
        __m512i end = _mm512_add_epi32(n, _mm512_maskz_alignr_epi32(0xffff, n, zero, 15));
        end = _mm512_add_epi32(end, _mm512_maskz_alignr_epi32(0xffff, end, zero, 14));
        end = _mm512_add_epi32(end, _mm512_maskz_alignr_epi32(0xffff, end, zero, 12));
        end = _mm512_add_epi32(end, _mm512_maskz_alignr_epi32(0xffff, end, zero, 8));
        end = _mm512_add_epi32(end, before);
        const __m512i begin = _mm512_sub_epi32(end, n);
        memcpy(begins + i, &begin, sizeof begin);
        before = _mm512_maskz_permutexvar_epi32(0xffff, last, end);
        const __m512i longer = pwsp_load_avx512(cuts->longer_from + i);
        pwsp_run_halves(begin, _mm512_add_epi32(begin, longer), run->begin_switch + i);
        pwsp_run_halves(pwsp_load_avx512(cuts->length + i), align, run->piece_align + i);
        pwsp_run_halves(pwsp_load_avx512(cuts->tier + i), pwsp_load_avx512(cuts->last_length + i),
                        run->tier_last + i);
    }
    const uint64_t total =
        count > 0 ? (uint64_t)begins[count - 1] + cuts->piece_count[count - 1] : 0;
    return (uint32_t)pwsp_min_u64(total, PWSP_RUN_MAX + 1);
}

// Numbers the descriptors. Sequences write 16 bytes, which the next ones write over; afterwards the few
// that have more pieces write those. So no branch depends on how many pieces a sequence has.
PWSP_AVX512 PWSP_FORCE_INLINE void pwsp_run_number(const uint32_t *piece_counts, uint32_t count,
                                                   const uint32_t *begins, uint32_t total,
                                                   uint8_t *of) {
    const __m128i one = _mm_set1_epi8(1);
    __m128i number = _mm_setzero_si128();
    for (uint32_t i = 0; i < count; i += 16) {
#pragma GCC unroll 16
        for (uint32_t k = 0; k < 16; k++) {
            memcpy(of + begins[i + k], &number, 16);
            number = _mm_add_epi8(number, one);
        }
    }
    for (uint32_t i = 0; i < count; i += 16) {
        const __m512i n = pwsp_load_avx512(piece_counts + i);
        uint32_t more = _cvtmask16_u32(_mm512_cmpgt_epu32_mask(n, _mm512_set1_epi32(16)));
        for (; more; more &= more - 1) {
            const uint32_t s = i + (uint32_t)__builtin_ctz(more), pieces = piece_counts[s];
            number = _mm_set1_epi8((char)s);
            for (uint32_t c = 16; c < pieces - 16; c += 16) {
                memcpy(of + begins[s] + c, &number, 16);
            }
            memcpy(of + begins[s] + pieces - 16, &number, 16);
        }
    }
    number = _mm_set1_epi8((char)count);
    memcpy(of + total, &number, 16);
}

// Writes cuts of one head. False if they have too many descriptors for numbers.
PWSP_AVX512 static bool pwsp_run_cuts(const pwsp_emit_state *state, const pwsp_cuts *cuts,
                                      uint32_t count, pwsp_emit_cursor *cursor) {
    pwsp_run run;
    uint32_t begins[PWSP_CUTS + 16];
    run.request = cuts->request;
    const uint32_t total = pwsp_run_begin(cuts, count, state->desc->align, begins, &run);
    if (total > PWSP_RUN_MAX) {
        return false;
    }
    pwsp_run_number(cuts->piece_count, count, begins, total, run.of);
    pwsp_run_write(&run, state->desc->align, total, cursor);
    return true;
}

PWSP_INTERNAL void pwsp_emit_avx512(const pwsp_emit_state *state, uint32_t request, uint32_t count,
                                    pwsp_emit_cursor *cursor) {
    const bool is_run = state->desc->kv_head_count == 1 && state->desc->chunk <= INT16_MAX;
    pwsp_cuts cuts;
    const uint32_t found = pwsp_cuts_avx512(state, request, count, &cuts);
    if (!is_run || !pwsp_run_cuts(state, &cuts, found, cursor)) {
        pwsp_write_avx512(state, &cuts, found, cursor);
    }
}

#endif
