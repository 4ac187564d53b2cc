// Strided bytes: do two regions share a byte, or a line; and all pairs that do.
//
// A region is a run of bytes, repeated in up to five dimensions:
//
//      begin + i0 * strides[0] + i1 * strides[1] + ... + [0, run)      largest stride first
//
// Two regions meet if, for some index of the outermost dimension of one, the rest of it meets the
// other; only indices whose bytes lie between the ends of the other need a look. Where both have the
// same outermost stride, only the difference of their indices matters, and one or two values of it
// are possible as a rule: tiles of one tensor take a few steps. Others may take more, up to
// DUMP_STEP_MAX.

#include "dump.h"

#include <stdlib.h>

// -- making ---------------------------------------------------------------------------------------

// Puts dimensions in order and joins those that are one: rows without gaps are a run.
static void dump_region_fold(dump_region *r) {
    for (uint32_t i = 1; i < r->rank; i++) {
        for (uint32_t k = i; k > 0 && r->strides[k] > r->strides[k - 1]; k--) {
            const uint64_t stride = r->strides[k], count = r->counts[k];
            r->strides[k] = r->strides[k - 1];
            r->counts[k] = r->counts[k - 1];
            r->strides[k - 1] = stride;
            r->counts[k - 1] = count;
        }
    }
    while (r->rank > 0 && r->strides[r->rank - 1] <= r->run) {
        r->rank--;
        r->run += (r->counts[r->rank] - 1) * r->strides[r->rank];
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->rank; i++) {
        if (kept > 0 && r->strides[kept - 1] == r->strides[i] * r->counts[i]) {
            r->strides[kept - 1] = r->strides[i];
            r->counts[kept - 1] *= r->counts[i];
        } else {
            r->strides[kept] = r->strides[i];
            r->counts[kept++] = r->counts[i];
        }
    }
    r->rank = kept;
}

// A step below zero counts from the other end; one of zero stays. An empty region has no run.
DUMP_INTERNAL bool dump_region_make(const dump_arg *arg, uint64_t address, dump_region *r) {
    const uint64_t bytes = arg->element_bytes, limit = UINT64_C(1) << 62;
    memset(r, 0, sizeof *r);
    if (address >= limit || arg->offset >= limit / 16) {
        return false;
    }
    r->begin = address + arg->offset * bytes;
    r->run = bytes;
    uint64_t span = 0;
    bool is_empty = false;
    for (uint32_t i = 0; i < arg->shape.count; i++) {
        const uint64_t count = (uint64_t)arg->shape.values[i];
        const int64_t step = arg->strides.values[i];
        const bool is_back = step < 0;
        const uint64_t stride = is_back ? 0 - (uint64_t)step : (uint64_t)step;
        is_empty = is_empty || count == 0;
        if (count < 2 || stride == 0) {
            continue;
        }
        if (stride >= limit / 16 || count - 1 > (limit - span) / (stride * bytes)) {
            return false;
        }
        span += (count - 1) * stride * bytes;
        if (is_back && r->begin < (count - 1) * stride * bytes) {
            return false;
        }
        r->begin -= is_back ? (count - 1) * stride * bytes : 0;
        r->strides[r->rank] = stride * bytes;
        r->counts[r->rank++] = count;
    }
    r->end = r->begin + span + bytes;
    dump_region_fold(r);
    r->run = is_empty ? 0 : r->run;
    return true;
}

// -- meeting --------------------------------------------------------------------------------------

// A region without its outer dimensions: those from `dim` on.
typedef struct dump_part {
    const dump_region *of;
    uint32_t dim;
    uint64_t begin;
    uint64_t size;  // from its first to its last byte
} dump_part;

static dump_part dump_part_next(dump_part part, uint64_t index) {
    const dump_region *r = part.of;
    part.begin += index * r->strides[part.dim];
    part.size -= (r->counts[part.dim] - 1) * r->strides[part.dim];
    part.dim++;
    return part;
}

static bool dump_parts_touch(const dump_part *a, const dump_part *b, uint64_t grain) {
    return a->begin / grain <= (b->begin + b->size - 1) / grain &&
           b->begin / grain <= (a->begin + a->size - 1) / grain;
}

static bool dump_parts_meet(dump_part a, dump_part b, uint64_t grain, uint64_t *steps);

// Does the rest of a, at any index of its outermost dimension, meet b? Only those that may touch it.
static bool dump_part_moves(dump_part a, dump_part b, uint64_t grain, uint64_t *steps) {
    const uint64_t stride = a.of->strides[a.dim];
    const uint64_t low = a.begin + dump_part_next(a, 0).size + grain - 1;
    const uint64_t high = b.begin + b.size + grain - 1;
    uint64_t last = high < a.begin ? 0 : (high - a.begin) / stride;
    last = last < a.of->counts[a.dim] - 1 ? last : a.of->counts[a.dim] - 1;
    for (uint64_t i = b.begin < low ? 0 : (b.begin - low) / stride; i <= last; i++) {
        *steps -= *steps > 0;
        if (dump_parts_meet(dump_part_next(a, i), b, grain, steps)) {
            return true;
        }
    }
    return false;
}

static bool dump_parts_meet(dump_part a, dump_part b, uint64_t grain, uint64_t *steps) {
    if (!dump_parts_touch(&a, &b, grain)) {
        return false;
    }
    const bool has_a = a.dim < a.of->rank, has_b = b.dim < b.of->rank;
    if (*steps == 0 || (!has_a && !has_b)) {
        return true;
    }
    const uint64_t step_a = has_a ? a.of->strides[a.dim] : 0;
    const uint64_t step_b = has_b ? b.of->strides[b.dim] : 0;
    if (step_a < step_b) {
        return dump_parts_meet(b, a, grain, steps);
    }
    if (step_a == step_b && step_a % grain == 0) {
        // Index of a minus index of b; one of them is 0.
        return dump_part_moves(a, dump_part_next(b, 0), grain, steps) ||
               dump_part_moves(b, dump_part_next(a, 0), grain, steps);
    }
    return dump_part_moves(a, b, grain, steps);
}

DUMP_INTERNAL bool dump_region_meets(const dump_region *a, const dump_region *b, uint64_t grain,
                                     uint64_t *steps) {
    const dump_part whole_a = {a, 0, a->begin, a->end - a->begin};
    const dump_part whole_b = {b, 0, b->begin, b->end - b->begin};
    return dump_parts_meet(whole_a, whole_b, grain, steps);
}

// Dimension by dimension: the steps of `inner` are steps of `outer`, from some index on.
DUMP_INTERNAL bool dump_region_covers(const dump_region *outer, const dump_region *inner) {
    if (inner->begin < outer->begin || inner->end > outer->end) {
        return false;
    }
    uint64_t offset = inner->begin - outer->begin;
    uint32_t dim = 0;
    for (uint32_t i = 0; i < outer->rank; i++) {
        const bool is_same = dim < inner->rank && inner->strides[dim] == outer->strides[i];
        const uint64_t index = offset / outer->strides[i];
        if (index + (is_same ? inner->counts[dim] : 1) > outer->counts[i]) {
            return false;
        }
        offset -= index * outer->strides[i];
        dim += is_same;
    }
    uint64_t size = inner->run;
    for (; dim < inner->rank; dim++) {
        size += (inner->counts[dim] - 1) * inner->strides[dim];
    }
    return offset + size <= outer->run;
}

// -- pairs ----------------------------------------------------------------------------------------

static uint32_t dump_regions_compare(ptowsp_dump *dump, const dump_region *a,
                                     const dump_region *b) {
    uint64_t steps = DUMP_STEP_MAX;
    uint32_t how = 0;
    if (!a->is_written && !b->is_written) {
        return 0;
    }
    if (dump_region_meets(a, b, 1, &steps)) {
        how = DUMP_SHARES;
        dump->report.assumed_count += steps == 0;
    } else if (a->is_written && b->is_written) {
        steps = DUMP_STEP_MAX;
        how = dump_region_meets(a, b, DUMP_LINE, &steps) ? DUMP_NEAR : 0;
    }
    return how;
}

typedef struct dump_start {
    uint64_t begin;
    uint32_t region;
} dump_start;

static int dump_compare_starts(const void *a, const void *b) {
    const uint64_t x = ((const dump_start *)a)->begin, y = ((const dump_start *)b)->begin;
    return x < y ? -1 : x > y;
}

static bool dump_pair_add(ptowsp_dump *dump, uint32_t region, uint32_t other, uint32_t how) {
    const bool covers =
        (how & DUMP_SHARES) && dump_region_covers(&dump->regions[region], &dump->regions[other]);
    const dump_pair pair = {region, other, how | (covers ? DUMP_COVERS : 0)};
    if (dump->pair_count == DUMP_PAIR_MAX) {
        return dump_fail(dump, PTOWSP_LIMIT_EXCEEDED, DUMP_PAIR_MAX,
                         "dump: more than %u pairs of regions share bytes",
                         (unsigned)DUMP_PAIR_MAX);
    }
    if (!dump_grow((void **)&dump->pairs, dump->pair_count, &dump->pair_capacity, sizeof pair)) {
        return dump_out_of_memory(dump);
    }
    dump->pairs[dump->pair_count++] = pair;
    return true;
}

// Adds all pairs, in both directions, and of each written region with itself. Regions that end before
// the next one begins are dropped from the list of those that are open.
static bool dump_pairs_sweep(ptowsp_dump *dump, const dump_start *starts, uint32_t *open) {
    uint32_t open_count = 0;
    for (uint32_t i = 0; i < dump->region_count; i++) {
        const uint32_t at = starts[i].region;
        const dump_region *region = &dump->regions[at];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < open_count; k++) {
            const dump_region *other = &dump->regions[open[k]];
            if ((other->end - 1) / DUMP_LINE < region->begin / DUMP_LINE) {
                continue;
            }
            open[kept++] = open[k];
            const uint32_t how = dump_regions_compare(dump, other, region);
            if (how && (!dump_pair_add(dump, at, open[k], how) ||
                        !dump_pair_add(dump, open[k], at, how))) {
                return false;
            }
        }
        open[kept++] = at;
        open_count = kept;
        if (region->is_written && !dump_pair_add(dump, at, at, DUMP_SHARES)) {
            return false;
        }
    }
    return true;
}

static int dump_compare_pairs(const void *a, const void *b) {
    const dump_pair *x = (const dump_pair *)a, *y = (const dump_pair *)b;
    return x->region != y->region ? (x->region < y->region ? -1 : 1)
                                  : (x->other > y->other) - (x->other < y->other);
}

// The pairs of a region lie together, by the other one.
static void dump_pairs_sort(ptowsp_dump *dump) {
    if (dump->pair_count) {
        qsort(dump->pairs, dump->pair_count, sizeof *dump->pairs, dump_compare_pairs);
    }
    for (uint32_t i = dump->pair_count; i-- > 0;) {
        dump_region *region = &dump->regions[dump->pairs[i].region];
        region->first_pair = i;
        region->pair_count++;
    }
}

DUMP_INTERNAL bool dump_pairs_find(ptowsp_dump *dump) {
    dump_start *starts = (dump_start *)dump_zeroed(dump->region_count, sizeof *starts);
    uint32_t *open = (uint32_t *)dump_zeroed((uint64_t)dump->region_count + 1, sizeof *open);
    dump->pair_count = 0;
    for (uint32_t i = 0; i < dump->arg_count; i++) {
        const dump_arg *arg = &dump->args[i];
        if (arg->region != DUMP_NONE && dump_writes(arg)) {
            dump->regions[arg->region].is_written = true;
        }
    }
    for (uint32_t i = 0; i < dump->region_count && starts; i++) {
        starts[i].begin = dump->regions[i].begin;
        starts[i].region = i;
        dump->regions[i].pair_count = 0;
    }
    if (!starts || !open) {
        dump_out_of_memory(dump);
    } else {
        qsort(starts, dump->region_count, sizeof *starts, dump_compare_starts);
        if (dump_pairs_sweep(dump, starts, open)) {
            dump_pairs_sort(dump);
        }
    }
    dump_resize(starts, 0);
    dump_resize(open, 0);
    return dump->status == PTOWSP_OK;
}

DUMP_INTERNAL uint32_t dump_pair_how(const ptowsp_dump *dump, uint32_t region, uint32_t other) {
    const dump_region *r = &dump->regions[region];
    const dump_pair key = {region, other, 0};
    const dump_pair *pair =
        r->pair_count ? (const dump_pair *)bsearch(&key, dump->pairs + r->first_pair, r->pair_count,
                                                   sizeof key, dump_compare_pairs)
                      : NULL;
    return pair ? pair->how : 0;
}
