// Spaces of run-time rank: the same arithmetic that PTOWSP_DEFINE_SPACE writes out for static ones.
// Index = c0 + size0 * (c1 + size1 * (c2 + ...)): dimension 0 varies fastest.

#include "../base/base.h"

ptowsp_status ptowsp_space_make(const int64_t *sizes, uint32_t rank, ptowsp_space *out_space) {
    if (!out_space || rank > PTOWSP_SPACE_RANK_MAX || (rank > 0 && !sizes)) {
        return PTOWSP_INVALID_PARAMS;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (sizes[i] < 0) {
            return PTOWSP_INVALID_PARAMS;
        }
    }
    ptowsp_space space;  // sizes may alias *out_space
    memset(&space, 0, sizeof space);
    space.rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        space.sizes[i] = sizes[i];
    }
    *out_space = space;
    return PTOWSP_OK;
}

uint64_t ptowsp_space_total(const ptowsp_space *space) {
    if (!space) {
        return 0;
    }
    uint64_t total = 1;
    for (uint32_t i = 0; i < space->rank; i++) {
        total = ptowsp_space_multiply(total, (uint64_t)space->sizes[i]);
    }
    return total;
}

uint64_t ptowsp_space_index(const ptowsp_space *space, const int64_t *coord) {
    if (!space || !coord) {
        return 0;
    }
    uint64_t index = 0, stride = 1;
    for (uint32_t i = 0; i < space->rank; i++) {
        PTOWSP_ASSERT(0 <= coord[i] && coord[i] < space->sizes[i]);
        index += (uint64_t)coord[i] * stride;
        stride *= (uint64_t)space->sizes[i];
    }
    return index;
}

void ptowsp_space_at(const ptowsp_space *space, uint64_t index, int64_t *out_coord) {
    if (!space || !out_coord) {
        return;
    }
    PTOWSP_ASSERT(index < ptowsp_space_total(space));
    for (uint32_t i = 0; i < space->rank; i++) {
        uint64_t size = (uint64_t)space->sizes[i];
        out_coord[i] = (int64_t)(index % size);
        index /= size;
    }
}
