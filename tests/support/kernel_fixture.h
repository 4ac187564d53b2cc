// Tile kernels that compute their own answer while they are built.
//
// A kt is a kernel under construction and a plain interpreter beside it: kt_add(t, x, y) builds
// ptowsp_tile_add and at once adds the numbers, in double, over the valid region. So a test reads
// like a kernel, and what it should give is known when it ends:
//
//      kt t = kt_begin(config);
//      kt_value x = kt_in(&t, PTOWSP_F32, 33, 100);
//      kt_keep(&t, kt_sub(&t, x, kt_rowmax(&t, x)));     an out parameter, stored to
//      kt_end(&t);                                       lowers, compiles, runs, compares
//
// Every number goes with a bound of its error, from theory: a rounding to a type of p bits is
// within 2^-p of the magnitude (half the smallest subnormal at least); sums and products of n terms
// within n roundings of the sum of magnitudes (Higham 2002, 3.1); errors of operands go through
// functions by their slope. Operations that are rounded correctly, on operands that are exact, have
// a bound of 0: they are compared bit by bit. So are sums of integers below 2^24.
//
// Tensors are larger than what the task may touch: everything around the valid region and between
// strides has to stay as it was. In a partial run each size n of a tile has a valid size in
// [1, n], the same for all tiles; tensors are cut off there.

#ifndef PTOWSP_KERNEL_FIXTURE_H
#define PTOWSP_KERNEL_FIXTURE_H

#include "kernel_numbers.h"

typedef enum kt_strides { KT_TIGHT = 0, KT_PITCH, KT_TRANSPOSED, KT_BACKWARDS } kt_strides;

typedef struct kt_config {
    uint64_t seed;
    kt_strides strides;
    bool is_partial;  // tensors end inside the tiles
    bool is_fused;
    bool is_integer;  // tensors hold integers in [low, high], else any numbers
    double low, high;
    const ptowsp_machine *machine;
} kt_config;

typedef struct kt_value {
    ptowsp_value v;
    ptowsp_dtype dtype;
    int64_t rows, cols;              // 0 and 0: a scalar, in x[0]
    int64_t valid_rows, valid_cols;  // in this task
    bool is_row_tail, is_col_tail;   // may a task have fewer rows, columns than the tile?
    bool is_mask;
    double *x, *error;  // rows x cols; an error of INFINITY: anything goes
} kt_value;

typedef struct kt_param {
    char name[8];
    ptowsp_dtype dtype;
    int64_t rows, cols, valid_rows, valid_cols;
    int64_t row, col;  // where the tile is in its tensor
    int64_t tensor_rows, tensor_cols, row_stride, col_stride, origin;
    size_t count;  // elements of the block
    uint8_t *block, *before;
    kt_value value;  // what was there
    kt_value stored;
    bool is_stored, is_added;
} kt_param;

#define KT_SIZE_MAX  64
#define KT_BLOCK_MAX 65536

typedef struct kt {
    kt_config config;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_body *k;
    ptowsp_kernel kernel;
    ptowsp_program *program;  // of one task, once it was compiled
    uint64_t state;
    int64_t sizes[KT_SIZE_MAX], valid[KT_SIZE_MAX];
    uint32_t size_count;
    kt_param params[PTOWSP_TASK_TILE_MAX];
    uint32_t param_count;
    uint64_t scalars[PTOWSP_TASK_SCALAR_MAX];
    ptowsp_dtype scalar_dtypes[PTOWSP_TASK_SCALAR_MAX];
    uint32_t scalar_count;
    void **blocks;
    uint32_t block_count;
    const char *refusal;   // what its machine's rules say of it: the end of the error's text
    ptowsp_cycles cycles;  // of the run
    uint64_t compared;     // elements
    uint32_t loops;        // of random kernels
} kt;

// Sets an element to x, known within `error`, rounded once to the value's type.
static inline void kt_set(kt_value *value, int64_t i, double x, double error) {
    double rounded = kt_round(value->dtype, x);
    if (error == 0 || !kt_is_float(value->dtype)) {
        value->x[i] = rounded;
        value->error[i] = error;
        return;
    }
    double unit = kt_unit(value->dtype) * (fabs(x) + error);
    double tiny = kt_tiny(value->dtype) / 2;
    value->x[i] = x;
    value->error[i] = error + (unit > tiny ? unit : tiny);
    // Beyond the type's numbers a bound says nothing.
    if (!isfinite(rounded) || !isfinite(kt_round(value->dtype, x + (x < 0 ? -error : error)))) {
        value->error[i] = INFINITY;
    }
}

// -- life -----------------------------------------------------------------------------------------

static inline void *kt_alloc(kt *t, size_t size) {
    assert_true(t->block_count < KT_BLOCK_MAX);
    void *block = calloc(1, size ? size : 1);
    assert_non_null(block);
    return t->blocks[t->block_count++] = block;
}

static inline kt kt_begin(kt_config config) {
    kt t = {.config = config,
            .state = config.seed,
            .blocks = (void **)calloc(KT_BLOCK_MAX, sizeof(void *))};
    assert_ok(ptowsp_context_create(NULL, &t.context));
    assert_ok(ptowsp_module_create(t.context, NULL, &t.m));
    ptowsp_body_desc desc = {.name = "k", .is_fused = config.is_fused, .machine = config.machine};
    t.k = ptowsp_kernel_begin(t.m, &desc);
    assert_non_null(t.k);
    return t;
}

static inline void kt_free(kt *t) {
    for (uint32_t i = 0; i < t->block_count; i++) {
        free(t->blocks[i]);
    }
    free(t->blocks);
    ptowsp_program_destroy(t->program);
    ptowsp_module_destroy(t->m);
    ptowsp_context_destroy(t->context);
}

// The valid size of all tiles' axes of a size, in this task.
static inline int64_t kt_valid_of(kt *t, int64_t size) {
    for (uint32_t i = 0; i < t->size_count; i++) {
        if (t->sizes[i] == size) {
            return t->valid[i];
        }
    }
    assert_true(t->size_count < KT_SIZE_MAX);
    t->sizes[t->size_count] = size;
    t->valid[t->size_count] = t->config.is_partial ? test_random_in(&t->state, 1, size) : size;
    return t->valid[t->size_count++];
}

static inline int64_t kt_pick_size(kt *t) {
    static const int64_t sizes[] = {1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 100};
    return sizes[test_random(&t->state) % (sizeof sizes / sizeof sizes[0])];
}

static inline kt_value kt_value_make(kt *t, ptowsp_value v, ptowsp_dtype dtype, int64_t rows,
                                     int64_t cols) {
    kt_value value = {.v = v, .dtype = dtype};
    value.rows = value.valid_rows = rows;
    value.cols = value.valid_cols = cols;
    size_t count = rows ? (size_t)(rows * cols) : 1;
    value.x = (double *)kt_alloc(t, count * sizeof(double));
    value.error = (double *)kt_alloc(t, count * sizeof(double));
    return value;
}

// A value that a task may have less of.
static inline kt_value kt_value_part(kt *t, ptowsp_value v, ptowsp_dtype dtype, int64_t rows,
                                     int64_t cols, int64_t valid_rows, int64_t valid_cols,
                                     bool is_row_tail, bool is_col_tail) {
    kt_value value = kt_value_make(t, v, dtype, rows, cols);
    value.valid_rows = valid_rows;
    value.valid_cols = valid_cols;
    value.is_row_tail = is_row_tail;
    value.is_col_tail = is_col_tail;
    return value;
}

// A value of another one's shape.
static inline kt_value kt_value_like(kt *t, ptowsp_value v, ptowsp_dtype dtype, const kt_value *x) {
    return kt_value_part(t, v, dtype, x->rows, x->cols, x->valid_rows, x->valid_cols,
                         x->is_row_tail, x->is_col_tail);
}

// An element as another one is.
static inline void kt_copy(kt_value *d, int64_t i, const kt_value *x, int64_t j) {
    d->x[i] = x->x[j];
    d->error[i] = x->error[j];
}

#define KT_EACH(value, r, c)                                                                       \
    for (int64_t r = 0; r < (value).valid_rows; r++)                                               \
        for (int64_t c = 0; c < (value).valid_cols; c++)
#define KT_AT(value, r, c) ((r) * (value).cols + (c))

// -- parameters -----------------------------------------------------------------------------------

static inline double kt_random(kt *t, ptowsp_dtype dtype) {
    double low = t->config.low, high = t->config.high;
    if (low == high) {
        low = -8, high = 8;
    }
    if (dtype == PTOWSP_U8 || dtype == PTOWSP_U16 || dtype == PTOWSP_U32) {
        low = low < 0 ? 0 : low;
    }
    if (t->config.is_integer || !kt_is_float(dtype)) {
        uint64_t count = (uint64_t)((int64_t)high - (int64_t)low) + 1;
        return (double)((int64_t)low + (int64_t)(test_splitmix(&t->state) % count));
    }
    double part = (double)(test_splitmix(&t->state) >> 11) * 0x1p-53;
    return kt_round(dtype, low + (high - low) * part);
}

static inline size_t kt_element(const kt_param *p, int64_t r, int64_t c) {
    return (size_t)(p->origin + (p->row + r) * p->row_stride + (p->col + c) * p->col_stride);
}

// A tile parameter: its tensor is laid out, and filled with anything.
static inline kt_param *kt_param_make(kt *t, ptowsp_direction direction, ptowsp_dtype dtype,
                                      int64_t rows, int64_t cols, int64_t valid_rows,
                                      int64_t valid_cols) {
    kt_param *p = &t->params[t->param_count];
    snprintf(p->name, sizeof p->name, "p%u", t->param_count++);
    p->dtype = dtype;
    p->rows = rows;
    p->cols = cols;
    p->valid_rows = valid_rows;
    p->valid_cols = valid_cols;
    p->row = test_random_in(&t->state, 0, 2);
    p->col = test_random_in(&t->state, 0, 2);
    // What the task may not touch can follow only where the tile is full.
    p->tensor_rows = p->row + valid_rows + (valid_rows == rows ? 2 : 0);
    p->tensor_cols = p->col + valid_cols + (valid_cols == cols ? 2 : 0);
    int64_t pitch = t->config.strides == KT_TIGHT ? 0 : 3;
    if (t->config.strides == KT_TRANSPOSED) {
        p->row_stride = 1 + (int64_t)(test_random(&t->state) % 2);
        p->col_stride = p->tensor_rows * p->row_stride + pitch;
    } else {
        p->col_stride = 1;
        p->row_stride = p->tensor_cols + pitch;
    }
    p->count = (size_t)((p->tensor_rows - 1) * p->row_stride +
                        (p->tensor_cols - 1) * p->col_stride + 1 + 16);
    p->origin = 8;
    if (t->config.strides == KT_BACKWARDS) {
        p->origin += (p->tensor_rows - 1) * p->row_stride;
        p->row_stride = -p->row_stride;
    }
    uint32_t size = ptowsp_dtype_size(dtype);
    p->block = (uint8_t *)kt_alloc(t, p->count * size);
    p->before = (uint8_t *)kt_alloc(t, p->count * size);
    for (size_t i = 0; i < p->count; i++) {
        kt_put(dtype, p->block + i * size, kt_random(t, dtype));
    }
    ptowsp_value v = direction == PTOWSP_IN ? ptowsp_tile_in(t->k, p->name, dtype, rows, cols)
                     : direction == PTOWSP_OUT
                         ? ptowsp_tile_out(t->k, p->name, dtype, rows, cols)
                         : ptowsp_tile_inout(t->k, p->name, dtype, rows, cols);
    p->value = kt_value_part(t, v, dtype, rows, cols, valid_rows, valid_cols, true, true);
    KT_EACH(p->value, r, c) {
        p->value.x[KT_AT(p->value, r, c)] = kt_get(dtype, p->block + kt_element(p, r, c) * size);
    }
    return p;
}

static inline kt_param *kt_param_of(kt *t, kt_value value) {
    for (uint32_t i = 0; i < t->param_count; i++) {
        if (t->params[i].value.v.id == value.v.id) {
            return &t->params[i];
        }
    }
    fail_msg("%s", "no parameter");
    return NULL;
}

static inline kt_value kt_in(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    return kt_param_make(t, PTOWSP_IN, dtype, rows, cols, kt_valid_of(t, rows),
                         kt_valid_of(t, cols))
        ->value;
}

static inline kt_value kt_inout(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    return kt_param_make(t, PTOWSP_INOUT, dtype, rows, cols, kt_valid_of(t, rows),
                         kt_valid_of(t, cols))
        ->value;
}

// Puts a number into an in parameter, and into its value.
static inline void kt_fill(kt *t, kt_value value, int64_t r, int64_t c, double x) {
    kt_param *p = kt_param_of(t, value);
    assert_true(r < p->valid_rows && c < p->valid_cols);
    kt_put(p->dtype, p->block + kt_element(p, r, c) * ptowsp_dtype_size(p->dtype), x);
    value.x[KT_AT(value, r, c)] = kt_round(p->dtype, x);
}

// Stores to a parameter that was made for it.
static inline void kt_store_to(kt *t, kt_param *p, kt_value value, bool is_added) {
    if (is_added) {
        ptowsp_tile_store_add(p->value.v, value.v);
    } else {
        ptowsp_tile_store(p->value.v, value.v);
    }
    (void)t;
    p->stored = value;
    p->is_stored = true;
    p->is_added = is_added;
}

// Stores a value as another type to a new out parameter of just its size.
static inline void kt_keep_as(kt *t, kt_value value, ptowsp_dtype dtype) {
    if (value.valid_rows > 0 && value.valid_cols > 0) {
        kt_store_to(t,
                    kt_param_make(t, PTOWSP_OUT, dtype, value.rows, value.cols, value.valid_rows,
                                  value.valid_cols),
                    value, false);
    }
}

static inline void kt_keep(kt *t, kt_value value) {
    kt_keep_as(t, value, value.dtype);
}

static inline kt_value kt_const(kt *t, double x) {
    kt_value value = kt_value_make(t, ptowsp_tile_const(t->k, x), PTOWSP_F64, 0, 0);
    value.x[0] = x;
    return value;
}

// A scalar parameter whose argument is x.
static inline kt_value kt_scalar(kt *t, ptowsp_dtype dtype, double x) {
    char name[8];
    snprintf(name, sizeof name, "s%u", t->scalar_count);
    kt_value value = kt_value_make(t, ptowsp_tile_scalar(t->k, name, dtype), dtype, 0, 0);
    float f32 = (float)x;
    uint32_t bits;
    memcpy(&bits, &f32, sizeof bits);
    uint64_t *cell = &t->scalars[t->scalar_count];
    t->scalar_dtypes[t->scalar_count++] = dtype;
    value.x[0] = x;
    switch (dtype) {
    case PTOWSP_F32: *cell = bits, value.x[0] = (double)f32; break;
    case PTOWSP_F64: memcpy(cell, &x, sizeof x); break;
    case PTOWSP_I64: *cell = (uint64_t)(int64_t)x; break;
    default: *cell = (uint64_t)x; break;
    }
    return value;
}

// -- running --------------------------------------------------------------------------------------

static inline bool kt_print(void *user, const void *text, size_t length) {
    (void)user;
    fwrite(text, 1, length, stderr);
    return true;
}

static inline void kt_complain(const kt *t) {
    ptowsp_output text = {kt_print, NULL};
    fprintf(stderr, "seed %llu strides %d partial %d fused %d\n",
            (unsigned long long)t->config.seed, t->config.strides, t->config.is_partial,
            t->config.is_fused);
    for (uint32_t i = 0; i < t->param_count; i++) {
        fprintf(stderr, "%s: %d x %d valid\n", t->params[i].name, (int)t->params[i].valid_rows,
                (int)t->params[i].valid_cols);
    }
    ptowsp_kernel_print(t->m, t->kernel, NULL, text);
}

// What a test does with a kernel when it has ended (kernel_text_test.c).
#ifndef KT_LOWERED
#define KT_LOWERED(t) ((void)(t))
#endif

// Ends the kernel, and checks what is said of it: the unit model is the sum of its instructions,
// pipes overlap but no further than the busiest.
static inline void kt_lower(kt *t) {
    t->kernel = ptowsp_kernel_end(t->k);
    ptowsp_error error = ptowsp_module_error(t->m);
    if (error.status != PTOWSP_OK) {
        kt_complain(t);
        fail_msg("%s", error.text);
    }
    KT_LOWERED(t);
    ptowsp_kernel_stats stats;
    assert_ok(ptowsp_kernel_measure(t->m, t->kernel, NULL, &stats));
    uint64_t sum = 0, cycles;
    bool has_cube = false, has_vector = false, has_loop = false;
    for (uint32_t i = 0; i < ptowsp_kernel_insn_count(t->m, t->kernel); i++) {
        const ptowsp_insn insn = ptowsp_kernel_insn_at(t->m, t->kernel, i, &cycles);
        sum += cycles;
        has_loop = has_loop || strcmp(insn.name, "LOOP") == 0;
        has_cube = has_cube || insn.pipe == PTOWSP_PIPE_M;
        has_vector = has_vector || insn.memory == PTOWSP_MEMORY_UB;
    }
    if (sum != stats.cycles && !has_loop) {  // a loop's instructions are counted once here
        kt_complain(t);
        assert_int_equal(sum, stats.cycles);
    }
    const uint64_t cores = has_cube && has_vector ? 3 : 1;  // a cube core and two vector cores
    assert_int_equal(stats.insn_count, ptowsp_kernel_insn_count(t->m, t->kernel));
    for (int model = PTOWSP_MODEL_A2A3; model <= PTOWSP_MODEL_A5; model++) {
        ptowsp_cost cost = {.model = (ptowsp_model)model};
        uint64_t busiest = 0, all = 0;
        assert_ok(ptowsp_kernel_measure(t->m, t->kernel, &cost, &stats));
        for (int p = 0; p < PTOWSP_PIPE_COUNT; p++) {
            busiest = stats.busy_cycles[p] > busiest ? stats.busy_cycles[p] : busiest;
            all += stats.busy_cycles[p];
        }
        if (busiest > cores * stats.cycles || stats.cycles > all) {
            kt_complain(t);
        }
        assert_true(busiest <= cores * stats.cycles && stats.cycles <= all);
    }
}

static inline ptowsp_program *kt_compile(kt *t) {
    if (t->program) {
        return t->program;
    }
    ptowsp_task_desc desc = {.kernel = t->kernel};
    for (uint32_t i = 0; i < t->param_count; i++) {
        const kt_param *p = &t->params[i];
        ptowsp_tensor_desc tensor = {.name = p->name, .dtype = p->dtype, .rank = 2};
        tensor.shape[0] = tensor.shape[1] = PTOWSP_DYNAMIC;
        desc.views[i].tensor = ptowsp_tensor_make(t->m, &tensor);
        desc.views[i].row = ptowsp_i64(t->m, p->row);
        desc.views[i].col = ptowsp_i64(t->m, p->col);
    }
    for (uint32_t i = 0; i < t->scalar_count; i++) {
        desc.scalars[i] =
            t->scalar_dtypes[i] == PTOWSP_I64    ? ptowsp_i64(t->m, (int64_t)t->scalars[i])
            : t->scalar_dtypes[i] == PTOWSP_BOOL ? ptowsp_bool(t->m, t->scalars[i] != 0)
                                                 : ptowsp_u64(t->m, t->scalars[i]);
    }
    PTOWSP_WORKLOAD(t->m, "w") {
        ptowsp_task_make(t->m, &desc);
    }
    test_ok(t->context, ptowsp_program_create(t->context, t->m, NULL, &t->program));
    return t->program;
}

static inline ptowsp_buffer kt_buffer(const kt_param *p) {
    ptowsp_buffer buffer = {.data = p->block + (size_t)p->origin * ptowsp_dtype_size(p->dtype),
                            .rank = 2,
                            .shape[0] = p->tensor_rows,
                            .shape[1] = p->tensor_cols,
                            .strides[0] = p->row_stride,
                            .strides[1] = p->col_stride};
    return buffer;
}

static inline ptowsp_status kt_execute(kt *t) {
    ptowsp_program *program = kt_compile(t);
    ptowsp_run *run = test_run_of(t->context, program);
    for (uint32_t i = 0; i < t->param_count; i++) {
        kt_param *p = &t->params[i];
        ptowsp_buffer buffer = kt_buffer(p);
        memcpy(p->before, p->block, p->count * ptowsp_dtype_size(p->dtype));
        test_ok(t->context, ptowsp_run_bind_tensor(run, p->name, &buffer));
    }
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    ptowsp_status status = ptowsp_run_execute(run, &options);
    if (status == PTOWSP_OK) {
        uint64_t counted = ptowsp_run_result(run)->makespan_cycles;
        status = ptowsp_run_execute(run, NULL);
        t->cycles = ptowsp_run_result(run)->makespan_cycles;
        assert_int_equal(counted, t->cycles);  // counting is running without data
    }
    ptowsp_run_destroy(run);
    return status;
}

// Is what was stored what was computed?
static inline bool kt_is_near(double got, double want, double error) {
    if (error == INFINITY) {
        return true;
    }
    if (want != want || got != got) {
        return want != want && got != got;
    }
    return got == want || fabs(got - want) <= error;
}

static inline void kt_compare(kt *t, const kt_param *p) {
    uint32_t size = ptowsp_dtype_size(p->dtype);
    uint8_t *touched = (uint8_t *)kt_alloc(t, p->count);
    kt_value out = p->value;
    int64_t rows = p->stored.valid_rows < p->valid_rows ? p->stored.valid_rows : p->valid_rows;
    int64_t cols = p->stored.valid_cols < p->valid_cols ? p->stored.valid_cols : p->valid_cols;
    for (int64_t r = 0; p->is_stored && r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            size_t at = kt_element(p, r, c);
            double want = p->stored.x[KT_AT(p->stored, r, c)];
            double error = p->stored.error[KT_AT(p->stored, r, c)];
            out.x[0] = want, out.error[0] = error;
            if (p->is_added) {
                want += kt_get(p->dtype, p->before + at * size);
            }
            kt_set(&out, 0, want, error);
            touched[at] = 1;
            double got = kt_get(p->dtype, p->block + at * size);
            t->compared++;
            if (!kt_is_near(got, out.x[0], out.error[0])) {
                kt_complain(t);
                fail_msg("%s at (%d, %d) is %.17g, not %.17g within %g", p->name, (int)r, (int)c,
                         got, out.x[0], out.error[0]);
            }
        }
    }
    for (size_t i = 0; i < p->count; i++) {
        if (!touched[i] && memcmp(p->block + i * size, p->before + i * size, size) != 0) {
            kt_complain(t);
            fail_msg("%s: element %zu of its memory changed", p->name, i);
        }
    }
}

// Ends a kernel that its machine's rules refuse, and reads why.
static inline void kt_refused(kt *t) {
    t->kernel = ptowsp_kernel_end(t->k);
    ptowsp_error error = ptowsp_module_error(t->m);
    assert_int_equal(error.status, PTOWSP_UNSUPPORTED);
    if (!strstr(error.text, t->refusal) || strncmp(error.text, "module: kernel k: ", 18) != 0) {
        fail_msg("%s", error.text);
    }
}

// Whether the kernel is run, and whether someone else has it then, and frees it (npu_scenes.h).
#ifndef KT_KEEPS
#define KT_RUNS(t)  true
#define KT_KEEPS(t) false
#endif

// Lowers, compiles, runs, compares all that was kept, and frees. Returns the cycles of the run.
static inline ptowsp_cycles kt_end(kt *t) {
    if (t->refusal) {
        kt_refused(t);
        kt_free(t);
        return 0;
    }
    if (!KT_RUNS(t)) {
        kt_free(t);
        return 0;
    }
    kt_lower(t);
    if (kt_execute(t) != PTOWSP_OK) {
        kt_complain(t);
        fail_msg("%s", ptowsp_context_error(t->context).text);
    }
    for (uint32_t i = 0; i < t->param_count; i++) {
        kt_compare(t, &t->params[i]);
    }
    ptowsp_cycles cycles = t->cycles;
    if (!KT_KEEPS(t)) {
        kt_free(t);
    }
    return cycles;
}

// -- many runs ------------------------------------------------------------------------------------

typedef void (*kt_scene)(kt *t, int which);

// Runs a scene `count` times with each way to lay out tensors, full and partial, fused or not; by
// turns for both machines.
static inline void kt_play(kt_scene scene, int which, int count, kt_config config) {
    uint64_t seed = config.seed;
    const ptowsp_machine a5 = ptowsp_machine_950pr(), *machine = config.machine;
    for (int i = 0; i < count; i++) {
        config.machine = machine || i % 2 == 0 ? machine : &a5;
        for (int way = 0; way < 16; way++) {
            config.seed = test_random(&seed);
            config.strides = (kt_strides)(way % 4);
            config.is_partial = way / 4 % 2 != 0;
            config.is_fused = way / 8 != 0;
            kt t = kt_begin(config);
            scene(&t, which);
            kt_end(&t);
        }
    }
}

static inline kt_config kt_any(uint64_t seed) {
    kt_config config = {.seed = seed};
    return config;
}

// Scenes to play, each with the first `count` numbers; all of a table in their order.
typedef struct kt_row {
    const char *name;
    kt_scene scene;
    int count;
    bool is_integer;
    double low, high;  // of the numbers in tensors; 0 and 0: as they are
    int first, runs;   // the first number; of each, see kt_play
} kt_row;

static inline void kt_play_rows(const kt_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        kt_config config = kt_any(test_seed());
        config.is_integer = rows[i].is_integer;
        config.low = rows[i].low;
        config.high = rows[i].high;
        print_message("%s\n", rows[i].name);
        for (int which = 0; which < rows[i].count; which++) {
            config.seed++;
            kt_play(rows[i].scene, rows[i].first + which, rows[i].runs, config);
        }
    }
}

// A parameter of any shape.
static inline kt_value kt_of_shape(kt *t, ptowsp_dtype dtype) {
    int64_t rows = kt_pick_size(t), cols = kt_pick_size(t);
    return kt_in(t, dtype, rows, cols);
}

#endif
