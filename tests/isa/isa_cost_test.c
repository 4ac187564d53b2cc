// Cycles of instructions beside isa_costs.txt and isa_steps.txt: machines without rates, a model of the user's, and
// one number for all.

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
