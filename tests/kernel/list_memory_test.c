// Where tiles of random lists are: lives, addresses and the high-water mark, compared with a naive
// reference that looks at all pairs of roots. Places that are worked out on paper are in lists.txt.
// Placements are verified by pwsp_list_verify in list_waits_test.c, together with the flags.

#include "list_build.h"

static void place(built *b) {
    built_must(b, pwsp_list_place(&b->list, &b->machine, &b->fault));
}

// -- against the reference ------------------------------------------------------------------------

#define ROOTS_MAX 400

typedef struct rectangle {
    uint32_t tile, first, last, size, address;
} rectangle;

static bool do_overlap(const rectangle *a, const rectangle *b) {
    return a->first <= b->last && b->first <= a->last;
}

// Is [at, at + size) free of all placed rectangles that live with this one?
static bool is_free(const rectangle *all, const bool *is_placed, uint32_t count, uint32_t which,
                    uint32_t at) {
    for (uint32_t i = 0; i < count; i++) {
        if (is_placed[i] && do_overlap(&all[i], &all[which]) && at < all[i].address + all[i].size &&
            all[i].address < at + all[which].size) {
            return false;
        }
    }
    return true;
}

// Where a rectangle goes by best fit. Candidates are 0 and the ends of the others; the gap of a
// candidate reaches to the next rectangle above.
static uint32_t reference_fit(const rectangle *all, const bool *is_placed, uint32_t count,
                              uint32_t which) {
    uint32_t best = 0, best_gap = UINT32_MAX, top = 0;
    bool has_gap = false;
    for (uint32_t c = 0; c <= count; c++) {
        uint32_t at = 0;
        if (c > 0) {
            if (!is_placed[c - 1] || !do_overlap(&all[c - 1], &all[which])) {
                continue;
            }
            at = all[c - 1].address + all[c - 1].size;
        }
        top = at > top ? at : top;
        if (!is_free(all, is_placed, count, which, at)) {
            continue;
        }
        uint32_t gap = UINT32_MAX;
        for (uint32_t i = 0; i < count; i++) {
            if (is_placed[i] && do_overlap(&all[i], &all[which]) && all[i].address >= at &&
                all[i].address - at < gap) {
                gap = all[i].address - at;
            }
        }
        bool is_better = gap < best_gap || (gap == best_gap && has_gap && at < best);
        if (gap != UINT32_MAX && is_better) {
            best = at;
            best_gap = gap;
            has_gap = true;
        }
    }
    return has_gap ? best : top;
}

static uint32_t reference_ceiling(rectangle *all, uint32_t count, int order) {
    bool is_placed[ROOTS_MAX] = {false};
    uint32_t ceiling = 0;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t which = UINT32_MAX;
        for (uint32_t i = 0; i < count; i++) {
            if (is_placed[i]) {
                continue;
            }
            if (which == UINT32_MAX || (order == 0 && all[i].size > all[which].size) ||
                (order == 2 && all[i].last - all[i].first > all[which].last - all[which].first)) {
                which = i;
            }
        }
        all[which].address = reference_fit(all, is_placed, count, which);
        is_placed[which] = true;
        uint32_t end = all[which].address + all[which].size;
        ceiling = end > ceiling ? end : ceiling;
    }
    return ceiling;
}

// The roots of a memory in order of birth.
static uint32_t reference_roots(const built *b, uint32_t memory, rectangle *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->list.insn_count; i++) {
        const pwsp_insn *insn = &b->list.insns[i];
        uint32_t tiles[] = {insn->src[0], insn->src[1], insn->src[2], insn->src[3],
                            insn->dst[0], insn->dst[1], insn->tmp};
        for (uint32_t k = 0; k < 7; k++) {
            uint32_t root = tiles[k] ? b->list.tiles[tiles[k]].root : 0, at = 0;
            if (!root || b->list.tiles[root].memory != memory) {
                continue;
            }
            while (at < count && out[at].tile != root) {
                at++;
            }
            assert_true(at < ROOTS_MAX);
            if (at == count) {
                rectangle made = {root, i, i, (uint32_t)pwsp_list_tile_bytes(&b->list.tiles[root]),
                                  0};
                out[count++] = made;
            }
            out[at].last = i;
        }
    }
    return count;
}

static uint32_t reference_peak(const rectangle *all, uint32_t count) {
    uint32_t peak = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t live = 0;
        for (uint32_t k = 0; k < count; k++) {
            live += all[k].first <= all[i].first && all[i].first <= all[k].last ? all[k].size : 0;
        }
        peak = live > peak ? live : peak;
    }
    return peak;
}

TEST(memory__random_lists_are_placed_as_the_reference_does) {
    uint64_t random = test_seed(), peaks = 0, ceilings = 0;
    uint32_t winners[3] = {0}, tight = 0, memories = 0;
    for (int round = 0; TEST_ROUNDS(round, 400); round++) {
        built b;
        built_init(&b, PTOISA_A5);
        built_random(&b, &random, (uint32_t)test_random_in(&random, 1, 100),
                     (uint32_t)test_random_in(&random, 1, 30));
        place(&b);
        for (uint32_t memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
            rectangle all[ROOTS_MAX];
            uint32_t count = reference_roots(&b, memory, all);
            uint32_t peak = reference_peak(all, count), lowest = UINT32_MAX, winner = 0;
            for (int order = 0; order < 3 && count && lowest > peak; order++) {
                uint32_t ceiling = reference_ceiling(all, count, order);
                if (ceiling < lowest) {
                    lowest = ceiling;
                    winner = (uint32_t)order;
                }
            }
            assert_int_equal(b.list.used[memory], count ? lowest : 0);
            if (!count) {
                continue;
            }
            assert_int_equal(reference_ceiling(all, count, (int)winner), lowest);
            for (uint32_t i = 0; i < count; i++) {
                const pwsp_list_tile *tile = &b.list.tiles[all[i].tile];
                assert_int_equal(tile->address, all[i].address);
                assert_int_equal(tile->first, all[i].first);
                assert_int_equal(tile->last, all[i].last);
            }
            memories++;
            winners[winner]++;
            tight += lowest == peak;
            peaks += peak;
            ceilings += lowest;
        }
        built_free(&b);
    }
    print_message("%u memories: %u at the lower bound, %.4f of it in all; "
                  "by size %u, birth %u, length %u\n",
                  memories, tight, (double)ceilings / (double)peaks, winners[0], winners[1],
                  winners[2]);
    assert_true(ceilings < peaks + peaks / 10);
}

// Lists whose memory is just what is live at once, which the orders do not always reach.
TEST(memory__says_when_what_is_free_is_in_pieces) {
    uint64_t random = 1;
    uint32_t in_pieces = 0;
    for (int round = 0; round < 300; round++) {
        built b;
        built_init(&b, PTOISA_A5);
        built_random(&b, &random, 60, 12);
        rectangle all[ROOTS_MAX];
        uint32_t count = reference_roots(&b, PTOISA_VEC, all);
        uint32_t peak = count ? reference_peak(all, count) : 32;
        b.machine.memory_size[PTOISA_VEC] = peak;
        if (!pwsp_list_place(&b.list, &b.machine, &b.fault)) {
            in_pieces++;
            assert_int_equal(b.fault.status, PTOWSP_LIMIT_EXCEEDED);
            assert_non_null(strstr(b.fault.text, " are in use and what is free is in pieces"));
            if (in_pieces == 1) {
                print_message("%s\n", b.fault.text);
            }
        }
        b.machine.memory_size[PTOISA_VEC] = peak - 32;
        assert_int_equal(pwsp_list_place(&b.list, &b.machine, &b.fault), !count);
        if (count) {
            assert_null(strstr(b.fault.text, "pieces"));
        }
        built_free(&b);
    }
    assert_true(in_pieces > 0);
}

TEST(memory__survives_each_refused_allocation) {
    size_t refused = 0;
    for (bool is_good = false; !is_good; refused++) {
        uint64_t random = 3;
        built b;
        built_init(&b, PTOISA_A2A3);
        built_random(&b, &random, 200, 8);
        built_refuse(&b, refused + 1);
        is_good = pwsp_list_place(&b.list, &b.machine, &b.fault);
        if (!is_good) {
            assert_int_equal(b.fault.status, PTOWSP_OUT_OF_MEMORY);
            assert_string_equal(b.fault.text, "memory: out of memory");
            assert_int_equal(b.list.used[PTOISA_VEC], 0);
        }
        built_free(&b);
    }
    assert_true(refused > 1);  // all but the last are refused: blocks of the list's arena
}
