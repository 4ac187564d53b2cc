// What the proof of an instruction list refuses, and that it refuses no more and no less than what
// can go wrong.
//
// Each fault is made once by hand. Then lists that passed are damaged, in one place at a time:
// flags and barriers are taken away, moved and renamed, tiles moved and memories cut. The judge of
// list_build.h, which runs lists on pipes of random speeds and holds up each instruction once, says
// which damage matters. For flags and barriers the proof must agree with it in both directions.

#include "list_judge.h"

#include "src/kernel/compiled.h"
#include "src/kernel/split.h"

static void refuses_as(built *b, ptowsp_status status, uint32_t insn, const char *text) {
    assert_false(pwsp_list_verify(&b->list, &b->machine, &b->fault));
    assert_string_equal(b->fault.text, text);
    assert_int_equal(b->fault.status, status);
    assert_int_equal(b->fault.insn, insn);
}

static void refuses(built *b, uint32_t insn, const char *text) {
    refuses_as(b, PTOWSP_INVALID_PARAMS, insn, text);
}

static bool is_good(built *b) {
    return pwsp_list_verify(&b->list, &b->machine, &b->fault);
}

// -- tiles ----------------------------------------------------------------------------------------

// A load of one tile, which all is right with but for what a test changes.
static pwsp_list_tile *one_tile(built *b) {
    built_init(b, PTOISA_A2A3);
    uint32_t x = built_vec(b, 4, 8);
    built_load(b, x, 0);
    b->list.used[PTOISA_VEC] = 184 << 10;
    built_must(b, is_good(b));
    return &b->list.tiles[x];
}

#define TILE_IS_REFUSED(change, shape, what)                                                       \
    do {                                                                                           \
        built b;                                                                                   \
        pwsp_list_tile *tile = one_tile(&b);                                                       \
        (void)tile;                                                                                \
        change;                                                                                    \
        refuses(&b, 0, "verify: tile 1 (" shape ") of instruction 0 (TLOAD) " what);               \
        built_free(&b);                                                                            \
    } while (0)

TEST(verify__refuses_tiles_that_the_device_does_not_take) {
    TILE_IS_REFUSED(tile->dtype = 0, "4 x 8 none in UB", "is no tile");
    TILE_IS_REFUSED(tile->dtype = 99, "4 x 8 none in UB", "is no tile");
    TILE_IS_REFUSED(tile->memory = 7, "4 x 8 f32 in no memory", "is no tile");
    TILE_IS_REFUSED(tile->layout = 6, "4 x 8 f32 in UB", "is no tile");
    TILE_IS_REFUSED(tile->rows = 0, "0 x 8 f32 in UB", "is no tile");
    TILE_IS_REFUSED(tile->cols = 0, "4 x 0 f32 in UB", "is no tile");
    TILE_IS_REFUSED(tile->valid_rows.max = 5, "4 x 8 f32 in UB",
                    "may be valid beyond what is allocated");
    TILE_IS_REFUSED(tile->valid_cols.max = 9, "4 x 8 f32 in UB",
                    "may be valid beyond what is allocated");
    TILE_IS_REFUSED(tile->cols = 9, "4 x 9 f32 in UB", "has rows that are no multiple of 32");
    TILE_IS_REFUSED(tile->layout = PTOISA_COL_MAJOR, "4 x 8 f32 in UB",
                    "has columns that are no multiple of 32");
    TILE_IS_REFUSED((tile->memory = PTOISA_MAT, tile->layout = PTOISA_NZ, tile->rows = 24),
                    "24 x 8 f32 in L1", "has boxes that are not whole");
    TILE_IS_REFUSED((tile->memory = PTOISA_ACC, tile->layout = PTOISA_NZ, tile->rows = 16),
                    "16 x 8 f32 in L0C", "has boxes that are not whole");
}

TEST(verify__refuses_tiles_that_are_where_they_may_not_be) {
    TILE_IS_REFUSED(tile->root = 0, "4 x 8 f32 in UB", "has no root");
    TILE_IS_REFUSED(tile->root = 2, "4 x 8 f32 in UB", "has no root");
    TILE_IS_REFUSED(tile->offset = 32, "4 x 8 f32 in UB", "has no root");
    TILE_IS_REFUSED(tile->address = 16, "4 x 8 f32 in UB", "is at an address that is not aligned");
    TILE_IS_REFUSED(tile->address = (184 << 10) - 96, "4 x 8 f32 in UB", "ends beyond its memory");
    TILE_IS_REFUSED(tile->address = UINT32_MAX - 31, "4 x 8 f32 in UB", "ends beyond its memory");
    TILE_IS_REFUSED(b.list.used[PTOISA_VEC] = 96, "4 x 8 f32 in UB",
                    "ends beyond what is said to be used");

    built b;
    one_tile(&b);
    b.list.tiles[1].address = (184 << 10) - 128;  // the last place
    built_must(&b, is_good(&b));
    uint32_t view = built_view(&b, 1, 3, 1);
    built_load(&b, view, 0);
    built_must(&b, is_good(&b));
    b.list.tiles[view].rows = 2;
    refuses(&b, 1,
            "verify: tile 2 (2 x 8 f32 in UB) of instruction 1 (TLOAD) is a view that leaves its "
            "root");
    b.list.tiles[view].rows = 1;
    b.list.tiles[view].offset = 80;
    refuses(
        &b, 1,
        "verify: tile 2 (1 x 8 f32 in UB) of instruction 1 (TLOAD) is at an address that is not "
        "aligned");
    b.list.tiles[view].offset = 0;
    b.list.tiles[view].memory = PTOISA_MAT;
    b.list.tiles[view].layout = PTOISA_ROW_MAJOR;
    refuses(&b, 1,
            "verify: tile 2 (1 x 8 f32 in L1) of instruction 1 (TLOAD) is a view that leaves its "
            "root");
    b.list.tiles[view].memory = PTOISA_VEC;
    uint32_t of_view = built_view(&b, view, 0, 1);
    built_load(&b, of_view, 0);
    built_must(&b, is_good(&b));  // its root is the view's root
    b.list.tiles[of_view].root = view;
    refuses(&b, 2, "verify: tile 3 (1 x 8 f32 in UB) of instruction 2 (TLOAD) has no root");
    b.list.tiles[of_view].root = 1;
    b.list.tiles[1].cols = 9;
    b.list.insns[0].dst[0] = of_view;  // which by itself is one that the device takes
    refuses(&b, 0,
            "verify: tile 1 (4 x 9 f32 in UB) of instruction 0 (TLOAD) has rows that are no "
            "multiple of 32");
    b.list.tiles[1].cols = 8;
    b.list.insns[0].dst[0] = 1;
    b.list.insns[2].dst[0] = 9;
    refuses(&b, 2, "verify: instruction 2 (TLOAD) uses tile 9 of 4");
    b.list.insns[2].dst[0] = b.list.insns[2].param = 0;
    built_must(&b, is_good(&b));  // it accesses nothing
    b.list.insns[2].op = PTOISA_NOP;
    refuses(&b, 2, "verify: instruction 2 is none");
    b.list.insns[2].op = PTOISA_OP_COUNT;
    refuses(&b, 2, "verify: instruction 2 is none");
    built_free(&b);
}

#define BUILT_TEST(name, machine) TEST_MADE(name, built, b, built_init(b, machine), built_free(b))

// Lists that are proved, and those that are refused at an instruction.
static const struct {
    ptoisa_family family;
    const char *list;
    uint32_t insn;
    const char *text;  // after "verify: "; NULL: it is good
} lists[] = {
    // Roots whose bytes overlap while they live; in the last one z is born where x dies.
    {PTOISA_A5,
     "UB 4x8: x y@128 z@256; x = TLOAD 0; y = TLOAD 1; SET MTE2 V 0; WAIT MTE2 V 0; z = TADD x y",
     0, NULL},
    {PTOISA_A5,
     "UB 4x8: x y@96 z@256; x = TLOAD 0; y = TLOAD 1; SET MTE2 V 0; WAIT MTE2 V 0; z = TADD x y", 1,
     "tile 2 overlaps tile 1 in UB while both live, at instruction 1 (TLOAD)"},
    {PTOISA_A5,
     "UB 4x8: x y@128 z; x = TLOAD 0; y = TLOAD 1; SET MTE2 V 0; WAIT MTE2 V 0; z = TADD x y", 4,
     "tile 3 overlaps tile 1 in UB while both live, at instruction 4 (TADD)"},
    // What was not written is read: a source, a destination, what was scratch.
    {PTOISA_A5, "UB 4x8: x y@128; x = TEXP y", 0,
     "tile 2 (4 x 8 f32 in UB) of instruction 0 (TEXP) is read before it is written"},
    {PTOISA_A5, "UB 4x8: x y@128; x = TEXP", 0, NULL},
    {PTOISA_A5, "UB 4x8: x y@128; x += TEXP", 0,
     "tile 1 (4 x 8 f32 in UB) of instruction 0 (TEXP) is read before it is written"},
    {PTOISA_A5, "UB 4x8: x y@128; x = TEXP; x = TEXP tmp y; x = TEXP y", 2,
     "tile 2 (4 x 8 f32 in UB) of instruction 2 (TEXP) is read before it is written"},
    // Flags that are none or not in turn.
    {PTOISA_A5, "SET V S 3", 0, "instruction 0 (SET_FLAG V to S, event 3) is never waited for"},
    {PTOISA_A5, "SET V S 3; SET V S 3", 1,
     "instruction 1 (SET_FLAG V to S, event 3) is set already"},
    {PTOISA_A5, "SET V S 3; WAIT V S 3", 0, NULL},
    {PTOISA_A5, "SET V S 3; WAIT V S 4", 1,
     "instruction 1 (WAIT_FLAG V to S, event 4) is not set before"},
    {PTOISA_A5, "SET V S 3; WAIT V S 8", 1, "instruction 1 (WAIT_FLAG V to S, event 8) is no flag"},
    {PTOISA_A5, "SET V V 3; WAIT V S 3", 0, "instruction 0 (SET_FLAG V to V, event 3) is no flag"},
    {PTOISA_A5, "SET V ALL 3; WAIT V S 3", 0,
     "instruction 0 (SET_FLAG V to ALL, event 3) is no flag"},
    {PTOISA_A5, "SET ALL S 3; WAIT V S 3", 0,
     "instruction 0 (SET_FLAG ALL to S, event 3) is no flag"},
    // An event that is set again, when V may not have waited for it yet; and when it has, because V answered.
    {PTOISA_A5, "SET MTE2 V 0; WAIT MTE2 V 0; SET MTE2 V 0; WAIT MTE2 V 0", 2,
     "instruction 2 (SET_FLAG MTE2 to V, event 0) may be set before its last wait"},
    {PTOISA_A5,
     "SET MTE2 V 0; WAIT MTE2 V 0; SET V MTE2 0; WAIT V MTE2 0; SET MTE2 V 0; WAIT MTE2 V 0", 0,
     NULL},
    // Accesses without an order.
    {PTOISA_A2A3, "UB 4x8: x; x = TLOAD 2; x = TEXP x", 1,
     "instruction 1 (TEXP on V) may begin before 0 (TLOAD on MTE2) is done with bytes 0 to 128 of "
     "UB"},
    {PTOISA_A2A3, "UB 4x8: x; x = TEXPANDS; x = TEXP x", 1,
     "instruction 1 (TEXP on V) may begin before 0 (TEXPANDS on V) is done with bytes 0 to 128 of "
     "UB"},
    {PTOISA_A5, "UB 4x8: x; x = TEXPANDS; x = TEXP x", 0, NULL},
    {PTOISA_A5,
     "UB 4x8: x y@128; x = TEXPANDS; SET V MTE3 0; WAIT V MTE3 0; TSTORE 2 x; y = TLOAD 2", 4,
     "instruction 4 (TLOAD on MTE2) may begin before 3 (TSTORE on MTE3) is done with tile "
     "parameter 2"},
    {PTOISA_A5,
     "UB 4x8: x y@128; x = TEXPANDS; SET V MTE3 0; WAIT V MTE3 0; TSTORE 2 x; y = TLOAD 1", 3,
     "S may end before instruction 3 (TSTORE on MTE3) has stored"},
    // A barrier of all is one way to wait, one of MTE3 is none.
    {PTOISA_A5,
     "UB 4x8: x y@128; x = TEXPANDS; SET V MTE3 0; WAIT V MTE3 0; TSTORE 2 x; y = TLOAD 1; "
     "BARRIER ALL",
     0, NULL},
    {PTOISA_A5,
     "UB 4x8: x y@128; x = TEXPANDS; SET V MTE3 0; WAIT V MTE3 0; TSTORE 2 x; y = TLOAD 1; "
     "BARRIER MTE3",
     3, "S may end before instruction 3 (TSTORE on MTE3) has stored"},
};

TEST(verify__refuses_lists_that_can_go_wrong) {
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        built b;
        char text[160];
        print_message("%s\n", lists[i].list);
        built_init(&b, lists[i].family);
        built_text(&b, lists[i].list);
        b.list.used[PTOISA_VEC] = 512;
        if (lists[i].text) {
            snprintf(text, sizeof text, "verify: %s", lists[i].text);
            refuses(&b, lists[i].insn, text);
        } else {
            built_must(&b, is_good(&b));
        }
        built_free(&b);
    }
}

BUILT_TEST(verify__refuses_barriers_for_no_pipe, PTOISA_A5) {
    built_sync(b, PTOISA_PIPE_BARRIER, 8, PTOISA_PIPE_ALL, 3);
    refuses(b, 0, "verify: instruction 0 (PIPE_BARRIER no pipe to ALL, event 3) is for no pipe");
}

BUILT_TEST(verify__refuses_lists_that_are_too_long, PTOISA_A2A3) {
    b->list.insn_count = (1u << 30) + 1;
    refuses_as(b, PTOWSP_LIMIT_EXCEEDED, 0, "verify: 1073741825 instructions and 0 tiles");
    b->list.insn_count = 0;
    built_must(b, is_good(b));
}

BUILT_TEST(verify__survives_each_refused_allocation, PTOISA_A2A3) {
    uint64_t random = 3;
    built_random(b, &random, 300, 30);
    built_finish(b);
    size_t bytes = b->memory.live_bytes, refused = 0;
    for (bool has_passed = false; !has_passed; refused++) {
        b->memory.allocations = 0;
        b->memory.refuse_at = refused + 1;
        has_passed = is_good(b);
        if (!has_passed) {
            assert_int_equal(b->fault.status, PTOWSP_OUT_OF_MEMORY);
            assert_string_equal(b->fault.text, "verify: out of memory");
        }
        assert_int_equal(b->memory.live_bytes, bytes);
    }
    assert_true(refused >= 2);
}

// -- damage ---------------------------------------------------------------------------------------

typedef struct damage_count {
    uint64_t tried, matters, refused;
} damage_count;

// Compares the proof with the judge on a damaged list. is_exact: both must say the same; else the
// proof may refuse more.
static void compare(built *b, uint64_t *random, bool is_exact, damage_count *count,
                    const char *kind) {
    const char *what = "nothing";
    bool is_proved = is_good(b);
    bool is_judged = judge_list(b, random, 3, &what);
    if (is_proved != is_judged && (is_exact || is_proved)) {
        char text[8192];
        built_print(b, text, sizeof text);
        fail_msg("%s: the judge finds %s, the proof %s\n%s", kind, what,
                 is_proved ? "nothing" : b->fault.text, text);
    }
    count->tried++;
    count->matters += !is_judged;
    count->refused += !is_proved;
}

static bool is_sync(const pwsp_insn *insn) {
    return insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG ||
           insn->op == PTOISA_PIPE_BARRIER;
}

static void remove_insn(built *b, uint64_t at) {
    memmove(&b->list.insns[at], &b->list.insns[at + 1],
            (size_t)(b->list.insn_count - at - 1) * sizeof b->list.insns[0]);
    b->list.insn_count--;
}

// The wait of a set.
static uint64_t wait_of(const built *b, uint64_t set) {
    const pwsp_insn *s = &b->list.insns[set];
    for (uint64_t i = set + 1; i < b->list.insn_count; i++) {
        const pwsp_insn *w = &b->list.insns[i];
        if (w->op == PTOISA_WAIT_FLAG && w->src_pipe == s->src_pipe && w->dst_pipe == s->dst_pipe &&
            w->event == s->event && w->side == s->side) {
            return i;
        }
    }
    fail_msg("%s", "no wait");
    return 0;
}

typedef struct saved {
    pwsp_insn *insns;
    uint64_t insn_count;
    pwsp_list_tile *tiles;
    uint32_t used[PTOISA_MEMORY_COUNT];
    ptoisa_machine machine;
} saved;

static void save(saved *s, const built *b) {
    s->insn_count = b->list.insn_count;
    s->insns = (pwsp_insn *)malloc((size_t)s->insn_count * sizeof *s->insns);
    s->tiles = (pwsp_list_tile *)malloc((size_t)b->list.tile_count * sizeof *s->tiles);
    assert_true(s->insns && s->tiles);
    memcpy(s->insns, b->list.insns, (size_t)s->insn_count * sizeof *s->insns);
    memcpy(s->tiles, b->list.tiles, (size_t)b->list.tile_count * sizeof *s->tiles);
    memcpy(s->used, b->list.used, sizeof s->used);
    s->machine = b->machine;
}

static void restore(const saved *s, built *b) {
    b->list.insn_count = s->insn_count;
    memcpy(b->list.insns, s->insns, (size_t)s->insn_count * sizeof *s->insns);
    memcpy(b->list.tiles, s->tiles, (size_t)b->list.tile_count * sizeof *s->tiles);
    memcpy(b->list.used, s->used, sizeof s->used);
    b->machine = s->machine;
}

static void swap_insns(built *b, uint64_t a, uint64_t c) {
    pwsp_insn insn = b->list.insns[a];
    b->list.insns[a] = b->list.insns[c];
    b->list.insns[c] = insn;
}

typedef struct damages {
    damage_count flag, half, barrier, event, moved, pipe, address, onto, memory, fifo, shared;
} damages;

// Damages each flag and barrier of a list.
static void damage_sync(built *b, const saved *s, uint64_t *random, damages *d) {
    for (uint64_t i = 0; i < s->insn_count; i++) {
        const pwsp_insn *insn = &s->insns[i];
        if (!is_sync(insn)) {
            continue;
        }
        remove_insn(b, i);
        compare(b, random, true, insn->op == PTOISA_PIPE_BARRIER ? &d->barrier : &d->half,
                "one taken away");
        restore(s, b);
        for (int step = 0; step < 3; step++) {  // later in the list, by one, by two, by some
            uint64_t to =
                i + (step == 2 ? (uint64_t)test_random_in(random, 3, 20) : 1u + (uint32_t)step);
            for (uint64_t at = i; at < to && at + 1 < s->insn_count; at++) {
                swap_insns(b, at, at + 1);
            }
            compare(b, random, true, &d->moved, "one moved later");
            restore(s, b);
            for (uint64_t at = i; at > 0 && i - at < to - i; at--) {
                swap_insns(b, at, at - 1);
            }
            compare(b, random, true, &d->moved, "one moved earlier");
            restore(s, b);
        }
        b->list.insns[i].src_pipe = (uint8_t)((insn->src_pipe + 1) % PTOISA_PIPE_COUNT);
        if (insn->op == PTOISA_PIPE_BARRIER) {
            compare(b, random, true, &d->pipe, "barrier of another pipe");
            restore(s, b);
            continue;
        }
        restore(s, b);
        if (insn->op != PTOISA_SET_FLAG) {
            continue;
        }
        uint64_t wait = wait_of(b, i);
        remove_insn(b, wait);
        remove_insn(b, i);
        compare(b, random, true, &d->flag, "a flag taken away");
        restore(s, b);
        // The same event for all: what is in order stays good.
        uint8_t event = (uint8_t)test_random_in(random, 0, 1);
        b->list.insns[i].event = b->list.insns[wait].event = event;
        compare(b, random, true, &d->event, "another event");
        restore(s, b);
        // Events of two sets, or two waits, swapped.
        for (uint64_t k = i + 1; k < s->insn_count; k++) {
            const pwsp_insn *other = &s->insns[k];
            if (other->op == PTOISA_SET_FLAG && other->src_pipe == insn->src_pipe &&
                other->dst_pipe == insn->dst_pipe && other->side == insn->side &&
                other->event != insn->event) {
                b->list.insns[i].event = other->event;
                b->list.insns[k].event = insn->event;
                compare(b, random, true, &d->event, "events of two sets swapped");
                restore(s, b);
                break;
            }
        }
    }
}

// Moves each tile, and cuts memories.
static void damage_tiles(built *b, const saved *s, uint64_t *random, damages *d) {
    for (uint64_t t = 1; t < b->list.tile_count; t++) {
        if (s->tiles[t].root != t || s->tiles[t].first > s->tiles[t].last) {
            continue;
        }
        uint32_t memory = s->tiles[t].memory;
        b->list.used[memory] = b->machine.memory_size[memory];
        b->list.tiles[t].address += 32;
        compare(b, random, false, &d->address, "32 bytes up");
        if (s->tiles[t].address >= 32) {
            b->list.tiles[t].address = s->tiles[t].address - 32;
            compare(b, random, false, &d->address, "32 bytes down");
        }
        uint64_t other = (uint64_t)test_random_in(random, 1, (int64_t)b->list.tile_count - 1);
        if (s->tiles[other].root == other && s->tiles[other].memory == memory) {
            b->list.tiles[t].address = s->tiles[other].address;
            compare(b, random, false, &d->onto, "onto another tile");
        }
        restore(s, b);
    }
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        if (s->used[memory]) {
            b->machine.memory_size[memory] = s->used[memory] - 32;
            assert_false(is_good(b));
            b->machine.memory_size[memory] = s->used[memory];
            built_must(b, is_good(b));
            d->memory.tried++, d->memory.matters++, d->memory.refused++;
            restore(s, b);
        }
    }
}

// Damages each TPUSH and TPOP.
static void damage_fifos(built *b, const saved *s, uint64_t *random, damages *d) {
    for (uint64_t i = 0; i < s->insn_count; i++) {
        const pwsp_insn *insn = &s->insns[i];
        if (!pwsp_insn_is_fifo(insn)) {
            continue;
        }
        remove_insn(b, i);
        compare(b, random, true, &d->fifo, "a push or pop taken away");
        restore(s, b);
        b->list.insns[i].op = insn->op == PWSP_INSN_TPUSH ? PWSP_INSN_TPOP : PWSP_INSN_TPUSH;
        assert_false(is_good(b));
        restore(s, b);
        b->list.insns[i].mode ^= 1;
        assert_false(is_good(b));
        restore(s, b);
        b->list.insns[i].mode = PWSP_FIFO_COUNT;
        assert_false(is_good(b));
        assert_non_null(strstr(b->fault.text, ", FIFO 2) is of no FIFO"));
        restore(s, b);
        b->list.insns[i].side = insn->side == PWSP_SIDE_CUBE ? PWSP_SIDE_VECTOR : PWSP_SIDE_CUBE;
        assert_false(is_good(b));
        restore(s, b);
        for (uint64_t at = i; at > 0 && i - at < 8; at--) {
            swap_insns(b, at, at - 1);
            compare(b, random, false, &d->fifo, "a push or pop moved earlier");
        }
        restore(s, b);
        for (uint64_t at = i; at + 1 < s->insn_count && at - i < 8; at++) {
            swap_insns(b, at, at + 1);
            compare(b, random, false, &d->fifo, "a push or pop moved later");
        }
        restore(s, b);
    }
    for (int f = 0; f < PWSP_FIFO_COUNT; f++) {
        if (b->list.fifos[f].slot_bytes) {
            pwsp_list_fifo fifo = b->list.fifos[f];
            b->list.fifos[f].slot_bytes = 4;
            d->fifo.tried++, d->fifo.matters++, d->fifo.refused += !is_good(b);
            b->list.fifos[f] = fifo;
            b->list.fifos[f].flag = 15;
            d->fifo.tried++, d->fifo.matters++, d->fifo.refused += !is_good(b);
            b->list.fifos[f] = fifo;
            for (uint32_t slots = 0; slots <= PWSP_FIFO_SLOTS + 1; slots += PWSP_FIFO_SLOTS + 1) {
                b->list.fifos[f].slots = (uint8_t)slots;
                d->fifo.tried++, d->fifo.matters++, d->fifo.refused += !is_good(b);
                b->list.fifos[f] = fifo;
            }
        }
    }
}

// The halves of a list have parameters of their own, or not: then nothing may order them.
static bool finish_mixed(built *b, uint64_t *random, damages *d) {
    bool is_apart = test_random_in(random, 0, 3) > 0;
    for (uint64_t i = 0; i < b->list.insn_count && is_apart; i++) {
        pwsp_insn *insn = &b->list.insns[i];
        insn->param = insn->param == 0                 ? 0
                      : insn->side == PWSP_SIDE_VECTOR ? (uint16_t)(5 + insn->param % 4)
                                                       : (uint16_t)(1 + insn->param % 4);
    }
    built_must(b, pwsp_list_place(&b->list, &b->machine, &b->fault));
    built_must(b, pwsp_list_add_waits(&b->list, &b->machine, &b->fault));
    if (is_apart || !b->list.is_mixed) {
        built_must(b, is_good(b));
        return true;
    }
    compare(b, random, true, &d->shared, "shared parameters");
    return is_good(b);
}

static void print_damage(const char *kind, const damage_count *count) {
    print_message("%-26s %6llu tried, %6llu matter, %6llu refused\n", kind,
                  (unsigned long long)count->tried, (unsigned long long)count->matters,
                  (unsigned long long)count->refused);
}

TEST(verify__refuses_the_damage_that_matters) {
    uint64_t random = test_seed();
    uint32_t split_count = 0;
    damages d = {0};
    for (int n = 0; TEST_ROUNDS(n, 60); n++) {
        built b;
        built_init(&b, (ptoisa_family)(n % 2));
        b.machine.memory_size[PTOISA_VEC] = 8192;
        b.machine.memory_size[PTOISA_MAT] = 32768;
        for (int memory = PTOISA_LEFT; memory < PTOISA_MEMORY_COUNT; memory++) {
            b.machine.memory_size[memory] = 8192;
        }
        // Half of those for A2/A3 are cut into halves, of which half are split between vector cores.
        bool is_mixed = n % 4 == 0, is_by_row = n % 8 == 0;
        (is_by_row ? built_random_rows : built_random)(&b, &random,
                                                       (uint32_t)test_random_in(&random, 5, 40),
                                                       (uint32_t)test_random_in(&random, 1, 12));
        if (is_mixed) {
            built_cut(&b);
            assert_true(b.list.split_tile || !is_by_row);
        }
        if (!pwsp_list_place(&b.list, &b.machine, &b.fault)) {
            built_free(&b);
            continue;
        }
        if (is_mixed ? !finish_mixed(&b, &random, &d) : (built_finish(&b), false)) {
            built_free(&b);
            continue;
        }
        split_count += b.list.split_tile != 0;
        saved s;
        save(&s, &b);
        damage_sync(&b, &s, &random, &d);
        damage_tiles(&b, &s, &random, &d);
        damage_fifos(&b, &s, &random, &d);
        free(s.insns);
        free(s.tiles);
        built_free(&b);
    }
    print_damage("set and wait taken away", &d.flag);
    print_damage("set or wait taken away", &d.half);
    print_damage("barrier taken away", &d.barrier);
    print_damage("barrier of another pipe", &d.pipe);
    print_damage("set, wait, barrier moved", &d.moved);
    print_damage("another event", &d.event);
    print_damage("tile 32 bytes off", &d.address);
    print_damage("tile onto another", &d.onto);
    print_damage("memory too small", &d.memory);
    print_damage("push, pop, FIFO damaged", &d.fifo);
    print_damage("parameters of both halves", &d.shared);
    // There is hardly a flag that is not needed, and no barrier.
    assert_true(d.flag.matters * 100 >= d.flag.tried * 97);
    assert_true(d.half.matters == d.half.tried);
    assert_true(d.barrier.matters == d.barrier.tried);
    assert_true(d.fifo.matters * 2 >= d.fifo.tried);
    assert_true(split_count > 0);
}

// -- rows of two vector cores ---------------------------------------------------------------------

// What is shared: rows of 8 x 16 elements (or of 8 x 1, one below another), or the elements of a row of
// 128, which is a column in truth.
typedef enum shared { ROWS, ELEMENTS } shared;

// Such an operand; every element another value.
static ptoisa_tile row_operand(uint32_t *data, ptoisa_dtype dtype, bool is_column, shared how,
                               uint32_t seed) {
    ptoisa_tile tile = {0};
    for (uint32_t i = 0; i < 8 * 16; i++) {
        float value = (float)((i * 37 + seed * 11) % 23) / 8 + 0.25f;
        data[i] = (i * 7 + seed * 5) % 13;
        if (dtype == PTOISA_F32) {
            memcpy(&data[i], &value, sizeof value);
        }
    }
    tile.data = data;
    tile.dtype = (uint8_t)dtype;
    tile.memory = PTOISA_VEC;
    tile.layout = is_column ? PTOISA_COL_MAJOR : PTOISA_ROW_MAJOR;
    tile.rows = tile.valid_rows = 8;
    tile.cols = tile.valid_cols = is_column ? 1 : 16;
    if (how == ELEMENTS) {
        tile.layout = PTOISA_ROW_MAJOR;
        tile.rows = tile.valid_rows = 1;
        tile.cols = tile.valid_cols = 8 * 16;
    }
    return tile;
}

// Rows [begin, end) of a tile, or those elements (times 16).
static ptoisa_tile row_part(ptoisa_tile tile, uint32_t begin, uint32_t end) {
    if (tile.rows == 1) {
        tile.data = (uint32_t *)tile.data + begin * 16;
        tile.valid_cols = (end - begin) * 16;
        return tile;
    }
    tile.data = (uint32_t *)tile.data + begin * tile.cols;
    tile.valid_rows = end - begin;
    return tile;
}

static bool row_has_form(ptoisa_op op, const char *prefix) {
    return strncmp(ptoisa_op_name(op), prefix, strlen(prefix)) == 0;
}

// Executes an instruction on rows [0, 5) and [5, 8) by themselves, and on all: the same bits.
static void rows_are_by_themselves(ptoisa_op op, shared how) {
    bool is_int = row_has_form(op, "TAND") || row_has_form(op, "TOR") || row_has_form(op, "TXOR") ||
                  row_has_form(op, "TSH") || row_has_form(op, "TNOT");
    bool is_expand = row_has_form(op, "TROWEXPAND");
    bool is_reduced = row_has_form(op, "TROW") && !is_expand;
    ptoisa_dtype dtype = is_int ? PTOISA_I32 : PTOISA_F32;
    uint32_t data[5][8 * 16], whole[8 * 16];
    pwsp_insn insn = {.op = (uint8_t)op,
                      .scalar.value = 2,
                      .dst[0] = 1,
                      .src[0] = 2,
                      .src[1] = 3,
                      .src[2] = 4,
                      .tmp = 5};
    for (int round = 0; round < 2; round++) {
        ptoisa_tile tiles[6];
        ptoisa_tile all[6] = {0};
        bool is_index = row_has_form(op, "TROWARG");
        all[1] = row_operand(data[0], is_index ? PTOISA_I32 : dtype, is_reduced, how, 1);
        all[2] = row_operand(data[1], dtype, op == PTOISA_TROWEXPAND, how, 2);
        all[3] = row_operand(data[2], dtype, is_expand, how, 3);
        all[4] = row_operand(data[3], dtype, false, how, 4);
        all[5] = row_operand(data[4], dtype, false, how, 5);
        if (op == PTOISA_TCVT) {
            all[1].dtype = PTOISA_I32;
        }
        pwsp_tile_core core = {0};
        ptoisa_core_init(&core.core, PTOISA_MODEL_UNIT, ptoisa_machine_910b());
        core.core.is_checked = false;
        core.tiles = tiles;
        pwsp_tile_code code = {0};
        static const uint32_t cuts[2][3] = {{0, 8, 8}, {0, 5, 8}};
        for (int part = 0; part < 2; part++) {
            for (int i = 0; i < 6; i++) {
                tiles[i] = i ? row_part(all[i], cuts[round][part], cuts[round][part + 1]) : all[i];
            }
            if (tiles[1].valid_rows && tiles[1].valid_cols) {
                pwsp_tile_core_insn(&core, &code, &insn, NULL);
            }
        }
        if (round == 0) {
            memcpy(whole, data[0], sizeof whole);
        } else if (memcmp(whole, data[0], sizeof whole) != 0) {
            fail_msg("%s: rows by themselves have other bits", ptoisa_op_name(op));
        }
    }
}

// A column of so many rows, and the view of it as a row.
static uint32_t column_as_row(built *b, uint32_t rows, uint32_t *out_column) {
    uint32_t column = built_vec(b, rows, 1), row = built_vec(b, 1, rows);
    b->list.tiles[column].layout = PTOISA_COL_MAJOR;
    b->list.tiles[row].root = column;
    if (out_column) {
        *out_column = column;
    }
    return row;
}

// Which instructions are taken for such, on rows and on columns that are seen as a row.
TEST(split__is_of_instructions_whose_rows_are_by_themselves) {
    uint32_t count = 0, flat_count = 0;
    for (uint32_t op = 1; op < PTOISA_OP_COUNT; op++) {
        built b;
        built_init(&b, PTOISA_A2A3);
        uint32_t x = built_vec(&b, 8, 16), y = built_vec(&b, 8, 16), at = 9;
        uint32_t u = column_as_row(&b, 32, NULL), v = column_as_row(&b, 32, NULL);
        built_op(&b, (ptoisa_op)op, x, y, 0)->side = PWSP_SIDE_VECTOR;
        bool is_sync = op == PTOISA_SET_FLAG || op == PTOISA_WAIT_FLAG || op == PTOISA_PIPE_BARRIER;
        bool is_moved = op == PTOISA_TLOAD || op == PTOISA_TSTORE;
        if (pwsp_list_is_by_row(&b.list, x, &at) && !is_sync && !is_moved) {
            rows_are_by_themselves((ptoisa_op)op, ROWS);
            count++;
        }
        b.list.insns[0].dst[0] = u;
        b.list.insns[0].src[0] = v;
        if (pwsp_list_is_by_row(&b.list, x, &at) && !is_sync) {
            rows_are_by_themselves((ptoisa_op)op, ELEMENTS);
            flat_count++;
        }
        built_free(&b);
    }
    assert_int_equal(flat_count, 47);  // without 8 of rows with a column and 6 of a sum of each row
    assert_int_equal(count, 61);
}

// Lists that can be split or not, and those that cannot and say that they are.
static const struct {
    const char *what;
    bool is_split;
} splits[] = {
    {"rows", true},
    {"tiles of one row", false},
    {"transposed", false},
    {"a store to the other core's rows", false},
    {"stores to other rows of another parameter", true},
    {"one row", false},
    {"fewer valid rows, and columns", true},
    {"a column with rows", false},
    {"the number of valid rows", false},
};
enum { SPLIT_COUNT = sizeof splits / sizeof splits[0] };

static void split_build(built *b, int which) {
    uint32_t left = built_tile(b, PTOISA_LEFT, 32, 16), right = built_tile(b, PTOISA_RIGHT, 16, 16);
    uint32_t acc = built_tile(b, PTOISA_ACC, 32, 16), x = built_vec(b, 32, 16);
    uint32_t y = built_vec(b, which == 1 ? 1 : 32, 16), l1 = built_tile(b, PTOISA_MAT, 32, 16);
    uint32_t column, row = column_as_row(b, 32, &column), other = column_as_row(b, 32, NULL);
    built_load(b, l1, 0);
    built_op(b, PTOISA_TMOV, left, l1, 0);
    built_op(b, PTOISA_TMOV, right, l1, 0);
    built_op(b, PTOISA_TMATMUL, acc, left, right);
    built_op(b, PTOISA_TMOV, x, acc, 0);
    built_op(b, which == 2 ? PTOISA_TTRANS : PTOISA_TEXP, y, x, 0);
    built_store(b, 1, y);
    if (which == 3 || which == 4) {  // rows from 4 on: of the other core
        built_store(b, which == 3 ? 1 : 2, y);
        b->list.insns[b->list.insn_count - 1].row = 4;
    }
    if (which == 5) {
        b->list.tiles[y].valid_rows.max = b->list.tiles[x].valid_rows.max = 1;
    }
    if (which >= 6) {
        b->list.tiles[y].valid_rows.max = 20;
        built_op(b, PTOISA_TROWMAX, column, y, 0);
        built_op(b, PTOISA_TEXP, other, which == 7 ? y : row, 0);
        built_op(b, PTOISA_TROWEXPANDSUB, y, y, column);
        built_op(b, PTOISA_TMULS, y, y, 0)->scalar.cols_of = which == 8 ? row : y;
    }
}

TEST(split__is_refused_where_rows_meet) {
    for (int which = 0; which < SPLIT_COUNT; which++) {
        built b;
        built_init(&b, PTOISA_A2A3);
        split_build(&b, which);
        built_must(&b, pwsp_list_cut(&b.list, &b.machine, NULL, &b.fault));
        if ((b.list.split_tile != 0) != splits[which].is_split) {
            fail_msg("%s", splits[which].what);
        }
        if (which == 3) {  // the instructions may be split, and the cores meet
            built_must(&b, pwsp_list_place(&b.list, &b.machine, &b.fault));
            built_must(&b, pwsp_list_add_waits(&b.list, &b.machine, &b.fault));
            built_must(&b, is_good(&b));
            b.list.split_tile = 4;
            assert_false(is_good(&b));
            assert_non_null(strstr(b.fault.text, "(TSTORE) of one vector core and "));
            assert_non_null(
                strstr(b.fault.text, "of the other may meet in rows of tile parameter 1"));
        } else if (!b.list.split_tile && which != 5) {
            b.list.split_tile = 4;  // x
            assert_false(pwsp_list_verify(&b.list, &b.machine, &b.fault));
            assert_non_null(strstr(b.fault.text, "does not let two vector cores share its rows"));
            assert_true(b.fault.insn >= 5);
        }
        built_free(&b);
    }
}

// The instruction of a kind, from the n-th on.
static pwsp_insn *find_insn(built *b, uint32_t op, pwsp_side side, uint32_t n) {
    for (uint64_t i = 0; i < b->list.insn_count; i++) {
        pwsp_insn *insn = &b->list.insns[i];
        if (insn->op == op && insn->side == side && n-- == 0) {
            return insn;
        }
    }
    fail_msg("%s", "there is no such instruction");
    return NULL;
}

// x = l * r and its row sums go to the vector cores, which store both, and send x back.
static void damaged_make(built *b) {
    built_init(b, PTOISA_A2A3);
    built_text(b, "L0A 32x16: left; L0B 16x16: right; L0C 32x16: acc; L0C 32x32: wide; "
                  "UB 32x16: x; UB 32x32: y; UB 32x16: z; L1 32x16: l1 back; l1 = TLOAD 0; "
                  "left = TMOV l1; right = TMOV l1; acc = TMATMUL left right; "
                  "wide = TMATMUL left right; x = TMOV acc; y = TMOV wide; z = TLOAD 3; "
                  "x = TADD x z; y = TEXP y; TSTORE 1 x; TSTORE 2 y; back = TMOV x; TSTORE 4 back");
    built_must(b, pwsp_list_cut(&b->list, &b->machine, NULL, &b->fault));
    assert_int_not_equal(b->list.split_tile, 0);
    built_must(b, pwsp_list_place(&b->list, &b->machine, &b->fault));
    built_must(b, pwsp_list_add_waits(&b->list, &b->machine, &b->fault));
    built_must(b, is_good(b));
}

typedef struct split_damage {
    const char *what, *text;
} split_damage;

static const split_damage split_damages[] = {
    // What a vector core loads of the rows that it stores is its own, or is not.
    {"loads rows that are stored", NULL},
    {"loads other rows than are stored", "of the other may meet in rows of tile parameter 3"},
    {"stores to the rows of another store", NULL},
    {"stores to other rows", "of the other may meet in rows of tile parameter 1"},
    {"no flag in the vector half", "may begin before"},
    {"no flag in the cube half", "may begin before"},
    {"pushes swapped", "may begin before"},  // ahead of what the pop finds
    {"a pop less", "is never taken out"},
    {"a push of half the rows", "finds another tile than it takes"},
    {"a slot without room for the second core", "has a tile beyond its slot"},
    {"split at no rows", "does not let two vector cores share its rows"},
};
enum { SPLIT_DAMAGES = sizeof split_damages / sizeof split_damages[0] };

static void split_do(built *b, int which) {
    pwsp_insn *first = find_insn(b, PWSP_INSN_TPUSH, PWSP_SIDE_CUBE, 0);
    pwsp_insn *second = find_insn(b, PWSP_INSN_TPUSH, PWSP_SIDE_CUBE, 1);
    pwsp_insn *store = find_insn(b, PTOISA_TSTORE, PWSP_SIDE_VECTOR, 1);
    pwsp_insn *load = find_insn(b, PTOISA_TLOAD, PWSP_SIDE_VECTOR, 0);
    uint32_t at = 0;
    switch (which) {
    case 0:
    case 1:  // all stores of the vector half go to the parameter that is loaded
        find_insn(b, PTOISA_TSTORE, PWSP_SIDE_VECTOR, 0)->param = load->param;
        load->row = which == 1 ? 16 : 0;
        break;
    case 2:
    case 3:
        store->param = find_insn(b, PTOISA_TSTORE, PWSP_SIDE_VECTOR, 0)->param;
        store->row = which == 3 ? 16 : 0;
        break;
    case 4:
    case 5:  // the set and the wait before a TADD, a TMATMUL
        for (int is_set = 0; is_set < 2; is_set++) {
            pwsp_insn *flag = find_insn(b, is_set ? PTOISA_SET_FLAG : PTOISA_WAIT_FLAG,
                                        which == 4 ? PWSP_SIDE_VECTOR : PWSP_SIDE_CUBE, 0);
            remove_insn(b, (uint64_t)(flag - b->list.insns));
        }
        break;
    case 6:
        at = first->src[0];
        first->src[0] = second->src[0];
        second->src[0] = at;
        break;
    case 7:
        for (int is_pop = 0; is_pop < 2; is_pop++) {  // of what is stored, and that
            uint32_t op = is_pop ? (uint32_t)PWSP_INSN_TPOP : (uint32_t)PTOISA_TSTORE;
            pwsp_insn *insn = find_insn(b, op, PWSP_SIDE_CUBE, 0);
            remove_insn(b, (uint64_t)(insn - b->list.insns));
        }
        break;
    case 8: b->list.tiles[first->src[0]].valid_rows.max = 16; break;
    case 9:
        for (uint64_t tile = 1; tile < b->list.tile_count; tile++) {
            pwsp_valid *rows = &b->list.tiles[tile].valid_rows;
            rows->max = rows->max == 32 ? 31 : rows->max;
        }
        b->list.fifos[PWSP_FIFO_TO_VECTOR].slot_bytes = 31 * 32 * 4;
        break;
    default: b->list.tiles[b->list.split_tile].valid_rows.max = 1; break;
    }
}

TEST(split__damage_of_both_vector_cores_is_seen) {
    for (int which = 0; which < SPLIT_DAMAGES; which++) {
        built b;
        damaged_make(&b);
        split_do(&b, which);
        const char *text = split_damages[which].text;
        bool is_seen = !is_good(&b);
        if (is_seen != (text != NULL) || (is_seen && !strstr(b.fault.text, text))) {
            fail_msg("%s: %s", split_damages[which].what, b.fault.text);
        }
        built_free(&b);
    }
}

// The rows that are cut are those of the task, whatever comes first; and in no loop.
TEST(split__is_by_the_rows_of_the_task) {
    for (int which = 0; which < 2; which++) {
        built b;
        built_init(&b, PTOISA_A2A3);
        split_build(&b, 6);
        pwsp_valid *y = &b.list.tiles[5].valid_rows;
        y->param = 1;
        y->mul = 1;
        y->loop = which == 1;
        built_must(&b, pwsp_list_cut(&b.list, &b.machine, NULL, &b.fault));
        assert_int_equal(b.list.split_tile, which == 0 ? 5 : 4);
        built_free(&b);
    }
}

// -- what FIFOs order -----------------------------------------------------------------------------

#define TILES         "UB 16x16: v w@1024; L1 16x16: l k@1024; "
#define LOADED        TILES "v = TLOAD 0; SET MTE2 MTE3 0 vector; WAIT MTE2 MTE3 0 vector; "
#define NO_FIFO       "and no FIFO orders what they do to tile parameter 4"
#define CORES_MEET    "of the other may meet in rows of tile parameter 4"
#define FROM_THE_CUBE "l = TPOP; SET MTE2 FIX 0 cube; WAIT MTE2 FIX 0 cube; TPUSH l; "

// Two halves, of 16 x 16 f32: v and w of the vector half, l and k of the cube half.
static const struct {
    const char *name;
    uint8_t slots;
    bool is_split, is_at_wrong_end;  // at v; the push
    const char *list, *text;         // NULL: it is good
} halves[] = {
    {"a pop comes after what was ahead of its push", 2, false, false,
     LOADED "TSTORE 4 v; TPUSH v; l = TPOP; k = TLOAD 4", NULL},
    {"a load ahead of the pop does not", 2, false, false,
     LOADED "TSTORE 4 v; TPUSH v; k = TLOAD 4; l = TPOP", NO_FIFO},
    {"the vector core fills the FIFO to the cube core", 2, false, false, LOADED "TPUSH v; l = TPOP",
     NULL},
    {"and not the other one", 2, false, true, LOADED "TPUSH v; l = TPOP",
     "verify: instruction 3 (TPUSH, FIFO 0) is at the wrong end"},
    // A load of the cube half, a pop, and a store behind the push that needs its slot.
    {"a push comes after what was ahead of the pop of its slot", 1, false, false,
     TILES "k = TLOAD 4; v = TLOAD 0; SET MTE2 MTE3 0 vector; WAIT MTE2 MTE3 0 vector; TPUSH v; "
           "l = TPOP; TPUSH v; TSTORE 4 v; l = TPOP",
     NULL},
    {"with two slots it does not wait for it", 2, false, false,
     TILES "k = TLOAD 4; v = TLOAD 0; SET MTE2 MTE3 0 vector; WAIT MTE2 MTE3 0 vector; TPUSH v; "
           "l = TPOP; TPUSH v; TSTORE 4 v; l = TPOP",
     NO_FIFO},
    // A vector core stores rows that the other one loads, behind a push to the cube core and a pop of what
    // that pushes: it waits for both. So the tile that was pushed is free by then.
    {"vector cores are ordered by way of the cube core", 2, true, false,
     LOADED "TSTORE 4 v; TPUSH v; " FROM_THE_CUBE "v = TPOP; w = TLOAD 4 row 16", NULL},
    {"a load after the store of its own core is not", 2, true, false,
     LOADED "TSTORE 4 v; TPUSH v; " FROM_THE_CUBE
            "SET MTE3 MTE2 0 vector; WAIT MTE3 MTE2 0 vector; w = TLOAD 4 row 16; v = TPOP",
     CORES_MEET},
    {"what both store to rows that are shared is apart", 2, true, false, LOADED "TSTORE 4 v", NULL},
    {"to rows that are not it is the same memory", 2, true, false, LOADED "TSTORE 4 v row_loop 1",
     CORES_MEET},
};

TEST(verify__fifos_order_what_two_halves_do) {
    for (size_t i = 0; i < COUNT_OF(halves); i++) {
        const char *text = halves[i].text;
        built b;
        built_init(&b, PTOISA_A2A3);
        b.list.is_mixed = true;
        for (int f = 0; f < PWSP_FIFO_COUNT; f++) {
            b.list.fifos[f].slot_bytes = 1024;
            b.list.fifos[f].slots = halves[i].slots;
            b.list.fifos[f].flag = (uint8_t)(2 * f);
        }
        built_text(&b, halves[i].list);
        built_text(&b, "BARRIER ALL cube; BARRIER ALL vector");
        b.list.used[PTOISA_VEC] = b.list.used[PTOISA_MAT] = 2048;
        b.list.split_tile = halves[i].is_split ? built_id(&b, "v") : 0;
        if (halves[i].is_at_wrong_end) {
            find_insn(&b, PWSP_INSN_TPUSH, PWSP_SIDE_VECTOR, 0)->mode = PWSP_FIFO_TO_VECTOR;
        }
        if (is_good(&b) != (text == NULL) || (text && !strstr(b.fault.text, text))) {
            fail_msg("%s: %s", halves[i].name, b.fault.text);
        }
        built_free(&b);
    }
}
