// Sorting: TSORT32 makes sorted runs of pairs, TMRGSORT merges them.
//
// A pair is 8 bytes: a value of the tile's type, then a u32 index. So it takes two elements of a
// row of f32, four of f16. An f16 value is in the first two bytes; the next two are 0 here and
// undefined on a device. All order is descending and stable: of equal values the one that came
// first comes first, also across merged runs in their order. -0 equals 0. NaN, of either sign,
// comes before +inf, and all NaN are equal.
//
// Destinations must not overlap sources.

#ifndef PTOISA_SORT_H
#define PTOISA_SORT_H

#include "rows.h"

#define PTOISA_SORT_RUN  32
#define PTOISA_MERGE_MAX 4

// Elements of its type that a pair takes.
PTOISA_INLINE uint32_t ptoisa_pair_elements(uint8_t dtype) {
    return 8 / ptoisa_dtype_size((ptoisa_dtype)dtype);
}

// A number that orders values as above. INT32_MIN is nobody's.
PTOISA_INLINE int32_t ptoisa_sort_key(const void *value, ptoisa_dtype dtype) {
    uint32_t bits;
    if (dtype == PTOISA_F32) {
        memcpy(&bits, value, sizeof bits);
    } else {
        uint16_t half;
        memcpy(&half, value, sizeof half);
        bits = ptoisa_bits_from_f32(ptoisa_f32_from_f16(half));
    }
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
        return INT32_MAX;
    }
    return bits >> 31 ? -(int32_t)magnitude : (int32_t)magnitude;
}

// -- TSORT32 --------------------------------------------------------------------------------------

// Sorts up to 32 values into pairs. The place of each is the number of those before it: all 32 x 32
// comparisons, without a branch, are faster than a sort that decides.
PTOISA_FN void ptoisa_sort_run(uint8_t *pairs, const uint8_t *values, const uint8_t *indices,
                               uint32_t count, ptoisa_dtype dtype) {
    const uint32_t size = ptoisa_dtype_size(dtype);
    int32_t keys[PTOISA_SORT_RUN], places[PTOISA_SORT_RUN];
    for (uint32_t i = 0; i < PTOISA_SORT_RUN; i++) {
        // Missing elements sort last, even after an equal -inf.
        keys[i] = i < count ? ptoisa_sort_key(values + i * size, dtype) : -0x7f800000;
        places[i] = 0;
    }
    for (int32_t j = 0; j < PTOISA_SORT_RUN; j++) {
        const int32_t key = keys[j];
        for (int32_t i = 0; i < PTOISA_SORT_RUN; i++) {
            places[i] += key > keys[i] - (j < i);  // j goes before i: greater, or equal and earlier
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t pair[8] = {0};
        memcpy(pair, values + i * size, size);
        memcpy(pair + 4, indices + i * 4, 4);
        memcpy(pairs + places[i] * 8, pair, sizeof pair);
    }
}

// d = pairs of s and idx, each 32 columns sorted for themselves, in every row. d has 2 columns
// (f16: 4) for each of s. If s has no multiple of 32 valid columns, the last run is shorter.
PTOISA_FN void ptoisa_tsort32(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                              const ptoisa_tile *idx) {
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_row_major(core, PTOISA_TSORT32, "s", s, PTOISA_SET_FLOAT, 0, 0)) {
            return;
        }
        const uint32_t rows = s->valid_rows, cols = s->valid_cols;
        const uint32_t wide = cols * ptoisa_pair_elements(s->dtype);
        if (!ptoisa_check_row_major(core, PTOISA_TSORT32, "idx", idx, PTOISA_SET_INDEX, rows,
                                    cols) ||
            !ptoisa_check_row_major(core, PTOISA_TSORT32, "d", d, PTOISA_SET(s->dtype), rows,
                                    wide)) {
            return;
        }
    }
    ptoisa_issue(core, PTOISA_TSORT32, d, s, idx);
    if (core->is_dry) {
        return;
    }
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)s->dtype);
    for (uint32_t r = 0; r < s->valid_rows; r++) {
        uint8_t *pairs = ptoisa_row_at(d, r);
        const uint8_t *values = ptoisa_row_at(s, r), *indices = ptoisa_row_at(idx, r);
        for (uint32_t c = 0; c < s->valid_cols; c += PTOISA_SORT_RUN) {
            uint32_t left = s->valid_cols - c;
            ptoisa_sort_run(pairs + c * 8, values + c * size, indices + c * 4,
                            left < PTOISA_SORT_RUN ? left : PTOISA_SORT_RUN,
                            (ptoisa_dtype)s->dtype);
        }
    }
}

// -- TMRGSORT -------------------------------------------------------------------------------------

typedef struct ptoisa_run {
    const uint8_t *pairs;
    uint32_t count, taken;
} ptoisa_run;

PTOISA_INLINE int32_t ptoisa_run_key(const ptoisa_run *run, ptoisa_dtype dtype) {
    return run->taken < run->count ? ptoisa_sort_key(run->pairs + (uint64_t)run->taken * 8, dtype)
                                   : INT32_MIN;
}

// Merges runs until all are empty, or, if stop_early, one that was not empty is.
PTOISA_FN void ptoisa_merge(uint8_t *to, ptoisa_run *runs, uint32_t run_count, bool stop_early,
                            ptoisa_dtype dtype) {
    int32_t keys[PTOISA_MERGE_MAX];
    uint64_t left = 0;
    for (uint32_t i = 0; i < PTOISA_MERGE_MAX; i++) {
        keys[i] = i < run_count ? ptoisa_run_key(&runs[i], dtype) : INT32_MIN;
        left += i < run_count ? runs[i].count : 0;
    }
    for (; left > 0; left--) {
        uint32_t low = keys[1] > keys[0] ? 1 : 0, high = keys[3] > keys[2] ? 3 : 2;
        uint32_t best = keys[high] > keys[low] ? high : low;
        ptoisa_run *run = &runs[best];
        memcpy(to, run->pairs + (uint64_t)run->taken * 8, 8);
        to += 8;
        run->taken++;
        keys[best] = ptoisa_run_key(run, dtype);
        if (stop_early && run->taken == run->count) {
            return;
        }
    }
}

// d = s with each four neighbouring runs of block_len elements merged into one. Tiles have one row;
// block_len is a multiple of 64, and counts elements, not pairs.
PTOISA_FN void ptoisa_tmrgsort(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                               uint32_t block_len) {
    const ptoisa_op op = PTOISA_TMRGSORT;
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_row_major(core, op, "s", s, PTOISA_SET_FLOAT, 0, 0) ||
            !ptoisa_check_row_major(core, op, "d", d, PTOISA_SET(s->dtype), s->valid_rows,
                                    s->valid_cols)) {
            return;
        }
        if (s->valid_rows != 1) {
            ptoisa_fault(core, op, "s has %u valid rows, not 1", s->valid_rows);
            return;
        }
        if (block_len == 0 || block_len % 64 != 0) {
            ptoisa_fault(core, op, "runs of %u elements: no multiple of 64", block_len);
            return;
        }
        uint64_t group = (uint64_t)block_len * PTOISA_MERGE_MAX;
        if (s->valid_cols % group != 0 || s->valid_cols / group > 255) {
            ptoisa_fault(core, op, "%u valid columns are not 1 to 255 groups of %llu",
                         s->valid_cols, (unsigned long long)group);
            return;
        }
    }
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)s->dtype);
    ptoisa_issue_as(core, op, d, s, NULL, (uint32_t)((uint64_t)block_len * size / 8));
    if (core->is_dry || s->valid_rows == 0) {
        return;
    }
    const uint64_t total = (uint64_t)s->valid_cols * size / 8, run = (uint64_t)block_len * size / 8;
    uint8_t *to = (uint8_t *)d->data;
    for (uint64_t at = 0; at < total && run > 0; at += PTOISA_MERGE_MAX * run) {
        ptoisa_run runs[PTOISA_MERGE_MAX];
        for (uint32_t i = 0; i < PTOISA_MERGE_MAX; i++) {
            uint64_t from = at + i * run < total ? at + i * run : total;
            runs[i].pairs = (const uint8_t *)s->data + from * 8;
            runs[i].count = (uint32_t)(total - from < run ? total - from : run);
            runs[i].taken = 0;
        }
        ptoisa_merge(to + at * 8, runs, PTOISA_MERGE_MAX, false, (ptoisa_dtype)s->dtype);
    }
}

PTOISA_FN bool ptoisa_tmrgsort_lists_check(ptoisa_core *core, const ptoisa_tile *d,
                                           const ptoisa_tile *t, const ptoisa_tile *const *lists,
                                           uint32_t count) {
    const ptoisa_op op = PTOISA_TMRGSORT;
    uint64_t total = 0;
    if (count < 2 || count > PTOISA_MERGE_MAX) {
        return ptoisa_fault(core, op, "%u lists: 2 to 4 can be merged", count);
    }
    if (!ptoisa_check_row_major(core, op, "d", d, PTOISA_SET_FLOAT, 1, 0) ||
        (t && !ptoisa_check_row_major(core, op, "t", t, PTOISA_SET(d->dtype), 0, 0))) {
        return false;
    }
    const uint32_t pair = ptoisa_pair_elements(d->dtype);
    for (uint32_t i = 0; i < count; i++) {
        const char which[] = {'s', (char)('0' + i), 0};
        if (!ptoisa_check_row_major(core, op, which, lists[i], PTOISA_SET(d->dtype), 0, 0)) {
            return false;
        }
        if (lists[i]->valid_rows != 1) {
            return ptoisa_fault(core, op, "%s has %u valid rows, not 1", which,
                                lists[i]->valid_rows);
        }
        if (lists[i]->valid_cols % pair != 0 || lists[i]->valid_cols / pair > UINT16_MAX) {
            return ptoisa_fault(core, op, "%s: %u valid columns are not 0 to 65535 pairs of %u",
                                which, lists[i]->valid_cols, pair);
        }
        total += lists[i]->valid_cols;
    }
    if (total > d->valid_cols) {
        return ptoisa_fault(core, op, "d has %u valid columns for %llu of the lists", d->valid_cols,
                            (unsigned long long)total);
    }
    return true;
}

// d = 2 to 4 sorted lists of pairs, merged; executed[i] is how many pairs list i gave, 0 beyond
// count. exhausted: stop as soon as one list is used up, and leave the rest of d as it was. t is
// scratch that the device needs, and may be NULL here. A dry core says that all pairs were taken.
PTOISA_FN void ptoisa_tmrgsort_lists(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *t,
                                     const ptoisa_tile *const *lists, uint32_t count,
                                     uint16_t executed[4], bool exhausted) {
    if (PTOISA_CHECKED && !ptoisa_tmrgsort_lists_check(core, d, t, lists, count)) {
        return;
    }
    const uint32_t pair = ptoisa_pair_elements(d->dtype);
    ptoisa_issue_as(core, PTOISA_TMRGSORT, d, lists[0], lists[1], lists[0]->valid_cols / pair);
    ptoisa_run runs[PTOISA_MERGE_MAX];
    for (uint32_t i = 0; i < PTOISA_MERGE_MAX; i++) {
        runs[i].pairs = i < count ? (const uint8_t *)lists[i]->data : NULL;
        runs[i].count = i < count ? lists[i]->valid_cols / pair : 0;
        runs[i].taken = core->is_dry ? runs[i].count : 0;
    }
    if (!core->is_dry) {
        ptoisa_merge((uint8_t *)d->data, runs, count, exhausted, (ptoisa_dtype)d->dtype);
    }
    for (uint32_t i = 0; i < PTOISA_MERGE_MAX; i++) {
        executed[i] = (uint16_t)runs[i].taken;
    }
}

#endif
