// Combining what experts made of a token: a sum in the order of k, per element.
//
// A strip of a row stays in registers while all k rows are added to it. Products and sums are rounded
// apart, so the bits are the same on every machine, and for any division of tokens among lanes.

#include "../base/base.h"

#define PWSP_COMBINE_STRIP 16

// One strip of `width` elements from column `at` on; inlined with a constant width.
PWSP_FORCE_INLINE void pwsp_combine_strip(const PTOWSP_GM uint32_t *rows,
                                          const PTOWSP_GM float *gates, uint32_t top_k,
                                          const PTOWSP_GM float *made, uint32_t dim, uint32_t at,
                                          uint32_t width, PTOWSP_GM float *out) {
    PWSP_ROUND_APART
    float sum[PWSP_COMBINE_STRIP];
    for (uint32_t i = 0; i < width; i++) {
        sum[i] = 0.0f;
    }
    for (uint32_t k = 0; k < top_k; k++) {
        if (rows[k] == PTOWSP_MOE_NO_ROW) {
            continue;
        }
        const PTOWSP_GM float *row = made + (size_t)rows[k] * dim + at;
        const float gate = gates ? gates[k] : 1.0f;
        for (uint32_t i = 0; i < width; i++) {
            const float product = gate * row[i];
            sum[i] = sum[i] + product;
        }
    }
    for (uint32_t i = 0; i < width; i++) {
        out[at + i] = sum[i];
    }
}

void ptowsp_moe_combine(const PTOWSP_GM uint32_t *rows, uint32_t top_k,
                        const PTOWSP_GM float *gates, const PTOWSP_GM float *made, uint32_t dim,
                        uint32_t token_begin, uint32_t token_end, PTOWSP_GM float *out) {
    if (!rows || (dim > 0 && (!made || !out))) {
        return;
    }
    for (uint32_t token = token_begin; token < token_end; token++) {
        const size_t pair = (size_t)token * top_k;
        const PTOWSP_GM float *gate = gates ? gates + pair : gates;
        PTOWSP_GM float *to = out + (size_t)token * dim;
        uint32_t at = 0;
        for (; dim - at >= PWSP_COMBINE_STRIP; at += PWSP_COMBINE_STRIP) {
            pwsp_combine_strip(rows + pair, gate, top_k, made, dim, at, PWSP_COMBINE_STRIP, to);
        }
        if (at < dim) {
            pwsp_combine_strip(rows + pair, gate, top_k, made, dim, at, dim - at, to);
        }
    }
}
