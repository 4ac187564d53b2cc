// Mistakes with tile kernels as wholes: beginning and ending them, instructions as they are, what
// does not fit, tasks whose sizes do not go together, questions about what is no tile kernel.

#include "kernel_faults.h"

// -- beginning and ending -------------------------------------------------------------------------

static void begin_other(fixture *f, const char *name, uint32_t axis_count,
                        const ptowsp_machine *machine) {
    ptowsp_body_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.axis_count = axis_count;
    desc.machine = machine;
    assert_null(ptowsp_kernel_begin(f->m, &desc));
}

#define NO_NAME                                                                                    \
    "module: the name of this kernel is not 1 to 63 printable ASCII characters without quotes "    \
    "and "                                                                                         \
    "backslash"

static void misuse__of_descriptions(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    assert_null(ptowsp_kernel_begin(f.m, NULL));
    expect_module(&f, PTOWSP_INVALID_PARAMS, "module: kernel: desc is NULL");
    begin(&f);
    begin_other(&f, NULL, 0, NULL);
    expect_module(&f, PTOWSP_INVALID_PARAMS, NO_NAME);
    begin(&f);
    begin_other(&f, "", 0, NULL);
    expect_module(&f, PTOWSP_INVALID_PARAMS, NO_NAME);
    begin(&f);
    begin_other(&f, "wide", 9, NULL);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel wide: 9 axis arguments are more than 8");
    begin(&f);
    ptowsp_machine machine = ptowsp_machine_910b();
    machine.family = (ptowsp_family)2;
    begin_other(&f, "odd", 0, &machine);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel odd: its machine has no such family, no clock, or a memory of "
                  "more than 64 MiB");
    begin(&f);
    machine = ptowsp_machine_950pr();
    machine.clock_mhz = 0;
    begin_other(&f, "odd", 0, &machine);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel odd: its machine has no such family, no clock, or a memory of "
                  "more than 64 MiB");
}

// A kernel that stores x to both of the fixture's outputs.
static ptowsp_kernel good_end(fixture *f) {
    ptowsp_tile_store(f->o, f->x);
    ptowsp_tile_store(f->io, f->x);
    return ptowsp_kernel_end(f->k);
}

static void misuse__two_kernels_of_one_name(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    ptowsp_body *first = f.k;
    ptowsp_body_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "k";
    // The name is taken when the kernel ends, or already when the other one begins.
    f.k = ptowsp_kernel_begin(f.m, &desc);
    if (f.k) {
        ptowsp_value x = ptowsp_tile_in(f.k, "x", PTOWSP_F32, 1, 8);
        ptowsp_tile_store(ptowsp_tile_out(f.k, "y", PTOWSP_F32, 1, 8), x);
        assert_int_not_equal(ptowsp_kernel_end(f.k).id, 0);
    }
    f.k = first;
    assert_int_equal(good_end(&f).id, 0);
    expect_module(&f, PTOWSP_INVALID_PARAMS,
                  "module: kernel k: there is a kernel of this name already");
}

static void misuse__a_kernel_that_never_ends(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    ptowsp_tile_exp(f.x);
    PTOWSP_WORKLOAD(f.m, "w") {
    }
    ptowsp_program *program = NULL;
    assert_int_equal(ptowsp_program_create(f.context, f.m, NULL, &program), PTOWSP_INVALID_PARAMS);
    assert_null(program);
    test_error_is(f.context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "module: kernel k has not been ended");
    finish(&f);  // what it holds is freed with the module
}

static void misuse__a_kernel_without_tiles(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    ptowsp_body_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "empty";
    ptowsp_body *body = ptowsp_kernel_begin(f.m, &desc);
    ptowsp_tile_scalar(body, "s", PTOWSP_I64);
    assert_int_equal(ptowsp_kernel_end(body).id, 0);
    expect_module(&f, PTOWSP_INVALID_PARAMS, "module: kernel empty: parameter: it has no tile");
}

static void misuse__too_many_operations(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    ptowsp_value x = f.x;
    for (int i = 0; i < PTOWSP_BODY_OP_MAX && x.id; i++) {
        x = ptowsp_tile_neg(x);
    }
    expect(&f, x, PTOWSP_LIMIT_EXCEEDED, "neg: more than 10000 operations");
}

// -- what does not fit ----------------------------------------------------------------------------

// The error of a kernel that stores `value`.
static void expect_end(fixture *f, ptowsp_value value, ptowsp_status status, const char *text) {
    assert_int_not_equal(value.id, 0);
    ptowsp_tile_store(ptowsp_tile_out(f->k, "out", PTOWSP_F32, 128, 128), value);
    char all[320];
    snprintf(all, sizeof all, "module: kernel k: %s", text);
    assert_int_equal(good_end(f).id, 0);
    expect_module(f, status, all);
}

static void misuse__tiles_that_do_not_fit(void **state) {
    (void)state;
    fixture fault, *f = &fault;
    begin(f);  // 64 KiB each: the third one does not fit into 184
    ptowsp_value a = PARAM("a", PTOWSP_F32, 128, 128), b = PARAM("b", PTOWSP_F32, 128, 128);
    ptowsp_value c = PARAM("c", PTOWSP_F32, 128, 128);
    expect_end(
        f, ptowsp_tile_add(ptowsp_tile_add(a, b), c), PTOWSP_LIMIT_EXCEEDED,
        "c: memory: tile 4 (128 x 128 f32) needs 65536 bytes of UB at instruction 3 (TLOAD), where "
        "131584 of 188416 are in use");
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    begin_with(f, &a5);  // 248 KiB hold it
    a = PARAM("a", PTOWSP_F32, 128, 128), b = PARAM("b", PTOWSP_F32, 128, 128);
    c = PARAM("c", PTOWSP_F32, 128, 128);
    ptowsp_tile_store(ptowsp_tile_out(f->k, "out", PTOWSP_F32, 128, 128),
                      ptowsp_tile_add(ptowsp_tile_add(a, b), c));
    assert_int_not_equal(good_end(f).id, 0);
    finish(f);
    begin(f);  // factors of L1
    expect_end(
        f, ptowsp_tile_matmul(PARAM("a", PTOWSP_F32, 128, 600), PARAM("b", PTOWSP_F32, 600, 128)),
        PTOWSP_LIMIT_EXCEEDED,
        "matmul: memory: tile 3 (608 x 128 f32) needs 311296 bytes of L1 at instruction 2 (TLOAD), "
        "where "
        "311296 of 524288 are in use");
}

// -- instructions ---------------------------------------------------------------------------------

static ptowsp_value alloc(fixture *f, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    ptowsp_alloc_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.dtype = dtype;
    desc.rows = rows;
    desc.cols = cols;
    return ptowsp_tile_alloc(f->k, &desc);
}

static ptowsp_value alloc_as(fixture *f, ptowsp_alloc_desc desc) {
    return ptowsp_tile_alloc(f->k, &desc);
}

static ptowsp_value tell(fixture *f, const char *name, ptowsp_value dst, ptowsp_value src0,
                         ptowsp_value src1, ptowsp_value tmp, ptowsp_value scalar) {
    ptowsp_instruction_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.dst[0] = dst;
    desc.src[0] = src0;
    desc.src[1] = src1;
    desc.tmp = tmp;
    desc.scalar = scalar;
    ptowsp_instruction(f->k, &desc);
    return none;
}

#define T alloc(f, PTOWSP_F32, 8, 16)

static void misuse__of_alloc(void **state) {
    (void)state;
    const ptowsp_alloc_desc zero = {PTOWSP_MEMORY_UB, PTOWSP_F32, PTOWSP_LAYOUT_ROW_MAJOR, 0, 0,
                                    {NULL, 0}};
    FAULT(INVALID_PARAMS, "alloc: desc is NULL", ptowsp_tile_alloc(f->k, NULL));
    FAULT(INVALID_PARAMS, "alloc: 0 x 0; sizes are 1 to 16384", alloc_as(f, zero));
    FAULT(UNSUPPORTED, "alloc: bool is no type of tiles", alloc(f, PTOWSP_BOOL, 8, 16));
    FAULT(UNSUPPORTED, "alloc: none is no type of tiles", alloc(f, (ptowsp_dtype)77, 8, 16));
    FAULT(INVALID_PARAMS, "alloc: 8 x 16385; sizes are 1 to 16384", alloc(f, PTOWSP_F32, 8, 16385));
    ptowsp_alloc_desc desc = zero;
    desc.memory = (ptowsp_memory)PTOWSP_MEMORY_COUNT;
    FAULT(INVALID_PARAMS, "alloc: no such memory or layout", alloc_as(f, desc));
    desc = zero;
    desc.layout = (ptowsp_layout)77;
    FAULT(INVALID_PARAMS, "alloc: no such memory or layout", alloc_as(f, desc));
    desc = zero;
    desc.rows = 4;
    FAULT(INVALID_PARAMS, "alloc: 4 x 16 for a value of 8 x 16",
          (desc.like = f->x, alloc_as(f, desc)));
    FAULT(INVALID_PARAMS, "alloc: `like` is no tile", (desc.like = f->s, alloc_as(f, desc)));
}

static void misuse__of_instructions(void **state) {
    (void)state;
    FAULT(INVALID_PARAMS, "instruction: there is no instruction without a name",
          tell(f, NULL, none, none, none, none, none));
    FAULT(INVALID_PARAMS, "instruction: there is no instruction TFOO",
          tell(f, "TFOO", T, f->x, none, none, none));
    FAULT(INVALID_PARAMS, "instruction: there is no instruction tadd",
          tell(f, "tadd", T, f->x, f->y, none, none));
    FAULT(INVALID_PARAMS, "instruction: there is no instruction SET_FLAG",
          tell(f, "SET_FLAG", none, none, none, none, none));
    FAULT(INVALID_PARAMS, "instruction: there is no instruction PIPE_BARRIER",
          tell(f, "PIPE_BARRIER", none, none, none, none, none));
    FAULT(INVALID_PARAMS, "TADD: operand 1 is no value",
          tell(f, "TADD", none, f->x, f->y, none, none));
    FAULT(INVALID_PARAMS, "TADD: operand 2 is no value",
          tell(f, "TADD", T, f->x, none, none, none));
    FAULT(INVALID_PARAMS, "TEXP: it has 1 sources", tell(f, "TEXP", T, f->x, f->y, none, none));
    FAULT(INVALID_PARAMS, "TADD: its destination was not made by ptowsp_tile_alloc",
          tell(f, "TADD", f->x, f->x, f->y, none, none));
    FAULT(INVALID_PARAMS, "TADD: its destination was not made by ptowsp_tile_alloc",
          tell(f, "TADD", ptowsp_tile_exp(f->x), f->x, f->y, none, none));
    FAULT(INVALID_PARAMS, "TADD: o is an out parameter and cannot be read",
          tell(f, "TADD", T, f->x, f->o, none, none));
    FAULT(INVALID_PARAMS, "TADD: operand 2 is not a tile",
          tell(f, "TADD", T, f->x, f->s, none, none));
    FAULT(INVALID_PARAMS, "TADD: it has no scratch tile", tell(f, "TADD", T, f->x, f->y, T, none));
    FAULT(INVALID_PARAMS, "TADD: it has no scalar", tell(f, "TADD", T, f->x, f->y, none, f->s));
    FAULT(INVALID_PARAMS, "TADDS: its scalar is a tile",
          tell(f, "TADDS", T, f->x, none, none, f->y));
    FAULT(INVALID_PARAMS, "TADDS: operand 2 is no value",
          tell(f, "TADDS", T, f->x, none, none, none));
    FAULT(INVALID_PARAMS, "TLOAD: its source is no tile parameter",
          tell(f, "TLOAD", T, T, none, none, none));
    FAULT(INVALID_PARAMS, "TSTORE: its destination is no tile parameter",
          tell(f, "TSTORE", T, T, none, none, none));
    FAULT(INVALID_PARAMS, "TSTORE: x is an in parameter",
          tell(f, "TSTORE", f->x, T, none, none, none));
    FAULT(INVALID_PARAMS, "TLOAD: o is an out parameter and cannot be read",
          tell(f, "TLOAD", T, f->o, none, none, none));
}

// An instruction whose operands the device does not take: found when the kernel ends. All its
// sources have been written before.
static void expect_refused(ptowsp_status status, const char *text, const char *name,
                           ptowsp_alloc_desc dst, ptowsp_alloc_desc src, bool has_tmp) {
    fixture fault, *f = &fault;
    begin(f);
    ptowsp_value d = alloc_as(f, dst), s = alloc_as(f, src), tmp = alloc(f, PTOWSP_F32, 8, 16);
    if (src.memory == PTOWSP_MEMORY_UB) {
        tell(f, "TEXPANDS", s, none, none, none, ptowsp_tile_const(f->k, 1));
    } else {
        tell(f, "TLOAD", s, f->x, none, none, none);
    }
    tell(f, name, d, s, none, has_tmp ? tmp : none, none);
    char all[320];
    snprintf(all, sizeof all, "module: kernel k: %s", text);
    assert_int_equal(good_end(f).id, 0);
    expect_module(f, status, all);
}

static void misuse__of_instructions_operands(void **state) {
    (void)state;
    const ptowsp_alloc_desc tile = {PTOWSP_MEMORY_UB, PTOWSP_F32, PTOWSP_LAYOUT_ROW_MAJOR, 8, 16,
                                    {NULL, 0}};
    ptowsp_alloc_desc d = tile, s = tile;
    d.cols = 12;  // rows of 48 bytes
    expect_refused(PTOWSP_INVALID_PARAMS,
                   "instruction: verify: tile 2 (8 x 12 f32 in UB) of instruction 4 (TEXP) has "
                   "rows that are no "
                   "multiple of 32",
                   "TEXP", d, tile, false);
    d = tile;
    d.dtype = PTOWSP_F16;
    expect_refused(PTOWSP_UNSUPPORTED, "instruction: TEXP: src0 is f32, which it does not take",
                   "TEXP", d, tile, false);
    d = tile;
    d.rows = 9;
    expect_refused(PTOWSP_UNSUPPORTED,
                   "instruction: TEXP: src0 has 8 x 16 valid elements, and 9 x 16 are read", "TEXP",
                   d, tile, false);
    s.layout = PTOWSP_LAYOUT_COL_MAJOR;
    expect_refused(PTOWSP_UNSUPPORTED, "instruction: TEXP: src0 is not row-major", "TEXP", tile, s,
                   false);
    d = tile;
    d.memory = PTOWSP_MEMORY_L0C;
    d.layout = PTOWSP_LAYOUT_NZ;
    d.rows = 16;
    expect_refused(PTOWSP_UNSUPPORTED, "instruction: TEXP: dst is in L0C, not in UB", "TEXP", d,
                   tile, false);
    d = tile;
    d.cols = 1;
    d.layout = PTOWSP_LAYOUT_COL_MAJOR;
    expect_refused(PTOWSP_UNSUPPORTED, "instruction: TROWSUM: there is no scratch tile", "TROWSUM",
                   d, tile, false);
    d = tile;
    d.rows = 16;
    d.cols = 8;
    expect_refused(PTOWSP_UNSUPPORTED, "instruction: TTRANS: t is missing", "TTRANS", d, tile,
                   false);
}

// What is read must have been written.
static void misuse__reading_what_was_not_written(void **state) {
    (void)state;
    fixture fault, *f = &fault;
    begin(f);
    ptowsp_value d = T, s = T;
    tell(f, "TEXP", d, s, none, none, none);
    assert_int_equal(good_end(f).id, 0);
    expect_module(
        f, PTOWSP_INVALID_PARAMS,
        "module: kernel k: instruction: verify: tile 3 (8 x 16 f32 in UB) of instruction 2 "
        "(TEXP) is read before it is written");
}

// -- tasks ----------------------------------------------------------------------------------------

enum { SIDE = 16 };

typedef struct task_fixture {
    fixture f;
    ptowsp_program *program;
    ptowsp_run *run;
    float data[4][SIDE * SIDE];
} task_fixture;

// A task of two in and an out parameter, called a, b and c as their tensors are.
static void begin_task(task_fixture *t, int64_t rows, int64_t cols) {
    begin(&t->f);
    assert_int_not_equal(good_end(&t->f).id, 0);
    ptowsp_body_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "task";
    t->f.k = ptowsp_kernel_begin(t->f.m, &desc);
    t->f.x = ptowsp_tile_in(t->f.k, "a", PTOWSP_F32, SIDE, SIDE);
    t->f.y = ptowsp_tile_in(t->f.k, "b", PTOWSP_F32, rows, cols);
    t->f.o = ptowsp_tile_out(t->f.k, "c", PTOWSP_F32, SIDE, SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) {
        t->data[0][i] = t->data[1][i] = 1;
        t->data[2][i] = 7;
    }
}

// Ends the kernel, and binds tensors of these sizes, in which the tiles are cut off.
static void bind_task(task_fixture *t, const int64_t sizes[3][2]) {
    static const char *const names[] = {"a", "b", "c"};
    ptowsp_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kernel = ptowsp_kernel_end(t->f.k);
    assert_string_equal(ptowsp_module_error(t->f.m).text, "");
    for (int i = 0; i < 3; i++) {
        ptowsp_tensor_desc tensor;
        memset(&tensor, 0, sizeof tensor);
        tensor.name = names[i];
        tensor.dtype = PTOWSP_F32;
        tensor.rank = 2;
        tensor.shape[0] = tensor.shape[1] = PTOWSP_DYNAMIC;
        desc.views[i].tensor = ptowsp_tensor_make(t->f.m, &tensor);
    }
    PTOWSP_WORKLOAD(t->f.m, "w") {
        ptowsp_task_make(t->f.m, &desc);
    }
    assert_int_equal(ptowsp_program_create(t->f.context, t->f.m, NULL, &t->program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(t->f.context, t->program, &t->run), PTOWSP_OK);
    for (int i = 0; i < 3; i++) {
        ptowsp_buffer buffer;
        memset(&buffer, 0, sizeof buffer);
        buffer.data = t->data[i];
        buffer.rank = 2;
        buffer.shape[0] = sizes[i][0];
        buffer.shape[1] = sizes[i][1];
        assert_int_equal(ptowsp_run_bind_tensor(t->run, names[i], &buffer), PTOWSP_OK);
    }
}

static void end_task(task_fixture *t) {
    ptowsp_run_destroy(t->run);
    ptowsp_program_destroy(t->program);
    finish(&t->f);
}

// The task is refused with this text, in both modes, and nothing has been written.
static void expect_task(task_fixture *t, const int64_t sizes[3][2], const char *text) {
    bind_task(t, sizes);
    for (int mode = 0; mode < 2; mode++) {
        ptowsp_run_options options;
        memset(&options, 0, sizeof options);
        options.mode = mode ? PTOWSP_RUN_EXECUTE : PTOWSP_RUN_TIME_ONLY;
        ptowsp_status status = ptowsp_run_execute(t->run, &options);
        assert_string_equal(ptowsp_context_error(t->f.context).text, text);
        assert_int_equal(status, PTOWSP_INVALID_PARAMS);
        for (int i = 0; i < SIDE * SIDE; i++) {
            assert_true(t->data[2][i] == 7);
        }
    }
    end_task(t);
}
static void misuse__tasks_whose_sizes_do_not_go_together(void **state) {
    (void)state;
    task_fixture task, *t = &task;
    const int64_t rows_differ[3][2] = {{10, 16}, {11, 16}, {10, 16}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_add(t->f.x, t->f.y));
    expect_task(t, rows_differ, "w/task task: task 0: add: 10 and 11 valid rows");
    const int64_t cols_differ[3][2] = {{16, 3}, {16, 16}, {16, 3}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(
        t->f.o, ptowsp_tile_select(ptowsp_tile_compare(t->f.x, PTOWSP_LT, t->f.y), t->f.x, t->f.y));
    expect_task(t, cols_differ, "w/task task: task 0: compare: 3 and 16 valid columns");
    const int64_t out_differs[3][2] = {{16, 3}, {16, 3}, {16, 4}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_exp(t->f.x));
    expect_task(t, out_differs, "w/task task: task 0: store: 4 and 3 valid columns");
    const int64_t vector_differs[3][2] = {{16, 3}, {5, 1}, {16, 3}};
    begin_task(t, SIDE, 1);
    ptowsp_tile_store(t->f.o, ptowsp_tile_div(t->f.x, t->f.y));
    expect_task(t, vector_differs, "w/task task: task 0: div: 16 and 5 valid rows");
    begin_task(t, SIDE, 1);
    ptowsp_tile_store(t->f.o, ptowsp_tile_row_broadcast(t->f.x, t->f.y));
    expect_task(t, vector_differs, "w/task task: task 0: row_broadcast: 16 and 5 valid rows");
    const int64_t depth_differs[3][2] = {{16, 7}, {8, 16}, {16, 16}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_matmul(t->f.x, t->f.y));
    expect_task(t, depth_differs, "w/task task: task 0: matmul: 7 and 8 valid rows");
    // What is always full goes with nothing less.
    const int64_t full_differs[3][2] = {{16, 7}, {16, 15}, {16, 16}};
    begin_task(t, SIDE, SIDE);
    ptowsp_value full = ptowsp_tile_full(t->f.k, PTOWSP_F32, SIDE, SIDE, 1);
    ptowsp_value column = ptowsp_tile_transpose(ptowsp_tile_colsum(t->f.y));
    ptowsp_tile_store(t->f.o, ptowsp_tile_mul(full, column));
    expect_task(t, full_differs, "w/task task: task 0: mul: 16 and 15 valid rows");
}

static void misuse__merging_a_tail(void **state) {
    (void)state;
    task_fixture task, *t = &task;
    begin_task(t, 1, 128);
    ptowsp_value pairs = ptowsp_tile_sort32(t->f.y, ptowsp_tile_iota(t->f.k, PTOWSP_U32, 128, 0));
    ptowsp_value best = ptowsp_tile_topk_values(ptowsp_tile_merge_sort(pairs, 32), SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_col_broadcast(t->f.x, best));
    const int64_t tail[3][2] = {{16, 16}, {1, 127}, {16, 16}};
    expect_task(t, tail, "w/task task: task 0: merge_sort: 256 and 254 valid columns");
}

static void misuse__the_best_of_too_few(void **state) {
    (void)state;
    task_fixture task, *t = &task;
    begin_task(t, 1, 32);
    ptowsp_value pairs = ptowsp_tile_sort32(t->f.y, ptowsp_tile_iota(t->f.k, PTOWSP_U32, 32, 0));
    ptowsp_value best = ptowsp_tile_topk_values(pairs, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_col_broadcast(t->f.x, best));
    const int64_t few[3][2] = {{16, 16}, {1, 15}, {16, 16}};
    expect_task(t, few, "w/task task: task 0: topk_values: 32 and 30 valid columns");
}

// Nothing of a run is touched when a later task is refused.
static void misuse__a_later_task_is_refused_before_the_first_runs(void **state) {
    (void)state;
    task_fixture task, *t = &task;
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_add(t->f.x, t->f.y));
    ptowsp_kernel kernel = ptowsp_kernel_end(t->f.k);
    static const char *const names[] = {"a", "b", "c"};
    ptowsp_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kernel = kernel;
    ptowsp_axis steps = ptowsp_axis_dense(t->f.m, "steps", 2);
    for (int i = 0; i < 3; i++) {
        ptowsp_tensor_desc tensor;
        memset(&tensor, 0, sizeof tensor);
        tensor.name = names[i];
        tensor.dtype = PTOWSP_F32;
        tensor.rank = 2;
        tensor.shape[0] = i == 1 ? SIDE + 2 : SIDE + 1;
        tensor.shape[1] = SIDE;
        desc.views[i].tensor = ptowsp_tensor_make(t->f.m, &tensor);
    }
    PTOWSP_WORKLOAD(t->f.m, "w") {
        PTOWSP_FOR_EACH(t->f.m, i, steps) {
            for (int j = 0; j < 3; j++) {
                desc.views[j].row = ptowsp_mul(i, ptowsp_i64(t->f.m, SIDE));
            }
            ptowsp_task_make(t->f.m, &desc);
        }
    }
    assert_int_equal(ptowsp_program_create(t->f.context, t->f.m, NULL, &t->program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(t->f.context, t->program, &t->run), PTOWSP_OK);
    float data[3][(SIDE + 2) * SIDE];
    for (int i = 0; i < 3; i++) {
        ptowsp_buffer buffer;
        memset(&buffer, 0, sizeof buffer);
        memset(data[i], 0, sizeof data[i]);
        data[2][5] = 7;
        buffer.data = data[i];
        assert_int_equal(ptowsp_run_bind_tensor(t->run, names[i], &buffer), PTOWSP_OK);
    }
    data[2][5] = 7;
    assert_int_equal(ptowsp_run_execute(t->run, NULL), PTOWSP_INVALID_PARAMS);
    ptowsp_error error = ptowsp_context_error(t->f.context);
    assert_string_equal(error.text,
                        "w/for_each i/task task (i = 1): task 1: add: 1 and 2 valid rows");
    assert_int_equal(error.index, 1);
    assert_true(data[2][5] == 7);
    end_task(t);
}

// -- questions ------------------------------------------------------------------------------------

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 1;
}

static void count_text(void *user, const char *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
}

static ptowsp_cycles two_cycles(const ptowsp_insn *insn, void *user) {
    (void)insn;
    ++*(uint32_t *)user;
    return 2;
}

static void misuse__questions_about_what_is_no_tile_kernel(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    ptowsp_kernel good = good_end(&f), no_kernel = {0}, beyond = {77};
    ptowsp_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "function";
    desc.fn = one_cycle;
    ptowsp_kernel function = ptowsp_kernel_make(f.m, &desc);
    const ptowsp_kernel kernels[] = {no_kernel, beyond, function};
    ptowsp_kernel_stats stats;
    size_t length = 0;
    ptowsp_text text = {count_text, &length};
    for (int i = 0; i < 3; i++) {
        ptowsp_cycles cycles = 99;
        assert_int_equal(ptowsp_kernel_measure(f.m, kernels[i], NULL, &stats),
                         PTOWSP_INVALID_PARAMS);
        assert_int_equal(ptowsp_kernel_insn_count(f.m, kernels[i]), 0);
        assert_string_equal(ptowsp_kernel_insn_at(f.m, kernels[i], 0, &cycles).name, "none");
        assert_int_equal(cycles, 0);
        ptowsp_kernel_insn_at(f.m, kernels[i], 0, NULL);
        ptowsp_kernel_print(f.m, kernels[i], text);
    }
    assert_int_equal(length, 0);
    assert_int_equal(ptowsp_kernel_measure(f.m, good, NULL, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_kernel_measure(NULL, good, NULL, &stats), PTOWSP_INVALID_PARAMS);
    ptowsp_cost cost = {PTOWSP_MODEL_USER, NULL, NULL};
    assert_int_equal(ptowsp_kernel_measure(f.m, good, &cost, &stats), PTOWSP_INVALID_PARAMS);
    cost.model = (ptowsp_model)4;
    assert_int_equal(ptowsp_kernel_measure(f.m, good, &cost, &stats), PTOWSP_INVALID_PARAMS);
    uint32_t calls = 0;
    ptowsp_cost user = {PTOWSP_MODEL_USER, two_cycles, &calls};
    assert_int_equal(ptowsp_kernel_measure(f.m, good, &user, &stats), PTOWSP_OK);
    assert_int_equal(calls, ptowsp_kernel_insn_count(f.m, good));  // flags as well
    uint32_t count = ptowsp_kernel_insn_count(f.m, good);
    assert_int_equal(count, stats.insn_count);
    ptowsp_cycles cycles = 99;
    assert_string_equal(ptowsp_kernel_insn_at(f.m, good, count, &cycles).name, "none");
    assert_int_equal(cycles, 0);
    ptowsp_kernel_print(f.m, good, text);
    assert_true(length > 0);
    assert_string_equal(ptowsp_module_error(f.m).text, "");
    finish(&f);
}

static void misuse__a_run_with_a_bad_cost_model(void **state) {
    (void)state;
    task_fixture task, *t = &task;
    const int64_t sizes[3][2] = {{16, 16}, {16, 16}, {16, 16}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_add(t->f.x, t->f.y));
    bind_task(t, sizes);
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.cost.model = PTOWSP_MODEL_USER;
    assert_int_equal(ptowsp_run_execute(t->run, &options), PTOWSP_INVALID_PARAMS);
    assert_true(t->data[2][0] == 7);
    assert_string_equal(ptowsp_context_error(t->f.context).text,
                        "run: there is no cost model 3, or it lacks its function");
    options.cost.model = (ptowsp_model)9;
    assert_int_equal(ptowsp_run_execute(t->run, &options), PTOWSP_INVALID_PARAMS);
    options.cost.model = PTOWSP_MODEL_A5;
    assert_int_equal(ptowsp_run_execute(t->run, &options), PTOWSP_OK);
    assert_true(t->data[2][0] == 2);
    end_task(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse__of_descriptions),
        cmocka_unit_test(misuse__two_kernels_of_one_name),
        cmocka_unit_test(misuse__a_kernel_that_never_ends),
        cmocka_unit_test(misuse__a_kernel_without_tiles),
        cmocka_unit_test(misuse__too_many_operations),
        cmocka_unit_test(misuse__tiles_that_do_not_fit),
        cmocka_unit_test(misuse__of_alloc),
        cmocka_unit_test(misuse__of_instructions),
        cmocka_unit_test(misuse__of_instructions_operands),
        cmocka_unit_test(misuse__reading_what_was_not_written),
        cmocka_unit_test(misuse__tasks_whose_sizes_do_not_go_together),
        cmocka_unit_test(misuse__merging_a_tail),
        cmocka_unit_test(misuse__the_best_of_too_few),
        cmocka_unit_test(misuse__a_later_task_is_refused_before_the_first_runs),
        cmocka_unit_test(misuse__questions_about_what_is_no_tile_kernel),
        cmocka_unit_test(misuse__a_run_with_a_bad_cost_model),
    };
    return cmocka_run_group_tests_name("kernel_misuse", tests, NULL, NULL);
}
