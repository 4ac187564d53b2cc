// Products of experts on CPUs, for units of MoE plans (ptowsp.h, section 11):
//
//      outputs[row][column] = sum over d of weights[expert][column][d] * inputs[token of row][d]
//
// A unit's rows are taken in groups of up to four tokens, which share each weight that is read and
// converted. Of the columns of its part, 24 are computed for all rows before the next 24. So weights are read
// once per group, and from memory once per unit if 24 columns stay in the second-level cache.
//
//      F16     IEEE halves
//      Q8_0    blocks of 32: an f16 scale, then 32 signed bytes; 34 bytes, as in files of ggml
//
// Inputs and sums are f32. Which vector code runs is chosen once: AVX-512, AVX2 or plain C.

#ifndef MOE_KERNEL_H
#define MOE_KERNEL_H

#include "ptowsp.h"

typedef enum moe_type { MOE_F16 = 0, MOE_Q8_0, MOE_TYPE_COUNT } moe_type;

typedef struct moe_product {
    moe_type type;
    uint32_t expert_count;
    uint32_t column_count;  // of the outputs
    uint32_t depth;         // a multiple of 32
    const void *weights;    // [expert][column][depth]
    const float *inputs;    // [token][depth]
    const uint32_t
        *pairs;  // [row] pair of each row, as ptowsp_moe_sort makes them; NO_ROW is skipped.
                 // NULL: inputs are [row][depth], as those of a layer's second product
    uint32_t row_count;
    uint32_t top_k;         // a row's token is its pair / top_k
    uint32_t column_parts;  // of the plan
    float *outputs;         // [row][column]
} moe_product;

// Bytes of so many elements of a row of weights.
size_t moe_row_bytes(moe_type type, uint32_t depth);

// What is wrong with a product, or NULL. Plans and pairs are taken as they are.
const char *moe_product_check(const moe_product *product);

// Computes a unit. False, and nothing is written, if it is INVALID or not of such a product.
// Requires a product without faults. Units write different outputs, so any lanes may compute them.
bool moe_compute(const moe_product *product, const ptowsp_work *unit);

// "avx512", "avx2" or "portable".
const char *moe_variant(void);

#endif
