// Mistakes with loops in tile kernels, while they are built and in their tasks; each limit at it and
// one past it; and each allocation refused.

#include "kernel_faults.h"

static ptowsp_value number(fixture *f, double x) {
    return ptowsp_tile_const(f->k, x);
}

static ptowsp_value open_loop(fixture *f) {
    return ptowsp_tile_loop_begin(f->k, number(f, 0), number(f, 4), 1);
}

// -- while they are built ------------------------------------------------------------------------

TEST(loop__refuses_bounds_that_are_none) {
    INVALID("loop: operand 1 is no value", loop_begin(f->k, none, number(f, 1), 1));
    INVALID("loop: its end is no constant, scalar of i64 or u64, or size of a tile",
            loop_begin(f->k, number(f, 0), f->x, 1));
    INVALID("loop: its end is no constant, scalar of i64 or u64, or size of a tile",
            loop_begin(f->k, number(f, 0), f->s, 1));
    INVALID("loop: its begin is -1, not a whole number from 0 to 2^30",
            loop_begin(f->k, number(f, -1), number(f, 1), 1));
    INVALID("loop: its end is 1.5, not a whole number from 0 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, 1.5), 1));
    INVALID("loop: its end is 1073741825, not a whole number from 0 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, 0x1p30 + 1), 1));
    INVALID("loop: its end is nan, not a whole number from 0 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, NAN), 1));
    INVALID("loop: its step is 0; steps are 1 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, 1), 0));
    INVALID("loop: its step is 1073741825; steps are 1 to 2^30",
            loop_begin(f->k, number(f, 0), number(f, 1), (1 << 30) + 1));
    INVALID("size: its operand is no parameter", rows(f->s));
    INVALID("size: its operand is no parameter", cols(ptowsp_tile_exp(f->x)));
    INVALID_STORE("loop_end: no loop is open", loop_end(f->k));
}

static ptowsp_value preload(fixture *f, int64_t iterations, int times) {
    ptowsp_value index = open_loop(f);
    for (int i = 0; i < times; i++) {
        ptowsp_tile_preload(index, iterations);
    }
    return none;
}

static ptowsp_value preload_outer(fixture *f) {
    ptowsp_value index = open_loop(f);
    open_loop(f);
    ptowsp_tile_preload(index, 1);
    return none;
}

TEST(loop__refuses_preloads_that_are_none) {
    INVALID_STORE("preload: its operand is no index of the innermost loop", preload(f->x, 1));
    REFUSED("preload: its operand is no index of the innermost loop", preload_outer(f));
    REFUSED("preload: 0 iterations, not 1 to 8", preload(f, 0, 1));
    REFUSED("preload: 9 iterations, not 1 to 8", preload(f, 9, 1));
    REFUSED("preload: -1 iterations, not 1 to 8", preload(f, -1, 1));
    REFUSED("preload: loop 1 preloads 8 already", preload(f, 8, 2));
}

static ptowsp_value too_many(fixture *f, int count, bool is_nested) {
    ptowsp_value last = none;
    for (int i = 0; i < count; i++) {
        last = open_loop(f);
        if (!is_nested) {
            ptowsp_tile_loop_end(f->k);
        }
    }
    return last;
}

static ptowsp_value carries(fixture *f, int count) {
    ptowsp_value last = none;
    open_loop(f);
    for (int i = 0; i < count; i++) {
        last = ptowsp_tile_carry(f->v);
    }
    return last;
}

TEST(loop__refuses_more_than_its_limits) {
    FAULT(LIMIT_EXCEEDED, "loop: more than 8 in a kernel", too_many(f, PTOWSP_LOOP_MAX + 1, false));
    FAULT(LIMIT_EXCEEDED, "loop: more than 4 inside each other",
          too_many(f, PTOWSP_LOOP_DEPTH_MAX + 1, true));
    FAULT(LIMIT_EXCEEDED, "carry: more than 32 in loop 1", carries(f, PTOWSP_LOOP_CARRY_MAX + 1));
    fixture f;
    begin(&f);
    assert_int_not_equal(too_many(&f, PTOWSP_LOOP_MAX, false).id, 0);
    assert_int_not_equal(good_end(&f).id, 0);
    finish(&f);
    begin(&f);
    ptowsp_value carried[PTOWSP_LOOP_CARRY_MAX], sum = f.v;
    open_loop(&f);
    open_loop(&f);
    for (int i = 0; i < PTOWSP_LOOP_CARRY_MAX; i++) {  // all move on by one place, in a circle
        carried[i] = ptowsp_tile_carry(f.v);
    }
    for (int i = 0; i < PTOWSP_LOOP_CARRY_MAX; i++) {
        ptowsp_tile_next(carried[i], carried[(i + 1) % PTOWSP_LOOP_CARRY_MAX]);
    }
    ptowsp_tile_loop_end(f.k);
    ptowsp_tile_loop_end(f.k);
    (void)sum;
    assert_int_not_equal(good_end(&f).id, 0);
    finish(&f);
}

static ptowsp_value after(fixture *f, int which) {
    ptowsp_value x = f->x, index = open_loop(f), c = none;
    ptowsp_value made = ptowsp_tile_exp(x);
    switch (which) {
    case 0: ptowsp_tile_loop_end(f->k); return ptowsp_tile_exp(made);
    case 1: ptowsp_tile_loop_end(f->k); return ptowsp_tile_slice_at(x, index, none, 1, 16);
    case 2: ptowsp_tile_carry(x); return VOID(ptowsp_tile_loop_end(f->k));
    case 3: return ptowsp_tile_carry(made);
    case 4: return VOID(ptowsp_tile_next(made, x));
    case 5:
        c = ptowsp_tile_carry(x);
        ptowsp_tile_next(c, made);
        return VOID(ptowsp_tile_next(c, made));
    case 6:
        c = ptowsp_tile_carry(x);
        open_loop(f);
        return VOID(ptowsp_tile_next(c, made));
    case 7: return VOID(ptowsp_tile_next(ptowsp_tile_carry(x), f->v));
    case 8: return VOID(ptowsp_tile_next(ptowsp_tile_carry(x), f->i));
    case 9: return VOID(ptowsp_tile_store(f->o, x));
    case 10: return ptowsp_tile_add(x, index);
    case 11: return ptowsp_tile_carry(f->s);
    default: return ptowsp_tile_carry(f->o);
    }
}

static ptowsp_value pairs(fixture *f, bool is_next) {
    ptowsp_value scores = PARAM("scores", PTOWSP_F32, 1, 32),
                 index = PARAM("at", PTOWSP_U32, 1, 32);
    ptowsp_value wide = PARAM("wide", PTOWSP_F32, 1, 64);
    ptowsp_value sorted = ptowsp_tile_sort32(scores, index);
    open_loop(f);
    return is_next ? VOID(ptowsp_tile_next(ptowsp_tile_carry(wide), sorted))
                   : ptowsp_tile_carry(sorted);
}

static ptowsp_value tile_of_instructions(fixture *f, bool is_next) {
    ptowsp_alloc_desc desc = {.dtype = PTOWSP_F32, .like = f->x};
    ptowsp_value t = ptowsp_tile_alloc(f->k, &desc);
    open_loop(f);
    return is_next ? VOID(ptowsp_tile_next(ptowsp_tile_carry(f->x), t)) : ptowsp_tile_carry(t);
}

TEST(loop__refuses_values_where_they_are_not) {
    REFUSED("exp: operand 1 is a value of loop 1, which has ended", after(f, 0));
    REFUSED("slice_at: operand 2 is a value of loop 1, which has ended", after(f, 1));
    REFUSED("loop_end: a carried value of loop 1 has no next value", after(f, 2));
    REFUSED("carry: its initial value is made in loop 1", after(f, 3));
    REFUSED("next: operand 1 is no carried value", after(f, 4));
    REFUSED("next: it has a next value already", after(f, 5));
    REFUSED("next: it is of loop 1, not of the innermost one", after(f, 6));
    REFUSED("next: 1 x 16 f32 after 8 x 16 f32", after(f, 7));
    REFUSED("next: 8 x 16 i32 after 8 x 16 f32", after(f, 8));
    REFUSED("store: o is stored as a whole in a loop; see ptowsp_tile_store_at", after(f, 9));
    REFUSED("add: operand 2 is no value", after(f, 10));
    REFUSED("carry: operand 1 is a scalar, not a tile", after(f, 11));
    REFUSED("carry: o is an out parameter and cannot be read", after(f, 12));
    INVALID("carry: no loop is open", carry(f->x));
    FAULT(UNSUPPORTED, "carry: sorted pairs", pairs(f, false));
    FAULT(UNSUPPORTED, "next: sorted pairs", pairs(f, true));
    FAULT(UNSUPPORTED, "carry: a tile that instructions write", tile_of_instructions(f, false));
    FAULT(UNSUPPORTED, "next: a tile that instructions write", tile_of_instructions(f, true));
    fixture f;
    begin(&f);
    open_loop(&f);
    good_end(&f);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel k: store: o is stored as a whole in a loop; see "
                  "ptowsp_tile_store_at");
    begin(&f);
    ptowsp_tile_store(f.o, f.x);
    ptowsp_tile_store(f.io, f.x);
    open_loop(&f);
    ptowsp_kernel_end(f.k);
    expect_module(&f, PTOWSP_INVALID_PARAMS, "module: kernel k: loop: loop 1 is not ended");
}

TEST(loop__refuses_windows_that_do_not_fit) {
    INVALID("slice_at: its operand is no parameter",
            slice_at(ptowsp_tile_exp(f->x), none, none, 1, 1));
    INVALID("slice_at: 9 x 16 of 8 x 16", slice_at(f->x, none, none, 9, 16));
    INVALID("slice_at: 1 x 0 of 8 x 16", slice_at(f->x, none, none, 1, 0));
    INVALID("slice_at: it begins at 1; there is room for 0 to 0",
            slice_at(f->x, number(f, 1), none, 8, 16));
    INVALID("slice_at: it begins at 0.5; there is room for 0 to 15",
            slice_at(f->x, none, number(f, 0.5), 8, 1));
    INVALID("slice_at: operand 2 is no constant or index of a loop",
            slice_at(f->x, f->y, none, 8, 1));
    INVALID_STORE("store_at: 8 x 16 into small of 4 x 16",
                  store_at(ptowsp_tile_out(f->k, "small", PTOWSP_F32, 4, 16), none, none, f->x));
    INVALID_STORE("store_at: it begins at 8; there is room for 0 to 7",
                  store_at(f->o, number(f, 8), none, f->v));
    INVALID_STORE("store_at: x is an in parameter", store_at(f->x, none, none, f->v));
}

// -- tasks ----------------------------------------------------------------------------------------

enum { ROWS = 64, COLS = 16, STEP = 16 };

typedef struct task_fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_kernel kernel;
    ptowsp_program *program;
    ptowsp_run *run;
    float x[ROWS * COLS], y[ROWS * COLS];
} task_fixture;

// Ends a kernel of tiles x and y and two scalars, and makes a program of one task of it.
static ptowsp_status task_make(task_fixture *t, ptowsp_body *k, bool is_u64, uint64_t from,
                               uint64_t to) {
    t->kernel = ptowsp_kernel_end(k);
    ptowsp_task_desc task = {.kernel = t->kernel};
    static const char *const names[] = {"x", "y"};
    for (int i = 0; i < 2; i++) {
        ptowsp_tensor_desc tensor = {.name = names[i], .dtype = PTOWSP_F32, .rank = 2};
        tensor.shape[0] = tensor.shape[1] = PTOWSP_DYNAMIC;
        task.views[i].tensor = ptowsp_tensor_make(t->m, &tensor);
    }
    task.scalars[0] = is_u64 ? ptowsp_u64(t->m, from) : ptowsp_i64(t->m, (int64_t)from);
    task.scalars[1] = is_u64 ? ptowsp_u64(t->m, to) : ptowsp_i64(t->m, (int64_t)to);
    PTOWSP_WORKLOAD(t->m, "w") {
        ptowsp_task_make(t->m, &task);
    }
    return ptowsp_program_create(t->context, t->m, NULL, &t->program);
}

// y = 2 x from row `from` to row `to`, in chunks, both scalars (or `to` is the rows of x).
static ptowsp_status copy_make(task_fixture *t, bool is_u64, bool is_size, uint64_t from,
                               uint64_t to) {
    ptowsp_body_desc desc = {.name = "twice"};
    ptowsp_dtype dtype = is_u64 ? PTOWSP_U64 : PTOWSP_I64;
    ptowsp_body *k = ptowsp_kernel_begin(t->m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, ROWS, COLS);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, ROWS, COLS);
    ptowsp_value begin_at = ptowsp_tile_scalar(k, "from", dtype);
    ptowsp_value end_at = ptowsp_tile_scalar(k, "to", dtype);
    PTOWSP_TILE_LOOP(k, i, begin_at, is_size ? ptowsp_tile_rows(x) : end_at, STEP) {
        ptowsp_value part = ptowsp_tile_slice_at(x, i, none, STEP, COLS);
        ptowsp_tile_store_at(y, i, none, ptowsp_tile_mul(part, ptowsp_tile_const(k, 2)));
    }
    return task_make(t, k, is_u64, from, to);
}

// The first chunk of rows, `from` times `to` times: a loop in a loop.
static ptowsp_status nested_make(task_fixture *t, uint64_t from, uint64_t to) {
    ptowsp_body_desc desc = {.name = "often"};
    ptowsp_body *k = ptowsp_kernel_begin(t->m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, ROWS, COLS);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, ROWS, COLS);
    ptowsp_value outer = ptowsp_tile_scalar(k, "from", PTOWSP_I64), zero = ptowsp_tile_const(k, 0);
    ptowsp_value inner = ptowsp_tile_scalar(k, "to", PTOWSP_I64);
    PTOWSP_TILE_LOOP(k, i, zero, outer, 1) {
        PTOWSP_TILE_LOOP(k, j, zero, inner, 1) {
            ptowsp_value part = ptowsp_tile_slice_at(x, none, none, STEP, COLS);
            ptowsp_tile_store_at(y, none, none, ptowsp_tile_mul(part, ptowsp_tile_const(k, 2)));
        }
    }
    return task_make(t, k, false, from, to);
}

static ptowsp_status copy_run(task_fixture *t, int64_t rows, ptowsp_run_mode mode) {
    ptowsp_status status = ptowsp_run_create(t->context, t->program, &t->run);
    float *data[2] = {t->x, t->y};
    static const char *const names[] = {"x", "y"};
    for (int i = 0; i < 2 && status == PTOWSP_OK; i++) {
        ptowsp_buffer buffer = {.data = data[i], .rank = 2, .shape[0] = rows, .shape[1] = COLS};
        status = ptowsp_run_bind_tensor(t->run, names[i], &buffer);
    }
    ptowsp_run_options options = {.mode = mode};
    return status == PTOWSP_OK ? ptowsp_run_execute(t->run, &options) : status;
}

static void task_begin(task_fixture *t) {
    memset(t, 0, sizeof *t);
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &t->memory};
    assert_int_equal(ptowsp_context_create(&desc, &t->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(t->context, NULL, &t->m), PTOWSP_OK);
    for (int i = 0; i < ROWS * COLS; i++) {
        t->x[i] = (float)i;
        t->y[i] = -1;
    }
}

static void task_end(task_fixture *t) {
    test_destroy(t->run, t->program, t->m, t->context);
    assert_int_equal(t->memory.live_blocks, 0);
}

static void task_is_refused(bool is_u64, uint64_t from, uint64_t to, const char *text) {
    for (int mode = 0; mode < 2; mode++) {
        task_fixture t;
        task_begin(&t);
        assert_int_equal(copy_make(&t, is_u64, false, from, to), PTOWSP_OK);
        assert_int_equal(copy_run(&t, ROWS, mode ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE),
                         PTOWSP_INVALID_PARAMS);
        assert_string_equal(ptowsp_context_error(t.context).text, text);
        for (int i = 0; i < ROWS * COLS; i++) {
            assert_true(t.y[i] == -1);  // nothing was touched
        }
        task_end(&t);
    }
}

TEST(tasks__whose_bounds_are_negative_or_huge_are_refused) {
    task_is_refused(
        false, (uint64_t)-16, 16,
        "w/task twice: task 0: kernel twice: loop 1 goes from -16 to 16; its bounds are 0 to "
        "2^30, in this order");
    task_is_refused(
        false, 0, (uint64_t)-1,
        "w/task twice: task 0: kernel twice: loop 1 goes from 0 to -1; its bounds are 0 to "
        "2^30, in this order");
    task_is_refused(
        false, 17, 16,
        "w/task twice: task 0: kernel twice: loop 1 goes from 17 to 16; its bounds are 0 to "
        "2^30, in this order");
    task_is_refused(
        true, 0, UINT64_MAX,
        "w/task twice: task 0: kernel twice: loop 1 goes from 0 to 1073741825; its bounds are "
        "0 to 2^30, in this order");
    task_is_refused(
        false, 0, (1 << 30) + 1,
        "w/task twice: task 0: kernel twice: loop 1 goes from 0 to 1073741825; its bounds are "
        "0 to 2^30, in this order");
    task_is_refused(
        true, 0, 1 << 30,
        "w/task twice: task 0: kernel twice: loop 1 runs 67108864 times; a task executes at "
        "most 1048576 instructions");
}

// Loops in loops: the bounds of each, and the trips of both together. With no trip of the outer loop,
// the inner one's number does not matter.
TEST(tasks__whose_inner_loops_are_negative_or_huge_are_refused) {
    const struct {
        int64_t from, to;
        const char *text;
    } cases[] = {{2, -1, "loop 2 goes from 0 to -1; its bounds are 0 to 2^30, in this order"},
                 {-1, 2, "loop 1 goes from 0 to -1; its bounds are 0 to 2^30, in this order"},
                 {1024, 1 << 30,
                  "loop 2 runs 1099511627776 times; a task executes at most 1048576 instructions"},
                 {1 << 30, 1 << 30,
                  "loop 1 runs 1073741824 times; a task executes at most 1048576 instructions"},
                 {0, 1 << 30, NULL},
                 {1 << 10, 0, NULL},
                 {3, 2, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        task_fixture t;
        task_begin(&t);
        assert_int_equal(nested_make(&t, (uint64_t)cases[i].from, (uint64_t)cases[i].to),
                         PTOWSP_OK);
        ptowsp_status status = copy_run(&t, ROWS, PTOWSP_RUN_EXECUTE);
        assert_int_equal(status, cases[i].text ? PTOWSP_INVALID_PARAMS : PTOWSP_OK);
        if (cases[i].text) {
            char text[256];
            snprintf(text, sizeof text, "w/task often: task 0: kernel often: %s", cases[i].text);
            assert_string_equal(ptowsp_context_error(t.context).text, text);
        }
        for (int64_t k = 0; k < ROWS * COLS; k++) {
            bool is_in = i == 6 && k < STEP * COLS;
            assert_true(t.y[k] == (is_in ? 2 * t.x[k] : -1));
        }
        task_end(&t);
    }
}

// The last chunk is cut off where the loop or the parameter ends; chunks beyond the parameter have nothing; none, one and more of them.
TEST(tasks__take_what_there_is_of_each_chunk) {
    for (int64_t rows = 1; rows <= ROWS; rows += 7) {
        for (uint64_t from = 0; from <= 40; from += 5) {
            for (uint64_t to = from; to <= 100; to += 17) {
                task_fixture t;
                task_begin(&t);
                bool is_size = to % 2 != 0 && from <= (uint64_t)rows;
                assert_int_equal(copy_make(&t, to % 3 == 0, is_size, from, to), PTOWSP_OK);
                assert_int_equal(copy_run(&t, rows, PTOWSP_RUN_EXECUTE), PTOWSP_OK);
                uint64_t last = is_size ? (uint64_t)rows : to;
                uint64_t end = last;
                for (int64_t i = 0; i < ROWS * COLS; i++) {
                    bool is_in = i / COLS < rows && (uint64_t)(i / COLS) >= from &&
                                 (uint64_t)(i / COLS) < end;
                    assert_true(t.y[i] == (is_in ? 2 * t.x[i] : -1));
                }
                task_end(&t);
            }
        }
    }
}

// In the unit model a chunk costs what one costs, and the most instructions are counted in full.
TEST(tasks__cost_what_their_iterations_cost) {
    ptowsp_cycles cycles[5];
    for (uint64_t n = 0; n < 5; n++) {
        task_fixture t;
        task_begin(&t);
        assert_int_equal(copy_make(&t, false, false, 0, n * STEP), PTOWSP_OK);
        assert_int_equal(copy_run(&t, ROWS, PTOWSP_RUN_TIME_ONLY), PTOWSP_OK);
        cycles[n] = ptowsp_run_result(t.run)->makespan_cycles;
        if (n == 4) {
            // Scalars count as a bound: the same sizes with other ones are another task.
            assert_int_equal(ptowsp_run_execute(t.run, NULL), PTOWSP_OK);
            assert_int_equal(ptowsp_run_result(t.run)->makespan_cycles, cycles[4]);
        }
        task_end(&t);
    }
    // A load, a product with 2 and a store of 16 x 16: an element a cycle each.
    assert_int_equal(cycles[0], 0);
    for (uint64_t n = 1; n < 5; n++) {
        assert_int_equal(cycles[n] - cycles[n - 1], 3 * STEP * COLS);
    }
}

TEST(tasks__overlap_a_chunk_with_the_next_load) {
    task_fixture t;
    task_begin(&t);
    assert_int_equal(copy_make(&t, false, true, 0, 0), PTOWSP_OK);
    ptowsp_kernel_stats stats;
    ptowsp_cost cost = {.model = PTOWSP_MODEL_A2A3};
    assert_int_equal(ptowsp_kernel_measure(t.m, t.kernel, &cost, &stats), PTOWSP_OK);
    ptowsp_cycles sum = stats.busy_cycles[PTOWSP_PIPE_V] + stats.busy_cycles[PTOWSP_PIPE_MTE2] +
                        stats.busy_cycles[PTOWSP_PIPE_MTE3];
    assert_true(stats.cycles < sum);  // one after another it would be more
    assert_int_equal(stats.memory_bytes[PTOWSP_MEMORY_UB], 2 * STEP * COLS * 4);  // two buffers
    task_end(&t);
}

// What readers of a program see of it: the bounds, two places of the tile, windows at the index.
TEST(tasks__loops_are_there_for_readers) {
    task_fixture t;
    task_begin(&t);
    assert_int_equal(copy_make(&t, false, true, 0, 0), PTOWSP_OK);
    ptowsp_kernel_info info = ptowsp_program_read(t.program)->kernels[1];
    assert_int_equal(info.loop_count, 1);
    ptowsp_loop_info loop = ptowsp_program_read(t.program)->kernels[1].loops[1];
    assert_int_equal(loop.begin.scalar, 0);
    assert_int_equal(loop.begin.tile, PTOWSP_NO_PARAM);
    assert_int_equal(loop.end.scalar, PTOWSP_NO_PARAM);
    assert_int_equal(loop.end.tile, 0);
    assert_int_equal(loop.end.axis, 0);
    assert_int_equal(loop.step, STEP);
    assert_int_equal(loop.parent, 0);
    uint32_t begin = 0, end = 0, windows = 0, rotating = 0;
    for (uint32_t i = 0; i < info.insn_count; i++) {
        ptowsp_insn_info insn = ptowsp_program_read(t.program)->kernels[1].insns[i];
        begin = insn.op == PTOWSP_OP_LOOP ? i : begin;
        end = insn.op == PTOWSP_OP_END ? i : end;
        windows += insn.row_loop == 1 && insn.col_loop == 0;
        bool is_flag = insn.op == PTOWSP_OP_SET_FLAG || insn.op == PTOWSP_OP_WAIT_FLAG;
        rotating += is_flag && insn.loop == 1;
    }
    assert_int_equal(end - begin + 1, loop.insn_count);
    assert_int_equal(windows, 2);  // a load and a store
    assert_true(rotating >= 4);
    ptowsp_tile_object tile = ptowsp_program_read(t.program)->kernels[1].objects[1];
    assert_int_equal(tile.loop, 1);
    assert_int_equal(tile.step, STEP * COLS * 4);
    assert_int_equal(tile.valid_rows.loop, 1);
    assert_int_equal(tile.valid_cols.loop, 0);
    task_end(&t);
}

// -- memory ---------------------------------------------------------------------------------------

static ptowsp_status all(task_fixture *t) {
    ptowsp_status status = copy_make(t, false, true, 0, 0);
    return status == PTOWSP_OK ? copy_run(t, ROWS, PTOWSP_RUN_EXECUTE) : status;
}

TEST(memory__every_allocation_may_fail) {
    size_t count = 0;
    for (size_t refused = 0; refused <= count; refused++) {
        task_fixture t;
        task_begin(&t);
        size_t before = t.memory.allocations;
        t.memory.refuse_at = refused ? before + refused : 0;
        ptowsp_status status = all(&t);
        if (refused == 0) {
            assert_int_equal(status, PTOWSP_OK);
            count = t.memory.allocations - before;
        } else {
            assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
        }
        t.memory.refuse_at = 0;
        task_end(&t);
    }
    assert_true(count > 20);
}
