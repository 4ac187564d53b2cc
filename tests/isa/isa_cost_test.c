// Cycles of instructions: the models of A2/A3 and A5 against numbers worked out on paper, against
// what was measured, and the clocks of a core under flags and barriers.

#include "isa_operand.h"

#include "tests/support/suite.h"

// -- helpers --------------------------------------------------------------------------------------

static ptoisa_tile vec(ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    return ptoisa_tile_vec(NULL, dtype, rows, cols);
}

// Cycles of one instruction alone on a new core.
static uint64_t alone(ptoisa_model model, ptoisa_op op, const ptoisa_tile *dst,
                      const ptoisa_tile *src0, const ptoisa_tile *src1) {
    ptoisa_core core;
    ptoisa_core_init(&core, model, NULL);
    ptoisa_issue(&core, op, dst, src0, src1);
    assert_true(core.sum == ptoisa_cycles(&core));
    return ptoisa_cycles(&core);
}

// The same of an instruction whose operands are all one tile.
static uint64_t of_tile(ptoisa_model model, ptoisa_op op, ptoisa_tile tile) {
    return alone(model, op, &tile, &tile, &tile);
}

#define A2A3 PTOISA_MODEL_A2A3
#define A5   PTOISA_MODEL_A5

// -- on paper -------------------------------------------------------------------------------------

// A line of isa_costs.txt, for one model.
static void check_cost(ptoisa_model model, const char *ops, const char *operands, uint64_t want) {
    ptoisa_tile tiles[3];
    const ptoisa_tile *used[3] = {&tiles[0], &tiles[0], &tiles[0]};
    char text[64];
    int count = 0;
    for (; operand_next(&operands, text); count++) {
        assert_true(count < 3);
        const operand_of o = operand_read(text, PTOISA_A2A3);
        tiles[count] = o.tile;
        used[count] = o.is_none ? NULL : &tiles[count];
    }
    assert_true(count == 1 || count == 3);
    for (int length; sscanf(ops, "%31[^|]%n", text, &length) == 1; ops += length) {
        int op = 0;
        while (strcmp(ptoisa_op_name((ptoisa_op)op), text) != 0) {
            assert_true(++op < PTOISA_OP_COUNT);
        }
        const uint64_t cycles = alone(model, (ptoisa_op)op, used[0], used[1], used[2]);
        if (cycles != want) {
            fail_msg("%s: %llu cycles, not %llu", text, (unsigned long long)cycles,
                     (unsigned long long)want);
        }
        length += ops[length] == '|';
    }
    assert_int_equal(*ops, 0);
}

static void check_line(char *line, const char *result, void *user) {
    char models[8], ops[128];
    int length;
    (void)user;
    assert_int_equal(sscanf(line, "%7s %127s%n", models, ops, &length), 2);
    assert_non_null(result);
    char *end;
    const uint64_t cycles = strtoull(result, &end, 10);
    assert_true(end != result && end[strspn(end, " ")] == 0);
    assert_true(!strcmp(models, "both") || !strcmp(models, "A5") || !strcmp(models, "A2A3"));
    for (int model = A2A3; model <= A5; model++) {
        if (strcmp(models, "both") == 0 || strcmp(models, model == A5 ? "A5" : "A2A3") == 0) {
            check_cost((ptoisa_model)model, ops, line + length, cycles);
        }
    }
}

TEST(costs__are_those_of_paper) {
    operand_lines("tests/isa/isa_costs.txt", 200, check_line, NULL);
}

TEST(transfers__a_path_without_a_rate_is_the_slowest) {
    ptoisa_machine machine = *ptoisa_machine_910b();
    machine.rate[PTOISA_GM_TO_UB] = 0;
    ptoisa_tile tile = vec(PTOISA_F32, 64, 64);
    ptoisa_core core;
    ptoisa_core_init(&core, A2A3, &machine);
    ptoisa_issue(&core, PTOISA_TLOAD, &tile, NULL, NULL);
    assert_int_equal(ptoisa_cycles(&core), 882);
    memset(machine.rate, 0, sizeof machine.rate);
    ptoisa_core_reset(&core);
    ptoisa_issue(&core, PTOISA_TLOAD, &tile, NULL, NULL);
    assert_int_equal(ptoisa_cycles(&core), 0);
    ptoisa_core_init(&core, A2A3, ptoisa_machine_950pr());
    ptoisa_issue(&core, PTOISA_TLOAD, &tile, NULL, NULL);
    assert_int_equal(ptoisa_cycles(&core), 307);
}

// -- against measurements -------------------------------------------------------------------------

typedef struct measured_point {
    ptoisa_op op;
    ptoisa_dtype dtype;
    uint32_t rows, cols, valid_cols;
    double cycles;
    const char *why;  // NULL: the model is to be within a tenth
} measured_point;

static double point_ratio(const measured_point *point) {
    ptoisa_tile tile = vec(point->dtype, point->rows, point->cols);
    tile.valid_cols = point->valid_cols;
    const ptoisa_tile *src = point->op == PTOISA_TLOAD ? NULL : &tile;
    uint64_t cycles = alone(A2A3, point->op, &tile, src, src);
    double ratio = (double)cycles / point->cycles;
    print_message("%-10s %s %3ux%-4u %6u %8.1f %6.2f  %s\n", ptoisa_op_name(point->op),
                  ptoisa_dtype_name(point->dtype), point->rows, point->valid_cols, (unsigned)cycles,
                  point->cycles, ratio, point->why ? point->why : "");
    return ratio;
}

// What looks measured in the public data.
TEST(points__measured_ones_are_met) {
    static const measured_point points[] = {
        {PTOISA_TADD, PTOISA_F32, 64, 64, 64, 160, NULL},
        {PTOISA_TADD, PTOISA_I32, 64, 64, 64, 151, NULL},
        {PTOISA_TADD, PTOISA_F16, 16, 256, 256, 92, NULL},
        {PTOISA_TMUL, PTOISA_F32, 64, 64, 64, 168, NULL},
        {PTOISA_TSUB, PTOISA_F32, 64, 64, 64, 153, NULL},
        {PTOISA_TDIV, PTOISA_F32, 64, 64, 64, 288, NULL},
        {PTOISA_TADDS, PTOISA_F32, 32, 64, 64, 57, "as if head and tail were 25, not 31"},
        {PTOISA_TADDS, PTOISA_F32, 256, 16, 16, 266, "as if row by row: here rows lie together"},
        {PTOISA_TADDS, PTOISA_F32, 256, 32, 16, 266, "with a wider row: 16 for the partial mask"},
        {PTOISA_TABS, PTOISA_F32, 64, 64, 64, 68, "as if without head and tail"},
        {PTOISA_TROWSUM, PTOISA_F32, 64, 64, 64, 492, NULL},
        {PTOISA_TROWMAX, PTOISA_F32, 64, 64, 64, 480, NULL},
        {PTOISA_TROWEXPAND, PTOISA_F32, 64, 64, 64, 933, NULL},
        {PTOISA_TCOLSUM, PTOISA_F32, 64, 64, 64, 1263, NULL},
        {PTOISA_TTRANS, PTOISA_F32, 128, 128, 128, 501, NULL},
        {PTOISA_TLOAD, PTOISA_F32, 128, 128, 128, 776, "one rate for loads of all sizes"},
        {PTOISA_TLOAD, PTOISA_F32, 256, 64, 64, 2624, "narrow rows: no cost for each row"},
    };
    print_message("                         model measured  ratio\n");
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        double ratio = point_ratio(&points[i]);
        assert_true(points[i].why != NULL || (ratio > 0.9 && ratio < 1.1));
        assert_true(points[i].why == NULL || ratio < 0.9 || ratio > 1.1);
    }
}

// The fits of element-wise instructions that come with the readings: another source for the same,
// and the model agrees. Rows of half a repeat cost 2 cycles each in them and 17 more in all, which
// is what rows apart and one partial mask are here.
TEST(points__fits_of_elementwise_instructions) {
    static const measured_point points[] = {
        {PTOISA_TSUB, PTOISA_F32, 64, 64, 64, .0313 * 4096 + 25, NULL},
        {PTOISA_TSUB, PTOISA_F32, 64, 128, 128, .0325 * 8192 + 16.5, NULL},
        {PTOISA_TMUL, PTOISA_F32, 64, 64, 64, .0313 * 4096 + 26, NULL},
        {PTOISA_TMUL, PTOISA_F32, 64, 128, 128, .0325 * 8192 + 17.5, NULL},
        {PTOISA_TADDS, PTOISA_F32, 64, 64, 64, .0156 * 4096 + 25, NULL},
        {PTOISA_TADDS, PTOISA_F32, 64, 128, 128, .0169 * 8192 + 16.5, NULL},
        {PTOISA_TMULS, PTOISA_F32, 64, 64, 64, .0156 * 4096 + 26, NULL},
        {PTOISA_TMULS, PTOISA_F32, 64, 128, 128, .0169 * 8192 + 17.5, NULL},
        {PTOISA_TMINS, PTOISA_F32, 64, 64, 64, .0156 * 4096 + 23, NULL},
        {PTOISA_TMINS, PTOISA_F32, 64, 128, 128, .0169 * 8192 + 14.5, NULL},
        {PTOISA_TDIVS, PTOISA_F32, 64, 64, 64, .0781 * 4096 + 45, NULL},
        {PTOISA_TDIVS, PTOISA_F32, 64, 128, 128, .0794 * 8192 + 36.5, NULL},
        {PTOISA_TEXP, PTOISA_F32, 64, 64, 64, .0314 * 4096 + 30.1, NULL},
        {PTOISA_TSQRT, PTOISA_F32, 64, 64, 64, .0314 * 4096 + 31.1, NULL},
        {PTOISA_TSUB, PTOISA_F32, 64, 64, 32, .0625 * 2048 + 42, NULL},
        {PTOISA_TMUL, PTOISA_F32, 64, 64, 32, .0625 * 2048 + 43, NULL},
        {PTOISA_TSUB, PTOISA_F32, 64, 240, 240, .0312 * 15360 + 42, NULL},
        {PTOISA_TMULS, PTOISA_F32, 64, 240, 240, .0156 * 15360 + 43, NULL},
        {PTOISA_TSUB, PTOISA_F32, 64, 32, 32, .0625 * 2048 + 42, "as if row by row"},
    };
    print_message("                         model      fit  ratio\n");
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        double ratio = point_ratio(&points[i]);
        assert_true(points[i].why != NULL || (ratio > 0.9 && ratio < 1.1));
    }
}

// -- models ----------------------------------------------------------------------------------------

typedef struct asked {
    ptoisa_issue_info last;
    uint32_t count;
} asked;

static uint64_t ask_user(const ptoisa_issue_info *info, void *user) {
    asked *state = (asked *)user;
    state->last = *info;
    state->count++;
    return info->op == PTOISA_TADD ? 100 : info->op == PTOISA_TLOAD ? 1000 : 5;
}

TEST(models__user_is_told_everything) {
    ptoisa_tile a = vec(PTOISA_F32, 64, 64), b = vec(PTOISA_F32, 64, 64), c = b;
    ptoisa_core core;
    asked told = {0};
    ptoisa_core_init(&core, PTOISA_MODEL_USER, ptoisa_machine_950pr());
    core.cost = ask_user;
    core.cost_user = &told;
    ptoisa_issue(&core, PTOISA_TADD, &a, &b, &c);
    assert_int_equal(told.last.op, PTOISA_TADD);
    assert_int_equal(told.last.pipe, PTOISA_PIPE_V);
    assert_ptr_equal(told.last.dst, &a);
    assert_ptr_equal(told.last.src0, &b);
    assert_ptr_equal(told.last.src1, &c);
    assert_ptr_equal(told.last.machine, ptoisa_machine_950pr());
    assert_true(told.last.is_pipe_idle);
    ptoisa_issue(&core, PTOISA_TADD, &a, &b, &c);
    assert_false(told.last.is_pipe_idle);
    ptoisa_issue(&core, PTOISA_TLOAD, &a, NULL, NULL);
    assert_true(told.last.is_pipe_idle);
    ptoisa_set_flag(&core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 0);
    assert_int_equal(told.last.op, PTOISA_SET_FLAG);
    assert_int_equal(told.last.pipe, PTOISA_PIPE_MTE2);
    ptoisa_wait_flag(&core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 0);
    assert_int_equal(told.last.op, PTOISA_WAIT_FLAG);
    assert_int_equal(told.last.pipe, PTOISA_PIPE_V);
    assert_int_equal(core.clock[PTOISA_PIPE_V], 1010);
    ptoisa_pipe_barrier(&core, PTOISA_PIPE_ALL);
    assert_int_equal(told.last.op, PTOISA_PIPE_BARRIER);
    assert_int_equal(told.last.pipe, PTOISA_PIPE_ALL);
    assert_int_equal(ptoisa_cycles(&core), 1015);
    assert_int_equal(told.count, 6);

    // Without a function: the unit model's cycles, on each pipe.
    ptoisa_core_init(&core, PTOISA_MODEL_USER, NULL);
    ptoisa_issue(&core, PTOISA_TLOAD, &a, NULL, NULL);
    ptoisa_issue(&core, PTOISA_TADD, &a, &b, &c);
    assert_int_equal(ptoisa_cycles(&core), 4096);
}

// -- A5 -------------------------------------------------------------------------------------------

TEST(a5__what_has_no_fit_is_as_on_a2a3) {
    static const ptoisa_op ops[] = {PTOISA_TROWSUM, PTOISA_TCOLMAX, PTOISA_TROWEXPANDMUL,
                                    PTOISA_TMAX,    PTOISA_TADDS,   PTOISA_TSORT32,
                                    PTOISA_TMOV,    PTOISA_TSHLS};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        ptoisa_tile tile = vec(PTOISA_F32, 64, 64);
        assert_int_equal(of_tile(A5, ops[i], tile), of_tile(A2A3, ops[i], tile));
    }
}

// -- the same everywhere --------------------------------------------------------------------------

// Every vector instruction over many shapes, in both models, as one number: whatever compiler,
// optimisation level and machine runs this.
TEST(models__are_the_same_everywhere) {
    static const ptoisa_dtype dtypes[] = {PTOISA_F32, PTOISA_F16, PTOISA_I8, PTOISA_I64};
    uint64_t hash = UINT64_C(0xcbf29ce484222325), count = 0;
    for (int model = A2A3; model <= A5; model++) {
        for (int op = 1; op < PTOISA_SET_FLAG; op++) {
            for (uint32_t rows = 1; rows <= 64; rows = rows * 3 / 2 + 1) {
                for (uint32_t cols = 32; cols <= 1024; cols += 160) {
                    for (uint32_t valid = cols - 7; valid <= cols; valid += 7) {
                        ptoisa_tile tile = vec(dtypes[(rows + cols) % 4], rows, cols);
                        tile.valid_cols = valid;
                        hash ^= of_tile((ptoisa_model)model, (ptoisa_op)op, tile);
                        hash *= UINT64_C(0x100000001b3);
                        count++;
                    }
                }
            }
        }
    }
    print_message("%llu costs: %016llx\n", (unsigned long long)count, (unsigned long long)hash);
    assert_true(hash == UINT64_C(0xd7d71201f0ddc210));
}
