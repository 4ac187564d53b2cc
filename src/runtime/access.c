// Decides whether two accesses overlap: by indices and windows where a tensor is plain, else byte
// by byte.

#include "access.h"

PWSP_INTERNAL pwsp_region pwsp_deps_region(const pwsp_deps *deps, const pwsp_access *at) {
    const pwsp_bound_tensor *tensor = &deps->bound[at->tensor];
    uint64_t element = tensor->element_size;
    pwsp_region region = {tensor->base + pwsp_access_place(at) * element,
                          (int64_t)((uint64_t)tensor->row_stride * element),
                          (int64_t)((uint64_t)tensor->col_stride * element),
                          at->rows,
                          at->cols,
                          tensor->element_size};
    return region;
}

static void pwsp_deps_span(const pwsp_deps *deps, const pwsp_access *at, uint64_t *out_low,
                           uint64_t *out_high) {
    if (pwsp_deps_is_whole(at)) {
        *out_low = deps->tensors[at->tensor].low;
        *out_high = deps->tensors[at->tensor].high;
        return;
    }
    pwsp_region region = pwsp_deps_region(deps, at);
    pwsp_region_span(&region, out_low, out_high);
}

// Do two accesses overlap, if one covers a whole tensor? Differences are taken from one of
// the starts, because addresses wrap around.
static bool pwsp_deps_whole_meets(const pwsp_deps *deps, const pwsp_access *a,
                                  const pwsp_access *b) {
    uint64_t a_low, a_high, b_low, b_high;
    if (a->tensor == b->tensor) {
        return true;
    }
    pwsp_deps_span(deps, a, &a_low, &a_high);
    pwsp_deps_span(deps, b, &b_low, &b_high);
    return b_low - a_low < a_high - a_low || a_low - b_low < b_high - b_low;
}

PWSP_INTERNAL bool pwsp_deps_is_equal(const pwsp_deps *deps, bool is_plain, const pwsp_access *a,
                                      const pwsp_access *b) {
    if (pwsp_deps_is_whole(a) || pwsp_deps_is_whole(b)) {
        return a->tensor == b->tensor && a->rows == b->rows;
    }
    if (is_plain) {
        return pwsp_deps_is_plain_equal(a, b);
    }
    pwsp_region x = pwsp_deps_region(deps, a), y = pwsp_deps_region(deps, b);
    return pwsp_region_equal(&x, &y);
}

PWSP_INTERNAL bool pwsp_deps_is_overlap(const pwsp_deps *deps, bool is_plain, const pwsp_access *a,
                                        const pwsp_access *b) {
    if (pwsp_deps_is_whole(a) || pwsp_deps_is_whole(b)) {
        return pwsp_deps_whole_meets(deps, a, b);
    }
    if (is_plain) {
        return pwsp_deps_is_plain_overlap(a, b);
    }
    pwsp_region x = pwsp_deps_region(deps, a), y = pwsp_deps_region(deps, b);
    return pwsp_region_overlaps(&x, &y);
}

PWSP_INTERNAL bool pwsp_deps_is_within(const pwsp_deps *deps, bool is_plain,
                                       const pwsp_access *outer, const pwsp_access *inner) {
    if (pwsp_deps_is_whole(outer) || pwsp_deps_is_whole(inner)) {
        return pwsp_deps_is_whole(outer) && outer->tensor == inner->tensor;
    }
    if (is_plain) {
        return pwsp_deps_same_matrix(outer, inner) && outer->row <= inner->row &&
               inner->row + inner->rows <= outer->row + outer->rows && outer->col <= inner->col &&
               inner->col + inner->cols <= outer->col + outer->cols;
    }
    pwsp_region x = pwsp_deps_region(deps, outer), y = pwsp_deps_region(deps, inner);
    return pwsp_region_contains(&x, &y);
}
