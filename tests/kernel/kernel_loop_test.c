// Loops in tile kernels: what they compute, against the same kernels unrolled by hand; their trips,
// their errors, and their cycles.

#include "kernel_loop.h"

static void play_all(lp_scene scene, int most) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    uint64_t seed = test_seed();
    for (int which = 0; which <= most; which++) {
        for (int way = 0; way < 8; way++) {
            kt_config config = kt_any(test_random(&seed));
            config.is_partial = way % 2 != 0;
            config.strides = (kt_strides)(way % 4);
            config.machine = way / 4 ? &a5 : NULL;
            config.low = -1;
            config.high = 1;
            lp_play(scene, which, config);
        }
    }
}

// Plays `count` scenes on both machines, with integers, whose sums are exact in any order.
static void play_integers(lp_scene scene, int count, double range) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    for (int i = 0; i < 2 * count; i++) {
        kt_config config = kt_any(test_seed() + (uint64_t)i);
        config.machine = i % 2 ? &a5 : NULL;
        config.is_integer = true;
        config.low = -range;
        config.high = range;
        lp_play(scene, i / 2, config);
    }
}

// Of a carried value of 8 rows the next has 5: in a task, the others stay what they were. Summed in
// place, by way of another operation in place, and by way of a value that is carried on.
TEST(loop__keeps_the_elements_that_a_next_value_does_not_have) {
    enum { ROWS = 8, COLS = 32, VALID = 5 };
    for (int way = 0; way < 3; way++) {
        kt_config config = kt_any(test_seed());
        config.is_integer = true;
        config.low = -8;
        config.high = 8;
        kt t = kt_begin(config);
        kt_value x = lp_in(&t, PTOWSP_F32, ROWS, COLS, VALID, COLS);
        ptowsp_value out = lp_out(&t, PTOWSP_F32, ROWS, 8, ROWS, 8), sum = lp_none;
        ptowsp_value first = ptowsp_tile_full(t.k, PTOWSP_F32, ROWS, 8, 3);
        PTOWSP_TILE_LOOP(t.k, i, lp_const(&t, 0), ptowsp_tile_cols(x.v), 8) {
            sum = ptowsp_tile_carry(first);
            ptowsp_value part = ptowsp_tile_slice_at(x.v, lp_none, i, ROWS, 8), next = sum;
            if (way == 1) {
                next = ptowsp_tile_mul(next, ptowsp_tile_const(t.k, 2));  // of all rows
                next = ptowsp_tile_mul(next, ptowsp_tile_const(t.k, 0.5));
            }
            next = ptowsp_tile_add(next, part);
            ptowsp_tile_next(sum, way == 2 ? ptowsp_tile_neg(ptowsp_tile_neg(next)) : next);
        }
        ptowsp_tile_store(out, sum);
        lp_lower(&t);
        assert_ok(kt_execute(&t));
        const kt_param *p = &t.params[1];
        TEST_GRID(int64_t, r, ROWS, c, 8) {
            double want = 3;
            for (int64_t i = 0; r < VALID && i < COLS; i += 8) {
                want += x.x[KT_AT(x, r, c + i)];
            }
            assert_true(kt_get(PTOWSP_F32, p->block + kt_element(p, r, c) * 4) == want);
        }
        kt_free(&t);
    }
}

// A row and its transpose have the same bytes: where both are needed, a carried value that begins as
// one of them has a place of its own. Of one element they are even one tile. The row is needed in the
// loop, behind it, or carried too.
static void begins_as_another(kt *t, bool is_looped, int which) {
    int64_t size = which % 2 ? 24 : 1;
    which /= 2;
    kt_value x = kt_in(t, PTOWSP_F32, 1, size);
    ptowsp_value out = lp_out(t, PTOWSP_F32, size, 1, x.valid_cols, 1);
    ptowsp_value kept = lp_out(t, PTOWSP_F32, 1, size, 1, x.valid_cols);
    ptowsp_value row = ptowsp_tile_neg(x.v), column = ptowsp_tile_transpose(row);
    lp l = lp_begin(t, is_looped, 0, 3, 1);
    while (lp_more(&l)) {
        ptowsp_value sum = lp_carry(&l, 0, column);
        ptowsp_value other = which == 2 ? lp_carry(&l, 1, row) : row;
        ptowsp_value more = which == 0 ? ptowsp_tile_transpose(row) : sum;
        ptowsp_value next = ptowsp_tile_add(sum, more);
        if (which == 2) {
            lp_next(&l, 1, other, ptowsp_tile_sub(other, ptowsp_tile_const(t->k, 1)));
        }
        lp_next(&l, 0, sum, next);
    }
    ptowsp_tile_store(out, lp_result(&l, 0, column));
    ptowsp_tile_store(kept, which == 2 ? lp_result(&l, 1, row) : which == 1 ? row : x.v);
}

// What a product of a loop is added to: a part of a parameter that nothing else needs, or a product
// from before the loop, which is the same in every iteration.
static void adds_to(kt *t, bool is_looped, int which) {
    kt_value a = kt_in(t, PTOWSP_F16, 16, 24), b = kt_in(t, PTOWSP_F16, 24, 40);
    kt_value x = lp_in(t, PTOWSP_F32, 3 * LP_CHUNK, 40, 3 * LP_CHUNK, b.valid_cols);
    ptowsp_value out = lp_out(t, PTOWSP_F32, LP_CHUNK, 40, a.valid_rows, b.valid_cols);
    ptowsp_value zero = ptowsp_tile_mul(ptowsp_tile_matmul(a.v, b.v), ptowsp_tile_const(t->k, 0));
    ptowsp_value before = which == 1 ? ptowsp_tile_matmul(a.v, b.v) : lp_none;
    lp l = lp_begin(t, is_looped, 0, 3 * LP_CHUNK, LP_CHUNK);
    while (lp_more(&l)) {
        ptowsp_value sum = lp_carry(&l, 0, zero);
        ptowsp_value to = which == 1 ? before : lp_chunk(&l, NULL, x.v, LP_CHUNK, 40);
        lp_next(&l, 0, sum, ptowsp_tile_add(sum, ptowsp_tile_matmul_acc(to, a.v, b.v)));
    }
    ptowsp_tile_store(out, lp_result(&l, 0, zero));
}

// A sum of products that an instruction reads as well, in the loop or behind it: seen = sum + 1, or 1 if
// the loop does not run.
static void watches_a_sum(kt *t, bool is_looped, int which) {
    kt_value a = kt_in(t, PTOWSP_F16, 16, 24), b = kt_in(t, PTOWSP_F16, 24, 40);
    ptowsp_value out = lp_out(t, PTOWSP_F32, 16, 40, 16, 40);
    ptowsp_value seen = lp_out(t, PTOWSP_F32, 16, 40, 16, 40);
    ptowsp_value zero = ptowsp_tile_full(t->k, PTOWSP_F32, 16, 40, 0);
    ptowsp_alloc_desc desc = {.dtype = PTOWSP_F32, .rows = 16, .cols = 40};
    ptowsp_instruction_desc watch = {.name = "TEXPANDS", .dst[0] = ptowsp_tile_alloc(t->k, &desc)};
    watch.scalar = lp_const(t, 1);
    ptowsp_instruction(t->k, &watch);
    watch.name = "TADDS";
    lp l = lp_begin(t, is_looped, 0, 3, 1);
    while (lp_more(&l)) {
        ptowsp_value sum = lp_carry(&l, 0, zero);
        watch.src[0] = sum;
        if (which == 0) {
            ptowsp_instruction(t->k, &watch);
        }
        lp_next(&l, 0, sum, ptowsp_tile_matmul_acc(sum, a.v, b.v));
    }
    watch.src[0] = lp_result(&l, 0, zero);
    if (which == 1) {
        ptowsp_instruction(t->k, &watch);
    }
    ptowsp_tile_store(out, watch.src[0]);
    ptowsp_tile_store(seen, watch.dst[0]);
}

// What is made of a carried value where that is needed no more: parts of it, its transpose, another
// type. None of them is the next value's place, though it has the same bytes.
static void parts_of_homes(kt *t, bool is_looped, int way) {
    int64_t cols = way == 2 ? 1 : 16;
    kt_value x = lp_in(t, PTOWSP_F32, 3 * 16, cols, 3 * 16, cols);
    ptowsp_value out = lp_out(t, PTOWSP_F32, 16, cols, 16, cols);
    ptowsp_value first = ptowsp_tile_full(t->k, PTOWSP_F32, 16, cols, 2);
    lp l = lp_begin(t, is_looped, 0, 3 * 16, 16);
    while (lp_more(&l)) {
        ptowsp_value c = lp_carry(&l, 0, first), next = c;
        ptowsp_value part = lp_chunk(&l, NULL, x.v, 16, cols);
        switch (way) {
        case 0:
        case 1: next = ptowsp_tile_slice(c, way == 0 ? 8 : 0, 0, 8, 16); break;
        case 2: next = ptowsp_tile_transpose(c); break;
        case 3: next = ptowsp_tile_cvt(c, PTOWSP_I32, PTOWSP_ROUND_NEAREST); break;
        default: next = ptowsp_tile_slice(c, 0, 8, 16, 8); break;
        }
        next = ptowsp_tile_neg(next);
        switch (way) {
        case 2: next = ptowsp_tile_transpose(next); break;
        case 3: next = ptowsp_tile_cvt(next, PTOWSP_F32, PTOWSP_ROUND_NEAREST); break;
        case 4: next = ptowsp_tile_row_broadcast(part, ptowsp_tile_rowmax(next)); break;
        default: next = ptowsp_tile_col_broadcast(part, ptowsp_tile_colmax(next)); break;
        }
        lp_next(&l, 0, c, ptowsp_tile_add(next, part));
    }
    ptowsp_tile_store(out, lp_result(&l, 0, first));
}

TEST(loop__is_what_it_is_unrolled) {
    static const struct {
        const char *name;
        lp_scene scene;
        int most;
    } rows[] = {
        {"sums products over chunks of the inner size", lp_matmul, 6},
        {"carries values that add up and change places", lp_rows, 6},
        {"computes attention over chunks of keys", lp_attention, 6},
        {"runs inside another", lp_nested, 15},
        {"runs inside three others", lp_gemm, 8},
        {"multiplies from panels inside loops over tiles", lp_panels, 15},
        {"does not change what a carried value begins as", begins_as_another, 5},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        print_message("%s\n", rows[i].name);
        play_all(rows[i].scene, rows[i].most);
    }
}

TEST(loop__adds_products_to_what_is_there) {
    play_integers(adds_to, 2, 3);
}

TEST(loop__shows_its_sum_to_instructions) {
    play_integers(watches_a_sum, 2, 3);
}

TEST(loop__parts_of_carried_values_are_not_their_places) {
    play_integers(parts_of_homes, 5, 9);
}

// Sums that products of a loop add to: which stay in L0C, and which do not.
enum { SUM_WAYS = 12 };

static bool is_sum_kept(int way) {
    return way <= 4 || way == 11;
}

static void sums(kt *t, bool is_looped, int way) {
    kt_value a = lp_in(t, PTOWSP_F16, 16, 3 * LP_CHUNK, 16, 3 * LP_CHUNK);
    kt_value b = lp_in(t, PTOWSP_F16, 3 * LP_CHUNK, 16, 3 * LP_CHUNK, 16);
    kt_value x = lp_in(t, PTOWSP_F16, 16, 16, 16, 16), y = lp_in(t, PTOWSP_F16, 16, 16, 16, 16);
    ptowsp_value out = lp_out(t, PTOWSP_F32, 16, 16, 16, 16);
    ptowsp_value more = lp_out(t, PTOWSP_F32, 16, 16, 16, 16);
    ptowsp_value product = ptowsp_tile_matmul(x.v, y.v);
    ptowsp_value other = ptowsp_tile_matmul(y.v, x.v), kept = other;
    ptowsp_value first =
        way == 1   ? ptowsp_tile_full(t->k, PTOWSP_F32, 16, 16, 0)
        : way == 5 ? ptowsp_tile_full(t->k, PTOWSP_F32, 16, 16, 2)
        : way == 6 ? ptowsp_tile_neg(product)
        : way == 11
            ? ptowsp_tile_matmul_bias(x.v, y.v, ptowsp_tile_full(t->k, PTOWSP_F32, 1, 16, 3))
            : product;
    lp l = lp_begin(t, is_looped, 0, 3 * LP_CHUNK, LP_CHUNK);
    while (lp_more(&l)) {
        ptowsp_value sum = lp_carry(&l, 0, first), was = lp_carry(&l, 1, other);
        ptowsp_value next = ptowsp_tile_matmul_acc(sum, lp_chunk(NULL, &l, a.v, 16, LP_CHUNK),
                                                   lp_chunk(&l, NULL, b.v, LP_CHUNK, 16));
        ptowsp_value keep = ptowsp_tile_abs(was);
        switch (way) {
        case 7: keep = ptowsp_tile_add(was, sum); break;   // the sum is read in the loop
        case 8: keep = ptowsp_tile_add(was, next); break;  // so is what it becomes
        case 9: next = ptowsp_tile_neg(next); break;       // it becomes something else
        default: break;
        }
        lp_next(&l, 1, was, keep);
        lp_next(&l, 0, sum, next);
    }
    ptowsp_value sum = lp_result(&l, 0, first);
    kept = lp_result(&l, 1, other);
    switch (way) {  // what needs it behind the loop
    case 2: kept = ptowsp_tile_add(kept, sum); break;
    case 3: kept = ptowsp_tile_matmul_acc(sum, x.v, y.v); break;
    case 4: kept = ptowsp_tile_add(kept, ptowsp_tile_matmul(sum, kept)); break;
    case 10: kept = ptowsp_tile_add(kept, product); break;  // it is not the sum's alone
    default: break;
    }
    ptowsp_tile_store(out, sum);
    ptowsp_tile_store(more, kept);
}

// A loop in a loop that goes on with the outer one's sum, which is in UB then.
static void sums_of_sums(kt *t, bool is_looped, int way) {
    kt_value a = lp_in(t, PTOWSP_F16, 16, 2 * LP_CHUNK, 16, 2 * LP_CHUNK);
    kt_value b = lp_in(t, PTOWSP_F16, 2 * LP_CHUNK, 16, 2 * LP_CHUNK, 16);
    ptowsp_value out = lp_out(t, PTOWSP_F32, 16, 16, 16, 16);
    ptowsp_value zero = ptowsp_tile_full(t->k, PTOWSP_F32, 16, 16, 0);
    lp i = lp_begin(t, is_looped, 0, 2, 1);
    while (lp_more(&i)) {
        ptowsp_value over = lp_carry(&i, 0, zero);
        ptowsp_value inner = way == 0 ? over : zero;
        lp j = lp_begin(t, is_looped, 0, 2 * LP_CHUNK, LP_CHUNK);
        while (lp_more(&j)) {
            ptowsp_value sum = lp_carry(&j, 0, inner);
            lp_next(&j, 0, sum,
                    ptowsp_tile_matmul_acc(sum, lp_chunk(NULL, &j, a.v, 16, LP_CHUNK),
                                           lp_chunk(&j, NULL, b.v, LP_CHUNK, 16)));
        }
        ptowsp_value sum = lp_result(&j, 0, inner);
        lp_next(&i, 0, over, way == 0 ? sum : ptowsp_tile_add(over, sum));
    }
    ptowsp_tile_store(out, lp_result(&i, 0, zero));
}

// Of the looped kernel: does its loop move anything out of L0C?
static bool moves_sums(kt *t) {
    ptowsp_program *program = kt_compile(t);
    uint32_t loop = 0, count = 0;
    for (uint32_t i = 0; i < ptowsp_program_read(program)->kernels[1].insn_count; i++) {
        ptowsp_insn_info insn = ptowsp_program_read(program)->kernels[1].insns[i];
        loop += insn.op == PTOWSP_OP_LOOP;
        loop -= insn.op == PTOWSP_OP_END;
        bool is_move = insn.op == PTOWSP_OP_TPUSH || insn.op == PTOWSP_OP_TMOV;
        count += loop && is_move && insn.src[0] &&
                 ptowsp_program_read(program)->kernels[1].objects[insn.src[0]].memory ==
                     PTOWSP_MEMORY_L0C;
    }
    return count > 0;
}

TEST(loop__sums_stay_in_l0c_where_nothing_else_needs_them) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    uint64_t seed = test_seed();
    for (int way = 1; way < SUM_WAYS; way++) {
        for (int i = 0; i < 4; i++) {
            kt_config config = kt_any(test_random(&seed));
            config.machine = i % 2 ? &a5 : NULL;
            config.is_fused = i / 2 != 0;
            config.is_integer = true;  // sums are exact in any order
            config.low = -3;
            config.high = 3;
            lp_play(sums, way, config);
            kt t = kt_begin(config);
            sums(&t, true, way);
            lp_lower(&t);
            if (moves_sums(&t) == is_sum_kept(way)) {
                kt_complain(&t);
                fail_msg("way %d", way);
            }
            kt_free(&t);
            lp_play(sums_of_sums, way % 2, config);
        }
    }
}

// -- what is measured and read ----------------------------------------------------------------------

enum { ROWS = 64, COLS = 16, STEP = 16 };

// y = 2 x in chunks of rows, from row `from` on.
static ptowsp_kernel chunks(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "twice"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, ROWS, COLS);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, ROWS, COLS);
    ptowsp_value from = ptowsp_tile_scalar(k, "from", PTOWSP_I64);
    PTOWSP_TILE_LOOP(k, i, from, ptowsp_tile_rows(x), STEP) {
        ptowsp_value part = ptowsp_tile_slice_at(x, i, lp_none, STEP, COLS);
        ptowsp_tile_store_at(y, i, lp_none, ptowsp_tile_mul(part, ptowsp_tile_const(k, 2)));
    }
    return ptowsp_kernel_end(k);
}

CONTEXT_TEST(loop__overlaps_a_chunk_with_the_next_load) {
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_kernel_stats stats;
    const ptowsp_cost cost = {.model = PTOWSP_MODEL_A2A3};
    assert_ok(ptowsp_kernel_measure(m, chunks(m), &cost, &stats));
    const ptowsp_cycles *busy = stats.busy_cycles;
    assert_true(stats.cycles <  // one after another it would be as much
                busy[PTOWSP_PIPE_V] + busy[PTOWSP_PIPE_MTE2] + busy[PTOWSP_PIPE_MTE3]);
    assert_int_equal(stats.memory_bytes[PTOWSP_MEMORY_UB], 2 * STEP * COLS * 4);  // two buffers
    ptowsp_module_destroy(m);
}

// What readers of a program see of it: the bounds, two places of the tile, windows at the index.
CONTEXT_TEST(loop__is_there_for_readers) {
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_task_desc task = {.kernel = chunks(m)};
    for (int i = 0; i < 2; i++) {
        const ptowsp_tensor_desc tensor = {
            .name = i ? "y" : "x", .dtype = PTOWSP_F32, .rank = 2, .shape = {ROWS, COLS}};
        task.views[i].tensor = ptowsp_tensor_make(m, &tensor);
    }
    task.scalars[0] = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "w") {
        ptowsp_task_make(m, &task);
    }
    ptowsp_program *program = test_program(context, m, NULL);
    const ptowsp_kernel_info *info = &ptowsp_program_read(program)->kernels[1];
    assert_int_equal(info->loop_count, 1);
    const ptowsp_loop_info *loop = &info->loops[1];
    assert_int_equal(loop->begin.scalar, 0);
    assert_int_equal(loop->begin.tile, PTOWSP_NO_PARAM);
    assert_int_equal(loop->end.scalar, PTOWSP_NO_PARAM);
    assert_int_equal(loop->end.tile, 0);
    assert_int_equal(loop->end.axis, 0);
    assert_int_equal(loop->step, STEP);
    assert_int_equal(loop->parent, 0);
    uint32_t begin = 0, end = 0, windows = 0, rotating = 0;
    for (uint32_t i = 0; i < info->insn_count; i++) {
        const ptowsp_insn_info *insn = &info->insns[i];
        begin = insn->op == PTOWSP_OP_LOOP ? i : begin;
        end = insn->op == PTOWSP_OP_END ? i : end;
        windows += insn->row_loop == 1 && insn->col_loop == 0;
        bool is_flag = insn->op == PTOWSP_OP_SET_FLAG || insn->op == PTOWSP_OP_WAIT_FLAG;
        rotating += is_flag && insn->loop == 1;
    }
    assert_int_equal(end - begin + 1, loop->insn_count);
    assert_int_equal(windows, 2);  // a load and a store
    assert_true(rotating >= 4);
    const ptowsp_tile_object *tile = &info->objects[1];
    assert_int_equal(tile->loop, 1);
    assert_int_equal(tile->step, STEP * COLS * 4);
    assert_int_equal(tile->valid_rows.loop, 1);
    assert_int_equal(tile->valid_cols.loop, 0);
    test_destroy(NULL, program, m, NULL);
}
