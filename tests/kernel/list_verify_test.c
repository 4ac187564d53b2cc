// What the proof of an instruction list refuses, and that it refuses no more and no less than what
// can go wrong.
//
// Lists that passed are damaged, in one place at a time: flags and barriers are taken away, moved and
// renamed, tiles moved and memories cut. The judge of list_judge.h, which runs lists on pipes of random
// speeds and holds up each instruction once, says which damage matters. For flags and barriers the
// proof must agree with it in both directions. Faults by hand are in lists.txt.

#include "list_judge.h"

#include "src/kernel/compiled.h"
#include "src/kernel/split.h"

static bool is_good(built *b) {
    return pwsp_list_verify(&b->list, &b->machine, &b->fault);
}

#define BUILT_TEST(name, machine) TEST_MADE(name, built, b, built_init(b, machine), built_free(b))

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

typedef struct damages {
    damage_count flag, half, barrier, event, moved, pipe, address, onto, memory, fifo, shared;
} damages;

// Damages each flag and barrier of a list.
static void damage_sync(built *b, const built_saved *s, uint64_t *random, damages *d) {
    for (uint64_t i = 0; i < s->list.insn_count; i++) {
        const pwsp_insn *insn = &s->insns[i];
        if (!built_is_sync(insn)) {
            continue;
        }
        built_remove(b, i);
        compare(b, random, true, insn->op == PTOISA_PIPE_BARRIER ? &d->barrier : &d->half,
                "one taken away");
        built_restore(s, b);
        for (int step = 1; step <= 3; step++) {  // by one, by two, by some
            const int64_t by = step == 3 ? test_random_in(random, 3, 20) : step;
            built_move(b, i, by);
            compare(b, random, true, &d->moved, "one moved later");
            built_restore(s, b);
            built_move(b, i, -by);
            compare(b, random, true, &d->moved, "one moved earlier");
            built_restore(s, b);
        }
        b->list.insns[i].src_pipe = (uint8_t)((insn->src_pipe + 1) % PTOISA_PIPE_COUNT);
        if (insn->op == PTOISA_PIPE_BARRIER) {
            compare(b, random, true, &d->pipe, "barrier of another pipe");
            built_restore(s, b);
            continue;
        }
        built_restore(s, b);
        if (insn->op != PTOISA_SET_FLAG) {
            continue;
        }
        uint64_t wait = wait_of(b, i);
        built_remove(b, wait);
        built_remove(b, i);
        compare(b, random, true, &d->flag, "a flag taken away");
        built_restore(s, b);
        // The same event for all: what is in order stays good.
        uint8_t event = (uint8_t)test_random_in(random, 0, 1);
        b->list.insns[i].event = b->list.insns[wait].event = event;
        compare(b, random, true, &d->event, "another event");
        built_restore(s, b);
        // Events of two sets, or two waits, swapped.
        for (uint64_t k = i + 1; k < s->list.insn_count; k++) {
            const pwsp_insn *other = &s->insns[k];
            if (other->op == PTOISA_SET_FLAG && other->src_pipe == insn->src_pipe &&
                other->dst_pipe == insn->dst_pipe && other->side == insn->side &&
                other->event != insn->event) {
                b->list.insns[i].event = other->event;
                b->list.insns[k].event = insn->event;
                compare(b, random, true, &d->event, "events of two sets swapped");
                built_restore(s, b);
                break;
            }
        }
    }
}

// Moves each tile, and cuts memories.
static void damage_tiles(built *b, const built_saved *s, uint64_t *random, damages *d) {
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
        built_restore(s, b);
    }
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        if (s->list.used[memory]) {
            b->machine.memory_size[memory] = s->list.used[memory] - 32;
            assert_false(is_good(b));
            b->machine.memory_size[memory] = s->list.used[memory];
            built_must(b, is_good(b));
            d->memory.tried++, d->memory.matters++, d->memory.refused++;
            built_restore(s, b);
        }
    }
}

// Damages each TPUSH and TPOP.
static void damage_fifos(built *b, const built_saved *s, uint64_t *random, damages *d) {
    for (uint64_t i = 0; i < s->list.insn_count; i++) {
        const pwsp_insn *insn = &s->insns[i];
        if (!pwsp_insn_is_fifo(insn)) {
            continue;
        }
        built_remove(b, i);
        compare(b, random, true, &d->fifo, "a push or pop taken away");
        built_restore(s, b);
        b->list.insns[i].op = insn->op == PWSP_INSN_TPUSH ? PWSP_INSN_TPOP : PWSP_INSN_TPUSH;
        assert_false(is_good(b));
        built_restore(s, b);
        b->list.insns[i].mode ^= 1;
        assert_false(is_good(b));
        built_restore(s, b);
        b->list.insns[i].mode = PWSP_FIFO_COUNT;
        assert_false(is_good(b));
        assert_non_null(strstr(b->fault.text, ", FIFO 2) is of no FIFO"));
        built_restore(s, b);
        b->list.insns[i].side = insn->side == PWSP_SIDE_CUBE ? PWSP_SIDE_VECTOR : PWSP_SIDE_CUBE;
        assert_false(is_good(b));
        built_restore(s, b);
        for (uint64_t at = i; at > 0 && i - at < 8; at--) {
            built_move(b, at, -1);
            compare(b, random, false, &d->fifo, "a push or pop moved earlier");
        }
        built_restore(s, b);
        for (uint64_t at = i; at + 1 < s->list.insn_count && at - i < 8; at++) {
            built_move(b, at, 1);
            compare(b, random, false, &d->fifo, "a push or pop moved later");
        }
        built_restore(s, b);
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
        built_saved s;
        built_save(&s, &b);
        damage_sync(&b, &s, &random, &d);
        damage_tiles(&b, &s, &random, &d);
        damage_fifos(&b, &s, &random, &d);
        built_saved_free(&s);
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
