// Groups of tensors that share memory.
//
// Tensors whose spans of bytes overlap, directly or through others, may share some bytes. In the
// order of their starts they form a run. But packed tensors (Q, K and V, row by row in one buffer)
// lie interleaved and share nothing: modulo the distance of rows each has a window of its own.
//
//      q q q k k v v | q q q k k v v | q q q k k v v       q: [0, 3)   k: [3, 5)   v: [5, 7)   of 7
//
// A tensor's window modulo m begins where the tensor begins modulo m. Its length is the span of the
// dimensions whose strides are not multiples of m. Tensors with disjoint windows share no bytes. So
// a run is split by windows modulo one of the strides of its first tensor, where that yields
// several groups. Programs with pipelines are not split: for them a tensor is all the bytes from
// its first to its last.

#include "deps.h"

#include "../base/heap.h"

// A dimension of a tensor: the leading ones, then rows and columns.
static int64_t pwsp_deps_size(const pwsp_bound_tensor *bound, uint32_t dimension) {
    return dimension < PWSP_TENSOR_LEAD_MAX    ? bound->lead_shape[dimension]
           : dimension == PWSP_TENSOR_LEAD_MAX ? bound->rows
                                               : bound->cols;
}

static int64_t pwsp_deps_stride(const pwsp_bound_tensor *bound, uint32_t dimension) {
    return dimension < PWSP_TENSOR_LEAD_MAX    ? bound->lead_strides[dimension]
           : dimension == PWSP_TENSOR_LEAD_MAX ? bound->row_stride
                                               : bound->col_stride;
}

// Does a tensor's layout give every index its own element? Also its span of bytes.
static bool pwsp_deps_layout(const pwsp_bound_tensor *bound, uint64_t *out_low,
                             uint64_t *out_high) {
    int64_t shape[PTOWSP_TENSOR_RANK_MAX], strides[PTOWSP_TENSOR_RANK_MAX], low, high;
    for (uint32_t i = 0; i < PTOWSP_TENSOR_RANK_MAX; i++) {
        shape[i] = pwsp_deps_size(bound, i);
        strides[i] = pwsp_deps_stride(bound, i);
    }
    *out_low = *out_high = 0;
    const bool fits = pwsp_layout_span(PTOWSP_TENSOR_RANK_MAX, shape, strides, &low, &high);
    PTOWSP_ASSERT(fits);  // it has been bound
    (void)fits;
    *out_low = bound->base + (uint64_t)low * bound->element_size;
    *out_high = bound->base + (uint64_t)(high + 1) * bound->element_size;
    return pwsp_layout_is_injective(PTOWSP_TENSOR_RANK_MAX, shape, strides);
}

// -- order ----------------------------------------------------------------------------------------

static bool pwsp_deps_is_before(const pwsp_deps *deps, uint32_t a, uint32_t b) {
    uint64_t a_key = deps->tensors[a].key, b_key = deps->tensors[b].key;
    return a_key < b_key || (a_key == b_key && a < b);
}

PWSP_SORT(pwsp_deps_reorder, uint32_t, pwsp_deps, pwsp_deps_is_before)

// Sorts tensors by their keys. From one execution to the next they seldom change.
static void pwsp_deps_sort(const pwsp_deps *deps, uint32_t *order, uint32_t count) {
    uint32_t sorted = 1;
    while (sorted < count && pwsp_deps_is_before(deps, order[sorted - 1], order[sorted])) {
        sorted++;
    }
    if (sorted < count) {
        pwsp_deps_reorder(deps, order, count);
    }
}

// -- groups ---------------------------------------------------------------------------------------

// Groups several tensors. The group is named after the lowest, and none of its tensors is plain.
static void pwsp_deps_make_group(pwsp_deps *deps, const uint32_t *members, uint32_t count) {
    PTOWSP_ASSERT(count > 0);
    uint32_t lowest = members[0];
    uint64_t origin = deps->tensors[members[0]].low;
    for (uint32_t i = 1; i < count; i++) {
        lowest = members[i] < lowest ? members[i] : lowest;
        origin = pwsp_min_u64(origin, deps->tensors[members[i]].low);
    }
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        deps->tensors[members[i]].group = lowest;
        deps->tensors[members[i]].is_plain = false;
    }
    deps->tensors[lowest].origin = origin;
}

// The length of a tensor's window, or 0 if it may cover everything.
static uint64_t pwsp_deps_window(const pwsp_bound_tensor *bound, uint64_t modulus) {
    uint64_t length = bound->element_size;
    for (uint32_t i = 0; i < PTOWSP_TENSOR_RANK_MAX; i++) {
        int64_t size = pwsp_deps_size(bound, i), stride = pwsp_deps_stride(bound, i);
        uint64_t step =
            (stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride) * bound->element_size;
        if (size > 1 && step % modulus != 0) {
            length += (uint64_t)(size - 1) * step;  // no more than it spans
        }
    }
    return length < modulus ? length : 0;
}

// Sorts tensors by where their windows begin. False if one has none.
static bool pwsp_deps_find_windows(pwsp_deps *deps, uint32_t *members, uint32_t count,
                                   uint64_t modulus) {
    for (uint32_t i = 0; i < count; i++) {
        pwsp_deps_tensor *tensor = &deps->tensors[members[i]];
        tensor->key = tensor->low % modulus;
        tensor->window = pwsp_deps_window(&deps->bound[members[i]], modulus);
        if (tensor->window == 0) {
            return false;
        }
    }
    pwsp_deps_sort(deps, members, count);
    return true;
}

// The number of leading windows that run into each other. The last group may wrap around into the
// first windows, as far as `over`.
static uint32_t pwsp_deps_windows_run(const pwsp_deps *deps, const uint32_t *members,
                                      uint32_t count, uint64_t *out_end) {
    uint32_t run = 0;
    uint64_t end = 0;
    while (run < count && (run == 0 || deps->tensors[members[run]].key < end)) {
        const pwsp_deps_tensor *tensor = &deps->tensors[members[run]];
        end = pwsp_max_u64(end, tensor->key + tensor->window);
        run++;
    }
    *out_end = end;
    return run;
}

// Counts the groups of sorted windows; makes them on request.
static uint32_t pwsp_deps_split(pwsp_deps *deps, uint32_t *members, uint32_t count,
                                uint64_t modulus, bool makes) {
    PTOWSP_ASSERT(count > 0 && modulus > 0);
    uint32_t groups = 0, last = 0;
    uint64_t end = 0, over = 0;
    for (uint32_t i = 0; i < count;) {
        last = i;
        i += pwsp_deps_windows_run(deps, members + i, count - i, &end);
        over = end > modulus ? end - modulus : 0;
    }
    // The groups that the last group wraps around into join it.
    uint32_t begin = 0;
    while (begin < last && deps->tensors[members[begin]].key < over) {
        begin += pwsp_deps_windows_run(deps, members + begin, last - begin, &end);
        over = pwsp_max_u64(over, end);
    }
    for (uint32_t i = begin; i < last; groups++) {
        uint32_t run = pwsp_deps_windows_run(deps, members + i, last - i, &end);
        if (makes) {
            pwsp_deps_make_group(deps, members + i, run);
        }
        i += run;
    }
    if (makes) {  // the last moves to the front, after those at the beginning
        for (uint32_t i = last; i < count; i++) {
            uint32_t moved = members[i];
            members[i] = members[begin + (i - last)];
            members[begin + (i - last)] = moved;
        }
        pwsp_deps_make_group(deps, members, begin + count - last);
    }
    return groups + 1;
}

// Makes groups of tensors whose spans overlap, directly or through others.
static void pwsp_deps_make_groups(pwsp_deps *deps, uint32_t *members, uint32_t count,
                                  bool is_split) {
    const pwsp_bound_tensor *bound = &deps->bound[members[0]];
    uint64_t best = 0;
    uint32_t best_groups = 1;
    for (uint32_t i = 0; is_split && count > 1 && i < PTOWSP_TENSOR_RANK_MAX; i++) {
        int64_t stride = pwsp_deps_stride(bound, i);
        uint64_t step =
            (stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride) * bound->element_size;
        if (pwsp_deps_size(bound, i) > 1 && step > bound->element_size &&
            pwsp_deps_find_windows(deps, members, count, step)) {
            uint32_t groups = pwsp_deps_split(deps, members, count, step, false);
            best = groups > best_groups ? step : best;
            best_groups = groups > best_groups ? groups : best_groups;
        }
    }
    if (best == 0) {
        pwsp_deps_make_group(deps, members, count);
        return;
    }
    pwsp_deps_find_windows(deps, members, count, best);
    pwsp_deps_split(deps, members, count, best, true);
}

// Groups tensors: in the order of their starts, a run is a sequence in which every tensor but the
// first begins before an earlier one ends.
static void pwsp_deps_find_groups(pwsp_deps *deps, bool is_split) {
    uint32_t *members = deps->order + deps->tensor_count + 1;
    for (uint32_t i = 0; i < deps->tensor_count; i++) {
        deps->tensors[i].key = deps->tensors[i].low;
    }
    pwsp_deps_sort(deps, deps->order, deps->tensor_count);
    for (uint32_t next = 0; next < deps->tensor_count;) {
        uint32_t count = 0;
        uint64_t high = deps->tensors[deps->order[next]].high;
        do {
            const pwsp_deps_tensor *tensor = &deps->tensors[deps->order[next]];
            if (tensor->low < tensor->high) {
                members[count++] = deps->order[next];
                high = pwsp_max_u64(high, tensor->high);
            }
            next++;
        } while (next < deps->tensor_count && deps->tensors[deps->order[next]].low < high);
        if (count) {
            pwsp_deps_make_groups(deps, members, count, is_split);
        }
    }
}

PWSP_INTERNAL void pwsp_deps_find_tensors(pwsp_deps *deps, const pwsp_timed *timed, bool is_data) {
    const ptowsp_schedule *schedule = &timed->schedule;
    const pwsp_bound_tensor *bound = deps->bound;
    bool is_all = deps->is_exact || deps->is_overlap;
    bool is_dataflow = schedule->issue == PTOWSP_ISSUE_DATAFLOW;
    for (uint32_t i = 1; i < deps->tensor_count; i++) {
        pwsp_deps_tensor *tensor = &deps->tensors[i];
        memset(tensor, 0, sizeof *tensor);
        tensor->group = i;
        tensor->is_written = timed->tensor_is_written[i];
        if (bound[i].is_bound) {
            tensor->is_plain = pwsp_deps_layout(&bound[i], &tensor->low, &tensor->high) &&
                               bound[i].rows <= UINT32_MAX && bound[i].cols <= UINT32_MAX;
            tensor->origin = tensor->low;
            bool is_loaded = is_dataflow && timed->tensor_is_loaded[i];
            tensor->is_tracked = is_data ? tensor->is_written : is_all || is_loaded;
            tensor->is_loaded =
                is_loaded && !is_data && !(is_all && (schedule->hazards & PTOWSP_HAZARD_WAW));
        }
    }
    pwsp_deps_find_groups(deps, timed->pipeline_count == 0);
    for (uint32_t i = 1; i < deps->tensor_count; i++) {  // what one is, its group is
        pwsp_deps_tensor *first = &deps->tensors[deps->tensors[i].group];
        first->is_tracked |= deps->tensors[i].is_tracked;
        first->is_loaded |= deps->tensors[i].is_loaded;
        first->is_written |= deps->tensors[i].is_written;
    }
    for (uint32_t i = 1; i < deps->tensor_count; i++) {
        const pwsp_deps_tensor *first = &deps->tensors[deps->tensors[i].group];
        deps->tensors[i].is_tracked = first->is_tracked;
        deps->tensors[i].is_loaded = first->is_loaded;
        deps->tensors[i].is_written = first->is_written;
    }
}
