// Loops that begin iterations ahead: what they compute, against the same kernels unrolled by hand;
// what is under way, counted on paper; and lists with wrong phases. Their errors are in cases/kernel_preload.case.

#include "kernel_loop.h"
#include "kernel_named.h"
#include "support/fixture.h"

#include "src/kernel/compiled.h"
#include "src/workload/module.h"

// -- results --------------------------------------------------------------------------------------

TEST(preload__changes_no_byte_of_attention) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    uint64_t seed = test_seed();
    for (int ahead = 1; ahead <= PTOWSP_PRELOAD_MAX; ahead++) {
        for (int which = 0; which <= 6; which++) {  // iterations; 0: none
            kt_config config = kt_any(test_random(&seed));
            config.is_partial = (ahead + which) % 2 != 0;
            config.strides = (kt_strides)(which % 4);
            config.machine = (ahead + which) % 5 == 0 ? &a5 : NULL;
            config.low = -1;
            config.high = 1;
            lp_preload = ahead;
            lp_play(lp_attention, which, config);
            lp_preload = 0;
        }
    }
}

// -- any body --------------------------------------------------------------------------------------

enum { FULL = 64, FEW = 16, CHUNKS = 5 };

// Ten values: w = scores / 100, and nine random operations on w and on what comes of it; or, as number 0,
// w times a late product as the last value.
static void any_body(ptowsp_body *k, ptowsp_value scores, ptowsp_value values, uint64_t number,
                     ptowsp_value *pool) {
    const ptowsp_value small = ptowsp_tile_const(k, number ? 0.05 : 1);
    uint64_t seed = number;
    pool[0] = ptowsp_tile_mul(scores, ptowsp_tile_const(k, 0.01));
    for (uint64_t i = 1; i < 10; i++) {
        const uint64_t op = number ? test_random(&seed) % 8 : 6;
        ptowsp_value u = pool[test_random(&seed) % i], w = pool[test_random(&seed) % i];
        pool[i] = op < 2    ? ptowsp_tile_mul(u, ptowsp_tile_const(k, 0.5 + (double)(op + i % 3)))
                  : op < 4  ? ptowsp_tile_add(u, w)
                  : op == 4 ? ptowsp_tile_sub(u, ptowsp_tile_rowmax(w))
                  : op == 5 ? ptowsp_tile_max(u, w)
                            : ptowsp_tile_cvt(ptowsp_tile_mul(u, small), PTOWSP_F16,
                                              PTOWSP_ROUND_NEAREST);
        pool[i] = op < 6 ? pool[i] : ptowsp_tile_matmul(pool[i], values);
        if (number == 0) {
            pool[9] = ptowsp_tile_mul(pool[1], pool[0]);
            return;
        }
    }
}

static ptowsp_kernel any_kernel(ptowsp_module *m, uint64_t number, int64_t side, int64_t ahead) {
    const ptowsp_body_desc desc = {.name = "k"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    const ptowsp_value none = {NULL, 0}, zero = ptowsp_tile_const(k, 0);
    ptowsp_value q = ptowsp_tile_in(k, "q", PTOWSP_F16, side, side);
    ptowsp_value keys = ptowsp_tile_in(k, "k", PTOWSP_F16, side, CHUNKS * side);
    ptowsp_value values = ptowsp_tile_in(k, "v", PTOWSP_F16, CHUNKS * side, side);
    ptowsp_value one = ptowsp_tile_out(k, "one", PTOWSP_F32, side, side);
    ptowsp_value two = ptowsp_tile_out(k, "two", PTOWSP_F32, side, side);
    ptowsp_value square = ptowsp_tile_full(k, PTOWSP_F32, side, side, 0), a = square, b = square;
    PTOWSP_TILE_LOOP(k, at, zero, ptowsp_tile_rows(values), side) {
        if (ahead) {
            ptowsp_tile_preload(at, ahead);
        }
        a = ptowsp_tile_carry(square);
        b = ptowsp_tile_carry(square);
        ptowsp_value left = ptowsp_tile_slice_at(keys, none, at, side, side);
        ptowsp_value right = ptowsp_tile_slice_at(values, at, none, side, side), pool[10];
        any_body(k, ptowsp_tile_matmul(q, left), right, number, pool);
        ptowsp_tile_next(a, ptowsp_tile_add(a, pool[9]));
        // early, and after what is late
        ptowsp_value last = ptowsp_tile_mul(pool[number % 9], ptowsp_tile_const(k, 3));
        ptowsp_tile_next(b, ptowsp_tile_add(b, last));
    }
    ptowsp_tile_store(one, a);
    ptowsp_tile_store(two, b);
    return ptowsp_kernel_end(k);
}

// Executes it on the same data each time. False: a preload is refused, as it may be.
static bool any_run(fixture *f, uint64_t number, int64_t side, int64_t ahead, float *out) {
    static const char *const names[] = {"q", "k", "v", "one", "two"};
    static uint16_t halves[3][CHUNKS * FULL * FULL];
    uint64_t seed = 7;
    fixture_clear(f);
    assert_ok(ptowsp_module_create(f->context, NULL, &f->module));
    ptowsp_task_desc task = {.kernel = any_kernel(f->module, number, side, ahead)};
    const ptowsp_status status = ptowsp_module_error(f->module).status;
    if (status != PTOWSP_OK) {
        assert_true(ahead && (status == PTOWSP_UNSUPPORTED || status == PTOWSP_LIMIT_EXCEEDED));
        return false;
    }
    for (uint32_t i = 0; i < 5; i++) {
        const ptowsp_tensor_desc desc = {
            .name = names[i],
            .dtype = i < 3 ? PTOWSP_F16 : PTOWSP_F32,
            .rank = 2,
            .shape = {(i == 2 ? CHUNKS : 1) * side, (i == 1 ? CHUNKS : 1) * side}};
        task.views[i].tensor = ptowsp_tensor_make(f->module, &desc);
    }
    PTOWSP_WORKLOAD(f->module, "w") {
        ptowsp_task_make(f->module, &task);
    }
    program_make(f, NULL, NULL, NULL);
    for (uint32_t i = 0; i < 5; i++) {
        for (int64_t at = 0; at < CHUNKS * side * side && i < 3; at++) {
            halves[i][at] = test_half_of(PTOWSP_F16, (double)(test_random(&seed) % 17) / 8 - 1);
        }
        const ptowsp_buffer buffer = {.data = i < 3 ? (void *)halves[i]
                                                    : (void *)(out + (i - 3) * side * side),
                                      .dtype = i < 3 ? PTOWSP_F16 : PTOWSP_F32};
        assert_ok(ptowsp_run_bind_tensor(f->run, names[i], &buffer));
    }
    assert_ok(ptowsp_run_execute(f->run, NULL));
    return true;
}

// In lists, values take the tiles of those that are no longer needed; early and late ones change places.
TEST_F(preload__changes_no_byte_of_any_body) {
    static float without[2 * FULL * FULL], with[2 * FULL * FULL];
    uint64_t first = test_seed(), same = 0;
    for (uint64_t i = 0; TEST_ROUNDS(i, 40); i++) {
        const uint64_t number = i ? first + i : 0;
        const int64_t side = i % 4 == 3 ? FEW : FULL;
        assert_true(any_run(f, number, side, 0, without));
        for (int64_t ahead = 1; ahead <= 3; ahead++) {
            const bool is_run = any_run(f, number, side, ahead, with);
            assert_true(is_run || i > 0);
            same += is_run;
            if (is_run && memcmp(with, without, (size_t)(2 * side * side) * sizeof *with) != 0) {
                fail_msg("body %llu of %d rows, %d ahead: other bytes", (unsigned long long)number,
                         (int)side, (int)ahead);
            }
        }
    }
    assert_met(same >= 30);
}

// -- kernels --------------------------------------------------------------------------------------

typedef struct scene {
    test_memory memory;
    size_t before;  // allocations, when the text was read
    ptowsp_status status;
    ptowsp_context *context;
    ptowsp_module *m;
} scene;

// The module's allocation number `refused` fails; 0: none does.
static void begin_refusing(scene *s, int ahead, size_t refused) {
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &s->memory};
    char line[32];
    const kernel_word words[] = {{"preload", ahead ? line : ""}, {NULL, NULL}};
    memset(s, 0, sizeof *s);
    assert_ok(ptowsp_context_create(&desc, &s->context));
    s->before = s->memory.allocations;
    s->memory.refuse_at = refused ? s->before + refused : 0;
    snprintf(line, sizeof line, "    preload %%9, %d\n", ahead);
    const char *text = kernel_named("attend", words);
    s->status = ptowsp_module_parse(s->context, text, strlen(text), NULL, &s->m, NULL);
}

static void begin(scene *s, int ahead) {
    begin_refusing(s, ahead, 0);
    test_ok(s->context, s->status);
}

static void end(scene *s) {
    ptowsp_module_destroy(s->m);
    ptowsp_context_destroy(s->context);
    assert_int_equal(s->memory.live_blocks, 0);
}

static pwsp_tile_code *code_of(const scene *s) {
    return (pwsp_tile_code *)(uintptr_t)PWSP_KERNEL(s->m, 1)->code;
}

static ptowsp_cycles cycles_of(const scene *s) {
    const ptowsp_cost cost = {.model = PTOWSP_MODEL_910B};
    ptowsp_kernel_stats stats;
    assert_ok(ptowsp_kernel_measure(s->m, (ptowsp_kernel){1}, &cost, &stats));
    return stats.cycles;
}

// Of p iterations ahead, p + 1 have a correction each, and a tile in either FIFO takes as many slots
// and as many again, as half of a FIFO is freed at a time.
TEST(preload__has_room_for_all_that_is_under_way) {
    for (int ahead = 1; ahead <= PTOWSP_PRELOAD_MAX; ahead++) {
        scene s;
        begin(&s, ahead);
        const pwsp_tile_code *code = code_of(&s);
        uint32_t places = 0, late = 0, early = 0;
        for (uint32_t i = 1; i < code->tile_count; i++) {
            places += code->tiles[i].places;
        }
        for (uint32_t i = 0; i < code->insn_count; i++) {
            late += code->insns[i].phase == 2;
            early += code->insns[i].phase == 1;
        }
        assert_int_equal(places, ahead + 1);
        assert_int_equal(code->fifos[0].slots, 2 * (ahead + 1));
        assert_int_equal(code->fifos[1].slots, 2 * (ahead + 1));
        assert_int_equal(code->loop_count, 2);
        assert_int_equal(code->loops[1].of.preload, ahead);
        assert_int_equal(code->loops[2].of.late_of, 1);
        assert_true(late >= 6 && early > late);  // pops, moves to L0, product, push, update
        end(&s);
    }
}

TEST(preload__keeps_both_cores_at_work) {
    scene without, with;
    begin(&without, 0);
    begin(&with, 2);
    assert_true(3 * cycles_of(&with) < 2 * cycles_of(&without));
    end(&without);
    end(&with);
}

TEST(preload__is_part_of_what_a_kernel_is) {
    uint64_t hashes[3];
    for (int ahead = 0; ahead < 3; ahead++) {
        scene s;
        begin(&s, ahead);
        hashes[ahead] = pwsp_tile_code_hash(code_of(&s));
        end(&s);
    }
    assert_true(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
}

TEST(memory__every_allocation_may_fail) {
    size_t count = 0;
    for (size_t refused = 0; refused <= count; refused++) {
        scene s;
        begin_refusing(&s, 2, refused);
        assert_int_equal(s.status, refused ? PTOWSP_OUT_OF_MEMORY : PTOWSP_OK);
        count = refused ? count : s.memory.allocations - s.before;
        s.memory.refuse_at = 0;
        end(&s);
    }
    assert_true(count > 10);
}

// -- the proof ------------------------------------------------------------------------------------

static void expect_refused(const pwsp_tile_code *code, const char *text) {
    pwsp_list_fault fault;
    assert_false(pwsp_tile_code_prove(code, &fault));
    if (!strstr(fault.text, text)) {
        fail_msg("%s, not %s", fault.text, text);
    }
}

TEST(proof__refuses_wrong_phases_and_places) {
    scene s;
    begin(&s, 2);
    pwsp_tile_code *code = code_of(&s);
    pwsp_insn *insns = (pwsp_insn *)(uintptr_t)code->insns;
    pwsp_list_tile *tiles = (pwsp_list_tile *)(uintptr_t)code->tiles;
    uint32_t pop = 0, root = 1, late = 1;
    while (insns[pop].op != PWSP_INSN_TPOP || insns[pop].mode != PWSP_FIFO_TO_CUBE) {
        pop++;
    }
    while (!tiles[root].places) {
        root++;
    }
    while (!tiles[late].is_late) {
        late++;
    }
    pwsp_list_fault fault;
    assert_true(pwsp_tile_code_prove(code, &fault));
    insns[pop].phase = 1;  // pops what is pushed later
    expect_refused(code, "(TMOV) is read before it is written");
    insns[pop].phase = 3;
    expect_refused(code, "is of phase 3 in loop 1");
    insns[pop].phase = 0;
    expect_refused(code, "is of phase 0 in loop 1");
    insns[pop].phase = 2;
    tiles[root].places = 2;  // one too few: the correction of another chunk
    expect_refused(code, "(TROWEXPANDMUL) is read before it is written");
    tiles[root].places = 3;
    tiles[late].is_late = false;
    expect_refused(code, "(TROWEXPANDMUL) is read before it is written");
    tiles[late].is_late = true;
    assert_true(pwsp_tile_code_prove(code, &fault));
    end(&s);
}

// Of three iterations ahead, four tiles are under way. PTO-ISA frees two of four slots at a time, so the
// fifth push waits for two pops, of which the second one comes after it. Of five slots, two are freed
// when the sixth push comes.
TEST(proof__knows_that_slots_are_freed_by_halves) {
    static const bool is_enough[] = {false, false, false, false, false, true, true, true, true};
    scene s;
    begin(&s, 3);
    pwsp_tile_code *code = code_of(&s);
    for (uint8_t slots = 1; slots <= 8; slots++) {
        pwsp_list_fault fault;
        code->fifos[PWSP_FIFO_TO_CUBE].slots = slots;
        bool is_good = pwsp_tile_code_prove(code, &fault);
        assert_int_equal(is_good, is_enough[slots]);
        assert_true(is_good || strstr(fault.text, "finds no free slot"));
    }
    end(&s);
}
