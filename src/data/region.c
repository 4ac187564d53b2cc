// An exact test whether two strided tiles overlap.
//
// Reversing rows or columns does not change the set of bytes, so strides count as positive, from
// the lowest byte. Regions a and b have a byte in common if two of their elements are closer than
// their sizes. With k and l counted from the last row and column of b, that is
//
//      i * a.row + j * a.col + k * b.row + l * b.col   in   [low, high]
//
//      high = b's end - a's begin - 1             low = high - (a.size + b.size - 2)
//
// for some i, j, k, l in range: does a sum of up to four progressions from 0 hit a window?
//
//      a step (stride, count) with stride <= the window's width is absorbed: the windows moved by
//      0, 1, ... strides touch, so they make one wide window, and the step is gone. Columns without
//      gaps, rows without gaps and strides of 0 go that way.
//
//      equal strides of a and b are one step. So tiles of one tensor with gaps in their rows leave
//      one step, and one division decides; with gaps in rows and columns, two steps.
//
//      one step, wider than the window: it hits if high mod stride < width.
//
//      two steps: the larger has few candidates x, one after another, and the smaller hits if
//      (high - x * larger) mod smaller < width. The first such x comes from Euclid's algorithm.
//
//      more steps: each candidate of the largest, with the rest of its window.
//
// Spans are below 2^63 bytes, so the sums stay below 2^64.

#include "region.h"

PWSP_INLINE uint64_t pwsp_stride_abs(int64_t stride) {
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

// A region's lowest byte, and the distance from there to its end.
typedef struct pwsp_extent {
    uint64_t low, length;
} pwsp_extent;

PWSP_INLINE pwsp_extent pwsp_extent_of(const pwsp_region *region) {
    PTOWSP_ASSERT(region->rows > 0 && region->cols > 0 && region->size > 0);
    uint64_t row_steps = region->rows - 1, col_steps = region->cols - 1;
    uint64_t rows = row_steps * pwsp_stride_abs(region->row_stride);
    uint64_t cols = col_steps * pwsp_stride_abs(region->col_stride);
    pwsp_extent extent = {region->base, rows + cols + region->size};
    extent.low -= region->row_stride < 0 ? rows : 0;
    extent.low -= region->col_stride < 0 ? cols : 0;
    PTOWSP_ASSERT(extent.length <= INT64_MAX);
    return extent;
}

PWSP_INTERNAL void pwsp_region_span(const pwsp_region *region, uint64_t *out_low,
                                    uint64_t *out_high) {
    pwsp_extent extent = pwsp_extent_of(region);
    *out_low = extent.low;
    *out_high = extent.low + extent.length;
}

PWSP_INTERNAL bool pwsp_region_equal(const pwsp_region *a, const pwsp_region *b) {
    return a->base == b->base && a->rows == b->rows && a->cols == b->cols && a->size == b->size &&
           (a->rows == 1 || a->row_stride == b->row_stride) &&
           (a->cols == 1 || a->col_stride == b->col_stride);
}

// -- sums of progressions -------------------------------------------------------------------------

// Adds 0, 1, ..., last times the stride.
typedef struct pwsp_step {
    uint64_t stride, last;
} pwsp_step;

#define PWSP_STEP_MAX 4

// Adds a step to a list by falling stride; equal strides are one step.
static uint32_t pwsp_steps_add(pwsp_step *steps, uint32_t count, uint64_t stride, uint32_t last) {
    if (stride == 0 || last == 0) {
        return count;
    }
    uint32_t at = count;
    while (at > 0 && steps[at - 1].stride < stride) {
        at--;
    }
    if (at > 0 && steps[at - 1].stride == stride) {
        steps[at - 1].last += last;
        return count;
    }
    PTOWSP_ASSERT(count < PWSP_STEP_MAX);
    for (uint32_t i = count; i > at; i--) {
        steps[i] = steps[i - 1];
    }
    steps[at].stride = stride;
    steps[at].last = last;
    return count + 1;
}

static uint32_t pwsp_steps_add_region(pwsp_step *steps, uint32_t count, const pwsp_region *region) {
    count = pwsp_steps_add(steps, count, pwsp_stride_abs(region->row_stride), region->rows - 1);
    return pwsp_steps_add(steps, count, pwsp_stride_abs(region->col_stride), region->cols - 1);
}

// The least x, and with it y, such that a * x - m * y is in [low, high], where 0 < low <= high < m
// and a < m; false if none exists. When no multiple of a is in [low, high] itself, then y > 0, and
// modulo a the same question arises for y: m mod a times y has to be in [-high, -low] modulo a. As
// in Euclid's algorithm, (a, m) becomes (m mod a, a), so it nests at most 90 deep.
static bool pwsp_first_hit(uint64_t a, uint64_t m, uint64_t low, uint64_t high, uint64_t *out_x,
                           uint64_t *out_y) {
    PTOWSP_ASSERT(0 < low && low <= high && high < m && a < m);
    if (a == 0) {
        return false;
    }
    uint64_t x = pwsp_ceil_div_u64(low, a);
    if (x * a <= high) {
        *out_x = x;
        *out_y = 0;
        return true;
    }
    // Neither end is a multiple of a, so that both remainders below are in 1 .. a - 1.
    uint64_t below = m % a, y, z;
    if (!pwsp_first_hit(below, a, a - high % a, a - low % a, &y, &z)) {
        return false;
    }
    // m * y = a * (m / a * y + z) + rest, and x is the least with a * x >= low + m * y.
    uint64_t rest = below * y - a * z;  // in 1 .. a - 1, whatever the products overflow to
    *out_x = m / a * y + z + pwsp_ceil_div_u64(low + rest, a);
    *out_y = y;
    return true;
}

// Whether two steps hit [low, high], where low = high - (width - 1). Strides fall, and are larger
// than width; low is above 0, so zero steps do not hit it, and at most the sum of all steps.
static bool pwsp_two_steps_hit(const pwsp_step *steps, uint64_t width, uint64_t high) {
    uint64_t large = steps[0].stride, small = steps[1].stride;
    uint64_t low = high - (width - 1), reach = steps[1].last * small;
    uint64_t first = low > reach ? pwsp_ceil_div_u64(low - reach, large) : 0;
    PTOWSP_ASSERT(first <= steps[0].last);
    if (first * large > high) {
        return false;
    }
    // From `first` to `last`, the smaller step is never too short to get into the window.
    uint64_t left = (high - first * large) % small;
    if (left < width) {
        return true;
    }
    uint64_t last = pwsp_min_u64(steps[0].last, high / large), x, y;
    return first < last && pwsp_first_hit(large % small, small, left - (width - 1), left, &x, &y) &&
           x <= last - first;
}

// The same for any number of steps.
static bool pwsp_steps_hit(const pwsp_step *steps, uint32_t count, uint64_t width, uint64_t high) {
    PTOWSP_ASSERT(0 < width && width <= high);
    // All steps together span both regions, which overlap.
    if (PWSP_NEVER(count == 0)) {
        return false;
    }
    uint64_t stride = steps[0].stride;
    if (count == 1) {
        return high % stride < width;
    }
    if (count == 2) {
        return pwsp_two_steps_hit(steps, width, high);
    }
    uint64_t low = high - (width - 1), reach = 0;
    for (uint32_t i = 1; i < count; i++) {
        reach += steps[i].last * steps[i].stride;
    }
    uint64_t x = low > reach ? pwsp_ceil_div_u64(low - reach, stride) : 0;
    uint64_t last = pwsp_min_u64(steps[0].last, high / stride);
    for (; x <= last; x++) {
        uint64_t rest = high - x * stride;
        if (rest < width || pwsp_steps_hit(steps + 1, count - 1, width, rest)) {
            return true;
        }
    }
    return false;
}

// -- overlap and containment ----------------------------------------------------------------------

PWSP_INLINE bool pwsp_region_has_dense_rows(const pwsp_region *region) {
    return region->col_stride == (int64_t)region->size || region->cols == 1;
}

PWSP_INTERNAL bool pwsp_region_overlaps(const pwsp_region *a, const pwsp_region *b) {
    pwsp_extent a_extent = pwsp_extent_of(a), b_extent = pwsp_extent_of(b);
    // Spans overlap if b ends after a's begin, by less than both lengths. One comparison sees that
    // also modulo 2^64.
    uint64_t high = b_extent.low + b_extent.length - a_extent.low - 1;
    if (high >= a_extent.length + b_extent.length - 1) {
        return false;
    }
    if (a->base == b->base) {
        return true;  // their first elements meet
    }
    if (pwsp_region_has_dense_rows(a) && pwsp_region_has_dense_rows(b)) {
        // Tiles of one tensor, usually: rows are intervals, a multiple of one stride apart.
        uint64_t width = (uint64_t)a->cols * a->size + (uint64_t)b->cols * b->size - 1;
        int64_t stride = a->rows > 1 ? a->row_stride : b->row_stride;
        if (high < width) {
            return true;  // as single rows always do, whose spans meet
        }
        if (stride > 0 && (b->rows == 1 || b->row_stride == stride)) {
            return high % (uint64_t)stride < width;
        }
    }
    pwsp_step steps[PWSP_STEP_MAX];
    uint32_t count = pwsp_steps_add_region(steps, 0, a);
    count = pwsp_steps_add_region(steps, count, b);
    uint64_t width = (uint64_t)a->size + b->size - 1;
    for (; high >= width && count > 0 && steps[count - 1].stride <= width; count--) {
        width += steps[count - 1].last * steps[count - 1].stride;
    }
    return high < width || pwsp_steps_hit(steps, count, width, high);
}

PWSP_INTERNAL bool pwsp_region_contains(const pwsp_region *outer, const pwsp_region *inner) {
    pwsp_extent out = pwsp_extent_of(outer), in = pwsp_extent_of(inner);
    uint64_t offset = in.low - out.low;
    if (offset >= out.length || in.length > out.length - offset) {
        return false;
    }
    // Outer: blocks of width bytes, and up to two steps that leave gaps.
    pwsp_step gaps[PWSP_STEP_MAX], steps[PWSP_STEP_MAX];
    uint32_t gap_count = pwsp_steps_add_region(gaps, 0, outer);
    uint64_t width = outer->size;
    for (; gap_count > 0 && gaps[gap_count - 1].stride <= width; gap_count--) {
        width += gaps[gap_count - 1].last * gaps[gap_count - 1].stride;
    }
    // Steps of inner that are multiples of one of outer's go from block to block along it. The span
    // of the others must fit into one block.
    uint32_t step_count = pwsp_steps_add_region(steps, 0, inner);
    uint64_t rest = in.length;
    for (uint32_t g = 0; g < gap_count; g++) {
        uint64_t stride = gaps[g].stride, at = offset / stride;
        offset %= stride;
        for (uint32_t i = 0; i < step_count; i++) {
            if (steps[i].stride % stride == 0) {
                at += steps[i].stride / stride * steps[i].last;
                rest -= steps[i].stride * steps[i].last;
                steps[i].last = 0;
            }
        }
        if (at > gaps[g].last) {
            return false;
        }
    }
    return offset < width && rest <= width - offset;
}

// -- layouts --------------------------------------------------------------------------------------

static bool pwsp_layout_is_empty(uint32_t rank, const int64_t *shape) {
    PTOWSP_ASSERT(rank <= PTOWSP_TENSOR_RANK_MAX);
    bool is_empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        PTOWSP_ASSERT(shape[i] >= 0);
        is_empty = is_empty || shape[i] == 0;
    }
    return is_empty;
}

PWSP_INTERNAL bool pwsp_layout_is_injective(uint32_t rank, const int64_t *shape,
                                            const int64_t *strides) {
    if (pwsp_layout_is_empty(rank, shape)) {
        return true;
    }
    uint32_t order[PTOWSP_TENSOR_RANK_MAX], count = 0;  // dimensions by rising stride
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 1) {
            continue;
        }
        uint32_t at = count++;
        for (; at > 0 && pwsp_stride_abs(strides[order[at - 1]]) > pwsp_stride_abs(strides[i]);
             at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    uint64_t reach = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t stride = pwsp_stride_abs(strides[order[i]]), distance;
        if (stride <= reach) {
            return false;
        }
        bool fits = pwsp_mul_fits((uint64_t)shape[order[i]] - 1, stride, &distance);
        reach = fits && distance <= UINT64_MAX - reach ? reach + distance : UINT64_MAX;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_layout_span(uint32_t rank, const int64_t *shape, const int64_t *strides,
                                    int64_t *out_low, int64_t *out_high) {
    if (pwsp_layout_is_empty(rank, shape)) {
        *out_low = 0;
        *out_high = -1;
        return true;
    }
    uint64_t below = 0, above = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t distance;
        if (!pwsp_mul_fits((uint64_t)shape[i] - 1, pwsp_stride_abs(strides[i]), &distance) ||
            distance > (uint64_t)INT64_MAX - below - above) {
            return false;
        }
        below += strides[i] < 0 ? distance : 0;
        above += strides[i] < 0 ? 0 : distance;
    }
    *out_low = -(int64_t)below;
    *out_high = (int64_t)above;
    return true;
}
