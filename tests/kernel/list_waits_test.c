// Flags and barriers between the instructions of a list.
//
// The directed tests say on paper what a list must look like. Random lists are placed, get their
// flags, are verified, and run on the judge of list_build.h, whose pipes have random speeds.

#include "list_judge.h"

// Places tiles, adds flags, verifies, and asks the judge.
static void finish(built *b) {
    built_finish(b);
    uint64_t random = 1;
    const char *what = "";
    if (!judge_list(b, &random, 100, &what)) {
        fail_msg("%s", what);
    }
}

enum { ON_A2A3 = 1, ON_A5 = 2, ON_BOTH = 3 };

#define BUILT_TEST(name, machine) TEST_MADE(name, built, b, built_init(b, machine), built_free(b))

// Lists, and what they become.
static const struct {
    const char *name;
    uint32_t machines;
    const char *list, *want, *places;
} rows[] = {
    {"load, compute, store; lives have moved with their instructions", ON_BOTH,
     "UB 8x8: x y; x = TLOAD 0; y = TEXP x; TSTORE 1 y",
     "TLOAD\nSET MTE2 V 0\nWAIT MTE2 V 0\nTEXP\nSET V MTE3 0\nWAIT V MTE3 0\nTSTORE\nSET MTE3 S 7\n"
     "WAIT MTE3 S 7\n",
     "x 0-3 at 0, y 3-6 at 256; UB 512"},
    // z reads x and y (RAW); TEXP reads what others read: nothing; x again (WAR); z again (WAW: TADD is before
    // the barrier); RAW on TEXPANDS of z; WAW, as nobody else has their bytes.
    {"dependent vector instructions of A2/A3 have one barrier between", ON_A2A3,
     "UB 8x8: x y z o; x = TEXPANDS; y = TEXPANDS; z = TADD x y; o = TEXP x; x = TEXPANDS; "
     "z = TEXPANDS; o = TADD o z; o = TADD y y x",
     "TEXPANDS\nTEXPANDS\nBARRIER V\nTADD\nTEXP\nBARRIER V\nTEXPANDS\nTEXPANDS\nBARRIER V\nTADD\n"
     "BARRIER V\nTADD\n",
     NULL},
    {"those of A5 need none", ON_A5,
     "UB 8x8: x y z o; x = TEXPANDS; y = TEXPANDS; z = TADD x y; o = TEXP x; x = TEXPANDS; "
     "z = TEXPANDS; o = TADD o z; o = TADD y y x",
     "TEXPANDS\nTEXPANDS\nTADD\nTEXP\nTEXPANDS\nTEXPANDS\nTADD\nTADD\n", NULL},
    // S overwrites what V wrote, and V reads that: V knows through S that it is done itself.
    {"a way there and back is as good as a barrier", ON_A2A3,
     "UB 1x8: x y z; x = TEXPANDS; y = TEXPANDS; y = TCI; z = TADD x y",
     "TEXPANDS\nTEXPANDS\nSET V S 0\nWAIT V S 0\nTCI\nSET S V 0\nWAIT S V 0\nTADD\n", NULL},
    {"the cube has its pipes", ON_A2A3,
     "L1 16x16: a c; L0A 16x16: l; L0B 16x16: r; L0C 16x16: p; a = TLOAD 0; c = TLOAD 1; "
     "l = TMOV a; r = TMOV c; p = TMATMUL l r; p += TMATMUL_ACC l r; TSTORE 2 p",
     "TLOAD\nSET MTE2 MTE1 0\nTLOAD\nSET MTE2 MTE1 1\nWAIT MTE2 MTE1 0\nTMOV\nWAIT MTE2 MTE1 1\n"
     "TMOV\nSET MTE1 M 0\nWAIT MTE1 M 0\nTMATMUL\nTMATMUL_ACC\nSET M FIX 0\nWAIT M FIX 0\nTSTORE\n"
     "SET FIX S 7\nWAIT FIX S 7\n",
     NULL},
    // The later of two loads brings the earlier with it, and what MTE3 knows of V brings MTE2.
    {"what is implied has no flag", ON_A5,
     "UB 8x8: x y z; x = TLOAD 0; y = TLOAD 1; z = TADD x y; z = TMUL z x; TSTORE 2 z; TSTORE 3 x",
     "TLOAD\nTLOAD\nSET MTE2 V 0\nWAIT MTE2 V 0\nTADD\nTMUL\nSET V MTE3 0\nWAIT V MTE3 0\nTSTORE\n"
     "TSTORE\nSET MTE3 S 7\nWAIT MTE3 S 7\n",
     NULL},
    // x and z share bytes: the load of z must wait for V to have read x.
    {"memory that is used again is waited for", ON_A5,
     "UB 8x8: x y z; x = TLOAD 0; y = TEXP x; z = TLOAD 1; y = TADD y z",
     "TLOAD\nSET MTE2 V 0\nWAIT MTE2 V 0\nTEXP\nSET V MTE2 0\nWAIT V MTE2 0\nTLOAD\nSET MTE2 V 0\n"
     "WAIT MTE2 V 0\nTADD\n",
     "x 0-3 at 0, y 3-9 at 256, z 6-9 at 0; UB 512"},
    // The first TEXP waits for the first load alone; the load of two rows overwrites one that V has not touched.
    {"parts of a tile are apart", ON_A5,
     "UB 4x8: x; UB 1x8: y; view r: x 0 1; view s: x 1 1; view two: x 1 2; r = TLOAD 0; "
     "s = TLOAD 0; y = TEXP r; two = TLOAD 0; y = TEXP s",
     "TLOAD\nSET MTE2 V 0\nTLOAD\nWAIT MTE2 V 0\nTEXP\nTLOAD\nSET MTE2 V 1\nWAIT MTE2 V 1\nTEXP\n",
     NULL},
    // Two loads read; the store waits for the load of its tile, and that is all; a load of what was stored; a
    // store to what was loaded, on the way known.
    {"global memory is ordered by parameter", ON_A5,
     "UB 8x8: x y z; x = TLOAD 0; y = TLOAD 0; TSTORE 1 x; z = TLOAD 1; TSTORE 0 z",
     "TLOAD\nSET MTE2 MTE3 0\nTLOAD\nWAIT MTE2 MTE3 0\nTSTORE\nSET MTE3 MTE2 0\nWAIT MTE3 MTE2 0\n"
     "TLOAD\nSET MTE2 MTE3 0\nWAIT MTE2 MTE3 0\nTSTORE\nSET MTE3 S 7\nWAIT MTE3 S 7\n",
     NULL},
    {"MGATHER reads its parameter, MSCATTER writes it", ON_A5,
     "UB 8x8: x; UB 1x8: y; y = TCI; x = MGATHER y 0; MSCATTER x y 0",
     "TCI\nSET S MTE2 0\nWAIT S MTE2 0\nMGATHER\nSET MTE2 MTE3 0\nWAIT MTE2 MTE3 0\nMSCATTER\n"
     "SET MTE3 S 7\nWAIT MTE3 S 7\n",
     NULL},
    {"both pipes that store are drained", ON_A2A3,
     "UB 8x8: x; L0A 16x16: l; L0B 16x16: r; L0C 16x16: p; L1 16x16: m; m = TEXPANDS; l = TMOV m; "
     "r = TMOV m; "
     "p = TMATMUL l r; x = TCI; TSTORE 0 x; TSTORE 1 p",
     "TEXPANDS\nSET MTE2 MTE1 0\nWAIT MTE2 MTE1 0\nTMOV\nTMOV\nSET MTE1 M 0\nWAIT MTE1 M 0\n"
     "TMATMUL\nSET M FIX 0\nTCI\nSET S MTE3 0\nWAIT S MTE3 0\nTSTORE\nSET MTE3 S 7\nWAIT M FIX 0\n"
     "TSTORE\nSET FIX S 7\nWAIT MTE3 S 7\nWAIT FIX S 7\n",
     NULL},
    {"no instructions need nothing", ON_A2A3, "", "", NULL},
    {"no dependences need nothing", ON_A2A3, "UB 8x8: x; x = TLOAD 0", "TLOAD\n", NULL},
};

TEST(waits__lists_become_those_of_paper) {
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        built b;
        if (!(rows[i / 2].machines & (i % 2 ? ON_A5 : ON_A2A3))) {
            continue;
        }
        print_message("%s\n", rows[i / 2].name);
        built_init(&b, i % 2 ? PTOISA_A5 : PTOISA_A2A3);
        built_text(&b, rows[i / 2].list);
        finish(&b);
        built_is(&b, rows[i / 2].want);
        if (rows[i / 2].places) {
            built_places(&b, rows[i / 2].places);
        }
        built_free(&b);
    }
}

// -- eight events ---------------------------------------------------------------------------------

// Roots for [count] tiles.
static void make_tiles(built *b, uint32_t *tiles, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        tiles[i] = built_vec(b, 1, 8);
    }
}

// Keeps tiles alive to the end, so that none shares bytes: an instruction of V behind all.
static void keep(built *b, const uint32_t *tiles, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        built_op(b, PTOISA_TEXP, tiles[i], tiles[i], 0);
    }
}

// Ten loads, then ten instructions for which each is needed: events 0 to 7 for the first eight, of
// which the last waits for all ten.
BUILT_TEST(waits__the_last_flag_of_a_pair_takes_over, PTOISA_A5) {
    uint32_t t[10];
    make_tiles(b, t, 10);
    for (uint32_t i = 0; i < 10; i++) {
        built_load(b, t[i], 0);
    }
    keep(b, t, 10);
    finish(b);
    built_is(b, "TLOAD\nSET MTE2 V 0\nTLOAD\nSET MTE2 V 1\nTLOAD\nSET MTE2 V 2\nTLOAD\n"
                "SET MTE2 V 3\nTLOAD\nSET MTE2 V 4\nTLOAD\nSET MTE2 V 5\nTLOAD\nSET MTE2 V 6\n"
                "TLOAD\nTLOAD\nTLOAD\nSET MTE2 V 7\nWAIT MTE2 V 0\nTEXP\nWAIT MTE2 V 1\nTEXP\n"
                "WAIT MTE2 V 2\nTEXP\nWAIT MTE2 V 3\nTEXP\nWAIT MTE2 V 4\nTEXP\nWAIT MTE2 V 5\n"
                "TEXP\nWAIT MTE2 V 6\nTEXP\nWAIT MTE2 V 7\nTEXP\nTEXP\nTEXP\n");
}

// Load and use, nine times, into different tiles: before the ninth flag V answers behind the
// fourth use, and the setter then has four events again.
BUILT_TEST(waits__a_flag_goes_back, PTOISA_A5) {
    uint32_t t[10];
    make_tiles(b, t, 10);
    for (uint32_t i = 0; i < 10; i++) {
        built_load(b, t[i], 0);
        built_op(b, PTOISA_TEXP, t[i], t[i], 0);
    }
    keep(b, t, 9);
    finish(b);
    char expected[2048] = "";
    for (int i = 0; i < 8; i++) {
        size_t at = strlen(expected);
        snprintf(expected + at, sizeof expected - at,
                 "TLOAD\nSET MTE2 V %d\nWAIT MTE2 V %d\nTEXP\n%s", i, i,
                 i == 3 ? "SET V MTE2 0\n" : "");
    }
    strcat(expected, "TLOAD\nWAIT V MTE2 0\nSET MTE2 V 0\nWAIT MTE2 V 0\nTEXP\n"
                     "TLOAD\nSET MTE2 V 1\nWAIT MTE2 V 1\nTEXP\n");
    for (int i = 0; i < 9; i++) {
        strcat(expected, "TEXP\n");
    }
    built_is(b, expected);
}

// MTE2 learns of V by a load that waits for it, one load after the one that is needed: the set
// moves behind that one.
BUILT_TEST(waits__a_set_moves_to_where_an_event_is_free, PTOISA_A5) {
    uint32_t t[10];
    make_tiles(b, t, 10);
    for (uint32_t i = 0; i < 8; i++) {
        built_load(b, t[i], 0);
        built_op(b, PTOISA_TEXP, t[i], t[i], 0);
    }
    built_load(b, t[8], 0);
    built_load(b, t[7], 0);  // V has read and written it
    built_op(b, PTOISA_TEXP, t[8], t[8], 0);
    keep(b, t, 9);
    finish(b);
    char expected[2048] = "";
    for (int i = 0; i < 8; i++) {
        size_t at = strlen(expected);
        snprintf(expected + at, sizeof expected - at,
                 "TLOAD\nSET MTE2 V %d\nWAIT MTE2 V %d\nTEXP\n", i, i);
    }
    strcat(expected, "SET V MTE2 0\nTLOAD\nWAIT V MTE2 0\nTLOAD\nSET MTE2 V 0\nWAIT MTE2 V 0\n");
    for (int i = 0; i < 10; i++) {
        strcat(expected, "TEXP\n");
    }
    built_is(b, expected);
}

// Puts all tiles of UB apart, adds flags, verifies and asks the judge. Returns how many barriers
// are for all pipes.
static uint32_t finish_apart(built *b) {
    for (uint32_t t = 1; t < b->list.tile_count; t++) {
        b->list.tiles[t].address = b->list.used[PTOISA_VEC];
        b->list.used[PTOISA_VEC] += (uint32_t)pwsp_list_tile_bytes(&b->list.tiles[t]);
    }
    built_must(b, pwsp_list_add_waits(&b->list, &b->machine, &b->fault));
    built_must(b, pwsp_list_verify(&b->list, &b->machine, &b->fault));
    uint64_t random = 1;
    const char *what = "";
    if (!judge_list(b, &random, 100, &what)) {
        fail_msg("%s", what);
    }
    uint32_t count = 0;
    for (uint64_t i = 0; i < b->list.insn_count; i++) {
        count += b->list.insns[i].op == PTOISA_PIPE_BARRIER &&
                 b->list.insns[i].src_pipe == PTOISA_PIPE_ALL;
    }
    return count;
}

// Eight flags from S to V and eight back, each set before the first wait of the others: neither
// side has heard of any wait, both are out of events, and all wait for each other.
BUILT_TEST(waits__at_last_all_pipes_wait, PTOISA_A5) {
    uint32_t c[8], a[8], x = built_vec(b, 1, 8);
    make_tiles(b, c, 8);
    make_tiles(b, a, 8);
    for (uint32_t i = 0; i < 8; i++) {
        built_op(b, PTOISA_TCI, c[i], 0, 0);
    }
    for (uint32_t i = 0; i < 8; i++) {
        built_op(b, PTOISA_TEXPANDS, a[i], 0, 0);
    }
    for (uint32_t i = 0; i < 8; i++) {
        built_op(b, PTOISA_TCI, a[i], 0, 0);
    }
    for (uint32_t i = 0; i < 8; i++) {
        built_op(b, PTOISA_TEXPANDS, c[i], 0, 0);
    }
    built_op(b, PTOISA_TCI, x, 0, 0);
    built_op(b, PTOISA_TEXP, x, x, 0);  // needs the ninth
    built_op(b, PTOISA_TCI, x, 0, 0);   // and there are events again
    assert_int_equal(finish_apart(b), 1);
    char expected[4096] = "";
    for (int i = 0; i < 32; i++) {
        size_t at = strlen(expected);
        bool is_first = i % 16 < 8, is_set = i < 16;
        const char *op = is_first ? "TCI" : "TEXPANDS";
        if (is_set) {
            snprintf(expected + at, sizeof expected - at, "%s\nSET %s %d\n", op,
                     is_first ? "S V" : "V S", i % 8);
        } else {
            snprintf(expected + at, sizeof expected - at, "WAIT %s %d\n%s\n",
                     is_first ? "V S" : "S V", i % 8, op);
        }
    }
    strcat(expected, "TCI\nBARRIER ALL\nTEXP\nSET V S 0\nWAIT V S 0\nTCI\n");
    built_is(b, expected);
}

// TCI overwrites what is stored, 20 times: flags MTE3 to S that nothing answers. The last one's
// event is left alone.
BUILT_TEST(waits__event_7_is_for_the_end, PTOISA_A5) {
    uint32_t t[20];
    make_tiles(b, t, 20);
    for (uint32_t i = 0; i < 20; i++) {
        built_op(b, PTOISA_TEXPANDS, t[i], 0, 0);
    }
    for (uint32_t i = 0; i < 20; i++) {
        built_store(b, i % 4, t[i]);
    }
    for (uint32_t i = 0; i < 20; i++) {
        built_op(b, PTOISA_TCI, t[i], 0, 0);
    }
    finish(b);
    uint32_t sevens = 0, flags = 0;
    for (uint64_t i = 0; i < b->list.insn_count; i++) {
        const pwsp_insn *insn = &b->list.insns[i];
        bool is_ours = insn->op == PTOISA_SET_FLAG && insn->src_pipe == PTOISA_PIPE_MTE3;
        flags += is_ours;
        sevens += is_ours && insn->event == 7;
    }
    assert_int_equal(flags, 8);
    assert_int_equal(sevens, 1);
}

// -- random lists ---------------------------------------------------------------------------------

static void random_lists(uint64_t *random, int lists, uint32_t length, uint32_t rounds) {
    uint64_t insns = 0, flags = 0, barriers = 0, alls = 0, refused = 0;
    for (int n = 0; n < lists; n++) {
        built b;
        built_init(&b, (ptoisa_family)(n % 2));
        // Little memory, so that much of it is used again; or much.
        if (n % 3) {
            b.machine.memory_size[PTOISA_VEC] = 8192;
            b.machine.memory_size[PTOISA_MAT] = 32768;
        }
        uint32_t recent = (uint32_t)1 << test_random_in(random, 0, 6);
        built_random(&b, random, (uint32_t)test_random_in(random, 1, length), recent);
        uint64_t count = b.list.insn_count;
        if (!pwsp_list_place(&b.list, &b.machine, &b.fault)) {
            assert_int_equal(b.fault.status, PTOWSP_LIMIT_EXCEEDED);
            refused++;
            built_free(&b);
            continue;
        }
        built_must(&b, pwsp_list_add_waits(&b.list, &b.machine, &b.fault));
        built_must(&b, pwsp_list_verify(&b.list, &b.machine, &b.fault));
        const char *what = "";
        if (!judge_list(&b, random, rounds, &what)) {
            fail_msg("list %d: %s", n, what);
        }
        insns += count;
        flags += built_count(&b, PTOISA_SET_FLAG);
        for (uint64_t i = 0; i < b.list.insn_count; i++) {
            if (b.list.insns[i].op == PTOISA_PIPE_BARRIER) {
                *(b.list.insns[i].src_pipe == PTOISA_PIPE_ALL ? &alls : &barriers) += 1;
            }
        }
        built_free(&b);
    }
    print_message("%d lists, %llu of them too large: %llu instructions, %llu flags, %llu barriers, "
                  "%llu of all pipes\n",
                  lists, (unsigned long long)refused, (unsigned long long)insns,
                  (unsigned long long)flags, (unsigned long long)barriers,
                  (unsigned long long)alls);
    assert_true(4 * refused <= (uint64_t)lists);
}

TEST(waits__random_lists_run_at_any_speed) {
    uint64_t random = test_seed();
    random_lists(&random, 400, 60, 20);
    random_lists(&random, 15, 400, 5);
}

TEST(waits__some_lists_run_at_thousands_of_speeds) {
    uint64_t random = test_seed();
    random_lists(&random, 6, 150, 2000);
}

// A few kinds of instructions of two or three pipes over many tiles that live long: what runs out
// of events.
TEST(waits__random_lists_that_run_out_of_events) {
    uint64_t random = test_seed(), flags = 0, alls = 0;
    for (int n = 0; TEST_ROUNDS(n, 35); n++) {
        built b;
        built_init(&b, (ptoisa_family)(n % 2));
        uint32_t t[40];
        make_tiles(&b, t, 40);
        for (uint32_t i = 0; i < 40; i++) {
            built_load(&b, t[i], 0);
        }
        uint32_t kinds = (uint32_t)test_random_in(&random, 2, 4);
        uint32_t run = (uint32_t)test_random_in(&random, 1, 15), kind = 0;
        for (uint32_t i = 0; i < 150; i++) {
            uint32_t x = t[test_random_in(&random, 0, 39)], y = t[test_random_in(&random, 0, 39)];
            if (test_random_in(&random, 0, run) == 0) {
                kind = (uint32_t)test_random_in(&random, 0, kinds - 1);
            }
            switch (kind) {
            case 0: built_op(&b, PTOISA_TEXP, x, y, 0); break;
            case 1: built_op(&b, PTOISA_TCI, x, y, 0); break;
            case 2: built_load(&b, x, 0); break;
            default: built_store(&b, 1, x); break;
            }
        }
        finish(&b);
        flags += built_count(&b, PTOISA_SET_FLAG);
        for (uint64_t i = 0; i < b.list.insn_count; i++) {
            alls += b.list.insns[i].op == PTOISA_PIPE_BARRIER &&
                    b.list.insns[i].src_pipe == PTOISA_PIPE_ALL;
        }
        built_free(&b);
    }
    print_message("%llu flags, %llu barriers of all pipes\n", (unsigned long long)flags,
                  (unsigned long long)alls);
}

// Two pipes that send each other about as many flags as there are events, early, and take them
// late.
TEST(waits__random_lists_that_cross) {
    uint64_t random = test_seed(), flags = 0, alls = 0;
    for (int n = 0; TEST_ROUNDS(n, 70); n++) {
        built b;
        built_init(&b, (ptoisa_family)(n % 2));
        uint32_t tiles[2][16], counts[2];
        for (int side = 0; side < 2; side++) {
            counts[side] = (uint32_t)test_random_in(&random, 6, 12);
            make_tiles(&b, tiles[side], counts[side]);
        }
        for (int phase = (int)test_random_in(&random, 2, 6); phase > 0; phase--) {
            bool is_taking = phase % 2;
            uint32_t done[2] = {0, 0};
            while (done[0] < counts[0] || done[1] < counts[1]) {
                uint32_t from = (uint32_t)test_random_in(&random, 0, 1);
                if (done[from] < counts[from]) {
                    uint32_t tile = tiles[from][done[from]++];
                    bool is_scalar = (from == 1) != is_taking;
                    built_op(&b, is_scalar ? PTOISA_TCI : PTOISA_TEXPANDS, tile, 0, 0);
                }
            }
            tiles[0][0] = built_vec(&b, 1, 8);
            tiles[1][0] = built_vec(&b, 1, 8);
        }
        alls += finish_apart(&b);
        flags += built_count(&b, PTOISA_SET_FLAG);
        built_free(&b);
    }
    print_message("%llu flags, %llu barriers of all pipes\n", (unsigned long long)flags,
                  (unsigned long long)alls);
}

TEST(waits__survives_each_refused_allocation) {
    size_t refused = 0;
    for (bool is_good = false; !is_good; refused++) {
        uint64_t random = 3;
        built b;
        built_init(&b, PTOISA_A2A3);
        built_random(&b, &random, 300, 30);
        built_must(&b, pwsp_list_place(&b.list, &b.machine, &b.fault));
        uint64_t count = b.list.insn_count;
        built_refuse(&b, refused + 1);
        is_good = pwsp_list_add_waits(&b.list, &b.machine, &b.fault);
        if (!is_good) {
            assert_int_equal(b.fault.status, PTOWSP_OUT_OF_MEMORY);
            assert_string_equal(b.fault.text, "waits: out of memory");
            assert_true(b.list.insn_count == count);
            assert_int_equal(built_count(&b, PTOISA_SET_FLAG), 0);
        }
        b.memory.refuse_at = 0;  // what was left as it was can be done again
        built_must(&b, is_good || pwsp_list_add_waits(&b.list, &b.machine, &b.fault));
        built_must(&b, pwsp_list_verify(&b.list, &b.machine, &b.fault));
        built_free(&b);
    }
    assert_true(refused > 1);  // all but the last are refused: blocks of the list's arena
}

BUILT_TEST(waits__refuses_more_instructions_than_it_counts, PTOISA_A2A3) {
    b->list.insn_count = (1u << 24) + 1;
    assert_false(pwsp_list_add_waits(&b->list, &b->machine, &b->fault));
    assert_int_equal(b->fault.status, PTOWSP_LIMIT_EXCEEDED);
    assert_string_equal(b->fault.text, "waits: 16777217 instructions, more than 16777216");
    b->list.insn_count = 0;
}
