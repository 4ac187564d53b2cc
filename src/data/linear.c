// Linear layouts: matrices over F2 of up to 64 by 64 bits, one word a column. Sums are exclusive or,
// so all that is asked of 2^in_bits indices is answered by elimination on in_bits columns.

#include "../base/base.h"

static uint64_t pwsp_linear_mask(uint32_t bits) {
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static bool pwsp_linear_is_valid(const ptowsp_linear *linear) {
    if (!linear || linear->in_bits > 64 || linear->out_bits > 64) {
        return false;
    }
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t mask = i < linear->in_bits ? pwsp_linear_mask(linear->out_bits) : 0;
        if (linear->columns[i] & ~mask) {
            return false;
        }
    }
    return true;
}

static ptowsp_linear pwsp_linear_zero(uint32_t in_bits, uint32_t out_bits) {
    PWSP_ZERO(ptowsp_linear, linear);
    linear.in_bits = in_bits;
    linear.out_bits = out_bits;
    return linear;
}

ptowsp_status ptowsp_linear_identity(uint32_t bits, ptowsp_linear *out_linear) {
    return ptowsp_linear_strided(bits, 0, out_linear);
}

ptowsp_status ptowsp_linear_strided(uint32_t bits, uint32_t shift, ptowsp_linear *out_linear) {
    if (!out_linear) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (bits > 64 || shift > 64 - bits) {
        return PTOWSP_UNSUPPORTED_SIZE;
    }
    ptowsp_linear linear = pwsp_linear_zero(bits, bits + shift);
    for (uint32_t i = 0; i < bits; i++) {
        linear.columns[i] = UINT64_C(1) << (i + shift);
    }
    *out_linear = linear;
    return PTOWSP_OK;
}

// The element's bits, lowest first: place in the block, owner, round.
ptowsp_status ptowsp_linear_blocked(uint32_t bits, uint32_t owner_bits, uint32_t block_bits,
                                    ptowsp_linear *out_linear) {
    if (!out_linear) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (bits > 64) {
        return PTOWSP_UNSUPPORTED_SIZE;
    }
    if (owner_bits > bits || block_bits > bits - owner_bits) {
        return PTOWSP_INVALID_PARAMS;
    }
    ptowsp_linear linear = pwsp_linear_zero(bits, bits);
    const uint32_t position_bits = bits - owner_bits;
    for (uint32_t i = 0; i < bits; i++) {
        uint32_t to = i < block_bits      ? i
                      : i < position_bits ? i + owner_bits
                                          : i - position_bits + block_bits;
        PTOWSP_ASSERT(to < bits);
        linear.columns[i] = UINT64_C(1) << to;
    }
    *out_linear = linear;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_linear_swizzle(uint32_t column_bits, uint32_t row_bits, uint32_t shift,
                                    uint32_t count, ptowsp_linear *out_linear) {
    if (!out_linear) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (column_bits > 64 || row_bits > 64 - column_bits) {
        return PTOWSP_UNSUPPORTED_SIZE;
    }
    if (count > column_bits || shift > row_bits || count > row_bits - shift) {
        return PTOWSP_INVALID_PARAMS;
    }
    ptowsp_linear linear = pwsp_linear_zero(column_bits + row_bits, column_bits + row_bits);
    for (uint32_t i = 0; i < linear.in_bits; i++) {
        linear.columns[i] = UINT64_C(1) << i;
    }
    for (uint32_t i = 0; i < count; i++) {
        linear.columns[column_bits + shift + i] |= UINT64_C(1) << i;
    }
    *out_linear = linear;
    return PTOWSP_OK;
}

uint64_t ptowsp_linear_apply(const ptowsp_linear *linear, uint64_t index) {
    if (!linear) {
        return 0;
    }
    PTOWSP_ASSERT(pwsp_linear_is_valid(linear));
    uint64_t image = 0;
    for (uint32_t i = 0; i < linear->in_bits; i++) {
        image ^= (index >> i & 1) ? linear->columns[i] : 0;
    }
    return image;
}

ptowsp_status ptowsp_linear_compose(const ptowsp_linear *outer, const ptowsp_linear *inner,
                                    ptowsp_linear *out_linear) {
    if (!out_linear || !pwsp_linear_is_valid(outer) || !pwsp_linear_is_valid(inner) ||
        outer->in_bits != inner->out_bits) {
        return PTOWSP_INVALID_PARAMS;
    }
    ptowsp_linear linear = pwsp_linear_zero(inner->in_bits, outer->out_bits);
    for (uint32_t i = 0; i < inner->in_bits; i++) {
        linear.columns[i] = ptowsp_linear_apply(outer, inner->columns[i]);
    }
    *out_linear = linear;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_linear_transpose(const ptowsp_linear *linear, ptowsp_linear *out_linear) {
    if (!out_linear || !pwsp_linear_is_valid(linear)) {
        return PTOWSP_INVALID_PARAMS;
    }
    ptowsp_linear turned = pwsp_linear_zero(linear->out_bits, linear->in_bits);
    for (uint32_t i = 0; i < linear->in_bits; i++) {
        for (uint32_t j = 0; j < linear->out_bits; j++) {
            turned.columns[j] |= (linear->columns[i] >> j & 1) << i;
        }
    }
    *out_linear = turned;
    return PTOWSP_OK;
}

// Elimination on columns: afterwards columns[i] has bit i alone, and the same operations have made
// the inverse of the identity.
ptowsp_status ptowsp_linear_inverse(const ptowsp_linear *linear, ptowsp_linear *out_linear) {
    if (!out_linear || !pwsp_linear_is_valid(linear) || linear->in_bits != linear->out_bits) {
        return PTOWSP_INVALID_PARAMS;
    }
    const uint32_t bits = linear->in_bits;
    ptowsp_linear left = *linear, inverse = pwsp_linear_zero(bits, bits);
    for (uint32_t i = 0; i < bits; i++) {
        inverse.columns[i] = UINT64_C(1) << i;
    }
    for (uint32_t i = 0; i < bits; i++) {
        uint32_t pivot = i;
        while (pivot < bits && !(left.columns[pivot] >> i & 1)) {
            pivot++;
        }
        if (pivot == bits) {
            return PTOWSP_STUCK;
        }
        uint64_t column = left.columns[pivot], made = inverse.columns[pivot];
        left.columns[pivot] = left.columns[i];
        inverse.columns[pivot] = inverse.columns[i];
        left.columns[i] = column;
        inverse.columns[i] = made;
        for (uint32_t j = 0; j < bits; j++) {
            if (j != i && (left.columns[j] >> i & 1)) {
                left.columns[j] ^= column;
                inverse.columns[j] ^= made;
            }
        }
    }
    *out_linear = inverse;
    return PTOWSP_OK;
}

// The rank of columns restricted to the bits of the mask.
static uint32_t pwsp_linear_rank(const ptowsp_linear *linear, uint64_t mask) {
    uint64_t basis[64];  // those found so far; their highest bits differ
    uint32_t rank = 0;
    for (uint32_t i = 0; i < linear->in_bits; i++) {
        uint64_t column = linear->columns[i] & mask;
        for (uint32_t j = 0; j < rank; j++) {  // takes the basis vector's highest bit away
            column = pwsp_min_u64(column, column ^ basis[j]);
        }
        if (column) {
            PTOWSP_ASSERT(rank < 64);
            basis[rank++] = column;
        }
    }
    return rank;
}

uint32_t ptowsp_linear_rank(const ptowsp_linear *linear) {
    if (!linear) {
        return 0;
    }
    PTOWSP_ASSERT(pwsp_linear_is_valid(linear));
    return pwsp_linear_rank(linear, UINT64_MAX);
}

// Addresses form a space of 2^rank words, and the addresses of one bank a coset of the kernel of
// its bits, so all banks that occur do so equally often.
ptowsp_status ptowsp_linear_conflicts(const ptowsp_linear *linear, uint32_t first_bit,
                                      uint32_t bank_bits, uint64_t *out_accesses) {
    if (!out_accesses || !pwsp_linear_is_valid(linear) || first_bit > 64 ||
        bank_bits > 64 - first_bit) {
        return PTOWSP_INVALID_PARAMS;
    }
    uint64_t banks = bank_bits == 0 ? 0 : pwsp_linear_mask(bank_bits) << first_bit;
    uint32_t words = pwsp_linear_rank(linear, UINT64_MAX), met = pwsp_linear_rank(linear, banks);
    PTOWSP_ASSERT(met <= words);
    if (words - met == 64) {
        return PTOWSP_LIMIT_EXCEEDED;
    }
    *out_accesses = UINT64_C(1) << (words - met);
    return PTOWSP_OK;
}
