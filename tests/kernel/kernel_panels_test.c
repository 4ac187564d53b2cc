// Products as they are written by hand: panels in L1, of which pieces of k are taken; loops over
// output tiles around the loop over k; a right factor that is stored [n][k]. Values are compared
// with sums of products in double; what is said of time is computed on paper.

#include "fixture.h"

enum { TILE_ROWS = 128, TILE_COLS = 256, PIECE = 64 };

typedef struct product {
    int64_t m, n, k;    // of the kernel's parameters
    int64_t panel;      // along k
    bool is_turned;     // b is stored [n][k]
    bool turns_pieces;  // pieces of such a b are transposed one by one, and not the panel
    bool has_pieces;    // pieces are slices of panels; else products cut panels themselves
    bool has_scalar_k;  // the loop over k ends at a scalar: it may not run
    const ptowsp_machine *machine;
} product;

static ptowsp_value right_of(const product *p, ptowsp_value b, ptowsp_value at, ptowsp_value j) {
    return p->is_turned ? ptowsp_tile_transpose(ptowsp_tile_slice_at(b, j, at, TILE_COLS, p->panel))
                        : ptowsp_tile_slice_at(b, at, j, p->panel, TILE_COLS);
}

// A piece of the right panel: [k][n] of it.
static ptowsp_value piece_of(const product *p, ptowsp_value panel, int64_t of) {
    return p->turns_pieces
               ? ptowsp_tile_transpose(ptowsp_tile_slice(panel, 0, of, TILE_COLS, PIECE))
               : ptowsp_tile_slice(panel, of, 0, PIECE, TILE_COLS);
}

static ptowsp_kernel kernel_make(ptowsp_module *m, const product *p) {
    ptowsp_body *k =
        ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "product", .machine = p->machine});
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, p->m, p->k);
    ptowsp_value b = p->is_turned ? ptowsp_tile_in(k, "b", PTOWSP_F16, p->n, p->k)
                                  : ptowsp_tile_in(k, "b", PTOWSP_F16, p->k, p->n);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, p->m, p->n);
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, TILE_ROWS, TILE_COLS, 0), sum = zero;
    ptowsp_value start = ptowsp_tile_const(k, 0), rows = ptowsp_tile_rows(a);
    ptowsp_value cols = p->is_turned ? ptowsp_tile_rows(b) : ptowsp_tile_cols(b);
    ptowsp_value depth =
        p->has_scalar_k ? ptowsp_tile_scalar(k, "depth", PTOWSP_I64) : ptowsp_tile_cols(a);
    PTOWSP_TILE_LOOP(k, i, start, rows, TILE_ROWS) {
        PTOWSP_TILE_LOOP(k, j, start, cols, TILE_COLS) {
            PTOWSP_TILE_LOOP(k, at, start, depth, p->panel) {
                ptowsp_value left = ptowsp_tile_slice_at(a, i, at, TILE_ROWS, p->panel);
                ptowsp_value right = p->turns_pieces
                                         ? ptowsp_tile_slice_at(b, j, at, TILE_COLS, p->panel)
                                         : right_of(p, b, at, j);
                sum = ptowsp_tile_carry(zero);
                ptowsp_value next = sum;
                for (int64_t of = 0; p->has_pieces && of < p->panel; of += PIECE) {
                    next = ptowsp_tile_matmul_acc(next,
                                                  ptowsp_tile_slice(left, 0, of, TILE_ROWS, PIECE),
                                                  piece_of(p, right, of));
                }
                ptowsp_tile_next(sum,
                                 p->has_pieces ? next : ptowsp_tile_matmul_acc(sum, left, right));
            }
            ptowsp_tile_store_at(c, i, j, sum);
        }
    }
    return ptowsp_kernel_end(k);
}

static ptowsp_tensor tensor_make(ptowsp_module *m, const char *name, ptowsp_dtype dtype) {
    return ptowsp_tensor_make(
        m, &(ptowsp_tensor_desc){
               .name = name, .dtype = dtype, .rank = 2, .shape = {PTOWSP_DYNAMIC, PTOWSP_DYNAMIC}});
}

static ptowsp_kernel product_make(fixture *f, const product *p, int64_t depth) {
    fixture_clear(f);
    assert_ok(ptowsp_module_create(f->context, NULL, &f->module));
    ptowsp_module *m = f->module;
    const ptowsp_kernel kernel = kernel_make(m, p);
    ptowsp_task_desc task = {.kernel = kernel, .views[0].tensor = tensor_make(m, "a", PTOWSP_F16)};
    task.views[1].tensor = tensor_make(m, "b", PTOWSP_F16);
    task.views[2].tensor = tensor_make(m, "c", PTOWSP_F32);
    PTOWSP_WORKLOAD(m, "w") {
        PTOWSP_PARALLEL(m, once, ptowsp_axis_dense(m, "once", 1)) {
            (void)once;
            if (p->has_scalar_k) {
                task.scalars[0] = ptowsp_i64(m, depth);
            }
            ptowsp_task_make(m, &task);
        }
    }
    program_make(f, NULL, NULL, NULL);
    return kernel;
}

static void bind(const fixture *f, const char *name, void *data, int64_t rows, int64_t cols) {
    ptowsp_buffer buffer = {.data = data, .rank = 2, .shape = {rows, cols}};
    assert_ok(ptowsp_run_bind_tensor(f->run, name, &buffer));
}

// Small integers, whose products and sums are exact.
static uint16_t *integers(int64_t count, uint64_t *random, double *values) {
    uint16_t *made = (uint16_t *)test_alloc((size_t)count, sizeof *made);
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)test_random_in(random, -4, 4);
        made[i] = ptowsp_f16_from_f32((float)values[i]);
    }
    return made;
}

// Runs a task of m x k by k x n; `depth` of k are summed. Returns its status.
static ptowsp_status run(fixture *f, const product *p, int64_t m, int64_t n, int64_t k,
                         int64_t depth, int64_t c_rows) {
    product_make(f, p, depth);
    uint64_t random = test_seed();
    double *a = (double *)test_alloc((size_t)(m * k), sizeof *a);
    double *b = (double *)test_alloc((size_t)(n * k), sizeof *b);
    float *c = (float *)test_alloc((size_t)(c_rows * n), sizeof *c);
    uint16_t *a_bits = integers(m * k, &random, a), *b_bits = integers(n * k, &random, b);
    bind(f, "a", a_bits, m, k);
    bind(f, "b", b_bits, p->is_turned ? n : k, p->is_turned ? k : n);
    bind(f, "c", c, c_rows, n);
    ptowsp_status status = ptowsp_run_execute(f->run, NULL);
    for (int64_t at = 0; status == PTOWSP_OK && at < m * n; at++) {
        int64_t row = at / n, col = at % n;
        double sum = 0;
        for (int64_t i = 0; i < depth; i++) {
            sum += a[row * k + i] * (p->is_turned ? b[col * k + i] : b[i * n + col]);
        }
        if ((double)c[at] != sum) {
            fail_msg("(%lld, %lld): %g, not %g", (long long)row, (long long)col, (double)c[at],
                     sum);
        }
    }
    test_release();
    return status;
}

TEST_F(panels__multiply_as_sums_in_double_do) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    for (int way = 0; way < 8; way++) {
        product p = {.m = 256,
                     .n = 512,
                     .k = 384,
                     .panel = way & 1 ? 256 : 128,
                     .is_turned = way & 1,
                     .has_pieces = way & 2,
                     .machine = way & 4 ? &a5 : NULL};
        assert_ok(run(f, &p, 256, 512, 384, 384, 256));
        assert_ok(run(f, &p, 200, 300, 330, 330, 200));  // ends inside pieces
        assert_ok(run(f, &p, 129, 257, 129, 129, 129));
        assert_ok(run(f, &p, 1, 1, 1, 1, 1));
    }
}

TEST_F(panels__pieces_may_be_transposed_one_by_one) {
    product p = {.m = 256, .n = 256, .k = 384, .panel = 128};
    p.is_turned = p.has_pieces = p.turns_pieces = true;
    assert_ok(run(f, &p, 200, 200, 330, 330, 200));
}

// A loop over k that may not run begins with zeros.
TEST_F(panels__sums_without_products_are_zero) {
    product p = {.m = 256, .n = 256, .k = 384, .panel = 128, .has_scalar_k = true};
    assert_ok(run(f, &p, 140, 200, 384, 0, 140));
    assert_ok(run(f, &p, 140, 200, 384, 256, 140));
}

// The sum begins as its first product, so a store must not want more than that has.
TEST_F(panels__stores_have_the_sizes_of_their_products) {
    product p = {.m = 256, .n = 256, .k = 128, .panel = 128};
    fixture_refused(f, run(f, &p, 100, 200, 128, 128, 90), PTOWSP_INVALID_PARAMS,
                    "store: 90 and 100 valid rows");
    assert_ok(run(f, &p, 100, 200, 128, 128, 110));  // the loop ends at 100
}

TEST_F(panels__stay_in_l1) {
    for (int way = 0; way < 4; way++) {
        product p = {.m = 256,
                     .n = 512,
                     .k = 1024,
                     .panel = 256,
                     .is_turned = way & 1,
                     .has_pieces = way & 2};
        const ptowsp_kernel kernel = product_make(f, &p, 0);
        ptowsp_kernel_stats stats;
        assert_ok(ptowsp_kernel_measure(f->module, kernel, NULL, &stats));
        // Two places for each panel, and for each piece; all f16.
        assert_int_equal(stats.memory_bytes[PTOWSP_MEMORY_L1],
                         2 * 256 * (TILE_ROWS + TILE_COLS) * 2);
        assert_int_equal(stats.memory_bytes[PTOWSP_MEMORY_L0A], 2 * PIECE * TILE_ROWS * 2);
        assert_int_equal(stats.memory_bytes[PTOWSP_MEMORY_L0B], 2 * PIECE * TILE_COLS * 2);
        assert_int_equal(stats.memory_bytes[PTOWSP_MEMORY_L0C], TILE_ROWS * TILE_COLS * 4);
        assert_int_equal(stats.memory_bytes[PTOWSP_MEMORY_UB], 0);
    }
}

// -- time -----------------------------------------------------------------------------------------

static ptowsp_cycles cycles_by(const ptowsp_insn *insn, void *user) {
    const ptowsp_cycles *cycles = (const ptowsp_cycles *)user;  // of each pipe
    bool is_flag = strstr(insn->name, "FLAG") || strstr(insn->name, "BARRIER");
    return is_flag ? 0 : cycles[insn->pipe];
}

// With m x n tiles and s panels along k, each pipe has its number of instructions: 2 s loads a tile,
// 2 pieces a panel with 2 moves and a product each, a store a tile.
TEST_F(panels__keep_the_slowest_pipe_busy) {
    enum { TILES = 2 * 2, PANELS = 4, PIECES = 256 / PIECE };
    static const struct {
        ptowsp_pipe pipe;
        uint64_t insns,
            others;  // at most so many cycles of others before the first, between, after
    } rows[] = {{PTOWSP_PIPE_MTE2, TILES * PANELS * 2, 2 * PIECES + PIECES + 1},
                {PTOWSP_PIPE_MTE1, TILES * PANELS * PIECES * 2, 2 + 1 + 1},
                {PTOWSP_PIPE_M, TILES * PANELS * PIECES, 2 + 2 + TILES}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int way = 0; way < 4; way++) {
            product p = {.m = 256,
                         .n = 512,
                         .k = PANELS * 256,
                         .panel = 256,
                         .is_turned = way & 1,
                         .has_pieces = way & 2};
            const ptowsp_kernel kernel = product_make(f, &p, 0);
            ptowsp_cycles cycles[PTOWSP_PIPE_COUNT];
            for (int pipe = 0; pipe < PTOWSP_PIPE_COUNT; pipe++) {
                cycles[pipe] = pipe == (int)rows[i].pipe ? 100 : 1;
            }
            ptowsp_cost cost = {.model = PTOWSP_MODEL_USER, .fn = cycles_by, .user = cycles};
            ptowsp_kernel_stats stats;
            assert_ok(ptowsp_kernel_measure(f->module, kernel, &cost, &stats));
            uint64_t busy = 100 * rows[i].insns;
            assert_int_equal(stats.busy_cycles[rows[i].pipe], busy);
            assert_true(stats.cycles >= busy);
            if (stats.cycles > busy + rows[i].others) {
                fail_msg("%s: %llu of %llu cycles", ptowsp_pipe_name(rows[i].pipe),
                         (unsigned long long)busy, (unsigned long long)stats.cycles);
            }
        }
    }
}

TEST_F(panels__sums_begin_with_their_first_product) {
    for (int way = 0; way < 2; way++) {
        product p = {.m = 256, .n = 256, .k = 384, .panel = 128, .has_scalar_k = way == 1};
        product_make(f, &p, 0);
        const ptowsp_kernel_info *info = NULL;
        const ptowsp_program_tables *tables = ptowsp_program_read(f->program);
        for (uint32_t i = 0; i < tables->kernel_count; i++) {
            info = tables->kernels[i].is_tile_kernel ? &tables->kernels[i] : info;
        }
        assert_non_null(info);
        uint32_t fills = 0, begins = 0;
        for (uint32_t i = 0; i < info->insn_count; i++) {
            fills += info->insns[i].op == PTOWSP_OP_TEXPANDS;
            begins += info->insns[i].begins == 3;
            assert_true(info->insns[i].begins == 0 || info->insns[i].op == PTOWSP_OP_TMATMUL_ACC);
        }
        assert_int_equal(fills, way ? 2 : 0);  // a box of zeros for each factor
        assert_int_equal(begins, way ? 0 : 1);
    }
}
