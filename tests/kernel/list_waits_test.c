// Flags and barriers between the instructions of a list.
//
// Random lists are placed, get their flags, are verified, and run on the judge of list_judge.h, whose
// pipes have random speeds. What a list must look like on paper is in lists.txt.

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

#define BUILT_TEST(name, machine) TEST_MADE(name, built, b, built_init(b, machine), built_free(b))

// -- eight events ---------------------------------------------------------------------------------

// Roots for [count] tiles.
static void make_tiles(built *b, uint32_t *tiles, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        tiles[i] = built_vec(b, 1, 8);
    }
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
