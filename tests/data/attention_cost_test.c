// The cost of attention on a machine, by numbers on paper.

#include "test.h"

#include <float.h>
#include <math.h>

static void is_near(double got, double expected) {
    if (fabs(got - expected) > 1e-9 * fabs(expected)) {
        fail_msg("%.12g, not %.12g", got, expected);
    }
}

// A machine with easy numbers: 1 GHz; 100 * 10^9 bytes / 2^30 GiB/s from GM to L1 and so on are 100,
// 50 and 25 bytes a cycle, as nearly as 1/100 GiB/s can say.
static ptowsp_machine easy_machine(void) {
    ptowsp_machine machine = {.clock_mhz = 1000};
    machine.rates[PTOWSP_PATH_GM_TO_L1] = 9313;  // 93.13 GiB/s: 99.997... bytes a cycle
    machine.rates[PTOWSP_PATH_GM_TO_UB] = 4657;
    machine.rates[PTOWSP_PATH_UB_TO_GM] = 2328;
    machine.store_ns = 5;
    machine.dispatch_ns = 140;
    machine.completion_ns = 600;
    machine.launch_ns = 3000;
    machine.load_ns = 100;
    return machine;
}

static double bytes_per_cycle(double rate, double mhz) {
    return rate / 100.0 * 1073741824.0 / (mhz * 1e6);
}

static ptowsp_attention_cost cost_of(const ptowsp_machine *machine,
                                     const ptowsp_attention_shape *shape) {
    ptowsp_attention_cost cost;
    assert_ok(ptowsp_attention_cost_of(machine, shape, &cost));
    return cost;
}

TEST(attention_cost__is_the_one_of_paper) {
    ptowsp_machine machine = easy_machine();
    ptowsp_attention_shape shape = {.dim = 128};
    ptowsp_attention_cost cost = cost_of(&machine, &shape);
    // 745 ns at 1 GHz; a key and a value of 128 f16 are 512 bytes; 256 multiply-adds of 4,096 a cycle;
    // 130 floats are 520 bytes, out and in.
    is_near(cost.per_unit, 745.0);
    is_near(cost.per_token, 512.0 / 99.99757606912);
    is_near(cost.per_row_token, 1.0 / 16.0);
    is_near(cost.per_merged_row,
            520.0 / bytes_per_cycle(2328, 1000) + 520.0 / bytes_per_cycle(4657, 1000));
    assert_true(fabs(cost.per_merged_row - (520.0 / 25.0 + 520.0 / 50.0)) < 0.01);
    machine.clock_mhz = 2000;  // as many ns are twice the cycles, and a byte, too
    ptowsp_attention_cost fast = cost_of(&machine, &shape);
    is_near(fast.per_unit, 2 * cost.per_unit);
    is_near(fast.per_token, 2 * cost.per_token);
    is_near(fast.per_row_token, cost.per_row_token);
    is_near(fast.per_merged_row, 2 * cost.per_merged_row);
}

TEST(attention_cost__follows_the_shape) {
    const ptowsp_machine machine = easy_machine();
    ptowsp_attention_shape shape = {
        .dim = 576, .value_dim = 512, .kv_token_bytes = 1152, .kv_bytes_per_cycle = 32.0};
    ptowsp_attention_cost cost = cost_of(&machine, &shape);  // MLA, all cores at once
    is_near(cost.per_token, 36.0);
    is_near(cost.per_row_token, 1088.0 / 4096.0);
    is_near(cost.per_merged_row,
            514.0 * 4.0 * (1.0 / bytes_per_cycle(2328, 1000) + 1.0 / bytes_per_cycle(4657, 1000)));
    static const struct {
        ptowsp_dtype dtype;
        double bytes, multiply_adds;
    } rows[] = {{PTOWSP_F32, 1024.0, 1024.0},
                {PTOWSP_F16, 512.0, 4096.0},
                {PTOWSP_BF16, 512.0, 4096.0},
                {PTOWSP_I8, 256.0, 8192.0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ptowsp_attention_shape one = {
            .dim = 128, .kv_dtype = rows[i].dtype, .kv_bytes_per_cycle = 32.0};
        cost = cost_of(&machine, &one);
        is_near(cost.per_token, rows[i].bytes / 32.0);
        is_near(cost.per_row_token, 256.0 / rows[i].multiply_adds);
    }
}

TEST(attention_cost__of_the_machines_that_are_built_in) {
    const ptowsp_machine a2 = ptowsp_machine_910b(), a5 = ptowsp_machine_950pr();
    const ptowsp_attention_shape shape = {.dim = 128};
    // 910B: 745 ns at 1.85 GHz; 135 GiB/s are 78.354... bytes a cycle.
    ptowsp_attention_cost cost = cost_of(&a2, &shape);
    is_near(cost.per_unit, 1378.25);
    is_near(cost.per_token, 512.0 * 1.85e9 / (135.0 * 1073741824.0));
    assert_true(cost.per_token > 6.53 && cost.per_token < 6.54);
    is_near(cost.per_row_token, 0.0625);
    is_near(cost.per_merged_row, 520.0 * 1.85e9 / 1073741824.0 * (1.0 / 100.9 + 1.0 / 188.46));
    // 950PR: the same at 1.65 GHz, 109.46 GiB/s.
    cost = cost_of(&a5, &shape);
    is_near(cost.per_unit, 1229.25);
    is_near(cost.per_token, 512.0 * 1.65e9 / (109.46 * 1073741824.0));
}

static void refused(const ptowsp_machine *machine, const ptowsp_attention_shape *shape) {
    static const ptowsp_attention_cost zero;
    ptowsp_attention_cost cost;
    memset(&cost, 0x5a, sizeof cost);
    assert_invalid(ptowsp_attention_cost_of(machine, shape, &cost));
    assert_memory_equal(&cost, &zero, sizeof cost);
}

TEST(attention_cost__refuses_what_has_no_cost) {
    const ptowsp_machine machine = easy_machine();
    const ptowsp_attention_shape shape = {.dim = 128};
    refused(NULL, &shape);
    refused(&machine, NULL);
    assert_invalid(ptowsp_attention_cost_of(&machine, &shape, NULL));
    ptowsp_attention_shape wrong = {.dim = 0, .value_dim = 64};
    refused(&machine, &wrong);
    wrong = shape;
    wrong.kv_dtype = (ptowsp_dtype)99;
    refused(&machine, &wrong);
    static const double rates[] = {-1.0, INFINITY, NAN, -DBL_MIN};
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        wrong = shape;
        wrong.kv_bytes_per_cycle = rates[i];
        refused(&machine, &wrong);
    }
    ptowsp_machine none = machine;
    none.clock_mhz = 0;
    refused(&none, &shape);
    static const ptowsp_path paths[] = {PTOWSP_PATH_GM_TO_L1, PTOWSP_PATH_GM_TO_UB,
                                        PTOWSP_PATH_UB_TO_GM};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        none = machine;
        none.rates[paths[i]] = 0;
        refused(&none, &shape);
    }
    none = machine;  // but not where another rate is given
    none.rates[PTOWSP_PATH_GM_TO_L1] = 0;
    wrong = shape;
    wrong.kv_bytes_per_cycle = 1.0;
    is_near(cost_of(&none, &wrong).per_token, 512.0);
}
