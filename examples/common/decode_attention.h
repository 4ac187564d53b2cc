// Decode attention over a paged KV cache: the kernel of the examples and the benchmark.
//
// One call does one work unit: the query rows of one KV head's group (grouped-query attention,
// Ainslie et al. 2023) against a range of KV tokens, and leaves the partial states that
// ptowsp_merge_partials joins. KV is read once for the whole group. Arithmetic is in f32, with
// online softmax in blocks of DECODE_BLOCK tokens. Variants for AVX-512, AVX2 and NEON are chosen
// at run time; others take portable C.

#ifndef DECODE_ATTENTION_H
#define DECODE_ATTENTION_H

#include "ptowsp.h"

#define DECODE_BLOCK   64   // tokens per step of the online softmax
#define DECODE_DIM_MAX 512  // largest head dimension; dimensions are multiples of 16

typedef enum decode_kv_type { DECODE_KV_F32, DECODE_KV_F16 } decode_kv_type;

// A paged KV cache. A page holds page_size tokens of every KV head:
//
//      pool[page][kv_head][K or V][slot][dim]
//
// and token t of a request is slot t % page_size of page pages[t / page_size].
typedef struct decode_kv {
    const void *pool;
    decode_kv_type type;
    uint32_t page_size;
    uint32_t kv_head_count;
    uint32_t dim;
} decode_kv;

// Attends tokens [start, start + count), count > 0, of the request whose page table is `pages`.
//
//      queries  [group][dim], already scaled by 1 / sqrt(dim)
//      states   [group], accs [group][dim]: written
void decode_attention(const decode_kv *kv, const uint32_t *pages, uint32_t kv_head, uint32_t start,
                      uint32_t count, const float *queries, uint32_t group, ptowsp_partial *states,
                      float *accs);

// The variant that decode_attention takes on this machine: "avx512", "avx2", "neon" or "portable".
const char *decode_attention_variant(void);

// IEEE 754 binary16: to it with rounding to nearest even, and from it, exactly.
uint16_t decode_f16_from_f32(float value);
float decode_f32_from_f16(uint16_t half);

// Memory for a KV pool, zeroed, on huge pages where the system has them (a paged cache touches
// pages at random, and with small ones every page misses the TLB); NULL when there is none. Freed
// by free().
void *decode_pool_allocate(size_t size);

// Bytes of an element.
size_t decode_kv_element_size(decode_kv_type type);

// The first element of a token's K row; its V row lies page_size * dim elements behind.
const char *decode_kv_row(const decode_kv *kv, const uint32_t *pages, uint32_t kv_head,
                          uint32_t token);

#endif
