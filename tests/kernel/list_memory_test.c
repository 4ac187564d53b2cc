// Where tiles of an instruction list are: lives, addresses, the high-water mark, and what is said
// when a memory is too small.
//
// Addresses of the directed tests are worked out on paper. Random lists are compared with a naive
// reference that looks at all pairs of roots, and their placements are verified by pwsp_list_verify
// in list_waits_test.c, together with the flags.

#include "list_build.h"

static uint32_t address_of(const built *b, uint32_t tile) {
    return b->list.tiles[tile].address;
}

static void place(built *b) {
    built_must(b, pwsp_list_place(&b->list, &b->machine, &b->fault));
}

#define BUILT_TEST(name) TEST_MADE(name, built, b, built_init(b, PTOISA_A2A3), built_free(b))

BUILT_TEST(memory__tiles_that_do_not_live_together_share_bytes) {
    uint32_t x = built_vec(b, 64, 64), y = built_vec(b, 64, 64), z = built_vec(b, 64, 64);
    built_load(b, x, 0);                // x lives 0 to 1
    built_op(b, PTOISA_TEXP, y, x, 0);  // y lives 1 to 2
    built_op(b, PTOISA_TEXP, z, y, 0);  // z lives 2 to 3
    built_store(b, 1, z);
    place(b);
    assert_int_equal(address_of(b, x), 0);
    assert_int_equal(address_of(b, y), 16384);  // not x's: x is read while y is written
    assert_int_equal(address_of(b, z), 0);
    assert_int_equal(b->list.used[PTOISA_VEC], 32768);
    assert_int_equal(b->list.tiles[x].first, 0);
    assert_int_equal(b->list.tiles[x].last, 1);
    assert_int_equal(b->list.tiles[z].first, 2);
    assert_int_equal(b->list.tiles[z].last, 3);
}

BUILT_TEST(memory__one_root_is_in_place) {
    uint32_t x = built_vec(b, 64, 64);
    built_load(b, x, 0);
    built_op(b, PTOISA_TEXP, x, x, 0);
    built_store(b, 1, x);
    place(b);
    assert_int_equal(b->list.used[PTOISA_VEC], 16384);
}

BUILT_TEST(memory__views_count_for_their_root) {
    uint32_t x = built_vec(b, 4, 8), y = built_vec(b, 4, 8), z = built_vec(b, 4, 8);
    uint32_t row = built_view(b, x, 3, 1);
    built_load(b, x, 0);
    built_op(b, PTOISA_TEXP, y, y, 0);
    built_op(b, PTOISA_TEXP, z, z, 0);
    built_store(b, 1, row);  // so x lives from 0 to 3
    place(b);
    assert_int_equal(b->list.tiles[x].first, 0);
    assert_int_equal(b->list.tiles[x].last, 3);
    assert_int_equal(address_of(b, x), 0);
    assert_int_equal(address_of(b, y), 128);
    assert_int_equal(address_of(b, z), 128);
    assert_int_equal(pwsp_list_tile_address(&b->list, row), 96);
    assert_int_equal(b->list.used[PTOISA_VEC], 256);
}

BUILT_TEST(memory__scratch_lives_for_its_instruction_and_beside_its_operands) {
    uint32_t x = built_vec(b, 8, 8), sum = built_vec(b, 1, 8), tmp = built_vec(b, 8, 8);
    uint32_t sum2 = built_vec(b, 1, 8), tmp2 = built_vec(b, 8, 8);
    built_load(b, x, 0);
    built_op(b, PTOISA_TROWSUM, sum, x, 0)->tmp = tmp;
    built_op(b, PTOISA_TROWMAX, sum2, x, 0)->tmp = tmp2;
    place(b);
    assert_int_equal(address_of(b, x), 0);
    assert_int_equal(address_of(b, tmp), 256);
    assert_int_equal(address_of(b, tmp2), 256);
    assert_int_equal(address_of(b, sum), 512);
    assert_int_equal(address_of(b, sum2), 512);
    assert_int_equal(b->list.tiles[tmp].first, 1);
    assert_int_equal(b->list.tiles[tmp].last, 1);
    assert_int_equal(b->list.used[PTOISA_VEC], 544);
}

// Rows of lives: a 0-1 (96 bytes), b 0-4 (32), c 0-1 (64), d 0-4 (32), e 2-4 (64), f 2-4 (96).
// By size: a at 0, f at 0, c above a at 96, e above f at 96, b and d at 160 and 192. That is the
// most that is live at once, 224, so no other order is tried.
BUILT_TEST(memory__large_tiles_go_first) {
    uint32_t ta = built_vec(b, 3, 8), tb = built_vec(b, 1, 8), tc = built_vec(b, 2, 8);
    uint32_t td = built_vec(b, 1, 8), te = built_vec(b, 2, 8), tf = built_vec(b, 3, 8);
    pwsp_insn *insn = built_op(b, PTOISA_TADD, 0, ta, tb);
    insn->src[2] = tc;
    insn->src[3] = td;
    built_op(b, PTOISA_TADD, 0, ta, tc);
    built_op(b, PTOISA_TADD, 0, te, tf);
    built_op(b, PTOISA_TADD, 0, tb, td);
    built_op(b, PTOISA_TADD, 0, te, tf)->src[2] = tb;
    b->list.insns[4].src[3] = td;
    place(b);
    assert_int_equal(address_of(b, ta), 0);
    assert_int_equal(address_of(b, tf), 0);
    assert_int_equal(address_of(b, tc), 96);
    assert_int_equal(address_of(b, te), 96);
    assert_int_equal(address_of(b, tb), 160);
    assert_int_equal(address_of(b, td), 192);
    assert_int_equal(b->list.used[PTOISA_VEC], 224);
}

// Two tiles die at instruction 0, of 6 and of 4 blocks, each between tiles that live on. A tile of
// 2 that is born then goes to where the 4 were, though the 6 are lower.
BUILT_TEST(memory__the_tightest_gap_is_taken) {
    uint32_t k0 = built_vec(b, 7, 8), w0 = built_vec(b, 6, 8), k1 = built_vec(b, 5, 8);
    uint32_t w1 = built_vec(b, 4, 8), k2 = built_vec(b, 3, 8);
    uint32_t late = built_vec(b, 2, 8);
    pwsp_insn *insn = built_op(b, PTOISA_TADD, k0, k1, k2);
    insn->src[2] = w0;
    insn->src[3] = w1;
    insn = built_op(b, PTOISA_TADD, late, k0, k1);
    insn->src[2] = k2;
    place(b);
    // By size: k0 at 0, w0 at 7, k1 at 13, w1 at 18, k2 at 22, and then late, into w1's 4 rather
    // than w0's 6.
    assert_int_equal(address_of(b, k0), 0);
    assert_int_equal(address_of(b, w0), 7 * 32);
    assert_int_equal(address_of(b, k1), 13 * 32);
    assert_int_equal(address_of(b, w1), 18 * 32);
    assert_int_equal(address_of(b, k2), 22 * 32);
    assert_int_equal(address_of(b, late), 18 * 32);
    assert_int_equal(b->list.used[PTOISA_VEC], 25 * 32);
}

BUILT_TEST(memory__memories_are_apart_and_unused_tiles_have_no_place) {
    uint32_t mat = built_tile(b, PTOISA_MAT, 16, 64), left = built_tile(b, PTOISA_LEFT, 16, 64);
    uint32_t unused = built_tile(b, PTOISA_MAT, 4096, 4096);
    built_load(b, mat, 0);
    built_op(b, PTOISA_TMOV, left, mat, 0);
    place(b);
    assert_int_equal(address_of(b, mat), 0);
    assert_int_equal(address_of(b, left), 0);
    assert_int_equal(b->list.used[PTOISA_MAT], 4096);
    assert_int_equal(b->list.used[PTOISA_LEFT], 4096);
    assert_int_equal(b->list.used[PTOISA_VEC], 0);
    assert_int_equal(b->list.tiles[unused].first, UINT32_MAX);
    assert_int_equal(b->list.tiles[unused].last, 0);
    built_free(b);
    built_init(b, PTOISA_A2A3);  // no instructions, no tiles
    place(b);
}

// -- refusals -------------------------------------------------------------------------------------

static void refuses(built *b, ptowsp_status status, uint32_t insn, const char *text) {
    b->list.used[PTOISA_VEC] = 77;
    assert_false(pwsp_list_place(&b->list, &b->machine, &b->fault));
    assert_string_equal(b->fault.text, text);
    assert_int_equal(b->fault.status, status);
    assert_int_equal(b->fault.insn, insn);
    assert_int_equal(b->list.used[PTOISA_VEC], 77);
    for (uint64_t tile = 1; tile < b->list.tile_count; tile++) {
        assert_int_equal(b->list.tiles[tile].address, 0);
        assert_int_equal(b->list.tiles[tile].last, 0);
    }
}

BUILT_TEST(memory__refuses_more_than_there_is) {
    uint32_t x = built_vec(b, 256, 64), y = built_vec(b, 256, 64), z = built_vec(b, 256, 64);
    built_load(b, x, 0);
    built_load(b, y, 1);
    built_op(b, PTOISA_TADD, z, x, y);
    refuses(b, PTOWSP_LIMIT_EXCEEDED, 2,
            "memory: tile 3 (256 x 64 f32) needs 65536 bytes of UB at instruction 2 (TADD), where "
            "131072 of 188416 are in use");
    built_free(b);

    built_init(b, PTOISA_A2A3);
    uint32_t large = built_tile(b, PTOISA_RIGHT, 65536, 65536);
    uint32_t mat = built_tile(b, PTOISA_MAT, 16, 8);
    built_load(b, mat, 0);
    built_op(b, PTOISA_TMOV, large, mat, 0);
    refuses(b, PTOWSP_LIMIT_EXCEEDED, 1,
            "memory: tile 1 (65536 x 65536 f32) needs 17179869184 bytes of L0B at instruction 1 "
            "(TMOV), where 0 of 65536 are in use");
    b->list.insn_count = UINT32_MAX;
    b->machine.memory_size[0] = 0;
    assert_false(pwsp_list_place(&b->list, &b->machine, &b->fault));
    assert_string_equal(b->fault.text, "memory: 4294967295 instructions and 3 tiles");
    b->list.insn_count = 2;
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
    print_message("%u memories: %u at the lower bound, %.4f of it in all; by size %u, birth %u, "
                  "length %u\n",
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
