// Strided tiles of memory, strided layouts of tensors, and whether they overlap.
//
// Addresses are numbers modulo 2^64, so no address overflows: a region may touch either end of the
// address space, or run across it. It must span less than 2^63 bytes.

#ifndef PWSP_REGION_H
#define PWSP_REGION_H

#include "../base/base.h"

// A tensor's last two dimensions are rows and columns; these are the most before them.
#define PWSP_TENSOR_LEAD_MAX (PTOWSP_TENSOR_RANK_MAX - 2)

// A strided tile of memory: element (r, c) lies at base + r * row_stride + c * col_stride (bytes,
// any sign, also 0) and has `size` bytes. rows, cols and size are > 0. The stride of a single row
// or column means nothing.
typedef struct pwsp_region {
    uint64_t base;
    int64_t row_stride, col_stride;
    uint32_t rows, cols;
    uint32_t size;
} pwsp_region;

// The half-open interval of bytes that holds the region. high is below low if the region runs
// across the end of the address space, and 0 if it ends with the last byte.
PWSP_INTERNAL void pwsp_region_span(const pwsp_region *region, uint64_t *out_low,
                                    uint64_t *out_high);

// Whether base, rows, cols, size and the strides that mean something are the same. Regions that are
// described otherwise may still have the same bytes.
PWSP_INTERNAL bool pwsp_region_equal(const pwsp_region *a, const pwsp_region *b);

// Whether the regions have a byte in common: exact, for any strides.
// Cost     Some 5 ns when spans are apart, first elements are the same, nothing has gaps, or rows
//          without gaps have one stride (one division); 15 ns with gaps in columns too. Two strides
//          take Euclid's algorithm. Only three or four different strides, all with gaps, need a
//          loop over rows of one region near the other, at worst over pairs of rows.
PWSP_INTERNAL bool pwsp_region_overlaps(const pwsp_region *a, const pwsp_region *b);

// Whether every byte of inner is in outer. true is certain. false is so too when outer has no gaps,
// and when rows of both have no gaps and one stride. Else it may be wrong: each row and column step
// of inner has to be a multiple of a stride of outer's, or to stay inside one block without gaps;
// and rows of inner that run across rows of outer are not followed.
PWSP_INTERNAL bool pwsp_region_contains(const pwsp_region *outer, const pwsp_region *inner);

// A tensor's layout: element (i, j, ...) has offset i * strides[0] + j * strides[1] + ..., all in
// elements. Sizes are >= 0; the stride of a dimension of size 1 means nothing.

// Whether different indices surely have different offsets: sorted, each stride exceeds the largest
// distance that the smaller ones reach. true for a tensor with no element or one.
PWSP_INTERNAL bool pwsp_layout_is_injective(uint32_t rank, const int64_t *shape,
                                            const int64_t *strides);

// The lowest and the highest offset, inclusive; 0 and -1 for a tensor without elements. false, with
// nothing stored, if the distance from lowest to highest does not fit 63 bits.
PWSP_INTERNAL bool pwsp_layout_span(uint32_t rank, const int64_t *shape, const int64_t *strides,
                                    int64_t *out_low, int64_t *out_high);

#endif
