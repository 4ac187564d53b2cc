// The cost of attention on a machine as facts (support/facts.h), by numbers on paper.

#include "facts.h"

static ptowsp_machine machine;
static ptowsp_attention_shape shape;
static ptowsp_attention_cost cost;

static ptowsp_status find_cost(void) {
    memset(&cost, 0x5a, sizeof cost);
    return ptowsp_attention_cost_of(&machine, &shape, &cost);
}

static ptowsp_status is_910b(void) {
    machine = ptowsp_machine_910b();
    return PTOWSP_OK;
}

static ptowsp_status is_950pr(void) {
    machine = ptowsp_machine_950pr();
    return PTOWSP_OK;
}

static void begin(void) {
    machine = (ptowsp_machine){.clock_mhz = 1000,
                               .rates = {[PTOWSP_PATH_GM_TO_L1] = 9313,
                                         [PTOWSP_PATH_GM_TO_UB] = 4657,
                                         [PTOWSP_PATH_UB_TO_GM] = 2328},
                               .store_ns = 5,
                               .dispatch_ns = 140,
                               .completion_ns = 600,
                               .launch_ns = 3000,
                               .load_ns = 100};
    shape = (ptowsp_attention_shape){.dim = 128};
}

static const char *error(uint64_t *out_index) {
    *out_index = PTOWSP_NO_INDEX;
    return "no cost";
}

static void refused(void) {
    static const ptowsp_attention_cost zero;
    assert_memory_equal(&cost, &zero, sizeof cost);
}

static const facts_field *fields(void) {
    FACTS_RETURN(FIELD(machine.clock_mhz), NAMED("gm_to_l1", machine.rates[PTOWSP_PATH_GM_TO_L1]),
                 NAMED("gm_to_ub", machine.rates[PTOWSP_PATH_GM_TO_UB]),
                 NAMED("ub_to_gm", machine.rates[PTOWSP_PATH_UB_TO_GM]), FIELD(shape.dim),
                 FIELD(shape.value_dim), FIELD(shape.kv_token_bytes), FIELD(shape.kv_dtype),
                 FIELD(shape.kv_bytes_per_cycle), FIELD(cost.per_unit), FIELD(cost.per_token),
                 FIELD(cost.per_row_token), FIELD(cost.per_merged_row));
}

TEST(attention_cost_facts__hold) {
    static const facts_call calls[] = {
        {"find_cost", find_cost}, {"is_910b", is_910b}, {"is_950pr", is_950pr}, {NULL, NULL}};
    facts all = {"tests/data/attention_costs.facts", begin, fields, calls, error, refused, 0};
    facts_run(&all);
}

TEST(attention_cost__without_a_machine_or_a_shape_is_refused) {
    begin();
    assert_invalid(ptowsp_attention_cost_of(NULL, &shape, &cost));
    refused();
    assert_invalid(ptowsp_attention_cost_of(&machine, NULL, &cost));
    refused();
    assert_invalid(ptowsp_attention_cost_of(&machine, &shape, NULL));
}
